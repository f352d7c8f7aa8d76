"""S2Net by minibatches: its objective is the exact one on a batch of everything, and it learns."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse
from jaxsim.evaluate import mates
from jaxsim.methods import s2net, s2net_sgd
from jaxsim.methods.projections import Projection

M, V, K = 40, 30, 6


@pytest.fixture
def sides(rng):
    """Mates that share a topic of three words, and have words of their own."""
    left, right = np.zeros((M, V)), np.zeros((M, V))
    for i in range(M):
        topic = rng.choice(15, 3, replace=False)
        left[i, topic] = right[i, topic + 15] = rng.uniform(0.5, 2.0, 3)
        left[i, rng.integers(15)] += 0.3
    left[3] = 0  # an empty document
    return tuple(sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in (left, right))


def start():
    return s2net.random_init(V, K, key=jax.random.key(0))


def test_one_batch_of_everything_has_the_exact_objective_and_gradient(sides):
    groups = jnp.arange(M, dtype=jnp.int32) // 2
    gamma, zero = jnp.asarray(10.0), jnp.asarray(0.0)
    data = s2net.Data(*sides, gamma, zero, start(), groups=groups)
    exact = jax.jit(jax.value_and_grad(s2net.objective))(start(), data)
    objective = jax.jit(jax.value_and_grad(s2net_sgd.objective))
    batch = objective(start(), s2net_sgd.Batch(*sides, gamma, groups))
    assert float(batch[0]) == pytest.approx(float(exact[0]), rel=1e-12)
    np.testing.assert_allclose(batch[1].weights, exact[1].weights, atol=1e-12)
    rows = scipy.sparse.vstack([sparse.to_scipy(side) for side in sides])
    merged = s2net_sgd.Batch(sparse.from_scipy(rows, pad_nnz=rows.nnz + 5), None, gamma, groups)
    merged = objective(start(), merged)
    assert float(merged[0]) == pytest.approx(float(exact[0]), rel=1e-12)
    np.testing.assert_allclose(merged[1].weights, exact[1].weights, atol=1e-12)


@pytest.mark.parametrize("batch_size", [2, 7, M, 256])
def test_it_learns_and_one_seed_gives_one_result_bit_for_bit(sides, batch_size):
    def fit(seed):
        return s2net_sgd.fit(*sides, init=start(), key=jax.random.key(seed), batch_size=batch_size, max_iter=30)

    first, again, other = fit(0), fit(0), fit(1)
    assert first.loss < 0.5 * first.history[1]["loss"]
    assert mates.validator(sides)(first.params) > mates.validator(sides)(start()) + 0.2
    np.testing.assert_array_equal(first.params.weights, again.params.weights)
    assert batch_size >= M or np.any(np.asarray(first.params.weights) != np.asarray(other.params.weights))
    assert first.evaluations == 30 * max(M // batch_size, 1)


@pytest.mark.parametrize("power", [-110, -73, -20, 10, 25, 29, 60, 100])
def test_the_scale_of_the_start_does_not_matter(sides, without_64_bits, power):
    matrices = [sparse.to_scipy(side).astype(np.float32) for side in sides]
    with without_64_bits():
        first = s2net.random_init(V, K, key=jax.random.key(0))
        first, far = (s2net_sgd.fit(*map(sparse.from_scipy, matrices), init=init, key=jax.random.key(0), batch_size=7,
                                    max_iter=5)
                      for init in (first, Projection(np.ldexp(np.asarray(first.weights), power))))  # fmt: skip
    assert first.loss < 0.9 * first.history[1]["loss"]
    assert far.loss == pytest.approx(first.loss, rel=1e-3)
    expected = np.ldexp(np.asarray(first.params.weights), power if abs(power) < 30 else 0)
    apart = np.abs(np.log2(np.abs(far.params.weights).max() / np.abs(expected).max()))
    assert apart < 2 if abs(power) >= 30 else apart < 1e-5


def test_sides_without_a_common_term_learn_the_same_from_one_matrix_and_from_two(sides):
    # Documents go together where the sides share a projection, and apart where each has its own.
    def fit(init):
        return s2net_sgd.fit(*sides, init=init, key=jax.random.key(0), batch_size=7, max_iter=3)

    shared, apart = fit(start()), fit((start(), start()))
    assert shared.loss == pytest.approx(apart.loss, rel=1e-9)
    first, second = (side.weights for side in apart.params)
    np.testing.assert_allclose(shared.params.weights[:15], first[:15], atol=1e-9)
    np.testing.assert_allclose(shared.params.weights[15:], second[15:], atol=1e-9)


@pytest.mark.parametrize("both", [False, True])
def test_slices_as_a_tpu_has_them_learn_the_same(sides, monkeypatch, both):
    init = (start(), start()) if both else start()

    def fit():
        return s2net_sgd.fit(*sides, init=init, key=jax.random.key(0), batch_size=7, max_iter=3)

    rows = fit()
    monkeypatch.setattr(jax, "default_backend", lambda: "tpu")
    assert isinstance(s2net_sgd.documents_of(sparse.to_scipy(sides[0]), M), sparse.Slices)
    slices = fit()
    assert slices.loss == pytest.approx(rows.loss, rel=1e-9)
    for one, other in zip(jax.tree.leaves(slices.params), jax.tree.leaves(rows.params), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


def test_two_matrices_an_activation_and_early_stopping(sides):
    two = start(), Projection(start().weights * 2)
    fit = s2net_sgd.fit(*sides, init=two, key=jax.random.key(0), batch_size=10, activation=jnp.tanh, max_iter=50,
                        validate=lambda params: 0.0, patience=3)
    assert len(fit.params) == 2 and fit.converged
    assert len(fit.history) <= 5


def test_a_stopped_fit_goes_on_bit_for_bit(sides, tmp_path):
    def fit(epochs_seen, **options):
        def stop(params):
            epochs_seen.append(None)
            if options.get("checkpoint") and len(epochs_seen) == 4:
                raise KeyboardInterrupt
            return 0.0

        return s2net_sgd.fit(*sides, init=start(), key=jax.random.key(0), batch_size=8, max_iter=6, validate=stop,
                             **options)

    whole = fit([])
    with pytest.raises(KeyboardInterrupt):
        fit([], checkpoint=tmp_path)
    resumed = fit([None] * 10, checkpoint=tmp_path)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
    np.testing.assert_array_equal(resumed.params.weights, whole.params.weights)


@pytest.mark.parametrize("other", [
    {"gamma": 80.0}, {"batch_size": 10}, {"groups": np.arange(M) // 2}, {"activation": jax.nn.sigmoid},
    {"activation": None}, {"precision": "bfloat16"}, {"weights": np.ones(M)}, {"left": True}, {"right": True},
])
def test_a_checkpoint_of_other_batches_or_of_another_objective_is_refused(sides, tmp_path, other):
    # Each learns something else, although start, key and learning rate are the same.
    options = {"init": (start(), start()), "key": jax.random.key(0), "batch_size": 8, "max_iter": 1,
               "activation": jnp.tanh, "checkpoint": tmp_path}  # fmt: skip
    first = s2net_sgd.fit(*sides, **options)
    assert s2net_sgd.fit(*sides, **options).loss == first.loss
    turned = sparse.from_scipy(sparse.to_scipy(sides[0])[::-1]), sparse.from_scipy(sparse.to_scipy(sides[1])[::-1])
    given = [new if other.get(name) else old for name, old, new in zip(("left", "right"), sides, turned, strict=True)]
    more = {name: value for name, value in other.items() if name not in ("left", "right")}
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        s2net_sgd.fit(*given, **{**options, **more})


@pytest.mark.parametrize(("options", "message"), [
    ({"batch_size": 1}, "batch_size: expected at least 2"),
    ({"batch_size": 2.5}, "batch_size: expected a whole number"),
    ({"learning_rate": 0.0}, "learning_rate: expected a positive number"),
    ({"groups": [0] * M}, "groups: expected at least two groups"),
    ({"gamma": float("nan")}, "gamma: expected a positive number"),
])
def test_bad_settings_are_refused(sides, options, message):
    with pytest.raises(ValueError, match=message):
        s2net_sgd.fit(*sides, init=start(), key=jax.random.key(0), **options)
