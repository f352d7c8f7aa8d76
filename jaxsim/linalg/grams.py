"""Dense matrices of sparse documents: products of their columns with one another."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.sparse import Terms, host
from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.precision import EVALUATION

_BLOCK = 1024
_LONG = 5  # a row with more than one slot in so many is multiplied as a dense one


def gram(documents: Terms, others: Terms | None = None) -> jax.Array:
    """The dense matrix ``Fᵀ F``, or ``Fᵀ G``: products of sparse rows with their mates, long rows as dense ones.

    Args:
      documents: `Terms`, ``[num_docs, num_terms]``.
      others: as many documents, ``[num_docs, other_terms]``; the same unless given.

    Returns:
      ``[num_terms, other_terms]``; 4 bytes an entry in float32 (1.6 GB at 20,000 terms).

    Raises:
      ValueError: if the others are not as many.

    Example:
      >>> import scipy.sparse
      >>> gram(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]]))).tolist()
      [[1.0, 2.0], [2.0, 4.0]]
    """
    rows = sparse.to_scipy(documents)
    mates = rows if others is None else sparse.to_scipy(others)
    checks.expect(rows.shape[0] == mates.shape[0], "others", f"{rows.shape[0]} documents", mates.shape[0])
    long = _are_long(rows) | _are_long(mates)
    total = jax.device_put(_of_short(rows[~long], mates[~long]))
    rows, mates = rows[long], mates[long]
    for start in range(0, rows.shape[0], _BLOCK):
        block = rows[start : start + _BLOCK].toarray()
        total = _with(total, block, block if others is None else mates[start : start + _BLOCK].toarray())
    return total


def operations(documents: Terms, others: Terms | None = None) -> float:
    """Operations of `gram`: two for every pair of slots of a row and its mate.

    Args:
      documents: as for `gram`.
      others: as there.

    Returns:
      Their number; a long row takes less time than it says.

    Example:
      >>> import scipy.sparse
      >>> operations(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]])))
      8.0
    """
    slots = np.diff(np.asarray(documents.indptr)).astype(np.float64)
    mates = slots if others is None else np.diff(np.asarray(others.indptr))
    return 2.0 * float(np.sum(slots * mates))


def operations_across(documents: Terms) -> float:
    """Operations of ``F Fᵀ``, the `gram` of the transposed documents.

    Args:
      documents: as for `gram`.

    Returns:
      Their number, two for every pair of slots of a column.

    Example:
      >>> import scipy.sparse
      >>> operations_across(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]])))
      4.0
    """
    along = np.bincount(sparse.to_scipy(documents).indices).astype(np.float64)
    return 2.0 * float(np.sum(along**2))


def _are_long(rows: scipy.sparse.csr_matrix) -> np.ndarray:
    return _LONG * np.diff(rows.indptr.astype(np.int64)) > rows.shape[1]


def _of_short(rows: scipy.sparse.csr_matrix, mates: scipy.sparse.csr_matrix) -> np.ndarray:
    """The matrix of rows with few slots, by a compiled loop, or by SciPy without numba: to the same bits."""
    across = rows.T.tocsr()
    out = host.empty((rows.shape[1], mates.shape[1]), rows.dtype)
    kernel = host.imported("jaxsim.linalg.grams_kernel")
    if kernel is None:
        for start in range(0, len(out), _BLOCK):
            (across[start : start + _BLOCK] @ mates).toarray(out=out[start : start + _BLOCK])
        return out
    given = across.indptr, across.indices, across.data, mates.indptr, mates.indices, mates.data, out
    each = 1 + mates.nnz // max(1, mates.shape[0])
    host.in_parts(lambda first, last: kernel.lines(*given, first, last), across.indptr, each)
    return out


@seldom(donate_argnums=0)
def _with(total, block, mates):
    return total + jnp.matmul(block.T, mates, precision=EVALUATION)
