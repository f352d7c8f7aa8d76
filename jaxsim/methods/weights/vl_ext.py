"""VL-Ext: extended term vectors learned from preferences between pairs of documents (001 §3.1.1).

The weights ``Λ`` of the features of terms and the coefficients ``A`` between related terms are learned together, so
that similar documents have larger cosines than others. ``A`` has a unit diagonal and is zero but for chosen pairs of
terms, so that its regulariser, unlike that of a projection, has a minimiser.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from jaxsim import checks, losses, optim, sparse
from jaxsim.data.labelled_pairs import Preferences, preferences
from jaxsim.methods import collapse
from jaxsim.methods.s2net.exact import distance_penalty
from jaxsim.methods.weights import quadratic_forms, term_extension
from jaxsim.methods.weights.quadratic_forms import Forms
from jaxsim.methods.weights.term_extension import TermExtension
from jaxsim.methods.weights.term_weights import values
from jaxsim.methods.weights.tweak import RUN, checked_sides
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms
from jaxsim.text.features import Featured

# Cosines do not depend on the length of Λ; an optimiser that learns Λ together with A does.
_LENGTH = 10.0


class Learned(NamedTuple):
    """What is optimised.

    Attributes:
      features: ``Λ``, ``[num_features]``.
      weights: ``[relations]`` off-diagonal entries of ``A``, in the order of ``TermExtension.related.values``.
    """

    features: jax.Array
    weights: jax.Array


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["documents", "related", "rest", "pairs", "slots", "squares", "gamma", "alpha", "beta", "centre"],
    meta_fields=[],
)
@dataclasses.dataclass(frozen=True)
class Data:
    """Constants of `objective`.

    Attributes:
      documents: touched terms with their features, the touched terms being the vocabulary; those of the right side
        after those of the left, unless it is the same collection.
      related: pattern of the relations.
      rest: inner products over all other terms, of the better pairs and then of the worse ones.
      pairs: ``[num_docs, num_docs]``, with a slot for every pair that occurs and for every document with itself.
      slots: ``[2 n]`` int32 slot of each better pair and then of each worse one.
      squares: two arrays, ``[num_left]`` and ``[num_right]`` int32 slots of documents with themselves.
      gamma: scalar, scale of a difference of cosines.
      alpha: scalar, weight of the regulariser of ``Λ``.
      beta: scalar, weight of the regulariser of ``A``.
      centre: what the first regulariser draws ``Λ`` to.
    """

    documents: Featured
    related: Terms
    rest: Forms
    pairs: Terms
    slots: jax.Array
    squares: tuple[jax.Array, jax.Array]
    gamma: jax.Array
    alpha: jax.Array
    beta: jax.Array
    centre: jax.Array


def objective(params: Learned, data: Data) -> jax.Array:
    r"""Mean of :math:`\log(1 + e^{-\gamma \Delta})` over the preferences (001 Eq. 4), plus ``α/2 ‖Λ - c‖² + β/2 ‖A‖²``.

    A document is extended once, however many pairs it stands in, and only at touched terms; the inner products over all
    others are quadratic forms in ``Λ``.

    Args:
      params: `Learned`.
      data: the constants.

    Returns:
      Scalar, in nats.
    """
    related, documents = sparse.with_values(data.related, params.weights), data.documents
    of = term_extension.documents_of(documents.terms)
    weights = values(params.features, documents)
    extended = term_extension.extended(related, weights, documents.terms.indices, of, documents.num_docs)
    inside = sparse.inner_products(data.pairs, extended)
    product, left_squares, right_squares = quadratic_forms.products(params.features, data.rest)
    left_squares = left_squares + inside[data.squares[0]]
    right_squares = right_squares + inside[data.squares[1]]
    cosines = quadratic_forms.quotients(product + inside[data.slots], left_squares[data.rest.left],
                                        right_squares[data.rest.right])
    better, worse = jnp.split(cosines, 2)
    loss = jnp.mean(losses.logistic_pairwise(better - worse, gamma=data.gamma))
    return (loss + data.alpha * distance_penalty(params.features, data.centre)
            + data.beta * distance_penalty(params.weights, jnp.zeros_like(params.weights)))


def plan(left: Featured, right: Featured, pairs: Preferences, init: TermExtension, *, gamma: float = 1.0,
         alpha: float = 0.0, beta: float = 0.0, centre: jax.Array | None = None) -> Data:
    """Splits documents into touched and other terms, on the host, and gathers what the pairs need.

    Args:
      left: documents of one side.
      right: documents of the other; ``left`` again for pairs of one collection.
      pairs: the preferences.
      init: whose relations are planned for.
      gamma: as for `fit`.
      alpha: as for `fit`.
      beta: as for `fit`.
      centre: as in `Data`; the start's features unless given.

    Returns:
      `Data`.
    """
    touched, dtype = np.asarray(init.touched), left.columns.dtype
    rows = [np.concatenate([np.asarray(a, np.int64), np.asarray(b, np.int64)])
            for a, b in ((pairs.better_left, pairs.worse_left), (pairs.better_right, pairs.worse_right))]
    near, far = _split(left, touched)
    documents, first, others = near, 0, far  # where the right side begins
    if right is not left:
        near_right, others = _split(right, touched)
        documents, first = _stack(near, near_right), left.num_docs
    total = documents.num_docs
    itself = np.arange(total) * (total + 1)
    codes, slots = np.unique(np.r_[rows[0] * total + rows[1] + first, itself], return_inverse=True)
    indptr = np.searchsorted(codes, np.arange(total + 1) * total)
    pattern = scipy.sparse.csr_matrix((np.ones(codes.size, dtype), codes % total, indptr), (total, total))
    slots, squares = (jnp.asarray(part, jnp.int32) for part in np.split(slots, [len(rows[0])]))
    return Data(
        documents, init.related, quadratic_forms.plan(far, others, *rows), sparse.from_scipy(pattern), slots,
        (squares[: left.num_docs], squares[first : first + right.num_docs]),
        *(jnp.asarray(one, dtype) for one in (gamma, alpha, beta)), init.features if centre is None else centre,
    )


def _stack(first: Featured, second: Featured) -> Featured:
    """Documents of two collections one below another."""
    parts = [sparse.to_scipy(one.terms) for one in (first, second)]
    columns = [np.asarray(one.columns)[: csr.nnz] for one, csr in zip((first, second), parts, strict=True)]
    both = sparse.from_scipy(scipy.sparse.vstack(parts, format="csr"))
    filled = np.zeros((both.nnz, columns[0].shape[1]), columns[0].dtype)
    filled[: sum(map(len, columns))] = np.concatenate(columns)
    return Featured(both, jax.device_put(filled), first.names)


def _split(documents: Featured, touched: np.ndarray) -> tuple[Featured, Featured]:
    """The touched terms of documents, as their vocabulary, and the others."""
    csr = sparse.to_scipy(documents.terms)
    columns = np.asarray(documents.columns)[: csr.nnz]
    inside = np.zeros(csr.shape[1], bool)
    inside[touched] = True
    place = np.cumsum(inside) - 1
    result = []
    for kept, vocabulary in ((inside[csr.indices], len(touched)), (~inside[csr.indices], csr.shape[1])):
        indptr = np.r_[0, np.cumsum(kept)][csr.indptr]
        indices = csr.indices[kept]
        part = scipy.sparse.csr_matrix((csr.data[kept], place[indices] if vocabulary == len(touched) else indices,
                                        indptr), (csr.shape[0], vocabulary))
        part = sparse.from_scipy(part)
        filled = np.zeros((part.nnz, columns.shape[1]), columns.dtype)
        filled[: int(kept.sum())] = columns[kept]
        result.append(Featured(part, jax.device_put(filled), documents.names))
    return result[0], result[1]


def checked_start(init, left: Featured) -> TermExtension:
    """Checks a start and scales ``Λ`` to length 10, which changes no cosine.

    Args:
      init: `TermExtension`.
      left: left documents.

    Returns:
      `TermExtension` in the type of the features.

    Raises:
      ValueError: for shapes that do not fit, terms out of range, or weights that are zero or not finite.
    """
    checks.kind(init, "init", TermExtension)
    checks.expect(init.features.shape == (len(left.names),), "init.features", f"{len(left.names)} weights",
                  init.features.shape)
    most = int(jnp.max(init.touched))
    checks.expect(most < left.num_terms, "init", f"terms below {left.num_terms} (terms of left)", most)
    dtype = left.columns.dtype
    features, weights = init.features.astype(dtype), init.related.values.astype(dtype)
    norm = float(jnp.linalg.norm(features))
    finite = bool(jnp.isfinite(weights).all()) and 0 < norm < float("inf")
    checks.expect(finite, "init", "finite weights, those of features not all zero", f"norm {norm}")
    return TermExtension(features * (_LENGTH / norm), sparse.with_values(init.related, weights), init.touched)


def fit(
    left: Featured,
    right: Featured,
    pairs: Preferences,
    *,
    init: TermExtension,
    gamma: float = 1.0,
    alpha: float = 0.0,
    beta: float = 0.0,
    literal: bool = False,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns term weights and coefficients between related terms from preferences between pairs.

    Args:
      left: documents with features, ``[num_left, num_terms]``.
      right: documents with the same features; ``left`` again for pairs of one collection.
      pairs: `Preferences`.
      init: start: TWEAK's weights and coefficients of 0 between the terms of `related_terms.choose`.
      gamma: scale of a difference of cosines; the paper prints none (1). Choose it on development data (`tweak.fit`).
      alpha: weight of the regulariser of ``Λ``, relative to the mean loss.
      beta: weight of the regulariser of ``A``; its diagonal is not counted.
      literal: draw ``Λ`` to 0, as printed, instead of to the start: see `tweak.fit`.
      run: how the fit runs, as for `tweak.fit`; ``tol`` is for ``‖∇‖`` times the norm of the start. There are as many
        coefficients as examples: use ``validate``, which sees a `TermExtension`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `TermExtension`.

    Raises:
      ValueError: for sides that do not agree, rows out of range, no preferences, documents without words, a start that
        does not fit or is collapsed, or bad settings.
      FloatingPointError: if the loss is not finite.

    Example:
      >>> from jaxsim.text import features
      >>> counts = scipy.sparse.csr_matrix([[1.0, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 1]])
      >>> documents = features.single(sparse.from_scipy(counts))
      >>> better_than = preferences(([0], [1]), ([0], [2]), num_left=3, num_right=3)  # term 0 goes with 1, not with 2
      >>> start = term_extension.make(jnp.ones(1), [0, 0], [1, 2])
      >>> found = fit(documents, documents, better_than, init=start, gamma=5.0, max_iter=20).params
      >>> lent = term_extension.relations(found)[2]
      >>> bool(lent[0] > 0 > lent[1])
      True

    Differs from the paper: the mean of the losses, not their sum.

    Relations: `tweak` learns Λ alone; `vl_cv` has concepts in place of the terms.
    """
    run = Run.of(run, options, RUN)
    checked_sides(left, right)
    checks.kind(pairs, "pairs", Preferences)
    pairs = preferences(pairs[:2], pairs[2:], num_left=left.num_docs, num_right=right.num_docs)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    for name, value in (("alpha", alpha), ("beta", beta)):
        checks.expect(value >= 0, name, "a number of at least 0", value)
    for name, side in (("left", left), ("right", right)):
        checks.expect(bool(jnp.any(side.columns != 0)), name, "documents with words", "only empty documents")
    init = checked_start(init, left)
    data = plan(left, right, pairs, init, gamma=gamma, alpha=alpha, beta=beta,
                centre=jnp.zeros_like(init.features) if literal else None)
    start = Learned(init.features, init.related.values)

    def model(params: Learned) -> TermExtension:
        return init._replace(features=params.features, related=sparse.with_values(init.related, params.weights))

    norm = float(jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in start)))
    run = dataclasses.replace(run, tol=run.tol / norm)
    result = run.run(optim.minimize_lbfgs, model, objective, start, data, label="VL-Ext")
    return collapse.learnable(result, left.terms, right.terms, collapsed=[math.log(2)], gamma=gamma)
