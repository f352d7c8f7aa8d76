"""One process of several: loss and gradient over the devices of all; then process 1 kills itself in a fit.

Run as ``mesh_processes.py ADDRESS PROCESSES NUMBER FOLDER WHAT``. Each process reads the pairs from shards on disk,
FOLDER/corpus (`write`). Prints a line of JSON, and "waiting" before the other is lost. With "go on" for WHAT, the fit
is continued from its checkpoints in FOLDER/kept and compared with a whole one; with "settings" the processes have
different ones; with "scores" each has other scores; with "raises" process 1 has an error of its own. With "topics"
JPLSA is learned in place of S2Net: of one device, whole, and stopped and gone on, and then with different arguments.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import sys

import jax
import numpy as np
import scipy.sparse

from jaxsim import losses, sparse, text
from jaxsim.methods import jplsa, s2net
from jaxsim.methods.projections import Projection
from jaxsim.parallel import processes, sharding
from jaxsim.text import corpus, corpus_build

V, K, M = 40, 6, 13
CORPUS = []


def tell(line: str) -> None:
    """Prints a line that can be told from those of gloo, which may be cut in two by others."""
    print(f"told: {line}", flush=True)


def write(folder: str) -> None:
    """Pairs of a few of the words each, all of which occur, in four shards."""
    rng = np.random.default_rng(0)
    texts = [[" ".join(f"w{word}" for word in rng.choice(V, 6)) for _ in range(2)] for _ in range(M - 1)]
    texts.append([" ".join(f"w{word}" for word in range(V)), ""])
    corpus_build.build(os.path.join(folder, "corpus"), map(tuple, texts), min_df=1, shard_docs=4)


def documents(seed: int):
    """A side of the corpus, read shard by shard."""
    side = CORPUS[0].weighted(text.log_tf_idf)[seed - 1]
    assert len(side.shards) == 4
    return sparse.from_scipy(scipy.sparse.vstack(list(side.batches(4)), format="csr"))


def error(ours, theirs) -> float:
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    return float(np.max(np.abs(ours - theirs)) / np.max(np.abs(theirs)))


def fit(weights, *, left=1, **settings):
    """Over the devices of all processes, the terms shared out."""
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    return s2net.fit(documents(left), documents(2), init=Projection(weights), max_iter=6, mesh=mesh,
                     checkpoint_every=3, **{"shard_terms": True} | settings)


def topics(number: int, folder: str) -> None:
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    views, key = [documents(1), documents(2)], jax.random.key(0)

    rising, calls = itertools.count(), []  # the last parameters are the best

    def validate(params) -> float:
        calls.append(params)
        return float(next(rising))

    def learn(views=views, key=key, mesh=mesh, **settings):
        return jplsa.fit(views, **{"k": 3, "key": key, "start": "soft", "mesh": mesh, "max_iter": 6,
                                   "validate": validate} | settings)

    one, whole, started = learn(mesh=None), learn(), learn(max_iter=3, checkpoint=folder, checkpoint_every=1)
    calls.clear()
    resumed = learn(checkpoint=folder, checkpoint_every=1)
    of_whole, of_resumed, of_one = (jax.tree.leaves(fit.params) for fit in (whole, resumed, one))
    same = all(map(np.array_equal, of_whole, of_resumed))
    moved = abs(whole.history[-1]["loss"] - started.history[-1]["loss"])
    tell(json.dumps({"same": same, "error": max(map(error, of_whole, of_one)), "moved": moved, "new": len(calls)}))
    for different in ({"views": views[:: 1 - 2 * number]}, {"key": jax.random.key(number)}, {"alpha": 1.1 + number},
                      {"alpha": 1.1 - number}):
        try:
            learn(**different)
        except ValueError as refused:
            tell(str(refused))


def scores(weights, sign: int) -> None:
    """Fits whose last iteration is best in one process, where scores rise, and the first in the other."""
    for shard_terms in (True, False):
        for settings in ({}, {"patience": 2}):
            rising = itertools.count()
            found = fit(weights, validate=lambda params, rising=rising: sign * next(rising), tol=0.0,
                        shard_terms=shard_terms, **settings)
            tell(json.dumps([found.steps, found.best_score, np.asarray(found.params.weights, np.float64).tolist()]))


def parity(weights) -> dict:
    mesh = jax.make_mesh((jax.device_count(),), ("pairs",))
    left, right = documents(1), documents(2)
    one = jax.jit(jax.value_and_grad(lambda a: losses.all_pairs_logistic(sparse.project(left, a),
                                                                         sparse.project(right, a))))
    shards = sharding.shard(left, mesh), sharding.shard(right, mesh)

    @jax.jit
    def many(a, shards):
        return jax.value_and_grad(lambda a: sharding.all_pairs_logistic(
            *(sharding.project(side, a) for side in shards), shards[0], gamma=10.0, block_size=3))(a)

    value, grad = one(weights)
    spread, spread_grad = sharding.local(many(sharding.replicate(weights, mesh), shards))
    return {"devices": jax.device_count(), "here": jax.local_device_count(), "loss": error(spread, value),
            "gradient": error(spread_grad, grad)}


def main(number: str, folder: str, what: str) -> None:
    CORPUS.append(corpus.read(os.path.join(folder, "corpus")))
    folder = os.path.join(folder, "kept")
    weights = np.random.default_rng(0).normal(size=(V, K)).astype(np.float32)
    if what == "go on":
        whole, resumed = fit(weights), fit(weights, checkpoint=folder)
        same = bool(np.array_equal(whole.params.weights, resumed.params.weights))
        histories = [[entry["loss"] for entry in one.history] for one in (whole, resumed)]
        tell(json.dumps({"same": same, "losses": histories}))
        return
    if what == "topics":
        topics(int(number), folder)
        return
    if what == "settings":
        other = int(number)
        for start, settings in ((weights, {"gamma": 10.0 - other}), (weights + other, {}),
                                (weights, {"left": 1 + other}), (weights, {"groups": np.arange(M) // (1 + other)}),
                                (weights, {"gamma": 1.0 - other})):
            try:
                fit(start, **settings)
            except ValueError as error:
                tell(str(error))
        return
    if what == "scores":
        scores(weights, 1 - 2 * int(number))
        return
    if what == "raises":
        fit(weights, validate=lambda params: 1 // (1 - int(number)))
    tell(json.dumps(parity(weights)))
    calls = []

    def killed(params) -> float:
        calls.append(params)
        if number == "1" and len(calls) == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.0

    tell("waiting")
    fit(weights, checkpoint=folder, validate=killed)
    tell("nobody noticed")


if __name__ == "__main__":
    with processes.joined(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), patience=60):
        main(*sys.argv[3:])
