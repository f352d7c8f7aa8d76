"""The choice of settings of systems that are compared: what is kept, what is trained again, what is spelled anew."""

from __future__ import annotations

import json

import numpy as np
import pytest

from experiments.corpora.rankings import Data, Ranking
from experiments.peers import peers
from experiments.peers.systems import QUICK, Bench, System, letter_trigrams
from jaxsim.data import pairs


@pytest.fixture
def data() -> Data:
    """Three pairs, which are training, dev and test alike."""
    given = pairs.make("made up", "abc", ["one", "two", "three"], ["uno", "dos", "tres"], languages=("en", "es"))
    ranking = Ranking(given.left, given.right)
    return Data(given, given, ranking, ranking, given)


def better_with(calls: list):
    """A system whose mates rank first where ``noise`` is 4, and less often the farther it is from that."""
    def make(noise: int, seed: int = 0) -> System:
        calls.append((noise, seed))
        own = np.eye(3) * [1.0, 1.0 if abs(noise - 4) < 2 else -1.0, 1.0 if noise == 4 else -1.0]
        return System(lambda ranking: (own, own.T), 1.0 + seed, {"noise": noise})
    return make


def test_settings_climb_and_the_chosen_one_is_trained_with_every_seed(data):
    calls: list = []
    bench = Bench(data, QUICK, say=lambda line: None)
    found = bench.tune("row", better_with(calls), {"noise": (1, 2, 3, 4, 5)}, random=True)
    assert [run.config["noise"] for run in found.runs] == [4] * QUICK.seeds
    assert [entry["noise"] for entry in found.tried] == [4, 3, 5]
    assert calls == [(4, 0), (3, 0), (5, 0), (4, 0), (4, 1)]
    assert [run.curve[-1]["seconds"] for run in found.runs] == [1.0, 2.0]
    assert len(bench.tune("fixed", better_with(calls), {"noise": (4,)}, random=False).runs) == 1


def test_a_choice_that_was_cut_off_goes_on_with_the_scores_it_has(data, tmp_path):
    path = tmp_path / "new" / "scores.json"

    def tune(made_by: str, row: str = "row") -> list:
        calls: list = []
        bench = Bench(data, QUICK, path, made_by, lambda line: None)
        bench.tune(row, better_with(calls), {"noise": (1, 2, 3, 4, 5)}, random=False)
        return calls

    assert tune("one commit") == [(4, 0), (3, 0), (5, 0), (4, 0)]
    assert tune("one commit") == [(4, 0)]
    assert len(tune("one commit", "another row")) == 4
    assert len(tune("another commit")) == 4
    assert set(json.loads(path.read_text())) == {"made_by", "scores"}


def test_mates_are_scored_both_ways_and_each_way(data):
    ours = np.array([[3.0, 1, 1], [1, 3, 1], [1, 4, 3]])
    found = peers.test(data.test, [System(lambda ranking: (ours, ours.T), 0.0, {})] * 2)
    assert found.means["accuracy"] == [pytest.approx(4 / 6)] * 2
    assert found.by_way["left texts as queries"]["accuracy"] == [pytest.approx(2 / 3)] * 2
    assert found.by_way["right texts as queries"]["mrr"] == [pytest.approx((1 + 1 / 2 + 1) / 3)] * 2
    assert found.values["mrr"].shape == (6,)
    graded = Ranking(data.test.left, data.test.right, np.eye(3))
    assert peers.test(graded, [System(lambda ranking: (ours, None), 0.0, {})]).by_way == {}


def test_what_is_expected_of_the_quality_is_no_figure_in_the_record():
    """Either row may be run again, and both directions of a pair are one observation: the report makes the test."""
    wanted = {"better": "s2net", "worse": "static-embedding", "by": "difference", "at_least": 0.0}
    rows = ["s2net", "static-embedding"]
    assert peers.expectations("s2net", rows, "map") == [{**wanted, "metric": name} for name in ("map", "mrr")]
    assert peers.expectations("s2net", rows, "mrr") == [{**wanted, "metric": "mrr"}]
    assert peers.expectations("opca", rows, "mrr") == peers.expectations("s2net", rows[:1], "mrr") == []


def test_letter_trigrams_of_odd_words():
    assert letter_trigrams(["", "a", "İx ß!", "  "]) == ["", "_a_", letter_trigrams(["İx"])[0] + " _ß_", ""]
