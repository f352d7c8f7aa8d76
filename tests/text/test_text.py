from __future__ import annotations

import math
import random
import re
import sys
import time
import unicodedata

import numpy as np
import pytest
import scipy.sparse as sp
import stop_words

from jaxsim import text
from jaxsim.text import corpus_words, stemming, tokens, weightings


def test_words_are_nfc_lower_case_word_characters():
    decomposed = unicodedata.normalize("NFD", "Élan über_alles 3.5")
    assert text.words(decomposed) == ["élan", "über_alles", "3", "5"]
    assert text.words("A b", lower=False) == ["A", "b"]
    assert text.words("") == []
    assert text.words(" -- !") == []


def test_every_character_parts_words_or_belongs_to_them():
    """ASCII is cut without a regular expression, and marks are only looked for where there are any."""
    marked = re.compile(rf"\w+(?:[{text.word_marks()}]+\w*)*")
    for start in range(0, sys.maxunicode + 1, 61):  # every plane, and all of ASCII and Latin-1
        for code in range(256) if start == 0 else (start,):
            given = f"A{chr(code)}b, c"
            for lower in (True, False):
                folded = unicodedata.normalize("NFC", given.translate(dict.fromkeys(map(ord, tokens.DRAWN))))
                assert text.pieces(given, lower=lower) == marked.findall(folded.lower() if lower else folded), hex(code)


@pytest.mark.parametrize(("given", "expected"), [
    ("हिन्दी में।", ["हिन्दी", "में"]),  # vowel signs and a virama
    ("தமிழ் மொழி", ["தமிழ்", "மொழி"]),
    ("Q\u0308 naïve “x”", ["q\u0308", "naïve", "x"]),  # an accent that no letter holds
    ("İstanbul", ["i\u0307stanbul"]),  # lower case is two characters
    ("1\ufe0f\u20e3 \u0301 a", ["1", "a"]),  # a keycap, and a mark without a letter
    ("\ud800 b", ["b"]),
])
def test_marks_stay_with_their_letters(given, expected):
    assert text.words(given) == expected


def test_words_are_composed_in_lower_case_too():
    expected = ["\u1e96anukkah", "πρωΐ"]
    assert text.words("H\u0331anukkah ΠΡΩΪ\u0301") == text.words("h\u0331anukkah πρωϊ\u0301") == expected
    twice = [char for char in map(chr, range(0x110000)) if unicodedata.normalize("NFC", char.upper().lower())
             != char.upper().lower()]  # fmt: skip
    assert len(twice) > 20
    for char in twice:
        for given in (char, char.upper(), f"A{char.upper()}b"):
            assert [text.words(word, lower=False) for word in text.words(given)] == [[one] for one in text.words(given)]
            assert text.words(given) == text.words(given.lower())


@pytest.mark.parametrize("language", ["tr", "az", "tr-TR"])
def test_capitals_of_an_i_without_a_dot(language):
    cut = text.tokenizer(language)
    assert cut("ILIK ılık İÇECEK içecek I\u0307yi") == ["ılık", "ılık", "içecek", "içecek", "iyi"]
    assert cut("ILIK İ", lower=False) == ["ILIK", "İ"] and cut("") == []
    assert text.stemmed(cut("KITAPLARI"), language) == text.stemmed(["kıtapları"], language)
    assert corpus_words.count([("ILIK", "ILIK")], (language, "en")).words == ["ilik", "ılık"]


def test_words_shares_equal_strings():
    one, two = text.words("shared"), text.words("SHARED")
    assert one[0] is two[0]


def test_japanese_needs_and_uses_a_segmenter():
    pytest.importorskip("fugashi", reason="the optional Japanese segmenter is not installed")
    pytest.importorskip("unidic_lite", reason="the optional Japanese dictionary is not installed")
    tokens = text.words_ja("文書の類似度を測る。\n\nJavaScript です！")
    assert "文書" in tokens and "javascript" in tokens
    assert "。" not in tokens and "！" not in tokens
    assert len(tokens) > 6
    assert text.words_ja("") == []
    assert text.tokenizer("ja") is text.words_ja and text.tokenizer("es") is text.words


