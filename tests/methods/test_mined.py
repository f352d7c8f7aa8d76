"""Hard negatives from documents that are in no pair: which are mined, their loss, and the commands that take them."""

from __future__ import annotations

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse
from command_line import LEFT, RIGHT, refused, run

from jaxsim import sparse
from jaxsim.methods import opca, s2net
from jaxsim.methods.s2net import mined
from jaxsim.model import Model


def cosine(a, b):
    norm = np.linalg.norm(a) * np.linalg.norm(b)
    return a @ b / norm if norm else 0.0


def test_the_nearest_are_mined_but_for_what_may_be_right(rng):
    left, right, documents = rng.normal(size=(9, 3)), rng.normal(size=(9, 3)), rng.normal(size=(20, 3))
    right[:5] = left[:5] + 0.3 * right[:5]
    documents[4] = 0
    answers = [{i, 2 * i} for i in range(9)]
    result = mined.mine(left, right, documents, count=4, share=0.9, right_answers=answers)
    for i in range(9):
        own = cosine(left[i], right[i])
        near = [(cosine(left[i], document), row) for row, document in enumerate(documents)
                if row != 4 and row not in answers[i] and not cosine(left[i], document) > 0.9 * own > 0]
        wanted = [row for _, row in sorted(near, reverse=True)][:4]
        assert [row for row in result[i].tolist() if row >= 0] == wanted
    for changes, message in (({"count": 0}, "count"), ({"share": 0.0}, "share: expected a number in"),
                             ({"documents": documents[:, :2]}, r"documents: expected 3 dimensions \(as left\), got 2"),
                             ({"right_answers": [set()]}, r"right_answers: expected 9 \(as left\), got 1")):
        with pytest.raises(ValueError, match=message):
            mined.mine(**{"left": left, "right": right, "documents": documents, "count": 1, **changes})


def test_a_share_of_one_excepts_the_right_answer_itself(rng):
    left, right = rng.normal(size=(9, 4)), rng.normal(size=(9, 4))
    for side in (right, left + 0.1 * right):
        found = mined.mine(left, side, side, count=9, share=1.0)
        assert not any(i in some for i, some in enumerate(found)) and np.any(found >= 0)


@pytest.mark.parametrize("far", [1.0, 0.0, -1e-9])
def test_a_mate_that_is_not_near_and_its_copies_are_no_negatives(far):
    left, right = np.array([[1.0, 0.0]]), np.array([[-far, 1.0]])
    documents = np.array([[-1.0, -1.0], *right, [-2.0, 1.0], *(3 * right), [0.0, 0.0]])
    assert mined.mine(left, right, documents, count=5).tolist() == [[0, 2, -1, -1, -1]]


@pytest.mark.parametrize("scale", [1e-60, 1e-25, 1e-21, 1e25, 1e60])
def test_the_scale_of_the_vectors_does_not_matter(rng, scale):
    left, right, documents = rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.normal(size=(20, 3))
    right, documents[4] = left + 0.3 * right, 0
    wanted = mined.mine(left, right, documents, count=4)
    np.testing.assert_array_equal(mined.mine(scale * left, right, scale * documents, count=4), wanted)


def test_the_objective_is_that_of_the_pairs_and_the_weighted_mean_over_the_negatives(rng):
    matrices = [scipy.sparse.csr_matrix(rng.random((size, 7)) * (rng.random((size, 7)) < 0.6)) for size in (5, 5, 6)]
    left, right, documents = map(sparse.from_scipy, matrices)
    rows = np.array([[0, 5], [2, -1], [-1, -1], [3, 4], [1, 0]])
    negatives = mined.kept(documents, rows, 0.5)
    start = s2net.random_init(7, 3, key=jax.random.key(1))
    fields = {"left": left, "right": right, "gamma": jnp.asarray(10.0), "beta": jnp.asarray(0.0), "start": start}
    plain = float(s2net.objective(start, s2net.Data(**fields)))
    weights = np.asarray(start.weights, np.float64)
    vectors = [matrix.toarray() @ weights for matrix in matrices]
    each = [np.log1p(np.exp(-10 * (cosine(vectors[0][i], vectors[1][i]) - cosine(vectors[0][i], vectors[2][row]))))
            for i, some in enumerate(rows) for row in some if row >= 0]
    result = float(s2net.objective(start, s2net.Data(**fields, mined=negatives)))
    assert result == pytest.approx(plain + 0.5 * np.mean(each), rel=1e-5)
    assert mined.kept(documents, np.full((5, 2), -1)) is None
    with pytest.raises(ValueError, match=r"mined: expected rows of its documents, \[5, c\]"):
        s2net.fit(left, right, init=start, mined=negatives._replace(rows=negatives.rows[:3]), max_iter=1)


def test_negatives_of_other_documents_go_down(rng):
    """Left texts of a word that only documents outside the pairs share: training on these moves them away."""
    words = 24
    left = np.eye(words)[:12] + np.eye(words)[12:]
    right = np.eye(words)[:12]
    outside = np.eye(words)[12:]
    sides = [sparse.from_scipy(scipy.sparse.csr_matrix(side)) for side in (left, right, outside)]
    start = opca.fit(sides[:2], k=10, noise=0.1).params
    negatives = mined.kept(sides[2], mined.mine(*(side @ np.asarray(start.weights) for side in (left, right, outside)),
                                                count=2), 10.0)

    def wrong(params):
        a, b, c = (side @ np.asarray(params.weights) for side in (left, right, outside))
        return np.mean([cosine(a[i], c[i]) - cosine(a[i], b[i]) for i in range(12)])

    plain = s2net.fit(*sides[:2], init=start, max_iter=15).params
    taught = s2net.fit(*sides[:2], init=start, max_iter=15, mined=negatives).params
    assert wrong(taught) < wrong(plain) - 0.02


def test_the_command_mines_from_a_file_and_says_how_many(folder, capsys):
    (folder / "more.txt").write_text("\n".join([*RIGHT[:20], "an other text of array and plot", "sparse seed"]) + "\n")
    words = ["train", "--pairs", "pairs.tsv", "--out", "mined", "--dim", "5", "--max-iter", "3", "--dev", "0.2"]
    facts = json.loads(run(capsys, *words, "--documents", "more.txt", "--negatives", 3, "--json"))
    assert facts["mined"]["documents"] == 22 and 0 < facts["mined"]["negatives"] <= 3 * facts["pairs"]["train"]
    assert Model.load("mined").encode(LEFT[0]).shape == (5,)
    for more, message in (
        (["--negatives", 3], "--negatives: expected --documents as well, with --pairs"),
        (["--documents", "more.txt", "--negatives", 0], "--negatives: expected at least 1, with --pairs"),
        (["--documents", "more.txt", "--method", "opca"], "--documents: expected a method that uses it with --pairs ("),
        (["--documents", "more.txt", "--grid", "dim=3"], "--documents: expected no --tune or --grid beside it"),
        (["--documents", "more.txt", "--batch-size", 4], "--documents: expected none, with batches"),
    ):
        given = [word for word in words if more[-2] != "--method" or word not in ("--max-iter", "3")]
        assert refused(capsys, *given, *more).startswith(message)
