"""Okapi BM25: not in the papers, but a baseline that readers expect."""

from __future__ import annotations

import jax.numpy as jnp

from jaxsim.methods import statistics
from jaxsim.methods.weights.weighting import Bm25, encode
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms
from jaxsim.text import weightings

__all__ = ["encode", "fit"]


def fit(terms: Terms, *, k1: float = 1.2, b: float = 0.75) -> Fit:
    r"""Statistics of training counts for BM25 with the non-negative idf :math:`\log(1 + (N - df + .5)/(df + .5))`.

    Args:
      terms: training counts, ``[num_docs, num_terms]``.
      k1: saturation of the count, at least 0.
      b: length normalisation in [0, 1].

    Returns:
      `Fit` of `jaxsim.methods.weights.weighting.Bm25`: `encode` gives the document side, a query is its bare counts.

    Raises:
      ValueError: for negative counts, ``k1`` or ``b`` out of range.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> fit(from_scipy(scipy.sparse.csr_matrix([[1.0, 3.0]]))).params.average_length.item()
      4.0

    Relations: `tfidf` with a count that saturates and a penalty on length.
    """
    weightings.expect_bm25(k1, b)
    matrix = statistics.counts_of(terms, "terms")
    idf = weightings.okapi_inverse_frequency(weightings.document_frequency(matrix), terms.num_docs)
    length = matrix.sum() / max(terms.num_docs, 1)
    return closed_form(Bm25(*(jnp.asarray(x, terms.values.dtype) for x in (idf, k1, b, length))))
