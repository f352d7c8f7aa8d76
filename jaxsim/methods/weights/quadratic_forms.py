r"""Cosines of documents whose term weights are linear in features, as quotients of quadratic forms.

With :math:`s_{ip} = \sum_j w_j \phi_j(t_i, D_p)`, the inner product of two documents is :math:`w^\top M_{pq} w`, where
:math:`M_{pq} = \sum_i \phi(t_i, D_p)\,\phi(t_i, D_q)^\top` over the terms they share. With the few features there are,
the matrices are smaller than the documents and are computed once, on the host; an evaluation is then a product of a
tall matrix with one short vector.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import sparse
from jaxsim.sparse.precision import EVALUATION
from jaxsim.text.features import Featured

_PAIRS = 2048
_ROUNDING = 16  # times the distance between floats, of the sum of the absolute values that a square is added up from
_APART = 1e4  # ratio of the sizes of features from which on the small ones may look like rounding


class Forms(NamedTuple):
    """What the cosines of some pairs need, in a basis of the features that is orthonormal over all slots.

    Without that basis, float32 sums over correlated features would cancel.

    Attributes:
      basis: ``[r, num_features]``, from weights of features to weights in the basis.
      products: ``[n, r (r + 1) / 2]``, upper triangles of the pairs' matrices.
      left_squares: ``[num_left, r (r + 1) / 2]``, those of left documents with themselves.
      right_squares: ``[num_right, r (r + 1) / 2]``, those of right documents.
      left: ``[n]`` int32 left document of each pair.
      right: ``[n]`` int32 right document of each pair.
    """

    basis: jax.Array
    products: jax.Array
    left_squares: jax.Array
    right_squares: jax.Array
    left: jax.Array
    right: jax.Array


def plan(left: Featured, right: Featured, left_rows, right_rows) -> Forms:
    """Computes the forms of some pairs, on the host, in float64.

    Args:
      left: documents of one side.
      right: documents of the other side, with the same vocabulary and features.
      left_rows: ``[n]`` integer left document of each pair.
      right_rows: ``[n]`` integer right document of each pair.

    Returns:
      `Forms` in the type of the features: ``n r (r + 1) / 2`` numbers, r at most the number of features.
    """
    left_rows, right_rows = np.asarray(left_rows), np.asarray(right_rows)
    sides = [_host(left), _host(right)]
    moment = sum(columns.T @ columns for _, columns in sides) / max(sum(len(columns) for _, columns in sides), 1)
    spread, axes = _axes(moment)
    unit = np.ones(len(moment))
    size = np.sqrt(np.where(np.diagonal(moment) > 0, np.diagonal(moment), 1))
    if len(spread) < len(moment) and np.max(size) > _APART * np.min(size):
        # Small numbers are no lack of a direction: whether there is one is asked of features of one size.
        scaled, turned = _axes(moment / np.outer(size, size))
        if len(scaled) > len(spread):
            spread, axes, unit = scaled, turned, size
    sides = [(slots, columns @ (axes / unit[:, None] / np.sqrt(spread))) for slots, columns in sides]
    every = [np.arange(one.num_docs) for one in (left, right)]
    dtype = left.columns.dtype
    result = (
        (np.sqrt(spread) * axes).T * unit,
        _products(sides[0], sides[1], left_rows, right_rows),
        _products(sides[0], sides[0], every[0], every[0]),
        _products(sides[1], sides[1], every[1], every[1]),
    )
    rows = (jnp.asarray(one, jnp.int32) for one in (left_rows, right_rows))
    return Forms(*(jnp.asarray(one, dtype) for one in result), *rows)


def _axes(moment: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and vectors, without those of rounding."""
    spread, axes = np.linalg.eigh(moment)
    kept = spread > 1e-10 * max(spread[-1], np.finfo(np.float64).tiny)
    return spread[kept], axes[:, kept]


def cosines(weights: jax.Array, forms: Forms) -> jax.Array:
    """Cosines of the planned pairs.

    Args:
      weights: ``[num_features]``.
      forms: as `plan` gives them.

    Returns:
      ``[n]``; 0, with gradient 0, where either document is zero.
    """
    product, left, right = products(weights, forms)
    return quotients(product, left[forms.left], right[forms.right])


