"""Hard negatives for S2Net, mined from documents that need not belong to any pair.

For every left document, the documents that a model finds nearest are taken, except those that may be right answers:
documents equal to a right answer (those that are told, and the mate), or nearly as near as the mate (most likely false
negatives). The model is the start, usually OPCA.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, sparse
from jaxsim.sparse import Held, Terms

SHARE = 0.95
"""Documents nearer than this share of the mate's cosine are taken as right, not as negatives."""
WEIGHT = 1e-05
"""Weight of the mined negatives beside the mean over all pairs."""
_BLOCK = 512
_ROUNDING = 1e-6  # of a cosine
_LEAST = 2.0**-60  # length of a vector whose squares float32 holds with all digits


class Mined(NamedTuple):
    """Negatives of the left documents.

    Attributes:
      documents: ``n`` of them, `Terms`, `Filled` or `Gathered`.
      rows: ``[m, c]`` int32 rows of ``documents``, the hardest first; -1 where a left document has fewer.
      weight: scalar, of their mean loss beside that of all pairs.
    """

    documents: Held
    rows: jax.Array
    weight: jax.Array


def mine(
    left, right, documents, *, count: int, share: float = SHARE, right_answers: Sequence[Collection[int]] | None = None
) -> np.ndarray:
    """The nearest documents of every left one that are not likely to be right.

    Args:
      left: ``[m, k]`` vectors.
      right: ``[m, k]`` vectors of their mates.
      documents: ``[n, k]`` vectors of the documents.
      count: how many for each.
      share: of the cosine with the mate, above which a document is left out.
      right_answers: for each left document, rows that are right and no negatives; none unless given.

    Returns:
      ``[m, count]`` int32 rows, the nearest first; -1 where there are no more. Documents without words are never taken,
      and neither is the mate, or a document with its vector, however far. A left document without words gets the
      first ones, all being equally near; they teach it nothing, and count in the mean of `loss`.

    Raises:
      ValueError: for a count that is not positive, a share that is not in (0, 1], or sides or documents that do not
        agree.

    Example:
      >>> left, right = np.eye(2), np.array([[1.0, 0.2], [0.2, 1.0]])
      >>> mine(left, right, np.array([[1.0, 0.1], [1.0, 1.0], [0.0, 0.0]]), count=2).tolist()
      [[1, -1], [1, 0]]
    """
    checks.positive_int(count, "count")
    checks.expect(0 < share <= 1, "share", "a number in (0, 1]", share)
    left, right, documents = (_unit(side) for side in (left, right, documents))
    checks.expect(left.shape == right.shape, "right", f"shape {left.shape} (as left)", right.shape)
    width = left.shape[1]
    checks.expect(documents.shape[1] == width, "documents", f"{width} dimensions (as left)", documents.shape[1])
    answers = right_answers is None or len(right_answers) == len(left)
    checks.expect(answers, "right_answers", f"{len(left)} (as left)", right_answers and len(right_answers))
    own = (left * right).sum(axis=1)
    least = min(share, 1 - _ROUNDING)  # the mate itself may be a rounding below its cosine
    empty = ~documents.any(axis=1)
    result = np.full((len(left), count), -1, np.int32)
    for start in range(0, len(left), _BLOCK):
        cosines = left[start : start + _BLOCK] @ documents.T
        # Where the mate is not near at all, a share of its cosine says nothing about other documents.
        bound = own[start : start + _BLOCK]
        cosines[(cosines > least * bound[:, None]) & (bound > 0)[:, None]] = -np.inf
        cosines[:, empty] = -np.inf
        # Where that keeps not even the mate out, or only by rounding, what has the mate's vector is left out by itself.
        far = np.flatnonzero((1 - least) * bound <= _ROUNDING)
        cosines[far] = np.where(right[start + far] @ documents.T > 1 - _ROUNDING, -np.inf, cosines[far])
        for place, some in enumerate(() if right_answers is None else right_answers[start : start + _BLOCK]):
            cosines[place, list(some)] = -np.inf
        few = min(count, cosines.shape[1])
        order = np.argsort(-cosines, axis=1, kind="stable")[:, :few]
        best = np.take_along_axis(cosines, order, axis=1)
        result[start : start + _BLOCK, :few] = np.where(np.isfinite(best), order, -1)
    return result


