r"""Polarity Inducing LSA (Yih, Zweig and Platt 2012, §4): truncated SVD of the signed entries of a thesaurus.

.. math:: W \approx U S V^\top, \qquad \text{word vectors} = V S = W^\top U.

A word's vector is the projection of its column of ``W`` by ``U`` (§3), so that the parameters are a `Projection` over
entries, and `s2net_antonym` can start from them. Cosines of words are near 1 for synonyms, near -1 for opposites.
"""

from __future__ import annotations

import jax

from jaxsim import checks, linalg
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms

VERSION = 2


def fit(words: Terms, *, k: int, iterations: int = 4) -> Fit:
    """Projects words on the ``k`` leading left singular vectors of the signed entries.

    Args:
      words: `Signed.terms`, ``[num_words, num_entries]``; unsigned entries give the LSA of a thesaurus (§3.1).
      k: dimension, at most ``min(num_words, num_entries)``.
      iterations: of the randomised SVD. Four leave 1e-5 of the energy of the leading dimensions. More change few
        cosines: those of words that have no part in these dimensions, whose vectors are what rounding leaves.

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
