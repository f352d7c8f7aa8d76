"""Starts of EM: the topics that a word belongs to before anything is learned, ``[num_terms, k]`` for each language."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse import host

NAMES = ("blocks", "soft", "hard")
"""`blocks`, the paper's; `soft` and `hard`, random."""
DRAWS = 2
"""How often `soft` has been made to draw other numbers from the same key, and one: fits kept by experiments read it."""


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
        checks.between(k, "k", used.size, f"words of views[{i}]" if len(frequencies) > 1 else "words")
        own = None if key is None else jax.random.fold_in(key, i)
        whole = host.empty((counts.size, k), dtype)
        whole[:] = 0
        if start == "soft":
            whole[used] = _uniform_shares(own, used.size, k, dtype)
        else:
            order = np.argsort(-counts[used], kind="stable") if start == "blocks" else np.asarray(
                jax.random.permutation(own, used.size))
            whole[used[order], np.arange(used.size) * k // used.size] = 1
        shares.append(jax.device_put(whole))
    return shares


@functools.partial(jax.jit, static_argnames=("rows", "k", "dtype"))
def _uniform_shares(key: jax.Array, rows: int, k: int, dtype) -> jax.Array:
    """Rows drawn from the uniform distribution over all shares: exponential numbers by their sum.

    `jax.random.dirichlet` gives the same distribution by rejection, in far more time on a CPU.
    """
    drawn = jax.random.exponential(key, (rows, k), dtype)
    drawn = jnp.maximum(drawn, jnp.finfo(drawn.dtype).eps / 2)  # 0 is drawn at times, in place of what is below this
    return drawn / drawn.sum(axis=1, keepdims=True)
