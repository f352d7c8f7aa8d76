"""The methods ``s2net`` and ``s2net-2`` from pairs of texts: their start, all negatives or batches, and the devices.

Both start from OPCA. ``s2net-2`` gives each side a copy of it as a matrix of its own (000 §6). The start is kept beside
the checkpoints.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, sparse
from jaxsim.evaluate import mates
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import opca, s2net, s2net_sgd
from jaxsim.methods.projections import Projection, encode
from jaxsim.methods.s2net import mined
from jaxsim.model import ACTIVATIONS
from jaxsim.optim import checkpoints
from jaxsim.parallel import sharding, term_shards
from jaxsim.sparse import Terms, Vectors
from jaxsim.train.problem import Learned, Problem
from jaxsim.train.resume import START

BLENDS = (0.25, 0.5, 0.75)
"""Shares of the end that ``blend`` tries beside the end itself."""
START_PAIRS = 8_000
"""Pairs that the closed-form start is fitted on, at most."""
_EXACT_PAIRS = 8_000  # up to here on all negatives by L-BFGS; above it on batches by Adam
_FROM_RANDOM = 300  # iterations at most, without batches
_STEPS = 6_000  # of Adam, about; between 5 and 40 epochs


def activation_of(name: str) -> Callable | None:
    """The elementwise function of a name.

    Args:
      name: in `model.ACTIVATIONS`.

    Returns:
      The function, or None.

    Raises:
      ValueError: for another name.

    Example:
      >>> activation_of("none") is None
      True
    """
    checks.expect(name in ACTIVATIONS, "activation", f"one of {', '.join(ACTIVATIONS)}", name)
    return ACTIVATIONS[name]


def fit(problem: Problem, *, matrices: int = 1) -> Learned:
    """Trains from OPCA: on all negatives where that is cheap, else in batches.

    Args:
      problem: training pairs, what to stop by, and settings.
      matrices: 1 for both sides, or 2, one a side.

    Returns:
      `Learned`, of a `Projection` or of a pair; with ``shard_terms`` in host memory.

    Raises:
      ValueError: for bad settings.
    """
    settings, m = problem.settings, problem.train[0].num_docs
    activation = activation_of(settings.activation)
    key = jax.random.key(settings.seed)
    batch_size = settings.batch_size
    if batch_size is None:
        batch_size = 0 if m <= _EXACT_PAIRS or settings.shard_terms else 256
    _expect_possible(problem, batch_size)
    mesh = _mesh(problem, batch_size)
    with term_shards.on_host() if settings.shard_terms else contextlib.nullcontext():
        init = start(problem) if settings.start == "opca" else _drawn(problem)
    common = {"init": (init, init) if matrices == 2 else init, "gamma": settings.gamma, "groups": _groups(problem),
              "activation": activation, "validate": problem.validate, "checkpoint": problem.checkpoint,
              "progress": problem.progress, "precision": settings.precision, "callback": problem.logged(),
              "weights": problem.weights}  # fmt: skip
    if batch_size == 0:
        most = 100 if settings.start == "opca" else _FROM_RANDOM
        max_iter, patience = most if problem.validate else 15, 30  # with nothing to stop by, stop early
    else:
        max_iter, patience = int(np.clip(_STEPS * batch_size / m, 5, 40)), 10
    common["max_iter"] = max_iter if settings.max_iter is None else settings.max_iter
    if problem.validate:
        common["patience"] = patience if settings.patience is None else settings.patience
    notes = {}
    if problem.documents is not None:
        common["mined"], notes = _mined(problem, common["init"], activation)
    if batch_size:
        return _blended(Learned(s2net_sgd.fit(*problem.train, key=key, batch_size=batch_size, **common)), problem, init)
    if settings.shard_terms and problem.validate:
        common["validate"] = problem.stops_by(functools.partial(shared_validator, mesh=mesh, activation=activation))
    sides = problem.train
    if problem.spread is not None and mesh is None and problem.documents is None:
        sides, common["spread"] = problem.factors
    result = s2net.fit(*sides, mesh=mesh, shard_terms=settings.shard_terms, beta=settings.beta, **common)
    return _blended(Learned(result, notes), problem, init)


def _expect_possible(problem: Problem, batch_size: int) -> None:
    """Refuses, before the start takes its time, what `settings.check` cannot know of."""
    settings = problem.settings
    checks.expect(not batch_size or settings.beta == 0, "beta", "0, with batches", settings.beta)
    checks.expect(not batch_size or problem.documents is None, "documents",
                  "none, with batches (batch_size 0 takes all negatives)", "some")  # fmt: skip
    checks.expect(problem.validate is not None or not settings.blend, "blend",
                  "held-out pairs or judged queries to choose by", "none")  # fmt: skip


def _drawn(problem: Problem) -> Projection:
    """Random numbers as a start."""
    key = jax.random.fold_in(jax.random.key(problem.settings.seed), 1)
    weights = s2net.random_init(problem.train[0].num_terms, problem.k, key=key).weights
    return Projection(weights.astype(problem.train[0].values.dtype))


def _blended(learned: Learned, problem: Problem, init: Projection) -> Learned:
    """The mean of start and end that scores best, each at length one; the end where none is better.

    WiSE-FT (arXiv 2109.01903), with the start in place of a model that was trained on other data.
    """
    if not problem.settings.blend:
        return learned

    def unit(params):
        norm = s2net.start_norm(params)
        return jax.tree.map(lambda weights: weights / norm, params)

    end = learned.fit.params
    sides = init if isinstance(end, Projection) else (init, init)
    start, last = unit(sides), unit(end)
    tried = {1.0: (problem.validate(end), end)}
    for share in BLENDS:
        params = jax.tree.map(lambda a, b, share=share: (1 - share) * a + share * b, start, last)
        tried[share] = (problem.validate(params), params)
    best = max(tried, key=lambda share: tried[share][0])  # the end comes first
    metric, judges = problem.told
    problem.say(f"{best:g} of the end and {1 - best:g} of the start score best on {judges}")
    scores = {f"{share:g}": round(float(score), 4) for share, (score, _) in tried.items()}
    notes = {**learned.notes, "blend": {"end": best, metric: scores}}
    return Learned(learned.fit._replace(params=tried[best][1]), notes)


def _mined(problem: Problem, init, activation: Callable | None) -> tuple[mined.Mined | None, dict]:
    """Negatives among the documents, by the start; and what the model's record says of them."""
    first, second = s2net.sides(init)
    vectors = [encode(one, some, activation=activation).dense for one, some in
               ((first, problem.train[0]), (second, problem.train[1]), (second, problem.documents))]  # fmt: skip
    rows = mined.mine(*vectors, count=problem.negatives, right_answers=problem.answers)
    number, given = int((rows >= 0).sum()), problem.documents.num_docs
    problem.say(f"{checks.counted(number, 'negative')} mined from {checks.counted(given, 'document')}")
    return mined.kept(problem.documents, rows), {"mined": {"documents": given, "negatives": number}}


