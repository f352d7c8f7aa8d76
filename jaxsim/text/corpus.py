"""Collections larger than memory: counts of terms in a folder of memory-mapped shards.

`corpus_build.build` reads texts once and writes the folder; `read` opens it. A `Documents` is one side of it: it
gives rows as SciPy matrices, by number, and holds nothing else in memory, so that `s2net_sgd.fit` and the encoders
walk over collections of any size.

The digest of every file stands in ``corpus.json``, which holds its own. On opening, sizes, types and the first and last
row pointers are compared, and files are closed again. The files of a shard are read once, as a whole, when the shard is
first used: their digests are compared, and that row pointers and columns are such as products can walk over, whoever
wrote them. The files that were used last stay mapped, at most a quarter as many as the process may open, so that a
corpus of any number of shards can be read.
"""

from __future__ import annotations

import functools
import os
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, io
from jaxsim.text import tokens
from jaxsim.text.vocabulary import Vocabulary, unit_rows

FORMAT = 2
"""Version of the folder's layout. 2 has the digest of every file; readers take 1 too, of which they check the rest."""
CONFIG, VOCABULARY, DF = "corpus.json", "vocabulary.json", "df.npy"
READING, PASSING = "reading", ".passing-beam"
"""Folders of what a build, and one by Beam, hold on the way."""
PLAN = "plan.json"
"""In the first of them, what an unfinished corpus is to be."""
REMEDY = "; build it again in a new folder"
_KINDS = {"ends": "int64", "terms": "int32", "counts": "int32"}
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_MAPPED = 120  # arrays of a corpus, three a shard of a side, where a process may open any number of files


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


def seal(path: Path) -> dict[str, str | int]:
    """What a description says of a file, so that a change of it is seen.

    Args:
      path: the file.

    Returns:
      ``sha256`` and ``bytes``.
    """
    return {"sha256": io.file_digest(path), "bytes": path.stat().st_size}


def expect_seals(files: Any, argument: str, *names: str) -> None:
    """Refuses a list of files that is not one of what `seal` says of each.

    Args:
      files: what stands in a description.
      argument: where it stands.
      names: files that must be in it.

    Raises:
      ValueError: for anything else.
    """
    fits = isinstance(files, dict) and all(isinstance(file, dict) and {"sha256", "bytes"} <= set(file)
                                           for file in files.values())
    checks.expect(fits and set(names) <= set(files), argument, "the digest of every file", files)


def heading(path: Path, dtype: str, told: Mapping[str, str | int] | None, remedy: str = REMEDY) -> tuple[int, int]:
    """Where the values of an array of one axis begin, and how many there are; the file is closed again.

    Args:
      path: a file of NumPy's format.
      dtype: what it holds.
      told: what `seal` said of it, of which the size is compared; None where that is not known.
      remedy: what to do about another file, for messages.

    Returns:
      Bytes before the first value, and the number of values.

    Raises:
      ValueError: for a missing file, another size, a header that is none, and another type or shape.
      OSError: if it cannot be opened.
    """
    checks.expect(path.is_file(), str(path), "a shard's file", "none")
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        checks.expect(told is None or told["bytes"] == size, str(path),
                      f"a whole shard of {told and told['bytes']} bytes",
                      f"a truncated or altered file of {size}{remedy}")
        try:
            version = np.lib.format.read_magic(file)
            shape, _, found = _HEADERS[version](file)
            offset = file.tell()
            values = np.broadcast_to(np.zeros((), found), shape)  # in place of those of the file, which are not read
            if size - offset < values.nbytes:
                raise ValueError(f"{size - offset:,} bytes in place of {values.nbytes:,}")
        except OSError:
            raise
        except Exception as error:  # of every type, as the header is Python
            reason = " ".join(str(error).split())[:200]
            raise ValueError(f"{path}: expected a whole shard, got a truncated or altered file ({reason}){remedy}"
                             ) from error
    checks.array(values, str(path), dtype, (None,))
    return offset, len(values)


def mapped(path: Path, dtype: str, told: Mapping[str, str | int] | None, remedy: str = REMEDY) -> np.ndarray:
    """Maps an array of one axis; its values are not read. It takes a file descriptor for as long as it lives.

    Args:
      path: as for `heading`.
      dtype: as for `heading`.
      told: as for `heading`.
      remedy: as for `heading`.

    Returns:
      The array, read-only.

    Raises:
      ValueError: as `heading`.
      OSError: as `heading`.
    """
    offset, number = heading(path, dtype, told, remedy)
    return np.asarray(np.memmap(path, dtype, "r", offset, (number,)))


