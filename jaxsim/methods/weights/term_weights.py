"""Learned term weights: a linear function of features of a term in a document (004 Eq. 3, 001 Eq. 1)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim import checks, sparse
from jaxsim.sparse import Vectors
from jaxsim.sparse.precision import EVALUATION
from jaxsim.text.features import Featured


class TermWeights(NamedTuple):
    """Parameters of TWEAK.

    Attributes:
      weights: ``w`` (004) or ``Λ`` (001), ``[num_features]``.
    """

    weights: jax.Array


def values(weights: jax.Array, documents: Featured) -> jax.Array:
    r"""The weight of every term in every document, :math:`s_{ip} = \sum_j w_j \phi_j(t_i, D_p)`.

    Args:
      weights: ``[num_features]``.
      documents: with as many columns.

    Returns:
      ``[slots]``; 0 at padding.

    Raises:
      ValueError: for another number of columns.
    """
    wanted = (len(documents.names),)
    checks.expect(weights.shape == wanted, "weights", f"shape {wanted} (features of the documents)", weights.shape)
    return jnp.matmul(documents.columns, weights.astype(documents.columns.dtype), precision=EVALUATION)


def encode(params: TermWeights, terms: Featured) -> Vectors:
    """Weighted documents.

    Args:
      params: `TermWeights`.
      terms: documents with the features that the model was fitted on (scaled alike).

    Returns:
      `Vectors` with a sparse part.

    Raises:
      ValueError: for another number of features.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 0.0, 1.0]]))
      >>> documents = features.from_counts(counts, [1, 1, 1], names=("bias", "tf"))
      >>> encode(TermWeights(jnp.array([10.0, 1.0])), documents).sparse.values.tolist()
      [13.0, 11.0]
    """
    checks.kind(params, "params", TermWeights)
    checks.kind(terms, "terms", Featured)
    return Vectors(sparse=sparse.with_values(terms.terms, values(params.weights, terms)))
