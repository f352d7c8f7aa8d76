"""Many pairs of one's own: time, memory and quality of ``jaxsim train``, from 1,000 to 100,000 pairs.

Sentences of the European Parliament, English and Italian: trained on 1996-99, stopped by 2001, tested on 2000. Every
size is one process of the command line, from a file of pairs to a model folder, so that its peak memory is its own.
Up to 8,000 pairs S2Net trains on all negatives, above that on those of a batch. Expected: 100,000 pairs within fifteen
minutes on two cores and within 4 GB. Rows `…-subwords` have n-grams of words, ``--subwords 0.5``, which fewer than
20,000 pairs have by default; the others have none. All other options have their defaults.

    JAXSIM_DATA=/path/to/corpora python -m experiments.scale.many_pairs --preset full
    JAXSIM_DATA=/path/to/corpora python -m experiments.scale.many_pairs --preset full --rows 1000-pairs
    python -m experiments.scale.many_pairs --preset quick --out /tmp/quick

Time: quick half a minute on two cores, on docstrings, which need no corpus; full about a
quarter of an hour without n-grams, longer with them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from experiments.corpora.mates import cut
from experiments.kit import records
from experiments.kit.measure import Sheet
from experiments.kit.places import add_out, expect_committed, records_folder
from experiments.kit.run import add_fetch, with_corpora
from jaxsim.data import MissingCorpus, docstrings, europarl
from jaxsim.data.pairs import Pairs

SIZES = {"full": (1_000, 10_000, 100_000), "quick": (100,)}
SHARE = 0.5  # of a word that its n-grams are
HELD_OUT = 2_000  # pairs to stop by, and pairs to test on
MEMORY, MINUTES = 4.0, 15.0  # GB and minutes that 100,000 pairs may take


def load(quick: bool) -> dict[str, Pairs]:
    """The pairs of each part, as many as there are."""
    if quick:
        every = docstrings.load()
        third = len(every) // 3
        return {name: every.take(range(i * third, (i + 1) * third)) for i, name in enumerate(("train", "dev", "test"))}
    return {"train": europarl.load_lines((1996, 1997, 1998, 1999), min_words=5),
            "dev": europarl.load_lines((2001,), max_pairs=HELD_OUT),
            "test": europarl.load_lines((2000,), max_pairs=HELD_OUT)}


def write(part: Pairs, path: Path) -> Path:
    """JSON Lines of the pairs, as a user has them."""
    rows = ({"id": one, "left": left, "right": right}
            for one, left, right in zip(part.ids, part.left, part.right, strict=True))
    path.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows), encoding="utf-8")
    return path


def command(*arguments) -> tuple[dict, float, float]:
    """Runs one command of jaxsim; what it printed as JSON, its seconds and its peak memory in GB.

    Raises:
      RuntimeError: if it failed.
    """
    begun = time.perf_counter()
    with tempfile.TemporaryFile() as shown:
        program = subprocess.Popen([sys.executable, "-m", "jaxsim", *map(str, arguments), "--json"], stdout=shown)
        _, status, used = os.wait4(program.pid, 0)
        program.returncode = os.waitstatus_to_exitcode(status)
        seconds = time.perf_counter() - begun
        if program.returncode:
            raise RuntimeError(f"jaxsim {arguments[0]}: expected exit code 0, got {program.returncode}")
        shown.seek(0)
        unit = 1 if sys.platform == "darwin" else 1024
        return json.load(shown), seconds, used.ru_maxrss * unit / 1e9


def rows(sizes: tuple[int, ...]) -> dict[str, tuple[int, float]]:
    """Row -> pairs, and the share of n-grams."""
    return {f"{size}-pairs{'-subwords' if share else ''}": (size, share) for share in (0.0, SHARE) for size in sizes}


def measure(parts: dict[str, Pairs], row: str, size: int, share: float, out: Path, full: bool) -> None:
    """Trains on ``size`` pairs, tests, and writes the record."""
    environment = records.environment()
    chosen = cut(parts["train"], size)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        paths = {"train": write(chosen, folder / "train.jsonl")}
        paths |= {part: write(cut(parts[part], HELD_OUT if full else size), folder / f"{part}.jsonl")
                  for part in ("dev", "test")}
        model = folder / "model"
        told, seconds, memory = command("train", "--pairs", paths["train"], "--dev", paths["dev"], "--out", model,
                                        "--languages", ",".join(chosen.languages), "--subwords", share)
        tested, spent, _ = command("evaluate", "--model", model, "--pairs", paths["test"])
    metrics = {name: tested[name]["mean"] for name in ("accuracy", "mrr")}
    sheet = Sheet(row, len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
                  full, {}, {})
    sheet.add("from a file to a model folder", seconds, "s", note=f"{sheet.cores} cores")
    sheet.add("peak resident memory", memory, "GB")
    sheet.add("pairs trained on a second", size / seconds, "pairs/s")
    sheet.add("dev MRR, learned", told["dev"]["mrr"], "MRR")
    sheet.add("dev MRR of bare term weights", told["dev"]["untrained_mrr"], "MRR")
    if size == max(SIZES["full"]) and not share:
        sheet.expect("GB", memory, MEMORY)
        sheet.expect("minutes", seconds / 60, MINUTES)
    record = records.new(
        experiment="many_pairs", paper="none", table="en-it-sentences" if full else "docstrings", row=sheet.row,
        config={"pairs": told["pairs"]["all"], "train": told["pairs"]["train"], "method": told["settings"]["method"],
                "k": told["settings"]["dim"], "subwords": share, "cores": sheet.cores, "terms": told["terms"]},
        dataset={"name": chosen.name, "sha256": parts["train"].sha256, "groups": {},
                 "differs": chosen.differs,
                 "counts": {"pairs": len(parts["train"]), "dev": told["pairs"]["dev"],
                            "test": len(cut(parts["test"], HELD_OUT if full else size))}},
        dev={name: told["dev"][name] for name in ("accuracy", "mrr")}, metrics=metrics, environment=environment,
        **sheet.fields(), seconds={"fit": seconds, "evaluate": spent},
    )
    records.write(record, out, allow_dirty=not full)
    print(f"{row}: {seconds:.0f} s, {memory:.2f} GB, test MRR {metrics['mrr']:.4f}", file=sys.stderr,
          flush=True)


def main() -> None:
    """Measures every size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=tuple(SIZES), default="quick")
    parser.add_argument("--rows", nargs="+", metavar="ROW", help="such as 1000-pairs-subwords; all unless given")
    add_out(parser)
    add_fetch(parser)
    given = parser.parse_args()
    quick = given.preset == "quick"
    known = rows(SIZES[given.preset])
    wanted = given.rows or list(known)
    if unknown := set(wanted) - set(known):
        parser.error(f"--rows: expected some of {', '.join(known)}, got {', '.join(sorted(unknown))}")
    out = records_folder(parser, given.out, quick=quick)
    expect_committed(parser, out)
    try:
        parts = with_corpora(partial(load, quick), fetch=given.fetch)
    except MissingCorpus as error:
        parser.exit(2, f"{parser.prog}: {error}\n")
    for row in wanted:
        measure(parts, row, *known[row], out, not quick)
    print(out)


if __name__ == "__main__":
    main()
