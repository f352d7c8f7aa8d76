"""Products of compressed sparse rows with wide dense matrices, a block of columns at a time on a CPU.

A row of a wide matrix is fetched for every slot that names it. All its rows together are larger than the processor's
caches; their parts in a block of columns are not, so that each is read from memory about once. Blocks change the order
of a sum only in `sampled`.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
from jax.experimental import sparse as jsparse

from jaxsim.precision import EVALUATION

_BLOCK = 128
_WIDE = 768  # columns; below, copying the blocks costs what they save
_SAMPLED_NUMBERS = 2**20  # of each side, gathered at a time: what the processor keeps near


def rows_product(values: jax.Array, indices: jax.Array, indptr: jax.Array, dense: jax.Array) -> jax.Array:
    """CSR times dense; a native kernel on CPU and GPU.

    Args:
      values: ``[slots]`` floating.
      indices: ``[slots]`` int32 columns.
      indptr: ``[rows + 1]`` int32 row pointers.
      dense: ``[columns, k]`` floating.

    Returns:
      ``[rows, k]``.

    Example:
      >>> rows_product(jnp.array([2.0]), jnp.array([1]), jnp.array([0, 1]), jnp.array([[1.0], [3.0]])).tolist()
      [[6.0]]
    """
    def product(part: jax.Array) -> jax.Array:
        with jax.default_matmul_precision(EVALUATION):
            return jsparse.BCSR((values, indices, indptr), shape=(indptr.shape[0] - 1, dense.shape[0])) @ part

    return in_blocks(product, dense)


def in_blocks(function: Callable[[jax.Array], jax.Array], dense: jax.Array) -> jax.Array:
    """A function that takes every column for itself, of a wide matrix a block of columns at a time on a CPU.

    Args:
      function: from ``[rows, n]`` to ``[other rows, n]`` of the same type.
      dense: ``[rows, k]`` floating.

    Returns:
      ``[other rows, k]``, the same numbers as ``function(dense)``.

    Example:
      >>> in_blocks(lambda part: 2 * part, jnp.ones((1, 2))).tolist()
      [[2.0, 2.0]]
    """

    def blocked(whole: jax.Array) -> jax.Array:
        def put(found: jax.Array, start, part: jax.Array) -> jax.Array:
            return jax.lax.dynamic_update_slice_in_dim(found, function(part), start, 1)

        shape = jax.eval_shape(function, whole)
        return _over_blocks(put, jnp.zeros(shape.shape, shape.dtype), whole)

    return _on_cpu(blocked, function, dense)


def sampled(indices: jax.Array, indptr: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """``sum_k left[row, k] right[column, k]`` at every slot ``(row, column)`` of a CSR pattern.

    Args:
      indices: ``[slots]`` int32 columns.
      indptr: ``[rows + 1]`` int32 row pointers; slots past the last are padding.
      left: ``[rows, k]`` floating.
      right: ``[columns, k]`` floating.

    Returns:
      ``[slots]``; 0 at padding.

    Example:
      >>> sampled(jnp.array([1, 0]), jnp.array([0, 1]), jnp.array([[2.0]]), jnp.array([[1.0], [3.0]])).tolist()
      [6.0, 0.0]
    """
    slots = indices.shape[0]
    row = jnp.minimum(jnp.searchsorted(indptr, jnp.arange(slots, dtype=jnp.int32), side="right") - 1, left.shape[0] - 1)

    def products(one: jax.Array, other: jax.Array) -> jax.Array:
        blocks = min(-(-slots * max(one.shape[1], 1) // _SAMPLED_NUMBERS), slots)
        size = -(-slots // blocks)

        def some(start):
            where = jnp.minimum(start + jnp.arange(size), slots - 1)
            return jnp.sum(one[row[where]] * other[indices[where]], axis=-1)

        return jax.lax.map(some, jnp.arange(blocks) * size).reshape(-1)[:slots]

    def blocked(one: jax.Array, other: jax.Array) -> jax.Array:
        def add(found: jax.Array, start, *parts: jax.Array) -> jax.Array:
            return found + products(*parts)

        return _over_blocks(add, jnp.zeros(slots, jnp.result_type(one, other)), one, other)

    return jnp.where(jnp.arange(slots) < indptr[-1], _on_cpu(blocked, products, left, right), 0)


def _on_cpu(blocked: Callable, whole: Callable, *dense: jax.Array) -> jax.Array:
    if dense[0].shape[1] < _WIDE:
        return whole(*dense)
    return jax.lax.platform_dependent(*dense, cpu=blocked, default=whole)


def _over_blocks(step: Callable, found: jax.Array, *dense: jax.Array) -> jax.Array:
    """``step(found, start, *blocks)`` for every block of columns; the last may be narrower."""
    columns = dense[0].shape[1]
    whole = columns // _BLOCK

    def one(number, found):
        start = number * _BLOCK
        return step(found, start, *(jax.lax.dynamic_slice_in_dim(part, start, _BLOCK, 1) for part in dense))

    found = jax.lax.fori_loop(0, whole, one, found)
    rest = whole * _BLOCK
    return found if rest == columns else step(found, rest, *(part[:, rest:] for part in dense))
