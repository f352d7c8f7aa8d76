r"""A Mahalanobis metric in identity-plus-low-rank form: :math:`A = I + U \operatorname{diag}(l) U^\top` (001 §2.2).

A low-rank metric without the identity is a `Projection`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import checks, sparse
from jaxsim.sparse import Terms, Vectors


class Metric(NamedTuple):
    """Parameters of HDILR.

    Attributes:
      basis: ``U``, ``[num_terms, k]``, orthonormal columns, ascending in ``gains``.
      gains: ``l``, ``[k]``, each above -1: how much a direction weighs beyond the identity; negative where the metric
        shortens it.
    """

    basis: jax.Array
    gains: jax.Array


def encode(params: Metric, terms: Terms) -> Vectors:
    r"""Documents of length one under the metric.

    Args:
      params: `Metric`.
      terms: weighted documents.

    Returns:
      `Vectors` with both parts, divided by :math:`\sqrt{x^\top A x}`: ``dense`` is :math:`\sqrt{|l|}\,U^\top x`,
      ``[num_docs, k]``, and ``sparse`` is x. Gains may be negative, so that two documents are compared by
      `evaluate.retrieval.signed` with the `signs` of the metric, not by a plain cosine.

    Raises:
      ValueError: for another vocabulary.

    Example:
      >>> import scipy.sparse
      >>> params = Metric(jnp.array([[1.0], [0.0]]), jnp.array([3.0]))  # the first term counts four times
      >>> found = encode(params, sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]])))
      >>> [[round(float(x), 3) for x in row] for row in found.dense], found.sparse.values.tolist()
      ([[0.866], [0.0]], [0.5, 1.0])
    """
    checks.kind(params, "params", Metric)
    checks.kind(terms, "terms", Terms)
    inside = sparse.project(terms, params.basis)
    slots = jnp.arange(terms.nnz)
    document = jnp.searchsorted(terms.indptr, slots, side="right") - 1
    squares = jnp.zeros(terms.num_docs, terms.values.dtype).at[document].add(terms.values**2, mode="drop")
    squares = squares + jnp.sum(params.gains[None, :] * inside**2, axis=1)
    some = squares > 0
    scale = jnp.where(some, 1 / jnp.sqrt(jnp.where(some, squares, 1)), 0)
    values = jnp.where(document < terms.num_docs, terms.values * scale[jnp.minimum(document, terms.num_docs - 1)], 0)
    dense = inside * jnp.sqrt(jnp.abs(params.gains))[None, :] * scale[:, None]
    return Vectors(dense, sparse.with_values(terms, values))


def signs(params: Metric) -> jax.Array:
    r"""Signs of the gains, with which encoded documents are compared: `evaluate.retrieval.signed`.

    Args:
      params: `Metric`.

    Returns:
      ``[k]``, 1 or -1: the cosine under the metric, :math:`x^\top A y / \sqrt{x^\top A x\; y^\top A y}`, is the sum of
      the products of the dense parts times these and of the products of the sparse parts.

    Example:
      >>> signs(Metric(jnp.array([[1.0], [0.0]]), jnp.array([-0.75]))).tolist()
      [-1.0]
    """
    return jnp.where(params.gains < 0, -1.0, 1.0).astype(params.gains.dtype)
