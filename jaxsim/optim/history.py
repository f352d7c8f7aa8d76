"""The history of a training, small enough for a record or a model folder: loss and dev score against the step."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from jaxsim.checks import expect, positive_int

_COLUMNS = ("step", "loss", "validation", "seconds")


def compact(history: Sequence[Mapping[str, Any]], *, at_most: int = 200) -> dict[str, list]:
    """Columns of numbers from the history of a `Fit`.

    Args:
      history: ``fit.history``: one mapping a step with ``step``, ``loss`` and perhaps ``validation`` and ``seconds``.
      at_most: steps to keep, about: of more, every so many, and always the first, the last and the best one.

    Returns:
      ``{"step": [...], "loss": [...], "validation": [...], "seconds": [...]}`` of one length, six digits a number;
      None stands for what is not known, and ``validation`` and ``seconds`` are left out where there are none at all.
      Empty without a history.

    Raises:
      ValueError: if ``at_most`` is below 1.

    Example:
      >>> compact([{"step": 0, "loss": 0.5, "validation": None}, {"step": 1, "loss": 0.25, "validation": None}])
      {'step': [0, 1], 'loss': [0.5, 0.25]}
    """
    positive_int(at_most, "at_most")
    if not history:
        return {}
    scores, seconds = ([_number(entry.get(name)) for entry in history] for name in ("validation", "seconds"))
    rows = set(np.linspace(0, len(history) - 1, min(len(history), at_most)).round().astype(int).tolist())
    known = [row for row, score in enumerate(scores) if score is not None]
    if known:
        rows.add(max(known, key=lambda row: scores[row]))
    rows = sorted(rows)
    found = {"step": [int(history[row]["step"]) for row in rows],
             "loss": [_number(history[row]["loss"]) for row in rows]}  # fmt: skip
    if known:
        found["validation"] = [scores[row] for row in rows]
    if any(second is not None for second in seconds):
        found["seconds"] = [seconds[row] for row in rows]
    return found


def check(history: Any, where: str) -> None:
    """Refuses anything but what `compact` makes of a history that is not empty.

    Args:
      history: the value.
      where: its name, for the message.

    Raises:
      ValueError: for missing or unknown columns, columns of unequal length, steps that do not rise, or values that are
        no finite numbers.

    Example:
      >>> check({"step": [0, 0], "loss": [0.5, 0.25]}, "fit.history")
      Traceback (most recent call last):
      ...
      ValueError: fit.history.step: expected whole numbers of at least 0 that rise, got another list
    """
    columns = set(history) if isinstance(history, Mapping) else set()
    fits = {"step", "loss"} <= columns <= set(_COLUMNS)
    expected = "an object of the lists step, loss and perhaps validation, seconds"
    expect(fits, where, expected, sorted(map(str, columns)) or "none")
    for name, values in history.items():
        expect(isinstance(values, list) and values, f"{where}.{name}", "a list of numbers", type(values).__name__)
        length = len(history["step"]) if isinstance(history["step"], list) else 0
        expect(len(values) == length, f"{where}.{name}", f"{length} numbers (as step)", len(values))
    steps = history["step"]
    whole = all(isinstance(step, int) and not isinstance(step, bool) and step >= 0 for step in steps)
    rising = whole and all(a < b for a, b in zip(steps, steps[1:], strict=False))
    expect(rising, f"{where}.step", "whole numbers of at least 0 that rise", "another list")
    for name in columns - {"step"}:
        wrong = next((one for one in history[name] if one is not None and not _is_number(one)), None)
        expect(wrong is None, f"{where}.{name}", "finite numbers or null", repr(wrong))


def points(history: Mapping[str, list], name: str) -> list[tuple[int, float]]:
    """The points of one column that are known.

    Args:
      history: as `compact` makes it.
      name: ``"loss"`` or ``"validation"``.

    Returns:
      ``(step, value)`` by rising step; empty without the column.

    Example:
      >>> points({"step": [0, 1], "loss": [None, 0.25]}, "loss")
      [(1, 0.25)]
    """
    return [(step, value) for step, value in zip(history["step"], history.get(name, []), strict=False)
            if value is not None]  # fmt: skip


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _number(value: Any) -> float | None:
    """Six digits of a finite number; None for anything else."""
    return None if value is None or not math.isfinite(value) else float(f"{value:.6g}")
