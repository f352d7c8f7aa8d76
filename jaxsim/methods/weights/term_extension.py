r"""Extended term vectors of learned term weights (001 §3.1.1): related terms lend each other weight.

The weight of a term is its own, linear in features, plus a share of those of its related terms, so that a document gets
weight at terms that it does not contain. The vocabulary stays as it is. Terms that have relations, a few thousand at
most, are called *touched*; documents have weight at most of these once they are extended, so that these columns are
the dense part of `Vectors`, and the others stay sparse.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.methods.weights.term_weights import values
from jaxsim.sparse import Terms, Vectors
from jaxsim.text.features import Featured


class TermExtension(NamedTuple):
    r"""Parameters of VL-Ext; build with `make`.

    Attributes:
      features: ``Λ``, ``[num_features]``.
      related: `Terms` of the touched terms: row k holds :math:`\alpha_{ik}`, what term i lends to term k. The diagonal
        of ``A``, which is 1, is not stored.
      touched: ``[num_touched]`` int32 terms that have relations, ascending: rows and columns of ``related``.
    """

    features: jax.Array
    related: Terms
    touched: jax.Array


def make(features, sources, targets, weights=None) -> TermExtension:
    """Puts coefficients between terms together, checking them once.

    Args:
      features: ``[num_features]`` weights of features, ``Λ``.
      sources: ``[n]`` integer terms that lend weight (i).
      targets: ``[n]`` integer terms that are lent it (k), others than their sources.
      weights: ``[n]`` coefficients; 0, where the extension changes nothing yet, unless given.

    Returns:
      `TermExtension` in the type of the features, a floating one where they are whole numbers.

    Raises:
      ValueError: for lists of different lengths, no relation, terms below 0, a term related to itself, a relation that
        comes twice, or weights that are not finite.

    Example:
      >>> found = make(jnp.ones(1), [4], [2], [0.5])
      >>> found.touched.tolist(), sparse.to_scipy(found.related).toarray().tolist()
      ([2, 4], [[0.0, 0.5], [0.0, 0.0]])
    """
    features = jnp.asarray(features)
    if not jnp.issubdtype(features.dtype, jnp.floating):  # coefficients in their type would all be 0
        features = features.astype(jnp.result_type(float))
    lists = []
    for name, given in (("sources", sources), ("targets", targets)):
        given = np.asarray(given)
        whole = given.ndim == 1 and np.issubdtype(given.dtype, np.integer)
        checks.expect(whole, name, "one axis of integers", f"{given.dtype} of shape {given.shape}")
        checks.expect(given.size > 0, name, "at least one relation", "none")
        checks.expect(given.min() >= 0, name, "terms of at least 0", given.min())
        lists.append(given.astype(np.int64))
    source, target = lists
    weights = np.zeros(source.shape) if weights is None else np.asarray(weights, np.float64)
    checks.expect(source.shape == target.shape == weights.shape, "sources", "as many as targets and weights",
                  f"{source.shape}, {target.shape} and {weights.shape}")
    checks.expect(bool(np.all(source != target)), "targets", "other terms than their sources", "a term and itself")
    checks.expect(bool(np.isfinite(weights).all()), "weights", "finite numbers", "NaN or infinity")
    touched = np.unique(np.concatenate(lists))
    size = touched.size
    place = np.searchsorted(touched, target) * size + np.searchsorted(touched, source)
    order = np.argsort(place, kind="stable")
    place = place[order]
    checks.expect(bool(np.all(np.diff(place) > 0)), "sources", "every relation once", "a relation twice")
    indptr = np.searchsorted(place, np.arange(size + 1) * size)
    dtype = np.result_type(features.dtype)
    csr = scipy.sparse.csr_matrix((weights[order].astype(dtype), place % size, indptr), (size, size))
    return TermExtension(features, sparse.from_scipy(csr), jnp.asarray(touched, jnp.int32))


def relations(params: TermExtension) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The coefficients as lists, on the host.

    Args:
      params: `TermExtension`.

    Returns:
      ``(sources, targets, weights)``, each ``[n]``.

    Example:
      >>> [part.tolist() for part in relations(make(jnp.ones(1), [4], [2], [0.5]))]
      [[4], [2], [0.5]]
    """
    matrix, touched = sparse.to_scipy(params.related), np.asarray(params.touched)
    rows = np.repeat(np.arange(len(touched)), np.diff(matrix.indptr))
    return touched[matrix.indices], touched[rows], matrix.data


def extended(related: Terms, weights: jax.Array, slots: jax.Array, document: jax.Array, num_docs: int) -> jax.Array:
    r"""Weights of all touched terms in all documents, :math:`f_k + \sum_i \alpha_{ik} f_i` (001 Eq. 2).

    Args:
      related: as in `TermExtension`.
      weights: ``[n]`` term weights.
      slots: ``[n]`` int32 row of ``related`` that each weight is of; out of range: of none.
      document: ``[n]`` int32 document of each weight.
      num_docs: number of documents.

    Returns:
      ``[num_docs, num_touched]``, differentiable in ``weights`` and in the values of ``related``. Time and memory are
      those of ``(relations + touched terms) x num_docs``.
    """
    own = jnp.zeros((related.num_docs, num_docs), weights.dtype)
    own = own.at[slots, document].set(weights, mode="drop")
    return (own + sparse.project(related, own)).T


def documents_of(documents: Terms) -> jax.Array:
    """``[slots]`` int32 document of every slot; ``num_docs`` at padding."""
    slots = jnp.arange(documents.nnz, dtype=jnp.int32)
    return jnp.searchsorted(documents.indptr, slots, side="right").astype(jnp.int32) - 1


def encode(params: TermExtension, terms: Featured) -> Vectors:
    r"""Extended term vectors :math:`G = A^\top \Phi^\top \Lambda` (001 §3.2.1).

    Args:
      params: `TermExtension`.
      terms: documents with the features that the model was fitted on (scaled alike).

    Returns:
      `Vectors` with both parts: touched terms in ``dense``, ``[num_docs, num_touched]``, and the others in ``sparse``,
      over the whole vocabulary. A collection of very many documents is best encoded a part at a time.

    Raises:
      ValueError: for another number of features, or a vocabulary without a touched term.

    Example:
      >>> from jaxsim.text import features
      >>> documents = features.single(sparse.from_scipy(scipy.sparse.csr_matrix([[10.0, 1.0, 0.0]])))
      >>> found = encode(make(jnp.ones(1), [0], [2], [0.5]), documents)  # term 2 gets half of term 0
      >>> found.dense.tolist(), sparse.to_scipy(found.sparse).toarray().tolist()
      ([[10.0, 5.0]], [[0.0, 1.0, 0.0]])
    """
    checks.kind(params, "params", TermExtension)
    checks.kind(terms, "terms", Featured)
    weights, num_terms = values(params.features, terms), terms.num_terms
    if not isinstance(params.touched, jax.core.Tracer):
        most = int(params.touched[-1])
        checks.expect(most < num_terms, "terms", f"a vocabulary of at least {most + 1} terms", num_terms)
    size = params.touched.shape[0]
    place = jnp.full(num_terms, size, jnp.int32).at[params.touched].set(jnp.arange(size, dtype=jnp.int32))
    slots = place[terms.terms.indices]
    dense = extended(params.related, weights, slots, documents_of(terms.terms), terms.num_docs)
    return Vectors(dense, sparse.with_values(terms.terms, jnp.where(slots < size, 0, weights)))
