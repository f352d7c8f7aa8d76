"""The sums of `tiles.sweep` by a Pallas kernel that keeps the scores of a tile on chip.

`tiles` writes each tile of scores to the device's memory and reads it again, several times. Here a tile is computed,
turned into loss and weights, and multiplied into the gradient without leaving the chip: what moves is vectors and
gradients. One kernel goes over blocks of rows, and for each of them over all columns, whose weighted sum it keeps. It
runs twice, the second time with rows and columns exchanged, so no two programs add to one sum, and the same input
gives the same bits.

That costs the scores twice: four products of ``2 m^2 k`` operations in place of three. Where products are all that
takes time, the loss can therefore reach three quarters of the rate at which `tiles` would do its three; it gains where
reading and writing tiles takes more than a quarter of its time.

Nothing uses it by default, since it has not been measured on a GPU or a TPU: `all_pairs_logistic` takes it with
``on_chip=True``, and ``experiments.speed.accelerator`` measures it. On a CPU it is interpreted: exact, tested and slow.
"""

from __future__ import annotations

import functools
import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import tpu as pltpu
from jax.experimental.pallas import triton

from jaxsim import checks
from jaxsim.losses import tiles
from jaxsim.losses.tiles import Side, Swept
from jaxsim.sparse.precision import EVALUATION, checked

_LEAST = 16  # rows and columns of the smallest matrix that a GPU's units multiply
_LANES = 128  # of a TPU
_TF32 = 8, 10  # bits of exponent and fraction
_SUM = [slice(0, 1)]  # where a sum of each row is kept


class Layout(NamedTuple):
    """How the kernel is laid out for a kind of device.

    Attributes:
      rows: bytes of a block of rows in float32, and most rows.
      columns: the same of a block of columns.
      width: dimensions are padded to a multiple of this.
      split: whether vectors are cut into parts whose widths are powers of two: Triton has no other arrays.
      looped: whether a program goes over all columns in a loop. A TPU has one program a tile instead, one after the
        other, which add to one sum; those of a GPU run at once.
      interpret: whether JAX interprets the kernel, which any device can.
    """

    rows: tuple[int, int]
    columns: tuple[int, int]
    width: int
    split: bool
    looped: bool
    interpret: bool = False


# Of a GPU's 227 kB of shared memory, and of a TPU's 16 MB, which hold two blocks of each side and of the gradient.
LAYOUTS = {
    "gpu": Layout((96 << 10, 64), (40 << 10, 32), 32, split=True, looped=True),
    "tpu": Layout((1 << 20, 512), (1 << 20, 512), _LANES, split=False, looped=False),
}


def layout() -> Layout:
    """The layout for the default device; on a CPU, that of a TPU, interpreted.

    Example:
      >>> layout() in (*LAYOUTS.values(), LAYOUTS["tpu"]._replace(interpret=True))
      True
    """
    kind = jax.default_backend()
    return LAYOUTS.get(kind) or LAYOUTS["tpu"]._replace(interpret=True)


def tile(block_size: int | tuple[int, int] | None, k: int, plan: Layout | None = None) -> tuple[int, int]:
    """Rows and columns of the scores that are on chip at once.

    Args:
      block_size: rows, or rows and columns: powers of two, at least 16 (columns on a TPU: at least 128); None for sizes
        that fit on the chip.
      k: dimensions.
      plan: the layout; that of the default device unless given.

    Returns:
      ``(rows, columns)``. The sizes that None gives are calculated from the chip's memory, and not measured.

    Raises:
      ValueError: for other sizes.

    Example:
      >>> tile(None, 300, LAYOUTS["gpu"]), tile(None, 1_000, LAYOUTS["gpu"]), tile((16, 32), 300)
      ((64, 32), (16, 16), (16, 32))
    """
    plan = layout() if plan is None else plan
    rows, columns = block_size if isinstance(block_size, tuple) else (block_size, None)
    rows, columns = (_fitting(k, *room) if size is None else size
                     for size, room in ((rows, plan.rows), (columns, plan.columns)))
    for size, least in ((rows, _LEAST), (columns, _LEAST if plan.looped or plan.interpret else _LANES)):
        checks.expect(size >= least and size & (size - 1) == 0, "block_size",
                      f"powers of two, at least {least}, for tiles on chip", size)
    return rows, columns


def _fitting(k: int, room: int, most: int) -> int:
    """The largest power of two of rows of ``k`` float32 in so many bytes."""
    size = _LEAST
    while 2 * size <= most and 8 * size * k <= room:
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
    for name, side in (("rows", rows), ("columns", columns)):
        checks.expect(side.vectors.dtype == jnp.float32, name, "float32 vectors", side.vectors.dtype)
        checks.expect(side.weights is None, name, "no weights", "some")
    plan, policy = layout() if plan is None else plan, checked(precision)
    sizes = tile(block_size, rows.vectors.shape[1], plan)
    rows, columns = _numbered(rows, columns)
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


def _numbered(rows: Side, columns: Side) -> tuple[Side, Side]:
    """The same with groups of 32 bits, which are equal where those given are: an accelerator has no 64."""
    if rows.groups is None or rows.groups.dtype == jnp.int32:
        return rows, columns
    known = jnp.sort(jnp.concatenate([rows.groups, columns.groups]), axis=0)
    places = jax.vmap(jnp.searchsorted, in_axes=1, out_axes=1)
    return tuple(side._replace(groups=places(known, side.groups).astype(jnp.int32)) for side in (rows, columns))


