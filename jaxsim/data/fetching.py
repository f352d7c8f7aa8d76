"""Corpora from their public sources: downloaded, or made of the files of public repositories.

A mirror that ``JAXSIM_DATA_URL`` names stands in for all of them. A file is written beside its place, compared with its
digest, and renamed, so that it appears complete or not at all. What is transferred is kept in the hidden folder
``.fetch`` of the data folder until the corpus is complete; after an interruption the next fetch continues from it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import math
import os
import shutil
import tempfile
from functools import partial
from pathlib import Path
from urllib.parse import quote, urlsplit

import filelock

from jaxsim import checks, io
from jaxsim.data import catalogue, downloads, files, git, packing, recipes

NOTICE = "NOTICE.jaxsim.txt"
"""What says source and licence, beside the files."""

MIRROR = "JAXSIM_DATA_URL"
"""Environment variable with the base address of a mirror: ``$JAXSIM_DATA_URL/<corpus>/<file>``."""

_LINE = 1.25
"""Megabytes a second of a slow line, 10 Mbit/s, for what a fetch is said to take."""


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
    """Whether every file of a corpus has an address or can be made of public repositories.

    Args:
      name: of the corpus.

    Returns:
      True if `fetch` can get all of it; False as well for a corpus of no files.

    Raises:
      ValueError: no such corpus, or a mirror that is no web address.

    Example:
      >>> can_fetch("europarl_release"), can_fetch("word_frequency"), can_fetch("docstrings")
      (True, True, False)
    """
    corpus = catalogue.get(name)
    return bool(corpus.files) and all(address(name, file) or file in corpus.ways for file in corpus.files)


def providers(name: str) -> tuple[str, ...]:
    """Where a fetch of a whole corpus downloads from.

    Args:
      name: of the corpus.

    Returns:
      Addresses of files, then of repositories.

    Raises:
      ValueError: no such corpus, or a mirror that is no web address.

    Example:
      >>> providers("word_frequency")
      ('https://github.com/RyanMcG/authorate',)
    """
    corpus = catalogue.get(name)
    result = tuple(filter(None, (address(name, file) for file in corpus.files)))
    return result if os.environ.get(MIRROR) else result + tuple(source.url for source in corpus.sources)


def how_to_get(name: str, folder: str | os.PathLike | None = None) -> str:
    """For a corpus that `fetch` cannot get: what to get, from where and into which folder, in one sentence.

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


def plan(name: str, folder: str | os.PathLike | None = None) -> str:
    """What a fetch will download from whom, and the time and the disk that it takes, in one sentence.

    Args:
      name: of the corpus.
      folder: the corpus's own folder, where it is known.

    Returns:
      The sentence, without a full stop.

    Raises:
      ValueError: no such corpus.

    Example:
      >>> plan("word_frequency").partition(" from ")[2]
      'https://github.com/RyanMcG/authorate (1 min at 10 Mbit/s), keeps 1 MB, needs 101 MB of disk'
    """
    corpus = catalogue.get(name)
    first, *others = providers(name)
    more = f" and {len(others)} more" if others else ""
    where = "" if folder is None else f" in {folder}"
    size = _download_size(corpus)
    minutes = max(1, math.ceil(size / _LINE / 60))
    return (f"{name}: downloads about {size} MB from {first}{more} ({minutes} min at 10 Mbit/s), keeps "
            f"{math.ceil(corpus.megabytes)} MB{where}, needs {_disk(corpus)} MB of disk")


def download_megabytes(name: str) -> int:
    """Roughly how much a fetch of a whole corpus downloads.

    Args:
      name: of the corpus.

    Returns:
      Millions of bytes.

    Raises:
      ValueError: no such corpus.

    Example:
      >>> download_megabytes("docstrings")
      0
    """
    return _download_size(catalogue.get(name))


def _download_size(corpus: catalogue.Corpus) -> int:
    made = math.ceil(sum(source.megabytes for source in corpus.sources))
    return math.ceil(corpus.megabytes) if not made or os.environ.get(MIRROR) else made


