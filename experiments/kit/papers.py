"""The papers' own figures, as printed, read from `experiments/papers.toml`."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import NamedTuple

__all__ = ["CITATIONS", "TABLES", "PaperRow", "PaperTable", "read"]


class PaperRow(NamedTuple):
    """One printed row.

    Attributes:
      row: Row id of our records.
      label: The name as printed.
      figures: One value a metric of the table, None where the paper prints none.
      k: The dimension printed beside it, None where there is none.
      of: Where the row is another one at this dimension, that row: a point of its curve is a record of this.
    """

    row: str
    label: str
    figures: tuple[float | None, ...]
    k: int | None = None
    of: str | None = None


class PaperTable(NamedTuple):
    """One printed table.

    Attributes:
      title: What it measures.
      data: The paper's data, with its split counts.
      metrics: Metric keys of the columns.
      rows: Printed rows in the paper's order, except that the untranslated baseline, our sanity row, comes first.
      repeats: Why its rows are those of another table on our data, where that is so: they are not run twice.
    """

    title: str
    data: str
    metrics: tuple[str, ...]
    rows: tuple[PaperRow, ...]
    repeats: str = ""


def read(path: Path) -> tuple[dict[str, str], dict[str, PaperTable]]:
    """Reads citations and tables.

    Args:
      path: The TOML file.

    Returns:
      Reference of each paper by the name that records use, and printed tables by the name that a record's ``paper``
      gives.

    Raises:
      ValueError: a table's paper has no citation, or a row has not one figure a metric; the message names them.
    """
    content = tomllib.loads(path.read_text(encoding="utf-8"))
    tables = {}
    for name, table in content["tables"].items():
        rows = tuple(PaperRow(row["row"], row["label"], tuple(None if x == "-" else x for x in row["figures"]),
                              row.get("k"), row.get("of")) for row in table["rows"])  # fmt: skip
        if name.split()[0] not in content["citations"]:
            raise ValueError(f"{path}: {name}: expected a paper of [citations], got {name.split()[0]}")
        wrong = [row.row for row in rows if len(row.figures) != len(table["metrics"])]
        if wrong:
            raise ValueError(f"{path}: {name}: expected {len(table['metrics'])} figures a row, got others: {wrong}")
        tables[name] = PaperTable(table["title"], table["data"], tuple(table["metrics"]), rows,
                                  table.get("repeats", ""))
    return content["citations"], tables


CITATIONS, TABLES = read(Path(__file__).resolve().parents[1] / "papers.toml")
