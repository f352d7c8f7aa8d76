"""Ranks of mates by the Jensen-Shannon divergence, where a product of matrices spares most pairs the divergence itself.

A divergence takes a logarithm an element; nothing of it is a product of matrices. But element by element

    log 2 / 2 · (√l - √r)² ≤ JS(l, r) ≤ 1 / 2 · (√l - √r)²,

so that ``1 - JS / log 2`` lies between ``1 - h / log 2`` and ``1 - h``, where ``h = (Σ l + Σ r) / 2 - Σ √(l r)``. A
pair needs its own score only where these bounds leave open whether it reaches that of a mate. (``Σ min(l, r)``, of the
L1 distance, is at most ``Σ √(l r)``, but a minimum is so cheap that nothing would be gained.)
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.precision import EVALUATION

__all__ = ["mate_ranks", "negative_entropy"]

_PAIRS, _TOGETHER = 1024, 16  # pairs of a call, and of a step of its loop


def negative_entropy(rows):
    """``Σ p log p`` over the last axis.

    Args:
      rows: ``[..., k]`` floating, at least 0.

    Returns:
      ``[...]``; an element of 0 adds nothing.

    Example:
      >>> negative_entropy(jnp.array([[1.0, 0.0], [0.5, 0.5]])).round(4).tolist()
      [0.0, -0.6931]
    """
    return jnp.sum(jnp.where(rows > 0, rows * jnp.log(jnp.where(rows > 0, rows, 1)), 0), axis=-1)


class _Block(NamedTuple):
    """Some rows of a side on the device: ``[block, k]``, and ``[block]`` of each row."""

    rows: jax.Array
    roots: jax.Array
    sums: jax.Array
    entropies: jax.Array


@seldom
def _block(rows):
    """What the rows of a block are compared by."""
    return _Block(rows, jnp.sqrt(rows), jnp.sum(rows, axis=1), negative_entropy(rows))


@seldom
def _scores(left: _Block, right: _Block, places):
    """``[_PAIRS]`` scores of the pairs of rows at ``[2, _PAIRS]`` places, 0 for a zero row.

    Of entropies: 2 JS = Σ l log l + Σ r log r - Σ (l + r) log ((l + r) / 2).
    """

    def some(pairs):
        i, j = pairs
        middle = negative_entropy((left.rows[i] + right.rows[j]) / 2)
        score = 1 - ((left.entropies[i] + right.entropies[j]) / 2 - middle) / jnp.log(2)
        return jnp.where((left.sums[i] > 0) & (right.sums[j] > 0), score, 0)

    return jax.lax.map(some, tuple(places.reshape(2, -1, _TOGETHER))).reshape(-1)


@seldom
def _sorted_out(left: _Block, right: _Block, own_rows, own_columns, places):
    """How many others surely reach the mate's score, and where that is open: by row, then by column."""
    row, column, num_docs = places
    coefficients = jnp.matmul(left.roots, right.roots.T, precision=EVALUATION)
    h = (left.sums[:, None] + right.sums[None, :]) / 2 - coefficients
    both = (left.sums[:, None] > 0) & (right.sums[None, :] > 0)
    least, most = jnp.where(both, 1 - h / np.log(2), 0), jnp.where(both, 1 - h, 0)
    # What rounding may do to a sum of k elements and to entropies of up to some log k, with room to spare.
    room = 8 * jnp.finfo(coefficients.dtype).eps * (left.rows.shape[1] + 64)
    room *= jnp.maximum(1, jnp.maximum(jnp.max(left.sums), jnp.max(right.sums)))
    rows = row + jnp.arange(coefficients.shape[0], dtype=jnp.int32)[:, None]
    columns = column + jnp.arange(coefficients.shape[1], dtype=jnp.int32)[None, :]
    others = (rows != columns) & (rows < num_docs) & (columns < num_docs)

    def against(own, axis):
        sure = others & (least >= own + room)
        return jnp.sum(sure, axis=axis), others & ~sure & (most >= own - room)

    return *against(own_rows[:, None], 1), *against(own_columns[None, :], 0)


def mate_ranks(left: np.ndarray, right: np.ndarray, *, block: int) -> tuple[np.ndarray, np.ndarray]:
    """Rank of each document's mate, in both directions; exactly, ties are errors.

    Args:
      left: ``[num_docs, k]`` floating, at least 0.
      right: the same of their mates.
      block: documents a side of a square of pairs.

    Returns:
      ``(left to right, right to left)``, each ``[num_docs]`` int64, 1 for a hit.

    Example:
      >>> side = np.array([[1.0, 0.0], [0.0, 1.0]])
      >>> [places.tolist() for places in mate_ranks(side, np.array([[0.9, 0.1], [0.8, 0.2]]), block=2)]
      [[1, 1], [1, 2]]
    """
    num_docs = len(left)
    starts = range(0, num_docs, block)
    lefts, rights = ([_block(_filled(side[start : start + block], block)) for start in starts]
                     for side in (left, right))  # fmt: skip
    same = np.tile(np.arange(block, dtype=np.int32), (2, 1))
    own = [_of_pairs(*pair, same) for pair in zip(lefts, rights, strict=True)]
    forward, backward = np.zeros((2, len(starts), block), np.int64)
    for i, start in enumerate(starts):
        for j, other in enumerate(starts):
            places = np.array([start, other, num_docs], np.int32)
            by_row, rows_open, by_column, columns_open = map(
                np.asarray, _sorted_out(lefts[i], rights[j], own[i], own[j], places))
            pairs = np.stack(np.nonzero(rows_open | columns_open)).astype(np.int32)
            scores, (rows, columns) = _of_pairs(lefts[i], rights[j], pairs), pairs
            above = rows_open[rows, columns] & (scores >= own[i][rows])
            forward[i] += by_row + np.bincount(rows[above], minlength=block)
            above = columns_open[rows, columns] & (scores >= own[j][columns])
            backward[j] += by_column + np.bincount(columns[above], minlength=block)
    return 1 + forward.reshape(-1)[:num_docs], 1 + backward.reshape(-1)[:num_docs]


def _filled(rows: np.ndarray, block: int) -> np.ndarray:
    """Rows with zeros behind."""
    return np.pad(rows, ((0, block - len(rows)), (0, 0)))


def _of_pairs(left: _Block, right: _Block, pairs: np.ndarray) -> np.ndarray:
    """``[n]`` scores of ``[2, n]`` pairs, always by one program, so that equal documents have equal scores."""
    parts = [_scores(left, right, _filled(pairs[:, start : start + _PAIRS].T, _PAIRS).T)
             for start in range(0, pairs.shape[1], _PAIRS)]
    return np.concatenate([np.zeros(0, left.rows.dtype), *map(np.asarray, parts)])[: pairs.shape[1]]
