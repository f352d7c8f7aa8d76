"""Words with their character n-grams: words spelt alike share statistics, and unseen words have vectors.

A word stands for itself and for the n-grams of its spelling, as in Bojanowski et al. (2017), "Enriching word vectors
with subword information"; here in a linear map of weighted texts, so that it can be folded into a learned projection:
known words have one row each, as without it, and the n-grams' rows serve words that were not seen alone.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.text.vocabulary import Vocabulary, counts, unit_rows

SIZES = (3, 4, 5)
"""Letters of an n-gram; a space stands for the beginning and the end of a word."""
MOST = 100_000
"""N-grams kept at most, those of the most words."""
LONGEST = 100
"""Letters of a word that are looked at: longer ones are no words, and may be whole files."""


def ngrams(word: str) -> list[str]:
    """The n-grams of a word, each once.

    Args:
      word: any string, of which the first `LONGEST` letters count.

    Returns:
      Shorter ones first, of one length from left to right.

    Example:
      >>> ngrams("cats")
      [' ca', 'cat', 'ats', 'ts ', ' cat', 'cats', 'ats ', ' cats', 'cats ']
      >>> ngrams("a"), ngrams("")
      ([' a '], [])
    """
    padded = f" {word[:LONGEST]} "
    return list(dict.fromkeys(padded[at : at + n] for n in SIZES for at in range(len(padded) - n + 1)))


@dataclass(frozen=True, eq=False)
class Subwords:
    """The n-grams of a vocabulary and how much they count.

    Attributes:
      grams: those of two words at least.
      idf: ``[g]`` float32, ``log(n / df)`` of the training texts, ``df`` summed over the words that hold it.
      share: of a word's squared length that its n-grams have, in (0, 1).
    """

    grams: tuple[str, ...]
    idf: np.ndarray
    share: float

    __repr__ = checks.brief

    def __post_init__(self):
        """Checks the parts."""
        checks.expect(0 < self.share < 1, "subwords", "a share between 0 and 1", self.share)
        shape = np.shape(self.idf)
        checks.expect(shape == (len(self.grams),), "idf", f"one number for each of {len(self.grams)} n-grams", shape)

    def __len__(self) -> int:
        """Number of n-grams."""
        return len(self.grams)

    @functools.cached_property
    def _index(self) -> dict[str, int]:
        return {gram: column for column, gram in enumerate(self.grams)}

    @classmethod
    def build(cls, vocabulary: Vocabulary, *, share: float) -> Subwords:
        """The n-grams that two words or more of a vocabulary have, and that not every text may hold.

        Args:
          vocabulary: of the training texts.
          share: as the attribute.

        Returns:
          Those of most words first, equals by the n-gram itself, at most `MOST`.

        Raises:
          ValueError: for a share that is not between 0 and 1.

        Example:
          >>> words = Vocabulary(("stone", "stones", "tone"), np.array([2, 1, 1]), 8)
          >>> found = Subwords.build(words, share=0.5)
          >>> found.grams[:4], found.idf.round(2)[:4].tolist()
          (('one', 'ton', 'tone', ' st'), [0.69, 0.69, 0.69, 0.98])
        """
        words: dict[str, int] = {}
        texts: dict[str, int] = {}
        for word, df in zip(vocabulary.terms, vocabulary.df.tolist(), strict=True):
            for gram in ngrams(word):
                words[gram] = words.get(gram, 0) + 1
                texts[gram] = texts.get(gram, 0) + df
        shared = [gram for gram, count in words.items() if count > 1 and texts[gram] < vocabulary.num_docs]
        kept = tuple(sorted(shared, key=lambda gram: (-words[gram], gram))[:MOST])
        held = np.asarray([texts[gram] for gram in kept], np.float64)
        return cls(kept, np.log(vocabulary.num_docs / held).astype(np.float32), share)

    def rows(self, words: Sequence[str]) -> sp.csr_matrix:
        """The n-grams of words, weighted by the square of their idf, at unit length.

        Args:
          words: ``n`` of them.

        Returns:
          ``[n, g]`` float32; empty where no n-gram is known.

        Example:
          >>> made = Subwords(("cat", "ats"), np.array([1.0, 2.0]), 0.5)
          >>> made.rows(["cats", "cat", "dog"]).toarray().round(2).tolist()
          [[0.24, 0.97], [1.0, 0.0], [0.0, 0.0]]
        """
        find, starts, columns = self._index.get, [0], [np.zeros(0, np.int32)]
        for word in words:
            held = ngrams(word)
            ids = np.fromiter(map(find, held, repeat(-1)), np.int32, len(held))
            columns.append(ids[ids >= 0])
            starts.append(starts[-1] + columns[-1].size)
        ids = np.concatenate(columns)
        weights = np.asarray(self.idf, np.float32)[ids] ** 2
        found = sp.csr_matrix((weights, ids, np.asarray(starts)), shape=(len(words), len(self)))
        found.sort_indices()
        return unit_rows(found)

    def spread(self, vocabulary: Vocabulary) -> sp.csr_matrix:
        """The linear map from slots (`slots`) to what a projection is learned of.

        Args:
          vocabulary: that it was built of.

        Returns:
          ``[num_terms + g, num_terms + g]`` float32, M. Texts ``x`` are learned of as ``x M``, and the learned weights
          ``P`` become ``M P``, the rows of the slots.

        Example:
          >>> words = Vocabulary(("cat", "cats"), np.array([1, 1]), 4)
          >>> Subwords(("cat",), np.ones(1), 0.36).spread(words).toarray().round(2).tolist()
          [[0.8, 0.0, 0.6], [0.0, 0.8, 0.6], [0.0, 0.0, 0.6]]
        """
        own, shared = np.sqrt(np.float32(1 - self.share)), np.sqrt(np.float32(self.share))
        known = [own * sp.identity(len(vocabulary), np.float32), shared * self.rows(vocabulary.terms)]
        unseen = [None, shared * sp.identity(len(self), np.float32)]
        return sp.bmat([known, unseen], format="csr", dtype=np.float32)


def slots(
    token_lists: Iterable[Sequence[str]], vocabulary: Vocabulary, subwords: Subwords | None, weigh: Callable
) -> sp.csr_matrix:
    """Weighted texts: the words of the vocabulary, and the n-grams of all other words.

    Args:
      token_lists: one list of words a text.
      vocabulary: the first columns.
      subwords: the columns after them; None: unseen words are ignored.
      weigh: of ``(counts, df, num_docs)``; an unseen word is taken to be one of a single text.

    Returns:
      ``[n, num_terms + g]`` float32.

    Example:
      >>> words = Vocabulary(("cat",), np.array([1]), 4)
      >>> made = Subwords(("cat", "ats"), np.ones(2), 0.5)
      >>> slots([["cat"], ["cats"]], words, made, lambda counts, df, num_docs: counts).toarray().round(2).tolist()
      [[1.0, 0.0, 0.0], [0.0, 0.71, 0.71]]
    """
    lists = token_lists if subwords is None else list(token_lists)
    known = weigh(counts(lists, vocabulary), vocabulary.df, vocabulary.num_docs)
    if subwords is None:
        return known
    index = vocabulary.index
    unseen = [[word for word in words if word not in index] for words in lists]
    new = tuple(dict.fromkeys(word for words in unseen for word in words))
    other = Vocabulary(new, np.ones(len(new), np.int64), vocabulary.num_docs)
    rest = weigh(counts(unseen, other), other.df, other.num_docs) @ subwords.rows(new)
    return sp.hstack([known, rest], format="csr", dtype=np.float32)
