"""`Model`: the same vectors as the rooms below give, for any texts, before and after a save."""

from __future__ import annotations

import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim import Model, sparse, text
from jaxsim.methods import projections
from jaxsim.methods.projections import Projection
from jaxsim.model import folders
from jaxsim.sparse import Vectors
from jaxsim.text.subwords import Subwords

TEXTS = ["The cat and the DOG", "", "unseen words only", "cat cat cat", "É é e\u0301", "日本 cat"] * 3
WORDS = text.Vocabulary(("the", "cat", "dog", "é", "日本"), np.array([9, 3, 3, 2, 1]), 10)


@pytest.fixture
def model(rng):
    return Model(WORDS, Projection(jnp.asarray(rng.normal(size=(5, 4)), jnp.float32)), method="s2net")


@pytest.mark.parametrize("batch_size", [1, 4, 5, 100])
@pytest.mark.parametrize("weighting", ["log_tf_idf", "tf_idf", "tf"])
@pytest.mark.parametrize("activation", ["none", "tanh", "sigmoid"])
def test_encode_is_the_projection_of_the_weighted_counts(model, batch_size, weighting, activation):
    model = Model(WORDS, model.params, weighting, activation)
    weigh = {"log_tf_idf": text.log_tf_idf, "tf_idf": text.tf_idf, "tf": lambda counts, df, num_docs: counts}
    rows = weigh[weighting](text.counts([text.words(one) for one in TEXTS], WORDS), WORDS.df, WORDS.num_docs)
    rows = rows if activation == "none" else text.unit_rows(rows)
    expected = rows.toarray() @ np.asarray(model.params.weights)
    bend = {"none": lambda x: x, "tanh": np.tanh, "sigmoid": lambda x: 1 / (1 + np.exp(-x))}[activation]
    result = model.encode(TEXTS, batch_size=batch_size)
    assert result.dtype == np.float32 and result.shape == (18, 4)
    known = np.diff(rows.indptr) > 0
    np.testing.assert_allclose(result, np.where(known[:, None], bend(expected), 0), atol=1e-5)
    assert not known.all() and not result[~known].any()
    np.testing.assert_array_equal(result[2], result[1])


def test_a_model_is_shown_in_a_line(model):
    assert repr(model) == "Model(method='s2net', terms=5, dim=4, languages=('en', 'en'))"
    assert repr(Model(WORDS, None)) == "Model(method='unknown', terms=5, languages=('en', 'en'))"


def test_one_text_none_and_unit_length(model):
    assert model.encode("cat").shape == (4,) and model.encode([]).shape == (0, 4)
    assert model.encode(one for one in ("cat", "dog")).shape == (2, 4)
    lengths = np.linalg.norm(model.encode(TEXTS, normalize=True), axis=1)
    np.testing.assert_allclose(lengths[:4], [1, 0, 0, 1], atol=1e-6)
    assert model.similarity("cat", "cat dog").shape == () and model.similarity(["cat"], "dog").shape == (1,)
    assert model.similarity([], ["cat"]).shape == (0, 1) and model.similarity("cat", []).shape == (0,)
    assert float(model.similarity("cat", "")) == 0


def test_rounding_brings_no_cosine_above_one(rng):
    words = text.Vocabulary(tuple("abcdefgh"), np.full(8, 2), 9)
    model = Model(words, Projection(jnp.asarray(rng.normal(size=(8, 50)), jnp.float32)))
    texts = [" ".join(rng.choice(words.terms, 3)) for _ in range(200)]
    vectors = model.vectors(texts)
    assert np.asarray(model.scorer(vectors, vectors)(np.arange(200))).max() > 1
    assert model.similarity(texts, texts).max() == 1
    scores, rows = model.search(texts, vectors, k=5)
    assert scores.max() == 1 and scores.dtype == np.float32 and rows.dtype == np.int64
    ties = scores[:, 1:] == scores[:, :-1]
    assert (scores[:, 1:] <= scores[:, :-1]).all() and (rows[:, 1:] > rows[:, :-1])[ties].all()


def test_similarity_and_search_are_cosines(model):
    units = model.encode(TEXTS, normalize=True)
    np.testing.assert_allclose(model.similarity(TEXTS, TEXTS), units @ units.T, atol=1e-6)
    scores, indices = model.search(["cat"], model.vectors(TEXTS), k=3)
    assert indices[0, 0] == 3 and scores[0, 0] == pytest.approx(1)  # ties: the lower index first


