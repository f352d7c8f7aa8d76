"""What a policy does to products, loss, gradient and fit: as much as its digits say, and something."""

from __future__ import annotations

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import losses, sparse
from jaxsim.methods import s2net, s2net_sgd
from jaxsim.parallel import sharding
from jaxsim.sparse import precision

# Unit roundoff of the fraction kept: 10 bits and 7; and what is left of it after a mean over many products.
UNITS = {"tf32": 2.0**-11, "bfloat16": 2.0**-8}


@pytest.fixture
def sides(rng):
    left = rng.standard_normal((300, 40)).astype(np.float32)
    return jnp.asarray(left), jnp.asarray(left + rng.standard_normal(left.shape).astype(np.float32))


@pytest.mark.parametrize("policy", list(UNITS))
def test_products_keep_as_many_digits_as_the_policy_says_and_sum_in_float32(sides, policy):
    left, right = sides
    exact = np.asarray(left, np.float64) @ np.asarray(right, np.float64).T
    size = np.abs(np.asarray(left, np.float64)) @ np.abs(np.asarray(right, np.float64)).T
    product = precision.matmul(left, right.T, policy)
    error = np.max(np.abs(np.asarray(product) - exact) / size)
    assert product.dtype == jnp.float32 and 1e-6 < error <= 2.1 * UNITS[policy]
    # 1 is lost in a sum that is itself rounded to so few digits.
    ones = jnp.ones((1, 3000), jnp.float32)
    assert float(precision.matmul(ones, ones.T, policy)[0, 0]) == 3000
    assert precision.matmul(left.astype(jnp.float64), right.T.astype(jnp.float64), policy).dtype == jnp.float64


def value_and_grad(policy, left, right):
    return jax.value_and_grad(lambda a, b: losses.all_pairs_logistic(a, b, precision=policy), argnums=(0, 1))(
        left, right)


def test_float32_is_the_default_of_this_device_to_the_bit(sides):
    default, exact = (value_and_grad(policy, *sides) for policy in (None, "float32"))
    for ours, theirs in zip(jax.tree.leaves(exact), jax.tree.leaves(default), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(("policy", "of_loss", "of_gradient"), [("tf32", 1e-4, 1e-3), ("bfloat16", 1e-3, 1e-2)])
def test_the_loss_and_its_gradient_are_near_those_of_float32(sides, policy, of_loss, of_gradient):
    (value, grads), (exact, wanted) = (value_and_grad(name, *sides) for name in (policy, "float32"))
    assert 0 < abs(float(value) / float(exact) - 1) < of_loss
    for ours, theirs in zip(grads, wanted, strict=True):
        assert 0 < float(jnp.max(jnp.abs(ours - theirs)) / jnp.max(jnp.abs(theirs))) < of_gradient


def test_a_fit_takes_the_policy_on_one_device_and_on_a_mesh(rng, key):
    counts = scipy.sparse.csr_matrix(rng.poisson(0.3, (40, 30)).astype(np.float32))
    documents, start = sparse.from_scipy(counts), s2net.random_init(30, 8, key=key)

    def fit(policy, mesh=None):
        # The start alone: its loss, without the compilation of a search.
        return s2net.fit(documents, documents, init=start, max_iter=0, precision=policy, mesh=mesh).loss

    exact, rough = fit("float32"), fit("bfloat16")
    assert rough != exact and rough == pytest.approx(exact, rel=0.01)
    assert fit("bfloat16", jax.make_mesh((1,), ("pairs",))) == pytest.approx(rough, rel=1e-5)


def test_exact_products_are_asked_for_by_one_name():
    package = Path(precision.__file__).parents[1]
    literal = re.compile(r"""precision(\(|=)["']highest["']|Precision\.HIGHEST""")
    assert literal.search('jax.default_matmul_precision("highest")')
    result = [f"{path.relative_to(package)}: {line.strip()}" for path in sorted(package.rglob("*.py"))
              for line in path.read_text(encoding="utf-8").splitlines() if literal.search(line)]
    assert not result, "\n".join(result)


def test_other_policies_are_refused(key):
    documents = sparse.from_scipy(scipy.sparse.identity(4, format="csr"))
    start = s2net.random_init(4, 2, key=key)
    message = "precision: expected None, or one of float32, tf32, bfloat16, got half"
    shards = sharding.shard(documents, jax.make_mesh((1,), ("pairs",)))
    for call in (
        lambda: s2net.fit(documents, documents, init=start, precision="half"),
        lambda: s2net_sgd.fit(documents, documents, init=start, key=key, precision="half"),
        lambda: losses.all_pairs_logistic(jnp.eye(4), jnp.eye(4), precision="half"),
        lambda: sharding.all_pairs_logistic(jnp.eye(4), jnp.eye(4), shards, gamma=10.0, precision="half"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
