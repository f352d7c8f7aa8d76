"""A collection larger than one wants in memory: time and peak memory from a file of pairs to a trained projection.

A generated file (synthetic: words by Zipf's law, mates share half of their words) is counted into a corpus on disk,
S2Net trains on it by minibatches for one epoch, and every document is encoded, each step in a process of its own so
that its peak memory is its own. The rate of counting stands beside CountVectorizer of scikit-learn on the same texts
and cores. Expected: 5 million lines counted, trained on and encoded within 2 GB, counting at 1.5 times its rate.

    python -m experiments.scale.big_corpus --preset full
    python -m experiments.scale.big_corpus --preset quick --out /tmp/quick

Time: quick under a minute on two cores; full about a quarter of an hour, and 4 GB of disk.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from experiments.corpora.synthetic import synthetic
from experiments.kit.measure import Sheet
from experiments.kit.places import add_out, expect_committed, records_folder

LINES = {"full": 5_000_000, "quick": 20_000}
SAMPLE = {"full": 1_000_000, "quick": 5_000}  # lines that both counters are timed on
TYPES, SIDE, SHARED, DIM, BATCH = 300_000, 8, 4, 100, 1024
GIGABYTES, RATE = 2.0, 1.5


def generate(path: Path, lines: int) -> None:
    """Writes lines of two texts with a tab between."""
    rng = np.random.default_rng(0)
    words = np.array([f"w{i:x}" for i in range(TYPES)], dtype=object)
    cumulative = np.cumsum(1.0 / (10 + np.arange(TYPES)))
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, lines, 50_000):
            size = min(50_000, lines - start)
            drawn = np.searchsorted(cumulative, rng.random((size, 2 * SIDE - SHARED)) * cumulative[-1])
            left, right = words[drawn[:, :SIDE]], words[drawn[:, SIDE - SHARED :]]
            mates = zip(left.tolist(), right.tolist(), strict=True)
            file.writelines(f"{' '.join(a)}\t{' '.join(b)}\n" for a, b in mates)


def read(path: Path):
    """The pairs of a file, one after the other."""
    with path.open(encoding="utf-8") as file:
        for line in file:
            yield tuple(line.rstrip("\n").split("\t"))


def cores() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def count(folder: Path, settings: dict) -> dict:
    """Counts the words of all lines into a corpus."""
    from jaxsim.text.corpus_build import build

    corpus = build(folder / "corpus", read(folder / "pairs.tsv"), workers=cores(), progress=True)
    return {"terms": len(corpus.vocabulary), "pairs": corpus.sides[0].num_docs}


def train(folder: Path, settings: dict) -> dict:
    """One epoch of S2Net by minibatches, from random numbers."""
    import jax

    from jaxsim import text
    from jaxsim.methods import s2net_sgd
    from jaxsim.methods.s2net.exact import random_init
    from jaxsim.text import corpus

    sides = corpus.read(folder / "corpus").weighted(text.log_tf_idf)
    start = random_init(sides[0].num_terms, DIM, key=jax.random.key(0))
    fit = s2net_sgd.fit(*sides, init=start, key=jax.random.key(1), batch_size=BATCH, max_iter=1)
    np.save(folder / "weights.npy", fit.params.weights)
    return {"loss": fit.history[-1]["loss"], "steps": fit.evaluations}


def encode(folder: Path, settings: dict) -> dict:
    """Every left document projected, batch by batch, into a file."""
    import jax.numpy as jnp

    from jaxsim import sparse, text
    from jaxsim.methods import projections
    from jaxsim.text import corpus

    side = corpus.read(folder / "corpus").weighted(text.log_tf_idf)[0]
    weights = projections.Projection(jnp.asarray(np.load(folder / "weights.npy")))
    size = 8192
    slots = int(np.sort(side.lengths())[-size:].sum())
    out = np.lib.format.open_memmap(folder / "vectors.npy", "w+", np.float16, (side.num_docs, DIM))
    for number, rows in enumerate(side.batches(size)):
        documents = sparse.from_scipy(rows, pad_docs=size, pad_nnz=slots)
        found = np.asarray(projections.encode(weights, documents).dense[: rows.shape[0]])
        out[number * size :][: len(found)] = found
    return {"documents": side.num_docs}


def rates(folder: Path, settings: dict) -> dict:
    """Texts a second of both counters, in turns, on the first lines."""
    from sklearn.feature_extraction.text import CountVectorizer

    from experiments.kit.measure import race
    from jaxsim.text.corpus_build import build

    some = list(itertools.islice(read(folder / "pairs.tsv"), settings["sample"]))
    flat = list(itertools.chain.from_iterable(some))
    numbers = itertools.count()

    def ours(workers: int):
        return build(folder / f"sample-{next(numbers)}", some, workers=workers)

    contestants = {"jaxsim": lambda: ours(cores()), "jaxsim, one process": lambda: ours(1),
                   "CountVectorizer": lambda: CountVectorizer(token_pattern=r"\w+").fit_transform(flat)}
    return {name: len(flat) / times.median for name, times in race(contestants, repeats=3).items()}


STEPS = {"count": count, "train": train, "encode": encode, "rates": rates}


def step(name: str, folder: Path, settings: dict) -> tuple[dict, float, float]:
    """One step in a process of its own: what it tells, its seconds, and its peak memory in GB.

    Raises:
      RuntimeError: if it failed.
    """
    begun = time.perf_counter()
    told = folder / f"{name}.json"
    program = subprocess.Popen([sys.executable, "-m", "experiments.scale.big_corpus", "--step", name,
                                "--folder", folder,
                                "--settings", json.dumps(settings)], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(program.pid, 0)
    program.returncode = os.waitstatus_to_exitcode(status)
    if program.returncode:
        raise RuntimeError(f"{name}: expected exit code 0, got {program.returncode}")
    memory = used.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
    print(f"{name}: {time.perf_counter() - begun:.0f} s, {memory:.2f} GB", file=sys.stderr, flush=True)
    return json.loads(told.read_text()), time.perf_counter() - begun, memory


def measure(preset: str, out: Path) -> None:
    """All steps; writes the record."""
    from experiments.kit import records

    environment, full, begun = records.environment(), preset == "full", time.perf_counter()
    sheet = Sheet("corpus", cores(), full, {}, {})
    lines, settings = LINES[preset], {"sample": SAMPLE[preset]}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder / "pairs.tsv", lines)
        size = (folder / "pairs.tsv").stat().st_size
        counted, *counting = step("count", folder, settings)
        trained, *training = step("train", folder, settings)
        encoded, *encoding = step("encode", folder, settings)
        found, _, _ = step("rates", folder, settings)
        disk = sum(path.stat().st_size for path in (folder / "corpus").iterdir())
    for what, (seconds, memory), number, unit in (
            ("counting words into a corpus", counting, lines, "lines/s"),
            ("an epoch of S2Net by minibatches", training, counted["pairs"], "pairs/s"),
            ("encoding", encoding, encoded["documents"], "documents/s")):
        sheet.add(what, seconds, "s", note=f"{number / seconds:,.0f} {unit}, start of the process included")
        sheet.add(f"{what}: peak resident memory", memory, "GB", note="of the largest process")
        sheet.expect(f"GB, {what}", memory, GIGABYTES)
    sheet.add("file of pairs", size / 1e9, "GB")
    sheet.add("corpus on disk", disk / 1e9, "GB")
    for what, rate in found.items():
        sheet.add(f"texts counted a second, {what}", rate, "texts/s", ratio=rate / found["CountVectorizer"],
                  of="CountVectorizer")
    sheet.expect("texts counted a second, of CountVectorizer's", found["jaxsim"] / found["CountVectorizer"], RATE,
                 at_least=True)
    record = records.new(
        experiment="big_corpus", paper="none", table="generated", row=sheet.row,
        config={"lines": lines, "k": DIM, "batch_size": BATCH, "cores": sheet.cores, "terms": counted["terms"],
                "loss": trained["loss"], "batches": trained["steps"]},
        dataset=synthetic("pairs of texts by Zipf's law", lines=lines, words_a_text=SIDE, words_in_common=SHARED,
                          distinct_words=TYPES),
        metrics={}, environment=environment, **sheet.fields(),
        seconds={"evaluate": time.perf_counter() - begun},
    )
    records.write(record, out, allow_dirty=not full)
    sheet.tell(f"{lines:,} lines")


def main() -> None:
    """Measures, or does one step of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(LINES), default="quick")
    add_out(parser)
    for hidden in ("--step", "--folder", "--settings"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.step:
        folder = Path(given.folder)
        (folder / f"{given.step}.json").write_text(json.dumps(STEPS[given.step](folder, json.loads(given.settings))))
        return

    quick = given.preset == "quick"
    out = records_folder(parser, given.out, quick=quick)
    expect_committed(parser, out)
    measure(given.preset, out)
    print(out)


if __name__ == "__main__":
    main()
