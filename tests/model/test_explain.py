"""Contributions of pairs of words sum up to the score that the model gives, for every kind of linear model."""

from __future__ import annotations

import json

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import LEFT, RIGHT, refused, run

from jaxsim import text
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.model import Model
from jaxsim.model.explain import explain
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
