r"""Correlated feature hashing: words, or n-grams, as the frequent words that they stand beside (003 §2.2.3, Eq. 6, 7).

Every feature i is replaced by the k of the F most frequent words with the largest DICE coefficient, counted on
documents without labels. Documents of any vocabulary then are documents of F words, which any method of the family
takes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from jaxsim import checks

_BLOCK = 2048  # features at a time


def dice(features, words, *, k: int = 5) -> scipy.sparse.csr_matrix:
    r"""The ``k`` words that each feature stands beside most, by their DICE coefficient.

    .. math:: DICE(i, j) = \frac{2 \cdot cooccur(i, j)}{occur(i) + occur(j)}

    where occur and cooccur count documents, so that a word is as close to itself as can be, at 1.

    Args:
      features: ``[num_docs, num_features]`` counts, words or n-grams.
      words: ``[num_docs, F]`` counts of the frequent words in the same documents.
      k: words a feature.

    Returns:
      ``[num_features, F]`` CSR matrix of coefficients, at most ``k`` a row and none of 0; of equal ones the lower
      word's. A feature that occurs nowhere has none.

    Raises:
      ValueError: if the numbers of documents differ, there are none, or ``k`` is no whole number of at least 1.

    Example:
      >>> both = scipy.sparse.csr_matrix([[1, 1, 0], [2, 0, 1], [0, 1, 0]])
      >>> dice(both, both[:, :2], k=1).toarray().round(2).tolist()
      [[1.0, 0.0], [0.0, 1.0], [0.67, 0.0]]

    Differs from the paper: it prints occurrences for occur and co-occurrences in documents or sentences for cooccur;
    here both count documents, which keeps the coefficient at most 1.
    """
    checks.positive_int(k, "k")
    features, words = (scipy.sparse.csr_matrix(side) for side in (features, words))
    checks.expect(features.shape[0] > 0, "features", "at least one document", 0)
    checks.expect(features.shape[0] == words.shape[0], "words", f"{features.shape[0]} documents (as features)",
                  words.shape[0])
    features, words = ((side > 0).astype(np.float32) for side in (features, words))
    occur = [np.asarray(side.sum(axis=0)).ravel() for side in (features, words)]
    across = features.T.tocsr()
    blocks = [_closest((across[start : start + _BLOCK] @ words).tocsr(), occur[0][start : start + _BLOCK], occur[1], k)
              for start in range(0, across.shape[0], _BLOCK)]
    return scipy.sparse.vstack([scipy.sparse.csr_matrix((0, words.shape[1]), dtype=np.float32), *blocks]).tocsr()


def _closest(cooccur, occur: np.ndarray, of_words: np.ndarray, k: int) -> scipy.sparse.csr_matrix:
    """The ``k`` largest coefficients of each row of a block."""
    row = np.repeat(np.arange(cooccur.shape[0]), np.diff(cooccur.indptr))
    value = 2 * cooccur.data / (occur[row] + of_words[cooccur.indices])
    kept = np.zeros(value.size, bool)
    for begin, end in zip(cooccur.indptr[:-1], cooccur.indptr[1:], strict=True):
        part = value[begin:end]
        if part.size > k:
            least = np.partition(part, part.size - k)[part.size - k]
            above = part > least
            equal = np.flatnonzero(part == least)
            order = equal[np.argsort(cooccur.indices[begin:end][equal])]
            above[order[: k - np.count_nonzero(above)]] = True
            kept[begin:end] = above
        else:
            kept[begin:end] = True
    result = scipy.sparse.csr_matrix((value[kept], (row[kept], cooccur.indices[kept])), shape=cooccur.shape)
    result.sort_indices()
    return result


def hashed(documents, closest) -> scipy.sparse.csr_matrix:
    r"""Documents of any features as documents of the F words, 003 Algorithm 1.

    Every feature's weight goes to each of its words: :math:`a = \sum_p \sum_i q_i e_{S_p(i)} / \sqrt k`, so that
    :math:`a^\top W b` is Eq. (6).

    Args:
      documents: ``[n, num_features]`` weights; whole numbers are legal.
      closest: ``[num_features, F]``, as from `dice`; which entries there are counts, not how large they are.

    Returns:
      ``[n, F]`` CSR matrix; k is the largest number of words that a feature has.

    Raises:
      ValueError: if the numbers of features differ.

    Example:
      >>> closest = scipy.sparse.csr_matrix([[1.0, 0.5], [0.2, 0.0]])
      >>> hashed(scipy.sparse.csr_matrix([[1.0, 2.0]]), closest).toarray().round(2).tolist()
      [[2.12, 0.71]]
    """
    documents, closest = scipy.sparse.csr_matrix(documents), scipy.sparse.csr_matrix(closest)
    checks.expect(documents.shape[1] == closest.shape[0], "documents", f"{closest.shape[0]} features (as closest)",
                  documents.shape[1])
    k = max(int(np.diff(closest.indptr).max(initial=0)), 1)
    counts = not np.issubdtype(documents.dtype, np.inexact)  # a share of one is no whole number
    share = (closest != 0).astype(np.result_type(documents.dtype, np.float32) if counts else documents.dtype)
    share.data /= np.sqrt(k)
    result = scipy.sparse.csr_matrix(documents @ share)
    result.sort_indices()
    return result
