"""Mate retrieval with closed forms: 002 (Platt, Toutanova, Yih 2010), Tables 1 and 2, Figures 3 and 4, on free corpora.

Each document of one language is a query against all documents of the other. The table has accuracy and mean reciprocal
rank (MRR) of its mate (its translation, or the page about the same thing), averaged over both directions; a tie is an
error. Dimension, noise and ridge are chosen by the MRR of development pairs, and test pairs are used once.

Expected (002, MRR on Wikipedia EN-ES / Europarl EN-ES): OPCA .7734 / .9806, CCA .7378 / .9705, CL-LSI .6130 / .9595,
untranslated (the row `log-tfidf`) .5383 / .2564.

Tables, by what stands in for the paper's corpora. In place of Wikipedia: `en-es-human`, documentation that people
translated; `en-es`, three quarters of it machine translated; `en-fr` and `en-ja`, other languages; `en-es-unseen`,
tested on sources (web sites) that are not trained on; `docstrings`, summaries and bodies of Python docstrings, one
language. In place of Europarl EN-ES: `en-it-speeches`, and `en-it-lines`, tested on single lines.

    JAXSIM_DATA=/path/to/corpora python -m experiments.mates.platt2010 --preset full
    python -m experiments.mates.platt2010 --preset quick --out /tmp/quick
    python -m experiments.mates.platt2010 --preset paper --release /path/to/europarl/txt

Time: quick under a minute on two cores; full about forty minutes on one core for all tables. `paper` reads the official
Europarl release (EN-ES, the paper's own years); nobody has run it here, for want of the release.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from experiments import kit
from experiments.corpora import mates as corpora
from experiments.mates import word_by_word
from jaxsim import sparse
from jaxsim.evaluate import mates
from jaxsim.methods import cca, cl_lsi, cr5, dda, opca, projections
from jaxsim.sparse import Vectors


@dataclass(frozen=True)
class Settings:
    """What a preset fixes. Where a field has several values, development pairs choose one.

    Attributes:
      ks: Dimensions. A closed form orders them by weight, so the first k of its largest fit are its fit with k.
      grid_k: Dimension at which noise and ridge are chosen.
      noises: OPCA's, for documents of unit length.
      ridges: CCA's, for documents of unit length.
      cr5_ridges: Cr5's, for documents of unit length.
      paper_noise: OPCA's in the paper, for documents of their own lengths; one more option beside `noises`.
      paper_ridge: CCA's in the paper, likewise.
      dda_k: Dimension of DDA (OPCA in two stages).
      limit: Pairs of the corpus, an even sample; None for all.
    """

    ks: tuple[int, ...] = (50, 100, 200, 300, 500, 1000)
    grid_k: int = 200
    noises: tuple[float, ...] = (1e-4, 1e-3)
    ridges: tuple[float, ...] = (1e-4, 1e-3)
    cr5_ridges: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0, 3.0)
    paper_noise: float = 0.1
    paper_ridge: float = 3.0
    dda_k: int = 300
    limit: int | None = None


QUICK = Settings(ks=(20, 50), grid_k=20, cr5_ridges=(0.3, 1.0), limit=600)
FULL = Settings()
UP_TO_500 = replace(FULL, ks=(50, 100, 200, 300, 500))  # large tables, and variants of other tables


def load(name: str, settings: Settings, release: str | None = None) -> kit.Data:
    """The pairs of a table, split so that near-duplicates stay together, as counts over one vocabulary.

    Rows see what `corpora.load` returns as ``table.data``: ``task`` has the parts train, dev and test; ``naive()``
    makes the task of a split that lets near-duplicates cross, and is None where the table has no such split.
    """
    corpus = corpora.load(name, settings.limit, release=release)
    printed = {"en-es": "002 Table 2", "en-es-human": "002 Table 2", "en-it-speeches": "002 Table 1",
               "paper": "002 Table 1"}
    return kit.Data(corpus, name=corpus.pairs.name, sha256=corpus.pairs.sha256, differs=corpora.DIFFERS[name],
                    counts={**corpus.pairs.counts, "split": corpus.sizes}, groups=corpus.task.groups,
                    paper=printed.get(name, "002"))


# The kit in short: `table.fit(opca)` is `opca.fit` with a cache; `table.once` keeps a value for all rows of a table;
# `kit.choose` scores every option: `best` is the winner, `score` its score, `tried` all options with their scores.


def weighted(table: kit.Table, split: str, unit_length: bool = True):
    """Both sides' log2(tf + 1) · log2(n / df) vectors (Eq. 8), made once a table.

    At unit length all documents count alike in a fit. Cosines of encoded documents do not depend on it.
    """
    return table.once((split, unit_length), lambda: table.data.task.weighted(split, unit_length=unit_length))


def dimensions(table: kit.Table) -> list[int]:
    """The dimensions that the table is large enough for."""
    most = min(table.data.sizes["train"], len(table.data.task.vocabulary))
    return [k for k in table.settings.ks if k < most]


def dev_mrr(table: kit.Table, params, unit_length: bool = True) -> float:
    """Mean reciprocal rank on development pairs."""
    return mates.scores(*mates.encode(params, weighted(table, "dev", unit_length)))["mrr"]


def tested(table: kit.Table, left: Vectors, right: Vectors) -> dict:
    """Test values of every query, and means inside each source (web site or package) of the documents."""
    return {"per_query": mates.per_query(left, right),
            "by_group": mates.by_source(left, right, table.data.task.sources["test"])}


def best_dimension(table: kit.Table, params, unit_length: bool = True) -> kit.Choice:
    """The dimension with the best development MRR, all taken from one fit of the largest; ``tried`` is its curve."""
    return kit.choose([{"k": k} for k in dimensions(table)],
                      lambda k: dev_mrr(table, projections.truncate(params, k), unit_length), by="mrr", split="dev")


def raw_counts(table: kit.Table) -> kit.Row:
    """Untranslated, raw counts (in the text of §3.2): cosines see only terms that both languages share. No setting."""
    dev, test = ([Vectors(sparse=sparse.from_scipy(side)) for side in table.data.task.counts[split]]
                 for split in ("dev", "test"))
    return kit.Row({}, **tested(table, *test), dev={"mrr": mates.scores(*dev)["mrr"]})


def log_tf_idf(table: kit.Table) -> kit.Row:
    """Untranslated, log2(tf + 1) · log2(n / df), the paper's baseline. No setting."""
    dev, test = ([Vectors(sparse=side) for side in weighted(table, split)] for split in ("dev", "test"))
    return kit.Row({}, **tested(table, *test), dev={"mrr": mates.scores(*dev)["mrr"]})


