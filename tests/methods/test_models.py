from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse, text
from jaxsim.evaluate import retrieval
from jaxsim.methods import bm25, log_tfidf, projections, tfidf
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.weights import weighting


@pytest.fixture
def counts(rng):
    """Training and new counts; term 5 is new, document 2 is empty."""
    training, new = rng.poisson(0.7, (2, 8, 6)).astype(float)
    training[:, 5], new[:, 5] = 0, 1
    new[2] = 0
    return training, new


def put(dense, **options):
    return sparse.from_scipy(scipy.sparse.csr_matrix(dense), **options)


FAMILIES = {
    "tfidf": (tfidf.fit, reference.tfidf),
    "log_tfidf": (log_tfidf.fit, reference.log_tfidf),
    "bm25": (lambda t: bm25.fit(t, k1=1.5, b=0.6), lambda c, t: reference.bm25(c, t, 1.5, 0.6)),
    "bm25 without saturation": (lambda t: bm25.fit(t, k1=0.0, b=1.0), lambda c, t: reference.bm25(c, t, 0.0, 1.0)),
}


@pytest.mark.parametrize(("fit", "loop"), FAMILIES.values(), ids=FAMILIES.keys())
def test_weights_match_the_loops_and_come_from_the_training_documents_alone(counts, fit, loop):
    training, new = counts
    params = fit(put(training)).params
    weighted = weighting.encode(params, put(new)).sparse
    np.testing.assert_allclose(sparse.to_scipy(weighted).toarray(), loop(new, training), atol=1e-12)
    jitted = jax.jit(weighting.encode)(params, put(new)).sparse
    np.testing.assert_allclose(jitted.values, weighted.values, atol=1e-12)


@pytest.mark.parametrize(("fit", "loop"), FAMILIES.values(), ids=FAMILIES.keys())
def test_padding_and_empty_input_change_no_weight(counts, fit, loop):
    training, new = counts
    params = fit(put(training, pad_nnz=100)).params
    padded = weighting.encode(params, put(new, pad_docs=11, pad_nnz=90)).sparse
    np.testing.assert_allclose(sparse.to_scipy(padded).toarray()[:8], loop(new, training), atol=1e-12)
    assert np.all(np.isfinite(padded.values))
    nothing = weighting.encode(params, put(np.zeros((0, 6)))).sparse
    assert nothing.num_docs == 0
    for shape in ((0, 6), (3, 0), (3, 6)):
        empty = fit(put(np.zeros(shape))).params
        assert np.all(np.isfinite(empty.idf)) and not np.any(empty.idf)
        assert np.all(np.isfinite(weighting.encode(empty, put(np.ones((2, shape[1])))).sparse.values))


@pytest.mark.parametrize(("fit", "weigh"), [(tfidf.fit, text.tf_idf), (log_tfidf.fit, text.log_tf_idf),
                                            (bm25.fit, text.bm25)], ids=["tfidf", "log_tfidf", "bm25"])
def test_host_and_device_weigh_alike(counts, fit, weigh):
    training, new = counts
    options = {"average_length": training.sum(axis=1).mean()} if weigh is text.bm25 else {}
    on_host = weigh(scipy.sparse.csr_matrix(new), np.count_nonzero(training, axis=0), len(training), **options)
    on_device = weighting.encode(fit(put(training)).params, put(new)).sparse
    np.testing.assert_allclose(on_host.toarray(), sparse.to_scipy(on_device).toarray(), rtol=1e-6)


@pytest.mark.parametrize("fit", [tfidf.fit, log_tfidf.fit, bm25.fit])
def test_negative_counts_are_refused(fit):
    with pytest.raises(ValueError, match="terms: expected counts of at least 0, got -1.0"):
        fit(put(np.array([[1.0, -1.0]])))


@pytest.mark.parametrize(("options", "message"), [({"k1": -1.0}, "k1: expected at least 0"),
                                                  ({"b": 1.5}, r"b: expected a number in \[0, 1\], got 1.5")])
def test_bm25_settings_out_of_range_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        bm25.fit(put(np.ones((1, 1))), **options)


