"""Scorers of completions beside slow versions: similarity, reconstruction, LSA-LM, PMI, and the combination."""

from __future__ import annotations

import itertools
from collections import Counter

import jax
import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

from jaxsim.data import questions, sentences
from jaxsim.methods.language import combination, documents, lsa_lm, lsa_recon, lsa_totsim, pmi_window

TEXT = ("The black cat sat on the old mat. A cat and a dog ran over the mat. The old dog sat. Ships sail the sea.\n\n"
        "The sea, the sea! Old ships and black sails. The dog saw a ship on the sea. A mat, a cat.")  # fmt: skip


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    return sentences.build([("a", TEXT)], tmp_path_factory.mktemp("text") / "tokens")


@pytest.fixture(scope="module")
def asked(text):
    """Three questions, one with two blanks and one with words that the text lacks."""
    rows = [questions.question("The _____ sat on the old mat.", ["dog", "sea", "zebra"], answer=0),
            questions.question("A _____ on the _____, black cat.", [["ship", "sea"], ["cat", "cat"], ["mat", "zzz"]],
                               answer=0),
            questions.question("Old _____ sail.", ["ships", "old dog", "mat"], answer=0)]  # fmt: skip
    result = questions.collect(rows)
    return result, questions.encode(result, text.numbers)


def sentences_of(text):
    rows = [sentence for sentence in sentences.split(TEXT)]
    assert sum(len(row) + 2 for row in rows) == len(text.tokens)
    return rows


def test_documents_are_the_sentences_with_an_option_and_terms_those_of_questions(text, asked, monkeypatch):
    monkeypatch.setattr(documents, "_BLOCK", 30)  # several blocks
    terms = documents.terms_of(asked[1], text, longest=3)
    result = documents.collect(text, terms)
    words = [text.vocabulary[number] for number in terms.words]
    options = {"dog", "sea", "ship", "cat", "mat", "ships", "old"}
    assert {words[at] for at in terms.options} == options and "zebra" not in words and "," not in words
    size = len(words)
    names = [*words, *(f"{words[key // size]} {words[key % size]}" for key in terms.pairs),
             *(f"{words[key // size**2]} {words[key // size % size]} {words[key % size]}" for key in terms.triples)]
    expected = []
    for row in sentences_of(text):
        if options & set(row):
            runs = [" ".join(row[at : at + n]) for n in (1, 2, 3) for at in range(len(row) - n + 1)]
            expected.append({run: count for run, count in Counter(runs).items() if run in names})
    rows = result.counts.toarray()
    assert [{names[at]: row[at] for at in np.flatnonzero(row)} for row in rows] == expected
    assert "on the" in names and "sat on the" in names and result.num_sentences == 8


def dense_space(text, asked):
    """Weighted counts ``[docs, words]`` from dictionaries, and the columns."""
    result = documents.collect(text, documents.terms_of(asked[1], text))
    counts = result.counts.toarray().astype(float)
    df = (counts > 0).sum(axis=0)
    return result, counts * np.log(len(counts) / np.maximum(df, 1)) * (df > 0)


@pytest.mark.parametrize("scaled", [True, False])
def test_total_similarity_equals_a_dense_decomposition(text, asked, scaled, key):
    result, weighted = dense_space(text, asked)
    _, singular, right = np.linalg.svd(weighted, full_matrices=False)
    vectors = right[:4].T * (singular[:4] if scaled else 1)
    place = {text.vocabulary[number]: at for at, number in enumerate(result.terms.words)}
    params = lsa_totsim.fit(result, k=4, scaled=scaled, key=key).params
    inputs = lsa_totsim.inputs(params, asked[1])
    assert np.allclose(lsa_totsim.scores(params, asked[1]), inputs[..., 0])
    for at, one in enumerate(asked[0].questions):
        rest = [word for part in one.parts for word in sentences.words(part) if word in place]
        for row, choice in enumerate(one.choices):
            answer = [word for part in choice for word in sentences.words(part)]
            known = [word for word in answer if word in place and np.linalg.norm(vectors[place[word]]) > 1e-9]

            def cosine(a, b):
                norm = np.linalg.norm(a) * np.linalg.norm(b)
                return a @ b / norm if norm > 1e-9 else 0.0

            total = sum(cosine(vectors[place[a]], vectors[place[w]]) for a in known for w in rest)
            sums = [sum((vectors[place[word]] for word in words), np.zeros(4)) for words in (known, rest)]
            assert inputs[at, row, 0] == pytest.approx(total, abs=1e-4)
            assert inputs[at, row, 1] == pytest.approx(cosine(*sums), abs=1e-4)
            assert inputs[at, row, 2] == len(answer) - len(known)


