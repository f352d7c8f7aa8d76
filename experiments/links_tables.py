"""The tables of `bai2010_links`: articles, their two splits, and how a row is chosen on dev, tested and recorded."""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.kit import records
from experiments.links_judge import judge
from experiments.links_settings import DIFFERS, EXPERIMENT, FULL, MAX_TERMS, PAPERS, QUICK, SHARES, Settings
from jaxsim import sparse, text
from jaxsim.data import cacm, mdn_links, splits, wikispeedia
from jaxsim.data import links as links_room
from jaxsim.evaluate import metrics, ranking, retrieval, significance
from jaxsim.evaluate.ranking import Judged
from jaxsim.methods.ssi import bilinear, triples
from jaxsim.methods.ssi.products import Products
from jaxsim.optim import checkpoints
from jaxsim.sparse import Terms, Vectors

__all__ = ["FULL", "QUICK", "SHARES", "Collection", "Scored", "Settings", "Table", "judge", "say", "sides", "tokenized"]


@dataclass(eq=False)
class Collection:
    """Documents that are queries and candidates at once."""

    rows: np.ndarray
    counts: scipy.sparse.csr_matrix
    df: np.ndarray
    num_docs: int
    titles: scipy.sparse.csr_matrix
    _made: dict = field(default_factory=dict)

    def _once(self, name: str, make: Callable):
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def tfidf(self) -> Terms:
        """Unit tf · log(N / df), over the training documents' df."""
        return self._once("tfidf", lambda: unit(text.tf_idf(self.counts, self.df, self.num_docs)))

    def log_tfidf(self) -> Terms:
        """Unit log2(tf + 1) · log2(n / df)."""
        return self._once("log", lambda: unit(text.log_tf_idf(self.counts, self.df, self.num_docs)))

    def cut(self) -> Terms:
        """What the low-rank part sees."""
        return self._once("cut", lambda: bilinear.strongest(self.tfidf(), MAX_TERMS))

    def own(self) -> np.ndarray:
        """Every document with itself: neither a right answer nor a negative."""
        return np.repeat(np.arange(self.rows.size), 2).reshape(-1, 2)


def unit(matrix: scipy.sparse.csr_matrix) -> Terms:
    """Rows of length 1; an empty row stays empty."""
    length = np.sqrt(np.asarray(matrix.multiply(matrix).sum(axis=1)).ravel())
    scale = np.divide(1.0, length, out=np.zeros(length.size), where=length > 0)
    return sparse.from_scipy((scipy.sparse.diags_array(scale) @ matrix).tocsr().astype(np.float32))


SOURCES = {"mdn": mdn_links.english, "cacm": cacm.load}  # of tables on other collections than Wikispeedia


def tokenized(limit: int | None, name: str = "table1") -> tuple[wikispeedia.Articles, list[list[str]], np.ndarray]:
    """The articles of a table, their words, and the rows that a preset uses: those with most links."""
    articles = SOURCES.get(name, wikispeedia.load)()
    rows = np.arange(len(articles.ids))
    if limit is not None:
        degree = np.bincount(articles.links.ravel(), minlength=rows.size)
        rows = np.sort(np.argsort(-degree, kind="stable")[:limit])
    return articles, [text.words(articles.texts[row]) for row in rows.tolist()], rows


def dealt(name: str, links: np.ndarray, ids: list[str]) -> dict[str, np.ndarray]:
    """Links of each part; citations of CACM have no direction, so both ways go to one part."""
    if name != "cacm":
        return links_room.split(links, ids, shares=SHARES[name])
    once = links_room.split(links[links[:, 0] < links[:, 1]], ids, shares=SHARES[name])
    return {part: links_room.checked(np.concatenate([of, of[:, ::-1]]), len(ids)) for part, of in once.items()}


