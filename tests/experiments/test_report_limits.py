"""Limits and comparisons of rows in the report: they are about the records that are there."""

from __future__ import annotations

import re

import numpy as np
import pytest

from experiments import kit
from experiments.kit import judge, records, report_limits
from jaxsim.evaluate import significance
from tests.experiments.test_records import made_up


@pytest.fixture
def mined(tmp_path, rng):
    """Two rows of pairs that are searched both ways, with two seeds; one is a little above the other."""
    hard = rng.uniform(0.1, 0.9, 60)
    way = 0.02 + 0.06 * rng.standard_normal(60)
    gain = np.concatenate([way, way])
    for row, each, asked in (("s2net", (0.0, 0.0), ()), ("s2net-mined", (gain - 0.03, gain + 0.03), (
            kit.compared("s2net-mined", "s2net", "mrr", at_least=0.0),))):  # fmt: skip
        seeds = [np.tile(hard, 2) / 2 + more for more in each]
        records.write(made_up(experiment="hard_negatives", table="docstrings", row=row, seeds=[0, 1], curve=[],
                              metrics={"mrr": [float(one.mean()) for one in seeds]}, comparisons=list(asked)),
                      tmp_path, per_query={"mrr": np.mean(seeds, axis=0)})  # fmt: skip
    return tmp_path, {row: records.read(tmp_path / f"hard_negatives/docstrings/{row}.json")
                      for row in ("s2net", "s2net-mined")}, gain  # fmt: skip


def test_directions_of_a_pair_are_one_observation_and_seeds_count(mined):
    results, rows, gain = mined
    (one,) = report_limits.judged(rows.values(), results)
    test = judge.compare(rows["s2net-mined"], rows["s2net"], "mrr", results)
    assert test["n"] == 60 and one.value == test["difference"] == pytest.approx(gain.mean(), abs=1e-6)
    assert one.name == f"MRR of s2net-mined less that of s2net (paired t, p = {judge.p_text(test['p'])})"
    naive = significance.paired_t(gain, np.zeros(120)).pvalue
    assert naive < 0.01 and test["p"] > 0.05
    assert one.holds and one.bound == "at least 0"


def test_a_page_has_a_line_for_every_limit_and_comparison(mined):
    results, rows, _ = mined
    rows = {f"{row}.json": record for row, record in rows.items()}
    rows["s2net.json"] = {**rows["s2net.json"], "limits": [{"name": "GB", "value": 2.0, "at_most": 1.0}],
                          "comparisons": [kit.compared("s2net", "opca", "mrr", at_least=0.0),
                                          kit.compared("s2net", "s2net-mined", "mrr", by="lower end")]}  # fmt: skip
    _, _, _, *lines = report_limits.table(rows, results).splitlines()
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert cells[0] == ["s2net-mined", cells[0][1], cells[0][2], "at least 0", "holds"]
    assert cells[1] == ["s2net", "GB", "2", "at most 1", "**missed**"]
    assert cells[2] == ["s2net", "MRR of s2net less that of opca: no record of opca", "—", "at least 0", ""]
    assert re.match(r"MRR of s2net less that of s2net-mined: -0\.\d{4} \(paired t, .*, the lower end", cells[3][1])
    assert float(cells[3][2]) < 0 and cells[3][3:] == ["—", ""]
    assert report_limits.table({"s2net.json": {"row": "s2net"}}, results) == ""


def test_what_two_records_ask_for_counts_once_and_what_cannot_be_judged_not_at_all(mined):
    results, rows, _ = mined
    asked = rows["s2net-mined"]["comparisons"]
    others = [kit.compared("s2net", "opca", "mrr", at_least=0.0), kit.compared("s2net", "s2net-mined", "accuracy")]
    twice = {**rows, "s2net": {**rows["s2net"], "comparisons": [*asked, *others]}}
    text = report_limits.counted({("hard_negatives", "docstrings"): twice}, results)
    assert "1 of 1 hold. " in text and "Not judged: hard_negatives, docstrings, s2net: MRR of s2net less" in text
    assert "accuracy" not in text  # nothing was expected
    lower = [kit.compared("s2net", "s2net-mined", "mrr", at_least=0.0, by="lower end")]
    missed = {**rows, "s2net": {**rows["s2net"], "comparisons": lower}}
    text = report_limits.counted({("hard_negatives", "docstrings"): missed}, results)
    assert "1 of 2 hold; missed: hard_negatives, docstrings, s2net: MRR of s2net less that of s2net-mined: -0" in text
    assert report_limits.counted({("hard_negatives", "docstrings"): {"s2net": rows["s2net"]}}, results) == ""


def test_rows_of_one_value_are_not_compared(tmp_path):
    rows = {row: made_up(row=row, seeds=[], metrics={"mrr": 0.5}, comparisons=[kit.compared("a", "b", "mrr")])
            for row in ("a", "b")}  # fmt: skip
    (one,) = report_limits.judged(rows.values(), tmp_path)
    assert one.value is None and one.holds is None and "no test is possible" in one.name


def test_a_comparison_in_a_record_has_no_figure():
    asked = kit.compared("a", "b", "mrr", at_least=0.0)
    assert made_up(comparisons=[asked])["comparisons"] == [asked]
    with pytest.raises(ValueError, match=r"comparisons\[0\]: expected fields .*, got value"):
        made_up(comparisons=[{**asked, "value": 0.1}])
    with pytest.raises(ValueError, match=r"comparisons\[0\]\.by: expected difference or lower end, got 'p'"):
        made_up(comparisons=[{**asked, "by": "p"}])
