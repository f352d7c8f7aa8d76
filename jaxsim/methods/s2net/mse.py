"""S2Net with the squared loss on labelled pairs (000 §3.2): fits similarities rather than their order."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim, sparse
from jaxsim.data.labelled_pairs import LabelledPairs, labelled
from jaxsim.methods import collapse
from jaxsim.methods.projections import encode
from jaxsim.methods.s2net import exact
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["left", "right", "pairs", "beta", "start"],
    meta_fields=["activation"],
)
@dataclasses.dataclass(frozen=True)
class Data:
    """Constants of `objective`: documents, labelled pairs, and the regulariser (see `exact.Data`)."""

    left: Terms
    right: Terms
    pairs: LabelledPairs
    beta: jax.Array
    start: exact.Sides
    activation: Callable | None = None


def objective(params: exact.Sides, data: Data) -> jax.Array:
    r"""Mean over the pairs of :math:`\tfrac12 (y - \cos(A^\top f_p, A^\top f_q))^2`, plus ``β/2 ‖A - A₀‖²``.

    Args:
      params: `Projection`, or a pair of them.
      data: the constants.

    Returns:
      Scalar.
    """
    first, second = exact.sides(params)
    # Each document is projected once, however many pairs it stands in.
    left = sparse.unit(encode(first, data.left, activation=data.activation).dense)
    right = sparse.unit(encode(second, data.right, activation=data.activation).dense)
    scores = sparse.dot(left[data.pairs.left], right[data.pairs.right])
    loss = jnp.mean(losses.squared(data.pairs.labels.astype(scores.dtype), scores))
    return loss + data.beta * exact.distance_penalty(params, data.start)


def fit(
    left: Terms,
    right: Terms,
    pairs: LabelledPairs,
    *,
    init,
    beta: float = 0.0,
    activation: Callable | None = None,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the projection from pairs with a similarity each.

    Args:
      left: weighted documents, ``[num_left, num_terms]``.
      right: weighted documents, ``[num_right, num_terms]``.
      pairs: `LabelledPairs`, rows of ``left`` and ``right`` with a similarity in the range of the cosine.
      init: as for `exact.fit`.
      beta: as for `exact.fit`.
      activation: elementwise function of the outputs, or None.
      run: how the fit runs, as for `exact.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `Projection` (or a pair, if ``init`` was one).

    Raises:
      ValueError: for rows out of range, no pairs, a start that does not fit or is collapsed, documents without any
        words on one side, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.data import labelled_pairs
      >>> from jaxsim import sparse
      >>> documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
      >>> chosen = labelled_pairs.mates_and_negatives(4, negatives=2, key=jax.random.key(1))
      >>> start = exact.random_init(4, 2, key=jax.random.key(0))
      >>> result = fit(documents, documents, chosen, init=start, max_iter=20)
      >>> result.loss < result.history[0]["loss"]
      True

    Relations: `s2net` learns the order alone, which is what retrieval needs (000 §3.2).
    """
    run = Run.of(run, options, exact.RUN)
    pairs = labelled(*pairs, num_left=left.num_docs, num_right=right.num_docs)
    checks.expect(pairs.labels.size >= 1, "pairs", "at least one pair", 0)
    checks.expect(0 <= beta < float("inf"), "beta", "a number of at least 0", beta)
    start = exact.checked_start(init, left, right, activation=activation)
    data = Data(left, right, pairs, jnp.asarray(beta, left.values.dtype), start, activation)
    run = dataclasses.replace(run, tol=run.tol / exact.start_norm(start))
    result = optim.minimize_lbfgs(objective, start, data, run=run, label="S2Net (squared loss)")
    # Where all cosines are 1, all are 0 or all are -1, the gradient is 0.
    labels = np.asarray(pairs.labels)
    return collapse.learnable(result, left, right, collapsed=[0.5 * np.mean((labels - c) ** 2) for c in (1, 0, -1)])
