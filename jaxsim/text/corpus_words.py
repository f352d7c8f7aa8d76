"""Words of many texts counted at once, in several processes: the workers of `corpus_build`, without JAX."""

from __future__ import annotations

import functools
import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, compress, islice
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from jaxsim.parallel.workers import in_order
from jaxsim.text import tokens

# Of a byte of ASCII: its lower case if words are made of it, the zero byte as it is, else a space.
_FOLDED = bytes(ord(chr(byte).lower()) if chr(byte).isalnum() or chr(byte) in "_\0" else 32 for byte in range(128)
                ) + b" " * 128
_PRIME = 2**127 - 1
_BASE = 0x5DEECE66D2B992DDFA23249D6F3A1C47  # any number; it tells the places of documents apart


class Texts(NamedTuple):
    """Which texts a stream of documents has; of two streams, `then` gives it for one after the other.

    Attributes:
      number: of documents.
      hash: a polynomial of the documents' hashes, below 2^127, so that parts of any sizes give that of the whole.
    """

    number: int = 0
    hash: int = 0

    def then(self, other: Texts) -> Texts:
        """Those of this stream and of another after it.

        Args:
          other: the stream that follows.

        Returns:
          `Texts`.
        """
        return Texts(self.number + other.number, (self.hash * pow(_BASE, other.number, _PRIME) + other.hash) % _PRIME)


class Counted(NamedTuple):
    """A batch of documents, counted.

    Attributes:
      words: distinct words; the position is the column.
      sides: one ``[batch, len(words)]`` int32 CSR matrix of counts a side, sorted, without duplicates.
      digest: of the texts.
      texts: the same for batches of other sizes.
    """

    words: list[str]
    sides: list[sp.csr_matrix]
    digest: str
    texts: Texts


def digest(documents: Sequence[Sequence[str]]) -> str:
    """A hash of a batch's texts.

    Args:
      documents: texts of every document, one a side.

    Returns:
      32 hexadecimal digits.

    Example:
      >>> digest([("a", "b")]) == digest([("ab", "")])
      False
    """
    texts = list(chain.from_iterable(documents))
    found = hashlib.blake2b(digest_size=16)
    found.update(np.fromiter(map(len, texts), np.int64, len(texts)).tobytes())
    found.update("".join(texts).encode("utf-8", "surrogatepass"))
    return found.hexdigest()


def texts_of(documents: Iterable[Sequence[str]]) -> Texts:
    """Which texts these are, whatever batches they come in.

    Args:
      documents: texts of every document, one a side.

    Returns:
      `Texts`.

    Example:
      >>> texts_of([("a", "b")]).then(texts_of([("c", "d")])) == texts_of([("a", "b"), ("c", "d")])
      True
      >>> texts_of([("a", "b")]) == texts_of([("ab", "")])
      False
    """
    number = total = 0
    for document in documents:
        text = "".join([f"{len(side)} {side}" for side in document]).encode("utf-8", "surrogatepass")
        one = int.from_bytes(hashlib.blake2b(text, digest_size=15).digest())
        number, total = number + 1, (total * _BASE + one) % _PRIME
    return Texts(number, total)


