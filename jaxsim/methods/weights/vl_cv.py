"""VL-CV: concept vectors learned from preferences between pairs of documents (001 §3.1.2).

A projection ``A`` into k concepts and the weights ``Λ`` of the features of terms are learned together, so that similar
documents have larger cosines than others. With one feature, tf·idf, Λ is one number and cancels: that is the row of
001 Table 3.
"""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import jax.numpy as jnp

from jaxsim import checks, losses, optim, sparse
from jaxsim.data.labelled_pairs import Preferences, preferences
from jaxsim.methods import collapse
from jaxsim.methods.projections import Projection
from jaxsim.methods.s2net.exact import distance_penalty
from jaxsim.methods.weights import concepts
from jaxsim.methods.weights.concepts import Concepts
from jaxsim.methods.weights.tweak import RUN, checked_sides
from jaxsim.optim import Fit, Run
from jaxsim.text.features import Featured

_ROOT_MEAN_SQUARE = 10.0


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["left", "right", "pairs", "gamma", "alpha", "beta", "centre"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Data:
    """Constants of `objective`.

    Attributes:
      left: documents with features.
      right: documents of the other side; None where it is the same collection.
      pairs: the preferences.
      gamma: scalar, scale of a difference of cosines.
      alpha: scalar, weight of the regulariser of ``Λ``.
      beta: scalar, weight of the regulariser of ``A``.
      centre: what the regularisers draw the parameters to.
    """

    left: Featured
    right: Featured | None
    pairs: Preferences
    gamma: jax.Array
    alpha: jax.Array
    beta: jax.Array
    centre: Concepts


def objective(params: Concepts, data: Data) -> jax.Array:
    r"""Mean of :math:`\log(1 + e^{-\gamma \Delta})` over the preferences (001 Eq. 4), plus the regularisers.

    Args:
      params: `Concepts`.
      data: the constants.

    Returns:
      Scalar, in nats.
    """
    # Each document is projected once, however many pairs it stands in.
    left = sparse.unit(concepts.encode(params, data.left).dense)
    right = left if data.right is None else sparse.unit(concepts.encode(params, data.right).dense)
    better = sparse.dot(left[data.pairs.better_left], right[data.pairs.better_right])
    worse = sparse.dot(left[data.pairs.worse_left], right[data.pairs.worse_right])
    loss = jnp.mean(losses.logistic_pairwise(better - worse, gamma=data.gamma))
    return (loss + data.alpha * distance_penalty(params.features, data.centre.features)
            + data.beta * distance_penalty(params.weights, data.centre.weights))


def checked_start(init, left: Featured, right: Featured) -> Concepts:
    """Checks a start and scales ``A`` so that the left documents' concept vectors have root mean square length 10.

    Neither scale changes a cosine, but the optimiser sees that of ``A``, and stalls early at some others.

    Args:
      init: `Concepts`; or a `Projection` where there is one feature, whose weight is then 1.
      left: left documents.
      right: right documents.

    Returns:
      `Concepts` in the type of the features.

    Raises:
      ValueError: for shapes that do not fit, values that are not finite, or concept vectors that are all zero.
    """
    checks.expect(isinstance(init, Concepts | Projection), "init", "Concepts or a Projection", type(init).__name__)
    if isinstance(init, Projection):
        checks.expect(len(left.names) == 1, "init", f"Concepts ({len(left.names)} features)", "a Projection")
        init = Concepts(init.weights, jnp.ones(1))
    start = jax.tree.map(lambda leaf: jnp.asarray(leaf, left.columns.dtype), init)
    shape = start.weights.shape
    checks.expect(len(shape) == 2 and shape[0] == left.num_terms, "init.weights", f"shape ({left.num_terms}, k)", shape)
    checks.expect(start.features.shape == (len(left.names),), "init.features", f"{len(left.names)} weights",
                  start.features.shape)
    finite = all(bool(jnp.isfinite(leaf).all()) for leaf in jax.tree.leaves(start))
    checks.expect(finite, "init", "finite weights", "NaN or infinity")
    for name, side in (("left", left), ("right", right)):
        checks.expect(bool(jnp.any(side.columns != 0)), name, "documents with words", "only empty documents")
    size = jnp.sqrt(jnp.mean(jnp.sum(concepts.encode(start, left).dense ** 2, axis=1)))
    checks.expect(0 < float(size) < float("inf"), "init", "a start that does not project everything to zero",
                  f"root mean square length {float(size)}")
    return start._replace(weights=start.weights * (_ROOT_MEAN_SQUARE / size))


def fit(
    left: Featured,
    right: Featured,
    pairs: Preferences,
    *,
    init: Concepts | Projection,
    gamma: float = 1.0,
    alpha: float = 0.0,
    beta: float = 0.0,
    literal: bool = False,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns concept vectors and term weights from preferences between pairs.

    Args:
      left: documents with features, ``[num_left, num_terms]``; `features.single` of tf·idf in the paper's experiment.
      right: documents with the same features; ``left`` again for pairs of one collection.
      pairs: `Preferences`.
      init: start: `Concepts`, or a `Projection` where there is one feature. In the paper, LSA of tf·idf rows: here
        ``lsa.fit(rows, k=5, singular_power=-1)`` of rows of their own lengths.
      gamma: scale of a difference of cosines; the paper prints none (1). 5 was better on development data.
      alpha: weight of the regulariser of ``Λ``.
      beta: weight of the regulariser of ``A``.
      literal: draw the parameters to 0, as printed, instead of to the start. The loss does not depend on the scale of
        either, so the printed regularisers only shrink them.
      run: how the fit runs, as for `tweak.fit`; ``tol`` is for ``‖∇‖`` times the norm of the start. The training loss
        goes on falling long after development scores do: use ``validate``.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `Concepts`. A collapsed model has loss log 2.

    Raises:
      ValueError: for sides that do not agree, rows out of range, no preferences, documents without words, a start that
        does not fit or is collapsed, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> from jaxsim import sparse
      >>> documents = features.single(sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2, 0], [1, 0, 1], [1, 1, 0]])))
      >>> better_than = preferences(([0], [2]), ([0], [1]), num_left=3, num_right=3)
      >>> start = Projection(jnp.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]]))
      >>> result = fit(documents, documents, better_than, init=start, gamma=10.0, max_iter=5)
      >>> result.loss < result.history[0]["loss"]
      True

    Differs from the paper: the mean of the losses, not their sum.

    Relations: `lsa` is its start; `tweak` learns Λ alone; `s2net` takes all negatives of mates instead of preferences.
    """
    run = Run.of(run, options, RUN)
    checked_sides(left, right)
    checks.kind(pairs, "pairs", Preferences)
    pairs = preferences(pairs[:2], pairs[2:], num_left=left.num_docs, num_right=right.num_docs)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    for name, value in (("alpha", alpha), ("beta", beta)):
        checks.expect(value >= 0, name, "a number of at least 0", value)
    start = checked_start(init, left, right)
    dtype = left.columns.dtype
    centre = jax.tree.map(jnp.zeros_like, start) if literal else start
    data = Data(left, None if right is left else right, pairs, jnp.asarray(gamma, dtype), jnp.asarray(alpha, dtype),
                jnp.asarray(beta, dtype), centre)
    norm = float(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(start))))
    result = optim.minimize_lbfgs(
        objective, start, data, run=dataclasses.replace(run, tol=run.tol / norm), label="VL-CV",
    )
    return collapse.learnable(result, left.terms, right.terms, collapsed=[math.log(2)], gamma=gamma)
