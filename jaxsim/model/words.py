"""Words and their opposites: a model whose texts are single words, made from thesauri.

A `Words` is a `Model` of a projection, one row a word, so that every command and export takes its folder. What it adds
are nearest and farthest words, matches for words that the thesaurus lacks, and the entries, by which the senses of
words are told apart where an opposite is to be chosen.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, text
from jaxsim.evaluate import questions
from jaxsim.methods.projections import Projection
from jaxsim.methods.thesaurus import Lexicon, Senses, Space, senses
from jaxsim.methods.thesaurus.lexicon import Match
from jaxsim.model import folders
from jaxsim.model.model import WORDS, Model
from jaxsim.sparse import narrow

IN_ENTRIES = 5
"""Entries that a word has to be in to be named as a neighbour; rarer ones are often noise."""
FEW = 1000
"""A thesaurus of fewer entries names every word that it has."""
SHARES = {"s2net-antonym": 0.75}
"""Share of a word's own vector in its senses, by method, where it is not `senses.SHARE`: as questions for development
like it best with each method."""
_WORDS, _ENDS = "entry_words", "entry_ends"


class Neighbour(NamedTuple):
    """A word and its cosine with another.

    Attributes:
      word: as the thesaurus writes it, parts joined by hyphens.
      cosine: from -1 for opposites to 1 for synonyms.
    """

    word: str
    cosine: float


@dataclass(frozen=True, eq=False)
class Words:
    """Word vectors in which opposites have negative cosines.

    Attributes:
      model: the vocabulary with the number of entries of each word, and a row a word.
      entries: ``[num_entries, num_words]``, 1 where an entry has a word, -1 where it opposes it; None of models that
        were saved without.
    """

    model: Model
    entries: sp.csr_matrix | None = None

    def __post_init__(self):
        """Refuses models of other kinds."""
        right = self.model.training.get("kind") == WORDS
        checks.expect(right, "model", "one of words (`jaxsim thesaurus` makes it)",
                      f"one of texts ({self.model.method})")
        checks.expect(isinstance(self.model.params, Projection), "model", "one projection", "another model")
        forms = self.model.training.get("irregular") or {}
        fits = isinstance(forms, dict) and all(isinstance(bases, list | tuple) and all(isinstance(one, str)
                                               for one in bases) for bases in forms.values())
        checks.expect(fits, "model: irregular", "base forms of words", checks.a_kind(forms))
        if self.entries is not None:
            shape = (self.model.vocabulary.num_docs, len(self.model.vocabulary))
            checks.expect(self.entries.shape == shape, "entries", f"shape {shape} (entries, words)", self.entries.shape)

    @classmethod
    def of(
        cls, words: Sequence[str], vectors: np.ndarray, entries: np.ndarray, num_entries: int, *, method: str,
        training: dict[str, Any], signs: sp.csr_matrix | None = None,
    ) -> Words:
        """Words from vectors.

        Args:
          words: as `thesauri.normal` writes them.
          vectors: ``[num_words, k]``.
          entries: ``[num_words]`` in how many entries each word is.
          num_entries: of the thesaurus.
          method: what made the vectors.
          training: JSON-compatible; sources, settings, and perhaps ``irregular`` (form -> base forms).
          signs: ``[num_entries, num_words]``, positive where an entry has a word, negative where it opposes it; None
            for words without senses.

        Returns:
          `Words`.
        """
        vocabulary = text.Vocabulary(tuple(words), np.asarray(entries, np.int64), int(num_entries))
        if signs is not None:
            signs = signs.tocsr().sign().astype(np.int8)
            signs.eliminate_zeros()  # of words that an entry has and opposes
        return cls(Model(vocabulary, Projection(jnp.asarray(vectors, jnp.float32)), weighting="tf", method=method,
                         training={"kind": WORDS, **training}),
                   signs)  # fmt: skip

    @functools.cached_property
    def space(self) -> Space:
        """The vectors with the rules for words that are not among them."""
        lexicon = Lexicon(self.model.vocabulary.terms, self.model.training.get("irregular"))
        return Space(lexicon, narrow.full(self.model.params.weights))

    @functools.cached_property
    def senses(self) -> Senses | None:
        """The senses of the words, by the entries; None without these."""
        if self.entries is None:
            return None
        return Senses(self.space, self.entries, SHARES.get(self.model.method, senses.SHARE))

    def match(self, word: str) -> Match:
        """How a word is found: as it is, by a rule, or not at all.

        Args:
          word: in any spelling.

        Returns:
          `Match`.
        """
        return self.space.lexicon.match(word)

    def nearest(self, word: str, *, k: int = 10, in_entries: int | None = None) -> list[Neighbour]:
        """Words that mean about the same.

        Args:
          word: in any spelling.
          k: how many.
          in_entries: entries that a word has to be in to be named; unless given, `IN_ENTRIES`, or 1 of a thesaurus of
            fewer than `FEW` entries.

        Returns:
          Those of highest cosine first, of positive ones; empty for a word that is not found (see `match`).

        Example:
          >>> some = Words.of(["hot", "warm", "cold"], np.array([[1.0, 0], [1, 0.1], [-1, 0]]), [9, 9, 9], 9,
          ...                 method="mine", training={})
          >>> [one.word for one in some.nearest("hot", k=1)], [one.word for one in some.opposites("Hot", k=1)]
          (['warm'], ['cold'])
        """
        return self._neighbours(word, k, in_entries, farthest=False)

    def opposites(self, word: str, *, k: int = 10, in_entries: int | None = None) -> list[Neighbour]:
        """Words that mean the opposite, of negative cosines, the lowest first; arguments are those of `nearest`."""
        return self._neighbours(word, k, in_entries, farthest=True)

    def _neighbours(self, word: str, k: int, in_entries: int | None, *, farthest: bool) -> list[Neighbour]:
        checks.whole(in_entries, "in_entries", 1, or_none=True)
        vocabulary = self.model.vocabulary
        least = in_entries or (IN_ENTRIES if vocabulary.num_docs >= FEW else 1)
        common = np.asarray(vocabulary.df) >= least
        neighbours = (Neighbour(*one) for one in self.space.neighbours(word, k=k, farthest=farthest, among=common))
        return [one for one in neighbours if (-one.cosine if farthest else one.cosine) > 1e-4]  # 0 but for rounding

    def similarity(self, left: str, right: str) -> float | None:
        """Cosine of two words.

        Args:
          left: a word in any spelling.
          right: likewise.

        Returns:
          From -1 to 1; None where one of them is not found.
        """
        cosine = float(self.space.cosines([left], [right])[0])
        return None if np.isnan(cosine) else cosine

    def without_vector(self) -> list[str]:
        """Words whose vector is zero, such as those that are in every entry."""
        zero = ~np.any(narrow.full(self.model.params.weights), axis=1)
        return [self.model.vocabulary.terms[row] for row in np.flatnonzero(zero)]

    def opposition(self, word: str, others: Sequence[str]) -> list[float | None]:
        """How opposite words are to a word: the lowest cosine of a sense of one and a sense of the other.

        Args:
          word: in any spelling.
          others: words.

        Returns:
          A number from -1 to 1 for each, None where a word is not found. Without `entries`, cosines of the words.
        """
        measure = self.space.cosines if self.senses is None else self.senses.lowest
        values = measure([word] * len(others), list(others))
        return [None if np.isnan(value) else float(value) for value in values]

    def closest_opposite(self, word: str, choices: Sequence[str]) -> str | None:
        """The choice that is most opposite to a word, as the questions of the GRE ask; see `opposition`.

        Args:
          word: in any spelling.
          choices: words; those that are not found are passed over.

        Returns:
          One of the choices; None where the word or all choices are not found.
        """
        checks.expect(len(choices) > 0, "choices", "at least one word", 0)
        found = np.array([np.nan if one is None else one for one in self.opposition(word, choices)])
        choice = int(questions.closest_opposite(found[None, :], [0]).choice[0])
        return None if choice < 0 else choices[choice]

    def save(self, path: str | os.PathLike) -> Path:
        """Writes the folder of the model, with the entries; arguments and errors of `Model.save`."""
        contents = self.model.contents()
        if self.entries is not None:
            placed = (self.entries.indices.astype(np.int32) + 1) * self.entries.data
            contents["tensors"] |= {_WORDS: placed.astype(np.int32), _ENDS: self.entries.indptr[1:].astype(np.int64)}
        return folders.save(path, **contents)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Words:
        """Reads a folder.

        Args:
          path: that `save` wrote.

        Returns:
          The words, bit for bit.

        Raises:
          FileNotFoundError: if the folder or a file of it is missing.
          ValueError: if a file was altered, or the model is not one of words, or its entries are no such matrix.
        """
        tensors, config, words = folders.load(path)
        with checks.within(str(path)):
            model = Model.of_contents(tensors, config, words)
            return cls(model, _entries(tensors, len(model.vocabulary)))

    def exportable(self) -> Model:
        """The single words, as a model that `export` takes for tools that cut texts at hyphens.

        Returns:
          `Model` without words of several parts, whose ``training`` has their number under ``left_out``.
        """
        terms = self.model.vocabulary.terms
        kept = np.array([at for at, word in enumerate(terms) if text.words(word, lower=False) == [word]], int)
        vocabulary = text.Vocabulary(tuple(terms[at] for at in kept), np.asarray(self.model.vocabulary.df)[kept],
                                     self.model.vocabulary.num_docs)  # fmt: skip
        return Model(vocabulary, Projection(self.model.params.weights[kept]), weighting="tf", method=self.model.method,
                     training={**self.model.training, "left_out": len(terms) - len(kept)})


def _entries(tensors: dict[str, np.ndarray], num_words: int) -> sp.csr_matrix | None:
    """The entries of a folder: numbers of words from 1, with a minus where an entry opposes the word."""
    if not {_WORDS, _ENDS} & set(tensors):
        return None
    for name in (_WORDS, _ENDS):
        checks.expect(name in tensors, "model.safetensors", f"a model with '{name}'", "one without")
    placed, ends = tensors[_WORDS], tensors[_ENDS]
    checks.array(placed, _WORDS, "int32", (None,))
    checks.array(ends, _ENDS, "int64", (None,))
    starts = np.concatenate([[0], ends])
    fits = bool(np.all(np.diff(starts) >= 0)) and starts[-1] == len(placed)
    checks.expect(fits, _ENDS, f"numbers that rise to {len(placed)} (as {_WORDS})", "others")
    columns = np.abs(placed.astype(np.int64)) - 1
    checks.expect(bool(np.all((columns >= 0) & (columns < num_words))), _WORDS,
                  f"numbers of words, from 1 to {num_words}, perhaps with a minus", "others")
    return sp.csr_matrix((np.sign(placed).astype(np.int8), columns, starts), shape=(len(ends), num_words))
