r"""Classes of words by the exchange algorithm (Kneser and Ney 1993; Martin, Liermann and Ney 1998).

A bigram model over classes, P(w | v) = P(c(w) | c(v)) P(w | c(w)), has the log-likelihood

.. math:: \sum_{a,b} N(a, b) \log N(a, b) - \sum_a N(a) \log N(a) - \sum_b N(b) \log N(b) + \text{const.}

with counts of class bigrams and of their first and second words. A pass takes every word in turn, the most frequent
first, out of its class and puts it where this sum is largest. It never falls, so passes end.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse
from tqdm import tqdm

from jaxsim import checks
from jaxsim.data.corpora.sentences import END, START, UNKNOWN, Sentences

__all__ = ["Classes", "bigrams", "exchange", "log_likelihood"]


class Classes(NamedTuple):
    """Classes of words.

    Attributes:
      of_word: ``[size]`` int32; the marks of sentences have the first two classes for themselves.
      log_likelihoods: one before the first pass and one after each.
    """

    of_word: np.ndarray
    log_likelihoods: list[float]


def bigrams(sentences: Sentences, size: int, *, min_count: int = 1) -> scipy.sparse.csr_matrix:
    """Counts of pairs of neighbours within sentences.

    Args:
      sentences: the text.
      size: words with numbers below it are kept; all others are ``<unk>``.
      min_count: pairs that occur less often are left out.

    Returns:
      ``[size, size]`` float64, first word by second word.

    Example:
      >>> text = Sentences(np.array([1, 3, 3, 2]), ("<unk>", "<s>", "</s>", "a"), np.array([0, 1, 1, 2]), "0", {})
      >>> bigrams(text, 4).toarray()[1:].tolist()
      [[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]]
    """
    tokens = np.asarray(sentences.tokens)
    tokens = np.where(tokens < size, tokens, UNKNOWN).astype(np.int64)
    first, second = tokens[:-1], tokens[1:]
    inside = second != START
    keys, counts = np.unique(first[inside] * size + second[inside], return_counts=True)
    keys, counts = keys[counts >= min_count], counts[counts >= min_count]
    return scipy.sparse.csr_matrix((counts.astype(np.float64), (keys // size, keys % size)), (size, size))


def _entropy(counts: np.ndarray) -> np.ndarray:
    """N log N, 0 where N is 0."""
    return counts * np.log(np.maximum(counts, 1e-300))


def log_likelihood(pairs: scipy.sparse.csr_matrix, of_word: np.ndarray) -> float:
    """The sum that `exchange` raises, in nats.

    Args:
      pairs: ``[size, size]``, of `bigrams`.
      of_word: ``[size]`` classes.

    Returns:
      The sum.
    """
    number = int(of_word.max()) + 1
    belongs = scipy.sparse.csr_matrix((np.ones(len(of_word)), (np.arange(len(of_word)), of_word)),
                                      (len(of_word), number))
    table = (belongs.T @ pairs @ belongs).toarray()
    return float(_entropy(table).sum() - _entropy(table.sum(0)).sum() - _entropy(table.sum(1)).sum())


def exchange(
    pairs: scipy.sparse.csr_matrix, number: int, *, passes: int = 20, tol: float = 1e-4, progress: bool = False
) -> Classes:
    """Clusters words by their neighbours.

    Args:
      pairs: ``[size, size]`` counts, of `bigrams`.
      number: classes, those of the two marks included.
      passes: the most passes; fewer where one gains too little.
      tol: a pass that gains less than this share of what the first gained is the last.
      progress: show words on stderr.

    Returns:
      `Classes`; words that are in no pair stay where they began, in the class of their rank modulo ``number - 2``.

    Raises:
      ValueError: for fewer than 3 classes, or fewer words.

    Example:
      >>> pairs = np.zeros((7, 7))
      >>> pairs[[3, 4, 3, 4], [5, 5, 6, 6]] = 2
      >>> found = exchange(scipy.sparse.csr_matrix(pairs), 4)
      >>> found.log_likelihoods[-1] >= found.log_likelihoods[0]
      True
    """
    checks.whole(number, "number", 3)
    checks.whole(passes, "passes", 1)
    size = pairs.shape[0]
    checks.expect(pairs.shape == (size, size) and size > END, "pairs", "counts of words by words", pairs.shape)
    after, before = pairs.tocsr(), pairs.tocsc()
    of_word = np.zeros(size, np.int32)
    words = np.array([word for word in range(size) if word not in (START, END)])
    of_word[START], of_word[END] = 0, 1
    of_word[words] = 2 + np.arange(len(words)) % (number - 2)
    weight = np.asarray(pairs.sum(0)).ravel() + np.asarray(pairs.sum(1)).ravel()
    order = words[np.argsort(-weight[words], kind="stable")]
    order = order[weight[order] > 0]
    belongs = scipy.sparse.csr_matrix((np.ones(size), (np.arange(size), of_word)), (size, number))
    table = np.asarray((belongs.T @ pairs @ belongs).todense())
    sums = [log_likelihood(pairs, of_word)]
    for turn in range(passes):
        for word in tqdm(order, desc=f"classes, pass {turn + 1}", disable=None if progress else True, leave=False):
            _place(int(word), table, of_word, _row(after, int(word)), _row(before, int(word)))
        sums.append(log_likelihood(pairs, of_word))
        if sums[-1] - sums[-2] <= tol * (sums[1] - sums[0]):
            break
    return Classes(of_word, sums)


def _row(matrix, word: int) -> tuple[np.ndarray, np.ndarray]:
    """Neighbours of a word and their counts, of compressed rows or columns."""
    part = slice(matrix.indptr[word], matrix.indptr[word + 1])
    return matrix.indices[part], matrix.data[part]


def _place(word: int, table: np.ndarray, of_word: np.ndarray, after, before) -> None:
    """Moves a word to the class in which the log-likelihood is largest; ``table`` changes with it."""
    number, old = len(table), of_word[word]
    right = np.bincount(of_word[after[0]], after[1] * (after[0] != word), minlength=number)
    left = np.bincount(of_word[before[0]], before[1] * (before[0] != word), minlength=number)
    itself = after[1][after[0] == word].sum()
    table[old] -= right
    table[:, old] -= left
    table[old, old] -= itself
    gains = _gains(table, right, left, itself)
    gains[:2] = -np.inf
    best = int(gains.argmax())
    best = best if gains[best] > gains[old] + 1e-9 * abs(gains[old]) else old
    table[best] += right
    table[:, best] += left
    table[best, best] += itself
    of_word[word] = best


def _gains(table: np.ndarray, right: np.ndarray, left: np.ndarray, itself: float) -> np.ndarray:
    """What each class would gain by a word, up to a constant."""
    cols, rows = np.flatnonzero(right), np.flatnonzero(left)
    gains = (_entropy(table[:, cols] + right[cols]) - _entropy(table[:, cols])).sum(1)
    gains += (_entropy(table[rows] + left[rows, None]) - _entropy(table[rows])).sum(0)
    # The cell of the class with itself is in both sums, and there the two are counted together.
    own = np.diagonal(table)
    gains += _entropy(own + right + left + itself) - _entropy(own + right) - _entropy(own + left) + _entropy(own)
    # Wherever the word goes, classes before it gain first words, and classes behind it second ones.
    for sums, more in ((table.sum(1) + left, right.sum() + itself), (table.sum(0) + right, left.sum() + itself)):
        gains -= _entropy(sums + more) - _entropy(sums)
    return gains
