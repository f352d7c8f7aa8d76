"""The notebooks: stored clean, run from the first cell to the last at a small size, and what they then show."""

from __future__ import annotations

import ast
import base64
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import jax
import nbformat
import numpy as np
import pytest
from light import as_users_have_it
from matplotlib import image

from experiments.kit import records
from jaxsim.pictures import figures

ROOT = Path(__file__).parent.parent
FOLDER = ROOT / "notebooks"
NAMES = ("quickstart", "reproduce_table")
EXECUTE = """
import sys

import nbformat
from nbclient import NotebookClient

notebook = nbformat.read(sys.argv[1], as_version=nbformat.NO_CONVERT)
NotebookClient(notebook, timeout=900, kernel_name="python3").execute()
nbformat.write(notebook, sys.argv[2])
"""


def read(name: str) -> nbformat.NotebookNode:
    return nbformat.read(FOLDER / f"{name}.ipynb", as_version=nbformat.NO_CONVERT)


def code(notebook: nbformat.NotebookNode) -> dict[str, nbformat.NotebookNode]:
    """Code cells by identifier."""
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def execute(name: str, folder: Path) -> dict[str, nbformat.NotebookNode]:
    """Runs a copy in another process, by the Python of this one, and returns its code cells."""
    kernel = folder / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    # A kernel of that name in the home folder might belong to another environment; this path comes before it.
    launch = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (kernel / "kernel.json").write_text(json.dumps({"argv": launch, "display_name": "tests", "language": "python"}))
    work = folder / "work"
    work.mkdir()
    shutil.copy(FOLDER / f"{name}.ipynb", work)
    environment = as_users_have_it()
    for variable in ("MPLBACKEND", "JAX_ENABLE_X64"):
        environment.pop(variable, None)
    environment |= {
        "JAXSIM_NOTEBOOK_QUICK": "1", "PYTHONPATH": str(ROOT), "JUPYTER_PATH": str(folder / "jupyter"),
        "JUPYTER_CONFIG_DIR": str(folder / "config"), "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
        "JUPYTER_PLATFORM_DIRS": "1", "IPYTHONDIR": str(folder / "ipython"),
    }  # fmt: skip
    command = [sys.executable, "-c", EXECUTE, f"{name}.ipynb", "done.ipynb"]
    done = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True, timeout=1800)
    assert done.returncode == 0, done.stderr
    cells = code(nbformat.read(work / "done.ipynb", as_version=nbformat.NO_CONVERT))
    assert all(cell.execution_count for cell in cells.values())
    assert not [out for cell in cells.values() for out in cell.outputs if out.output_type == "error"]
    return cells


def printed(cell: nbformat.NotebookNode) -> str:
    """What a cell wrote to standard output."""
    return "".join(out.text for out in cell.outputs if out.output_type == "stream" and out.name == "stdout")


def displayed(cell: nbformat.NotebookNode, kind: str) -> list[str]:
    """What a cell displayed in one format."""
    return [out.data[kind] for out in cell.outputs if out.output_type == "display_data" and kind in out.data]


# A Python that has no jaxsim until pip installs it; commands are printed, not run, and git "clones" this checkout.
BARE = """
import json, os, subprocess, sys
from unittest.mock import MagicMock

source, root, colab = sys.argv[1:]
sys.modules["jaxsim"] = None
if colab == "True":
    sys.modules["google.colab"] = MagicMock()  # jax imports from it

def run(command, check):
    assert check
    print(json.dumps(command[1:] if command[0] == sys.executable else command))
    if command[0] == "git":
        os.symlink(root, command[-1])
    else:
        sys.modules.pop("jaxsim", None)

subprocess.run = run
exec(source)
print(globals().get("CHECKOUT"))
"""


