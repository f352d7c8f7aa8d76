r"""Supervised Semantic Indexing of low rank by minibatches of triples, with any optimiser of optax (003 §2.3).

The loss is that of one triple of documents; ``jax.vmap`` lifts it over the triples of a batch. `ssi.fit` minimises the
same loss a triple at a time and touches only the rows that the triple needs; here a step computes the gradient of all
of U and V, so that optax's optimisers apply as they are, and its cost grows with the vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim, sparse
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.shared import CHUNK, pieces, prepare, start_tables
from jaxsim.methods.ssi.triples import Triples, draw
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Document, Terms


class Triple(NamedTuple):
    """A query, a document that it links to and one that it does not; or many, with a leading axis.

    Attributes:
      query: `Document`.
      better: `Document`.
      worse: `Document`.
      apart: scalar, ``qᵀD d⁺ − qᵀD d⁻``, the part of the difference that is not learned.
    """

    query: Document
    better: Document
    worse: Document
    apart: jax.Array


class Batch(NamedTuple):
    """Triples of a step, and the documents that they name.

    Attributes:
      triples: `Triples`, each ``[B]``.
      apart: ``[B]``, as in `Triple`.
      queries: `Document` with a leading axis.
      documents: `Document` with a leading axis.
      margin: scalar.
    """

    triples: Triples
    apart: jax.Array
    queries: Document
    documents: Document
    margin: jax.Array


def triple_loss(tables: tuple[jax.Array, jax.Array], triple: Triple, margin: jax.Array) -> jax.Array:
    r"""Margin ranking loss of one triple, 003 §2.3.

    .. math:: \max(0, m - f(q, d^+) + f(q, d^-)), \quad f(q, d) = q^\top (U^\top V + D) d

    Args:
      tables: ``([num_terms, k], [num_terms, k])``, Uᵀ and Vᵀ.
      triple: one triple.
      margin: scalar, m.

    Returns:
      Scalar.

    Example:
      >>> import scipy.sparse
      >>> rows = sparse.documents(scipy.sparse.identity(3, format="csr"))
      >>> tables = jnp.ones((3, 1)), jnp.array([[0.0], [0.25], [0.5]])
      >>> float(triple_loss(tables, Triple(rows[0], rows[2], rows[1], 0.0), 1.0))
      0.75
    """
    query = sparse.project(triple.query, tables[0])
    better, worse = (sparse.project(document, tables[1]) for document in (triple.better, triple.worse))
    return losses.margin_ranking(triple.apart + sparse.dot(query, better), sparse.dot(query, worse), margin=margin)


def objective(tables: tuple[jax.Array, jax.Array], batch: Batch) -> jax.Array:
    """Mean of `triple_loss` over a batch.

    Args:
      tables: as for `triple_loss`.
      batch: the triples.

    Returns:
      Scalar.
    """
    query, better, worse = batch.triples
    triples = Triple(batch.queries[query], batch.documents[better], batch.documents[worse], batch.apart)
    return jnp.mean(jax.vmap(triple_loss, in_axes=(None, 0, None))(tables, triples, batch.margin))


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    k: int,
    key: jax.Array,
    batch: int = 64,
    optimizer=None,
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
    """Learns W = UᵀV + D from links, by minibatches of random triples.

    Args:
      left: as for `ssi.fit`.
      right: as for `ssi.fit`.
      links: as for `ssi.fit`.
      k: rank.
      key: PRNG key of the start and of the triples.
      batch: triples of a step.
      optimizer: optax transformation; `optim.sgd` at ``learning_rate`` unless given.
      identity: as for `ssi.fit`.
      known: as for `ssi.fit`.
      init_scale: as for `ssi.fit`.
      margin: m of the loss.
      learning_rate: of plain SGD; for the mean over a batch, so that it is ``batch`` times that of `ssi.fit` for steps
        of the same length.
      max_terms: as for `ssi.fit`.
      products: as for `ssi.fit`.
      triples: triples an epoch, rounded up so that there are whole batches in chunks of one size.
      run: as for `ssi.fit`.
      **options: as for `ssi.fit`.

    Returns:
      `Fit` of a pair ``(query side, document side)`` of `Bilinear`; a step is an epoch, an evaluation a batch, loss and
      gradient norm are means over the epoch's batches.

    Raises:
      ValueError: as `ssi.fit`, and for a ``batch`` below 1.
      FloatingPointError: if the loss is not finite, naming the batch.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(6, format="csr"))
      >>> result = fit(documents, documents, [[0, 1], [2, 3], [4, 5]], k=3, key=jax.random.key(0), batch=4,
      ...              known=[[i, i] for i in range(6)], triples=200, max_iter=5)
      >>> query, document = (bilinear.encode(side, documents) for side in result.params)
      >>> (query.dense @ document.dense.T).argmax(axis=1)[jnp.array([0, 2, 4])].tolist()
      [1, 3, 5]

    Relations: with ``batch=1`` the steps are those of `ssi.fit`; `ssi_batch` compares all links of a batch.
    """
    checks.random_key(key)
    problem = prepare(left, right, links, identity=identity, known=known, margin=margin, training=Run.of(run, options))
    checks.positive_int(batch, "batch")
    checks.positive_int(triples, "triples")
    tables, draw_key = start_tables(key, (left.num_terms, right.num_terms), k, init_scale, problem.margin.dtype)
    padded, unlearned = problem.documents(max_terms), problem.unlearned(products)
    queries = Document(padded.query_terms, padded.query_values, left.num_terms)
    documents = Document(padded.terms, padded.values, right.num_terms)
    constants = queries, documents, problem.margin

    def batches(epoch_key):
        for chunk_key, number in pieces(epoch_key, -(-triples // batch), chunk=max(CHUNK // batch, 1)):
            chunk = draw(chunk_key, problem.links, number * batch)
            # On the host, whence a batch's few numbers go to the device with its step.
            parts = [np.asarray(part).reshape(number, batch) for part in (*chunk, unlearned(chunk))]
            for query, better, worse, apart in zip(*parts, strict=True):
                yield Batch(Triples(query, better, worse), apart, *constants)

    return problem.training.run(
        optim.minimize_sgd, lambda learned: bilinear.sides(*learned, problem.diagonal),
        objective, tables, batches, key=draw_key, optimizer=optimizer,
        # The rate is unused beside an optimizer, which then tells one checkpoint from another.
        learning_rate=learning_rate if optimizer is None else None,
        constants=(problem.links, problem.diagonal, left, right, *constants, triples, batch), label="SSI, minibatches",
    )
