"""The papers' claims as data, judged from records alone.

A claim is tested in every table that it names: by a paired test on per-query values, which decides; by the paper's own
test beside; and at equal budget beside. The verdicts of all claims together make the ledger, and the false-discovery
rate is controlled over the whole of it.

**The paired test and seeds.** Per-query values are means over seeds, so that they say how the difference varies over
queries and not how it varies over seeds. The standard error of a difference is therefore the root of a sum: the
variance of the differences over the number of queries, and for each row with several seeds its variance between seeds
over their number. Degrees of freedom are Welch and Satterthwaite's. What varies over both is counted twice, which makes
the test a little strict. A row with a single seed adds nothing, since its variance is not known: the row's note
`fewer-than-five-seeds` says so. AUC over all pairs has jackknife values of queries or documents (`BY_QUERY`), and a
cross-validation that was repeated has means of its folds (`BY_FOLD`): these go first where both records have them.
Where records hold no per-query values of a metric, rows over the same folds or seeds are paired by these; otherwise
seeds alone are compared, and the entry says so. Folds share most of what is trained on, so that their differences vary
less than those of fresh data would: the variance of a mean over J folds is taken as ``(1 / J + 1 / (J - 1))`` times
that of the differences (Nadeau and Bengio, Machine Learning 52, 2003), and as ``(1 / RJ + 1 / (J - 1))`` times where
the folds were dealt R times (Bouckaert and Frank, PAKDD 2004).

**Pairs that are searched in both directions** are one observation: whatever makes a page hard to find makes its mate
hard to find too, so that the two values of a pair are averaged before any test (`BOTH_DIRECTIONS`). So are near-copies
among the test pairs of a table that has them (`GROUPS`): their values count together, as a cluster. Both hold for the
papers' own tests too.

**Equal budget.** Where a claim names rows of equal budget, or settings that both curves have, and it is the reverse
there, the claim is not supported, whatever the rows with the best settings of each say: these may have been tried at
more settings, or with the weight of a part that hides the other.

**Tests that are the same.** Two papers may make one claim, and two rows be one (training that returns its start): a
test whose figures are those of an earlier one is marked and counts once for the false-discovery rate.
"""

from __future__ import annotations

import functools
import io
import json
import math
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from scipy import stats

from jaxsim import checks
from jaxsim.evaluate import significance

__all__ = ["CEILING", "LEVEL", "OVER_PARTS", "PARTS", "UNWRITTEN", "VERDICTS", "Claim", "above_over_folds", "compare",
           "ledger", "p_text", "paired", "parts_of", "per_query", "written"]

CEILING = 0.95
"""Above this accuracy, MRR or AUC of both rows a table is too easy to tell; written down before any run."""
LEVEL = 0.05
"""Of the false-discovery rate over the ledger."""
UNWRITTEN = "not known; nobody has looked yet"
"""Stands where the claim has no written reason for a verdict against the paper."""
BOTH_DIRECTIONS = ("yih2011_mates", "platt2010_mates", "mate_hubs", "peers/docstrings", "peers/en-es-human",
                   "hard_negatives/docstrings")
