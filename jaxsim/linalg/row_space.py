"""Fewer documents than terms: the space that the documents span, with as many coordinates as there are documents.

The solutions of a closed form lie in the span of the documents ``R``. With ``K = R Rᵀ = L Lᵀ`` the rows of ``L`` are
the documents in an orthonormal basis of that span: the same eigenproblem, with dense documents of a few thousand
coordinates in place of sparse ones over many terms.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.linalg import cost, eigen, grams
from jaxsim.linalg.covariance import Factor
from jaxsim.sparse import Terms
from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.precision import EVALUATION

_TERMS = 7
"""Terms a document from which on the change of basis is worth its products of dense matrices."""
_MOST = 5_000
"""Documents up to which it is; a product of two such matrices takes the cube of their number."""


class Inside(Factor):
    """A `Factor` of documents that pick rows of a dense matrix: ``F = s (D - 1 μᵀ) M``.

    Attributes:
      matrix: ``M``, ``[r, r]``.

    Example:
      >>> picks = sparse.from_scipy(scipy.sparse.csr_matrix([[0.0, 1.0]]))
      >>> twice = Inside(picks, 2 * jnp.eye(2), centred=False, scale=1.0)
      >>> twice.covariance(jnp.ones((2, 1))).tolist()
      [[0.0], [4.0]]
    """

    def __init__(self, documents: Terms, matrix: jax.Array, *, centred: bool, scale: float):
        """Takes documents ``D`` over ``r`` rows; ``μ`` is their mean if ``centred``, else 0."""
        checks.expect(matrix.shape == 2 * (documents.num_terms,), "matrix",
                      f"shape {2 * (documents.num_terms,)}", matrix.shape)  # fmt: skip
        super().__init__(documents, centred=centred, scale=scale)
        self.matrix = matrix

    @property
    def dual_is_cheaper(self) -> bool:
        """Never: a product of either is one with the dense matrix."""
        return False

    @property
    def slots(self) -> int:
        """As many as make a pass as long as a product with the dense matrix."""
        return int(self.matrix.size * cost.SPARSE / cost.NARROW)

    def primal_operations(self) -> float:
        """Of one product of two dense matrices."""
        return 2.0 * self.matrix.shape[0] ** 3 * cost.GRAM / cost.SQUARE

    def down(self, x: jax.Array) -> jax.Array:
        """``F x``, ``[num_docs, b]``."""
        return super().down(_times(self.matrix, x))

    def up(self, y: jax.Array) -> jax.Array:
        """``Fᵀ y``, ``[r, b]``."""
        return _times(self.matrix.T, super().up(y))

    def diagonal(self) -> jax.Array:
        """Diagonal of ``Fᵀ F``, ``[r]``."""
        return jnp.diagonal(self.primal())

    def primal(self) -> jax.Array:
        """``Fᵀ F``, ``[r, r]``."""
        return _times(self.matrix.T, super().up(super().down(self.matrix)))

    def dual(self) -> jax.Array:
        """``F Fᵀ``, ``[num_docs, num_docs]``."""
        return self.down(self.up(jnp.eye(self.num_docs, dtype=self.matrix.dtype)))


@dataclass(frozen=True, eq=False)
class RowSpace:
    """The span of the distinct documents of several views.

    Attributes:
      rows: ``R``, the ``r`` distinct documents.
      picks: a view each, ``[num_docs, r]``, 1 at the row that a document is.
      gram: ``K = R Rᵀ``, ``[r, r]``.
      triangle: ``L``, lower triangular, of ``K`` with a little added to its diagonal.
    """

    rows: Terms
    picks: tuple[Terms, ...]
    gram: jax.Array
    triangle: jax.Array

    @property
    def size(self) -> int:
        """Number ``r`` of coordinates."""
        return self.rows.num_docs

    @classmethod
    def of(cls, views: Sequence[Terms], *, k: int, spread: Terms | None = None) -> RowSpace | None:
        """The span, or None where it has too many dimensions to be worth it.

        Args:
          views: of as many documents over the same terms.
          k: dimensions that are looked for; fewer than there are distinct documents.
          spread: rows of ``M``, where documents are ``x M``.

        Returns:
          `RowSpace` or None.
        """
        most, n = most_rows((views[0] if spread is None else spread).num_terms), views[0].num_docs
        if n * len(views) > 4 * most:  # to save the comparison
            return None
        every = scipy.sparse.vstack([sparse.to_scipy(view) for view in views], format="csr")
        first, number = distinct_rows(every)
        r = len(first)
        if not k < r <= most:
            return None
        rows = every[first] if spread is None else (every[first] @ sparse.to_scipy(spread)).tocsr()
        gram = grams.gram(sparse.from_scipy(rows.T.tocsr()))
        triangle, finite = _triangle(gram)
        if not bool(finite):
            return None  # nothing but empty documents, or some whose lengths are far apart
        ones, starts = np.ones(n, rows.dtype), np.arange(n + 1)
        picks = tuple(sparse.from_scipy(scipy.sparse.csr_matrix((ones, part, starts), shape=(n, r)))
                      for part in number.reshape(len(views), n))  # fmt: skip
        return cls(sparse.from_scipy(rows), picks, gram, triangle)

    def inside(self, documents: Terms, **given) -> Inside:
        """Documents over the rows, in the orthonormal basis."""
        return Inside(documents, self.triangle, **given)

    def exact(self, documents: Terms, **given) -> Inside:
        """The same in the coordinates `combined` gives, in which vectors are sums of rows."""
        return Inside(documents, self.gram, **given)

    def combined(self, vectors: jax.Array) -> jax.Array:
        """Vectors ``[r, k]`` of the orthonormal basis as weights ``[r, k]`` of the rows."""
        return jax.scipy.linalg.solve_triangular(self.triangle, vectors, lower=True, trans=1)

    def unfolded(self, weights: jax.Array) -> jax.Array:
        """Sums of rows with these weights: ``[num_terms, k]``."""
        return sparse.project_transpose(self.rows, weights)


def most_rows(num_terms: int) -> int:
    """Distinct documents up to which `RowSpace` is worth it.

    Args:
      num_terms: of the vocabulary.

    Returns:
      Their number.

    Example:
      >>> most_rows(700), most_rows(10**6)
      (100, 5000)
    """
    return min(num_terms // _TERMS, _MOST)


def distinct_rows(documents: Terms | scipy.sparse.csr_matrix) -> tuple[np.ndarray, np.ndarray]:
    """Documents that are equal in every weight, counted once.

    Args:
      documents: ``n`` of them, `Terms` or a SciPy CSR matrix.

    Returns:
      ``(first, number)``: the first row of each content ``[d]``, and the number of each row's content ``[n]``, counted
      from 0 in order of first appearance.

    Example:
      >>> side = scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
      >>> [found.tolist() for found in distinct_rows(side)]
      [[0, 1], [0, 1, 0]]
    """
    matrix = sparse.to_scipy(documents) if isinstance(documents, Terms) else documents.copy()
    matrix.eliminate_zeros()
    matrix.sort_indices()
    numbers: dict[tuple[bytes, bytes], int] = {}
    first, number = [], np.empty(matrix.shape[0], np.int64)
    for row, (start, stop) in enumerate(zip(matrix.indptr[:-1], matrix.indptr[1:], strict=True)):
        content = matrix.indices[start:stop].tobytes(), matrix.data[start:stop].tobytes()
        number[row] = numbers.setdefault(content, len(numbers))
        if number[row] == len(first):
            first.append(row)
    return np.asarray(first, np.int64), number


@seldom
def _times(matrix, x):
    return jnp.matmul(matrix, x, precision=EVALUATION)


@jax.jit
@eigen.precise
def _triangle(gram):
    # As much as its rounding may have taken from the smallest eigenvalue.
    added = len(gram) * jnp.finfo(gram.dtype).eps * jnp.max(jnp.diagonal(gram))
    return eigen.factored(gram + added * jnp.eye(len(gram), dtype=gram.dtype))
