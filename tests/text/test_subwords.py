"""Words and their character n-grams: the map against a slow reference, models that have them, and refusals."""

from __future__ import annotations

import dataclasses
import functools
import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from command_line import refused, run

from jaxsim import text
from jaxsim.data import docstrings, pairs
from jaxsim.methods.projections import Projection
from jaxsim.model import Model
from jaxsim.model.export import export, rows
from jaxsim.text import subwords
from jaxsim.text.subwords import Subwords, ngrams
from jaxsim.train import settings, train
from jaxsim.train.fits import FITS
from jaxsim.train.settings import WITH_SUBWORDS

# Few words, since eigenvalues of thousands of them would take most of the time.
Settings = functools.partial(settings.Settings, max_terms=400)

WORDS = ["stone stones kidney", "kidneys stone", "heart beats beat", "beaten heart", "the étude", "études the", "日本"]
VOCABULARY = text.Vocabulary.build([text.words(one) for one in WORDS], drop_top=0)


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(400))


@pytest.fixture(scope="module")
def spelt(corpus):
    return train(corpus, Settings(method="opca", dim=20, subwords=0.5), dev=0.2)


def learned_of(words: list[str], made: Subwords, vocabulary: text.Vocabulary) -> np.ndarray:
    """A text as a projection is learned of it, log2(tf + 1) log2(n / df) of words and n-grams, in plain loops."""
    num_docs, result = vocabulary.num_docs, np.zeros(len(vocabulary) + len(made))
    for word in set(words):
        df = int(vocabulary.df[vocabulary.index[word]]) if word in vocabulary.index else 1
        weight = math.log2(words.count(word) + 1) * math.log2(num_docs / df)
        held = [made.grams.index(gram) for gram in ngrams(word) if gram in made.grams]
        length = math.sqrt(sum(float(made.idf[at]) ** 4 for at in held))
        for at in held:
            result[len(vocabulary) + at] += weight * math.sqrt(made.share) * float(made.idf[at]) ** 2 / length
        if word in vocabulary.index:
            result[vocabulary.index[word]] += weight * math.sqrt(1 - made.share)
    return result


@pytest.mark.parametrize("word", ["a", "ab", "naïve", "étude", "日本", "\ud800x", "x" * 300, "e\u0301e\u0301"])
def test_ngrams_are_all_substrings_of_three_to_five_letters_with_ends(word):
    padded = f" {word[:100]} "
    expected = {padded[i:j] for i in range(len(padded)) for j in range(i + 3, i + 6) if j <= len(padded)}
    assert set(ngrams(word)) == expected and len(ngrams(word)) == len(expected)


def test_a_word_of_ten_million_letters_costs_no_more_than_a_hundred():
    assert ngrams("xyz" * 4_000_000) == ngrams(("xyz" * 40)[:100])


def test_ngrams_of_a_vocabulary_are_shared_by_two_words_and_not_by_all_texts():
    made = Subwords.build(VOCABULARY, share=0.5)
    for gram, idf in zip(made.grams, made.idf, strict=True):
        holders = [word for word in VOCABULARY.terms if gram in ngrams(word)]
        df = sum(int(VOCABULARY.df[VOCABULARY.index[word]]) for word in holders)
        assert len(holders) > 1 and idf == pytest.approx(math.log(len(WORDS) / df)) and idf > 0
    assert {" ston", "tude", "kidn"} <= set(made.grams) and not {" the", "the ", "日本"} & set(made.grams)
    shuffled = text.Vocabulary(VOCABULARY.terms[::-1], VOCABULARY.df[::-1], VOCABULARY.num_docs)
    assert Subwords.build(shuffled, share=0.5).grams == made.grams


def test_the_most_shared_ngrams_are_kept(monkeypatch):
    every = Subwords.build(VOCABULARY, share=0.5).grams
    monkeypatch.setattr(subwords, "MOST", 5)
    assert Subwords.build(VOCABULARY, share=0.5).grams == every[:5]


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_folded_weights_project_as_the_words_and_ngrams_they_were_learned_of(share):
    made = Subwords.build(VOCABULARY, share=share)
    weights = np.asarray(jax.random.normal(jax.random.key(0), (len(VOCABULARY) + len(made), 4)), np.float64)
    folded = made.spread(VOCABULARY) @ weights
    model = Model(VOCABULARY, Projection(jnp.asarray(folded, jnp.float32)), subwords=made)
    texts = ["stone stone kidneys", "stoned kidney beat", "unseen étud études", "the the", "", "?!", "日本 beats"]
    expected = np.stack([learned_of(text.words(one), made, VOCABULARY) for one in texts]) @ weights
    np.testing.assert_allclose(model.encode(texts), expected, rtol=1e-5, atol=1e-5)
    assert not model.encode(["", "?!", "qqq"]).any()


