"""A small fit for test_optim.py, slow enough to be killed from outside: ``python fit_until_stopped.py FOLDER KIND``."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

STEPS = {"lbfgs": 30, "sgd": 12, "rows": 12, "em": 12}


def objective(params, data):
    """A bent valley with as many dimensions as the data."""
    return jnp.sum(100 * (params["x"][1:] - params["x"][:-1] ** 2) ** 2 + (data - params["x"][:-1]) ** 2)


def batches(key):
    """Three batches of noisy targets."""
    return [1 + jax.random.normal(jax.random.fold_in(key, i), (7,)) / 10 for i in range(3)]


def neighbours(example, data):
    """The two coordinates that an example of the valley is about."""
    return {"x": example[0] + jnp.arange(2)}


def at_one_place(rows, example, data):
    """The valley between two neighbours."""
    here, there = rows["x"]
    return 100 * (there - here**2) ** 2 + (data * example[1] - here) ** 2


def chunks(key):
    """Two chunks of places and noisy targets."""
    for one in jax.random.split(key):
        yield jax.random.randint(one, (5,), 0, 7), 1 + jax.random.normal(one, (5,)) / 10


def validate(params) -> float:
    """A score that is best somewhere on the way."""
    if isinstance(params, tuple):
        return -abs(float(jnp.sum(params[0].words**2)) - 0.3)
    return -abs(float(jnp.sum(params["x"])) - 4.0)


def coupled_topics(options):
    """Topics of made-up pairs, by expectation maximisation."""
    from jaxsim import sparse
    from jaxsim.methods import cplsa

    rng = np.random.default_rng(0)
    views = [sparse.from_scipy(scipy.sparse.csr_matrix(rng.poisson(1.0, (9, 12)).astype(float))) for _ in range(2)]
    return cplsa.fit(views, k=3, start="soft", key=jax.random.key(0), each=2, **options)


def train(kind, folder=None, *, validate=validate, max_iter=None, every=3, patience=None):
    """Runs the fit of one kind, with checkpoints if there is a folder."""
    from jaxsim import optim

    start = {"x": jnp.asarray(np.linspace(-1.0, 1.0, 8))}
    options = dict(checkpoint=folder, checkpoint_every=every, max_iter=max_iter or STEPS[kind], validate=validate,
                   patience=patience)
    if kind == "lbfgs":
        return optim.minimize_lbfgs(objective, start, jnp.ones(7), tol=0.0, history_size=4, **options)
    if kind == "em":
        return coupled_topics(options)
    if kind == "rows":
        return optim.minimize_rows(at_one_place, start, chunks, rows=neighbours, data=jnp.ones(()),
                                   key=jax.random.key(3), learning_rate=5e-4, **options)
    return optim.minimize_sgd(objective, start, batches, key=jax.random.key(3), learning_rate=5e-4, **options)


def _slowly(params) -> float:
    with open(f"{sys.argv[1]}.calls", "a") as file:
        file.write("x")
    time.sleep(0.15)
    return validate(params)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    jax.config.update("jax_enable_x64", True)
    train(sys.argv[2], sys.argv[1], validate=_slowly, every=int(sys.argv[3]))
