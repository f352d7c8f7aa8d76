"""Sparse documents on the device: the only module that knows how they are stored.

`Terms` holds a whole collection as compressed rows *and* as the transpose's compressed rows, so that ``F A`` and the
gradient ``Fᵀ g`` are both products that walk over rows. The transpose stores a permutation into the values, not a
second copy. `Slices` holds a minibatch as padded rows of one fixed width, which keeps every shape static (stochastic
gradient descent, TPUs, ``vmap``). `project` works on both.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.sparse.batched import mapped_rows_product
from jaxsim.sparse.document import Document, project_document
from jaxsim.sparse.matrix import checked
from jaxsim.sparse.padded import Slices, project_slices, slices
from jaxsim.sparse.products import in_blocks, rows_product, sampled

__all__ = ["Slices", "Terms", "from_scipy", "inner_products", "project", "project_transpose", "slices", "take",
           "to_scipy", "weigh", "with_values"]


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["values", "indices", "indptr", "t_order", "t_indices", "t_indptr"],
    meta_fields=["num_terms"],
)
@dataclasses.dataclass(frozen=True)
class Terms:
    """Sparse documents ``F``, shape ``[num_docs, num_terms]``, as a pytree. Build with `from_scipy` only.

    Attributes:
      values: ``[slots]`` floating, in row order; slots past ``indptr[-1]`` are padding.
      indices: ``[slots]`` int32 term of each slot, ascending within a document.
      indptr: ``[num_docs + 1]`` int32 row pointers.
      t_order: ``[slots]`` int32, the transpose's slots as positions in `values`.
      t_indices: ``[slots]`` int32 document of each slot of the transpose.
      t_indptr: ``[num_terms + 1]`` int32 row pointers of the transpose.
      num_terms: size of the vocabulary.
    """

    values: jax.Array
    indices: jax.Array
    indptr: jax.Array
    t_order: jax.Array
    t_indices: jax.Array
    t_indptr: jax.Array
    num_terms: int

    @property
    def num_docs(self) -> int:
        """Number of documents, padding included."""
        return self.indptr.shape[0] - 1

    @property
    def nnz(self) -> int:
        """Number of stored slots, padding included."""
        return self.values.shape[0]


def from_scipy(csr, *, pad_docs: int | None = None, pad_nnz: int | None = None) -> Terms:
    """Puts a SciPy sparse matrix on the device, checking it once.

    Args:
      csr: ``[num_docs, num_terms]`` SciPy sparse matrix of real numbers; negative values are legal, duplicates are
        summed, empty rows are legal. float64 stays float64 only where JAX has 64-bit types enabled.
      pad_docs: total number of rows after padding with empty documents.
      pad_nnz: total number of slots after padding.

    Returns:
      `Terms` of ``max(num_docs, pad_docs)`` documents.

    Raises:
      ValueError: for term ids out of range, values that are not finite, or a padding smaller than the data.

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0, 2.0], [0.0, 0.0, 0.0]]))
      >>> terms.num_docs, terms.num_terms, terms.nnz
      (2, 3, 2)
    """
    matrix = checked(csr, "csr")
    num_docs, num_terms = matrix.shape
    nnz = matrix.nnz
    docs = num_docs if pad_docs is None else pad_docs
    slots = nnz if pad_nnz is None else pad_nnz
    checks.expect(docs >= num_docs, "pad_docs", f"at least {num_docs} (documents of csr)", docs)
    checks.expect(slots >= nnz, "pad_nnz", f"at least {nnz} (slots of csr)", slots)
    slots = max(slots, 1)
    position = scipy.sparse.csr_matrix((np.arange(nnz), matrix.indices, matrix.indptr), shape=matrix.shape).tocsc()

    def padded(array, dtype):
        return jnp.asarray(np.concatenate([np.asarray(array, dtype), np.zeros(slots - nnz, dtype)]))

    indptr = np.concatenate([matrix.indptr, np.full(docs - num_docs, nnz)]).astype(np.int32)
    return Terms(
        values=padded(matrix.data, matrix.dtype),
        indices=padded(matrix.indices, np.int32),
        indptr=jnp.asarray(indptr),
        t_order=padded(position.data, np.int32),
        t_indices=padded(position.indices, np.int32),
        t_indptr=jnp.asarray(position.indptr.astype(np.int32)),
        num_terms=num_terms,
    )


def to_scipy(terms: Terms) -> scipy.sparse.csr_matrix:
    """Brings documents back to the host.

    Args:
      terms: `Terms` of ``num_docs`` documents.

    Returns:
      ``[num_docs, num_terms]`` CSR matrix; padding documents are empty rows, padding slots are gone.

    Example:
      >>> to_scipy(from_scipy(scipy.sparse.csr_matrix([[0.0, 3.0]]))).toarray().tolist()
      [[0.0, 3.0]]
    """
    indptr = np.array(terms.indptr)
    nnz = int(indptr[-1])
    parts = (np.array(terms.values)[:nnz], np.array(terms.indices)[:nnz], indptr)
    return scipy.sparse.csr_matrix(parts, shape=(terms.num_docs, terms.num_terms))


def with_values(terms: Terms, values: jax.Array) -> Terms:
    """The same pattern with new values; works inside ``jit``.

    Args:
      terms: `Terms` with ``nnz`` slots.
      values: ``[nnz]`` floating, in the order of ``terms.values``.

    Returns:
      `Terms` with these values.

    Raises:
      ValueError: if the number of values differs from the number of slots.

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]]))
      >>> to_scipy(with_values(terms, -terms.values)).toarray().tolist()
      [[-1.0, -2.0]]
    """
    checks.expect(values.shape == terms.values.shape, "values", f"shape {terms.values.shape}", values.shape)
    return dataclasses.replace(terms, values=values)


def weigh(terms: Terms, scale: jax.Array) -> Terms:
    """Multiplies every term by its weight; works inside ``jit``.

    Args:
      terms: `Terms` over ``num_terms`` terms.
      scale: ``[num_terms]`` floating.

    Returns:
      `Terms` with value ``f_dt * scale_t``.

    Raises:
      ValueError: if ``scale`` has another shape.

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0]]))
      >>> to_scipy(weigh(terms, jnp.array([10.0, 1.0]))).toarray().tolist()
      [[10.0, 2.0]]
    """
    checks.expect(scale.shape == (terms.num_terms,), "scale", f"shape ({terms.num_terms},)", scale.shape)
    if terms.num_terms == 0:
        return terms
    return with_values(terms, terms.values * scale[terms.indices])


def take(terms: Terms, rows) -> Terms:
    """Selects documents, on the host.

    Args:
      terms: `Terms`.
      rows: ``[n]`` integers in ``[0, num_docs)``, repeats allowed.

    Returns:
      `Terms` of ``n`` documents.

    Raises:
      ValueError: for a row out of range, or rows that are not integers (a mask, say).

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0], [2.0], [3.0]]))
      >>> to_scipy(take(terms, [2, 0])).toarray().tolist()
      [[3.0], [1.0]]
    """
    rows = np.asarray(rows)
    checks.expect(rows.ndim == 1, "rows", "one axis", f"{rows.ndim} axes")
    checks.expect(rows.size == 0 or np.issubdtype(rows.dtype, np.integer), "rows", "integers", rows.dtype)
    outside = rows[(rows < 0) | (rows >= terms.num_docs)]
    checks.expect(not outside.size, "rows", f"rows in [0, {terms.num_docs})", outside[:1].tolist())
    return from_scipy(to_scipy(terms)[rows.astype(np.int64)])


@jax.custom_vjp
def _product(values, terms, weights):
    return mapped_rows_product(values, terms.indices, terms.indptr, weights)


def _product_backward(saved, grad):
    values, terms, weights = saved
    return sampled(terms.indices, terms.indptr, grad, weights), None, _transposed(values, terms, grad)


_product.defvjp(lambda *given: (_product(*given), given), _product_backward)


@jax.custom_vjp
def _transposed(values, terms, dense):
    return mapped_rows_product(values[terms.t_order], terms.t_indices, terms.t_indptr, dense)


def _transposed_backward(saved, grad):
    values, terms, dense = saved
    return sampled(terms.indices, terms.indptr, dense, grad), None, _product(values, terms, grad)


_transposed.defvjp(lambda *given: (_transposed(*given), given), _transposed_backward)


@jax.custom_vjp
def inner_products(pattern: Terms, rows: jax.Array) -> jax.Array:
    """Inner products of chosen pairs of rows of a matrix, without the matrix of all of them.

    Args:
      pattern: ``[num_rows, num_rows]``, whose slots are the pairs; its values are not looked at.
      rows: ``[num_rows, k]`` floating.

    Returns:
      ``[slots]``, in the order of ``pattern.values``; differentiable (reverse mode) in the rows, in one pass over them.

    Example:
      >>> pairs = from_scipy(scipy.sparse.csr_matrix([[0.0, 1.0], [0.0, 1.0]]))
      >>> inner_products(pairs, jnp.array([[2.0], [3.0]])).tolist()
      [6.0, 9.0]
    """
    return sampled(pattern.indices, pattern.indptr, rows, rows)


def _inner_backward(saved, grad):
    pairs, rows = saved
    back = grad[pairs.t_order]

    def both(part):
        return (rows_product(grad, pairs.indices, pairs.indptr, part)
                + rows_product(back, pairs.t_indices, pairs.t_indptr, part))

    return None, in_blocks(both, rows)


inner_products.defvjp(lambda *given: (inner_products(*given), given), _inner_backward)


def project(terms: Terms | Slices | Document, weights: jax.Array) -> jax.Array:
    r"""Concept vectors ``G = F A`` of all documents (000 eq. 1: :math:`g = A^\top f`).

    Args:
      terms: `Terms` or `Slices` of ``num_docs`` documents over ``num_terms`` terms; or one `Document`.
      weights: ``[num_terms, k]`` floating, ``A``.

    Returns:
      ``[num_docs, k]``, of one `Document` ``[k]``; zero for an empty document. Differentiable (reverse mode) in
      ``weights`` and in the values.

    Raises:
      ValueError: if ``weights`` is not ``[num_terms, k]``.

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0], [0.0, 0.0]]))
      >>> project(terms, jnp.array([[1.0], [10.0]])).tolist()
      [[21.0], [0.0]]

    Relations: ``jax.vmap(project, in_axes=(0, None))`` of `documents` gives the same rows; ``vmap`` over several
    ``weights`` is one product with all of them side by side.
    """
    fits = weights.ndim == 2 and weights.shape[0] == terms.num_terms
    checks.expect(fits, "weights", f"shape ({terms.num_terms}, k)", weights.shape)
    if isinstance(terms, Document):
        return project_document(terms, weights)
    dtype = jnp.result_type(terms.values, weights)
    if terms.num_terms == 0 or terms.num_docs == 0:
        return jnp.zeros((terms.num_docs, weights.shape[1]), dtype)
    if isinstance(terms, Slices):
        return project_slices(terms, weights)
    return _product(terms.values.astype(dtype), terms, weights.astype(dtype))


def project_transpose(terms: Terms, dense: jax.Array) -> jax.Array:
    """``Fᵀ G``: what the gradient of `project` computes, and half of every covariance product.

    Args:
      terms: `Terms` of ``num_docs`` documents over ``num_terms`` terms.
      dense: ``[num_docs, k]`` floating.

    Returns:
      ``[num_terms, k]``.

    Raises:
      ValueError: if ``dense`` is not ``[num_docs, k]``.

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0], [0.0, 3.0]]))
      >>> project_transpose(terms, jnp.array([[1.0], [1.0]])).tolist()
      [[1.0], [5.0]]
    """
    fits = dense.ndim == 2 and dense.shape[0] == terms.num_docs
    checks.expect(fits, "dense", f"shape ({terms.num_docs}, k)", dense.shape)
    if terms.num_docs == 0 or terms.num_terms == 0:
        return jnp.zeros((terms.num_terms, dense.shape[1]), dense.dtype)
    dtype = jnp.result_type(terms.values, dense)
    return _transposed(terms.values.astype(dtype), terms, dense.astype(dtype))