"""Experiments, or tables of one, whose values are those of all pairs in one direction, then of all in the other."""
GROUPS = Path(__file__).parents[1] / "groups.json"
"""Table with many near-copies among its test pairs -> the group of each pair; `corpora.near_copies` writes it."""
OVER_PARTS = {"yih2011_ads": ("auc",)}
"""Experiment -> metrics of all pairs, of which the values beside a record are those of random parts of the pairs: a
test is of the mean over the parts, which is not quite the figure of all pairs. It decides nothing, since the pairs of
one query are not independent of one another; the jackknife values of queries do (`BY_QUERY`)."""
BY_QUERY = "_by_query"
"""What the name of such a metric has behind it where the values are jackknife pseudo-values, one a query or one a
document (`jaxsim.evaluate.significance.jackknife_auc`)."""
BY_FOLD = "_by_fold"
"""What it has behind it where the values are means of the folds of a cross-validation, ``[repetitions, folds]``."""
PARTS = " parts"
"""How the name of a test over random parts of the pairs ends."""
VERDICTS = ("supported", "not supported", "too easy to tell", "not run")
_EASY = ("accuracy", "mrr", "auc")
_POWER = 0.8
_SEVERAL = 2
_ROUNDING = 2e-6  # of values kept as float32, in their mean


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper: in these tables, one row is better than another.

    The verdict is computed by the report from the records and their per-query values: twice by the paper's own protocol
    (its test, and a paired one), and at equal budget beside.

    Attributes:
      id: Short and unique over all papers: `000-s2net-opca`.
      sentence: What the paper says, in a line.
      place: Where: `000 §4.1.2, Table 1`.
      tables: Tables of the experiment that test it; the first is the closest to the paper's.
      better: Row that the paper has above.
      worse: Row that it has below.
      metric: By which.
      printed: Row -> the paper's figure.
      lower: Whether a lower value is better, as for rank loss and perplexity.
      test: The paper's own: `paired t`, `unpaired t`, `mcnemar`, or `none` where it has none.
      metric_of_test: The metric that the paper tests, where it is another one.
      alpha: The paper's level.
      equal: Settings at which the rows are compared beside, such as `("k",)`: at points that both curves have.
      equal_rows: ``(better, worse)`` rows of equal budget, where these are rows of their own.
      holds: For a sentence of another form: function of the table's rows (row -> record) that returns whether it holds
        (None where the records do not tell, which is "not run") and a line that says by what figures; ``better`` and
        ``worse`` are then only shown.
      no_gain: Whether the sentence is that ``worse``, which goes on from ``better``, is not above it: supported unless
        the paired test shows a gain at `LEVEL`, for itself. Its interval says how large a gain there may be.
      ceiling: As `CEILING`.
      own: Whether it is a question of this project, which no paper answers; counted apart.
      why: Table -> why it is otherwise there, as far as records tell, written by somebody who looked; "not known"
        where they do not tell. It is about records of the preset `full`, and stands beside no others.
    """

    id: str
    sentence: str
    place: str
    tables: tuple[str, ...]
    better: str
    worse: str
    metric: str
    printed: Mapping[str, float] = field(default_factory=dict)
    lower: bool = False
    test: Literal["paired t", "unpaired t", "mcnemar", "none"] = "none"
    metric_of_test: str | None = None
    alpha: float = 0.05
    equal: tuple[str, ...] = ()
    equal_rows: tuple[str, str] | None = None
    holds: Callable[[Mapping[str, Mapping[str, Any]]], tuple[bool | None, str]] | None = None
    no_gain: bool = False
    ceiling: float = CEILING
    own: bool = False
    why: Mapping[str, str] = field(default_factory=dict)


def ledger(
    claims: Iterable[tuple[str, Claim]], tables: Mapping[tuple[str, str], Mapping[str, Any]], results: Path,
    seen: Collection[tuple[str, str]] = (),
) -> list[dict[str, Any]]:
    """Judges every claim in every table that it names.

    Args:
      claims: ``(experiment, claim)``.
      tables: ``(experiment, table)`` -> row -> record.
      results: Root of the records, for per-query values.
      seen: ``(experiment, table)`` whose test queries were in view when a method was settled (`Plan.seen`): no claim is
        supported there.

    Returns:
      One dict a claim and table, in their order: ``id, experiment, table, paper, of, place, sentence, metric, better,
      worse, printed, ours, tests, verdict, why, repeats``; `experiments/results/claims.json` holds what `written` makes
      of it. ``of`` is ``paper`` or ``project``. ``tests`` has ``paired`` (with ``p_adjusted``, by which the verdict
      goes), ``paper`` and ``equal``, where these can be made. ``repeats`` is the ``(id, table)`` of an earlier test
      with the same figures, or None.

    Raises:
      ValueError: two claims have one id.
    """
    claims = list(claims)
    names = [claim.id for _, claim in claims]
    if len(set(names)) < len(names):
        again = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"claims: expected ids that differ, got {again} twice")
    entries = [_entry(experiment, claim, table, tables.get((experiment, table), {}), results)
               for experiment, claim in claims for table in claim.tables]  # fmt: skip
    _correct(entries)
    for entry in entries:
        _decide(entry)
        if entry["verdict"] == "supported" and (entry["experiment"], entry["table"]) in seen:
            entry |= {"verdict": "not run", "why": "its test queries were in view when the method was settled"}
    return [_rounded(entry) for entry in entries]


def _correct(entries: Sequence[dict[str, Any]]) -> None:
    """Marks tests that repeat an earlier one, and adjusts p of those that decide, each counted once."""
    tested = [entry for entry in entries if "paired" in entry["tests"]]
    first: dict[tuple, dict[str, Any]] = {}
    for entry in tested:
        earlier = first.setdefault(_figures(entry["tests"]["paired"]), entry)
        entry["repeats"] = None if earlier is entry else [earlier["id"], earlier["table"]]
    undecided = [entry["tests"]["paired"] for entry in tested if not entry["verdict"]]
    pool = {_figures(test): test["p"] for test in undecided}
    if pool:
        adjusted = dict(zip(pool, significance.false_discovery_rate([*pool.values()]), strict=True))
        for test in undecided:
            test["p_adjusted"] = float(adjusted[_figures(test)])


def _decide(entry: dict[str, Any]) -> None:
    """The verdict, where there is none yet, and why it is what it is."""
    test = entry["tests"].get("paired")
    if not entry["verdict"]:
        against = _reversed_at_equal_budget(entry["tests"].get("equal"))
        good = test is not None and test["difference"] > 0 and test["p_adjusted"] < LEVEL
        entry["verdict"] = "supported" if good and not against else "not supported"
        if test is None and not entry["why"]:
            entry["why"] = "no test is possible: each row is one value, without its queries or seeds"
        if good and against:
            entry["why"] = "; ".join([against, *([_known(entry["why"])] if entry["why"] else [])])
    if entry["verdict"] == "not supported":
        entry["why"] = _reason(entry["why"], _undecided(entry))
    elif entry["verdict"] == "supported":
        entry["why"] = None


def _figures(test: Mapping[str, Any]) -> tuple:
    """What two tests of the same values share, to nine digits."""
    low, high = test["interval"]
    return test["metric"], test["n"], *(float(f"{value:.9g}") for value in (test["difference"], test["p"], low, high))


def _reversed_at_equal_budget(equal: Mapping[str, Any] | None) -> str:
    """That the other row is better at equal budget: clearly, or at every shared setting of several; empty otherwise."""
    if equal is None:
        return ""
    if "rows" in equal:
        if equal["difference"] >= 0 or equal["p"] >= LEVEL:
            return ""
        better, worse = equal["rows"]
        return (f"at equal budget it is the reverse: {better} is {abs(equal['difference']):.4f} below {worse} "
                f"(p = {equal['p']:.2g})")
    if equal["above"] or len(equal["points"]) < _SEVERAL:
        return ""
    at = ", ".join("/".join(f"{name} = {point[name]:g}" for name in equal["settings"]) for point in equal["points"])
    return f"at equal budget it is the reverse in all of {len(equal['points'])}: {at} ({equal['split']})"


def _undecided(entry: Mapping[str, Any]) -> str:
    """That a table cannot tell: no difference and the paper's own are both in the interval; empty otherwise."""
    test, printed = entry["tests"].get("paired"), [entry["printed"].get(entry[side]) for side in ("better", "worse")]
    if test is None or None in printed:
        return ""
    apart = abs(printed[0] - printed[1])
    low, high = test["interval"]
    if not low <= 0 <= apart <= high:
        return ""
    return f"this table cannot tell: no difference and the printed one, {apart:.4g}, are both within the interval"


