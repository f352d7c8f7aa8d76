"""Any number of texts into a corpus on disk: in one pass, with bounded memory, on all cores, and resumable.

The pass numbers words as they come and writes shards of counts under these numbers; then the vocabulary is chosen and
the shards are written again, smaller, under its columns. Every shard is complete or absent: after a kill, `build` reads
the texts of finished shards only to check that they are the same, and continues with the first missing shard.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import filelock
import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from jaxsim import checks, io
from jaxsim.text import tokens
from jaxsim.text.corpus import (
    CONFIG,
    DF,
    FORMAT,
    PASSING,
    PLAN,
    READING,
    VOCABULARY,
    Corpus,
    described,
    expect_same,
    expect_seals,
    mapped,
    read,
    seal,
    shard_file,
)
from jaxsim.text.corpus_words import Texts, counted, digest, texts_of

_BATCH = 4_000  # documents that one worker counts at once
_LOCK = "lock"  # in the folder of what is read, which goes when the corpus is done
_NONE = object()  # what a stream without documents gives: None is a document, and a wrong one
_NUMBERS = 2**31 - 1  # of words that the int32 of a shard tells apart
_OTHERS = "; build it in a new folder, or open this one by corpus.read"  # where the texts are others
_PLANS = 1  # version of the plan, which finished corpora of every format have


class _Words:
    """The words met so far: number, collection frequency and document frequency of each that is remembered.

    Numbers rise, and one that is forgotten is not given again: shards on disk have it. Counts are kept by slots, in the
    order of the remembered words: those of before the last forgetting, then the newer ones, whose numbers have no gaps.
    """

    def __init__(self, limit: int):
        self.limit, self.next = limit, 0
        self.numbers: dict[str, int] = {}
        self.kept = np.zeros(0, np.int64)  # numbers that were remembered when words were forgotten last
        self.base = 0  # the next number at that time
        self.frequency = self.df = np.zeros(0, np.int64)

    def add(self, words: Sequence[str]) -> tuple[np.ndarray, list[str]]:
        """Numbers of words, and those that are new, which get the next ones."""
        known = self.numbers
        numbers = np.fromiter(map(known.get, words, itertools.repeat(-1)), np.int32, len(words))
        places = np.flatnonzero(numbers < 0)
        new = [words[place] for place in places]
        checks.expect(self.next + len(new) <= _NUMBERS, "documents", f"at most {_NUMBERS:,} words, where one that was "
                      "forgotten and comes back is another (take a larger max_words or shard_docs)", "more")
        numbers[places] = range(self.next, self.next + len(new))
        known.update(zip(new, numbers[places].tolist(), strict=True))
        self.next += len(new)
        room, slots = len(self.df), len(self.kept) + self.next - self.base
        if slots > room:
            more = np.zeros(max(slots, 2 * room) - room, np.int64)
            self.frequency, self.df = np.concatenate([self.frequency, more]), np.concatenate([self.df, more])
        return numbers, new

    def use(self, numbers: np.ndarray, frequency: np.ndarray, df: np.ndarray) -> None:
        """Counts what a batch or a shard holds, of remembered words; every number stands once."""
        slots = self.slots(numbers)
        self.frequency[slots] += frequency
        self.df[slots] += df

    def slots(self, numbers: np.ndarray) -> np.ndarray:
        """Where the counts of remembered words stand."""
        slots = numbers.astype(np.int64) - self.base + len(self.kept)
        older = numbers < self.base
        slots[older] = np.searchsorted(self.kept, numbers[older])
        return slots

    def remembers(self, numbers: np.ndarray) -> bool:
        """Whether all numbers are those of remembered words."""
        older = numbers[numbers < self.base]
        places = np.searchsorted(self.kept, older)
        return bool(np.all(places < len(self.kept))) and np.array_equal(self.kept[places], older)

    def prune(self) -> None:
        """Forgets the rarest words above the limit, of equals the last ones in the order of words.

        Only before each shard but the first, so that it can be repeated where a build goes on.
        """
        gone = len(self.numbers) - self.limit
        if gone <= 0:
            return
        words = list(self.numbers)
        frequency = self.frequency[: len(words)]
        least = np.partition(frequency, gone)[gone]  # of a word that stays
        stays = frequency > least
        equal = sorted(np.flatnonzero(frequency == least).tolist(), key=words.__getitem__)
        stays[equal[: self.limit - np.count_nonzero(stays)]] = True
        self.kept, self.base = np.fromiter(self.numbers.values(), np.int64, len(words))[stays], self.next
        self.frequency, self.df = frequency[stays], self.df[: len(words)][stays]
        self.numbers = dict(itertools.compress(self.numbers.items(), stays.tolist()))

    def choose(self, drop_top: int, max_terms: int, min_df: int) -> tuple[list[str], np.ndarray, np.ndarray]:
        """Terms as `text.Vocabulary.build` orders them, their numbers and their document frequencies."""
        wanted, size = drop_top + max_terms, len(self.numbers)
        keep = self.df[:size] >= min_df
        if np.count_nonzero(keep) > wanted > 0:  # sort only what can be chosen, with all equals of the last
            found = self.frequency[:size][keep]
            keep &= self.frequency[:size] >= np.partition(found, found.size - wanted)[found.size - wanted]
        ranked = sorted((-frequency, word) for frequency, word in zip(
            self.frequency[:size][keep].tolist(), itertools.compress(self.numbers, keep.tolist()), strict=True))
        terms = [word for _, word in ranked[drop_top : drop_top + max_terms]]
        numbers = np.fromiter((self.numbers[word] for word in terms), np.int64, len(terms))
        return terms, numbers, self.df[self.slots(numbers)]


def _columns(numbers: np.ndarray, ids: np.ndarray) -> np.ndarray:
    """Places of words among the chosen ones, by number; -1 for others."""
    if not numbers.size:
        return np.full(len(ids), -1, np.int32)
    order = np.argsort(numbers)
    ranked = numbers[order].astype(ids.dtype)
    places = np.minimum(np.searchsorted(ranked, ids), numbers.size - 1)
    return np.where(ranked[places] == ids, order[places], -1).astype(np.int32)


def build(
    folder: str | os.PathLike,
    documents: Iterable[str | Sequence[str]],
    *,
    languages: Sequence[str] | None = None,
    drop_top: int = 0,
    max_terms: int = 50_000,
    min_df: int = 2,
    max_words: int = 5_000_000,
    shard_docs: int = 250_000,
    workers: int = 1,
    progress: bool = False,
) -> Corpus:
    """Counts the words of documents into a folder of memory-mapped shards, and opens it.

    Memory holds one shard and every distinct word. Before each shard but the first, all words but the ``max_words``
    most frequent are forgotten (of equals the last ones in the order of words); one that comes back counts from there
    on.

    Args:
      folder: where; a finished corpus of the same settings and texts is opened as it is, an unfinished one goes on.
        The texts are read for this, to compare them; `corpus.read` opens a finished corpus without them. Of corpora
        that were built by earlier versions, only the first document is compared.
      documents: texts, or a tuple of texts (the mates of a pair) a document, no words; the same ones in the same order
        when a corpus is opened or goes on. Empty texts are empty documents.
      languages: code of every side; ``"en"`` for each unless given, as lists of more than two texts need: they may be
        words. Sides are counted over one vocabulary.
      drop_top: most frequent terms to leave out.
      max_terms: terms to keep at most.
      min_df: terms in fewer documents are left out; both sides of a pair count.
      max_words: distinct words that are remembered from one shard to the next, at most.
      shard_docs: documents (pairs) a shard.
      workers: processes that count words, this one among them. Each other loads what the main program imports, so a
        program needs ``if __name__ == "__main__":`` where there are two or more.
      progress: whether to show a bar on a terminal's stderr.

    Returns:
      `Corpus`, with the same vocabulary as `text.Vocabulary.build` and the same counts as `text.counts` on these
      documents as long as no word is forgotten.

    Raises:
      ValueError: for bad settings, no documents, documents of different numbers of texts, a folder of other settings or
        of other texts, or into which another build writes, or a damaged shard.
      OSError: if a file cannot be written; finished shards stay.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as place:
      ...     corpus = build(place, ["one two", "two three", "two"], min_df=1, drop_top=1)
      >>> corpus.vocabulary.terms, corpus.sides[0].num_docs
      (('one', 'three'), 3)
    """
    checks.positive_int(workers, "workers")
    settings = _settings(drop_top=drop_top, max_terms=max_terms, min_df=min_df, max_words=max_words,
                         shard_docs=shard_docs)
    checks.expect(not isinstance(documents, str), "documents", "texts", "one string; a file's name is none of them")
    stream = iter(documents)
    first = next(stream, _NONE)
    checks.expect(first is not _NONE, "documents", "at least one document", "none")
    width, plan = _plan(settings, languages, first)
    folder = Path(folder)
    stream = (_tuple(document, width, place) for place, document in enumerate(itertools.chain([first], stream)))
    if not (folder / CONFIG).is_file():
        with _alone(folder):
            if not (folder / CONFIG).is_file():  # another build may just have ended
                _remove_stale(folder)
                _build(folder, plan, stream, max_words=max_words, workers=workers, progress=progress)
                return read(folder)
    _tidy(folder)
    with tqdm(stream, "comparing", unit=" documents", disable=None if progress else True) as bar:
        return _finished(folder, plan, lambda: texts_of(bar))


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Keeps other builds out of a folder, here or by Beam, which would put their shards among those of this one."""
    reading = folder / READING
    reading.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(reading / _LOCK)
    try:
        io.acquire(lock)
    except filelock.Timeout:
        raise ValueError(f"{folder}: expected no other build into this folder, got one that is running") from None
    try:
        yield
    finally:
        (reading / _LOCK).unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # of a folder in which something was counted
            reading.rmdir()
        lock.release()


