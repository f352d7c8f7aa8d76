"""The loop over epochs that the stochastic optimisers share: history, early stopping, checkpoints, Ctrl-C."""

from __future__ import annotations

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.optim import checkpoints
from jaxsim.optim.monitor import Fit, Monitor, Run, expect_finite

RUN = Run(max_iter=10, checkpoint_every=1)
"""The defaults of optimisers that go through their examples epoch by epoch."""


def run(
    epoch: Callable,
    state: tuple,
    *,
    mark: Callable[[], str],
    run: Run | None,
    label: str,
    shared: bool = False,
) -> Fit:
    """Runs epochs until they are all done or patience runs out, from a checkpoint where there is one.

    Args:
      epoch: function of state and epoch number (from 0) giving ``(state, losses, loss, grad_norm)``: the new state
        (the old one may be donated), the losses of its steps ``[number]``, their mean, and the mean gradient norm or
        NaN.
      state: pytrees of arrays, of which the first are the parameters; they are copied before the first epoch.
      mark: gives the fingerprint of the problem; called only for checkpoints.
      run: how long, by what score, and where it is kept; `RUN` where it says nothing.
      label: name on the bar.
      shared: whether several processes do this together; checkpoints are those of all of them.

    Returns:
      `Fit`; ``converged`` is True only if patience ran out.

    Raises:
      ValueError: for bad settings, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if a loss is not finite, naming the step and the epoch, or the parameters are NaN in the end.
    """
    # Updates are donated, so the caller's arrays are copied once.
    state = jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), state)
    run = Run.of(run, {}, RUN)
    run.expect_only(label, "max_iter", "validate", "patience", "checkpoint", "checkpoint_every", "progress",
                    "callback")
    monitor = Monitor(run, label, shared=shared)
    step, evaluations = 0, 0
    folder = found = None
    if run.checkpoint is not None:
        folder, found = checkpoints.prepare(run.checkpoint, shared=shared), mark()
        saved = checkpoints.load(folder, (*state, state[0]), fingerprint=found, shared=shared)
        if saved is not None:
            (*state, best), meta = jax.tree.map(jnp.asarray, saved[0]), saved[1]
            state = tuple(state)
            monitor.restore(meta, best, jax.tree.map(jnp.copy, state[0]))
            step, evaluations = monitor.history[-1]["step"], monitor.history[-1]["evaluations"]
    if not monitor.history:
        monitor.record(0, float("nan"), float("nan"), 0, jax.tree.map(jnp.copy, state[0]))
    unsaved = None
    try:
        while step < run.max_iter and not monitor.exhausted(step):
            state, losses, loss, norm = epoch(state, step)
            _expect_losses(losses, loss, evaluations, step, label)
            step, evaluations = step + 1, evaluations + len(losses)
            monitor.record(step, loss, norm, evaluations, jax.tree.map(jnp.copy, state[0]))
            if folder is None:
                continue
            best = state[0] if monitor.best_params is None else monitor.best_params
            # A copy, because the next epoch's steps donate these arrays.
            unsaved = jax.tree.map(jnp.copy, (*state, best)), {**monitor.meta(), "fingerprint": found}
            if step % run.checkpoint_every == 0 or step == run.max_iter:
                checkpoints.save(folder, *unsaved, shared=shared)
                unsaved = None
    except KeyboardInterrupt:
        if unsaved is not None and not shared:
            checkpoints.save(folder, *unsaved)
        raise
    if monitor.best_params is None:
        _expect_numbers(state[0], step, label)
    return monitor.result(state[0], monitor.exhausted(step))


def _expect_losses(losses, loss: float, evaluations: int, step: int, label: str) -> None:
    """Refuses a mean that is not finite, naming the first step whose loss is not."""
    if not np.isfinite(loss):
        first = int(np.argmin(np.isfinite([*losses[:-1], loss])))
        value = loss if first == len(losses) - 1 else float(losses[first])
        expect_finite(value, f"{evaluations + first + 1} (epoch {step + 1})", label)


def _expect_numbers(params, step: int, label: str) -> None:
    """Refuses NaN in the end: a loss is that before its step, so the last step's own result has been in none."""
    if any(bool(jnp.isnan(leaf).any()) for leaf in jax.tree.leaves(params)):
        raise FloatingPointError(f"{label}: expected parameters that are numbers, got NaN after epoch {step}; "
                                 "check the input for extreme values, or lower the step size")
