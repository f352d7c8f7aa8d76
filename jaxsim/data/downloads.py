"""One file from a web address: it appears complete or not at all, and an interrupted download continues.

What has arrived is kept in a separate file until the last byte is there. The next try asks the server for the rest of
the same version (known by its tag or time, or because the digest of the whole is known), and begins anew if the server
has another version.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from jaxsim import checks
from jaxsim.data import files

TIMEOUT = 30
"""Seconds without a sign of the server after which a download is given up."""

_CHUNK = 1 << 18


def download(url: str, path: Path, digest: str | None, rest: Path, *, progress: bool = True,
             check: Callable[[Path], None] | None = None) -> None:  # fmt: skip
    """Get one file.

    Args:
      url: its address.
      path: its place; the folder exists.
      digest: its SHA-256, or None where none is known.
      rest: where the part that has arrived is kept for the next try.
      progress: show a bar on stderr for a download of more than half a second, where stderr is a terminal.
      check: looks at the whole file before it gets its name.

    Raises:
      ConnectionError: the server cannot be reached, has no such file, or sent a part of it.
      ValueError: another digest, or what ``check`` raises; the file is not kept.
      OSError: the file cannot be written.
    """
    import pooch
    import requests

    def write(url: str, part: str, _: object) -> None:
        _continue(url, rest, path.name, digest, progress)
        got = files.sha256(rest)
        checks.expect(digest in (None, got), url, f"a file with SHA-256 {digest}", f"{got}; nothing was kept")
        # As readable as the folder is: temporary files are for their owner alone.
        os.chmod(rest, path.parent.stat().st_mode & 0o666)
        shutil.move(rest, part)  # the folder of the corpus may lie on another disk
        if check is not None:
            check(Path(part))

    rest.parent.mkdir(parents=True, exist_ok=True)
    kept = False
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(url, digest, fname=path.name, path=path.parent.resolve(), downloader=write)
    except requests.RequestException as error:
        kept = True
        raise ConnectionError(f"{url}: expected the file, got {_reason(error)}") from error
    except KeyboardInterrupt:
        kept = True
        raise
    except OSError as error:
        raise OSError(error.errno or errno.EACCES, error.strerror or "Permission denied", str(path)) from error
    finally:
        if not (kept and (digest or _tag(rest).is_file()) and rest.is_file() and rest.stat().st_size):
            rest.unlink(missing_ok=True)
            _tag(rest).unlink(missing_ok=True)


def bar(name: str, progress: bool) -> tqdm:
    """A bar that counts bytes.

    Args:
      name: of the file.
      progress: False for one that shows nothing.

    Returns:
      The bar.
    """
    # pooch asks whether the bar is true, which one of no total is not; it puts the true total in.
    return tqdm(total=1, desc=name, unit="B", unit_scale=True, delay=0.5, disable=None if progress else True)


def _tag(rest: Path) -> Path:
    """What the server called the version of which a part has arrived."""
    return rest.with_name(f"{rest.name}.tag")


def _continue(url: str, rest: Path, name: str, digest: str | None, progress: bool) -> None:
    """Gets what is not in ``rest`` yet, all of it if the server has another version now."""
    import pooch
    import requests

    tag = _tag(rest).read_text() if _tag(rest).is_file() else ""
    headers = {"Accept-Encoding": "identity"}
    there = rest.stat().st_size if rest.is_file() and (tag or digest) else 0
    if there:
        headers |= {"Range": f"bytes={there}-"} | ({"If-Range": tag} if tag else {})
    with open(rest, "r+b" if there else "wb") as file:
        file.seek(there)

        def answered(response, **_: object) -> None:
            _as_stored(response)
            if response.status_code == 206:
                where = response.headers.get("content-range", "")
                if not where.startswith(f"bytes {there}-"):
                    response.close()
                    raise requests.RequestException("another part of it")
            elif response.status_code == 200:
                _anew(file, rest, response.headers)

        anew = False
        settings = {"timeout": TIMEOUT, "headers": headers, "hooks": {"response": answered}}
        try:
            with bar(name, progress) as shown:
                pooch.HTTPDownloader(progressbar=shown, chunk_size=_CHUNK, **settings)(url, file, None)
        except requests.HTTPError as error:
            if error.response.status_code != requests.codes.requested_range_not_satisfiable or not there:
                raise
            error.response.close()  # all had arrived, which the digest shows, or the file is a shorter one now
            anew = digest is None
    if anew:
        rest.unlink()
        _tag(rest).unlink(missing_ok=True)
        _continue(url, rest, name, digest, progress)


def _anew(file: BinaryIO, rest: Path, headers) -> None:
    """Empties the part and notes which version comes now."""
    file.seek(0)
    file.truncate()
    etag = headers.get("etag", "")
    tag = etag if etag and not etag.startswith("W/") else headers.get("last-modified", "")
    if tag:
        _tag(rest).write_text(tag)
    else:
        _tag(rest).unlink(missing_ok=True)


def _as_stored(response) -> None:
    """Takes the bytes as they are stored on the server, refuses parts of a file, and web pages in its place."""
    import requests

    response.raw.headers.pop("content-encoding", None)
    response.raw.enforce_content_length = True
    if response.status_code == 200 and response.headers.get("content-type", "").startswith("text/html"):
        response.close()
        raise requests.RequestException("a web page")


@contextlib.contextmanager
def _quiet(logger: logging.Logger) -> Iterator[None]:
    level = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(level)


def _reason(error: Exception) -> str:
    """What came instead of a file, in a few words."""
    import requests

    if isinstance(error, requests.HTTPError):
        error.response.close()
        return f"HTTP status {error.response.status_code} ({error.response.reason})"
    if type(error) is requests.RequestException:  # of this module
        return str(error)
    cut = isinstance(error, requests.exceptions.ChunkedEncodingError)
    inner: BaseException = error
    while (below := inner.__cause__ or (None if inner.__suppress_context__ else inner.__context__)) is not None:
        inner = below
    return f"{'a part of it' if cut else 'no answer'} ({getattr(inner, 'strerror', None) or inner})"
