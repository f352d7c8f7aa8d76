from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import pairs


def test_labelled_pairs_are_checked_and_typed():
    checked = pairs.labelled([0, 1], np.array([2, 0], np.uint8), [1, 0.5], num_left=2, num_right=3)
    assert checked.left.dtype == checked.right.dtype == jnp.int32 and checked.labels.dtype == jnp.float64
    assert checked.right.tolist() == [2, 0] and checked.labels.tolist() == [1.0, 0.5]


@pytest.mark.parametrize(("left", "right", "labels", "message"), [
    ([0, 9], [0, 0], [1, 0], r"pairs.left: expected indices in \[0, 3\) \(rows of terms\), got 9"),
    ([0, 1], [0, -2], [1, 0], r"pairs.right: expected indices in \[0, 2\) \(rows of terms\), got -2"),
    ([0.0, 1.0], [0, 0], [1, 0], "pairs.left: expected one axis of integers, got float64"),
    ([[0, 1]], [0, 0], [1, 0], "pairs.left: expected one axis of integers"),
    ([0, 1], [0], [1, 0], "pairs: expected as many left rows as right rows and labels"),
    ([0, 1], [0, 0], [1], "pairs: expected as many left rows as right rows and labels"),
    ([0, 1], [0, 0], [1, np.nan], "pairs.labels: expected finite numbers"),
    ([0, 0, 1], [1, 1, 1], [1, 0, 0], "pairs: expected every pair once, got 1 duplicates"),
])
def test_bad_pairs_are_refused_by_name(left, right, labels, message):
    with pytest.raises(ValueError, match=message):
        pairs.labelled(left, right, labels, num_left=3, num_right=2)


@pytest.mark.parametrize(("m", "negatives"), [(1, 0), (2, 1), (7, 3), (7, 6)])
def test_mates_come_with_distinct_wrong_partners(key, m, negatives):
    drawn = pairs.mates_and_negatives(m, negatives=negatives, key=key)
    left, right, labels = (np.asarray(part) for part in drawn)
    assert len(labels) == m * (1 + negatives)
    assert np.array_equal(left == right, labels == 1)
    assert np.bincount(left).tolist() == np.bincount(right).tolist() == [1 + negatives] * m
    assert len({*zip(left.tolist(), right.tolist(), strict=True)}) == len(labels)


def test_the_draw_depends_on_the_key_alone(key):
    first, again = (pairs.mates_and_negatives(20, negatives=2, key=key) for _ in range(2))
    other = pairs.mates_and_negatives(20, negatives=2, key=jax.random.key(1))
    assert np.array_equal(first.right, again.right) and not np.array_equal(first.right, other.right)


@pytest.mark.parametrize(("m", "negatives", "name"), [(0, 0, "num_pairs"), (3, 3, "negatives"), (3, -1, "negatives")])
def test_numbers_out_of_range_are_refused(key, m, negatives, name):
    with pytest.raises(ValueError, match=f"{name}: expected"):
        pairs.mates_and_negatives(m, negatives=negatives, key=key)
