"""Eigenproblems on closures: the few leading eigenvectors of symmetric operators that are never formed.

Where it is cheaper to form the whole matrix, LAPACK solves it. Otherwise a block Krylov basis with full
re-orthogonalisation and a Rayleigh-Ritz step is restarted from its best part until the last vectors are solutions.
Everything runs under float32 "highest" matrix precision (float64 where JAX has it enabled), because the defaults of
TPUs and recent GPUs are too low for an eigenproblem. Signs are fixed: the entry of largest magnitude of every vector is
positive.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from jaxsim import checks, sparse
from jaxsim.linalg import cost, grams, krylov
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import EVALUATION

TOLERANCE = 5e-3
"""Largest residual of an eigenvector, relative to its eigenvalue: of flat spectra, .999 of the space is then right."""

_SMALLEST_BASIS = 160
_WIDEST_BLOCK = 48  # columns; in many narrow blocks a basis holds higher powers of the operator than in a few wide ones
_SWEEPS = 30
_FEW = 128  # columns whose images are held at once, to measure them
_FAR = 20  # of a largest value, the power of two beyond which squares of squares come near the edges of float32
_ROUNDING = 10.0  # times the precision, and the root of the size: no residual can be expected below


class Whole(NamedTuple):
    """A way to the dense matrices of an eigenproblem that takes less time than products with the unit matrix.

    Attributes:
      make: gives ``[dim, dim]`` ``S``, or ``(S, N)`` of a generalised problem.
      operations: those of ``make``, counted as products of sparse rows with one another (`cost.GRAM`).

    Example:
      >>> Whole(lambda: jnp.eye(2), operations=4.0).make().tolist()
      [[1.0, 0.0], [0.0, 1.0]]
    """

    make: Callable
    operations: float


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
    basis_factor: float = 2.0,
    block_size: int | None = None,
    tolerance: float = TOLERANCE,
    solver: str | None = None,
    work: float | None = None,
    whole: Whole | None = None,
) -> tuple[jax.Array, jax.Array]:
    """The ``k`` largest eigenvalues of a symmetric operator and their eigenvectors.

    Args:
      matvec: maps ``[dim, b]`` to ``[dim, b]``; symmetric, positive semi-definite or not.
      dim: size of the operator.
      k: number of eigenpairs, at most ``dim``.
      key: PRNG key of the random start.
      dtype: floating type; JAX's default unless given.
      basis_factor: size of the Krylov basis as a multiple of ``k``, at least 160 columns; more needs fewer restarts.
      block_size: columns a block, a sixth of ``k`` but at least 8 and at most 48 unless given.
      tolerance: largest residual ``‖A v - λ v‖`` of the last vectors, relative to the last eigenvalue. The basis is
        started again from its best part until that is reached, thirty times at most.
      solver: ``"dense"`` or ``"iterated"``; whichever `cost.seconds` expects to be faster unless given.
      work: operations of ``matvec`` a column, ``2 dim²`` (those of a dense matrix) unless given.
      whole: makes the matrix for a dense solution; ``matvec`` does, of the unit matrix, unless given.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[dim, k]`` orthonormal columns with fixed signs.

    Raises:
      ValueError: if ``k`` is not in ``[1, dim]``.

    Example:
      >>> values, _ = top_eigh(lambda x: jnp.array([[3.0], [1.0], [2.0]]) * x, 3, 2, key=jax.random.key(0))
      >>> [round(float(v), 4) for v in values]
      [3.0, 2.0]
    """
    checks.random_key(key)
    checks.between(k, "k", dim, "size of the operator")
    dtype = jnp.dtype(dtype or jnp.result_type(float))
    shape = basis_shape(k, basis_factor, block_size)
    if _dense(solver, dim, k, shape, 2.0 * dim**2 if work is None else work, whole=whole):
        return leading_eigh(_symmetric(whole.make() if whole else matvec(_unit(dim, dtype))), k)
    start = jax.random.normal(key, (dim, shape[0]), dtype)
    return _iterated(lambda x: (matvec(x), None), None, k, start, shape, tolerance)


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
    basis_factor: float = 2.0,
    block_size: int | None = None,
    tolerance: float = TOLERANCE,
    solver: str | None = None,
    work: float | None = None,
    solve_work: float = 0.0,
    shift: float = 0.0,
    argument: str = "noise",
    whole: Whole | None = None,
) -> tuple[jax.Array, jax.Array]:
    """The ``k`` largest solutions of ``S v = λ N v`` for symmetric ``S`` and symmetric positive definite ``N``.

    The Krylov space of ``N⁻¹ S`` is spanned in blocks; the Rayleigh-Ritz step inside it uses ``S`` and ``N``
    themselves, so that an inexact solve costs speed of convergence and not accuracy.

    Args:
      signal: ``S``, maps ``[dim, b]`` to ``[dim, b]``.
      noise: ``N``, likewise.
      noise_solve: ``N⁻¹``, likewise; not called by a dense solution.
      dim: size of the operators.
      k: number of solutions, at most ``dim``.
      key: PRNG key of the random start.
      dtype: floating type; JAX's default unless given.
      basis_factor: size of the Krylov basis as a multiple of ``k``.
      block_size: columns a block, as for `top_eigh`.
      tolerance: as for `top_eigh`, of residuals in the norm of ``N⁻¹``.
      solver: as for `top_eigh`.
      work: operations of ``signal`` and ``noise`` a column, ``4 dim²`` unless given.
      solve_work: those of ``noise_solve``.
      shift: what ``signal`` leaves out: ``S x`` is then ``signal(x) + shift N x``, one product with ``N`` for both.
      argument: the caller's name for what makes ``N`` positive definite.
      whole: as for `top_eigh`; its ``S`` leaves out nothing.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[dim, k]`` with ``vᵀ N v = 1`` and fixed signs.

    Raises:
      ValueError: if ``k`` is not in ``[1, dim]``, or ``N`` is not positive definite.

    Example:
      >>> scale = jnp.array([[3.0], [1.0]])
      >>> twice, half = (lambda x: 2 * x), (lambda x: x / 2)
      >>> values, _ = top_generalised(lambda x: scale * x, twice, half, 2, 1, key=jax.random.key(0))
      >>> round(float(values[0]), 4)
      1.5
    """
    checks.random_key(key)
    checks.between(k, "k", dim, "size of the operator")
    dtype = jnp.dtype(dtype or jnp.result_type(float))
    shape = basis_shape(k, basis_factor, block_size)
    if _dense(solver, dim, k, shape, 4.0 * dim**2 if work is None else work, solve_work, whole):
        images, apart = whole.make() if whole else _formed(signal, noise, _unit(dim, dtype), shift)
        factor = cholesky(_symmetric(apart), argument=argument)
        values, vectors = leading_eigh(_whitened(factor, images), k)
        return values, fix_signs(_unwhitened(factor, vectors))
    start = jax.random.normal(key, (dim, shape[0]), dtype)

    def both(x):
        apart = noise(x)
        return signal(x) + shift * apart if shift else signal(x), apart

    return _iterated(both, noise_solve, k, start, shape, tolerance)


def basis_shape(k: int, basis_factor: float = 2.0, block_size: int | None = None) -> tuple[int, int]:
    """Columns a block and number of blocks of a Krylov basis.

    Args:
      k: number of eigenpairs.
      basis_factor: as for `top_eigh`.
      block_size: as for `top_eigh`.

    Returns:
      ``(columns, blocks)``.

    Example:
      >>> basis_shape(100)
      (17, 14)
    """
    block = block_size or min(max(8, -(-k // 6)), _WIDEST_BLOCK)
    # A short basis costs little and a few eigenpairs need many powers of the operator: 20 blocks of 8 for small k.
    size = max(int(basis_factor * k + 32), _SMALLEST_BASIS)
    return block, max(2, -(-size // block))


def _dense(solver: str | None, dim: int, k: int, shape: tuple[int, int], work: float, solve: float = 0.0,
           whole: Whole | None = None) -> bool:
    """Whether the whole matrix is made: always where the basis would be as large."""
    checks.expect(solver in (None, "dense", "iterated"), "solver", "dense or iterated", solver)
    if shape[0] * shape[1] >= dim:
        return True
    return (solver or cost.cheapest(dim, k, shape, work, solve, whole and whole.operations)) == "dense"


def _formed(signal: Callable, noise: Callable, unit: jax.Array, shift: float) -> tuple[jax.Array, jax.Array]:
    """Both matrices, as images of the unit matrix."""
    apart = noise(unit)
    return signal(unit) + shift * apart if shift else signal(unit), apart


def _iterated(products, solve, k: int, block, shape, tolerance) -> tuple[jax.Array, jax.Array]:
    """A block Krylov basis that starts again from its best part until the last wanted vectors are solutions.

    ``products`` gives ``S x`` and ``N x``, or None for the identity; ``solve`` is that of ``N``.
    """
    size, blocks = shape
    most, width = size * blocks, krylov.part_width(size, blocks)
    last = slice(max(0, k - size), k)
    fresh = max(1, (most - k) * 2 // (3 * size))  # blocks that follow the best part
    basis, images, seen = (krylov.Columns(width) for _ in range(3))
    for _ in range(_SWEEPS):
        while basis.count < most:
            block = krylov.orthogonal(block, basis.parts)
            basis.append(block)
            block, apart = products(block)
            images.append(block)
            if solve is not None:
                seen.append(apart)
                block = solve(block)
        whole, moved, apart = basis.whole(), images.whole(), seen.whole() if solve is not None else None
        values, rotation = krylov.ritz(whole, moved) if apart is None else krylov.ritz_generalised(whole, moved, apart)
        theirs = krylov.times(whole if apart is None else apart, rotation[:, last])
        residual = krylov.times(moved, rotation[:, last]) - theirs * values[None, last]
        if _solved(residual, residual if solve is None else solve(residual), values, k, tolerance):
            break
        # Orthogonal to what is dropped too, in the product of N: only then does the block span the residuals.
        block = krylov.apart(block, whole, whole if apart is None else apart, rotation)
        kept = rotation[:, : most - fresh * size]
        if apart is not None:
            kept = _orthonormal(kept)
            seen = krylov.Columns(width, [krylov.times(apart, kept)])
        basis, images = (krylov.Columns(width, [krylov.times(columns, kept)]) for columns in (whole, moved))
    return values[:k], fix_signs(krylov.times(whole, rotation[:, :k]))


@functools.partial(jax.jit, static_argnums=(0, 1))
def _unit(size: int, dtype):
    """The unit matrix, by one program in place of the five of `jnp.eye`."""
    return jnp.eye(size, dtype=dtype)


@jax.jit
def _orthonormal(columns):
    return jnp.linalg.qr(columns)[0]


def _solved(residual, preconditioned, values, k: int, tolerance: float) -> bool:
    largest = float(jnp.sqrt(jnp.max(jnp.sum(residual * preconditioned, axis=0))))
    values = np.asarray(values)
    rounding = _ROUNDING * float(np.finfo(values.dtype).eps) * len(residual) ** 0.5 * float(np.max(np.abs(values)))
    return not largest > max(tolerance * abs(float(values[k - 1])), rounding)


def leading_eigh(matrix: jax.Array, k: int) -> tuple[jax.Array, jax.Array]:
    """The ``k`` largest eigenpairs of a symmetric matrix: on a CPU LAPACK's, which finds no others.

    Args:
      matrix: ``[n, n]`` symmetric.
      k: number of eigenpairs.

    Returns:
      ``(values, vectors)``: ``[k]`` descending, ``[n, k]`` orthonormal columns with fixed signs.

    Raises:
      ValueError: if the matrix has numbers that are not finite.

    Example:
      >>> values, _ = leading_eigh(jnp.diag(jnp.array([3.0, 1.0, 2.0])), 2)
      >>> values.round(4).tolist()
      [3.0, 2.0]
    """
    n = len(matrix)
    if jax.default_backend() != "cpu":
        values, vectors = jnp.linalg.eigh(matrix)
        return values[::-1][:k], fix_signs(vectors[:, ::-1][:, :k])
    host = np.array(matrix)
    checks.expect(bool(np.isfinite(host).all()), "matrix", "finite numbers", "some that are not")
    values, vectors = scipy.linalg.eigh(host, subset_by_index=(n - k, n - 1), driver="evr", overwrite_a=True,
                                        check_finite=False)
    return jax.device_put(values[::-1].copy()), fix_signs(jax.device_put(np.ascontiguousarray(vectors[:, ::-1])))


@functools.partial(jax.jit, donate_argnums=0)
def _symmetric(matrix):
    return (matrix + matrix.T) / 2


@jax.jit
@precise
def _whitened(factor, matrix):
    """``L⁻¹ S L⁻ᵀ``."""
    half = jax.scipy.linalg.solve_triangular(factor, (matrix + matrix.T) / 2, lower=True)
    whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
    return (whole + whole.T) / 2


@jax.jit
@precise
def _unwhitened(factor, vectors):
    return jax.scipy.linalg.solve_triangular(factor, vectors, lower=True, trans=1)


def moderate(documents: Terms) -> tuple[Terms, float]:
    """Documents of a scale whose squares are far from the edges of their precision.

    Args:
      documents: `Terms` of any scale.

    Returns:
      ``(documents, factor)``: the documents times a power of two, which rounds nothing, and what to multiply by to
      have them back. Those whose largest value lies between a millionth and a million come back as they are, with 1.

    Example:
      >>> import scipy.sparse
      >>> documents, factor = moderate(sparse.from_scipy(scipy.sparse.csr_matrix([[2.0**-70, 2.0**-71]])))
      >>> documents.values.tolist(), factor == 2.0**-69
      ([0.5, 0.25], True)
    """
    values = np.asarray(documents.values)  # on the host, where the smallest numbers are not 0
    power = int(np.frexp(np.max(np.abs(values), initial=0))[1])
    if abs(power) <= _FAR:
        return documents, 1.0
    with np.errstate(over="ignore"):
        factor = float(np.ldexp(1.0, power))  # infinite for the largest numbers of float64
    return dataclasses.replace(documents, values=jax.device_put(np.ldexp(values, -power))), factor


@precise
def truncated_svd(documents: Terms, k: int, *, key: jax.Array, basis_factor: float = 2.0,
                  tolerance: float = TOLERANCE):
    """Truncated singular value decomposition of sparse documents, ``D ≈ U Σ Vᵀ`` (002 eq. 1).

    Args:
      documents: `Terms`, ``[num_docs, num_terms]``.
      k: number of singular triples, at most ``min(num_docs, num_terms)``.
      key: PRNG key of the random start.
      basis_factor: as for `top_eigh`.
      tolerance: as for `top_eigh`.

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
    checks.random_key(key)
    n, v = documents.num_docs, documents.num_terms
    checks.between(k, "k", min(n, v), "the largest possible rank")
    dtype = documents.values.dtype
    documents, scale = moderate(documents)
    (held,) = sparse.held(documents)
    down, up = functools.partial(_down, held), functools.partial(_up, held)
    small_side = (lambda x: up(down(x))) if v <= n else (lambda x: down(up(x)))
    squares, vectors = top_eigh(small_side, min(n, v), k, key=key, dtype=dtype, basis_factor=basis_factor,
                                tolerance=tolerance, work=2 * cost.sparse(documents.values.shape[0]),
                                whole=_squares(documents))
    images = vectors if v <= n else up(vectors)
    values, right = _singular(squares, images, v > n)
    # A square that is small beside the first may be what rounding leaves of sums as long as these, or a dimension of
    # the documents: the length of its image, which no other one's rounding adds to, tells.
    doubtful = np.flatnonzero(~(np.asarray(squares) > np.finfo(dtype).eps * max(n, v) * max(float(squares[0]), 0)))
    if doubtful.size:
        lengths = _lengths(images, int(doubtful[0]), None if v > n else down)
        order = doubtful[0] + np.argsort(-lengths, kind="stable")
        values, right = _measured(values, right, images[:, order], np.sort(lengths)[::-1], v > n)
    return values if scale == 1 else times_power(values, scale), fix_signs(right)


