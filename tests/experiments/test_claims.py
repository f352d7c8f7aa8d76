"""What claims that are no comparison of two means ask of records."""

from __future__ import annotations

import pytest

from experiments.ads import yih2011_ads
from experiments.corpora import links
from experiments.links import bai2010_clicks, bai2010_cross_language
from experiments.mates import yih2011
from experiments.reuters import yih2010_reuters


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


def _means(**rows):
    return {row: {"metrics": {name: {"mean": value} for name, value in values.items()}} for row, values in rows.items()}


@pytest.mark.parametrize(("loss", "holds", "line"), [
    (0.0192, True, "rank loss -4.0%, MAP +50.0%"), (0.0189, False, "rank loss -5.5%, MAP +50.0%"),
    (0.022, True, "rank loss +10.0%, MAP +50.0%"),
])  # fmt: skip
def test_a_second_task_helps_little_below_a_twentieth_of_the_rank_loss(loss, holds, line):
    rows = _means(both={"rank_loss": loss, "map": 0.3}, one={"rank_loss": 0.02, "map": 0.2})
    assert bai2010_cross_language.helps_little("both", "one", rows) == (holds, line)


def test_only_one_row_may_be_above_terms_by_every_metric():
    def values(auc, *others):
        return dict(zip(yih2011_ads.METRICS, (auc, *others), strict=True))

    rows = dict.fromkeys(yih2011_ads.PRINTED, values(0.4, 0.6, 0.5, 0.6))
    rows |= {"tfidf": values(0.5, 0.5, 0.5, 0.5), "s2net-pref": values(0.6, 0.6, 0.6, 0.6)}
    holds, line = yih2011_ads.only_one_above_terms(_means(**rows))
    assert holds and line.startswith("above: s2net-pref in all; hdlr in ndcg@1, ndcg@5; ")
    assert not yih2011_ads.only_one_above_terms(_means(**{**rows, "pca": rows["s2net-pref"]}))[0]
    assert not yih2011_ads.only_one_above_terms(_means(**{**rows, "s2net-pref": rows["tfidf"]}))[0]


def test_lsa_is_best_where_its_development_auc_is():
    rows = _means(**{row: {"auc": 0.9, "map": 0.6} for row in ("lsa", "lsa-10")})
    rows["lsa"]["curve"] = [{"k": k, "auc": auc, "split": "dev"} for k, auc in ((2, 0.7), (5, 0.9), (10, 0.8))]
    assert yih2010_reuters.lsa_at_five(rows) == (True, "development AUC 0.700 at 2, 0.900 at 5, 0.800 at 10; test AUC "
                                                       "0.900 at 5, 0.900 at 10; test MAP 0.600 at 5, 0.600 at 10")
    rows["lsa"]["curve"][2]["auc"] = 0.95
    assert not yih2010_reuters.lsa_at_five(rows)[0]
