"""Values at the edges of float32: a result that is finite, or a refusal; never NaN that calls itself converged."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import losses, sparse
from jaxsim.methods import cca, dda, lsa, opca, pca, s2net
from jaxsim.methods.s2net.exact import random_init

pytestmark = pytest.mark.usefixtures("lightly_compiled")
FITS = {"lsa": lambda a, b: lsa.fit(a, k=2), "pca": lambda a, b: pca.fit(a, k=2),
        "opca": lambda a, b: opca.fit((a, b), k=2), "cca": lambda a, b: cca.fit(a, b, k=2),
        "dda": lambda a, b: dda.fit((a, b), k=2)}  # fmt: skip


def documents(rng, scale):
    matrix = scipy.sparse.random(12, 8, 0.5, rng=rng, dtype=np.float32).tocsr() * np.float32(scale)
    return sparse.from_scipy(matrix.astype(np.float32))


@pytest.mark.parametrize("scale", [1e-10, 1e10, 1e20, 1e38])
@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_closed_forms_are_finite_or_refused_at_any_scale(rng, fit, scale):
    try:
        found = fit(documents(rng, scale), documents(rng, scale))
    except (FloatingPointError, ValueError) as error:
        assert scale >= 1e20 and ": expected " in str(error)
    else:
        assert all(bool(jnp.all(jnp.isfinite(leaf))) for leaf in jax.tree.leaves(found.params))


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
