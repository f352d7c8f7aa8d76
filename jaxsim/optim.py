"""Optimisation: the only room that imports jaxopt and optax.

`minimize_lbfgs` runs jaxopt's L-BFGS (backtracking line search, implicit differentiation off) with its search direction
computed in compact form: the pairs ``S, Y`` stand in one matrix, the two-loop recursion runs on its small Gram
matrices, and an iteration reads the history twice instead of copying it. The iterates are jaxopt's. `minimize_sgd`
runs any optax transformation over minibatches. Both report progress, stop early on a validation score, return the best
parameters, and continue from a checkpoint bit for bit.
"""

from __future__ import annotations

import functools
import re
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

from jaxsim import checkpoints, checks

with warnings.catch_warnings():
    # jaxopt announces on import that it is no longer maintained; that is why it stands behind this module alone.
    warnings.simplefilter("ignore", DeprecationWarning)
    import jaxopt


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


class _Lbfgs(NamedTuple):
    """State between iterations, all of it arrays: this is what a checkpoint holds."""

    params: Any
    value: jax.Array
    grad: Any
    direction: Any
    pairs: Any  # a leaf [2 h, ...]: rows 0 … h-1 are S, rows h … 2h-1 are Y
    sy: jax.Array  # [h, h], S Yᵀ
    yy: jax.Array  # [h, h], Y Yᵀ
    count: jax.Array


def _dot(a, b) -> jax.Array:
    return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@functools.partial(jax.jit, static_argnames="objective")
def _evaluate(objective, params, data):
    value, grad = jax.value_and_grad(objective)(params, data)
    return value, grad, jnp.sqrt(_dot(grad, grad))


@functools.partial(jax.jit, static_argnames=("objective", "max_linesearch"))
def _search(objective, max_linesearch, state: _Lbfgs, data):
    # A vast c2 switches the curvature condition off and leaves sufficient decrease: backtracking only shortens, so a
    # trial that is too short already (or in a concave region) would be shortened to nothing. `_advance` skips pairs
    # without curvature instead. (jaxopt's own "armijo" evaluates value and gradient apart.)
    search = jaxopt.BacktrackingLineSearch(
        fun=jax.value_and_grad(objective), value_and_grad=True, maxiter=max_linesearch, condition="wolfe", c2=1e30
    )
    solver = jaxopt.LBFGS(
        fun=jax.value_and_grad(objective),
        value_and_grad=True,
        linesearch=search,
        linesearch_init="max",
        implicit_diff=False,
    )
    # The whole step is tried first (jaxopt's linesearch_init="max").
    _, found = solver.run_ls(
        jnp.asarray(solver.max_stepsize, state.value.dtype), state.params, value=state.value, grad=state.grad,
        descent_direction=state.direction, fun_args=(data,), fun_kwargs={},
    )
    norm = jnp.sqrt(_dot(found.grad, found.grad))
    return found.params, found.value, found.grad, found.num_fun_eval, found.failed, norm


_precisely = functools.partial(jnp.matmul, precision="highest")


@functools.partial(jax.jit, donate_argnames=("pairs",))
def _store(pairs, count, old_params, old_grad, params, grad):
    """Writes the newest pair over the oldest, in place."""
    step = jax.tree.map(jnp.subtract, params, old_params)
    change = jax.tree.map(jnp.subtract, grad, old_grad)

    def written(m, s, y):
        h = m.shape[0] // 2
        return m.at[count % h].set(s).at[h + count % h].set(y)

    return jax.tree.map(written, pairs, step, change)


