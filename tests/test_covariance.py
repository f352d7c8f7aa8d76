from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import terms
from jaxsim.covariance import Factor, Ridge


def documents(rng, shape, dtype=np.float64):
    dense = rng.normal(size=shape) * (rng.random(shape) < 0.6)
    return dense.astype(dtype), terms.from_scipy(scipy.sparse.csr_matrix(dense.astype(dtype)))


@pytest.mark.parametrize("centred", [False, True])
def test_every_product_is_the_dense_one(rng, centred):
    dense, sparse = documents(rng, (5, 8))
    rows = 0.7 * (dense - centred * dense.mean(axis=0))
    factor = Factor(sparse, centred=centred, scale=np.float64(0.7))
    x, y = rng.normal(size=(8, 2)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(factor.down(x), rows @ x, atol=1e-12)
    np.testing.assert_allclose(factor.up(y), rows.T @ y, atol=1e-12)
    np.testing.assert_allclose(factor.covariance(x), rows.T @ rows @ x, atol=1e-12)
    np.testing.assert_allclose(factor.primal(), rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(factor.dual(), rows @ rows.T, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 8), (8, 5)], ids=["few documents", "few terms"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ridge_applies_and_solves(rng, shape, dtype):
    dense, sparse = documents(rng, shape, dtype)
    ridge = Ridge(Factor(sparse, centred=True, scale=1.0), np.float64(0.3), argument="noise")
    assert ridge.dual == (shape[0] < shape[1])
    centred = dense - dense.mean(axis=0)
    matrix = centred.T @ centred + 0.3 * np.eye(shape[1])
    x = jnp.asarray(rng.normal(size=(shape[1], 2)).astype(dtype))
    assert ridge.apply(x).dtype == ridge.solve(x).dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(ridge.apply(x), matrix @ x, atol=tolerance)
    np.testing.assert_allclose(ridge.solve(x), np.linalg.solve(matrix, x), atol=tolerance)


@pytest.mark.parametrize("shape", [(5, 8), (8, 5)], ids=["few documents", "few terms"])
def test_a_ridge_too_small_for_the_precision_is_refused(shape):
    sparse = terms.from_scipy(scipy.sparse.csr_matrix(np.ones(shape, np.float32)))
    with pytest.raises(ValueError, match="noise: expected a value that makes the matrix positive definite"):
        Ridge(Factor(sparse, centred=False, scale=1.0), -1e-3, argument="noise")
