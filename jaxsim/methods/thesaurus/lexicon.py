"""Words that a thesaurus lacks, matched to words that it has (PILSA §6.1): base form, stem, hyphens, compounds."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import Stemmer

from jaxsim.data.corpora.thesauri import normal

# Suffixes of inflected forms and what takes their place (WordNet's manual page morphy(7WN)).
_SUFFIXES = (
    ("ies", "y"), ("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh"), ("men", "man"),
    ("es", "e"), ("es", ""), ("ied", "y"), ("ed", "e"), ("ed", ""), ("ing", "e"), ("ing", ""), ("er", ""), ("est", ""),
    ("er", "e"), ("est", "e"), ("ier", "y"), ("iest", "y"),
)  # fmt: skip
_NO_TEXT = re.compile("[\ud800-\udfff]")
"""Halves of surrogate pairs, which a stemmer cannot be given."""
_DOUBLED = ("ed", "ing", "er", "est")
_SHORTEST = 4
"""Letters of the shortest word that may be found as a part of a compound."""


class Match(NamedTuple):
    """How a word was found.

    Attributes:
      words: words of the thesaurus that stand for it; empty where there are none.
      how: ``"as written"``, ``"base form"``, ``"stem"``, ``"hyphens"``, ``"compound"`` or ``"unknown"``.
    """

    words: tuple[str, ...]
    how: str


class Lexicon:
    """The vocabulary of a thesaurus, and rules that lead to it."""

    def __init__(self, words: Sequence[str], exceptions: Mapping[str, Sequence[str]] | None = None):
        """Takes the vocabulary.

        Args:
          words: as `thesauri.normal` writes them.
          exceptions: irregular form -> base forms, such as WordNet's lists.
        """
        self.words = tuple(words)
        self.known = frozenset(words)
        self.exceptions = dict(exceptions or {})
        self._stemmer = Stemmer.Stemmer("porter")

    @functools.cached_property
    def _stems(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        single = [word for word in self.words if word.isalpha()]
        for word, stem in zip(single, self._stemmer.stemWords(single), strict=True):
            found.setdefault(stem, []).append(word)
        return {stem: tuple(some) for stem, some in found.items()}

    @functools.cached_property
    def _joined(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for word in self.words:
            if "-" in word:
                found.setdefault(word.replace("-", ""), []).append(word)
        return {joined: tuple(some) for joined, some in found.items()}

    @functools.cached_property
    def _parts(self) -> dict[str, tuple[str, ...]]:
        found: dict[str, list[str]] = {}
        for word in self.words:
            for part in set(word.split("-")) if "-" in word else ():
                found.setdefault(part, []).append(word)
        return {part: tuple(some) for part, some in found.items()}

    def match(self, word: str) -> Match:
        """Words of the thesaurus that stand for a word: the first rule that finds any decides.

        Args:
          word: in any spelling.

        Returns:
          `Match`. A base form is one word; a stem, or a part of compounds, may be several, whose mean is meant.

        Example:
          >>> lexicon = Lexicon(["generous", "corrupt", "corruption", "self-denial", "stop"])
          >>> lexicon.match("Stopped").words, lexicon.match("corrupts").how, lexicon.match("denial").how
          (('stop',), 'base form', 'compound')
          >>> lexicon.match("xyzzy")
          Match(words=(), how='unknown')
        """
        word = normal(word)
        if word in self.known:
            return Match((word,), "as written")
        if not word or _NO_TEXT.search(word):
            return Match((), "unknown")
        rules = (("base form", lambda: self._bases(word)[:1]),
                 ("stem", lambda: self._stems.get(self._stemmer.stemWord(word), ())),
                 ("hyphens", lambda: self._without_hyphens(word)),
                 ("compound", lambda: self._parts.get(word, ()) if len(word) >= _SHORTEST else ()))  # fmt: skip
        for how, rule in rules:
            words = tuple(rule())
            if words:
                return Match(words, how)
        return Match((), "unknown")

    def _bases(self, word: str) -> list[str]:
        found = dict.fromkeys(self.exceptions.get(word, ()))
        for end, other in _SUFFIXES:
            if word.endswith(end) and len(word) > len(end) + 1:
                stem = word[: len(word) - len(end)]
                found[stem + other] = None
                if end in _DOUBLED and len(stem) > 2 and stem[-1] == stem[-2]:
                    found[stem[:-1]] = None
        return [base for base in found if base in self.known]

    def _without_hyphens(self, word: str) -> tuple[str, ...]:
        joined = word.replace("-", "")
        return (joined,) if joined in self.known else self._joined.get(joined, ())
