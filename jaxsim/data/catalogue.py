"""What the corpora are, where they come from, under which terms, and whether the files here are the expected ones."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from jaxsim import checks
from jaxsim.data import files
from jaxsim.data.checksums import SHA256


@dataclass(frozen=True)
class Corpus:
    """A corpus that a loader reads.

    Attributes:
      name: of the loader and of the folder below the data folder.
      title: what it is, in a few words.
      source: where the texts come from: web address or repositories, enough to get them again.
      licence: terms of the texts, as their owners state them.
      files: file name -> SHA-256 of the files as distributed; empty where any file will do.
    """

    name: str
    title: str
    source: str
    licence: str
    files: dict[str, str]


def _files(name: str) -> dict[str, str]:
    return {path.partition("/")[2]: digest for path, digest in SHA256.items() if path.partition("/")[0] == name}


CORPORA = {
    corpus.name: corpus
    for corpus in (
        Corpus(
            "docstrings",
            "summaries and bodies of the docstrings of installed Python packages",
            "the installed numpy, scipy, jax, flax, optax and jaxopt",
            "BSD-3-Clause (numpy, scipy), Apache-2.0 (jax, flax, optax, jaxopt)",
            {},
        ),
        Corpus(
            "doc_pairs",
            "pages of open documentation projects and other texts, English with Spanish, Japanese, French or German",
            "16 sources, among them github.com/MicrosoftDocs/cpp-docs and biztalk-docs, freeCodeCamp, tldr-pages/tldr, "
            "withastro/docs, python/python-docs-es and -ja, mdn/archived-content, google-deepmind/xquad, tico-19",
            "a licence for each source: CC BY 4.0, CC BY-SA, MIT, BSD, PSF, CC0 and public domain",
            _files("doc_pairs"),
        ),
        Corpus(
            "mdn",
            "MDN Web Docs, English pages and their Spanish, Japanese, French and German translations",
            "github.com/mdn/content and github.com/mdn/translated-content, state of 2023-02-08 (German: 2022-07-28)",
            "CC BY-SA 2.5, Mozilla Contributors; code samples CC0 or MIT",
            _files("mdn"),
        ),
        Corpus(
            "europarl_en_it",
            "European Parliament proceedings 1996-2001, English and Italian, aligned lines of 129 session days",
            "early sentence-aligned release of Europarl, www.statmt.org/europarl (Koehn 2005)",
            "no known copyright restriction; to be acknowledged: European Parliament",
            _files("europarl_en_it"),
        ),
        Corpus(
            "europarl_en_fr_tagged",
            "European Parliament proceedings of January 2000 in the release format, English and French",
            "www.statmt.org/europarl (Koehn 2005): the source release, folders txt/en, txt/fr and so on",
            "no known copyright restriction; to be acknowledged: European Parliament",
            _files("europarl_en_fr_tagged"),
        ),
    )
}


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
    checks.expect(name in CORPORA, "corpus", f"one of {', '.join(sorted(CORPORA))}", repr(name))
    return CORPORA[name]


def find(name: str, file: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> Path:
    """Path of a corpus file, after its checksum was compared.

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
        raise files.MissingCorpus(f"{error}; needed: {hint}") from error
    if not path.is_file():
        raise files.MissingCorpus(f"{path}: expected {hint}; got no such file")
    if verify and file in corpus.files:
        digest = files.sha256(path)
        expected = corpus.files[file]
        checks.expect(digest == expected, str(path), f"SHA-256 {expected}", f"{digest} (damaged or changed)")
    return path
