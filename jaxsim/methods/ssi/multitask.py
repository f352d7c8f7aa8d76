r"""Supervised Semantic Indexing across languages, regularised by retrieval inside the documents' language (003 §2.4.2).

Two tasks share V: :math:`f(q_F, d_E) = q_F^\top U_F^\top V_E d_E` (Eq. 9), queries of language F and documents of
language E, and :math:`f(q_E, d_E) = q_E^\top V_E^\top V_E d_E` (Eq. 10), or :math:`q_E^\top U_E^\top V_E d_E`. Their
triples take turns. There is no identity: the languages have no words in common.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, optim, sparse
from jaxsim.methods.ssi import bilinear, host, low_rank
from jaxsim.methods.ssi import triples as triples_room
from jaxsim.methods.ssi.bilinear import Bilinear
from jaxsim.methods.ssi.shared import CHUNK, Documents, padded, pieces, prepare, start_tables
from jaxsim.methods.ssi.triples import Triples
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms


def fit(
    left: Terms,
    right: Terms,
    links,
    same_left: Terms,
    same_links,
    *,
    k: int,
    key: jax.Array,
    symmetric: bool = True,
    known=None,
    same_known=None,
    init_scale: float = 0.1,
    margin: float = 1.0,
    learning_rate: float = 0.03,
    max_terms: int | None = 200,
    triples: int = 100_000,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns W = UᵀV for queries of another language, while V also serves queries of the documents' language.

    Args:
      left: weighted queries of the other language, ``[num_queries, num_left_terms]``, of unit length.
      right: weighted documents, ``[num_documents, num_terms]``, of unit length.
      links: ``[n, 2]`` integers, rows of ``left`` and of ``right`` that belong together; one given twice counts once.
      same_left: weighted queries over the terms of ``right``; the documents themselves, say.
      same_links: ``[m, 2]`` integers, rows of ``same_left`` and of ``right``.
      k: rank, the paper's N.
      key: PRNG key of the start and of the triples.
      symmetric: whether the second task is Eq. 10, with V on both sides; False for a table U of its own.
      known: ``[*, 2]`` pairs, besides ``links``, that are never drawn as negatives.
      same_known: the same for ``same_links``; each document with itself, say.
      init_scale: standard deviation of the start, whose entries are normal. 1 in the paper.
      margin: m of both losses.
      learning_rate: fixed.
      max_terms: how many of its strongest terms is seen of a document; None for all.
      triples: triples an epoch of the first task, rounded up so that its chunks are of one size; as many of the second
        come between them.
      run: as for `low_rank.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of the pair ``(query side, document side)`` of `Bilinear` of the first task; a step is an epoch, an
      evaluation a triple of either task, the loss a mean over both.

    Raises:
      ValueError: for queries of the second task over other terms than the documents, or as `low_rank.fit`.
      FloatingPointError: if the loss is not finite, naming the triple.

    Example:
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> queries = sparse.from_scipy(scipy.sparse.identity(2, format="csr"))
      >>> found = fit(queries, documents, [[0, 1], [1, 3]], documents, [[0, 1], [2, 3]], k=3, key=jax.random.key(0),
      ...             learning_rate=0.3, triples=200, max_iter=5)
      >>> query, document = (bilinear.encode(*of) for of in zip(found.params, (queries, documents)))
      >>> (query.dense @ document.dense.T).argmax(axis=1).tolist()
      [1, 3]

    Relations: `low_rank.fit` with ``identity=None`` is the first task alone. Both tasks are one: queries of both
    languages over the terms of both, which is how this is computed.
    """
    checks.random_key(key)
    problem = prepare(left, right, links, identity=None, known=known, margin=margin, training=Run.of(run, options))
    checks.kind(same_left, "same_left", Terms)
    expected = f"{right.num_terms} terms (as right)"
    checks.expect(same_left.num_terms == right.num_terms, "same_left", expected, same_left.num_terms)
    both = problem.links, triples_room.table(same_links, same_left.num_docs, right.num_docs, known=same_known,
                                             names=("same_links", "same_known"))  # fmt: skip
    # Terms of the other language come first, those of the documents after them.
    first, dtype = left.num_terms, problem.margin.dtype
    queries = scipy.sparse.block_diag([sparse.to_scipy(left), sparse.to_scipy(same_left)], format="csr")
    document_terms, values = padded(right, max_terms)
    data = Documents(*padded(sparse.from_scipy(queries), max_terms), document_terms + first * symmetric, values,
                     problem.margin)
    sizes = (first + right.num_terms,) if symmetric else (first + right.num_terms, right.num_terms)
    tables, draw_key = start_tables(key, sizes, k, init_scale, dtype)

    def chunks(epoch_key):
        for chunk_key, size in pieces(epoch_key, triples, chunk=CHUNK // 2):
            yield _chunk(chunk_key, both, left.num_docs, size, dtype)

    def whole(learned) -> tuple[Bilinear, Bilinear]:
        return bilinear.sides(learned[0][:first], learned[0][first:] if symmetric else learned[1], None)

    return problem.training.run(
        optim.minimize_rows, whole, low_rank.objective, tables, chunks,
        rows=low_rank.symmetric_rows if symmetric else low_rank.rows,
        data=data, key=draw_key, learning_rate=learning_rate, host=host.steps(data),
        depends=(both, left, right, same_left, triples), label="SSI, two tasks",
    )


def _chunk(key: jax.Array, tables, offset: int, number: int, dtype) -> low_rank.Example:
    """Triples of both tasks in turn; queries of the second stand ``offset`` rows below."""
    keys = jax.random.split(key)
    one, other = (triples_room.draw(of, table, number) for of, table in zip(keys, tables, strict=True))
    both = jax.tree.map(lambda *parts: jnp.stack(parts, axis=1).reshape(-1), one,
                        other._replace(query=other.query + np.int32(offset)))
    return low_rank.Example(Triples(*both), jnp.zeros(2 * number, dtype))