def _reason(written: str | None, computed: str) -> str:
    """Why a verdict is against the paper: what the test says, and what the script does."""
    if not computed:
        return written or UNWRITTEN
    return "; ".join([computed, *([_known(written)] if written else [])])


def _known(written: str) -> str:
    """What is written, behind something that is known."""
    return written.removeprefix("not known; ")


def _entry(
    experiment: str, claim: Claim, table: str, rows: Mapping[str, Mapping[str, Any]], results: Path
) -> dict[str, Any]:
    """One claim in one table; the verdict is empty where the false-discovery rate has still to decide."""
    names = (claim.better, claim.worse)
    entry: dict[str, Any] = {
        "id": claim.id, "experiment": experiment, "table": table, "paper": claim.place.split()[0].rstrip(","),
        "of": "project" if claim.own else "paper",
        "place": claim.place, "sentence": claim.sentence, "metric": claim.metric, "better": claim.better,
        "worse": claim.worse, "printed": dict(claim.printed), "ours": {}, "tests": {}, "verdict": "",
        "why": claim.why.get(table) if _of_full(rows, names) else None, "repeats": None,
    }  # fmt: skip
    missing = [name for name in names if name not in rows or claim.metric not in rows[name]["metrics"]]
    if missing:
        return {**entry, "verdict": "not run", "why": entry["why"] or f"no record of {' and '.join(missing)}"}
    better, worse = (rows[name] for name in names)
    if parts_of(better) != parts_of(worse):
        return {**entry, "verdict": "not run", "why": "the two rows are of different splits"}
    for name in names:
        value = rows[name]["metrics"][claim.metric]
        entry["ours"][name] = {"mean": value["mean"], "sd": value["sd"], "seeds": len(rows[name]["seeds"])}
    easy = claim.metric in _EASY and all(one["mean"] > claim.ceiling for one in entry["ours"].values())
    if claim.holds is not None:
        holds, line = claim.holds(rows)
        if holds is None and not easy:
            return {**entry, "verdict": "not run", "why": f"the records do not tell: {line}"}
        return {**entry, "verdict": "too easy to tell" if easy else "supported" if holds else "not supported",
                "tests": {"figures": {"holds": bool(holds), "line": line}}}  # fmt: skip
    tests = entry["tests"]
    paired = compare(better, worse, claim.metric, results, lower=claim.lower)
    if paired is not None:
        tests["paired"] = paired
        entry |= {} if easy else _at_once(claim, paired)
    own = _own_test(claim, better, worse, results)
    if own is not None:
        tests["paper"] = own
    equal = _equal_budget(claim, rows, results)
    if equal is not None:
        tests["equal"] = equal
    return {**entry, "verdict": "too easy to tell"} if easy else entry


