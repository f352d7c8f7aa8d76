"""Which pairs a model was trained on."""

from __future__ import annotations

import pytest

from jaxsim.data import pairs, sketches


def some(first, last, *, exchanged=False):
    sides = [[f"{side} {i}" for i in range(first, last)] for side in ("left", "right")]
    return pairs.make("some", map(str, range(first, last)), *sides[:: -1 if exchanged else 1], languages=("en", "en"))


@pytest.mark.parametrize("exchanged", [False, True])
def test_of_few_pairs_the_number_is_exact(exchanged):
    sketch = sketches.of(some(0, 255))
    for other, number in ((some(0, 3), 3), (some(250, 260), 5), (some(255, 300), 0), (some(0, 0), 0)):
        assert sketches.known(sketch, other) == (number, len(other))
    assert sketches.known(sketch, some(100, 300, exchanged=exchanged)) == (155, 200)
    assert sketches.known("", some(0, 3)) == (0, 0)  # a model of an earlier version
    whole = sketches.of(some(0, sketches.SIZE))
    assert sketches.known(whole, some(0, 10))[0] == sketches.known(whole, some(0, 10))[1] <= 10


def test_of_many_pairs_a_sample_is_told():
    whole = some(0, 20_000)
    sketch = sketches.of(whole)
    assert len(sketch) == 10 * sketches.SIZE and sketch == sketches.of(whole.take(range(20_000)[::-1]))
    assert sketches.known(sketch, whole) == (sketches.SIZE, sketches.SIZE)
    for other, share in ((some(500, 1000), 1), (some(19_000, 21_000), 0.5), (some(20_000, 22_000), 0)):
        found, told = sketches.known(sketch, other)
        assert told == pytest.approx(len(other) * sketches.SIZE / 20_000, rel=0.3)
        assert found == pytest.approx(share * told, rel=0.15)
    assert sketches.known(sketch, some(0, 0)) == (0, 0)


def test_pairs_that_differ_in_case_and_blanks_are_one():
    one, other = (pairs.make("one", "1", *sides, languages=("en", "en"))
                  for sides in ((["A  red\nhat"], ["Ein Hut"]), (["ein hut"], ["a red hat "])))
    assert sketches.known(sketches.of(one), other) == (1, 1)


def test_a_text_is_told_from_its_parts_and_need_not_be_unicode():
    texts = (["ab"], ["c"]), (["a"], ["bc"])
    one, other = (pairs.make("one", "1", *sides, languages=("en", "en")) for sides in texts)
    assert sketches.of(one) != sketches.of(other)
    odd = pairs.make("odd", "1", ["\udc80"], [""], languages=("en", "en"))
    assert sketches.known(sketches.of(odd), odd) == (1, True)