def fit_cl_lsi(table: kit.Table) -> kit.Row:
    """CL-LSI (§2.1): LSA of the summed counts of a document and its mate, weighted after the sum.

    Chosen first: unit length or not, at `grid_k`; then the dimension.
    """
    train = [sparse.from_scipy(side) for side in table.data.task.counts["train"]]
    ks = dimensions(table)
    grid = [{"k": min(table.settings.grid_k, max(ks)), "unit_length": unit_length} for unit_length in (True, False)]
    choice = kit.choose(grid, lambda **option: dev_mrr(table, table.fit(cl_lsi)(train, **option).params), by="dev")
    fit = table.fit(cl_lsi)(train, k=max(ks), unit_length=choice.best["unit_length"])
    size = best_dimension(table, fit.params)
    encoded = mates.encode(projections.truncate(fit.params, size.best["k"]), weighted(table, "test"))
    return kit.Row({**choice.best, **size.best}, **tested(table, *encoded), curve=size.tried,
                   dev={"grid": choice.tried, "mrr": size.score})


def choose_noise(table: kit.Table) -> kit.Choice:
    """The noise with the best development MRR at `grid_k`: on documents of unit length, or the paper's on others."""
    k = min(table.settings.grid_k, max(dimensions(table)))
    grid = [{"k": k, "noise": noise, "unit_length": True} for noise in table.settings.noises]
    grid.append({"k": k, "noise": table.settings.paper_noise, "unit_length": False})

    def score(k, noise, unit_length):
        fit = table.fit(opca)(weighted(table, "train", unit_length), k=k, noise=noise)
        return dev_mrr(table, fit.params, unit_length)

    return kit.choose(grid, score, by="dev")


