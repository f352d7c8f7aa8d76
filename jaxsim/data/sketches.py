"""Which pairs a model was trained on, in twenty kilobytes: the smallest digests of them.

Digests are as good as random numbers, so the smallest ones are those of a random sample of the pairs, and whoever meets
one of these pairs again finds its digest among them. It is the bottom-k sketch of Broder (1997).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from jaxsim.data.pairs import Pairs
from jaxsim.text.tokens import composed, lowered

SIZE = 2_048
"""Digests that are kept: of fewer pairs all."""
_DIGITS = 10  # of one: 40 bits


def of(pairs: Pairs) -> str:
    """The smallest digests of some pairs.

    Args:
      pairs: ``n`` of them.

    Returns:
      At most `SIZE` numbers of 10 hexadecimal digits, ascending, with nothing between them.

    Example:
      >>> from jaxsim.data import pairs
      >>> len(of(pairs.make("own", "12", ["one", "one"], ["uno", "uno"], languages=("en", "es"))))
      10
    """
    return "".join(sorted(set(_digests(pairs)))[:SIZE])


def known(sketch: str, pairs: Pairs) -> tuple[int, int]:
    """How many of some pairs are those of a sketch, as `alike` compares them.

    Args:
      sketch: of `of`; an empty one knows nothing.
      pairs: ``n`` other pairs.

    Returns:
      Their number, and of how many of the n pairs the sketch tells: all, if it holds all digests; otherwise those whose
      digests are no larger than its own, a random sample, about `SIZE` / m of them for a sketch of m pairs.

    Example:
      >>> from jaxsim.data import pairs
      >>> one, other = (pairs.make("own", "12", *sides, languages=("en", "en"))
      ...               for sides in ((["a", "b"], ["c", "d"]), (["c", "e"], ["a", "d"])))
      >>> known(of(one), other)
      (1, 2)
    """
    if not sketch:
        return 0, 0
    kept = {sketch[begin : begin + _DIGITS] for begin in range(0, len(sketch), _DIGITS)}
    largest = max(kept) if len(kept) == SIZE else "g"  # beyond all digits
    told = [one in kept for one in _digests(pairs) if one <= largest]
    return sum(told), len(told)


def alike(left: str, right: str) -> tuple[str, str]:
    """What two pairs have in common that are one to most methods, whichever side their texts are on.

    Args:
      left: a text.
      right: the other.

    Returns:
      Both in lower case and with single blanks, in alphabetical order.

    Example:
      >>> alike("One  word", "A text") == alike("a text", "one word ")
      True
    """
    first, second = sorted(" ".join(lowered(composed(text)).split()) for text in (left, right))
    return first, second


def _digests(pairs: Pairs) -> Iterator[str]:
    """One of each pair, the same for those that are `alike`."""
    for both in zip(pairs.left, pairs.right, strict=True):
        first, second = (text.encode("utf-8", "surrogatepass") for text in alike(*both))
        whole = len(first).to_bytes(8, "little") + first + second
        yield hashlib.blake2b(whole, digest_size=_DIGITS // 2).hexdigest()
