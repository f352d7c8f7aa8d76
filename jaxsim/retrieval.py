r"""Exact search in blocks: the best candidates of every query, and the rank of its mate.

A *block scorer* is any function ``score(rows)`` that takes ``[b]`` int64 query numbers and returns the
``[b, num_candidates]`` scores of these queries, higher is better. `cosine` and `dot` build one from two `Vectors`, of
which dense parts, sparse parts or both may be present; another similarity is a function from two `Vectors` to a scorer.
Every call gets the same number of rows (the last query is repeated at the end), so that a jitted scorer compiles once.

Dense products run on the device, in float32 (float64 where the embeddings are) and in the highest precision; sparse
products of rows run on the host. Memory is bounded by ``block * num_candidates`` scores.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.scorers import LANES, Scorer, cosine, dot, pair_scores
from jaxsim.vectors import Vectors

__all__ = ["cosine", "dot", "mate_ranks", "ranks", "top_k"]


def ranks(
    score_block: Callable[[np.ndarray], jax.Array], num_queries: int, num_candidates: int, target, *, block: int = 1024
) -> np.ndarray:
    """Rank of each query's target, with ties counted as errors.

    Args:
      score_block: A block scorer, ``score(rows) -> [len(rows), num_candidates]``.
      num_queries: How many queries there are.
      num_candidates: How many candidates there are.
      target: ``[num_queries]`` integer candidate of each query.
      block: Queries scored at a time.

    Returns:
      ``[num_queries]`` int64: 1 + the number of other candidates that score at least as much as the target.

    Raises:
      ValueError: On sizes below 1, a target that is no candidate, scores of another shape, or NaN.

    Example:
      >>> scores = np.array([[0.9, 0.1, 0.9], [0.1, 0.5, 0.2]])
      >>> ranks(lambda rows: scores[rows], 2, 3, [0, 1]).tolist()
      [2, 1]
    """
    checks.positive_int(num_queries, "num_queries")
    checks.positive_int(num_candidates, "num_candidates")
    target = checks.targets(target, num_queries, num_candidates)
    found = np.empty(num_queries, np.int64)
    for rows, start, stop in _row_blocks(num_queries, block):
        scores = np.asarray(_block_scores(score_block, rows, num_candidates))[: stop - start, :num_candidates]
        bad = np.isnan(scores).any(axis=1)
        if bad.any():
            raise ValueError(f"score_block: expected no NaN, got NaN for query {start + int(np.argmax(bad))}")
        own = np.take_along_axis(scores, target[start:stop, None], axis=1)
        found[start:stop] = np.count_nonzero(scores >= own, axis=1)
    return found


def mate_ranks(
    left: Vectors, right: Vectors, *, block: int = 512, similarity: Callable = cosine
) -> tuple[np.ndarray, np.ndarray]:
    """Rank of each document's mate, in both directions at the price of one product.

    Document ``i`` of one side is the mate of document ``i`` of the other. Both directions are counted while a square of
    ``block * block`` scores is at hand, so nothing larger is held.

    Args:
      left: Documents of one side.
      right: Their mates, with the same parts present.
      block: Documents a side of a square.
      similarity: `cosine` or `dot`.

    Returns:
      ``(left to right, right to left)``, each ``[num_docs]`` int64, 1 for a hit; ties are errors.

    Raises:
      ValueError: If the numbers of documents differ, for another similarity, and as `cosine`.

    Example:
      >>> side = Vectors(np.array([[1.0, 0.0], [0.0, 1.0]]))
      >>> [found.tolist() for found in mate_ranks(side, Vectors(np.array([[1.0, 0.1], [1.0, 0.2]])))]
      [[1, 1], [1, 2]]
    """
    checks.positive_int(block, "block")
    checks.expect(similarity in (cosine, dot), "similarity", "retrieval.cosine or retrieval.dot", similarity)
    scorer = similarity(left, right)
    num_docs = left.num_docs
    checks.expect(right.num_docs == num_docs, "right", f"{num_docs} documents (as left)", right.num_docs)
    block = min(block, -(-num_docs // LANES) * LANES)
    operands = scorer.tiles(block)
    count = -(-num_docs // block)
    own = [_diagonal(*operands(i, i)) for i in range(count)]
    forward, backward = np.zeros((2, count, block), np.int64)
    for i in range(count):
        for j in range(count):
            places = np.array([i * block, j * block, num_docs], np.int32)
            by_row, by_column = _not_below(*operands(i, j), own[i], own[j], places)
            forward[i] += np.asarray(by_row)
            backward[j] += np.asarray(by_column)
    return 1 + forward.reshape(-1)[:num_docs], 1 + backward.reshape(-1)[:num_docs]


def top_k(
    left: Vectors, right: Vectors, *, k: int, block: int = 256, similarity: Callable = cosine
) -> tuple[np.ndarray, np.ndarray]:
    """The ``k`` best candidates of every query, exactly.

    Args:
      left: Queries.
      right: Candidates, with the same parts present.
      k: How many to return, at most the number of candidates.
      block: Queries scored at a time.
      similarity: `cosine`, `dot`, or any function of the two `Vectors` that returns a block scorer.

    Returns:
      ``(scores, indices)``, ``[num_queries, k]`` floating and int64, the best first; ties go to the lower index.

    Raises:
      ValueError: If k is below 1 or above the number of candidates, on NaN scores, and as `cosine`.

    Example:
      >>> scores, indices = top_k(Vectors(np.eye(2)), Vectors(np.array([[1.0, 1], [0, 1], [0, 2]])), k=2)
      >>> indices.tolist()
      [[0, 1], [1, 2]]
    """
    checks.positive_int(k, "k")
    num_candidates = right.num_docs
    checks.expect(k <= num_candidates, "k", f"at most {num_candidates} (candidates)", k)
    score_block = similarity(left, right)
    scores, indices = [], []
    for rows, start, stop in _row_blocks(left.num_docs, block):
        best, where, bad = _select(_block_scores(score_block, rows, num_candidates), num_candidates, k)
        if bad:
            raise ValueError(f"similarity: expected no NaN, got NaN among queries {start} to {stop - 1}")
        scores.append(np.asarray(best)[: stop - start])
        indices.append(np.asarray(where, np.int64)[: stop - start])
    return np.concatenate(scores), np.concatenate(indices)


@jax.jit
def _diagonal(left, right, extra):
    return jnp.diagonal(pair_scores(left, right, extra))


@jax.jit
def _not_below(left, right, extra, own_rows, own_columns, places):
    """How many others score at least as much as the mate, for each row and each column of one square."""
    scores = pair_scores(left, right, extra)
    row, column, num_docs = places
    rows = row + jnp.arange(scores.shape[0], dtype=jnp.int32)[:, None]
    columns = column + jnp.arange(scores.shape[1], dtype=jnp.int32)[None, :]
    others = (rows != columns) & (rows < num_docs) & (columns < num_docs)
    by_row = jnp.sum(others & (scores >= own_rows[:, None]), axis=1)
    return by_row, jnp.sum(others & (scores >= own_columns[None, :]), axis=0)


@functools.partial(jax.jit, static_argnames=("num_candidates", "k"))
def _select(scores, num_candidates: int, k: int):
    """The k best of each row of padded scores, ties to the lower index, and whether any score was NaN.

    The k best lie in the k chunks of neighbours with the highest maxima (ties to the earlier chunk): an element of any
    other chunk has k elements before it. One pass takes the maxima, and only k chunks are ranked.
    """
    # The power of two near sqrt(candidates / k) makes both rankings, of maxima and within chunks, equally short.
    chunk = 2 ** min(7, round(np.log2(num_candidates / k) / 2))
    rows, width = scores.shape
    spare = -width % chunk
    if spare:
        scores = jnp.pad(scores, ((0, 0), (0, spare)))
    # -0.0 becomes 0.0, because top_k takes -0.0 for the smaller of the two.
    scores = jnp.where(scores == 0, 0, scores)
    inside = jnp.arange(width + spare).reshape(-1, chunk) < num_candidates
    grouped = jnp.where(inside[None], scores.reshape(rows, -1, chunk), -jnp.inf)
    highest = jnp.max(grouped, axis=-1)
    bad = jnp.any(jnp.isnan(highest))
    best, chunks = jax.lax.top_k(highest, k)
    if chunk == 1:
        return best, chunks, bad
    chunks = jnp.sort(chunks, axis=-1)
    candidates = jnp.take_along_axis(grouped, chunks[:, :, None], axis=1).reshape(rows, k * chunk)
    best, places = jax.lax.top_k(candidates, k)
    return best, jnp.take_along_axis(chunks, places // chunk, axis=1) * chunk + places % chunk, bad


def _row_blocks(num_queries: int, block: int):
    """Query numbers in blocks of one size, the last query repeated at the end, with the range that counts."""
    checks.positive_int(block, "block")
    block = min(block, num_queries)
    for start in range(0, num_queries, block):
        rows = np.minimum(np.arange(start, start + block), num_queries - 1)
        yield rows, start, min(start + block, num_queries)


def _block_scores(score_block, rows: np.ndarray, num_candidates: int):
    """Scores of a block: padded on the right for our own scorers, checked for those of others."""
    if isinstance(score_block, Scorer) and score_block.shape[1] == num_candidates:
        return score_block.padded(rows)
    scores = score_block(rows)
    shape = (len(rows), num_candidates)
    checks.expect(np.shape(scores) == shape, "score_block", f"scores of shape {shape}", f"shape {np.shape(scores)}")
    return scores
