"""What is done to the vectors of a trained OPCA before mates are looked for: weights of dimensions, and CSLS.

One OPCA of the training pairs a table, of fixed settings (300 dimensions, noise 1e-4, documents of unit length), and
the same mates of the test part, four times: by the cosine (`opca`); with every dimension multiplied by the agreement of
development pairs, the correlation of their two sides in it, as `jaxsim search` does (`opca-r`); with hubs lessened by
CSLS, as `jaxsim search --csls` does (`opca-csls`): 2 cos(q, d) less the mean cosine of document d with the training
documents nearest to it in the language of the query; and with both (`opca-r-csls`). Nothing is chosen.

Tables: the first half of an English page against the second half of its translation (`en-fr-halves`, `en-es-halves`),
whole pages of sources (web sites) that are not trained on (`en-es-unseen`), and summaries and bodies of Python
docstrings (`docstrings`). Expected: CSLS gains across languages; agreement, which is for documents about the same
thing, gains nothing where the very mate is asked for.

    JAXSIM_DATA=/path/to/corpora python -m experiments.mates.hubs --preset full
    python -m experiments.mates.hubs --preset quick --out /tmp/quick

Time: quick a quarter of a minute; full about a minute a table on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments import kit
from experiments.corpora import mates as corpora
from jaxsim.evaluate import mates, significance
from jaxsim.methods import opca
from jaxsim.methods.projections.agreement import agreement
from jaxsim.model.hubs import NEIGHBOURS


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      k: Dimension.
      noise: Of OPCA.
      limit: Pairs of the corpus; None for all.
    """

    k: int = 300
    noise: float = 1e-4
    limit: int | None = None


def load(name: str, settings: Settings) -> kit.Data:
    """The pairs of a table; rows see what `corpora.load` returns."""
    corpus = corpora.load(name, settings.limit)
    return kit.Data(corpus, name=corpus.pairs.name, sha256=corpus.pairs.sha256, differs=corpora.DIFFERS[name],
                    counts={**corpus.pairs.counts, "split": corpus.sizes}, groups=corpus.task.groups, paper="none")


def vectors(table: kit.Table) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Both sides of every part by the one OPCA."""

    def make():
        task, settings = table.data.task, table.settings
        train = task.weighted("train")
        k = min(settings.k, train[0].num_docs - 1)
        params = table.fit(opca)(train, k=k, noise=settings.noise).params
        return {part: tuple(np.asarray(side.dense, np.float32) for side in mates.encode(params, task.weighted(part)))
                for part in ("train", "dev", "test")}

    return table.once("vectors", make)


def searched(table: kit.Table, *, weighed: bool, csls: bool) -> dict[str, np.ndarray]:
    """Accuracy and reciprocal rank of the test mates, both directions, ties as errors."""
    found = vectors(table)
    weights = agreement(*found["dev"]) if weighed else 1.0
    train, test = ([_unit(side * weights) for side in found[part]] for part in ("train", "test"))
    cosines = test[0] @ test[1].T
    ways = [cosines, cosines.T]
    if csls:  # of each document by the training texts of the language that the queries are in
        near = [_nearest(test[1] @ train[0].T), _nearest(test[0] @ train[1].T)]
        ways = [2 * way - r for way, r in zip(ways, near, strict=True)]
    ranks = np.concatenate([(way >= np.diag(way)[:, None]).sum(axis=1) for way in ways])
    return {"accuracy": (ranks == 1).astype(np.float64), "mrr": 1.0 / ranks}


def _nearest(cosines: np.ndarray) -> np.ndarray:
    few = min(NEIGHBOURS, cosines.shape[1])
    return np.partition(cosines, -few, axis=1)[:, -few:].mean(axis=1)


def _unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)


def row(weighed: bool, csls: bool) -> Callable[[kit.Table], kit.Row]:
    """A row function; the difference to plain cosines stands in its record, with a paired test."""

    def fill(table: kit.Table) -> kit.Row:
        values = searched(table, weighed=weighed, csls=csls)
        lines = []
        if weighed or csls:
            plain = searched(table, weighed=False, csls=False)["mrr"]
            pvalue = significance.paired_t(values["mrr"], plain).pvalue if np.any(values["mrr"] != plain) else 1.0
            lines = [{"name": f"MRR less that of opca (paired t, p = {pvalue:.1g})", "unit": "MRR",
                      "value": float(values["mrr"].mean() - plain.mean())}]
        config = {"k": vectors(table)["test"][0].shape[1], "noise": table.settings.noise, "power": float(weighed),
                  "csls": NEIGHBOURS if csls else 0}
        return kit.Row(config, values, measurements=lines, methods=[opca],
                       notes=["Nothing is chosen: one OPCA of fixed settings serves all rows."])

    return fill


ROWS = {"opca": row(False, False), "opca-r": row(True, False), "opca-csls": row(False, True),
        "opca-r-csls": row(True, True)}
TABLES = {name: kit.Plan(ROWS, {"quick": Settings(k=30, limit=400), "full": Settings()},
                         on_request=("quick",) * (name != "docstrings"), split=corpora.RULES.get(name, 1))
          for name in ("docstrings", "en-fr-halves", "en-es-halves", "en-es-unseen")}
EXPERIMENT = kit.Experiment("mate_hubs", __doc__, load, TABLES)

if __name__ == "__main__":
    kit.run(EXPERIMENT)
