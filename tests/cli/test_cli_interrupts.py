"""Training that is killed or stopped and goes on, Ctrl-C in every command, and pipes that close."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import filelock
import pytest
from command_line import OPCA, interrupting, of_other, refused, run

import jaxsim
from jaxsim import cli
from jaxsim.methods import opca, s2net
from jaxsim.model import Model
from jaxsim.optim import checkpoints

S2NET = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dim", "4", "--dev", "0", "--max-iter", "33"]
KILLED = """
import os, signal, sys
from jaxsim.optim import checkpoints
from jaxsim import cli
save, saved = checkpoints.save, []
def stop(*state, **options):
    save(*state, **options)
    saved.append(1)
    if len(saved) == 3:  # the start, then two checkpoints
        os.kill(os.getpid(), signal.SIGKILL)
checkpoints.save = stop
cli.main(sys.argv[1:])
"""


@pytest.mark.programs
def test_kill_9_in_the_middle_leaves_the_older_model_and_resume_goes_on(folder, capsys, monkeypatch):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    older = {path.name: path.read_bytes() for path in (folder / "model").iterdir()}
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}  # as in this process, so that its checkpoint fits
    assert subprocess.run([sys.executable, "-c", KILLED, *S2NET], env=environment).returncode == -9
    assert {path.name: path.read_bytes() for path in (folder / "model").iterdir()} == older
    assert sorted(os.listdir("model.checkpoint")) == [
        "checkpoint.before.safetensors", "checkpoint.lock", "checkpoint.safetensors", "checkpoint.settings.json",
        "checkpoint.start"]
    message = refused(capsys, *S2NET, "--resume", "--weighting", "tf")
    assert "checkpoint: expected a checkpoint of the same data, start and settings" in message
    load, resumed = checkpoints.load, []

    def spy(*given, **options):
        result = load(*given, **options)
        resumed.append(result[1].get("history", [{"step": "start"}])[-1]["step"])
        return result

    monkeypatch.setattr(checkpoints, "load", spy)
    capsys.readouterr()
    assert cli.main([*S2NET, "--resume"]) == 0
    assert "model.checkpoint: continuing from it" in capsys.readouterr().err
    assert resumed == ["start", 20]
    assert Model.load("model").training["fit"]["steps"] == 33 and Model.load("model").method == "s2net"
    assert sorted(os.listdir()) == ["model", "pairs.tsv", "texts.txt"]


def test_ctrl_c_before_the_first_iteration_keeps_the_start(folder, capsys, monkeypatch):
    fit = s2net.fit

    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(s2net, "fit", interrupted)
    words = [*S2NET, "--max-iter", "2"]
    assert cli.main(words) == cli.INTERRUPTED
    assert "model.checkpoint: stopped here; the same command with --resume goes on" in capsys.readouterr().err
    monkeypatch.setattr(s2net, "fit", fit)
    monkeypatch.setattr(opca, "fit", None)  # would be called without the start that was kept
    assert cli.main([*words, "--resume"]) == 0
    assert "model.checkpoint: continuing from it" in capsys.readouterr().err and not os.path.exists("model.checkpoint")


def test_ctrl_c_after_a_choice_says_how_to_keep_it(folder, capsys, monkeypatch):
    """Of a closed form too, which keeps nothing else."""
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("jaxsim.train.budget.search", lambda _, settings, **__: (replace(settings, method="opca"), []))
    words = [*S2NET[:7], "--tune", "--budget", "9s"]
    with monkeypatch.context() as patched:
        patched.setattr(Model, "save", interrupted)
        assert cli.main(words) == cli.INTERRUPTED
    assert "model.checkpoint: stopped here; the same command with --resume goes on" in capsys.readouterr().err
    assert cli.main([*words, "--resume"]) == 0
    assert "chosen before the interruption" in capsys.readouterr().err and not os.path.exists("model.checkpoint")


@pytest.mark.parametrize("where", ["jaxsim.methods.opca.fit", "jaxsim.optim.checkpoints.prepare",
                                   "jaxsim.cli.train_folder.begin"])
def test_ctrl_c_before_there_is_a_state_leaves_no_folder_and_says_nothing_of_resume(where, folder, capsys, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    assert cli.main(S2NET) == cli.INTERRUPTED
    assert "--resume" not in capsys.readouterr().err and sorted(os.listdir()) == ["pairs.tsv", "texts.txt"]


def test_one_training_at_a_time_writes_a_folder(folder, capsys):
    os.mkdir("model.checkpoint")
    (folder / "model.checkpoint" / "checkpoint.safetensors").write_bytes(b"state")
    with filelock.FileLock("model.checkpoint/checkpoint.lock"):
        for words in (S2NET, [*S2NET, "--resume"], [*S2NET[:5], *OPCA]):  # closed forms write the same model
            message = refused(capsys, *words)
            assert message == ("model.checkpoint: expected no other training in this folder, got one that is "
                               "running (give another --out)")  # fmt: skip
        assert (folder / "model.checkpoint" / "checkpoint.safetensors").read_bytes() == b"state"
        (folder / "blank.tsv").write_text("!\t?\n-\t.\n")
        assert "--pairs: expected texts" in refused(capsys, *of_other(S2NET, out="other", pairs="blank.tsv"))
    assert not os.path.exists("other.checkpoint")
    assert cli.main(S2NET) == 0 and not os.path.exists("model.checkpoint")


def test_a_closed_form_deletes_what_another_method_left_to_go_on_from(folder, capsys):
    os.mkdir("model.checkpoint")
    (folder / "model.checkpoint" / "checkpoint.safetensors").write_bytes(b"state")
    assert cli.main(["train", "--pairs", "pairs.tsv", "--out", "model", *OPCA]) == 0
    assert "model.checkpoint: deleted, starting anew\n" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["model", "pairs.tsv", "texts.txt"]


@pytest.mark.programs
@pytest.mark.parametrize(("method", "most"), [("ssi-sym", "6"), ("s2net-2", "33")])
def test_kill_9_costs_no_bit_of_a_model_with_two_sides(method, most, folder, capsys):
    words = ["train", "--pairs", "pairs.tsv", "--method", method, "--dim", "4", "--dev", "0.2", "--max-iter", most]
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}
    stopped = [*words, "--out", "model"]
    assert subprocess.run([sys.executable, "-c", KILLED, *stopped], env=environment).returncode == -9
    assert not os.path.exists("model") and os.path.exists("model.checkpoint/checkpoint.settings.json")
    other = "ssi" if method == "ssi-sym" else "s2net"
    message = refused(capsys, *stopped, "--method", other, "--resume")
    assert message.startswith(f"model.checkpoint: expected a checkpoint of --method {other}")
    assert cli.main([*stopped, "--resume"]) == 0
    assert "model.checkpoint: continuing from it" in capsys.readouterr().err
    run(capsys, *words, "--out", "whole")
    resumed, whole = ((folder / name / "model.safetensors").read_bytes() for name in ("model", "whole"))
    assert resumed == whole and not os.path.exists("model.checkpoint")


def test_ctrl_c_says_how_to_go_on_and_without_resume_training_starts_anew(folder, capsys, monkeypatch):
    interrupting(monkeypatch, 2)  # at the first checkpoint after the start
    assert cli.main(S2NET) == cli.INTERRUPTED
    err = capsys.readouterr().err
    assert "model.checkpoint: stopped here; the same command with --resume goes on" in err
    assert err.splitlines()[-1].startswith("jaxsim: interrupted")
    assert not os.path.exists("model")
    assert "none.tsv" in refused(capsys, *of_other(S2NET, pairs="none.tsv")) and os.path.exists("model.checkpoint")
    assert cli.main([*S2NET, "--batch-size", "0", "--max-iter", "2"]) == 0
    assert "model.checkpoint: deleted, starting anew" in capsys.readouterr().err
    assert sorted(os.listdir()) == ["model", "pairs.tsv", "texts.txt"]
    os.mkdir("model.checkpoint")
    (folder / "model.checkpoint" / "thesis.txt").write_text("years of work")
    assert "model.checkpoint: expected a folder of checkpoints, got one with ['thesis.txt']" in refused(capsys, *S2NET)


@pytest.mark.parametrize(("where", "words", "kept"), [
    ("jaxsim.train.training.train", ["train", "--pairs", "pairs.tsv", "--out", "out", *OPCA],
     "nothing was written to out"),
    ("jaxsim.model.model.Model.encode_document", ["encode", "--model", "MODEL", "--input", "texts.txt"], ""),
    ("jaxsim.model.model.Model.encode_document", ["encode", "--model", "MODEL", "--input", "texts.txt",
                                                 "--output", "x.npy"],
     "nothing was written to x.npy"),
    ("jaxsim.model.model.Model.pair_similarity", ["similarity", "--model", "MODEL", "a", "b"], ""),
    ("jaxsim.model.ranker.rank", ["search", "--model", "MODEL", "--documents", "texts.txt", "--query", "x"], ""),
    ("jaxsim.model.index.encode", ["search", "--model", "MODEL", "--documents", "texts.txt", "--query", "x",
                                   "--index", "i"],
     "nothing was written to i"),
    ("jaxsim.evaluate.mates.per_query", ["evaluate", "--model", "MODEL", "--pairs", "pairs.tsv"], ""),
    ("jaxsim.evaluate.trec.run_lines", ["evaluate", "--model", "MODEL", "--queries", "texts.tsv", "--documents",
                                         "texts.tsv",
                               "--qrels", "qrels", "--run-out", "run"], "nothing was written to run"),
    ("jaxsim.io.write_bytes", ["evaluate", "--model", "MODEL", "--pairs", "pairs.tsv", "--figures", "."],
     "every file in . is whole; the same command draws all of them"),
    ("jaxsim.io.write_bytes", ["report", "--model", "MODEL", "--pairs", "pairs.tsv", "--out", "."],
     "every file in . is whole; the same command draws all of them"),
    ("jaxsim.io.os.fsync", ["export", "--model", "MODEL", "--to", "word2vec", "--out", "v"],
     "nothing was written to v"),
    ("jaxsim.data.fetching.fetch", ["data", "europarl_release", "--fetch", "--root", "."],
     "files that are there are whole; the same command fetches the others"),
    ("jaxsim.train.estimate.measure", ["estimate", "--pairs", "9"], ""),
    ("jaxsim.cli.demo.run", ["demo"], ""),
])  # fmt: skip
def test_ctrl_c_is_one_line_and_status_2(where, words, kept, trained, folder, capsys, monkeypatch):
    (folder / "texts.tsv").write_text("1\tsparse matrix\n2\trandom seed\n")
    (folder / "qrels").write_text("1 0 1 1\n")
    before = sorted(os.listdir())

    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(where, stop)
    capsys.readouterr()
    assert cli.main([trained if word == "MODEL" else word for word in words]) == cli.INTERRUPTED == 2
    out, err = capsys.readouterr()
    assert not out and "Traceback" not in err and sorted(os.listdir()) == before
    line = err.splitlines()[-1]
    assert line == "jaxsim: interrupted" + f"; {kept}" * bool(kept)


STOPPED = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever the shell of the tests does with it
from jaxsim import __main__
__main__.run()
"""


