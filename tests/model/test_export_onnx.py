"""ONNX graphs against the models they were made from, run by onnxruntime."""

from __future__ import annotations

import json
import re
import sys

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import text
from jaxsim.methods.projections import Projection
from jaxsim.model import ACTIVATIONS, WEIGHTINGS, Model, export, onnx

TEXTS = ("the cat saw the dog and the dog ran", "dog", "Élan élan ÉLAN, straße", "zzqx unheard", "", "cat cat cat dog")


@pytest.fixture(scope="module")
def words():
    """A vocabulary that knows some of the words of `TEXTS`."""
    return text.Vocabulary.build([text.words(one) for one in TEXTS[:3]], drop_top=0)


def made(words, weighting="log_tf_idf", activation="none", sides=1):
    rng = np.random.default_rng(0)
    drawn = tuple(Projection(jnp.asarray(rng.standard_normal((len(words), 5)), jnp.float32)) for _ in range(sides))
    return Model(words, drawn if sides == 2 else drawn[0], weighting, activation, ("en", "es"))


@pytest.fixture(scope="module")
def ran():
    """A function that gives what the graph in a folder makes of texts."""
    pytest.importorskip("onnx")
    runtime, tokenizers = pytest.importorskip("onnxruntime"), pytest.importorskip("tokenizers")

    def run(folder, texts=TEXTS, pad=0):
        tokenizer = tokenizers.Tokenizer.from_file(f"{folder}/tokenizer.json")
        tokenizer.enable_padding(pad_id=pad)
        result = tokenizer.encode_batch(list(texts))
        given = {"input_ids": [one.ids for one in result], "attention_mask": [one.attention_mask for one in result]}
        session = runtime.InferenceSession(f"{folder}/model.onnx", providers=["CPUExecutionProvider"])
        assert [one.name for one in session.get_inputs()] == list(onnx.INPUTS)
        return session.run([onnx.OUTPUT], {name: np.array(rows, np.int64) for name, rows in given.items()})[0]

    return run


@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("weighting", WEIGHTINGS)
def test_vectors_are_those_of_the_model(weighting, activation, words, ran, tmp_path):
    model = made(words, weighting, activation)
    facts = export.export(model, "onnx", tmp_path / "out")
    assert facts["exact"] is True and facts["paths"] == {"both": str(tmp_path / "out")}
    expected = model.encode(TEXTS, normalize=True)
    result = ran(tmp_path / "out")
    assert result.dtype == np.float32 and result.shape == (len(TEXTS), 5)
    np.testing.assert_allclose(result, expected, atol=1e-5)
    assert not result[3:5].any() and expected[:3].any(axis=1).all()


@pytest.mark.parametrize("factor", [1e-30, 1e30])
def test_lengths_of_tiny_and_huge_vectors_are_one(factor, words, ran, tmp_path):
    model = made(words)
    scaled = Projection(model.params.weights * np.float32(factor))
    export.export(Model(words, scaled, model.weighting, model.activation, model.languages), "onnx", tmp_path / "out")
    np.testing.assert_allclose(ran(tmp_path / "out"), model.encode(TEXTS, normalize=True), atol=1e-5)


def test_transformers_js_finds_the_token_of_unknown_words_and_of_padding(words, ran, tmp_path):
    model = made(words)
    export.export(model, "onnx", tmp_path / "out")
    config = json.loads((tmp_path / "out" / "tokenizer_config.json").read_text())
    known = json.loads((tmp_path / "out" / "tokenizer.json").read_text(encoding="utf-8"))
    unknown = known["model"]["vocab"][config["unk_token"]]
    assert unknown == known["model"]["vocab"][known["model"]["unk_token"]] == len(model.vocabulary)
    assert known["model"]["vocab"][config["pad_token"]] == unknown and "model_max_length" not in config
    np.testing.assert_allclose(ran(tmp_path / "out", pad=unknown), model.encode(TEXTS, normalize=True), atol=1e-5)


def test_neither_padding_nor_the_other_texts_change_a_vector(words, ran, tmp_path):
    export.export(made(words), "onnx", tmp_path / "out")
    whole = ran(tmp_path / "out")
    np.testing.assert_allclose(ran(tmp_path / "out", pad=3), whole, atol=1e-6)
    np.testing.assert_allclose(ran(tmp_path / "out", TEXTS[1:2])[0], whole[1], atol=1e-6)
    assert not ran(tmp_path / "out", ["", "?!"]).any()  # not even a column of padding


def test_two_sides_are_two_graphs_and_the_checker_passes(words, ran, tmp_path):
    model = made(words, sides=2)
    facts = export.export(model, "onnx", tmp_path / "out")
    for side, encode in (("query", model.encode_query), ("document", model.encode_document)):
        np.testing.assert_allclose(ran(facts["paths"][side]), encode(TEXTS, normalize=True), atol=1e-5)
        import onnx

        onnx.checker.check_model(f"{facts['paths'][side]}/model.onnx", full_check=True)


def test_the_readme_of_the_folder_shows_how_to_run_it(words, ran, tmp_path, monkeypatch):
    model = made(words)
    export.export(model, "onnx", tmp_path / "exported")
    card = (tmp_path / "exported" / "README.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)```", card, re.DOTALL)
    *lines, last = code.replace("path/to/this/folder", "exported").replace("another", "cat dog dog").splitlines()
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    exec("\n".join(lines), names)
    np.testing.assert_allclose(eval(last, names), model.encode(["a text", "cat dog dog"], normalize=True), atol=1e-5)


def test_a_missing_package_and_weights_that_no_file_holds_are_refused(words, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"package onnx, got none; .* pip install 'jaxsim-text\[export\]'"):
        export.export(made(words), "onnx", tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(ValueError, match="model: expected weights of less than 2,146,435,072 bytes, got 2,147,483"):
        onnx.graph(np.broadcast_to(np.float32(0), (2**20, 2**9)), weighting="tf")
