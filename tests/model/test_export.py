"""Exported folders: their tokenizer, their layout, and the same cosines in the tools that read them.

The layout and the tokenizer need `tokenizers` alone; sentence-transformers, model2vec and gensim are asked where they
are installed (``pip install -e '.[peers]'``), and skipped by name where they are not.
"""

from __future__ import annotations

import dataclasses
import json
import random
import re
import sys
import time
import unicodedata

import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file

from jaxsim import text
from jaxsim.data import docstrings
from jaxsim.evaluate import mates
from jaxsim.methods.projections import Projection
from jaxsim.model import Model, export, parts, rounding
from jaxsim.sparse import Vectors
from jaxsim.text.subwords import Subwords
from jaxsim.train import Settings, train

CHARS = [chr(code) for code in range(sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
UNICODE = (
    "Élan vital, café crème",
    unicodedata.normalize("NFD", "Élan vital, café crème"),
    "İstanbul ILIK ısı I i İ",
    "STRASSE Straße ẞ ﬁn",
    "ΟΔΥΣΣΕΥΣ Σίσυφος ΣΑΣ Σ. Α.Σ ΑΣ.Α 'ΑΣ' ΑΣ\u0301 Ὀδυσσεύς",
    "文書の類似度 テキスト 类似 ﾃｷｽﾄ",
    "한국어 " + unicodedata.normalize("NFD", "한국어 텍스트"),
    "हिन्दी पाठ ไทย עברית العربية",
    "emoji 🙂👩‍👩‍👧 e🙂f 🇮🇹",
    "x_1 __init__ _ 3.14 ½ ² Ⅷ ⅷ ٣ 10km",
    "tab\tline\nreturn\rnul\0soft\u00adhyphen\u200bzero\ufeffbom",
    "O'Neill can’t l·l ǅ ǆ Ⴀ Ა Ꭰ ꭰ 𐐀 𝐀 Ⓐ ａｂＣ",
    "Ångström Å Ω Ω K ſ ŉ ǰ ΐ",
    "H\u0331anukkah ΠΡΩΪ\u0301 J\u030c Α\u0342",
    "",
    "   …!?",
    "café café café straße",
)


@pytest.fixture(scope="module")
def tokenizers():
    return pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def pairs():
    return docstrings.load().take(range(1200))


@pytest.fixture(scope="module")
def trained(pairs):
    return train(pairs.take(range(600)), Settings(method="opca", dim=30, weighting="tf_idf", subwords=0))


@pytest.fixture(scope="module")
def polyglot():
    """Random weights for the words of `UNICODE`."""
    words = text.Vocabulary.build(map(text.words, UNICODE), drop_top=0)
    weights = np.random.default_rng(0).standard_normal((len(words), 12)).astype(np.float32)
    return Model(words, Projection(jnp.asarray(weights)), "tf_idf")


@pytest.fixture(params=["trained", "polyglot"])
def case(request, pairs):
    """A model, texts for it, and their cosines."""
    model = request.getfixturevalue(request.param)
    texts = [*UNICODE, "zzqx qqzx", *(pairs.right[600:700] if request.param == "trained" else ())]
    return model, texts, model.similarity(texts, texts)


@pytest.fixture
def two_sided(polyglot):
    other = Projection(polyglot.params.weights[:, ::-1] * 2)
    return Model(polyglot.vocabulary, (polyglot.params, other), "tf_idf", languages=("en", "it"), method="cca")


def cosines(left, right=None):
    left, right = (np.asarray(side, np.float64) for side in (left, left if right is None else right))
    unit = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-30) for side in (left, right)]
    return unit[0] @ unit[1].T


