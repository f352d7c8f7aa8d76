"""The command line, `jaxsim` or `python -m jaxsim`.

Results go to stdout, progress and errors to stderr. Bad input is one line that names the file or the option, with exit
status 2; `--debug` shows the traceback instead.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)

INTERRUPTED = 130
"""Exit status after Ctrl-C, 128 + SIGINT."""


@app.callback(help="Learned text similarity: train a projection from pairs of documents and compare it with baselines.")
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    version: Annotated[bool, typer.Option("--version", help="Print the version and stop.", is_eager=True)] = False,
) -> None:
    """Declares the options that `main` takes out before any command is looked at."""
    del debug, version


@app.command()
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the record and the picture.")] = Path("runs/demo"),
    k: Annotated[int, typer.Option(min=1, help="Dimension of the projections.")] = 300,
    max_iter: Annotated[int, typer.Option(min=1, help="L-BFGS iterations of S2Net at most.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of whatever is random.")] = 0,
) -> None:
    """Learn a projection from the docstrings of installed packages and compare it with six baselines."""
    from jaxsim import demo as program

    _show(program.run(out, k=k, max_iter=max_iter, seed=seed))


@app.command()
def report(
    results: Annotated[Path, typer.Option(help="Root of the records.")] = Path("experiments/results"),
    benchmarks: Annotated[Path, typer.Option(help="The Markdown file.")] = Path("BENCHMARKS.md"),
    figures: Annotated[Path, typer.Option(help="Folder of the figures.")] = Path("docs/figures"),
    check: Annotated[bool, typer.Option("--check", help="Write nothing; list differences, status 1 if any.")] = False,
) -> None:
    """Make BENCHMARKS.md and its figures from the records."""
    from jaxsim import report as program

    if not check:
        for path in program.generate(results, benchmarks, figures):
            typer.echo(path)
        return
    differences = program.check(results, benchmarks, figures)
    for line in differences:
        typer.echo(line)
    if differences:
        raise typer.Exit(1)


@app.command()
def data(
    name: Annotated[str | None, typer.Argument(help="A corpus, to see its terms and to verify its files.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of the corpora (else the variable JAXSIM_DATA).")] = None,
) -> None:
    """List the corpora, where each comes from, and whether it is here."""
    from jaxsim.data import catalogue

    if name is not None:
        corpus = catalogue.get(name)
        for title, text in (("title", corpus.title), ("source", corpus.source), ("licence", corpus.licence)):
            typer.echo(f"{title}: {text}")
        for file in corpus.files:
            typer.echo(f"verified: {catalogue.find(name, file, root=root)}")
        return
    width = max(map(len, catalogue.CORPORA))
    for corpus in catalogue.CORPORA.values():
        typer.echo(f"{corpus.name:<{width}}  {_state(corpus, root):<9}  {corpus.title}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command.

    Args:
      arguments: Words after the program's name; those of this process if None.

    Returns:
      The exit status: 0, 1 where a check found a difference, 2 for bad input, 130 after Ctrl-C.

    Raises:
      Exception: whatever went wrong, with `--debug`, and errors that are not about the input.

    Example:
      >>> main(["demo", "--k", "0"])  # stderr: jaxsim: Invalid value for '--k': ...
      2
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in words
    words = [word for word in words if word != "--debug"]
    if words[:1] == ["--version"]:
        from jaxsim import __version__

        typer.echo(__version__)
        return 0
    command = typer.main.get_command(app)
    try:
        status = command.main(args=words or ["--help"], prog_name="jaxsim", standalone_mode=False)
    except (KeyboardInterrupt, typer.Abort):
        status = INTERRUPTED
    except Exception as error:
        message = _message(error)
        if debug or message is None:
            raise
        typer.echo(f"jaxsim: {message}", err=True)
        return 2
    if status == INTERRUPTED:
        typer.echo("jaxsim: interrupted", err=True)
    return status if isinstance(status, int) else 0


def entry() -> None:
    """Runs the command of this process and ends it with the command's status."""
    sys.exit(main())


def _message(error: Exception) -> str | None:
    """One line about an error that the input caused; None for any other, which is a fault of ours."""
    if hasattr(error, "format_message"):
        text = error.format_message()
    elif isinstance(error, OSError) and error.filename is not None and error.strerror is not None:
        text = f"{error.filename}: {error.strerror}"
    elif isinstance(error, ValueError | OSError | ImportError | ArithmeticError):
        text = str(error)
    else:
        return None
    return " ".join(text.split())


def _show(result: Mapping[str, Any]) -> None:
    """Prints a result: nested mappings as aligned rows of numbers, everything else as `name: value`."""
    for name, value in result.items():
        if not isinstance(value, Mapping):
            typer.echo(f"{name}: {value}")
            continue
        width = max([len(name), *(len(str(row)) for row in value)])
        columns = list(dict.fromkeys(key for row in value.values() if isinstance(row, Mapping) for key in row))
        typer.echo("  ".join([f"{name:<{width}}", *(f"{column:>9}" for column in columns)]))
        for row, cells in value.items():
            cells = [cells.get(column, "") for column in columns] if isinstance(cells, Mapping) else [cells]
            shown = [f"{cell:9.4f}" if isinstance(cell, float) else f"{cell!s:>9}" for cell in cells]
            typer.echo("  ".join([f"{row!s:<{width}}", *shown]))


def _state(corpus: Any, root: Path | None) -> str:
    """Whether the files of a corpus are in the data folder."""
    from jaxsim.data import files

    if not corpus.files:
        return "installed"
    if root is None and not os.environ.get("JAXSIM_DATA"):
        return "missing"
    folder = files.root(root) / corpus.name
    present = sum((folder / file).is_file() for file in corpus.files)
    return "present" if present == len(corpus.files) else f"{present} of {len(corpus.files)}" if present else "missing"
