"""TWEAK fitted again and again on subsets of the same pairs, as in cross-validation: their forms are computed once.

`quadratic_forms.plan` reads every shared term of every pair, which takes far longer than a fit does. Folds, losses and
regularisers then only choose rows of what was planned.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim
from jaxsim.methods.weights import tweak
from jaxsim.methods.weights.quadratic_forms import Forms
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.optim import Fit, Run


def take(forms: Forms, rows) -> Forms:
    """The forms of some pairs; documents keep their numbers.

    Args:
      forms: of all pairs.
      rows: ``[n]`` integer pairs, in any order; one may occur more than once.

    Returns:
      `Forms` of ``n`` pairs.

    Raises:
      ValueError: rows that are no pair, or none.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> from jaxsim import sparse
      >>> from jaxsim.methods.weights import quadratic_forms
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2, 0], [1, 0, 1], [0, 1, 0]]))
      >>> documents = features.from_counts(counts, [2, 2, 1])
      >>> take(quadratic_forms.plan(documents, documents, [0, 0], [1, 2]), [1, 1]).right.tolist()
      [2, 2]
    """
    rows = np.asarray(rows)
    size = forms.products.shape[0]
    checks.expect(rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer), "rows", "one axis of integers",
                  f"{rows.dtype} of shape {rows.shape}")
    checks.expect(rows.size > 0, "rows", "at least one pair", "none")
    outside = rows[(rows < 0) | (rows >= size)]
    checks.expect(not outside.size, "rows", f"pairs in [0, {size})", outside[:1].tolist())
    return forms._replace(products=forms.products[rows], left=forms.left[rows], right=forms.right[rows])


def fit(
    forms: Forms,
    rows,
    labels,
    *,
    init: TermWeights,
    loss: Callable = losses.squared,
    alpha: float = 0.0,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns weights from some of the planned pairs and their labels (004 Eq. 4 and 5): `tweak.fit`, planned before.

    Args:
      forms: of all pairs, from `quadratic_forms.plan`.
      rows: ``[n]`` integer pairs to learn from.
      labels: ``[n]`` finite similarities.
      init: start, and what the regulariser draws the weights to.
      loss: `losses.squared`, `losses.log` or another elementwise function of labels and cosines.
      alpha: weight of the regulariser, at least 0.
      run: how the fit runs, as for `tweak.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `TermWeights`.

    Raises:
      ValueError: for rows or labels that do not fit, pairs that share no term, or a bad start or setting.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> from jaxsim import sparse
      >>> from jaxsim.methods.weights import quadratic_forms
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2, 0], [1, 0, 1], [1, 1, 0]]))
      >>> documents = features.from_counts(counts, [3, 2, 1])
      >>> planned = quadratic_forms.plan(documents, documents, [0, 0], [1, 2])
      >>> result = fit(planned, [0, 1], [0.0, 1.0], init=TermWeights(jnp.array([1.0, 0, 0])))
      >>> result.loss < result.history[0]["loss"]
      True

    Relations: the same parameters as `tweak.fit` on these pairs.
    """
    run = Run.of(run, options, tweak.RUN)
    chosen = take(forms, rows)
    labels = np.asarray(labels, np.float64)
    checks.expect(labels.shape == chosen.left.shape, "labels", f"shape {chosen.left.shape} (one a pair)", labels.shape)
    checks.expect(bool(np.isfinite(labels).all()), "labels", "finite numbers", "NaN or infinity")
    return _minimize(tweak.objective, chosen, labels, init, 1.0, alpha, loss, run)


def fit_preferences(
    forms: Forms,
    better,
    worse,
    *,
    init: TermWeights,
    gamma: float = 1.0,
    alpha: float = 0.0,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns weights from preferences between planned pairs (004 Eq. 6): `tweak.fit`, planned before.

    Args:
      forms: of all pairs, from `quadratic_forms.plan`.
      better: ``[n]`` integer pairs that should score higher.
      worse: ``[n]`` integer pairs, preference by preference, that should score lower.
      init: start, and what the regulariser draws the weights to.
      gamma: scale of a difference of cosines; 1 in the paper.
      alpha: weight of the regulariser, at least 0.
      run: how the fit runs, as for `tweak.fit`.
      **options: fields of `optim.Run`, in place of those of ``run``.

    Returns:
      `Fit` of `TermWeights`.

    Raises:
      ValueError: for rows that do not fit, pairs that share no term, or a bad start or setting.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.text import features
      >>> from jaxsim import sparse
      >>> from jaxsim.methods.weights import quadratic_forms
      >>> counts = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 2, 0], [1, 0, 1], [1, 1, 0]]))
      >>> documents = features.from_counts(counts, [3, 2, 1])
      >>> planned = quadratic_forms.plan(documents, documents, [0, 0], [1, 2])
      >>> result = fit_preferences(planned, [1], [0], init=TermWeights(jnp.array([1.0, 0, 0])), gamma=10.0)
      >>> result.loss < result.history[0]["loss"]
      True

    Relations: the same parameters as `tweak.fit` on these preferences.
    """
    run = Run.of(run, options, tweak.RUN)
    better, worse = np.asarray(better), np.asarray(worse)
    checks.expect(better.shape == worse.shape, "worse", f"shape {better.shape} (as better)", worse.shape)
    checks.expect(0 < gamma < float("inf"), "gamma", "a positive number", gamma)
    chosen = take(forms, np.concatenate([better, worse]))
    return _minimize(tweak.preference_objective, chosen, None, init, gamma, alpha, losses.squared, run)


def _minimize(objective, chosen: Forms, labels, init, gamma, alpha, loss, run: Run) -> Fit:
    checks.kind(init, "init", TermWeights)
    checks.expect(alpha >= 0, "alpha", "at least 0", alpha)
    dtype = chosen.products.dtype
    start, norm = tweak.checked_start(init, chosen.basis.shape[1], "features", dtype)
    checks.expect(bool(jnp.any(chosen.products != 0)), "forms", "a pair that shares a term", "none that does")
    scalars = (jnp.asarray(one, dtype) for one in (gamma, alpha))
    data = tweak.Data(chosen, None if labels is None else jnp.asarray(labels, dtype), *scalars,
                      jax.tree.map(jnp.asarray, start), loss)
    return optim.minimize_lbfgs(objective, start, data, run=dataclasses.replace(run, tol=run.tol / norm), label="TWEAK")
