"""Contributions of pairs of words sum up to the score that the model gives, for every kind of linear model."""

from __future__ import annotations

import dataclasses
import json

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import LEFT, RIGHT, refused, run

from jaxsim import text
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.model import Model, index, ranker
from jaxsim.model.bm25 import Bm25, weigh
from jaxsim.model.explain import explain, explain_search
from jaxsim.text.subwords import Subwords

WORDS = text.Vocabulary(("cat", "dog", "fish", "swims"), np.array([2, 3, 1, 1]), 9)
PAIRS = [("a cat, cat and dog", "the fish and the cat swims"), ("dog", "dog dog"), ("", "cat"), ("unheard", "cat"),
         ("cats doggy", "dogs and fish")]


def models(rng):
    sides = [jnp.asarray(rng.normal(size=(4, 3)), jnp.float32) for _ in range(2)]
    grams = Subwords(("cat", "ats", "dog"), np.ones(3), 0.5)
    long = jnp.asarray(rng.normal(size=(7, 3)), jnp.float32)
    yield "one", Model(WORDS, Projection(sides[0]))
    yield "two", Model(WORDS, tuple(map(Projection, sides)), "tf")
    yield "bare", Model(WORDS, None, "tf_idf")
    yield "ssi", Model(WORDS, bilinear.sides(*sides, jnp.full(4, 3.0)))
    yield "strongest", Model(WORDS, bilinear.sides(*sides, jnp.full(4, 3.0)), strongest=2)
    yield "subwords", Model(WORDS, Projection(long), subwords=grams)


@pytest.mark.parametrize("place", range(6))
def test_contributions_sum_to_the_score(place, rng):
    name, model = list(models(rng))[place]
    for query, document in PAIRS:
        result = explain(model, query, document)
        np.testing.assert_allclose(result.score, model.similarity(query, document), atol=1e-6, err_msg=name)
        assert result.contributions.shape == (len(result.query), len(result.document))
        assert result.score == pytest.approx(result.contributions.sum())
    assert ("cats" in result.query) == (name == "subwords")


def test_entries_of_several_parts_are_cut_as_by_the_score(rng):
    words = text.Vocabulary(("well-known", "well", "known", "cat"), np.ones(4, np.int64), 9)
    weights = Projection(jnp.asarray(rng.normal(size=(4, 3)), jnp.float32))
    for training, whole in (({"kind": "words"}, ("well-known",)), ({}, ("well", "known"))):
        model = Model(words, weights, training=training)
        result = explain(model, "well-known", "known cat")
        assert result.query == whole
        np.testing.assert_allclose(result.score, model.similarity("well-known", "known cat"), atol=1e-6)


def test_each_contribution_is_what_the_pair_of_words_adds(rng):
    weights = rng.normal(size=(4, 3))
    model = Model(WORDS, Projection(jnp.asarray(weights, jnp.float32)), "tf", agreement=np.array([1, 0.5, 0.2]))
    result = explain(model, "cat cat dog", "fish dog", power=1.0)
    scaled = weights * model.agreement
    query, document = 2 * scaled[0] + scaled[1], scaled[2] + scaled[1]
    norm = np.linalg.norm(query) * np.linalg.norm(document)
    expected = np.outer([2, 1], [1, 1]) * (scaled[:2] @ scaled[[2, 1]].T) / norm
    np.testing.assert_allclose(result.contributions, expected, atol=1e-6)
    assert result.query == ("cat", "dog") and result.document == ("fish", "dog")
    sizes = [abs(value) for _, _, value in result.largest(3)]
    assert sizes == sorted(sizes, reverse=True) and len(sizes) == 3


def test_a_model_with_an_activation_is_refused(rng):
    model = Model(WORDS, Projection(jnp.ones((4, 2))), activation="tanh")
    with pytest.raises(ValueError, match="model: expected one whose vectors are sums over words, got one with the act"):
        explain(model, "cat", "dog")
    with pytest.raises(ValueError, match="query: expected a string, got None"):
        explain(Model(WORDS, None), None, "dog")


def test_the_command_prints_and_draws(trained, folder, capsys):
    lines = run(capsys, "explain", "--model", trained, LEFT[3], RIGHT[3], "--pairs", 4).splitlines()
    assert lines[0].endswith("\tscore") and len(lines) == 5
    cosine = float(run(capsys, "similarity", "--model", trained, LEFT[3], RIGHT[3]))
    assert float(lines[0].split("\t")[0]) == pytest.approx(cosine, abs=2e-6)
    facts = json.loads(run(capsys, "explain", "--model", trained, LEFT[3], RIGHT[3], "--pairs", 999, "--json",
                           "--figure", "why.svg"))  # fmt: skip
    assert sum(pair["contribution"] for pair in facts["pairs"]) == pytest.approx(facts["score"], abs=1e-4)
    assert "file" in (folder / "why.svg").read_text() and facts["figure"] == "why.svg"
    assert run(capsys, "explain", "--model", trained, "", "unheard").splitlines() == ["0.000000\tscore"]
    assert "none" in refused(capsys, "explain", "--model", "none", "a", "b")


