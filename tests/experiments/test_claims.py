"""What claims that are no comparison of two means ask of records."""

from __future__ import annotations

import pytest

from experiments.corpora import links
from experiments.links import bai2010_clicks
from experiments.mates import yih2011


def _curves(split="dev", **rows):
    return {row: {"curve": [{"k": k, "mrr": mrr, "split": split} for k, mrr in points.items()]}
            for row, points in rows.items()}


@pytest.mark.parametrize(("trained", "holds", "line"), [
    ({100: 0.7, 500: 0.81, 1000: 0.9}, True, "dev pairs: +0.1000 at k = 100, +0.0100 at k = 500"),
    ({100: 0.6, 500: 0.81, 1000: 0.9}, False, "dev pairs: +0.0000 at k = 100, +0.0100 at k = 500"),
])  # fmt: skip
def test_the_gap_is_compared_at_dimensions_that_both_have(trained, holds, line):
    rows = _curves(opca={50: 0.1, 100: 0.6, 500: 0.8}, s2net=trained)
    assert yih2011.gap_in_few_dimensions(rows) == (holds, line)


def test_test_pairs_decide_where_every_row_has_them():
    dev, test = _curves(opca={100: 0.5}, s2net={100: 0.6}), _curves("test", opca={100: 0.5}, s2net={100: 0.4})
    both = {row: {"curve": dev[row]["curve"] + test[row]["curve"]} for row in dev}
    assert yih2011.best_at_every_dimension(both) == (False, "test pairs: not above opca at k = 100")
    # By development pairs training stops, and its start is among what it may return.
    assert yih2011.best_at_every_dimension(dev) == (None, "dev pairs: above at all of 1: k = 100")
    assert yih2011.best_at_every_dimension({**both, "opca": dev["opca"]})[0] is None
    cca = {"cca": {"curve": _curves("test", cca={50: 0.9})["cca"]["curve"]}}
    assert yih2011.best_at_every_dimension({**both, **cca})[1].endswith("; cca has none of 100")
    assert yih2011.compactness(_curves("test", opca={100: 0.5, 200: 0.6}, s2net={100: 0.6})) == (
        True, "test pairs: OPCA needs more than 2.0 × at k = 100")


@pytest.mark.parametrize(("function", "metric", "one", "other", "holds"), [
    (links.barely_better, "map", ("tfidf", 0.2), ("qe", 0.209), True),
    (links.barely_better, "map", ("tfidf", 0.2), ("qe", 0.1), True),
    (links.barely_better, "map", ("tfidf", 0.2), ("qe", 0.211), False),
    (bai2010_clicks.alike, "rank_loss", ("ssi-hash-10m", 0.26), ("ssi-asym-10k", 0.25), True),
    (bai2010_clicks.alike, "rank_loss", ("ssi-hash-10m", 0.25), ("ssi-asym-10k", 0.27), False),
])  # fmt: skip
def test_what_is_alike_is_within_a_twentieth(function, metric, one, other, holds):
    rows = {row: {"metrics": {metric: {"mean": value}}, "config": {"E": 3}} for row, value in (one, other)}
    assert function(rows)[0] == holds
