"""Every language model that is trained step by step, killed in the middle by ``kill -9``, ends as one left alone."""

from __future__ import annotations

import json

import jax
import language_until_stopped as example
import numpy as np
import pytest
from killed import killed
from safetensors import safe_open

pytestmark = pytest.mark.programs


@pytest.mark.parametrize(("method", "part"), [("rnn_lm", ""), ("log_bilinear", ""), ("model_m", "classes"),
                                              ("model_m", "words")])  # fmt: skip
def test_a_training_goes_on_after_kill_9_as_if_nothing_had_been(tmp_path, method, part):
    written = tmp_path / part / "checkpoint.safetensors"
    killed(example.__file__, [tmp_path, method], written, JAX_ENABLE_X64="1")
    with safe_open(written, framework="numpy") as file:
        kept = json.loads(file.metadata()["json"])["history"]
    assert kept[-1]["step"] < example.STEPS
    resumed, whole = example.fit(method, tmp_path), example.fit(method)
    jax.tree.map(np.testing.assert_array_equal, resumed.params, whole.params)
    assert [one["loss"] for one in resumed.history[1:]] == [one["loss"] for one in whole.history[1:]]
    assert (resumed.steps, resumed.loss) == (whole.steps, whole.loss)
    # The steps before the kill were read, not done again: their seconds are the child's.
    own = resumed.history[-example.STEPS - 1 :] if part == "words" else resumed.history
    assert [one["seconds"] for one in own[: len(kept)]] == [one["seconds"] for one in kept]
