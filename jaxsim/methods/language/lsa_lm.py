r"""An n-gram model mixed with latent semantic analysis (completion §4.3).

.. math:: p(w | h) = (1 - \lambda) p_{ng}(w | h) + \lambda p_{lsa}(w | h),
   \quad p_{lsa}(w | h) = \frac{\cos(h, w) - m}{\sum_q (\cos(h, q) - m)}, \quad m = \min_w \cos(h, w)

where h is the sum of the vectors of the words before w in its sentence. Words without a vector have no share of p_lsa.
A choice changes every probability after it.

Differs from the paper: the paper calls the n-gram model's weight λ; here λ is that of the words' space (0.1 there).
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.data.corpora.questions import Filled
from jaxsim.methods.language.lsa_totsim import WordVectors

__all__ = ["VERSION", "history_shares", "mixed"]

VERSION = 1
_BLOCK = 1024  # histories at once


@jax.jit
def _shares(units: jax.Array, histories: jax.Array, words: jax.Array) -> jax.Array:
    """p_lsa of one word after each history, among words with a vector; all are equal after a history without one."""
    known = jnp.any(units != 0, axis=1)
    cosines = histories @ units.T / jnp.maximum(jnp.linalg.norm(histories, axis=1, keepdims=True), 1e-30)
    above = jnp.where(known, cosines - cosines.min(axis=1, keepdims=True, where=known, initial=jnp.inf), 0)
    total = above.sum(axis=1)
    one = jnp.take_along_axis(above, words[:, None], axis=1)[:, 0]
    return jnp.where(total > 0, one / jnp.where(total > 0, total, 1), 1 / jnp.maximum(known.sum(), 1))


def history_shares(params: WordVectors, filled: Filled) -> np.ndarray:
    """p_lsa of every token after its sentence's start.

    Args:
      params: the word vectors.
      filled: the questions with every choice filled in.

    Returns:
      ``[num_questions, num_choices, width]`` float32; 0 where the token has no vector. Tokens before the first choice,
      after which all choices of a question have the same histories, have NaN.
    """
    tokens = filled.tokens.reshape(-1, filled.tokens.shape[-1])
    words = params.terms.words
    places = np.minimum(np.searchsorted(words, tokens), len(words) - 1)
    norms = np.linalg.norm(params.vectors, axis=1)
    known = (words[places] == tokens) & (norms[places] > 0)
    before = np.cumsum(filled.chosen.reshape(tokens.shape), axis=1) == 0
    asked = known & ~before
    row, column = np.nonzero(asked)
    units = jax.device_put(params.vectors / np.where(norms > 0, norms, 1)[:, None])
    values = []
    for begin in range(0, len(row), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        rows, first = np.unique(row[part], return_inverse=True)
        vectors = params.vectors[places[rows]] * known[rows][..., None]
        histories = (np.cumsum(vectors, axis=1) - vectors)[first, column[part]]
        padding = _BLOCK - len(histories)
        histories = np.pad(histories, ((0, padding), (0, 0)))
        asked_words = np.pad(places[row[part], column[part]], (0, padding))
        values.append(np.asarray(_shares(units, jnp.asarray(histories), jnp.asarray(asked_words)))[: _BLOCK - padding])
    shares = np.where(before, np.float32(np.nan), np.float32(0))
    shares[row, column] = np.concatenate(values) if values else np.zeros(0)
    return shares.reshape(filled.tokens.shape)


def mixed(log_probabilities, shares, filled: Filled, *, share: float = 0.1) -> np.ndarray:
    """Log-probability of the sentences under the mixture.

    Args:
      log_probabilities: ``[num_questions, num_choices, width]`` in nats, of an n-gram model.
      shares: as `history_shares` gives them.
      filled: the questions.
      share: λ, the weight of the words' space, from 0 to below 1.

    Returns:
      ``[num_questions, num_choices]`` float64; tokens before the choice, which are the same for all, do not count.

    Raises:
      ValueError: another λ, or other shapes.
    """
    checks.expect(0 <= share < 1, "share", "a number from 0 to below 1", share)
    logs, shares = np.asarray(log_probabilities, np.float64), np.asarray(shares, np.float64)
    checks.expect(logs.shape == shares.shape == filled.tokens.shape, "log_probabilities, shares",
                  f"shape {filled.tokens.shape}", f"{logs.shape}, {shares.shape}")  # fmt: skip
    counted = (filled.tokens >= 0) & ~np.isnan(shares)
    with np.errstate(divide="ignore"):
        values = np.log((1 - share) * np.exp(logs) + share * np.where(counted, shares, 0))
    return np.where(counted, values, 0).sum(axis=-1)