def parts_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """How many of what a record's row was trained and tested on; rows of other parts are not compared."""
    counts = record["dataset"].get("counts", {})
    return {part: counts.get(part) for part in ("split", "train", "dev", "test")}


def _at_once(claim: Claim, paired: dict[str, Any]) -> dict[str, Any]:
    """The verdict of a test whose p is not among those that are adjusted, with its reason; empty for others."""
    if paired["test"].endswith(PARTS):
        return {"verdict": "not run", "why": "no values of queries: a test over random parts of the pairs takes those "
                                             "of one query as independent"}  # fmt: skip
    if not claim.no_gain:
        return {}
    paired["p_adjusted"] = paired["p"]  # that there is no gain is no discovery
    return {"verdict": "not supported" if paired["difference"] < 0 and paired["p"] < LEVEL else "supported"}


def _of_full(rows: Mapping[str, Mapping[str, Any]], names: Iterable[str]) -> bool:
    """Whether the records of these rows are those that a written reason is about: of `full`, or older than presets."""
    return all(rows[name].get("preset", {}).get("name", "full") == "full" for name in names if name in rows)


def per_query(record: Mapping[str, Any], metric: str, results: Path) -> np.ndarray | None:
    """Per-query values of a metric, means over seeds, as they stand beside a record.

    Args:
      record: A record.
      metric: Which.
      results: Root of the records.

    Returns:
      ``[n]`` float64, the two directions of a pair averaged (`BOTH_DIRECTIONS`), and near-copies together (`GROUPS`);
      None where there are none.

    Raises:
      ValueError: for a damaged file, or one whose mean is not that of the record: it is of another row, or older.
    """
    values = _kept(record, metric, results)
    if values is None or values.ndim != 1 or values.size < _SEVERAL:
        return None
    if metric in record["metrics"] and metric not in OVER_PARTS.get(record["experiment"], ()):
        mean = record["metrics"][metric]["mean"]
        same = abs(values.mean() - mean) <= _ROUNDING * max(1.0, abs(mean))
        checks.expect(same, f"{_path(record, results)}: {metric}",
                      f"values of the mean {mean:g}, as the record beside it has", f"{values.mean():g}")  # fmt: skip
    places = record["experiment"], f"{record['experiment']}/{record['table']}"
    if not set(places).intersection(BOTH_DIRECTIONS):
        return values
    values = values.reshape(2, -1).mean(axis=0)
    groups = _groups(GROUPS).get(record["table"], ())
    return _clustered(values, np.asarray(groups)) if len(groups) == values.size else values


@functools.cache
def _groups(path: Path) -> dict[str, list[int]]:
    """Table -> the group of each of its test pairs."""
    return json.loads(path.read_text())