BESIDE = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell has it for what it runs beside
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # nohup has it ignored
from jaxsim import __main__
__main__.run()
"""


@pytest.mark.programs
@pytest.mark.parametrize("number, status, program", [
    (signal.SIGINT, 2, STOPPED), (signal.SIGTERM, 143, STOPPED), (signal.SIGTERM, 143, BESIDE),
    (signal.SIGHUP, 129, BESIDE)])
def test_a_signal_while_a_command_waits_leaves_no_half_of_a_file(trained, folder, number, status, program):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(jaxsim.__file__))}
    words = [sys.executable, "-c", program, "encode", "--model", trained, "--output", "x.jsonl"]
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        process.stdin.write("sparse matrix\n" * 1100)  # a batch is written, the next one is not whole
        process.stdin.flush()
        begun = time.monotonic()
        while not list(folder.glob(".x.jsonl.*.part")) and time.monotonic() < begun + 120:
            time.sleep(0.05)
        process.send_signal(number)
        assert process.wait(60) == status
        assert process.stderr.read() == "jaxsim: interrupted; nothing was written to x.jsonl\n"
    assert sorted(os.listdir()) == ["pairs.tsv", "texts.txt"]


LOST = """
import gc, signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background has it ignored
from jaxsim import __main__
from jaxsim.cli import demo
def stop(*_, **__):
    gc.callbacks.append(dropped)
    gc.collect()
    time.sleep(20)
