"""What each method owes to its equations: dense references, rank, gradients, scale."""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.linalg
import scipy.sparse
from methods_table import METHODS, TRAIN, K, M, V, assert_same, corpus, fitted, learned, start

from jaxsim import linalg, optim, sparse
from jaxsim.data import labelled_pairs as pairs_room
from jaxsim.linalg import cost
from jaxsim.methods import cca, cl_lsi, cr5, dda, lsa, opca, projections, s2net, s2net_mse
from jaxsim.methods.projections import Projection, agreement


def test_projections_match_dense_lapack():
    data = corpus(TRAIN)
    left, right = (sparse.to_scipy(side).toarray() for side in data.weighted)
    counts = [sparse.to_scipy(side).toarray() for side in data.counts]
    both = np.concatenate([left, right])
    expected = {
        "lsa": reference.lsa(both, K),
        "pca": reference.pca(both, K),
        "cl_lsi": reference.cl_lsi(counts, K),
        "opca": reference.opca([left, right], K, 0.1),
        "opca of three views": reference.opca([left, right, left], K, 0.1),
        "dda": reference.dda([left, right], K, 0.1, 3, K),
    }
    for name, weights in expected.items():
        found = fitted(name).params.weights
        np.testing.assert_allclose(found, weights, atol=1e-7 * np.max(np.abs(weights)), err_msg=name)


def test_one_krylov_basis_keeps_nearly_all_squares_of_lsa(monkeypatch):
    monkeypatch.setattr(cost, "cheapest", lambda *_: "iterated")
    counts = scipy.sparse.random(900, 700, density=0.03, random_state=0, format="csr")
    best = np.linalg.svd(counts.toarray(), compute_uv=False)[:20]
    documents, kept = sparse.from_scipy(counts), {}
    for tolerance in (linalg.TOLERANCE, np.inf):
        found = np.asarray(lsa.fit(documents, k=20, tolerance=tolerance).params.weights)
        np.testing.assert_allclose(found.T @ found, np.eye(20), atol=1e-5)
        kept[tolerance] = float(np.sum((counts @ found) ** 2) / np.sum(best**2))
    assert 0.98 < kept[np.inf] <= kept[linalg.TOLERANCE] and kept[linalg.TOLERANCE] > 0.9999


def test_cl_lsi_of_texts_at_unit_length_is_lsa_of_them(rng):
    counts = [(rng.random((9, 6)) < 0.3) * rng.integers(1, 4, (9, 6)) for _ in range(2)]
    counts[0][0] = counts[1][0] = 0
    counts[0][1:, 0], counts[0][1, 1:], counts[1][1] = 1, 0, 0  # a text of the term that nearly all have: short
    df = (np.concatenate(counts) > 0).sum(axis=0)
    both = np.log2(sum(counts) + 1) * np.log2(18 / np.maximum(df, 1))
    lengths = np.linalg.norm(both, axis=1, keepdims=True)
    assert lengths.min() == 0 and np.any((0 < lengths) & (lengths < 1))
    expected = lsa.fit(sparse.from_scipy(scipy.sparse.csr_matrix(both / np.where(lengths > 0, lengths, 1))), k=3)
    views = [sparse.from_scipy(scipy.sparse.csr_matrix(one.astype(float))) for one in counts]
    found = cl_lsi.fit(views, k=3, unit_length=True).params.weights
    np.testing.assert_allclose(found, expected.params.weights, atol=1e-7)


def test_the_powers_of_small_singular_values_are_theirs_and_infinite_ones_are_refused(rng):
    counts = scipy.sparse.random(9, 6, 0.6, rng=rng).tocsr()
    plain, small = (lsa.fit(sparse.from_scipy(one), k=3, singular_power=1.0).params.weights
                    for one in (counts, counts * 2.0**-9))  # fmt: skip
    np.testing.assert_allclose(small, plain * 2.0**-9, rtol=1e-6)
    large = sparse.from_scipy(scipy.sparse.csr_matrix(np.full((9, 6), 3e38, np.float32)))
    assert np.all(np.isfinite(lsa.fit(large, k=1).params.weights))
    with pytest.raises(ValueError, match="terms: expected singular values within their precision, or singular_power 0"):
        lsa.fit(large, k=1, singular_power=1.0)


