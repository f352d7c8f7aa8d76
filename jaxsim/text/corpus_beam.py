"""The counting pass of `corpus_build` as an Apache Beam pipeline, for texts in many files and more than one machine.

The folder equals the one that `corpus_build.build` writes from the same texts, bit for bit, as long as that forgets no
word: it has the same shards, vocabulary and digests, so that either opens what the other has finished. The pipeline
runs wherever Beam does (Flink, Spark, Dataflow); every worker has to see the files and the folder under the same paths.

There are three passes, of which only the second reads words: the documents of each file are numbered and hashed; the
words of batches are counted (`corpus_words.count`) and summed up, and the hashes compared; shards are written with the
chosen columns. A shard is assembled by one worker, which holds its counts in memory, and the vocabulary is held by all
of them.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, io
from jaxsim.text import encodings
from jaxsim.text.corpus import CONFIG, DF, FORMAT, PASSING, VOCABULARY, Corpus, read, seal
from jaxsim.text.corpus_build import (
    _BATCH,
    _NONE,
    _alone,
    _finished,
    _hexadecimal,
    _plan,
    _remove_stale,
    _save,
    _save_rows,
    _settings,
    _tuple,
)
from jaxsim.text.corpus_words import Texts, count, texts_of

__all__ = ["build", "lines"]


def lines(path: str) -> Iterator[tuple[str, ...]]:
    r"""The documents of a text file: one a line, with a tab between the texts of a pair.

    Lines are those of `data.streams.lines` without their ends: a byte-order mark is dropped, and a file without line
    feeds is cut at carriage returns. A blank line is an empty text.

    Args:
      path: of a UTF-8 file, not compressed.

    Yields:
      The texts of each line.

    Raises:
      OSError: if the file cannot be opened.
      ValueError: for text that is not UTF-8, and for compressed files and Parquet; names file and line.

    Example:
      >>> import tempfile
      >>> with tempfile.NamedTemporaryFile("wb", suffix=".tsv") as file:
      ...     _ = file.write(b"a dog\tun perro\r\na cat\tun gato\r\n")
      ...     file.flush()
      ...     list(lines(file.name))
      [('a dog', 'un perro'), ('a cat', 'un gato')]
    """
    with open(path, "rb") as file:
        for line in encodings.lines(file, str(path), unpacks=False):
            yield tuple(line.rstrip("\r\n").split("\t"))


def build(
    folder: str | os.PathLike,
    files: Sequence[str | os.PathLike],
    *,
    documents: Callable[[str], Iterable[str | Sequence[str]]] = lines,
    languages: Sequence[str] | None = None,
    drop_top: int = 0,
    max_terms: int = 50_000,
    min_df: int = 2,
    max_words: int = 5_000_000,
    shard_docs: int = 250_000,
    workers: int = 1,
    runner: Any = None,
    options: Any = None,
) -> Corpus:
    """Counts the words of documents in many files into a folder of shards, by Beam, and opens it.

    A file is read by one worker: give at least as many as there are workers. An unfinished folder begins anew.

    Args:
      folder: where; a finished corpus of the same settings and texts is opened as it is, after a pass that compares
        the texts; `corpus.read` opens it without that. One program at a time may build or compare.
      files: paths in the order of their documents; file names count for nothing else.
      documents: function of a path giving its documents, as `corpus_build.build` takes them; of a module, since it is
        called in other processes, and the same each time.
      languages: code of every side; ``"en"`` for each unless given.
      drop_top: most frequent terms to leave out.
      max_terms: terms to keep at most.
      min_df: terms in fewer documents are left out; both sides of a pair count.
      max_words: distinct words there may be; `corpus_build.build` may forget some where there are more.
      shard_docs: documents (pairs) a shard.
      workers: processes on this machine, of Beam's local runner; ignored where ``runner`` is given.
      runner: name of a Beam runner, or one of its objects.
      options: ``PipelineOptions`` of that runner.

    Returns:
      `Corpus`.

    Raises:
      ValueError: for bad settings, no documents, documents of different numbers of texts, more distinct words than
        ``max_words``, a file that changes meanwhile, a finished folder of other settings or texts, or one into which
        another build writes.
      ImportError: if Beam is missing; the message says how to install it.
      OSError: if a file cannot be read or written.

    Example:
      >>> corpus = build("corpus", ["part-0.tsv", "part-1.tsv"], workers=4)  # doctest: +SKIP
    """
    beam = _beam()
    checks.positive_int(workers, "workers")
    settings = _settings(drop_top=drop_top, max_terms=max_terms, min_df=min_df, max_words=max_words,
                         shard_docs=shard_docs)
    checks.expect(not isinstance(files, str | bytes | os.PathLike), "files", "a list of paths", "one path")
    paths = [os.fspath(path) for path in files]
    first = next(itertools.chain.from_iterable(map(documents, paths)), _NONE)
    checks.expect(first is not _NONE, "files", "at least one document", "none")
    width, plan = _plan(settings, languages, first)
    folder = Path(folder)
    runner, options = (runner, options) if runner is not None else _local(workers)
    passing = folder / PASSING
    refused = passing / "refused.json"

    @contextlib.contextmanager
    def piped():
        refused.unlink(missing_ok=True)
        with _refusals(refused), beam.Pipeline(runner=runner, options=options) as pipeline:
            yield pipeline

    def numbered() -> list[Texts]:
        """Which texts every file has, and so how many documents."""
        passing.mkdir(parents=True, exist_ok=True)
        numbers = passing / "numbers.json"
        with piped() as pipeline:
            _ = (pipeline | "files" >> beam.Create(list(enumerate(paths)))
                 | "apart" >> beam.Reshuffle()
                 | "number" >> beam.Map(_number, documents=documents, width=width, refused=os.fspath(refused))
                 | "numbers" >> beam.combiners.ToList()
                 | "keep numbers" >> beam.Map(_keep, path=os.fspath(numbers)))  # fmt: skip
        return [Texts(*found) for _, *found in sorted(json.loads(numbers.read_text()))]

    def together(parts: Iterable[Texts]) -> Texts:
        return functools.reduce(Texts.then, parts, Texts())

    with _alone(folder), _removed(folder):
        if (folder / CONFIG).is_file():
            return _finished(folder, plan, lambda: together(numbered()))
        found = numbered()
        sizes = [texts.number for texts in found]
        starts = np.cumsum([0, *sizes]).tolist()
        chosen = passing / "chosen.json"
        told = passing / "told.json"
        with piped() as pipeline:
            counted = (pipeline | "files" >> beam.Create(list(zip(paths, starts[:-1], map(_coded, found), strict=True)))
                       | "apart" >> beam.Reshuffle()
                       | "count" >> beam.FlatMap(_count, documents=documents, languages=plan["languages"],
                                                 width=width, shard_docs=shard_docs,
                                                 refused=os.fspath(refused)))  # fmt: skip
            words = (counted | "words" >> beam.FlatMap(_words)
                     | "sums" >> beam.CombinePerKey(_sums))  # fmt: skip
            vocabulary = (pipeline | "once" >> beam.Create([None])
                          | "choose" >> beam.Map(_choose, words=beam.pvalue.AsIter(words), path=os.fspath(chosen),
                                                 settings=settings, refused=os.fspath(refused)))  # fmt: skip
            _ = (counted | "shards" >> beam.GroupByKey()
                 | "write" >> beam.Map(_shard, terms=beam.pvalue.AsSingleton(vocabulary), folder=os.fspath(folder))
                 | "seals" >> beam.combiners.ToList()
                 | "keep seals" >> beam.Map(_keep, path=os.fspath(told)))  # fmt: skip
        if (folder / CONFIG).is_file():  # of another machine, on a file system without locks
            return _finished(folder, plan, lambda: together(found))
        _finish(folder, plan, chosen, sorted(json.loads(told.read_text())), together(found))
    return read(folder)


def _local(workers: int):
    """Beam's own runner on this machine, in this process or in several."""
    from apache_beam.options.pipeline_options import PipelineOptions
    from apache_beam.runners.portability.fn_api_runner import FnApiRunner

    mode = "multi_processing" if workers > 1 else "in_memory"
    return FnApiRunner(), PipelineOptions(["--direct_running_mode", mode, "--direct_num_workers", str(workers)])