def set_up(name: str, folder: Path, *, colab: bool, address: str = "") -> subprocess.CompletedProcess:
    """Runs the first code cell where jaxsim is not installed."""
    cell = next(iter(code(read(name)).values()))
    assert cell.source.startswith('REPOSITORY = ""')
    source = cell.source.replace('""', repr(address), 1)
    environment = {**os.environ, "PYTHONPATH": str(ROOT) if name == "quickstart" else ""}
    return subprocess.run([sys.executable, "-c", BARE, source, str(ROOT), str(colab)], cwd=folder, env=environment,
                          capture_output=True, text=True, timeout=240)  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_stored_without_outputs_and_always_in_the_same_form(name):
    notebook, text = read(name), (FOLDER / f"{name}.ipynb").read_text(encoding="utf-8")
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    nbformat.validate(notebook)
    assert all(cell.outputs == [] and cell.execution_count is None for cell in code(notebook).values())
    assert len({cell.id for cell in notebook.cells}) == len(notebook.cells)
    assert not any(cell.metadata for cell in notebook.cells) and notebook.metadata.kernelspec.name == "python3"
    assert text == nbformat.writes(notebook) + ("" if nbformat.writes(notebook).endswith("\n") else "\n")


@pytest.mark.parametrize("name", NAMES)
def test_functions_in_cells_are_short(name):
    for cell in code(read(name)).values():
        functions = [node for node in ast.walk(ast.parse(cell.source)) if isinstance(node, ast.FunctionDef)]
        assert all(node.end_lineno - node.lineno < 10 for node in functions), cell.id


def test_every_notebook_is_tested():
    assert sorted(path.stem for path in FOLDER.glob("*.ipynb")) == sorted(NAMES)


@pytest.mark.parametrize(("colab", "address"), [(True, ""), (False, ""), (False, "https://host/jaxsim.git")])
@pytest.mark.parametrize("name", NAMES)
def test_without_jaxsim_the_first_cell_stops_and_says_what_to_do(tmp_path, name, colab, address):
    result = set_up(name, tmp_path, colab=colab, address=address)
    assert result.returncode == 1 and not result.stdout
    facts = result.stderr.strip().splitlines()[-1]
    assert "jaxsim-text" in facts and "On Colab: set REPOSITORY at the top of this cell" in facts
    assert f"run `pip install -e .` in a checkout with the Python of this kernel, {sys.executable}" in facts


def test_quickstart_installs_itself_on_colab(tmp_path):
    result = set_up("quickstart", tmp_path, colab=True, address="https://host/jaxsim.git")
    assert result.returncode == 0, result.stderr
    install, versions, _ = result.stdout.splitlines()
    assert json.loads(install)[:3] == ["-m", "pip", "install"]
    assert json.loads(install)[-1] == "jaxsim-text @ git+https://host/jaxsim.git"
    assert f"jax {jax.__version__}, devices: [" in versions


def test_reproduce_table_clones_the_checkout_on_colab(tmp_path):
    result = set_up("reproduce_table", tmp_path, colab=True, address="https://host/jaxsim.git")
    assert result.returncode == 0, result.stderr
    clone, install, versions, checkout = result.stdout.splitlines()
    assert json.loads(clone) == ["git", "clone", "--quiet", "https://host/jaxsim.git", "jaxsim-checkout"]
    assert json.loads(install)[-2:] == ["-e", "jaxsim-checkout"]
    assert f"jax {jax.__version__}, devices: [" in versions and Path(checkout) == ROOT


def test_the_settings_list_the_tables_of_both_scripts():
    from experiments.mates import platt2010, yih2011

    comment = re.sub(r"\s*\n# ", " ", code(read("reproduce_table"))["settings"].source)
    comment = comment[comment.index("Both scripts") : comment.index("TABLE =")]
    named = set(re.findall(r"docstrings|en-[a-z0-9-]+", comment))
    assert named == {*platt2010.EXPERIMENT.tables, *yih2011.EXPERIMENT.tables} - {"paper"}


