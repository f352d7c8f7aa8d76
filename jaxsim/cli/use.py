"""Commands that use a model: `encode`, `similarity`, `search` and `export`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jaxsim.cli import options
from jaxsim.cli.output import flush, naming, replacing, say, show, show_json, show_result
from jaxsim.cli.program import app

if TYPE_CHECKING:
    import numpy as np

    from jaxsim.model import Model
    from jaxsim.vectors import Vectors

Target = StrEnum("Target", {name.upper().replace("-", "_"): name
                            for name in ("sentence-transformers", "model2vec", "word2vec", "onnx")})  # fmt: skip
_BATCH = 1024


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
    column: Annotated[str | None, options.column("The texts are JSON, under this key.")] = None,
    side: Annotated[options.Side | None, typer.Option(help="Which texts these are, left (query) or right "
                                                      "(document), for a model with two sides.")] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale vectors to length one.")] = False,
) -> None:
    """Make vectors of texts. A text is a line.

    A blank line is an empty document and keeps its place; so does a text without known words. Both get the zero vector.
    """
    from jaxsim import checks
    from jaxsim.data import streams

    known = output == "-" or Path(output).suffix in (".npy", ".jsonl")
    checks.expect(known, "--output", "a file that ends in .npy or .jsonl, or -", output)
    trained = load(model)
    given = side is not None or not trained.two_sided
    checks.expect(given, "--side", "query or document (this model encodes left and right texts "
                  "differently)", "neither")
    encoder = trained.encode_query if side == options.Side.QUERY else trained.encode_document
    texts = (text for _, text in _texts(input, column))
    vectors = (encoder(batch, normalize=normalize) for batch in streams.batches(texts, _BATCH))
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


def _json_rows(rows: np.ndarray) -> Iterator[str]:
    """Each row as a JSON list; nine digits hold a float32 exactly."""
    layout = "[" + ", ".join(["%.9g"] * rows.shape[1]) + "]"
    return (layout % tuple(row) for row in rows.tolist())


def _write_npy(file, batches: Iterable[np.ndarray], dim: int) -> int:
    """Writes an array whose number of rows is known at the end; NumPy leaves room for it in the header."""
    import numpy as np

    def header(number: int) -> None:
        file.seek(0)
        told = {"descr": "<f4", "fortran_order": False, "shape": (number, dim)}
        np.lib.format.write_array_header_1_0(file, told)

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
    pairs: Annotated[str | None, options.file("Table of pairs instead; - for stdin.")] = None,
    format: options.FormatOption = None,
    left: options.LeftOption = None,
    right: options.RightOption = None,
    json: options.JsonOption = False,
) -> None:
    """Print the cosine of two texts, or of pairs, one a line. It is 0 where a text has no known words."""
    from jaxsim import checks

    texts = texts or []
    given = len(texts) == 2 if pairs is None else not texts
    got = checks.counted(len(texts), "text") + (" and --pairs" * bool(pairs))
    checks.expect(given, "similarity", "two texts, or --pairs", got)
    trained = load(model)
    if pairs is None:
        value = _rounded(trained.pair_similarity(texts[:1], texts[1:])[0])
        return show_json({"similarity": value}) if json else show(f"{value:.6f}")
    table = options.read_table(pairs, "--pairs", trained.languages, format, left, right)
    values = []
    for start in range(0, len(table.pairs), _BATCH):
        part = slice(start, start + _BATCH)
        found = map(_rounded, trained.pair_similarity(table.pairs.left[part], table.pairs.right[part]))
        if json:
            values += found
            continue
        for value in found:
            show(f"{value:.6f}")
        flush()
    if json:
        show_json({"similarity": values})


def _rounded(value: float) -> float:
    return round(float(value), 6) + 0.0


@app.command(epilog="\b\nExample, one document a line:\n"
                    "  jaxsim search --model model --documents texts.txt --query 'invert a matrix' --k 3\n"
                    "  jaxsim search --model model --documents pages.jsonl --column body --queries queries.txt --json")
def search(
    model: options.ModelOption,
    documents: Annotated[str, options.file("Documents (right texts), one a line; - for stdin.")],
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
    """
    from jaxsim import checks, retrieval
    from jaxsim.data import streams

    checks.expect((query is None) != (queries is None), "--query, --queries", "one of them",
                  "neither" if query is None else "both")
    options.one_stdin(documents=documents, queries=queries)
    trained = load(model)
    numbers, texts = _columns(_texts(documents, column))
    checks.expect(len(texts) > 0, streams.name(documents), "documents", "an empty file")
    wanted = [query] if queries is None else _columns(streams.texts(queries))[1]
    checks.expect(len(wanted) > 0, "--queries", "at least one query", f"an empty file ({queries})")
    sides = mixed(trained, wanted, "query", terms), mixed(trained, texts, "document", terms)
    kind = retrieval.cosine if sides[0].dense is None or sides[0].sparse is None else retrieval.dot
    scores, found = retrieval.top_k(*sides, k=min(k, len(texts)), similarity=kind)
    for i, text in enumerate(wanted):
        if not scores[i].any():
            where = f" among left texts ({trained.languages[0]})" * trained.two_sided
            say(f"query {i + 1}: no word of it is known{where}, or in the documents; all scores are 0")
        results = [{"rank": rank, "score": _rounded(score), "line": numbers[row], "text": texts[row]}
                   for rank, (score, row) in enumerate(zip(scores[i], found[i], strict=True), start=1)]  # fmt: skip
        if json:
            show_json({"query": text, "results": results})
            continue
        if queries is not None:
            show(f"query\t{i + 1}\t{_one_line(text)}")
        for row in results:
            show(f"{row['rank']}\t{row['score']:.6f}\t{row['line']}\t{_one_line(row['text'])}")


