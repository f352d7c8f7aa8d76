r"""Information-theoretic metric learning of a low-rank metric, alone (HDLR) or beside the identity (HDILR), 001 §2.2.

ITML (Davis, Kulis, Jain, Sra, Dhillon 2007) looks for the metric nearest to a given one in the LogDet divergence
:math:`D(A, A_0) = \operatorname{tr} A A_0^{-1} - \log\det A A_0^{-1} - n` under which similar pairs are at most u apart
and others at least l. Davis and Dhillon (2008) learn a low-rank one for high-dimensional data; their printed algorithm
is wrong (001, footnote 2), so the updates here are derived from ITML.

**Low rank.** D is finite only where :math:`A` has the range of :math:`A_0 = R R^\top`, that is where
:math:`A = R M R^\top` with :math:`M \succ 0`, ``[k, k]``, and then :math:`D(A, A_0) = D(M, I)`. With
:math:`z = R^\top (x - y)` the distance is :math:`z^\top M z`: ITML in the projected space, from the identity.

**Identity plus low rank.** With orthonormal :math:`U` and :math:`A = I + U L U^\top = (I - U U^\top) + U M U^\top`,
:math:`M = I + L`, again :math:`D(A, I) = D(M, I)`. With :math:`z = U^\top (x - y)` the distance is
:math:`z^\top M z + r`, where the residual :math:`r = \|x - y\|^2 - \|z\|^2` is what no M can change.

**Update.** Slack: a bound is a variable ξ, which starts at u or l and is drawn to it by :math:`s D(\xi, \xi_0)`, s the
slack weight. For one pair, δ = 1 if it is similar and -1 if not, the projection onto :math:`z^\top M z + r = \xi` has a
multiplier α with :math:`M'^{-1} = M^{-1} - \delta\alpha\, z z^\top` and :math:`1/\xi' = 1/\xi + \delta\alpha / s`. With
:math:`p = z^\top M z` and :math:`\mu = -\delta\alpha` the condition is

.. math:: \frac{p}{1 + \mu p} + r = \frac{s\,\xi}{s - \mu\,\xi},

whose left side falls and whose right side rises in μ between the poles :math:`-1/p` and :math:`s/\xi`, so that there is
one solution between them: the larger root of

.. math:: r p \xi\, \mu^2 + \big((p + r)\xi + s p \xi - s r p\big)\mu - s (p + r - \xi) = 0.

Without a residual it is ITML's :math:`\delta\alpha = \frac{s}{s + 1}(1/p - 1/\xi)`. Bounds are inequalities, so the sum
λ of a pair's multipliers must not fall below 0: α is at most λ, and λ falls by α. By Sherman and Morrison
:math:`M' = M + \beta M z z^\top M` with :math:`\beta = \delta\alpha / (1 - \delta\alpha p)`; with :math:`M = B B^\top`
and :math:`w = B^\top z` this is :math:`B' = B (I + c\, w w^\top)`, :math:`c = (\sqrt{1 + \beta p} - 1) / p`, which
keeps M positive definite at :math:`O(k^2)` a pair.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.data.labelled_pairs import LabelledPairs, labelled
from jaxsim.methods import statistics
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights.metric import Metric
from jaxsim.optim import Fit, Run
from jaxsim.optim.monitor import scored
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import EVALUATION

_FAR = 14  # power of two of the longest difference from which on the unit of distances is changed
_WIDE = 54  # power of two of products of distances and slack from which on each equation is brought to a moderate scale
_MOST = 120  # power of two that float32 holds, as its inverse
_LARGE = 512  # dimensions from which on blocks of pairs take less time than single ones: the factor leaves the cache
_BLOCK = 32  # pairs


class State(NamedTuple):
    """Where the projections have got to.

    Attributes:
      factor: ``B``, ``[k, k]``, with ``M = B Bᵀ``.
      bounds: ``ξ``, ``[n]``.
      multipliers: ``λ``, ``[n]``.
    """

    factor: jax.Array
    bounds: jax.Array
    multipliers: jax.Array


def multiplier(p, r, bound, slack, of=jnp):
    """The μ that puts one pair at its bound (see the module's equations); elementwise.

    Args:
      p: distance that the metric can change, at least 0.
      r: residual, at least 0.
      bound: ``ξ``, positive.
      slack: weight of the slack, positive.
      of: `jax.numpy` or NumPy, whichever the numbers are of.

    Returns:
      ``μ``; 0 where p is 0. Negative where the pair is to move apart.

    Example:
      >>> float(multiplier(jnp.array(4.0), jnp.array(0.0), jnp.array(1.0), 1.0))  # (1 / 1 - 1 / 4) / 2
      0.375
    """
    return _root(p, r, bound, slack, 1, of)


def _guarded(p, r, bound, slack):
    """`multiplier` of numbers of any size: the equation is divided by powers of two, which round nothing."""
    size, whole = _power(jnp.maximum(jnp.maximum(p, r), bound)), _power(jnp.maximum(slack, 1))
    return _root(p / size, r / size, bound / size, slack / whole, 1 / whole) / size


def _power(x):
    """A power of two near a positive number; 1 for 0."""
    one, power = jnp.ones_like(x), jnp.frexp(jnp.where(x > 0, x, 1))[1]
    return jnp.ldexp(one, jnp.clip(power, -_MOST, _MOST))


def _root(p, r, bound, slack, unit, of=jnp):
    """The larger root of the equation, times ``unit``; ``of`` is the module of arrays."""
    a = r * p * bound * unit
    b = (p + r) * bound * unit + slack * p * bound - slack * r * p
    c = slack * (p + r - bound)
    root = of.sqrt(of.maximum(b * b + 4 * a * c, 0))
    # Of the two forms of the larger root, the one that does not cancel.
    safe = of.where(a > 0, a, 1)
    plain = 2 * c / of.where(b + root > 0, b + root, 1)
    result = of.where((b > 0) | (a <= 0), plain, (root - b) / (2 * safe))
    return of.where(p > 0, result, 0)


@functools.partial(jax.jit, static_argnames="guarded")
def cycle(state: State, z: jax.Array, residuals: jax.Array, similar: jax.Array, slack: jax.Array,
          guarded: bool = False) -> State:
    """Projects onto the bound of every pair once, in order.

    Args:
      state: `State`.
      z: ``[n, k]`` differences of the pairs' documents, projected.
      residuals: ``[n]`` part of the squared distances outside the projection.
      similar: ``[n]`` 1 for similar pairs, -1 for others.
      slack: scalar weight of the slack.
      guarded: whether distances or slack are such that their products may leave the range of their type.

    Returns:
      `State`.
    """
    solve = _guarded if guarded else multiplier

    def one(factor, pair):
        difference, *rest = pair
        w = _product(difference, factor)
        c, moved = _projected(w, rest, slack, solve)
        return factor + c * jnp.outer(_product(factor, w), w), moved

    factor, (bounds, multipliers) = jax.lax.scan(one, state.factor, (z, residuals, similar, state.bounds,
                                                                     state.multipliers))
    return State(factor, bounds, multipliers)


@functools.partial(jax.jit, static_argnames="guarded")
def cycle_in_blocks(state: State, z: jax.Array, residuals: jax.Array, similar: jax.Array, slack: jax.Array,
                    guarded: bool = False) -> State:
    r"""`cycle`, up to rounding, for factors that no cache holds: it reads and writes them once for a block of pairs.

    With :math:`B_0` before the block and :math:`u_j = c_j B_{j-1} w_j`, :math:`B_i = B_0 + \sum_{j \le i} u_j
    w_j^\top`. So a pair needs :math:`w_i = B_0^\top z_i + \sum_{j<i} w_j (u_j^\top z_i)` and :math:`B_{i-1} w_i =
    B_0 w_i + \sum_{j<i} u_j (w_j^\top w_i)`, whose products with :math:`B_0` are two of matrices for the whole block.

    Args, returns: of `cycle`.
    """
    solve = _guarded if guarded else multiplier
    num = z.shape[0]

    def blocks(x):
        """A row more is a pair of equal documents, which changes nothing."""
        padded = jnp.pad(x, ((0, -num % _BLOCK), *((0, 0),) * (x.ndim - 1)), constant_values=0 if x is z else 1)
        return padded.reshape(-1, _BLOCK, *x.shape[1:])

    def of_block(factor, given):
        differences, *rest = given
        first = _product(differences, factor)  # B₀ᵀ zᵢ as rows
        second = _product(first, factor.T)  # B₀ B₀ᵀ zᵢ

        def one(i, found):
            u, w, v, moved = found  # v: B₀ wᵢ; rows from i on are 0
            past = _product(u, differences[i])
            own = first[i] + _product(past, w)
            image = second[i] + _product(past, v)
            c, new = _projected(own, [x[i] for x in rest], slack, solve)
            added = c * (image + _product(_product(w, own), u))
            return (u.at[i].set(added), w.at[i].set(own), v.at[i].set(image),
                    tuple(x.at[i].set(y) for x, y in zip(moved, new, strict=True)))

        empty = jnp.zeros_like(differences)
        # Products F Fᵀ of the rows alone would do in less time, but short distances lose digits in them.
        u, w, _, moved = jax.lax.fori_loop(0, _BLOCK, one, (empty, empty, empty, (rest[2], rest[3])))
        return factor + _product(u.T, w), moved

    factor, moved = jax.lax.scan(of_block, state.factor, tuple(map(blocks, (z, residuals, similar, state.bounds,
                                                                            state.multipliers))))
    return State(factor, *(x.ravel()[:num] for x in moved))


def _product(a: jax.Array, b: jax.Array) -> jax.Array:
    return jnp.matmul(a, b, precision=EVALUATION)


def _projected(w: jax.Array, pair, slack: jax.Array, solve) -> tuple[jax.Array, tuple[jax.Array, jax.Array]]:
    """``c`` of one pair, of which ``w`` is ``Bᵀ z``, and its bound and multiplier afterwards."""
    r, sign, bound, kept = pair
    p = jnp.sum(w * w)
    alpha = jnp.minimum(kept, -sign * solve(p, r, bound, slack))
    step = sign * alpha
    some = p > 0
    shrunk = jnp.where(some, p, 1)
    c = jnp.where(some, (jnp.sqrt(1 + step * p / (1 - step * p)) - 1) / shrunk, 0)
    return c, (slack * bound / (slack + step * bound), kept - alpha)


def bounds_of(distances: np.ndarray, low: float = 5.0, high: float = 95.0) -> tuple[float, float]:
    """Bounds from the spread of the pairs' distances, as Davis and others (2007) set them.

    Args:
      distances: ``[n]`` squared distances at the start.
      low: percentile for similar pairs.
      high: percentile for others.

    Returns:
      ``(upper bound of similar pairs, lower bound of others)``.

    Example:
      >>> bounds_of(np.arange(101.0))
      (5.0, 95.0)
    """
    return float(np.percentile(distances, low)), float(np.percentile(distances, high))


def bounds_from(distances: np.ndarray, bounds, percentiles) -> tuple[float, float]:
    """The bounds of a fit: those given, or else percentiles of the distances.

    Args:
      distances: ``[n]`` squared distances at the start.
      bounds: two of them, or None.
      percentiles: the two of `bounds_of`.

    Returns:
      ``(upper bound of similar pairs, lower bound of others)``.

    Raises:
      ValueError: for percentiles outside of [0, 100], or bounds that are not positive and finite.

    Example:
      >>> bounds_from(np.arange(101.0), None, (5.0, 95.0)), bounds_from(np.arange(101.0), (1.0, 2.0), (5.0, 95.0))
      ((5.0, 95.0), (1.0, 2.0))
    """
    ranks = [isinstance(one, int | float) and 0 <= one <= 100 for one in percentiles]
    checks.expect(ranks == [True, True], "percentiles", "two numbers in [0, 100]", percentiles)
    upper, lower = bounds_of(distances, *percentiles) if bounds is None else bounds
    for value in (upper, lower):
        checks.expect(0 < value < float("inf"), "bounds", "two positive squared distances", (upper, lower))
    return upper, lower


@dataclasses.dataclass(frozen=True)
class _Best:
    score: float
    factor: np.ndarray
    step: int


def fit(
    left: Terms,
    right: Terms,
    pairs: LabelledPairs,
    *,
    init: Projection,
    identity: bool = False,
    bounds: tuple[float, float] | None = None,
    percentiles: tuple[float, float] = (5.0, 95.0),
    slack: float = 1.0,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns a metric from labelled pairs by cyclic projections.

    Args:
      left: weighted documents, ``[num_left, num_terms]``. Distances are between the rows as they are, not between rows
        of length one.
      right: documents over the same terms; ``left`` again for pairs of one collection.
      pairs: `LabelledPairs` with labels 1 (similar) and 0, visited in this order in every cycle.
      init: ``R``: in the paper, LSA. The identity matrix, for few terms, is ITML itself.
      identity: learn ``I + U L Uᵀ`` (HDILR), U an orthonormal basis of the columns of ``init``, instead of ``R M Rᵀ``
        (HDLR).
      bounds: ``(u, l)``, squared distances; percentiles of those of the pairs at the start unless given.
      percentiles: which ones, of u and of l.
      slack: weight of the slack, γ in ITML: large bends the bounds little.
      run: how the fit runs, a step being a cycle: ``max_iter`` (100 by default), ``validate``, ``patience`` and ``tol``
        (1e-3), the change of the multipliers in a cycle relative to their sum before and after.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of a `Projection` ``R B`` (compare by cosine or distance), or with ``identity`` of a `models.metric.Metric`.
      ``loss`` is NaN; ``history`` holds the change of the multipliers of every cycle.

    Raises:
      ValueError: for sides that do not agree, rows out of range, labels other than 0 and 1, a start that does not fit,
        is not finite or has dependent columns (with ``identity``), bad settings, or a score that is not a number.
      FloatingPointError: if multipliers, bounds or metric leave the range of their type.

    Example:
      >>> import scipy.sparse
      >>> rows = sparse.from_scipy(scipy.sparse.csr_matrix([[0.1, 0.2], [2.0, 0.1], [0.2, 2.0]]))
      >>> chosen = labelled([0, 0], [1, 2], [1.0, 0.0], num_left=3, num_right=3)  # apart in term 0, but similar
      >>> found = fit(rows, rows, chosen, init=Projection(jnp.eye(2)), bounds=(1.0, 4.0)).params.weights
      >>> metric = found @ found.T
      >>> bool(metric[0, 0] < 1 < metric[1, 1])
      True

    Differs from the paper: neither 001 nor the authors print the corrected updates; see the module's derivation.

    Relations: `lsa` is its start; `vl_cv` learns a projection without such a constraint on its range.
    """
    run = Run.of(run, options, Run(max_iter=100, tol=1e-3))
    run.expect_only("ITML", "max_iter", "tol", "validate", "patience")
    pairs, start = checked(left, right, pairs, slack), started(init, left)
    labels = np.asarray(pairs.labels)
    dtype = left.values.dtype
    if identity:
        start = orthonormal(start)
    z, residuals = _differences(left, right, pairs, start, identity)
    distances = np.sum(z * z, axis=1) + residuals
    upper, lower = bounds_from(distances, bounds, percentiles)
    similar = np.where(labels == 1, 1.0, -1.0)
    # The metric does not depend on the unit of distances: a power of two that rounds nothing.
    largest = max(float(np.max(distances)), upper, lower)
    half = int(np.frexp(largest)[1]) // 2
    half = half if abs(half) > _FAR else 0
    z, residuals, upper, lower = (np.ldexp(one, -power * half) for one, power in
                                  ((z, 1), (residuals, 2), (upper, 2), (lower, 2)))
    guarded = bool(half) or not 2.0**-_WIDE < np.ldexp(largest, -2 * half) ** 2 * max(slack, 1) < 2.0**_WIDE
    given = [jnp.asarray(one, dtype) for one in (z, residuals, similar, slack)]
    state = State(jnp.eye(start.shape[1], dtype=dtype), jnp.asarray(np.where(labels == 1, upper, lower), dtype),
                  jnp.zeros(labels.size, dtype))
    model = functools.partial(_model, jnp.asarray(start, dtype), identity)
    large = start.shape[1] >= _LARGE

    def advance(state: State) -> State:
        return (cycle_in_blocks if large else cycle)(state, *given, guarded=guarded)

    return until_done(run, state, advance, model, slack)


def until_done(run: Run, state: State, advance: Callable[[State], State], model: Callable, slack: float) -> Fit:
    """Cycles until the multipliers stand still, patience is at its end, or there are as many as ``run`` allows.

    Args:
      run: of `fit`.
      state: the start.
      advance: function of a state that returns the one after a cycle.
      model: function of a state's ``factor`` that returns parameters.
      slack: of `fit`, for messages.

    Returns:
      `Fit` of what ``model`` gives.

    Raises:
      FloatingPointError: as `fit`.

    Example:
      >>> state = State(np.eye(2), np.ones(1), np.zeros(1))
      >>> until_done(Run(max_iter=5, tol=1e-3), state, lambda state: state, lambda factor: factor, 1.0).steps
      1
    """
    history, best, converged, step = [], None, False, 0
    while True:
        entry = {"step": step, "loss": float("nan"), "grad_norm": float("nan"), "evaluations": step}
        if step:
            before = state
            state = advance(state)
            total = float(before.multipliers.sum() + state.multipliers.sum())
            change = float(abs(state.multipliers - before.multipliers).sum())
            _expect_finite(state, change, step, slack)
            entry["change"] = change / total if total > 0 else 0.0
            converged = entry["change"] <= run.tol
        if run.validate is not None:
            entry["validation"] = scored(run.validate, model(state.factor), step)
            if best is None or entry["validation"] > best.score:
                best = _Best(entry["validation"], np.array(state.factor, order="K"), step)
        history.append(entry)
        waited = run.patience is not None and best is not None and step - best.step >= run.patience
        if step == run.max_iter or converged or waited:
            break
        step += 1
    params = model(state.factor if best is None else best.factor)
    return Fit(params, float("nan"), float("nan"), converged, step, step, history)


def _expect_finite(state: State, change: float, step: int, slack: float) -> None:
    if not np.isfinite(change):
        raise FloatingPointError(f"itml: cycle {step}: expected finite multipliers, got {change}")
    bounds = np.asarray(state.bounds)
    if not (np.isfinite(state.factor).all() and np.isfinite(bounds).all() and (bounds > 0).all()):
        raise FloatingPointError(f"itml: cycle {step}: expected a finite metric and positive bounds, got others "
                                 f"(bounds out of reach, or a slack too large for {state.factor.dtype}: {slack:g})")


def orthonormal(start: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns of a start, or an error where these are dependent."""
    basis, triangle = np.linalg.qr(start)
    spread = np.abs(np.diag(triangle))
    checks.expect(bool(spread.min() > 1e-6 * spread.max()), "init", "independent columns", "dependent ones")
    return basis


def checked(left: Terms, right: Terms, pairs: LabelledPairs, slack: float) -> LabelledPairs:
    """The pairs, if they, the documents and the slack fit."""
    statistics.expect_sides(left, right, same="terms")
    pairs = labelled(*pairs, num_left=left.num_docs, num_right=right.num_docs)
    labels = np.asarray(pairs.labels)
    checks.expect(labels.size > 0, "pairs", "at least one", "none")
    checks.expect(bool(np.all((labels == 0) | (labels == 1))), "pairs.labels", "0 or 1", "others")
    checks.positive(slack, "slack")
    with np.errstate(over="ignore"):
        held = float(np.asarray(slack, left.values.dtype))
    checks.expect(0 < held < float("inf"), "slack", f"a number that {left.values.dtype} holds", slack)
    return pairs


def started(init: Projection, left: Terms) -> np.ndarray:
    """The start in float64, if it fits."""
    checks.kind(init, "init", Projection)
    start = np.asarray(init.weights, np.float64)
    checks.expect(start.ndim == 2 and start.shape[0] == left.num_terms, "init", f"shape ({left.num_terms}, k)",
                  start.shape)
    checks.expect(bool(np.isfinite(start).all()) and bool(np.any(start)), "init", "finite weights, not all zero",
                  "others")
    return start


def _differences(left, right, pairs, start, identity) -> tuple[np.ndarray, np.ndarray]:
    """Projected differences of the pairs' documents, and what of their squared distances is outside, in float64."""
    one, other = (sparse.to_scipy(side).astype(np.float64) for side in (left, right))
    rows = np.asarray(pairs.left), np.asarray(pairs.right)
    z = (one @ start)[rows[0]] - (other @ start)[rows[1]]
    if not identity:
        return z, np.zeros(len(z))
    apart = one[rows[0]] - other[rows[1]]
    squares = np.asarray(apart.multiply(apart).sum(axis=1)).ravel()
    return z, np.maximum(squares - np.sum(z * z, axis=1), 0)


def _model(start: jax.Array, identity: bool, factor: jax.Array) -> Projection | Metric:
    if not identity:
        return Projection(jnp.matmul(start, factor, precision=EVALUATION))
    gains, axes = np.linalg.eigh(np.asarray(factor, np.float64) @ np.asarray(factor, np.float64).T)
    basis = jnp.matmul(start, jnp.asarray(axes, start.dtype), precision=EVALUATION)
    return Metric(basis, jnp.asarray(gains - 1, start.dtype))