@jax.jit
def _direction(pairs, sy, yy, count, old_params, old_grad, params, grad):
    """The next direction: jaxopt's two-loop recursion on small matrices."""
    h = sy.shape[0]
    slot = count % h
    step = jax.tree.map(jnp.subtract, params, old_params)
    change = jax.tree.map(jnp.subtract, grad, old_grad)

    def products(m, g, y):
        m = m.reshape(2 * h, -1)
        return jnp.stack([_precisely(m, g.reshape(-1)), _precisely(m, y.reshape(-1))], axis=1)

    along = sum(jax.tree.leaves(jax.tree.map(products, pairs, grad, change)))
    s_g, y_g, s_y, y_y = along[:h, 0], along[h:, 0], along[:h, 1], along[h:, 1]
    sy = sy.at[:, slot].set(s_y)
    yy = yy.at[:, slot].set(y_y).at[slot, :].set(y_y)
    # A pair without curvature gets diagonal 0, which takes it out of the recursion (rho = 0).
    s_s = _dot(step, step)
    curved = s_y[slot] > 1e-7 * jnp.sqrt(s_s * y_y[slot])
    sy = sy.at[slot, slot].set(jnp.where(curved, s_y[slot], 0))
    curvature = jnp.diagonal(sy)
    some = curvature > 0
    rho = jnp.where(some, 1 / jnp.where(some, curvature, 1), 0)
    # The scale of the newest pair that counts; without any, as long a step as the last.
    newest = jnp.argmin(jnp.where(some, (slot - jnp.arange(h)) % h, h))
    last_length = jnp.sqrt(s_s / jnp.maximum(_dot(grad, grad), jnp.finfo(s_s.dtype).tiny))
    scale = jnp.where(jnp.any(some), curvature[newest] / jnp.where(some[newest], yy[newest, newest], 1), last_length)
    oldest = count + 1  # the slot written longest ago, modulo h

    # r = -grad - sum_j alpha_j y_j, newest to oldest; only products with older S and newer Y are read.
    def right(j, alpha):
        i = (oldest + h - 1 - j) % h
        return alpha.at[i].set(rho[i] * (-s_g[i] - jnp.dot(alpha, sy[i])))

    alpha = jax.lax.fori_loop(0, h, right, jnp.zeros_like(rho))

    def left(j, weight):
        i = (oldest + j) % h
        beta = rho[i] * (scale * (-y_g[i] - jnp.dot(alpha, yy[i])) + jnp.dot(weight, sy[:, i]))
        return weight.at[i].set(alpha[i] - beta)

    weight = jax.lax.fori_loop(0, h, left, jnp.zeros_like(rho))
    coefficients = jnp.concatenate([weight, -scale * alpha])
    direction = jax.tree.map(
        lambda m, g: _precisely(coefficients, m.reshape(2 * h, -1)).reshape(g.shape) - scale * g, pairs, grad
    )
    return sy, yy, count + 1, direction


def _advance(pairs, sy, yy, count, old_params, old_grad, params, grad):
    """Stores the newest pair in place of the oldest and gives the next direction."""
    # Two programs, because XLA copies the whole history where one both writes and reads it.
    pairs = _store(pairs, count, old_params, old_grad, params, grad)
    return pairs, *_direction(pairs, sy, yy, count, old_params, old_grad, params, grad)


class _Monitor:
    """History, progress, validation and patience, shared by both optimisers."""

    def __init__(self, total: int, *, validate, patience, progress: bool, label: str):
        checks.expect(total >= 0, "max_iter", "at least 0", total)
        checks.expect(patience is None or patience >= 1, "patience", "at least 1, or None", patience)
        self.validate, self.patience = validate, patience
        self.history: list[dict] = []
        self.best_score, self.best_step, self.best_params = -np.inf, 0, None
        self.earlier, self.started = 0.0, time.perf_counter()
        self.bar = tqdm(total=total, desc=label, disable=None if progress else True, leave=True)

    def seconds(self) -> float:
        return self.earlier + time.perf_counter() - self.started

    def record(self, step: int, loss: float, grad_norm: float, evaluations: int, params) -> None:
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
        return self.validate is not None and self.patience is not None and step - self.best_step >= self.patience

    def meta(self) -> dict:
        return {"history": [*self.history], "best_score": self.best_score, "best_step": self.best_step,
                "seconds": self.seconds()}

    def restore(self, meta: dict, best_params) -> None:
        self.history, self.best_score, self.best_step = meta["history"], meta["best_score"], meta["best_step"]
        self.best_params, self.earlier = best_params, meta["seconds"]
        self.bar.update(self.history[-1]["step"] - self.bar.n)

    def result(self, params, converged: bool) -> Fit:
        self.bar.close()
        last = self.history[-1]
        chosen = last
        if self.best_params is not None:
            params, chosen = self.best_params, self.history[self.best_step]
        return Fit(params, chosen["loss"], chosen["grad_norm"], converged, last["step"], last["evaluations"],
                   self.history)


