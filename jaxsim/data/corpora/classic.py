"""Four classic test collections: Cranfield, CISI, CACM and NPL, with their queries and judgements."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data.pairs import Pairs, make

COLLECTIONS = ("cranfield", "cisi", "cacm", "npl")
_CORPUS = "classic_ir"
_WORD = re.compile(r"\w")  # a text without a match has no words
_NUMBER = re.compile(r"-?[0-9]+")
_SMART = {
    "cranfield": ("cran.all.1400", "cran.qry", "cranqrel"),
    "cisi": ("CISI.ALL", "CISI.QRY", "CISI.REL"),
    "cacm": ("cacm.all", "query.text", "qrels.text"),
}
_HIGHEST = 5  # codes of Cranfield's judgements fall from 1, the best, to 4


@dataclass(frozen=True, eq=False)
class Collection:
    """A test collection and the pairs that its documents are made of.

    Attributes:
      name: of the collection, as records give it.
      documents: identifier -> title and text.
      pairs: title and text of every document that has words in both; of NPL, which has no titles, the first third of
        the words and the rest.
      queries: identifier -> text, of the queries with a relevant document.
      qrels: query -> document -> grade; 1 in binary collections, 1 to 4 in Cranfield, where 4 is the best.
      sha256: digest of texts, queries and grades, 64 hexadecimal digits.
      counts: what was read and what was left out.
    """

    name: str
    documents: dict[str, str]
    pairs: Pairs
    queries: dict[str, str]
    qrels: dict[str, dict[str, int]]
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief


def load(name: str, *, root: str | os.PathLike | None = None, verify: bool = True) -> Collection:
    """Loads one of the collections.

    Args:
      name: of `COLLECTIONS`.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The collection. Cranfield's judgements of the unclear code -1 are left out and counted, and so are queries
      without a relevant document.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: another name, a damaged file, a number that occurs twice, or a judgement of an unknown query or
        document; names file and line.
    """
    checks.expect(name in COLLECTIONS, "name", f"one of {', '.join(COLLECTIONS)}", name)
    read = _npl if name == "npl" else _smart
    parts, asked, judged, unclear = read(name, root, verify)
    documents = {key: "\n".join(filter(None, both)) for key, both in parts.items()}
    qrels: dict[str, dict[str, int]] = {}
    for where, query, document, grade in judged:
        checks.expect(query in asked, where, f"a query of {name}", query)
        checks.expect(document in documents, where, f"a document of {name}", document)
        qrels.setdefault(query, {})[document] = grade
    queries = {key: text for key, text in asked.items() if key in qrels}
    qrels = {key: qrels[key] for key in queries}
    apart = {key: _apart(part) for key, part in parts.items()}
    both = {key: part for key, part in apart.items() if all(map(_WORD.search, part))}
    digest = hashlib.sha256()
    for part in (*documents.items(), *queries.items()):
        digest.update("\0".join(part).encode("utf-8") + b"\0")
    digest.update(repr([(key, sorted(of.items())) for key, of in qrels.items()]).encode("utf-8"))
    counts = {"documents": len(documents), "pairs": len(both), "queries": len(queries),
              "queries_without_judgement": len(asked) - len(queries), "judgements": sum(map(len, qrels.values())),
              "judgements_unclear": unclear}
    pairs = make(name, list(both), *zip(*both.values(), strict=True), languages=("en", "en"))
    return Collection(name, documents, pairs, queries, qrels, digest.hexdigest(), counts)


def _apart(parts: tuple[str, str]) -> tuple[str, str]:
    """Title and body, the body without the title that some begin with."""
    title, body = (" ".join(part.split()) for part in parts)
    return title, body.removeprefix(title).strip()


def _find(name: str, file: str, root, verify: bool):
    return catalogue.find(_CORPUS, f"{name}/{file}.gz", root=root, verify=verify)


def _smart(name: str, root, verify: bool) -> tuple:
    """Documents, queries and judgements in the format of the SMART system."""
    texts, asked, relations = (_find(name, file, root, verify) for file in _SMART[name])
    parts = {key: (of.get("T", ""), of.get("W", "")) for key, of in _records(texts)}
    queries = [(key, of.get("W", "")) for key, of in _records(asked) if of.get("W", "").strip()]
    if name == "cranfield":  # judgements count queries by their place, whatever their number is
        queries = [(str(place), text) for place, (_, text) in enumerate(queries, start=1)]
    judged, unclear = [], 0
    for number, line in enumerate(files.read_lines(relations), start=1):
        fields, where = line.split(), f"{relations}, line {number}"
        if not fields:
            continue
        whole = len(fields) >= 3 and all(map(_NUMBER.fullmatch, fields[:3]))
        checks.expect(whole, where, "query, document and code, three numbers", repr(line))
        query, document, code = (str(int(one)) for one in fields[:3])
        if name == "cranfield" and int(code) < 1:
            unclear += 1
            continue
        judged.append((where, query, document, _HIGHEST - int(code) if name == "cranfield" else 1))
    return parts, dict(queries), judged, unclear


def _records(path) -> Iterator[tuple[str, dict[str, str]]]:
    """Number and fields of every record; a line ``.I 0`` ends CACM's queries."""
    key, name, fields, seen = None, None, {}, set()
    for number, line in enumerate(files.read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith(".I"):
            if key is not None:
                yield key, fields
            given = line[2:].strip()
            checks.expect(_NUMBER.fullmatch(given) is not None, where, "the number of a record", repr(line))
            key, name, fields = str(int(given)), None, {}
            checks.expect(key not in seen, where, "every record once", f"{key} twice")
            seen.add(key)
        elif re.fullmatch(r"\.[A-Z]\s*", line):
            checks.expect(key is not None, where, "a record's first line, .I and a number", repr(line))
            name = line[1]
        elif line.strip() and name is not None:
            fields[name] = f"{fields[name]}\n{line}" if name in fields else line
    if key is not None:
        yield key, fields


def _npl(name: str, root, verify: bool) -> tuple:
    """NPL: records end with a line of a slash."""
    documents, asked, relations = (_find(name, file, root, verify) for file in ("doc-text", "query-text", "rlv-ass"))
    parts = {}
    for _, key, lines in _slashed(documents):
        words = " ".join(lines).split()
        third = -(-len(words) // 3)
        parts[key] = " ".join(words[:third]), " ".join(words[third:])
    queries = {key: " ".join(lines) for _, key, lines in _slashed(asked)}
    judged = [(where, key, str(int(document)), 1) for where, key, lines in _slashed(relations)
              for document in " ".join(lines).split()]
    return parts, queries, judged, 0


def _slashed(path) -> Iterator[tuple[str, str, list[str]]]:
    """Place, number and lines of every record."""
    record: list[str] = []
    for number, line in enumerate([*files.read_lines(path), "/"], start=1):  # the last record of a file may be open
        if line.strip() != "/":
            record += [line.strip()] if line.strip() else []
        elif record:
            where = f"{path}, line {number}"
            checks.expect(_NUMBER.fullmatch(record[0]) is not None, where, "the number of a record", repr(record[0]))
            yield where, record[0], record[1:]
            record = []