def averages(tokenizers, folder, name, texts):
    """Means of word vectors by a folder's own tokenizer and table, as the tools make them."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    table = load_file(folder / "model.safetensors")[name]
    ids = [encoded.ids for encoded in tokenizer.encode_batch(texts, add_special_tokens=False)]
    return np.stack([table[one].mean(0) if one else np.zeros(table.shape[1]) for one in ids])


@pytest.mark.parametrize("weighting", ["tf", "tf_idf", "log_tf_idf"])
def test_a_row_is_the_vector_of_its_word_alone(polyglot, weighting):
    model = Model(polyglot.vocabulary, polyglot.params, weighting)
    (table,) = export.rows(model)
    assert table.dtype == np.float32
    np.testing.assert_array_equal(table, model.encode(list(model.vocabulary.terms)))


@pytest.fixture(scope="module")
def tokenizer_file(tokenizers, polyglot, tmp_path_factory):
    folder = tmp_path_factory.mktemp("cut") / "out"
    export.export(polyglot, "model2vec", folder)
    return folder / "tokenizer.json"


@pytest.fixture(scope="module")
def cut(tokenizers, tokenizer_file):
    tokenizer = tokenizers.Tokenizer.from_file(str(tokenizer_file))
    normalize, split = tokenizer.normalizer.normalize_str, tokenizer.pre_tokenizer.pre_tokenize_str
    return lambda one: [word for word, _ in split(normalize(one))]


def reordered(cut, char):
    """Whether the package knows a mark's combining class (the docstring of the module says which it does not)."""
    return cut(f"a{char}\u0301b") == text.words(f"a{char}\u0301b")


def test_the_tokenizer_cuts_as_text_words(cut):
    assert [cut(one) for one in UNICODE] == [text.words(one) for one in UNICODE]
    draw = random.Random(0)
    special = "aAbZ'’.:_ΣσςİıǅßÅé\u0301\u0327\u0345\u00ad\u0130ﾞ한ᄒ\u11ab 1½Ⅷ"
    chars = [char for char in CHARS if unicodedata.category(char) not in ("Cn", "Co")]
    wrong = []
    for _ in range(3000):
        one = "".join(draw.choice(special if draw.random() < 0.6 else chars) for _ in range(12))
        if cut(one) != text.words(one) and all(reordered(cut, char) for char in one):
            wrong.append(one)
    assert not wrong


@pytest.mark.programs
def test_the_tokenizer_cuts_as_text_words_around_every_character(cut):
    strings = [f"x{c}b {c} A{c}Σ{c}b Σ{c}." for c in CHARS]
    assert not [hex(ord(one[1])) for one in strings if cut(one) != text.words(one)]


def test_no_more_marks_are_left_in_place_than_the_docstring_says(cut):
    if unicodedata.unidata_version != "14.0.0":
        pytest.skip(f"counted for Unicode 14, Python 3.11; this is {unicodedata.unidata_version}")
    marks = [c for c in CHARS if unicodedata.combining(c)]
    assert sum(not reordered(cut, mark) for mark in marks) <= 51


# What Oniguruma and JavaScript (with the flag u) read alike: groups, lookarounds, classes of literal characters alone,
# quantifiers that may be lazy. Anchors and the point are not in it: they take other line ends.
ESCAPED = r"\\[\^$\\.*+?()\[\]{}|/]"
IN_CLASS = rf"(?:{ESCAPED}|\\-|[^\\\[\]&])"
ATOM = rf"(?:{ESCAPED}|\[\^?{IN_CLASS}+\]|[^\\^$.*+?()\[\]{{}}|])"
SHARED = re.compile(rf"(?:\((?:\?(?:[:=!]|<[=!]))?|\||(?:\)|{ATOM})(?:(?:[*+?]|\{{\d+(?:,\d*)?\}})\??)?)*")


@pytest.mark.parametrize("pattern", [
    r"a\KΣ", "a++", "a{2}+", "(?i)a", "(?i:a)", "(?>a)", "(?<n>a)", "[[:alpha:]]", "[a[b]]", "[a&&b]", r"\p{L}", r"\h",
    r"\A", r"\'", "^a", "a.", "a]",
])  # fmt: skip
def test_what_javascript_lacks_or_reads_otherwise_is_seen(pattern):
    assert SHARED.fullmatch(r"(?<![a-c\-]b*)(?:d|\.)+?[^e]{2,}(?=f)") and not SHARED.fullmatch(pattern)