def _mark(objective, *trees) -> str:
    """Fingerprint of a problem: objective, static settings (without memory addresses) and arrays."""
    name = getattr(objective, "__qualname__", type(objective).__name__)
    shape = re.sub(r" at 0x[0-9a-f]+", "", str(jax.tree.structure(trees)))
    return checkpoints.fingerprint([name, shape], trees)


def _finite(value: float, step: int, what: str) -> None:
    if not np.isfinite(value):
        raise FloatingPointError(f"{what}: expected a finite loss, got {value} at step {step}; "
                                 "check the input for extreme values, or lower the step size")


def minimize_lbfgs(
    objective: Callable,
    params,
    data,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
    history_size: int = 10,
    max_linesearch: int = 30,
    first_step: float | None = None,
    validate: Callable | None = None,
    patience: int | None = None,
    checkpoint=None,
    checkpoint_every: int = 10,
    progress: bool = False,
    label: str = "L-BFGS",
) -> Fit:
    """Minimises ``objective(params, data)`` by L-BFGS (Nocedal and Wright, algorithm 7.5).

    Args:
      objective: module-level function returning a scalar; compiled once a shape, so hyper-parameters belong in
        ``data``.
      params: pytree of floating arrays, exactly what is optimised.
      data: pytree of arrays, the constants.
      max_iter: largest number of iterations.
      tol: stop when the gradient norm is at most this.
      history_size: pairs kept; each costs twice the size of ``params``.
      max_linesearch: largest number of evaluations a line search.
      first_step: length of the first trial step relative to the norm of ``params``; jaxopt's rule (the negative
        gradient itself, which depends on the scale of ``params``) unless given.
      validate: function of params giving a score, higher is better; called at the start and after every iteration.
      patience: iterations without a better score before stopping.
      checkpoint: folder for checkpoints; an existing one of the same problem is continued.
      checkpoint_every: iterations between checkpoints; Ctrl-C writes one too.
      progress: whether to show a bar on a terminal's stderr.
      label: name on the bar.

    Returns:
      `Fit`. A line search that fails but lowers the loss is marked ``"line_search_failed"`` in its entry of the
      history; one that does not ends the fit, ``converged`` False and ``"stop": "line search failed"`` in the last
      entry.

    Raises:
      ValueError: for bad settings, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if the loss is not finite, naming the step.

    Example:
      >>> def objective(x, data):
      ...     return jnp.sum((x - data) ** 2)
      >>> fit = minimize_lbfgs(objective, jnp.zeros(2), jnp.array([1.0, 2.0]))
      >>> [round(float(x), 4) for x in fit.params]
      [1.0, 2.0]
    """
    checks.expect(history_size >= 1, "history_size", "at least 1", history_size)
    checks.expect(checkpoint_every >= 1, "checkpoint_every", "at least 1", checkpoint_every)
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf), params)
    monitor = _Monitor(max_iter, validate=validate, patience=patience, progress=progress, label=label)
    value, grad, norm = _evaluate(objective, params, data)
    _finite(float(value), 0, label)
    dtype = value.dtype
    scale = jnp.ones((), dtype)
    if first_step is not None and float(norm) > 0:
        scale = (first_step * jnp.sqrt(_dot(params, params)) / norm).astype(dtype)
    pairs = jax.tree.map(lambda leaf: jnp.zeros((2 * history_size, *leaf.shape), leaf.dtype), params)
    square = jnp.zeros((history_size, history_size), dtype)
    state = _Lbfgs(params, value, grad, jax.tree.map(lambda g: -scale * g, grad), pairs, square, square,
                   jnp.zeros((), jnp.int32))
    step, evaluations = 0, 1
    folder = mark = None
    if checkpoint is not None:
        folder = checkpoints.prepare(checkpoint)
        settings = [history_size, max_linesearch, -1.0 if first_step is None else first_step, tol]
        mark = _mark(objective, params, data, settings)
        saved = checkpoints.load(folder, (state, params), fingerprint=mark)
        if saved is not None:
            (state, best), meta = jax.tree.map(jnp.asarray, saved[0]), saved[1]
            monitor.restore(meta, best if meta["best_step"] >= 0 and validate is not None else None)
            step, evaluations = monitor.history[-1]["step"], monitor.history[-1]["evaluations"]
            norm = monitor.history[-1]["grad_norm"]
            if int(state.count) > step:  # interrupted in the middle of ``validate``
                step, evaluations, norm = int(state.count), meta["evaluations"], meta["grad_norm"]
                monitor.record(step, float(state.value), norm, evaluations, state.params)
    if not monitor.history:
        monitor.record(0, float(value), float(norm), evaluations, params)

    def keep():
        best = state.params if monitor.best_params is None else monitor.best_params
        meta = {**monitor.meta(), "fingerprint": mark, "evaluations": evaluations, "grad_norm": float(norm)}
        checkpoints.save(folder, (state, best), meta)

    stop = monitor.history[-1].get("stop")
    try:
        while step < max_iter and float(norm) > tol and not monitor.exhausted(step) and stop is None:
            found, value, grad, used, failed, norm = _search(objective, max_linesearch, state, data)
            step, evaluations = step + 1, evaluations + int(used)
            _finite(float(value), step, label)
            if bool(failed) and not float(value) < float(state.value):
                stop = "line search failed"
                monitor.history[-1].update(stop=stop, evaluations=evaluations)
                break
            with checkpoints.uninterrupted():
                moved = _advance(state.pairs, state.sy, state.yy, state.count, state.params, state.grad, found, grad)
                pairs, sy, yy, count, direction = moved
                state = _Lbfgs(found, value, grad, direction, pairs, sy, yy, count)
            monitor.record(step, float(value), float(norm), evaluations, found)
            if bool(failed):
                monitor.history[-1]["line_search_failed"] = True
            if folder is not None and step % checkpoint_every == 0:
                keep()
    except KeyboardInterrupt:
        if folder is not None:
            keep()
        raise
    if folder is not None:
        keep()
    return monitor.result(state.params, monitor.history[-1]["grad_norm"] <= tol)


