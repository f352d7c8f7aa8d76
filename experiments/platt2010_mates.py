"""Mate retrieval with closed forms: 002 (Platt, Toutanova, Yih 2010), Tables 1 and 2, Figures 3 and 4, on free corpora.

Each document of one language is a query against all documents of the other; accuracy and mean reciprocal rank (MRR) of
its mate, both directions averaged, ties as errors. Dimension, noise and ridge are chosen on dev. The paper: OPCA .7734
MRR on Wikipedia EN-ES and .9806 on Europarl EN-ES, above CCA .7378 / .9705, CL-LSI .6130 / .9595, untranslated .5383 /
.2564.

    JAXSIM_DATA=/path/to/corpora python experiments/platt2010_mates.py --preset full
    python experiments/platt2010_mates.py --preset quick --out /tmp/quick
    python experiments/platt2010_mates.py --preset paper --release /path/to/europarl/txt

Time: quick under a minute on two cores. full: about forty minutes on one core for all tables.
`paper` reads the official Europarl release (EN-ES, the paper's own years); nobody has run it here, for want of the
release.
"""

from __future__ import annotations

import numpy as np

from experiments.mates_main import main
from experiments.mates_rows import Table, counts, judge
from jaxsim.evaluate import mates
from jaxsim.methods import cca, cl_lsi, dda, opca
from jaxsim.sparse import Vectors

EXPERIMENT = "platt2010_mates"
# Settings of the paper that are fitted beside the grids, on documents of their own lengths.
PAPER_NOISE, PAPER_RIDGE = 0.1, 3.0


def untranslated(table: Table, row: str, dev, test) -> None:
    """Cosine of the bare vectors: the two languages share some terms."""
    score = mates.scores(*(Vectors(sparse=side) for side in dev))["mrr"]
    table.record(row, [tuple(Vectors(sparse=side) for side in test)], config={}, dev={"mrr": score})


def raw_counts(table: Table) -> None:
    """Untranslated, raw counts (in the text of 002 §3.2)."""
    untranslated(table, "tf", counts(table, "dev"), counts(table, "test"))


def log_tf_idf(table: Table) -> None:
    """Untranslated, log2(tf + 1) · log2(n / df)."""
    untranslated(table, "log-tfidf", table.weighted("dev"), table.weighted("test"))


def fit_cl_lsi(table: Table) -> None:
    """LSA of summed pairs."""
    train = counts(table, "train")

    def fit(k, unit_length):
        return cl_lsi.fit(train, k=k, unit_length=unit_length)

    best, tried, _ = table.grid("cl-lsi", [{"unit_length": True}, {"unit_length": False}], fit, lambda option: True)
    found, seconds = table.fitted("cl-lsi", {**best, "k": max(table.ks)}, lambda: fit(max(table.ks), **best))
    table.sweep("cl-lsi", found.params, config=best, dev={"grid": tried}, seconds=seconds)


def opca_options(table: Table) -> list[dict]:
    """Noises to choose from: on documents of unit length, and the paper's on documents of their own lengths."""
    grid = [{"noise": noise, "unit_length": True} for noise in table.settings.noises]
    return [*grid, {"noise": PAPER_NOISE, "unit_length": False}]


def best_opca(table: Table):
    """OPCA at the largest dimension with the noise that dev prefers: ``(fit, option, tried, seconds)``."""
    def fit(k, noise, unit_length):
        return opca.fit(table.weighted("train", unit_length), k=k, noise=noise)

    best, tried, _ = table.grid("opca", opca_options(table), fit, lambda option: option["unit_length"])
    found, seconds = table.fitted("opca", {**best, "k": max(table.ks)}, lambda: fit(max(table.ks), **best))
    return found, best, tried, seconds


def fit_opca(table: Table) -> None:
    """Oriented PCA, and the same on the naive split of the corpus."""
    found, best, tried, seconds = best_opca(table)
    unit_length = best["unit_length"]

    def naive(k):
        task = table.corpus.naive()
        train = task.weighted("train", unit_length=unit_length)
        fit, _ = table.fitted("opca-naive", {**best, "k": k}, lambda: opca.fit(train, k=k, noise=best["noise"]))
        return mates.scores(*mates.encode(fit.params, task.weighted("test", unit_length=unit_length)))

    table.sweep("opca", found.params, config=best, dev={"grid": tried}, seconds=seconds, unit_length=unit_length,
                naive=naive if table.corpus.naive is not None else None)


def fit_cca(table: Table) -> None:
    """Canonical correlations, one projection a language."""
    def fit(k, ridge, unit_length):
        return cca.fit(*table.weighted("train", unit_length), k=k, ridge=ridge)

    options = [{"ridge": ridge, "unit_length": True} for ridge in table.settings.ridges]
    options.append({"ridge": PAPER_RIDGE, "unit_length": False})
    best, tried, _ = table.grid("cca", options, fit, lambda option: option["unit_length"])
    most = max(table.ks)
    used = min(int(np.unique(side.indices).size) for side in table.task.counts["train"])
    found, seconds = table.fitted("cca", {**best, "k": min(most, used)}, lambda: fit(min(most, used), **best))
    table.sweep("cca", found.params, config=best, dev={"grid": tried}, seconds=seconds, unit_length=best["unit_length"])


def fit_dda(table: Table) -> None:
    """OPCA in two stages, at one dimension."""
    _, best, _, _ = best_opca(table)
    k = min(300, max(table.ks))
    config = {**best, "k": k, "num_blocks": 4}
    found, seconds = table.fitted("dda", config, lambda: dda.fit(
        table.weighted("train", best["unit_length"]), k=k, noise=best["noise"], num_blocks=4))
    table.record("dda", [mates.encode(found.params, table.weighted("test", best["unit_length"]))], config=config,
                 dev={"mrr": table.dev(found.params, best["unit_length"])}, seconds=seconds)


ROWS = {"tf": raw_counts, "log-tfidf": log_tf_idf, "cl-lsi": fit_cl_lsi, "opca": fit_opca, "cca": fit_cca,
        "dda": fit_dda}


def finish(table: Table) -> None:
    """The paper's test: unpaired t with Bonferroni correction, p < .05."""
    judge(table, alpha=0.05)


if __name__ == "__main__":
    main(EXPERIMENT, __doc__, ROWS, finish)
