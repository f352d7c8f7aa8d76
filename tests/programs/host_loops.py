"""A digest of what each loop of the host makes of made-up numbers, for test_host.py: ``python host_loops.py``."""

from __future__ import annotations

import hashlib

import jax
import numpy as np
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi, ssi_hash
from jaxsim.methods.topics import host as of_topics
from jaxsim.sparse import host

N, TERMS = 500, 50


def digest(*arrays) -> str:
    """The first digits of the digest of their bits."""
    return hashlib.sha256(b"".join(np.ascontiguousarray(array).tobytes() for array in arrays)).hexdigest()[:12]


def learned(fit, **options) -> str:
    """A digest of links of made-up documents, learned."""
    rows = sparse.from_scipy(scipy.sparse.random(40, TERMS, 0.3, format="csr", random_state=0, dtype=np.float32))
    links = [[i, (i + 1) % 40] for i in range(40)]
    found = fit(rows, rows, links, key=jax.random.key(0), triples=2000, max_iter=2, validate=lambda params: 0.0,
                patience=None, **options)
    return digest(*jax.tree.leaves(found.params), [entry["loss"] for entry in found.history])


if __name__ == "__main__":
    rng = np.random.default_rng(0)
    counts = scipy.sparse.csr_matrix(rng.poisson(1.0, (N, TERMS)).astype(float))
    for dtype in (np.float32, np.float64):
        rows = counts.astype(dtype)
        for k in (3, 40):
            theta, words = rng.dirichlet(np.ones(k), N).astype(dtype), rng.dirichlet(np.ones(k), TERMS).astype(dtype)
            for one in (theta, words):
                one.flags.writeable = False  # as NumPy has the arrays of JAX
            parts = of_topics.counts_of(rows)
            expected, ratios, _ = of_topics.of_documents(parts.documents, theta, words)
            print("documents", dtype.__name__, k, digest(expected, ratios))
            # One document at a time: the sum over all of them would round away what differs.
            alone = [of_topics.of_documents(of_topics.counts_of(rows[i]).documents, theta[i : i + 1], words)[2]
                     for i in range(N)]
            print("likelihood", dtype.__name__, k, digest(alone))
            print("words", dtype.__name__, k, digest(of_topics.of_words(parts, ratios, theta, words)))
            print("fold", dtype.__name__, k, digest(of_topics.fold(rows, words, prior=0.1, iterations=3)))
            print("product", dtype.__name__, k, digest(host.rows_product(rows, words)))
    print("ssi", learned(ssi.fit, k=4, learning_rate=0.1))
    print("ssi, Adagrad", learned(ssi.fit, k=4, adagrad=0.1, learning_rate=0.1))
    print("ssi_hash", learned(ssi_hash.fit, size=997, learning_rate=0.1))
