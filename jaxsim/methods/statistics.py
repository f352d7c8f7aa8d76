"""Document statistics that several methods share, computed on the host."""

from __future__ import annotations

from collections.abc import Sequence

from jaxsim import checks, sparse
from jaxsim.sparse import Terms


def checked_views(views: Sequence[Terms], *, at_least: int = 2) -> tuple[Terms, ...]:
    """Comparable documents in several languages, checked for agreement.

    Args:
      views: `Terms` of the same documents over the same vocabulary slots, one a language.
      at_least: number of languages required.

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
        checks.expect(isinstance(view, Terms), f"views[{i}]", "Terms", type(view).__name__)
        checks.expect(view.num_docs == first.num_docs, f"views[{i}]", f"{first.num_docs} documents (as views[0])",
                      view.num_docs)
        checks.expect(view.num_terms == first.num_terms, f"views[{i}]", f"{first.num_terms} terms (as views[0])",
                      view.num_terms)
    checks.expect(first.num_docs >= 1, "views", "at least one document", 0)
    checks.expect(first.num_terms >= 1, "views", "a vocabulary of at least one term", 0)
    return views


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
