"""Bring your own pairs, beside what one would use instead: the same pairs, split and cores for every system.

jaxsim (`s2net`, `opca`, bare `log-tfidf`, and `s2net-terms`, the words beside the vectors) against StaticEmbedding of
sentence-transformers trained from scratch by MultipleNegativesRankingLoss, TruncatedSVD of scikit-learn, LsiModel of
gensim and bm25s: quality on test, seconds of training from raw texts, texts encoded a second from raw text, bytes of
the saved model, and the dev score against seconds. Every system's settings are chosen on dev; vectors have one
dimension, 300, or 1,024 in the tables that say so. Expected: S2Net's quality above that of the trained StaticEmbedding,
whose best it reaches sooner, and at least twice its texts a second.

Tables: `docstrings`, summaries and bodies of Python docstrings; `en-es-human`, pages and their human translations;
`nfcorpus`, titles of health pages and abstracts with grades, trained on direct links; `nfcorpus-1024`, the same with
1,024 dimensions. The systems stand in `systems`, a function each that trains with every setting and keeps the best on
dev: `log-tfidf`, bare term weights; `bm25`, which learns nothing; `truncated-svd` and `gensim-lsi`, of the training
texts; `static-embedding`; `opca`, a closed form; `s2net`, from OPCA; `s2net-terms`, S2Net's scores mixed with those of
`log-tfidf`.

    pip install -e '.[peers]'
    JAXSIM_DATA=/path/to/corpora python -m experiments.peers.peers --preset full
    python -m experiments.peers.peers --preset quick --out /tmp/quick

Peers that are not installed are left out and said to be. Time: quick under a minute on two cores; full half an hour to
some hours a table on one core, most of it for the settings of StaticEmbedding and of S2Net.
"""

from __future__ import annotations

import argparse
import sys
import time
from functools import partial
from pathlib import Path

import numpy as np

from experiments.corpora.rankings import TABLES, Data
from experiments.kit import records
from experiments.kit.measure import Sheet, race
from experiments.kit.places import add_out, expect_committed, records_folder
from experiments.kit.run import add_fetch, with_corpora
from experiments.peers.systems import FULL, QUICK, SYSTEMS, WIDE, MissingPeer, Sizes, System, dev_score, s2net_terms
from jaxsim.data import MissingCorpus
from jaxsim.evaluate import significance

QUICK_TABLES = ("docstrings",)
ENCODED = 2000  # texts a measurement of encoding takes


