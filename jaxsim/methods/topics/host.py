r"""Expected counts of topic models on the host: a loop that reads each count's weights once.

XLA on a CPU copies the weights of every count, and those of the padding, and then reads them twice. The compiled loops
come with the extra ``fast`` (numba). They also keep :math:`R = X / s` from the pass over the documents, with which the
counts of the words are a product of a sparse matrix and a dense one. Without numba, on an accelerator and over a mesh,
`em.expected` does the same; the results differ by rounding.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from jaxsim.sparse import host

_CACHE = 2**24
"""Bytes of topic vectors that the words read at a time: many words read the same documents, here from a cache."""
_LANES = 64  # topics, a multiple of what the loops hold at a time


class Rows(NamedTuple):
    """Compressed rows of counts.

    Attributes:
      starts: ``[n + 1]`` int64, where each row begins.
      columns: ``[nnz]`` int32.
      values: ``[nnz]`` float32 or float64, above 0.
    """

    starts: np.ndarray
    columns: np.ndarray
    values: np.ndarray


class Counts(NamedTuple):
    """Counts as an iteration reads them. Build with `counts_of`.

    Attributes:
      documents: `Rows` of the documents, over the words.
      starts: ``[num_words + 1]`` int64, where the documents of each word begin.
      rows: ``[nnz]`` int32, those documents.
      slots: ``[nnz]`` int64, where their counts stand among those of the documents.
    """

    documents: Rows
    starts: np.ndarray
    rows: np.ndarray
    slots: np.ndarray


@functools.cache
def compiled() -> ModuleType | None:
    """The module of the loops, or None where there are none, as in `sparse.host.compiled`.

    Example:
      >>> compiled() is None or compiled().__name__
      'jaxsim.methods.topics.host_kernel'
    """
    return None if host.compiled() is None else host.imported("jaxsim.methods.topics.host_kernel")


def takes(dtype) -> bool:
    """Whether there are loops for counts of this type.

    Args:
      dtype: of counts and weights.

    Returns:
      False where `compiled` is None, and for types that are neither float32 nor float64.

    Example:
      >>> takes(np.float16)
      False
    """
    return compiled() is not None and np.dtype(dtype) in (np.float32, np.float64)


def counts_of(matrix: sp.csr_matrix) -> Counts:
    """Counts of documents, and the way to those of each word.

    Args:
      matrix: ``[n, num_words]`` CSR of counts.

    Returns:
      `Counts`.

    Example:
      >>> counts_of(sp.csr_matrix([[1.0, 0.0], [2.0, 3.0]])).slots.tolist()
      [0, 1, 2]
    """
    rows = _rows(matrix)
    shape = matrix.shape
    across = sp.csr_matrix((np.arange(len(rows.values)), rows.columns, rows.starts), shape=shape).T.tocsr()
    return Counts(rows, across.indptr.astype(np.int64), across.indices.astype(np.int32), across.data)


def _rows(matrix: sp.csr_matrix) -> Rows:
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data)


def of_documents(rows: Rows, theta: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, np.ndarray, float]:
    r"""Expected counts of documents, :math:`N = \theta \circ (R \phi)`.

    Args:
      rows: `Rows` of the documents.
      theta: ``[n, k]`` of the type of the counts.
      words: ``[num_words, k]`` likewise.

    Returns:
      ``([n, k], [nnz], float)``: the counts, R, and :math:`\sum x \log s` in nats. An entry of rate 0 adds nothing.

    Example:
      >>> rows = counts_of(sp.csr_matrix([[1.0, 3.0]])).documents
      >>> takes(np.float64) and [one.tolist() for one in of_documents(rows, np.full((1, 2), 0.5), np.eye(2))[:2]] or (
      ...     [[[1.0, 3.0]], [2.0, 6.0]])
      [[[1.0, 3.0]], [2.0, 6.0]]
    """
    counts, ratios = host.empty(theta.shape, theta.dtype), np.empty_like(rows.values)
    likelihood = np.empty(len(theta))
    given = *rows, theta, words, np.finfo(words.dtype).tiny, ratios, counts, likelihood
    host.in_parts(functools.partial(compiled().expected, *given), rows.starts, words.shape[1])
    return counts, ratios, float(likelihood.sum())


def of_words(counts: Counts, ratios: np.ndarray, theta: np.ndarray, words: np.ndarray) -> np.ndarray:
    r"""Expected counts of words, :math:`N = \phi \circ (R^\top \theta)`.

    Args:
      counts: `Counts`.
      ratios: ``[nnz]``, R as `of_documents` gives it.
      theta: ``[n, k]``, which it was given.
      words: ``[num_words, k]``, likewise.

    Returns:
      ``[num_words, k]``.

    Example:
      >>> counts = counts_of(sp.csr_matrix([[1.0, 3.0]]))
      >>> words = takes(np.float64) and of_words(counts, np.array([2.0, 6.0]), np.full((1, 2), 0.5), np.eye(2))
      >>> words is False or words.tolist() == [[1.0, 0.0], [0.0, 3.0]]
      True
    """
    ratios, (n, k) = ratios[counts.slots], theta.shape
    width = max(_CACHE // (max(n, 1) * theta.itemsize) // _LANES, 1) * _LANES
    if width >= k:
        found = host.product(counts.starts, counts.rows, ratios, theta)
        return np.multiply(found, words, out=found)
    found = host.empty(words.shape, words.dtype)
    for first in range(0, k, width):
        those = np.s_[:, first : first + width]
        np.multiply(host.product(counts.starts, counts.rows, ratios, theta[those]), words[those], out=found[those])
    return found


def fold(matrix: sp.csr_matrix, words: np.ndarray, *, prior: float, iterations: int) -> np.ndarray:
    """Topic vectors of documents by some iterations for θ, φ being fixed.

    Args:
      matrix: ``[n, num_words]`` CSR of counts.
      words: ``[num_words, k]`` of the same type.
      prior: added to the counts of every topic, ``α - 1``.
      iterations: at least 1.

    Returns:
      ``[n, k]``, rows that sum to 1.

    Example:
      >>> theta = takes(np.float64) and fold(sp.csr_matrix([[1.0, 3.0]]), np.eye(2), prior=0.0, iterations=2)
      >>> theta is False or theta.tolist() == [[0.25, 0.75]]
      True
    """
    rows = _rows(matrix)
    theta, dtype = host.empty((matrix.shape[0], words.shape[1]), words.dtype), words.dtype.type
    given = *rows, words, np.finfo(dtype).tiny, dtype(prior), iterations, theta
    host.in_parts(functools.partial(compiled().fold, *given), rows.starts, words.shape[1] * iterations)
    return theta
