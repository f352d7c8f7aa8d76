from __future__ import annotations

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference

from jaxsim import losses
from jaxsim.losses import tile_kernel, tiles


def _all_pairs(left, right, gamma, groups=None, block_size=None):
    return losses.all_pairs_logistic(left, right, gamma=gamma, groups=groups, block_size=block_size)


# Compiled once a shape; gamma is traced, so that both branches are compiled together.
value_only = jax.jit(_all_pairs, static_argnames="block_size")
value_and_grads = jax.jit(jax.value_and_grad(_all_pairs, argnums=(0, 1)), static_argnames="block_size")

EXTREMES = [-1e4, -700.0, -30.0, -1.0, -1e-8, 0.0, 1e-8, 1.0, 30.0, 700.0, 1e4]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_logistic_pairwise_is_finite_and_accurate_at_the_extremes(dtype):
    delta = np.array(EXTREMES, dtype)
    expected = [reference.logistic_pairwise(float(x), 1.0) for x in delta]
    value = losses.logistic_pairwise(delta, gamma=dtype(1.0))
    assert value.dtype == dtype and value.shape == delta.shape
    np.testing.assert_allclose(value, expected, rtol=2e-6 if dtype == np.float32 else 1e-14, atol=1e-37)
    slopes = jax.vmap(jax.grad(lambda x: losses.logistic_pairwise(x, gamma=1.0)))(jnp.asarray(delta))
    # Errata 1 of 000: the derivative is -1 / (1 + exp(x)), not -1 / (1 + exp(-x)).
    expected = [-reference.sigmoid(-float(x)) for x in delta]
    np.testing.assert_allclose(slopes, expected, rtol=2e-6 if dtype == np.float32 else 1e-13, atol=1e-37)


def test_elementwise_losses_match_the_reference_loops(rng):
    a, b = rng.normal(size=(2, 3, 4))
    labels = rng.integers(0, 2, (3, 4)).astype(float)
    table = [
        (losses.logistic_pairwise(a, gamma=10.0), lambda i: reference.logistic_pairwise(a[i], 10.0)),
        (losses.margin_ranking(a, b, margin=0.5), lambda i: reference.margin_ranking(a[i], b[i], 0.5)),
        (losses.squared(labels, a), lambda i: reference.squared(labels[i], a[i])),
        (losses.log(labels, a, bound=1e-3), lambda i: reference.log(labels[i], a[i], 1e-3)),
    ]
    for value, expected in table:
        assert value.shape == (3, 4)
        for index in np.ndindex(3, 4):
            assert float(value[index]) == pytest.approx(expected(index), abs=1e-13)


def test_log_loss_of_a_cosine_outside_0_to_1_is_bounded():
    assert float(losses.log(1.0, -0.3)) == pytest.approx(-math.log(1e-6))
    assert float(losses.log(0.0, 1.0)) == pytest.approx(-math.log(1e-6))
    assert np.isfinite(jax.grad(lambda s: losses.log(1.0, s))(-0.3))


@pytest.mark.parametrize("gamma", [1.0, 10.0, 20.0, 25.0, 200.0])
@pytest.mark.parametrize(("m", "block_size"), [
    (2, None), (7, 3), (7, 100), (13, 1), (12, 12), (13, (5, 3)), (12, (4, 6)), (7, (100, 2)), (5, (1, 1))])