def _disk(corpus: catalogue.Corpus) -> int:
    """Megabytes that a fetch takes while it works: twice what it keeps, what it downloads, and some to spare."""
    return 2 * math.ceil(corpus.megabytes) + _download_size(corpus) + 98


def fetch(name: str, *, root: str | os.PathLike | None = None, progress: bool = True,
          cache: str | os.PathLike | None = None) -> list[Path]:  # fmt: skip
    """Get the files of a corpus that are not there yet, and verify all of them.

    Files that are there are left alone: right ones are not fetched again, wrong ones are refused before anything is
    downloaded. A file that was put there by hand without its compression is compressed. Where no checksum is known, a
    download is taken as it comes, if it is whole and no web page. A second fetch of a corpus waits for the first.

    Args:
      name: of the corpus.
      root: the data folder, made if need be; by default the folder that ``JAXSIM_DATA`` names, which must exist.
      progress: show a bar on stderr for downloads of more than half a second, where stderr is a terminal.
      cache: a folder that keeps what was read of repositories; by default nothing but the corpus is kept.

    Returns:
      Paths of all its files, in the catalogue's order; none for a corpus of no files.

    Raises:
      MissingCorpus: a missing file has no address (says what to get from where), or no data folder is known.
      FileNotFoundError: there is no `git` program.
      ValueError: no such corpus, a mirror that is no web address, a wrong checksum, there or at the source, or a
        repository without a path that it should have.
      ConnectionError: the server cannot be reached, has no such file or commit, or sent a part of it.
      OSError: a file cannot be written, or the disk has no room for it.

    Example:
      >>> fetch("docstrings")
      []
    """
    if not catalogue.get(name).files:
        return []
    folder = (files.root() if root is None else Path(root)) / name
    if not _missing(name, folder):
        return [folder / file for file in catalogue.get(name).files]
    folder.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(_lock(folder)):
        _fetch_missing(name, folder, progress, cache)
    return [folder / file for file in catalogue.get(name).files]


def _missing(name: str, folder: Path) -> list[catalogue.Status]:
    """The files that are to be fetched; refuses wrong ones, and corpora that cannot be fetched."""
    result = catalogue.status(name, folder)
    catalogue.expect_right(result, "; nothing was fetched, remove what is wrong first")
    missing = [one for one in result if one.state == "missing"]
    ways = catalogue.get(name).ways
    unknown = [one for one in missing if not (address(name, one.file) or one.file in ways or _by_hand(one.path))]
    if unknown:
        raise files.MissingCorpus(f"{name}: {how_to_get(name, folder)}")
    return missing


def _lock(folder: Path) -> str:
    """A file for one fetch at a time, outside of the data folder, where nothing but the corpora is kept."""
    place = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()[:16]
    return os.path.join(tempfile.gettempdir(), f"jaxsim-fetch-{os.getuid() if hasattr(os, 'getuid') else 0}-{place}")


def _by_hand(path: Path) -> Path | None:
    """A file that somebody put there without its compression."""
    plain = path.with_suffix("")
    return plain if path.suffix in (".gz", ".xz") and plain.is_file() else None


def _fetch_missing(name: str, folder: Path, progress: bool, cache: str | os.PathLike | None) -> None:
    corpus = catalogue.get(name)
    missing = _missing(name, folder)
    if not missing:  # somebody else's fetch, that this one waited for
        return
    _expect_room(corpus, folder)
    kept = cache is not None
    store = Path(cache) / name if kept else folder.parent / ".fetch" / name
    try:
        _get(corpus, missing, store, progress)
    except (ConnectionError, KeyboardInterrupt):
        kept = True  # for the next try
        raise
    finally:
        if not kept:
            shutil.rmtree(store, ignore_errors=True)
        for empty in (store, store.parent) if cache is None else ():
            with contextlib.suppress(OSError):  # there is something, or nothing
                empty.rmdir()
    notice = "".join(f"{title}: {text}\n" for title, text in
                     {"title": corpus.title, "source": corpus.source, "licence": corpus.licence,
                      "terms": corpus.terms}.items() if text)  # fmt: skip
    io.write_bytes(folder / NOTICE, notice.encode())


