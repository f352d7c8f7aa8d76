"""Term weightings of counts: each family is one NamedTuple and one encode, all of them sparse."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import checks, sparse
from jaxsim.sparse import Terms, Vectors


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
    ones = jnp.ones((counts.num_terms, 1), counts.values.dtype)
    return sparse.project(counts, ones)[:, 0]


def _rows(counts: Terms) -> jax.Array:
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
        terms = sparse.with_values(terms, jnp.log2(counts + 1))
    elif isinstance(params, Bm25):
        length = _lengths(terms)[_rows(terms)] if terms.num_docs else counts
        relative = length / jnp.maximum(params.average_length, jnp.finfo(counts.dtype).tiny)
        norm = params.k1 * (1 - params.b + params.b * relative)
        # A padding slot has count 0; so might norm be where k1 is 0.
        total = counts + norm
        terms = sparse.with_values(terms, counts * (params.k1 + 1) / jnp.where(total > 0, total, 1))
    return Vectors(sparse=sparse.weigh(terms, params.idf.astype(counts.dtype)))
