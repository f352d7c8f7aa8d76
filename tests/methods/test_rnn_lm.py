"""Recurrent language models: against NumPy, by finite differences, and what their training touches and keeps."""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import language_until_stopped as example
import numpy as np
import pytest
import reference_recurrent as reference

from jaxsim import optim
from jaxsim.data.corpora import questions
from jaxsim.data.corpora.sentences import Sentences
from jaxsim.methods.language import rnn_cells, rnn_lm, rnn_training

NETWORKS = {
    "tanh": rnn_lm.Network(rnn_lm.TANH, embed=5, hidden=5),  # its rows are what the gates read
    "gru": rnn_lm.Network(rnn_lm.GRU, embed=4, hidden=5),
    "lstm": rnn_lm.Network(rnn_lm.LSTM, embed=3, hidden=5, layers=2, project=4),
}
SIZE, STREAMS, STEPS = 11, 3, 6


def _numpy(tree):
    return jax.tree.map(lambda leaf: np.asarray(leaf, np.float64), tree)


def _window(rng, network):
    words = rng.integers(0, SIZE, (STEPS, STREAMS)).astype(np.int32)
    words[2, 1] = 1  # a sentence starts in the middle
    right = rng.integers(0, SIZE, (STEPS, STREAMS)).astype(np.int32)
    carry = jax.tree.map(lambda leaf: rng.normal(size=leaf.shape), network.zeros(STREAMS, float))
    return words, right, carry


def _learned(rng, network):
    bias = jnp.asarray(rng.normal(size=SIZE))
    learned = rnn_cells.start(network, SIZE, bias, jax.random.key(1))
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)) / 2, learned)


def _loss(learned, words, right, carry, network):
    inputs, outputs, bias, core = learned
    constants = rnn_training.Constants(*[jnp.zeros(SIZE)] * 2, *jnp.ones(2), jnp.int32(1))
    return rnn_training.window_loss((inputs[words], outputs, bias), core, words, right, None, carry, None, network,
                                    constants)[0]  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
def test_loss_and_gradient_of_each_cell_are_those_of_numpy(name, rng):
    network = NETWORKS[name]
    learned, (words, right, carry) = _learned(rng, network), _window(rng, network)

    def slow(parts):
        inputs, outputs, bias, core = _numpy(parts)
        return reference.window_loss(name, inputs, outputs, bias, core, words, right, 1, carry)

    value, slope = jax.value_and_grad(_loss)(learned, words, right, carry, network)
    np.testing.assert_allclose(value, slow(learned), rtol=1e-12)
    for at, (leaf, grad) in enumerate(zip(jax.tree.leaves(learned), jax.tree.leaves(slope), strict=True)):
        direction, structure = rng.normal(size=leaf.shape), jax.tree.structure(learned)
        ends = []
        for sign in (1, -1):
            moved = jax.tree.leaves(learned)
            moved[at] = leaf + sign * 1e-6 * direction
            ends.append(slow(jax.tree.unflatten(structure, moved)))
        np.testing.assert_allclose(np.vdot(grad, direction), (ends[0] - ends[1]) / 2e-6, rtol=1e-6, atol=1e-8)


def test_the_sampled_softmax_is_the_full_one_when_every_word_is_drawn_as_often_as_it_is_likely(rng):
    read, outputs = jnp.asarray(rng.normal(size=(2, 3, 4))), jnp.asarray(rng.normal(size=(SIZE, 4)))
    bias, right = jnp.asarray(rng.normal(size=SIZE)), rng.integers(0, SIZE, (2, 3))
    drawn = np.repeat(np.arange(SIZE), 2)  # Q is uniform, and every word comes twice
    rows = rnn_training.Rows(None, outputs[right], bias[right], outputs[drawn], bias[drawn])
    losses = rnn_training.sampled_loss(rows, read, right, drawn, jnp.full(SIZE, -np.log(SIZE)))
    np.testing.assert_allclose(losses, rnn_training.full_loss(outputs, bias, read, right), rtol=1e-12)


