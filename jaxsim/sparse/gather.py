"""Documents as sums of a few rows at a time, for GPUs: they gather rows fast, but add up scattered ones in any order.

The slots of a document are cut into slices of one width. A slice is the sum of as many rows of the projection, each
times its value, which a GPU gathers and adds without writing them down. Where a document has several slices, those are
the rows of the next level, and so on until one is left. The transpose is stored in the same way. All sums have one
order, so the same input gives the same bits.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse.terms import Terms, expect_dense, expect_weights, project, project_transpose

WIDTH = 8
"""Rows that are added at a time."""


class Level(NamedTuple):
    """Sums of rows of the level before.

    Attributes:
      values: ``[n, width]`` floating, what a row is multiplied by.
      indices: ``[n, width]`` int32 rows; -1 for none.
    """

    values: jax.Array
    indices: jax.Array


@functools.partial(jax.tree_util.register_dataclass, data_fields=["levels", "t_levels"], meta_fields=[])
@dataclasses.dataclass(frozen=True)
class Gathered:
    """Sparse documents as sums of a few rows at a time. Build with `gathered`.

    Constants: no gradient flows into their values.

    Attributes:
      levels: from terms to documents; the last has a row for each document.
      t_levels: from documents to terms, likewise.
    """

    levels: tuple[Level, ...]
    t_levels: tuple[Level, ...]

    @property
    def num_docs(self) -> int:
        """Number of documents."""
        return self.levels[-1].indices.shape[-2]

    @property
    def num_terms(self) -> int:
        """Size of the vocabulary."""
        return self.t_levels[-1].indices.shape[-2]


def gathered(terms: Terms, *, width: int = WIDTH) -> Gathered:
    """Sparse documents, cut on the host.

    Args:
      terms: `Terms`.
      width: of a slice, at least 2.

    Returns:
      `Gathered`, the same documents.

    Raises:
      ValueError: for a width below 2.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> documents = gathered(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0, 3.0], [0.0, 2.0, 0.0]])), width=2)
      >>> sparse.project(documents, jnp.array([[1.0], [10.0], [100.0]])).tolist()
      [[301.0], [20.0]]

    Relations: `project` of both is the same, but for the order of sums.
    """
    checks.expect(width >= 2, "width", "at least 2", width)
    return jax.device_put(_on_host(terms, width))


def gathered_alike(parts: Sequence[Terms], *, width: int = WIDTH) -> tuple[Gathered, ...]:
    """Several collections in arrays of equal shapes, which can be stacked, for the devices of a mesh.

    Args:
      parts: at least one, of as many documents and terms each.
      width: as for `gathered`.

    Returns:
      As many, of NumPy arrays.

    Raises:
      ValueError: for a width below 2.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim import sparse
      >>> parts = [sparse.from_scipy(scipy.sparse.csr_matrix(row)) for row in ([[1.0, 1.0, 1.0]], [[0.0, 2.0, 0.0]])]
      >>> one, other = gathered_alike(parts, width=2)
      >>> [level.indices.shape for level in one.levels] == [level.indices.shape for level in other.levels]
      True
      >>> [float(sparse.project(part, jnp.ones((3, 1)))[0, 0]) for part in (one, other)]
      [3.0, 2.0]
    """
    checks.expect(width >= 2, "width", "at least 2", width)
    cut = [_on_host(part, width) for part in parts]
    return tuple(map(Gathered, _alike([one.levels for one in cut]), _alike([one.t_levels for one in cut])))


def _alike(chains: list[tuple[Level, ...]]) -> list[tuple[Level, ...]]:
    """Levels of several collections, as many of one shape for each."""
    depth, found = max(map(len, chains)), []
    for chain in chains:
        rows = np.arange(chain[-1].indices.shape[0], dtype=np.int32)[:, None]
        same = Level(np.ones(rows.shape, chain[0].values.dtype), rows)
        found.append(chain + (same,) * (depth - len(chain)))
    shapes = [np.max([level.indices.shape for level in levels], axis=0) for levels in zip(*found, strict=True)]
    return [tuple(_padded(level, shape) for level, shape in zip(chain, shapes, strict=True)) for chain in found]


def _padded(level: Level, shape: np.ndarray) -> Level:
    """A level with more sums, of nothing, and more rows in each, none."""
    more = [(0, int(size) - has) for size, has in zip(shape, level.indices.shape, strict=True)]
    return Level(np.pad(level.values, more), np.pad(level.indices, more, constant_values=-1))


def _on_host(terms: Terms, width: int) -> Gathered:
    """The levels of documents, as NumPy arrays."""
    values, indices, indptr, t_order, t_indices, t_indptr = (np.asarray(leaf) for leaf in (
        terms.values, terms.indices, terms.indptr, terms.t_order, terms.t_indices, terms.t_indptr))
    slots = int(indptr[-1])
    return Gathered(_levels(values[:slots], indices[:slots], indptr, width),
                    _levels(values[t_order[:slots]], t_indices[:slots], t_indptr, width))


def _levels(values: np.ndarray, indices: np.ndarray, indptr: np.ndarray, width: int) -> tuple[Level, ...]:
    """Levels of compressed rows."""
    found, counts = [], np.diff(indptr)
    while counts.max(initial=0) > width:
        slices = -(-counts // width)
        found.append(_cut(values, indices, counts, slices, width))
        total = int(slices.sum())
        values, indices, counts = np.ones(total, values.dtype), np.arange(total, dtype=np.int32), slices
    ones = np.ones_like(counts)
    return *found, _cut(values, indices, counts, ones, max(int(counts.max(initial=0)), 1))


def _cut(values: np.ndarray, indices: np.ndarray, counts: np.ndarray, slices: np.ndarray, width: int) -> Level:
    """Rows of so many slots as so many slices each."""
    place = places(counts, slices, width)
    shape = int(slices.sum()), width
    level = Level(np.zeros(shape, values.dtype), np.full(shape, -1, np.int32))
    level.values[place], level.indices[place] = values, indices
    return level


def places(counts: np.ndarray, slices: np.ndarray, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Where the slots of rows go when each row is cut into slices of one width.

    Args:
      counts: ``[rows]`` slots of each row.
      slices: ``[rows]`` slices of each row, enough for its slots.
      width: slots of a slice.

    Returns:
      ``(slice, place in it)`` of every slot, in order.

    Example:
      >>> [found.tolist() for found in places(np.array([3, 1]), np.array([2, 1]), 2)]
      [[0, 0, 1, 2], [0, 1, 0, 0]]
    """
    offset = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.repeat(np.cumsum(slices) - slices, counts) + offset // width, offset % width


