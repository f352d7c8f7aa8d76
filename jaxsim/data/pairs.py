"""The one shape of a corpus of document pairs, whatever it was read from."""

from __future__ import annotations

import hashlib
import itertools
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from jaxsim import checks, text


@dataclass(frozen=True, eq=False)
class Pairs:
    """Pairs of documents: row ``i`` of ``left`` is the mate of row ``i`` of ``right``.

    Attributes:
      name: of the corpus, as records give it.
      ids: one unique identifier a pair.
      left: the English side (the summaries for docstrings), prose only.
      right: the other side, prose only.
      sources: where each pair comes from, for results by source.
      languages: language codes of the two sides.
      sha256: digest of names, languages, ids and both sides' texts, 64 hexadecimal digits.
      counts: what was read and what was left out (numbers), and versions where the data depends on them.
      differs: how the data differs from the papers'; empty when it does not.
    """

    name: str
    ids: tuple[str, ...]
    left: tuple[str, ...]
    right: tuple[str, ...]
    sources: tuple[str, ...]
    languages: tuple[str, str]
    sha256: str
    counts: dict = field(default_factory=dict)
    differs: str = ""

    __repr__ = checks.brief

    def __len__(self) -> int:
        """Number of pairs."""
        return len(self.ids)

    @property
    def texts_sha256(self) -> str:
        """Digest of languages and texts alone, whatever file they come from and however they are numbered.

        Example:
          >>> one, two = (make(name, name, ["one"], ["uno"], languages=("en", "es")) for name in "ab")
          >>> one.texts_sha256 == two.texts_sha256, one.sha256 == two.sha256
          (True, False)
        """
        return _digest("", self.languages, self.left, self.right)

    def take(self, rows: Sequence[int] | np.ndarray) -> Pairs:
        """The pairs of some rows, in the order asked for.

        Args:
          rows: `[n]` row numbers, or `[len(self)]` booleans. The identifier of a row asked for twice is there twice.

        Returns:
          A new collection with its own digest and number of pairs.

        Raises:
          ValueError: a row that does not exist, or rows that are not whole numbers.

        Example:
          >>> make("toy", ["a", "b"], ["one", "two"], ["uno", "dos"], languages=("en", "es")).take([1]).left
          ('two',)
        """
        rows = np.asarray(rows)
        if rows.dtype == bool:
            checks.expect(rows.shape == (len(self),), "rows", f"{len(self)} booleans", rows.shape)
            rows = np.flatnonzero(rows)
        checks.expect(rows.ndim == 1, "rows", "one axis", f"{rows.ndim} axes")
        checks.expect(rows.size == 0 or np.issubdtype(rows.dtype, np.integer), "rows", "integers or booleans",
                      f"{rows.dtype}, {rows[:1].tolist()}")
        outside = rows[(rows < 0) | (rows >= len(self))]
        checks.expect(not outside.size, "rows", f"row numbers in [0, {len(self)})", outside[:1].tolist())
        pick = [tuple(column[row] for row in rows) for column in (self.ids, self.left, self.right, self.sources)]
        digest = _digest(self.name, self.languages, *pick[:3])
        counted = _counts(pick[3], {})
        return Pairs(self.name, *pick, self.languages, digest, counted, self.differs)


def _digest(name: str, languages: Sequence[str], *columns: Sequence[str]) -> str:
    digest = hashlib.sha256()
    for part in (name, *languages, *(str(len(column)) for column in columns)):
        digest.update(part.encode("utf-8", "surrogatepass") + b"\0")
    for column in columns:
        for value in column:
            data = value.encode("utf-8", "surrogatepass")
            digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


def _counts(sources: Sequence[str], counts: dict) -> dict:
    by_source = dict(sorted(Counter(sources).items()))
    return {"pairs": len(sources), "pairs_by_source": by_source, **counts}


def two_languages(languages: object) -> tuple[str, str]:
    """Language codes of the two sides, as a tuple.

    Args:
      languages: a tuple or list of two strings.

    Returns:
      The codes.

    Raises:
      ValueError: for anything else, a bare string included.

    Example:
      >>> two_languages(["en", "es"])
      ('en', 'es')
    """
    fits = isinstance(languages, tuple | list) and len(languages) == 2 and all(
        isinstance(code, str) and code for code in languages)
    checks.expect(fits, "languages", "two language codes, such as ('en', 'es')", repr(languages))
    return tuple(languages)


