"""The command `explain`: why two texts match."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import expect_other, naming, replacing, say, show, show_json
from jaxsim.cli.program import app
from jaxsim.cli.search import documents_of, index_of, one_line
from jaxsim.cli.use import load, rounded

if TYPE_CHECKING:
    from jaxsim.model import Model
    from jaxsim.model.explain import Explanation, SearchExplanation
    from jaxsim.model.index import Index


@app.command(epilog="\b\nExample:\n  jaxsim explain --model model 'invert a matrix' 'the inverse of an array'\n"
                    "  jaxsim explain --model model 'invert a matrix' 'the inverse of an array' --figure why.svg\n"
                    "A result of `jaxsim search --documents texts.txt`, which has printed its line:\n"
                    "  jaxsim explain --model model 'invert a matrix' --documents texts.txt --line 7\n"
                    "The same, where `search` has kept the documents in an index:\n"
                    "  jaxsim explain --model model 'invert a matrix' --index kept --line 7")
def explain(
    model: options.ModelOption,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="A left text.")],
    document: Annotated[str | None, typer.Argument(metavar="DOCUMENT", help="A right text; with --documents or "
                                                   "--index one of them, or none where --line names it.")] = None,
    documents: Annotated[str | None, options.file("Documents that are searched, one a line; - for stdin. The score is "
                                                  "then that of `search` in them: vectors and words.")] = None,
    index: Annotated[Path | None, options.folder("Folder in which `search` has kept these documents, in place of "
                                                 "--documents.")] = None,
    column: options.ColumnOption = None,
    line: Annotated[int | None, typer.Option(min=1, help="Line of the document, as `search` prints it.")] = None,
    terms: options.TermsOption = None,
    pairs: Annotated[int, typer.Option(min=1, help="Pairs of words to print.")] = 20,
    power: Annotated[float | None, typer.Option(min=0.0, max=4.0, help="Power of the dimensions' agreement: 0 explains "
                                                "`similarity`. 0 unless given; with documents that of `search`.",
                                                show_default=False)] = None,
    figure: Annotated[Path | None, options.file("Draw the contributions of all words here, as SVG.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Print what the words of two texts add to their score: contribution, word of the query, word of the document.

    The contributions of all pairs of words sum exactly to the score. The largest by absolute value are printed; a
    negative one lowers the score.

    With --documents or --index, the score is that of `search`, and has two parts. Below the line `vectors` stand the
    pairs of words that sum to the part of the vectors. Below the line `words` stand the words that query and document
    share, and what each adds by BM25. Both parts sum to the score, which is that of a search that leaves out no
    documents.
    """
    from jaxsim import checks
    from jaxsim.model import explain as explaining
    from jaxsim.model import ranker

    searched = documents is not None or index is not None
    _check(document, documents, index, column, line, terms)
    expect_other("--figure", figure, documents=documents)
    checks.expect(figure is None or figure.suffix.lower() == ".svg", "--figure", "a file that ends in .svg", figure)
    trained = load(model)
    if searched and terms is None:
        terms = ranker.default_terms(trained)
    options.tell_idle(power, trained, terms=terms)
    if not searched:
        result = explaining.explain(trained, query, document, power=0.0 if power is None else power)
        facts = {"score": rounded(result.score), "pairs": _pairs(result, pairs)}
        drawn = _drawn(figure, (result.contributions, result.query, result.document), f"{result.score:.3f}")
        return show_json(facts | drawn) if json else _show([(result.score, "score"), *_lines(result, pairs)])
    if ranker.default_feedback(trained, terms):
        say("this is the score of the first search alone (`search --feedback 0`); the model searches twice")
    room, source = _room(trained, model, documents, index, column, terms)
    row = _row(room, source, document, line)
    found, place = explaining.explain_search(trained, query, room, row, terms=terms, power=power), int(room.lines[row])
    drawn = _drawn(figure, found.cells(), f"{found.score:.3f} ({found.vectors.score:.3f} by vectors, "
                                          f"{found.of_words:.3f} by words)")  # fmt: skip
    if json:
        return show_json({**_facts(found, pairs), "line": place, **drawn})
    _show([(found.score, "score"), (found.vectors.score, "vectors"), *_lines(found.vectors, pairs)])
    _show([(found.of_words, "words"), *((one.contribution, one.query, ", ".join(one.document)) for one in found.words)])


