from __future__ import annotations

import re

import jax
import numpy as np
import pytest
import reference
from scipy import stats

from jaxsim.evaluate import significance


@pytest.mark.parametrize("equal_variances", [True, False])
def test_unpaired_t_equals_scipy(rng, equal_variances):
    a, b = rng.standard_normal(13) + 0.4, 3 * rng.standard_normal(29)
    result = significance.unpaired_t(a, b, equal_variances=equal_variances)
    expected = stats.ttest_ind(a, b, equal_var=equal_variances)
    np.testing.assert_allclose(result[:2], [expected.statistic, expected.pvalue], rtol=1e-12)
    assert result.n == 42
    turned = significance.unpaired_t(b, a, equal_variances=equal_variances)
    np.testing.assert_allclose(turned[:2], [-result.statistic, result.pvalue], rtol=1e-12)


def test_paired_t_equals_scipy(rng):
    a, b = rng.random(20), rng.random(20)
    result, expected = significance.paired_t(a, b), stats.ttest_rel(a, b)
    np.testing.assert_allclose(result[:2], [expected.statistic, expected.pvalue], rtol=1e-12)
    assert result.n == 20


def test_t_tests_without_spread():
    same, more = np.full(7, 0.1), np.full(5, 0.1)
    assert significance.paired_t(same, same) == (0.0, 1.0, 7)
    assert significance.paired_t(same + 1, same)[:2] == (np.inf, 0.0)
    for equal_variances in (True, False):
        assert significance.unpaired_t(same, more, equal_variances=equal_variances) == (0.0, 1.0, 12)
        assert significance.unpaired_t(same, more + 1, equal_variances=equal_variances)[:2] == (-np.inf, 0.0)


def test_a_query_of_large_values_hides_no_difference_of_others():
    a = np.array([1e15, 1.0, 2.0, 3.0])
    b = np.array([1e15, 0.5, 1.25, 2.75])
    result, expected = significance.paired_t(a, b), stats.ttest_1samp([0, 0.5, 0.75, 0.25], 0.0)
    np.testing.assert_allclose(result[:2], [expected.statistic, expected.pvalue], rtol=1e-12)
    assert significance.paired_t([1e15, 0.5, 0.75], [1e15, 0.25, 0.5])[:2] == (np.inf, 0.0)
    assert significance.paired_t(a * (1 + 3e-16), a) == (0.0, 1.0, 4)


@pytest.mark.parametrize("scale", [2.0**-1000, 1e-200, 1e200, 2.0**1022])
def test_t_tests_have_no_scale(rng, scale):
    a, b = rng.uniform(-0.9, 1, 9), rng.uniform(-1, 0.9, 9)
    for test in (significance.unpaired_t, significance.paired_t):
        np.testing.assert_allclose(test(scale * a, scale * b), test(a, b), rtol=1e-9)


def test_standard_error(rng):
    values = rng.random(31)
    np.testing.assert_allclose(significance.standard_error(values), stats.sem(values), rtol=1e-12)
    assert significance.standard_error(np.full(3, 0.1)) == 0
    for scale in (2.0**-1000, 2.0**1000):
        assert significance.standard_error(scale * values) == scale * significance.standard_error(values)


def test_bonferroni():
    np.testing.assert_allclose(significance.bonferroni([0.01, 0.2, 0.5]), [0.03, 0.6, 1.0], rtol=1e-15)
    np.testing.assert_allclose(significance.bonferroni([0.01, 0.2], num_tests=10), [0.1, 1.0], rtol=1e-15)


@pytest.mark.parametrize("level", [0.02, 0.05, 0.3])
def test_false_discovery_rate(rng, level):
    pvalues = rng.random(40) ** 3
    adjusted = significance.false_discovery_rate(pvalues)
    np.testing.assert_allclose(adjusted, stats.false_discovery_control(pvalues), rtol=1e-12)
    assert (adjusted <= level).tolist() == reference.benjamini_hochberg(pvalues.tolist(), level)


@pytest.mark.parametrize("split", [(0, 0), (3, 0), (2, 7), (5, 5), (30, 12)])
def test_mcnemar_is_the_exact_binomial(split):
    first, second = split
    a = [1] * first + [0] * second + [1, 0, 0]
    b = [0] * first + [1] * second + [1, 0, 0]
    result = significance.mcnemar(a, b)
    assert result[::2] == (first - second, first + second)
    np.testing.assert_allclose(result.pvalue, reference.mcnemar_p(first, second), rtol=1e-12)


