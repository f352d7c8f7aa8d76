"""The loop of `host.rows_product`, compiled by numba.

A document's row of sums is held in vector registers while its terms go by: each number of the matrix is read once and
each sum is written once. The next rows are prefetched, because they may be anywhere in memory.
"""

from __future__ import annotations

import functools

import numba
from llvmlite import binding, ir
from numba.core import cgutils
from numba.extending import intrinsic

_AHEAD = 8
"""Terms between a row and the one that is asked for: of 4, 8 and 16 the fastest on the processors tried."""

_LINE = 64
"""Bytes of memory that come at once."""

_FEATURES = dict(binding.get_host_cpu_features())


def _registers() -> tuple[int, int]:
    """Bytes of a vector register of this processor, and how many may hold sums: 0 without a fused product-sum."""
    if _FEATURES.get("avx512f"):
        return 64, 24
    if _FEATURES.get("avx2") and _FEATURES.get("fma"):
        return 32, 12
    return 16, 24 if _FEATURES.get("neon") else 0


_SIZE, _COUNT = _registers()
_INT64 = ir.IntType(64)


@functools.cache
def reads(dtype: str) -> bool:
    """Whether the loop takes a matrix of this type as it is.

    Example:
      >>> reads("float32"), reads("int32")
      (True, False)
    """
    # Without the instruction a half would be widened by a library that numba does not link.
    return dtype in ("float32", "float64", "int8") or (dtype == "float16" and bool(_FEATURES.get("f16c")))


