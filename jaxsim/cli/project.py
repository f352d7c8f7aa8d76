"""Commands about this project itself: `demo` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxsim.cli.output import show, show_result
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


@app.command(epilog="\b\nExample:\n  jaxsim report --check")
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
            show(path)
        return
    differences = program.check(results, benchmarks, figures)
    for line in differences:
        show(line)
    if differences:
        raise typer.Exit(1)
