"""Held-out pairs without the words that both texts share: how well a model finds what is about the same thing.

A text finds its mate by the rare words that both have, and whatever takes these words best wins. A search is after
documents that are relevant for other reasons. Without the shared words only what was learned can find the mate. The
rows ``tuned-search`` and ``tuned-for-search`` of ``experiments.peers.title_search`` compare both ways to choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from jaxsim import text
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import retrieval
from jaxsim.model import Model
from jaxsim.sparse import take
from jaxsim.train import held_out

METRIC = "apart"
"""What the score is called."""


def without_shared(pairs: Pairs) -> list[str]:
    """Left texts without the words whose stem is one of the right text.

    Args:
      pairs: ``n`` pairs.

    Returns:
      ``n`` texts; empty where all words are shared.

    Example:
      >>> from jaxsim.data import pairs
      >>> own = pairs.make("own", ["1"], ["Flows around wings"], ["a wing in the wind"], languages=("en", "en"))
      >>> without_shared(own)
      ['flows around']
    """
    languages = pairs.languages

    def rest(left: str, right: str) -> str:
        shared = {stem for _, stem in text.with_stems(right, languages[1])}
        return " ".join(word for word, stem in text.with_stems(left, languages[0]) if stem not in shared)

    return [rest(*both) for both in zip(pairs.left, pairs.right, strict=True)]


def values(pairs: Pairs, left: Sequence[str], sizes: Sequence[int] = ()) -> Callable[[Model], list[np.ndarray]]:
    """How models rank the mates of left texts, without the words that both share.

    Args:
      pairs: held out, ``n`` of them.
      left: their `without_shared`.
      sizes: pairs of each set, where they are several.

    Returns:
      Function of a model, whose dimensions are weighed as in search, to an array of 1 / rank of the mates for each set.
      Left texts of which nothing is left are not in it.

    Example:
      >>> from jaxsim.data import pairs
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog", "pet"), np.array([1, 1, 1]), 3)
      >>> model = Model(words, Projection(np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])))
      >>> own = pairs.make("own", "12", ["dog pet", "dog"], ["dog cat", "dog"], languages=("en", "en"))
      >>> [one.tolist() for one in values(own, without_shared(own))(model)]
      [[1.0]]
    """
    counted = np.array([bool(one) for one in left])

    def ranks(model: Model) -> list[np.ndarray]:
        sides = (model.vectors(left, side="query", power=1.0), model.vectors(pairs.right, power=1.0))
        return [1 / retrieval.mate_ranks(*(take(side, rows) for side in sides), similarity=model.scorer)[0][
            counted[rows]] for rows in held_out.spans(sizes or [len(pairs)])]  # fmt: skip

    return ranks


def mean(found: Sequence[np.ndarray]) -> float:
    """The score of a model.

    Args:
      found: of `values`: arrays of 1 / rank, one for each set.

    Returns:
      The mean of their means; sets of fewer than two texts do not count.

    Example:
      >>> mean([np.array([1.0, 0.5]), np.zeros(0)])
      0.75
    """
    means = [one.mean() for one in found if len(one) > 1]
    return float(np.mean(means)) if means else 0.0


def gain(one: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> tuple[float, float]:
    """How much better a model is than another, and how much of that may be chance.

    Args:
      one: of `values`.
      other: of `values` of the other model, on the same pairs.

    Returns:
      The difference of their scores, and its standard error; infinite where no set counts.

    Example:
      >>> gain([np.array([1.0, 0.5, 0.5])], [np.array([0.5, 0.5, 0.5])])  # doctest: +NUMBER
      (0.1667, 0.1667)
    """
    apart = [ours - theirs for ours, theirs in zip(one, other, strict=True) if len(ours) > 1]
    if not apart:
        return 0.0, np.inf
    error = np.sqrt(sum(each.var(ddof=1) / len(each) for each in apart)) / len(apart)
    return float(np.mean([each.mean() for each in apart])), float(error)
