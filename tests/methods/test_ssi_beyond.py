"""SSI beyond the paper: negatives from the batch, and Adagrad, against plain loops; memory; resumption; refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi_batch
from jaxsim.methods.ssi import low_rank as ssi
from jaxsim.methods.ssi import shared as ssi_shared
from jaxsim.methods.ssi import triples
from jaxsim.methods.ssi.products import Products
from jaxsim.optim.rows import scan_adagrad, scan_chunk

N, V, K, B = 10, 14, 3, 4
LINKS = np.array([[0, 1], [0, 4], [1, 0], [2, 5], [3, 1], [5, 2], [6, 7], [7, 6], [9, 8]])
OWN = np.repeat(np.arange(N), 2).reshape(N, 2)


def dense(rng):
    """Six words a document, so that one compiled program serves all."""
    result = rng.random((N, V)) * (np.argsort(rng.random((N, V)), axis=1) < 6)
    length = np.linalg.norm(result, axis=1, keepdims=True)
    return np.divide(result, length, out=np.zeros_like(result), where=length > 0)


def documents(array):
    return sparse.from_scipy(scipy.sparse.csr_matrix(array))


def start_of(key):
    """The tables that a fit starts from, and the key that it draws by."""
    start_key, draw_key = jax.random.split(key)
    u, v = (0.1 * np.asarray(jax.random.normal(one, (V, K), jnp.float64)) for one in jax.random.split(start_key))
    return u, v, draw_key


def test_pairs_are_known_where_they_are_linked_or_told():
    result = triples.is_known(triples.table(LINKS, N, N, known=OWN), jnp.arange(N)[:, None], jnp.arange(N))
    expected = np.zeros((N, N), bool)
    expected[tuple(np.concatenate([LINKS, OWN]).T)] = True
    np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize("shared", [False, True])
def test_a_fit_of_batches_is_the_plain_loop_over_pairs(rng, key, shared):
    left, right = dense(rng), dense(rng)
    sides = documents(left), documents(right)
    fit = ssi_batch.fit(*sides, LINKS, k=K, key=key, batch=B, identity=3.0, known=OWN, learning_rate=0.5, triples=30,
                        max_iter=1, products=Products(*sides, 1.0) if shared else None)
    u, v, draw_key = start_of(key)
    linked, losses = {tuple(pair) for pair in np.concatenate([LINKS, OWN]).tolist()}, []
    drawn = ssi_batch.draw(jax.random.fold_in(jax.random.fold_in(draw_key, 0), 0),
                           triples.table(LINKS, N, N, known=OWN), 8, B)
    for query, document, _ in zip(*map(np.asarray, drawn), strict=True):
        w, step_u, step_v, loss = 3.0 * np.eye(V) + u @ v.T, np.zeros_like(u), np.zeros_like(v), 0.0
        for q, better in zip(query.tolist(), document.tolist(), strict=True):
            worse = [one for one in document.tolist() if (q, one) not in linked]
            for one in worse:
                apart = right[better] - right[one]
                value = max(0.0, 1.0 - left[q] @ w @ apart)
                loss += value / (B * len(worse))
                if value > 0:
                    step_u += np.outer(left[q], apart @ v) / (B * len(worse))
                    step_v += np.outer(apart, left[q] @ u) / (B * len(worse))
        u, v = u + 0.5 * step_u, v + 0.5 * step_v
        losses.append(loss)
    np.testing.assert_allclose(fit.params[0].weights, u, atol=1e-12)
    np.testing.assert_allclose(fit.params[1].weights, v, atol=1e-12)
    assert fit.loss == pytest.approx(np.mean(losses)) and fit.evaluations == 8 and min(losses) > 0


@pytest.mark.parametrize(("links", "known"), [
    ([[0, 1]], None), ([[0, 1], [0, 2]], None), ([[0, 1], [2, 1], [3, 1]], None), ([[0, 1], [2, 3]], [[0, 3], [2, 1]]),
])
def test_links_that_are_no_negatives_of_each_other_are_refused(rng, key, links, known):
    side = documents(dense(rng))
    facts = {"k": K, "key": key, "batch": B, "triples": 30, "max_iter": 1}
    with pytest.raises(ValueError, match="links: expected a document of another link left as a negative of a query"):
        ssi_batch.fit(side, side, links, known=known, **facts)
    # One query with a negative is enough: query 0 alone has none here.
    assert ssi_batch.fit(side, side, [[0, 1], [0, 2], [3, 1]], **facts).loss > 0


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize("symmetric", [False, True])
def test_adagrad_divides_by_the_root_of_the_squares_so_far(rng, key, symmetric):
    left, right = dense(rng), dense(rng)
    u, v, draw_key = start_of(key)
    v = u if symmetric else v
    fit = ssi.fit(documents(left), documents(right), LINKS, k=K, key=key, identity=2.0, known=OWN, learning_rate=0.1,
                  adagrad=0.01, triples=30, max_iter=1, init=(u,) if symmetric else (u, v), symmetric=symmetric)
    sums = [np.full((V, K), 0.01), np.full((V, K), 0.01)]
    table = triples.table(LINKS, N, N, known=OWN)
    (drawn,) = ssi_shared.drawn(jax.random.fold_in(draw_key, 0), table, 30, chunk=ssi.CHUNK)
    for query, better, worse in np.stack(drawn, axis=1).tolist():
        q, apart = left[query], right[better] - right[worse]
        if 1.0 - 2.0 * q @ apart - q @ u @ v.T @ apart <= 0:
            continue
        of_u = np.outer(q, apart @ v)
        # The rows of V of a word in both documents count twice, once for each.
        of_v = [np.outer(sign * side, q @ u) for sign, side in ((1, right[better]), (-1, right[worse]))]
        squares, moves = [of_u**2, of_v[0] ** 2 + of_v[1] ** 2], [of_u, sum(of_v)]
        if symmetric:  # both are of one matrix
            squares, moves = [sum(squares)] * 2, [sum(moves)] * 2
        sums = [total + more for total, more in zip(sums, squares, strict=True)]
        u, v = (side + 0.1 * move / np.sqrt(total) for side, move, total in zip((u, v), moves, sums, strict=True))
    np.testing.assert_allclose(fit.params[0].weights, u, atol=1e-10)
    np.testing.assert_allclose(fit.params[1].weights, v, atol=1e-10)
    with pytest.raises(ValueError, match="adagrad: expected a positive number, got 0"):
        ssi.fit(documents(left), documents(right), LINKS, k=K, key=key, adagrad=0.0)


@pytest.mark.parametrize("kind", ["adagrad", "batch"])
@pytest.mark.usefixtures("fully_compiled")
def test_no_step_copies_or_walks_over_the_tables(kind):
    num_terms, k, slots = 50_000, 100, 20
    shape = jax.ShapeDtypeStruct
    tables = tuple(shape((num_terms, k), jnp.float32) for _ in range(2))
    ids, values = shape((40, slots), jnp.int32), shape((40, slots), jnp.float32)
    data = ssi_shared.Documents(ids, values, ids, values, shape((), jnp.float32))
    row, rate = shape((16,), jnp.int32), shape((), jnp.float32)
    if kind == "adagrad":
        chunk = ssi.Example(triples.Triples(row, row, row), shape((16,), jnp.float32))
        lowered = scan_adagrad.lower(ssi.objective, ssi.rows, (tables, tables), data, chunk, rate)
    else:
        some, pairs = shape((16, B), jnp.int32), shape((16, B, B), jnp.float32)
        lowered = scan_chunk.lower(ssi_batch.objective, ssi_batch.rows, tables, data,
                                   ssi_batch.Batch(some, some, pairs, pairs), rate)
    needed, table_bytes = lowered.compile().memory_analysis(), 4 * num_terms * k
    assert needed.alias_size_in_bytes == (4 if kind == "adagrad" else 2) * table_bytes
    assert needed.temp_size_in_bytes < table_bytes / 20


@pytest.mark.parametrize("kind", ["adagrad", "batch"])
def test_resuming_is_bit_identical_and_other_problems_are_refused(rng, key, tmp_path, kind):
    side = documents(dense(rng))
    facts = {"k": K, "key": key, "known": OWN, "triples": 30, "identity": 1.0}

    def run(**options):
        if kind == "adagrad":
            return ssi.fit(side, side, LINKS, **{**facts, "adagrad": 0.01, **options})
        return ssi_batch.fit(side, side, LINKS, **{**facts, "batch": B, **options})

    whole = run(max_iter=4)
    run(max_iter=2, checkpoint=tmp_path)
    result = run(max_iter=4, checkpoint=tmp_path)
    for one, other in zip(jax.tree.leaves(result.params), jax.tree.leaves(whole.params), strict=True):
        np.testing.assert_array_equal(one, other)
    other = {"adagrad": 0.02} if kind == "adagrad" else {"batch": 2}
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
        run(max_iter=4, checkpoint=tmp_path, **other)


@pytest.mark.parametrize(("options", "message"), [
    ({"batch": 1}, "batch: expected at least 2 links, got 1"),
    ({"batch": 2.5}, "batch: expected a whole number of at least 1, got 2.5"),
    ({"triples": 0}, "triples: expected a whole number of at least 1, got 0"), ({"k": 0}, "k: expected"),
    ({"learning_rate": 0.0}, "learning_rate: expected a positive number"),
])
def test_bad_batches_are_refused(rng, key, options, message):
    side = documents(dense(rng))
    with pytest.raises(ValueError, match=message):
        ssi_batch.fit(side, side, LINKS, **{"k": K, "key": key, "triples": 8, "max_iter": 1, **options})
