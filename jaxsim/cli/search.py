"""The command `search`, from a file of documents or from an index that was made of one before."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import keeping, naming, nothing_written, say, show, show_json
from jaxsim.cli.program import app
from jaxsim.cli.use import load, rounded, texts_of

if TYPE_CHECKING:
    from jaxsim.model import Model
    from jaxsim.model.index import Index

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@app.command(epilog="\b\nExample, one document a line:\n"
                    "  jaxsim search --model model --documents texts.txt --query 'invert a matrix' --k 3\n"
                    "  jaxsim search --model model --documents pages.jsonl --column body --queries queries.txt --json\n"
                    "Documents that are encoded once and searched many times:\n"
                    "  jaxsim search --model model --documents texts.txt --index kept --query 'invert a matrix'\n"
                    "  jaxsim search --model model --index kept --query 'roots of a polynomial' --terms 0.5")
def search(
    model: options.ModelOption,
    documents: Annotated[str | None, options.file("Documents (right texts), one a line; - for stdin. Not needed with "
                                                  "an index that is there.")] = None,
    index: Annotated[Path | None, options.folder("Folder that keeps the encoded documents. With --documents it is made "
                                                 "if it is not there, and made anew if they or the model have changed; "
                                                 "without, it is searched as it is.")] = None,
    query: Annotated[str | None, typer.Option(metavar="TEXT", help="What to look for (a left text).")] = None,
    queries: Annotated[str | None, options.file("Queries, one a line; - for stdin.")] = None,
    column: Annotated[str | None, options.column("The documents are JSON, their text is under this key.")] = None,
    k: Annotated[int, typer.Option(min=1, help="Documents a query.")] = 10,
    terms: Annotated[float, typer.Option(min=0.0, max=1.0, help="Weight of the words themselves beside what was "
                                         "learned: 0 is the model alone, 1 the words alone.")] = 0.0,
    json: options.JsonOption = False,
) -> None:
    """Find the nearest documents of queries. Prints lines of rank, score, line number and text, tabs between them.

    With --queries, a line `query`, its number and its text stands before the results of each. With --json, every query
    is one line.

    An index gives the same results in less time: it holds vectors, words and texts of the documents, so it serves every
    --terms, and needs their file no more. It belongs to one model, and is refused with another.
    """
    from jaxsim import checks
    from jaxsim.data import streams
    from jaxsim.evaluate import retrieval
    from jaxsim.model import index as room

    checks.expect((query is None) != (queries is None), "--query, --queries", "one of them",
                  "neither" if query is None else "both")
    checks.expect(documents is not None or index is not None, "--documents, --index", "one of them, or both", "neither")
    checks.expect(documents is not None or column is None, "--column", "nothing, without --documents", column)
    options.one_stdin(documents=documents, queries=queries)
    wanted = [query] if queries is None else _columns(streams.texts(queries))[0]
    checks.expect(len(wanted) > 0, "--queries", "at least one query", f"an empty file ({queries})")
    if index is None:
        trained = _loaded(model, terms)
        texts, lines = _documents(documents, column)
        found = room.encode(trained, texts, lines=lines, weights=[terms])
    else:
        trained, found = _kept(index, model, documents, column, terms)
    sides = room.encode(trained, wanted, side="query", weights=[terms]).mixed(terms), found.mixed(terms)
    kind = retrieval.cosine if sides[0].dense is None or sides[0].sparse is None else retrieval.dot
    kind = trained.scorer if terms == 0 else kind
    scores, rows = retrieval.top_k(*sides, k=min(k, len(found.texts)), similarity=kind)
    for i, text in enumerate(wanted):
        if not scores[i].any():
            where = f" among left texts ({trained.languages[0]})" * trained.two_sided
            say(f"query {i + 1}: no word of it is known{where}, or in the documents; all scores are 0")
        results = [{"rank": rank, "score": rounded(score), "line": int(found.lines[row]), "text": found.texts[row]}
                   for rank, (score, row) in enumerate(zip(scores[i], rows[i], strict=True), start=1)]  # fmt: skip
        if json:
            show_json({"query": text, "results": results})
            continue
        if queries is not None:
            show(f"query\t{i + 1}\t{_one_line(text)}")
        for row in results:
            show(f"{row['rank']}\t{row['score']:.6f}\t{row['line']}\t{_one_line(row['text'])}")


def _kept(folder: Path, place: Path, documents: str | None, column: str | None, terms: float) -> tuple[Model, Index]:
    """The model, and an index of it: read, or made of the documents if there is none or it is of others."""
    from jaxsim import checks, io
    from jaxsim.model import folders, index

    with naming(folder):
        there = (folder / index.MARKER).is_file()
        if documents is not None and not there:
            io.check_place(folder, marker=index.MARKER, argument="--index", what="index")
        told = index.described(folder) if there or documents is None else None
    digest = folders.digest(place)
    other = told is not None and told["model"] != digest
    checks.expect(not other or documents is not None, "--model", f"the model that {folder} was made with",
                  f"another, or it was trained anew ({place}); with --documents the index is made anew")  # fmt: skip
    trained = _loaded(place, terms)
    if documents is None:
        return trained, index.load(folder, weights=[terms])
    texts, lines = _documents(documents, column)
    if told is not None and not other and index.holds(told, texts, lines):
        return trained, index.load(folder, weights=[terms])
    with naming(folder), keeping(nothing_written(folder)):
        made = index.encode(trained, texts, lines=lines)
        index.save(folder, made, model=digest)
    reason = "" if told is None else f" anew, as {'the model is another' if other else 'the documents have changed'}"
    say(f"{folder}: made{reason}, {checks.counted(len(texts), 'document')}")
    return trained, made


def _loaded(place: Path, terms: float) -> Model:
    from jaxsim import checks

    trained = load(place)
    apart = not trained.bilinear or terms in (0, 1)
    checks.expect(apart, "--terms", "0 or 1 (the score of this model has the words in it)", terms)
    return trained


def _documents(source: str, column: str | None) -> tuple[list[str], list[int]]:
    from jaxsim import checks
    from jaxsim.data import streams

    texts, lines = _columns(texts_of(source, column))
    checks.expect(len(texts) > 0, streams.name(source), "documents", "an empty file")
    return texts, lines


def _columns(rows: Iterable[tuple[int, str]]) -> tuple[list[str], list[int]]:
    texts, lines = [], []
    for line, text in rows:
        texts.append(text)
        lines.append(line)
    return texts, lines


def _one_line(text: str) -> str:
    """A text without what a terminal would obey."""
    return _CONTROL.sub(" ", text)
