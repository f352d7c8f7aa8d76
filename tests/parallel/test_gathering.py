"""What processes tell each other, played by one: `all_of` says what the others would have said."""

from __future__ import annotations

import numpy as np
import pytest

from jaxsim.optim import checkpoints
from jaxsim.parallel import gathering

STATE = [np.arange(3.0)]


@pytest.fixture
def two(monkeypatch):
    """This process and one that always says the same: what the test puts into ``others``."""
    others = {}
    monkeypatch.setattr(gathering, "all_of", lambda value: [value, others.get("said", value)])
    return others


def test_a_failure_in_another_process_is_one_here(two):
    assert gathering.agreed(lambda: 3, "checkpoint") == 3
    two["said"] = b"\x01"
    with pytest.raises(ValueError, match=r"checkpoint: expected something that works in every process, got a failure "
                       r"in process \[1\]"):
        gathering.agreed(lambda: 3, "checkpoint")


def test_a_failure_here_is_told_as_it_is(two):
    two["said"] = b"\x00"
    with pytest.raises(ValueError, match="mine"):
        gathering.agreed(lambda: (_ for _ in ()).throw(ValueError("mine")), "checkpoint")


def test_a_folder_that_is_not_the_same_everywhere_is_refused(two, tmp_path):
    checkpoints.save(checkpoints.prepare(tmp_path, shared=True), STATE, {"fingerprint": "x"}, shared=True)
    (result,), meta = checkpoints.load(tmp_path, STATE, fingerprint="x", shared=True)
    assert result.tolist() == [0, 1, 2] and meta == {"fingerprint": "x"}
    two["said"] = b"another checkpoint"
    # The other's failure, and the other's file.
    with pytest.raises(ValueError, match="checkpoint: expected something that works in every process"):
        checkpoints.load(tmp_path, STATE, fingerprint="x", shared=True)
    with pytest.raises(ValueError, match=r"folder: expected one for all, got another in process \[1\] than in"):
        gathering.expect_same("a", "folder", "one for all")


def test_a_damaged_checkpoint_of_several_processes_is_refused(two, tmp_path):
    (tmp_path / "checkpoint.safetensors").write_bytes(b"")
    with pytest.raises(ValueError, match="checkpoint: expected a whole checkpoint, got a damaged file"):
        checkpoints.load(tmp_path, STATE, fingerprint="x", shared=True)