def _one_way(rows: Side, columns: Side, *, gamma, sizes, elementwise, policy, plan, with_loss, with_grad):
    """Sums over all columns for every row: of the loss, of the gradient ``[n, k]``, and of the slopes, as asked for."""
    (n, k), num_groups = rows.vectors.shape, 0 if rows.groups is None else rows.groups.shape[1]
    width = -(-k // plan.width) * plan.width
    rows, columns = _padded(rows, sizes[0], width), _padded(columns, sizes[1], width)
    span = columns.ids.shape[0] if plan.looped else sizes[1]  # columns of a program

    def of_rows(size):
        return pl.BlockSpec((sizes[0], size), lambda i, j: (i, 0))

    def of_columns(size):
        return pl.BlockSpec((size, span), lambda i, j: (0, j))

    scalar = pl.BlockSpec((1, 1), lambda i, j: (0, 0), **({} if plan.looped else {"memory_space": pltpu.SMEM}))
    operands = [(jnp.reshape(gamma, (1, 1)), scalar),
                (rows.vectors, of_rows(width)), (columns.vectors, pl.BlockSpec((span, width), lambda i, j: (j, 0))),
                (rows.own[:, None], of_rows(1)), (columns.own[None, :], of_columns(1)),
                (rows.ids[:, None], of_rows(1)), (columns.ids[None, :], of_columns(1))]
    if num_groups:
        operands += [(rows.groups, of_rows(num_groups)), (columns.groups.T, of_columns(num_groups))]
    arrays, specs = zip(*operands, strict=True)
    widths = [1] * with_loss + [width, 1] * with_grad
    kernel = functools.partial(_kernel, num_columns=sizes[1], parts=_parts(width, plan.split), num_groups=num_groups,
                               elementwise=elementwise, policy=policy, plan=plan, with_loss=with_loss,
                               with_grad=with_grad)
    # Programs of one block of rows follow each other on a TPU; blocks of rows do not depend on each other.
    # Gradients of a block stay in registers, which 4 warps have too few of.
    options = triton.CompilerParams(num_warps=8, num_stages=2) if plan.looped else pltpu.CompilerParams(
        dimension_semantics=("parallel", "arbitrary"))
    found = pl.pallas_call(
        kernel, grid=(rows.ids.shape[0] // sizes[0], columns.ids.shape[0] // span), in_specs=specs,
        out_specs=[of_rows(size) for size in widths],
        out_shape=[jax.ShapeDtypeStruct((rows.ids.shape[0], size), jnp.float32) for size in widths],
        interpret=plan.interpret, compiler_params=options, name="all_pairs_tile")(*arrays)
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


def _parts(width: int, split: bool) -> list[slice]:
    """Parts of a vector, widest first: of powers of two where it is split."""
    found, start = [], 0
    while start < width:
        size = 1 << ((width - start).bit_length() - 1) if split else width
        found.append(slice(start, start + size))
        start += size
    return found


def _kernel(*refs, num_columns, parts, num_groups, elementwise, policy, plan, with_loss, with_grad):
    """A block of rows against the columns of this program, a tile at a time."""
    (gamma, left, right, own, own_columns, ids, ids_columns), refs = refs[:7], refs[7:]
    (groups, groups_columns), out = (refs[:2], refs[2:]) if num_groups else ((None, None), refs)
    scale, vectors = gamma[0, 0], [left[:, part] for part in parts]
    product = functools.partial(_product, policy=policy, plan=plan)
    against = functools.partial(product, contract=((1,), (1,)))

    def meet(number, sums):
        """One tile: its scores live and die here."""
        at = pl.ds(number * num_columns, num_columns)
        visited = [right[at, part] for part in parts]
        scores = functools.reduce(operator.add, map(against, vectors, visited))
        keep = (ids[...] != ids_columns[:, at]) & (ids[...] >= 0) & (ids_columns[:, at] >= 0)
        for column in range(num_groups):
            keep = keep & (groups[:, column:column + 1] != groups_columns[column:column + 1, at])
        loss, slope, other = elementwise(scores, own[...], own_columns[:, at], scale, keep)
        found = [jnp.sum(loss, axis=1, keepdims=True)] if with_loss else []
        if with_grad:
            weight = slope + other
            found += [product(weight, b, contract=((1,), (0,))) for b in visited]
            found += [jnp.sum(slope, axis=1, keepdims=True)]
        return [a + b for a, b in zip(sums, found, strict=True)]

    places = [(ref, part) for ref, cut in zip(out, [_SUM] * with_loss + [parts, _SUM] * with_grad, strict=True)
              for part in cut]
    start = [jnp.zeros((ref.shape[0], part.stop - part.start), jnp.float32) for ref, part in places]
    if plan.looped:
        sums = jax.lax.fori_loop(0, ids_columns.shape[1] // num_columns, meet, start)
    else:
        @pl.when(pl.program_id(1) == 0)
        def _():
            for (ref, part), zero in zip(places, start, strict=True):
                ref[:, part] = zero

        sums = meet(0, [ref[:, part] for ref, part in places])
    for (ref, part), total in zip(places, sums, strict=True):
        ref[:, part] = total


def _product(a, b, *, contract, policy, plan):
    """`precision.matmul` of two blocks, over these dimensions."""
    if policy == "bfloat16":
        a, b = a.astype(jnp.bfloat16), b.astype(jnp.bfloat16)
    if policy == "tf32" and plan.interpret:  # a GPU's units round; nothing else does
        a, b = (jax.lax.reduce_precision(x, *_TF32) for x in (a, b))
    asked = {"float32": EVALUATION, "tf32": "high" if plan.looped else EVALUATION}.get(policy)
    return jax.lax.dot_general(a, b, (contract, ((), ())), precision=asked, preferred_element_type=jnp.float32)