def make(
    name: str,
    ids: Iterable[str],
    left: Iterable[str],
    right: Iterable[str],
    *,
    languages: tuple[str, str],
    sources: Iterable[str] | None = None,
    counts: dict | None = None,
    differs: str = "",
) -> Pairs:
    """Check and bundle a corpus; digest and numbers of pairs are computed here.

    Args:
      name: of the corpus.
      ids: one unique identifier a pair.
      left: texts of the English side.
      right: texts of the other side, in the same order.
      languages: language codes of the two sides.
      sources: where each pair comes from; the corpus name when not given.
      counts: further numbers for the record.
      differs: how the data differs from the papers'.

    Returns:
      The collection.

    Raises:
      ValueError: columns of different lengths, entries that are not strings, an identifier that occurs twice, or
        languages that are not two codes.

    Example:
      >>> make("toy", ["a"], ["one"], ["uno"], languages=("en", "es")).counts
      {'pairs': 1, 'pairs_by_source': {'toy': 1}}
    """
    ids, left, right, languages = tuple(ids), tuple(left), tuple(right), two_languages(languages)
    sources = (name,) * len(ids) if sources is None else tuple(sources)
    for column, values in (("ids", ids), ("left", left), ("right", right), ("sources", sources)):
        checks.expect(len(values) == len(ids), column, f"{len(ids)} entries, one an id", len(values))
        text.strings(values, column)
    twice = [key for key, number in Counter(ids).items() if number > 1]
    checks.expect(not twice, "ids", "unique identifiers", f"{twice[:1]} more than once")
    digest = _digest(name, languages, ids, left, right)
    return Pairs(name, ids, left, right, sources, languages, digest, _counts(sources, counts or {}), differs)


def concatenate(name: str, parts: Sequence[Pairs]) -> Pairs:
    """Several corpora of the same two languages as one.

    Args:
      name: of the whole.
      parts: at least one corpus; identifiers must stay unique.

    Returns:
      All pairs in the order given; each part's digest and counts are kept under its name in ``counts["parts"]``, those
      of a second part of one name as ``name (2)``.

    Raises:
      ValueError: no parts, different languages, or an identifier in two of them.

    Example:
      >>> one = make("one", ["a"], ["one"], ["uno"], languages=("en", "es"))
      >>> two = make("two", ["b"], ["two"], ["dos"], languages=("en", "es"))
      >>> concatenate("both", [one, two]).sources
      ('one', 'two')
    """
    checks.expect(len(parts) > 0, "parts", "at least one corpus", "none")
    languages = {part.languages for part in parts}
    checks.expect(len(languages) == 1, "parts", "the same two languages everywhere", sorted(languages))
    columns = [
        tuple(value for part in parts for value in getattr(part, column))
        for column in ("ids", "left", "right", "sources")
    ]
    kept: dict[str, Any] = {}
    for part in parts:
        names = itertools.chain([part.name], (f"{part.name} ({number})" for number in itertools.count(2)))
        kept[next(name for name in names if name not in kept)] = {"sha256": part.sha256, **part.counts}
    notes = "; ".join(dict.fromkeys(part.differs for part in parts if part.differs))
    return make(
        name,
        *columns[:3],
        sources=columns[3],
        languages=parts[0].languages,
        counts={"parts": kept},
        differs=notes,
    )


def tokenize(pairs: Pairs) -> tuple[list[list[str]], list[list[str]]]:
    """Words of both sides, with the word splitter of each side's language.

    Args:
      pairs: the corpus.

    Returns:
      Two lists of word lists, left and right, in row order.

    Example:
      >>> tokenize(make("toy", ["a"], ["One two"], ["Uno dos"], languages=("en", "es")))
      ([['one', 'two']], [['uno', 'dos']])
    """
    split_left, split_right = (text.tokenizer(language) for language in pairs.languages)
    return [split_left(document) for document in pairs.left], [split_right(document) for document in pairs.right]
