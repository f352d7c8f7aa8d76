"""S2Net from the identity, in coordinates of the span of the training documents.

A random start of k dimensions has A₀A₀ᵀ near the identity, ever nearer as k grows, and S2Net sees A in AAᵀ alone. So
the identity, with as many dimensions as there are terms, is where ever larger random starts lead. As it stands it is
too large to train: 20,000 terms make 400 million weights. But a gradient is a sum of training documents times vectors,
so A stays the identity outside their span, and inside, in orthonormal coordinates, it is a matrix of r × r where r is
their rank, at most two a pair. The training is the same but for rounding: L-BFGS sees inner products of gradients,
which coordinates keep. It takes time by m r² an iteration, and memory for some 25 matrices of r².

Documents are of unit length here, as they are where random starts are trained.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.methods import s2net
from jaxsim.optim import Fit
from jaxsim.sparse import Filled, Terms, Vectors

SHARE = 1e-13
"""Of the documents' squared lengths, summed: an eigenvalue below is rounding."""


class Span(NamedTuple):
    """The span of documents.

    Attributes:
      documents: ``[n, num_terms]`` in double precision.
      basis: ``[n, r]`` double: ``documents.T @ basis`` is an orthonormal basis of the span.
    """

    documents: scipy.sparse.csr_matrix
    basis: np.ndarray


class Split(NamedTuple):
    """Both sides' documents, the left ones first, as two parts that are orthogonal to each other.

    Attributes:
      inside: ``[n, r]`` float32 coordinates of the part in a span.
      outside: ``[n, s]`` float32 coordinates of the rest.
    """

    inside: np.ndarray
    outside: np.ndarray


def rows_of(sides: Sequence[Terms]) -> scipy.sparse.csr_matrix:
    """Both sides, one above the other, in double precision."""
    return scipy.sparse.vstack([sparse.to_scipy(side).astype(np.float64) for side in sides], format="csr")


def factor(documents: scipy.sparse.csr_matrix, inside: np.ndarray | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvectors of the documents' inner products, less those of their parts ``inside``, and the values' roots."""
    gram = (documents @ documents.T).toarray()
    least = SHARE * np.trace(gram)
    values, vectors = scipy.linalg.eigh(gram if inside is None else gram - inside @ inside.T)
    kept = values > least
    return vectors[:, kept], np.sqrt(values[kept])


def span_of(sides: Sequence[Terms]) -> Span:
    """The span of both sides' documents, all of unit length or empty.

    Example:
      >>> one = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 0.0, 4.0]]))
      >>> span_of([one, one]).basis.shape
      (2, 1)
    """
    documents = rows_of(sides)
    checks.expect(documents.nnz > 0, "sides", "documents with words", "only empty documents")
    vectors, roots = factor(documents)
    return Span(documents, vectors / roots)


def split(span: Span, sides: Sequence[Terms]) -> Split:
    """Documents as their parts inside and outside a span; lengths and inner products stay.

    Example:
      >>> one, other = (sparse.from_scipy(scipy.sparse.csr_matrix([row])) for row in ([1.0, 0.0], [0.6, 0.8]))
      >>> parts = split(span_of([one, one]), [other, other])
      >>> np.abs(parts.inside).round(3).ravel().tolist(), (parts.outside @ parts.outside.T).round(3).tolist()
      ([0.6, 0.6], [[0.64, 0.64], [0.64, 0.64]])
    """
    documents = rows_of(sides)
    inside = (documents @ span.documents.T).toarray() @ span.basis
    vectors, roots = factor(documents, inside)
    return Split(inside.astype(np.float32), (vectors * roots).astype(np.float32))


def train(span: Span, parts: Split, fit: Callable[..., Fit] = s2net.fit, **options: Any) -> Fit:
    """S2Net of the parts inside the span, from the identity.

    ``options`` are those of ``s2net.fit``, which ``fit`` is, or a cache of it. Steps are as long, and the training ends
    as near to a minimum, as from the identity of as many dimensions as terms, whose norm is larger.
    """
    left, right = (Filled(jnp.asarray(side)) for side in np.split(parts.inside, 2))
    times = math.sqrt(span.documents.shape[1] / left.num_terms)
    return fit(left, right, init=np.eye(left.num_terms, dtype=np.float32), tol=s2net.RUN.tol / times,
               first_step=s2net.RUN.first_step * times, **options)


def encode(weights, parts: Split) -> list[Vectors]:
    """Both sides through a projection that is ``weights``, ``[r, r]``, inside the span and the identity outside."""
    vectors = np.concatenate([parts.inside @ np.asarray(weights), parts.outside], axis=1)
    return [Vectors(dense=jnp.asarray(side)) for side in np.split(vectors, 2)]
