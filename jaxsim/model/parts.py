"""What `Model` is made of: parameters and what they make of weighted texts, their tensors in a folder, the card."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse, text
from jaxsim.methods import projections
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi.bilinear import Bilinear
from jaxsim.sparse import host
from jaxsim.sparse.precision import EVALUATION
from jaxsim.text.subwords import Subwords

Params = Projection | tuple[Projection, Projection] | tuple[Bilinear, Bilinear] | None
"""A projection, one a side, both sides of W = UᵀV + D (of V = U, the same weights twice), or bare term weights."""


def sides(params: Params) -> tuple[Projection, ...] | tuple[Bilinear, ...]:
    """The parameters of queries and of documents; one where they are the same, none of bare term weights.

    Args:
      params: of a model.

    Returns:
      A tuple of 0, 1 or 2.

    Example:
      >>> len(sides(None)), len(sides(Projection(jnp.ones((2, 1)))))
      (0, 1)
    """
    if params is None:
        return ()
    return (params,) if isinstance(params, Projection) else tuple(params)


def check(params: Params, num_terms: int, subwords: Subwords | None = None) -> None:
    """Refuses parameters that do not fit the vocabulary or each other.

    Args:
      params: of a model.
      num_terms: of its vocabulary.
      subwords: n-grams that have rows after those, of projections alone; or None.

    Raises:
      ValueError: naming ``params``.
    """
    if subwords is not None:
        checks.kind(subwords, "subwords", Subwords)
        plain = all(isinstance(side, Projection) for side in sides(params)) and params is not None
        checks.expect(plain, "subwords", "none, without a projection", f"{len(subwords)} n-grams")
        num_terms += len(subwords)
    for side in sides(params):
        whole = isinstance(side, Projection | Bilinear) and all(part is not None for part in side)
        expected = "None, a Projection, or a pair of Projection or of Bilinear with weights and scale"
        checks.expect(whole, "params", expected, type(side).__name__)
        shape = tuple(side.weights.shape)
        fits = len(shape) == 2 and shape[0] == num_terms
        checks.expect(fits, "params", f"weights of {num_terms} terms (as vocabulary)", shape)
        if isinstance(side, Bilinear):
            shape = tuple(side.scale.shape)
            checks.expect(shape == (num_terms,), "params", f"a scale of {num_terms} terms (as vocabulary)", shape)
    kinds = [type(side).__name__ for side in sides(params)]
    fits = len(set(kinds)) < 2 and (len(kinds) == 2 or kinds in ([], ["Projection"]))
    checks.expect(fits, "params", "one Projection, or two sides of one kind", " and ".join(kinds))


def symmetric(params: Params) -> bool:
    """Whether queries and documents have one W = UᵀU + D.

    Args:
      params: of a model.

    Returns:
      False for projections and bare term weights too.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> [symmetric(bilinear.sides(one, other, jnp.ones(2))) for other in (one, 2 * one)]
      [True, False]
    """
    both = sides(params)
    if not both or not isinstance(both[0], Bilinear):
        return False
    left, right = (side.weights for side in both)
    return left is right or bool(jnp.array_equal(left, right))


def has_diagonal(params: Params) -> bool:
    """Whether W = UᵀV + D has a D that is not zero, so that a score needs the words.

    Args:
      params: of a model.

    Returns:
      False for projections and bare term weights too.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> [has_diagonal(bilinear.sides(one, one, jnp.full(2, b))) for b in (0.0, 3.0)]
      [False, True]
    """
    both = sides(params)
    return bool(both) and isinstance(both[0], Bilinear) and bool(np.any(np.asarray(both[0].scale)))


def formula(params: Params) -> str:
    """What W is, for messages about such a model.

    Args:
      params: of a model.

    Returns:
      A formula.

    Example:
      >>> one = jnp.ones((2, 1))
      >>> formula(bilinear.sides(one, one, jnp.ones(2)))
      'W = UᵀU + b·I'
    """
    return f"W = {'UᵀU' if symmetric(params) else 'UᵀV'} + b·I"


def rows_seen(params: Bilinear, rows: sp.csr_matrix, strongest: int | None) -> tuple[sp.csr_matrix, sp.csr_matrix]:
    """Weighted texts as the two parts of W see them, which takes them at unit length.

    Args:
      params: one side.
      rows: ``[n, num_terms]`` weighted texts.
      strongest: terms of a text that the low-rank part sees at most; None for all.

    Returns:
      ``(low rank, sparse)``, each ``[n, num_terms]``: the strongest terms, to be projected, and all of them times their
      scale, as they stand in `Vectors`.

    Example:
      >>> query, document = bilinear.sides(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.full(2, 10.0))
      >>> [part.toarray().round(1).tolist() for part in rows_seen(query, sp.csr_matrix([[3.0, 4.0]]), 1)]
      [[[0.0, 1.0]], [[6.0, 8.0]]]
    """
    rows = text.unit_rows(rows)
    few = rows
    if strongest is not None and rows.shape[0] and np.diff(rows.indptr).max() > strongest:
        few = sparse.to_scipy(bilinear.strongest(sparse.from_scipy(rows), strongest))
    scale = sp.diags_array(np.asarray(params.scale, rows.dtype))
    return few, sp.csr_matrix(rows @ scale)


def project(weights: jax.Array, rows: sp.csr_matrix, activation: Callable | None = None) -> np.ndarray:
    """Weighted texts through a projection, by `sparse.host` where that is to be had, else on the device.

    Args:
      weights: ``[num_terms, k]``.
      rows: ``[n, num_terms]`` weighted texts.
      activation: elementwise function of the result, or None.

    Returns:
      ``[n, k]``.

    Example:
      >>> project(jnp.ones((2, 1)), sp.csr_matrix([[3.0, 4.0]])).tolist()
      [[7.0]]
    """
    if host.compiled() is not None:
        dense = host.rows_product(rows, np.asarray(weights))
        return dense if activation is None else np.asarray(activation(dense))
    # Sizes go up in powers of two, so that few programs are compiled for batches of any length.
    documents = sparse.from_scipy(rows, pad_docs=_power_of_two(rows.shape[0]), pad_nnz=_power_of_two(rows.nnz))
    with jax.default_matmul_precision(EVALUATION):
        dense = _project(Projection(weights), documents)
        found = dense if activation is None else activation(dense)
    return np.asarray(found)[: rows.shape[0]]


def _power_of_two(size: int) -> int:
    return 1 << max(size - 1, 0).bit_length()


@jax.jit
def _project(params: Projection, documents: sparse.Terms) -> jax.Array:
    return projections.encode(params, documents).dense


def inner(left: tuple, right: tuple) -> np.ndarray:
    """Inner products of the rows of two collections, row by row, in float64.

    Args:
      left: ``(dense, sparse)``, arrays of ``n`` rows; either may be None.
      right: the same parts.

    Returns:
      ``[n]``.

    Example:
      >>> inner((np.ones((1, 2)), sp.csr_matrix([[3.0]])), (np.ones((1, 2)), sp.csr_matrix([[2.0]]))).tolist()
      [8.0]
    """
    found = 0.0
    for one, other in zip(left, right, strict=True):
        if one is not None:
            one, other = one.astype(np.float64), other.astype(np.float64)
            both = one.multiply(other) if sp.issparse(one) else one * other
            found = found + np.asarray(both.sum(axis=1)).ravel()
    return found


def to_tensors(params: Params) -> dict[str, np.ndarray]:
    """Arrays by name, for a folder.

    Args:
      params: of a model.

    Returns:
      ``weights``; or ``query_weights`` and ``document_weights`` (``both_weights`` of W = UᵀU + D), for W also
      ``query_scale`` and ``document_scale``; nothing for bare term weights.

    Example:
      >>> sorted(to_tensors(bilinear.sides(jnp.ones((2, 1)), jnp.zeros((2, 1)), jnp.ones(2))))
      ['document_scale', 'document_weights', 'query_scale', 'query_weights']
      >>> sorted(to_tensors(bilinear.sides(jnp.ones((2, 1)), jnp.ones((2, 1)), jnp.ones(2))))
      ['both_weights', 'document_scale', 'query_scale']
    """
    found = sides(params)
    prefixes = ("",) if len(found) == 1 else ("query_", "document_")
    named = {f"{prefix}{name}": np.asarray(array) for prefix, side in zip(prefixes, found, strict=False)
             for name, array in side._asdict().items()}  # fmt: skip
    if symmetric(params):  # kept once
        named["both_weights"] = named.pop("query_weights")
        del named["document_weights"]
    return named


def from_tensors(tensors: Mapping[str, np.ndarray]) -> Params:
    """What `to_tensors` was given.

    Args:
      tensors: of a folder; others are ignored.

    Returns:
      Parameters, bit for bit.

    Raises:
      KeyError: if one side is there and the other is not.

    Example:
      >>> from_tensors({"weights": np.ones((2, 1))}).weights.shape
      (2, 1)
    """
    if "weights" in tensors:
        return Projection(jnp.asarray(tensors["weights"]))
    if "both_weights" in tensors:
        both = jnp.asarray(tensors["both_weights"])
        tensors = {**tensors, "query_weights": both, "document_weights": both}
    names = [name for name in ("weights", "scale") if f"query_{name}" in tensors or f"document_{name}" in tensors]
    if not names:
        return None
    kind = Bilinear if "scale" in names else Projection
    fields = kind._fields
    return tuple(kind(*(jnp.asarray(tensors[f"{side}_{name}"]) for name in fields)) for side in ("query", "document"))


def card(model: Any) -> str:
    """The model card: what it is, what it was trained on, how to use it.

    Args:
      model: a `Model`.

    Returns:
      Markdown.
    """
    shown = {name: value for name, value in model.training.items() if name != "history"}  # as long as the training
    told = "\n".join(f"- {name}: {_words(value)}" for name, value in shown.items()) or "- not recorded"
    call = 'model.encode(["a text", "another"])'
    if model.two_sided:
        call = 'model.encode_query(["a text"])  # and encode_document for the other side'
    score = "cosine similarity"
    if model.bilinear:
        call = 'model.search(["a text"], model.vectors(["another", "a third"]), k=1)'
        low = "U'U" if symmetric(model.params) else "U'V"
        score = f"a score is the inner product q'({low} + D)d of texts of unit length"
        score += f", of which {low} sees the {model.strongest} strongest terms" if model.strongest else ""
        score += ", and orders the documents of one query"
    if model.params is None:
        call = 'model.vectors(["a text", "another"])'
    unseen = "ignored"
    if model.subwords is not None:
        unseen = f"made of {checks.counted(len(model.subwords), 'n-gram')} of letters"
    shape = "term weights" if model.params is None else checks.counted(model.dim, "dimension")
    return (
        f"# Text similarity model ({model.method}, {shape})\n\n"
        f"{checks.counted(len(model.vocabulary), 'term')}, weighted by {model.weighting}; {score}. "
        f"Languages: {model.languages[0]} (queries), {model.languages[1]} (documents). Words outside its "
        f"vocabulary are {unseen}; a text without known words has the zero vector and similarity 0.\n\n"
        f"```python\nfrom jaxsim import Model\n\nmodel = Model.load(\"path/to/this/folder\")\n{call}\n"
        'model.similarity("a text", "another")\n```\n\n'
        f"## Training\n\n{told}\n"
    )


def _words(value: Any) -> str:
    """A value for people: of a mapping, what was given."""
    if isinstance(value, list):
        return "; ".join(map(_words, value)) or "none"
    if not isinstance(value, Mapping):
        return str(float(f"{value:.6g}") if isinstance(value, float) else value)
    return ", ".join(f"{name} {_words(one)}" for name, one in value.items() if one is not None) or "none"
