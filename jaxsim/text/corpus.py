"""Collections larger than memory: counts of terms in a folder of memory-mapped shards.

`corpus_build.build` reads texts once and writes the folder; `read` opens it. A `Documents` is one side of it: it
gives rows as SciPy matrices, by number, and holds nothing else in memory, so that `s2net_sgd.fit` and the encoders
walk over collections of any size.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.text.vocabulary import Vocabulary, unit_rows

FORMAT = 1
CONFIG, VOCABULARY, DF = "corpus.json", "vocabulary.json", "df.npy"


def shard_file(number: int, side: int, what: str) -> str:
    """Name of one array of a shard.

    Args:
      number: of the shard, from 0.
      side: of the documents, from 0.
      what: ``"ends"``, ``"terms"`` or ``"counts"``.

    Returns:
      The file's name.

    Example:
      >>> shard_file(3, 0, "ends")
      'shard-00003-0-ends.npy'
    """
    return f"shard-{number:05d}-{side}-{what}.npy"


@dataclass(frozen=True, eq=False)
class Documents:
    """One side of a corpus; `weighted` rows are made when they are asked for.

    Attributes:
      vocabulary: of the whole corpus.
      shards: ``(ends, terms, counts)`` of every shard, memory-mapped: ``[n + 1]`` int64 row pointers, int32 terms,
        int32 counts.
      starts: ``[shards + 1]`` int64, the first document of every shard.
      weigh: function of counts, df and number of documents (`text.log_tf_idf` and its like), or None for counts.
    """

    vocabulary: Vocabulary
    shards: tuple[tuple[np.ndarray, np.ndarray, np.ndarray], ...]
    starts: np.ndarray
    weigh: Callable | None = None

    @property
    def num_docs(self) -> int:
        """Number of documents."""
        return int(self.starts[-1])

    @property
    def num_terms(self) -> int:
        """Size of the vocabulary."""
        return len(self.vocabulary)

    def lengths(self) -> np.ndarray:
        """``[num_docs]`` int64: distinct terms of every document."""
        return np.concatenate([np.diff(ends) for ends, _, _ in self.shards] or [np.zeros(0, np.int64)])

    def rows(self, chosen) -> sp.csr_matrix:
        """Documents by number.

        Args:
          chosen: ``[n]`` integers in [0, num_docs), in any order, or a slice.

        Returns:
          ``[n, num_terms]`` float32 CSR matrix: counts, or with ``weigh`` weighted rows of length one.

        Raises:
          ValueError: for a number out of range.
        """
        chosen = np.arange(*chosen.indices(self.num_docs)) if isinstance(chosen, slice) else chosen
        numbers = np.asarray(chosen, np.int64)
        wrong = numbers[(numbers < 0) | (numbers >= self.num_docs)]
        checks.expect(not wrong.size, "chosen", f"documents from 0 to {self.num_docs - 1}", wrong[:1].tolist())
        where = np.searchsorted(self.starts, numbers, side="right") - 1
        terms, counts, ends = [np.zeros(0, np.int32)], [np.zeros(0, np.int32)], np.zeros(numbers.size + 1, np.int64)
        for i, (shard, number) in enumerate(zip(where, numbers, strict=True)):
            shard_ends, shard_terms, shard_counts = self.shards[shard]
            first, last = shard_ends[number - self.starts[shard] :][:2]
            terms.append(shard_terms[first:last])
            counts.append(shard_counts[first:last])
            ends[i + 1] = ends[i] + last - first
        parts = np.concatenate(counts).astype(np.float32), np.concatenate(terms), ends
        matrix = sp.csr_matrix(parts, shape=(numbers.size, self.num_terms))
        if self.weigh is None:
            return matrix
        return unit_rows(self.weigh(matrix, self.vocabulary.df, self.vocabulary.num_docs)).astype(np.float32)

    def batches(self, size: int) -> Iterator[sp.csr_matrix]:
        """All documents in order, ``size`` at a time.

        Args:
          size: documents a batch; the last may have fewer.

        Yields:
          What `rows` gives.
        """
        checks.positive_int(size, "size")
        for start in range(0, self.num_docs, size):
            yield self.rows(np.arange(start, min(start + size, self.num_docs)))


@dataclass(frozen=True, eq=False)
class Corpus:
    """A folder of shards.

    Attributes:
      vocabulary: terms with the document frequencies over all sides.
      sides: raw counts of every side; document i of one is the mate of document i of the others.
      languages: code of every side.
    """

    vocabulary: Vocabulary
    sides: tuple[Documents, ...]
    languages: tuple[str, ...]

    def weighted(self, weigh: Callable) -> tuple[Documents, ...]:
        """The sides with weighted rows of length one, made when they are asked for.

        Args:
          weigh: `text.log_tf_idf` or its like.

        Returns:
          One `Documents` a side.
        """
        return tuple(Documents(side.vocabulary, side.shards, side.starts, weigh) for side in self.sides)


def read(folder: str | os.PathLike) -> Corpus:
    """Opens a folder that `corpus_build.build` wrote; nothing but the vocabulary is loaded.

    Args:
      folder: where.

    Returns:
      `Corpus`.

    Raises:
      ValueError: for a folder of another format, an unfinished one, and a missing or truncated shard (named).
      OSError: if it cannot be read.

    Example:
      >>> import tempfile
      >>> from jaxsim.text.corpus_build import build
      >>> with tempfile.TemporaryDirectory() as place:
      ...     corpus = build(place, [("a b", "a c"), ("b b", "c")], min_df=1)
      ...     corpus.vocabulary.terms, corpus.sides[0].rows([1, 0]).toarray().tolist()
      (('b', 'a', 'c'), [[2.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    """
    folder = Path(folder)
    path = folder / CONFIG
    checks.expect(path.is_file(), str(folder), f"a finished corpus ({CONFIG})",
                  "an unfinished one (build it again; it goes on)" if (folder / "reading").is_dir() else "none")
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
        found = config["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path}: expected the description of a corpus, got a damaged file ({error})") from error
    checks.expect(found == FORMAT, str(path), f"format {FORMAT}", found)
    terms = json.loads((folder / VOCABULARY).read_text(encoding="utf-8"))
    vocabulary = Vocabulary(tuple(terms), np.load(folder / DF), config["df_docs"])
    starts = np.cumsum([0, *config["shard_docs"]])
    sides = []
    for side in range(len(config["languages"])):
        shards = tuple(_shard(folder, number, side, docs) for number, docs in enumerate(config["shard_docs"]))
        sides.append(Documents(vocabulary, shards, starts))
    return Corpus(vocabulary, tuple(sides), tuple(config["languages"]))


def _shard(folder: Path, number: int, side: int, docs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    arrays = []
    for what in ("ends", "terms", "counts"):
        path = folder / shard_file(number, side, what)
        try:
            arrays.append(np.load(path, mmap_mode="r"))
        except FileNotFoundError as error:
            raise ValueError(f"{path}: expected a shard's file, got none") from error
        except (ValueError, EOFError) as error:
            raise ValueError(f"{path}: expected a whole shard, got a truncated or altered file ({error})") from error
    ends, terms, counts = arrays
    fits = len(ends) == docs + 1 and len(terms) == len(counts) == ends[-1]
    checks.expect(fits, str(folder / shard_file(number, side, "ends")), f"{docs} documents and as many terms as counts",
                  f"{len(ends) - 1} documents, {len(terms)} terms, {len(counts)} counts")
    return ends, terms, counts