def test_training_sees_texts_as_the_reference_does(corpus, spelt, monkeypatch):
    seen = {}
    monkeypatch.setitem(FITS, "opca", lambda problem: seen.update(parts=problem) or FITS_OPCA(problem))
    model = train(corpus, Settings(method="opca", dim=20, subwords=0.5), dev=0.2)
    np.testing.assert_array_equal(model.params.weights, spelt.params.weights)
    from jaxsim import sparse

    train_rows, dev_rows = (sparse.to_scipy(sides[0]) for sides in (seen["parts"].train, seen["parts"].dev))
    matched = 0
    for one in corpus.left:
        expected = learned_of(text.words(one), model.subwords, model.vocabulary)
        expected /= np.linalg.norm(expected) or 1
        # A text stands in the training or in the dev part; either has it as one of its rows.
        closest = max(float((side @ expected).max()) for side in (train_rows, dev_rows))
        matched += closest == pytest.approx(1, abs=1e-5)
    assert matched > 0.95 * len(corpus)


FITS_OPCA = FITS["opca"]


def test_a_model_saves_and_loads_with_the_same_vectors_of_unseen_words(spelt, tmp_path):
    texts = ["arrayish reshapening", "the sum of an array", "zzz", ""]
    loaded = Model.load(spelt.save(tmp_path / "model"))
    np.testing.assert_array_equal(loaded.encode(texts), spelt.encode(texts))
    assert loaded.subwords.grams == spelt.subwords.grams and loaded.subwords.share == 0.5
    assert json.loads((tmp_path / "model" / "config.json").read_text())["format"] == 3
    assert "n-grams of letters" in (tmp_path / "model" / "README.md").read_text()
    plain = dataclasses.replace(spelt, subwords=None, params=Projection(spelt.params.weights[: len(spelt.vocabulary)]))
    assert json.loads((plain.save(tmp_path / "plain") / "config.json").read_text())["format"] == 1
    np.testing.assert_array_equal(plain.encode(texts[1]), spelt.encode(texts[1]))
    assert spelt.encode(texts[0]).any() and not plain.encode(texts[0]).any()
    assert spelt.similarity("reshapening", "reshape") > 0.3


@pytest.mark.programs
def test_inflected_queries_find_mates_that_share_a_stem_alone():
    stems = ["kidney", "marble", "walnut", "copper", "lantern", "harvest", "blossom", "granite", "saddle", "thunder",
             "velvet", "whisper", "pepper", "candle", "meadow", "ribbon", "temper", "basket", "feather", "hammer"]
    both = pairs.make("inflected", [str(i) for i in range(60)], [f"{stems[i % 20]}s {i}" for i in range(60)],
                      [f"a {stems[i % 20]} number{i}" for i in range(60)], languages=("en", "en"))
    result = {}
    for share in (0.0, 0.5):
        model = train(both, Settings(method="opca", dim=30, subwords=share), dev=0)
        scores = model.similarity([f"{stem}ing" for stem in stems], [f"a {stem}" for stem in stems])
        result[share] = np.mean(np.argmax(scores + np.arange(20) * 1e-9, axis=1) == np.arange(20))
    assert result[0.0] <= 0.05 and result[0.5] > 0.9


@pytest.mark.parametrize("method", [method for method in WITH_SUBWORDS if method not in ("s2net-mse", "s2net-pref")])
@pytest.mark.parametrize("weighting", ["log_tf_idf", pytest.param("tf", marks=pytest.mark.programs)])
def test_every_method_of_projections_learns_of_ngrams(corpus, method, weighting):
    settings = Settings(method=method, dim=10, max_iter=2, subwords=0.3, weighting=weighting)
    model = train(corpus.take(range(150)), settings, dev=0.2)
    sides = (model.params,) if isinstance(model.params, Projection) else model.params
    assert {len(side.weights) for side in sides} == {len(model.vocabulary) + len(model.subwords)}
    assert model.training["settings"]["subwords"] == 0.3 and model.training["dev"]["mrr"] > 0.1
    assert np.isfinite(model.encode_query(["unseenish wording", "array"])).all()


