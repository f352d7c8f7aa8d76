"""The span of a few documents: the same solutions in it as over all terms."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.linalg
import scipy.sparse

from jaxsim import sparse
from jaxsim.linalg import row_space
from jaxsim.linalg.row_space import Inside, RowSpace
from jaxsim.methods import dda, opca


def views_of(rng, *, n=12, v=200, count=2, dtype=np.float64):
    dense = [(rng.random((n, v)) * (rng.random((n, v)) < 0.1)).astype(dtype) for _ in range(count)]
    return dense, tuple(sparse.from_scipy(scipy.sparse.csr_matrix(one)) for one in dense)


def untouched(*given, **named):
    raise AssertionError("the span was asked for")


@pytest.mark.parametrize(("count", "dtype"), [(2, np.float32), (3, np.float64)])
def test_opca_inside_the_span_is_that_of_lapack(rng, monkeypatch, count, dtype):
    dense, _ = views_of(rng, v=400, count=count, dtype=dtype)
    dense[1][2] = dense[0][5]  # a document of both views
    dense[0][7] = dense[0][8]  # one twice
    dense[0][1] = dense[1][1] = 0  # empty ones
    views = tuple(sparse.from_scipy(scipy.sparse.csr_matrix(one)) for one in dense)
    inside = RowSpace.of(views, k=5)
    assert inside is not None and inside.size == 12 * count - 3
    result = np.asarray(opca.fit(views, k=5, noise=0.1).params.weights)
    assert result.dtype == dtype
    wanted = reference.opca([one.astype(np.float64) for one in dense], 5, 0.1)
    np.testing.assert_allclose(result, wanted, atol=1e-9 if dtype == np.float64 else 2e-4)
    monkeypatch.setattr(RowSpace, "of", lambda *_, **__: None)
    np.testing.assert_allclose(result, opca.fit(views, k=5, noise=0.1).params.weights,
                               atol=1e-9 if dtype == np.float64 else 2e-4)  # fmt: skip


@pytest.mark.parametrize("noise", [1e-4, 10.0])
def test_rounding_of_the_basis_is_undone(rng, noise):
    dense, views = views_of(rng, n=60, v=3000, dtype=np.float32)
    result = np.asarray(opca.fit(views, k=20, noise=noise).params.weights, np.float64)
    assert RowSpace.of(views, k=20) is not None
    signal, distortion = reference.signal_and_noise([one.astype(np.float64) for one in dense], noise)
    np.testing.assert_allclose(result.T @ distortion @ result, np.eye(20), atol=2e-5)
    values = np.diag(result.T @ signal @ result)
    np.testing.assert_allclose(result.T @ signal @ result, np.diag(values), atol=2e-5 * values[0])
    assert np.all(np.diff(values) < 1e-6)


@pytest.mark.parametrize("k", [2, 4, 9])
def test_documents_of_few_dimensions_are_solved_over_all_terms(rng, k):
    base = rng.integers(1, 4, (2, 150)) * (rng.random((2, 150)) < 0.3)
    coefficients = rng.integers(1, 20, (8, 2))
    dense = [(coefficients + more) @ base for more in (0, rng.integers(0, 2, (8, 2)))]
    views = tuple(sparse.from_scipy(scipy.sparse.csr_matrix(one.astype(np.float32))) for one in dense)
    assert RowSpace.of(views, k=k) is not None
    result = np.asarray(opca.directions(views, k=k, noise=0.1), np.float64)
    signal, distortion = reference.signal_and_noise(dense, 0.1)
    np.testing.assert_allclose(result.T @ distortion @ result, np.eye(k), atol=1e-3)
    wanted = scipy.linalg.eigh(signal, distortion, eigvals_only=True)[::-1][:k]
    np.testing.assert_allclose(np.diag(result.T @ signal @ result), wanted, rtol=1e-3, atol=1e-2)
    assert dda.fit(views, k=k, num_blocks=2).params.weights.shape == (150, k)


def test_a_few_dependent_documents_change_no_path(rng, monkeypatch):
    dense, _ = views_of(rng, v=400)
    dense[0][:3] = 0
    dense[0][0, 0] = dense[0][1, 1] = dense[0][2, 0] = dense[0][2, 1] = 1
    views = tuple(sparse.from_scipy(scipy.sparse.csr_matrix(one)) for one in dense)
    inside = opca._inside(RowSpace.of(views, k=5), 5, 0.1)
    np.testing.assert_array_equal(opca.directions(views, k=5, noise=0.1), inside)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_the_unit_of_the_weights_does_not_matter(rng, scale):
    dense, views = views_of(rng, dtype=np.float32)
    result = opca.fit(views, k=3, noise=0.1).params.weights
    scaled = tuple(sparse.with_values(view, scale * view.values) for view in views)
    assert RowSpace.of(scaled, k=3) is not None
    np.testing.assert_allclose(scale * np.asarray(opca.fit(scaled, k=3, noise=0.1 * scale**2).params.weights), result,
                               atol=1e-3 * float(jnp.max(jnp.abs(result))))  # fmt: skip


def test_where_it_does_not_pay_there_is_none(rng, monkeypatch):
    _, views = views_of(rng, n=12, v=24 * row_space._TERMS)
    assert RowSpace.of(views, k=23).size == 24
    assert RowSpace.of(views, k=24) is None  # vectors would leave the span
    assert RowSpace.of(views_of(rng, n=12, v=24 * row_space._TERMS - 1)[1], k=5) is None
    monkeypatch.setattr(row_space, "_MOST", 23)
    assert RowSpace.of(views, k=5) is None
    monkeypatch.setattr(row_space, "_MOST", 5)
    monkeypatch.setattr(row_space, "distinct_rows", untouched)
    assert RowSpace.of(views, k=5) is None


def test_documents_without_words_have_no_span():
    nothing = sparse.from_scipy(scipy.sparse.csr_matrix((6, 100)))
    assert RowSpace.of((nothing, nothing), k=1) is None
    assert not np.any(np.isnan(opca.fit((nothing, nothing), k=1).params.weights))


@pytest.mark.parametrize("centred", [False, True])
def test_every_product_inside_is_the_dense_one(rng, centred):
    picks, matrix = np.eye(6)[[1, 0, 5, 1, 2]], rng.normal(size=(6, 6))
    rows = 0.7 * (picks - centred * picks.mean(axis=0)) @ matrix
    factor = Inside(sparse.from_scipy(scipy.sparse.csr_matrix(picks)), jnp.asarray(matrix), centred=centred, scale=0.7)
    x, y = rng.normal(size=(6, 2)), rng.normal(size=(5, 2))
    np.testing.assert_allclose(factor.down(x), rows @ x, atol=1e-12)
    np.testing.assert_allclose(factor.up(y), rows.T @ y, atol=1e-12)
    np.testing.assert_allclose(factor.covariance(x), rows.T @ rows @ x, atol=1e-12)
    np.testing.assert_allclose(factor.primal(), rows.T @ rows, atol=1e-12)
    np.testing.assert_allclose(factor.dual(), rows @ rows.T, atol=1e-12)
    np.testing.assert_allclose(factor.diagonal(), np.diag(rows.T @ rows), atol=1e-12)


def test_a_matrix_of_another_size_is_refused():
    picks = sparse.from_scipy(scipy.sparse.identity(3, format="csr"))
    with pytest.raises(ValueError, match=r"matrix: expected shape \(3, 3\), got \(2, 2\)"):
        Inside(picks, jnp.eye(2), centred=False, scale=1.0)
