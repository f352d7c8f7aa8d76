from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import optim, sparse
from jaxsim.methods import s2net
from jaxsim.optim import lbfgs_optax


def quadratic(x, data):
    curvature, target = data
    return jnp.sum(curvature * (x["a"] - target) ** 2) + x["b"] ** 2


START = {"a": jnp.zeros(6), "b": jnp.asarray(3.0)}


@pytest.fixture
def data(rng):
    return jnp.logspace(-1, 2, 6), jnp.asarray(rng.normal(size=6))


def test_a_quadratic_has_the_same_optimum(data):
    before = lbfgs_optax._step._cache_size()
    fit = optim.minimize_lbfgs(quadratic, START, data, solver="optax", tol=1e-8)
    assert fit.converged and 0 < fit.steps < 50 and fit.evaluations > fit.steps
    np.testing.assert_allclose(fit.params["a"], data[1], atol=1e-6)
    assert [entry["step"] for entry in fit.history] == list(range(fit.steps + 1))
    assert lbfgs_optax._step._cache_size() <= before + 1


def test_the_first_step_is_tried_at_the_length_asked_for(data):
    evaluations = [optim.minimize_lbfgs(quadratic, START, data, solver="optax", max_iter=1, first_step=step).evaluations
                   for step in (1e-2, 1e-2 / 2**10)]
    assert evaluations[1] >= evaluations[0] + 8  # the search doubles a step that is too short


def test_s2net_reaches_the_loss_of_jaxopt(rng):
    # Few documents and many dimensions: elsewhere some document falls to zero, where the cosine has a cusp.
    left = rng.poisson(1.0, (10, 12)) + np.eye(10, 12)
    sides = [sparse.from_scipy(scipy.sparse.csr_matrix(left + rng.poisson(0.2, (10, 12)))) for _ in range(2)]
    start = s2net.random_init(12, 6, key=jax.random.key(0))
    ours, other = (s2net.fit(*sides, init=start, gamma=3.0, beta=0.3, max_iter=200, tol=1e-6, solver=solver)
                   for solver in ("jaxopt", "optax"))
    assert ours.converged and other.converged and ours.loss < 0.7 * ours.history[0]["loss"]
    assert other.loss == pytest.approx(ours.loss, rel=1e-9)
    np.testing.assert_allclose(other.params.weights, ours.params.weights, atol=1e-4)


def test_validation_stops_it_and_gives_the_best_parameters(data):
    scores = iter([0.0, 2.0, 1.0, 0.5])
    fit = optim.minimize_lbfgs(quadratic, START, data, solver="optax", validate=lambda params: next(scores), patience=2)
    assert fit.steps == 3 and fit.loss == fit.history[1]["loss"]
    assert float(quadratic(fit.params, data)) == pytest.approx(fit.loss)


def test_what_it_cannot_do_is_refused(data, tmp_path, monkeypatch):
    with pytest.raises(NotImplementedError, match='checkpoint: expected None with solver="optax"'):
        optim.minimize_lbfgs(quadratic, START, data, solver="optax", checkpoint=tmp_path)
    with pytest.raises(ValueError, match="solver: expected jaxopt or optax, got scipy"):
        optim.minimize_lbfgs(quadratic, START, data, solver="scipy")
    with pytest.raises(FloatingPointError, match="expected a finite loss, got nan at step 0"):
        optim.minimize_lbfgs(quadratic, {**START, "b": jnp.asarray(jnp.nan)}, data, solver="optax")
    monkeypatch.setattr(optim.lbfgs, "_jaxopt", lambda: None)
    with pytest.raises(ImportError, match='pass solver="optax"'):
        optim.minimize_lbfgs(quadratic, START, data)
    assert optim.minimize_lbfgs(quadratic, START, data, solver="optax", max_iter=2).steps == 2


def test_single_precision_stays_single(data):
    single = jax.tree.map(lambda leaf: leaf.astype(jnp.float32), (START, data))
    fit = optim.minimize_lbfgs(quadratic, *single, solver="optax", tol=1e-3)
    assert fit.converged and {leaf.dtype for leaf in jax.tree.leaves(fit.params)} == {np.dtype(np.float32)}


@jax.custom_jvp
def flat(x):
    return jnp.sum(0 * x) + 1.0


flat.defjvp(lambda at, along: (flat(at[0]), jnp.sum(along[0])))


def test_a_line_search_that_finds_nothing_lower_ends_the_fit():
    fit = optim.minimize_lbfgs(lambda x, data: flat(x), jnp.ones(3), None, solver="optax", max_iter=9)
    assert not fit.converged and fit.steps == 0 and fit.history[-1]["stop"] == "line search failed"
    assert fit.params.tolist() == [1.0] * 3
