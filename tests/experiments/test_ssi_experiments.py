"""`bai2010_queries`, `bai2010_clicks` and `bai2010_cross_language` on made-up texts: what is judged, rows, records."""

from __future__ import annotations

import dataclasses
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from experiments.kit import records
from jaxsim.data import links, mdn_links, nfcorpus, splits, wikispeedia

pytestmark = pytest.mark.programs
N, TOPICS = 72, 6


@pytest.fixture(scope="module")
def articles():
    """Articles about six topics, of which those of one topic link to each other."""
    rng = np.random.default_rng(5)
    topics = [rng.dirichlet(np.full(120, 0.05)) for _ in range(TOPICS)]
    tokens = [[f"w{word}" for word in rng.choice(120, 40, p=topics[i % TOPICS])] for i in range(N)]
    linked = links.checked([[i, j] for i in range(N) for j in range(N) if i % TOPICS == j % TOPICS], N)
    return wikispeedia.Articles("made up", tuple(f"a{i}" for i in range(N)), (), tuple(map(" ".join, tokens)), linked,
                                "0" * 64, {"articles": N})


def place(scripts, tmp_path):
    return scripts.ssi_sheets.Place(tmp_path, publish=False)


def small(module, **changes):
    kept = {"k": 3, "triples": 100, "limit": None, "num_terms": 100, "seeds": (0, 1), **changes}
    return dataclasses.replace(module.QUICK, **kept)


def run(scripts, plan, table, rows, tmp_path, experiment):
    """Fills rows, judges them and returns their records."""
    for row in rows:
        plan.rows[row](table)
    scripts.ssi_sheets.judge(place(scripts, tmp_path), experiment, table.sheet.name, plan.order, metric=plan.metric)
    found = {record["row"]: record for record in records.read_all(tmp_path).values()}
    assert set(found) == set(rows) and all(record["status"] for record in found.values())
    assert any(record["best_set"] for record in found.values())
    learned = [record for row, record in found.items() if row.startswith("ssi") and "+" not in row]
    assert all(record["seeds"] == list(table.settings.seeds) and record["fit"]["history"] for record in learned)
    return found


def test_queries_are_different_words_of_their_article_and_weigh_something(scripts):
    counts = scipy.sparse.csr_matrix(np.array([[3, 1, 1, 1, 0], [1, 0, 2, 0, 0], [1, 0, 0, 0, 0]], np.float32))
    df = np.array([3, 1, 2, 1, 0])
    draws = [scripts.queries_tables.drawn(counts, df, 3, 2, seed).toarray() for seed in range(60)]
    assert {tuple(np.flatnonzero(one[0])) for one in draws} == {(1, 2), (1, 3), (2, 3)}
    assert all(one[1].tolist() == [0, 0, 1, 0, 0] and not one[2].any() and one.max() == 1 for one in draws)


def test_an_article_has_other_words_in_training_and_test_and_known_links_are_out(scripts, articles, tmp_path):
    tables = scripts.queries_tables
    data = articles, [one.split() for one in articles.texts], np.arange(N)
    table = tables.keywords("k5", small(tables), place(scripts, tmp_path), data)
    test, size = table.parts["test"], N
    assert table.left.num_docs == 2 * size and table.links[:, 0].max() >= size
    training = {tuple(pair) for pair in (table.links % [size, size]).tolist()}
    right = test.truth.relevant.tocoo()
    asked = {(int(test.truth.queries[a]), int(b)) for a, b in zip(right.row, right.col, strict=True)}
    assert not asked & training
    out = test.truth.left_out.toarray()
    for row, query in enumerate(test.truth.queries.tolist()):
        assert out[row, query] and all(out[row, b] for a, b in training if a == query)
    assert np.diff(test.queries.indptr).max() <= 5
    exact = (test.queries @ scipy.sparse.csr_matrix(scripts.ssi_sheets.terms.to_scipy(table.right)).T).toarray()
    np.testing.assert_allclose(test.exact, exact, atol=1e-6)


