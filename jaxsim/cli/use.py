"""Commands that use a model: `encode`, `similarity` and `export`; `search` has a file of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import (
    expect_other,
    flush,
    keeping,
    naming,
    nothing_written,
    replacing,
    say,
    show,
    show_json,
    show_result,
)
from jaxsim.cli.program import app

if TYPE_CHECKING:
    import numpy as np

    from jaxsim.model import Model
    from jaxsim.model.words import Words

_TARGETS = ("sentence-transformers", "model2vec", "word2vec", "onnx", "jaxsim")
Target = StrEnum("Target", {name.upper().replace("-", "_"): name for name in _TARGETS})
_BATCH = 1024
PlainOption = Annotated[float, typer.Option(
    min=0.0, max=4.0, help="Multiply dimensions by the agreement of held-out pairs in them to this power, as a search "
                           "does: 1 to find documents about the same thing, 0 to find mates.")]


def load(folder: Path) -> Model:
    """A model from its folder.

    Args:
      folder: as `jaxsim train` wrote it.

    Returns:
      The model.
    """
    from jaxsim.model import Model

    return Model.load(folder)


@app.command(epilog="\b\nExample, one text a line:\n"
                    "  jaxsim encode --model model --input texts.txt --output texts.npy\n"
                    "  echo 'invert a matrix' | jaxsim encode --model model --normalize")
def encode(
    model: options.ModelOption,
    input: Annotated[str, options.file("Texts, one a line; - for stdin.")] = "-",
    output: Annotated[str, options.file("FILE.npy (float32), FILE.jsonl, or - for JSON lines.")] = "-",
    column: options.ColumnOption = None,
    side: Annotated[options.Side | None, typer.Option(help="Which texts these are, left (query) or right "
                                                      "(document), for a model with two sides.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale vectors to length one.")] = False,
    power: PlainOption = 0.0,
    workers: Annotated[int, typer.Option(min=1, help="Processes that read and encode texts, each with the whole "
                                         "model in memory.")] = 1,
) -> None:
    """Turn texts, one a line, into vectors.

    A blank line is an empty document and keeps its place; so does a text without known words. Both get the zero vector.
    """
    from jaxsim import checks
    from jaxsim.data import streams
    from jaxsim.parallel.workers import in_order

    known = output == "-" or Path(output).suffix in (".npy", ".jsonl")
    checks.expect(known, "--output", "a file that ends in .npy or .jsonl, or -", output)
    streamed = output.endswith(".npy") and Path(output).is_fifo()
    checks.expect(not streamed, "--output", "a file for an array, whose header is written last (or .jsonl, or -)",
                  f"a pipe ({output})")
    expect_other("--output", output, input=input)
    trained = load(model)
    trained.expect_projection()
    given = side is not None or not trained.two_sided
    checks.expect(given, "--side", "query or document (this model encodes left and right texts "
                  "differently)", "neither")
    options.tell_idle(power, trained)
    how = {"normalize": normalize, "power": power, "side": "query" if side == options.Side.QUERY else "document"}
    texts = (text for _, text in texts_of(input, column))
    vectors = in_order(partial(_vectors, trained, **how), streams.batches(texts, _BATCH), workers=workers,
                       there=partial(_vectors_there, **how), begin=(_hold, model))
    if output == "-":
        for rows in vectors:
            for line in _json_rows(rows):
                show(line)
            flush()
        return
    with replacing(Path(output)) as file:
        if output.endswith(".npy"):
            number = _write_npy(file, vectors, trained.dim)
        else:
            number = 0
            for rows in vectors:
                file.writelines(f"{line}\n".encode() for line in _json_rows(rows))
                number += len(rows)
    say(f"{output}: {checks.counted(number, 'vector')} of {checks.counted(trained.dim, 'dimension')}")


def _vectors(model: Model, texts: list[str], *, side: str, **how) -> np.ndarray:
    encoder = model.encode_query if side == "query" else model.encode_document
    return encoder(texts, **how)


_held: list[Model] = []
"""Of a worker process of `encode`, the model that it loaded when it began."""


def _hold(folder: Path) -> None:
    _held.append(load(folder))


def _vectors_there(texts: list[str], **how) -> np.ndarray:
    return _vectors(_held[0], texts, **how)


def _json_rows(rows: np.ndarray) -> Iterator[str]:
    """Each row as a JSON list; nine digits hold a float32 exactly."""
    layout = "[" + ", ".join(["%.9g"] * rows.shape[1]) + "]"
    return (layout % tuple(row) for row in rows.tolist())


def _write_npy(file, batches: Iterable[np.ndarray], dim: int) -> int:
    """Writes an array whose number of rows is known at the end; NumPy leaves room for it in the header."""
    import numpy as np

    def header(number: int) -> None:
        file.seek(0)
        facts = {"descr": "<f4", "fortran_order": False, "shape": (number, dim)}
        np.lib.format.write_array_header_1_0(file, facts)

    header(0)
    start, number = file.tell(), 0
    for rows in batches:
        file.write(np.ascontiguousarray(rows, "<f4").tobytes())
        number += len(rows)
    header(number)
    if file.tell() != start:
        raise RuntimeError("the header of the array grew over its first rows")
    return number


@app.command(epilog="\b\nExample:\n  jaxsim similarity --model model 'invert a matrix' 'matrix inverse'\n"
                    "  jaxsim similarity --model model --pairs pairs.tsv")
def similarity(
    model: options.ModelOption,
    texts: Annotated[list[str] | None, typer.Argument(metavar="[TEXT TEXT]", help="A query (left text) and a document "
                                                      "(right text).")] = None,
    pairs: Annotated[str | None, options.file("Table of pairs, in place of two texts; - for stdin.")] = None,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    json: options.JsonOption = False,
) -> None:
    """Print the similarity of two texts, or of pairs, one a line: a cosine, or for SSI its own unbounded score.

    It is 0 where a text has no known words.
    """
    from jaxsim import checks, sparse

    texts = texts or []
    given = len(texts) == 2 if pairs is None else not texts
    got = checks.counted(len(texts), "text") + (" and --pairs" * bool(pairs))
    checks.expect(given, "similarity", "two texts, or --pairs", got)
    for name, value in (("--format", format), ("--left", left), ("--right", right)):
        checks.expect(value is None or pairs is not None, name, "--pairs as well", "none")
    trained = load(model)
    if pairs is None:
        value = rounded(trained.pair_similarity(texts[:1], texts[1:])[0])
        for one, side in zip(texts, ("query", "document"), strict=True) if value == 0 else ():
            if not sparse.nonzero(trained.vectors([one], side=side)).any():
                say(f"{one!r}: no word of it is known; the similarity is 0")
        return show_json({"similarity": value}) if json else show(f"{value:.6f}")
    table = options.read_table(pairs, "--pairs", trained.languages, format, left, right)
    values = []
    for start in range(0, len(table.pairs), _BATCH):
        part = slice(start, start + _BATCH)
        result = map(rounded, trained.pair_similarity(table.pairs.left[part], table.pairs.right[part]))
        if json:
            values += result
            continue
        for value in result:
            show(f"{value:.6f}")
        flush()
    if json:
        show_json({"similarity": values})


def rounded(value: float) -> float:
    """A score as it is printed.

    Args:
      value: the score.

    Returns:
      Six digits, without a zero that is negative.
    """
    return round(float(value), 6) + 0.0


def texts_of(source: str, column: str | None, option: str = "--column") -> Iterator[tuple[int, str]]:
    """Texts of a file; says so if lines of JSON or of a table are taken as they are.

    Args:
      source: a path, or ``"-"``.
      column: that of the text in TSV, CSV or Parquet, by the file's suffix, else its key in JSON Lines.
      option: that gives the column, for messages.

    Yields:
      Line number, from 1, and text.
    """
    from jaxsim import checks
    from jaxsim.data import streams, tables

    kind, name = tables.kind_of(source), streams.name(source)
    checks.expect(column is not None or kind != "parquet", option, f"a column of {name}", "none")
    if column is not None:
        yield from ((number, text) for number, (text,) in columns_of(source, [column], option))
        return
    ends = "" if kind in ("tsv", "csv") else " of a file whose name ends in .tsv"
    yield from options.plain(source, f"{option} NAME reads a column{ends}", f"{option} KEY reads the text under a key")


def columns_of(source: str, columns: Sequence[str], option: str = "--column") -> Iterator[tuple[int, tuple[str, ...]]]:
    """Some columns of a file.

    Args:
      source: a path, or ``"-"``.
      columns: those in TSV, CSV or Parquet, by the file's suffix, else keys in JSON Lines; the text first.
      option: that gives the text, for messages.

    Returns:
      Of each row the line number, from 1, and a text of each column.
    """
    from jaxsim import checks
    from jaxsim.data import streams, tables

    kind = tables.kind_of(source)
    if kind == "parquet":
        return tables.columns(source, columns)
    if kind in ("tsv", "csv"):
        return _below_names(tables.columns(source, columns), streams.name(source), columns)
    if kind is not None:
        return streams.keys(source, columns)
    json_like, rows = streams.sniffed(source)
    for number, row in enumerate(() if json_like else rows, start=1):
        checks.expect(not row.strip(), f"{streams.name(source)}, line {number}", f"a JSON object, for {option} (a "
                      "table is known by the end of its name: .tsv, .csv or .parquet)", repr(row[:30].strip()))
    return streams.keys_of(rows, streams.name(source), columns)


def _below_names(rows: Iterable[tuple[int, tuple[str, ...]]], name: str, columns: Sequence[str]) -> Iterator:
    """The same rows; says so where columns are given by number and the first row seems to name them."""
    rows = iter(rows)
    first = list(itertools.islice(rows, 20))
    if all(column.isdecimal() for column in columns) and options.begins_with_names([cells for _, cells in first]):
        shown = " and ".join(map(repr, first[0][1]))
        say(f"{name}: the first row, {shown}, is taken as a text; if it names columns, give their names")
    yield from first
    yield from rows


@app.command(epilog="\b\nExample:\n  jaxsim export --model model --to sentence-transformers --out exported\n"
                    "  jaxsim export --model model --to word2vec --out vectors\n"
                    "  jaxsim export --model model --to jaxsim --weights int8 --out small")
def export(
    model: options.ModelOption,
    to: Annotated[Target, typer.Option("--to", help="The tool that will read it; jaxsim writes a model folder.")],
    out: Annotated[Path, options.folder("Folder to write; an older export for another tool is replaced.")],
    power: PlainOption = 0.0,
    weights: Annotated[options.Weights | None, typer.Option(help="Round the weights to 16 or 8 bits first, and "
                                                            "print how far that changes scores.")] = None,
    json: options.JsonOption = False,
) -> None:
    """Write a model for another tool, or a smaller model for jaxsim."""
    from jaxsim import checks
    from jaxsim.model import export as program
    from jaxsim.model import rounding

    trained = load(model)
    options.tell_idle(power, trained)
    trained = trained.weighed(power)
    lost = {}
    if weights is not None:
        trained = rounding.rounded(trained, str(weights))
        lost = {"rounded": trained.training["weights"]}
    if to == Target.JAXSIM:
        checks.expect(weights is not None, "--weights", "float16 or int8, with --to jaxsim", "none")
        checks.expect(not out.exists(), "--out", "a folder that is not there yet, with --to jaxsim", out)
        with naming(out), keeping(nothing_written(out)):
            told = {"folder": str(_kept(model, trained).save(out)), "format": "jaxsim", "weights": str(weights)}
        return show_json(told | lost) if json else show_result(told | _lost(trained, lost))
    if trained.training.get("kind") == "words":
        from jaxsim.model.words import Words

        trained = Words(trained).exportable()
        left = checks.counted(trained.training["left_out"], "word")
        say(f"{model}: left out {left} of several parts, which other tools would cut")
    with naming(out), keeping(nothing_written(out)):
        facts = program.export(trained, str(to), out)
    if json:
        return show_json(facts | lost)
    paths = {f"path ({side})": path for side, path in facts.pop("paths", {}).items()}
    show_result({**facts, **paths} | _lost(trained, lost))


def _kept(folder: Path, rounded: Model) -> Model | Words:
    """A rounded model with what a folder of words has beside one."""
    from jaxsim.model.words import Words

    words = rounded.training.get("kind") == "words"
    return Words(rounded, Words.load(folder).entries) if words else rounded


def _lost(model: Model, lost: dict) -> dict:
    """What rounding the weights took, for people."""
    from jaxsim.model import rounding

    score = "score" if model.bilinear or model.topical else "cosine"
    return {"weights": rounding.told(lost["rounded"], score)} if lost else {}
