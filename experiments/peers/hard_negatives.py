"""Hard negatives from documents that are in no pair: whether S2Net gains by them, on few pairs of two collections.

1,000 pairs are trained on, and many more documents of the same collection are there to mine from. `docstrings`:
summaries and bodies; the bodies of all training pairs are the documents; test mates by MRR. `nfcorpus`: titles of pages
with the abstracts that they link to directly; all abstracts are the documents; the test queries by MAP over them (its
authors' split, in which a few queries have a near-duplicate in another part).

Rows: `s2net` (no such negatives), `s2net-mined` (five a left text, the likely false ones left out) and
`s2net-mined-all` (the nearest five whatever their cosine, right answers alone left out). The weight of the mined
negatives is chosen by the MRR of development pairs, 0 (none) not among them. Five seeds, which draw the pairs. Expected
before the run: a gain of `s2net-mined` over `s2net`; the report says whether it exists.

    JAXSIM_DATA=/path/to/corpora python -m experiments.peers.hard_negatives --preset full
    python -m experiments.peers.hard_negatives --preset quick --out /tmp/quick

Time: quick half a minute; full a few minutes a table on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from experiments import kit
from experiments.corpora import rankings
from jaxsim import text
from jaxsim.evaluate import mates
from jaxsim.methods import opca, s2net
from jaxsim.methods.s2net import mined
from jaxsim.sparse import Terms


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      pairs: Pairs that are trained on.
      k: Dimension.
      seeds: Draws of the pairs.
      weights: Of the mined negatives; development pairs choose.
      count: Negatives of each left text.
      max_iter: Of S2Net.
      limit: Of the collection; None for all.
    """

    pairs: int = 1000
    k: int = 100
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    weights: tuple[float, ...] = (1e-5, 1e-4, 1e-3, 0.01, 0.1)
    count: int = 5
    max_iter: int = 60
    limit: int | None = None


QUICK = Settings(pairs=80, k=10, seeds=(0, 1), weights=(0.1, 1.0), max_iter=4, limit=200)


@dataclass(frozen=True, eq=False)
class Drawn:
    """A draw of the pairs, as the rows fit it: weighted texts, and where OPCA begins.

    Attributes:
      train: Left and right texts of the pairs.
      dev: Left and right texts of the development pairs.
      documents: To mine from.
      answers: Rows of them that are right, for each left text.
      groups: Equal texts, which are no negatives of each other.
      start: OPCA's projection.
      test: Left texts of test and what they search.
    """

    train: tuple[Terms, Terms]
    dev: tuple[Terms, Terms]
    documents: Terms
    answers: list[set[int]]
    groups: np.ndarray
    start: object
    test: tuple[Terms, Terms]


def load(name: str, settings: Settings) -> kit.Data:
    """A collection's pairs for training and development, and `rankings.Ranking`s of dev and test to score by."""
    found = rankings.TABLES[name](settings.limit)
    return kit.Data(found, name=found.all.name, sha256=found.all.sha256, paper="none", differs=found.differs,
                    counts={**found.all.counts, "split": found.sizes}, groups=found.groups or {})


def drawn(table: kit.Table, seed: int) -> Drawn:
    """Some of the training pairs, with a vocabulary of their own."""

    def make():
        data, settings = table.data, table.settings
        rows = np.sort(np.random.default_rng(seed).permutation(len(data.train))[: settings.pairs])
        some = data.train.take(rows)
        documents = list(dict.fromkeys(data.test.right if data.test.grades is not None else data.train.right))
        words = [[text.words(one) for one in side] for side in (some.left, some.right)]
        vocabulary = mates.vocabulary_of([*words[0], *words[1]], drop_top=0, max_terms=50_000, min_df=2)

        def weigh(texts) -> Terms:
            counts = text.counts([text.words(one) for one in texts], vocabulary)
            return mates.unit_terms(text.log_tf_idf(counts, vocabulary.df, vocabulary.num_docs))

        train = weigh(some.left), weigh(some.right)
        right: dict[str, set[str]] = {}
        for left, one in zip(data.train.left, data.train.right, strict=True):
            right.setdefault(left, set()).add(one)
        places = {one: row for row, one in enumerate(documents)}
        answers = [{places[one] for one in right[left] if one in places} for left in some.left]
        groups = np.stack([np.unique(side, return_inverse=True)[1] for side in (some.left, some.right)], axis=1)
        k = min(settings.k, len(rows) - 1, len(vocabulary) - 1)
        start = table.fit(opca)(train, k=k, noise=1e-4).params
        dev, test = ((weigh(part.left), weigh(part.right)) for part in (data.dev_pairs, data.test))
        return Drawn(train, dev, weigh(documents), answers, groups, start, test)

    return table.once(("drawn", seed), make)