def products(weights: jax.Array, forms: Forms) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Inner products of the planned pairs, and of every document with itself.

    Args:
      weights: ``[num_features]``.
      forms: as `plan` gives them.

    Returns:
      ``[n]`` of the pairs, ``[num_left]`` and ``[num_right]``. A square that is only rounding is 0, with gradient 0: in
      the basis, terms whose weights are exactly 0 leave some.
    """
    with jax.default_matmul_precision(EVALUATION):
        inside = forms.basis @ weights
        row, column = np.triu_indices(inside.shape[0])
        quadratic = inside[row] * inside[column]
        return (forms.products @ quadratic, _squares(forms.left_squares, quadratic),
                _squares(forms.right_squares, quadratic))


def _squares(triangles: jax.Array, quadratic: jax.Array) -> jax.Array:
    """Squared lengths; 0 where they are not larger than the rounding of the sum."""
    square = triangles @ quadratic
    largest = jax.lax.stop_gradient(jnp.abs(triangles) @ jnp.abs(quadratic))
    rounding = square <= _ROUNDING * jnp.finfo(square.dtype).eps * largest
    return jnp.where(rounding & jnp.isfinite(largest), 0, square)  # infinite ones are left for the fit to refuse


def quotients(product: jax.Array, left: jax.Array, right: jax.Array) -> jax.Array:
    """Cosines from inner products and squared lengths.

    Args:
      product: ``[n]``.
      left: ``[n]`` squared lengths of one side.
      right: ``[n]`` squared lengths of the other.

    Returns:
      ``[n]``; 0, with gradient 0, where either length is 0.
    """
    some = (left > 0) & (right > 0)
    lengths = [jnp.sqrt(jnp.where(some, square, 1)) for square in (left, right)]
    return jnp.where(some, product, 0) / lengths[0] / lengths[1]


def _host(documents: Featured) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """Slot numbers (from 1) as a CSR matrix, and the features of every slot, in float64."""
    csr = sparse.to_scipy(documents.terms)
    slots = scipy.sparse.csr_matrix((np.arange(1, csr.nnz + 1), csr.indices, csr.indptr), shape=csr.shape)
    return slots, np.asarray(documents.columns, np.float64)[: csr.nnz]


def _products(one, other, one_rows: np.ndarray, other_rows: np.ndarray) -> np.ndarray:
    """Upper triangles of ``M_pq + M_pqᵀ`` (halved on the diagonal), a row a pair."""
    width = one[1].shape[1]
    row, column = np.triu_indices(width)
    half = np.where(row == column, 0.5, 1.0)
    result = np.zeros((len(one_rows), len(row)))
    for start in range(0, len(one_rows), _PAIRS):
        keys, slots = zip(*(_slots(side[0], rows[start : start + _PAIRS])
                            for side, rows in ((one, one_rows), (other, other_rows))), strict=True)
        place = np.searchsorted(keys[0], keys[1])
        shared = place < len(keys[0])
        shared[shared] = keys[0][place[shared]] == keys[1][shared]
        a, b = one[1][slots[0][place[shared]]], other[1][slots[1][shared]]
        pair = keys[1][shared] // one[0].shape[1]
        products = (a[:, row] * b[:, column] + a[:, column] * b[:, row]) * half
        size = len(one_rows[start : start + _PAIRS])
        indptr = np.searchsorted(pair, np.arange(size + 1))
        total = scipy.sparse.csr_matrix((np.ones(len(pair)), np.arange(len(pair)), indptr), (size, len(pair)))
        result[start : start + size] = total @ products
    return result


def _slots(slots: scipy.sparse.csr_matrix, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Ascending (pair, term) codes of the chosen documents' terms, and where their features stand."""
    chosen = slots[rows]
    pair = np.repeat(np.arange(len(rows), dtype=np.int64), np.diff(chosen.indptr))
    return pair * slots.shape[1] + chosen.indices, chosen.data - 1
