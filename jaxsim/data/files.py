"""Reading corpus files: the data folder, checksums, JSON Lines and tar archives, with errors that name file and line.

Nothing is unpacked to disk: compressed files and archives are streamed.
"""

from __future__ import annotations

import gzip
import hashlib
import lzma
import os
import tarfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

from jaxsim.data import streams

DAMAGED = (lzma.LZMAError, EOFError, zlib.error, gzip.BadGzipFile, tarfile.TarError)


class MissingCorpus(FileNotFoundError):
    """A corpus is not where it was looked for; the message says what to get and from where.

    Attributes:
      corpus: its name in the catalogue, None where it is not known.
    """

    def __init__(self, message: str, corpus: str | None = None):
        """An error of one line about ``corpus``."""
        super().__init__(message)
        self.corpus = corpus


def root(root: str | os.PathLike | None = None) -> Path:
    """The data folder: the argument, or else the environment variable ``JAXSIM_DATA``.

    Args:
      root: the folder, or None.

    Returns:
      An existing folder.

    Raises:
      MissingCorpus: neither is given, or it is no folder.

    Example:
      >>> root(".").as_posix()
      '.'
    """
    given = os.environ.get("JAXSIM_DATA") if root is None else root
    if not given:
        raise MissingCorpus(
            "JAXSIM_DATA: expected the folder of the corpora (or the argument root, the option --root), got nothing"
        )
    if not Path(given).is_dir():
        name = "JAXSIM_DATA" if root is None else "root"
        raise MissingCorpus(f"{name}: expected an existing folder with the corpora, got {str(given)!r}")
    return Path(given)


def sha256(path: str | os.PathLike) -> str:
    """SHA-256 of a file's bytes as 64 hexadecimal digits.

    Args:
      path: an existing file.

    Returns:
      The digest.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def read_lines(path: str | os.PathLike) -> Iterator[str]:
    """Stream the lines of a UTF-8 file, plain or compressed (``.xz``, ``.gz``, ``.bz2``), without line ends.

    A byte-order mark at the start is dropped.

    Args:
      path: the file; its last suffix, in lower or upper case, chooses the decompressor.

    Yields:
      One line after the other.

    Raises:
      ValueError: the compressed stream is damaged or cut short, or a line is not UTF-8; names file and line.
    """
    path = Path(path)
    if path.suffix.lower() in streams.SUFFIXES and path.stat().st_size == 0:
        raise ValueError(f"{path}: expected a whole {path.suffix} file, got one of no bytes")
    for line in streams.lines(path):
        yield line.rstrip("\r\n")


def read_jsonl(path: str | os.PathLike, keys: tuple[str, ...]) -> Iterator[tuple[int, dict]]:
    """Stream the objects of a JSON Lines file; blank lines are skipped.

    Args:
      path: the file, plain or compressed.
      keys: names that every object must hold, with a string (or, for identifiers, a number) as value.

    Yields:
      Line number (from 1) and object; the values of ``keys`` are strings.

    Raises:
      ValueError: a line that is no JSON object, lacks a key or holds something else there; names file and line.
    """
    for number, where, record in streams.objects(read_lines(path), str(path)):
        for key in keys:
            record[key] = streams.string(record, key, where)
        yield number, record


def read_members(path: str | os.PathLike, *, keep: Callable[[str], bool] | None = None) -> dict[str, bytes]:
    """Bytes of the chosen members of a tar archive of any compression, read in one pass; nothing is written to disk.

    Args:
      path: the archive.
      keep: told a member's name, says whether it is wanted; all files by default. Links and devices never are.

    Returns:
      Member name -> bytes, in the archive's order.

    Raises:
      ValueError: the archive is damaged or cut short.
    """
    members: dict[str, bytes] = {}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                if member.isfile() and (keep is None or keep(member.name)):
                    members[member.name] = archive.extractfile(member).read()
    except DAMAGED as error:
        raise ValueError(f"{path}: expected a whole tar archive, got a damaged or truncated one ({error})") from error
    return members


def read_archive(path: str | os.PathLike, *, keep: Callable[[str], bool], encoding: str = "utf-8") -> dict[str, str]:
    """Texts of the chosen members of a tar archive of any compression, read in one pass.

    Args:
      path: the archive.
      keep: told a member's name, says whether it is wanted.
      encoding: of the members.

    Returns:
      Member name -> text, in the archive's order.

    Raises:
      ValueError: the archive is damaged or cut short, or a member does not decode; names both.
    """
    return {name: decode(body, f"{path}: {name}", encoding) for name, body in read_members(path, keep=keep).items()}


def decode(data: bytes, where: str, encoding: str = "utf-8") -> str:
    r"""Decode bytes; what does not decode is an error that names the file and the line.

    Args:
      data: the bytes.
      where: the file, for the message.
      encoding: of the text.

    Returns:
      The text, with ``\n`` as line end.

    Raises:
      ValueError: an invalid byte.

    Example:
      >>> decode(b"a\r\nb", "x.txt")
      'a\nb'
    """
    try:
        return data.decode(encoding).replace("\r\n", "\n")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"{where}, line {line}: expected {encoding} text, got an invalid byte ({error.reason})"
        ) from error
