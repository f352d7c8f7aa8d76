"""Limits written before a run, and comparisons of rows: whether they hold, by the records of today.

A limit of one row (seconds, memory, a share) has its figure in the record. A comparison of two rows of a table has none
there: rows are run again, one without the other, so that a figure of the day of the run would be about rows that are
gone. It is made here from the per-query values of both records by `judge.compare`, which averages the two directions of
a pair and counts seeds. Two records may ask for the same comparison; it counts once.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from experiments.kit import judge
from experiments.kit.report_tables import DASH, markdown, metric_name


class Judged(NamedTuple):
    """A limit or a comparison, and what became of it.

    Attributes:
      row: Whose record asks.
      name: What is bound; of a comparison with its test.
      value: None where a comparison cannot be made.
      bound: ``at least 0``; empty where nothing was expected.
      holds: None where there is no value or no bound.
    """

    row: str
    name: str
    value: float | None
    bound: str
    holds: bool | None


def judged(table: Iterable[Mapping[str, Any]], results: Path) -> list[Judged]:
    """All limits and comparisons of a table.

    Args:
      table: Its records.
      results: Root of the records, for per-query values.

    Returns:
      One entry each, in the order of the records.
    """
    rows = {record["row"]: record for record in table}
    found, made = [], []
    for row, record in rows.items():
        found += [_limit(row, limit) for limit in record.get("limits", ())]
        new = [one for one in record.get("comparisons", ()) if one not in made]
        found += [_comparison(row, one, rows, results) for one in new]
        made += new
    return found


def table(rows: Mapping[str, Mapping[str, Any]], results: Path) -> str:
    """Limits and comparisons of a table, a line each.

    Args:
      rows: Its records by path.
      results: Root of the records.

    Returns:
      Markdown; empty where there are none.
    """
    told = {True: "holds", False: "**missed**", None: ""}
    lines = [(one.row, one.name, DASH if one.value is None else f"{one.value:.3g}", one.bound or DASH, told[one.holds])
             for one in judged((record for _, record in sorted(rows.items())), results)]  # fmt: skip
    return "\n" + markdown(("row", "limit or comparison", "value", "expected", ""), lines) if lines else ""


def counted(tables: Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]], results: Path) -> str:
    """How many limits written before the run hold, and which do not.

    Args:
      tables: ``(experiment, table)`` -> row -> record.
      results: Root of the records.

    Returns:
      Markdown; empty where no record has limits.
    """
    every = [(f"{experiment}, {name}, {one.row}", one) for (experiment, name), rows in tables.items()
             for one in judged(rows.values(), results) if one.bound]  # fmt: skip
    if not every:
        return ""
    missed = [f"{where}: {one.name} {one.value:.3g}, {one.bound}" for where, one in every if one.holds is False]
    unknown = [f"{where}: {one.name}" for where, one in every if one.holds is None]
    known = len(every) - len(unknown)
    text = f"Limits written before the run: {known - len(missed)} of {known} hold"
    text += f"; missed: {'; '.join(missed)}." if missed else "."
    text += " Those between two rows of a table are judged by the records that both have now."
    return text + (f" Not judged: {'; '.join(unknown)}.\n" if unknown else "\n")


def _limit(row: str, limit: Mapping[str, Any]) -> Judged:
    """A limit whose figure the record has."""
    value = limit["value"]
    if "at_most" in limit:
        return Judged(row, limit["name"], value, f"at most {limit['at_most']:.3g}", value <= limit["at_most"])
    return Judged(row, limit["name"], value, f"at least {limit['at_least']:.3g}", value >= limit["at_least"])


def _comparison(row: str, asked: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]], results: Path) -> Judged:
    """Two rows by their records."""
    better, worse, metric = (asked[name] for name in ("better", "worse", "metric"))
    name = f"{metric_name(metric)} of {better} less that of {worse}"
    at_least = asked.get("at_least")
    bound = "" if at_least is None else f"at least {at_least:.3g}"
    missing = [one for one in (better, worse) if one not in rows or metric not in rows[one]["metrics"]]
    if missing:
        return Judged(row, f"{name}: no record of {' and '.join(missing)}", None, bound, None)
    if judge.parts_of(rows[better]) != judge.parts_of(rows[worse]):
        return Judged(row, f"{name}: the two rows are of different splits", None, bound, None)
    test = judge.compare(rows[better], rows[worse], metric, results)
    if test is None:
        return Judged(row, f"{name}: no test is possible, each row is one value", None, bound, None)
    how, value = f" ({test['test']}, p = {judge.p_text(test['p'])})", test["difference"]
    if asked["by"] == "lower end":
        how, value = f": {value:+.4f}{how}, the lower end of the 95 % interval", test["interval"][0]
    return Judged(row, name + how, value, bound, None if at_least is None else value >= at_least)
