"""Held-out pairs: a share of the pairs, pairs of one's own, or several such sets, whose scores are averaged.

The texts of a set are compared among themselves alone: each set is a search of its own, and counts as much as any other
however many pairs it has.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from jaxsim import checks, sparse, text
from jaxsim.data.pairs import Pairs, make
from jaxsim.evaluate import mates, retrieval
from jaxsim.sparse import Vectors

if TYPE_CHECKING:
    from jaxsim.sparse import Terms

Dev = float | Pairs | Sequence[float | Pairs]
"""A share of the pairs, pairs of one's own, or several sets."""


def listed(dev: Dev) -> list[float | Pairs]:
    """What is to be held out, one entry a set.

    Args:
      dev: a share of the pairs in [0, 1), pairs of one's own, or a list of these with one share at most.

    Returns:
      The entries, at least one; a share of 0 alone holds out none.

    Raises:
      ValueError: for anything else.

    Example:
      >>> listed(0.1), listed([0.1])
      ([0.1], [0.1])
    """
    found = list(dev) if isinstance(dev, list | tuple) else [dev]
    checks.expect(len(found) > 0, "dev", "pairs, or a share in [0, 1)", "none")
    shares = [one for one in found if not isinstance(one, Pairs)]
    for one in shares:
        sound = not isinstance(one, bool) and isinstance(one, int | float) and 0 <= one < 1
        checks.expect(sound, "dev", "pairs, or a share in [0, 1)", one)
    checks.expect(len(shares) <= 1, "dev", "one share at most", shares)
    checks.expect(len(found) == 1 or 0 not in shares, "dev", "no share of 0 beside pairs", found)
    return found


def share(dev: Dev) -> float:
    """The share of the pairs that is held out.

    Args:
      dev: as for `listed`.

    Returns:
      The share; 0 where pairs of one's own are given alone.

    Example:
      >>> share([0.2]), share(make("own", ["1"], ["one"], ["uno"], languages=("en", "es")))
      (0.2, 0.0)
    """
    return next((float(one) for one in listed(dev) if not isinstance(one, Pairs)), 0.0)


def called(dev: Dev, number: int) -> str:
    """What messages call a set.

    Args:
      dev: as for `listed`.
      number: of the set, from 0.

    Returns:
      "dev" where it is the only one; else its number, from 1, and the name of its pairs.

    Example:
      >>> own = make("own.tsv", ["1"], ["one"], ["uno"], languages=("en", "es"))
      >>> called(own, 0), called([0.1, own], 0), called([0.1, own], 1)
      ('dev', 'dev 1 (a share of 0.1)', 'dev 2 (own.tsv)')
    """
    given = listed(dev)
    one = given[number]
    if len(given) == 1:
        return "dev"
    return f"dev {number + 1} ({one.name if isinstance(one, Pairs) else f'a share of {one:g}'})"


def varied(dev: Pairs) -> bool:
    """Whether some of the pairs differ in their words, as `mates.once` tells them apart.

    Args:
      dev: any number of pairs; they are read up to the second one that counts.

    Returns:
      Whether two of them or more count.

    Example:
      >>> varied(make("own", "12", ["one", "One!"], ["uno", "uno"], languages=("en", "es")))
      False
    """
    cut = [text.tokenizer(language) for language in dev.languages]
    first = None
    for texts in zip(dev.left, dev.right, strict=True):
        words = [one(side) for one, side in zip(cut, texts, strict=True)]
        if first is not None and (words != first or not all(words)):  # without words it is equal to none
            return True
        first = words if first is None else first
    return False


def together(parts: Sequence[Pairs]) -> Pairs:
    """Held-out sets, one after the other.

    Args:
      parts: at least one set, all in the same two languages.

    Returns:
      The one there is; or all pairs, with identifiers of their own.

    Example:
      >>> one = make("own", ["1"], ["one"], ["uno"], languages=("en", "es"))
      >>> together([one, one]).left
      ('one', 'one')
    """
    if len(parts) == 1:
        return parts[0]
    left, right, sources = ([value for part in parts for value in getattr(part, side)]
                            for side in ("left", "right", "sources"))  # fmt: skip
    return make(" and ".join(part.name for part in parts), map(str, range(len(left))), left, right, sources=sources,
                languages=parts[0].languages)


