"""Steps of SSI on the host: loops that read and write the weights a triple has, and nothing of the padding.

XLA's gather and scatter on a CPU go over every padded row, and copy it. The compiled loops come with the extra ``fast``
(numba). Without it, or on an accelerator, `optim.minimize_rows` takes the same steps by a scan; the results differ by
rounding.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import ModuleType

import numpy as np

from jaxsim.methods.ssi.shared import Documents
from jaxsim.sparse import host


@functools.cache
def compiled() -> ModuleType | None:
    """The module of the loops, or None where there are none, as in `sparse.host.compiled`.

    Example:
      >>> compiled() is None or compiled().__name__
      'jaxsim.methods.ssi.host_kernel'
    """
    return None if host.compiled() is None else host.imported("jaxsim.methods.ssi.host_kernel")


def steps(data: Documents) -> Callable | None:
    """The steps of `low_rank.objective`, for ``host`` of `optim.minimize_rows`.

    Args:
      data: the documents.

    Returns:
      Function of tables (``(Uᵀ, Vᵀ)``, or ``(Uᵀ,)`` where V = U; NumPy, written in place), with Adagrad their sums of
      squares too, then a chunk of `low_rank.Example` and a learning rate, giving the losses ``[n]``. None where
      `compiled` is, and for numbers that are neither float32 nor float64.

    Example:
      >>> one, table = np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)
      >>> take = steps(Documents(one.astype(int) * 0, one, one.astype(int) * 0, one, np.float32(1)))
      >>> zero = np.zeros(1, np.int32)
      >>> take is None or take((table,), ((zero, zero, zero), np.zeros(1, np.float32)), 0.5).tolist() == [1.0]
      True
    """
    if not _takes(data):
        return None
    sides, margin = _arrays(data)

    def take(tables: tuple[np.ndarray, ...], *rest) -> np.ndarray:
        *sums, (triples, apart), rate = rest
        left, right = np.empty((2, tables[0].shape[1]), tables[0].dtype)
        losses = np.empty(len(apart), tables[0].dtype)
        loop = compiled().low_rank_adagrad if sums else compiled().low_rank
        both = (table for tables in (tables, *sums) for table in (tables[0], tables[-1]))
        loop(*both, *sides, tuple(map(np.asarray, triples)), np.asarray(apart), margin, losses.dtype.type(rate), left,
             right, losses)  # fmt: skip
        return losses

    return take


def hashed_steps(data: Documents, first: np.ndarray, size: int) -> Callable | None:
    """The steps of `hashed.objective` by plain SGD, for ``host`` of `optim.minimize_rows`.

    Args:
      data: the documents.
      first: ``[num_terms]`` int32, where the weights of each word of a query begin, as `hashed.first_of` gives them.
      size: number of weights, H.

    Returns:
      Function of the weights ``[H]`` (NumPy, written in place), a chunk of `triples.Triples` and a learning rate,
      giving the losses ``[n]``. None where `steps` gives None.

    Example:
      >>> one, weights = np.ones((1, 1), np.float32), np.zeros(3, np.float32)
      >>> query, terms = one.astype(int) * 0, np.array([[1], [2]])
      >>> take = hashed_steps(Documents(query, one, terms, terms / np.float32([[1], [2]]), np.float32(1)),
      ...                     np.array([2], np.int32), 3)
      >>> zero = np.zeros(1, np.int32)
      >>> take is None or (take(weights, (zero, zero, zero + 1), 0.5).tolist(), weights.tolist()) == (
      ...     [1.0], [0.5, -0.5, 0.0])
      True
    """
    if not _takes(data):
        return None
    (*of_queries, terms, values, sizes), margin = _arrays(data)
    sides = *of_queries, terms % size, values, sizes
    first = np.asarray(first)

    def take(weights: np.ndarray, chunk, rate) -> np.ndarray:
        losses = np.empty(len(chunk[0]), weights.dtype)
        triples = tuple(map(np.asarray, chunk))
        compiled().hashed(weights, first, *sides, triples, margin, weights.dtype.type(rate), losses)
        return losses

    return take


def _takes(data: Documents) -> bool:
    """Whether there are loops for documents of this type."""
    return compiled() is not None and data.margin.dtype in (np.float32, np.float64)


def _arrays(data: Documents) -> tuple[tuple[np.ndarray, ...], np.number]:
    """Terms, values and sizes of both sides, and the margin."""
    query_terms, query_values, terms, values, margin = (np.asarray(part) for part in data)
    return (query_terms, query_values, _sizes(query_values), terms, values, _sizes(values)), margin[()]


def _sizes(values: np.ndarray) -> np.ndarray:
    """How many of a row's places are taken: those to its last value that is not 0."""
    return np.max((values != 0) * np.arange(1, values.shape[1] + 1), axis=1, initial=0)