@pytest.mark.parametrize(
    ("language", "given", "expected"),
    [
        ("zh", "机器学习，JAX 2.0！", ["机器", "器学", "学习", "jax", "2", "0"]),
        ("zh-TW", "我", ["我"]),
        ("zh", "", []),
        ("th", "ที่นี่ ok", ["ที่นี่", "ok"]),
        ("my", "မြန်မာ", ["မြန်", "န်မာ"]),
    ],
)
def test_scripts_without_spaces_are_cut_into_pairs_of_letters(language, given, expected):
    assert text.tokenizer(language)(given) == expected


def test_a_document_has_a_term_however_often_it_occurs_there():
    counts = sp.csr_matrix((np.array([1.0, 0.0, 3.0, 1.0]), [0, 1, 0, 2], [0, 3, 4]), shape=(2, 4))
    assert weightings.document_frequency(counts).tolist() == [2, 0, 1, 0]


@pytest.mark.parametrize("wrong", ["english", "", "EN", "e", "en es", "zz", "xx-DE"])
def test_what_is_no_language_code_is_refused(wrong):
    expected = f"language: expected a code of ISO 639 in lower case, such as en, es or pt-BR, got '{wrong}'"
    with pytest.raises(ValueError, match=expected):
        text.tokenizer(wrong)
    # These would be cut at spaces in silence, or keep stop words and endings.
    for code, meant in (("jp", "ja"), ("cn", "zh"), ("zho-Hans", "zh"), ("eng", "en"), ("ger-AT", "de"), ("nob", "nb")):
        with pytest.raises(ValueError, match=f"language: expected {meant}, got '{code}'"):
            text.tokenizer(code)
    with pytest.raises(ValueError, match="language: expected a code such as en, got None"):
        text.tokenizer(None)
    assert text.tokenizer("ast") is text.tokenizer("nn-NO") is text.words


@pytest.mark.parametrize(("given", "expected"), [
    ("soft\u00adware", ["software"]), ("\u00ad", []), ("a \u00ad b", ["a", "b"]),
    ("e\u00ad\u0301t\u00e9", ["\u00e9t\u00e9"]),
    ("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", ["\u0645\u06cc\u062e\u0648\u0627\u0647\u0645"]),
    ("\u0915\u094d\u200d\u0937", ["\u0915\u094d\u0937"]), ("no\u2060break", ["nobreak"]),
    ("zero\u200bwidth", ["zero", "width"]),
    ("SOF\u00adT\u03a3\u00ad", ["soft\u03c2"]),
])  # fmt: skip
def test_how_a_word_is_drawn_does_not_cut_it(given, expected):
    assert text.words(given) == text.pieces(given) == expected


def test_languages_with_stop_words_or_a_stemmer_are_not_taken_by_their_longer_codes():
    meant = set(tokens._MEANT.values())
    assert set(stemming._STEMMERS) <= meant and set(stop_words.LANGUAGE_MAPPING) <= meant
    assert not set(tokens._MEANT) & tokens._TWO_LETTERS


@pytest.mark.parametrize("code", ["no", "nb", "nn", "nn-NO"])
def test_norwegian_by_each_of_its_codes(code):
    stop = text.stop_words(code)
    kept = [stem for word, stem in text.with_stems("det er bilene og husene", code) if word not in stop]
    assert kept == ["bil", "hus"]


@pytest.mark.parametrize("opened", ["{{", "<!--", "<pre>", "{*", "<pre", "```\n", "`a ``b ", "[!code[", "](", "<a "])
def test_prose_of_what_is_never_closed_takes_time_in_proportion(opened):
    begun = time.perf_counter()  # 12 s and more where every open mark looks for its end, .04 s where it does not
    text.prose(opened * 40_000)
    assert time.perf_counter() - begun < 5


@pytest.mark.parametrize(("opened", "end"), [("<pre ", "</pre>"), ("[!INCLUDE[", "]"), ("[!INCLUDE", "]"),
                                             ("[!code[a\n", "]")])
def test_prose_of_marks_that_one_end_closes_takes_time_in_proportion(opened, end):
    page = opened * 400_000  # minutes where every open mark looks for the end
    assert text.prose(page + end) == page + (" " if end == "</pre>" else end)


def test_missing_segmenter_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "fugashi", None)
    tokens._japanese_tagger.cache_clear()
    with pytest.raises(ImportError, match=r"pip install 'jaxsim-text\[ja\]'"):
        text.words_ja("文書")
    tokens._japanese_tagger.cache_clear()


