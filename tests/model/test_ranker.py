"""Search by vectors and words together: the score as it is written, weights of dimensions, documents left out."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import text
from jaxsim.methods.projections import Projection
from jaxsim.methods.projections.agreement import agreement, cross_fitted
from jaxsim.model import Model, explain, index, ranker
from jaxsim.model.bm25 import weigh

TEXTS = ["cats and dogs", "", "the fish swims", "dog dogs doggy", "fish cat", "of the"]
QUERIES = ["a cat", "unheard", "the swimming dogs", ""]
WORDS = text.Vocabulary(("cat", "cats", "dog", "dogs", "fish", "swims"), np.array([2, 1, 2, 2, 2, 1]), 6)


@pytest.fixture
def model(rng):
    weights = jnp.asarray(rng.normal(size=(6, 3)), jnp.float32)
    return Model(WORDS, Projection(weights), agreement=np.array([1.0, 0.5, 0.0], np.float32))


def joined(cosines, bm25, w, left_out=()):
    """The score from its definition, one query after the other."""
    result = np.zeros(cosines.shape)
    for i, (c, b) in enumerate(zip(cosines, bm25, strict=True)):
        out = set(left_out[i]) if len(left_out) else set()
        answers = [[one for j, one in enumerate(part) if j not in out] for part in (c, b)]
        answers = [[np.mean(np.abs(part))] if part and max(part) <= 0 else [max(one, 0) for one in part] or [0]
                   for part in answers]  # fmt: skip
        best = [sorted(part, reverse=True)[: ranker.BEST] for part in answers]
        measures = [share / np.mean(part) if part[0] > 0 else 0 for share, part in zip((1 - w, w), best, strict=True)]
        highest = sum(one * part[0] for one, part in zip(measures, best, strict=True))
        result[i] = (measures[0] * c + measures[1] * b) / (highest or 1)
    return result


def cosines(left, right):
    norms = np.linalg.norm(left, axis=1)[:, None] * np.linalg.norm(right, axis=1)[None]
    return np.divide(left @ right.T, norms, out=np.zeros(norms.shape), where=norms > 0)


def slow_bm25(k1=1.5, b=0.75):
    """BM25 of every text for every query, from its definition."""
    stop = text.stop_words("en")
    documents, result = [text.with_stems(one, "en") for one in TEXTS], np.zeros((len(QUERIES), len(TEXTS)))
    lengths = [sum(word not in stop for word, _ in one) for one in documents]
    stems = [[stem for _, stem in one] for one in documents]
    for i, query in enumerate(QUERIES):
        for j, length in enumerate(lengths):
            for word, stem in text.with_stems(query, "en"):
                df, tf = sum(stem in one for one in stems), stems[j].count(stem)
                idf = np.log(1 + (len(TEXTS) - df + 0.5) / (df + 0.5)) * (0.2 if word in stop else 1)
                result[i, j] += idf * tf * (k1 + 1) / (tf + k1 * (1 - b + b * length / np.mean(lengths))) if tf else 0
    return result


def ranked(model, documents, **how):
    """Scores in the order of the documents."""
    scores, rows = ranker.rank(model, documents, QUERIES, k=len(TEXTS), **how)
    result = np.full_like(scores, np.nan)
    np.put_along_axis(result, rows, scores, axis=1)
    assert np.all(np.diff(np.where(np.isinf(scores), -9, scores), axis=1) <= 0)
    return result


@pytest.mark.parametrize("best", [2, 20])
@pytest.mark.parametrize("power", [0.0, 1.0, 2.0])
@pytest.mark.parametrize("terms", [0.3, 1.0])
def test_scores_are_those_of_the_definition(model, terms, power, best, monkeypatch):
    monkeypatch.setattr(ranker, "BEST", best)
    queries, documents = (np.asarray(model.encode(texts), np.float64) * model.agreement**power
                          for texts in (QUERIES, TEXTS))  # fmt: skip
    expected = joined(cosines(queries, documents), slow_bm25(), terms)
    made = index.encode(model, TEXTS, bm25=True)
    np.testing.assert_allclose(ranked(model, made, terms=terms, power=power), expected, atol=2e-6)
    without = index.encode(model, TEXTS)  # weighs the words when they are asked for
    np.testing.assert_array_equal(ranked(model, without, terms=terms, power=power),
                                  ranked(model, made, terms=terms, power=power))


def test_vectors_order_documents_where_all_are_more_unlike_than_like():
    """The best is the one that is least opposite to the query, whether or not words add to it."""
    weights = jnp.array([[-1.0, 0.0], [-1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.9], [1.0, 3.0]])
    model, documents = Model(WORDS, Projection(weights)), ["dog", "fish swims", "the swims", "fish"]
    made = index.encode(model, documents, bm25=True)
    plain, rows = ranker.rank(model, made, ["cat", "cat fish"], k=4, terms=0.0)
    assert np.all(plain[0] < 0) and rows[0].tolist() == [2, 1, 3, 0]
    scores, rows = ranker.rank(model, made, ["cat", "xyzzy"], k=4, terms=0.2)
    assert rows[0].tolist() == [2, 1, 3, 0] and np.all(np.diff(scores[0]) < 0) and scores[0].mean() == pytest.approx(-1)
    assert not scores[1].any() and rows[1].tolist() == [0, 1, 2, 3]  # no word of it is known
    found = explain.explain_search(model, "cat", made, 2, terms=0.2)
    assert found.score == pytest.approx(scores[0, 0], abs=1e-6)
    scores, rows = ranker.rank(model, made, ["cat"], k=4, terms=0.2, exclude=[[2]])
    assert rows[0].tolist() == [1, 3, 0, 2] and np.isneginf(scores[0, 3])


def test_vectors_alone_and_the_models_own_words(model):
    made = index.encode(model, TEXTS)
    plain = ranked(model, made, terms=0.0, power=0.0)
    np.testing.assert_allclose(plain, model.similarity(QUERIES, TEXTS), atol=1e-6)
    mixed = ranked(model, made, terms=0.25, words="cosine", power=0.0)
    bare = Model(WORDS, None).similarity(QUERIES, TEXTS)
    np.testing.assert_allclose(mixed, 0.75 * plain + 0.25 * bare, atol=1e-6)
    same = dataclasses.replace(model, agreement=None)
    np.testing.assert_array_equal(ranked(same, made, terms=0.0, power=1.0), plain)


def test_documents_are_left_out(model):
    made, left_out = index.encode(model, TEXTS, bm25=True), [[0, 3], [], [2], range(6)]
    for how in ({}, {"terms": 0.0}, {"terms": 0.5, "words": "cosine"}):
        result = ranked(model, made, exclude=left_out, **how)
        out = np.isneginf(result)
        assert out.tolist() == [[True, False, False, True, False, False], [False] * 6,
                                [False, False, True, False, False, False], [True] * 6]  # fmt: skip
        if how:
            np.testing.assert_array_equal(result[~out], ranked(model, made, **how)[~out])
        else:  # what is left out does not measure the others either
            near = ranked(model, made, terms=0.0)
            np.testing.assert_allclose(result[~out], joined(near, slow_bm25(), 0.5, left_out)[~out], atol=2e-6)


def test_what_is_left_out_measures_no_other_where_no_cosine_is_positive():
    """Few documents are left, all opposite to the query: their scores are those of a search in them alone."""
    weights = jnp.array([[-1.0, 0.0], [-1.0, 0.0], [1.0, 0.1], [1.0, 0.2], [1.0, 0.9], [1.0, 3.0]])
    model, few = Model(WORDS, Projection(weights)), ["dog bird", "fish swims", "bird bird swims", "fish"]
    made = index.encode(model, [*few, *["cat"] * 30], bm25=True)
    scores, rows = ranker.rank(model, made, ["cat bird"], k=4, terms=0.5, exclude=[range(4, 34)])
    cosines = np.asarray(model.similarity(["cat bird"], few), np.float64)
    bm25 = (made.bm25.counts(["cat bird"]) @ made.bm25.weights[:4].T).toarray()
    assert sorted(rows[0]) == [0, 1, 2, 3]
    np.testing.assert_allclose(scores[0], joined(cosines, bm25, 0.5)[0][rows[0]], atol=2e-6)
    heights = ranker._height(np.array([[3.0, -np.inf, 1.0, -1.0], [-np.inf] * 4], np.float32))
    assert [one.tolist() for one in heights] == [[[3.0], [0.0]], [[4 / 3], [0.0]]]


@pytest.mark.parametrize("how", [{}, {"terms": 0.0}, {"terms": 0.5, "words": "cosine"}, {"feedback": 2}])
def test_many_documents_are_scored_for_few_queries_at_a_time(model, how, monkeypatch):
    made, left_out = index.encode(model, TEXTS, bm25=True), [[0, 3], [], [2], []]
    expected = ranked(model, made, exclude=left_out, **how)
    monkeypatch.setattr(ranker, "_SCORES", 8)
    np.testing.assert_allclose(ranked(model, made, exclude=left_out, **how), expected, rtol=1e-6)


@pytest.mark.parametrize(("terms", "number"), [(0.0, 2), (0.4, 1), (0.4, 3), (0.4, 9), (1.0, 2)])
def test_a_second_search_is_also_after_what_the_first_has_found(model, terms, number):
    made, out = index.encode(model, TEXTS, bm25=True), [[], [], [3], []]
    how = {"terms": terms, "power": 1.0, "exclude": out}
    first = ranked(model, made, **how).astype(np.float64)
    share = np.where(np.isfinite(first), np.maximum(first, 0), 0)
    for row in share:
        row[np.argsort(-row, kind="stable")[number:]] = 0
    share /= np.maximum(share.sum(axis=1, keepdims=True), 1e-30)
    queries, documents = (np.asarray(model.encode(texts, normalize=True), np.float64) * model.agreement
                          for texts in (QUERIES, TEXTS))  # fmt: skip
    unit = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in (queries, documents)]
    found = share @ unit[1]
    found /= np.maximum(np.linalg.norm(found, axis=1, keepdims=True), 1e-30)
    weights, counts = made.bm25.weights.toarray(), made.bm25.counts(QUERIES).toarray()
    words = share @ weights * [0.2 if stem in ("and", "the", "of") else 1 for stem in made.bm25.stems]
    parts = [side / np.maximum(side.sum(axis=1, keepdims=True), 1e-30) for side in (counts, words)]
    near, bm25 = cosines(unit[0] + found, unit[1]), (parts[0] + parts[1]) @ weights.T
    expected = near if terms == 0 else joined(near, bm25, terms, out)
    expected[2, 3] = -np.inf
    np.testing.assert_allclose(ranked(model, made, feedback=number, **how), expected, atol=2e-6)


def test_a_second_search_takes_few_words_of_long_documents(model, monkeypatch):
    monkeypatch.setattr(ranker, "STRONGEST", 1)
    texts = ["cat fish", "fish fish fish dog", "dog"]
    result = ranker.rank(model, index.encode(model, texts, bm25=True), ["cat"], k=3, terms=1.0, feedback=1)
    assert result[1].tolist() == [[0, 1, 2]] and result[0][0, 1] == 0  # cat is stronger there than fish


@pytest.mark.parametrize("how", [{"terms": 0.5, "words": "cosine"}, {"terms": 1.0, "words": "cosine"}])
def test_feedback_needs_directions(how, model):
    made = index.encode(model, TEXTS)
    with pytest.raises(ValueError, match="feedback: expected 0, unless vectors of a projection are compared"):
        ranker.rank(model, made, QUERIES, k=2, feedback=1, **how)
    bare = Model(WORDS, None)
    with pytest.raises(ValueError, match="feedback: expected 0, unless vectors"):
        ranker.rank(bare, index.encode(bare, TEXTS), QUERIES, k=2, feedback=1)
    topics = Model(WORDS, Projection(jnp.ones((6, 2))), "tf", "shares")
    with pytest.raises(ValueError, match="feedback: expected 0, unless vectors"):
        ranker.rank(topics, index.encode(topics, TEXTS), QUERIES, k=2, terms=0.5, feedback=1)
    with pytest.raises(ValueError, match="feedback: expected a whole number"):
        ranker.rank(model, made, QUERIES, k=2, feedback=-1)


def test_what_a_search_takes_by_default(model):
    one = Projection(jnp.ones((6, 1)))
    assert ranker.default_terms(model) == ranker.TERMS
    assert ranker.default_terms(Model(WORDS, None)) == 0
    assert ranker.default_terms(Model(WORDS, one, languages=("en", "es"))) == 0


@pytest.mark.parametrize(("how", "message"), [
    ({"terms": 1.5}, "terms: expected a number in"),
    ({"words": "tf"}, "words: expected one of bm25, cosine, got tf"),
    ({"power": -1.0, "terms": 0.5}, "power: expected a number of at least 0"),
    ({"exclude": [[]]}, "exclude: expected 4 lists"),
    ({"exclude": [[], [500], [], []]}, r"exclude\[1\]: expected rows of documents, from 0 to 5, got 500$"),
    ({"exclude": [[0, -1], [], [], []]}, r"exclude\[0\]: expected rows of documents, from 0 to 5, got -1$"),
    ({"exclude": [[True], [], [], []]}, r"exclude\[0\]: expected rows of documents, from 0 to 5, got others$"),
    ({"exclude": [[], [], 3, []]}, r"exclude\[2\]: expected a list of rows, got an int$"),
    ({"queries": []}, "queries: expected at least one text, got none"),
    ({"queries": [], "terms": 1.0}, "queries: expected at least one text, got none"),
    ({"queries": "matrix"}, r"queries: expected a list of texts, got one text \(put it into a list\)"),
    ({"queries": ["a", 3]}, "queries: expected strings, got an int"),
])
def test_bad_arguments_are_refused(how, message, model):
    with pytest.raises(ValueError, match=message):
        ranker.rank(model, index.encode(model, TEXTS), **{"queries": QUERIES, "k": 2} | how)


def test_agreement_is_the_correlation_of_unit_vectors(rng):
    left = rng.normal(size=(50, 30)) * np.linspace(3, 0.1, 30)
    right = left + rng.normal(size=(50, 30))
    left[7], left[:, 4] = 0, 0
    unit = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-300) for side in (left, right)]
    with np.errstate(invalid="ignore"):
        single = [np.nan_to_num(np.corrcoef(a, b)[0, 1]) for a, b in zip(unit[0].T, unit[1].T, strict=True)]
    clipped = np.clip(single, 0, 1)
    expected = [clipped[max(0, j - 2) : j + 3].mean() for j in range(30)]
    np.testing.assert_allclose(agreement(left, right, window=5), expected, atol=1e-6)
    assert agreement(left, -left).max() < 1e-6 and agreement(left[:, :1], left[:, :1]).tolist() == [1.0]


def test_cross_fitted_agreement_is_of_pairs_that_took_no_part(rng):
    sides, seen = rng.normal(size=(2, 12, 4)), []

    def fit(rows):
        def vectors(held):
            assert not set(rows) & set(held)
            seen.extend(held)
            return sides[0][held], sides[1][held]

        return vectors

    folds = np.arange(12) % 3
    result = cross_fitted(fit, folds, window=1)
    expected = np.mean([agreement(*sides[:, folds == fold], window=1) for fold in range(3)], axis=0)
    np.testing.assert_allclose(result, expected, atol=1e-6)
    assert sorted(seen) == list(range(12))


@pytest.mark.parametrize(("sides", "message"), [
    ((np.ones((2, 3)), np.ones((2, 2))), "right: expected shape"),
    ((np.ones((1, 3)), np.ones((1, 3))), "left: expected at least two pairs, got 1"),
    ((np.ones((2, 3)), np.full((2, 3), np.nan)), "right: expected finite values"),
])
def test_agreement_refuses(sides, message):
    with pytest.raises(ValueError, match=message):
        agreement(*sides)


@pytest.mark.parametrize(("weights", "message"), [
    (np.ones(2), "agreement: expected shape"), (np.full(3, 1.5), "agreement: expected numbers in"),
    (np.full(3, np.nan), "agreement: expected numbers in"),
])
def test_a_model_refuses_weights_that_do_not_fit(weights, message, model):
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(model, agreement=weights)
    with pytest.raises(ValueError, match="agreement: expected None, without a projection"):
        Model(WORDS, None, agreement=weights)


def test_weights_are_saved_with_the_model(model, tmp_path):
    read = Model.load(model.save(tmp_path / "model"))
    assert read.agreement.tolist() == model.agreement.tolist()
    numbers = {"terms_weight": np.float32(0.5), "agreement_power": 2, "feedback": np.int64(3)}
    read = Model.load(dataclasses.replace(model, **numbers).save(tmp_path / "model"))
    assert [(name, getattr(read, name)) for name in numbers] == list(numbers.items())
    contents = model.contents()
    facts = contents["tensors"], contents["config"], contents["vocabulary"]
    assert Model.of_contents(facts[0], {**facts[1], "terms_weight": 1}, facts[2]).terms_weight == 1
    with pytest.raises(ValueError, match="terms_weight: expected a number, or nothing, got True"):
        Model.of_contents(facts[0], {**facts[1], "terms_weight": True}, facts[2])
    np.testing.assert_array_equal(read.vectors(TEXTS, power=1.0).dense, model.vectors(TEXTS, power=1.0).dense)
    assert Model.load(dataclasses.replace(model, agreement=None).save(tmp_path / "plain")).agreement is None


def test_words_of_empty_collections_and_other_languages():
    assert weigh([]).weights.shape == (0, 0) and weigh(["", "the"]).weights.shape[0] == 2
    assert (weigh(["los gatos", "perro"], language="es").counts(["gato"], language="es") @ weigh(
        ["los gatos", "perro"], language="es").weights.T).toarray()[0].tolist()[1] == 0
    assert text.stop_words("ja") is text.stop_words("ja") and not text.stop_words("sw")
    assert text.with_stems("the cats", "sw") == [("the", "the"), ("cats", "cats")]


def test_stop_words_count_less_and_none_is_lost():
    texts = ["computers of the lab", "system information", "the lab", "of the", "words of wing"]
    words = weigh(texts)
    scores = (words.counts(["computer", "computers", "the computer", "of the"]) @ words.by_stem).toarray()
    assert scores[0, 0] > 0 and (scores[0, 1:] == 0).all()  # on the list, and found in another form
    np.testing.assert_allclose(scores[0], 0.2 * scores[1], rtol=1e-6)
    np.testing.assert_allclose(scores[2] - scores[0], 0.2 * (words.by_stem[[words.stems.index("the")]]).toarray()[0],
                               rtol=1e-6)  # fmt: skip
    assert np.argmax(scores[3]) == 3 and (scores[3] > 0).tolist() == [True, False, True, True, True]
    only = weigh(["of the", "the the the and"])  # lengths are those of all words
    np.testing.assert_allclose(only.weights[1].sum(), np.log(1.2) * 7.5 / (3 + 1.5 * (0.25 + 0.75 * 4 / 3))
                               + np.log(2) * 2.5 / (1 + 1.5 * (0.25 + 0.75 * 4 / 3)), rtol=1e-6)  # fmt: skip
    assert only.times(np.arange(3)).tolist() == [np.float32(0.2)] * 3
    assert words.times(np.arange(8), language="sw").tolist() == [1] * 8


def test_bm25_is_transposed_once(model, monkeypatch):
    documents, made = index.encode(model, TEXTS, bm25=True), []
    weights = documents.bm25.weights
    turned = type(weights).transpose

    def counted(self, *args, **given):
        made.append(self is weights)
        return turned(self, *args, **given)

    monkeypatch.setattr(type(weights), "transpose", counted)
    scores = [ranker.rank(model, documents, QUERIES, k=6, terms=1.0, feedback=number)[0] for number in (0, 0, 2)]
    assert sum(made) == 1 and scores[0].tobytes() == scores[1].tobytes()
    counts = documents.bm25.counts(QUERIES)
    plain, kept = counts @ weights.T, counts @ documents.bm25.by_stem
    assert all(getattr(plain, one).tobytes() == getattr(kept, one).tobytes() for one in ("data", "indices", "indptr"))


@pytest.mark.parametrize("words", ranker.WORDS)
@pytest.mark.parametrize("terms", [None, 0.0, 0.3, 1.0])
def test_a_search_needs_no_more_than_it_says(terms, words, model, monkeypatch):
    way = {"terms": terms, "words": words, "k": 6}
    found = [ranker.rank(model, documents, QUERIES, **way) for documents in (
        index.encode(model, TEXTS, bm25=True), index.encode(model, TEXTS, **ranker.needed(model, terms, words)))]
    assert all(one.tobytes() == other.tobytes() for one, other in zip(*found, strict=True))
    bare = index.encode(model, TEXTS, **ranker.needed(model, terms, words))
    assert (bare.vectors is None) == (terms == 1)
    assert (bare.bm25 is None) == (words == "cosine" or terms == 0)
    assert (bare.words is None) == (terms == 0 or (words == "bm25" and terms != 1))
