"""Documents as sums of a few rows at a time: the same products as sparse rows, and nothing scattered."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax import export

from jaxsim import sparse
from jaxsim.methods import lsa, opca, s2net
from jaxsim.methods.s2net import exact
from jaxsim.sparse.gather import gathered_alike


def made(rng, docs, terms, density=0.3):
    """Documents, the second of them empty, the third of every term, the last term in none."""
    matrix = sp.random(docs, terms, density, "lil", np.float32, random_state=int(rng.integers(99)))
    matrix[1], matrix[2], matrix[:, -1] = 0, 1, 0
    return matrix.tocsr()


@pytest.mark.parametrize("width", [2, 3, 8])
def test_products_and_gradients_are_those_of_float64(rng, width):
    csr = made(rng, 70, 40)
    documents = sparse.gathered(sparse.from_scipy(csr), width=width)
    assert (documents.num_docs, documents.num_terms) == (70, 40)
    assert len(documents.levels) > 1
    weights, wanted = (rng.normal(size=(rows, 5)).astype(np.float32) for rows in (40, 70))
    exact64 = csr.astype(np.float64)
    np.testing.assert_allclose(sparse.project(documents, weights), exact64 @ weights, atol=2e-5)
    np.testing.assert_allclose(sparse.project_transpose(documents, wanted), exact64.T @ wanted, atol=2e-5)
    grad = jax.grad(lambda weights: jnp.vdot(sparse.project(documents, weights), wanted))(jnp.asarray(weights))
    np.testing.assert_allclose(grad, exact64.T @ wanted, atol=2e-5)
    back = jax.grad(lambda dense: jnp.vdot(sparse.project_transpose(documents, dense), weights))(jnp.asarray(wanted))
    np.testing.assert_allclose(back, exact64 @ weights, atol=2e-5)
    several = jax.vmap(sparse.project, in_axes=(None, 0))(documents, jnp.stack([weights, 2 * weights]))
    np.testing.assert_allclose(several[1], 2 * exact64 @ weights, atol=4e-5)


def test_a_weight_that_is_not_finite_stays_in_its_own_documents(rng):
    csr = sp.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32))
    weights = np.array([[np.nan], [np.inf], [3]], np.float32)
    found = sparse.project(sparse.gathered(sparse.from_scipy(csr)), weights)
    assert found.tolist() == [[np.inf], [3], [0]]


def test_parts_of_equal_shapes_are_the_same_documents(rng):
    parts = [made(rng, 30, 20), sp.csr_matrix((30, 20), dtype=np.float32), made(rng, 30, 20, 0.02)]
    parts = [sparse.from_scipy(part) for part in parts]
    alike, weights, dense = gathered_alike(parts, width=3), jnp.ones((20, 2)), jnp.ones((30, 2))
    shapes = [jax.tree.map(np.shape, one) for one in alike]
    assert shapes[0] == shapes[1] == shapes[2]
    for one, part in zip(alike, parts, strict=True):
        np.testing.assert_allclose(sparse.project(one, weights), sparse.project(part, weights), rtol=1e-5)
        np.testing.assert_allclose(sparse.project_transpose(one, dense), sparse.project_transpose(part, dense),
                                   rtol=1e-5)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (0, 0), (2, 3)])
def test_nothing_and_zeros(shape):
    documents = sparse.gathered(sparse.from_scipy(sp.csr_matrix(shape, dtype=np.float32)))
    assert sparse.project(documents, jnp.ones((shape[1], 2))).tolist() == np.zeros((shape[0], 2)).tolist()
    assert sparse.project_transpose(documents, jnp.ones((shape[0], 2))).tolist() == np.zeros((shape[1], 2)).tolist()


def test_padding_is_left_out_and_wrong_shapes_are_refused():
    padded = sparse.from_scipy(sp.csr_matrix([[1.0, 0.0], [0.0, 2.0]]), pad_nnz=7, pad_docs=3)
    documents = sparse.gathered(padded)
    assert sparse.project(documents, jnp.ones((2, 1))).tolist() == [[1], [2], [0]]
    with pytest.raises(ValueError, match=r"weights: expected shape \(2, k\)"):
        sparse.project(documents, jnp.ones((3, 1)))
    with pytest.raises(ValueError, match=r"dense: expected shape \(3, k\)"):
        sparse.project_transpose(documents, jnp.ones((2, 1)))
    with pytest.raises(ValueError, match="width: expected at least 2, got 1"):
        sparse.gathered(padded, width=1)


FITS = {
    "s2net": lambda sides, spread, key: s2net.fit(*sides, init=s2net.random_init(20, 4, key=key), max_iter=5),
    "s2net, n-grams": lambda sides, spread, key: s2net.fit(*sides, init=s2net.random_init(25, 4, key=key),
                                                           spread=spread, max_iter=5),
    "opca": lambda sides, spread, key: opca.fit(sides, k=3, noise=0.5),
    "lsa": lambda sides, spread, key: lsa.fit(sides[0], k=3),
}  # fmt: skip


@pytest.mark.parametrize("name", FITS)
def test_fits_of_them_are_those_of_sparse_rows(name, rng, key, monkeypatch):
    sides = [sparse.from_scipy(made(rng, 30, 20)) for _ in range(2)]
    spread = sparse.from_scipy(made(rng, 20, 25))
    plain, held = FITS[name](sides, spread, key), []
    monkeypatch.setattr(sparse, "held", lambda *documents: held.extend(documents) or tuple(
        one and sparse.gathered(one) for one in documents))
    found = FITS[name](sides, spread, key)
    assert held
    for one, other in zip(jax.tree.leaves(found.params), jax.tree.leaves(plain.params), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-3 * float(jnp.abs(other).max()))


def test_a_gpu_holds_documents_so(rng, monkeypatch):
    one = sparse.from_scipy(made(rng, 9, 7))
    assert sparse.held(one, None) == (one, None)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    found, none = sparse.held(one, None)
    assert isinstance(found, sparse.Gathered)
    assert none is None


def test_a_gpu_scatters_nothing(rng, key):
    """The same with sparse rows does, which shows that it would be found; its sums have no fixed order."""
    sides = [sparse.from_scipy(made(rng, 30, 20)) for _ in range(2)]
    start = s2net.random_init(20, 4, key=key)

    def program(sides) -> str:
        def run(left, right):
            data = exact.Data(left, right, jnp.float32(10), jnp.float32(0), start, None, (30, 30))
            return jax.value_and_grad(exact.objective)(start, data)

        return export.export(jax.jit(run), platforms=["cuda"])(*sides).mlir_module()

    assert "stablehlo.scatter" in program(sides)
    assert "stablehlo.scatter" not in program([sparse.gathered(side) for side in sides])
