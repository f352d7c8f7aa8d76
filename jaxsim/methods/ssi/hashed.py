r"""Supervised Semantic Indexing with hash kernels: pairs of words share H weights at random (003 §2.2.3, Eq. 5).

The weight of the pair (s, t) is number :math:`(sP + t) \bmod H`, P a large prime. ``sP mod H`` is computed once a word,
on the host, so that no product leaves 32 bits.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim, sparse
from jaxsim.methods.ssi import bilinear, host, preferred
from jaxsim.methods.ssi.shared import Documents, drawn, pieces, prepare
from jaxsim.methods.ssi.triples import Triples
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

PRIME = 2_147_483_647
CHUNK = 2048  # triples in one compiled loop at most


class Hashed(NamedTuple):
    """W of which entry (s, t) is ``weights[(first[s] + t) % H]``.

    Attributes:
      weights: ``[H]``.
      first: ``[num_terms]`` int32, ``s P mod H``.
    """

    weights: jax.Array
    first: jax.Array


class Data(NamedTuple):
    """What the objective sees beside the gathered weights.

    Attributes:
      documents: `Documents`.
      first: as in `Hashed`.
      size: H, scalar int32.
    """

    documents: Documents
    first: jax.Array
    size: jax.Array


def first_of(num_terms: int, size: int) -> np.ndarray:
    """Where the weights of each word of a query begin.

    Args:
      num_terms: words.
      size: H.

    Returns:
      ``[num_terms]`` int32, ``s P mod H``.

    Raises:
      ValueError: if ``size`` is no whole number of at least 1, or H and the words do not fit into 31 bits together.

    Example:
      >>> first_of(3, 10).tolist()
      [0, 7, 4]
    """
    checks.positive_int(size, "size")
    checks.expect(size + num_terms < 2**31, "size", f"less than {2**31 - num_terms} (with {num_terms} terms)", size)
    return (np.arange(num_terms, dtype=np.int64) * (PRIME % size) % size).astype(np.int32)


def rows(triple: Triples, data: Data) -> jax.Array:
    """Weights that a triple needs.

    Args:
      triple: one triple.
      data: `Data`.

    Returns:
      ``[s · 2 t]`` numbers of weights, of all pairs of a word of the query and one of either document.
    """
    documents = data.documents
    of_both = jnp.concatenate([documents.terms[triple.positive], documents.terms[triple.negative]])
    return ((data.first[documents.query_terms[triple.query]][:, None] + of_both[None, :]) % data.size).reshape(-1)


def objective(gathered: jax.Array, triple: Triples, data: Data) -> jax.Array:
    """Margin ranking loss of one triple, 003 §2.3.

    Args:
      gathered: ``[s · 2 t]`` weights.
      triple: the triple.
      data: `Data`.

    Returns:
      Scalar.
    """
    documents = data.documents
    query = documents.query_values[triple.query]
    of_both = jnp.concatenate([documents.values[triple.positive], -documents.values[triple.negative]])
    apart = jnp.sum(query * jnp.sum(gathered.reshape(query.size, -1) * of_both[None, :], axis=1))
    return losses.margin_ranking(apart, jnp.zeros_like(apart), margin=documents.margin)


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    size: int,
    key: jax.Array,
    identity: float = 1.0,
    known=None,
    rejected=None,
    margin: float = 1.0,
    learning_rate: float = 0.1,
    max_terms: int | None = 200,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the H weights from links.

    Args:
      left: weighted queries, ``[num_queries, num_terms]``, of unit length.
      right: weighted documents, of unit length.
      links: as for `ssi.fit`.
      size: H.
      key: PRNG key of the triples.
      identity: the start: the weights of the pairs (s, s) are this, all others 0.
      known: as for `ssi.fit`.
      rejected: ``[m, 2]`` integers, pairs of a query and a document that it rejects. With these, worse documents are
        drawn from them alone, as by `ssi_preferred`, whose preferred pairs are ``links``, and ``known`` is None.
      margin: m of the loss.
      learning_rate: fixed.
      max_terms: how many of its strongest terms a document keeps: a step costs as much as there are pairs of words.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      run: as for `ssi.fit`; ``validate`` takes a `Hashed`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Hashed`; a step is an epoch, an evaluation a triple.

    Raises:
      ValueError: as `ssi.fit`, as `first_of`, and as `ssi_preferred.table`.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> found = fit(documents, documents, [[0, 1], [2, 3]], size=101, key=jax.random.key(0), triples=200, max_iter=1,
      ...             known=[[i, i] for i in range(4)], identity=0.0)
      >>> scores(found.params, documents, documents).argmax(axis=1)[[0, 2]].tolist()
      [1, 3]

    Relations: `ssi_full` shares no weights.
    """
    checks.random_key(key)
    problem = prepare(left, right, links if rejected is None else None, identity=identity, known=known, margin=margin,
                      training=Run.of(run, options))
    checks.expect(np.ndim(identity) == 0 and identity is not None, "identity", "one number", identity)
    checks.expect(rejected is None or known is None, "known", "None (with rejected)", "pairs")
    pairs = problem.links if rejected is None else preferred.table(links, rejected, left.num_docs, right.num_docs,
                                                                   names=("links", "rejected"))  # fmt: skip
    first, documents = jnp.asarray(first_of(left.num_terms, size)), problem.documents(max_terms)
    own = (np.asarray(first) + np.arange(left.num_terms)) % size
    dtype = problem.margin.dtype
    weights = jnp.zeros(size, dtype).at[own].set(jnp.asarray(identity, dtype))

    def chunks(epoch_key):
        if rejected is None:
            return drawn(epoch_key, pairs, triples, chunk=CHUNK)
        return (preferred.draw(some, pairs, number)[0] for some, number in pieces(epoch_key, triples, chunk=CHUNK))

    return problem.training.run(
        optim.minimize_rows, lambda weights: Hashed(weights, first), objective, weights,
        chunks, rows=rows, key=key, data=Data(documents, first, jnp.int32(size)), learning_rate=learning_rate,
        host=host.hashed_steps(documents, first, size), depends=(pairs, left, right, triples), label="SSI, hashed",
    )


