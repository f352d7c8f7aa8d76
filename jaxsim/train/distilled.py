"""``train --distill``: what was trained learns to rank as it does together with the bare terms (`distillation`)."""

from __future__ import annotations

import numbers
import time
from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse
from jaxsim.evaluate import mates
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import distillation, projections
from jaxsim.optim import Fit, checkpoints
from jaxsim.sparse import Terms
from jaxsim.train.settings import Parts, Settings

METHODS = ("s2net", "opca", "lsa")
"""Methods of one linear projection for both sides."""
MOST = 4_096
"""Texts a side that are ranked, drawn at random where there are more."""


def expect_possible(settings: Settings) -> None:
    """Checks ``distill`` and what it excludes.

    Args:
      settings: of a training.

    Raises:
      ValueError: for a share out of [0, 1), or with another method, an activation or shared terms.

    Example:
      >>> expect_possible(Settings(method="opca", distill=0.5))
    """
    share, method = settings.distill, settings.method
    checks.expect(isinstance(share, numbers.Real) and 0 <= share < 1, "distill", "a share in [0, 1)", share)
    if share:
        checks.expect(method in METHODS, "distill", f"0, for {method} (it is for {', '.join(METHODS)})", share)
        checks.expect(settings.activation == "none", "activation", "none, with distill", settings.activation)
        checks.expect(not settings.shard_terms, "shard_terms", "False, with distill", settings.shard_terms)


def distilled(fit: Fit, parts: Parts, slotted: Sequence[sp.csr_matrix] | None, *, words: int,
              spread: sp.csr_matrix | None) -> Fit:
    """A fit with the projection that was distilled from it and the bare terms.

    Args:
      fit: of one `Projection`.
      parts: what it was fitted on; ``parts.told["distilled"]`` is told the loss in the first epoch and in the last,
        and the held-out pairs' scores without it.
      slotted: training texts of both sides in slots (`subwords.slots`); None: slots are terms.
      words: the slots that are words.
      spread: what slots are made of (`Subwords.spread`), or None.

    Returns:
      ``fit``, but for the parameters.

    Raises:
      ValueError: for a damaged checkpoint.
    """
    begun = time.perf_counter()
    share = parts.settings.distill
    *of_sides, key = jax.random.split(jax.random.key(parts.settings.seed), 3)
    rows = [_some(side, one) for side, one in zip(parts.train, of_sides, strict=True)]
    sides = [sparse.take(side, some) for side, some in zip(parts.train, rows, strict=True)] if slotted is None else [
        sparse.from_scipy(side[some]) for side, some in zip(slotted, rows, strict=True)]  # fmt: skip
    checkpoint = None
    if parts.checkpoint is not None:
        # What was trained may be trained on; its distillation so far is of no use then, and must not be in the way.
        mark = checkpoints.fingerprint(fit.params)[:12]
        checkpoint = Path(parts.checkpoint) / f"checkpoint.distilled-{share:g}-{mark}"
    found = distillation.fit(
        *sides, base=fit.params, share=share, key=key, spread=spread, words=words, progress=parts.progress,
        checkpoint=checkpoint, precision=parts.settings.precision,
    )  # fmt: skip
    losses = [entry["loss"] for entry in found.history[1:]]
    if losses[-1] >= losses[0]:
        parts.say(f"the loss did not fall ({losses[0]:.4g} in the first epoch, {losses[-1]:.4g} in the last): leave "
                  "--distill out")
    told = {"share": share, "first_loss": round(losses[0], 6), "last_loss": round(losses[-1], 6),
            "seconds": round(time.perf_counter() - begun, 1)}  # fmt: skip
    if parts.validate is not None:
        before, after = (float(parts.validate(params)) for params in (fit.params, found.params))
        sides = (projections.encode(fit.params, side) for side in parts.dev)
        told |= {f"undistilled_{name}": round(value, 4) for name, value in mates.scores(*sides).items()}
        verdict = "" if after > before else " (no better: leave --distill out, unless searches of your own gain)"
        parts.say(f"mrr of held-out pairs {before:.4f} before, {after:.4f} distilled{verdict}")
    else:
        parts.say("no held-out pairs say whether it is any better distilled: compare searches of your own")
    parts.told["distilled"] = told
    return fit._replace(params=found.params)


def _some(side: Terms, key: jax.Array) -> np.ndarray:
    """Rows of distinct texts, at most `MOST`."""
    first, _ = distinct_rows(side)
    return first if len(first) <= MOST else np.sort(np.asarray(jax.random.permutation(key, first))[:MOST])
