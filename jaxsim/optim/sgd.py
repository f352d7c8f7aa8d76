"""Stochastic gradient descent over minibatches by any optax transformation."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp

from jaxsim import checks
from jaxsim.optim import epochs
from jaxsim.optim.monitor import Fit, Run, dot, mark_of, start_of

if TYPE_CHECKING:
    import optax  # a tenth of a second, which only a fit has to wait for


_RATE = 0.01  # of the default optimizer


@functools.partial(jax.jit, static_argnames=("objective", "optimizer"), donate_argnames=("params", "opt_state"))
def _sgd_step(objective, optimizer, params, opt_state, batch):
    import optax

    value, grad = jax.value_and_grad(objective)(params, batch)
    updates, opt_state = optimizer.update(grad, opt_state, params)
    # Adam squares the gradient too. Without the barrier XLA writes these squares out, to use them for both.
    apart = jax.lax.optimization_barrier(grad)
    return optax.apply_updates(params, updates), opt_state, value, jnp.sqrt(dot(apart, apart))


def minimize_sgd(
    objective: Callable,
    params,
    batches: Callable[[jax.Array], Iterable],
    *,
    key: jax.Array,
    optimizer: optax.GradientTransformation | None = None,
    learning_rate: float | None = None,
    constants=None,
    label: str = "SGD",
    run: Run | None = None,
    **options,
) -> Fit:
    """Minimises the mean of ``objective(params, batch)`` over minibatches by an optax transformation.

    Args:
      objective: module-level function returning a scalar.
      params: pytree of floating arrays.
      batches: function of a key giving one epoch's batches, pytrees of arrays of constant shape (pad the last one).
      key: PRNG key; epoch ``e`` uses ``fold_in(key, e)``.
      optimizer: optax transformation; plain SGD at ``learning_rate`` unless given.
      learning_rate: of the default optimizer, .01 unless given. Beside an ``optimizer`` it is what tells a checkpoint
        of another one; without it the optimizer's own functions and numbers do, so that one whose rate depends on
        ``max_iter`` is not continued with more epochs.
      constants: pytree of arrays that batches are made of, by which a checkpoint of another problem is told, beside
        ``batches`` itself and what it holds on to; None where these and the start tell it.
      label: name on the bar.
      run: how long it runs, by what score, and where it is kept; 10 epochs and a checkpoint after each by default.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit`; loss and gradient norm of an entry are means over the epoch's batches, NaN before the first;
      ``converged`` is True only if patience ran out.

    Raises:
      ValueError: for bad settings, an empty epoch, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if the loss is not finite, naming the step (counted in batches) and the epoch.

    Example:
      >>> def objective(x, batch):
      ...     return jnp.mean((x - batch) ** 2)
      >>> fit = minimize_sgd(objective, jnp.zeros(()), lambda key: [jnp.ones(4)] * 50, key=jax.random.key(0),
      ...                    learning_rate=0.1, max_iter=2)
      >>> round(float(fit.params), 4)
      1.0
    """
    checks.random_key(key)
    run = Run.of(run, options)
    checks.expect(callable(batches), "batches", "a function of a key that gives an epoch's batches",
                  checks.a_kind(batches))  # fmt: skip
    if optimizer is None:
        learning_rate = _RATE if learning_rate is None else learning_rate
        optimizer = sgd(learning_rate)
    params = start_of(params)

    def epoch(state, number):
        params, opt_state = state
        total, norms, values = 0.0, 0.0, []
        for batch in batches(jax.random.fold_in(key, number)):
            params, opt_state, value, norm = _sgd_step(objective, optimizer, params, opt_state, batch)
            total, norms = total + value, norms + norm
            values.append(value)
        checks.expect(len(values) > 0, "batches", "at least one batch an epoch", 0)
        return (params, opt_state), values, float(total) / len(values), float(norms) / len(values)

    return epochs.run(
        epoch, (params, optimizer.init(params)),
        mark=lambda: mark_of((objective, batches, *(optimizer if learning_rate is None else ())), params,
                             jax.random.key_data(key), learning_rate, *([] if constants is None else [constants])),
        run=run, label=label,
    )


@functools.cache
def sgd(learning_rate: float, momentum: float = 0.0) -> optax.GradientTransformation:
    """Plain stochastic gradient descent, optax's, with heavy-ball momentum where there is any.

    Args:
      learning_rate: fixed.
      momentum: share of the last step that is taken again, in [0, 1).

    Returns:
      The optax transformation, the same object for equal arguments, so that one program serves all fits.

    Raises:
      ValueError: for a rate that is not positive, or a momentum outside [0, 1).

    Example:
      >>> sgd(0.1) is sgd(0.1)
      True
    """
    import optax

    checks.expect(0 < learning_rate < float("inf"), "learning_rate", "a positive number", learning_rate)
    checks.expect(0 <= momentum < 1, "momentum", "a number in [0, 1)", momentum)
    return optax.sgd(learning_rate, momentum=momentum or None)


@functools.cache
def adam(learning_rate: float, steps: int) -> optax.GradientTransformation:
    """Adam with a learning rate that falls to 0 along a cosine over ``steps``.

    Args:
      learning_rate: at the start.
      steps: batches until it is 0.

    Returns:
      The optax transformation, the same object for equal arguments, so that one program serves all fits.

    Example:
      >>> adam(0.1, 10) is adam(0.1, 10)
      True
    """
    import optax

    # Optax would make a float of the steps when it is first traced, and a checkpoint's mark of it another one.
    return optax.adam(optax.cosine_decay_schedule(learning_rate, float(steps)))


@functools.cache
def adagrad(learning_rate: float, start: float) -> optax.GradientTransformation:
    """Adagrad: a step is divided by the root of the sum of an entry's squared gradients.

    Args:
      learning_rate: fixed.
      start: at which the sums start, above 0.

    Returns:
      The optax transformation, the same object for equal arguments, so that one program serves all fits.

    Raises:
      ValueError: for a rate or a start that is not positive.

    Example:
      >>> adagrad(0.1, 0.01) is adagrad(0.1, 0.01)
      True
    """
    import optax

    checks.expect(0 < learning_rate < float("inf"), "learning_rate", "a positive number", learning_rate)
    checks.expect(0 < start < float("inf"), "start", "a positive number", start)
    return optax.adagrad(learning_rate, initial_accumulator_value=start, eps=0.0)
