"""The speed rows at tiny sizes: parity and the form of the records, never a time; and no copy of the L-BFGS history."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.kit import records
from jaxsim import optim


@pytest.fixture
def rows(monkeypatch):
    """The rows, with every optional peer missing."""
    from experiments.speed import disk, fits, language, links, texts, thesaurus, topics, weights
    from experiments.speed import rows as speed_rows

    for module in (speed_rows, disk, fits, language, links, texts, topics, weights):
        monkeypatch.setattr(module, "installed", lambda name: None)
    monkeypatch.setattr(speed_rows, "_resident", lambda m, k: 0.5)
    monkeypatch.setattr(thesaurus, "_apart", thesaurus.measured)  # without a process of its own
    monkeypatch.setattr(weights, "_fresh", lambda folder: [1.0, 1.0, 1.0, float(folder.is_dir())])
    return speed_rows


LONG = "topics", "rnn", "ngram"  # whose methods have tests of their own


def tiny(rows):
    return rows.QUICK._replace(docs=60, per_doc=10, num_terms=120, k=5, pairs=40, many_pairs=50, candidates=64, side=32,
                               corpus_terms=90, iterations=3, repeats=1)


@pytest.mark.parametrize("name", ["matmul", "project", "texts", "all-pairs", "top-k", "opca", "ssi", "tweak", "vl-ext",
                                  "itml", "all-pairs-figures", "pilsa", "weights", "disk",
                                  *(pytest.param(name, marks=pytest.mark.programs) for name in LONG)])
def test_a_row_agrees_with_float64_and_makes_a_record(rows, name):
    sheet = rows.ROWS[name](tiny(rows), 1, False)
    assert any(line["name"].startswith("parity") for line in sheet.lines) or name == "disk"  # which compares files
    record = records.new(
        experiment="speed", paper="none", table="one-core", row=sheet.row, config=sheet.config,
        dataset=sheet.dataset, metrics={}, environment=records.environment(), **sheet.fields(),
    )
    assert record["row"] == name and "limits" not in record
    if name not in ("opca", "tweak", "vl-ext", "itml", "all-pairs-figures", "pilsa"):
        assert any("not measured" in line.get("note", "") for line in sheet.lines)


@pytest.mark.programs
def test_the_lbfgs_row_counts_evaluations(rows, monkeypatch):
    from experiments.speed import fits as speed_fits

    monkeypatch.setattr(speed_fits, "_jaxopt", lambda start, data, iterations, search: (1.0, 1.0, 0.5))
    sheet = rows.ROWS["lbfgs"](tiny(rows), 1, False)
    (line,) = [line for line in sheet.lines if line["name"] == "jaxsim, evaluations an iteration"]
    assert 1 <= line["value"] <= 3


def test_parity_fails_on_a_wrong_answer(rows):
    from experiments.kit import measure as speed_tools

    sheet = speed_tools.Sheet("row", 1, False, {}, {})
    with pytest.raises(ArithmeticError, match="row: value: expected a relative error of at most 0.001"):
        sheet.parity("value", np.array([1.0, 2.1]), np.array([1.0, 2.0]), within=1e-3)
    with pytest.raises(ArithmeticError, match="got nan"):
        sheet.parity("value", np.array([np.nan]), np.array([1.0]), within=1e-3)


def test_limits_stand_beside_the_values_of_the_full_sizes_alone():
    from experiments.kit import measure

    for full in (False, True):
        sheet = measure.Sheet("row", 1, full, {}, {})
        sheet.expect("ratio", 1.2, 1.4)
        sheet.expect("times as fast", 4.0, 5.0, at_least=True)
        limits = [{"name": "ratio", "value": 1.2, "at_most": 1.4},
                  {"name": "times as fast", "value": 4.0, "at_least": 5.0}]
        assert sheet.fields().get("limits") == (limits if full else None)


@pytest.mark.parametrize("both", [False, True])
def test_the_numpy_peer_is_the_loss(rows, rng, both):
    from experiments.speed import peers as speed_peers

    left, right = rng.standard_normal((2, 30, 4))

    def value(p, q):
        p, q = (side / jnp.linalg.norm(side, axis=1, keepdims=True) for side in (p, q))
        scores = p @ q.T
        own = jnp.diagonal(scores)
        total = jax.nn.softplus(3.0 * (scores - own[:, None]))
        if both:
            total = total + jax.nn.softplus(3.0 * (scores - own[None, :]))
        return jnp.sum(jnp.where(jnp.eye(30, dtype=bool), 0, total)) / (30 * 29 * (2 if both else 1))

    result = speed_peers.all_pairs_numpy(left, right, 3.0, both=both)
    expected, grads = jax.value_and_grad(value, argnums=(0, 1))(left, right)
    np.testing.assert_allclose(result[0], expected, rtol=1e-12)
    for mine, theirs in zip(result[1:], grads, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-12)


def test_made_up_documents_have_distinct_terms_and_share_what_they_should(rows):
    from experiments.corpora import synthetic

    left, right = synthetic.documents(20, 100, 12, seed=0, shared=5, views=2)
    for side in (left, right):
        assert side.shape == (20, 100) and np.all(np.diff(side.indptr) == 12)
        assert side.has_canonical_format
        np.testing.assert_allclose(np.sqrt(side.multiply(side).sum(axis=1)).ravel(), 1, rtol=1e-5)
    assert np.all(np.diff(left.multiply(right).tocsr().indptr) == 5)


@pytest.mark.usefixtures("fully_compiled")
def test_the_history_of_lbfgs_is_not_copied():
    size, h = 50_000, 10
    vectors = [jnp.full((size,), float(i), jnp.float32) for i in range(4)]
    pairs = jnp.zeros((2 * h, size), jnp.float32)
    square, count = jnp.zeros((h, h), jnp.float32), jnp.zeros((), jnp.int32)
    stored = optim.lbfgs._store.lower(pairs, count, *vectors).compile().memory_analysis()
    assert stored.alias_size_in_bytes >= pairs.nbytes and stored.temp_size_in_bytes < pairs.nbytes / h
    read = optim.lbfgs.direction.lower(pairs, square, square, count, *vectors).compile().memory_analysis()
    assert read.temp_size_in_bytes < pairs.nbytes / 2


@pytest.mark.programs
@pytest.mark.parametrize(("script", "record"), [("closed_forms", "closed-forms/opca-300"),
                                                ("accelerator", "accelerator/all-pairs-tf32")])
def test_the_quick_preset_writes_a_record(tmp_path, script, record):
    subprocess.run([sys.executable, "-m", f"experiments.speed.{script}", "--out", str(tmp_path)], check=True,
                   cwd=Path(__file__).parents[2], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    lines = records.read(tmp_path / "speed" / f"{record}.json")["measurements"]
    assert lines and all(line["value"] >= 0 for line in lines)


def test_without_an_accelerator_the_full_preset_says_so(capsys, monkeypatch, tmp_path):
    from experiments.speed import accelerator

    monkeypatch.setattr("sys.argv", ["accelerator", "--preset", "full", "--out", str(tmp_path)])
    assert accelerator.main() == 0
    assert "not run" in capsys.readouterr().out and not list(tmp_path.iterdir())
