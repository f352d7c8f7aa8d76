"""`verbose_queries` on made-up documents: starts that are baselines, folds that keep judgements apart, its measures."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest

from experiments import kit
from experiments.kit import judge, records
from experiments.tweak import verbose_queries as script

NUM = 30
SETTINGS = dataclasses.replace(script.QUICK, preferences=300, top=20, max_iter=20, limit=None)


def words(rng):
    """Documents of topics, and queries that name two words of theirs among others that are every topic's."""
    topics = [[f"t{topic}w{i}" for i in range(8)] for topic in range(10)]
    common = [f"c{i}" for i in range(12)]
    topic = rng.integers(0, 10, 80)
    documents = [[*rng.choice(topics[one], 6), *rng.choice(common, 6)] for one in topic]
    asked = np.arange(NUM) % 10
    queries = [["Find", *rng.choice(common, 8), *rng.choice(topics[one], 2)] for one in asked]
    grades = (asked[:, None] == topic[None, :]) * rng.integers(1, 4, (NUM, 80))
    grades[np.arange(NUM), rng.integers(0, 80, NUM)] = 1
    return documents, queries, grades


@pytest.fixture(scope="module")
def task():
    """Of them."""
    return script.made(*words(np.random.default_rng(0)), {"c0": 9, "c1": 5, "find": 3})


def fitted(task, train, seed=(0, 1), kind="bm25", alphas=(0.001, 1.0)):
    """One fold."""
    return script.fit_fold(task, train, kind=kind, seed=seed, inner=2, dev=500, preferences_drawn=300, top=20,
                           gammas=(10.0,), alphas=alphas, max_iter=20)


@pytest.mark.parametrize("kind", script.STARTS)
def test_the_start_is_the_baseline_to_the_last_bit(task, kind):
    columns, start = script.described(task, np.arange(0, NUM, 2), script.STARTS[kind])
    assert columns.shape == (task.counts.nnz, len(script.NAMES)) and sorted(set(start)) == [0, 1]
    assert np.array_equal(columns @ start, script.baseline(task, kind))


def test_the_baselines_are_bm25_and_cosines_as_their_equations_have_them(task):
    documents, queries, _ = words(np.random.default_rng(0))
    everything = np.arange(NUM)
    found = {kind: script.scored(task, kind, everything, script.baseline(task, kind)) for kind in script.STARTS}
    df = {word: sum(word in one for one in documents) for one in documents for word in one}
    query, document = [word.lower() for word in queries[4]], documents[7]
    length = np.mean([len(one) for one in documents])
    expected = sum(math.log(1 + (80 - df[word] + 0.5) / (df[word] + 0.5)) * document.count(word) * 2.2
                   / (document.count(word) + 1.2 * (0.25 + 0.75 * len(document) / length))
                   for word in query if word in document)
    assert found["bm25"][4, 7] == pytest.approx(expected, rel=1e-5)
    weights = {word: document.count(word) * math.log(80 / df[word]) for word in document}
    norm = math.sqrt(sum(value**2 for value in weights.values()))
    expected = sum(math.log(80 / df[word]) * weights[word] / norm for word in query if word in document)
    assert found["tfidf"][4, 7] == pytest.approx(expected, rel=1e-5)


def test_no_judgement_of_a_query_that_is_not_fitted_is_read(task, rng):
    test, train = np.arange(0, NUM, 3), np.setdiff1d(np.arange(NUM), np.arange(0, NUM, 3))
    first = fitted(task, train)
    grades = task.grades.copy()
    grades[test] = rng.permuted(grades[test], axis=1)
    again = fitted(dataclasses.replace(task, grades=grades), train)
    assert np.array_equal(first.params["terms"], again.params["terms"])
    assert first.params["chosen"] == again.params["chosen"]
    grades[train] = rng.permuted(grades[train], axis=1)
    other = fitted(dataclasses.replace(task, grades=grades), train)
    assert not np.array_equal(first.params["weights"], other.params["weights"])
    assert not task.judged(train).grades[test].any()


def test_steps_go_from_the_baseline_too_where_those_from_the_middle_end_below_it(task, monkeypatch):
    rows, alphas, given = np.arange(NUM), (1e-4, 1e-3, 1e-2, 0.1, 1.0), script.fit_weights

    def weights(apart, share, start, *, alpha, **settings):
        fit = given(apart, share, start, alpha=alpha, **settings)
        return fit._replace(params=start if alpha == alphas[-1] else -np.ones_like(start))

    assert fitted(task, rows, alphas=alphas).params["chosen"]["alpha"] < alphas[-1]
    monkeypatch.setattr(script, "fit_weights", weights)
    chosen = fitted(task, rows, alphas=alphas).params["chosen"]
    assert chosen["alpha"] == alphas[-1] and chosen["map"] == pytest.approx(chosen["map_at_start"])


