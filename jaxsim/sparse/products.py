"""Products of compressed sparse rows with wide dense matrices, a block of columns at a time on a CPU.

A row of the dense matrix is fetched for every slot that refers to it. All rows of a wide matrix together exceed the
processor's caches. Their parts in a block of columns do not, so each is read from memory about once. Only in `sampled`
do blocks change the order of a sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
from jax.experimental import sparse as jsparse

from jaxsim.sparse.precision import EVALUATION

_BLOCK = 128
_MOST_BLOCKS = 32  # each is a program of its own: the cores share what is not in a loop
_WIDE = 768  # columns from which on blocks are taken; of few, copying them costs what they save
_REUSED = 16  # slots a row of the wide matrix from which on blocks are taken: copying all of it has to pay
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

    few = indices.shape[0] < _REUSED * dense.shape[0]
    return product(dense) if few else in_blocks(product, dense)


mapped_rows_product = jax.custom_batching.custom_vmap(rows_product)
"""`rows_product` whose ``vmap`` over dense matrices, of several fits of one collection, walks over the rows once."""


@mapped_rows_product.def_vmap
def _mapped(size, in_batched, values, indices, indptr, dense):
    if in_batched == [False, False, False, True]:
        wide = jnp.moveaxis(dense, 0, 1).reshape(dense.shape[1], -1)
        product = mapped_rows_product(values, indices, indptr, wide)
        return jnp.moveaxis(product.reshape(product.shape[0], size, -1), 1, 0), True
    # Other documents for each: one after the other, since a batched product has no native kernel.
    given = values, indices, indptr, dense
    mapped = [array for array, batched in zip(given, in_batched, strict=True) if batched]

    def single(some):
        rest = iter(some)
        arrays = (next(rest) if batched else array for array, batched in zip(given, in_batched, strict=True))
        return mapped_rows_product(*arrays)

    return jax.lax.map(single, mapped), True


def in_blocks(function: Callable[[jax.Array], jax.Array], dense: jax.Array) -> jax.Array:
    """Applies a function that treats columns independently; on a CPU, to a block of columns of a wide matrix at a time.

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
        return jnp.concatenate([function(part) for (part,) in _blocks(whole)], axis=1)

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
        return sum(products(*parts) for parts in _blocks(one, other))

    return jnp.where(jnp.arange(slots) < indptr[-1], _on_cpu(blocked, products, left, right), 0)


def _on_cpu(blocked: Callable, whole: Callable, *dense: jax.Array) -> jax.Array:
    if dense[0].shape[1] < _WIDE:
        return whole(*dense)
    return jax.lax.platform_dependent(*dense, cpu=blocked, default=whole)


def _blocks(*dense: jax.Array) -> Iterator[tuple[jax.Array, ...]]:
    """Matrices of as many columns, a block of them at a time; the last may be narrower."""
    columns = dense[0].shape[1]
    width = _BLOCK if columns <= _BLOCK * _MOST_BLOCKS else 16 * -(-columns // (16 * _MOST_BLOCKS))  # whole registers
    for start in range(0, columns, width):
        yield tuple(part[:, start : start + width] for part in dense)
