"""Thesauri: entries of words that mean the same and words that mean the opposite; readers for your own.

An `Entry` is one sense: words on one side, and words on the other. `load_fallows` and the other loaders of books are in
`thesaurus_books`, WordNet is in `wordnet`; all give a `Thesaurus`.
"""

from __future__ import annotations

import os
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from jaxsim import checks
from jaxsim.data import files, streams

LONGEST = 1_000_000
"""Characters of a line at most: a longer one is no entry, but a file of another kind."""
_JOINTS = re.compile(r"[\s_-]+")


class Entry(NamedTuple):
    """One sense.

    Attributes:
      positive: words that mean the same, the head among them; as `normal` writes them, none twice.
      negative: words that mean the opposite; none of ``positive``.
      head: the word that the entry is about; empty where there is none, as in WordNet.
    """

    positive: tuple[str, ...]
    negative: tuple[str, ...] = ()
    head: str = ""


@dataclass(frozen=True, eq=False)
class Thesaurus:
    """A collection of entries.

    Attributes:
      name: what it is called in records and models.
      entries: senses with at least two words.
      sha256: digest of the files; None for generated entries.
      counts: raw and parsed sizes.
      dropped: what was wrong with the source and left out: ``own_antonyms`` (words on both sides of an entry) and
        ``empty`` (entries of fewer than two words).
      antonyms: pairs of words that the source calls opposites of each other, where its entries have no heads.
      corpus: name of the corpus of `jaxsim.data.catalogue` that it was read from; empty for one's own.
    """

    name: str
    entries: tuple[Entry, ...]
    sha256: str | None = None
    counts: dict[str, Any] = field(default_factory=dict)
    dropped: dict[str, int] = field(default_factory=dict)
    antonyms: tuple[tuple[str, str], ...] = ()
    corpus: str = ""

    def __repr__(self) -> str:
        """In short: the entries are long."""
        return f"Thesaurus({self.name!r}, {checks.counted(len(self.entries), 'entry', 'entries')})"


def normal(word: str) -> str:
    """One spelling of a word or phrase: lower case, parts joined by hyphens, as the questions and the paper write them.

    Letters with marks are single characters (Unicode's NFC), as in texts.

    Args:
      word: as a source writes it.

    Returns:
      The word; empty where nothing is left.

    Example:
      >>> normal(" Self indulgent"), normal("depart_from")
      ('self-indulgent', 'depart-from')
    """
    return _JOINTS.sub("-", unicodedata.normalize("NFC", word.strip().lower())).strip("-.,;:'\"")


def entry(head: str, synonyms: Iterable[str] = (), antonyms: Iterable[str] = ()) -> tuple[Entry, int]:
    """An entry with every word once. A word on both sides says nothing about itself, and is dropped from both.

    Args:
      head: may be empty.
      synonyms: words in any spelling.
      antonyms: likewise.

    Returns:
      The entry, and how many words stood on both sides. The head itself stays positive.

    Example:
      >>> entry("Hot", ["warm", "Hot"], ["cold", "hot", "warm"])
      (Entry(positive=('hot',), negative=('cold',), head='hot'), 2)
    """
    head = normal(head)
    positive = dict.fromkeys(word for word in map(normal, (head, *synonyms)) if word)
    negative = dict.fromkeys(word for word in map(normal, antonyms) if word)
    both = positive.keys() & negative.keys()
    return Entry(tuple(word for word in positive if word not in both or word == head),
                 tuple(word for word in negative if word not in both), head), len(both)


def thesaurus(
    name: str,
    senses: Iterable[tuple[str, Iterable[str], Iterable[str]]],
    *,
    sha256: str | None = None,
    counts: dict[str, Any] | None = None,
    antonyms: Iterable[tuple[str, str]] = (),
    corpus: str = "",
) -> Thesaurus:
    """A thesaurus of senses as they were read; those of fewer than two words are dropped and counted.

    Args:
      name: what it is called.
      senses: heads, synonyms, antonyms.
      sha256: digest of the files.
      counts: raw sizes, to which those of the entries are added; of one name, the raw one stays.
      antonyms: pairs as `normal` writes them; see `Thesaurus`.
      corpus: see `Thesaurus`.

    Returns:
      `Thesaurus`.

    Example:
      >>> both = thesaurus("mine", [("hot", ["warm"], ["cold"]), ("alone", [], [])])
      >>> len(both.entries), both.dropped
      (1, {'own_antonyms': 0, 'empty': 1})
    """
    entries, contradictions, empty = [], 0, 0
    for one in senses:
        sense, both = entry(*one)
        contradictions += both
        if len(sense.positive) + len(sense.negative) < 2 or not sense.positive:
            empty += 1
        else:
            entries.append(sense)
    return Thesaurus(name, tuple(entries), sha256, {**sizes(entries), **(counts or {})},
                     {"own_antonyms": contradictions, "empty": empty}, tuple(antonyms), corpus)


