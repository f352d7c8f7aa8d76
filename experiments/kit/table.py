"""What a row function gets and returns, and how the record is made of it."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Literal

import numpy as np

from experiments.kit import records
from experiments.kit.fits import Fits, version_of
from jaxsim.optim import Fit

__all__ = ["Data", "Row", "Table", "compared", "say"]


@dataclass(frozen=True, eq=False)
class Data:
    """What ``load(table, settings)`` returns.

    Attributes:
      content: Whatever the rows of the table need; kept as it is in ``table.data``.
      name: Name of the collection.
      sha256: Its digest, 64 hexadecimal digits; None for generated data.
      differs: How it relates to the paper's: text opening with `same`, `resampled`, `substitute` or `synthetic`.
      counts: Sizes, at least one.
      groups: Counts of groups of near-duplicates.
      paper: The printed table to stand beside (`"002 Table 2"`), the paper alone (`"002"`) where its figures would not
        compare, or `"none"`.
    """

    content: Any
    name: str
    sha256: str | None
    differs: str
    counts: Mapping[str, Any]
    groups: Mapping[str, Any] = field(default_factory=dict)
    paper: str = "none"

    def dataset(self) -> dict[str, Any]:
        """The record's field of that name."""
        return {"name": self.name, "sha256": self.sha256, "differs": self.differs, "counts": dict(self.counts),
                "groups": dict(self.groups)}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Row:
    """What a row function returns: the configuration that development data chose, tested.

    Attributes:
      config: The settings of the row.
      per_query: Metric -> one value a query; one mapping, or one a seed (`seeds`). The record's metrics are their
        means, and their means over seeds stand beside it as `.npz`.
      dev: Development values behind the choice: ``{"mrr": 0.6, "grid": choice.tried}``.
      curve: Points of a sweep: flat dicts with the sweep's variable, a metric, and ``"split": "dev"`` or ``"test"``.
      fit: The `Fit` (of the first seed).
      seeds: Empty where nothing is random.
      metrics: Metric -> a number, or one a seed, for what is no mean over queries (AUC, perplexity); added to those
        of `per_query`.
      arrays: More arrays for the `.npz`, kept as they are.
      by_group: Group -> metric -> value; one mapping, or one a seed.
      naive: Metric -> value of the same method on the naive split.
      measurements: Lines of a table of speed: dicts of ``name, value, unit`` and perhaps ``ratio, of, note``.
      limits: Bounds written before the run, and what came out: ``name, value`` and ``at_most`` or ``at_least`` each.
      comparisons: With other rows of the table (`compared`); the report makes them.
      methods: Methods that were used without ``table.fit``, for their versions.
      seconds: ``fit`` or ``evaluate``, where they are not what the kit measures.
      notes: Sentences that explain something about the row; codes are computed from the record, not written here.
    """

    config: Mapping[str, Any]
    per_query: Mapping[str, np.ndarray] | Sequence[Mapping[str, np.ndarray]] = ()
    _: dataclasses.KW_ONLY
    dev: Mapping[str, Any] = field(default_factory=dict)
    curve: Iterable[Mapping[str, Any]] = ()
    fit: Fit | Mapping | None = None
    seeds: Sequence[int] = ()
    metrics: Mapping[str, Any] = field(default_factory=dict)
    arrays: Mapping[str, np.ndarray] = field(default_factory=dict)
    by_group: Mapping[str, Mapping[str, float]] | Sequence[Mapping[str, Mapping[str, float]]] = ()
    naive: Mapping[str, Any] | None = None
    measurements: Sequence[Mapping[str, Any]] = ()
    limits: Sequence[Mapping[str, Any]] = ()
    comparisons: Sequence[Mapping[str, Any]] = ()
    methods: Sequence[ModuleType | Callable] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    notes: Sequence[str] = ()


