"""WordNet 3.0: synsets with their relations, the entries of a signed thesaurus, and irregular forms.

The database is read from the data folder (``wordnet/data.noun.gz`` ...) or, where that has none, from an installed
package (Debian's ``wordnet-base``). Formats: the manual pages wndb(5) and wninput(5).
"""

from __future__ import annotations

import gzip
import hashlib
import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data.corpora import thesauri
from jaxsim.data.corpora.thesauri import Thesaurus

PARTS = ("noun", "verb", "adj", "adv")
INSTALLED = Path("/usr/share/wordnet")
"""Where Debian's package has the files, unpacked."""
ANTONYM, SIMILAR, DERIVED, ALSO, GROUP = "!", "&", "+", "^", "$"
PERTAINS = "\\"
_LETTER = {"n": "noun", "v": "verb", "a": "adj", "s": "adj", "r": "adv"}
_SYNTAX = re.compile(r"\((?:a|p|ip)\)$")


class Pointer(NamedTuple):
    """A relation of a synset, or of one of its words.

    Attributes:
      symbol: as WordNet writes it: `ANTONYM`, `SIMILAR` ...
      target: index of the other synset.
      source_word: place of the word in its synset, from 0; -1 where the whole synset is meant.
      target_word: likewise, in the other synset.
    """

    symbol: str
    target: int
    source_word: int
    target_word: int


class Synset(NamedTuple):
    """Words of one meaning.

    Attributes:
      part: of `PARTS`.
      satellite: whether it is an adjective around a head, to which it is similar.
      words: as `thesauri.normal` writes them.
      lemmas: as WordNet does, in lower case.
      pointers: its relations.
    """

    part: str
    satellite: bool
    words: tuple[str, ...]
    lemmas: tuple[str, ...]
    pointers: tuple[Pointer, ...]


@dataclass(frozen=True, eq=False)
class WordNet:
    """The database.

    Attributes:
      synsets: all of them, nouns first.
      exceptions: part -> inflected form -> base forms.
      sha256: digest of the digests of the files.
    """

    synsets: tuple[Synset, ...]
    exceptions: dict[str, dict[str, tuple[str, ...]]]
    sha256: str

    __repr__ = checks.brief

    def counts(self) -> dict[str, int]:
        """Sizes: synsets (also a part), senses, lemmas, antonym pointers and distinct pairs of antonyms."""
        of_part = {part: sum(synset.part == part for synset in self.synsets) for part in PARTS}
        pairs = {frozenset((synset.lemmas[one.source_word], self.synsets[one.target].lemmas[one.target_word]))
                 for synset in self.synsets for one in synset.pointers if one.symbol == ANTONYM}  # fmt: skip
        return {"synsets": len(self.synsets), **of_part, "senses": sum(len(synset.words) for synset in self.synsets),
                "lemmas": len({lemma for synset in self.synsets for lemma in synset.lemmas}),
                "antonym_pointers": sum(pointer.symbol == ANTONYM for synset in self.synsets
                                        for pointer in synset.pointers),
                "antonym_pairs": len(pairs)}  # fmt: skip

    def antonyms(self) -> list[tuple[str, str]]:
        """Distinct pairs of words that a pointer calls antonyms, in both directions, in the order of the files."""
        pairs = {(synset.words[pointer.source_word], self.synsets[pointer.target].words[pointer.target_word]): None
                 for synset in self.synsets for pointer in synset.pointers if pointer.symbol == ANTONYM}  # fmt: skip
        return list(pairs)


def load(*, root: str | os.PathLike | None = None, verify: bool = True) -> WordNet:
    """Reads the database.

    Args:
      root: the data folder; see `jaxsim.data.root`. Without one, or without ``wordnet/`` in it, the files of an
        installed package are read.
      verify: compare the files' checksums (those of a package have none).

    Returns:
      `WordNet`.

    Raises:
      MissingCorpus: neither is there.
      ValueError: a damaged file or line (named).
    """
    bodies, digests = {}, []
    for name in (*(f"data.{part}" for part in PARTS), *(f"{part}.exc" for part in PARTS)):
        bodies[name], digest = _file(name, root, verify)
        digests.append(digest)
    raw = [line for part in PARTS for line in _lines(bodies[f"data.{part}"], part)]
    places = {(part, offset): at for at, (part, offset, _) in enumerate(raw)}
    synsets = tuple(_synset(part, fields, places) for part, _, fields in raw)
    exceptions = {part: {_normal(words[0]): tuple(map(_normal, words[1:]))
                         for words in map(str.split, bodies[f"{part}.exc"].splitlines()) if words}
                  for part in PARTS}  # fmt: skip
    return WordNet(synsets, exceptions, hashlib.sha256("".join(digests).encode()).hexdigest())


def _file(name: str, root: str | os.PathLike | None, verify: bool) -> tuple[str, str]:
    """A file of the database as text, and its digest."""
    try:
        path = catalogue.find("wordnet", f"{name}.gz", root=root, verify=verify)
    except files.MissingCorpus as error:
        path = INSTALLED / name
        if not path.is_file():
            raise files.MissingCorpus(f"{error}, nor an installed package (Debian: wordnet-base)", "wordnet") from error
        body = path.read_bytes()
    else:
        try:
            body = gzip.decompress(path.read_bytes())
        except files.DAMAGED as error:
            raise ValueError(f"{path}: expected a whole .gz file, got a damaged one ({error})") from error
    return files.decode(body, str(path)), hashlib.sha256(body).hexdigest()


