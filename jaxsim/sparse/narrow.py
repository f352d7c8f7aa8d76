"""Weights of fewer bits: float16, or int8 with a scale for every row, and their product with documents.

Sums are float32 in either case. The product is the compiled loop's (`host`) where there is one, else SciPy's, on those
rows that a batch uses.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.sparse import host

KINDS = ("float16", "int8")
"""Types of weights that take fewer bytes than float32."""
_MOST = 127


@dataclass(frozen=True, eq=False)
class ScaledRows:
    """A matrix of whole numbers from -127 to 127 and one factor a row.

    NumPy and JAX take it for the float32 matrix that it stands for, which they make anew each time; `rows_product` does
    not make it.

    Attributes:
      values: ``[n, k]`` int8.
      scale: ``[n]`` float32, at least 0.

    Example:
      >>> np.asarray(ScaledRows(np.array([[127, -1]], np.int8), np.array([2.0], np.float32))).tolist()
      [[254.0, -2.0]]
    """

    values: np.ndarray
    scale: np.ndarray

    def __post_init__(self):
        """Checks types, shapes and scales."""
        checks.array(self.values, "values", "int8", (None, None))
        checks.array(self.scale, "scale", "float32", (len(self.values),))
        checks.expect(bool(np.all(self.scale >= 0)), "scale", "numbers of at least 0", "others")

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.values.shape

    @property
    def ndim(self) -> int:
        """2."""
        return 2

    @property
    def size(self) -> int:
        """Number of weights."""
        return self.values.size

    @property
    def dtype(self) -> np.dtype:
        """Float32, the type of what it stands for."""
        return np.dtype(np.float32)

    @property
    def nbytes(self) -> int:
        """Bytes of values and scales."""
        return self.values.nbytes + self.scale.nbytes

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.values)

    def __getitem__(self, rows) -> ScaledRows:
        """Some rows, by an array of numbers, a mask or a slice."""
        return ScaledRows(self.values[rows], self.scale[rows])

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        """What it stands for, for NumPy."""
        return np.asarray(self.values * self.scale[:, None], dtype)

    def __jax_array__(self):
        """What it stands for, for JAX."""
        import jax.numpy as jnp

        return jnp.asarray(np.asarray(self))


def narrowed(weights, kind: str) -> np.ndarray | ScaledRows:
    """Weights in fewer bytes, each rounded to the nearest.

    Args:
      weights: ``[n, k]`` floating, or `ScaledRows`.
      kind: ``"float16"``; or ``"int8"``, 127 steps either way to the largest weight of the row.

    Returns:
      A float16 array or `ScaledRows`.

    Raises:
      ValueError: for another kind, weights that are not finite, and for float16 a weight above 65,504.

    Example:
      >>> narrowed(np.array([[1.0, 0.1]], np.float32), "float16").tolist()
      [[1.0, 0.0999755859375]]
      >>> narrowed(np.array([[1.0, 0.1]], np.float32), "int8").values.tolist()
      [[127, 13]]
    """
    checks.expect(kind in KINDS, "weights", f"one of {', '.join(KINDS)}", kind)
    wide = np.asarray(weights)
    checks.expect(wide.ndim == 2, "weights", "a matrix", f"{wide.ndim} axes")
    checks.expect(bool(np.isfinite(wide).all()), "weights", "finite numbers", "NaN or infinity")
    largest = np.abs(wide).max(axis=1, initial=0)
    if kind == "float16":
        most = float(np.finfo(np.float16).max)
        checks.expect(float(largest.max(initial=0)) <= most, "weights", f"numbers of at most {most:,.0f}, for float16",
                      largest.max(initial=0))
        return wide.astype(np.float16)
    scale = (largest / _MOST).astype(np.float32)
    # A row of nothing but denormal numbers has no scale: all of it becomes 0.
    ratio = np.divide(wide, scale[:, None], out=np.zeros_like(wide), where=scale[:, None] > 0)
    return ScaledRows(np.rint(np.clip(ratio, -_MOST, _MOST)).astype(np.int8), scale)


def is_narrow(weights) -> bool:
    """Whether weights are of a kind that `rows_product` takes.

    Args:
      weights: an array of NumPy or JAX, or `ScaledRows`.

    Returns:
      True for float16 and `ScaledRows`.

    Example:
      >>> is_narrow(np.ones((1, 1), np.float16)), is_narrow(np.ones((1, 1), np.float32))
      (True, False)
    """
    return isinstance(weights, ScaledRows) or weights.dtype == np.float16


def full(weights) -> np.ndarray:
    """Weights of any kind as an array that one can calculate with.

    Args:
      weights: an array of NumPy or JAX, or `ScaledRows`.

    Returns:
      ``[n, k]``: float32 for what is narrow, else of the type that they have.

    Example:
      >>> full(np.ones((1, 1), np.float16)).dtype.name, full(np.ones((1, 1), np.float64)).dtype.name
      ('float32', 'float64')
    """
    return np.asarray(weights, np.float32 if is_narrow(weights) else None)


def rows_product(rows: scipy.sparse.csr_matrix, weights, *, threads: int | None = None) -> np.ndarray:
    """``F A`` on the host, of narrow weights.

    Args:
      rows: ``[n, num_terms]`` SciPy CSR.
      weights: ``[num_terms, k]``, float16 or `ScaledRows`.
      threads: at most; as many as this process has cores unless given. They change no bit.

    Returns:
      ``[n, k]`` float32.

    Raises:
      ValueError: if ``weights`` is not ``[num_terms, k]``, or not narrow.

    Example:
      >>> rows_product(scipy.sparse.csr_matrix([[1.0, 2.0]]), narrowed(np.array([[1.0], [10.0]]), "int8")).tolist()
      [[21.0]]
    """
    checks.expect(is_narrow(weights), "weights", f"{' or '.join(KINDS)}", weights.dtype)
    fits = len(weights.shape) == 2 and weights.shape[0] == rows.shape[1]
    checks.expect(fits, "weights", f"shape ({rows.shape[1]}, k)", weights.shape)
    scaled = isinstance(weights, ScaledRows)
    values = rows.data.astype(np.float32, copy=False)
    if scaled:
        values = values * weights.scale[rows.indices]
    narrow = weights.values if scaled else np.asarray(weights)
    if host.compiled() is not None:
        return host.product(rows.indptr, rows.indices, values, narrow, threads=threads)
    used, columns = np.unique(rows.indices, return_inverse=True)
    few = scipy.sparse.csr_matrix((values, columns, rows.indptr), shape=(rows.shape[0], len(used)))
    return few @ narrow[used].astype(np.float32)
