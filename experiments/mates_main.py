"""Command line of the two mate experiments: presets, tables and rows."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from experiments.corpora.mates import CORPORA
from experiments.mates_rows import FULL, QUICK, Table
from experiments.places import records_folder
from jaxsim.data import MissingCorpus

ROOT = Path(__file__).resolve().parent
QUICK_TABLES = ("docstrings",)


def main(
    experiment: str, about: str, rows: dict[str, Callable[[Table], None]], finish: Callable[[Table], None]
) -> None:
    """Fills the tables asked for, row by row; a row that has its record is skipped unless ``--again``."""
    parser = argparse.ArgumentParser(description=about,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full", "paper"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=(*CORPORA, "paper"), metavar="TABLE",
                        help=f"of {', '.join(CORPORA)}; all unless given")
    parser.add_argument("--rows", nargs="+", choices=tuple(rows), metavar="ROW",
                        help=f"of {', '.join(rows)}; all unless given")
    parser.add_argument("--out", type=Path, help="folder of the records; experiments/results for full and paper, a "
                        "temporary folder for quick")
    parser.add_argument("--cache", type=Path, default=ROOT.parent / "runs" / "mates",
                        help="folder of fitted projections")
    parser.add_argument("--release", type=Path, help="the official Europarl release, for --preset paper")
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more")
    parser.add_argument("--judge", action="store_true", help="fit nothing: only mark best sets and statuses "
                        "again, from the records' per-query values")
    given = parser.parse_args()
    quick = given.preset == "quick"
    if given.preset == "paper" and given.release is None:
        parser.error("--release: expected the folder of the official Europarl release, got none")
    out = records_folder(parser, given.out, quick=quick)
    try:
        out.mkdir(parents=True, exist_ok=True)
        given.cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.exit(2, f"{parser.prog}: --out, --cache: expected folders that can be written to, got {error}\n")
    names = given.tables or (("paper",) if given.preset == "paper" else QUICK_TABLES if quick else tuple(CORPORA))
    for name in names:
        if given.judge:
            if (out / experiment / name).is_dir():
                finish(SimpleNamespace(out=out, experiment=experiment, name=name, publish=not quick))
            continue
        try:
            table = Table(experiment, name, QUICK if quick else FULL, out, out / "cache" if quick else given.cache,
                          publish=not quick, release=given.release)
        except MissingCorpus as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
        for row, fill in rows.items():
            if (given.rows is None or row in given.rows) and (given.again or not table.done(row)):
                fill(table)
        finish(table)
    print(out)
