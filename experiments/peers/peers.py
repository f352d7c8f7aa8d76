"""Bring your own pairs, beside what one would use instead: the same pairs, split and cores for every system.

jaxsim (`s2net`, `opca`, bare `log-tfidf`, and `s2net-terms`, the words beside the vectors) against StaticEmbedding of
sentence-transformers trained from scratch by MultipleNegativesRankingLoss, TruncatedSVD of scikit-learn, LsiModel of
gensim and bm25s: quality on test, seconds of training from raw texts, texts encoded a second from raw text, bytes of
the saved model, and the dev score against seconds. Every system's settings are chosen on dev, one step at a time until
no step is better; what is random is trained with five seeds, and its seconds are their median (programs are compiled by
then: the first training of a process takes some seconds more). Vectors have one dimension, 300, or 1,024 in the tables
that say so. Mates are asked both ways; a table beside it has each way, since BM25 is made for short queries. Expected:
S2Net's quality above that of the trained StaticEmbedding, whose best it reaches sooner, and at least twice its texts a
second.

Tables: `docstrings`, summaries and bodies of Python docstrings; `en-es-human`, pages and their human translations;
`nfcorpus`, titles of health pages and abstracts with grades, trained on direct links (its authors' split, in which a
few titles have a near-duplicate in another part); `nfcorpus-1024`, the same with 1,024 dimensions. The systems stand in
`systems`, a function each: `log-tfidf`, bare term weights; `bm25`, which learns nothing, with stems and stop words
where dev likes them; `truncated-svd` and `gensim-lsi`, of the training texts; `static-embedding`, whose rate, batch and
scale of the loss are chosen; `opca`, a closed form; `s2net`, from OPCA or from random numbers, and distilled to scores
that count the bare terms too where dev likes that (`start` and `distill` in its settings say so); `s2net-trigrams`, the
same loss over letter trigrams alone, the input of DSSM (Huang et al., 2013), whose layers are not built; `s2net-terms`,
S2Net's scores mixed with those of `log-tfidf`. All that is trained in steps stops by the same dev score, on NFCorpus
that of the judged queries.

    pip install -e '.[peers]'
    JAXSIM_DATA=/path/to/corpora python -m experiments.peers.peers --preset full
    python -m experiments.peers.peers --preset quick --out /tmp/quick

**Records of 23 November 2026 are older than this** (`en-es-human`, `nfcorpus-1024`): full grids, one training, and for
StaticEmbedding the library's scale of the loss, 20, and rates and batches at an edge; it is better than they show. BM25
had neither stems nor stop words. The record of `docstrings` is from 27 November, before S2Net could start from random
numbers here and before OPCA's noise had steps of 3.

Peers that are not installed are left out and said to be. Time: quick under a minute on two cores; full half an hour to
some hours a table on one core, most of it for the settings of StaticEmbedding and of S2Net; with `--cache` a run that
was cut off goes on with the settings that it has tried.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from experiments.corpora.rankings import TABLES, Data, Ranking
from experiments.kit import compared, records
from experiments.kit.measure import Sheet, race
from experiments.kit.places import add_out, expect_committed, records_folder
from experiments.kit.run import add_fetch, with_corpora
from experiments.peers.systems import FULL, QUICK, SYSTEMS, WIDE, Bench, MissingPeer, Sizes, System, Tuned, dev_score
from jaxsim.data import MissingCorpus

QUICK_TABLES = ("docstrings",)
ENCODED = 2000  # texts a measurement of encoding takes


def say(text: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def train_all(bench: Bench, name: str) -> dict[str, Tuned]:
    """Every system that is installed, tuned and trained."""
    for row, make in SYSTEMS.items():
        try:
            bench.found[row] = make(bench)
        except MissingPeer as missing:
            say(f"{name}: {row}: not installed: {missing}")
            continue
        first = bench.found[row].first
        say(f"{name}: {row}: dev {bench.data.metric} {dev_score(bench.data, first.scores):.4f}, {first.seconds:.1f} s")
    return bench.found


def encoding(data: Data, systems: dict[str, Tuned]) -> dict[str, float]:
    """Texts a second of every system that has vectors, taken in turns on the same texts."""
    texts = [*data.test.right, *data.test.left][:ENCODED]
    runs = {row: lambda encode=system.first.encode: np.asarray(encode(texts)) for row, system in systems.items()
            if system.first.encode is not None}
    return {row: len(texts) / times.median for row, times in race(runs, repeats=5).items()}


def sooner(ours: System, theirs: System, metric: str) -> tuple[float, float] | None:
    """Seconds until ours reaches the other's best dev score, and the other's seconds until then."""
    if not ours.curve or not theirs.curve:
        return None
    top = max(theirs.curve, key=lambda point: point[metric])
    reached = [point["seconds"] for point in ours.curve if point[metric] >= top[metric]]
    return (min(reached), top["seconds"]) if reached else None


def sheet(row: str, systems: dict[str, Tuned], rates: dict[str, float], metric: str, full: bool) -> Sheet:
    """What is measured of one system, and what was expected of it."""
    system, peer = systems[row].first, systems.get("static-embedding")
    told = Sheet(row, 0, full, {}, {})
    if system.seconds:
        seconds = statistics.median(run.seconds for run in systems[row].runs)
        told.add("training from raw texts, chosen settings", seconds, "s")
    if row in rates:
        against = rates.get("static-embedding")
        told.add("encode from raw text", rates[row], "texts/s",
                 **({} if against is None else {"ratio": rates[row] / against, "of": "static-embedding"}))
    size = system.size()
    if size is not None:
        told.add("saved model", size / 1e6, "MB")
    if system.told.get("epochs", 0) == system.told.get("most_epochs"):
        told.notes.append("cap-reached: the last epoch that was allowed")
    if row == "s2net" and peer is not None:
        told.expect("texts/s encoded, of static-embedding's", rates[row] / rates["static-embedding"], 2.0,
                    at_least=True)
        when = sooner(system, peer.first, metric)
        if when is not None:
            told.add("until static-embedding's best dev score", when[0], "s", ratio=when[0] / when[1],
                     of="static-embedding")
            told.expect("seconds to static-embedding's best dev score, of its own", when[0] / when[1], 1.0)
        elif peer.first.curve and system.curve:
            told.notes.append("static-embedding's best dev score is not reached")
    return told


def expectations(row: str, systems: Collection[str], metric: str) -> list[dict]:
    """The quality that was expected of a system beside another's; the report compares their records."""
    if row != "s2net" or "static-embedding" not in systems:
        return []
    return [compared(row, "static-embedding", one, at_least=0.0) for one in dict.fromkeys((metric, "mrr"))]


