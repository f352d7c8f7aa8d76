"""The sums of `tiles.sweep` on a TPU by a Pallas kernel that keeps the scores of a tile on chip.

`tiles` writes each tile of scores to the device's memory and reads it again, several times. Here a tile is computed,
turned into loss and weights, and multiplied into the gradient without leaving the chip: what moves is vectors and
gradients. One kernel goes over blocks of rows, and for each of them over all columns, whose weighted sum it keeps. It
runs twice, the second time with rows and columns exchanged, so no two programs add to one sum, and the same input
gives the same bits.

That costs the scores twice: four products of ``2 m^2 k`` operations in place of three. Where products are all that
takes time, the loss can therefore reach three quarters of the rate at which `tiles` would do its three; it gains where
reading and writing tiles takes more than a quarter of its time.

Nothing uses it by default, since it has not been measured on a TPU: `all_pairs_logistic` takes it with
``on_chip=True``, and ``experiments.speed.accelerator`` measures it. On a CPU it is interpreted: exact, tested and slow.
A GPU has `weight_kernel` instead.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu

from jaxsim import checks
from jaxsim.losses import tiles
from jaxsim.losses.tiles import Side, Swept
from jaxsim.sparse.precision import EVALUATION, checked

_LEAST = 16  # rows of the smallest tile
_LANES = 128  # of a TPU
_TF32 = 8, 10  # bits of exponent and fraction


class Layout(NamedTuple):
    """How the kernel is laid out.

    Attributes:
      room: bytes of a block of rows, and of one of columns, in float32.
      most: rows of a block, and columns.
      interpret: whether JAX interprets the kernel, which any device can.
    """

    room: int
    most: int
    interpret: bool = False


TPU = Layout(1 << 20, 512)  # of 16 MB, which hold two blocks of each side and of the gradient


def layout() -> Layout:
    """The layout for the default device: of anything but a TPU, interpreted.

    Example:
      >>> layout() in (TPU, TPU._replace(interpret=True))
      True
    """
    return TPU._replace(interpret=jax.default_backend() != "tpu")


def tile(block_size: int | tuple[int, int] | None, k: int, plan: Layout | None = None) -> tuple[int, int]:
    """Rows and columns of the scores that are on chip at once.

    Args:
      block_size: rows, or rows and columns: powers of two, at least 16 (columns, unless interpreted: at least 128);
        None for sizes that fit on the chip.
      k: dimensions.
      plan: the layout; that of the default device unless given.

    Returns:
      ``(rows, columns)``. The sizes that None gives are calculated from the chip's memory, and not measured.

    Raises:
      ValueError: for other sizes.

    Example:
      >>> tile(None, 300, TPU), tile(None, 1_000, TPU), tile((16, 128), 300)
      ((512, 512), (256, 256), (16, 128))
    """
    plan = layout() if plan is None else plan
    rows, columns = block_size if isinstance(block_size, tuple) else (block_size, None)
    rows, columns = (_fitting(k, plan) if size is None else size for size in (rows, columns))
    for size, least in ((rows, _LEAST), (columns, _LEAST if plan.interpret else _LANES)):
        checks.expect(size >= least and size & (size - 1) == 0, "block_size",
                      f"powers of two, at least {least}, for tiles on chip", size)
    return rows, columns


def _fitting(k: int, plan: Layout) -> int:
    """The largest power of two of rows of ``k`` float32 that fit."""
    size = _LEAST
    while 2 * size <= plan.most and 8 * size * k <= plan.room:
        size *= 2
    return size


def sweep(rows: Side, columns: Side, gamma, block_size: int | tuple[int, int] | None = None, *, with_grad: bool,
          precision: str | None = None, plan: Layout | None = None) -> Swept:
    """Compares every row with every column of another pair, in both directions, as `tiles.sweep` does.

    Sums are in float32. Of the precisions, a TPU computes "tf32" as "float32".

    Args:
      rows: ``n`` rows, float32; those with ids of -1 are padding.
      columns: ``m`` columns, as ``rows``.
      gamma: scalar scale.
      block_size: as for `tile`.
      with_grad: whether to sum the gradients too.
      precision: of the matrix products, as for `precision.matmul`.
      plan: the layout; that of the default device unless given.

    Returns:
      `tiles.Swept`, without gradients unless asked for.

    Raises:
      ValueError: for vectors that are not float32, weights, or a ``block_size`` that `tile` refuses.

    Example:
      >>> eye = jnp.eye(2)
      >>> side = Side(eye, jnp.ones(2), jnp.arange(2), None)
      >>> round(float(sweep(side, side, 1.0, with_grad=False).total), 4)
      1.253
    """
    tiles.expect_plain(rows, columns)
    plan, policy = layout() if plan is None else plan, checked(precision)
    sizes = tile(block_size, rows.vectors.shape[1], plan)
    rows, columns = tiles.numbered(rows, columns)
    if policy == "bfloat16":
        rows, columns = (side._replace(vectors=side.vectors.astype(jnp.bfloat16)) for side in (rows, columns))

    def run(elementwise):
        def both(r, c, g):
            one_way = functools.partial(_one_way, gamma=g, sizes=sizes, elementwise=elementwise, policy=policy,
                                        plan=plan)
            total, *found = one_way(r, c, with_loss=True, with_grad=with_grad)
            if not with_grad:
                return Swept(jnp.sum(total), None, None, None, None)
            return Swept(jnp.sum(total), *found, *one_way(c, r, with_loss=False, with_grad=True))

        return both

    return tiles.by_scale(run, rows, columns, jnp.asarray(gamma, jnp.float32))


def _one_way(rows: Side, columns: Side, *, gamma, sizes, elementwise, policy, plan, with_loss, with_grad):
    """Sums over all columns for every row: of the loss, of the gradient ``[n, k]``, and of the slopes, as asked for."""
    (n, k), num_groups = rows.vectors.shape, 0 if rows.groups is None else rows.groups.shape[1]
    width = -(-k // _LANES) * _LANES
    rows, columns = _padded(rows, sizes[0], width), _padded(columns, sizes[1], width)

    def of_rows(size):
        return pl.BlockSpec((sizes[0], size), lambda i, j: (i, 0))

    def of_columns(size):
        return pl.BlockSpec((size, sizes[1]), lambda i, j: (0, j))

    scalar = pl.BlockSpec((1, 1), lambda i, j: (0, 0), memory_space=pltpu.SMEM)
    operands = [(jnp.reshape(gamma, (1, 1)), scalar),
                (rows.vectors, of_rows(width)), (columns.vectors, pl.BlockSpec((sizes[1], width), lambda i, j: (j, 0))),
                (rows.own[:, None], of_rows(1)), (columns.own[None, :], of_columns(1)),
                (rows.ids[:, None], of_rows(1)), (columns.ids[None, :], of_columns(1))]
    if num_groups:
        operands += [(rows.groups, of_rows(num_groups)), (columns.groups.T, of_columns(num_groups))]
    arrays, specs = zip(*operands, strict=True)
    widths = [1] * with_loss + [width, 1] * with_grad
    kernel = functools.partial(_kernel, num_groups=num_groups, elementwise=elementwise, policy=policy,
                               interpret=plan.interpret, with_loss=with_loss, with_grad=with_grad)
    # Programs of one block of rows follow each other; blocks of rows do not depend on each other.
    found = pl.pallas_call(
        kernel, grid=(rows.ids.shape[0] // sizes[0], columns.ids.shape[0] // sizes[1]), in_specs=specs,
        out_specs=[of_rows(size) for size in widths],
        out_shape=[jax.ShapeDtypeStruct((rows.ids.shape[0], size), jnp.float32) for size in widths],
        interpret=plan.interpret, name="all_pairs_tile",
        compiler_params=pltpu.CompilerParams(dimension_semantics=("parallel", "arbitrary")))(*arrays)
    return [array[:n, :k] if size == width else array[:n, 0]
            for array, size in zip(found, widths, strict=True)]


def _padded(side: Side, size: int, width: int) -> Side:
    """Rows up to a multiple of ``size``, with ids of -1, and vectors of ``width`` dimensions."""
    n, k = side.vectors.shape
    more = -n % size

    def longer(array, fill=0):
        return jnp.pad(array, ((0, more), *((0, 0),) * (array.ndim - 1)), constant_values=fill)

    return Side(jnp.pad(side.vectors, ((0, more), (0, width - k))), longer(side.own.astype(jnp.float32)),
                longer(side.ids, -1), None if side.groups is None else longer(side.groups))


def _kernel(*refs, num_groups, elementwise, policy, interpret, with_loss, with_grad):
    """One tile: its scores live and die here, and are added to the sums of its rows."""
    (gamma, left, right, own, own_columns, ids, ids_columns), refs = refs[:7], refs[7:]
    (groups, groups_columns), out = (refs[:2], refs[2:]) if num_groups else ((None, None), refs)
    product = functools.partial(_product, policy=policy, interpret=interpret)
    scores = product(left[...], right[...], contract=((1,), (1,)))
    keep = (ids[...] != ids_columns[...]) & (ids[...] >= 0) & (ids_columns[...] >= 0)
    for column in range(num_groups):
        keep = keep & (groups[:, column:column + 1] != groups_columns[column:column + 1, :])
    loss, slope, other = elementwise(scores, own[...], own_columns[...], gamma[0, 0], keep)
    found = [jnp.sum(loss, axis=1, keepdims=True)] if with_loss else []
    if with_grad:
        found += [product(slope + other, right[...], contract=((1,), (0,))), jnp.sum(slope, axis=1, keepdims=True)]

    @pl.when(pl.program_id(1) == 0)
    def _():
        for ref in out:
            ref[...] = jnp.zeros(ref.shape, jnp.float32)

    for ref, more in zip(out, found, strict=True):
        ref[...] += more


def _product(a, b, *, contract, policy, interpret):
    """`precision.matmul` of two blocks, over these dimensions."""
    if policy == "bfloat16":
        a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    if policy == "tf32" and interpret:  # to compare with the tiles of a CPU; a TPU has no such units
        a, b = (jax.lax.reduce_precision(x, *_TF32) for x in (a, b))
    asked = EVALUATION if policy in ("float32", "tf32") else None
    return jax.lax.dot_general(a, b, (contract, ((), ())), precision=asked, preferred_element_type=jnp.float32)
