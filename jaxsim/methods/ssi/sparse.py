r"""Supervised Semantic Indexing with a sparse W: at most p learned entries a row (003 §2.2.2, §2.3.3, Algorithm 2).

`strongest` takes the p entries of largest magnitude of each row out of a full W, `fit` trains them on, `prune` keeps
fewer. Algorithm 2 is the three in turn. With ``l1`` the fit lets entries fall to 0 by itself.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, losses, sparse
from jaxsim.methods.ssi.full import Full
from jaxsim.methods.ssi.low_rank import Example
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.shared import CHUNK, Documents, drawn, prepare
from jaxsim.optim import Fit, Run, epochs
from jaxsim.optim.monitor import mark_of
from jaxsim.optim.rows import scan_chunk
from jaxsim.sparse import Terms

_BLOCK = 256  # rows of W at a time


class Sparse(NamedTuple):
    """W = b·I + S, with p entries a row of S.

    Attributes:
      columns: ``[num_terms, p]`` int32, each once a row.
      values: ``[num_terms, p]``.
      identity: b, a scalar.
    """

    columns: jax.Array
    values: jax.Array
    identity: jax.Array


class Columns(NamedTuple):
    """What the objective sees beside the gathered rows.

    Attributes:
      documents: `Documents`.
      columns: as in `Sparse`.
    """

    documents: Documents
    columns: jax.Array


def strongest(params: Full, p: int) -> Sparse:
    """The entries of largest magnitude of each row of W − b·I = QᵀAD, of equal ones those of the lower column.

    Args:
      params: a full W. One whose diagonal is 0 (its ``identity`` is a vector) has no entry there.
      p: entries a row.

    Returns:
      `Sparse`, whose b is that of ``params``; 0 where its diagonal is.

    Raises:
      ValueError: if ``p`` is no whole number from 1 to the number of terms, or of the others for a diagonal of 0.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0, 2.0]]))
      >>> found = strongest(Full(jnp.ones((1, 1)), documents, documents, jnp.asarray(1.0)), 1)
      >>> found.columns[:, 0].tolist(), found.values[:, 0].tolist()
      ([2, 0, 2], [2.0, 0.0, 4.0])
    """
    num_terms = params.queries.num_terms
    bare = np.ndim(params.identity) > 0
    checks.between(p, "p", num_terms - bare, "the number of other terms" if bare else "the number of terms")
    across = sparse.to_scipy(params.queries).T.tocsr()
    # A·D, in the order in which the products below read it: SciPy copies any other, at every block.
    pulled = np.ascontiguousarray((sparse.to_scipy(params.documents).T @ np.asarray(params.coefficients).T).T)
    columns = np.empty((num_terms, p), np.int32)
    values = np.empty((num_terms, p), pulled.dtype)
    for begin in range(0, num_terms, _BLOCK):
        rows = slice(begin, begin + _BLOCK)
        columns[rows], values[rows] = _largest(across[rows] @ pulled, p, begin if bare else None)
    identity = jnp.zeros((), params.identity.dtype) if bare else params.identity
    return Sparse(jax.device_put(columns), jax.device_put(values), identity)


def _largest(block: np.ndarray, p: int, diagonal: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Columns and values; none of the diagonal, where that of a first row is given."""
    size = np.abs(block)
    if diagonal is not None:
        own = np.arange(len(block))
        size[own, diagonal + own] = -1  # below those of 0
    least = np.partition(size, size.shape[1] - p, axis=1)[:, -p, None]
    above, equal = size > least, size == least
    missing = p - np.count_nonzero(above, axis=1)[:, None]
    columns = np.nonzero(above | (equal & (np.cumsum(equal, axis=1) <= missing)))[1].reshape(-1, p)
    return columns, np.take_along_axis(block, columns, axis=1)


def prune(params: Sparse, p: int) -> Sparse:
    """Keeps the entries of largest magnitude of each row, step 2 of Algorithm 2.

    Args:
      params: `Sparse`.
      p: entries a row, at most those there are.

    Returns:
      `Sparse`.

    Raises:
      ValueError: for another ``p``.

    Example:
      >>> prune(Sparse(jnp.array([[0, 2]]), jnp.array([[0.5, -1.0]]), jnp.asarray(1.0)), 1).columns.tolist()
      [[2]]
    """
    checks.between(p, "p", params.values.shape[1], "the entries there are")
    place, values = _largest(np.asarray(params.values), p)
    columns = np.take_along_axis(np.asarray(params.columns), place, axis=1)
    return Sparse(jax.device_put(columns), jax.device_put(values), params.identity)


def rows(example: Example, data: Columns) -> jax.Array:
    """Rows of W that a triple needs: those of the query's words.

    Args:
      example: one triple.
      data: documents and columns.

    Returns:
      ``[s]`` term numbers.
    """
    return data.documents.query_terms[example.triple.query]


