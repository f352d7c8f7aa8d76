"""The term weighting log2(tf + 1) · log2(n / df) of 002 Eq. (8)."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from jaxsim.methods import statistics
from jaxsim.methods.weights.weighting import LogTfIdf, encode
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms
from jaxsim.text import weightings

__all__ = ["encode", "fit"]


def fit(terms: Terms) -> Fit:
    """Document frequencies of training counts; no term of another document enters.

    Args:
      terms: training counts, ``[num_docs, num_terms]``.

    Returns:
      `Fit` of `jaxsim.methods.weights.weighting.LogTfIdf`; a term without training documents has weight 0.

    Raises:
      ValueError: for negative counts.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> counts = from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [1.0, 1.0]]))
      >>> [round(float(x), 4) for x in fit(counts).params.idf]
      [0.0, 1.0]

    Relations: the cosine of these vectors is the baseline of every table.
    """
    matrix = statistics.counts_of(terms, "terms")
    idf = weightings.inverse_frequency(weightings.document_frequency(matrix), terms.num_docs, np.log2)
    return closed_form(LogTfIdf(jnp.asarray(idf, terms.values.dtype)))
