"""Canonical correlation analysis: one projection a language (002 §2.3)."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, linalg, sparse
from jaxsim.linalg import cost, covariance, grams
from jaxsim.linalg.covariance import Factor, Ridge
from jaxsim.methods import statistics
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms
from jaxsim.text import weightings

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""

_MOST = 6_000
"""Documents up to which all is done in dense matrices of their number, where there are more terms."""
_FLOOR = 100
"""Times the precision: squares that are smaller beside the first are rounding. Of hundreds of thousands of terms too: a
floor that grew with them would drop correlations that count."""


class _Side:
    """One language over the terms it uses: centred documents and the regularised covariance."""

    def __init__(self, documents: Terms, ridge: float, columns: int | None, tolerance: float | None = None):
        matrix = sparse.to_scipy(documents)
        self.used = np.unique(matrix.indices[matrix.data != 0])
        self.factor = Factor(sparse.from_scipy(matrix[:, self.used]), centred=True,
                             scale=1 / np.sqrt(documents.num_docs))
        self.ridge = Ridge(self.factor, ridge, argument="ridge", tolerance=tolerance,
                           columns=columns)

    def full(self, x, num_terms: int) -> Projection:
        return Projection(_filled(x, self.used, num_terms))


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
      ValueError: if the sides differ in documents, ``k`` is out of range, or ``ridge`` is not positive, or so large
        that the documents are lost beside it.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> left = from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 1.0]]))
      >>> a, b = fit(left, left, k=1).params
      >>> bool(jnp.allclose(a.weights, b.weights))
      True

    Directions are those of centred documents, while encoding does not centre: cosines between the sides order
    documents, but their level, and even their sign, mean nothing.

    Relations: `opca` minimises distances where this maximises correlations, and shares its terms between languages.
    """
    statistics.expect_sides(left, right, same="documents")
    checks.expect(left.num_docs >= 1, "left", "at least one document", 0)
    checks.expect(0 < ridge < np.inf, "ridge", "a positive number", ridge)
    statistics.expect_seen_beside((left, right), ridge, "ridge", power=2)
    used = [weightings.document_frequency(sparse.to_scipy(side)).astype(bool).sum() for side in (left, right)]
    most = int(min(used))
    checks.between(k, "k", most, "terms used on either side")
    inside = k <= left.num_docs < most and left.num_docs <= _MOST
    columns = None if inside else 4 * k
    # The solve of the right side is a part of the operator, that of the left side only spans the Krylov space.
    a, b = _Side(left, ridge, columns, covariance.ROUGH), _Side(right, ridge, columns)
    squares, first = (_inside if inside else _over)(a, b, k)
    # Beyond the rank of C12 a direction has no partner: dividing by its correlation would only scale rounding up.
    floor = _FLOOR * jnp.finfo(left.values.dtype).eps * jnp.maximum(squares[0], 0)
    kept = (squares > floor)[None, :]
    first = jnp.where(kept, first, 0)
    second = jnp.where(kept, _across(a, b, first) / jnp.sqrt(jnp.where(kept, squares[None, :], 1)), 0)
    return closed_form((a.full(first, left.num_terms), b.full(second, right.num_terms)))


@functools.partial(jax.jit, static_argnames="num_terms")
def _filled(weights, used, num_terms: int):
    """Weights of all terms: 0 but for those that are used."""
    return jnp.zeros((num_terms, weights.shape[1]), weights.dtype).at[used].set(weights)


def _across(a: _Side, b: _Side, x):
    return b.ridge.regress(a.factor.down(x))[0]


def _over(a: _Side, b: _Side, k: int):
    """``(squared correlations, left directions)`` by solves over the terms."""
    # The start of the Krylov iteration is fixed: the eigenvectors do not depend on it.
    return linalg.top_generalised(
        lambda x: a.factor.up(b.factor.down(_across(a, b, x))), a.ridge.apply, a.ridge.solve, a.used.size, k,
        key=jax.random.key(0), dtype=a.factor.documents.values.dtype, solve_work=a.ridge.solve_work,
        work=2 * a.ridge.work + b.ridge.work + b.ridge.solve_work, argument="ridge", whole=_whole(a, b)
    )


def _whole(a: _Side, b: _Side) -> linalg.Whole | None:
    """``C₁₂ (C₂₂ + γ I)⁻¹ C₂₁`` and ``C₁₁ + γ I`` as dense matrices, where the right side has a factor of its terms."""
    if b.ridge.dual or b.ridge.iterated:
        return None
    left, right = a.factor, b.factor
    solved = right.num_terms * left.num_terms * (right.num_terms + 2.0 * left.num_terms)
    operations = left.primal_operations() + right.primal_operations() + solved * cost.GRAM / cost.SQUARE

    def make():
        across = grams.gram(left.documents, right.documents)
        return _signal(across, left.mean, right.mean, left.num_docs, b.ridge.cholesky), a.ridge.whole()

    return linalg.Whole(make, operations + grams.operations(left.documents, right.documents))


@jax.jit
@linalg.precise
def _signal(across, left, right, num_docs, cholesky):
    """The dense signal, of the products of both sides' documents and their means."""
    covariances = across / num_docs - left * right.T
    half = jax.scipy.linalg.solve_triangular(cholesky, covariances.T, lower=True)
    return half.T @ half


def _inside(a: _Side, b: _Side, k: int):
    r"""The same of fewer documents than terms, by dense matrices of as many rows as there are documents.

    With :math:`K_i = F_i F_i^\top` and the eigenvectors of :math:`K_1 = U \Sigma U^\top`, the left directions are
    :math:`F_1^\top U (\Sigma (\Sigma + \gamma I))^{-1/2} Y` where :math:`Y` are the leading eigenvectors of
    :math:`B U^\top K_2 (K_2 + \gamma I)^{-1} U B`, with :math:`B^2 = \Sigma (\Sigma + \gamma I)^{-1}`.
    """
    values, vectors = _all_eigh(a.factor.dual())
    shrunk = jnp.sqrt(values / (values + a.ridge.ridge))
    matrix = _seen(b.ridge.cholesky, b.ridge.ridge, vectors * shrunk[None, :])
    squares, leading = linalg.leading_eigh(matrix, k)
    scale = jnp.where(values > 0, shrunk / jnp.where(values > 0, values, 1), 0)
    return squares, linalg.fix_signs(a.factor.up(linalg.krylov.times(vectors * scale[None, :], leading)))


@jax.jit
@linalg.precise
def _all_eigh(matrix):
    # Eigenvalues that are no more than rounding belong to directions that no document has.
    values, vectors = jnp.linalg.eigh((matrix + matrix.T) / 2)
    floor = min(len(values), _FLOOR) * jnp.finfo(values.dtype).eps * values[-1]
    return jnp.where(values > floor, values, 0), vectors


@jax.jit
@linalg.precise
def _seen(cholesky, ridge, x):
    """``xᵀ K (K + γ I)⁻¹ x``, by the Cholesky factor of ``K + γ I``."""
    half = jax.scipy.linalg.solve_triangular(cholesky, x, lower=True)
    matrix = x.T @ x - ridge * (half.T @ half)
    return (matrix + matrix.T) / 2
