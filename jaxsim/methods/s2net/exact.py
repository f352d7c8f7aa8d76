"""S2Net: a projection learned so that every document is nearer to its mate than to any other (000 §3).

The mean over **all** ordered pairs i ≠ j and both directions of Eq. (2) is minimised by L-BFGS, exactly and without
sampling. One matrix serves both sides, or each side has its own (000 §6); the outputs may pass through a sigmoid
(the paper's suggestion) or tanh (ours).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, optim, sparse
from jaxsim.methods import collapse, statistics
from jaxsim.methods.projections import Projection, encode
from jaxsim.methods.s2net.groups import checked_groups, checked_weights
from jaxsim.methods.s2net.mined import Mined
from jaxsim.methods.s2net.mined import loss as mined_loss
from jaxsim.optim import Fit, Run, checkpoints
from jaxsim.parallel import gathering, sharding, term_shards
from jaxsim.parallel.sharding import Shards, all_pairs_logistic
from jaxsim.parallel.term_shards import TermShards
from jaxsim.sparse import Filled, Held, Terms, dense
from jaxsim.sparse.precision import checked

Sides = Projection | tuple[Projection, Projection]
RUN = Run(max_iter=100, tol=1e-5, first_step=0.02)
"""How a fit runs by default. The first step is relative to ``‖A₀‖``, because the cosine ignores the scale of ``A`` and
the negative gradient does not."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["left", "right", "gamma", "beta", "start", "groups", "mined", "weights", "spread"],
    meta_fields=["activation", "block_size", "precision"],
)
@dataclasses.dataclass(frozen=True)
class Data:
    """Constants of `objective`.

    Attributes:
      left: `Terms` (or `Filled`, `Gathered`, `Slices`, or `Shards` or `TermShards` over a mesh) of ``m`` documents.
      right: their mates, row for row.
      gamma: scalar, the scale of Eq. (2).
      beta: scalar, weight of the distance from the start.
      start: parameters at the start, ``A₀``.
      activation: elementwise function of the outputs, or None.
      block_size: as for `losses.all_pairs_logistic`.
      groups: ``[m, c]`` integers: pairs that are equal in any column are no negatives of each other. None: all are.
      precision: of the matrix products of the loss, as for `precision.matmul`, or None.
      mined: `Mined` negatives beside those of the pairs, or None.
      weights: ``[m]``, how often each pair counts, or None.
      spread: rows of a linear map that comes before the projection, or None.
    """

    left: Held | Shards | TermShards
    right: Held | Shards | TermShards
    gamma: jax.Array
    beta: jax.Array
    start: Sides
    activation: Callable | None = None
    block_size: int | tuple[int, int] | None = None
    groups: jax.Array | None = None
    precision: str | None = None
    mined: Mined | None = None
    weights: jax.Array | None = None
    spread: Held | None = None


def sides(params: Sides) -> tuple[Projection, Projection]:
    """The projections of the left and of the right documents.

    Args:
      params: one `Projection`, or a pair.

    Returns:
      ``(left, right)``.

    Example:
      >>> a = Projection(jnp.ones((2, 1)))
      >>> sides(a) == (a, a)
      True
    """
    return (params, params) if isinstance(params, Projection) else tuple(params)


def distance_penalty(params, start) -> jax.Array:
    r"""``½‖A - A₀‖²``, 000 §3.2, summed over all that is learned.

    Args:
      params: current parameters, any pytree of arrays.
      start: parameters at the start, the same structure.

    Returns:
      Scalar.

    Example:
      >>> float(distance_penalty(Projection(jnp.ones((2, 1))), Projection(jnp.zeros((2, 1)))))
      1.0
    """
    apart = jax.tree.map(lambda a, b: jnp.sum((a - b) ** 2), params, start)
    return 0.5 * sum(jax.tree.leaves(apart))


def objective(params: Sides, data: Data) -> jax.Array:
    r"""Mean of Eq. (2) over all negatives of both directions, plus ``β/2 ‖A - A₀‖²`` and that of mined negatives.

    Args:
      params: `Projection`, or a pair of them.
      data: the constants.

    Returns:
      Scalar, in nats; log 2 (plus the penalty) for a collapsed model.
    """
    first, second = sides(params if data.spread is None else through(data.spread, params))
    left = encode(first, data.left, activation=data.activation).dense
    right = encode(second, data.right, activation=data.activation).dense
    loss = all_pairs_logistic(left, right, data.left, gamma=data.gamma, groups=data.groups, weights=data.weights,
                              block_size=data.block_size, precision=data.precision)
    if data.mined is not None:
        documents = encode(second, data.mined.documents, activation=data.activation).dense
        loss += data.mined.weight * mined_loss(left, right, documents, data.mined.rows, gamma=data.gamma,
                                               weights=data.weights)
    return loss + data.beta * distance_penalty(params, data.start)


