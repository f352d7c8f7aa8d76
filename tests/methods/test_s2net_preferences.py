"""S2Net from graded preferences: its loss against loops, its blocks, and what it refuses."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from jaxsim import sparse
from jaxsim.data.labelled_pairs import LabelledPairs
from jaxsim.methods import s2net
from jaxsim.methods.projections import Projection
from jaxsim.methods.s2net import preferences


def problem(rng, queries=9, documents=30, terms=12):
    """Queries with 1 to 29 candidates of grades 0 to 2, the last query with one grade alone."""
    left, right = (sp.random(n, terms, 0.4, "csr", random_state=rng) for n in (queries, documents))
    rows = []
    for query in range(queries):
        for document in rng.permutation(documents)[: rng.integers(1, documents)]:
            rows.append((query, document, float(rng.integers(3)) if query < queries - 1 else 1.0))
    rows = [rows[i] for i in rng.permutation(len(rows))]
    pairs = LabelledPairs(*(np.array(part) for part in zip(*rows, strict=True)))
    return left, right, pairs


def slow_loss(weights, left, right, pairs, gamma):
    """All pairs of candidates of a query by loops."""
    p, q = (side.toarray() @ weights for side in (left, right))
    unit = [side / np.where((n := np.linalg.norm(side, axis=1, keepdims=True)) > 0, n, 1) for side in (p, q)]
    terms = []
    for (a, i, x), (b, j, y) in itertools.permutations(zip(*map(np.ndarray.tolist, pairs), strict=True), 2):
        if a == b and x > y:
            terms.append(np.log1p(np.exp(-gamma * unit[0][a] @ (unit[1][i] - unit[1][j]))))
    return np.mean(terms), len(terms)


def test_the_loss_is_the_mean_over_all_pairs_of_a_query_whose_grades_differ(rng, monkeypatch):
    monkeypatch.setattr(preferences, "_ENTRIES", 600)  # several chunks a block
    left, right, pairs = problem(rng)
    start = Projection(jnp.asarray(rng.normal(size=(12, 4))))
    sides = sparse.from_scipy(left), sparse.from_scipy(right)
    fit = s2net.preferences.fit(*sides, pairs, init=start, gamma=5.0, max_iter=0)
    expected, number = slow_loss(np.asarray(start.weights), left, right, pairs, 5.0)
    assert fit.loss == pytest.approx(expected, rel=1e-9)
    found = preferences.grouped(pairs, num_left=9, num_right=30)
    assert found.number == number and found.queries + found.skipped == 9 and found.skipped >= 1
    for block in found.blocks:  # no group is padded to the largest of all
        sizes = np.asarray(block.there).sum(axis=2)
        sizes = sizes[sizes > 0]
        assert sizes.max() <= 1.5 * sizes.min() + 1


def test_the_gradient_is_that_of_finite_differences(rng):
    left, right, pairs = problem(rng)
    found = preferences.grouped(pairs, num_left=9, num_right=30)
    start = Projection(jnp.asarray(rng.normal(size=(12, 3))))
    data = preferences.Data(sparse.from_scipy(left), sparse.from_scipy(right), found.blocks,
                            jnp.asarray(float(found.number)), jnp.asarray(5.0), jnp.asarray(0.1), start)
    direction = rng.normal(size=(12, 3))
    here = Projection(jnp.asarray(rng.normal(size=(12, 3))))
    objective = jax.jit(preferences.objective)
    slope = float(jnp.vdot(jax.jit(jax.grad(preferences.objective))(here, data).weights, direction))
    ends = [float(objective(Projection(here.weights + h * direction), data)) for h in (1e-5, -1e-5)]
    assert slope == pytest.approx((ends[0] - ends[1]) / 2e-5, rel=1e-6)


def test_training_orders_candidates_by_grade(rng):
    left, right, pairs = problem(rng)
    start = s2net.random_init(12, 6, key=jax.random.key(0))
    sides = sparse.from_scipy(left), sparse.from_scipy(right)
    fit = s2net.preferences.fit(*sides, pairs, init=start, max_iter=30)
    again = s2net.preferences.fit(*sides, LabelledPairs(*(part[::-1] for part in pairs)), init=start, max_iter=30)
    assert fit.loss < 0.7 * fit.history[0]["loss"] and fit.loss < np.log(2)
    assert again.loss == pytest.approx(fit.loss, rel=1e-6)  # the order of pairs does not matter


@pytest.mark.parametrize(("pairs", "message"), [
    (([0, 0], [0, 1], [1.0, np.nan]), "pairs.labels: expected finite"),
    (([0, 0], [0, 0], [1.0, 2.0]), "pairs: expected every pair once"),
    (([0, 1], [0, 1], [1.0, 2.0]), "pairs: expected a query with candidates of different grades, got none"),
    (([0, 9], [0, 1], [1.0, 2.0]), "pairs.left: expected indices in"),
])  # fmt: skip
def test_bad_grades_are_refused_by_name(pairs, message):
    documents = sparse.from_scipy(sp.identity(3, format="csr"))
    with pytest.raises(ValueError, match=message):
        s2net.preferences.fit(documents, documents, LabelledPairs(*map(np.array, pairs)),
                              init=s2net.random_init(3, 2, key=jax.random.key(0)))
