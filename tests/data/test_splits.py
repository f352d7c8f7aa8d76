from __future__ import annotations

import itertools

import numpy as np
import pytest

from jaxsim.data import splits


def _same_partition(one, other):
    return len(set(zip(one, other, strict=True))) == len(set(one)) == len(set(other))


def _brute_force(left, right, threshold):
    """Groups by comparing all pairs, with union by relabelling."""
    labels = list(range(len(left)))
    for i, j in itertools.combinations(range(len(left)), 2):
        for side in (left, right):
            a, b = set(side[i]), set(side[j])
            if a and b and len(a & b) / len(a | b) >= threshold:
                labels = [labels[i] if label == labels[j] else label for label in labels]
    return labels


def _documents(rng, number, twins):
    """Random documents, of which the first ``twins`` get a copy with a few words changed."""
    words = [f"w{i}" for i in range(2000)]
    documents = [list(rng.choice(words, size=rng.integers(5, 80))) for _ in range(number)]
    for document in documents[:twins]:
        changed = rng.integers(0, 1 + len(document) // 8)
        documents.append(document[changed:] + list(rng.choice(words, size=changed)))
    return documents


@pytest.mark.parametrize("threshold", [0.5, 0.8, 1.0])
def test_groups_equal_a_comparison_of_all_pairs(rng, threshold):
    left, right = _documents(rng, 60, 40), _documents(rng, 80, 20)
    groups = splits.group_near_duplicates(left, right, threshold=threshold)
    assert _same_partition(groups.tolist(), _brute_force(left, right, threshold))
    assert len(set(groups.tolist())) < 100


def test_a_twin_on_either_side_joins_and_joins_are_transitive():
    left = [["a", "b"], ["b", "a", "a"], ["c"], ["d"]]
    right = [["x"], ["y"], ["y"], ["z"]]
    np.testing.assert_array_equal(splits.group_near_duplicates(left, right), [0, 0, 0, 1])


def test_exactly_at_the_threshold_is_a_twin():
    four, five, six = (list("abcdefgh"[:n]) for n in (4, 5, 6))
    assert splits.group_near_duplicates([four, five]).tolist() == [0, 0]
    assert splits.group_near_duplicates([four, six]).tolist() == [0, 1]


def test_recall_at_the_threshold(rng):
    """600 pairs of sets with Jaccard similarity exactly .8: 40 shared words of 50."""
    documents = []
    for pair in range(600):
        shared = [f"{pair}-{word}" for word in rng.integers(0, 10**9, 40)]
        documents += [shared + [f"{pair}-{side}-{i}" for i in range(5)] for side in "ab"]
    groups = splits.group_near_duplicates(documents)
    assert (groups[::2] == groups[1::2]).mean() >= 0.99
    assert len(set(groups.tolist())) >= 600


def test_empty_documents_are_no_twins_of_each_other():
    np.testing.assert_array_equal(splits.group_near_duplicates([[], [], ["a"]], [[], [], ["a"]]), [0, 1, 2])
    assert splits.group_near_duplicates([], []).shape == (0,)


def test_a_huge_bucket_stays_fast_and_connected():
    common = [f"c{i}" for i in range(100)]
    documents = [[*common, f"own{i}"] for i in range(3000)]
    assert set(splits.group_near_duplicates(documents).tolist()) == {0}


def test_what_is_just_below_the_threshold_is_compared_once(monkeypatch):
    """Documents of one bucket that are .79 alike: their pairs meet in nearly every band."""
    common = [f"c{i}" for i in range(88)]
    documents = [[*common, *(f"own{number}.{i}" for i in range(12))] for number in range(60)]
    compared, jaccard = [], splits._jaccard

    def spy(sets, sizes, first, second):
        compared.extend(zip(first.tolist(), second.tolist(), strict=True))
        return jaccard(sets, sizes, first, second)

    monkeypatch.setattr(splits, "_jaccard", spy)
    assert len(set(splits.group_near_duplicates(documents).tolist())) == 60
    assert len(compared) == len({tuple(sorted(pair)) for pair in compared}) > 1000


def test_pairs_are_compared_a_part_at_a_time(rng, monkeypatch):
    documents = _documents(rng, 40, 30)
    expected = splits.group_near_duplicates(documents)
    monkeypatch.setattr(splits, "_WORDS", 50)  # less than some pairs have
    assert splits.group_near_duplicates(documents).tolist() == expected.tolist()


def test_groups_of_each_side_merge_into_those_of_both(rng):
    left, right = ([[f"w{w}" for w in rng.integers(12, size=3)] for _ in range(60)] for _ in range(2))
    merged = splits.merge(splits.group_near_duplicates(left), splits.group_near_duplicates(right))
    both = splits.group_near_duplicates(left, right)
    assert merged.tolist() == both.tolist() and 1 < np.unique(both).size < 60
    with pytest.raises(ValueError, match=r"groups: expected shape \(2,\), as the first, got \(3,\)"):
        splits.merge(np.zeros(2), np.zeros(3))


def test_groups_do_not_depend_on_the_order_of_rows(rng):
    documents = _documents(rng, 50, 30)
    order = rng.permutation(len(documents))
    groups = splits.group_near_duplicates(documents)
    moved = splits.group_near_duplicates([documents[row] for row in order])
    assert _same_partition(groups[order].tolist(), moved.tolist())


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match=r"threshold: expected a number in \(0, 1\], got 0"):
        splits.group_near_duplicates([["a"]], threshold=0)
    with pytest.raises(ValueError, match="num_perm: expected"):
        splits.group_near_duplicates([["a"]], num_perm=0)
    with pytest.raises(ValueError, match="right_tokens: expected 1 documents, as on the left, got 2"):
        splits.group_near_duplicates([["a"]], [["a"], ["b"]])
    with pytest.raises(ValueError, match="left_tokens: expected a list of words for each document, got a string"):
        splits.group_near_duplicates(["one text", "another"])
    with pytest.raises(ValueError, match="right_tokens: expected a list of words"):
        splits.group_near_duplicates([["a"]], ["one text"])


