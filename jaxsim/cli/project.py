"""Commands about this project itself: `demo` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxsim.cli import options, pictures
from jaxsim.cli.output import keeping, show, show_result
from jaxsim.cli.program import app


@app.command(epilog="\b\nExample:\n  jaxsim demo --out demo --k 100")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the record and the picture.")] = Path("runs/demo"),
    k: Annotated[int, typer.Option(min=1, help="Dimension of the projections.")] = 300,
    max_iter: Annotated[int, typer.Option(min=1, help="L-BFGS iterations of S2Net at most.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of whatever is random.")] = 0,
) -> None:
    """Learn a projection from the docstrings of installed packages and compare it with six baselines."""
    from jaxsim import demo as program

    show_result(program.run(out, k=k, max_iter=max_iter, seed=seed))


@app.command(epilog="\b\nExample, pictures of a model of yours:\n"
                    "  jaxsim report --model model --pairs test.tsv --out figures\n"
                    "Example, tables and figures of this project's records:\n  jaxsim report --check")
def report(
    model: Annotated[Path | None, options.folder("Folder that `jaxsim train` wrote, to draw.")] = None,
    pairs: Annotated[str | None, options.file("Table of pairs unseen in its training; - for stdin.")] = None,
    out: Annotated[Path | None, options.folder("Folder for its pictures; files of their names are replaced.")] = None,
    examples: pictures.ExamplesOption = None,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    label: options.LabelOption = None,
    results: Annotated[Path | None, options.folder("Root of the records, experiments/results unless given.")] = None,
    benchmarks: Annotated[Path | None, options.file("The Markdown file, BENCHMARKS.md unless given.")] = None,
    figures: Annotated[Path | None, options.folder("Folder of the figures, docs/figures unless given.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Write nothing; list differences, status 1 if any.")] = False,
) -> None:
    """Draw a model, or make BENCHMARKS.md and its figures from the records. Prints the paths of what it wrote.

    With --model, --pairs and --out: training.svg (loss and dev score, where the model keeps them), dimensions.svg (MRR
    against the dimensions kept, S2Net's turned on principal axes), roc.svg (beside bare term weights) and
    neighbours.html (nearest documents before and after learning, mates marked). All are readable on light and on dark.
    """
    from jaxsim import checks

    mine = {"--model": model, "--pairs": pairs, "--out": out}
    of_tables = {"--examples": examples, "--format": format, "--left": left, "--right": right, "--label": label}
    records = {"--results": results, "--benchmarks": benchmarks, "--figures": figures, "--check": check or None}
    if any(value is not None for value in mine.values()):
        given = next(name for name, value in mine.items() if value is not None)
        for name, value in mine.items():
            checks.expect(value is not None, name, f"a value, with {given}", "none")
        for name, value in records.items():
            checks.expect(value is None, name, f"nothing, with {given}", value)
        _draw(model, pairs, out, examples, (format, left, right, label))
        return
    for name, value in of_tables.items():
        checks.expect(value is None, name, "nothing, without --model", value)
    _records(results or Path("experiments/results"), benchmarks or Path("BENCHMARKS.md"),
             figures or Path("docs/figures"), check)  # fmt: skip


def _draw(model: Path, pairs: str, out: Path, examples: int | None, columns: tuple) -> None:
    """Pictures of one model."""
    from jaxsim.model import Model

    pictures.check_place(out, "--out")
    trained = Model.load(model)
    table = options.read_table(pairs, "--pairs", trained.languages, *columns)
    for path in pictures.draw(trained, table, out, examples).values():
        show(path)


def _records(results: Path, benchmarks: Path, figures: Path, check: bool) -> None:
    """Tables and figures of the records."""
    from jaxsim import report as program

    if not check:
        with keeping("every file is whole; the same command makes all of them"):
            for path in program.generate(results, benchmarks, figures):
                show(path)
        return
    differences = program.check(results, benchmarks, figures)
    for line in differences:
        show(line)
    if differences:
        raise typer.Exit(1)
