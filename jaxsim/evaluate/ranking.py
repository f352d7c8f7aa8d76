"""Link retrieval: whether the documents that a query links to rank above all others of the collection (003 §4).

A query is compared with the whole collection, not with a sample. Known links (those of training, say) and the query
itself are left out of the list: they are neither right nor wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.evaluate import retrieval
from jaxsim.sparse import Vectors, take

METRICS = ("rank_loss", "map", "p@10")
HALF_TIES = "rank_loss@half"
"""What the rank loss is called in which a tie is half an error."""
_BLOCK = 256


class Judged(NamedTuple):
    """The relevant documents of every query.

    Attributes:
      queries: ``[n]`` int64 rows of the queries, ascending; each has at least one document.
      relevant: ``[n, num_documents]`` CSR matrix, 1 for a document that the query links to.
      left_out: ``[n, num_documents]`` CSR matrix, 1 for a document that is not in the query's list.
    """

    queries: np.ndarray
    relevant: scipy.sparse.csr_matrix
    left_out: scipy.sparse.csr_matrix


def judged(links, shape: tuple[int, int], *, left_out=()) -> Judged:
    """Queries and their documents from links.

    Args:
      links: ``[n, 2]`` integers, rows of queries and of documents. Rows without a link are not queries.
      shape: how many rows of queries and of documents there are.
      left_out: arrays of such pairs that are neither right nor wrong.

    Returns:
      `Judged`.

    Raises:
      ValueError: for no links, rows out of range, or a link that is left out.

    Example:
      >>> found = judged([[2, 0]], (3, 3), left_out=[[[2, 2]]])
      >>> found.queries.tolist(), found.relevant.toarray().tolist(), found.left_out.toarray().tolist()
      ([2], [[1, 0, 0]], [[0, 0, 1]])
    """
    relevant, out = _pattern([links], shape, "links"), _pattern(left_out, shape, "left_out")
    checks.expect(relevant.nnz > 0, "links", "at least one link", "none")
    both = relevant.multiply(out).tocoo()
    checks.expect(not both.nnz, "links", "none of the pairs left out", list(zip(both.row, both.col, strict=True))[:1])
    queries = np.flatnonzero(np.diff(relevant.indptr))
    return Judged(queries, relevant[queries], out[queries])


def _pattern(parts, shape, argument: str) -> scipy.sparse.csr_matrix:
    pairs = np.concatenate([np.zeros((0, 2), np.int64), *(np.asarray(part).reshape(-1, 2) for part in parts)])
    outside = pairs[(pairs < 0).any(axis=1) | (pairs >= shape).any(axis=1)]
    checks.expect(not outside.size, argument, f"rows of {shape[0]} queries and {shape[1]} documents",
                  outside[:1].tolist())
    pairs = np.unique(pairs.astype(np.int64), axis=0)
    return scipy.sparse.csr_matrix((np.ones(len(pairs), np.int8), pairs.T), shape=shape)


def per_query(
    left: Vectors, right: Vectors, truth: Judged, *, similarity: Callable = retrieval.dot, half_ties: bool = False
) -> dict[str, np.ndarray]:
    """Scores of every query, by inner products unless another similarity is given.

    Args:
      left: queries, all rows that ``truth`` numbers.
      right: documents.
      truth: what is right.
      similarity: function of the `Vectors` of ``truth.queries`` and those of all documents that returns a block scorer,
        as for `retrieval.top_k`.
      half_ties: whether the rank loss with ties as half an error is measured too. One less it is each query's AUC. It
        tells a method that orders documents wrongly from one that gives many of them the same score: TFIDF of short
        queries, say, scores all documents 0 that have no word of the query.

    Returns:
      ``rank_loss`` (the exact share of pairs of a relevant and another document that are misordered or tied; 0 for a
      query that has no other), ``map`` (average precision) and ``p@10``, ties to the lower row; with ``half_ties`` also
      ``rank_loss@half`` (the share that is misordered, and half of that which is tied); each ``[n]`` float64.

    Raises:
      ValueError: for vectors of other sizes than ``truth``, or values that are not finite.

    Example:
      >>> documents = Vectors(np.array([[1.0], [3.0], [2.0]]))
      >>> {name: value.round(2).tolist() for name, value in
      ...  per_query(documents, documents, judged([[0, 2]], (3, 3), left_out=[[[0, 0]]])).items()}
      {'rank_loss': [1.0], 'map': [0.5], 'p@10': [0.1]}
      >>> flat = Vectors(np.ones((3, 1)))
      >>> losses = per_query(flat, flat, judged([[0, 2]], (3, 3)), half_ties=True)
      >>> losses["rank_loss"].tolist(), losses["rank_loss@half"].tolist()
      ([1.0], [0.5])
    """
    checks.expect(right.num_docs == truth.relevant.shape[1], "right", f"{truth.relevant.shape[1]} documents",
                  right.num_docs)
    checks.expect(left.num_docs > truth.queries[-1], "left", f"more than {truth.queries[-1]} queries", left.num_docs)
    score = similarity(take(left, truth.queries), right)
    result: dict[str, list] = {name: [] for name in (*METRICS, *[HALF_TIES] * half_ties)}
    for start in range(0, truth.queries.size, _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, truth.queries.size))
        # One shape for all blocks: the last query is repeated at the end.
        padded = np.minimum(np.arange(start, start + min(_BLOCK, truth.queries.size)), truth.queries.size - 1)
        scores = np.asarray(score(padded))[: rows.size]
        checks.expect(bool(np.isfinite(scores).all()), "left, right", "vectors of finite scores", "NaN or infinity")
        labels, out = truth.relevant[rows].toarray() == 1, truth.left_out[rows].toarray() == 1
        for one in map(_of_list, scores, labels, out):
            for name, values in result.items():
                values.append(one[name])
    return {name: np.asarray(values, np.float64) for name, values in result.items()}


def _of_list(scores: np.ndarray, labels: np.ndarray, out: np.ndarray) -> dict[str, float]:
    """The metrics of one query from the ranks of its relevant documents; no list is put in order with its numbers."""
    mine, rest = np.flatnonzero(labels), np.flatnonzero(~labels & ~out)
    mine = mine[np.argsort(-scores[mine], kind="stable")]
    others = np.sort(scores[rest])
    below, up_to = (np.searchsorted(others, scores[mine], side=side) for side in ("left", "right"))
    before = others.size - up_to
    for place in np.flatnonzero(up_to > below):  # ties, which go to the lower row
        before[place] += np.count_nonzero(scores[rest[rest < mine[place]]] == scores[mine[place]])
    number = np.arange(1, mine.size + 1)
    ranks = number + before
    errors, half = (float(np.mean(1 - right / others.size)) if others.size else 0.0
                    for right in (below, (below + up_to) / 2))
    return {"rank_loss": errors, HALF_TIES: half,
            "map": float(np.mean(number / ranks)), "p@10": float(np.count_nonzero(ranks <= 10) / 10)}


def scores(
    left: Vectors, right: Vectors, truth: Judged, *, similarity: Callable = retrieval.dot, half_ties: bool = False
) -> dict[str, float]:
    """Means of `per_query`.

    Args:
      left: queries.
      right: documents.
      truth: what is right.
      similarity: as for `per_query`.
      half_ties: as for `per_query`.

    Returns:
      ``{"rank_loss": …, "map": …, "p@10": …}``, with ``half_ties`` also ``rank_loss@half``.
    """
    result = per_query(left, right, truth, similarity=similarity, half_ties=half_ties)
    return {name: float(values.mean()) for name, values in result.items()}