@pytest.mark.parametrize(
    ("page", "kept"),
    [
        ("---\ntitle: 'A title'\nslug: Web/A\n---\nBody", "A title Body"),
        ("---\r\ntitle: A title\r\n---\r\nBody", "A title Body"),
        ("---\ntitle: English\nlocaleTitle: Título\n---\nCuerpo", "Título Cuerpo"),
        ("---\ntitle: >-\n  long\n  title\nslug: x\n---\nBody", "long title Body"),
        ("---\nslug: x\n---\nBody", "Body"),
        ("Rule\n\n---\ntitle: no front matter\n---\n", "Rule --- title: no front matter ---"),
        ("a\n```js\nlet leak = 1;\n```\nb", "a b"),
        ("a\n~~~\nleak\n~~~\nb", "a b"),
        ("- ```\n  leak\n  ```\nb", "b"),
        ("a\n````\n```\nleak\n```\n````\nb", "a b"),
        ("a\n```js\nnever closed leak", "a"),
        ("a <PRE class=x>leak\nleak</pre> b", "a b"),
        ("call `leak()` now", "call now"),
        ("call ``leak ` leak`` now", "call now"),
        ("one ` alone stays", "one ` alone stays"),
        ("<p class='leak'>Some <b>bold</b></p><!-- leak -->", "Some bold"),
        ("if 3 < 4 and 5 > 4", "if 3 < 4 and 5 > 4"),
        ("see [the guide](/leak/page(1) 'leak') here", "see [the guide] here"),
        ("(not a target)", "(not a target)"),
        ('text {{domxref("leak")}} more', "text more"),
        ("see https://leak.example/leak?q=1 and www.leak.example now", "see and now"),
        ("see <https://leak.example> now", "see now"),
        ("", ""),
    ],
)
def test_prose_keeps_only_prose(page, kept):
    assert " ".join(text.prose(page).split()) == kept


def test_vocabulary_rule_and_its_independence_of_order(rng):
    documents = [["the"] * 5 + ["b", "a"], ["the", "a", "b", "c"], ["the", "c", "c", "rare"], []]
    vocabulary = text.Vocabulary.build(documents, drop_top=1, max_terms=3)
    assert vocabulary.terms == ("c", "a", "b")
    np.testing.assert_array_equal(vocabulary.df, [2, 2, 2])
    assert vocabulary.num_docs == 4 and len(vocabulary) == 3
    assert vocabulary.index == {"c": 0, "a": 1, "b": 2}
    shuffled = [random.Random(0).sample(d, len(d)) for d in (documents[i] for i in rng.permutation(4))]
    assert text.Vocabulary.build(shuffled, drop_top=1, max_terms=3).terms == vocabulary.terms
    assert text.Vocabulary.build(documents, drop_top=0, max_terms=9, min_df=2).terms == ("the", "c", "a", "b")


def test_defaults_drop_fifty_and_keep_twenty_thousand():
    documents = [[f"w{i:05d}" for i in range(20_100)], [f"w{i:05d}" for i in range(50)]]
    vocabulary = text.Vocabulary.build(documents)
    assert len(vocabulary) == 20_000
    assert vocabulary.terms[0] == "w00050" and vocabulary.terms[-1] == "w20049"


@pytest.mark.parametrize("setting", ["drop_top", "max_terms", "min_df"])
@pytest.mark.parametrize("wrong", [-1, 2.5, np.nan])
def test_vocabulary_refuses_settings_that_are_no_counts(setting, wrong):
    with pytest.raises(ValueError, match=f"{setting}: expected .*, got {wrong}"):
        text.Vocabulary.build([["a"]], **{setting: wrong})


def test_a_string_is_no_document():
    with pytest.raises(ValueError, match="token_lists: expected a list of words for each document, got a string"):
        text.Vocabulary.build(["one two"])
    with pytest.raises(ValueError, match="token_lists: expected"):
        text.counts(["one two"], text.Vocabulary.build([["one"]], drop_top=0))


