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
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.evaluate import distances
from jaxsim.sparse import Vectors
from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.precision import EVALUATION

__all__ = ["Distances", "Scorer", "cosine", "dot", "jensen_shannon", "l1", "mate_ranks", "pair_scores", "ranks",
           "signed", "top_k"]


LANES = 128
_ROWS, _WIDTHS, _BEST = (1, 32, 256), (512, 4096), (32, 256)  # classes of queries, candidates, and the k best


class Scorer:
    """Scores of all pairs of two document collections, a block at a time.

    The right side is padded to a size class (`sparse.size_class`), so that searches in collections of many sizes share
    compiled programs, and so are the rows of a call. Equal documents get bitwise equal scores in any
    row, which the rules for ties need: norms are taken row by row on the host, and products have one static shape.
    """

    def __init__(self, left: Vectors, right: Vectors, *, normalise: bool):
        """Check both sides and, with ``normalise``, divide every document by its length."""
        (self._left, left_csr), (right_dense, right_csr) = _parts(left, "left"), _parts(right, "right")
        _same_kind(self._left, right_dense, "dense", "columns")
        _same_kind(left_csr, right_csr, "sparse", "terms")
        self.shape = left.num_docs, right.num_docs
        if normalise:
            self._left, left_csr = _unit(self._left, left_csr)
            right_dense, right_csr = _unit(right_dense, right_csr)
        self._left_csr, self._right_csr, self._right = left_csr, right_csr, right_dense
        self._width = sparse.size_class(right.num_docs, _WIDTHS, fine=True)

    @functools.cached_property
    def _columns(self):
        """The right side laid out for `padded`: a device array and a transposed CSR matrix."""
        dense = None if self._right is None else jax.device_put(_pad(self._right, self._width))
        return dense, None if self._right_csr is None else self._right_csr.T.tocsr()

    def operands(self, rows: np.ndarray) -> tuple:
        """The operands of `pair_scores` for these queries and all candidates; columns past these are meaningless."""
        dense, csr = self._columns
        left = None if dense is None else jax.device_put(self._left[rows])
        extra = None
        if csr is not None:
            extra = _pad((self._left_csr[rows] @ csr).toarray(), self._width, axis=1)
        return left, dense, extra

    def __call__(self, rows: np.ndarray) -> np.ndarray:
        """``[len(rows), num_candidates]`` scores of these queries."""
        rows = np.asarray(rows)
        more = np.resize(rows, sparse.size_class(len(rows), _ROWS)) if len(rows) else rows
        return np.asarray(self.pair(*self.operands(more)))[: len(rows), : self.shape[1]]

    def tiles(self, block: int) -> Callable[[int, int], tuple]:
        """A function of two block numbers: the operands of `pair_scores` for that square of scores."""
        lefts = rights = left_csrs = right_csrs = None
        if self._left is not None:
            lefts = [jax.device_put(_pad(part, block)) for part in _cut(self._left, block)]
            rights = [jax.device_put(_pad(part, block)) for part in _cut(self._right, block)]
        if self._left_csr is not None:
            left_csrs = _cut(self._left_csr, block)
            right_csrs = [part.T.tocsr() for part in _cut(self._right_csr, block)]

        def operands(row: int, column: int) -> tuple:
            extra = None
            if left_csrs is not None:
                product = (left_csrs[row] @ right_csrs[column]).toarray()
                extra = _pad(_pad(product, block), block, axis=1)
            return (None, None, extra) if lefts is None else (lefts[row], rights[column], extra)

        return operands

    @staticmethod
    def pair(left, right, extra):
        """`pair_scores`; other scorers have another."""
        return pair_scores(left, right, extra)


class Distances(Scorer):
    """Similarities in [0, 1] of distributions, from a distance of rows; `l1` and `jensen_shannon` make one."""

    def __init__(self, left: Vectors, right: Vectors):
        """Checks both sides, which have a dense part alone."""
        for side, name in ((left, "left"), (right, "right")):
            _expect_vectors(side, name)
            checks.expect(side.sparse is None and side.dense is not None, name, "a dense part alone (topic vectors)",
                          "another")
        super().__init__(left, right, normalise=False)
        for dense, name in ((self._left, "left"), (self._right, "right")):
            checks.expect(bool((dense >= 0).all()), f"{name}.dense", "shares of at least 0", "a negative number")


class _L1(Distances):
    @staticmethod
    @jax.jit
    def pair(left, right, extra):
        """``sum min(l, r)``, a row at a time: all differences together would be too many."""
        del extra
        return jax.lax.map(lambda row: jnp.sum(jnp.minimum(row[None], right), axis=1), left)


