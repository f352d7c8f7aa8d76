from __future__ import annotations

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.kit import environment, records

ENVIRONMENT = {
    "versions": {"python": "3.11", "jax": "0.9"},
    "device": "cpu, made up, 2 cores",
    "precision": "float32, matmul default",
    "commit": "0123456789" * 4,
    "dirty": False,
    "command": "python experiments/made_up.py --preset full",
    "started": "2026-01-02T03:04:05+00:00",
}


def made_up(**changes):
    fields = {
        "experiment": "made_up",
        "paper": "002 Table 2",
        "table": "en-es",
        "row": "opca",
        "status": "reproduced",
        "config": {"k": 300, "noise": 1e-4},
        "seeds": [0, 1],
        "dataset": {
            "name": "toy",
            "sha256": "ab" * 32,
            "counts": {"train": 60, "test": 20},
            "groups": {"groups": 70},
            "differs": "substitute: toy pages in place of Wikipedia",
        },
        "dev": {"mrr": 0.7},
        "metrics": {"accuracy": [0.5, 0.75], "mrr": [0.625, 0.875]},
        "curve": [{"k": 100, "mrr": 0.5, "split": "dev"}, {"k": 300, "mrr": 0.7, "split": "dev"}],
        "fit": {"loss": 0.5, "grad_norm": 0.01, "converged": True, "steps": 3},
        "seconds": {"load": 1.0, "fit": 2.5, "evaluate": 0.25},
        "environment": ENVIRONMENT,
    }
    return records.new(**{**fields, **changes})


def altered(path, value):
    """A good record with one field, named by a dotted path, set to `value` (or left out if that is `del`)."""
    record = json.loads(json.dumps(made_up(measurements=[{"name": "a", "value": 1.0, "unit": "s"}])))
    *parents, last = path.split(".")
    inner = record
    for name in parents:
        inner = inner[int(name)] if isinstance(inner, list) else inner[name]
    if value is del_:
        del inner[last]
    else:
        inner[last] = value
    return record


del_ = object()


def test_new_summarises_seeds():
    value = made_up()["metrics"]["accuracy"]
    assert value["mean"] == 0.625
    assert value["sd"] == pytest.approx(np.sqrt(2 * 0.125**2))
    assert value["per_seed"] == [0.5, 0.75]


def test_summary_of_one_number_has_no_spread():
    assert records.summary(0.5) == {"mean": 0.5, "sd": 0.0, "per_seed": [0.5]}


def test_new_turns_arrays_into_numbers():
    record = made_up(config={"k": np.int32(5), "grid": np.array([1.0, 2.0]), "shape": (1, 2)})
    assert record["config"] == {"k": 5, "grid": [1.0, 2.0], "shape": [1, 2]}
    assert json.loads(json.dumps(record)) == record


def test_closed_form_has_no_loss():
    fit = SimpleNamespace(loss=np.nan, grad_norm=np.nan, converged=True, steps=0, evaluations=0)
    assert made_up(fit=fit)["fit"] == {
        "loss": None, "grad_norm": None, "converged": True, "steps": 0, "evaluations": 0,
    }  # fmt: skip


