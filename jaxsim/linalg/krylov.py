"""Steps of a block Krylov iteration: the next orthonormal block, and the Rayleigh-Ritz step at the end.

Each is one compiled program, because every operation outside ``jit`` would be a program to compile of its own. All run
under float32 "highest" matrix precision.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxsim.sparse.precision import EVALUATION


def orthogonal(block: jax.Array, basis: Sequence[jax.Array]) -> jax.Array:
    """An orthonormal block orthogonal to a basis, also where the block is rank deficient.

    Args:
      block: ``[dim, b]`` floating.
      basis: blocks ``[dim, b]``, orthonormal together.

    Returns:
      ``[dim, b]``.

    Example:
      >>> abs(orthogonal(jnp.array([[3.0], [0.5]]), [jnp.array([[1.0], [0.0]])])).round(4).tolist()
      [[0.0], [1.0]]
    """
    # Twice is enough for a block of full rank. Where the Krylov space is exhausted, the first pass leaves rounding, QR
    # makes unit vectors of it that lean on the basis, and only the third pass cleans those.
    for _ in range(3):
        for known in basis:
            block = _without(block, known)
        block = _orthonormal(block)
    return block


@jax.jit
def _without(block, known):
    with jax.default_matmul_precision(EVALUATION):
        return block - known @ (known.T @ block)


@jax.jit
def _orthonormal(block):
    return jnp.linalg.qr(block)[0]


@functools.partial(jax.jit, static_argnames="k")
def ritz(basis: Sequence[jax.Array], images: Sequence[jax.Array], k: int) -> tuple[jax.Array, jax.Array]:
    """The ``k`` leading Ritz pairs of a symmetric operator in an orthonormal basis.

    Args:
      basis: blocks ``[dim, b]``.
      images: what the operator makes of each.
      k: number of pairs.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[dim, k]`` orthonormal, of any sign.

    Example:
      >>> values, _ = ritz([jnp.eye(2)], [jnp.diag(jnp.array([1.0, 3.0]))], 1)
      >>> values.round(4).tolist()
      [3.0]
    """
    with jax.default_matmul_precision(EVALUATION):
        whole = jnp.concatenate(basis, axis=1)
        small = whole.T @ jnp.concatenate(images, axis=1)
        values, rotation = jnp.linalg.eigh((small + small.T) / 2)
        return values[::-1][:k], whole @ rotation[:, ::-1][:, :k]


@functools.partial(jax.jit, static_argnames="k")
def ritz_generalised(basis, images, noise_images, k: int) -> tuple[jax.Array, jax.Array]:
    """The ``k`` leading Ritz pairs of ``S v = λ N v``, for ``N`` positive definite.

    Args:
      basis: ``[dim, b]`` of full rank.
      images: ``S`` times the basis.
      noise_images: ``N`` times the basis.
      k: number of pairs.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[dim, k]`` with ``vᵀ N v = 1``, of any sign.

    Example:
      >>> values, _ = ritz_generalised(jnp.eye(2), jnp.diag(jnp.array([1.0, 3.0])), 2 * jnp.eye(2), 1)
      >>> values.round(4).tolist()
      [1.5]
    """
    with jax.default_matmul_precision(EVALUATION):
        small = basis.T @ images
        factor = jnp.linalg.cholesky(basis.T @ noise_images)
        half = jax.scipy.linalg.solve_triangular(factor, (small + small.T) / 2, lower=True)
        whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
        values, rotation = jnp.linalg.eigh((whole + whole.T) / 2)
        chosen = jax.scipy.linalg.solve_triangular(factor.T, rotation[:, ::-1][:, :k], lower=False)
        return values[::-1][:k], basis @ chosen
