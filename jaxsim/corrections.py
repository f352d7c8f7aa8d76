"""Corrections of p-values for many tests; `jaxsim.significance` offers them beside the tests."""

from __future__ import annotations

import numpy as np

from jaxsim import checks

__all__ = ["bonferroni", "false_discovery_rate"]


def bonferroni(pvalues, *, num_tests: int | None = None) -> np.ndarray:
    """Adjusted p-values, ``min(1, p * num_tests)``.

    Args:
      pvalues: ``[n]`` p-values.
      num_tests: How many tests were made in all; n if None.

    Returns:
      ``[n]`` float64, to be compared with the level itself.

    Raises:
      ValueError: On other shapes, values outside [0, 1], or num_tests below n.

    Example:
      >>> bonferroni([0.01, 0.6]).tolist()
      [0.02, 1.0]
    """
    pvalues = _probabilities(pvalues)
    num_tests = pvalues.size if num_tests is None else num_tests
    checks.positive_int(num_tests, "num_tests")
    checks.expect(num_tests >= pvalues.size, "num_tests", f"at least {pvalues.size} (p-values)", num_tests)
    return np.minimum(1.0, pvalues * num_tests)


def false_discovery_rate(pvalues) -> np.ndarray:
    r"""Benjamini and Hochberg's adjusted p-values, :math:`\min_{j \ge i} \min(1, p_{(j)} n / j)`.

    Args:
      pvalues: ``[n]`` p-values in any order.

    Returns:
      ``[n]`` float64 in the same order: calling those at most ``q`` significant keeps the expected share of false
      discoveries among them at most ``q``.

    Raises:
      ValueError: On other shapes or values outside [0, 1].

    Example:
      >>> false_discovery_rate([0.01, 0.5, 0.02, 0.04]).round(4).tolist()
      [0.04, 0.5, 0.04, 0.0533]
    """
    pvalues = _probabilities(pvalues)
    order = np.argsort(pvalues)[::-1]
    scaled = pvalues[order] * pvalues.size / np.arange(pvalues.size, 0, -1)
    adjusted = np.empty_like(pvalues)
    adjusted[order] = np.minimum(1.0, np.minimum.accumulate(scaled))
    return adjusted


def _probabilities(pvalues) -> np.ndarray:
    pvalues = checks.real(pvalues, "pvalues")
    checks.expect(pvalues.ndim == 1, "pvalues", "shape (n,)", pvalues.shape)
    wrong = pvalues[(pvalues < 0) | (pvalues > 1)]
    checks.expect(wrong.size == 0, "pvalues", "values in [0, 1]", wrong[:1].sum())
    return pvalues
