"""Tiles of the all-pairs loss: some rows of the score matrix against some columns, without ever holding all scores.

`losses.all_pairs_logistic` sweeps all rows over all columns on one device; `sharding.all_pairs_logistic` sweeps the
rows of each device over the columns of all devices, which are passed round a ring.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse.precision import matmul

# Up to this scale exp(4 * gamma) is finite in float32, which the form with one exponential needs.
_SHORT_GAMMA = 20.0
# Rows and columns at a time, chosen by measuring at m of 5,000 and 20,000. Many rows, since the gradients of all
# columns are read and written once for every block of them; few enough of both that the scores of a tile, over which
# several passes go, stay in the processor's caches.
_CPU_TILE = 512, 1024
# An accelerator wants large products: as many rows as a part of its memory holds, with all columns.
_PANEL = 2_048, 16_384
_PANEL_ARRAYS = 4  # of rows by columns, in float32: scores, their slopes, and a copy of each while it is made
_PANEL_SHARE = 0.25


class Side(NamedTuple):
    """Rows or columns of the score matrix.

    Attributes:
      vectors: ``[n, k]`` of length one (or zero).
      own: ``[n]`` cosine of each with its mate.
      ids: ``[n]`` int32 number of its pair; -1 for padding.
      groups: ``[n, c]`` integers, or None: pairs that are equal in any column are not compared.
      weights: ``[n]`` at least 0, or None: what compares two pairs counts as often as the product of theirs.
    """

    vectors: jax.Array
    own: jax.Array
    ids: jax.Array
    groups: jax.Array | None
    weights: jax.Array | None = None


class Swept(NamedTuple):
    """Sums over the compared pairs, each over gamma where it is a gradient.

    Attributes:
      total: the loss.
      d_rows: ``[n, k]`` gradient in the rows, without the part of the cosine with their own mates.
      row_slopes: ``[n]`` negative gradient in ``own`` of the rows.
      d_columns: ``[m, k]`` as ``d_rows``.
      column_slopes: ``[m]`` as ``row_slopes``.
    """

    total: jax.Array
    d_rows: jax.Array | None
    row_slopes: jax.Array | None
    d_columns: jax.Array | None
    column_slopes: jax.Array | None


def tile(block_size: int | tuple[int, int] | None, num_columns: int) -> tuple[int, int]:
    """Rows and columns of the score matrix that are held at once.

    Args:
      block_size: rows, or rows and columns; None for sizes that suit the default device.
      num_columns: number of columns of the score matrix.

    Returns:
      ``(rows, columns)``. By default a tile has all columns on an accelerator, and 2,048 to 16,384 rows (a power of
      two) of which a quarter of its memory holds the scores; fewer where even 2,048 exceed half of it.

    Raises:
      ValueError: for sizes below 1.

    Example:
      >>> tile((256, 512), 10_000)
      (256, 512)
      >>> tile(7, 100) in ((7, 1024), (7, 100))
      True
    """
    if isinstance(block_size, tuple):
        checks.expect(len(block_size) == 2, "block_size", "rows, or rows and columns", f"{len(block_size)} numbers")
    rows, columns = block_size if isinstance(block_size, tuple) else (block_size, None)
    cpu = jax.default_backend() == "cpu"
    rows = (_CPU_TILE[0] if cpu else _panel(num_columns)) if rows is None else rows
    columns = (_CPU_TILE[1] if cpu else max(num_columns, 1)) if columns is None else columns
    for size in (rows, columns):
        checks.expect(isinstance(size, int | np.integer) and size >= 1, "block_size", "at least 1", size)
    return rows, columns


def _panel(num_columns: int) -> int:
    """Rows of all columns for an accelerator of this memory."""
    least, most = _PANEL
    memory = (jax.local_devices()[0].memory_stats() or {}).get("bytes_limit")
    if memory is None:
        return least
    some = _PANEL_SHARE * memory / (4 * _PANEL_ARRAYS * max(num_columns, 1))
    rows = 2 ** int(np.log2(max(some, 1)))
    return min(max(rows, min(least, 2 * rows)), most)


def sweep(rows: Side, columns: Side, gamma, block_size: int | tuple[int, int] | None = None, *, with_grad: bool,
          padded: bool = False, precision: str | None = None) -> Swept:
    """Compares every row with every column of another pair, in both directions, a tile at a time.

    Args:
      rows: ``n`` rows.
      columns: ``m`` columns.
      gamma: scalar scale.
      block_size: as for `tile`.
      with_grad: whether to sum the gradients too.
      padded: whether rows and columns may be padding.
      precision: of the matrix products, as for `precision.matmul`.

    Returns:
      `Swept`, without gradients unless asked for.

    Example:
      >>> eye = jnp.eye(2)
      >>> side = Side(eye, jnp.ones(2), jnp.arange(2), None)
      >>> round(float(sweep(side, side, 1.0, with_grad=False).total), 4)
      1.253
    """
    def run(elementwise):
        return by_tiles(elementwise, block_size, with_grad=with_grad, padded=padded, precision=precision)

    return by_scale(run, rows, columns, gamma)


def by_tiles(elementwise: Callable, block_size: int | tuple[int, int] | None = None, *, with_grad: bool,
             padded: bool = False, precision: str | None = None) -> Callable:
    """`sweep` with one form of the loss, as a function of rows, columns and scale: what `by_scale` runs.

    Args:
      elementwise: `short` or `careful`.
      block_size: as for `tile`.
      with_grad: whether to sum the gradients too.
      padded: whether rows and columns may be padding.
      precision: of the matrix products, as for `precision.matmul`.

    Returns:
      A function of two `Side` and a scale, which returns `Swept`.
    """
    def run(rows, columns, gamma):
        k, more = rows.vectors.shape[1], _spare(rows.vectors.shape[1], precision)
        if more:
            rows, columns = (side._replace(vectors=jnp.pad(side.vectors, ((0, 0), (0, more))))
                             for side in (rows, columns))
        found = _sweep(rows, columns, gamma, tile(block_size, columns.vectors.shape[0]), elementwise, with_grad, padded,
                       precision)
        if more and with_grad:
            return found._replace(d_rows=found.d_rows[:, :k], d_columns=found.d_columns[:, :k])
        return found

    return run


def _spare(k: int, precision: str | None) -> int:
    """Dimensions of zeros that make rows of bfloat16 begin where an accelerator reads fast."""
    if precision != "bfloat16" or jax.default_backend() == "cpu":
        return 0
    return -k % (64 if k > 64 else 8)


def by_scale(run: Callable, rows: Side, columns: Side, gamma) -> Swept:
    """``run(elementwise)(rows, columns, gamma)`` with the cheapest form of the loss that is exact at this scale.

    Args:
      run: makes a function of rows, columns and scale. It gets `short` or `careful`: a function of scores ``[n, m]``,
        own cosines ``[n, 1]`` and ``[1, m]``, scale, and the mask of what is compared, which returns losses and both
        slopes, ``[n, m]`` each.
      rows: ``n`` rows.
      columns: ``m`` columns.
      gamma: scalar scale.

    Returns:
      What the function returns.
    """
    return jax.lax.cond(gamma <= _SHORT_GAMMA, run(short), run(careful), rows, columns, gamma)


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


def short(scores, own_row, own_column, gamma, keep):
    """Losses and both slopes, for scales whose exponentials are finite."""
    # One exponential a score: x, y = exp(gamma (c_ij - c_ii)), exp(gamma (c_ij - c_jj)) share it. One division too:
    # x / (1 + x) = (x + xy) / (1 + x)(1 + y).
    shared = jnp.where(keep, jnp.exp(gamma * scores), 0)
    x = shared * jnp.exp(-gamma * own_row)
    y = shared * jnp.exp(-gamma * own_column)
    both = x * y
    odds = x + y + both
    share = 1 / (1 + odds)
    return jnp.log1p(odds), (x + both) * share, (y + both) * share


def careful(scores, own_row, own_column, gamma, keep):
    """Losses and both slopes, for any scale."""
    row, column = gamma * (scores - own_row), gamma * (scores - own_column)
    loss = jnp.where(keep, jax.nn.softplus(row) + jax.nn.softplus(column), 0)
    return loss, jnp.where(keep, jax.nn.sigmoid(row), 0), jnp.where(keep, jax.nn.sigmoid(column), 0)


def expect_plain(rows: Side, columns: Side) -> None:
    """Refuses what the kernels on chip do not take.

    Args:
      rows: ``n`` rows.
      columns: ``m`` columns.

    Raises:
      ValueError: for vectors that are not float32, or weights.
    """
    for name, side in (("rows", rows), ("columns", columns)):
        checks.expect(side.vectors.dtype == jnp.float32, name, "float32 vectors", side.vectors.dtype)
        checks.expect(side.weights is None, name, "no weights", "some")


def numbered(rows: Side, columns: Side) -> tuple[Side, Side]:
    """The same with groups of 32 bits, which are equal where those given are: an accelerator has no 64.

    Args:
      rows: ``n`` rows.
      columns: ``m`` columns.

    Returns:
      ``(rows, columns)``.
    """
    if rows.groups is None or rows.groups.dtype == jnp.int32:
        return rows, columns
    known = jnp.sort(jnp.concatenate([rows.groups, columns.groups]), axis=0)
    places = jax.vmap(jnp.searchsorted, in_axes=1, out_axes=1)
    return tuple(side._replace(groups=places(known, side.groups).astype(jnp.int32)) for side in (rows, columns))


def _apart(some, groups):
    """Which pairs differ in every column: of ``[n, c]`` and ``[m, c]`` group numbers, ``[n, m]``."""
    each = (some[:, None, column] != groups[None, :, column] for column in range(groups.shape[1]))
    return functools.reduce(jnp.logical_and, each)


def _cut(side: Side, size: int) -> tuple[Side, int]:
    """Blocks of about so many rows, ``[blocks, size, ...]``, and how many are padding, with ids of -1."""
    n = side.ids.shape[0]
    num_blocks = -(-n // size)
    size = -(-n // max(num_blocks, 1))
    pad = num_blocks * size - n

    def blocks(array, fill=0):
        if array is None:
            return None
        if pad:
            widths = ((0, pad), *((0, 0),) * (array.ndim - 1))
            array = jnp.pad(array, widths, constant_values=fill)
        return array.reshape(num_blocks, size, *array.shape[1:])

    return Side(blocks(side.vectors), blocks(side.own), blocks(side.ids, -1), blocks(side.groups),
                blocks(side.weights)), pad


def _sweep(rows: Side, columns: Side, gamma, sizes, elementwise, with_grad, padded, precision):
    (n, k), m = rows.vectors.shape, columns.ids.shape[0]
    (cut_rows, rows_padded), (cut_columns, pad) = _cut(rows, sizes[0]), _cut(columns, sizes[1])
    # A shard may bring padding of its own among its rows, as among its columns.
    rows_padded, padded = padded or rows_padded > 0, padded or pad > 0

    def meet(carry, both, block):
        """One tile: adds to the sums of its rows, and to those of its columns."""
        losses, d_block, row_slopes = carry
        visited, sums = both
        keep = block.ids[:, None] != visited.ids[None, :]
        if rows.groups is not None:
            keep = keep & _apart(block.groups, visited.groups)
        if rows_padded:
            keep = keep & (block.ids >= 0)[:, None]
        if padded:
            keep = keep & (visited.ids >= 0)[None, :]
        scores = matmul(block.vectors, visited.vectors.T, precision)
        loss, slope_row, slope_column = elementwise(scores, block.own[:, None], visited.own[None, :], gamma, keep)
        if rows.weights is not None:
            times = block.weights[:, None] * visited.weights[None, :]
            loss, slope_row, slope_column = times * loss, times * slope_row, times * slope_column
        # Along the rows, as the slopes: a device then goes over the scores once for both.
        losses = losses + jnp.sum(loss, axis=1)
        if not with_grad:
            return (losses, None, None), None
        weight = slope_row + slope_column
        carry = (losses, d_block + matmul(weight, visited.vectors, precision), row_slopes + jnp.sum(slope_row, axis=1))
        return carry, (sums[0] + matmul(weight.T, block.vectors, precision), sums[1] + jnp.sum(slope_column, axis=0))

    def step(sums, block):
        zeros = jnp.zeros_like(block.own)
        start = (zeros, jnp.zeros_like(block.vectors), zeros) if with_grad else (zeros, None, None)
        found, sums = jax.lax.scan(lambda c, x: meet(c, x, block), start, (cut_columns, sums))
        return sums, found

    start = (jnp.zeros_like(cut_columns.vectors), jnp.zeros_like(cut_columns.own)) if with_grad else None
    sums, (losses, *found) = jax.lax.scan(step, start, cut_rows)
    total = jnp.sum(losses)
    if not with_grad:
        return Swept(total, None, None, None, None)
    (d_rows, row_slopes), (d_columns, column_slopes) = found, sums
    return Swept(total, d_rows.reshape(-1, k)[:n], row_slopes.reshape(-1)[:n], d_columns.reshape(-1, k)[:m],
                 column_slopes.reshape(-1)[:m])
