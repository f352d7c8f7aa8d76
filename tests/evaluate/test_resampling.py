"""Bootstrap intervals of statistics: coverage, strata, the mean's as a special case, bad input."""

from __future__ import annotations

import jax
import numpy as np
import pytest
from scipy import stats

from jaxsim.evaluate import metrics, significance


def key(number=0):
    return jax.random.key(number)


def test_of_the_mean_it_is_the_interval_of_the_mean(rng):
    values = rng.normal(size=50)
    result = significance.interval(lambda x: x.mean(axis=1), values, key=key(), num_samples=10_000)
    expected = significance.bootstrap_interval(values, key=key(1))
    np.testing.assert_allclose(result, expected, atol=0.02)


def test_it_is_about_that_of_scipy(rng):
    x = rng.normal(size=40)
    y = x + rng.normal(size=40)
    result = significance.interval(metrics.spearman, x, y, key=key(), num_samples=4_000)
    peer = stats.bootstrap((x, y), lambda a, b: stats.spearmanr(a, b).statistic, paired=True, vectorized=False,
                           method="percentile", n_resamples=2_000, rng=np.random.default_rng(0)).confidence_interval
    np.testing.assert_allclose(result, peer, atol=0.05)


def test_most_intervals_hold_the_true_area(rng):
    true = stats.norm.cdf(1 / np.sqrt(2))  # of scores that are one apart in the mean
    held = 0
    for trial in range(60):
        labels = np.arange(80) % 2
        scores = rng.normal(size=80) + labels
        low, high = significance.interval(metrics.auc, scores, labels, key=key(trial), strata=labels, num_samples=300)
        held += low <= true <= high
    assert 50 <= held


def test_every_sample_has_as_many_of_each_kind(monkeypatch):
    monkeypatch.setattr(significance, "_DRAWS", 20)  # several batches
    labels, seen = np.array([1, 0, 0, 0, 0, 0]), []

    def statistic(scores, labels):
        seen.append(labels)
        return metrics.auc(scores, labels)

    low, high = significance.interval(statistic, np.arange(6.0)[::-1], labels, key=key(), strata=labels, num_samples=50)
    assert (low, high) == (1.0, 1.0)
    seen = np.concatenate(seen)
    assert seen.shape == (50, 6) and (seen.sum(axis=1) == 1).all()


def test_the_same_key_gives_the_same_and_another_another(rng):
    values = rng.normal(size=30)
    first, again, other = (significance.interval(lambda x: x.mean(axis=1), values, key=key(n)) for n in (0, 0, 1))
    assert first == again != other


@pytest.mark.parametrize(("change", "message"), [
    ({"values": ([1.0],)}, r"values: expected arrays \[n\], n at least 2"),
    ({"values": ()}, "values: expected"), ({"values": ([1.0, 2.0], [1.0])}, "values: expected"),
    ({"strata": [1]}, r"strata: expected shape \(2,\)"),
    ({"strata": [np.nan, 1]}, "strata: expected kinds that equal themselves, got nan"),
    ({"values": ([1.0, np.nan],)}, "values: expected numbers that are not NaN, got NaN"),
    ({"level": 1.0}, "level: expected"), ({"num_samples": 0}, "num_samples: expected"),
])
def test_bad_input_is_refused(change, message):
    given = {"values": ([1.0, 2.0],), "strata": None, "level": 0.9, "num_samples": 5, **change}
    with pytest.raises(ValueError, match=message):
        significance.interval(lambda *_: np.zeros(5), *given.pop("values"), key=key(), **given)