def _clustered(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """One value a group, of the same mean, whose variance over groups is that of the mean: groups differ in size."""
    sizes = np.bincount(groups)
    apart = np.bincount(groups, values) - sizes * values.mean()
    return values.mean() + apart * (sizes.size / values.size)


def _path(record: Mapping[str, Any], results: Path) -> Path:
    """The file of arrays beside a record."""
    return results / record["experiment"] / record["table"] / record.get("per_query", "none")


def _kept(record: Mapping[str, Any], name: str, results: Path) -> np.ndarray | None:
    """An array that stands beside a record; None where there is none of that name."""
    path = _path(record, results)
    if not path.is_file():
        return None
    try:
        with np.load(io.BytesIO(path.read_bytes())) as arrays:
            return np.asarray(arrays[name], np.float64) if name in arrays else None
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error) as error:
        raise ValueError(f"{path}: expected the values of a record, got a damaged file ({error})") from error


def compare(
    better: Mapping[str, Any], worse: Mapping[str, Any], metric: str, results: Path, *, lower: bool = False,
    overlap: bool = True,
) -> dict[str, Any] | None:
    """The paired test of two rows, seeds included (see the module).

    Args:
      better: The record expected to be better.
      worse: The other one.
      metric: By which.
      results: Root of the records.
      lower: Whether a lower value is better.
      overlap: Whether the overlap of folds is corrected for, and the pairs of one query are one observation.

    Returns:
      ``test, metric, difference, interval, p, n, smallest``: the difference is positive where ``better`` is better,
      ``interval`` covers it with 95 %, and ``smallest`` is the difference that such a test finds four times in five.
      None where the records hold too little for any test.
    """
    sign = -1.0 if lower else 1.0
    values = [per_query(record, metric, results) for record in (better, worse)]
    seeds = [np.asarray(record["metrics"][metric]["per_seed"], np.float64) for record in (better, worse)]
    spreads = [(float(np.var(runs, ddof=1)) / runs.size, runs.size - 1) for runs in seeds if runs.size > 1]
    by_fold = [_kept(record, metric + BY_FOLD, results) for record in (better, worse)]
    if overlap and all(value is not None and value.shape[-1] > 1 for value in by_fold) and (
            by_fold[0].shape == by_fold[1].shape):
        return _over_folds(sign * (by_fold[0] - by_fold[1]), metric)
    of_parts = metric in OVER_PARTS.get(better["experiment"], ())
    by_query = [per_query(record, metric + BY_QUERY, results) for record in (better, worse)]
    if overlap and all(value is not None for value in by_query):
        values, of_parts = by_query, False
    if all(value is not None for value in values) and values[0].shape == values[1].shape:
        test = paired(*(sign * value for value in values), metric=metric, seeds=seeds)
        return {**test, "test": f"paired t over {test['n']}{PARTS}"} if of_parts else test
    if seeds[0].size == seeds[1].size > 1 and better["seeds"] == worse["seeds"]:
        apart = sign * (seeds[0] - seeds[1])
        folds = any(len(record["dev"].get("folds", ())) == apart.size for record in (better, worse))
        if folds and overlap:
            return _over_folds(apart, metric)
        parts = [(float(np.var(apart, ddof=1)) / apart.size, apart.size - 1)]
        return _t(float(apart.mean()), parts, f"paired t over {'folds' if folds else 'seeds'}", metric, apart.size)
    if spreads:
        apart = sign * float(seeds[0].mean() - seeds[1].mean())
        return _t(apart, spreads, "t over seeds alone", metric, sum(runs.size for runs in seeds if runs.size > 1))
    return None


def paired(
    better: np.ndarray, worse: np.ndarray, *, metric: str, seeds: Sequence[Sequence[float]] = ()
) -> dict[str, Any]:
    """The paired test of one value a query, seeds included (see the module).

    Args:
      better: ``[n]`` values of the row expected to be better, means over seeds.
      worse: ``[n]`` values of the other one.
      metric: Their name.
      seeds: The mean of each seed, of the rows that have any.

    Returns:
      As `compare`.

    Example:
      >>> test = paired(np.array([3.0, 4.0, 5.0]), np.array([2.0, 2.0, 4.0]), metric="map")
      >>> round(test["difference"], 3), round(test["interval"][0], 3), round(test["p"], 3)
      (1.333, -0.101, 0.057)
    """
    apart = better - worse
    spreads = [(float(np.var(runs, ddof=1)) / len(runs), len(runs) - 1) for runs in seeds if len(runs) > 1]
    parts = [(float(np.var(apart, ddof=1)) / apart.size, apart.size - 1), *spreads]
    return _t(float(apart.mean()), parts, "paired t", metric, apart.size)


