"""How the tables of mates fit and choose topic models: PLSA, JPLSA and CPLSA (002 §2.4-2.5, 000 §2.1).

The papers' settings: topics that start as blocks of words by frequency, priors α = 1.1 and β = 1.01, early stopping on
development MRR. In 002 languages share their words, documents are folded in by one iteration and compared by the L1
distance; in 000 every language has words of its own, and there are ten iterations and the Jensen-Shannon divergence.
Our best settings (`best_row`): words of their own, one iteration, the L1 distance, and development pairs choose among
random starts, and whether a pair shares its θ. The rows stand in the scripts.

At equal dimension the paper's order was OPCA > CPLSA > JPLSA. The paper's σ is not readable in print; here it is
infinite, so that the topics of a pair have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse

from experiments import kit
from jaxsim import sparse
from jaxsim.evaluate import mates, retrieval
from jaxsim.methods import cplsa, jplsa, plsa, topics
from jaxsim.methods.topics import starts
from jaxsim.sparse import Vectors


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      ks: Numbers of topics; options are chosen at the smallest.
      ks_2011: Those of `OF_2011`, where they are others; of the pairs' models alone where ``plsa_ks`` are given.
      plsa_ks: Those of PLSA by `OF_2011`.
      cplsa_ks: Those of CPLSA by `OF_2011`, where it is best with more topics than JPLSA.
      best_ks: Those of our best settings.
      options: How many of the options of our best settings are tried.
      steps: Scores on development pairs at most.
      steps_2011: Those of `OF_2011`, where they are more.
      patience: Scores without a better one before a fit stops.
    """

    ks: tuple[int, ...] = (100, 300)
    ks_2011: tuple[int, ...] = ()
    plsa_ks: tuple[int, ...] = ()
    cplsa_ks: tuple[int, ...] = ()
    best_ks: tuple[int, ...] = (100, 300)
    options: int | None = None
    steps: int = 50
    steps_2011: int | None = None
    patience: int = 3


PRESETS = {"quick": Settings(ks=(10,), best_ks=(10,), options=1, steps=2, patience=1)}
TABLES = {"en-it-speeches": Settings(ks=(100,), best_ks=(100, 300)),
          "en-it-speeches-long": Settings(ks=(50,), best_ks=(50,)),
          "docstrings": Settings(ks=(100, 300, 600, 1000, 2000, 3000), ks_2011=(100, 300, 600, 1000, 2000, 3000),
                                 plsa_ks=(100, 300, 600, 1000, 2000)),
          "en-fr": Settings(ks_2011=(100, 300, 600, 1000)),
          "en-es-halves-all": Settings(ks_2011=(100, 300, 600, 1000, 2000, 4000), plsa_ks=(100, 300, 600, 1000),
                                       cplsa_ks=(100, 300, 600, 1000, 2000, 4000, 10_000)),
          "en-it-lines": Settings(ks_2011=(100, 300, 1000, 2000, 4000), steps_2011=500),
          "en-ja-halves": Settings(ks=(50, 100, 300, 600, 1000),
                                   ks_2011=(50, 100, 300, 600, 1000, 1500, 2000, 3000, 4000),
                                   plsa_ks=(50, 100, 300, 600, 1000)),
          **dict.fromkeys(("en-es-halves", "en-es-first20", "en-fr-halves"),
                          Settings(ks=(50, 100, 300, 600, 1000), ks_2011=(50, 100, 300, 600, 1000, 1500, 2000, 3000),
                                   plsa_ks=(50, 100, 300, 600, 1000, 1500, 2000)))}
"""What differs by table. The presets of the scripts do not hold these: tests compare them with the records."""
EACH = {plsa: 10, jplsa: 10, cplsa: 5}
"""Iterations between two scores; CPLSA needs fewer of them."""


class Folding(NamedTuple):
    """How documents become topic vectors, and how these are compared."""

    iterations: int
    similarity: Callable


OF_2010, OF_2011 = Folding(1, retrieval.l1), Folding(10, retrieval.jensen_shannon)


def settings_of(table: kit.Table) -> Settings:
    """The settings of a preset, or of a table."""
    return PRESETS.get(table.preset, TABLES.get(table.name, Settings()))


def numbers(settings: Settings, method: ModuleType, folding: Folding) -> tuple[int, ...]:
    """The numbers of topics of a row, before the data end them."""
    own = {plsa: settings.plsa_ks, cplsa: settings.cplsa_ks}.get(method, ())
    return (own or settings.ks_2011 if folding is OF_2011 else ()) or settings.ks


def most_steps(settings: Settings, folding: Folding) -> int:
    """Scores on development pairs at most."""
    return settings.steps_2011 or settings.steps if folding is OF_2011 else settings.steps


def counts(table: kit.Table, split: str) -> tuple[sparse.Terms, ...]:
    """Counts of both sides."""
    return table.once(("counts", split), lambda: tuple(map(sparse.from_scipy, table.data.task.counts[split])))


