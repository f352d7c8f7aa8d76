"""Fits of SSI for test_ssi_full.py, slow enough to be killed: ``python ssi_until_stopped.py FOLDER KIND``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import jax
import numpy as np
import scipy.sparse


def train(kind, folder=None, *, wait=0.0):
    """Learns links of made-up documents, a checkpoint an epoch."""
    from jaxsim import terms
    from jaxsim.methods import ssi, ssi_full

    rng = np.random.default_rng(0)
    documents = rng.random((15, 20)) * (rng.random((15, 20)) < 0.4) + 1e-3
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    side = terms.from_scipy(scipy.sparse.csr_matrix(documents))
    links = [[i, (i + 1) % 15] for i in range(15)]

    def validate(params):
        time.sleep(wait)
        return -abs(sum(float(np.abs(np.asarray(leaf)).sum()) for leaf in jax.tree.leaves(params)) - 100.0)

    options = {"key": jax.random.key(0), "known": [[i, i] for i in range(15)], "triples": 70, "max_iter": 8,
               "checkpoint": folder, "validate": validate, "learning_rate": 0.1}
    return ssi.fit(side, side, links, k=3, **options) if kind == "low rank" else ssi_full.fit(
        side, side, links, **options)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent.parent))
    jax.config.update("jax_enable_x64", True)
    train(sys.argv[2], sys.argv[1], wait=0.3)
