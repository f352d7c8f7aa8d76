"""Groups of pairs that are not negatives of each other (near-duplicates, or answers of one question), and weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks


def checked_groups(groups, num_pairs: int) -> jax.Array:
    """Group numbers, of any integers, as int32 from 0.

    Args:
      groups: ``[m]`` or ``[m, c]`` integers.
      num_pairs: ``m``.

    Returns:
      ``[m, c]`` int32; equal where ``groups`` are.

    Raises:
      ValueError: for another shape, numbers that are not whole, or a single group of several pairs (no negatives).

    Example:
      >>> checked_groups([7, 2**40, 7], 3).tolist()
      [[0], [1], [0]]
    """
    groups = np.asarray(groups)
    fits = groups.ndim in (1, 2) and groups.shape[:1] == (num_pairs,) and 0 not in groups.shape[1:]
    checks.expect(fits and np.issubdtype(groups.dtype, np.integer), "groups",
                  f"{num_pairs} integers (one a pair), or as many rows of them",
                  f"{groups.dtype} of shape {groups.shape}")
    columns = [np.unique(column, return_inverse=True)[1] for column in groups.reshape(num_pairs, -1).T]
    fewest = min(int(column.max()) + 1 for column in columns)
    checks.expect(fewest > 1 or num_pairs == 1, "groups", "at least two groups (no pair has a negative otherwise)",
                  fewest)
    return jnp.asarray(np.stack(columns, axis=1), jnp.int32)


def checked_weights(weights, num_pairs: int, dtype) -> jax.Array | None:
    """Weights of pairs with a mean of 1.

    Args:
      weights: ``[m]`` finite numbers of at least 0, two of them (if ``m`` is not 1) above 0; or None.
      num_pairs: ``m``.
      dtype: of the result.

    Returns:
      ``[m]``; None for None.

    Raises:
      ValueError: for another shape, numbers that are negative or not finite, or fewer than two above 0.

    Example:
      >>> checked_weights([1, 2, 3], 3, jnp.float32).tolist()
      [0.5, 1.0, 1.5]
    """
    if weights is None:
        return None
    found = checks.real(weights, "weights")
    checks.expect(found.shape == (num_pairs,), "weights", f"{checks.counted(num_pairs, 'number')}, one a pair",
                  found.shape)
    checks.expect(bool(np.all(np.isfinite(found) & (found >= 0))), "weights", "finite numbers of at least 0", "others")
    some = int(np.count_nonzero(found))
    least = min(num_pairs, 2)  # one pair has no others to be told apart from
    checks.expect(some >= least, "weights", f"{checks.counted(least, 'number')} above 0 at least", some or "none")
    found = found / found.max()  # no sum overflows
    return jnp.asarray(found / found.mean(), dtype)
