"""Mutual information with weights from gaps of the text: its inputs beside a slow version, its gaps, what it learns."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest

from jaxsim.data import questions, sentences
from jaxsim.methods.language import pmi_weighted
from jaxsim.text import stemmed

TOPICS = [["tea", "cups", "sugar", "drinking"], ["horse", "saddles", "fields", "riding"],
          ["ship", "seas", "sails", "waves"]]  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    draw = random.Random(0)
    frame = "The {} and the {} were there with a {} of old ."
    lines = [frame.format(*draw.sample(draw.choice(TOPICS), 3)) for _ in range(300)]
    return sentences.build([("a", " ".join(lines))], tmp_path_factory.mktemp("text") / "tokens")


@pytest.fixture(scope="module")
def asked(text):
    rows = [questions.question(f"The {topic[0]} and the _____ were there with a {topic[2]}.",
                               [topic[1], *(other[1] for other in TOPICS if other is not topic)], answer=0)
            for topic in TOPICS]  # fmt: skip
    rows.append(questions.question("A _____ of tea.", ["cup of tea", "zzz", "sails"], answer=0))
    found = questions.collect(rows)
    return found, questions.encode(found, text.numbers)


@pytest.fixture(scope="module")
def model(text, asked):
    import jax

    return pmi_weighted.fit(text, asked[1], key=jax.random.key(1), rare=1.0, gaps=200)


def test_scores_are_weighted_sums_of_counted_pairs(text, asked, model):
    params = model.params
    stream = [text.vocabulary[number] for number in text.tokens if number > 2]
    cut = int(0.9 * len(text.tokens))  # pairs on both sides of it are not counted
    while text.tokens[cut] != sentences.START:
        cut += 1
    cut = int(np.sum(text.tokens[:cut] > 2))
    streams = [stream, stemmed(stream, "en")]
    total = len(stream)
    share = {word: stream.count(word) / total for word in set(stream)}
    for question, choice in ((0, 1), (2, 0), (3, 0), (3, 1)):
        row, chosen = asked[1].tokens[question, choice], asked[1].chosen[question, choice]
        words = [text.vocabulary[max(number, 0)] for number in row]
        inputs = np.zeros((2, 3, 3, 9))
        for a in np.flatnonzero(chosen & (row > 2)):
            for b in np.flatnonzero(~chosen & (row > 2)):
                distance = 0 if abs(a - b) < 4 else 1 if abs(a - b) < 11 else 2
                frequency = 2 if share[words[b]] >= 2e-3 else 1 if share[words[b]] >= 1e-4 else 0
                for kind in (0, 1):
                    one, other = [words[a], words[b]] if kind == 0 else stemmed([words[a], words[b]], "en")
                    at = [place for place, word in enumerate(streams[kind]) if word == one]
                    for which, reach in enumerate((3, 10, 25)):
                        near = sum(streams[kind][beside] == other for place in at for far in range(1, reach + 1)
                                   for beside in (place - far, place + far)
                                   if 0 <= beside < total and (beside < cut) == (place < cut))
                        expected = len(at) * streams[kind].count(other) * 2 * reach / total
                        for number, eps in enumerate((0.03, 0.3, 3.0)):
                            inputs[kind, which, number, distance * 3 + frequency] += math.log(
                                (near + eps) / (expected + eps))
        slow = inputs.ravel() @ params.weights
        found = pmi_weighted.scores(params, asked[1])[question, choice]
        assert found == pytest.approx(slow, rel=1e-4, abs=1e-4)
        assert (found != 0) == (row[chosen] > 2).any()


def test_tables_of_other_questions_are_those_of_a_fit_but_for_pairs_across_its_cut(text, asked, model):
    counted = pmi_weighted.count(text, asked[1], model.params.weights)
    assert np.array_equal(counted.classes, model.params.classes) and len(counted.tables) == 6
    for one, other in zip(counted.tables, model.params.tables, strict=True):
        across = one.together - other.together
        assert 0 <= across.min() and across.sum() <= 2 * sum(range(26))
        np.testing.assert_array_equal(one.rates, other.rates)
        np.testing.assert_array_equal(one.single, other.single)
    assert (pmi_weighted.scores(counted, asked[1])[:3].argmax(axis=1) == 0).all()
    # A question alone has what it has among others: its tables hold its own words only.
    alone = asked[1]._replace(**{name: getattr(asked[1], name)[:1] for name in asked[1]._fields})
    one = pmi_weighted.count(text, alone, model.params.weights)
    assert one.tables[0].together.size < counted.tables[0].together.size
    np.testing.assert_allclose(pmi_weighted.scores(one, alone), pmi_weighted.scores(counted, asked[1])[:1], rtol=1e-9)
    with pytest.raises(ValueError, match="weights: expected 162 numbers, got shape"):
        pmi_weighted.count(text, alone, model.params.weights[1:])


def test_it_learns_from_the_text_alone_what_belongs_together(asked, model):
    found = pmi_weighted.scores(model.params, asked[1])
    assert (found[:3].argmax(axis=1) == 0).all() and model.loss < 0.7 * math.log(5)


def test_a_score_sees_the_model_that_is_returned(text, asked, key):
    found, filled = asked
    fit = pmi_weighted.fit(text, filled, key=key, rare=1.0, gaps=50, max_iter=2, patience=9,
                           validate=lambda model: float(pmi_weighted.scores(model, filled)[0, 0]))
    best = max(fit.history, key=lambda entry: entry["validation"])
    assert best["validation"] == pytest.approx(float(pmi_weighted.scores(fit.params, filled)[0, 0]))
    assert best["step"] > 0 or fit.history[0]["validation"] == 0


def test_wrong_choices_are_rare_options_that_fit_and_never_the_right_one(text, asked, monkeypatch, key):
    drawn = {}
    wrong = pmi_weighted._wrong

    def kept(right, gap, around, local, options, rng):
        drawn["right"], drawn["wrong"] = right, wrong(right, gap, around, local, options, rng)
        return drawn["wrong"]

    monkeypatch.setattr(pmi_weighted, "_wrong", kept)
    pmi_weighted.fit(text, asked[1], key=key, rare=0.05, gaps=50, max_iter=2)
    options = set(asked[1].tokens[asked[1].chosen & (asked[1].tokens > 2)].tolist())
    limit = 0.05 * np.sum(text.tokens > 2)
    assert (drawn["wrong"] != drawn["right"][:, None]).all()
    assert all(len(set(row)) == 4 for row in drawn["wrong"].tolist())
    assert {*drawn["wrong"].ravel(), *drawn["right"]} <= {one for one in options if text.counts[one] <= limit}


def test_the_objective_is_the_cross_entropy_of_the_first_choice(rng):
    inputs, weights = rng.normal(size=(6, 5, 3)), rng.normal(size=3)
    values = inputs @ weights
    slow = -np.log(np.exp(values[:, 0]) / np.exp(values).sum(axis=1)).mean() + 0.3 * weights @ weights
    assert pmi_weighted.objective(weights, {"inputs": inputs, "l2": 0.3}) == pytest.approx(slow)


@pytest.mark.parametrize(("options", "message"), [
    ({"gaps": 0}, "gaps: expected"), ({"share": 1.0}, "share: expected"), ({"l2": -1.0}, "l2: expected"),
    ({"rare": 1e-9}, "rare: expected a share that more than 4 options are below"), ({"rare": 2.0}, "rare: expected"),
])
def test_bad_settings_are_refused(text, asked, key, options, message):
    with pytest.raises(ValueError, match=message):
        pmi_weighted.fit(text, asked[1], key=key, **{"rare": 1.0, **options})


def test_a_text_in_whose_last_tenth_no_sentence_begins_has_no_gaps(tmp_path, key):
    line = "He drank his hot tea from an old cup on the ship that sailed over a deep sea ."
    text = sentences.build([("", line)], tmp_path / "tokens")
    asked = questions.collect([questions.question("A _____ .", ["tea", "cup", "ship", "sea", "hot", "old"])])
    with pytest.raises(ValueError, match="sentences: expected a sentence of 8 to 35 words with a rare option"):
        pmi_weighted.fit(text, questions.encode(asked, text.numbers), key=key, rare=1.0)
