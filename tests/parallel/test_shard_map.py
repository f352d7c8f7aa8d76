"""Our functions inside a `jax.shard_map` of a user: with its own checks on, the same values and gradients."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from light import with_devices

PROGRAM = """
import json, sys
import jax, jax.numpy as jnp, numpy as np, scipy.sparse
from jax.sharding import Mesh, PartitionSpec as P
from jaxsim import losses, sparse

mesh = Mesh(np.asarray(jax.devices()), ("some",))
keys = jax.random.split(jax.random.key(0), 5)
left, right = (jax.random.normal(key, (12, 3)) for key in keys[:2])
every = jax.random.normal(keys[2], (4, 12, 3))
terms = sparse.from_scipy(scipy.sparse.random(12, 9, density=0.4, format="csr", dtype="f", random_state=0))
weights, factors = jax.random.normal(keys[3], (9, 8)), jax.random.normal(keys[4], (12, 32))

def mean(function, *specs):
    def inside(*given):
        return jax.lax.pmean(function(*given), "some")

    return jax.shard_map(inside, mesh=mesh, in_specs=specs, out_specs=P())

def loss(left, right):
    return losses.all_pairs_logistic(left, right)

def scaled(gamma, left, right):
    return losses.all_pairs_logistic(left, right, gamma=gamma)

def cubes(weights):
    return jnp.sum(sparse.project(terms, weights) ** 3)

def product(weights, factors):
    return jnp.sum(sparse.project(terms, weights) * factors)

def parts(function, *cuts):
    def outside(*given):
        return jnp.mean(jnp.stack([function(*(cut(one, i) for cut, one in zip(cuts, given))) for i in range(4)]))

    return outside

whole = lambda array, i: array
rows = lambda array, i: array[3 * i : 3 * i + 3]
columns = lambda array, i: array[:, array.shape[1] // 4 * i : array.shape[1] // 4 * (i + 1)]
cases = [
    (mean(loss, P("some"), P("some")), parts(loss, rows, rows), (left, right)),
    (mean(lambda a, b: loss(a, b[0]), P(), P("some")), parts(loss, whole, lambda array, i: array[i]), (left, every)),
    (mean(scaled, P(), P("some"), P("some")), parts(scaled, whole, rows, rows), (jnp.array(3.0), left, right)),
    (mean(cubes, P(None, "some")), parts(cubes, columns), (weights,)),
    (mean(product, P(), P(None, "some")), parts(product, whole, columns), (weights, factors)),
]
found = []
for sharded, plain, given in cases:
    which = tuple(range(len(given)))
    both = [jax.value_and_grad(function, which)(*given) for function in (sharded, plain)]
    found.append(max(float(jnp.max(jnp.abs(a - b))) for a, b in zip(*map(jax.tree.leaves, both))))
print(json.dumps({"devices": jax.device_count(), "differences": found}))
"""


@pytest.mark.programs
def test_values_and_gradients_inside_of_shard_map_are_those_outside():
    environment = {**os.environ, "XLA_FLAGS": with_devices(4), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True)
    told = json.loads(done.stdout)
    assert told["devices"] == 4 and len(told["differences"]) == 5
    assert max(told["differences"]) < 1e-4
