"""Pairs of texts from tables: TSV, CSV, JSON Lines (or one JSON array) or Parquet, from a file or standard input.

Columns are given by name (where there is a header, or keys) or by number from 1. TSV has no quoting: a cell is the text
between two tabs. CSV has quoted fields, which may hold line ends. A first line ``sep=;`` of CSV names the character
between its columns, as spreadsheets have it.
"""

from __future__ import annotations

import csv
import io
import itertools
import lzma
import math
import os
import re
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from jaxsim import checks
from jaxsim.data import pairs as pairs_room
from jaxsim.data import streams
from jaxsim.data.pairs import Pairs

FORMATS = ("tsv", "csv", "jsonl", "parquet")
NAMES = (
    ("left", "right"), ("query", "document"), ("question", "answer"), ("source", "target"), ("anchor", "positive"),
    ("text1", "text2"), ("sentence1", "sentence2"), ("title", "text"),
)  # fmt: skip
"""Names of the two columns that are known without being told."""

_SUFFIXES = {".tsv": "tsv", ".tab": "tsv", ".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl",
             ".parquet": "parquet"}  # fmt: skip
_ONE_COLUMN = {  # what may be between columns in place of what is read -> what to do
    "csv": (";", "put commas between columns, and quotes around texts with commas",
            "save it with commas between columns, or tabs (.tsv), in place of semicolons"),
    "tsv": (",", "put a tab between the two texts",
            "put a tab between the two texts; where commas are between columns, --format csv reads them"),
}
_SEPARATOR = re.compile(r'sep=([^"\s]|\t)[,;\t]*\r?\n?')  # before what it separates; the csv module takes one character
_LONGEST = 2**31 - 1  # of a field, in characters; the csv module takes no more everywhere


class Table(NamedTuple):
    """What a table holds.

    Attributes:
      pairs: all of its rows.
      labels: ``[n]`` float64, or None without a label column.
      named: whether a header, or keys, name the columns.
      guessed: ``(left, right, number of columns)`` of TSV or CSV without a header and with other columns too, where
        nobody chose these two, numbered from 1; else None.
    """

    pairs: Pairs
    labels: np.ndarray | None
    named: bool = True
    guessed: tuple[int, int, int] | None = None


class Columns(NamedTuple):
    """Which columns to read, each a name, a number from 1 as a string, or None for the default.

    Attributes:
      left: the left text.
      right: the right text.
      label: a number, above 0 where the texts are mates.
      id: the identifier.
    """

    left: str | None = None
    right: str | None = None
    label: str | None = None
    id: str | None = None


def read(
    source: str | os.PathLike,
    *,
    format: str | None = None,
    columns: Columns | None = None,
    languages: tuple[str, str] = ("en", "en"),
) -> Table:
    r"""Reads pairs, and their labels where there is a column of them.

    Without names, TSV and CSV give their first two columns, and the first row is a header if it names a pair of
    columns in `NAMES`; JSON Lines and Parquet give the first pair of `NAMES` that is there. Columns of labels and
    identifiers are passed over in this.

    Args:
      source: a path, plain or compressed (``.gz``, ``.xz``, ``.bz2``), or ``"-"`` for standard input.
      format: one of `FORMATS`; by the file's suffix unless given, else JSON Lines if it begins with an object or an
        array of them, and TSV otherwise.
      columns: which columns; the defaults above unless given.
      languages: language codes of left and right texts.

    Returns:
      `Table`. Identifiers are the numbers of the pairs unless there is a column of them; empty texts are legal, as null
      in JSON and Parquet too.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for anything that is no table of pairs, and one column asked for twice; the message names file and
        line.
      ImportError: for Parquet without pyarrow.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
      ...     _ = file.write('question,answer,score\n"one, two",uno,1\n')
      ...     file.flush()
      ...     table = read(file.name, columns=Columns(label="score"))
      >>> table.pairs.left, table.pairs.right, table.labels.tolist()
      (('one, two',), ('uno',), [1.0])
    """
    columns = Columns() if columns is None else columns
    place = streams.name(source)
    checks.expect(format is None or format in FORMATS, "format", f"one of {', '.join(FORMATS)}", format)
    both = (columns.left is None) == (columns.right is None)
    checks.expect(both, "left, right", "both columns or neither", f"{columns.left} and {columns.right}")
    chosen = format or kind_of(source)
    header: dict[str, Any] = {}
    if chosen == "parquet":
        found = _parquet(source, lambda names: _keys(names, columns, place))
        rows = ((where, _row(record, keys, where)) for where, keys, record in found)
    else:
        json_lines, text = streams.sniffed(source)
        chosen = chosen or ("jsonl" if json_lines else "tsv")
        rows = _json(text, place, columns) if chosen == "jsonl" else _cells(text, place, chosen, columns, header)
    ids: dict[str, str] = {}
    left, right, labels = [], [], []
    for where, values in rows:
        key = str(len(ids) + 1) if values.id is None else values.id
        checks.expect(key not in ids, where, "an identifier not used before", f"{key!r}, as in {ids.get(key)}")
        ids[key] = where.removeprefix(f"{place}, ")
        left.append(values.left)
        right.append(values.right)
        if columns.label is not None:
            labels.append(_number(values.label, columns.label, where))
    checks.expect(len(ids) > 0, place, "pairs", "an empty file" if chosen != "parquet" else "no rows")
    title = place if source == streams.STDIN else Path(source).name
    result = pairs_room.make(title, ids, left, right, languages=languages)
    return Table(result, None if columns.label is None else np.array(labels, np.float64), **header)