def sizes(entries: Iterable[Entry]) -> dict[str, int]:
    """Counts of entries and words.

    Args:
      entries: of a thesaurus.

    Returns:
      ``entries``, ``with_antonyms``, ``terms``, ``synonym_mentions``, ``antonym_mentions``, ``antonym_pairs`` (distinct
      pairs of a head and an antonym).

    Example:
      >>> sizes([Entry(("hot", "warm"), ("cold",), "hot")])["synonym_mentions"]
      1
    """
    entries = list(entries)
    terms = {word for sense in entries for word in (*sense.positive, *sense.negative)}
    pairs = {(sense.head, word) for sense in entries if sense.head for word in sense.negative}
    return {"entries": len(entries), "with_antonyms": sum(bool(sense.negative) for sense in entries),
            "terms": len(terms), "synonym_mentions": sum(len(sense.positive) - bool(sense.head) for sense in entries),
            "antonym_mentions": sum(len(sense.negative) for sense in entries), "antonym_pairs": len(pairs)}


def read(path: str | os.PathLike, *, name: str | None = None) -> Thesaurus:
    """A thesaurus of one's own: JSON Lines of ``head``, ``synonyms`` and ``antonyms``.

    Args:
      path: UTF-8, plain or compressed. ``head`` is a string; the other two are lists of strings, either may be absent.
      name: what to call it; the file's name unless given.

    Returns:
      `Thesaurus`; what it left out is in ``dropped``, values of other keys too.

    Raises:
      ValueError: a line that is no such object, is not UTF-8, or is longer than `LONGEST`; names file and line. Also a
        file without any usable entry.
    """
    path, others = Path(path), Counter[str]()

    def senses():
        for _, where, record in streams.objects(_short(path), str(path)):
            others.update(record.keys() - {"head", "synonyms", "antonyms"})
            head = streams.string(record, "head", where)
            lists = []
            for key in ("synonyms", "antonyms"):
                words = record.get(key, [])
                right = isinstance(words, list) and all(isinstance(word, str) for word in words)
                checks.expect(right, f"{where}: {key}", "a list of strings", type(words).__name__)
                lists.append(words)
            yield head, *lists

    result = thesaurus(name or path.name.split(".")[0], senses(), sha256=files.sha256(path))
    told = f"none; other keys are not read ({', '.join(sorted(others))})" if others else "none"
    checks.expect(bool(result.entries), str(path), "at least one entry of two words", told)
    result.dropped.update({f"under the key {key!r}": number for key, number in sorted(others.items())})
    return result


def read_antonyms(path: str | os.PathLike, *, name: str | None = None) -> Thesaurus:
    """A list of antonyms of one's own: two words a line, separated by a tab (or else by blanks); a pair is an entry.

    Args:
      path: UTF-8, plain or compressed; blank lines are skipped.
      name: what to call it; the file's name unless given.

    Returns:
      `Thesaurus`.

    Raises:
      ValueError: a line that does not hold two words, is not UTF-8, or is longer than `LONGEST`; names file and line.
    """
    path = Path(path)

    def senses():
        for number, line in enumerate(_short(path), start=1):
            words = line.strip().split("\t") if "\t" in line.strip() else line.split()
            if words:
                checks.expect(len(words) == 2 and all(map(normal, words)), f"{path}, line {number}",
                              "two words, separated by a tab or a blank", repr(line[:60]))
                yield words[0], (), words[1:]

    result = thesaurus(name or path.name.split(".")[0], senses(), sha256=files.sha256(path))
    checks.expect(bool(result.entries), str(path), "at least one pair of different words", "none")
    return result


def _short(path: Path) -> Iterable[str]:
    """Lines of a file, none of them longer than an entry can be."""
    for number, line in enumerate(files.read_lines(path), start=1):
        checks.expect(len(line) <= LONGEST, f"{path}, line {number}",
                      f"an entry of at most {LONGEST:,} characters", f"{len(line):,}")
        yield line