def _lines(body: str, part: str) -> Iterator[tuple[str, str, list[str]]]:
    """Part, offset and fields of every synset; the licence at the top is indented."""
    for number, line in enumerate(body.splitlines(), start=1):
        if line.startswith("  ") or not line:
            continue
        fields = line.partition(" | ")[0].split()
        checks.expect(len(fields) > 5 and fields[2] in _LETTER, f"data.{part}, line {number}",
                      "an offset, a file number and a part of speech", repr(line[:60]))
        yield part, fields[0], fields


def _synset(part: str, fields: list[str], places: dict[tuple[str, str], int]) -> Synset:
    number = int(fields[3], 16)
    lemmas = tuple(_SYNTAX.sub("", word).lower() for word in fields[4 : 4 + 2 * number : 2])
    start = 4 + 2 * number
    pointers = []
    for at in range(start + 1, start + 1 + 4 * int(fields[start]), 4):
        symbol, offset, letter, words = fields[at : at + 4]
        pointers.append(Pointer(symbol, places[_LETTER[letter], offset], int(words[:2], 16) - 1,
                                int(words[2:], 16) - 1))  # fmt: skip
    return Synset(part, fields[2] == "s", tuple(map(_normal, lemmas)), lemmas, tuple(pointers))


def _normal(lemma: str) -> str:
    """`thesauri.normal`, at once for most words."""
    return lemma if lemma.isalpha() else thesauri.normal(lemma)


def entries(wordnet: WordNet, *, rich: bool = False) -> Thesaurus:
    """WordNet as a signed thesaurus, an entry a synset.

    Args:
      wordnet: the database.
      rich: whether entries also have words of other parts of speech and of looser relations. Without, an entry has the
        synset's words and those of all that it is similar to, and against them the words of the antonyms of itself and
        of its head, and of what is similar to these. With, a head leaves out what is similar to it, and entries have
        besides: words that their words are derived from or pertain to, and their antonyms; "see also"; verb groups; and
        the antonyms of sibling satellites. (Both as the 162 development questions of the GRE prefer them.)

    Returns:
      `Thesaurus` ``"wordnet"`` or ``"wordnet-rich"``.
    """
    senses = _senses(wordnet, _Relations(wordnet), rich)
    return thesauri.thesaurus("wordnet" + "-rich" * rich, senses, sha256=wordnet.sha256, counts=wordnet.counts(),
                              antonyms=wordnet.antonyms(), corpus="wordnet")


class _Relations:
    """Neighbours of synsets, by relation."""

    def __init__(self, wordnet: WordNet):
        self.synsets = wordnet.synsets

    def targets(self, at: int, *symbols: str) -> list[int]:
        return [pointer.target for pointer in self.synsets[at].pointers if pointer.symbol in symbols]

    def heads(self, at: int) -> list[int]:
        return self.targets(at, SIMILAR) if self.synsets[at].satellite else []

    def satellites(self, at: int) -> list[int]:
        return [] if self.synsets[at].satellite else self.targets(at, SIMILAR)

    def words(self, some: Iterable[int]) -> list[str]:
        return [word for at in some for word in self.synsets[at].words]

    def lexical(self, at: int, *symbols: str) -> list[tuple[int, int]]:
        """Synsets and words that words of this one point to."""
        return [(pointer.target, pointer.target_word) for pointer in self.synsets[at].pointers
                if pointer.symbol in symbols]  # fmt: skip

    def antonyms_of_word(self, at: int, word: int) -> list[str]:
        return [self.synsets[pointer.target].words[pointer.target_word] for pointer in self.synsets[at].pointers
                if pointer.symbol == ANTONYM and pointer.source_word == word]  # fmt: skip


def _senses(wordnet: WordNet, related: _Relations, rich: bool) -> Iterator[tuple[str, list[str], list[str]]]:
    for at in range(len(wordnet.synsets)):
        heads = related.heads(at)
        same = [at, *heads]
        opposite = [other for one in same for other in related.targets(one, ANTONYM)]
        # Both directions: what is similar to an antonym, and the head of an antonym that is a satellite.
        around = [near for other in opposite for near in (*related.satellites(other), *related.heads(other))]
        similar = [] if rich else related.satellites(at)
        positive, negative = related.words([*same, *similar]), related.words([*opposite, *around])
        if rich:
            more = _rich(related, at, heads)
            positive, negative = positive + more[0], negative + more[1]
        chosen = dict.fromkeys(wordnet.synsets[at].words)
        # The synset's own words are what the entry is about: they are never dropped as a contradiction of others.
        yield "", positive, [word for word in negative if word not in chosen]


def _rich(related: _Relations, at: int, heads: list[int]) -> tuple[list[str], list[str]]:
    """Words of looser relations, and words against them."""
    positive = related.words(related.targets(at, ALSO, GROUP))
    negative = related.words(other for head in heads for sibling in related.satellites(head) if sibling != at
                             for other in related.targets(sibling, ANTONYM))  # fmt: skip
    for target, word in related.lexical(at, DERIVED, PERTAINS):
        if word >= 0:
            positive.append(related.synsets[target].words[word])
            negative += related.antonyms_of_word(target, word)
    return positive, negative
