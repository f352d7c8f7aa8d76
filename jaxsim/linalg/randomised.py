"""Truncated SVD by randomised subspace iteration (Halko, Martinsson and Tropp 2011), in one block of fixed width.

It needs two blocks of columns where the Krylov basis of `eigen.truncated_svd` needs several times as many, and its
products are wide: for hundreds of dimensions of a large matrix whose singular values fall slowly, it is the cheaper.
The last dimensions are approximate, unless one side of the matrix is small.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp

from jaxsim import checks, sparse
from jaxsim.linalg.eigen import fix_signs, moderate, precise, times_power
from jaxsim.sparse import Terms
from jaxsim.sparse.compilation import seldom

_SMALL = 256  # columns of a block that spans all of a side, and costs next to nothing


@precise
def randomised_svd(
    documents: Terms, k: int, *, key: jax.Array, iterations: int = 4, oversampling: float = 0.1
) -> tuple[jax.Array, jax.Array]:
    """Truncated singular value decomposition of sparse documents, ``D ≈ U Σ Vᵀ``.

    Args:
      documents: `Terms`, ``[num_docs, num_terms]``.
      k: number of singular triples, at most ``min(num_docs, num_terms)``.
      key: PRNG key of the random start.
      iterations: products with ``D Dᵀ`` beyond the first; more is more accurate.
      oversampling: columns beyond ``k``, as a share of it; at least 10. Where documents or terms are at most 256, the
        block has all of them, and the result is exact but for rounding.

    Returns:
      ``(singular_values, right)``: ``[k]`` descending and ``[num_terms, k]``; beyond the numerical rank both are 0.

    Raises:
      ValueError: if ``k`` is out of range, or ``iterations`` negative.

    Example:
      >>> import scipy.sparse
      >>> documents = sparse.from_scipy(scipy.sparse.csr_matrix([[3.0, 0.0], [0.0, 2.0]]))
      >>> values, right = randomised_svd(documents, 2, key=jax.random.key(0))
      >>> [round(float(v), 4) for v in values]
      [3.0, 2.0]
    """
    checks.random_key(key)
    sizes = documents.num_docs, documents.num_terms
    checks.between(k, "k", min(sizes), "the largest possible rank")
    checks.whole(iterations, "iterations", 0)
    checks.expect(oversampling >= 0, "oversampling", "a number of at least 0", oversampling)
    width = min(sizes) if min(sizes) <= _SMALL else min(*sizes, k + max(10, int(oversampling * k)))
    of_terms = sizes[1] < sizes[0]  # the basis is of the shorter side, where its products cost less
    start = jax.random.normal(key, (max(sizes), width), documents.values.dtype)
    documents, scale = moderate(documents)
    (documents,) = sparse.held(documents)
    block = _basis(documents, start, of_terms, first=True, passes=2)
    for left in reversed(range(iterations)):
        block = _basis(documents, block, of_terms, passes=1 if left else 2)  # on the way, independent columns will do
    values, right = _triples(documents, block, k, of_terms)
    return values if scale == 1 else times_power(values, scale), right


def _images(documents, block, of_terms):
    """From documents to terms, or from terms to documents."""
    return sparse.project_transpose(documents, block) if of_terms else sparse.project(documents, block)


@seldom(static_argnames=("of_terms", "first", "passes"))
def _basis(documents, block, of_terms, first=False, passes=2):
    """A basis of the images, orthonormal after two passes: of a start of the longer side, or of ``D Dᵀ`` of a basis."""
    source = block if first else _images(documents, block, not of_terms)
    return _orthonormal(_images(documents, source, of_terms), passes)


def _orthonormal(block, passes):
    """Through the Gram matrix, which needs only products of tall matrices.

    The result's columns are the block's singular vectors. Images of such a basis differ in length, by the squares of
    singular values, but are nearly orthogonal: scaled to one length first, they have a Gram matrix near the identity.
    """
    eps = jnp.finfo(block.dtype).eps
    for _ in range(passes):  # one takes a condition number of thousands; the last removes what rounding left
        norms = jnp.linalg.norm(block, axis=0)
        used = norms > eps * jnp.max(norms)
        scale = jnp.where(used, 1 / jnp.where(used, norms, 1), 0)
        values, rotation = jnp.linalg.eigh((block.T @ block) * scale[:, None] * scale[None, :])
        # Small ones are raised and not dropped: what rounding hides in one pass, the next one scales up.
        floor = jnp.maximum(10 * eps * values[-1], jnp.finfo(block.dtype).tiny)
        block = block @ (scale[:, None] * rotation * jnp.maximum(values, floor)[None, :] ** -0.5)
    return block


@seldom(static_argnames=("k", "of_terms"))
def _triples(documents, basis, k, of_terms):
    """The Rayleigh-Ritz step in a basis of terms or of documents."""
    images = _images(documents, basis, not of_terms)
    squares, rotation = jnp.linalg.eigh(images.T @ images)
    squares, rotation = squares[::-1][:k], rotation[:, ::-1][:, :k]
    # Not times the size of the documents: of a hundred thousand words that would drop dimensions that count.
    kept = squares > 10 * jnp.finfo(squares.dtype).eps * jnp.maximum(squares[0], 0)
    values = jnp.where(kept, jnp.sqrt(jnp.where(kept, squares, 1)), 0)
    if of_terms:
        right = basis @ (rotation * kept[None, :])
    else:
        right = images @ (rotation * jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)[None, :])
    return values, fix_signs(right)
