"""Weights of pairs in S2Net: the loss and its gradient, copies of pairs, batches, training and the command."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import reference_models as reference
import scipy.sparse
from command_line import LEFT, RIGHT, refused, run

from jaxsim import sparse
from jaxsim.data import pairs
from jaxsim.methods import s2net, s2net_sgd
from jaxsim.methods.s2net import mined
from jaxsim.optim import closed_form
from jaxsim.train import Settings, train

WEIGHTS = np.array([3, 1, 2, 1, 4])
COPIES = np.repeat(np.arange(5), WEIGHTS)


@pytest.fixture
def matrices(rng):
    return [scipy.sparse.csr_matrix(rng.random((5, 7)) * (rng.random((5, 7)) < 0.6)) for _ in range(2)]


@pytest.fixture
def start():
    return s2net.random_init(7, 3, key=jax.random.key(1))


def test_the_objective_is_that_of_the_loops(matrices, start, rng):
    negatives = mined.kept(sparse.from_scipy(matrices[0]), np.array([[0, 3], [2, -1], [-1, -1], [3, 4], [1, 0]]), 0.5)
    data = s2net.Data(*map(sparse.from_scipy, matrices), jnp.asarray(10.0), jnp.asarray(0.0), start,
                      weights=jnp.asarray(WEIGHTS, float))  # fmt: skip
    weights = np.asarray(start.weights, np.float64)
    left, right = (matrix.toarray() @ weights for matrix in matrices)
    loss, d_left, d_right = reference.all_pairs_logistic(left, right, 10.0, weights=WEIGHTS)
    value, grad = jax.value_and_grad(s2net.objective)(start, data)
    assert float(value) == pytest.approx(loss, rel=1e-6)
    np.testing.assert_allclose(grad.weights, matrices[0].T @ d_left + matrices[1].T @ d_right, atol=1e-5)
    each, times = [], []
    for i, some in enumerate(np.asarray(negatives.rows)):
        for row in some[some >= 0]:
            other = matrices[0][np.unique([0, 3, 2, 4, 1])].toarray()[row] @ weights
            each.append(reference.logistic_pairwise(reference.cosine(left[i], right[i])
                                                    - reference.cosine(left[i], other), 10.0))  # fmt: skip
            times.append(WEIGHTS[i])
    with_mined = s2net.objective(start, s2net.Data(**{**vars(data), "mined": negatives}))
    assert float(with_mined) == pytest.approx(loss + 0.5 * np.average(each, weights=times), rel=1e-5)


def test_a_fit_is_that_of_copies_in_one_group(matrices, start):
    left, right = map(sparse.from_scipy, matrices)
    fit = s2net.fit(left, right, init=start, weights=0.1 * WEIGHTS, max_iter=6)
    sides = (sparse.from_scipy(matrix[COPIES]) for matrix in matrices)
    copied = s2net.fit(*sides, init=start, groups=COPIES, max_iter=6)
    assert fit.loss == pytest.approx(copied.loss, rel=1e-5)
    np.testing.assert_allclose(fit.params.weights, copied.params.weights, atol=1e-4)
    plain = s2net.fit(left, right, init=start, max_iter=6)
    assert np.abs(fit.params.weights - plain.params.weights).max() > 1e-2


def test_a_batch_of_all_pairs_has_the_same_loss_and_weights_are_of_the_pairs_drawn(matrices, start, tmp_path):
    left, right = map(sparse.from_scipy, matrices)
    options = {"init": start, "key": jax.random.key(0), "max_iter": 1}
    whole = s2net_sgd.fit(left, right, weights=WEIGHTS, **options)
    expected = float(s2net.objective(start, s2net.Data(left, right, jnp.asarray(10.0), jnp.asarray(0.0), start,
                                                       weights=jnp.asarray(WEIGHTS, float))))  # fmt: skip
    assert whole.history[1]["loss"] == pytest.approx(expected, rel=1e-5)
    weighted = s2net_sgd.fit(left, right, weights=WEIGHTS, checkpoint=tmp_path, **options)
    np.testing.assert_array_equal(weighted.params.weights, whole.params.weights)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        s2net_sgd.fit(left, right, weights=WEIGHTS[::-1], checkpoint=tmp_path, **options)


@pytest.mark.parametrize("fit", [s2net.fit, lambda *sides, **how: s2net_sgd.fit(*sides, key=jax.random.key(0), **how)])
@pytest.mark.parametrize(("weights", "message"), [
    (WEIGHTS[:3], r"weights: expected 5 numbers, one a pair, got \(3,\)"),
    (-WEIGHTS, "weights: expected finite numbers of at least 0"),
    (np.zeros(5), "weights: expected 2 numbers above 0 at least, got none"),
    (np.eye(5)[0], "weights: expected 2 numbers above 0 at least, got 1"),
    (np.full(5, np.inf), "weights: expected finite numbers of at least 0"),
])
def test_weights_that_are_none_are_refused(matrices, start, fit, weights, message):
    with pytest.raises(ValueError, match=message):
        fit(*map(sparse.from_scipy, matrices), init=start, weights=weights, max_iter=1)


def test_a_mesh_takes_no_weights(matrices, start):
    with pytest.raises(ValueError, match="weights: expected none, with a mesh, got some"):
        s2net.fit(*map(sparse.from_scipy, matrices), init=start, weights=WEIGHTS, mesh=jax.make_mesh((1,), ("pairs",)))


def given(left=LEFT, right=RIGHT):
    return pairs.make("made", [f"{i:02}" for i in range(len(left))], left, right, languages=("en", "en"))


def test_a_training_hands_weights_on_and_those_of_equal_pairs_add_up(monkeypatch):
    seen = []
    monkeypatch.setattr(s2net, "fit", lambda *sides, init, weights, **how: seen.append(weights) or closed_form(init))
    weights = np.arange(1.0, 43)
    model = train(given([*LEFT, LEFT[2], LEFT[0].upper()], [*RIGHT, RIGHT[2], RIGHT[0]]),
                  Settings(dim=3), dev=0, pair_weights=weights)  # fmt: skip
    expected = np.arange(1.0, 41)
    expected[2] += 41
    expected[0] += 42
    np.testing.assert_array_equal(seen[0], expected)
    assert model.training["pair_weights"] == {"lowest": 2.0, "highest": 44.0}
    train(given(), Settings(dim=3), dev=0)
    assert seen[1] is None


@pytest.mark.parametrize(("options", "message"), [
    ({"method": "opca"}, r"pair_weights: expected none, for opca \(s2net and s2net-2 take them\), got some"),
    ({"shard_terms": True}, "shard_terms: expected False, with pair_weights, got True"),
    ({"devices": 2}, "devices: expected 1, with pair_weights, got 2"),
    ({"pair_weights": [1.0]}, r"pair_weights: expected 40 numbers, one a pair, got \(1,\)"),
    ({"pair_weights": [-2.0] * 40}, "pair_weights: expected finite numbers of at least 0, got -2"),
])
def test_a_training_refuses_weights_that_it_cannot_take(options, message):
    weights = options.pop("pair_weights", np.ones(40))
    with pytest.raises(ValueError, match=message):
        train(given(), Settings(**{"dim": 3, **options}), dev=0, pair_weights=weights)


def test_the_command_takes_labels_as_weights(folder, capsys):
    rows = [f"{a}\t{b}\t{i % 4}" for i, (a, b) in enumerate(zip(LEFT, RIGHT, strict=True))]
    (folder / "weighted.tsv").write_text("\n".join(rows) + "\n")
    words = ["train", "--pairs", "weighted.tsv", "--label", 3, "--dim", 3, "--max-iter", 2, "--dev", 0, "--json"]
    facts = json.loads(run(capsys, *words, "--label-weights", "--out", "weighted"))
    assert facts["pair_weights"] == {"lowest": 1.0, "highest": 3.0} and facts["pairs"]["train"] == 30
    plain = json.loads(run(capsys, *words, "--out", "plain"))
    assert "pair_weights" not in plain and plain["fit"]["start_loss"] != facts["fit"]["start_loss"]
    for more, message in (
        (["--method", "lsa", "--label", 3], "--label-weights: expected a method that uses it (s2net and s2net-2)"),
        ([], "--label-weights: expected --label as well, got none"),
        (["--label", 3, "--tune"], "--label-weights: expected no --tune beside it, got both"),
    ):
        got = refused(capsys, "train", "--pairs", "weighted.tsv", "--out", "bad", "--label-weights", *more)
        assert got.startswith(message)
