"""Canonical correlation analysis: one projection a language (002 §2.3)."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, linalg, sparse
from jaxsim.linalg import covariance
from jaxsim.linalg.covariance import Factor, Ridge
from jaxsim.methods import statistics
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms
from jaxsim.text import weightings


class _Side:
    """One language over the terms it uses: centred documents and the regularised covariance."""

    def __init__(self, documents: Terms, ridge: float, tolerance: float | None = None):
        matrix = sparse.to_scipy(documents)
        self.used = np.unique(matrix.indices[matrix.data != 0])
        self.factor = Factor(sparse.from_scipy(matrix[:, self.used]), centred=True,
                             scale=1 / np.sqrt(documents.num_docs))
        self.ridge = Ridge(self.factor, ridge, argument="ridge", tolerance=tolerance)

    def full(self, x, num_terms: int) -> Projection:
        return Projection(jnp.zeros((num_terms, x.shape[1]), x.dtype).at[self.used].set(x))


@linalg.precise
def fit(left: Terms, right: Terms, *, k: int, ridge: float = 3.0) -> Fit:
    r"""Canonical directions from the generalised eigenproblem of 002 Eq. (12)-(13).

    .. math:: \begin{pmatrix} 0 & C_{12} \\ C_{21} & 0 \end{pmatrix} v
              = \lambda \begin{pmatrix} C_{11} + \gamma I & 0 \\ 0 & C_{22} + \gamma I \end{pmatrix} v

    Args:
      left: weighted documents of one language, ``[num_docs, num_terms_left]``.
      right: their mates, ``[num_docs, num_terms_right]``; row i belongs to row i.
      k: target dimension, at most the number of terms used on either side.
      ridge: ``γ``, positive (10 for Europarl and 3 for Wikipedia in the paper).

    Returns:
      `Fit` of a pair ``(left, right)`` of `Projection`, in descending order of correlation; columns beyond the
      numerical rank are 0 on both sides, and a term that a side does not use has weight 0 there.

    Raises:
      ValueError: if the sides differ in documents, ``k`` is out of range, or ``ridge`` is not positive.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> left = from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 1.0]]))
      >>> a, b = fit(left, left, k=1).params
      >>> bool(jnp.allclose(a.weights, b.weights))
      True

    Relations: `opca` minimises distances where this maximises correlations, and shares its terms between languages.
    """
    statistics.expect_sides(left, right, same="documents")
    checks.expect(left.num_docs >= 1, "left", "at least one document", 0)
    checks.expect(0 < ridge < np.inf, "ridge", "a positive number", ridge)
    used = [weightings.document_frequency(sparse.to_scipy(side)).astype(bool).sum() for side in (left, right)]
    most = int(min(used))
    checks.between(k, "k", most, "terms used on either side")
    # The solve of the right side is a part of the operator, that of the left side only spans the Krylov space.
    a, b = _Side(left, ridge, covariance.ROUGH), _Side(right, ridge)

    def across(x):
        return b.ridge.solve(b.factor.up(a.factor.down(x)))

    def signal(x):
        return a.factor.up(b.factor.down(across(x)))

    dtype = left.values.dtype
    # The start of the Krylov iteration is fixed: the eigenvectors do not depend on it.
    squares, first = linalg.top_generalised(
        signal, a.ridge.apply, a.ridge.solve, a.used.size, k, key=jax.random.key(0), dtype=dtype
    )
    # Beyond the rank of C12 a direction has no partner: dividing by its correlation would only scale rounding up.
    floor = jnp.finfo(dtype).eps * max(a.used.size, b.used.size) * jnp.maximum(squares[0], 0)
    kept = (squares > floor)[None, :]
    first = jnp.where(kept, first, 0)
    second = jnp.where(kept, across(first) / jnp.sqrt(jnp.where(kept, squares[None, :], 1)), 0)
    return closed_form((a.full(first, left.num_terms), b.full(second, right.num_terms)))
