"""Counts to weights: tf·idf, log-tf·idf and BM25.

The formulas stand here once, on plain arrays of NumPy or JAX: `jaxsim.methods` uses them for methods that are fitted
and compiled. `tf_idf`, `log_tf_idf` and `bm25` apply them to SciPy matrices on the host.

References: Platt, Toutanova and Yih (2010), "Translingual document representations from discriminative projections"
(log-tf·idf); Yih (2009), "Learning term-weighting functions for similarity measures" (tf·idf); Robertson and Zaragoza
(2009), "The probabilistic relevance framework: BM25 and beyond" (BM25).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from jaxsim import checks

__all__ = ["bm25", "document_frequency", "expect_bm25", "inverse_frequency", "log_counts", "log_tf_idf",
           "okapi_inverse_frequency", "saturated_counts", "tf_idf"]


def document_frequency(matrix: sp.csr_matrix) -> np.ndarray:
    """Number of documents each term occurs in.

    Args:
      matrix: ``[num_docs, num_terms]``, without duplicates.

    Returns:
      ``[num_terms]`` int64.

    Example:
      >>> document_frequency(sp.csr_matrix([[2.0, 0.0], [1.0, 1.0]])).tolist()
      [2, 1]
    """
    return np.bincount(matrix.indices[matrix.data != 0], minlength=matrix.shape[1])


def inverse_frequency(df: np.ndarray, num_docs: int, log: Callable[[np.ndarray], np.ndarray] = np.log) -> np.ndarray:
    """``log(N / df)``; 0 for a term that occurs in no document.

    Args:
      df: ``[num_terms]`` document frequencies.
      num_docs: ``N``.
      log: the logarithm, ``np.log`` (001 eq. 5) or ``np.log2`` (002 eq. 8).

    Returns:
      ``[num_terms]`` float64.

    Example:
      >>> inverse_frequency(np.array([1, 2, 0]), 2, np.log2).tolist()
      [1.0, 0.0, 0.0]
    """
    return np.where(df > 0, log(max(num_docs, 1) / np.where(df > 0, df, 1)), 0.0)


def okapi_inverse_frequency(df: np.ndarray, num_docs: int) -> np.ndarray:
    """``log(1 + (N - df + .5) / (df + .5))``, which is never negative; 0 for a term that occurs in no document.

    Args:
      df: ``[num_terms]`` document frequencies.
      num_docs: ``N``.

    Returns:
      ``[num_terms]`` float64.

    Example:
      >>> okapi_inverse_frequency(np.array([1, 0]), 1).round(4).tolist()
      [0.2877, 0.0]
    """
    return np.where(df > 0, np.log1p((num_docs - df + 0.5) / (df + 0.5)), 0.0)


def log_counts(counts):
    """``log2(tf + 1)``.

    Args:
      counts: floating array of NumPy or JAX.

    Returns:
      The same shape and type.

    Example:
      >>> log_counts(np.array([0.0, 3.0])).tolist()
      [0.0, 2.0]
    """
    return counts.__array_namespace__().log2(counts + 1)


def saturated_counts(counts, lengths, k1, b):
    """``tf (k1 + 1) / (tf + k1 (1 - b + b · length))``; 0 where the count is 0.

    Args:
      counts: floating array of NumPy or JAX.
      lengths: of the document of each count, relative to the mean; the same shape.
      k1: saturation of the count.
      b: length normalisation in [0, 1].

    Returns:
      The shape and type of ``counts``.

    Example:
      >>> saturated_counts(np.array([0.0, 1.0]), np.array([0.0, 1.0]), 1.0, 1.0).tolist()
      [0.0, 1.0]
    """
    total = counts + k1 * (1 - b + b * lengths)
    # 0 where the count is 0, and so is k1 or the length; NaN where k1 is 0 and the length infinite.
    return counts * (k1 + 1) / counts.__array_namespace__().where(total > 0, total, 1)


def expect_bm25(k1: float, b: float) -> None:
    """Refuses settings of BM25 out of range.

    Args:
      k1: saturation of the count.
      b: length normalisation.

    Raises:
      ValueError: for a negative ``k1``, or a ``b`` outside [0, 1].

    Example:
      >>> expect_bm25(1.2, 0.75)
    """
    checks.expect(k1 >= 0, "k1", "at least 0", k1)
    checks.expect(0 <= b <= 1, "b", "a number in [0, 1]", b)


def _checked(counts: sp.spmatrix, df: np.ndarray, num_docs: int) -> tuple[sp.csr_matrix, np.ndarray, np.ndarray]:
    """The counts without duplicates (themselves, where they have none), their float64 values, and the frequencies."""
    matrix = counts if isinstance(counts, sp.csr_matrix) else sp.csr_matrix(counts)
    if not matrix.has_canonical_format:
        matrix = sp.csr_matrix(matrix, dtype=np.float64, copy=True)
        matrix.sum_duplicates()
    data, df = matrix.data.astype(np.float64, copy=False), np.asarray(df)
    checks.expect(df.shape == (matrix.shape[1],), "df", f"one number a term, shape ({matrix.shape[1]},)", df.shape)
    checks.expect(bool(np.isfinite(data).all()), "counts", "finite numbers", "NaN or infinity")
    checks.expect(bool((data >= 0).all()), "counts", "no negative numbers", data.min(initial=0))
    if not (df.min(initial=0) >= 0 and df.max(initial=0) <= num_docs):  # NaN is neither
        outside = df[~((df >= 0) & (df <= num_docs))]
        checks.expect(False, "df", f"numbers in 0 ... num_docs = {num_docs}", outside[:1].tolist())
    return matrix, data, df


def _scaled(matrix: sp.csr_matrix, values: np.ndarray, df: np.ndarray, idf: Callable[[np.ndarray], np.ndarray]
            ) -> sp.csr_matrix:
    """A matrix of the same pattern with other values, each times its term's idf."""
    few = matrix.nnz < len(df)  # of one query, the terms that it has; of many texts, each term once
    terms = idf(df[matrix.indices].astype(np.float64)) if few else idf(df.astype(np.float64))[matrix.indices]
    values = (values * terms).astype(np.float32)
    scaled = sp.csr_matrix((values, matrix.indices.copy(), matrix.indptr.copy()), shape=matrix.shape)
    if not values.all():
        scaled.eliminate_zeros()
    scaled.has_canonical_format = True
    return scaled


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
    matrix, data, df = _checked(counts, df, num_docs)
    return _scaled(matrix, data, df, lambda some: inverse_frequency(some, num_docs))


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
    matrix, data, df = _checked(counts, df, num_docs)
    return _scaled(matrix, log_counts(data), df, lambda some: inverse_frequency(some, num_docs, np.log2))


