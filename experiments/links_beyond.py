"""Rows of `bai2010_links` beyond the paper: Adagrad, negatives of a batch, and curves over training links."""

from __future__ import annotations

import copy
import dataclasses
import shutil
import time
from collections.abc import Callable

import numpy as np

from experiments.kit import records
from experiments.links_fits import chosen, rate, trained
from experiments.links_rows import tuned
from experiments.links_settings import EXPERIMENT
from experiments.links_tables import Scored, Table, say
from jaxsim.methods import ssi, ssi_batch, ssi_diag


def one_seed(table: Table, **changes) -> Table:
    """The same table, with its splits and what it has computed, for one seed."""
    narrow = copy.copy(table)
    narrow.settings = dataclasses.replace(table.settings, seeds=(0,), **changes)
    return narrow


def fit_adagrad(table: Table) -> None:
    """`ssi-asym` by Adagrad at the b of that row, the rate by training loss; one seed."""
    fill(table, "ssi-asym-adagrad", ssi.fit, table.settings.adagrad_rates, adagrad=table.settings.adagrad)


def fit_in_batch(table: Table) -> None:
    """`ssi-asym` from batches of links, each the negatives of the others, at the b of that row; one seed."""
    fill(table, "ssi-asym-in-batch", ssi_batch.fit, table.settings.batch_rates, batch=table.settings.batch)


def fill(table: Table, row: str, fit: Callable, rates, **fixed) -> None:
    """A row at the tuned b whose rate has the lowest training loss."""
    narrow, b = one_seed(table), tuned(table, "ssi-asym")["identity"]
    best = rate(narrow, row, fit=fit, rates=rates, identity=b, **fixed)
    chosen(narrow, row, fit, [{"identity": b}], ["identity"], k=table.settings.k, learning_rate=best, **fixed)


def sizes(table: Table) -> list[int]:
    """Numbers of training links: the preset's below all, and all."""
    return [*(size for size in table.settings.sizes if size < len(table.links)), len(table.links)]


def fewer(table: Table, number: int) -> Table:
    """A table of which only some training links are told, those of a smaller table among them; lists stay the same.

    Epochs are shorter by the root of the share, between as many triples and as many passes over the links.
    """
    share = number / len(table.links)
    narrow = one_seed(table, triples=max(1, round(table.settings.triples * share**0.5)))
    narrow.links = table.links[np.sort(np.random.default_rng(0).permutation(len(table.links))[:number])]
    return narrow


def curved(row: str, make: Callable):
    """A row of a learning curve.

    Args:
      row: its name.
      make: function of a table, a name for fits and whether all links are told, giving a model, its settings, and its
        fit or None.
    """
    def run(table: Table) -> None:
        begun, curve, more = time.perf_counter(), [], {}
        for number in sizes(table):
            narrow = fewer(table, number)
            model, config, fit = make(narrow, f"{row}-{number}", number == len(table.links))
            values = table.per_query("test", model)
            dev = table.dev(model)["map"]
            curve.append({"links": number, **config, "dev_map": dev, "split": "test",
                          **{name: float(value.mean()) for name, value in values.items()}})
            more |= {} if number == len(table.links) else {f"map@{number}": values["map"]}
            say(f"{table.name}: {row} {curve[-1]}")
        table.record(row, [model], config=config, dev={"map": dev}, curve=curve, fit=fit, more=more,
                     seconds=time.perf_counter() - begun, seeds=() if fit is None else (0,))
        for folder in (one for number in sizes(table) for one in table.cache.glob(f"{table.name}-{row}-{number}-*")):
            shutil.rmtree(folder)

    return run


def plain(table: Table, name: str, whole: bool):
    """TFIDF, whatever the links."""
    return Scored(table.exact), {}, None


def popular(table: Table, name: str, whole: bool):
    """TFIDF + c · log(1 + links to the target among those told), c by dev MAP."""
    boost = np.log1p(np.bincount(table.links[:, 1], minlength=table.parts["train"].rows.size)).astype(np.float32)
    models = {c: Scored(lambda part, c=c: table.exact(part) + np.float32(c) * boost) for c in table.settings.boosts}
    best = max(models, key=lambda c: table.dev(models[c])["map"])
    return models[best], {"c": best}, None


def diagonal(table: Table, name: str, whole: bool):
    """W = D, from the start and at the rate that Table 1 has chosen."""
    path = table.out / EXPERIMENT / "table1" / "ssi-diag.json"
    told = records.read(path)["config"] if path.exists() else {"identity": table.settings.starts[-1],
                                                              "learning_rate": table.settings.diag_rates[-1]}
    config = {key: told[key] for key in ("identity", "learning_rate")}
    found = trained(table, name, ssi_diag.fit, 0, max_iter=table.settings.diag_iter, **config)
    return found.params, config, found


def low_rank(row: str, identity: float | None = None):
    """W = UᵀV + b·I, b by dev MAP (with all links as Table 1 has chosen) unless given, at the rate of Table 1."""
    def make(table: Table, name: str, whole: bool):
        told = tuned(table, row)
        grid = (told["identity"],) if whole else table.settings.identities
        fits = {}
        for b in grid if identity is None else (identity,):
            fits[b] = trained(table, name, ssi.fit, 0, max_iter=table.settings.max_iter, k=table.settings.k, identity=b,
                              learning_rate=told["learning_rate"])
        best = max(fits, key=lambda b: max(entry["validation"] for entry in fits[b].history))
        return fits[best].params, {"identity": best, "learning_rate": told["learning_rate"]}, fits[best]

    return make


BEYOND = {"ssi-asym-adagrad": fit_adagrad, "ssi-asym-in-batch": fit_in_batch}
CURVES = {
    "tfidf": curved("tfidf", plain), "popularity": curved("popularity", popular),
    "ssi-diag": curved("ssi-diag", diagonal),
    "ssi-asym-b1": curved("ssi-asym-b1", low_rank("ssi-asym-b1", 1.0)),
    "ssi-asym": curved("ssi-asym", low_rank("ssi-asym")),
}
