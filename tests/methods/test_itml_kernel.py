"""ITML of inner products: against the published full-matrix updates and against ITML of projected documents."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import reference_metric
import scipy.sparse

from jaxsim import sparse
from jaxsim.data import labelled_pairs
from jaxsim.methods import itml
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights import itml_kernel, metric
from jaxsim.methods.weights.itml_kernel import Kernel

N = 26  # every pair of so many documents is more than a block


def put(dense):
    return sparse.from_scipy(scipy.sparse.csr_matrix(dense))


def every_pair(rng, n=N):
    left, right = np.triu_indices(n, 1)
    return labelled_pairs.labelled(left, right, (rng.random(left.size) < 0.3).astype(float), num_left=n, num_right=n)


def learned(params):
    """``A``, ``[num_terms, num_terms]``."""
    basis, gains = map(np.asarray, params)
    return np.eye(len(basis)) + basis * gains @ basis.T


@pytest.fixture
def dense(rng):
    result = rng.normal(size=(N, 9))
    result[5], result[6], result[7] = result[4], 0, 0  # equal documents, and empty ones
    return result


@pytest.mark.parametrize("slack", [0.1, 10.0])
def test_in_all_dimensions_it_is_the_published_algorithm(dense, rng, slack):
    chosen = every_pair(rng)
    found = itml_kernel.fit(put(dense), put(dense), chosen, bounds=(2.0, 9.0), slack=slack, max_iter=4, tol=0.0)
    apart = dense[np.asarray(chosen.left)] - dense[np.asarray(chosen.right)]
    differ = np.any(apart != 0, axis=1)
    expected = reference_metric.itml(apart[differ], np.asarray(chosen.labels)[differ] == 1, 2.0, 9.0, slack, 4)
    np.testing.assert_allclose(learned(found.params), expected, atol=1e-10)
    assert found.steps == 4 and not np.allclose(expected, np.eye(9), atol=0.1)


@pytest.mark.parametrize("k", [2, 9])
@pytest.mark.parametrize("two_sides", [False, True])
def test_it_is_itml_of_projected_documents(dense, rng, k, two_sides):
    start, chosen = Projection(jnp.asarray(rng.normal(size=(9, k)))), every_pair(rng)
    left = put(dense)
    right = put(rng.normal(size=(N, 9))) if two_sides else left
    options = {"init": start, "percentiles": (25.0, 75.0), "slack": 2.0, "max_iter": 5, "tol": 0.0}
    found = itml_kernel.fit(left, right, chosen, **options)
    expected = itml.fit(left, right, chosen, identity=True, **options)
    np.testing.assert_allclose(learned(found.params), learned(expected.params), atol=1e-10)
    for mine, theirs in zip(found.history[1:], expected.history[1:], strict=True):
        np.testing.assert_allclose(mine["change"], theirs["change"], rtol=1e-8)


def test_documents_that_depend_on_one_another_but_for_rounding_do_not_spoil_the_metric(rng):
    """Texts that quote two others, of length one in float32: directions in which they differ are rounding."""
    rows = rng.normal(size=(60, 90)) * (rng.random((60, 90)) < 0.1)
    rows[40:50] = rows[:10] + rows[10:20]
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    documents, chosen = sparse.from_scipy(scipy.sparse.csr_matrix(rows)), every_pair(rng, 60)
    basis = np.linalg.svd(rows.astype(np.float64), full_matrices=False)[2][:55].T
    options = {"init": Projection(jnp.asarray(basis)), "bounds": (0.3, 1.9), "max_iter": 5, "tol": 0.0}
    found = itml_kernel.fit(documents, documents, chosen, **options).params
    expected = itml.fit(documents, documents, chosen, identity=True, **options).params
    np.testing.assert_allclose(learned(found), learned(expected), atol=1e-3)
    assert np.abs(learned(expected) - np.eye(90)).max() > 0.1


@pytest.mark.parametrize("times", [1e-60, 1e-6, 1e5, 1e60])
def test_the_unit_of_the_weights_does_not_matter(dense, rng, times):
    chosen = every_pair(rng)
    plain, other = (itml_kernel.fit(put(dense * by), put(dense * by), chosen, max_iter=3, tol=0.0).params
                    for by in (1.0, times))  # fmt: skip
    np.testing.assert_allclose(learned(other), learned(plain), atol=1e-9)


def test_what_is_validated_is_the_metric_and_the_best_cycle_is_kept(dense, rng):
    chosen, others, scores = every_pair(rng), put(rng.normal(size=(7, 9))), iter([0.1, 0.4, 0.2, 0.3])
    seen = []

    def validate(params):
        assert isinstance(params, Kernel)
        seen.append(itml_kernel.products(params, others))
        converted = itml_kernel.metric_of(params)
        csr = sparse.to_scipy(others).toarray()
        np.testing.assert_allclose(seen[-1], csr @ learned(converted) @ csr.T, atol=1e-9)
        return next(scores)

    found = itml_kernel.fit(put(dense), put(dense), chosen, max_iter=9, patience=2, tol=0.0, validate=validate)
    assert found.steps == 3 and found.best_score == 0.4
    csr = sparse.to_scipy(others).toarray()
    np.testing.assert_allclose(csr @ learned(found.params) @ csr.T, seen[1], atol=1e-9)
    np.testing.assert_allclose(seen[0], csr @ csr.T, atol=1e-12)
    vectors = metric.encode(found.params, others)
    signed = np.asarray(vectors.dense) * np.asarray(metric.signs(found.params)) @ np.asarray(vectors.dense).T
    own = sparse.to_scipy(vectors.sparse).toarray()
    length = np.sqrt(np.diag(seen[1]))
    np.testing.assert_allclose(signed + own @ own.T, seen[1] / np.outer(length, length), atol=1e-9)


def test_bad_input_is_refused(dense, rng):
    documents, chosen = put(dense), every_pair(rng)
    none = labelled_pairs.labelled([6], [7], [1.0], num_left=N, num_right=N)
    for pairs, options, message in (
        (chosen, {"init": Projection(jnp.ones((9, 2)))}, "init: expected independent columns"),
        (chosen, {"init": Projection(jnp.ones((8, 2)))}, "init: expected shape"),
        (chosen, {"slack": 0.0}, "slack: expected"),
        (chosen, {"percentiles": (5.0, 101.0)}, "percentiles: expected two numbers"),
        (none, {}, "pairs: expected documents with weights, got only empty documents"),
        (chosen, {"checkpoint": "here"}, "ITML"),
    ):
        with pytest.raises(ValueError, match=message):
            itml_kernel.fit(documents, documents, pairs, **options)
    found = Kernel(np.eye(1), np.eye(1), np.eye(1), np.ones((9, 1)))
    with pytest.raises(ValueError, match="terms: expected 9 terms, got 4"):
        itml_kernel.products(found, put(np.ones((2, 4))))
