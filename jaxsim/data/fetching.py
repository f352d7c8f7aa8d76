"""Downloads of corpus files: from their public address, or from a mirror that ``JAXSIM_DATA_URL`` names.

A file is written beside its place, compared with its checksum, and renamed; under its own name it is whole or absent.
"""

from __future__ import annotations

import contextlib
import errno
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, urlsplit

from tqdm import tqdm

from jaxsim import checks
from jaxsim.data import catalogue, files

MIRROR = "JAXSIM_DATA_URL"
"""Environment variable with the base address of a mirror: ``$JAXSIM_DATA_URL/<corpus>/<file>``."""

TIMEOUT = 30
"""Seconds without a sign of the server after which a download is given up."""

_CHUNK = 1 << 18


def address(name: str, file: str, *, mirror: str | None = None) -> str | None:
    """Web address of a corpus file.

    Args:
      name: of the corpus.
      file: one of its files.
      mirror: base address of a mirror, which stands in for every public one; the environment variable
        ``JAXSIM_DATA_URL`` by default.

    Returns:
      The address, or None: no mirror is named and the file is published nowhere.

    Raises:
      ValueError: no such corpus or file, or a mirror that is no web address.

    Example:
      >>> address("mdn", "en.jsonl.xz", mirror="https://mirror.example/corpora/")
      'https://mirror.example/corpora/mdn/en.jsonl.xz'
    """
    corpus = catalogue.get(name)
    checks.expect(file in corpus.files, "file", f"one of {', '.join(corpus.files) or 'none'}", repr(file))
    base = os.environ.get(MIRROR) if mirror is None else mirror
    if not base:
        return corpus.addresses.get(file)
    argument = MIRROR if mirror is None else "mirror"
    parts = urlsplit(base)
    known = parts.scheme in ("http", "https") and bool(parts.hostname)
    checks.expect(known, argument, "an address that begins with http:// or https:// and a host", repr(base))
    checks.expect("@" not in parts.netloc, argument, "an address alone (a password belongs into ~/.netrc)", "a user")
    return f"{base.rstrip('/')}/{quote(name)}/{quote(file)}"


def can_fetch(name: str) -> bool:
    """Whether every file of a corpus has an address.

    Args:
      name: of the corpus.

    Returns:
      True if `fetch` can get all of it; False as well for a corpus of no files.

    Raises:
      ValueError: no such corpus, or a mirror that is no web address.

    Example:
      >>> can_fetch("europarl_release"), can_fetch("docstrings")
      (True, False)
    """
    known = catalogue.get(name).files
    return bool(known) and all(address(name, file) is not None for file in known)


def how_to_get(name: str, folder: str | os.PathLike | None = None) -> str:
    """What to get from where, and into which folder, in one sentence; for a corpus that `fetch` cannot get.

    Args:
      name: of the corpus.
      folder: the corpus's own folder, where it is known.

    Returns:
      The sentence, without a full stop.

    Raises:
      ValueError: no such corpus.

    Example:
      >>> how_to_get("docstrings")
      'nothing to fetch: the texts are read from the installed packages'
    """
    corpus = catalogue.get(name)
    if not corpus.files:
        return "nothing to fetch: the texts are read from the installed packages"
    place = f"the folder {name} of the data folder" if folder is None else folder
    first, others = next(iter(corpus.files)), len(corpus.files) - 1
    return (
        f"no public address; copy {first} and {others} more from someone who has them into {place}, or set {MIRROR} to "
        f"the address of a mirror that holds {name}/{first} and so on; the files were packed from {corpus.source}: "
        f"{corpus.packed}"
    )


def fetch(name: str, *, root: str | os.PathLike | None = None, progress: bool = True) -> list[Path]:
    """Download the files of a corpus that are not there yet, and verify all of them.

    Files that are there are left alone: right ones are not downloaded again, wrong ones are refused before anything is
    downloaded. Where no checksum is known, a download is taken as it comes, if it is whole and no web page.

    Args:
      name: of the corpus.
      root: the data folder, made if need be; by default the folder that ``JAXSIM_DATA`` names, which must exist.
      progress: show a bar on stderr for downloads of more than half a second, where stderr is a terminal.

    Returns:
      Paths of all its files, in the catalogue's order; none for a corpus of no files.

    Raises:
      MissingCorpus: a missing file has no address (says what to get from where), or no data folder is known.
      ValueError: no such corpus, a mirror that is no web address, or a wrong checksum, there or on the server.
      ConnectionError: the server cannot be reached, has no such file, or sent a part of it.
      OSError: a file cannot be written.

    Example:
      >>> fetch("docstrings")
      []
    """
    if not catalogue.get(name).files:
        return []
    folder = (files.root() if root is None else Path(root)) / name
    found = catalogue.status(name, folder)
    catalogue.expect_right(found, "; nothing was fetched, remove what is wrong first")
    missing = [(one, address(name, one.file)) for one in found if one.state == "missing"]
    if any(where is None for _, where in missing):
        raise files.MissingCorpus(f"{name}: {how_to_get(name, folder)}")
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
    for one, where in missing:
        _download(where, one.path, one.expected, progress)
    return [one.path for one in found]


def _download(url: str, path: Path, digest: str | None, progress: bool) -> None:
    """Gets one file; under its name it appears whole or not at all."""
    import pooch
    import requests

    settings = {"timeout": TIMEOUT, "headers": {"Accept-Encoding": "identity"}, "hooks": {"response": _as_stored}}

    def write(url: str, part: str, _: object) -> None:
        with _bar(path.name, progress) as bar:
            pooch.HTTPDownloader(progressbar=bar, chunk_size=_CHUNK, **settings)(url, part, None)
        got = files.sha256(part)
        checks.expect(digest in (None, got), url, f"a file with SHA-256 {digest}", f"{got}; nothing was kept")
        # As readable as the folder is: temporary files are for their owner alone.
        os.chmod(part, path.parent.stat().st_mode & 0o666)

    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(url, digest, fname=path.name, path=path.parent.resolve(), downloader=write)
    except requests.RequestException as error:
        raise ConnectionError(f"{url}: expected the file, got {_reason(error)}") from error
    except OSError as error:
        raise OSError(error.errno or errno.EACCES, error.strerror or "Permission denied", str(path)) from error


def _bar(name: str, progress: bool) -> tqdm:
    # pooch asks whether the bar is true, which one of no total is not; it puts the true total in.
    return tqdm(total=1, desc=name, unit="B", unit_scale=True, delay=0.5, disable=None if progress else True)


def _as_stored(response, **_: object) -> None:
    """Takes the bytes as they lie on the server, refuses parts of a file, and web pages in its place."""
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
    if type(error) is requests.RequestException:  # of `_as_stored`
        return str(error)
    cut = isinstance(error, requests.exceptions.ChunkedEncodingError)
    inner: BaseException = error
    while (below := inner.__cause__ or (None if inner.__suppress_context__ else inner.__context__)) is not None:
        inner = below
    return f"{'a part of it' if cut else 'no answer'} ({getattr(inner, 'strerror', None) or inner})"
