"""Starts of EM: the topics that a word belongs to before anything is learned, ``[num_terms, k]`` for each language."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks

NAMES = ("blocks", "soft", "hard")
"""`blocks`, the paper's; `soft` and `hard`, random."""


def make(frequencies: Sequence[np.ndarray], *, k: int, start: str, key: jax.Array | None, dtype) -> list[jax.Array]:
    """Shares of topics of every word.

    Args:
      frequencies: ``[num_terms]`` counts of the words of each language.
      k: topics.
      start: ``blocks``: words by falling frequency, cut into ``k`` blocks of as many words each (002, footnote 2).
        ``hard``: the blocks are drawn at random. ``soft``: the shares of a word are drawn from the uniform
        distribution over all shares.
      key: PRNG key of the random ones.
      dtype: of the shares.

    Returns:
      ``[num_terms, k]`` a language, whose rows sum to 1. Words that a language has not are in no topic.

    Raises:
      ValueError: for another start, a random one without a key, or fewer words in a language than topics.

    Example:
      >>> make([np.array([1, 9, 4, 2])], k=2, start="blocks", key=None, dtype=float)[0].tolist()
      [[0.0, 1.0], [1.0, 0.0], [1.0, 0.0], [0.0, 1.0]]
    """
    checks.expect(start in NAMES, "start", f"one of {', '.join(NAMES)}", start)
    checks.positive_int(k, "k")
    checks.expect(start == "blocks" or key is not None, "key", f"a PRNG key, for the start {start!r}", "None")
    if key is not None:
        checks.random_key(key)
    shares = []
    for i, counts in enumerate(frequencies):
        used = np.flatnonzero(counts > 0)
        checks.between(k, "k", used.size, f"words of views[{i}]")
        own = None if key is None else jax.random.fold_in(key, i)
        if start == "soft":
            drawn = np.asarray(jax.random.dirichlet(own, jnp.ones(k, dtype), (used.size,)))
        else:
            order = np.argsort(-counts[used], kind="stable") if start == "blocks" else np.asarray(
                jax.random.permutation(own, used.size))
            drawn = np.zeros((used.size, k))
            drawn[order, np.arange(used.size) * k // used.size] = 1
        whole = np.zeros((counts.size, k), dtype)
        whole[used] = drawn
        shares.append(jnp.asarray(whole))
    return shares
