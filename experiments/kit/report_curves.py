"""The figures of `report` that are drawn from the curves and histories of a table's records."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.kit import judge, papers, report_tables
from jaxsim.pictures import figures

_SCORES = {"mrr": "MRR", "ndcg@10": "nDCG@10"}
_METRICS = {"mrr": "MRR", "map": "MAP", "auc": "AUC", "accuracy@all": "accuracy, all questions", "f1": "F1"}
_SIZES = {"k": ("", "dimension", "dimension k"), "pairs": ("-pairs", "training pairs", "training pairs of pairs"),
          "links": ("-links", "training links", "training links"),
          "tokens": ("-tokens", "training text", "tokens of training text"),
          "words": ("-words", "words read", "words that a network read")}  # fmt: skip
"""What a curve may go along: suffix of the figure's file, name, label of the axis."""

_BESIDE = {"003 Table 1": ("tfidf", "lsa"), "003 Table 2": ("tfidf", "lsi+tfidf")}
"""The rows that the best row of SSI stands beside, query by query: 003 Figure 1 has TFIDF and LSI."""
_DOTS = 1000
"""Queries of a scatter plot, at most: a file of all would be large, and its dots would hide each other."""

Figures = dict[str, tuple[str, bytes | None]]


def against_sizes(title: str, rows: Mapping[str, dict[str, Any]], paper: str) -> Figures:
    """A score by dimension or by the number of training examples, of the rows whose curves tell both.

    Args:
      title: of the table.
      rows: records by path.
      paper: whose order of rows the legend follows.

    Returns:
      Suffix of the figure's file -> what it shows, and the SVG file (None where no record has such a curve). Points of
      the test set are drawn where every row that has points has some of it, and else those of development. The score is
      the first of MRR, MAP, AUC, accuracy and F1 that any curve has.

    Raises:
      ValueError: for two points of one row at one size.

    Example:
      >>> figures = against_sizes("empty", {}, "none")
      >>> figures["-links"]
      ('Score against training links', None)
    """
    figures = {}
    for size, (suffix, name, label) in _SIZES.items():
        points = [point for record in rows.values() for point in record["curve"] if point.get(size)]
        known = [metric for metric in _METRICS if any(point.get(metric) is not None for point in points)]
        told = _METRICS[known[0]] if known else "Score"
        figures[suffix] = f"{told} against {name}", _drawn(title, rows, paper, size, label, known[0]) if known else None
    return figures


def roc(title: str, rows: Mapping[str, dict[str, Any]], paper: str, results: Path) -> bytes | None:
    """The ROC curves that stand beside the records of a table, of the paper's rows, at low false-positive rates.

    Args:
      title: of the table.
      rows: records by path.
      paper: whose rows are drawn, in its order; all of them where it prints none.
      results: root of the records.

    Returns:
      The SVG file, or None where no record has a curve.

    Example:
      >>> roc("empty", {}, "none", Path("."))
    """
    printed = {row.row for row in papers.TABLES[paper].rows} if paper in papers.TABLES else set()
    series = {}
    for _, record in report_tables.ordered(rows, paper):
        if record["row"] in printed or not printed:
            rates = [judge.per_query(record, name, results) for name in ("roc_fpr", "roc_tpr")]
            if all(rate is not None for rate in rates):
                series[record["row"]] = list(zip(*(rate.tolist() for rate in rates), strict=True))
    if not series:
        return None
    return figures.panels([figures.Panel(series, "false-positive rate", "true-positive rate")], title=title)


