"""What is done to the vectors of a trained projection before mates are looked for: weights of dimensions, and CSLS.

One OPCA of the training pairs a table, of fixed settings (300 dimensions, noise 1e-4, documents of unit length), and
the same mates of the test part, four times: by the cosine (`opca`); with every dimension multiplied by the agreement of
development pairs, the correlation of their two sides in it, as `jaxsim search` does (`opca-r`); with hubs lessened by
CSLS, as `jaxsim search --csls` does (`opca-csls`): 2 cos(q, d) less the mean cosine of document d with the training
documents nearest to it in the language of the query; and with both (`opca-r-csls`). `s2net` is trained from this OPCA
and stops by the development pairs; `s2net-r` has their agreement too. Nothing else is chosen, but for the share of the
end in `s2net-blend`.

Tables: the first half of an English page against the second half of its translation (`en-fr-halves`, `en-es-halves`,
`en-ja-halves`), the first 20 words against the last two thirds (`en-es-first20`), whole pages of sources (web sites)
that are not trained on (`en-es-unseen`), and summaries and bodies of Python docstrings (`docstrings`). The others are
whole texts, whose mates OPCA finds nearly all. Expected: CSLS gains across languages; agreement, which is for documents
about the same thing, gains nothing where the very mate is asked for. `en-es-unseen` has two rows more, for texts of
another kind than the pairs, both expected above `s2net` there: `s2net-blend`, the mean of S2Net's start and end that
the development pairs like best (`jaxsim train --blend`), and `s2net-beta`, held near its start (`--beta 0.001`).

    JAXSIM_DATA=/path/to/corpora python -m experiments.mates.hubs --preset full
    python -m experiments.mates.hubs --preset quick --out /tmp/quick

Time: quick half a minute; full 1 to 15 minutes a table on one core, and up to an hour for each S2Net.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments import kit
from experiments.corpora import mates as corpora
from jaxsim.evaluate import mates
from jaxsim.methods import opca, s2net
from jaxsim.methods.projections import Projection
from jaxsim.methods.projections.agreement import agreement
from jaxsim.model.hubs import NEIGHBOURS


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      k: Dimension.
      noise: Of OPCA.
      limit: Pairs of the corpus; None for all.
      max_iter: Iterations of S2Net, at most.
      patience: Iterations without a better development MRR before it stops.
      beta: Penalty on the distance from its start, of `s2net-beta`.
      shares: Shares of its end that `s2net-blend` tries.
    """

    k: int = 300
    noise: float = 1e-4
    limit: int | None = None
    max_iter: int = 100
    patience: int = 30
    beta: float = 1e-3
    shares: tuple[float, ...] = (1.0, 0.75, 0.5, 0.25)


def load(name: str, settings: Settings) -> kit.Data:
    """The pairs of a table; rows see what `corpora.load` returns."""
    corpus = corpora.load(name, settings.limit)
    return kit.Data(corpus, name=corpus.pairs.name, sha256=corpus.pairs.sha256, differs=corpora.DIFFERS[name],
                    counts={**corpus.pairs.counts, "split": corpus.sizes}, groups=corpus.task.groups, paper="none")


def start(table: kit.Table) -> Projection:
    """The one OPCA."""
    train = table.data.task.weighted("train")
    k = min(table.settings.k, train[0].num_docs - 1)
    return table.fit(opca)(train, k=k, noise=table.settings.noise).params


def trained(table: kit.Table, beta: float = 0.0) -> Projection:
    """S2Net from there; near-duplicates are no negatives of each other."""
    task, settings = table.data.task, table.settings
    dev = task.weighted("dev")
    return table.fit(s2net, reads=dev, checkpoint=True)(
        *task.weighted("train"), init=start(table), groups=task.group_ids["train"], beta=beta,
        max_iter=settings.max_iter, patience=settings.patience, validate=mates.validator(dev)).params  # fmt: skip


def blended(table: kit.Table) -> tuple[Projection, kit.Choice]:
    """The mean of start and end, each at length one, with the best development MRR, or the nearest to the end."""
    first, last = ((one.weights / s2net.start_norm(one)) for one in (start(table), trained(table)))
    validate = mates.validator(table.data.task.weighted("dev"))

    def mean(end: float) -> Projection:
        return Projection((1 - end) * first + end * last)

    choice = kit.choose([{"end": share} for share in table.settings.shares], lambda end: validate(mean(end)), by="mrr",
                        split="dev")  # fmt: skip
    return mean(**choice.best), choice


