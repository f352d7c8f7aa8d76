"""`Model` of W = UᵀV + D: scores against dense float64 arithmetic, folders, and what it refuses."""

from __future__ import annotations

import json
import re

import jax.numpy as jnp
import numpy as np
import pytest
import safetensors.numpy

from jaxsim import Model, sparse, text
from jaxsim.evaluate import retrieval
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.model import export, folders

QUERIES = ["The cat and the DOG", "", "unseen words only", "日本 cat", "dog é"] * 3
TEXTS = ["cat cat cat the the", "É é e\u0301", "dog the 日本", "", "nothing known", "cat dog the é 日本", "the"]
WORDS = text.Vocabulary(("the", "cat", "dog", "é", "日本"), np.array([9, 3, 3, 2, 1]), 10)
ALONE = "model: expected one with a projection alone .*search and similarity.*got W = UᵀV.*ssi"


@pytest.fixture
def params(rng):
    diagonal = jnp.asarray(rng.uniform(1, 3, size=5), jnp.float32)
    return bilinear.sides(*(jnp.asarray(rng.normal(size=(5, 4)), jnp.float32) for _ in range(2)), diagonal)


@pytest.fixture
def model(params):
    return Model(WORDS, params, method="ssi", strongest=2)


def reference(params, queries, documents, strongest):
    """qᵀ(UᵀV + D)d of dense float64 rows of unit length, of which UᵀV sees the strongest terms."""
    sides = []
    for texts in (queries, documents):
        counts = text.counts([text.words(one) for one in texts], WORDS)
        rows = text.log_tf_idf(counts, WORDS.df, WORDS.num_docs).toarray().astype(np.float64)
        length = np.linalg.norm(rows, axis=1, keepdims=True)
        rows = np.divide(rows, length, out=np.zeros_like(rows), where=length > 0)
        few = rows.copy()
        for row in few if strongest else ():
            row[np.argsort(-np.abs(row), kind="stable")[strongest:]] = 0
            length = np.linalg.norm(row)
            row /= length if length else 1
        sides.append((rows, few))
    (query, few_query), (document, few_document) = sides
    u, v = (np.asarray(side.weights, np.float64) for side in params)
    diagonal = np.diag(np.asarray(params[0].scale, np.float64) * np.asarray(params[1].scale, np.float64))
    return few_query @ u @ (few_document @ v).T + query @ diagonal @ document.T