def p_text(value: float) -> str:
    """A p value in one digit; of the smallest, whose digits depend on the machine, a bound.

    Example:
      >>> p_text(0.0421), p_text(3e-156)
      ('0.04', '1e-100 or less')
    """
    return f"{value:.1g}" if value >= 1e-100 else "1e-100 or less"


def above_over_folds(
    rows: Mapping[str, Mapping[str, Any]], names: Iterable[str], base: str, metric: str
) -> tuple[list[str], str]:
    """Which rows are above another one over the same folds, by the test of folds at `LEVEL`; for a claim's ``holds``.

    Args:
      rows: Row -> record, with a value a fold.
      names: The rows to look at.
      base: The row to be above.
      metric: By which.

    Returns:
      The names, in their order; and a line with every mean, and with p where it is not the base.

    Example:
      >>> metrics = {"a": [0.5, 0.6, 0.7], "b": [0.41, 0.52, 0.6], "c": [0.9, 0.1, 0.8]}
      >>> rows = {row: {"metrics": {"auc": {"per_seed": values}}} for row, values in metrics.items()}
      >>> above_over_folds(rows, "abc", "b", "auc")
      (['a'], 'a 0.600 (p = 0.01), b 0.510, c 0.600 (p = 0.85)')
    """
    values = {row: np.asarray(rows[row]["metrics"][metric]["per_seed"], np.float64) for row in {*names, base}}
    tests = {row: _over_folds(values[row] - values[base], metric) for row in values if row != base}
    found = [row for row in names if row != base and tests[row]["difference"] > 0 and tests[row]["p"] < LEVEL]
    pvalues = {row: f" (p = {test['p']:.2g})" for row, test in tests.items()}
    return found, ", ".join(f"{row} {values[row].mean():.3f}{pvalues.get(row, '')}" for row in names)


def _over_folds(apart: np.ndarray, metric: str) -> dict[str, Any]:
    """The test of differences ``[..., folds]`` of a cross-validation, repeated or not, whose training parts overlap."""
    part = float(np.var(apart, ddof=1)) * (1 / apart.size + 1 / (apart.shape[-1] - 1))
    return _t(float(apart.mean()), [(part, apart.size - 1)], "paired t over folds, corrected", metric, apart.size)


def _t(difference: float, parts: Sequence[tuple[float, float]], test: str, metric: str, n: int) -> dict[str, Any]:
    """A t-test of a difference whose squared standard error is a sum of ``(part, degrees of freedom)``."""
    square = math.fsum(part for part, _ in parts)
    if square == 0:
        pvalue, half, smallest = float(difference == 0), 0.0, 0.0
    else:
        degrees = square**2 / math.fsum(part**2 / own for part, own in parts)
        error = math.sqrt(square)
        pvalue = float(2 * stats.t.sf(abs(difference) / error, degrees))
        half = float(stats.t.ppf(1 - LEVEL / 2, degrees)) * error
        smallest = half + float(stats.t.ppf(_POWER, degrees)) * error
    return {"test": test, "metric": metric, "difference": difference,
            "interval": [difference - half, difference + half], "p": pvalue, "n": n, "smallest": smallest}  # fmt: skip


def _own_test(claim: Claim, better: Mapping, worse: Mapping, results: Path) -> dict[str, Any] | None:
    """The paper's own test on the metric that it tests; whether it holds at the paper's level.

    Beside an unpaired test of what is right or wrong, such as a class, stands McNemar's ``mcnemar``, which is paired.
    """
    metric = claim.metric_of_test or claim.metric
    if claim.test == "none" or any(metric not in record["metrics"] for record in (better, worse)):
        return None
    sign = -1.0 if claim.lower and metric == claim.metric else 1.0
    if claim.test == "paired t":
        test = compare(better, worse, metric, results, lower=sign < 0, overlap=False)
        if test is None:
            return None
        difference, pvalue, n = test["difference"], test["p"], test["n"]
    else:
        values = [per_query(record, metric, results) for record in (better, worse)]
        if any(value is None for value in values):
            return None
        if claim.test == "mcnemar":
            if not _right_or_wrong(values):
                return None
            pvalue, n = significance.mcnemar(*values)[1:]
        else:
            pvalue, n = significance.unpaired_t(*values)[1:]
        difference = sign * float(values[0].mean() - values[1].mean())
    found = {"test": claim.test, "metric": metric, "alpha": claim.alpha, "difference": difference, "p": float(pvalue),
             "n": n, "holds": bool(difference > 0 and pvalue < claim.alpha)}  # fmt: skip
    if claim.test == "unpaired t" and _right_or_wrong(values):
        found["mcnemar"] = float(significance.mcnemar(*values).pvalue)
    return found


