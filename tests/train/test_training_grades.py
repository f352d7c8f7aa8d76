"""Training on grades: what they become, what it stops by, bad ones; and the correlation itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from jaxsim.data import pairs, splits
from jaxsim.evaluate import mates, metrics
from jaxsim.methods.projections.agreement import agreement
from jaxsim.optim.monitor import closed_form
from jaxsim.train import Settings, graded, judgements, train, training

MSE = {"method": "s2net-mse", "dim": 12, "max_iter": 10}
WORDS = [["red", "boat", "sea"], ["blue", "car", "road"], ["old", "tree", "leaf"], ["new", "phone", "call"]]


def made_up(number=160, seed=0):
    """Grades from 1 to 5 by synonyms: words that no two texts share tell how alike they are."""
    rng = np.random.default_rng(seed)
    left, right, grades = [], [], []
    for i in range(number):
        topic, other = rng.integers(0, 4, 2)
        other = topic if i % 2 else other
        left.append(" ".join([*rng.permutation(WORDS[topic])[:2], f"a{i}", "the"]))
        right.append(" ".join([*(f"{word}x" for word in rng.permutation(WORDS[other])[:2]), f"b{i}", "the"]))
        grades.append(1.0 + 4 * (topic == other))
    return pairs.make("graded", map(str, range(number)), left, right, languages=("en", "en")), np.array(grades)


@pytest.mark.parametrize("shape", [(7,), (1,), (4, 9)])
def test_spearman_is_that_of_scipy_with_ties(rng, shape):
    for _ in range(20):
        scores, labels = rng.integers(0, 4, shape).astype(float), rng.integers(0, 3, shape).astype(float)
        result = np.atleast_1d(metrics.spearman(scores, labels))
        for value, one, other in zip(result, np.atleast_2d(scores), np.atleast_2d(labels), strict=True):
            constant = np.ptp(one) == 0 or np.ptp(other) == 0
            expected = 0.0 if constant else scipy.stats.spearmanr(one, other)[0]
            assert value == pytest.approx(expected, abs=1e-12)
    assert metrics.spearman([1, 2, 3], [3, 2, 1]) == -1 and metrics.spearman([-np.inf, 0, 9], [0, 1, 2]) == 1


def test_grades_are_learned_and_it_stops_by_their_correlation():
    given, grades = made_up()
    model = train(given, Settings(**MSE), dev=0.3, grades=grades)
    facts = model.training
    assert set(facts["dev"]) == {"spearman", "untrained_spearman"} and facts["grades"] == {"lowest": 1, "highest": 5}
    assert facts["dev"]["spearman"] > max(0.5, facts["dev"]["untrained_spearman"] + 0.3)
    assert max(facts["history"]["validation"]) == pytest.approx(facts["dev"]["spearman"], abs=1e-4)
    cosines = model.pair_similarity(given.left, given.right)
    assert cosines[grades == 5].mean() > 0.5 > 0.3 > cosines[grades == 1].mean()


def test_the_scale_of_grades_does_not_matter_and_grades_in_the_unit_interval_stay(monkeypatch):
    given, grades = made_up(60)
    seen = []

    def spy(left, right, chosen, *, init, **options):
        seen.append(np.unique(np.asarray(chosen.labels)).tolist())
        return closed_form(init)

    monkeypatch.setattr(graded.s2net_mse, "fit", spy)
    grades[0] = 4
    facts = [train(given, Settings(**MSE), dev=0, grades=some).training["grades"] for some in
             (grades, 10 * grades - 700, np.where(grades > 3, 0.75, 0.25), grades - 3)]  # fmt: skip
    assert seen == [[0.0, 0.75, 1.0]] * 2 + [[0.25, 0.75]] + [[0.0, 0.75, 1.0]]
    assert [tuple(one.values()) for one in facts] == [(1, 5), (-690, -650), (0, 1), (-2, 2)]


def test_equal_pairs_count_once_with_the_mean_of_their_grades(monkeypatch):
    left = ["red boat", "Red boat!", "blue car", "old tree", "red boat"]
    right = ["a ship", "a ship", "a road", "a leaf", "a leaf"]
    seen, messages = [], []

    def spy(*given, init, **options):
        seen.append(given)
        return closed_form(init)

    monkeypatch.setattr(graded.s2net_mse, "fit", spy)
    given = pairs.make("twice", "abcde", left, right, languages=("en", "en"))
    model = train(given, Settings(**MSE), dev=0, grades=[0, 0.5, 1, 0, 1], say=messages.append)
    queries, documents, chosen = seen[0]
    assert (queries.num_docs, documents.num_docs) == (3, 3) and any("left out 1 pair" in line for line in messages)
    result = {(int(q), int(d)): float(y) for q, d, y in zip(*chosen, strict=True)}
    assert result == {(0, 0): 0.25, (1, 1): 1.0, (2, 2): 0.0, (0, 2): 1.0}
    assert np.isfinite(model.encode(left)).all()


def test_a_stopped_training_goes_on_bit_for_bit(tmp_path):
    (given, grades), (dev, others) = made_up(80), made_up(30, seed=1)
    whole = train(given, Settings(**MSE), dev=0.3, grades=grades)
    train(given, Settings(**MSE | {"max_iter": 4}), dev=0.3, grades=grades, checkpoint=tmp_path / "c")
    again = train(given, Settings(**MSE), dev=0.3, grades=grades, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.params.weights, whole.params.weights)
    held = {"dev": dev, "dev_grades": others}
    train(given, Settings(**MSE), grades=grades, checkpoint=tmp_path / "own", **held)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        train(given, Settings(**MSE), grades=grades[::-1], checkpoint=tmp_path / "own", **held)
    with pytest.raises(ValueError, match="checkpoint: expected one of a training with these held-out pairs, got one"):
        train(given, Settings(**MSE), grades=grades, checkpoint=tmp_path / "own", dev=dev, dev_grades=others[::-1])


def test_dev_pairs_of_ones_own_and_held_out_ones_of_one_grade():
    (given, grades), (dev, others) = made_up(60), made_up(30, seed=1)
    facts = train(given, Settings(**MSE), dev=dev, grades=grades, dev_grades=others).training
    assert facts["pairs"] == {"all": 60, "train": 60, "dev": 30}
    # What is held out depends on identifiers alone, since no text is a near-duplicate of another.
    chosen = splits.split(np.arange(60), given.ids, shares=(0.8, 0.2, 0.0))["dev"]
    same = grades.copy()
    same[chosen] = 3
    messages = []
    facts = train(given, Settings(**MSE), dev=0.2, grades=same, say=messages.append).training
    assert "no pairs held out: those chosen all have one grade; give dev pairs of your own to stop by" in messages
    assert facts["pairs"]["dev"] == 0 and facts["dev"] == {} and facts["fit"]["steps"] == 10


@pytest.mark.parametrize(("options", "message"), [
    ({}, "grades: expected a grade for every pair .--label COLUMN.*, got none"),
    ({"grades": [1.0] * 60}, "grades: expected at least two different grades, got 1 for every pair"),
    ({"grades": [1.0, 2.0]}, r"grades: expected 60 numbers, one a pair, got \(2,\)"),
    ({"grades": [float("nan")] + [1.0] * 59}, "grades: expected no NaN, got NaN"),
    ({"grades": [float("inf")] + [1.0] * 59}, "grades: expected finite numbers, got infinity"),
    ({"grades": np.arange(60), "dev_grades": [1]}, "dev_grades: expected none, without dev pairs, got some"),
    ({"grades": np.arange(60), "dev": "own"}, "dev_grades: expected a grade for every pair"),
    ({"grades": np.arange(60), "dev": "own", "dev_grades": [3] * 60}, "dev_grades: expected at least two different"),
    ({"grades": np.arange(60), "method": "opca"}, "for opca .s2net-mse and s2net-pref learn from grades"),
])
def test_bad_grades_are_refused(options, message):
    given, _ = made_up(60)
    method = options.pop("method", "s2net-mse")
    options["dev"] = given if options.get("dev") == "own" else 0.2
    with pytest.raises(ValueError, match=message):
        train(given, Settings(method=method, dim=3), **options)


@pytest.mark.parametrize(("left", "right", "grades", "message"), [
    (["one pair"], ["its mate"], [1], "grades: expected at least two different grades"),
    (["a b", "c d"] * 2, ["e f", "g h"] * 2, [1, 2, 3, 2], "grades: expected at least two different grades, got 2 for"),
    (["", "!"], ["?", ""], [0, 1], "pairs: expected texts with words"),
])
def test_pairs_that_grades_cannot_be_learned_from_are_refused(left, right, grades, message):
    given = pairs.make("few", map(str, range(len(left))), left, right, languages=("en", "en"))
    with pytest.raises(ValueError, match=message):
        train(given, Settings(**MSE), dev=0, grades=grades)


def graded_candidates(number=24, seed=0):
    """Queries of one topic each, with candidates of that topic (2), of both (1) and of another (0), by synonyms."""
    rng = np.random.default_rng(seed)
    left, right, grades = [], [], []
    for query in range(number):
        topic = query % 4
        kinds = [(2, (topic, topic)), (1, (topic, topic - 1)), (0, (topic - 1, topic - 2))]
        for grade, topics in (kinds[i] for i in rng.permutation(3)):
            for copy in range(2):
                words = [f"{rng.choice(WORDS[one])}x" for one in topics for _ in range(2)]
                left.append(f"{' '.join(WORDS[topic])} a{query}")
                right.append(" ".join([*words, f"b{query}{grade}{copy}"]))
                grades.append(float(grade))
    return pairs.make("candidates", map(str, range(len(left))), left, right, languages=("en", "en")), np.array(grades)


def test_preferences_are_learned_and_candidates_of_a_query_stay_together():
    given, grades = graded_candidates()
    said = []
    model = train(given, Settings(method="s2net-pref", dim=12, max_iter=15), dev=0.3, grades=grades, say=said.append)
    dev = model.training["dev"]
    assert set(dev) == {"auc", "ndcg@5", "untrained_auc", "untrained_ndcg@5"}
    assert dev["auc"] > 0.9 > 0.6 > dev["untrained_auc"] and dev["ndcg@5"] > dev["untrained_ndcg@5"]
    assert any("0 passed over with one grade alone" in line for line in said)
    assert model.training["pairs"]["train"] % 6 == 0  # whole queries


def test_lsa_that_has_no_direction_for_the_left_side_is_no_start():
    given, grades = graded_candidates()  # no word on both sides, and the right one has more: 8 dimensions are its own
    backwards = given.take(range(48)), 2 - grades[:48]  # dev pairs that a random start orders worse than chance
    settings = Settings(method="s2net-pref", dim=4, max_iter=1)
    worse = [train(given, replace(settings, seed=seed), grades=grades, dev=backwards[0], dev_grades=backwards[1])
             for seed in range(3)]
    losses = [model.training["history"]["loss"] for model in worse]
    assert all(first > last for first, last in losses)


def test_queries_of_one_grade_are_passed_over_and_counted():
    given, grades = graded_candidates(8)
    grades[:6] = 1.0
    messages = []
    train(given, Settings(method="s2net-pref", dim=5, max_iter=2), dev=0, grades=grades, say=messages.append)
    assert any("7 queries with" in line and "1 passed over" in line for line in messages)
    grades[:] = np.repeat(np.arange(8.0), 6)
    with pytest.raises(ValueError, match="pairs: expected a query with candidates of different grades, got none"):
        train(given, Settings(method="s2net-pref", dim=5, max_iter=2), dev=0, grades=grades)


def test_held_out_queries_that_order_nothing_are_not_stopped_by():
    given, grades = graded_candidates(24)
    settings = Settings(method="s2net-pref", dim=5, max_iter=2)
    kept, messages = [], []
    held = training.split(mates.read(given), 0.3, settings, training.Grades(grades, None), kept.append)
    chosen = set(held.dev.ids)
    # Different queries still have different grades, but the candidates of one are alike.
    same = np.where([one in chosen for one in given.ids], np.repeat(np.arange(24.0), 6), grades)
    facts = train(given, settings, dev=0.3, grades=same, say=messages.append).training
    assert ("no pairs held out: no left text of those chosen has right ones of different grades; give dev pairs of "
            "your own to stop by") in messages
    assert facts["pairs"] == {"all": 144, "train": 144, "dev": 0} and facts["dev"] == {}
    dev = given.take(range(0, 48, 6))  # one candidate a query
    with pytest.raises(ValueError, match="dev_grades: expected a left text with right ones of different grades, for"):
        train(given, settings, grades=grades, dev=dev, dev_grades=np.arange(8.0))


def test_ranking_scores_of_queries(rng):
    cosines, queries = rng.random(12), np.repeat([0, 1, 2], 4)
    grades = np.array([3.0, 1, 1, 2, 1, 1, 1, 1, 1, 2, 3, 3])
    result = graded.ranking_scores(cosines, queries, grades)
    expected = []
    for query in (0, 2):  # query 1 has one grade
        rows = [(c, g) for c, q, g in zip(cosines, queries, grades, strict=True) if q == query]
        order = [a > b for a, g in rows for b, h in rows if g > h]
        expected.append(np.mean(order))
    assert result["auc"] == pytest.approx(np.mean(expected))


@pytest.mark.parametrize(("method", "shift"), [("s2net-mse", 0), ("s2net-mse", -3), ("s2net-pref", 0)])
def test_dimensions_are_weighed_by_held_out_pairs_that_belong_together(method, shift):
    (given, grades), (dev, others) = graded_candidates(24), graded_candidates(12, seed=1)
    settings = Settings(method=method, dim=12, max_iter=3)
    model = train(given, settings, grades=grades + shift, dev=dev, dev_grades=others + shift)
    some = np.flatnonzero(others > 0)  # also of grades from -3 to -1, of which none is above 0
    left, right = ([side[row] for row in some] for side in (dev.left, dev.right))
    expected = agreement(model.encode_query(left), model.encode_document(right))
    np.testing.assert_allclose(model.agreement, expected, atol=1e-6)
    everything = agreement(model.encode_query(dev.left), model.encode_document(dev.right))
    assert np.abs(everything - expected).max() > 1e-3


def test_too_few_held_out_pairs_above_the_lowest_grade_weigh_nothing():
    (given, grades), (dev, others) = graded_candidates(24), graded_candidates(12, seed=1)
    few = np.where(np.arange(len(others)) < 6 * 4, others, 0.0)
    assert 0 < np.count_nonzero(few) < 20 <= len(few)
    messages = []
    model = train(given, Settings(method="s2net-mse", dim=8, max_iter=3), grades=grades, dev=dev, dev_grades=few,
                  say=messages.append)
    assert model.agreement is None
    assert any(line.startswith("search weights all dimensions equally: fewer than 20 pairs above the lowest grade are "
                               "held out") for line in messages)


def test_judgements_are_drawn_by_any_seed_and_queries_without_a_pair_are_not_counted():
    texts = {str(number): f"text {number}" for number in range(30)}
    qrels = {"q": {"0": 1}, "r": {"1": 1, "gone": 2}, "unknown": {"2": 1}, "s": {"gone": 1}}
    queries = {"q": "one", "r": "two", "s": "three"}

    def drawn(seed):
        found, _, counts = judgements.graded_pairs(queries, texts, qrels, negatives=5, seed=seed)
        assert counts == {"queries": 2, "unknown": 3, "drawn": 10}
        return found.right

    assert drawn(-1) == drawn(-1) and len({drawn(seed) for seed in (-(2**63), -2, -1, 0, 1)}) == 5
    others, rng = [str(number) for number in range(1, 30)], np.random.default_rng(3)  # as before
    assert drawn(3)[1:6] == tuple(texts[others[row]] for row in sorted(rng.permutation(29)[:5]))


def test_equal_scores_do_not_profit_from_the_order_of_the_file():
    grades = np.array([2.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    result = [graded.ranking_scores(np.zeros(7), np.zeros(7, int), order) for order in (grades, grades[::-1])]
    assert result[0] == result[1] == {"auc": 0.5, "ndcg@5": 0.0}