def kept(documents: Terms, rows: np.ndarray, weight: float = WEIGHT) -> Mined | None:
    """Negatives with the documents that they need, and no others.

    Args:
      documents: ``n`` documents.
      rows: ``[m, c]`` of `mine`.
      weight: of their loss, positive.

    Returns:
      `Mined`; None where nothing was found.

    Raises:
      ValueError: for a weight that is not positive.

    Example:
      >>> import scipy.sparse
      >>> found = kept(sparse.from_scipy(scipy.sparse.identity(5, format="csr")), np.array([[4, -1], [2, 4]]))
      >>> found.documents.num_docs, found.rows.tolist()
      (2, [[1, -1], [0, 1]])
    """
    checks.positive(weight, "weight")
    used = np.unique(rows[rows >= 0])
    if not used.size:
        return None
    places = np.full(documents.num_docs, -1, np.int32)
    places[used] = np.arange(used.size)
    numbers = np.where(rows >= 0, places[rows], -1)
    return Mined(sparse.take(documents, used), jnp.asarray(numbers, jnp.int32),
                 jnp.asarray(weight, documents.values.dtype))  # fmt: skip


def loss(left: jax.Array, right: jax.Array, documents: jax.Array, rows: jax.Array, *, gamma, weights=None) -> jax.Array:
    r"""Mean of Eq. (2) over mined negatives: :math:`\log(1 + e^{-\gamma(c_{ii} - c_{in})})`.

    Args:
      left: ``[m, k]`` embeddings.
      right: ``[m, k]`` of their mates.
      documents: ``[n, k]`` of the negatives.
      rows: ``[m, c]`` rows of ``documents``; -1 for none.
      gamma: scalar scale.
      weights: ``[m]`` at least 0, how often each pair counts; None: all the same.

    Returns:
      Scalar, in nats.

    Example:
      >>> round(float(loss(jnp.eye(2), jnp.eye(2), jnp.eye(2), jnp.array([[1], [-1]]), gamma=1.0)), 4)
      0.3133
    """
    left, right, documents = (sparse.unit(side) for side in (left, right, documents))
    own = jnp.sum(left * right, axis=1)
    there = rows >= 0
    scores = jnp.einsum("mk,mck->mc", left, documents[jnp.where(there, rows, 0)])
    each = losses.logistic_pairwise(own[:, None] - scores, gamma=gamma)
    if weights is None:
        return jnp.sum(jnp.where(there, each, 0)) / jnp.maximum(jnp.sum(there), 1)
    times = jnp.where(there, weights[:, None], 0)
    total = jnp.sum(times)
    return jnp.sum(times * each) / jnp.where(total > 0, total, 1)


def _unit(vectors) -> np.ndarray:
    """Rows of length one; zero rows stay."""
    given = np.asarray(vectors)
    with np.errstate(over="ignore"):
        vectors = given.astype(np.float32)
        length = np.linalg.norm(vectors, axis=1, keepdims=True)
    far = np.flatnonzero(~((length > _LEAST) & (length < np.inf)))
    if far.size:  # the squares of these are no numbers of float32, or rounded to few digits
        few = given[far].astype(np.float64)
        peak = np.max(np.abs(few), axis=1, keepdims=True, initial=0)
        there = (peak[:, 0] > 0) & np.isfinite(peak[:, 0])
        vectors[far[there]] = few[there] / peak[there]
        length[far[there]] = np.linalg.norm(vectors[far[there]], axis=1, keepdims=True)
    return np.divide(vectors, length, out=np.zeros_like(vectors), where=length > 0)
