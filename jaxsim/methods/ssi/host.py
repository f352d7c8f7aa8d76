"""Steps of `low_rank` on the host: a loop that reads and writes the rows a triple has, and nothing of the padding.

XLA's gather and scatter on a CPU go over every padded row, and copy it. The compiled loop comes with the extra ``fast``
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
    """The module of the loop, or None where `sparse.host.compiled` is.

    Example:
      >>> compiled() is None or compiled().__name__
      'jaxsim.methods.ssi.host_kernel'
    """
    if host.compiled() is None:
        return None
    from jaxsim.methods.ssi import host_kernel

    return host_kernel


def steps(data: Documents) -> Callable | None:
    """The steps of `low_rank.objective` by plain SGD, for ``host`` of `optim.minimize_rows`.

    Args:
      data: the documents.

    Returns:
      Function of tables (``(Uᵀ, Vᵀ)``, or ``(Uᵀ,)`` where V = U; NumPy, written in place), a chunk of
      `low_rank.Example` and a learning rate, giving the losses ``[n]``. None where `compiled` is, and for numbers that
      are neither float32 nor float64.

    Example:
      >>> one, table = np.ones((1, 1), np.float32), np.ones((1, 2), np.float32)
      >>> take = steps(Documents(one.astype(int) * 0, one, one.astype(int) * 0, one, np.float32(1)))
      >>> zero = np.zeros(1, np.int32)
      >>> take is None or take((table,), ((zero, zero, zero), np.zeros(1, np.float32)), 0.5).tolist() == [1.0]
      True
    """
    kernel = compiled()
    if kernel is None or data.margin.dtype not in (np.float32, np.float64):
        return None
    query_terms, query_values, terms, values, margin = (np.asarray(part) for part in data)
    sides = query_terms, query_values, _sizes(query_values), terms, values, _sizes(values)
    margin = margin[()]

    def take(tables: tuple[np.ndarray, ...], chunk, rate) -> np.ndarray:
        triples, apart = chunk
        left, right = np.empty((2, tables[0].shape[1]), tables[0].dtype)
        losses = np.empty(len(apart), tables[0].dtype)
        kernel.low_rank(tables[0], tables[-1], *sides, tuple(map(np.asarray, triples)), np.asarray(apart), margin,
                        tables[0].dtype.type(rate), left, right, losses)
        return losses

    return take


def _sizes(values: np.ndarray) -> np.ndarray:
    """How many of a row's places are taken: those to its last value that is not 0."""
    return np.max((values != 0) * np.arange(1, values.shape[1] + 1), axis=1, initial=0)