def dropped(*_):
    gc.callbacks.remove(dropped)
    raise KeyboardInterrupt  # Python cannot hand on what is raised here
def compiled(*_, **__):
    exec("raise KeyboardInterrupt")  # Python would end with the status of SIGINT
demo.run = {"stop": stop, "compiled": compiled}[sys.argv.pop()]
__main__.run()
"""


@pytest.mark.programs
@pytest.mark.parametrize("where", ["stop", "compiled"])
def test_ctrl_c_is_neither_lost_in_the_garbage_collector_nor_another_status(where, folder):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(jaxsim.__file__))}
    (folder / "lost.py").write_text(LOST)
    done = subprocess.run([sys.executable, "-m", "lost", "demo", where], env=environment, capture_output=True,
                          text=True, timeout=120, cwd=folder)  # fmt: skip
    assert (done.returncode, done.stderr) == (2, "jaxsim: interrupted\n")


LOADING = """
import os, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
awaited = sys.argv.pop(1)
class Finder:
    def find_spec(name, path=None, target=None):
        if name == awaited:
            sys.meta_path.remove(Finder)
            try:
                os.kill(os.getpid(), signal.SIGINT)
                for _ in range(1000):
                    pass
            except KeyboardInterrupt:
                raise ImportError("initialization failed")  # as extension modules say
