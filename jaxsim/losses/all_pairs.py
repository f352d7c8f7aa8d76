r"""The logistic loss over all pairs of a collection: too many terms to hold, so only their mean is returned."""

from __future__ import annotations

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.losses import tiles
from jaxsim.sparse import unit
from jaxsim.sparse.precision import checked
from jaxsim.sparse.products import vary_as, vary_together

_MEASURED = 8_192
"""Pairs from which on a kernel was measured."""
_FEW = 0.01
"""Share of all ordered pairs below which a count of negatives by differences has too few digits."""
_EXACT = 2**24
"""Pairs up to which float32 counts without rounding."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(5, 6, 7))
def _all_pairs(left, right, gamma, groups, weights, sweep, tile, precision):
    return _swept(left, right, gamma, groups, weights, sweep, tile, precision, False)


def _swept(left, right, gamma, groups, weights, sweep, tile, precision, with_grad):
    """The sum of the loss and, with its gradients in the unit vectors."""
    own, ids = jnp.sum(left * right, axis=-1), jnp.arange(left.shape[0], dtype=jnp.int32)
    rows, columns = tiles.Side(left, own, ids, groups, weights), tiles.Side(right, own, ids, groups, weights)
    swept = sweep(rows, columns, gamma, tile, with_grad=with_grad, precision=precision)
    return tiles.finished(swept, left, right)


def _all_pairs_forward(left, right, gamma, groups, weights, sweep, tile, precision):
    # The gradient is ready when the loss is: three matrix products in all, no second pass, no m x m matrix.
    total, d_left, d_right = _swept(left, right, gamma, groups, weights, sweep, tile, precision, True)
    return total, (d_left, d_right, left, right, gamma)


def _all_pairs_backward(sweep, tile, precision, saved, grad):
    del sweep, tile, precision
    d_left, d_right, left, right, gamma = saved
    # The loss is a function of gamma times the unit vectors of one side: of both, the gradient is that in the product.
    d_gamma = grad * jnp.sum(left * d_left)
    d_left, d_right = grad * (gamma * d_left), grad * (gamma * d_right)
    return vary_as(d_left, left), vary_as(d_right, right), vary_as(d_gamma, gamma), None, None


_all_pairs.defvjp(_all_pairs_forward, _all_pairs_backward)


def negatives(groups, dtype, weights=None) -> jax.Array:
    """How many ordered pairs differ in every column, as a float: it overflows 32-bit integers.

    Args:
      groups: ``[m, c]`` integers.
      dtype: of the result.
      weights: ``[m]`` at least 0: an ordered pair then counts as often as the product of the weights of both. None: 1.

    Returns:
      Scalar. Where hardly any pair differs, the count of all others would take its digits away: it is then taken in
      float64, on the host, of arrays that are not traced, and without a difference of one column that is.

    Example:
      >>> groups = jnp.array([[0, 0], [0, 1], [1, 1]])
      >>> float(negatives(groups, jnp.float32)), float(negatives(groups, jnp.float32, jnp.array([3.0, 1, 2])))
      (2.0, 12.0)
    """
    m, num_columns = groups.shape
    whole = found = jnp.asarray(m * (m - 1.0), dtype) if weights is None else _products(weights)
    traced = any(isinstance(one, jax.core.Tracer) for one in (groups, weights))
    if not traced and (weights is not None or m * (m - 1) >= _EXACT):
        few = _few_on_host(np.asarray(groups), weights)
        if few is not None:
            return jnp.asarray(few, dtype)
    for size in range(1, num_columns + 1):  # inclusion and exclusion
        for some in itertools.combinations(range(num_columns), size):
            found += (-1) ** size * _alike([groups[:, column] for column in some], dtype, weights)
    if traced and num_columns == 1:
        return jnp.where(found < _FEW * whole, _products(_sizes([groups[:, 0]], dtype, weights)), found)
    return found


def _few_on_host(groups: np.ndarray, weights) -> float | None:
    """The count in float64, if it is small beside that of all pairs; otherwise None."""
    m, num_columns = groups.shape
    weights = np.ones(m) if weights is None else np.asarray(weights, np.float64)
    whole = found = _products_on_host(weights)
    for size in range(1, num_columns + 1):
        for some in itertools.combinations(range(num_columns), size):
            run = np.unique(groups[:, some], axis=0, return_inverse=True)[1].ravel()
            found += (-1) ** size * float(np.sum(np.bincount(run, weights) ** 2) - np.sum(weights**2))
    if not found < _FEW * whole:
        return None
    if num_columns == 1:
        return _products_on_host(np.bincount(np.unique(groups, return_inverse=True)[1].ravel(), weights))
    return max(found, 0.0)


def _products(weights) -> jax.Array:
    """The sum of the products of the weights of all ordered pairs i != j; nothing is subtracted, so it stays exact."""
    return 2 * jnp.sum(weights[1:] * jnp.cumsum(weights)[:-1])


def _products_on_host(weights: np.ndarray) -> float:
    return 2 * float(np.sum(weights[1:] * np.cumsum(weights)[:-1]))


def _alike(columns, dtype, weights) -> jax.Array:
    """How many ordered pairs i != j are equal in all columns."""
    sizes = _sizes(columns, dtype, weights)
    if weights is None:
        return jnp.sum(sizes * (sizes - 1))
    return jnp.sum(sizes**2) - jnp.sum(weights**2)


def _sizes(columns, dtype, weights) -> jax.Array:
    """``[m]`` weights of the pairs that are equal in all columns, each kind once; then zeros."""
    m = columns[0].shape[0]
    order = jnp.lexsort(columns)
    new = functools.reduce(jnp.logical_or, [jnp.diff(column[order]) != 0 for column in columns])
    run = jnp.cumsum(jnp.concatenate([jnp.zeros(1, jnp.int32), new.astype(jnp.int32)]))
    return jnp.zeros(m, dtype).at[run].add(1 if weights is None else weights[order])


def checked_groups(groups, m: int) -> jax.Array | None:
    """Groups of the pairs, checked.

    Args:
      groups: as for `all_pairs_logistic`.
      m: number of pairs.

    Returns:
      ``[m, c]`` int32, of a NumPy array numbered anew, or None.

    Raises:
      ValueError: for another number of them, or others than integers.

    Example:
      >>> checked_groups(np.array([7, 2**40]), 2).tolist()
      [[0], [1]]
    """
    if groups is None:
        return None
    groups = groups if isinstance(groups, jax.Array) else np.asarray(groups)
    fits = groups.ndim in (1, 2) and groups.shape[:1] == (m,) and 0 not in groups.shape[1:]
    checks.expect(fits and jnp.issubdtype(groups.dtype, jnp.integer), "groups",
                  f"{m} integers (one a pair), or as many rows of them", f"{groups.dtype} of shape {groups.shape}")
    groups = groups[:, None] if groups.ndim == 1 else groups
    if isinstance(groups, np.ndarray):  # numbered anew: JAX would cut integers of 64 bits
        columns = [np.unique(column, return_inverse=True)[1] for column in groups.T]
        groups = np.stack(columns, axis=1).astype(np.int32)
    return jnp.asarray(groups)


def _checked_weights(weights, m: int, dtype) -> jax.Array | None:
    """Weights of the pairs, the largest 1: no product of two overflows, and the mean does not change."""
    if weights is None:
        return None
    weights = weights if isinstance(weights, jax.Array) else np.asarray(weights)
    real = jnp.issubdtype(weights.dtype, jnp.floating) or jnp.issubdtype(weights.dtype, jnp.integer)
    checks.expect(real and weights.shape == (m,), "weights", f"{m} numbers (one a pair)",
                  f"{weights.dtype} of shape {weights.shape}")
    if not isinstance(weights, jax.core.Tracer):
        checks.expect(bool(np.all(np.isfinite(weights) & (weights >= 0))), "weights", "finite numbers of at least 0",
                      "others")
    if isinstance(weights, np.ndarray) and weights.size and weights.max() > 0:  # before numbers of 64 bits are cut
        weights = np.asarray(weights, np.float64) / weights.max()
    weights = jax.lax.stop_gradient(jnp.asarray(weights, dtype))
    largest = jnp.max(weights, initial=0)
    return weights / jnp.where(largest > 0, largest, 1)


def _count(m: int, groups, weights, dtype):
    """What the sum over all compared pairs, in both directions, is divided by."""
    if weights is not None:
        total = 2 * (_products(weights) if groups is None else negatives(groups, dtype, weights))
        return jnp.where(total > 0, total, 1)
    # Divided as a float: 2 m (m - 1) overflows 32-bit integers from m = 32,769 on.
    return 2.0 * m * (m - 1.0) if groups is None else jnp.maximum(2 * negatives(groups, dtype), 1)


def _sweep(block_size, shape, dtype, on_chip, weights, precision):
    """What sums over the pairs, its tile, and the precision of its products."""
    if on_chip is None:
        on_chip = weights is None and dtype == jnp.float32 and _faster_on_chip(block_size, shape[0], precision)
    if not on_chip:
        return tiles.sweep, tiles.tile(block_size, shape[0]), precision
    checks.expect(weights is None, "on_chip", "False, with weights", True)
    checks.expect(dtype == jnp.float32, "on_chip", "embeddings of float32 or less", dtype)
    # Pallas takes a while to import, and is rarely wanted.
    if jax.default_backend() == "gpu":
        from jaxsim.losses import weight_kernel

        wrong = weight_kernel.lacking()
        checks.expect(wrong is None, "on_chip", *(wrong or ("", "")))
        return weight_kernel.sweep, block_size, _on_gpu(precision)
    from jaxsim.losses import tile_kernel

    return tile_kernel.sweep, tile_kernel.tile(block_size, shape[1]), precision


def _on_gpu(precision: str | None) -> str | None:
    """A policy's name; that of JAX's default on GPUs with such units, unless a setting of JAX names another."""
    if precision is None and jax.config.jax_default_matmul_precision in (None, "default", "tensorfloat32"):
        return "tf32"
    return precision


def _faster_on_chip(block_size, m: int, precision) -> bool:
    """Whether the default device has a kernel for this that was measured to be faster."""
    if jax.default_backend() != "gpu" or isinstance(block_size, tuple) or m < _MEASURED:
        return False
    from jaxsim.losses import weight_kernel

    return _on_gpu(precision) in weight_kernel.PRECISIONS and weight_kernel.lacking() is None


def all_pairs_logistic(left, right, *, gamma=10.0, groups=None, weights=None,
                       block_size: int | tuple[int, int] | None = None, precision: str | None = None,
                       on_chip: bool | None = None) -> jax.Array:
    r"""Mean logistic loss over **all** negatives of a batch of pairs, in both directions, exactly (000 §4.1.1, Eq. 2).

    With :math:`c_{ij} = \cos(p_i, q_j)`,

    .. math:: \frac{1}{2m(m-1)} \sum_{i \ne j} \log(1 + e^{-\gamma(c_{ii} - c_{ij})})
              + \log(1 + e^{-\gamma(c_{jj} - c_{ij})})

    Both directions share one tile of scores, so value and gradient take three matrix products of ``2 m^2 k``
    operations, and the gradient is computed in the forward pass. Memory is ``O(rows * columns + m * k)`` for tiles of
    ``rows`` by ``columns`` scores; on accelerators a tile has all columns, ``O(rows * m + m * k)``.

    With weights w, both terms of i and j are multiplied by :math:`w_i w_j`, and the sum is divided by that of all
    :math:`2 w_i w_j`. A pair of weight 3 therefore counts three times, as a positive and as a negative of others: as
    three copies of it would in one group.

    Args:
      left: ``[m, k]`` floating embeddings; row i is the mate of row i of ``right``.
      right: ``[m, k]`` floating embeddings.
      gamma: positive scalar scale; differentiable, so that it can be learned as a temperature is.
      groups: ``[m]`` integers, or None. Pairs of one group, such as near-duplicates or several answers of one
        question, are then not negatives of each other, and the mean is over the pairs of different groups. With
        ``[m, c]``, pairs that are equal in any column are not compared: say, a column of questions, and of answers.
      weights: ``[m]`` finite numbers of at least 0, how often each pair counts, on any scale; None: all the same.
        Constants, no gradient flows into them.
      block_size: rows of a tile, or rows and columns, as for `tiles.tile`; it need not divide ``m``.
      precision: of the matrix products, as for `precision.matmul`; JAX's default for the device unless given.
      on_chip: whether a Pallas kernel computes the loss, which never writes scores to the device's memory: on GPUs of
        NVIDIA's Hopper generation with a ``precision`` of "bfloat16" or "tf32" (`weight_kernel`; JAX 0.11 or newer),
        and on TPUs (`tile_kernel`, which a CPU interprets, slowly). None: where it was measured to be faster, which is
        on such GPUs, from 8,192 pairs on, without weights of pairs.

    Returns:
      Scalar, in nats: log 2 for a collapsed model, 0 where there are no negatives (``m`` of 0 or 1, or one group).

    Raises:
      ValueError: if the shapes differ, are not two-dimensional, ``block_size`` is below 1, or ``groups`` are not
        ``m`` integers, or ``weights`` not ``m`` such numbers; with ``on_chip``, also for weights, for float64, for
        other GPUs and precisions, and for a ``block_size`` that its kernel does not take.

    Example:
      >>> pairs = jnp.eye(3)
      >>> round(float(all_pairs_logistic(pairs, pairs, gamma=1.0)), 4)
      0.3133
      >>> twins = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
      >>> [round(float(all_pairs_logistic(twins, twins, gamma=1.0, groups=g)), 4) for g in (None, jnp.array([0, 0, 1]))]
      [0.4399, 0.3133]
      >>> round(float(all_pairs_logistic(twins, twins, gamma=1.0, weights=jnp.array([1.0, 1.0, 6.0]))), 4)
      0.3425

    Relations: `logistic_pairwise` of every difference; in contrastive learning's terms, all in-batch negatives with a
    pairwise rather than a softmax loss.
    """
    left, right = jnp.asarray(left), jnp.asarray(right)
    checks.expect(left.ndim == 2 and left.shape[1] > 0, "left", "shape [m, k], k at least 1", left.shape)
    checks.expect(right.shape == left.shape, "right", f"shape {left.shape} (as left)", right.shape)
    dtype = jnp.result_type(left, right, jnp.float32)
    sweep, tile, products = _sweep(block_size, left.shape, dtype, on_chip, weights, checked(precision))
    if not isinstance(gamma, jax.core.Tracer):
        checks.positive(gamma, "gamma")
    m = left.shape[0]
    groups, weights = checked_groups(groups, m), _checked_weights(weights, m, dtype)
    left, right = vary_together(unit(left.astype(dtype)), unit(right.astype(dtype)))
    if m < 2:
        return 0 * (jnp.sum(left) + jnp.sum(right))
    total = _all_pairs(left, right, jnp.asarray(gamma, dtype), groups, weights, sweep, tile, products)
    return total / _count(m, groups, weights, dtype)
