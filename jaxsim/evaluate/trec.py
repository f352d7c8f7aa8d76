"""Test collections in TREC's formats: texts with identifiers, relevance judgements, runs, and the scores of a run."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from jaxsim import checks
from jaxsim.data import streams
from jaxsim.evaluate import metrics

DEPTH = 1000
"""Documents a query that a run keeps, as trec_eval's tracks do."""

_QRELS = "query 0 document grade"
_INFINITE = re.compile(r"[+-]?inf(inity)?", re.IGNORECASE)

Qrels = dict[str, dict[str, int]]
Run = dict[str, list[tuple[str, float]]]


def read_texts(source: str | os.PathLike) -> dict[str, str]:
    r"""Texts with identifiers: JSON with ``id`` (or ``_id``) and ``text``, or lines ``id<TAB>text``.

    The text of an object with a ``title``, as BEIR's documents are, is both of them, with a blank between.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Returns:
      Identifier -> text, in file order.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for an empty file, a line without a tab, a missing key, a key that holds no text, or an identifier
        that occurs twice.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".tsv") as file:
      ...     _ = file.write("d1\tone\nd2\ttwo\n")
      ...     file.flush()
      ...     read_texts(file.name)
      {'d1': 'one', 'd2': 'two'}
    """
    place = streams.name(source)
    json_lines, rows = streams.sniffed(source)
    result: dict[str, str] = {}
    for where, key, text in _objects(rows, place) if json_lines else _tabbed(rows, place):
        checks.expect(bool(key.strip()), where, "an identifier", repr(key))
        checks.expect(key not in result, where, "an identifier not used before", repr(key))
        result[key] = text
    checks.expect(len(result) > 0, place, "texts with identifiers", "an empty file")
    return result


def _objects(rows: Iterable[str], place: str) -> Iterator[tuple[str, str, str]]:
    for _, where, record in streams.objects(rows, place):
        key = "_id" if "id" not in record and "_id" in record else "id"
        text = streams.text(record, "text", where)
        title = "" if record.get("title") is None else streams.string(record, "title", where)
        yield where, streams.string(record, key, where), f"{title} {text}".strip() if title else text


def _tabbed(rows: Iterable[str], place: str) -> Iterator[tuple[str, str, str]]:
    for number, line in enumerate(rows, start=1):
        if line.strip(" \r\n"):
            key, tab, text = line.rstrip("\r\n").partition("\t")
            where = f"{place}, line {number}"
            checks.expect(bool(tab), where, "an identifier, a tab and a text", "no tab")
            yield where, key, text


def _fields(source: str | os.PathLike, layout: str) -> Iterator[tuple[str, list[str]]]:
    """Place and fields of every line that is not blank."""
    wanted = len(layout.split())
    for number, line in enumerate(streams.lines(source), start=1):
        fields = [field.strip() for field in line.split("\t")]  # identifiers may have blanks in them
        if len(fields) != wanted or not all(fields):
            fields = line.split()
        if fields:
            where = f"{streams.name(source)}, line {number}"
            whole = len(fields) == wanted
            # Judgements of BEIR are query, document and grade, below a header.
            beir = layout == _QRELS and len(fields) == 3 and fields[1] != "0"
            hint = ", as in BEIR's files: put a 0 between query and document, and leave out their header" * beir
            checks.expect(whole, where, f"{layout!r}", checks.counted(len(fields), "field") + hint)
            yield where, fields


def read_qrels(source: str | os.PathLike) -> Qrels:
    """Relevance judgements, lines ``query 0 document grade``; between tabs, identifiers may have blanks in them.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Returns:
      Query -> document -> grade; above 0 is relevant.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for an empty file, another layout, a grade that is not a whole number, or two grades of one document.
    """
    result: Qrels = {}
    for where, (query, _, document, grade) in _fields(source, _QRELS):
        whole = re.fullmatch(r"[+-]?[0-9]+", grade) is not None
        checks.expect(whole, where, "a whole number as grade", repr(grade))
        judged = result.setdefault(query, {})
        same = judged.get(document, int(grade)) == int(grade)
        checks.expect(same, where, f"one grade of {document!r} for {query!r}", f"{judged.get(document)} and {grade}")
        judged[document] = int(grade)
    checks.expect(bool(result), streams.name(source), f"lines {_QRELS!r}", "an empty file")
    return result