@pytest.mark.parametrize("strongest", [None, 1, 2, 5])
def test_scores_are_those_of_w(params, strongest):
    model = Model(WORDS, params, method="ssi", strongest=strongest)
    expected = reference(params, QUERIES, TEXTS, strongest)
    assert np.abs(expected).max() > 1.5  # no cosine
    np.testing.assert_allclose(model.similarity(QUERIES, TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(model.pair_similarity(QUERIES[:7], TEXTS), np.diag(expected), atol=1e-5)
    assert float(model.similarity(QUERIES[0], TEXTS[2])) == pytest.approx(expected[0, 2], abs=1e-5)
    scores, result = model.search(QUERIES, model.vectors(TEXTS), k=3)
    np.testing.assert_allclose(scores, -np.sort(-expected, axis=1)[:, :3], atol=1e-5)
    np.testing.assert_array_equal(result[0], np.argsort(-expected[0], kind="stable")[:3])
    for batch_size in (1, 2, 100):
        vectors = [model.vectors(texts, side=side, batch_size=batch_size)
                   for texts, side in ((QUERIES, "query"), (TEXTS, "document"))]  # fmt: skip
        np.testing.assert_allclose(retrieval.dot(*vectors)(np.arange(15)), expected, atol=1e-5)


def test_what_the_strongest_terms_leave_out_counts():
    """The reference would not see it if both parts saw the same."""
    params = bilinear.sides(*(jnp.eye(5, dtype=jnp.float32),) * 2, jnp.ones(5, jnp.float32))
    few, every = (Model(WORDS, params, strongest=most).similarity("cat dog é", "cat dog é") for most in (1, None))
    assert float(every) == pytest.approx(2) and float(few) == pytest.approx(2)
    few, every = (Model(WORDS, params, strongest=most).similarity("cat dog é", "cat") for most in (1, None))
    assert float(every) > float(few)


def test_no_texts_and_no_known_words(model):
    assert model.vectors([]).num_docs == 0 and model.similarity([], TEXTS).shape == (0, 7)
    assert not model.similarity(["", "unheard"], TEXTS).any() and model.pair_similarity([], []).shape == (0,)
    with pytest.raises(ValueError, match=r"queries: expected a list of texts, got one text \(similarity takes one\)"):
        model.pair_similarity("ab", ["a", "b"])
    assert model.similarity("cat", "dog").shape == ()


def test_a_saved_model_is_the_same_bit_for_bit(model, params, tmp_path):
    facts = Model(WORDS, params, "tf_idf", languages=("en", "es"), method="ssi", strongest=2, training={"pairs": 7})
    again = Model.load(facts.save(tmp_path / "m"))
    for one, other in zip(again.params, params, strict=True):
        assert isinstance(one, bilinear.Bilinear)
        np.testing.assert_array_equal(one.weights, other.weights)
        np.testing.assert_array_equal(one.scale, other.scale)
    np.testing.assert_array_equal(again.similarity(QUERIES, TEXTS), facts.similarity(QUERIES, TEXTS))
    assert (again.strongest, again.weighting, again.languages, again.training) == (2, "tf_idf", ("en", "es"),
                                                                                    {"pairs": 7})  # fmt: skip
    card = (tmp_path / "m" / folders.CARD).read_text()
    assert "inner product" in card and "cosine" not in card and "2 strongest terms" in card and "encode" not in card
    code = re.search(r"```python\n(.*?)```", card, re.DOTALL)[1].replace("path/to/this/folder", str(tmp_path / "m"))
    exec(compile(code, "card", "exec"), {})


def test_weights_of_both_sides_are_kept_once(params, tmp_path):
    both = bilinear.sides(params[0].weights, params[0].weights, params[0].scale * params[1].scale)
    facts = Model(WORDS, both, method="ssi-sym")
    result = sorted(safetensors.numpy.load_file(facts.save(tmp_path / "m") / folders.TENSORS))
    assert result == ["both_weights", "df", "document_scale", "query_scale"]
    again = Model.load(tmp_path / "m")
    assert not again.two_sided
    np.testing.assert_array_equal(again.similarity(QUERIES, TEXTS), facts.similarity(QUERIES, TEXTS))
    np.testing.assert_array_equal(again.params[1].weights, both[1].weights)
    np.testing.assert_array_equal(again.params[1].scale, both[1].scale)


def test_older_readers_refuse_the_folder_and_still_read_the_others(model, tmp_path, monkeypatch):
    models = {"ssi": model, "one": Model(WORDS, Projection(jnp.ones((5, 2)))), "bare": Model(WORDS, None)}
    layouts = {name: json.loads((one.save(tmp_path / name) / folders.CONFIG).read_text())["format"]
               for name, one in models.items()}  # fmt: skip
    assert layouts == {"ssi": 2, "one": 1, "bare": 1}
    monkeypatch.setattr(folders, "FORMAT", 1)
    with pytest.raises(ValueError, match=r"format: expected 1 to 1 \(install a newer jaxsim-text .*got 2"):
        Model.load(tmp_path / "ssi")
    assert Model.load(tmp_path / "one").dim == 2 and Model.load(tmp_path / "bare").params is None


@pytest.mark.parametrize("missing", [["query_weights"], ["document_scale"], ["query_weights", "document_weights"]])
def test_a_folder_that_lacks_a_part_of_w_is_refused(model, tmp_path, missing):
    tensors, config, words = folders.load(model.save(tmp_path / "m"))
    kept = {name: array for name, array in tensors.items() if name not in missing}
    folders.save(tmp_path / "m", tensors=kept, config=config, vocabulary=words, card="", layout=2)
    with pytest.raises(ValueError, match=f"expected a model with '({'|'.join(missing)})', got one without"):
        Model.load(tmp_path / "m")


def test_dense_vectors_and_exports_are_refused(model, tmp_path):
    for encode in (model.encode, model.encode_query, model.encode_document):
        with pytest.raises(ValueError, match=ALONE):
            encode(["cat"])
    for to in export.FORMATS:
        with pytest.raises(ValueError, match="model: expected one whose score is the cosine .*got W = UᵀV"):
            export.export(model, to, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(("change", "message"), [
    (lambda q, d: {"params": (q, d._replace(scale=None))}, "params: expected None, a Projection, or a pair of .*Bilin"),
    (lambda q, d: {"params": (q, Projection(d.weights))}, "params: expected one Projection, or two sides of one"),
    (lambda q, d: {"params": (q,)}, "params: expected one Projection, or two sides of one kind, got Bilinear"),
    (lambda q, d: {"params": q}, "params: expected None, a Projection, or a pair"),
    (lambda q, d: {"params": (q, d._replace(scale=d.scale[:4]))}, r"params: expected a scale of 5 terms .*got \(4,\)"),
    (lambda q, d: {"params": (q._replace(weights=q.weights[:4]), d)}, r"params: expected weights of 5 terms .*\(4, 4"),
    (lambda q, d: {"params": (q._replace(weights=q.weights[:, :2]), d)}, "params: expected two sides of as many dim"),
    (lambda q, d: {"activation": "tanh"}, "activation: expected none, for W = UᵀV"),
    (lambda q, d: {"strongest": 0}, "strongest: expected a whole number of at least 1"),
])
def test_parts_that_do_not_fit_are_refused(params, change, message):
    with pytest.raises(ValueError, match=message):
        Model(WORDS, **{"params": params, **change(*params)})


def test_the_sparse_part_is_the_words(model):
    rows = sparse.to_scipy(model.vectors(TEXTS).sparse).toarray()
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), [1, 1, 1, 0, 0, 1, 1], atol=1e-6)
