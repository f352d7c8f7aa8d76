"""N-grams of words with few pairs, unless they are asked for or cannot be: the default of `jaxsim train`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from command_line import OPCA, run

from jaxsim.data import docstrings
from jaxsim.model import Model
from jaxsim.train import Settings, budget, grid, train, training, tuning

OPCA_OF_FEW = Settings(method="opca", dim=5, max_terms=100)


@pytest.fixture(scope="module")
def few():
    return docstrings.load().take(range(60))


@pytest.mark.parametrize("changes, share", [
    ({}, 0.5), ({"subwords": 0.0}, 0.0), ({"subwords": 0.25}, 0.25), ({"drop_top": 3}, 0.0), ({"method": "lsa"}, 0.5),
    ({"method": "cca"}, 0.5), ({"method": "s2net", "max_iter": 1}, 0.5), ({"method": "cl-lsi"}, 0.0),
    ({"method": "log-tfidf"}, 0.0)], ids=str)
def test_few_pairs_learn_with_ngrams(few, changes, share):
    messages = []
    model = train(few, replace(OPCA_OF_FEW, **changes), dev=0, say=messages.append)
    assert model.training["settings"]["subwords"] == share
    assert (model.subwords.share if share else model.subwords) == (share or None)
    told = [line for line in messages if line.endswith("(--subwords 0 leaves them out)")]
    assert len(told) == ("subwords" not in changes and share > 0)
    if told:
        assert told[0].startswith(f"{len(model.subwords):,} n-grams of the words learn too, as with fewer than 20,000")


def test_many_pairs_learn_words_alone(few, monkeypatch):
    number = len(set(zip(few.left, few.right, strict=True)))
    for most, share in ((number, 0.0), (number + 1, 0.5)):
        monkeypatch.setattr(training, "FEW", most)
        assert train(few, OPCA_OF_FEW, dev=0).training["settings"]["subwords"] == share


def test_sharded_terms_and_grades_learn_words_alone(few):
    held = training.split(training.mates.read(few), 0, OPCA_OF_FEW, training.Grades(None, None), print)
    for changes in ({"shard_terms": True, "method": "s2net"}, {"method": "s2net-mse"}, {"method": "s2net-pref"}):
        assert training.effective(replace(OPCA_OF_FEW, **changes), held).subwords == 0.0


def test_a_choice_begins_with_words_alone(few):
    _, tried = tuning.tune(few, OPCA_OF_FEW, dev=0.3, names=("subwords",))
    assert [one["subwords"] for one in tried] == [0.0, 0.5, 0.75]
    _, tried = budget.search(few, OPCA_OF_FEW, seconds=1e-9, dev=0.3, free=("subwords", "noise"))
    assert {one["subwords"] for one in tried} == {0.5}  # what would be learned without a choice comes first
    _, tried = budget.search(few, OPCA_OF_FEW, seconds=1e9, dev=0.3, free=("subwords",))
    assert {one["subwords"] for one in tried} == {0.0, 0.25, 0.5, 0.75}
    _, tried = tuning.tune(few, replace(OPCA_OF_FEW, subwords=0.25), dev=0.3, names=("subwords",))
    assert tried[0]["subwords"] == 0.25
    model, _ = grid.sweep(few, {"dim": (3, 5)}, OPCA_OF_FEW, dev=0.3)  # nothing is chosen here but the dimension
    assert model.training["settings"]["subwords"] == 0.5


def test_command_line(folder, capsys):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    assert Model.load("model").subwords.share == 0.5
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA, "--subwords", 0)
    assert Model.load("model").subwords is None
