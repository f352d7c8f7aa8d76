"""ITML, HDLR and HDILR against the published full-matrix updates, a general solver, and their own equations."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_metric
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.data import labelled_pairs
from jaxsim.evaluate import retrieval
from jaxsim.methods import itml, projections
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights import metric
from jaxsim.methods.weights.metric import Metric


@pytest.fixture
def documents(rng):
    return rng.normal(size=(12, 4))


def consecutive(n=12):
    left, right = np.arange(n - 1), np.arange(1, n)
    return labelled_pairs.labelled(left, right, (left % 3 == 0).astype(float), num_left=n, num_right=n)


def put(dense):
    return sparse.from_scipy(scipy.sparse.csr_matrix(dense))


def as_given(dense, chosen):
    return dense[np.asarray(chosen.left)] - dense[np.asarray(chosen.right)], np.asarray(chosen.labels) == 1


@pytest.mark.parametrize("slack", [0.1, 1.0, 10.0])
def test_of_full_rank_it_is_the_published_algorithm(documents, slack):
    chosen = consecutive()
    found = itml.fit(put(documents), put(documents), chosen, init=Projection(jnp.eye(4)), bounds=(1.0, 6.0),
                     slack=slack, max_iter=7, tol=0.0)
    expected = reference_metric.itml(*as_given(documents, chosen), 1.0, 6.0, slack, 7)
    np.testing.assert_allclose(found.params.weights @ found.params.weights.T, expected, atol=1e-10)
    assert [entry["step"] for entry in found.history] == list(range(8))
    assert found.steps == 7 and not np.allclose(expected, np.eye(4), atol=0.1)


@pytest.mark.parametrize("guarded", [False, True])
@pytest.mark.parametrize("num", [1, 32, 75])
def test_blocks_of_pairs_are_the_pairs_one_by_one(rng, num, guarded):
    z = rng.normal(size=(num, 6))
    z[:: 9] = 0  # equal documents
    given = [jnp.asarray(x) for x in (z, rng.random(num), np.where(np.arange(num) % 3, 1.0, -1.0), 2.0)]
    one = other = itml.State(jnp.eye(6), jnp.asarray(rng.uniform(0.5, 2, num)), jnp.zeros(num))
    for _ in range(3):
        one, other = itml.cycle(one, *given, guarded=guarded), itml.cycle_in_blocks(other, *given, guarded=guarded)
    for mine, theirs in zip(one, other, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-11)
    assert num == 1 or not np.allclose(one.factor, np.eye(6), atol=0.1)


def test_a_fit_of_many_dimensions_takes_blocks_to_the_same_metric(documents, monkeypatch):
    def fit():
        return itml.fit(put(documents), put(documents), consecutive(), init=Projection(jnp.eye(4)), bounds=(1.0, 6.0),
                        max_iter=7, tol=0.0).params.weights

    expected = fit()
    monkeypatch.setattr(itml, "_LARGE", 4)
    monkeypatch.setattr(itml, "cycle", None)
    np.testing.assert_allclose(fit(), expected, atol=1e-11)


@pytest.mark.parametrize("identity", [False, True])
@pytest.mark.parametrize("power", [-60, -30, -12, 12, 20, 50])
def test_the_unit_of_the_documents_does_not_matter(rng, documents, without_64_bits, power, identity):
    dense, start = documents.astype(np.float32), rng.normal(size=(4, 2))
    with without_64_bits():
        one, other = (
            itml.fit(put(np.ldexp(dense, by)), put(np.ldexp(dense, by)), consecutive(), identity=identity, max_iter=5,
                     init=Projection(jnp.asarray(start, jnp.float32)), tol=0.0) for by in (0, power)
        )  # fmt: skip
    for mine, theirs in zip(one.params, other.params, strict=True):
        np.testing.assert_allclose(theirs, mine, rtol=1e-4, atol=1e-5)
    assert other.history[-1]["change"] == pytest.approx(one.history[-1]["change"], rel=1e-3)


@pytest.mark.parametrize("slack", [1e12, 1e19, 1e30])
def test_a_huge_slack_is_that_of_bounds_that_hold(documents, without_64_bits, slack):
    def fit(slack):
        return itml.fit(put(dense), put(dense), consecutive(), init=Projection(jnp.eye(4)), bounds=(1.0, 6.0),
                        slack=slack, max_iter=5, tol=0.0).params.weights

    dense = documents.astype(np.float32)
    with without_64_bits():
        np.testing.assert_allclose(fit(slack), fit(1e8), rtol=1e-4, atol=1e-5)
        with pytest.raises(ValueError, match="slack: expected a number that float32 holds, got 1e[+]40"):
            fit(1e40)


def test_bounds_within_the_residual_and_a_huge_slack_give_no_metric_silently(without_64_bits):
    rng = np.random.default_rng(0)
    dense, start = rng.normal(size=(8, 3)).astype(np.float32), np.linalg.qr(rng.normal(size=(3, 2)))[0]
    chosen = labelled_pairs.labelled(np.arange(6), np.arange(1, 7), [1.0, 0, 1, 0, 1, 0], num_left=8, num_right=8)
    with without_64_bits(), pytest.raises(FloatingPointError, match="itml: cycle [12]: expected .*finite"):
        itml.fit(put(dense), put(dense), chosen, init=Projection(jnp.asarray(start, jnp.float32)), identity=True,
                 slack=1e25, max_iter=20)  # fmt: skip


def test_a_low_rank_metric_is_itml_in_the_projected_space(rng, documents):
    chosen, start = consecutive(), rng.normal(size=(4, 2))
    found = itml.fit(put(documents), put(documents), chosen, init=Projection(jnp.asarray(start)), bounds=(1.0, 6.0),
                     max_iter=7, tol=0.0).params.weights
    inside = reference_metric.itml(*as_given(documents @ start, chosen), 1.0, 6.0, 1.0, 7)
    np.testing.assert_allclose(found @ found.T, start @ inside @ start.T, atol=1e-10)


@pytest.mark.parametrize("k", [2, 4])
def test_beside_the_identity_it_is_the_nearest_metric_within_the_bounds(rng, documents, k):
    chosen, start = consecutive(6), rng.normal(size=(4, k))
    found = itml.fit(put(documents), put(documents), chosen, init=Projection(jnp.asarray(start)), identity=True,
                     bounds=(3.0, 6.0), slack=2.0, max_iter=3000, tol=1e-12)
    assert found.converged and found.history[-1]["change"] <= 1e-12
    basis = np.linalg.qr(start)[0]
    inside = reference_metric.metric_by_slsqp(basis, *as_given(documents, chosen), 3.0, 6.0, 2.0)
    expected = np.eye(4) + basis @ (inside - np.eye(k)) @ basis.T
    u, gains = found.params
    np.testing.assert_allclose(np.eye(4) + u @ np.diag(gains) @ u.T, expected, atol=1e-4)
    assert gains.min() < -0.05 and np.linalg.norm(expected - np.eye(4)) > 0.2


def test_low_rank_divergences_are_those_of_the_small_matrices(rng):
    factor, start = rng.normal(size=(3, 3)), rng.normal(size=(3, 3))
    inside = factor @ factor.T + np.eye(3)
    small = reference_metric.log_det(inside, np.eye(3))
    assert reference_metric.log_det(start @ inside @ start.T, start @ start.T) == pytest.approx(small)
    basis = np.linalg.qr(rng.normal(size=(5, 3)))[0]
    whole = np.eye(5) + basis @ (inside - np.eye(3)) @ basis.T
    assert reference_metric.log_det(whole, np.eye(5)) == pytest.approx(small)


@pytest.mark.parametrize("r", [0.0, 1e-9, 0.3, 50.0])
def test_the_multiplier_puts_a_pair_at_its_bound(r):
    for p in (1e-6, 0.2, 7.0):
        for bound in (0.05, 1.0, 40.0):
            for slack in (0.01, 1.0, 100.0):
                mu = float(itml.multiplier(*map(jnp.asarray, (p, r, bound)), slack))
                assert -1 / p < mu < slack / bound
                assert p / (1 + mu * p) + r == pytest.approx(slack * bound / (slack - mu * bound), rel=1e-6)


def test_twins_and_distances_within_their_bounds_change_nothing():
    dense = np.array([[1.0, 0.0], [1.0, 0.0], [0.5, 0.0], [9.0, 9.0]])
    chosen = labelled_pairs.labelled([0, 0, 1, 2], [1, 2, 3, 3], [0.0, 1.0, 0.0, 0.0], num_left=4, num_right=4)
    found = itml.fit(put(dense), put(dense), chosen, init=Projection(jnp.eye(2)), bounds=(1.0, 4.0))
    np.testing.assert_array_equal(found.params.weights, np.eye(2))
    assert found.converged and found.steps == 1


def test_the_best_cycle_of_the_development_scores_is_kept(documents):
    chosen = consecutive()
    scores = iter([0.1, 0.3, 0.2, 0.2, 0.9])
    seen = []

    def validate(params):
        seen.append(params)
        return next(scores)

    found = itml.fit(put(documents), put(documents), chosen, init=Projection(jnp.eye(4)), tol=0.0, patience=2,
                     validate=validate)
    assert [entry["validation"] for entry in found.history] == [0.1, 0.3, 0.2, 0.2] and not found.converged
    np.testing.assert_array_equal(found.params.weights, seen[1].weights)


def test_a_score_that_is_no_number_is_refused_with_its_cycle(documents):
    scores = iter([0.1, np.nan])
    with pytest.raises(ValueError, match="^validate: expected a number after step 1, got nan"):
        itml.fit(put(documents), put(documents), consecutive(), init=Projection(jnp.eye(4)), tol=0.0,
                 validate=lambda params: next(scores))


def test_the_metrics_cosine_is_that_of_the_whole_matrix(rng):
    basis, gains = np.linalg.qr(rng.normal(size=(6, 3)))[0], np.array([-0.9, -0.2, 4.0])
    dense = rng.normal(size=(5, 6)) * (rng.random((5, 6)) < 0.7)
    dense[3] = 0
    params = Metric(jnp.asarray(basis), jnp.asarray(gains))
    for padding in ({}, {"pad_docs": 7, "pad_nnz": 40}):
        found = metric.encode(params, sparse.from_scipy(scipy.sparse.csr_matrix(dense), **padding))
        scores = retrieval.signed(metric.signs(params))(found, found)(np.arange(5))[:, :5]
        root = np.linalg.cholesky(np.eye(6) + basis @ np.diag(gains) @ basis.T)
        expected = [[reference.cosine(a @ root, b @ root) for b in dense] for a in dense]
        np.testing.assert_allclose(scores, expected, atol=1e-6)


def test_documents_of_one_topic_come_nearer(rng):
    topic = np.arange(40) % 2
    dense = rng.normal(size=(40, 6)) + 1.5 * np.eye(6)[topic]
    chosen = labelled_pairs.balanced(40, lambda i, j: topic[i] == topic[j], num=100, key=jax.random.key(0))
    same = topic[:, None] == topic[None, :]

    def gap(scores):
        return np.asarray(scores)[same].mean() - np.asarray(scores)[~same].mean()

    start = Projection(jnp.asarray(np.linalg.qr(rng.normal(size=(6, 4)))[0]))
    rows = np.arange(40)
    plain = projections.encode(start, put(dense))
    learned = projections.encode(itml.fit(put(dense), put(dense), chosen, init=start).params, put(dense))
    assert gap(retrieval.cosine(learned, learned)(rows)) > 1.1 * gap(retrieval.cosine(plain, plain)(rows))
    params = itml.fit(put(dense), put(dense), chosen, init=start, identity=True).params
    beside = metric.encode(params, put(dense))
    assert gap(retrieval.signed(metric.signs(params))(beside, beside)(rows)) > 1.1 * gap(reference_scores(dense))


def reference_scores(dense):
    return np.array([[reference.cosine(a, b) for b in dense] for a in dense])


ONE = put(np.eye(3))
PAIRS = ([0, 1], [1, 2], [1.0, 0.0])
EYE = Projection(jnp.eye(3))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: itml.fit(np.eye(3), ONE, PAIRS, init=EYE), "left: expected Terms, got ndarray"),
    (lambda: itml.fit(ONE, put(np.ones((3, 2))), PAIRS, init=EYE), r"right: expected 3 terms \(as left\), got 2"),
    (lambda: itml.fit(ONE, ONE, ([0], [7], [1.0]), init=EYE), r"pairs.right: expected indices in \[0, 3\)"),
    (lambda: itml.fit(ONE, ONE, ([0], [1], [0.5]), init=EYE), "pairs.labels: expected 0 or 1, got others"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=EYE, slack=0.0), "slack: expected a positive number, got 0.0"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=EYE, tol=-1.0), "tol: expected a number of at least 0, got -1.0"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=EYE, max_iter=1.5), "max_iter: expected a whole number of at least 0"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=EYE, bounds=(0.0, 1.0)), "bounds: expected two positive squared distances"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=EYE, percentiles=(5, 500)), r"percentiles: expected two numbers in \[0, 1"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=jnp.eye(3)), "init: expected Projection, got ArrayImpl"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=Projection(jnp.ones((2, 2)))), r"init: expected shape \(3, k\), got"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=Projection(jnp.zeros((3, 2)))), "init: expected finite weights, not all"),
    (lambda: itml.fit(ONE, ONE, PAIRS, init=Projection(jnp.ones((3, 2))), identity=True),
     "init: expected independent columns, got dependent ones"),
    (lambda: metric.encode(EYE, ONE), "params: expected Metric, got Projection"),
])
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
