"""The kit: choices on development data, cached fits, records made of rows, and the command line."""

from __future__ import annotations

import concurrent.futures
import json
import os
import pickle
import subprocess
import sys
import threading
import time
from dataclasses import dataclass

import jax
import numpy as np
import pytest
import scipy.sparse
from local_server import TWO

from experiments import kit
from experiments.kit import compare, environment, fits, records
from experiments.kit.choose import at_edge
from experiments.kit.run import with_corpora
from jaxsim import sparse
from jaxsim.data import MissingCorpus, catalogue
from jaxsim.methods import opca, s2net
from jaxsim.optim import closed_form

CALLS = []


def halves(x, *, k, validate=None, checkpoint=None):
    """A method of this test's own."""
    CALLS.append((k, checkpoint))
    return closed_form({"half": jax.numpy.asarray(x)[: len(x) // 2] * k, "k": k})


@pytest.fixture(autouse=True)
def no_calls():
    CALLS.clear()


@pytest.fixture
def cache(tmp_path):
    return kit.Fits(tmp_path / "cache", say=lambda line: None)


def test_the_best_option_is_chosen_with_all_that_was_tried():
    grid = [{"k": k, "noise": noise} for k in (5, 10, 20) for noise in (0.1, 1.0)]
    choice = kit.choose(grid, lambda k, noise: -abs(k - 10) - noise, by="mrr", split="dev")
    assert choice.best == {"k": 10, "noise": 0.1} and choice.score == -0.1
    assert choice.tried[0] == {"k": 5, "noise": 0.1, "mrr": -5.1, "split": "dev"} and len(choice.tried) == 6
    assert choice.at_edge == ("noise",)
    assert kit.choose(grid, lambda k, noise: k + noise, by="loss", lowest=True).best == {"k": 5, "noise": 0.1}


def test_the_edge_is_that_of_options_alike_in_all_else():
    grid = [{"noise": 1e-4, "unit": True}, {"noise": 1e-3, "unit": True}, {"noise": 0.1, "unit": False}]
    assert kit.choose(grid, lambda noise, unit: noise, by="dev").at_edge == ()  # the one value without unit length
    assert kit.choose(grid, lambda noise, unit: unit * noise, by="dev").at_edge == ("noise",)


def test_as_many_dimensions_as_the_data_have_are_no_edge():
    ks = kit.up_to_rank((2, 8, 32), 5)
    assert ks == [2, 5] and kit.up_to_rank((2, 5), 9) == [2, 5]
    grid = [{"k": k} for k in ks]
    assert kit.choose(grid, lambda k: k, by="dev", rank=5).at_edge == ()
    assert kit.choose(grid, lambda k: -k, by="dev", rank=5).at_edge == ("k",)  # the fewest
    assert kit.choose(grid, lambda k: k, by="dev").at_edge == ("k",)  # the rank is not known


def test_settings_chosen_one_after_another_have_edges_of_their_own():
    tried = [{"rate": 0.1, "loss": 2.0}, {"rate": 0.3, "loss": 1.0}, *({"b": b, "map": 0.1} for b in (1, 3, 10))]
    assert at_edge(tried, {"rate": 0.3, "b": 3}) == ("rate",)
    assert at_edge(tried, {"rate": 0.1, "b": 10}) == ("rate", "b")


def test_scores_that_are_no_numbers_are_never_best():
    scores = {1: np.nan, 2: 0.5, 3: None}
    choice = kit.choose([{"rate": rate} for rate in scores], lambda rate: scores[rate], by="l")
    assert choice.best == {"rate": 2} and [entry["l"] for entry in choice.tried][1:] == [0.5, None]
    with pytest.raises(ValueError, match="options: expected at least one with a score, got 1"):
        kit.choose([{"rate": 1}], lambda rate: None, by="loss")
    several = kit.choose([{"k": 1}, {"k": 2}], lambda k: {"map": k, "p@10": -k}, by="p@10")
    assert several.best == {"k": 1} and several.tried[1] == {"k": 2, "map": 2, "p@10": -2}


def test_a_climb_ends_where_neither_neighbour_is_better():
    scores = {(rate, b): -abs(np.log10(rate) + 3) - abs(np.log10(b) - 1) for rate in (1e-4, 1e-3, 1e-2, 0.1, 1.0, 10.0)
              for b in (1.0, 10.0, 100.0)}
    asked = []

    def score(rate, b, form):
        asked.append((rate, b))
        return None if rate == 1e-4 else scores.get((rate, b))

    choice = kit.climb({"rate": (0.01, 0.1), "b": (1.0, 10.0, 100.0), "form": (None,)}, score, by="map", split="dev")
    assert choice.best == {"rate": 1e-3, "b": 10.0, "form": None} and choice.score == max(scores.values())
    assert len(asked) == len(set(asked)) == len(choice.tried) and choice.at_edge == ()
    assert all(entry["split"] == "dev" for entry in choice.tried) and choice.tried[-1]["map"] < choice.score
    with pytest.raises(ValueError, match="expected an option with a score"):
        kit.climb({"rate": (0.1, 1.0)}, lambda rate: None, by="map")


def test_a_ladder_from_0_to_one_value_has_no_ratio_to_go_on_by():
    assert [entry["a"] for entry in kit.climb({"a": (0.0, 0.1)}, lambda a: a, by="map").tried] == [0.0, 0.1]
    assert kit.climb({"a": (0.0, 0.1, 0.2)}, lambda a: a, by="map").best == {"a": 2.0}



def test_a_fit_is_made_once_and_read_back_equal(cache):
    first = cache.fit(halves)(np.arange(4.0), k=2)
    again = kit.Fits(cache.folder).fit(halves)(np.arange(4.0), k=2)
    assert len(CALLS) == 1 and isinstance(again.params["half"], jax.Array)
    assert again.params["half"].tolist() == first.params["half"].tolist() == [0.0, 2.0] and again.converged is True
    cache.fit(halves)(np.arange(5.0), k=2)  # other data
    cache.fit(halves)(np.arange(4.0), k=3)  # other settings
    cache.fit(halves)(np.arange(4.0, dtype=np.float32), k=2)  # another type
    assert len(CALLS) == 4


def test_a_fit_of_a_library_method_is_the_method_s_own(cache, rng):
    views = [sparse.from_scipy(scipy.sparse.csr_matrix(rng.uniform(size=(9, 6)).round(1))) for _ in range(2)]
    kept = [cache.fit(opca)(views, k=2, noise=0.1).params.weights for _ in range(2)]
    direct = opca.fit(views, k=2, noise=0.1).params.weights
    assert all(np.array_equal(weights, direct) for weights in kept)
    assert 0 < cache.seconds <= cache.spent  # asked for twice, counted once
    assert cache.versions == {"projections.opca": opca.VERSION} and len(list(cache.folder.iterdir())) == 1


def test_a_higher_version_of_the_method_is_fitted_anew(cache, monkeypatch):
    cache.fit(halves)(np.ones(2), k=1)
    monkeypatch.setattr(sys.modules[__name__], "VERSION", 2, raising=False)
    cache.fit(halves)(np.ones(2), k=1)
    assert len(CALLS) == 2 and next(iter(cache.versions.values())) == 2


def test_functions_among_the_arguments_need_what_they_read(cache):
    with pytest.raises(ValueError, match=r"expected functions at the top of a module, got .*lambda.* \(give reads="):
        cache.fit(halves)(np.ones(2), k=1, validate=lambda params: 0.0)
    for reads in (np.zeros(1), np.zeros(1), np.ones(1)):
        cache.fit(halves, reads=reads)(np.ones(2), k=1, validate=lambda params: 0.0)
    assert len(CALLS) == 2
    cache.fit(halves)(np.ones(2), k=1, validate=max)
    with pytest.raises(ValueError, match="expected arrays, settings and named functions, got"):
        cache.fit(halves)(np.ones(2), k=1, validate=iter([]))
    cache.fit(halves, ignore=("validate",))(np.ones(2), k=1, validate=iter([]))
    assert len(CALLS) == 4


def test_a_method_that_goes_on_where_it_stopped_gets_a_folder(cache):
    cache.fit(halves, checkpoint=True)(np.ones(2), k=1)
    (_, folder), = CALLS
    assert folder.parent == cache.folder and not folder.exists()


def test_a_fit_cut_short_or_of_a_class_that_is_gone_is_made_again(cache):
    cache.fit(halves)(np.ones(2), k=1)
    path, = cache.folder.iterdir()
    whole = path.read_bytes()
    for content in (whole[:20], b"", whole.replace(b"Fit", b"Fat")):
        path.write_bytes(content)
        assert cache.fit(halves)(np.ones(2), k=1).params["k"] == 1
    assert len(CALLS) == 4 and len(path.read_bytes()) == len(whole)


def test_a_fit_with_one_damaged_number_is_made_again_and_one_of_before_digests_is_read(cache):
    cache.fit(halves)(np.arange(4.0), k=2)
    path, = cache.folder.iterdir()
    whole = path.read_bytes()
    at = len(whole) - 40
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
    assert cache.fit(halves)(np.arange(4.0), k=2).params["k"] == 2 and len(CALLS) == 2
    bare = whole.removeprefix(fits._MAGIC)[fits._DIGEST :]
    for content, calls in ((bare, 2), (pickle.dumps(7), 3), (pickle.dumps((None, 1.0)), 4)):
        path.write_bytes(content)
        assert cache.fit(halves)(np.arange(4.0), k=2).params["k"] == 2 and len(CALLS) == calls


def test_two_runs_that_want_one_fit_make_it_once(cache):
    begun, going = threading.Event(), threading.Event()

    def slow(x, *, k, checkpoint):
        begun.set()
        assert going.wait(60)
        return halves(x, k=k, checkpoint=checkpoint)

    said = []
    other = kit.Fits(cache.folder, say=said.append)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        one = pool.submit(cache.fit(slow, checkpoint=True), np.ones(2), k=1)
        assert begun.wait(60)
        two = pool.submit(other.fit(slow, checkpoint=True), np.ones(2), k=1)
        while not said:
            time.sleep(0.01)
        going.set()
        assert one.result().params["k"] == two.result().params["k"] == 1
    assert len(CALLS) == 1 and said[0].endswith("is being fitted by another run, which is waited for")
    assert [path.suffix for path in cache.folder.iterdir()] == [".fit"]


def test_a_run_with_arguments_of_its_own_says_what_to_type():
    described = environment.environment(["python", "-m", "experiments.mates.yih2011", "--out", os.path.abspath("runs")])
    assert described["command"] == "python -m experiments.mates.yih2011 --out runs"


def test_digests_tell_content_apart(rng):
    matrix = scipy.sparse.random_array((5, 4), density=0.5, rng=rng, format="csr")
    values = [matrix, sparse.from_scipy(matrix), matrix.toarray(), jax.random.key(0), jax.random.key(1), {"a": 1}, [1],
              (1,), 1, 1.0, True, None, "1", closed_form(np.ones(1)), s2net.fit, opca.fit, jax.numpy.tanh]  # fmt: skip
    result = [fits.digest(value) for value in values]
    assert len(set(result)) == len(result) and result == [fits.digest(value) for value in values]


@dataclass(frozen=True)
class Settings:
    size: int = 3


def load(name, settings, folder=None):
    if name == "lost":
        raise MissingCorpus("made up: expected files, got none")
    return kit.Data(np.arange(settings.size), name="made up", sha256="ab" * 32, differs="synthetic: counted",
                    counts={"queries": settings.size}, paper="none")


def two_seeds(table):
    fit = table.fit(halves)(table.data, k=2)
    ranks = [{"mrr": np.full(4, 0.5)}, {"mrr": np.array([1.0, 1.0, 0.5, 0.5])}]
    return kit.Row({"k": 2}, ranks, dev={"mrr": 0.5}, fit=fit, seeds=(0, 1), metrics={"auc": [0.25, 0.75]},
                   by_group=[{"a": {"mrr": 0.5}}, {"a": {"mrr": 1.0}}], notes=["Made up."])


def absent(table):
    return None


def alone(table):
    raise AssertionError("no test runs this row")


ROWS = {"two": two_seeds, "absent": absent, "late": two_seeds}
EXPERIMENT = kit.Experiment("made_up", "About.", load, {
    "first": kit.Plan(ROWS, {"quick": Settings(), "full": Settings(30)}, rows_on_request=("late",)),
    "lost": kit.Plan({**ROWS, "alone": alone}, {"quick": Settings()}, on_request=("quick",)),
}, options={"folder": "of something"})  # fmt: skip


def test_a_row_becomes_a_record_and_is_not_run_again(tmp_path, capsys):
    assert kit.run(EXPERIMENT, ["--out", str(tmp_path)]) == tmp_path
    assert [*records.read_all(tmp_path / "made_up" / ".."), len(CALLS)] == ["made_up/first/two.json", 1]
    record = records.read(tmp_path / "made_up" / "first" / "two.json")
    assert record["metrics"]["mrr"]["per_seed"] == [0.5, 0.75] and record["metrics"]["auc"]["mean"] == 0.5
    assert record["metrics_by_group"]["a"]["mrr"]["mean"] == 0.75 and record["notes"] == ["Made up."]
    assert record["preset"] == {"name": "quick", "settings": {"size": 3}} and "status" not in record
    assert set(record["method_version"].values()) == {1} and record["dataset"]["counts"] == {"queries": 3}
    with np.load(tmp_path / "made_up" / "first" / "two.npz") as arrays:
        assert arrays["mrr"].tolist() == [0.75, 0.75, 0.5, 0.5]
    kit.run(EXPERIMENT, ["--out", str(tmp_path), "--rows", "late"])
    before = records.read(tmp_path / "made_up" / "first" / "late.json")["started"]
    kit.run(EXPERIMENT, ["--out", str(tmp_path), "--rows", "late", "two"])
    assert records.read(tmp_path / "made_up" / "first" / "late.json")["started"] == before and len(CALLS) == 1
    capsys.readouterr()
    kit.run(EXPERIMENT, ["--out", str(tmp_path), "--rows", "two", "--again"])
    assert "first: two mrr 0.6250 auc 0.5000" in capsys.readouterr().err


def test_records_of_another_preset_are_refused_before_any_row_runs(tmp_path, capsys):
    kit.run(EXPERIMENT, ["--out", str(tmp_path), "--rows", "late"])
    path, options = tmp_path / "made_up" / "first" / "late.json", ["--preset", "full", "--out", str(tmp_path)]
    CALLS.clear()
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        kit.run(EXPERIMENT, [*options, "--cache", str(tmp_path / "cache")])
    message = f"{path}: expected a record of the preset full, got one of quick (give --again"
    assert stopped.value.code == 2 and message in capsys.readouterr().err
    assert not CALLS and not (path.parent / "two.json").exists()
    kit.run(EXPERIMENT, [*options, "--cache", str(tmp_path / "cache"), "--again"])
    assert {record["preset"]["name"] for record in records.read_all(tmp_path / "made_up" / "..").values()} == {"full"}
    same = kit.Plan(ROWS, {"full": Settings(30), "accelerator": Settings(30)})  # no other settings
    again = kit.Experiment("made_up", "About.", load, {"first": same})
    before = path.read_bytes()
    kit.run(again, ["--preset", "accelerator", *options[2:], "--cache", str(tmp_path / "cache"), "--rows", "late"])
    assert path.read_bytes() == before
    path.write_text("{")
    with pytest.raises(SystemExit):
        kit.run(EXPERIMENT, [*options, "--cache", str(tmp_path / "cache")])
    assert f"{path}: expected a JSON record" in capsys.readouterr().err


@pytest.mark.parametrize(("options", "message"), [
    (["--tables", "lost", "--out", "{}"], "made up: expected files, got none"),
    (["--tables", "none"], "invalid choice: 'none'"),
    (["--rows", "none"], "invalid choice: 'none'"),
    (["--rows", "two", "alone", "--out", "{}"],
     "--rows: expected rows of the tables to fill (first), got alone (give --tables some of lost)"),
    (["--preset", "full", "--tables", "lost"], "expected tables with a preset full, got lost, which has quick"),
    (["--out", str(kit.RESULTS / "x")], "--out: expected a folder outside experiments/results"),
    (["--out", "{}/file/x"], "--out, --cache: expected folders that can be written to"),
])  # fmt: skip
def test_bad_input_is_one_line_and_status_2(tmp_path, capsys, monkeypatch, options, message):
    (tmp_path / "file").write_text("")
    with pytest.raises(SystemExit) as stopped:
        kit.run(EXPERIMENT, [option.format(tmp_path) for option in options])
    assert stopped.value.code == 2 and message in capsys.readouterr().err.splitlines()[-1]
    assert not list(tmp_path.glob("made_up"))


def test_an_uncommitted_tree_is_refused_before_any_work(capsys, monkeypatch):
    module = sys.modules["experiments.kit.run"]
    monkeypatch.setattr(module, "environment", lambda command: {"dirty": True})
    with pytest.raises(SystemExit) as stopped:
        kit.run(EXPERIMENT, ["--preset", "full"])
    assert stopped.value.code == 2 and "expected a committed tree" in capsys.readouterr().err and not CALLS


def test_the_quick_preset_passes_over_corpora_where_there_are_none(tmp_path, capsys, monkeypatch):
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    tables = {"lost": kit.Plan(ROWS, {"quick": Settings()})}
    kit.run(kit.Experiment("made_up", "About.", load, tables), ["--out", str(tmp_path)])
    assert "made_up: lost skipped, nothing was run: made up: expected files" in capsys.readouterr().out


def test_folders_of_records_are_compared_number_by_number(tmp_path, capsys):
    kit.run(EXPERIMENT, ["--out", str(tmp_path / "a")])
    kit.run(EXPERIMENT, ["--out", str(tmp_path / "b")])
    assert compare.main([str(tmp_path / "a"), str(tmp_path / "b")]) == 0
    path = tmp_path / "b" / "made_up" / "first" / "two.json"
    record = json.loads(path.read_bytes())
    record["metrics"]["mrr"]["per_seed"][1] += 0.125
    path.write_text(json.dumps(record))
    capsys.readouterr()
    assert compare.main([str(tmp_path / "a"), str(tmp_path / "b")]) == 1
    assert "metrics.mrr.per_seed.1: 0.75 before, 0.875 after" in capsys.readouterr().out
    path.unlink()
    kit.run(EXPERIMENT, ["--out", str(tmp_path / "b"), "--rows", "late"])
    capsys.readouterr()
    folders = [str(tmp_path / "a"), str(tmp_path / "b")]
    assert compare.main(folders) == 1 and "no record that both folders have: 1 in" in capsys.readouterr().out
    kit.run(EXPERIMENT, ["--out", folders[0], "--rows", "late"])
    capsys.readouterr()
    assert compare.main(folders) == 0  # of those that both have
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:] == [f"records only in {folders[0]}: 1 (--list names them)"]
    assert compare.main([*folders, "--list"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [f"made_up/first/two: only in {folders[0]}"]
    with pytest.raises(SystemExit):
        compare.main([*folders[:1], str(tmp_path / "none")])
    assert "none: expected a folder of records, got no such folder" in capsys.readouterr().err
    path.write_text('{"experiment": ')
    with pytest.raises(SystemExit):
        compare.main(folders)
    assert f"{path}: expected JSON, got " in capsys.readouterr().err


@pytest.mark.programs
def test_the_model_script_runs_as_a_module(tmp_path):
    root = kit.RESULTS.parents[1]
    done = subprocess.run([sys.executable, "-m", "experiments.mates.platt2010", "--rows", "tf", "--out", tmp_path],
                          cwd=root, capture_output=True, text=True, timeout=240, env=os.environ)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert records.read(tmp_path / "platt2010_mates" / "docstrings" / "tf.json")["metrics"]["mrr"]["mean"] > 0.5


def test_no_script_of_a_paper_imports_a_script():
    """Rows that two scripts share stand in a module of their own, which nobody runs."""
    import ast

    def is_script(name):
        path = root.parent / (name.replace(".", "/") + ".py")
        return path.exists() and "__main__" in path.read_text()

    root = kit.RESULTS.parent
    scripts = [path for path in sorted(root.glob("*/*.py")) if "kit.run(EXPERIMENT)" in path.read_text()]
    assert len(scripts) > 10 and all(is_script(f"experiments.{path.parent.name}.{path.stem}") for path in scripts)
    for path in scripts:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)] \
                if isinstance(node, ast.ImportFrom) else \
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            assert not [name for name in names if name and name.startswith("experiments.") and is_script(name)], path


def test_corpora_that_lack_are_fetched_where_that_is_asked_for(server, tmp_path, monkeypatch):
    asked = []

    def work():
        asked.append("once more")
        return catalogue.find("small", "two.txt").read_bytes()

    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path / "new"))
    with pytest.raises(MissingCorpus, match="needed: the corpus 'small'"):
        with_corpora(work, fetch=False)
    assert with_corpora(work, fetch=True) == TWO and len(asked) == 3
    del server.bodies["/public/two.txt"]
    (tmp_path / "new" / "small" / "two.txt").unlink()
    with pytest.raises(MissingCorpus, match="^small: expected it to be fetched, got .*two.txt: .*404"):
        with_corpora(work, fetch=True)
    monkeypatch.delenv("JAXSIM_DATA")
    with pytest.raises(MissingCorpus, match="^JAXSIM_DATA: expected the folder"):
        with_corpora(work, fetch=True)