def test_a_space_is_cut_without_a_new_fit(text, asked, key):
    result, _ = dense_space(text, asked)
    whole = lsa_totsim.fit(result, k=5, scaled=True, key=key).params
    small = lsa_totsim.fit(result, k=3, scaled=False, key=key).params
    assert np.allclose(np.abs(whole.cut(3, scaled=False).vectors), np.abs(small.vectors), atol=1e-4)


@pytest.fixture(scope="module")
def few(tmp_path_factory):
    """A text whose sentences are of three kinds, and a question that is longer than that."""
    lines = "The cats drank cold milk. " * 6 + "Many dogs ate. " * 6 + "Old birds sat near warm water in a house."
    text = sentences.build([("a", lines)], tmp_path_factory.mktemp("few") / "tokens")
    one = questions.question("In a house the old _____ drank cold water near many birds", ["cats", "dogs", "milk"])
    return text, questions.encode(questions.collect([one]), text.numbers)


@pytest.mark.parametrize("scaled", [True, False])
def test_directions_that_words_do_not_span_are_left_out(few, scaled, key):
    text, _ = few
    words, none = np.arange(3, len(text.vocabulary), dtype=np.int32), np.zeros(0, np.int64)
    words = words[[text.vocabulary[number] != "." for number in words]]
    found = documents.collect(text, documents.Terms(words, none, none, np.arange(len(words), dtype=np.int32)))
    whole = lsa_totsim.fit(found, k=8, scaled=scaled, key=key).params
    for vectors in (whole.vectors, whole.cut(8, scaled=False).vectors):
        units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        for group in (["cats", "drank", "milk"], ["dogs", "ate", "many"], ["birds", "sat", "water", "house"]):
            rows = units[[np.searchsorted(words, text.numbers[word]) for word in group]]
            np.testing.assert_allclose(rows @ rows.T, 1, atol=1e-5)  # words of the same sentences
    assert whole.cut(8, scaled=False).vectors.any(axis=0).sum() == 3


@pytest.mark.parametrize("seed", range(3))
def test_reconstruction_stays_in_the_span_of_the_documents(few, seed):
    text, filled = few
    found = documents.collect(text, documents.terms_of(filled, text, longest=3))
    idf = found.idf()
    basis = np.linalg.svd(found.counts.toarray() * idf, full_matrices=False)[2][:2]  # of cats, and of dogs
    vectors = documents.rows_of(filled, found.terms).toarray() * idf
    expected = (vectors**2).sum(axis=1) - ((vectors @ basis.T) ** 2).sum(axis=1)
    errors = lsa_recon.errors(found, filled, rng=np.random.default_rng(seed))
    np.testing.assert_allclose(errors[0], expected, atol=1e-3)


