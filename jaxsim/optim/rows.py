"""Stochastic gradient descent on large tables, where an example needs a few rows: a step costs as much as these rows.

The tables are the carry of a compiled scan over a chunk of examples and are donated, so that every update writes into
them in place. Anything that would copy them (a dense gradient, a ``where`` on a table, a ``cond`` outside a scan, a
view held on the host) is avoided.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.optim import epochs
from jaxsim.optim.monitor import Fit, Run, mark_of


@functools.partial(jax.jit, static_argnames=("objective", "rows"), donate_argnames=("params",))
def scan_chunk(objective: Callable, rows: Callable, params, data, chunk, learning_rate):
    """One compiled loop over a chunk of examples, each of which updates its rows.

    Args:
      objective: as for `minimize_rows`.
      rows: as for `minimize_rows`.
      params: pytree of tables; donated.
      data: pytree of arrays.
      chunk: pytree of arrays whose first axis is the examples.
      learning_rate: scalar.

    Returns:
      ``(params, losses)``, the loss of every example before its update.
    """

    def step(tables, example):
        where = rows(example, data)
        gathered = jax.tree.map(lambda table, at: table.at[at].get(mode="promise_in_bounds"), tables, where)
        value, pull = jax.vjp(lambda some: objective(some, example, data), gathered)

        def update(tables):
            (slope,) = pull(jnp.ones_like(value))
            return jax.tree.map(
                lambda table, at, g: table.at[at].add(-learning_rate.astype(g.dtype) * g, mode="promise_in_bounds"),
                tables, where, slope,
            )

        return jax.lax.cond(value > 0, update, lambda same: same, tables), value

    return jax.lax.scan(step, params, chunk)


@functools.partial(jax.jit, static_argnames=("objective", "rows"), donate_argnames=("state",))
def scan_adagrad(objective: Callable, rows: Callable, state, data, chunk, learning_rate):
    """As `scan_chunk`, each entry's step divided by the root of the sum of its squared gradients.

    Args:
      objective: as for `minimize_rows`.
      rows: as for `minimize_rows`.
      state: pair of tables and sums, pytrees of one shape; donated. The sums start above 0.
      data: pytree of arrays.
      chunk: pytree of arrays whose first axis is the examples.
      learning_rate: scalar.

    Returns:
      ``(state, losses)``, as `scan_chunk`.
    """

    def step(state, example):
        where = rows(example, data)
        gathered = jax.tree.map(lambda table, at: table.at[at].get(mode="promise_in_bounds"), state[0], where)
        value, pull = jax.vjp(lambda some: objective(some, example, data), gathered)

        def update(state):
            tables, sums = state
            (slope,) = pull(jnp.ones_like(value))
            sums = jax.tree.map(lambda total, at, g: total.at[at].add(g * g, mode="promise_in_bounds"), sums, where,
                                slope)

            def moved(table, total, at, g):
                root = jnp.sqrt(total.at[at].get(mode="promise_in_bounds"))
                return table.at[at].add(-learning_rate.astype(g.dtype) * g / root, mode="promise_in_bounds")

            return jax.tree.map(moved, tables, sums, where, slope), sums

        return jax.lax.cond(value > 0, update, lambda same: same, state), value

    return jax.lax.scan(step, state, chunk)


def minimize_rows(
    objective: Callable,
    params,
    chunks: Callable[[jax.Array], Iterable],
    *,
    rows: Callable,
    data,
    key: jax.Array,
    learning_rate: float,
    adagrad: float | None = None,
    host: Callable | None = None,
    depends=(),
    label: str = "SGD",
    run: Run | None = None,
    **options,
) -> Fit:
    """Minimises a loss over examples by plain SGD or by Adagrad, one example at a time, at a fixed learning rate.

    Args:
      objective: module-level function of gathered rows, example and data, giving the loss of the example: at least 0,
        and flat where it is 0 (as `losses.margin_ranking` is), because such examples update nothing. The rows come as
        a pytree like ``params``, each leaf ``[m, ...]``.
      params: pytree of tables, ``[n, ...]`` floating.
      chunks: function of a key giving one epoch's chunks, pytrees of arrays whose first axis is the examples. Chunks of
        one size share one compiled program.
      rows: module-level function of example and data giving the rows needed, a pytree like ``params`` of ``[m]``
        integers, all in range; a row may be named more than once, and its updates add up.
      data: pytree of arrays that objective and rows see: hyper-parameters, documents.
      key: PRNG key; epoch ``e`` uses ``fold_in(key, e)``.
      learning_rate: the step is this times the gradient of one example's loss.
      adagrad: None for plain SGD; or a number above 0, at which the sum of squared gradients of every entry starts, by
        whose root its steps are divided. A row that an example names twice counts with both gradients, squared apart.
      host: function of tables (NumPy, which it changes in place), a chunk and the rate giving the losses of its
        examples, which takes the steps in place of the compiled loop; rounding may differ. With ``adagrad`` the sums of
        squares, which it changes too, come after the tables.
      depends: pytree of arrays that the chunks depend on, for the fingerprint of checkpoints.
      label: name on the bar.
      run: how long it runs, by what score, and where it is kept; 10 epochs and a checkpoint after each by default.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit`; the loss of an entry is the mean over the epoch's examples, each before its own update, and NaN before the
      first; the gradient norm is not computed (NaN). An evaluation is an example, ``converged`` is True only if
      patience ran out.

    Raises:
      ValueError: for bad settings, an empty epoch, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if a loss is not finite, naming the step (counted in examples) and the epoch.

    Example:
      >>> def objective(rows, example, data):
      ...     return jnp.sum((rows - data) ** 2)
      >>> fit = minimize_rows(objective, jnp.zeros((3, 1)), lambda key: [jnp.array([0, 2] * 20)],
      ...                     rows=lambda example, data: example[None], data=jnp.ones(()), key=jax.random.key(0),
      ...                     learning_rate=0.2, max_iter=1)
      >>> fit.params[:, 0].round(4).tolist()
      [1.0, 0.0, 1.0]

    Relations: `minimize_sgd` computes a gradient of the whole table, and takes any optax transformation.
    """
    checks.random_key(key)
    run = Run.of(run, options)
    checks.expect(0 < learning_rate < float("inf"), "learning_rate", "a positive number", learning_rate)
    dtype = jnp.dtype(jnp.result_type(float))
    checks.expect(learning_rate <= float(jnp.finfo(dtype).max), "learning_rate", f"a number that {dtype} holds",
                  learning_rate)
    rate = jnp.asarray(learning_rate, dtype)
    start = (params,)
    if adagrad is not None:
        checks.expect(0 < adagrad < float("inf"), "adagrad", "a positive number", adagrad)
        start, depends = (params, jax.tree.map(lambda table: jnp.full_like(table, adagrad), params)), (depends, adagrad)

    def epoch(state, number):
        losses = []
        # The host changes copies, so that an interrupt leaves the state as it was.
        copies = None if host is None else jax.tree.map(np.array, state)
        for chunk in chunks(jax.random.fold_in(key, number)):
            if host is not None:
                values = host(*copies, chunk, rate)
            elif adagrad is None:
                tables, values = scan_chunk(objective, rows, state[0], data, chunk, rate)
                state = (tables,)
            else:
                state, values = scan_adagrad(objective, rows, state, data, chunk, rate)
            losses.append(values)
        state = state if host is None else jax.tree.map(jnp.asarray, copies)
        losses = np.concatenate([np.zeros(0), *map(np.asarray, losses)])
        checks.expect(losses.size > 0, "chunks", "at least one example an epoch", 0)
        return state, losses, float(np.mean(losses)), float("nan")

    return epochs.run(
        epoch, start,
        mark=lambda: mark_of(objective, params, jax.random.key_data(key), learning_rate, data, depends),
        run=run, label=label,
    )
