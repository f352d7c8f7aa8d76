"""Which pairs a model was trained on."""

from __future__ import annotations

import pytest

from jaxsim.data import pairs, sketches


def some(first, last, *, exchanged=False):
    sides = [[f"{side} {i}" for i in range(first, last)] for side in ("left", "right")]
    return pairs.make("some", map(str, range(first, last)), *sides[:: -1 if exchanged else 1], languages=("en", "en"))


@pytest.mark.parametrize("exchanged", [False, True])
def test_of_few_pairs_the_number_is_exact(exchanged):
    sketch = sketches.of(some(0, sketches.SIZE - 1))
    for other, number in ((some(0, 3), 3), (some(250, 260), 5), (some(255, 300), 0), (some(0, 0), 0)):
        assert sketches.known(sketch, other) == (number, True)
    assert sketches.known(sketch, some(100, 300, exchanged=exchanged)) == (155, True)
    assert sketches.known("", some(0, 3)) == (0, True)  # a model of an earlier version


def test_of_many_pairs_it_is_estimated_from_a_sample():
    whole = some(0, 20_000)
    sketch = sketches.of(whole)
    assert len(sketch) == 12 * sketches.SIZE and sketch == sketches.of(whole.take(range(20_000)[::-1]))
    for other, number in ((whole, 20_000), (some(10_000, 30_000), 10_000), (some(20_000, 40_000), 0)):
        found, exact = sketches.known(sketch, other)
        assert not exact and found == pytest.approx(number, rel=0.15)
    assert sketches.known(sketch, some(0, 0)) == (0, False)


def test_a_text_is_told_from_its_parts_and_need_not_be_unicode():
    texts = (["ab"], ["c"]), (["a"], ["bc"])
    one, other = (pairs.make("one", "1", *sides, languages=("en", "en")) for sides in texts)
    assert sketches.of(one) != sketches.of(other)
    odd = pairs.make("odd", "1", ["\udc80"], [""], languages=("en", "en"))
    assert sketches.known(sketches.of(odd), odd) == (1, True)
