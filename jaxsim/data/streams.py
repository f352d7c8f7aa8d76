"""Lines of text from a file or standard input, plain or compressed, with errors that name file, line and byte.

The source ``"-"`` is standard input everywhere. Lines end at a line feed only, so that other separators (vertical tabs,
U+2028) stay inside a text.
"""

from __future__ import annotations

import bz2
import contextlib
import gzip
import itertools
import json
import lzma
import os
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

from jaxsim import checks

STDIN = "-"
_OPENERS: dict[str, Callable[..., IO[bytes]]] = {".gz": gzip.open, ".xz": lzma.open, ".bz2": bz2.open}
SUFFIXES = tuple(_OPENERS)
_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"BZh": ".bz2"}
_BOM = "\ufeff"


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
    found = [one.lower() for one in Path(source).suffixes]
    return ([one for one in found if one not in _OPENERS] or [""])[-1]


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
    """
    if source != STDIN:
        with _OPENERS.get(Path(source).suffix.lower(), open)(source, "rb") as file:
            yield file
        return
    if sys.stdin.isatty():
        print("reading standard input (end with Ctrl-D) …", file=sys.stderr, flush=True)
    stream = sys.stdin.buffer
    head = stream.peek(8) if hasattr(stream, "peek") else b""
    kind = next((_MAGIC[magic] for magic in _MAGIC if head.startswith(magic)), None)
    if kind == ".bz2" and head[4:8] not in (b"1AY&", b"\x17rE8"):
        kind = None  # a text that begins so
    yield stream if kind is None else _OPENERS[kind](stream, "rb")


def lines(source: str | os.PathLike) -> Iterator[str]:
    """Streams the lines of a UTF-8 text, line ends included; a byte-order mark at the start is dropped.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Yields:
      One line after the other.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for a damaged compressed file, or text that is not UTF-8; names file, line and byte.
    """
    place, number, position = name(source), 0, 0
    try:
        with opened(source) as file:
            for line in file:
                number += 1
                yield _decoded(line, f"{place}, line {number}", position).removeprefix(_BOM if number == 1 else "")
                position += len(line)
    except (lzma.LZMAError, EOFError, zlib.error, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise ValueError(
            f"{place}, after line {number}: expected a whole compressed file, got a damaged or truncated one ({error})"
        ) from error


def _decoded(line: bytes, where: str, position: int) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = line[error.start]
        wide = position == 0 and line[:2] in (b"\xff\xfe", b"\xfe\xff")
        raise ValueError(
            f"{where}: expected UTF-8 text, got the byte 0x{byte:02x} at byte {position + error.start} of the file "
            f"({'as UTF-16 begins; save it as UTF-8' if wide else error.reason})"
        ) from error


def texts(source: str | os.PathLike, *, column: str | None = None) -> Iterator[tuple[int, str]]:
    r"""Streams documents: one a line, or one key of JSON Lines.

    Args:
      source: a path, plain or compressed, or ``"-"``.
      column: the key of the text, for JSON Lines.

    Yields:
      Line number (from 1) and text. Blank lines of plain text are empty documents; those of JSON Lines are skipped.

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
    for number, record in objects(lines(source), name(source)):
        yield number, string(record, column, f"{name(source)}, line {number}")


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
    """Whether a text looks like JSON Lines, from its first character that is not blank, and all of its lines.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Returns:
      ``(looks like JSON Lines, lines)``.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: as `lines`.
    """
    rest, held = lines(source), []
    for line in rest:
        held.append(line)
        if line.strip():
            break
    return bool(held) and held[-1].lstrip().startswith("{"), itertools.chain(held, rest)


def objects(rows: Iterable[str], place: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parses JSON Lines; blank lines are skipped.

    Args:
      rows: the lines.
      place: what messages call the file.

    Yields:
      Line number (from 1) and object.

    Raises:
      ValueError: for a line that is no JSON object; names file and line.

    Example:
      >>> list(objects(['{"a": 1}', ""], "x.jsonl"))
      [(1, {'a': 1})]
    """
    for number, line in enumerate(rows, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{place}, line {number}: expected a JSON object, got invalid JSON ({error})") from error
        fits = isinstance(record, dict)
        checks.expect(fits, f"{place}, line {number}", "a JSON object", f"a {type(record).__name__}")
        yield number, record


def string(record: dict[str, Any], key: str, where: str) -> str:
    """Text under a key; numbers are written out.

    Args:
      record: a JSON object.
      key: the key.
      where: file and line, for the message.

    Returns:
      The text.

    Raises:
      ValueError: if the key is missing, or holds neither text nor a number.

    Example:
      >>> string({"id": 7}, "id", "x.jsonl, line 1")
      '7'
    """
    checks.expect(key in record, where, f"the column {key!r}", f"the columns {listed(record)}")
    value = record[key]
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    checks.expect(isinstance(value, str), where, f"text in the column {key!r}",
                  "null" if value is None else type(value).__name__)
    return value


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
