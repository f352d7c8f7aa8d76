r"""Supervised Semantic Indexing by batches of links, each the negatives of the others; beyond 003, for W = UᵀV + D.

`ssi` compares a link with one uniform document at a time. Here a link is compared with the documents of all other links
of its batch, but for those that its query is linked to as well. A document is then a negative as often as it is linked
to, so that popularity gives it no advantage.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi import triples as triples_room
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.shared import Documents, pieces, prepare, start_tables
from jaxsim.methods.ssi.triples import LinkTable, Triples
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import EVALUATION

CHUNK = 128  # batches in one compiled loop at most


class Batch(NamedTuple):
    """Links, or a chunk of batches of them.

    Attributes:
      query: ``[B]`` int32.
      document: ``[B]`` int32, which the queries link to.
      weight: ``[B, B]``, of a query (row) against a document (column): 0 where they are linked, and elsewhere such that
        a row sums to 1 / B; all 0 in a row that has no negatives.
      apart: ``[B, B]``, ``qᵀD d⁺ − qᵀD d⁻``, the part of the difference that is not learned.
    """

    query: jax.Array
    document: jax.Array
    weight: jax.Array
    apart: jax.Array


def rows(batch: Batch, data: Documents) -> tuple[jax.Array, jax.Array]:
    """Rows that a batch needs: of U those of its queries and of V those of its documents.

    Args:
      batch: one batch.
      data: the documents.

    Returns:
      ``([B s], [B t])`` term numbers.
    """
    return data.query_terms[batch.query].reshape(-1), data.terms[batch.document].reshape(-1)


def objective(gathered: tuple[jax.Array, jax.Array], batch: Batch, data: Documents) -> jax.Array:
    r"""Margin ranking loss, a mean over the links of the batch and over the negatives of each.

    .. math:: \frac1B \sum_i \frac1{n_i} \sum_j \max(0, m - f(q_i, d_i) + f(q_i, d_j))

    Args:
      gathered: ``([B s, k], [B t, k])`` rows of U and of V.
      batch: the batch.
      data: documents and margin.

    Returns:
      Scalar.
    """
    sides = []
    for values, weights in ((data.query_values[batch.query], gathered[0]), (data.values[batch.document], gathered[1])):
        some = weights.reshape(*values.shape, -1)
        sides.append(jnp.einsum("bs,bsk->bk", values, some, precision=EVALUATION))
    scores = jnp.matmul(sides[0], sides[1].T, precision=EVALUATION)
    better = jnp.broadcast_to(jnp.diagonal(scores)[:, None], scores.shape)
    each = losses.margin_ranking(batch.apart + better, scores, margin=data.margin)
    return jnp.sum(batch.weight * each)


@functools.partial(jax.jit, static_argnames=("number", "size"))
def draw(key: jax.Array, links: LinkTable, number: int, size: int) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Batches of uniform links, and which of their pairs are negatives.

    Args:
      key: PRNG key.
      links: what to draw from.
      number: how many batches.
      size: links of a batch, B.

    Returns:
      Queries and documents, ``[number, B]`` int32, and the weights of `Batch`, ``[number, B, B]``.

    Example:
      >>> query, document, weight = draw(jax.random.key(0), triples_room.table([[0, 1]], 1, 3), 1, 2)
      >>> query.tolist(), document.tolist(), weight.tolist()
      ([[0, 0]], [[1, 1]], [[[0.0, 0.0], [0.0, 0.0]]])
    """
    link = jax.random.randint(key, (number, size), 0, links.sources.shape[0], jnp.int32)
    query, document = links.sources[link], links.targets[link]
    negative = ~triples_room.is_known(links, query[:, :, None], document[:, None, :])
    among = jnp.sum(negative, axis=2, keepdims=True)
    return query, document, jnp.where(negative, 1 / (size * jnp.maximum(among, 1)), 0.0)


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    k: int,
    key: jax.Array,
    batch: int = 32,
    identity=10.0,
    known=None,
    init_scale: float = 0.1,
    margin: float = 1.0,
    learning_rate: float = 1.0,
    max_terms: int | None = 200,
    products: Products | None = None,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns W = UᵀV + D from links, a batch of them a step.

    A step touches the rows of the words of its batch and nothing else, whatever the vocabulary.

    Args:
      left: as for `ssi.fit`.
      right: as for `ssi.fit`.
      links: as for `ssi.fit`.
      k: rank.
      key: PRNG key of the start and of the batches.
      batch: links of a batch, 2 at least.
      identity: as for `ssi.fit`.
      known: as for `ssi.fit`.
      init_scale: as for `ssi.fit`.
      margin: m of the loss.
      learning_rate: fixed; for the mean over a batch, so that it is ``batch`` times that of `ssi.fit` for steps alike.
      max_terms: as for `ssi.fit`.
      products: as for `ssi.fit`.
      triples: links drawn an epoch, each with up to ``batch`` − 1 negatives; rounded up so that there are whole batches
        and chunks of one size.
      run: as for `ssi.fit`.
      **options: as for `ssi.fit`.

    Returns:
      `Fit` of a pair ``(query side, document side)`` of `Bilinear`; a step is an epoch, an evaluation a batch, the loss
      a mean over the epoch's batches.

    Raises:
      ValueError: as `ssi.fit`, for a ``batch`` below 2, and for links none of whose documents is a negative of a query.
      FloatingPointError: if the loss is not finite, naming the batch.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(6, format="csr"))
      >>> found = fit(documents, documents, [[0, 1], [2, 3], [4, 5]], k=3, key=jax.random.key(0), batch=4,
      ...             known=[[i, i] for i in range(6)], triples=200, max_iter=5)
      >>> query, document = (bilinear.encode(side, documents) for side in found.params)
      >>> (query.dense @ document.dense[jnp.array([1, 3, 5])].T).argmax(axis=1)[jnp.array([0, 2, 4])].tolist()
      [0, 1, 2]

    Relations: `ssi.fit` draws negatives from the whole collection.
    """
    checks.random_key(key)
    problem = prepare(left, right, links, identity=identity, known=known, margin=margin, training=Run.of(run, options))
    checks.positive_int(batch, "batch")
    checks.expect(batch > 1, "batch", "at least 2 links", batch)
    checks.positive_int(triples, "triples")
    dtype = problem.margin.dtype
    checks.expect(_has_negatives(problem.links), "links", "a document of another link left as a negative of a query",
                  "none for any query")
    tables, draw_key = start_tables(key, (left.num_terms, right.num_terms), k, init_scale, dtype)
    data, unlearned = problem.documents(max_terms), problem.unlearned(products)

    def chunks(epoch_key):
        for chunk_key, size in pieces(epoch_key, -(-triples // batch), chunk=CHUNK):
            query, document, share = draw(chunk_key, problem.links, size, batch)
            pairs = jnp.broadcast_arrays(query[:, :, None], document[:, :, None], document[:, None, :])
            apart = unlearned(Triples(*(one.reshape(-1) for one in pairs)))
            yield Batch(query, document, share.astype(dtype), apart.reshape(share.shape))

    return problem.training.run(
        optim.minimize_rows, lambda learned: bilinear.sides(*learned, problem.diagonal),
        objective, tables, chunks, rows=rows, data=data, key=draw_key, learning_rate=learning_rate,
        depends=(problem.links, problem.diagonal, left, right, triples, batch), label="SSI, batches",
    )


def _has_negatives(links: LinkTable) -> bool:
    """Whether some query is not known to go with the documents of all links; without one, nothing is learned."""
    sources, known, start = (np.asarray(part) for part in (links.sources, links.known, links.start))
    linked = np.unique(np.asarray(links.targets))
    among = np.r_[0, np.cumsum(np.isin(known, linked))]
    return bool(np.any((among[start[1:]] - among[start[:-1]])[sources] < linked.size))