def _check(document: str | None, documents: str | None, index: Path | None, column: str | None, line: int | None,
           terms: float | None):
    """Refuses options that do not go together."""
    from jaxsim import checks

    checks.expect(documents is None or index is None, "--documents, --index", "one of them", "both")
    checks.expect(column is None or documents is not None, "--column", "--documents as well", "none")
    if documents is None and index is None:
        for name, value in (("--line", line), ("--terms", terms)):
            checks.expect(value is None, name, "--documents or --index as well", "neither")
        checks.expect(document is not None, "DOCUMENT", "a text, or --documents or --index, and --line", "neither")
    checks.expect((document is None) != (line is None), "DOCUMENT, --line", "one of them",
                  "neither" if document is None else "both")  # fmt: skip


def _room(trained: Model, place: Path, source: str | None, folder: Path | None, column: str | None, terms: float
          ) -> tuple[Index, str]:
    """The documents that are searched, with what their scores need, and what messages call them."""
    from jaxsim import checks
    from jaxsim.data import streams
    from jaxsim.model import index as room

    parts = {"weights": [1.0 if terms == 1 else 0.0], "bm25": terms != 0}
    if folder is None:
        texts, lines, _ = documents_of(source, column)
        return room.encode(trained, texts, lines=lines, **parts), streams.name(source)
    kept = index_of(folder, trained, place, parts)
    checks.expect(kept.hubs is None or terms == 1, "--index", "one that was made without --csls, or --terms 1", folder)
    return replace(kept, hubs=None), str(folder)


def _row(documents: Index, source: str, document: str | None, line: int | None) -> int:
    """Where a document stands among those that are searched."""
    from jaxsim import checks

    if line is not None:
        rows = (documents.lines == line).nonzero()[0]
        checks.expect(len(rows) > 0, "--line", f"a line of {source} with a document", line)
        return int(rows[0])
    wanted = one_line(document)  # as `search` has printed it
    row = next((row for row, text in enumerate(documents.texts) if one_line(text) == wanted), None)
    checks.expect(row is not None, "DOCUMENT", f"one of the documents of {source}", "another text")
    return row


def _facts(found: SearchExplanation, number: int) -> dict:
    words = [{"query": one.query, "document": list(one.document), "contribution": rounded(one.contribution)}
             for one in found.words]  # fmt: skip
    return {"score": rounded(found.score), "vectors": rounded(found.vectors.score), "words": rounded(found.of_words),
            "terms": found.terms, "power": found.power, "pairs": _pairs(found.vectors, number), "shared": words}


def _pairs(result: Explanation, number: int) -> list[dict]:
    return [{"query": a, "document": b, "contribution": rounded(value)} for a, b, value in result.largest(number)]


def _lines(result: Explanation, number: int) -> list[tuple[float, str, str]]:
    return [(value, a, b) for a, b, value in result.largest(number)]


def _drawn(figure: Path | None, cells: tuple, score: str) -> dict[str, str]:
    """Draws contributions, and names the file; nothing without one."""
    if figure is None:
        return {}
    from jaxsim.pictures import figures

    svg = figures.matrix(*cells, title=f"Contributions of words to a score of {score}")
    with naming(figure), replacing(figure) as file:
        file.write(svg)
    return {"figure": str(figure)}


def _show(rows: Iterable[tuple]) -> None:
    for value, *words in rows:
        show("\t".join([f"{rounded(value):.6f}", *words]))
