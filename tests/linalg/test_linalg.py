from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.linalg
import scipy.sparse

from jaxsim import linalg, sparse

DIM = 300
SPECTRA = {
    "geometric": (0.9 ** np.arange(DIM), 1e-9),
    "one over i": (1 / np.arange(1.0, DIM + 1), 1e-9),
    "both signs": (np.concatenate([1 / np.arange(1.0, 151), -1 / np.arange(1.0, 151)]), 1e-9),
    "low rank": (np.concatenate([np.linspace(2, 1, 5), np.zeros(DIM - 5)]), 1e-12),
    # A few eigenvalues out of a flat spectrum are the hard case of any Krylov method.
    "nearly flat": (1 - np.arange(DIM) / DIM, 2e-2),
}


def with_spectrum(values, rng):
    rotation = np.linalg.qr(rng.normal(size=(DIM, DIM)))[0]
    matrix = rotation * values @ rotation.T
    return jnp.asarray((matrix + matrix.T) / 2), rotation


@pytest.mark.parametrize("solver", ["iterated", "dense"])
@pytest.mark.parametrize("k", [3, 12])
@pytest.mark.parametrize("name", SPECTRA)
def test_top_eigh_finds_the_largest_eigenvalues(rng, key, name, k, solver):
    spectrum, tolerance = SPECTRA[name]
    expected = np.sort(spectrum)[::-1][:k]
    matrix, _ = with_spectrum(spectrum, rng)
    values, vectors = linalg.top_eigh(lambda x: matrix @ x, DIM, k, key=key, solver=solver)
    np.testing.assert_allclose(values, expected, rtol=tolerance, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(k), atol=1e-11)
    residual = matrix @ vectors - vectors * values[None, :]
    assert float(jnp.max(jnp.abs(residual))) < 20 * tolerance**0.5


@pytest.mark.parametrize("k", [1, 150, DIM])
def test_top_eigh_is_dense_where_the_basis_would_be_the_whole_space(rng, key, k):
    matrix, _ = with_spectrum(1 / np.arange(1.0, DIM + 1), rng)
    expected, vectors = scipy.linalg.eigh(matrix)
    values, result = linalg.top_eigh(lambda x: matrix @ x, DIM, k, key=key)
    np.testing.assert_allclose(values, expected[::-1][:k], rtol=1e-9)
    if k > 1:
        np.testing.assert_allclose(result, reference.fix_signs(vectors[:, ::-1][:, :k]), atol=1e-8)


def test_the_basis_stays_orthogonal_where_the_operator_has_almost_no_rank(key):
    # The range is spanned by unit vectors, which are also what QR makes up for a block of zeros.
    diagonal = jnp.zeros((200, 1)).at[:10, 0].set(jnp.linspace(2.0, 1.0, 10))
    values, vectors = linalg.top_eigh(lambda x: diagonal * x, 200, 12, key=key, solver="iterated")
    np.testing.assert_allclose(values, [*np.linspace(2, 1, 10), 0, 0], atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(12), atol=1e-12)


@pytest.mark.parametrize("solver", ["iterated", "dense"])
@pytest.mark.parametrize("scale", [0.0, 1.0])
def test_a_multiple_of_the_identity_is_no_special_case(key, scale, solver):
    values, vectors = linalg.top_eigh(lambda x: scale * x, 200, 4, key=key, solver=solver)
    np.testing.assert_allclose(values, [scale] * 4, atol=1e-12)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(4), atol=1e-10)


def test_top_eigh_in_float32_and_twice_the_same(rng, key):
    matrix, _ = with_spectrum(0.9 ** np.arange(DIM), rng)
    short = matrix.astype(jnp.float32)

    def run():
        return linalg.top_eigh(lambda x: short @ x, DIM, 5, key=key, dtype=jnp.float32, solver="iterated")

    values, vectors = run()
    assert values.dtype == vectors.dtype == jnp.float32
    np.testing.assert_allclose(values, 0.9 ** np.arange(5), rtol=1e-5)
    again = run()
    np.testing.assert_array_equal(values, again[0])
    np.testing.assert_array_equal(vectors, again[1])


@pytest.mark.parametrize("solver", ["iterated", "dense"])
@pytest.mark.parametrize("shift", [0.0, 0.25])
@pytest.mark.parametrize("k", [3, 12])
def test_top_generalised_matches_lapack(rng, key, k, shift, solver):
    signal, _ = with_spectrum(0.9 ** np.arange(DIM), rng)
    noise, _ = with_spectrum(np.linspace(0.5, 2, DIM), rng)
    inverse = jnp.linalg.inv(noise)
    expected, vectors = scipy.linalg.eigh(signal, noise)
    values, result = linalg.top_generalised(lambda x: signal @ x - shift * (noise @ x), lambda x: noise @ x,
                                            lambda x: inverse @ x, DIM, k, key=key, shift=shift, solver=solver)
    np.testing.assert_allclose(values, expected[::-1][:k], rtol=1e-9)
    np.testing.assert_allclose(result, reference.fix_signs(vectors[:, ::-1][:, :k]), atol=1e-6)
    np.testing.assert_allclose(result.T @ noise @ result, np.eye(k), atol=1e-10)


