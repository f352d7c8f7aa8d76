"""The release format of Europarl: one file a session day and language, with chapters and speakers marked.

``<CHAPTER ID=1>``, ``<SPEAKER ID=6 LANGUAGE="IT" NAME="...">`` and ``<P>`` stand on lines of their own. Speeches of two
languages align by session day, chapter and speaker. Reads the whole release (years 1996 to 2011) in any two languages.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

from jaxsim import checks, text
from jaxsim.data import files, pairs

_COUNTED = ("days", "days_on_one_side", "on_one_side", "repeated_numbers", "too_short")
_DAY = re.compile(r"ep-(\d\d)-\d\d-\d\d")
_TAG = re.compile(r"<\s*(CHAPTER|SPEAKER)\b([^>]*)>?", re.IGNORECASE)
_ID = re.compile(r"\bID\s*=\s*[\"']?\s*([\w().-]+)", re.IGNORECASE)


def year_of(name: str) -> int | None:
    """Year of a session day, from a name that begins with ``ep-YY-MM-DD``.

    Args:
      name: of a day, a file or a speech.

    Returns:
      1990 ... 2089, or None when the name is of another kind.

    Example:
      >>> year_of("ep-96-04-15.txt"), year_of("ep-00-01-17/6"), year_of("notes")
      (1996, 2000, None)
    """
    match = _DAY.match(name)
    return None if match is None else int(match[1]) + (1900 if int(match[1]) >= 90 else 2000)


def speeches(body: str, where: str) -> tuple[dict[tuple[str, str], str], int]:
    r"""Cut a session day into speeches.

    Args:
      body: the file's text.
      where: name of the file, for messages.

    Returns:
      (chapter, speaker) -> text without marks, leading zeros of the numbers dropped; and how many speeches were left
      out because their numbers occur more than once, so that they align with nothing for certain.

    Raises:
      ValueError: a mark without a number; names file and line.

    Example:
      >>> speeches('<CHAPTER ID=1>\nOpening\n<SPEAKER ID=2 NAME="A">\nGood day.\n<P>\nThank you.', "day")
      ({('1', '2'): 'Good day.\nThank you.'}, 0)
    """
    chapter = "0"
    current: list[str] | None = None
    result: dict[tuple[str, str], list[str]] = {}
    repeated: Counter[tuple[str, str]] = Counter()
    for number, line in enumerate(body.split("\n"), start=1):
        mark = _TAG.match(line.strip())
        if mark:
            identifier = _ID.search(mark[2])
            checks.expect(identifier is not None, f"{where}, line {number}", f"<{mark[1]} ID=...>", repr(line[:60]))
            key = identifier[1].lstrip("0") or "0"
            current = None
            if mark[1].upper() == "CHAPTER":
                chapter = key
            else:
                repeated[chapter, key] += 1
                current = result.setdefault((chapter, key), [])
        elif current is not None and line.strip() and not line.lstrip().startswith("<"):
            current.append(line.strip())
    clear = {key: "\n".join(lines) for key, lines in result.items() if repeated[key] == 1}
    return clear, sum(repeated.values()) - len(clear)


def _read(where: Path, language: str, years: frozenset[int] | None, encoding: str) -> dict[str, str]:
    """Session day -> text, from a folder, from an archive in it, or from one archive of all languages."""

    def wanted(name: str) -> bool:
        folder, _, file = name.rpartition("/")
        year = year_of(file)
        right_kind = file.endswith(".txt") and year is not None and folder.rpartition("/")[2] == language
        return right_kind and (years is None or year in years)

    if where.is_file():
        result = files.read_archive(where, keep=wanted, encoding=encoding)
        return {Path(name).stem: body for name, body in result.items()}
    for folder in (where / language, where / "txt" / language):
        if folder.is_dir():
            paths = sorted(path for path in folder.iterdir() if wanted(f"{language}/{path.name}"))
            return {path.stem: files.decode(path.read_bytes(), str(path), encoding) for path in paths}
    archives = sorted(where.glob(f"{language}.t*")) if where.is_dir() else []
    if archives:
        return _read(archives[0], language, years, encoding)
    raise files.MissingCorpus(
        f"{where}: expected the source release of Europarl (www.statmt.org/europarl): its archive, or a folder "
        f"with {language}/, txt/{language}/ or {language}.tar.*; got none of them"
    )


def load_release(
    folder_or_tar: str | os.PathLike,
    left: str = "en",
    right: str = "fr",
    *,
    years: Iterable[int] | None = None,
    min_words: int = 1,
    encoding: str = "utf-8",
) -> pairs.Pairs:
    """Load speeches in the release format, aligned by session day, chapter and speaker.

    Args:
      folder_or_tar: the release's archive (any compression), or a folder that holds ``<language>/ep-YY-MM-DD.txt``,
        ``txt/<language>/...`` or ``<language>.tar.*``.
      left: language of the left side, the release's two letters.
      right: language of the right side.
      years: years to read; all by default.
      min_words: speeches with fewer words on a side are left out and counted.
      encoding: of the files; the oldest releases are in ISO-8859-1.

    Returns:
      The pairs in order of time, ids ``<day>/<chapter>/<speaker>``, source the year. Days and speeches on one side
      only, and speeches whose numbers occur twice on a side, are left out and counted.

    Raises:
      MissingCorpus: nothing there in this format.
      ValueError: equal languages, no session day in common, or a damaged file (named, with the line).
    """
    checks.expect(left != right, "right", f"another language than {left!r}", repr(right))
    checks.expect(min_words >= 1, "min_words", "a number of at least 1", min_words)
    chosen = None if years is None else frozenset(years)
    where = Path(folder_or_tar)
    days = {language: _read(where, language, chosen, encoding) for language in (left, right)}
    shared = sorted(days[left].keys() & days[right].keys(), key=lambda day: (year_of(day), day))
    result = {language: len(texts) for language, texts in days.items()}
    checks.expect(bool(shared), str(where), f"session days in both {left!r} and {right!r}", f"{result} days")
    counts: Counter[str] = Counter(days=len(shared), days_on_one_side=len(days[left].keys() ^ days[right].keys()))
    rows = []
    for day in shared:
        one, repeated_one = speeches(days[left][day], f"{where}: {left}/{day}.txt")
        two, repeated_two = speeches(days[right][day], f"{where}: {right}/{day}.txt")
        counts["repeated_numbers"] += repeated_one + repeated_two
        counts["on_one_side"] += len(one.keys() ^ two.keys())
        for key in one:
            if key not in two:
                continue
            if min(len(text.words(one[key])), len(text.words(two[key]))) < min_words:
                counts["too_short"] += 1
            else:
                rows.append((f"{day}/{key[0]}/{key[1]}", one[key], two[key], str(year_of(day))))
    ids, lefts, rights, sources = zip(*rows, strict=True) if rows else ((), (), (), ())
    numbers = {name: counts[name] for name in _COUNTED}
    return pairs.make(
        f"europarl release {left}-{right}", ids, lefts, rights, sources=sources, languages=(left, right), counts=numbers
    )