@dataclass(eq=False)
class Table:
    """One table being filled."""

    name: str
    settings: Settings
    out: Path
    cache: Path
    publish: bool
    data: tuple
    environment: dict = field(default_factory=records.environment)
    _products: dict = field(default_factory=dict)

    def __post_init__(self):
        """Splits, counts and judges."""
        begun = time.perf_counter()
        self.articles, tokens, rows = self.data
        ids = [self.articles.ids[row] for row in rows]
        every = links_room.inside(self.articles.links, rows)
        groups = splits.group_near_duplicates(tokens)
        sizes = np.bincount(groups)
        self.groups = {"groups": int(sizes.size), "largest": int(sizes.max())}
        if self.name != "table3":
            parts = dict.fromkeys(SHARES["table1"], np.arange(rows.size))
            linked = dealt(self.name, every, ids)
        else:
            parts = splits.split(groups, ids, shares=SHARES["table3"])
            linked = {name: links_room.inside(every, part) for name, part in parts.items()}
        vocabulary = text.Vocabulary.build([tokens[row] for row in parts["train"]], drop_top=0,
                                           min_df=2,
                                           max_terms=self.settings.num_terms if self.name != "table2" else 10**9)
        counts = text.counts(tokens, vocabulary)
        titles = text.counts([text.words(self.articles.titles[row]) for row in rows], vocabulary)

        def collection(part):
            return Collection(part, counts[part], vocabulary.df, vocabulary.num_docs, titles[part])

        whole = collection(parts["train"])
        self.parts = {name: whole if self.name != "table3" else collection(part) for name, part in parts.items()}
        self.links = linked["train"]
        known = {"dev": ["train"], "test": ["train", "dev"]} if self.name != "table3" else {"dev": [], "test": []}
        self.truth: dict[str, Judged] = {}
        for name, out in known.items():
            size = self.parts[name].rows.size
            left_out = [self.parts[name].own(), *(linked[other] for other in out)]
            self.truth[name] = ranking.judged(linked[name], (size, size), left_out=left_out)
        self.sizes = {name: {"documents": int(part.size), "links": len(linked[name])} for name, part in parts.items()}
        self.load_seconds = time.perf_counter() - begun
        say(f"{self.name}: {self.sizes}, {len(vocabulary)} terms, {self.load_seconds:.0f} s")

    def once(self, name: str, make: Callable):
        """What several rows need is made once."""
        if name not in self._products:
            self._products[name] = make()
        return self._products[name]

    def shared(self) -> Products:
        """Products of training documents, for the fits of all b."""
        part = self.parts["train"].tfidf()
        return self.once("train", lambda: Products(part, part, 1.0, table=2**28))

    def dev(self, model) -> dict[str, float]:
        """Dev scores."""
        return {name: float(values.mean()) for name, values in self.per_query("dev", model).items()}

    def validate(self, params) -> float:
        """Dev MAP of a bilinear model."""
        return self.dev(params)["map"]

    def per_query(self, name: str, model) -> dict[str, np.ndarray]:
        """Scores on dev or test of a function of a collection, or of a bilinear model.

        Products of sparse parts are computed once for the identities of all models, and once for a fixed D.
        """
        part, truth = self.parts[name], self.truth[name]
        if callable(model):
            return ranking.per_query(*model(part), truth)
        if isinstance(model, Scored):
            found = model.make(name)
            both = Vectors(sparse=part.tfidf())
            return ranking.per_query(both, both, truth, similarity=lambda *sides: lambda rows: found[rows])
        query, document = model
        if query.weights is None or query.scale is None:
            return ranking.per_query(*sides(model, part), truth)
        scale = np.asarray(query.scale)
        weight, scale = (scale[0], np.ones_like(scale)) if np.ptp(scale) == 0 else (1.0, scale)

        def exact():
            weighed = sparse.take(sparse.weigh(part.tfidf(), jnp.asarray(scale)), truth.queries)
            found = retrieval.dot(Vectors(sparse=weighed), Vectors(sparse=part.tfidf()))
            blocks = np.array_split(np.arange(truth.queries.size), -(-truth.queries.size // 256))
            return np.concatenate([np.asarray(found(rows)) for rows in blocks])

        products = self.once(name + checkpoints.fingerprint(scale), exact)

        def similarity(left, right):
            learned = retrieval.dot(left, right)
            return lambda rows: learned(rows) + weight * products[rows]

        dense = [Vectors(sparse.project(part.cut(), side.weights)) for side in (query, document)]
        return ranking.per_query(*dense, truth, similarity=similarity)

    def queries(self, name: str) -> np.ndarray:
        """Rows of the queries of a part; of training all."""
        return self.truth[name].queries if name in self.truth else np.arange(self.parts[name].rows.size)

    def exact(self, name: str) -> np.ndarray:
        """Cosines of the queries of a part with its documents, ``[queries, documents]``."""
        part = self.parts[name]
        one = "train" if part is self.parts["train"] else name

        def make():
            found, size = retrieval.dot(*[Vectors(sparse=part.tfidf())] * 2), part.rows.size
            blocks = np.array_split(np.arange(size), -(-size // 256))
            return np.concatenate([np.asarray(found(rows)) for rows in blocks])

        return self.once(f"exact {one}", make)[self.queries(name)]

    def train_loss(self, matrix: np.ndarray) -> float:
        """Ranking loss of scores of the training part on random training triples, by which 003 tunes baselines."""
        part = self.parts["train"]

        def make():
            known = triples.table(self.links, part.rows.size, part.rows.size, known=part.own())
            return [np.asarray(one) for one in triples.draw(jax.random.key(0), known, self.settings.pairs)]

        query, better, worse = self.once("triples", make)
        return float(metrics.rank_loss(matrix[query, better], matrix[query, worse]))

    def checkpoint(self, row: str, settings: dict) -> Path:
        """Folder of a fit that goes on where it stopped; a finished one is read back."""
        told = json.dumps([self.articles.sha256, self.name, self.settings.limit, settings], sort_keys=True)
        return self.cache / f"{self.name}-{row}-{hashlib.sha256(told.encode()).hexdigest()[:16]}"

    def path(self, row: str) -> Path:
        """Where the row's record is, or will be."""
        return self.out / EXPERIMENT / self.name / f"{row}.json"

    def record(self, row: str, models: list, *, config: dict, dev: dict, curve=(), fit=None,
               seconds: float = 0.0, seeds=(), more=None) -> None:
        """Tests what dev chose (one model a seed) and writes the record with its per-query values, and ``more``."""
        begun = time.perf_counter()
        found = [self.per_query("test", model) for model in models]
        means = {name: [float(one[name].mean()) for one in found] for name in ranking.METRICS}
        per_query = {name: np.mean([one[name] for one in found], axis=0) for name in ranking.METRICS}
        errors = {f"test {name}, standard error over queries": significance.standard_error(values)
                  for name, values in per_query.items()}
        record = records.new(
            experiment=EXPERIMENT, paper=PAPERS.get(self.name, f"003 Table {self.name[-1]}"), table=self.name, row=row,
            status="within noise", config=config, seeds=list(seeds),
            dataset={"name": self.articles.name, "sha256": self.articles.sha256, "differs": DIFFERS[self.name],
                     "counts": {**self.articles.counts, "split": self.sizes}, "groups": self.groups},
            dev={**dev, **errors}, metrics=means, curve=curve, fit=fit, environment=self.environment,
            seconds={"load": self.load_seconds, "fit": seconds, "evaluate": time.perf_counter() - begun},
        )
        records.write(record, self.out, per_query={**per_query, **(more or {})}, allow_dirty=not self.publish)
        done = self.cache.glob(f"{self.name}-{row}-{'[0-9a-f]' * 16}")
        for folder in [] if row in ("ssi-diag", "ssi-full") else done:
            shutil.rmtree(folder)  # tables of some 50 MB a fit; later rows read these two
        say(f"{self.name}: {row} {config} " + ", ".join(f"{name} {np.mean(v):.4f}" for name, v in means.items()))


@dataclass(frozen=True)
class Scored:
    """A model that is only known by its scores: ``make(part)`` gives them, ``[queries, documents]``."""

    make: Callable[[str], np.ndarray]


def sides(params, part: Collection) -> tuple[Vectors, Vectors]:
    """Both sides of a bilinear model."""
    return tuple(bilinear.encode(side, part.tfidf(), low_rank=part.cut()) for side in params)


def say(message: str) -> None:
    """A line of progress."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)
