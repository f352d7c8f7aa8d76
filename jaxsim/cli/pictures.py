"""Pictures of one model, which `report` and `evaluate` draw."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import keeping, naming, nothing_written, say

if TYPE_CHECKING:
    from jaxsim.data.tables import Table
    from jaxsim.model import Model

ExamplesOption = Annotated[int | None, typer.Option(min=1, help="Queries in neighbours.html, or mistakes in "
                                                     "report.html; 20 unless given.")]


def check_place(folder: Path | None, option: str) -> None:
    """Refuses a folder that is none, before any work is done.

    Args:
      folder: where `draw` is to write, or None.
      option: the option that named it.

    Raises:
      ValueError: if something else is there.
    """
    from jaxsim import checks

    free = folder is None or folder.is_dir() or not folder.exists()
    checks.expect(free, option, "a folder, new or old", f"a file ({folder})")


def read(model: Model, source: str, *columns) -> Table:
    """A table of pairs to measure a model by; says so where the model was trained on some of them.

    Args:
      model: the model.
      source: a path, or ``"-"``.
      *columns: format and columns, as for `options.read_table`.

    Returns:
      `Table`.
    """
    from jaxsim import checks
    from jaxsim.data import sketches

    table = options.read_table(source, "--pairs", model.languages, *columns)
    if _trained_on(model, table):
        say(f"{table.pairs.name}: the model was trained on these pairs, so the figures are not those of new ones")
        return table
    number, told = sketches.known(model.training.get("sketch", ""), table.pairs)
    if number:
        every = told == len(table.pairs)
        of = f"{told:,}" if every else checks.counted(told, "pair that can be told", "pairs that can be told")
        of = f"{number:,} of the {of}" + " pairs" * every
        say(f"{table.pairs.name}: {of} {'was' if number == 1 else 'were'} in the model's training, so the figures are "
            "not those of new ones")
    return table


def _trained_on(model: Model, table: Table) -> bool:
    """Whether a table is the one that a model was trained on, whichever of its rows either of them takes."""
    from jaxsim.data import tables

    data = model.training.get("data", {})
    known = (data.get("sha256"), *data.get("texts_sha256", ()))  # earlier versions have the first alone
    return any(digest in known for pairs in (table.pairs, tables.mates(table)[0])
               for digest in (pairs.sha256, pairs.texts_sha256))  # fmt: skip


def draw(model: Model, table: Table, folder: Path, examples: int | None) -> dict[str, str]:
    """Writes the pictures; says which cannot be drawn of this model.

    Args:
      model: the model.
      table: pairs unseen in its training.
      folder: made if it is not there.
      examples: queries on the page of neighbours; 20 if None.

    Returns:
      Path of each picture by its name.
    """
    from jaxsim.pictures import report

    with naming(folder), keeping(f"every file in {folder} is whole; the same command draws all of them"):
        result = report.write(folder, model, table.pairs, table.labels, examples=examples or 20)
    if "training" not in result:
        say(f"{folder}: no training curve, this model keeps no history of its training (closed forms have none)")
    if "dimensions" not in result:
        say(f"{folder}: no curve of dimensions, which takes two or more, and no SSI, activation or bare words")
    return {name: str(path) for name, path in result.items()}


def page(model: Model, table: Table, folder: Path, examples: int | None) -> str:
    """Writes the page about a model.

    Args:
      model: the model.
      table: pairs unseen in its training.
      folder: made if it is not there.
      examples: mistakes on the page; 20 if None.

    Returns:
      Path of the page.
    """
    from jaxsim.pictures import model_page

    with naming(folder), keeping(nothing_written(folder / model_page.FILE)):
        return str(model_page.write(folder, model, table.pairs, table.labels, examples=examples or 20))