def test_a_fit_keeps_its_history():
    history = [{"step": 0, "loss": np.nan, "validation": 0.5, "seconds": 0.1},
               {"step": 1, "loss": np.float32(0.25), "validation": 0.75, "seconds": 0.2}]  # fmt: skip
    fit = SimpleNamespace(loss=0.25, grad_norm=0.1, converged=False, steps=1, evaluations=2, history=history)
    kept = {"step": [0, 1], "loss": [None, 0.25], "validation": [0.5, 0.75], "seconds": [0.1, 0.2]}
    assert made_up(fit=fit)["fit"]["history"] == kept == made_up(fit=made_up(fit=fit)["fit"])["fit"]["history"]


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("status", "", r"status: expected text, got ''"),
        ("status", " ", r"status: expected text"),
        ("paper", 2, r"paper: expected text, got 2"),
        ("dev", del_, r"record: expected the field 'dev'"),
        ("surprise", 1, r"fields of a record .* got surprise"),
        ("row", "../up", r"row: expected letters, digits"),
        ("seeds", [0.5], r"seeds: expected integers"),
        ("seeds", [0, 1, 2], r"metrics.accuracy.per_seed: expected 3 values, got 2"),
        ("metrics.mrr.mean", 0.7, r"metrics.mrr.mean: expected 0.75, the mean of per_seed, got 0.7"),
        ("metrics.mrr.sd", 0.0, r"metrics.mrr.sd: expected 0.17\d+, the sd of per_seed"),
        ("metrics.mrr.per_seed", [0.5, 1.5], r"metrics.mrr.per_seed: expected a number in \[0, 1\], got 1.5"),
        ("metrics.MRR", {"mean": 1, "sd": 0, "per_seed": [1, 1]}, r"metrics: expected keys of the list .* got MRR"),
        ("metrics.auc", 0.5, r"metrics.auc: expected mean, sd, per_seed"),
        ("curve", {}, r"curve: expected a list, got dict"),
        ("curve.0", {"k": 5, "mrr": 2.0}, r"curve\[0\].mrr: expected a number in \[0, 1\]"),
        ("curve.0", {}, r"curve\[0\]: expected an object with fields"),
        ("curve.0", {"k": 5, "split": "train"}, r"curve\[0\].split: expected dev or test"),
        ("dataset.sha256", "abc", r"dataset.sha256: expected 64 hexadecimal digits"),
        ("dataset.sha256", None, r"dataset.sha256: expected 64 hexadecimal digits"),
        ("dataset.counts", {}, r"dataset.counts: expected at least one count"),
        ("dataset.differs", "other pages", r"dataset.differs: expected text opening with same \| resampled"),
        ("dataset.groups", del_, r"dataset: expected the field 'groups'"),
        ("seconds.fit", -1.0, r"seconds.fit: expected a number of at least 0"),
        ("fit", {"loss": 0.5}, r"fit: expected the field 'grad_norm'"),
        ("fit.history", {"step": [0]}, r"fit.history: expected an object of the lists step, loss"),
        ("versions", {}, r"versions: expected the field 'jax'"),
        ("commit", "abc", r"commit: expected 40 hexadecimal digits"),
        ("dirty", "no", r"dirty: expected true or false"),
        ("started", "2026-01-02T03:04:05", r"started: expected an ISO 8601 time with its zone"),
        ("started", "yesterday", r"started: expected an ISO 8601 time"),
        ("config.noise", float("nan"), r"config.noise: expected a finite number or null, got nan"),
        ("config.noise", {1, 2}, r"config.noise: expected what JSON holds, got set"),
        ("best_set", 1, r"best_set: expected true or false"),
        ("per_query", "other.npz", r"per_query: expected opca.npz, got other.npz"),
        ("metrics_naive", {"mrr": 0.5}, r"metrics_naive.mrr: expected mean, sd, per_seed"),
        ("metrics_by_group", {"mdn": {"x": 1}}, r"metrics_by_group.mdn: expected keys of the list"),
        ("measurements.0", {"name": "a", "value": 1.0}, r"measurements\[0\]: expected the field 'unit', got none"),
        ("measurements.0.ratio", 2.0, r"measurements\[0\].of: expected what the ratio is measured against"),
    ],
)
def test_check_names_the_field(path, value, message):
    if path.startswith("curve.0") or path.startswith("measurements.0") and path.count(".") == 1:
        record = altered("row", "opca")
        record[path.split(".")[0]] = [value]
    elif path == "measurements.0.ratio":
        record = altered("row", "opca")
        record["measurements"][0]["ratio"] = value
    else:
        record = altered(path, value)
    with pytest.raises(ValueError, match=message):
        records.check(record)


def test_perplexity_may_exceed_one_and_nothing_else_may():
    assert made_up(seeds=[], metrics={"perplexity": 120.0})["metrics"]["perplexity"]["mean"] == 120.0
    with pytest.raises(ValueError, match=r"metrics.perplexity.per_seed: expected a number in \[1, inf\]"):
        made_up(seeds=[], metrics={"perplexity": 0.5})


def test_speed_record_needs_no_metrics_and_generated_data_no_hash():
    dataset = {"name": "random", "sha256": None, "counts": {"m": 5000}, "groups": {}, "differs": "synthetic: uniform"}
    measurements = [{"name": "forward", "value": 0.06, "unit": "s", "ratio": 1.2, "of": "three products", "note": ""}]
    record = made_up(dataset=dataset, metrics={}, seeds=[], measurements=measurements)
    assert record["metrics"] == {}
    with pytest.raises(ValueError, match="metrics: expected at least one metric"):
        made_up(metrics={})