@functools.partial(jax.jit, static_argnames=("objective", "optimizer"), donate_argnames=("params", "opt_state"))
def _sgd_step(objective, optimizer, params, opt_state, batch):
    value, grad = jax.value_and_grad(objective)(params, batch)
    updates, opt_state = optimizer.update(grad, opt_state, params)
    return optax.apply_updates(params, updates), opt_state, value, jnp.sqrt(_dot(grad, grad))


def minimize_sgd(
    objective: Callable,
    params,
    batches: Callable[[jax.Array], Iterable],
    *,
    key: jax.Array,
    optimizer: optax.GradientTransformation | None = None,
    learning_rate: float = 0.01,
    max_iter: int = 10,
    validate: Callable | None = None,
    patience: int | None = None,
    checkpoint=None,
    checkpoint_every: int = 1,
    progress: bool = False,
    label: str = "SGD",
) -> Fit:
    """Minimises the mean of ``objective(params, batch)`` over minibatches by an optax transformation.

    Args:
      objective: module-level function returning a scalar.
      params: pytree of floating arrays.
      batches: function of a key giving one epoch's batches, pytrees of arrays of constant shape (pad the last one).
      key: PRNG key; epoch ``e`` uses ``fold_in(key, e)``.
      optimizer: optax transformation; plain SGD at ``learning_rate`` unless given.
      learning_rate: of the default optimizer.
      max_iter: epochs.
      validate: function of params giving a score, higher is better; called at the start and after every epoch.
      patience: epochs without a better score before stopping.
      checkpoint: folder for checkpoints; an existing one of the same problem is continued.
      checkpoint_every: epochs between checkpoints; Ctrl-C writes the last whole epoch.
      progress: whether to show a bar on a terminal's stderr.
      label: name on the bar.

    Returns:
      `Fit`; loss and gradient norm of an entry are means over the epoch's batches, NaN before the first;
      ``converged`` is True only if patience ran out.

    Raises:
      ValueError: for bad settings, an empty epoch, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if the loss is not finite, naming the step.

    Example:
      >>> def objective(x, batch):
      ...     return jnp.mean((x - batch) ** 2)
      >>> fit = minimize_sgd(objective, jnp.zeros(()), lambda key: [jnp.ones(4)] * 50, key=jax.random.key(0),
      ...                    learning_rate=0.1, max_iter=2)
      >>> round(float(fit.params), 4)
      1.0
    """
    checks.expect(checkpoint_every >= 1, "checkpoint_every", "at least 1", checkpoint_every)
    start = params
    # Updates are donated, so the caller's arrays are copied once.
    params = jax.tree.map(lambda leaf: jnp.array(leaf, copy=True), params)
    optimizer = _default_sgd(learning_rate) if optimizer is None else optimizer
    opt_state = optimizer.init(params)
    monitor = _Monitor(max_iter, validate=validate, patience=patience, progress=progress, label=label)
    step, evaluations = 0, 0
    folder = mark = None
    if checkpoint is not None:
        folder = checkpoints.prepare(checkpoint)
        mark = _mark(objective, start, jax.random.key_data(key), learning_rate)
        saved = checkpoints.load(folder, (params, opt_state, params), fingerprint=mark)
        if saved is not None:
            (params, opt_state, best), meta = jax.tree.map(jnp.asarray, saved[0]), saved[1]
            monitor.restore(meta, best if validate is not None else None)
            step, evaluations = monitor.history[-1]["step"], monitor.history[-1]["evaluations"]
    if not monitor.history:
        monitor.record(0, float("nan"), float("nan"), 0, jax.tree.map(jnp.copy, params))
    unsaved = None
    try:
        while step < max_iter and not monitor.exhausted(step):
            total, norms, number = 0.0, 0.0, 0
            for batch in batches(jax.random.fold_in(key, step)):
                params, opt_state, value, norm = _sgd_step(objective, optimizer, params, opt_state, batch)
                total, norms, number = total + value, norms + norm, number + 1
            checks.expect(number > 0, "batches", "at least one batch an epoch", 0)
            step, evaluations = step + 1, evaluations + number
            _finite(float(total), evaluations, label)
            monitor.record(step, float(total) / number, float(norms) / number, evaluations,
                           jax.tree.map(jnp.copy, params))
            if folder is None:
                continue
            best = params if monitor.best_params is None else monitor.best_params
            # A copy, because the next epoch's steps donate these arrays.
            unsaved = jax.tree.map(jnp.copy, (params, opt_state, best)), {**monitor.meta(), "fingerprint": mark}
            if step % checkpoint_every == 0 or step == max_iter:
                checkpoints.save(folder, *unsaved)
                unsaved = None
    except KeyboardInterrupt:
        if unsaved is not None:
            checkpoints.save(folder, *unsaved)
        raise
    return monitor.result(params, monitor.exhausted(step))


@functools.cache
def _default_sgd(learning_rate: float) -> optax.GradientTransformation:
    return optax.sgd(learning_rate)
