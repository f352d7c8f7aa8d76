"""Supervised Semantic Indexing for short queries: 003 (Bai et al. 2010), Tables 5 and 6, and NFCorpus.

Tables `k5`, `k10`, `k20`: a query is k random words of a Wikispeedia article, right are the articles that it links to;
30,000 words. `k10-all-words`: the same with every word (the paper's Table 6). Links are split as in `bai2010_links`
(65 / 5 / 30%), and an article has other words in training, dev and test. `nfcorpus`: titles as queries, graded
abstracts, its own split. b is chosen by dev MAP, the rate by training loss, LSI's share by training ranking loss.
The paper (Table 5, k = 10, MAP): UᵀV + I .229, UᵀU + I .214, αLSI + (1 − α)TFIDF .089, TFIDF .083. In the rows with
b1 the weight b of the identity is 1, as there. BM25 and popularity (TFIDF + c · log(1 + times right in training)) are
rows that the paper lacks.

    JAXSIM_DATA=/path/to/corpora python experiments/bai2010_queries.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/bai2010_queries.py --preset quick --out /tmp/quick

Measured times stand in the records. Rows that have their record are skipped unless --again.
"""

from __future__ import annotations

import functools

import jax
import numpy as np

from experiments.queries_tables import EXPERIMENT, FULL, QUICK, WORDS, Table, graded, keywords
from experiments.ssi_sheets import Plan, best_of, learned, main, score, search
from jaxsim import sparse
from jaxsim.evaluate import metrics
from jaxsim.methods import lsa, projections, ssi
from jaxsim.methods.ssi import triples
from jaxsim.sparse import unit

ORDER = {
    "ssi-asym": ("ssi-sym", "popularity", "bm25", "lsi+tfidf", "tfidf"),
    "ssi-sym": ("lsi+tfidf", "tfidf"), "lsi+tfidf": ("tfidf",),
    "ssi-asym-b1": ("ssi-sym-b1", "lsi+tfidf", "tfidf"), "ssi-sym-b1": ("lsi+tfidf", "tfidf"),
}


def fit_tfidf(table: Table) -> None:
    """Cosine of tf · log(N / df)."""
    best, tried = best_of(table, [{}], lambda _, part: part.exact)
    score(table, "tfidf", lambda part: part.exact, config=best, dev=tried[0])


def fit_bm25(table: Table) -> None:
    """BM25 at k1 = 1.2, b = 0.75."""
    def scorer(part):
        return table.bm25[next(name for name, one in table.parts.items() if one is part)]

    _, tried = best_of(table, [{}], lambda _, part: scorer(part))
    score(table, "bm25", scorer, config={"k1": 1.2, "b": 0.75}, dev=tried[0])


def fit_popularity(table: Table) -> None:
    """TFIDF + c · log(1 + times right in training): how much of a gain is that alone."""
    boost = np.log1p(table.popular).astype(np.float32)
    best, tried = best_of(table, [{"c": c} for c in table.settings.boosts],
                          lambda one, part: part.exact + one["c"] * boost)
    score(table, "popularity", lambda part: part.exact + best["c"] * boost, config=best, dev={"grid": tried})


def fit_lsi(table: Table) -> None:
    """α LSI + (1 − α) TFIDF; dimension and α by ranking loss on random training triples."""
    whole = lsa.fit(table.right, k=max(table.settings.ks)).params
    drawn = triples.table(table.links, table.left.num_docs, table.right.num_docs, known=table.known)
    query, better, worse = map(np.asarray, triples.draw(jax.random.key(0), drawn, table.settings.pairs))
    left, right = sparse.to_scipy(table.left), sparse.to_scipy(table.right)
    exact = [np.asarray(left[query].multiply(right[rows]).sum(axis=1)).ravel() for rows in (better, worse)]

    def latent(weights, matrix):
        return np.asarray(unit(matrix @ weights))

    tried = []
    for k in table.settings.ks:
        weights = np.asarray(projections.truncate(whole, k).weights)
        sides = latent(weights, left), latent(weights, right)
        near = [np.sum(sides[0][query] * sides[1][rows], axis=1) for rows in (better, worse)]
        tried += [{"k": k, "alpha": share, "train_rank_loss": float(metrics.rank_loss(
            *((1 - share) * one + share * other for one, other in zip(exact, near, strict=True))))}
            for share in table.settings.shares]
    best = min(tried, key=lambda one: one["train_rank_loss"])
    weights = np.asarray(projections.truncate(whole, best["k"]).weights)
    documents, share = latent(weights, right), best["alpha"]

    def scorer(part):
        return (1 - share) * part.exact + share * latent(weights, part.queries) @ documents.T

    _, dev = best_of(table, [{}], lambda _, part: scorer(part))
    score(table, "lsi+tfidf", scorer, config={"k": best["k"], "alpha": share}, dev={"grid": tried, **dev[0]})


def low_rank(row: str, *, symmetric: bool, identities=None):
    """Fills a row of low rank; without ``identities``, the preset's grid of b."""
    def fill(table: Table) -> None:
        settings = table.settings

        def fit(*, seed, **options):
            return ssi.fit(table.left, table.right, table.links, k=settings.k, key=jax.random.key(seed),
                           symmetric=symmetric, known=table.known, triples=settings.triples, products=table.products,
                           patience=settings.patience if options["validate"] else None, **options)

        search(table, row, fit, [{"identity": b} for b in identities or settings.identities],
               functools.partial(learned, documents=table.cut), rates=settings.rates,
               told={"k": settings.k, "symmetric": symmetric, "draws": settings.draws})

    return fill


ROWS = {
    "tfidf": fit_tfidf, "bm25": fit_bm25, "lsi+tfidf": fit_lsi, "popularity": fit_popularity,
    "ssi-sym": low_rank("ssi-sym", symmetric=True), "ssi-asym": low_rank("ssi-asym", symmetric=False),
}
LITERAL = {"ssi-sym-b1": low_rank("ssi-sym-b1", symmetric=True, identities=(1.0,)),
           "ssi-asym-b1": low_rank("ssi-asym-b1", symmetric=False, identities=(1.0,))}
PLANS = {name: Plan(functools.partial(keywords, name), {**ROWS, **LITERAL} if name == "k10" else ROWS, ORDER)
         for name in WORDS}
PLANS["nfcorpus"] = Plan(functools.partial(graded, "nfcorpus"), ROWS, ORDER)

if __name__ == "__main__":
    main(__doc__, EXPERIMENT, PLANS, quick=QUICK, full=FULL, of_quick=("k10", "nfcorpus"))
