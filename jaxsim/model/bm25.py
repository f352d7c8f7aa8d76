"""Words of the searched documents, as a search engine counts them: BM25 over stems, with the documents' own statistics.

A model's vocabulary is that of its training pairs. BM25 needs the vocabulary of the searched documents, so that their
rare words count, however rare they were in training.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, text

K1, B = 1.5, 0.75
"""Saturation and length normalisation; chosen on Cranfield and CACM."""


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
          ``[q, v]`` float32; ``counts @ by_stem`` is BM25, 0 where a query and a document have no stem in common.
        """
        columns = {stem: column for column, stem in enumerate(self.stems)}
        rows = map(text.stems(language), text.strings(queries))
        return _matrix([[columns[stem] for stem in row if stem in columns] for row in rows], len(columns))


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
      >>> scores = words.counts(["Cats!", "of the"]) @ words.by_stem
      >>> words.stems, (scores.toarray() > 0).tolist()
      (('cat', 'dog'), [[True, False, False], [False, False, False]])
    """
    cut = text.stems(language)
    columns: dict[str, int] = {}
    rows = [[columns.setdefault(stem, len(columns)) for stem in cut(given)] for given in text.strings(texts)]
    counts = _matrix(rows, len(columns))
    df = np.bincount(counts.indices, minlength=len(columns))
    average = counts.sum() / max(len(rows), 1)
    weights = text.bm25(counts, df, len(rows), k1=k1, b=b, average_length=float(average))
    return Bm25(tuple(columns), weights)


def _matrix(rows: list[list[int]], width: int) -> sp.csr_matrix:
    """``[len(rows), width]`` counts of column numbers."""
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
    indices = np.fromiter((column for row in rows for column in row), np.int32, count=int(starts[-1]))
    matrix = sp.csr_matrix((np.ones(len(indices), np.float32), indices, starts), shape=(len(rows), width))
    matrix.sum_duplicates()
    return matrix