def columns(source: str | os.PathLike, wanted: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    r"""Some columns of TSV, CSV or Parquet: texts, say, or texts and their identifiers.

    Args:
      source: a path with such a suffix, plain or compressed.
      wanted: names, that of the text first, which the first row has, or numbers from 1; by numbers alone the first row
        of TSV and CSV is read too.

    Yields:
      Line number (of Parquet the row's), from 1, and a text of each column. Blank lines are skipped.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: as `read`.
      ImportError: for Parquet without pyarrow.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
      ...     _ = file.write('id,body\n7,"one,\ntwo"\n8,three\n')
      ...     file.flush()
      ...     list(columns(file.name, ["body", "id"]))
      [(2, ('one,\ntwo', '7')), (4, ('three', '8'))]
    """
    kind = kind_of(source)
    place, positions, width = streams.name(source), None, 0
    if kind == "parquet":
        rows = _parquet(source, lambda names: [names[_find(names, one, None, place)] for one in wanted])
        for number, (where, keys, record) in enumerate(rows, start=1):
            yield number, streams.row(record, keys, where)
        return
    split = _csv(streams.lines(source), place) if kind == "csv" else _tsv(streams.lines(source))
    for number, cells in split:
        where = f"{place}, line {number}"
        if positions is None:
            width = len(cells)
            other, _, remedy = _ONE_COLUMN["csv"]
            if kind == "csv" and width == 1 and other in cells[0]:
                where = f"{where} ({remedy})"
            positions = [_find(cells, one, None, where) for one in wanted]
            if not all(one.isdecimal() for one in wanted):
                continue
        checks.expect(len(cells) == width, where, f"{width} columns, as in the first line", len(cells))
        yield number, tuple(cells[position] for position in positions)


def kind_of(source: str | os.PathLike) -> str | None:
    """The format that the suffix of a file tells.

    Args:
      source: a path, or ``"-"``.

    Returns:
      One of `FORMATS`, or None.

    Example:
      >>> kind_of("pairs.csv.gz"), kind_of("texts.txt")
      ('csv', None)
    """
    return _SUFFIXES.get(streams.suffix(source))


def mates(table: Table) -> tuple[Pairs, int]:
    """The pairs that belong together.

    Args:
      table: as `read` gives it.

    Returns:
      ``(pairs whose label is above 0, number of others)``; all of them without labels.

    Example:
      >>> pairs = pairs_room.make("toy", ["1", "2"], ["a", "b"], ["x", "y"], languages=("en", "en"))
      >>> mates(Table(pairs, np.array([0.0, 2.0])))[0].left
      ('b',)
    """
    if table.labels is None:
        return table.pairs, 0
    rows = np.flatnonzero(table.labels > 0)
    return (table.pairs if rows.size == len(table.pairs) else table.pairs.take(rows)), len(table.pairs) - rows.size


def _number(value: Any, column: str, where: str) -> float:
    """A label as a finite number."""
    try:
        result = checks.decimal(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError, OverflowError):
        result = math.nan
    shown = value if not isinstance(value, str) or len(value) <= 40 else value[:39] + "…"
    checks.expect(math.isfinite(result), where, f"a number in the column {column!r}", repr(shown))
    return result


def _find(names: Sequence[str], wanted: str, argument: str | None, where: str, *, numbers: bool = True) -> int:
    """Position of a column among names; messages name the argument that it is given by, if there is one."""
    where = f"{where}: {argument}" if argument else where
    if numbers and wanted.isdecimal() and len(wanted) < 10:
        fits = 1 <= int(wanted) <= len(names)
        checks.expect(fits, where, f"a column from 1 to {len(names)}", wanted)
        return int(wanted) - 1
    found = [i for i, one in enumerate(names) if one == wanted]
    found = found or [i for i, one in enumerate(names) if one.strip().lower() == wanted.strip().lower()]
    checks.expect(bool(found), where, f"the column {wanted!r}", f"the columns {streams.listed(names)}")
    checks.expect(len(found) == 1, where, f"one column {wanted!r}", len(found))
    return found[0]


def _known(names: Sequence[str], taken: Collection[int] = ()) -> tuple[int, int] | None:
    """Positions of the first pair of `NAMES` among names, of those that are not taken."""
    lower = ["" if i in taken else one.strip().lower() for i, one in enumerate(names)]
    return next(((lower.index(a), lower.index(b)) for a, b in NAMES if a in lower and b in lower), None)


def _positions(names: Sequence[str], columns: Columns, where: str, *, named: bool, numbers: bool = True) -> list:
    """Positions of the left, right, label and id columns; None for those that are not read.

    Args:
      names: of all columns, or the cells of the first row.
      columns: as they were given.
      where: file and line, for messages.
      named: whether the columns have names, without which there is no default; else it is the first two.
      numbers: whether columns may be given by number.
    """
    result = [None if wanted is None else _find(names, wanted, argument, where, numbers=numbers)
              for argument, wanted in columns._asdict().items()]  # fmt: skip
    if columns.left is None:
        # The columns of labels and identifiers hold no texts, wherever they stand.
        default = _known(names, result) or (None if named else [i for i in range(len(names)) if i not in result][:2])
        beside = " and ".join(name for name in ("label", "id") if getattr(columns, name) is not None)
        beside = f", beside {beside}" if beside else ""
        expected = (f"the columns {' and '.join(NAMES[0])} (or another known pair){beside}, or the names of both as "
                    "left and right (--left, --right)")
        checks.expect(default is not None, where, expected, f"the columns {streams.listed(names)}")
        checks.expect(len(default) == 2, where, f"two columns of texts{beside}", len(default))
        result[:2] = default
    used: dict[int, str] = {}
    for argument, position in zip(Columns._fields, result, strict=True):
        if position is not None:
            checks.expect(position not in used, f"{where}: {argument}", f"another column than {used.get(position)}",
                          repr(getattr(columns, argument)))
            used[position] = argument
    return result


def _keys(names: list[str], columns: Columns, where: str, *, numbers: bool = True) -> list[str | None]:
    """Names of the left, right, label and id columns."""
    positions = _positions(names, columns, where, named=True, numbers=numbers)
    return [None if one is None else names[one] for one in positions]


def _json(rows: Iterable[str], place: str, columns: Columns) -> Iterator[tuple[str, Columns]]:
    keys = None
    for _, where, record in streams.objects(rows, place):
        if keys is None:
            keys = _keys(list(record), columns, where, numbers=False)
        yield where, _row(record, keys, where)


def _row(record: dict[str, Any], keys: Sequence[str | None], where: str) -> Columns:
    """The cells of an object."""
    left, right, label, id_ = keys
    fits = label is None or label in record
    checks.expect(fits, where, f"the column {label!r}", f"the columns {streams.listed(record)}")
    return Columns(
        streams.text(record, left, where), streams.text(record, right, where),
        None if label is None else record[label], None if id_ is None else streams.string(record, id_, where),
    )  # fmt: skip


def _cells(rows: Iterable[str], place: str, kind: str, columns: Columns, header: dict
           ) -> Iterator[tuple[str, Columns]]:
    """Rows of TSV and CSV; ``header`` takes ``named`` and ``guessed`` of `Table`."""
    split = _csv(rows, place) if kind == "csv" else _tsv(rows)
    between = {"csv": "commas", "tsv": "tabs"}[kind]
    positions, width, result = None, 0, 0
    for number, cells in split:
        where = f"{place}, line {number}"
        if positions is None:
            width = len(cells)
            other, *remedies = _ONE_COLUMN[kind]
            remedy = remedies[other in cells[0]]
            checks.expect(width >= 2, where, f"at least two columns, separated by {between}", f"{width}; {remedy}")
            named = any(one is not None and not one.isdecimal() for one in columns)
            header["named"] = named or _known(cells) is not None
            positions = _positions(cells, columns, where, named=False)
            if header["named"]:
                continue
            if columns.left is None and width - sum(one is not None for one in positions[2:]) > 2:
                header["guessed"] = positions[0] + 1, positions[1] + 1, width
        result += 1
        checks.expect(len(cells) == width, where, f"{width} columns, separated by {between}, as in the first line",
                      len(cells))
        yield where, Columns(*(None if one is None else cells[one] for one in positions))
    checks.expect(positions is None or result > 0, place, "pairs after the header", "none")


def _tsv(rows: Iterable[str]) -> Iterator[tuple[int, list[str]]]:
    for number, line in enumerate(rows, start=1):
        if line.strip(" \r\n"):
            yield number, line.rstrip("\r\n").split("\t")


def _csv(rows: Iterable[str], place: str) -> Iterator[tuple[int, list[str]]]:
    rows = iter(rows)
    first = next(rows, "")
    named = _SEPARATOR.fullmatch(first)
    between, above = (named[1], 1) if named else (",", 0)
    reader = csv.reader(rows if named else itertools.chain([first], rows), strict=True, delimiter=between)
    start = 1 + above
    try:
        while (cells := _next_row(reader)) is not None:
            if cells and (len(cells) > 1 or cells[0].strip()):
                yield start, cells
            start = reader.line_num + above + 1
    except csv.Error as error:
        other, _, remedy = _ONE_COLUMN["csv"]
        remedy = f"; {remedy}" if start == 1 and other in first else ""
        raise ValueError(f"{place}, line {start}: expected CSV, got a row that is not ({error}){remedy}") from error


def _next_row(reader: Iterator[list[str]]) -> list[str] | None:
    """The next row, None after the last one. The limit is the process's: others read between two rows of this file."""
    before = csv.field_size_limit(_LONGEST)
    try:
        return next(reader, None)
    finally:
        csv.field_size_limit(before)


def _parquet(source: str | os.PathLike, keys_of: Callable[[list[str]], list[str | None]]
             ) -> Iterator[tuple[str, list[str | None], dict[str, Any]]]:
    """Places, keys and rows of Parquet; ``keys_of`` its columns gives the keys, whose columns alone are read."""
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError("format: expected the package pyarrow for Parquet, got none; pip install pyarrow") from error
    place = streams.name(source)
    plain = source != streams.STDIN and Path(source).suffix.lower() == ".parquet"
    with streams.opened(source) as stream:
        try:
            file = stream if plain else io.BytesIO(stream.read())
            reader = parquet.ParquetFile(file)
            keys = keys_of(list(reader.schema_arrow.names))
            wanted = list(dict.fromkeys(key for key in keys if key is not None))
            rows = (record for batch in reader.iter_batches(columns=wanted) for record in batch.to_pylist())
            for number, record in enumerate(rows, start=1):
                yield f"{place}, row {number}", keys, record
        except (pyarrow.ArrowException, OSError, EOFError, lzma.LZMAError, zlib.error, OverflowError,
                UnicodeDecodeError) as error:
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{place}: expected a Parquet file, got another or a damaged one ({reason})") from error
