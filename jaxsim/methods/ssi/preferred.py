r"""Supervised Semantic Indexing from given preferences: each query has documents it prefers and some it rejects.

`ssi` treats every document that a query is not linked to as worse. Where the worse ones are known, such as the adverts
of a page that were shown and not clicked (003 §4.4), triples are drawn from these alone.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, optim, sparse
from jaxsim.methods.ssi import bilinear, host, low_rank
from jaxsim.methods.ssi.shared import CHUNK, Documents, padded, pieces, prepare, start_tables
from jaxsim.methods.ssi.triples import Triples, expect_integer_pairs
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

_BLOCK = 8192


class Preferred(NamedTuple):
    """Pairs to draw from.

    Attributes:
      queries: ``[n]`` int32, of the preferred pairs.
      preferred: ``[n]`` int32 documents.
      rejected: ``[m]`` int32 documents, those of a query together.
      start: ``[num_queries + 1]`` int32, where each query's part of ``rejected`` begins.
    """

    queries: jax.Array
    preferred: jax.Array
    rejected: jax.Array
    start: jax.Array


def table(preferred, rejected, num_queries: int, num_documents: int, *, names=("preferred", "rejected")) -> Preferred:
    """Checks preferences and lays them out for `draw`.

    Args:
      preferred: ``[n, 2]`` integers, query and document rows; a pair that occurs twice counts once. Those of a query
        that rejects nothing say nothing and are left out.
      rejected: ``[m, 2]`` likewise.
      num_queries: rows of queries.
      num_documents: rows of documents.
      names: what the caller calls the pairs, for errors.

    Returns:
      `Preferred`.

    Raises:
      ValueError: for another shape or type, rows out of range, a pair that is preferred and rejected, or no query with
        both.

    Example:
      >>> found = table([[0, 1], [1, 1]], [[0, 2], [0, 0]], 2, 3)
      >>> found.queries.tolist(), found.rejected.tolist(), found.start.tolist()
      ([0], [0, 2], [0, 2, 2])
    """
    better, worse = (_pairs(pairs, name, num_queries, num_documents)
                     for pairs, name in zip((preferred, rejected), names, strict=True))
    size = np.array([num_documents, 1], np.int64)
    both = np.isin(better @ size, worse @ size)
    checks.expect(not both.any(), names[1], f"none of the pairs in {names[0]}", better[both][:1].tolist())
    number = np.bincount(worse[:, 0], minlength=num_queries)
    better = better[number[better[:, 0]] > 0]
    checks.expect(len(better) > 0, names[0], "a query that prefers and rejects", "none")
    start = np.concatenate([[0], np.cumsum(number)])
    return Preferred(*(jnp.asarray(part, jnp.int32) for part in (*better.T, worse[:, 1], start)))


def _pairs(pairs, argument: str, num_queries: int, num_documents: int) -> np.ndarray:
    pairs = np.asarray(pairs)
    expect_integer_pairs(pairs, argument)
    outside = pairs[(pairs < 0).any(axis=1) | (pairs >= [num_queries, num_documents]).any(axis=1)]
    checks.expect(not outside.size, argument, f"rows of {num_queries} queries and {num_documents} documents",
                  outside[:1].tolist())
    return np.unique(pairs.astype(np.int64), axis=0)


@functools.partial(jax.jit, static_argnames=("number",))
def draw(key: jax.Array, preferences: Preferred, number: int) -> tuple[Triples, jax.Array, jax.Array]:
    """Triples of a uniform preferred pair and a uniform document that its query rejects.

    Args:
      key: PRNG key.
      preferences: what to draw from.
      number: how many triples.

    Returns:
      `Triples`, each ``[number]``, and for each the places of its two pairs in ``preferred`` and in ``rejected``.

    Example:
      >>> found, pair, place = draw(jax.random.key(0), table([[0, 1]], [[0, 2]], 1, 3), 2)
      >>> found.positive.tolist(), found.negative.tolist(), pair.tolist(), place.tolist()
      ([1, 1], [2, 2], [0, 0], [0, 0])
    """
    first, second = jax.random.split(key)
    pair = jax.random.randint(first, (number,), 0, preferences.queries.shape[0], jnp.int32)
    query = preferences.queries[pair]
    begin, end = preferences.start[query], preferences.start[query + 1]
    place = begin + jax.random.randint(second, (number,), 0, end - begin, jnp.int32)
    return Triples(query, preferences.preferred[pair], preferences.rejected[place]), pair, place


def products(left: Terms, right: Terms, diagonal, pairs) -> jax.Array:
    """``qᵀ D d`` of pairs of rows; on the host, exact whatever the length of the documents.

    Args:
      left: queries.
      right: documents over the same vocabulary.
      diagonal: ``[num_terms]``, the diagonal of D.
      pairs: ``([n], [n])`` rows of queries and of documents.

    Returns:
      ``[n]`` floating.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0], [3.0, 4.0]]))
      >>> products(documents, documents, [1.0, 10.0], ([0, 1], [0, 0])).tolist()
      [41.0, 83.0]
    """
    scale = scipy.sparse.diags_array(np.asarray(diagonal, left.values.dtype))
    first, second = scipy.sparse.csr_matrix(sparse.to_scipy(left) @ scale), sparse.to_scipy(right)
    rows = [np.asarray(part) for part in pairs]
    result = [np.asarray(first[rows[0][i : i + _BLOCK]].multiply(second[rows[1][i : i + _BLOCK]]).sum(axis=1)).ravel()
              for i in range(0, rows[0].size, _BLOCK)]
    return jax.device_put(np.concatenate(result))


def fit(
    left: Terms,
    right: Terms,
    preferred,
    rejected,
    *,
    k: int,
    key: jax.Array,
    identity: float | None = 10.0,
    seen: tuple[Terms, Terms] | None = None,
    init_scale: float = 0.1,
    margin: float = 1.0,
    learning_rate: float = 0.03,
    max_terms: int | None = 200,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    r"""Learns W = UᵀV + b·I, or UᵀV, from preferences.

    Args:
      left: weighted queries, ``[num_queries, num_terms]``, of unit length.
      right: weighted documents, of unit length; over the same vocabulary, unless ``identity`` is None.
      preferred: ``[n, 2]`` integers, as for `table`.
      rejected: ``[m, 2]`` integers, as for `table`.
      k: rank, the paper's N.
      key: PRNG key of the start and of the triples.
      identity: b, or None for W = UᵀV. 1 in the paper.
      seen: queries and documents as the low-rank part sees them, without rare words, say; ``(left, right)`` unless
        given.
      init_scale: standard deviation of the start, whose entries are normal. 1 in the paper.
      margin: m of the loss.
      learning_rate: fixed.
      max_terms: how many of its strongest terms the low-rank part sees of a document; None for all.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      run: as for `low_rank.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a pair ``(query side, document side)`` of `Bilinear`, as `low_rank.fit`.

    Raises:
      ValueError: for preferences as in `table`, documents in ``seen`` of other sizes, or as `low_rank.fit`.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> found = fit(documents, documents, [[0, 1]], [[0, 2], [0, 3]], k=2, key=jax.random.key(0), learning_rate=0.3,
      ...             triples=200, max_iter=3)
      >>> query, document = (bilinear.encode(side, documents) for side in found.params)
      >>> int((query.dense @ document.dense.T)[0].argmax())
      1

    Relations: `low_rank.fit` draws the worse documents from the whole collection.
    """
    checks.random_key(key)
    problem = prepare(left, right, None, identity=identity, known=None, margin=margin, training=Run.of(run, options))
    diagonal, dtype = problem.diagonal, problem.margin.dtype
    some = (left, right) if seen is None else seen
    for one, whole, name in zip(some, (left, right), ("left", "right"), strict=True):
        shape = (whole.num_docs, whole.num_terms)
        checks.expect((one.num_docs, one.num_terms) == shape, "seen", f"{shape} documents and terms, as {name}",
                      (one.num_docs, one.num_terms))
    tables, draw_key = start_tables(key, [side.num_terms for side in some], k, init_scale, dtype)
    data = Documents(*(part for side in some for part in padded(side, max_terms)), problem.margin)
    preferences = table(preferred, rejected, left.num_docs, right.num_docs)
    apart = None
    if diagonal is not None:
        of_rejected = np.repeat(np.arange(left.num_docs), np.diff(preferences.start))
        apart = [products(left, right, diagonal, pairs) for pairs in
                 ((preferences.queries, preferences.preferred), (of_rejected, preferences.rejected))]

    def chunks(epoch_key):
        for chunk_key, size in pieces(epoch_key, triples, chunk=CHUNK):
            result, pair, place = draw(chunk_key, preferences, size)
            unlearned = jnp.zeros(pair.shape, dtype) if apart is None else apart[0][pair] - apart[1][place]
            yield low_rank.Example(result, unlearned)

    return problem.training.run(
        optim.minimize_rows, lambda learned: bilinear.sides(*learned, diagonal), low_rank.objective, tables, chunks,
        rows=low_rank.rows, data=data, key=draw_key, learning_rate=learning_rate, host=host.steps(data),
        depends=(preferences, diagonal, left, right, some, triples), label="SSI, preferences",
    )