def _build(folder: Path, plan: dict[str, Any], stream: Iterator[tuple[str, ...]], *, max_words: int, workers: int,
           progress: bool) -> None:
    """Reads the texts, from where an earlier build got to, and writes the shards."""
    reading = folder / READING
    if (reading / PLAN).is_file():
        found = io.parsed((reading / PLAN).read_bytes(), str(reading / PLAN), _remedy(reading))
        checks.kind(found, str(reading / PLAN), dict)
        checks.expect(found == plan, str(folder), "an unfinished corpus of the same settings and texts",
                      _difference(found, plan))
    else:
        io.write_bytes(reading / PLAN, json.dumps(plan).encode())
    words = _Words(max_words)
    with tqdm(desc="words", unit=" documents", disable=None if progress else True) as bar:
        shards, texts = _read(reading, stream, words, plan["languages"], plan["shard_docs"], workers, bar)
    _finish(folder, reading, words, shards, plan, texts)


def _settings(**settings: int) -> dict[str, int]:
    """The settings of a corpus that are numbers, checked."""
    for name, value in settings.items():
        checks.whole(value, name, 1 if name in ("max_words", "shard_docs") else 0)
    return {name: int(value) for name, value in settings.items()}  # NumPy's numbers are not JSON's


def _plan(settings: dict[str, int], languages: Sequence[str] | None, first: str | Sequence[str]
          ) -> tuple[int, dict[str, Any]]:
    """Texts of a document, and what tells a corpus from others: its settings and the digest of its first document.

    Args:
      settings: of `_settings`.
      languages: code of every side, checked here; ``"en"`` for each where it is None.
      first: the first document.
    """
    told = languages is not None or not isinstance(first, list) or len(first) <= 2
    checks.expect(told, "languages", "a code for every text where documents are lists of more than two", "none")
    width = len(first) if isinstance(first, list | tuple) else 1
    checks.expect(width > 0, "documents", "at least one text in every document", first)
    languages = ["en"] * width if languages is None else languages
    several = not isinstance(languages, str)
    checks.expect(several, "languages", f"a sequence of codes, such as ({languages!r},)", "a string")
    languages = list(languages)
    checks.expect(len(languages) == width, "languages", f"{width} codes (texts of a document)", tuple(languages))
    for language in languages:
        tokens.tokenizer(language)
    return width, {"format": _PLANS, "languages": languages, **settings, "first": digest([_tuple(first, width)])}


