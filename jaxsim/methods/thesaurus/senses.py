r"""Senses of words: a vector for every entry that has a word.

A thesaurus lists a word once for each of its meanings, but a projection gives it one vector, the sum of all. Here a
word has as many vectors as entries: a part of its own vector, and the mean of the entry's words, those that the entry
opposes with a minus. Two words are as opposite as their most opposite senses.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.methods.thesaurus.signed import unit_rows
from jaxsim.methods.thesaurus.space import Space

SHARE = 0.25
"""Share of a word's own vector in its senses, which questions for development like best with PILSA."""


class Senses:
    r"""The senses of the words of a space.

    The sense of word ``w`` in entry ``e`` is :math:`\mathrm{unit}(s\,v_w + (1-s)\,\sigma_{ew}\,
    \mathrm{unit}(\sum_u \sigma_{eu} v_u))` with signs :math:`\sigma = \pm 1` of the words in the entry.
    """

    def __init__(self, space: Space, entries: sp.csr_matrix, share: float = SHARE):
        """Takes words, their vectors and their entries.

        Args:
          space: dense unit vectors ``v`` of ``num_words`` words.
          entries: ``[num_entries, num_words]``, positive where an entry has a word, negative where it opposes it;
            `Signed.tf`, say.
          share: ``s`` in [0, 1], of a word's own vector; with 1 all senses of a word are this vector.

        Raises:
          ValueError: for entries of other words, sparse vectors, or a share out of [0, 1].

        Example:
          >>> from jaxsim.methods.thesaurus import Lexicon
          >>> words, right = ["light", "dark", "heavy"], np.array([[1.0, 0], [-0.6, 0.8], [0, -1.0]])
          >>> entries = sp.csr_matrix([[1, -1, 0], [1, 0, -1]])
          >>> made = Senses(Space(Lexicon(words), right), entries, 0.5)
          >>> made.of("light").shape, round(float(made.lowest(["light"], ["heavy"])[0]), 2)
          ((2, 2), -0.71)
        """
        checks.expect(not sp.issparse(space.vectors), "space", "dense vectors", "sparse ones")
        words = len(space.lexicon.words)
        checks.expect(entries.shape[1] == words, "entries", f"{words} columns (words)", entries.shape[1])
        checks.expect(0 <= share <= 1, "share", "a number in [0, 1]", share)
        self.space, self.share = space, float(share)
        self._signs = entries.sign().tocsr()

    @functools.cached_property
    def _of_words(self) -> sp.csr_matrix:
        return self._signs.T.tocsr()

    def of(self, word: str) -> np.ndarray:
        """The senses of a word.

        Args:
          word: in any spelling; one that is not among the words has those of what stands for it (`Lexicon.match`).

        Returns:
          ``[n, k]`` float32 of unit length, one a sense; one that no entry has, but the space embeds, has one sense; an
          unknown word none. A word whose senses are all zero, as its vectors are, has one of zeros.
        """
        (vector,), (match,) = self.space.embed([word])
        rows = [self.space.index[one] for one in match.words]
        found = [self._senses(row) for row in rows if self._of_words.indptr[row + 1] > self._of_words.indptr[row]]
        every = np.concatenate(found) if found else vector[None]
        some = every[every.any(axis=1)]
        none = every[:0] if match.how == "unknown" else np.zeros_like(every[:1])
        return some if len(some) else none

    def _senses(self, row: int) -> np.ndarray:
        """Those of a word of the space."""
        mine = self._of_words[row]
        entries = unit_rows(self._signs[mine.indices] @ self.space.vectors)
        return unit_rows(self.share * self.space.vectors[row] + (1 - self.share) * mine.data[:, None] * entries)

    def lowest(self, left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        """How opposite words are: the lowest cosine of a sense of one and a sense of the other.

        Args:
          left: ``n`` words in any spelling.
          right: ``n`` words.

        Returns:
          ``[n]`` float32 in [-1, 1]; 0 where a word has no vector, NaN where either is unknown.
        """
        of = {word: self.of(word) for word in dict.fromkeys((*left, *right))}
        pairs = ((of[a], of[b]) for a, b in zip(left, right, strict=True))
        found = [float((a @ b.T).min()) if len(a) and len(b) else np.nan for a, b in pairs]
        return np.clip(np.array(found, np.float32), -1, 1)
