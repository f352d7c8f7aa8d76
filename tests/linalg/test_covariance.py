from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.linalg import cost, covariance, eigen, grams
from jaxsim.linalg.covariance import Factor, Ridge
from jaxsim.methods import cca, opca


def documents(rng, shape, dtype=np.float64):
    dense = rng.normal(size=shape) * (rng.random(shape) < 0.6)
    return dense.astype(dtype), sparse.from_scipy(scipy.sparse.csr_matrix(dense.astype(dtype)))


@pytest.mark.parametrize("share", [0.02, 0.1, 1.0], ids=["short rows", "rows of both kinds", "long rows"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_is_the_dense_one(rng, monkeypatch, share, dtype):
    monkeypatch.setattr(grams, "_BLOCK", 4)
    dense = (rng.normal(size=(30, 50)) * (rng.random((30, 50)) < share * np.linspace(0, 2, 30)[:, None])).astype(dtype)
    dense[3] = 0
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(dense))
    long = grams._LONG * (dense != 0).sum(axis=1) > 50
    assert {0.02: not long.any(), 0.1: long.any() and not long[dense.any(axis=1)].all(), 1.0: long.sum() > 20}[share]
    result = grams.gram(documents)
    assert result.dtype == dtype
    np.testing.assert_allclose(result, dense.T @ dense, atol=1e-12 if dtype == np.float64 else 1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_gram_of_two_sides_has_the_same_bits_with_and_without_the_loop(rng, monkeypatch, dtype):
    shares = np.linspace(0, 1, 40)[:, None] ** 3  # rows without words, short ones and long ones
    left, right = (documents(rng, (40, terms), dtype)[0] * (rng.random((40, terms)) < shares) for terms in (30, 50))
    one, other = (sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in (left, right))
    found, same = np.asarray(grams.gram(one, other)), np.asarray(grams.gram(one))
    np.testing.assert_allclose(found, left.T @ right, atol=1e-12 if dtype == np.float64 else 1e-5)
    assert grams.operations(one, other) == 2 * np.sum((left != 0).sum(axis=1) * (right != 0).sum(axis=1))
    monkeypatch.setattr(grams.host, "imported", lambda name: None)
    assert np.array_equal(grams.gram(one, other), found) and np.array_equal(grams.gram(one), same)


def test_sides_of_different_length_have_no_products(rng):
    with pytest.raises(ValueError, match="others: expected 3 documents, got 2"):
        grams.gram(documents(rng, (3, 4))[1], documents(rng, (2, 4))[1])


@pytest.mark.parametrize("shape", [(0, 3), (3, 0)])
def test_gram_of_nothing(shape):
    result = grams.gram(sparse.from_scipy(scipy.sparse.csr_matrix(shape)))
    assert result.shape == (shape[1], shape[1]) and not np.any(result)


@pytest.mark.parametrize("spread", [False, True])
@pytest.mark.parametrize("centred", [False, True])
def test_every_product_is_the_dense_one(rng, centred, spread):
    dense, bare = documents(rng, (5, 8))
    map_, sparse_map = documents(rng, (8, 6))
    made = dense @ map_ if spread else dense
    rows = 0.7 * (made - centred * made.mean(axis=0))
    factor = Factor(bare, centred=centred, scale=np.float64(0.7), spread=sparse_map if spread else None)
    x, y = rng.normal(size=(rows.shape[1], 2)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(factor.diagonal(), np.diagonal(rows.T @ rows), atol=1e-12)
    np.testing.assert_allclose(factor.down(x), rows @ x, atol=1e-12)
    np.testing.assert_allclose(factor.up(y), rows.T @ y, atol=1e-12)
    np.testing.assert_allclose(factor.covariance(x), rows.T @ rows @ x, atol=1e-12)
    np.testing.assert_allclose(factor.primal(), rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(factor.dual(), rows @ rows.T, atol=1e-12)


@pytest.mark.parametrize("shape", [(5, 8), (8, 5)], ids=["few documents", "few terms"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ridge_applies_and_solves(rng, shape, dtype):
    dense, rows = documents(rng, shape, dtype)
    ridge = Ridge(Factor(rows, centred=True, scale=1.0), np.float64(0.3), argument="noise")
    assert ridge.dual == (shape[0] < shape[1])
    centred = dense - dense.mean(axis=0)
    matrix = centred.T @ centred + 0.3 * np.eye(shape[1])
    x = jnp.asarray(rng.normal(size=(shape[1], 2)).astype(dtype))
    assert ridge.apply(x).dtype == ridge.solve(x).dtype == dtype
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(ridge.apply(x), matrix @ x, atol=tolerance)
    np.testing.assert_allclose(ridge.solve(x), np.linalg.solve(matrix, x), atol=tolerance)
    y = jnp.asarray(rng.normal(size=(shape[0], 2)).astype(dtype))
    coefficients, residual = ridge.regress(y)
    wanted = np.linalg.solve(matrix, centred.T @ y)
    np.testing.assert_allclose(coefficients, wanted, atol=tolerance)
    np.testing.assert_allclose(residual, y - centred @ wanted, atol=tolerance)
    assert coefficients.dtype == residual.dtype == dtype


@pytest.mark.parametrize("ridge", [1e-3, 1e-5])
def test_a_regression_with_a_small_ridge_keeps_its_digits(rng, ridge):
    dense, rows = documents(rng, (20, 60), np.float32)
    y = rng.normal(size=(20, 2)).astype(np.float32)
    found = Ridge(Factor(rows, centred=False, scale=1.0), ridge, argument="ridge").regress(jnp.asarray(y))
    exact = dense.astype(float)
    inner = np.linalg.solve(exact @ exact.T + ridge * np.eye(20), y)
    for result, wanted in zip(found, (exact.T @ inner, ridge * inner), strict=True):
        assert np.linalg.norm(result - wanted) < 1e-4 * np.linalg.norm(wanted)


@pytest.fixture
def iterated(monkeypatch):
    """Every matrix is too large to be factorised, and every eigenproblem to be solved whole."""
    monkeypatch.setattr(covariance, "_LARGEST", 0)
    monkeypatch.setattr(cost, "cheapest", lambda *_: "iterated")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_iterated_solve_is_that_of_the_factor(rng, iterated, dtype):
    dense, rows = documents(rng, (30, 40), dtype)
    ridge = Ridge(Factor(rows, centred=True, scale=0.5), 0.1, argument="noise")
    assert ridge.cholesky is None
    centred = 0.5 * (dense - dense.mean(axis=0)).astype(np.float64)
    matrix = centred.T @ centred + 0.1 * np.eye(40)
    np.testing.assert_allclose(ridge.diagonal[:, 0], np.diag(matrix), rtol=1e-5)
    # Columns of any length, one of them with nothing to solve.
    x = rng.normal(size=(40, 3)) * [1, 0, 1e-3]
    result = ridge.solve(jnp.asarray(x, dtype))
    assert result.dtype == dtype and not np.any(result[:, 1])
    # The ridge is 1e-3 of the largest eigenvalue.
    error = np.linalg.norm(matrix @ np.asarray(result, np.float64) - x, axis=0)
    assert np.all(error <= (1e-3 if dtype == np.float32 else 1e-9) * np.linalg.norm(x, axis=0))


def test_opca_and_cca_by_iteration_are_those_of_lapack(rng, iterated, monkeypatch):
    monkeypatch.setattr(eigen, "_SMALLEST_BASIS", 112)
    # A few causes that both sides share, above a floor of noise, in more terms than a Krylov basis has columns.
    causes = rng.normal(size=(120, 6)) * 2.0 ** np.arange(3, -3, -1)
    dense = [causes @ rng.normal(size=(6, 120)) * (rng.random((120, 120)) < 0.5) for _ in range(2)]
    dense[1] = (dense[0] + dense[1]) / 2
    sides = [sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in dense]
    result = opca.fit(sides, k=4, noise=0.1).params.weights
    np.testing.assert_allclose(result, reference.opca(dense, 4, 0.1), atol=1e-5)
    pair = cca.fit(*sides, k=4, ridge=50.0).params
    for weights, wanted in zip(pair, reference.cca(*dense, 4, 50.0), strict=True):
        np.testing.assert_allclose(weights.weights, wanted, atol=3e-4 * np.max(np.abs(wanted)))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_cca_of_fewer_documents_than_terms_is_that_over_the_terms(rng, monkeypatch, dtype):
    causes = rng.normal(size=(30, 8))
    dense = [causes @ rng.normal(size=(8, size)) * (rng.random((30, size)) < 0.5) for size in (50, 40)]
    dense[1][:, 3] = 0  # a term that nobody uses
    dense[0][7] = dense[0][8]  # a document twice
    dense[1][7] = dense[1][8]
    sides = [sparse.from_scipy(scipy.sparse.csr_matrix(side.astype(dtype))) for side in dense]
    tolerance = 1e-8 if dtype == np.float64 else 3e-4
    wanted = reference.cca(*dense, 6, 5.0)
    for most in (6_000, 0):
        monkeypatch.setattr(cca, "_MOST", most)
        for weights, right in zip(cca.fit(*sides, k=6, ridge=5.0).params, wanted, strict=True):
            assert weights.weights.dtype == dtype
            np.testing.assert_allclose(weights.weights, right, atol=tolerance * np.max(np.abs(right)))


@pytest.mark.parametrize(("columns", "ridge", "iterated"), [(None, 1e-3, False), (1, 10.0, True), (10**6, 1e-3, False)])
def test_a_factor_is_made_where_it_is_expected_to_pay(rng, columns, ridge, iterated):
    dense = (rng.random((150, 200)) < 0.01).astype(float)
    rows = sparse.from_scipy(scipy.sparse.csr_matrix(dense))
    result = Ridge(Factor(rows, centred=True, scale=1.0), ridge, argument="noise", columns=columns)
    assert result.iterated == iterated and (result.cholesky is None) == iterated
    centred = dense - dense.mean(axis=0)
    x = rng.normal(size=(200, 2))
    wanted = np.linalg.solve(centred.T @ centred + ridge * np.eye(200), x)
    np.testing.assert_allclose(result.solve(jnp.asarray(x)), wanted, rtol=1e-6, atol=1e-6)


def test_a_noise_too_small_for_conjugate_gradients_is_refused(rng, iterated, monkeypatch):
    monkeypatch.setattr(covariance, "_STEPS", 3)
    _, rows = documents(rng, (30, 40))
    ridge = Ridge(Factor(rows, centred=False, scale=1.0), 1e-9, argument="noise")
    with pytest.raises(ValueError, match="noise: expected a value with which 3 steps of conjugate gradients suffice"):
        ridge.solve(jnp.ones((40, 2)))


@pytest.mark.parametrize("shape", [(5, 8), (8, 5)], ids=["few documents", "few terms"])
def test_a_ridge_too_small_for_the_precision_is_refused(shape):
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones(shape, np.float32)))
    with pytest.raises(ValueError, match="noise: expected a value that makes the matrix positive definite"):
        Ridge(Factor(documents, centred=False, scale=1.0), -1e-3, argument="noise")
