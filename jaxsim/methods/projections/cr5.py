r"""Cr5: documents of several languages embedded by reduced-rank ridge regression (Josifoski et al., arXiv 1904.03922).

All texts about the same thing, in any language, form a concept. A linear classifier of rank ``k`` predicts the concept
of a text from its bag of words, in any language. Because of the low rank, languages must share their dimensions. With
``Z`` the block-diagonal matrix of all documents (one block per language), ``Y`` the indicator matrix of their concepts
and ``C`` the centring matrix, the classifier solves (equation numbers are this module's, not the paper's)

.. math:: \min_{b,\, \mathrm{rank}\, W \le k} \|Y - 1 b^\top - Z W\|_F^2 + \lambda \|W\|_F^2. \qquad (1)

The best ``b`` centres documents and concepts. Without the constraint on the rank, ridge regression solves it,

.. math:: W_0 = B^{-1} Z^\top C Y, \qquad B = Z^\top C Z + \lambda I, \qquad (2)

and (1) is, up to a constant, the squared distance of ``W`` from ``W_0`` in the norm of ``B``. The nearest matrix of
rank ``k`` is

.. math:: W = W_0 P P^\top, \qquad P = \text{the leading eigenvectors of } Y^\top C Z B^{-1} Z^\top C Y. \qquad (3)

Its left factor is the embedding of words, a block of rows a language:

.. math:: W_0 P = U \Sigma R^\top, \qquad A = U \Sigma^p. \qquad (4)
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, linalg, sparse
from jaxsim.linalg.covariance import Factor, Ridge
from jaxsim.methods import statistics
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""

_TOLERANCE = 1e-4
"""Of the eigenvectors, whose values lie close together, just below the number of languages."""


class _Language:
    """The documents of one language over the terms it uses, and solves with ``Z_lᵀ Z_l + λ I``."""

    def __init__(self, documents: Terms, ridge: float):
        matrix = sparse.to_scipy(documents)
        matrix.eliminate_zeros()
        self.used, self.num_terms = np.unique(matrix.indices), documents.num_terms
        self.present = jnp.asarray(np.diff(matrix.indptr) > 0, documents.values.dtype)[:, None]
        self.factor = Factor(sparse.from_scipy(matrix[:, self.used]), centred=False, scale=1.0)
        self.ridge = Ridge(self.factor, ridge, argument="ridge")

    def full(self, x) -> Projection:
        return Projection(jnp.zeros((self.num_terms, x.shape[1]), x.dtype).at[self.used].set(x))


class _Regression:
    """``B⁻¹ Zᵀ C Y`` and ``Yᵀ C Z``, the blocks of languages kept apart."""

    def __init__(self, languages: Sequence[_Language]):
        self.languages = languages
        self.covered = sum(language.present for language in languages)  # languages that have a text of the concept
        self.num_docs = jnp.maximum(jnp.sum(self.covered), 1)
        # B is block-diagonal but for the mean: B = diag(Z_lᵀ Z_l + λ I) - s sᵀ / N, which Sherman and Morrison invert.
        # sᵀ N⁻¹ Zᵀ y is pᵀ y less pᵀ times the residual of y, p being 1 where a text is there; the sum of all pᵀ y is
        # N for p, and 0 for a centred y. So what a small λ leaves, the residual, is nowhere a difference.
        found = [language.ridge.regress(language.present) for language in languages]
        self.solved = [coefficients for coefficients, _ in found]
        self.rest = self._present([residual for _, residual in found])

    def _present(self, residuals) -> jax.Array:
        """Sums over the texts that are there, ``[1, b]``."""
        return sum(language.present.T @ x for language, x in zip(self.languages, residuals, strict=True))

    def weights(self, x: jax.Array) -> list[jax.Array]:
        """``W_0 x``, Eq. (2), of ``[num_concepts, b]``: a block of rows a language."""
        # Rows of documents that a language lacks are empty, so they need no mask.
        x = x - self.covered.T @ x / self.num_docs
        found = [language.ridge.regress(x) for language in self.languages]
        mean = self._present([residual for _, residual in found]) / self.rest
        return [block - solved * mean for (block, _), solved in zip(found, self.solved, strict=True)]

    def concepts(self, blocks: Sequence[jax.Array]) -> jax.Array:
        """``Yᵀ C Z w``, ``[num_concepts, b]``."""
        total = sum(language.factor.down(block) for language, block in zip(self.languages, blocks, strict=True))
        return total - self.covered * jnp.sum(total, axis=0, keepdims=True) / self.num_docs


@linalg.precise
def fit(views: Sequence[Terms], *, k: int, ridge: float = 1.0, singular_power: float = 0.0) -> Fit:
    r"""Projects each language by its rows of :math:`A = U \Sigma^p`, Eq. (4) of this module.

    Args:
      views: two or more `Terms`, ``[num_docs, num_terms]``, of weighted documents (tf·idf of length one in the paper).
        Row i of every view is about one concept; an empty row is a concept that the language does not cover.
        Vocabularies may be shared or not: each language learns rows of its own.
      k: target dimension, at most the number of documents of a view, and of terms used by all views together.
      ridge: ``λ``, positive, in squared units of the weights, relative to sums over documents (`cca.fit` has means:
        there it is ``λ / num_docs``). Choose it on held-out pairs.
      singular_power: ``p``. 0 gives all dimensions of ``U`` their own length, as the authors' embeddings do; at 1 inner
        products of documents are those of their predictions ``Wᵀ z``.

    Returns:
      `Fit` of a tuple of `Projection`, one a view, in descending order of singular value; columns beyond the numerical
      rank are 0. The first ``j`` dimensions are not the fit at ``k = j``.

    Raises:
      ValueError: if the views differ in documents, ``k`` is out of range, or ``ridge`` is not positive, or so large
        that the documents are lost beside it.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> english = from_scipy(scipy.sparse.csr_matrix(np.eye(3)))
      >>> french = from_scipy(scipy.sparse.csr_matrix(np.eye(3)[:, [1, 2, 0]]))
      >>> left, right = fit((english, french), k=2).params
      >>> bool(jnp.allclose(left.weights[0], right.weights[2], atol=1e-5))  # a word and its translation
      True

    Differs from the paper: up to 24,000 documents or terms a language, solves are by a Cholesky factor (of whichever
    are fewer) and not by conjugate gradients.

    Relations: as ``λ`` goes to 0 with two languages, ``P`` spans the sums of `cca`'s canonical variates, but for how
    documents are centred (here over all languages at once). `opca` has one matrix for all languages.
    """
    views = tuple(views) if isinstance(views, Sequence) else (views,)
    checks.expect(len(views) >= 2, "views", "at least two languages", len(views))
    n = statistics.checked_views(views, same_terms=False)[0].num_docs
    checks.expect(0 < ridge < np.inf, "ridge", "a positive number", ridge)
    statistics.expect_seen_beside(views, ridge, "ridge")
    languages = [_Language(view, ridge) for view in views]
    checks.between(k, "k", min(n, sum(language.used.size for language in languages)), "documents, or terms in use")
    regression = _Regression(languages)
    # Eq. (3). The start of a Krylov iteration is fixed: the eigenvectors do not depend on it.
    work = sum(each.ridge.work + each.ridge.solve_work for each in languages)
    _, leading = linalg.top_eigh(lambda x: regression.concepts(regression.weights(x)), n, k, key=jax.random.key(0),
                                 dtype=views[0].values.dtype, work=work, tolerance=_TOLERANCE)
    blocks = _embedding(jnp.concatenate(regression.weights(leading)), singular_power)  # Eq. (4)
    ends = np.cumsum([language.used.size for language in languages])
    return closed_form(tuple(language.full(block) for language, block in
                             zip(languages, jnp.split(blocks, ends[:-1]), strict=True)))


@jax.jit
@linalg.precise
def _embedding(weights, power):
    left, values, _ = jnp.linalg.svd(weights, full_matrices=False)
    kept = values > jnp.finfo(values.dtype).eps * max(weights.shape) * values[0]
    return linalg.fix_signs(jnp.where(kept[None, :], left * jnp.where(kept, values, 1)[None, :] ** power, 0))