def _finished(folder: Path, plan: dict[str, Any], texts: Callable[[], Texts]) -> Corpus:
    """A finished corpus, which has to be one of the same plan and texts; these are read if all else is the same."""
    corpus, told = read(folder), described(folder)
    found, expected = told["plan"], "a corpus of the same settings and texts"
    checks.expect(found == plan, str(folder), expected, _difference(found, plan))
    if "texts" in told:  # earlier versions wrote none
        number, same = sum(told["shard_docs"]), texts()
        checks.expect(same.number == number, str(folder), expected,
                      f"one of {number:,} documents, not {same.number:,}{_OTHERS}")
        checks.expect(_hexadecimal(same) == told["texts"], str(folder), expected, f"one of other texts{_OTHERS}")
    return corpus


def _hexadecimal(texts: Texts) -> str:
    """What a description says of the texts."""
    return f"{texts.hash:032x}"


def _tuple(document: str | Sequence[str], width: int, place: int | None = None, path: str = "") -> tuple[str, ...]:
    texts = tuple(document) if isinstance(document, list | tuple) else (document,)
    if len(texts) != width or not all(isinstance(text, str) for text in texts):  # no message is made where all is well
        where = "" if place is None else f" (document {place + 1}{path and ' of '}{path})"
        checks.expect(False, "documents", f"{width} texts in every document (as in the first)",
                      f"{document!r:.80}{where}")
    return texts


