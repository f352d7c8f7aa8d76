r"""Signed entries of thesauri: synonyms have positive weights, antonyms negative ones (PILSA §4, Table 3).

Every entry is a document. A word that means the same has weight +tf·idf, one that means the opposite -tf·idf, with
tf = 1. The columns of two words then have a positive cosine where entries use the words alike, and a
negative one where entries oppose them.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse
from jaxsim.data.corpora.thesauri import Thesaurus
from jaxsim.sparse import Terms

_IDF = 64.0  # more than the logarithm of any number of entries


@dataclasses.dataclass(frozen=True, eq=False)
class Signed:
    """Entries of thesauri as signed documents.

    Attributes:
      words: the columns, in the order in which the sources name them.
      tf: ``[num_entries, num_words]`` float32: ±source weight.
      idf: ``[num_words]`` float32: log(N / df), 0 for a word of every entry.
      heads: ``[num_entries]`` column of the word that an entry is about; -1 for none.
      sources: names of the thesauri, with their weights; a number is behind a name that stands there already.
      antonyms: ``[n, 2]`` columns of words that a source without heads calls opposites of each other.
    """

    words: tuple[str, ...]
    tf: sp.csr_matrix
    idf: np.ndarray
    heads: np.ndarray
    sources: dict[str, float]
    antonyms: np.ndarray

    def __repr__(self) -> str:
        """In short: the matrix is large."""
        return f"Signed(entries={self.tf.shape[0]}, words={len(self.words)}, sources={self.sources})"

    @functools.cached_property
    def weights(self) -> sp.csr_matrix:
        """``W``, ``[num_entries, num_words]`` float32: ±tf · idf."""
        data = self.tf.data * self.idf[self.tf.indices]
        return sp.csr_matrix((data, self.tf.indices, self.tf.indptr), shape=self.tf.shape)

    @functools.cached_property
    def index(self) -> dict[str, int]:
        """Word -> column."""
        return {word: at for at, word in enumerate(self.words)}

    @functools.cached_property
    def columns(self) -> sp.csr_matrix:
        """``Wᵀ``, ``[num_words, num_entries]``: a row is a word's vector of entries, the ``f`` of S2Net."""
        return self.weights.T.tocsr()

    def terms(self, *, unsigned: bool = False) -> Terms:
        """The words as documents of entries, for methods.

        Args:
          unsigned: whether antonyms count as synonyms do: ordinary LSA of a thesaurus (PILSA §3.1).

        Returns:
          `Terms`, ``[num_words, num_entries]``.
        """
        return sparse.from_scipy(abs(self.columns) if unsigned else self.columns)

    def pairs(self) -> np.ndarray:
        """Columns of antonyms: the head of every entry that has one, with its negative words; then ``antonyms``.

        Returns:
          ``[num_pairs, 2]`` int64, distinct as unordered pairs, in the order of the entries.
        """
        entry = np.repeat(np.arange(self.tf.shape[0]), np.diff(self.tf.indptr))
        negative = self.tf.data < 0
        found = np.stack([self.heads[entry[negative]], self.tf.indices[negative]], axis=1).astype(np.int64)
        return distinct(np.concatenate([found[found[:, 0] >= 0], self.antonyms]))


def distinct(pairs: np.ndarray) -> np.ndarray:
    """Unordered pairs, each once, as they first come; pairs of a word with itself are dropped.

    Args:
      pairs: ``[n, 2]`` integers.

    Returns:
      ``[m, 2]``.

    Example:
      >>> distinct(np.array([[0, 1], [1, 0], [2, 2], [1, 2]])).tolist()
      [[0, 1], [1, 2]]
    """
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    _, first = np.unique(np.sort(pairs, axis=1), axis=0, return_index=True)
    return pairs[np.sort(first)]


