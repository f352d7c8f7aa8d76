"""Text to counts: vocabularies, and documents as rows of counts over them.

Everything here works on the host with SciPy CSR matrices; `sparse.from_scipy` takes the result to the device.
Words that a vocabulary does not hold are ignored and a document without words is an empty row: both are legal.

Reference: Platt, Toutanova and Yih (2010), "Translingual document representations from discriminative projections"
(vocabulary rule).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import chain, repeat

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.text.markup import prose
from jaxsim.text.tokens import tokenizer, word_marks, words, words_ja, words_unspaced

__all__ = [
    "Vocabulary",
    "counts",
    "prose",
    "strings",
    "tokenizer",
    "unit_rows",
    "word_marks",
    "words",
    "words_ja",
    "words_unspaced",
]


@dataclass(frozen=True, eq=False)
class Vocabulary:
    """The terms that documents are counted over, with the document frequencies of the training documents.

    Attributes:
      terms: the words, most frequent first; the position is the column in `counts`.
      df: `[num_terms]` int64, number of training documents that hold each term.
      num_docs: number of training documents, empty ones included.
    """

    terms: tuple[str, ...]
    df: np.ndarray
    num_docs: int

    __repr__ = checks.brief

    def __len__(self) -> int:
        """Number of terms."""
        return len(self.terms)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Column of each term."""
        return {term: column for column, term in enumerate(self.terms)}

    @classmethod
    def build(
        cls, token_lists: Iterable[Sequence[str]], *, drop_top: int = 50, max_terms: int = 20_000, min_df: int = 1
    ) -> Vocabulary:
        """Choose terms by collection frequency: drop the most frequent ones, keep the next ones (Platt et al., §5.1).

        Args:
          token_lists: one list of words a training document; documents of no other split belong here.
          drop_top: how many of the most frequent terms to leave out. Of few documents, take 0: the default may leave no
            term, which is legal.
          max_terms: how many terms to keep at most.
          min_df: terms in fewer documents than this are left out (before ``drop_top`` and ``max_terms`` count).

        Returns:
          The vocabulary. Equal frequencies are ordered by the term itself, so that the order of documents is no matter.

        Raises:
          ValueError: a negative setting, or a document given as one string.

        Example:
          >>> v = Vocabulary.build([["a", "b", "a"], ["a", "c", "b"], ["d"]], drop_top=1, max_terms=2)
          >>> v.terms, v.df.tolist(), v.num_docs
          (('b', 'c'), [2, 1], 3)
        """
        for name, value in (("drop_top", drop_top), ("max_terms", max_terms), ("min_df", min_df)):
            checks.whole(value, name, 0)
        frequency: Counter[str] = Counter()
        df: Counter[str] = Counter()
        num_docs = 0
        for tokens in token_lists:
            checks.expect(not isinstance(tokens, str), "token_lists", "a list of words for each document", "a string")
            frequency.update(tokens)
            df.update(set(tokens))
            num_docs += 1
        ranked = sorted((-count, term) for term, count in frequency.items() if df[term] >= min_df)
        terms = tuple(term for _, term in ranked[drop_top : drop_top + max_terms])
        return cls(terms, np.array([df[term] for term in terms], dtype=np.int64), num_docs)


def counts(token_lists: Iterable[Sequence[str]], vocabulary: Vocabulary) -> sp.csr_matrix:
    """Raw term counts of documents.

    Args:
      token_lists: one list of words a document; words outside the vocabulary are ignored.
      vocabulary: the columns.

    Returns:
      `[num_docs, num_terms]` float32 CSR matrix, sorted, without duplicates; a document without known words is empty.

    Example:
      >>> v = Vocabulary(("a", "b"), np.array([1, 1]), 1)
      >>> counts([["b", "a", "b", "new"], []], v).toarray().tolist()
      [[1.0, 2.0], [0.0, 0.0]]
    """
    ends = [0]
    words = chain.from_iterable(_measured(token_lists, ends))
    ids = np.fromiter(map(vocabulary.index.get, words, repeat(-1)), np.int32)
    known = ids >= 0
    indices, starts = ids[known], np.concatenate([[0], np.cumsum(known)])[ends]
    shape = len(ends) - 1, len(vocabulary)
    # One number a word, its document above its term: NumPy sorts those of all documents faster than SciPy each row.
    before = np.arange(shape[0] + 1) * max(shape[1], 1)
    keys, times = np.unique(np.repeat(before[:-1], np.diff(starts)) + indices, return_counts=True)
    starts = np.searchsorted(keys, before)  # SciPy makes them int32 where they fit
    indices = (keys - np.repeat(before[:-1], np.diff(starts))).astype(np.int32)
    return sp.csr_matrix((times.astype(np.float32), indices, starts), shape=shape)


def _measured(token_lists: Iterable[Sequence[str]], ends: list[int]) -> Iterable[Sequence[str]]:
    """The lists themselves; where each ends is added to ``ends``."""
    for tokens in token_lists:
        checks.expect(not isinstance(tokens, str), "token_lists", "a list of words for each document", "a string")
        ends.append(ends[-1] + len(tokens))
        yield tokens


def strings(texts: Sequence[str], argument: str = "texts") -> Sequence[str]:
    """Texts, checked.

    Args:
      texts: what should be strings.
      argument: what an error calls them.

    Returns:
      The same.

    Raises:
      ValueError: if one is none.

    Example:
      >>> strings(["a text", ""])
      ['a text', '']
    """
    wrong = next((one for one in texts if not isinstance(one, str)), "")
    checks.expect(isinstance(wrong, str), argument, "strings", checks.a_kind(wrong))
    return texts


def unit_rows(matrix: sp.csr_matrix, made: sp.csr_matrix | None = None) -> sp.csr_matrix:
    """Rows scaled to length one; empty rows stay empty.

    Args:
      matrix: ``[num_docs, num_terms]``.
      made: ``[num_docs, n]``, what becomes of ``matrix``: its rows get length one then, instead of those of ``matrix``.

    Returns:
      ``matrix`` with other lengths, of the same shape and type.

    Example:
      >>> unit_rows(sp.csr_matrix([[3.0, 4.0], [0.0, 0.0]])).toarray().tolist()
      [[0.6, 0.8], [0.0, 0.0]]
    """
    made = matrix if made is None else made
    length = np.sqrt(np.asarray(made.multiply(made).sum(axis=1)).ravel())
    scale = 1 / np.where(length > 0, length, 1)
    return sp.csr_matrix(sp.diags(scale) @ matrix, dtype=matrix.dtype)
