"""Oriented principal component analysis over two or more languages (002 §2.2)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse

from jaxsim import checks, linalg, sparse
from jaxsim.linalg import covariance, krylov
from jaxsim.linalg.covariance import Factor, Ridge
from jaxsim.linalg.row_space import RowSpace
from jaxsim.methods import statistics
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms
from jaxsim.sparse.compilation import seldom
from jaxsim.text import weightings

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""

_CLOSE = 1e-3  # error of a squared length; where all is well it is a hundredth of that
_CLOSE_SUMS = 1e-4  # the same of sums of all vectors, of which one wrong vector is a part alone
_FIRST, _LAST, _SUMS = 8, 32, 8
_WRONG = 0.1  # error of a squared length that is refused where float64 would take too long
_DENSE = 4_000  # terms up to which a solution in float64 takes seconds


def _differences(matrices: Sequence[scipy.sparse.csr_matrix]):
    """Sparse rows ``E`` with ``EᵀE = Σ_m (D_m - D̄)ᵀ(D_m - D̄) / n``."""
    n = matrices[0].shape[0]
    if len(matrices) == 2:
        # Both languages are equally far from their mean.
        return (matrices[0] - matrices[1]) / np.sqrt(2.0 * n)
    mean = sum(matrices[1:], start=matrices[0]) / len(matrices)
    return scipy.sparse.vstack([matrix - mean for matrix in matrices]) / np.sqrt(n)


@linalg.precise
def fit(views: Sequence[Terms], *, k: int, noise: float = 0.1, spread: Terms | None = None) -> Fit:
    r"""Projects on the ``k`` leading solutions of :math:`S v = \lambda N v` (002 Eq. 7, 9-11).

    .. math:: S = \sum_m D_m^\top D_m / n - \mu_m \mu_m^\top, \qquad
              N = \sum_m (D_m - \bar D)^\top (D_m - \bar D) / n + \gamma I

    Args:
      views: two or more `Terms` of weighted documents, row i comparable in all of them, over shared vocabulary slots.
      k: target dimension, at most ``num_terms``.
      noise: ``γ``, positive, in squared units of the weights; 0.1 suits `log_tfidf` (002 §2.2).
      spread: rows of a linear map ``M``, ``[num_terms, n]``, or None. The fit is then that of documents ``x M``, of
        ``n`` terms (`Subwords.spread`, say), in less time where these have many more terms.

    Returns:
      `Fit` of `Projection` with ``vᵀ N v = 1``, in descending order of ``λ``, so that the first ``j`` dimensions are
      the fit at ``k = j``. With ``k`` beyond the terms in use the last columns, whose λ is 0, are shorter, or 0.

    Raises:
      ValueError: if the views do not agree, ``k`` is out of range, ``noise`` is not positive, so large that the
        documents are lost beside it, or too small beside them, or ``spread`` does not fit the views.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> left = from_scipy(scipy.sparse.csr_matrix([[2.0, 1.0], [-2.0, -1.0]]))
      >>> right = from_scipy(scipy.sparse.csr_matrix([[2.0, -1.0], [-2.0, 1.0]]))
      >>> weights = fit((left, right), k=1, noise=0.5).params.weights[:, 0]
      >>> [round(float(w), 4) for w in weights]
      [1.4142, 0.0]

    Few documents over many terms are solved inside their span (`row_space`), which changes no more than rounding. A
    term that no document has gets a row of zeros.

    Relations: `pca` is the same with ``N = I``; `dda` solves it in two stages where ``num_terms`` is too large;
    `s2net` starts from it.
    """
    views = statistics.checked_views(views)
    if spread is not None:
        checks.kind(spread, "spread", Terms)
        checks.expect(spread.num_docs == views[0].num_terms, "spread", f"{views[0].num_terms} rows (terms of views)",
                      spread.num_docs)  # fmt: skip
    v = views[0].num_terms if spread is None else spread.num_terms
    checks.between(k, "k", v, "terms")
    checks.expect(0 < noise < np.inf, "noise", "a positive number", noise)
    statistics.expect_seen_beside(views, noise, "noise")
    weights = directions(views, k=k, noise=noise, spread=spread)
    return closed_form(Projection(jnp.where(seen(views, spread), weights, 0)))


@linalg.precise
def directions(views: Sequence[Terms], *, k: int, noise: float, spread: Terms | None = None) -> jax.Array:
    """The weights of `fit`, unchecked; those of terms that no document has are rounding."""
    v = views[0].num_terms if spread is None else spread.num_terms
    space = RowSpace.of(views, k=k, spread=spread)
    if space is not None:
        found = _inside(space, k, noise)
        # Documents of lower rank than their number have directions in their coordinates that are none over the terms.
        # As a rule they do not matter; where they do, these vectors lose their length.
        if _normalised(views, found, noise, spread):
            return found
    return _exact(views, spread, _solutions(views, functools.partial(Factor, spread=spread), v, k, noise), noise)


def _exact(views: Sequence[Terms], spread: Terms | None, found: jax.Array, noise: float) -> jax.Array:
    """What was found over all terms; solved again in float64 where float32 does not hold the noise beside ``N``."""
    if found.dtype != np.float32 or _normalised(views, found, noise, spread):
        return found
    if len(found) <= _DENSE:
        with contextlib.suppress(np.linalg.LinAlgError):  # float64 does not hold it either
            return _in_float64(_matrices(views, spread), found.shape[1], noise)
    if len(found) <= _DENSE or not _normalised(views, found, noise, spread, single=_WRONG, sums=_WRONG):
        raise ValueError(f"noise: expected a value that float32 holds beside the squared differences of the views, got "
                         f"{noise:g}; a larger noise, or documents of length one, are solved")
    return found


def _in_float64(matrices: Sequence[scipy.sparse.csr_matrix], k: int, noise: float) -> jax.Array:
    """The solutions over all terms by LAPACK, in float64."""
    n, size = matrices[0].shape
    means = np.concatenate([np.asarray(matrix.mean(axis=0)) for matrix in matrices])
    signal = sum((matrix.T @ matrix).toarray() for matrix in matrices) / n - means.T @ means
    rows = _differences(matrices)
    apart = (rows.T @ rows).toarray() + noise * np.eye(size)
    vectors = scipy.linalg.eigh(signal, apart, subset_by_index=[size - k, size - 1])[1]
    return linalg.fix_signs(jnp.asarray(vectors[:, ::-1], np.float32))


def _matrices(views: Sequence[Terms], spread: Terms | None) -> list[scipy.sparse.csr_matrix]:
    """The documents in float64."""
    matrices = [sparse.to_scipy(view).astype(np.float64) for view in views]
    return matrices if spread is None else [matrix @ sparse.to_scipy(spread).astype(np.float64) for matrix in matrices]


def _inside(space: RowSpace, k: int, noise: float) -> jax.Array:
    """The solutions in the span of the documents, over all terms."""
    weights = space.combined(_solutions(space.picks, space.inside, space.size, k, noise))
    # The orthonormal basis was rounded; what was found in it is made exact.
    signal, spread = _covariances(space.picks, space.exact)
    moved, apart = _moved(space.gram, weights, signal.product(weights), spread.covariance(weights), noise)
    rotation = krylov.ritz_generalised(weights, moved, apart)[1]
    return linalg.fix_signs(space.unfolded(krylov.times(weights, rotation)))


def _normalised(views: Sequence[Terms], vectors: jax.Array, noise: float, spread: Terms | None, *,
                single: float = _CLOSE, sums: float = _CLOSE_SUMS) -> bool:
    """Whether ``vᵀ N v`` is 1, from the documents in float64: of the first and last vectors, and of sums of all.

    The last ones are wrong first. Measuring all of them would take a fifth of a fit's time.
    """
    matrices = _matrices(views, spread)
    k = vectors.shape[1]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (k, _SUMS)).astype(np.float32)
    few = np.unique(np.r_[0 : min(_FIRST, k), max(k - _LAST, 0) : k])

    def close(columns, tolerance):
        columns = np.asarray(columns, np.float64)
        images = [matrix @ columns for matrix in matrices]
        middle = sum(images) / len(images)
        squares = sum(np.sum((image - middle) ** 2, axis=0) for image in images) / len(middle)
        squares += noise * np.sum(columns * columns, axis=0)
        return np.all(np.abs(squares - 1) <= tolerance)  # NaN is not close either

    with np.errstate(over="ignore", invalid="ignore"):
        some, mixed = _columns(vectors, few, signs / np.sqrt(k))
        return bool(close(some, single) and close(mixed, sums))


@seldom
def _columns(matrix, few, weights):
    """Some columns, and sums of all."""
    return matrix[:, few], matrix @ weights


def seen(views: Sequence[Terms], spread: Terms | None = None) -> np.ndarray:
    """``[n, 1]``: terms of any document; others have no part in a solution, and rounding must not give them one.

    Whoever normalises the vector of a document of such terms alone would otherwise divide rounding by rounding.
    """
    found = sum(weightings.document_frequency(sparse.to_scipy(view)) for view in views) > 0
    if spread is not None:
        found = weightings.document_frequency(sparse.to_scipy(spread)[found]) > 0
    return found[:, None]


class _Signal(NamedTuple):
    r"""``S + γ I - N``.

    With :math:`X = \sum_m D_m / \sqrt{M n}` it is :math:`X^\top X - \sum_m \mu_m \mu_m^\top`: one sparse factor for the
    documents of all languages.

    Attributes:
      together: the factor ``X``.
      means: ``[num_terms, M]``.
    """

    together: Factor
    means: jax.Array

    def product(self, x: jax.Array) -> jax.Array:
        """Its product with ``[num_terms, b]``."""
        return _less(self.together.covariance(x), self.means, x)

    def whole(self, noise: Ridge) -> linalg.Whole | None:
        """Dense ``S`` and ``N``; none where documents would have to be multiplied out to know how long that takes."""
        if noise.factor.spread is not None:
            return None

        def make():
            apart = noise.whole()
            return _plus(self.together.primal(), self.means, apart, noise.ridge), apart

        return linalg.Whole(make, self.together.primal_operations() + noise.factor.primal_operations())


def _covariances(views: Sequence[Terms], factor: Callable[..., Factor]) -> tuple[_Signal, Factor]:
    """The signal and the factor of ``N`` without ``γ``."""
    n, dtype = views[0].num_docs, views[0].values.dtype
    matrices = [sparse.to_scipy(view).astype(np.float64) for view in views]
    total = sum(matrices[1:], start=matrices[0]) / np.sqrt(len(views) * n)
    together = factor(sparse.from_scipy(total.tocsr().astype(dtype)), centred=False, scale=1.0)
    ones = np.ones((n, 1), dtype)
    means = jnp.concatenate([factor(view, centred=False, scale=1 / n).up(ones) for view in views], axis=1)
    spread = sparse.from_scipy(_differences(matrices).tocsr().astype(dtype))
    return _Signal(together, means), factor(spread, centred=False, scale=1.0)


@jax.jit
def _moved(gram, weights, image, apart, noise):
    """What the generalised eigenvectors are of, times the weights: of both matrices."""
    return image + apart, apart + noise * (gram @ weights)


@jax.jit
def _less(image, means, x):
    return image - means @ (means.T @ x)


@functools.partial(jax.jit, donate_argnums=0)
def _plus(together, means, apart, ridge):
    return together - means @ means.T + (apart - ridge * jnp.eye(len(apart), dtype=apart.dtype))


def _solutions(views: Sequence[Terms], factor: Callable[..., Factor], size: int, k: int, noise: float) -> jax.Array:
    signal, spread = _covariances(views, factor)
    ridge = Ridge(spread, noise, argument="noise", tolerance=covariance.ROUGH, columns=4 * k)
    # The start of the Krylov iteration is fixed: the eigenvectors do not depend on it.
    _, vectors = linalg.top_generalised(
        lambda x: covariance.ridged(signal.product(x), -ridge.ridge, x), ridge.apply, ridge.solve, size, k,
        key=jax.random.key(0), shift=1.0, dtype=views[0].values.dtype, work=2 * ridge.work,
        solve_work=ridge.solve_work, argument="noise", whole=signal.whole(ridge)
    )
    return vectors