def test_bootstrap_interval(rng, key):
    values = rng.standard_normal(400) + 5
    low, high = significance.bootstrap_interval(values, key=key, level=0.9, num_samples=4000)
    half = stats.norm.ppf(0.95) * significance.standard_error(values)
    np.testing.assert_allclose([low, high], [values.mean() - half, values.mean() + half], atol=0.012)
    wider = significance.bootstrap_interval(values, key=key, level=0.99, num_samples=4000)
    assert wider[0] < low < high < wider[1]
    assert significance.bootstrap_interval(values, key=key, level=0.9, num_samples=4000) == (low, high)


def test_smallest_best_set(rng):
    noise = rng.standard_normal((4, 200)) * 0.1
    values = {name: mean + row for name, mean, row in zip("abcd", (0.5, 0.8, 0.2, 0.8), noise, strict=True)}
    assert significance.smallest_best_set(values) == {"b", "d"}
    assert significance.smallest_best_set({"a": values["a"], "b": values["b"]}) == {"b"}
    assert significance.smallest_best_set({"a": values["a"]}) == {"a"}
    assert significance.smallest_best_set({"b": values["b"], "d": values["d"]}) == {"b", "d"}
    same = dict.fromkeys("xyz", np.full(9, 0.5))
    assert significance.smallest_best_set(same) == {"x", "y", "z"}


def test_jackknife_values_of_queries_have_the_variance_of_the_auc_over_queries(rng):
    relevant = rng.uniform(size=400) < 0.4
    scores = relevant + rng.standard_normal(400)
    alone = significance.jackknife_auc(scores, relevant, np.arange(400))
    ranks = {kind: scores[relevant == kind] for kind in (True, False)}
    above = (ranks[True][:, None] > ranks[False]).astype(float)
    np.testing.assert_allclose(alone.mean(), above.mean(), rtol=1e-3)
    # DeLong, DeLong and Clarke-Pearson 1988: the variance of the AUC of independent pairs.
    expected = sum(above.mean(axis=axis).var(ddof=1) / above.shape[1 - axis] for axis in (0, 1))
    np.testing.assert_allclose(alone.var(ddof=1) / 400, expected, rtol=0.02)
    # Pairs that stand ten times in their query say nothing more.
    again = significance.jackknife_auc(*(np.repeat(one, 10) for one in (scores, relevant, np.arange(400))))
    np.testing.assert_allclose(again, alone, atol=1e-9)


@pytest.mark.parametrize("columns", [1, 2, 3])
def test_jackknife_values_are_those_of_leaving_out(rng, columns):
    scores, labels = rng.integers(0, 9, 300) / 8, rng.integers(0, 2, 300)  # ties
    groups = rng.integers(0, 20, (columns, 300)) * 7 - 40  # a pair may name one group twice
    names = np.unique(groups)
    whole, values = reference.auc(scores, labels), []
    for name in names:
        kept = np.all(groups != name, axis=0)
        values.append(names.size * whole - (names.size - 1) * reference.auc(scores[kept], labels[kept]))
    np.testing.assert_allclose(significance.jackknife_auc(scores, labels, *groups), values, rtol=1e-10)


def test_jackknife_values_of_documents_have_the_variance_of_the_auc_over_documents(rng):
    def sample() -> np.ndarray:
        points, kinds = rng.standard_normal(100), rng.integers(0, 3, 100)
        left, right = np.triu_indices(100, 1)
        return significance.jackknife_auc(-np.abs((points + kinds)[left] - (points + kinds)[right]),
                                          kinds[left] == kinds[right], left, right)  # fmt: skip

    values = np.array([sample() for _ in range(300)])
    # A jackknife's variance is a little too large on the average (Efron and Stein 1981).
    assert 0.9 < (values.var(axis=1, ddof=1) / 100).mean() / values.mean(axis=1).var(ddof=1) < 1.3


def test_every_member_of_the_set_beats_every_other():
    # The first beats the last and the middle one beats neither, so no smaller set stands out.
    spread = np.array([-1.0, 1.0] * 4)
    values = {"first": 1.5 + spread, "middle": 0.4 + spread, "last": -0.7 + spread}
    assert significance.unpaired_t(values["first"], values["last"]).pvalue * 3 < 0.05
    assert significance.unpaired_t(values["first"], values["middle"]).pvalue * 3 > 0.05
    assert significance.smallest_best_set(values) == {"first", "middle", "last"}


