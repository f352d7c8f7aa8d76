"""Expectation maximisation over padded rows: expected counts, and the loop's checkpoints."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim.optim import em


def counts(rng, rows=13, columns=40):
    """Rows of 0 to 40 slots, so that they lie in several buckets."""
    dense = rng.poisson(2.0, (rows, columns)) * (rng.random((rows, columns)) < np.linspace(0, 1, rows)[:, None])
    return scipy.sparse.csr_matrix(dense.astype(np.float64))


@pytest.mark.parametrize("numbers", [8, 2**17])
def test_expected_counts_are_those_of_the_definition_whatever_the_blocks(rng, monkeypatch, numbers):
    monkeypatch.setattr(em, "_NUMBERS", numbers)
    matrix, k = counts(rng), 3
    theta, phi = rng.random((13, k)), rng.random((40, k))
    packed, order = em.buckets([matrix], k=k)
    assert sorted(order[order >= 0]) == list(range(13)) and len(packed.indices) > 2
    found, likelihood = em.expected(packed, jnp.asarray(theta)[np.maximum(order, 0)], jnp.asarray(phi))
    rate = theta @ phi.T
    wanted = theta * ((matrix.toarray() / rate) @ phi)
    np.testing.assert_allclose(found[order >= 0], wanted[order[order >= 0]], rtol=1e-12)
    np.testing.assert_allclose(likelihood, np.sum(matrix.toarray() * np.log(rate)), rtol=1e-12)
    assert not np.any(found[order < 0])


def test_devices_have_the_same_rows_at_the_same_places(rng):
    parts = [counts(rng), counts(rng)[::-1]]
    packed, order = em.buckets(parts, k=2)
    for device, part in enumerate(parts):
        sums = np.concatenate([np.asarray(values[device]).sum(axis=-1).ravel() for values in packed.values])
        np.testing.assert_array_equal(sums[order >= 0], np.asarray(part.sum(axis=1)).ravel()[order[order >= 0]])


def test_an_entry_that_no_component_explains_adds_nothing():
    packed, _ = em.buckets([scipy.sparse.csr_matrix([[2.0, 3.0]])], k=2)
    found, likelihood = em.expected(packed, jnp.array([[1.0, 0.0]]), jnp.eye(2))
    assert found.tolist() == [[2.0, 0.0]] and float(likelihood) == 0.0


def halving(state):
    params, count = state
    return (params * 0.7 + 0.1 * count, count + 1), jnp.sum(params**2)


def test_a_resumed_run_is_the_uninterrupted_one_bit_for_bit(tmp_path):
    step = jax.jit(halving, donate_argnums=0)
    start = jnp.linspace(0, 1, 7), jnp.zeros(())
    whole = em.maximize(step, start, mark=str, max_iter=6, each=3)
    em.maximize(step, start, mark=str, max_iter=2, each=3, checkpoint=tmp_path)
    resumed = em.maximize(step, start, mark=str, max_iter=6, each=3, checkpoint=tmp_path)
    np.testing.assert_array_equal(resumed.params, whole.params)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
    assert whole.steps == 6 and whole.evaluations == 18


def test_patience_ends_a_run_with_the_best_parameters():
    fit = em.maximize(jax.jit(halving), (jnp.ones(2), jnp.zeros(())), mark=str, max_iter=50, patience=3,
                      validate=lambda params: -abs(float(params[0]) - 0.6))
    assert fit.converged and fit.steps < 50
    scores = [entry["validation"] for entry in fit.history]
    assert -abs(float(fit.params[0]) - 0.6) == max(scores)
