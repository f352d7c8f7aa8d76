"""Words and their vectors: cosines of pairs, nearest and farthest words, and words that the thesaurus lacks."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.methods.projections.projection import Projection, encode
from jaxsim.methods.thesaurus.lexicon import Lexicon, Match
from jaxsim.methods.thesaurus.signed import Signed, unit_rows


class Space:
    """Unit vectors of words."""

    def __init__(
        self,
        lexicon: Lexicon,
        vectors: np.ndarray | sp.csr_matrix,
        *,
        beyond: Callable[[str], np.ndarray | None] | None = None,
    ):
        """Takes words and vectors.

        Args:
          lexicon: the vocabulary and its rules.
          vectors: ``[num_words, k]``, dense or sparse; scaled to length one here.
          beyond: gives the unit vector ``[k]`` of a word that no rule finds, or None (`oov.Neighbours`).
        """
        checks.expect(vectors.shape[0] == len(lexicon.words), "vectors", f"{len(lexicon.words)} rows (words)",
                      vectors.shape[0])
        self.lexicon, self.vectors, self.beyond = lexicon, unit_rows(vectors), beyond

    @classmethod
    def of(cls, signed: Signed, lexicon: Lexicon, params: Projection | None = None) -> Space:
        """The space of signed entries: of their columns, or of these projected.

        Args:
          signed: the entries.
          lexicon: of its words.
          params: from `pilsa` or `s2net_antonym`; None for signed tf·idf without any projection (PILSA §7.3).

        Returns:
          `Space`.
        """
        return cls(lexicon, signed.columns if params is None else np.asarray(encode(params, signed.terms()).dense))

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Word -> row."""
        return {word: at for at, word in enumerate(self.lexicon.words)}

    @functools.cached_property
    def nonzero(self) -> np.ndarray:
        """``[num_words]`` whether a word has a vector other than zero."""
        squares = self.vectors.multiply(self.vectors) if sp.issparse(self.vectors) else self.vectors**2
        return np.asarray(squares.sum(axis=1)).ravel() > 0

    def embed(self, words: Sequence[str]) -> tuple[np.ndarray | sp.csr_matrix, list[Match]]:
        """Unit vectors of words.

        Args:
          words: ``n`` words in any spelling.

        Returns:
          ``[n, k]`` (of the kind of ``vectors``; zero for an unknown word) and how each was found: by a rule of the
          `Lexicon`, by its neighbours in a corpus (``"corpus"``), or not at all (``"unknown"``).
        """
        matches = [self.lexicon.match(word) for word in words]
        rows = [self.index[word] for match in matches for word in match.words]
        counts = [len(match.words) for match in matches]
        mean = sp.csr_matrix((np.repeat([1 / max(n, 1) for n in counts], counts), rows, np.cumsum([0, *counts])),
                             shape=(len(matches), len(self.lexicon.words)), dtype=np.float32)
        found = unit_rows(mean @ self.vectors)
        if self.beyond is not None:
            for at, match in enumerate(matches):
                vector = None if match.words else self.beyond(words[at])
                if vector is not None:
                    found[at], matches[at] = vector, Match((), "corpus")
        return found, matches

    def cosines(self, left: Sequence[str], right: Sequence[str]) -> np.ndarray:
        """Cosines of pairs.

        Args:
          left: ``n`` words.
          right: ``n`` words.

        Returns:
          ``[n]`` float32; NaN where either word is unknown.

        Raises:
          ValueError: for lists of different lengths.
        """
        checks.expect(len(left) == len(right), "right", f"{checks.counted(len(left), 'word')} (as left)", len(right))
        words = list(dict.fromkeys((*left, *right)))
        place = {word: at for at, word in enumerate(words)}
        vectors, matches = self.embed(words)
        known = np.array([match.how != "unknown" for match in matches], bool)
        a, b = ([place[word] for word in side] for side in (left, right))
        products = (vectors[a].multiply(vectors[b]).sum(axis=1) if sp.issparse(vectors)
                    else np.einsum("ij,ij->i", vectors[a], vectors[b]))  # fmt: skip
        return np.where(known[a] & known[b], np.asarray(products, np.float32).ravel(), np.nan)

    def neighbours(self, word: str, *, k: int = 10, farthest: bool = False, among: np.ndarray | None = None):
        """The words nearest to a word, or farthest from it: with signed entries these are its opposites.

        Args:
          word: in any spelling.
          k: how many.
          farthest: whether those of lowest cosine are wanted.
          among: ``[num_words]`` booleans: words that may be named; all unless given.

        Returns:
          ``[(word, cosine), ...]``, the most extreme first; the word itself, and what stood for it, left out. Empty for
          an unknown word.
        """
        checks.positive_int(k, "k")
        vector, (match,) = self.embed([word])
        if match.how == "unknown":
            return []
        scores = self.vectors @ vector.T
        scores = np.asarray(scores.todense() if sp.issparse(scores) else scores, np.float32).ravel()
        allowed = self.nonzero.copy() if among is None else self.nonzero & among
        allowed[[self.index[one] for one in match.words]] = False
        order = np.flatnonzero(allowed)
        order = order[np.argsort(scores[order] if farthest else -scores[order], kind="stable")][:k]
        return [(self.lexicon.words[at], float(scores[at])) for at in order]
