"""What the optimisers share: how a fit runs, its result, its history, progress, validation and patience."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import numbers
import re
import sys
import time
import types
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim import checks
from jaxsim.optim import checkpoints
from jaxsim.parallel import gathering
from jaxsim.sparse.compilation import seldom


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

    @property
    def best_score(self) -> float | None:
        """The best validation score, which ``params`` has; None where nothing was validated.

        Example:
          >>> entries = [{"validation": score} for score in (0.1, 0.3, 0.2)]
          >>> Fit(None, 0.0, 0.0, True, 2, 3, entries).best_score
          0.3
        """
        scores = (entry.get("validation") for entry in self.history)
        return max((score for score in scores if score is not None), default=None)


def closed_form(params) -> Fit:
    """The `Fit` of a method without an iterative objective.

    Args:
      params: the fitted parameters.

    Returns:
      `Fit` with loss NaN, steps 0, converged True.

    Raises:
      FloatingPointError: for parameters that are not finite, which squares of too large or too small values cause.

    Example:
      >>> closed_form(None).converged
      True
    """
    for leaf in jax.tree.leaves(params):
        known = isinstance(leaf, jax.Array | np.ndarray) and not isinstance(leaf, jax.core.Tracer)
        if known and jnp.issubdtype(leaf.dtype, jnp.floating) and not bool(_finite(leaf)):
            raise FloatingPointError("params: expected finite parameters, got NaN or infinity; check the documents for "
                                     "extreme values, or scale them")
    return Fit(params, float("nan"), float("nan"), True, 0, 0, [])


@seldom
def _finite(array):
    return jnp.all(jnp.isfinite(array))


def start_of(params):
    """The start of a minimisation as arrays.

    Raises:
      ValueError: for a `Fit`, values that are not floating, values that `jax.jit` or `jax.vmap` traces, and arrays over
        a mesh that has Explicit axes.
    """
    checks.expect(not isinstance(params, Fit), "params", "parameters (fit.params)", "a Fit")
    for path, leaf in jax.tree_util.tree_leaves_with_path(params):
        name = f"params{jax.tree_util.keystr(path)}"
        checks.expect(not isinstance(leaf, jax.core.Tracer), name, "an array (minimisers compile their own steps: call "
                      "them outside jax.jit, jax.vmap and jax.grad; minimize_lbfgs_grid makes many fits at once)",
                      "a traced value")  # fmt: skip
        dtype = jnp.result_type(leaf)
        checks.expect(jnp.issubdtype(dtype, jnp.floating), name, "floating values", dtype)
        mesh = getattr(getattr(leaf, "sharding", None), "mesh", None)
        explicit = mesh is not None and jax.sharding.AxisType.Explicit in mesh.axis_types
        checks.expect(not explicit, name, "a mesh of Auto axes (jax.sharding.Mesh(mesh.devices, mesh.axis_names))",
                      "one of Explicit axes")  # fmt: skip
    return jax.tree.map(jnp.asarray, params)


def dot(a, b) -> jax.Array:
    """Inner product of two pytrees."""
    return sum(jnp.vdot(x, y) for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True))


@seldom(static_argnames="objective")
def evaluate(objective, params, data):
    """Value, gradient, and the norm of the gradient."""
    value, grad = jax.value_and_grad(objective)(params, data)
    return value, grad, jnp.sqrt(dot(grad, grad))


@dataclasses.dataclass(frozen=True)
class Run:
    """How a fit runs: how long, by what score it is judged, where it is kept.

    Every iterated ``fit`` takes one as ``run=``, or single fields by name: ``fit(..., max_iter=5, patience=2)``. A
    field that is not given, or None, has the method's default. A step is an iteration of L-BFGS, or an epoch of an
    optimiser that goes through its examples again and again.

    Attributes:
      max_iter: largest number of steps.
      validate: function of params giving a score, higher is better; called at the start and after every step. The best
        parameters are returned.
      patience: steps without a better score before stopping; None for no such limit.
      checkpoint: folder for checkpoints; an existing one of the same problem is continued, bit for bit. Over several
        processes all have to see it; the first one writes.
      checkpoint_every: steps between checkpoints. Where iterations of L-BFGS take long, one is written after
        `lbfgs.KEPT_WITHIN` seconds. Ctrl-C writes the last whole step (not over several processes).
      progress: whether to show a bar on a terminal's stderr.
      callback: function of an entry of the history, which is a dict of step, loss, grad_norm, evaluations, validation
        (the score, or None) and seconds; called at the start and after every step. A fit that goes on from a
        checkpoint calls it for the steps that are kept there too, so that what it writes down is whole, no step twice.
      tol: stop when the gradient's norm, in the units that the method names, is at most this. L-BFGS.
      first_step: length of the first trial step relative to the norm of the start; None, or a start of zeros, for
        jaxopt's rule (the negative gradient itself, which depends on the scale of the parameters). L-BFGS.
      history_size: pairs of steps and changes kept; each costs twice the size of the parameters. L-BFGS.
      solver: ``"jaxopt"`` or ``"optax"``, whose line search runs; optax's keeps no checkpoints. L-BFGS.

    Raises:
      ValueError: for a field out of range.

    Example:
      >>> Run(max_iter=5).max_iter
      5
      >>> Run(patience=0)
      Traceback (most recent call last):
      ...
      ValueError: patience: expected a whole number of at least 1, or None, got 0
    """

    max_iter: int | None = None
    validate: Callable | None = None
    patience: int | None = None
    checkpoint: Any = None
    checkpoint_every: int | None = None
    progress: bool | None = None
    callback: Callable | None = None
    tol: float | None = None
    first_step: float | None = None
    history_size: int | None = None
    solver: str | None = None

    def __post_init__(self):
        """Checks what was given."""
        checks.whole(self.patience, "patience", 1, or_none=True)
        for name, least in (("max_iter", 0), ("checkpoint_every", 1), ("history_size", 1)):
            if getattr(self, name) is not None:
                checks.whole(getattr(self, name), name, least)
        checks.expect(self.validate is None or callable(self.validate), "validate", "a function of params, or None",
                      self.validate)
        checks.expect(self.callback is None or callable(self.callback), "callback", "a function of an entry of the "
                      "history, or None", self.callback)  # fmt: skip
        checks.expect(self.tol is None or self.tol >= 0, "tol", "a number of at least 0", self.tol)
        checks.expect(self.first_step is None or self.first_step > 0, "first_step", "a positive number",
                      self.first_step)
        checks.expect(self.solver in (None, "jaxopt", "optax"), "solver", "jaxopt or optax", self.solver)

    @classmethod
    def of(cls, run: Run | None, options: Mapping[str, Any], default: Run | None = None) -> Run:
        """One `Run` from what a ``fit`` was given: options before fields of ``run``, these before defaults.

        Args:
          run: as the caller gave it.
          options: fields by name, as the caller gave them.
          default: the method's own.

        Returns:
          `Run`.

        Raises:
          TypeError: for an option that is no field, naming it.
          ValueError: for a ``run`` of another type, or a field out of range.

        Example:
          >>> Run.of(Run(max_iter=5), {"patience": 2}, Run(max_iter=100, tol=1e-5))
          Run(max_iter=5, ..., patience=2, ..., tol=1e-05, ...)
          >>> Run.of(None, {"max_itr": 5})
          Traceback (most recent call last):
          ...
          TypeError: unexpected keyword argument 'max_itr': expected a field of optim.Run (max_iter, ...)
        """
        fields = [field.name for field in dataclasses.fields(cls)]
        for name in options:
            if name not in fields:
                raise TypeError(f"unexpected keyword argument {name!r}: expected a field of optim.Run "
                                f"({', '.join(fields)})")
        checks.expect(run is None or isinstance(run, cls), "run", "an optim.Run, or None", type(run).__name__)
        given = {} if run is None else {name: getattr(run, name) for name in fields}
        given |= {name: value for name, value in options.items() if value is not None}
        given = {name: value for name, value in given.items() if value is not None}
        return dataclasses.replace(cls() if default is None else default, **given)

    def run(self, minimize: Callable[..., Fit], whole: Callable, *args, **settings) -> Fit:
        """Minimises over a part of the parameters, or another form of them, than ``validate`` and the caller see.

        Args:
          minimize: `minimize_lbfgs`, say.
          whole: function of what is learned giving the parameters.
          *args: of ``minimize``.
          **settings: of ``minimize``.

        Returns:
          `Fit` of the parameters.

        Example:
          >>> from jaxsim import optim
          >>> fit = Run().run(optim.minimize_lbfgs, str, lambda x, data: (x - data) ** 2, 0.0, 3.0)
          >>> fit.params
          '3.0'
        """
        score = self.validate
        own = self if score is None else dataclasses.replace(self, validate=lambda learned: score(whole(learned)))
        fit = minimize(*args, **settings, run=own)
        return fit._replace(params=whole(fit.params))

    def in_common(self) -> dict[str, Any]:
        """What processes that fit together have in common: not the bar, nor who is called.

        Example:
          >>> run = Run(max_iter=5, checkpoint="folder").in_common()
          >>> run["max_iter"], run["checkpoint"], run["validate"]
          (5, True, False)
        """
        alike = {name: value for name, value in vars(self).items() if name not in ("progress", "callback")}
        return alike | {name: alike[name] is not None for name in ("validate", "checkpoint")}

    def expect_only(self, who: str, *names: str) -> None:
        """Refuses fields that an optimiser does not know.

        Args:
          who: the optimiser, for the message.
          *names: the fields that it knows.

        Raises:
          ValueError: naming the first other field that is given.

        Example:
          >>> Run(tol=1e-3).expect_only("SGD", "max_iter")
          Traceback (most recent call last):
          ...
          ValueError: tol: expected None (SGD has no such setting), got 0.001
        """
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            checks.expect(value is None or field.name in names, field.name, f"None ({who} has no such setting)", value)


class Monitor:
    """History, progress, validation and patience, shared by the optimisers."""

    def __init__(self, run: Run, label: str, *, shared: bool = False):
        """Opens the bar; ``shared`` is a fit of several processes, for which the scores of process 0 count."""
        self.shared = shared
        self.validate, self.patience, self.callback = run.validate, run.patience, run.callback
        self.history: list[dict] = []
        self.best_score, self.best_step, self.best_params = -np.inf, 0, None
        self.earlier, self.started = 0.0, time.perf_counter()
        self.bar = tqdm(total=run.max_iter, desc=label, disable=None if run.progress else True, leave=True)

    def seconds(self) -> float:
        """Seconds of work so far, earlier runs included."""
        return self.earlier + time.perf_counter() - self.started

    def record(self, step: int, loss: float, grad_norm: float, evaluations: int, params) -> None:
        """Scores the parameters after a step and notes it in history and bar."""
        entry = {"step": step, "loss": loss, "grad_norm": grad_norm, "evaluations": evaluations, "validation": None}
        if self.validate is not None:
            entry["validation"] = self._score(step, params)
        entry["seconds"] = self.seconds()
        self.history.append(entry)
        self._tell(entry)
        shown = {"loss": f"{loss:.5f}"}
        if entry["validation"] is not None:
            shown["dev"] = f"{entry['validation']:.4f}"
        self.bar.set_postfix(shown, refresh=False)
        self.bar.update(step - self.bar.n)

    def _score(self, step: int, params) -> float:
        """The score of the parameters after a step, which may be the best."""
        if self.shared:  # each process has its own, and all have to go on alike
            score = gathering.agreed(lambda: scored(self.validate, params, step), "validate")
            score = float(np.frombuffer(gathering.all_of(np.float64(score).tobytes())[0])[0])
        else:
            score = scored(self.validate, params, step)
        if score > self.best_score:
            self.best_score, self.best_step, self.best_params = score, step, params
        return score

    def exhausted(self, step: int) -> bool:
        """Whether patience has run out."""
        return self.validate is not None and self.patience is not None and step - self.best_step >= self.patience

    def meta(self) -> dict:
        """What a checkpoint notes beside the arrays."""
        return {"history": [*self.history], "best_score": self.best_score, "best_step": self.best_step,
                "seconds": self.seconds()}

    def restore(self, meta: dict, best_params, params, step: int | None = None) -> None:
        """Goes on from a checkpoint's notes, also from those of a fit without scores, or to one without.

        Args:
          meta: the notes.
          best_params: those of the best score; the last ones where nothing had a score.
          params: the last ones.
          step: after which they are; the last one of the notes unless given.
        """
        try:
            self.history, self.earlier = meta["history"], meta["seconds"]
            best, best_step, last = meta["best_score"], meta["best_step"], self.history[-1]
            was_scored = last["validation"] is not None
            self.bar.update(last["step"] - self.bar.n)
        except (KeyError, IndexError, TypeError) as error:
            raise ValueError(f"checkpoint: expected the notes of a fit, got others ({error!r})") from error
        if self.validate is None:  # no score chooses the parameters
            self.history = [entry | {"validation": None} for entry in self.history]
        elif was_scored:
            self.best_score, self.best_step = best, best_step
            self.best_params = best_params if best > -np.inf else None
        else:  # patience counts from here
            self.best_step = last["step"]
            if step in (None, last["step"]):
                last["validation"] = self._score(last["step"], params)
        for entry in self.history:
            self._tell(entry)

    def _tell(self, entry: dict) -> None:
        """Gives the callback an entry of its own."""
        if self.callback is not None:
            self.callback(dict(entry))

    def result(self, params, converged: bool) -> Fit:
        """The `Fit` of the best parameters, or of the last where nothing was validated."""
        self.bar.close()
        last = self.history[-1]
        chosen = last
        if self.best_params is not None:
            params, chosen = self.best_params, self.history[self.best_step]
        return Fit(params, chosen["loss"], chosen["grad_norm"], converged, last["step"], last["evaluations"],
                   self.history)


def scored(validate: Callable, params, step: int) -> float:
    """The score of parameters after a step.

    Raises:
      ValueError: for NaN, of which none is the best.
    """
    score = float(validate(params))
    checks.expect(score == score, "validate", f"a number after step {step}", score)
    return score


def mark_of(objective, *trees) -> str:
    """Fingerprint of a problem: its functions, static settings (without memory addresses) and arrays.

    A function of this library counts by its name; one of a user also by its code and by what it holds on to, so that it
    may be edited between two runs. What it calls does not count.
    """
    names, held = _told_apart([objective, *_static(jax.tree.structure(trees))], set())
    shape = re.sub(r" at 0x[0-9a-f]+", "", str(jax.tree.structure(trees)))
    return checkpoints.fingerprint([*names, shape], held, trees)


def _static(structure) -> list:
    """A user's functions among the static settings of a pytree, whose own words tell the names of others."""
    _, settings = structure.node_data() or (None, ())
    settings = settings if isinstance(settings, tuple | list) else (settings,)
    own = [one for one in settings if callable(one)]
    own = [one for one in own if (getattr(one, "__module__", None) or "").split(".")[0] not in ("jax", "jaxsim")]
    return [*own, *(one for child in structure.children() for one in _static(child))]


