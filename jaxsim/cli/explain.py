"""The command `explain`: why two texts match."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import naming, replacing, show, show_json
from jaxsim.cli.program import app
from jaxsim.cli.use import load, rounded


@app.command(epilog="\b\nExample:\n  jaxsim explain --model model 'invert a matrix' 'the inverse of an array'\n"
                    "  jaxsim explain --model model 'invert a matrix' 'the inverse of an array' --figure why.svg")
def explain(
    model: options.ModelOption,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A left text.")],
    document: Annotated[str, typer.Argument(metavar="DOCUMENT", help="A right text.")],
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of words to print.")] = 20,
    power: Annotated[float, typer.Option(min=0.0, max=4.0, help="Power of the dimensions' agreement: 0 explains "
                                         "`similarity`, 1 the vectors' half of `search`.")] = 0.0,
    figure: Annotated[Path | None, options.file("Draw the contributions of all words here, as SVG.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Print what the words of two texts add to their score: contribution, word of the query, word of the document.

    The contributions of all pairs of words sum exactly to the score. The largest by absolute value are printed; a
    negative one lowers the score.
    """
    from jaxsim.model import explain as explaining

    trained = load(model)
    result = explaining.explain(trained, query, document, power=power)
    drawn = {}
    if figure is not None:
        from jaxsim.pictures import figures

        svg = figures.matrix(result.contributions, result.query, result.document,
                             title=f"Contributions of words to a score of {result.score:.3f}")
        with naming(figure), replacing(figure) as file:
            file.write(svg)
        drawn = {"figure": str(figure)}
    largest = result.largest(pairs)
    if json:
        facts = [{"query": a, "document": b, "contribution": rounded(value)} for a, b, value in largest]
        return show_json({"score": rounded(result.score), "pairs": facts, **drawn})
    show(f"{rounded(result.score):.6f}\tscore")
    for a, b, value in largest:
        show(f"{rounded(value):.6f}\t{a}\t{b}")
