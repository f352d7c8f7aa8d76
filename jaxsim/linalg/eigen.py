"""Eigenproblems on closures: the few leading eigenvectors of symmetric operators that are never formed.

A block Krylov basis with full re-orthogonalisation and one Rayleigh-Ritz step at the end. Everything runs under
float32 "highest" matrix precision (float64 where JAX has it enabled), because the defaults of TPUs and recent GPUs are
lower than an eigenproblem bears. Signs are fixed: the entry of largest magnitude of every vector is positive.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.linalg import krylov
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import EVALUATION

_SMALLEST_BASIS = 160
_WIDEST_BLOCK = 48  # columns; in many narrow blocks a basis holds higher powers of the operator than in a few wide ones


def precise(function: Callable) -> Callable:
    """Runs ``function`` under float32 "highest" matrix precision.

    Args:
      function: any function of arrays.

    Returns:
      The same function, with full-precision matrix products inside.

    Example:
      >>> float(precise(jnp.dot)(jnp.ones(2), jnp.ones(2)))
      2.0
    """

    @functools.wraps(function)
    def wrapped(*args, **kwargs):
        with jax.default_matmul_precision(EVALUATION):
            return function(*args, **kwargs)

    return wrapped


@jax.jit
def fix_signs(vectors: jax.Array) -> jax.Array:
    """Flips columns so that the entry of largest magnitude (the first of equals) is positive.

    Args:
      vectors: ``[n, k]`` floating.

    Returns:
      ``[n, k]``.

    Example:
      >>> fix_signs(jnp.array([[1.0], [-2.0]])).tolist()
      [[-1.0], [2.0]]
    """
    if vectors.size == 0:
        return vectors
    largest = jnp.take_along_axis(vectors, jnp.argmax(jnp.abs(vectors), axis=0)[None, :], axis=0)
    return vectors * jnp.where(largest < 0, -1, 1)


@precise
def top_eigh(
    matvec: Callable,
    dim: int,
    k: int,
    *,
    key: jax.Array,
    dtype=None,
    basis_factor: float = 3.0,
    block_size: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """The ``k`` largest eigenvalues of a symmetric operator and their eigenvectors.

    Args:
      matvec: maps ``[dim, b]`` to ``[dim, b]``; symmetric, positive semi-definite or not.
      dim: size of the operator.
      k: number of eigenpairs, at most ``dim``.
      key: PRNG key of the random start.
      dtype: floating type; JAX's default unless given.
      basis_factor: size of the Krylov basis as a multiple of ``k``, at least 160 columns; more is more accurate.
      block_size: columns a block, a quarter of ``k`` but at least 8 and at most 48 unless given; less is more accurate
        and slower.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[dim, k]`` orthonormal columns with fixed signs.

    Raises:
      ValueError: if ``k`` is not in ``[1, dim]``.

    Example:
      >>> values, _ = top_eigh(lambda x: jnp.array([[3.0], [1.0], [2.0]]) * x, 3, 2, key=jax.random.key(0))
      >>> [round(float(v), 4) for v in values]
      [3.0, 2.0]
    """
    checks.between(k, "k", dim, "size of the operator")
    dtype = jnp.dtype(dtype or jnp.result_type(float))
    block, steps = _basis_size(k, basis_factor, block_size)
    if block * steps >= dim:
        images = matvec(jnp.eye(dim, dtype=dtype))
        small, rotation = jnp.linalg.eigh((images + images.T) / 2)
        return small[::-1][:k], fix_signs(rotation[:, ::-1][:, :k])
    current = krylov.orthogonal(jax.random.normal(key, (dim, block), dtype), [])
    basis, images = [current], [matvec(current)]
    for _ in range(steps - 1):
        current = krylov.orthogonal(images[-1], basis)
        basis.append(current)
        images.append(matvec(current))
    values, vectors = krylov.ritz(basis, images, k)
    return values, fix_signs(vectors)


@precise
def top_generalised(
    signal: Callable,
    noise: Callable,
    noise_solve: Callable,
    dim: int,
    k: int,
    *,
    key: jax.Array,
    dtype=None,
    basis_factor: float = 3.0,
    block_size: int | None = None,
) -> tuple[jax.Array, jax.Array]:
    """The ``k`` largest solutions of ``S v = λ N v`` for symmetric ``S`` and symmetric positive definite ``N``.

    The Krylov space of ``N⁻¹ S`` is spanned in blocks; the Rayleigh-Ritz step inside it uses ``S`` and ``N``
    themselves, so that an inexact solve costs speed of convergence and not accuracy.

    Args:
      signal: ``S``, maps ``[dim, b]`` to ``[dim, b]``.
      noise: ``N``, likewise.
      noise_solve: ``N⁻¹``, likewise.
      dim: size of the operators.
      k: number of solutions, at most ``dim``.
      key: PRNG key of the random start.
      dtype: floating type; JAX's default unless given.
      basis_factor: size of the Krylov basis as a multiple of ``k``.
      block_size: columns a block, as for `top_eigh`.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[dim, k]`` with ``vᵀ N v = 1`` and fixed signs.

    Raises:
      ValueError: if ``k`` is not in ``[1, dim]``.

    Example:
      >>> scale = jnp.array([[3.0], [1.0]])
      >>> twice, half = (lambda x: 2 * x), (lambda x: x / 2)
      >>> values, _ = top_generalised(lambda x: scale * x, twice, half, 2, 1, key=jax.random.key(0))
      >>> round(float(values[0]), 4)
      1.5
    """
    checks.between(k, "k", dim, "size of the operator")
    dtype = jnp.dtype(dtype or jnp.result_type(float))
    block, steps = _basis_size(k, basis_factor, block_size)
    if block * steps >= dim:
        basis = jnp.eye(dim, dtype=dtype)
        images = signal(basis)
    else:
        current = krylov.orthogonal(jax.random.normal(key, (dim, block), dtype), [])
        blocks, images = [current], [signal(current)]
        for _ in range(steps - 1):
            current = krylov.orthogonal(noise_solve(images[-1]), blocks)
            blocks.append(current)
            images.append(signal(current))
        basis, images = jnp.concatenate(blocks, axis=1), jnp.concatenate(images, axis=1)
    values, vectors = krylov.ritz_generalised(basis, images, noise(basis), k)
    return values, fix_signs(vectors)


def _basis_size(k: int, basis_factor: float, block_size: int | None) -> tuple[int, int]:
    """Columns a block and number of blocks."""
    block = block_size or min(max(8, -(-k // 4)), _WIDEST_BLOCK)
    # A short basis costs little and a few eigenpairs need many powers of the operator: 20 blocks of 8 for small k.
    size = max(int(basis_factor * k + 32), _SMALLEST_BASIS)
    return block, max(2, -(-size // block))


@precise
def truncated_svd(documents: Terms, k: int, *, key: jax.Array, basis_factor: float = 3.0):
    """Truncated singular value decomposition of sparse documents, ``D ≈ U Σ Vᵀ`` (002 eq. 1).

    Args:
      documents: `Terms`, ``[num_docs, num_terms]``.
      k: number of singular triples, at most ``min(num_docs, num_terms)``.
      key: PRNG key of the random start.
      basis_factor: as for `top_eigh`.

    Returns:
      ``(singular_values, right)``: ``[k]`` descending and ``[num_terms, k]``; beyond the numerical rank both are 0.

    Raises:
      ValueError: if ``k`` is out of range.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 0.0], [0.0, 2.0]]))
      >>> values, right = truncated_svd(documents, 2, key=jax.random.key(0))
      >>> [round(float(v), 4) for v in values]
      [3.0, 2.0]
    """
    n, v = documents.num_docs, documents.num_terms
    checks.between(k, "k", min(n, v), "the largest possible rank")
    dtype = documents.values.dtype
    down, up = functools.partial(_down, documents), functools.partial(_up, documents)
    small_side = (lambda x: up(down(x))) if v <= n else (lambda x: down(up(x)))
    squares, vectors = top_eigh(small_side, min(n, v), k, key=key, dtype=dtype, basis_factor=basis_factor)
    right = vectors if v <= n else up(vectors)
    return _singular(squares, right, max(n, v), v > n)


_down, _up = jax.jit(sparse.project), jax.jit(sparse.project_transpose)


@functools.partial(jax.jit, static_argnames=("size", "divide"))
def _singular(squares, right, size, divide):
    """Singular values of their squares, and right vectors (still times those values if ``divide``), 0 past the rank."""
    kept = squares > jnp.finfo(squares.dtype).eps * size * jnp.maximum(squares[0], 0)
    values = jnp.where(kept, jnp.sqrt(jnp.where(kept, squares, 1)), 0)
    right = right / jnp.where(kept, values, 1)[None, :] if divide else right
    return values, fix_signs(jnp.where(kept[None, :], right, 0))


@precise
def cholesky(matrix: jax.Array, *, argument: str) -> jax.Array:
    """Lower Cholesky factor, or a clear error.

    Args:
      matrix: ``[n, n]`` symmetric.
      argument: name of the setting that makes the matrix positive definite, for the message.

    Returns:
      ``[n, n]`` lower triangular.

    Raises:
      ValueError: if the matrix is not positive definite in its precision.

    Example:
      >>> cholesky(jnp.array([[4.0]]), argument="noise").tolist()
      [[2.0]]
    """
    factor = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    if not bool(jnp.isfinite(jnp.sum(jnp.diagonal(factor)))):
        raise ValueError(f"{argument}: expected a value that makes the matrix positive definite, got one too small")
    return factor


@jax.jit
@precise
def cholesky_solve(factor: jax.Array, right: jax.Array) -> jax.Array:
    """Solves ``L Lᵀ x = b`` for a Cholesky factor.

    Args:
      factor: ``[n, n]`` lower triangular.
      right: ``[n, b]``.

    Returns:
      ``[n, b]``.

    Example:
      >>> cholesky_solve(jnp.array([[2.0]]), jnp.array([[4.0]])).tolist()
      [[1.0]]
    """
    return jax.scipy.linalg.cho_solve((factor, True), right)


def means(documents: Terms) -> jax.Array:
    """Mean document, ``μ``.

    Args:
      documents: `Terms` of at least one document.

    Returns:
      ``[num_terms]``.

    Example:
      >>> import scipy.sparse
      >>> means(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0], [3.0]]))).tolist()
      [2.0]
    """
    total = sparse.to_scipy(documents).astype(np.float64).sum(axis=0)
    return jnp.asarray(np.asarray(total).ravel() / max(documents.num_docs, 1), documents.values.dtype)
