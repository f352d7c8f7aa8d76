r"""Supervised Semantic Indexing with a learned weight for every word: :math:`f(q, d) = q^\top D d` (003 §2.2.1).

A triple's loss depends on D through the products of the words that the query shares with its two documents. These are
computed on the host, for a chunk of triples at a time, and are all that the compiled loop sees.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim, sparse
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi.shared import drawn, prepare, rectangular
from jaxsim.methods.ssi.triples import Triples
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

CHUNK = 1024  # triples whose products are held at a time
_WIDTH = 256  # rows are padded to a multiple of this, so that few programs are compiled


class Shared(NamedTuple):
    """Words that a query shares with either document of its triple.

    Attributes:
      terms: ``[..., w]`` int32, padded with term 0 of value 0.
      values: ``[..., w]``, ``q_i (d⁺_i − d⁻_i)``.
    """

    terms: jax.Array
    values: jax.Array


def rows(example: Shared, data) -> jax.Array:
    """Weights that a triple needs.

    Args:
      example: one triple's shared words.
      data: unused.

    Returns:
      ``[w]`` term numbers.
    """
    del data
    return example.terms


def objective(gathered: jax.Array, example: Shared, margin: jax.Array) -> jax.Array:
    r"""Margin ranking loss of one triple, 003 §2.3, with f(q, d⁺) − f(q, d⁻) = Σ D_i q_i (d⁺_i − d⁻_i).

    Args:
      gathered: ``[w]`` weights.
      example: the triple's shared words.
      margin: scalar.

    Returns:
      Scalar.
    """
    apart = jnp.sum(gathered * example.values)
    return losses.margin_ranking(apart, jnp.zeros_like(apart), margin=margin)


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    key: jax.Array,
    identity=10.0,
    known=None,
    margin: float = 1.0,
    learning_rate: float = 300.0,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the diagonal W = D from links.

    Args:
      left: weighted queries, ``[num_queries, num_terms]``, of unit length.
      right: weighted documents over the same vocabulary, of unit length.
      links: as for `ssi.fit`.
      key: PRNG key of the triples.
      identity: the start, a number or ``[num_terms]``. 1 in the paper.
      known: as for `ssi.fit`.
      margin: m of the loss.
      learning_rate: fixed; thousands of times that of `ssi.fit`, because a gradient is a product of two small weights.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      run: as for `ssi.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a pair ``(query side, document side)`` of `Bilinear` without weights; a step is an epoch, an evaluation
      a triple.

    Raises:
      ValueError: as `ssi.fit`.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 1.0], [1.0, 0.0], [0.0, 1.0]]))
      >>> found = fit(documents, documents, [[0, 1]], key=jax.random.key(0), identity=1.0, learning_rate=0.1,
      ...             known=[[i, i] for i in range(3)], triples=100, max_iter=1)
      >>> found.params[0].scale.round(2).tolist()
      [1.5, 0.5]

    Relations: `ssi.fit` adds a part of low rank, with this diagonal as its ``identity`` if it is given one.
    """
    checks.random_key(key)
    problem = prepare(left, right, links, identity=identity, known=known, margin=margin, training=Run.of(run, options))
    if problem.diagonal is None:
        raise ValueError("identity: expected a number or one number a term, got None")
    matrices = sparse.to_scipy(left), sparse.to_scipy(right)

    def chunks(epoch_key):
        return (shared(*matrices, some) for some in drawn(epoch_key, problem.links, triples, chunk=CHUNK))

    return problem.training.run(
        optim.minimize_rows, lambda diagonal: bilinear.sides(None, None, diagonal), objective, problem.diagonal, chunks,
        rows=rows, data=problem.margin, key=key, learning_rate=learning_rate,
        depends=(problem.links, left, right, triples), label="SSI, diagonal",
    )


def shared(left, right, some: Triples) -> Shared:
    """Products of the words that queries share with their documents.

    Args:
      left: ``[num_queries, num_terms]`` CSR matrix.
      right: ``[num_documents, num_terms]`` CSR matrix.
      some: ``[n]`` triples.

    Returns:
      `Shared`, ``[n, w]``.
    """
    query, better, worse = (np.asarray(part) for part in some)
    products = left[query].multiply(right[better] - right[worse]).tocsr()
    return Shared(*map(jnp.asarray, rectangular(products, multiple=_WIDTH)))
