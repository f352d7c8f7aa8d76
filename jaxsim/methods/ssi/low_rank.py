r"""Supervised Semantic Indexing of low rank: :math:`f(q, d) = q^\top (U^\top V + D) d` (003 §2.2.1, Eq. 4).

The margin ranking loss of random triples is minimised by stochastic gradient descent at a fixed rate, a triple at a
time, as in the paper (§2.3). A triple touches the rows of U and V of the words it has, so that a step costs the same
whatever the vocabulary.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim
from jaxsim.methods.ssi import bilinear, host
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.shared import CHUNK, Documents, drawn, prepare, start_tables
from jaxsim.methods.ssi.triples import Triples
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import EVALUATION


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
    init=None,
    init_scale: float = 0.1,
    margin: float = 1.0,
    learning_rate: float = 0.03,
    adagrad: float | None = None,
    max_terms: int | None = 200,
    products: Products | None = None,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
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
      init: ``(Uᵀ, Vᵀ)``, two arrays ``[num_terms, k]`` to start from, such as the weights of OPCA, or ``(Uᵀ,)`` for
        ``symmetric``; random unless given.
      init_scale: standard deviation of a random start, whose entries are normal. 1 in the paper.
      margin: m of the loss; b·I with margin m learns what I with margin m / b does, from another start.
      learning_rate: fixed.
      adagrad: None for the paper's plain SGD, or where Adagrad's sums of squares start, as for `optim.minimize_rows`.
      max_terms: how many of its strongest terms the low-rank part sees of a document; None for all. The product with D
        always sees all.
      products: ``Products(left, right, 1.0)``, which fits of many settings can share; computed unless given. Only where
        ``identity`` is one number.
      triples: triples an epoch, rounded up so that its chunks are of one size.
      run: how the fit runs; 10 epochs, and a checkpoint after each, unless it says otherwise.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a pair ``(query side, document side)`` of `Bilinear`; a step is an epoch, an evaluation a triple, the
      loss a mean over the epoch's triples.

    Raises:
      ValueError: for rows that do not agree with the links, a query that every document is linked to, different
        vocabularies with an identity, or bad settings.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(6, format="csr"))
      >>> found = fit(documents, documents, [[0, 1], [2, 3], [4, 5]], k=3, key=jax.random.key(0), learning_rate=0.3,
      ...             known=[[i, i] for i in range(6)], triples=200, max_iter=5)
      >>> query, document = (bilinear.encode(side, documents) for side in found.params)
      >>> (query.dense @ document.dense.T).argmax(axis=1)[jnp.array([0, 2, 4])].tolist()
      [1, 3, 5]

    Differs from the paper: its start, N(0, 1), and its b of 1 are arguments, not defaults, and documents are cut to
    their strongest terms in the low-rank part.
    Relations: `ssi_diag` learns the diagonal of W.
    """
    checks.random_key(key)
    problem = prepare(left, right, links, identity=identity, known=known, margin=margin, training=Run.of(run, options))
    if symmetric:
        checks.expect(left.num_terms == right.num_terms, "right", f"{left.num_terms} terms (as left, for V = U)",
                      right.num_terms)
    sizes = (left.num_terms,) if symmetric else (left.num_terms, right.num_terms)
    tables, draw_key = start_tables(key, sizes, k, init_scale, problem.margin.dtype)
    if init is not None:
        shapes, given = ([(size, k) for size in sizes], [np.shape(one) for one in init])
        checks.expect(given == shapes, "init", f"arrays of shapes {', '.join(map(str, shapes))}",
                      ", ".join(map(str, given)))  # fmt: skip
        tables = tuple(jnp.array(one, table.dtype) for one, table in zip(init, tables, strict=True))
    data, apart = problem.documents(max_terms), problem.unlearned(products)

    def chunks(epoch_key):
        return (Example(some, apart(some)) for some in drawn(epoch_key, problem.links, triples, chunk=CHUNK))

    return problem.training.run(
        optim.minimize_rows, lambda learned: bilinear.sides(learned[0], learned[-1], problem.diagonal),
        objective, tables, chunks, rows=symmetric_rows if symmetric else rows, data=data, key=draw_key,
        learning_rate=learning_rate, adagrad=adagrad, host=host.steps(data), label="SSI",
        depends=(problem.links, problem.diagonal, left, right, triples),
    )