def _told_apart(value, seen: set[int]) -> tuple[list[str], list]:
    """Words and arrays that tell a function, or a pytree with functions in it, from others."""
    words, held = [], []
    try:
        leaves = jax.tree.leaves(value)
    except (TypeError, ValueError):  # a dictionary whose keys have no order
        leaves = [type(value)]
    for leaf in leaves:
        if isinstance(leaf, str | bytes | numbers.Number):
            words.append(repr(leaf))
        elif isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            held.append(jax.random.key_data(leaf))
        elif isinstance(leaf, np.ndarray | jax.Array) and leaf.dtype != object:
            held.append(leaf)
        elif not callable(leaf):
            words.append(type(leaf).__qualname__)
        elif id(leaf) not in seen:
            seen.add(id(leaf))
            for more, found in zip((words, held), _of_function(leaf, seen), strict=True):
                more.extend(found)
    return words, held


def _of_function(function, seen: set[int]) -> tuple[list[str], list]:
    """The same of one function."""
    if isinstance(function, functools.partial):
        return _told_apart([function.func, *function.args, function.keywords], seen)
    plain = inspect.unwrap(function)  # `jax.jit` wraps it
    plain = getattr(plain, "__func__", plain)
    where = getattr(plain, "__module__", None) or ""
    name = f"{_file_of(where)}.{getattr(plain, '__qualname__', type(plain).__qualname__)}"
    if where.split(".")[0] == __name__.split(".")[0]:  # two without a name of their own may stand in one function
        return [name, *(_of_code(plain.__code__) if name.endswith("<lambda>") else [])], []
    code, of = getattr(plain, "__code__", None), getattr(function, "__self__", plain)
    if code is None or of is not plain:  # an object that is called, or its method
        words, held = _told_apart(dict(getattr(of, "__dict__", {})), seen)
        return [name, *([] if code is None else _of_code(code)), *words], held
    cells = [cell.cell_contents for cell in plain.__closure__ or () if _is_full(cell)]
    found = [_told_apart(one, seen) for one in (*cells, plain.__defaults__ or (), plain.__kwdefaults__ or {})]
    return ([name, *_of_code(code), *(word for words, _ in found for word in words)],
            [one for _, held in found for one in held])


