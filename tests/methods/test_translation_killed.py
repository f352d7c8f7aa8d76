"""An alignment that is killed by ``kill -9`` ends with what one that was left alone ends with."""

from __future__ import annotations

import json

import numpy as np
import pytest
import translation_until_stopped as example
from killed import killed
from safetensors import safe_open

pytestmark = pytest.mark.programs


def test_an_alignment_goes_on_after_kill_9_as_if_nothing_had_been(tmp_path):
    written = tmp_path / "run" / "checkpoint.safetensors"
    killed(example.__file__, [tmp_path / "run"], written)
    with safe_open(written, framework="numpy") as file:
        done = json.loads(file.metadata()["json"])["history"][-1]["step"]
    assert 0 < done < example.EPOCHS
    resumed, whole = example.train(tmp_path / "run"), example.train()
    for name in ("right_given_left", "left_given_right"):
        mine, other = (getattr(fit.params, name) for fit in (resumed, whole))
        np.testing.assert_array_equal(mine.data, other.data)
        np.testing.assert_array_equal(mine.indices, other.indices)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