def through(spread: Terms, params: Sides) -> Sides:
    """Projections of documents that a linear map comes before: ``x M A`` is ``x`` by the projection ``M A``.

    Args:
      spread: rows of ``M``, ``[num_terms, n]``.
      params: one `Projection` with weights ``[n, k]``, or a pair.

    Returns:
      The same with weights ``[num_terms, k]``.

    Example:
      >>> import scipy.sparse
      >>> twice = sparse.from_scipy(scipy.sparse.csr_matrix(2 * np.eye(3)))
      >>> float(through(twice, Projection(jnp.ones((3, 1)))).weights[0, 0])
      2.0
    """
    return jax.tree.map(lambda weights: sparse.project(spread, weights), params)


def random_init(num_terms: int, k: int, *, key: jax.Array) -> Projection:
    """A random start: independent normal entries of variance ``1 / k``, so that projection roughly keeps lengths.

    Args:
      num_terms: size of the vocabulary.
      k: target dimension.
      key: PRNG key.

    Returns:
      `Projection` with weights ``[num_terms, k]``.

    Example:
      >>> random_init(3, 2, key=jax.random.key(0)).weights.shape
      (3, 2)
    """
    checks.random_key(key)
    return Projection(jax.random.normal(key, (num_terms, k)) / jnp.sqrt(float(k)))


def checked_start(
    init, left: Terms | Filled, right: Terms | Filled, *, activation: Callable | None, spread: Terms | None = None
) -> Sides:
    """Checks a start against the documents and gives it their floating type.

    Args:
      init: `Projection` or a pair of them, or arrays in their place.
      left: left documents.
      right: right documents.
      activation: elementwise function of the outputs, or None. A nonlinear one sees outputs of root mean square 1.
      spread: as for `fit`.

    Returns:
      The start as `Projection` or a pair.

    Raises:
      ValueError: for shapes that do not fit, values that are not finite, a start that is zero everywhere, or (with
        ``activation``) outputs that overflow.
    """
    checks.expect(not isinstance(init, Fit), "init", "parameters (fit.params)", "a Fit")
    checks.expect(init is not None and not isinstance(init, str), "init", "a projection or a pair of them", init)
    checks.expect(activation is None or callable(activation), "activation", "a function, or None", activation)
    if not isinstance(init, Projection):
        init = tuple(x if isinstance(x, Projection) else Projection(jnp.asarray(x)) for x in init) if isinstance(
            init, tuple | list) else Projection(jnp.asarray(init))
    init = jax.tree.map(lambda weights: jnp.asarray(weights, left.values.dtype), init)
    both = sides(init)
    checks.expect(len(both) == 2, "init", "one projection or a pair", len(both))
    for name, one, documents in zip(("left", "right"), both, (left, right), strict=True):
        shape, rows = one.weights.shape, documents.num_terms if spread is None else spread.num_terms
        checks.expect(len(shape) == 2 and shape[0] == rows, f"init ({name})", f"weights of shape ({rows}, k)", shape)
        checks.expect(bool(jnp.isfinite(one.weights).all()), f"init ({name})", "finite weights", "NaN or infinity")
        checks.expect(bool(jnp.any(one.weights != 0)), f"init ({name})", "a start that is not zero everywhere", "zeros")
    checks.expect(both[0].weights.shape[1] == both[1].weights.shape[1], "init (right)",
                  f"{both[0].weights.shape[1]} dimensions (as left)", both[1].weights.shape[1])
    if activation is None:
        return init
    # Divided by the largest weight and the largest output first: neither may overflow, nor their squares vanish.
    largest = max(jnp.max(jnp.abs(weights)) for weights in jax.tree.leaves(init))
    small = jax.tree.map(lambda weights: weights / largest, init)
    made = small if spread is None else through(spread, small)
    outputs = [sparse.project(d, p.weights) for d, p in zip((left, right), sides(made), strict=True)]
    peak = max(jnp.max(jnp.abs(output)) for output in outputs)
    checks.expect(bool(jnp.isfinite(peak)), "left, right", "documents whose outputs are finite", float(peak))
    if peak == 0:
        return init
    scale = jnp.sqrt(sum(jnp.mean((output / peak) ** 2) for output in outputs) / 2)
    return jax.tree.map(lambda weights: weights / peak / scale, small)


