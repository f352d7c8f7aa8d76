"""Latent semantic analysis: the truncated singular value decomposition of the document-term matrix (002 Eq. 1)."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp

from jaxsim import checks, linalg
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""


def fit(terms: Terms, *, k: int, singular_power: float = 0.0, tolerance: float = linalg.TOLERANCE) -> Fit:
    r"""Projects on the ``k`` leading right singular vectors, :math:`A = V_k \Sigma_k^p`.

    Args:
      terms: weighted documents, ``[num_docs, num_terms]``.
      k: target dimension, at most ``min(num_docs, num_terms)``.
      singular_power: ``p``; 0 keeps the variance of documents along each axis, -1 whitens it.
      tolerance: largest residual of the last singular vectors, relative to its squared singular value. At infinity
        one Krylov basis is filled and no more, which is faster than a randomised solver and keeps more of the squares.

    Returns:
      `Fit` of `Projection`, dimensions in descending order of singular value, so that the first ``j`` are the fit at
      ``k = j``. Columns beyond the numerical rank are 0.

    Raises:
      ValueError: if ``k`` is out of range, or singular values that are needed are infinite.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> documents = from_scipy(scipy.sparse.csr_matrix([[2.0, 0.0], [0.0, 1.0]]))
      >>> [abs(round(float(w), 4)) for w in fit(documents, k=1).params.weights[:, 0]]
      [1.0, 0.0]

    Relations: `pca` subtracts the mean; `cl_lsi` is this on summed comparable documents.
    """
    checks.kind(terms, "terms", Terms)
    # The start of the Krylov iteration is fixed: the singular vectors do not depend on it.
    values, right = linalg.truncated_svd(terms, k, key=jax.random.key(0), tolerance=tolerance)
    finite = singular_power == 0 or bool(jnp.all(jnp.isfinite(values)))
    checks.expect(finite, "terms", "singular values within their precision, or singular_power 0", "larger ones")
    return closed_form(Projection(_scaled(right, values, power=singular_power)))


@functools.partial(jax.jit, static_argnames="power")
def _scaled(right, values, power: float):
    """Singular vectors times a power of their values, 0 where these are."""
    return right * jnp.where(values > 0, jnp.where(values > 0, values, 1) ** power, 0)[None, :]