def _squares(documents: Terms) -> Whole:
    """``Dᵀ D``, or ``D Dᵀ`` of fewer documents than terms."""
    if documents.num_terms <= documents.num_docs:
        return Whole(lambda: grams.gram(documents), grams.operations(documents))
    return Whole(lambda: grams.gram(sparse.from_scipy(sparse.to_scipy(documents).T.tocsr())),
                 grams.operations_across(documents))


def _lengths(vectors: jax.Array, start: int, of: Callable | None) -> np.ndarray:
    """Lengths of the columns from ``start`` on, or of their images under ``of``, in float64."""
    lengths = []
    for first in range(start, vectors.shape[1], _FEW):
        few = vectors[:, first : first + _FEW]
        if of is not None:
            few = of(jnp.pad(few, ((0, 0), (0, _FEW - few.shape[1]))))[:, : few.shape[1]]  # one shape to compile
        lengths.append(np.linalg.norm(np.asarray(few, np.float64), axis=0))
    return np.concatenate(lengths)


def _measured(values, right, images, lengths: np.ndarray, divide: bool):
    """Singular values and vectors whose last are measured: lengths and images, and 0 of what no document has."""
    first = max(float(values[0]), float(lengths[0]) if lengths.size == values.size else 0.0)
    kept = lengths > (10 * float(np.finfo(right.dtype).eps)) ** 0.5 * first
    factors = np.where(kept, 1 / np.where(kept, lengths, 1) if divide else 1, 0).astype(right.dtype)
    start = values.size - lengths.size
    return (values.at[start:].set(np.where(kept, lengths, 0).astype(values.dtype)),
            right.at[:, start:].set(jnp.where(kept[None, :], images, 0) * factors[None, :]))


