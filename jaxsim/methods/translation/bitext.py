"""Sentences and their translations as numbers of words, read from lists of words or from the paragraphs of pages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

import numpy as np

from jaxsim import checks

MAX_WORDS = 128
"""Words of a sentence that are read, unless more or fewer are asked for."""


class Sentences(NamedTuple):
    """One side of a bitext.

    Attributes:
      words: ``[tokens]`` int32, places in ``vocabulary``.
      indptr: ``[sentences + 1]`` int64, where each sentence begins.
      vocabulary: the words, sorted.
    """

    words: np.ndarray
    indptr: np.ndarray
    vocabulary: tuple[str, ...]

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.indptr) - 1


class Bitext(NamedTuple):
    """Sentences with their translations.

    Attributes:
      left: sentences of one language.
      right: their translations.
      counts: ``sentences``; ``empty`` ones that were left out; ``cut`` ones; and what else a reader left out.
    """

    left: Sentences
    right: Sentences
    counts: dict[str, int]


def _numbers(sentences: Sequence[Sequence[str]]) -> Sentences:
    vocabulary = tuple(sorted(set(chain.from_iterable(sentences))))
    place = {word: number for number, word in enumerate(vocabulary)}
    words = np.fromiter(map(place.__getitem__, chain.from_iterable(sentences)), np.int32)
    return Sentences(words, np.concatenate([[0], np.cumsum([len(one) for one in sentences], dtype=np.int64)]),
                     vocabulary)


def from_words(left: Iterable[Sequence[str]], right: Iterable[Sequence[str]], *, max_words: int = MAX_WORDS) -> Bitext:
    """Sentences of which row i of one side translates row i of the other.

    Args:
      left: lists of words.
      right: lists of words, as many.
      max_words: the words after these are cut off a sentence, and the sentence is counted as cut.

    Returns:
      `Bitext` of the pairs in which both sentences have words.

    Raises:
      ValueError: for unequal numbers of sentences, a sentence given as one string, or no pair with words on both sides.

    Example:
      >>> text = from_words([["the", "house"], []], [["la", "casa"], ["no"]])
      >>> text.right.vocabulary, text.right.words.tolist(), text.counts
      (('casa', 'la'), [1, 0], {'sentences': 1, 'empty': 1, 'cut': 0})
    """
    checks.positive_int(max_words, "max_words")
    left, right = list(left), list(right)
    checks.expect(len(left) == len(right), "right", f"{len(left)} sentences (as left)", len(right))
    for name, side in (("left", left), ("right", right)):
        wrong = any(isinstance(one, str) for one in side)
        checks.expect(not wrong, name, "a list of words for each sentence", "a string")
    pairs = [(a, b) for a, b in zip(left, right, strict=True) if len(a) and len(b)]
    checks.expect(bool(pairs), "left, right", "a pair of sentences with words on both sides", "none")
    cut = sum(max(len(a), len(b)) > max_words for a, b in pairs)
    sides = (_numbers([pair[side][:max_words] for pair in pairs]) for side in (0, 1))
    return Bitext(*sides, {"sentences": len(pairs), "empty": len(left) - len(pairs), "cut": cut})


def from_pages(
    left: Sequence[str],
    right: Sequence[str],
    *,
    words: tuple[Callable[[str], list[str]], Callable[[str], list[str]]],
    max_ratio: float = 2.0,
    max_words: int = MAX_WORDS,
    most: int | None = None,
) -> Bitext:
    r"""Paragraphs of pages and of their translations: line i of one is line i of the other if they have as many.

    Args:
      left: pages, a paragraph a line; lines without words count for nothing.
      right: their translations.
      words: of both languages, from a text to its words (`text.tokenizer`).
      max_ratio: a pair of lines is left out if one has more than this many times the words of the other.
      max_words: as for `from_words`.
      most: pairs of lines at most, an even sample; None for all.

    Returns:
      `Bitext`, whose counts also have ``pages``, ``unequal`` pages that were left out, and ``uneven`` lines.

    Raises:
      ValueError: for unequal numbers of pages, or where nothing is left.

    Example:
      >>> from_pages(["A b.\nC", "D"], ["Una b.\n\nSí", "De\nE"], words=(str.split, str.split)).counts
      {'sentences': 2, 'empty': 0, 'cut': 0, 'pages': 2, 'unequal': 1, 'uneven': 0}
    """
    checks.expect(len(left) == len(right), "right", f"{len(left)} pages (as left)", len(right))
    checks.expect(max_ratio >= 1, "max_ratio", "at least 1", max_ratio)
    checks.whole(most, "most", 1, or_none=True)
    pairs, unequal, uneven = [], 0, 0
    for pages in zip(left, right, strict=True):
        lines = [[found for line in page.splitlines() if (found := cut(line))]
                 for page, cut in zip(pages, words, strict=True)]  # fmt: skip
        if len(lines[0]) != len(lines[1]):
            unequal += 1
            continue
        for pair in zip(*lines, strict=True):
            short, long = sorted(map(len, pair))
            uneven += long > max_ratio * short
            if long <= max_ratio * short:
                pairs.append(pair)
    checks.expect(bool(pairs), "left, right", "pages with equally many lines on both sides", "none")
    if most is not None and len(pairs) > most:
        pairs = [pairs[row] for row in np.linspace(0, len(pairs) - 1, most).astype(int)]
    bitext = from_words(*zip(*pairs, strict=True), max_words=max_words)
    return bitext._replace(counts={**bitext.counts, "pages": len(left), "unequal": unequal, "uneven": uneven})
