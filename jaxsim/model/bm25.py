"""Words of the searched documents, as a search engine counts them: BM25 over stems, with the documents' own statistics.

A model's vocabulary is that of its training pairs. BM25 needs the vocabulary of the searched documents, so that their
rare words count, however rare they were in training.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, text

K1, B = 1.5, 0.75
"""Saturation and length normalisation; chosen on Cranfield and CACM."""
STOP = 0.2
"""How often a stop word of a query counts. The lists have words that texts are about (*computer*, *system*), so none is
lost; what stands in nearly every document has next to no weight anyway. Chosen on CACM and Cranfield."""


@dataclass(frozen=True, eq=False)
class Bm25:
    """BM25 weights of documents.

    Attributes:
      stems: ``v`` stems of the documents, in the order of the columns.
      weights: ``[n, v]`` float32 CSR matrix: BM25 weight of every stem in every document.
    """

    stems: tuple[str, ...]
    weights: sp.csr_matrix

    __repr__ = checks.brief

    def __post_init__(self):
        """Checks that stems and weights fit each other."""
        width = self.weights.shape[1]
        checks.expect(len(self.stems) == width, "stems", f"{width} (columns of weights)", len(self.stems))

    @functools.cached_property
    def by_stem(self) -> sp.csr_matrix:
        """``[v, n]`` CSR matrix: the weights transposed, once for all searches, each of which would do it otherwise."""
        return self.weights.T.tocsr()

    def counts(self, queries: Sequence[str], *, language: str = "en") -> sp.csr_matrix:
        """How often every stem stands in queries: what `by_stem` is multiplied with.

        Args:
          queries: ``q`` strings.
          language: their language code, which chooses stop words and stemmer.

        Returns:
          ``[q, v]`` float32, in which stop words count `STOP` times; ``counts @ by_stem`` is BM25, 0 where a query and
          a document have no stem in common.
        """
        columns = {stem: column for column, stem in enumerate(self.stems)}
        cut = ([one for one in asked(query, language) if one.stem in columns] for query in text.strings(queries))
        rows = [([columns[one.stem] for one in row], [one.times for one in row]) for row in cut]
        return _matrix([row for row, _ in rows], len(columns), [times for _, times in rows])

    def times(self, columns: np.ndarray, *, language: str = "en") -> np.ndarray:
        """How often stems count where words are not known: that of a stop word `STOP` times.

        Args:
          columns: ``[m]`` numbers of stems.
          language: a language code.

        Returns:
          ``[m]`` float32.
        """
        stop = _stop_stems(language)
        return np.array([STOP if self.stems[column] in stop else 1 for column in columns.tolist()], np.float32)


@functools.cache
def _stop_stems(language: str) -> frozenset[str]:
    """The stems of a language's stop words."""
    return frozenset(text.stemmed(sorted(text.stop_words(language)), language))


class Asked(NamedTuple):
    """A word of a query: its stem, and how often it counts."""

    word: str
    stem: str
    times: float


def asked(query: str, language: str) -> list[Asked]:
    """The words of a query as BM25 counts them.

    Args:
      query: a text.
      language: its language code.

    Returns:
      `Asked`, one a word, in the order of the text.

    Example:
      >>> [(one.stem, one.times) for one in asked("the ships", "en")]
      [('the', 0.2), ('ship', 1.0)]
    """
    stop = text.stop_words(language)
    return [Asked(word, stem, STOP if word in stop else 1.0) for word, stem in text.with_stems(query, language)]


def weigh(texts: Sequence[str], *, language: str = "en", k1: float = K1, b: float = B) -> Bm25:
    """BM25 weights of documents by their own statistics.

    Args:
      texts: ``n`` strings.
      language: their language code.
      k1: saturation of the term frequency, at least 0.
      b: length normalisation in [0, 1].

    Returns:
      `Bm25`.

    Raises:
      ValueError: for texts that are not strings, or a setting out of range.

    Example:
      >>> words = weigh(["a cat and its cats", "the dog", ""])
      >>> scores = words.counts(["Cats!", "of mice"]) @ words.by_stem
      >>> words.stems, (scores.toarray() > 0).tolist()
      (('a', 'cat', 'and', 'it', 'the', 'dog'), [[True, False, False], [False, False, False]])
    """
    stop = text.stop_words(language)
    columns: dict[str, int] = {}
    rows, lengths = [], []
    for given in text.strings(texts):
        words = text.with_stems(given, language)
        rows.append([columns.setdefault(stem, len(columns)) for _, stem in words])
        lengths.append(sum(word not in stop for word, _ in words))
    counts = _matrix(rows, len(columns))
    df = np.bincount(counts.indices, minlength=len(columns))
    # Stop words do not make a document longer, unless no document has others.
    lengths = lengths if any(lengths) else [len(row) for row in rows]
    average = sum(lengths) / max(len(rows), 1)
    weights = text.bm25(counts, df, len(rows), k1=k1, b=b, average_length=average, lengths=np.array(lengths, np.int64))
    return Bm25(tuple(columns), weights)


def _matrix(rows: list[list[int]], width: int, values: list[list[float]] | None = None) -> sp.csr_matrix:
    """``[len(rows), width]`` sums of values, or counts, of column numbers."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    values = ([1] * len(row) for row in rows) if values is None else values
    indices, data = (np.fromiter(itertools.chain.from_iterable(some), kind, count=int(starts[-1]))
                     for some, kind in ((rows, np.int32), (values, np.float32)))  # fmt: skip
    matrix = sp.csr_matrix((data, indices, starts), shape=(len(rows), width))
    matrix.sum_duplicates()
    return matrix
