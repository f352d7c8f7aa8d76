"""What the experiments on 004 share: folds of queries, choices on development queries, measures, records, statuses."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from experiments.kit import records
from experiments.kit.places import add_out, records_folder
from experiments.tweak_measures import cosines, deal, expect_both, judge, measure
from jaxsim import losses, sparse
from jaxsim.data import MissingCorpus
from jaxsim.evaluate import metrics
from jaxsim.methods import tweak
from jaxsim.methods.weights import quadratic_forms, tweak_pairs
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.optim import Fit
from jaxsim.text.features import Featured

LOSSES = {"tweak-sse": losses.squared, "tweak-log": losses.log}


@dataclass(frozen=True)
class Settings:
    """What a preset fixes.

    Attributes:
      folds: of the queries; each is the test set once.
      dev: share of the other pairs that choices are made on, whole queries of them.
      preferences: pairs of pairs drawn in each fold.
      gammas: scales of a difference of cosines to choose from; the paper has 1.
      alphas: weights of the regulariser to choose from, of a sum over all examples as in the paper.
      max_iter: L-BFGS iterations at most.
      patience: iterations without a better AUC on the development pairs before stopping.
      limit: of the queries; None for all.
    """

    folds: int = 10
    dev: float = 0.1
    preferences: int = 40_000
    gammas: tuple[float, ...] = (1.0, 10.0, 30.0)
    alphas: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    max_iter: int = 60
    patience: int = 15
    limit: int | None = None


FULL = Settings()
QUICK = Settings(folds=3, preferences=2000, gammas=(10.0,), alphas=(0.01, 1.0), max_iter=8, patience=4, limit=40)


class Parts(NamedTuple):
    """Rows of the pairs of one fold: to fit, to choose by, to test."""

    fit: np.ndarray
    dev: np.ndarray
    test: np.ndarray


@dataclass(eq=False)
class Task:
    """Judged pairs of documents, and where their records go.

    Attributes:
      experiment: name of the script.
      paper: the printed table.
      table: name of the records' folder.
      names: metrics of the table.
      settings: of the preset.
      out: root of the records.
      publish: whether the records are for publication.
      dataset: of the record.
      left: ``[n]`` document of the query of each pair.
      right: ``[n]`` document of the other side.
      positive: ``[n]`` booleans.
      query: ``[n]`` query of each pair, from 0.
      groups: ``[num_queries]`` numbers; near-duplicates have one.
      load_seconds: what it took to get so far.
      sampled: rows of the pairs that may be fitted on and chosen by, rising; None for all.
      kinds: kind of query -> ``[n]`` booleans: measured apart as well.
    """

    experiment: str
    paper: str
    table: str
    names: tuple[str, ...]
    settings: Settings
    out: Path
    publish: bool
    dataset: dict
    left: np.ndarray
    right: np.ndarray
    positive: np.ndarray
    query: np.ndarray
    groups: np.ndarray
    load_seconds: float = 0.0
    sampled: np.ndarray | None = None
    kinds: Mapping[str, np.ndarray] = field(default_factory=dict)
    environment: dict = field(default_factory=records.environment)

    def __post_init__(self):
        """Deals the queries to folds."""
        sizes = np.bincount(self.query, minlength=len(self.groups))
        self.fold = deal(self.groups, sizes, num=self.settings.folds)[self.query]
        self.sampled = np.arange(len(self.query)) if self.sampled is None else self.sampled

    def parts(self, number: int) -> Parts:
        """Rows of a fold. Development queries are whole groups, in the order of a hash, until they have their share.

        ``fit`` and ``dev`` are sampled pairs, ``test`` has all.

        Raises:
          ValueError: a part with pairs of one class alone.
        """
        others = self.sampled[self.fold[self.sampled] != number]
        group = self.groups[self.query]
        names, sizes = np.unique(group[others], return_counts=True)
        order = sorted(range(len(names)), key=lambda at: hashlib.blake2b(f"{number}\0{names[at]}".encode()).digest())
        cut = int(np.searchsorted(np.cumsum(sizes[order]), self.settings.dev * len(others))) + 1
        held = np.isin(group[others], names[order[: min(cut, len(names) - 1)]])
        found = Parts(others[~held], others[held], np.flatnonzero(self.fold == number))
        for name, rows in found._asdict().items():
            expect_both(self.positive[rows], f"fold {number}, {name}")
        return found

    def plan(self, documents: Featured) -> quadratic_forms.Forms:
        """What all fits read of the sampled pairs."""
        return quadratic_forms.plan(documents, documents, self.left[self.sampled], self.right[self.sampled])

    def bare(self, row: str, weighted: sp.csr_matrix, config: dict) -> None:
        """A weighting of documents with nothing learned."""
        self.record(row, cosines(weighted, self.left, self.right), config, {}, None, 0.0)

    def tweaked(self, row: str, documents: Featured, weighted: sp.csr_matrix, config: dict, *, loss=None,
                forms=None, score: Callable | None = None) -> None:
        """TWEAK with one of its losses (preferences unless given), chosen and fitted in each fold by itself.

        It starts from the weights nearest to ``weighted``, tf·idf in the pattern of the documents, or to idf +
        2 log(tf + 1). A linear function comes near the first only with negative weights for frequent words; it has the
        second exactly, without any. Neither reads a label.
        ``forms`` are those of the sampled pairs if they are planned already; ``score(params)`` gives the scores of all
        pairs where not all are sampled.
        """
        begun = time.perf_counter()
        starts = starts_of(documents, weighted)
        forms = self.plan(documents) if forms is None else forms
        scores, tried, first = np.zeros(len(self.left)), [], None
        size = min(len(self.parts(number).fit) for number in range(self.settings.folds))  # compiled once
        for number in range(self.settings.folds):
            parts = self.parts(number)
            fit, found = self.chosen(forms, parts, starts, loss, number, size)
            told = quadratic_forms.cosines(fit.params.weights, forms) if score is None else score(fit.params)
            scores[parts.test] = np.asarray(told, np.float64)[parts.test]
            tried.append({"fold": number, **found})
            first = first or fit
            say(f"{self.table}: {row} {tried[-1]}")
        spent = time.perf_counter() - begun
        dev = {"auc": float(np.mean([one["auc"] for one in tried])), "folds": tried,
               "pairs": f"a share of {self.settings.dev:g} of the pairs outside the test fold, whole queries"}
        self.record(row, scores, {**config, "features": list(documents.names)}, dev, first, spent)

    def chosen(self, forms, parts: Parts, starts: dict, loss, number: int, size: int) -> tuple[Fit, dict]:
        """The best fit of a fold by the AUC on its development pairs: the start first, then gamma, then alpha."""
        settings, rng = self.settings, np.random.default_rng([number, size])
        positive = self.positive[self.sampled]
        fitted, held = (np.searchsorted(self.sampled, rows) for rows in (parts.fit, parts.dev))
        held, labels = tweak_pairs.take(forms, held), positive[held].astype(float)

        def validate(params):
            return float(metrics.auc(np.asarray(quadratic_forms.cosines(params.weights, held), np.float64), labels))

        if loss is None:
            rows = [rng.choice(fitted[positive[fitted] == one], settings.preferences) for one in (True, False)]
            size = settings.preferences
        else:
            rows = [np.sort(rng.choice(fitted, size, replace=False))]
        common = {"max_iter": settings.max_iter, "patience": settings.patience, "validate": validate}

        def run(start, gamma, alpha):
            own = {"init": starts[start], "alpha": alpha / size, **common}
            if loss is None:
                return tweak_pairs.fit_preferences(forms, *rows, gamma=gamma, **own)
            return tweak_pairs.fit(forms, rows[0], positive[rows[0]], loss=loss, **own)

        best, found = None, {}
        gammas = settings.gammas if loss is None else (1.0,)
        options = [{"start": start, "gamma": gammas[0], "alpha": settings.alphas[0]} for start in starts]
        options += [{"gamma": gamma} for gamma in gammas[1:]] + [{"alpha": alpha} for alpha in settings.alphas[1:]]
        for option in options:
            option = {**{name: found.get(name) for name in ("start", "gamma", "alpha")}, **option}
            fit = run(**option)
            auc = max(entry["validation"] for entry in fit.history)
            if best is None or auc > found["auc"]:
                best, found = fit, {**option, "auc": auc, "steps": fit.steps,
                                    "auc_at_start": fit.history[0]["validation"]}
        return best, found

    def record(self, row: str, scores: np.ndarray, config: dict, dev: dict, fit, seconds: float) -> None:
        """Measures every fold and writes the record; the values of a fold stand where those of a seed do elsewhere."""
        begun = time.perf_counter()
        found = []
        for number in range(self.settings.folds):
            rows = np.flatnonzero(self.fold == number)
            expect_both(self.positive[rows], f"fold {number}, test")
            kinds = {"": np.ones(len(self.query), bool), **self.kinds}
            found.append({kind: measure(scores[rows], self.positive[rows], self.query[rows])
                          for kind, rows in ((kind, rows[which[rows]]) for kind, which in kinds.items())})
        told = {kind: {name: [one[kind][name] for one in found] for name in self.names} for kind in found[0]}
        record = records.new(
            experiment=self.experiment, paper=self.paper, table=self.table, row=row, status="within noise",
            config={"folds": self.settings.folds, "seeds": "the numbers of the folds", **config},
            seeds=range(self.settings.folds), dataset=self.dataset, dev=dev, fit=fit,
            metrics=told.pop(""), environment=self.environment, **({"metrics_by_group": told} if told else {}),
            seconds={"load": self.load_seconds, "fit": seconds, "evaluate": time.perf_counter() - begun})
        records.write(record, self.out, allow_dirty=not self.publish)
        means = " ".join(f"{name} {record['metrics'][name]['mean']:.4f}" for name in self.names)
        say(f"{self.table}: {row} {means}, {seconds:.0f} s")


def starts_of(documents: Featured, weighted: sp.csr_matrix) -> dict[str, TermWeights]:
    """Weights to start from, by what they are near to.

    Args:
      documents: with the columns bias, log_tf and log_df among others.
      weighted: tf·idf of every slot.

    Returns:
      ``tf·idf`` and ``idf + 2 log(tf + 1)``.
    """
    tf = sparse.to_scipy(documents.terms).data.astype(np.float64)
    found = {}
    for name, wanted in (("tf·idf", weighted.data), ("idf + 2 log(tf + 1)", weighted.data / tf + 2 * np.log1p(tf))):
        values = np.zeros(documents.columns.shape[0])
        values[: tf.size] = wanted
        found[name] = tweak.least_squares(documents, values)
    return found


def say(message: str) -> None:
    """A line of progress."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)