def read_run(source: str | os.PathLike) -> Run:
    """A run, lines ``query Q0 document rank score name``; between tabs, identifiers may have blanks in them.

    Args:
      source: a path, plain or compressed, or ``"-"``.

    Returns:
      Query -> documents with their scores, as `ranked`; the ranks in the file are ignored, as in trec_eval.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for an empty file, another layout, a score that is not a number, or a document given twice.
    """
    rows: dict[str, dict[str, float]] = {}
    for where, (query, _, document, _, score, _) in _fields(source, "query Q0 document rank score name"):
        value = float(score) if _INFINITE.fullmatch(score) else checks.decimal(score)
        checks.expect(not math.isnan(value), where, "a number as score", repr(score))
        documents = rows.setdefault(query, {})
        checks.expect(document not in documents, where, f"every document once for {query!r}", f"{document!r} again")
        documents[document] = value
    checks.expect(bool(rows), streams.name(source), "lines 'query Q0 document rank score name'", "an empty file")
    return {query: ranked(documents) for query, documents in rows.items()}


def ranked(documents: Mapping[str, float]) -> list[tuple[str, float]]:
    """Documents by falling score, ties by falling identifier: the order of trec_eval.

    Scores are tied if they are equal as float32, which is how trec_eval holds them.

    Args:
      documents: identifier -> score.

    Returns:
      The pairs in order.

    Example:
      >>> ranked({"a": 1.0, "b": 1.0, "c": 2.0})
      [('c', 2.0), ('b', 1.0), ('a', 1.0)]
      >>> ranked({"a": 1.00000001, "b": 1.0})
      [('b', 1.0), ('a', 1.00000001)]
    """
    with np.errstate(over="ignore"):  # to infinity, as in C
        held = np.fromiter(documents.values(), np.float64, len(documents)).astype(np.float32).tolist()
    order = sorted(zip(held, documents.items(), strict=True), key=lambda one: (one[0], one[1][0]), reverse=True)
    return [item for _, item in order]


def same(queries: Mapping[str, str], documents: Mapping[str, str]) -> list[list[int]]:
    """Documents that are the query itself: of its identifier, or of its text.

    Args:
      queries: identifier -> text.
      documents: identifier -> text.

    Returns:
      For each query, rows of such documents, ascending.

    Example:
      >>> same({"a": "a cat", "b": "a dog"}, {"1": "a cat", "b": "a bird", "a": "an ant"})
      [[0, 2], [1]]
    """
    named = {name: row for row, name in enumerate(documents)}
    alike = of_text(list(queries.values()), list(documents.values()))
    return [sorted({*rows, *([named[query]] if query in named else ())})
            for query, rows in zip(queries, alike, strict=True)]


def of_text(queries: Sequence[str], documents: Sequence[str]) -> list[list[int]]:
    """Documents that are equal to a query.

    Args:
      queries: texts.
      documents: texts.

    Returns:
      For each query, rows of such documents, ascending.

    Example:
      >>> of_text(["a cat", "a dog"], ["a cat", "a bird", "a cat"])
      [[0, 2], []]
    """
    rows: dict[str, list[int]] = {query: [] for query in queries}
    for row, text in enumerate(documents):
        if text in rows:
            rows[text].append(row)
    return [rows[query] for query in queries]


def expect_identifiers(names: Iterable[str], where: str) -> None:
    """Refuses identifiers that a run cannot hold.

    Args:
      names: of queries or documents.
      where: the argument or file that they come from.

    Raises:
      ValueError: for an identifier with blanks in it, or with half a character (a lone surrogate), as JSON may have it.

    Example:
      >>> expect_identifiers(["MED-1"], "queries.tsv")
    """
    for name in names:
        checks.expect(len(name.split()) == 1 and name == name.strip(), where, "identifiers without blanks", repr(name))
        whole = name.isascii() or not any("\ud800" <= letter <= "\udfff" for letter in name)
        checks.expect(whole, where, "identifiers of whole characters", repr(name))


