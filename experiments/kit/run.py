"""The command line of an experiment: presets, tables, rows, and where records go."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from experiments.kit import records
from experiments.kit.environment import environment
from experiments.kit.fits import Fits
from experiments.kit.judge import Claim
from experiments.kit.table import Data, Row, Table, say
from jaxsim.data import MissingCorpus, fetching

__all__ = ["RESULTS", "Experiment", "Plan", "add_fetch", "run", "with_corpora"]

T = TypeVar("T")

ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "experiments" / "results"


@dataclass(frozen=True)
class Plan:
    """One table of an experiment.

    Attributes:
      rows: Row -> function of a `Table` that returns a `Row`, or None where the row has no place in the table; in the
        order in which they run.
      presets: Preset -> settings, a frozen dataclass. `quick` takes a minute and never writes among the committed
        records; the others may.
      on_request: Presets that fill this table only where ``--tables`` names it.
      rows_on_request: Rows that the preset `quick` leaves out unless ``--rows`` names them.
      split: Version of the rule by which the table's data are dealt to parts. A record holds it; one with another
        version is `stale`, and no table mixes two.
      reads: Row -> the settings that it reads, for rows that do not read all; a change of others leaves their records.
      needs: Row -> what it needs that a machine may lack: a preset, a program; the report says so of rows without a
        record.
      seen: Whether what our own row does was settled with this table's test queries in view: a win there is no test,
        and no claim is supported.
    """

    rows: Mapping[str, Callable[[Table], Row | None]]
    presets: Mapping[str, Any]
    on_request: Sequence[str] = ()
    rows_on_request: Sequence[str] = ()
    split: int = 1
    reads: Mapping[str, Collection[str]] = field(default_factory=dict)
    needs: Mapping[str, str] = field(default_factory=dict)
    seen: bool = False


@dataclass(frozen=True)
class Experiment:
    """What a script is about; the report and the checks read it from the script's constant `EXPERIMENT`.

    Attributes:
      name: Folder of its records, and what they are called; it stays when a script moves.
      about: The script's docstring.
      load: Function of a table's name and the settings that returns its `Data`; it gets `options` as keywords.
      tables: Table -> `Plan`.
      claims: What the paper claims.
      options: Name of an option of the command line -> its help; the value is text, or None.
      shown: Tables that `BENCHMARKS.md` has whole, beside the first of those that stand beside a table of the paper.
    """

    name: str
    about: str
    load: Callable[..., Data]
    tables: Mapping[str, Plan]
    claims: Sequence[Claim] = ()
    options: Mapping[str, str] = field(default_factory=dict)
    shown: Sequence[str] = ()


def run(experiment: Experiment, arguments: Sequence[str] | None = None) -> Path:
    """Fills the tables that the command line asks for, row by row; rows that have a record are left unless ``--again``.

    A record of another preset is no reason to leave a row, nor is it replaced unasked: it is refused.

    Args:
      experiment: What to run.
      arguments: Of the command line; those of the process unless given.

    Returns:
      The root of the records, which is printed as well.

    Raises:
      SystemExit: status 2 with one line on stderr: an unknown table, row or preset; a row that no table to fill has;
        a missing corpus; a folder that cannot be written; the quick preset among the committed records; records of an
        uncommitted tree among them; records of another preset.
    """
    parser = _parser(experiment)
    given = parser.parse_args(arguments)
    quick = given.preset == "quick"
    names = _tables(parser, experiment, given.preset, given.tables)
    out, cache = _folders(parser, given.out, given.cache, quick=quick)
    described = environment(None if arguments is None else ["python", "-m", experiment.load.__module__, *arguments])
    if described["dirty"] and out.is_relative_to(RESULTS):
        parser.exit(2, f"{parser.prog}: expected a committed tree, got uncommitted changes (or give --out)\n")
    options = {name: getattr(given, name) for name in experiment.options}
    work = _rows(parser, experiment, names, given, out)
    for name, rows in work.items():
        plan = experiment.tables[name]
        settings = plan.presets[given.preset]
        try:
            data, seconds = with_corpora(partial(_timed, experiment.load, name, settings, **options), fetch=given.fetch)
        except MissingCorpus as error:
            if quick and not given.tables and not os.environ.get("JAXSIM_DATA"):
                print(f"{experiment.name}: {name} skipped, nothing was run: {error}")
                continue
            parser.exit(2, f"{parser.prog}: {error}\n")
        say(f"{name}: {data.name} {dict(data.counts).get('split', dict(data.counts))}, {seconds:.0f} s")
        table = Table(experiment.name, name, settings, given.preset, data, out, Fits(cache, say), seconds, described,
                      plan.split)
        for row in rows:
            try:
                with_corpora(partial(table.fill, row, plan.rows[row]), fetch=given.fetch)
            except MissingCorpus as error:
                parser.exit(2, f"{parser.prog}: {row}: {error}\n")
    print(out)
    return out


def _timed(load: Callable[..., Data], *arguments: Any, **options: Any) -> tuple[Data, float]:
    """What a loader returns, and the seconds that it took."""
    begun = time.perf_counter()
    data = load(*arguments, **options)
    return data, time.perf_counter() - begun


def add_fetch(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--fetch``."""
    parser.add_argument("--fetch", action="store_true", help="fetch corpora that are not in the folder JAXSIM_DATA yet")


