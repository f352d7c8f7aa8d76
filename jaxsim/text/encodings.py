"""Lines of UTF-8, and what else a file may be whose bytes are none: compressed, a spreadsheet, Parquet, or UTF-16."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from jaxsim import checks

_MAGIC = {b"\x1f\x8b": ".gz", b"\xfd7zXZ\0": ".xz", b"BZh": ".bz2"}
_ZSTD = b"\x28\xb5\x2f\xfd"
_BOM = "\ufeff"
_MARKS = {b"\xff\xfe\0\0": "UTF-32", b"\0\0\xfe\xff": "UTF-32", b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def lines(chunks: Iterable[bytes], place: str, *, unpacks: bool = True) -> Iterator[str]:
    r"""Decodes lines, their ends included; a byte-order mark at the start is dropped.

    Args:
      chunks: bytes up to each line feed; those of a file without any are cut at carriage returns.
      place: what messages call the file.
      unpacks: whether the reader takes other kinds of files by their suffixes, for messages.

    Yields:
      One line after the other.

    Raises:
      ValueError: for what is not UTF-8; names file, line and byte.

    Example:
      >>> list(lines([b"\xef\xbb\xbfa\n", b"b"], "x.txt"))
      ['a\n', 'b']
    """
    number = position = 0
    begun = False
    for chunk in chunks:
        # The first chunk is the whole file if it has no line feed.
        whole = number == 0 and not chunk.endswith(b"\n")
        for line in chunk.splitlines(keepends=True) if whole else (chunk,):
            number += 1
            where = f"{place}, line {number}"
            if number == 1:
                _expect_plain(line[:200], where, unpacks)
            text = _decoded(line, where, position, b"" if begun else line[:200])
            begun = begun or bool(line.strip(b"\r\n\0"))  # lines before the first letter say nothing
            yield text.removeprefix(_BOM if number == 1 else "")
            position += len(line)


def compressed(head: bytes) -> str | None:
    r"""The compressor of which data begin so.

    Args:
      head: the first bytes.

    Returns:
      Its suffix; None if there is none.

    Example:
      >>> compressed(b"\x1f\x8b\x08"), compressed(b"BZhang")
      ('.gz', None)
    """
    kind = next((_MAGIC[magic] for magic in _MAGIC if head.startswith(magic)), None)
    text = kind == ".bz2" and head[4:8] not in (b"1AY&", b"\x17rE8")  # that begins like bzip2
    return None if text else kind


def _expect_plain(head: bytes, where: str, unpacks: bool) -> None:
    """Refuses the first bytes of files of other kinds."""
    kind = compressed(head)
    remedy = f"give the file's name the suffix {kind}" if unpacks else f"unpack it first (it is a {kind})"
    checks.expect(kind is None, where, "UTF-8 text", f"compressed data; {remedy}")
    others = f", or take one of {', '.join(_MAGIC.values())}" if unpacks else ""
    checks.expect(not head.startswith(_ZSTD), where, "UTF-8 text",
                  f"data of zstd, which is not read; unpack it first{others}")
    remedy = "save it as CSV" if unpacks else "write its texts as lines first"
    checks.expect(not head.startswith(b"PK\3\4"), where, "UTF-8 text", f"a ZIP file, as of a spreadsheet; {remedy}")
    if unpacks:
        remedy = "its name has to end in .parquet (a command with --format takes that too)"
    checks.expect(not head.startswith(b"PAR1"), where, "UTF-8 text", f"a Parquet file; {remedy}")


def _decoded(line: bytes, where: str, position: int, head: bytes) -> str:
    """Text of a line; ``head`` is its beginning while no line before it had a letter."""
    zeros = _wide(head) if head else None
    try:
        result = line.decode("utf-8")
    except UnicodeDecodeError as error:
        marked = next((kind for mark, kind in _MARKS.items() if position == 0 and head.startswith(mark)), zeros)
        reason = f"as in {marked}" if marked else error.reason
        raise ValueError(
            f"{where}: expected UTF-8 text, got the byte 0x{line[error.start]:02x} at byte {position + error.start} of "
            f"the file ({reason}; save it as UTF-8)"
        ) from error
    checks.expect(zeros is None, where, "UTF-8 text", f"zero bytes (as in {zeros}; save it as UTF-8)")
    return result


def _wide(head: bytes) -> str | None:
    """The encoding in which letters are of more bytes, where zeros say so; None where they do not."""
    # Letters of four bytes, of which one and the same is not zero.
    filled = [part for part in (head[start::4] for start in range(4)) if part.strip(b"\0")]
    if len(head) > 3 and len(filled) == 1 and 0 not in filled[0]:
        return "UTF-32"
    # Letters of two bytes, one of them zero: always the first or always the second.
    zeros = 3 * head.count(0) > len(head) and not (head[::2].count(0) and head[1::2].count(0))
    return "UTF-16" if zeros else None
