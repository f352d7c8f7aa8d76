"""Covariances of sparse documents as operators: products and solves without a centred or a dense document.

A covariance ``C = Fᵀ F`` of ``n`` documents over ``V`` terms has rank ``n`` at most. `Ridge` solves with ``C + γ I``
by one Cholesky factor of the smaller of a ``V x V`` and an ``n x n`` matrix; the latter by the identity of Woodbury,
``(γ I + Fᵀ F)⁻¹ = (I - Fᵀ (γ I + F Fᵀ)⁻¹ F) / γ``. Where both are too large to be factorised, it solves by conjugate
gradients, which need products alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.linalg import cost, eigen, grams
from jaxsim.sparse import Held, Terms


# Jitted, because every operation outside jit is a program to compile of its own.
@jax.jit
def _down(documents: Held, spread: Held | None, mean, scale, x):
    made = x if spread is None else sparse.project(spread, x)
    return scale * (sparse.project(documents, made) - mean.T @ x)


@jax.jit
def _up(documents: Held, spread: Held | None, mean, scale, y):
    total, found = jnp.sum(y, axis=0, keepdims=True), sparse.project_transpose(documents, y)
    found = found if spread is None else sparse.project_transpose(spread, found)
    return scale * (found - mean * total)


ROUGH = 1e-4
"""Tolerance of an iterated solve that only spans a space, in which exact operators are then looked at."""

_LARGEST = 24_000  # rows of a factor, 2.3 GB in float32
_STEPS = 1_000  # of conjugate gradients, at most
_GUESS = 30  # steps, where nobody has estimated them
_POWER = 6


class Factor:
    """Rows ``F = s (D - 1 μᵀ)`` of which a covariance is made, or of ``D M`` in place of ``D``.

    Attributes:
      num_docs: ``n``.
      num_terms: ``V``.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0], [3.0]]))
      >>> Factor(documents, centred=True, scale=1.0).covariance(jnp.ones((1, 1))).tolist()
      [[2.0]]
    """

    def __init__(self, documents: Terms, *, centred: bool, scale: float, spread: Terms | None = None):
        """Takes documents ``D`` of any weighting; ``μ`` is their mean if ``centred``, else 0.

        With ``spread``, rows of ``M``, documents are those of ``D M``, and products are taken one after the other: they
        read the slots of both, which may be much fewer than those of ``D M``.
        """
        # A NumPy scalar would turn float32 into float64 where 64-bit types are on.
        self.documents, self.scale, self.spread = documents, float(scale), spread
        self.num_docs, self.num_terms = documents.num_docs, (documents if spread is None else spread).num_terms
        if centred:
            mean = eigen.means(documents)[:, None]
            mean = mean if spread is None else sparse.project_transpose(spread, mean)
            self.mean = mean.astype(documents.values.dtype)
        else:
            self.mean = jax.device_put(np.zeros((self.num_terms, 1), documents.values.dtype))

    @functools.cached_property
    def multiplied(self) -> tuple[Held, Held | None]:
        """``D`` and ``M`` as products are taken of them."""
        return sparse.held(self.documents, self.spread)

    @functools.cached_property
    def made(self) -> Terms:
        """The documents ``D``, or ``D M``."""
        if self.spread is None:
            return self.documents
        return sparse.from_scipy((sparse.to_scipy(self.documents) @ sparse.to_scipy(self.spread)).tocsr())

    @property
    def dual_is_cheaper(self) -> bool:
        """Whether to factorise ``F Fᵀ`` and not ``Fᵀ F``."""
        return self.num_docs < self.num_terms

    @property
    def slots(self) -> int:
        """Entries of the documents that a product reads."""
        return self.documents.values.shape[0] + (0 if self.spread is None else self.spread.values.shape[0])

    def gram_operations(self) -> float:
        """Of the smaller of ``Fᵀ F`` and ``F Fᵀ``: two for every pair of slots of a row, or of a column."""
        return grams.operations_across(self.made) if self.dual_is_cheaper else self.primal_operations()

    def primal_operations(self) -> float:
        """Of ``Fᵀ F``."""
        return grams.operations(self.made)

    def down(self, x: jax.Array) -> jax.Array:
        """``F x``, ``[num_docs, b]``."""
        return _down(*self.multiplied, self.mean, self.scale, x)

    def up(self, y: jax.Array) -> jax.Array:
        """``Fᵀ y``, ``[num_terms, b]``."""
        return _up(*self.multiplied, self.mean, self.scale, y)

    def covariance(self, x: jax.Array) -> jax.Array:
        """``Fᵀ F x``, ``[num_terms, b]``."""
        return self.up(self.down(x))

    def diagonal(self) -> jax.Array:
        """Diagonal of ``Fᵀ F``, ``[num_terms]``."""
        rows = sparse.to_scipy(self.made).astype(np.float64)
        squares = np.asarray(rows.multiply(rows).sum(axis=0)).ravel()
        squares -= self.num_docs * np.asarray(self.mean, np.float64)[:, 0] ** 2
        with np.errstate(over="ignore"):  # beyond the precision it is infinite, and a solve is then refused
            return jnp.asarray(self.scale**2 * np.maximum(squares, 0), self.mean.dtype)

    def primal(self) -> jax.Array:
        """``Fᵀ F`` as a dense ``[num_terms, num_terms]`` matrix."""
        return _centred(grams.gram(self.made), self.mean, self.num_docs, self.scale)

    def dual(self) -> jax.Array:
        """``F Fᵀ`` as a dense ``[num_docs, num_docs]`` matrix."""
        across = sparse.from_scipy(sparse.to_scipy(self.made).T.tocsr())
        along = sparse.project(self.made, self.mean)
        return _centred_rows(grams.gram(across), along, jnp.sum(self.mean**2), self.scale)


class Ridge:
    """``N = Fᵀ F + γ I`` with products and solves.

    Attributes:
      factor: ``F``.
      ridge: ``γ``.
      iterated: whether solves are by conjugate gradients.
      work: operations of a product, a column, as `cost` counts them.
      solve_work: those of a solve.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[2.0, 0.0]]))
      >>> ridge = Ridge(Factor(documents, centred=False, scale=1.0), 1.0, argument="ridge")
      >>> ridge.solve(jnp.array([[5.0], [1.0]])).round(4).tolist()
      [[1.0], [1.0]]
    """

    def __init__(self, factor: Factor, ridge: float, *, argument: str, tolerance: float | None = None,
                 columns: int | None = None, solver: str | None = None):
        """Nothing is factorised before the first solve.

        Args:
          factor: ``F``.
          ridge: ``γ``, positive.
          argument: the caller's name for ``γ``.
          tolerance: largest residual of an iterated solve, relative to its right side; nearly the precision unless
            given. A factor is always exact.
          columns: about how many right sides there will be. A factor is then made only where `cost` expects that to be
            faster than conjugate gradients; else wherever there are at most 24,000 of documents or of terms.
          solver: ``"cholesky"`` or ``"iterated"`` in place of that choice.

        Raises:
          ValueError: if ``γ`` is not positive, or for another solver.
        """
        checks.expect(ridge > 0, argument, "a value that makes the matrix positive definite", ridge)
        checks.expect(solver in (None, "cholesky", "iterated"), "solver", "cholesky or iterated", solver)
        self.factor, self.ridge, self.argument = factor, float(ridge), argument
        self.dual, self.size = factor.dual_is_cheaper, min(factor.num_docs, factor.num_terms)
        dtype = factor.documents.values.dtype
        self.tolerance = float(jnp.finfo(dtype).eps) ** 0.75 if tolerance is None else tolerance
        passes = 2 * cost.sparse(factor.slots)
        self.steps = self._expected_steps() if columns is not None and solver != "cholesky" else None
        self.iterated = solver == "iterated" or solver is None and self._is_cheaper_iterated(columns, passes)
        self.work = passes
        self.solve_work = (self.steps or _GUESS) * passes if self.iterated else (
            cost.SOLVE / cost.BLOCKED * 2.0 * self.size**2 + self.dual * passes)

    @functools.cached_property
    def cholesky(self) -> jax.Array | None:
        """Lower Cholesky factor, or None if solves are iterated.

        Raises:
          ValueError: if ``γ`` is too small for the precision.
        """
        if self.iterated:
            return None
        matrix = _add_diagonal(self.factor.dual(), self.ridge) if self.dual else self.whole()
        return eigen.cholesky(matrix, argument=self.argument)

    def whole(self) -> jax.Array:
        """``N``, ``[num_terms, num_terms]``."""
        return _add_diagonal(self.factor.primal(), self.ridge)

    @functools.cached_property
    def diagonal(self) -> jax.Array:
        """Diagonal of ``N``, ``[num_terms, 1]``."""
        return self.factor.diagonal()[:, None] + jnp.asarray(self.ridge, self.factor.documents.values.dtype)

    def _is_cheaper_iterated(self, columns: int | None, passes: float) -> bool:
        if self.size > _LARGEST or columns is None:
            return self.size > _LARGEST
        factored = cost.factor_seconds(self.size, self.factor.gram_operations(), columns)
        walks = cost.BLOCKED * columns * passes / cost.NARROW
        return factored + self.dual * walks > self.steps * walks

    def _expected_steps(self) -> float:
        """Of conjugate gradients, by the largest eigenvalue: a few steps of the power method from the same start."""
        vector = self.factor.diagonal()[:, None]
        largest = 0.0
        for _ in range(_POWER):
            length = float(jnp.linalg.norm(vector))
            if not np.isfinite(length):
                return _STEPS
            if length == 0:
                break
            vector = self.factor.covariance(vector / length)
            largest = float(jnp.linalg.norm(vector))
        return min(cost.conjugate_gradients_steps(largest, self.ridge, self.tolerance), _STEPS)

    def apply(self, x: jax.Array) -> jax.Array:
        """``N x``, ``[num_terms, b]``."""
        return ridged(self.factor.covariance(x), self.ridge, x)

    def solve(self, x: jax.Array) -> jax.Array:
        """``N⁻¹ x``, ``[num_terms, b]``.

        Raises:
          ValueError: if ``γ`` is too small for an iterated solve to end.
        """
        if self.cholesky is None:
            factor = self.factor
            solution, residual = _conjugate_gradients(*factor.multiplied, factor.mean, factor.scale, self.ridge,
                                                      self.diagonal, x, self.tolerance, _STEPS)
            checks.expect(bool(residual <= self.tolerance), self.argument,
                          f"a value with which {_STEPS:,} steps of conjugate gradients suffice", "one too small")
            return solution
        if not self.dual:
            return eigen.cholesky_solve(self.cholesky, x)
        inner = eigen.cholesky_solve(self.cholesky, self.factor.down(x))
        return (x - self.factor.up(inner)) / self.ridge

    def regress(self, y: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Coefficients ``N⁻¹ Fᵀ y`` of a ridge regression, and its residual ``y - F N⁻¹ Fᵀ y``.

        With fewer documents than terms they are ``Fᵀ`` and ``γ`` times ``(F Fᵀ + γ I)⁻¹ y``. `solve` of ``Fᵀ y`` would
        give the same, but as a difference of large numbers, of which a small ``γ`` leaves little.

        Args:
          y: ``[num_docs, b]``.

        Returns:
          ``([num_terms, b], [num_docs, b])``.

        Raises:
          ValueError: as `solve`.
        """
        if self.dual and self.cholesky is not None:
            inner = eigen.cholesky_solve(self.cholesky, y)
            return self.factor.up(inner), self.ridge * inner
        coefficients = self.solve(self.factor.up(y))
        return coefficients, y - self.factor.down(coefficients)


