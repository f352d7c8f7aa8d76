"""Refuses starts whose gradient is zero because the model gives all documents the same vector."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp

from jaxsim import checks
from jaxsim.optim import Fit
from jaxsim.sparse import Terms

_SMALL = 1e-2  # of gamma: below, cosines that differ hardly show in the loss


def learnable(
    found: Fit, left: Terms, right: Terms, *, collapsed: Sequence[float], gamma: float | None = None
) -> Fit:
    """Passes a fit on unless it ended at its start and there at the loss of a collapsed model.

    Args:
      found: what the optimiser returned.
      left: left documents.
      right: right documents.
      collapsed: losses of models that tell no documents apart; a loss of 0 is never refused.
      gamma: scale of the cosines in the loss, if it has one; where it is small, every start has a loss near these.

    Returns:
      ``found``.

    Raises:
      ValueError: naming the side that has no words, or else a small ``gamma``, or else the start.
    """
    loss, norm = found.history[0]["loss"], found.history[0]["grad_norm"]
    if found.steps == 0 and found.converged and loss > 0 and any(abs(loss - one) <= 1e-4 * one for one in collapsed):
        for name, side in (("left", left), ("right", right)):
            checks.expect(bool(jnp.any(side.values != 0)), name, "documents with words", "only empty documents")
        checks.expect(gamma is None or gamma >= _SMALL, "gamma",
                      "a scale that lets the loss tell documents apart (10, say)", gamma)  # fmt: skip
        checks.expect(False, "init", "a start from which there is a gradient (cosines that are not all equal)",
                      f"loss {loss:.4g}, gradient norm {norm:.1g}")
    return found
