"""Commands about this project itself: `demo` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxsim.cli import options, pictures
from jaxsim.cli.output import show, show_result
from jaxsim.cli.program import app


@app.command(epilog="\b\nExample:\n  jaxsim demo --out demo --k 100")
def demo(
    out: Annotated[Path, typer.Option(help="Folder for the record and the figure.")] = Path("runs/demo"),
    k: Annotated[int, typer.Option(min=1, help="Dimension of the projections.")] = 300,
    max_iter: Annotated[int, typer.Option(min=1, help="L-BFGS iterations of S2Net at most.")] = 40,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
) -> None:
    """Learn a projection from the docstrings of installed packages and compare it with six baselines."""
    from jaxsim.cli import demo as program

    show_result(program.run(out, k=k, max_iter=max_iter, seed=seed))


@app.command(epilog="\b\nExample:\n  jaxsim report --model model --pairs test.tsv --out figures\n"
                    "  jaxsim report --model model --pairs test.tsv --out figures --html")
def report(
    model: Annotated[Path, options.folder("Folder that `jaxsim train` wrote, to draw.")],
    pairs: Annotated[str, options.file("Table of pairs unseen in its training; - for stdin.")],
    out: Annotated[Path, options.folder("Folder for its pictures; files of their names are replaced.")],
    html: Annotated[bool, typer.Option("--html", help="Write one page, report.html, in place of the pictures. It "
                                       "works offline and has the texts of 1,000 pairs at most.")] = False,
    examples: pictures.ExamplesOption = None,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    label: options.LabelOption = None,
) -> None:
    """Draw figures of a model. Prints the paths of the files it wrote.

    training.svg (loss and dev score, where the model keeps them), dimensions.svg (MRR against the dimensions kept,
    S2Net's rotated onto principal axes), roc.svg (beside bare term weights) and neighbours.html (nearest documents
    before and after learning, mates marked). All are readable on light and dark backgrounds.

    With --html, one page for a browser instead: training curve, scores of mates and of others, nearest neighbours with
    a search box, worst mistakes with their texts, and the words that drive a match.
    """
    from jaxsim.model import Model

    pictures.check_place(out, "--out")
    trained = Model.load(model)
    table = pictures.read(trained, pairs, format, left, right, label)
    if html:
        return show(pictures.page(trained, table, out, examples))
    for path in pictures.draw(trained, table, out, examples).values():
        show(path)
