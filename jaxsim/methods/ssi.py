r"""Supervised Semantic Indexing of low rank: :math:`f(q, d) = q^\top (U^\top V + D) d` (003 §2.2.1, Eq. 4).

The margin ranking loss of random triples is minimised by stochastic gradient descent at a fixed rate, a triple at a
time, as in the paper (§2.3). A triple touches the rows of U and V of the words it has, so that a step costs the same
whatever the vocabulary.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim
from jaxsim import terms as terms_room
from jaxsim.methods import triples as triples_room
from jaxsim.methods.products import Products
from jaxsim.methods.triples import Triples
from jaxsim.models import bilinear
from jaxsim.models.bilinear import Bilinear
from jaxsim.optim import Fit
from jaxsim.precision import EVALUATION
from jaxsim.terms import Terms

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


class Example(NamedTuple):
    """A triple, or a chunk of them.

    Attributes:
      triple: `Triples`.
      apart: ``qᵀD d⁺ − qᵀD d⁻``, the part of the score that is not learned.
    """

    triple: Triples
    apart: jax.Array


def rows(example: Example, data: Documents) -> tuple[jax.Array, ...]:
    """Rows that a triple needs: of U those of the query and of V those of both documents.

    Args:
      example: one triple.
      data: the documents.

    Returns:
      ``([s], [2 t])`` term numbers.
    """
    _, better, worse = example.triple
    return data.query_terms[example.triple.query], jnp.concatenate([data.terms[better], data.terms[worse]])


def symmetric_rows(example: Example, data: Documents) -> tuple[jax.Array, ...]:
    """As `rows`, all of them of one table.

    Args:
      example: one triple.
      data: the documents.

    Returns:
      ``([s + 2 t],)`` term numbers.
    """
    return (jnp.concatenate(rows(example, data)),)


def objective(gathered: tuple[jax.Array, ...], example: Example, data: Documents) -> jax.Array:
    r"""Margin ranking loss of one triple, 003 §2.3.

    .. math:: \max(0, m - f(q, d^+) + f(q, d^-))

    Args:
      gathered: rows of U and of V, or of both in one, as `rows` or `symmetric_rows` names them.
      example: the triple.
      data: documents and margin.

    Returns:
      Scalar.
    """
    query, better, worse = example.triple
    of_query = data.query_values[query]
    # d⁺ and d⁻ enter the loss by their difference alone: one product for both.
    of_both = jnp.concatenate([data.values[better], -data.values[worse]])
    if len(gathered) == 1:
        gathered = gathered[0][: of_query.size], gathered[0][of_query.size :]
    left = jnp.matmul(of_query, gathered[0], precision=EVALUATION)
    right = jnp.matmul(of_both, gathered[1], precision=EVALUATION)
    return losses.margin_ranking(example.apart + jnp.sum(left * right), jnp.zeros_like(example.apart),
                                 margin=data.margin)


def fit(
    left: Terms,
    right: Terms,
    links,
    *,
    k: int,
    key: jax.Array,
    identity=10.0,
    symmetric: bool = False,
    known=None,
    init_scale: float = 0.1,
    margin: float = 1.0,
    learning_rate: float = 0.03,
    adagrad: float | None = None,
    max_terms: int | None = 200,
    products: Products | None = None,
    triples: int = 100_000,
    max_iter: int = 10,
    validate: Callable | None = None,
    patience: int | None = None,
    checkpoint=None,
    checkpoint_every: int = 1,
    progress: bool = False,
) -> Fit:
    r"""Learns W = UᵀV + D, or UᵀU + D, from links.

    Args:
      left: weighted queries, ``[num_queries, num_terms]``; of unit length, or ``identity`` and the rate mean something
        else for each.
      right: weighted documents. The same vocabulary, unless ``identity`` is None.
      links: ``[n, 2]`` integers, rows of queries and of documents that belong to them; one given twice counts once.
      k: rank, the paper's N.
      key: PRNG key of the start and of the triples.
      identity: b of W = UᵀV + b·I, or ``[num_terms]``, a diagonal D that stays as it is (one that `ssi_diag` learned,
        say), or None for W = UᵀV. 1 in the paper.
      symmetric: whether V = U.
      known: ``[m, 2]`` pairs, besides the links, that are never drawn as negatives; where queries and documents are the
        same articles, each with itself.
      init_scale: standard deviation of the start, whose entries are normal. 1 in the paper.
      margin: m of the loss; b·I with margin m learns what I with margin m / b does, from another start.
      learning_rate: fixed.
      adagrad: None for the paper's plain SGD, or where Adagrad's sums of squares start, as for `optim.minimize_rows`.
      max_terms: how many of its strongest terms the low-rank part sees of a document; None for all. The product with D
        always sees all.
      products: ``Products(left, right, 1.0)``, which fits of many settings can share; computed unless given. Only where
        ``identity`` is one number.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      max_iter: epochs.
      validate: function of params giving a score, higher is better; the best parameters are returned.
      patience: epochs without a better score before stopping.
      checkpoint: folder for checkpoints; an existing one of the same problem is continued.
      checkpoint_every: epochs between checkpoints.
      progress: whether to show a bar on a terminal's stderr.

    Returns:
      `Fit` of a pair ``(query side, document side)`` of `Bilinear`; a step is an epoch, an evaluation a triple, the
      loss a mean over the epoch's triples.

    Raises:
      ValueError: for rows that do not agree with the links, a query that every document is linked to, different
        vocabularies with an identity, or bad settings.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> import scipy.sparse
      >>> documents = terms_room.from_scipy(scipy.sparse.identity(6, format="csr"))
      >>> found = fit(documents, documents, [[0, 1], [2, 3], [4, 5]], k=3, key=jax.random.key(0), learning_rate=0.3,
      ...             known=[[i, i] for i in range(6)], triples=200, max_iter=5)
      >>> query, document = (bilinear.encode(side, documents) for side in found.params)
      >>> (query.dense @ document.dense.T).argmax(axis=1)[jnp.array([0, 2, 4])].tolist()
      [1, 3, 5]

    Differs from the paper: its start, N(0, 1), and its b of 1 are arguments, not defaults, and documents are cut to
    their strongest terms in the low-rank part.
    Relations: `ssi_diag` learns the diagonal of W.
    """
    diagonal = checked(left, right, identity=identity, margin=margin, init_scale=init_scale)
    checks.positive_int(k, "k")
    if symmetric:
        checks.expect(left.num_terms == right.num_terms, "right", f"{left.num_terms} terms (as left, for V = U)",
                      right.num_terms)
    dtype = jnp.result_type(left.values, right.values)
    shapes = [(left.num_terms, k)] if symmetric else [(left.num_terms, k), (right.num_terms, k)]
    start_key, draw_key = jax.random.split(key)
    start = tuple(init_scale * jax.random.normal(one, shape, dtype)
                  for one, shape in zip(jax.random.split(start_key, len(shapes)), shapes, strict=True))
    of_queries = padded(left, max_terms)
    of_documents = of_queries if right is left else padded(right, max_terms)
    data = Documents(*of_queries, *of_documents, jnp.asarray(margin, dtype))
    links = triples_room.table(links, left.num_docs, right.num_docs, known=known)
    weight = 1.0
    if products is not None:
        weight = shared_weight(identity, products, left, right)
    elif diagonal is not None:
        products = Products(left, right, diagonal)

    def chunks(epoch_key):
        for some in drawn(epoch_key, links, triples):
            apart = jnp.zeros(some.query.shape, dtype) if products is None else weight * products.apart(some)
            yield Example(some, apart)

    def whole(tables) -> tuple[Bilinear, Bilinear]:
        return bilinear.sides(tables[0], tables[-1], diagonal)

    found = optim.minimize_rows(
        objective, start, chunks, rows=symmetric_rows if symmetric else rows, data=data, key=draw_key,
        learning_rate=learning_rate, adagrad=adagrad, max_iter=max_iter,
        depends=(links, diagonal, left, right, triples),
        validate=None if validate is None else lambda tables: validate(whole(tables)), patience=patience,
        checkpoint=checkpoint, checkpoint_every=checkpoint_every, progress=progress, label="SSI",
    )
    return found._replace(params=whole(found.params))


def shared_weight(identity, products: Products, left: Terms, right: Terms) -> float:
    """Checks products that fits share.

    Args:
      identity: b, one number.
      products: `Products` of both sides with a diagonal of ones.
      left: queries.
      right: documents.

    Returns:
      b.

    Raises:
      ValueError: if ``identity`` is no number, or the products are of other sizes.
    """
    checks.kind(products, "products", Products)
    checks.expect(identity is not None and np.ndim(identity) == 0, "products", "an identity of one number",
                  "none" if identity is None else f"shape {np.shape(identity)}")
    checks.expect(products.shape == (left.num_docs, right.num_docs), "products",
                  f"those of {left.num_docs} queries and {right.num_docs} documents", products.shape)
    return float(identity)


def checked(left: Terms, right: Terms, *, identity, margin: float, init_scale: float) -> jax.Array | None:
    """Checks what the methods of this family share, and makes the diagonal.

    Args:
      left: queries.
      right: documents.
      identity: a number, ``[num_terms]``, or None.
      margin: of the loss.
      init_scale: of the start.

    Returns:
      ``[num_terms]``, or None.

    Raises:
      ValueError: if something does not fit.
    """
    checks.kind(left, "left", Terms)
    checks.kind(right, "right", Terms)
    checks.expect(0 < margin < float("inf"), "margin", "a positive number", margin)
    checks.expect(0 < init_scale < float("inf"), "init_scale", "a positive number", init_scale)
    if identity is None:
        return None
    checks.expect(left.num_terms == right.num_terms, "right", f"{left.num_terms} terms (as left, for the identity)",
                  right.num_terms)
    diagonal = jnp.asarray(identity, jnp.result_type(left.values, right.values))
    checks.expect(diagonal.shape in ((), (left.num_terms,)), "identity", f"a number or shape ({left.num_terms},)",
                  diagonal.shape)
    checks.expect(bool(jnp.all(jnp.isfinite(diagonal))), "identity", "finite numbers", "NaN or infinity")
    return jnp.broadcast_to(diagonal, (left.num_terms,))


def drawn(epoch_key: jax.Array, links, number: int, *, chunk: int = CHUNK):
    """One epoch's triples in chunks of one size.

    Args:
      epoch_key: PRNG key.
      links: `triples.LinkTable`.
      number: how many at least.
      chunk: how many at a time at most.

    Yields:
      `Triples`.
    """
    checks.positive_int(number, "triples")
    count = -(-number // chunk)
    for i in range(count):
        yield triples_room.draw(jax.random.fold_in(epoch_key, i), links, -(-number // count))


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
    cut = documents if max_terms is None else bilinear.strongest(documents, max_terms)
    matrix = terms_room.to_scipy(cut)
    lengths = np.diff(matrix.indptr)
    width = max(int(lengths.max(initial=0)), 1)
    filled = np.arange(width) < lengths[:, None]
    terms, values = np.zeros(filled.shape, np.int32), np.zeros(filled.shape, matrix.dtype)
    terms[filled], values[filled] = matrix.indices, matrix.data
    return jnp.asarray(terms), jnp.asarray(values)