@functools.partial(jax.jit, static_argnames="most")
def _conjugate_gradients(
    documents: Held, spread: Held | None, mean, scale, ridge, diagonal, right, tolerance, most: int
):
    """``(x, residual)`` for all columns at once, scaled by the diagonal; the largest residual left, of its column."""
    lengths = jnp.linalg.norm(right, axis=0)

    def quotient(a, b):
        # 0 where a column has nothing left to do.
        return jnp.where(b > 0, a / jnp.where(b > 0, b, 1), 0)[None, :]

    def left(residual):
        return jnp.max(quotient(jnp.linalg.norm(residual, axis=0), lengths))

    def step(state):
        count, x, residual, direction, size = state
        along = _down(documents, spread, mean, scale, direction)
        image = _up(documents, spread, mean, scale, along) + ridge * direction
        length = quotient(size, jnp.sum(direction * image, axis=0))
        x, residual = x + length * direction, residual - length * image
        scaled = residual / diagonal
        new = jnp.sum(residual * scaled, axis=0)
        return count + 1, x, residual, scaled + quotient(new, size) * direction, new

    def unfinished(state):
        return (state[0] < most) & (left(state[2]) > tolerance)

    scaled = right / diagonal
    start = 0, jnp.zeros_like(right), right, scaled, jnp.sum(right * scaled, axis=0)
    _, x, residual, _, _ = jax.lax.while_loop(unfinished, step, start)
    return x, left(residual)


@jax.jit
def ridged(image: jax.Array, ridge: float, x: jax.Array) -> jax.Array:
    """``M x + γ x`` from ``M x``, by one program.

    Args:
      image: ``[n, b]`` floating, ``M x``.
      ridge: ``γ``; below 0 to take a ridge away.
      x: ``[n, b]``.

    Returns:
      ``[n, b]``.

    Example:
      >>> ridged(jnp.array([[1.0]]), -0.5, jnp.array([[4.0]])).tolist()
      [[-1.0]]
    """
    return image + ridge * x


@functools.partial(jax.jit, donate_argnums=0)
def _centred(matrix, mean, num_docs, scale):
    return scale**2 * (matrix - num_docs * (mean * mean.T))


@functools.partial(jax.jit, donate_argnums=0)
def _centred_rows(matrix, along, square, scale):
    return scale**2 * (matrix - along - along.T + square)


def _add_diagonal(matrix: jax.Array, value: float) -> jax.Array:
    return _add(matrix, jnp.asarray(value, matrix.dtype))


_add: Callable = jax.jit(
    lambda matrix, value: matrix + value * jnp.eye(matrix.shape[0], dtype=matrix.dtype), donate_argnums=0
)
