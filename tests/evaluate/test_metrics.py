from __future__ import annotations

import math
import re

import numpy as np
import pytest
import reference
from sklearn import metrics as sklearn_metrics

from jaxsim.evaluate import metrics

BINARY = {
    "auc": metrics.auc,
    "max_f1": metrics.max_f1,
    "average_precision": metrics.average_precision,
    "precision_at": lambda s, y: metrics.precision_at(s, y, k=3),
    "ndcg": lambda s, y: metrics.ndcg(s, y, k=3),
    "tpr_at_fpr": lambda s, y: metrics.tpr_at_fpr(s, y, fpr=0.25),
}
SLOW = {
    "auc": reference.auc,
    "max_f1": reference.max_f1,
    "average_precision": reference.average_precision,
    "precision_at": lambda s, y: reference.precision_at(s, y, 3),
    "ndcg": lambda s, y: reference.ndcg(s, y, 3, float),
    "tpr_at_fpr": lambda s, y: reference.tpr_at_fpr(s, y, 0.25),
}
LABELS_OF_BOTH_KINDS = ["auc", "tpr_at_fpr"]


def _lists(rng, levels=None, queries=6, docs=11):
    scores = rng.standard_normal((queries, docs)) if levels is None else rng.integers(levels, size=(queries, docs))
    labels = rng.integers(2, size=(queries, docs))
    labels[:, 0], labels[:, 1] = 0, 1
    return scores, labels


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("levels", [None, 4, 1], ids=["no ties", "ties", "all equal"])
def test_equals_the_definition_query_by_query(rng, name, levels):
    scores, labels = _lists(rng, levels)
    result = BINARY[name](scores, labels)
    assert result.shape == (6,) and result.dtype == np.float64
    np.testing.assert_allclose(result, [SLOW[name](s, y) for s, y in zip(scores, labels, strict=True)], rtol=1e-12)
    one = BINARY[name](scores[2], labels[2])
    assert np.shape(one) == () and float(one) == result[2]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32])
def test_any_dtype_and_unchanged_arguments(rng, name, dtype):
    scores, labels = _lists(rng)
    kept = scores.copy(), labels.copy()
    result = BINARY[name](scores.astype(np.float32), labels.astype(dtype))
    np.testing.assert_array_equal(result, BINARY[name](scores.astype(np.float32).tolist(), labels.tolist()))
    np.testing.assert_array_equal(scores, kept[0])
    np.testing.assert_array_equal(labels, kept[1])


def test_goldens():
    scores, labels = [3.0, 2.0, 2.0, 1.0], [0, 1, 0, 1]
    assert metrics.auc(scores, labels) == 0.5 / 4
    assert metrics.max_f1(scores, labels) == 2 * 2 / (2 * 2 + 2)
    assert metrics.average_precision(scores, labels) == (1 / 2 + 2 / 4) / 2
    assert metrics.precision_at(scores, labels, k=2) == 1 / 2
    dcg, ideal = 1 / math.log2(3) + 1 / math.log2(5), 1 + 1 / math.log2(3)
    np.testing.assert_allclose(metrics.ndcg(scores, labels, k=4), dcg / ideal, rtol=1e-15)
    assert metrics.tpr_at_fpr(scores, labels, fpr=0.5) == 0
    assert metrics.tpr_at_fpr(scores, labels, fpr=1.0) == 1
    assert metrics.rank_loss([2.0, 1.0, 1.0], [1.0, 1.0, 2.0]) == 2 / 3


def test_ties_go_to_the_lower_index():
    for name in ("average_precision", "precision_at", "ndcg"):
        first, last = BINARY[name]([1, 1, 1, 1, 1], [1, 0, 0, 0, 0]), BINARY[name]([1, 1, 1, 1, 1], [0, 0, 0, 0, 1])
        assert first > last


def test_all_equal_scores():
    labels = [1, 0, 0, 1]
    assert metrics.auc(np.ones(4), labels) == 0.5
    assert metrics.max_f1(np.ones(4), labels) == 2 / 3
    assert metrics.tpr_at_fpr(np.ones(4), labels, fpr=0.9) == 0
    assert metrics.rank_loss(np.ones(4), np.ones(4)) == 1
    np.testing.assert_array_equal(metrics.accuracy_at_1(np.ones((3, 3)), np.arange(3)), 0)
    np.testing.assert_array_equal(metrics.reciprocal_rank(np.ones((3, 3)), np.arange(3)), 1 / 3)


@pytest.mark.parametrize("gain", [metrics.linear_gain, metrics.exponential_gain])
@pytest.mark.parametrize("k", [1, 3, 11, 50])
def test_ndcg_of_graded_labels(rng, gain, k):
    scores, labels = rng.integers(5, size=(8, 11)), rng.integers(4, size=(8, 11))
    slow = [reference.ndcg(s, y, k, gain) for s, y in zip(scores, labels.astype(float), strict=True)]
    np.testing.assert_allclose(metrics.ndcg(scores, labels, k=k, gain=gain), slow, rtol=1e-12)


