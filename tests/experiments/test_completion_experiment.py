"""The experiment on sentence completion: its quick preset, its claims, and questions inside the training text."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import re
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest

from experiments import kit
from experiments.completion import completion2012, neural
from experiments.kit import papers, records, report_tables
from jaxsim.data import novels, questions, sentences
from jaxsim.evaluate import completion

pytestmark = pytest.mark.programs


def test_the_quick_preset_fills_every_row_and_the_words_of_the_topic_win(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(completion2012, "CACHE", tmp_path / "sentences")
    options = ["--preset", "quick", "--out", str(tmp_path / "out")]
    plans = {name: plan for name, plan in completion2012.TABLES.items() if "quick" in plan.presets}
    every = list(dict.fromkeys(row for plan in plans.values() for row in plan.rows))
    kit.run(completion2012.EXPERIMENT, [*options, "--rows", *every])
    folder = tmp_path / "out" / "completion2012"
    # Rows on request, which a plain quick run leaves out, are run here; two need an accelerator, one another program.
    absent = {"lstm", "lstm-both"}
    if importlib.util.find_spec("gensim") is None:
        absent.add("gensim-cbow")
        assert "gensim-cbow: not run, gensim is not installed" in capsys.readouterr().err
    for name, plan in plans.items():
        assert {path.stem for path in (folder / name).glob("*.json")} == set(plan.rows) - absent, name
    rows = [row for row in plans["holmes"].rows if row not in absent]
    results = {row: records.read(folder / "holmes" / f"{row}.json")["metrics"] for row in rows}
    means = {row: metrics["accuracy@all"]["mean"] for row, metrics in results.items()}
    assert means["chance"] < 0.45 < means["ngram-gt"] < 0.9 < min(means["pmi-window"], means["lsa-totsim-u"])
    assert means["combination"] >= means["lsa-recon"] > means["ngram-gt"]
    assert means["combination-weighted"] >= means["pmi-weighted"] > 0.9
    assert min(means["combination-trained"], means["combination-network"]) > 0.9
    for row in ("ngram-gt", "mkn"):
        assert 1 < records.read(folder / "perplexity" / f"{row}.json")["metrics"]["perplexity"]["mean"] < 20
    # Another run reads what was kept and comes to the same figures.
    kit.run(completion2012.EXPERIMENT, [*options, "--rows", "mkn", "lsa-recon", "--again"])
    again = {row: records.read(folder / "holmes" / f"{row}.json")["metrics"] for row in ("mkn", "lsa-recon")}
    assert all(again[row] == results[row] for row in again)


def test_a_peer_that_is_not_installed_is_no_row_and_it_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    table = kit.Table("completion2012", "holmes", completion2012.QUICK, "quick", None, tmp_path, None)
    assert completion2012.HOLMES["gensim-cbow"](table) is None
    assert "gensim-cbow: not run, gensim is not installed (pip install gensim)" in capsys.readouterr().err


def test_a_network_has_perplexity_and_a_curve_of_accuracy_and_goes_on_with_it(tmp_path, monkeypatch):
    monkeypatch.setattr(completion2012, "CACHE", tmp_path / "sentences")
    data = completion2012.synthetic("sat-equal")
    data = dataclasses.replace(data, content=dataclasses.replace(data.content, text=data.content.text.head(30_000)))
    settings = completion2012.TABLES["sat-equal"].presets["quick"]
    fits = kit.Fits(tmp_path / "fits")
    table = kit.Table("completion2012", "sat-equal", settings, "quick", data, tmp_path, fits)
    row = completion2012.EQUAL_ROWS["rnn-lm"](table)
    points = [point for point in row.curve if "accuracy@all" in point]
    assert [point["words"] for point in points] == [20_000, 40_000] and row.config["words_read"] == 40_000
    assert points[1]["accuracy@all"] == row.per_query["accuracy@all"].mean()
    words = data.content.text.size()
    assert 1 < row.metrics["perplexity"] < words / 4  # of topics and frames, of which it cannot know all
    # An earlier command was stopped after the first look, whose scores are read back.
    settings = {"cell": "tanh", "words": words, "hidden": 16, "step": 20_000, "held": 100, "backward": False,
                "patience": 3, "looks": (1,), "checkpoint": tmp_path / "stopped"}
    neural.network(data.content, steps=1, **settings)
    kept = (tmp_path / "stopped" / "scores-1.json").stat().st_mtime_ns
    again = neural.network(data.content, steps=2, **settings)
    assert (tmp_path / "stopped" / "scores-1.json").stat().st_mtime_ns == kept
    assert np.array_equal(neural.last_scores(again), neural.last_scores(neural.network_fit(table, "tanh")))
    # With a second one that reads backward, log-probabilities are added.
    row = neural.two_networks(table, completion2012.tested)
    both = neural.network_fit(table, "tanh", backward=True)
    assert both.params["model"].backward
    right = completion.correct(neural.last_scores(both) + neural.last_scores(again), data.content.questions.answers)
    assert row.config["words_read"] == 80_000 and row.curve[-1]["words"] == 80_000
    assert row.per_query["accuracy@all"].mean() == row.curve[-1]["accuracy@all"] == right.mean()


def test_sentences_with_an_option_are_drawn_whole_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(completion2012, "COMMON", 2)
    prose = "Tea is hot. The the the. He drank tea. He sat. Cups of tea are good. The cup fell. Nothing."
    text = sentences.build([("a", prose)], tmp_path / "tokens")
    asked = questions.collect([questions.question("A _____ .", ["tea", "the cup"], answer=0)])
    filled = questions.encode(asked, text.numbers)
    ((_, drawn),) = completion2012.options_of(text, filled, 1000)
    assert sorted(drawn.split("\n\n")) == ["cups of tea are good .", "he drank tea .", "tea is hot .", "the cup fell ."]
    ((_, drawn),) = completion2012.options_of(text, filled, 15)
    assert len(drawn.split("\n\n")) == 2


def test_claims_name_rows_of_their_tables_and_printed_figures():
    _, printed = papers.read(Path(papers.__file__).parents[1] / "papers.toml")
    for claim in completion2012.CLAIMS:
        for table in claim.tables:
            assert {claim.better, claim.worse} <= set(completion2012.TABLES[table].rows), claim.id
            # Of the Holmes questions the paper answers all, of the SAT questions those of its test set.
            metric = {"holmes": "accuracy@all", "sat": "accuracy", "sat-sources": "accuracy"}.get(table, claim.metric)
            rows = {}
            for name in (table, *["sat-combined"] * (table == "sat")):  # the paper has combinations in two tables
                beside = printed[completion2012.ABOUT[name][2]]
                rows = {row.row: row.figures[beside.metrics.index(metric)] for row in beside.rows} | rows
            assert claim.printed == {row: rows[row.removesuffix("-u")] for row in (claim.better, claim.worse)}


def test_the_published_networks_figures_stand_beside_the_table_without_a_record():
    _, printed = papers.read(Path(papers.__file__).parents[1] / "papers.toml")
    beside, plan = printed[completion2012.ABOUT["holmes"][2]], completion2012.TABLES["holmes"]
    at = beside.metrics.index("accuracy@all")
    assert {row.row: (row.figures[at], row.spread[at]) for row in beside.others} == {
        "lstm": (0.694, 0.008), "lstm-both": (0.723, 0.011)}
    assert {row.row for row in beside.others} <= set(plan.rows) and set(plan.needs) <= set(plan.rows)
    text = report_tables.main("completion Table 6, Holmes", {}, {})
    assert "| lstm (LSTM, left to right) | — / .6940 ± .0080 (Park et al.) | not run | — | — |" in text
    text = report_tables.unrecorded(plan, {row: {"row": row} for row in completion2012.ROWS})
    assert "; lstm, lstm-both (preset accelerator)." in text and "gensim-cbow (gensim);" in text


def test_questions_of_the_training_text_are_noticed(tmp_path):
    prose = "He was very fond of tea, and sugar. Go on. It rained all day."
    text = sentences.build([("a", prose)], tmp_path / "tokens")
    rows = [questions.question(stem, ["tea", "sea"], answer=0, name=name) for name, stem in (
        ("1", "He was very fond of _____ and sugar."), ("2", "He was very fond of _____ and milk."),
        ("3", "It rained all _____ day and night."))]  # fmt: skip
    asked = questions.collect(rows)
    assert completion2012.contained(text, asked, questions.encode(asked, text.numbers)) == ["1"]


def _found(asked, texts, longest):
    """Names of the questions that stand in texts: as whole sentences, and by any run of ``longest`` words.

    Only letters count, in lower case: another way to cut words than the project's.
    """
    words = re.compile("[a-z]+")
    rows = [words.findall(one.parts[0].lower() + one.choices[one.answer][0] + one.parts[1].lower())
            for one in asked.questions]
    ids = {word: at for at, word in enumerate(sorted({word for row in rows for word in row}), start=1)}
    rows = [np.array([ids[word] for word in row]) for row in rows]
    key = np.random.default_rng(0).integers(1, 2**62, (longest, len(ids) + 1))
    first = min(map(len, rows))

    def sums(row, n):
        return sum(key[at][row[at : len(row) - n + 1 + at]] for at in range(n)) if len(row) >= n else np.zeros(0, int)

    runs, starts = defaultdict(set), defaultdict(set)
    for number, row in enumerate(rows):
        starts[int(sums(row, first)[0])].add(number)
        for value in sums(row, longest).tolist():
            runs[value].add(number)
    listed = [np.array(sorted(table)) for table in (runs, starts)]
    whole, parts = set(), set()
    for text in texts:
        read = np.fromiter((ids.get(word, 0) for word in words.findall(text.lower())), np.int64)
        value = sums(read, longest)
        parts = parts.union(*(runs[one] for one in value[np.isin(value, listed[0])].tolist()))
        value = sums(read, first)
        whole |= {number for place in np.flatnonzero(np.isin(value, listed[1])) for number in starts[int(value[place])]
                  if np.array_equal(read[place : place + len(rows[number])], rows[number])}
    return [{asked.questions[number].name for number in some} for some in (whole, parts)]


@pytest.mark.skipif(not os.environ.get("JAXSIM_DATA"), reason="needs the questions and the novels (JAXSIM_DATA)")
def test_no_sentence_of_the_questions_stands_in_the_novels():
    """The row `chance` looks for whole sentences whenever it is run; here also for parts, and without its code."""
    asked = questions.load_holmes()
    one, other = asked.questions[0], asked.questions[1]
    planted = [f"So! {one.parts[0].upper()} {one.choices[one.answer][0]}\n{one.parts[1]}", other.parts[0] * 2]
    whole, parts = _found(asked, planted, 10)
    assert whole == {"1"} and {"1"} <= parts <= {"1", "2"}
    whole, parts = _found(asked, (text for _, text in novels.read(verify=False)), 10)
    assert whole <= {"593"}  # "What is the meaning of it all", a commonplace
    assert parts == set()


@pytest.mark.skipif(not os.environ.get("JAXSIM_DATA"), reason="needs the questions (JAXSIM_DATA)")
def test_the_wrong_key_is_corrected_openly():
    asked = questions.load_sat()
    changed = completion2012.corrected(asked) != asked.answers
    assert np.flatnonzero(changed).tolist() == [132]


def test_the_combination_is_trained_on_development_questions_alone(tmp_path, monkeypatch):
    monkeypatch.setattr(completion2012, "CACHE", tmp_path)
    data = completion2012.synthetic("holmes")
    task = data.content
    fits = kit.Fits(tmp_path / "fits")
    table = kit.Table("completion2012", "holmes", completion2012.QUICK, "quick", data, tmp_path, fits)
    scores = np.random.default_rng(0).normal(size=(60, 5, 2))
    first = completion2012.combined(table, {"noise": [scores[..., 0], scores[..., 1]]})
    others = [dataclasses.replace(one, answer=(one.answer + 1) % 5) for one in task.questions.questions[30:]]
    asked = questions.collect([*task.questions.questions[:30], *others])
    table.loaded = dataclasses.replace(data, content=dataclasses.replace(task, questions=asked))
    second = completion2012.combined(table, {"noise": [scores[..., 0], scores[..., 1]]})
    assert first.config["weights"] == second.config["weights"] and first.config["l2"] == second.config["l2"]
