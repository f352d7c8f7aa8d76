"""A model's representations of documents, and functions that compare two of them.

An empty document is a normal input, so every function is safe at a zero vector: its value is 0 there, and its gradient
exactly 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks
from jaxsim.sparse import terms as terms_room
from jaxsim.sparse.terms import Terms

_NEAR = 0.1  # relative difference of shares up to which the series of their divergence is exact in float32


class Vectors(NamedTuple):
    """Document representations; the score of two is the sum over the parts that are present.

    Attributes:
      dense: ``[num_docs, k]`` floating, or None.
      sparse: `Terms` of ``num_docs`` documents, or None.
    """

    dense: jax.Array | None = None
    sparse: Terms | None = None

    @property
    def num_docs(self) -> int:
        """Number of documents."""
        if self.dense is None and self.sparse is None:
            raise ValueError("vectors: expected a dense or a sparse part, got neither")
        return self.dense.shape[0] if self.dense is not None else self.sparse.num_docs


def take(documents: Terms | Vectors, rows) -> Terms | Vectors:
    """Selects documents, on the host.

    Args:
      documents: `Terms`, or `Vectors` of either part.
      rows: ``[n]`` integers in ``[0, num_docs)``, repeats allowed.

    Returns:
      ``n`` documents of the same kind.

    Raises:
      ValueError: for a row out of range, or rows that are not integers (a mask, say).

    Example:
      >>> take(Vectors(jnp.array([[1.0], [2.0], [3.0]])), [2, 0]).dense.tolist()
      [[3.0], [1.0]]
    """
    if isinstance(documents, Terms):
        return terms_room.take(documents, rows)
    vectors = documents
    rows = terms_room.checked_rows(rows, vectors.num_docs)
    dense = None if vectors.dense is None else vectors.dense[rows]
    return Vectors(dense, None if vectors.sparse is None else terms_room.take(vectors.sparse, rows))


def nonzero(vectors: Vectors) -> np.ndarray:
    """Which documents have any weight: all but empty documents, and those without known words.

    Args:
      vectors: `Vectors`.

    Returns:
      ``[num_docs]`` of bool.

    Example:
      >>> nonzero(Vectors(jnp.array([[0.0, 0.0], [0.0, 2.0]]))).tolist()
      [False, True]
    """
    found = np.zeros(vectors.num_docs, bool)
    if vectors.dense is not None:
        found |= np.any(np.asarray(vectors.dense) != 0, axis=1)
    if vectors.sparse is not None:
        rows = terms_room.to_scipy(vectors.sparse)
        found |= np.asarray(abs(rows).sum(axis=1)).ravel() > 0
    return found


def _floating(array, argument: str) -> jax.Array:
    array = jnp.asarray(array)
    if not jnp.issubdtype(array.dtype, jnp.floating):
        checks.expect(jnp.issubdtype(array.dtype, jnp.integer), argument, "real numbers", array.dtype)
        array = array.astype(jnp.result_type(float))
    return array


def _pair(a, b) -> tuple[jax.Array, jax.Array]:
    a, b = _floating(a, "a"), _floating(b, "b")
    checks.expect(a.ndim >= 1 and b.ndim >= 1, "a, b", "at least one axis", f"{a.ndim} and {b.ndim} axes")
    checks.expect(a.shape[-1] == b.shape[-1], "b", f"last axis {a.shape[-1]} (as a)", b.shape[-1])
    return a, b


def unit(a) -> jax.Array:
    r"""Scales vectors to length one along the last axis: :math:`a / \|a\|`.

    Args:
      a: ``[..., k]`` floating.

    Returns:
      ``[..., k]``; a zero vector stays zero, with zero gradient.

    Example:
      >>> [round(x, 4) for x in unit(jnp.array([3.0, 4.0])).tolist()]
      [0.6, 0.8]
    """
    a = _floating(a, "a")
    scale = jnp.max(jnp.abs(a), axis=-1, keepdims=True, initial=0.0)
    # Numbers below the smallest normal one may count as zero in a quotient and not in a comparison.
    scale = jax.lax.stop_gradient(jnp.where(scale >= jnp.finfo(a.dtype).tiny, scale, 1))
    a = a / scale
    square = jnp.sum(a * a, axis=-1, keepdims=True)
    some = square != 0  # NaN stays NaN, so that whoever looks at a loss sees it
    return jnp.where(some, a / jnp.sqrt(jnp.where(some, square, 1)), 0)


def activated(dense: jax.Array, activation: Callable | None) -> jax.Array:
    """A function of concept vectors that leaves zeros at zero: no document without known terms is like another.

    Args:
      dense: ``[n, k]`` floating.
      activation: elementwise function of the outputs, such as ``jnp.tanh``; None for the identity.

    Returns:
      ``[n, k]``; a row of zeros is a row of zeros, also where ``activation(0)`` is not 0 (a sigmoid's is ½).

    Example:
      >>> activated(jnp.array([[0.0, 9.0], [0.0, 0.0]]), jax.nn.sigmoid).round(2).tolist()
      [[0.5, 1.0], [0.0, 0.0]]
    """
    if activation is None:
        return dense
    return jnp.where(jnp.any(dense != 0, axis=-1, keepdims=True), activation(dense), jnp.zeros((), dense.dtype))


def dot(a, b) -> jax.Array:
    """Inner product along the last axis.

    Args:
      a: ``[..., k]`` floating.
      b: ``[..., k]`` floating, broadcast against ``a``.

    Returns:
      ``[...]``.

    Raises:
      ValueError: if the last axes differ.

    Example:
      >>> float(dot(jnp.array([1.0, 2.0]), jnp.array([3.0, 4.0])))
      11.0
    """
    a, b = _pair(a, b)
    return jnp.sum(a * b, axis=-1)


def cosine(a, b) -> jax.Array:
    r"""Cosine along the last axis, the similarity of 000 §3.2.

    .. math:: \cos(a, b) = a^\top b / (\|a\| \|b\|)

    Args:
      a: ``[..., k]`` floating.
      b: ``[..., k]`` floating, broadcast against ``a``.

    Returns:
      ``[...]`` in [-1, 1]; 0, with gradient exactly 0 in both arguments, where either vector is zero.

    Raises:
      ValueError: if the last axes differ.

    Example:
      >>> round(float(cosine(jnp.array([1.0, 0.0]), jnp.array([1.0, 1.0]))), 4)
      0.7071

    Relations: `dot` of `unit` vectors, clipped against rounding.
    """
    a, b = _pair(a, b)
    both = jnp.any(a != 0, axis=-1) & jnp.any(b != 0, axis=-1)
    value = jnp.sum(unit(a) * unit(b), axis=-1)
    # The clip only removes rounding: straight through, or the gradient would halve at ties with the bound.
    value = value + jax.lax.stop_gradient(jnp.clip(value, -1, 1) - value)
    return jnp.where(both, value, 0)


def l1(a, b) -> jax.Array:
    """L1 distance along the last axis, as 002 §3.2 compares topic vectors.

    Args:
      a: ``[..., k]`` floating.
      b: ``[..., k]`` floating, broadcast against ``a``.

    Returns:
      ``[...]``, at least 0.

    Raises:
      ValueError: if the last axes differ.

    Example:
      >>> float(l1(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0])))
      2.0
    """
    a, b = _pair(a, b)
    return jnp.sum(jnp.abs(a - b), axis=-1)


def jensen_shannon(a, b) -> jax.Array:
    r"""Jensen–Shannon divergence in nats, as 000 §4.1.1 compares topic vectors.

    .. math:: \tfrac12 KL(a \| m) + \tfrac12 KL(b \| m), \quad m = (a + b)/2

    Args:
      a: ``[..., k]`` floating, a distribution along the last axis.
      b: ``[..., k]`` floating, a distribution, broadcast against ``a``.

    Returns:
      ``[...]`` in [0, log 2]; zero probabilities add nothing and have a finite gradient.

    Raises:
      ValueError: if the last axes differ.

    Example:
      >>> round(float(jensen_shannon(jnp.array([1.0, 0.0]), jnp.array([0.0, 1.0]))), 4)
      0.6931
    """
    a, b = _pair(a, b)
    middle, apart = (a + b) / 2, (a - b) / 2
    near = jnp.abs(apart) < _NEAR * middle

    def relative(p):
        some = p > 0
        ratio = jnp.where(some, p, 1) / jnp.where(some, middle, 1)
        return jnp.where(some, p * jnp.log(ratio), 0)

    # Of nearly equal shares both terms are large beside their sum, m (t² / 2 + t⁴ / 12 + t⁶ / 30 + …).
    share = jnp.where(near, apart / jnp.where(near, middle, 1), 0) ** 2
    series = middle * share * (1 / 2 + share * (1 / 12 + share / 30))
    return jnp.sum(jnp.where(near, series, (relative(a) + relative(b)) / 2), axis=-1)