def scores(params: Hashed, left: Terms, right: Terms, *, max_terms: int | None = None) -> np.ndarray:
    """Scores of all pairs; on the host, as the sums of slices of the weights that words of a query begin.

    Args:
      params: `Hashed`.
      left: queries.
      right: documents.
      max_terms: how many of its strongest terms a document keeps, as in training; None for all.

    Returns:
      ``[num_queries, num_documents]``.

    Raises:
      ValueError: for more terms than the fit had.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(2, format="csr"))
      >>> scores(Hashed(jnp.arange(5.0), jnp.array([0, 3])), documents, documents).tolist()
      [[0.0, 1.0], [3.0, 4.0]]
    """
    checks.kind(params, "params", Hashed)
    first, size = np.asarray(params.first), params.weights.shape[0]
    sides = []
    for side, argument in ((left, "left"), (right, "right")):
        checks.expect(side.num_terms <= first.size, argument, f"at most {first.size} terms", side.num_terms)
        sides.append(sparse.to_scipy(side if max_terms is None else bilinear.strongest(side, max_terms)))
    queries, across = sides[0], sides[1].tocsr()
    weights = np.resize(np.asarray(params.weights), size + right.num_terms)
    result = np.empty((left.num_docs, right.num_docs), weights.dtype)
    for row in range(left.num_docs):
        part = slice(queries.indptr[row], queries.indptr[row + 1])
        met = np.zeros(right.num_terms, weights.dtype)
        for begin, value in zip(first[queries.indices[part]], queries.data[part], strict=True):
            met += value * weights[begin : begin + right.num_terms]
        result[row] = across @ met
    return result
