"""Verdicts on made-up records: the paired test with seeds, the false-discovery rate, ceilings and equal budgets."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import stats

from experiments.kit import Claim, judge, records, report_ledger
from experiments.kit.run import RESULTS
from jaxsim.evaluate import significance
from tests.experiments.test_records import made_up


@pytest.fixture
def tables(tmp_path):
    """Adds rows and returns `tables` and the folder."""
    result = {}

    def add(row, values, *, table="en-es", metric="mrr", seeds=(), per_seed=None, stored=True, arrays=None,
            **changes):
        values = np.asarray(values)
        metrics = {metric: per_seed if per_seed is not None else [float(values.mean())] * max(1, len(seeds))}
        record = made_up(row=row, table=table, seeds=list(seeds), metrics=metrics, **{"curve": [], **changes})
        path = records.write(record, tmp_path, per_query=(arrays or {metric: values}) if stored else None)
        result.setdefault(("made_up", table), {})[row] = records.read(path)

    return result, add, tmp_path


def claim(**changes):
    fields = {"id": "000-a-b", "sentence": "a is above b", "place": "000 §1, Table 1", "tables": ("en-es",),
              "better": "a", "worse": "b", "metric": "mrr", "printed": {"a": 0.8, "b": 0.7}}
    return Claim(**{**fields, **changes})


def only(tables, *claims):
    result, _, folder = tables
    return judge.ledger([("made_up", one) for one in claims or [claim()]], result, folder)


def test_a_difference_is_tested_query_by_query(tables, rng):
    hard = rng.uniform(0.1, 0.6, 300)
    values = hard + 0.02 + 0.02 * rng.standard_normal(300), hard
    tables[1]("a", values[0])
    tables[1]("b", values[1])
    entry, = only(tables, claim(test="unpaired t"))
    paired, own = entry["tests"]["paired"], entry["tests"]["paper"]
    expected = stats.ttest_rel(*(np.float32(one).astype(float) for one in values))
    np.testing.assert_allclose(paired["p"], expected.pvalue, rtol=1e-4)
    np.testing.assert_allclose(paired["interval"], expected.confidence_interval(), rtol=1e-4)
    assert entry["verdict"] == "supported" and paired["p_adjusted"] == paired["p"]
    assert own["p"] > 0.05 and not own["holds"]  # the paper's own test does not see it
    assert entry["paper"] == "000" and entry["ours"]["b"]["seeds"] == 0
    other, = only(tables, claim(better="b", worse="a"))
    assert other["verdict"] == "not supported" and other["tests"]["paired"]["difference"] < 0
    lower, = only(tables, claim(better="b", worse="a", lower=True))
    assert lower["verdict"] == "supported"


def test_what_this_table_could_show_is_found_four_times_in_five(tables, rng):
    tables[1]("a", rng.standard_normal(200) * 0.1 + 0.5)
    tables[1]("b", np.full(200, 0.5))
    smallest = only(tables)[0]["tests"]["paired"]["smallest"]
    pvalues = stats.ttest_1samp(smallest + 0.1 * rng.standard_normal((2000, 200)), 0, axis=1).pvalue
    assert 0.7 < np.mean(pvalues < 0.05) < 0.9


def test_values_of_another_row_and_damaged_ones_are_refused_by_name(tables, rng):
    for row, mean in (("a", 0.6), ("b", 0.5)):
        tables[1](row, mean + 0.02 * rng.standard_normal(300))
    a, b = (tables[2] / "made_up" / "en-es" / f"{row}.npz" for row in "ab")
    whole = a.read_bytes(), b.read_bytes()
    a.write_bytes(whole[1])
    with pytest.raises(ValueError, match=r"a\.npz: mrr: expected values of the mean 0\.[56]\d+, as the record beside"):
        only(tables)
    for damaged in (b"", whole[0][:200], b"not a zip file", whole[0][:-8] + b"\0" * 8):
        a.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"a\.npz: expected the values of a record, got a damaged file"):
            only(tables)
    np.savez(a, mrr=np.full(300, np.nan))
    with pytest.raises(ValueError, match=r"a\.npz: mrr: expected values of the mean .* got nan"):
        only(tables)
    a.write_bytes(whole[0])
    assert only(tables)[0]["verdict"] == "supported"


def test_seeds_that_differ_widen_the_interval(tables, rng):
    values = rng.uniform(0.2, 0.8, 400)
    tables[1]("b", values)
    better = values + 0.01 + 0.01 * rng.standard_normal(400)
    tables[1]("a", better, seeds=range(5))
    assert only(tables)[0]["verdict"] == "supported"
    mean = float(better.mean())
    per_seed = [mean - 0.04, mean - 0.02, mean, mean + 0.02, mean + 0.04]
    tables[1]("a", better, seeds=range(5), per_seed=per_seed)
    entry, = only(tables)
    low, high = entry["tests"]["paired"]["interval"]
    error = np.sqrt(np.var(better - values, ddof=1) / 400 + np.var(per_seed, ddof=1) / 5)
    assert entry["verdict"] == "not supported"
    np.testing.assert_allclose((high - low) / 2, stats.t.ppf(0.975, 4) * error, rtol=0.02)


def test_the_false_discovery_rate_is_controlled_over_the_whole_ledger(tables, rng):
    base = rng.uniform(0.2, 0.6, 200)
    noise = rng.standard_normal(200)
    noise = (noise - noise.mean()) / noise.std(ddof=1)
    tables[1]("b", base)
    tables[1]("a", base + 0.01 * (noise + 2.2 / np.sqrt(200)))  # t = 2.2, p = .03
    assert only(tables)[0]["verdict"] == "supported"
    for i in range(9):
        tables[1](f"c{i}", base + 0.01 * (noise + (0.5 + 0.01 * i) / np.sqrt(200)))
    many = [claim(), *(claim(id=f"c{i}", better=f"c{i}") for i in range(9))]
    entries = only(tables, *many)
    assert entries[0]["verdict"] == "not supported" and entries[0]["tests"]["paired"]["p"] < 0.05
    adjusted = significance.false_discovery_rate([entry["tests"]["paired"]["p"] for entry in entries])
    np.testing.assert_allclose([entry["tests"]["paired"]["p_adjusted"] for entry in entries], adjusted, rtol=1e-4)
    with pytest.raises(ValueError, match="claims: expected ids that differ, got 000-a-b twice"):
        only(tables, claim(), claim())


def test_a_table_too_easy_one_not_run_and_a_written_reason(tables, rng):
    for row in "ab":
        tables[1](row, np.full(20, 0.96), table="easy")
    tables[1]("a", np.full(20, 0.96))
    tables[1]("b", np.full(20, 0.94))
    given = claim(tables=("easy", "en-es", "never"), why={"never": "no corpus"})
    assert [entry["verdict"] for entry in only(tables, given)] == ["too easy to tell", "supported", "not run"]
    assert [entry["why"] for entry in only(tables, given)] == [None, None, "no corpus"]
    assert only(tables, claim(worse="c"))[0]["why"] == "no record of c"
    assert "p_adjusted" not in only(tables, given)[0]["tests"]["paired"]
    assert only(tables, claim(tables=("easy",), ceiling=0.97))[0]["verdict"] == "not supported"


def test_a_table_that_cannot_tell_says_so_before_the_written_reason(tables):
    noise = np.tile([0.1, -0.1], 100)
    tables[1]("b", np.full(200, 0.5))
    tables[1]("a", 0.501 + noise)  # an interval of .001 ± .014
    cannot = "this table cannot tell: no difference and the printed one, 0.01, are both within the interval"
    for printed, written, expected in (
        ({"a": 0.71, "b": 0.7}, {}, cannot),
        ({"a": 0.71, "b": 0.7}, {"en-es": "not known; few queries"}, f"{cannot}; few queries"),
        ({"a": 0.8, "b": 0.7}, {}, judge.UNWRITTEN),  # as much as is printed is ruled out
        ({"a": 0.8, "b": 0.7}, {"en-es": "not known; few queries"}, "not known; few queries"),
        ({}, {}, judge.UNWRITTEN),
    ):
        entry, = only(tables, claim(printed=printed, why=written))
        assert entry["verdict"] == "not supported" and entry["why"] == expected


def test_rows_of_different_splits_are_not_compared(tables):
    for row, test in (("a", 30), ("b", 20)):
        counts = {"split": {"train": 9, "test": test}}
        tables[1](row, np.full(20, 0.5), dataset={**made_up()["dataset"], "counts": counts})
    entry, = only(tables)
    assert entry["verdict"] == "not run" and entry["why"] == "the two rows are of different splits"


def test_rows_without_queries_are_compared_over_folds_or_seeds(tables):
    tables[1]("a", [0.0], metric="auc", seeds=range(3), per_seed=[0.6, 0.71, 0.8], stored=False)
    tables[1]("b", [0.0], metric="auc", seeds=range(3), per_seed=[0.5, 0.6, 0.7], stored=False)
    tables[1]("c", [0.5], metric="auc", stored=False)
    folds, alone = only(tables, claim(metric="auc", test="paired t"), claim(id="x", metric="auc", worse="c"))
    assert folds["tests"]["paired"]["test"] == "paired t over seeds" and folds["verdict"] == "supported"
    assert folds["tests"]["paper"]["p"] == folds["tests"]["paired"]["p"]
    tables[1]("a", [0.0], metric="auc", seeds=range(3), per_seed=[0.6, 0.71, 0.8], stored=False,
              dev={"folds": [{"auc": 0.5}] * 3})
    overlap, = only(tables, claim(metric="auc", test="paired t"))
    apart = np.array([0.1, 0.11, 0.1])
    error = np.sqrt(np.var(apart, ddof=1) * (1 / 3 + 1 / 2))  # training parts of folds overlap
    expected = 2 * stats.t.sf(apart.mean() / error, 2)
    np.testing.assert_allclose(overlap["tests"]["paired"]["p"], expected, rtol=1e-4)
    assert overlap["tests"]["paper"]["p"] == folds["tests"]["paper"]["p"] < expected
    expected = stats.ttest_1samp([0.6, 0.71, 0.8], 0.5).pvalue
    np.testing.assert_allclose(alone["tests"]["paired"]["p"], expected, rtol=1e-5)
    tables[1]("d", [0.4], metric="auc", stored=False)
    none, = only(tables, claim(metric="auc", better="c", worse="d"))
    assert none["verdict"] == "not supported" and "no test is possible" in none["why"]


def test_a_test_of_random_parts_of_the_pairs_decides_nothing(tables, rng, monkeypatch):
    monkeypatch.setitem(judge.OVER_PARTS, "made_up", ("auc",))
    for row, all_pairs, shift in (("a", 0.62, 0.0), ("b", 0.6, 0.02)):
        tables[1](row, 0.62 - shift + 0.001 * rng.standard_normal(50), metric="auc", per_seed=[all_pairs])
    entry, = only(tables, claim(metric="auc", test="paired t"))
    assert entry["tests"]["paired"]["test"] == "paired t over 50 parts" and entry["tests"]["paired"]["n"] == 50
    assert entry["tests"]["paired"]["p"] < 1e-6 and entry["verdict"] == "not run" and "of one query" in entry["why"]
    page = report_ledger.claims_page([entry])
    assert ", paired t over 50 parts |" in page and "over parts of the pairs" in report_ledger.claims([entry], "x.md")
    for row in "ab":
        tables[1](row, rng.uniform(size=50), metric="mrr")
    assert only(tables)[0]["tests"]["paired"]["test"] == "paired t"


def test_values_of_queries_decide_beside_random_parts_of_the_pairs(tables, rng, monkeypatch):
    monkeypatch.setitem(judge.OVER_PARTS, "made_up", ("auc",))
    parts, queries = 0.001 * rng.standard_normal((2, 50)), 0.1 * rng.standard_normal((2, 30))
    for row, all_pairs, part, query in zip("ab", (0.62, 0.6), parts, queries, strict=True):
        arrays = {"auc": all_pairs + part, "auc" + judge.BY_QUERY: all_pairs + query}
        tables[1](row, arrays["auc"], metric="auc", per_seed=[all_pairs], arrays=arrays)
    entry, = only(tables, claim(metric="auc", test="paired t"))
    assert entry["tests"]["paired"]["test"] == "paired t" and entry["tests"]["paired"]["n"] == 30
    assert entry["verdict"] == "not supported"
    assert entry["tests"]["paper"]["n"] == 50 and entry["tests"]["paper"]["holds"]


def test_values_of_documents_decide_where_both_rows_have_them(tables, rng):
    for row, mean in (("a", 0.61), ("b", 0.6)):
        tables[1](row, [0.0], seeds=range(5), per_seed=mean + 0.001 * rng.standard_normal(5), metric="auc",
                  arrays={"auc" + judge.BY_QUERY: mean + 0.1 * rng.standard_normal(30)})  # fmt: skip
    entry, = only(tables, claim(metric="auc"))
    assert entry["tests"]["paired"]["test"] == "paired t" and entry["tests"]["paired"]["n"] == 30
    assert entry["verdict"] == "not supported"
    tables[1]("b", [0.0], seeds=range(5), per_seed=0.6 + 0.001 * rng.standard_normal(5), metric="auc", stored=False)
    entry, = only(tables, claim(metric="auc"))
    assert entry["tests"]["paired"]["test"] == "paired t over seeds" and entry["verdict"] == "supported"


def test_that_one_row_gains_nothing_stands_until_a_gain_is_shown(tables, rng):
    start = rng.uniform(0.2, 0.8, 200)
    tables[1]("a", start)
    sentence = claim(no_gain=True, printed={})
    for change, verdict in ((np.zeros(200), "supported"), (0.1 * rng.standard_normal(200), "supported"),
                            (np.full(200, -0.1), "supported"), (0.1 + 0.1 * rng.standard_normal(200), "not supported")):
        tables[1]("b", start + change)
        gain, other = only(tables, sentence, claim(id="000-other"))
        assert gain["verdict"] == verdict and gain["tests"]["paired"]["p_adjusted"] == gain["tests"]["paired"]["p"]
        assert other["tests"]["paired"]["p_adjusted"] == other["tests"]["paired"]["p"]  # one p is adjusted, not two
    assert "not supported" in report_ledger.claims_page([gain]) and report_ledger.reverse(gain)


def test_values_of_a_repeated_cross_validation_are_tested_over_its_folds(tables, rng):
    apart, base = 0.02 + 0.02 * rng.standard_normal((5, 10)), rng.uniform(0.3, 0.5, (5, 10))
    for row, folds in (("a", base + apart), ("b", base)):
        tables[1](row, folds.ravel(), arrays={"mrr": folds.ravel(), "mrr" + judge.BY_FOLD: folds})
    test = only(tables)[0]["tests"]["paired"]
    # Bouckaert and Frank 2004: ten folds, dealt five times.
    expected = apart.mean() / np.sqrt(apart.var(ddof=1) * (1 / 50 + 1 / 9))
    np.testing.assert_allclose(test["p"], 2 * stats.t.sf(expected, 49), rtol=1e-4)
    assert test["test"] == "paired t over folds, corrected" and test["n"] == 50
    tables[1]("b", base.ravel())  # an older record has none
    assert only(tables)[0]["tests"]["paired"]["test"] == "paired t"


def test_no_claim_is_supported_where_test_queries_were_in_view(tables):
    for row, mean in (("a", 0.7), ("b", 0.6)):
        tables[1](row, mean + 0.01 * np.arange(20))
    one = judge.ledger([("made_up", claim())], tables[0], tables[2], {("made_up", "en-es")})[0]
    assert one["verdict"] == "not run" and "in view" in one["why"] and only(tables)[0]["verdict"] == "supported"
    other, = judge.ledger([("made_up", claim(better="b", worse="a"))], tables[0], tables[2], {("made_up", "en-es")})
    assert other["verdict"] == "not supported"


def test_a_loser_at_the_edge_of_its_grid_is_not_called_the_reverse(tables, rng):
    for row, mean in (("a", 0.5), ("b", 0.6)):
        tables[1](row, mean + 0.01 * rng.standard_normal(100))
    entries = only(tables)
    assert "[b over a](x.md#000-a-b)" in report_ledger.claims(entries, "x.md")
    assert "over a]" not in report_ledger.claims(entries, "x.md", {("made_up", "en-es", "a")})
    assert "[b over a]" in report_ledger.claims(entries, "x.md", {("made_up", "en-es", "b")})


def test_peers_of_fewer_seeds_are_not_compared_and_queries_in_view_are_marked(tables, rng):
    hard = rng.uniform(0.2, 0.8, 50)
    for table, seeds in (("en-es", range(5)), ("en-fr", ())):
        tables[1]("s2net", hard + 0.1, table=table, paper="none")
        for row, own in (("lsa", ()), ("static-embedding", seeds)):
            tables[1](row, hard + 0.01 * rng.standard_normal(50), table=table, paper="none", seeds=own)
    text = report_ledger.contests(tables[0], tables[2], {("made_up", "en-fr")})
    lines = [line.split(" | ") for line in text.splitlines() if line.startswith("| made_up")]
    assert lines[0][0] == "| made_up, en-es" and "static-embedding +" in lines[0][2]
    assert lines[1][0] == "| made_up, en-fr (seen)" and lines[1][2].startswith("lsa +") and "static" not in lines[1][2]
    assert "in view" in text and "by an older script: made_up, en-fr: static-embedding." in text


def test_equal_budget_is_judged_beside(tables, rng):
    curves = {"a": [(10, 0.5), (20, 0.6), (40, 0.7)], "b": [(20, 0.65), (40, 0.6), (80, 0.9)]}
    for row, curve in curves.items():
        tables[1](row, rng.uniform(size=20), curve=[{"k": k, "mrr": mrr, "split": "dev"} for k, mrr in curve])
    equal = only(tables, claim(equal=("k",)))[0]["tests"]["equal"]
    assert equal["points"] == [{"k": 20, "better": 0.6, "worse": 0.65}, {"k": 40, "better": 0.7, "worse": 0.6}]
    assert equal["above"] == 1 and equal["split"] == "dev"
    assert only(tables, claim(equal_rows=("a", "b")))[0]["tests"]["equal"]["rows"] == ["a", "b"]


def test_a_sentence_of_another_form_has_a_predicate(tables):
    tables[1]("a", np.full(4, 0.5))
    tables[1]("b", np.full(4, 0.75))
    given = claim(holds=lambda rows: (rows["a"]["metrics"]["mrr"]["mean"] * 2 > 0.75, "1.00 against .75"))
    entry, = only(tables, given)
    assert entry["verdict"] == "supported" and entry["tests"]["figures"]["line"] == "1.00 against .75"


def test_mcnemar_needs_right_and_wrong(tables):
    tables[1]("a", [1.0] * 12, metric="accuracy")
    tables[1]("b", [0.0] * 9 + [1.0] * 3, metric="accuracy")
    tables[1]("c", [0.5] * 12, metric="accuracy")
    given = {"metric": "accuracy", "test": "mcnemar"}
    assert only(tables, claim(**given))[0]["tests"]["paper"]["p"] == pytest.approx(2 / 2**9, rel=1e-4)
    assert "paper" not in only(tables, claim(worse="c", **given))[0]["tests"]
    tables[1]("d", [1.0] * 11 + [0.0], metric="accuracy")
    tables[1]("e", [0.0] * 8 + [1.0] * 4, metric="accuracy")
    tables[1]("f", [0.0, 0.5] * 6, metric="accuracy")
    unpaired = {"better": "d", "metric": "accuracy", "test": "unpaired t"}  # McNemar's test stands beside
    assert only(tables, claim(worse="e", **unpaired))[0]["tests"]["paper"]["mcnemar"] == pytest.approx(20 / 2**9, 1e-4)
    assert "mcnemar" not in only(tables, claim(worse="f", **unpaired))[0]["tests"]["paper"]


def test_near_copies_among_test_pairs_count_together(tables, rng, monkeypatch, tmp_path):
    monkeypatch.setattr(judge, "BOTH_DIRECTIONS", ("made_up",))
    groups = np.sort(rng.integers(0, 40, 120))
    groups = np.unique(groups, return_inverse=True)[1]
    monkeypatch.setattr(judge, "GROUPS", tmp_path / "groups.json")
    judge.GROUPS.write_text(json.dumps({"en-es": groups.tolist()}))
    apart = (0.01 + 0.05 * rng.standard_normal(groups.max() + 1))[groups] + 0.02 * rng.standard_normal(120)
    base = rng.uniform(0.3, 0.6, 120)
    for row, values in (("a", base + apart), ("b", base)):
        tables[1](row, np.tile(values, 2))
    test = only(tables)[0]["tests"]["paired"]
    # The variance of a mean of clusters, from residuals (Liang and Zeger 1986), and of G values G / (G - 1) times that.
    sums, number = np.bincount(groups, apart - apart.mean()), groups.max() + 1
    error = np.sqrt((sums**2).sum() * number / (number - 1)) / 120
    np.testing.assert_allclose(test["difference"], apart.mean(), rtol=1e-4)
    np.testing.assert_allclose(test["p"], 2 * stats.t.sf(apart.mean() / error, number - 1), rtol=1e-3)
    assert test["n"] == number
    tables[1]("a", np.tile(base + apart, 2)[:-2])  # other pairs than those whose groups are known
    assert judge.per_query(tables[0]["made_up", "en-es"]["a"], "mrr", tables[2]).size == 119


def test_the_groups_are_of_the_test_pairs_that_all_records_of_docstrings_have():
    pairs = len(json.loads(judge.GROUPS.read_text())["docstrings"])
    found = [path for name in ("yih2011_mates", "platt2010_mates", "mate_hubs", "peers", "hard_negatives")
             for path in (RESULTS / name / "docstrings").glob("*.npz")]  # fmt: skip
    assert len(found) > 40
    for path in found:
        with np.load(path) as arrays:
            assert arrays["mrr"].shape == (2 * pairs,), path


def test_both_directions_of_a_pair_are_one_observation(tables, rng, monkeypatch):
    monkeypatch.setattr(judge, "BOTH_DIRECTIONS", ("made_up",))
    base, noise = rng.uniform(0.2, 0.6, 100), 0.05 * rng.standard_normal(100)
    tables[1]("b", np.tile(base, 2))
    tables[1]("a", np.concatenate([base + 0.01 + noise, base + 0.02 + noise]))
    entry, = only(tables)
    expected = stats.ttest_1samp(0.015 + noise, 0)
    assert entry["tests"]["paired"]["n"] == 100
    np.testing.assert_allclose(entry["tests"]["paired"]["p"], expected.pvalue, rtol=1e-3)


def test_tests_of_the_same_values_count_once_for_the_false_discovery_rate(tables, rng):
    base = rng.uniform(0.2, 0.6, 200)
    tables[1]("b", base)
    tables[1]("a", base + 0.01 * rng.standard_normal(200) + 0.0015)
    tables[1]("c", base + 0.01 * rng.standard_normal(200))
    alone = only(tables, claim(), claim(id="c", better="c"))
    again = only(tables, claim(), claim(id="c", better="c"), *(claim(id=f"c{i}", better="c") for i in range(5)))
    assert [entry["repeats"] for entry in again] == [None, None, *[["c", "en-es"]] * 5]
    assert {entry["tests"]["paired"]["p_adjusted"] for entry in again[1:]} == {
        alone[1]["tests"]["paired"]["p_adjusted"]}
    assert alone[0]["tests"]["paired"]["p_adjusted"] == again[0]["tests"]["paired"]["p_adjusted"]


def test_what_is_the_reverse_at_equal_budget_is_not_supported(tables, rng):
    base = rng.uniform(0.2, 0.6, 200)
    curves = {"a": [0.4, 0.5, 0.7], "b": [0.45, 0.55, 0.6]}
    for row, gain in (("a", 0.1), ("b", 0.0), ("a-b1", -0.1), ("b-b1", 0.0)):
        points = [{"k": k, "mrr": value} for k, value in zip((100, 300, 500), curves.get(row, ()), strict=False)]
        tables[1](row, base + gain + 0.01 * rng.standard_normal(200), curve=points[:2 if row == "b" else 3])
    assert only(tables)[0]["verdict"] == "supported"
    entry, = only(tables, claim(equal_rows=("a-b1", "b-b1"), why={"en-es": "not known; b hides it"}))
    assert entry["verdict"] == "not supported"
    assert entry["why"].startswith("at equal budget it is the reverse: a-b1 is 0.")
    assert entry["why"].endswith("); b hides it")
    entry, = only(tables, claim(equal=("k",)))
    assert entry["verdict"] == "not supported"
    assert entry["why"] == "at equal budget it is the reverse in all of 2: k = 100, k = 300 (dev)"
    assert only(tables, claim(equal_rows=("b-b1", "a-b1")))[0]["verdict"] == "supported"


def test_a_predicate_over_rows_above_the_ceiling_is_too_easy_and_own_questions_are_marked(tables):
    for row in "ab":
        tables[1](row, np.full(20, 0.96))
    given = claim(holds=lambda rows: (True, "one line"), own=True)
    entry, = only(tables, given)
    assert (entry["verdict"], entry["of"]) == ("too easy to tell", "project")
    assert only(tables, claim(holds=given.holds, ceiling=1.0))[0]["verdict"] == "supported"
