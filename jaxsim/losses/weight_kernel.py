"""The sums of `tiles.sweep` on NVIDIA's Hopper GPUs: a Pallas kernel turns the scores of a panel into weights.

Where a panel's scores are written to the device's memory, they are read again for the loss, for the sums of rows and
columns, and for the weights of the two products of the gradient: with 300 dimensions that takes longer than the
products. Here they never leave the chip. The kernel multiplies a tile of rows and columns, takes loss and slopes of
its scores, adds them up, and writes the weights alone, in the precision of the products, which XLA then multiplies.

A program has 256 columns, one half for each of two groups of warps, and goes over some tiles of 128 rows; a third
group fetches the vectors meanwhile. No two programs add to one sum, so the same input gives the same bits.

`all_pairs_logistic` takes it by default where it runs; ``experiments.speed.accelerator`` measures it beside the tiles.
"""

from __future__ import annotations

import functools
import math
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

from jaxsim import checks
from jaxsim.losses import tiles
from jaxsim.losses.tiles import Side, Swept
from jaxsim.sparse.precision import rounded

ROWS, COLUMNS = 128, 128  # of a tile: a group of warps multiplies as many
_GROUPS = 2  # of warps, which share rows
_BYTES = 128  # of a vector that are fetched at a time
_SLOTS = {2: 4, 4: 3}  # how often ahead, by the bytes of a number: as often as there is memory for
_SOME = 32  # columns that are turned into weights at a time: more need more registers than there are
_HALF = 64  # rows of a product of these units
_TILES, _PROGRAMS = 32, 264  # most tiles of a program, unless that leaves fewer programs: two for each processor
_FAR = -1e30  # a score of padding, whose exponential is 0
_SMALL = 2.0**-7  # up to here three terms of log(1 + x) are exact
_TYPES = {"bfloat16": jnp.bfloat16, "tf32": jnp.float32}
_CUT = 2.0**13 + 1  # a number of 24 bits times this, less what exceeds the number, has the 11 bits of TF32
_LOG2E, _LN2 = 1 / math.log(2), math.log(2)


PRECISIONS = tuple(_TYPES)
"""Of matrix products, that the kernel has."""


def lacking() -> tuple[str, str] | None:
    """What the kernel needs and what is there instead, where it does not run: another JAX, or default device.

    Returns:
      ``(needed, found)``, or None where it runs.
    """
    if jax.__version_info__ < (0, 11):
        return "JAX 0.11 or newer, on a GPU", jax.__version__
    device = jax.local_devices()[0]
    found = getattr(device, "compute_capability", None)
    if found != "9.0":
        return "a GPU of compute capability 9.0 (H100, H200), or a TPU", f"{device.device_kind} of {found}"
    return None


def sweep(rows: Side, columns: Side, gamma, block_size: int | None = None, *, with_grad: bool,
          precision: str | None = "bfloat16", interpret: Any = None) -> Swept:
    """Compares every row with every column of another pair, in both directions, as `tiles.sweep` does.

    The value alone, and scales whose exponentials would overflow, are computed by `tiles.sweep`.

    Args:
      rows: ``n`` rows, float32, none of them padding.
      columns: ``m`` columns, as ``rows``.
      gamma: scalar scale.
      block_size: rows of a panel, whose ``[rows, m]`` weights are held; None for what `tiles.tile` gives.
      with_grad: whether to sum the gradients too.
      precision: of the matrix products, and of the weights: "bfloat16" or "tf32".
      interpret: what `plgpu.kernel` takes to interpret the kernel on a CPU; None to run it.

    Returns:
      `tiles.Swept`, without gradients unless asked for.

    Raises:
      ValueError: for vectors that are not float32, weights, another precision, or columns of a ``block_size``.

    Example:
      >>> eye = jnp.eye(2)
      >>> side = Side(eye, jnp.ones(2), jnp.arange(2), None)
      >>> round(float(sweep(side, side, 1.0, with_grad=False).total), 4)
      1.253
    """
    tiles.expect_plain(rows, columns)
    checks.expect(precision in _TYPES, "precision", "bfloat16 or tf32 with on_chip on a GPU", precision)
    checks.expect(not isinstance(block_size, tuple), "block_size", "rows alone with on_chip on a GPU", block_size)
    size, _ = tiles.tile(block_size, columns.ids.shape[0])
    if not with_grad:
        return tiles.sweep(rows, columns, gamma, block_size, with_grad=False, precision=precision)
    rows, columns = tiles.numbered(rows, columns)

    def run(elementwise):
        if elementwise is not tiles.short:
            return tiles.by_tiles(elementwise, block_size, with_grad=True, precision=precision)
        return functools.partial(_panels, size=size, precision=precision, interpret=interpret)

    return tiles.by_scale(run, rows, columns, jnp.asarray(gamma, jnp.float32))


