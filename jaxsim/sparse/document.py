"""One sparse document: the argument of pure functions of a document, a pair or a triple, which ``jax.vmap`` lifts."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse.precision import EVALUATION
from jaxsim.sparse.terms import checked, expect_weights, project


@functools.partial(
    jax.tree_util.register_dataclass, data_fields=["indices", "values"], meta_fields=["num_terms"]
)
@dataclasses.dataclass(frozen=True)
class Document:
    """One document as padded terms and values; or many, with a leading axis that ``jax.vmap`` maps over.

    Attributes:
      indices: ``[width]`` int32 terms; 0 in unused slots. ``[n, width]`` for many.
      values: ``[width]`` floating; 0 in unused slots. ``[n, width]`` for many.
      num_terms: size of the vocabulary.
    """

    indices: jax.Array
    values: jax.Array
    num_terms: int

    def __getitem__(self, rows) -> Document:
        """Some of many documents; works inside ``jit``.

        Args:
          rows: an integer, or integers of any shape, in range.

        Returns:
          `Document` whose leading axes are those of ``rows``.
        """
        return Document(self.indices[rows], self.values[rows], self.num_terms)


def documents(csr, *, width: int | None = None) -> Document:
    """Puts the rows of a SciPy sparse matrix on the device as a `Document` of one width, and checks them once.

    Args:
      csr: as for `from_scipy`.
      width: slots per document; default: those of the longest. With one width for all batches, JAX compiles once.

    Returns:
      `Document` with a leading axis: ``documents(csr)[i]`` is row i, and ``jax.vmap`` maps over all of them.

    Raises:
      ValueError: as `from_scipy`, or if ``width`` is less than the distinct terms of a document.

    Example:
      >>> import scipy.sparse
      >>> rows = documents(scipy.sparse.csr_matrix([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
      >>> rows.indices.tolist(), rows.values.tolist()
      ([[0, 2], [0, 0]], [[1.0, 2.0], [0.0, 0.0]])

    Relations: memory is ``n`` times the longest document; `Terms` and `Slices` hold long and short ones with little
    padding, and their `project` is the same function of many.
    """
    matrix = checked(csr, "csr")
    lengths = np.diff(matrix.indptr)
    longest = int(lengths.max(initial=0))
    width = longest if width is None else width
    checks.expect(width >= longest, "width", f"at least {longest} (distinct terms of the longest document)", width)
    filled = np.arange(max(width, 1)) < lengths[:, None]
    indices, values = np.zeros(filled.shape, np.int32), np.zeros(filled.shape, matrix.dtype)
    indices[filled], values[filled] = matrix.indices, matrix.data
    return Document(jnp.asarray(indices), jnp.asarray(values), matrix.shape[1])


@project.register(Document)
def project_document(document: Document, weights: jax.Array) -> jax.Array:
    """`jaxsim.sparse.project` of one document: its weights times the rows of its terms."""
    expect_weights(weights, document.num_terms)
    expected = "one document (for many, jax.vmap(sparse.project, in_axes=(0, None)))"
    checks.expect(document.values.ndim == 1, "terms", expected, f"values of shape {document.values.shape}")
    if document.num_terms == 0:
        return jnp.zeros(weights.shape[1], jnp.result_type(document.values, weights))
    # A gathered [width, k], not a scan over slots: the gradient of a scan adds up a whole [num_terms, k] at every slot.
    return jnp.matmul(document.values, weights[document.indices], precision=EVALUATION)
