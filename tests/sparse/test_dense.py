"""Documents held with their zeros: the same products, and no gather or scatter in what an accelerator compiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax import export

from jaxsim import sparse
from jaxsim.methods import s2net
from jaxsim.methods.s2net import exact
from jaxsim.sparse import dense


@pytest.fixture
def sides(rng):
    """Mates of 12 documents over 20 terms, one of them empty."""
    made = [sp.random(12, 20, 0.3, "lil", np.float32, random_state=seed) for seed in (1, 2)]
    made[0][3] = 0
    return tuple(sparse.from_scipy(side.tocsr()) for side in made)


def test_products_and_gradients_are_those_of_sparse_rows(sides, rng):
    weights = jnp.asarray(rng.normal(size=(20, 4)), jnp.float32)
    wanted = jnp.asarray(rng.normal(size=(12, 4)), jnp.float32)
    held = sparse.filled(sides[0])
    np.testing.assert_array_equal(held.matrix, sparse.to_scipy(sides[0]).toarray())
    assert (held.num_docs, held.num_terms) == (12, 20)

    def loss(weights, documents):
        return jnp.vdot(sparse.project(documents, weights), wanted)

    for found, expected in zip(*(jax.value_and_grad(loss)(weights, one) for one in (held, sides[0])), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match=r"weights: expected shape \(20, k\)"):
        sparse.project(held, weights[1:])


def test_padding_is_dropped_and_nothing_is_held_of_nothing():
    padded = sparse.from_scipy(sp.csr_matrix([[1.0, 0.0], [0.0, 2.0]]), pad_nnz=7, pad_docs=3)
    assert sparse.filled(padded).matrix.tolist() == [[1, 0], [0, 2], [0, 0]]
    assert sparse.filled(sparse.from_scipy(sp.csr_matrix((0, 2)))).matrix.shape == (0, 2)


def test_they_are_held_so_where_an_accelerator_has_room(sides, monkeypatch):
    assert not dense.fits(*sides)

    class Device:
        def __init__(self, limit):
            self.limit = limit

        def memory_stats(self):
            return self.limit and {"bytes_limit": self.limit}

    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    need = 2 * 12 * 20 * 4
    for limit, expected in ((4 * need, True), (4 * need - 1, False), (None, False)):
        monkeypatch.setattr(jax, "local_devices", lambda limit=limit: [Device(limit)])
        assert dense.fits(*sides) is expected


def test_a_fit_of_them_is_that_of_sparse_rows(sides, monkeypatch, key):
    start = s2net.random_init(20, 4, key=key)
    plain = s2net.fit(*sides, init=start, max_iter=5)
    seen = []
    monkeypatch.setattr(dense, "fits", lambda *documents: seen.append(documents) or True)
    found = s2net.fit(*sides, init=start, max_iter=5)
    assert seen == [sides]
    losses = ([entry["loss"] for entry in one.history] for one in (found, plain))
    np.testing.assert_allclose(*losses, rtol=1e-4)


@pytest.mark.parametrize("platform", ["tpu", "cuda"])
def test_an_accelerator_compiles_no_gather_and_no_scatter(sides, platform, key):
    """Of the objective with its gradient; the same with sparse rows has both, which shows that they would be found."""
    start = s2net.random_init(20, 4, key=key)

    def program(documents) -> str:
        data = exact.Data(*documents, jnp.float32(10), jnp.float32(0), start, block_size=(12, 12))
        run = jax.jit(jax.value_and_grad(exact.objective))
        return export.export(run, platforms=[platform])(start, data).mlir_module()

    names = ("stablehlo.gather", "stablehlo.scatter")
    assert not any(name in program(tuple(map(sparse.filled, sides))) for name in names)
    assert all(name in program(sides) for name in names)
