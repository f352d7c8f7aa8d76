"""Features of terms against plain loops over tokens."""

from __future__ import annotations

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse, text
from jaxsim.text import features, html

DOCUMENTS = [
    "Tea prices rise: TEA, coffee and the world tea market".split(),
    [],
    "unknown words Only".split(),
    "the the The coffee".split(),
]
VOCABULARY = text.Vocabulary(("the", "tea", "coffee", "market", "never"), np.array([9, 4, 3, 1, 2]), 10)
FREQUENCY = np.array([1000.0, 50.0, 40.0, 20.0, 0.0])


def loop(tokens):
    """Rows (term, all of `features.NAMES`) of one document, from the definitions."""
    folded = [token.lower() for token in tokens]
    rows = {}
    for column, term in enumerate(VOCABULARY.terms):
        where = [i for i, token in enumerate(folded) if token == term]
        if not where:
            continue
        tf, df, loc, length, qf = len(where), VOCABULARY.df[column], where[0], len(tokens), FREQUENCY[column]
        cap = any(tokens[i][0].isupper() for i in where)
        log = [math.log(x + 1) for x in (tf, df, loc, length, qf)]
        rows[column] = [1, tf, log[0], df, log[1], cap, loc, log[2], loc / length, length, log[3], qf, log[4]]
    return rows


def test_every_column_is_what_its_name_says():
    result = features.extract(DOCUMENTS, VOCABULARY, names=features.NAMES, query_frequency=FREQUENCY)
    expected = [loop(tokens) for tokens in DOCUMENTS]
    csr = sparse.to_scipy(result.terms)
    assert csr.shape == (4, 5) and result.num_docs == 4 and result.num_terms == 5
    assert np.diff(csr.indptr).tolist() == [4, 0, 0, 2]
    np.testing.assert_allclose(result.columns, [row for one in expected for _, row in sorted(one.items())], rtol=1e-6)
    np.testing.assert_array_equal(csr.toarray(), text.counts([[w.lower() for w in d] for d in DOCUMENTS],
                                                             VOCABULARY).toarray())
    assert set(features.TABLE_1) | set(features.PLAIN_TEXT) | set(features.TF_DF) == set(features.NAMES)


def test_columns_are_chosen_and_ordered():
    every = features.extract(DOCUMENTS, VOCABULARY, names=features.NAMES, query_frequency=FREQUENCY)
    some = features.extract(DOCUMENTS, VOCABULARY, names=("len", "log_tf"))
    np.testing.assert_array_equal(features.choose(every, ("len", "log_tf")).columns, some.columns)
    assert features.choose(every, "cap").names == ("cap",)


def test_documents_without_any_known_word():
    for documents in ([], [[]], [["unknown"]]):
        result = features.extract(documents, VOCABULARY, names=("bias", "tf"))
        assert result.num_docs == len(documents) and not np.any(result.columns)
        scale = features.scale_of(result)
        assert np.all(np.isfinite(features.scaled(result, scale).columns))


def test_turkish_words_are_found_by_their_own_lower_case():
    cut = text.tokenizer("tr")
    words = text.Vocabulary.build([cut("ILIK İçecek"), cut("ılık su")], drop_top=0)
    tokens = [cut("ILIK İçecek", lower=False)]
    found = features.extract(tokens, words, names=("tf", "cap"), language="tr")
    assert {words.terms[i] for i in found.terms.indices} == {"ılık", "içecek"} and np.all(found.columns == 1)
    assert not np.any(features.extract(tokens, words, names=("tf",)).columns)
    assert html.in_fields(found, words, {"title": [["ILIK"]]}, language="tr").columns[:, 2].tolist() == [1, 0]
    assert html.in_strings(found, words, "url", ["/İÇECEK"], language="tr").columns[:, 2].tolist() == [0, 1]
    with pytest.raises(ValueError, match="language: expected a code"):
        features.extract(tokens, words, names=("tf",), language="turkish")


def test_counts_give_the_same_columns_inside_jit():
    plain = features.extract(DOCUMENTS, VOCABULARY, names=("bias", "tf", "log_tf", "df", "log_df"))
    padded = sparse.from_scipy(sparse.to_scipy(plain.terms), pad_nnz=9, pad_docs=6)
    result = jax.jit(lambda counts: features.from_counts(counts, VOCABULARY.df, names=plain.names))(padded)
    np.testing.assert_allclose(result.columns[:6], plain.columns, rtol=1e-6)
    assert not np.any(result.columns[6:])
    nothing = sparse.from_scipy(scipy.sparse.csr_matrix((2, 0)))
    assert features.from_counts(nothing, np.zeros(0)).columns.shape == (1, 3)


def test_scaled_columns_have_mean_0_and_deviation_1_and_give_the_same_weights(rng):
    result = features.extract(DOCUMENTS, VOCABULARY, names=features.TABLE_1, query_frequency=FREQUENCY)
    scale = features.scale_of(result)
    new = features.scaled(result, scale)
    varied = [name for name in result.names if name != "bias"]
    body = np.asarray(features.choose(new, varied).columns)
    np.testing.assert_allclose(body.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(body.std(axis=0), 1, atol=1e-5)
    assert np.all(new.columns[:, 0] == 1)
    weights = rng.normal(size=len(result.names))
    plain = weights / scale.deviation
    plain[0] -= np.sum(weights * scale.mean / scale.deviation)
    np.testing.assert_allclose(new.columns @ weights, result.columns @ plain, atol=1e-4)


def test_constant_columns_and_padding_are_left_finite():
    counts = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((2, 3), np.float32)), pad_nnz=10)
    result = features.from_counts(counts, [7, 7, 7], names=("tf", "df"))
    assert not np.any(features.scaled(result, features.scale_of(result)).columns)


def test_one_feature():
    documents = sparse.from_scipy(scipy.sparse.csr_matrix([[0.5, 0.0, 2.0]]), pad_nnz=4)
    result = features.single(documents)
    assert result.names == ("tfidf",) and result.columns[:, 0].tolist() == [0.5, 2.0, 0.0, 0.0]


COUNTS = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((1, 2))))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: features.extract([["a"]], VOCABULARY, names=("tf", "idf")), "names: expected some of bias, tf, .* 'idf'"),
    (lambda: features.extract([["a"]], VOCABULARY, names=("tf", "tf")), "names: expected every column once"),
    (lambda: features.extract([["a"]], VOCABULARY, names=()), "names: expected at least one column"),
    (lambda: features.extract([["a"]], VOCABULARY), r"query_frequency: expected 5 numbers \(one a term\), got None"),
    (lambda: features.extract([["a"]], VOCABULARY, query_frequency=-FREQUENCY),
     "query_frequency: expected numbers of at least 0, got -1000.0"),
    (lambda: features.extract(["a text"], VOCABULARY, names=("tf",)), "token_lists: expected a list of words"),
    (lambda: features.from_counts(COUNTS, [1.0], names=("df",)), r"df: expected shape \(2,\), got \(1,\)"),
    (lambda: features.from_counts(COUNTS, [1.0, 1.0], names=("cap",)), "names: expected some of bias, tf, log_tf"),
    (lambda: features.scaled(features.single(COUNTS), features.Scale(jnp.zeros(2), jnp.ones(2))),
     "scale: expected 1 columns"),
    (lambda: features.single(np.ones((2, 2))), "documents: expected Terms, got ndarray"),
])
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