@pytest.mark.slow
def test_rows_of_the_queries_are_recorded_and_judged(scripts, articles, tmp_path):
    tables, plan = scripts.queries_tables, scripts.bai2010_queries.PLANS["k10"]
    data = articles, [one.split() for one in articles.texts], np.arange(N)
    table = tables.keywords("k10", small(tables, ks=(3,), seeds=(0,), max_iter=4), place(scripts, tmp_path), data)
    found = run(scripts, plan, table, ("tfidf", "bm25", "lsi+tfidf", "popularity", "ssi-asym"), tmp_path,
                tables.EXPERIMENT)
    assert found["ssi-asym"]["metrics"]["map"]["mean"] > 0.3 and found["ssi-asym"]["fit"]["history"]
    assert found["lsi+tfidf"]["config"]["alpha"] in table.settings.shares


def test_nfcorpus_is_scored_by_grade(scripts, articles, tmp_path):
    tables = scripts.queries_tables
    qrels = {split: {f"{split}{i}": {f"a{j}": 1 + (j > 40) for j in range(N) if i % TOPICS == j % TOPICS}
                     for i in range(12)} for split in nfcorpus.SPLITS}
    queries = {split: {f"{split}{i}": articles.texts[i][:40] for i in range(12)} for split in nfcorpus.SPLITS}
    documents = dict(zip(articles.ids, articles.texts, strict=True))
    made = nfcorpus.Collection("made up", documents, queries, qrels, "0" * 64, {"documents": N})
    table = tables.graded("nfcorpus", small(tables), place(scripts, tmp_path), made)
    scores = table.parts["test"].grades.toarray().astype(np.float32)
    perfect = scripts.ssi_sheets.means(scripts.ssi_sheets.judged(table.parts["test"], scores))
    assert perfect["ndcg@10"] == 1 and perfect["map"] == 1 and perfect["rank_loss"] == 0
    flat = scripts.ssi_sheets.judged(table.parts["test"], np.minimum(scores, 1))
    assert flat["map"].min() == 1 and flat["ndcg@10"].mean() < 1
    found = run(scripts, scripts.bai2010_queries.PLANS["nfcorpus"], table, ("bm25", "tfidf"), tmp_path,
                tables.EXPERIMENT)
    assert found["bm25"]["metrics"]["ndcg@10"]["mean"] > 0.5


def test_clicked_links_are_judged_against_unclicked_ones_of_their_page_alone(scripts):
    clicks = scripts.bai2010_clicks
    linked = np.array([[0, 1], [0, 2], [0, 3], [1, 0], [2, 0], [2, 1], [3, 0]])
    clicked, unclicked = clicks.lists(linked, np.array([[0, 2], [1, 0], [2, 1], [3, 1]]), 4)
    assert clicked.tolist() == [[0, 2], [2, 1]]  # 1 has no unclicked link, 3 no clicked one (its click is no link)
    assert unclicked.tolist() == [[0, 1], [0, 3], [2, 0]]
    truth = clicks.judged_links(clicked, unclicked, 4)
    assert truth.queries.tolist() == [0, 2]
    assert truth.relevant.toarray().tolist() == [[0, 0, 1, 0], [0, 1, 0, 0]]
    assert truth.left_out.toarray().tolist() == [[1, 0, 0, 0], [0, 0, 1, 1]]


def test_rows_of_the_clicks_are_recorded_and_judged(scripts, articles, tmp_path):
    script = scripts.bai2010_clicks
    clicks = np.array([[i, j, 1 + j % 3] for i, j in articles.links.tolist() if (i + j) % 4 == 0 or j < 24])
    table = script.make(small(script, max_iter=6), place(scripts, tmp_path), (articles, clicks))
    training = set(table.preferred[:, 0].tolist())
    assert training.isdisjoint(table.parts["test"].truth.queries.tolist())
    expected = np.bincount(clicks[np.isin(clicks[:, 0], [*training]), 1], minlength=N) > 0
    np.testing.assert_array_equal(table.popular[expected] > 0, True)
    found = run(scripts, script.PLANS["clicks"], table,
                ("tfidf", "popularity", "tfidf+popularity", "ssi-asym", "ssi-asym+popularity"),
                tmp_path, script.EXPERIMENT)
    assert found["popularity"]["metrics"]["rank_loss"]["mean"] < found["tfidf"]["metrics"]["rank_loss"]["mean"]
    shortened = table.shortened(10)
    assert shortened.parts["test"].queries.indices.max() < 10