def count(documents: Sequence[Sequence[str]], languages: Sequence[str]) -> Counted:
    """Counts the words of a batch of documents.

    Args:
      documents: texts of every document, one a side.
      languages: code of each side.

    Returns:
      `Counted`.

    Example:
      >>> found = count([("a b a", "c"), ("", "b")], ("en", "en"))
      >>> found.words, found.sides[0].toarray().tolist(), found.sides[1].toarray().tolist()
      (['a', 'b', 'c'], [[2, 1, 0], [0, 0, 0]], [[0, 0, 1], [0, 1, 0]])
    """
    plain_words, other_words, parts = _numbering(), _numbering(), []
    plain_words[b"\0"] = 0  # ends a text
    for side, language in enumerate(languages):
        texts = [document[side] for document in documents]
        cut = tokens.tokenizer(language)
        plain = np.fromiter(map(str.isascii, texts), bool, len(texts)) & (cut is tokens.words)
        searched = _cut(list(compress(texts, ~plain)), tokens.pieces if cut is tokens.words else cut, other_words)
        split = _split(list(compress(texts, plain)), plain_words)
        parts.append(_interleaved(split, searched, plain))
    words = b" ".join(islice(plain_words, 1, None)).decode("ascii").split()
    if other_words:  # below 0 until here, as they may be the others' words too
        table = _numbering()
        table.update(zip(words, range(len(words)), strict=True))
        numbers = np.fromiter(map(table.__getitem__, other_words), np.int32, len(other_words))
        for ids, _ in parts:
            ids[ids < 0] = numbers[-1 - ids[ids < 0]]
        words = list(table)
    shape = (len(documents), len(words))
    sides = [sp.csr_matrix((np.ones(ids.size, np.int32), ids, np.concatenate([[0], np.cumsum(lengths)])), shape=shape)
             for ids, lengths in parts]
    for side in sides:
        side.sum_duplicates()
    return Counted(words, sides, digest(documents), texts_of(documents))


def _numbering() -> defaultdict:
    """A table that numbers what it is asked for, in the order of asking."""
    table: defaultdict = defaultdict()
    table.default_factory = table.__len__
    return table


def _cut(texts: Sequence[str], cut: Callable[[str], list[str]], table: dict[str, int]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of all words in order, as -1, -2 and so on, and how many each text has."""
    lists = [cut(text) for text in texts]
    lengths = np.fromiter(map(len, lists), np.int64, len(lists))
    return -1 - np.fromiter(map(table.__getitem__, chain.from_iterable(lists)), np.int32, int(lengths.sum())), lengths


def _split(texts: Sequence[str], table: dict[bytes, int]) -> tuple[np.ndarray, np.ndarray]:
    """Words of ASCII texts as `tokens.words` has them, of all texts at once: numbers, and how many each text has.

    Bytes are translated and split in less time than texts are searched. The zero byte ends a text.
    """
    if not texts:
        return np.zeros(0, np.int32), np.zeros(0, np.int64)
    joined = " \0 ".join(texts)
    if joined.count("\0") >= len(texts):  # some have zero bytes, which separate words there
        joined = " \0 ".join([text.replace("\0", " ") for text in texts])
    found = joined.encode("ascii").translate(_FOLDED).split()
    ids = np.fromiter(map(table.__getitem__, found), np.int32, len(found)) - 1
    ends = np.flatnonzero(ids < 0)
    lengths = np.diff(np.concatenate([[-1], ends, [ids.size]])) - 1
    return ids[ids >= 0], lengths


def _interleaved(first: tuple, others: tuple, which: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Texts of two groups in their old order; ``which`` says which are of the first group."""
    if which.all():
        return first
    sizes = np.empty(which.size, np.int64)
    sizes[which], sizes[~which] = first[1], others[1]
    owners = np.repeat(which, sizes)
    ids = np.empty(owners.size, np.int32)
    ids[owners], ids[~owners] = first[0], others[0]
    return ids, sizes


def counted(batches: Iterator[tuple[bool, list]], languages: Sequence[str], workers: int
             ) -> Iterator[tuple[bool, Counted]]:
    """Batches counted in order, a few ahead in other processes (`parallel.workers`).

    Args:
      batches: documents of each, with anything that is to go with them.
      languages: code of each side.
      workers: processes, this one among them.

    Yields:
      What went with each batch, and its `Counted`.

    Example:
      >>> [(last, found.words) for last, found in counted(iter([(False, [("a b",)]), (True, [("c",)])]), ("en",), 1)]
      [(False, ['a', 'b']), (True, ['c'])]
    """
    return in_order(functools.partial(_counted, languages=languages), batches, workers=workers)


def _counted(batch: tuple[bool, list], languages: Sequence[str]) -> tuple[bool, Counted]:
    return batch[0], count(batch[1], languages)
