"""Thesauri by name, questions and irregular forms for the tables of PILSA; a made-up thesaurus for the quick preset."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from jaxsim.data import gre, thesauri, thesaurus_books, wordnet
from jaxsim.data.corpora.gre import Question
from jaxsim.data.corpora.thesauri import Thesaurus
from jaxsim.evaluate import questions
from jaxsim.evaluate.questions import Answers
from jaxsim.methods.thesaurus import Lexicon, Signed, Space, lookup, signed

SETS: dict[str, dict[str, float]] = {
    "wordnet": {"wordnet": 1},
    "wordnet-rich": {"wordnet-rich": 1},
    "fallows": {"fallows": 1},
    "public": {"fallows": 1, "fernald": 1},
    "books": {"fallows": 1, "fernald": 1, "soule": 1},
    "roget": {"roget-opposites": 1},
    "union": {"fallows": 2, "fernald": 2, "soule": 1, "wordnet-rich": 1, "roget": 1},
}
"""Sources of each space, with the weights of their rows."""


@dataclass(frozen=True, eq=False)
class Collection:
    """Sources and questions of a table.

    Attributes:
      made_up: whether all of it is synthetic.
      questions: split (``dev``, ``test``, ``test790``) -> questions.
      cache: signed entries and lexicons that were made already.
    """

    made_up: bool
    questions: dict[str, list[Question]]
    cache: dict = field(default_factory=dict)

    def source(self, name: str) -> Thesaurus:
        """A thesaurus by the name that `SETS` uses."""
        return self._once(("source", name), lambda: synthetic(name) if self.made_up else _read(name))

    def signed(self, name: str) -> Signed:
        """The signed entries of a set."""
        return self._once(("signed", name), lambda: signed.documents(
            [self.source(one) for one in SETS[name]], weights=list(SETS[name].values())))

    def lexicon(self, name: str) -> Lexicon:
        """The vocabulary of a set, with WordNet's irregular forms."""
        exceptions = {} if self.made_up else irregular()
        return self._once(("lexicon", name), lambda: Lexicon(self.signed(name).words, exceptions))

    def counts(self, name: str) -> dict:
        """Sizes of a set."""
        entries = self.signed(name)
        return {"entries": entries.tf.shape[0], "words": len(entries.words), "weights": int(entries.tf.nnz),
                **{split: len(some) for split, some in self.questions.items()}}  # fmt: skip

    def sha256(self, name: str) -> str | None:
        """Digest of the sources of a set and of the questions."""
        if self.made_up:
            return None
        parts = [self.source(one).sha256 for one in SETS[name]] + [gre.sha256()]
        return hashlib.sha256("".join(parts).encode()).hexdigest()

    def _once(self, key, make):
        if key not in self.cache:
            self.cache[key] = make()
        return self.cache[key]


@functools.cache
def database() -> wordnet.WordNet:
    """WordNet, read once."""
    return wordnet.load()


@functools.cache
def irregular() -> dict[str, tuple[str, ...]]:
    """WordNet's irregular forms of all parts of speech."""
    found: dict[str, tuple[str, ...]] = {}
    for forms in database().exceptions.values():
        for word, bases in forms.items():
            found[word] = (*found.get(word, ()), *bases)
    return found


def _read(name: str) -> Thesaurus:
    loaders = {"fallows": thesaurus_books.load_fallows, "fernald": thesaurus_books.load_fernald,
               "soule": thesaurus_books.load_soule, "roget": thesaurus_books.load_roget,
               "roget-opposites": lambda: thesaurus_books.load_roget(antonyms=[
                   (entry.head, word) for book in ("fallows", "fernald") for entry in loaders[book]().entries
                   for word in entry.negative]),
               "wordnet": lambda: wordnet.entries(database()),
               "wordnet-rich": lambda: wordnet.entries(database(), rich=True)}  # fmt: skip
    return loaders[name]()


@functools.cache
def real() -> Collection:
    """The collection of the corpora's folder, one for all tables of a run."""
    return Collection(False, {split: gre.load(split) for split in ("dev", "test", "test790")})


# A made-up thesaurus: axes with two poles of a few words; an entry lists some words of its head's pole, and some of the
# other. Words are named by axis and pole, so that questions and judgements are known.
_AXES, _POLE = 40, 6


def _word(axis: int, pole: int, at: int) -> str:
    return f"{'ab'[pole]}{axis:02d}{'klmnop'[at]}"


def synthetic(name: str) -> Thesaurus:
    """A made-up thesaurus; one of another name has other entries."""
    rng = np.random.default_rng(list(name.encode()))
    share = 0.3 if name in ("soule", "roget") else 1.0

    def senses():
        for axis in range(_AXES):
            for pole in (0, 1):
                for at in range(_POLE):
                    same, other = (rng.choice(_POLE, 2, replace=False) for _ in range(2))
                    opposite = [_word(axis, 1 - pole, int(i)) for i in other] if rng.random() < share else []
                    yield _word(axis, pole, at), [_word(axis, pole, int(i)) for i in same], opposite

    return thesauri.thesaurus(name, senses())


def made_up() -> Collection:
    """Questions about the made-up axes: the answer is of the other pole, one wrong choice of the same."""
    rng = np.random.default_rng(0)
    found = {}
    for split, number in (("dev", 40), ("test", 120), ("test790", 100)):
        found[split] = []
        for _ in range(number):
            axis, pole = int(rng.integers(_AXES)), int(rng.integers(2))
            others = rng.choice([one for one in range(_AXES) if one != axis], 3, replace=False)
            target, same = (_word(axis, pole, int(i)) for i in rng.choice(_POLE, 2, replace=False))
            answer = _word(axis, 1 - pole, int(rng.integers(_POLE)))
            choices = [answer, same, *(_word(int(i), int(rng.integers(2)), int(rng.integers(_POLE))) for i in others)]
            order = rng.permutation(5)
            found[split].append(Question(target, tuple(choices[i] for i in order), int(np.argmin(order))))
    return Collection(True, found)


def pairs_of(some: Sequence[Question]) -> tuple[list[str], list[str]]:
    """Targets and choices, one pair a choice."""
    return [one.target for one in some for _ in one.choices], [word for one in some for word in one.choices]


def cosines(space: Space, some: Sequence[Question]) -> np.ndarray:
    """``[n, c]`` cosines of targets and choices; NaN where a word is unknown."""
    return space.cosines(*pairs_of(some)).reshape(len(some), -1)


def listed(entries: Signed, lexicon: Lexicon, some: Sequence[Question]) -> np.ndarray:
    """``[n, c]``: -1 where an entry opposes the two words, else 0; NaN where a word is unknown."""
    targets, choices = pairs_of(some)
    found = np.full(len(targets), np.nan)
    left, right, owner = [], [], []
    for at, pair in enumerate(zip(targets, choices, strict=True)):
        first, second = (lexicon.match(word).words for word in pair)
        if first and second:
            found[at] = 0
        for one in first:
            for other in second:
                left.append(entries.index[one])
                right.append(entries.index[other])
                owner.append(at)
    opposed = lookup.opposite(entries, np.array(left, int), np.array(right, int))
    found[np.array(owner, int)[opposed]] = -1
    return found.reshape(len(some), -1)


def answered(scores: np.ndarray, some: Sequence[Question]) -> Answers:
    """Answers by the lowest score."""
    return questions.closest_opposite(scores, np.array([one.answer for one in some]))


def f1(scores: np.ndarray, some: Sequence[Question]) -> float:
    """F1 of the answers."""
    return questions.precision_recall_f1(answered(scores, some))[2]