def test_all_pairs_logistic_and_its_gradient_match_the_loops(rng, m, block_size, gamma):
    left, right = rng.normal(size=(2, m, 3))
    right = right + left
    left[m // 2] = 0  # an empty document
    loss, d_left, d_right = reference.all_pairs_logistic(left, right, gamma)

    value, grads = value_and_grads(left, right, gamma, block_size=block_size)
    assert float(value) == pytest.approx(loss, rel=1e-12)
    assert float(value_only(left, right, gamma, block_size=block_size)) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(grads[0], d_left, atol=1e-12 * gamma)
    np.testing.assert_allclose(grads[1], d_right, atol=1e-12 * gamma)
    assert grads[0][m // 2].tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("gamma", [10.0, 50.0])
@pytest.mark.parametrize("block_size", [None, 1, 3, 100, (3, 2), (2, 4)])
@pytest.mark.parametrize("columns", [1, 2, 3])
def test_pairs_of_one_group_are_no_negatives_of_each_other(rng, block_size, gamma, columns):
    left, right = rng.normal(size=(2, 7, 3))
    groups = np.array([[5, -1, 5, 0, 2, 5, -1], [0, 0, 1, 2, 3, 1, 4], [9, 8, 9, 7, 7, 9, 6]])[:columns].T
    groups = groups[:, 0] if columns == 1 else groups
    loss, d_left, d_right = reference.all_pairs_logistic(left, right, gamma, groups)
    value, grads = value_and_grads(left, right, gamma, groups, block_size=block_size)
    assert float(value) == pytest.approx(loss, rel=1e-12)
    assert float(value_only(left, right, gamma, groups, block_size=block_size)) == pytest.approx(loss, rel=1e-12)
    np.testing.assert_allclose(grads[0], d_left, atol=1e-12 * gamma)
    np.testing.assert_allclose(grads[1], d_right, atol=1e-12 * gamma)


def test_groups_of_one_pair_each_change_nothing_and_a_single_group_leaves_no_negatives(rng):
    left, right = rng.normal(size=(2, 300, 3))
    each = value_and_grads(left, right, 10.0, np.arange(300))
    assert float(each[0]) == pytest.approx(float(value_only(left, right, 10.0)), rel=1e-14)
    value, grads = value_and_grads(left, right, 10.0, np.zeros(300, int))
    assert float(value) == 0 and not np.any(grads[0]) and not np.any(grads[1])


@jax.jit
def weighted(left, right, gamma, groups, weights):
    def loss(left, right):
        return losses.all_pairs_logistic(left, right, gamma=gamma, groups=groups, weights=weights, block_size=(3, 2))

    return jax.value_and_grad(loss, argnums=(0, 1))(left, right)


@pytest.mark.parametrize("gamma", [10.0, 50.0])
@pytest.mark.parametrize("groups", [None, [[5], [1], [5], [0], [2], [5], [1]],
                                    [[5, 0], [1, 0], [5, 1], [0, 2], [2, 3], [5, 1], [1, 4]]])
def test_a_weighted_pair_counts_as_often_as_its_weight(rng, gamma, groups):
    left, right = rng.normal(size=(2, 7, 3))
    groups = None if groups is None else np.array(groups)
    for weights in (np.array([3.0, 1, 2, 1, 4, 1, 2]), np.array([0.5, 1e3, 0, 2, 1e-3, 7, 0])):
        loss, d_left, d_right = reference.all_pairs_logistic(left, right, gamma, groups, weights)
        value, grads = weighted(left, right, gamma, groups, weights)
        assert float(value) == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(grads[0], d_left, atol=1e-12 * gamma)
        np.testing.assert_allclose(grads[1], d_right, atol=1e-12 * gamma)
        other = weighted(left, right, gamma, groups, 1e200 * weights)  # their scale is nothing
        assert float(other[0]) == pytest.approx(loss, rel=1e-12)


@pytest.mark.parametrize("grouped", [False, True])
def test_a_weight_is_that_many_copies_in_one_group(rng, grouped):
    left, right = rng.normal(size=(2, 7, 3))
    weights, groups = np.array([3, 1, 2, 1, 4, 1, 2]), np.array([[0], [1], [2], [3], [1], [5], [6]])
    copies = np.repeat(np.arange(7), weights)
    if not grouped:
        groups = np.arange(7)[:, None]
    expected, slopes = value_and_grads(left[copies], right[copies], 10.0, groups[copies])
    value, grads = weighted(left, right, 10.0, groups if grouped else None, weights)
    assert float(value) == pytest.approx(float(expected), rel=1e-12)
    for grad, slope in zip(grads, slopes, strict=True):
        sums = np.zeros_like(left)
        np.add.at(sums, copies, slope)  # of all copies of a pair
        np.testing.assert_allclose(grad, sums, atol=1e-12)


def test_equal_weights_change_nothing_and_none_leave_nothing(rng):
    left, right = rng.normal(size=(2, 7, 3))
    plain, grads = value_and_grads(left, right, 10.0, block_size=3)
    value, same = weighted(left, right, 10.0, None, np.full(7, 0.3))
    assert float(value) == pytest.approx(float(plain), rel=1e-13)
    np.testing.assert_allclose(same, grads, atol=1e-13)
    for weights in (np.zeros(7), np.eye(7)[2]):  # one pair has no negatives
        value, grads = weighted(left, right, 10.0, None, weights)
        assert float(value) == 0 and not np.any(grads[0]) and not np.any(grads[1])
    same = np.ones((7, 3))
    assert float(weighted(same, same, 10.0, None, np.arange(7.0))[0]) == pytest.approx(math.log(2), rel=1e-12)


@pytest.mark.parametrize("traced", [False, True])
@pytest.mark.parametrize("small", [1e-3, 1e-6, 1e-8])
def test_few_negatives_are_counted_with_all_digits(rng, without_64_bits, small, traced):
    left, right = rng.normal(size=(2, 6, 3)).astype(np.float32)
    groups, weights = np.array([0, 0, 0, 0, 0, 1]), np.array([1, 0.7, 0.3, 0.9, 0.55, small])
    with without_64_bits():
        loss = jax.jit(weighted_loss) if traced else weighted_loss
        value = float(loss(left, right, groups, weights.astype(np.float32)))
    assert value == pytest.approx(reference.all_pairs_logistic(left, right, 5.0, groups, weights)[0], rel=1e-5)


def weighted_loss(left, right, groups, weights):
    return losses.all_pairs_logistic(left, right, gamma=5.0, groups=groups, weights=weights)


def test_few_negatives_of_many_pairs_are_counted_with_all_digits(without_64_bits):
    groups = np.zeros((100_000, 2), np.int32)
    groups[:3] = 1
    groups[3:9, 1] = 2
    with without_64_bits():
        counts = [float(losses.negatives(jnp.asarray(groups), jnp.float32)),
                  float(losses.negatives(jnp.asarray(groups[:, :1]), jnp.float32)),
                  float(jax.jit(losses.negatives, static_argnums=1)(jnp.asarray(groups[:, :1]), jnp.float32))]
    np.testing.assert_allclose(counts, 2 * 3 * (100_000 - 3), rtol=1e-6)


@pytest.mark.parametrize(("weights", "message"), [
    (np.ones(2), r"weights: expected 3 numbers \(one a pair\), got float64 of shape \(2,\)"),
    (np.ones(3, bool), "weights: expected 3 numbers .*, got bool of shape"),
    ([1.0, -1.0, 1.0], "weights: expected finite numbers of at least 0"),
    ([1.0, np.nan, 1.0], "weights: expected finite numbers of at least 0"),
])
def test_weights_that_are_not_one_number_a_pair_are_refused(weights, message):
    with pytest.raises(ValueError, match=message):
        losses.all_pairs_logistic(jnp.eye(3), jnp.eye(3), weights=weights)


def test_no_gradient_flows_into_weights(rng):
    left, right = rng.normal(size=(2, 5, 3))
    slope = jax.grad(lambda weights: losses.all_pairs_logistic(left, right, weights=weights))(jnp.arange(1.0, 6))
    assert not np.any(slope)


def test_weights_on_chip_are_refused():
    eye = jnp.eye(3, dtype=jnp.float32)
    with pytest.raises(ValueError, match="on_chip: expected False, with weights, got True"):
        losses.all_pairs_logistic(eye, eye, weights=np.ones(3), on_chip=True)
    side = tiles.Side(eye, jnp.ones(3), jnp.arange(3), None, jnp.ones(3))
    with pytest.raises(ValueError, match="rows: expected no weights, got some"):
        tile_kernel.sweep(side, side, 1.0, with_grad=False)


@pytest.mark.parametrize("groups", [np.zeros(2, int), np.zeros((3, 0), int), np.zeros((3, 1, 1), int),
                                    np.zeros(3), ["a", "b", "c"]])
def test_groups_that_are_not_one_integer_a_pair_are_refused(groups):
    with pytest.raises(ValueError, match="groups: expected 3 integers"):
        losses.all_pairs_logistic(jnp.eye(3), jnp.eye(3), groups=groups)


@pytest.mark.parametrize("gamma", [10.0, 50.0])
def test_all_pairs_gradient_matches_finite_differences(rng, gamma):
    x, direction = rng.normal(size=(2, 2, 7, 3))
    slope = reference.central_difference(lambda x: value_only(*x, gamma, block_size=3), x, direction)
    grads = value_and_grads(*x, gamma, block_size=3)[1]
    assert slope == pytest.approx(float(np.vdot(grads, direction)), rel=1e-6)


@pytest.mark.parametrize("gamma", [10.0, 20.0, 21.0, 1e4])
def test_all_pairs_in_float32_stays_near_float64(rng, gamma):
    left, right = rng.normal(size=(2, 17, 4))
    right[:8] = left[:8]
    right[8] = -left[8]
    right[9:11] = 0

    def both(dtype):
        return value_and_grads(left.astype(dtype), right.astype(dtype), dtype(gamma))

    (short, short_grads), (exact, exact_grads) = both(np.float32), both(np.float64)
    assert short.dtype == np.float32 and np.isfinite(short)
    assert float(short) == pytest.approx(float(exact), rel=1e-4)
    for a, b in zip(short_grads, exact_grads, strict=True):
        # Rounding of a cosine, 1e-7, is multiplied by gamma before the slope, which is itself of size gamma.
        np.testing.assert_allclose(a, b, atol=1e-5 * float(jnp.max(jnp.abs(b))) + 2e-7 * gamma**2 / 17)


@pytest.mark.parametrize("gamma", [10.0, 1e4])
@pytest.mark.parametrize("m", [2, 5, 300])
def test_a_collapsed_model_scores_log_2(m, gamma):
    same = jnp.ones((m, 3))
    assert float(value_and_grads(same, same, gamma)[0]) == pytest.approx(math.log(2), rel=1e-9)
    value, grads = value_and_grads(jnp.zeros((m, 3)), same, gamma)
    assert float(value) == pytest.approx(math.log(2), rel=1e-9)
    assert not np.any(grads[0])


@pytest.mark.parametrize("groups", [None, np.zeros((2, 2), int), np.zeros(2, int), jnp.zeros(2, jnp.int32)])
@pytest.mark.parametrize("m", [0, 1])
def test_no_negatives_score_0_with_zero_gradient(m, groups):
    groups = groups if groups is None else groups[:m]
    value, grad = jax.value_and_grad(lambda x: losses.all_pairs_logistic(x, x, groups=groups))(jnp.ones((m, 3)))
    assert float(value) == 0 and not np.any(grad)


@pytest.mark.parametrize("gamma", [1e4, 1.0])
def test_worst_and_best_order_at_extreme_scales(gamma):
    left = jnp.eye(2)
    # Perfect: every difference is 1. Reversed: every difference is -1.
    assert float(value_and_grads(left, left, gamma)[0]) == pytest.approx(reference.softplus(-gamma))
    wrong, grads = value_and_grads(left, left[::-1], gamma)
    assert float(wrong) == pytest.approx(reference.softplus(gamma))
    assert np.all(np.isfinite(grads))


@pytest.mark.parametrize("options", [
    {}, {"block_size": 3}, {"groups": [0, 0, 1, 2, 2, 3, 4]}, {"weights": [1.0, 2, 0, 1, 3, 1, 1]},
])  # fmt: skip
@pytest.mark.parametrize("gamma", [0.1, 3.0, 80.0])
def test_the_gradient_in_gamma_is_that_of_finite_differences(rng, gamma, options):
    left, right = rng.normal(size=(2, 7, 3))
    options = {name: value if name == "block_size" else np.array(value) for name, value in options.items()}

    def loss(gamma):
        return losses.all_pairs_logistic(left, right, gamma=gamma, **options)

    step = 1e-4 * gamma
    expected = (loss(gamma + step) - loss(gamma - step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(gamma), expected, rtol=1e-6, atol=1e-12)
    every = jax.vmap(jax.grad(loss))(jnp.array([gamma, 2 * gamma]))
    assert every[0] == pytest.approx(float(expected), rel=1e-6, abs=1e-12)


@pytest.mark.usefixtures("fully_compiled")
def test_the_score_matrix_is_never_held():
    m, k = 16_000, 8
    shape = jax.ShapeDtypeStruct((m, k), jnp.float32)
    used = value_and_grads.lower(shape, shape, 10.0).compile().memory_analysis().temp_size_in_bytes
    assert used < m * m * 4 / 3
    smaller = value_and_grads.lower(shape, shape, 10.0, block_size=32).compile().memory_analysis().temp_size_in_bytes
    assert smaller < used / 2


class _Device:
    def __init__(self, gigabytes):
        self.memory = gigabytes and {"bytes_limit": int(gigabytes * 1e9)}

    def memory_stats(self):
        return self.memory


@pytest.mark.parametrize(("backend", "gigabytes", "sizes"), [
    ("cpu", None, (512, 1024)), ("gpu", None, (2048, 43_380)), ("tpu", 16, (4096, 43_380)),
    ("gpu", 80, (16_384, 43_380)), ("gpu", 4, (2048, 43_380)), ("gpu", 1, (512, 43_380))])
def test_an_accelerator_compares_a_panel_of_rows_with_all_columns(monkeypatch, backend, gigabytes, sizes):
    monkeypatch.setattr(jax, "default_backend", lambda: backend)
    monkeypatch.setattr(jax, "local_devices", lambda: [_Device(gigabytes)])
    assert tiles.tile(None, 43_380) == sizes
    assert tiles.tile(4_096, 43_380) == (4_096, sizes[1]) and tiles.tile((3, 5), 43_380) == (3, 5)


@pytest.mark.parametrize(("left", "right", "options", "message"), [
    (jnp.ones(3), jnp.ones(3), {}, r"left: expected shape \[m, k\], k at least 1, got \(3,\)"),
    (jnp.ones((3, 0)), jnp.ones((3, 0)), {}, r"left: expected shape \[m, k\], k at least 1, got \(3, 0\)"),
    (jnp.ones((3, 2)), jnp.ones((4, 2)), {}, r"right: expected shape \(3, 2\) \(as left\), got \(4, 2\)"),
    (jnp.ones((3, 2)), jnp.ones((3, 2)), {"block_size": 0}, "block_size: expected at least 1, got 0"),
    (jnp.ones((3, 2)), jnp.ones((3, 2)), {"block_size": (2, 0)}, "block_size: expected at least 1, got 0"),
    (jnp.ones((3, 2)), jnp.ones((3, 2)), {"block_size": 2.5}, "block_size: expected at least 1, got 2.5"),
    (jnp.ones((3, 2)), jnp.ones((3, 2)), {"block_size": (2,)}, "block_size: expected rows, or rows and columns, got 1"),
])
def test_bad_shapes_are_refused(left, right, options, message):
    with pytest.raises(ValueError, match=message):
        losses.all_pairs_logistic(left, right, **options)


def test_groups_and_weights_of_64_bits_are_not_cut(rng, without_64_bits):
    left, right = rng.normal(size=(2, 4, 3)).astype(np.float32)
    weights, large = np.array([1.0, 2, 4, 0]), np.array([2**32, 0, 2**33, 2**33], np.int64)
    with without_64_bits():
        loss = functools.partial(losses.all_pairs_logistic, left, right)
        expected = loss(groups=jnp.array([0, 1, 2, 2]))
        assert loss(groups=large) == loss(groups=large.astype(np.uint64) + 2**63) == expected
        assert all(loss(weights=weights * scale) == loss(weights=weights) for scale in (2.0**-200, 2.0**600))


@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16])
def test_a_log_loss_of_16_bits_is_bounded(dtype):
    one, zero = jnp.ones((), dtype), jnp.zeros((), dtype)
    assert 0 <= losses.log(one, one) < 1e-5 and 13 < losses.log(zero, one) < 14 and 13 < losses.log(one, zero) < 14


def test_nan_embeddings_give_a_nan_loss():
    assert np.isnan(losses.all_pairs_logistic(jnp.full((3, 2), jnp.nan), jnp.ones((3, 2))))


@pytest.mark.parametrize("gamma", [0.0, -1.0, float("nan"), float("inf")])
def test_a_scale_that_is_not_positive_is_refused(gamma):
    with pytest.raises(ValueError, match="gamma: expected a positive number"):
        losses.all_pairs_logistic(jnp.eye(3), jnp.eye(3), gamma=gamma)