def test_exact_duplicates_count_once_by_the_smallest_id():
    left, right = [["a", "b"], ["a", "b"], ["b", "a"]], [["x"], ["x"], ["x"]]
    np.testing.assert_array_equal(splits.first_of_equals(left, right, ["q", "p", "r"]), [False, True, True])


def test_whole_groups_go_to_one_side_with_the_asked_shares():
    groups = np.repeat(np.arange(3000), 2)
    ids = [f"doc/{row}" for row in range(6000)]
    parts = splits.split(groups, ids)
    assert list(parts) == ["train", "dev", "test"]
    np.testing.assert_array_equal(np.sort(np.concatenate(list(parts.values()))), np.arange(6000))
    for one, other in itertools.combinations(parts.values(), 2):
        assert not set(groups[one]) & set(groups[other])
    for share, rows in zip((0.6, 0.2, 0.2), parts.values(), strict=True):
        assert abs(rows.size / 6000 - share) < 5 * np.sqrt(share * (1 - share) / 3000)


def test_large_and_small_groups_are_dealt_alike():
    sizes = np.array([1, 1, 2, 5, 40, 200])
    groups = np.repeat(np.arange(sizes.size), sizes)
    ids = [f"doc/{row}" for row in range(groups.size)]
    salts = 1500
    went = {name: np.zeros(sizes.size) for name in ("train", "dev", "test")}
    for salt in range(salts):
        for name, rows in splits.split(groups, ids, salt=str(salt)).items():
            went[name] += np.isin(np.arange(sizes.size), groups[rows])
    for share, counts in zip((0.6, 0.2, 0.2), went.values(), strict=True):
        assert (np.abs(counts / salts - share) < 4.5 * np.sqrt(share * (1 - share) / salts)).all(), counts / salts
    again = splits.split(groups, ids, salt="7")
    assert all(np.array_equal(rows, again[name]) for name, rows in splits.split(groups, ids, salt="7").items())


def test_split_ignores_row_order_group_numbers_and_other_groups(rng):
    ids = np.array([f"doc/{row}" for row in range(200)])
    groups = np.repeat(np.arange(100), 2)
    parts = splits.split(groups, ids)
    order = rng.permutation(200)
    moved = splits.split(1000 - groups[order], ids[order])
    for name in parts:
        assert set(ids[parts[name]]) == set(ids[order][moved[name]])
    fewer = splits.split(groups[:100], ids[:100])
    assert set(fewer["test"]) == {row for row in parts["test"] if row < 100}


def test_salt_shares_and_keep():
    ids = [str(row) for row in range(300)]
    groups = np.arange(300)
    plain, salted = splits.split(groups, ids), splits.split(groups, ids, salt="2")
    assert set(plain["test"]) != set(salted["test"])
    named = splits.split(groups, ids, shares={"fit": 0.0, "check": 1.0})
    assert named["fit"].size == 0 and named["check"].size == 300
    keep = groups % 2 == 0
    kept = splits.split(groups, ids, keep=keep)
    np.testing.assert_array_equal(np.sort(np.concatenate(list(kept.values()))), np.flatnonzero(keep))
    np.testing.assert_array_equal(kept["train"], [row for row in plain["train"] if keep[row]])


def test_split_refuses_bad_arguments():
    with pytest.raises(ValueError, match="shares: expected shares of at least 0 that sum to 1"):
        splits.split(np.arange(2), ["a", "b"], shares=(0.5, 0.2, 0.2))
    with pytest.raises(ValueError, match="shares: expected three shares, of train, dev and test, .* got 2 shares"):
        splits.split(np.arange(2), ["a", "b"], shares=(0.5, 0.5))
    with pytest.raises(ValueError, match=r"groups: expected one number an id, shape \(1,\), got \(2,\)"):
        splits.split(np.arange(2), ["a"])
    with pytest.raises(ValueError, match="keep: expected"):
        splits.split(np.arange(2), ["a", "b"], keep=np.ones(3, bool))
