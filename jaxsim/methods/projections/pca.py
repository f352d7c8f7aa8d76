"""Principal component analysis: eigenvectors of the covariance of documents (002 §2.2: OPCA with spherical noise)."""

from __future__ import annotations

import jax
import numpy as np

from jaxsim import checks, linalg
from jaxsim.linalg.covariance import Factor
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""


def fit(terms: Terms, *, k: int) -> Fit:
    r"""Projects on the ``k`` leading eigenvectors of :math:`D^\top D / n - \mu\mu^\top`.

    Args:
      terms: weighted documents, ``[num_docs, num_terms]``.
      k: target dimension, at most ``min(num_docs, num_terms)``.

    Returns:
      `Fit` of `Projection`, dimensions in descending order of variance. The mean is not
      subtracted when documents are projected, as for the concept vectors of 000.

    Raises:
      ValueError: if ``k`` is out of range.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> documents = from_scipy(scipy.sparse.csr_matrix([[2.0, 1.0], [-2.0, 1.0]]))
      >>> [abs(round(float(w), 4)) for w in fit(documents, k=1).params.weights[:, 0]]
      [1.0, 0.0]

    Relations: `lsa` without the mean; `opca` weighs the directions by a noise covariance.
    """
    checks.kind(terms, "terms", Terms)
    n, v = terms.num_docs, terms.num_terms
    checks.between(k, "k", min(n, v), "the largest possible rank")
    terms, _ = linalg.moderate(terms)  # eigenvectors have no scale
    factor = Factor(terms, centred=True, scale=1 / np.sqrt(n))
    # The start of the Krylov iteration is fixed: the eigenvectors do not depend on it.
    _, vectors = linalg.top_eigh(factor.covariance, v, k, key=jax.random.key(0), dtype=terms.values.dtype,
                                 work=2 * linalg.cost.sparse(factor.slots),
                                 whole=linalg.Whole(factor.primal, factor.primal_operations()))
    return closed_form(Projection(vectors))
