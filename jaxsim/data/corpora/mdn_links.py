"""MDN Web Docs across languages: a translation asks for the English pages that its English mate links to (003 §4.3).

A link is one of the English mate's, so that the labels do not depend on how complete a translation is. Texts are prose:
link targets and macros, which would give the links away, are cut.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data import links as links_room
from jaxsim.data.corpora import mdn
from jaxsim.data.corpora.wikispeedia import Articles
from jaxsim.text.markup import prose


@dataclass(frozen=True, eq=False)
class LinkedPages:
    """English pages with the links between them, and translations of some.

    Attributes:
      name: of the corpus, as records give it.
      language: of the translations.
      ids: of the English pages, as in `mdn.load`.
      texts: of the English pages.
      links: ``[n, 2]`` int64 rows of English pages, source and target, in order of both.
      mates: ``[m]`` int64, the English page of every translation.
      translations: ``[m]`` texts.
      sha256: digest of all of these, 64 hexadecimal digits.
      counts: what was read and what was left out.
    """

    name: str
    language: str
    ids: tuple[str, ...]
    texts: tuple[str, ...]
    links: np.ndarray
    mates: np.ndarray
    translations: tuple[str, ...]
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief

    def across(self) -> np.ndarray:
        """Links from translations to English pages, ``[*, 2]`` int64 rows of `translations` and of `ids`.

        A page never links to itself, so that no translation has its own mate among the right answers.
        """
        query = np.full(len(self.ids), -1)
        query[self.mates] = np.arange(self.mates.size)
        result = np.column_stack([query[self.links[:, 0]], self.links[:, 1]])
        return result[result[:, 0] >= 0]


def english(*, root: str | os.PathLike | None = None, verify: bool = True) -> Articles:
    """Loads all English pages with prose and their links, without translations: a collection like Wikispeedia.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The pages in the order of their file; the title is the last part of the address. Pages without prose are left out
      with their links; self links are left out, and a link given twice counts once. All of it is counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: a link of an unknown page, or a damaged file (named, with the line).
    """
    path, raw = _pages(root, verify)
    ends = _ends(path, raw, root, verify)
    result = _prose(raw)
    links = _rows(ends, {key: number for number, key in enumerate(result)})
    loops = sum(source == target for source, target in ends)
    counts = {"articles": len(result), "without_text": len(raw) - len(result), "links_read": len(ends),
              "self_links": loops, "links": len(links)}
    digest = hashlib.sha256()
    for part in (*result, *result.values()):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(np.ascontiguousarray(links, "<i8").tobytes())
    titles = tuple(key.rpartition("/")[2].replace("_", " ") for key in result)
    return Articles("mdn en", tuple(result), titles, tuple(result.values()), links, digest.hexdigest(), counts)


def _pages(root, verify: bool) -> tuple[Path, dict[str, str]]:
    """The file of the English pages, and these as they stand in it."""
    path = catalogue.find("mdn", "en.jsonl.xz", root=root, verify=verify)
    return path, {f"mdn/{record['id']}": record["text"] for _, record in files.read_jsonl(path, ("id", "text"))}


def _ends(path: Path, raw: dict[str, str], root, verify: bool) -> list[tuple[str, str]]:
    """Source and target of every link, in the order of the file."""
    ends = [(source, target) for source, target, _ in mdn.links(root=root, verify=verify)]
    strange = [key for pair in ends for key in pair if key not in raw]
    checks.expect(not strange, "links.tsv.xz", f"ids of {path.name}", strange[:1])
    return ends


def _prose(raw: dict[str, str]) -> dict[str, str]:
    return {key: body for key, body in ((key, prose(body)) for key, body in raw.items()) if body.strip()}


def _rows(ends: list[tuple[str, str]], row: dict[str, int]) -> np.ndarray:
    """Links of which both ends are there, as unique pairs of rows."""
    pairs = np.asarray([(row[a], row[b]) for a, b in ends if a in row and b in row], np.int64).reshape(-1, 2)
    return links_room.checked(pairs, len(row))


def load(
    language: str, *, limit: int | None = None, root: str | os.PathLike | None = None, verify: bool = True
) -> LinkedPages:
    """Loads all English pages with prose, their links, and the translations of one language.

    Args:
      language: ``"es"``, ``"ja"``, ``"fr"`` or ``"de"``.
      limit: how many pages to load at most: of those that are translated, those with most links; None for all pages,
        translated or not.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The pages in the order of their file. Pages and translations without prose are left out with their links; self
      links are left out, and a link given twice counts once. All of it is counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: unknown language, a translation without its English page or of a page that has one already, a link of
        an unknown page, or a damaged file (named, with the line).
    """
    checks.expect(language in mdn.LANGUAGES, "language", f"one of {', '.join(mdn.LANGUAGES)}", repr(language))
    if limit is not None:
        checks.positive_int(limit, "limit")
    english_path, raw = _pages(root, verify)
    path = catalogue.find("mdn", f"{language}.jsonl.xz", root=root, verify=verify)
    translated: dict[str, str] = {}
    for number, record in files.read_jsonl(path, ("id", "text")):
        key, where = f"mdn/{record['id']}", f"{path}, line {number}"
        checks.expect(key in raw, where, f"an id of {english_path.name}", repr(record["id"]))
        checks.expect(key not in translated, where, "an id not used before", repr(record["id"]))
        translated[key] = record["text"]
    ends = _ends(english_path, raw, root, verify)
    counts = {"pages": len(raw), "translations": len(translated), "links_read": len(ends)}
    if limit is not None:
        degree = dict.fromkeys(translated, 0)
        for pair in ends:
            for key in pair:
                if key in degree:
                    degree[key] += 1
        chosen = set(sorted(degree, key=lambda key: (-degree[key], key))[:limit])
        raw, translated = ({key: body for key, body in of.items() if key in chosen} for of in (raw, translated))
    result = _prose(raw)
    row = {key: number for number, key in enumerate(result)}
    answers = _prose({key: body for key, body in translated.items() if key in row})
    links = _rows(ends, row)
    mates = np.asarray([row[key] for key in answers], np.int64)
    counts |= {"pages_used": len(result), "translations_used": len(answers), "links": len(links)}
    digest = hashlib.sha256()
    for part in (*result, *result.values(), *answers, *answers.values()):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(np.ascontiguousarray(links, "<i8").tobytes())
    return LinkedPages(f"mdn links en-{language}", language, tuple(result), tuple(result.values()), links, mates,
                       tuple(answers.values()), digest.hexdigest(), counts)