@jax.jit  # as one program also where nothing around it is compiled
def _walk(levels: tuple[Level, ...], dense: jax.Array) -> jax.Array:
    for values, indices in levels:
        total = jnp.zeros((indices.shape[0], dense.shape[1]), dense.dtype)
        for slot in range(indices.shape[1]):
            row = indices[:, slot]
            part = dense.at[jnp.maximum(row, 0)].get(mode="promise_in_bounds")
            total += jnp.where(row[:, None] >= 0, values[:, slot, None] * part, 0)
        dense = total
    return dense


@jax.custom_vjp
def _summed(levels, t_levels, dense):
    return _walk(levels, dense)


def _summed_backward(saved, grad):
    levels, t_levels = saved
    return None, None, _summed(t_levels, levels, grad)


_summed.defvjp(lambda levels, t_levels, dense: (_walk(levels, dense), (levels, t_levels)), _summed_backward)


def _product(levels, t_levels, dense):
    """Of rows, as levels, and a matrix with a row for each of their columns."""
    dtype, rows = jnp.result_type(levels[0].values, dense), levels[-1].indices.shape[0]
    if 0 in (rows, dense.shape[0]):
        return jnp.zeros((rows, dense.shape[1]), dtype)
    return _summed(levels, t_levels, jnp.asarray(dense, dtype))


@project.register(Gathered)
def _(documents, weights):
    expect_weights(weights, documents.num_terms)
    return _product(documents.levels, documents.t_levels, weights)


@project_transpose.register(Gathered)
def _(documents, dense):
    expect_dense(dense, documents.num_docs)
    return _product(documents.t_levels, documents.levels, dense)