def start_norm(start: Sides) -> float:
    """``‖A₀‖`` over all matrices, which makes a gradient's norm free of scale.

    Args:
      start: parameters at the start.

    Returns:
      The Euclidean norm, positive.

    Example:
      >>> start_norm(Projection(jnp.ones((4, 1))))
      2.0
    """
    leaves = jax.tree.leaves(start)
    norm = float(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in leaves)))
    if 0 < norm < math.inf:
        return norm
    # The squares of numbers near the ends of their type are none of it.
    return math.hypot(*(float(np.linalg.norm(np.asarray(leaf, np.float64))) for leaf in leaves)) or 1.0


def fit(
    left: Terms | Filled,
    right: Terms | Filled,
    *,
    init,
    gamma: float = 10.0,
    groups=None,
    beta: float = 0.0,
    activation: Callable | None = None,
    block_size: int | tuple[int, int] | None = None,
    mesh=None,
    shard_terms: bool = False,
    precision: str | None = None,
    mined: Mined | None = None,
    weights=None,
    spread: Terms | None = None,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the projection from mates, using all m (m - 1) negatives in both directions.

    Where near-duplicates stand among the documents, telling each from its twins is nearly impossible and soon most of
    the loss; ``groups`` takes twins out of each other's negatives.

    Args:
      left: weighted documents, ``[m, num_terms]``: `Terms`; or `Filled`, vectors of any other kind, on one device and
        without ``mined``.
      right: their mates: row i belongs to row i.
      init: start ``A₀``, a `Projection` (from `opca`, `cl_lsi`, `pca`, `random_init`) or a pair of them for two
        matrices.
      gamma: scale of Eq. (2); 10 in the paper.
      groups: ``[m]`` integers, or None. Pairs of one group (near-duplicates, say, as numbered by
        `data.splits.group_near_duplicates`) are no negatives of each other. With ``[m, c]``, pairs that are equal in
        any column are none. The paper has no groups.
      beta: weight of ``½‖A - A₀‖²``; 0 (early stopping alone) in the paper's experiments.
      activation: elementwise function of the outputs (``jax.nn.sigmoid``, ``jnp.tanh``); none in the paper. The start
        is then scaled to outputs of root mean square 1, and `projections.encode` needs the same ``activation``.
      block_size: rows a tile of the streamed loss, or rows and columns, as for `tiles.tile`.
      mesh: `jax.sharding.Mesh` of one axis, whose devices share the documents; one device unless given. The result is
        the same but for the order of sums.
      shard_terms: whether they share the rows of the projection, and all else of its size, too: for vocabularies too
        large for one device. What ``validate`` gets, and the result, are then in host memory (NumPy arrays).
      precision: of the matrix products of the loss: ``"float32"``, ``"tf32"`` or ``"bfloat16"``, with sums in float32
        under each; JAX's default for the device unless given. Documents, projection and history stay as they are.
      mined: negatives of the left documents that are in no pair (`mined.mine`, `mined.kept`), whose mean loss is added
        with their weight; on one device. The paper has none.
      weights: ``[m]`` finite numbers of at least 0, on any scale, or None; on one device. A pair of weight 3 counts
        three times, as a positive and as a negative of others (`losses.all_pairs_logistic`), and so do its mined
        negatives. The paper has none.
      spread: rows of a linear map ``M``, ``[num_terms, n]``, or None; on one device and without ``mined``. The
        projection then has ``n`` rows, and documents ``x`` become ``x M A``: what words are made of, say
        (`Subwords.spread`). That is the fit of documents ``x M``, which have far more terms, in much less time.
      run: how the fit runs, `RUN` where it says nothing. Its ``tol`` is for ``‖∇‖ ‖A₀‖``, which no scale of ``A``
        changes.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `Projection` (or a pair, if ``init`` was one). A collapsed model (all cosines equal) has loss log 2; a
      fit worth keeping has a lower one. For ``k = 1``, where every cosine is 1 or -1, there is no gradient.

    Raises:
      ValueError: for mates that do not agree, a start that does not fit or is collapsed, documents without any words on
        one side, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> start = random_init(4, 2, key=jax.random.key(0))
      >>> result = fit(documents, documents, init=start, max_iter=20)
      >>> result.loss < result.history[0]["loss"]
      True

    Relations: `opca` is its usual start; `s2net_mse` fits similarities instead of their order.
    """
    run = Run.of(run, options, RUN)
    left, right = (dense.checked(side, name) if isinstance(side, Filled) else side
                   for side, name in ((left, "left"), (right, "right")))
    several = gathering.several(mesh)
    agreed = functools.partial(gathering.agreed, argument="arguments") if several else _called

    def given() -> tuple:
        """Groups and weights, if all arguments but the start fit."""
        _check(left, right, gamma=gamma, beta=beta, precision=precision, shard_terms=shard_terms, mesh=mesh,
               mined=mined, spread=spread)
        checks.expect(mesh is None or weights is None, "weights", "none, with a mesh", "some")
        found = None if groups is None else checked_groups(groups, left.num_docs)
        return found, checked_weights(weights, left.num_docs, left.values.dtype)

    def first() -> Sides:
        with term_shards.on_host() if shard_terms else contextlib.nullcontext():
            return checked_start(init, left, right, activation=activation, spread=spread)

    groups, weights = agreed(given)
    spanning = gathering.spans(init)
    if several:
        contents = {"left": left, "right": right, "groups": groups}
        gathering.expect_same_settings(
            mesh, gamma=float(gamma), beta=float(beta), block_size=block_size, precision=precision, init=spanning,
            shard_terms=shard_terms, activation=getattr(activation, "__qualname__", activation), **run.in_common(),
            **{name: checkpoints.fingerprint(content) for name, content in contents.items()})  # fmt: skip
    start = first() if spanning else agreed(first)  # what is checked of one that spans processes waits for all of them
    if several:
        gathering.expect_same_settings(mesh, init=checkpoints.fingerprint(start))
    dtype = left.values.dtype
    documents, local = (left, right), _same
    if mesh is None:
        *documents, spread, negatives = sparse.held(left, right, spread, None if mined is None else mined.documents)
        mined = None if mined is None else mined._replace(documents=negatives)
    if mesh is not None:
        shard, place, local = sharding.shard, sharding.replicate, sharding.local
        if shard_terms:
            like = start = jax.tree.map(np.asarray, start)
            shard, place, local = term_shards.shard, term_shards.split, lambda tree: term_shards.gathered(tree, like)
        documents = shard(left, mesh, groups=groups), shard(right, mesh)
        start, groups = place(start, mesh), None
    data = Data(*documents, jnp.asarray(gamma, dtype), jnp.asarray(beta, dtype), start, activation, block_size, groups,
                precision, mined, weights, spread)
    run = dataclasses.replace(run, tol=run.tol / start_norm(start))
    result = run.run(optim.minimize_lbfgs, local, objective, start, data, label="S2Net")
    return collapse.learnable(result, left, right, collapsed=[math.log(2)], gamma=gamma)


def _called(function: Callable):
    return function()


def _check(
    left: Terms | Filled, right: Terms | Filled, *, gamma, beta, precision, shard_terms, mesh, mined, spread
) -> None:
    """Refuses documents and settings that do not fit."""
    for side, name in ((left, "left"), (right, "right")):
        checks.expect(mesh is None or not isinstance(side, Filled), name, "Terms, with a mesh", "Filled")
    statistics.expect_sides(left, right, same="documents", types=(Terms, Filled))
    checks.expect(left.num_docs >= 1, "left", "at least one pair", 0)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    checks.expect(0 <= beta < float("inf"), "beta", "a number of at least 0", beta)
    checked(precision)
    checks.expect(mesh is not None or not shard_terms, "shard_terms", "a mesh to share the terms over", mesh)
    _check_mined(mined, left, mesh)
    if spread is not None:
        checks.kind(spread, "spread", Terms)
        checks.expect(mesh is None and mined is None, "spread", "none, with a mesh or mined negatives", "some")
        checks.expect(spread.num_docs == left.num_terms, "spread", f"{left.num_terms} rows (terms of left)",
                      spread.num_docs)  # fmt: skip


def _check_mined(mined: Mined | None, left: Terms | Filled, mesh) -> None:
    """Refuses negatives that do not belong to these documents."""
    if mined is None:
        return
    checks.expect(mesh is None, "mined", "none, with a mesh", "some")
    checks.kind(mined.documents, "mined", Terms)
    width = left.num_terms
    checks.expect(mined.documents.num_terms == width, "mined", f"documents of {width} terms (as left)",
                  mined.documents.num_terms)  # fmt: skip
    rows = np.asarray(mined.rows)
    fits = rows.ndim == 2 and len(rows) == left.num_docs and rows.size and rows.max() < mined.documents.num_docs
    checks.expect(bool(fits), "mined", f"rows of its documents, [{left.num_docs}, c]", f"{rows.shape}")


def _same(params: Sides) -> Sides:
    return params
