"""Content matching by clicks: 003 (Bai et al. 2010), Table 11, on the clicks of Wikispeedia's players.

A page and one of its links that a player clicked stand for the paper's page and clicked advert; worse are the links of
the same page that nobody clicked. Pages are split 60 / 10 / 30% (near-duplicates together); test pages are unseen,
their targets are not. Scored are the links of a page alone: rank loss over its clicked and unclicked ones. b is chosen
by dev rank loss, the rate by training loss; n in ssi-asym-n is how many of the most frequent words the low-rank part
sees. The paper (rank loss): TFIDF 45.6%, hash kernels 25.6%, UᵀV + I 25.8% to 27.0%; half its pairs are positive.
Popularity, a target's clicks on training pages, is a row that the paper lacks, alone and added to the others.

    JAXSIM_DATA=/path/to/corpora python experiments/bai2010_clicks.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/bai2010_clicks.py --preset quick --out /tmp/quick

Measured times stand in the records. Rows that have their record are skipped unless --again.
"""

from __future__ import annotations

import functools
import hashlib
import time
from dataclasses import dataclass, field

import jax
import numpy as np
import scipy.sparse

from experiments.links_tables import say
from experiments.ssi_sheets import Part, Place, Plan, Sheet, best_of, cut, learned, main, product, score, search, tfidf
from jaxsim import sparse, text
from jaxsim.data import links as links_room
from jaxsim.data import splits, wikispeedia
from jaxsim.evaluate.ranking import Judged
from jaxsim.methods import ssi_preferred

EXPERIMENT = "bai2010_clicks"
SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}
DIFFERS = ("substitute: links of encyclopedia articles that players of a game clicked or did not, in place of adverts; "
           "every link of a page is a candidate, clicked however rarely; the dictionary is of all articles")
ORDER = {
    "ssi-asym-10k": ("tfidf",), "ssi-asym-20k": ("tfidf",),
    "ssi-asym": ("tfidf", "popularity", "ssi-asym-no-i"), "ssi-asym-b1": ("tfidf",),
    "ssi-asym+popularity": ("ssi-asym", "popularity", "tfidf+popularity"),
}


@dataclass(frozen=True)
class Settings:
    """What a preset fixes: grids are chosen from on dev, rates by training loss."""

    k: int = 50
    identities: tuple[float, ...] = (1.0, 3.0, 10.0, 30.0)
    rates: tuple[float, ...] = (0.03, 0.1, 0.3)
    boosts: tuple[float, ...] = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    triples: int = 40_000
    max_iter: int = 10
    grid_iter: int = 3
    patience: int = 3
    validated: int | None = None
    seeds: tuple[int, ...] = (0, 1, 2)
    num_terms: int = 30_000
    limit: int | None = None


FULL = Settings()
QUICK = Settings(k=10, identities=(10.0,), rates=(0.1,), boosts=(0.01, 0.1), triples=2000, max_iter=2, grid_iter=1,
                 seeds=(0, 1), num_terms=3000, limit=200)


@dataclass(eq=False)
class Table:
    """Pages with their clicked and unclicked links.

    Attributes:
      settings: of the preset.
      sheet: where its records go.
      documents: all articles, tf-idf.
      preferred: clicked links of training pages, rows of articles.
      rejected: their unclicked links.
      parts: dev and test.
      popular: ``[num_articles]``, clicks on training pages that lead to an article.
      found: params of every seed of a row that others add to.
    """

    settings: Settings
    sheet: Sheet
    documents: scipy.sparse.csr_matrix
    preferred: np.ndarray
    rejected: np.ndarray
    parts: dict[str, Part]
    popular: np.ndarray
    found: dict = field(default_factory=dict)

    def shortened(self, num_terms: int) -> Table:
        """The same table with a low-rank part that sees the most frequent words alone."""
        seen = cut(_first(self.documents, num_terms))
        parts = {name: part._replace(queries=seen[part.truth.queries]) for name, part in self.parts.items()}
        return Table(self.settings, self.sheet, self.documents, self.preferred, self.rejected, parts, self.popular)