@pytest.mark.parametrize("unit_length", [True, False])
def test_reconstruction_errors_equal_a_dense_decomposition(text, asked, unit_length):
    result = documents.collect(text, documents.terms_of(asked[1], text, longest=2))
    idf, rows = result.idf(), documents.rows_of(asked[1], result.terms).toarray()
    chosen = documents.count(asked[1], result.terms, chosen=True).toarray()
    errors = lsa_recon.errors(result, asked[1], factor=0.5, unit_length=unit_length, rng=np.random.default_rng(0))
    for at in range(3):
        part = slice(3 * at, 3 * at + 3)
        options = [one for one in result.terms.options if chosen[part, one].any()]
        docs = result.counts.toarray()
        docs = docs[docs[:, options].any(axis=1)] * idf
        if unit_length:
            docs = docs / np.maximum(np.linalg.norm(docs, axis=1, keepdims=True), 1e-15)
        k = max(1, round(0.5 * int(asked[1].lengths[at].max() - 2)))
        basis = np.linalg.svd(docs, full_matrices=False)[2][:k].T
        vectors = rows[part] * idf
        expected = ((vectors - vectors @ basis @ basis.T) ** 2).sum(axis=1)
        assert np.allclose(errors[at], expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(("num_docs", "rank"), [(300, None), (90, None), (300, 2)], ids=["many", "few", "equal ones"])
def test_the_space_of_a_question_is_that_of_the_leading_singular_vectors(rng, num_docs, rank):
    words = rng.random((num_docs if rank is None else rank, 200)) < 12 * rng.dirichlet(20 / np.arange(1, 201))
    docs = np.float32(words)[np.arange(num_docs) % len(words)]
    vectors = rng.random((5, 200)) * (rng.random((5, 200)) < 0.1)
    basis = np.linalg.svd(docs.astype(float), full_matrices=False)[2][: min(24, rank or 24)]
    found = lsa_recon._errors(scipy.sparse.csr_matrix(docs), vectors, 24, rng)
    np.testing.assert_allclose(found, (vectors**2).sum(axis=1) - ((vectors @ basis.T) ** 2).sum(axis=1), rtol=1e-9)
    nothing = scipy.sparse.csr_matrix((np.zeros(num_docs, np.float32), np.arange(num_docs) % 200,
                                       np.arange(num_docs + 1)), docs.shape)  # fmt: skip
    np.testing.assert_allclose(lsa_recon._errors(nothing, vectors, 24, rng), (vectors**2).sum(axis=1))


def test_reconstruction_goes_on_where_it_was(text, asked):
    result = documents.collect(text, documents.terms_of(asked[1], text, longest=3))
    kept = {}
    whole = lsa_recon.errors(result, asked[1], rng=np.random.default_rng(0), done=kept.__setitem__)
    start = np.array([kept[0], kept[1]])
    assert np.array_equal(lsa_recon.errors(result, asked[1], rng=np.random.default_rng(0), start=start), whole)


def test_the_language_model_of_the_space_equals_a_slow_version(text, asked, key):
    result, _ = dense_space(text, asked)
    params = lsa_totsim.fit(result, k=3, key=key).params
    units = params.vectors / np.maximum(np.linalg.norm(params.vectors, axis=1, keepdims=True), 1e-30)
    place = {number: at for at, number in enumerate(result.terms.words)}
    logs = np.log(np.random.default_rng(0).uniform(0.01, 1, asked[1].tokens.shape))
    scores = lsa_lm.mixed(logs, lsa_lm.history_shares(params, asked[1]), asked[1], share=0.3)
    for at, row in np.ndindex(*scores.shape):
        tokens, total = asked[1].tokens[at, row], 0.0
        first = int(np.flatnonzero(asked[1].chosen[at, row])[0])
        for position in range(first, asked[1].lengths[at, row]):
            history = sum((params.vectors[place[one]] for one in tokens[:position] if one in place), np.zeros(3))
            share, one = 0.0, place.get(tokens[position])
            if one is not None and np.linalg.norm(params.vectors[one]) > 0:
                norm = np.linalg.norm(history)
                cosines = units @ history / norm if norm else np.zeros(len(units))
                above = cosines - cosines.min()
                share = above[one] / above.sum() if above.sum() else 1 / len(units)
            total += np.log(0.7 * np.exp(logs[at, row, position]) + 0.3 * share)
        assert scores[at, row] == pytest.approx(total, abs=1e-4)


def test_shares_after_a_history_sum_to_one(key):
    units = jax.random.normal(key, (9, 3))
    history = np.tile(np.array([[0.3, -1.0, 2.0]]), (9, 1))
    assert float(lsa_lm._shares(units, history, np.arange(9)).sum()) == pytest.approx(1)


def test_words_without_a_vector_take_no_part_in_the_language_model(text, asked, key):
    result, _ = dense_space(text, asked)
    params = lsa_totsim.fit(result, k=3, key=key).params
    kept = np.arange(len(params.vectors)) % 3 > 0
    params = params._replace(vectors=params.vectors * kept[:, None])
    params.vectors[kept, 0] = np.abs(params.vectors[kept, 0]) + 5  # so that all their cosines are above 0
    fewer = params._replace(terms=params.terms._replace(words=params.terms.words[kept]), vectors=params.vectors[kept])
    found, expected = (lsa_lm.history_shares(one, asked[1]) for one in (params, fewer))
    np.testing.assert_allclose(found, expected, atol=1e-6)
    units = params.vectors / np.maximum(np.linalg.norm(params.vectors, axis=1, keepdims=True), 1e-30)
    nothing = lsa_lm._shares(units, np.zeros((1, 3)), np.array([1]))
    assert float(nothing[0]) == pytest.approx(1 / kept.sum())  # after a history without vectors


def slow_association(stream, window, eps):
    """Function of two words: their smoothed mutual information, from dictionaries; 0 for words that do not occur."""
    together, single = Counter(), Counter(stream)
    for at, word in enumerate(stream):
        for distance in range(window[0], window[1] + 1):
            for other in (at - distance, at + distance):
                if 0 <= other < len(stream):
                    together[word, stream[other]] += 1
    spread = 2 * (window[1] - window[0] + 1) / len(stream)

    def information(one, other):
        known = one in single and other in single
        return np.log((together[one, other] + eps) / (single[one] * single[other] * spread + eps)) if known else 0.0

    return information


@pytest.mark.parametrize("block", [1 << 23, 13])
def test_mutual_information_equals_a_slow_version(text, asked, monkeypatch, block):
    monkeypatch.setattr(pmi_window, "_BLOCK", block)
    params = pmi_window.fit(text, asked[1], window=(2, 4), eps=0.5).params
    slow = slow_association([word for row in sentences_of(text) for word in row], (2, 4), 0.5)
    for reach, (at, row) in itertools.product((0, 2), np.ndindex(3, 3)):
        tokens = [text.vocabulary[max(number, 0)] for number in asked[1].tokens[at, row]]
        chosen = asked[1].chosen[at, row]
        pairs = itertools.product(np.flatnonzero(chosen), np.flatnonzero(~chosen))
        total = sum(slow(tokens[a], tokens[w]) for a, w in pairs if not reach or abs(a - w) <= reach)
        scores = pmi_window.scores(params._replace(reach=reach), asked[1])
        assert scores[at, row] == pytest.approx(total, abs=1e-4)


def test_the_combination_reaches_the_minimum_of_its_loss(rng):
    answers = rng.integers(0, 4, 40)
    inputs = rng.normal(size=(40, 4, 3))
    inputs[np.arange(40), answers, 0] += 1.0
    fit = combination.fit(inputs, answers, l2=0.01)
    right = inputs[np.arange(40), answers][:, None]
    wrong = np.arange(4) != answers[:, None]

    def loss(weights):
        return np.logaddexp(0, ((inputs - right) / fit.params.scale) @ weights)[wrong].mean() + 0.01 * weights @ weights

    best = scipy.optimize.minimize(loss, np.zeros(3), tol=1e-10)
    assert fit.converged and fit.loss == pytest.approx(best.fun, abs=1e-6) and fit.loss < np.log(2)
    assert np.allclose(fit.params.weights, best.x, atol=1e-3)


def test_pooled_scores_come_from_models_that_did_not_see_the_question(rng, key):
    answers = rng.integers(0, 3, 30)
    inputs = rng.normal(size=(30, 3, 2))
    first, _ = combination.pooled(inputs, answers, l2s=(0.1,), key=key)
    other = answers.copy()
    other[7] = (answers[7] + 1) % 3
    second, _ = combination.pooled(inputs, other, l2s=(0.1,), key=key)
    part = combination.parts(30, 5, key=key)
    assert np.array_equal(first[part == part[7]], second[part == part[7]]) and not np.array_equal(first, second)
    assert np.bincount(part).tolist() == [6] * 5


def test_the_penalty_with_the_lowest_held_out_loss_is_chosen(rng, key):
    answers, inputs = rng.integers(0, 3, 30), rng.normal(size=(30, 3, 2))
    l2, tried = combination.choose(inputs, answers, l2s=(1e-4, 10.0), key=key)
    assert l2 == 10.0 and tried[1]["loss"] < tried[0]["loss"]  # nothing but noise


def test_a_score_of_the_combination_sees_the_model_that_is_returned(rng):
    inputs, answers = rng.normal(size=(12, 3, 2)) * [1, 50], np.arange(12) % 3
    seen = []

    def validate(model):
        seen.append(combination.scores(model, inputs))
        return float((seen[-1].argmax(axis=1) == answers).mean())

    fit = combination.fit(inputs, answers, l2=0.01, validate=validate, patience=100)
    best = max(entry["validation"] for entry in fit.history)
    assert (combination.scores(fit.params, inputs).argmax(axis=1) == answers).mean() == best and len(seen) > 2


@pytest.mark.parametrize(("function", "least"), [(combination.pooled, 3), (combination.choose, 2)])
def test_too_few_parts_are_refused(rng, key, function, least):
    inputs, answers = rng.normal(size=(9, 3, 2)), rng.integers(0, 3, 9)
    with pytest.raises(ValueError, match=f"num_parts: expected a whole number of at least {least}, got {least - 1}"):
        function(inputs, answers, num_parts=least - 1, key=key)
    function(inputs, answers, l2s=(0.1,), num_parts=least, key=key)


@pytest.mark.parametrize(("inputs", "answers", "message"), [
    (np.full((2, 2, 1), np.nan), [0, 1], "inputs: expected no NaN"), (np.full((2, 2, 1), np.inf), [0, 1], "finite"),
    (np.zeros((2, 2)), [0, 1], "inputs: expected shape"), (np.zeros((2, 2, 1)), [0], "answers: expected shape"),
    (np.zeros((2, 2, 1)), [0, 2], r"answers: expected indices from 0 to 1, got \[2\]"),
    (np.zeros((2, 2, 1)), [0, -1], r"answers: expected indices from 0 to 1, got \[-1\]"),
    (np.zeros((2, 2, 1)), [0, 0.5], "answers: expected indices of choices, whole numbers, got float64"),
])
def test_bad_inputs_of_the_combination_are_refused(inputs, answers, message):
    with pytest.raises(ValueError, match=message):
        combination.fit(inputs, answers, l2=0.1)


@pytest.mark.parametrize(("rows", "message"), [
    ([0, 99], r"rows: expected numbers of questions below 6, got \[99\]"), ([], "rows: expected at least one question"),
    ([0.0, 1.0], "rows: expected numbers of questions, whole numbers, got float64"),
])
def test_rows_that_are_none_are_refused(rng, rows, message):
    with pytest.raises(ValueError, match=message):
        combination.fit(rng.normal(size=(6, 2, 1)), [0] * 6, l2=0.1, rows=rows)


def test_a_mask_of_questions_is_their_numbers(rng):
    inputs, mask = rng.normal(size=(6, 2, 1)), np.array([True, False, True, True, False, False])
    found, wanted = (combination.fit(inputs, [0] * 6, l2=0.1, rows=rows).params for rows in (mask, [0, 2, 3]))
    np.testing.assert_array_equal(found.weights, wanted.weights)


@pytest.mark.parametrize("power", [-1000, -200, 200, 1000])
def test_inputs_of_any_scale_have_one_combination(rng, power):
    inputs, answers = rng.normal(size=(12, 3, 2)), np.arange(12) % 3
    other = inputs * np.array([1.0, 2.0**power])
    models = [combination.fit(some, answers, l2=0.01).params for some in (inputs, other)]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)
    assert models[0].scale.dtype == np.float32 and models[1].scale.dtype == np.float64
    found = [combination.scores(model, some) for model, some in zip(models, (inputs, other), strict=True)]
    np.testing.assert_allclose(found[1], found[0], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("function", [combination.pooled, combination.choose])
def test_no_penalty_to_try_is_refused(rng, key, function):
    with pytest.raises(ValueError, match="l2s: expected at least one value, got none"):
        function(rng.normal(size=(9, 3, 2)), [0] * 9, l2s=[], num_parts=3, key=key)


def test_settings_that_are_not_finite_are_refused(text, asked):
    with pytest.raises(ValueError, match="eps: expected a positive number, got inf"):
        pmi_window.fit(text, asked[1], eps=np.inf)
    found = documents.collect(text, documents.terms_of(asked[1], text, longest=3))
    with pytest.raises(ValueError, match="factor: expected a positive number, got inf"):
        lsa_recon.errors(found, asked[1], factor=np.inf, rng=np.random.default_rng(0))


def test_questions_of_other_words_are_refused(text):
    one = questions.collect([questions.question("Zzz _____ .", ["qqq", "vvv"])])
    filled = questions.encode(one, text.numbers)
    for fit in (lambda: documents.terms_of(filled, text), lambda: pmi_window.fit(text, filled)):
        with pytest.raises(ValueError, match="filled: expected choices that occur in the text"):
            fit()


def test_no_penalty_is_a_penalty(rng):
    answers, inputs = rng.integers(0, 3, 30), rng.normal(size=(30, 3, 2))
    found, small = (combination.fit(inputs, answers, l2=l2) for l2 in (0.0, 1e-9))
    np.testing.assert_allclose(found.params.weights, small.params.weights, atol=1e-3)
