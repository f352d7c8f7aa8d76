from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.optim import checkpoints

STATE = {"a": np.arange(6.0).reshape(2, 3), "b": (np.int32(4), jnp.ones((), jnp.float32))}
NAME, BEFORE = "checkpoint.safetensors", "checkpoint.before.safetensors"


def saved(folder, **meta):
    checkpoints.save(folder, STATE, {"fingerprint": "x", **meta})
    return folder / NAME


def test_what_is_saved_comes_back_with_its_types(tmp_path):
    saved(tmp_path, history=[{"loss": 0.1 + 0.2, "validation": None, "grad_norm": float("nan")}])
    state, meta = checkpoints.load(tmp_path, STATE, fingerprint="x")
    np.testing.assert_array_equal(state["a"], STATE["a"])
    assert state["b"][0] == 4 and state["b"][0].dtype == np.int32 and state["b"][1].dtype == np.float32
    assert meta["history"][0]["loss"] == 0.1 + 0.2 and np.isnan(meta["history"][0]["grad_norm"])
    assert [path.name for path in tmp_path.iterdir()] == [NAME], "no temporary file stays behind"


def test_no_checkpoint_is_none(tmp_path):
    assert checkpoints.load(tmp_path, STATE, fingerprint="x") is None


def test_a_save_that_fails_keeps_the_old_checkpoint(tmp_path):
    saved(tmp_path)
    with pytest.raises(TypeError):
        checkpoints.save(tmp_path, {"a": np.zeros(1)}, {"not json": object()})
    assert checkpoints.load(tmp_path, STATE, fingerprint="x") is not None
    assert [path.name for path in tmp_path.iterdir()] == [NAME]


@pytest.mark.parametrize("damage", ["truncated", "empty", "text", "one byte"])
def test_a_damaged_file_is_refused(tmp_path, damage):
    path = saved(tmp_path)
    content = path.read_bytes()
    flipped = content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]
    changed = {"truncated": content[:-5], "empty": b"", "text": b"not a checkpoint", "one byte": flipped}
    path.write_bytes(changed[damage])
    with pytest.raises(ValueError, match=f"expected a whole .* got a damaged file .*{NAME} .*delete its folder"):
        checkpoints.load(tmp_path, STATE, fingerprint="x")


def renoted(path, **change):
    """Writes other notes, as anybody can who opens the file."""
    from safetensors import safe_open
    from safetensors.numpy import load_file, save_file

    with safe_open(path, framework="numpy") as file:
        facts = file.metadata()
    facts["json"] = json.dumps(json.loads(facts["json"]) | change)
    save_file(load_file(path), path, metadata=facts)


def test_notes_that_were_changed_are_refused(tmp_path):
    path = saved(tmp_path, best_step=3)
    renoted(path, best_step=4)
    with pytest.raises(ValueError, match="got a damaged file .* expected those that were written"):
        checkpoints.load(tmp_path, STATE, fingerprint="x")


def test_checkpoints_of_earlier_versions_whose_digest_leaves_the_notes_out_are_read(tmp_path):
    from safetensors.numpy import load_file, save_file

    path = saved(tmp_path)
    leaves = load_file(path)
    facts = {"json": '{"fingerprint": "x", "old": 1}',
             "contents": checkpoints.fingerprint([leaves[f"leaf.{i}"] for i in range(len(leaves))])}
    save_file(leaves, path, metadata=facts)
    assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["old"] == 1


def test_the_one_before_is_kept_and_read_where_the_newest_is_damaged(tmp_path):
    for number in range(3):
        saved(tmp_path, number=number)
    assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["number"] == 2
    (tmp_path / NAME).write_bytes(b"")
    with pytest.warns(UserWarning, match=f"{NAME} is damaged; going on from the one before it, .*{BEFORE}"):
        assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["number"] == 1
    with pytest.raises(ValueError, match="another problem's, .* in .*before"), pytest.warns(UserWarning):
        checkpoints.load(tmp_path, STATE, fingerprint="y")
    (tmp_path / BEFORE).write_bytes(b"x")
    with pytest.raises(ValueError, match=f"got a damaged file .*{NAME} "):
        checkpoints.load(tmp_path, STATE, fingerprint="x")
    saved(tmp_path, number=3)
    assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["number"] == 3
    saved(tmp_path, number=4)
    (tmp_path / NAME).unlink()
    with pytest.warns(UserWarning, match=f"{NAME} is missing; going on from the one before it"):
        assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["number"] == 3


