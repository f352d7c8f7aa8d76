"""The kernel that turns scores into weights on a Hopper GPU, interpreted: what tiles in bfloat16 give."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental.pallas import mosaic_gpu as plgpu

from jaxsim import losses
from jaxsim.losses import all_pairs, tiles, weight_kernel

needs_jax = pytest.mark.skipif(jax.__version_info__ < (0, 11), reason="the kernel needs JAX 0.11 or newer")


def sides(rng, n, m, k, num_groups, first=0):
    """Rows and columns, some of which are mates of each other: rows begin at pair ``first``."""
    vectors = rng.normal(size=(n + m, k)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    own = rng.normal(size=n + m).astype(np.float32) / 9
    ids = np.concatenate([first + np.arange(n), np.arange(m)]).astype(np.int32)
    groups = rng.integers(0, 9, (n + m, num_groups)).astype(np.int32) if num_groups else None
    return [tiles.Side(*(None if array is None else jnp.asarray(array[at]) for array in (vectors, own, ids, groups)))
            for at in (slice(n), slice(n, None))]


@needs_jax
@pytest.mark.parametrize(("precision", "n", "m", "k", "num_groups", "reps"), [
    ("bfloat16", 200, 300, 70, 2, 1),  # rows, columns and dimensions are padded
    pytest.param("bfloat16", 128, 256, 64, 0, 32, marks=pytest.mark.programs),  # nothing is
    # The last program has fewer tiles; two steps.
    pytest.param("bfloat16", 700, 300, 63, 1, 4, marks=pytest.mark.programs),
    pytest.param("tf32", 200, 300, 70, 2, 1, marks=pytest.mark.programs),
    pytest.param("tf32", 128, 256, 128, 0, 32, marks=pytest.mark.programs),  # more steps than slots
])  # fmt: skip
def test_sums_are_those_of_tiles(monkeypatch, rng, without_64_bits, precision, n, m, k, num_groups, reps):
    monkeypatch.setattr(weight_kernel, "_TILES", reps)
    monkeypatch.setattr(weight_kernel, "_PROGRAMS", 1)
    rows, columns = sides(rng, n, m, k, num_groups, first=100)
    with without_64_bits():
        expected = tiles.sweep(rows, columns, jnp.float32(10), with_grad=True, precision=precision)
        sweep = functools.partial(weight_kernel.sweep, block_size=384, with_grad=True, precision=precision,
                                  interpret=plgpu.InterpretGPUParams())
        found = jax.jit(sweep)(rows, columns, jnp.float32(10))
    for name, one, other in zip(found._fields, found, expected, strict=True):
        other = np.asarray(other, np.float64)
        # Where a weight falls between two numbers of few bits, it may be rounded the other way.
        within = 1e-3 if name.startswith("d_") else 1e-6
        np.testing.assert_allclose(np.asarray(one, np.float64), other, rtol=0, atol=within * np.abs(other).max())


@needs_jax
def test_several_scales_take_their_turns(monkeypatch, rng, without_64_bits):
    monkeypatch.setattr(weight_kernel, "_PROGRAMS", 1)
    rows, columns = (side._replace(groups=None) for side in sides(rng, 128, 256, 64, 0))
    with without_64_bits():
        scales = jnp.float32([5, 10])
        # Not the whole of `sweep`: what JAX interprets may not stand under `vmap` of a condition.
        run = functools.partial(weight_kernel._panels, rows, columns, size=128, precision="bfloat16",
                                interpret=plgpu.InterpretGPUParams())
        found, alone = jax.vmap(run)(scales), run(scales[1])
    for one, other in zip(found, alone, strict=True):
        np.testing.assert_allclose(one[1], other, rtol=1e-6, atol=1e-5)


@needs_jax
@pytest.mark.parametrize("k", [300, pytest.param(1_000, marks=pytest.mark.programs)])
def test_it_is_lowered_for_a_gpu_and_writes_weights_alone(without_64_bits, k):
    device = jax.sharding.AbstractDevice(device_kind="NVIDIA H200", num_cores=132, platform="gpu")
    with without_64_bits(), jax.sharding.use_abstract_mesh(jax.sharding.AbstractMesh((), (), abstract_device=device)):
        shapes = ((3_000, k), jnp.float32), ((3_000,), jnp.float32), ((3_000,), jnp.int32), ((3_000, 2), jnp.int32)
        side = tiles.Side(*(jax.ShapeDtypeStruct(*shape) for shape in shapes))
        traced = jax.jit(functools.partial(weight_kernel.sweep, with_grad=True, block_size=2_048)).trace(
            side, side, jax.ShapeDtypeStruct((), jnp.float32))
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        several = jax.jit(jax.vmap(functools.partial(weight_kernel.sweep, with_grad=True, block_size=2_048),
                                   in_axes=(None, None, 0)))
        scales = jax.ShapeDtypeStruct((2,), jnp.float32)
        assert "mosaic_gpu" in several.trace(side, side, scales).lower(lowering_platforms=("cuda",)).as_text()
    assert "mosaic_gpu" in text
    assert "1536x3072xbf16" in text and "1536x3072xf32" not in text  # two panels; scores would be of float32


@pytest.mark.parametrize(("options", "message"), [
    ({"precision": "float32"}, "precision: expected bfloat16 or tf32 with on_chip on a GPU, got float32"),
    ({"block_size": (256, 256)}, "block_size: expected rows alone with on_chip on a GPU"),
])
def test_what_it_cannot_do_is_refused(rng, options, message):
    rows, columns = sides(rng, 3, 3, 4, 0)
    with pytest.raises(ValueError, match=message):
        weight_kernel.sweep(rows, columns, 1.0, with_grad=True, **options)
    with pytest.raises(ValueError, match="rows: expected float32 vectors, got float64"):
        weight_kernel.sweep(rows._replace(vectors=np.eye(3)), columns, 1.0, with_grad=True)
    with pytest.raises(ValueError, match="columns: expected no weights, got some"):
        weight_kernel.sweep(rows, columns._replace(weights=jnp.ones(3)), 1.0, with_grad=True)


def test_a_gpu_of_another_kind_is_refused(monkeypatch):
    class Device:
        device_kind, compute_capability = "NVIDIA A100", "8.0"

    eye = jnp.eye(3, dtype=jnp.float32)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: [Device])
    monkeypatch.setattr(jax, "__version_info__", (0, 11, 2))
    with pytest.raises(ValueError, match=r"on_chip: expected a GPU of .* 9.0 .*, got NVIDIA A100 of 8.0"):
        losses.all_pairs_logistic(eye, eye, on_chip=True)
    monkeypatch.setattr(jax, "__version_info__", (0, 10, 2))
    with pytest.raises(ValueError, match="on_chip: expected JAX 0.11 or newer, on a GPU, got"):
        losses.all_pairs_logistic(eye, eye, on_chip=True)


@pytest.mark.parametrize(("changed", "sweep", "products"), [
    ({}, weight_kernel.sweep, "tf32"),  # JAX's default on such a GPU
    ({"precision": "tf32"}, weight_kernel.sweep, "tf32"),
    ({"precision": "bfloat16"}, weight_kernel.sweep, "bfloat16"),
    ({"precision": "float32"}, tiles.sweep, "float32"),
    ({"m": 8_191}, tiles.sweep, None),
    ({"block_size": (256, 256)}, tiles.sweep, None),
    ({"weights": np.ones(8_192)}, tiles.sweep, None),
    ({"dtype": jnp.float64}, tiles.sweep, None),
    ({"capability": "8.0"}, tiles.sweep, None),
    ({"version": (0, 10, 2)}, tiles.sweep, None),
    ({"setting": "highest"}, tiles.sweep, None),
    ({"on_chip": False}, tiles.sweep, None),
])
def test_it_is_the_default_where_it_was_measured(monkeypatch, changed, sweep, products):
    asked = {"m": 8_192, "block_size": None, "dtype": jnp.float32, "on_chip": None, "weights": None, "precision": None,
             "capability": "9.0", "version": (0, 11, 2), "setting": None} | changed

    class Device:
        device_kind, compute_capability = "NVIDIA H200", asked["capability"]

        def memory_stats(self):
            return {"bytes_limit": 2**37}

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    monkeypatch.setattr(jax, "local_devices", lambda: [Device()])
    monkeypatch.setattr(jax, "__version_info__", asked["version"])
    with jax.default_matmul_precision(asked["setting"]):
        found = all_pairs._sweep(asked["block_size"], (asked["m"], 300), asked["dtype"], asked["on_chip"],
                                 asked["weights"], asked["precision"])
    assert (found[0], found[2]) == (sweep, products)


def test_rows_of_bfloat16_begin_where_an_accelerator_reads_fast(monkeypatch, rng):
    rows, columns = sides(rng, 9, 11, 70, 0)
    expected = tiles.sweep(rows, columns, jnp.float32(10), (4, 5), with_grad=True, precision="bfloat16")
    assert tiles._spare(70, "bfloat16") == 0
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert [tiles._spare(k, "bfloat16") for k in (20, 64, 300, 1_000, 1_024)] == [4, 0, 20, 24, 0]
    assert tiles._spare(300, "tf32") == tiles._spare(300, None) == 0
    found = tiles.sweep(rows, columns, jnp.float32(10), (4, 5), with_grad=True, precision="bfloat16")
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)