@pytest.fixture(scope="module")
def translated(articles):
    """Every second article has a translation: the same words in capitals; the first two are twins."""
    english = [one.split() for one in articles.texts]
    mates = np.arange(0, N, 2)
    other = [[word.upper() for word in english[row]] for row in mates]
    found = mdn_links.LinkedPages("made up", "es", articles.ids, articles.texts, articles.links, mates,
                                  tuple(map(" ".join, other)), "0" * 64, {"pages": N})
    other[1] = other[0]
    return found, english, other, splits.group_near_duplicates(english), splits.group_near_duplicates(other)


@pytest.mark.parametrize("by_mate", [False, True])
def test_mates_are_out_and_links_of_held_out_pages_untold(scripts, translated, tmp_path, by_mate):
    tables, found = scripts.cross_tables, translated[0]
    table = tables.make("es", "es", "003 Table 9", small(tables), place(scripts, tmp_path), by_mate=by_mate,
                        data=translated)
    held = set()
    for name in ("dev", "test"):
        truth = table.parts[name].truth
        own = found.mates[truth.queries]
        rows = np.arange(own.size)
        right = truth.relevant.toarray()
        assert (right[rows, own] == by_mate).all() and (truth.left_out.toarray()[rows, own] != by_mate).all()
        assert right.sum() == (own.size if by_mate else np.isin(found.links[:, 0], own).sum())
        held |= set(own.tolist())
    assert held.isdisjoint(table.mates[:, 1].tolist()) and held.isdisjoint(table.same_links[:, 0].tolist())
    assert set(table.links[:, 0].tolist()) <= set(table.mates[:, 0].tolist())
    trained = set(table.mates[:, 0].tolist())
    assert len(trained & {0, 1}) in (0, 2)  # the twins stay together
    assert not table.parts["test"].exact.any()  # capitals are other words


@pytest.mark.slow
def test_rows_across_languages_are_recorded_and_judged(scripts, translated, tmp_path):
    tables, script = scripts.cross_tables, scripts.bai2010_cross_language
    settings = small(tables, ks=(3, 5), seeds=(0,), max_iter=8)
    table = tables.make("es", "es", "003 Table 9", settings, place(scripts, tmp_path), data=translated)
    found = run(scripts, script.PLANS["ja"], table,
                ("tfidf", "cl-lsi", "ssi", "ssi+tfidf", "ssi-multitask"), tmp_path,
                tables.EXPERIMENT)
    assert found["cl-lsi"]["metrics"]["map"]["mean"] > found["tfidf"]["metrics"]["map"]["mean"]
    assert found["ssi-multitask"]["config"]["symmetric"] in (True, False)
    assert found["ssi-multitask"]["metrics"]["map"]["mean"] > found["tfidf"]["metrics"]["map"]["mean"]


def test_a_share_of_the_links_tells_nothing_of_the_others(scripts, translated, tmp_path, monkeypatch):
    tables, script = scripts.cross_tables, scripts.bai2010_cross_language
    table = tables.make("es", "es", "003", small(tables), place(scripts, tmp_path), data=translated)
    told = {}

    def fit(left, right, links, **options):
        told.update(options, links=links)
        raise InterruptedError

    monkeypatch.setattr(script.ssi, "fit", fit)
    with pytest.raises(InterruptedError):
        script.low_rank("ssi-30", percent=30, metric="rank_loss")(table)
    pairs = [{tuple(pair) for pair in np.asarray(of).tolist()} for of in (told["links"], told["known"], table.links)]
    assert len(pairs[0]) == len(table.links) * 30 // 100 and pairs[0] <= pairs[2]
    assert pairs[2] - pairs[0] <= pairs[1] and not pairs[0] & pairs[1]


