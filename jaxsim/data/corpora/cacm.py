"""CACM: 3,204 articles of the Communications of the ACM, 1958 to 1979, and which of them cite each other."""

from __future__ import annotations

import hashlib
import os
import re

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files, links
from jaxsim.data.corpora.wikispeedia import Articles

_CORPUS, _FILE = "classic_ir", "cacm/cacm.all.gz"
_WORD = re.compile(r"\w")  # a text without a match has no words
_NUMBER = re.compile(r"[0-9]+")
_FIELDS = ("T", "W", "B", "A", "N", "K", "C", "X")
_CITED = "5"  # the kind of cross reference that is a citation; 4 and 6 are counts of shared ones


def load(*, root: str | os.PathLike | None = None, verify: bool = True) -> Articles:
    """Loads titles with abstracts, and citations.

    Half of the articles are titles alone. The collection gives a citation in both directions and does not say which
    article is the citing one, so links are symmetric: whoever splits them keeps both directions together.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      The articles in the order of the file. Authors, keywords and categories are no part of a text. Articles of no
      words are left out with their links; self links are left out, and a link given twice counts once, and each has
      its counterpart. All of it is counted.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file, an article twice, a line outside a field, or a cross reference that is not of three
        numbers, of another article's list, or to an unknown article; names file and line.
    """
    path = catalogue.find(_CORPUS, _FILE, root=root, verify=verify)
    bodies, titles, cited = _read(path)
    result = {key: body for key, body in bodies.items() if _WORD.search(body)}
    row = {key: number for number, key in enumerate(result)}
    for where, ends in cited:
        for key in ends:
            checks.expect(key in bodies, where, "an article of the file", key)
    ends = np.asarray([[row[a], row[b]] for _, (a, b) in cited if a in row and b in row], np.int64).reshape(-1, 2)
    unique = links.checked(np.concatenate([ends, ends[:, ::-1]]), len(result))
    counts = {"articles": len(result), "without_text": len(bodies) - len(result),
              "without_abstract": sum(result[key] == titles[key] for key in result), "links_read": len(cited),
              "links_without_text": len(cited) - len(ends), "self_links": int((ends[:, 0] == ends[:, 1]).sum()),
              "links": len(unique)}
    digest = hashlib.sha256()
    for part in (*result, *result.values()):
        digest.update(part.encode("utf-8") + b"\0")
    digest.update(np.ascontiguousarray(unique, "<i8").tobytes())
    return Articles("cacm", tuple(result), tuple(titles[key] for key in result), tuple(result.values()), unique,
                    digest.hexdigest(), counts)


def _read(path) -> tuple[dict[str, str], dict[str, str], list[tuple[str, tuple[str, str]]]]:
    """Texts and titles by number, and citations with their places; an empty field is none."""
    articles: dict[str, dict[str, list[str]]] = {}
    cited, key, name = [], None, None
    for number, line in enumerate(files.read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith(".I "):
            key, name = line[3:].strip(), None
            checks.expect(_NUMBER.fullmatch(key) is not None, where, "the number of an article", repr(key))
            checks.expect(key not in articles, where, "every article once", f"{key} twice")
            articles[key] = {"T": [], "W": []}
        elif len(line) == 2 and line[0] == "." and line[1] in _FIELDS:
            checks.expect(key is not None, where, "an article's first line, .I and a number", repr(line))
            name = line[1]
        elif line.strip() not in ("", "."):  # a full stop ends the file
            checks.expect(name is not None, where, "a field of an article", repr(line))
            if name == "X":
                fields = line.split()
                whole = len(fields) == 3 and all(map(_NUMBER.fullmatch, fields)) and fields[2] == key
                checks.expect(whole, where, f"an article, a kind and {key}", repr(line))
                if fields[1] == _CITED:
                    cited.append((where, (key, fields[0])))
            elif name in articles[key]:
                articles[key][name].append(line)
    titles = {key: "\n".join(of["T"]) for key, of in articles.items()}
    bodies = {key: "\n".join([*of["T"], *of["W"]]) for key, of in articles.items()}
    return bodies, titles, cited
