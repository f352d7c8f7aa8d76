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

_INK = "#808080"
_COLOURS = (
    "#2f86d0", "#d9632a", "#3a9d5d", "#b35fc4", "#b98a00", "#d14a6b", "#6a7be6", "#7d8f2e", "#1f9aa0", "#a07050",
)  # fmt: skip
_MARKERS = "os^Dv<>PXp"
_SETTINGS = {"svg.hashsalt": "jaxsim", "svg.fonttype": "none", "font.size": 10, "axes.titlesize": 10}


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

    drawn = [title, xlabel, ylabel, [[name, [[float(f"{v:.6g}") for v in p] for p in series[name]]] for name in series]]
    stamp = hashlib.sha256(json.dumps(drawn).encode()).hexdigest()
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
        axes.set_xlabel(xlabel, color=_INK)
        axes.set_ylabel(ylabel, color=_INK)
        axes.tick_params(colors=_INK)
        axes.grid(color=_INK, alpha=0.25, linewidth=0.6)
        for side, spine in axes.spines.items():
            spine.set_color(_INK)
            spine.set_visible(side in ("left", "bottom"))
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, labelcolor=_INK)
        file = io.BytesIO()
        figure.savefig(
            file, format="svg", transparent=True, metadata={"Date": None, "Description": f"jaxsim data {stamp}"}
        )
    return file.getvalue()


def same(first: bytes, second: bytes) -> bool:
    """Whether two files draw the same: equal bytes or, from two versions of matplotlib, equal data."""
    if first == second:
        return True
    return _creator(first) != _creator(second) and digest(first) is not None and digest(first) == digest(second)


def digest(svg: bytes) -> bytes | None:
    """Digest of the data in a file that `lines` drew; None for any other file."""
    found = re.search(rb"jaxsim data ([0-9a-f]{64})", svg)
    return found and found[1]


def _creator(svg: bytes) -> bytes | None:
    found = re.search(rb"Matplotlib v([0-9.a-z+]+)", svg)
    return found and found[1]