def encode(params, sides, folding: Folding) -> list[Vectors]:
    """Topic vectors of both sides."""
    both = (params, params) if isinstance(params, topics.Topics) else params
    return [topics.encode(own, side, iterations=folding.iterations) for own, side in zip(both, sides, strict=True)]


def fit_topics(table: kit.Table, method: ModuleType, folding: Folding, *, k: int, seed: int = 0, **options):
    """One fit with early stopping on development MRR."""
    dev = counts(table, "dev")
    settings = settings_of(table)

    def validate(params) -> float:
        return mates.scores(*encode(params, dev, folding), similarity=folding.similarity)["mrr"]

    views = counts(table, "train")
    if method is plsa:
        both = scipy.sparse.vstack([sparse.to_scipy(side) for side in views], format="csr")
        views = table.once("stacked", lambda: sparse.from_scipy(both))
    if options["start"] != "blocks":
        options["key"] = jax.random.key(seed)
    validate.__module__ = "experiments.mates.topic_models"  # where it stood: cached fits know it by this name
    draws = [starts.DRAWS] if options["start"] == "soft" else []
    return table.fit(method, reads=[dev, folding.iterations, folding.similarity.__name__, *draws], checkpoint=True)(
        views, k=k, validate=validate, each=EACH[method], max_iter=most_steps(settings, folding),
        patience=settings.patience, **options)


def score(fit) -> dict[str, Any]:
    """The best development MRR of a fit, and where it was."""
    best = max(fit.history, key=lambda entry: entry["validation"])
    return {"mrr": best["validation"], "best_step": best["step"], "steps": fit.steps,
            "iterations": fit.evaluations, "converged": bool(fit.converged), "seconds": fit.history[-1]["seconds"]}


def chosen_options(table: kit.Table, method: ModuleType, folding: Folding, options: Sequence[dict], k: int
                   ) -> kit.Choice:
    """The options with the best development MRR with ``k`` topics."""
    return kit.choose([{"k": k, **option} for option in options],
                      lambda **option: score(fit_topics(table, method, folding, **option)), by="mrr")


def most_topics(sides: Sequence[sparse.Terms], together: bool) -> int:
    """The training pairs or, if these are fewer, the words: of both languages, or of the one that has fewer."""
    used = [np.unique(np.asarray(side.indices)[np.asarray(side.values) > 0]) for side in sides]
    return min(sides[0].num_docs, *(words.size for words in ([np.unique(np.concatenate(used))] if together else used)))


def row(table: kit.Table, method: ModuleType, folding: Folding, options: Sequence[dict], ks: Sequence[int] = ()
        ) -> kit.Row:
    """The options with the best development MRR at the smallest k (`numbers` unless given), and k; tested.

    No k is above `most_topics`, which is the last one where a larger one is asked for, and no edge of the grid.
    """
    settings = settings_of(table)
    together = method is plsa or all(option.get("merged") for option in options)
    most = most_topics(counts(table, "train"), together)
    ks = kit.up_to_rank(ks or numbers(settings, method, folding), most)
    choice = chosen_options(table, method, folding, options, min(ks))
    chosen = {name: value for name, value in choice.best.items() if name != "k"}
    kept = {}

    def scored(k: int) -> dict[str, Any]:
        """The score of ``k`` topics; only the best fit so far is kept, as models of many topics are large."""
        fit = fit_topics(table, method, folding, k=k, **chosen)
        found = score(fit)
        if not kept or found["mrr"] > kept["mrr"]:
            kept.update(mrr=found["mrr"], fit=fit)
        return found

    size = kit.choose([{"k": k} for k in ks], scored, by="mrr", split="dev", rank=most)
    k, fit, similar = size.best["k"], kept["fit"], {"similarity": folding.similarity}
    test = encode(fit.params, counts(table, "test"), folding)
    config = {**choice.best, "k": k, "alpha": 1.1, "beta": 1.01, "fold_in": folding.iterations,
              "similarity": folding.similarity.__name__, "iterations_a_step": EACH[method],
              "max_iter": most_steps(settings, folding), "patience": settings.patience}
    if method is cplsa:
        config["sigma"] = "infinity"
    return kit.Row(config, mates.per_query(*test, **similar), fit=fit, curve=size.tried,
                   by_group=mates.by_source(*test, table.data.task.sources["test"], **similar),
                   dev={"grid": choice.tried, "mrr": size.score}, seeds=(0,) if chosen["start"] != "blocks" else ())


def best_row(table: kit.Table, method: ModuleType) -> kit.Row:
    """A row with our best settings: development pairs choose the start, and for CPLSA whether a pair shares its θ.

    CPLSA has the start that is best for JPLSA.
    """
    settings = settings_of(table)
    options = [{"start": start} for start in ("soft", "hard")][: settings.options]
    if method is cplsa:
        start = chosen_options(table, jplsa, OF_2010, options, min(settings.best_ks)).best["start"]
        options = [{"start": start, "shared": shared} for shared in (True, False)][: settings.options]
    return row(table, method, OF_2010, options, settings.best_ks)
