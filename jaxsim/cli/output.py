"""What commands print and write: results to stdout, progress to stderr, files as a whole or not at all."""

from __future__ import annotations

import codecs
import contextlib
import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any

import typer

CLOSED = 141
"""Exit status if nobody reads stdout any more, 128 + SIGPIPE."""


def show(text: object) -> None:
    """Prints a line of results.

    Args:
      text: the line.

    Raises:
      typer.Exit: if nobody reads stdout any more.
    """
    with _results():
        sys.stdout.write(f"{text}\n")


def flush() -> None:
    """Hands on the lines printed so far.

    Raises:
      typer.Exit: if nobody reads stdout any more.
    """
    with _results():
        sys.stdout.flush()


@contextlib.contextmanager
def _results() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise typer.Exit(CLOSED) from None
    except OSError as error:
        raise OSError(error.errno, error.strerror, "standard output") from error


def show_json(value: Any) -> None:
    """Prints a value as one line of JSON.

    Args:
      value: anything that JSON can hold.
    """
    show(json.dumps(value, ensure_ascii=not _unicode()))


def _unicode() -> bool:
    """Whether stdout can hold every letter; what it cannot would be escaped as JSON has it not."""
    try:
        return codecs.lookup(sys.stdout.encoding or "utf-8").name.startswith("utf-")
    except LookupError:
        return False


def say(message: str) -> None:
    """Prints a line of progress, or an error, to stderr.

    Args:
      message: the line.
    """
    with contextlib.suppress(BrokenPipeError):
        print(message, file=sys.stderr, flush=True)


def show_result(result: Mapping[str, Any]) -> None:
    """Prints a result: nested mappings as aligned rows of numbers, everything else as `name: value`.

    Args:
      result: name -> value, or name -> row -> column -> value.
    """
    for name, value in result.items():
        if not isinstance(value, Mapping):
            show(f"{name}: {value}")
            continue
        width = max([len(name), *(len(str(row)) for row in value)])
        columns = list(dict.fromkeys(key for row in value.values() if isinstance(row, Mapping) for key in row))
        show("  ".join([f"{name:<{width}}", *(f"{column:>9}" for column in columns)]))
        for row, cells in value.items():
            cells = [cells.get(column, "") for column in columns] if isinstance(cells, Mapping) else [cells]
            shown = [f"{cell:9.4f}" if isinstance(cell, float) else f"{cell!s:>9}" for cell in cells]
            show("  ".join([f"{row!s:<{width}}", *shown]))


@contextlib.contextmanager
def naming(path: Path) -> Iterator[None]:
    """Lets errors of the system name the path that was asked for, and not a temporary one, or none.

    Args:
      path: as the user wrote it.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None:
            raise
        raise OSError(error.errno, error.strerror, str(path)) from error


def called(message: str, options: Mapping[str, str]) -> str:
    """A refusal of the library in the words of the command line.

    Args:
      message: "argument: expected …", also with file and line before it, or several arguments.
      options: argument -> option. Arguments that are not in it stay.

    Returns:
      The message, with options in place of arguments.

    Example:
      >>> called("a.csv, line 1: left: expected the column 'q', got none", {"left": "--left"})
      "a.csv, line 1: --left: expected the column 'q', got none"
      >>> called("max_iter, k: expected less, got 9", {"max_iter": "--max-iter"})
      '--max-iter, k: expected less, got 9'
    """
    def renamed(found: re.Match) -> str:
        return ", ".join(options.get(name, name) for name in found[0].split(", "))

    return re.sub(r"(?:(?<=^)|(?<=: ))\w+(?:, \w+)*(?=: expected )", renamed, message, count=1)


def nothing_written(path: Path) -> str:
    """What the line about Ctrl-C says of a file or folder that is replaced as a whole.

    Args:
      path: as the user wrote it.

    Returns:
      A few words; where something is there already, they say that it stays.

    Example:
      >>> nothing_written(Path("new-model"))
      'nothing was written to new-model'
      >>> nothing_written(Path("."))
      'nothing was written to ., which is as it was before'
    """
    there = path.exists() and not (path.is_dir() and not any(path.iterdir()))
    return f"nothing was written to {path}" + ", which is as it was before" * there


def expect_other(option: str, path: str | Path | None, **sources: str | Path | None) -> None:
    """Refuses to write over what is read.

    Args:
      option: of the file to write.
      path: that file, ``-`` or None.
      sources: what is read, by the name of its option.

    Raises:
      ValueError: naming both options.

    Example:
      >>> expect_other("--output", "texts.jsonl", input="-")
    """
    from jaxsim import checks

    if path is None or not Path(path).is_file():
        return
    for name, source in sources.items():
        same = source is not None and Path(source).is_file() and os.path.samefile(path, source)
        checks.expect(not same, option, f"another file than that of --{name}", path)


@contextlib.contextmanager
def keeping(what: str) -> Iterator[None]:
    """Lets the line about Ctrl-C say what is kept; what a block inside this one says comes first.

    Args:
      what: what is kept, or how to go on.

    Example:
      >>> try:
      ...     with keeping("nothing was written to model"):
      ...         raise KeyboardInterrupt
      ... except KeyboardInterrupt as error:
      ...     interruption(error)
      'jaxsim: interrupted; nothing was written to model'
    """
    try:
        yield
    except KeyboardInterrupt as error:
        explain(error, what)
        raise


def explain(error: KeyboardInterrupt, what: str) -> None:
    """Adds to Ctrl-C what is kept, unless that was said already.

    Args:
      error: the exception on its way to `program.main`.
      what: what is kept, or how to go on.
    """
    error.args = error.args or (what,)


def interruption(error: KeyboardInterrupt) -> str:
    """The line about Ctrl-C.

    Args:
      error: the exception, with what `explain` added.

    Returns:
      The line.
    """
    return "; ".join(["jaxsim: interrupted", *map(str, error.args[:1])])


@contextlib.contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Writes a file beside its place and renames it, so that no half of it is ever there.

    Args:
      path: where the file is to be; its folder is made. A link is followed; what is no file (`/dev/stdout`, a pipe) is
        written to as it is.

    Yields:
      The file, open for writing.

    Raises:
      OSError: if it cannot be written; what was there is as it was.
    """
    if path.is_dir():
        raise IsADirectoryError(21, "Is a directory", str(path))
    above = next(one for one in path.absolute().parents if one.exists())
    if not above.is_dir():
        raise NotADirectoryError(20, f"Not a folder ({above.name})", str(path))
    special = path.exists() and not path.is_file()
    place = path if special else path.resolve()
    temporary = place if special else place.with_name(f".{place.name}.{os.getpid()}.part")
    if not special:
        from jaxsim import io

        io.remove_stale(place)
    try:
        with naming(path):
            place.parent.mkdir(parents=True, exist_ok=True)
            file = open(temporary, "wb")
        try:
            with file:
                yield file
        except OSError as error:
            if error.filename is None:  # of a write; what is read for it has a name
                with naming(path):
                    raise
            raise
        if not special:
            with naming(path):
                os.replace(temporary, place)
    except KeyboardInterrupt as error:
        if not special:
            explain(error, nothing_written(path))
        raise
    finally:
        if not special:
            temporary.unlink(missing_ok=True)