def bm25(
    counts: sp.spmatrix, df: np.ndarray, num_docs: int, *, k1: float = 1.2, b: float = 0.75, average_length: float,
    lengths: np.ndarray | None = None,
) -> sp.csr_matrix:
    r"""Okapi BM25 weights of documents, to be multiplied (dot product, not cosine) with the raw counts of a query.

    .. math:: \log\left(1 + \frac{N - df + .5}{df + .5}\right) \frac{tf (k_1 + 1)}{tf + k_1 (1 - b + b\,len / avglen)}

    Args:
      counts: `[n, num_terms]` raw counts, at least 0.
      df: `[num_terms]` document frequencies of the training documents; a term with 0 gets weight 0.
      num_docs: number of training documents, N.
      k1: saturation of the term frequency, at least 0.
      b: length normalisation in [0, 1].
      average_length: mean length of the training documents, above 0 unless all documents are empty.
      lengths: `[n]` lengths of the documents, at least 0; None for the row sums.

    Returns:
      `[n, num_terms]` float32 CSR matrix.

    Raises:
      ValueError: as `tf_idf`, or a setting out of range.

    Example:
      >>> bm25(sp.csr_matrix([[1.0]]), np.array([1]), 1, average_length=1.0).toarray().round(4).tolist()
      [[0.2876999974250793]]
    """
    expect_bm25(k1, b)
    matrix, data, df = _checked(counts, df, num_docs)
    checks.expect(average_length > 0 or not matrix.nnz, "average_length", "a number above 0", average_length)
    lengths = np.asarray(matrix.sum(1, dtype=np.float64)).ravel() if lengths is None else np.asarray(lengths)
    checks.expect(lengths.shape == (matrix.shape[0],), "lengths", f"shape ({matrix.shape[0]},)", lengths.shape)
    checks.expect(bool((lengths >= 0).all()), "lengths", "numbers of at least 0", lengths)  # NaN is not
    each = np.repeat(lengths.astype(np.float64), np.diff(matrix.indptr))
    saturated = saturated_counts(data, each / (average_length or 1.0), k1, b)
    return _scaled(matrix, saturated, df, lambda some: okapi_inverse_frequency(some, num_docs))
