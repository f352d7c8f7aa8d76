from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.sparse import Vectors

cosine_grads = jax.jit(jax.grad(lambda a, b: jnp.sum(sparse.cosine(a, b)), argnums=(0, 1)))


def test_cosine_matches_the_reference_loop(rng):
    a, b = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    expected = [reference.cosine(x, y) for x, y in zip(a, b, strict=True)]
    np.testing.assert_allclose(sparse.cosine(a, b), expected, atol=1e-14)


@pytest.mark.parametrize("zero", ["a", "b", "both"])
def test_cosine_at_a_zero_vector_is_0_with_gradient_exactly_0(rng, zero):
    a = np.zeros((2, 3)) if zero in ("a", "both") else rng.normal(size=(2, 3))
    b = np.zeros((2, 3)) if zero in ("b", "both") else rng.normal(size=(2, 3))
    assert sparse.cosine(a, b).tolist() == [0.0, 0.0]
    for grad in cosine_grads(a, b):
        assert grad.tolist() == [[0.0] * 3] * 2


def test_unit_at_a_zero_vector_is_0_with_gradient_exactly_0():
    a = jnp.array([[0.0, 0.0], [3.0, 4.0]])
    np.testing.assert_allclose(sparse.unit(a), [[0.0, 0.0], [0.6, 0.8]], atol=1e-15)
    assert jax.jit(jax.grad(lambda a: jnp.sum(sparse.unit(a))))(a)[0].tolist() == [0.0, 0.0]


def test_cosine_gradient_matches_the_formula_and_finite_differences(rng):
    a, b, direction = rng.normal(size=(3, 5))
    grad = cosine_grads(a, b)[0]
    np.testing.assert_allclose(grad, reference.cosine_gradient(a, b), atol=1e-14)
    slope = reference.central_difference(lambda x: sparse.cosine(x, b), a, direction)
    assert slope == pytest.approx(float(np.dot(grad, direction)), rel=1e-7)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [1e-30, 1e30])
def test_cosine_does_not_depend_on_scale(rng, dtype, size):
    a, b = rng.normal(size=(2, 7)).astype(dtype)
    scaled = sparse.cosine(jnp.asarray(a * dtype(size)), jnp.asarray(b / dtype(size)))
    assert float(scaled) == pytest.approx(reference.cosine(a, b), rel=1e-5 if dtype == np.float32 else 1e-12)


def test_cosine_of_a_vector_with_itself_stays_within_1(rng):
    a = rng.normal(size=(200, 3)).astype(np.float32)
    assert np.max(sparse.cosine(a, a)) <= 1 and np.min(sparse.cosine(a, -a)) >= -1
    # The clip at 1 must not halve the gradient where rounding has just reached it.
    grad = cosine_grads(jnp.array([1.0, 0.0]), jnp.array([1.0, 1e-12]))[0]
    np.testing.assert_allclose(grad, [0.0, 1e-12], atol=1e-20)


def test_broadcasting_gives_every_pair(rng):
    a, b = rng.normal(size=(3, 1, 4)), rng.normal(size=(1, 5, 4))
    table = sparse.cosine(a, b)
    assert table.shape == (3, 5)
    assert float(table[2, 4]) == pytest.approx(reference.cosine(a[2, 0], b[0, 4]), abs=1e-14)


def test_whole_numbers_are_read_as_floats():
    assert float(sparse.cosine([1, 0], [1, 1])) == pytest.approx(1 / math.sqrt(2))
    assert float(sparse.dot([1, 2], [3, 4])) == 11.0


def test_distances_and_kernel_match_their_formulas():
    p, q = np.array([0.5, 0.5, 0.0]), np.array([0.25, 0.0, 0.75])
    m = (p + q) / 2
    divergence = (0.5 * math.log(0.5 / m[0]) + 0.5 * math.log(0.5 / m[1])) / 2
    divergence += (0.25 * math.log(0.25 / m[0]) + 0.75 * math.log(0.75 / m[2])) / 2
    assert float(sparse.jensen_shannon(p, q)) == pytest.approx(divergence)
    assert float(sparse.jensen_shannon(p, p)) == 0
    assert float(sparse.l1(p, q)) == pytest.approx(0.25 + 0.5 + 0.75)
    assert np.all(np.isfinite(jax.grad(sparse.jensen_shannon)(jnp.asarray(p), jnp.asarray(q))))


def test_no_dimensions_at_all():
    assert sparse.cosine(jnp.zeros((2, 0)), jnp.zeros((2, 0))).tolist() == [0.0, 0.0]
    assert sparse.unit(jnp.zeros((2, 0))).shape == (2, 0)


def test_number_of_documents_of_either_part():
    bare = sparse.from_scipy(scipy.sparse.csr_matrix((3, 2)))
    assert Vectors(dense=jnp.ones((4, 2))).num_docs == 4 and Vectors(sparse=bare).num_docs == 3
    with pytest.raises(ValueError, match="vectors: expected a dense or a sparse part, got neither"):
        _ = Vectors().num_docs


@pytest.mark.parametrize("apart", [1e-5, 1e-3, 0.05, 0.099, 0.101, 0.5])
def test_the_divergence_of_nearly_equal_shares_keeps_its_digits(rng, apart):
    first = rng.dirichlet(np.ones(50))
    second = first * (1 + apart * rng.choice([-1.0, 1.0], 50))
    first, second = (one.astype(np.float32) for one in (first, second / second.sum()))
    exact, other = first.astype(float), second.astype(float)
    middle, difference = (exact + other) / 2, (exact - other) / (exact + other)
    wanted = np.sum(middle * ((1 + difference) * np.log1p(difference) + (1 - difference) * np.log1p(-difference))) / 2
    assert float(sparse.jensen_shannon(first, second)) == pytest.approx(wanted, rel=1e-3 if apart < 1e-3 else 1e-5)
    given = jnp.asarray(exact), jnp.asarray(other)
    slope = np.log(exact / middle) / 2
    np.testing.assert_allclose(jax.grad(sparse.jensen_shannon)(*given), slope, rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("function", [sparse.cosine, sparse.dot, sparse.l1, sparse.jensen_shannon])
def test_shapes_that_do_not_fit_are_refused(function):
    with pytest.raises(ValueError, match=r"b: expected last axis 3 \(as a\), got 2"):
        function(jnp.ones(3), jnp.ones(2))
    with pytest.raises(ValueError, match="a, b: expected at least one axis"):
        function(1.0, 2.0)
    with pytest.raises(ValueError, match="a: expected real numbers, got complex"):
        function(jnp.ones(3, complex), jnp.ones(3))


def test_nan_is_not_taken_for_zero():
    assert np.isnan(sparse.unit(jnp.array([jnp.nan, 1.0]))).all()
    assert np.isnan(sparse.cosine(jnp.array([jnp.nan, 1.0]), jnp.array([1.0, 1.0])))


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_vectors_below_the_smallest_normal_number_have_no_nan(dtype):
    least = np.full((2, 2), np.finfo(dtype).smallest_subnormal, dtype)
    assert not np.any(np.isnan(sparse.cosine(least, np.ones((2, 2), dtype))))
    assert not np.any(np.isnan(sparse.unit(least)))


@pytest.mark.parametrize(("rows", "message"), [
    ([7], r"rows: expected rows in \[0, 3\), got \[7\]"), ([0, -1], r"rows: expected rows in \[0, 3\), got \[-1\]"),
    ([True, False, True], "rows: expected integers, got bool")])
def test_rows_that_do_not_exist_are_refused(rows, message):
    with pytest.raises(ValueError, match=message):
        sparse.take(Vectors(jnp.eye(3)), rows)