def digest(dev: Pairs, sizes: Sequence[int] = (), grades: np.ndarray | None = None) -> str:
    """What tells held-out sets from others: their texts and grades, and where one set ends.

    Args:
      dev: all held-out pairs, as `together` gives them.
      sizes: pairs of each set, where they are several.
      grades: ``[len(dev)]`` grades, or None.

    Returns:
      64 hexadecimal digits.

    Example:
      >>> one = make("own", ["1"], ["one"], ["uno"], languages=("en", "es"))
      >>> digest(one) == digest(one), digest(one) == digest(one, grades=np.ones(1))
      (True, False)
    """
    graded = None if grades is None else np.asarray(grades, np.float64).tolist()
    return hashlib.sha256(json.dumps([dev.texts_sha256, list(sizes), graded]).encode()).hexdigest()


def spans(sizes: Sequence[int]) -> list[np.ndarray]:
    """Row numbers of sets that stand one after the other.

    Args:
      sizes: pairs of each set.

    Returns:
      An array for each.

    Example:
      >>> [rows.tolist() for rows in spans([2, 1])]
      [[0, 1], [2]]
    """
    return np.split(np.arange(sum(sizes)), np.cumsum(sizes)[:-1])


def of_sets(sides: tuple[Terms, Terms], sizes: Sequence[int]) -> Iterator[tuple[Terms, Terms]]:
    """The texts of each set.

    Args:
      sides: all held-out texts, left and right.
      sizes: pairs of each set; of one, or of none, it is all of them.

    Yields:
      Left and right texts.
    """
    if len(sizes) < 2:
        yield sides
        return
    for rows in spans(sizes):
        left, right = (sparse.take(side, rows) for side in sides)
        yield left, right


def averaged(make: Callable, sides: tuple[Terms, Terms], sizes: Sequence[int]) -> Callable[[object], float]:
    """The mean of a validation score over the sets.

    Args:
      make: function of the texts of a set, left and right, that gives a score of params, such as `mates.validator`.
      sides: as for `of_sets`.
      sizes: as for `of_sets`.

    Returns:
      Function of params.

    Example:
      >>> import scipy.sparse
      >>> texts = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
      >>> averaged(lambda sides: lambda params: params * sides[0].num_docs, (texts, texts), [2, 1])(2.0)
      3.0
    """
    scores = [make(one) for one in of_sets(sides, sizes)]
    return scores[0] if len(scores) == 1 else lambda params: float(np.mean([score(params) for score in scores]))


def mate_scores(
    left: Vectors, right: Vectors, answers: mates.Answers | None, similarity: Callable = retrieval.cosine
) -> dict[str, float]:
    """How well mates find each other and, where left texts have several right ones, all of these.

    Args:
      left: vectors of the left texts of a set.
      right: of their mates.
      answers: which texts belong together; None where that is not known.
      similarity: as for `mates.scores`.

    Returns:
      As `mates.scores`, with ``map`` where there are left texts with several right ones.

    Example:
      >>> vectors = Vectors(np.eye(3))
      >>> mate_scores(vectors, vectors, mates.answers("aab", "xyz"))
      {'accuracy': 1.0, 'mrr': 1.0, 'map': 0.9166666666666666}
    """
    result = mates.scores(left, right, similarity=similarity)
    if answers is not None and answers.several:
        result["map"] = float(mates.per_left(left, right, answers, similarity=similarity)["map"].mean())
    return result


def mean(found: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The means of scores that all sets have.

    Args:
      found: name -> score, of each set.

    Returns:
      Name -> mean.

    Example:
      >>> mean([{"mrr": 0.5, "map": 1.0}, {"mrr": 1.0}])
      {'mrr': 0.75}
    """
    names = [name for name in found[0] if all(name in one for one in found)]
    return {name: float(np.mean([one[name] for one in found])) for name in names}
