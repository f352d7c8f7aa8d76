"""Supervised Semantic Indexing on links: 003 (Bai et al. 2010), Tables 1 to 4, on Wikispeedia; and other collections.

Every article that links to others is a query against the whole collection; right are the articles it links to. Table 1
splits the links (65 / 5 / 30%; training links leave the list), Table 3 the documents (60 / 10 / 30%, near-duplicates
together, links inside a part). Settings are chosen by dev MAP, the rates by training loss, LSI's share by training
ranking loss. The paper (Table 1, MAP): UᵀV + I .517, UᵀU + I .506, D .355, αLSI + (1 − α)TFIDF .346, TFIDF .329.
`training-links`: some rows of Table 1 from 5,000, 20,000 and all training links. `mdn` and `cacm`: its main rows on
MDN's English pages and on citations; their statuses say whether the order of rows on Wikispeedia holds there.

    JAXSIM_DATA=/path/to/corpora python experiments/bai2010_links.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/bai2010_links.py --preset quick --out /tmp/quick

Time: quick under a minute on two cores, on 250 articles; of full, see the records. Fits go on where they stopped, and
rows that have their record are skipped unless --again.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.kit.places import add_out, records_folder
from experiments.links_beyond import BEYOND, CURVES
from experiments.links_fits import chosen, rate, trained
from experiments.links_rows import ALL_WORDS, DIMENSIONS, LIMITED
from experiments.links_settings import CURVE, EXPERIMENT, FULL_OF, OTHERS
from experiments.links_tables import FULL, QUICK, SHARES, Collection, Table, judge, say, tokenized
from jaxsim import sparse
from jaxsim.data import MissingCorpus
from jaxsim.evaluate import metrics
from jaxsim.methods import lsa, projections, ssi, ssi_diag
from jaxsim.methods.ssi import triples
from jaxsim.sparse import Vectors, unit

ROOT = Path(__file__).resolve().parent


def both(vectors: Vectors) -> tuple[Vectors, Vectors]:
    """One encoding for queries and documents."""
    return vectors, vectors


def fit_tfidf(table: Table) -> None:
    """Cosine of tf · log(N / df)."""
    def encode(part):
        return both(Vectors(sparse=part.tfidf()))

    table.record("tfidf", [encode], config={}, dev=table.dev(encode))


def fit_log_tfidf(table: Table) -> None:
    """Cosine of log2(tf + 1) · log2(n / df)."""
    def encode(part):
        return both(Vectors(sparse=part.log_tfidf()))

    table.record("log-tfidf", [encode], config={}, dev=table.dev(encode))


def latent(params, part: Collection, share: float | None = None) -> tuple[Vectors, Vectors]:
    """Cosine of LSI, or ``share`` times it plus the rest times the cosine of TFIDF."""
    dense = unit(projections.encode(params, part.tfidf()).dense)
    if share is None:
        return both(Vectors(dense))
    rest = sparse.weigh(part.tfidf(), jnp.full(part.tfidf().num_terms, 1 - share, dense.dtype))
    return Vectors(share * dense, rest), Vectors(dense, part.tfidf())


def best_lsa(table: Table) -> tuple[object, list[dict], float]:
    """LSI at the dimension that dev prefers, dev scores of all, seconds."""
    begun = time.perf_counter()
    most = table.once("lsa", lambda: lsa.fit(table.parts["train"].tfidf(), k=max(table.settings.ks)).params)
    seconds = time.perf_counter() - begun
    curve = []
    for k in table.settings.ks:
        params = projections.truncate(most, k)
        curve.append({"k": k, **table.dev(lambda part, params=params: latent(params, part)), "split": "dev"})
    best = max(curve, key=lambda point: point["map"])
    return projections.truncate(most, best["k"]), curve, seconds


def fit_lsa(table: Table) -> None:
    """LSI."""
    params, curve, seconds = best_lsa(table)
    best = max(curve, key=lambda point: point["map"])
    table.record("lsa", [lambda part: latent(params, part)], config={"k": best["k"]}, dev={"map": best["map"]},
                 curve=curve, seconds=seconds)


def fit_lsi_tfidf(table: Table) -> None:
    """α LSI + (1 − α) TFIDF, α by ranking loss on random training triples."""
    params, curve, seconds = best_lsa(table)
    part = table.parts["train"]
    size = part.rows.size
    drawn = triples.table(table.links, size, size, known=part.own())
    query, better, worse = map(np.asarray, triples.draw(jax.random.key(0), drawn, table.settings.pairs))
    exactly, dense = sparse.to_scipy(part.tfidf()), np.asarray(latent(params, part)[0].dense)

    def scores(documents):
        exact = np.asarray(exactly[query].multiply(exactly[documents]).sum(axis=1)).ravel()
        return exact, np.sum(dense[query] * dense[documents], axis=1)

    right, wrong = scores(better), scores(worse)
    tried = [{"share": share, "train_rank_loss": float(metrics.rank_loss(
        *((1 - share) * exact + share * near for exact, near in (right, wrong))))}
        for share in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5)]
    share = min(tried, key=lambda one: one["train_rank_loss"])["share"]

    def encode(part):
        return latent(params, part, share)

    table.record("lsi+tfidf", [encode], config={"k": params.weights.shape[1], "alpha": share},
                 dev={"grid": tried, **table.dev(encode)}, seconds=seconds)


def fit_popularity(table: Table) -> None:
    """TFIDF + c · log(1 + links to the target in training): how much of a gain is that alone."""
    if table.name == "table3":
        return say("table3: popularity is not there: no training link leads to a test document")
    count = np.bincount(table.links[:, 1], minlength=table.parts["train"].rows.size)

    def encode(boost, part):
        sides = np.ones(count.size), boost * np.log1p(count)
        return tuple(Vectors(jnp.asarray(side[:, None], jnp.float32), part.tfidf()) for side in sides)

    tried = [{"c": c, "map": table.dev(lambda part, c=c: encode(c, part))["map"]} for c in table.settings.boosts]
    best = max(tried, key=lambda one: one["map"])
    table.record("popularity", [lambda part: encode(best["c"], part)], config={"c": best["c"]},
                 dev={"grid": tried, "map": best["map"]})


def fit_titles(table: Table) -> None:
    """Share of the title's words, weighted by idf, that the query's text has."""
    def encode(part):
        idf = np.log(part.num_docs / np.maximum(part.df, 1))
        weighed = (part.titles > 0).multiply(idf).tocsr()
        total = np.asarray(weighed.sum(axis=1)).ravel()
        scale = np.divide(1.0, total, out=np.zeros(total.size), where=total > 0)
        titles = (scipy.sparse.diags_array(scale) @ weighed).tocsr().astype(np.float32)
        return tuple(Vectors(sparse=sparse.from_scipy(side)) for side in ((part.counts > 0).astype(np.float32), titles))

    table.record("title-overlap", [encode], config={}, dev=table.dev(encode))


def low_rank(row: str, *, symmetric: bool = False, identities=None):
    """Fills a row of low rank; without ``identities``, the preset's grid of b."""
    def fill(table: Table) -> None:
        grid = table.settings.identities if identities is None else identities
        learning_rate = rate(table, row, identity=grid[(len(grid) - 1) // 2], symmetric=symmetric)
        chosen(table, row, ssi.fit, [{"identity": b} for b in grid], ["identity"], k=table.settings.k,
               symmetric=symmetric, learning_rate=learning_rate)

    return fill


def diagonals(table: Table) -> list[dict]:
    """Starts and rates of the diagonal."""
    return [{"identity": b, "learning_rate": rate} for b in table.settings.starts for rate in table.settings.diag_rates]


def fit_diag(table: Table) -> None:
    """W = D."""
    chosen(table, "ssi-diag", ssi_diag.fit, diagonals(table), ["identity", "learning_rate"])


def fit_asym_d(table: Table) -> None:
    """W = UᵀV + D, D learned first (the best of `ssi-diag` on dev) and then kept."""
    def score(found):
        return max(entry["validation"] for entry in found.history)

    fits = [trained(table, "ssi-diag", ssi_diag.fit, 0, max_iter=table.settings.diag_iter, **option)
            for option in diagonals(table)]
    diagonal = max(fits, key=score).params[0].scale
    chosen(table, "ssi-asym-d", ssi.fit, [{"identity": diagonal, "learning_rate": value}
                                          for value in table.settings.rates], ["learning_rate"], k=table.settings.k)


ROWS = {
    "tfidf": fit_tfidf, "log-tfidf": fit_log_tfidf, "lsa": fit_lsa, "lsi+tfidf": fit_lsi_tfidf,
    "popularity": fit_popularity, "title-overlap": fit_titles, "ssi-diag": fit_diag,
    "ssi-sym": low_rank("ssi-sym", symmetric=True), "ssi-asym": low_rank("ssi-asym"),
    "ssi-sym-b1": low_rank("ssi-sym-b1", symmetric=True, identities=(1.0,)),
    "ssi-asym-b1": low_rank("ssi-asym-b1", identities=(1.0,)),
    "ssi-asym-no-i": low_rank("ssi-asym-no-i", identities=(None,)), "ssi-asym-d": fit_asym_d,
}
MAIN = ("tfidf", "lsa", "lsi+tfidf", "popularity", "ssi-diag", "ssi-sym", "ssi-asym")
BASELINES = ("tfidf", "popularity", "lsi+tfidf")
OF_TABLE = {"table1": {**ROWS, **LIMITED, **BEYOND}, "table3": ROWS, "table4": DIMENSIONS,
            "table2": {**{row: ROWS[row] for row in BASELINES}, **ALL_WORDS}, CURVE: CURVES,
            **dict.fromkeys(OTHERS, {row: ROWS[row] for row in MAIN})}
EVERY = tuple(dict.fromkeys(row for rows in OF_TABLE.values() for row in rows))


def main() -> None:
    """Fills the tables asked for, row by row."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=tuple(SHARES), metavar="TABLE",
                        help="of table1 (links split), table3 (documents split), table4 (dimensions), table2 (all "
                        "words), training-links, mdn, cacm; quick: table1 and table3 unless given, full: all")
    parser.add_argument("--rows", nargs="+", choices=EVERY, default=EVERY, metavar="ROW",
                        help=f"of {', '.join(EVERY)}; all that a table has unless given")
    add_out(parser)
    parser.add_argument("--cache", type=Path, default=ROOT.parent / "runs" / "links", help="folder of fits")
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more")
    parser.add_argument("--judge", action="store_true", help="fit nothing: only mark best sets and statuses again")
    given = parser.parse_args()
    quick = given.preset == "quick"
    if quick and not os.environ.get("JAXSIM_DATA"):
        print("bai2010_links: JAXSIM_DATA names no folder with the corpus 'wikispeedia', so nothing was run")
        return
    out = records_folder(parser, given.out, quick=quick)
    cache, read = out / "cache" if quick else given.cache, functools.cache(tokenized)
    for name in given.tables or (("table1", "table3") if quick else tuple(SHARES)):
        settings = QUICK if quick else FULL_OF.get(name, FULL)
        wanted = [row for row in OF_TABLE[name] if row in given.rows
                  and (given.again or not (out / EXPERIMENT / name / f"{row}.json").exists())]
        if wanted and not given.judge:
            try:
                data = read(settings.limit, name if name in OTHERS else "table1")
            except MissingCorpus as error:
                parser.exit(2, f"{parser.prog}: {error}\n")
            table = Table(name, settings, out, cache, publish=not quick, data=data)
            for row in wanted:
                OF_TABLE[name][row](table)
        judge(out, name, publish=not quick)
        if name == CURVE:  # of which statuses of Table 1 tell
            judge(out, "table1", publish=not quick)
    print(out)


if __name__ == "__main__":
    main()
