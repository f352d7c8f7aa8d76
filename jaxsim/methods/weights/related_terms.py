"""Which terms may lend weight to which (001 §4.3.1): pairs with the largest products of weights in paired documents.

Only the heaviest terms of a document are paired, so that no matrix of all pairs of terms is made. `choose` is given the
pairs of documents, `choose_among_all` takes every two documents.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.methods import statistics
from jaxsim.sparse import Terms

_PAIRS = 4096
_TERMS = 2048


def choose(
    left: Terms,
    right: Terms,
    pairs,
    *,
    num: int = 30_000,
    heaviest: int = 20,
    combine: np.ufunc = np.add,
) -> tuple[np.ndarray, np.ndarray]:
    """Pairs different terms of paired documents and keeps those whose normalised weights have the largest product.

    Args:
      left: weighted documents, such as TWEAK's: ``term_weights.encode(...).sparse``.
      right: weighted documents over the same terms; ``left`` again for pairs of one collection.
      pairs: ``(left rows, right rows)``, each ``[n]`` integers: pairs of documents, labelled or not. In the paper, all
        training pairs, similar or not.
      num: pairs of terms kept; fewer if there are fewer.
      heaviest: terms of a document, by weight, that are paired.
      combine: how the products of one pair of terms in several pairs of documents are put together: ``np.add`` sums
        them, which favours frequent terms; ``np.maximum`` takes the largest, which favours names that are rare.

    Returns:
      ``(sources, targets)``, as `term_extension.make` takes them: each pair of terms in both directions, best
      pairs first.

    Raises:
      ValueError: for other vocabularies, rows that are no integers or out of range, or if no two different terms with
        positive weight meet.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 4.0, 0.0], [0.0, 1.0, 0.0]]))
      >>> [part.tolist() for part in choose(documents, documents, ([0], [1]), num=1)]
      [[0, 1], [1, 0]]

    Differs from the paper: it does not say how the products of several pairs of documents are combined.
    """
    statistics.expect_sides(left, right, same="terms")
    checks.positive_int(num, "num")
    checks.positive_int(heaviest, "heaviest")
    rows = []
    for name, given, side in zip(("left", "right"), pairs, (left, right), strict=True):
        given = np.asarray(given)
        whole = given.ndim == 1 and (given.size == 0 or np.issubdtype(given.dtype, np.integer))
        checks.expect(whole, f"pairs.{name}", "one axis of integers", f"{given.dtype} of shape {given.shape}")
        inside = bool(np.all((given >= 0) & (given < side.num_docs)))
        checks.expect(inside, f"pairs.{name}", f"indices in [0, {side.num_docs}) (rows of terms)", "others")
        rows.append(given.astype(np.int64))
    checks.expect(rows[0].shape == rows[1].shape, "pairs", "as many left rows as right rows",
                  f"{rows[0].shape} and {rows[1].shape}")
    one = _heaviest(left, heaviest)
    other = one if right is left else _heaviest(right, heaviest)
    codes, products = np.zeros(0, np.int64), np.zeros(0, np.float32)
    waiting: list[tuple[np.ndarray, np.ndarray]] = []
    for start in range(0, len(rows[0]), _PAIRS):
        (a, p), (b, q) = ((terms[of[start : start + _PAIRS]], weights[of[start : start + _PAIRS]])
                          for (terms, weights), of in zip((one, other), rows, strict=True))
        a, b = np.broadcast_arrays(a[:, :, None], b[:, None, :])
        product = (p[:, :, None] * q[:, None, :]).ravel()
        code = (np.minimum(a, b) * left.num_terms + np.maximum(a, b)).ravel()
        kept = (a != b).ravel() & (product > 0)
        waiting.append(_combined(code[kept], product[kept], combine))
        if len(waiting) == 8:
            codes, products = _merged([(codes, products), *waiting], combine)
            waiting = []
    codes, products = _merged([(codes, products), *waiting], combine)
    checks.expect(codes.size > 0, "pairs", "documents with different terms of positive weight", "none")
    best = np.argsort(-products, kind="stable")[:num]
    low, high = codes[best] // left.num_terms, codes[best] % left.num_terms
    return np.stack([low, high], axis=1).ravel(), np.stack([high, low], axis=1).ravel()


def choose_among_all(
    documents: Terms, similar, *, num: int = 30_000, heaviest: int = 20
) -> tuple[np.ndarray, np.ndarray]:
    """`choose` over every two documents, sums of products, similar and other pairs of documents counting the same.

    The paper draws as many other pairs as there are similar ones; here every pair is used, and the products of the
    others are weighed so that they are as many. Only terms that can be among the best are looked at, which changes
    nothing: a sum is at most the product of the two terms' weights over all documents.

    Args:
      documents: weighted documents, such as TWEAK's.
      similar: ``[num_docs, num_docs]`` booleans, symmetric: which documents are similar. The diagonal is not read.
      num: pairs of terms kept; fewer if there are fewer.
      heaviest: terms of a document, by weight, that are paired.

    Returns:
      ``(sources, targets)`` as `choose`. About 4 bytes times the square of the number of documents are held.

    Raises:
      ValueError: for an array of another shape, no similar documents or no others, or if no two different terms with
        positive weight meet.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 4.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0]]))
      >>> alike = np.array([[0, 1, 0], [1, 0, 0], [0, 0, 0]], bool)
      >>> [part.tolist() for part in choose_among_all(documents, alike, num=1)]
      [[0, 1], [1, 0]]
    """
    checks.kind(documents, "documents", Terms)
    checks.positive_int(num, "num")
    checks.positive_int(heaviest, "heaviest")
    size = documents.num_docs
    pairs = np.array(similar, np.float32)
    checks.expect(pairs.shape == (size, size), "similar", f"shape {(size, size)} (documents)", pairs.shape)
    np.fill_diagonal(pairs, 0)
    count = float(pairs.sum(dtype=np.float64))
    checks.expect(0 < count < size * (size - 1), "similar", "some pairs of documents and not all", f"{count:.0f}")
    share = count / (size * (size - 1) - count)
    terms, weights = _heaviest(documents, heaviest)
    rows = np.repeat(np.arange(size), terms.shape[1])
    table = scipy.sparse.csr_matrix((weights.ravel(), (rows, terms.ravel())), (size, documents.num_terms))
    total = np.asarray(table.sum(axis=0), np.float64).ravel()
    alone = _only_documents(terms, weights, documents.num_terms)
    order = np.argsort(-total, kind="stable")
    most = min(_TERMS, int(np.count_nonzero(total)))
    while True:
        kept = order[:most]
        part = table[:, kept]
        alike = np.asarray(part.T @ (pairs @ part.toarray()), np.float64)
        sums = (1 - share) * alike + share * (np.outer(total[kept], total[kept]) - (part.T @ part).toarray())
        sums[alone[kept][:, None] == alone[kept]] = 0  # they never meet: what is left is rounding
        low, high = np.triu_indices(most, 1)
        best = np.argsort(-sums[low, high], kind="stable")[:num]
        least = sums[low[best[-1]], high[best[-1]]] if len(best) == num else 0.0
        if most == np.count_nonzero(total) or max(1, share) * total[order[0]] * total[order[most]] < least:
            break
        most = min(2 * most, int(np.count_nonzero(total)))
    best = best[sums[low[best], high[best]] > 0]
    checks.expect(best.size > 0, "documents", "documents with different terms of positive weight", "none")
    ends = kept[low[best]], kept[high[best]]
    low, high = np.minimum(*ends), np.maximum(*ends)
    return np.stack([low, high], axis=1).ravel(), np.stack([high, low], axis=1).ravel()


def _heaviest(documents: Terms, most: int) -> tuple[np.ndarray, np.ndarray]:
    """Terms and normalised weights of every document, heaviest first: ``[num_docs, most]``, weight 0 where few."""
    csr = sparse.to_scipy(documents)
    length = np.sqrt(np.asarray(csr.multiply(csr).sum(axis=1), np.float64)).ravel()
    row = np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr))
    weights = csr.data / np.where(length > 0, length, 1)[row]
    order = np.lexsort((csr.indices, -weights, row))
    rank = np.arange(len(row)) - csr.indptr[row]
    kept = rank < most
    terms = np.zeros((csr.shape[0], most), np.int64)
    result = np.zeros((csr.shape[0], most), np.float32)
    terms[row[kept], rank[kept]] = csr.indices[order[kept]]
    result[row[kept], rank[kept]] = np.maximum(weights[order[kept]], 0)
    return terms, result


def _only_documents(terms: np.ndarray, weights: np.ndarray, num_terms: int) -> np.ndarray:
    """The document of every term that has weight in one alone; of the others a number below 0, each its own.

    Two different terms with weight meet in two documents unless one document is the only one of both.
    """
    document, place = np.nonzero(weights > 0)
    term = terms[document, place]
    result = -1 - np.arange(num_terms)
    result[term] = np.where(np.bincount(term, minlength=num_terms)[term] == 1, document, result[term])
    return result


def _combined(codes: np.ndarray, products: np.ndarray, combine: np.ufunc) -> tuple[np.ndarray, np.ndarray]:
    if not codes.size:
        return codes, products
    order = np.argsort(codes, kind="stable")
    codes, products = codes[order], products[order]
    first = np.flatnonzero(np.r_[True, np.diff(codes) > 0])
    return codes[first], combine.reduceat(products, first)


def _merged(parts: list, combine: np.ufunc) -> tuple[np.ndarray, np.ndarray]:
    return _combined(*(np.concatenate(lists) for lists in zip(*parts, strict=True)), combine)
