r"""ITML of inner products: HDILR of as many dimensions as the documents have (001 §2.2).

`itml` with the identity learns :math:`A = I + U (M - I) U^\top`, ``M`` being ``[k, k]``, and a pair takes it
:math:`O(k^2)`. But it sees documents in their inner products alone (Davis, Kulis, Jain, Sra, Dhillon 2007: their metric
and what low-rank kernel learning finds are the same). With the coordinates :math:`Y = X U`, ``[n, k]``, of the n
documents of the pairs and :math:`K = Y M Y^\top`, the projection onto the bound of the pair (i, j) is

.. math:: K' = K + \beta\, K e e^\top K, \qquad e = e_i - e_j,

whose distance :math:`p = e^\top K e` needs four entries of K. So a pair that is within its bound, and stays as it is,
costs next to nothing, and what a block of pairs changes is one product:
:math:`K' = K + E \operatorname{diag}(\pm 1) E^\top`. That is n² products a pair that changes, in float64, whatever k
is, where the blocks of `itml` take 6 k² a pair: it is for dimensions that are not far fewer than the documents.

In the end :math:`M - I = P (K - K_0) P^\top` with :math:`P` the pseudo-inverse of Y, as all that is learned lies in the
documents' span.
"""

from __future__ import annotations

from typing import NamedTuple

import jax
import numpy as np
import scipy.linalg
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.data.labelled_pairs import LabelledPairs
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights import itml
from jaxsim.methods.weights.metric import Metric
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

_BLOCK = 256  # pairs
_EQUAL = 1e-12  # of two documents' squared lengths: a shorter squared distance is rounding
_SPAN = 1e-13  # of the documents' squared lengths: what is below, of directions in which they differ, is rounding


class Kernel(NamedTuple):
    """A metric on its way, as `fit` validates it.

    Attributes:
      learned: ``K``, ``[n, n]`` float64 inner products of the pairs' documents under ``M``.
      start: ``K₀``, ``[n, n]``, those before any pair: ``Y Yᵀ``.
      inverse: ``P``, ``[k, n]``, the pseudo-inverse of ``Y``.
      basis: ``U``, ``[num_terms, k]``, orthonormal columns.
    """

    learned: np.ndarray
    start: np.ndarray
    inverse: np.ndarray
    basis: np.ndarray


def products(params: Kernel, terms: Terms) -> np.ndarray:
    r"""Inner products of documents under the metric, :math:`X A X^\top`.

    Args:
      params: `Kernel`.
      terms: weighted documents, ``[num_docs, num_terms]``.

    Returns:
      ``[num_docs, num_docs]`` float64. It costs two products of ``num_docs n²`` and ``num_docs k n``.

    Raises:
      ValueError: for another vocabulary.

    Example:
      >>> rows = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 0.0], [0.0, 2.0]]))
      >>> twice = Kernel(np.full((1, 1), 2.0), np.ones((1, 1)), np.ones((1, 1)), np.array([[1.0], [0.0]]))
      >>> products(twice, rows).tolist()
      [[2.0, 0.0], [0.0, 4.0]]
    """
    checks.kind(params, "params", Kernel)
    csr = sparse.to_scipy(terms).astype(np.float64)
    checks.expect(csr.shape[1] == len(params.basis), "terms", f"{len(params.basis)} terms", csr.shape[1])
    inside = (csr @ params.basis) @ params.inverse
    changed = inside @ ((params.learned - params.start) @ inside.T)
    return (csr @ csr.T).toarray() + (changed + changed.T) / 2


def metric_of(params: Kernel) -> Metric:
    """The metric that a kernel is of.

    Args:
      params: `Kernel`.

    Returns:
      `Metric` of k dimensions in float32, or in float64 where JAX has it.

    Example:
      >>> twice = Kernel(np.full((1, 1), 2.0), np.ones((1, 1)), np.ones((1, 1)), np.array([[1.0], [0.0]]))
      >>> metric_of(twice).gains.tolist()
      [1.0]
    """
    change = params.inverse @ (params.learned - params.start) @ params.inverse.T
    gains, axes = scipy.linalg.eigh(change, overwrite_a=True)
    return Metric(jax.device_put(params.basis @ axes), jax.device_put(gains))


