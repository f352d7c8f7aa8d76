"""Cross-language LSI: LSA of comparable documents whose counts are summed before they are weighted (002 §2.1)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim import sparse
from jaxsim.methods import statistics
from jaxsim.methods.projections import lsa
from jaxsim.optim import Fit
from jaxsim.sparse import Terms
from jaxsim.text import weightings

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""


def fit(views: Sequence[Terms], *, k: int, unit_length: bool = False) -> Fit:
    r"""LSA of :math:`\log_2(\sum_m f^m_{ij} + 1) \log_2(n / d_j)` (002 Eq. 5).

    Args:
      views: two or more `Terms` of **counts**, the same documents in several languages over shared vocabulary slots.
      k: target dimension, at most ``min(num_docs, num_terms)``.
      unit_length: whether each summed document is scaled to length one, so that long ones do not dominate (ours; the
        paper's documents keep their lengths).

    Returns:
      `Fit` of `Projection`, to be applied to `log_tfidf` vectors whose ``d_j`` and ``n`` are over all languages.

    Raises:
      ValueError: for negative counts, views that do not agree, or ``k`` out of range.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> view = from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 1.0]]))
      >>> fit((view, view), k=1).params.weights.shape
      (2, 1)

    Relations: `lsa` of one language; it cannot be fitted on vectors that are already weighted, because the sum comes
    before the logarithm.
    """
    views = statistics.checked_views(views)
    matrices = [statistics.counts_of(view, f"views[{i}]") for i, view in enumerate(views)]
    df = sum(weightings.document_frequency(matrix) for matrix in matrices)
    idf = weightings.inverse_frequency(df, sum(view.num_docs for view in views), np.log2)
    total = sum(matrices[1:], start=matrices[0]).tocsr()
    total.data = (weightings.log_counts(total.data) * idf[total.indices]).astype(total.dtype)
    if unit_length:
        length = np.sqrt(np.asarray(total.multiply(total).sum(axis=1)).ravel())
        total.data /= np.repeat(np.where(length > 0, length, 1), np.diff(total.indptr)).astype(total.dtype)
    return lsa.fit(sparse.from_scipy(total), k=k)
