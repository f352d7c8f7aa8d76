"""Figures of the report: SVG files that are equal byte for byte when their data is.

Colours are of middle lightness and the background is transparent, so that a figure reads on white and on dark pages.
Another version of matplotlib may draw the same data with other bytes; the digest of the data stands in the file, and
`same` compares that where the versions differ.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxsim.checks import expect
from jaxsim.optim import history

_INK = "#808080"
_COLOURS = (
    "#2f86d0", "#d9632a", "#3a9d5d", "#b35fc4", "#b98a00", "#d14a6b", "#6a7be6", "#7d8f2e", "#1f9aa0", "#a07050",
)  # fmt: skip
_MARKERS = "os^Dv<>PXp"
_DASHES = ("-", "--", "-.", (0, (6, 1, 1, 1, 1, 1)), (0, (1, 1)))
_FEW = 12  # points of a line that has markers
_WIDE = 4  # ratio of losses that need a logarithmic axis
_CELLS = 600  # of a matrix whose numbers are written
_SETTINGS = {"svg.hashsalt": "jaxsim", "svg.fonttype": "none", "font.size": 10, "axes.titlesize": 10}


class Panel(NamedTuple):
    """One pair of axes of `panels`.

    Attributes:
      series: name to points ``(x, y)`` by rising x, in the order in which they are drawn; positive along a logarithmic
        axis. One name has one colour in all panels of a figure, and one entry of the legend.
      xlabel: of the horizontal axis.
      ylabel: of the vertical axis.
      xscale: ``"linear"``, ``"log"``, or ``"whole"``: linear, with ticks at whole numbers.
      yscale: the same.
      reference: name to points of thin dotted lines, to compare with.
      ticks: names of the places 1, 2, ... of the horizontal axis, instead of numbers.
    """

    series: Mapping[str, Sequence[tuple[float, float]]]
    xlabel: str
    ylabel: str
    xscale: str = "linear"
    yscale: str = "linear"
    reference: Mapping[str, Sequence[tuple[float, float]]] = {}
    ticks: Sequence[str] = ()


def lines(series: Mapping[str, Sequence[tuple[float, float]]], *, title: str, xlabel: str, ylabel: str) -> bytes:
    """Draws one line a name, over a logarithmic horizontal axis with a tick at every value that occurs.

    Args:
      series: Name to points `(x, y)` with positive x, in the order in which lines and legend are drawn.
      title: Above the axes.
      xlabel: Of the horizontal axis.
      ylabel: Of the vertical axis.

    Returns:
      The SVG file.
    """
    import matplotlib
    from matplotlib.figure import Figure

    drawn = [title, xlabel, ylabel, _rounded(series)]
    with matplotlib.rc_context(_SETTINGS):
        figure = Figure(figsize=(7.2, 4.2), layout="constrained")
        axes = figure.add_subplot()
        for index, (name, points) in enumerate(drawn[3]):
            style = {"color": _COLOURS[index % len(_COLOURS)], "marker": _MARKERS[index % len(_MARKERS)]}
            axes.plot(*zip(*points, strict=True), label=name, linewidth=1.6, markersize=5, **style)
        axes.set_xscale("log")
        ticks = sorted({x for _, points in drawn[3] for x, _ in points})
        axes.set_xticks(ticks, [f"{x:g}" for x in ticks])
        axes.set_xticks([], minor=True)
        axes.set_title(title, color=_INK)
        _frame(axes, xlabel, ylabel)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, labelcolor=_INK)
        return _saved(figure, drawn)


def panels(axes: Sequence[Panel], *, title: str, columns: int | None = None) -> bytes:
    """Draws several pairs of axes side by side, with one legend for all.

    Lines of few points have markers, longer ones differ in their dashes, so that colour is never all that tells them
    apart.

    Args:
      axes: At least one `Panel`.
      title: Above them.
      columns: How many stand side by side; all unless given.

    Returns:
      The SVG file.

    Raises:
      ValueError: If there is nothing to draw.

    Example:
      >>> svg = panels([Panel({"s2net": [(0, 0.5), (1, 0.25)]}, "iteration", "loss", yscale="log")], title="training")
      >>> svg.startswith(b"<?xml"), digest(svg) is not None
      (True, True)
    """
    import matplotlib
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for panel in axes for name in panel.series))
    expect(bool(names), "axes", "at least one panel with a line", "none")
    drawn = [title, [[*panel[1:5], _rounded(panel.series), _rounded(panel.reference)] for panel in axes]]
    ticks = [list(panel.ticks) for panel in axes]
    across = columns or len(axes)
    down = -(-len(axes) // across)
    with matplotlib.rc_context({**_SETTINGS, "text.parse_math": False}):
        figure = Figure(figsize=(2.2 + 4.0 * across, 3.8 if down == 1 else 2.6 * down), layout="constrained")
        handles = {}
        for place, (xlabel, ylabel, xscale, yscale, series, reference) in enumerate(drawn[1], start=1):
            one = figure.add_subplot(down, across, place)
            for name, points in reference:
                lines = one.plot(*zip(*points, strict=True), color=_INK, linewidth=1.0, linestyle=":")
                handles.setdefault(name, lines[0])
            for name, points in series:
                lines = one.plot(*zip(*points, strict=True), linewidth=1.6, **_style(names.index(name), len(points)))
                handles[name] = lines[0]
            for axis, scale, setting in ((one.xaxis, xscale, one.set_xscale), (one.yaxis, yscale, one.set_yscale)):
                setting("log" if scale == "log" else "linear")
                _ticks(axis, scale)
            if ticks[place - 1]:
                one.set_xticks(range(1, len(ticks[place - 1]) + 1), ticks[place - 1], rotation=30, ha="right")
            _frame(one, xlabel, ylabel)
        figure.suptitle(title, color=_INK, fontsize=_SETTINGS["axes.titlesize"])
        order = [*names, *(name for name in handles if name not in names)]
        figure.legend([handles[name] for name in order], order, loc="outside right center", frameon=False,
                      labelcolor=_INK)
        return _saved(figure, [*drawn, ticks] if any(ticks) else drawn)


def scatter(axes: Sequence[Panel], *, title: str) -> bytes:
    """Draws several pairs of square axes side by side, a dot a point, from 0 to 1, with the diagonal.

    Args:
      axes: at least one `Panel`; all its points are drawn alike, and its names are not shown.
      title: above them.

    Returns:
      The SVG file.

    Raises:
      ValueError: if there is nothing to draw.

    Example:
      >>> panel = Panel({"queries": [(0.5, 0.75), (1.0, 0.5)]}, "TFIDF", "SSI")
      >>> digest(scatter([panel], title="average precision")) is not None
      True
    """
    import matplotlib
    from matplotlib.figure import Figure

    expect(any(panel.series for panel in axes), "axes", "at least one panel with points", "none")
    drawn = [title, [[*panel[1:3], _rounded(panel.series)] for panel in axes]]
    with matplotlib.rc_context({**_SETTINGS, "text.parse_math": False}):
        figure = Figure(figsize=(0.6 + 3.6 * len(axes), 4.2), layout="constrained")
        for place, (xlabel, ylabel, series) in enumerate(drawn[1], start=1):
            one = figure.add_subplot(1, len(axes), place, aspect="equal")
            one.plot([0, 1], [0, 1], color=_INK, linewidth=1.0, linestyle=":")
            for _, points in series:
                one.plot(*zip(*points, strict=True), linestyle="", marker="o", markersize=2.5, alpha=0.4,
                         markeredgewidth=0, color=_COLOURS[0])
            one.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
            _frame(one, xlabel, ylabel)
        figure.suptitle(title, color=_INK, fontsize=_SETTINGS["axes.titlesize"])
        return _saved(figure, drawn)


def matrix(values, rows: Sequence[str], columns: Sequence[str], *, title: str) -> bytes:
    """Draws a matrix of numbers around 0: blue above, orange below, with the numbers where there is room.

    Args:
      values: ``[a, b]``.
      rows: ``a`` names.
      columns: ``b`` names.
      title: above them.

    Returns:
      The SVG file.

    Example:
      >>> digest(matrix([[0.5, -0.1]], ["cat"], ["cat", "dog"], title="words")) is not None
      True
    """
    import matplotlib
    import numpy as np
    from matplotlib.colors import LinearSegmentedColormap
    from matplotlib.figure import Figure

    values = np.asarray(values, np.float64).reshape(len(rows), len(columns))
    drawn = [title, list(rows), list(columns), [[float(f"{value:.4g}") for value in row] for row in values]]
    colours = LinearSegmentedColormap.from_list("sign", [(0.0, "#d9632a"), (0.5, "#ffffff00"), (1.0, "#2f86d0")])
    limit = float(np.abs(values).max(initial=0)) or 1.0
    with matplotlib.rc_context({**_SETTINGS, "text.parse_math": False}):
        figure = Figure(figsize=(2.5 + 0.55 * len(columns), 1.8 + 0.32 * len(rows)), layout="constrained")
        axes = figure.add_subplot()
        axes.pcolormesh(values, cmap=colours, vmin=-limit, vmax=limit, edgecolors=_INK, linewidth=0.2)
        axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=60, ha="right")
        axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
        axes.invert_yaxis()
        for i, j in np.argwhere(np.abs(values) > 0.02 * limit) if values.size <= _CELLS else ():
            axes.text(j + 0.5, i + 0.5, f"{values[i, j]:.2f}", ha="center", va="center", color=_INK, fontsize=7)
        axes.set_title(title, color=_INK)
        _frame(axes, "document", "query")
        axes.grid(False)
        return _saved(figure, drawn)


def parallel(tried: Sequence[Mapping[str, object]], score: str, *, title: str) -> bytes:
    """Draws every candidate of a choice as a line over one axis a setting, the last axis being its score.

    The places of an axis are the values that occur, from low to high and evenly spaced. Lines are the stronger, the
    better their score; the best is drawn over the others.

    Args:
      tried: setting -> value, and the score, a mapping for each candidate; one without a setting has its own place.
      score: name of the score, which every candidate has.
      title: above the axes.

    Returns:
      The SVG file.

    Raises:
      ValueError: for fewer than two candidates.

    Example:
      >>> tried = [{"method": "lsa", "mrr": 0.5}, {"method": "opca", "noise": 0.1, "mrr": 0.75}]
      >>> digest(parallel(tried, "mrr", title="tried")) is not None
      True
    """
    import matplotlib
    from matplotlib.figure import Figure

    expect(len(tried) > 1, "tried", "at least two candidates", len(tried))
    names = list(dict.fromkeys(name for one in tried for name in one if name not in (score, "seconds", "cut")))
    places = {name: sorted({_known(one.get(name)) for one in tried}) for name in names}
    rows = sorted([[*(places[name].index(_known(one.get(name))) for name in names), float(f"{one[score]:.6g}")]
                   for one in tried], key=lambda row: row[-1])  # fmt: skip
    drawn = [title, score, names, [[facts for _, _, facts in places[name]] for name in names], rows]
    low, high = rows[0][-1], rows[-1][-1]
    spread = high - low or 1.0
    with matplotlib.rc_context({**_SETTINGS, "text.parse_math": False}):
        figure = Figure(figsize=(2.0 + 1.6 * (len(names) + 1), 4.2), layout="constrained")
        axes = figure.add_subplot()
        for row in rows:
            heights = [(place + 0.5) / len(places[name]) for name, place in zip(names, row[:-1], strict=True)]
            share = (row[-1] - low) / spread
            axes.plot(range(len(row)), [*heights, share], color=_COLOURS[1 if row is rows[-1] else 0],
                      alpha=0.2 + 0.8 * share, linewidth=2.4 if row is rows[-1] else 1.2)  # fmt: skip
        for column, name in enumerate(names):
            for place, (_, _, facts) in enumerate(places[name]):
                axes.text(column + 0.03, (place + 0.5) / len(places[name]), facts, color=_INK, va="center", fontsize=8)
        for share in (0.0, 0.5, 1.0):
            axes.text(len(names) + 0.03, share, f"{low + share * spread:.4f}", color=_INK, va="center", fontsize=8)
        axes.set_xticks(range(len(names) + 1), [*names, score])
        axes.set_yticks([])
        axes.set_title(title, color=_INK)
        _frame(axes, "", "")
        axes.spines["left"].set_visible(False)
        axes.grid(axis="x", color=_INK, alpha=0.6, linewidth=1.0)
        return _saved(figure, drawn)


def _known(value: object) -> tuple[int, float, str]:
    """A value of a setting, so that numbers come in their order, then words, and first what is not set."""
    if value is None:
        return 0, 0.0, "–"
    if isinstance(value, bool | str):
        return 2, 0.0, str(value)
    return 1, float(value), f"{value:g}"


def training(
    histories: Mapping[str, Mapping[str, list]], *, title: str, score: str, xlabel: str = "iteration"
) -> bytes | None:
    """Draws training loss and, where there is one, the dev score against the iteration, a line a name.

    Args:
      histories: Name to what `history.compact` gives.
      title: Above the axes.
      score: What the dev score is, the label of its axis.
      xlabel: What a step is.

    Returns:
      The SVG file; None where no history has a line, that is two known losses or scores.

    Example:
      >>> history = {"step": [0, 1], "loss": [0.5, 0.25], "validation": [0.6, 0.7]}
      >>> b"dev MRR" in training({"s2net": history}, title="training", score="dev MRR")
      True
    """
    plots = []
    for column, label in (("loss", "training loss"), ("validation", score)):
        series = {name: history.points(one, column) for name, one in histories.items()}
        series = {name: points for name, points in series.items() if len(points) > 1}
        if series:
            values = [y for points in series.values() for _, y in points]
            wide = column == "loss" and 0 < _WIDE * min(values) <= max(values)
            plots.append(Panel(series, xlabel, label, xscale="whole", yscale="log" if wide else "linear"))
    return panels(plots, title=title) if plots else None


def _rounded(series: Mapping[str, Sequence[tuple[float, float]]]) -> list:
    """What is drawn, and what the digest is of: numbers of six digits."""
    return [[name, [[float(f"{v:.6g}") for v in p] for p in series[name]]] for name in series]


def _style(index: int, num_points: int) -> dict:
    style = {"color": _COLOURS[index % len(_COLOURS)]}
    if num_points <= _FEW:
        return {**style, "marker": _MARKERS[index % len(_MARKERS)], "markersize": 4}
    return {**style, "linestyle": _DASHES[index % len(_DASHES)]}


def _ticks(axis, scale: str) -> None:
    """Ticks at whole numbers; or at powers of ten and, where these are few, at 2 and 5 times each."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

    if scale == "whole":
        axis.set_major_locator(MaxNLocator("auto", integer=True))
    if scale != "log":
        return
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1.0,) if high / low > 200 else (1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())


