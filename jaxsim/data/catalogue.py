"""What the corpora are, where they come from, under which terms, and whether the files here are the expected ones."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from jaxsim import checks
from jaxsim.data import files, git, packing


@dataclass(frozen=True)
class Archive:
    """One file at a public address, of which corpus files are made.

    Attributes:
      name: what a recipe calls it.
      urls: its address, and others that hold the same file, in the order in which they are tried.
      sha256: its digest.
      megabytes: its size.
    """

    name: str
    urls: tuple[str, ...]
    sha256: str
    megabytes: float

    @property
    def url(self) -> str:
        """Its first address."""
        return self.urls[0]


Source = git.Source | Archive


@dataclass(frozen=True)
class Corpus:
    """A corpus that a loader reads.

    Attributes:
      name: of the loader and of the folder below the data folder.
      title: what it is, in a few words.
      source: where the texts come from: web address or repositories, enough to get them again.
      licence: terms of the texts, as their owners state them.
      files: file name -> SHA-256 of the files as distributed, None where none is known; empty where any file will do.
      addresses: file name -> public web address, for files that have one.
      packed: how files without an address were made from the source, for people who want to make them again.
      terms: what whoever fetches it should read first; empty where the licence says it all.
      megabytes: size of its files.
      compared: what came out where the recipe was run and its files were compared with those behind the tables.
      contents: file name -> digest of what is inside, whatever the compression; see `packing.content_digest`.
      counts: file name -> what is counted of an archive that has no published digest; see `packing.expect_counts`.
      ways: file name -> how it is made of the sources: ``copy``, ``tar`` or ``made``.
      sources: the repositories that it is made of.
    """

    name: str
    title: str
    source: str
    licence: str
    files: dict[str, str | None]
    addresses: dict[str, str] = field(default_factory=dict)
    packed: str = ""
    terms: str = ""
    megabytes: float = 0.0
    compared: str = ""
    contents: dict[str, str] = field(default_factory=dict)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    ways: dict[str, dict[str, str]] = field(default_factory=dict)
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class Status:
    """Whether a file of a corpus is there and the expected one.

    Attributes:
      file: its name.
      path: where it is looked for; None where no data folder is known.
      state: ``"verified"``, ``"present"`` (there, but no checksum is known), ``"missing"`` or ``"wrong"``.
      expected: SHA-256 as distributed, or None.
      got: SHA-256 of what is there, or None.
    """

    file: str
    path: Path | None
    state: str
    expected: str | None
    got: str | None


def _source(entry: dict) -> Source:
    if "url" in entry:
        return Archive(entry["name"], (entry["url"], *entry.get("also", ())), entry["sha256"], entry["megabytes"])
    return git.Source(entry["name"], entry["git"], entry["commit"], tuple(entry["paths"]),
                      tuple(entry.get("match", ())), entry["megabytes"])


def _read() -> dict[str, Corpus]:
    """The corpora of catalogue.toml, in its order."""
    table = tomllib.loads(resources.files("jaxsim.data").joinpath("catalogue.toml").read_text("utf-8"))
    corpora = {}
    for name, entry in table.items():
        entries = entry.get("files", {})
        corpora[name] = Corpus(
            name, entry["title"], entry["source"], entry["licence"],
            files={file: facts.get("sha256") for file, facts in entries.items()},
            addresses={file: facts["url"] for file, facts in entries.items() if "url" in facts},
            packed=entry.get("packed", ""), terms=entry.get("terms", ""), megabytes=entry.get("megabytes", 0.0),
            compared=entry.get("compared", ""),
            contents={file: facts["content"] for file, facts in entries.items() if "content" in facts},
            counts={file: facts["counts"] for file, facts in entries.items() if "counts" in facts},
            ways={file: facts for file, facts in entries.items() if facts.keys() & {"copy", "tar", "made"}},
            sources=tuple(map(_source, entry.get("sources", ()))),
        )  # fmt: skip
    return corpora


CORPORA = _read()


def get(name: str) -> Corpus:
    """One corpus of the catalogue.

    Args:
      name: such as ``"mdn"``.

    Returns:
      Its entry.

    Raises:
      ValueError: no such corpus; the message lists them.

    Example:
      >>> get("mdn").licence
      'CC BY-SA 2.5, Mozilla Contributors; code samples CC0 or MIT'
    """
    checks.expect(name in CORPORA, "name", f"one of {', '.join(sorted(CORPORA))}", repr(name))
    return CORPORA[name]


def find(name: str, file: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> Path:
    """Path of a corpus file whose checksum was compared.

    Args:
      name: of the corpus.
      file: name inside the corpus folder.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the SHA-256; turn it off for files of your own in the same format.

    Returns:
      An existing file.

    Raises:
      MissingCorpus: the file is not there; the message says what to get and from where.
      ValueError: the file is not the expected one.
    """
    corpus = get(name)
    hint = f"the corpus {name!r} ({corpus.title}), from {corpus.source}"
    try:
        path = files.root(root) / name / file
    except files.MissingCorpus as error:
        raise files.MissingCorpus(f"{error}; needed: {hint}", name) from error
    if not path.is_file():
        raise files.MissingCorpus(f"{path}: expected {hint}; got no such file (jaxsim data {name} --fetch)", name)
    if verify and corpus.files.get(file) is not None:
        expect_right([_look(path, file, corpus)])
    return path


def digest(name: str, file: str, path: str | os.PathLike) -> str:
    """SHA-256 of a corpus file that stands for its content: that of the catalogue for the same content packed anew.

    Args:
      name: of the corpus.
      file: name inside the corpus folder.
      path: where it is.

    Returns:
      64 hexadecimal digits.
    """
    corpus = get(name)
    seen = _look(Path(path), file, corpus)
    return seen.expected if seen.state == "verified" else seen.got


def status(name: str, folder: str | os.PathLike | None) -> list[Status]:
    """Look at every file of a corpus; missing and wrong ones are reported, not refused.

    Args:
      name: of the corpus.
      folder: the corpus's own folder, which need not exist; None where there is none.

    Returns:
      One entry a file, in the catalogue's order.

    Raises:
      ValueError: no such corpus.
      OSError: a file cannot be read.

    Example:
      >>> [(one.file, one.state) for one in status("europarl_release", None)]
      [('europarl.tgz', 'missing')]
    """
    corpus = get(name)
    if folder is None:
        return [Status(file, None, "missing", expected, None) for file, expected in corpus.files.items()]
    return [_look(Path(folder) / file, file, corpus) for file in corpus.files]


def _look(path: Path, file: str, corpus: Corpus) -> Status:
    """State of a file; one that was compressed by another program counts as right where its content is."""
    expected = corpus.files[file]
    if not path.exists():
        return Status(file, path, "missing", expected, None)
    if not path.is_file():
        return Status(file, path, "wrong", expected, None)
    got = files.sha256(path)
    right = got == expected or (file in corpus.contents and _same_content(path, corpus.contents[file]))
    return Status(file, path, "present" if expected is None else "verified" if right else "wrong", expected, got)


def _same_content(path: Path, expected: str) -> bool:
    try:
        return packing.content_digest(path) == expected
    except ValueError:  # damaged
        return False


def expect_right(found: list[Status], advice: str = "") -> None:
    """Refuse files that are not the expected ones.

    Args:
      found: as `status` gives them.
      advice: what to do about it, for the message.

    Raises:
      ValueError: a wrong file; names the first and counts the others.

    Example:
      >>> expect_right([Status("a", Path("a"), "wrong", "00", "11")])
      Traceback (most recent call last):
      ...
      ValueError: a: expected SHA-256 00, got 11 (damaged or changed)
    """
    wrong = [one for one in found if one.state == "wrong"]
    if wrong:
        first, others = wrong[0], len(wrong) - 1
        got = f"{first.got} (damaged or changed)" if first.got else "something that is no file"
        more = f", and {others} more such files" if others else ""
        wanted = "a file" if first.expected is None else f"SHA-256 {first.expected}"
        raise ValueError(f"{first.path}: expected {wanted}, got {got}{more}{advice}")
