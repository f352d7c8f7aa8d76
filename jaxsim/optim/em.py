r"""Expectation maximisation of mixtures over sparse counts: padded rows in buckets, expected counts, and the loop.

A mixture gives a count in row ``d`` and column ``w`` the rate :math:`s_{dw} = \sum_t \theta_{dt} \phi_{wt}`. Its
expected counts are matrix products with :math:`R = X / s` on the stored entries alone,

.. math:: N_{dt} = \theta_{dt} (R \phi)_{dt}, \qquad N_{wt} = \phi_{wt} (R^\top \theta)_{wt}.

Both are one function, `expected`, of the rows and of the rows of the transpose. Rows of similar length share a bucket,
padded to a power of two, so that a row's sum needs neither a scatter nor a shape of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.optim import epochs
from jaxsim.optim.monitor import Fit, Run
from jaxsim.sparse.precision import EVALUATION

_NARROWEST = 4  # slots of the shortest rows
_NUMBERS = 2**17  # gathered at a time: what stays near the processor


class Buckets(NamedTuple):
    """Sparse rows of similar length together. Build with `buckets`.

    Attributes:
      indices: one ``[blocks, rows, width]`` int32 array a bucket, 0 in unused slots; over several devices with an axis
        of devices before these.
      values: their values, 0 in unused slots.
    """

    indices: tuple[jax.Array, ...]
    values: tuple[jax.Array, ...]


def buckets(parts: Sequence[scipy.sparse.csr_matrix], *, k: int) -> tuple[Buckets, np.ndarray]:
    """Sorts rows by length into buckets of one power of two each.

    Args:
      parts: the same rows as every device has them, ``[n, columns]`` each; one where there is one device.
      k: columns of the matrices that `expected` will be given, by which blocks are cut.

    Returns:
      `Buckets`, with an axis of devices where there are several; and ``[places]`` the row that stands at each place, -1
      for padding. Every row, an empty one too, stands at one place, the same on all devices.

    Example:
      >>> packed, order = buckets([scipy.sparse.csr_matrix([[1.0, 2.0], [0.0, 3.0]])], k=2)
      >>> packed.values[0].shape, order.tolist()
      ((1, 2, 4), [0, 1])
    """
    parts = [scipy.sparse.csr_matrix(part) for part in parts]
    lengths = np.max([np.diff(part.indptr) for part in parts], axis=0)
    widths = np.maximum(_NARROWEST, 2 ** np.ceil(np.log2(np.maximum(lengths, 1))).astype(np.int64))
    indices, values, order = [], [], []
    for width in np.unique(widths):
        rows = np.flatnonzero(widths == width)
        block = int(np.clip(_NUMBERS // (k * width), 1, rows.size))
        places = np.full(-(-rows.size // block) * block, -1)
        places[: rows.size] = rows
        order.append(places)
        filled = [_rectangle(part, rows, places.size, int(width)) for part in parts]
        shape = (places.size // block, block, int(width))
        for found, number in ((indices, 0), (values, 1)):
            arrays = [part[number].reshape(shape) for part in filled]
            found.append(jnp.asarray(arrays[0] if len(parts) == 1 else np.stack(arrays)))
    return Buckets(tuple(indices), tuple(values)), np.concatenate(order)


def _rectangle(matrix, rows: np.ndarray, height: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    """Some rows of a CSR matrix at one width, and empty rows below them."""
    lengths = np.diff(matrix.indptr)[rows]
    filled = np.zeros((height, width), bool)
    filled[: rows.size] = np.arange(width) < lengths[:, None]
    slots = np.repeat(matrix.indptr[rows], lengths) + np.arange(lengths.sum())
    slots -= np.repeat(np.cumsum(lengths) - lengths, lengths)
    indices, values = np.zeros((height, width), np.int32), np.zeros((height, width), matrix.dtype)
    indices[filled], values[filled] = matrix.indices[slots], matrix.data[slots]
    return indices, values


def of_block(gathered: jax.Array, values: jax.Array, rows: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Expected counts of a few rows of one width, and their log-likelihood.

    Args:
      gathered: ``[n, width, k]`` weights of the columns of each slot.
      values: ``[n, width]`` counts, 0 in unused slots.
      rows: ``[n, k]`` weights of the rows.

    Returns:
      ``([n, k], scalar)``, as from `expected`.

    Example:
      >>> of_block(jnp.ones((1, 2, 1)), jnp.array([[3.0, 0.0]]), jnp.ones((1, 1)))[0].tolist()
      [[3.0]]
    """
    rate = jnp.einsum("rwk,rk->rw", gathered, rows, precision=EVALUATION)
    some = (values > 0) & (rate > jnp.finfo(rows.dtype).tiny)
    rate = jnp.where(some, rate, 1)
    ratio = jnp.where(some, values / rate, 0)
    counts = rows * jnp.einsum("rwk,rw->rk", gathered, ratio, precision=EVALUATION)
    return counts, jnp.sum(jnp.where(some, values, 0) * jnp.log(rate))


