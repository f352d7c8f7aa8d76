"""One process of several: loss and gradient over the devices of all; then process 1 kills itself.

Run as ``mesh_processes.py ADDRESS PROCESSES NUMBER``. Prints a line of JSON, and "waiting" before the other is lost.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

import jax
import numpy as np
import scipy.sparse

from jaxsim import losses, processes, sharding, terms

V, K, M = 40, 6, 13


def documents(seed: int):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.15, (M, V)) * rng.lognormal(size=(M, V))
    return terms.from_scipy(scipy.sparse.csr_matrix(counts.astype(np.float32)))


def error(ours, theirs) -> float:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def main(number: str) -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    weights = np.random.default_rng(0).normal(size=(V, K)).astype(np.float32)
    left, right = documents(1), documents(2)
    one = jax.jit(jax.value_and_grad(lambda a: losses.all_pairs_logistic(terms.project(left, a),
                                                                         terms.project(right, a))))
    shards = sharding.shard(left, mesh), sharding.shard(right, mesh)

    @jax.jit
    def many(a, shards):
        return jax.value_and_grad(lambda a: sharding.all_pairs_logistic(
            *(sharding.project(side, a) for side in shards), shards[0], gamma=10.0, block_size=3))(a)

    value, grad = one(weights)
    everywhere = sharding.replicate(weights, mesh)
    spread, spread_grad = sharding.local(many(everywhere, shards))
    found = {"devices": jax.device_count(), "here": jax.local_device_count(), "loss": error(spread, value),
             "gradient": error(spread_grad, grad)}
    print(json.dumps(found), flush=True)
    if number == "1":
        os.kill(os.getpid(), signal.SIGKILL)
    print("waiting", flush=True)
    until = time.monotonic() + 60
    while time.monotonic() < until:
        jax.block_until_ready(many(everywhere, shards))
    print("nobody noticed", flush=True)


if __name__ == "__main__":
    with processes.joined(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), patience=60):
        main(sys.argv[3])
