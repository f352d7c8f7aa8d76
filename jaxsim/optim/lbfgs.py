"""L-BFGS: jaxopt's, with the search direction in compact form.

The pairs ``S, Y`` stand in one matrix, the two-loop recursion runs on its small Gram matrices, and an iteration reads
the history twice instead of copying it. jaxopt is no longer maintained; only this file uses it,
and ``solver="optax"`` runs without it.
"""

from __future__ import annotations

import dataclasses
import functools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as P

from jaxsim import checks
from jaxsim.optim import checkpoints
from jaxsim.optim.monitor import (
    Fit,
    Monitor,
    Run,
    dot,
    evaluate,
    expect_finite,
    expect_gradient,
    first_scale,
    mark_of,
    start_of,
)
from jaxsim.parallel import gathering
from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.precision import EVALUATION

KEPT_WITHIN = 60.0
"""Seconds after which the next whole iteration is kept."""
RUN = Run(max_iter=100, checkpoint_every=10, tol=1e-6, history_size=10, solver="jaxopt")
"""The defaults of `minimize_lbfgs`: 100 iterations, a tolerance of 1e-6, 10 pairs, a checkpoint every 10 iterations."""


@functools.cache
def _jaxopt():
    """The module, or None. It imports SciPy's optimisers and numba: half a second that only a fit has to wait for."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        try:
            import jaxopt
        except (ImportError, AttributeError):  # it is no longer maintained, and JAX moves on
            return None
    return jaxopt


def _expect_jaxopt() -> None:
    """Imports it, outside of what is traced."""
    if _jaxopt() is None:
        raise ImportError('jaxopt cannot be imported beside this version of JAX; pass solver="optax"')


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


@seldom(static_argnames=("objective", "max_linesearch"))
def _search(objective, max_linesearch, state: _Lbfgs, data):
    # A vast c2 switches the curvature condition off and leaves sufficient decrease: backtracking only shortens, so a
    # trial that is too short already (or in a concave region) would be shortened to nothing. `_advance` skips pairs
    # without curvature instead. (jaxopt's own "armijo" evaluates value and gradient apart.)
    jaxopt = _jaxopt()
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
    norm = jnp.sqrt(dot(found.grad, found.grad))
    return found.params, found.value, found.grad, found.num_fun_eval, found.failed, norm


_precisely = functools.partial(jnp.matmul, precision=EVALUATION)


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
def direction(pairs, sy, yy, count, old_params, old_grad, params, grad):
    """The next direction: jaxopt's two-loop recursion on small matrices.

    Args:
      pairs: of each parameter, ``[2 h, ...]``: steps, then changes of the gradient, the newest not written yet.
      sy: ``[h, h]`` products of steps with changes.
      yy: ``[h, h]`` products of changes.
      count: scalar, iterations so far.
      old_params: parameters before the newest step.
      old_grad: gradient there.
      params: parameters after it.
      grad: gradient there.

    Returns:
      ``sy`` and ``yy`` with the newest pair, ``count`` after it, and the direction, in the order of the state.
    """
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
    s_s = dot(step, step)
    curved = s_y[slot] > 1e-7 * jnp.sqrt(s_s * y_y[slot])
    sy = sy.at[slot, slot].set(jnp.where(curved, s_y[slot], 0))
    curvature = jnp.diagonal(sy)
    some = curvature > 0
    rho = jnp.where(some, 1 / jnp.where(some, curvature, 1), 0)
    # The scale of the newest pair that counts; without any, as long a step as the last.
    newest = jnp.argmin(jnp.where(some, (slot - jnp.arange(h)) % h, h))
    last_length = jnp.sqrt(s_s / jnp.maximum(dot(grad, grad), jnp.finfo(s_s.dtype).tiny))
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
    found = jax.tree.map(
        lambda m, g: _precisely(coefficients, m.reshape(2 * h, -1)).reshape(g.shape) - scale * g, pairs, grad
    )
    return sy, yy, count + 1, found


def _advance(pairs, sy, yy, count, old_params, old_grad, params, grad):
    """Stores the newest pair in place of the oldest and gives the next direction."""
    # Two programs, because XLA copies the whole history where one both writes and reads it.
    pairs = _store(pairs, count, old_params, old_grad, params, grad)
    return pairs, *direction(pairs, sy, yy, count, old_params, old_grad, params, grad)


def _places(params) -> _Lbfgs | None:
    """Where the arrays of a state belong if the parameters stand on a mesh, whole or in parts; None if they do not.

    What XLA chooses for a result need not be what it was given, and then the next call is another program.
    """
    shardings = [getattr(leaf, "sharding", None) for leaf in jax.tree.leaves(params)]
    if not shardings or not all(isinstance(one, NamedSharding) for one in shardings):
        return None
    same = jax.tree.map(lambda leaf: leaf.sharding, params)
    history = jax.tree.map(lambda leaf: NamedSharding(leaf.sharding.mesh, P(None, *leaf.sharding.spec)), params)
    number = NamedSharding(shardings[0].mesh, P())
    return _Lbfgs(same, number, same, same, history, number, number, number)


def _at(places: _Lbfgs | None, state: _Lbfgs) -> _Lbfgs:
    return state if places is None else jax.device_put(state, places)


def minimize_lbfgs(
    objective: Callable,
    params,
    data,
    *,
    max_linesearch: int = 30,
    label: str = "L-BFGS",
    run: Run | None = None,
    **options,
) -> Fit:
    """Minimises ``objective(params, data)`` by L-BFGS (Nocedal and Wright, algorithm 7.5).

    Args:
      objective: module-level function returning a scalar; compiled once a shape, so hyper-parameters belong in
        ``data``.
      params: pytree of floating arrays, exactly what is optimised. On a mesh, whole or in parts, all else stands as
        they do.
      data: pytree of arrays, the constants.
      max_linesearch: largest number of evaluations a line search.
      label: name on the bar.
      run: how long it runs, by what score, and where it is kept; `RUN` where it says nothing.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit`. A line search that fails but lowers the loss is marked ``"line_search_failed"`` in its entry of the
      history; one that does not ends the fit, ``converged`` False and ``"stop": "line search failed"`` in the last
      entry.

    Raises:
      ValueError: for bad settings, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if the loss is not finite, naming the step.
      ImportError: if jaxopt cannot be imported and ``solver`` does not name optax.
      NotImplementedError: for a checkpoint with optax's solver.

    Example:
      >>> def objective(x, data):
      ...     return jnp.sum((x - data) ** 2)
      >>> fit = minimize_lbfgs(objective, jnp.zeros(2), jnp.array([1.0, 2.0]))
      >>> [round(float(x), 4) for x in fit.params]
      [1.0, 2.0]
    """
    run = Run.of(run, options, RUN)
    checks.whole(max_linesearch, "max_linesearch", 1)
    params = start_of(params)
    if run.solver == "optax":
        from jaxsim.optim import lbfgs_optax  # optax takes a tenth of a second to import

        return lbfgs_optax.minimize(objective, params, data, max_linesearch=max_linesearch, label=label, run=run)
    _expect_jaxopt()
    places, shared = _places(params), gathering.spans((params, data))
    monitor = Monitor(run, label, shared=shared)
    state, norm = _start(objective, params, data, run, places, label)
    course = _Course(state, norm, monitor, shared)
    if run.checkpoint is not None:
        course.folder = checkpoints.prepare(run.checkpoint, shared=shared)
        settings = [run.history_size, max_linesearch, -1.0 if run.first_step is None else run.first_step, run.tol]
        course.mark = mark_of(objective, params, data, settings)
        course.restore(params, places)
    if not monitor.history:
        monitor.record(0, float(state.value), norm, course.evaluations, params)
    try:
        _iterate(course, objective, data, run, places, max_linesearch, label)
    except KeyboardInterrupt:
        if not shared:
            course.keep()
        raise
    course.keep()
    return monitor.result(course.state.params, monitor.history[-1]["grad_norm"] <= run.tol)


def _start(objective, params, data, run: Run, places: _Lbfgs | None, label: str) -> tuple[_Lbfgs, float]:
    """The state before the first iteration, and the norm of its gradient."""
    value, grad, norm = evaluate(objective, params, data)
    expect_finite(float(value), 0, label)
    dtype = value.dtype
    expect_gradient(float(norm), 0, label)
    scale = first_scale(params, norm, run.first_step).astype(dtype)
    history = params if places is None else places.pairs
    pairs = jax.tree.map(lambda leaf, place: jnp.zeros((2 * run.history_size, *leaf.shape), leaf.dtype,
                                                       device=None if places is None else place), params, history)
    square = jnp.zeros((run.history_size, run.history_size), dtype)
    downhill = jax.tree.map(lambda g: -scale * g, grad)
    state = _Lbfgs(params, value, grad, downhill, pairs, square, square, jnp.zeros((), jnp.int32))
    return _at(places, state), float(norm)


@dataclasses.dataclass
class _Course:
    """Where a minimisation has got to, and the folder that it is kept in, if any."""

    state: _Lbfgs
    norm: float
    monitor: Monitor
    shared: bool
    step: int = 0
    evaluations: int = 1
    folder: Path | None = None
    mark: str | None = None

    def restore(self, params, places: _Lbfgs | None) -> None:
        """Goes on from the folder's checkpoint, if it has one."""
        saved = checkpoints.load(self.folder, (self.state, params), fingerprint=self.mark, shared=self.shared)
        if saved is None:
            return
        (state, best), meta = saved
        if places is None:
            self.state, best = jax.tree.map(jnp.asarray, (state, best))
        else:
            self.state, best = jax.device_put((state, best), (places, places.params))
        self.monitor.restore(meta, best, self.state.params, int(self.state.count))
        last = self.monitor.history[-1]
        self.step, self.evaluations, self.norm = last["step"], last["evaluations"], last["grad_norm"]
        if int(self.state.count) > self.step:  # interrupted in the middle of ``validate``
            self.step, self.evaluations, self.norm = int(self.state.count), meta["evaluations"], meta["grad_norm"]
            self.record()

    def record(self) -> None:
        """Notes the step in the history."""
        self.monitor.record(self.step, float(self.state.value), float(self.norm), self.evaluations, self.state.params)

    def keep(self) -> None:
        """Writes a checkpoint, where there is a folder."""
        if self.folder is None:
            return
        best = self.state.params if self.monitor.best_params is None else self.monitor.best_params
        meta = {**self.monitor.meta(), "fingerprint": self.mark, "evaluations": self.evaluations,
                "grad_norm": float(self.norm)}
        checkpoints.save(self.folder, (self.state, best), meta, shared=self.shared)


def _iterate(course: _Course, objective, data, run: Run, places: _Lbfgs | None, max_linesearch: int, label: str):
    """Iterations until the gradient is small, patience or iterations run out, or no step goes down."""
    history, kept = course.monitor.history, time.monotonic()
    going = "stop" not in history[-1]
    while going and course.step < run.max_iter and course.norm > run.tol and not course.monitor.exhausted(course.step):
        state = course.state
        found, value, grad, used, failed, norm = _search(objective, max_linesearch, state, data)
        course.step, course.evaluations, course.norm = course.step + 1, course.evaluations + int(used), float(norm)
        expect_finite(float(value), course.step, label)
        if bool(failed) and not float(value) < float(state.value):
            history[-1].update(stop="line search failed", evaluations=course.evaluations)
            return
        expect_gradient(course.norm, course.step, label)
        with checkpoints.uninterrupted():
            moved = _advance(state.pairs, state.sy, state.yy, state.count, state.params, state.grad, found, grad)
            pairs, sy, yy, count, direction = moved
            course.state = _at(places, _Lbfgs(found, value, grad, direction, pairs, sy, yy, count))
        course.record()
        if bool(failed):
            history[-1]["line_search_failed"] = True
        late = not course.shared and time.monotonic() - kept > KEPT_WITHIN  # several processes would not agree on it
        if late or course.step % run.checkpoint_every == 0:
            course.keep()
            kept = time.monotonic()