def run(doc: str, experiment: str, table: str, order: Mapping, rows: Mapping[str, Callable],
        build: Callable[[Settings, Path, bool], object], *, full_only: Sequence[str] = ()) -> None:
    """The command line: fills the table row by row; a row that has its record is skipped unless ``--again``.

    ``build(settings, out, publish)`` reads the data; ``rows`` are functions of what it returns.
    """
    parser = argparse.ArgumentParser(description=doc, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=(table,), default=(table,), help="there is one")
    parser.add_argument("--rows", nargs="+", choices=tuple(rows), metavar="ROW", help=f"of {', '.join(rows)}; all "
                        "unless given" + (f" (quick leaves out {', '.join(full_only)})" if full_only else ""))
    add_out(parser)
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more")
    parser.add_argument("--judge", action="store_true", help="fit nothing: only mark best sets and statuses again")
    given = parser.parse_args()
    quick = given.preset == "quick"
    out = records_folder(parser, given.out, quick=quick)
    publish, folder = not quick and given.out is None, out / experiment / table
    wanted = [row for row in given.rows or rows if given.rows or not (quick and row in full_only)]
    missing = [row for row in wanted if given.again or not (folder / f"{row}.json").exists()]
    if missing and not given.judge:
        try:
            task = build(QUICK if quick else FULL, out, publish)
        except MissingCorpus as error:
            if quick:
                print(f"{experiment}: skipped, nothing was run: {error}")
                return
            parser.exit(2, f"{parser.prog}: {error}\n")
        for row in missing:
            rows[row](task)
    if folder.is_dir():
        judge(out, experiment, table, order, publish=publish)
    print(out)
