"""Fits of `bai2010_links`: checkpoints, the choice of settings on dev and of rates on training, seeds."""

from __future__ import annotations

import time

import jax
import numpy as np

from experiments.links_tables import MAX_TERMS, Table, say
from jaxsim.methods import ssi, ssi_batch, ssi_diag, ssi_full, ssi_sparse


def trained(table: Table, row: str, fit, seed: int, *, max_iter: int, low_rank=None, validate=None, **options):
    """A fit of one configuration, its checkpoint kept; ``low_rank``: documents of another vocabulary that it sees."""
    part, settings = table.parts["train"], table.settings
    shared = {}
    low = fit in (ssi.fit, ssi_batch.fit)
    if fit in (ssi_full.fit, ssi_sparse.fit) or (low and isinstance(options["identity"], float)):
        shared = {"products": table.shared()}
    told = {name: value if isinstance(value, int | float | str | None) else "given" for name, value in options.items()}
    seen = part.tfidf() if low_rank is None else low_rank
    return fit(seen, seen, table.links, key=jax.random.key(seed), known=part.own(),
               triples=settings.triples, max_iter=max_iter, validate=validate or table.validate,
               patience=settings.patience,
               checkpoint=table.checkpoint(row, {**told, "seed": seed, "max_iter": max_iter}), **shared, **options)


def chosen(table: Table, row: str, fit, options: list[dict], shown: list[str], **fixed) -> None:
    """The options with the best dev MAP on one seed, then all seeds, tested and recorded."""
    begun, max_iter = time.perf_counter(), table.settings.diag_iter if fit is ssi_diag.fit else table.settings.max_iter
    tried, best, first = [], options[0], None
    for option in options:
        found = trained(table, row, fit, 0, max_iter=max_iter, **option, **fixed)
        score = max(entry["validation"] for entry in found.history)
        if first is None or score > max(one["map"] for one in tried):
            best, first = option, found
        tried.append({**{name: option.get(name) for name in shown}, "map": score, "loss": found.history[-1]["loss"],
                      "split": "dev", "triples": int(found.history[-1]["evaluations"])})
        say(f"{table.name}: {row} {tried[-1]}")
    fits = [first if seed == 0 else
            trained(table, row, fit, seed, max_iter=max_iter, **best, **fixed)
            for seed in table.settings.seeds]
    dev = [max(entry["validation"] for entry in found.history) for found in fits]
    config = {name: value if isinstance(value, int | float | None) else "the diagonal of ssi-diag"
              for name, value in {**best, **fixed}.items()}
    config |= {"triples": table.settings.triples, "max_iter": max_iter}
    config |= {"max_terms": MAX_TERMS} if fit in (ssi.fit, ssi_batch.fit) else {}
    table.record(row, [one.params for one in fits], config=config,
                 dev={"map": float(np.mean(dev)), "per_seed": dev}, curve=tried, fit=fits[0],
                 seconds=time.perf_counter() - begun, seeds=table.settings.seeds)


def rate(table: Table, row: str, *, fit=ssi.fit, rates=None, **options) -> float:
    """The learning rate with the lowest training loss at the end, as 003 §2.3 chooses it; `chosen` reads the fit."""
    rates = table.settings.rates if rates is None else rates

    def loss(value):
        found = trained(table, row, fit, 0, max_iter=table.settings.max_iter, k=table.settings.k,
                        learning_rate=value, **options)
        return found.history[-1]["loss"]

    return min(rates, key=loss) if len(rates) > 1 else rates[0]