def _get(corpus: catalogue.Corpus, missing: list[catalogue.Status], store: Path, progress: bool) -> None:
    """Files put there by hand are packed, those with an address downloaded, the others made."""
    build = []
    for one in missing:
        one.path.parent.mkdir(parents=True, exist_ok=True)
        if plain := _by_hand(one.path):
            _keep(corpus, one, plain.read_bytes(), str(plain))
        elif url := address(corpus.name, one.file):
            counts = corpus.counts.get(one.file)
            check = partial(packing.expect_counts, counts=counts, name=url) if counts else None
            downloads.download(url, one.path, one.expected, store / f"{one.path.name}.rest", progress=progress,
                               check=check)  # fmt: skip
        else:
            build.append(one)
    if build:
        _build(corpus, build, store, progress)


def _expect_room(corpus: catalogue.Corpus, folder: Path) -> None:
    free = shutil.disk_usage(folder).free / 1e6
    if corpus.megabytes and free < _disk(corpus):
        message = f"No space left on device: expected {_disk(corpus)} MB free for {corpus.name}, got {free:.0f} MB"
        raise OSError(errno.ENOSPC, message, str(folder))


def _build(corpus: catalogue.Corpus, missing: list[catalogue.Status], store: Path, progress: bool) -> None:
    """Makes files of what the sources hold."""
    needed = _needed(corpus, [one.file for one in missing])
    for source in needed:
        _transfer(source, store, progress)
    contents = _contents(corpus, needed, [one.file for one in missing], store)
    for one in missing:
        _keep(corpus, one, contents[one.file], corpus.source)


def _needed(corpus: catalogue.Corpus, names: list[str]) -> list[catalogue.Source]:
    """The sources of some files: that of a copy, those of a recipe, which are all if it does not say."""
    used: set[str] = set()
    for way in (corpus.ways[name] for name in names):
        if "made" in way:
            used |= set(way.get("of", (source.name for source in corpus.sources)))
        else:
            used.add((way.get("copy") or way["tar"]).partition(":")[0])
    return [source for source in corpus.sources if source.name in used]


def _transfer(source: catalogue.Source, store: Path, progress: bool) -> None:
    if isinstance(source, git.Source):
        git.fetch(source, store / f"{source.name}.git", progress=progress)
    elif not (store / source.name).is_file():
        rest = store / f"{source.name}.rest"
        for place, url in enumerate(source.urls, start=1):
            try:
                downloads.download(url, store / source.name, source.sha256, rest, progress=progress)
                return
            except ConnectionError:
                if place == len(source.urls):
                    raise


def _contents(corpus: catalogue.Corpus, needed: list, names: list[str], store: Path) -> dict[str, bytes]:
    """What is to be in the files, before compression."""
    sources = {
        source.name: dict(git.read(source, store / f"{source.name}.git")) if isinstance(source, git.Source)
        else {source.name: (store / source.name).read_bytes()}
        for source in needed
    }  # fmt: skip
    contents: dict[str, bytes] = {}
    for name in names:
        way = corpus.ways[name]
        source, _, path = (way.get("copy") or way.get("tar", "")).partition(":")
        if "copy" in way:
            contents[name] = sources[source][path]
        elif "tar" in way:
            contents[name] = packing.tar({way["as"] + place.removeprefix(path): body
                                          for place, body in sources[source].items() if place.startswith(path)})
        elif name not in contents:
            contents |= recipes.RECIPES[way["made"]](sources)
    return contents


def _keep(corpus: catalogue.Corpus, wanted: catalogue.Status, content: bytes, source: str) -> None:
    """Compresses and writes a file if its content is the expected one."""
    part = wanted.path.with_name(f".part-{wanted.path.name}")
    try:
        part.write_bytes(packing.pack(wanted.path.name, content))
        got = packing.content_digest(part)
        expected = corpus.contents.get(wanted.file, got)
        checks.expect(got == expected, f"{wanted.path.name} from {source}", f"content of SHA-256 {expected}",
                      f"{got}; nothing was kept")
        part.replace(wanted.path)
    finally:
        part.unlink(missing_ok=True)
