"""Made-up documents; whoever records figures on them calls them synthetic."""

from __future__ import annotations

import numpy as np
import scipy.sparse

DROPPED = 50  # most frequent terms that the papers drop, which flattens the head of Zipf's law


def documents(num_docs: int, num_terms: int, per_doc: int, *, seed: int, shared: int = 0, views: int = 1
              ) -> list[scipy.sparse.csr_matrix]:
    """Made-up documents of exactly ``per_doc`` distinct terms, drawn by Zipf's law without its head.

    Args:
      num_docs: documents a view.
      num_terms: size of the vocabulary.
      per_doc: distinct terms a document.
      seed: of the generator.
      shared: terms that the documents of one row have in common in all views.
      views: how many collections.

    Returns:
      One float32 CSR matrix ``[num_docs, num_terms]`` a view, rows of length one.
    """
    rng = np.random.default_rng(seed)
    needed = shared + views * (per_doc - shared)
    cumulative = np.cumsum(1.0 / (DROPPED + 1 + np.arange(num_terms)))
    pools = np.empty((num_docs, needed), np.int64)
    for row in range(num_docs):
        drawn = np.empty(0, np.int64)
        while drawn.size < needed:
            more = np.searchsorted(cumulative, rng.random(2 * needed) * cumulative[-1])
            drawn = np.unique(np.concatenate([drawn, more]))
        pools[row] = rng.permutation(drawn)[:needed]
    found = []
    for view in range(views):
        own = shared + view * (per_doc - shared)
        terms = np.sort(np.hstack([pools[:, :shared], pools[:, own : own + per_doc - shared]]), axis=1)
        values = rng.lognormal(size=terms.shape)
        values = (values / np.linalg.norm(values, axis=1, keepdims=True)).astype(np.float32)
        pointers = np.arange(num_docs + 1) * per_doc
        found.append(scipy.sparse.csr_matrix((values.ravel(), terms.ravel(), pointers), shape=(num_docs, num_terms)))
    return found


def synthetic(name: str, **counts: int) -> dict:
    """The dataset of a record of made-up data."""
    return {"name": name, "sha256": None, "counts": counts, "groups": {}, "differs": "synthetic: a generator, one seed"}
