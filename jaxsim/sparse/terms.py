"""Sparse documents on the device, and their product with a projection, which is defined for every other storage too.

`Terms` holds a whole collection as compressed rows *and* as the transpose's compressed rows, so that ``F A`` and the
gradient ``Fᵀ g`` are both products that walk over rows. The transpose stores a permutation into the values, not a
second copy. Other ways to store documents (`Slices`, `Document`, shards over a mesh) register their own product with
`project`, which dispatches on the type.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.sparse.compilation import seldom
from jaxsim.sparse.products import in_blocks, mapped_rows_product, rows_product, sampled, vary_as, vary_with


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

    __repr__ = checks.brief

    @property
    def num_docs(self) -> int:
        """Number of documents, padding included."""
        return self.indptr.shape[0] - 1

    @property
    def nnz(self) -> int:
        """Number of stored slots, padding included."""
        return self.values.shape[0]


def checked(csr, argument: str) -> scipy.sparse.csr_matrix:
    """A canonical copy (sorted, duplicates summed) of ``csr``, or ValueError."""
    checks.expect(scipy.sparse.issparse(csr), argument, "a SciPy sparse matrix", type(csr).__name__)
    checks.expect(csr.ndim == 2, argument, "two axes", f"{csr.ndim} axes")
    _expect_ids_in_range(csr, argument)
    if csr.format == "csr":
        num_docs, num_terms = csr.shape
        bad = csr.indices[(csr.indices < 0) | (csr.indices >= num_terms)]
        if bad.size:
            raise ValueError(f"{argument}.indices: expected term ids in [0, {num_terms}), got {int(bad[0])}")
        pointers = np.asarray(csr.indptr)
        slots, steps = csr.data.shape[0], np.diff(pointers)
        if pointers[0] != 0 or np.any(steps < 0) or pointers[-1] > slots:
            i = np.flatnonzero(steps < 0)[:1]
            got = f"{pointers[i[0] + 1]} after {pointers[i[0]]}" if i.size else f"{pointers[0]} to {pointers[-1]}"
            raise ValueError(f"{argument}.indptr: expected ascending row pointers from 0 to at most {slots}, got {got}")
    if not np.issubdtype(csr.dtype, np.floating):
        checks.expect(np.issubdtype(csr.dtype, np.integer) or csr.dtype == bool, argument, "real numbers", csr.dtype)
    # Coordinates are summed on the way to rows: in a type that holds the sums.
    narrow = not np.issubdtype(csr.dtype, np.floating) or csr.dtype == np.float16
    matrix = scipy.sparse.csr_matrix(csr.astype(np.float32) if narrow else csr, copy=not narrow)
    if matrix.dtype != np.float32:
        with np.errstate(over="ignore"):  # what overflows is refused below
            matrix = matrix.astype(jnp.result_type(float))
    matrix.sum_duplicates()
    finite = np.isfinite(matrix.data)
    if not finite.all():
        row = int(np.searchsorted(matrix.indptr, int(np.argmin(finite)), side="right")) - 1
        raise ValueError(f"{argument}: expected finite values, got {matrix.data[np.argmin(finite)]} in document {row}")
    for number, what in zip((*matrix.shape, matrix.nnz), ("documents", "terms", "weights"), strict=True):
        checks.expect(number < 2**31 - 1, argument, f"fewer than 2**31 - 1 {what}", number)
    return matrix


def _expect_ids_in_range(csr, argument: str) -> None:
    """SciPy checks neither columns in compressed columns nor coordinates that were changed after construction."""
    if csr.format in ("csc", "bsr"):
        try:
            csr.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"{argument}: expected indices within {csr.shape}, got: {error}") from None
    elif csr.format == "coo":
        for ids, size, what in zip((csr.row, csr.col), csr.shape, ("documents", "term ids"), strict=True):
            bad = ids[(ids < 0) | (ids >= size)]
            if bad.size:
                raise ValueError(f"{argument}: expected {what} in [0, {size}), got {int(bad[0])}")


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
        # jnp.asarray would compile a program for every length.
        return jax.device_put(np.concatenate([np.asarray(array, dtype), np.zeros(slots - nnz, dtype)]))

    indptr = np.concatenate([matrix.indptr, np.full(docs - num_docs, nnz)]).astype(np.int32)
    return Terms(
        values=padded(matrix.data, matrix.dtype),
        indices=padded(matrix.indices, np.int32),
        indptr=jax.device_put(indptr),
        t_order=padded(position.data, np.int32),
        t_indices=padded(position.indices, np.int32),
        t_indptr=jax.device_put(position.indptr.astype(np.int32)),
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
    return from_scipy(to_scipy(terms)[checked_rows(rows, terms.num_docs)])


def checked_rows(rows, num_docs: int) -> np.ndarray:
    """Numbers of documents.

    Args:
      rows: ``[n]`` integers.
      num_docs: how many documents there are.

    Returns:
      ``[n]`` int64.

    Raises:
      ValueError: for a row out of range, or rows that are not integers (a mask, say).

    Example:
      >>> checked_rows([2, 0], 3).tolist()
      [2, 0]
    """
    rows = np.asarray(rows)
    checks.expect(rows.ndim == 1, "rows", "one axis", f"{rows.ndim} axes")
    checks.expect(rows.size == 0 or np.issubdtype(rows.dtype, np.integer), "rows", "integers", rows.dtype)
    outside = rows[(rows < 0) | (rows >= num_docs)]
    checks.expect(not outside.size, "rows", f"rows in [0, {num_docs})", outside[:1].tolist())
    return rows.astype(np.int64)


@jax.custom_vjp
def _product(values, terms, weights):
    return vary_with(mapped_rows_product(values, terms.indices, terms.indptr, weights), values, weights)


def _product_backward(saved, grad):
    values, terms, weights = saved
    return (vary_as(sampled(terms.indices, terms.indptr, grad, weights), values), None,
            vary_as(_transposed(values, terms, grad), weights))


_product.defvjp(lambda *given: (_product(*given), given), _product_backward)


@jax.custom_vjp
def _transposed(values, terms, dense):
    product = mapped_rows_product(values[terms.t_order], terms.t_indices, terms.t_indptr, dense)
    return vary_with(product, values, dense)


def _transposed_backward(saved, grad):
    values, terms, dense = saved
    return (vary_as(sampled(terms.indices, terms.indptr, dense, grad), values), None,
            vary_as(_product(values, terms, grad), dense))


_transposed.defvjp(lambda *given: (_transposed(*given), given), _transposed_backward)


@jax.custom_vjp
def inner_products(pattern: Terms, rows: jax.Array) -> jax.Array:
    """Inner products of chosen pairs of rows of a matrix, without the matrix of all of them.

    Args:
      pattern: ``[num_rows, num_rows]``, whose slots are the pairs; its values are ignored.
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

    return None, vary_as(in_blocks(both, rows), rows)