def test_write_then_read_gives_the_same(tmp_path, rng):
    ranks = rng.uniform(size=1000)
    path = records.write(made_up(), tmp_path, per_query={"mrr": ranks})
    assert path == tmp_path / "made_up" / "en-es" / "opca.json"
    assert records.read(path) == {**made_up(), "per_query": "opca.npz"}
    assert list(records.read_all(tmp_path)) == ["made_up/en-es/opca.json"]
    with np.load(path.with_suffix(".npz")) as arrays:
        np.testing.assert_allclose(arrays["mrr"], ranks, rtol=1e-6)
    assert sorted(item.name for item in path.parent.iterdir()) == ["opca.json", "opca.npz"]


def test_dirty_records_are_not_published(tmp_path):
    dirty = made_up(environment={**ENVIRONMENT, "dirty": True})
    published = tmp_path / "experiments" / "results"
    with pytest.raises(ValueError, match=r"opca.json: expected a record from a committed tree"):
        records.write(dirty, published)
    assert not published.exists()
    assert records.write(dirty, tmp_path / "elsewhere").is_file()
    assert records.write(dirty, published, allow_dirty=True).is_file()


def test_too_large_per_query_file_is_refused(tmp_path, rng):
    with pytest.raises(ValueError, match="per_query: expected under 307200 bytes"):
        records.write(made_up(), tmp_path, per_query={"noise": rng.uniform(size=200_000)})
    assert list(tmp_path.rglob("*.json")) == []


def test_interrupted_write_keeps_the_old_record(tmp_path, monkeypatch):
    path = records.write(made_up(), tmp_path)
    before = path.read_bytes()

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt):
        records.write(made_up(status="within noise"), tmp_path)
    assert path.read_bytes() == before
    assert [item.name for item in path.parent.iterdir()] == ["opca.json"]


def test_unwritable_folder_is_an_os_error(tmp_path):
    (tmp_path / "made_up").write_text("a file where a folder should be")
    with pytest.raises(OSError, match="made_up"):
        records.write(made_up(), tmp_path)


@pytest.mark.parametrize(
    "damage", [lambda b: b[: len(b) // 2], lambda b: b"\xff\xfe" + b, lambda b: b"", lambda b: b"3"]
)
def test_damaged_file_is_named(tmp_path, damage):
    path = records.write(made_up(), tmp_path)
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(ValueError, match=r"opca\.json: .*expected"):
        records.read_all(tmp_path)


def test_record_at_another_path_is_refused(tmp_path):
    path = records.write(made_up(), tmp_path)
    path.rename(path.with_name("cca.json"))
    with pytest.raises(ValueError, match=r"cca\.json: expected the record of made_up/en-es/opca\.json"):
        records.read_all(tmp_path)


def test_missing_per_query_file_is_named(tmp_path):
    path = records.write(made_up(), tmp_path, per_query={"mrr": np.ones(3)})
    path.with_suffix(".npz").unlink()
    with pytest.raises(ValueError, match=r"opca\.json: per_query: expected a file opca\.npz"):
        records.read_all(tmp_path)


def test_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere: expected a folder of records"):
        records.read_all(tmp_path / "nowhere")


def test_environment_fits_a_record():
    record = made_up(environment=records.environment())
    assert {"python", "jax", "numpy", "scipy"} <= set(record["versions"])
    assert "float64" in record["precision"]


def git(folder, *arguments):
    who = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_dirty_ignores_results_and_generated_files(tmp_path):
    module = tmp_path / "experiments" / "kit" / "environment.py"
    module.parent.mkdir(parents=True)
    module.write_text("one\n")
    assert environment._commit(module) == ("unknown", True)
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    commit, dirty = environment._commit(module)
    assert len(commit) == 40
    assert not dirty
    for name in ("experiments/results/a/b/c.json", "BENCHMARKS.md", "docs/figures/a.svg"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("generated\n")
    assert environment._commit(module) == (commit, False)
    (tmp_path / "new.py").write_text("untracked\n")
    assert environment._commit(module) == (commit, True)
    (tmp_path / "new.py").unlink()
    module.write_text("two\n")
    assert environment._commit(module) == (commit, True)


def test_command_holds_no_absolute_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = [sys.executable, str(tmp_path / "experiments" / "a.py"), "--out=/somewhere/else", "--k", "5"]
    assert environment._command(words) == "python experiments/a.py --out=else --k 5"
