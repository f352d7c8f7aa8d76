from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.data import labelled_pairs, pairs


def test_labelled_pairs_are_checked_and_typed():
    checked = labelled_pairs.labelled([0, 1], np.array([2, 0], np.uint8), [1, 0.5], num_left=2, num_right=3)
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
        labelled_pairs.labelled(left, right, labels, num_left=3, num_right=2)


@pytest.mark.parametrize(("m", "negatives"), [(1, 0), (2, 1), (7, 3), (7, 6)])
def test_mates_come_with_distinct_wrong_partners(key, m, negatives):
    drawn = labelled_pairs.mates_and_negatives(m, negatives=negatives, key=key)
    left, right, labels = (np.asarray(part) for part in drawn)
    assert len(labels) == m * (1 + negatives)
    assert np.array_equal(left == right, labels == 1)
    assert np.bincount(left).tolist() == np.bincount(right).tolist() == [1 + negatives] * m
    assert len({*zip(left.tolist(), right.tolist(), strict=True)}) == len(labels)


def test_the_draw_depends_on_the_key_alone(key):
    first, again = (labelled_pairs.mates_and_negatives(20, negatives=2, key=key) for _ in range(2))
    other = labelled_pairs.mates_and_negatives(20, negatives=2, key=jax.random.key(1))
    assert np.array_equal(first.right, again.right) and not np.array_equal(first.right, other.right)


@pytest.mark.parametrize(("m", "negatives", "name"), [(0, 0, "num_pairs"), (3, 3, "negatives"), (3, -1, "negatives")])
def test_numbers_out_of_range_are_refused(key, m, negatives, name):
    with pytest.raises(ValueError, match=f"{name}: expected"):
        labelled_pairs.mates_and_negatives(m, negatives=negatives, key=key)


def test_preferences_are_checked_and_typed():
    result = labelled_pairs.preferences(([0, 1], [2, 2]), ([1, 1], [0, 0]), num_left=2, num_right=3)
    assert [one.tolist() for one in result] == [[0, 1], [2, 2], [1, 1], [0, 0]]
    assert {one.dtype for one in result} == {jnp.dtype("int32")}


@pytest.mark.parametrize(("better", "worse", "message"), [
    (([0], [0]), ([0], [2]), r"pairs.worse_right: expected indices in \[0, 2\) \(rows of terms\), got \[2\]"),
    (([-1], [0]), ([0], [1]), r"pairs.better_left: expected indices in \[0, 3\) \(rows of terms\), got \[-1\]"),
    (([0.5], [0]), ([0], [1]), "pairs.better_left: expected one axis of integers, got float64"),
    (([0, 1], [0, 1]), ([0], [1]), "pairs: expected four equally long lists of rows"),
    ((np.zeros(0, int),) * 2, (np.zeros(0, int),) * 2, "pairs: expected at least one preference, got none"),
])
def test_bad_preferences_are_refused_by_name(better, worse, message):
    with pytest.raises(ValueError, match=message):
        labelled_pairs.preferences(better, worse, num_left=3, num_right=2)


def same_third(i, j):
    return i % 3 == j % 3


def test_balanced_pairs_are_distinct_and_of_both_kinds(key):
    drawn = labelled_pairs.balanced(30, same_third, num=100, key=key)
    left, right, labels = (np.asarray(part) for part in drawn)
    assert labels.tolist() == [1.0] * 100 + [0.0] * 100
    assert np.array_equal(same_third(left, right), labels == 1) and np.all(left < right)
    again, other = (labelled_pairs.balanced(30, same_third, num=100, key=jax.random.key(seed)) for seed in (0, 1))
    assert np.array_equal(again.left, left) and not np.array_equal(other.left, left)
    chosen = labelled_pairs.preferences_of(drawn)
    assert np.array_equal(chosen.better_left, left[:100]) and np.array_equal(chosen.worse_right, right[100:])


def test_balanced_pairs_are_drawn_evenly(key):
    # 30 documents have 135 pairs of one third and 300 others: nearly all of the smaller kind are drawn, each once.
    drawn = labelled_pairs.balanced(30, same_third, num=130, key=key)
    times = np.bincount(np.concatenate([drawn.left[:130], drawn.right[:130]]), minlength=30)
    assert times.min() >= 6 and times.max() == 9


@pytest.mark.parametrize(("call", "message"), [
    (lambda key: labelled_pairs.balanced(1, same_third, num=1, key=key), "num_docs: expected at least 2, got 1"),
    (lambda key: labelled_pairs.balanced(5, same_third, num=0, key=key), "num: expected a whole number of at least 1"),
    (lambda key: labelled_pairs.balanced(6, same_third, num=4, key=key),
     r"num: expected at most the number of similar pairs \(3 found\), got 4"),
    (lambda key: labelled_pairs.preferences_of(labelled_pairs.labelled([0], [1], [0.5], num_left=2, num_right=2)),
     "pairs.labels: exp"),
    (lambda key: labelled_pairs.preferences_of(labelled_pairs.labelled([0], [1], [1], num_left=2, num_right=2)),
     "pairs: expected as many similar as dissimilar ones, got 1 and 0"),
])
def test_bad_draws_are_refused(key, call, message):
    with pytest.raises(ValueError, match=message):
        call(key)


def test_every_part_of_a_whole_keeps_its_facts_whatever_its_name():
    def part(name, number):
        return pairs.make(name, [f"{name}{number}"], ["a"], ["b"], languages=("en", "en"), counts={"number": number})

    parts = [part("twice", 1), part("once", 2), part("twice", 3), part("twice (2)", 4)]
    kept = pairs.concatenate("all", parts).counts["parts"]
    assert sorted(one["number"] for one in kept.values()) == [1, 2, 3, 4]
    assert list(kept) == ["twice", "once", "twice (2)", "twice (2) (2)"]