def test_cells_on_records_read_those_of_every_table(capsys):
    cells = code(read("reproduce_table"))
    folder, shown = ROOT / "experiments" / "results" / "yih2011_mates" / "en-es-halves", []
    ours = {row: records.read(folder / f"{row}.json") for row in ("opca", "hdlr")}  # one has a curve over pairs too
    assert not all("k" in point for point in ours["opca"]["curve"])
    ours["short"] = {**ours["opca"], "seeds": [0], "notes": ["Made up."], "curve": []}
    given = {"ours": ours, "committed": {}, "TABLE": "en-es-halves", "PRESET": "full", "display": shown.append}
    exec(cells["status"].source, given)
    assert re.search(r"short +.*fewer-than-five-seeds.*, Made up\.$", capsys.readouterr().out, re.MULTILINE)
    exec(cells["curves"].source, given)
    assert len(shown) == 1 and figures.digest(shown[0].data.encode())


@pytest.mark.pages
def test_quickstart(tmp_path):
    cells = execute("quickstart", tmp_path)
    assert f"jax {jax.__version__}, devices: [" in printed(cells["setup"])
    lines = printed(cells["table"]).splitlines()
    assert re.fullmatch(r"\d+ test pairs, 30 dimensions", lines[0])
    scores = {name: [float(value) for value in values] for name, *values in map(str.split, lines[3:])}
    assert list(scores) == ["chance", "log-tfidf", "lsa", "opca", "s2net"]
    assert all(0 <= accuracy <= mrr <= 1 for accuracy, mrr in scores.values())
    assert min(scores[name][1] for name in ("log-tfidf", "lsa", "opca", "s2net")) > 3 * scores["chance"][1]
    result = re.findall(r"training loss ([\d.]+), dev MRR ([\d.]+)", printed(cells["train"]))
    (start, best, last), (start_dev, best_dev, last_dev) = (map(float, values) for values in zip(*result, strict=True))
    assert last < start and best <= start and best_dev == max(start_dev, best_dev, last_dev)
    for name in ("curves", "map"):
        (picture,) = displayed(cells[name], "image/png")
        pixels = image.imread(io.BytesIO(base64.b64decode(picture)))
        assert pixels[0, 0, 3] == 0 and (pixels[..., 3] > 0).mean() > 0.005  # transparent, and something drawn
    assert printed(cells["neighbours"]).count("→ ") >= 2
    assert printed(cells["terms"]).count("after learning") >= 2
    assert "vectors: (2, 30)" in printed(cells["use"])
    assert (tmp_path / "work" / "runs" / "quickstart-model" / "config.json").is_file()
    own = printed(cells["own"])
    assert re.search(r"^[\d,]+ pairs learned and indexed in [\d.]+ s on \w+$", own, re.MULTILINE)
    assert len(own.split("searched: ")[1].splitlines()) == 4


@pytest.mark.pages
def test_reproduce_table(tmp_path):
    cells = execute("reproduce_table", tmp_path)
    (table,) = displayed(cells["table"], "text/markdown")
    head, _, *rows = ([cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines())
    assert head == ["method", "paper 000 Table 1", "committed", "this run (quick)"]
    rows = {name: cells for name, *cells in rows}
    assert rows["s2net"][0] == "0.7447 / 0.7973 (2000)"
    for row in ("s2net", "cplsa"):
        committed = records.read(ROOT / "experiments" / "results" / "yih2011_mates" / "docstrings" / f"{row}.json")
        mean = {key: committed["metrics"][key]["mean"] for key in ("accuracy", "mrr")}
        assert rows[row][1] == f"{mean['accuracy']:.4f} / {mean['mrr']:.4f} ({committed['config']['k']})"
    ran = {name: cells[2] for name, cells in rows.items() if cells[2] != "—"}
    assert set(ran) == {"s2net", "opca"}
    chance = np.mean(1 / np.arange(1, 100))
    assert all(float(cell.split()[2]) > 5 * chance for cell in ran.values())
    assert "not the same" in printed(cells["honest"]) and "nothing about the methods" in printed(cells["honest"])
    drawn = displayed(cells["curves"], "image/svg+xml")
    assert len(drawn) == 2 and all(figures.digest(svg.encode()) for svg in drawn)
    assert not list((ROOT / "notebooks").glob("runs"))
