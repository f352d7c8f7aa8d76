"""Relevance of pages to queries: 004 (Yih 2009), Table 2, on products that shops found for queries.

A page is a product's title and description. A query is the twenty best products of a BM25 search over all pages, as
short queries are expanded in 004 §4.1; no judgement is read for it, and the product that is judged may be among them.
A pair is positive if the judges' median is the highest of four grades (62 % positive in the paper). TF&DF, plain-text
and field features are learned from preferences, as in the paper; "in the title" and "in the description" stand for the
HTML features, as these pages have no HTML. They are 0 for queries. Ten folds of the queries; scale, regulariser and the
moment to stop are chosen by the AUC on a tenth of the training queries. The paper, on landing pages of advertisements,
AUC / TPR at FPR .1 / .2: TFIDF .794 .527 .658, TF&DF .806 .430 .639, plain-text .832 .503 .704, HTML .855 .568 .750.
Rows that end in ``-bare`` leave queries as they are, those with ``-no-itself`` leave out the products judged for them.
How queries are expanded was settled on these pairs themselves.

    JAXSIM_DATA=/path/to/corpora python experiments/tweak2009_search.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/tweak2009_search.py --preset quick --out /tmp/quick

Measured time: see the records. Quick takes less than a minute, and nothing where JAXSIM_DATA is not set.
"""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path

import numpy as np

from experiments.tweak_folds import Settings, Task, run, say
from experiments.tweak_measures import tf_idf
from experiments.tweak_snippets import index, pseudo_documents, search
from jaxsim import text
from jaxsim.data import judged, splits, word_frequency
from jaxsim.text import features, html

EXPERIMENT, TABLE = "tweak2009_search", "product-search"
METRICS = ("auc", "tpr@0.1", "tpr@0.2")
# "The difference between any pair of numbers of the same evaluation metric is statistically significant" (Table 2).
ORDER = {
    "tfidf": {"tweak-tf-df": ("tpr@0.1", "tpr@0.2"), "tweak-plain": ("tpr@0.1",)},
    "tweak-tf-df": {"tfidf": ("auc",)},
    "tweak-plain": {"tfidf": ("auc", "tpr@0.2"), "tweak-tf-df": METRICS},
    "tweak-html": {"tfidf": METRICS, "tweak-tf-df": METRICS, "tweak-plain": METRICS},
}
SETS = {"tweak-tf-df": features.TF_DF, "tweak-plain": features.PLAIN_TEXT,
        "tweak-html": (*features.PLAIN_TEXT, "title", "description")}
PAGES, POSITIVE = 20, 4.0


class Products:
    """Queries and product pages as one collection with features."""

    def __init__(self, settings: Settings, out: Path, publish: bool):
        """Reads the judgements and searches."""
        begun = time.perf_counter()
        loaded, frequency = judged.load_search(), word_frequency.load()
        queries = sorted(set(loaded.queries))
        if settings.limit is not None:
            queries = [queries[at] for at in np.linspace(0, len(queries) - 1, settings.limit).astype(int)]
        self.kept = [row for row, query in enumerate(loaded.queries) if query in set(queries)]
        described = [html.read(one).text if "<" in one else one for one in loaded.descriptions]
        self.titles = [text.words(one, lower=False) for one in loaded.titles]
        self.described = [text.words(one, lower=False) for one in described]
        pages = [title + rest for title, rest in zip(self.titles, self.described, strict=True)]
        self.passages = index(pages, min_df=1)
        self.queries = [text.words(query) for query in queries]
        place = {query: at for at, query in enumerate(queries)}
        self.query = np.array([place[loaded.queries[row]] for row in self.kept])
        self.owner = np.array([place.get(query, -1) for query in loaded.queries])
        self.frequency = word_frequency.of_terms(frequency, self.passages.vocabulary.terms)
        positive = loaded.relevance[self.kept] >= POSITIVE
        groups = splits.group_near_duplicates(self.queries)
        counts = {**loaded.counts, "queries_used": len(queries), "pairs_used": len(self.kept),
                  "positive_pairs": int(positive.sum()), "terms": len(self.passages.vocabulary),
                  "queries_that_find_nothing": sum(not len(one) for one in self.found("all"))}
        dataset = {"name": "crowdflower_search", "sha256": loaded.sha256, "counts": counts,
                   "groups": {"groups of queries": int(groups.max()) + 1},
                   "differs": "substitute: product search for landing pages of advertisements; title and description "
                   "for HTML; queries expanded by the product pages themselves"}
        self.task = Task(EXPERIMENT, "004 Table 2", TABLE, METRICS, settings, out, publish, dataset, self.query,
                         len(queries) + np.arange(len(self.kept)), positive, self.query, groups,
                         time.perf_counter() - begun)
        say(f"{counts}, {self.task.load_seconds:.0f} s")

    @cache  # noqa: B019  (there is one of these, and it lasts as long as the program)
    def found(self, which: str) -> list[np.ndarray]:
        """Pages that the queries find: all of them, or those judged for other queries."""
        if which == "all":
            return search(self.passages, self.queries, k=PAGES)
        most = PAGES + int(np.bincount(self.owner[self.owner >= 0]).max())
        found = search(self.passages, self.queries, k=most)
        return [one[self.owner[one] != query][:PAGES] for query, one in enumerate(found)]

    @cache  # noqa: B019
    def documents(self, which: str):
        """Queries and then pages, with all features (not scaled) and tf·idf."""
        asked = self.queries if which == "bare" else pseudo_documents(self.passages, self.found(which))
        chosen = [[side[row] for row in self.kept] for side in (self.titles, self.described)]
        pages = [title + rest for title, rest in zip(*chosen, strict=True)]
        vocabulary = self.passages.vocabulary
        documents = features.extract([*asked, *pages], vocabulary, names=features.PLAIN_TEXT,
                                     query_frequency=self.frequency)
        none = [[]] * len(asked)
        fields = {"title": [*none, *chosen[0]], "description": [*none, *chosen[1]]}
        if which == "bare":  # far shorter than pages: their words have a weight of their own
            fields["query"] = [*asked, *[[]] * len(pages)]
        documents = html.in_fields(documents, vocabulary, fields)
        return documents, tf_idf(documents, vocabulary.df, vocabulary.num_docs)

    def bare(self, row: str, which: str) -> None:
        """Cosines of tf·idf."""
        self.task.bare(row, self.documents(which)[1], {"expansion": which, "pages": PAGES})

    def tweaked(self, row: str, which: str, names: tuple[str, ...]) -> None:
        """TWEAK from preferences, with one set of features."""
        documents, weighted = self.documents(which)
        documents = features.choose(documents, names)
        documents = features.scaled(documents, features.scale_of(documents))
        self.task.tweaked(row, documents, weighted, {"expansion": which, "pages": PAGES})


ROWS = {"tfidf": lambda products: products.bare("tfidf", "all")}
ROWS |= {row: lambda products, row=row: products.tweaked(row, "all", SETS[row]) for row in SETS}
for _which in ("bare", "no-itself"):
    ROWS |= {f"tfidf-{_which}": lambda products, which=_which: products.bare(f"tfidf-{which}", which)}
    ROWS |= {f"tweak-html-{_which}": lambda products, which=_which: products.tweaked(
        f"tweak-html-{which}", which, (*SETS["tweak-html"], *(["query"] if which == "bare" else [])))}

if __name__ == "__main__":
    run(__doc__, EXPERIMENT, TABLE, ORDER, ROWS, Products,
        full_only=["tweak-tf-df", *(row for row in ROWS if row.endswith(("-bare", "-no-itself")))])