def test_two_sides(model, tmp_path):
    two = Model(WORDS, (model.params, Projection(-model.params.weights)), languages=("en", "es"))
    np.testing.assert_array_equal(two.encode_query(TEXTS), -two.encode_document(TEXTS))
    assert two.two_sided and float(two.similarity("cat", "cat")) == pytest.approx(-1)
    with pytest.raises(ValueError, match="encode_query, encode_document"):
        two.encode(TEXTS)
    again = Model.load(two.save(tmp_path / "two"))
    np.testing.assert_array_equal(again.encode_query(TEXTS), two.encode_query(TEXTS))
    assert again.languages == ("en", "es")


def test_bare_term_weights_are_sparse(tmp_path):
    model = Model(WORDS, None)
    vectors = model.vectors(TEXTS)
    assert isinstance(vectors, Vectors) and vectors.dense is None and model.dim == 5
    assert float(model.similarity("cat dog", "dog cat")) == pytest.approx(1)
    with pytest.raises(ValueError, match="one with a projection"):
        model.encode(TEXTS)
    again = Model.load(model.save(tmp_path / "m"))
    np.testing.assert_array_equal(sparse.to_scipy(again.vectors(TEXTS).sparse).toarray(),
                                  sparse.to_scipy(vectors.sparse).toarray())


def test_a_saved_model_is_the_same_bit_for_bit_and_tells_its_training(model, tmp_path):
    training = {"dev": {"mrr": 0.5}, "pairs": 7, "history": {"step": [0]}}
    facts = Model(WORDS, model.params, activation="tanh", method="s2net", training=training)
    again = Model.load(facts.save(tmp_path / "m"))
    np.testing.assert_array_equal(again.encode(TEXTS), facts.encode(TEXTS))
    assert again.training == facts.training and again.method == "s2net" and again.activation == "tanh"
    card = (tmp_path / "m" / folders.CARD).read_text()
    assert "s2net, 4 dimensions" in card and "- dev: mrr 0.5" in card and "history" not in card


def test_projections_from_the_rooms_below_agree(model):
    rows = sparse.from_scipy(model.term_vectors(TEXTS))
    np.testing.assert_allclose(model.encode(TEXTS), projections.encode(model.params, rows).dense, atol=1e-6)


@pytest.mark.parametrize(("call", "message"), [
    (lambda m: m.encode(["a", 3]), "texts: expected strings, got an int"),
    (lambda m: m.similarity(None, "a"), "texts: expected a list of strings, got NoneType"),
    (lambda m: m.encode(["a"], batch_size=0), "batch_size: expected a whole number of at least 1, got 0"),
    (lambda m: m.vectors("one"), "texts: expected a list of strings, got one string"),
    (lambda m: m.vectors(["one"], side="left"), "side: expected 'query' or 'document', got left"),
    (lambda m: Model(WORDS, m.params, "bm25"), "weighting: expected one of log_tf_idf, tf_idf, tf, got bm25"),
    (lambda m: Model(WORDS, m.params, activation="relu"), "activation: expected one of none, tanh, .*got relu"),
    (lambda m: Model(WORDS, Projection(jnp.ones((4, 2)))), r"params: expected weights of 5 terms .* got \(4, 2\)"),
    (lambda m: Model(WORDS, (m.params, Projection(jnp.ones((5, 3))))), "params: expected two sides of .*, got 4 and 3"),
    (lambda m: Model(WORDS, m.params, languages=("eng", "en")), "languages: language: expected en, got 'eng'"),
    (lambda m: Model(WORDS, m.params, languages=("en", None)), "languages: language: expected a code such as en, got"),
])
def test_bad_arguments_are_refused(model, call, message):
    with pytest.raises(ValueError, match=message):
        call(model)


def test_a_folder_that_lacks_a_setting_is_refused(model, tmp_path):
    folder = folders.save(tmp_path / "m", tensors={"weights": np.ones((5, 2))}, config={},
                          vocabulary=WORDS.terms, card="")
    with pytest.raises(ValueError, match="expected a model with 'num_docs', got one without"):
        Model.load(folder)


