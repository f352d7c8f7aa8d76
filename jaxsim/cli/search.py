"""The command `search`, in a file of documents or in an index that was made of them before."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from jaxsim.cli import options
from jaxsim.cli.output import keeping, naming, nothing_written, say, show, show_json
from jaxsim.cli.program import app
from jaxsim.cli.use import columns_of, load, rounded, texts_of

if TYPE_CHECKING:
    from jaxsim.model import Model
    from jaxsim.model.index import Index

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")


@app.command(epilog="\b\nExample, one document a line:\n"
                    "  jaxsim search --model model --documents texts.txt --query 'invert a matrix' --k 3\n"
                    "  jaxsim search --model model --documents pages.jsonl --column body --id id --query 'sort'\n"
                    "Documents that are encoded once and searched many times:\n"
                    "  jaxsim search --model model --documents texts.txt --index kept --query 'invert a matrix'\n"
                    "  jaxsim search --model model --index kept --query 'roots of a polynomial' --terms 0.5")
def search(
    model: options.ModelOption,
    documents: Annotated[str | None, options.file("Documents (right texts), one a line; - for stdin. Not needed "
                                                        "if --index names an existing index.")] = None,
    index: Annotated[Path | None, options.folder("Folder that keeps the encoded documents. With "
                                                 "--documents, the index is built if it is missing, and rebuilt if the "
                                                 "documents or the model have changed; without, it is searched as it "
                                                 "is.")] = None,
    query: Annotated[str | None, typer.Option(metavar="TEXT", help="What to look for (a left text).")] = None,
    queries: Annotated[str | None, options.file("Queries, one a line; - for stdin.")] = None,
    query_column: Annotated[str | None, options.column("Column of the queries in TSV, CSV or Parquet, or their key in "
                                                       "JSON Lines.")] = None,
    column: options.ColumnOption = None,
    id: options.DocumentIdOption = None,
    k: Annotated[int, typer.Option(min=1, help="Number of documents for each query.")] = 10,
    terms: options.TermsOption = None,
    words: options.WordsOption = None,
    power: options.PowerOption = None,
    feedback: options.FeedbackOption = None,
    exclude_self: Annotated[bool, typer.Option("--exclude-self", help="Leave out documents that are equal to the "
                                               "query.")] = False,
    exclude: Annotated[str | None, options.file("Documents to leave out, lines query<TAB>document: the number of the "
                                                "query and the line of the document, as they are printed, or its "
                                                "identifier where documents have some (--id, or an index that was made "
                                                "with it).")] = None,
    csls: options.CslsOption = None,
    json: options.JsonLinesOption = False,
) -> None:
    """Find the documents nearest to queries. Prints lines of rank, score, line number and text, tabs between them.

    With --id, the document's identifier stands before the text. An index keeps identifiers.

    The score of a document has two parts, each divided by its mean over the 20 documents that it likes best: the cosine
    of its vector, whose dimensions are weighted by held-out pairs, and BM25 of its words. A document that both like
    best has a score of 1. It only ranks the documents of one query; --terms 0 --power 0 prints cosines.

    With --queries, a line with `query`, the query's number and its text precedes the results of each query. With
    --json, every query gives one line.

    With --csls, documents that are near to many texts like the queries are ranked lower: across languages, some
    documents are near to everything. An index that was made with --csls keeps this, and its --power.

    An index gives the same results in less time: it holds vectors, words and texts of the documents, so it works with
    every --terms and --words, and their file is no longer needed. It belongs to one model, and is refused with another.
    """
    import numpy as np

    from jaxsim import checks
    from jaxsim.model import index as room
    from jaxsim.model import ranker

    checks.expect((query is None) != (queries is None), "--query, --queries", "one of them",
                  "neither" if query is None else "both")
    checks.expect(documents is not None or index is not None, "--documents, --index", "one of them, or both", "neither")
    checks.expect(documents is not None or column is None, "--column", "--documents as well", "none")
    checks.expect(documents is not None or id is None, "--id", "--documents as well", "none")
    checks.expect(column is not None or id is None, "--id", "--column as well, for the texts", "none")
    checks.expect(queries is not None or query_column is None, "--query-column", "--queries as well", "none")
    options.one_stdin(documents=documents, queries=queries, csls=csls, exclude=exclude)
    like = None if csls is None else _columns(options.plain(csls))[0]
    wanted = [query] if queries is None else _columns(texts_of(queries, query_column, "--query-column"))[0]
    checks.expect(len(wanted) > 0, "--queries", "at least one query", f"an empty file ({queries})")
    trained = load(model)
    terms = ranker.default_terms(trained) if terms is None else terms
    options.tell_idle(power, trained, terms=terms, csls=csls)
    words = words or options.Words.BM25
    apart = not trained.bilinear or terms in (0, 1) or words == options.Words.BM25
    checks.expect(apart, "--terms", "0 or 1 (the score of this model has the words in it)", terms)
    parts = ranker.needed(trained, terms, str(words))
    if index is None:
        texts, lines, ids = documents_of(documents, column, id)
        result = room.encode(trained, texts, lines=lines, csls=None if terms == 1 else like, power=power, ids=ids,
                             **parts)  # fmt: skip
    else:
        result = _kept(index, trained, model, documents, column, id, parts, like, power, idle=terms == 1)
    number = len(result.texts)
    left_out = _left_out(wanted, result, exclude_self, exclude)
    scores, rows = ranker.rank(trained, result, wanted, k=min(k, number), terms=terms, words=str(words), power=power,
                               exclude=left_out, feedback=feedback)  # fmt: skip
    for i, text in enumerate(wanted):
        kept = np.isfinite(scores[i])  # the others are left out
        if not kept.any():
            say(f"query {i + 1}: all documents are left out")
        elif not scores[i][kept].any() and left_out and left_out[i]:
            say(f"query {i + 1}: all scores are 0 but perhaps those of the documents that are left out")
        elif not scores[i][kept].any():
            where = f" among left texts ({trained.languages[0]})" * trained.two_sided
            meant = options.uncut([text], trained.languages[0])
            remedy = f" (it has no spaces; a model of such texts is trained with the code {meant} in --languages)"
            say(f"query {i + 1}: no word of it is known{where}, or in the documents; all scores are 0"
                f"{remedy * (meant is not None)}")
        best = zip(scores[i][kept], rows[i][kept], strict=True)
        results = [{"rank": rank, "score": rounded(score), "line": int(result.lines[row]),
                    **({} if result.ids is None else {"id": result.ids[row]}), "text": result.texts[row]}
                   for rank, (score, row) in enumerate(best, start=1)]  # fmt: skip
        if json:
            show_json({"query": text, "results": results})
            continue
        if queries is not None:
            show(f"query\t{i + 1}\t{one_line(text)}")
        for row in results:
            shown = [one_line(row[name]) for name in ("id", "text") if name in row]
            show("\t".join([f"{row['rank']}\t{row['score']:.6f}\t{row['line']}", *shown]))


def _kept(
    folder: Path, trained: Model, place: Path, documents: str | None, column: str | None, id_: str | None, parts: dict,
    like: list[str] | None, power: float | None, *, idle: bool,
) -> Index:
    """An index of the model: read, or made of the documents if there is none or it is of others.

    Where hubs are idle, as words alone count, those of the index stay as they are.
    """
    from jaxsim import checks, io
    from jaxsim.model import folders, hubs, index

    with naming(folder):
        there = (folder / index.MARKER).is_file()
        if documents is not None and not there:
            io.check_place(folder, marker=index.MARKER, argument="--index", what="index")
        facts = index.described(folder) if there or documents is None else None
    digest = folders.digest(place)
    other = facts is not None and facts["model"] != digest
    checks.expect(not other or documents is not None, "--model", f"the model that {folder} was made with",
                  f"another, or it was trained anew ({place}); `search --documents` makes the index anew")  # fmt: skip
    old = (facts or {}).get("csls")
    asked = None if like is None else hubs.digest(like)
    if idle or power is None:
        power = old["power"] if old is not None and not other else None
    taken = trained.search_power if power is None else power
    texts_differ = asked is not None and (old is None or old["texts"] != asked)
    power_differs = asked is not None and old is not None and trained.agreement is not None and old["power"] != taken
    same = idle or not (texts_differ or power_differs)
    if documents is None:
        remedy = "with --documents the index is made anew"
        got = "others" if old is not None else "some, and it was made without"
        checks.expect(idle or not texts_differ, "--csls", f"the texts that {folder} was made with", f"{got}; {remedy}")
        checks.expect(same, "--power", f"{(old or {}).get('power', 0):g} (as {folder} was made with, for --csls)",
                      f"{taken:g}; {remedy}")  # fmt: skip
        return index.load(folder, **parts, num_terms=len(trained.vocabulary), model=digest)
    texts, lines, ids = documents_of(documents, column, id_)
    held = facts is not None and index.holds(facts, texts, lines)
    renamed = held and ids is not None and not index.named(facts, ids)
    if held and not other and same and not renamed:
        if ids is None and index.named(facts):
            say(f"{folder}: identifiers are those that it was made with (--id compares them)")
        return index.load(folder, **parts, num_terms=len(trained.vocabulary), model=digest)
    checks.expect(old is None or asked is not None, "--csls", f"the texts that {folder} was made with, to make it anew",
                  "none")  # fmt: skip
    named = facts is not None and index.named(facts)
    checks.expect(ids is not None or not named, "--id",
                  f"the column of identifiers that {folder} was made with, to make it anew", "none")  # fmt: skip
    if idle and old is None:
        like = None  # they change nothing, in later searches either
    checks.expect(not idle or old is None or not texts_differ, "--csls",
                  f"the texts that {folder} was made with, to make it anew with --terms 1", "others")  # fmt: skip
    with naming(folder), keeping(nothing_written(folder)):
        made = index.encode(trained, texts, lines=lines, bm25=True, csls=like, power=power, ids=ids)
        index.save(folder, made, model=digest)
    change = ("the model is another" if other else "the documents have changed" if not held else
              f"--id is {'another' if named else 'new'}" if renamed else
              "--csls is new" if old is None else "--csls is another" if texts_differ else "--power is another")
    reason = "" if facts is None else f" anew, as {change}"
    say(f"{folder}: made{reason}, {checks.counted(len(texts), 'document')}")
    return made


def index_of(folder: Path, trained: Model, place: Path, parts: dict) -> Index:
    """An index as it is.

    Args:
      folder: of the index.
      trained: the model.
      place: folder of the model.
      parts: what is read of it, as `jaxsim.model.ranker.needed` says.

    Returns:
      `Index`, with the hubs that it was made with.

    Raises:
      FileNotFoundError: if there is no index.
      ValueError: if it is of another model.
    """
    return _kept(folder, trained, place, None, None, None, parts, None, None, idle=True)


def _left_out(queries: Sequence[str], documents: Index, itself: bool, source: str | None) -> list[list[int]] | None:
    """Rows of the documents that are no answer to each query; None where there are none."""
    from jaxsim import checks
    from jaxsim.evaluate import trec

    if not itself and source is None:
        return None
    rows = [set(some) for some in (trec.of_text(queries, documents.texts) if itself else [()] * len(queries))]
    names = documents.lines.tolist() if documents.ids is None else documents.ids
    places: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        # As it is printed, without control characters. Passages of a document share its identifier.
        places.setdefault(one_line(str(name)), []).append(row)
    numbers = {str(number): some for number, some in enumerate(rows, start=1)}
    absent, what = 0, "that of a document's line" if documents.ids is None else "a document's identifier"
    for where, query, name in options.excluded(source) if source is not None else ():
        told = query in numbers and (documents.ids is not None or name.isdecimal())
        wanted = f"the number of a query, from 1 to {len(queries)}, and {what}"
        checks.expect(told, where, wanted, f"{query[:30]!r} and {name[:30]!r}")
        found = places.get(one_line(name), ())
        absent += not found
        numbers[query].update(found)
    if absent:
        name = "a number" if documents.ids is None else "an identifier"
        say(f"{source}: {checks.counted(absent, 'line')} with {name} that no document has, and nothing to leave out")
    return [sorted(some) for some in rows]


def documents_of(source: str, column: str | None, id_: str | None = None
                 ) -> tuple[list[str], list[int], list[str] | None]:
    """The documents of a file.

    Args:
      source: a path, or ``"-"``.
      column: that of the texts, or their key in JSON; None where a line is a text.
      id_: that of the identifiers; None where there are none.

    Returns:
      Texts, at least one, the line of each, from 1, and the identifier of each, where there are some.
    """
    from jaxsim import checks
    from jaxsim.data import streams

    ids = None
    if id_ is None:
        texts, lines = _columns(texts_of(source, column))
    else:
        rows, lines = _columns(columns_of(source, [column, id_]))
        texts, ids = [text for text, _ in rows], [name for _, name in rows]
    checks.expect(len(texts) > 0, streams.name(source), "documents", "an empty file")
    return texts, lines, ids


def _columns(rows: Iterable[tuple[int, Any]]) -> tuple[list, list[int]]:
    """What rows hold, and their lines."""
    texts, lines = [], []
    for line, text in rows:
        texts.append(text)
        lines.append(line)
    return texts, lines


def one_line(text: str) -> str:
    """A text without what a terminal would obey.

    Args:
      text: any string.

    Returns:
      The text as `search` prints it.
    """
    return _CONTROL.sub(" ", text)
