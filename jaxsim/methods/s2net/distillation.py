r"""Distillation: one projection whose cosines rank texts as a projection and the bare terms do together.

Bare terms find a text that shares a rare word, and a learned projection finds a text that shares none. Their scores
together rank better than either, but are not a product of short vectors, and a few dimensions alone do not keep words
apart. Here a
projection (the student) learns to rank as both do (the teacher): by the divergence of their distributions over all
documents (Hinton et al. (2015), "Distilling the knowledge in a neural network"), for queries of a few words drawn at
random from the texts, new ones in every step. It starts at the learned projection with random codes of the terms added.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, optim, sparse, text
from jaxsim.methods import statistics
from jaxsim.methods.projections import Projection
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms, unit
from jaxsim.sparse.precision import EVALUATION, checked, matmul

CODES = 0.2
"""Share of the start's squared length that the terms' random codes have."""
WORDS = (2, 8)
"""Words drawn for a query, at least and at most; words drawn twice count once."""
_STEPS = 10  # an epoch: between two checkpoints


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["texts", "spread", "values", "indices", "indptr", "places", "known", "vectors", "bare", "share",
                 "scale", "key"],
    meta_fields=["ends", "queries", "precision"],
)
@dataclasses.dataclass(frozen=True)
class Lesson:
    """One batch: the constants, and the key of its queries.

    Attributes:
      texts: ``[n, slots]``, left ones before right ones.
      spread: ``[slots, num_terms]`` what a slot is made of; None: slots are terms.
      values: of the words of the texts, compressed rows.
      indices: their slots.
      indptr: ``[n + 1]`` row pointers.
      places: ``[words]`` int32, the row of a slot in ``known`` and ``bare``: those of words that stand in the texts.
      known: ``[spelt, k]`` the teacher's rows of words.
      vectors: ``[n, k]`` its texts, at unit length.
      bare: ``[spelt, n]`` float16, cosines of a word alone with each text.
      share: of the bare terms in the teacher's score.
      scale: of scores before the softmax.
      key: of the queries.
      ends: row after the last left text, and after the last right one.
      queries: number of them, half drawn from each side.
      precision: of the products of scores.
    """

    texts: Terms
    spread: Terms | None
    values: jax.Array
    indices: jax.Array
    indptr: jax.Array
    places: jax.Array
    known: jax.Array
    vectors: jax.Array
    bare: jax.Array
    share: jax.Array
    scale: jax.Array
    key: jax.Array
    ends: tuple[int, int]
    queries: int
    precision: str | None = None


def draw(lesson: Lesson) -> tuple[jax.Array, jax.Array]:
    """A batch of queries, each of a few words of one text.

    Args:
      lesson: of which only the key changes between batches.

    Returns:
      ``(slots, weights)``, ``[queries, 8]`` int32 and floating; weights are 0 where a query has fewer words.
    """
    left, n = lesson.ends
    half = lesson.queries // 2
    of_left, of_right, length, place = jax.random.split(lesson.key, 4)
    rows = jnp.concatenate([jax.random.randint(of_left, (half,), 0, left),
                            jax.random.randint(of_right, (lesson.queries - half,), left, n)])  # fmt: skip
    first, held = lesson.indptr[rows], lesson.indptr[rows + 1] - lesson.indptr[rows]
    most = WORDS[1]
    at = jnp.floor(jax.random.uniform(place, (lesson.queries, most)) * held[:, None]).astype(jnp.int32)
    at = jnp.minimum(at, jnp.maximum(held - 1, 0)[:, None])
    wanted = jax.random.randint(length, (lesson.queries, 1), WORDS[0], most + 1)
    again = jnp.tril(at[:, :, None] == at[:, None, :], -1).any(axis=2)
    slot = jnp.minimum(first[:, None] + at, lesson.indices.shape[0] - 1)
    weights = jnp.where((jnp.arange(most)[None] < wanted) & ~again & (held > 0)[:, None], lesson.values[slot], 0)
    return lesson.indices[slot], weights


def teacher(lesson: Lesson, slots: jax.Array, weights: jax.Array) -> jax.Array:
    """Scores of all texts for queries: ``(1 - share)`` of the projection's cosine, ``share`` of the bare terms'.

    Args:
      lesson: the constants.
      slots: ``[q, w]`` words of the queries, each of some text.
      weights: ``[q, w]`` their weights.

    Returns:
      ``[q, n]``. Words of a query count as at right angles to each other in the length of its bare terms.
    """
    places = lesson.places[slots]
    dense = unit(jnp.einsum("qw,qwk->qk", weights, lesson.known[places], precision=EVALUATION))
    length = jnp.sqrt(jnp.sum(weights**2, axis=1, keepdims=True))
    each = weights / jnp.where(length > 0, length, 1)

    def added(total, one):
        place, weight = one
        return total + weight[:, None] * lesson.bare[place].astype(total.dtype), None

    bare, _ = jax.lax.scan(added, jnp.zeros((len(slots), lesson.bare.shape[1]), dense.dtype), (places.T, each.T))
    learned = jnp.matmul(dense, lesson.vectors.T, precision=EVALUATION)
    return (1 - lesson.share) * learned + lesson.share * bare


def objective(params: Projection, lesson: Lesson) -> jax.Array:
    r"""Mean over queries and sides of :math:`KL(\mathrm{softmax}(\gamma T_q) \| \mathrm{softmax}(\gamma S_q))`.

    Args:
      params: `Projection` of terms.
      lesson: the batch.

    Returns:
      Scalar, in nats; 0 where every distribution is the teacher's.
    """
    rows = params.weights if lesson.spread is None else sparse.project(lesson.spread, params.weights)
    slots, weights = draw(lesson)
    wanted = jax.lax.stop_gradient(teacher(lesson, slots, weights))
    queries = unit(jnp.einsum("qw,qwk->qk", weights, rows[slots]))
    scores = matmul(queries, unit(sparse.project(lesson.texts, rows)).T, lesson.precision)
    total, start = jnp.zeros((), scores.dtype), 0
    for end in lesson.ends:
        facts = jax.nn.log_softmax(lesson.scale * wanted[:, start:end], axis=1)
        result = jax.nn.log_softmax(lesson.scale * scores[:, start:end], axis=1)
        total, start = total + jnp.sum(jnp.exp(facts) * (facts - result)), end
    return total / (2 * lesson.queries)


def fit(
    left: Terms,
    right: Terms,
    *,
    base: Projection,
    share: float,
    key: jax.Array,
    spread: sp.csr_matrix | None = None,
    words: int | None = None,
    scale: float = 15.0,
    queries: int = 1024,
    learning_rate: float = 0.1,
    precision: str | None = None,
    run: Run | None = None,
    **options,
) -> Fit:
    """Distils a projection and the bare terms into one projection, by Adam.

    Args:
      left: weighted texts, ``[a, slots]``; texts of each side are ranked among themselves, for queries of both.
      right: ``[b, slots]``.
      base: the learned projection, weights ``[num_terms, k]``.
      share: of the bare terms in the teacher's score, in (0, 1).
      key: PRNG key of codes and queries.
      spread: ``[slots, num_terms]``, what a slot is made of (`Subwords.spread`); slots are terms unless given.
      words: slots that queries are drawn from, the first ones; all unless given.
      scale: of scores before the softmax; the larger, the more the first ranks count.
      queries: a batch.
      learning_rate: of Adam, in units of the root mean square of the start; it falls to 0 along a cosine.
      precision: of the products of the student's scores, as for `precision.matmul`.
      run: how the fit runs; 15 epochs, of 10 batches each, unless it says otherwise.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Projection`; a step is an epoch, an evaluation a batch.

    Raises:
      ValueError: for sides that do not agree, texts without words, a projection that does not fit, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> texts = sparse.from_scipy(sp.identity(8, format="csr", dtype=np.float32))
      >>> flat = Projection(jnp.ones((8, 4)))  # knows nothing: all cosines are 1
      >>> found = fit(texts, texts, base=flat, share=0.5, key=jax.random.key(0), queries=32)
      >>> found.history[-1]["loss"] < found.history[1]["loss"]
      True

    Relations: the base is that of `opca` or `s2net`.
    """
    checks.random_key(key)
    run = Run.of(run, options, Run(max_iter=15))
    statistics.expect_sides(left, right, same="terms")
    checks.expect(min(left.num_docs, right.num_docs) >= 1, "left, right", "at least one text each",
                  (left.num_docs, right.num_docs))  # fmt: skip
    checks.expect(0 < share < 1, "share", "a number between 0 and 1", share)
    for name, value in (("scale", scale), ("learning_rate", learning_rate)):
        checks.expect(0 < value < float("inf"), name, "a positive number", value)
    checks.whole(queries, "queries", 2)
    checks.positive_int(run.max_iter, "max_iter")
    checked(precision)
    slots = left.num_terms
    words = slots if words is None else words
    checks.expect(1 <= words <= slots, "words", f"between 1 and {slots} slots", words)
    rows = slots if spread is None else spread.shape[1]
    weights = np.asarray(base.weights)
    checks.expect(weights.ndim == 2 and len(weights) == rows, "base", f"weights of shape ({rows}, k)", weights.shape)
    checks.expect(bool(np.isfinite(weights).all()), "base", "finite weights", "NaN or infinity")
    own = sp.identity(slots, weights.dtype, format="csr") if spread is None else spread
    texts = sp.vstack([sparse.to_scipy(side) for side in (left, right)], format="csr")
    made = text.unit_rows(texts @ own)
    dense = made @ weights
    lengths = np.linalg.norm(dense, axis=1, keepdims=True)
    spelt = texts[:, :words].tocsr()
    spelt.eliminate_zeros()
    checks.expect(spelt.nnz > 0, "left, right", "texts with words to draw queries from", "none")
    drawn = np.unique(spelt.indices)  # the vocabulary may be that of many more texts, and a row of cosines is long
    places = np.zeros(words, np.int32)
    places[drawn] = np.arange(len(drawn))
    alone = own[drawn]
    key, of_codes, of_queries = jax.random.split(key, 3)
    codes = np.asarray(jax.random.normal(of_codes, weights.shape, weights.dtype)) / np.sqrt(weights.shape[1])
    size = np.sqrt(np.mean(lengths**2))
    checks.expect(size > 0, "base", "a projection that is not zero for every text", 0)
    start = np.sqrt(1 - CODES) / size * weights + np.sqrt(CODES) * codes
    lesson = Lesson(
        texts=sparse.from_scipy(texts), spread=None if spread is None else sparse.from_scipy(spread),
        values=jnp.asarray(spelt.data), indices=jnp.asarray(spelt.indices, jnp.int32),
        indptr=jnp.asarray(spelt.indptr, jnp.int32), places=jnp.asarray(places), known=jnp.asarray(alone @ weights),
        vectors=jnp.asarray(dense / np.maximum(lengths, np.finfo(dense.dtype).tiny)),
        bare=jnp.asarray(_bare(text.unit_rows(alone), made)), share=jnp.asarray(share, dense.dtype),
        scale=jnp.asarray(scale, dense.dtype), key=of_queries, ends=(left.num_docs, texts.shape[0]), queries=queries,
        precision=precision,
    )

    def batches(epoch_key: jax.Array) -> Iterator[Lesson]:
        for one in jax.random.split(epoch_key, _STEPS):
            yield dataclasses.replace(lesson, key=one)

    rate = learning_rate * float(np.sqrt(np.mean(start**2)))
    return optim.minimize_sgd(
        objective, Projection(jnp.asarray(start, weights.dtype)), batches, key=of_queries,
        optimizer=optim.adam(rate, _STEPS * run.max_iter), constants=dataclasses.replace(lesson, key=None),
        run=run, label="distillation",
    )


def _bare(words: sp.csr_matrix, texts: sp.csr_matrix) -> np.ndarray:
    """Cosines of words with texts, a part of the words at a time: half precision takes half the memory."""
    result = np.empty((words.shape[0], texts.shape[0]), np.float16)
    across = texts.T.tocsr()
    for start in range(0, len(result), 1024):
        result[start : start + 1024] = (words[start : start + 1024] @ across).toarray()
    return result
