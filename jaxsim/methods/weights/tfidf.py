"""The term weighting tf · log(N / df) of 001 Eq. (5) and 004 Eq. (2)."""

from __future__ import annotations

import jax.numpy as jnp

from jaxsim.methods import statistics
from jaxsim.methods.weights.weighting import TfIdf, encode
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms
from jaxsim.text import weightings

__all__ = ["encode", "fit"]


def fit(terms: Terms) -> Fit:
    """Document frequencies of training counts; no term of another document enters.

    Args:
      terms: training counts, ``[num_docs, num_terms]``.

    Returns:
      `Fit` of `jaxsim.methods.weights.weighting.TfIdf`; a term without training documents has weight 0.

    Raises:
      ValueError: for negative counts.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> counts = from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]))
      >>> [round(float(x), 4) for x in fit(counts).params.idf]
      [0.0, 0.6931]

    Relations: the cosine of these vectors is the baseline of every table.
    """
    matrix = statistics.counts_of(terms, "terms")
    idf = weightings.inverse_frequency(weightings.document_frequency(matrix), terms.num_docs)
    return closed_form(TfIdf(jnp.asarray(idf, terms.values.dtype)))
