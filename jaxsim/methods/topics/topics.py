"""Topic models: their parameters, and the topic vectors of any documents (folding-in)."""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.methods import statistics
from jaxsim.methods.topics import host
from jaxsim.optim import em
from jaxsim.sparse import Terms, Vectors

_BLOCK = 2**21  # numbers gathered at a time


class Topics(NamedTuple):
    """What PLSA, JPLSA and CPLSA learn of one language.

    Attributes:
      words: ``φ``, ``[num_terms, k]``: a column is a topic's distribution over words. The row of a word that no
        training document of the language has is 0; over merged vocabularies all languages have one array.
    """

    words: jax.Array


def responsibilities(params: Topics) -> jax.Array:
    r"""Probability of each topic given a word and topics of equal weight, :math:`\phi_{wt} / \sum_s \phi_{ws}`.

    Args:
      params: `Topics`.

    Returns:
      ``[num_terms, k]``; a word that no topic has is 0.

    Example:
      >>> responsibilities(Topics(jnp.array([[0.3, 0.1], [0.0, 0.0]]))).round(2).tolist()
      [[0.75, 0.25], [0.0, 0.0]]
    """
    checks.kind(params, "params", Topics)
    return shares(params.words, empty=0.0)


def shares(counts: jax.Array, *, empty: float | None = None) -> jax.Array:
    """Rows scaled to sum to 1.

    Args:
      counts: ``[..., k]`` floating, at least 0.
      empty: what a row of zeros becomes; the uniform distribution unless given.

    Returns:
      ``[..., k]``.

    Example:
      >>> shares(jnp.array([[1.0, 3.0], [0.0, 0.0]])).tolist()
      [[0.25, 0.75], [0.5, 0.5]]
    """
    total = jnp.sum(counts, axis=-1, keepdims=True)
    some = total > 0
    return jnp.where(some, counts / jnp.where(some, total, 1), 1 / counts.shape[-1] if empty is None else empty)


def encode(params: Topics, terms: Terms, *, iterations: int = 1, alpha: float = 1.0) -> Vectors:
    r"""Topic vectors of documents that training need not have seen: EM for θ alone, φ being fixed (folding-in).

    .. math:: \theta_{dt} \propto \alpha - 1 + \sum_w x_{dw} \frac{\theta_{dt} \phi_{wt}}{\sum_s \theta_{ds} \phi_{ws}}

    From the uniform θ. One iteration is linear in the counts up to the sum of θ: `sparse.project` of
    `responsibilities`.

    Args:
      params: `Topics` of the documents' language.
      terms: **counts**, ``[num_docs, num_terms]``; for one iteration in any storage that `sparse.project` takes.
      iterations: 1 in 002, 10 in 000.
      alpha: Dirichlet prior of θ, at least 1. At 1, the default, short documents are not drawn towards the middle.
        Numbers whose sum over the topics ``params`` could not hold are refused.

    Returns:
      `Vectors` whose dense part ``[num_docs, k]`` has rows that sum to 1; the uniform vector for a document without a
      known word (`known` tells which).

    Raises:
      ValueError: if ``terms`` has another vocabulary than ``params``, for settings out of range, or negative counts
        (the latter where there are several iterations).

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 1.0], [0.0, 0.0]]))
      >>> encode(Topics(jnp.eye(2)), documents).dense.tolist()
      [[0.75, 0.25], [0.5, 0.5]]
    """
    checks.kind(params, "params", Topics)
    checks.positive_int(iterations, "iterations")
    checks.expect(1 <= alpha < np.inf, "alpha", "a number of at least 1", alpha)
    most = float(jnp.finfo(params.words.dtype).max) / (2 * max(params.words.shape[1], 1))
    checks.expect(alpha <= most, "alpha", f"a number that sums of {params.words.dtype} hold, at most {most:.0e}", alpha)
    if iterations == 1 or not terms.num_docs:
        return Vectors(dense=shares(sparse.project(terms, responsibilities(params)) + (alpha - 1)))
    matrix = statistics.counts_of(terms, "terms")
    _expect_terms(params, terms, "terms")
    words = params.words
    matrix = matrix.astype(words.dtype, copy=False)
    if host.takes(words.dtype) and not isinstance(words, jax.core.Tracer):
        theta = jax.device_put(host.fold(matrix, np.asarray(words), prior=alpha - 1, iterations=iterations))
        elsewhere = isinstance(words, jax.Array) and len(words.devices()) == 1 and words.devices() != theta.devices()
        return Vectors(dense=jax.device_put(theta, words.sharding) if elsewhere else theta)
    packed, order = em.buckets([matrix], k=params.words.shape[1])
    theta = _fold(packed, params.words, jnp.asarray(alpha, params.words.dtype), iterations)
    place = np.empty(matrix.shape[0], np.int64)
    place[order[order >= 0]] = np.flatnonzero(order >= 0)
    return Vectors(dense=theta[place])


def _expect_terms(params: Topics, terms: Terms, argument: str) -> None:
    """Refuses documents over another vocabulary than that of the topics."""
    checks.kind(params, "params", Topics)
    checks.kind(terms, argument, Terms)
    number = params.words.shape[0]
    checks.expect(terms.num_terms == number, argument, f"{number} terms (as params)", terms.num_terms)


