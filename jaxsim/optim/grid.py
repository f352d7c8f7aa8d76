"""L-BFGS for many settings or starts of one problem in one program: ``vmap`` over the fits, a loop over iterations."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxsim import checks
from jaxsim.optim.lbfgs import RUN, _advance, _expect_jaxopt, _Lbfgs, _search
from jaxsim.optim.monitor import Fit, Run, evaluate, expect_finite, expect_gradient, first_scale, start_of

# The number of the iteration is that of every fit that has not ended, so that one slot of the history is written.
_FITS = _Lbfgs(0, 0, 0, 0, 0, 0, 0, None)


def minimize_lbfgs_grid(
    objective: Callable,
    params,
    data,
    axes,
    *,
    max_linesearch: int = 30,
    label: str = "L-BFGS grid",
    run: Run | None = None,
    **options,
) -> list[Fit]:
    """As `minimize_lbfgs` for each fit of a grid, all of them in one compiled program.

    Several times faster than one fit after the other where a fit is so small that starting a step takes longer than the
    step (60 pairs of documents, say); slower for larger ones (200 pairs and more). A fit that has ended waits for the
    others.

    Args:
      objective: as for `minimize_lbfgs`.
      params: pytree of floating arrays with a leading axis: a start for every fit.
      data: pytree of arrays, in which what differs between fits (``gamma``, say) has a leading axis.
      axes: ``in_axes`` of ``data`` for ``jax.vmap``: None for data that all fits share, or a pytree prefix such as
        ``dataclasses.replace(jax.tree.map(lambda _: None, data), gamma=0)``.
      max_linesearch: largest number of evaluations in a line search.
      label: name in error messages.
      run: ``max_iter``, ``tol``, ``first_step`` and ``history_size``, as for `minimize_lbfgs`.
      **options: these fields of `Run`, in place of those of ``run``.

    Returns:
      A `Fit` for each, in order; what `minimize_lbfgs` would return without a score to stop by. ``seconds`` of the
      history share the time of the whole program evenly.

    Raises:
      ValueError: for bad settings, or params whose leading axes differ.
      FloatingPointError: if a loss is not finite, naming the fit and the step.
      ImportError: if jaxopt cannot be imported.

    Example:
      >>> def objective(x, data):
      ...     return jnp.sum((x - data) ** 2)
      >>> fits = minimize_lbfgs_grid(objective, jnp.zeros((2, 1)), jnp.array([1.0, 2.0]), 0)
      >>> [round(float(fit.params[0]), 4) for fit in fits]
      [1.0, 2.0]

    Relations: `minimize_lbfgs` is one fit, with validation, checkpoints and a bar.
    """
    checks.whole(max_linesearch, "max_linesearch", 1)
    given = Run.of(run, options)
    given.expect_only(label, "max_iter", "tol", "first_step", "history_size")
    run = Run.of(given, {}, RUN)
    params = start_of(params)
    sizes = {leaf.shape[:1] for leaf in jax.tree.leaves(params)}
    checks.expect(len(sizes) == 1 and sizes != {()}, "params", "one leading axis, of the fits", sorted(sizes))
    leaves, structure = jax.tree.flatten(axes, is_leaf=lambda axis: axis is None)
    settings = run.max_iter, run.history_size, max_linesearch, run.first_step
    _expect_jaxopt()
    started = time.perf_counter()
    final, trace, last = jax.device_get(_run(objective, (structure, tuple(leaves)), settings, run.tol, params, data))
    seconds = (time.perf_counter() - started) / max(int(last), 1)
    fits = []
    for i in range(trace.shape[-1]):
        steps = int(trace[last, 2, i])
        history = []
        for step, (loss, norm, _, evaluations) in enumerate(trace[: steps + 1, :, i]):
            expect_finite(float(loss), step, f"{label}, fit {i}")
            expect_gradient(float(norm), step, f"{label}, fit {i}")
            history.append({"step": step, "loss": float(loss), "grad_norm": float(norm),
                            "evaluations": int(evaluations), "validation": None, "seconds": seconds * step})
        evaluations = int(trace[last, 3, i])
        if steps < last and history[-1]["grad_norm"] > run.tol:
            history[-1].update(stop="line search failed", evaluations=evaluations)
        fits.append(Fit(jax.tree.map(lambda leaf, i=i: jnp.asarray(leaf[i]), final), history[-1]["loss"],
                        history[-1]["grad_norm"], history[-1]["grad_norm"] <= run.tol, steps, evaluations, history))
    return fits


def _start(objective, history_size, first_step, params, data) -> tuple[_Lbfgs, jax.Array]:
    """The state before the first iteration, and the norm of the gradient."""
    value, grad, norm = evaluate(objective, params, data)
    scale = first_scale(params, norm, first_step).astype(value.dtype)
    pairs = jax.tree.map(lambda leaf: jnp.zeros((2 * history_size, *leaf.shape), leaf.dtype), params)
    square = jnp.zeros((history_size, history_size), value.dtype)
    direction = jax.tree.map(lambda g: (-scale * g).astype(g.dtype), grad)
    return _Lbfgs(params, value, grad, direction, pairs, square, square, jnp.zeros((), jnp.int32)), norm


def _iteration(objective, max_linesearch, tol, state, progress, data):
    """One iteration of a fit, which changes nothing that is looked at once the fit has ended."""
    norm, steps, evaluations, stuck = progress
    found, value, grad, used, failed, new_norm = _search(objective, max_linesearch, state, data)
    active = (norm > tol) & ~stuck
    moves = active & ~(failed & ~(value < state.value))  # a search that does not lower the loss ends the fit
    advanced = _advance(state.pairs, state.sy, state.yy, state.count, state.params, state.grad, found, grad)
    pairs, sy, yy, count, direction = advanced

    def chosen(new, old):
        return jax.tree.map(lambda a, b: jnp.where(moves, a, b), new, old)

    # The history of a fit that has ended is never read again and need not be kept; a direction of 0 ends its searches.
    direction = jax.tree.map(lambda d: jnp.where(moves, d, 0), direction)
    state = _Lbfgs(*chosen((found, value, grad), state[:3]), direction, pairs, sy, yy, count)
    norm, steps = chosen((new_norm, steps + 1), (norm, steps))
    return state, (norm, steps, evaluations + jnp.where(active, used, 0), stuck | (active & ~moves))


@functools.partial(jax.jit, static_argnames=("objective", "axes", "settings"))
def _run(objective, axes, settings, tol, params, data):
    """Final parameters; loss, gradient norm, steps and evaluations after each iteration; the number of these."""
    max_iter, history_size, max_linesearch, first_step = settings
    axes = jax.tree.unflatten(*axes)
    begin = functools.partial(_start, objective, history_size, first_step)
    state, norm = jax.vmap(begin, in_axes=(0, axes), out_axes=(_FITS, 0))(params, data)
    iteration = jax.vmap(functools.partial(_iteration, objective, max_linesearch, tol), in_axes=(_FITS, 0, axes),
                         out_axes=(_FITS, 0))
    zeros = jnp.zeros(norm.shape, jnp.int32)

    def noted(trace, state, progress, i):
        columns = state.value, *progress[:3]
        return trace.at[i].set(jnp.stack([column.astype(trace.dtype) for column in columns]))

    def unfinished(loop):
        _, (norm, _, _, stuck), _, i = loop
        return (i < max_iter) & jnp.any((norm > tol) & ~stuck)

    def body(loop):
        state, progress, trace, i = loop
        state, progress = iteration(state, progress, data)
        return state, progress, noted(trace, state, progress, i + 1), i + 1

    progress = norm, zeros, zeros + 1, zeros > 0
    trace = noted(jnp.zeros((max_iter + 1, 4, norm.size), norm.dtype), state, progress, 0)
    state, _, trace, last = jax.lax.while_loop(unfinished, body, (state, progress, trace, 0))
    return state.params, trace, last