def test_projection_encodes_and_applies_its_activation(rng):
    dense, weights = rng.normal(size=(4, 6)), rng.normal(size=(6, 3))
    dense[1] = 0
    params = Projection(jnp.asarray(weights))
    encoded = projections.encode(params, put(dense))
    assert encoded.sparse is None
    np.testing.assert_allclose(encoded.dense, dense @ weights, atol=1e-12)
    bent = projections.encode(params, put(dense), activation=jnp.tanh).dense
    np.testing.assert_allclose(bent, np.tanh(dense @ weights), atol=1e-12)
    cut = projections.encode(params, sparse.slices(scipy.sparse.csr_matrix(dense), width=4)).dense
    np.testing.assert_allclose(cut, encoded.dense, atol=1e-12)
    with pytest.raises(ValueError, match=r"weights: expected shape \(6, k\), got \(5, 3\)"):
        projections.encode(Projection(jnp.ones((5, 3))), put(dense))


def test_truncate_keeps_the_first_dimensions_of_one_or_two_sides(rng):
    weights = jnp.asarray(rng.normal(size=(6, 3)))
    assert np.array_equal(projections.truncate(Projection(weights), 2).weights, weights[:, :2])
    left, right = projections.truncate((Projection(weights), Projection(-weights)), 1)
    assert np.array_equal(left.weights, weights[:, :1]) and np.array_equal(right.weights, -weights[:, :1])


def test_bilinear_scores_are_those_of_its_matrix(rng):
    documents, queries = rng.random((2, 5, 7)) * (rng.random((2, 5, 7)) < 0.6)
    u, v, diagonal = rng.normal(size=(7, 3)), rng.normal(size=(7, 3)), rng.normal(size=7)
    for parts, w in [((u, v, diagonal), u @ v.T + np.diag(diagonal)), ((u, u, diagonal), u @ u.T + np.diag(diagonal)),
                     ((u, v, None), u @ v.T), ((None, None, diagonal), np.diag(diagonal))]:
        sides = bilinear.sides(*(None if part is None else jnp.asarray(part) for part in parts))
        left, right = (bilinear.encode(side, put(x)) for side, x in zip(sides, (queries, documents), strict=True))
        result = retrieval.dot(left, right)(np.arange(5))
        np.testing.assert_allclose(result, queries @ w @ documents.T, atol=1e-12)
        scores, indices = retrieval.top_k(left, right, k=2, similarity=retrieval.dot)
        np.testing.assert_array_equal(indices, np.argsort(-np.asarray(result), axis=1, kind="stable")[:, :2])


def test_bilinear_sides_that_do_not_fit_are_refused():
    one, other = jnp.ones((3, 2)), jnp.ones((3, 1))
    for arguments, message in [((one, None, None), "right: expected weights, or None, as left, got one of them alone"),
                               ((None, None, None), "diagonal: expected a diagonal, or weights, got neither"),
                               ((one, other, None), r"right: expected shape \(num_terms, 2\)"),
                               ((one, one, jnp.ones(2)), "diagonal: expected one number a term")]:
        with pytest.raises(ValueError, match=message):
            bilinear.sides(*arguments)
    with pytest.raises(ValueError, match=r"low_rank: expected 1 documents \(as terms\), got 2"):
        bilinear.encode(bilinear.sides(one, one, None)[0], put(np.ones((1, 3))), low_rank=put(np.ones((2, 3))))


def test_strongest_terms_keep_the_length_and_break_ties_by_the_lower_term(rng):
    documents = np.array([[1.0, -3.0, 2.0, 2.0], [0.0, 0.0, 0.0, 0.0], [0.0, 5.0, 0.0, 0.0]])
    result = sparse.to_scipy(bilinear.strongest(put(documents), 2)).toarray()
    assert np.count_nonzero(result[0]) == 2 and result[0, 1] < 0 < result[0, 2]
    np.testing.assert_allclose(np.linalg.norm(result, axis=1), np.linalg.norm(documents, axis=1), atol=1e-15)
    np.testing.assert_array_equal(result[1:], documents[1:])
    np.testing.assert_array_equal(sparse.to_scipy(bilinear.strongest(put(documents), 4)).toarray(), documents)
    with pytest.raises(ValueError, match="most: expected a whole number of at least 1, got 0"):
        bilinear.strongest(put(documents), 0)
