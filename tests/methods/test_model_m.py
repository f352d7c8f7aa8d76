"""Model M: its sums of changes against denominators that are written out, and what its optimum must satisfy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.data.corpora import questions
from jaxsim.data.corpora.sentences import Sentences
from jaxsim.methods.language import model_m

SIZE = 9
OF_WORD = np.array([2, 0, 1, 2, 2, 3, 3, 3, 4])


@pytest.fixture(scope="module")
def text():
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(120):
        words = [int(rng.integers(3, SIZE))]
        while rng.random() < 0.75:
            words.append(int(rng.choice([3 + words[-1] % 6, rng.integers(0, SIZE)])))
        rows += [1, *[word for word in words if word not in (1, 2)], 2]
    tokens = np.array(rows, np.int32)
    return Sentences(tokens, tuple(map(str, range(SIZE))), np.bincount(tokens, minlength=SIZE), "0", {})


@pytest.fixture(scope="module")
def parts(text):
    """Counts of trigrams, and what both objectives see, features with two words before them from 2 on."""
    grams, counts = np.unique(model_m.events(text.tokens, SIZE), axis=0, return_counts=True)
    v, u, w = grams.T
    penalty = model_m.Penalty(*map(jnp.asarray, (0.5, 1 / 6, 1e-2, float(counts.sum()))))
    of_class = model_m._class_data(v, u, OF_WORD[w], counts, OF_WORD, 5, 2, penalty)
    of_member = model_m._word_data(v, u, w, OF_WORD[w], counts, OF_WORD, 5, 2, penalty)
    return grams, counts, of_class, of_member


def _random(start, rng):
    return jax.tree.map(lambda leaf: jnp.asarray(rng.normal(size=leaf.shape)) / 2, start)


def _penalty(params):
    flat = np.concatenate([np.asarray(leaf).ravel() for leaf in jax.tree.leaves(params)])
    return 0.5 * np.sum(np.sqrt(flat**2 + 1e-4) - 1e-2) + np.sum(flat**2) / 12


def _class_scores(params, data, pair_keys, v, u):
    """Scores of all classes after v u, from features by name."""
    tables = {name: np.asarray(table) for name, table in model_m._tables(params, data).items()}
    last, before = OF_WORD[u], OF_WORD[v]
    scores = tables["one"] + tables["two"][last] + tables["three"][before * 5 + last] + tables["word"][u]
    scores[OF_WORD[1]] = -np.inf  # the class of <s>, which is no word
    pairs = dict(zip(pair_keys.tolist(), np.asarray(params["pair"]).tolist(), strict=True))
    return scores + [pairs.get((v * SIZE + u) * 5 + c, 0.0) for c in range(5)]


def _word_scores(params, two_keys, three_keys, v, u, c):
    """Scores of the words of class c after v u."""
    two = dict(zip(two_keys.tolist(), np.asarray(params["two"]).tolist(), strict=True))
    three = dict(zip(three_keys.tolist(), np.asarray(params["three"]).tolist(), strict=True))
    words = np.flatnonzero(OF_WORD == c)
    return words, np.array([float(params["one"][w]) + two.get(u * SIZE + w, 0.0)
                            + three.get((v * SIZE + u) * SIZE + w, 0.0) for w in words])


def test_the_objective_of_classes_is_that_with_its_denominators_written_out(parts, rng):
    grams, counts, (data, pair_keys, start), _ = parts
    params, total = _random(start, rng), 0.0
    for (v, u, w), count in zip(grams, counts, strict=True):
        scores = _class_scores(params, data, pair_keys, v, u)
        total += count * (scores[OF_WORD[w]] - np.logaddexp.reduce(scores))
    expected = (_penalty(params) - total) / counts.sum()
    np.testing.assert_allclose(model_m.class_objective(params, data), expected, rtol=1e-10)


def test_the_objective_of_words_is_that_with_its_denominators_written_out(parts, rng):
    grams, counts, _, (data, two_keys, three_keys, start) = parts
    params, total = _random(start, rng), 0.0
    for (v, u, w), count in zip(grams, counts, strict=True):
        words, scores = _word_scores(params, two_keys, three_keys, v, u, OF_WORD[w])
        total += count * (scores[words == w][0] - np.logaddexp.reduce(scores))
    expected = (_penalty(params) - total) / counts.sum()
    np.testing.assert_allclose(model_m.word_objective(params, data), expected, rtol=1e-10)


@pytest.mark.parametrize("which", ["class", "word"])
def test_features_that_make_every_word_of_a_group_rarer_cancel_in_float32_too(parts, which):
    _, _, (of_class, _, class_start), (of_member, _, _, word_start) = parts
    objective, params, data, names = {
        "class": (model_m.class_objective, class_start, of_class, ["pair"]),
        "word": (model_m.word_objective, word_start, of_member, ["two", "three"])}[which]  # fmt: skip
    assert all(bool(data._asdict()[f"{name}_whole"].any()) for name in names)
    lowered = {name: values - (20.0 if name in names else 0.0) for name, values in params.items()}
    exact = objective(lowered, data)
    assert np.isfinite(exact)

    def narrow(leaf):
        return leaf.astype(jnp.float32) if jnp.issubdtype(leaf.dtype, jnp.floating) else leaf

    np.testing.assert_allclose(objective(*jax.tree.map(narrow, (lowered, data))), exact, rtol=1e-4)


@pytest.mark.parametrize("which", ["class", "word"])
def test_gradients_are_finite_differences(parts, which, rng):
    _, _, (of_class, _, class_start), (of_member, _, _, word_start) = parts
    objective, start, data = {"class": (model_m.class_objective, class_start, of_class),
                              "word": (model_m.word_objective, word_start, of_member)}[which]  # fmt: skip
    params, direction = _random(start, rng), _random(start, rng)
    slope = jax.grad(objective)(params, data)
    along = sum(jnp.vdot(a, b) for a, b in zip(jax.tree.leaves(slope), jax.tree.leaves(direction), strict=True))
    ends = [objective(jax.tree.map(lambda x, d, h=h: x + h * d, params, direction), data) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(along, (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


@pytest.fixture(scope="module")
def fitted(text):
    return model_m.fit(text, OF_WORD, progress=False, max_iter=500, tol=1e-7)


def test_probabilities_add_up_to_one_after_every_history(fitted):
    few = [0, 2, 3, 4, 5, 6, 7, 8]
    assert fitted.converged
    _add_up(fitted.params, few)


def _add_up(model, words):
    for v, u in ((1, 1), (1, 3), (3, 4), (8, 0)):  # seen or not
        logs = [model_m._log_probs(model, *np.array([[v], [u], [w]]))[0] for w in words]
        assert np.exp(logs).sum() == pytest.approx(1, rel=1e-9)


@pytest.mark.parametrize("of_word", [[0, 0, 1, 2, 2, 3, 3, 3, 4], [2, 0, 1, 2, 2, 4, 4, 4, 5]])
def test_they_do_where_other_words_have_the_class_of_the_first_mark_and_where_no_word_has_a_class(text, of_word):
    _add_up(model_m.fit(text, np.array(of_word), progress=False, max_iter=20).params, [0, *range(2, SIZE)])


def test_at_the_optimum_expected_counts_are_those_seen_but_for_the_penalty(fitted, parts):
    grams, counts, _, (data, *_, start) = parts
    model = fitted.params
    expected = np.zeros(SIZE)
    for (v, u, w), count in zip(grams, counts, strict=True):
        words, scores = _word_scores(model.of_member, model.two_keys, model.three_keys, v, u, OF_WORD[w])
        expected[words] += count * np.exp(scores - np.logaddexp.reduce(scores))
    one = model.of_member["one"]
    short = np.asarray(data.seen["one"]) - expected
    np.testing.assert_allclose(short, 0.5 * one / np.sqrt(one**2 + 1e-4) + one / 6, atol=0.05)


def test_the_sum_of_losses_is_the_perplexity_of_the_text_but_for_the_penalty(fitted, text):
    logs = model_m.log_probs(fitted.params, text.tokens)
    words = (text.tokens != 1).sum()
    assert (logs[text.tokens == 1] == 0).all()
    model = fitted.params
    parts = [{name: model.of_class[name] for name in ("one", "two", "three", "word", "pair")}, model.of_member]
    assert fitted.loss == pytest.approx((_penalty(parts) - logs.sum()) / words, rel=1e-6)
    unigram = np.bincount(text.tokens[text.tokens != 1]) / words
    assert -logs.sum() / words < -np.sum(unigram * np.log(np.maximum(unigram, 1e-9)))


def test_scores_are_sums_and_words_that_are_not_kept_are_legal(fitted):
    asked = questions.collect([questions.question("a _____", ["b", "zebra"])])
    filled = questions.encode(asked, {"a": 3, "b": 4, "zebra": 90})
    scores = model_m.scores(fitted.params, filled)
    expected = [model_m.log_probs(fitted.params, np.array(row)).sum() for row in ([1, 3, 4, 2], [1, 3, 0, 2])]
    np.testing.assert_allclose(scores, [expected], rtol=1e-9)


def test_a_killed_training_goes_on(text, tmp_path):
    whole = model_m.fit(text, OF_WORD, progress=False, max_iter=6)
    for steps in (3, 6):
        resumed = model_m.fit(text, OF_WORD, progress=False, max_iter=steps, checkpoint=tmp_path, checkpoint_every=1)
    jax.tree.map(np.testing.assert_array_equal, resumed.params, whole.params)


@pytest.mark.parametrize(("options", "message"), [
    ({"variance": 0}, "variance: expected a positive number"), ({"l1": -1}, "l1: expected"),
    ({"min_count": 0}, "min_count: expected"), ({"patience": 3}, "patience: expected None"),
])  # fmt: skip
def test_bad_settings_are_refused(text, options, message):
    with pytest.raises(ValueError, match=message):
        model_m.fit(text, OF_WORD, **options)
    with pytest.raises(ValueError, match="of_word: expected a class from 0 on"):
        model_m.fit(text, OF_WORD[:2])


@pytest.mark.parametrize("options", [{"variance": 1e-310}, {"l1": 1e308}])
def test_losses_that_are_no_numbers_are_refused_with_the_part_and_the_step(text, tmp_path, options):
    with pytest.raises(FloatingPointError, match="Model M, classes: expected a finite loss, got inf at step 0; "):
        model_m.fit(text, OF_WORD, progress=False, checkpoint=tmp_path, **options)
    assert not list(tmp_path.rglob("*.safetensors"))  # nothing to go on from


def test_a_loss_of_the_second_part_that_is_no_number_names_it(text, monkeypatch):
    monkeypatch.setattr(model_m, "word_objective", lambda params, data: params["one"][0] * jnp.nan)
    with pytest.raises(FloatingPointError, match="Model M, words: expected a finite loss, got nan at step 0; "):
        model_m.fit(text, OF_WORD, progress=False, max_iter=1)
