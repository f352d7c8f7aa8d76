"""Over several devices (forced host devices, in a process each): the same loss, gradient and fit as on one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from half_written import half_written_program
from light import with_devices

from jaxsim import losses, sparse
from jaxsim.methods import s2net
from jaxsim.parallel import sharding, term_shards

ROOT = Path(__file__).parents[2]
STRICT = [f"-W{filter}" for filter in ("error::UserWarning", *half_written_program())]


@pytest.mark.programs
@pytest.mark.parametrize(("devices", "storage"), [(3, "sparse"), (8, "sparse"), (3, "filled"), (3, "gathered")])
def test_loss_gradient_and_fit_do_not_depend_on_the_number_of_devices(devices, storage):
    environment = {**os.environ, "XLA_FLAGS": with_devices(devices),
                   "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}  # fmt: skip
    done = subprocess.run([sys.executable, *STRICT, ROOT / "tests" / "programs" / "mesh_parity.py", storage],
                          env=environment, capture_output=True, text=True, timeout=900)  # fmt: skip
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result.pop("devices") == devices
    assert result.pop("resumed") == [True, True]
    # Nothing is compiled after the first iteration.
    first, second, *later = result.pop("compiled")
    assert first < second and len(later) == 7 and set(later) == {second}
    steps = result.pop("steps")
    assert steps[0] == steps[1] > 0 and steps[2] == steps[3] == steps[0] + 1
    two = result.pop("two")
    assert max(two) <= 1e-5  # after several iterations of another order of sums
    assert len(result) == 8 and max(np.ravel(list(result.values())[:6])) <= 1e-6
    assert max(*result["fit"], result["last"]) <= 1e-5


@pytest.mark.programs
def test_terms_over_devices_give_the_fit_of_one_device_and_a_killed_fit_goes_on(tmp_path):
    environment = {**os.environ, "XLA_FLAGS": with_devices(2), "JAX_PLATFORMS": "cpu",
                   "PYTHONPATH": str(ROOT)}  # fmt: skip
    stopped, done = (
        subprocess.run([sys.executable, *STRICT, ROOT / "tests" / "programs" / "mesh_terms.py", tmp_path, what],
                       env=environment, capture_output=True, text=True, timeout=900)
        for what in ("stop", "go on")
    )  # fmt: skip
    assert stopped.returncode == -9 and not stopped.stdout, stopped.stderr
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    # 41 terms on two devices: one row of padding, whose gradient is zero.
    assert result["pieces"] == [[21, 6], [21, 6]] and result["padding"] == 0
    assert max(result["loss"], result["gradient"], result["encoded"], result["few terms"]) <= 1e-6
    assert max(result["fit"]) <= 1e-5 and result["steps"] == [6, 6]
    assert result["resumed"] == [True, True] and result["began at"] == 3
    first, second, *later = result["compiled"]
    assert first < second and len(later) == 5 and set(later) == {second}


@pytest.mark.programs
def test_topics_do_not_depend_on_the_number_of_devices():
    environment = {**os.environ, "XLA_FLAGS": with_devices(4), "JAX_PLATFORMS": "cpu",
                   "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, *STRICT, ROOT / "tests" / "programs" / "mesh_topics.py"], env=environment,
                          capture_output=True, text=True, timeout=900)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result.pop("devices") == 4 and result.pop("resumed") == [True, True]
    assert len(result) == 3 and max(np.ravel(list(result.values()))) <= 1e-6


def documents(m):
    return sparse.from_scipy(scipy.sparse.identity(m, format="csr", dtype=np.float32))


def test_shards_hold_every_document_once_and_padding_for_the_rest():
    mesh = jax.make_mesh((1,), ("pairs",))
    shards = sharding.shard(documents(3), mesh, groups=np.array([[0], [0], [1]]))
    assert shards.ids.tolist() == [0, 1, 2] and shards.num_docs == 3 and shards.num_terms == 3
    assert float(shards.num_negatives) == 4
    assert float(sharding.shard(documents(3), mesh).num_negatives) == 6
    np.testing.assert_array_equal(sharding.project(shards, np.eye(3, dtype=np.float32)), np.eye(3))


@pytest.mark.parametrize(("mesh", "message"), [
    ("cpu", "mesh: expected a jax.sharding.Mesh, got str"),
    (jax.make_mesh((1, 1), ("a", "b")), r"mesh: expected one axis, got \('a', 'b'\)"),
])
def test_a_mesh_of_one_axis_is_asked_for(mesh, message):
    start = s2net.random_init(4, 2, key=jax.random.key(0))
    with pytest.raises(ValueError, match=message):
        s2net.fit(documents(4), documents(4), init=start, mesh=mesh)


@pytest.mark.skipif(not hasattr(jax, "set_mesh"), reason="this JAX has no jax.set_mesh")
def test_explicit_axes_around_a_mesh_are_told():
    mesh, start = jax.make_mesh((1,), ("pairs",)), s2net.random_init(4, 2, key=jax.random.key(0))
    if not mesh.explicit_axes:
        pytest.skip("jax.make_mesh has no explicit axes here")
    with jax.set_mesh(mesh), pytest.raises(ValueError, match=r"jax.set_mesh: expected none .* got explicit axes"):
        s2net.fit(documents(4), documents(4), init=start, mesh=mesh)
    with jax.set_mesh(jax.sharding.Mesh(mesh.devices, mesh.axis_names)):
        s2net.fit(documents(4), documents(4), init=start, mesh=mesh, max_iter=1)


def test_terms_are_shared_over_a_mesh_alone_and_fit_it():
    mesh, start = jax.make_mesh((1,), ("pairs",)), s2net.random_init(4, 2, key=jax.random.key(0))
    with pytest.raises(ValueError, match="shard_terms: expected a mesh to share the terms over, got None"):
        s2net.fit(documents(4), documents(4), init=start, shard_terms=True)
    with pytest.raises(ValueError, match=r"weights: expected shape \(4, k\), got \(3, 2\)"):
        term_shards.encode(np.zeros((3, 2), np.float32), documents(4), mesh)
    with pytest.raises(ValueError, match=r"weights: expected shape \(4, k\), got \(3, 2\)"):
        term_shards.project(term_shards.shard(documents(4), mesh), np.zeros((3, 2), np.float32))
    with pytest.raises(ValueError, match="groups: expected 3 integers"):
        term_shards.shard(documents(3), mesh, groups=np.zeros((2, 1), int))


def test_the_loss_over_a_mesh_takes_what_that_of_one_device_takes(rng):
    """Groups of one column and of 64 bits, and embeddings of fewer bits; counts are exact in float64."""
    mesh, groups = jax.make_mesh((1,), ("pairs",)), np.array([0, 2**32, 1, 2**32 + 1])
    left, right = rng.normal(size=(2, 4, 3)).astype(np.float16)
    for given in (groups, groups[:, None]):
        shards = sharding.shard(documents(4), mesh, groups=given)
        assert float(shards.num_negatives) == 12
        over = sharding.all_pairs_logistic(left, right, shards, gamma=10.0)
        one = losses.all_pairs_logistic(left, right, gamma=10.0, groups=given)
        assert over.dtype == one.dtype == jnp.float32 and float(over) == pytest.approx(float(one), rel=1e-6)
    m = 5802  # m (m - 1) has 26 bits
    many = sparse.from_scipy(scipy.sparse.csr_matrix((m, 1), dtype=np.float64))
    assert float(sharding.shard(many, mesh).num_negatives) == m * (m - 1)
    assert float(term_shards.shard(many, mesh).num_negatives) == m * (m - 1)


def test_groups_and_weights_that_do_not_fit_are_refused():
    mesh = jax.make_mesh((1,), ("pairs",))
    for wrong in (np.zeros((2, 1), int), np.zeros(3)):
        with pytest.raises(ValueError, match=r"groups: expected 3 integers \(one a pair\)"):
            sharding.shard(documents(3), mesh, groups=wrong)
    ones, shards = np.ones((3, 2), np.float32), sharding.shard(documents(3), mesh)
    for given, message in (
        ({"groups": np.arange(3)}, r"groups: expected None, over a mesh \(`shard` takes them\), got some"),
        ({"gamma": -1.0}, "gamma: expected a positive number, got -1"), ({"gamma": np.nan}, "gamma: expected"),
        ({"left": ones[:2], "right": ones[:2]}, r"left: expected shape \[3, k\]"),
        ({"left": ones[0], "right": ones[0]}, r"left: expected shape \[3, k\]"),
    ):
        with pytest.raises(ValueError, match=message):
            sharding.all_pairs_logistic(**{"left": ones, "right": ones, "documents": shards, "gamma": 10.0, **given})
    with pytest.raises(ValueError, match=r"weights: expected shape \(3, k\), got \(2, 2\)"):
        sharding.project(sharding.shard(documents(3), mesh), np.zeros((2, 2)))
