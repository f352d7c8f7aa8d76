"""An alignment that is killed by ``kill -9`` ends with what one that was left alone ends with."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import translation_until_stopped as example
from safetensors import safe_open

pytestmark = pytest.mark.programs


def test_an_alignment_goes_on_after_kill_9_as_if_nothing_had_been(tmp_path):
    command = [sys.executable, example.__file__, str(tmp_path / "run")]
    written = tmp_path / "run" / "checkpoint.safetensors"
    child = subprocess.Popen(command, env={**os.environ, "JAX_PLATFORMS": "cpu"})
    try:
        deadline = time.monotonic() + 180
        while not written.exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.02)
    finally:
        child.kill()
    assert child.wait(timeout=60) == -signal.SIGKILL and written.exists(), "the example ended before it was killed"
    with safe_open(written, framework="numpy") as file:
        done = json.loads(file.metadata()["json"])["history"][-1]["step"]
    assert 0 < done < example.EPOCHS
    resumed, whole = example.train(tmp_path / "run"), example.train()
    for name in ("right_given_left", "left_given_right"):
        mine, other = (getattr(fit.params, name) for fit in (resumed, whole))
        np.testing.assert_array_equal(mine.data, other.data)
        np.testing.assert_array_equal(mine.indices, other.indices)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