def _panels(rows: Side, columns: Side, gamma, *, size: int, precision: str, interpret) -> Swept:
    """One panel of rows after the other against all columns."""
    (n, k), m = rows.vectors.shape, columns.ids.shape[0]
    num_panels = -(-n // size)
    size = -(-n // (num_panels * ROWS)) * ROWS
    more = num_panels * size - n, -m % (_GROUPS * COLUMNS)
    depth = _depth(_TYPES[precision])
    width = -(-(k + 2 * (sum(more) > 0)) // depth) * depth
    # Padding: of the two added dimensions, a row has 1 in the first and a column in the second.
    left = _padded(rows, more[0], width, precision, one=k, far=k + 1)
    right = _padded(columns, more[1], width, precision, one=k + 1, far=k)
    shares = jnp.exp(-gamma * right.own)
    # Of several fits of one program (`vmap`), one after the other: together they would hold several panels.
    turned = jax.custom_batching.sequential_vmap(functools.partial(_weights, interpret=interpret))

    def panel(carry, block):
        d_columns, *sums = carry
        vectors, own, labels = block
        weights, loss, row_slopes, column_slopes = turned(
            vectors, right.vectors, jnp.exp(-gamma * own), shares, labels.T, right.groups.T, gamma)
        sums = [a + b for a, b in zip(sums, (loss, column_slopes), strict=True)]
        return (d_columns + _product(weights.T, vectors), *sums), (_product(weights, right.vectors), row_slopes)

    start = (jnp.zeros(right.vectors.shape, jnp.float32), jnp.zeros(size, jnp.float32), jnp.zeros_like(right.own))
    blocks = tuple(array.reshape(num_panels, size, *array.shape[1:]) for array in (left.vectors, left.own, left.groups))
    (d_columns, loss, column_slopes), (d_rows, row_slopes) = jax.lax.scan(panel, start, blocks)
    return Swept(jnp.sum(loss), d_rows.reshape(-1, width)[:n, :k], row_slopes.reshape(-1)[:n], d_columns[:m, :k],
                 column_slopes[:m])


def _depth(dtype) -> int:
    """Dimensions that are fetched at a time."""
    return _BYTES // jnp.dtype(dtype).itemsize


def _padded(side: Side, more: int, width: int, precision: str, *, one: int, far: int) -> Side:
    """So many more vectors, in a precision and of ``width`` dimensions; the first of the groups are the ids."""
    n, k = side.vectors.shape
    vectors = jnp.pad(rounded(side.vectors, precision), ((0, more), (0, width - k)))
    if far < width:
        vectors = vectors.at[:, one].set(1).at[n:, far].set(_FAR)
    groups = jnp.concatenate([side.ids[:, None], *([] if side.groups is None else [side.groups])], axis=1)
    groups = jnp.pad(groups, ((0, more), (0, 0)), constant_values=-1)
    return Side(vectors, jnp.pad(side.own, (0, more)), side.ids, groups)


def _product(a, b):
    """In float32, of two matrices of bfloat16, or of numbers that have no more bits than TF32 has."""
    return jnp.matmul(a, b, precision="tensorfloat32" if a.dtype == jnp.float32 else None,
                      preferred_element_type=jnp.float32)


def _weights(left, right, own, own_columns, labels, labels_columns, gamma, *, interpret):
    """Weights ``[n, m]``, and of rows, rows and columns the sums of losses and of both slopes."""
    n, m = left.shape[0], right.shape[0]
    columns, reps = m // (_GROUPS * COLUMNS), _TILES
    while reps > 1 and -(-n // (ROWS * reps)) * columns < _PROGRAMS:
        reps //= 2
    chunks = -(-n // (ROWS * reps))
    of_rows, of_columns = ((_GROUPS * columns, n), (chunks, _HALF, m))
    weights, losses, row_slopes, column_slopes = plgpu.kernel(
        functools.partial(_kernel, reps=reps),
        out_type=[jax.ShapeDtypeStruct((n, m), left.dtype),
                  *(jax.ShapeDtypeStruct(shape, jnp.float32) for shape in (of_rows, of_rows, of_columns))],
        grid=(chunks, columns), grid_names=("chunks", "columns"), num_threads=_GROUPS + 1, thread_name="warps",
        compiler_params=plgpu.CompilerParams(approx_math=True), interpret=interpret,
    )(jnp.reshape(gamma * _LOG2E, (1,)), left, right, own, own_columns, labels, labels_columns)
    return weights, jnp.sum(losses, 0), jnp.sum(row_slopes, 0), jnp.sum(column_slopes, (0, 1))


class _Memory(NamedTuple):
    """What the groups of warps of a program share; the last dimension of vectors is a step of 64, or of 32 in TF32."""

    rows: Any  # [slots, 128, step]
    columns: Any  # [slots, 256, step]
    shares: Any  # [groups, 128] exponentials of the columns' own scores
    labels: Any  # [groups, labels, 128] of the columns
    weights: Any  # [groups, 2, 64, 32], on their way out
    rows_ready: Any  # barriers of the slots, as the next two
    columns_ready: Any
    free: Any
    start: Any  # a barrier for each group

    def slot(self, step):
        """Where the vectors of a step are."""
        return jax.lax.rem(step, self.rows.shape[0])

    @classmethod
    def scratch(cls, dtype, num_labels: int) -> _Memory:
        """What to allocate."""
        depth, size = _depth(dtype), jnp.dtype(dtype).itemsize
        slots = _SLOTS[size]
        tiled, out = ((plgpu.TilingTransform((8, number)), plgpu.SwizzleTransform(size * number))
                      for number in (depth, _SOME))
        return cls(
            plgpu.SMEM((slots, ROWS, depth), dtype, transforms=tiled),
            plgpu.SMEM((slots, _GROUPS * COLUMNS, depth), dtype, transforms=tiled),
            plgpu.SMEM((_GROUPS, COLUMNS), jnp.float32),
            plgpu.SMEM((_GROUPS, num_labels, COLUMNS), jnp.int32),
            plgpu.SMEM((_GROUPS, 2, _HALF, _SOME), dtype, transforms=out),
            plgpu.Barrier(num_barriers=slots), plgpu.Barrier(num_barriers=slots),
            plgpu.Barrier(num_arrivals=_GROUPS, num_barriers=slots),
            plgpu.Barrier(num_arrivals=1 + num_labels, num_barriers=_GROUPS))


class _Place(NamedTuple):
    """Which columns and rows a program has, and which group of warps this is."""

    group: Any
    column: Any
    chunk: Any
    first: Any  # tile of rows
    count: Any  # of tiles: the last chunk may have fewer
    depth: int  # steps of a product

    @property
    def base(self):
        """The first column of this group."""
        return (self.column * _GROUPS + self.group) * COLUMNS


def _kernel(scale, left, right, own, own_columns, labels, labels_columns, weights, losses, row_slopes, column_slopes, *,
            reps):
    """One program: some tiles of rows against 256 columns."""
    chunk, column, group = (jax.lax.axis_index(name) for name in ("chunks", "columns", "warps"))
    count = jnp.minimum(reps, left.shape[0] // ROWS - chunk * reps)
    place = _Place(group, column, chunk, chunk * reps, count, left.shape[1] // _depth(left.dtype))

    def scoped(*refs):
        here = _Memory(*refs)

        @pl.when(group < _GROUPS)
        def _():
            plgpu.set_max_registers(232, action="increase")
            _compute(place, here, scale, own, own_columns, labels, labels_columns, weights, losses, row_slopes,
                     column_slopes)

        @pl.when(group == _GROUPS)
        def _():
            plgpu.set_max_registers(40, action="decrease")
            _fetch(place, here, left, right)

    pl.run_scoped(scoped, *_Memory.scratch(left.dtype, labels.shape[0]), collective_axes="warps")


def _fetch(place: _Place, here: _Memory, left, right) -> None:
    """Copies the vectors of every step into its slot as soon as that is free."""
    columns, depth = pl.ds(place.column * _GROUPS * COLUMNS, _GROUPS * COLUMNS), _depth(left.dtype)

    def copy(step, _):
        slot, at = here.slot(step), pl.ds(jax.lax.rem(step, place.depth) * depth, depth)

        @pl.when(step >= slots)
        def _():
            plgpu.barrier_wait(here.free.at[slot])

        rows = pl.ds((place.first + jax.lax.div(step, place.depth)) * ROWS, ROWS)
        plgpu.copy_gmem_to_smem(left.at[rows, at], here.rows.at[slot], here.rows_ready.at[slot])
        plgpu.copy_gmem_to_smem(right.at[columns, at], here.columns.at[slot], here.columns_ready.at[slot])
        return ()

    def wait(step, _):
        plgpu.barrier_wait(here.free.at[here.slot(step)])
        return ()

    steps, slots = place.count * place.depth, here.rows.shape[0]
    jax.lax.fori_loop(0, steps, copy, ())
    jax.lax.fori_loop(jnp.maximum(steps - slots, 0), steps, wait, ())  # no barrier ends with somebody behind


def _scores(place: _Place, here: _Memory, tile):
    """The product of a tile and this group's columns; a slot is free once the next step is under way."""
    columns = pl.ds(place.group * COLUMNS, COLUMNS)

    def multiply(scores):
        for number in range(place.depth):
            step = tile * place.depth + number
            slot = here.slot(step)
            plgpu.barrier_wait(here.rows_ready.at[slot])
            plgpu.barrier_wait(here.columns_ready.at[slot])
            plgpu.wgmma(scores, here.rows.at[slot], here.columns.at[slot, columns].transpose((1, 0)))
            if number:
                plgpu.wgmma_wait(1)
                plgpu.barrier_arrive(here.free.at[here.slot(step - 1)])
        plgpu.wgmma_wait(0)
        plgpu.barrier_arrive(here.free.at[here.slot((tile + 1) * place.depth - 1)])
        return scores[...]

    return pl.run_scoped(multiply, plgpu.ACC((ROWS, COLUMNS), jnp.float32))


def _compute(place: _Place, here: _Memory, scale, own, own_columns, labels, labels_columns, weights, losses, row_slopes,
             column_slopes) -> None:
    """A tile after the other: scores, their weights, and their sums."""
    num_labels, strip, start = labels.shape[0], place.column * _GROUPS + place.group, here.start.at[place.group]
    columns = pl.ds(place.base, COLUMNS)
    plgpu.copy_gmem_to_smem(own_columns.at[columns], here.shares.at[place.group], start)
    for label in range(num_labels):
        plgpu.copy_gmem_to_smem(labels_columns.at[label, columns], here.labels.at[place.group, label], start)
    plgpu.barrier_wait(start)

    def meet(tile, sums):
        scores, sums, turn = _scores(place, here, tile), list(sums), 0
        halves = [pl.ds((place.first + tile) * ROWS + at, _HALF) for at in range(0, ROWS, _HALF)]
        shares = [_of_rows(own.at[at]) for at in halves]
        names = [[_of_rows(labels.at[label, at]) for label in range(num_labels)] for at in halves]
        found = [[] for _ in halves]  # for each, sums of losses and of slopes of some columns
        for number in range(COLUMNS // _SOME):
            some = pl.ds(number * _SOME, _SOME)
            share = _tall(_of_columns(here.shares.at[place.group, some]))
            others = [_tall(_of_columns(here.labels.at[place.group, label, some])) for label in range(num_labels)]
            for half, rows in enumerate(halves):
                part = scores[half * _HALF:(half + 1) * _HALF, number * _SOME:(number + 1) * _SOME]
                apart = [_wide(one) != other for one, other in zip(names[half], others, strict=True)]
                loss, slope, other = _short(scale[0] * part, _wide(shares[half]), share,
                                            functools.reduce(jnp.logical_and, apart))
                out = here.weights.at[place.group, turn % 2]
                plgpu.wait_smem_to_gmem(1, wait_read_only=True)
                out[...] = _stored(slope + other, weights.dtype)
                plgpu.commit_smem()
                plgpu.copy_smem_to_gmem(out, weights.at[rows, pl.ds(place.base + number * _SOME, _SOME)])
                turn += 1
                sums[number] = sums[number] + other
                found[half].append((jnp.sum(loss, axis=1), jnp.sum(slope, axis=1)))
        for rows, both in zip(halves, found, strict=True):
            loss, slope = (functools.reduce(operator.add, parts) for parts in zip(*both, strict=True))
            losses[strip, rows] = loss * _LN2
            row_slopes[strip, rows] = slope
        return tuple(sums)

    zero = plgpu.layout_cast(jnp.zeros((_HALF, _SOME), jnp.float32), plgpu.Layout.WGMMA)
    sums = jax.lax.fori_loop(0, place.count, meet, (zero,) * (COLUMNS // _SOME))
    for number, total in enumerate(sums):  # both halves of all tiles; XLA adds the 64 rows
        column_slopes[place.chunk, :, pl.ds(place.base + number * _SOME, _SOME)] = total
    plgpu.wait_smem_to_gmem(0)


def _of_rows(ref):
    """One number a row of half a tile, where the product has its row."""
    return plgpu.load(ref, layout=plgpu.Layout.WGMMA.reduce(1), optimized=False)


def _of_columns(ref):
    """One number a column, likewise."""
    return plgpu.load(ref, layout=plgpu.Layout.WGMMA.reduce(0), optimized=False)


def _wide(row):
    """Numbers of rows, for every column."""
    return jax.lax.broadcast_in_dim(row, (_HALF, _SOME), (0,))


def _tall(column):
    """Numbers of columns, for every row."""
    return jax.lax.broadcast_in_dim(column, (_HALF, _SOME), (1,))


def _stored(weight, dtype):
    """A weight in the type of the products; in float32, with the bits of TF32 alone, to which units of it would cut."""
    if dtype != jnp.float32:
        return weight.astype(dtype)
    large = weight * _CUT
    return large - (large - weight)


def _short(exponents, own_row, own_column, keep):
    """`tiles.short` without a division, which is slow here: losses in bits, and both slopes.

    Exponents are in bits; ``own_row`` and ``own_column`` are the exponentials of the own scores.
    """
    shared = jnp.where(keep, jnp.exp2(exponents), 0.0)
    x, y = shared * own_row, shared * own_column
    both = x * y
    odds = x + y + both
    bits = jnp.log2(1.0 + odds)
    share = jnp.exp2(-bits)
    few = odds * (_LOG2E - odds * (_LOG2E / 2 - odds * (_LOG2E / 3)))
    return jnp.where(odds < _SMALL, few, bits), (x + both) * share, (y + both) * share