def fitted(table: kit.Table, seed: int, share: float | None, weight: float):
    """S2Net of a draw; ``share`` as for `mined.mine`, None without mined negatives."""
    one, more = drawn(table, seed), {}
    if share is not None:
        sides = [np.asarray(side.dense) for side in
                 (*mates.encode(one.start, one.train), mates.encode(one.start, (one.documents,) * 2)[1])]
        rows = mined.mine(*sides, count=table.settings.count, share=share, right_answers=one.answers)
        more["mined"] = mined.kept(one.documents, rows, weight)
    fit = table.fit(s2net, reads=one.dev)
    return fit(*one.train, init=one.start, groups=one.groups, validate=mates.validator(one.dev),
               max_iter=table.settings.max_iter, patience=15, **more)


def values(table: kit.Table, seed: int, params) -> dict[str, np.ndarray]:
    """Scores of the test queries."""
    left, right = (np.asarray(side.dense, np.float64) for side in mates.encode(params, drawn(table, seed).test))
    left, right = (side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in (left, right))
    cosines = left @ right.T
    return table.data.test.scores(cosines, None if table.data.test.grades is not None else cosines.T)


def by_s2net(table: kit.Table) -> kit.Row:
    """S2Net on the pairs alone."""
    fits = [fitted(table, seed, None, 0.0) for seed in table.settings.seeds]
    found = [values(table, seed, fit.params) for seed, fit in zip(table.settings.seeds, fits, strict=True)]
    return kit.Row({"k": table.settings.k, "pairs": table.settings.pairs}, found, fit=fits[0],
                   seeds=table.settings.seeds, dev={"mrr": float(np.mean([fit.best_score for fit in fits]))})


def by_mined(table: kit.Table, row: str, share: float) -> kit.Row:
    """S2Net with mined negatives of the weight that development pairs choose; the report says what it gains."""
    settings = table.settings

    def mrr(weight: float) -> float:
        return float(np.mean([fitted(table, seed, share, weight).best_score for seed in settings.seeds]))

    choice = kit.choose([{"weight": weight} for weight in settings.weights], mrr, by="mrr", split="dev")
    fits = [fitted(table, seed, share, choice.best["weight"]) for seed in settings.seeds]
    found = [values(table, seed, fit.params) for seed, fit in zip(settings.seeds, fits, strict=True)]
    metric = "mrr" if table.data.test.grades is None else "map"
    return kit.Row({"k": settings.k, "pairs": settings.pairs, "count": settings.count, "share": share, **choice.best},
                   found, fit=fits[0], seeds=settings.seeds,
                   comparisons=[kit.compared(row, "s2net", metric, at_least=0.0)],
                   dev={"mrr": choice.score, "grid": choice.tried})


def by_filtered(table: kit.Table) -> kit.Row:
    """S2Net with mined negatives, likely false ones left out. Chosen: their weight."""
    return by_mined(table, "s2net-mined", mined.SHARE)


def by_all(table: kit.Table) -> kit.Row:
    """S2Net with the nearest as negatives, but for right answers and what is nearer than the mate. Chosen: weight."""
    return by_mined(table, "s2net-mined-all", 1.0)


ROWS: dict[str, Callable] = {"s2net": by_s2net, "s2net-mined": by_filtered, "s2net-mined-all": by_all}
TABLES = {name: kit.Plan(ROWS, {"quick": QUICK, "full": Settings()}, on_request=("quick",) * (name != "docstrings"))
          for name in ("docstrings", "nfcorpus")}
EXPERIMENT = kit.Experiment("hard_negatives", __doc__, load, TABLES)

if __name__ == "__main__":
    kit.run(EXPERIMENT)
