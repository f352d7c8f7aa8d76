"""TWEAK: term weights learned from pairs of documents, a linear function of features of terms (004, 001 §2.3).

Three losses: the squared error and the log loss of labelled pairs (004 Eq. 4 and 5), and the logistic loss of pairs of
pairs, which asks only for the right order (004 Eq. 6, 001 Eq. 4).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim
from jaxsim.data.labelled_pairs import LabelledPairs, Preferences, labelled, preferences
from jaxsim.methods import collapse, statistics
from jaxsim.methods.s2net.exact import distance_penalty
from jaxsim.methods.weights import quadratic_forms
from jaxsim.methods.weights.quadratic_forms import Forms
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.optim import Fit, Run
from jaxsim.text.features import Featured

RUN = Run(max_iter=200, tol=1e-5, first_step=0.02)
"""How a fit runs unless told otherwise."""


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["forms", "labels", "gamma", "alpha", "centre"],
    meta_fields=["loss"],
)
@dataclasses.dataclass(frozen=True)
class Data:
    """Constants of `objective` and `preference_objective`.

    Attributes:
      forms: of all pairs; of preferences, the better pairs and then the worse ones.
      labels: ``[n]`` similarities of the pairs, or None for preferences.
      gamma: scalar, scale of a difference of cosines.
      alpha: scalar, weight of the regulariser.
      centre: what the regulariser draws the weights to.
      loss: elementwise function of labels and cosines.
    """

    forms: Forms
    labels: jax.Array | None
    gamma: jax.Array
    alpha: jax.Array
    centre: TermWeights
    loss: Callable = losses.squared


def objective(params: TermWeights, data: Data) -> jax.Array:
    r"""Mean loss of the labelled pairs (004 Eq. 4 and 5 without their constant factor), plus ``α/2 ‖w - c‖²``.

    Args:
      params: `TermWeights`.
      data: the constants.

    Returns:
      Scalar.
    """
    scores = quadratic_forms.cosines(params.weights, data.forms)
    return jnp.mean(data.loss(data.labels, scores)) + data.alpha * distance_penalty(params, data.centre)


def preference_objective(params: TermWeights, data: Data) -> jax.Array:
    r"""Mean of :math:`\log(1 + e^{-\gamma \Delta})` over the preferences (004 Eq. 6, 001 Eq. 4), plus ``α/2 ‖w - c‖²``.

    Args:
      params: `TermWeights`.
      data: the constants.

    Returns:
      Scalar, in nats.
    """
    better, worse = jnp.split(quadratic_forms.cosines(params.weights, data.forms), 2)
    loss = losses.logistic_pairwise(better - worse, gamma=data.gamma)
    return jnp.mean(loss) + data.alpha * distance_penalty(params, data.centre)


def least_squares(documents: Featured, values) -> TermWeights:
    """The weights whose terms are nearest to given ones, such as tf·idf: a start.

    Args:
      documents: training documents.
      values: ``[slots]`` wanted weight of every term in every document, in the order of ``documents.terms.values``.

    Returns:
      `TermWeights`.

    Raises:
      ValueError: for another number of values.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> from jaxsim import sparse
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 0.0, 1.0]]))
      >>> documents = features.from_counts(counts, [1, 1, 1], names=("bias", "tf"))
      >>> [round(float(x), 4) for x in least_squares(documents, 2 * counts.values + 1).weights]
      [1.0, 2.0]
    """
    values = np.asarray(values, np.float64)
    checks.expect(values.shape == documents.terms.values.shape, "values", f"shape {documents.terms.values.shape}",
                  values.shape)
    used = int(documents.terms.indptr[-1])
    result = np.linalg.lstsq(np.asarray(documents.columns, np.float64)[:used], values[:used], rcond=None)[0]
    return TermWeights(jnp.asarray(result, documents.columns.dtype))


def checked_start(init, width: int, which: str, dtype) -> tuple[TermWeights, float]:
    """A start and its norm.

    Args:
      init: `TermWeights`, or their array.
      width: number of weights.
      which: what they belong to, for the message.
      dtype: floating type to give them.

    Returns:
      The start, and its Euclidean norm.

    Raises:
      ValueError: for another number of weights, and for weights that are all zero or not finite.

    Example:
      >>> checked_start(jnp.array([3.0, 4.0]), 2, "features", jnp.float32)[1]
      5.0
    """
    start = TermWeights(jnp.asarray(init.weights if isinstance(init, TermWeights) else init, dtype))
    checks.expect(start.weights.shape == (width,), "init", f"{width} weights ({which})", start.weights.shape)
    norm = float(jnp.linalg.norm(start.weights))
    checks.expect(0 < norm < float("inf"), "init", "finite weights that are not all zero", f"norm {norm}")
    return start, norm


def checked_sides(left: Featured, right: Featured) -> None:
    """Refuses collections that differ in vocabulary or features.

    Args:
      left: documents of one side.
      right: documents of the other.

    Raises:
      ValueError: naming what differs.
    """
    statistics.expect_sides(left, right, same="terms", types=(Featured,))
    checks.expect(right.names == left.names, "right", f"features {left.names} (as left)", right.names)


def fit(
    left: Featured,
    right: Featured,
    pairs: LabelledPairs | Preferences,
    *,
    init: TermWeights,
    loss: Callable = losses.squared,
    gamma: float = 1.0,
    alpha: float = 0.0,
    literal: bool = False,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the weights of features from labelled pairs or from preferences between pairs.

    Args:
      left: documents with features, ``[num_left, num_terms]``.
      right: documents with the same features; ``left`` again for pairs of one collection.
      pairs: `LabelledPairs` for the losses of similarities, `Preferences` for the loss of their order.
      init: start, such as `least_squares` to tf·idf.
      loss: of labelled pairs: `losses.squared` (004 Eq. 4) or `losses.log` (Eq. 5); any function of labels and cosines.
      gamma: scale of a difference of cosines; the papers print none (1). Differences lie in [-2, 2], so that 1 is
        almost linear and lowers its loss while the order of pairs gets worse: choose it on development data (10 to 30).
      alpha: weight of the regulariser, relative to the mean loss (in 004, to the sum).
      literal: draw the weights to 0, as printed, instead of to ``init``. The loss does not depend on their scale, so
        the printed regulariser has no minimiser: it shrinks them for as long as the fit runs.
      run: how the fit runs, `RUN` where it says nothing. Its ``tol`` is for ``‖∇‖ ‖w₀‖``, which no scale of ``w``
        changes.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `TermWeights`.

    Raises:
      ValueError: for sides that do not agree, rows out of range, no pairs, a start that does not fit, is not finite, is
        zero or is collapsed, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> from jaxsim import sparse
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2, 0], [1, 0, 1], [1, 1, 0]]))
      >>> documents = features.from_counts(counts, [3, 2, 1])
      >>> better_than = preferences(([0], [2]), ([0], [1]), num_left=3, num_right=3)
      >>> result = fit(documents, documents, better_than, init=TermWeights(jnp.array([1.0, 0, 0])), gamma=10.0)
      >>> result.loss < result.history[0]["loss"]
      True

    Differs from the paper: the mean of the losses, not their sum; `losses.log` bounds cosines away from 0 and 1.

    Relations: `term_weights.encode` weights documents; `vl_cv` projects them too.
    """
    run = Run.of(run, options, RUN)
    checked_sides(left, right)
    ordered = isinstance(pairs, Preferences)
    if ordered:
        pairs = preferences(pairs[:2], pairs[2:], num_left=left.num_docs, num_right=right.num_docs)
        rows = (np.concatenate([pairs.better_left, pairs.worse_left]),
                np.concatenate([pairs.better_right, pairs.worse_right]))
    else:
        pairs = labelled(*pairs, num_left=left.num_docs, num_right=right.num_docs)
        rows = pairs.left, pairs.right
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    checks.expect(alpha >= 0, "alpha", "at least 0", alpha)
    dtype = left.columns.dtype
    start, norm = checked_start(init, len(left.names), "features of left", dtype)
    centre = jax.tree.map(jnp.zeros_like, start) if literal else start
    labels = None if ordered else pairs.labels.astype(dtype)
    data = Data(quadratic_forms.plan(left, right, *rows), labels, jnp.asarray(gamma, dtype), jnp.asarray(alpha, dtype),
                centre, loss)
    result = optim.minimize_lbfgs(
        preference_objective if ordered else objective, start, data,
        run=dataclasses.replace(run, tol=run.tol / norm), label="TWEAK",
    )
    return collapse.learnable(result, left.terms, right.terms, collapsed=[math.log(2)] if ordered else [], gamma=gamma)
