"""Steps of a block Krylov iteration: the next orthonormal block, the Rayleigh-Ritz step, and the store of columns.

Each is one compiled program, because every operation outside ``jit`` would be compiled as a program of its own. All run
under float32 "highest" matrix precision.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp

from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.precision import EVALUATION

_BLOCKS = 8
"""Blocks of a part: its products with a block are large, and few of its columns are still zero."""
_LEANING = 1e-3
"""Part of a unit vector inside the basis from which on it is cleaned again."""


class Columns:
    """Columns in parts of one width, allocated before they are filled: one program each writes and reads a part.

    Attributes:
      parts: ``[dim, width]`` each; 0 where the last is not yet filled.

    Example:
      >>> columns = Columns(2)
      >>> columns.append(jnp.ones((2, 1)))
      >>> columns.whole().tolist(), columns.parts[0].shape
      ([[1.0], [1.0]], (2, 2))
    """

    def __init__(self, width: int, parts: Sequence[jax.Array] = ()):
        """Takes the width of new parts, and the first, full parts."""
        self.width, self.parts, self._room = width, list(parts), 0

    def append(self, block: jax.Array) -> None:
        """Adds a block ``[dim, b]``, whose ``b`` divides the width."""
        if not self._room:
            self.parts.append(jnp.zeros((block.shape[0], self.width), block.dtype))
            self._room = self.width
        self.parts[-1] = _written(self.parts[-1], block, self.width - self._room)
        self._room -= block.shape[1]

    @property
    def count(self) -> int:
        """How many columns there are."""
        return sum(part.shape[1] for part in self.parts) - self._room

    def whole(self) -> jax.Array:
        """All columns, ``[dim, count]``."""
        return jnp.concatenate(self.parts, axis=1)[:, : self.count]


def part_width(block: int, blocks: int) -> int:
    """Columns of a part, for so many blocks in all.

    Args:
      block: columns of a block.
      blocks: how many there will be.

    Returns:
      A multiple of ``block``, so that parts of this width hold the blocks with as little room left as can be.

    Example:
      >>> part_width(48, 20)
      336
    """
    return block * -(-blocks // -(-blocks // _BLOCKS))


@functools.partial(jax.jit, donate_argnums=0)
def _written(part, block, start):
    return jax.lax.dynamic_update_slice_in_dim(part, block, start, axis=1)


def orthogonal(block: jax.Array, basis: Sequence[jax.Array]) -> jax.Array:
    """An orthonormal block orthogonal to a basis, also where the block is rank deficient.

    Args:
      block: ``[dim, b]`` floating.
      basis: parts ``[dim, w]``, orthonormal together but for columns of zeros.

    Returns:
      ``[dim, b]``.

    Example:
      >>> abs(orthogonal(jnp.array([[3.0], [0.5]]), [jnp.array([[1.0], [0.0]])])).round(4).tolist()
      [[0.0], [1.0]]
    """
    # Twice is enough for a block of full rank. Where the Krylov space is exhausted, the first pass leaves rounding, QR
    # makes unit vectors of it that lean on the basis, and only the third pass cleans those.
    for passes in range(3):
        leaning = jnp.zeros((), block.dtype)
        for part in basis:
            block, along = without(block, part)
            leaning = jnp.maximum(leaning, along)
        block = _orthonormal(block)
        if passes == 1 and float(leaning) < _LEANING:
            break
    return block


@seldom
def without(block: jax.Array, part: jax.Array) -> tuple[jax.Array, jax.Array]:
    """A block without its part along other columns, once; rounding leaves some of it.

    Args:
      block: ``[dim, b]``.
      part: ``[dim, w]``, orthonormal but for columns of zeros.

    Returns:
      ``(block, leaning)``: ``[dim, b]``, and the largest of the products that were taken away.

    Example:
      >>> block, leaning = without(jnp.array([[3.0], [0.5]]), jnp.array([[1.0], [0.0]]))
      >>> block.tolist(), float(leaning)
      ([[0.0], [0.5]], 3.0)
    """
    with jax.default_matmul_precision(EVALUATION):
        along = part.T @ block
        return block - part @ along, jnp.max(jnp.abs(along))


@jax.jit
def _orthonormal(block):
    return jnp.linalg.qr(block)[0]


@seldom
def ritz(basis: jax.Array, images: jax.Array) -> tuple[jax.Array, jax.Array]:
    """All Ritz pairs of a symmetric operator in an orthonormal basis, largest first.

    Args:
      basis: ``[dim, m]``.
      images: what the operator makes of it.

    Returns:
      ``(values, rotation)``: ``[m]`` descending, ``[m, m]`` orthonormal; the vectors are the basis times these.

    Example:
      >>> values, _ = ritz(jnp.eye(2), jnp.diag(jnp.array([1.0, 3.0])))
      >>> values.round(4).tolist()
      [3.0, 1.0]
    """
    with jax.default_matmul_precision(EVALUATION):
        small = basis.T @ images
        values, rotation = jnp.linalg.eigh((small + small.T) / 2)
        return values[::-1], rotation[:, ::-1]


@seldom
def ritz_generalised(basis, images, noise_images) -> tuple[jax.Array, jax.Array]:
    """All Ritz pairs of ``S v = λ N v``, for ``N`` positive definite, largest first.

    Args:
      basis: ``[dim, m]`` of full rank.
      images: ``S`` times the basis.
      noise_images: ``N`` times the basis.

    Returns:
      ``(values, rotation)``: ``[m]`` descending, ``[m, m]``; the vectors ``v``, with ``vᵀ N v = 1``, are the basis
      times these.

    Example:
      >>> values, _ = ritz_generalised(jnp.eye(2), jnp.diag(jnp.array([1.0, 3.0])), 2 * jnp.eye(2))
      >>> values.round(4).tolist()
      [1.5, 0.5]
    """
    with jax.default_matmul_precision(EVALUATION):
        small = basis.T @ images
        factor = jnp.linalg.cholesky(basis.T @ noise_images)
        half = jax.scipy.linalg.solve_triangular(factor, (small + small.T) / 2, lower=True)
        whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
        values, rotation = jnp.linalg.eigh((whole + whole.T) / 2)
        return values[::-1], jax.scipy.linalg.solve_triangular(factor.T, rotation[:, ::-1], lower=False)


@seldom
def apart(block: jax.Array, basis: jax.Array, noise_images: jax.Array, rotation: jax.Array) -> jax.Array:
    """A block without its part in a basis, orthogonal to it in the inner product of ``N``.

    Args:
      block: ``[dim, b]``.
      basis: ``[dim, m]``.
      noise_images: ``N`` times the basis.
      rotation: ``[m, m]`` of all Ritz vectors, orthonormal in that product.

    Returns:
      ``[dim, b]``, its columns scaled to length one.

    Example:
      >>> apart(jnp.array([[1.0], [2.0]]), jnp.eye(2)[:, :1], jnp.eye(2)[:, :1], jnp.ones((1, 1))).tolist()
      [[0.0], [1.0]]
    """
    with jax.default_matmul_precision(EVALUATION):
        for _ in range(2):
            block = block - basis @ (rotation @ (rotation.T @ (noise_images.T @ block)))
        length = jnp.linalg.norm(block, axis=0, keepdims=True)
        return block / jnp.where(length > 0, length, 1)


@seldom
def times(columns: jax.Array, rotation: jax.Array) -> jax.Array:
    """Columns times a small matrix.

    Args:
      columns: ``[dim, m]``.
      rotation: ``[m, k]``.

    Returns:
      ``[dim, k]``.

    Example:
      >>> times(jnp.eye(2), jnp.array([[1.0], [2.0]])).tolist()
      [[1.0], [2.0]]
    """
    return jnp.matmul(columns, rotation, precision=EVALUATION)
