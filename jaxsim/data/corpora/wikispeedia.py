"""Wikispeedia: the articles of the 2007 Wikipedia for Schools, the links between them, and the clicks of its game.

What gives the links or the subject away is cut: the line ``#copyright`` and the whole paragraph "Related subjects",
which runs over several lines in a quarter of the articles.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import unquote

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files, links

_CORPUS = "wikispeedia"
_FOLDER, _SUFFIX = "plaintext_articles/", ".txt"
_WORD = re.compile(r"\w")  # a text without a match has no words
_SUBJECTS = "2007 Schools Wikipedia Selection. Related subjects"


@dataclass(frozen=True, eq=False)
class Articles:
    """Documents that link to each other.

    Attributes:
      name: of the corpus, as records give it.
      ids: one identifier an article, its URL-encoded title.
      titles: as people read them.
      texts: what is left of the articles after the cuts.
      links: ``[n, 2]`` int64, source and target as rows, in order of both; no self links, each link once.
      sha256: digest of ids, texts and links, 64 hexadecimal digits.
      counts: what was read and what was left out.
    """

    name: str
    ids: tuple[str, ...]
    titles: tuple[str, ...]
    texts: tuple[str, ...]
    links: np.ndarray
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief


def stripped(article: str) -> str:
    r"""An article without its ``#copyright`` line and without the paragraph of related subjects.

    Args:
      article: the text as distributed.

    Returns:
      The other lines, title included.

    Example:
      >>> page = "#copyright\n\nAachen\n\n2007 Schools Wikipedia Selection. Related subjects: Cities\nof Europe\n\nOld."
      >>> stripped(page)
      '\nAachen\n\n\nOld.'
    """
    kept, inside = [], False
    for line in article.split("\n"):
        inside = line.startswith(_SUBJECTS) or (inside and bool(line.strip()))
        if not inside and line.strip() != "#copyright":
            kept.append(line)
    return "\n".join(kept)


def load(*, root: str | os.PathLike | None = None, verify: bool = True) -> Articles:
    """Loads the articles and their links.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The articles in the order of ``articles.tsv``. Articles without a text, or of which no word is left, are left out
      with their links; self links are left out, and a link given twice counts once. All of it is counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: a damaged file, a link to or from an unknown article, or a text of one; names file and line.
    """
    listed = [fields[0] for _, fields in _rows("articles.tsv.gz", 1, root, verify)]
    known = {name: number for number, name in enumerate(listed)}
    checks.expect(len(known) == len(listed), f"{_CORPUS}, articles.tsv.gz", "every article once", "one twice")
    path = catalogue.find(_CORPUS, "plaintext_articles.tar.xz", root=root, verify=verify)
    result = files.read_archive(path, keep=lambda name: name.endswith(_SUFFIX))
    bodies = {name.removeprefix(_FOLDER).removesuffix(_SUFFIX): stripped(body) for name, body in result.items()}
    strange = sorted(bodies.keys() - known.keys())
    checks.expect(not strange, str(path), "texts of articles in articles.tsv.gz", strange[:1])
    ids = tuple(name for name in listed if _WORD.search(bodies.get(name, "")))
    row = {name: number for number, name in enumerate(ids)}
    read, ends = 0, []
    for where, fields in _rows("links.tsv.gz", 2, root, verify):
        read += 1
        for name in fields:
            checks.expect(name in known, where, "articles of articles.tsv.gz", repr(name))
        if all(name in row for name in fields):
            ends.append([row[name] for name in fields])
    pairs = np.asarray(ends, np.int64).reshape(-1, 2)
    loops = int((pairs[:, 0] == pairs[:, 1]).sum())
    unique = links.checked(pairs, len(ids))
    counts = {
        "articles": len(ids), "without_text": len(listed) - len(ids), "links_read": read,
        "links_without_text": read - len(pairs), "self_links": loops,
        "links_twice": len(pairs) - loops - len(unique), "links": len(unique),
    }
    texts = tuple(bodies[name] for name in ids)
    digest = hashlib.sha256()
    for part in (*ids, *texts):
        digest.update(part.encode("utf-8") + b"\0")
    digest.update(np.ascontiguousarray(unique, "<i8").tobytes())
    titles = tuple(unquote(name).replace("_", " ") for name in ids)
    return Articles(_CORPUS, ids, titles, texts, unique, digest.hexdigest(), counts)


def clicks(articles: Articles, *, root: str | os.PathLike | None = None, verify: bool = True) -> np.ndarray:
    """How often each link was clicked in the finished games.

    Args:
      articles: as `load` gives them.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      ``[n, 3]`` int64: source row, target row and number of clicks, in order of the rows; clicks to or from an article
      that was left out are not there.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file, or a click from an article to itself; names file and line.
    """
    row = {name: number for number, name in enumerate(articles.ids)}
    steps = []
    for where, fields in _rows("paths_finished_articles.tsv.gz", 1, root, verify):
        path = fields[0].split(";")
        for source, target in zip(path[:-1], path[1:], strict=True):
            checks.expect(source != target, where, "clicks to another article", repr(source))
            if source in row and target in row:
                steps.append((row[source], row[target]))
    pairs, times = np.unique(np.asarray(steps, np.int64).reshape(-1, 2), axis=0, return_counts=True)
    return np.column_stack([pairs, times])


def _rows(file: str, number: int, root, verify: bool) -> Iterator[tuple[str, list[str]]]:
    """Place and fields of every line that is neither empty nor a comment."""
    path = catalogue.find(_CORPUS, file, root=root, verify=verify)
    for line, content in enumerate(files.read_lines(path), start=1):
        if content and not content.startswith("#"):
            fields = content.split("\t")
            where = f"{path}, line {line}"
            checks.expect(len(fields) == number, where, f"{number} fields with tabs between", len(fields))
            yield where, fields
