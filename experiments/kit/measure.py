"""Measurements: timing in turns, the lines and limits of a record, parity, and programs that may be installed."""

from __future__ import annotations

import importlib
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from types import ModuleType
from typing import NamedTuple

import jax
import numpy as np


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


def race(contestants: dict[str, Callable], *, repeats: int = 7, budget: float = 60.0, warm_up: bool = True,
         settle: bool = False) -> dict[str, Times]:
    """Times functions in turns, so that a change of the machine's pace meets all of them.

    Args:
      contestants: name -> function of nothing; what it returns is waited for.
      repeats: runs of each.
      budget: seconds after which no further turn begins; each gets at least one.
      warm_up: whether each runs once before, compiling.
      settle: whether each runs once more, untimed, before each of its turns: of functions of very different length,
        the short ones else pay for the cold caches that the long ones leave.

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
            if settle:
                jax.block_until_ready(function())
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
      limits: bounds written before the run, and what came out, of the full sizes.
      notes: sentences for the record.
    """

    row: str
    cores: int
    full: bool
    dataset: dict
    config: dict
    lines: list[dict] = field(default_factory=list)
    limits: list[dict] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

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
        text = "; ".join(part for part in (times.told(), note) if part)
        self.add(name, times.median, "s", ratio=ratio, of=of, note=text)
        return ratio

    def missing(self, name: str, why: str) -> None:
        """Says that a peer was not measured: value 0 of unit "runs"."""
        self.add(name, 0, "runs", note=f"not measured: {why}")

    def expect(self, what: str, value: float, limit: float, *, at_least: bool = False) -> None:
        """Sets a value beside its limit, at the full sizes; the report says whether it holds."""
        if self.full:
            self.limits.append({"name": what, "value": float(value), "at_least" if at_least else "at_most": limit})

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
        """Prints ``head``, the measurements and the limits to stderr."""
        print(head, file=sys.stderr, flush=True)
        for line in self.lines:
            ratio = f"  {line['ratio']:.3g} x {line['of']}" if "ratio" in line else ""
            print(f"  {line['name']}: {line['value']:.4g} {line['unit']}{ratio}  {line.get('note', '')}",
                  file=sys.stderr, flush=True)
        for limit in self.limits:
            bound = f"at least {limit['at_least']:g}" if "at_least" in limit else f"at most {limit['at_most']:g}"
            print(f"  {limit['name']}: {limit['value']:.3g}, expected {bound}", file=sys.stderr, flush=True)

    def fields(self) -> dict:
        """The fields of a record that this sheet fills."""
        return {"measurements": self.lines, "notes": self.notes, **({"limits": self.limits} if self.limits else {})}


def relative_error(ours, reference) -> float:
    """Largest difference relative to the largest magnitude of the reference."""
    ours, reference = np.asarray(ours, np.float64), np.asarray(reference, np.float64)
    return float(np.max(np.abs(ours - reference)) / max(np.max(np.abs(reference)), np.finfo(np.float64).tiny))


def installed(name: str) -> ModuleType | None:
    """A module, or None where it is not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return importlib.import_module(name)
    except ImportError:
        return None