def run_lines(run: Mapping[str, Sequence[tuple[str, float]]], *, name: str = "jaxsim") -> Iterator[str]:
    r"""A run as lines of a file.

    Args:
      run: query -> documents with their scores, the best first.
      name: of the system.

    Yields:
      ``query Q0 document rank score name`` and a line feed.

    Raises:
      ValueError: for an identifier, or a name, that the format cannot hold (`expect_identifiers`), and for a score that
        is NaN.

    Example:
      >>> list(run_lines({"q": [("d", 0.5)]}))
      ['q Q0 d 1 0.5 jaxsim\n']
    """
    expect_identifiers((name,), "name")
    for query, documents in run.items():
        expect_identifiers((query,), "run")
        for rank, (document, score) in enumerate(documents, start=1):
            expect_identifiers((document,), "run")
            checks.expect(score == score, "run", "scores that are numbers", f"nan, of {document!r} for {query!r}")
            yield f"{query} Q0 {document} {rank} {score:.9g} {name}\n"


def scores(run: Mapping[str, Sequence[tuple[str, float]]], qrels: Mapping[str, Mapping[str, int]], *, k: int = 10):
    """Scores of a run: one value for each query with a relevant document; a query that the run lacks scores 0.

    Args:
      run: query -> documents with their scores, the best first.
      qrels: query -> document -> grade.
      k: number of documents that precision and NDCG count.

    Returns:
      ``map``, ``mrr``, ``p@k`` and ``ndcg@k`` (linear gain), each ``[num_queries]`` float64, as trec_eval counts them:
      relevant documents that the run does not hold count as never found.

    Raises:
      ValueError: if no query has a relevant document.

    Example:
      >>> found = scores({"q": [("a", 2.0), ("b", 1.0)]}, {"q": {"b": 1, "c": 1}}, k=2)
      >>> {name: round(float(values[0]), 4) for name, values in found.items()}
      {'map': 0.25, 'mrr': 0.5, 'p@2': 0.5, 'ndcg@2': 0.3869}
    """
    checks.positive_int(k, "k")
    judged = {query: grades for query, grades in qrels.items() if any(grade > 0 for grade in grades.values())}
    checks.expect(bool(judged), "qrels", "a query with a relevant document", "none")
    rows = [_scores([name for name, _ in run.get(query, ())], grades, k) for query, grades in judged.items()]
    return {name: np.array(column) for name, column in
            zip(("map", "mrr", f"p@{k}", f"ndcg@{k}"), zip(*rows, strict=True), strict=True)}  # fmt: skip


def _scores(documents: Sequence[str], grades: Mapping[str, int], k: int) -> tuple[float, float, float, float]:
    listed = set(documents)
    return scores_of([grades.get(name, 0) for name in documents],
                     [grade for name, grade in grades.items() if name not in listed], k=k)  # fmt: skip


def scores_of(found: Sequence[float], missed: Sequence[float], *, k: int = 10) -> tuple[float, float, float, float]:
    """Scores of one query.

    Args:
      found: grades of the documents that were found, the best first; above 0 is relevant.
      missed: grades of documents that were not.
      k: as for `scores`.

    Returns:
      MAP, MRR, P@k and NDCG@k, as `scores`.

    Example:
      >>> [round(value, 4) for value in scores_of([0, 1], [1], k=2)]
      [0.25, 0.5, 0.5, 0.3869]
    """
    result = np.append(np.maximum(np.asarray(found, np.float64), 0), np.zeros(k))
    missed = [grade for grade in missed if grade > 0]
    labels = np.append(result, missed)  # what was missed stands too deep to count, but in the ideal
    order = -np.arange(labels.size, dtype=np.float64)
    hits = result > 0
    precision = float(metrics.average_precision(order[: hits.size], hits))
    return (
        precision * float(hits.sum()) / float(hits.sum() + len(missed)),
        1.0 / (1 + int(np.argmax(hits))) if hits.any() else 0.0,
        float(metrics.precision_at(order, labels > 0, k=k)),
        float(metrics.ndcg(order, labels, k=k)),
    )
