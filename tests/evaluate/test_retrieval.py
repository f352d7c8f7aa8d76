from __future__ import annotations

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference
import scipy.sparse
import scipy.spatial

from jaxsim import sparse
from jaxsim.evaluate import retrieval
from jaxsim.sparse import Vectors

PARTS = ["dense", "sparse", "both"]


def _vectors(rng, num_docs, parts, dtype=np.float32):
    """Documents with a few empty ones and a few exact duplicates, and all their columns as one matrix."""
    dense = rng.standard_normal((num_docs, 5)).astype(dtype)
    counts = (rng.integers(1, 4, size=(num_docs, 12)) * (rng.random((num_docs, 12)) < 0.3)).astype(dtype)
    for matrix in (dense, counts):
        matrix[num_docs // 2] = 0
        matrix[-1] = matrix[0]
    kept = [m for m, part in ((dense, "dense"), (counts, "sparse")) if parts in (part, "both")]
    vectors = Vectors(
        dense=jnp.asarray(dense) if parts != "sparse" else None,
        sparse=sparse.from_scipy(scipy.sparse.csr_matrix(counts)) if parts != "dense" else None,
    )
    return vectors, np.concatenate(kept, axis=1).astype(np.float64)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scorers_equal_the_definition(rng, parts, dtype):
    (left, a), (right, b) = _vectors(rng, 9, parts, dtype), _vectors(rng, 14, parts, dtype)
    rows = np.array([3, 0, 4])
    tolerance = 1e-6 if dtype == np.float32 else 1e-13
    cosines = retrieval.cosine(left, right)(rows)
    assert cosines.shape == (3, 14) and cosines.dtype == dtype
    np.testing.assert_allclose(cosines, reference.cosines(a[rows], b), atol=tolerance)
    np.testing.assert_allclose(retrieval.dot(left, right)(rows), a[rows] @ b.T, atol=20 * tolerance)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("block", [1, 4, 11, 1000])
def test_mate_ranks_equal_the_definition_in_both_directions(rng, parts, block):
    (left, a), (right, b) = _vectors(rng, 23, parts, np.float64), _vectors(rng, 23, parts, np.float64)
    scores = reference.cosines(a, b)
    # The loops round otherwise than the product does; what the tie rule needs is that equal documents stay equal.
    scores = np.round(scores, 12)
    forward, backward = retrieval.mate_ranks(left, right, block=block)
    np.testing.assert_array_equal(forward, [reference.mate_rank(row, i) for i, row in enumerate(scores)])
    np.testing.assert_array_equal(backward, [reference.mate_rank(row, i) for i, row in enumerate(scores.T)])
    assert forward.dtype == np.int64


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("num_docs", [1, 2, 127, 129, 301])
def test_a_collapsed_model_gets_the_last_rank(rng, parts, num_docs):
    row, words = rng.standard_normal((1, 301)).astype(np.float32), rng.random((1, 40)).astype(np.float32)
    left = Vectors(
        dense=jnp.asarray(np.repeat(row, num_docs, axis=0)) if parts != "sparse" else None,
        sparse=sparse.from_scipy(scipy.sparse.csr_matrix(np.repeat(words, num_docs, 0))) if parts != "dense" else None,
    )
    for result in retrieval.mate_ranks(left, left, block=100):
        np.testing.assert_array_equal(result, num_docs)
    scores, indices = retrieval.top_k(left, left, k=min(3, num_docs), block=100)
    np.testing.assert_array_equal(indices, np.tile(np.arange(min(3, num_docs)), (num_docs, 1)))
    np.testing.assert_allclose(scores, 1, atol=1e-5)


def test_empty_documents_tie_with_everything_at_zero():
    left = Vectors(jnp.zeros((3, 2)))
    for result in retrieval.mate_ranks(left, Vectors(jnp.eye(3, 2))):
        np.testing.assert_array_equal(result, 3)


@pytest.mark.parametrize("parts", PARTS)
@pytest.mark.parametrize("similarity", [retrieval.cosine, retrieval.dot])
@pytest.mark.parametrize("k", [1, 3, 14])
def test_top_k_equals_the_definition(rng, parts, similarity, k):
    (left, a), (right, b) = _vectors(rng, 9, parts, np.float64), _vectors(rng, 14, parts, np.float64)
    exact = np.round(reference.cosines(a, b) if similarity is retrieval.cosine else a @ b.T, 12)
    scores, indices = retrieval.top_k(left, right, k=k, block=4, similarity=similarity)
    for row, result, where in zip(exact, scores, indices, strict=True):
        best, places = reference.top_k(row, k)
        np.testing.assert_allclose(result, best, atol=1e-11)
        np.testing.assert_array_equal(where, places)
    assert indices.dtype == np.int64


@pytest.mark.parametrize("levels", [2, 5, 1000])
@pytest.mark.parametrize("num_candidates", [130, 1000, 4099])
@pytest.mark.parametrize("k", [1, 10, 100])
def test_top_k_keeps_the_tie_rule_across_chunks(rng, levels, num_candidates, k):
    table = (rng.integers(levels, size=(7, num_candidates)) - levels // 2).astype(np.float32)
    table[0] = np.where(rng.random(num_candidates) < 0.5, 0.0, -0.0)
    table[1] = -np.inf
    left, right = Vectors(np.ones((7, 1))), Vectors(np.ones((num_candidates, 1)))
    scores, indices = retrieval.top_k(left, right, k=k, block=3, similarity=lambda _, __: lambda rows: table[rows])
    expected = np.argsort(-table, axis=1, kind="stable")[:, :k]
    np.testing.assert_array_equal(indices, expected)
    np.testing.assert_array_equal(scores, np.take_along_axis(table, expected, axis=1))


@pytest.mark.parametrize("block", [1, 3, 100])
def test_ranks_of_any_scorer(rng, block):
    table, target = rng.integers(6, size=(8, 30)), rng.integers(30, size=8)
    expected = [reference.mate_rank(row, mate) for row, mate in zip(table, target, strict=True)]
    sizes = []

    def score(rows):
        sizes.append(len(rows))
        return table[rows].astype(float)

    np.testing.assert_array_equal(retrieval.ranks(score, 8, 30, target, block=block), expected)
    assert set(sizes) == {min(block, 8)}


def test_ranks_and_mate_ranks_agree(rng):
    (left, _), (right, _) = _vectors(rng, 300, "both"), _vectors(rng, 300, "both")
    forward, backward = retrieval.mate_ranks(left, right, block=64)
    rows = np.arange(300)
    np.testing.assert_array_equal(retrieval.ranks(retrieval.cosine(left, right), 300, 300, rows, block=50), forward)
    np.testing.assert_array_equal(retrieval.ranks(retrieval.cosine(right, left), 300, 300, rows), backward)


@pytest.mark.parametrize("search", ["mates", "top"])
def test_one_compilation_whatever_the_number_of_blocks(rng, search):
    function = (retrieval._not_below if search == "mates" else retrieval._best).compiled(jax.default_backend())
    left = Vectors(rng.standard_normal((517, 6)).astype(np.float32))
    before = function._cache_size()
    if search == "mates":
        retrieval.mate_ranks(left, left, block=96)
    else:
        retrieval.top_k(left, left, k=7, block=96)
    assert function._cache_size() == before + 1


def test_without_64_bit_types(rng, without_64_bits):
    (left, a), (right, b) = _vectors(rng, 40, "both"), _vectors(rng, 40, "both")
    with without_64_bits():
        forward, _ = retrieval.mate_ranks(left, right)
        scores, indices = retrieval.top_k(left, right, k=2)
    exact = reference.cosines(a, b)
    assert forward.dtype == indices.dtype == np.int64 and scores.dtype == np.float32
    assert [reference.mate_rank(np.round(row, 6), i) for i, row in enumerate(exact)] == forward.tolist()
    np.testing.assert_allclose(scores[:, 0], exact.max(axis=1), atol=1e-6)


def _refusals():
    dense, other = Vectors(np.ones((3, 2))), Vectors(np.ones((4, 2)))
    narrow = Vectors(sparse=sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((3, 2)))))
    wide = Vectors(sparse=sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((3, 5)))))
    torn = Vectors(np.ones((4, 2)), narrow.sparse)
    mates, top = retrieval.mate_ranks, retrieval.top_k
    return [
        (lambda: mates(dense, other), "right: expected 3 documents (as left), got 4"),
        (lambda: mates(dense, narrow), "right.dense: expected 2 columns (as left.dense), got absent"),
        (lambda: mates(narrow, wide), "right.sparse: expected 2 terms (as left.sparse), got 5 terms"),
        (lambda: mates(torn, torn), "left.sparse: expected 4 documents (as dense), got 3"),
        (lambda: mates(Vectors(np.ones(3)), dense), "left.dense: expected shape (num_docs, k), got shape (3,)"),
        (lambda: mates(dense, Vectors(np.ones((3, 7)))), "right.dense: expected 2 columns (as left.dense), got 7"),
        (lambda: mates(dense, Vectors(np.full((3, 2), np.nan))), "right.dense: expected finite values, got NaN"),
        (lambda: mates(Vectors(np.ones((0, 2))), dense), "left: expected at least one document, got none"),
        (lambda: mates(dense, dense, block=0), "block: expected a whole number of at least 1, got 0"),
        (lambda: mates(Vectors(), Vectors()), "expected a dense or a sparse part, got neither"),
        (lambda: top(dense, other, k=5), "k: expected at most 4 (candidates), got 5"),
        (lambda: top(dense, other, k=0), "k: expected a whole number of at least 1, got 0"),
        (lambda: top(dense, other, k=1, block=0), "block: expected a whole number of at least 1, got 0"),
        (lambda: top(dense, dense, k=1, similarity=_constant(np.ones((2, 2)))), "scores of shape (3, 3), got shape (2"),
        (lambda: top(dense, dense, k=1, similarity=_constant(_nan())), "expected no NaN, got NaN among queries 0 to 2"),
    ]


