"""Block scorers: scores of all pairs of two collections of `Vectors`, a block of queries at a time.

A block scorer is any function ``score(rows)`` that takes ``[b]`` int64 query numbers and returns the
``[b, num_candidates]`` scores of these queries, higher is better. `Scorer` is the one for inner products and cosines
over dense parts, sparse parts or both; `jaxsim.retrieval` searches with it, or with any other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, terms
from jaxsim.precision import EVALUATION
from jaxsim.vectors import Vectors

__all__ = ["LANES", "Scorer", "cosine", "dot", "pair_scores"]

LANES = 128


class Scorer:
    """Scores of all pairs of two document collections, a block at a time.

    The right side is padded to a multiple of `LANES` rows. Equal documents get bitwise equal scores wherever they
    stand, which the tie rules need: norms are taken row by row on the host, and products have one static shape.
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
        self._width = -(-right.num_docs // LANES) * LANES

    @functools.cached_property
    def _columns(self):
        """The right side laid out for `padded`: a device array and a transposed CSR matrix."""
        dense = None if self._right is None else jnp.asarray(_pad(self._right, self._width))
        return dense, None if self._right_csr is None else self._right_csr.T.tocsr()

    def padded(self, rows: np.ndarray) -> jax.Array:
        """``[len(rows), width]`` scores; columns past the candidates are meaningless."""
        dense, csr = self._columns
        left = None if dense is None else jnp.asarray(self._left[rows])
        extra = None
        if csr is not None:
            extra = _pad((self._left_csr[rows] @ csr).toarray(), self._width, axis=1)
        return pair_scores(left, dense, extra)

    def __call__(self, rows: np.ndarray) -> jax.Array:
        """``[len(rows), num_candidates]`` scores of these queries."""
        return self.padded(np.asarray(rows))[:, : self.shape[1]]

    def tiles(self, block: int) -> Callable[[int, int], tuple]:
        """A function of two block numbers: the operands of `pair_scores` for that square of scores."""
        lefts = rights = left_csrs = right_csrs = None
        if self._left is not None:
            lefts = [jnp.asarray(_pad(part, block)) for part in _cut(self._left, block)]
            rights = [jnp.asarray(_pad(part, block)) for part in _cut(self._right, block)]
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


def cosine(left: Vectors, right: Vectors) -> Callable[[np.ndarray], jax.Array]:
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


def dot(left: Vectors, right: Vectors) -> Callable[[np.ndarray], jax.Array]:
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


@jax.jit
def pair_scores(left, right, extra):
    """``left rightᵀ + extra``; the two dense operands, or ``extra``, may be None."""
    if left is None:
        return extra
    product = jnp.matmul(left, right.T, precision=EVALUATION)
    return product if extra is None else product + extra


def _parts(vectors: Vectors, argument: str):
    """Checked host copies of the dense part (float32, or float64 if it is) and of the sparse part."""
    dense, csr, num_docs = None, None, vectors.num_docs
    checks.expect(num_docs > 0, argument, "at least one document", "none")
    if vectors.dense is not None:
        dense = np.asarray(vectors.dense)
        checks.expect(dense.ndim == 2, f"{argument}.dense", "shape (num_docs, k)", f"shape {dense.shape}")
        dense = dense.astype(np.result_type(dense.dtype, np.float32))
        checks.expect(bool(np.isfinite(dense).all()), f"{argument}.dense", "finite values", "NaN or infinity")
    if vectors.sparse is not None:
        csr = terms.to_scipy(vectors.sparse)
        checks.expect(csr.shape[0] == num_docs, f"{argument}.sparse", f"{num_docs} documents (as dense)", csr.shape[0])
        checks.expect(bool(np.isfinite(csr.data).all()), f"{argument}.sparse", "finite values", "NaN or infinity")
    return dense, csr


def _same_kind(left, right, part: str, unit: str) -> None:
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
    return [rows[start : start + block] for start in range(0, rows.shape[0], block)]


def _pad(array: np.ndarray, size: int, axis: int = 0) -> np.ndarray:
    spare = [(0, 0), (0, 0)]
    spare[axis] = (0, size - array.shape[axis])
    return np.pad(array, spare)