def say(text: str) -> None:
    """A line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def train_all(data: Data, sizes: Sizes, name: str) -> dict[str, System]:
    """Every system that is installed, trained and tuned."""
    found = {}
    for row, make in SYSTEMS.items():
        try:
            found[row] = make(data, sizes)
        except MissingPeer as missing:
            say(f"{name}: {row}: not installed: {missing}")
            continue
        say(f"{name}: {row}: dev {data.metric} {dev_score(data, found[row].scores):.4f}, {found[row].seconds:.1f} s")
    if "s2net" in found:
        found["s2net-terms"] = s2net_terms(data, sizes, found["s2net"], found["log-tfidf"])
    return found


def encoding(data: Data, systems: dict[str, System]) -> dict[str, float]:
    """Texts a second of every system that has vectors, taken in turns on the same texts."""
    texts = [*data.test.right, *data.test.left][:ENCODED]
    runs = {row: lambda encode=system.encode: np.asarray(encode(texts)) for row, system in systems.items()
            if system.encode is not None}
    return {row: len(texts) / times.median for row, times in race(runs, repeats=5).items()}


def sooner(ours: System, theirs: System, metric: str) -> tuple[float, float] | None:
    """Seconds until ours reaches the other's best dev score, and the other's seconds until then."""
    if not ours.curve or not theirs.curve:
        return None
    top = max(theirs.curve, key=lambda point: point[metric])
    reached = [point["seconds"] for point in ours.curve if point[metric] >= top[metric]]
    return (min(reached), top["seconds"]) if reached else None


def sheet(row: str, systems: dict[str, System], rates: dict[str, float], values: dict[str, dict[str, np.ndarray]],
          metric: str, full: bool) -> Sheet:
    """What is measured of one system, and what was expected of it."""
    system, peer = systems[row], systems.get("static-embedding")
    told = Sheet(row, 0, full, {}, {})
    if system.seconds:
        told.add("training from raw texts, chosen settings", system.seconds, "s")
    if row in rates:
        against = rates.get("static-embedding")
        told.add("encode from raw text", rates[row], "texts/s",
                 **({} if against is None else {"ratio": rates[row] / against, "of": "static-embedding"}))
    size = system.size()
    if size is not None:
        told.add("saved model", size / 1e6, "MB")
    if row == "s2net" and peer is not None:
        for one in dict.fromkeys((metric, "mrr")):
            both = values[row][one], values["static-embedding"][one]
            pvalue = significance.paired_t(*both).pvalue if np.any(both[0] != both[1]) else 1.0
            told.expect(f"test {one} less static-embedding's (paired t, p = {pvalue:.1g})",
                        float(both[0].mean() - both[1].mean()), 0.0, at_least=True)
        told.expect("texts/s encoded, of static-embedding's", rates[row] / rates["static-embedding"], 2.0,
                    at_least=True)
        when = sooner(system, peer, metric)
        if when is not None:
            told.add("until static-embedding's best dev score", when[0], "s", ratio=when[0] / when[1],
                     of="static-embedding")
            told.expect("seconds to static-embedding's best dev score, of its own", when[0] / when[1], 1.0)
        elif peer.curve and system.curve:
            told.notes.append("static-embedding's best dev score is not reached")
    return told


def fill(name: str, sizes: Sizes, out: Path, full: bool) -> None:
    """One table: trains, tests, measures, and writes a record of every system."""
    begun = time.perf_counter()
    environment = records.environment()
    data = TABLES[name](sizes.limit)
    loaded = time.perf_counter() - begun
    say(f"{name}: {data.sizes}, {loaded:.0f} s")
    systems = train_all(data, sizes, name)
    rates = encoding(data, systems)
    values, spent = {}, {}
    for row, system in systems.items():
        started = time.perf_counter()
        values[row] = data.test.scores(*system.scores(data.test))
        spent[row] = time.perf_counter() - started
    means = {row: {key: float(one.mean()) for key, one in found.items()} for row, found in values.items()}
    for row, system in systems.items():
        told = sheet(row, systems, rates, values, data.metric, full)
        record = records.new(
            experiment="peers", paper="none", table=name, row=row, config=system.config,
            dataset={"name": data.all.name, "sha256": data.all.sha256, "differs": data.differs,
                     "counts": {**data.all.counts, "split": data.sizes}, "groups": data.groups or {}},
            dev={data.metric: dev_score(data, system.scores), "grid": system.tried}, metrics=means[row],
            curve=system.curve, environment=environment, **told.fields(),
            seconds={"load": loaded, "fit": system.seconds, "evaluate": spent[row]},
        )
        records.write(record, out, per_query=values[row], allow_dirty=not full)
        say(f"{name}: {row}: " + ", ".join(f"{key} {value:.4f}" for key, value in means[row].items()))


def main() -> None:
    """Fills the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--tables", nargs="+", choices=tuple(TABLES), metavar="TABLE",
                        help=f"of {', '.join(TABLES)}; all unless given")
    add_out(parser)
    add_fetch(parser)
    given = parser.parse_args()
    quick = given.preset == "quick"
    out = records_folder(parser, given.out, quick=quick)
    expect_committed(parser, out)
    for name in given.tables or (QUICK_TABLES if quick else tuple(TABLES)):
        try:
            sizes = QUICK if quick else WIDE if name.endswith("-1024") else FULL
            with_corpora(partial(fill, name, sizes, out, not quick), fetch=given.fetch)
        except MissingCorpus as error:
            parser.exit(2, f"{parser.prog}: {error}\n")
    print(out)


if __name__ == "__main__":
    main()