def with_(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


@pytest.mark.parametrize(("change", "message"), [
    ({"weights": lambda w: with_(w, (2, 1), np.nan)}, "weights: expected finite values, got NaN or infinity"),
    ({"weights": lambda w: with_(w, (4, 3), -np.inf)}, "weights: expected finite values, got NaN or infinity"),
    ({"weights": lambda w: w[:, 0]}, r"weights: expected .* of shape \(any, any\), got float32 of shape \(5,\)"),
    ({"weights": lambda w: w.astype(np.int64)}, r"weights: expected float32 .* got int64"),
    ({"df": lambda df: with_(df, 1, 11)}, "df: expected numbers of documents, from 0 to 10"),
    ({"df": lambda df: with_(df, 1, -1)}, "df: expected numbers of documents, from 0 to 10"),
    ({"df": lambda df: df.astype(float)}, "df: expected int64 of shape"),
    ({"df": lambda df: df[:4]}, "df: expected one number for each of 5 words, got 4"),
    ({"words": lambda words: [*words[:4], words[0]]}, "vocabulary.json: expected every word once"),
    ({"words": lambda words: [*words[:4], 7]}, "vocabulary.json: expected a list of words"),
    ({"words": lambda words: {"the": 0}}, "expected one number for each of 1 words, got 5"),
    ({"languages": lambda _: ["en", ["en"]]}, "config.json: languages: expected strings"),
    ({"languages": lambda _: "en"}, "config.json: languages: expected list, got str"),
    ({"weighting": lambda _: ["tf"]}, "config.json: weighting: expected str, got list"),
    ({"num_docs": lambda _: 2.5}, "config.json: num_docs: expected a whole number"),
    ({"subwords": lambda _: 10**400}, "config.json: subwords: expected a number, or nothing"),
    ({"num_docs": lambda _: 10**400}, "config.json: num_docs: expected a number below 9,007,199,254,740,992"),
    ({"languages": lambda _: ["en", "eng"]}, "languages: language: expected en, got 'eng'"),
    ({"training": lambda _: {"dev_sets": 3}}, "config.json: training: dev_sets: expected a list, got an int"),
    ({"training": lambda _: {"weighed": 3}}, "config.json: training: weighed: expected a number as 'power', got 3"),
    ({"training": lambda _: {"weighed": {"power": 10**400}}}, "training: weighed: expected a number as 'power'"),
    ({"weights": lambda w: w.astype(float) * 1e300}, "weights: expected numbers that float32 holds, got larger ones"),
])  # fmt: skip
def test_what_no_model_has_is_refused_whoever_wrote_the_digests(model, tmp_path, change, message):
    tensors, config, words = folders.load(model.save(tmp_path / "m"))
    config = {name: value for name, value in config.items() if name not in ("files", "digest", "format", "library")}
    everything = {**tensors, **config, "words": words}
    everything |= {name: alter(everything.get(name)) for name, alter in change.items()}
    folders.save(tmp_path / "m", tensors={name: everything[name] for name in tensors}, vocabulary=everything["words"],
                 config={name: everything[name] for name in (*config, *change) if name not in (*tensors, "words")},
                 card="")  # fmt: skip
    with pytest.raises(ValueError, match=message) as refused:
        Model.load(tmp_path / "m")
    assert str(tmp_path / "m") in str(refused.value)


def test_weights_of_half_precision_encode(model):
    half = Model(WORDS, Projection(model.params.weights.astype(jnp.float16)))
    np.testing.assert_allclose(half.encode(["cat dog"]), model.encode(["cat dog"]), rtol=2e-3, atol=1e-3)


def test_weights_that_are_not_finite_are_not_saved(model, tmp_path):
    with pytest.raises(ValueError, match="model: weights: expected finite values, got NaN or infinity"):
        Model(WORDS, Projection(model.params.weights.at[0, 0].set(jnp.nan))).save(tmp_path / "m")
    assert not (tmp_path / "m").exists()


def words_of(**changes):
    return dataclasses.replace(WORDS, **changes)


@pytest.mark.parametrize(("changes", "message"), [
    ({"params": Projection(np.ones((5, 2), np.int32))}, "model: weights: expected float32 or float64 .*got int32"),
    ({"params": Projection(np.ones((5, 2), bool))}, "model: weights: expected float32 or float64 .*got bool"),
    ({"params": Projection(np.ones((5, 2), np.int8))}, "expected a model with 'weights_of_rows', the scales of"),
    ({"vocabulary": words_of(terms=("the", "cat", "dog", "é", "cat"))}, "vocabulary.json: expected every word once"),
    ({"vocabulary": words_of(terms=("the", "cat", "dog", "é", 5))}, "vocabulary.json: expected a list of words"),
    ({"vocabulary": words_of(df=np.array([9, 3, 3, 2, 11]))}, "df: expected numbers of documents, from 0 to 10"),
    ({"vocabulary": words_of(df=np.array([9, 3, 3, 2, -1]))}, "df: expected numbers of documents, from 0 to 10"),
    ({"vocabulary": words_of(df=np.array([9, 3]))}, r"model.vocabulary.df: expected one number for each of 5 terms"),
    ({"vocabulary": words_of(df=np.array([9, 3, 3, 2, 1.5]))}, r"vocabulary.df: expected whole numbers, got \[1.5\]"),
    ({"vocabulary": words_of(df=np.array([9, 3, 3, np.inf, 1]))}, r"vocabulary.df: expected whole numbers, got \[inf"),
    ({"vocabulary": words_of(num_docs=10.7)}, r"model.vocabulary.num_docs: expected whole numbers, got \[10.7\]"),
    ({"vocabulary": words_of(num_docs=10**400)}, "model.vocabulary.num_docs: expected whole numbers, got object"),
    ({"method": None}, "method: expected str, got NoneType"), ({"method": 3}, "method: expected str, got int"),
    ({"training": [1]}, "training: expected dict, got list"),
    ({"subwords": Subwords((), np.zeros(0, int), 0.5)}, "gram_idf: expected float32 or float64 of shape"),
    ({"subwords": Subwords(("at ",), np.array([np.nan]), 0.5), "params": Projection(np.ones((6, 2), np.float32))},
     "gram_idf: expected finite values, got NaN or infinity"),
])  # fmt: skip
def test_what_would_not_be_loaded_is_not_saved(model, tmp_path, changes, message):
    place = model.save(tmp_path / "m")
    with pytest.raises(ValueError, match=message):
        dataclasses.replace(model, **changes).save(place)
    np.testing.assert_array_equal(Model.load(place).encode(TEXTS), model.encode(TEXTS))


def test_whole_numbers_and_weights_of_other_types_are_saved_as_they_are(model, tmp_path):
    words = words_of(df=np.array([9.0, 3, 3, 2, 1]), num_docs=10.0)
    swapped = Projection(np.asarray(model.params.weights).astype(">f4"))
    again = Model.load(Model(words, swapped).save(tmp_path / "m"))
    assert again.vocabulary.df.dtype == np.int64 and type(again.vocabulary.num_docs) is int
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))