def _right_or_wrong(values: Sequence[np.ndarray]) -> bool:
    """Whether both rows have 0 or 1 for the same queries, so that McNemar's test can be made."""
    return values[0].shape == values[1].shape and all(np.all((value == 0) | (value == 1)) for value in values)


def _equal_budget(claim: Claim, rows: Mapping[str, Mapping[str, Any]], results: Path) -> dict[str, Any] | None:
    """The two rows at equal budget: rows of their own, or points of both curves at equal settings."""
    if claim.equal_rows is not None:
        if any(name not in rows or claim.metric not in rows[name]["metrics"] for name in claim.equal_rows):
            return None
        test = compare(*(rows[name] for name in claim.equal_rows), claim.metric, results, lower=claim.lower)
        return None if test is None else {"rows": list(claim.equal_rows), **test}
    if not claim.equal:
        return None
    for split in ("test", "dev"):
        better, worse = (_points(rows[name], claim, split) for name in (claim.better, claim.worse))
        shared = [place for place in better if place in worse]
        if shared:
            sign = -1.0 if claim.lower else 1.0
            points = [{**dict(zip(claim.equal, place, strict=True)), "better": better[place], "worse": worse[place]}
                      for place in sorted(shared)]  # fmt: skip
            above = sum(sign * (point["better"] - point["worse"]) > 0 for point in points)
            return {"settings": list(claim.equal), "split": split, "points": points, "above": above}
    return None


def _points(record: Mapping[str, Any], claim: Claim, split: str) -> dict[tuple, float]:
    """Settings -> value of the points of a curve that have all of them."""
    return {tuple(point[name] for name in claim.equal): point[claim.metric] for point in record["curve"]
            if point.get("split", "dev") == split and point.get(claim.metric) is not None
            and all(point.get(name) is not None for name in claim.equal)}  # fmt: skip


def written(entry: Mapping[str, Any]) -> dict[str, Any]:
    """An entry of `ledger` as it stands in the file, which has no room for what says nothing.

    Left out are ``of`` where it is the paper, ``repeats`` where there is none, seeds and their ``sd`` where there are
    none, and the metric of a test where it is the claim's. A point is the list of its values: the ``settings``, then
    ``better`` and ``worse``. Figures of tests have four digits.

    Args:
      entry: An entry of the ledger.

    Returns:
      What is written; the entry stays as it is.

    Example:
      >>> test = {"metric": "map", "difference": 0.12346, "points": [{"k": 100, "better": 0.5, "worse": 0.4}]}
      >>> written({"of": "paper", "metric": "map", "ours": {"a": {"mean": 0.5, "sd": 0.0, "seeds": 0}},
      ...          "tests": {"paired": test}, "repeats": None})  # doctest: +NORMALIZE_WHITESPACE
      {'metric': 'map', 'ours': {'a': {'mean': 0.5}}, 'tests': {'paired': {'difference': 0.1235,
       'points': [[100, 0.5, 0.4]]}}}
    """
    def of_test(test):
        test = {key: value for key, value in test.items() if (key, value) != ("metric", entry["metric"])}
        points = {"points": [[*point.values()] for point in test["points"]]} if "points" in test else {}
        return _rounded({**test, **points}, digits=4)

    silent = {"of": "paper", "repeats": None}
    kept = {key: value for key, value in entry.items() if key not in silent or value != silent[key]}
    ours = {row: one if one["seeds"] else {"mean": one["mean"]} for row, one in entry["ours"].items()}
    return {**kept, "ours": ours, "tests": {name: of_test(test) for name, test in entry["tests"].items()}}


def _rounded(value: Any, digits: int = 5) -> Any:
    """Numbers to five digits, so that the ledger is the same on every machine."""
    if isinstance(value, dict):
        return {key: _rounded(item, digits) for key, item in value.items()}
    if isinstance(value, list):
        return [_rounded(item, digits) for item in value]
    return float(f"{value:.{digits}g}") if isinstance(value, float) else value