sys.meta_path.insert(0, Finder)
from jaxsim import __main__
__main__.run()
"""


@pytest.mark.parametrize("module", ["typer", "numpy", "jax", "jaxsim.data.streams"])
def test_ctrl_c_while_a_module_is_loaded_waits_until_it_is_and_ends_a_wait_for_input(module, trained, folder):
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(jaxsim.__file__))}
    words = [sys.executable, "-c", LOADING, module, "encode", "--model", trained]
    with subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.wait(60) == 2  # nothing is written to its standard input, which stays open
        assert process.stderr.read() == "jaxsim: interrupted\n"


def test_little_is_loaded_before_ctrl_c_is_taken_over_and_no_jax_to_help():
    """Without `site`, which loads what it likes; the libraries' folders are named instead."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([os.path.dirname(os.path.dirname(jaxsim.__file__)),
                                                                *filter(None, sys.path)])}  # fmt: skip

    def loaded(program, *words):
        done = subprocess.run([sys.executable, "-S", "-c", f"import sys; {program}; print(*sys.modules)", *words],
                              env=environment, capture_output=True, text=True, check=True)  # fmt: skip
        return set(done.stdout.splitlines()[-1].split())

    first = loaded("import jaxsim.__main__") - loaded("pass")
    assert "jaxsim.__main__" in first and len(first) < 15 and not first & {"signal", "enum", "importlib", "typer", "re"}
    for words in (["--help"], ["--version"], ["encode", "--help"], ["train", "--help"]):
        assert loaded("from jaxsim import cli; cli.main()", *words) & {"jax", "numpy", "scipy", "typer"} == {"typer"}


def test_errors_that_libraries_make_of_ctrl_c_are_ctrl_c(folder, capsys, monkeypatch):
    def stop(*_, **__):
        try:
            raise KeyboardInterrupt
        except KeyboardInterrupt as error:
            raise RuntimeError("INTERNAL: a callback failed") from error

    monkeypatch.setattr("jaxsim.cli.demo.run", stop)
    assert cli.main(["demo"]) == cli.INTERRUPTED
    assert capsys.readouterr().err == "jaxsim: interrupted\n"
    with pytest.raises(RuntimeError, match="a callback failed"):
        cli.main(["--debug", "demo"])


def test_pipes_in_a_shell(trained, folder):
    program = f"{sys.executable} -m jaxsim"
    script = (
        f"set -o pipefail; seq 100000 | {program} encode --model {trained} | head -n 1; echo ${{PIPESTATUS[1]}}\n"
        f"cut -f 2 pairs.tsv | {program} encode --model {trained} | wc -l\n"
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(
        os.path.dirname(os.path.dirname(jaxsim.__file__)))})  # fmt: skip
    first, status, number = done.stdout.splitlines()
    assert len(json.loads(first)) == 5 and status == str(cli.CLOSED) and number.strip() == "40"
    assert done.stderr == ""


@pytest.mark.programs
def test_bad_input_found_late_by_workers_is_one_line(folder, capsys):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    (folder / "late.txt").write_bytes(b"a known word\n" * 30_000 + b"canci\xf3n\n")
    done = subprocess.run([sys.executable, "-m", "jaxsim", "encode", "--model", "model", "--input", "late.txt",
                           "--output", "late.npy", "--workers", "2"], capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert done.stderr.startswith("jaxsim: ") and not (folder / "late.npy").exists()
