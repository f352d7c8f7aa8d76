"""Compressing corpus files, and the digest of what is inside, whatever the compression.

Two machines compress the same text to different bytes, so a corpus is compared by its content: texts as they are, JSON
Lines record by record, archives member by member.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import lzma
import os
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from jaxsim import checks
from jaxsim.data import files, streams

_CHUNK = 1 << 20
_PRESET = 6  # of xz
_AR, _AR_HEAD = b"!<arch>\n", 60


def pack(name: str, content: bytes) -> bytes:
    """Compress as the last suffix of a file's name says.

    Args:
      name: of the file; ``.gz`` and ``.xz`` compress, any other leaves the bytes as they are.
      content: the bytes.

    Returns:
      The bytes of the file, the same ones each time.

    Example:
      >>> gzip.decompress(pack("a.txt.gz", b"text")), pack("a.txt", b"text")
      (b'text', b'text')
    """
    if name.endswith(".gz"):
        return gzip.compress(content, 9, mtime=0)
    return lzma.compress(content, preset=_PRESET) if name.endswith(".xz") else content


def tar(members: Mapping[str, bytes]) -> bytes:
    """An archive that is not compressed, without times and owners.

    Args:
      members: path -> bytes, in order.

    Returns:
      Its bytes.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, body in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(body)
            archive.addfile(member, io.BytesIO(body))
    return buffer.getvalue()


def deb_members(package: bytes) -> dict[str, bytes]:
    """Files of a Debian package: an ``ar`` archive that holds a tar archive.

    Args:
      package: the bytes of the ``.deb``.

    Returns:
      Path, without a leading ``./`` -> bytes; links are left out.

    Raises:
      ValueError: not a whole package.
    """
    place, size = len(_AR), 0
    while package.startswith(_AR) and place + _AR_HEAD <= len(package):
        head = package[place : place + _AR_HEAD]
        size = int(head[48:58]) if head[48:58].strip().isdigit() else 0
        if head.startswith(b"data.tar") and place + _AR_HEAD + size <= len(package):
            body = io.BytesIO(package[place + _AR_HEAD : place + _AR_HEAD + size])
            with tarfile.open(fileobj=body) as archive:
                return {member.name.removeprefix("./"): archive.extractfile(member).read()
                        for member in archive if member.isfile()}  # fmt: skip
        place += _AR_HEAD + size + size % 2
    raise ValueError("package: expected a whole Debian package, got something else")


def jsonl(records: Iterable[Mapping[str, str]]) -> bytes:
    r"""JSON Lines in UTF-8.

    Args:
      records: one mapping a line.

    Returns:
      The bytes, before compression.

    Example:
      >>> jsonl([{"id": "a", "text": "ä"}]).decode()
      '{"id": "a", "text": "ä"}\n'
    """
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode("utf-8", "surrogatepass")


def expect_counts(path: str | os.PathLike, counts: Mapping[str, int], name: str) -> None:
    r"""Refuse an archive without the expected contents; for archives of which no digest is published.

    Args:
      path: a tar archive of any compression; it is read once, nothing is written.
      counts: name of a member -> how many lines it has, or name of a folder with ``/`` at its end -> how many folders
        it has at least.
      name: what the message calls the archive.

    Raises:
      ValueError: another count, or an archive that is damaged or cut short.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     path = Path(folder, "a.tar")
      ...     _ = path.write_bytes(tar({"txt/en/day": b"one\n", "txt/es/day": b"uno\n"}))
      ...     expect_counts(path, {"txt/": 2, "txt/en/day": 2}, "a.tar")
      Traceback (most recent call last):
      ...
      ValueError: a.tar: expected 2 lines in txt/en/day, got 1; nothing was kept
    """
    found = dict.fromkeys(counts, 0)
    folders: dict[str, set[str]] = {place: set() for place in counts if place.endswith("/")}
    try:
        with tarfile.open(path, "r|*") as archive:
            for member in archive:
                place = member.name.removeprefix("./")
                if not member.isfile():
                    continue
                if place in found:
                    body = archive.extractfile(member)
                    found[place] += sum(chunk.count(b"\n") for chunk in iter(lambda: body.read(_CHUNK), b""))  # noqa: B023
                for folder, inside in folders.items():
                    below = place.removeprefix(folder).split("/")
                    if place.startswith(folder) and len(below) > 1:
                        inside.add(below[0])
    except files.DAMAGED as error:
        checks.expect(False, name, "a whole tar archive", f"a damaged or truncated one ({error}); nothing was kept")
    for place, count in counts.items():
        if place.endswith("/"):
            got = len(folders[place])
            checks.expect(got >= count, name, f"at least {count} folders in {place}", f"{got}; nothing was kept")
        else:
            got = found[place]
            checks.expect(got == count, name, f"{count} lines in {place}", f"{got}; nothing was kept")


def content_digest(path: str | os.PathLike) -> str:
    """SHA-256 of what a file holds once it is decompressed.

    Args:
      path: a file, plain or compressed. Of a tar archive the files count, with their names, in the order of the names;
        of JSON Lines the records, in their order; of any other file its bytes.

    Returns:
      64 hexadecimal digits.

    Raises:
      ValueError: a damaged or truncated file.
    """
    path = Path(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    digest = hashlib.sha256()
    if ".tar" in suffixes or suffixes[-1:] == [".tgz"]:
        members = files.read_members(path)
        for name in sorted(members):
            digest.update(f"{name}\0{len(members[name])}\0".encode("utf-8", "surrogateescape") + members[name])
    elif streams.suffix(path) == ".jsonl":
        for _, _, record in streams.objects(files.read_lines(path), str(path)):
            line = json.dumps(record, sort_keys=True)
            digest.update(line.encode() + b"\n")
    else:
        try:
            with streams.opened(path) as file:
                while chunk := file.read(_CHUNK):
                    digest.update(chunk)
        except files.DAMAGED as error:
            checks.expect(False, str(path), f"a whole {path.suffix} file", f"a damaged or truncated one ({error})")
    return digest.hexdigest()
