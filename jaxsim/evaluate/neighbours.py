"""Classification by the nearest neighbour: the labels of one collection, given to another."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim import checks
from jaxsim.evaluate import retrieval
from jaxsim.sparse import Vectors


def labels_of_nearest(
    queries: Vectors, documents: Vectors, labels, *, similarity: Callable = retrieval.cosine
) -> np.ndarray:
    """The label of the nearest document of each query (002 §3.3); of equally near ones that of the first.

    Args:
      queries: documents without labels.
      documents: documents with labels, at least one.
      labels: ``[n]``, one a document.
      similarity: `retrieval.cosine` or `retrieval.dot`.

    Returns:
      ``[num_queries]``, of the type of ``labels``. A query without words is as near to every document: the first's.

    Raises:
      ValueError: for no documents, or another number of labels.

    Example:
      >>> labels_of_nearest(Vectors(np.array([[1.0, 0.1]])), Vectors(np.eye(2)), ["a", "b"]).tolist()
      ['a']
    """
    labels = np.asarray(labels)
    checks.expect(documents.num_docs > 0, "documents", "at least one document", "none")
    checks.expect(labels.shape == (documents.num_docs,), "labels", f"one a document, shape ({documents.num_docs},)",
                  labels.shape)
    return labels[retrieval.top_k(queries, documents, k=1, similarity=similarity)[1][:, 0]]