def test_javascript_reads_every_regular_expression_of_the_tokenizer(tokenizer_file):
    settings = json.loads(tokenizer_file.read_text(encoding="utf-8"))
    drawn, composed, *repairs, lower, again = settings["normalizer"]["normalizers"]
    steps = [drawn, *repairs]
    patterns = [one["pattern"]["Regex"] for one in (*steps, settings["pre_tokenizer"])]
    assert composed == again == {"type": "NFC"} and lower == {"type": "Lowercase"}
    assert len(patterns) > 2 and tokenizer_file.read_text(encoding="utf-8").count('"Regex"') == len(patterns)
    assert not [one for one in patterns if not SHARED.fullmatch(one)]
    # Transformers.js replaces with content in which $ is special, and finds added tokens before it cuts a text.
    assert not [one["content"] for one in steps if "$" in one["content"]] and not settings["added_tokens"]


def test_final_sigmas_are_those_of_lower_also_after_long_runs_of_marks(tokenizers, tokenizer_file):
    normalize = tokenizers.Tokenizer.from_file(str(tokenizer_file)).normalizer.normalize_str
    draw = random.Random(0)
    for _ in range(3000):
        runs = [draw.choice("'.:\u00b7") * draw.choice((0, 1, 2, draw.randint(28, 34), 70)) for _ in range(7)]
        one = "".join(draw.choice("AaΣΣσ1 ") + run for run in runs)
        assert normalize(one) == one.lower(), ascii(one)
    begun = time.perf_counter()  # 20 s where every sigma looks back to the start of the text, 0.04 s where it does not
    for one in ("'Σ' " * 20_000, ("\n" + "." * 35 + "Σ1") * 4_000):
        assert normalize(one) == one.lower()
    assert time.perf_counter() - begun < 5


def test_a_sentence_transformers_folder(tokenizers, case, tmp_path):
    model, texts, expected = case
    facts = export.export(model, "sentence-transformers", tmp_path / "out")
    folder = tmp_path / "out"
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md", "config_sentence_transformers.json", export.MARKER, "model.safetensors", "modules.json",
        "tokenizer.json",
    ]  # fmt: skip
    assert json.loads((folder / "config_sentence_transformers.json").read_text())["similarity_fn_name"] == "cosine"
    (module,) = json.loads((folder / "modules.json").read_text())
    assert module["type"].endswith(".StaticEmbedding")
    table = load_file(folder / "model.safetensors")["embedding.weight"]
    assert table.shape == (len(model.vocabulary) + 1, model.dim) and not table[-1].any()
    assert facts == {
        "folder": str(folder), "format": "sentence-transformers", "exact": True, "weighting": "tf_idf",
        "note": "Cosines are those of the model.", "terms": len(model.vocabulary), "dim": model.dim,
        "weights": "float32",
        "paths": {"both": str(folder)},
    }  # fmt: skip
    result = averages(tokenizers, folder, "embedding.weight", texts)
    np.testing.assert_allclose(cosines(result), expected, atol=1e-5)