def _constant(table):
    return lambda left, right: lambda rows: table


def _nan():
    table = np.ones((3, 3))
    table[1, 2] = np.nan
    return table


@pytest.mark.parametrize("number", range(15))
def test_refuses(number):
    call, message = _refusals()[number]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


@pytest.mark.parametrize(
    ("table", "target", "message"),
    [
        (_nan(), [0, 1, 2], "score_block: expected no NaN, got NaN for query 1"),
        (np.ones((3, 4)), [0, 1, 2], "score_block: expected scores of shape (2, 3), got shape (2, 4)"),
        (np.ones((3, 3)), [0, 1], "target: expected shape (3,), one column a query, got (2,)"),
        (np.ones((3, 3)), [0, 1, 3], "target: expected columns in [0, 3), got 3"),
        (np.ones((3, 3)), [0.5, 1, 2], "target: expected integers, got dtype float64"),
    ],
)
def test_ranks_refuses(table, target, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        retrieval.ranks(lambda rows: table[rows], 3, 3, target, block=2)


@pytest.mark.parametrize(("queries", "candidates", "name"), [(0, 3, "num_queries"), (3, 0, "num_candidates")])
def test_ranks_refuses_nothing_to_rank(queries, candidates, name):
    with pytest.raises(ValueError, match=f"{name}: expected a whole number of at least 1, got 0"):
        retrieval.ranks(lambda rows: np.ones((3, 3))[rows], queries, candidates, np.zeros(queries, int))


DISTANCES = {retrieval.l1: "cityblock", retrieval.jensen_shannon: "jensenshannon"}


@pytest.mark.parametrize("similarity", DISTANCES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_scorers_of_topic_vectors_equal_the_definition(rng, similarity, dtype):
    a, b = rng.dirichlet(np.full(6, 0.3), 9).astype(dtype), rng.dirichlet(np.full(6, 0.3), 14).astype(dtype)
    a[2] = a[5] = [0, 0, 1, 0, 0, 0]
    result = similarity(Vectors(jnp.asarray(a)), Vectors(jnp.asarray(b)))(np.arange(9))
    distance = scipy.spatial.distance.cdist(a, b, DISTANCES[similarity])
    wanted = 1 - (distance / 2 if similarity is retrieval.l1 else distance**2 / np.log(2))
    assert result.dtype == dtype
    np.testing.assert_allclose(result, wanted, atol=1e-6 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("similarity", DISTANCES)
def test_a_document_without_topics_is_like_none(similarity):
    left, right = (Vectors(jnp.asarray(side)) for side in ([[0.0, 0.0], [0.9, 0.1]], [[0.0, 0.0], [0.1, 0.9]]))
    scores = np.asarray(similarity(left, right)(np.arange(2)))
    assert scores[0].tolist() == [0, 0] and scores[1, 0] == 0 < scores[1, 1]
    ranks = retrieval.mate_ranks(left, right, block=2, similarity=similarity)
    assert [side.tolist() for side in ranks] == [[2, 1], [2, 1]]  # ties are errors


@pytest.mark.parametrize("similarity", DISTANCES)
@pytest.mark.parametrize("block", [4, 1000])
def test_mate_ranks_of_topic_vectors_count_ties_as_errors(rng, similarity, block):
    a, b = (rng.integers(0, 4, (23, 4)) + [1, 0, 0, 0] for _ in range(2))  # few values, many ties
    a[:9] = b[:9]
    sides = [Vectors(jnp.asarray(side / side.sum(axis=1, keepdims=True))) for side in (a, b)]
    scores = np.asarray(similarity(*sides)(np.arange(23)))
    forward, backward = retrieval.mate_ranks(*sides, block=block, similarity=similarity)
    np.testing.assert_array_equal(forward, [reference.mate_rank(row, i) for i, row in enumerate(scores)])
    back = np.asarray(similarity(*sides[::-1])(np.arange(23)))
    np.testing.assert_array_equal(backward, [reference.mate_rank(row, i) for i, row in enumerate(back)])


@pytest.mark.parametrize("near", [0.0, 0.3, 0.95])
def test_mate_ranks_by_divergence_equal_those_of_all_pairs(rng, near):
    ours, other = (rng.dirichlet(np.full(20, 0.1), 300) for _ in range(2))
    mates = near * ours + (1 - near) * other
    ours[7], mates[7], mates[40] = 0, 0, mates[41]  # documents without topics, and two that are alike
    ours[50], mates[90] = 3 * ours[50], 2 * mates[90]  # and no distributions
    sides = Vectors(jnp.asarray(ours)), Vectors(jnp.asarray(mates))
    scores = retrieval.jensen_shannon(*sides)(np.arange(300))
    assert scores.dtype == np.float64
    ranks = retrieval.mate_ranks(*sides, block=128, similarity=retrieval.jensen_shannon)
    for found, rows in zip(ranks, (scores, scores.T), strict=True):
        np.testing.assert_array_equal(found, [reference.mate_rank(row, i) for i, row in enumerate(rows)])


@pytest.mark.parametrize("similarity", [retrieval.cosine, retrieval.l1])
def test_arrays_are_no_vectors(similarity):
    side = Vectors(jnp.eye(2))
    with pytest.raises(ValueError, match=r"left: expected Vectors \(what a method's encode gives; .*, got an? \w+"):
        retrieval.mate_ranks(np.eye(2), side, similarity=similarity)
    with pytest.raises(ValueError, match="right: expected Vectors "):
        retrieval.top_k(side, np.eye(2), k=1, similarity=similarity)


@pytest.mark.parametrize("bad", [Vectors(jnp.array([[-1.0, 2.0]])), _vectors(np.random.default_rng(0), 3, "both")[0]])
def test_what_is_no_topic_vector_is_refused(bad):
    with pytest.raises(ValueError, match=r"left(.dense)?: expected (shares of at least 0|a dense part alone)"):
        retrieval.l1(bad, bad)