@functools.cache
def sums(columns: int, itemsize: int) -> tuple[float, ...]:
    """A tuple as long as the number of registers that a pass over a document uses; empty if one is too wide.

    Its length is part of its type, so the loop is compiled for each length once and kept on disk.

    Example:
      >>> len(sums(3, 4)), 1 <= len(sums(300, 4)) <= 24
      (0, True)
    """
    wide = _SIZE // itemsize
    if columns < wide or not _COUNT:
        return ()
    vectors = -(-columns // wide)
    passes = -(-vectors // _COUNT)
    return (0.0,) * -(-vectors // passes)


@intrinsic
def _sum(context, terms, values, dense, out, sums, begin, end, slots, column, last, line):
    """A document's sums of the columns from ``column`` on; the last register's begin at ``last`` and may overlap."""
    del context
    arrays, places = (terms, values, dense, out), numba.int64

    def compiled(context, builder, signature, given):
        arrays = [context.make_array(signature.args[i])(context, builder, given[i]) for i in range(4)]
        _write_loop(context, builder, signature.args, arrays, len(sums), *given[5:])
        return context.get_dummy_value()

    return numba.void(*arrays, sums, *[places] * 6), compiled


def _write_loop(context, builder, types, arrays, count, begin, end, slots, column, last, line) -> None:
    """Writes the instructions of `_sum`: a loop over terms that holds ``count`` registers of sums."""
    terms, values, matrix, out = (one.data for one in arrays)
    stored = ir.HalfType() if types[2].dtype == numba.uint16 else context.get_value_type(types[2].dtype)
    kept = context.get_value_type(types[3].dtype)
    wide = _SIZE * 8 // types[3].dtype.bitwidth
    vector = ir.VectorType(kept, wide)
    columns = builder.extract_value(arrays[2].shape, 1)
    matrix = builder.bitcast(matrix, stored.as_pointer())
    within = [builder.add(column, _INT64(u * wide)) for u in range(count - 1)] + [last]
    fused = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(vector, [vector] * 3),
        f"llvm.fma.v{wide}f{types[3].dtype.bitwidth}")  # fmt: skip

    def row(slot):
        term = builder.load(builder.gep(terms, [slot]))
        return builder.mul(term if term.type == _INT64 else builder.sext(term, _INT64), columns)

    entry, loop, done = builder.block, builder.append_basic_block("terms"), builder.append_basic_block("done")
    builder.branch(loop)
    builder.position_at_end(loop)
    slot = builder.phi(_INT64)
    held = [builder.phi(vector) for _ in range(count)]
    weight = _repeated(builder, builder.load(builder.gep(values, [slot])), vector)
    later = builder.add(slot, _INT64(_AHEAD))
    later = builder.select(builder.icmp_signed("<", later, slots), later, slot)
    here, there = row(slot), row(later)
    summed = []
    for one, place in zip(held, within, strict=True):
        _ask_for(builder, builder.gep(matrix, [builder.add(there, place)]))
        numbers = builder.gep(matrix, [builder.add(here, place)])
        numbers = _widened(builder, numbers, types[2].dtype.bitwidth // 8, vector)
        summed.append(builder.call(fused, [weight, numbers, one]))
    following = builder.add(slot, _INT64(1))
    for one, first, then in zip([slot, *held], [begin, *[_zeros(vector)] * count], [following, *summed], strict=True):
        one.add_incoming(first, entry)
        one.add_incoming(then, loop)
    builder.cbranch(builder.icmp_signed("<", following, end), loop, done)
    builder.position_at_end(done)
    for one, place in zip(summed, within, strict=True):
        place = builder.bitcast(builder.gep(out, [builder.add(line, place)]), vector.as_pointer())
        builder.store(one, place, align=types[3].dtype.bitwidth // 8)


def _zeros(vector: ir.VectorType) -> ir.Constant:
    return ir.Constant(vector, [ir.Constant(vector.element, 0.0)] * vector.count)


def _repeated(builder, number, vector: ir.VectorType):
    """A number in every place of a register."""
    undefined, first = ir.Constant(vector, ir.Undefined), ir.IntType(32)(0)
    return builder.shuffle_vector(builder.insert_element(undefined, number, first), undefined,
                                  ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count))


def _ask_for(builder: ir.IRBuilder, place: ir.Value) -> None:
    """Writes the instruction that asks for what is stored at a place: to be read, kept near, data."""
    byte, int32 = ir.IntType(8).as_pointer(), ir.IntType(32)
    prefetch = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(ir.VoidType(), [byte, int32, int32, int32]), "llvm.prefetch.p0i8")
    builder.call(prefetch, [builder.bitcast(place, byte), int32(0), int32(3), int32(1)])


@intrinsic
def _ask(context, table, place):
    """Asks for the number of a table at a place, counted through its rows."""

    def compiled(context, builder, signature, given):
        numbers = context.make_array(signature.args[0])(context, builder, given[0]).data
        _ask_for(builder, builder.gep(numbers, [given[1]]))
        return context.get_dummy_value()

    return numba.void(table, place), compiled


@numba.njit(inline="always")
def ask_row(table, row):  # pragma: no cover - compiled
    """Asks for a row of a table."""
    begin = numba.int64(row) * table.shape[1]
    for place in range(begin, begin + table.shape[1], _LINE // table.itemsize):
        _ask(table, place)


def _widened(builder, place, align: int, vector: ir.VectorType):
    """A register of the numbers stored at a place, as numbers of the type of the sums."""
    stored = place.type.pointee
    packed = ir.VectorType(stored, vector.count)
    numbers = builder.load(builder.bitcast(place, packed.as_pointer()), align=align)
    if isinstance(stored, ir.IntType):
        return builder.sitofp(numbers, vector)
    return numbers if stored == vector.element else builder.fpext(numbers, vector)


# Sums keep the order of the terms, so a row has the same bits in any batch.
@numba.njit(nogil=True, cache=True)
def wide_product(starts, terms, values, dense, out, first, last, sums):  # pragma: no cover - compiled
    """``out[first:last]`` of documents times ``dense`` of at least as many columns as a register holds, in `sums`."""
    wide = _SIZE // out.itemsize
    columns, slots, block = dense.shape[1], starts[last], wide * len(sums)
    for row in range(first, last):
        if starts[row] == starts[row + 1]:
            out[row] = 0
            continue
        for column in range(0, columns, block):
            # The last pass begins before its place rather than read over the end of the row.
            begin = min(column, max(0, columns - block))
            end = min(column + block, columns) - wide
            _sum(terms, values, dense, out, sums, starts[row], starts[row + 1], slots, begin, end, row * columns)


@numba.njit(fastmath={"contract"}, nogil=True, cache=True)
def narrow_product(starts, terms, values, dense, out, first, last):  # pragma: no cover - compiled
    """``out[first:last]`` of documents times ``dense`` of a few columns."""
    for row in range(first, last):
        out[row] = 0
        for slot in range(starts[row], starts[row + 1]):
            for i in range(dense.shape[1]):
                out[row, i] += values[slot] * dense[terms[slot], i]
