"""Values at the edges of float32: a result that is finite, or a refusal; never NaN that calls itself converged."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import losses, sparse
from jaxsim.methods import cca, cr5, dda, lsa, opca, pca, s2net
from jaxsim.methods.s2net.exact import random_init

FITS = {"lsa": lambda a, b: lsa.fit(a, k=2), "pca": lambda a, b: pca.fit(a, k=2),
        "opca": lambda a, b: opca.fit((a, b), k=2), "cca": lambda a, b: cca.fit(a, b, k=2),
        "dda": lambda a, b: dda.fit((a, b), k=2), "cr5": lambda a, b: cr5.fit((a, b), k=2)}  # fmt: skip


def documents(rng, scale):
    matrix = scipy.sparse.random(12, 8, 0.5, rng=rng, dtype=np.float32).tocsr() * np.float32(scale)
    return sparse.from_scipy(matrix.astype(np.float32))


@pytest.mark.parametrize("scale", [1e-38, 1e-20, 1e-10, 1e10, 1e20, 1e38])
@pytest.mark.parametrize("name", FITS)
def test_closed_forms_are_finite_or_refused_at_any_scale(rng, name, scale):
    try:
        found = FITS[name](documents(rng, scale), documents(rng, scale))
    except (FloatingPointError, ValueError) as error:
        assert name not in ("lsa", "pca") and (scale >= 1e20 or scale <= 1e-10) and ": expected " in str(error)
    else:
        leaves = jax.tree.leaves(found.params)
        assert all(bool(jnp.all(jnp.isfinite(leaf)) & jnp.all(jnp.any(leaf != 0, axis=0))) for leaf in leaves)


@pytest.mark.parametrize("name", ["lsa", "pca"])
def test_directions_have_no_scale(name):
    weights = [np.asarray(FITS[name](documents(np.random.default_rng(0), scale), None).params.weights)
               for scale in (1.0, 2.0**-100, 2.0**120)]  # fmt: skip
    assert weights[0].any() and all(np.array_equal(weights[0], other) for other in weights[1:])


GAMMAS = [0, -1, 0.0, float("nan"), float("inf"), np.float32(-1), np.float32("nan"), np.float64("inf"), jnp.float32(-1)]


@pytest.mark.parametrize("gamma", GAMMAS)
def test_gamma_is_positive_of_whatever_type(gamma):
    rows = jnp.eye(3)
    with pytest.raises(ValueError, match="gamma: expected a positive number"):
        losses.all_pairs_logistic(rows, rows, gamma=gamma)
    if not isinstance(gamma, jnp.ndarray):
        with pytest.raises(ValueError, match="gamma: expected a positive number"):
            losses.logistic_pairwise(0.5, gamma=gamma)
    terms = sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(3, dtype=np.float32)))
    with pytest.raises(ValueError, match="gamma: expected a positive number"):
        s2net.fit(terms, terms, init=random_init(3, 2, key=jax.random.key(0)), gamma=gamma)