def test_smallest_best_set_corrects_for_all_pairs(rng):
    a, b = rng.standard_normal(50) + 0.55, rng.standard_normal(50)
    p = significance.unpaired_t(a, b).pvalue
    low = {f"low{i}": rng.standard_normal(50) - 50 for i in range(3)}
    assert significance.smallest_best_set({"a": a, "b": b}, alpha=2 * p) == {"a"}
    assert significance.smallest_best_set({"a": a, "b": b, **low}, alpha=2 * p) == {"a", "b"}
    assert significance.smallest_best_set({"a": a, "b": b, **low}, alpha=11 * p) == {"a"}


def test_smallest_best_set_with_a_paired_test(rng):
    hard = rng.standard_normal(100) * 5
    values = {"a": hard + 0.1 + 0.01 * rng.standard_normal(100), "b": hard}
    assert significance.smallest_best_set(values) == {"a", "b"}
    assert significance.smallest_best_set(values, test=significance.paired_t) == {"a"}


def _refusals():
    s, k = significance, jax.random.key(0)
    good = [0.0, 1.0, 0.5]
    return [
        (lambda: s.paired_t(good, [0.0, 1.0]), "b: expected shape (3,) (as a, query by query), got (2,)"),
        (lambda: s.paired_t([1.0], [2.0]), "a: expected shape (n,), n at least 2, got shape (1,)"),
        (lambda: s.paired_t([np.nan, 1.0], good), "a: expected no NaN, got NaN"),
        (lambda: s.unpaired_t(good, [np.inf, 1.0]), "b: expected finite values, got infinity"),
        (lambda: s.unpaired_t(good, []), "b: expected at least one value, got shape (0,)"),
        (lambda: s.standard_error([[1.0, 2.0]]), "values: expected shape (n,), n at least 2, got shape (1, 2)"),
        (lambda: s.bonferroni([0.5, 1.5]), "pvalues: expected values in [0, 1], got 1.5"),
        (lambda: s.bonferroni([0.5, 0.5], num_tests=1), "num_tests: expected at least 2 (p-values), got 1"),
        (lambda: s.false_discovery_rate([]), "pvalues: expected at least one value, got shape (0,)"),
        (lambda: s.smallest_best_set({}), "values: expected at least one system, got none"),
        (lambda: s.smallest_best_set({"a": [1.0]}), "values['a']: expected shape (n,), n at least 2, got shape (1,)"),
        (lambda: s.smallest_best_set({"a": good}, alpha=5), "alpha: expected a level in (0, 1), got 5"),
        (lambda: s.mcnemar([0, 1], [0, 2]), "b: expected 0 or 1, got 2.0"),
        (lambda: s.mcnemar([0, 1], [0, 1, 1]), "b: expected shape (2,) (as a), got (3,)"),
        (lambda: s.bootstrap_interval(good, key=k, level=1), "level: expected a coverage in (0, 1), got 1"),
        (lambda: s.jackknife_auc(good, [0, 1, 1]), "groups: expected one array or more, got none"),
        (lambda: s.jackknife_auc(good, [0, 1, 1], [0, 1]),
         "groups: expected arrays of shape (3,) (as scores), got (2,)"),
        (lambda: s.jackknife_auc([good], [[0, 1, 1]], [0, 1, 2]), "scores: expected shape (n,), got shape (1, 3)"),
        (lambda: s.jackknife_auc(good, [0, 1, 1], [7, 8, 8]),
         "labels: expected both labels without any one group, got one label without 7"),
        (lambda: s.jackknife_auc(good, [0, 1, 1], [0.5, 1.5, 2.5]), "groups: expected integers, got float64"),
        (lambda: s.jackknife_auc(good, [0, 2, 1], [7, 8, 8]), "labels: expected 0 or 1, got 2"),
    ]


@pytest.mark.parametrize("number", range(21))
def test_refuses(number):
    call, message = _refusals()[number]
    with pytest.raises(ValueError, match=re.escape(message)):
        call()


def test_differences_by_rounding_alone_are_none():
    x = np.full(5, 0.1) * 3
    noisy = np.array([0.30000000000000004, 0.3, 0.3, 0.30000000000000004, 0.3])
    assert significance.paired_t(x, noisy) == (0.0, 1.0, 5) and significance.unpaired_t(x, noisy) == (0.0, 1.0, 10)
    for test in (significance.paired_t, significance.unpaired_t):
        assert test(x, noisy - 1).pvalue == 0
    assert significance.standard_error(noisy) == 0
    assert 0 < significance.unpaired_t(noisy, [0.1, 0.2, 0.3]).pvalue < 1
