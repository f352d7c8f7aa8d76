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


def vary_as(cotangent: jax.Array, primal: jax.Array) -> jax.Array:
    """A gradient of what every device of a `jax.shard_map` has alike, summed over the devices; others as they are.

    Args:
      cotangent: any array, as a rule of differentiation of our own has it.
      primal: what it is the gradient in.

    Returns:
      ``cotangent``, or its sum over the axes of the mesh along which it varies and ``primal`` does not.

    Example:
      >>> vary_as(jnp.ones(2), jnp.zeros(2)).tolist()
      [1.0, 1.0]
    """
    axes = tuple(_varies(cotangent) - _varies(primal))
    cotangent = jax.lax.psum(cotangent, axes) if axes else cotangent
    return vary_with(cotangent, primal)


def vary_with(result: jax.Array, *given: jax.Array) -> jax.Array:
    """What a native kernel made inside a `jax.shard_map`, told to vary as what it was made from: it tells JAX nothing.

    Args:
      result: any array.
      *given: those that it was made from.

    Returns:
      ``result``.

    Example:
      >>> vary_with(jnp.ones(()), jnp.ones(2)).item()
      1.0
    """
    return vary_together(result, *given)[0]


def vary_together(*arrays: jax.Array) -> tuple[jax.Array, ...]:
    """Arrays inside a `jax.shard_map` as if each varied along every axis along which one of them does.

    Args:
      *arrays: any.

    Returns:
      The same arrays.

    Example:
      >>> vary_together(jnp.ones(()))[0].item()
      1.0
    """
    axes = frozenset().union(*map(_varies, arrays))
    return tuple(_varying(array, tuple(axes - _varies(array))) for array in arrays)


def _varying(array: jax.Array, axes: tuple) -> jax.Array:
    """The same array, said to vary along some axes; by an older name where JAX has no other."""
    if not axes:
        return array
    return jax.lax.pcast(array, axes, to="varying") if hasattr(jax.lax, "pcast") else jax.lax.pvary(array, axes)


def _varies(array: jax.Array) -> frozenset:
    """Axes of the mesh of a `jax.shard_map` along which an array varies, by either name in JAX; old versions: none."""
    if not hasattr(jax, "typeof"):
        return frozenset()
    kept = jax.typeof(array)
    manual = getattr(kept, "manual_axis_type", None)
    return getattr(kept, "vma", frozenset()) if manual is None else manual.varying


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
