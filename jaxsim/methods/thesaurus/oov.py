"""Words outside the thesaurus, placed by their neighbours in a corpus (PILSA §6.2)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim import checks
from jaxsim.data.corpora.thesauri import normal
from jaxsim.methods.thesaurus.signed import unit_rows

NEIGHBOURS, CONSISTENT = 10, 3
"""K and k of the paper."""


def consistent(cosines: np.ndarray, size: int = CONSISTENT) -> np.ndarray | None:
    """The first set of neighbours that are pairwise positive (PILSA §6.2.2).

    Args:
      cosines: ``[K, K]`` of the neighbours in the thesaurus space, the nearest first.
      size: how many are wanted.

    Returns:
      ``[size]`` places, the set whose last member comes first; None where there is no such set.

    Example:
      >>> consistent(np.array([[1, -1, 1, 1], [-1, 1, -1, -1], [1, -1, 1, 1], [1, -1, 1, 1]])).tolist()
      [0, 2, 3]
    """
    positive = cosines > 0

    def extend(chosen: list[int], last: int) -> list[int] | None:
        if len(chosen) == size:
            return chosen
        start = chosen[-1] + 1 if chosen else 0
        for at in range(start, last + 1):
            if positive[at, chosen].all():
                found = extend([*chosen, at], last)
                if found:
                    return found
        return None

    for last in range(size - 1, len(cosines)):
        found = extend([], last)
        if found:
            return np.array(found)
    return None


class Neighbours:
    """Embeds a word of the corpus by the mean of its consistent neighbours that the thesaurus has."""

    def __init__(
        self,
        words: Sequence[str],
        corpus: np.ndarray,
        thesaurus: Sequence[str],
        vectors: np.ndarray,
        *,
        neighbours: int = NEIGHBOURS,
        size: int = CONSISTENT,
    ):
        """Takes both spaces.

        Args:
          words: ``n`` words of the corpus.
          corpus: ``[n, d]`` their vectors in the corpus space.
          thesaurus: words of the thesaurus.
          vectors: their unit vectors in the thesaurus space, ``[num_words, k]``.
          neighbours: K: nearest words of the corpus space that are looked at.
          size: k: how many mutually positive ones are averaged; ``neighbours`` for the plain mean of all.
        """
        checks.positive_int(neighbours, "neighbours")
        checks.between(size, "size", neighbours, "neighbours")
        self.index = {word: at for at, word in enumerate(words)}
        self.corpus, self.vectors = unit_rows(corpus), vectors
        place = {word: at for at, word in enumerate(thesaurus)}
        shared = [(at, place[word]) for at, word in enumerate(words) if word in place]
        self.rows, self.places = (np.array(side, np.int64) for side in zip(*shared, strict=True)) if shared else (
            np.zeros(0, np.int64), np.zeros(0, np.int64))  # fmt: skip
        self.neighbours, self.size = neighbours, size

    def __call__(self, word: str) -> np.ndarray | None:
        """Unit vector of a word in the thesaurus space; None where the corpus does not know it, or disagrees."""
        at = self.index.get(normal(word))
        if at is None or len(self.rows) < self.size or not self.corpus[at].any():
            return None
        scores = self.corpus[self.rows] @ self.corpus[at]
        near = self.vectors[self.places[np.argsort(-scores, kind="stable")[: self.neighbours]]]
        chosen = np.arange(len(near)) if self.size == self.neighbours else consistent(near @ near.T, self.size)
        if chosen is None:
            return None
        return unit_rows(near[chosen].sum(axis=0, keepdims=True))[0]