def _texts(source: str, column: str | None) -> Iterator[tuple[int, str]]:
    """Numbers and texts; says so if lines of JSON are taken as they are."""
    from jaxsim.data import streams

    for number, text in streams.texts(source, column=column):
        if number == 1 and column is None and text.startswith('{"') and text.rstrip().endswith("}"):
            say(f"{streams.name(source)}: JSON is read as text, keys and all; --column KEY reads what is under a key")
        yield number, text


def _columns(rows: Iterable[tuple[int, str]]) -> tuple[list[int], list[str]]:
    numbers, texts = [], []
    for number, text in rows:
        numbers.append(number)
        texts.append(text)
    return numbers, texts


def _one_line(text: str) -> str:
    return text.replace("\r", " ").replace("\n", " ")


def mixed(model: Model, texts: list[str], side: str, weight: float) -> Vectors:
    """Vectors of a model, of its bare terms, or of both in one.

    Args:
      model: the model.
      texts: the texts.
      side: ``"query"`` or ``"document"``.
      weight: of the terms, in [0, 1].

    Returns:
      `Vectors`; with both parts, their inner product is the mean of the two cosines with these weights.
    """
    from jaxsim import terms
    from jaxsim.text import unit_rows
    from jaxsim.vectors import Vectors, unit

    if model.params is None or weight == 0:
        return model.vectors(texts, side=side)
    rows = unit_rows(model.term_vectors(texts, side=side))
    if weight == 1:
        return Vectors(sparse=terms.from_scipy(rows))
    dense = unit(model.vectors(texts, side=side).dense) * (1 - weight) ** 0.5
    return Vectors(dense, terms.from_scipy(rows * weight**0.5))


@app.command(epilog="\b\nExample:\n  jaxsim export --model model --to sentence-transformers --out exported\n"
                    "  jaxsim export --model model --to word2vec --out vectors")
def export(
    model: options.ModelOption,
    to: Annotated[Target, typer.Option("--to", help="The tool that is to read it.")],
    out: Annotated[Path, options.folder("Folder to write; an older export is replaced.")],
    json: options.JsonOption = False,
) -> None:
    """Write a model for another tool."""
    from jaxsim import export as program

    trained = load(model)
    with naming(out):
        told = program.export(trained, str(to), out)
    if json:
        return show_json(told)
    paths = {f"path ({side})": path for side, path in told.pop("paths", {}).items()}
    show_result({**told, **paths})
