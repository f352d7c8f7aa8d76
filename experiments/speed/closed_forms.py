"""OPCA by three solvers at many sizes, beside the one that its estimate of cost chooses.

No paper. Dense (LAPACK), a Cholesky factor with a Krylov iteration, and conjugate gradients with one, on made-up pairs
of documents: seconds of CPU time, so that other programs of the machine count little. A cell whose estimate exceeds the
limit, or 8 GB, is not run: its estimate stands there, marked ``~``. The last columns are the solver that is chosen and
how many times the best of the cells that were run it takes, expected at most 1.1. ``--rates`` prints the rates that
`jaxsim.linalg.cost` states.

    python -m experiments.speed.closed_forms --preset quick --out /tmp/quick    # seconds
    python -m experiments.speed.closed_forms --preset full                      # hours on one core
    python -m experiments.speed.closed_forms --preset full --terms 2000 5000 --limit 60
"""

from __future__ import annotations

import argparse
import math
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg
import scipy.sparse

from experiments.corpora.synthetic import documents, synthetic
from experiments.kit import records
from experiments.kit.measure import Sheet, relative_error
from experiments.kit.places import RESULTS, add_out, records_folder
from jaxsim import linalg, sparse
from jaxsim.linalg import cost, covariance
from jaxsim.linalg.covariance import Factor, Ridge
from jaxsim.methods.projections import opca

NOISE, APART = 1e-4, 2e-2  # as OPCA of documents of length one has it in `mates`
WAYS = ("dense", "cholesky", "iterated")
PRESETS = {
    "quick": {"terms": (300,), "dimensions": (10,), "docs": 200, "per_doc": 20, "limit": 20.0},
    "full": {"terms": (2_000, 5_000, 10_000, 20_000, 100_000), "dimensions": (100, 300, 1_000), "docs": 10_000,
             "per_doc": 96, "limit": 600.0},
}


def parts(views, way: str | None, k: int):
    """``S``, and ``N`` solved in a way, as `opca.fit` has them; a cheap estimate of its own for None."""
    signal, spread = opca._covariances(views, Factor)
    solver = {"dense": "cholesky", None: None}.get(way, way)
    return signal, Ridge(spread, NOISE, argument="noise", tolerance=covariance.ROUGH, columns=4 * k, solver=solver)


def solve(views, way: str | None, k: int) -> jax.Array:
    """OPCA in one of three ways, or as its estimate says."""
    signal, ridge = parts(views, way, k)
    solver = {"dense": "dense", None: None}.get(way, "iterated")
    return linalg.top_generalised(lambda x: covariance.ridged(signal.product(x), -ridge.ridge, x), ridge.apply,
                                  ridge.solve, views[0].num_terms, k, key=jax.random.key(0), dtype=jnp.float32,
                                  shift=1.0, work=2 * ridge.work, solve_work=ridge.solve_work, solver=solver,
                                  whole=signal.whole(ridge))[0]


def estimate(views, way: str, k: int) -> float:
    """Seconds expected of a way; infinite where it exceeds memory."""
    signal, ridge = parts(views, way, k)
    v, shape = views[0].num_terms, linalg.basis_shape(k)
    if shape[0] * shape[1] >= v and way != "dense":
        return math.inf  # a basis of all there is: the dense way under another name
    if way == "dense":
        return cost.dense_seconds(v, k, 2 * ridge.work, signal.whole(ridge).operations)
    made = cost.factor_seconds(ridge.size, ridge.factor.gram_operations(), 0) if way == "cholesky" else 0.0
    return made + cost.iterated_seconds(v, k, shape, 2 * ridge.work + ridge.solve_work)


def chosen(views, k: int) -> str:
    """The way that `opca.fit` takes."""
    signal, ridge = parts(views, None, k)
    v, shape = views[0].num_terms, linalg.basis_shape(k)
    made = signal.whole(ridge).operations
    if shape[0] * shape[1] >= v or cost.cheapest(v, k, shape, 2 * ridge.work, ridge.solve_work, made) == "dense":
        return "dense"
    return "iterated" if ridge.iterated else "cholesky"