def test_words_are_drawn_by_their_weights(key):
    weights = jnp.array([0.5, 0.0, 0.3, 0.2])
    drawn = rnn_training.drawn_rows(key, jnp.cumsum(weights), 20_000)
    np.testing.assert_allclose(np.bincount(drawn, minlength=4) / 20_000, weights, atol=0.015)


@pytest.mark.usefixtures("fully_compiled")
def test_a_window_moves_the_rows_of_its_words_and_no_other(rng, key):
    network = NETWORKS["gru"]
    learned, (words, right, carry) = _learned(rng, network), _window(rng, network)
    words, right = np.minimum(words, 4), np.minimum(right, 3)
    # Only words 5 and 6 are drawn.
    constants = rnn_training.Constants(jnp.full(SIZE, -1.0), jnp.array([0.0] * 5 + [1.0] + [2.0] * 5),
                                       *jnp.array([0.1, 5.0]), jnp.int32(1))  # fmt: skip
    sums = tuple(jnp.full(SIZE, 0.1) for _ in range(3))
    optimizer = optim.adagrad(1.0, 0.1)
    before = _numpy(learned)
    state = rnn_training.State(sums, optimizer.init(learned[3]), carry)
    windows = words[None], right[None], np.zeros(1, bool)
    compiled = rnn_training.train_windows.lower(
        learned, state, windows, key, constants, network=network, number=8, optimizer=optimizer).compile()
    assert compiled.memory_analysis().alias_size_in_bytes >= sum(leaf.nbytes for leaf in learned[:3])  # donated
    after, _, _ = rnn_training.train_windows(learned, state, windows, key, constants, network=network, number=8,
                                             optimizer=optimizer)  # fmt: skip
    moved = [np.flatnonzero(np.any((old != new).reshape(SIZE, -1), axis=1)).tolist()
             for old, new in zip(before[:3], _numpy(after)[:3], strict=True)]  # fmt: skip
    assert moved[0] == np.unique(words).tolist()
    assert moved[1] == moved[2] == sorted({*np.unique(right).tolist(), 5, 6})


def test_the_gradient_is_clipped_over_all_parts_together(rng, key):
    network = NETWORKS["tanh"]
    learned, (words, right, carry) = _learned(rng, network), _window(rng, network)
    optimizer, clip = optim.sgd(1.0), 1e-3
    before = _numpy(learned)
    words = np.broadcast_to(np.arange(2, 2 + STEPS)[:, None], (STEPS, 1))  # each word once: no row is moved twice
    carry = jax.tree.map(lambda leaf: leaf[:1], carry)
    for rate in (1.0, 0.5):  # half the rate, half the way
        constants = rnn_training.Constants(*[jnp.zeros(SIZE)] * 2, *jnp.array([rate, clip]), jnp.int32(1))
        given = jax.tree.map(jnp.copy, (learned, rnn_training.State(None, optimizer.init(learned[3]), carry)))
        after, _, _ = rnn_training.train_windows(
            *given, (words[None], right[None, :, :1], np.zeros(1, bool)), key, constants, network=network, number=None,
            optimizer=optimizer)  # fmt: skip
        change = jax.tree.map(np.subtract, before, _numpy(after))
        norm = np.sqrt(sum(np.sum(leaf**2) for leaf in jax.tree.leaves(change)))
        np.testing.assert_allclose(norm, rate * clip, rtol=1e-9)


def test_probabilities_of_words_add_up_to_one_and_rare_ones_have_their_share():
    model = example.train(steps=2).params
    few = np.arange(example.WORDS)
    few = few[few != 1]  # no sentence goes on with a start
    tokens = np.concatenate([[1, 4, word, 2] if word != 2 else [1, 4, 2] for word in few]).astype(np.int32)
    logs = rnn_lm.log_probs(model, tokens)
    second = np.flatnonzero(tokens == 1) + 2
    assert np.exp(logs[second]).sum() == pytest.approx(1, abs=1e-5)
    counts = np.asarray(example.text().counts)[example.SIZE :]
    rare = np.exp(logs[second][few >= example.SIZE])
    np.testing.assert_allclose(rare / rare.sum(), (counts + 1) / (counts + 1).sum(), rtol=0.05)


