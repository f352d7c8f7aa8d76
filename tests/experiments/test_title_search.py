"""`title_search` on made-up articles: rows with seeds, and what is said of the difference to other systems."""

from __future__ import annotations

import dataclasses
import json
import re

import numpy as np
import pytest

from experiments import kit
from experiments.kit import records, report_limits
from experiments.peers import title_search
from jaxsim.data import docstrings


@pytest.fixture(scope="module")
def task():
    """Docstrings, which a few of their own summaries ask for."""
    pairs = docstrings.load().take(range(60))
    grades = np.zeros((20, 60))
    grades[np.arange(20), np.arange(20) * 3] = 1
    return title_search.Task(pairs, list(pairs.right), list(pairs.left[::3]), grades)


@pytest.fixture
def table(task, tmp_path):
    """Makes a table of them."""
    def make(**changes):
        settings = dataclasses.replace(title_search.QUICK, dim=10, ks=(5, 10), **changes)
        data = kit.Data(task, name="made up", sha256="0" * 64, differs="synthetic", counts={"queries": 20})
        return kit.Table("title_search", "cacm", settings, "quick", data, tmp_path,
                         kit.Fits(tmp_path / "cache", say=lambda line: None))  # fmt: skip

    return make


def judged(made, **rows):
    """``(better, worse)`` -> what the report finds, of rows whose values of MAP are given, and no other rows."""
    for row, (values, asked) in rows.items():
        seeds = tuple(range(len(values))) if isinstance(values, list) else ()
        each = [{"map": one} for one in values] if seeds else {"map": values}
        made.fill(row, lambda table, each=each, seeds=seeds, asked=asked: kit.Row({}, each, seeds=seeds,
                                                                                  comparisons=asked))  # fmt: skip
    found = report_limits.judged([records.read(made.path(row)) for row in rows], made.out)
    return {re.match("MAP of (.+) less that of ([a-z0-9-]+)", one.name).groups(): one for one in found}


@pytest.mark.programs
def test_rows_that_depend_on_what_is_held_out_have_a_value_a_seed(table):
    made = table(seeds=(0, 1, 2))
    weighed, whole = (records.read(made.fill(row, title_search.ROWS[row])) for row in ("opca-r", "opca-search"))
    for record in (weighed, whole):
        assert record["seeds"] == [0, 1, 2] and len(record["metrics"]["map"]["per_seed"]) == 3
    assert len(set(weighed["metrics"]["map"]["per_seed"])) > 1
    assert whole["comparisons"] == title_search.ahead("opca-search")
    one = records.read(table(seeds=(1,)).fill("opca-r", title_search.ROWS["opca-r"]))
    assert one["metrics"]["map"]["per_seed"] == weighed["metrics"]["map"]["per_seed"][1:2]


def test_a_difference_that_may_be_chance_is_none(table):
    """Ahead in the mean, but not with any certainty: the limit does not hold."""
    better, asked = np.full(20, 0.5), title_search.ahead("search", "bm25", "tfidf", "lsa", "gone")
    better[:2] = 0.9
    rivals = {"bm25": (np.full(20, 0.5), ()), "tfidf": (np.linspace(0.1, 0.3, 20), ()), "lsa": (np.full(20, 0.6), ())}
    found = {worse: one for (_, worse), one in judged(table(), search=(better, asked), **rivals).items()}
    assert "bm25: +0.0400 (paired t, p = 0.2), the lower end" in found["bm25"].name
    assert found["bm25"].value < 0 < found["tfidf"].value and found["lsa"].value < 0
    assert [found[row].holds for row in ("bm25", "tfidf", "lsa", "gone")] == [False, True, False, None]
    assert all(one.bound == "at least 0" for one in found.values())
    seeds = [better, better - 0.2, better + 0.2]  # of the same mean, which is less certain
    less = judged(table(), search=(seeds, asked), **rivals)["search", "tfidf"]
    assert less.value < found["tfidf"].value


def test_every_search_is_expected_ahead_of_what_one_would_use_instead():
    asked = title_search.ahead("opca-search")
    assert [(one["better"], one["worse"]) for one in asked] == [
        ("opca-search", row) for row in ("bm25", "tfidf", "lsa", "static-embedding")]  # fmt: skip
    assert set(title_search.INSTEAD) <= set(title_search.ROWS)


def test_a_row_that_is_run_again_is_compared_as_it_is_now(table):
    """The search had been ahead of fewer dimensions; its record stays, and the limit is missed."""
    made, search = table(), (np.linspace(0.2, 0.6, 20), title_search.ahead("search", "lsa"))
    before = judged(made, search=search, lsa=(np.linspace(0.1, 0.5, 20), ()))["search", "lsa"]
    text = made.path("search").read_bytes()
    after = judged(made, lsa=(np.linspace(0.3, 0.7, 20), ()), search=search)["search", "lsa"]
    assert before.holds and after.holds is False and "-0.1000" in after.name
    assert json.loads(text)["comparisons"] == json.loads(made.path("search").read_bytes())["comparisons"]
    assert "limits" not in json.loads(text)
