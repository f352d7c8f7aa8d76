"""Classification by the nearest neighbour."""

from __future__ import annotations

import numpy as np
import pytest

from jaxsim.evaluate import neighbours
from jaxsim.sparse import Vectors


def test_the_label_is_that_of_the_largest_cosine(rng):
    queries, documents = rng.normal(size=(7, 3)), rng.normal(size=(11, 3))
    labels = np.array(list("aabbccddaab"))
    cosines = (queries / np.linalg.norm(queries, axis=1, keepdims=True)) @ (
        documents / np.linalg.norm(documents, axis=1, keepdims=True)).T
    result = neighbours.labels_of_nearest(Vectors(queries), Vectors(documents), labels)
    assert result.tolist() == labels[cosines.argmax(axis=1)].tolist()


def test_of_equally_near_documents_the_first_counts():
    documents = Vectors(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 0.0]]))
    result = neighbours.labels_of_nearest(Vectors(np.array([[3.0, 0.0], [0.0, 0.0]])), documents, ["a", "b", "c"])
    assert result.tolist() == ["b", "a"]


@pytest.mark.parametrize(("documents", "labels", "message"), [
    (np.zeros((0, 2)), [], "documents: expected at least one document"),
    (np.eye(2), ["a"], r"labels: expected one a document, shape \(2,\)"),
])
def test_bad_input_is_refused_by_name(documents, labels, message):
    with pytest.raises(ValueError, match=message):
        neighbours.labels_of_nearest(Vectors(np.eye(2)), Vectors(documents), labels)