def expect_same(path: Path, told: Mapping[str, str | int] | None, remedy: str = REMEDY) -> None:
    """Reads a file once, and refuses another than was written.

    Args:
      path: the file.
      told: what `seal` said of it; None where that is not known.
      remedy: what to do about another file, for messages.

    Raises:
      ValueError: for a missing file, or another digest.
    """
    checks.expect(path.is_file(), str(path), "a file of the corpus", f"none{remedy}")
    whole = told is None or io.file_digest(path) == told.get("sha256")
    checks.expect(whole, str(path), "the file that was written", f"an altered one{remedy}")


class Mappings:
    """The arrays of a corpus that were used last: those of all its shards may be more than the files one can open."""

    def __init__(self):
        """Begins with none."""
        self._most = _most()
        self._arrays: OrderedDict[Path, np.ndarray] = OrderedDict()

    def get(self, path: Path, make: Callable[[], np.ndarray]) -> np.ndarray:
        """An array, made where it is not held; the one that was not used for longest is let go.

        Two threads may make the same array, of which one is held.

        Args:
          path: its file.
          make: maps it.

        Returns:
          The array.
        """
        array = self._arrays.pop(path, None)
        array = make() if array is None else array
        self._arrays[path] = array
        while len(self._arrays) > self._most:
            self._arrays.popitem(last=False)
        return array


