"""Concept vectors of learned term weights (001 §3.1.2): a projection whose inputs are weighted by features."""

from __future__ import annotations

from typing import NamedTuple

import jax

from jaxsim import checks, sparse
from jaxsim.methods.weights.term_weights import values
from jaxsim.sparse import Vectors
from jaxsim.text.features import Featured


class Concepts(NamedTuple):
    """Parameters of VL-CV.

    Attributes:
      weights: ``A``, ``[num_terms, k]``.
      features: ``Λ``, ``[num_features]``.
    """

    weights: jax.Array
    features: jax.Array


def encode(params: Concepts, terms: Featured) -> Vectors:
    r"""Concept vectors :math:`G = A^\top \Phi^\top \Lambda` (001 §3.2.1).

    Args:
      params: `Concepts`.
      terms: documents with the features that the model was fitted on (scaled alike).

    Returns:
      `Vectors` with a dense part ``[num_docs, k]``; zero for an empty document.

    Raises:
      ValueError: for another vocabulary or another number of features.

    Example:
      >>> import jax.numpy as jnp, scipy.sparse
      >>> from jaxsim.text import features
      >>> documents = features.single(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]])))
      >>> encode(Concepts(jnp.ones((2, 1)), jnp.array([10.0])), documents).dense.tolist()
      [[30.0]]
    """
    checks.kind(params, "params", Concepts)
    checks.kind(terms, "terms", Featured)
    weighted = sparse.with_values(terms.terms, values(params.features, terms))
    return Vectors(dense=sparse.project(weighted, params.weights))