@jax.jit
def _fold(packed: em.Buckets, words: jax.Array, alpha: jax.Array, iterations) -> jax.Array:
    """Some iterations for θ, in the order of the places. The words of a block are gathered once for all of them."""
    k = words.shape[1]

    def block(given):
        indices, values = given
        gathered = words[indices]

        def iteration(_, theta):
            counts, _ = em.of_block(gathered, values, theta)
            return shares(counts + (alpha - 1))

        return jax.lax.fori_loop(0, iterations, iteration, jnp.full((indices.shape[0], k), 1 / k, words.dtype))

    found = [jax.lax.map(block, each).reshape(-1, k) for each in zip(*packed, strict=True)]
    return jnp.concatenate(found)


def recount(params: Topics, terms: Terms, vectors: Vectors) -> Topics:
    r"""Topics as some documents use them: the M step, without a prior, from their topic vectors.

    .. math:: \phi_{wt} \propto \sum_d x_{dw} \frac{\theta_{dt} \phi_{wt}}{\sum_s \theta_{ds} \phi_{ws}}

    The scale of a word does not count, so `responsibilities` do for ``params``, which is what a `Model` keeps.

    Args:
      params: `Topics`, each row up to a factor.
      terms: counts, ``[num_docs, num_terms]``.
      vectors: topic vectors of the same documents.

    Returns:
      `Topics` whose columns sum to 1 (0 for a topic that no document has).

    Raises:
      ValueError: if ``terms`` has another vocabulary than ``params``, ``vectors`` are of other documents or topics by
        their number, or a count is negative.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 1.0]]))
      >>> recount(Topics(jnp.ones((2, 2))), documents, Vectors(jnp.array([[1.0, 0.0]]))).words.tolist()
      [[0.75, 0.0], [0.25, 0.0]]
    """
    _expect_terms(params, terms, "terms")
    checks.kind(vectors, "vectors", Vectors)
    shape = terms.num_docs, params.words.shape[1]
    checks.expect(np.shape(vectors.dense) == shape, "vectors", f"a dense part of shape {shape} (as terms and params)",
                  np.shape(vectors.dense))
    columns = statistics.counts_of(terms, "terms").T.tocsr().astype(params.words.dtype, copy=False)
    packed, order = em.buckets([columns], k=params.words.shape[1])
    counts, _ = jax.jit(em.expected)(packed, params.words[np.maximum(order, 0)], vectors.dense)
    there = order >= 0
    words = jnp.zeros_like(params.words).at[order[there]].set(counts[np.flatnonzero(there)])
    return Topics(shares(words.T, empty=0.0).T)


def known(params: Topics, terms: Terms) -> np.ndarray:
    """Which documents have a word that the topics know; the others have the uniform topic vector.

    Args:
      params: `Topics` of the documents' language.
      terms: counts.

    Returns:
      ``[num_docs]`` of bool.

    Raises:
      ValueError: if ``terms`` has another vocabulary than ``params``.

    Example:
      >>> import scipy.sparse
      >>> known(Topics(jnp.eye(2)), sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 1.0], [0.0, 0.0]]))).tolist()
      [True, False]
    """
    _expect_terms(params, terms, "terms")
    some = np.asarray(jnp.any(params.words > 0, axis=1))
    return np.asarray(sparse.to_scipy(terms)[:, some].sum(axis=1)).ravel() > 0


def _log_likelihood(counts, theta: np.ndarray, words: np.ndarray) -> float:
    """Of counts in coordinates, in nats, in float64: float32 has no logarithm of what it rounds to 0, or nearly so."""
    block, total = max(1, _BLOCK // theta.shape[1]), 0.0
    for at in range(0, counts.nnz, block):
        some = np.s_[at : at + block]
        rate = np.einsum("ij,ij->i", *(part.astype(np.float64) for part in (theta[counts.row[some]],
                                                                            words[counts.col[some]])))  # fmt: skip
        with np.errstate(divide="ignore"):
            total += float(counts.data[some].astype(np.float64) @ np.log(rate))
    return total


def perplexity(params: Topics, observed: Terms, held_out: Terms, *, iterations: int = 10, alpha: float = 1.1) -> float:
    r"""Perplexity of held-out words of documents whose other words are folded in.

    .. math:: \exp \Big( -\sum_{dw} y_{dw} \log \sum_t \theta_{dt} \phi_{wt} \big/ \sum_{dw} y_{dw} \Big)

    Args:
      params: `Topics`.
      observed: counts that θ is found from.
      held_out: counts ``y`` of other words of the same documents; words that the topics do not know are left out.
      iterations: of folding-in.
      alpha: as for `encode`.

    Returns:
      At least 1; at most about the number of words where the topics tell nothing. Infinity where a held-out word is in
      none of its document's topics.

    Raises:
      ValueError: if the documents differ in number, or in vocabulary from ``params``, or no held-out word is known.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[2.0, 0.0]]))
      >>> round(perplexity(Topics(jnp.eye(2)), documents, documents, alpha=1.0), 4)
      1.0
    """
    _expect_terms(params, observed, "observed")
    _expect_terms(params, held_out, "held_out")
    checks.expect(held_out.num_docs == observed.num_docs, "held_out", f"{observed.num_docs} documents (as observed)",
                  held_out.num_docs)
    rows = statistics.counts_of(held_out, "held_out")
    rows = rows.multiply(np.asarray(jnp.any(params.words > 0, axis=1))[None, :]).tocsr()
    rows.eliminate_zeros()
    checks.expect(rows.nnz > 0, "held_out", "a word that the topics know", "none")
    theta = encode(params, observed, iterations=iterations, alpha=alpha).dense
    likelihood = _log_likelihood(rows.tocoo(), np.asarray(theta), np.asarray(params.words))
    with np.errstate(over="ignore"):
        return float(np.exp(-likelihood / rows.sum(dtype=np.float64)))
