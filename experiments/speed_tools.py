"""What the speed measurements share: timing in turns, the lines of a record, parity, and made-up documents."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse

DROPPED = 50  # most frequent terms that the papers drop, which flattens the head of Zipf's law


class Times(NamedTuple):
    """Seconds of repeated runs."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        """Median, in seconds."""
        return statistics.median(self.seconds)

    def told(self) -> str:
        """Minimum, spread and number of runs, for the note of a measurement."""
        low, high = min(self.seconds), max(self.seconds)
        if len(self.seconds) == 1:
            return "one run"
        return f"min {low:.3g}, spread {(high - low) / self.median:.0%}, {len(self.seconds)} runs"


def race(contestants: dict[str, Callable], *, repeats: int = 7, budget: float = 60.0, warm_up: bool = True
         ) -> dict[str, Times]:
    """Times functions in turns, so that a change of the machine's pace meets all of them.

    Args:
      contestants: name -> function of nothing; what it returns is waited for.
      repeats: runs of each.
      budget: seconds after which no further turn begins; each gets at least one.
      warm_up: whether each runs once before, compiling.

    Returns:
      name -> `Times`.
    """
    if warm_up:
        for function in contestants.values():
            jax.block_until_ready(function())
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    begun = time.perf_counter()
    for _ in range(repeats):
        for name, function in contestants.items():
            started = time.perf_counter()
            jax.block_until_ready(function())
            seconds[name].append(time.perf_counter() - started)
        if time.perf_counter() - begun > budget:
            break
    return {name: Times(tuple(values)) for name, values in seconds.items()}


def once(function: Callable) -> tuple[object, float]:
    """What a function returns, and its seconds: for what is too slow to repeat, or differs when it runs first."""
    started = time.perf_counter()
    result = jax.block_until_ready(function())
    return result, time.perf_counter() - started


@dataclass
class Sheet:
    """The measurements of one row, and what was expected of them.

    Attributes:
      row: id of the row.
      cores: how many cores the process may use.
      full: whether sizes are those of the expectations.
      dataset: of the record.
      config: of the record.
      lines: the measurements.
      verdicts: one phrase an expectation.
    """

    row: str
    cores: int
    full: bool
    dataset: dict
    config: dict
    lines: list[dict] = field(default_factory=list)
    verdicts: list[tuple[bool, str]] = field(default_factory=list)

    def add(self, name: str, value: float, unit: str, *, ratio: float | None = None, of: str | None = None,
            note: str | None = None) -> None:
        """Adds a line; ``ratio`` is against what ``of`` names."""
        line = {"name": name, "value": float(value), "unit": unit}
        if ratio is not None:
            line |= {"ratio": float(ratio), "of": of}
        self.lines.append(line | ({"note": note} if note else {}))

    def time(self, name: str, times: Times, against: Times | None = None, of: str | None = None,
             note: str | None = None) -> float | None:
        """Adds seconds and their ratio to another's; returns the ratio."""
        ratio = times.median / against.median if against is not None else None
        told = "; ".join(part for part in (times.told(), note) if part)
        self.add(name, times.median, "s", ratio=ratio, of=of, note=told)
        return ratio

    def missing(self, name: str, why: str) -> None:
        """Says that a peer was not measured: value 0 of unit "runs"."""
        self.add(name, 0, "runs", note=f"not measured: {why}")

    def expect(self, what: str, value: float, limit: float, *, at_least: bool = False) -> None:
        """Judges a value at the full sizes."""
        if self.full:
            holds = value >= limit if at_least else value <= limit
            self.verdicts.append((holds, f"{what} {value:.3g} (expected {'>=' if at_least else '<='} {limit:g})"))

    def parity(self, what: str, ours, reference, *, within: float) -> None:
        """Compares with a float64 reference before anything is timed.

        Raises:
          ArithmeticError: if the largest difference, relative to the largest magnitude, is more than ``within``.
        """
        error = relative_error(ours, reference)
        if not error <= within:
            raise ArithmeticError(f"{self.row}: {what}: expected a relative error of at most {within:g}, got {error:g}")
        self.add(f"parity, {what}", error, "relative error", note=f"float64 reference, within {within:g}")

    def tell(self, head: str) -> None:
        """Prints ``head``, the status and the measurements to stderr."""
        print(f"{head}: {self.status()}", file=sys.stderr, flush=True)
        for line in self.lines:
            ratio = f"  {line['ratio']:.3g} x {line['of']}" if "ratio" in line else ""
            print(f"  {line['name']}: {line['value']:.4g} {line['unit']}{ratio}  {line.get('note', '')}",
                  file=sys.stderr, flush=True)

    def status(self) -> str:
        """What holds and what is missed."""
        if not self.full:
            return "quick sizes: parity holds, no time is judged"
        missed = [told for holds, told in self.verdicts if not holds]
        if missed:
            return "missed: " + "; ".join(missed)
        held = [told for _, told in self.verdicts]
        return "within noise: holds " + "; ".join(held) if held else "no expectation"


def relative_error(ours, reference) -> float:
    """Largest difference relative to the largest magnitude of the reference."""
    ours, reference = np.asarray(ours, np.float64), np.asarray(reference, np.float64)
    return float(np.max(np.abs(ours - reference)) / max(np.max(np.abs(reference)), np.finfo(np.float64).tiny))


def documents(num_docs: int, num_terms: int, per_doc: int, *, seed: int, shared: int = 0, views: int = 1
              ) -> list[scipy.sparse.csr_matrix]:
    """Made-up documents of exactly ``per_doc`` distinct terms, drawn by Zipf's law without its head.

    Args:
      num_docs: documents a view.
      num_terms: size of the vocabulary.
      per_doc: distinct terms a document.
      seed: of the generator.
      shared: terms that the documents of one row have in common in all views.
      views: how many collections.

    Returns:
      One float32 CSR matrix ``[num_docs, num_terms]`` a view, rows of length one.
    """
    rng = np.random.default_rng(seed)
    needed = shared + views * (per_doc - shared)
    cumulative = np.cumsum(1.0 / (DROPPED + 1 + np.arange(num_terms)))
    pools = np.empty((num_docs, needed), np.int64)
    for row in range(num_docs):
        drawn = np.empty(0, np.int64)
        while drawn.size < needed:
            more = np.searchsorted(cumulative, rng.random(2 * needed) * cumulative[-1])
            drawn = np.unique(np.concatenate([drawn, more]))
        pools[row] = rng.permutation(drawn)[:needed]
    found = []
    for view in range(views):
        own = shared + view * (per_doc - shared)
        terms = np.sort(np.hstack([pools[:, :shared], pools[:, own : own + per_doc - shared]]), axis=1)
        values = rng.lognormal(size=terms.shape)
        values = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
        pointers = np.arange(num_docs + 1) * per_doc
        found.append(scipy.sparse.csr_matrix((values.ravel(), terms.ravel(), pointers), shape=(num_docs, num_terms)))
    return found


def synthetic(name: str, **counts: int) -> dict:
    """The dataset of a record of made-up data."""
    return {"name": name, "sha256": None, "counts": counts, "groups": {}, "differs": "synthetic: a generator, one seed"}