DOCUMENTS = [document for _, document in PAIRS] + ["", "Cats and cats, fish and other fish", "one unheard"]


@pytest.mark.parametrize(("place", "terms", "power"), [
    (0, 0.3, None), (0, 1.0, None), (0, 0.0, None), (1, None, 0.0), (2, 0.5, None), (3, 0.5, None), (5, 0.25, None)])
def test_both_parts_of_a_search_sum_to_its_score(place, terms, power, rng):
    name, model = list(models(rng))[place]
    if place == 0:
        model = dataclasses.replace(model, agreement=np.array([1, 0.5, 0.2], np.float32))
    encoded = index.encode(model, DOCUMENTS, bm25=True)
    for query in ("cats, a cat and swimming dogs", "fishes unheard", "nothing", ""):
        scores, rows = ranker.rank(model, encoded, [query], k=len(DOCUMENTS), terms=terms, power=power)
        for score, row in zip(scores[0], rows[0], strict=True):
            found = explain_search(model, query, encoded, int(row), terms=terms, power=power)
            assert found.score == pytest.approx(score, abs=1e-6), name
            assert found.vectors.contributions.sum() + found.of_words == pytest.approx(found.score)
            cells, left, right = found.cells()
            assert cells.shape == (len(left), len(right)) and cells.sum() == pytest.approx(found.score)
            assert (terms == 0 and not found.words) or (terms != 0 and found.terms > 0)
            assert found.vectors.query == () if terms == 1 else found.power == (model.search_power if power is None
                                                                                else power)  # fmt: skip


def test_a_shared_word_adds_its_bm25(rng):
    model = Model(WORDS, None)
    encoded = index.encode(model, DOCUMENTS)  # weighs the words when they are asked for
    found = explain_search(model, "cat, cats and fish", encoded, 6, terms=1.0)
    bm25 = weigh(DOCUMENTS)
    weights, highest = bm25.weights.toarray(), (bm25.weights @ bm25.counts(["cat cat and fish"]).T).max()
    expected = {stem: weights[6, bm25.stems.index(stem)] / highest for stem in ("cat", "and", "fish")}
    assert {one.query: one.contribution for one in found.words} == pytest.approx(
        {"cat": expected["cat"], "cats": expected["cat"], "and": 0.2 * expected["and"], "fish": expected["fish"]})
    assert {one.query: one.document for one in found.words} == {
        "cat": ("cats",), "cats": ("cats",), "and": ("and",), "fish": ("fish",)}
    sizes = [one.contribution for one in found.words]
    assert sizes == sorted(sizes, reverse=True)


def test_an_index_that_lacks_stems_of_stop_words_is_explained():
    encoded = index.encode(Model(WORDS, None), DOCUMENTS, bm25=True)
    kept = [column for column, stem in enumerate(encoded.bm25.stems) if stem != "and"]
    older = Bm25(tuple(encoded.bm25.stems[column] for column in kept), encoded.bm25.weights[:, kept])
    found = explain_search(Model(WORDS, None), "cat and fish", dataclasses.replace(encoded, bm25=older), 6, terms=1.0)
    assert {one.query for one in found.words} == {"cat", "fish"}


@pytest.mark.parametrize(("change", "message"), [
    ({"row": 8}, r"row: expected below 8 \(documents\), got 8"),
    ({"row": -1}, "row: expected a whole number of at least 0, got -1"),
    ({"terms": 2}, r"terms: expected a number in \[0, 1\], got 2"),
    ({"query": None}, "query: expected a string, got None"),
    ({"hubs": True}, r"documents: expected documents without hubs \(csls\), got some with hubs"),
])
def test_what_is_no_search_is_refused(change, message):
    model = Model(WORDS, Projection(jnp.eye(4)))
    encoded = index.encode(model, DOCUMENTS, csls=["cat"] if change.pop("hubs", False) else None)
    with pytest.raises(ValueError, match=message):
        explain_search(model, **{"query": "cat", "documents": encoded, "row": 0} | change)


def test_a_model_with_an_activation_is_explained_by_words_alone():
    model = Model(WORDS, Projection(jnp.ones((4, 2))), activation="tanh")
    encoded = index.encode(model, DOCUMENTS)
    assert explain_search(model, "cat", encoded, 2, terms=1.0).score > 0
    with pytest.raises(ValueError, match="model: expected one whose vectors are sums over words"):
        explain_search(model, "cat", encoded, 2, terms=0.5)