def _first(matrix: scipy.sparse.csr_matrix, num_terms: int) -> scipy.sparse.csr_matrix:
    """The columns of the most frequent words; the others are empty."""
    kept = matrix.tocoo()
    inside = kept.col < num_terms
    return scipy.sparse.csr_matrix((kept.data[inside], (kept.row[inside], kept.col[inside])), matrix.shape)


def _inside(clicks: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Clicks of which both ends are among some articles, numbered by place among these."""
    kept = np.isin(clicks[:, :2], rows).all(axis=1)
    return np.column_stack([np.searchsorted(rows, clicks[kept, :2]), clicks[kept, 2]])


def lists(links: np.ndarray, clicked: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Clicked and unclicked links of the pages that have both.

    Args:
      links: ``[n, 2]`` source and target.
      clicked: ``[m, 2]`` those clicked; what is no link is left out.
      size: number of articles.

    Returns:
      Two arrays of pairs, in order of both rows.
    """
    is_clicked = np.isin(links @ [size, 1], clicked @ [size, 1])
    yes, no = (np.bincount(links[of][:, 0], minlength=size) for of in (is_clicked, ~is_clicked))
    usable = (yes > 0) & (no > 0)
    kept = usable[links[:, 0]]
    return links[kept & is_clicked], links[kept & ~is_clicked]


def judged_links(clicked: np.ndarray, unclicked: np.ndarray, size: int) -> Judged:
    """Judges the links of each page alone: every other article is out of its list."""
    def matrix(pairs):
        return scipy.sparse.csr_matrix((np.ones(len(pairs), np.int8), pairs.T), shape=(size, size))

    right, wrong = matrix(clicked), matrix(unclicked)
    pages = np.flatnonzero(np.diff(right.indptr))
    listed = (right + wrong)[pages].toarray()
    return Judged(pages, right[pages], scipy.sparse.csr_matrix((1 - listed).astype(np.int8)))


def make(settings: Settings, place: Place, data=None) -> Table:
    """The only table: articles, clicks, their split."""
    begun = time.perf_counter()
    if data is None:
        articles = wikispeedia.load()
        data = articles, wikispeedia.clicks(articles)
    articles, clicks = data
    linked, ids, size = articles.links, articles.ids, len(articles.ids)
    if settings.limit is not None:  # the articles that most clicks lead to, and what happens among them
        times = np.bincount(clicks[:, 1], clicks[:, 2], minlength=size)
        kept = np.sort(np.argsort(-times, kind="stable")[: settings.limit])
        linked, clicks = links_room.inside(linked, kept), _inside(clicks, kept)
        ids, size = [ids[row] for row in kept], kept.size
    texts = articles.texts if settings.limit is None else [articles.texts[row] for row in kept]
    tokens = [text.words(one) for one in texts]
    clicked, unclicked = lists(linked, clicks[:, :2], size)
    pages = np.unique(clicked[:, 0])
    groups = splits.group_near_duplicates([tokens[page] for page in pages.tolist()])
    where = splits.split(groups, [ids[page] for page in pages.tolist()], shares=SHARES)
    vocabulary = text.Vocabulary.build(tokens, drop_top=0, max_terms=settings.num_terms, min_df=2)
    documents = tfidf(text.counts(tokens, vocabulary), vocabulary.df, size)
    seen = cut(documents)

    def of(pairs, part):
        return pairs[np.isin(pairs[:, 0], pages[where[part]])]

    parts = {}
    for part in ("dev", "test"):
        truth = judged_links(of(clicked, part), of(unclicked, part), size)
        parts[part] = Part(truth, seen[truth.queries], product(documents[truth.queries], documents))
    counts = {**articles.counts, "clicks": int(clicks[:, 2].sum()), "pairs_clicked": len(clicks),
              "split": {name: {"pages": rows.size, "clicked": len(of(clicked, name)),
                               "unclicked": len(of(unclicked, name))} for name, rows in where.items()}}
    digest = hashlib.sha256(articles.sha256.encode() + np.ascontiguousarray(clicks, "<i8").tobytes())
    dataset = {"name": f"{articles.name}, clicks", "sha256": digest.hexdigest(), "counts": counts,
               "groups": {"groups": int(groups.max() + 1), "largest": int(np.bincount(groups).max())},
               "differs": DIFFERS}
    of_training = clicks[np.isin(clicks[:, 0], pages[where["train"]])]
    seconds = time.perf_counter() - begun
    say(f"clicks: {counts}, {seconds:.0f} s")
    return Table(settings, Sheet(EXPERIMENT, "clicks", "003 Table 11", dataset, place, seconds), documents,
                 of(clicked, "train"), of(unclicked, "train"), parts,
                 np.bincount(of_training[:, 1], of_training[:, 2], minlength=size))


def fit_tfidf(table: Table) -> None:
    """Cosine of tf · log(N / df)."""
    _, tried = best_of(table, [{}], lambda _, part: part.exact)
    score(table, "tfidf", lambda part: part.exact, config={}, dev=tried[0])


def boost(table: Table) -> np.ndarray:
    """The popularity of every target."""
    return np.log1p(table.popular).astype(np.float32)


def fit_popularity(table: Table) -> None:
    """log(1 + clicks on training pages), whatever the page."""
    def scorer(part):
        return np.broadcast_to(boost(table), part.exact.shape)

    _, tried = best_of(table, [{}], lambda _, part: scorer(part))
    score(table, "popularity", scorer, config={}, dev=tried[0])


def fit_tfidf_popularity(table: Table) -> None:
    """TFIDF + c · popularity."""
    best, tried = best_of(table, [{"c": c} for c in table.settings.boosts],
                          lambda one, part: part.exact + one["c"] * boost(table), "rank_loss")
    score(table, "tfidf+popularity", lambda part: part.exact + best["c"] * boost(table), config=best,
          dev={"grid": tried})


def low_rank(row: str, *, num_terms: int | None = None, identities=None):
    """Fills a row W = UᵀV + b·I; without ``identities``, the preset's grid of b."""
    def fill(table: Table) -> None:
        settings = table.settings
        some = table if num_terms is None else table.shortened(num_terms)
        seen = cut(table.documents if num_terms is None else _first(table.documents, num_terms))
        whole, shown = sparse.from_scipy(table.documents), sparse.from_scipy(seen)

        def fit(*, seed, **options):
            return ssi_preferred.fit(whole, whole, table.preferred, table.rejected, k=settings.k,
                                     key=jax.random.key(seed), seen=(shown, shown), triples=settings.triples,
                                     patience=settings.patience if options["validate"] else None, **options)

        table.found[row] = search(some, row, fit, [{"identity": b} for b in identities or settings.identities],
                                  functools.partial(learned, documents=seen), rates=settings.rates, metric="rank_loss",
                                  told={"k": settings.k, "num_terms": num_terms or settings.num_terms})

    return fill


def fit_both(table: Table) -> None:
    """The first seed of `ssi-asym` + c · popularity: what do words say beyond it?"""
    if "ssi-asym" not in table.found:
        ROWS["ssi-asym"](table)
    params, seen = table.found["ssi-asym"][0], cut(table.documents)
    boosts = [{"c": c} for c in (*table.settings.boosts, *(10 * c for c in table.settings.boosts))]

    def scorer(one, part):
        return learned(params, part, seen) + one["c"] * boost(table)

    best, tried = best_of(table, sorted({one["c"]: one for one in boosts}.values(), key=lambda one: one["c"]), scorer,
                          "rank_loss")
    score(table, "ssi-asym+popularity", functools.partial(scorer, best), config=best, dev={"grid": tried})


ROWS = {
    "tfidf": fit_tfidf, "popularity": fit_popularity, "tfidf+popularity": fit_tfidf_popularity,
    "ssi-asym-10k": low_rank("ssi-asym-10k", num_terms=10_000),
    "ssi-asym-20k": low_rank("ssi-asym-20k", num_terms=20_000), "ssi-asym": low_rank("ssi-asym"),
    "ssi-asym-b1": low_rank("ssi-asym-b1", identities=(1.0,)),
    "ssi-asym-no-i": low_rank("ssi-asym-no-i", identities=(None,)), "ssi-asym+popularity": fit_both,
}
PLANS = {"clicks": Plan(make, ROWS, ORDER, metric="rank_loss")}

if __name__ == "__main__":
    main(__doc__, EXPERIMENT, PLANS, quick=QUICK, full=FULL)