def test_gains_differ_on_grades_only():
    scores = [1.0, 2.0, 3.0]
    kinds = [metrics.linear_gain, metrics.exponential_gain]
    graded = [float(metrics.ndcg(scores, [2, 1, 0], k=3, gain=gain)) for gain in kinds]
    binary = [float(metrics.ndcg(scores, [1, 1, 0], k=3, gain=gain)) for gain in kinds]
    np.testing.assert_allclose(graded[1], (1 / math.log2(3) + 3 / 2) / (3 + 1 / math.log2(3)), rtol=1e-15)
    assert graded[0] != graded[1] and binary[0] == binary[1]
    with pytest.raises(ValueError, match="gain: expected at most 1e.300"):
        metrics.ndcg(scores, [2, 1, 2000], k=3, gain=metrics.exponential_gain)


def test_agrees_with_scikit_learn_where_definitions_coincide(rng):
    scores, labels = rng.standard_normal(400), rng.integers(2, size=400)
    tied = rng.integers(7, size=400)
    np.testing.assert_allclose(metrics.auc(tied, labels), sklearn_metrics.roc_auc_score(labels, tied), rtol=1e-12)
    expected = sklearn_metrics.average_precision_score(labels, scores)
    np.testing.assert_allclose(metrics.average_precision(scores, labels), expected, rtol=1e-12)
    grades = rng.integers(5, size=(4, 400))
    fresh = rng.standard_normal((4, 400))
    expected = sklearn_metrics.ndcg_score(grades, fresh, k=10)
    np.testing.assert_allclose(metrics.ndcg(fresh, grades, k=10).mean(), expected, rtol=1e-12)
    fpr, tpr, thresholds = sklearn_metrics.roc_curve(labels, tied, drop_intermediate=False)
    for ours, theirs in zip(metrics.roc_curve(tied, labels), (fpr, tpr, thresholds), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_agrees_with_trec_eval_without_ties(rng):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    scores, labels = rng.permutation(30 * 5).reshape(5, 30) / 64, rng.integers(3, size=(5, 30))
    judged = {f"q{q}": {f"d{d}": int(y) for d, y in enumerate(row)} for q, row in enumerate(labels)}
    run = {f"q{q}": {f"d{d}": float(s) for d, s in enumerate(row)} for q, row in enumerate(scores)}
    measures = {"map", "P.5,50", "ndcg_cut.10", "recip_rank"}
    theirs = pytrec_eval.RelevanceEvaluator(judged, measures).evaluate(run)
    ours = {
        "map": metrics.average_precision(scores, labels > 0),
        "P_5": metrics.precision_at(scores, labels > 0, k=5),
        "P_50": metrics.precision_at(scores, labels > 0, k=50),
        "ndcg_cut_10": metrics.ndcg(scores, labels, k=10),
    }
    for name, values in ours.items():
        np.testing.assert_allclose(values, [theirs[f"q{q}"][name] for q in range(5)], rtol=1e-12, err_msg=name)


@pytest.mark.parametrize("levels", [None, 3])
def test_mates(rng, levels):
    scores = rng.standard_normal((9, 7)) if levels is None else rng.integers(levels, size=(9, 7))
    target = rng.integers(7, size=9)
    slow = np.array([reference.mate_rank(s, t) for s, t in zip(scores, target, strict=True)])
    np.testing.assert_array_equal(metrics.reciprocal_rank(scores, target), 1 / slow)
    np.testing.assert_array_equal(metrics.accuracy_at_1(scores, target), slow == 1)


def test_rank_loss_shapes(rng):
    better, worse = rng.integers(4, size=(5, 8)), rng.integers(4, size=(5, 8))
    slow = [reference.rank_loss(a, b) for a, b in zip(better, worse, strict=True)]
    np.testing.assert_allclose(metrics.rank_loss(better, worse), slow, rtol=1e-15)
    against_one = [reference.rank_loss([a[0]] * 8, b) for a, b in zip(better, worse, strict=True)]
    np.testing.assert_allclose(metrics.rank_loss(better[:, :1], worse), against_one, rtol=1e-15)


@pytest.mark.parametrize("name", BINARY)
def test_lists_without_a_relevant_document(name):
    if name in LABELS_OF_BOTH_KINDS:
        with pytest.raises(ValueError, match="labels: expected both 0 and 1 in every list, got only 0 in list 1"):
            BINARY[name]([[1, 2], [3, 4]], [[0, 1], [0, 0]])
    else:
        assert BINARY[name]([1.0, 2.0], [0, 0]) == 0


def test_infinite_scores_and_one_document():
    scores = [-np.inf, np.inf, -np.inf, 0.0]
    assert metrics.auc(scores, [0, 1, 0, 1]) == 1
    assert metrics.max_f1(scores, [1, 0, 1, 0]) == 2 / 3
    assert metrics.average_precision([0.0], [1]) == metrics.precision_at([0.0], [1], k=1) == 1
    assert metrics.ndcg([0.0], [1], k=1) == metrics.max_f1([0.0], [1]) == 1
    assert metrics.accuracy_at_1([[0.0]], [0]).tolist() == [1.0]


def test_millions_of_scores_are_exact():
    scores = np.arange(2_000_000) // 2
    labels = np.tile([0, 1], 1_000_000)
    n = 1_000_000
    assert metrics.auc(scores, labels) == (n * (n - 1) / 2 + n / 2) / n**2 == 0.5
    assert metrics.max_f1(scores, labels) == 2 / 3
    assert metrics.tpr_at_fpr(scores, labels, fpr=0.1) == 0.1


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1.0, 2.0], [0, 1, 1], "labels: expected shape (2,) (as scores), got (3,)"),
        ([1.0, np.nan], [0, 1], "scores: expected no NaN, got NaN"),
        ([1.0, 2.0], [0, np.nan], "labels: expected no NaN, got NaN"),
        ([], [], "scores: expected at least one value, got shape (0,)"),
        (1.0, 1, "scores: expected at least one value, got shape ()"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), "scores: expected shape (num_docs,) or (num_queries, num_docs)"),
        ([1j, 2.0], [0, 1], "scores: expected real numbers, got dtype complex128"),
        (["a", "b"], [0, 1], "scores: expected real numbers"),
        ([[1.0], [1.0, 2.0]], [[0], [1, 0]], "scores: expected an array of real numbers, got ragged lists"),
        ([1.0, 2.0], [0, -1], "labels: expected"),
    ],
)
def test_refuses(name, scores, labels, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        BINARY[name](scores, labels)


@pytest.mark.parametrize("name", sorted(set(BINARY) - {"ndcg"}))
def test_refuses_grades_where_labels_are_binary(name):
    with pytest.raises(ValueError, match="labels: expected 0 or 1, got 2"):
        BINARY[name]([1.0, 2.0, 3.0], [0, 1, 2])


@pytest.mark.parametrize("metric", [metrics.precision_at, metrics.ndcg])
@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_refuses_k(metric, k):
    with pytest.raises(ValueError, match=f"k: expected a whole number of at least 1, got {k}"):
        metric([1.0, 2.0], [0, 1], k=k)


@pytest.mark.parametrize("fpr", [-0.1, 1.1, float("nan")])
def test_refuses_rates(fpr):
    with pytest.raises(ValueError, match="fpr: expected a rate in"):
        metrics.tpr_at_fpr([1.0, 2.0], [0, 1], fpr=fpr)


def test_refuses_gains():
    with pytest.raises(ValueError, match="labels: expected finite grades of at least 0, got inf"):
        metrics.ndcg([1.0, 2.0], [0, np.inf], k=1)
    with pytest.raises(ValueError, match="gain: expected a function that keeps shape"):
        metrics.ndcg([1.0, 2.0], [0, 1], k=1, gain=np.sum)
    with pytest.raises(ValueError, match="gain: expected a function whose values are at least 0, got -1"):
        metrics.ndcg([1.0, 2.0], [0, 1], k=1, gain=np.negative)


@pytest.mark.parametrize("metric", [metrics.reciprocal_rank, metrics.accuracy_at_1])
@pytest.mark.parametrize(
    ("scores", "target", "message"),
    [
        ([1.0, 2.0], [0], "scores: expected shape (num_queries, num_candidates), got (2,)"),
        (np.ones((2, 3)), [0], "target: expected shape (2,), one column a query, got (1,)"),
        (np.ones((2, 3)), [0, 3], "target: expected columns in [0, 3), got 3"),
        (np.ones((2, 3)), [0, -1], "target: expected columns in [0, 3), got -1"),
        (np.ones((2, 3)), [0.0, 1.0], "target: expected integers, got dtype float64"),
        (np.ones((0, 3)), np.zeros(0, int), "scores: expected at least one value, got shape (0, 3)"),
        ([[1.0, np.nan]], [0], "scores: expected no NaN, got NaN"),
    ],
)
def test_refuses_mates(metric, scores, target, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        metric(scores, target)


@pytest.mark.parametrize(
    ("positive", "negative"), [([1.0, 2.0], [1.0, 2.0, 3.0]), ([1.0], [[1.0]]), ([], []), ([np.nan], [1.0])]
)
def test_refuses_triples(positive, negative):
    with pytest.raises(ValueError, match="(positive|negative): expected"):
        metrics.rank_loss(positive, negative)
