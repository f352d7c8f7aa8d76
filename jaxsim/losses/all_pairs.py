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


@functools.partial(jax.custom_vjp, nondiff_argnums=(4, 5, 6))
def _all_pairs(left, right, gamma, groups, sweep, tile, precision):
    return _swept(left, right, gamma, groups, sweep, tile, precision, False)


def _swept(left, right, gamma, groups, sweep, tile, precision, with_grad):
    """The sum of the loss and, with its gradients in the unit vectors."""
    own, ids = jnp.sum(left * right, axis=-1), jnp.arange(left.shape[0], dtype=jnp.int32)
    rows, columns = tiles.Side(left, own, ids, groups), tiles.Side(right, own, ids, groups)
    swept = sweep(rows, columns, gamma, tile, with_grad=with_grad, precision=precision)
    return tiles.finished(swept, left, right)


def _all_pairs_forward(left, right, gamma, groups, sweep, tile, precision):
    # The gradient is ready when the loss is: three matrix products in all, no second pass, no m x m matrix.
    total, d_left, d_right = _swept(left, right, gamma, groups, sweep, tile, precision, True)
    return total, (gamma * d_left, gamma * d_right)


def _all_pairs_backward(sweep, tile, precision, saved, grad):
    del sweep, tile, precision
    d_left, d_right = saved
    return grad * d_left, grad * d_right, jnp.zeros_like(grad), None


_all_pairs.defvjp(_all_pairs_forward, _all_pairs_backward)


def negatives(groups, dtype) -> jax.Array:
    """How many ordered pairs differ in every column, as a float: it overflows 32-bit integers.

    Args:
      groups: ``[m, c]`` integers.
      dtype: of the result.

    Returns:
      Scalar.

    Example:
      >>> float(negatives(jnp.array([[0, 0], [0, 1], [1, 1]]), jnp.float32))
      2.0
    """
    m, num_columns = groups.shape
    found = jnp.asarray(m * (m - 1.0), dtype)
    for size in range(1, num_columns + 1):  # inclusion and exclusion
        for some in itertools.combinations(range(num_columns), size):
            found += (-1) ** size * _alike([groups[:, column] for column in some], dtype)
    return found


def _alike(columns, dtype) -> jax.Array:
    """How many ordered pairs i != j are equal in all columns."""
    m = columns[0].shape[0]
    order = jnp.lexsort(columns)
    new = functools.reduce(jnp.logical_or, [jnp.diff(column[order]) != 0 for column in columns])
    run = jnp.cumsum(jnp.concatenate([jnp.zeros(1, jnp.int32), new.astype(jnp.int32)]))
    sizes = jnp.zeros(m, dtype).at[run].add(1)
    return jnp.sum(sizes * (sizes - 1))


def _sweep(block_size, shape, dtype, on_chip):
    """What sums over the pairs, and its tile."""
    if not on_chip:
        return tiles.sweep, tiles.tile(block_size, shape[0])
    from jaxsim.losses import tile_kernel  # Pallas takes a while to import, and is rarely wanted

    checks.expect(dtype == jnp.float32, "on_chip", "embeddings of float32 or less", dtype)
    return tile_kernel.sweep, tile_kernel.tile(block_size, shape[1])


def all_pairs_logistic(left, right, *, gamma=10.0, groups=None, block_size: int | tuple[int, int] | None = None,
                       precision: str | None = None, on_chip: bool = False) -> jax.Array:
    r"""Mean logistic loss over **all** negatives of a batch of pairs, in both directions, exactly (000 §4.1.1, Eq. 2).

    With :math:`c_{ij} = \cos(p_i, q_j)`,

    .. math:: \frac{1}{2m(m-1)} \sum_{i \ne j} \log(1 + e^{-\gamma(c_{ii} - c_{ij})})
              + \log(1 + e^{-\gamma(c_{jj} - c_{ij})})

    Both directions share one tile of scores, so value and gradient take three matrix products of ``2 m^2 k``
    operations, and the gradient is computed in the forward pass. Memory is ``O(rows * columns + m * k)`` for tiles of
    ``rows`` by ``columns`` scores; on accelerators a tile has all columns, ``O(rows * m + m * k)``.

    Args:
      left: ``[m, k]`` floating embeddings; row i is the mate of row i of ``right``.
      right: ``[m, k]`` floating embeddings.
      gamma: positive scalar scale; a constant, no gradient flows into it.
      groups: ``[m]`` integers, or None. Pairs of one group, such as near-duplicates or several answers of one
        question, are then not negatives of each other, and the mean is over the pairs of different groups. With
        ``[m, c]``, pairs that are equal in any column are not compared: say, a column of questions, and of answers.
      block_size: rows of a tile, or rows and columns, as for `tiles.tile`; it need not divide ``m``.
      precision: of the matrix products, as for `precision.matmul`; JAX's default for the device unless given.
      on_chip: whether a Pallas kernel computes the loss, which never writes a tile's scores to the device's memory and
        computes them twice. Not the default: its speed has not been measured. A CPU interprets it, slowly.

    Returns:
      Scalar, in nats: log 2 for a collapsed model, 0 where there are no negatives (``m`` of 0 or 1, or one group).

    Raises:
      ValueError: if the shapes differ, are not two-dimensional, ``block_size`` is below 1, or ``groups`` are not
        ``m`` integers; with ``on_chip``, also for float64, and for a ``block_size`` that is not of powers of two from
        16.

    Example:
      >>> pairs = jnp.eye(3)
      >>> round(float(all_pairs_logistic(pairs, pairs, gamma=1.0)), 4)
      0.3133
      >>> twins = jnp.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
      >>> [round(float(all_pairs_logistic(twins, twins, gamma=1.0, groups=g)), 4) for g in (None, jnp.array([0, 0, 1]))]
      [0.4399, 0.3133]

    Relations: `logistic_pairwise` of every difference; in contrastive learning's terms, all in-batch negatives with a
    pairwise rather than a softmax loss.
    """
    left, right = jnp.asarray(left), jnp.asarray(right)
    checks.expect(left.ndim == 2 and left.shape[1] > 0, "left", "shape [m, k], k at least 1", left.shape)
    checks.expect(right.shape == left.shape, "right", f"shape {left.shape} (as left)", right.shape)
    dtype = jnp.result_type(left, right, jnp.float32)
    sweep, tile = _sweep(block_size, left.shape, dtype, on_chip)
    if not isinstance(gamma, jax.core.Tracer):
        checks.positive(gamma, "gamma")
    if groups is not None:
        groups = groups if isinstance(groups, jax.Array) else np.asarray(groups)
        fits = groups.ndim in (1, 2) and groups.shape[:1] == left.shape[:1] and 0 not in groups.shape[1:]
        checks.expect(fits and jnp.issubdtype(groups.dtype, jnp.integer), "groups",
                      f"{left.shape[0]} integers (one a pair), or as many rows of them",
                      f"{groups.dtype} of shape {groups.shape}")
        groups = jnp.asarray(groups).reshape(groups.shape[0], -1)
    left, right = unit(left.astype(dtype)), unit(right.astype(dtype))
    m = left.shape[0]
    if m < 2:
        return 0 * (jnp.sum(left) + jnp.sum(right))
    # Divided as a float: 2 m (m - 1) overflows 32-bit integers from m = 32,769 on.
    count = 2.0 * m * (m - 1.0) if groups is None else jnp.maximum(2 * negatives(groups, dtype), 1)
    return _all_pairs(left, right, jnp.asarray(gamma, dtype), groups, sweep, tile, checked(precision)) / count
