"""Distortion discriminant analysis: OPCA in two stages, for vocabularies too large for one eigenproblem (002 §4)."""

from __future__ import annotations

from collections.abc import Sequence

import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim import terms as terms_room
from jaxsim.methods import opca, statistics
from jaxsim.models.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.terms import Terms


def fit(views: Sequence[Terms], *, k: int, noise: float = 0.1, num_blocks: int = 4, block_k: int | None = None) -> Fit:
    r"""OPCA inside each block of the vocabulary, then OPCA of the blocks' outputs; the composition is one matrix.

    Args:
      views: two or more `Terms` of weighted documents, row i comparable in all of them, over shared vocabulary slots.
      k: target dimension, at most ``num_blocks * block_k``.
      noise: ``γ`` of the first stage, positive; the second stage's noise covariance is the identity plus what is left
        between blocks, and gets the same share of its trace.
      num_blocks: blocks of terms; term j belongs to block ``j mod num_blocks``.
      block_k: dimensions kept of each block; ``k`` (or the whole block, if that is smaller) unless given.

    Returns:
      `Fit` of `Projection`.

    Raises:
      ValueError: as `opca`, or for more blocks than terms.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.terms import from_scipy
      >>> view = from_scipy(scipy.sparse.csr_matrix(np.eye(4)))
      >>> fit((view, view), k=2, num_blocks=2).params.weights.shape
      (4, 2)

    Relations: `opca` with one block; cost falls from V³ to V³ / num_blocks².
    """
    views = statistics.checked_views(views)
    v = views[0].num_terms
    checks.expect(1 <= num_blocks <= v, "num_blocks", f"between 1 and {v} (terms)", num_blocks)
    checks.expect(block_k is None or block_k >= 1, "block_k", "at least 1, or None", block_k)
    matrices = [terms_room.to_scipy(view) for view in views]
    blocks = [np.arange(start, v, num_blocks) for start in range(num_blocks)]
    wanted = k if block_k is None else block_k
    stages, outputs = [], [[] for _ in views]
    for block in blocks:
        parts = [terms_room.from_scipy(matrix[:, block]) for matrix in matrices]
        stage = opca.fit(parts, k=min(wanted, block.size), noise=noise).params.weights
        stages.append(stage)
        for output, part in zip(outputs, parts, strict=True):
            output.append(np.asarray(terms_room.project(part, stage)))
    merged = [terms_room.from_scipy(scipy.sparse.csr_matrix(np.concatenate(output, axis=1))) for output in outputs]
    # The first stage made vᵀ N v = 1 in every block, noise included: in these units γ has become a number near 1.
    second = opca.fit(merged, k=k, noise=noise / (1 + noise)).params.weights
    weights = np.zeros((v, k), second.dtype)
    row = 0
    for block, stage in zip(blocks, stages, strict=True):
        weights[block] = np.asarray(stage @ second[row : row + stage.shape[1]])
        row += stage.shape[1]
    return closed_form(Projection(jnp.asarray(weights)))
