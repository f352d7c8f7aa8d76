"""Supervised Semantic Indexing: triples, the compiled loop against the plain one, memory, resumption, refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi_diag, ssi_sgd
from jaxsim.methods.ssi import bilinear, host, products, triples
from jaxsim.methods.ssi import low_rank as ssi
from jaxsim.methods.ssi import shared as ssi_shared
from jaxsim.optim.rows import scan_chunk

N, V, K = 12, 30, 3
LINKS = np.array([[0, 1], [0, 4], [1, 0], [2, 5], [3, 1], [5, 2], [6, 7], [7, 6], [9, 10], [11, 3]])
OWN = np.repeat(np.arange(N), 2).reshape(N, 2)


def dense(rng, density=0.4):
    result = rng.random((N, V)) * (rng.random((N, V)) < density)
    result[8] = 0  # an article without words
    length = np.linalg.norm(result, axis=1, keepdims=True)
    return np.divide(result, length, out=np.zeros_like(result), where=length > 0)


def documents(array, dtype=np.float64, **options):
    return sparse.from_scipy(scipy.sparse.csr_matrix(array.astype(dtype)), **options)


def triples_of(key, number, chunk, *, known=OWN):
    """What a fit with this key sees in its first epoch."""
    table = triples.table(LINKS, N, N, known=known)
    parts = ssi_shared.drawn(jax.random.fold_in(key, 0), table, number, chunk=chunk)
    return np.concatenate([np.stack(part, axis=1) for part in parts])


def test_triples_are_uniform_links_with_uniform_documents_that_are_not_linked(key):
    number = 40_000
    result = np.stack(triples.draw(key, triples.table(LINKS, N, N, known=OWN), number), axis=1)
    linked, counts = np.unique(result[:, :2], axis=0, return_counts=True)
    assert linked.tolist() == sorted(LINKS.tolist())
    expected = number / len(LINKS)
    assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))
    for query in np.unique(LINKS[:, 0]):
        free = reference.not_linked(LINKS, OWN, query, N)
        negatives, counts = np.unique(result[result[:, 0] == query, 2], return_counts=True)
        assert negatives.tolist() == free
        expected = counts.sum() / len(free)
        assert np.all(np.abs(counts - expected) < 5 * np.sqrt(expected))


@pytest.mark.parametrize("symmetric", [False, True])
def test_a_start_that_is_given_is_where_training_begins(rng, key, symmetric):
    """Step 0 of its course; the same triples as from random numbers, and the arrays that were given stay."""
    left, starts = documents(dense(rng)), [rng.normal(size=(V, K)) for _ in range(2 - symmetric)]
    seen, given = [], tuple(map(jnp.asarray, starts))
    settings = {"k": K, "key": key, "known": OWN, "triples": 40, "symmetric": symmetric}
    fit = ssi.fit(left, left, LINKS, init=given, max_iter=2, validate=lambda params: seen.append(params) or len(seen),
                  learning_rate=0.1, **settings)  # fmt: skip
    for side, start in zip(seen[0], (starts * 2)[:2], strict=True):
        np.testing.assert_allclose(side.weights, start, rtol=1e-6)
    assert not np.allclose(fit.params[0].weights, starts[0])
    for mine, start in zip(given, starts, strict=True):
        np.testing.assert_array_equal(mine, start)


def test_triples_of_rows_whose_product_32_bits_do_not_hold(key):
    size = 2**31 - 1  # documents; a query's number times it is far beyond
    links = np.array([[3, 0], [3, size - 1], [70_000, 5], [70_000, 6]])
    result = np.stack(triples.draw(key, triples.table(links, 70_001, size), 2000), axis=1).astype(np.int64)
    assert {tuple(row) for row in result[:, :2].tolist()} == {tuple(row) for row in links.tolist()}
    assert result[:, 2].min() >= 0 and result[:, 2].max() < size and result[:, 2].std() > size / 4


def test_every_document_but_the_known_ones_is_reached_wherever_they_stand(key):
    for known in ([1, 2, 3], [0, 1, 5], [3, 4, 5], [0, 2, 4]):
        links = [[0, known[0]]]
        table = triples.table(links, 1, 6, known=[[0, document] for document in known[1:]])
        negative = np.asarray(triples.draw(key, table, 200).negative)
        assert sorted(set(negative.tolist())) == sorted({*range(6)} - {*known})


@pytest.mark.parametrize(("kind", "identity", "max_terms"), [
    ("asymmetric", 10.0, None), ("asymmetric", "diagonal", 5), ("asymmetric", None, None), ("symmetric", 1.0, 5),
    ("symmetric", None, None),
])
@pytest.mark.usefixtures("loop")
def test_a_fit_is_the_plain_loop_over_its_triples(rng, key, monkeypatch, kind, identity, max_terms):
    monkeypatch.setattr(ssi, "CHUNK", 64)  # several chunks an epoch
    left, right = dense(rng), dense(rng)
    symmetric = kind == "symmetric"
    identity = rng.random(V) * 5 if isinstance(identity, str) else identity
    fit = ssi.fit(documents(left), documents(right), LINKS, k=K, key=key, identity=identity, symmetric=symmetric,
                  known=OWN, init_scale=0.2, margin=1.5, learning_rate=0.3, max_terms=max_terms, triples=200,
                  max_iter=1)
    start_key, draw_key = jax.random.split(key)
    u, v = (0.2 * np.asarray(jax.random.normal(one, (V, K), jnp.float64))
            for one in jax.random.split(start_key, 2))
    if symmetric:
        u, v = 0.2 * np.asarray(jax.random.normal(jax.random.split(start_key, 1)[0], (V, K), jnp.float64)), None
    seen = triples_of(draw_key, 200, ssi.CHUNK)
    diagonal = np.broadcast_to(0.0 if identity is None else identity, V)
    cut = [x if max_terms is None else sparse.to_scipy(bilinear.strongest(documents(x), max_terms)).toarray()
           for x in (left, right)]
    u, v, result = _plain(u, v, diagonal, seen, cut, (left, right), 1.5, 0.3)
    for side, weights in zip(fit.params, (u, v), strict=True):
        np.testing.assert_allclose(side.weights, weights, atol=1e-12)
    assert fit.loss == pytest.approx(np.mean(result), rel=1e-12) and fit.evaluations == len(seen)
    assert 0 < np.count_nonzero(result) < len(result) or identity is None
    if identity is None:
        assert fit.params[0].scale is None and fit.params[1].scale is None
    else:
        np.testing.assert_allclose(fit.params[0].scale, diagonal)
        assert np.all(np.asarray(fit.params[1].scale) == 1)


def _plain(u, v, diagonal, seen, cut, full, margin, rate):
    """`reference.ssi_sgd` where the low-rank part sees cut documents; the rest of the score is in its margin."""
    result = []
    for triple in seen:
        query, better, worse = triple
        apart = full[0][query] @ (diagonal * (full[1][better] - full[1][worse]))
        u_new, v_new, (loss,) = reference.ssi_sgd(u, v, np.zeros(V), [triple], *cut, margin - apart, rate)
        u, v = u_new, None if v is None else v_new
        result.append(loss)
    return u, u if v is None else v, result


def test_the_diagonal_is_the_plain_loop_over_its_triples(rng, key, monkeypatch):
    left, right = dense(rng), dense(rng)
    fit = ssi_diag.fit(documents(left), documents(right), LINKS, key=key, identity=2.0, known=OWN, learning_rate=0.5,
                       triples=300, max_iter=1)
    seen = triples_of(key, 300, ssi_diag.CHUNK)
    diagonal, result = reference.ssi_diag_sgd(np.full(V, 2.0), seen, left, right, 1.0, 0.5)
    np.testing.assert_allclose(fit.params[0].scale, diagonal, atol=1e-12)
    assert fit.loss == pytest.approx(np.mean(result), rel=1e-12)
    assert 0 < np.count_nonzero(result) and fit.params[0].weights is None


def test_the_objective_matches_central_differences(rng):
    sides = (ssi_shared.padded(documents(dense(rng)), max_terms) for max_terms in (7, None))
    data = ssi_shared.Documents(*(part for side in sides for part in side), 1.0)
    one = ssi.Example(triples.Triples(jnp.int32(0), jnp.int32(1), jnp.int32(2)), jnp.float64(0.1))
    for which in (ssi.rows, ssi.symmetric_rows):
        gathered = tuple(jnp.asarray(rng.normal(size=(at.size, K)) / 3) for at in which(one, data))
        slope = jax.grad(ssi.objective)(gathered, one, data)
        assert float(ssi.objective(gathered, one, data)) > 0
        for place, grad in enumerate(slope):
            direction = rng.normal(size=grad.shape)

            def along(moved, place=place, gathered=gathered):
                changed = [*gathered]
                changed[place] = jnp.asarray(moved)
                return float(ssi.objective(tuple(changed), one, data))

            numeric = reference.central_difference(along, np.asarray(gathered[place]), direction)
            assert float(jnp.sum(grad * direction)) == pytest.approx(numeric, rel=1e-6)


def test_products_are_the_same_from_the_table_and_one_by_one(rng, key):
    left, right = dense(rng), dense(rng)
    diagonal = rng.random(V)
    some = triples.draw(key, triples.table(LINKS, N, N), 50)
    expected = [left[q] @ (diagonal * (right[a] - right[b])) for q, a, b in np.stack(some, axis=1)]
    for table in (N * N, 0):
        result = products.Products(documents(left), documents(right), diagonal, table=table).apart(some)
        np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.usefixtures("fully_compiled")
def test_no_step_copies_or_walks_over_the_tables(symmetric):
    num_terms, k, slots = 50_000, 100, 20
    shape = jax.ShapeDtypeStruct
    tables = tuple(shape((num_terms, k), jnp.float32) for _ in range(1 if symmetric else 2))
    table_bytes = 4 * num_terms * k
    ids, values = shape((40, slots), jnp.int32), shape((40, slots), jnp.float32)
    data = ssi_shared.Documents(ids, values, ids, values, shape((), jnp.float32))
    chunk = ssi.Example(triples.Triples(*[shape((64,), jnp.int32)] * 3), shape((64,), jnp.float32))
    which = ssi.symmetric_rows if symmetric else ssi.rows
    lowered = scan_chunk.lower(ssi.objective, which, tables, data, chunk, shape((), jnp.float32))
    needed = lowered.compile().memory_analysis()
    assert needed.alias_size_in_bytes == len(tables) * table_bytes
    assert needed.temp_size_in_bytes < table_bytes / 20
    assert needed.output_size_in_bytes < len(tables) * table_bytes + 2**16


def fits(rng, key, **options):
    left = documents(dense(rng))
    settings = {"k": K, "known": OWN, "triples": 100, "learning_rate": 0.3, "max_iter": 6, "identity": 1.0}
    return ssi.fit(left, left, LINKS, key=key, **{**settings, **options})


def score(params):
    """A validation score that is best on the way."""
    return -abs(float(jnp.sum(params[0].weights ** 2)) - 20.0)


def test_resuming_is_bit_identical_and_other_problems_are_refused(tmp_path, key):
    def run(**options):
        return fits(np.random.default_rng(5), key, **{"validate": score, **options})

    whole = run()
    assert 0 < np.argmax([entry["validation"] for entry in whole.history]) < 6
    run(checkpoint=tmp_path, max_iter=3, checkpoint_every=2)
    resumed = run(checkpoint=tmp_path, checkpoint_every=2)
    for mine, other in zip(jax.tree.leaves(resumed.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(mine, other)
    assert [entry["loss"] for entry in resumed.history[1:]] == [entry["loss"] for entry in whole.history[1:]]
    for change in ({"identity": 2.0}, {"margin": 2.0}, {"learning_rate": 0.2}, {"init_scale": 0.3}, {"triples": 90},
                   {"known": None}, {"max_terms": 2}, {"symmetric": True}):
        with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
            run(checkpoint=tmp_path, validate=None, **change)


def test_the_loop_of_the_host_leaves_numbers_that_numba_lacks_to_the_scan():
    data = ssi_shared.Documents(*[jnp.zeros((1, 1), dtype) for dtype in (jnp.int32, jnp.bfloat16)] * 2,
                                jnp.ones((), jnp.bfloat16))
    assert host.steps(data) is None


@pytest.mark.usefixtures("loop")
def test_a_diverging_fit_names_the_triple(rng, key):
    with pytest.raises(FloatingPointError, match=r"SSI: expected a finite loss, got \S+ at step \d+ \(epoch \d+\)"):
        fits(rng, key, learning_rate=1e30, identity=None, max_iter=3)


@pytest.mark.parametrize(("options", "links", "message"), [
    ({}, [[0, 12]], r"links: expected documents in \[0, 12\), got \[\[0, 12\]\]"),
    ({}, [[-1, 1]], r"links: expected queries in \[0, 12\), got \[\[-1, 1\]\]"),
    ({}, [[0, 1, 2]], r"links: expected shape \[n, 2\], got \(1, 3\)"),
    ({}, [[0.5, 1.0]], "links: expected integers, got float64"),
    ({}, [], "links: expected at least one link, got none"),
    ({}, [[3, 3]], r"links: expected none of the pairs in known, got \[\[3, 3\]\]"),
    ({}, [[0, d] for d in range(1, N)], r"links: expected a document left as a negative .* none for query \[0\]"),
    ({"known": [[0, 99]]}, LINKS, r"known: expected documents in \[0, 12\), got \[\[0, 99\]\]"),
    ({"k": 0}, LINKS, "k: expected a whole number of at least 1, got 0"),
    ({"margin": 0.0}, LINKS, "margin: expected a positive number, got 0.0"),
    ({"init": (np.zeros((V, K)),)}, LINKS, r"init: expected arrays of shapes \(30, 3\), \(30, 3\), got \(30, 3\)"),
    ({"init": (np.zeros((V, 2)),), "symmetric": True}, LINKS, r"init: expected arrays of shapes \(30, 3\), got"),
    ({"init_scale": -1.0}, LINKS, "init_scale: expected a positive number, got -1.0"),
    ({"learning_rate": 0.0}, LINKS, "learning_rate: expected a positive number, got 0.0"),
    ({"identity": [1.0, 2.0]}, LINKS, r"identity: expected a number or shape \(30,\), got \(2,\)"),
    ({"identity": float("nan")}, LINKS, "identity: expected finite numbers, got NaN"),
    ({"max_terms": 0}, LINKS, "max_terms: expected a whole number of at least 1, got 0"),
    ({"triples": 0}, LINKS, "triples: expected a whole number of at least 1, got 0"),
])
def test_bad_input_is_refused(rng, key, options, links, message):
    left = documents(dense(rng))
    with pytest.raises(ValueError, match=message):
        ssi.fit(left, left, links, **{"k": K, "key": key, "known": OWN, "max_iter": 1, "triples": 8, **options})


def test_sides_of_other_vocabularies_are_refused_where_w_has_a_diagonal(rng, key):
    left, right = documents(dense(rng)), documents(dense(rng)[:, :9])
    with pytest.raises(ValueError, match=r"right: expected 30 terms \(as left, for the identity\), got 9"):
        ssi.fit(left, right, LINKS, k=K, key=key)
    with pytest.raises(ValueError, match=r"right: expected 30 terms \(as left, for V = U\), got 9"):
        ssi.fit(left, right, LINKS, k=K, key=key, identity=None, symmetric=True)
    with pytest.raises(ValueError, match="identity: expected a number or one number a term, got None"):
        ssi_diag.fit(left, left, LINKS, key=key, identity=None)
    fit = ssi.fit(left, right, LINKS, k=K, key=key, identity=None, triples=10, max_iter=1)
    assert [side.weights.shape for side in fit.params] == [(30, K), (9, K)]


def test_links_twice_count_once(rng, key):
    left = documents(dense(rng))
    once, twice = (ssi.fit(left, left, links, k=K, key=key, known=OWN, triples=100, max_iter=1)
                   for links in (LINKS, np.concatenate([LINKS, LINKS[::-1]])))
    for a, b in zip(jax.tree.leaves(once.params), jax.tree.leaves(twice.params), strict=True):
        np.testing.assert_array_equal(a, b)


def test_minibatches_with_another_optimizer_are_another_problem(tmp_path, key):
    documents = sparse.from_scipy(scipy.sparse.identity(6, format="csr"))

    def run(optimizer):
        return ssi_sgd.fit(documents, documents, [[0, 1], [2, 3], [4, 5]], k=3, key=key, batch=4, triples=40,
                                   max_iter=1, optimizer=optimizer, checkpoint=tmp_path)  # fmt: skip

    run(optax.adam(0.1))
    assert run(optax.adam(0.1)).steps == 1
    for other in (optax.adam(1e-5), None):
        with pytest.raises(ValueError, match="got another problem's"):
            run(other)
