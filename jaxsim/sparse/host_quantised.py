"""Documents times weights of 32, 16 or 8 bits, compiled by numba and LLVM; sums are float32.

A panel of columns is summed up in registers while a document's terms go by, so that a weight is read once and nothing
is written in between. Every column has its own sum, over the terms in order: a row has the same bits in any batch. What
is left of the columns is summed by a panel that overlaps the one before, which gives the same numbers once more.
"""

from __future__ import annotations

import llvmlite.binding
import numba
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

_WIDE = llvmlite.binding.get_host_cpu_features().get("avx512f", False)
LANES = 16 if _WIDE else 8
"""Columns of a register's worth of sums."""
_F32, _WORD, _BYTES = ir.FloatType(), ir.IntType(64), ir.IntType(8).as_pointer()
_LINE, _AHEAD = 64, 16
"""Bytes that memory gives at once, and terms that it is asked for them before their turn."""


def _widened(builder, loaded, lanes: int | None):
    """Numbers of any of the types as float32: one, or ``lanes`` of them."""
    def shape(kind):
        return kind if lanes is None else ir.VectorType(kind, lanes)

    kind = loaded.type if lanes is None else loaded.type.element
    if isinstance(kind, ir.FloatType):
        return loaded
    if kind == ir.IntType(16):  # the bits of a float16
        return builder.fpext(builder.bitcast(loaded, shape(ir.HalfType())), shape(_F32))
    return builder.sitofp(loaded, shape(_F32))


def _panel(registers: int | None):
    """A function that sums ``registers`` times `LANES` columns of a document (None: one column), from one on."""

    @intrinsic
    def panel(typing, terms, values, dense, out, row, first, last, column):  # pragma: no cover - compiled
        def lower(context, builder, signature, given):
            arrays = [context.make_array(kind)(context, builder, one)
                      for kind, one in zip(signature.args[:4], given[:4], strict=True)]
            terms, values, dense, out = (array.data for array in arrays)
            row, first, last, column = given[4:]
            columns = cgutils.unpack_tuple(builder, arrays[2].shape, 2)[1]
            lanes = None if registers is None else LANES
            kind = _F32 if lanes is None else ir.VectorType(_F32, LANES)
            number, zero = registers or 1, ir.Constant(kind, None if lanes else 0.0)
            sums = [cgutils.alloca_once(builder, kind) for _ in range(number)]
            for one in sums:
                builder.store(zero, one)
            name = "llvm.fma.f32" if lanes is None else f"llvm.fma.v{LANES}f32"
            fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(kind, [kind] * 3), name)
            prefetch = cgutils.get_or_insert_function(
                builder.module, ir.FunctionType(ir.VoidType(), [_BYTES, *[ir.IntType(32)] * 3]), "llvm.prefetch.p0i8")
            with cgutils.for_range_slice(builder, first, last, ir.Constant(_WORD, 1), _WORD) as (slot, _):
                term = builder.sext(builder.load(builder.gep(terms, [slot])), _WORD)
                value = builder.load(builder.gep(values, [slot]))
                if lanes is not None:
                    single = builder.insert_element(ir.Constant(kind, ir.Undefined), value, ir.IntType(32)(0))
                    mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
                    value = builder.shuffle_vector(single, ir.Constant(kind, ir.Undefined), mask)
                later = builder.add(slot, ir.Constant(_WORD, _AHEAD))
                later = builder.select(builder.icmp_signed("<", later, last), later, slot)
                later = builder.sext(builder.load(builder.gep(terms, [later])), _WORD)
                start = builder.add(builder.mul(later, columns), column)
                size = _bytes_of(dense.type.pointee)
                for i in range(0, number * LANES if lanes else 0, _LINE // size):
                    at = builder.bitcast(builder.gep(dense, [builder.add(start, ir.Constant(_WORD, i))]), _BYTES)
                    builder.call(prefetch, [at, *map(ir.IntType(32), (0, 3, 1))])
                start = builder.add(builder.mul(term, columns), column)
                for i, one in enumerate(sums):
                    at = builder.gep(dense, [builder.add(start, ir.Constant(_WORD, i * LANES))])
                    plain = at.type.pointee
                    if lanes is not None:
                        at = builder.bitcast(at, ir.VectorType(plain, LANES).as_pointer())
                    loaded = builder.load(at, align=_bytes_of(plain))
                    builder.store(builder.call(fma, [value, _widened(builder, loaded, lanes), builder.load(one)]), one)
            start = builder.add(builder.mul(row, columns), column)
            for i, one in enumerate(sums):
                at = builder.gep(out, [builder.add(start, ir.Constant(_WORD, i * LANES))])
                if lanes is not None:
                    at = builder.bitcast(at, kind.as_pointer())
                builder.store(builder.load(one), at, align=4)
            return context.get_dummy_value()

        return types.void(terms, values, dense, out, types.intp, types.intp, types.intp, types.intp), lower

    return panel


def _bytes_of(kind) -> int:
    """Bytes of a number of a type of LLVM."""
    return 4 if isinstance(kind, ir.FloatType) else kind.width // 8


_one, _p1, _p2, _p4, _p8 = map(_panel, (None, 1, 2, 4, 8))
_p16 = _panel(16) if _WIDE else _p8
_LARGEST = 16 if _WIDE else 8


@numba.njit(nogil=True, cache=True)
def rows_product(starts, terms, values, dense, out, first, last):  # pragma: no cover - compiled
    """``out[first:last]`` of documents times ``dense``.

    ``dense`` is float32, int8, or the bits of float16 as uint16; all arrays are contiguous, ``terms`` int32 or int64,
    ``values`` and ``out`` float32.
    """
    columns = dense.shape[1]
    for row in range(first, last):
        begin, end = starts[row], starts[row + 1]
        column = 0
        if columns < LANES:
            while column < columns:
                _one(terms, values, dense, out, row, begin, end, column)
                column += 1
        while column < columns:
            wanted = (columns - column + LANES - 1) // LANES
            size = 1
            while size < wanted and size < _LARGEST and 2 * size * LANES <= columns:
                size *= 2
            column = min(column, columns - size * LANES)
            if size == 1:
                _p1(terms, values, dense, out, row, begin, end, column)
            elif size == 2:
                _p2(terms, values, dense, out, row, begin, end, column)
            elif size == 4:
                _p4(terms, values, dense, out, row, begin, end, column)
            elif size == 8:
                _p8(terms, values, dense, out, row, begin, end, column)
            else:
                _p16(terms, values, dense, out, row, begin, end, column)
            column += size * LANES