def test_cr5_takes_a_document_of_one_word_for_a_document(rng):
    views = [np.where(rng.random((12, 5)) < 0.3, rng.random((12, 5)), 0) for _ in range(2)]
    for view in views:
        view[:4] = np.eye(5)[:4]
    fit = cr5.fit([sparse.from_scipy(scipy.sparse.csr_matrix(view)) for view in views], k=3, ridge=0.5)
    for found, weights in zip(fit.params, reference.cr5(views, 3, 0.5, 0.0), strict=True):
        np.testing.assert_allclose(found.weights, weights, atol=1e-9)


def test_agreement_is_the_mean_correlation_of_the_dimensions_around(rng):
    left = rng.normal(size=(50, 7))
    right = left + rng.normal(size=(50, 7)) * np.linspace(0.1, 3, 7)
    unit = [side / np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right)]
    single = [max(0, np.corrcoef(unit[0][:, j], unit[1][:, j])[0, 1]) for j in range(7)]
    for window in (1, 3, 5):
        expected = [np.mean(single[max(j - window // 2, 0) : j + window // 2 + 1]) for j in range(7)]
        np.testing.assert_allclose(agreement.agreement(left, right, window=window), expected, rtol=1e-6)


def test_cca_matches_the_printed_eigenproblem():
    left, right = (sparse.to_scipy(side).toarray() for side in corpus(TRAIN).weighted)
    for found, weights in zip(fitted("cca").params, reference.cca(left, right, K, 1.0), strict=True):
        np.testing.assert_allclose(found.weights, weights, atol=1e-7)


def test_cca_beyond_its_rank_gives_zero_columns(rng):
    cause = rng.normal(size=(9, 2))
    sides = [scipy.sparse.csr_matrix((cause @ rng.normal(size=(2, 6))).astype(np.float32)) for _ in range(2)]
    for side in cca.fit(*map(sparse.from_scipy, sides), k=6, ridge=0.5).params:
        lengths = np.linalg.norm(side.weights, axis=0)
        assert np.all(lengths[:2] > 0.01) and not np.any(lengths[2:])
    constant = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((9, 6), np.float32)))
    for side in cca.fit(constant, constant, k=6, ridge=0.5).params:
        assert not np.any(side.weights)


@pytest.mark.parametrize("power", [0.0, 1.0])
def test_cr5_matches_the_regression_with_all_matrices_formed(power):
    views = [sparse.to_scipy(side).toarray() for side in corpus(TRAIN).weighted]
    three = [*views, np.where(np.arange(M)[:, None] % 3 == 0, 0, views[0])[:, : V // 2]]  # one covers fewer concepts
    for sides in (views, three):
        assert any(not row.any() for row in sides[0])  # an empty document is none of its language
        fit = cr5.fit([sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in sides], k=K, ridge=10.0,
                      singular_power=power)
        for found, weights in zip(fit.params, reference.cr5(sides, K, 10.0, power), strict=True):
            np.testing.assert_allclose(found.weights, weights, atol=1e-9)


@pytest.mark.parametrize("ridge", [1e-2, 1e-4, 1e-6])
def test_cr5_with_a_small_ridge_has_directions_of_its_regression_alone(rng, ridge):
    sides = [rng.random((30, 80)) * (rng.random((30, 80)) < 0.2) for _ in range(2)]
    sides = [(side / np.linalg.norm(side, axis=1, keepdims=True)).astype(np.float32) for side in sides]
    fit = cr5.fit([sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in sides], k=3, ridge=ridge)
    found = np.concatenate([np.asarray(side.weights, np.float64) for side in fit.params])
    texts, concepts = scipy.linalg.block_diag(*sides).astype(np.float64), np.concatenate([np.eye(30)] * 2)
    centred = texts - texts.mean(axis=0)
    regression = np.linalg.solve(centred.T @ centred + ridge * np.eye(160), centred.T @ concepts)  # Eq. (2)
    inside = regression @ np.linalg.lstsq(regression, found, rcond=None)[0]
    assert np.linalg.norm(found - inside) < 1e-5 * np.linalg.norm(found)


@pytest.mark.parametrize(("scale", "ridge"), [(1e4, 3.0), (1.0, 1e-8)])
def test_both_sides_of_cca_have_unit_variance_however_small_the_ridge_is(rng, scale, ridge):
    sides = [(scale * rng.random((12, v)) * (rng.random((12, v)) < 0.2)).astype(np.float32) for v in (60, 50)]
    fit = cca.fit(*(sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in sides), k=3, ridge=ridge)
    for side, projection in zip(sides, fit.params, strict=True):
        found, exact = np.asarray(projection.weights, np.float64), side.astype(np.float64)
        covariance = np.cov(exact, rowvar=False, bias=True) + ridge * np.eye(side.shape[1])
        np.testing.assert_allclose(np.diag(found.T @ covariance @ found), 1, atol=1e-4)


def test_opca_of_a_noise_that_float32_loses_beside_the_documents_is_solved_in_float64_or_refused(rng, monkeypatch):
    sides = [(3e3 * rng.random((40, 60)) * (rng.random((40, 60)) < 0.2)).astype(np.float32) for _ in range(2)]
    views = [sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in sides]
    found = np.asarray(opca.fit(views, k=4).params.weights, np.float64)
    exact = [side.astype(np.float64) for side in sides]
    apart = (exact[0] - exact[1]) / np.sqrt(80)
    noise = apart.T @ apart + 0.1 * np.eye(60)
    signal = sum(np.cov(side, rowvar=False, bias=True) for side in exact)
    np.testing.assert_allclose(found.T @ noise @ found, np.eye(4), atol=1e-5)
    wanted = scipy.linalg.eigh(signal, noise, eigvals_only=True)[:-5:-1]
    np.testing.assert_allclose(np.diag(found.T @ signal @ found), wanted, rtol=1e-5)

    def unsolved(*given, **options):
        raise np.linalg.LinAlgError

    with monkeypatch.context() as patch:
        patch.setattr(opca, "_in_float64", unsolved)
        with pytest.raises(ValueError, match="noise: expected a value that float32 holds beside the squared differe"):
            opca.fit(views, k=4)
    monkeypatch.setattr(opca, "_DENSE", 59)
    with pytest.raises(ValueError, match="noise: expected a value that float32 holds beside the squared differences"):
        opca.fit(views, k=4)
    smaller = [sparse.from_scipy(scipy.sparse.csr_matrix(side / 1e3)) for side in sides]
    assert opca.fit(smaller, k=4).params.weights.shape == (60, 4)


def test_cr5_keeps_eigenvalues_apart_that_lie_close_together(rng):
    views = [rng.normal(size=(300, 220)) * (rng.random((300, 220)) < 0.1) for _ in range(2)]
    fit = cr5.fit([sparse.from_scipy(scipy.sparse.csr_matrix(view)) for view in views], k=20, ridge=1.0)
    found = np.concatenate([side.weights for side in fit.params])
    weights = np.concatenate(reference.cr5(views, 20, 1.0, 0.0))
    np.testing.assert_allclose(found @ found.T, weights @ weights.T, atol=1e-9)


def test_cr5_beyond_its_rank_gives_zero_columns_and_refuses_what_it_cannot_use(rng):
    cause = rng.normal(size=(9, 2))
    sides = [sparse.from_scipy(scipy.sparse.csr_matrix((cause @ rng.normal(size=(2, 6))).astype(np.float32)))
             for _ in range(2)]
    for side in cr5.fit(sides, k=6, ridge=0.5).params:
        lengths = np.linalg.norm(side.weights, axis=0)
        assert np.all(lengths[:2] > 0.01) and not np.any(lengths[4:])
    for arguments, message in [({"ridge": 0.0}, "ridge: expected a positive number"),
                               ({"views": sides[:1]}, "views: expected at least two languages, got 1"),
                               ({"k": 10}, "k: expected a whole number")]:
        with pytest.raises(ValueError, match=message):
            cr5.fit(**{"views": sides, "k": 1} | arguments)


def test_lsa_beyond_the_rank_and_its_singular_power(rng):
    documents = sparse.from_scipy(scipy.sparse.csr_matrix(rng.normal(size=(9, 2)) @ rng.normal(size=(2, 9))))
    plain, white = (lsa.fit(documents, k=4, singular_power=power).params.weights for power in (0.0, -1.0))
    assert not np.any(plain[:, 2:]) and not np.any(white[:, 2:])
    concepts = sparse.project(documents, white)[:, :2]
    np.testing.assert_allclose(concepts.T @ concepts, np.eye(2), atol=1e-10)
    np.testing.assert_allclose(white[:, :2] / plain[:, :2], (1 / np.linalg.svd(
        sparse.to_scipy(documents).toarray())[1][:2])[None, :].repeat(9, axis=0), rtol=1e-9)


def test_the_first_dimensions_are_the_smaller_fit():
    for name in ("lsa", "pca", "cl_lsi", "opca", "cca"):
        small = METHODS[name].fit(corpus(TRAIN), 2).params
        assert_same(small, projections.truncate(fitted(name).params, 2), 1e-8)


def test_opca_and_dda_of_documents_without_any_words():
    nothing = sparse.from_scipy(scipy.sparse.csr_matrix((M, V)))
    for fit in (opca.fit, functools.partial(dda.fit, num_blocks=3)):
        assert np.all(np.isfinite(fit((nothing, nothing), k=K).params.weights))


@pytest.mark.parametrize("terms", [9, 400], ids=["more documents", "more terms"])
@pytest.mark.parametrize("spread", [False, True], ids=["words", "n-grams"])
def test_terms_that_no_document_has_get_no_weight_from_rounding_in_opca(rng, terms, spread):
    rows = [rng.integers(0, 3, (40, terms)).astype(np.float32) for _ in range(2)]
    unseen = np.zeros(terms, bool)
    unseen[[2, 7]] = True
    for side in rows:
        side[:, unseen] = 0
    views = tuple(sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in rows)
    identity = sparse.from_scipy(scipy.sparse.identity(terms, format="csr", dtype=np.float32))
    weights = opca.fit(views, k=min(terms, 60), noise=1e-4, spread=identity if spread else None).params.weights
    assert np.array_equal(np.any(np.asarray(weights) != 0, axis=1), ~unseen)


def test_one_pair_has_no_negatives_and_nothing_to_learn():
    one = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((1, 3))))
    fit = s2net.fit(one, one, init=jnp.ones((3, 2)))
    assert fit.loss == 0 and fit.steps == 0 and np.all(fit.params.weights == 1)


@pytest.mark.parametrize("two", [False, True], ids=["one matrix", "two matrices"])
@pytest.mark.parametrize("activation", [None, jnp.tanh])
def test_s2net_objective_and_gradient_match_the_paper(rng, two, activation):
    left, right = (rng.normal(size=(6, 5)) * (rng.random((6, 5)) < 0.6) for _ in range(2))
    left[2] = 0
    a, b, a0, b0, d_a, d_b = rng.normal(size=(6, 5, 2))
    b, b0, d_b = (b, b0, d_b) if two else (a, a0, d_a)

    def sides(a, b):
        return (Projection(jnp.asarray(a)), Projection(jnp.asarray(b))) if two else Projection(jnp.asarray(a))

    documents = [sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in (left, right)]
    data = s2net.Data(*documents, jnp.asarray(7.0), jnp.asarray(0.3), sides(a0, b0), activation)
    value, grad = jax.jit(jax.value_and_grad(s2net.objective))(sides(a, b), data)
    plain = {"activation": np.tanh} if activation else {}

    def loop(step):
        return reference.s2net(left, right, a + step * d_a, b + step * d_b, 7.0, 0.3, a0, b0, shared=not two, **plain)

    assert float(value) == pytest.approx(loop(0.0), rel=1e-12)
    slope = sum(float(np.vdot(g, d)) for g, d in zip(jax.tree.leaves(grad), (d_a, d_b), strict=False))
    assert slope == pytest.approx(reference.central_difference(loop, 0.0, 1.0), rel=1e-6)


def test_s2net_mse_objective_and_gradient_match_the_paper(rng):
    left, right = rng.normal(size=(4, 5)), rng.normal(size=(3, 5))
    right[1] = 0
    a, a0, direction = rng.normal(size=(3, 5, 2))
    triples = [(0, 0, 1.0), (0, 1, 0.0), (3, 2, 0.25), (2, 0, -1.0)]
    documents = [sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in (left, right)]
    chosen = pairs_room.labelled(*map(list, zip(*triples, strict=True)), num_left=4, num_right=3)
    data = s2net_mse.Data(*documents, chosen, jnp.asarray(0.3), Projection(jnp.asarray(a0)))
    value, grad = jax.jit(jax.value_and_grad(s2net_mse.objective))(Projection(jnp.asarray(a)), data)

    def loop(a):
        return reference.s2net_mse(left, right, triples, a, 0.3, a0)

    assert float(value) == pytest.approx(loop(a), rel=1e-12)
    slope = reference.central_difference(loop, a, direction)
    assert slope == pytest.approx(float(np.vdot(grad.weights, direction)), rel=1e-6)


def test_s2net_ignores_the_scale_of_its_start():
    data = corpus(TRAIN)
    small = start(K, np.float64)
    fits = [s2net.fit(*data.weighted, init=Projection(small.weights * scale), max_iter=12) for scale in (1e-3, 1e3)]
    assert [fit.loss for fit in fits] == pytest.approx([fitted("s2net").loss] * 2, rel=1e-5)


@pytest.mark.parametrize("two", [False, True], ids=["one matrix", "two matrices"])
def test_a_start_before_a_nonlinear_output_is_scaled_whatever_its_size(two, rng):
    words = rng.random((6, V)).astype(np.float32)
    weights = start(K, np.float32).weights

    def scaled(documents, exponent):
        sides = [sparse.from_scipy(scipy.sparse.csr_matrix(words * np.float32(documents))) for _ in range(2)]
        init = Projection(weights * np.float32(10.0**exponent))
        return s2net.checked_start((init, init) if two else init, *sides, activation=jnp.tanh), sides[0]

    for documents, exponent in ((1.0, 0), (1e15, 15), (1e30, 30), (1e-15, -15), (1e-30, 20)):
        found, side = scaled(documents, exponent)
        outputs = sparse.project(side, s2net.sides(found)[0].weights)
        assert float(jnp.sqrt(jnp.mean(outputs**2))) == pytest.approx(1.0, rel=1e-5), (documents, exponent)
    with pytest.raises(ValueError, match="left, right: expected documents whose outputs are finite, got inf"):
        scaled(3e38, 0)


def test_a_strong_penalty_keeps_s2net_at_its_start():
    fit = learned(corpus(TRAIN), K, beta=1e6)
    assert_same(fit.params, start(K, np.float64), 1e-4)


def test_settings_of_s2net_do_not_compile_again():
    data = corpus(TRAIN)
    learned(data, K, gamma=3.0, beta=0.1)
    before = optim.lbfgs._search.compiled(jax.default_backend())._cache_size()
    learned(data, K, gamma=5.0, beta=0.2, tol=1e-3, first_step=0.1)
    assert optim.lbfgs._search.compiled(jax.default_backend())._cache_size() == before