def with_corpora(work: Callable[[], T], *, fetch: bool) -> T:
    """Does what reads corpora; those that lack are fetched into the folder that ``JAXSIM_DATA`` names.

    Args:
      work: Done again from its start after a corpus was fetched.
      fetch: Get a corpus that is not there from its public source; else it is an error.

    Returns:
      What ``work`` returns.

    Raises:
      MissingCorpus: a corpus is not there and is not to be fetched, or cannot be: the message says why.
    """
    tried: list[str] = []
    while True:
        try:
            return work()
        except MissingCorpus as error:
            if not fetch or error.corpus is None or error.corpus in tried or not os.environ.get("JAXSIM_DATA"):
                raise
            tried.append(error.corpus)
        say(fetching.plan(tried[-1]))
        try:
            fetching.fetch(tried[-1], root=os.environ["JAXSIM_DATA"])
        except (OSError, ValueError) as error:
            raise MissingCorpus(f"{tried[-1]}: expected it to be fetched, got {error}") from error


def _parser(experiment: Experiment) -> argparse.ArgumentParser:
    presets = list(dict.fromkeys(name for plan in experiment.tables.values() for name in plan.presets))
    rows = list(dict.fromkeys(row for plan in experiment.tables.values() for row in plan.rows))
    parser = argparse.ArgumentParser(description=experiment.about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=presets, default="quick")
    parser.add_argument("--tables", nargs="+", choices=tuple(experiment.tables), metavar="TABLE",
                        help=f"of {', '.join(experiment.tables)}; those of the preset unless given")  # fmt: skip
    parser.add_argument("--rows", nargs="+", choices=rows, metavar="ROW",
                        help=f"of {', '.join(rows)}; all unless given")  # fmt: skip
    add_fetch(parser)
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more, of "
                        "whichever preset")  # fmt: skip
    parser.add_argument("--out", type=Path, help="folder of the records; a temporary one for quick, otherwise "
                        "experiments/results")  # fmt: skip
    parser.add_argument("--cache", type=Path, help="folder of fits; OUT/cache for quick, otherwise runs/fits")
    for name, about in experiment.options.items():
        parser.add_argument(f"--{name}", help=about)
    return parser


def _tables(
    parser: argparse.ArgumentParser, experiment: Experiment, preset: str, wanted: Sequence[str] | None
) -> list[str]:
    """Names of the tables to fill."""
    for name in wanted or ():
        if preset not in experiment.tables[name].presets:
            have = ", ".join(experiment.tables[name].presets)
            parser.error(f"--tables: expected tables with a preset {preset}, got {name}, which has {have}")
    return [name for name, plan in experiment.tables.items()
            if (name in wanted if wanted else preset in plan.presets and preset not in plan.on_request)]  # fmt: skip


def _rows(
    parser: argparse.ArgumentParser, experiment: Experiment, names: Sequence[str], given: argparse.Namespace, out: Path
) -> dict[str, list[str]]:
    """Rows to run of each table that has any, known before the first is run."""
    work: dict[str, list[str]] = {}
    nowhere = [row for row in given.rows or () if not any(row in experiment.tables[name].rows for name in names)]
    if nowhere:
        have = [name for name, plan in experiment.tables.items() if any(row in plan.rows for row in nowhere)]
        parser.error(f"--rows: expected rows of the tables to fill ({', '.join(names)}), got {', '.join(nowhere)} "
                     f"(give --tables some of {', '.join(have)})")  # fmt: skip
    for name in names:
        plan, folder = experiment.tables[name], out / experiment.name / name
        rows = [row for row in plan.rows if (row in given.rows if given.rows else not (
            given.preset == "quick" and row in plan.rows_on_request))]  # fmt: skip
        work[name] = [row for row in rows
                      if given.again or not _is_there(parser, folder / f"{row}.json", plan, given.preset)]  # fmt: skip
    return {name: rows for name, rows in work.items() if rows}


def _is_there(parser: argparse.ArgumentParser, path: Path, plan: Plan, preset: str) -> bool:
    """Whether a row has a record already, of this preset or of one with equal settings; one of another is refused."""
    if not path.exists():
        return False
    try:
        had = records.read(path).get("preset", {}).get("name", preset)  # older records do not say
    except ValueError as error:
        parser.exit(2, f"{parser.prog}: {error} (--again runs the row once more)\n")
    if had != preset and plan.presets.get(had) != plan.presets[preset]:
        parser.exit(2, f"{parser.prog}: {path}: expected a record of the preset {preset}, got one of {had} (give "
                       "--again to replace it, or another --out)\n")  # fmt: skip
    return True


def _folders(
    parser: argparse.ArgumentParser, out: Path | None, cache: Path | None, *, quick: bool
) -> tuple[Path, Path]:
    """Folders of the records and of the fits; both exist and can be written to."""
    if quick and out is not None and out.resolve().is_relative_to(RESULTS):
        parser.error("--out: expected a folder outside experiments/results for the quick preset")
    out = (out or (Path(tempfile.mkdtemp(prefix="jaxsim-")) if quick else RESULTS)).resolve()
    cache = cache or (out / "cache" if quick else ROOT / "runs" / "fits")
    try:
        out.mkdir(parents=True, exist_ok=True)
        cache.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.exit(2, f"{parser.prog}: --out, --cache: expected folders that can be written to, got {error}\n")
    return out, cache
