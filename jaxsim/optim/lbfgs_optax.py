"""L-BFGS by optax: the second solver behind `minimize_lbfgs`, for the day jaxopt no longer imports.

optax's two-loop recursion gives the direction and its zoom line search (strong Wolfe conditions) the length. It copies
the history at every step and keeps no checkpoints.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import optax

from jaxsim.optim.monitor import Fit, Monitor, Run, dot, evaluate, expect_finite, expect_gradient, first_scale


def _solver(history_size: int, max_linesearch: int):
    """The direction, up to its sign, and the line search."""
    return (optax.scale_by_lbfgs(memory_size=history_size, scale_init_precond=False),
            optax.scale_by_zoom_linesearch(max_linesearch, initial_guess_strategy="one"))


def _typed(tree):
    """The arrays of a tree, none of them of a weak type."""
    return jax.tree.map(lambda leaf: jnp.asarray(leaf, leaf.dtype), tree)


@functools.partial(jax.jit, static_argnames=("objective", "sizes"))
def _step(objective, sizes, scale, params, value, grad, states, data):
    """One iteration; ``scale`` is that of the direction."""
    precondition, search = _solver(*sizes)
    direction, history = precondition.update(grad, states[0], params)
    direction = jax.tree.map(lambda d: (-scale * d).astype(d.dtype), direction)
    change, found = search.update(direction, states[1], params, value=value, grad=grad,
                                  value_fn=lambda params: objective(params, data))
    failed = (found.info.decrease_error > 0) | (found.info.curvature_error > 0)
    norm = jnp.sqrt(dot(found.grad, found.grad))
    params = optax.apply_updates(params, change)
    return params, found.value, found.grad, (history, found), norm, found.info.num_linesearch_steps, failed


def minimize(objective: Callable, params, data, *, max_linesearch: int, label: str, run: Run) -> Fit:
    """Minimises ``objective(params, data)``, as `minimize_lbfgs` describes it.

    Args:
      objective: as for `minimize_lbfgs`.
      params: pytree of arrays, the start.
      data: as for `minimize_lbfgs`.
      max_linesearch: largest number of evaluations a line search.
      label: name on the bar.
      run: every field but ``checkpoint`` and ``checkpoint_every`` counts.

    Returns:
      `Fit`, as `minimize_lbfgs` gives it.

    Raises:
      NotImplementedError: for a checkpoint.
      FloatingPointError: if the loss is not finite, naming the step.

    Example:
      >>> from jaxsim import optim
      >>> fit = optim.minimize_lbfgs(lambda x, data: jnp.sum((x - data) ** 2), jnp.zeros(2), jnp.array([1.0, 2.0]),
      ...                            solver="optax")
      >>> [round(float(x), 4) for x in fit.params]
      [1.0, 2.0]
    """
    if run.checkpoint is not None:
        raise NotImplementedError("checkpoint: expected None with solver=\"optax\" (jaxopt keeps them), "
                                  f"got {run.checkpoint}")
    monitor, params = Monitor(run, label), _typed(params)
    value, grad, norm = evaluate(objective, params, data)
    expect_finite(float(value), 0, label)
    expect_gradient(float(norm), 0, label)
    sizes = run.history_size, max_linesearch
    # A number without a type of its own would get one in the first step, and the second would compile again.
    states = _typed(tuple(part.init(params) for part in _solver(*sizes)))
    step, evaluations = 0, 1
    monitor.record(step, float(value), float(norm), evaluations, params)
    scale = first_scale(params, norm, run.first_step).astype(value.dtype)
    while step < run.max_iter and float(norm) > run.tol and not monitor.exhausted(step):
        new_params, new_value, grad, states, norm, used, failed = _step(objective, sizes, scale, params, value, grad,
                                                                        states, data)
        step, evaluations, scale = step + 1, evaluations + int(used), jnp.ones_like(value)
        expect_finite(float(new_value), step, label)
        if bool(failed) and not float(new_value) < float(value):
            monitor.history[-1].update(stop="line search failed", evaluations=evaluations)
            break
        expect_gradient(float(norm), step, label)
        params, value = new_params, new_value
        monitor.record(step, float(value), float(norm), evaluations, params)
        if bool(failed):
            monitor.history[-1]["line_search_failed"] = True
    return monitor.result(params, monitor.history[-1]["grad_norm"] <= run.tol)
