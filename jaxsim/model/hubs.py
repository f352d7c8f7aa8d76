r"""Hubs: documents that are near to everything, and so rank above the right ones (CSLS, arXiv 1710.04087).

Across languages some documents have a high cosine with most queries. Cross-domain similarity local scaling
subtracts how near a document is to the queries nearest to it: the score of a query q and a document d is
:math:`2 \cos(q, d) - r(d)`, with r(d) the mean cosine of d with its nearest ``neighbours`` of some texts like the
queries. (The paper also subtracts the same for the query, which does not change the order
of documents.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from jaxsim import checks, text
from jaxsim.model import parts
from jaxsim.model.model import Model

NEIGHBOURS = 10
"""Nearest texts that count, as in the paper."""
_BLOCK, _CELLS = 1024, 2**24
"""Documents that are compared with the texts at once, and cosines that are held of them (64 MB)."""


@dataclass(frozen=True, eq=False)
class Hubs:
    """How near documents are to queries in general.

    Attributes:
      nearness: ``[n]`` float32, r of every document.
      power: of the model's agreement that it was measured with; a search has to take the same.
      texts: digest of the texts that it was measured by.
    """

    nearness: np.ndarray
    power: float
    texts: str

    def lessened(self, scores: np.ndarray) -> np.ndarray:
        """Scores of the documents with their hubs lessened.

        Args:
          scores: ``[q, n]`` cosines.

        Returns:
          The same shape: 2 times the cosine, less r of the document; 0 for a query whose cosines are all 0, of which
          nothing is known.

        Example:
          >>> Hubs(np.array([0.5, 0.0], np.float32), 1.0, "").lessened(np.array([[0.5, 0.25]])).tolist()
          [[0.5, 0.5]]
        """
        return np.where(scores.any(axis=1, keepdims=True), 2 * scores - self.nearness, 0)


def measure(
    model: Model, dense: np.ndarray, texts: Sequence[str], *, power: float = 1.0, neighbours: int = NEIGHBOURS
) -> Hubs:
    """How near documents are to texts like the queries; those without a known word are as near as the nearest.

    Args:
      model: with a projection whose vectors are compared by their cosine.
      dense: ``[n, dim]`` vectors of documents, without weights of dimensions.
      texts: ``m`` texts like the queries that are to come, such as left texts of the training pairs.
      power: of the model's agreement.
      neighbours: nearest texts that count; all where there are fewer.

    Returns:
      `Hubs`.

    Raises:
      ValueError: for a model of another kind, no texts, or a number of neighbours that is not positive.

    Example:
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2)
      >>> model = Model(words, parts.Projection(np.eye(2, dtype=np.float32)))
      >>> found = measure(model, np.array([[1.0, 0.0], [0.0, 1.0]]), ["cat", "cats", "dog"], neighbours=2)
      >>> found.nearness.tolist()
      [0.5, 0.5]
    """
    cosine = model.params is not None and not model.bilinear and not model.topical
    checks.expect(cosine, "csls", f"none, for {model.method} (it is for cosines of projections)", "some")
    checks.expect(len(texts) > 0, "csls", "texts like the queries", "none")
    checks.positive_int(neighbours, "neighbours")
    asked = parts.unit_dense(np.asarray(model.vectors(texts, side="query", power=power).dense, np.float32))
    dense = np.asarray(dense, np.float32)
    if power and model.agreement is not None:
        dense = np.asarray(parts.weighed(dense, model.agreement, power))
    dense, few = parts.unit_dense(dense), min(neighbours, len(texts))
    result = np.zeros(len(dense), np.float32)
    block = min(_BLOCK, max(1, _CELLS // len(texts)))
    for start in range(0, len(dense), block):
        cosines = dense[start : start + block] @ asked.T
        cosines.partition(cosines.shape[1] - few, axis=1)  # in its place: a copy would be as large again
        result[start : start + block] = cosines[:, -few:].mean(axis=1)
    if len(dense):  # documents of unknown words would be before those with small cosines
        result[~dense.any(axis=1)] = max(result.max(), 0)
    return Hubs(result, float(power), digest(texts))


def digest(texts: Sequence[str]) -> str:
    """What tells texts from others.

    Args:
      texts: strings, in their order.

    Returns:
      Hexadecimal digits.

    Example:
      >>> digest(["a"]) == digest(["a"]), digest(["a", "b"]) == digest(["ab"])
      (True, False)
    """
    import hashlib

    result = hashlib.sha256()
    for one in text.strings(texts):
        result.update(one.encode("utf-8", "surrogatepass") + b"\0")
    return result.hexdigest()
