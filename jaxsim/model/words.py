"""Words of the searched documents, as a search engine counts them: BM25 over stems, with the documents' own statistics.

A model's vocabulary is that of its training pairs. BM25 needs that of the documents which are searched, so that their
rare words count however rare they were in training.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, text

K1, B = 1.5, 0.75
"""Saturation and length normalisation; chosen on Cranfield and CACM."""


@dataclass(frozen=True, eq=False)
class Words:
    """BM25 weights of documents.

    Attributes:
      stems: ``v`` stems of the documents, in the order of the columns.
      weights: ``[n, v]`` float32 CSR matrix: BM25 weight of every stem in every document.
      language: language code of queries, which chooses stop words and stemmer.
    """

    stems: tuple[str, ...]
    weights: sp.csr_matrix
    language: str

    def __post_init__(self):
        """Checks that stems and weights fit each other."""
        width = self.weights.shape[1]
        checks.expect(len(self.stems) == width, "stems", f"{width} (columns of weights)", len(self.stems))

    def scores(self, queries: Sequence[str]) -> np.ndarray:
        """BM25 of every document for every query.

        Args:
          queries: ``q`` strings.

        Returns:
          ``[q, n]`` float32; 0 where a query and a document have no stem in common.
        """
        columns = {stem: column for column, stem in enumerate(self.stems)}
        asked = _counts(map(text.stems(self.language), text.strings(queries)), columns)
        return np.asarray((asked @ self.weights.T).todense(), np.float32)


def weigh(texts: Iterable[str], *, languages: tuple[str, str] = ("en", "en"), k1: float = K1, b: float = B) -> Words:
    """BM25 weights of documents by their own statistics.

    Args:
      texts: ``n`` strings.
      languages: codes of queries and of documents; where they differ, words meet that are spelt alike, such as names.
      k1: saturation of the term frequency, at least 0.
      b: length normalisation in [0, 1].

    Returns:
      `Words`.

    Raises:
      ValueError: for texts that are not strings, or a setting out of range.

    Example:
      >>> words = weigh(["a cat and its cats", "the dog", ""])
      >>> words.stems, (words.scores(["Cats!", "of the"]) > 0).tolist()
      (('cat', 'dog'), [[True, False, False], [False, False, False]])
    """
    cut = text.stems(languages[1])
    columns: dict[str, int] = {}
    rows = [[columns.setdefault(stem, len(columns)) for stem in cut(given)] for given in text.strings(texts)]
    counts = _matrix(rows, len(columns))
    df = np.bincount(counts.indices, minlength=len(columns))
    average = counts.sum() / max(len(rows), 1)
    weights = text.bm25(counts, df, len(rows), k1=k1, b=b, average_length=float(average))
    return Words(tuple(columns), weights, languages[0])


def _counts(rows: Iterable[list[str]], columns: dict[str, int]) -> sp.csr_matrix:
    """Counts of known stems."""
    return _matrix([[columns[stem] for stem in row if stem in columns] for row in rows], len(columns))


def _matrix(rows: list[list[int]], width: int) -> sp.csr_matrix:
    """``[len(rows), width]`` counts of column numbers."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    indices = np.fromiter((column for row in rows for column in row), np.int32, count=int(starts[-1]))
    matrix = sp.csr_matrix((np.ones(len(indices), np.float32), indices, starts), shape=(len(rows), width))
    matrix.sum_duplicates()
    return matrix