def documents(sources: Sequence[Thesaurus], *, weights: Sequence[float] | None = None, idf: bool = True) -> Signed:
    """Signed documents of one or more thesauri.

    Args:
      sources: the thesauri, at least one entry in all.
      weights: one positive factor a source, for its rows, in the range of float32; 1 unless given.
      idf: whether weights have the factor log(N / df), with df over the entries of all sources.

    Returns:
      `Signed`. Rows are not normalised. Contradictory entries (a pair is alike in one entry, opposite in another) stay
      as they are: their products cancel.

    Raises:
      ValueError: no entries, or weights that do not fit.

    Example:
      >>> from jaxsim.data.corpora import thesauri
      >>> mine = thesauri.thesaurus("mine", [("acrimony", ["rancor"], ["goodwill", "affection"]),
      ...                                    ("affection", ["goodwill"], ["acrimony", "rancor"])])
      >>> documents([mine], idf=False).weights.toarray().tolist()  # PILSA, Table 3
      [[1.0, 1.0, -1.0, -1.0], [-1.0, -1.0, 1.0, 1.0]]
    """
    weights = [1.0] * len(sources) if weights is None else list(weights)
    checks.expect(len(weights) == len(sources), "weights", f"{len(sources)} (as sources)", len(weights))
    least, most = float(np.finfo(np.float32).tiny), float(np.finfo(np.float32).max) / _IDF
    checks.expect(all(0 < weight < float("inf") for weight in weights), "weights", "positive numbers", weights)
    checks.expect(all(least <= weight <= most for weight in weights), "weights",
                  f"numbers from {least:.2g} to {most:.2g} (float32)", weights)
    index: dict[str, int] = {}
    rows, columns, values, heads, number = [], [], [], [], 0
    for source, weight in zip(sources, weights, strict=True):
        for entry in source.entries:
            for words, sign in ((entry.positive, weight), (entry.negative, -weight)):
                for word in words:
                    rows.append(number)
                    columns.append(index.setdefault(word, len(index)))
                    values.append(sign)
            heads.append(index[entry.head] if entry.head else -1)
            number += 1
    checks.expect(number > 0, "sources", "at least one entry", "none")
    matrix = sp.csr_matrix((np.array(values, np.float32), (rows, columns)), shape=(number, len(index)))
    matrix.sort_indices()
    df = np.maximum(np.bincount(matrix.indices, minlength=len(index)), 1)
    factor = np.log(number / df).astype(np.float32) if idf else np.ones(len(index), np.float32)
    names: dict[str, float] = {}
    for source, weight in zip(sources, weights, strict=True):
        numbered = (f"{source.name} ({number})" for number in itertools.count(2))
        names[next(name for name in itertools.chain([source.name], numbered) if name not in names)] = float(weight)
    opposed = [(index[a], index[b]) for source in sources for a, b in source.antonyms if a in index and b in index]
    return Signed(tuple(index), matrix, factor, np.array(heads, np.int64), names,
                  np.array(opposed, np.int64).reshape(-1, 2))


def unit_rows(vectors: np.ndarray | sp.csr_matrix) -> np.ndarray | sp.csr_matrix:
    """Rows of length one; zero rows stay zero.

    Args:
      vectors: ``[n, k]``, dense or sparse.

    Returns:
      The same kind, float32.

    Example:
      >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
      [[0.6, 0.8], [0.0, 0.0]]
    """
    if not sp.issparse(vectors):  # on the host: no program to compile for every number of rows
        vectors = np.asarray(vectors, np.float32)
        norms = np.sqrt(np.square(vectors, dtype=np.float64).sum(axis=1, keepdims=True))
        return np.divide(vectors, norms, out=np.zeros_like(vectors), where=norms > 0, casting="same_kind")
    # Squares of what is near 1: powers of two change no digit, and float32 has no squares of 1e-30 or 1e20.
    vectors = vectors.tocsr(copy=True)
    largest = abs(vectors).max(axis=1).toarray().ravel() if vectors.nnz else np.zeros(vectors.shape[0])
    vectors.data = np.ldexp(vectors.data, -np.repeat(np.frexp(largest)[1], np.diff(vectors.indptr)))
    norms = np.sqrt(np.asarray(vectors.multiply(vectors).sum(axis=1)).ravel())
    return sp.diags(np.where(norms > 0, 1 / np.where(norms > 0, norms, 1), 0).astype(np.float32)) @ vectors