def _difference(found: dict, plan: dict) -> str:
    return ", ".join(f"{name} {found.get(name)}" for name in plan if found.get(name) != plan[name]) + " there"


def _remove_stale(folder: Path) -> None:
    """Removes what processes that were killed left in a corpus's folder, and what a finished one no longer needs.

    Only by whoever holds the folder (`_alone`): others may be at work in it.
    """
    if (folder / CONFIG).is_file():
        shutil.rmtree(folder / READING, ignore_errors=True)
    shutil.rmtree(folder / PASSING, ignore_errors=True)
    _remove_parts(folder)


def _tidy(folder: Path) -> None:
    """`_remove_stale` of a finished corpus, unless a build is at work in its folder, or it cannot be written to."""
    if (folder / READING).is_dir() or (folder / PASSING).is_dir():
        with contextlib.suppress(ValueError, OSError), _alone(folder):
            _remove_stale(folder)
    _remove_parts(folder)


def _remove_parts(folder: Path) -> None:
    """Removes files that killed processes left half written."""
    for inside in (folder, folder / READING):
        for name in {path.name[1:].rsplit(".", 3)[0] for path in inside.glob(".*.part")}:
            io.remove_stale(inside / name)


def _save(path: Path, array: np.ndarray) -> None:
    try:
        with io.placed(path) as file:  # by a name of its own also among machines
            np.save(file, array)
    except OSError as error:  # NumPy's own, of a full disk, names no file
        if error.filename is None:
            raise OSError(f"{path}: expected a disk that takes {array.nbytes:,} bytes, got one that does not "
                          f"({error})") from error
        raise


