"""The papers' own figures, as printed, read from `experiments/papers.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any, NamedTuple

__all__ = ["CITATIONS", "TABLES", "PaperRow", "PaperTable", "read"]


class PaperRow(NamedTuple):
    """One printed row.

    Attributes:
      row: Row id of our records.
      label: The name as printed, and what ours is where that is another model.
      figures: One value a metric of the table, None where the paper prints none.
      k: The dimension printed beside it, None where there is none.
      of: Where the row is another one at this dimension, that row: a point of its curve is a record of this.
      spread: Of each figure as printed (`±`), None where there is none; empty where no figure has one.
      source: Who printed the figures, where it is not the paper of the table.
    """

    row: str
    label: str
    figures: tuple[float | None, ...]
    k: int | None = None
    of: str | None = None
    spread: tuple[float | None, ...] = ()
    source: str = ""


class PaperTable(NamedTuple):
    """One printed table.

    Attributes:
      title: What it measures.
      data: The paper's data, with its split counts.
      metrics: Metric keys of the columns.
      rows: Printed rows in the paper's order, except that the untranslated baseline, our sanity row, comes first.
      repeats: Why its rows are those of another table on our data, where that is so: they are not run twice.
      others: Figures that somebody else printed for rows of ours on the same data; no rows of the paper.
    """

    title: str
    data: str
    metrics: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    repeats: str = ""
    others: tuple[PaperRow, ...] = ()

    @property
    def beside(self) -> dict[str, PaperRow]:
        """All that stands beside ours, by the ids of our records: the paper's rows, then those of others."""
        return {row.row: row for row in (*self.rows, *self.others)}


def read(path: Path) -> tuple[dict[str, str], dict[str, PaperTable]]:
    """Reads citations and tables.

    Args:
      path: The TOML file.

    Returns:
      Reference of each paper by the name that records use, and printed tables by the name that a record's ``paper``
      gives.

    Raises:
      ValueError: a table's paper has no citation, a row has not one figure a metric (or a spread for some of them
        only), or a row of others names no source; the message names them.
    """
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    tables = {}
    for name, table in content["tables"].items():
        rows, others = (tuple(map(_row, table.get(part, ()))) for part in ("rows", "others"))
        if name.split()[0] not in content["citations"]:
            raise ValueError(f"{path}: {name}: expected a paper of [citations], got {name.split()[0]}")
        size = len(table["metrics"])
        wrong = [row.row for row in (*rows, *others) if len(row.figures) != size or len(row.spread) not in (0, size)]
        if wrong:
            raise ValueError(f"{path}: {name}: expected {size} figures a row, got others: {wrong}")
        unnamed = [row.row for row in others if not row.source]
        if unnamed:
            raise ValueError(f"{path}: {name}: expected a source of every row of others, got none: {unnamed}")
        tables[name] = PaperTable(table["title"], table["data"], tuple(table["metrics"]), rows,
                                  table.get("repeats", ""), others)
    return content["citations"], tables


def _row(row: dict[str, Any]) -> PaperRow:
    figures, spread = (tuple(None if x == "-" else x for x in row.get(name, ())) for name in ("figures", "spread"))
    return PaperRow(row["row"], row["label"], figures, row.get("k"), row.get("of"), spread, row.get("source", ""))


CITATIONS, TABLES = read(Path(__file__).resolve().parents[1] / "papers.toml")