def test_counts_ignore_unseen_words_and_keep_empty_rows():
    vocabulary = text.Vocabulary(("a", "b"), np.array([1, 1]), 2)
    matrix = text.counts([["b", "a", "b"], [], ["new"]], vocabulary)
    np.testing.assert_array_equal(matrix.toarray(), [[1, 2], [0, 0], [0, 0]])
    assert matrix.dtype == np.float32 and matrix.has_canonical_format


def test_an_empty_vocabulary_and_no_documents_are_legal():
    empty = text.Vocabulary.build([["a"]], drop_top=50)
    matrix = text.counts([["a"], []], empty)
    assert matrix.shape == (2, 0)
    assert text.log_tf_idf(matrix, empty.df, empty.num_docs).shape == (2, 0)
    nothing = text.Vocabulary.build([])
    assert nothing.num_docs == 0 and text.counts([], nothing).shape == (0, 0)
    assert text.bm25(matrix, empty.df, 0, average_length=0.0).shape == (2, 0)


COUNTS = np.array([[3.0, 0.0, 1.0], [0.0, 2.0, 1.0], [0.0, 0.0, 0.0]])
DF = np.array([1, 2, 4])


def test_weightings_follow_the_papers():
    def each(weigh):
        return [[weigh(tf, df, sum(row)) if tf else 0.0 for tf, df in zip(row, DF, strict=True)] for row in COUNTS]

    def okapi(tf, df, length):
        return math.log(1 + (4 - df + 0.5) / (df + 0.5)) * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / 3.5))

    sparse = sp.csr_matrix(COUNTS)
    result = (
        text.tf_idf(sparse, DF, 4),
        text.log_tf_idf(sparse, DF, 4),
        text.bm25(sparse, DF, 4, average_length=3.5),
    )
    expected = (
        each(lambda tf, df, _: tf * math.log(4 / df)),
        each(lambda tf, df, _: math.log2(tf + 1) * math.log2(4 / df)),
        each(okapi),
    )
    for one, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(one.toarray(), other, rtol=1e-6)
        assert one.dtype == np.float32
    np.testing.assert_array_equal(sparse.toarray(), COUNTS)


def test_a_term_no_training_document_has_weighs_nothing():
    weighted = text.log_tf_idf(sp.csr_matrix([[2.0, 1.0]]), np.array([0, 1]), 2)
    np.testing.assert_allclose(weighted.toarray(), [[0.0, 1.0]])


@pytest.mark.parametrize("weigh", [text.tf_idf, text.log_tf_idf, lambda *a: text.bm25(*a, average_length=1.0)])
def test_weightings_refuse_what_are_no_counts(weigh):
    with pytest.raises(ValueError, match="counts: expected no negative numbers"):
        weigh(sp.csr_matrix([[-1.0]]), np.array([1]), 1)
    with pytest.raises(ValueError, match="counts: expected finite numbers"):
        weigh(sp.csr_matrix([[np.nan]]), np.array([1]), 1)
    with pytest.raises(ValueError, match=r"df: expected one number a term, shape \(1,\), got \(2,\)"):
        weigh(sp.csr_matrix([[1.0]]), np.array([1, 1]), 1)
    with pytest.raises(ValueError, match=r"df: expected numbers in 0 \.\.\. num_docs = 1"):
        weigh(sp.csr_matrix([[1.0]]), np.array([2]), 1)


def test_bm25_settings_are_checked():
    one = sp.csr_matrix([[1.0]])
    for setting in ({"k1": -1.0}, {"b": 1.5}, {"average_length": 0.0}):
        with pytest.raises(ValueError, match=f"{next(iter(setting))}: expected"):
            text.bm25(one, np.array([1]), 1, **{"average_length": 1.0, **setting})


def test_texts_of_scripts_without_spaces_are_known_unless_they_are_cut():
    code = text.language_of
    assert [code([one]) for one in ("飞机的机翼", "飛行機の翼について", "ปีกเครื่องบิน", "ປີກ", "ស្លាប", "လေယာဉ်")] == [
        "zh", "ja", "th", "lo", "km", "my"]
    cut = "飞机 的 机翼 在 空气 中"
    for plain in ([], [""], ["a wing", "1 2 3"], [cut], ["한국어 문장 學校"], ["a long text about 机"]):
        assert code(plain) is None
    assert code(["机翼", "飞机"]) == "zh"  # two texts, no space between them