def test_a_model2vec_folder(tokenizers, case, tmp_path):
    model, texts, expected = case
    export.export(model, "model2vec", tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    assert config["max_length"] is None and config["normalize"] is True
    settings = json.loads((tmp_path / "tokenizer.json").read_text())
    assert settings["truncation"] is None and settings["padding"] is None and not settings["added_tokens"]
    assert settings["post_processor"] is None and settings["model"]["unk_token"] == "[UNK]"
    ids = settings["model"]["vocab"]
    assert ids.pop("[UNK]") == len(ids) and sorted(ids, key=ids.get) == list(model.vocabulary.terms)
    np.testing.assert_allclose(cosines(averages(tokenizers, tmp_path, "embeddings", texts)), expected, atol=1e-5)


def test_word2vec_files(polyglot, two_sided, tmp_path):
    sides = {"query": "query.txt", "document": "document.txt"}
    for model, names in ((polyglot, {"both": "vectors.txt"}), (two_sided, sides)):
        facts = export.export(model, "word2vec", tmp_path)
        assert facts["paths"] == {side: str(tmp_path / name) for side, name in names.items()}
        for path, table in zip(facts["paths"].values(), export.rows(model), strict=True):
            with open(path, encoding="utf-8", newline="\n") as file:
                assert file.readline() == f"{len(model.vocabulary)} 12\n"
                lines = [line.rstrip("\n").split(" ") for line in file]
            assert [line[0] for line in lines] == list(model.vocabulary.terms)
            np.testing.assert_array_equal(np.array([line[1:] for line in lines], np.float32), table)


@pytest.mark.parametrize("sides", ["polyglot", "two_sided"])
def test_weighed_dimensions_are_in_the_table(request, sides, tmp_path, rng):
    weights = rng.uniform(size=12).astype(np.float32)
    model = dataclasses.replace(request.getfixturevalue(sides), agreement=weights, agreement_power=2.0)
    plain, weighed = export.rows(model), model.weighed()
    assert weighed.agreement is None and weighed.training["weighed"] == {"power": 2.0} and weighed.weighed() is weighed
    for side, texts in ((side, list(UNICODE)) for side in ("query", "document")):
        encode = getattr(model, f"encode_{side}")
        expected = np.asarray(model.vectors(texts, side=side, power=2.0).dense)
        np.testing.assert_array_equal(encode(texts, power=2.0), expected)
        np.testing.assert_allclose(getattr(weighed, f"encode_{side}")(texts), expected, rtol=1e-5, atol=1e-5)
    for side, table in zip(plain, export.rows(weighed), strict=True):
        np.testing.assert_allclose(table, side * weights**2, rtol=1e-6)
    told = export.export(weighed, "word2vec", tmp_path)["note"]
    assert told.endswith("agreement to the power 2, for documents about the same thing.") and told in (
        tmp_path / "README.md").read_text()
    assert model.weighed(0) is model


@pytest.mark.parametrize("kind", ["float16", "int8"])
def test_dimensions_of_narrow_weights_are_weighed_without_a_second_rounding(polyglot, kind, tmp_path):
    model = rounding.rounded(dataclasses.replace(polyglot, agreement=np.linspace(0, 1, 12)), kind)
    weighed = model.weighed(1)
    np.testing.assert_allclose(weighed.encode(UNICODE), model.encode(UNICODE, power=1), rtol=1e-5, atol=1e-5)
    assert parts.kind_of(weighed.params.weights) == "float32" and "weights" not in weighed.training
    small = rounding.rounded(weighed, kind)  # what was lost before was measured with other weights of the dimensions
    assert "before" not in small.training["weights"]
    read = Model.load(small.save(tmp_path / "model"))
    np.testing.assert_array_equal(read.encode(UNICODE), small.encode(UNICODE))
    assert read.training["weighed"] == {"power": 1}


def test_dimensions_are_not_weighed_before_an_activation(polyglot):
    model = dataclasses.replace(polyglot, activation="tanh", agreement=np.linspace(0, 1, 12))
    np.testing.assert_allclose(model.encode(UNICODE, power=1), model.encode(UNICODE) * model.agreement, atol=1e-6)
    with pytest.raises(ValueError, match=r"power: expected 0, since .* after its activation \(tanh\), got 1"):
        model.weighed(1)
    for power in (-1, np.nan, np.inf):
        for wrong in (model.weighed, lambda power: model.encode("a", power=power)):
            with pytest.raises(ValueError, match="power: expected a number of at least 0"):
                wrong(power)


@pytest.mark.parametrize("to", ["sentence-transformers", "model2vec"])
def test_two_sides_are_two_folders(tokenizers, two_sided, tmp_path, to):
    facts = export.export(two_sided, to, tmp_path / "out")
    assert facts["paths"] == {side: str(tmp_path / "out" / side) for side in ("query", "document")}
    name = "embedding.weight" if to == "sentence-transformers" else "embeddings"
    left, right = (averages(tokenizers, tmp_path / "out" / side, name, UNICODE) for side in ("query", "document"))
    np.testing.assert_allclose(cosines(left, right), two_sided.similarity(UNICODE, UNICODE), atol=1e-5)
    card = (tmp_path / "out" / "README.md").read_text()
    assert "The query side" in card and "path/to/this/folder/document" in card and 'language: ["en", "it"]' in card
    assert (tmp_path / "out" / "query" / "README.md").is_file()


def test_one_projection_for_two_languages_is_one_folder(polyglot, tmp_path):
    model = Model(polyglot.vocabulary, polyglot.params, "tf", languages=("en", "es"))
    assert list(export.export(model, "word2vec", tmp_path)["paths"]) == ["both"]


def test_an_older_export_is_replaced_whole_and_nothing_else(polyglot, two_sided, tmp_path):
    out = tmp_path / "out"
    for to in ("sentence-transformers", "word2vec"):
        export.export(two_sided, to, out)
    export.export(polyglot, "word2vec", out)
    assert sorted(path.name for path in out.iterdir()) == ["README.md", export.MARKER, "vectors.txt"]
    (out / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match=r"out: expected nothing in .* but the older export .*, got mine.txt"):
        export.export(polyglot, "word2vec", out)
    assert (out / "mine.txt").read_text() == "mine"
    saved = polyglot.save(tmp_path / "model")
    before = sorted(path.name for path in saved.iterdir())
    with pytest.raises(ValueError, match="out: expected a new folder, or one that holds an older export of ours"):
        export.export(polyglot, "word2vec", saved)
    assert sorted(path.name for path in saved.iterdir()) == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "out"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"params": None}, r"model: expected one with a projection, got bare term weights"),
        ({"params": Projection(jnp.array([[1.0], [jnp.nan]]))}, r"model.params: expected finite weights"),
        ({"activation": "tanh"}, r"model.activation: expected none .*, got tanh"),
        ({"languages": ("en", "ja")}, r"model: expected languages whose words are .*, got ja"),
        ({"vocabulary": ("two words", "b")}, r"model.vocabulary: expected words as .*, got 'two words'"),
        ({"vocabulary": ("b", "b")}, r"model.vocabulary: expected every word once"),
    ],
)
def test_what_no_table_can_hold_is_refused(changes, message, tmp_path):
    given = {"vocabulary": ("a", "b"), "params": Projection(jnp.ones((2, 1)))} | changes
    given["vocabulary"] = text.Vocabulary(given["vocabulary"], np.array([1, 1]), 2)
    with pytest.raises(ValueError, match=message):
        export.export(Model(**given), "word2vec", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_activation_with_ngrams_is_in_no_graph(tmp_path):
    grams = Subwords(("abc",), np.ones(1), 0.5)
    model = Model(text.Vocabulary(("a", "b"), np.array([1, 1]), 2), Projection(jnp.ones((3, 1))), activation="tanh",
                  subwords=grams)  # fmt: skip
    with pytest.raises(ValueError, match=r"model: expected an activation or n-grams .*, not both .*, got both"):
        export.export(model, "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_capitals_are_lowered_as_in_the_language_of_the_side(tokenizers, two_sided, tmp_path):
    model = dataclasses.replace(two_sided, languages=("tr", "en"))
    given = [*UNICODE, "I\u0307yi Iğdır"]
    for to in ("model2vec", "sentence-transformers"):
        export.export(model, to, tmp_path / to)
        for side, language in (("query", "tr"), ("document", "en")):
            tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / to / side / "tokenizer.json"))
            expected = [[model.vocabulary.index.get(word, len(model.vocabulary)) for word in cut]
                        for cut in map(text.tokenizer(language), given)]
            assert [encoded.ids for encoded in tokenizer.encode_batch(given)] == expected


