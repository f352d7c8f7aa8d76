"""Which pairs a model was trained on, in a few kilobytes: the smallest digests of them.

Digests are as good as random numbers, so the smallest ones are those of a random sample of the pairs, and whoever meets
one of these pairs again finds its digest among them. It is the bottom-k sketch of Broder (1997).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from jaxsim.data.pairs import Pairs

SIZE = 256
"""Digests that are kept: of as many pairs, or fewer, all."""
_DIGITS = 12  # of one: 48 bits


def of(pairs: Pairs) -> str:
    """The smallest digests of some pairs.

    Args:
      pairs: ``n`` of them.

    Returns:
      At most `SIZE` numbers of 12 hexadecimal digits, ascending, with nothing between them.

    Example:
      >>> from jaxsim.data import pairs
      >>> len(of(pairs.make("own", "12", ["one", "one"], ["uno", "uno"], languages=("en", "es"))))
      12
    """
    return "".join(sorted(set(_digests(pairs)))[:SIZE])


def known(sketch: str, pairs: Pairs) -> tuple[int, bool]:
    """How many of some pairs are among those of a sketch, whichever side their texts are on.

    Args:
      sketch: of `of`.
      pairs: other pairs.

    Returns:
      Their number, and whether it is exact: of many pairs it is estimated from the sample, and may be 0 where a few of
      them are the same.

    Example:
      >>> from jaxsim.data import pairs
      >>> one, other = (pairs.make("own", "12", *sides, languages=("en", "en"))
      ...               for sides in ((["a", "b"], ["c", "d"]), (["c", "e"], ["a", "d"])))
      >>> known(of(one), other)
      (1, True)
    """
    kept = {sketch[begin : begin + _DIGITS] for begin in range(0, len(sketch), _DIGITS)}
    found = list(_digests(pairs))
    if len(kept) < SIZE:
        return sum(one in kept for one in found), True
    largest = max(kept)
    sample = [one in kept for one in found if one <= largest]
    return round(len(found) * sum(sample) / max(len(sample), 1)), False


def _digests(pairs: Pairs) -> Iterator[str]:
    """One of each pair, the same with its texts exchanged."""
    for both in zip(pairs.left, pairs.right, strict=True):
        first, second = sorted(text.encode("utf-8", "surrogatepass") for text in both)
        whole = len(first).to_bytes(8, "little") + first + second
        yield hashlib.blake2b(whole, digest_size=_DIGITS // 2).hexdigest()
