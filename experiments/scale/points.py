"""One point of the scale tables: some iterations of S2Net on made-up documents, measured and predicted."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from experiments.corpora.synthetic import documents
from experiments.kit.measure import race
from jaxsim import sparse
from jaxsim.methods import s2net
from jaxsim.parallel import sharding
from jaxsim.sparse import precision
from jaxsim.train import estimate

ROOT = Path(__file__).resolve().parents[2]
PAPER_PAIRS, PAPER_TERMS, PAPER_DIM, PAPER_SECONDS = 43_380, 20_000, 1_000, 48 * 60.0  # 000 §4.1.1 and §4.3
PAPER_WORDS = 41_000  # terms a second and core into 2,000 dimensions, 002 §3.1


class Sizes(NamedTuple):
    """Sizes of a preset."""

    pairs: tuple[int, ...]  # at dimension `dim`
    dim: int
    dims: tuple[int, ...]  # at `pairs_of_dims` pairs
    pairs_of_dims: int
    devices: tuple[int, ...]  # at `pairs_of_dims` pairs and `dim` dimensions
    paper: tuple[int, int]  # pairs and dimensions of the paper's own point
    policies: tuple[str | None, ...]  # precisions of the paper's point
    num_terms: int = PAPER_TERMS
    per_doc: int = 96
    iterations: int = 7
    epochs: int = 3
    block_size: int | None = None
    side: int = 2_048  # of the square matrices whose product is the device's rate
    project_dim: int = 2_000
    candidates: int = 10_000
    linear_pairs: int = PAPER_PAIRS  # of the closed forms, over as many terms
    linear_terms: tuple[int, ...] = (PAPER_TERMS, 5 * PAPER_TERMS)
    linear_dim: int = PAPER_DIM
    dense_terms: int = 5_000  # that a dense solver can be waited for
    mates: int | None = None  # pairs of docstrings, all unless given
    mates_dim: int = 100
    mates_iterations: int = 30
    mates_policies: tuple[str, ...] = precision.POLICIES
    repeats: int = 5


# The quick sizes coincide, so that few programs are compiled.
PRESETS = {
    "quick": Sizes(pairs=(100, 200), dim=8, dims=(8,), pairs_of_dims=200, devices=(2,), paper=(200, 8),
                   policies=(None,), num_terms=400, per_doc=16, iterations=3, epochs=2, side=128, project_dim=16,
                   candidates=200, linear_pairs=300, linear_terms=(400,), linear_dim=8, dense_terms=200,
                   mates=200, mates_dim=8, mates_iterations=4, mates_policies=("float32", "bfloat16"), repeats=2),
    "full": Sizes(pairs=(1_000, 2_000, 5_000, 10_000, 20_000), dim=300, dims=(100, 300, 1_000, 2_000),
                  pairs_of_dims=5_000, devices=(1, 2, 4), paper=(PAPER_PAIRS, PAPER_DIM), policies=(None,)),
    "gpu": Sizes(pairs=(1_000, 5_000, 20_000, PAPER_PAIRS), dim=300, dims=(100, 300, 1_000, 2_000),
                 pairs_of_dims=20_000, devices=(1, 2, 4, 8), paper=(PAPER_PAIRS, PAPER_DIM),
                 policies=("float32", "tf32", "bfloat16"), block_size=4_096, side=8_192, candidates=100_000),
}


@functools.cache
def corpus(num_docs: int, num_terms: int, per_doc: int):
    """Both sides of made-up pairs with a quarter of their terms in common; smaller collections are its first rows."""
    return documents(num_docs, num_terms, per_doc, seed=0, shared=per_doc // 4, views=2)


@functools.cache
def square_rate(side: int, policy: str | None) -> float:
    """Operations a second of a product of square matrices: the device's own rate, which all else is compared with."""
    a = jax.random.normal(jax.random.key(0), (side, side), jnp.float32)  # equal numbers are multiplied faster by GPUs
    times = max(1, int(2e10 / (2.0 * side**3)))

    @jax.jit
    def run(a):
        return jax.lax.fori_loop(0, times, lambda _, b: precision.matmul(a, b, policy) * side**-0.5, a)

    return times * 2.0 * side**3 / min(race({"product": lambda: run(a)}, repeats=3)["product"].seconds)


@functools.cache
def _measured(training: estimate.Training) -> estimate.Rates:
    return estimate.measure(training)


def rates(sizes: Sizes, training: estimate.Training) -> estimate.Rates:
    """`estimate.measure`, once for equal sizes; for the quick ones once for all pairs."""
    few = sizes.num_terms < PAPER_TERMS
    return _measured(dataclasses.replace(training, pairs=sizes.pairs[-1], devices=1) if few else training)