def test_an_array_that_no_model_has_is_left_alone(model, tmp_path):
    contents = model.contents()
    contents["tensors"] |= {"my_weights": np.ones((2, 2), np.int8), "my_scale": np.ones(2)}
    folders.save(tmp_path / "m", **contents)
    np.testing.assert_array_equal(Model.load(tmp_path / "m").encode(TEXTS), model.encode(TEXTS))


def test_the_package_knows_its_model_and_nothing_else():
    assert jaxsim.Model is Model
    with pytest.raises(AttributeError, match="no attribute 'Models'"):
        _ = jaxsim.Models


def test_weights_of_bfloat16_are_written_as_float32(tmp_path):
    words = text.Vocabulary(("a", "b"), np.array([1, 2]), 3)
    model = Model(words, Projection(jnp.array([[1.0, 0.5], [0.25, 3.0]], jnp.bfloat16)))
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert loaded.params.weights.dtype == np.float32
    np.testing.assert_array_equal(loaded.params.weights, [[1.0, 0.5], [0.25, 3.0]])


def test_a_record_that_is_no_json_is_refused_before_anything_is_written(tmp_path):
    words = text.Vocabulary(("a",), np.array([1]), 1)
    model = Model(words, Projection(np.ones((1, 1), np.float32)), training={"loss": jnp.float32(1)})
    with pytest.raises(ValueError, match="^model.training: expected numbers, texts, lists and dictionaries alone"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