@contextlib.contextmanager
def _removed(folder: Path) -> Iterator[None]:
    """Leaves nothing of what a build holds on the way, this one or one that was killed: unfinished ones begin anew."""
    _remove_stale(folder)
    try:
        yield
    finally:
        _remove_stale(folder)


@contextlib.contextmanager
def _refusing(refused: str) -> Iterator[None]:
    """In a worker: keeps what is refused in a file, since runners raise errors of their own."""
    try:
        yield
    except (ValueError, OSError) as error:
        _keep([isinstance(error, OSError), str(error)], refused)
        raise


@contextlib.contextmanager
def _refusals(refused: Path) -> Iterator[None]:
    """Raises what a worker refused in place of the runner's error."""
    try:
        yield
    except Exception:
        if not refused.is_file():
            raise
        system, message = json.loads(refused.read_text())
    else:
        return
    raise (OSError if system else ValueError)(message)


def _number(numbered: tuple[int, str], documents: Callable, width: int, refused: str) -> tuple[int, int, int]:
    """Number of a file, and `Texts` of its documents."""
    number, path = numbered
    with _refusing(refused):
        return number, *texts_of(_tuple(document, width, place, path) for place, document in enumerate(documents(path)))


def _keep(found: Any, path: str) -> None:
    io.write_bytes(Path(path), json.dumps(found).encode())


def _coded(texts: Texts) -> tuple[int, str]:
    """Texts as Beam can hand them on, which takes no whole numbers of more than 64 bits."""
    return texts.number, _hexadecimal(texts)