PROJECTIONS = {"opca": start, "s2net": trained, "s2net-beta": lambda table: trained(table, table.settings.beta),
               "s2net-blend": lambda table: table.once("blended", lambda: blended(table))[0]}
"""What is learned, by name."""


def vectors(table: kit.Table, learned: str = "opca") -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Both sides of every part by one projection."""

    def make():
        params, task = PROJECTIONS[learned](table), table.data.task
        return {part: tuple(np.asarray(side.dense, np.float32) for side in mates.encode(params, task.weighted(part)))
                for part in ("train", "dev", "test")}

    return table.once(("vectors", learned), make)


def searched(table: kit.Table, learned: str = "opca", *, weighed: bool, csls: bool) -> dict[str, np.ndarray]:
    """Accuracy and reciprocal rank of the test mates, both directions, ties as errors."""
    found = vectors(table, learned)
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


def row(name: str, weighed: bool, csls: bool) -> Callable[[kit.Table], kit.Row]:
    """A row function of OPCA."""

    def fill(table: kit.Table) -> kit.Row:
        values = searched(table, weighed=weighed, csls=csls)
        config = {"k": vectors(table)["test"][0].shape[1], "noise": table.settings.noise, "power": float(weighed),
                  "csls": NEIGHBOURS if csls else 0}
        return kit.Row(config, values, comparisons=[kit.compared(name, "opca", "mrr")] if name != "opca" else (),
                       methods=[opca], notes=["Nothing is chosen: one OPCA of fixed settings serves all rows."])

    return fill


def row_of_s2net(learned: str, weighed: bool = False) -> Callable[[kit.Table], kit.Row]:
    """A row function of S2Net, to be compared with OPCA and with plain S2Net."""
    name = f"{learned}-r" if weighed else learned

    def fill(table: kit.Table) -> kit.Row:
        values, settings = searched(table, learned, weighed=weighed, csls=False), table.settings
        config = {"k": vectors(table, learned)["test"][0].shape[1], "noise": settings.noise, "power": float(weighed),
                  "gamma": 10.0, "max_iter": settings.max_iter, "patience": settings.patience}
        config |= {"beta": settings.beta} if learned == "s2net-beta" else {}
        dev: dict = {"mrr": mates.validator(table.data.task.weighted("dev"))(PROJECTIONS[learned](table))}
        if learned == "s2net-blend":
            choice = table.once("blended", lambda: blended(table))[1]
            config |= choice.best
            dev["grid"] = choice.tried
        others = ["opca"] + ["s2net"] * (name != "s2net")
        return kit.Row(config, values, dev=dev, methods=[opca, s2net],
                       comparisons=[kit.compared(name, other, "mrr") for other in others])

    return fill


OF_OPCA = {name: row(name, "-r" in name, "-csls" in name) for name in ("opca", "opca-r", "opca-csls", "opca-r-csls")}
ROWS = OF_OPCA | {"s2net": row_of_s2net("s2net"), "s2net-r": row_of_s2net("s2net", weighed=True)}
UNSEEN = ROWS | {"s2net-blend": row_of_s2net("s2net-blend"), "s2net-beta": row_of_s2net("s2net-beta")}
"""Of tables whose test texts are of other sources than the training's."""
APART = ("docstrings", "en-fr-halves", "en-es-halves", "en-ja-halves", "en-es-first20")
"""Tables in which mates are hard to find."""
WHOLE = ("en-es", "en-es-human", "en-fr", "en-ja", "en-it-speeches", "en-it-speeches-long", "en-it-lines")
"""Tables of whole texts, in which OPCA finds nearly all: S2Net is left out."""
TABLES = {name: kit.Plan(rows, {"quick": Settings(k=30, limit=400, max_iter=8, patience=4), "full": Settings()},
                         on_request=("quick",) * (name != "docstrings"), split=corpora.RULES.get(name, 1))
          for rows, names in ((ROWS, APART), (UNSEEN, ("en-es-unseen",)), (OF_OPCA, WHOLE)) for name in names}
EXPERIMENT = kit.Experiment("mate_hubs", __doc__, load, TABLES)

if __name__ == "__main__":
    kit.run(EXPERIMENT)
