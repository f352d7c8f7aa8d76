"""Checks and statistics of documents that several methods need."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from jaxsim import checks, sparse
from jaxsim.sparse import Terms


def checked_views(views: Sequence[Terms], *, at_least: int = 2, same_terms: bool = True) -> tuple[Terms, ...]:
    """Comparable documents in several languages, checked for agreement.

    Args:
      views: `Terms` of the same documents over the same vocabulary slots, one a language.
      at_least: number of languages required.
      same_terms: whether all of them are over one vocabulary.

    Returns:
      The views as a tuple.

    Raises:
      ValueError: if there are too few, or they differ in documents or vocabulary, or have no documents.

    Example:
      >>> import scipy.sparse
      >>> view = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0]]))
      >>> len(checked_views((view, view)))
      2
    """
    views = tuple(views) if isinstance(views, Sequence) else (views,)
    checks.expect(len(views) >= at_least, "views", f"at least {at_least} languages", len(views))
    first = views[0]
    for i, view in enumerate(views):
        checks.kind(view, f"views[{i}]", Terms)
        checks.expect(view.num_docs == first.num_docs, f"views[{i}]", f"{first.num_docs} documents (as views[0])",
                      view.num_docs)
        checks.expect(view.num_terms == first.num_terms or not same_terms, f"views[{i}]",
                      f"{first.num_terms} terms (as views[0])", view.num_terms)
    checks.expect(first.num_docs >= 1, "views", "at least one document", 0)
    checks.expect(first.num_terms >= 1 or not same_terms, "views", "a vocabulary of at least one term", 0)
    return views


def expect_sides(left: Terms, right: Terms, *, same: str, types: tuple[type, ...] = (Terms,)) -> None:
    """Refuses two sides that are no documents, or do not go together.

    Args:
      left: documents of one side.
      right: documents of the other.
      same: what both have as many of, ``"documents"`` (row i belongs to row i) or ``"terms"``.
      types: what the sides may be.

    Raises:
      ValueError: naming the side.

    Example:
      >>> import scipy.sparse
      >>> side = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0]]))
      >>> expect_sides(side, side, same="terms")
    """
    for side, argument in ((left, "left"), (right, "right")):
        checks.kind(side, argument, *types)
    numbers = [side.num_docs if same == "documents" else side.num_terms for side in (left, right)]
    checks.expect(numbers[0] == numbers[1], "right", f"{numbers[0]} {same} (as left)", numbers[1])


def counts_of(documents: Terms, argument: str):
    """The host copy of a count matrix, refusing negative counts.

    Args:
      documents: `Terms` of counts.
      argument: the caller's name for it.

    Returns:
      ``[num_docs, num_terms]`` CSR matrix.

    Raises:
      ValueError: for a negative count.

    Example:
      >>> import scipy.sparse
      >>> counts_of(sparse.from_scipy(scipy.sparse.csr_matrix([[2.0]])), "counts").toarray().tolist()
      [[2.0]]
    """
    checks.kind(documents, argument, Terms)
    matrix = sparse.to_scipy(documents)
    if matrix.nnz and matrix.data.min() < 0:
        raise ValueError(f"{argument}: expected counts of at least 0, got {matrix.data.min()}")
    return matrix


def expect_seen_beside(views: Sequence[Terms], added: float, argument: str, *, power: int = 1) -> None:
    """Refuses documents whose squares are lost beside what is added to the diagonal of their covariance.

    Args:
      views: `Terms`, of which the largest value counts; those of zeros alone are no fault of their scale.
      added: the noise, or the ridge.
      argument: the caller's name for it.
      power: of the ratio of both, in the numbers that are computed.

    Raises:
      ValueError: where these numbers would be below the smallest of the documents' precision.

    Example:
      >>> import scipy.sparse
      >>> expect_seen_beside([sparse.from_scipy(scipy.sparse.csr_matrix([[1.0]]))], 0.1, "noise")
    """
    largest = max(float(np.max(np.abs(np.asarray(view.values)), initial=0)) for view in views)
    precision = np.finfo(views[0].values.dtype)
    least = (float(precision.tiny) / float(precision.eps)) ** (1 / power) * added
    checks.expect(largest == 0 or largest**2 >= least, argument, f"at most about {largest**2:.0e}, the documents' "
                  "squares (or documents of a larger scale)", added)