def _save_rows(folder: Path, number: int, side: int, rows: sp.csr_matrix) -> dict[str, dict]:
    """Writes the rows of a shard; what `corpus.seal` says of the files."""
    arrays = {"ends": rows.indptr.astype(np.int64), "terms": rows.indices.astype(np.int32),
              "counts": rows.data.astype(np.int32)}  # fmt: skip
    paths = [folder / shard_file(number, side, what) for what in arrays]
    for path, array in zip(paths, arrays.values(), strict=True):
        _save(path, array)
    return {path.name: seal(path) for path in paths}


def _remedy(reading: Path) -> str:
    return f"; delete the folder {reading} to begin anew"


def _rows(reading: Path, number: int, side: int, docs: int, num_words: int, files: dict) -> list[np.ndarray]:
    """Row pointers, words and counts of a shard that was written in the pass over the texts, compared and checked."""
    remedy, found = _remedy(reading), []
    for what in ("ends", "terms", "counts"):
        path = reading / shard_file(number, side, what)
        checks.expect(path.name in files, str(reading), f"the digest of {path.name}", f"none{remedy}")
        expect_same(path, files[path.name], remedy)
        found.append(mapped(path, "int64" if what == "ends" else "int32", files[path.name], remedy))
    ends, ids, numbers = found
    fits = len(ends) == docs + 1 and len(ids) == len(numbers)
    checks.expect(fits, str(path), f"{docs} documents, and as many counts as terms", f"others{remedy}")
    checks.compressed(ends, ids, num_words, str(path))
    return found


def _batches(stream: Iterator[tuple[str, ...]], shard_docs: int) -> Iterator[tuple[bool, list]]:
    """Batches of documents, each with whether a shard ends with it."""
    while True:
        left = shard_docs
        while left:
            batch = list(itertools.islice(stream, min(_BATCH, left)))
            left -= len(batch)
            if not batch:
                return
            yield left == 0, batch


def _read(reading: Path, stream: Iterator, words: _Words, languages: Sequence[str], shard_docs: int, workers: int,
          bar) -> tuple[list[int], Texts]:
    """The pass over the texts; number of documents of every shard, and which texts they are."""
    batches, sizes, texts = _batches(stream, shard_docs), [], Texts()
    while (reading / f"{len(sizes):05d}.json").is_file():
        docs, skipped = _skip(reading, len(sizes), batches, shard_docs, words, len(languages), bar)
        sizes.append(docs)
        texts = texts.then(skipped)
    parts, new, digests = [], [], []

    def shard() -> None:
        number, files = len(sizes), {}
        for side in range(len(languages)):
            pieces = [sp.csr_matrix((part[side].data, part[side].indices, part[side].indptr),
                                    shape=(part[side].shape[0], words.next)) for part in parts]
            rows = sp.vstack(pieces, format="csr")
            rows.sort_indices()
            files |= _save_rows(reading, number, side, rows)
        docs = sum(part[0].shape[0] for part in parts)
        # Written last: it says that the shard is whole.
        names = reading / f"{number:05d}.words"
        io.write_bytes(names, json.dumps(new, ensure_ascii=True).encode())
        told = {"library": "jaxsim", "format": _PLANS, "docs": docs, "digests": list(digests),
                "files": {**files, names.name: seal(names)}}
        io.write_bytes(reading / f"{number:05d}.json", io.sealed(told))
        sizes.append(docs)
        for kept in (parts, new, digests):
            kept.clear()

    for last, found in counted(batches, languages, workers):
        if not parts:
            words.prune()
        numbers, unseen = words.add(found.words)
        new.extend(unseen)
        digests.append(found.digest)
        texts = texts.then(found.texts)
        for side in found.sides:
            size = len(found.words)
            words.use(numbers, np.bincount(side.indices, side.data, size).astype(np.int64),
                      np.bincount(side.indices, minlength=size))
        parts.append([sp.csr_matrix((side.data, numbers[side.indices], side.indptr), shape=(side.shape[0], words.next))
                      for side in found.sides])
        bar.update(found.sides[0].shape[0])
        if last:
            shard()
    if parts:
        shard()
    return sizes, texts