def _groups(problem: Problem) -> np.ndarray | None:
    """Pairs that are no negatives of each other: with equal texts on a side, and near-duplicates unless asked for."""
    groups = problem.groups
    if problem.settings.all_negatives:
        groups = np.stack([distinct_rows(side)[1] for side in problem.train], axis=1)
    sizes = [np.unique(column).size for column in groups.T]
    if min(sizes) < 2:  # no negative would be left
        return None
    return None if problem.settings.all_negatives and min(sizes) == len(groups) else groups


def _mesh(problem: Problem, batch_size: int):
    """The devices of all negatives; None where one does it alone, as with mined negatives or weights of pairs."""
    settings = problem.settings
    if batch_size:
        checks.expect(settings.devices in (None, 1), "devices", "1, with batches", settings.devices)
        checks.expect(not settings.shard_terms, "shard_terms", "all negatives (batch_size 0)", "batches")
        return None
    if problem.documents is not None:
        checks.expect(settings.devices in (None, 1), "devices", "1, with documents", settings.devices)
        checks.expect(not settings.shard_terms, "shard_terms", "False, with documents", True)
    mesh = sharding.local_mesh(problem.train[0].num_docs, devices=settings.devices)
    mesh = mesh if problem.documents is None and problem.weights is None else None
    checks.expect(mesh is not None or not settings.shard_terms, "shard_terms", "several devices to share the terms", 1)
    return mesh


def shared_validator(
    sides: tuple[Terms, Terms], mesh, *, activation: Callable | None = None, score: Callable = mates.mrr
) -> Callable:
    """As `mates.validator`, for projections that are too large for one device.

    Args:
      sides: held-out documents of both sides.
      mesh: `jax.sharding.Mesh` of one axis, whose devices share the rows of the projection.
      activation: elementwise function of the outputs, or None.
      score: as for `mates.validator`.

    Returns:
      Function of a `Projection`, or of a pair, in host memory.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
      >>> validate = shared_validator((documents, documents), jax.make_mesh((1,), ("pairs",)))
      >>> validate(Projection(np.eye(3)))
      1.0
    """
    def validate(params) -> float:
        result = (term_shards.encode(one.weights, side, mesh, activation=activation)
                  for one, side in zip(s2net.sides(params), sides, strict=True))
        return score(*(Vectors(jax.device_put(dense)) for dense in result))

    return validate


def start(problem: Problem, *, needed: bool = True) -> Projection | None:
    """OPCA of the training pairs, or of some of very many.

    It is kept beside the checkpoints: refitted on other cores it would differ in its last bits.

    Args:
      problem: training pairs and settings.
      needed: whether pairs that OPCA cannot be fitted to are an error.

    Returns:
      The projection; None where there is none and it is not needed.

    Raises:
      ValueError: as `opca.fit`, or if the one that is kept is of another problem.
      FloatingPointError: as `opca.fit`.
    """
    m, views = problem.train[0].num_docs, problem.train
    chosen = None
    if m > START_PAIRS:
        chosen = np.sort(np.asarray(jax.random.permutation(jax.random.key(problem.settings.seed), m))[:START_PAIRS])
        views = tuple(sparse.take(side, chosen) for side in views)

    def fit() -> Projection | None:
        texts, spread = problem.factors
        texts = texts if chosen is None else tuple(sparse.take(side, chosen) for side in texts)
        try:
            return opca.fit(texts, k=problem.k, noise=problem.settings.noise, spread=spread).params
        except (ValueError, FloatingPointError):
            if needed:
                raise
            return None

    if problem.checkpoint is None:
        return fit()
    folder = checkpoints.prepare(Path(problem.checkpoint) / START)
    mark = checkpoints.fingerprint([problem.k, problem.settings.noise], views)
    like = Projection(np.zeros((views[0].num_terms, problem.k), views[0].values.dtype))
    saved = checkpoints.load(folder, like, fingerprint=mark)
    if saved is not None:
        return jax.tree.map(jnp.asarray, saved[0])
    init = fit()
    if init is not None:
        checkpoints.save(folder, init, {"fingerprint": mark})
    return init