def test_words_of_a_query_do_not_count_for_itself(task):
    place = script.NAMES.index("log_asked")
    columns = script.described(task, np.array([3]), "tf")[0]
    assert not columns[task.slots(3), place].any()
    assert any(columns[task.slots(row), place].any() for row in range(NUM) if row != 3)


def test_preferences_are_of_judged_documents_and_of_equally_many_a_query(task):
    columns, start = script.described(task, np.arange(NUM), "tf")
    rows = np.array([5, 2, 9])
    apart, owner = script.preferences(task, columns, rows, np.random.default_rng(0), kind="bm25", num=200, top=20)
    assert np.bincount(owner)[np.sort(rows)].tolist() == [67, 67, 66] and apart.dtype == np.float32
    scores = script.scored(task, "bm25", rows, script.baseline(task, "bm25"))
    for row, given in zip(rows, scores, strict=True):
        relevant = task.grades[row] > 0
        allowed = (given[relevant][:, None] - given[~relevant][None, :]).ravel() / given.max()
        drawn = (apart @ start)[owner == row]
        assert np.abs(drawn[:, None] - allowed[None, :]).min(axis=1).max() < 1e-5


def test_every_query_is_tested_once_and_near_duplicates_stay_together(task):
    twins = dataclasses.replace(task, groups=np.arange(NUM) // 2)
    deals = [script.dealt(twins, np.arange(NUM), 4, str(seed)) for seed in (0, 1)]
    for deal in deals:
        assert np.array_equal(np.sort(np.concatenate(deal)), np.arange(NUM))
        assert all(np.array_equal(part[::2] + 1, part[1::2]) for part in deal)
    assert any(not np.array_equal(*both) for both in zip(*deals, strict=True))


def test_measures_agree_with_a_loop(task, rng):
    rows = np.array([1, 4, 20])
    scores = rng.random((3, 80))
    found = script.measured(task, rows, scores)
    for at, row in enumerate(rows):
        order, grades = np.argsort(-scores[at]), task.grades[row]
        hits, precision = 0, []
        for rank, document in enumerate(order, start=1):
            if grades[document] > 0:
                hits += 1
                precision.append(hits / rank)
        gain = [sum((2 ** float(grade) - 1) / math.log2(place + 2) for place, grade in enumerate(of[:10]))
                for of in (grades[order], np.sort(grades)[::-1])]
        assert found["map"][at] == pytest.approx(np.mean(precision))
        assert found["ndcg@10"][at] == pytest.approx(gain[0] / gain[1])


@pytest.mark.programs
def test_rows_have_a_value_a_query_and_learning_tells_topics_from_common_words(task, tmp_path):
    data = kit.Data(task, name="made up", sha256="0" * 64, differs="synthetic", counts={"queries": NUM})
    table = kit.Table("verbose_queries", "cisi", SETTINGS, "quick", data, tmp_path,
                      kit.Fits(tmp_path / "cache", say=lambda line: None))  # fmt: skip
    found = {row: records.read(table.fill(row, function)) for row, function in script.ROWS.items()}
    for row, record in found.items():
        with np.load(table.path(row).with_suffix(".npz")) as values:
            assert values["map"].shape == (NUM,) and not np.isnan(values["map"]).any()
            assert values["map_by_fold"].shape == (2, 3)
            parts = script.tested_parts(table)  # means of the queries that a fold tests
            sizes = np.array([[part.size for part in one] for one in parts])
            means = (values["map_by_fold"] * sizes).sum(axis=1) / NUM
            np.testing.assert_allclose(means.mean(), values["map"].mean(), rtol=1e-5)
        assert record["seeds"] == ([0, 1] if row.startswith("tweak") else [])
    assert found["tweak-bm25"]["metrics"]["map"]["mean"] > found["bm25"]["metrics"]["map"]["mean"]
    assert len(found["tweak-bm25"]["dev"]["folds"]) == 6
    test = judge.compare(found["tweak-bm25"], found["bm25"], "map", tmp_path)
    assert test["test"] == "paired t over folds, corrected" and test["n"] == 6
    for claim in script.CLAIMS:
        assert {claim.better, claim.worse} <= set(script.ROWS) and set(claim.tables) == set(script.TABLES)


def test_the_baseline_past_a_ladder_makes_no_edge():
    settings = script.FULL
    least, most = settings.gammas[0], settings.gammas[-1]
    for name, chosen, known in (
            ("gamma", {"gamma": least, "alpha": 0.01}, True), ("gamma", {"gamma": least, "alpha": 0.0}, False),
            ("gamma", {"gamma": most, "alpha": 0.01}, False), ("alpha", {"gamma": 1.0, "alpha": 10.0}, True),
            ("alpha", {"gamma": least, "alpha": 0.0}, False)):  # fmt: skip
        assert script.towards_baseline(name, chosen, settings) == known, (name, chosen)