def _most() -> int:
    """Arrays of a corpus to hold: each takes a file descriptor, of which a quarter of the process's are taken."""
    try:
        import resource
    except ImportError:  # of Windows, where it takes none
        return _MAPPED
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return _MAPPED if files == resource.RLIM_INFINITY else min(max(files // 4, 3), 25 * _MAPPED)


class Shard:
    """Some documents of one side. Files are mapped while they are used, and looked at once, when they are first used.

    A file that is mapped again is read as a whole again only if another was put in its place, or it was written to.

    Attributes:
      docs: number of documents.
    """

    def __init__(self, folder: Path, number: int, side: int, docs: int, num_terms: int, files: Mapping | None,
                 mappings: Mappings):
        """Compares what can be seen without reading the files, and leaves them closed.

        Args:
          folder: of the corpus.
          number: of the shard, from 0.
          side: of the documents, from 0.
          docs: how many it has.
          num_terms: size of the vocabulary.
          files: what `seal` said of every file; None where that is not known.
          mappings: of the corpus.

        Raises:
          ValueError: as `heading`, and for another number of documents, or of terms than of counts.
          OSError: if a file cannot be opened.
        """
        self.docs, self._num_terms, self._mappings = docs, num_terms, mappings
        self._paths = {what: folder / shard_file(number, side, what) for what in _KINDS}
        self._told = {what: None if files is None else files.get(path.name) for what, path in self._paths.items()}
        self._headings = {what: heading(path, _KINDS[what], self._told[what]) for what, path in self._paths.items()}
        self._seen: dict[str, tuple[int, ...]] = {}  # state of every file that was looked at
        pointers, terms, counts = (number for _, number in self._headings.values())
        first, last = _first_and_last(self._paths["ends"], *self._headings["ends"])
        fits = pointers == docs + 1 and first == 0 and terms == counts == last
        checks.expect(fits, str(self._paths["ends"]), f"{docs} documents and as many terms as counts",
                      f"{pointers - 1} documents, {terms} terms, {counts} counts")

    def seals(self) -> list[str]:
        """SHA-256 of its files as the description has them, without reading them; none where it has none."""
        return [str(told["sha256"]) for told in self._told.values() if told is not None]

    @property
    def ends(self) -> np.ndarray:
        """``[docs + 1]`` int64 row pointers."""
        return self._array("ends")

    @property
    def rows(self) -> tuple[np.ndarray, np.ndarray]:
        """Terms and counts of all documents, one after the other, ``[ends[-1]]`` int32 each."""
        return self._array("terms"), self._array("counts")

    def _array(self, what: str) -> np.ndarray:
        return self._mappings.get(self._paths[what], functools.partial(self._mapped, what))

    def _mapped(self, what: str) -> np.ndarray:
        path, (offset, number) = self._paths[what], self._headings[what]
        with open(path, "rb") as file:
            found = os.fstat(file.fileno())
            state = found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns
            seen = self._seen.get(what) == state
            if not seen:
                expect_same(path, self._told[what])
                same = heading(path, _KINDS[what], self._told[what]) == (offset, number)
                checks.expect(same, str(path), "the file that was there when the corpus was opened", "another")
            array = np.asarray(np.memmap(file, _KINDS[what], "r", offset, (number,)))
        if not seen:
            self._check(what, array)
            self._seen[what] = state
        return array

    def _check(self, what: str, array: np.ndarray) -> None:
        """Refuses values that products cannot walk over."""
        path = str(self._paths[what])
        if what == "ends":
            down = np.flatnonzero(array[1:] < array[:-1])
            checks.expect(not down.size, path, "row pointers that rise", f"a fall after document {down[:1]}")
        elif what == "terms":
            checks.compressed(self.ends, array, self._num_terms, path)
        else:
            least = min((int(array[start : start + 2**20].min()) for start in range(0, len(array), 2**20)), default=1)
            checks.expect(least >= 1, path, "counts of at least 1", least)


def _first_and_last(path: Path, offset: int, number: int) -> tuple[int, int]:
    """The first and the last row pointer; 0 and -1 where there is none."""
    if number == 0:
        return 0, -1
    with open(path, "rb") as file:
        file.seek(offset)
        first = file.read(8)
        file.seek(offset + 8 * (number - 1))
        return int(np.frombuffer(first, np.int64)[0]), int(np.frombuffer(file.read(8), np.int64)[0])


@dataclass(frozen=True, eq=False)
class Documents:
    """One side of a corpus; `weighted` rows are made when they are asked for.

    Attributes:
      vocabulary: of the whole corpus.
      shards: where the rows are; each is looked at when it is first used.
      starts: ``[shards + 1]`` int64, the first document of every shard.
      weigh: function of counts, df and number of documents (`text.log_tf_idf` and its like), or None for counts.
    """

    vocabulary: Vocabulary
    shards: tuple[Shard, ...]
    starts: np.ndarray
    weigh: Callable | None = None

    __repr__ = checks.brief

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
        return np.concatenate([np.diff(shard.ends) for shard in self.shards] or [np.zeros(0, np.int64)])

    def seals(self) -> list[str]:
        """SHA-256 of the files, as the corpus's description has them; empty for a corpus of format 1."""
        return [seal for shard in self.shards for seal in shard.seals()]

    def rows(self, chosen) -> sp.csr_matrix:
        """Documents by number.

        Args:
          chosen: ``[n]`` integers in [0, num_docs), in any order, or a slice; no mask.

        Returns:
          ``[n, num_terms]`` float32 CSR matrix: counts, or with ``weigh`` weighted rows of length one.

        Raises:
          ValueError: for a number out of range, for what is no number of a document, and for a shard that was altered
            (named).
        """
        chosen = np.arange(*chosen.indices(self.num_docs)) if isinstance(chosen, slice) else np.asarray(chosen)
        fits = chosen.ndim == 1 and (chosen.dtype.kind in "iu" or not chosen.size)
        checks.expect(fits, "chosen", "a slice, or whole numbers [n] (of a mask, numpy.flatnonzero)",
                      f"{chosen.dtype}, shape {chosen.shape}")
        numbers = chosen.astype(np.int64)
        wrong = numbers[(numbers < 0) | (numbers >= self.num_docs)]
        checks.expect(not wrong.size, "chosen", f"documents from 0 to {self.num_docs - 1}", wrong[:1].tolist())
        where = np.searchsorted(self.starts, numbers, side="right") - 1
        order = np.argsort(where, kind="stable")  # shard by shard: each is mapped once
        cuts = np.flatnonzero(np.diff(where[order])) + 1
        parts = [self._part(int(where[some[0]]), numbers[some]) for some in np.split(order, cuts) if some.size]
        lengths, terms, counts = zip((np.zeros(0, np.int64), *[np.zeros(0, np.int32)] * 2), *parts, strict=True)
        ends = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
        matrix = sp.csr_matrix((np.concatenate(counts).astype(np.float32), np.concatenate(terms), ends),
                               shape=(numbers.size, self.num_terms))
        if np.any(order[1:] < order[:-1]):
            back = np.empty_like(order)
            back[order] = np.arange(order.size)
            matrix = matrix[back]
        if self.weigh is None:
            return matrix
        return unit_rows(self.weigh(matrix, self.vocabulary.df, self.vocabulary.num_docs)).astype(np.float32)

    def _part(self, number: int, documents: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Lengths, terms and counts of documents of one shard, as copies: of all shards, no views are held."""
        shard, places = self.shards[number], documents - self.starts[number]
        first, last = shard.ends[places], shard.ends[places + 1]
        slots = list(map(slice, first.tolist(), last.tolist()))
        terms, counts = (np.concatenate([array[slot] for slot in slots]) for array in shard.rows)
        return last - first, terms, counts

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

    __repr__ = checks.brief

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
      ValueError: for a folder of another format, an unfinished one, and a file that is missing, truncated or altered
        (named). What opening does not read is compared when it is first used.
      OSError: if it cannot be read.

    Example:
      >>> import tempfile
      >>> from jaxsim.text.corpus_build import build
      >>> with tempfile.TemporaryDirectory() as place:
      ...     corpus = build(place, [("a b", "a c"), ("b b", "c")], min_df=1)
      ...     corpus.vocabulary.terms, corpus.sides[0].rows([1, 0]).toarray().tolist()
      (('b', 'a', 'c'), [[2.0, 0.0, 0.0], [1.0, 1.0, 0.0]])
    """
    folder = Path(folder).absolute()  # shards are mapped later on, when the program may work in another folder
    config = described(folder)
    files, sizes = config.get("files"), config["shard_docs"]
    vocabulary = _vocabulary(folder, config["df_docs"], files)
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    sides, mappings = [], Mappings()
    for side in range(len(config["languages"])):
        shards = tuple(Shard(folder, number, side, docs, len(vocabulary), files, mappings)
                       for number, docs in enumerate(sizes))
        sides.append(Documents(vocabulary, shards, starts))
    return Corpus(vocabulary, tuple(sides), tuple(config["languages"]))


def described(folder: Path) -> dict[str, Any]:
    """What a finished corpus says of itself, checked.

    Args:
      folder: where.

    Returns:
      ``languages``, ``shard_docs``, ``df_docs``, ``plan``, of format 2 ``files``, and ``texts`` (a hash) unless an
      earlier version built it.

    Raises:
      ValueError: for a folder of another format, an unfinished one, and a description that was altered.
      OSError: if it cannot be read.
    """
    path = folder / CONFIG
    checks.expect(path.is_file(), str(folder), f"a finished corpus ({CONFIG})",
                  "an unfinished one (build it again; it goes on)" if (folder / READING / PLAN).is_file() else
                  "an unfinished one (build it again)" if (folder / PASSING).is_dir() else "none")
    config = io.parsed(path.read_bytes(), str(path), REMEDY)
    earlier = isinstance(config, dict) and config.get("format") == 1 and not {"library", "digest"} & set(config)
    if not earlier:
        config = io.unsealed(path, newest=FORMAT, remedy=REMEDY)
        expect_seals(config.get("files"), f"{path}: files", VOCABULARY, DF)
    languages, sizes = config.get("languages"), config.get("shard_docs")
    fits = isinstance(languages, list) and bool(languages) and all(isinstance(one, str) for one in languages)
    checks.expect(fits, f"{path}: languages", "a list of language codes", languages)
    for language in languages:
        with checks.within(str(path)):
            tokens.tokenizer(language)
    checks.expect(isinstance(sizes, list), f"{path}: shard_docs", "a list of numbers", sizes)
    for size in (*sizes, config.get("df_docs")):
        checks.whole(size, f"{path}: shard_docs, df_docs", 0)
    docs = sum(sizes) * len(languages)
    fits = config["df_docs"] == docs < 2**62
    checks.expect(fits, f"{path}: df_docs", f"{docs} (documents of all sides)", config["df_docs"])
    checks.expect(isinstance(config.get("plan"), dict), f"{path}: plan", "the settings it was built with",
                  checks.a_kind(config.get("plan")))
    return config


def _vocabulary(folder: Path, num_docs: int, files: Mapping | None) -> Vocabulary:
    """The terms and their document frequencies, checked."""
    for name in (VOCABULARY, DF):
        expect_same(folder / name, None if files is None else files[name])
    path = folder / VOCABULARY
    terms = io.parsed(path.read_bytes(), str(path), REMEDY)
    fits = isinstance(terms, list) and all(isinstance(term, str) for term in terms)
    checks.expect(fits, str(path), "a list of terms", f"another one{REMEDY}")
    checks.expect(len(set(terms)) == len(terms), str(path), "every term once", f"one more than once{REMEDY}")
    df = np.array(mapped(folder / DF, "int64", None if files is None else files[DF]))
    fits = len(df) == len(terms) and bool(np.all((df >= 0) & (df <= num_docs)))
    checks.expect(fits, str(folder / DF), f"{len(terms)} numbers of documents, from 0 to {num_docs}", "others")
    return Vocabulary(tuple(terms), df, num_docs)
