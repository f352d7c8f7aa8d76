"""Queries with judgements, by which settings are chosen: how well a model's search finds relevant documents."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jaxsim import checks
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import retrieval, trec
from jaxsim.model import Model, index, ranker
from jaxsim.model.bm25 import Bm25, weigh
from jaxsim.sparse import Vectors

METRICS = ("map", "ndcg@10", "mrr", "mrr@10")
WEIGHTS = tuple(step / 10 for step in range(11))
"""Weights of BM25 beside the vectors that are tried."""
POWERS = (0.0, 0.5, 1.0)
"""Powers of the model's agreement that are tried."""
FEEDBACKS = (0, 1, 3, 5, 10)
"""Numbers of documents that are tried for a second search."""
WORTH = 0.005
"""What a second search must add to the score, because it takes longer."""


_COLUMNS = {"map": 0, "mrr": 1, "mrr@10": 1, "ndcg@10": 3}  # of `trec.scores_of`


class _Grades(NamedTuple):
    """Rows of the judged documents of a query, their grades, and grades of documents without a text."""

    rows: np.ndarray
    grades: np.ndarray
    others: list[int]


class Best(NamedTuple):
    """How a model searches best.

    Attributes:
      score: the mean of the metric.
      terms: weight of BM25.
      power: of the model's agreement; None for a model without.
    """

    score: float
    terms: float
    power: float | None