def fit_opca(table: kit.Table) -> kit.Row:
    """Oriented PCA (§2.2). Chosen first: the noise; then the dimension.

    Fitted and tested again with these settings on the naive split of the corpus, where near-duplicates cross.
    """
    choice = choose_noise(table)
    noise, unit_length = choice.best["noise"], choice.best["unit_length"]
    fit = table.fit(opca)(weighted(table, "train", unit_length), k=max(dimensions(table)), noise=noise)
    size = best_dimension(table, fit.params, unit_length)
    k = size.best["k"]
    encoded = mates.encode(projections.truncate(fit.params, k), weighted(table, "test", unit_length))
    naive = None
    if table.data.naive is not None:
        task = table.data.naive()
        other = table.fit(opca)(task.weighted("train", unit_length=unit_length), k=k, noise=noise)
        naive = mates.scores(*mates.encode(other.params, task.weighted("test", unit_length=unit_length)))
    return kit.Row({**choice.best, "k": k}, **tested(table, *encoded), curve=size.tried, naive=naive,
                   dev={"grid": choice.tried, "mrr": size.score})


def fit_cca(table: kit.Table) -> kit.Row:
    """Canonical correlation analysis, one projection a language (§2.3). Chosen as for OPCA, a ridge for the noise."""
    k = min(table.settings.grid_k, max(dimensions(table)))
    grid = [{"k": k, "ridge": ridge, "unit_length": True} for ridge in table.settings.ridges]
    grid.append({"k": k, "ridge": table.settings.paper_ridge, "unit_length": False})

    def fit(k, ridge, unit_length):
        return table.fit(cca)(*weighted(table, "train", unit_length), k=k, ridge=ridge)

    choice = kit.choose(grid, lambda **option: dev_mrr(table, fit(**option).params, option["unit_length"]), by="dev")
    terms = min(int(np.unique(side.indices).size) for side in table.data.task.counts["train"])  # bounds the rank
    unit_length = choice.best["unit_length"]
    params = fit(**{**choice.best, "k": min(max(dimensions(table)), terms)}).params
    size = best_dimension(table, params, unit_length)
    encoded = mates.encode(projections.truncate(params, size.best["k"]), weighted(table, "test", unit_length))
    return kit.Row({**choice.best, **size.best}, **tested(table, *encoded), curve=size.tried,
                   dev={"grid": choice.tried, "mrr": size.score})


def fit_cr5(table: kit.Table) -> kit.Row:
    """Reduced-rank ridge regression, one projection a language (arXiv 1904.03922): a linear rival that 002 lacks.

    Chosen: the ridge at `grid_k`, then the dimension. No claim.
    """
    train, k = weighted(table, "train"), min(table.settings.grid_k, max(dimensions(table)))
    choice = kit.choose([{"k": k, "ridge": ridge} for ridge in table.settings.cr5_ridges],
                        lambda **option: dev_mrr(table, table.fit(cr5)(train, **option).params), by="dev")
    ridge = choice.best["ridge"]
    size = kit.choose([{"k": k} for k in dimensions(table)],  # its dimensions are not ordered, so each has a fit
                      lambda k: dev_mrr(table, table.fit(cr5)(train, k=k, ridge=ridge).params), by="mrr", split="dev")
    fit = table.fit(cr5)(train, ridge=ridge, **size.best)
    return kit.Row({**choice.best, **size.best}, **tested(table, *mates.encode(fit.params, weighted(table, "test"))),
                   curve=size.tried, dev={"grid": choice.tried, "mrr": size.score})