class _JensenShannon(Distances):
    @staticmethod
    @jax.jit
    def pair(left, right, extra):
        """``1 - JS(l, r) / log 2``, of entropies: 2 JS = Σ l log l + Σ r log r - Σ (l + r) log ((l + r) / 2).

        For a zero vector it is 0.
        """
        del extra

        own, other = distances.negative_entropy(left), distances.negative_entropy(right)

        def similarity(row):
            return (row[1] + other) / 2 - distances.negative_entropy((row[0][None] + right) / 2)

        both = (jnp.sum(left, axis=1) > 0)[:, None] & (jnp.sum(right, axis=1) > 0)[None]
        return jnp.where(both, 1 - jax.lax.map(similarity, (left, own)) / jnp.log(2), 0)

    def mate_ranks(self, block: int) -> tuple[np.ndarray, np.ndarray]:
        """As `distances.mate_ranks`."""
        return distances.mate_ranks(self._left, self._right, block=block)


def l1(left: Vectors, right: Vectors) -> Scorer:
    r"""Block scorer of :math:`1 - \tfrac12 \|l - r\|_1`, the share that two distributions have in common (002 §3.2).

    It is computed as :math:`\sum_t \min(l_t, r_t)`, which is the same for distributions, and 0 for a zero vector.

    Args:
      left: Queries: topic vectors, whose rows sum to 1.
      right: Candidates.

    Returns:
      ``score(rows) -> [len(rows), num_candidates]``; 1 for equal distributions, 0 for those without a common topic.

    Raises:
      ValueError: If a side has a sparse part or negative values, or the two do not match.

    Example:
      >>> l1(Vectors(np.array([[0.5, 0.5]])), Vectors(np.array([[1.0, 0.0], [0.5, 0.5]])))(np.array([0])).tolist()
      [[0.5, 1.0]]
    """
    return _L1(left, right)


def jensen_shannon(left: Vectors, right: Vectors) -> Scorer:
    r"""Block scorer of :math:`1 - JS(l, r) / \log 2`, with the Jensen–Shannon divergence of 000 §4.1.1.

    Args:
      left: Queries: topic vectors, whose rows sum to 1.
      right: Candidates.

    Returns:
      ``score(rows) -> [len(rows), num_candidates]``; 1 for equal distributions, 0 for those without a common topic and
      wherever either document is zero.

    Raises:
      ValueError: As `l1`.

    Example:
      >>> score = jensen_shannon(Vectors(np.array([[1.0, 0.0]])), Vectors(np.array([[1.0, 0.0], [0.0, 1.0]])))
      >>> np.round(score(np.array([0])), 4).tolist()
      [[1.0, 0.0]]
    """
    return _JensenShannon(left, right)


def cosine(left: Vectors, right: Vectors) -> Callable[[np.ndarray], np.ndarray]:
    r"""Block scorer of the cosine :math:`(l_d \cdot r_d + l_s \cdot r_s) / (\|l\| \|r\|)` over dense and sparse parts.

    Args:
      left: Queries; the norm of a document is taken over both of its parts.
      right: Candidates, with the same parts present.

    Returns:
      ``score(rows) -> [len(rows), num_candidates]``; 0 wherever either document is zero.

    Raises:
      ValueError: If the parts of the two sides do not match, are empty or hold values that are not finite.

    Example:
      >>> score = cosine(Vectors(np.array([[1.0, 1.0]])), Vectors(np.array([[2.0, 0.0], [0.0, 0.0]])))
      >>> np.round(score(np.array([0])), 4).tolist()
      [[0.7071, 0.0]]
    """
    return Scorer(left, right, normalise=True)


def dot(left: Vectors, right: Vectors) -> Callable[[np.ndarray], np.ndarray]:
    """Block scorer of the inner product over dense and sparse parts.

    Args:
      left: Queries.
      right: Candidates, with the same parts present.

    Returns:
      ``score(rows) -> [len(rows), num_candidates]``.

    Raises:
      ValueError: If the parts of the two sides do not match, are empty or hold values that are not finite.

    Example:
      >>> dot(Vectors(np.array([[1.0, 2.0]])), Vectors(np.array([[3.0, 4.0]])))(np.array([0])).tolist()
      [[11.0]]
    """
    return Scorer(left, right, normalise=False)


def signed(signs) -> Callable[[Vectors, Vectors], Scorer]:
    """Inner products in which some dense dimensions count negatively, as under a metric that shortens them.

    Args:
      signs: ``[k]``, 1 or -1 for every dimension of the dense parts.

    Returns:
      Function of two `Vectors` that gives a block scorer, as `top_k` and `all_pairs.score` take it.

    Example:
      >>> from jaxsim import sparse
      >>> from jaxsim.methods.weights import metric
      >>> params = metric.Metric(jnp.array([[1.0], [0.0]]), jnp.array([-0.75]))  # the first term counts a quarter
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[2.0, 1.0], [0.0, 1.0]]))
      >>> vectors = metric.encode(params, documents)
      >>> round(float(signed(metric.signs(params))(vectors, vectors)(np.array([0]))[0, 1]), 4)  # 1 / sqrt(2)
      0.7071
    """

    def scorer(left: Vectors, right: Vectors) -> Scorer:
        return dot(left, right._replace(dense=right.dense * signs[None, :]))

    return scorer


