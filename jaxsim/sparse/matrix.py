"""What a SciPy matrix must be before it goes to the device."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks


def checked(csr, argument: str) -> scipy.sparse.csr_matrix:
    """A canonical copy (sorted, duplicates summed) of ``csr``, or ValueError."""
    checks.expect(scipy.sparse.issparse(csr), argument, "a SciPy sparse matrix", type(csr).__name__)
    checks.expect(csr.ndim == 2, argument, "two axes", f"{csr.ndim} axes")
    _expect_ids_in_range(csr, argument)
    if csr.format == "csr":
        num_docs, num_terms = csr.shape
        bad = csr.indices[(csr.indices < 0) | (csr.indices >= num_terms)]
        if bad.size:
            raise ValueError(f"{argument}.indices: expected term ids in [0, {num_terms}), got {int(bad[0])}")
        pointers = np.asarray(csr.indptr)
        slots, steps = csr.data.shape[0], np.diff(pointers)
        if pointers[0] != 0 or np.any(steps < 0) or pointers[-1] > slots:
            i = np.flatnonzero(steps < 0)[:1]
            got = f"{pointers[i[0] + 1]} after {pointers[i[0]]}" if i.size else f"{pointers[0]} to {pointers[-1]}"
            raise ValueError(f"{argument}.indptr: expected ascending row pointers from 0 to at most {slots}, got {got}")
    matrix = scipy.sparse.csr_matrix(csr, copy=True)
    if not np.issubdtype(matrix.dtype, np.floating):
        checks.expect(np.issubdtype(matrix.dtype, np.integer) or matrix.dtype == bool, argument,
                      "real numbers", matrix.dtype)
        matrix = matrix.astype(np.float32)
    elif matrix.dtype == np.float16:
        matrix = matrix.astype(np.float32)
    if matrix.dtype != np.float32:
        with np.errstate(over="ignore"):  # what overflows is refused below
            matrix = matrix.astype(jnp.result_type(float))
    matrix.sum_duplicates()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        row = int(np.searchsorted(matrix.indptr, int(np.argmin(finite)), side="right")) - 1
        raise ValueError(f"{argument}: expected finite values, got {matrix.data[np.argmin(finite)]} in document {row}")
    for number, what in zip((*matrix.shape, matrix.nnz), ("documents", "terms", "weights"), strict=True):
        checks.expect(number < 2**31 - 1, argument, f"fewer than 2**31 - 1 {what}", number)
    return matrix


def _expect_ids_in_range(csr, argument: str) -> None:
    """SciPy checks neither columns in compressed columns nor coordinates that were changed after construction."""
    if csr.format in ("csc", "bsr"):
        try:
            csr.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{argument}: expected indices within {csr.shape}, got: {error}") from None
    elif csr.format == "coo":
        for ids, size, what in zip((csr.row, csr.col), csr.shape, ("documents", "term ids"), strict=True):
            bad = ids[(ids < 0) | (ids >= size)]
            if bad.size:
                raise ValueError(f"{argument}: expected {what} in [0, {size}), got {int(bad[0])}")
