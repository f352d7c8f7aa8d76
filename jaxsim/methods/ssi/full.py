r"""Supervised Semantic Indexing with an unconstrained W, exactly and without W (003 §2.1, §2.3.1).

A step adds :math:`\lambda q (d^+ - d^-)^\top` to W, so that after any number of steps :math:`W = b I + Q^\top A D`,
where the rows of Q and D are the training documents and :math:`A_{qd}` is λ times the number of pulls of d to q less
the number of pushes. A score of training documents then needs their inner products alone: a step costs one
number a document, whatever the vocabulary, and no word is left out.

A W whose diagonal stays 0 (§4.1) takes the diagonal of QᵀAD away again, which is one number a word.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, sparse
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi.diagonal import CHUNK as NARROW
from jaxsim.methods.ssi.diagonal import Shared, shared
from jaxsim.methods.ssi.low_rank import Example
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.shared import CHUNK, drawn, prepare
from jaxsim.optim import Fit, Run, epochs
from jaxsim.optim.monitor import mark_of
from jaxsim.sparse import Terms, Vectors
from jaxsim.sparse.precision import EVALUATION

_MOST = 2**28  # entries of a table of inner products


class Full(NamedTuple):
    """W = b·I + QᵀAD.

    Attributes:
      coefficients: ``[num_queries, num_documents]``, A.
      queries: training queries as the learned part sees them, the rows of Q.
      documents: training documents as the learned part sees them, the rows of D.
      identity: b, a scalar; or what stands in its place on the diagonal, ``[num_terms]``.
    """

    coefficients: jax.Array
    queries: Terms
    documents: Terms
    identity: jax.Array


class Grams(NamedTuple):
    """Inner products that the steps read.

    Attributes:
      queries: ``[num_queries, num_queries]``.
      documents: ``[num_documents, num_documents]``.
      margin: scalar.
    """

    queries: jax.Array
    documents: jax.Array
    margin: jax.Array


@functools.partial(jax.jit, donate_argnames=("state",))
def scan_off_diagonal(state, grams: Grams, chunk: tuple[Example, Shared], learning_rate):
    """As `scan_chunk`, for a W whose diagonal stays 0.

    Args:
      state: as for `scan_chunk`, but in place of A a pair of A and the diagonal of QᵀAD, ``[num_terms]``; donated.
      grams: `Grams`.
      chunk: `Example` and `Shared`, whose arrays are ``[n, ...]``.
      learning_rate: scalar.

    Returns:
      As `scan_chunk`.
    """

    def step(state, example):
        (triple, apart), shared = example
        (_, diagonal), seen = state
        learned = jnp.dot(grams.queries[triple.query], seen[triple.positive] - seen[triple.negative],
                          precision=EVALUATION) - jnp.sum(diagonal[shared.terms] * shared.values)
        value = losses.margin_ranking(apart + learned, jnp.zeros_like(learned), margin=grams.margin)

        def update(state):
            (coefficients, diagonal), seen = state
            coefficients, seen = _pulled((coefficients, seen), grams, triple, learning_rate)
            rate = learning_rate.astype(diagonal.dtype)
            return (coefficients, diagonal.at[shared.terms].add(rate * shared.values)), seen

        return jax.lax.cond(value > 0, update, lambda same: same, state), value

    return jax.lax.scan(step, state, chunk)


def _pulled(state, grams: Grams, triple, learning_rate):
    """A and what it makes of each document, after one step."""
    coefficients, seen = state
    query, better, worse = triple
    rate = learning_rate.astype(seen.dtype)
    coefficients = coefficients.at[query, better].add(rate).at[query, worse].add(-rate)
    return coefficients, seen.at[:, query].add(rate * (grams.documents[better] - grams.documents[worse]))


@functools.partial(jax.jit, donate_argnames=("state",))
def scan_chunk(state, grams: Grams, chunk: Example, learning_rate):
    """One compiled loop over a chunk of triples.

    Args:
      state: A and the transpose of A·D·Dᵀ, ``[num_documents, num_queries]``, what A makes of each document; donated.
      grams: `Grams`.
      chunk: `Example`, whose arrays are ``[n]``.
      learning_rate: scalar.

    Returns:
      ``(state, losses)``, the loss of every triple before its update.
    """

    def step(state, example):
        query, better, worse = example.triple
        seen = state[1]
        learned = jnp.dot(grams.queries[query], seen[better] - seen[worse], precision=EVALUATION)
        value = losses.margin_ranking(example.apart + learned, jnp.zeros_like(learned), margin=grams.margin)

        return jax.lax.cond(value > 0, lambda state: _pulled(state, grams, example.triple, learning_rate),
                            lambda same: same, state), value

    return jax.lax.scan(step, state, chunk)


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    key: jax.Array,
    identity: float = 1.0,
    diagonal: bool = True,
    known=None,
    margin: float = 1.0,
    learning_rate: float = 0.1,
    max_terms: int | None = 200,
    products: Products | None = None,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns an unconstrained W from links, from W = b·I.

    Args:
      left: weighted queries, ``[num_queries, num_terms]``, of unit length.
      right: weighted documents over the same vocabulary, of unit length.
      links: as for `ssi.fit`.
      key: PRNG key of the triples.
      identity: b of the start, which stays; 1 in the paper.
      diagonal: whether the diagonal of W is learned. If not, it stays 0, so that no word meets itself: then
        ``identity`` is 0 and ``max_terms`` None, and a step also costs the words that its documents share.
      known: as for `ssi.fit`.
      margin: m of the loss.
      learning_rate: fixed.
      max_terms: how many of its strongest terms the learned part sees of a document; None for all, at the same cost a
        step. The product with b·I always sees all.
      products: as for `ssi.fit`.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      run: as for `ssi.fit`; ``validate`` takes a `Full`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Full`; a step is an epoch, an evaluation a triple.

    Raises:
      ValueError: as `ssi.fit`, and for collections whose inner products do not fit: 16,384 documents are the most.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> found = fit(documents, documents, [[0, 1], [2, 3]], key=jax.random.key(0), triples=100, max_iter=2,
      ...             known=[[i, i] for i in range(4)])
      >>> query, document = encode(found.params, documents, documents)
      >>> (query.dense @ document.dense.T).argmax(axis=1)[jnp.array([0, 2])].tolist()
      [1, 3]

    Differs from the paper: W is never formed, which changes nothing; with ``max_terms`` the learned part sees a
    document's strongest terms alone.
    Relations: `ssi_sparse.strongest` reads entries of W out of the fit, for Algorithm 2.
    """
    checks.random_key(key)
    problem = prepare(left, right, links, identity=identity, known=known, margin=margin, training=Run.of(run, options))
    checks.expect(np.ndim(identity) == 0 and identity is not None, "identity", "one number", identity)
    checks.expect(0 < learning_rate < float("inf"), "learning_rate", "a positive number", learning_rate)
    most = max(left.num_docs, right.num_docs)
    checks.expect(most * most <= _MOST, "left, right", f"at most {int(_MOST**0.5)} documents", most)
    if not diagonal:
        checks.expect(identity == 0, "identity", "0 (with diagonal=False)", identity)
        checks.expect(max_terms is None, "max_terms", "None (with diagonal=False)", max_terms)
    seen = [side if max_terms is None else bilinear.strongest(side, max_terms) for side in (left, right)]
    dtype = problem.margin.dtype
    grams = Grams(*(jnp.asarray(_products(side, side), dtype) for side in seen), problem.margin)
    apart = problem.unlearned(Products(left, right, 1.0) if products is None else products)
    rate, matrices = jnp.asarray(learning_rate, jnp.result_type(float)), [sparse.to_scipy(side) for side in seen]

    def epoch(state, number):
        result = []
        for some in drawn(jax.random.fold_in(key, number), problem.links, triples, chunk=CHUNK if diagonal else NARROW):
            chunk = Example(some, apart(some))
            state, values = (scan_chunk(state, grams, chunk, rate) if diagonal else
                             scan_off_diagonal(state, grams, (chunk, shared(*matrices, some)), rate))
            result.append(np.asarray(values, np.float64))
        result = np.concatenate(result)
        return state, result, float(np.mean(result)), float("nan")

    def whole(learned) -> Full:
        if diagonal:
            return Full(learned, *seen, jnp.asarray(identity, dtype))
        return Full(learned[0], *seen, -learned[1])

    start, pulled = (jnp.zeros(shape, dtype) for shape in ((left.num_docs, right.num_docs),
                                                           (right.num_docs, left.num_docs)))
    learned = start if diagonal else (start, jnp.zeros(left.num_terms, dtype))
    depends = problem.links, problem.diagonal, left, right, triples, 0 if max_terms is None else max_terms
    return problem.training.run(
        epochs.run, whole, epoch, (learned, pulled), label="SSI, full",
        mark=lambda: mark_of(scan_chunk if diagonal else scan_off_diagonal, start.shape, jax.random.key_data(key),
                             learning_rate, problem.margin, depends),
    )