@dataclass(frozen=True)
class Judged:
    """A test collection for development.

    Attributes:
      queries: identifier -> text.
      documents: identifier -> text.
      qrels: query -> document -> grade; documents without a judgement are not relevant.
      metric: of `METRICS`: by which settings are chosen.
      exclude_self: whether the query itself, a document of its identifier or its text, is no answer.

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
    exclude_self: bool = False

    __repr__ = checks.brief

    def __post_init__(self):
        """Refuses a collection that cannot tell models apart."""
        checks.expect(self.metric in METRICS, "metric", f"one of {', '.join(METRICS)}", self.metric)
        judged = {query: {name: grade for name, grade in grades.items() if not self._itself(query, name)}
                  for query, grades in self.qrels.items() if query in self.queries}  # fmt: skip
        relevant = [query for query, grades in judged.items()
                    if any(grade > 0 and name in self.documents for name, grade in grades.items())]  # fmt: skip
        checks.expect(bool(relevant), "qrels", "a relevant document for a query, both with a text", "none")
        bad = next((grade for grades in judged.values() for grade in grades.values() if grade != grade), None)
        checks.expect(bad is None, "qrels", "numbers as grades", bad)
        object.__setattr__(self, "qrels", judged)

    @functools.cached_property
    def asked(self) -> dict[str, str]:
        """Queries that have a relevant document, by identifier: scores are means over these."""
        return {query: self.queries[query] for query, grades in self.qrels.items()
                if any(grade > 0 for grade in grades.values())}  # fmt: skip

    @property
    def without_text(self) -> int:
        """Relevant documents that are not among the documents, and so never found, over all queries."""
        return sum(grade > 0 and name not in self.documents
                   for query in self.asked for name, grade in self.qrels[query].items())  # fmt: skip

    def known(self, pairs: Pairs) -> int:
        """Queries of `asked` that stand in pairs with a document that is relevant to them.

        Args:
          pairs: of a training, which judges itself by these queries.

        Returns:
          Their number.

        Example:
          >>> from jaxsim.data.pairs import make
          >>> judged = Judged({"q": "a cat", "r": "a dog"}, {"a": "the cat"}, {"q": {"a": 1}, "r": {"a": 1}})
          >>> judged.known(make("mine", ["1"], ["a cat"], ["the cat"], languages=("en", "en")))
          1
        """
        trained = set(zip(pairs.left, pairs.right, strict=True))
        return sum(any(grade > 0 and (text, self.documents.get(name)) in trained for name, grade in
                       self.qrels[query].items()) for query, text in self.asked.items())  # fmt: skip

    def _itself(self, query: str, document: str) -> bool:
        """Whether a document is the query, and no answer."""
        return self.exclude_self and (query == document or self.queries[query] == self.documents.get(document))

    @property
    def sha256(self) -> str:
        """Digest of everything in it."""
        qrels = {query: dict(grades) for query, grades in self.qrels.items()}
        whole = [dict(self.queries), dict(self.documents), qrels, self.metric, *["exclude_self"] * self.exclude_self]
        return hashlib.sha256(json.dumps(whole, sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()

    def score(
        self, model: Model, *, terms: float | None = None, power: float | None = None, feedback: int | None = None
    ) -> float:
        """The mean of the metric over queries with a relevant document.

        Args:
          model: what searches.
          terms: weight of BM25; the model's own unless given.
          power: of the model's agreement; the model's own unless given.
          feedback: documents of a second search; the model's own number unless given.

        Returns:
          A number in [0, 1].
        """
        return self._scorer(model)(ranker.default_terms(model) if terms is None else terms,
                                   model.search_power if power is None else power, feedback)  # fmt: skip

    def score_vectors(self, queries: Vectors, documents: Vectors, *, similarity: Callable = retrieval.cosine) -> float:
        """The mean of the metric where vectors alone are compared: what a training can stop by.

        Args:
          queries: vectors of `asked`, in their order.
          documents: those of all documents.
          similarity: `retrieval.cosine`, or another function of both that gives a block scorer.

        Returns:
          A number in [0, 1].

        Example:
          >>> judged = Judged({"q": "a cat"}, {"a": "the dog", "b": "cats"}, {"q": {"b": 1}})
          >>> judged.score_vectors(Vectors(np.ones((1, 2))), Vectors(np.eye(2)))  # of equals the later name is first
          1.0
        """
        found = ranker.found(similarity(queries, documents), len(self.asked), self._depth, self._left_out,
                             documents=len(self.documents))  # fmt: skip
        return self._mean(*found)

    def best(self, model: Model) -> Best:
        """The best weight of BM25 and power of the agreement together, without a second search.

        Of equals, that with the power nearest to the model's own, and then with the nearest weight.

        Args:
          model: what searches.

        Returns:
          `Best`.
        """
        model = replace(model, feedback=None)
        score = functools.cache(self._scorer(model))
        terms, power = ranker.default_terms(model), model.search_power
        powers = sorted(POWERS, key=lambda one: abs(one - power)) if model.agreement is not None else [power]
        nearest = itertools.product(powers, sorted(WEIGHTS, key=lambda one: abs(one - terms)))
        power, terms = max(nearest, key=lambda one: round(score(one[1], one[0]), 6))
        return Best(score(terms, power), terms, None if model.agreement is None else power)

    def feedback(self, model: Model) -> tuple[int | None, float]:
        """The best number of documents of a second search, of `FEEDBACKS`; of equals the smallest.

        None where the best adds less than `WORTH` to the score of one search.

        Args:
          model: what searches, with its own weight of BM25 and power.

        Returns:
          The number, None where no second search is worth it, and its score.
        """
        terms, power, score = ranker.default_terms(model), model.search_power, self._scorer(model)
        tried = FEEDBACKS if ranker.takes_feedback(model, terms) else (0,)
        scores = {number: round(score(terms, power, number), 6) for number in tried}
        number = max(scores, key=lambda one: (scores[one], -one))
        if scores[number] < scores[0] + WORTH:
            number = 0
        return number or None, scores[number]

    @functools.cached_property
    def _bm25(self) -> dict[str, Bm25]:
        return {}

    @functools.cached_property
    def _left_out(self) -> list[list[int]] | None:
        """Rows of the documents that are no answer to each query."""
        if not self.exclude_self:
            return None
        return trec.same(self.asked, self.documents)

    def _scorer(self, model: Model) -> Callable[..., float]:
        """The score with a weight of BM25, a power of the agreement, and documents of a second search."""
        language = model.languages[1]
        if language not in self._bm25:  # of the documents alone: the same for all models
            self._bm25[language] = weigh(list(self.documents.values()), language=language)
        encoded = index.encode(model, list(self.documents.values()), weights=[0.0])  # words count by BM25 alone
        documents = index.Index(encoded.texts, encoded.lines, encoded.vectors, encoded.words, self._bm25[language])

        def score(terms: float, power: float, feedback: int | None = None) -> float:
            found = ranker.rank(model, documents, list(self.asked.values()), terms=terms, power=power,
                                k=self._depth, exclude=self._left_out, feedback=feedback)  # fmt: skip
            return self._mean(*found)

        return score

    @property
    def _depth(self) -> int:
        """Documents that a query is given."""
        return min(trec.DEPTH, len(self.documents))

    def _mean(self, scores: np.ndarray, rows: np.ndarray) -> float:
        """The mean of the metric where these documents, by their rows, were found for the queries."""
        labels, values, column = np.zeros(len(self.documents)), [], _COLUMNS[self.metric]
        for known, scored, row in zip(self._grades, scores, rows, strict=True):
            kept = np.isfinite(scored)  # the others are left out
            scored, row = scored[kept], row[kept]
            row = row[np.lexsort((-self._order[row], -scored))] if scored.any() else row[:0]  # as `trec.ranked`
            labels[known.rows] = known.grades
            missed = known.grades[~np.isin(known.rows, row)]
            values.append(trec.scores_of(labels[row], [*missed, *known.others])[column])
            labels[known.rows] = 0
        result = np.array(values)
        if self.metric == "mrr@10":
            result = np.where(result >= 0.1, result, 0)
        return float(result.mean())

    @functools.cached_property
    def _order(self) -> np.ndarray:
        """Place of each document among all identifiers in their order."""
        order = np.empty(len(self.documents), np.int64)
        order[sorted(range(len(self.documents)), key=list(self.documents).__getitem__)] = np.arange(len(order))
        return order

    @functools.cached_property
    def _grades(self) -> list[_Grades]:
        """The judgements of every query of `asked`."""
        rows = {name: row for row, name in enumerate(self.documents)}
        result = []
        for query in self.asked:
            known = {rows[name]: grade for name, grade in self.qrels[query].items() if name in rows}
            others = [grade for name, grade in self.qrels[query].items() if name not in rows]
            result.append(_Grades(np.array(list(known), np.int64), np.array(list(known.values()), np.float64), others))
        return result