def cell(sheet: Sheet, views, k: int, limit: float) -> None:
    """Runs the ways that end within the limit, compares what they find, and adds a line each."""
    v, seconds, values = views[0].num_terms, {}, {}
    for way in WAYS:
        expected = estimate(views, way, k)
        name = f"{way}, V = {v:,}, k = {k:,}"
        if not expected <= limit:
            told = "more than 8 GB, or no way of its own" if math.isinf(expected) else "over the limit"
            sheet.add(f"~ {name}", 0.0 if math.isinf(expected) else expected, "s", note=f"estimated: {told}")
            continue
        jax.block_until_ready(solve(views, way, k))  # compiles
        started = time.process_time()
        values[way] = np.asarray(solve(views, way, k))
        seconds[way] = time.process_time() - started
        sheet.add(name, seconds[way], "s", note=f"CPU time; expected {expected:.3g} s")
    way, best = chosen(views, k), min(seconds.values(), default=math.nan)
    for other, found in list(values.items())[1:]:
        error = relative_error(found, next(iter(values.values())))
        if not error <= APART:
            raise ArithmeticError(f"{sheet.row}: {other}, k = {k}: expected the same eigenvalues, got {error:g} apart")
    if way in seconds:
        ratio = seconds[way] / best
        sheet.add(f"chosen: {way}, V = {v:,}, k = {k:,}", seconds[way], "s", ratio=ratio, of="the best that was run")
        sheet.expect(f"chosen against best, V = {v:,}, k = {k:,}", ratio, 1.1)
    else:
        sheet.add(f"chosen: {way}, V = {v:,}, k = {k:,}", 0, "runs", note="not run: over the limit")


def rates(side: int = 2_000) -> None:
    """Prints the constants of `jaxsim.linalg.cost`, of this machine."""
    rng = np.random.default_rng(0)
    square = rng.standard_normal((side, side)).astype(np.float32)
    block = rng.standard_normal((side, 48)).astype(np.float32)
    symmetric = square @ square.T

    def seconds(function) -> float:
        function()
        times = []
        for _ in range(3):
            started = time.process_time()
            function()
            times.append(time.process_time() - started)
        return min(times)

    (csr,) = documents(2_000, 5_000, 96, seed=0)
    terms, wide = sparse.from_scipy(csr), jnp.ones((5_000, 48), jnp.float32)
    product, matmul = jax.jit(sparse.project), jax.jit(jnp.matmul)
    print(f"SQUARE {2 * side**3 / seconds(lambda: jax.block_until_ready(matmul(square, square))):.2g}")
    print(f"NARROW {2 * 48 * side**2 / seconds(lambda: jax.block_until_ready(matmul(square, block))):.2g}")
    print(f"SPARSE {2 * 48 * csr.nnz / seconds(lambda: jax.block_until_ready(product(terms, wide))):.2g}")
    few, many = (seconds(lambda k=k: scipy.linalg.eigh(symmetric, subset_by_index=(side - k, side - 1), driver="evr"))
                 for k in (side // 20, side // 4))
    back = (many - few) / (side**2 * (side // 4 - side // 20))
    print(f"_TRIDIAGONAL {few / side**3 - back / 20:.2g}, _BACK {back:.2g}")


def main() -> int:
    """Runs the cells asked for and writes a record of each number of terms."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--terms", type=int, nargs="+")
    parser.add_argument("--dimensions", type=int, nargs="+")
    parser.add_argument("--limit", type=float, help="seconds above which a cell is estimated")
    parser.add_argument("--rates", action="store_true")
    add_out(parser)
    given = parser.parse_args()
    if given.rates:
        rates()
        return 0
    settings, full = PRESETS[given.preset], given.preset == "full"
    out = records_folder(parser, given.out, quick=not full)
    environment = records.environment()
    if full and out == RESULTS and environment["dirty"]:
        parser.error("expected a committed tree, got uncommitted changes (or give --out another folder)")
    limit = given.limit or settings["limit"]
    for terms in given.terms or settings["terms"]:
        begun = time.perf_counter()
        csr = documents(settings["docs"], terms, settings["per_doc"], seed=0, shared=settings["per_doc"] // 2, views=2)
        views = tuple(sparse.from_scipy(side) for side in csr)
        sheet = Sheet(f"opca-{terms}", 1, full, synthetic("pairs of documents by Zipf's law", docs=settings["docs"],
                                                          terms=terms, terms_a_document=settings["per_doc"]),
                      {"noise": NOISE, "limit": limit})
        for k in given.dimensions or settings["dimensions"]:
            cell(sheet, views, k, limit)
        record = records.new(experiment="speed", paper="none", table="closed-forms", row=sheet.row,
                             config={"preset": given.preset, **sheet.config}, dataset=sheet.dataset, metrics={},
                             environment=environment, **sheet.fields(),
                             seconds={"evaluate": time.perf_counter() - begun})
        records.write(record, out, allow_dirty=not full)
        sheet.tell(f"{terms:,} terms")
    print(out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
