"""A sweep over settings: every combination once, the best model kept, a table and a picture."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace

import pytest
from command_line import refused, run

from jaxsim.data import docstrings
from jaxsim.model import Model
from jaxsim.pictures import figures, report
from jaxsim.train import Settings, grid, training
from jaxsim.train.judged import Judged

# Few words, since eigenvalues of thousands of them would take most of the time.
GIVEN = Settings(method="opca", min_df=1, max_terms=300)


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(120))


def test_words_become_values_of_their_kind_and_others_are_refused():
    result = grid.parsed(["--dim=5,5,7  all-negatives=true,no", "batch_size=none,8 method=opca"])
    assert result == {"dim": (5, 7), "all_negatives": (True, False), "batch_size": (None, 8), "method": ("opca",)}
    for words, message in (("dim", "words such as dim=100,300, got 'dim'"), ("dim=", "words such as"),
                           ("dims=3", "a setting of method, dim"), ("dim=3 dim=4", "every setting once"),
                           ("dim=3,x", "whole numbers for dim, got 'x'"), ("noise=a", "numbers for noise"),
                           ("all_negatives=2", "true or false"), ("dim=none", "whole numbers"), ("", "words such as")):
        with pytest.raises(ValueError, match=f"grid: expected {message}"):
            grid.parsed([words])


def test_every_combination_is_there_once_and_unused_settings_multiply_nothing():
    values = {"method": ("lsa", "opca", "s2net"), "noise": (0.1, 1.0), "gamma": (5.0, 9.0)}
    result = grid.combinations(Settings(), values)
    assert [(one.method, one.noise, one.gamma) for one in result] == [
        ("lsa", 1e-4, 10), ("opca", 0.1, 10), ("opca", 1, 10),
        ("s2net", 0.1, 5), ("s2net", 0.1, 9), ("s2net", 1, 5), ("s2net", 1, 9)]
    for values, message in (({}, "values: expected at least one setting"), ({"dim": ()}, "values: dim: expected at"),
                            ({"gamma": (1.0,)}, "values: gamma: expected none, for opca"), ({"x": (1,)}, "values: exp"),
                            ({"dim": range(1, 40), "noise": range(1, 40)}, "at most 1,000 combinations, got 1,521"),
                            ({"dim": (0,)}, "dim: expected")):
        with pytest.raises(ValueError, match=message):
            grid.combinations(GIVEN, values)


@pytest.mark.programs
def test_the_best_is_what_a_training_of_its_own_gives(corpus):
    messages = []
    model, tried = grid.sweep(corpus, {"dim": (3, 20)}, GIVEN, dev=0.2, say=messages.append)
    assert len(tried) == 2 and [one["mrr"] for one in tried] == sorted((one["mrr"] for one in tried), reverse=True)
    for one in tried:
        alone = training.train(corpus, replace(GIVEN, dim=one["dim"]), dev=0.2)
        assert one["mrr"] == alone.training["dev"]["mrr"]
    assert model.dim == tried[0]["dim"] and sum(line.startswith("dim ") for line in messages) == 2
    with pytest.raises(ValueError, match="dev: expected pairs to choose by, got none held out"):
        grid.sweep(corpus, {"dim": (3,)}, GIVEN, dev=0)


def test_what_one_of_the_combinations_cannot_be_trained_with_is_refused_before_the_first(corpus, monkeypatch):
    monkeypatch.setattr(training, "train", lambda *_, **__: pytest.fail("trained"))
    given = replace(GIVEN, method="s2net")
    with pytest.raises(ValueError, match="blend: expected held-out pairs or judged queries to choose by"):
        grid.sweep(corpus, {"blend": (False, True)}, given, dev=0)
    with pytest.raises(ValueError, match="beta: expected 0, with batches"):
        grid.sweep(corpus, {"beta": (0.0, 0.1), "batch_size": (0, 64)}, given, dev=0.2)


@pytest.mark.programs
def test_seeds_that_hold_out_other_pairs_are_not_compared(corpus):
    some, values = corpus.take(range(60)), {"seed": (0, 1)}
    for dev in (0.2, [0.2, corpus.take(range(60, 80))]):
        with pytest.raises(ValueError, match="values: seed: expected one where a share of the pairs is held out,"):
            grid.sweep(some, values, GIVEN, dev=dev)
    few = replace(GIVEN, dim=3)
    _, tried = grid.sweep(some, values, few, dev=corpus.take(range(60, 80)))
    assert {one["seed"] for one in tried} == {0, 1}
    texts = {"a": some.left[0]}, {"b": some.right[0], "c": some.right[1]}, {"a": {"b": 1}}
    _, tried = grid.sweep(some, values, few, dev=0.2, judged=Judged(*texts))
    assert {one["seed"] for one in tried} == {0, 1}
    assert len(grid.sweep(some, {"seed": (3,)}, few, dev=0.2)[1]) == 1


@pytest.mark.programs
def test_what_trainings_say_is_said_where_it_differs(corpus):
    messages = []
    values = {"method": ("cl-lsi", "opca"), "subwords": (0.0, None), "max_terms": (100, 200)}
    _, tried = grid.sweep(corpus, values, replace(GIVEN, dim=3), dev=0.2, say=messages.append)
    assert len(tried) == 6 and len(set(messages)) == len(messages)
    told = [line for line in messages if "n-grams of the words learn too" in line]
    assert len(told) == 2  # one for each vocabulary: the first trainings have none
    for line, most in zip(told, (100, 200), strict=True):
        alone = training.train(corpus, replace(GIVEN, dim=3, max_terms=most, subwords=None), dev=0.2)
        assert line.startswith(f"{alone.training['ngrams']} n-grams of the words learn too")
        score = f"method opca, subwords None, max_terms {most}, mrr {alone.training['dev']['mrr']}"
        after = messages[messages.index(line) + 1 :]
        assert next(one for one in after if one.startswith("method ")).startswith(score)


def test_the_command_prints_one_table_and_the_report_draws_it(corpus, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    lines = ["\t".join(" ".join(side.split()) for side in pair) for pair in zip(corpus.left, corpus.right, strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--method", "opca", "--dev", "0.2"]
    words += ["--max-terms", "300"]
    facts = json.loads(run(capsys, *words, "--grid", "dim=3,9 noise=0.1", "--grid", "min-df=1,2", "--json"))
    assert len(facts["tuned"]) == 4 and facts["tuned"][0]["mrr"] == facts["dev"]["mrr"]
    assert Model.load("model").dim == facts["tuned"][0]["dim"] == facts["settings"]["dim"]
    drawn = report.settings(Model.load("model"))
    assert figures.digest(drawn) is not None and re.search(rb">noise<.*>min_df<.*>mrr<", drawn, re.DOTALL)
    assert report.settings(Model.load("model")) == drawn
    assert refused(capsys, *words, "--grid", "dim=x") == "--grid: expected whole numbers for dim, got 'x'"
    assert refused(capsys, *words, "--grid", "gamma=1,2") == "--grid: --gamma: expected none, for opca, got some"
    given = [*words, "--dim", "5", "--grid", "dim=3,4"]
    assert refused(capsys, *given) == "--dim: expected no --grid of it beside it, got both"
    assert refused(capsys, *words, "--grid", "dim=3", "--tune") == "--tune: expected no --grid beside it, got both"
    told = refused(capsys, *words, "--grid", "seed=1,2")
    assert told.startswith("--grid: --seed: expected one where a share of the pairs is held out") and "--dev" in told
    words[words.index("0.2")] = "0"
    assert refused(capsys, *words, "--grid", "dim=3").startswith("--dev: expected pairs to choose by")


def test_a_picture_has_a_line_a_candidate_and_the_numbers_in_their_order():
    tried = [{"method": "opca", "dim": 100, "noise": 0.1, "mrr": 0.5, "seconds": 1.0},
             {"method": "lsa", "dim": 25, "mrr": 0.25}, {"method": "opca", "dim": 9, "noise": None, "mrr": 0.75}]
    drawn = figures.parallel(tried, "mrr", title="tried").decode()
    heights = [float(re.search(rf'y="([\d.]+)"[^>]*>{facts}</text>', drawn)[1]) for facts in ("9", "25", "100")]
    assert heights == sorted(heights, reverse=True) and drawn.count(">lsa<") == 1 and "seconds" not in drawn
    with pytest.raises(ValueError, match="tried: expected at least two candidates, got 1"):
        figures.parallel(tried[:1], "mrr", title="tried")
    model = Model.__new__(Model)
    object.__setattr__(model, "training", {"tuned": [{"dim": 3}, {"dim": 4}], "settings": {"dim": 3}})
    with pytest.raises(ValueError, match="training.tuned: expected a score for every candidate"):
        report.settings(model)


@pytest.mark.parametrize(("name", "value"), [
    ("noise", math.inf), ("noise", math.nan), ("gamma", -1.0), ("beta", math.inf), ("min_df", 1.5), ("patience", -1),
    ("blend", 2),
])  # fmt: skip
def test_values_that_no_training_could_have_are_refused_before_any(name, value):
    method = "opca" if name == "noise" else "s2net"
    first = getattr(Settings(), name)
    with pytest.raises(ValueError, match=f"^{name}: expected .*, got {value}"):
        grid.combinations(Settings(method=method), {name: (first, value)})