def test_top_generalised_where_the_signal_has_almost_no_rank(rng, key):
    signal, _ = with_spectrum(np.concatenate([[3.0, 2.0, 1.0], np.zeros(DIM - 3)]), rng)
    noise, _ = with_spectrum(np.linspace(0.5, 2, DIM), rng)
    inverse = jnp.linalg.inv(noise)
    values, result = linalg.top_generalised(lambda x: signal @ x, lambda x: noise @ x, lambda x: inverse @ x, DIM, 12,
                                            key=key, solver="iterated")
    np.testing.assert_allclose(values, scipy.linalg.eigvalsh(signal, noise)[::-1][:12], atol=1e-11)
    np.testing.assert_allclose(result.T @ noise @ result, np.eye(12), atol=1e-10)


@pytest.mark.parametrize("generalised", [False, True])
def test_a_flat_spectrum_is_solved_to_its_last_vector(rng, key, generalised):
    # One basis of 3 k columns mixes the last vectors with those beyond: it has to start again.
    matrix, rotation = with_spectrum(np.concatenate([np.linspace(1, 0.8, 60), np.linspace(0.79, 0.3, DIM - 60)]), rng)

    def product(x):
        return matrix @ x

    if generalised:
        result = linalg.top_generalised(product, lambda x: 2 * x, lambda x: x / 2, DIM, 60, key=key, solver="iterated")
    else:
        result = linalg.top_eigh(product, DIM, 60, key=key, solver="iterated")
    inside = np.linalg.norm(rotation[:, :60].T @ np.linalg.qr(np.asarray(result[1]))[0]) ** 2 / 60
    assert inside > 0.9999


def test_every_start_finds_the_same_vectors(rng):
    matrix, _ = with_spectrum(0.8 ** np.arange(DIM), rng)
    first, second = (linalg.top_eigh(lambda x: matrix @ x, DIM, 4, key=jax.random.key(start), solver="iterated")[1]
                     for start in (1, 2))
    np.testing.assert_allclose(first, second, atol=1e-9)


@pytest.mark.parametrize("shape", [(30, 14), (14, 30), (9, 9)], ids=str)
def test_truncated_svd_matches_lapack(rng, key, shape):
    dense = rng.normal(size=shape) * (rng.random(shape) < 0.5)
    values, right = linalg.truncated_svd(sparse.from_scipy(scipy.sparse.csr_matrix(dense)), 6, key=key)
    np.testing.assert_allclose(values, scipy.linalg.svdvals(dense)[:6], rtol=1e-10)
    np.testing.assert_allclose(right, reference.lsa(dense, 6), atol=1e-9)


@pytest.mark.parametrize("shape", [(30, 14), (14, 30), (260, 250)], ids=str)
def test_truncated_svd_beyond_the_rank_is_zero(rng, key, shape):
    dense = rng.normal(size=(shape[0], 3)) @ rng.normal(size=(3, shape[1]))
    values, right = linalg.truncated_svd(sparse.from_scipy(scipy.sparse.csr_matrix(dense)), 5, key=key)
    np.testing.assert_allclose(values[:3], scipy.linalg.svdvals(dense)[:3], rtol=1e-10)
    assert values[3:].tolist() == [0.0, 0.0] and not np.any(right[:, 3:])
    np.testing.assert_allclose(right[:, :3].T @ right[:, :3], np.eye(3), atol=1e-10)


def test_svd_of_nothing_but_empty_documents(key):
    values, right = linalg.truncated_svd(sparse.from_scipy(scipy.sparse.csr_matrix((4, 6))), 2, key=key)
    assert values.tolist() == [0.0, 0.0] and not np.any(right)


@pytest.mark.parametrize(("dim", "k", "work", "solve", "faster"), [
    (15_161, 2, 2.8e7, 8.2e8, "iterated"),  # OPCA of 5,000 pairs: found in one filling of the basis
    (15_161, 20, 2.8e7, 1.3e8, "iterated"),
    (500, 2, 2.8e7, 8.2e8, "dense"),
])
def test_few_solutions_of_a_large_problem_are_iterated(dim, k, work, solve, faster):
    assert linalg.cost.cheapest(dim, k, linalg.eigen.basis_shape(k), work, solve) == faster


