"""Link retrieval against loops over every pair of documents."""

from __future__ import annotations

import numpy as np
import pytest
import reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.evaluate import ranking
from jaxsim.sparse import Vectors

N = 9
LINKS = np.array([[0, 1], [0, 5], [2, 0], [2, 3], [2, 7], [8, 4]])
OUT = [np.array([[0, 0], [2, 2], [8, 8]]), np.array([[0, 7], [2, 1]])]


def both_parts(rng):
    """Scores with many ties, whole numbers so that they are exact."""
    return rng.integers(0, 3, (N, 2)).astype(float), rng.integers(0, 2, (N, 4)).astype(float)


def vectors(parts):
    return Vectors(parts[0], sparse.from_scipy(scipy.sparse.csr_matrix(parts[1])))


def expected(scores):
    """Loops: lists without what is left out; pairs counted one by one."""
    out = {tuple(pair) for part in OUT for pair in part.tolist()}
    links = {tuple(pair) for pair in LINKS.tolist()}
    result = {name: [] for name in (*ranking.METRICS, "rank_loss@half")}
    for query in sorted({a for a, _ in links}):
        listed = [d for d in range(N) if (query, d) not in out]
        labels = [int((query, d) in links) for d in listed]
        values = [scores[query][d] for d in listed]
        better = [v for v, label in zip(values, labels, strict=True) if label]
        worse = [v for v, label in zip(values, labels, strict=True) if not label]
        result["rank_loss"].append(np.mean([a <= b for a in better for b in worse]))
        result["rank_loss@half"].append(np.mean([(a < b) + (a == b) / 2 for a in better for b in worse]))
        result["map"].append(reference.average_precision(values, labels))
        result["p@10"].append(reference.precision_at(values, labels, 10))
    return result


def test_scores_of_dense_and_sparse_parts_match_the_loops(rng, monkeypatch):
    monkeypatch.setattr(ranking, "_BLOCK", 2)  # three queries: a whole block and a part of one
    truth = ranking.judged(LINKS, (N, N), left_out=OUT)
    assert truth.queries.tolist() == [0, 2, 8]
    for _ in range(5):
        left, right = both_parts(rng), both_parts(rng)
        result = ranking.per_query(vectors(left), vectors(right), truth, half_ties=True)
        assert result["rank_loss@half"].dtype == np.float64 and (result["rank_loss@half"] < result["rank_loss"]).any()
        for name, values in expected(left[0] @ right[0].T + left[1] @ right[1].T).items():
            np.testing.assert_allclose(result[name], values, atol=1e-12)


def test_a_query_without_other_documents_loses_nothing_and_one_without_links_is_none():
    truth = ranking.judged([[1, 0], [1, 2]], (3, 3), left_out=[[[1, 1]]])
    documents = Vectors(np.ones((3, 1)))
    result = ranking.per_query(documents, documents, truth, half_ties=True)
    assert result["rank_loss"].tolist() == result["rank_loss@half"].tolist() == [0.0]
    assert result["map"].tolist() == [1.0]


def test_equal_scores_everywhere_are_all_wrong_or_half():
    truth = ranking.judged([[0, 1]], (1, 4), left_out=[[[0, 0]]])
    sides = Vectors(np.zeros((1, 1))), Vectors(np.zeros((4, 1)))
    result = ranking.scores(*sides, truth)
    assert result["rank_loss"] == 1.0 and result["map"] == 1.0  # of equal scores the lowest row comes first
    assert ranking.scores(*sides, truth, half_ties=True) == {**result, "rank_loss@half": 0.5}


def test_the_rank_loss_with_half_ties_is_one_less_the_auc(rng):
    scores, labels = rng.integers(0, 4, (5, 30)).astype(float), rng.random((5, 30)) < 0.3
    truth = ranking.judged(np.argwhere(labels), labels.shape)
    losses = ranking.per_query(Vectors(scores), Vectors(np.eye(30)), truth, half_ties=True)["rank_loss@half"]
    expected = [1 - reference.auc(row, label.astype(int)) for row, label in zip(scores, labels, strict=True)]
    np.testing.assert_allclose(losses, expected, atol=1e-12)


@pytest.mark.parametrize(("call", "message"), [
    (lambda: ranking.judged([], (3, 3)), "links: expected at least one link, got none"),
    (lambda: ranking.judged([[0, 3]], (3, 3)), "links: expected rows of 3 queries and 3 documents"),
    (lambda: ranking.judged([[0, 1]], (3, 3), left_out=[[[-1, 1]]]), "left_out: expected rows of 3 queries"),
    (lambda: ranking.judged([[0, 1]], (3, 3), left_out=[[[0, 1]]]), "links: expected none of the pairs left out"),
    (lambda: ranking.scores(Vectors(np.ones((3, 1))), Vectors(np.ones((2, 1))), ranking.judged([[0, 1]], (3, 3))),
     "right: expected 3 documents, got 2"),
    (lambda: ranking.scores(Vectors(np.ones((2, 1))), Vectors(np.ones((3, 1))), ranking.judged([[2, 1]], (3, 3))),
     "left: expected more than 2 queries, got 2"),
])
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
