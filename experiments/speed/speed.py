"""Speed: what each part takes on one core and on two, beside its limit and the programs one would use instead.

Every row first agrees with a float64 reference, then is timed in turns with its limit or its peers in the same run,
warmed up and waited for: median of seven runs (fewer of slow ones) with minimum and spread. Expected, at the sizes of
the full preset: value and gradient of the all-pairs loss of 5,000 pairs within the time of its three matrix products
on one core and 1.6 x on two, of 20,000 pairs at 90 % of the rate of a square product, under 1 GB above the embeddings;
an L-BFGS iteration of S2Net within 0.95 s on one core and 1.1 evaluations; OPCA at least 5 x as fast as the dense
eigenproblem to the same MRR; a step of SSI at 300,000 words within 2.5 x its time at 30,000, and 5 x as fast as
PyTorch with sparse gradients; an iteration of JPLSA on 1.1 million entries within .16 s at 100 topics and .6 s at 300,
topics of new documents 10 x as fast as scikit-learn and tomotopy; 40,000 docstrings a second a core from strings to
vectors, and 100 µs for one; 4-gram models of 50 million tokens within two minutes and 3 GB; PILSA of all thesauri in
400 dimensions within 60 s and 2 GB; the demo within three minutes on two.

    python -m experiments.speed.speed --preset full
    python -m experiments.speed.speed --preset quick --only project all-pairs --out /tmp/quick

Each core count is a process of its own, pinned before anything starts threads. Peers that are not installed
(`pip install 'jaxsim-text[peers]'`) are said to be missing. Time: quick under a minute; full about a quarter of an hour
on an otherwise idle machine, on one core and then on two.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from experiments.kit.places import RESULTS, add_out, records_folder

TABLES = {1: "one-core", 2: "two-cores"}
NAMES = {
    "matmul": "the rate of float32 matrix products of this machine, square and in the shape of the loss",
    "project": "sparse documents times a dense matrix, and the gradient in that matrix",
    "texts": "docstrings from strings to vectors: words, look-up, weights and product, in one call and one by one",
    "all-pairs": "value and gradient of the all-pairs loss in both directions, and its memory",
    "lbfgs": "a whole L-BFGS iteration of S2Net: evaluations, direction and bookkeeping",
    "top-k": "exact top-10 by inner product of unit vectors",
    "lsa": "the fit of LSA",
    "opca": "the fit of OPCA against the dense generalised eigenproblem, and the MRR of both",
    "ssi": "a step of SSI, UᵀV + I, for two vocabularies",
    "tweak": "an evaluation of TWEAK's loss over pairs of pairs",
    "vl-ext": "an evaluation of VL-Ext's loss over pairs of pairs",
    "itml": "a cycle of ITML for metrics of several ranks, one pair after another and in blocks of pairs",
    "all-pairs-figures": "AUC, Max-F1, precision and average precision of all pairs of a collection",
    "topics": "an iteration of JPLSA and of CPLSA, memory at 1,000 topics, and topics of new documents",
    "pilsa": "PILSA of the union of thesauri, in a process of its own, with compilation",
    "demo": "the whole of `python -m jaxsim demo` (the quick preset only starts it)",
    "rnn": "training of recurrent language models: words a second of the tanh cell and of the GRU",
    "ngram": "counting and estimating of 4-gram models: seconds and memory",
    "weights": "products, a query, loading and size of models with float32, float16 and int8 weights",
    "disk": "docstrings in files: counted, read in random batches, and a state of three matrices kept",
}
"""Row -> what it measures. `rows` has a function for each, or imports it from the file of its subject."""
PINNED = "JAXSIM_SPEED_CORES"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full"), default="quick")
    parser.add_argument("--cores", type=int, choices=tuple(TABLES), help="both unless given; quick: one")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="NAME", help=f"of {', '.join(NAMES)}; all unless "
                        "given")
    add_out(parser)
    return parser


def pinned(cores: int, arguments: list[str]) -> int:
    """Runs this script again in a process that owns ``cores`` cores from its first instruction on.

    Returns:
      Its exit status.
    """
    environment = {**os.environ, PINNED: str(cores), "OMP_WAIT_POLICY": "passive", "JAX_PLATFORMS": "cpu",
                   **dict.fromkeys(_THREADS, str(cores))}
    if not hasattr(os, "sched_setaffinity"):
        environment["XLA_FLAGS"] = os.environ.get("XLA_FLAGS", "") + f" --xla_force_host_platform_device_count={cores}"
        return subprocess.run([sys.executable, "-m", "experiments.speed.speed", *arguments], env=environment).returncode
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, sorted(before)[:cores])
        return subprocess.run([sys.executable, "-m", "experiments.speed.speed", *arguments], env=environment).returncode
    finally:
        os.sched_setaffinity(0, before)


def measure(given: argparse.Namespace, cores: int, out: Path) -> int:
    """Measures the rows asked for in this process and writes a record of each; 1 if one had no parity, else 0."""
    from experiments.kit import records
    from experiments.speed import rows as speed_rows

    full = given.preset == "full"
    environment = records.environment()
    if full and out == RESULTS and environment["dirty"]:
        raise SystemExit("speed: expected a committed tree, got uncommitted changes (or give --out another folder)")
    status = 0
    for name in given.only or NAMES:
        begun = time.perf_counter()
        try:
            sheet = speed_rows.ROWS[name](speed_rows.FULL if full else speed_rows.QUICK, cores, full)
        except ArithmeticError as error:
            print(f"{TABLES[cores]}: no record: {error}", file=sys.stderr, flush=True)
            status = 1
            continue
        record = records.new(
            experiment="speed", paper="none", table=TABLES[cores], row=sheet.row,
            config={"preset": given.preset, "cores": cores, **sheet.config}, dataset=sheet.dataset, metrics={},
            environment=environment, **sheet.fields(), seconds={"evaluate": time.perf_counter() - begun},
        )
        records.write(record, out, allow_dirty=not full)
        sheet.tell(f"{TABLES[cores]}: {name}, {time.perf_counter() - begun:.0f} s")
    return status


def main() -> int:
    """Starts a pinned process for every core count, or measures inside one."""
    parser = _parser()
    given = parser.parse_args()
    quick = given.preset == "quick"
    inside = os.environ.get(PINNED)
    if inside is not None:
        return measure(given, int(inside), given.out.resolve())
    out = records_folder(parser, given.out, quick=quick)
    has = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    failed = 0
    for cores in (given.cores,) if given.cores else (1,) if quick else tuple(TABLES):
        if cores > has:
            parser.error(f"--cores: expected at most {has} (cores of this process), got {cores}")
        arguments = ["--preset", given.preset, "--cores", str(cores), "--out", str(out)]
        status = pinned(cores, arguments + (["--only", *given.only] if given.only else []))
        failed = failed or status
    print(out)
    return failed


if __name__ == "__main__":
    sys.exit(main())
