"""`bai2010_links` on made-up articles: splits, what is judged, rows, records."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from experiments.kit import records
from jaxsim import sparse
from jaxsim.data import links, wikispeedia
from jaxsim.evaluate import metrics, ranking
from jaxsim.methods.ssi import bilinear

pytestmark = pytest.mark.programs
EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
N = 90


@pytest.fixture(scope="module")
def data():
    """Articles about nine topics, of which those of one topic link to each other; every tenth is another's twin."""
    rng = np.random.default_rng(11)
    topics = [rng.dirichlet(np.full(200, 0.05)) for _ in range(9)]
    tokens = [[f"w{word}" for word in rng.choice(200, 60, p=topics[i % 9])] + [f"title{i}"] for i in range(N)]
    for i in range(0, N, 10):
        tokens[i + 1] = tokens[i]
    ids = tuple(f"a{i}" for i in range(N))
    linked = links.checked([[i, j] for i in range(N) for j in range(N) if i % 9 == j % 9], N)
    articles = wikispeedia.Articles("made up", ids, tuple(f"title{i}" for i in range(N)),
                                    tuple(" ".join(words) for words in tokens), linked, "0" * 64, {"articles": N})
    return articles, tokens, np.arange(N)


def table(scripts, data, name, tmp_path):
    settings = dataclasses.replace(scripts.links_tables.QUICK, ks=(2, 5), k=4, triples=300, pairs=200, seeds=(0, 1),
                                   starts=(1.0,), num_terms=150)
    return scripts.links_tables.Table(name, settings, tmp_path, tmp_path / "cache", publish=False, data=data)


def test_known_links_leave_the_lists_and_none_is_lost(scripts, data, tmp_path):
    made = table(scripts, data, "table1", tmp_path)
    parts = {"dev": made.truth["dev"], "test": made.truth["test"]}
    assert sum(part.relevant.nnz for part in parts.values()) + len(made.links) == len(data[0].links)
    for name, known in (("dev", made.links), ("test", [*made.links, *_pairs(parts["dev"])])):
        assert _pairs(parts[name], "left_out") == {(i, i) for i in parts[name].queries.tolist()} | {
            (a, b) for a, b in np.asarray(known).tolist() if a in parts[name].queries}


def _pairs(truth, what="relevant"):
    found = getattr(truth, what).tocoo()
    return {(int(truth.queries[a]), int(b)) for a, b in zip(found.row, found.col, strict=True)}


def test_documents_of_one_group_are_in_one_part_and_idf_is_of_training(scripts, data, tmp_path):
    made = table(scripts, data, "table3", tmp_path)
    rows = {name: set(part.rows.tolist()) for name, part in made.parts.items()}
    assert set.union(*rows.values()) == set(range(N)) and sum(map(len, rows.values())) == N
    for i in range(0, N, 10):
        assert any({i, i + 1} <= part for part in rows.values())
    assert all(part.num_docs == len(rows["train"]) for part in made.parts.values())
    assert made.links.max() < len(rows["train"])
    assert _pairs(made.truth["test"], "left_out") == {(i, i) for i in made.truth["test"].queries.tolist()}


@pytest.mark.parametrize("kind", ["identity", "diagonal", "without", "only diagonal"])
def test_validation_with_products_kept_is_the_plain_one(scripts, data, tmp_path, kind, rng):
    made = table(scripts, data, "table1", tmp_path)
    size = made.parts["train"].df.size
    weights = [jnp.asarray(rng.normal(size=(size, 3)), jnp.float32) for _ in range(2)]
    diagonal = {"identity": jnp.full(size, 3.0, jnp.float32), "without": None}.get(
        kind, jnp.asarray(rng.random(size), jnp.float32))
    params = bilinear.sides(*([None, None] if kind == "only diagonal" else weights), diagonal)
    plain = ranking.scores(*scripts.links_tables.sides(params, made.parts["dev"]), made.truth["dev"])["map"]
    assert made.validate(params) == pytest.approx(plain, abs=1e-6)
    twice = bilinear.sides(*weights, diagonal) if kind == "identity" else params
    assert made.validate(twice) == pytest.approx(plain, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["table1", "table3"])
