from __future__ import annotations

import subprocess
import sys
from types import ModuleType

import pytest

import jaxsim
from jaxsim import cli


@pytest.fixture
def program(monkeypatch):
    """Puts a stand-in for `jaxsim.cli.demo`, whose `run` does what the test says."""

    def install(run):
        module = ModuleType("jaxsim.cli.demo")
        module.run = run
        monkeypatch.setitem(sys.modules, "jaxsim.cli.demo", module)
        monkeypatch.setattr(jaxsim.cli, "demo", module, raising=False)

    return install


def fail_with(error):
    def run(out, **_):
        raise error

    return run


def test_demo_hands_its_options_on_and_prints_rows(program, capsys, tmp_path):
    seen = {}

    def run(out, **options):
        seen.update(options, out=out)
        return {"row": {"opca": {"mrr": 0.75, "seconds": 1}, "lsa": {"mrr": 0.5}}, "record": out / "x.json"}

    program(run)
    assert cli.main(["demo", "--out", str(tmp_path), "--k", "7", "--max-iter", "3", "--seed", "5"]) == 0
    assert seen == {"out": tmp_path, "k": 7, "max_iter": 3, "seed": 5}
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["row", "mrr", "seconds"]
    assert lines[1].split() == ["opca", "0.7500", "1"]
    assert lines[2].split() == ["lsa", "0.5000"]
    assert lines[3] == f"record: {tmp_path / 'x.json'}"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["demo", "--k", "0"], "--k"),
        (["demo", "--k", "many"], "--k"),
        (["demo", "--max-iter", "0"], "--max-iter"),
        (["demo", "--colour", "red"], "--colour"),
        (["report", "--model", "nowhere", "--pairs", "x", "--out", "y"], "nowhere"),
        (["data", "wikipedia"], "wikipedia"),
        (["data", "mdn", "--root", "nowhere"], "nowhere"),
        (["fly"], "fly"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, named, capsys):
    assert cli.main(arguments) == 2
    message = capsys.readouterr().err
    assert named in message
    assert message.count("\n") == 1
    assert message.startswith("jaxsim: ")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("k: expected at most 5,\n got 9"), "jaxsim: --k: expected at most 5, got 9\n"),
        (PermissionError(13, "Permission denied", "/out"), "jaxsim: /out: Permission denied\n"),
        (FloatingPointError("loss: expected a finite number at step 3, got nan"), "jaxsim: loss: expected a finite"),
        (ImportError("pip install 'jaxsim-text[ja]'"), "jaxsim: pip install 'jaxsim-text[ja]'\n"),
    ],
)
def test_errors_of_the_input_are_one_line(error, line, program, capsys):
    program(fail_with(error))
    assert cli.main(["demo"]) == 2
    assert capsys.readouterr().err.startswith(line)


def test_debug_shows_the_error_itself(program):
    program(fail_with(ValueError("k: expected less")))
    for words in (["--debug", "demo"], ["demo", "--debug"]):
        with pytest.raises(ValueError, match="k: expected less"):
            cli.main(words)


def test_a_fault_of_ours_keeps_its_traceback(program):
    program(fail_with(TypeError("a fault")))
    with pytest.raises(TypeError, match="a fault"):
        cli.main(["demo"])


def test_interrupt_has_its_own_status(program, capsys):
    program(fail_with(KeyboardInterrupt()))
    assert cli.main(["demo"]) == cli.INTERRUPTED == 2
    assert capsys.readouterr().err == "jaxsim: interrupted\n"


def test_version_and_help(capsys):
    assert cli.main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == jaxsim.__version__
    assert cli.main([]) == 0
    assert {"demo", "report", "data"} <= set(capsys.readouterr().out.split())


def test_data_lists_every_corpus(capsys, monkeypatch, tmp_path):
    from jaxsim.data import catalogue

    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    assert cli.main(["data"]) == 0
    state = {line.split()[0]: line.split()[1] for line in capsys.readouterr().out.splitlines()}
    assert set(state) == set(catalogue.CORPORA)
    assert state["docstrings"] == "installed"
    assert state["mdn"] == "missing"
    for file in catalogue.get("mdn").files:
        (tmp_path / "mdn").mkdir(exist_ok=True)
        (tmp_path / "mdn" / file).write_text("not the corpus")
    assert cli.main(["data", "--root", str(tmp_path)]) == 0
    assert "mdn                    present" in capsys.readouterr().out
    assert cli.main(["data", "mdn", "--root", str(tmp_path)]) == 2
    assert "SHA-256" in capsys.readouterr().err


def test_module_runs_and_a_bare_import_is_light():
    done = subprocess.run([sys.executable, "-m", "jaxsim", "demo", "--k", "x"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    code = "import sys, jaxsim.cli; sys.exit(bool({'jax', 'scipy', 'matplotlib'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


def test_a_model_is_used_without_what_only_training_and_pictures_need():
    code = "import sys; from jaxsim.model import Model; Model.load; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"jaxopt", "optax", "flax", "matplotlib", "scipy.optimize"} & set(done.stdout.split())
