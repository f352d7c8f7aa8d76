"""The loops of `host`, compiled by numba."""

from __future__ import annotations

import math

import numba
import numpy as np

_FAST = {"contract", "reassoc", "nsz"}
"""What the sum of a product may do; NaN and infinity keep their meaning."""


@numba.njit(inline="always")
def _ratio(value, rate, tiny, zero):  # pragma: no cover - compiled
    """A count over its rate, and its log-likelihood; both 0 for an entry of rate 0."""
    if value > 0 and rate > tiny:
        return value / rate, value * math.log(rate)
    return zero, 0.0


@numba.njit(inline="always")
def _row(columns, values, own, other, tiny, ratios, counts):  # pragma: no cover - compiled
    """Expected counts of a row of weights ``own``, the ratio of each count to its rate, and the log-likelihood.

    Four counts at a time share what is read and written of ``own`` and ``counts``.
    """
    topics, total, zero, slot = own.size, 0.0, own.dtype.type(0), 0
    counts[:] = 0
    while slot + 4 <= columns.size:
        a, b = other[columns[slot]], other[columns[slot + 1]]
        c, d = other[columns[slot + 2]], other[columns[slot + 3]]
        of_a = of_b = of_c = of_d = zero
        for topic in range(topics):
            weight = own[topic]
            of_a += weight * a[topic]
            of_b += weight * b[topic]
            of_c += weight * c[topic]
            of_d += weight * d[topic]
        of_a, log_a = _ratio(values[slot], of_a, tiny, zero)
        of_b, log_b = _ratio(values[slot + 1], of_b, tiny, zero)
        of_c, log_c = _ratio(values[slot + 2], of_c, tiny, zero)
        of_d, log_d = _ratio(values[slot + 3], of_d, tiny, zero)
        for topic in range(topics):
            counts[topic] += of_a * a[topic] + of_b * b[topic] + of_c * c[topic] + of_d * d[topic]
        ratios[slot], ratios[slot + 1], ratios[slot + 2], ratios[slot + 3] = of_a, of_b, of_c, of_d
        total += log_a + log_b + log_c + log_d
        slot += 4
    for last in range(slot, columns.size):
        a, of_a = other[columns[last]], zero
        for topic in range(topics):
            of_a += own[topic] * a[topic]
        of_a, log_a = _ratio(values[last], of_a, tiny, zero)
        for topic in range(topics):
            counts[topic] += of_a * a[topic]
        ratios[last] = of_a
        total += log_a
    for topic in range(topics):
        counts[topic] *= own[topic]
    return total


@numba.njit(fastmath=_FAST, nogil=True, cache=True, error_model="numpy")
def expected(starts, columns, values, own, other, tiny, ratios, counts, likelihood, first, last):  # pragma: no cover
    """`_row` of the rows from ``first`` to ``last``."""
    for row in range(first, last):
        begin, end = starts[row], starts[row + 1]
        likelihood[row] = _row(columns[begin:end], values[begin:end], own[row], other, tiny, ratios[begin:end],
                               counts[row])


@numba.njit(fastmath=_FAST, nogil=True, cache=True, error_model="numpy")
def fold(starts, columns, values, words, tiny, prior, iterations, theta, first, last):  # pragma: no cover - compiled
    """Some iterations for θ of the rows from ``first`` to ``last``, whose words stay near the processor meanwhile."""
    topics, longest = words.shape[1], 0
    for row in range(first, last):
        longest = max(longest, starts[row + 1] - starts[row])
    ratios, counts = np.empty(longest, words.dtype), np.empty(topics, words.dtype)
    for row in range(first, last):
        begin, end, own = starts[row], starts[row + 1], theta[row]
        own[:] = 1 / topics
        for _ in range(iterations):
            _row(columns[begin:end], values[begin:end], own, words, tiny, ratios, counts)
            total = words.dtype.type(0)
            for topic in range(topics):
                counts[topic] += prior
                total += counts[topic]
            for topic in range(topics):
                own[topic] = counts[topic] / total if total > 0 else words.dtype.type(1) / topics
