"""The tables of `bai2010_queries`: articles asked for by some of a linking article's words, and NFCorpus."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass

import numpy as np
import scipy.sparse

from experiments.links_tables import SHARES, say
from experiments.ssi_sheets import Part, Place, Sheet, cut, product, tfidf
from jaxsim import sparse, text
from jaxsim.data import links as links_room
from jaxsim.data import nfcorpus, wikispeedia
from jaxsim.evaluate import ranking
from jaxsim.methods import bm25
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.weights import weighting

EXPERIMENT = "bai2010_queries"
DIFFERS = ("substitute: 4,598 articles of Wikipedia for Schools in place of 1.8 million, their links in place of 25 "
           "million; every query against the whole collection; exact rank loss over all pairs; the words of a query "
           "are drawn from the different words of its article, each once")
ALL_WORDS = "; all words of at least two articles, in the low-rank part too"
GRADED = "substitute: titles of web pages as queries, abstracts as documents, NFCorpus in place of Wikipedia"
WORDS = {"k5": 5, "k10": 10, "k20": 20, "k10-all-words": 10}
PAPERS = {"k5": "003 Table 5, k = 5", "k10": "003 Table 5, k = 10", "k20": "003 Table 5, k = 20",
          "k10-all-words": "003 Table 6"}


@dataclass(frozen=True)
class Settings:
    """What a preset fixes: grids are chosen from on dev, rates by training loss."""

    ks: tuple[int, ...] = (50, 100, 200)
    k: int = 100
    identities: tuple[float, ...] = (3.0, 10.0, 30.0)
    rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    boosts: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3)
    shares: tuple[float, ...] = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)
    draws: int = 8
    triples: int = 40_000
    max_iter: int = 10
    grid_iter: int = 2
    patience: int = 3
    validated: int | None = 500
    pairs: int = 30_000
    seeds: tuple[int, ...] = (0, 1)
    num_terms: int = 30_000
    limit: int | None = None


FULL = Settings()
QUICK = Settings(ks=(10,), k=10, identities=(10.0,), rates=(0.1,), boosts=(0.01, 0.1), shares=(0.0, 0.1), draws=2,
                 triples=1000, max_iter=2, grid_iter=1, patience=2, validated=50, pairs=1000, num_terms=3000, limit=120)


@dataclass(eq=False)
class Table:
    """Queries and documents of one table, over one vocabulary.

    Attributes:
      settings: of the preset.
      sheet: where its records go.
      left: training queries, several for an article.
      right: documents, in full.
      cut: the same as the low-rank part sees them.
      links: pairs of rows of both.
      known: pairs that are no negatives besides the links.
      parts: dev and test.
      bm25: split -> scores of BM25.
      popular: ``[num_documents]``, how often a document is right in training.
    """

    settings: Settings
    sheet: Sheet
    left: sparse.Terms
    right: sparse.Terms
    cut: scipy.sparse.csr_matrix
    links: np.ndarray
    known: np.ndarray
    parts: dict[str, Part]
    bm25: dict[str, np.ndarray]
    popular: np.ndarray

    @functools.cached_property
    def products(self) -> Products:
        """Products of training queries and documents, for the fits of all b."""
        return Products(self.left, self.right, 1.0, table=2**28)


@functools.cache
def articles(limit: int | None):
    """The articles, their words, and the rows that a preset uses: those with most links."""
    found = wikispeedia.load()
    rows = np.arange(len(found.ids))
    if limit is not None:
        degree = np.bincount(found.links.ravel(), minlength=rows.size)
        rows = np.sort(np.argsort(-degree, kind="stable")[:limit])
    return found, [text.words(found.texts[row]) for row in rows.tolist()], rows


def drawn(counts: scipy.sparse.csr_matrix, df: np.ndarray, num_docs: int, k: int, seed: int):
    """A query for every document: k of its different words, each as likely as another; all where it has fewer.

    Args:
      counts: of the documents.
      df: document frequencies; words of every document cannot be drawn, because they weigh nothing.
      num_docs: number of training documents.
      k: words.
      seed: of the draw.

    Returns:
      CSR matrix of zeros and ones, of the shape of ``counts``.
    """
    rng = np.random.default_rng(seed)
    found, indptr = [], [0]
    for row in range(counts.shape[0]):
        words = counts.indices[counts.indptr[row] : counts.indptr[row + 1]]
        words = words[df[words] < num_docs]
        found.append(np.sort(words if words.size <= k else rng.choice(words, k, replace=False)))
        indptr.append(indptr[-1] + found[-1].size)
    indices = np.concatenate([np.zeros(0, np.int32), *found])
    return scipy.sparse.csr_matrix((np.ones(indices.size, np.float32), indices, np.asarray(indptr)), counts.shape)


def scores_of_bm25(counts, queries: dict) -> dict[str, np.ndarray]:
    """BM25 of every query of every split with every document."""
    counts = sparse.from_scipy(counts)
    documents = sparse.to_scipy(weighting.encode(bm25.fit(counts).params, counts).sparse)
    return {name: product(some, documents) for name, some in queries.items()}


def keywords(name: str, settings: Settings, place: Place, data=None) -> Table:
    """Table 5 for one k, or Table 6: links of Wikispeedia, split 65 / 5 / 30%."""
    begun = time.perf_counter()
    whole, tokens, rows = articles(settings.limit) if data is None else data
    every = links_room.inside(whole.links, rows)
    linked = links_room.split(every, [whole.ids[row] for row in rows], shares=SHARES["table1"])
    most = settings.num_terms if name != "k10-all-words" else 10**9
    vocabulary = text.Vocabulary.build(tokens, drop_top=0, max_terms=most, min_df=2)
    counts = text.counts(tokens, vocabulary)
    df, size = vocabulary.df, rows.size
    documents = tfidf(counts, df, size)
    # Seeds 0, 1, 2, ... are the training queries', dev and test have their own words.
    draws = [drawn(counts, df, size, WORDS[name], seed) for seed in range(settings.draws)]
    held = {"dev": drawn(counts, df, size, WORDS[name], 1001), "test": drawn(counts, df, size, WORDS[name], 1002)}
    own = np.repeat(np.arange(size), 2).reshape(-1, 2)
    known = {"dev": [own, linked["train"]], "test": [own, linked["train"], linked["dev"]]}
    parts, asked = {}, {}
    for part, some in held.items():
        truth = ranking.judged(linked[part], (size, size), left_out=known[part])
        asked[part] = some[truth.queries]
        queries = tfidf(asked[part], df, size)
        parts[part] = Part(truth, queries, product(queries, documents))

    def stacked(pairs):
        return np.concatenate([pairs + [draw * size, 0] for draw in range(settings.draws)])

    counted = {**whole.counts, "terms": len(vocabulary), "documents": size,
               "split": {part: len(of) for part, of in linked.items()}}
    dataset = {"name": whole.name, "sha256": whole.sha256, "counts": counted, "groups": {},
               "differs": DIFFERS + (ALL_WORDS if name == "k10-all-words" else "")}
    seconds = time.perf_counter() - begun
    say(f"{name}: {counted}, {seconds:.0f} s")
    return Table(
        settings, Sheet(EXPERIMENT, name, PAPERS[name], dataset, place, seconds),
        sparse.from_scipy(tfidf(scipy.sparse.vstack(draws, format="csr"), df, size)), sparse.from_scipy(documents),
        cut(documents), stacked(linked["train"]), stacked(own), parts, scores_of_bm25(counts, asked),
        np.bincount(linked["train"][:, 1], minlength=size))


def graded(name: str, settings: Settings, place: Place, data: nfcorpus.Collection | None = None) -> Table:
    """NFCorpus: trained on the grades of its training queries, whatever their degree."""
    begun = time.perf_counter()
    found = nfcorpus.load() if data is None else data
    ids = list(found.documents)
    queries = {split: list(of) for split, of in found.queries.items()}
    if settings.limit is not None and data is None:
        queries = {split: of[: settings.limit] for split, of in queries.items()}
        wanted = {key for split, of in queries.items() for query in of for key in found.qrels[split][query]}
        ids = [key for key in ids if key in wanted][: 5 * settings.limit]
    row = {key: number for number, key in enumerate(ids)}
    texts = [text.words(found.documents[key]) for key in ids]
    asked = {split: [text.words(found.queries[split][key]) for key in of] for split, of in queries.items()}
    vocabulary = text.Vocabulary.build([*texts, *asked["train"]], drop_top=0, max_terms=settings.num_terms)
    counts = text.counts(texts, vocabulary)
    df = np.asarray((counts > 0).sum(axis=0)).ravel()
    documents = tfidf(counts, df, len(ids))
    sides = {split: text.counts(of, vocabulary) for split, of in asked.items()}
    grades = {}
    for split, of in queries.items():
        cells = [(number, row[key], grade) for number, query in enumerate(of)
                 for key, grade in found.qrels[split][query].items() if key in row]
        first, second, degree = np.asarray(cells, np.int64).reshape(-1, 3).T
        grades[split] = scipy.sparse.csr_matrix((degree, (first, second)), shape=(len(of), len(ids)))
    parts = {}
    for split in ("dev", "test"):
        truth = ranking.judged(np.argwhere(grades[split].toarray() > 0), grades[split].shape)
        side = tfidf(sides[split][truth.queries], df, len(ids))
        parts[split] = Part(truth, side, product(side, documents), grades[split][truth.queries])
    links = np.argwhere(grades["train"].toarray() > 0)
    counted = {**found.counts, "terms": len(vocabulary), "documents_used": len(ids), "training_pairs": len(links)}
    dataset = {"name": found.name, "sha256": found.sha256, "counts": counted, "groups": {}, "differs": GRADED}
    seconds = time.perf_counter() - begun
    say(f"{name}: {counted}, {seconds:.0f} s")
    return Table(
        settings, Sheet(EXPERIMENT, name, "003", dataset, place, seconds),
        sparse.from_scipy(tfidf(sides["train"], df, len(ids))), sparse.from_scipy(documents), cut(documents), links,
        np.zeros((0, 2), np.int64), parts,
        scores_of_bm25(counts, {split: sides[split][part.truth.queries] for split, part in parts.items()}),
        np.bincount(links[:, 1], minlength=len(ids)))