def queries(title: str, rows: Mapping[str, dict[str, Any]], paper: str, results: Path) -> bytes | None:
    """Average precision of each test query, of a table's best row of SSI against TFIDF and LSI (003 Figure 1).

    Args:
      title: of the table.
      rows: records by path.
      paper: the printed table; only `003 Table 1` and `003 Table 2` have the figure. Of its rows that are called SSI,
        the one with the highest MAP of ours is drawn.
      results: root of the records.

    Returns:
      The SVG file, of every n-th query where there are more than 1,000; None where a row or its values are missing.

    Example:
      >>> queries("empty", {}, "003 Table 1", Path("."))
    """
    records = {record["row"]: record for record in rows.values() if "map" in record["metrics"]}
    printed = papers.TABLES[paper].rows if paper in _BESIDE else ()
    learned = [row.row for row in printed if row.label.startswith("SSI") and row.row in records]
    if not learned:
        return None
    best = max(learned, key=lambda row: records[row]["metrics"]["map"]["mean"])
    panels, upward = [], judge.per_query(records[best], "map", results)
    for row in _BESIDE[paper]:
        along = judge.per_query(records[row], "map", results) if row in records else None
        if along is None or upward is None or along.shape != upward.shape:
            continue
        step = -(-along.size // _DOTS)
        share, level = np.mean(upward > along), np.mean(upward == along)
        points = list(zip(along[::step].tolist(), upward[::step].tolist(), strict=True))
        label = f"{row}: {best} is above for {share:.0%}, level for {level:.0%}"
        panels.append(figures.Panel({"queries": points}, label, best))
    return figures.scatter(panels, title=f"{title}\naverage precision of test queries") if panels else None


def _drawn(title: str, rows: Mapping[str, dict[str, Any]], paper: str, size: str, label: str, metric: str
           ) -> bytes | None:
    series = {}
    told = {path: [point for point in record["curve"] if point.get(size) and point.get(metric) is not None]
            for path, record in rows.items()}
    kinds = [{point.get("split", "dev") for point in points} for points in told.values() if points]
    split = "test" if all("test" in own for own in kinds) else "dev"
    for path, record in report_tables.ordered(rows, paper):
        points = [point for point in told[path] if point.get("split", "dev") == split]
        sizes = [point[size] for point in points]
        if len(set(sizes)) < len(sizes):
            raise ValueError(f"{path}: curve: expected one point a size with {metric}, got two at one {size}")
        if len(points) > 1:
            series[record["row"]] = sorted((point[size], point[metric]) for point in points)
    if not series:
        return None
    where = "test" if split == "test" else "development"
    return figures.lines(series, title=title, xlabel=label, ylabel=f"{_METRICS[metric]} ({where} set)")


def training(title: str, rows: Mapping[str, dict[str, Any]], paper: str) -> bytes | None:
    """Loss and dev score by iteration, of the rows whose records hold the history of their fit (the first seed's).

    Args:
      title: of the table.
      rows: records by path.
      paper: whose order of rows the legend follows.

    Returns:
      The SVG file, or None where no record has a history.

    Example:
      >>> training("empty", {}, "none") is None
      True
    """
    kept = [record for _, record in report_tables.ordered(rows, paper) if "history" in record["fit"]]
    what = "MRR" if all("mrr" in record["dev"] for record in kept) else "score"
    histories = {record["row"]: record["fit"]["history"] for record in kept}
    return figures.training(histories, title=title, score=f"{what} (development set)")


def seconds(title: str, rows: Mapping[str, dict[str, Any]], paper: str) -> bytes | None:
    """Best dev score so far by seconds of training; closed forms are one step, from when they are ready to the end.

    The score is MRR, or nDCG@10 where no curve has that.

    Args:
      title: of the table.
      rows: records by path.
      paper: whose order of rows the legend follows.

    Returns:
      The SVG file, or None where no curve is over seconds.

    Example:
      >>> seconds("empty", {}, "none") is None
      True
    """
    curves = {record["row"]: [point for point in record["curve"] if point.get("seconds") and "k" not in point]
              for _, record in report_tables.ordered(rows, paper)}
    every = [point for points in curves.values() for point in points]
    score = next((name for name in _SCORES if any(point.get(name) is not None for point in every)), None)
    if score is None:
        return None
    series = {}
    for row, points in curves.items():
        scored = [(point["seconds"], point[score]) for point in points if point.get(score) is not None]
        if scored:
            tops = itertools.accumulate((value for _, value in scored), max)
            series[row] = [(at, top) for (at, _), top in zip(scored, tops, strict=True)]
    last = max(points[-1][0] for points in series.values())
    series = {name: [*points, *([(last, points[-1][1])] if points[-1][0] < last else [])]
              for name, points in series.items()}  # fmt: skip
    labels = "seconds of training, from raw texts", f"best {_SCORES[score]} so far (development set)"
    return figures.panels([figures.Panel(series, *labels, xscale="log")], title=title)