def _frame(axes, xlabel: str, ylabel: str) -> None:
    """Labels, grid and spines in the ink of the page."""
    axes.set_xlabel(xlabel, color=_INK)
    axes.set_ylabel(ylabel, color=_INK)
    axes.tick_params(colors=_INK)
    axes.grid(color=_INK, alpha=0.25, linewidth=0.6)
    for side, spine in axes.spines.items():
        spine.set_color(_INK)
        spine.set_visible(side in ("left", "bottom"))


def _saved(figure, drawn: list) -> bytes:
    """The SVG file, with the digest of what it draws."""
    stamp = hashlib.sha256(json.dumps(drawn).encode()).hexdigest()
    file = io.BytesIO()
    figure.savefig(file, format="svg", transparent=True, metadata={"Date": None, "Description": f"jaxsim data {stamp}"})
    return file.getvalue()


def same(first: bytes, second: bytes) -> bool:
    """Whether two files draw the same: equal bytes but for names or, from two versions of matplotlib, equal data.

    Matplotlib names a clip path by a digest of its unrounded coordinates, whose last bits differ between processors.
    """
    if _unnamed(first) == _unnamed(second):
        return True
    return _creator(first) != _creator(second) and digest(first) is not None and digest(first) == digest(second)


def _unnamed(svg: bytes) -> bytes:
    """The file with its clip paths numbered in the order in which they are used."""
    numbers: dict[bytes, bytes] = {}
    return re.sub(rb"\bp[0-9a-f]{10}\b", lambda name: numbers.setdefault(name[0], b"p%d" % len(numbers)), svg)


def digest(svg: bytes) -> bytes | None:
    """Digest of the data in a file that `lines` or `panels` drew; None for any other file."""
    match = re.search(rb"jaxsim data ([0-9a-f]{64})", svg)
    return match and match[1]


def _creator(svg: bytes) -> bytes | None:
    match = re.search(rb"Matplotlib v([0-9.a-z+]+)", svg)
    return match and match[1]
