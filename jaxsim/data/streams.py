"""Lines of text from a file or standard input, plain or compressed, with errors that name file, line and byte.

The source ``"-"`` is standard input everywhere. Lines end at a line feed only, so that other separators (vertical tabs,
U+2028) stay inside a text; in a file without any line feed they end at carriage returns, as on old Macs.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import json
import lzma
import math
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from jaxsim import checks
from jaxsim.text import encodings

STDIN = "-"
_OPENERS: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
SUFFIXES = tuple(_OPENERS)
_ARRAY = re.compile(r"\s*\[\s*(\{|$)")  # of objects; JSON, or a text that nobody would begin so


def name(source: str | os.PathLike) -> str:
    """What messages call a source.

    Args:
      source: a path, or ``"-"``.

    Returns:
      The path as given, or "standard input".

    Example:
      >>> name("-"), name("pairs.tsv")
      ('standard input', 'pairs.tsv')
    """
    return "standard input" if source == STDIN else str(source)


def suffix(source: str | os.PathLike) -> str:
    """Last suffix of a file's name in lower case, that of a compressor left out.

    Args:
      source: a path, or ``"-"``, which has none.

    Returns:
      The suffix with its dot, or the empty string.

    Example:
      >>> suffix("pairs.TSV.gz"), suffix("-")
      ('.tsv', '')
    """
    result = [one.lower() for one in Path(source).suffixes]
    return ([one for one in result if one not in _OPENERS] or [""])[-1]


@contextlib.contextmanager
def opened(source: str | os.PathLike) -> Iterator[IO[bytes]]:
    """Opens a source for reading bytes, decompressed.

    Args:
      source: a path, whose last suffix (``.gz``, ``.xz``, ``.bz2``) chooses the decompressor, or ``"-"``, whose first
        bytes do.

    Yields:
      The stream of bytes.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: if standard input is closed.
    """
    if source != STDIN:
        with _OPENERS.get(Path(source).suffix.lower(), open)(source, "rb") as file:
            yield file
        return
    if sys.stdin is None:
        raise ValueError("standard input: expected an open one, got one that is closed")
    if sys.stdin.isatty():
        print("reading standard input (end with Ctrl-D) …", file=sys.stderr, flush=True)
    stream = sys.stdin.buffer
    kind = encodings.compressed(stream.peek(8) if hasattr(stream, "peek") else b"")
    yield stream if kind is None else _OPENERS[kind](stream, "rb")


def lines(source: str | os.PathLike) -> Iterator[str]:
    """Streams the lines of a UTF-8 text, line ends included; a byte-order mark at the start is dropped.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Yields:
      One line after the other.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for a damaged compressed file, one without its suffix, or text that is not UTF-8; names file, line
        and byte.
    """
    place, number = name(source), 0
    try:
        with opened(source) as file:
            for line in encodings.lines(file, place):
                number += 1
                yield line
    except (lzma.LZMAError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        if number == 0 and isinstance(error, OSError | lzma.LZMAError):
            raise ValueError(f"{place}: expected a compressed file, as its suffix says, got none, or a damaged one "
                             f"({error}); rename a plain file") from error
        raise ValueError(
            f"{place}, after line {number}: expected a whole compressed file, got a damaged or truncated one ({error})"
        ) from error


def texts(source: str | os.PathLike, *, column: str | None = None) -> Iterator[tuple[int, str]]:
    r"""Streams documents: one a line, or one key of JSON Lines (or of a JSON array).

    Args:
      source: a path, plain or compressed, or ``"-"``.
      column: the key of the text, for JSON.

    Yields:
      Line number (in an array the object's number), from 1, and text. Blank lines of plain text are empty documents;
      those of JSON Lines are skipped.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: as `lines` and `objects`.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
      ...     _ = file.write("one\n\nthree\n")
      ...     file.flush()
      ...     list(texts(file.name))
      [(1, 'one'), (2, ''), (3, 'three')]
    """
    if column is None:
        yield from ((number, line.rstrip("\r\n")) for number, line in enumerate(lines(source), start=1))
        return
    yield from ((number, text) for number, (text,) in keys(source, [column]))


def keys(source: str | os.PathLike, wanted: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    r"""Some keys of JSON Lines, or of a JSON array: texts, say, or texts and their identifiers.

    Args:
      source: a path, plain or compressed, or ``"-"``.
      wanted: the keys, that of the text first.

    Yields:
      Line number (in an array the object's number), from 1, and what is under each key; of the first as `text` has it.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: as `lines`, `objects` and `string`.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".jsonl") as file:
      ...     _ = file.write('{"id": 7, "body": "one"}\n')
      ...     file.flush()
      ...     list(keys(file.name, ["body", "id"]))
      [(1, ('one', '7'))]
    """
    yield from keys_of(lines(source), name(source), wanted)


def keys_of(rows: Iterable[str], place: str, wanted: Sequence[str]) -> Iterator[tuple[int, tuple[str, ...]]]:
    """`keys` of lines.

    Args:
      rows: the lines.
      place: what messages call the file.
      wanted: the keys.

    Yields:
      As `keys`.

    Raises:
      ValueError: as `objects` and `string`.

    Example:
      >>> list(keys_of(['{"id": 7}'], "x.jsonl", ["id"]))
      [(1, ('7',))]
    """
    for number, where, record in objects(rows, place):
        yield number, row(record, wanted, where)


def batches(items: Iterable, size: int) -> Iterator[list]:
    """Lists of ``size`` items, the last one shorter.

    Args:
      items: anything.
      size: at least 1.

    Yields:
      The lists.

    Example:
      >>> list(batches("abc", 2))
      [['a', 'b'], ['c']]
    """
    items = iter(items)
    while batch := list(itertools.islice(items, size)):
        yield batch


def sniffed(source: str | os.PathLike) -> tuple[bool, Iterator[str]]:
    """Whether a text looks like JSON Lines or an array of objects, from its first characters, and all of its lines.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Returns:
      ``(looks like JSON, lines)``.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: as `lines`.
    """
    rest, held = lines(source), []
    for line in rest:
        held.append(line)
        if line.strip():
            break
    json_like = bool(held) and (held[-1].lstrip().startswith("{") or _ARRAY.match(held[-1]) is not None)
    return json_like, itertools.chain(held, rest)


def objects(rows: Iterable[str], place: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Parses JSON Lines, whose blank lines are skipped, or one array of objects, which is read whole.

    Args:
      rows: the lines.
      place: what messages call the file.

    Yields:
      Number of the line (or of the object in the array) from 1, where that is for messages, and the object.

    Raises:
      ValueError: for what is no JSON object; names file and line.

    Example:
      >>> list(objects(['{"a": 1}', ""], "x.jsonl"))
      [(1, 'x.jsonl, line 1', {'a': 1})]
      >>> list(objects(["[", '{"a": 1}, {"a": 2}]'], "x.json"))[1]
      (2, 'x.json, object 2', {'a': 2})
    """
    numbered, begun = enumerate(rows, start=1), False
    for number, line in numbered:
        if not line.strip():
            continue
        if not begun and _ARRAY.match(line):
            yield from _array("".join([line, *(row for _, row in numbered)]), number, place)
            return
        begun, where = True, f"{place}, line {number}"
        yield number, where, _object(_loaded(line, number, place), where)


def _array(text: str, first: int, place: str) -> Iterator[tuple[int, str, dict[str, Any]]]:
    for number, record in enumerate(_loaded(text, first, place), start=1):
        where = f"{place}, object {number}"
        yield number, where, _object(record, where)


def _loaded(text: str, first: int, place: str) -> Any:
    """A JSON value whose text begins at a line of a file."""
    try:
        return json.loads(text.rstrip())  # without its end, an error at the end stands on the last line
    except (ValueError, RecursionError) as error:
        result = isinstance(error, json.JSONDecodeError)
        number, reason = (error.lineno, f"{error.msg}, column {error.colno}") if result else (1, error)
        reason = "one object over several lines" if text.strip() == "{" else reason
        where = f"{place}, line {first + number - 1}"
        raise ValueError(f"{where}: expected a JSON object, got invalid JSON ({reason})") from error


def _object(record: Any, where: str) -> dict[str, Any]:
    checks.expect(isinstance(record, dict), where, "a JSON object", checks.a_kind(record))
    return record


def string(record: dict[str, Any], key: str, where: str) -> str:
    """Text under a key; numbers are written out.

    Args:
      record: a JSON object.
      key: the key.
      where: file and line, for the message.

    Returns:
      The text.

    Raises:
      ValueError: if the key is missing, or holds neither text nor a number; NaN and infinity, which programs write
        where there is none, are no numbers.

    Example:
      >>> string({"id": 7}, "id", "x.jsonl, line 1")
      '7'
    """
    checks.expect(key in record, where, f"the column {key!r}", f"the columns {listed(record)}")
    value = record[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        checks.expect(isinstance(value, int) or math.isfinite(value), where, f"text in the column {key!r}", value)
        return str(value)
    checks.expect(isinstance(value, str), where, f"text in the column {key!r}",
                  "null" if value is None else type(value).__name__)
    return value


def text(record: dict[str, Any], key: str, where: str) -> str:
    """`string`, but null, which tables have for a cell without a text, is an empty text.

    Args:
      record: as there.
      key: as there.
      where: as there.

    Returns:
      The text.

    Raises:
      ValueError: as there.

    Example:
      >>> text({"body": None}, "body", "x.jsonl, line 1")
      ''
    """
    return "" if key in record and record[key] is None else string(record, key, where)


def row(record: dict[str, Any], wanted: Sequence[str], where: str) -> tuple[str, ...]:
    """A text and what belongs to it, as its identifier, of which none may be null.

    Args:
      record: a JSON object, or a row of a table.
      wanted: keys, that of the text first.
      where: file and line, for messages.

    Returns:
      What is under each key.

    Raises:
      ValueError: as `string`.

    Example:
      >>> row({"id": 7, "body": None}, ["body", "id"], "x.jsonl, line 1")
      ('', '7')
    """
    return tuple((string if i else text)(record, key, where) for i, key in enumerate(wanted))


def listed(names: Iterable[str]) -> str:
    """Column names for a message, long ones and long lists cut.

    Args:
      names: the names.

    Returns:
      The names, quoted.

    Example:
      >>> listed(["left", "right"])
      "'left', 'right'"
    """
    names = list(names)
    shown = ", ".join(repr(one if len(one) <= 40 else one[:39] + "…") for one in names[:12])
    return shown + (f" and {len(names) - 12} more" if len(names) > 12 else "")