def objective(gathered: jax.Array, example: Example, data: Columns) -> jax.Array:
    """Margin ranking loss of one triple, 003 §2.3.

    Args:
      gathered: ``[s, p]`` entries of W.
      example: the triple.
      data: documents and columns.

    Returns:
      Scalar.
    """
    query, better, worse = example.triple
    documents, num_terms = data.documents, data.columns.shape[0]
    apart = jnp.zeros(num_terms, gathered.dtype).at[documents.terms[better]].add(documents.values[better])
    apart = apart.at[documents.terms[worse]].add(-documents.values[worse])
    met = apart[data.columns[documents.query_terms[query]]]
    learned = jnp.sum(documents.query_values[query] * jnp.sum(gathered * met, axis=1))
    return losses.margin_ranking(example.apart + learned, jnp.zeros_like(learned), margin=documents.margin)


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    init: Sparse,
    key: jax.Array,
    l1: float = 0.0,
    known=None,
    margin: float = 1.0,
    learning_rate: float = 0.1,
    max_terms: int | None = 200,
    products: Products | None = None,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    """Trains the entries of a sparse W on, step 3 of Algorithm 2.

    Args:
      left: weighted queries, ``[num_queries, num_terms]``, of unit length.
      right: weighted documents over the same vocabulary, of unit length.
      links: as for `ssi.fit`.
      init: which entries W has, and where they start; its b stays.
      key: PRNG key of the triples.
      l1: γ of γ‖S‖₁: after an epoch of n triples all entries move towards 0 by γ · n · the learning rate, and stop
        there. An entry of 0 may come back.
      known: as for `ssi.fit`.
      margin: m of the loss.
      learning_rate: fixed.
      max_terms: how many of its strongest terms the learned part sees of a document; None for all.
      products: as for `ssi.fit`.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      run: as for `ssi.fit`; ``validate`` takes a `Sparse`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Sparse`; a step is an epoch, an evaluation a triple.

    Raises:
      ValueError: as `ssi.fit`, and for an ``init`` of another vocabulary or a negative ``l1``.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> init = Sparse(jnp.array([[1], [0], [3], [2]]), jnp.zeros((4, 1)), jnp.asarray(1.0))
      >>> found = fit(documents, documents, [[0, 1], [2, 3]], init=init, key=jax.random.key(0), triples=200, max_iter=1,
      ...             known=[[i, i] for i in range(4)])
      >>> found.params.values[:, 0].round(1).tolist()
      [1.0, 0.0, 1.0, 0.0]

    Relations: `ssi_full` gives the start.
    """
    checks.random_key(key)
    checks.kind(init, "init", Sparse)
    checks.expect(np.ndim(init.identity) == 0, "init.identity", "one number", f"shape {np.shape(init.identity)}")
    problem = prepare(left, right, links, identity=float(init.identity), known=known, margin=margin,
                      training=Run.of(run, options))
    columns, values = np.asarray(init.columns), np.asarray(init.values)
    checks.expect(columns.shape[:1] == (left.num_terms,), "init", f"{left.num_terms} rows", len(columns))
    checks.expect(columns.ndim == 2 and values.shape == columns.shape, "init.values",
                  f"shape {columns.shape} (as columns), of two dimensions", values.shape)
    whole = np.issubdtype(columns.dtype, np.integer)
    checks.expect(whole and bool(((columns >= 0) & (columns < left.num_terms)).all()), "init.columns",
                  f"integers from 0 to {left.num_terms - 1}", "others" if whole else columns.dtype)
    checks.expect(0 <= l1 < float("inf"), "l1", "a number of at least 0", l1)
    checks.expect(0 < learning_rate < float("inf"), "learning_rate", "a positive number", learning_rate)
    dtype = problem.margin.dtype
    data = Columns(problem.documents(max_terms), init.columns)
    apart = problem.unlearned(Products(left, right, 1.0) if products is None else products)
    rate = jnp.asarray(learning_rate, jnp.result_type(float))

    def epoch(state, number):
        (values,), result = state, []
        for some in drawn(jax.random.fold_in(key, number), problem.links, triples, chunk=CHUNK):
            values, each = scan_chunk(objective, rows, values, data, Example(some, apart(some)), rate)
            result.append(np.asarray(each, np.float64))
        result = np.concatenate(result)
        if l1:
            values = jnp.sign(values) * jnp.maximum(jnp.abs(values) - l1 * learning_rate * result.size, 0)
        return (values,), result, float(np.mean(result)), float("nan")

    depends = problem.links, l1, triples, left, right
    return problem.training.run(
        epochs.run, lambda values: Sparse(init.columns, values, jnp.asarray(problem.identity, dtype)), epoch,
        (init.values.astype(dtype),), label="SSI, sparse",
        mark=lambda: mark_of(objective, init, jax.random.key_data(key), learning_rate, data, depends),
    )


def matrix(params: Sparse) -> scipy.sparse.csr_matrix:
    """The learned part S of W = b·I + S; the scores of queries are inner products of ``b·q + Sᵀq`` with documents.

    Args:
      params: `Sparse`.

    Returns:
      ``[num_terms, num_terms]`` CSR matrix without zeros.

    Example:
      >>> matrix(Sparse(jnp.array([[1], [0]]), jnp.array([[2.0], [0.0]]), jnp.asarray(1.0))).toarray().tolist()
      [[0.0, 2.0], [0.0, 0.0]]
    """
    size, p = params.columns.shape
    pointers = np.arange(size + 1) * p
    result = scipy.sparse.csr_matrix((np.array(params.values).ravel(), np.array(params.columns).ravel(), pointers),
                                     shape=(size, size))
    result.eliminate_zeros()
    return result
