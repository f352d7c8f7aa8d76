"""Mate retrieval from texts to scores, on made-up pairs."""

import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse, text
from jaxsim.data import pairs
from jaxsim.evaluate import mates
from jaxsim.methods.projections import Projection
from jaxsim.sparse import Vectors

TOPICS = [["star", "moon", "orbit", "comet"], ["flour", "oven", "yeast", "crust"], ["goal", "match", "team", "coach"]]


@pytest.fixture
def corpus(rng):
    """Ninety pairs: the right side is the left in a made-up language, each with words of its own."""
    left, right = [], []
    for i in range(90):
        words = [str(word) for word in rng.choice(TOPICS[i % 3], 3)] + [f"own{i}", f"rare{i}"]
        left.append(" ".join(words))
        right.append(" ".join(word if word.startswith("own") else f"{word}o" for word in words))
    sources = ["first" if i < 45 else "second" for i in range(90)]
    return pairs.make("made-up", [f"p{i:02d}" for i in range(90)], left, right, languages=("en", "es"), sources=sources)


def test_splits_cover_every_pair_once_and_only_training_texts_make_the_vocabulary(corpus):
    task = mates.from_pairs(corpus, drop_top=0)
    sizes = {name: sides[0].shape[0] for name, sides in task.counts.items()}
    assert sum(sizes.values()) == 90 and min(sizes.values()) > 0
    left, right = task.counts["train"]
    df = np.bincount(np.concatenate([left.indices, right.indices]), minlength=len(task.vocabulary))
    np.testing.assert_array_equal(task.vocabulary.df, df)
    assert task.vocabulary.num_docs == 2 * sizes["train"]


def test_near_duplicates_stay_together(corpus):
    twins = pairs.make("twins", [*corpus.ids, *(f"q{i}" for i in range(90))], corpus.left * 2,
                       [f"{text} extra{i}" for i, text in enumerate(corpus.right * 2)], languages=("en", "es"))
    task = mates.from_pairs(twins, drop_top=0)
    rows = {name: {tuple(row) for row in sides[0].toarray()[:, :].tolist()} for name, sides in task.counts.items()}
    naive = mates.from_pairs(twins, drop_top=0, naive=True)
    crossing = {name: {tuple(row) for row in sides[0].toarray().tolist()} for name, sides in naive.counts.items()}
    empty = (0.0,) * len(task.vocabulary)
    assert not (rows["train"] & rows["test"]) - {empty}
    assert (crossing["train"] & crossing["test"]) - {(0.0,) * len(naive.vocabulary)}
    assert task.groups["groups"] == 90 and task.groups["largest"] == 2
    for name, (left, _) in task.counts.items():
        twin = left.toarray() @ left.toarray().T >= 4
        ids = task.group_ids[name]
        rows_with_words = left.toarray().sum(1) >= 4
        assert ids.shape == (left.shape[0],) and np.unique(ids).size < ids.size
        assert ((ids[:, None] == ids[None, :]) <= (twin | ~rows_with_words[:, None])).all()


def test_weighted_documents_have_unit_length_or_their_own(corpus):
    task = mates.from_pairs(corpus, drop_top=0)
    unit = sparse.to_scipy(task.weighted("train")[0])
    own = sparse.to_scipy(task.weighted("train", unit_length=False)[0])
    lengths = np.sqrt(unit.multiply(unit).sum(axis=1))
    np.testing.assert_allclose(lengths, 1, rtol=1e-6)
    assert own.multiply(own).sum(axis=1).max() > 2


def test_scores_of_equal_and_of_empty_documents():
    same = Vectors(dense=np.eye(4))
    assert mates.scores(same, same) == {"accuracy": 1.0, "mrr": 1.0}
    nothing = Vectors(dense=np.zeros((4, 2)))
    # Every mate ties with all others, and ties are errors.
    assert mates.scores(nothing, nothing) == {"accuracy": 0.0, "mrr": 0.25}


def test_by_source_lets_only_documents_of_a_source_compete():
    left = Vectors(dense=np.eye(2)[[0, 1, 0, 1]])
    found = mates.by_source(left, left, np.asarray(["a", "a", "b", "b"]))
    assert found == {"a": {"accuracy": 1.0, "mrr": 1.0}, "b": {"accuracy": 1.0, "mrr": 1.0}}
    assert mates.scores(left, left)["accuracy"] == 0.0


def test_validator_and_two_projections(corpus):
    task = mates.from_pairs(corpus, drop_top=0)
    sides = task.weighted("dev")
    weights = Projection(np.eye(len(task.vocabulary)))
    score = mates.validator(sides)(weights)
    assert score == pytest.approx(mates.scores(*(Vectors(sparse=side) for side in sides))["mrr"], abs=1e-6)
    assert mates.validator(sides)((weights, weights)) == score


def test_an_empty_vocabulary_and_a_missing_training_part_are_refused(corpus):
    with pytest.raises(ValueError, match="pairs, drop_top: expected texts with words beside the 50 most frequent"):
        mates.from_pairs(corpus.take(range(5)))
    with pytest.raises(ValueError, match="tokens: expected a training part"):
        mates.build({"test": ([["a"]], [["b"]])}, {}, {})


def test_unit_rows_of_nothing():
    assert text.unit_rows(scipy.sparse.csr_matrix((0, 3))).shape == (0, 3)


def test_a_vocabulary_without_a_term_says_what_left_them_out():
    for min_df, told in ((1, "pairs: expected texts with words, got"), (2, "pairs, min_df: expected .* in 2 texts")):
        with pytest.raises(ValueError, match=told):
            mates.vocabulary_of([["a"], ["b"]] if min_df > 1 else [[], []], drop_top=0, max_terms=9, min_df=min_df)
