"""TWEAK and VL-CV against their equations: references, gradients, scale, cancelling weights."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import losses, sparse
from jaxsim.data import labelled_pairs
from jaxsim.methods import lsa, tweak, vl_cv
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights import concepts, quadratic_forms, term_weights
from jaxsim.methods.weights.concepts import Concepts
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.text import features
from jaxsim.text.features import Featured

QUADRUPLES = [(0, 0, 1, 2), (3, 1, 0, 2), (4, 3, 2, 2), (5, 0, 5, 1), (0, 0, 1, 2)]
TRIPLES = [(0, 0, 1.0), (0, 1, 0.0), (3, 2, 1.0), (2, 0, 0.0), (4, 3, 0.5)]


def made_up(rng, docs, num_terms=7, num_features=3, dtype=np.float64):
    """Dense features ``[docs, terms, features]``, document 2 empty, and the same as `Featured`."""
    there = rng.random((docs, num_terms)) < 0.6
    there[2] = False
    dense = rng.normal(size=(docs, num_terms, num_features)) * there[:, :, None]
    csr = scipy.sparse.csr_matrix(there.astype(dtype))
    columns = dense[np.repeat(np.arange(docs), np.diff(csr.indptr)), csr.indices].astype(dtype)
    return dense, Featured(sparse.from_scipy(csr), jnp.asarray(columns), tuple("abcdefgh"[:num_features]))


@pytest.fixture
def sides(rng):
    return made_up(rng, 6), made_up(rng, 4)


def preferred():
    a, b, c, d = (np.array(rows) for rows in zip(*QUADRUPLES, strict=True))
    return labelled_pairs.preferences((a, b), (c, d), num_left=6, num_right=4)


def planned(left, right):
    chosen = preferred()
    return quadratic_forms.plan(left, right, np.concatenate([chosen.better_left, chosen.worse_left]),
                                np.concatenate([chosen.better_right, chosen.worse_right]))


@pytest.mark.parametrize("name", ["squared", "log"])
def test_tweak_objective_and_gradient_match_the_paper(rng, sides, name):
    (dense_left, left), (dense_right, right) = sides
    weights, centre, direction = rng.normal(size=(3, 3))
    chosen = labelled_pairs.labelled(*map(list, zip(*TRIPLES, strict=True)), num_left=6, num_right=4)
    data = tweak.Data(quadratic_forms.plan(left, right, chosen.left, chosen.right), chosen.labels, jnp.asarray(1.0),
                      jnp.asarray(0.3), TermWeights(jnp.asarray(centre)), getattr(losses, name))
    value, grad = jax.jit(jax.value_and_grad(tweak.objective))(TermWeights(jnp.asarray(weights)), data)
    loss = reference.squared if name == "squared" else lambda y, s: reference.log(y, s, 1e-6)

    def loop(w):
        return reference.tweak(dense_left, dense_right, TRIPLES, w, loss, 0.3, centre)

    assert float(value) == pytest.approx(loop(weights), rel=1e-12)
    slope = reference.central_difference(loop, weights, direction)
    assert slope == pytest.approx(float(np.vdot(grad.weights, direction)), rel=1e-6)


def test_preference_objective_and_gradient_match_the_paper(rng, sides):
    (dense_left, left), (dense_right, right) = sides
    weights, centre, direction = rng.normal(size=(3, 3))
    data = tweak.Data(planned(left, right), None, jnp.asarray(7.0), jnp.asarray(0.3), TermWeights(jnp.asarray(centre)))
    value, grad = jax.jit(jax.value_and_grad(tweak.preference_objective))(TermWeights(jnp.asarray(weights)), data)

    def loop(w):
        vectors = (reference.term_vectors(dense, w) for dense in (dense_left, dense_right))
        return reference.preference_loss(*vectors, QUADRUPLES, 7.0) + 0.15 * np.sum((w - centre) ** 2)

    assert float(value) == pytest.approx(loop(weights), rel=1e-12)
    slope = reference.central_difference(loop, weights, direction)
    assert slope == pytest.approx(float(np.vdot(grad.weights, direction)), rel=1e-6)


@pytest.mark.parametrize("same", [False, True], ids=["two collections", "one collection"])
def test_vl_cv_objective_and_gradient_match_the_paper(rng, sides, same):
    (dense_left, left), (dense_right, right) = sides
    if same:
        dense_right = dense_left
    a, a0, d_a = rng.normal(size=(3, 7, 2))
    w, w0, d_w = rng.normal(size=(3, 3))
    data = vl_cv.Data(left, None if same else right, preferred(), *map(jnp.asarray, (7.0, 0.3, 0.2)),
                      Concepts(jnp.asarray(a0), jnp.asarray(w0)))
    value, grad = jax.jit(jax.value_and_grad(vl_cv.objective))(Concepts(jnp.asarray(a), jnp.asarray(w)), data)

    def loop(step):
        projection, weights = a + step * d_a, w + step * d_w
        vectors = (reference.term_vectors(dense, weights) @ projection for dense in (dense_left, dense_right))
        return (reference.preference_loss(*vectors, QUADRUPLES, 7.0) + 0.15 * np.sum((weights - w0) ** 2)
                + 0.1 * np.sum((projection - a0) ** 2))

    assert float(value) == pytest.approx(loop(0.0), rel=1e-12)
    slope = float(np.vdot(grad.weights, d_a) + np.vdot(grad.features, d_w))
    assert slope == pytest.approx(reference.central_difference(loop, 0.0, 1.0), rel=1e-6)


def test_encodings_are_the_papers_vectors(rng, sides):
    (dense, documents), _ = sides
    weights, projection = rng.normal(size=3), rng.normal(size=(7, 2))
    expected = reference.term_vectors(dense, weights)
    result = term_weights.encode(TermWeights(jnp.asarray(weights)), documents)
    np.testing.assert_allclose(sparse.to_scipy(result.sparse).toarray(), expected, atol=1e-12)
    result = concepts.encode(Concepts(jnp.asarray(projection), jnp.asarray(weights)), documents)
    np.testing.assert_allclose(result.dense, expected @ projection, atol=1e-12)


def test_quotients_of_forms_are_cosines_in_float32_with_features_that_nearly_agree(rng):
    _, documents = made_up(rng, 40, 60, 3, np.float32)
    columns = np.asarray(documents.columns)
    twin = columns[:, :1] + np.float32(0.01) * rng.normal(size=(len(columns), 1)).astype(np.float32)
    columns = np.concatenate([columns, twin, np.zeros_like(twin), columns[:, :1]], axis=1)
    documents = Featured(documents.terms, jnp.asarray(columns), tuple("abcdef"))
    rows = rng.integers(0, 40, (2, 5000))  # more than a block of pairs
    forms = quadratic_forms.plan(documents, documents, *rows)
    # Neither a column of zeros nor a copy of another adds to the four dimensions.
    assert forms.products.dtype == np.float32 and forms.products.shape == (5000, 10)
    csr = sparse.to_scipy(documents.terms)
    for weights in ([100.0, 0.1, 0.1, -100.0, 7.0, 0.0], [1.0, 1.0, 1.0, 1.0, 1.0, 1.0]):
        values = columns.astype(np.float64) @ np.array(weights)
        exact = scipy.sparse.csr_matrix((values, csr.indices, csr.indptr), csr.shape).toarray()
        result = quadratic_forms.cosines(jnp.asarray(weights, jnp.float32), forms)
        np.testing.assert_allclose(result, [reference.cosine(exact[i], exact[j]) for i, j in rows.T], atol=1e-4)


def topical(rng, n=60, num_terms=40):
    """Documents of three topics among words of none, and their balanced preferences."""
    topic = np.arange(n) % 3
    rates = np.full((n, num_terms), 0.4)
    for t in range(3):
        rates[topic == t, 4 * t : 4 * t + 4] = 1.5
    counts = rng.poisson(rates).astype(float)
    chosen = labelled_pairs.balanced(n, lambda i, j: topic[i] == topic[j], num=200, key=jax.random.key(0))
    return sparse.from_scipy(scipy.sparse.csr_matrix(counts)), chosen, counts


@pytest.mark.programs
def test_one_feature_has_a_weight_that_cancels(rng):
    counts, chosen, _ = topical(rng)
    documents, order = features.single(counts), labelled_pairs.preferences_of(chosen)
    start = lsa.fit(counts, k=3, singular_power=-1.0).params
    plain = vl_cv.fit(documents, documents, order, init=start, gamma=5.0, max_iter=10)
    larger = vl_cv.fit(documents, documents, order, init=Concepts(7 * start.weights, jnp.array([1.0])), gamma=5.0,
                       max_iter=10)
    assert plain.loss < 0.5 * plain.history[0]["loss"] and larger.loss == pytest.approx(plain.loss, rel=1e-6)
    data = vl_cv.Data(documents, None, order, *map(jnp.asarray, (5.0, 0.0, 0.0)), plain.params)
    assert abs(float(jax.grad(vl_cv.objective)(plain.params, data).features[0])) < 1e-10


def test_tweak_finds_the_feature_that_matters(rng):
    counts, chosen, dense = topical(rng)
    topical_word = np.arange(40) < 12
    named = features.from_counts(counts, np.where(topical_word, 0.0, 1.0), names=("bias", "df"))
    for option in ({"gamma": 10.0}, {"loss": losses.squared}, {"loss": losses.log}):
        wanted = labelled_pairs.preferences_of(chosen) if "gamma" in option else chosen
        fit = tweak.fit(named, named, wanted, init=TermWeights(jnp.array([1.0, 0.0])), **option)
        bias, off = fit.params.weights
        assert fit.converged and abs((bias + off) / bias) < 0.4, option  # words of no topic weigh less


def test_the_literal_regulariser_shrinks_and_the_other_stays(rng):
    counts, chosen, _ = topical(rng)
    documents = features.from_counts(counts, np.sum(np.asarray(sparse.to_scipy(counts).toarray()) > 0, axis=0))
    start = TermWeights(jnp.array([1.0, 0.5, -0.2]))
    order = labelled_pairs.preferences_of(chosen)
    stay = tweak.fit(documents, documents, order, init=start, alpha=1e6).params.weights
    np.testing.assert_allclose(stay, start.weights, atol=1e-4)
    shrunk = tweak.fit(documents, documents, order, init=start, alpha=1.0, literal=True, max_iter=50).params.weights
    assert np.linalg.norm(shrunk) < 0.01 * np.linalg.norm(start.weights)


def test_least_squares_gives_back_weights(rng):
    _, documents = made_up(rng, 9)
    weights = rng.normal(size=3)
    result = tweak.least_squares(documents, documents.columns @ weights)
    np.testing.assert_allclose(result.weights, weights, atol=1e-10)


def test_the_start_of_vl_cv_has_concept_vectors_of_length_10(rng):
    _, documents = made_up(rng, 9, num_features=1)
    result = vl_cv.checked_start(Projection(jnp.asarray(rng.normal(size=(7, 2)) * 1e-3)), documents, documents)
    lengths = jnp.linalg.norm(concepts.encode(result, documents).dense, axis=1)
    assert float(jnp.sqrt(jnp.mean(lengths**2))) == pytest.approx(10.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_whose_weights_are_all_zero_have_cosines_and_gradients_of_zero(rng, dtype):
    _, documents = made_up(rng, 12, 20, 4, dtype)
    columns = np.abs(np.asarray(documents.columns)) + 1
    document = np.repeat(np.arange(12), np.diff(np.asarray(documents.terms.indptr)))
    columns[document % 3 == 0, 3] = 0  # no capital letter in these, say
    documents = Featured(documents.terms, jnp.asarray(columns), documents.names)
    rows = np.triu_indices(12, 1)
    forms = quadratic_forms.plan(documents, documents, *rows)
    weights = jnp.asarray([0.0, 0.0, 0.0, 1.0], dtype)
    zero = (rows[0] % 3 == 0) | (rows[1] % 3 == 0) | (rows[0] == 2) | (rows[1] == 2)  # 2 is empty
    result = jax.jit(quadratic_forms.cosines)(weights, forms)
    slopes = jax.jit(jax.jacobian(quadratic_forms.cosines))(weights, forms)
    assert not np.any(result[zero]) and not np.any(slopes[zero]) and np.all(result[~zero] > 0.1)
    assert np.all(np.isfinite(slopes)) and np.all(np.any(slopes[~zero], axis=1))
    several = jax.vmap(quadratic_forms.cosines, (0, None))(jnp.stack([weights, 3 * weights]), forms)
    np.testing.assert_allclose(several, [result, result], rtol=1e-6)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 1e-6, 1e-12])
@pytest.mark.parametrize("empty", [False, True])
def test_a_feature_of_small_numbers_is_not_dropped(scale, empty):
    terms = sparse.from_scipy(scipy.sparse.csr_matrix(np.array([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]])))
    columns = np.c_[np.ones(6), scale * np.array([5.0, 1, 2, 7, 3, 1]), np.full(6, 0.0 if empty else 2.0)]
    documents = Featured(terms, jnp.asarray(columns), ("bias", "x", "other"))
    rows = [0, 0, 1], [1, 2, 2]
    weights = np.array([0.0, 1 / scale, 0.0])
    dense = sparse.to_scipy(terms)
    dense.data = columns @ weights
    unit = dense.toarray() / np.linalg.norm(dense.toarray(), axis=1, keepdims=True)
    forms = quadratic_forms.plan(documents, documents, *rows)
    assert forms.basis.shape == (2, 3)
    np.testing.assert_allclose(quadratic_forms.cosines(jnp.asarray(weights), forms), (unit @ unit.T)[rows], atol=1e-8)
