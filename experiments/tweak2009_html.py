"""HTML features of 004 (Yih 2009, §4.2.2) on real pages: the manual of the Apache HTTP Server.

A query is the text of a link between two pages, its relevant pages are those that links of this text lead to; these
labels are weak and binary, made by the authors of the manual and not by judges, and most queries are names of
directives or modules: those of one word and of several are measured apart. Candidates are all pages. Paper's HTML
features: in the text of a link of the page, part of its address, in its title, in its meta keywords or description (of
which the manual has none). Ours beside: in a heading, and in the text of a link that leads to the page. The latter is
made for each fold of the queries anew, without the links whose text is a query of that fold, in training as in testing.
Queries are not expanded: the search would be one in the candidates themselves. They are far shorter than pages, so that
one more column, 1 for queries, keeps the weights of their words from being those of a page of two words. No figure of
the paper compares; its order is TFIDF, TF&DF, plain-text, HTML by AUC. Bare rows: tf·idf, BM25, and the share of query
words in the title.

    JAXSIM_DATA=/path/to/corpora python experiments/tweak2009_html.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/tweak2009_html.py --preset quick --out /tmp/quick

Measured time: see the records. Quick takes less than a minute, and nothing where JAXSIM_DATA is not set.
"""

from __future__ import annotations

import time
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments.tweak_folds import Settings, Task, run, say
from experiments.tweak_measures import deal, encoded, tf_idf
from jaxsim import sparse, text
from jaxsim.data import httpd_html, splits, word_frequency
from jaxsim.text import features, html
from jaxsim.text.features import Featured

EXPERIMENT, TABLE = "tweak2009_html", "httpd-html"
METRICS = ("auc", "map", "tpr@0.1", "tpr@0.2")
ORDER = {
    "tweak-tf-df": {"tfidf": ("auc",)},
    "tweak-plain": {"tfidf": ("auc",), "tweak-tf-df": ("auc",)},
    "tweak-html": {"tfidf": ("auc",), "tweak-tf-df": ("auc",), "tweak-plain": ("auc",)},
}
PAPERS = ("hypertext", "url", "title", "keywords", "description")
SETS = {
    "tweak-tf-df": (*features.TF_DF, "query"),
    "tweak-plain": (*features.PLAIN_TEXT, "query"),
    "tweak-html": (*features.PLAIN_TEXT, "query", *PAPERS),
    "tweak-html-inbound": (*features.PLAIN_TEXT, "query", *PAPERS, "heading", "inbound"),
}
NEGATIVES = 20


def queries_of(links: tuple[httpd_html.Link, ...]) -> dict[str, set[int]]:
    """Pages that each anchor text leads to.

    Args:
      links: of the manual.

    Returns:
      Lower-case anchor text -> rows of its targets, in order of the text; those without a word are left out.

    Example:
      >>> queries_of((httpd_html.Link(0, 2, "Listen"), httpd_html.Link(1, 3, "listen"), httpd_html.Link(0, 1, "->")))
      {'listen': {2, 3}}
    """
    found: dict[str, set[int]] = {}
    for link in links:
        if text.words(link.anchor):
            found.setdefault(link.anchor.lower(), set()).add(link.target)
    return dict(sorted(found.items()))


def inbound(links: tuple[httpd_html.Link, ...], num_pages: int, without: set[str]) -> list[list[str]]:
    """Words of the links that lead to each page.

    Args:
      links: of the manual.
      num_pages: in it.
      without: lower-case anchor texts whose links do not count.

    Returns:
      A list of lower-case words a page.

    Example:
      >>> inbound((httpd_html.Link(0, 1, "Listen"), httpd_html.Link(0, 1, "The port")), 2, {"listen"})
      [[], ['the', 'port']]
    """
    found: list[list[str]] = [[] for _ in range(num_pages)]
    for anchor, target in sorted({(link.anchor.lower(), link.target) for link in links}):
        if anchor not in without:
            found[target] += text.words(anchor)
    return found


def repeated(documents: Featured, times: int) -> Featured:
    """All documents several times over."""
    csr = sparse.to_scipy(documents.terms)
    columns = np.tile(np.asarray(documents.columns)[: csr.nnz], (times, 1))
    return Featured(sparse.from_scipy(sp.vstack([csr] * times, format="csr")), jnp.asarray(columns), documents.names)


