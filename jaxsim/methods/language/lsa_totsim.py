r"""Total similarity of a choice with the words of its sentence in a space of LSA (completion §4.1).

The sentences that hold an option are documents, with weights tf · log(n / df). With W ≈ U S Vᵀ a word is a row of US
or of U, and

.. math:: totsim(a, S) = \sum_{w \in S} \cos(a, w)

A choice of several words, or for several blanks, is the sum of theirs. The words' space comes from the small matrix
WWᵀ; the large one is never decomposed.

Differs from the paper: the paper takes rows of US; rows of U, in which frequent directions do not outweigh others, are
the better choice here, so both are rows of the table.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, linalg
from jaxsim.data.corpora.questions import Filled
from jaxsim.methods.language import documents
from jaxsim.methods.language.documents import Documents, Terms
from jaxsim.optim import Fit, closed_form

__all__ = ["VERSION", "WordVectors", "fit", "gram", "inputs", "scores"]

VERSION = 1
_ROWS = 1 << 18
_LEAST = 1e-3  # of the largest singular value, the root of 8 roundings of float32; below, only rounding


class WordVectors(NamedTuple):
    """Vectors of the questions' words.

    Attributes:
      terms: which words.
      vectors: ``[num_words, k]`` float32, rows of US or of U; zero for a word that no document has. A direction that
        the words do not span is a column of zeros.
      singular: ``[k]`` float32, descending singular values, S.
      scaled: whether the vectors are rows of US.
    """

    terms: Terms
    vectors: np.ndarray
    singular: np.ndarray
    scaled: bool

    def cut(self, k: int, *, scaled: bool) -> WordVectors:
        """The same space with fewer dimensions, as rows of US or of U."""
        checks.between(k, "k", len(self.singular), "dimensions that were computed")
        spanned = _spanned(self.singular)
        safe = np.where(spanned, self.singular, 1)
        factor = np.ones_like(safe) if scaled == self.scaled else safe if scaled else spanned / safe
        return WordVectors(self.terms, (self.vectors * factor)[:, :k], self.singular[:k], scaled)


def _spanned(singular: np.ndarray) -> np.ndarray:
    """Which directions the words span: the others are any directions of the null space, at full weight in rows of U."""
    return singular > _LEAST * singular.max(initial=0)


def gram(found: Documents) -> np.ndarray:
    """Inner products of the words' rows, ``[num_words, num_words]`` float32, with weights tf · log(n / df)."""
    size = len(found.terms.words)
    idf = found.idf()[:size].astype(np.float32)
    total = np.zeros((size, size), np.float32)
    for begin in range(0, found.counts.shape[0], _ROWS):
        rows = found.counts[begin : begin + _ROWS, :size]
        total += (rows.T @ rows).toarray()
    return total * idf[:, None] * idf


def fit(
    found: Documents, *, k: int = 300, scaled: bool = True, key: jax.Array, products: np.ndarray | None = None
) -> Fit:
    """Word vectors from the leading k singular vectors.

    Args:
      found: the sentences with an option.
      k: dimensions.
      scaled: rows of US, as in the paper; rows of U otherwise.
      key: PRNG key of the eigensolver's start.
      products: what `gram` gives, where it is there already.

    Returns:
      `Fit` of `WordVectors`, a closed form.

    Raises:
      ValueError: k below 1 or above the number of words.
    """
    size = len(found.terms.words)
    checks.between(k, "k", size, "words of the questions")
    products = jnp.asarray(gram(found) if products is None else products)
    # Wide blocks and a small basis: the last vectors need not be exact, and this takes a third of the time.
    values, vectors = linalg.top_eigh(lambda x: linalg.precise(jnp.matmul)(products, x), size, k, key=key,
                                      basis_factor=2.0, block_size=min(128, k))  # fmt: skip
    singular = np.sqrt(np.maximum(np.asarray(values, np.float32), 0))
    known = np.asarray(jnp.diagonal(products)) > 0
    kept = known[:, None] & _spanned(singular)
    whole = WordVectors(found.terms, np.asarray(vectors, np.float32) * kept, singular, False)
    return closed_form(whole.cut(k, scaled=scaled))


def scores(params: WordVectors, filled: Filled) -> np.ndarray:
    """Total similarity of each choice.

    Args:
      params: the word vectors.
      filled: the questions with every choice filled in.

    Returns:
      ``[num_questions, num_choices]`` float64; a word without vector adds 0.
    """
    return inputs(params, filled)[..., 0]


def inputs(params: WordVectors, filled: Filled) -> np.ndarray:
    """The three inputs of the combination (completion §5.5).

    Args:
      params: the word vectors.
      filled: the questions with every choice filled in.

    Returns:
      ``[num_questions, num_choices, 3]`` float64: total similarity, cosine of the sums of vectors of the choice and of
      the rest, and how many words of the choice have no vector.
    """
    vectors = params.vectors.astype(np.float64)
    units = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-30)
    shape = filled.tokens.shape[:2]
    chosen, rest = (documents.count(filled, params.terms, chosen=which) for which in (True, False))
    total = np.einsum("rk,rk->r", chosen @ units, rest @ units)
    left, right = chosen @ vectors, rest @ vectors
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    cosine = np.where(norms > 0, np.einsum("rk,rk->r", left, right) / np.where(norms > 0, norms, 1), 0)
    known = (np.abs(vectors).sum(axis=1) > 0).astype(float)
    missing = filled.chosen.sum(axis=-1).ravel() - chosen @ known
    return np.stack([total, cosine, missing], axis=1).reshape(*shape, 3)
