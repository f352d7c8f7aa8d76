"""How far the two sides of held-out pairs agree in each dimension of a projection: weights for search.

A projection is learned so that the two sides of its training pairs agree. On new pairs they agree well in the first
dimensions, and only by chance in the last. The last dimensions still find mates, through rare words, but not documents
that are only about the same thing. With every dimension multiplied by its agreement, search is therefore about as good
as with the best number of dimensions, which then need not be chosen. Where the mate itself is wanted, these weights
cost a little: leave them out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxsim import checks

WINDOW = 21
"""Neighbouring dimensions whose correlations are averaged."""
FEWEST = 20
"""Held-out pairs below which there is nothing to measure by."""


def agreement(left, right, *, window: int = WINDOW) -> np.ndarray:
    r"""Correlation of the two sides of held-out pairs in every dimension, smoothed over neighbouring ones.

    :math:`r_j = \max(0, \mathrm{corr}(l_{\cdot j}, r_{\cdot j}))` of vectors of unit length, then the mean of the
    ``window`` dimensions around each, fewer at the ends. A dimension in which a side does not vary has 0 before that.

    Args:
      left: ``[n, k]`` vectors of one side of pairs that the projection was not learned from; any float dtype.
      right: ``[n, k]`` of the other side.
      window: odd number of neighbours, 1 for none.

    Returns:
      ``[k]`` float32 in [0, 1].

    Raises:
      ValueError: for other shapes, values that are not finite, fewer than two pairs, or an even window.

    Example:
      >>> sides = np.array([[1.0, 0.1], [-1.0, 0.1], [1.0, -0.1], [-1.0, -0.1]])
      >>> agreement(sides, sides * [1, -1], window=1).tolist()
      [1.0, 0.0]
    """
    left, right = (_unit(side, name) for side, name in ((left, "left"), (right, "right")))
    checks.expect(left.shape == right.shape, "right", f"shape {left.shape} (as left)", f"shape {right.shape}")
    checks.expect(len(left) > 1, "left", "at least two pairs", len(left))
    checks.positive_int(window, "window")
    checks.expect(window % 2 == 1, "window", "an odd number", window)
    left, right = left - left.mean(axis=0), right - right.mean(axis=0)
    squares = np.sqrt(np.square(left).sum(axis=0) * np.square(right).sum(axis=0))
    varies = squares > 1e-12 * len(left)
    correlations = np.divide((left * right).sum(axis=0), squares, out=np.zeros_like(squares), where=varies).clip(0, 1)
    sums = np.concatenate([[0.0], np.cumsum(correlations)])
    places = np.arange(len(correlations))
    first = np.maximum(places - window // 2, 0)
    last = np.minimum(places + window // 2 + 1, len(correlations))
    return ((sums[last] - sums[first]) / (last - first)).clip(0, 1).astype(np.float32)


def cross_fitted(
    fit: Callable[[np.ndarray], Callable[[np.ndarray], tuple]], folds: Sequence[int] | np.ndarray, *,
    window: int = WINDOW
) -> np.ndarray:
    """Agreement of a projection of all pairs, from fits that each leave a part of the pairs out.

    Dimensions of the fits are matched by their place, which is why they are smoothed: eigenvectors of neighbouring
    eigenvalues may change places from fit to fit.

    Args:
      fit: learns from the pairs of some rows, and returns what gives ``(left, right)`` vectors of other rows.
      folds: ``[m]`` number of the part of each pair; near-duplicates belong into one part.
      window: as for `agreement`.

    Returns:
      ``[k]`` float32, the mean of the parts' agreements by their numbers of pairs, where k is the least dimension of
      any fit.

    Raises:
      ValueError: for fewer than two parts.

    Example:
      >>> sides = np.array([[1.0, 0.0], [-1.0, 0.0], [1.0, 0.0], [-1.0, 0.0]])
      >>> cross_fitted(lambda rows: lambda held: (sides[held], sides[held]), [0, 0, 1, 1], window=1).tolist()
      [1.0, 0.0]
    """
    folds = np.asarray(folds)
    numbers = np.unique(folds)
    checks.expect(len(numbers) > 1, "folds", "at least two parts", len(numbers))
    parts, sizes = [], []
    for number in numbers:
        held = np.flatnonzero(folds == number)
        parts.append(agreement(*fit(np.flatnonzero(folds != number))(held), window=window))
        sizes.append(len(held))
    k = min(map(len, parts))
    return np.average([part[:k] for part in parts], axis=0, weights=sizes).astype(np.float32)


def _unit(side, name: str) -> np.ndarray:
    """Rows of unit length in float64; zero rows stay."""
    side = np.asarray(side, np.float64)
    checks.expect(side.ndim == 2, name, "shape (n, k)", f"shape {side.shape}")
    checks.expect(bool(np.isfinite(side).all()), name, "finite values", "NaN or infinity")
    length = np.linalg.norm(side, axis=1, keepdims=True)
    return np.divide(side, length, out=np.zeros_like(side), where=length > 0)
