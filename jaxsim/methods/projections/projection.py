"""Linear projections into a concept space, optionally followed by an elementwise function."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax

from jaxsim import checks, sparse
from jaxsim.sparse import Terms, Vectors


class Projection(NamedTuple):
    """Parameters of LSA, PCA, CL-LSI, OPCA, CCA, DDA and S2Net.

    Attributes:
      weights: ``A``, ``[num_terms, k]``.
    """

    weights: jax.Array


def encode(params: Projection, terms: Terms, *, activation: Callable | None = None) -> Vectors:
    r"""Concept vectors :math:`g = A^\top f` of all documents (000 Eq. 1).

    Args:
      params: `Projection`.
      terms: documents over ``num_terms`` terms, in any storage that `sparse.project` takes.
      activation: as for `sparse.activated`.

    Returns:
      `Vectors` with a dense part ``[num_docs, k]``; zero for an empty document.

    Raises:
      ValueError: if ``terms`` has another vocabulary size than ``params``.

    Example:
      >>> import jax.numpy as jnp, scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]]))
      >>> encode(Projection(jnp.ones((2, 1))), documents).dense.tolist()
      [[3.0]]
    """
    checks.kind(params, "params", Projection)
    dense = sparse.project(terms, params.weights)
    return Vectors(dense=sparse.activated(dense, activation))


def truncate(params: Projection, k: int) -> Projection:
    """Keeps the first ``k`` dimensions. Closed forms but `cr5` order theirs, so one fit serves every smaller ``k``.

    Args:
      params: `Projection` of at least ``k`` dimensions, or a tuple of them.
      k: dimensions kept.

    Returns:
      The same structure with weights ``[num_terms, k]``.

    Example:
      >>> import jax.numpy as jnp
      >>> truncate(Projection(jnp.ones((2, 5))), 3).weights.shape
      (2, 3)
    """
    return jax.tree.map(lambda weights: weights[:, :k], params)
