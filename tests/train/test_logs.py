"""Logs of trainings: every step once, whatever was killed, for CSV and for TensorBoard."""

from __future__ import annotations

import csv
import dataclasses
import os
import struct
import subprocess
import sys

import jax.numpy as jnp
import pytest
from command_line import OPCA, of_other, refused, run

from jaxsim import cli, optim
from jaxsim.train import Settings, linked, logs

S2NET = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dim", "4", "--dev", "0.2", "--max-iter", "13",
         "--log", "logs"]  # fmt: skip
SHORT = ["--dim", "4", "--dev", "0.2", "--max-iter", "3"]


def rows(folder="logs") -> list[dict]:
    with open(f"{folder}/log.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def events(folder) -> dict[str, list[tuple[int, float, float]]]:
    """Step, value and time of each curve in event files; 'starts' are the steps of purges."""
    from tensorboardX.proto import event_pb2

    result: dict[str, list] = {}
    for path in sorted(folder.glob("events.out.tfevents.*")):
        data = path.read_bytes()
        while data:
            (size,) = struct.unpack("<Q", data[:8])
            event = event_pb2.Event.FromString(data[12 : 12 + size])
            data = data[16 + size :]
            if event.HasField("session_log"):
                result.setdefault("starts", []).append(event.step)
            for value in event.summary.value:
                result.setdefault(value.tag, []).append((event.step, value.simple_value, event.wall_time))
    return result


def quadratic(x, data):
    return jnp.sum((x - data) ** 4)


def test_the_callback_has_the_whole_history_also_of_a_fit_that_goes_on(tmp_path):
    def fit(max_iter, told):
        return optim.minimize_lbfgs(quadratic, jnp.zeros(3), jnp.arange(3.0), max_iter=max_iter, checkpoint_every=2,
                                    checkpoint=tmp_path, callback=told.append, tol=0.0,
                                    validate=lambda x: -float(jnp.sum(x)))  # fmt: skip

    first, second = [], []
    assert fit(3, first).history == first and [entry["step"] for entry in first] == [0, 1, 2, 3]
    history = fit(6, second).history
    assert history == second and second[:4] == first and [entry["step"] for entry in second] == list(range(7))
    second[0]["loss"] = None  # an entry of its own
    assert history[0]["loss"] is not None
    with pytest.raises(ValueError, match="callback: expected a function of an entry of the history, or None, got 3"):
        optim.Run(callback=3)
    with pytest.raises(ZeroDivisionError):
        optim.minimize_lbfgs(quadratic, jnp.zeros(3), jnp.arange(3.0), callback=lambda entry: 1 / 0)


KILLED = """
import os, signal, sys
from jaxsim import cli
from jaxsim.train import logs
call = logs.Log.__call__
def stop(self, run, entry):
    call(self, run, entry)
    if entry["step"] == 12:  # two steps after the last checkpoint
        os.kill(os.getpid(), signal.SIGKILL)
logs.Log.__call__ = stop
cli.main(sys.argv[1:])
"""


@pytest.mark.programs
def test_kill_9_loses_no_step_of_a_log_and_doubles_none(folder, capsys):
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    assert subprocess.run([sys.executable, "-c", KILLED, *S2NET], env=environment).returncode == -9
    before = rows()
    assert [row["step"] for row in before] == [str(step) for step in range(13)]
    run(capsys, *S2NET, "--resume")
    resumed = rows()
    run(capsys, *S2NET, "--log", "whole", "--out", "other")
    assert [row["step"] for row in resumed] == [str(step) for step in range(14)]
    for mine, other in zip(resumed, rows("whole"), strict=True):
        assert {name: mine[name] for name in mine if name != "seconds"} == {
            name: other[name] for name in other if name != "seconds"}  # fmt: skip
    assert [row["seconds"] for row in resumed[:11]] == [row["seconds"] for row in before[:11]]
    curves = events(folder / "logs" / "s2net")
    assert curves["starts"] == [0] and {"loss", "score", "grad_norm"} <= set(curves)
    for name in ("loss", "score"):
        assert [step for step, _, _ in curves[name]] == list(range(14))
        assert [value for _, value, _ in curves[name]] == pytest.approx([float(row[name]) for row in resumed])
    seconds = [time - curves["loss"][0][2] for _, _, time in curves["loss"]]
    assert seconds == pytest.approx([float(row["seconds"]) - float(resumed[0]["seconds"]) for row in resumed], abs=1e-3)


@pytest.mark.programs
@pytest.mark.parametrize(("options", "runs"), [
    (["--method", "ssi", *SHORT], {
        f"ssi-b{b}{rate}" for b in (3, 10, 30) for rate in ("", "-rate-0.01", "-rate-0.003")} | {"-random"}),
    (["--method", "s2net", *SHORT, "--distill", "0.5"], {"s2net", "distillation"}),
    pytest.param(["--method", "jplsa", *SHORT], {"jplsa"}, marks=pytest.mark.slow),
])  # fmt: skip
def test_every_fit_of_a_training_is_logged_once(options, runs, folder, capsys, monkeypatch):
    monkeypatch.setattr(linked, "BEYOND", {"identity": (), "learning_rate": ()})
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--log", "deep/logs", *options)
    facts = rows("deep/logs")
    names = {row["run"] for row in facts}
    assert {"-random" if name.endswith("-random") else name for name in names} == runs
    for name in names:
        steps = [int(row["step"]) for row in facts if row["run"] == name]
        assert steps == list(range(len(steps))) and len(steps) > 1
    assert all(row["loss"] for row in facts if row["step"] != "0") and "nan" not in str(facts)


@pytest.mark.slow
def test_methods_of_grades_are_logged(folder, capsys):
    lines = [line.split("\t") for line in (folder / "pairs.tsv").read_text().splitlines()]
    (folder / "graded.tsv").write_text("".join(f"{left}\t{lines[(i + step) % 40][1]}\t{2 - step}\n"
                                               for i, (left, _) in enumerate(lines) for step in range(3)))  # fmt: skip
    for method in ("s2net-mse", "s2net-pref"):
        run(capsys, "train", "--pairs", "graded.tsv", "--label", "3", "--out", "model", "--method", method, "--log",
            method, *SHORT)  # fmt: skip
        assert [row["step"] for row in rows(method)] == ["0", "1", "2", "3"]
        assert all(row["loss"] for row in rows(method))


def test_a_new_training_replaces_a_log_and_nothing_else(folder, capsys):
    (folder / "logs" / "s2net").mkdir(parents=True)
    (folder / "logs" / "s2net" / "events.out.tfevents.1.mine").write_bytes(b"")
    pytest.importorskip("tensorboardX")
    (folder / "logs" / "notes.txt").write_text("mine")
    run(capsys, *S2NET, "--max-iter", "4")
    first = rows()
    curves = events(folder / "logs" / "s2net")
    assert curves["starts"] == [0] and {"loss", "score", "grad_norm"} <= set(curves)
    for name in ("loss", "score"):
        assert [step for step, _, _ in curves[name]] == list(range(5))
        assert [value for _, value, _ in curves[name]] == pytest.approx([float(row[name]) for row in first])
    run(capsys, *S2NET, "--max-iter", "2", "--method", "s2net-2")
    assert [row["run"] for row in rows()] == ["s2net-2"] * 3 and len(first) == 5
    assert sorted(path.name for path in (folder / "logs" / "s2net").iterdir()) == ["events.out.tfevents.1.mine"]
    assert (folder / "logs" / "notes.txt").read_text() == "mine"


def test_a_choice_of_a_method_without_steps_leaves_no_log_and_a_line_says_so(folder, capsys, monkeypatch):
    chosen = dataclasses.replace(Settings(), method="tfidf")
    monkeypatch.setattr("jaxsim.cli.train_choice.chosen", lambda *_: (chosen, {}))
    assert cli.main([*S2NET, "--tune", "--budget", "5s"]) == 0
    assert "logs: nothing to log, tfidf has no steps\n" in capsys.readouterr().err and not os.path.exists("logs")


@pytest.mark.parametrize("error", [ModuleNotFoundError("No module named 'tensorboardX'"),
                                   TypeError("Descriptors cannot be created directly.")])
def test_without_a_writer_the_table_is_written_and_a_line_says_so(error, folder, capsys, monkeypatch):
    class Refusing:
        def find_spec(self, name, path=None, target=None):
            if name == "tensorboardX":
                raise error

    for name in [name for name in sys.modules if name.split(".")[0] == "tensorboardX"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Refusing(), *sys.meta_path])
    assert cli.main([*S2NET, "--max-iter", "1"]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "TensorBoard" in line]
    assert len(lines) == 1 and lines[0].startswith("logs: log.csv alone; for TensorBoard: pip install")
    assert ("Descriptors" in lines[0]) == isinstance(error, TypeError)
    assert len(rows()) == 2 and os.listdir("logs") == ["log.csv"]


