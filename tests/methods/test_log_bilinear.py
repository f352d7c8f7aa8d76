"""The log-bilinear model: against NumPy, what it learns from the places of words, and what it keeps."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.data.corpora import questions
from jaxsim.data.corpora.sentences import Sentences
from jaxsim.methods.language import log_bilinear
from jaxsim.methods.language.rnn_training import Rows

WORDS = ("<unk>", "<s>", "</s>", *"abcdefgh")


@pytest.fixture(scope="module")
def text():
    """Sentences x T y: the target is d where the word before is a, e where it is b; c stands anywhere."""
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(600):
        first = int(rng.integers(3, 5))
        rows += [1, *[5] * int(rng.integers(0, 3)), first, first + 3, *[5] * int(rng.integers(0, 3)), 2]
    tokens = np.array(rows, np.int32)
    return Sentences(tokens, WORDS, np.bincount(tokens, minlength=len(WORDS)), "0", {})


def train(text, steps=4, **options):
    settings = {"size": 9, "k": 6, "window": 2, "negatives": 8, "batch": 32, "learning_rate": 0.1, **options}
    return log_bilinear.fit(text, [6, 7], key=jax.random.key(0), max_iter=steps, progress=False, **settings)


def test_scores_are_log_softmax_of_the_sum_of_weighted_words_within_the_sentence(rng):
    around, places = rng.normal(size=(9, 4)), rng.normal(size=(4, 4))
    words, bias = rng.normal(size=(3, 4)), rng.normal(size=3)
    targets = np.full(11, -1, np.int32)
    targets[[6, 7, 8]] = [0, 1, 2]
    model = log_bilinear.LogBilinear(*map(jnp.asarray, (around, places, words, bias, targets, -9.0)))
    asked = questions.collect([questions.question("a b _____ c", ["d", "f", "zebra", "h"])])
    filled = questions.encode(asked, {word: at for at, word in enumerate(WORDS)})
    read = places[0] * around[3] + places[1] * around[4] + places[2] * around[5]  # the fourth place is </s>
    logits = words @ read + bias
    logs = logits - np.logaddexp.reduce(logits)
    # The word that is no target counts as one that occurs once, and so does one that was never seen.
    np.testing.assert_allclose(log_bilinear.scores(model, filled), [[logs[0], logs[2], -9.0, -9.0]], rtol=1e-6)
    two = questions.encode(questions.collect([questions.question("_____ c _____", [("d", "e"), ("e", "d")])]),
                           {word: at for at, word in enumerate(WORDS)})
    assert log_bilinear.scores(model, two).shape == (1, 2)


def test_the_objective_is_the_full_one_when_every_word_is_drawn_once_and_its_gradient_a_difference(rng):
    rows = Rows(*map(jnp.asarray, (rng.normal(size=(5, 4, 3)), np.zeros((5, 3)), np.zeros(5), rng.normal(size=(6, 3)),
                                   rng.normal(size=6))))
    right, drawn = np.array([0, 1, 5, 2, 2]), np.arange(6)
    rows = rows._replace(right=rows.drawn[right], right_bias=rows.drawn_bias[right])
    places, inside = jnp.asarray(rng.normal(size=(4, 3))), jnp.asarray(rng.random((5, 4)) < 0.7)

    def loss(places):
        return log_bilinear.objective(rows, places, inside, right, drawn, jnp.full(6, -np.log(6)))

    read = np.einsum("bik,ik,bi->bk", rows.inputs, places, np.asarray(inside, float))
    scores = read @ np.asarray(rows.drawn).T + np.asarray(rows.drawn_bias)
    expected = (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(5), right]).sum()
    np.testing.assert_allclose(loss(places), expected, rtol=1e-10)
    direction = rng.normal(size=places.shape)
    ends = [loss(places + sign * 1e-5 * direction) for sign in (1, -1)]
    np.testing.assert_allclose(np.vdot(jax.grad(loss)(places), direction), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


def test_it_learns_what_stands_before_the_gap_and_stops_by_the_text_held_out(text):
    fit = train(text, steps=30, dev=text.tokens[-400:][np.flatnonzero(text.tokens[-400:] == 1)[0] :], patience=2)
    assert fit.history[-1]["loss"] < 0.05 < fit.history[1]["loss"]
    assert fit.history[-1]["validation"] > -0.05
    asked = [questions.question("c a _____ c", ["d", "e"]), questions.question("b _____", ["d", "e"])]
    filled = questions.encode(questions.collect(asked), text.numbers)
    assert log_bilinear.scores(fit.params, filled).argmax(axis=1).tolist() == [0, 1]


def test_training_goes_on_bit_for_bit(text, tmp_path):
    whole = train(text, dev=text.tokens)
    for steps in (2, 4):
        resumed = train(text, steps, dev=text.tokens, checkpoint=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, resumed.params, whole.params)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        train(text, window=1, checkpoint=tmp_path)


def test_one_target_is_no_choice(text):
    with pytest.raises(ValueError, match="targets: expected at least two words that occur in the text, got 1"):
        log_bilinear.fit(text, [6], size=9, k=6, key=jax.random.key(0))


@pytest.mark.parametrize(("options", "message"), [
    ({"k": 0}, "k: expected"), ({"adagrad": 0}, "adagrad: expected a positive number"),
    ({"batch": 10_000}, "sentences: expected at least 10000 occurrences of the targets"),
    ({"dev": np.array([1, 2])}, "dev: expected at least one word that can be asked for, got none"),
])  # fmt: skip
def test_bad_settings_are_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        train(text, **options)


def test_targets_that_are_none_and_losses_that_are_no_numbers_are_refused(text):
    with pytest.raises(ValueError, match="targets: expected at least two words that occur"):
        log_bilinear.fit(text, [6, 10], size=9, key=jax.random.key(0))
    with pytest.raises(ValueError, match="targets: expected numbers of words below 11"):
        log_bilinear.fit(text, [6, 99], size=9, key=jax.random.key(0))
    with pytest.raises(ValueError, match="targets: expected numbers of words, whole numbers, got float64"):
        log_bilinear.fit(text, [6.9, 8.2], size=9, key=jax.random.key(0))
    with pytest.raises(FloatingPointError, match="log-bilinear: expected a finite loss"):
        train(text, learning_rate=1e307, adagrad=1e-30)
