"""Documents times a dense matrix on the host: the loop in which encoding spends its time.

A compiled loop that holds a document's sums in registers is faster on a CPU than XLA's product of compressed rows, and
has no program to compile for a batch of another size. It comes with the extra ``fast`` (numba); without it, or on an
accelerator, `sparse.project` does the same.
"""

from __future__ import annotations

import functools
import importlib
import os
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import jax
import numpy as np
import scipy.sparse

from jaxsim import checks

_WORK = 2_000_000
"""Products a thread: of less, starting it costs what it saves."""


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
    out = np.empty((len(starts) - 1, dense.shape[1]), np.float64 if dense.dtype == np.float64 else np.float32)
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

    work = 1 + len(terms) * dense.shape[1] // _WORK
    parts = 1 if work == 1 else min(threads or _cores(), work)
    if parts == 1:
        write(0, len(out))
        return out
    # As many terms a thread: documents differ in length.
    cuts = np.searchsorted(starts, np.linspace(0, len(terms), parts + 1)[1:-1])
    edges = [0, *cuts.tolist(), len(out)]
    with ThreadPoolExecutor(parts - 1) as pool:
        others = pool.map(write, edges[1:-1], edges[2:])
        write(edges[0], edges[1])
        list(others)
    return out


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
