"""The figure of cost against work, from records whose curves hold seconds, and the tables that wait for a machine."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from jaxsim.pictures import figures

EXPERIMENT = "scale"
TABLES = {"cpu": "On a CPU", "gpu": "On a GPU"}
"""Tables of the experiment; one without a record is shown as not yet run."""

_PRESETS = {"cpu": "full", "gpu": "gpu"}
_SECONDS = ("iteration_s", "epoch_s")
_AXES = {"m": "pairs", "k": "dimension k", "devices": "devices"}
_PAPER = "paper: 48 minutes, 43,380 pairs, k = 1,000"
_PAPER_SECONDS = 48 * 60.0


def fitted(points: Sequence[tuple[float, float]]) -> tuple[float, list[tuple[float, float]]]:
    """The power law through points, by least squares of logarithms.

    Args:
      points: ``(x, y)``, both positive, at least two different x.

    Returns:
      Its exponent, and its values at the first and the last x.

    Example:
      >>> exponent, ends = fitted([(10, 3), (100, 30), (1000, 300)])
      >>> round(exponent, 6), [round(y, 6) for _, y in ends]
      (1.0, [3.0, 300.0])
    """
    logs = [(math.log(x), math.log(y)) for x, y in points]
    mean_x, mean_y = (sum(values) / len(logs) for values in zip(*logs, strict=True))
    exponent = sum((x - mean_x) * (y - mean_y) for x, y in logs) / sum((x - mean_x) ** 2 for x, _ in logs)
    ends = [(x, math.exp(mean_y + exponent * (math.log(x) - mean_x))) for x in (points[0][0], points[-1][0])]
    return exponent, ends


def figure(title: str, rows: Mapping[str, Mapping[str, Any]]) -> bytes | None:
    """Seconds against pairs, dimensions and devices, all axes logarithmic.

    Args:
      title: above it.
      rows: records of one table, by path. Points of a curve with ``iteration_s`` or ``epoch_s`` and one of ``m``, ``k``
        and ``devices`` that varies in the record make a line; a record of one size makes a point among the pairs.

    Returns:
      The SVG file; None where no record has seconds.
    """
    series: dict[str, dict[str, list[tuple[float, float]]]] = {axis: {} for axis in _AXES}
    for _, record in sorted(rows.items()):
        for axis, name, points in _lines(record):
            series[axis][name] = points
    plots = []
    for axis, label in _AXES.items():
        if not series[axis]:
            continue
        reference, lines = {}, {}
        for name, points in series[axis].items():
            exponent, ends = fitted(points) if len(points) > 1 else (None, [])
            lines[name] = points
            if axis != "devices" and len(points) > 2:
                reference[f"{name}: exponent {exponent:.2f}"] = ends
        if axis == "m":
            every = [x for points in series[axis].values() for x, _ in points]
            reference[_PAPER] = [(min(every), _PAPER_SECONDS), (max(every), _PAPER_SECONDS)]
        plots.append(figures.Panel(lines, label, "seconds an iteration, or epoch", "log", "log", reference))
    return figures.panels(plots, title=title) if plots else None


def _lines(record: Mapping[str, Any]):
    """``(axis, name, points)`` of a record's curve."""
    kept = [(point, point[key]) for point in record["curve"] for key in _SECONDS if point.get(key)]
    if not kept:
        return
    varies = [axis for axis in _AXES if len({point.get(axis) for point, _ in kept}) > 1]
    if len(varies) == 1:
        axis = varies[0]
        yield axis, record["row"], sorted((point[axis], seconds) for point, seconds in kept)
    elif not varies and kept[0][0].get("m"):
        for point, seconds in kept:
            name = record["row"] if len(kept) == 1 else f"{record['row']}, {point.get('products')}"
            yield "m", name, [(point["m"], seconds)]


def waiting(present: set[str]) -> str:
    """What to say of tables that no record fills yet.

    Args:
      present: tables that have records.

    Returns:
      Markdown, empty if all have.

    Example:
      >>> print(waiting({"cpu"}).strip())
      ## On a GPU
      <BLANKLINE>
      Not yet run: `python -m experiments.scale.scale --preset gpu`, on a machine that has one.
    """
    missing = {table: title for table, title in TABLES.items() if table not in present}
    run = "Not yet run: `python -m experiments.scale.scale --preset"
    return "".join(f"\n## {title}\n\n{run} {_PRESETS[table]}`, on a machine that has one.\n"
                   for table, title in missing.items())
