"""Mixtures of spaces: weighted sums of their cosines, with weights chosen on questions for development."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, optim
from jaxsim.optim import Fit, Run


def mix(cosines: np.ndarray, weights: Sequence[float]) -> np.ndarray:
    """Weighted sum of cosines; a space that does not know a pair has no say in it.

    Args:
      cosines: ``[num_spaces, ...]``; NaN where a space does not know a word.
      weights: ``[num_spaces]``, not all 0.

    Returns:
      ``[...]`` float64; NaN where no space that counts knows the pair.

    Example:
      >>> mix(np.array([[-0.5, np.nan], [1.0, 0.25]]), [1.0, 0.5]).tolist()
      [0.0, 0.125]
    """
    cosines, weights = np.asarray(cosines, np.float64), np.asarray(weights, np.float64)
    checks.expect(weights.shape == cosines.shape[:1], "weights", f"{cosines.shape[0]} (as spaces)", weights.shape)
    checks.expect(bool(np.isfinite(weights).all() and weights.any()), "weights", "finite numbers, one other than 0",
                  weights.tolist())
    used = weights != 0
    known = ~np.isnan(cosines[used])
    total = np.tensordot(weights[used], np.where(known, cosines[used], 0.0), axes=1)
    return np.where(known.any(axis=0), total, np.nan)


class Choices(NamedTuple):
    """Questions as the objective sees them.

    Attributes:
      cosines: ``[num_spaces, n, c]``; 0 where a space does not know a pair.
      known: ``[n, c]`` booleans: whether any space does.
      answer: ``[n]`` int32 places of the right choices.
      l2: scalar, weight of ``½‖w‖²``.
    """

    cosines: jax.Array
    known: jax.Array
    answer: jax.Array
    l2: jax.Array


def objective(weights: jax.Array, data: Choices) -> jax.Array:
    """Mean log loss of the right choice, if a choice is as likely as exp(-its mixed cosine), and a penalty.

    Args:
      weights: ``[num_spaces]``.
      data: the questions.

    Returns:
      Scalar, in nats; convex.
    """
    scores = jnp.where(data.known, -jnp.tensordot(weights, data.cosines, axes=1), -jnp.inf)
    right = jax.nn.log_softmax(scores, axis=1)[jnp.arange(scores.shape[0]), data.answer]
    return -jnp.mean(right) + data.l2 * jnp.sum(weights**2) / 2


def fit(cosines: np.ndarray, answer, *, l2: float = 1e-3, run: Run | None = None, **options) -> Fit:
    """Learns the weights of spaces from questions for development, by L-BFGS.

    Args:
      cosines: ``[num_spaces, n, c]``; NaN where a space does not know a pair.
      answer: ``[n]`` places of the right choices. Questions whose right choice no space knows teach nothing.
      l2: weight of ``½‖w‖²``.
      run: how the fit runs; 200 iterations, tolerance 1e-5, unless it says otherwise.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of ``[num_spaces]`` weights; one may be negative. Only their ratios matter to `mix`.

    Raises:
      ValueError: for shapes that do not agree, or no question to learn from.

    Example:
      >>> both = np.array([[[-0.9, 0.1], [0.2, -0.8]], [[0.3, 0.2], [-0.1, 0.1]]])  # the second space is of no use
      >>> weights = fit(both, [0, 1]).params
      >>> bool(weights[0] > 3 * abs(weights[1]))
      True
    """
    run = Run.of(run, options, Run(max_iter=200, tol=1e-5))
    cosines = np.asarray(cosines, np.float64)
    checks.expect(cosines.ndim == 3, "cosines", "shape (spaces, questions, choices)", cosines.shape)
    checks.expect(l2 >= 0, "l2", "at least 0", l2)
    answer = checks.targets(answer, *cosines.shape[1:])
    known = ~np.isnan(cosines).all(axis=0)
    usable = known[np.arange(len(answer)), answer]
    checks.expect(bool(usable.any()), "cosines", "a question whose right choice is known", "none")
    data = Choices(jnp.asarray(np.nan_to_num(cosines[:, usable])), jnp.asarray(known[usable]),
                   jnp.asarray(answer[usable], jnp.int32), jnp.asarray(l2))
    return optim.minimize_lbfgs(objective, jnp.ones(cosines.shape[0]), data, run=run)
