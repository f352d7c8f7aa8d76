"""Run with two forced host devices, the terms shared between them: the same loss, gradient and fit as on one device.

Run as ``mesh_terms.py FOLDER WHAT``; with "stop" it kills itself in the middle of a fit with checkpoints there, else it
goes on from them and prints one JSON object.
"""

from __future__ import annotations

import json
import os
import signal
import sys

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
from mesh_parity import counter, error

from jaxsim import losses, sparse
from jaxsim.methods import s2net
from jaxsim.methods.projections import Projection
from jaxsim.parallel import sharding, term_shards

V, K, M = 41, 6, 13


def documents(seed: int):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.15, (M, V)) * rng.lognormal(size=(M, V))
    return sparse.from_scipy(scipy.sparse.csr_matrix(counts.astype(np.float32)))


START = np.random.default_rng(0).normal(size=(V, K)).astype(np.float32)


def score(params) -> float:
    """Better the further from the start, so that the last parameters are returned and not the first."""
    return float(np.sum((np.asarray(params.weights) - START) ** 2))


def parity(mesh, weights, left, right, groups) -> dict:
    """Loss, gradient and embeddings against those of one device."""
    def one(a):
        return losses.all_pairs_logistic(sparse.project(left, a), sparse.project(right, a), groups=groups)

    def many(a, shards):
        return sharding.all_pairs_logistic(*(term_shards.project(side, a) for side in shards), shards[0], gamma=10.0)

    shards = term_shards.shard(left, mesh, groups=groups), term_shards.shard(right, mesh)
    value, grad = jax.jit(jax.value_and_grad(one))(weights)
    spread, spread_grad = jax.jit(jax.value_and_grad(many))(term_shards.split(weights, mesh), shards)
    one_term = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((3, 1), np.float32)))
    return {
        "loss": error(spread, value), "gradient": error(term_shards.gathered(spread_grad, weights), grad),
        "pieces": [list(piece.data.shape) for piece in spread_grad.addressable_shards],
        "padding": float(jnp.max(jnp.abs(spread_grad[V:]))),
        "encoded": error(term_shards.encode(weights, left, mesh), sparse.project(left, weights)),
        "few terms": error(term_shards.encode(weights[:1], one_term, mesh), np.repeat(weights[:1], 3, axis=0)),
    }


def main(folder: str, what: str) -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    weights = START
    left, right, groups = documents(1), documents(2), np.arange(M)[:, None] // 2
    settings = {"init": Projection(weights), "max_iter": 6, "groups": groups, "beta": 0.01, "validate": score}
    calls = []

    def killed(params) -> float:
        calls.append(params)
        if len(calls) == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return score(params)

    kept = {"mesh": mesh, "shard_terms": True, "checkpoint": folder, "checkpoint_every": 3}
    if what == "stop":
        s2net.fit(left, right, **settings | kept | {"validate": killed})
        return
    result = parity(mesh, weights, left, right, groups)
    alone = s2net.fit(left, right, **settings)
    counting, result["compiled"] = counter(score)
    whole = s2net.fit(left, right, mesh=mesh, shard_terms=True, **settings | {"validate": counting})
    result["fit"] = [error(whole.loss, alone.loss), error(whole.params.weights, alone.params.weights)]
    result["steps"] = [alone.steps, whole.steps]
    kept["validate"] = lambda params: calls.append(params) or score(params)
    resumed = s2net.fit(left, right, **settings | kept)
    result["began at"] = 6 - len(calls)
    result["resumed"] = [bool(np.array_equal(whole.params.weights, resumed.params.weights)),
                         [entry["loss"] for entry in whole.history] == [entry["loss"] for entry in resumed.history]]
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
