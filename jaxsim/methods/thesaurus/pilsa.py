r"""Polarity Inducing LSA (Yih, Zweig and Platt 2012, §4): truncated SVD of the signed entries of a thesaurus.

.. math:: W \approx U S V^\top, \qquad \text{word vectors} = V S = W^\top U.

A word's vector is the projection of its column of ``W`` by ``U`` (§3), so that the parameters are a `Projection` over
entries, and `s2net_antonym` can start from them. Cosines of words are near 1 for synonyms, near -1 for opposites.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

from jaxsim import checks, linalg, sparse
from jaxsim.methods.projections.projection import Projection, encode
from jaxsim.methods.thesaurus.signed import Signed
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms

VERSION = 2
_TIE = 1e-3  # of the square of a singular value: what a search that ends early may miss
_POWER = 100


def fit(words: Terms, *, k: int, iterations: int = 4) -> Fit:
    """Projects words on the ``k`` leading left singular vectors of the signed entries.

    Args:
      words: `Signed.terms`, ``[num_words, num_entries]``; unsigned entries give the LSA of a thesaurus (§3.1).
      k: dimension, at most ``min(num_words, num_entries)``.
      iterations: of the randomised SVD; more make the last dimensions more accurate, where there are more than 256 of
        both words and entries. Words that share no entry, by however many steps, with those of the leading dimensions
        have no part in these: their vectors are what rounding leaves (see `without_rest`).

    Returns:
      `Fit` of `Projection`, ``[num_entries, k]``; the first ``j`` columns are the fit at ``k = j``. ``encode`` of
      ``words`` gives the word vectors ``V S``.

    Raises:
      ValueError: if ``k`` is out of range.

    Example:
      >>> from jaxsim.data.corpora import thesauri
      >>> from jaxsim.methods.projections import encode
      >>> from jaxsim.methods.thesaurus.signed import documents
      >>> from jaxsim.sparse import cosine
      >>> mine = thesauri.thesaurus("mine", [("hot", ["warm"], ["cold", "icy"]), ("cold", ["icy"], ["hot", "warm"]),
      ...                                    ("big", ["large"], ["small"])])
      >>> words = documents([mine]).terms()
      >>> vectors = encode(fit(words, k=2).params, words).dense
      >>> round(float(cosine(vectors[0], vectors[1])), 3), round(float(cosine(vectors[0], vectors[2])), 3)
      (1.0, -1.0)

    Relations: `lsa` on the transpose. `s2net_antonym` goes on from it.
    """
    checks.kind(words, "words", Terms)
    # The random start is fixed: the singular vectors hardly depend on it.
    _, right = linalg.randomised_svd(words, k, key=jax.random.key(0), iterations=iterations)
    return closed_form(Projection(right))


def without_rest(params: Projection, entries: Signed) -> Projection:
    """The projection, 0 for entries that have no part in its dimensions.

    Entries that share no word, by however many steps, with those of the leading dimensions have none, as all their
    singular values are smaller. What rounding,
    and a search that ends after some iterations, leave there is a random projection of a word's signed vector: its
    cosines are those of signed TFIDF with errors of about one over the root of ``k``. With this, such words have the
    zero vector, here and after `s2net_antonym`.

    Args:
      params: of `fit`.
      entries: that it was fitted on.

    Returns:
      `Projection`, ``[num_entries, k]``.

    Example:
      >>> from jaxsim.data.corpora import thesauri
      >>> from jaxsim.methods.thesaurus.signed import documents
      >>> mine = thesauri.thesaurus("mine", [("hot", ["warm"], ["cold", "icy"]), ("big", ["large"], [])])
      >>> entries = documents([mine])
      >>> words = entries.terms()
      >>> vectors = encode(without_rest(fit(words, k=1).params, entries), words).dense
      >>> dict(zip(entries.words, np.any(vectors, axis=1).tolist()))
      {'hot': True, 'warm': True, 'cold': True, 'icy': True, 'big': False, 'large': False}
    """
    number = entries.tf.shape[0]
    _, group = csgraph.connected_components(sp.block_array([[None, entries.tf], [entries.tf.T, None]]), directed=False)
    squares = np.square(np.asarray(encode(params, entries.terms()).dense, np.float64))
    # A group that has a part in the dimensions has one of their singular values at least, and the others have nearly 0.
    part = np.bincount(group[number:], weights=squares.sum(axis=1), minlength=group.max() + 1)
    last = squares.sum(axis=0).min()
    # Of groups whose largest values are all that of the last dimension, each has a share of it, however small.
    kept = (part > last / 2) | (_largest_squares(entries, group) >= (1 - _TIE) * last)
    return Projection(jnp.where(kept[group[:number], None], params.weights, 0))


def _largest_squares(entries: Signed, group: np.ndarray) -> np.ndarray:
    """The square of the largest singular value of every group of entries and words, by the power method for all."""
    words = sparse.to_scipy(entries.terms()).astype(np.float64)
    of_words, of_entries = group[words.shape[1] :], group[: words.shape[1]]
    vector, squares = np.random.default_rng(0).normal(size=words.shape[1]), np.zeros(group.max() + 1)
    for _ in range(_POWER):
        lengths = np.sqrt(np.bincount(of_entries, weights=vector**2, minlength=squares.size))[of_entries]
        image = words @ np.divide(vector, lengths, out=np.zeros_like(vector), where=lengths > 0)
        squares = np.bincount(of_words, weights=image**2, minlength=squares.size)
        vector = words.T @ image
    return squares
