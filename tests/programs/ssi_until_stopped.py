"""Fits of SSI for test_ssi_killed.py, slow enough to be killed: ``python ssi_until_stopped.py FOLDER KIND``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

N, EPOCHS = 15, 8
KINDS = ("low rank", "symmetric", "adagrad", "batch", "diagonal", "full", "sparse", "l1", "hash", "multitask",
         "preferred")  # fmt: skip


def side(rng, num_terms):
    """Made-up documents of unit length."""
    from jaxsim import sparse

    result = rng.random((N, num_terms)) * (rng.random((N, num_terms)) < 0.4) + 1e-3
    return sparse.from_scipy(scipy.sparse.csr_matrix(result / np.linalg.norm(result, axis=1, keepdims=True)))


def train(kind, folder=None, *, wait=0.0):
    """Learns links of made-up documents, a checkpoint an epoch; the fit, and how often it was validated."""
    from jaxsim.methods import ssi, ssi_batch, ssi_diag, ssi_full, ssi_hash, ssi_multitask, ssi_preferred, ssi_sparse

    rng, calls = np.random.default_rng(0), []
    one, other = side(rng, 20), side(rng, 12)
    links, own = ([[i, (i + j) % N] for i in range(N)] for j in (1, 0))

    def validate(params):
        time.sleep(wait)
        calls.append(params)
        # Grows as it learns, so that the best epoch is none of the first.
        return sum(float(np.square(np.asarray(leaf)).sum()) for leaf in jax.tree.leaves(params))

    init = ssi_sparse.Sparse(jnp.tile(jnp.arange(6, dtype=jnp.int32), (20, 1)), jnp.zeros((20, 6)), jnp.asarray(1.0))
    fit, given, options = {
        "low rank": (ssi.fit, (one, one, links), {"k": 3}),
        "symmetric": (ssi.fit, (one, one, links), {"k": 3, "symmetric": True}),
        "adagrad": (ssi.fit, (one, one, links), {"k": 3, "adagrad": 0.1}),
        "batch": (ssi_batch.fit, (one, one, links), {"k": 3, "batch": 4}),
        "diagonal": (ssi_diag.fit, (one, one, links), {"identity": 1.0}),
        "full": (ssi_full.fit, (one, one, links), {}),
        "sparse": (ssi_sparse.fit, (one, one, links), {"init": init}),
        "l1": (ssi_sparse.fit, (one, one, links), {"init": init, "l1": 1e-3}),
        "hash": (ssi_hash.fit, (one, one, links), {"size": 31}),
        "multitask": (ssi_multitask.fit, (other, one, links, one, links), {"k": 3, "same_known": own}),
        "preferred": (ssi_preferred.fit, (one, one, links, own), {"k": 3}),
    }[kind]
    known = {} if kind in ("multitask", "preferred") else {"known": own}
    return fit(*given, key=jax.random.key(0), triples=70, max_iter=EPOCHS, checkpoint=folder, validate=validate,
               learning_rate=0.1, **known, **options), len(calls)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[2]))
    jax.config.update("jax_enable_x64", True)
    train(sys.argv[2], sys.argv[1], wait=0.5)
