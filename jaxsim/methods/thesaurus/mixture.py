"""Mixtures of spaces: weighted sums of their cosines, with weights chosen on questions for development."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim import checks


def mix(cosines: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Weighted sum of cosines; a space that does not know a pair has no say in it.

    Args:
      cosines: ``[num_spaces, ...]``; NaN where a space does not know a word.
      weights: ``[num_spaces]`` at least 0.

    Returns:
      ``[...]`` float64; NaN where no space of positive weight knows the pair.

    Example:
      >>> mix(np.array([[-0.5, np.nan], [1.0, 0.25]]), [1.0, 0.5]).tolist()
      [0.0, 0.125]
    """
    cosines, weights = np.asarray(cosines, np.float64), np.asarray(weights, np.float64)
    checks.expect(weights.shape == cosines.shape[:1], "weights", f"{cosines.shape[0]} (as spaces)", weights.shape)
    checks.expect(bool(np.all(weights >= 0) and weights.any()), "weights", "numbers of at least 0, one above", "others")
    used = weights > 0
    known = ~np.isnan(cosines[used])
    total = np.tensordot(weights[used], np.where(known, cosines[used], 0.0), axes=1)
    return np.where(known.any(axis=0), total, np.nan)