def _file_of(module: str) -> str:
    """The last name of a module; of a program its file's, which it has where another program imports it."""
    if module == "__main__":
        return Path(getattr(sys.modules.get(module), "__file__", None) or module).stem
    return module.split(".")[-1]


def _is_full(cell) -> bool:
    """Whether a variable of a closure has a value yet."""
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False


def _of_code(code: types.CodeType) -> list[str]:
    """What a function does, without where it stands."""
    inner = [word for part in code.co_consts if isinstance(part, types.CodeType) for word in _of_code(part)]
    constants = [repr(part) for part in code.co_consts if not isinstance(part, types.CodeType | frozenset)]
    return [code.co_code.hex(), *code.co_names, *constants, *inner]


def first_scale(params, norm: jax.Array, first_step: float | None) -> jax.Array:
    """How many times the negative gradient the first trial step is, by `Run.first_step`.

    A start of zeros has no length that a step could be a part of: from there it is the gradient itself.
    """
    if first_step is None:
        return jnp.ones_like(norm)
    length = jnp.sqrt(dot(params, params))
    some = (norm > 0) & (length > 0)
    return jnp.where(some, first_step * length / jnp.where(some, norm, 1), 1)


def expect_gradient(norm: float, step: int, what: str) -> None:
    """Raises FloatingPointError naming the step if a gradient has NaN; one whose norm only overflows is followed."""
    if np.isnan(norm):
        raise FloatingPointError(f"{what}: expected a gradient of numbers, got NaN at step {step}, where the loss is "
                                 "finite; look for roots, norms and logarithms at 0 in the objective")


def expect_finite(value: float, step: int | str, what: str) -> None:
    """Raises FloatingPointError naming the step if a loss is not finite."""
    if not np.isfinite(value):
        raise FloatingPointError(f"{what}: expected a finite loss, got {value} at step {step}; "
                                 "check the input for extreme values, or lower the step size")
