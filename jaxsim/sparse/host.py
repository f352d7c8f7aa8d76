"""Documents times a dense matrix on the host: the loop in which encoding spends its time.

A compiled loop that holds a document's sums in registers is faster on a CPU than XLA's product of compressed rows, and
has no program to compile for a batch of another size. It comes with the extra ``fast`` (numba); without it, or on an
accelerator, `sparse.project` does the same.
"""

from __future__ import annotations

import functools
import importlib
import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import jax
import numpy as np
import scipy.sparse

from jaxsim import checks

_WORK = 2_000_000
"""Products a thread: of less, starting it costs what it saves."""
_PLACE = 64


@functools.cache
def compiled() -> ModuleType | None:
    """The module of the loop, or None where there is none.

    That is without numba, on an accelerator, and where numba has no place for what it compiles (an installation that
    cannot be written to, and a user without a home; ``NUMBA_CACHE_DIR`` names another place).

    Example:
      >>> compiled() is None or compiled().__name__
      'jaxsim.sparse.host_kernel'
    """
    return None if jax.default_backend() != "cpu" else imported("jaxsim.sparse.host_kernel")


def imported(name: str) -> ModuleType | None:
    """A module of compiled loops, or None without numba or a place for what it compiles.

    Example:
      >>> imported("jaxsim.sparse.no_such_kernel") is None
      True
    """
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError):  # RuntimeError: "cannot cache function"
        return None


def rows_product(rows: scipy.sparse.csr_matrix, dense: np.ndarray, *, threads: int | None = None) -> np.ndarray:
    """``F A`` on the host.

    Args:
      rows: ``[n, num_terms]`` SciPy CSR.
      dense: ``[num_terms, k]`` float32, float64, float16 or int8; the fewer bytes, the faster.
      threads: at most; as many as this process has cores unless given. They change no bit.

    Returns:
      ``[n, k]`` of the type of ``dense``; float32 of halves and of integers.

    Raises:
      ValueError: if ``dense`` is not ``[num_terms, k]``, or `compiled` is None.

    Example:
      >>> rows = scipy.sparse.csr_matrix([[1.0, 2.0], [0.0, 0.0]])
      >>> compiled() is None or rows_product(rows, np.array([[1.0], [10.0]])).tolist() == [[21.0], [0.0]]
      True
    """
    checks.expect(dense.ndim == 2 and len(dense) == rows.shape[1], "dense", f"shape ({rows.shape[1]}, k)", dense.shape)
    checks.expect(compiled() is not None, "rows_product", "numba (pip install 'jaxsim-text[fast]') and a CPU",
                  "neither")
    return product(rows.indptr, rows.indices, rows.data, dense, threads=threads)


def product(starts: np.ndarray, terms: np.ndarray, values: np.ndarray, dense: np.ndarray, *,
            threads: int | None = None) -> np.ndarray:
    """`rows_product` of the parts of compressed rows, which are not looked at.

    Args:
      starts: ``[n + 1]``, where each row begins.
      terms: ``[nnz]``, numbers of rows of ``dense``.
      values: ``[nnz]`` weights.
      dense: as there.
      threads: as there.

    Returns:
      As there.
    """
    kernel = compiled()
    out = empty((len(starts) - 1, dense.shape[1]), np.float64 if dense.dtype == np.float64 else np.float32)
    sums = kernel.sums(dense.shape[1], out.itemsize)
    if not sums or not kernel.reads(dense.dtype.name):
        dense = dense.astype(out.dtype, copy=False)
    if dense.dtype == np.float16:
        dense = dense.view(np.uint16)  # numba has no type of halves
    given = starts, terms, values.astype(out.dtype, copy=False), np.ascontiguousarray(dense), out

    def write(first: int, last: int) -> None:
        if sums:
            kernel.wide_product(*given, first, last, sums)
        else:
            kernel.narrow_product(*given, first, last)

    in_parts(write, starts, dense.shape[1], threads=threads)
    return out


def empty(shape: tuple[int, ...], dtype) -> np.ndarray:
    """An array that JAX takes as it is, without a copy: it asks for places that are multiples of 64 bytes.

    Args:
      shape: of the array.
      dtype: of its numbers.

    Returns:
      It, with any numbers.

    Example:
      >>> empty((2, 3), np.float32).ctypes.data % 64
      0
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    whole = np.empty(size + _PLACE, np.uint8)
    first = -whole.ctypes.data % _PLACE
    return whole[first : first + size].view(dtype).reshape(shape)


def in_parts(write: Callable[[int, int], None], starts: np.ndarray, each: int, *, threads: int | None = None) -> None:
    """Has several threads work on compressed rows, each on as many entries; where there are few, one alone.

    Args:
      write: function of the first row and the one after the last, which works on those between them without the GIL.
      starts: ``[n + 1]``, where each row begins.
      each: products an entry.
      threads: at most; as many as this process has cores unless given.

    Example:
      >>> in_parts(lambda first, last: print(first, last), np.array([0, 3, 4]), 100)
      0 2
    """
    number = int(starts[-1])
    work = 1 + number * each // _WORK
    parts = 1 if work == 1 else min(threads or _cores(), work)
    if parts == 1:
        write(0, len(starts) - 1)
        return
    cuts = np.searchsorted(starts, np.linspace(0, number, parts + 1)[1:-1])  # documents differ in length
    edges = [0, *cuts.tolist(), len(starts) - 1]
    with ThreadPoolExecutor(parts - 1) as pool:
        others = pool.map(write, edges[1:-1], edges[2:])
        write(edges[0], edges[1])
        list(others)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
