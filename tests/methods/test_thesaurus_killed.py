"""S2Net on antonyms, killed in the middle by ``kill -9``, ends with what a training left alone ends with."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import antonyms_until_stopped as example
import numpy as np
import pytest

pytestmark = pytest.mark.programs


def test_a_training_goes_on_after_kill_9_as_if_nothing_had_been(tmp_path):
    written = tmp_path / "run" / "checkpoint.safetensors"
    child = subprocess.Popen([sys.executable, example.__file__, str(tmp_path / "run")],
                             env={**os.environ, "JAX_PLATFORMS": "cpu"})
    try:
        deadline = time.monotonic() + 180
        while not written.exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.02)
    finally:
        child.kill()
    assert child.wait(timeout=60) == -signal.SIGKILL and written.exists(), "the example ended before it was killed"
    (resumed, calls), (whole, every) = example.train(tmp_path / "run"), example.train()
    assert every == example.EPOCHS + 1 and calls < example.EPOCHS  # the epochs before the kill are not trained again
    np.testing.assert_array_equal(resumed.params.weights, whole.params.weights)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
