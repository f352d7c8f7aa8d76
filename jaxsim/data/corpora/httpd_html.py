"""The Apache HTTP Server manual: HTML pages, and the links between them with their anchor texts.

An anchor text is a query that the authors of the manual wrote and answered with a link. Such labels are weak and
binary: say so wherever results are shown.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import NamedTuple

from jaxsim import checks
from jaxsim.data import catalogue, files

_CORPUS = "httpd_html"
_FOLDER, _SUFFIXES = "manual/", (".en", ".en.utf8")
_HEADER = ["source", "target", "fragment", "anchor", "boilerplate"]


class Link(NamedTuple):
    """A link between two pages.

    Attributes:
      source: row of the page that has it.
      target: row of the page that it leads to.
      anchor: its text.
    """

    source: int
    target: int
    anchor: str


@dataclass(frozen=True, eq=False)
class Manual:
    """Pages and their links.

    Attributes:
      name: of the corpus, as records give it.
      ids: path of each page below the manual, without its language; sorted.
      pages: their HTML.
      links: in the order of the file, boilerplate left out.
      sha256: of pages and links.
      counts: what was read and what was left out.
    """

    name: str
    ids: tuple[str, ...]
    pages: tuple[str, ...]
    links: tuple[Link, ...]
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief


def load(*, root: str | os.PathLike | None = None, verify: bool = True) -> Manual:
    """Loads pages and links.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      `Manual`. Of a page in two encodings the UTF-8 file counts.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: a damaged file, a line of another form, or a link to or from an unknown page; names file and line.
    """
    archive = catalogue.find(_CORPUS, "manual_en_html.tar.xz", root=root, verify=verify)
    result = files.read_archive(archive, keep=lambda name: name.endswith(_SUFFIXES))
    pages: dict[str, str] = {}
    for name in sorted(result):  # x.en before x.en.utf8
        pages[name.removeprefix(_FOLDER).removesuffix(".utf8").removesuffix(".en")] = result[name]
    checks.expect(bool(pages), str(archive), "pages", "none")
    ids = tuple(sorted(pages))
    row = {name: number for number, name in enumerate(ids)}
    path = catalogue.find(_CORPUS, "links.tsv.gz", root=root, verify=verify)
    links, read = [], 0
    for number, line in enumerate(files.read_lines(path), start=1):
        cells, where = line.split("\t"), f"{path}, line {number}"
        if number == 1:
            checks.expect(cells == _HEADER, where, f"the columns {', '.join(_HEADER)}", line[:60])
            continue
        checks.expect(len(cells) == len(_HEADER), where, f"{len(_HEADER)} fields with tabs between", len(cells))
        source, target, _, anchor, boilerplate = cells
        for page in (source, target):
            checks.expect(page in row, where, "pages of the archive", repr(page))
        checks.expect(boilerplate in ("0", "1"), where, "0 or 1 in the last field", repr(boilerplate))
        read += 1
        if boilerplate == "0":
            links.append(Link(row[source], row[target], anchor))
    digest = hashlib.sha256()
    for part in (*ids, *(pages[name] for name in ids), *("\t".join(map(str, link)) for link in links)):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    counts = {"files": len(result), "pages": len(ids), "links_read": read, "links": len(links)}
    return Manual(_CORPUS, ids, tuple(pages[name] for name in ids), tuple(links), digest.hexdigest(), counts)