def _count(file: tuple[str, int, tuple[int, str]], documents: Callable, languages: Sequence[str], width: int,
           shard_docs: int, refused: str):
    """Batches of a file, none over two shards: number of the shard, first document, words, counts.

    Whoever reads the file compares its texts with those of the first pass, so that no other ones are ever counted to
    the end, however often a runner tries.
    """
    path, start, numbered = file
    texts = Texts()
    stream = (_tuple(document, width, place, path) for place, document in enumerate(documents(path)))
    while True:
        with _refusing(refused):
            batch = list(itertools.islice(stream, min(_BATCH, shard_docs - start % shard_docs)))
        if not batch:
            break
        found = count(batch, languages)
        texts = texts.then(found.texts)
        sides = [(side.indptr, side.indices, side.data) for side in found.sides]
        yield start // shard_docs, (start, found.words, sides)
        start += len(batch)
    with _refusing(refused):
        checks.expect(_coded(texts) == tuple(numbered), path,
                      f"the {numbered[0]:,} documents that were numbered before",
                      f"{texts.number:,}, of other texts; leave the file as it is while it is read")


def _words(counted) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each word of a batch, with how often it occurs and in how many texts."""
    _, (_, words, sides) = counted
    frequency, df = np.zeros((2, len(words)), np.int64)
    for _, indices, data in sides:
        frequency += np.bincount(indices, data, len(words)).astype(np.int64)
        df += np.bincount(indices, minlength=len(words))
    yield from zip(words, zip(frequency.tolist(), df.tolist(), strict=True), strict=True)


def _sums(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    frequency = df = 0
    for one, other in pairs:
        frequency, df = frequency + one, df + other
    return frequency, df


def _choose(_, words: Iterable[tuple[str, tuple[int, int]]], path: str, settings: dict[str, int], refused: str
            ) -> list[str]:
    """Terms as `text.Vocabulary.build` orders them; their document frequencies go to a file."""
    ranked, number = [], 0
    for word, (frequency, df) in words:
        number += 1
        if df >= settings["min_df"]:
            ranked.append((-frequency, word, df))
    with _refusing(refused):
        checks.expect(number <= settings["max_words"], "max_words", f"at least {number:,} (distinct words)",
                      settings["max_words"])
    found = sorted(ranked)[settings["drop_top"] :][: settings["max_terms"]]
    terms = [word for _, word, _ in found]
    _keep([terms, [df for *_, df in found]], path)
    return terms


def _shard(shard: tuple[int, Iterable], terms: list[str], folder: str) -> tuple[int, int, dict]:
    """Writes a shard: its number, how many documents it has, and what `corpus.seal` says of its files."""
    number, batches = shard
    columns = {word: column for column, word in enumerate(terms)}
    pieces: list[list[sp.csr_matrix]] = []
    for _, words, sides in sorted(batches, key=lambda batch: batch[0]):
        places = np.fromiter((columns.get(word, -1) for word in words), np.int32, len(words))
        pieces.append([])
        for ends, indices, data in sides:
            found = places[indices]
            kept = found >= 0
            inside = np.concatenate([[0], np.cumsum(kept)])[ends]
            pieces[-1].append(sp.csr_matrix((data[kept], found[kept], inside),
                                            shape=(len(ends) - 1, max(len(terms), 1))))
    files: dict[str, dict] = {}
    for side in range(len(pieces[0])):
        rows = sp.vstack([piece[side] for piece in pieces], format="csr")
        rows.sort_indices()
        files |= _save_rows(Path(folder), number, side, rows)
    return number, rows.shape[0], files


def _finish(folder: Path, plan: dict, chosen: Path, shards: list, texts: Texts) -> None:
    """Writes what stands beside the shards, the description last."""
    terms, df = json.loads(chosen.read_text())
    files: dict[str, dict] = {}
    for *_, told in shards:
        files |= told
    io.write_bytes(folder / VOCABULARY, json.dumps(terms, ensure_ascii=True).encode())
    _save(folder / DF, np.array(df, np.int64))
    files |= {name: seal(folder / name) for name in (VOCABULARY, DF)}
    sizes = [docs for _, docs, _ in shards]
    checks.expect(sum(sizes) == texts.number, str(folder), f"shards of {texts.number:,} documents", f"{sum(sizes):,}")
    config = {"library": "jaxsim", "format": FORMAT, "languages": plan["languages"], "shard_docs": sizes,
              "df_docs": sum(sizes) * len(plan["languages"]), "plan": plan, "texts": _hexadecimal(texts),
              "files": files}
    io.write_bytes(folder / CONFIG, io.sealed(config))


def _beam():
    try:
        import apache_beam
    except ImportError as error:
        raise ImportError(
            "corpus_beam: expected the package apache-beam, got none; install it with: pip install 'jaxsim-text[beam]'"
        ) from error
    return apache_beam
