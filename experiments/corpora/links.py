"""Documents that link to each other, and queries with what is right for them: shared by the four scripts of 003.

What a script alone needs, its split above all, stands in the script.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse

from experiments import kit
from jaxsim import sparse, text
from jaxsim.data import cacm, mdn_links, wikispeedia
from jaxsim.evaluate import metrics, ranking
from jaxsim.evaluate.ranking import Judged
from jaxsim.methods.ssi import bilinear
from jaxsim.sparse import Vectors

BY_LINKS = {"train": 0.65, "dev": 0.05, "test": 0.3}
"""How the links of a collection are dealt out."""
MAX_TERMS = 200
"""Terms of a document that the low-rank part of SSI sees, the strongest."""
SOURCES = {"wikispeedia": wikispeedia.load, "mdn": mdn_links.english, "cacm": cacm.load}


@functools.cache
def articles(source: str, limit: int | None = None) -> tuple[wikispeedia.Articles, list[list[str]], np.ndarray]:
    """A collection, the words of the articles in use, and their rows: those with most links, in order of the rows.

    Args:
      source: One of `SOURCES`.
      limit: How many articles at most; None for all.
    """
    collection = SOURCES[source]()
    rows = np.arange(len(collection.ids))
    if limit is not None:
        degrees = np.bincount(collection.links.ravel(), minlength=rows.size)
        rows = np.sort(np.argsort(-degrees, kind="stable")[:limit])
    return collection, [text.words(collection.texts[row]) for row in rows.tolist()], rows


def per_query(
    truth: Judged, scores: np.ndarray | Callable, grades: scipy.sparse.csr_matrix | None = None
) -> dict[str, np.ndarray]:
    """Rank loss, with ties as errors and as half an error, average precision and P@10 of every query.

    Where right answers have grades, NDCG@10 too.

    Args:
      truth: What is right.
      scores: ``[num_queries, num_documents]``, or a function of rows of that matrix that returns them.
      grades: ``[num_queries, num_documents]``.
    """
    score = scores if callable(scores) else scores.__getitem__
    sizes = truth.queries[-1] + 1, truth.relevant.shape[1]
    sides = [Vectors(np.zeros((size, 1), np.float32)) for size in sizes]  # of no account beside the scores
    values = ranking.per_query(*sides, truth, similarity=lambda *_: score, half_ties=True)
    if grades is not None:
        values["ndcg@10"] = np.concatenate([metrics.ndcg(score([row]), grades[[row]].toarray(), k=10)
                                            for row in range(truth.queries.size)])
    return values


def means(values: dict[str, np.ndarray]) -> dict[str, float]:
    """Means over queries."""
    return {name: float(np.mean(value)) for name, value in values.items()}


@dataclass(frozen=True, eq=False)
class Part:
    """Queries of a split with what is right for them.

    Attributes:
      truth: What is right.
      queries: ``[num_queries, num_terms]``, the rows ``truth.queries`` as the low-rank part sees them.
      exact: ``[num_queries, num_documents]``, TFIDF: their products with the documents, without learning.
      grades: ``[num_queries, num_documents]``, where right answers have grades.
    """

    truth: Judged
    queries: scipy.sparse.csr_matrix
    exact: np.ndarray
    grades: scipy.sparse.csr_matrix | None = None

    def per_query(self, scores: np.ndarray) -> dict[str, np.ndarray]:
        """`per_query` of these queries."""
        return per_query(self.truth, scores, self.grades)

    def means(self, scores: np.ndarray) -> dict[str, float]:
        """Means of `per_query`."""
        return means(self.per_query(scores))

    def sample(self, most: int | None) -> Part:
        """An even sample of the queries, for validation during training."""
        if most is None or self.truth.queries.size <= most:
            return self
        rows = np.linspace(0, self.truth.queries.size - 1, most).astype(int)
        truth = Judged(*(field[rows] for field in self.truth))
        return replace(self, truth=truth, queries=self.queries[rows], exact=self.exact[rows],
                       grades=None if self.grades is None else self.grades[rows])


ALIKE = 0.05
"""How far two MAPs may be apart, as a share of the larger one, to be called similar: 003's similar ones are .6 % apart,
and query expansion gains it 1 %."""


def barely_better(rows) -> tuple[bool, str]:
    """Whether query expansion gains less than `ALIKE` of TFIDF's MAP; 003 has 1.2 % (keywords), .3 % and nothing.

    Development queries choose from how many documents a query is expanded; from none it is TFIDF, and how far the best
    expansion is from that on them is said.
    """
    plain, expanded = (rows[row]["metrics"]["map"]["mean"] for row in ("tfidf", "qe"))
    text = f"{expanded / plain - 1:+.1%}, with {rows['qe']['config']['E']} documents"
    points = sorted(rows["qe"].get("curve", ()), key=lambda point: point["map"])
    tried = {bool(point["E"]): point["map"] for point in points}  # the last of each kind is its best
    if len(tried) > 1:
        text += f"; {tried[True] / tried[False] - 1:+.1%} at best with some, on development queries"
    return expanded <= (1 + ALIKE) * plain, text


def mixtures(table: kit.Table, pairs: Sequence[tuple[Callable, Callable]], weights: Sequence[float], *, by: str,
             lowest: bool = False, seeds: Sequence[int] = ()) -> kit.Row:
    """Scores of a first function of a part + c times those of a second, of a pair of functions a seed.

    Chosen: one c for all seeds, by their mean of ``by`` on dev. Without ``seeds`` there is one pair.
    """
    dev, test = table.data.parts["dev"], table.data.parts["test"]
    held = [(first(dev), second(dev)) for first, second in pairs]

    def mean(c):
        each = [dev.means(first + c * second) for first, second in held]
        return {name: float(np.mean([one[name] for one in each])) for name in each[0]}

    choice = kit.choose([{"c": c} for c in weights], mean, by=by, lowest=lowest, split="dev")
    tested = [test.per_query(first(test) + choice.best["c"] * second(test)) for first, second in pairs]
    return kit.Row(choice.best, tested if seeds else tested[0], dev={"grid": choice.tried}, seeds=seeds)


def other_seeds(seeds: Sequence[int]) -> tuple[int, ...]:
    """As many seeds again: a second model beside each of the first, where one is mixed with another of its kind.

    Example:
      >>> other_seeds((0, 1, 2))
      (3, 4, 5)
    """
    return tuple(max(seeds) + 1 + seed for seed in seeds)


def tfidf(counts, df, num_docs) -> scipy.sparse.csr_matrix:
    """Unit tf · log(N / df)."""
    return text.unit_rows(text.tf_idf(counts, df, num_docs))


def cut(matrix: scipy.sparse.csr_matrix) -> scipy.sparse.csr_matrix:
    """What the low-rank part sees of documents."""
    return sparse.to_scipy(bilinear.strongest(sparse.from_scipy(matrix), MAX_TERMS))


def product(queries: scipy.sparse.csr_matrix, documents: scipy.sparse.csr_matrix, block: int = 512) -> np.ndarray:
    """All inner products, ``[num_queries, num_documents]`` float32."""
    across = documents.T.tocsr()
    products = np.zeros((queries.shape[0], documents.shape[0]), np.float32)
    for start in range(0, queries.shape[0], block):
        products[start : start + block] = (queries[start : start + block] @ across).toarray()
    return products