@jax.jit
def pair_scores(left, right, extra):
    """``left rightᵀ + extra``; the two dense operands, or ``extra``, may be None."""
    if left is None:
        return extra
    product = jnp.matmul(left, right.T, precision=EVALUATION)
    return product if extra is None else product + extra


def _expect_vectors(vectors, argument: str) -> Vectors:
    """Refuses anything else: arrays, most of all."""
    checks.expect(isinstance(vectors, Vectors), argument, "Vectors (what a method's encode gives; of an array: "
                  "jaxsim.sparse.Vectors(array))", checks.a_kind(vectors))  # fmt: skip
    return vectors


def _parts(vectors: Vectors, argument: str):
    """Checked host copies of the dense part (float32, or float64 if it is) and of the sparse part."""
    dense, csr, num_docs = None, None, _expect_vectors(vectors, argument).num_docs
    checks.expect(num_docs > 0, argument, "at least one document", "none")
    if vectors.dense is not None:
        dense = np.asarray(vectors.dense)
        checks.expect(dense.ndim == 2, f"{argument}.dense", "shape (num_docs, k)", f"shape {dense.shape}")
        dense = dense.astype(np.result_type(dense.dtype, np.float32))
        checks.expect(bool(np.isfinite(dense).all()), f"{argument}.dense", "finite values", "NaN or infinity")
    if vectors.sparse is not None:
        csr = sparse.to_scipy(vectors.sparse)
        checks.expect(csr.shape[0] == num_docs, f"{argument}.sparse", f"{num_docs} documents (as dense)", csr.shape[0])
        checks.expect(bool(np.isfinite(csr.data).all()), f"{argument}.sparse", "finite values", "NaN or infinity")
    return dense, csr


def _same_kind(left, right, part: str, unit: str) -> None:
    """Refuses a part that only one side has, or that differs in columns."""
    kinds = ["absent" if side is None else f"{side.shape[1]} {unit}" for side in (left, right)]
    checks.expect(kinds[0] == kinds[1], f"right.{part}", f"{kinds[0]} (as left.{part})", kinds[1])


def _unit(dense, csr):
    """Both parts divided by the length of the whole document, computed in float64; a zero document stays zero."""
    square = 0.0
    if dense is not None:
        square = square + np.concatenate([np.sum(np.square(p, dtype=np.float64), axis=1) for p in _cut(dense, 4096)])
    if csr is not None:
        squares = np.square(csr.data, dtype=np.float64)
        square = square + scipy.sparse.csr_matrix((squares, csr.indices, csr.indptr), csr.shape) @ np.ones(csr.shape[1])
    scale = np.divide(1.0, np.sqrt(square), out=np.zeros_like(square), where=square > 0)
    if dense is not None:
        dense = (dense * scale[:, None]).astype(dense.dtype)
    if csr is not None:
        values = (csr.data * np.repeat(scale, np.diff(csr.indptr))).astype(csr.data.dtype)
        csr = scipy.sparse.csr_matrix((values, csr.indices, csr.indptr), shape=csr.shape)
    return dense, csr


def _cut(rows, block: int) -> list:
    """Rows in blocks, the last of which may be shorter."""
    return [rows[start : start + block] for start in range(0, rows.shape[0], block)]