def fit_dda(table: kit.Table) -> kit.Row:
    """DDA (§4): OPCA of 4 blocks of terms, then of the results. OPCA's noise, dimension `dda_k`. No claim."""
    best = choose_noise(table).best
    config = {**best, "k": min(table.settings.dda_k, max(dimensions(table))), "num_blocks": 4}
    fit = table.fit(dda)(weighted(table, "train", best["unit_length"]), k=config["k"], noise=best["noise"],
                         num_blocks=config["num_blocks"])
    encoded = mates.encode(fit.params, weighted(table, "test", best["unit_length"]))
    return kit.Row(config, **tested(table, *encoded), dev={"mrr": dev_mrr(table, fit.params, best["unit_length"])})


ROWS = {"tf": raw_counts, "log-tfidf": log_tf_idf, "cl-lsi": fit_cl_lsi, "opca": fit_opca, "cca": fit_cca,
        "cr5": fit_cr5, "dda": fit_dda, **word_by_word.ROWS}
SETTINGS = {
    "docstrings": FULL,
    "en-es-human": FULL,
    "en-it-speeches": UP_TO_500,
    "en-it-lines": replace(FULL, ks=(100, 300)),
    "en-fr": UP_TO_500,
    "en-ja": UP_TO_500,
    "en-es": replace(UP_TO_500, grid_k=100),
    "en-es-unseen": replace(FULL, ks=(50, 100, 200), grid_k=100),
}
# The preset `quick` fills only `docstrings`, which needs no corpus, unless `--tables` names others.
TABLES = {name: kit.Plan(ROWS, {"quick": QUICK, "full": settings}, on_request=("quick",) * (name != "docstrings"))
          for name, settings in SETTINGS.items()}
TABLES["paper"] = kit.Plan(ROWS, {"paper": FULL})

IN_PLACE_OF_WIKIPEDIA = ("en-es-human", "en-es", "en-fr", "en-ja", "en-es-unseen", "docstrings")
IN_PLACE_OF_EUROPARL = ("en-it-speeches", "en-it-lines")


def above(better: str, worse: str, wikipedia: tuple[float, float], europarl: tuple[float, float]) -> list[kit.Claim]:
    """That one row has a higher MRR than another, in Table 2 (Wikipedia) and in Table 1 (Europarl).

    The paper tests accuracy by an unpaired t test at 5 %. Rows are also compared at equal dimension k.
    """
    return [kit.Claim(f"002-{better}-{worse}-{data}", sentence=f"{better} finds more mates than {worse}, {data}",
                      place=f"002 §3, {place}", tables=tables, better=better, worse=worse, metric="mrr",
                      printed=dict(zip((better, worse), printed, strict=True)), test="unpaired t",
                      metric_of_test="accuracy", alpha=0.05, equal=("k",))
            for data, place, tables, printed in (("Wikipedia", "Table 2", IN_PLACE_OF_WIKIPEDIA, wikipedia),
                                                 ("Europarl", "Table 1", IN_PLACE_OF_EUROPARL, europarl))]


CLAIMS = [  # printed MRR of both rows, Wikipedia first
    *above("opca", "cca", (0.7734, 0.7378), (0.9806, 0.9705)),
    *above("cca", "cl-lsi", (0.7378, 0.6130), (0.9705, 0.9595)),
    *above("cl-lsi", "log-tfidf", (0.6130, 0.5383), (0.9595, 0.2564)),
    *above("opca", "wbw", (0.7734, 0.7467), (0.9806, 0.9779)),
    *above("opca", "wbw-lsa", (0.7734, 0.7236), (0.9806, 0.9778)),
]
EXPERIMENT = kit.Experiment("platt2010_mates", __doc__, load, TABLES, CLAIMS,
                            options={"release": "folder of the official Europarl release, for --preset paper"})

if __name__ == "__main__":
    kit.run(EXPERIMENT)
