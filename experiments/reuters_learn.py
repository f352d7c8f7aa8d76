"""How a row of `yih2010_reuters` is learned: settings by development documents, for one seed, then every seed."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import numpy as np

from experiments.reuters_task import Sample, Task, pair_auc, say, similarity_of
from jaxsim import sparse
from jaxsim.evaluate import all_pairs
from jaxsim.optim import Fit


def learned(task: Task, table: str, row: str, options: list[dict], num: int, documents: dict, encode: Callable,
            train: Callable[[Sample, dict, Callable], Fit], *, seeds: Sequence[int] | None = None,
            told: Callable[[dict[int, Fit]], dict] | None = None, **config) -> None:
    """Chooses an option by dev for the first seed, fits every seed with it, tests and records.

    ``train(sample, option, validate)`` fits, ``encode(params, documents)`` encodes, ``documents`` are those of both
    parts. ``told`` adds to the record's configuration what it says of the fits by seed. ``seeds``: the preset's unless
    given.
    """
    seeds = task.settings.seeds if seeds is None else seeds
    fits, tried, spent, best = {}, [], 0.0, {}
    for seed in seeds:
        sample = task.sample(seed, num)
        dev, labels = task.rows(documents["train"], sample.dev), task.labels["train"][sample.dev]

        def score(params, dev=dev, labels=labels):
            return all_pairs.auc(encode(params, dev), labels, similarity=similarity_of(params))

        for option in options if seed == seeds[0] else [best]:
            begun = time.perf_counter()
            fit = train(sample, option, score)
            spent += time.perf_counter() - begun
            at = max(fit.history, key=lambda entry: entry["validation"])
            on_pairs = pair_auc(encode(fit.params, documents["train"]), sample.dev_pairs, fit.params)
            tried.append({**option, "seed": seed, "dev_documents_auc": at["validation"], "dev_pairs_auc": on_pairs,
                          "best_step": at["step"], "steps": fit.steps, "start": fit.history[0]["validation"]})
            say(f"{table}: {row} {tried[-1]}")
            if seed not in fits or at["validation"] > max(e["validation"] for e in fits[seed].history):
                fits[seed], best = fit, option
    first = seeds[0]
    chosen = [one for one in tried if {k: one[k] for k in best} == best and one["seed"] == first][0]
    task.record(
        table, row, [encode(fit.params, documents["test"]) for fit in fits.values()],
        similarities=[similarity_of(fit.params) for fit in fits.values()],
        config={**best, **config, **(told(fits) if told else {}), "pairs": num,
                "features": list(documents["train"].names), "max_iter": task.settings.max_iter,
                "patience": task.settings.patience},
        dev={"auc": chosen["dev_documents_auc"], "pairs_auc": chosen["dev_pairs_auc"], "grid": tried,
             "documents": "a tenth of the training documents, all pairs", "pairs": "5 % of the pairs"},
        fit=fits[first], seconds=spent, seeds=seeds,
    )


def fitted_alone(documents: sparse.Terms, sample: Sample) -> sparse.Terms:
    """Training documents, those held out emptied."""
    kept = np.zeros(documents.num_docs)
    kept[sample.fit] = 1
    csr = sparse.to_scipy(documents)
    return sparse.with_values(documents, documents.values * np.repeat(kept, np.diff(csr.indptr)).astype(csr.dtype))