def _noted(reading: Path, number: int) -> dict:
    """What stands beside a shard that was written in the pass over the texts, checked."""
    path = reading / f"{number:05d}.json"
    told = io.unsealed(path, newest=_PLANS, remedy=_remedy(reading))
    types = {"docs": int, "digests": list, "files": dict}
    whole = all(isinstance(told.get(name), kind) for name, kind in types.items())
    checks.expect(whole, str(path), f"{', '.join(types)}", f"others{_remedy(reading)}")
    expect_seals(told["files"], str(path))
    return told


def _skip(reading: Path, number: int, batches: Iterator, shard_docs: int, words: _Words, sides: int, bar
          ) -> tuple[int, Texts]:
    """A shard that is there: its words and frequencies are taken from it, its texts only compared."""
    told, names, texts = _noted(reading, number), reading / f"{number:05d}.words", Texts()
    for expected in told["digests"]:
        _, batch = next(batches, (True, []))
        checks.expect(digest(batch) == expected, "documents",
                      f"the texts of shard {number}, counted before into {reading}", "others")
        texts = texts.then(texts_of(batch))
        bar.update(len(batch))
    ended = told["docs"] == shard_docs or next(batches, None) is None  # as the texts did with a smaller shard
    checks.expect(ended, "documents", f"the texts counted before into {reading}, which end with shard {number}", "more")
    checks.expect(names.name in told["files"], str(reading), f"the digest of {names.name}", f"none{_remedy(reading)}")
    expect_same(names, told["files"][names.name], _remedy(reading))
    new = io.parsed(names.read_bytes(), str(names), _remedy(reading))
    checks.expect(all(isinstance(word, str) for word in new), str(names), "words", f"others{_remedy(reading)}")
    words.prune()
    unseen = words.add(new)[1]
    checks.expect(unseen == new, str(names), "words that were not there before", f"others{_remedy(reading)}")
    for side in range(sides):
        _, terms, counts = _rows(reading, number, side, told["docs"], words.next, told["files"])
        numbers, places = np.unique(terms, return_inverse=True)
        checks.expect(words.remembers(numbers), str(reading / shard_file(number, side, "terms")),
                      "words that were remembered", f"others{_remedy(reading)}")
        words.use(numbers, np.bincount(places, counts, len(numbers)).astype(np.int64),
                  np.bincount(places, minlength=len(numbers)))
    return told["docs"], texts


def _finish(folder: Path, reading: Path, words: _Words, sizes: list[int], plan: dict, texts: Texts) -> None:
    """Chooses the vocabulary and writes the shards under its columns."""
    terms, numbers, df = words.choose(plan["drop_top"], plan["max_terms"], plan["min_df"])
    files = {}
    for number, docs in enumerate(sizes):
        told = _noted(reading, number)["files"]
        for side in range(len(plan["languages"])):
            ends, ids, counts = _rows(reading, number, side, docs, words.next, told)
            found = _columns(numbers, ids)
            kept = found >= 0
            inside = np.concatenate([[0], np.cumsum(kept)])[ends]
            rows = sp.csr_matrix((counts[kept], found[kept], inside), shape=(docs, max(len(terms), 1)))
            rows.sort_indices()
            files |= _save_rows(folder, number, side, rows)
    io.write_bytes(folder / VOCABULARY, json.dumps(terms, ensure_ascii=True).encode())
    _save(folder / DF, df)
    files |= {name: seal(folder / name) for name in (VOCABULARY, DF)}
    config = {"library": "jaxsim", "format": FORMAT, "languages": plan["languages"], "shard_docs": sizes,
              "df_docs": sum(sizes) * len(plan["languages"]), "plan": plan, "texts": _hexadecimal(texts),
              "files": files}
    io.write_bytes(folder / CONFIG, io.sealed(config))
    shutil.rmtree(reading, ignore_errors=True)  # what stays the next build removes
