"""The demo on a few hundred docstrings: it writes a record and a picture and tells the same."""

import json
import os
import signal
import subprocess
import sys
import warnings
from pathlib import Path

import program_until_stopped
import pytest
from matplotlib.figure import Figure

from jaxsim.cli import demo
from jaxsim.optim import Fit


def stopped(out, sent, at):
    """The demo in another process, which a signal stops in the middle."""
    command = [sys.executable, program_until_stopped.__file__, int(sent), at, "demo", "--out", out, "--k", 4,
               "--max-iter", 2]
    return subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, check=False)


def run(out, **settings):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what importing the documented packages warns of is theirs
        return demo.run(out, **settings)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    out = tmp_path_factory.mktemp("demo")
    return out, run(out, k=30, max_iter=6, num_pairs=500)


@pytest.mark.programs
def test_a_kill_while_the_record_is_written_leaves_no_half_of_it(tmp_path):
    result = stopped(tmp_path, signal.SIGKILL, r"s2net\.json$")
    assert result.returncode == -signal.SIGKILL, result.stderr
    left = {path.name for path in tmp_path.rglob("*") if path.is_file()}
    assert "demo.png" in left and "s2net.json" not in left
    facts = run(tmp_path, k=5, max_iter=2, num_pairs=300)  # in the same folder
    assert json.loads(Path(facts["record"]).read_text())["config"]["k"] == 5


@pytest.mark.programs
@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc to see handlers of signals")
def test_no_package_that_is_documented_takes_sigterm_over():
    program = ("from jaxsim.data import docstrings; docstrings.load(); "
               "print([line.split()[1] for line in open('/proc/self/status') if line.startswith('SigCgt')][0])")
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=240, check=True)
    assert not int(done.stdout, 16) >> (signal.SIGTERM - 1) & 1


@pytest.mark.programs
def test_ctrl_c_leaves_nothing_and_one_line(tmp_path):
    result = stopped(tmp_path / "out", signal.SIGINT, "fitting lsa")
    assert result.returncode == 2 and "Traceback" not in result.stderr
    assert result.stderr.splitlines()[-1] == "jaxsim: interrupted"
    assert not any((tmp_path / "out").iterdir())


@pytest.mark.programs
def test_the_record_says_what_was_shown(shown):
    out, facts = shown
    record = json.loads(Path(facts["record"]).read_text())
    table = facts["test mates found"]
    assert record["metrics"]["mrr"] == pytest.approx(table["s2net"]["mrr"])
    assert set(table) == {"tfidf", "log-tfidf", "lsa", "cl-lsi", "cca", "opca", "s2net"}
    assert json.loads((out / "s2net.json").read_text())["config"]["k"] == 30


@pytest.mark.programs
def test_training_lowers_the_loss_and_dev_chose_the_best(shown):
    _, facts = shown
    start, best = (float(part.split()[0]) for part in facts["training loss"].split(", "))
    assert best <= start
    assert facts["dev mrr"].count("0.") == 2


def test_the_axes_of_the_picture_have_names_and_units(monkeypatch, tmp_path):
    seen = []
    save = Figure.savefig
    monkeypatch.setattr(Figure, "savefig", lambda self, *a, **b: (seen.append(self), save(self, *a, **b)))
    history = [{"step": step, "loss": 0.5 / (step + 1), "validation": 0.1 * step} for step in range(3)]
    demo._picture(tmp_path / "x.png", Fit(None, 0.1, 0.0, False, 2, 3, history), {"opca": {"mrr": 0.4}}, 0.5)
    losses, bars, dev = seen[0].axes
    assert (losses.get_xlabel(), losses.get_ylabel()) == ("L-BFGS iteration", "training loss (nats)")
    assert (dev.get_ylabel(), bars.get_xlabel()) == ("dev mean reciprocal rank", "test mean reciprocal rank")


@pytest.mark.programs
def test_the_picture_is_a_png(shown):
    out, _ = shown
    content = (out / "demo.png").read_bytes()
    assert content.startswith(b"\x89PNG") and len(content) > 5_000
