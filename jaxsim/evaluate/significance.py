"""Whether a difference between systems is more than chance, from one value per query.

Tests of two systems (all of them two-sided), bootstrap intervals, corrections for many tests, and the best systems of a
table. A record or caption names the test and the number of queries.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Mapping
from typing import NamedTuple

import jax
import numpy as np
from scipy import stats

from jaxsim import checks

__all__ = ["Comparison", "bonferroni", "bootstrap_interval", "false_discovery_rate", "interval", "jackknife_auc",
           "mcnemar", "paired_t", "smallest_best_set", "standard_error", "unpaired_t"]

_DRAWS = 2**20  # at once
_FAR = 100  # power of two of a largest value from which on its squares are kept away from the edges of their type
_ROUNDING = 1e-13  # of a value: differences that come of another order of sums, and mean nothing


class Comparison(NamedTuple):
    """Outcome of a two-sided test.

    Attributes:
      statistic: What was compared with its distribution; positive where the first system is better.
      pvalue: Probability of a statistic at least as far from 0 when the systems are equal.
      n: Number of values the test rests on.
    """

    statistic: float
    pvalue: float
    n: int


def paired_t(a, b) -> Comparison:
    """Paired t-test: the same queries under two systems.

    Args:
      a: ``[n]`` values of the first system, n at least 2.
      b: ``[n]`` values of the second system, in the same order.

    Returns:
      `Comparison` with n - 1 degrees of freedom; p is 1 if all differences are 0, and 0 if all equal another number.

    Raises:
      ValueError: On unequal or other shapes, fewer than 2 values, NaN or infinity.

    Example:
      >>> round(paired_t([3.0, 4.0, 5.0], [2.0, 2.0, 4.0]).statistic, 6)
      4.0
    """
    difference = _differences(a, b)
    if np.ptp(difference) == 0:
        return _certain(float(difference[0]), difference.size)
    statistic, pvalue = stats.ttest_1samp(difference, 0.0)
    return Comparison(float(statistic), float(pvalue), difference.size)


def unpaired_t(a, b, *, equal_variances: bool = True) -> Comparison:
    """Unpaired t-test, as in 000 §4.1 and 002 §3.2: the two samples are taken as independent.

    Args:
      a: ``[n]`` values of the first system, n at least 2.
      b: ``[m]`` values of the second system, m at least 2.
      equal_variances: Student's test with a pooled variance; False for Welch's.

    Returns:
      `Comparison` with n + m values; statistic 0 and p 1 if all values are equal.

    Raises:
      ValueError: On other shapes, fewer than 2 values, NaN or infinity.

    Example:
      >>> round(unpaired_t([1.0, 2.0, 3.0], [1.0, 2.0, 3.0]).pvalue, 6)
      1.0
    """
    a, b = _moderate(_sample(a, "a"), _sample(b, "b"))
    n, scale = a.size + b.size, max(np.abs(a).max(), np.abs(b).max())
    a, b = _level(a, scale), _level(b, scale)
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return _certain(float(_level(np.array([a[0], b[0]]), scale) @ [1, -1]), n)
    with warnings.catch_warnings():  # SciPy warns of a sample without spread, whose variance is 0 all the same
        warnings.filterwarnings("ignore", "Precision loss", RuntimeWarning)
        statistic, pvalue = stats.ttest_ind(a, b, equal_var=equal_variances)
    return Comparison(float(statistic), float(pvalue), n)


def mcnemar(a, b) -> Comparison:
    """McNemar's exact test of two classifiers on the same items.

    Args:
      a: ``[n]`` 0 or 1, whether the first system is right.
      b: ``[n]`` 0 or 1, whether the second one is.

    Returns:
      `Comparison` whose statistic is the number of items only the first has right minus those only the second has, and
      whose ``n`` is their sum; p is exact binomial, 1 if the systems never differ.

    Raises:
      ValueError: On unequal or other shapes, empty input, or values other than 0 and 1.

    Example:
      >>> mcnemar([1, 1, 1, 1, 0], [0, 0, 0, 1, 0])
      Comparison(statistic=3.0, pvalue=0.25, n=3)
    """
    a, b = checks.real(a, "a"), checks.real(b, "b")
    checks.expect(a.ndim == 1, "a", "shape (n,)", a.shape)
    checks.expect(a.shape == b.shape, "b", f"shape {a.shape} (as a)", b.shape)
    for name, side in (("a", a), ("b", b)):
        wrong = side[(side != 0) & (side != 1)]
        checks.expect(wrong.size == 0, name, "0 or 1", wrong[:1].sum())
    first, second = int(np.sum(a > b)), int(np.sum(b > a))
    n = first + second
    pvalue = float(stats.binomtest(first, n).pvalue) if n else 1.0
    return Comparison(float(first - second), pvalue, n)


def standard_error(values) -> float:
    r"""Standard error of the mean, :math:`\sqrt{\sum_i (x_i - \bar x)^2 / (n - 1) / n}`.

    Args:
      values: ``[n]`` real, n at least 2.

    Returns:
      The standard error, in the unit of the values.

    Raises:
      ValueError: On other shapes, fewer than 2 values, NaN or infinity.

    Example:
      >>> standard_error([1.0, 2.0, 3.0, 2.0]) ** 2 * 6
      1.0
    """
    values = _sample(values, "values")
    power = _power(values)
    values = np.ldexp(_level(values, np.abs(values).max()), -power)
    return 0.0 if np.ptp(values) == 0 else float(np.ldexp(stats.sem(values), power))


def bootstrap_interval(
    values, *, key: jax.Array, level: float = 0.95, num_samples: int = 10_000
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean.

    Args:
      values: ``[n]`` real, n at least 2; for a difference of systems, the differences by query.
      key: JAX random key.
      level: Coverage, in (0, 1).
      num_samples: How many resamples of n values to draw.

    Returns:
      ``(low, high)``, in the unit of the values.

    Raises:
      ValueError: On other shapes, fewer than 2 values, NaN, infinity, a level outside (0, 1), or num_samples below 1.

    Example:
      >>> bootstrap_interval([2.0, 2.0, 2.0], key=jax.random.key(0), num_samples=10)
      (2.0, 2.0)
    """
    checks.random_key(key)
    checks.expect(0 < level < 1, "level", "a coverage in (0, 1)", level)
    checks.positive_int(num_samples, "num_samples")
    values = _sample(values, "values")
    drawn = np.random.default_rng(np.asarray(jax.random.bits(key, (4,))))
    result = stats.bootstrap((values,), np.mean, n_resamples=num_samples, batch=max(1, _DRAWS // values.size),
                             confidence_level=level, method="percentile", rng=drawn)  # fmt: skip
    return float(result.confidence_interval.low), float(result.confidence_interval.high)


def interval(
    statistic: Callable[..., np.ndarray], *values, key: jax.Array, strata=None, level: float = 0.95,
    num_samples: int = 1_000,
) -> tuple[float, float]:
    """Percentile bootstrap interval of a statistic of items; an item is drawn with its entries in all of ``values``.

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
      ValueError: for fewer than 2 items, arrays of several lengths, NaN as a value or a kind, a level outside (0, 1),
        or num_samples below 1.

    Example:
      >>> from jaxsim.evaluate import metrics
      >>> scores, labels = [0.9, 0.8, 0.3, 0.1], [1, 1, 0, 0]
      >>> interval(metrics.auc, scores, labels, key=jax.random.key(0), strata=labels)
      (1.0, 1.0)
    """
    checks.random_key(key)
    checks.expect(0 < level < 1, "level", "a coverage in (0, 1)", level)
    checks.positive_int(num_samples, "num_samples")
    arrays = [np.asarray(one) for one in values]
    n = arrays[0].size if arrays else 0
    checks.expect(n >= 2 and all(one.shape == (n,) for one in arrays), "values", "arrays [n], n at least 2",
                  [one.shape for one in arrays])  # fmt: skip
    checks.expect(not any(np.isnan(one).any() for one in arrays), "values", "numbers that are not NaN", "NaN")
    strata = np.zeros(n) if strata is None else np.asarray(strata)
    checks.expect(strata.shape == (n,), "strata", f"shape {(n,)} (as values)", strata.shape)
    checks.expect(bool(np.all(strata == strata)), "strata", "kinds that equal themselves", "nan")
    kinds = [np.flatnonzero(strata == kind) for kind in np.unique(strata)]
    result, batch = [], max(1, _DRAWS // n)
    for number, start in enumerate(range(0, num_samples, batch)):
        keys = jax.random.split(jax.random.fold_in(key, number), len(kinds))
        size = min(batch, num_samples - start)
        drawn = [kind[np.asarray(jax.random.randint(one, (size, kind.size), 0, kind.size, np.int32))]
                 for one, kind in zip(keys, kinds, strict=True)]  # fmt: skip
        rows = np.concatenate(drawn, axis=1)
        result.append(np.asarray(statistic(*(one[rows] for one in arrays))))
    low, high = np.quantile(np.concatenate(result), [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)


def jackknife_auc(scores, labels, *groups) -> np.ndarray:
    """Jackknife pseudo-values of an AUC over pairs that depend on one another, one a group of pairs.

    The pairs of one query, or of one document, are not independent, but queries and documents are. A value is G times
    the AUC of all pairs less G - 1 times that without the pairs of a group, of G groups. The mean of these values is
    the AUC less a bias of order 1 / G; their variance over G is that of the AUC over other groups. So the paired test
    of two systems is `paired_t` of their values.

    Args:
      scores: ``[n]`` real, higher is better.
      labels: ``[n]`` 0 or 1.
      *groups: ``[n]`` integers each: the query of every pair; or, in two arrays, its two documents.

    Returns:
      ``[num_groups]`` float64, in the order of the groups' numbers.

    Raises:
      ValueError: As `jaxsim.evaluate.metrics.auc`; also without groups, for groups of another shape or of no
        integers, or where the pairs without one group have one label only.

    Example:
      >>> jackknife_auc([0.9, 0.1, 0.5, 0.7], [1, 0, 1, 0], [0, 0, 1, 1]).round(6).tolist()
      [1.5, 0.5]
    """
    scores, labels = checks.binary_lists(scores, labels, both=True)
    checks.expect(scores.ndim == 1, "scores", "shape (n,)", f"shape {scores.shape}")
    checks.expect(bool(groups), "groups", "one array or more", "none")
    columns = [np.asarray(group) for group in groups]
    for column in columns:
        checks.expect(column.shape == scores.shape, "groups", f"arrays of shape {scores.shape} (as scores)",
                      column.shape)  # fmt: skip
        checks.expect(np.issubdtype(column.dtype, np.integer), "groups", "integers", column.dtype)
    good = labels == 1
    right = np.empty(scores.size)  # of its comparisons with pairs of the other label
    right[good] = _below(scores[~good], scores[good])
    right[~good] = good.sum() - _below(scores[good], scores[~good])
    names, member = np.unique(np.stack(columns), return_inverse=True)
    member = member.reshape(len(columns), -1)
    once = [np.all(member[:place] != member[place], axis=0) for place in range(len(columns))]
    owner, pairs = (np.concatenate(parts) for parts in zip(*((member[place][kept], np.flatnonzero(kept))
                                                             for place, kept in enumerate(once)), strict=True))
    pairs = pairs[np.argsort(owner, kind="stable")]
    ends = np.cumsum(np.bincount(owner, minlength=names.size))
    whole, number, all_right = right[good].sum(), good.sum(), np.empty(names.size)
    for group, rows in enumerate(np.split(pairs, ends[:-1])):
        inside = good[rows]
        inner = _below(scores[rows][~inside], scores[rows][inside]).sum()
        compared = float(number - inside.sum()) * float(good.size - number - (~inside).sum())
        checks.expect(compared > 0, "labels", "both labels without any one group", f"one label without {names[group]}")
        all_right[group] = (whole - right[rows].sum() + inner) / compared
    auc = whole / (float(number) * float(good.size - number))
    return names.size * auc - (names.size - 1) * all_right


def _below(others: np.ndarray, values: np.ndarray) -> np.ndarray:
    """How many of the others each value is above; a tie counts one half."""
    others = np.sort(others)
    return (np.searchsorted(others, values, "left") + np.searchsorted(others, values, "right")) / 2


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
    return stats.false_discovery_control(_probabilities(pvalues))


def smallest_best_set(
    values: Mapping[str, np.ndarray], *, alpha: float = 0.05, test: Callable[..., Comparison] = unpaired_t
) -> set[str]:
    """The smallest set of systems each of which is significantly better than every system outside it (002 §3.2).

    The candidates for the set are the best system by mean, the best two, and so on. P-values are Bonferroni-corrected
    for all pairs of systems. These are the rows that a table prints in bold.

    Args:
      values: One value a query for each system, by name.
      alpha: Level of significance: 0.05 in 002, 0.01 in 000.
      test: `unpaired_t`, `paired_t`, or another function of two systems' values.

    Returns:
      Names of the systems; all of them if no smaller set stands out.

    Raises:
      ValueError: On no system, an alpha outside (0, 1), or values the test refuses.

    Example:
      >>> sorted(smallest_best_set({"a": [1.0, 1, 1, 0.9], "b": [1.0, 1, 0.9, 1], "c": [0.0, 0.1, 0, 0]}))
      ['a', 'b']
    """
    checks.expect(len(values) > 0, "values", "at least one system", "none")
    checks.expect(0 < alpha < 1, "alpha", "a level in (0, 1)", alpha)
    samples = {name: _sample(sample, f"values[{name!r}]") for name, sample in values.items()}
    order = sorted(samples, key=lambda name: -samples[name].mean())
    num_tests = max(1, len(order) * (len(order) - 1) // 2)
    clear = {
        (one, other): test(samples[one], samples[other]).pvalue * num_tests < alpha
        for one, other in itertools.combinations(order, 2)
    }
    for size in range(1, len(order)):
        best, rest = order[:size], order[size:]
        if all(clear[one, other] for one in best for other in rest):
            return set(best)
    return set(order)


def _sample(values, argument: str) -> np.ndarray:
    values = checks.real(values, argument)
    checks.expect(values.ndim == 1 and values.size >= 2, argument, "shape (n,), n at least 2", f"shape {values.shape}")
    checks.expect(bool(np.isfinite(values).all()), argument, "finite values", "infinity")
    return values


def _differences(a, b) -> np.ndarray:
    a, b = _sample(a, "a"), _sample(b, "b")
    checks.expect(a.shape == b.shape, "b", f"shape {a.shape} (as a, query by query)", b.shape)
    a, b = _moderate(a, b)
    # Of each query by itself: one of large values says nothing about what the others were summed from.
    difference, rounding = a - b, _ROUNDING * np.maximum(np.abs(a), np.abs(b))
    difference[np.abs(difference) <= rounding] = 0
    if np.max(difference - rounding / 2) > np.min(difference + rounding / 2):
        return difference
    return np.full_like(difference, difference[np.argmin(rounding)])  # they differ by rounding alone


def _moderate(a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both samples, times a power of two where their squares come near the edges of their type."""
    power = _power(a, b)
    return np.ldexp(a, -power), np.ldexp(b, -power)


def _power(*samples: np.ndarray) -> int:
    """The power of two of the largest value, where its square comes near the edges of its type; else 0."""
    power = int(np.frexp(max(np.abs(one).max() for one in samples))[1])
    return power if abs(power) > _FAR else 0


def _level(values: np.ndarray, scale: float) -> np.ndarray:
    """The values; all equal to the first where they differ by rounding alone."""
    return np.full_like(values, values[0]) if np.ptp(values) <= _ROUNDING * scale else values


def _certain(difference: float, n: int) -> Comparison:
    """The outcome where nothing varies: equal, or apart for sure."""
    return Comparison(float(np.copysign(np.inf, difference)) if difference else 0.0, float(difference == 0), n)


def _probabilities(pvalues) -> np.ndarray:
    pvalues = checks.real(pvalues, "pvalues")
    checks.expect(pvalues.ndim == 1, "pvalues", "shape (n,)", pvalues.shape)
    wrong = pvalues[(pvalues < 0) | (pvalues > 1)]
    checks.expect(wrong.size == 0, "pvalues", "values in [0, 1]", wrong[:1].sum())
    return pvalues