class Tested(NamedTuple):
    """Test values of a system.

    Attributes:
      values: metric -> one value a query, means over seeds.
      means: metric -> one mean a seed.
      by_way: of mates: the side that asks -> metric -> one mean a seed.
      seconds: that the test took.
    """

    values: dict[str, np.ndarray]
    means: dict[str, list[float]]
    by_way: dict[str, dict[str, list[float]]]
    seconds: float


def test(ranking: Ranking, runs: Sequence[System]) -> Tested:
    """The test values of all runs of a system."""
    begun = time.perf_counter()
    ways = [run.scores(ranking) for run in runs]
    seeds = [ranking.scores(*both) for both in ways]
    sides = {} if ranking.grades is not None else {
        "left texts as queries": [ranking.scores(forward) for forward, _ in ways],
        "right texts as queries": [ranking.scores(backward) for _, backward in ways]}
    return Tested({name: np.mean([seed[name] for seed in seeds], axis=0) for name in seeds[0]}, _means(seeds),
                  {side: _means(found) for side, found in sides.items()}, time.perf_counter() - begun)


def _means(seeds: Sequence[dict[str, np.ndarray]]) -> dict[str, list[float]]:
    return {name: [float(np.mean(seed[name])) for seed in seeds] for name in seeds[0]}


def fill(name: str, sizes: Sizes, out: Path, cache: Path | None, full: bool) -> None:
    """One table: trains, tests, measures, and writes a record of every system."""
    begun = time.perf_counter()
    environment = records.environment()
    data = TABLES[name](sizes.limit)
    loaded = time.perf_counter() - begun
    say(f"{name}: {data.sizes}, {loaded:.0f} s")
    made_by = f"{environment['commits']} {environment['dirty']} {data.all.sha256} {sizes}"
    bench = Bench(data, sizes, cache and cache / f"peers-{name}.json", made_by, lambda line: say(f"{name}: {line}"))
    systems = train_all(bench, name)
    rates = encoding(data, systems)
    tested = {row: test(data.test, system.runs) for row, system in systems.items()}
    for row, system in systems.items():
        told, found, runs = sheet(row, systems, rates, data.metric, full), tested[row], system.runs
        expected = expectations(row, systems, data.metric) if full else []
        record = records.new(
            experiment="peers", paper="none", table=name, row=row, config=system.first.config,
            dataset={"name": data.all.name, "sha256": data.all.sha256, "differs": data.differs,
                     "counts": {**data.all.counts, "split": data.sizes}, "groups": data.groups or {}},
            dev={data.metric: dev_score(data, system.first.scores), "grid": system.tried}, metrics=found.means,
            seeds=range(len(runs)) if len(runs) > 1 else (), curve=system.first.curve, environment=environment,
            seconds={"load": loaded, "fit": statistics.median(run.seconds for run in runs), "evaluate": found.seconds},
            **({"metrics_by_group": found.by_way} if found.by_way else {}), **told.fields(),
            **({"comparisons": expected} if expected else {}),
        )
        records.write(record, out, per_query=found.values, allow_dirty=not full)
        shown = (f"{key} {np.mean(values):.4f}" for key, values in found.means.items())
        say(f"{name}: {row}: {', '.join(shown)}")


def main() -> None:
    """Fills the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), metavar="TABLE",
                        help=f"of {', '.join(TABLES)}; all unless given")
    add_out(parser)
    parser.add_argument("--cache", type=Path, help="folder that keeps the dev scores of settings, so that a run that "
                        "was cut off goes on; none unless given")
    add_fetch(parser)
    given = parser.parse_args()
    quick = given.preset == "quick"
    out = records_folder(parser, given.out, quick=quick)
    expect_committed(parser, out)
    for name in given.tables or (QUICK_TABLES if quick else tuple(TABLES)):
        try:
            sizes = QUICK if quick else WIDE if name.endswith("-1024") else FULL
            with_corpora(partial(fill, name, sizes, out, given.cache, not quick), fetch=given.fetch)
        except MissingCorpus as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
    print(out)


if __name__ == "__main__":
    main()