def _products(left: Terms, right: Terms) -> np.ndarray:
    return (sparse.to_scipy(left) @ sparse.to_scipy(right).T).toarray()


def encode(params: Full, left: Terms, right: Terms, *, low_rank: tuple[Terms, Terms] | None = None
           ) -> tuple[Vectors, Vectors]:
    """Queries and documents as W sees them; scores are inner products.

    Args:
      params: `Full`.
      left: queries, seen in training or not.
      right: documents, seen in training or not.
      low_rank: the same queries and documents as the learned part sees them; those given unless given.

    Returns:
      ``(queries, documents)``, `Vectors` whose dense part has a column a training document.

    Raises:
      ValueError: for another vocabulary, or ``low_rank`` of other sizes.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(2, format="csr"))
      >>> query, document = encode(Full(jnp.eye(2), documents, documents, jnp.asarray(3.0)), documents, documents)
      >>> (query.dense @ document.dense.T).tolist(), query.sparse.values.tolist()
      ([[1.0, 0.0], [0.0, 1.0]], [3.0, 3.0])
    """
    checks.kind(params, "params", Full)
    seen = (left, right) if low_rank is None else low_rank
    for side, other, argument in zip((left, right), seen, ("left", "right"), strict=True):
        checks.expect(side.num_terms == params.queries.num_terms, argument, f"{params.queries.num_terms} terms",
                      side.num_terms)
        checks.expect(other.num_docs == side.num_docs, "low_rank", f"{side.num_docs} documents (as {argument})",
                      other.num_docs)
    dtype = params.coefficients.dtype
    query = jnp.matmul(jnp.asarray(_products(seen[0], params.queries), dtype), params.coefficients,
                       precision=EVALUATION)
    weighed = sparse.weigh(left, jnp.broadcast_to(params.identity, left.num_terms).astype(left.values.dtype))
    return Vectors(query, weighed), Vectors(jnp.asarray(_products(seen[1], params.documents), dtype), right)