def fit(
    left: Terms,
    right: Terms,
    pairs: LabelledPairs,
    *,
    init: Projection | None = None,
    bounds: tuple[float, float] | None = None,
    percentiles: tuple[float, float] = (5.0, 95.0),
    slack: float = 1.0,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns ``I + U L Uᵀ`` from labelled pairs by cyclic projections of inner products, in float64.

    Args:
      left: weighted documents, ``[num_left, num_terms]``.
      right: documents over the same terms; ``left`` again for pairs of one collection.
      pairs: as for `itml.fit`.
      init: its columns span what is learned; all that the pairs' documents span unless given, which is ITML itself.
      bounds: as for `itml.fit`.
      percentiles: as for `itml.fit`.
      slack: as for `itml.fit`.
      run: as for `itml.fit`, but that ``validate`` is given a `Kernel`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      What `itml.fit` with ``identity`` gives, up to rounding: `Fit` of a `Metric`. Memory is for some nine matrices of
      ``[n, n]`` and one of ``[num_terms, k]``, n being the number of the pairs' documents.

    Raises:
      ValueError: as `itml.fit`.
      FloatingPointError: as `itml.fit`.

    Example:
      >>> rows = sparse.from_scipy(scipy.sparse.csr_matrix([[0.1, 0.2], [2.0, 0.1], [0.2, 2.0]]))
      >>> chosen = itml.labelled([0, 0], [1, 2], [1.0, 0.0], num_left=3, num_right=3)
      >>> found = fit(rows, rows, chosen, bounds=(1.0, 4.0)).params
      >>> learned = (found.basis * found.gains) @ found.basis.T
      >>> bool(learned[0, 0] < 0 < learned[1, 1])  # closer in term 0, farther apart in term 1
      True

    Relations: `itml`, whose memory does not grow with the number of documents, and which runs on accelerators.
    """
    run = Run.of(run, options, Run(max_iter=100, tol=1e-3))
    run.expect_only("ITML", "max_iter", "tol", "validate", "patience")
    pairs = itml.checked(left, right, pairs, slack)
    given = None if init is None else itml.started(init, left)
    documents, rows = _documents(left, right, pairs)
    basis, inside, inverse = _coordinates(documents, given)
    start = inside @ inside.T
    squares = np.asarray(documents.multiply(documents).sum(axis=1)).ravel()
    whole = _distances(documents, rows)
    lengths = np.where(whole > 0, squares[rows[0]] + squares[rows[1]], np.inf)  # of equal documents no distance counts
    residuals = np.maximum(whole - _within(start, rows), 0) if given is not None else np.zeros(len(whole))
    upper, lower = itml.bounds_from(whole, bounds, percentiles)
    labels = np.asarray(pairs.labels)
    unit = np.ldexp(1.0, -int(np.frexp(max(float(whole.max()), upper, lower))[1]))  # as in `itml`: rounds nothing
    similar = np.where(labels == 1, 1.0, -1.0)
    state = itml.State(np.asfortranarray(start * unit), np.where(labels == 1, upper, lower) * unit,
                       np.zeros(labels.size))

    def advance(state: itml.State) -> itml.State:
        bounds, multipliers = state.bounds.copy(), state.multipliers.copy()
        for at in range(0, labels.size, _BLOCK):
            part = slice(at, at + _BLOCK)
            _block(state.factor, rows[:, part], lengths[part] * unit, residuals[part] * unit, similar[part],
                   bounds[part], multipliers[part], slack)
        return itml.State(state.factor, bounds, multipliers)

    def model(factor: np.ndarray) -> Kernel:
        lower = np.tril(factor)
        lower += np.tril(factor, -1).T
        lower /= unit
        return Kernel(lower, start, inverse, basis)

    found = itml.until_done(run, state, advance, model, slack)
    return found._replace(params=metric_of(found.params))


def _documents(left: Terms, right: Terms, pairs: LabelledPairs) -> tuple[scipy.sparse.csr_matrix, np.ndarray]:
    """The documents of the pairs, each once, in float64, and ``[2, m]`` rows of them."""
    sides = np.asarray(pairs.left), np.asarray(pairs.right)
    if left is right:
        used, rows = np.unique(np.concatenate(sides), return_inverse=True)
        return sparse.to_scipy(left).astype(np.float64)[used], rows.reshape(2, -1)
    parts = [np.unique(side, return_inverse=True) for side in sides]
    documents = [sparse.to_scipy(side).astype(np.float64)[used]
                 for side, (used, _) in zip((left, right), parts, strict=True)]
    return (scipy.sparse.vstack(documents, format="csr"),
            np.stack([parts[0][1].ravel(), parts[1][1].ravel() + len(parts[0][0])]))


def _coordinates(documents: scipy.sparse.csr_matrix, given: np.ndarray | None) -> tuple[np.ndarray, ...]:
    """``U``, ``Y`` and the pseudo-inverse of Y."""
    if given is not None:
        basis = itml.orthonormal(given)
        inside = documents @ basis
        return basis, inside, np.linalg.pinv(inside, rcond=np.sqrt(_SPAN))
    gram = (documents @ documents.T).toarray()
    least = _SPAN * np.trace(gram)
    values, vectors = scipy.linalg.eigh(gram, overwrite_a=True)
    kept = values > least
    checks.expect(bool(kept.any()), "pairs", "documents with weights", "only empty documents")
    vectors, roots = vectors[:, kept], np.sqrt(values[kept])
    inverse = (vectors / roots).T
    return documents.T @ inverse.T, vectors * roots, inverse


def _distances(documents: scipy.sparse.csr_matrix, rows: np.ndarray) -> np.ndarray:
    """``[m]`` squared distances."""
    apart = documents[rows[0]] - documents[rows[1]]
    return np.asarray(apart.multiply(apart).sum(axis=1)).ravel()


def _within(kernel: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """``[m]`` squared distances that inner products give."""
    own = np.diag(kernel)
    return own[rows[0]] + own[rows[1]] - 2 * kernel[rows[0], rows[1]]


def _at(kernel: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Entries of a symmetric matrix, of which the lower triangle is known."""
    one, other = one[:, None], other[None, :]
    return kernel[np.maximum(one, other), np.minimum(one, other)]


def _block(kernel, rows, lengths, residuals, similar, bounds, multipliers, slack) -> None:
    r"""Projects onto the bounds of a block of pairs, in order; in place, of ``kernel`` the lower triangle.

    ``within`` is :math:`Z^\top M Z` of the block's pairs, kept up to date, and so each pair's own distance; ``past``
    has a row of it for each pair that changed something, as it was then. Column b of ``E`` is :math:`\sqrt{|\beta_b|} K
    e_b` with K as it was then: :math:`K_0 Z T` with :math:`t_b = e_b + \sum_{a<b} \beta_a\, past_{ab}\, t_a`.
    """
    i, j = rows
    within = _at(kernel, i, i) - _at(kernel, i, j) - _at(kernel, j, i) + _at(kernel, j, j)
    least = _EQUAL * (lengths + kernel[i, i] + kernel[j, j])
    places, betas, past = [], [], []
    for b in range(len(i)):
        p = within[b, b]
        if p <= least[b]:
            continue
        solution = float(itml.multiplier(p, residuals[b], bounds[b], slack, np))
        alpha = min(multipliers[b], -similar[b] * solution)
        if alpha == 0:
            continue
        step = similar[b] * alpha
        beta = step / (1 - step * p)
        bounds[b] *= slack / (slack + step * bounds[b])
        multipliers[b] -= alpha
        row = within[b].copy()
        within += np.multiply.outer(beta * row, row)
        places.append(b)
        betas.append(beta)
        past.append(row)
    if not places:
        return
    beta = np.array(betas)
    earlier = np.triu(beta[:, None] * np.array(past)[:, places], 1)
    mixed = scipy.linalg.solve_triangular(np.eye(len(places)) - earlier, np.eye(len(places)), unit_diagonal=True)
    images = np.empty((len(kernel), len(places)), order="F")
    for column, (one, other) in enumerate(zip(i[places], j[places], strict=True)):
        images[:one, column] = kernel[one, :one]
        images[one:, column] = kernel[one:, one]
        images[:other, column] -= kernel[other, :other]
        images[other:, column] -= kernel[other:, other]
    images = images @ (mixed * np.sqrt(np.abs(beta)))
    for sign in (1.0, -1.0):
        some = np.asfortranarray(images[:, np.sign(beta) == sign])
        if some.size:
            scipy.linalg.blas.dsyrk(sign, some, beta=1.0, c=kernel, lower=1, overwrite_c=1)
