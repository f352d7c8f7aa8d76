"""Pairs of texts that people judged: patent phrases (graded similarity) and product search (graded relevance)."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, streams

PHRASE_GRADES = (0.0, 0.25, 0.5, 0.75, 1.0)
SEARCH_GRADES = (1.0, 2.0, 3.0, 4.0)


@dataclass(frozen=True, eq=False)
class Phrases:
    """Pairs of short phrases with a similarity.

    Attributes:
      name: of the corpus, as records give it.
      anchors: the first phrase of each pair; pairs of one anchor stand together.
      targets: the second phrase.
      scores: ``[n]`` float64 similarity, the mean over the contexts in which the pair was judged.
      sha256: of the file.
      counts: what was read and what became of it.
    """

    name: str
    anchors: tuple[str, ...]
    targets: tuple[str, ...]
    scores: np.ndarray
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief


@dataclass(frozen=True, eq=False)
class Search:
    """Products that were found for queries, with a relevance.

    Attributes:
      name: of the corpus, as records give it.
      queries: the query of each row.
      titles: of the product.
      descriptions: of the product, often empty; some hold HTML tags.
      relevance: ``[n]`` float64 from 1 to 4, the median of the judges.
      sha256: of the file.
      counts: what was read and what became of it.
    """

    name: str
    queries: tuple[str, ...]
    titles: tuple[str, ...]
    descriptions: tuple[str, ...]
    relevance: np.ndarray
    sha256: str
    counts: dict = field(default_factory=dict)

    __repr__ = checks.brief


def rows(path: str | os.PathLike, columns: Sequence[str]) -> Iterator[tuple[str, list[str]]]:
    r"""Rows of a CSV file with a header, plain or compressed; fields may hold line ends.

    Args:
      path: the file.
      columns: names of those wanted.

    Yields:
      Where a row starts (for messages), and its fields in the order of ``columns``.

    Raises:
      ValueError: a column that is not there, a row of another width, or bad quotes; names file and line.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
      ...     _ = file.write('a,b\n1,"x\ny"\n')
      ...     file.flush()
      ...     [fields for _, fields in rows(file.name, ["b"])]
      [['x\ny']]
    """
    reader = csv.reader(streams.lines(path), strict=True)
    places, width, start = None, 0, 1
    try:
        for cells in reader:
            where, start = f"{path}, line {start}", reader.line_num + 1
            if places is None:
                for name in columns:
                    checks.expect(name in cells, where, f"the column {name!r}", f"the columns {streams.listed(cells)}")
                places, width = [cells.index(name) for name in columns], len(cells)
                continue
            checks.expect(len(cells) == width, where, f"{width} fields", len(cells))
            yield where, [cells[place] for place in places]
    except csv.Error as error:
        raise ValueError(f"{path}, line {start}: expected CSV, got a row that is not ({error})") from error
    checks.expect(places is not None, str(path), "a header", "an empty file")


def load_phrases(*, root: str | os.PathLike | None = None, verify: bool = True) -> Phrases:
    """Loads the pairs of patent phrases.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Phrases`: each pair of phrases once, without those of a phrase with itself.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file, an empty phrase or a score that is none of `PHRASE_GRADES`; names file and line.
    """
    path = catalogue.find("us_patent_phrases", "train.csv.gz", root=root, verify=verify)
    grades: dict[tuple[str, str], list[float]] = {}
    read = itself = 0
    for where, (anchor, target, score) in rows(path, ("anchor", "target", "score")):
        read += 1
        checks.expect(bool(anchor.strip()) and bool(target.strip()), where, "two phrases", repr((anchor, target)))
        grade = _grade(score, PHRASE_GRADES, "score", where)
        if anchor == target:
            itself += 1
        else:
            grades.setdefault((anchor, target), []).append(grade)
    checks.expect(bool(grades), str(path), "pairs of phrases", "none")
    pairs = sorted(grades, key=lambda pair: pair[0])  # stable: targets stay in the order of the file
    scores = np.array([math.fsum(grades[pair]) / len(grades[pair]) for pair in pairs])
    counts = {"rows": read, "rows_of_a_phrase_with_itself": itself, "pairs": len(pairs),
              "pairs_with_several_rows": sum(len(grades[pair]) > 1 for pair in pairs)}
    anchors, targets = zip(*pairs, strict=True)
    return Phrases("us_patent_phrases", anchors, targets, scores,
                   catalogue.digest("us_patent_phrases", "train.csv.gz", path), counts)


def load_search(*, root: str | os.PathLike | None = None, verify: bool = True) -> Search:
    """Loads the judged products of queries.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      `Search`; a product that is judged twice for a query counts once, with its first judgement.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file, an empty query or a relevance that is none of `SEARCH_GRADES`; names file and line.
    """
    path = catalogue.find("crowdflower_search", "train.csv.gz", root=root, verify=verify)
    result: dict[tuple[str, str, str], float] = {}
    read = 0
    wanted = ("query", "product_title", "product_description", "median_relevance")
    for where, (query, title, description, relevance) in rows(path, wanted):
        read += 1
        checks.expect(bool(query.strip()), where, "a query", repr(query))
        result.setdefault((query, title, description), _grade(relevance, SEARCH_GRADES, "median_relevance", where))
    checks.expect(bool(result), str(path), "judged products", "none")
    queries, titles, descriptions = zip(*result, strict=True)
    counts = {"rows": read, "rows_judged_before": read - len(result), "pairs": len(result),
              "queries": len(set(queries)), "without_description": sum(not one.strip() for one in descriptions)}
    return Search("crowdflower_search", queries, titles, descriptions, np.array(list(result.values())),
                  catalogue.digest("crowdflower_search", "train.csv.gz", path), counts)


def _grade(text: str, known: Sequence[float], name: str, where: str) -> float:
    try:
        grade = float(text)
    except ValueError:
        grade = math.nan
    checks.expect(grade in known, where, f"a {name} of {', '.join(f'{one:g}' for one in known)}", repr(text[:40]))
    return grade
