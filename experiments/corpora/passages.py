"""Short texts made longer by a search of our own: BM25 over passages of a local collection (004 §4.1)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, text
from jaxsim.text import Vocabulary

_COMMON = 0.1
_BLOCK = 256


@dataclass(frozen=True, eq=False)
class Passages:
    """What is searched, ready for queries.

    Attributes:
      tokens: words of each passage in their own case.
      vocabulary: of lower-case words, with their document frequencies among the passages.
      weights: ``[num_terms, num_passages]`` BM25 weights.
    """

    tokens: list[list[str]]
    vocabulary: Vocabulary
    weights: sp.csr_matrix

    def __len__(self) -> int:
        """Number of passages."""
        return len(self.tokens)


def cut(texts: Iterable[str], titles: Iterable[str], *, size: int) -> list[list[str]]:
    """Passages of neighbouring words, each below the title of its text, as a search engine shows them.

    Args:
      texts: the collection.
      titles: one a text.
      size: words of a passage, the title's not counted; the last one of a text may be shorter.

    Returns:
      Words of each passage in their own case. A text without words gives none.

    Example:
      >>> cut(["One two three."], ["Numbers"], size=2)
      [['Numbers', 'One', 'two'], ['Numbers', 'three']]
    """
    checks.positive_int(size, "size")
    found = []
    for body, title in zip(texts, titles, strict=True):
        words, head = text.words(body, lower=False), text.words(title, lower=False)
        found += [head + words[start : start + size] for start in range(0, len(words), size)]
    return found


def index(tokens: list[list[str]], *, min_df: int = 2) -> Passages:
    """Counts passages and weighs their terms.

    Args:
      tokens: words of each passage, in their own case.
      min_df: terms in fewer passages than this are neither found nor features of anything.

    Returns:
      `Passages`.

    Raises:
      ValueError: without passages.
    """
    checks.expect(len(tokens) > 0, "tokens", "at least one passage", "none")
    folded = [[word.lower() for word in one] for one in tokens]
    vocabulary = Vocabulary.build(folded, drop_top=0, max_terms=10**9, min_df=min_df)
    counts = text.counts(folded, vocabulary)
    weights = text.bm25(counts, vocabulary.df, len(tokens), average_length=max(counts.sum() / len(tokens), 1.0))
    return Passages(tokens, vocabulary, weights.T.tocsr())


def search(passages: Passages, queries: Sequence[Sequence[str]], *, k: int) -> list[np.ndarray]:
    """The best passages of each query by BM25.

    Words in more than a tenth of the passages find nothing unless a query has no others.

    Args:
      passages: as `index` gives them.
      queries: lower-case words of each query.
      k: how many passages at most.

    Returns:
      Passage numbers of each query, the best first, of equal ones the lower first; none where no word is known.

    Example:
      >>> found = index([["Tea", "green"], ["coffee"], ["tea", "tea"], ["milk", "coffee"]], min_df=1)
      >>> [one.tolist() for one in search(found, [["tea"], ["cocoa"]], k=2)]
      [[2, 0], []]
    """
    checks.positive_int(k, "k")
    counts = text.counts(queries, passages.vocabulary)
    common = passages.vocabulary.df[counts.indices] > _COMMON * len(passages)
    row = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
    others = np.bincount(row, weights=~common, minlength=counts.shape[0]) > 0
    counts.data[common & others[row]] = 0
    counts.eliminate_zeros()
    found = []
    for start in range(0, counts.shape[0], _BLOCK):
        scores = counts[start : start + _BLOCK] @ passages.weights
        for first, last in zip(scores.indptr[:-1], scores.indptr[1:], strict=True):
            found.append(_best(scores.data[first:last], scores.indices[first:last], k))
    return found


def _best(scores: np.ndarray, columns: np.ndarray, k: int) -> np.ndarray:
    if len(scores) > k:
        kept = scores >= np.partition(scores, len(scores) - k)[len(scores) - k]
        scores, columns = scores[kept], columns[kept]
    return columns[np.lexsort((columns, -scores))[:k]]


def pseudo_documents(passages: Passages, found: Iterable[np.ndarray]) -> list[list[str]]:
    """The passages of each query, one after the other: what stands for the query from then on.

    Args:
      passages: what was searched.
      found: as `search` gives them.

    Returns:
      Words in their own case; an empty list where nothing was found.
    """
    return [[word for number in one for word in passages.tokens[number]] for one in found]