def test_one_tokenizer_for_languages_that_lower_otherwise_is_refused(polyglot, tmp_path):
    model = dataclasses.replace(polyglot, languages=("en", "tr"))
    with pytest.raises(ValueError, match="model: expected a projection for each language, .*, got en, tr"):
        export.export(model, "model2vec", tmp_path / "out")
    assert export.export(model, "word2vec", tmp_path / "out")["terms"] == len(model.vocabulary)


def test_other_formats_and_a_missing_package_are_refused(polyglot, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="to: expected one of sentence-transformers, .*, onnx, got fasttext"):
        export.export(polyglot, "fasttext", tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ImportError, match=r"pip install 'jaxsim-text\[export\]'"):
        export.export(polyglot, "model2vec", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    export.export(polyglot, "word2vec", tmp_path / "out")


def test_how_far_an_average_is_from_log_tf_idf(pairs):
    """The figures of docs/export.md: run with ``-s`` to see them."""
    model = train(pairs.take(range(600)), Settings(method="opca", dim=30, weighting="log_tf_idf", subwords=0))
    test = pairs.take(range(600, 1200))

    def bags(texts):
        return Vectors(dense=jnp.asarray(text.counts(map(text.words, texts), model.vocabulary) @ export.rows(model)[0]))

    ours, theirs = model.similarity(test.left, test.right), cosines(bags(test.left).dense, bags(test.right).dense)
    correlation = np.corrcoef(ours.ravel(), theirs.ravel())[0, 1]
    mrr = [mates.scores(*sides)["mrr"] for sides in (
        (model.vectors(test.left, side="query"), model.vectors(test.right)), (bags(test.left), bags(test.right)))]
    print(f"\ncorrelation {correlation:.4f}, mean difference {np.abs(ours - theirs).mean():.4f}, "
          f"largest {np.abs(ours - theirs).max():.3f}, MRR {mrr[0]:.4f} (model) {mrr[1]:.4f} (export)")
    assert correlation > 0.95 and abs(mrr[0] - mrr[1]) < 0.02


def test_log_tf_idf_is_told_and_exact_where_words_occur_once(polyglot, tokenizers, tmp_path):
    model = Model(polyglot.vocabulary, polyglot.params, "log_tf_idf")
    facts = export.export(model, "model2vec", tmp_path)
    assert facts["exact"] is False and "log2(tf + 1) became tf" in facts["note"]
    assert facts["note"] in (tmp_path / "README.md").read_text()
    assert json.loads((tmp_path / export.MARKER).read_text())["exact"] is False
    once = [one for one in UNICODE if len(set(text.words(one))) == len(text.words(one))]
    result = cosines(averages(tokenizers, tmp_path, "embeddings", once))
    np.testing.assert_allclose(result, model.similarity(once, once), atol=1e-5)
    repeated = averages(tokenizers, tmp_path, "embeddings", [UNICODE[-1], "café straße"])
    assert abs(cosines(repeated)[0, 1] - model.similarity(UNICODE[-1], "café straße")) > 1e-3


def test_sentence_transformers_reads_the_folder(tokenizers, case, tmp_path):
    library = pytest.importorskip("sentence_transformers")
    model, texts, expected = case
    export.export(model, "sentence-transformers", tmp_path)
    loaded = library.SentenceTransformer(str(tmp_path), device="cpu")
    result = loaded.encode(texts, show_progress_bar=False)
    np.testing.assert_allclose(cosines(result), expected, atol=1e-5)
    np.testing.assert_allclose(loaded.similarity(result, result).numpy(), expected, atol=1e-5)
    assert not loaded.encode(["", ""], show_progress_bar=False).any()


def test_model2vec_reads_the_folder(tokenizers, case, tmp_path):
    library = pytest.importorskip("model2vec")
    model, texts, expected = case
    export.export(model, "model2vec", tmp_path)
    loaded = library.StaticModel.from_pretrained(tmp_path)
    result = loaded.encode(texts)
    np.testing.assert_allclose(result @ result.T, expected, atol=1e-5)
    long = [" ".join([texts[0]] * 300 + [texts[5]] * 300), texts[4], texts[5]]
    np.testing.assert_allclose(cosines(loaded.encode(long)), model.similarity(long, long), atol=1e-5)


def test_model2vec_reads_both_sides(tokenizers, two_sided, tmp_path):
    library = pytest.importorskip("model2vec")
    paths = export.export(two_sided, "model2vec", tmp_path)["paths"]
    left, right = (library.StaticModel.from_pretrained(paths[side]).encode(UNICODE) for side in ("query", "document"))
    np.testing.assert_allclose(left @ right.T, two_sided.similarity(UNICODE, UNICODE), atol=1e-5)


def test_gensim_reads_the_file(case, tmp_path):
    gensim = pytest.importorskip("gensim.models")
    model, texts, expected = case
    facts = export.export(model, "word2vec", tmp_path)
    loaded = gensim.KeyedVectors.load_word2vec_format(facts["paths"]["both"])
    assert tuple(loaded.index_to_key) == model.vocabulary.terms
    zero = np.zeros((1, model.dim))
    sums = [np.sum([zero[0], *(loaded[word] for word in text.words(one) if word in loaded)], 0) for one in texts]
    np.testing.assert_allclose(cosines(sums), expected, atol=1e-5)
