"""Queries with judgements, by which settings are chosen: how well a model's search finds relevant documents."""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from jaxsim import checks
from jaxsim.evaluate import trec
from jaxsim.model import Model, index, ranker
from jaxsim.model.bm25 import Bm25, weigh

METRICS = ("map", "ndcg@10", "mrr", "mrr@10")
WEIGHTS = tuple(step / 10 for step in range(11))
"""Weights of BM25 beside the vectors that are tried."""


@dataclass(frozen=True)
class Judged:
    """A test collection for development.

    Attributes:
      queries: identifier -> text.
      documents: identifier -> text.
      qrels: query -> document -> grade; documents without a judgement are not relevant.
      metric: of `METRICS`: by which settings are chosen.

    Example:
      >>> from jaxsim import text
      >>> judged = Judged({"q": "a cat"}, {"a": "the dog", "b": "cats"}, {"q": {"b": 1}})
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> judged.score(model, terms=1.0), judged.score(model, terms=0.0)
      (1.0, 0.0)
    """

    queries: Mapping[str, str]
    documents: Mapping[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    metric: str = "map"

    def __post_init__(self):
        """Refuses a collection that cannot tell models apart."""
        checks.expect(self.metric in METRICS, "metric", f"one of {', '.join(METRICS)}", self.metric)
        judged = {query: grades for query, grades in self.qrels.items() if query in self.queries}
        relevant = [query for query, grades in judged.items()
                    if any(grade > 0 and name in self.documents for name, grade in grades.items())]  # fmt: skip
        checks.expect(bool(relevant), "qrels", "a relevant document for a query, both with a text", "none")
        object.__setattr__(self, "qrels", judged)

    @property
    def sha256(self) -> str:
        """Digest of everything in it."""
        qrels = {query: dict(grades) for query, grades in self.qrels.items()}
        whole = [dict(self.queries), dict(self.documents), qrels, self.metric]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()

    def score(self, model: Model, *, terms: float | None = None) -> float:
        """The mean of the metric over queries with a relevant document.

        Args:
          model: what searches.
          terms: weight of BM25; the model's own unless given.

        Returns:
          A number in [0, 1].
        """
        return self._scores(model, [ranker.default_terms(model) if terms is None else terms])[0]

    def best(self, model: Model) -> tuple[float, float]:
        """The best score of any weight of BM25, and that weight; of equals that nearest to the model's own.

        Args:
          model: what searches.

        Returns:
          ``(score, weight)``.
        """
        own = ranker.default_terms(model)
        weights = sorted(WEIGHTS, key=lambda weight: abs(weight - own))
        scores = self._scores(model, weights)
        place = int(np.argmax(np.round(scores, 6)))
        return scores[place], weights[place]

    @functools.cached_property
    def _bm25(self) -> dict[str, Bm25]:
        return {}

    def _scores(self, model: Model, weights: Sequence[float]) -> list[float]:
        """The score with each of some weights."""
        language = model.languages[1]
        if language not in self._bm25:  # of the documents alone: the same for all models
            self._bm25[language] = weigh(list(self.documents.values()), language=language)
        names, texts = list(self.documents), list(self.documents.values())
        encoded = index.encode(model, texts)
        documents = index.Index(encoded.texts, encoded.lines, encoded.vectors, encoded.words, self._bm25[language])
        result = []
        for weight in weights:
            scores, rows = ranker.rank(model, documents, list(self.queries.values()), terms=weight,
                                       k=min(trec.DEPTH, len(names)))  # fmt: skip
            run = {query: trec.ranked({names[row]: float(score) for score, row in zip(*pair, strict=True)})
                   for query, *pair in zip(self.queries, scores, rows, strict=True) if pair[0].any()}  # fmt: skip
            values = trec.scores(run, self.qrels)[{"mrr@10": "mrr"}.get(self.metric, self.metric)]
            if self.metric == "mrr@10":
                values = np.where(values >= 0.1, values, 0)
            result.append(float(values.mean()))
        return result
