"""Models of 16 and of 8 bits: what is lost is said, and is no more; folders, search, explanations and exports."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import text
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.model import Model, explain, export, folders, rounding
from jaxsim.sparse import host
from jaxsim.text.subwords import Subwords

TERMS = tuple(f"word{number}" for number in range(40))
WORDS = text.Vocabulary(TERMS, np.arange(40, 0, -1), 60)


def weights(seed=0, rows=40):
    rng = np.random.default_rng(seed)
    return jnp.asarray(rng.standard_normal((rows, 24)) * rng.lognormal(size=(rows, 1)), jnp.float32)


def made(kind):
    one, other = weights(), weights(1)
    if kind == "ssi":
        return Model(WORDS, bilinear.sides(one, other, jnp.full(40, 3.0, jnp.float32)), strongest=10)
    if kind == "ssi-sym":
        return Model(WORDS, bilinear.sides(one, one, jnp.ones(40, jnp.float32)))
    if kind == "topics":
        return Model(WORDS, Projection(jnp.abs(one)), "tf", "shares")
    if kind == "subwords":
        grams = Subwords(("abc", "bcd"), np.ones(2, np.float32), 0.5)
        return Model(WORDS, Projection(weights(rows=42)), subwords=grams)
    return Model(WORDS, (Projection(one), Projection(other)) if kind == "two sides" else Projection(one),
                 activation="tanh" if kind == "tanh" else "none")  # fmt: skip


def texts(number, seed):
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(TERMS, 12, p=WORDS.df / WORDS.df.sum())) for _ in range(number)]


@pytest.mark.parametrize("weights", rounding.KINDS)
@pytest.mark.parametrize("kind", ["one side", "two sides", "tanh", "topics", "ssi", "ssi-sym", "subwords"])
def test_a_rounded_model_is_as_far_off_as_it_says_and_the_same_from_its_folder(kind, weights, tmp_path):
    model = made(kind)
    small = rounding.rounded(model, weights)
    told = small.training["weights"]
    assert 0 < told["typical_error"] < told["largest_error"]
    assert told["bytes"] < (0.55 if weights == "float16" else 0.45) * told["bytes_before"]
    queries, documents = texts(30, 1), texts(30, 2)
    scores = model.similarity(queries, documents)
    assert told["typical_error"] < 0.05 * scores.std()
    apart = np.abs(small.similarity(queries, documents) - scores)
    assert 0 < apart.max() <= 2 * told["largest_error"] and apart.mean() <= 2 * told["typical_error"]
    back = Model.load(small.save(tmp_path / "m"))
    for one, other in zip(back.search(queries, back.vectors(documents), k=5),
                          small.search(queries, small.vectors(documents), k=5), strict=True):
        np.testing.assert_array_equal(one, other)
    assert back.training == json.loads(json.dumps(small.training)) and back.dim == model.dim
    found = explain.explain(back, queries[0], documents[0]).score if kind != "topics" and kind != "tanh" else None
    assert found is None or found == pytest.approx(float(back.similarity(queries[0], documents[0])), abs=1e-5)
    with np.errstate(all="ignore"):
        again = rounding.rounded(back, weights)  # nothing is lost twice
    assert again.training["weights"]["largest_error"] < 1e-6


def test_a_model_that_is_rounded_twice_says_what_the_error_is_measured_against_and_bounds_the_sum():
    model = made("one side")
    half = rounding.rounded(model, "float16")
    small = rounding.rounded(half, "int8")
    first, second = half.training["weights"], small.training["weights"]
    assert second["before"] == first and "before" not in first
    whole = rounding.error(model, small)
    for name in ("largest_error", "typical_error"):
        assert second[name] == rounding.error(half, small)[name]
        assert whole[name] <= first[name] + second[name]
    line = rounding.told(second)
    assert ", from the float16 model's; from that of the model before any rounding, by up to " in line
    assert line.endswith(f"{first['largest_error'] + second['largest_error']:.4f}".lstrip("0"))


@pytest.mark.parametrize("weights", rounding.KINDS)
def test_encoding_needs_no_compiler(weights, monkeypatch):
    pytest.importorskip("numba")
    small = rounding.rounded(made("one side"), weights)
    fast = small.encode(texts(9, 0))
    monkeypatch.setattr(host, "compiled", lambda: None)
    np.testing.assert_allclose(small.encode(texts(9, 0)), fast, rtol=1e-4, atol=1e-4)


def with_(array, place, value):
    array = np.array(array)
    array[place] = value
    return array


@pytest.mark.parametrize(("name", "change", "message"), [
    ("weights_of_rows", lambda _: None, "expected a model with 'weights_of_rows', the scales of 'weights', got"),
    ("weights", lambda _: None, "weights_of_rows: expected weights of int8 beside it, got none"),
    ("weights", lambda w: w.astype(np.float16), "weights_of_rows: expected weights of int8 beside it, got float16"),
    ("weights_of_rows", lambda s: s[:3], r"weights_of_rows: expected float32 of shape \(40,\), got .* of shape \(3,"),
    ("weights_of_rows", lambda s: s.astype(np.float64), "weights_of_rows: expected float32 of .* got float64"),
    ("weights_of_rows", lambda s: with_(s, 3, np.inf), "weights_of_rows: expected finite values, got NaN or infinity"),
    ("weights_of_rows", lambda s: with_(s, 3, -1), "weights_of_rows: expected numbers of at least 0, got others"),
    ("weights_of_rows", lambda s: with_(s, 3, 3e38), "weights_of_rows: expected scales of numbers that float32 holds"),
])  # fmt: skip
def test_scales_that_do_not_fit_are_refused_whoever_wrote_the_digests(name, change, message, tmp_path):
    tensors, config, words = folders.load(rounding.rounded(made("one side"), "int8").save(tmp_path / "m"))
    assert config["format"] == 4
    tensors[name] = change(tensors[name])
    config = {name: value for name, value in config.items() if name not in ("files", "digest", "format", "library")}
    folders.save(tmp_path / "m", tensors={name: one for name, one in tensors.items() if one is not None},
                 config=config, vocabulary=words, card="", layout=4)  # fmt: skip
    with pytest.raises(ValueError, match=message) as refused:
        Model.load(tmp_path / "m")
    assert str(tmp_path / "m") in str(refused.value)


def test_bare_term_weights_have_nothing_to_round():
    with pytest.raises(ValueError, match="model: expected one with a projection, got bare term weights"):
        rounding.rounded(Model(WORDS, None), "int8")


@pytest.mark.parametrize("weights", rounding.KINDS)
def test_onnx_keeps_the_bits_and_other_tools_get_the_same_values(weights, tmp_path):
    model = Model(WORDS, Projection(globals()["weights"]()), "tf_idf")
    small = rounding.rounded(model, weights)
    told = export.export(small, "word2vec", tmp_path / "words")
    assert told["weights"] == "float32" and f"The model's weights are {weights}; here they are float32" in told["note"]
    lines = (tmp_path / "words" / "vectors.txt").read_text().splitlines()[1:]
    found = np.array([line.split()[1:] for line in lines], np.float32)
    np.testing.assert_array_equal(found, export.rows(small)[0])
    pytest.importorskip("onnx")
    runtime, tokenizers = pytest.importorskip("onnxruntime"), pytest.importorskip("tokenizers")
    sizes = [(tmp_path / name / "model.onnx").stat().st_size for name, one in (("wide", model), ("small", small))
             if export.export(one, "onnx", tmp_path / name)]  # fmt: skip
    assert sizes[1] < (0.7 if weights == "float16" else 0.55) * sizes[0]  # small tables: the rest of the graph counts
    some = texts(5, 3)
    tokenizer = tokenizers.Tokenizer.from_file(str(tmp_path / "small" / "tokenizer.json"))
    tokenizer.enable_padding()
    coded = tokenizer.encode_batch(some)
    inputs = {"input_ids": [one.ids for one in coded], "attention_mask": [one.attention_mask for one in coded]}
    session = runtime.InferenceSession(str(tmp_path / "small" / "model.onnx"), providers=["CPUExecutionProvider"])
    (found,) = session.run(None, {name: np.array(rows, np.int64) for name, rows in inputs.items()})
    np.testing.assert_allclose(found, small.encode(some, normalize=True), atol=1e-5)