def test_both_directions_learn_what_each_can_see():
    text = example.text()
    forward, backward = (example.train(steps=6, backward=direction).params for direction in (False, True))
    one = np.array([1, 3, 5, 2])  # 3 is always followed by 5
    assert np.exp(rnn_lm.log_probs(forward, one)[2]) > 0.8 and np.exp(rnn_lm.log_probs(backward, one)[1]) > 0.8
    some = text.tokens[: np.flatnonzero(text.tokens == 2)[60] + 1]
    assert rnn_lm.perplexity(forward, some) < 0.7 * example.UNIGRAM
    logs = rnn_lm.log_probs(forward, some)
    np.testing.assert_array_equal(logs[some == 1], 0)
    np.testing.assert_allclose(logs, rnn_lm.log_probs(forward, some, batch=7), rtol=1e-6, atol=1e-9)


def test_scores_are_sums_over_sentences_and_unseen_words_are_legal():
    model = example.train(steps=6).params
    asked = [questions.question("a _____ .", ["b", "zebra"]), questions.question("_____", ["c", "b"])]
    numbers = {"a": 3, "b": 5, "c": 4, ".": 6}
    filled = questions.encode(questions.collect(asked), numbers)
    scores = rnn_lm.scores(model, filled)
    assert scores.shape == (2, 2) and np.isfinite(scores).all() and scores[0, 0] > scores[0, 1]
    np.testing.assert_allclose(scores[0, 0], rnn_lm.log_probs(model, np.array([1, 3, 5, 6, 2])).sum(), rtol=1e-6)


def test_training_goes_on_bit_for_bit(tmp_path):
    """In one process; `test_language_killed` kills another."""
    whole = example.train(steps=6)
    for steps in (2, 6):
        resumed = example.train(steps=steps, checkpoint=tmp_path)
    jax.tree.map(np.testing.assert_array_equal, resumed.params, whole.params)
    assert [one["loss"] for one in resumed.history[1:]] == [one["loss"] for one in whole.history[1:]]
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        example.train(steps=7, checkpoint=tmp_path, learning_rate=0.2)


def test_training_with_another_dropout_does_not_go_on(tmp_path):
    example.train(steps=1, checkpoint=tmp_path, **SMALL)
    wet = SMALL | {"network": SMALL["network"]._replace(dropout=0.3)}
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        example.train(steps=2, checkpoint=tmp_path, **wet)


SMALL = rnn_lm.PUBLISHED | {"network": rnn_lm.PUBLISHED["network"]._replace(embed=5, hidden=6, project=4),
                            "streams": 4, "window": 8}  # fmt: skip


