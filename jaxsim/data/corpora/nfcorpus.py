"""NFCorpus: titles of NutritionFacts.org pages as queries, abstracts of PubMed as documents, graded by links."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field

from jaxsim import checks
from jaxsim.data import catalogue, files

_CORPUS = "nfcorpus"
SPLITS = ("train", "dev", "test")


@dataclass(frozen=True, eq=False)
class Collection:
    """A test collection.

    Attributes:
      name: of the corpus, as records give it.
      documents: identifier -> text, lower-case and without stop words, as distributed.
      queries: split -> identifier -> title.
      qrels: split -> query -> document -> grade: 3 for a direct link, 2 for an indirect one, 1 for a shared topic.
      sha256: digest of texts, titles and grades, 64 hexadecimal digits.
      counts: what was read and what was left out.
    """

    name: str
    documents: dict[str, str]
    queries: dict[str, dict[str, str]]
    qrels: dict[str, dict[str, dict[str, int]]]
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief


def load(*, root: str | os.PathLike | None = None, verify: bool = True) -> Collection:
    """Loads documents, titles and grades.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The collection; grades of documents whose text the distribution lacks are left out, and queries that have no
      other; both are counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: a damaged file, an identifier with two texts, a grade of an unknown query, or one that is no number
        from 1 to 3; names file and line.
    """
    documents: dict[str, str] = {}
    for split in SPLITS[1:]:
        for where, (key, text) in _rows(f"{split}.docs.tsv.xz", 2, root, verify):
            checks.expect(documents.setdefault(key, text) == text, where, f"the text of {key!r} read before", "another")
    queries, qrels = {}, {}
    counts: dict[str, int] = {"documents": len(documents), "grades": 0, "grades_without_text": 0,
                              "queries_without_grade": 0}
    for split in SPLITS:
        titles: dict[str, str] = {}
        for where, (key, title) in _rows(f"{split}.titles.queries.gz", 2, root, verify):
            checks.expect(key not in titles, where, "an identifier not used before", repr(key))
            titles[key] = title
        result: dict[str, dict[str, int]] = {}
        for where, (query, _, document, grade) in _rows(f"{split}.3-2-1.qrel.gz", 4, root, verify):
            checks.expect(query in titles, where, f"a query of {split}.titles.queries.gz", repr(query))
            checks.expect(grade in ("1", "2", "3"), where, "a grade of 1, 2 or 3", repr(grade))
            counts["grades"] += 1
            if document in documents:
                result.setdefault(query, {})[document] = int(grade)
            else:
                counts["grades_without_text"] += 1
        counts["queries_without_grade"] += len(titles) - len(result)
        queries[split] = {key: titles[key] for key in titles if key in result}
        qrels[split] = {key: result[key] for key in queries[split]}
        counts[split] = len(result)
    digest = hashlib.sha256()
    for part in (*documents.items(), *(item for split in SPLITS for item in queries[split].items())):
        digest.update("\0".join(part).encode("utf-8") + b"\0")
    for split in SPLITS:
        digest.update(repr(sorted((key, sorted(of.items())) for key, of in qrels[split].items())).encode("utf-8"))
    return Collection(_CORPUS, documents, queries, qrels, digest.hexdigest(), counts)


def _rows(file: str, number: int, root, verify: bool):
    """Place and fields of every line that is not empty."""
    path = catalogue.find(_CORPUS, file, root=root, verify=verify)
    for line, content in enumerate(files.read_lines(path), start=1):
        if content:
            fields, where = content.split("\t"), f"{path}, line {line}"
            checks.expect(len(fields) == number, where, f"{number} fields with tabs between", len(fields))
            yield where, fields
