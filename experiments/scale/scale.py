"""Scale: what S2Net costs against pairs, dimensions and devices, up to the paper's own size, and what its parts cost.

On made-up documents of the shape of the papers' term vectors (20,000 terms; called synthetic everywhere): seconds of an
L-BFGS iteration, the share of the device's matrix-product rate that they are, and what `jaxsim estimate` predicted,
from rates measured just before. Beside: 48 minutes an iteration (000 §4.3) at 43,380 pairs and 1,000 dimensions, 41,000
words a second and core into 2,000 dimensions (002 §3.1), PyTorch and faiss. Expected on two cores: at most 150 s an
iteration in at most 6 GB at the paper's size; on one H200 at most 1 s in float32, and at least 60 % of
its product rate in TF32 or bfloat16. The rows lsa, opca and cca are closed forms of the same documents on the CPU, with
20,000 and 100,000 terms and 1,000 dimensions, within 24 GB, beside gensim and a dense solver (that one at 5,000 terms).

    python -m experiments.scale.scale --preset full              # a CPU
    python -m experiments.scale.scale --preset gpu               # one GPU; installed with the extra `cuda`
    python -m experiments.scale.scale --preset quick --out /tmp/quick

A row is written as it arrives, and one that has its record is not run again unless --again. Measured time: see the
records. Peers that are not installed (`pip install 'jaxsim-text[peers]'`) are said to be missing.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

from experiments.kit.places import expect_committed, records_folder

NAMES = {
    "s2net-documents": "an iteration of S2Net against the number of pairs, fitted by a + b m²",
    "s2net-dimensions": "an iteration of S2Net against dimensions",
    "s2net-devices": "an iteration of S2Net against devices; on a CPU forced ones, which share its cores",
    "s2net-paper": "an iteration of S2Net at the paper's own size",
    "s2net-sgd": "an epoch of S2Net by batches against the number of pairs, beside PyTorch",
    "encode": "documents and terms projected a second, beside the paper and EmbeddingBag",
    "search": "exact top-10 of unit vectors, beside faiss",
    "precision": "loss and MRR of held-out docstrings by the precision of training",
    "lsa": "the closed form of LSA, beside gensim and a dense solver",
    "opca": "the closed form of OPCA, beside a dense solver",
    "cca": "the closed form of CCA, beside a dense solver",
}
"""Row -> what it measures. `rows` has a function for each but the closed forms, which `linear` has."""
CPU_ALONE = ("lsa", "opca", "cca")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--preset", choices=("quick", "full", "gpu"), default="quick")
    parser.add_argument("--only", nargs="+", choices=NAMES, metavar="ROW", help=f"of {', '.join(NAMES)}; all unless "
                        "given")
    parser.add_argument("--out", type=Path, help="folder of the records; experiments/results for full and gpu, a "
                        "temporary folder for quick")
    parser.add_argument("--again", action="store_true", help="run rows that have a record once more")
    return parser


def run(preset: str, out: Path, *, only=None, again: bool = False) -> int:
    """Runs the rows and writes a record of each; 1 if one failed, else 0."""
    import jax

    from experiments.kit import records
    from experiments.scale import rows as scale_rows

    if preset == "gpu":
        # Without it JAX multiplies sparse documents by gathering a row of the projection a weight.
        jax.config.update("jax_bcoo_cusparse_lowering", True)
    table = "cpu" if jax.default_backend() == "cpu" else "gpu"
    has = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    sizes, environment, status = scale_rows.PRESETS[preset], records.environment(), 0
    for name in only or NAMES:
        if table == "gpu" and name in CPU_ALONE:
            print(f"{name}: measured on the CPU alone", file=sys.stderr, flush=True)
            continue
        path = out / "scale" / table / f"{name}.json"
        if path.exists() and not again:
            print(f"{name}: has its record", file=sys.stderr, flush=True)
            continue
        begun = time.perf_counter()
        try:
            sheet, curve = scale_rows.ROWS[name](sizes, preset, has if table == "cpu" else 1)
        except ArithmeticError as error:
            print(f"{name}: no record: {error}", file=sys.stderr, flush=True)
            status = 1
            continue
        spent = time.perf_counter() - begun
        record = records.new(
            experiment="scale", paper="none", table=table, row=name,
            config={"preset": preset, "cores": has, **sheet.config}, dataset=sheet.dataset, metrics={}, curve=curve,
            environment=environment, **sheet.fields(), seconds={"evaluate": spent},
        )
        records.write(record, out, allow_dirty=preset == "quick")
        sheet.tell(f"{name}, {spent:.0f} s")
    return status


def main() -> int:
    """Checks what is asked for, and runs it."""
    parser = _parser()
    given = parser.parse_args()
    quick = given.preset == "quick"
    out = records_folder(parser, given.out, quick=quick).resolve()
    if given.preset == "full":
        os.environ.setdefault("JAX_PLATFORMS", "cpu")  # of the points' processes
    import jax

    if given.preset == "full":  # JAX read the environment when the kit loaded it
        jax.config.update("jax_platforms", os.environ["JAX_PLATFORMS"])

    if given.preset == "gpu" and jax.default_backend() == "cpu":
        parser.exit(2, f"{parser.prog}: --preset gpu: expected an accelerator, got a CPU alone\n")
    if not quick:
        expect_committed(parser, out)
    status = run(given.preset, out, only=given.only, again=given.again)
    print(out)
    return status


if __name__ == "__main__":
    sys.exit(main())
