"""Documents held with their zeros: the same products, and no gather or scatter in what an accelerator compiles."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax import export

from jaxsim import sparse
from jaxsim.linalg import covariance
from jaxsim.methods import lsa, opca, projections, s2net, s2net_sgd
from jaxsim.methods.s2net import exact, sgd
from jaxsim.model import parts
from jaxsim.parallel import sharding
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
    np.testing.assert_allclose(*(sparse.project_transpose(one, wanted) for one in (held, sides[0])), atol=1e-5)
    with pytest.raises(ValueError, match=r"weights: expected shape \(20, k\)"):
        sparse.project(held, weights[1:])
    with pytest.raises(ValueError, match=r"dense: expected shape \(12, k\)"):
        sparse.project_transpose(held, wanted[1:])
    with pytest.raises(ValueError, match="terms: expected documents"):
        sparse.project_transpose(weights, wanted)


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


@pytest.fixture
def spread():
    """Rows of a map from 20 terms to 25."""
    return sparse.from_scipy(sp.random(20, 25, 0.2, "csr", np.float32, random_state=3))


@pytest.mark.parametrize("spreads", [False, True])
def test_a_fit_of_them_is_that_of_sparse_rows(sides, spread, spreads, monkeypatch, key):
    spread = spread if spreads else None
    start = s2net.random_init(25 if spreads else 20, 4, key=key)
    plain = s2net.fit(*sides, init=start, spread=spread, max_iter=5)
    seen = []
    monkeypatch.setattr(dense, "fits", lambda *documents: seen.append(documents) or True)
    found = s2net.fit(*sides, init=start, spread=spread, max_iter=5)
    assert seen == [(*sides, spread) if spreads else sides]
    losses = ([entry["loss"] for entry in one.history] for one in (found, plain))
    np.testing.assert_allclose(*losses, rtol=1e-4)


def test_batches_of_them_learn_what_batches_of_sparse_rows_do(sides, key, monkeypatch):
    start = s2net.random_init(20, 4, key=key)
    options = {"init": start, "key": key, "batch_size": 4, "max_iter": 3}
    plain = s2net_sgd.fit(*sides, **options)
    monkeypatch.setattr(dense, "fits", lambda *documents: True)
    assert isinstance(sgd.documents_of(sparse.to_scipy(sides[0])[:4], 30), sparse.Filled)
    np.testing.assert_allclose(s2net_sgd.fit(*sides, **options).params.weights, plain.params.weights, atol=1e-5)


CLOSED = {
    "opca": lambda sides, spread: opca.fit(sides, k=3, noise=0.5, spread=spread),
    "opca, few pairs": lambda sides, spread: opca.fit(tuple(sparse.take(side, np.arange(5)) for side in sides), k=2),
    "lsa": lambda sides, spread: lsa.fit(sides[0], k=3),
}


@pytest.mark.parametrize("name", CLOSED)
def test_closed_forms_of_them_are_those_of_sparse_rows(name, sides, spread, monkeypatch):
    plain = CLOSED[name](sides, spread)
    seen = []
    monkeypatch.setattr(dense, "fits", lambda *documents: seen.append(documents) or True)
    found = CLOSED[name](sides, spread)
    assert seen
    for one, other in zip(jax.tree.leaves(found.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3 * float(jnp.abs(other).max()))


def test_a_model_encodes_the_same_on_an_accelerator(rng, monkeypatch):
    weights = jnp.asarray(rng.normal(size=(20, 4)), jnp.float32)
    rows = sp.random(12, 20, 0.3, "csr", np.float32, random_state=1)
    monkeypatch.setattr(parts.host, "compiled", lambda: None)
    plain = parts.project(weights, rows)
    monkeypatch.setattr(dense, "fits", lambda *documents: True)
    np.testing.assert_allclose(parts.project(weights, rows), plain, rtol=1e-5, atol=1e-6)


def objective(start):
    """Value and gradient of S2Net's loss, of both sides and perhaps a map before the projection."""

    def run(documents):
        left, right, *spread = documents
        data = exact.Data(left, right, jnp.float32(10), jnp.float32(0), start, None, (12, 12),
                          spread=spread[0] if spread else None)  # fmt: skip
        return jax.value_and_grad(exact.objective)(start, data)

    return run


def covariance_of(documents):
    """A product with a covariance, as closed forms take it."""
    first, *rest = documents
    x, mean = jnp.ones(((rest or [first])[0].num_terms, 3)), jnp.ones(((rest or [first])[0].num_terms, 1))
    along = covariance._down(first, *(rest or [None]), mean, 1.0, x)
    return covariance._up(first, *(rest or [None]), mean, 1.0, along)


def validated(start):
    """Both sides' vectors, as a score of early stopping takes them."""
    return lambda documents: [projections.encode(start, side).dense for side in documents]


@pytest.mark.parametrize("what", ["s2net", "s2net, n-grams", "closed form", "closed form, n-grams", "vectors", "mesh"])
def test_an_accelerator_compiles_no_gather_and_no_scatter(what, sides, spread, key, monkeypatch):
    """The same with sparse rows has them, which shows that they would be found."""
    start = s2net.random_init(25 if what == "s2net, n-grams" else 20, 4, key=key)
    run, documents = {
        "s2net": (objective(start), sides), "s2net, n-grams": (objective(start), (*sides, spread)),
        "closed form": (covariance_of, sides[:1]), "closed form, n-grams": (covariance_of, (sides[0], spread)),
        "vectors": (validated(start), sides), "mesh": (objective(start), sides),
    }[what]  # fmt: skip

    def program(held: bool) -> str:
        monkeypatch.setattr(dense, "fits", lambda *documents: held)
        if what == "mesh":
            some = tuple(sharding.shard(side, jax.make_mesh((1,), ("pairs",))) for side in documents)
        else:
            some = sparse.held(*documents)
        return export.export(jax.jit(run), platforms=["tpu", "cuda"])(some).mlir_module()

    names = ("stablehlo.gather", "stablehlo.scatter") if what != "vectors" else ("stablehlo.gather",)
    assert not any(name in program(True) for name in names)
    assert all(name in program(False) for name in names)