@dataclass(eq=False)
class Table:
    """One table being filled: what every row function gets.

    Attributes:
      experiment: Name of the experiment.
      name: Name of the table.
      settings: Those of the preset for this table.
      preset: Its name.
      loaded: What ``load`` returned.
      out: Root of the records.
      fits: The cache.
      load_seconds: What loading took.
      environment: Of the record.
      split: Version of the rule that deals the data to parts (`Plan.split`).
    """

    experiment: str
    name: str
    settings: Any
    preset: str
    loaded: Data
    out: Path
    fits: Fits
    load_seconds: float = 0.0
    environment: Mapping[str, Any] = field(default_factory=records.environment)
    split: int = 1
    _made: dict = field(default_factory=dict)

    @property
    def data(self) -> Any:
        """The content that ``load`` returned."""
        return self.loaded.content

    def once(self, name: Hashable, make: Callable[[], Any]) -> Any:
        """What several rows need is made once: ``table.once("tfidf", lambda: ...)``."""
        if name not in self._made:
            self._made[name] = make()
        return self._made[name]

    def fit(
        self,
        method: ModuleType | Callable[..., Fit],
        *,
        reads: Any = None,
        ignore: Collection[str] = (),
        checkpoint: bool = False,
    ) -> Callable[..., Fit]:
        """``table.fit(opca)(views, k=100)`` is ``opca.fit(views, k=100)``, read from the cache where it is there.

        Arguments and errors are those of `Fits.fit`.
        """
        return self.fits.fit(method, reads=reads, ignore=ignore, checkpoint=checkpoint)

    def path(self, row: str) -> Path:
        """Where the record of a row is, or will be."""
        return self.out / self.experiment / self.name / f"{row}.json"

    def fill(self, name: str, function: Callable[[Table], Row | None]) -> Path | None:
        """Runs a row function and writes its record; None where the function says that the row has no place here."""
        self.fits.restart()
        begun = time.perf_counter()
        row = function(self)
        if row is None:
            return None
        evaluate = max(0.0, time.perf_counter() - begun - self.fits.spent)
        seconds = {"load": self.load_seconds, "fit": self.fits.seconds, "evaluate": evaluate, **row.seconds}
        return self.write(name, row, seconds)

    def write(self, name: str, row: Row, seconds: Mapping[str, float]) -> Path:
        """Writes the record of a row and its per-query values."""
        seeds = [row.per_query] if isinstance(row.per_query, Mapping) else list(row.per_query)
        means = {metric: [float(np.mean(seed[metric])) for seed in seeds] for metric in (seeds[0] if seeds else ())}
        values = {metric: np.mean([seed[metric] for seed in seeds], axis=0) for metric in means}
        extra: dict[str, Any] = {"measurements": list(row.measurements)} if row.measurements else {}
        if row.limits:
            extra["limits"] = list(row.limits)
        if row.comparisons:
            extra["comparisons"] = list(row.comparisons)
        if row.by_group:
            extra["metrics_by_group"] = _by_group(row.by_group)
        if row.naive is not None:
            extra["metrics_naive"] = row.naive
        functions = [method.fit if isinstance(method, ModuleType) else method for method in row.methods]
        settings = dataclasses.asdict(self.settings) if dataclasses.is_dataclass(self.settings) else self.settings
        record = records.new(
            experiment=self.experiment, paper=self.loaded.paper, table=self.name, row=name, notes=list(row.notes),
            method_version={**self.fits.versions, **dict(map(version_of, functions))}, config=row.config,
            preset={"name": self.preset, "settings": settings}, seeds=row.seeds,
            dataset={**self.loaded.dataset(), "split": self.split}, dev=row.dev, metrics={**means, **row.metrics},
            curve=row.curve, fit=row.fit, seconds=seconds, environment=self.environment, **extra,
        )  # fmt: skip
        arrays = {**values, **row.arrays}
        path = records.write(record, self.out, per_query=arrays or None)
        shown = " ".join(f"{metric} {value['mean']:.4f}" for metric, value in record["metrics"].items())
        say(f"{self.name}: {name} {shown or f'{len(row.measurements)} measurements'}, {sum(seconds.values()):.0f} s")
        return path


def compared(
    better: str, worse: str, metric: str, *, at_least: float | None = None,
    by: Literal["difference", "lower end"] = "difference",
) -> dict[str, Any]:
    """A comparison of two rows of a table, for a record: without a figure, since either row may be run again.

    The report makes it from the records that are there then (`report_limits`).

    Args:
      better: The row that is expected to be better.
      worse: The other one.
      metric: By which.
      at_least: Bound written before the run; None where nothing was expected.
      by: What is bound: the difference, or the lower end of its 95 % interval.

    Example:
      >>> compared("s2net", "opca", "mrr", at_least=0.0)
      {'better': 's2net', 'worse': 'opca', 'metric': 'mrr', 'by': 'difference', 'at_least': 0.0}
    """
    bound = {} if at_least is None else {"at_least": at_least}
    return {"better": better, "worse": worse, "metric": metric, "by": by, **bound}


def _by_group(groups: Mapping | Sequence[Mapping]) -> dict[str, dict[str, Any]]:
    """Group -> metric -> one value a seed."""
    seeds = [groups] if isinstance(groups, Mapping) else list(groups)
    return {name: {metric: [seed[name][metric] for seed in seeds] for metric in seeds[0][name]} for name in seeds[0]}


def say(message: str) -> None:
    """A line of progress on stderr, with the time."""
    print(time.strftime("%H:%M:%S"), message, file=sys.stderr, flush=True)