def test_statuses_follow_the_records(scripts, tmp_path):
    sheets = scripts.ssi_sheets
    sheet = sheets.Sheet("made", "up", "003", {"name": "x", "sha256": "0" * 64, "counts": {"n": 1}, "groups": {},
                                               "differs": "substitute: x"}, place(scripts, tmp_path), 0.0)
    rng = np.random.default_rng(0)
    base = rng.random(60) / 2
    for row, values in {"low": base, "same": base, "high": base + 0.3 + rng.random(60) / 50}.items():
        sheet.record(row, [{"rank_loss": values, "map": 1 - values}], config={}, dev={})
    order = {"low": ("high",), "high": ("low",), "same": ("low",)}
    for metric, right, wrong in (("rank_loss", "low", "high"), ("map", "low", "high")):
        sheets.judge(place(scripts, tmp_path), "made", "up", order, metric=metric)
        found = {record["row"]: record for record in records.read_all(tmp_path).values()}
        assert found[right]["status"] == "reproduced" and found["same"]["status"].startswith("within noise: low is eq")
        assert found[wrong]["status"].startswith("off: low is better, by 0.3")
        assert f" {metric} (paired t" in found[wrong]["status"]
        assert found[right]["best_set"] and not found[wrong]["best_set"]


def test_rows_with_a_record_are_not_run_again_and_only_what_was_asked_for_is(scripts, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path))
    sheets, run = scripts.ssi_sheets, []

    def make(settings, where):
        run.append(settings)
        dataset = {"name": "x", "sha256": "0" * 64, "counts": {"n": 1}, "groups": {}, "differs": "substitute: x"}
        return sheets.Sheet("made", "up", "003", dataset, where, 0.0)

    def fill(row):
        return lambda sheet: run.append(row) or sheet.record(row, [{"map": np.array([0.5, 0.6])}], config={}, dev={})

    plans = {name: sheets.Plan(make, {row: fill(row) for row in "ab"}, {}) for name in ("up", "down")}

    def main(*arguments):
        run.clear()
        sheets.main("doc", "made", plans, quick="little", full="much", of_quick=("up",),
                    arguments=["--out", str(tmp_path), *arguments])
        return run

    assert main("--rows", "a") == ["little", "a"]
    assert main() == ["little", "b"] and main() == [] and main("--judge") == []
    assert main("--again", "--rows", "b") == ["little", "b"]
    assert {record["best_set"] for record in records.read_all(tmp_path).values()} == {True}
    assert str(tmp_path) in capsys.readouterr().out


def test_a_rate_that_diverges_is_not_taken(scripts, tmp_path):
    sheets, rates = scripts.ssi_sheets, []

    def fit(*, seed, max_iter, validate, learning_rate):
        rates.append(learning_rate)
        if learning_rate == 9.0:
            raise FloatingPointError
        return SimpleNamespace(history=[{"loss": 1 / learning_rate, "validation": 0.5}], params=None)

    def record(row, found, *, config, curve, **_):
        assert config["learning_rate"] == 1.0
        assert curve == [{"learning_rate": one, "loss": loss} for one, loss in ((0.5, 2.0), (1.0, 1.0), (9.0, None))]

    part = sheets.Part(scripts.bai2010_clicks.judged_links(np.array([[0, 1]]), np.array([[0, 2]]), 3), None, None)
    settings = SimpleNamespace(validated=None, grid_iter=1, max_iter=2, seeds=(0, 1), triples=1, patience=1)
    table = SimpleNamespace(settings=settings, parts={"dev": part, "test": part}, sheet=SimpleNamespace(record=record))
    sheets.search(table, "x", fit, [{}], lambda params, part: np.array([[0.0, 2.0, 1.0]]), rates=(0.5, 1.0, 9.0))
    assert rates == [0.5, 1.0, 9.0, 1.0, 1.0]
