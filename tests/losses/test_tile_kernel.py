"""The kernel that keeps scores on a TPU's chip, interpreted: exact against float64 and the tiled loss."""

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

M, K, TILE = 37, 70, (16, 16)  # neither divides the other; 70 dimensions are padded to 128


@functools.cache
def programs(kernel):
    """Value, and value with gradients, compiled once a shape, of the kernel or of tiles."""

    def loss(left, right, gamma, groups=None, block_size=TILE, precision=None):
        return losses.all_pairs_logistic(left, right, gamma=gamma, groups=groups, block_size=block_size,
                                         precision=precision, on_chip=kernel)

    options = {"static_argnames": ("block_size", "precision")}
    return jax.jit(loss, **options), jax.jit(jax.value_and_grad(loss, argnums=(0, 1)), **options)


@pytest.fixture
def on_chip():
    """Both programs of the kernel, interpreted."""
    return programs(True)


@pytest.fixture
def sides(rng):
    left, right = rng.normal(size=(2, M, K)).astype(np.float32)
    right += left
    left[M // 2] = 0  # an empty document
    return left, right


def close(found, expected, tolerance):
    """Within so much of the largest magnitude, value and gradients."""
    for mine, theirs in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        theirs = np.asarray(theirs, np.float64)
        np.testing.assert_allclose(np.asarray(mine, np.float64), theirs, rtol=0, atol=tolerance * np.abs(theirs).max())


@pytest.mark.parametrize("columns", [0, 2])
def test_value_and_gradients_are_those_of_float64(on_chip, sides, rng, columns):
    value_only, value_and_grads = on_chip
    groups = rng.integers(-3, 9, (M, columns)) * 2**33 if columns else None
    for gamma in (10.0, 50.0):  # both forms of the loss
        expected = reference.all_pairs_logistic(*(side.astype(np.float64) for side in sides), gamma, groups)
        value, grads = value_and_grads(*sides, np.float32(gamma), groups)
        assert value.dtype == np.float32 and grads[0].shape == grads[1].shape == (M, K)
        close((value, *grads), expected, 1e-5)
        close(value_only(*sides, np.float32(gamma), groups), expected[0], 1e-5)
        assert not np.any(grads[0][M // 2])


@pytest.mark.parametrize("precision", ["float32", pytest.param("tf32", marks=pytest.mark.programs),
                                       pytest.param("bfloat16", marks=pytest.mark.programs)])  # fmt: skip
def test_a_precision_means_what_it_means_in_tiles(on_chip, sides, precision):
    expected = programs(False)[1](*sides, np.float32(10), precision=precision)
    found = on_chip[1](*sides, np.float32(10), precision=precision)
    # Sums in another order; where a weight falls between two numbers of 7 bits, it may be rounded the other way.
    close(found, expected, {"float32": 1e-5, "tf32": 1e-4, "bfloat16": 1e-3}[precision])
    if precision != "float32":
        rounded = programs(False)[1](*sides, np.float32(10))
        assert abs(float(found[0]) / float(rounded[0]) - 1) > 1e-7  # it does round


def test_embeddings_in_bfloat16_lose_nothing_more(on_chip, sides):
    rounded = [jnp.asarray(side, jnp.bfloat16) for side in sides]
    expected = reference.all_pairs_logistic(*(np.asarray(side, np.float64) for side in rounded), 10.0)
    value, grads = on_chip[1](*rounded, np.float32(10))
    assert float(value) == pytest.approx(expected[0], rel=1e-5) and grads[0].dtype == jnp.bfloat16
    close(grads, expected[1:], 2**-8)  # the gradient comes back in 8 bits


@pytest.mark.parametrize("gamma", [20.0, 1e4])
def test_the_largest_scales_do_not_overflow(on_chip, sides, gamma):
    left, right = sides[0].copy(), sides[1].copy()
    right[:8], right[8] = left[:8], -left[8]
    expected = programs(False)[1](left.astype(np.float64), right.astype(np.float64), gamma)
    found = on_chip[1](left, right, np.float32(gamma))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(found))
    close(found, expected, 1e-5 if gamma < 100 else 1e-3)  # gamma times the rounding of a cosine


def test_a_larger_tile_is_padded_and_changes_nothing(on_chip, sides):
    close(on_chip[1](*sides, np.float32(10), block_size=(64, 128)), on_chip[1](*sides, np.float32(10)), 1e-6)


def test_collapsed_and_zero_vectors_score_log_2_and_nan_stays_nan(on_chip):
    same = np.ones((M, K), np.float32)
    for left in (same, 0 * same):
        value, grads = on_chip[1](left, same, np.float32(10))
        assert float(value) == pytest.approx(math.log(2), rel=1e-5)  # gamma times the rounding of a cosine
    assert not np.any(grads[0])
    assert np.isnan(on_chip[0](np.nan * same, same, np.float32(10)))


def test_the_same_input_gives_the_same_bits(on_chip, sides):
    first, second = (jax.tree.leaves(on_chip[1](*sides, np.float32(10))) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(first, second, strict=True))


def test_one_loss_a_scale_where_scales_are_an_axis(on_chip, sides):
    scales = np.array([1, 10, 50], np.float32)
    found = jax.vmap(lambda gamma: on_chip[1](*sides, gamma))(scales)
    for number, gamma in enumerate(scales):
        close(jax.tree.map(lambda leaf, at=number: leaf[at], found), on_chip[1](*sides, gamma), 1e-6)


def test_few_rows_against_many_columns_of_which_some_are_padding(rng):
    vectors = rng.normal(size=(21 + M, K)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    own, groups = rng.normal(size=21 + M).astype(np.float32) / 9, rng.integers(0, 9, (21 + M, 1)).astype(np.int32)
    ids = np.concatenate([np.arange(21), np.arange(M)]).astype(np.int32)
    ids[[3, 30, 50]] = -1
    rows, columns = (tiles.Side(*(jnp.asarray(array[at]) for array in (vectors, own, ids, groups)))
                     for at in (slice(21), slice(21, None)))
    expected = tiles.sweep(rows, columns, np.float32(10), with_grad=True, padded=True)
    found = tile_kernel.sweep(rows, columns, np.float32(10), TILE, with_grad=True)
    close(found, expected, 1e-5)


@pytest.mark.parametrize("precision", [None, *(pytest.param(one, marks=pytest.mark.programs)
                                               for one in ("float32", "tf32", "bfloat16"))])  # fmt: skip
def test_it_is_lowered_for_a_tpu_and_holds_no_scores(monkeypatch, without_64_bits, precision):
    m = 1_000
    monkeypatch.setattr(tile_kernel, "layout", lambda: tile_kernel.TPU)

    def loss(left, right, gamma, groups):
        return losses.all_pairs_logistic(left, right, gamma=gamma, groups=groups, precision=precision, on_chip=True)

    with without_64_bits():
        side, scale = jax.ShapeDtypeStruct((m, 300), jnp.float32), jax.ShapeDtypeStruct((), jnp.float32)
        traced = jax.jit(jax.value_and_grad(loss, argnums=(0, 1))).trace(
            side, side, scale, jax.ShapeDtypeStruct((m, 2), jnp.int32))
        text = traced.lower(lowering_platforms=("tpu",)).as_text()
    assert text.count("tpu_custom_call") >= 4  # both ways, in both forms of the loss
    assert f"{m}x{m}x" not in text and "1024x1024x" not in text


def test_only_who_asks_gets_it(monkeypatch, sides):
    def unasked(*_, **__):
        raise AssertionError

    monkeypatch.setattr(tile_kernel, "sweep", unasked)
    losses.all_pairs_logistic(*sides)
    with pytest.raises(AssertionError):
        losses.all_pairs_logistic(*sides, on_chip=True)


@pytest.mark.parametrize(("k", "size"), [(300, 512), (1_000, 256)])
def test_tiles_fit_on_the_chip(k, size):
    plan = tile_kernel.TPU
    assert tile_kernel.tile(None, k, plan) == (size, size)
    assert tile_kernel.tile(32, k, plan) == (32, size) and tile_kernel.tile((16, 256), k, plan) == (16, 256)


@pytest.mark.parametrize(("dtype", "block_size", "message"), [
    (jnp.float64, None, "on_chip: expected embeddings of float32 or less, got float64"),
    (jnp.float32, 8, "block_size: expected powers of two, at least 16, for tiles on chip, got 8"),
    (jnp.float32, (16, 48), "block_size: expected powers of two, at least 16, for tiles on chip, got 48"),
])
def test_what_it_cannot_do_is_refused(dtype, block_size, message):
    with pytest.raises(ValueError, match=message):
        losses.all_pairs_logistic(jnp.eye(3, dtype=dtype), jnp.eye(3, dtype=dtype), block_size=block_size, on_chip=True)


def test_columns_of_a_tpu_come_by_the_128():
    with pytest.raises(ValueError, match="block_size: expected powers of two, at least 128, .* got 64"):
        tile_kernel.tile((64, 64), 300, tile_kernel.TPU)


def test_vectors_in_double_precision_are_refused():
    side = tiles.Side(jnp.eye(2, dtype=jnp.float64), jnp.ones(2), jnp.arange(2), None)
    with pytest.raises(ValueError, match="rows: expected float32 vectors, got float64"):
        tile_kernel.sweep(side, side, 1.0, with_grad=False)
