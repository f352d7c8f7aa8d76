r"""Elementwise losses: one value per element, which callers reduce; ``vmap`` lifts them from one pair to many.

The logistic pairwise loss is Eq. (2) of Yih, Toutanova, Platt and Meek 2011 (000). Its appendix prints the derivative
with the wrong sign in the exponent; the derivative of :math:`\log(1+e^{-\gamma\Delta})` used here is
:math:`-\gamma / (1 + e^{\gamma\Delta})`.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks


def logistic_pairwise(delta, *, gamma) -> jax.Array:
    r"""Logistic loss of a similarity difference, 000 Eq. (2).

    .. math:: L(\Delta) = \log(1 + \exp(-\gamma \Delta))

    Args:
      delta: any shape, floating: similarity of the better pair minus that of the worse pair.
      gamma: scalar scale (10 in the paper), broadcast against ``delta``.

    Returns:
      The shape of ``delta``, in nats; log 2 at 0; accurate for ``|gamma * delta|`` up to 1e4 and beyond.

    Raises:
      ValueError: for a number ``gamma`` that is not positive and finite; an array is taken as it is.

    Example:
      >>> round(float(logistic_pairwise(0.0, gamma=10.0)), 4)
      0.6931

    Relations: `all_pairs_logistic` is its mean over every negative of a batch.
    """
    if isinstance(gamma, int | float | np.generic):
        checks.positive(gamma, "gamma")
    return jax.nn.softplus(-gamma * jnp.asarray(delta))


def margin_ranking(positive, negative, *, margin: float = 1.0) -> jax.Array:
    r"""Margin ranking loss, 003 §2.3: :math:`\max(0, m - f(q, d^+) + f(q, d^-))`.

    Args:
      positive: any shape, floating: scores of relevant documents.
      negative: scores of irrelevant documents, broadcast against ``positive``.
      margin: ``m``, in units of the score.

    Returns:
      The broadcast shape, at least 0.

    Example:
      >>> float(margin_ranking(2.0, 1.5))
      0.5
    """
    return jax.nn.relu(margin - jnp.asarray(positive) + jnp.asarray(negative))


def squared(labels, scores) -> jax.Array:
    r"""Half squared error, 000 §3.2: :math:`\tfrac12 (y - s)^2`.

    Args:
      labels: any shape, floating.
      scores: broadcast against ``labels``.

    Returns:
      The broadcast shape, at least 0.

    Example:
      >>> float(squared(1.0, 0.0))
      0.5
    """
    return 0.5 * (jnp.asarray(labels) - jnp.asarray(scores)) ** 2


def log(labels, scores, *, bound: float = 1e-6) -> jax.Array:
    r"""Log loss of a score read as a probability, 004 Eq. (5).

    .. math:: -y \log s - (1 - y) \log(1 - s)

    Args:
      labels: any shape, 0 or 1 (or a probability).
      scores: broadcast against ``labels``; clipped to ``[bound, 1 - bound]``.
      bound: distance kept from 0 and 1.

    Returns:
      The broadcast shape, in nats, float32 or more.

    Example:
      >>> round(float(log(1.0, 0.5)), 4)
      0.6931

    Differs from the paper: a cosine may be 0 or negative, where the printed loss is undefined; the clip bounds it.
    """
    labels, scores = jnp.asarray(labels), jnp.asarray(scores)
    # In 16 bits ``1 - bound`` is 1.
    scores = jnp.clip(scores.astype(jnp.promote_types(scores.dtype, jnp.float32)), bound, 1 - bound)
    return -(labels * jnp.log(scores) + (1 - labels) * jnp.log1p(-scores))
