"""Run with several forced host devices: the same loss, gradient and fit as on one. Prints one JSON object.

With ``filled`` or ``gathered`` documents are held so, as on accelerators.
"""

from __future__ import annotations

import json
import sys
import tempfile

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import losses, sparse
from jaxsim.methods import s2net
from jaxsim.methods.projections import Projection
from jaxsim.parallel import sharding
from jaxsim.sparse import dense

V, K = 40, 6


def documents(m: int, seed: int):
    rng = np.random.default_rng(seed)
    counts = rng.poisson(0.15, (m, V)) * rng.lognormal(size=(m, V))
    counts[m // 2] = 0  # an empty document
    return sparse.from_scipy(scipy.sparse.csr_matrix(counts.astype(np.float32)))


def error(ours, theirs) -> float:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.max(np.abs(ours - theirs)) / max(np.max(np.abs(theirs)), 1e-30))


def counter(validate):
    """A validation that notes how many programs were compiled before each of its calls."""
    compiled, before = [], []
    jax.monitoring.register_event_duration_secs_listener(
        lambda name, *_, **__: compiled.append(name) if name.endswith("backend_compile_duration") else None)

    def counting(params):
        before.append(len(compiled))
        return validate(params)

    return counting, before


def main() -> None:
    storage = {"filled", "gathered"} & set(sys.argv)
    if storage:
        dense.storage = lambda *documents: [*storage][0]
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    weights = jnp.asarray(np.random.default_rng(0).normal(size=(V, K)), jnp.float32)
    result = {"devices": jax.device_count()}
    for m in (2, 13):
        left, right = documents(m, 1), documents(m, 2)
        groups = np.stack([np.arange(m) // 2, np.arange(m) // 3], axis=1).astype(np.int32)
        for name, gamma, some in (("plain", 10.0, None), ("steep", 50.0, None), ("groups", 10.0, groups)):
            one = jax.jit(jax.value_and_grad(lambda a, gamma, some=some, left=left, right=right:
                losses.all_pairs_logistic(sparse.project(left, a), sparse.project(right, a), gamma=gamma, groups=some),
                argnums=(0, 1)))
            shards = sharding.shard(left, mesh, groups=some), sharding.shard(right, mesh)
            many = jax.jit(jax.value_and_grad(lambda a, gamma, shards=shards: sharding.all_pairs_logistic(
                *(sharding.project(side, a) for side in shards), shards[0], gamma=gamma, block_size=(3, 2)),
                argnums=(0, 1)))
            value, grads = one(weights, gamma)
            spread, spread_grads = many(sharding.replicate(weights, mesh), gamma)
            result[f"{name} {m}"] = [error(spread, value), *map(error, spread_grads, grads)]
    left, right = documents(61, 1), documents(61, 2)
    start = Projection(weights)
    settings = {"init": start, "max_iter": 8, "groups": np.arange(61) // 2, "beta": 0.01,
                "validate": lambda params: -float(jnp.sum(params.weights**2)), "activation": None}
    counting, compiled = counter(settings["validate"])
    one = s2net.fit(left, right, **settings)
    many = s2net.fit(left, right, mesh=mesh, **settings | {"validate": counting})
    result["compiled"] = compiled
    with tempfile.TemporaryDirectory() as folder:
        s2net.fit(left, right, mesh=mesh, checkpoint=folder, **settings | {"max_iter": 3})
        resumed = s2net.fit(left, right, mesh=mesh, checkpoint=folder, **settings)
    result["resumed"] = [bool(np.array_equal(many.params.weights, resumed.params.weights)),
                         [entry["loss"] for entry in many.history] == [entry["loss"] for entry in resumed.history]]
    result["fit"] = [error(many.loss, one.loss), error(many.params.weights, one.params.weights)]
    result["steps"] = [many.steps, one.steps, len(many.history), len(one.history)]
    result["last"] = error(many.history[-1]["loss"], one.history[-1]["loss"])
    two = s2net.fit(left, right, init=(start, start), max_iter=4, activation=jnp.tanh, mesh=mesh)
    alone = s2net.fit(left, right, init=(start, start), max_iter=4, activation=jnp.tanh)
    result["two"] = [error(two.params[i].weights, alone.params[i].weights) for i in (0, 1)]
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    main()