def peak_bytes() -> int | None:
    """Most that this process has held: of an accelerator's memory, or of the host's on a CPU; None if unknown."""
    stats = jax.local_devices()[0].memory_stats()
    if stats and "peak_bytes_in_use" in stats:
        return int(stats["peak_bytes_in_use"])
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")), None)


def point(sizes: Sizes, m: int, k: int, *, policy: str | None = None, devices: int = 1, iterations: int | None = None
          ) -> dict:
    """Some iterations of S2Net.

    Args:
      sizes: of the preset.
      m: pairs.
      k: dimensions.
      policy: precision of the products.
      devices: that share the pairs.
      iterations: those of ``sizes`` unless given; the first ones hold the compilation and do not count.

    Returns:
      A point of a record's curve: ``iteration_s`` (median), ``predicted_s`` by `estimate` from rates measured just
      before, ``gflops`` of the three products at the time of the whole iteration, ``rate_gflops`` of square products,
      ``share`` of the first in the second, ``predicted_gb``, ``peak_gb`` of the process, and the sizes.
    """
    csr = corpus(max(*sizes.pairs, m) if m <= 20_000 else m, sizes.num_terms, sizes.per_doc)
    left, right = (sparse.from_scipy(side[:m]) for side in csr)
    training = estimate.Training(pairs=m, terms=sizes.num_terms, dim=k, words=sizes.per_doc, devices=devices,
                                 precision=policy, block_size=sizes.block_size)
    predicted = estimate.seconds(training, rates(sizes, training))["iteration"]
    rate = square_rate(sizes.side, policy) * devices
    start = jax.tree.map(lambda a: a.astype(jnp.float32),
                         s2net.random_init(sizes.num_terms, k, key=jax.random.key(0)))
    fit = s2net.fit(left, right, init=start, max_iter=iterations or sizes.iterations, tol=0.0, precision=policy,
                    block_size=sizes.block_size, mesh=sharding.local_mesh(m, devices=devices))
    spent = np.diff([entry["seconds"] for entry in fit.history])
    calls = np.diff([entry["evaluations"] for entry in fit.history])
    warm = slice(min(2, len(spent) - 1), None)  # the first iterations compile
    seconds, per_step = float(np.median(spent[warm])), float(np.median(calls[warm]))
    done = 6.0 * m * m * k * per_step
    peak = peak_bytes()
    return {"m": m, "k": k, "devices": devices, "products": policy or "default", "iteration_s": seconds,
            "evaluations": per_step, "predicted_s": predicted, "gflops": done / seconds / 1e9,
            "rate_gflops": rate / 1e9, "share": done / seconds / rate, "loss": float(fit.loss),
            "predicted_gb": estimate.memory(training)["total"] / 1e9, "peak_gb": None if peak is None else peak / 1e9}


def told_by(program: str, *arguments: str, what: str, devices: int = 1) -> dict:
    """What a Python program prints in a process of its own on the CPU, whose peak memory is its own.

    The process ends with this one, however this one ends.

    Args:
      program: text of the program; the folders of the experiments and of the library are on its path.
      *arguments: of it.
      what: it does, for the message.
      devices: that its CPU poses as.

    Returns:
      The object of JSON on its last line.

    Raises:
      ArithmeticError: if that process fails.
    """
    flags = f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={devices}".strip()
    paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    reading, writing = os.pipe()  # never written to: it ends when nobody has its other end any more
    try:
        done = subprocess.run([sys.executable, "-c",
                               f"from experiments.scale import points; points.end_with_parent(); {program}",
                               *arguments], stdin=reading, capture_output=True, text=True, check=False,
                              env={**os.environ, "XLA_FLAGS": flags, "PYTHONPATH": paths, "JAX_PLATFORMS": "cpu"})
    finally:
        os.close(reading)
        os.close(writing)
    if done.returncode != 0:
        raise ArithmeticError(f"{what}: the process of this point failed with status {done.returncode}: "
                              f"{done.stderr.strip().splitlines()[-1:]}")
    return json.loads(done.stdout.splitlines()[-1])


def end_with_parent() -> None:
    """Has this process, started by `told_by`, end where its standard input does."""
    threading.Thread(target=lambda: (os.read(0, 1), os._exit(1)), daemon=True).start()


def alone(preset: str, m: int, k: int, *, devices: int = 1, iterations: int | None = None) -> dict:
    """`point` in a process of its own on the CPU, which poses as several devices.

    Raises:
      ArithmeticError: if that process fails.
    """
    asked = json.dumps({"m": m, "k": k, "devices": devices, "iterations": iterations})
    return told_by("from experiments.scale import points; points.print_point()", preset, asked, devices=devices,
                   what=f"{m} pairs, {k} dimensions, {devices} devices")


def print_point() -> None:
    """Runs in the process that `alone` starts."""
    print(json.dumps(point(PRESETS[sys.argv[1]], **json.loads(sys.argv[2]))))
