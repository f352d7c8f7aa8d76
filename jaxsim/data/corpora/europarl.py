"""Proceedings of the European Parliament: aligned session days, speeches, single lines, and the release format.

The lines of a session day are aligned without marks of who speaks, so long documents are cut from them in one of two
ways (`load_blocks`). In the release format (`release`) chapters and speakers are marked and speeches align
by them.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator

from jaxsim import checks, text
from jaxsim.data import catalogue, files, pairs
from jaxsim.data.corpora.release import load_release, year_of

__all__ = ["CUTS", "load_blocks", "load_lines", "load_release", "load_speeches", "year_of"]

_CORPUS = "europarl_en_it"
_DIFFERS = "substitute: English-Italian, a third of the days of 1996-2001, in place of English-Spanish 1996-2003"
_PRESIDENT = re.compile(r"\s*(?:Mr|Madam|Mrs) President\b")


def _starts_at_president(lines: list[str], size: int) -> list[int]:
    return [number for number, line in enumerate(lines) if number == 0 or _PRESIDENT.match(line)]


def _starts_fixed(lines: list[str], size: int) -> list[int]:
    return list(range(0, len(lines), size))


CUTS = {"president": _starts_at_president, "fixed": _starts_fixed}


def _years(years: int | Iterable[int]) -> frozenset[int]:
    years = frozenset([years] if isinstance(years, int) else years)
    wrong = sorted(year for year in years if not 1996 <= year <= 2001)
    checks.expect(bool(years) and not wrong, "years", "some of 1996 ... 2001", wrong or "none")
    return years


def _days(years: frozenset[int], root, verify: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    """Name, English lines and Italian lines of the session days of some years, in order of time."""
    sides = []
    for language in ("en", "it"):
        path = catalogue.find(_CORPUS, f"{language}.tar.xz", root=root, verify=verify)
        result = files.read_archive(
            path, keep=lambda name: name.endswith(".al") and year_of(name.rpartition("/")[2]) in years
        )
        sides.append({name.rpartition("/")[2].removesuffix(".al"): body.splitlines() for name, body in result.items()})
    english, italian = sides
    alone = sorted(english.keys() ^ italian.keys())
    checks.expect(not alone, _CORPUS, "every session day in en.tar.xz and it.tar.xz", f"{alone[:1]} in one alone")
    for day in sorted(english, key=lambda name: (year_of(name), name)):
        numbers = len(english[day]), len(italian[day])
        checks.expect(numbers[0] == numbers[1], f"{_CORPUS}, {day}.al", "equally many lines on both sides", numbers)
        yield day, english[day], italian[day]


def load_blocks(
    years: int | Iterable[int],
    *,
    root: str | os.PathLike | None = None,
    cut: str = "president",
    size: int = 20,
    verify: bool = True,
) -> pairs.Pairs:
    """Cut session days into long documents, English and Italian.

    Args:
      years: one or more of 1996 ... 2001.
      root: the data folder; see `jaxsim.data.root`.
      cut: ``"president"`` begins a document at each English line that opens with "Mr President", "Madam President" or
        "Mrs President", as most speeches do; ``"fixed"`` after every ``size`` lines.
      size: lines of a document for ``"fixed"``.
      verify: compare the files' checksums.

    Returns:
      The pairs in order of time, ids ``<day>/<first line, from 1>``, source the year; documents of which a side has no
      words are left out and counted.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: unknown year or cut, days on one side only or with unequal numbers of lines, or a damaged file.
    """
    checks.expect(cut in CUTS, "cut", f"one of {', '.join(CUTS)}", repr(cut))
    checks.expect(size >= 1, "size", "a number of at least 1", size)
    rows, days, lines, empty = [], 0, 0, 0
    for day, english, italian in _days(_years(years), root, verify):
        days += 1
        lines += len(english)
        starts = CUTS[cut](english, size)
        for start, stop in zip(starts, [*starts[1:], len(english)], strict=True):
            left, right = "\n".join(english[start:stop]), "\n".join(italian[start:stop])
            if text.words(left) and text.words(right):
                rows.append((f"{day}/{start + 1}", left, right, str(year_of(day))))
            else:
                empty += 1
    name = f"{_CORPUS} blocks cut at {'the address to the president' if cut == 'president' else f'{size} lines'}"
    return _make(name, rows, {"days": days, "lines": lines, "empty": empty})


def load_speeches(
    years: int | Iterable[int] = (2000, 2001), *, root: str | os.PathLike | None = None, verify: bool = True
) -> pairs.Pairs:
    """Load the speeches of 2000 and 2001, English and Italian.

    Args:
      years: 2000, 2001 or both.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      The pairs in file order, ids ``<day>/<speaker>``, source the year.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: another year, or a damaged file (named, with the line).
    """
    chosen = _years(years)
    checks.expect(
        chosen <= {2000, 2001}, "years", "2000, 2001 or both (the years with marked speeches)", sorted(chosen)
    )
    path = catalogue.find(_CORPUS, "speeches_2000_2001.en_it.jsonl.xz", root=root, verify=verify)
    rows, empty = [], 0
    for number, record in files.read_jsonl(path, ("id", "en", "it")):
        year = year_of(record["id"])
        checks.expect(year is not None, f"{path}, line {number}", "an id such as ep-00-01-17/6", repr(record["id"]))
        if year not in chosen:
            continue
        if text.words(record["en"]) and text.words(record["it"]):
            rows.append((record["id"], record["en"], record["it"], str(year)))
        else:
            empty += 1
    return _make(f"{_CORPUS} speeches", rows, {"empty": empty})


def load_lines(
    years: int | Iterable[int],
    *,
    min_words: int = 20,
    max_pairs: int | None = None,
    root: str | os.PathLike | None = None,
    verify: bool = True,
) -> pairs.Pairs:
    """Load single aligned lines, English and Italian: short documents, a harder task than speeches.

    Args:
      years: one or more of 1996 ... 2001.
      min_words: least number of words on either side.
      max_pairs: keep this many at most, chosen by a hash of the id (evenly over the days, the same every time).
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the files' checksums.

    Returns:
      The pairs in order of time, ids ``<day>/<line, from 1>``, source the year.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: as `load_blocks`.
    """
    checks.expect(min_words >= 1, "min_words", "a number of at least 1", min_words)
    checks.expect(max_pairs is None or max_pairs >= 1, "max_pairs", "None or a number of at least 1", max_pairs)
    rows, days, lines = [], 0, 0
    for day, english, italian in _days(_years(years), root, verify):
        days += 1
        lines += len(english)
        for number, (left, right) in enumerate(zip(english, italian, strict=True), start=1):
            if len(text.words(left)) >= min_words and len(text.words(right)) >= min_words:
                rows.append((f"{day}/{number}", left.strip(), right.strip(), str(year_of(day))))
    long_enough = len(rows)
    if max_pairs is not None and long_enough > max_pairs:
        ranked = sorted(range(long_enough), key=lambda row: hashlib.blake2b(rows[row][0].encode()).digest())
        rows = [rows[row] for row in sorted(ranked[:max_pairs])]
    return _make(f"{_CORPUS} lines", rows, {"days": days, "lines": lines, "long_enough": long_enough})


def _make(name: str, rows: list[tuple[str, str, str, str]], counts: dict) -> pairs.Pairs:
    ids, left, right, sources = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pairs.make(name, ids, left, right, sources=sources, languages=("en", "it"), counts=counts, differs=_DIFFERS)