@pytest.mark.parametrize("call", ["link", "replace", "fsync"])
@pytest.mark.parametrize("number", [1, 2])
def test_a_save_that_is_stopped_anywhere_leaves_a_whole_checkpoint(tmp_path, monkeypatch, call, number):
    for i in range(2):
        saved(tmp_path, number=i)
    calls, real = [], getattr(os, call)

    def stopped(*given):
        calls.append(given)
        if len(calls) == number:
            raise KeyboardInterrupt
        return real(*given)

    monkeypatch.setattr(os, call, stopped)
    try:
        saved(tmp_path, number=2)
    except KeyboardInterrupt:
        pass
    assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["number"] in (1, 2)
    (tmp_path / NAME).write_bytes(b"")
    with pytest.warns(UserWarning):
        assert checkpoints.load(tmp_path, STATE, fingerprint="x")[1]["number"] in (0, 1)


def test_a_safetensors_file_of_another_program_is_refused(tmp_path):
    from safetensors.numpy import save_file

    save_file({"leaf.0": np.zeros(2)}, tmp_path / NAME)
    with pytest.raises(ValueError, match="checkpoint: expected a whole checkpoint"):
        checkpoints.load(tmp_path, STATE, fingerprint="x")


@pytest.mark.parametrize(("like", "mark"), [
    (STATE, "y"),
    ({"a": STATE["a"]}, "x"),
    ({**STATE, "a": np.zeros((3, 2))}, "x"),
    ({**STATE, "a": np.zeros((2, 3), np.float32)}, "x"),
], ids=["fingerprint", "leaves", "shape", "dtype"])
def test_a_checkpoint_of_another_problem_is_refused(tmp_path, like, mark):
    saved(tmp_path)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
        checkpoints.load(tmp_path, like, fingerprint=mark)


def test_an_unwritable_folder_is_refused_before_any_work(tmp_path):
    (tmp_path / "file").write_text("in the way")
    # Below a regular file nobody can make a folder, not even root.
    with pytest.raises(ValueError, match="checkpoint: expected a folder that can be written to, got .*file"):
        checkpoints.prepare(tmp_path / "file" / "folder")
    with pytest.raises(ValueError, match="checkpoint: expected a folder that can be written to"):
        checkpoints.prepare(tmp_path / "file")


def test_prepare_makes_the_folder_and_leaves_nothing_in_it(tmp_path):
    folder = checkpoints.prepare(tmp_path / "a" / "b")
    assert folder.is_dir() and not list(folder.iterdir())


@pytest.mark.programs
def test_prepare_removes_what_killed_processes_left(tmp_path):
    path = saved(tmp_path)
    content = path.read_bytes()
    program = ("import os, pathlib, signal, sys\nimport numpy as np\nfrom jaxsim.optim import checkpoints\n"
               "os.fsync = lambda number: os.kill(os.getpid(), signal.SIGKILL)\n"
               "checkpoints.save(pathlib.Path(sys.argv[1]), [np.zeros(9)], {'fingerprint': 'y'})")
    root = str(Path(__file__).parents[2])
    gone = subprocess.Popen([sys.executable, "-c", program, tmp_path], env={**os.environ, "PYTHONPATH": root})
    assert gone.wait(60) == -signal.SIGKILL
    assert {path.name for path in tmp_path.iterdir()} == {NAME, f"{NAME}.{gone.pid}.tmp"}
    stale = [f".write-test-{gone.pid}", f"{NAME}.{os.getpid()}.tmp"]
    kept = [f"{NAME}.{os.getppid()}.tmp", f"{NAME}.{10**30}.tmp", f"{NAME}.x.tmp", f"{gone.pid}.tmp", "notes.txt"]
    for name in stale + kept:
        (tmp_path / name).write_bytes(b"half")
    checkpoints.prepare(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {NAME, *kept} and path.read_bytes() == content


def test_the_fingerprint_sees_values_shapes_and_types():
    marks = [checkpoints.fingerprint(tree) for tree in (
        [1.0, 2.0], [2.0, 1.0], [np.array([1.0, 2.0])], [np.float32(1), 2.0], [np.array([[1.0, 2.0]])], ["1.0", "2.0"])]
    assert len(set(marks)) == len(marks)
    assert checkpoints.fingerprint({"a": jnp.ones(2)}) == checkpoints.fingerprint({"a": np.ones(2)})


def test_ctrl_c_waits_for_the_end_of_the_block():
    before, done = signal.signal(signal.SIGINT, signal.default_int_handler), []
    try:
        with pytest.raises(KeyboardInterrupt):
            with checkpoints.uninterrupted():
                os.kill(os.getpid(), signal.SIGINT)
                done.append("rest of the block")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(ZeroDivisionError):
            with checkpoints.uninterrupted():
                _ = 1 / 0
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)
    assert done


def test_other_threads_pass_through():
    done = []

    def run():
        with checkpoints.uninterrupted():
            done.append(1)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert done
