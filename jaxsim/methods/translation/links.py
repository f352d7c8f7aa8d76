"""The co-occurring words of a bitext, laid out for expectation maximisation in one direction.

A *link* is a pair of words that occur in one pair of sentences. Every pair of tokens has the number of its link, so
that a table of translations is a vector. Pairs of sentences of about one size are padded to one shape and cut into
chunks, over which a compiled loop runs; link 0 stands for no link and has probability 0.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.methods.translation.bitext import Bitext

_SIZES = np.array([8, 12, 16, 20, 24, 32, 40, 48, 64, 96, 128])  # few, because each is compiled
_CHUNK = 2**19  # pairs of tokens in a chunk: its arrays stay in the cache
_AT_ONCE = 2**21  # pairs of tokens that are numbered at once


class Block(NamedTuple):
    """Pairs of sentences of one padded size.

    Attributes:
      links: ``[chunks, n, target, source]`` int32 numbers of links.
      null: ``[chunks, n, target]`` int32, the link of each target word to the empty word.
      source: ``[chunks, n, source]`` int32 words, counted from 1; 0 where there is none.
    """

    links: jax.Array
    null: jax.Array
    source: jax.Array


class Links(NamedTuple):
    """All links from the words of one language to those of the other.

    Attributes:
      blocks: `Block` of each size.
      rows: ``[links]`` int32, the source word of each link, counted from 1; 0 for the empty word. Ascending.
      columns: ``[links]`` int32, its target word.
      num_rows: source words of the larger vocabulary, and the empty word.
      num_source: source words.
      num_target: target words.
      tokens: target words of all sentences.
    """

    blocks: tuple[Block, ...]
    rows: jax.Array
    columns: np.ndarray
    num_rows: int
    num_source: int
    num_target: int
    tokens: int


def both(bitext: Bitext) -> tuple[Links, Links]:
    """Links from left to right and from right to left.

    Args:
      bitext: the sentences.

    Returns:
      Two `Links`: the source of the first is the left side, that of the second the right side.
    """
    left, right = bitext.left, bitext.right
    lengths = [np.diff(side.indptr) for side in (left, right)]
    size = _padded_size(np.maximum(*lengths))
    parts = []
    for width in np.unique(size):
        rows = np.flatnonzero(size == width)
        parts.append([_padded(side, rows, width) for side in (left, right)])
    width = len(right.vocabulary)
    pairs = _distinct(parts, width)
    words = pairs // width, pairs % width  # left and right
    back = np.lexsort(words)  # by the right word, then by the left one
    most = max(len(left.vocabulary), len(right.vocabulary))  # one size of all vectors, so that one program serves both
    there, again = np.zeros((2, len(pairs) + 1), np.int32)
    there[1:] = 1 + most + np.arange(len(pairs))
    again[1 + back] = 1 + most + np.arange(len(pairs))
    forward, backward = zip(*(_blocks(a, b, pairs, width, there, again) for a, b in parts), strict=True)
    return (_links(forward, *words, most, len(left.vocabulary), len(right.vocabulary), len(right.words)),
            _links(backward, words[1][back], words[0][back], most, len(right.vocabulary), len(left.vocabulary),
                   len(left.words)))  # fmt: skip


def _padded_size(lengths: np.ndarray) -> np.ndarray:
    """The next size in which sentences are kept; above the largest of `_SIZES`, the next multiple of 128."""
    place = np.minimum(np.searchsorted(_SIZES, lengths), len(_SIZES) - 1)
    return np.where(lengths > _SIZES[-1], -(-lengths // 128) * 128, _SIZES[place])


def _padded(side, rows: np.ndarray, width: int) -> np.ndarray:
    """Words of some sentences ``[rows, width]``; -1 where there is none."""
    start, length = side.indptr[rows], np.diff(side.indptr)[rows]
    place = np.arange(width)
    there = place < length[:, None]
    return np.where(there, side.words[np.where(there, start[:, None] + place, 0)], -1)


def _keys(left: np.ndarray, right: np.ndarray, width: int) -> np.ndarray:
    """A number for every pair of words ``[n, left, right]``; -1 where there is none."""
    keys = left.astype(np.int64)[:, :, None] * width + right[:, None, :]
    return np.where((left >= 0)[:, :, None] & (right >= 0)[:, None, :], keys, -1)


def _slices(words: np.ndarray) -> list[slice]:
    """Rows of `_AT_ONCE` pairs of tokens, or of one sentence."""
    number, length = words.shape
    step = max(1, _AT_ONCE // length**2)
    return [slice(begin, min(begin + step, number)) for begin in range(0, number, step)]


def _distinct(parts: list, width: int) -> np.ndarray:
    """The keys of all pairs of words, each once, ascending; a few sentences at a time."""
    table, waiting = np.zeros(0, np.int64), []
    for left, right in parts:
        for rows in _slices(left):
            waiting.append(np.unique(_keys(left[rows], right[rows], width)))
            if sum(map(len, waiting)) > len(table):  # so that the table is gone through few times
                table, waiting = np.unique(np.concatenate([table, *waiting])), []
    table = np.unique(np.concatenate([table, *waiting]))
    return table[np.searchsorted(table, 0) :]  # -1 is where a sentence is padded


def _blocks(left: np.ndarray, right: np.ndarray, pairs: np.ndarray, width: int, there: np.ndarray, again: np.ndarray,
            ) -> tuple[Block, Block]:
    """Sentences of one size in chunks, in both directions; those added to fill the last chunk have no words."""
    number, length = left.shape
    n = max(1, min(number, _CHUNK // length**2))
    chunks = -(-number // n)
    forward, backward = np.zeros((2, chunks * n, length, length), np.int32)
    for rows in _slices(left):
        keys = _keys(left[rows], right[rows], width)
        found, place = np.unique(keys, return_inverse=True)
        places = np.where(found < 0, 0, np.searchsorted(pairs, found) + 1)
        forward[rows] = there[places][place].reshape(keys.shape).swapaxes(1, 2)
        backward[rows] = again[places][place].reshape(keys.shape)

    def cut(array: np.ndarray) -> jax.Array:
        return jax.device_put(array.reshape(chunks, n, *array.shape[1:]))

    words = [np.zeros((chunks * n, length), np.int32) for _ in range(2)]
    for whole, side in zip(words, (left, right), strict=True):
        whole[:number] = side + 1
    a, b = map(cut, words)
    return Block(cut(forward), b, a), Block(cut(backward), a, b)


def _links(blocks, rows, columns, most: int, num_source: int, num_target: int, tokens: int) -> Links:
    rows = np.concatenate([np.zeros(1 + most, np.int64), rows + 1]).astype(np.int32)
    columns = np.concatenate([[0], np.arange(most), columns]).astype(np.int32)
    return Links(tuple(blocks), jnp.asarray(rows), columns, most + 1, num_source, num_target, tokens)
