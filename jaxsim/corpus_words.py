"""Words of many texts counted at once: what the worker processes of `corpus_build` do, without loading JAX."""

from __future__ import annotations

import hashlib
import os
import signal
import threading
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain
from multiprocessing import parent_process
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from jaxsim import tokens


class Counted(NamedTuple):
    """A batch of documents, counted.

    Attributes:
      words: distinct words in order of their first use; the position is the column.
      sides: one ``[batch, len(words)]`` int32 CSR matrix of counts a side, sorted, without duplicates.
      digest: of the texts.
    """

    words: list[str]
    sides: list[sp.csr_matrix]
    digest: str


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
    found = hashlib.blake2b(digest_size=16)
    for document in documents:
        for text in document:
            data = text.encode("utf-8", "surrogatepass")
            found.update(len(data).to_bytes(8, "little"))
            found.update(data)
    return found.hexdigest()


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
    table: defaultdict[str, int] = defaultdict()
    table.default_factory = table.__len__
    parts = []
    for side, language in enumerate(languages):
        cut = tokens.pieces if tokens.tokenizer(language) is tokens.words else tokens.tokenizer(language)
        lists = [cut(document[side]) for document in documents]
        ends = np.cumsum([0, *map(len, lists)])
        ids = np.fromiter(map(table.__getitem__, chain.from_iterable(lists)), np.int32, int(ends[-1]))
        parts.append((np.ones(ids.size, np.int32), ids, ends))
    shape = (len(documents), len(table))
    sides = [sp.csr_matrix(part, shape=shape) for part in parts]
    for side in sides:
        side.sum_duplicates()
    return Counted(list(table), sides, digest(documents))


def start_worker() -> None:
    """What a worker process does first: Ctrl-C is its parent's, and it ends with its parent, however that ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = parent_process()
    if parent is not None:
        threading.Thread(target=lambda: (parent.join(), os._exit(1)), daemon=True).start()