class Manual:
    """Pages (once a fold), anchor texts as queries, and which of them belong together."""

    def __init__(self, settings: Settings, out: Path, publish: bool):
        """Reads the manual and takes its pages apart."""
        begun = time.perf_counter()
        manual, frequency = httpd_html.load(), word_frequency.load()
        relevant = queries_of(manual.links)
        anchors = list(relevant)
        if settings.limit is not None:
            anchors = [anchors[at] for at in np.linspace(0, len(anchors) - 1, settings.limit).astype(int)]
        parts = [html.read(page) for page in manual.pages]
        self.words = [text.words(f"{one.title} {one.text}", lower=False) for one in parts]
        folded = [[word.lower() for word in one] for one in self.words]
        vocabulary = self.vocabulary = text.Vocabulary.build(folded, drop_top=0, max_terms=10**9)
        query_frequency = word_frequency.of_terms(frequency, vocabulary.terms)
        self.queries = [text.words(anchor) for anchor in anchors]
        self.titles = [set(text.words(one.title)) for one in parts]
        groups = splits.group_near_duplicates(self.queries)
        fold = deal(groups, np.full(len(anchors), len(parts)), num=settings.folds)
        extracted = [features.extract(side, vocabulary, names=features.PLAIN_TEXT, query_frequency=query_frequency)
                     for side in (self.queries, self.words)]
        lists = {"hypertext": [text.words(one.anchors) for one in parts],
                 "title": [text.words(one.title) for one in parts],
                 "keywords": [text.words(one.keywords) for one in parts],
                 "description": [text.words(one.description) for one in parts],
                 "heading": [text.words(one.headings) for one in parts]}
        pages = html.in_fields(extracted[1], vocabulary, lists)
        pages = repeated(html.in_strings(pages, vocabulary, "url", manual.ids), settings.folds)
        links = [one for number in range(settings.folds)
                 for one in inbound(manual.links, len(parts), {anchors[at] for at in np.flatnonzero(fold == number)})]
        pages = html.in_fields(pages, vocabulary, {"inbound": links})
        none: list[list[str]] = [[]] * pages.num_docs
        self.documents = html.in_fields(stacked(extracted[0], pages), vocabulary,
                                                 {"query": [*self.queries, *none]})
        self.weighted = tf_idf(self.documents, vocabulary.df, vocabulary.num_docs)
        query = np.repeat(np.arange(len(anchors)), len(parts))
        page = np.tile(np.arange(len(parts)), len(anchors))
        positive = np.zeros((len(anchors), len(parts)), bool)
        for at, anchor in enumerate(anchors):
            positive[at, list(relevant[anchor])] = True
        single = np.array([len(one) == 1 for one in self.queries])
        counts = {**manual.counts, "queries": len(relevant), "queries_used": len(anchors),
                  "queries_of_one_word": int(single.sum()), "positive_pairs": int(positive.sum()),
                  "terms": len(vocabulary)}
        dataset = {"name": "httpd_html", "sha256": manual.sha256, "counts": counts,
                   "groups": {"groups of queries": int(groups.max()) + 1},
                   "differs": "substitute: anchor texts and the pages they lead to (weak labels) for judged pages of "
                   "advertisements"}
        self.task = Task(EXPERIMENT, "004", TABLE, METRICS, settings, out, publish, dataset, query,
                         len(anchors) + fold[query] * len(parts) + page, positive.ravel(), query, groups,
                         time.perf_counter() - begun, sampled=some(positive),
                         kinds={"one word": single[query], "several words": ~single[query]})
        say(f"{counts}, {self.task.load_seconds:.0f} s")

    def scores(self, weighted: sp.csr_matrix) -> np.ndarray:
        """Cosines of all queries with all pages of their fold."""
        length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
        unit = (sp.diags_array(1 / np.where(length > 0, length, 1)) @ weighted).tocsr()
        num, size = len(self.queries), len(self.words)
        found, fold = np.zeros((num, size)), self.task.fold[::size]
        for number in range(self.task.settings.folds):
            rows = np.flatnonzero(fold == number)
            found[rows] = (unit[rows] @ unit[num + number * size : num + (number + 1) * size].T).toarray()
        return found.ravel()

    def tweaked(self, row: str) -> None:
        """TWEAK from preferences, with one set of features."""
        documents = features.choose(self.documents, SETS[row])
        documents = features.scaled(documents, features.scale_of(documents))
        self.task.tweaked(row, documents, self.weighted, {"negatives": NEGATIVES},
                          score=lambda params: self.scores(encoded(params, documents).astype(np.float64)))

    def bare(self, row: str) -> None:
        """tf·idf, BM25, or the share of the query's words that the title has."""
        counts = text.counts([[word.lower() for word in one] for one in self.words], self.vocabulary)
        asked = text.counts(self.queries, self.vocabulary)
        if row == "tfidf":
            found = self.scores(self.weighted)
        elif row == "bm25":
            weights = text.bm25(counts, self.vocabulary.df, self.vocabulary.num_docs,
                                average_length=counts.sum() / counts.shape[0])
            found = (asked @ weights.T).toarray().ravel()
        else:
            found = np.array([len(set(one) & title) / len(set(one)) for one in self.queries for title in self.titles])
        self.task.record(row, found, {}, {}, None, 0.0)


def stacked(queries: Featured, pages: Featured) -> Featured:
    """Queries and then pages; columns that queries have not are 0 for them."""
    sides = [sparse.to_scipy(one.terms) for one in (queries, pages)]
    columns = np.zeros((sides[0].nnz + sides[1].nnz, len(pages.names)), np.float32)
    columns[: sides[0].nnz, : len(queries.names)] = np.asarray(queries.columns)[: sides[0].nnz]
    columns[sides[0].nnz :] = np.asarray(pages.columns)[: sides[1].nnz]
    return Featured(sparse.from_scipy(sp.vstack(sides, format="csr")), jnp.asarray(columns), pages.names)


def some(positive: np.ndarray) -> np.ndarray:
    """Pairs to fit on: all positive ones, and other pages of each query drawn at random."""
    rng = np.random.default_rng(0)
    drawn = positive.copy()
    for row in drawn:
        others = np.flatnonzero(~row)
        row[rng.choice(others, min(NEGATIVES, len(others)), replace=False)] = True
    return np.flatnonzero(drawn)


ROWS = {row: lambda manual, row=row: manual.bare(row) for row in ("tfidf", "bm25", "title-overlap")}
ROWS |= {row: lambda manual, row=row: manual.tweaked(row) for row in SETS}

if __name__ == "__main__":
    run(__doc__, EXPERIMENT, TABLE, ORDER, ROWS, Manual, full_only=("tweak-tf-df", "tweak-html-inbound"))
