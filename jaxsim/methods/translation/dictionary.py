"""A translation table from a dictionary: every translation of a word is equally probable."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.data import streams
from jaxsim.methods.translation import table
from jaxsim.optim import Fit, closed_form
from jaxsim.text.tokens import composed, lowered

_ASIDE = re.compile(r"\{[^}]*\}|\[[^\]]*\]|\([^)]*\)")


def read(path: str | Path, *, separator: str | None = None) -> tuple[list[tuple[str, str]], dict[str, int]]:
    r"""Pairs of words of a dictionary file: a headword, a separator, translations with commas between.

    Notes in braces, brackets and parentheses are cut out, words are lower case and in NFC, as those of texts are. Lines
    opening with ``#`` are comments.

    Args:
      path: the file, plain or compressed.
      separator: between headword and translations; a tab or ``::`` (as in Wiktionary's lists), whichever a line has,
        unless given.

    Returns:
      The pairs, each once, and counts: ``entries`` read, ``phrases`` left out (of several words on either side),
      ``empty`` lines without a translation.

    Raises:
      ValueError: for a line without a separator; names file and line.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
      ...     _ = file.write("House {n} :: casa (f, singular), hogar\nice cream\thelado\n")
      ...     file.flush()
      ...     read(file.name)
      ([('house', 'casa'), ('house', 'hogar')], {'entries': 2, 'phrases': 1, 'empty': 0})
    """
    pairs: dict[tuple[str, str], None] = {}
    entries = phrases = empty = 0
    for number, line in enumerate(streams.lines(path), start=1):
        line = line.rstrip("\n")
        if not line.strip() or line.startswith("#"):
            continue
        noted = _ASIDE.sub(" ", line)  # first, as notes have commas, too
        mark = separator or ("\t" if "\t" in noted else "::")
        head, found, rest = noted.partition(mark)
        checks.expect(bool(found), f"{path}, line {number}", f"a word, {mark!r} and its translations", repr(line[:60]))
        entries += 1
        words = [composed(part).split() for part in (head, *re.split("[,;]", rest))]
        others = [word for word in words[1:] if word]
        empty += not (words[0] and others)
        for other in others if words[0] else ():
            single = len(words[0]) == len(other) == 1
            phrases += not single
            if single:
                pairs[lowered(words[0][0]), lowered(other[0])] = None
    return list(pairs), {"entries": entries, "phrases": phrases, "empty": empty}


def fit(pairs: Iterable[tuple[str, str]]) -> Fit:
    """A table in which all translations of a word are equally probable.

    Args:
      pairs: a word of the left and one of the right language each; pairs of phrases are left out by `read`.

    Returns:
      `Fit` of a `Translation`.

    Raises:
      ValueError: for no pairs.

    Example:
      >>> fit([("house", "casa"), ("house", "hogar")]).params.best("house")
      [('casa', 0.5), ('hogar', 0.5)]
    """
    pairs = list(dict.fromkeys(pairs))
    checks.expect(bool(pairs), "pairs", "at least one pair of words", "none")
    words = [sorted({pair[side] for pair in pairs}) for side in (0, 1)]
    places = [{word: number for number, word in enumerate(side)} for side in words]
    rows, columns = (np.array([places[side][pair[side]] for pair in pairs]) for side in (0, 1))
    counts = sp.csr_matrix((np.ones(len(pairs)), (rows, columns)), shape=tuple(map(len, words)))
    return closed_form(table.from_counts(counts, counts.T.tocsr(), *words))
