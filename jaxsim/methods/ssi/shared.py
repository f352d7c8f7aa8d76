r"""What the methods of SSI share: how they train, checked links, padded documents, the unlearned part of a score."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi import triples as triples_room
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.triples import LinkTable, Triples
from jaxsim.optim import Run
from jaxsim.sparse import Terms

CHUNK = 8192  # triples in one compiled loop at most


class Documents(NamedTuple):
    """What the objective sees beside the gathered rows.

    Attributes:
      query_terms: ``[num_queries, s]`` int32, padded with term 0 of value 0.
      query_values: ``[num_queries, s]`` floating.
      terms: ``[num_documents, t]`` int32, padded alike.
      values: ``[num_documents, t]`` floating.
      margin: scalar.
    """

    query_terms: jax.Array
    query_values: jax.Array
    terms: jax.Array
    values: jax.Array
    margin: jax.Array


class Problem(NamedTuple):
    """What a fit from links is about, checked.

    Attributes:
      left: queries.
      right: documents.
      links: to draw from, or None.
      identity: as it was given.
      diagonal: ``[num_terms]``, that of D, or None.
      margin: scalar of the documents' type.
      training: how it trains.
    """

    left: Terms
    right: Terms
    links: LinkTable | None
    identity: object
    diagonal: jax.Array | None
    margin: jax.Array
    training: Run

    def documents(self, max_terms: int | None) -> Documents:
        """Both sides as rows of one width.

        Args:
          max_terms: as for `padded`.

        Returns:
          `Documents`.
        """
        of_queries = padded(self.left, max_terms)
        return Documents(*of_queries, *(of_queries if self.right is self.left else padded(self.right, max_terms)),
                         self.margin)

    def unlearned(self, products: Products | None = None) -> Callable[[Triples], jax.Array]:
        """The part of a difference of scores that is not learned.

        Args:
          products: those of both sides with a diagonal of ones, shared among fits; computed unless given.

        Returns:
          Function of ``[n]`` triples giving ``[n]``, ``qᵀD d⁺ − qᵀD d⁻``.

        Raises:
          ValueError: for products of other sizes, or with an identity that is no number.
        """
        if products is None:
            if self.diagonal is None:
                return lambda triples: jnp.zeros(triples.query.shape, self.margin.dtype)
            return Products(self.left, self.right, self.diagonal).apart
        checks.kind(products, "products", Products)
        checks.expect(self.identity is not None and np.ndim(self.identity) == 0, "products",
                      "an identity of one number",
                      "none" if self.identity is None else f"shape {np.shape(self.identity)}")
        queries, documents = self.left.num_docs, self.right.num_docs
        checks.expect(products.shape == (queries, documents), "products",
                      f"those of {queries} queries and {documents} documents", products.shape)
        weight = float(self.identity)
        return lambda triples: weight * products.apart(triples)


def prepare(left: Terms, right: Terms, links, *, identity, known, margin: float, training: Run | dict) -> Problem:
    """Checks what the methods of this family share.

    Args:
      left: as for `ssi.fit`.
      right: as for `ssi.fit`.
      links: as for `ssi.fit`, or None where triples come from elsewhere.
      identity: a number, ``[num_terms]``, or None.
      known: as for `ssi.fit`.
      margin: of the loss.
      training: how the fit runs, or what `Run.of` makes it of: fields by name, and ``run``.

    Returns:
      `Problem`.

    Raises:
      TypeError: for another keyword.
      ValueError: if something does not fit.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
      >>> found = prepare(documents, documents, [[0, 1]], identity=2.0, known=None, margin=1.0, training=Run())
      >>> found.diagonal.tolist(), found.links.targets.tolist()
      ([2.0, 2.0, 2.0], [1])
    """
    if not isinstance(training, Run):
        training = Run.of(training.get("run"), {name: training[name] for name in training if name != "run"})
    training.expect_only("SSI", "max_iter", "validate", "patience", "checkpoint", "checkpoint_every", "progress",
                         "callback")
    checks.kind(left, "left", Terms)
    checks.kind(right, "right", Terms)
    checks.expect(0 < margin < float("inf"), "margin", "a positive number", margin)
    dtype, diagonal = jnp.result_type(left.values, right.values), None
    if identity is not None:
        checks.expect(left.num_terms == right.num_terms, "right",
                      f"{left.num_terms} terms (as left, for the identity)", right.num_terms)
        diagonal = jnp.asarray(identity, dtype)
        checks.expect(diagonal.shape in ((), (left.num_terms,)), "identity", f"a number or shape ({left.num_terms},)",
                      diagonal.shape)
        checks.expect(bool(jnp.all(jnp.isfinite(diagonal))), "identity", "finite numbers", "NaN or infinity")
        diagonal = jnp.broadcast_to(diagonal, (left.num_terms,))
    table = None if links is None else triples_room.table(links, left.num_docs, right.num_docs, known=known)
    return Problem(left, right, table, identity, diagonal, jnp.asarray(margin, dtype), training)


def start_tables(key: jax.Array, sizes, k: int, init_scale: float, dtype) -> tuple[tuple[jax.Array, ...], jax.Array]:
    """Tables of normal entries.

    Args:
      key: PRNG key.
      sizes: rows of each table.
      k: columns.
      init_scale: standard deviation.
      dtype: of the entries.

    Returns:
      ``([size, k], ...)``, a table a size, and a key for what comes next.

    Raises:
      ValueError: for a ``k`` or an ``init_scale`` that is not positive.

    Example:
      >>> tables, _ = start_tables(jax.random.key(0), (3, 5), 2, 0.1, jnp.float32)
      >>> [table.shape for table in tables]
      [(3, 2), (5, 2)]
    """
    checks.positive_int(k, "k")
    checks.expect(0 < init_scale < float("inf"), "init_scale", "a positive number", init_scale)
    start_key, draw_key = jax.random.split(key)
    keys = jax.random.split(start_key, len(sizes))
    return tuple(init_scale * jax.random.normal(one, (size, k), dtype)
                 for one, size in zip(keys, sizes, strict=True)), draw_key


def pieces(epoch_key: jax.Array, number: int, *, chunk: int):
    """Cuts an epoch into chunks of one size, so that they share a compiled program.

    Args:
      epoch_key: PRNG key.
      number: how many examples at least.
      chunk: how many at a time at most.

    Yields:
      A key and a size, for each chunk.

    Raises:
      ValueError: if ``number``, the caller's ``triples``, is no whole number of at least 1.

    Example:
      >>> [size for _, size in pieces(jax.random.key(0), 10, chunk=4)]
      [4, 4, 4]
    """
    checks.positive_int(number, "triples")
    count = -(-number // chunk)
    for i in range(count):
        yield jax.random.fold_in(epoch_key, i), -(-number // count)


def drawn(epoch_key: jax.Array, links: LinkTable, number: int, *, chunk: int):
    """One epoch's triples in chunks of one size.

    Args:
      epoch_key: PRNG key.
      links: what to draw from.
      number: how many at least.
      chunk: how many at a time at most.

    Yields:
      `Triples`.
    """
    for key, size in pieces(epoch_key, number, chunk=chunk):
        yield triples_room.draw(key, links, size)


def padded(documents: Terms, max_terms: int | None) -> tuple[jax.Array, jax.Array]:
    """Documents as rows of one width.

    Args:
      documents: `Terms`.
      max_terms: how many of its strongest terms a document keeps, at its full length; None for all.

    Returns:
      ``([num_docs, width], [num_docs, width])``, terms and values, padded with term 0 of value 0.

    Raises:
      ValueError: if ``max_terms`` is neither None nor a whole number of at least 1.
    """
    if max_terms is not None:
        checks.positive_int(max_terms, "max_terms")
    cut = documents if max_terms is None else bilinear.strongest(documents, max_terms)
    return jax.device_put(rectangular(sparse.to_scipy(cut)))


def rectangular(matrix, *, multiple: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A CSR matrix as rows of one width.

    Args:
      matrix: ``[n, num_terms]`` CSR matrix.
      multiple: what the width is a multiple of.

    Returns:
      ``([n, width], [n, width])``, columns (int32) and values, padded with column 0 of value 0.

    Example:
      >>> import scipy.sparse
      >>> [part.tolist() for part in rectangular(scipy.sparse.csr_matrix([[0.0, 2.0, 3.0], [0.0, 0.0, 0.0]]))]
      [[[1, 2], [0, 0]], [[2.0, 3.0], [0.0, 0.0]]]
    """
    lengths = np.diff(matrix.indptr)
    width = -(-max(int(lengths.max(initial=0)), 1) // multiple) * multiple
    filled = np.arange(width) < lengths[:, None]
    terms, values = np.zeros(filled.shape, np.int32), np.zeros(filled.shape, matrix.dtype)
    terms[filled], values[filled] = matrix.indices, matrix.data
    return terms, values
