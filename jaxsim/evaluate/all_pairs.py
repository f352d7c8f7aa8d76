"""Similarity of all pairs of a labelled collection: two documents are similar if they share at least one label.

001 §4 judges a similarity twice: as a classifier of pairs (AUC and the largest F1 over all pairs) and as a search, with
every document as a query against all others (precision at k, mean average precision). Every pair is scored, a block
of documents at a time; nothing is sampled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.evaluate import metrics, retrieval, significance
from jaxsim.sparse import Vectors

__all__ = ["Scores", "auc", "auc_by_document", "incidence", "score", "share"]


class Scores(NamedTuple):
    """How well a similarity finds the documents that share a label.

    Attributes:
      auc: over all pairs; a tie counts one half.
      max_f1: the largest F1 over all thresholds, pairs of equal score together.
      per_query: ``p@5``, ``p@10`` and ``map`` (average precision), each ``[num_docs]`` float64: every document is a
        query against all others, ties go to the lower index, and a document that shares no label with another has 0.
    """

    auc: float
    max_f1: float
    per_query: dict[str, np.ndarray]

    def means(self) -> dict[str, float]:
        """All five figures; the values per query are averaged."""
        result = {name: float(values.mean()) for name, values in self.per_query.items()}
        return {"auc": self.auc, "max_f1": self.max_f1, **result}


def incidence(labels: Sequence[Iterable[str]]) -> scipy.sparse.csr_matrix:
    """Which document has which label.

    Args:
      labels: of each document, possibly none.

    Returns:
      ``[num_docs, num_labels]`` float32 CSR matrix of ones, labels in sorted order.

    Raises:
      ValueError: where a document's labels are one string.

    Example:
      >>> incidence([["tea", "coffee"], [], ["tea"]]).toarray().tolist()
      [[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]]
    """
    kept = []
    for one in labels:
        checks.expect(not isinstance(one, str), "labels", "labels of each document", "a string")
        kept.append(sorted(set(one)))
    place = {label: column for column, label in enumerate(sorted({label for one in kept for label in one}))}
    indices = np.array([place[label] for one in kept for label in one], np.int32)
    indptr = np.cumsum([0, *map(len, kept)])
    return scipy.sparse.csr_matrix((np.ones(indices.size, np.float32), indices, indptr), (len(kept), len(place)))


def share(labels: scipy.sparse.csr_matrix, left, right) -> np.ndarray:
    """Whether documents share a label, pair by pair.

    Args:
      labels: as `incidence` gives them.
      left: ``[n]`` integer documents.
      right: ``[n]`` integer documents.

    Returns:
      ``[n]`` booleans.

    Example:
      >>> share(incidence([["tea", "coffee"], [], ["tea"]]), [0, 0], [1, 2]).tolist()
      [False, True]
    """
    common = labels[np.asarray(left)].multiply(labels[np.asarray(right)]).sum(axis=1)
    return np.asarray(common).ravel() > 0


def score(
    vectors: Vectors,
    labels: scipy.sparse.csr_matrix,
    *,
    similarity: Callable = retrieval.cosine,
    block: int = 256,
) -> Scores:
    """Scores every pair of documents and judges the order.

    Args:
      vectors: the documents.
      labels: as `incidence` gives them, a row a document.
      similarity: function of two `Vectors` that returns a block scorer (`retrieval.cosine`, `retrieval.dot`).
      block: documents scored at a time. All n (n - 1) / 2 scores are held at once, in float32, for the sort.

    Returns:
      `Scores`.

    Raises:
      ValueError: for another number of labels than of documents, or where no two documents are similar or all are.

    Example:
      >>> documents = Vectors(dense=np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 1.0], [0.1, 1.0]]))
      >>> score(documents, incidence([["tea"], ["tea"], ["gold"], ["gold", "tea"]])).means()["auc"]
      0.875
    """
    result: dict[str, list[np.ndarray]] = {"p@5": [], "p@10": [], "map": []}

    def each(start: int, scores: np.ndarray, similar: np.ndarray) -> None:
        others = np.arange(scores.shape[1])[None, :] != np.arange(start, start + len(scores))[:, None]
        one, wanted = (array[others].reshape(len(scores), -1) for array in (scores, similar))
        # Sorted once for all three; the metrics then see scores in falling order.
        order = np.argsort(-one, axis=1, kind="stable")
        ranked, falling = np.take_along_axis(wanted, order, axis=1), -np.arange(one.shape[1], dtype=np.float32)
        falling = np.broadcast_to(falling, one.shape)
        result["map"].append(metrics.average_precision(falling, ranked))
        for k in (5, 10):
            top = min(k, one.shape[1])
            result[f"p@{k}"].append(metrics.precision_at(falling[:, :top], ranked[:, :top], k=k))

    scores, similar = _every_pair(vectors, labels, similarity, block, each)
    per_query = {name: np.concatenate(values) for name, values in result.items()}
    return Scores(float(metrics.auc(scores, similar)), float(metrics.max_f1(scores, similar)), per_query)


def auc(
    vectors: Vectors, labels: scipy.sparse.csr_matrix, *, similarity: Callable = retrieval.cosine, block: int = 256
) -> float:
    """Only the AUC of `score`, for early stopping.

    Args:
      vectors: the documents.
      labels: as `incidence` gives them, a row a document.
      similarity: as for `score`.
      block: as for `score`.

    Returns:
      Area under the ROC curve over all pairs; a tie counts one half.

    Raises:
      ValueError: as `score`.

    Example:
      >>> documents = Vectors(dense=np.array([[1.0, 0.0], [1.0, 0.1], [0.0, 1.0]]))
      >>> auc(documents, incidence([["tea"], ["tea"], ["gold"]]))
      1.0
    """
    return float(metrics.auc(*_every_pair(vectors, labels, similarity, block, lambda *_: None)))


def auc_by_document(
    vectors: Vectors, labels: scipy.sparse.csr_matrix, *, similarity: Callable = retrieval.cosine, block: int = 256
) -> np.ndarray:
    """Jackknife values of the AUC, one a document (`significance.jackknife_auc`), for a test of two similarities.

    Args:
      vectors: the documents.
      labels: as `incidence` gives them.
      similarity: as for `score`.
      block: as for `score`.

    Returns:
      ``[num_docs]`` float64, whose mean is about the AUC.

    Raises:
      ValueError: as `score`, and where all pairs without some document are of one kind.

    Example:
      >>> documents = Vectors(dense=np.array([[1.0, 0.0], [1.0, 0.5], [0.0, 1.0], [0.1, 1.0]]))
      >>> labels = incidence([["tea"], ["tea"], ["gold"], ["gold"]])
      >>> auc(documents, labels), auc_by_document(documents, labels).tolist()
      (1.0, [1.0, 1.0, 1.0, 1.0])
    """
    pairs = np.triu_indices(vectors.num_docs, 1)
    return significance.jackknife_auc(*_every_pair(vectors, labels, similarity, block, lambda *_: None), *pairs)


def _every_pair(vectors, labels, similarity, block: int, each: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Scores and similarity of all pairs i < j; ``each`` sees every block of rows, whole, on the way."""
    checks.positive_int(block, "block")
    n = vectors.num_docs
    checks.expect(n >= 2, "vectors", "at least two documents", n)
    checks.expect(labels.shape[0] == n, "labels", f"{n} rows (as vectors)", labels.shape[0])
    scorer, other = similarity(vectors, vectors), labels.T.tocsr()
    scores, similar = np.empty(n * (n - 1) // 2, np.float32), np.empty(n * (n - 1) // 2, bool)
    done = 0
    for start in range(0, n, block):
        rows = np.minimum(np.arange(start, start + block), n - 1)  # one shape, so that a jitted scorer compiles once
        size = min(block, n - start)
        scored = np.asarray(scorer(rows))[:size]
        alike = (labels[rows[:size]] @ other).toarray() > 0
        each(start, scored, alike)
        above = np.arange(n)[None, :] > rows[:size, None]
        count = int(above.sum())
        scores[done : done + count], similar[done : done + count] = scored[above], alike[above]
        done += count
    mixed = bool(similar.any()) and not bool(similar.all())
    checks.expect(mixed, "labels", "some pairs that share a label and some that do not", "one kind alone")
    return scores, similar
