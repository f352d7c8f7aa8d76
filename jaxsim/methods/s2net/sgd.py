"""S2Net by minibatches: the pairs of a batch are each other's negatives, in both directions (000 §3, Eq. 2).

For collections whose all-pairs loss costs too much: time grows with pairs times ``batch_size`` instead of their square.
What `s2net` minimises exactly is sampled here, and Adam takes the place of L-BFGS.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Iterator

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, losses, optim, sparse
from jaxsim.methods import statistics
from jaxsim.methods.projections import Projection, encode
from jaxsim.methods.s2net.exact import Sides, checked_start, sides, start_norm
from jaxsim.methods.s2net.groups import checked_groups, checked_weights
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Filled, Slices, Terms, dense
from jaxsim.sparse.precision import checked
from jaxsim.text.corpus import Documents

_SAMPLE = 4096  # documents of a corpus on disk that a start is checked against
_FAR = 30  # power of two of a start's largest weight from which on its scale is taken away
_SMALL = -20  # power of two of the largest weight while it learns: gradients are then far above Adam's ``eps``


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["left", "right", "gamma", "groups", "weights"],
    meta_fields=["activation", "precision"],
)
@dataclasses.dataclass(frozen=True)
class Batch:
    """One minibatch, padded to constant shapes.

    Attributes:
      left: `Terms` (`Slices`, `Filled`) of ``batch_size`` documents; or, where both sides share one projection, of all
        left ones and then all right ones.
      right: their mates, row for row; or None, where the left has them already.
      gamma: scalar, the scale of Eq. (2).
      groups: ``[batch_size, c]`` int32: pairs that are equal in any column are no negatives of each other.
      activation: elementwise function of the outputs, or None.
      precision: of the matrix products of the loss, or None.
      weights: ``[batch_size]``, how often each pair counts, or None.
    """

    left: Terms | Slices | Filled
    right: Terms | Slices | Filled | None
    gamma: jax.Array
    groups: jax.Array
    activation: Callable | None = None
    precision: str | None = None
    weights: jax.Array | None = None


def objective(params: Sides, batch: Batch) -> jax.Array:
    """Mean of Eq. (2) over the negatives inside the batch, both directions, by the weights of the pairs.

    Args:
      params: `Projection`, or a pair of them.
      batch: the pairs.

    Returns:
      Scalar, in nats.
    """
    first, second = sides(params)
    left = encode(first, batch.left, activation=batch.activation).dense
    if batch.right is None:
        # One product with the projection and one gradient of it, where two would have to be added.
        left, right = jnp.split(left, 2)
    else:
        right = encode(second, batch.right, activation=batch.activation).dense
    return losses.all_pairs_logistic(left, right, gamma=batch.gamma, groups=batch.groups, weights=batch.weights,
                                     precision=batch.precision)


def documents_of(rows: scipy.sparse.csr_matrix, slots: int) -> Terms | Slices | Filled:
    """One side of a batch as the device likes it best.

    Args:
      rows: ``[batch_size, num_terms]``, or both sides' one after the other.
      slots: room, the same for all batches: `largest_batch`.

    Returns:
      `Terms`; on a TPU `Slices`; on a GPU `Filled` where they fit.
    """
    # Compressed rows are several times faster on a CPU; a TPU has no kernel for them.
    if jax.default_backend() == "tpu":
        return sparse.slices(rows, pad_slices=slots)
    terms = sparse.from_scipy(rows, pad_nnz=slots)
    # A GPU would add up the gradient in another order in every run. It is as large as the projection; so is a batch.
    return sparse.filled(terms) if dense.fits(terms) else terms


def largest_batch(counts: np.ndarray, batch_size: int) -> int:
    """Room for the largest batch there can be: the sum of the longest documents.

    Args:
      counts: ``[m]`` weights of each document.
      batch_size: documents a batch.

    Returns:
      Slots of `documents_of`.
    """
    if jax.default_backend() == "tpu":
        counts = -(-counts // 32)
    longest = int(np.sort(counts)[-batch_size:].sum())
    return max(longest, 1)


def _rows(side: Terms | Documents) -> tuple[Callable[[np.ndarray], scipy.sparse.csr_matrix], np.ndarray]:
    """A function from numbers of documents to their rows, and the lengths of all."""
    if isinstance(side, Documents):
        return side.rows, side.lengths()
    matrix = sparse.to_scipy(side)
    return matrix.__getitem__, np.diff(matrix.indptr)


def _told(side: Terms | Documents, lengths: np.ndarray, some: Terms) -> tuple:
    """What tells documents from others in a checkpoint: themselves, or the digests of a corpus that is not read."""
    if isinstance(side, Terms):
        return (side,)
    return lengths, side.vocabulary.df, [np.array(one) for one in side.seals()], some


def _scaled(start: Sides) -> tuple[Sides, int]:
    """The start times a power of two, and the power that brings what is learned to its scale, or to 1 if it is far off.

    The cosines that are learned have no scale, but Adam's ``eps`` has: of large weights, whose gradients are small, it
    would let none move.
    """
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(start)]
    power = int(np.frexp(max(np.max(np.abs(leaf)) for leaf in leaves))[1])
    return _times(start, _SMALL - power), (power if abs(power) <= _FAR else 0) - _SMALL


def _times(weights: Sides, power: int) -> Sides:
    """Weights times a power of two, which rounds nothing."""
    return jax.tree.map(lambda leaf: jax.device_put(np.ldexp(np.asarray(leaf), power)), weights)


def fit(
    left: Terms | Documents,
    right: Terms | Documents,
    *,
    init,
    key: jax.Array,
    gamma: float = 10.0,
    groups=None,
    batch_size: int = 256,
    learning_rate: float = 0.3,
    activation: Callable | None = None,
    precision: str | None = None,
    weights=None,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns the projection from mates by Adam over minibatches.

    Args:
      left: weighted documents, ``[m, num_terms]``; a side of a corpus on disk is read batch by batch.
      right: their mates: row i belongs to row i.
      init: start ``A₀``, a `Projection` or a pair of them, as for `s2net.fit`.
      key: PRNG key of the order of the pairs.
      gamma: scale of Eq. (2); 10 in the paper.
      groups: ``[m]`` or ``[m, c]`` integers, or None; as for `s2net.fit`.
      batch_size: pairs a batch; all of them where there are fewer. The last pairs of an epoch that fill no batch wait
        for the next one.
      learning_rate: of Adam, in units of the root mean square of ``A₀``; it falls to 0 along a cosine.
      activation: elementwise function of the outputs, or None.
      precision: of the matrix products of the loss, as for `s2net.fit`.
      weights: ``[m]`` or None, as for `s2net.fit`; the loss of a batch is a mean by the weights of its pairs, which are
        drawn as without weights.
      run: how the fit runs; 40 epochs unless it says otherwise.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit`, of `Projection` or a pair; a step is an epoch, an evaluation a batch. A start beyond a thousand million,
      or below a part of so many, is brought to the scale of 1, which its cosines do not have.

    Raises:
      ValueError: for mates that do not agree, a start that does not fit, bad settings, or a checkpoint of others.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.methods.s2net.exact import random_init
      >>> documents = sparse.from_scipy(scipy.sparse.identity(8, format="csr"))
      >>> start = random_init(8, 4, key=jax.random.key(0))
      >>> result = fit(documents, documents, init=start, key=jax.random.key(1), batch_size=4, max_iter=30)
      >>> result.history[-1]["loss"] < result.history[1]["loss"]
      True

    Relations: `s2net.fit` is the exact form; with ``batch_size = m`` both have the same objective.
    """
    checks.random_key(key)
    run = Run.of(run, options, Run(max_iter=40))
    statistics.expect_sides(left, right, same="documents", types=(Terms, Documents))
    m = left.num_docs
    checks.expect(m >= 2, "left", "at least two pairs", m)
    checks.positive_int(batch_size, "batch_size")
    checks.expect(batch_size >= 2, "batch_size", "at least 2 (a batch of one pair has no negatives)", batch_size)
    batch_size = min(batch_size, m)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    checks.expect(0 < learning_rate < float("inf"), "learning_rate", "a positive number", learning_rate)
    checks.positive_int(run.max_iter, "max_iter")
    checked(precision)
    some = [side if isinstance(side, Terms) else sparse.from_scipy(side.rows(slice(0, _SAMPLE)))
            for side in (left, right)]
    start = checked_start(init, *some, activation=activation)
    start, power = (start, 0) if activation is not None else _scaled(start)
    groups = np.asarray(checked_groups(np.arange(m) if groups is None else groups, m))
    weights = checked_weights(weights, m, some[0].values.dtype)
    weights = None if weights is None else np.asarray(weights)
    rows, lengths = zip(*map(_rows, (left, right)), strict=True)
    slots = [largest_batch(counts, batch_size) for counts in lengths]
    shared = isinstance(start, Projection)
    scale = jnp.asarray(gamma, some[0].values.dtype)
    per_epoch = m // batch_size

    def batches(epoch_key: jax.Array) -> Iterator[Batch]:
        order = np.asarray(jax.random.permutation(epoch_key, m))
        for i in range(per_epoch):
            chosen = order[i * batch_size : (i + 1) * batch_size]
            both = [side(chosen) for side in rows]
            if shared:
                documents = documents_of(scipy.sparse.vstack(both, format="csr"), sum(slots)), None
            else:
                documents = tuple(map(documents_of, both, slots))
            yield Batch(*documents, scale, jax.device_put(groups[chosen]), activation, precision,
                        None if weights is None else jax.device_put(weights[chosen]))

    size = sum(leaf.size for leaf in jax.tree.leaves(start))
    rms = float(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(start)) / size))
    if not 0 < rms < math.inf:  # the squares are no numbers of their type
        rms = start_norm(start) / math.sqrt(size)
    # Batches are made of all of these, which a function of this library does not tell a checkpoint.
    told = (_told(*facts) for facts in zip((left, right), lengths, some, strict=True))
    constants = Batch(*told, scale, groups, activation, precision, weights), batch_size, _SMALL
    return run.run(
        optim.minimize_sgd, lambda learned: _times(learned, power), objective, start, batches, key=key,
        optimizer=optim.adam(learning_rate * rms, per_epoch * run.max_iter), constants=constants, label="S2Net (SGD)",
    )