@pytest.mark.parametrize("parts", [1, 2])
def test_the_published_recipe_halves_its_rate_in_every_pass_after_the_fifth(monkeypatch, parts):
    seen, train_windows = [], rnn_lm.train_windows

    def noted(learned, state, windows, key, constants, **settings):
        assert settings["number"] is None and settings["optimizer"] == optim.sgd(1.0)
        seen.append((float(constants.rate), len(windows[2])))
        return train_windows(learned, state, windows, key, constants, **settings)

    monkeypatch.setattr(rnn_lm, "train_windows", noted)
    monkeypatch.setattr(optim, "sgd", functools.cache(optim.sgd))
    stream = (example.text().tokens != 2).sum()
    windows = (int(stream) // 4 - 1) // 8
    options = {} if parts == 1 else {"words_a_step": windows // 2 * 4 * 8}
    fit = example.train(steps=8 * parts, **SMALL, **options)
    passes = [0.5] * 5 + [0.25, 0.125, 0.0625]
    if parts == 1:
        assert [rate for rate, _ in seen] == passes
    else:  # steps that are no whole passes: the rate is that of the pass in which a step begins
        begun = np.cumsum([0, *(number for _, number in seen)])[:-1] // windows
        assert [rate for rate, _ in seen] == [passes[number] for number in begun] and 0.125 in dict(seen)
    losses = [entry["loss"] for entry in fit.history[1:]]
    assert losses[-1] < losses[0]


def test_dropout_changes_the_training_of_the_published_network_and_no_evaluation():
    text = example.text()
    some = text.tokens[: np.flatnonzero(text.tokens == 2)[40] + 1]
    dry = SMALL | {"network": SMALL["network"]._replace(dropout=0.0)}
    assert SMALL["network"].dropout == 0.1
    wet, plain = (example.train(steps=1, dev=some, **settings) for settings in (SMALL, dry))
    assert wet.loss != plain.loss and not np.array_equal(wet.params.outputs, plain.params.outputs)
    # The same parameters without dropout: the same probabilities, and so the same score of the held-out sentences.
    model = dataclasses.replace(wet.params, network=dry["network"])
    logs = rnn_lm.log_probs(wet.params, some)
    np.testing.assert_array_equal(logs, rnn_lm.log_probs(model, some))
    np.testing.assert_array_equal(logs, rnn_lm.log_probs(wet.params, some))
    assert wet.history[-1]["validation"] == -rnn_lm.perplexity(model, some)


@pytest.mark.parametrize(("options", "message"), [
    ({"size": 3}, "size: expected a whole number of at least 4"),
    ({"network": rnn_lm.Network(hidden=0)}, "hidden: expected"),
    ({"network": "gru"}, "network: expected Network, got str"),
    ({"streams": 5000}, "sentences: expected at least"),
    ({"negatives": 0}, "negatives: expected"),
    ({"learning_rate": -1.0}, "learning_rate: expected a positive number"),
    ({"dev": np.array([3, 5])}, "dev: expected sentences, each with <s> before and </s> behind"),
])  # fmt: skip
def test_bad_settings_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        example.train(steps=1, **options)


@pytest.mark.parametrize("steps", [1, 2, 8])
def test_every_pass_has_its_rate_however_many_words_a_step_has(steps):
    options = {"halve_after": 1, "adagrad": None, "learning_rate": 0.1, "negatives": None, "streams": 4, "window": 8,
               "network": rnn_lm.Network(rnn_lm.TANH, 4, 4)}  # fmt: skip
    passes = example.train(steps=4, **options)
    found = example.train(steps=steps, words_a_step=passes.evaluations // steps * 32, **options)
    assert found.evaluations == passes.evaluations
    for mine, theirs in zip(jax.tree.leaves(found.params), jax.tree.leaves(passes.params), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    fixed = example.train(steps=4, **{**options, "halve_after": None})
    assert not np.allclose(fixed.params.outputs, passes.params.outputs, rtol=1e-3)


def test_tokens_without_marks_and_losses_that_are_no_numbers_are_refused():
    model = example.train(steps=1).params
    with pytest.raises(ValueError, match="tokens: expected sentences, each with <s> before"):
        rnn_lm.log_probs(model, np.array([1, 3, 5]))
    with pytest.raises(FloatingPointError, match="RNN: expected a finite loss, got .* at step"):
        example.train(steps=3, adagrad=None, learning_rate=1e308, clip=1e308)
    empty = Sentences(np.zeros(0, np.int32), ("<unk>", "<s>", "</s>"), np.zeros(3, np.int64), "0", {})
    with pytest.raises(ValueError, match="sentences: expected at least one word"):
        rnn_lm.fit(empty, size=5, key=jax.random.key(0))


def test_a_checkpoint_of_another_cell_of_the_same_shapes_is_refused(tmp_path):
    def network(name, function):
        return first._replace(cell=rnn_lm.Cell(name, 1, 1, lambda inputs, states, product, _: (
            function(inputs + product),)))  # fmt: skip

    first = rnn_lm.Network(rnn_lm.TANH, embed=4, hidden=4)
    mine, other = network("mine", jax.nn.relu), network("mine", jnp.sin)
    for folder, own in ((tmp_path / "tanh", first), (tmp_path / "mine", mine)):
        for steps in (1, 2):
            assert example.train(steps=steps, checkpoint=folder, **SMALL | {"network": own}).steps == steps
    for folder, another in ((tmp_path / "tanh", mine), (tmp_path / "mine", first), (tmp_path / "mine", other)):
        with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
            example.train(steps=3, checkpoint=folder, **SMALL | {"network": another})
