"""Running text as numbers: sentences of documents in one array of int32 on disk, and the words that the numbers mean.

A folder holds ``tokens.npy`` (memory-mapped when it is read), ``words.txt`` (one word a line, with its count) and
``config.json``. Sentences stand one after the other, each between the marks ``<s>`` and ``</s>``. Words are numbered by
descending count (equal counts in alphabetical order), after the three marks: a vocabulary with a cut-off is a prefix of
the numbers, and `Sentences.size` says how long it is. One document at a time is in memory.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import os
import re
import shutil
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from jaxsim import checks, io
from jaxsim.data import files
from jaxsim.text.tokens import character_class, composed, word_marks

__all__ = ["END", "MARKS", "START", "UNKNOWN", "Sentences", "build", "load", "split", "words"]

VERSION = 2
"""Of the rules by which texts are cut. Version 1 knew only straight quotes and capitals of Latin-1, and cut words at
combining marks and soft hyphens. ASCII gives the same tokens by both."""
UNKNOWN, START, END = 0, 1, 2
MARKS = ("<unk>", "<s>", "</s>")

_TITLE = re.compile(r"\b(Mrs?|Ms|Messrs|Dr|Prof|Rev|Hon|Gen|Col|Capt|Lieut|Lt|Sergt|Sgt|Maj|St|Mme|Mlle|Esq|Jr|viz|vs"
                    r"|cf|No(?=\.\s?\d))\.(?=\W)")  # fmt: skip
_INITIAL = re.compile(r"\b([A-HJ-Z])\.(?=\s?[A-Z])")  # not I, which ends sentences
_PARAGRAPH = re.compile(r"\n[ \t]*\n\s*")
_QUOTES = "\u201c\u201d\u201e\u201a\u00ab\u00bb\u2039\u203a"  # which of them open and which close, languages decide
_BREAK = "\x01"
_LETTERS = r"[^\W\d_]"
_BLOCK = 1 << 22  # tokens, when a file is gone through
_REMEDY = "; build it again"


def _token(word: str) -> re.Pattern[str]:
    """Tokens, of a pattern of words between hyphens and apostrophes."""
    return re.compile(rf"{word}(?:['\-]{word})*|--|[.,;:!?{_BREAK}]|\d+")


_TOKEN = _token(f"{_LETTERS}+")


class _Numbers(dict):
    """Words numbered as they are first asked for."""

    def __missing__(self, word: str) -> int:
        number = self[word] = len(self) - 1  # the mark of a break has a place, but no number of its own
        return number


@dataclasses.dataclass(frozen=True, eq=False)
class Sentences:
    """Tokens of a collection, and its words.

    Attributes:
      tokens: ``[num_tokens]`` int32, memory-mapped: ``<s>`` words ``</s>``, sentence after sentence.
      vocabulary: number -> word; the first three are `MARKS`, the others by descending count.
      counts: ``[num_words]`` int64, how often each occurs; 0 for ``<unk>``.
      sha256: digest of tokens and words.
      source: documents, sentences, and what `build` was told.
    """

    tokens: np.ndarray
    vocabulary: tuple[str, ...]
    counts: np.ndarray
    sha256: str
    source: Mapping[str, object]

    __repr__ = checks.brief

    @functools.cached_property
    def numbers(self) -> dict[str, int]:
        """Word -> number."""
        return {word: number for number, word in enumerate(self.vocabulary)}

    def size(self, min_count: int = 1) -> int:
        """How many numbers, marks included, belong to words that occur ``min_count`` times: those below it are kept."""
        checks.positive_int(min_count, "min_count")
        rest = self.counts[len(MARKS) :]
        return len(MARKS) + int(np.searchsorted(-rest, -min_count, side="right"))

    def encode(self, sentence: Sequence[str]) -> np.ndarray:
        """Numbers of words, int32, 0 where one is unknown; no marks are added."""
        return np.array([self.numbers.get(word, UNKNOWN) for word in sentence], np.int32)

    def head(self, num_tokens: int) -> Sentences:
        """The whole sentences among the first tokens, with the vocabulary and counts of the whole text."""
        checks.positive_int(num_tokens, "num_tokens")
        tokens = self.tokens[:num_tokens]
        ends = np.flatnonzero(tokens == END)
        checks.expect(len(ends) > 0, "num_tokens", "room for one sentence", num_tokens)
        tokens = tokens[: ends[-1] + 1]
        return dataclasses.replace(self, tokens=tokens, sha256=f"{self.sha256}:{len(tokens)}")


def words(text: str) -> list[str]:
    """The tokens of a sentence: lower-case words (with inner hyphens and apostrophes), punctuation marks, numbers.

    Args:
      text: of any language that puts spaces between words. Soft hyphens and joiners are left out, and cut no word.

    Returns:
      The tokens, in Unicode's NFC form; full stops of abbreviations are dropped.

    Example:
      >>> words("Mr. Holmes's well-known pipe--out, at 9!")
      ['mr', "holmes's", 'well-known', 'pipe', '--', 'out', ',', 'at', '9', '!']
    """
    return [token for token in _tokens(_plain(composed(text)).lower()) if token != _BREAK]


def split(text: str) -> list[list[str]]:
    r"""The sentences of a document as tokens.

    Args:
      text: paragraphs with an empty line between them. A sentence ends with its paragraph, and at a full stop, question
        or exclamation mark before a capital letter of any script or a number, whatever quotes are between.

    Returns:
      Sentences, none of them empty.

    Example:
      >>> split('"What?" said Dr. Ray. "Go!"\n\nHe went')
      [['what', '?', 'said', 'dr', 'ray', '.'], ['go', '!'], ['he', 'went']]
      >>> split("\u00abVa !\u00bb \u201cOui.\u201d")
      [['va', '!'], ['oui', '.']]
    """
    sentences: list[list[str]] = [[]]
    for token in _tokens(_broken(text)):
        if token == _BREAK:
            sentences.append([])
        else:
            sentences[-1].append(token)
    return [sentence for sentence in sentences if sentence]


def build(
    documents: Iterable[tuple[str, str]],
    out: str | os.PathLike,
    *,
    source: Mapping[str, object] | None = None,
    version: int = VERSION,
    progress: bool = False,
) -> Sentences:
    """Writes the sentences of documents into a folder, which is whole or absent whatever happens.

    Args:
      documents: name and text of each; read once, one at a time.
      out: the folder; an older one of this kind is replaced.
      source: what to keep in the configuration, JSON-compatible.
      version: of the rules; 1 gives the tokens of before.
      progress: show the documents' number on stderr.

    Returns:
      What `load` gives.

    Raises:
      ValueError: no document, no sentence in any, an unknown version, or a place that holds something else.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as place:
      ...     sentences = build([("one", "Tea? Tea now.")], place + "/tokens")
      ...     sentences.vocabulary, sentences.tokens.tolist()
      (('<unk>', '<s>', '</s>', 'tea', '.', '?', 'now'), [1, 3, 5, 2, 1, 3, 6, 4, 2])
    """
    checks.expect(version in (1, VERSION), "version", f"1 or {VERSION}", version)
    out = Path(out)
    io.check_place(out, what="corpus")
    out.parent.mkdir(parents=True, exist_ok=True)
    io.remove_stale(out)
    part = io.hidden(out)
    part.mkdir()
    try:
        vocabulary, counts, total, read = _number(documents, part / "raw", version, progress)
        checks.expect(total > 0, "documents", "at least one sentence", f"none in {checks.counted(read, 'document')}")
        order = _order(vocabulary, counts)
        digest = _renumber(part, order, total)
        lines = "".join(f"{vocabulary[at]}\t{counts[at]}\n" for at in order)
        digest.update(lines.encode())
        (part / "words.txt").write_text(lines, "utf-8")
        about = {"documents": read, "sentences": int(counts[END]), "tokens": total, "version": version,
                 **(source or {})}  # fmt: skip
        config = {"library": "jaxsim", "format": 1, "kind": "sentences", "sha256": digest.hexdigest(), "source": about,
                  "files": ["tokens.npy", "words.txt"]}  # fmt: skip
        (part / "raw").unlink()
        (part / io.CONFIG).write_bytes(io.sealed(config))
        if out.exists():
            shutil.rmtree(out)
        os.rename(part, out)
    finally:
        shutil.rmtree(part, ignore_errors=True)
    return load(out)


def load(folder: str | os.PathLike) -> Sentences:
    """Opens a folder that `build` wrote; its tokens are read once, to compare them, and stay on disk.

    Args:
      folder: where.

    Returns:
      `Sentences`.

    Raises:
      OSError: there is no such folder.
      ValueError: it is damaged, or of another kind; and for numbers without a word, whoever wrote it.
    """
    folder = Path(folder)
    path = folder / io.CONFIG
    config = io.unsealed(path, newest=1, remedy=_REMEDY)
    checks.expect(config.get("kind") == "sentences", str(folder), "sentences as numbers", config.get("kind"))
    source = config.get("source")
    checks.expect(isinstance(source, dict) and "tokens" in source, f"{path}: source", "a number of tokens", "none")
    checks.whole(source["tokens"], f"{path}: source.tokens", 1)
    lines = (folder / "words.txt").read_bytes()
    try:
        tokens = np.lib.format.open_memmap(folder / "tokens.npy", mode="r")
    except OSError:
        raise
    except Exception as error:  # of every type, as the header is Python
        raise ValueError(f"{folder / 'tokens.npy'}: expected whole tokens, got {error}{_REMEDY}") from error
    checks.array(tokens, str(folder / "tokens.npy"), "int32", (source["tokens"],))
    digest, least, most = hashlib.sha256(), 0, 0
    for begin in range(0, len(tokens), _BLOCK):
        block = np.asarray(tokens[begin : begin + _BLOCK])
        digest.update(block)
        least, most = min(least, int(block.min())), max(most, int(block.max()))
    digest.update(lines)
    checks.expect(digest.hexdigest() == config.get("sha256"), str(folder), "the tokens and words that were written",
                  f"others{_REMEDY}")
    vocabulary, counts = _listed(lines, folder / "words.txt")
    checks.expect(least >= 0 and most < len(vocabulary), str(folder / "tokens.npy"),
                  f"numbers from 0 to {len(vocabulary) - 1}", f"{least} to {most}")
    return Sentences(tokens, vocabulary, counts, config["sha256"], source)


def _listed(lines: bytes, path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    """The words of a folder and their counts."""
    rows = [line.split("\t") for line in files.decode(lines, str(path)).splitlines()]
    fits = all(len(row) == 2 and row[1].isdecimal() and len(row[1]) < 19 for row in rows)
    fits = fits and tuple(row[0] for row in rows[: len(MARKS)]) == MARKS and len({row[0] for row in rows}) == len(rows)
    checks.expect(fits, str(path), "different words with their counts, the marks first", f"others{_REMEDY}")
    counts = np.array([row[1] for row in rows], np.int64)
    rest = counts[len(MARKS) :]
    checks.expect(bool((rest[1:] <= rest[:-1]).all()), str(path), "counts that fall", f"others{_REMEDY}")
    return tuple(row[0] for row in rows), counts


def _plain(text: str) -> str:
    """Text without full stops of abbreviations, and with typewriter apostrophes and dashes."""
    text = text.replace("\u2019", "'").replace("\u2014", "--").replace("\u2018", "'")
    return _TITLE.sub(r"\1", _INITIAL.sub(r"\1", text))


@functools.cache
def _stop(version: int) -> re.Pattern[str]:
    """A mark that ends a sentence: a capital letter or a number follows."""
    if version == 1:
        return re.compile(r"([.!?])([\"')\]_*]*\s)(?=[\s\"'(\[_*-]*[A-Z\u00c0-\u00de0-9])")
    capitals = character_class([at for at in range(0x20000) if unicodedata.category(chr(at)) in ("Lu", "Lt")])
    return re.compile(rf"([.!?])([\"')\]_*{_QUOTES}]*\s)(?=[\s\"'(\[_*{_QUOTES}\u00a1\u00bf-]*[{capitals}0-9])")


def _broken(text: str, version: int = VERSION) -> str:
    """Lower-case text with a mark between sentences."""
    text = text if version == 1 else composed(text)
    text = _PARAGRAPH.sub(f" {_BREAK} ", _plain(text.replace(_BREAK, " ")))
    return _stop(version).sub(rf"\1\2{_BREAK} ", text).lower()


@functools.cache
def _accented(beyond: bool) -> re.Pattern[str]:
    """Tokens of a text that may have combining marks; finding them is slower."""
    return _token(f"{_LETTERS}+(?:[{word_marks(beyond=beyond)}]+{_LETTERS}*)*")


def _tokens(text: str, version: int = VERSION) -> list[str]:
    """The tokens of lower-case text, marks between sentences among them."""
    last = max(set(text), default="")
    return (_TOKEN if version == 1 or last < "\u0300" else _accented(last > "\uffff")).findall(text)


def _number(
    documents: Iterable[tuple[str, str]], path: Path, version: int, progress: bool
) -> tuple[list[str], np.ndarray, int, int]:
    """Writes tokens numbered by first occurrence; words, their counts, and how many tokens and documents there were."""
    numbers = _Numbers({word: number for number, word in enumerate(MARKS)})
    numbers[_BREAK] = END
    counts, total, read = np.zeros(0, np.int64), 0, 0
    with open(path, "wb") as file:
        for _, text in tqdm(documents, desc="documents", unit="", disable=None if progress else True):
            result = _tokens(_broken(text, version), version)
            row = _marked(np.fromiter(map(numbers.__getitem__, result), np.int32, len(result)) if result else None)
            row.tofile(file)
            more = np.bincount(row)
            counts = np.pad(counts, (0, max(0, len(more) - len(counts))))
            counts[: len(more)] += more
            total, read = total + len(row), read + 1
    vocabulary = [word for word in numbers if word != _BREAK]
    return vocabulary, np.pad(counts, (0, len(vocabulary) - len(counts))), total, read


def _marked(row: np.ndarray | None) -> np.ndarray:
    """Tokens with an end of sentence between them -> with both marks round every sentence that is not empty."""
    if row is None:
        return np.zeros(0, np.int32)
    row = np.concatenate(([END], row, [END])).astype(np.int32)
    row = row[(row != END) | (np.concatenate(([0], row[:-1])) != END)]  # one mark between two sentences
    if len(row) < 2:
        return np.zeros(0, np.int32)
    twice = np.repeat(row, 1 + (row == END))  # END END: the first ends a sentence, the second is to start one
    starts = np.flatnonzero(twice == END)[1::2]
    twice[starts] = START
    return twice[1:-1]


def _order(vocabulary: Sequence[str], counts: np.ndarray) -> list[int]:
    """Raw numbers in their final order: the marks, then by descending count, then alphabetically."""
    rest = range(len(MARKS), len(vocabulary))
    return [*range(len(MARKS)), *sorted(rest, key=lambda number: (-counts[number], vocabulary[number]))]


def _renumber(part: Path, order: Sequence[int], total: int) -> Any:
    """Writes ``tokens.npy`` with the final numbers, a block at a time; the digest of the tokens."""
    final = np.empty(len(order), np.int32)
    final[np.asarray(order)] = np.arange(len(order), dtype=np.int32)
    digest = hashlib.sha256()
    with open(part / "raw", "rb") as raw, open(part / "tokens.npy", "wb") as file:
        header = {"descr": "<i4", "fortran_order": False, "shape": (total,)}
        np.lib.format.write_array_header_1_0(file, header)
        while len(block := np.fromfile(raw, np.int32, _BLOCK)):
            content = final[block].astype("<i4").tobytes()
            digest.update(content)
            file.write(content)
    return digest