def test_graded_pairs_and_batches_learn_of_ngrams_too(corpus):
    few = corpus.take(range(60))
    grades = np.arange(60) % 5
    graded = train(few, Settings(method="s2net-mse", dim=10, max_iter=2, subwords=0.5), dev=0.2, grades=grades)
    batches = train(few, Settings(dim=10, max_iter=1, batch_size=32, subwords=0.5), dev=0.2)
    for model in (graded, batches):
        assert len(model.params.weights) == len(model.vocabulary) + len(model.subwords)


def test_s2net_starts_at_opca_of_the_same_ngrams_and_stops_by_what_the_model_scores(corpus, spelt):
    model = train(corpus, Settings(dim=20, max_iter=5, subwords=0.5, batch_size=0), dev=0.2)
    history = model.training["history"]["validation"]
    assert history[0] == pytest.approx(spelt.training["dev"]["mrr"], abs=1e-4)
    assert max(history) == pytest.approx(model.training["dev"]["mrr"], abs=1e-4)


def test_texts_that_share_no_ngram_are_learned_without_any():
    both = pairs.make("few", list("abcd"), ["aa", "bb", "cc", "dd"], ["aa ee", "bb ff", "cc gg", "dd hh"],
                      languages=("en", "en"))
    messages = []
    model = train(both, Settings(method="opca", dim=2, subwords=np.float32(0.5)), dev=0, say=messages.append)
    assert ("no two words share 3 to 5 letters in a row that tell texts apart: words are learned without n-grams, as "
            "with --subwords 0, and words that are new to the model are ignored" in messages)  # fmt: skip
    assert model.training["settings"]["subwords"] == 0.5 and model.training["ngrams"] == 0
    assert len(model.subwords) == 0 and model.encode("aa").any() and not model.encode("zz").any()


def test_an_export_has_words_alone_and_says_so(spelt, tmp_path):
    table, = rows(spelt)
    assert table.shape == (len(spelt.vocabulary), 20)
    word = spelt.vocabulary.terms[7]
    np.testing.assert_allclose(table[7], spelt.encode(word), rtol=1e-5, atol=1e-7)
    facts = export(spelt, "word2vec", tmp_path / "vectors")
    assert not facts["exact"] and "n-grams, are ignored here" in facts["note"]
    assert facts["note"] in (tmp_path / "vectors" / "README.md").read_text()


@pytest.mark.parametrize(("settings", "message"), [
    ({"subwords": 1.0}, r"subwords: expected a share in \[0, 1\), got 1.0"),
    ({"subwords": -0.1}, r"subwords: expected a share in \[0, 1\), got -0.1"),
    ({"subwords": math.nan}, r"subwords: expected a share in \[0, 1\), got nan"),
    ({"subwords": "half"}, r"subwords: expected a share in \[0, 1\), got half"),
    ({"subwords": 0.5, "method": "ssi"}, "subwords: expected 0, for ssi .*opca.*, got 0.5"),
    ({"subwords": 0.5, "method": "cl-lsi"}, "subwords: expected 0, for cl-lsi .*, got 0.5"),
    ({"subwords": 0.5, "drop_top": 3}, "drop_top: expected 0, if subwords are above 0 .*, got 3"),
])
def test_settings_that_do_not_fit_are_refused(corpus, settings, message):
    with pytest.raises(ValueError, match=message):
        train(corpus, Settings(**{"method": "opca", **settings}))


def test_models_whose_parts_do_not_fit_are_refused(spelt):
    with pytest.raises(ValueError, match="weights of .* terms"):
        dataclasses.replace(spelt, subwords=None)
    with pytest.raises(ValueError, match="subwords: expected none, without a projection"):
        dataclasses.replace(spelt, params=None)
    with pytest.raises(ValueError, match="subwords: expected Subwords, got"):
        dataclasses.replace(spelt, subwords=("abc",))
    with pytest.raises(ValueError, match="idf: expected one number for each of 1 n-grams"):
        Subwords(("abc",), np.ones(2), 0.5)


def test_the_command_line_trains_with_ngrams_and_refuses_them_elsewhere(folder, capsys):
    shown = run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--method", "opca", "--dim", 5,
                "--subwords", 0.5)
    assert f", {len(Model.load('model').subwords)} n-grams, 5 dimensions" in shown
    message = refused(capsys, "train", "--pairs", "pairs.tsv", "--out", "other", "--method", "ssi", "--subwords", 0.5)
    assert "--subwords: expected a method that uses it" in message
    message = refused(capsys, "train", "--pairs", "pairs.tsv", "--out", "other", "--subwords", 1)
    assert "--subwords" in message
    message = refused(capsys, "train", "--pairs", "pairs.tsv", "--out", "other", "--subwords", 0.5, "--drop-top", 2)
    assert "--drop-top: expected 0, if subwords are above 0" in message