def test_bad_places_for_a_log_are_refused_before_any_work(folder, capsys, monkeypatch):
    (folder / "mine").mkdir()
    (folder / "mine" / "log.csv").write_text("step,loss\n")
    (folder / "new").mkdir()
    os.symlink("nowhere", "broken")
    for place, message in [
        ("pairs.tsv", "--log: expected a folder, new or old, got a file (pairs.tsv)"),
        ("broken", "--log: expected a folder, new or old, got a file (broken)"),
        ("mine", "mine/log.csv: expected the log of an earlier training, to replace it, got another file (give another "
                 "folder)"),
        ("model", "--log: expected a folder outside --out and its checkpoints, got model"),
        ("new/../model/logs", "--log: expected a folder outside --out and its checkpoints, got new/../model/logs"),
        ("model.checkpoint/logs", "--log: expected a folder outside --out and its checkpoints, got "
                                  "model.checkpoint/logs"),
    ]:  # fmt: skip
        assert refused(capsys, *of_other(S2NET, log=place, pairs="none.tsv")) == message
    message = refused(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--log", "logs", *OPCA)
    assert message.startswith("--log: expected a method that uses it (s2net,")
    assert "none.tsv" in refused(capsys, *of_other(S2NET, pairs="none.tsv"))
    assert sorted(os.listdir()) == ["broken", "mine", "new", "pairs.tsv", "texts.txt"]
    assert (folder / "mine" / "log.csv").read_text() == "step,loss\n" and os.listdir("mine") == ["log.csv"]

    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(logs.csv.DictWriter, "writerow", full)
    assert refused(capsys, *S2NET) == "logs: No space left on device"
