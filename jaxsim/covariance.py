"""Covariances of sparse documents as operators: products and solves without a centred or a dense document.

A covariance ``C = Fᵀ F`` of ``n`` documents over ``V`` terms has rank ``n`` at most. `Ridge` solves with ``C + γ I``
by one Cholesky factor of the smaller of a ``V x V`` and an ``n x n`` matrix; the latter by the identity of Woodbury,
``(γ I + Fᵀ F)⁻¹ = (I - Fᵀ (γ I + F Fᵀ)⁻¹ F) / γ``.
"""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxsim import linalg
from jaxsim import terms as terms_room
from jaxsim.terms import Terms


# Jitted, because every operation outside jit is a program to compile of its own.
@jax.jit
def _down(documents: Terms, mean, scale, x):
    return scale * (terms_room.project(documents, x) - mean.T @ x)


@jax.jit
def _up(documents: Terms, mean, scale, y):
    total = jnp.sum(y, axis=0, keepdims=True)
    return scale * (terms_room.project_transpose(documents, y) - mean * total)


class Factor:
    """Rows ``F = s (D - 1 μᵀ)`` of which a covariance is made.

    Attributes:
      num_docs: ``n``.
      num_terms: ``V``.

    Example:
      >>> import scipy.sparse
      >>> documents = terms_room.from_scipy(scipy.sparse.csr_matrix([[1.0], [3.0]]))
      >>> Factor(documents, centred=True, scale=1.0).covariance(jnp.ones((1, 1))).tolist()
      [[2.0]]
    """

    def __init__(self, documents: Terms, *, centred: bool, scale: float):
        """Takes documents ``D`` of any weighting; ``μ`` is their mean if ``centred``, else 0."""
        # A NumPy scalar would turn float32 into float64 where 64-bit types are on.
        self.documents, self.scale = documents, float(scale)
        self.num_docs, self.num_terms = documents.num_docs, documents.num_terms
        self.mean = linalg.means(documents)[:, None] if centred else jnp.zeros((self.num_terms, 1))
        self.mean = self.mean.astype(documents.values.dtype)

    def down(self, x: jax.Array) -> jax.Array:
        """``F x``, ``[num_docs, b]``."""
        return _down(self.documents, self.mean, self.scale, x)

    def up(self, y: jax.Array) -> jax.Array:
        """``Fᵀ y``, ``[num_terms, b]``."""
        return _up(self.documents, self.mean, self.scale, y)

    def covariance(self, x: jax.Array) -> jax.Array:
        """``Fᵀ F x``, ``[num_terms, b]``."""
        return self.up(self.down(x))

    def primal(self) -> jax.Array:
        """``Fᵀ F`` as a dense ``[num_terms, num_terms]`` matrix."""
        return self.scale**2 * (linalg.gram(self.documents) - self.num_docs * (self.mean @ self.mean.T))

    def dual(self) -> jax.Array:
        """``F Fᵀ`` as a dense ``[num_docs, num_docs]`` matrix."""
        across = terms_room.from_scipy(terms_room.to_scipy(self.documents).T.tocsr())
        along = terms_room.project(self.documents, self.mean)
        matrix = linalg.gram(across) - along - along.T + jnp.sum(self.mean**2)
        return self.scale**2 * matrix


class Ridge:
    """``N = Fᵀ F + γ I`` with products and solves.

    Example:
      >>> import scipy.sparse
      >>> documents = terms_room.from_scipy(scipy.sparse.csr_matrix([[2.0, 0.0]]))
      >>> ridge = Ridge(Factor(documents, centred=False, scale=1.0), 1.0, argument="ridge")
      >>> ridge.solve(jnp.array([[5.0], [1.0]])).round(4).tolist()
      [[1.0], [1.0]]
    """

    def __init__(self, factor: Factor, ridge: float, *, argument: str):
        """Factorises once.

        Args:
          factor: ``F``.
          ridge: ``γ``, positive.
          argument: the caller's name for ``γ``.

        Raises:
          ValueError: if ``γ`` is too small for the precision.
        """
        self.factor, self.ridge = factor, float(ridge)
        self.dual = factor.num_docs < factor.num_terms
        matrix = factor.dual() if self.dual else factor.primal()
        self.cholesky = linalg.cholesky(_add_diagonal(matrix, ridge), argument=argument)

    def apply(self, x: jax.Array) -> jax.Array:
        """``N x``, ``[num_terms, b]``."""
        return self.factor.covariance(x) + self.ridge * x

    def solve(self, x: jax.Array) -> jax.Array:
        """``N⁻¹ x``, ``[num_terms, b]``."""
        if not self.dual:
            return linalg.cholesky_solve(self.cholesky, x)
        inner = linalg.cholesky_solve(self.cholesky, self.factor.down(x))
        return (x - self.factor.up(inner)) / self.ridge


def _add_diagonal(matrix: jax.Array, value: float) -> jax.Array:
    return _add(matrix, jnp.asarray(value, matrix.dtype))


_add: Callable = jax.jit(
    lambda matrix, value: matrix + value * jnp.eye(matrix.shape[0], dtype=matrix.dtype), donate_argnums=0
)
