"""Minibatches of sparse documents: padded rows of one width, so that every shape is static."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse.gather import places
from jaxsim.sparse.terms import checked, expect_weights, project


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["values", "indices", "document"],
    meta_fields=["num_docs", "num_terms"],
)
@dataclasses.dataclass(frozen=True)
class Slices:
    """A minibatch of sparse documents cut into rows of one width. Build with `slices`.

    Attributes:
      values: ``[num_slices, width]`` floating; 0 in unused slots.
      indices: ``[num_slices, width]`` int32; 0 in unused slots.
      document: ``[num_slices]`` int32 ascending; ``num_docs`` marks a padding slice.
      num_docs: number of documents.
      num_terms: size of the vocabulary.
    """

    values: jax.Array
    indices: jax.Array
    document: jax.Array
    num_docs: int
    num_terms: int


def slices(csr, *, width: int = 32, pad_slices: int | None = None) -> Slices:
    """Cuts documents into padded rows of one width, for minibatches.

    Args:
      csr: as for `from_scipy`.
      width: slots per slice.
      pad_slices: total number of slices after padding; with one number for all batches, JAX compiles once.

    Returns:
      `Slices`; a document of ``n`` distinct terms takes ``ceil(n / width)`` slices, an empty document none.

    Raises:
      ValueError: as `from_scipy`, for a width below 1, or if ``pad_slices`` is too small.

    Example:
      >>> import scipy.sparse
      >>> cut = slices(scipy.sparse.csr_matrix([[1.0, 2.0, 3.0], [0.0, 0.0, 4.0]]), width=2)
      >>> cut.document.tolist()
      [0, 0, 1]
    """
    checks.expect(width >= 1, "width", "at least 1", width)
    matrix = checked(csr, "csr")
    lengths = np.diff(matrix.indptr)
    per_doc = -(-lengths // width)
    used = int(per_doc.sum())
    total = used if pad_slices is None else pad_slices
    checks.expect(total >= used, "pad_slices", f"at least {used}", total)
    total = max(total, 1)
    document = np.full(total, matrix.shape[0], np.int32)
    document[:used] = np.repeat(np.arange(matrix.shape[0]), per_doc)
    values = np.zeros((total, width), matrix.dtype)
    indices = np.zeros((total, width), np.int32)
    place = places(lengths, per_doc, width)
    values[place], indices[place] = matrix.data, matrix.indices
    return Slices(jnp.asarray(values), jnp.asarray(indices), jnp.asarray(document), *map(int, matrix.shape))


@project.register(Slices)
def project_slices(cut: Slices, weights: jax.Array) -> jax.Array:
    """`project` of a minibatch: a scan over slots under ``vmap``, then a sorted sum over slices."""
    expect_weights(weights, cut.num_terms)
    if cut.num_terms == 0 or cut.num_docs == 0:
        return jnp.zeros((cut.num_docs, weights.shape[1]), jnp.result_type(cut.values, weights))

    def one(values, indices):
        def add(total, slot):
            value, index = slot
            return total + value * weights[index], None

        start = jnp.zeros(weights.shape[1], jnp.result_type(values, weights))
        return jax.lax.scan(add, start, (values, indices))[0]

    rows = jax.vmap(one)(cut.values, cut.indices)
    total = jax.ops.segment_sum(rows, cut.document, num_segments=cut.num_docs + 1, indices_are_sorted=True)
    return total[:-1]