def test_the_command_explains_a_result_of_a_search(trained, folder, capsys):
    (folder / "texts.txt").write_text("\n".join(["an odd\ttext", "", *RIGHT]))
    common = ["--model", trained, "--documents", "texts.txt"]
    for how in (["--terms", 0.3], [], ["--terms", 0.4, "--power", 0]):
        first = run(capsys, "search", *common, *how, "--query", LEFT[3], "--k", 2).splitlines()[1].split("\t")
        facts = json.loads(run(capsys, "explain", *common, *how, LEFT[3], "--line", first[2], "--pairs", 999, "--json"))
        assert facts["score"] == pytest.approx(float(first[1]), abs=2e-6) and facts["line"] == int(first[2])
        assert facts["vectors"] + facts["words"] == pytest.approx(facts["score"], abs=2e-6)
        assert sum(one["contribution"] for one in facts["pairs"]) == pytest.approx(facts["vectors"], abs=1e-4)
        assert sum(one["contribution"] for one in facts["shared"]) == pytest.approx(facts["words"], abs=1e-5)
        lines = run(capsys, "explain", *common, *how, LEFT[3], first[3], "--pairs", 2).splitlines()
        assert float(lines[0].split("\t")[0]) == facts["score"] and lines[1].endswith("\tvectors")
        assert lines[4].endswith("\twords") and {line.count("\t") for line in lines[5:]} == {2}
    drawn = json.loads(run(capsys, "explain", *common, LEFT[3], "--line", 6, "--figure", "both.svg", "--json"))
    assert drawn["figure"] == "both.svg" and "BM25" in (folder / "both.svg").read_text()
    wrong = refused(capsys, "explain", *common, LEFT[3], "--line", 6, "--figure", "both.png")
    assert wrong == "--figure: expected a file that ends in .svg, got both.png"
    assert run(capsys, "explain", *common, LEFT[3], "an odd text").splitlines()[0].endswith("\tscore")  # as printed


def test_a_result_of_an_index_is_explained_without_the_documents(trained, folder, capsys):
    model = ["--model", trained]
    (folder / "texts.txt").write_text("\n".join(["an odd\ttext", "", *RIGHT]))
    made = [*model, "--documents", "texts.txt"]
    for terms in (0, 0.4, 1):
        how = [*model, "--index", "kept", "--terms", terms]
        rows = run(capsys, "search", *how, *made[2:], "--query", LEFT[3], "--k", 2).splitlines()
        for rank, score, line, shown in (row.split("\t") for row in rows):
            facts = json.loads(run(capsys, "explain", *how, LEFT[3], "--line", line, "--json"))
            assert facts["score"] == pytest.approx(float(score), abs=2e-6) and facts["line"] == int(line), rank
            assert facts == json.loads(run(capsys, "explain", *how, LEFT[3], shown, "--json"))
            assert facts == json.loads(run(capsys, "explain", *made, "--terms", terms, LEFT[3], shown, "--json"))
    wrong = refused(capsys, "explain", *how, LEFT[3], "--line", 99)
    assert wrong == "--line: expected a line of kept with a document, got 99"
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "other", "--method", "opca", "--dim", 2)
    wrong = refused(capsys, "explain", "--model", "other", "--index", "kept", LEFT[3], "--line", 1)
    assert wrong.startswith("--model: expected the model that kept was made with, got another")
    run(capsys, "search", *made, "--index", "near", "--csls", "pairs.tsv", "--query", LEFT[3])
    near = ["explain", *model, "--index", "near", LEFT[3], "--line", 5]
    wrong = refused(capsys, *near)
    assert wrong == "--index: expected one that was made without --csls, or --terms 1, got near"
    assert run(capsys, *near, "--terms", 1) == run(capsys, "explain", *how, LEFT[3], "--line", 5)  # words alone


@pytest.mark.parametrize(("words", "message"), [
    (["a"], "DOCUMENT: expected a text, or --documents or --index, and --line, got neither"),
    (["a", "b", "--terms", 0.5], "--terms: expected --documents or --index as well, got neither"),
    (["a", "b", "--line", 1], "--line: expected --documents or --index as well, got neither"),
    (["a", "b", "--index", "kept", "--documents", "texts.txt"], "--documents, --index: expected one of them, got both"),
    (["a", "b", "--index", "none"], "none: expected an index, got nothing"),
    (["a", "b", "--index", "none", "--column", "text"], "--column: expected --documents as well, got none"),
    (["a", "--documents", "texts.txt"], "DOCUMENT, --line: expected one of them, got neither"),
    (["a", "b", "--line", 1, "--documents", "texts.txt"], "DOCUMENT, --line: expected one of them, got both"),
    (["a", "b", "--documents", "texts.txt"], "DOCUMENT: expected one of the documents of texts.txt, got another text"),
    (["a", "--line", 3, "--documents", "texts.txt"], "--line: expected a line of texts.txt with a document, got 3"),
])
def test_options_that_do_not_go_together_are_refused(words, message, trained, folder, capsys):
    (folder / "texts.txt").write_text("one text\nanother\n")
    assert message in refused(capsys, "explain", "--model", trained, *words)