inner_products.defvjp(lambda *given: (inner_products(*given), given), _inner_backward)


@functools.singledispatch
def project(terms, weights: jax.Array) -> jax.Array:
    r"""Concept vectors ``G = F A`` of all documents (000 eq. 1: :math:`g = A^\top f`), however they are stored.

    Args:
      terms: `Terms` or `Slices` of ``num_docs`` documents over ``num_terms`` terms; one `Document`; `Shards` or
        `TermShards` over a mesh (`jaxsim.parallel`).
      weights: ``[num_terms, k]`` floating, ``A``.

    Returns:
      ``[num_docs, k]``, of one `Document` ``[k]``; zero for an empty document. Differentiable (reverse mode) in
      ``weights``, and in the values where they are on one device.

    Raises:
      ValueError: if ``weights`` is not ``[num_terms, k]``, or for other documents.

    Example:
      >>> terms = from_scipy(scipy.sparse.csr_matrix([[1.0, 2.0], [0.0, 0.0]]))
      >>> project(terms, jnp.array([[1.0], [10.0]])).tolist()
      [[21.0], [0.0]]

    Relations: ``jax.vmap(project, in_axes=(0, None))`` of `documents` gives the same rows; ``vmap`` over several
    ``weights`` is one product with all of them side by side.
    """
    raise ValueError(f"terms: expected documents (Terms, from sparse.from_scipy, say), got {checks.a_kind(terms)}")


@project.register(Terms)
def _(terms, weights):
    expect_weights(weights, terms.num_terms)
    dtype = jnp.result_type(terms.values, weights)
    if terms.num_terms == 0 or terms.num_docs == 0:
        return jnp.zeros((terms.num_docs, weights.shape[1]), dtype)
    return _product(terms.values.astype(dtype), terms, weights.astype(dtype))


def expect_weights(weights, rows: int) -> None:
    """Refuses a projection that is not ``[rows, k]``."""
    checks.expect(weights.ndim == 2 and weights.shape[0] == rows, "weights", f"shape ({rows}, k)", weights.shape)


@functools.singledispatch
def project_transpose(terms, dense: jax.Array) -> jax.Array:
    """``Fᵀ G``: what the gradient of `project` computes, and half of every covariance product.

    Args:
      terms: ``num_docs`` documents over ``num_terms`` terms: `Terms`, `Filled` or `Gathered`.
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
    raise ValueError(f"terms: expected documents (Terms or Filled), got {checks.a_kind(terms)}")


@project_transpose.register(Terms)
def _(terms, dense):
    expect_dense(dense, terms.num_docs)
    if terms.num_docs == 0 or terms.num_terms == 0:
        return jnp.zeros((terms.num_terms, dense.shape[1]), dense.dtype)
    dtype = jnp.result_type(terms.values, dense)
    return _transpose_product(terms, dense, dtype)


@functools.partial(seldom, static_argnames="dtype")
def _transpose_product(terms, dense, dtype):
    return _transposed(terms.values.astype(dtype), terms, dense.astype(dtype))


def expect_dense(dense, rows: int) -> None:
    """Refuses what is not ``[rows, k]``, a row for each document."""
    checks.expect(dense.ndim == 2 and dense.shape[0] == rows, "dense", f"shape ({rows}, k)", dense.shape)
