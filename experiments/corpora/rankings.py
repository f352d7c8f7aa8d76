"""Pairs of texts as a user has them, and rankings to score by: what `peers` and `hard_negatives` train and test on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from experiments.corpora.mates import cut, human_pairs
from jaxsim.data import docstrings, nfcorpus, pairs, splits
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import metrics
from jaxsim.train.judged import Judged


@dataclass(frozen=True, eq=False)
class Ranking:
    """Queries and the candidates to rank for them.

    Attributes:
      left: ``n`` queries.
      right: ``m`` candidates.
      grades: ``[n, m]`` relevance; None where candidate i is the mate of query i, which is then asked both ways.
    """

    left: Sequence[str]
    right: Sequence[str]
    grades: np.ndarray | None = None

    def scores(self, forward: np.ndarray, backward: np.ndarray | None = None) -> dict[str, np.ndarray]:
        """One value a query of every metric.

        Args:
          forward: ``[n, m]`` scores of the candidates.
          backward: ``[m, n]`` scores of the other direction, for mates.

        Returns:
          Mates: ``accuracy`` and ``mrr``, ties as errors, ``[2 n]``. Grades: ``map``, ``mrr`` and ``ndcg@10`` (linear
          gain), equal scores in the order of the candidates.
        """
        if self.grades is None:
            target = np.arange(len(self.left))
            ways = [forward] if backward is None else [forward, backward]
            return {name: np.concatenate([np.asarray(metric(way, target)) for way in ways])
                    for name, metric in (("accuracy", metrics.accuracy_at_1), ("mrr", metrics.reciprocal_rank))}
        relevant = self.grades > 0
        order = np.argsort(-forward, axis=1, kind="stable")
        first = np.argmax(np.take_along_axis(relevant, order, axis=1), axis=1)
        return {"map": np.asarray(metrics.average_precision(forward, relevant)), "mrr": 1.0 / (1 + first),
                "ndcg@10": np.asarray(metrics.ndcg(forward, self.grades, k=10))}


@dataclass(frozen=True, eq=False)
class Data:
    """One table's data.

    Attributes:
      all: the pairs that everything comes from, for name and digest.
      train: pairs to learn from.
      dev: to choose settings and to stop by.
      test: to score the choice.
      metric: what dev chooses by.
      dev_pairs: pairs that jaxsim holds out.
      judged: the queries of ``dev``, which then stop its trainings in place of these pairs; None for mates.
      groups: of near-duplicates, told in the record.
      differs: from a paper's data, as records say it.
    """

    all: Pairs
    train: Pairs
    dev: Ranking
    test: Ranking
    dev_pairs: Pairs
    judged: Judged | None = None
    metric: str = "mrr"
    groups: dict | None = None
    differs: str = ""

    @property
    def sizes(self) -> dict[str, int]:
        """Training pairs, queries and candidates."""
        return {"train_pairs": len(self.train), "dev_queries": len(self.dev.left), "test_queries": len(self.test.left),
                "test_candidates": len(self.test.right)}


def _mates(corpus: Pairs, *, salt: str) -> Data:
    """The split of the mate tables: near-duplicates never cross it."""
    sides = pairs.tokenize(corpus)
    groups = splits.group_near_duplicates(*sides)
    keep = splits.first_of_equals(*sides, corpus.ids)
    rows = splits.split(groups, corpus.ids, shares=(0.6, 0.2, 0.2), salt=salt, keep=keep)
    parts = {name: corpus.take(where) for name, where in rows.items()}
    sizes = np.bincount(groups)
    told = {"groups": int(sizes.size), "largest": int(sizes.max()), "exact_duplicates": int((~keep).sum())}
    return Data(corpus, parts["train"], Ranking(parts["dev"].left, parts["dev"].right),
                Ranking(parts["test"].left, parts["test"].right), parts["dev"], groups=told, differs=corpus.differs)


def _docstrings(limit: int | None) -> Data:
    return _mates(cut(docstrings.load(), limit), salt="")


def _en_es_human(limit: int | None) -> Data:
    return _mates(cut(human_pairs(), limit), salt="2")


def _nfcorpus(limit: int | None) -> Data:
    """Titles of pages as queries, abstracts as documents; trained on the direct links of the training queries."""
    found = nfcorpus.load()
    names = sorted(found.documents)
    column = {name: i for i, name in enumerate(names)}
    documents = [found.documents[name] for name in names]

    def ranking(part: str) -> Ranking:
        asked = sorted(found.queries[part])[:limit]
        grades = np.zeros((len(asked), len(names)))
        for row, query in enumerate(asked):
            for doc, grade in found.qrels[part][query].items():
                grades[row, column[doc]] = grade
        return Ranking([found.queries[part][query] for query in asked], documents, grades)

    def linked(part: str) -> Pairs:
        rows = [(f"{query}/{doc}", found.queries[part][query], found.documents[doc])
                for query in sorted(found.queries[part])
                for doc, grade in sorted(found.qrels[part][query].items()) if grade == 3][:limit]
        ids, left, right = zip(*rows, strict=True)
        return pairs.make(f"nfcorpus {part}", ids, left, right, languages=("en", "en"),
                          differs="substitute: no paper's data, a public collection of queries and abstracts")

    train, dev_pairs, dev = linked("train"), linked("dev"), ranking("dev")
    asked = dict(zip(map(str, range(len(dev.left))), dev.left, strict=True))
    qrels = {query: {names[place]: int(row[place]) for place in np.flatnonzero(row)}
             for query, row in zip(asked, dev.grades, strict=True)}
    judged = Judged(asked, dict(zip(names, documents, strict=True)), qrels, "mrr")
    return Data(train, train, dev, ranking("test"), dev_pairs, judged, differs=train.differs)


TABLES: dict[str, Callable[[int | None], Data]] = {
    "docstrings": _docstrings, "en-es-human": _en_es_human, "nfcorpus": _nfcorpus, "nfcorpus-1024": _nfcorpus,
}
"""Table -> loader; the argument cuts the data for the quick preset."""
