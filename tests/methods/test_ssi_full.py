"""Unconstrained and sparse W against the plain loop on a dense W; resumption; what is refused."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi_full, ssi_sparse
from jaxsim.methods.ssi import bilinear, triples
from jaxsim.methods.ssi import low_rank as ssi
from jaxsim.methods.ssi import shared as ssi_shared
from jaxsim.methods.ssi.products import Products
from jaxsim.methods.ssi.sparse import Sparse

N, V = 12, 15
LINKS = np.array([[0, 1], [0, 4], [1, 0], [2, 5], [3, 1], [5, 2], [6, 7], [7, 6], [9, 10], [11, 3]])
OWN = np.repeat(np.arange(N), 2).reshape(N, 2)


def dense(rng):
    result = rng.random((N, V)) * (rng.random((N, V)) < 0.4)
    result[8] = 0  # an article without words
    length = np.linalg.norm(result, axis=1, keepdims=True)
    return np.divide(result, length, out=np.zeros_like(result), where=length > 0)


def documents(array):
    return sparse.from_scipy(scipy.sparse.csr_matrix(array))


def plain(w, triples, full, cut, b, margin, rate, *, kept=None):
    """003 §2.3.1 on a dense W whose identity sees whole documents; ``kept``: the entries that W has."""
    w, result = w.copy(), []
    for query, better, worse in triples:
        exact = b * full[0][query] @ (full[1][better] - full[1][worse])
        q, apart = cut[0][query], cut[1][better] - cut[1][worse]
        result.append(max(0.0, margin - exact - q @ w @ apart))
        if result[-1] > 0:
            w += rate * np.outer(q, apart) * (1 if kept is None else kept)
    return w, result


def seen(key, number, chunk, epoch=0):
    table = triples.table(LINKS, N, N, known=OWN)
    parts = ssi_shared.drawn(jax.random.fold_in(key, epoch), table, number, chunk=chunk)
    return np.concatenate([np.stack(part, axis=1) for part in parts])


@pytest.fixture
def sides(rng):
    return dense(rng), dense(rng)


def cut(array, max_terms):
    return array if max_terms is None else sparse.to_scipy(bilinear.strongest(documents(array), max_terms)).toarray()


@pytest.mark.parametrize(("max_terms", "shared"), [(None, False), (3, True)])
def test_a_full_fit_is_the_plain_loop_on_w(sides, key, monkeypatch, max_terms, shared):
    monkeypatch.setattr(ssi_full, "CHUNK", 64)
    left, right = map(documents, sides)
    options = {"products": Products(left, right, 1.0)} if shared else {}
    fit = ssi_full.fit(left, right, LINKS, key=key, identity=2.0, known=OWN, margin=1.5, learning_rate=0.3,
                       max_terms=max_terms, triples=200, max_iter=1, **options)
    seeing = [cut(side, max_terms) for side in sides]
    w, result = plain(np.zeros((V, V)), seen(key, 200, 64), sides, seeing, 2.0, 1.5, 0.3)
    assert 0 < np.count_nonzero(result) < len(result) and fit.loss == pytest.approx(np.mean(result), rel=1e-10)
    query, document = ssi_full.encode(fit.params, left, right, low_rank=tuple(map(documents, seeing)))
    np.testing.assert_allclose(query.dense @ document.dense.T, seeing[0] @ w @ seeing[1].T, atol=1e-12)
    np.testing.assert_allclose(sparse.to_scipy(query.sparse).toarray(), 2.0 * sides[0])
    every = ssi_sparse.strongest(fit.params, V)
    np.testing.assert_allclose(ssi_sparse.matrix(every).toarray(), w, atol=1e-12)


def test_a_diagonal_of_zeros_stays_one(sides, key, monkeypatch):
    """003 §4.1: W is dense but for its diagonal, so that no word meets itself."""
    monkeypatch.setattr(ssi_full, "NARROW", 64)
    left, right = map(documents, sides)
    fit = ssi_full.fit(left, right, LINKS, key=key, identity=0.0, diagonal=False, known=OWN, learning_rate=0.3,
                       max_terms=None, triples=200, max_iter=1)
    w, result = plain(np.zeros((V, V)), seen(key, 200, 64), sides, sides, 0.0, 1.0, 0.3, kept=1 - np.eye(V))
    assert 0 < np.count_nonzero(result) < len(result) and fit.loss == pytest.approx(np.mean(result), rel=1e-10)
    query, document = ssi_full.encode(fit.params, left, right)
    scores = query.dense @ document.dense.T + sparse.to_scipy(query.sparse) @ sides[1].T
    np.testing.assert_allclose(scores, sides[0] @ w @ sides[1].T, atol=1e-12)
    np.fill_diagonal(w, 0)  # of rounding
    some = ssi_sparse.strongest(fit.params, 3)
    wanted = np.sort(np.abs(w), axis=1)[:, :-4:-1]
    np.testing.assert_allclose(np.sort(np.abs(some.values), axis=1)[:, ::-1], wanted, atol=1e-12)
    assert not np.any(some.columns == np.arange(V)[:, None]) and some.identity == 0
    every = ssi_sparse.strongest(fit.params, V - 1)
    np.testing.assert_allclose(ssi_sparse.matrix(every).toarray(), w, atol=1e-12)
    on = ssi_sparse.fit(left, right, LINKS, init=some, key=key, known=OWN, triples=50, max_iter=1)
    assert not np.any(ssi_sparse.matrix(on.params).diagonal())
    with pytest.raises(ValueError, match=rf"p: expected a whole number between 1 and {V - 1}"):
        ssi_sparse.strongest(fit.params, V)
    with pytest.raises(ValueError, match="init.identity: expected one number, got shape"):
        ssi_sparse.fit(left, right, LINKS, init=some._replace(identity=fit.params.identity), key=key, known=OWN)
    for options, message in (({"identity": 1.0}, "identity: expected 0"), ({"identity": 0.0}, "max_terms: expected")):
        with pytest.raises(ValueError, match=message):
            ssi_full.fit(left, right, LINKS, key=key, diagonal=False, known=OWN, **options)


def test_unseen_documents_are_scored_by_the_same_w(sides, key, rng):
    left, right = map(documents, sides)
    fit = ssi_full.fit(left, right, LINKS, key=key, known=OWN, max_terms=None, triples=100, max_iter=2)
    w = ssi_sparse.matrix(ssi_sparse.strongest(fit.params, V)).toarray() + np.eye(V)
    new = rng.random((3, V))
    query, document = ssi_full.encode(fit.params, documents(new), right)
    scores = query.dense @ document.dense.T + sparse.to_scipy(query.sparse) @ sides[1].T
    np.testing.assert_allclose(scores, new @ w @ sides[1].T, atol=1e-10)


@pytest.mark.parametrize("l1", [0.0, 0.002])
def test_a_sparse_fit_is_the_plain_loop_on_the_entries_it_has(sides, key, rng, monkeypatch, l1):
    monkeypatch.setattr(ssi_sparse, "CHUNK", 64)
    left, right = map(documents, sides)
    columns = np.sort(np.argsort(rng.random((V, V)), axis=1)[:, :4], axis=1)
    init = Sparse(jnp.asarray(columns, jnp.int32), jnp.asarray(rng.normal(size=(V, 4)) / 5), jnp.asarray(1.0))
    w, kept = ssi_sparse.matrix(init).toarray(), np.zeros((V, V))
    np.put_along_axis(kept, columns, 1, axis=1)
    fit = ssi_sparse.fit(left, right, LINKS, init=init, key=key, l1=l1, known=OWN, learning_rate=0.2, max_terms=3,
                         triples=150, max_iter=2)
    seeing = [cut(side, 3) for side in sides]
    for epoch in range(2):
        drawn = seen(key, 150, 64, epoch)
        w, result = plain(w, drawn, sides, seeing, 1.0, 1.0, 0.2, kept=kept)
        w = np.sign(w) * np.maximum(np.abs(w) - 0.2 * l1 * len(drawn), 0)
    assert fit.loss == pytest.approx(np.mean(result), rel=1e-10) and np.count_nonzero(result)
    np.testing.assert_allclose(ssi_sparse.matrix(fit.params).toarray(), w, atol=1e-12)
    assert (ssi_sparse.matrix(fit.params).nnz < 4 * V) == (l1 > 0)
    assert fit.params.identity == 1


def test_pruning_keeps_the_largest_and_ties_the_lower_column():
    init = Sparse(jnp.array([[1, 3, 4], [0, 2, 5]]), jnp.array([[0.5, -2.0, 1.0], [1.0, -1.0, 1.0]]), jnp.asarray(1.0))
    result = ssi_sparse.prune(init, 2)
    assert result.columns.tolist() == [[3, 4], [0, 2]] and result.values.tolist() == [[-2.0, 1.0], [1.0, -1.0]]


def score(params):
    """A validation score that is best on the way."""
    leaf = params.coefficients if isinstance(params, ssi_full.Full) else params.values
    return -abs(float(jnp.sum(jnp.abs(leaf))) - 10.0)


@pytest.mark.parametrize("kind", ["full", "sparse"])
def test_resuming_is_bit_identical_and_other_problems_are_refused(sides, tmp_path, key, kind):
    left, right = map(documents, sides)
    init = Sparse(jnp.tile(jnp.arange(5), (V, 1)), jnp.full((V, 5), 0.1), jnp.asarray(1.0))

    def run(**options):
        fixed = {"key": key, "known": OWN, "triples": 90, "max_iter": 6, "validate": score, "learning_rate": 0.2}
        if kind == "sparse":
            return ssi_sparse.fit(left, right, LINKS, **{**fixed, "init": init, "l1": 1e-3, **options})
        return ssi_full.fit(left, right, LINKS, **{**fixed, **options})

    whole = run()
    run(checkpoint=tmp_path, max_iter=3, checkpoint_every=2)
    resumed = run(checkpoint=tmp_path, checkpoint_every=2)
    for mine, other in zip(jax.tree.leaves(resumed.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
    for change in ({"margin": 2.0}, {"learning_rate": 0.3}, {"triples": 80}, {"known": None}, {"max_terms": 2}):
        with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
            run(checkpoint=tmp_path, validate=None, **change)


@pytest.mark.usefixtures("fully_compiled")
def test_no_step_copies_the_tables():
    size, table = 1500, 4 * 1500**2
    shape = jax.ShapeDtypeStruct
    state = tuple(shape((size, size), jnp.float32) for _ in range(2))
    grams = ssi_full.Grams(*state, shape((), jnp.float32))
    chunk = ssi.Example(triples.Triples(*[shape((64,), jnp.int32)] * 3), shape((64,), jnp.float32))
    needed = ssi_full.scan_chunk.lower(state, grams, chunk, shape((), jnp.float32)).compile().memory_analysis()
    assert needed.alias_size_in_bytes == 2 * table and needed.temp_size_in_bytes < table / 20


def test_a_diverging_fit_names_the_triple(sides, key):
    side = documents(sides[0].astype(np.float32))
    with pytest.raises(FloatingPointError, match=r"SSI, full: expected a finite loss, got \S+ at step \d+ \(epoch"):
        ssi_full.fit(side, side, LINKS, key=key, known=OWN, learning_rate=1e38, triples=400, max_iter=3)


@pytest.mark.parametrize(("options", "links", "message"), [
    ({}, [[0, 12]], r"links: expected documents in \[0, 12\), got \[\[0, 12\]\]"),
    ({}, [[3, 3]], r"links: expected none of the pairs in known, got \[\[3, 3\]\]"),
    ({}, [[0, d] for d in range(1, N)], r"links: expected a document left as a negative .* none for query \[0\]"),
    ({"identity": None}, LINKS, "identity: expected one number, got None"),
    ({"learning_rate": -1.0}, LINKS, "learning_rate: expected a positive number, got -1.0"),
    ({"products": 3}, LINKS, "products: expected"),
])
def test_bad_input_is_refused(sides, key, options, links, message):
    left, right = map(documents, sides)
    with pytest.raises(ValueError, match=message):
        ssi_full.fit(left, right, links, **{"key": key, "known": OWN, "max_iter": 1, "triples": 8, **options})


def test_bad_entries_and_products_are_refused(sides, key):
    left, right = map(documents, sides)
    init = Sparse(jnp.zeros((V, 1), jnp.int32), jnp.zeros((V, 1)), jnp.asarray(1.0))
    with pytest.raises(ValueError, match="p: expected a whole number between 1 and 1"):
        ssi_sparse.prune(init, 2)
    with pytest.raises(ValueError, match=r"l1: expected a number of at least 0, got -1.0"):
        ssi_sparse.fit(left, right, LINKS, init=init, key=key, l1=-1.0)
    with pytest.raises(ValueError, match=r"init: expected 15 rows, got 2"):
        ssi_sparse.fit(left, right, LINKS, init=init._replace(columns=jnp.zeros((2, 1), jnp.int32)), key=key)
    few = Products(sparse.take(left, np.arange(3)), right, 1.0)
    for identity, message in ((1.0, r"those of 12 queries and 12 documents, got \(3, 12\)"),
                              (None, "an identity of one number, got none")):
        with pytest.raises(ValueError, match=f"products: expected {message}"):
            ssi.fit(left, right, LINKS, k=2, key=key, products=few, identity=identity)


def test_products_of_all_terms_leave_the_low_rank_part_to_some(sides, key):
    """003 §4.1, (UᵀV)_n + I: the low-rank part sees the first terms alone, the identity all of them."""
    narrow = [side[:, :6] for side in sides]
    products = Products(*map(documents, sides), 1.0)
    start_key, draw_key = jax.random.split(key)
    u, v = (0.1 * np.asarray(jax.random.normal(one, (6, 3), jnp.float64)) for one in jax.random.split(start_key, 2))
    fit = ssi.fit(*map(documents, narrow), LINKS, k=3, key=key, known=OWN, identity=3.0, triples=50, max_iter=1,
                  products=products, learning_rate=0.1)
    for triple in seen(draw_key, 50, ssi.CHUNK):
        apart = 3.0 * sides[0][triple[0]] @ (sides[1][triple[1]] - sides[1][triple[2]])
        u, v, _ = reference.ssi_sgd(u, v, np.zeros(6), [triple], *narrow, 1.0 - apart, 0.1)
    for side, weights in zip(fit.params, (u, v), strict=True):
        np.testing.assert_allclose(side.weights, weights, atol=1e-12)


@pytest.mark.parametrize(("columns", "values", "message"), [
    (np.full((V, 2), V), np.ones((V, 2)), r"init.columns: expected integers from 0 to \d+, got others"),
    (np.full((V, 2), -1), np.ones((V, 2)), r"init.columns: expected integers from 0 to \d+, got others"),
    (np.zeros((V, 2)), np.ones((V, 2)), r"init.columns: expected integers from 0 to \d+, got float"),
    (np.zeros((V, 3), int), np.ones((V, 2)), r"init.values: expected shape \(\d+, 3\)"),
    (np.zeros((V + 1, 2), int), np.ones((V + 1, 2)), r"init: expected \d+ rows"),
])  # fmt: skip
def test_a_start_of_other_columns_is_refused(sides, key, columns, values, message):
    init = ssi_sparse.Sparse(columns, values, np.float64(1))
    with pytest.raises(ValueError, match=message):
        ssi_sparse.fit(*map(documents, sides), LINKS, init=init, key=key, known=OWN, max_iter=1)