def test_rows_are_recorded_and_judged(scripts, data, tmp_path, name):
    made = table(scripts, data, name, tmp_path)
    rows = ("tfidf", "lsi+tfidf", "popularity", "title-overlap", "ssi-diag", "ssi-asym", "ssi-asym-d")
    for row in rows:
        scripts.bai2010_links.ROWS[row](made)
    scripts.links_tables.judge(tmp_path, name, publish=False)
    found = {record["row"]: record for record in records.read_all(tmp_path).values()}
    assert set(found) == set(rows) - ({"popularity"} if name == "table3" else set())
    assert {len(record["seeds"]) for row, record in found.items() if row.startswith("ssi")} == {2}
    assert found["ssi-asym"]["metrics"]["map"]["mean"] > found["title-overlap"]["metrics"]["map"]["mean"]
    assert found["ssi-asym"]["config"]["identity"] in made.settings.identities
    assert all(record["status"] for record in found.values()) and any(r["best_set"] for r in found.values())
    assert not [path for path in (tmp_path / "cache").iterdir() if "ssi-asym" in path.name]
    module, max_iter = scripts.bai2010_links, made.settings.diag_iter
    again = module.trained(made, "ssi-diag", module.ssi_diag.fit, 0, max_iter=max_iter, **module.diagonals(made)[0])
    first = module.ssi_diag.fit(
        made.parts["train"].tfidf(), made.parts["train"].tfidf(), made.links, key=jax.random.key(0),
        known=made.parts["train"].own(), triples=300, max_iter=max_iter, validate=made.validate,
        patience=made.settings.patience, **module.diagonals(made)[0])
    np.testing.assert_array_equal(again.params[0].scale, first.params[0].scale)


def test_expanded_queries_are_the_loop_over_the_best_documents(scripts, data, tmp_path):
    from experiments import links_rows

    made = table(scripts, data, "table3", tmp_path)
    links_rows.fit_expansion(made)
    config = records.read(made.path("qe"))["config"]
    part, truth = made.parts["test"], made.truth["test"]
    cosines = (sparse.to_scipy(part.tfidf()) @ sparse.to_scipy(part.tfidf()).T).toarray()
    for row, query in enumerate(truth.queries[:5].tolist()):
        best = sorted((d for d in range(len(cosines)) if d != query), key=lambda d: -cosines[query, d])[: config["E"]]
        expected = cosines[query] + config["beta"] * sum(cosines[d] for d in best)
        with np.load(made.path("qe").with_suffix(".npz")) as file:
            scored = np.where(truth.left_out[[row]].toarray()[0] == 1, -np.inf, expected)
            labels = truth.relevant[[row]].toarray()[0]
            found = metrics.average_precision(scored[np.isfinite(scored)], labels[np.isfinite(scored)])
            assert file["map"][row] == pytest.approx(found, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [
    ("table1", ("ssi-full", "ssi-sparse-100", "ssi-sparse-10", "ssi-l1")),
    ("table4", ("ssi-sym-50", "ssi-asym-50")),
    ("table2", ("tfidf", "ssi-all", "ssi-top-10k", "hash-1m", "cfh-2", "cfh-1")),
])
def test_more_rows_are_recorded_with_the_scores_of_their_models(scripts, data, tmp_path, name, rows):
    made = table(scripts, data, name, tmp_path)
    made.settings = dataclasses.replace(made.settings, tops={"10k": 60, "30k": 90}, bigrams=300, seeds=(0,))
    for row in rows:
        scripts.bai2010_links.OF_TABLE[name][row](made)
    scripts.links_tables.judge(tmp_path, name, publish=False)
    found = {record["row"]: record for record in records.read_all(tmp_path).values()}
    assert set(rows) <= set(found)
    for row, record in found.items():
        assert record["paper"] == f"003 Table {name[-1]}" and record["status"], row
        assert 0 < record["metrics"]["map"]["mean"] <= 1, row
    if name == "table2":
        assert found["hash-1m+i"]["dev"]["grid"][0]["alpha"] == 0.0
        best = max(point["map"] for point in found["cfh-1"]["dev"]["grid"])
        assert found["cfh-1"]["dev"]["map"] == pytest.approx(best)


def run(*options, **environment):
    kept = {key: value for key, value in os.environ.items() if key != "JAXSIM_DATA"}
    return subprocess.run([sys.executable, "-m", "experiments.bai2010_links", *map(str, options)],
                          cwd=EXPERIMENTS.parent,
                          text=True,
                          capture_output=True, env={**kept, **environment}, timeout=240, check=False)


def test_the_quick_preset_says_that_it_has_no_corpus_and_the_full_one_refuses(tmp_path):
    quick = run("--preset", "quick", "--out", tmp_path)
    assert quick.returncode == 0 and "JAXSIM_DATA names no folder with the corpus 'wikispeedia'" in quick.stdout
    full = run("--preset", "full", "--out", tmp_path)
    assert full.returncode == 2 and "JAXSIM_DATA" in full.stderr.strip().splitlines()[-1]
    assert "Traceback" not in full.stderr
    among = run("--preset", "quick", "--out", EXPERIMENTS / "results" / "x", JAXSIM_DATA=str(tmp_path))
    assert among.returncode == 2 and "--out: expected a folder outside experiments/results" in among.stderr
    missing = run("--preset", "quick", "--out", tmp_path, JAXSIM_DATA=str(tmp_path))
    assert missing.returncode == 2 and "expected the corpus 'wikispeedia'" in missing.stderr
