"""A corpus space: words by the words around them in Wikipedia for Schools (PILSA §6.2.1)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import linalg, sparse, text
from jaxsim.data import wikispeedia

WINDOW, CONTEXTS, MIN_COUNT = 10, 20_000, 5
_CHUNK = 2_000_000


class Corpus(NamedTuple):
    """Words with vectors.

    Attributes:
      words: those that occur often enough.
      vectors: ``[num_words, k]`` float32.
    """

    words: tuple[str, ...]
    vectors: np.ndarray


def cooccurrences(ids: np.ndarray, columns: np.ndarray, shape: tuple[int, int], *, window: int) -> sp.csr_matrix:
    """How often words stand within a window of context words.

    Args:
      ids: ``[n]`` row of each token of a text, -1 for none.
      columns: ``[n]`` column of each token as a context, -1 for none.
      shape: ``(num_words, num_contexts)``.
      window: tokens to either side.

    Returns:
      ``shape`` float32.

    Example:
      >>> cooccurrences(np.array([0, 1, -1]), np.array([-1, 0, 1]), (2, 2), window=1).toarray().tolist()
      [[1.0, 0.0], [0.0, 1.0]]
    """
    total = sp.csr_matrix(shape, dtype=np.float32)
    for start in range(0, len(ids), _CHUNK):
        part = slice(start, start + _CHUNK + window)
        rows, cols = ids[part], columns[part]
        for shift in range(1, window + 1):
            both = (rows[:-shift], cols[shift:]), (rows[shift:], cols[:-shift])
            for a, b in both if start + _CHUNK >= len(ids) else [(a[:_CHUNK], b[:_CHUNK]) for a, b in both]:
                kept = (a >= 0) & (b >= 0)
                total += sp.csr_matrix((np.ones(int(kept.sum()), np.float32), (a[kept], b[kept])), shape=shape)
    return total


def space(words: Sequence[str], *, k: int) -> Corpus:
    """LSA of the contexts of some words.

    Args:
      words: wanted ones; those that occur fewer than `MIN_COUNT` times have no vector.
      k: dimension.

    Returns:
      `Corpus`.
    """
    tokens: list[str] = []
    for article in wikispeedia.load().texts:
        tokens += text.words(article)
        tokens += [""] * WINDOW  # articles are apart
    names, ids = np.unique(np.array(tokens), return_inverse=True)
    counts = np.bincount(ids)
    counts[names == ""] = 0
    wanted = np.isin(names, list(words)) & (counts >= MIN_COUNT)
    frequent = np.zeros(len(names), bool)
    frequent[np.argsort(-counts, kind="stable")[:CONTEXTS]] = True
    rows, columns = (np.where(some, np.cumsum(some) - 1, -1)[ids] for some in (wanted, frequent & (counts > 0)))
    shape = int(wanted.sum()), int((frequent & (counts > 0)).sum())
    matrix = cooccurrences(rows, columns, shape, window=WINDOW)
    # tf·idf with log(tf + 1), so that the few most frequent contexts do not decide everything.
    df = np.maximum(np.bincount(matrix.indices, minlength=shape[1]), 1)
    matrix.data = np.log1p(matrix.data) * np.log(shape[0] / df)[matrix.indices].astype(np.float32)
    documents = sparse.from_scipy(matrix)
    values, right = linalg.randomised_svd(documents, min(k, *shape), key=jax.random.key(0))
    del values
    return Corpus(tuple(names[wanted].tolist()), np.asarray(sparse.project(documents, right)))


def synthetic(words: Sequence[str]) -> Corpus:
    """A made-up space of which the quick preset makes use: random vectors."""
    rng = np.random.default_rng(0)
    return Corpus(tuple(words), rng.normal(size=(len(words), 8)).astype(np.float32))
