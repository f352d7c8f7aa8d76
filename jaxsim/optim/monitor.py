"""What both optimisers share: the result of a fit, its history, progress, validation and patience."""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim import checks
from jaxsim.optim import checkpoints


class Fit(NamedTuple):
    """What every ``fit`` returns.

    Attributes:
      params: the fitted parameters (those of the best validation score where there is one).
      loss: objective at ``params``; NaN for closed forms.
      grad_norm: Euclidean norm of its gradient there; NaN for closed forms and where it was not computed.
      converged: whether the gradient norm reached the tolerance; True for closed forms.
      steps: iterations made; 0 for closed forms.
      evaluations: value-and-gradient evaluations made.
      history: one dict an iteration: step, loss, grad_norm, evaluations, validation, seconds (since the start).
    """

    params: Any
    loss: float
    grad_norm: float
    converged: bool
    steps: int
    evaluations: int
    history: list[dict]


def closed_form(params) -> Fit:
    """The `Fit` of a method without an iterative objective.

    Args:
      params: the fitted parameters.

    Returns:
      `Fit` with loss NaN, steps 0, converged True.

    Example:
      >>> closed_form(None).converged
      True
    """
    return Fit(params, float("nan"), float("nan"), True, 0, 0, [])


def dot(a, b) -> jax.Array:
    """Inner product of two pytrees."""
    return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


class Monitor:
    """History, progress, validation and patience, shared by both optimisers."""

    def __init__(self, total: int, *, validate, patience, checkpoint_every: int, progress: bool, label: str,
                 tol: float = 0.0):
        """Checks settings, which are those of `minimize_lbfgs`, and opens the bar."""
        checks.whole(total, "max_iter", 0)
        checks.whole(patience, "patience", 1, or_none=True)
        checks.whole(checkpoint_every, "checkpoint_every", 1)
        checks.expect(tol >= 0, "tol", "a number of at least 0", tol)
        self.validate, self.patience = validate, patience
        self.history: list[dict] = []
        self.best_score, self.best_step, self.best_params = -np.inf, 0, None
        self.earlier, self.started = 0.0, time.perf_counter()
        self.bar = tqdm(total=total, desc=label, disable=None if progress else True, leave=True)

    def seconds(self) -> float:
        """Seconds of work so far, earlier runs included."""
        return self.earlier + time.perf_counter() - self.started

    def record(self, step: int, loss: float, grad_norm: float, evaluations: int, params) -> None:
        """Scores the parameters after a step and notes it in history and bar."""
        entry = {"step": step, "loss": loss, "grad_norm": grad_norm, "evaluations": evaluations, "validation": None}
        if self.validate is not None:
            score = float(self.validate(params))
            checks.expect(score == score, "validate", f"a number after step {step}", score)
            entry["validation"] = score
            if score > self.best_score:
                self.best_score, self.best_step, self.best_params = score, step, params
        entry["seconds"] = self.seconds()
        self.history.append(entry)
        shown = {"loss": f"{loss:.5f}"}
        if entry["validation"] is not None:
            shown["dev"] = f"{entry['validation']:.4f}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(step - self.bar.n)

    def exhausted(self, step: int) -> bool:
        """Whether patience has run out."""
        return self.validate is not None and self.patience is not None and step - self.best_step >= self.patience

    def meta(self) -> dict:
        """What a checkpoint notes beside the arrays."""
        return {"history": [*self.history], "best_score": self.best_score, "best_step": self.best_step,
                "seconds": self.seconds()}

    def restore(self, meta: dict, best_params) -> None:
        """Goes on from a checkpoint's notes."""
        self.history, self.best_score, self.best_step = meta["history"], meta["best_score"], meta["best_step"]
        self.best_params, self.earlier = best_params, meta["seconds"]
        self.bar.update(self.history[-1]["step"] - self.bar.n)

    def result(self, params, converged: bool) -> Fit:
        """The `Fit` of the best parameters, or of the last where nothing was validated."""
        self.bar.close()
        last = self.history[-1]
        chosen = last
        if self.best_params is not None:
            params, chosen = self.best_params, self.history[self.best_step]
        return Fit(params, chosen["loss"], chosen["grad_norm"], converged, last["step"], last["evaluations"],
                   self.history)


def mark_of(objective, *trees) -> str:
    """Fingerprint of a problem: objective, static settings (without memory addresses) and arrays."""
    name = getattr(objective, "__qualname__", type(objective).__name__)
    shape = re.sub(r" at 0x[0-9a-f]+", "", str(jax.tree.structure(trees)))
    return checkpoints.fingerprint([name, shape], trees)


def expect_finite(value: float, step: int | str, what: str) -> None:
    """Raises FloatingPointError naming the step if a loss is not finite."""
    if not np.isfinite(value):
        raise FloatingPointError(f"{what}: expected a finite loss, got {value} at step {step}; "
                                 "check the input for extreme values, or lower the step size")
