"""The speed row of collections on disk: counting, batches and checkpoints, beside Apache Beam, Grain and Orbax.

Grain and Orbax could take the place of the reader of batches and of the checkpoints: a line says how long either takes,
and the notes what is damaged in silence.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path

import jax
import numpy as np

from experiments.kit.measure import Sheet, installed, race
from jaxsim import data, text
from jaxsim.optim import checkpoints
from jaxsim.text import corpus, corpus_beam, corpus_build

BATCH, FILES = 256, 8
TERABYTE = 1e12


def disk(sizes, cores: int, full: bool) -> Sheet:
    """Docstrings in files, many times over: counted, read in random batches, and a state of three matrices kept."""
    pairs = data.docstrings.load()
    texts = [tuple(" ".join(side.split()) for side in pair) for pair in zip(pairs.left, pairs.right, strict=True)]
    texts = texts if full else texts[:300]
    times = 10 if full else 4
    counts = {"pairs": len(texts), "times": times, "files": FILES}
    sheet = Sheet("disk", cores, full, {"name": "docstrings", "sha256": pairs.sha256, "counts": counts, "groups": {},
                                        "differs": "same"}, {"k": sizes.k, "batch": BATCH})
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        files = [folder / f"part-{number}.tsv" for number in range(FILES)]
        everything = texts * times
        for number, file in enumerate(files):
            lines = everything[number * len(everything) // FILES : (number + 1) * len(everything) // FILES]
            file.write_text("".join(f"{left}\t{right}\n" for left, right in lines), "utf-8")
        _counting(sheet, folder, files, len(everything), cores, sizes.repeats)
        _batches(sheet, folder / "one-0", cores, full)
        _checkpoints(sheet, folder, sizes)
    return sheet


def _counting(sheet: Sheet, folder: Path, files: list[Path], pairs: int, cores: int, repeats: int) -> None:
    """The local pass and Beam's, by one process and, on more cores, by one a core; the same bytes each time."""
    settings = {"shard_docs": max(pairs // 4, 1)}
    size = sum(file.stat().st_size for file in files)
    beam = installed("apache_beam") is not None
    made: dict[str, int] = {}

    def local(name: str, workers: int):
        documents = (document for file in files for document in corpus_beam.lines(str(file)))
        made[name] = made.get(name, -1) + 1
        corpus_build.build(folder / f"{name}-{made[name]}", documents, workers=workers, **settings)

    def piped(name: str, given: list[Path]):
        made[name] = made.get(name, -1) + 1
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            corpus_beam.build(folder / f"{name}-{made[name]}", given, workers=cores, **settings)

    contestants = {"one": lambda: local("one", 1)}
    if cores > 1:
        contestants["several"] = lambda: local("several", cores)
    if beam:
        (folder / "few.tsv").write_text("a b\tb\n" * 9, "utf-8")
        contestants["beam"] = lambda: piped("beam", files)
        contestants["start"] = lambda: piped("start", [folder / "few.tsv"])
    found = race(contestants, repeats=min(repeats, 3), warm_up=False)
    told = {"one": "counting, one process", "several": f"counting, {cores} processes",
            "beam": f"counting, Apache Beam's local runner, {cores} processes"}  # fmt: skip
    whole = {path.name: path.read_bytes() for path in (folder / "one-0").iterdir()}
    start = found.pop("start", None)
    for name, measured in found.items():
        same = {path.name: path.read_bytes() for path in (folder / f"{name}-0").iterdir()} == whole
        if not same:
            raise ArithmeticError(f"disk: {name}: expected the files of the local pass, bit for bit, got others")
        seconds = max(measured.median - (start.median if name == "beam" else 0), 1e-9)
        hours = TERABYTE / (size / seconds) / 3600
        sheet.time(told[name], measured, *(() if name == "one" else (found["one"], "counting, one process")),
                   note=f"{size / 1e6:.1f} MB, {size / seconds / 1e6:.1f} a second"
                        f"{', its start left out' if name == 'beam' else ''}")
        sheet.add(f"{told[name]}: a terabyte at this rate", hours * (1 if name == "one" else cores), "core hours")
    if beam:
        sheet.time("Apache Beam's local runner, 9 lines: its start", start)
    else:
        sheet.missing("Apache Beam", "apache-beam is not installed")


class Batches:
    """Random access to the batches of an epoch, for Grain; each process opens the corpus for itself."""

    def __init__(self, folder: Path, seed: int):
        """A corpus, and the seed of the order of its pairs."""
        self.folder, self.seed, self._opened = folder, seed, None

    def __getstate__(self) -> dict:
        """Without what is mapped from files."""
        return {**self.__dict__, "_opened": None}

    def _open(self):
        if self._opened is None:
            sides = corpus.read(self.folder).weighted(text.log_tf_idf)
            self._opened = sides, np.random.default_rng(self.seed).permutation(sides[0].num_docs)
        return self._opened

    def __len__(self) -> int:
        """Whole batches."""
        return len(self._open()[1]) // BATCH

    def __getitem__(self, number: int) -> list:
        """The rows of both sides of a batch."""
        sides, order = self._open()
        chosen = order[number * BATCH : (number + 1) * BATCH]
        return [side.rows(chosen) for side in sides]


def _batches(sheet: Sheet, folder: Path, cores: int, full: bool) -> None:
    """An epoch of batches by the reader as it is, and by Grain over the same batches."""
    source = Batches(folder, 0)
    pairs = len(source) * BATCH
    grain = installed("grain")
    contestants = {"jaxsim": lambda: [source[number] for number in range(len(source))][-1]}
    if grain is not None:
        from absl import flags

        flags.FLAGS.mark_as_parsed()  # Grain's worker processes ask for flags

        def epoch(threads: int = 0, workers: int = 0):
            options = grain.ReadOptions(num_threads=threads, prefetch_buffer_size=4 if threads else 0)
            batches = grain.MapDataset.source(source).to_iter_dataset(options)
            if workers:
                told = grain.MultiprocessingOptions(num_workers=workers, per_worker_buffer_size=2)
                batches = batches.mp_prefetch(told)
            return list(batches)[-1]

        contestants |= {"Grain, in this thread": epoch, "Grain, 2 threads": lambda: epoch(threads=2),
                        f"Grain, {cores} worker processes": lambda: epoch(workers=cores)}  # fmt: skip
        for ours, theirs in zip(source[3], _resumed(grain, source, 3), strict=True):
            sheet.parity("Grain's batch after going on from three", theirs.toarray(), ours.toarray(), within=0.0)
    times = race(contestants, repeats=3, warm_up=False)
    for name, measured in times.items():
        ours = name == "jaxsim"
        sheet.time(f"an epoch of batches, {name}", measured, *(() if ours else (times["jaxsim"], "jaxsim")),
                   note=f"{pairs / measured.median:,.0f} pairs a second")
    if grain is None:
        sheet.missing("Grain", "grain is not installed")


def _resumed(grain, source: Batches, after: int):
    """The batch that an iterator gives that goes on in the middle of an epoch from the state of another."""
    first = iter(grain.MapDataset.source(source).to_iter_dataset())
    for _ in range(after):
        next(first)
    other = iter(grain.MapDataset.source(source).to_iter_dataset())
    other.set_state(first.get_state())
    return next(other)


def _checkpoints(sheet: Sheet, folder: Path, sizes) -> None:
    """A projection with the two moments of its optimiser, saved over an older one and read back."""
    state = [jax.random.normal(jax.random.key(number), (sizes.num_terms, sizes.k)) for number in range(3)]
    own, other = folder / "own", folder / "orbax"
    own.mkdir()
    contestants = {"jaxsim, save": lambda: checkpoints.save(own, state, {"fingerprint": "a"}),
                   "jaxsim, load": lambda: checkpoints.load(own, state, fingerprint="a")[0]}  # fmt: skip
    orbax = installed("orbax.checkpoint")
    if orbax is not None:
        keeper = orbax.StandardCheckpointer()
        like = jax.tree.map(orbax.utils.to_shape_dtype_struct, state)

        def save():
            keeper.save(other, state, force=True)
            keeper.wait_until_finished()

        contestants |= {"Orbax, save": save, "Orbax, load": lambda: keeper.restore(other, like)}
    times = race(contestants, repeats=5)
    for name, measured in times.items():
        mate = name.replace("Orbax", "jaxsim")
        sheet.time(f"checkpoint, {name}", measured, *(() if name == mate else (times[mate], mate)),
                   note="with digests" if name == mate else "without")
    if orbax is None:
        sheet.missing("Orbax", "orbax-checkpoint is not installed")
        return
    largest = max((path for path in other.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    whole = bytearray(largest.read_bytes())
    silent = 0
    for place in range(10):  # one bit each time
        damaged = bytearray(whole)
        damaged[(2 * place + 1) * len(whole) // 20] ^= 1
        largest.write_bytes(damaged)
        try:
            got = keeper.restore(other, like)
        except Exception:  # of its own types
            continue
        silent += any(not np.array_equal(one, two) for one, two in zip(got, state, strict=True))
    keeper.close()
    sheet.add("Orbax: changed bits of 10 that are read without a word", silent, "bits")
