"""Bootstrap intervals of statistics that are no means: areas, F1, correlations."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from jaxsim import checks

_DRAWS = 2**20  # at once


def interval(
    statistic: Callable[..., np.ndarray], *values, key: jax.Array, strata=None, level: float = 0.95,
    num_samples: int = 1_000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic of items, which are drawn with all that is known of them.

    Args:
      statistic: takes arrays ``[b, n]`` in place of each of ``values`` and gives ``[b]``.
      *values: arrays ``[n]``, item by item, n at least 2.
      key: JAX random key.
      strata: ``[n]`` kinds of items: every sample has as many of each kind as there are. None: all are of one.
      level: coverage, in (0, 1).
      num_samples: how many resamples of n items to draw.

    Returns:
      ``(low, high)``, in the unit of the statistic.

    Raises:
      ValueError: for fewer than 2 items, arrays of several lengths, a level outside (0, 1), or num_samples below 1.

    Example:
      >>> from jaxsim import metrics
      >>> scores, labels = [0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0]
      >>> interval(metrics.auc, scores, labels, key=jax.random.key(0), strata=labels)
      (1.0, 1.0)
    """
    checks.expect(0 < level < 1, "level", "a coverage in (0, 1)", level)
    checks.positive_int(num_samples, "num_samples")
    arrays = [np.asarray(one) for one in values]
    n = arrays[0].size if arrays else 0
    checks.expect(n >= 2 and all(one.shape == (n,) for one in arrays), "values", "arrays [n], n at least 2",
                  [one.shape for one in arrays])  # fmt: skip
    strata = np.zeros(n) if strata is None else np.asarray(strata)
    checks.expect(strata.shape == (n,), "strata", f"shape {(n,)} (as values)", strata.shape)
    kinds = [np.flatnonzero(strata == kind) for kind in np.unique(strata)]
    found, batch = [], max(1, _DRAWS // n)
    for number, start in enumerate(range(0, num_samples, batch)):
        keys = jax.random.split(jax.random.fold_in(key, number), len(kinds))
        size = min(batch, num_samples - start)
        drawn = [kind[np.asarray(jax.random.randint(one, (size, kind.size), 0, kind.size, np.int32))]
                 for one, kind in zip(keys, kinds, strict=True)]  # fmt: skip
        rows = np.concatenate(drawn, axis=1)
        found.append(np.asarray(statistic(*(one[rows] for one in arrays))))
    low, high = np.quantile(np.concatenate(found), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)
