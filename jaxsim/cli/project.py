"""Commands about this project itself: `demo`, `report` and `data`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

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


@app.command(epilog="\b\nExample:\n  jaxsim data\n  jaxsim data mdn --root /path/to/corpora")
def data(
    name: Annotated[str | None, typer.Argument(help="A corpus, to see its terms and to verify its files.")] = None,
    root: Annotated[Path | None, typer.Option(help="Folder of the corpora (else the variable JAXSIM_DATA).")] = None,
) -> None:
    """List the corpora, where each comes from, and whether it is here."""
    from jaxsim.data import catalogue

    if name is not None:
        corpus = catalogue.get(name)
        for title, text in (("title", corpus.title), ("source", corpus.source), ("licence", corpus.licence)):
            show(f"{title}: {text}")
        for file in corpus.files:
            show(f"verified: {catalogue.find(name, file, root=root)}")
        return
    width = max(map(len, catalogue.CORPORA))
    for corpus in catalogue.CORPORA.values():
        show(f"{corpus.name:<{width}}  {_state(corpus, root):<9}  {corpus.title}")


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
