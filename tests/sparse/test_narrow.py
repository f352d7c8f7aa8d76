"""Weights of 16 and of 8 bits, and their product with documents."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim.sparse import host, narrow


@pytest.fixture(params=["compiled", "SciPy"])
def way(request, monkeypatch):
    if request.param == "SciPy":
        monkeypatch.setattr(host, "compiled", lambda: None)
    else:
        pytest.importorskip("numba")
    return request.param


def documents(rng, lengths, num_terms=60):
    columns = np.concatenate([np.sort(rng.choice(num_terms, size, replace=False)) for size in lengths])
    ends = np.concatenate([[0], np.cumsum(lengths)])
    return scipy.sparse.csr_matrix((rng.normal(size=len(columns)).astype(np.float32), columns, ends),
                                   (len(lengths), num_terms))  # fmt: skip


@pytest.mark.parametrize("kind", narrow.KINDS)
@pytest.mark.parametrize("columns", [1, 7, 8, 16, 17, 100, 300])
def test_the_product_is_that_of_the_rounded_numbers(rng, way, kind, columns):
    rows = documents(rng, [0, 1, 8, 33, 60, 0])
    weights = narrow.narrowed(rng.normal(size=(60, columns)) * rng.lognormal(size=(60, 1)), kind)
    found = narrow.rows_product(rows, weights)
    exact = rows.astype(np.float64) @ np.asarray(weights, np.float64)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, exact, atol=2e-6 * np.abs(exact).max())
    assert not found[[0, 5]].any() and narrow.rows_product(rows[:0], weights).shape == (0, columns)


def test_a_row_has_the_same_bits_in_any_batch(rng, way):
    rows = documents(rng, rng.integers(0, 60, 40))
    weights = narrow.narrowed(rng.normal(size=(60, 33)), "int8")
    np.testing.assert_array_equal(narrow.rows_product(rows[17:18], weights), narrow.rows_product(rows, weights)[17:18])


def test_rounding_is_off_by_half_a_step_at_most(rng):
    wide = rng.normal(size=(50, 20)) * np.exp(rng.normal(size=(50, 1)) * 8)
    wide[3], wide[4] = 0, 1e-45
    eight, half = narrow.narrowed(wide, "int8"), narrow.narrowed(np.clip(wide, -6e4, 6e4), "float16")
    steps = np.abs(wide).max(axis=1) / 127
    apart = np.abs(np.asarray(eight, np.float64) - wide)
    assert np.all(apart <= (0.5 + 1e-4) * steps[:, None] + 1e-44)
    assert np.all(np.abs(half - np.clip(wide, -6e4, 6e4)) <= np.maximum(np.abs(wide) * 2.0**-11, 2.0**-25))
    np.testing.assert_array_equal(np.asarray(eight[[2, 0]]), np.asarray(eight)[[2, 0]])
    np.testing.assert_array_equal(jnp.asarray(eight), np.asarray(eight))


@pytest.mark.parametrize(("made", "message"), [
    (lambda: narrow.narrowed(np.ones((1, 1)), "int4"), "weights: expected one of float16, int8, got int4"),
    (lambda: narrow.narrowed(np.ones(1), "int8"), "weights: expected a matrix, got 1 axes"),
    (lambda: narrow.narrowed(np.array([[np.nan]]), "int8"), "weights: expected finite numbers, got NaN or infinity"),
    (lambda: narrow.narrowed(np.array([[7e4]]), "float16"), "weights: expected numbers of at most 65,504, for float16"),
    (lambda: narrow.ScaledRows(np.ones((2, 1), np.int8), np.ones(3, np.float32)), r"scale: expected .*\(2,\), got"),
    (lambda: narrow.ScaledRows(np.ones((1, 1), np.int8), -np.ones(1, np.float32)), "scale: expected numbers of at lea"),
    (lambda: narrow.rows_product(scipy.sparse.csr_matrix((1, 3)), np.ones((2, 1), np.float16)), r"shape \(3, k\), got"),
    (lambda: narrow.rows_product(scipy.sparse.csr_matrix((1, 3)), np.ones((3, 1))), "float16 or int8, got float64"),
])  # fmt: skip
def test_what_cannot_be_rounded_or_multiplied_is_refused(made, message):
    with pytest.raises(ValueError, match=message):
        made()
