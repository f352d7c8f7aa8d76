"""Distortion discriminant analysis: OPCA in two stages, for vocabularies too large for one eigenproblem (002 §4)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, linalg, sparse
from jaxsim.methods import statistics
from jaxsim.methods.projections import opca
from jaxsim.methods.projections.projection import Projection
from jaxsim.optim import Fit, closed_form
from jaxsim.sparse import Terms

VERSION = 2
"""Eigenvectors are iterated until their residuals are small."""


@linalg.precise
def fit(views: Sequence[Terms], *, k: int, noise: float = 0.1, num_blocks: int = 4, block_k: int | None = None) -> Fit:
    r"""OPCA inside each block of the vocabulary, then OPCA of the blocks' outputs; the composition is one matrix.

    Args:
      views: two or more `Terms` of weighted documents, row i comparable in all of them, over shared vocabulary slots.
      k: target dimension, at most ``num_blocks * block_k``.
      noise: ``γ``, positive; the second stage sees the same ``γ I`` through the first stage's projections.
      num_blocks: blocks of terms; term j belongs to block ``j mod num_blocks``.
      block_k: dimensions kept of each block; ``k`` (or the whole block, if that is smaller) unless given.

    Returns:
      `Fit` of `Projection`.

    Raises:
      ValueError: as `opca`, or for more blocks than terms.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> view = from_scipy(scipy.sparse.csr_matrix(np.eye(4)))
      >>> fit((view, view), k=2, num_blocks=2).params.weights.shape
      (4, 2)

    Relations: `opca` with one block; cost falls from V³ to V³ / num_blocks².
    """
    views = statistics.checked_views(views)
    v = views[0].num_terms
    checks.between(num_blocks, "num_blocks", v, "terms")
    checks.positive_int(k, "k")
    if block_k is not None:
        checks.positive_int(block_k, "block_k")
    matrices = [sparse.to_scipy(view) for view in views]
    wanted = k if block_k is None else block_k
    blocks = [np.arange(start, v, num_blocks) for start in range(num_blocks)]
    room = sum(min(wanted, block.size) for block in blocks)
    checks.between(k, "k", room, "dimensions left by the first stage")
    stages, outputs = [], [[] for _ in views]
    for block in blocks:
        parts = [sparse.from_scipy(matrix[:, block]) for matrix in matrices]
        checked = statistics.checked_views(parts)
        statistics.expect_seen_beside(checked, noise, "noise")
        stages.append(opca.directions(checked, k=min(wanted, block.size), noise=noise))
        for output, part in zip(outputs, parts, strict=True):
            output.append(sparse.project(part, stages[-1]))
    second = _second_stage([jnp.concatenate(output, axis=1) for output in outputs], stages, k=k, noise=noise)
    weights = jnp.zeros((v, k), second.dtype)
    row = 0
    for block, stage in zip(blocks, stages, strict=True):
        weights = weights.at[block].set(stage @ second[row : row + stage.shape[1]])
        row += stage.shape[1]
    return closed_form(Projection(jnp.where(opca.seen(views), linalg.fix_signs(weights), 0)))


def _second_stage(outputs: list, stages: list, *, k: int, noise: float):
    """OPCA of the outputs ``Z_m = D_m W``: the first stage's ``S`` and ``N``, noise included, seen through W."""
    n = outputs[0].shape[0]
    middle = sum(outputs) / len(outputs)
    signal = sum((z - z.mean(axis=0, keepdims=True)).T @ (z - z.mean(axis=0, keepdims=True)) for z in outputs) / n
    spread = sum((z - middle).T @ (z - middle) for z in outputs) / n
    added = noise * jax.scipy.linalg.block_diag(*(stage.T @ stage for stage in stages))
    factor = linalg.cholesky(spread + added, argument="noise")
    half = jax.scipy.linalg.solve_triangular(factor, signal, lower=True)
    whole = jax.scipy.linalg.solve_triangular(factor, half.T, lower=True)
    rotation = jnp.linalg.eigh((whole + whole.T) / 2)[1][:, ::-1][:, :k]
    return jax.scipy.linalg.solve_triangular(factor.T, rotation, lower=False)
