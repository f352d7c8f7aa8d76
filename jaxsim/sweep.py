"""Blocks of the all-pairs loss: some rows of the score matrix against some columns, without ever holding all scores.

`losses.all_pairs_logistic` sweeps all rows over all columns on one device; `sharding.all_pairs_logistic` sweeps the
rows of each device over the columns of all, which go round.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxsim.precision import matmul

# Up to this scale exp(4 * gamma) is finite in float32, which the form with one exponential needs.
_SHORT_GAMMA = 20.0


class Side(NamedTuple):
    """Rows or columns of the score matrix.

    Attributes:
      vectors: ``[n, k]`` of length one (or zero).
      own: ``[n]`` cosine of each with its mate.
      ids: ``[n]`` int32 number of its pair; -1 for padding.
      groups: ``[n, c]`` integers, or None: pairs that are equal in any column are not compared.
    """

    vectors: jax.Array
    own: jax.Array
    ids: jax.Array
    groups: jax.Array | None


class Swept(NamedTuple):
    """Sums over the compared pairs, each over gamma where it is a gradient.

    Attributes:
      total: the loss.
      d_rows: ``[n, k]`` gradient in the rows, but for their cosine with their own mates.
      row_slopes: ``[n]`` gradient in ``own`` of the rows, its sign changed.
      d_columns: ``[m, k]`` as ``d_rows``.
      column_slopes: ``[m]`` as ``row_slopes``.
    """

    total: jax.Array
    d_rows: jax.Array | None
    row_slopes: jax.Array | None
    d_columns: jax.Array | None
    column_slopes: jax.Array | None


def sweep(rows: Side, columns: Side, gamma, block_rows: int, *, with_grad: bool, padded: bool = False,
          precision: str | None = None) -> Swept:
    """Compares every row with every column of another pair, in both directions, a block of rows at a time.

    Args:
      rows: ``n`` rows.
      columns: ``m`` columns.
      gamma: scalar scale.
      block_rows: rows a block.
      with_grad: whether to sum the gradients too.
      padded: whether columns may be padding.
      precision: of the matrix products, as for `precision.matmul`.

    Returns:
      `Swept`, without gradients unless asked for.

    Example:
      >>> eye = jnp.eye(2)
      >>> side = Side(eye, jnp.ones(2), jnp.arange(2), None)
      >>> round(float(sweep(side, side, 1.0, 256, with_grad=False).total), 4)
      1.253
    """

    def run(elementwise):
        return lambda r, c, g: _sweep(r, c, g, block_rows, elementwise, with_grad, padded, precision)

    return jax.lax.cond(gamma <= _SHORT_GAMMA, run(_short), run(_careful), rows, columns, gamma)


def finished(swept: Swept, left: jax.Array, right: jax.Array):
    """The loss and its gradients in the vectors, once every row has met every column.

    Args:
      swept: the sums; ``d_rows`` and ``d_columns`` of the same pairs.
      left: ``[n, k]`` row vectors.
      right: ``[n, k]`` column vectors, their mates.

    Returns:
      ``total``, or ``(total, d_left, d_right)`` where there are gradients; these are to be multiplied by gamma.
    """
    if swept.d_rows is None:
        return swept.total
    # Every score of a pair with itself is compared with its whole row and its whole column.
    d_own = -(swept.row_slopes + swept.column_slopes)[:, None]
    return swept.total, swept.d_rows + d_own * right, swept.d_columns + d_own * left


def _short(scores, own_row, own_column, gamma, keep):
    # One exponential a score: x, y = exp(gamma (c_ij - c_ii)), exp(gamma (c_ij - c_jj)) share it.
    shared = jnp.where(keep, jnp.exp(gamma * scores), 0)
    x = shared * jnp.exp(-gamma * own_row)
    y = shared * jnp.exp(-gamma * own_column)
    return jnp.log1p(x + y + x * y), x / (1 + x), y / (1 + y)


def _careful(scores, own_row, own_column, gamma, keep):
    row, column = gamma * (scores - own_row), gamma * (scores - own_column)
    loss = jnp.where(keep, jax.nn.softplus(row) + jax.nn.softplus(column), 0)
    return loss, jnp.where(keep, jax.nn.sigmoid(row), 0), jnp.where(keep, jax.nn.sigmoid(column), 0)


def _apart(some, groups):
    """Which pairs differ in every column: of ``[n, c]`` and ``[m, c]`` group numbers, ``[n, m]``."""
    each = (some[:, None, column] != groups[None, :, column] for column in range(groups.shape[1]))
    return functools.reduce(jnp.logical_and, each)


def _sweep(rows: Side, columns: Side, gamma, block_rows, elementwise, with_grad, padded, precision):
    n, k = rows.vectors.shape
    num_blocks = -(-n // block_rows)
    size = -(-n // num_blocks)
    pad = num_blocks * size - n

    def blocks(array, fill=0):
        if array is None:
            return None
        widths = ((0, pad), *((0, 0),) * (array.ndim - 1))
        return jnp.pad(array, widths, constant_values=fill).reshape(num_blocks, size, *array.shape[1:])

    def step(carry, block):
        total, d_columns, column_slopes = carry
        keep = block.ids[:, None] != columns.ids[None, :]
        if rows.groups is not None:
            keep = keep & _apart(block.groups, columns.groups)
        keep = keep & (block.ids >= 0)[:, None]
        if padded:
            keep = keep & (columns.ids >= 0)[None, :]
        scores = matmul(block.vectors, columns.vectors.T, precision)
        loss, slope_row, slope_column = elementwise(scores, block.own[:, None], columns.own[None, :], gamma, keep)
        total = total + jnp.sum(loss)
        if not with_grad:
            return (total, d_columns, column_slopes), None
        weight = slope_row + slope_column
        d_columns = d_columns + matmul(weight.T, block.vectors, precision)
        carry = (total, d_columns, column_slopes + jnp.sum(slope_column, axis=0))
        return carry, (matmul(weight, columns.vectors, precision), jnp.sum(slope_row, axis=1))

    start = (jnp.zeros((), rows.vectors.dtype), jnp.zeros_like(columns.vectors), jnp.zeros_like(columns.own))
    cut = Side(blocks(rows.vectors), blocks(rows.own), blocks(rows.ids, -1), blocks(rows.groups))
    (total, d_columns, column_slopes), out = jax.lax.scan(step, start, cut)
    if not with_grad:
        return Swept(total, None, None, None, None)
    return Swept(total, out[0].reshape(-1, k)[:n], out[1].reshape(-1)[:n], d_columns, column_slopes)
