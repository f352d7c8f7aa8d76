"""Text to counts to weights: tokenisers, vocabularies and term weightings.

Everything here works on the host with SciPy CSR matrices; `sparse.from_scipy` takes the result to the device.
Words that a vocabulary does not hold are ignored and a document without words is an empty row: both are legal.

References: Platt, Toutanova and Yih (2010), "Translingual document representations from discriminative projections"
(log-tf·idf, vocabulary rule); Yih (2009), "Learning term-weighting functions for similarity measures" (tf·idf);
Robertson and Zaragoza (2009), "The probabilistic relevance framework: BM25 and beyond" (BM25).
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import repeat

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.text.markup import prose
from jaxsim.text.tokens import tokenizer, word_marks, words, words_ja, words_unspaced

__all__ = [
    "Vocabulary",
    "bm25",
    "counts",
    "log_tf_idf",
    "prose",
    "strings",
    "tf_idf",
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
          drop_top: how many of the most frequent terms to leave out.
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
            checks.expect(value >= 0, name, "a number of at least 0", value)
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
    find = vocabulary.index.get
    indptr, columns = [0], [np.zeros(0, np.int32)]
    for tokens in token_lists:
        checks.expect(not isinstance(tokens, str), "token_lists", "a list of words for each document", "a string")
        ids = np.fromiter(map(find, tokens, repeat(-1)), np.int32, len(tokens))
        columns.append(ids[ids >= 0])
        indptr.append(indptr[-1] + columns[-1].size)
    indices = np.concatenate(columns)
    matrix = sp.csr_matrix(
        (np.ones(indices.size, np.float32), indices, np.asarray(indptr)), shape=(len(indptr) - 1, len(vocabulary))
    )
    matrix.sum_duplicates()
    return matrix


def strings(texts: Sequence[str]) -> Sequence[str]:
    """Texts, checked.

    Args:
      texts: what should be strings.

    Returns:
      The same.

    Raises:
      ValueError: if one is none.

    Example:
      >>> strings(["a text", ""])
      ['a text', '']
    """
    wrong = next((one for one in texts if not isinstance(one, str)), "")
    checks.expect(isinstance(wrong, str), "texts", "strings", checks.a_kind(wrong))
    return texts


def unit_rows(matrix: sp.csr_matrix) -> sp.csr_matrix:
    """Rows scaled to length one; empty rows stay empty.

    Args:
      matrix: ``[num_docs, num_terms]``.

    Returns:
      The same shape and type.

    Example:
      >>> unit_rows(sp.csr_matrix([[3.0, 4.0], [0.0, 0.0]])).toarray().tolist()
      [[0.6, 0.8], [0.0, 0.0]]
    """
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scale = 1 / np.where(length > 0, length, 1)
    return sp.csr_matrix(sp.diags(scale) @ matrix, dtype=matrix.dtype)


def _checked(counts: sp.spmatrix, df: np.ndarray, num_docs: int) -> tuple[sp.csr_matrix, np.ndarray]:
    matrix = sp.csr_matrix(counts, dtype=np.float64, copy=True)
    matrix.sum_duplicates()
    df = np.asarray(df, np.float64)
    checks.expect(df.shape == (matrix.shape[1],), "df", f"one number a term, shape ({matrix.shape[1]},)", df.shape)
    checks.expect(bool(np.isfinite(matrix.data).all()), "counts", "finite numbers", "NaN or infinity")
    checks.expect(bool((matrix.data >= 0).all()), "counts", "no negative numbers", matrix.data.min(initial=0))
    outside = df[~((df >= 0) & (df <= num_docs))]
    checks.expect(not outside.size, "df", f"numbers in 0 ... num_docs = {num_docs}", outside[:1].tolist())
    return matrix, df


def _scaled(matrix: sp.csr_matrix, values: np.ndarray, idf: np.ndarray) -> sp.csr_matrix:
    matrix.data = values * idf[matrix.indices]
    matrix.eliminate_zeros()
    return matrix.astype(np.float32)


def _idf(df: np.ndarray, num_docs: int, log: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    return np.where(df > 0, log(num_docs / np.where(df > 0, df, num_docs or 1)), 0.0) if num_docs else 0.0 * df


def tf_idf(counts: sp.spmatrix, df: np.ndarray, num_docs: int) -> sp.csr_matrix:
    r"""Weights tf · log(N / df), Yih (2009) Eq. (5), natural logarithm.

    Args:
      counts: `[n, num_terms]` raw counts, at least 0.
      df: `[num_terms]` document frequencies of the training documents; a term with 0 gets weight 0.
      num_docs: number of training documents, N.

    Returns:
      `[n, num_terms]` float32 CSR matrix; weights of zero are not stored.

    Raises:
      ValueError: negative or non-finite counts, or a df of another length or above ``num_docs``.

    Example:
      >>> tf_idf(sp.csr_matrix([[2.0, 1.0]]), np.array([1, 2]), 2).toarray().round(3).tolist()
      [[1.3860000371932983, 0.0]]
    """
    matrix, df = _checked(counts, df, num_docs)
    return _scaled(matrix, matrix.data, _idf(df, num_docs, np.log))


def log_tf_idf(counts: sp.spmatrix, df: np.ndarray, num_docs: int) -> sp.csr_matrix:
    r"""Weights log2(tf + 1) · log2(n / df), Platt et al. (2010) Eq. (8).

    Args:
      counts: `[n, num_terms]` raw counts, at least 0.
      df: `[num_terms]` document frequencies of the training documents; a term with 0 gets weight 0.
      num_docs: number of training documents, n.

    Returns:
      `[n, num_terms]` float32 CSR matrix; weights of zero are not stored.

    Raises:
      ValueError: as `tf_idf`.

    Example:
      >>> log_tf_idf(sp.csr_matrix([[3.0, 1.0]]), np.array([1, 4]), 4).toarray().tolist()
      [[4.0, 0.0]]
    """
    matrix, df = _checked(counts, df, num_docs)
    return _scaled(matrix, np.log2(matrix.data + 1), _idf(df, num_docs, np.log2))


def bm25(
    counts: sp.spmatrix, df: np.ndarray, num_docs: int, *, k1: float = 1.2, b: float = 0.75, average_length: float
) -> sp.csr_matrix:
    r"""Okapi BM25 weights of documents, to be multiplied (dot product, not cosine) with the raw counts of a query.

    .. math:: \log\left(1 + \frac{N - df + .5}{df + .5}\right) \frac{tf (k_1 + 1)}{tf + k_1 (1 - b + b\,len / avglen)}

    Args:
      counts: `[n, num_terms]` raw counts, at least 0; a document's length is its row sum.
      df: `[num_terms]` document frequencies of the training documents.
      num_docs: number of training documents, N.
      k1: saturation of the term frequency, at least 0.
      b: length normalisation in [0, 1].
      average_length: mean row sum of the training documents, above 0 unless all documents are empty.

    Returns:
      `[n, num_terms]` float32 CSR matrix.

    Raises:
      ValueError: as `tf_idf`, or a setting out of range.

    Example:
      >>> bm25(sp.csr_matrix([[1.0]]), np.array([1]), 1, average_length=1.0).toarray().round(4).tolist()
      [[0.2876999974250793]]
    """
    checks.expect(k1 >= 0, "k1", "a number of at least 0", k1)
    checks.expect(0 <= b <= 1, "b", "a number in [0, 1]", b)
    matrix, df = _checked(counts, df, num_docs)
    checks.expect(average_length > 0 or not matrix.nnz, "average_length", "a number above 0", average_length)
    lengths = np.repeat(np.asarray(matrix.sum(1)).ravel(), np.diff(matrix.indptr))
    saturated = matrix.data * (k1 + 1) / (matrix.data + k1 * (1 - b + b * lengths / (average_length or 1.0)))
    return _scaled(matrix, saturated, np.log1p((num_docs - df + 0.5) / (df + 0.5)))
