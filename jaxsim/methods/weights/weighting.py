"""Term weightings of counts: each family is one NamedTuple and one encode, all of them sparse."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import checks, sparse
from jaxsim.sparse import Terms, Vectors
from jaxsim.text import weightings


class TfIdf(NamedTuple):
    """Parameters of ``tf · log(N / df)``.

    Attributes:
      idf: ``[num_terms]``.
    """

    idf: jax.Array


class LogTfIdf(NamedTuple):
    """Parameters of ``log2(tf + 1) · log2(n / df)``.

    Attributes:
      idf: ``[num_terms]``.
    """

    idf: jax.Array


class Bm25(NamedTuple):
    """Parameters of the document side of Okapi BM25.

    Attributes:
      idf: ``[num_terms]``.
      k1: scalar, saturation of the count.
      b: scalar in [0, 1], length normalisation.
      average_length: scalar, mean number of tokens.
    """

    idf: jax.Array
    k1: jax.Array
    b: jax.Array
    average_length: jax.Array


def _lengths(counts: Terms) -> jax.Array:
    """Sum of the counts of each document."""
    ones = jnp.ones((counts.num_terms, 1), counts.values.dtype)
    return sparse.project(counts, ones)[:, 0]


def _rows(counts: Terms) -> jax.Array:
    """The document of each slot."""
    slots = jnp.arange(counts.nnz, dtype=jnp.int32)
    row = jnp.searchsorted(counts.indptr, slots, side="right") - 1
    return jnp.minimum(row, max(counts.num_docs - 1, 0))


def encode(params: TfIdf | LogTfIdf | Bm25, terms: Terms) -> Vectors:
    """Weighted documents.

    Args:
      params: one of the families above.
      terms: counts over ``num_terms`` terms.

    Returns:
      `Vectors` with a sparse part. For BM25 a score is the dot product of these with a query's counts, which need no
      weighting: ``Vectors(sparse=query_counts)``.

    Example:
      >>> import scipy.sparse
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 0.0]]))
      >>> encode(LogTfIdf(jnp.array([0.5, 1.0])), counts).sparse.values.tolist()
      [1.0]
    """
    checks.kind(params, "params", TfIdf, LogTfIdf, Bm25)
    checks.kind(terms, "terms", Terms)
    counts = terms.values
    if isinstance(params, LogTfIdf):
        counts = weightings.log_counts(counts)
    elif isinstance(params, Bm25) and terms.num_docs:
        mean = jnp.maximum(params.average_length, jnp.finfo(counts.dtype).tiny)
        counts = weightings.saturated_counts(counts, _lengths(terms)[_rows(terms)] / mean, params.k1, params.b)
    return Vectors(sparse=sparse.weigh(sparse.with_values(terms, counts), params.idf.astype(counts.dtype)))
