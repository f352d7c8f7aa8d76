r"""Bilinear similarities :math:`f(q, d) = q^\top W d` whose W has low rank, is diagonal, or is the sum of both.

Such a W splits into a linear map of the query and one of the document, so that a score is the inner product of two
`Vectors`: :math:`q^\top (U^\top V + D) d = (Uq) \cdot (Vd) + (Dq) \cdot d`, a dense part and a sparse one. A model is
a pair ``(query side, document side)`` of `Bilinear`; W is `weights` of the one times `weights` of the other, plus the
product of the two `scale`.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.sparse import Terms, Vectors


class Bilinear(NamedTuple):
    """One side of W; either field may be None, with which W has no such part.

    Attributes:
      weights: ``[num_terms, k]``, the transpose of the paper's U (query side) or V (document side).
      scale: ``[num_terms]``, weight of each term: the diagonal of W on the query side, ones on the document side.
    """

    weights: jax.Array | None
    scale: jax.Array | None


def sides(left, right, diagonal) -> tuple[Bilinear, Bilinear]:
    """The pair of W = UᵀV + D.

    Args:
      left: ``[num_terms, k]``, Uᵀ, or None where W is diagonal.
      right: ``[num_terms, k]``, Vᵀ; the same array as ``left`` for a symmetric W.
      diagonal: ``[num_terms]``, the diagonal of D, or None where there is none. A vector of b is the identity times b.

    Returns:
      ``(query side, document side)``.

    Raises:
      ValueError: if nothing is given, or the shapes do not agree.

    Example:
      >>> query, document = sides(jnp.ones((3, 2)), jnp.ones((3, 2)), jnp.full(3, 10.0))
      >>> query.scale.tolist(), document.scale.tolist()
      ([10.0, 10.0, 10.0], [1.0, 1.0, 1.0])
    """
    checks.expect((left is None) == (right is None), "right", "weights, or None, as left", "one of them alone")
    checks.expect(left is not None or diagonal is not None, "diagonal", "a diagonal, or weights", "neither")
    if left is not None:
        fits = left.ndim == 2 and right.ndim == 2 and left.shape[1] == right.shape[1]
        checks.expect(fits, "right", f"shape (num_terms, {left.shape[-1]}), as many columns as left", right.shape)
    if diagonal is None:
        return Bilinear(left, None), Bilinear(right, None)
    for side in (left, right):
        fits = diagonal.ndim == 1 and (side is None or side.shape[0] == diagonal.shape[0])
        checks.expect(fits, "diagonal", "one number a term", diagonal.shape)
    return Bilinear(left, diagonal), Bilinear(right, jnp.ones_like(diagonal))


def encode(params: Bilinear, terms: Terms, *, low_rank: Terms | None = None) -> Vectors:
    r"""Documents as one side of W sees them; scores are inner products of the two sides' vectors.

    Args:
      params: `Bilinear`, one side.
      terms: documents over ``num_terms`` terms.
      low_rank: the same documents as the low-rank part sees them, such as `strongest` of them; ``terms`` unless given.

    Returns:
      `Vectors` with a dense part ``[num_docs, k]`` where there are weights and a sparse one where there is a scale.

    Raises:
      ValueError: if ``terms`` has another vocabulary size, or ``low_rank`` other sizes.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]]))
      >>> query, document = sides(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.full(2, 10.0))
      >>> found = encode(query, documents)
      >>> found.dense.tolist(), found.sparse.values.tolist()
      ([[3.0]], [10.0, 20.0])
    """
    checks.kind(params, "params", Bilinear)
    checks.kind(terms, "terms", Terms)
    dense = scaled = None
    if params.weights is not None:
        seen = terms if low_rank is None else low_rank
        checks.expect(seen.num_docs == terms.num_docs, "low_rank", f"{terms.num_docs} documents (as terms)",
                      seen.num_docs)
        dense = sparse.project(seen, params.weights)
    if params.scale is not None:
        scaled = sparse.weigh(terms, params.scale.astype(terms.values.dtype))
    return Vectors(dense, scaled)


def strongest(terms: Terms, most: int) -> Terms:
    """The terms of largest weight of every document, scaled to the document's length; on the host.

    Args:
      terms: documents.
      most: how many terms a document may keep; of equal weights (by magnitude) the lower term stays.

    Returns:
      `Terms` of the same documents, each with the Euclidean length it had.

    Raises:
      ValueError: if ``most`` is not a whole number of at least 1.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 1.0, 4.0]]))
      >>> sparse.to_scipy(strongest(documents, 1)).toarray().round(2).tolist()
      [[0.0, 0.0, 5.1]]
    """
    checks.positive_int(most, "most")
    matrix = sparse.to_scipy(terms)
    document = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    order = np.lexsort((matrix.indices, -np.abs(matrix.data), document))
    place = np.empty(order.size, np.int64)
    place[order] = np.arange(order.size) - matrix.indptr[document[order]]
    kept = place < most
    lengths = [np.sqrt(np.bincount(document[chosen], matrix.data[chosen].astype(np.float64) ** 2, matrix.shape[0]))
               for chosen in (slice(None), kept)]
    factor = np.divide(*lengths, out=np.zeros(matrix.shape[0]), where=lengths[1] > 0)
    values = np.where(kept, matrix.data * factor[document], 0).astype(matrix.dtype)
    cut = scipy.sparse.csr_matrix((values, matrix.indices, matrix.indptr), shape=matrix.shape)
    cut.eliminate_zeros()
    return sparse.from_scipy(cut)