def times_power(values: jax.Array, factor: float) -> jax.Array:
    """Values times a power of two, which may itself be beyond their precision.

    Args:
      values: an array.
      factor: the power of two, as from `moderate`.

    Returns:
      An array of the same shape and type.

    Example:
      >>> times_power(jnp.ones(1, jnp.float32) * 2.0**100, 2.0**-140).tolist() == [2.0**-40]
      True
    """
    if not np.isfinite(factor):
        return values * factor
    power = int(np.frexp(factor)[1]) - 1
    return values * 2.0 ** (power // 2) * 2.0 ** (power - power // 2)


_down, _up = jax.jit(sparse.project), jax.jit(sparse.project_transpose)




@functools.partial(jax.jit, static_argnames="divide")
def _singular(squares, images, divide):
    """Singular values of their squares, and right vectors (still times those values if ``divide``)."""
    values = jnp.sqrt(jnp.maximum(squares, 0))
    return values, images / jnp.where(values > 0, values, 1)[None, :] if divide else images


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
    factor, finite = factored(matrix)
    if not bool(finite):
        raise ValueError(f"{argument}: expected a value that makes the matrix positive definite, got one too small")
    return factor


@jax.jit
def factored(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The Cholesky factor, and whether the matrix has one.

    Args:
      matrix: ``[n, n]`` symmetric; the lower triangle is read.

    Returns:
      ``([n, n], [])``: lower triangular, and a boolean.

    Example:
      >>> factored(jnp.array([[4.0]]))[0].tolist(), bool(factored(jnp.array([[-1.0]]))[1])
      ([[2.0]], False)
    """
    factor = jnp.linalg.cholesky(matrix, symmetrize_input=False)
    return factor, jnp.isfinite(jnp.sum(jnp.diagonal(factor)))


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
