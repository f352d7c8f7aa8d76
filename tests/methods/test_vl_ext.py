"""VL-Ext against its equations: extension, gradient, the choice of related terms, what it learns and refuses."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_metric
import reference_models as reference
import scipy.sparse
from test_preference_methods import QUADRUPLES, made_up, preferred

from jaxsim import sparse
from jaxsim.data import labelled_pairs
from jaxsim.data.labelled_pairs import Preferences
from jaxsim.evaluate import retrieval
from jaxsim.methods import vl_ext
from jaxsim.methods.projections import Projection
from jaxsim.methods.weights import related_terms, term_extension
from jaxsim.text import features

SOURCES, TARGETS = np.array([0, 5, 0, 3]), np.array([3, 0, 5, 0])


@pytest.fixture
def sides(rng):
    return made_up(rng, 6), made_up(rng, 4)


def triples(weights):
    return list(zip(SOURCES, TARGETS, weights, strict=True))


def as_stored(params, values):
    """Values of ``(SOURCES, TARGETS)`` in the order in which the model keeps them."""
    result = dict(zip(zip(SOURCES, TARGETS, strict=True), values, strict=True))
    return np.array([result[pair] for pair in zip(*term_extension.relations(params)[:2], strict=True)])


@pytest.mark.parametrize("same", [False, True], ids=["two collections", "one collection"])
def test_objective_and_gradient_match_the_paper(rng, sides, same):
    (dense_left, left), (dense_right, right) = sides
    if same:
        dense_right, right = dense_left, left
    w, w0, d_w = rng.normal(size=(3, 3))
    a, d_a = rng.normal(size=(2, 4))
    start = term_extension.make(jnp.asarray(w), SOURCES, TARGETS, a)
    data = vl_ext.plan(left, right, preferred(), start, gamma=7.0, alpha=0.3, beta=0.2, centre=jnp.asarray(w0))
    assert data.documents.num_docs == len(dense_left) + (0 if same else len(dense_right))
    given = vl_ext.Learned(start.features, start.related.values)
    value, grad = jax.jit(jax.value_and_grad(vl_ext.objective))(given, data)

    def loop(step):
        weights, coefficients = w + step * d_w, a + step * d_a
        sides = (reference_metric.extended(reference.term_vectors(dense, weights), triples(coefficients))
                 for dense in (dense_left, dense_right))
        return (reference.preference_loss(*sides, QUADRUPLES, 7.0) + 0.15 * np.sum((weights - w0) ** 2)
                + 0.1 * np.sum(coefficients**2))

    assert float(value) == pytest.approx(loop(0.0), rel=1e-12)
    slope = float(np.vdot(grad.features, d_w) + np.vdot(grad.weights, as_stored(start, d_a)))
    assert slope == pytest.approx(reference.central_difference(loop, 0.0, 1.0), rel=1e-6)


def test_the_gradient_of_the_appendix_with_its_misprint_mended(rng):
    p, q = rng.random((2, 7))
    weights = rng.normal(size=4)
    params = term_extension.make(jnp.ones(1), SOURCES, TARGETS, weights)

    def cosine(values):
        model = params._replace(related=sparse.with_values(params.related, values))
        documents = features.single(sparse.from_scipy(scipy.sparse.csr_matrix(np.stack([p, q]))))
        result = term_extension.encode(model, documents)
        both = jnp.concatenate([result.dense, sparse.project(result.sparse, jnp.eye(7))], axis=1)
        return sparse.cosine(both[0], both[1])

    expected = as_stored(params, reference_metric.extension_gradient(p, q, triples(weights)))
    np.testing.assert_allclose(jax.grad(cosine)(params.related.values), expected, atol=1e-12)


@pytest.mark.parametrize("padding", [{}, {"pad_docs": 8, "pad_nnz": 60}])
def test_encodings_are_the_papers_vectors(rng, sides, padding):
    (dense, documents), _ = sides
    csr = sparse.to_scipy(documents.terms)
    filled = np.zeros((padding.get("pad_nnz", csr.nnz), 3))
    filled[: csr.nnz] = documents.columns
    documents = features.Featured(sparse.from_scipy(csr, **padding), jnp.asarray(filled), documents.names)
    weights, coefficients = rng.normal(size=3), rng.normal(size=4)
    params = term_extension.make(jnp.asarray(weights), SOURCES, TARGETS, coefficients)
    result = jax.jit(term_extension.encode)(params, documents)
    expected = reference_metric.extended(reference.term_vectors(dense, weights), triples(coefficients))
    touched = np.asarray(params.touched)
    whole = sparse.to_scipy(result.sparse).toarray()
    assert not np.any(whole[:, touched]) and touched.tolist() == [0, 3, 5]
    whole[:, touched] += result.dense
    np.testing.assert_allclose(whole[:6], expected, atol=1e-12)
    assert not np.any(whole[6:])
    scores = retrieval.cosine(result, result)(np.arange(6))[:, :6]
    np.testing.assert_allclose(scores, [[reference.cosine(a, b) for b in expected] for a in expected], atol=1e-6)


def test_relations_come_back_as_given(rng):
    weights = rng.normal(size=4)
    result = term_extension.relations(term_extension.make(jnp.ones(2), SOURCES, TARGETS, weights))
    assert sorted(zip(*result, strict=True)) == sorted(triples(weights))


def test_among_all_documents_similar_and_other_pairs_count_the_same(rng, monkeypatch):
    monkeypatch.setattr(related_terms, "_TERMS", 3)  # too few at first, so that it has to look at more
    documents = (rng.random((12, 9)) + 0.2) * (rng.random((12, 9)) < 0.5)
    documents[3] = 0
    topics = rng.integers(0, 3, 12)
    similar = topics[:, None] == topics[None, :]
    put = sparse.from_scipy(scipy.sparse.csr_matrix(documents))
    sources, targets = related_terms.choose_among_all(put, similar, num=7, heaviest=4)
    pairs = [(i, j) for i in range(12) for j in range(12) if i < j]
    alike, others = ([pair for pair in pairs if similar[pair] == wanted] for wanted in (True, False))
    # the four heaviest terms of a document alone, of its own length
    heaviest = np.where(documents >= np.sort(documents, axis=1)[:, -4:-3], documents, 0)
    length = np.linalg.norm(documents, axis=1, keepdims=True)
    unit = heaviest / np.where(length > 0, length, 1)
    expected = {}
    for some in (alike, others):
        for i, j in some:
            product = np.outer(unit[i], unit[j]) / len(some)
            for a in range(9):
                for b in range(a + 1, 9):
                    expected[a, b] = expected.get((a, b), 0) + product[a, b] + product[b, a]
    best = sorted(expected, key=expected.get, reverse=True)[:7]
    assert [tuple(sorted(pair)) for pair in zip(sources[::2].tolist(), targets[::2].tolist(), strict=True)] == best
    assert np.array_equal(sources[::2], targets[1::2]) and np.array_equal(sources[1::2], targets[::2])
    every = related_terms.choose_among_all(put, similar, num=1000, heaviest=4)[0]
    assert len(every) == 2 * sum(value > 0 for value in expected.values())
    with pytest.raises(ValueError, match="similar: expected some pairs of documents and not all, got 0"):
        related_terms.choose_among_all(put, np.eye(12, dtype=bool))
    with pytest.raises(ValueError, match=r"similar: expected shape \(12, 12\)"):
        related_terms.choose_among_all(put, similar[:5])


def test_terms_of_one_document_alone_do_not_meet(rng):
    similar = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0]], bool)
    for x, y in rng.random((20, 2)):  # the products of each kind of pair leave rounding when they are subtracted
        counts = np.array([[x, y, 0], [0, 0, 1], [0, 0, 1]], np.float32)
        put = sparse.from_scipy(scipy.sparse.csr_matrix(counts))
        found = related_terms.choose_among_all(put, similar)
        assert sorted(zip(*map(np.ndarray.tolist, found), strict=True)) == [(0, 2), (1, 2), (2, 0), (2, 1)]
        put = sparse.from_scipy(scipy.sparse.csr_matrix(counts * [1, 1, 0]))
        with pytest.raises(ValueError, match="documents: expected documents with different terms of positive weight"):
            related_terms.choose_among_all(put, similar)


def test_whole_numbers_as_features_keep_the_coefficients():
    params = term_extension.make([1, 2], [0], [1], [0.5])
    assert jnp.issubdtype(params.features.dtype, jnp.floating) and params.related.values.tolist() == [0.5]


@pytest.mark.parametrize("combine", [np.add, np.maximum])
def test_related_terms_have_the_largest_products(rng, combine, monkeypatch):
    monkeypatch.setattr(related_terms, "_PAIRS", 3)
    left, right = ((rng.normal(size=(n, 8)) + 0.5) * (rng.random((n, 8)) < 0.7) for n in (9, 5))
    left[4] = 0
    chosen = rng.integers(0, 5, (2, 40))
    put = [sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in (left, right)]
    sources, targets = related_terms.choose(*put, chosen, num=6, heaviest=8, combine=combine)
    assert np.array_equal(sources[::2], targets[1::2]) and np.array_equal(sources[1::2], targets[::2])
    products = reference_metric.products_of_terms(left, right, chosen.T, lambda a, b: float(combine(a, b)))
    best = sorted(products, key=products.get, reverse=True)[:6]
    assert list(zip(sources[::2], targets[::2], strict=True)) == best
    few = related_terms.choose(*put, chosen, num=1000, heaviest=1)[0]
    assert 0 < len(few) < len(related_terms.choose(*put, chosen, num=1000, heaviest=8)[0])


def synonyms(rng, n=60):
    """Documents of three topics, each with two words for it, of which a document has one."""
    topic = np.arange(n) % 3
    counts = rng.poisson(0.5, (n, 30)).astype(float)
    counts[:, :6] = 0
    counts[np.arange(n), 2 * topic + rng.integers(0, 2, n)] = 2
    chosen = labelled_pairs.balanced(n, lambda i, j: topic[i] == topic[j], num=200, key=jax.random.key(0))
    return sparse.from_scipy(scipy.sparse.csr_matrix(counts)), chosen


def test_it_learns_which_words_mean_the_same(rng):
    counts, chosen = synonyms(rng)
    documents, order = features.single(counts), labelled_pairs.preferences_of(chosen)
    result = related_terms.choose(counts, counts, (chosen.left, chosen.right), num=1000)
    start = term_extension.make(jnp.ones(1), *result)
    seen = []
    fit = vl_ext.fit(documents, documents, order, init=start, gamma=5.0, beta=1e-3, max_iter=20,
                     validate=lambda params: seen.append(params) or len(seen))
    assert fit.loss < 0.1 * fit.history[0]["loss"] < 0.1 * np.log(2)
    sources, targets, weights = term_extension.relations(fit.params)
    lent = dict(zip(zip(sources, targets, strict=True), weights, strict=True))
    alike = [lent[pair] for a in (0, 2, 4) for pair in ((a, a + 1), (a + 1, a)) if pair in lent]
    apart = [lent[i, k] for i in range(6) for k in range(6) if i // 2 != k // 2 and (i, k) in lent]
    assert len(alike) == 6 and min(alike) > 0.3 and np.mean(apart) < 0
    assert all(isinstance(one, term_extension.TermExtension) for one in seen) and len(seen) == len(fit.history)
    smaller = vl_ext.fit(documents, documents, order, init=start, gamma=5.0, beta=1.0, max_iter=20).params
    assert jnp.linalg.norm(smaller.related.values) < 0.2 * jnp.linalg.norm(fit.params.related.values)


@pytest.mark.usefixtures("fully_compiled")
def test_no_array_of_an_evaluation_has_as_many_numbers_as_pairs_of_terms(rng):
    num_terms, docs = 4000, 20
    csr = scipy.sparse.random(docs, num_terms, 0.01, random_state=0, format="csr")
    documents = features.single(sparse.from_scipy(csr))
    order = labelled_pairs.preferences(([0, 1], [2, 3]), ([4, 5], [6, 7]), num_left=docs, num_right=docs)
    start = term_extension.make(jnp.ones(1), np.arange(0, 100), np.arange(100, 200))
    data = vl_ext.plan(documents, documents, order, start)
    given = vl_ext.Learned(start.features, start.related.values)
    memory = jax.jit(jax.value_and_grad(vl_ext.objective)).lower(given, data).compile().memory_analysis()
    assert 0 < memory.temp_size_in_bytes < num_terms**2  # an eighth of such an array in float64


WORDS = features.single(sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(3))))
MORE = features.from_counts(WORDS.terms, [1.0, 1.0, 1.0])
EMPTY = features.single(sparse.from_scipy(scipy.sparse.csr_matrix((3, 3))))
ORDER = Preferences(*map(np.array, ([0], [0], [0], [1])))
START = term_extension.make(jnp.ones(1), [0], [1])


@pytest.mark.parametrize(("call", "message"), [
    (lambda: term_extension.make(jnp.ones(1), [0], [0]), "targets: expected other terms than their sources, got"),
    (lambda: term_extension.make(jnp.ones(1), [0, 0], [1, 1]), "sources: expected every relation once, got"),
    (lambda: term_extension.make(jnp.ones(1), [0.0], [1]), "sources: expected one axis of integers, got float64"),
    (lambda: term_extension.make(jnp.ones(1), [0], [-1]), "targets: expected terms of at least 0, got -1"),
    (lambda: term_extension.make(jnp.ones(1), [0, 2], [1]), "sources: expected as many as targets and weights"),
    (lambda: term_extension.make(jnp.ones(1), [0], [1], [np.nan]), "weights: expected finite numbers, got NaN"),
    (lambda: term_extension.make(jnp.ones(1), np.zeros(0, int), np.zeros(0, int)), "sources: expected at least one"),
    (lambda: term_extension.encode(Projection(jnp.eye(3)), WORDS), "params: expected TermExtension, got Projection"),
    (lambda: term_extension.encode(term_extension.make(jnp.ones(1), [0], [3]), WORDS),
     "terms: expected a vocabulary of at least 4 terms, got 3"),
    (lambda: vl_ext.fit(WORDS, WORDS, ([0], [0], [1.0]), init=START), "pairs: expected Preferences, got tuple"),
    (lambda: vl_ext.fit(WORDS, MORE, ORDER, init=START), r"right: expected features \('tfidf',\) \(as left\)"),
    (lambda: vl_ext.fit(WORDS, WORDS, ORDER._replace(worse_left=np.array([9])), init=START), "pairs.worse_left: exp"),
    (lambda: vl_ext.fit(WORDS, WORDS, ORDER, init=START, gamma=0.0), "gamma: expected a positive number, got 0.0"),
    (lambda: vl_ext.fit(WORDS, WORDS, ORDER, init=START, beta=-1.0), "beta: expected a number of at least 0, got -1"),
    (lambda: vl_ext.fit(MORE, MORE, ORDER, init=START), "init.features: expected 3 weights, got"),
    (lambda: vl_ext.fit(WORDS, WORDS, ORDER, init=term_extension.make(jnp.ones(1), [0], [5])),
     r"init: expected terms below 3 \(terms of left\), got 5"),
    (lambda: vl_ext.fit(WORDS, WORDS, ORDER, init=term_extension.make(jnp.zeros(1), [0], [1])),
     "init: expected finite weights, those of features not all zero, got norm 0.0"),
    (lambda: vl_ext.fit(EMPTY, EMPTY, ORDER, init=START), "left: expected documents with words, got only empty"),
    (lambda: related_terms.choose(WORDS, WORDS, ([0], [1])), "left: expected Terms, got Featured"),
    (lambda: related_terms.choose(WORDS.terms, WORDS.terms, ([0], [3])), r"pairs.right: expected indices in \[0, 3\)"),
    (lambda: related_terms.choose(WORDS.terms, WORDS.terms, ([0.9], [1])), "pairs.left: expected one axis of integers"),
    (lambda: related_terms.choose(WORDS.terms, WORDS.terms, ([0], [[1]])), "pairs.right: expected one axis of"),
    (lambda: related_terms.choose(WORDS.terms, WORDS.terms, ([], [])), "pairs: expected documents with different"),
    (lambda: related_terms.choose(WORDS.terms, WORDS.terms, ([0], [0])), "pairs: expected documents with different"),
    (lambda: related_terms.choose(WORDS.terms, WORDS.terms, ([0], [1]), num=0), "num: expected a whole number of at"),
])
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()
