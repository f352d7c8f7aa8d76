"""MDN Web Docs across languages: a translation asks for the English pages that its English mate links to (003 §4.3).

A link is one of the English mate's, so that the labels do not depend on how complete a translation is. Texts are prose:
link targets and macros, which would give the links away, are cut.
"""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files, mdn
from jaxsim.data import links as links_room
from jaxsim.markup import prose


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

    def across(self) -> np.ndarray:
        """Links from translations to English pages, ``[*, 2]`` int64 rows of `translations` and of `ids`.

        A page never links to itself, so that no translation has its own mate among the right answers.
        """
        query = np.full(len(self.ids), -1)
        query[self.mates] = np.arange(self.mates.size)
        found = np.column_stack([query[self.links[:, 0]], self.links[:, 1]])
        return found[found[:, 0] >= 0]


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
    english_path = catalogue.find("mdn", "en.jsonl.xz", root=root, verify=verify)
    path = catalogue.find("mdn", f"{language}.jsonl.xz", root=root, verify=verify)
    raw = {f"mdn/{record['id']}": record["text"] for _, record in files.read_jsonl(english_path, ("id", "text"))}
    translated: dict[str, str] = {}
    for number, record in files.read_jsonl(path, ("id", "text")):
        key, where = f"mdn/{record['id']}", f"{path}, line {number}"
        checks.expect(key in raw, where, f"an id of {english_path.name}", repr(record["id"]))
        checks.expect(key not in translated, where, "an id not used before", repr(record["id"]))
        translated[key] = record["text"]
    ends = [(source, target) for source, target, _ in mdn.links(root=root, verify=verify)]
    strange = [key for pair in ends for key in pair if key not in raw]
    checks.expect(not strange, "links.tsv.xz", f"ids of {english_path.name}", strange[:1])
    counts = {"pages": len(raw), "translations": len(translated), "links_read": len(ends)}
    if limit is not None:
        degree = dict.fromkeys(translated, 0)
        for pair in ends:
            for key in pair:
                if key in degree:
                    degree[key] += 1
        chosen = set(sorted(degree, key=lambda key: (-degree[key], key))[:limit])
        raw, translated = ({key: body for key, body in of.items() if key in chosen} for of in (raw, translated))
    found = {key: body for key, body in ((key, prose(body)) for key, body in raw.items()) if body.strip()}
    row = {key: number for number, key in enumerate(found)}
    answers = {key: body for key, body in ((key, prose(body)) for key, body in translated.items() if key in row)
               if body.strip()}
    pairs = np.asarray([(row[a], row[b]) for a, b in ends if a in row and b in row], np.int64).reshape(-1, 2)
    links = links_room.checked(pairs, len(found))
    mates = np.asarray([row[key] for key in answers], np.int64)
    counts |= {"pages_used": len(found), "translations_used": len(answers), "links": len(links)}
    digest = hashlib.sha256()
    for part in (*found, *found.values(), *answers, *answers.values()):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    digest.update(np.ascontiguousarray(links, "<i8").tobytes())
    return LinkedPages(f"mdn links en-{language}", language, tuple(found), tuple(found.values()), links, mates,
                       tuple(answers.values()), digest.hexdigest(), counts)
