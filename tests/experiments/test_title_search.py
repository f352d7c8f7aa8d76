"""`title_search` on made-up articles: rows with seeds, and what is said of the difference to other systems."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from experiments import kit
from experiments.kit import records
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


def maps(*seeds):
    """A row whose values of every query are given, once for each seed."""
    return title_search.Maps.of([{"map": one} for one in seeds])


def against(record):
    """Rival -> its limit."""
    return {limit["name"].split()[4].rstrip(":"): limit for limit in record["limits"]}


@pytest.mark.programs
def test_rows_that_depend_on_what_is_held_out_have_a_value_a_seed(table):
    made = table(seeds=(0, 1, 2))
    weighed, whole = (records.read(made.fill(row, title_search.ROWS[row])) for row in ("opca-r", "opca-search"))
    for record in (weighed, whole):
        assert record["seeds"] == [0, 1, 2] and len(record["metrics"]["map"]["per_seed"]) == 3
    assert len(set(weighed["metrics"]["map"]["per_seed"])) > 1
    assert set(against(whole)) == {"bm25", "tfidf", "lsa"}
    one = records.read(table(seeds=(1,)).fill("opca-r", title_search.ROWS["opca-r"]))
    assert one["metrics"]["map"]["per_seed"] == weighed["metrics"]["map"]["per_seed"][1:2]


def test_a_difference_that_may_be_chance_is_none(table, monkeypatch):
    """Ahead in the mean, but not with any certainty: the limit does not hold."""
    better = np.full(20, 0.5)
    better[:2] = 0.9
    monkeypatch.setattr(title_search, "by_bm25", lambda table: kit.Row({}, {"map": np.full(20, 0.5)}))
    monkeypatch.setattr(title_search, "by_tfidf", lambda table: kit.Row({}, {"map": np.linspace(0.1, 0.3, 20)}))
    monkeypatch.setattr(title_search, "by_lsa", lambda table: kit.Row({}, {"map": np.full(20, 0.6)}))
    found = against({"limits": list(title_search.ahead(table(), maps(better)))})
    assert "bm25: +0.0400 (paired t, p = 0.2), the lower end" in found["bm25"]["name"]
    assert found["bm25"]["value"] < 0 < found["tfidf"]["value"] and found["lsa"]["value"] < 0
    assert all(limit["at_least"] == 0 for limit in found.values())
    seeds = maps(better, better - 0.2, better + 0.2)  # of the same mean, which is less certain
    assert against({"limits": list(title_search.ahead(table(), seeds))})["tfidf"]["value"] < found["tfidf"]["value"]


def test_what_needs_another_library_is_compared_with_where_its_record_is_there(table):
    made = table(seeds=(0,))
    assert "static-embedding" not in against({"limits": list(title_search.ahead(made, maps(np.full(20, 0.5))))})
    made.fill("static-embedding", lambda table: kit.Row({"k": 300}, {"map": np.linspace(0, 0.5, 20)}))
    limit = against({"limits": list(title_search.ahead(made, maps(np.full(20, 0.5))))})["static-embedding"]
    assert "+0.2500" in limit["name"] and limit["value"] > 0.15
    other = dataclasses.replace(made, preset="full")
    assert not title_search.recorded(other, "static-embedding")


def test_the_later_record_is_compared_with_all_seeds_of_the_earlier_one(table):
    made = table()
    made.fill("opca-search", lambda table: kit.Row({}, [{"map": np.full(20, at)} for at in (0.4, 0.6)], seeds=(0, 1)))
    theirs = title_search.recorded(made, "opca-search")["opca-search"]
    assert theirs.seeds == pytest.approx([0.4, 0.6]) and theirs.queries == pytest.approx(np.full(20, 0.5))
    limit = title_search.ahead_of_this("opca-search", theirs, maps(np.full(20, 0.45)))
    assert "opca-search less this: +0.0500" in limit["name"] and limit["value"] < 0 == limit["at_least"]
    one = theirs._replace(seeds=theirs.seeds[:1])
    assert title_search.ahead_of_this("opca-search", one, maps(np.full(20, 0.45)))["value"] == pytest.approx(0.05)
