"""Every fit of SSI, killed in the middle by ``kill -9``, ends with what one that was left alone ends with."""

from __future__ import annotations

import json

import jax
import numpy as np
import pytest
import ssi_until_stopped as example
from killed import killed
from safetensors import safe_open

pytestmark = pytest.mark.programs


@pytest.mark.parametrize("kind", example.KINDS)
def test_a_fit_goes_on_after_kill_9_as_if_nothing_had_been(tmp_path, kind):
    written = tmp_path / "run" / "checkpoint.safetensors"
    killed(example.__file__, [tmp_path / "run", kind], written)
    with safe_open(written, framework="numpy") as file:
        done = json.loads(file.metadata()["json"])["history"][-1]["step"]
    assert 0 < done < example.EPOCHS
    (resumed, calls), (whole, every) = example.train(kind, tmp_path / "run"), example.train(kind)
    assert calls == example.EPOCHS - done and every == example.EPOCHS + 1  # the epochs before are not trained again
    for mine, other in zip(jax.tree.leaves(resumed.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
    assert (resumed.evaluations, resumed.loss) == (whole.evaluations, whole.loss)
    # What is compared was learned after the kill.
    assert max(whole.history, key=lambda entry: entry["validation"])["step"] > done
