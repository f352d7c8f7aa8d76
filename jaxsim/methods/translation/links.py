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
    keys = [_keys(a, b, width) for a, b in parts]
    pairs, places = np.unique(np.concatenate([key.ravel() for key in keys]), return_inverse=True)
    nothing = int(pairs[0] < 0)  # where a sentence is padded
    pairs = pairs[nothing:]
    words = pairs // width, pairs % width  # left and right
    back = np.lexsort(words)  # by the right word, then by the left one
    most = max(len(left.vocabulary), len(right.vocabulary))  # one size of all vectors, so that one program serves both
    there, again = np.zeros((2, len(pairs) + 1), np.int32)
    there[1:] = 1 + most + np.arange(len(pairs))
    again[1 + back] = 1 + most + np.arange(len(pairs))
    places = places + 1 - nothing
    starts = np.concatenate([[0], np.cumsum([key.size for key in keys])])
    numbers = [places[start : start + key.size].reshape(key.shape) for key, start in zip(keys, starts, strict=False)]
    forward = [_block(there[number].swapaxes(1, 2), a, b) for number, (a, b) in zip(numbers, parts, strict=True)]
    backward = [_block(again[number], b, a) for number, (a, b) in zip(numbers, parts, strict=True)]
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


def _block(links: np.ndarray, source: np.ndarray, target: np.ndarray) -> Block:
    """Sentences in chunks; those added to fill the last chunk have no words."""
    number, length = target.shape
    n = max(1, min(number, _CHUNK // length**2))
    chunks = -(-number // n)

    def cut(array: np.ndarray) -> jax.Array:
        whole = np.zeros((chunks * n, *array.shape[1:]), np.int32)
        whole[:number] = array
        return jnp.asarray(whole.reshape(chunks, n, *array.shape[1:]))

    return Block(cut(links), cut(target + 1), cut(source + 1))


def _links(blocks, rows, columns, most: int, num_source: int, num_target: int, tokens: int) -> Links:
    rows = np.concatenate([np.zeros(1 + most, np.int64), rows + 1]).astype(np.int32)
    columns = np.concatenate([[0], np.arange(most), columns]).astype(np.int32)
    return Links(tuple(blocks), jnp.asarray(rows), columns, most + 1, num_source, num_target, tokens)
