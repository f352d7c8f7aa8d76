"""S2Net on antonyms, killed in the middle by ``kill -9``, ends with what a training left alone ends with."""

from __future__ import annotations

import antonyms_until_stopped as example
import numpy as np
import pytest
from killed import killed

pytestmark = pytest.mark.programs


def test_a_training_goes_on_after_kill_9_as_if_nothing_had_been(tmp_path):
    written = tmp_path / "run" / "checkpoint.safetensors"
    killed(example.__file__, [tmp_path / "run"], written)
    (resumed, calls), (whole, every) = example.train(tmp_path / "run"), example.train()
    assert every == example.EPOCHS + 1 and calls < example.EPOCHS  # the epochs before the kill are not trained again
    np.testing.assert_array_equal(resumed.params.weights, whole.params.weights)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
