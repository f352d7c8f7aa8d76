"""SSI from given preferences and SSI of two tasks: against the plain loop, what is drawn, resumption, refusals."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi_multitask, ssi_preferred
from jaxsim.methods.ssi import triples

N, V, F, K = 10, 14, 9, 3
PREFERRED = np.array([[0, 1], [0, 4], [1, 0], [2, 5], [3, 1], [7, 2], [0, 1]])
REJECTED = np.array([[3, 2], [0, 2], [0, 3], [1, 8], [2, 9], [2, 4], [5, 5]])
LINKS = np.array([[0, 1], [0, 4], [1, 0], [4, 5]])
SAME = np.array([[0, 1], [2, 3], [9, 8], [5, 6], [7, 6]])
OWN = np.repeat(np.arange(N), 2).reshape(N, 2)


def dense(rng, size=V, number=N):
    result = rng.random((number, size)) * (rng.random((number, size)) < 0.5)
    length = np.linalg.norm(result, axis=1, keepdims=True)
    return np.divide(result, length, out=np.zeros_like(result), where=length > 0)


def documents(array):
    return sparse.from_scipy(scipy.sparse.csr_matrix(array))


def start(key, *shapes):
    """The tables that a fit starts from, and the key that it draws by."""
    first, draws = jax.random.split(key)
    return [0.2 * np.asarray(jax.random.normal(one, shape, jnp.float64))
            for one, shape in zip(jax.random.split(first, len(shapes)), shapes, strict=True)], draws


def test_a_pair_is_told_from_that_of_another_query():
    found = ssi_preferred.table([[0, 2], [1, 1]], [[1, 0], [0, 3]], 2, 4)
    assert found.preferred.tolist() == [2, 1] and found.rejected.tolist() == [3, 0]
    with pytest.raises(ValueError, match=r"rejected: expected none of the pairs in preferred, got \[\[1, 1\]\]"):
        ssi_preferred.table([[0, 2], [1, 1]], [[1, 1], [0, 3]], 2, 4)


def test_worse_documents_are_those_that_the_query_rejects_each_as_often(key):
    table = ssi_preferred.table(PREFERRED, REJECTED, N, N)
    result, pair, place = ssi_preferred.draw(key, table, 12_000)
    drawn = np.stack(result, axis=1)
    better, counts = np.unique(drawn[:, :2], axis=0, return_counts=True)
    assert better.tolist() == [[0, 1], [0, 4], [1, 0], [2, 5], [3, 1]]  # 7 rejects nothing, a pair twice counts once
    assert np.all(np.abs(counts - 2400) < 5 * np.sqrt(2400))
    for query in (0, 1, 2, 3):
        worse, counts = np.unique(drawn[drawn[:, 0] == query, 2], return_counts=True)
        assert worse.tolist() == sorted(REJECTED[REJECTED[:, 0] == query, 1].tolist())
        assert np.all(np.abs(counts - counts.mean()) < 5 * np.sqrt(counts.mean()))
    np.testing.assert_array_equal(table.preferred[pair], result.positive)
    np.testing.assert_array_equal(table.rejected[place], result.negative)


@pytest.mark.parametrize("identity", [2.0, None])
def test_a_fit_of_preferences_is_the_plain_loop(rng, key, monkeypatch, identity):
    monkeypatch.setattr(ssi_preferred, "CHUNK", 64)
    left, right = dense(rng), dense(rng)
    seen = [np.where(np.arange(V) < 8, one, 0) for one in (left, right)]
    fit = ssi_preferred.fit(documents(left), documents(right), PREFERRED, REJECTED, k=K, key=key, identity=identity,
                            seen=tuple(map(documents, seen)), init_scale=0.2, margin=1.5, learning_rate=0.3,
                            max_terms=None, triples=150, max_iter=1)
    (u, v), draws = start(key, (V, K), (V, K))
    table = ssi_preferred.table(PREFERRED, REJECTED, N, N)
    result = []
    for chunk in range(3):
        drawn, _, _ = ssi_preferred.draw(jax.random.fold_in(jax.random.fold_in(draws, 0), chunk), table, 50)
        for query, better, worse in np.stack(drawn, axis=1):
            apart = (identity or 0.0) * left[query] @ (right[better] - right[worse])
            u, v, (loss,) = reference.ssi_sgd(u, v, np.zeros(V), [(query, better, worse)], *seen, 1.5 - apart, 0.3)
            result.append(loss)
    for side, weights in zip(fit.params, (u, v), strict=True):
        np.testing.assert_allclose(side.weights, weights, atol=1e-12)
    assert fit.loss == pytest.approx(np.mean(result)) and fit.evaluations == 150
    assert (fit.params[0].scale is None) == (identity is None)


@pytest.mark.parametrize("symmetric", [True, False])
def test_two_tasks_take_turns_and_share_v(rng, key, monkeypatch, symmetric):
    monkeypatch.setattr(ssi_multitask, "CHUNK", 60)
    left, right = dense(rng, F, 5), dense(rng)
    fit = ssi_multitask.fit(documents(left), documents(right), LINKS, documents(right), SAME, k=K, key=key,
                            symmetric=symmetric, same_known=OWN, init_scale=0.2, learning_rate=0.3, max_terms=None,
                            triples=60, max_iter=1)
    tables, draws = start(key, (F + V, K), *([] if symmetric else [(V, K)]))
    # Everything over the terms of both languages, those of the queries first.
    u, v = tables[0], None if symmetric else np.concatenate([np.zeros((F, K)), tables[1]])
    queries = np.block([[left, np.zeros((5, V))], [np.zeros((N, F)), right]])
    drawn, losses = (triples.table(LINKS, 5, N), triples.table(SAME, N, N, known=OWN)), []
    for chunk in range(2):
        keys = jax.random.split(jax.random.fold_in(jax.random.fold_in(draws, 0), chunk))
        first, second = (np.stack(triples.draw(one, table, 30), axis=1)
                         for one, table in zip(keys, drawn, strict=True))
        turns = np.stack([first, second + [5, 0, 0]], axis=1).reshape(-1, 3)
        u, new, result = reference.ssi_sgd(u, v, np.zeros(F + V), turns, queries, queries[5:], 1.0, 0.3)
        v = None if symmetric else new
        losses += result
    np.testing.assert_allclose(fit.params[0].weights, u[:F], atol=1e-12)
    np.testing.assert_allclose(fit.params[1].weights, (u if symmetric else v)[F:], atol=1e-12)
    assert fit.loss == pytest.approx(np.mean(losses)) and fit.evaluations == len(losses) == 120
    assert fit.params[0].scale is None and fit.params[0].weights.shape == (F, K)


def test_fits_go_on_where_they_stopped_bit_for_bit(rng, key, tmp_path):
    left, right = documents(dense(rng)), documents(dense(rng))
    facts = {"k": K, "key": key, "triples": 40}
    fits = {
        "preferred": lambda **more: ssi_preferred.fit(left, right, PREFERRED, REJECTED, **facts, **more),
        "multitask": lambda **more: ssi_multitask.fit(left, right, LINKS, right, SAME, same_known=OWN, **facts, **more),
    }
    for name, fit in fits.items():
        whole = fit(max_iter=2)
        fit(max_iter=1, checkpoint=tmp_path / name)
        result = fit(max_iter=2, checkpoint=tmp_path / name)
        for one, other in zip(jax.tree.leaves(result.params), jax.tree.leaves(whole.params), strict=True):
            np.testing.assert_array_equal(one, other)
        with pytest.raises(ValueError, match="checkpoint"):
            fit(max_iter=2, checkpoint=tmp_path / name, learning_rate=0.5)


@pytest.mark.parametrize(("change", "message"), [
    ({"preferred": [[0, 1, 2]]}, r"preferred: expected shape \[n, 2\], got \(1, 3\)"),
    ({"preferred": [[0.5, 1]]}, "preferred: expected integers"),
    ({"rejected": [[0, 10]]}, r"rejected: expected rows of 10 queries and 10 documents, got \[\[0, 10\]\]"),
    ({"rejected": [[0, 1], [0, 2]]}, r"rejected: expected none of the pairs in preferred, got \[\[0, 1\]\]"),
    ({"rejected": [[9, 1]]}, "preferred: expected a query that prefers and rejects, got none"),
    ({"seen": "short"}, r"seen: expected \(10, 14\) documents and terms, as left, got \(3, 14\)"),
    ({"k": 0}, "k: expected"), ({"triples": 0}, "triples: expected"), ({"margin": 0.0}, "margin: expected"),
    ({"identity": float("nan")}, "identity: expected finite numbers"),
])
def test_preferences_that_do_not_fit_are_refused(rng, key, change, message):
    left = documents(dense(rng))
    if "seen" in change:
        change = {"seen": (documents(dense(rng, V, 3)), left)}
    settings = {"preferred": PREFERRED, "rejected": REJECTED, "k": K, "max_iter": 1, "triples": 5, **change}
    with pytest.raises(ValueError, match=message):
        ssi_preferred.fit(left, left, settings.pop("preferred"), settings.pop("rejected"), key=key, **settings)


@pytest.mark.parametrize(("change", "message"), [
    ({"same_left": "other"}, r"same_left: expected 14 terms \(as right\), got 9"),
    ({"same_left": "matrix"}, "same_left: expected"),
    ({"links": []}, "links: expected at least one link"),
    ({"same_links": [[0, 10]]}, "same_links: expected documents in"),
    ({"same_known": [SAME[0]]}, "same_links: expected none of the pairs in same_known"),
    ({"k": 0}, "k: expected"), ({"triples": 0}, "triples: expected"), ({"init_scale": -1.0}, "init_scale: expected"),
])
def test_two_tasks_that_do_not_fit_are_refused(rng, key, change, message):
    right = documents(dense(rng))
    if "same_left" in change:
        change = {"same_left": documents(dense(rng, F)) if change["same_left"] == "other" else np.eye(V)}
    settings = {"left": documents(dense(rng, F, 5)), "right": right, "links": LINKS, "same_left": right,
                "same_links": SAME, "k": K, "max_iter": 1, "triples": 5, **change}
    with pytest.raises((ValueError, TypeError), match=message):
        ssi_multitask.fit(**settings, key=key)