def test_a_solver_of_another_name_is_refused(key):
    with pytest.raises(ValueError, match="solver: expected dense or iterated, got arpack"):
        linalg.top_eigh(lambda x: x, 3, 1, key=key, solver="arpack")


def test_means_are_the_dense_ones(rng):
    dense = rng.normal(size=(7, 10)) * (rng.random((7, 10)) < 0.5)
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(dense))
    np.testing.assert_allclose(linalg.means(documents), dense.mean(axis=0), atol=1e-14)


def test_cholesky_and_solve_invert_a_matrix(rng):
    half = rng.normal(size=(5, 5))
    matrix, right = half @ half.T + np.eye(5), rng.normal(size=(5, 2))
    factor = linalg.cholesky(jnp.asarray(matrix), argument="noise")
    np.testing.assert_allclose(matrix @ linalg.cholesky_solve(factor, jnp.asarray(right)), right, atol=1e-12)
    with pytest.raises(ValueError, match="noise: expected a value that makes the matrix positive definite"):
        linalg.cholesky(jnp.asarray(-matrix), argument="noise")


def test_fix_signs_makes_the_first_largest_entry_positive():
    assert linalg.fix_signs(jnp.array([[1.0, -2.0], [-1.0, 1.0]])).tolist() == [[1.0, 2.0], [-1.0, -1.0]]
    assert linalg.fix_signs(jnp.zeros((0, 2))).shape == (0, 2)


@pytest.mark.parametrize("k", [0, 4, -1])
def test_k_out_of_range_is_refused(key, k):
    with pytest.raises(ValueError, match="k: expected a whole number between 1 and 3"):
        linalg.top_eigh(lambda x: x, 3, k, key=key)
    with pytest.raises(ValueError, match="k: expected a whole number between 1 and 3"):
        linalg.truncated_svd(sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((3, 8)))), k, key=key)


@pytest.mark.parametrize("wide", [False, True])
def test_singular_values_of_many_documents_are_not_taken_for_rounding(rng, without_64_bits, wide):
    number = 50_000  # times the precision of float32, squares of .077 of the first would count as nothing
    values = rng.uniform(0.9, 1.1, number) * np.where(np.arange(number) % 2, 1, 0.05)
    rows = scipy.sparse.csr_matrix((values, (np.arange(number), np.arange(number) % 2)), (number, 3))
    expected = np.sort([np.linalg.norm(values[::2]), np.linalg.norm(values[1::2])])[::-1]
    with without_64_bits():
        documents = sparse.from_scipy((rows.T if wide else rows).astype(np.float32).tocsr())
        found, right = linalg.truncated_svd(documents, 3, key=jax.random.key(0))
        np.testing.assert_allclose(found, [*expected, 0], rtol=1e-4)
        np.testing.assert_allclose(right.T @ right, np.diag([1, 1, 0]), atol=1e-3)


def test_singular_vectors_of_common_words_are_all_found(rng, without_64_bits):
    often = 1 / np.arange(1, 301)
    words = rng.choice(300, size=(20_000, 20), p=often / often.sum())
    rows = scipy.sparse.csr_matrix((np.ones(words.size, np.float32), words.ravel(), np.arange(0, words.size + 1, 20)),
                                   (20_000, 300))  # fmt: skip
    squares, vectors = np.linalg.eigh((rows.T @ rows).toarray().astype(np.float64))
    with without_64_bits():
        values, right = linalg.truncated_svd(sparse.from_scipy(rows), 300, key=jax.random.key(0))
    np.testing.assert_allclose(values, np.sqrt(squares[::-1]), rtol=1e-3)
    for k in (50, 200):
        assert np.linalg.norm(vectors[:, : -k - 1 : -1].T @ np.asarray(right, np.float64)[:, :k]) ** 2 > 0.999 * k


@pytest.mark.parametrize("shape", [(30, 14), (14, 30)], ids=str)
@pytest.mark.parametrize("power", [-80, -34, 34, 80])
def test_randomised_svd_has_no_scale(rng, without_64_bits, shape, power):
    dense = (rng.normal(size=shape) * (rng.random(shape) < 0.5)).astype(np.float32)
    with without_64_bits():
        (values, right), (scaled, same) = (
            linalg.randomised_svd(sparse.from_scipy(scipy.sparse.csr_matrix(np.ldexp(dense, by))), 4,
                                  key=jax.random.key(0)) for by in (0, power)
        )  # fmt: skip
        np.testing.assert_allclose(np.ldexp(np.asarray(scaled), -power), values, rtol=1e-5)
        np.testing.assert_allclose(same, right, atol=1e-4)
