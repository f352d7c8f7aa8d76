r"""S2Net from graded preferences (000 §4.2): of two candidates of one query, the better one should be nearer.

.. math:: \frac1{|P|} \sum_{(q, i, j) \in P} \log(1 + \exp(-\gamma (\cos(g_q, g_i) - \cos(g_q, g_j))))

over all pairs P of candidates of one query of which the first has the higher grade. Candidates of one grade are not
compared, so that the paper's four relations (same > subset = superset > disjoint) are three grades. Queries with
similar numbers of candidates share a block; a block takes all pairs of its queries at once, and is padded only to the
largest query in it.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim, sparse
from jaxsim.data.labelled_pairs import LabelledPairs, labelled
from jaxsim.methods import collapse
from jaxsim.methods.projections import encode
from jaxsim.methods.s2net import exact
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

_GROWTH = 1.5  # of the number of candidates from block to block: at most a third of a row is padding
_ENTRIES = 2**19  # pairs of candidates in a chunk of a block


class Block(NamedTuple):
    """Queries of about one number of candidates, in chunks.

    Attributes:
      queries: ``[chunks, n]`` int32 rows of queries.
      candidates: ``[chunks, n, size]`` int32 rows of candidates, 0 where there is none.
      grades: ``[chunks, n, size]`` floating.
      there: ``[chunks, n, size]`` booleans, False where a query has no more candidates.
    """

    queries: jax.Array
    candidates: jax.Array
    grades: jax.Array
    there: jax.Array


class Candidates(NamedTuple):
    """Candidates by query.

    Attributes:
      blocks: of queries with candidates of different grades.
      number: of pairs of candidates whose grades differ.
      queries: that have such pairs.
      skipped: queries whose candidates all have one grade; they say nothing.
    """

    blocks: tuple[Block, ...]
    number: int
    queries: int
    skipped: int


def grouped(pairs: LabelledPairs, *, num_left: int, num_right: int) -> Candidates:
    """Graded pairs as blocks of queries.

    Args:
      pairs: rows of queries, rows of candidates, and grades, the higher the better.
      num_left: number of queries.
      num_right: number of candidates.

    Returns:
      `Candidates`.

    Raises:
      ValueError: for rows out of range, grades that are not finite, a pair that stands twice, or no query with
        candidates of different grades.

    Example:
      >>> found = grouped(LabelledPairs([0, 0, 0, 1], [0, 1, 2, 0], [2.0, 1.0, 1.0, 0.0]), num_left=2, num_right=3)
      >>> found.number, found.queries, found.skipped
      (2, 1, 1)
    """
    checked = labelled(*pairs, num_left=num_left, num_right=num_right)
    left, right, grades = (np.asarray(part) for part in checked)
    order = np.lexsort((right, left))
    left, right, grades = left[order], right[order], grades[order]
    queries, start, sizes = np.unique(left, return_index=True, return_counts=True)
    lists = [grades[begin : begin + size] for begin, size in zip(start, sizes, strict=True)]
    pairs_of = np.array([_number(one) for one in lists], np.int64)
    kept = np.flatnonzero(pairs_of)
    checks.expect(kept.size > 0, "pairs", "a query with candidates of different grades", "none")
    level = np.ceil(np.log(sizes) / np.log(_GROWTH)).astype(int)
    blocks = tuple(_block(queries, start, sizes, right, grades, kept[level[kept] == one])
                   for one in np.unique(level[kept]))  # fmt: skip
    return Candidates(blocks, int(pairs_of.sum()), int(kept.size), int(queries.size - kept.size))


def _number(grades: np.ndarray) -> int:
    """Pairs of different grades."""
    counts = np.unique(grades, return_counts=True)[1].astype(np.int64)
    return int((counts.sum() ** 2 - (counts**2).sum()) // 2)


def _block(queries, start, sizes, right, grades, chosen: np.ndarray) -> Block:
    size = int(sizes[chosen].max())
    n = max(1, min(len(chosen), _ENTRIES // size**2))
    chunks = -(-len(chosen) // n)
    place = np.arange(size)
    there = np.zeros((chunks * n, size), bool)
    there[: len(chosen)] = place < sizes[chosen][:, None]
    rows = np.zeros((chunks * n, size), np.int64)
    rows[: len(chosen)] = np.where(there[: len(chosen)], start[chosen][:, None] + place, 0)
    of = np.zeros(chunks * n, np.int32)
    of[: len(chosen)] = queries[chosen]
    parts = of, np.where(there, right[rows], 0).astype(np.int32), np.where(there, grades[rows], 0), there
    return Block(*(jax.device_put(part.reshape(chunks, n, *part.shape[1:])) for part in parts))


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["left", "right", "blocks", "number", "gamma", "beta", "start"],
    meta_fields=["activation"],
)
@dataclasses.dataclass(frozen=True)
class Data:
    """Constants of `objective`: queries, candidates, their preferences and how many; the rest as in `exact.Data`."""

    left: Terms
    right: Terms
    blocks: tuple[Block, ...]
    number: jax.Array
    gamma: jax.Array
    beta: jax.Array
    start: exact.Sides
    activation: Callable | None = None


def objective(params: exact.Sides, data: Data) -> jax.Array:
    r"""Mean of Eq. (2) over all pairs of candidates of a query whose grades differ, plus ``β/2 ‖A - A₀‖²``.

    Args:
      params: `Projection`, or a pair of them.
      data: the constants.

    Returns:
      Scalar, in nats; log 2 (plus the penalty) for a collapsed model.
    """
    first, second = exact.sides(params)
    # Each document is projected once, however many pairs it stands in.
    left = sparse.unit(encode(first, data.left, activation=data.activation).dense)
    right = sparse.unit(encode(second, data.right, activation=data.activation).dense)

    @jax.checkpoint  # the vectors of candidates are gathered again for the gradient rather than kept
    def chunk(total, block):
        scores = jnp.einsum("nk,nck->nc", left[block.queries], right[block.candidates])
        better = block.grades[:, :, None] > block.grades[:, None, :]
        better &= block.there[:, :, None] & block.there[:, None, :]
        loss = losses.logistic_pairwise(scores[:, :, None] - scores[:, None, :], gamma=data.gamma)
        return total + jnp.sum(jnp.where(better, loss, 0)), None

    total = jnp.zeros((), left.dtype)
    for block in data.blocks:
        total, _ = jax.lax.scan(chunk, total, block)
    return total / data.number + data.beta * exact.distance_penalty(params, data.start)


def fit(
    left: Terms,
    right: Terms,
    pairs: LabelledPairs,
    *,
    init,
    gamma: float = 10.0,
    beta: float = 0.0,
    activation: Callable | None = None,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the projection from graded candidates of queries.

    Args:
      left: weighted queries, ``[num_left, num_terms]``.
      right: weighted candidates, ``[num_right, num_terms]``.
      pairs: `LabelledPairs`: rows of ``left`` and ``right`` with a grade, the higher the better; candidates are
        compared with those of the same query alone. Queries of one grade are passed over (`grouped` counts them).
      init: as for `exact.fit`.
      gamma: scale of the loss; 10 in the paper.
      beta: as for `exact.fit`.
      activation: elementwise function of the outputs, or None.
      run: how the fit runs, as for `exact.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `Projection` (or a pair, if ``init`` was one). A collapsed model has loss log 2.

    Raises:
      ValueError: for rows out of range, bad grades, no query with different grades, a start that does not fit or is
        collapsed, documents without any words on one side, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> graded = LabelledPairs(np.array([0, 0, 1, 1]), np.array([1, 2, 0, 3]), np.array([2.0, 1.0, 0.0, 1.0]))
      >>> start = exact.random_init(4, 2, key=jax.random.key(0))
      >>> result = fit(documents, documents, graded, init=start, max_iter=20)
      >>> result.loss < result.history[0]["loss"]
      True

    Relations: `s2net` has one candidate of a higher grade for each query, its mate, and all others of a lower one.
    """
    run = Run.of(run, options, exact.RUN)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    checks.expect(0 <= beta < float("inf"), "beta", "a number of at least 0", beta)
    preferences = grouped(pairs, num_left=left.num_docs, num_right=right.num_docs)
    start = exact.checked_start(init, left, right, activation=activation)
    dtype = left.values.dtype
    data = Data(left, right, preferences.blocks, jnp.asarray(preferences.number, dtype), jnp.asarray(gamma, dtype),
                jnp.asarray(beta, dtype), start, activation)  # fmt: skip
    run = dataclasses.replace(run, tol=run.tol / exact.start_norm(start))
    result = optim.minimize_lbfgs(objective, start, data, run=run, label="S2Net (preferences)")
    return collapse.learnable(result, left, right, collapsed=[math.log(2)], gamma=gamma)
