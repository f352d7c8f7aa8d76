"""A grid of S2Net fits as one vmapped program, against the same fits one after the other.

No paper. Measures seconds of `optim.minimize_lbfgs_grid` (one program, ``jax.vmap`` over gamma or over seeds) and of
`optim.minimize_lbfgs` in a loop, on made-up pairs; compiled before, median of the repeats. Both find the same losses,
or the script fails. Expect the program to win on the smallest fits only.

    python -m experiments.speed.functional_grid --preset quick --out /tmp/quick   # a minute
    python -m experiments.speed.functional_grid --preset full    # some minutes
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import statistics
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import io, optim, sparse
from jaxsim.methods import s2net
from jaxsim.methods.s2net import exact

# Pairs, terms, dimensions, fits, iterations; each fit's documents have about 20 terms.
PRESETS = {
    "quick": {"sizes": [(60, 300, 10, 16, 20)], "repeats": 3},
    "full": {"sizes": [(60, 300, 10, 16, 20), (200, 1000, 20, 8, 20), (600, 3000, 50, 8, 20)], "repeats": 7},
}


def problem(num_pairs: int, num_terms: int, k: int) -> exact.Data:
    """Made-up pairs whose mates share words, and a random start."""
    left, other = (scipy.sparse.random(num_pairs, num_terms, density=20 / num_terms, format="csr", random_state=seed,
                                       dtype=np.float32) for seed in range(2))
    start = s2net.random_init(num_terms, k, key=jax.random.key(0))
    sides = sparse.from_scipy(left), sparse.from_scipy((left + other).tocsr())
    return exact.Data(*sides, jnp.float32(10), jnp.float32(0), start)


def grids(data: exact.Data, fits: int) -> dict:
    """For gamma and for seeds: starts with a leading axis, data, its axes, and the data of each fit."""
    num_terms, k = data.start.weights.shape
    shared = jax.tree.map(lambda leaf: jnp.broadcast_to(leaf, (fits, *leaf.shape)), data.start)
    seeds = jax.vmap(lambda key: s2net.random_init(num_terms, k, key=key))(jax.random.split(jax.random.key(1), fits))
    scales = dataclasses.replace(data, gamma=jnp.linspace(4, 18, fits, dtype=jnp.float32))
    axes = dataclasses.replace(jax.tree.map(lambda _: None, data), gamma=0)
    each = [dataclasses.replace(data, gamma=gamma) for gamma in scales.gamma]
    return {"gamma": (shared, scales, axes, each), "seeds": (seeds, data, None, [data] * fits)}


def seconds(function, repeats: int) -> tuple[list[optim.Fit], float]:
    """What a function returns, and its median time after a first call."""
    fits, times = function(), []
    for _ in range(repeats):
        started = time.perf_counter()
        fits = function()
        times.append(time.perf_counter() - started)
    return fits, statistics.median(times)


def compare(size: tuple[int, ...], repeats: int) -> list[dict]:
    """Prints a line for a grid of gamma and one for a grid of seeds, and returns their figures."""
    lines = []
    *shape, number, iterations = size
    settings = {"max_iter": iterations, "tol": 0.0, "first_step": 0.02}
    for name, (params, data, axes, each) in grids(problem(*shape), number).items():
        starts = [jax.tree.map(lambda leaf, i=i: leaf[i], params) for i in range(number)]
        alone, separate = seconds(lambda s=starts, e=each: [
            optim.minimize_lbfgs(exact.objective, *both, **settings) for both in zip(s, e, strict=True)], repeats)
        together, one = seconds(lambda p=params, d=data, a=axes: optim.minimize_lbfgs_grid(
            exact.objective, p, d, a, **settings), repeats)
        np.testing.assert_allclose([fit.loss for fit in together], [fit.loss for fit in alone], rtol=1e-3)
        pairs, terms, k = shape
        print(f"{pairs} pairs, {terms} terms, k = {k}, {number} fits over {name}, {iterations} iterations: "
              f"loop {separate:.3f} s, one program {one:.3f} s, ratio {separate / one:.1f}", flush=True)
        lines.append({"pairs": pairs, "terms": terms, "k": k, "fits": number, "over": name, "iterations": iterations,
                      "loop_seconds": separate, "program_seconds": one, "ratio": separate / one})
    return lines


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--preset", choices=PRESETS, default="quick")
    parser.add_argument("--out", type=Path, help="folder for functional_grid.json; nothing is written unless given")
    given = parser.parse_args()
    chosen = PRESETS[given.preset]
    measured = [line for size in chosen["sizes"] for line in compare(size, chosen["repeats"])]
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        io.write_bytes(given.out / "functional_grid.json", (json.dumps(measured, indent=1) + "\n").encode())