def expected(packed: Buckets, own: jax.Array, other: jax.Array) -> tuple[jax.Array, jax.Array]:
    r"""Expected counts of the rows, :math:`N = \mathrm{own} \circ (R\, \mathrm{other})`, and the log-likelihood.

    Args:
      packed: the counts of ``n`` places.
      own: ``[n, k]`` floating at least 0, the rows' weights in the order of their places.
      other: ``[columns, k]`` floating at least 0.

    Returns:
      ``([n, k], scalar)``: the counts, and :math:`\sum x \log s` in nats. An entry of rate 0 adds nothing.

    Example:
      >>> packed, order = buckets([scipy.sparse.csr_matrix([[1.0, 3.0]])], k=2)
      >>> counts, _ = expected(packed, jnp.array([[0.5, 0.5]]), jnp.eye(2))
      >>> counts.tolist()
      [[1.0, 3.0]]
    """
    def block(given):
        indices, values, rows = given
        return of_block(other[indices], values, rows)

    counts, total, start = [], jnp.zeros((), own.dtype), 0
    for indices, values in zip(*packed, strict=True):
        blocks, rows, _ = indices.shape
        part = own[start : start + blocks * rows].reshape(blocks, rows, -1)
        some, likelihood = jax.lax.map(block, (indices, values, part))
        counts.append(some.reshape(blocks * rows, -1))
        total, start = total + jnp.sum(likelihood), start + blocks * rows
    return jnp.concatenate(counts), total


RUN = Run(max_iter=100, checkpoint_every=1)
"""The defaults of `maximize`."""


def maximize(
    step: Callable,
    state: tuple,
    *,
    each: int = 1,
    mark: Callable[[], str],
    label: str = "EM",
    shared: bool = False,
    run: Run | None = None,
    **options,
) -> Fit:
    """Repeats an iteration of EM, with validation, patience, checkpoints and a bar between its steps.

    Args:
      step: function of the state giving ``(state, loss)``; the old state may be donated. The loss, a negative
        objective, is that of the state it was given, since the expectations compute it anyway.
      state: pytrees of arrays, of which the first are the parameters.
      each: iterations a step of the run: scores and checkpoints come after so many.
      mark: gives the fingerprint of the problem; called only for checkpoints.
      label: name on the bar.
      shared: whether several processes do this together; checkpoints are those of all of them.
      run: how long it runs, by what score, and where it is kept; 100 steps and a checkpoint after each by default.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit`; the loss of an entry is the mean over its iterations, NaN before the first; ``converged`` is True only if
      patience ran out.

    Raises:
      ValueError: for bad settings, an unwritable folder, or a checkpoint of another problem.
      FloatingPointError: if the loss is not finite, naming the step.

    Example:
      >>> halve = jax.jit(lambda state: ((state[0] / 2,), state[0] ** 2))
      >>> fit = maximize(halve, (jnp.ones(()),), mark=str, max_iter=2)
      >>> float(fit.params), [entry["loss"] for entry in fit.history[1:]]
      (0.25, [1.0, 0.25])
    """
    checks.positive_int(each, "each")

    def steps(state, number):
        losses = []
        for _ in range(each):
            state, loss = step(state)
            losses.append(loss)
        losses = np.asarray(jax.device_get(losses), np.float64)
        return state, losses, float(losses.mean()), float("nan")

    begin = [state]
    del state  # else this call would hold it to the end
    return epochs.run(steps, begin.pop(), mark=mark, run=Run.of(run, options, RUN), label=label, shared=shared)