def _pad(array: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
    """A matrix with zeros behind, up to a size along one axis."""
    spare = [(0, 0), (0, 0)]
    spare[axis] = (0, size - array.shape[axis])
    return np.pad(array, spare)


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
    places = np.empty(num_queries, np.int64)
    for rows, start, stop in _row_blocks(num_queries, block):
        scores = np.asarray(_expected(score_block(rows), (len(rows), num_candidates)))[: stop - start]
        missing = np.isnan(scores).any(axis=1)
        if missing.any():
            raise ValueError(f"score_block: expected no NaN, got NaN for query {start + int(np.argmax(missing))}")
        own = np.take_along_axis(scores, target[start:stop, None], axis=1)
        places[start:stop] = np.count_nonzero(scores >= own, axis=1)
    return places


def mate_ranks(
    left: Vectors, right: Vectors, *, block: int = 512, similarity: Callable = cosine
) -> tuple[np.ndarray, np.ndarray]:
    """Rank of each document's mate, in both directions at the cost of one matrix product.

    Document ``i`` of one side is the mate of document ``i`` of the other. Both directions are counted on one square of
    ``block * block`` scores at a time, so nothing larger is held.

    Args:
      left: Documents of one side.
      right: Their mates, with the same parts present.
      block: Documents a side of a square.
      similarity: `cosine`, `dot`, `l1` or `jensen_shannon`.

    Returns:
      ``(left to right, right to left)``, each ``[num_docs]`` int64, 1 for a hit; ties are errors.

    Raises:
      ValueError: If the numbers of documents differ, for another similarity, and as `cosine`.

    Example:
      >>> side = Vectors(np.array([[1.0, 0.0], [0.0, 1.0]]))
      >>> [places.tolist() for places in mate_ranks(side, Vectors(np.array([[1.0, 0.1], [1.0, 0.2]])))]
      [[1, 1], [1, 2]]
    """
    checks.positive_int(block, "block")
    checks.expect(similarity in (cosine, dot, l1, jensen_shannon), "similarity",
                  "retrieval.cosine, dot, l1 or jensen_shannon", similarity)
    scorer = similarity(left, right)
    pair = type(scorer).pair
    num_docs = left.num_docs
    checks.expect(right.num_docs == num_docs, "right", f"{num_docs} documents (as left)", right.num_docs)
    block = min(block, -(-num_docs // LANES) * LANES)
    if isinstance(scorer, _JensenShannon):
        return scorer.mate_ranks(block)
    operands = scorer.tiles(block)
    count = -(-num_docs // block)
    own = [_diagonal(*operands(i, i), pair) for i in range(count)]
    forward, backward = np.zeros((2, count, block), np.int64)
    for i in range(count):
        for j in range(count):
            places = np.array([i * block, j * block, num_docs], np.int32)
            by_row, by_column = _not_below(*operands(i, j), own[i], own[j], places, pair)
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
    num_candidates = _expect_vectors(right, "right").num_docs
    checks.expect(k <= num_candidates, "k", f"at most {num_candidates} (candidates)", k)
    score_block = similarity(left, right)
    scores, indices = [], []
    own = isinstance(score_block, Scorer) and score_block.shape[1] == num_candidates
    for rows, start, stop in _row_blocks(left.num_docs, block):
        if own:
            rows = np.resize(rows, min(sparse.size_class(len(rows), _ROWS), max(block, len(rows))))
            operands = score_block.operands(rows)
        else:
            operands = None, None, _expected(score_block(rows), (len(rows), num_candidates))
        pair = type(score_block).pair if own else pair_scores
        best, where, bad = _best(*operands, num_candidates, sparse.size_class(k, _BEST), pair)
        if bad:
            raise ValueError(f"similarity: expected no NaN, got NaN among queries {start} to {stop - 1}")
        scores.append(np.asarray(best)[: stop - start, :k])
        indices.append(np.asarray(where, np.int64)[: stop - start, :k])
    return np.concatenate(scores), np.concatenate(indices)


@seldom(static_argnames="pair")
def _diagonal(left, right, extra, pair):
    """Scores of the mates in one square."""
    return jnp.diagonal(pair(left, right, extra))


@seldom(static_argnames="pair")
def _not_below(left, right, extra, own_rows, own_columns, places, pair):
    """How many others score at least as much as the mate, for each row and each column of one square."""
    scores = pair(left, right, extra)
    row, column, num_docs = places
    rows = row + jnp.arange(scores.shape[0], dtype=jnp.int32)[:, None]
    columns = column + jnp.arange(scores.shape[1], dtype=jnp.int32)[None, :]
    others = (rows != columns) & (rows < num_docs) & (columns < num_docs)
    by_row = jnp.sum(others & (scores >= own_rows[:, None]), axis=1)
    return by_row, jnp.sum(others & (scores >= own_columns[None, :]), axis=0)


@seldom(static_argnames=("k", "pair"))
def _best(left, right, extra, num_candidates, k: int, pair: Callable):
    """The k best of each row of scores, ties to the lower index, and whether any score was NaN.

    Columns from ``num_candidates`` on are padding. The k best lie in the k chunks of neighbours with the highest maxima
    (ties to the earlier chunk): an element of any other chunk has k elements before it. One pass takes the maxima, and
    only k chunks are ranked.
    """
    scores = pair(left, right, extra)
    k = min(k, scores.shape[1])
    # The power of two near sqrt(candidates / k) makes both rankings, of maxima and within chunks, equally short.
    chunk = 2 ** min(7, round(np.log2(scores.shape[1] / k) / 2))
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


def _expected(scores, shape: tuple[int, int]):
    """Scores of a block scorer, checked."""
    checks.expect(np.shape(scores) == shape, "score_block", f"scores of shape {shape}", f"shape {np.shape(scores)}")
    return scores
