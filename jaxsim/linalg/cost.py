"""The time to solve an eigenproblem or a linear system, estimated from operations and their measured rates.

The rates are of one core, in float32, as `python -m experiments.speed.closed_forms` prints them. Only their ratios
decide, and they are constants: a choice by the clock would make the bits of a fit depend on the machine's load.
"""

from __future__ import annotations

import math

SQUARE = 1.6e11
"""Operations a second of a product of two large matrices."""
NARROW = 0.9e11
"""The same where one of them has the 48 columns of a block."""
SPARSE = 1.5e10
"""The same of sparse documents times a block: two operations a slot and column."""
GRAM = 1e9
"""The same of sparse documents times one another, into a dense matrix."""
BLOCKED = 1.7
"""Time a column of a block takes over one of all columns at once, in passes over sparse documents."""
SOLVE = 3.8
"""Time of the two triangular solves of a block of 48 columns over that of as many operations in a product."""
_TRIDIAGONAL, _BACK = 5e-11, 8e-11  # seconds of LAPACK's eigenproblem: times n³, and n² k
_ORTHOGONAL, _EIGH = 2, 8e-11  # passes over the basis; seconds of all eigenpairs of a small matrix, times m³
# A basis for k vectors is filled 1 + _FLAT / k times until the last are solutions: it holds fewer powers for few. Below
# _FEW it is larger than they need (`eigen.basis_shape` has 160 columns at least): up to 20 were found in one filling.
_FLAT, _FEW = 200, 50
_START = 100  # columns that a product with a block takes as long as, whatever its width
_FRESH = 0.37  # share of the basis that is new after the first filling
_MOST_BYTES = 8e9


def sparse(slots: int) -> float:
    """Operations of a dense product that take as long as one pass over sparse documents, a column.

    Args:
      slots: entries of the documents.

    Returns:
      Operations.

    Example:
      >>> sparse(1_000) > 2_000
      True
    """
    return 2.0 * slots * NARROW / SPARSE


def dense_seconds(dim: int, k: int, work: float, made: float | None = None) -> float:
    """Making a matrix, and its ``k`` leading eigenvectors by LAPACK.

    Args:
      dim: size of the matrix.
      k: number of eigenpairs.
      work: operations of the operator a column.
      made: operations of sparse rows with one another that make the matrix; unless given it is made by the operator, of
        the unit matrix.

    Returns:
      Seconds; infinite where the matrices exceed memory.

    Example:
      >>> dense_seconds(2_000, 300, 1e6) < dense_seconds(4_000, 300, 1e6)
      True
    """
    if 4 * 4.0 * dim**2 > _MOST_BYTES:
        return math.inf
    whitened = (1 / 3 + 2) * dim**3 / SQUARE
    making = dim * work / NARROW if made is None else made / GRAM
    return making + whitened + _TRIDIAGONAL * dim**3 + _BACK * dim**2 * k


def iterated_seconds(dim: int, k: int, shape: tuple[int, int], work: float) -> float:
    """A block Krylov basis, filled and started again until the last vectors are solutions.

    Args:
      dim: size of the operator.
      k: number of eigenpairs.
      shape: columns a block and number of blocks.
      work: operations of the operator a column, with its solve.

    Returns:
      Seconds.

    Example:
      >>> iterated_seconds(100_000, 300, (48, 20), 1e7) < dense_seconds(20_000, 300, 1e7)
      True
    """
    m = shape[0] * shape[1]
    columns = (1 + _FLAT / max(k, _FEW**3 / k**2)) * m
    orthogonal = _ORTHOGONAL * 4.0 * dim * columns * 0.75 * m / NARROW
    ritz = (1 + (columns / m - 1) / _FRESH) * (6.0 * dim * m**2 / SQUARE + _EIGH * m**3)
    narrower = (1 + _START / shape[0]) / (1 + _START / 48)
    return narrower * (BLOCKED * columns * work / NARROW + orthogonal) + ritz


def cheapest(dim: int, k: int, shape: tuple[int, int], work: float, solve: float = 0.0, made: float | None = None
             ) -> str:
    """The faster way to ``k`` leading eigenvectors.

    Args:
      dim: size of the operator.
      k: number of eigenpairs.
      shape: of the Krylov basis.
      work: operations of the operator a column.
      solve: those of a solve, which only an iteration needs.
      made: as for `dense_seconds`.

    Returns:
      ``"dense"`` or ``"iterated"``.

    Example:
      >>> cheapest(1_000, 300, (48, 20), 1e6), cheapest(50_000, 300, (48, 20), 1e6)
      ('dense', 'iterated')
    """
    dense, iterated = dense_seconds(dim, k, work, made), iterated_seconds(dim, k, shape, work + solve)
    return "dense" if dense <= iterated else "iterated"


def factor_seconds(size: int, made: float, columns: int) -> float:
    """A Cholesky factor and the solves of some columns by it.

    Args:
      size: rows of the factor.
      made: operations of sparse rows with one another that make the matrix.
      columns: right sides, in blocks.

    Returns:
      Seconds; infinite where the factor exceeds memory.

    Example:
      >>> factor_seconds(20_000, 1e9, 3_000) > factor_seconds(5_000, 1e9, 3_000)
      True
    """
    if 3 * 4.0 * size**2 > _MOST_BYTES:
        return math.inf
    return made / GRAM + size**3 / 3 / SQUARE + columns * SOLVE * 2.0 * size**2 / NARROW


def conjugate_gradients_steps(largest: float, ridge: float, tolerance: float) -> float:
    """Steps to a residual, from the ratio of the largest and the smallest eigenvalue.

    Args:
      largest: eigenvalue.
      ridge: the smallest.
      tolerance: relative residual.

    Returns:
      An estimate; half the usual bound, since most eigenvalues of a covariance lie near the smallest.

    Example:
      >>> round(conjugate_gradients_steps(100.0, 1.0, 1e-4))
      25
    """
    return 0.25 * math.sqrt(1 + largest / ridge) * math.log(2 / tolerance)
