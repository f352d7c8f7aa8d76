"""Folds of queries, measures of a fold, and what records say of the paper's order: 004's experiments."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import scipy.sparse as sp

from experiments.kit import papers, records
from jaxsim import checks, sparse
from jaxsim.evaluate import metrics, significance
from jaxsim.methods.weights import term_weights
from jaxsim.text.features import Featured

ALPHA = 0.05


def deal(groups, sizes, *, num: int, salt: str = "") -> np.ndarray:
    """Deals groups of queries to folds of nearly equal size.

    Args:
      groups: ``[n]`` group number of each query; near-duplicates have one.
      sizes: ``[n]`` pairs of each query.
      num: of the folds.
      salt: another salt deals anew.

    Returns:
      ``[n]`` fold of each query. Groups come in the order of a hash, each to the fold that has fewest pairs by then.

    Raises:
      ValueError: for fewer groups than folds.

    Example:
      >>> deal([0, 1, 1, 2], [5, 1, 2, 1], num=2).tolist()
      [1, 0, 0, 1]
    """
    groups, sizes = np.asarray(groups), np.asarray(sizes)
    names = np.unique(groups)
    checks.expect(len(names) >= num >= 2, "num", f"between 2 and {len(names)} (groups of queries)", num)
    total, fold = np.zeros(num), np.zeros(len(groups), np.int64)
    for name in sorted(names.tolist(), key=lambda one: hashlib.blake2b(f"{salt}\0{one}".encode()).digest()):
        where = int(np.argmin(total))
        fold[groups == name] = where
        total[where] += sizes[groups == name].sum()
    return fold


def expect_both(positive: np.ndarray, where: str) -> None:
    """Refuses pairs of one class, on which an AUC is undefined.

    Raises:
      ValueError: naming the class that is there.
    """
    kinds = set(np.unique(np.asarray(positive, bool)).tolist())
    got = {(): "no pairs", (True,): "positive ones alone", (False,): "negative ones alone"}.get(tuple(kinds), "")
    checks.expect(len(kinds) == 2, where, "positive and negative pairs", got)


def measure(scores, positive, query) -> dict[str, float]:
    """AUC and TPR over all pairs; MAP and P@3 over the queries that have a positive pair.

    Args:
      scores: ``[n]``, higher is better; ties of a query go to the pair that comes first.
      positive: ``[n]`` booleans.
      query: ``[n]`` query of each pair.

    Returns:
      By the names of records.

    Raises:
      ValueError: if all pairs are of one class.

    Example:
      >>> found = measure([0.9, 0.1, 0.5, 0.6], [True, False, True, False], [0, 0, 1, 1])
      >>> found["auc"], found["map"], round(found["p@3"], 3)
      (0.75, 0.75, 0.333)
    """
    scores, positive, query = np.asarray(scores, np.float64), np.asarray(positive, np.float64), np.asarray(query)
    expect_both(positive, "positive")
    precision, first = [], []
    order = np.argsort(query, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        if positive[rows].any():
            precision.append(metrics.average_precision(scores[rows], positive[rows]))
            first.append(metrics.precision_at(scores[rows], positive[rows], k=3))
    return {"auc": float(metrics.auc(scores, positive)), "map": float(np.mean(precision)), "p@3": float(np.mean(first)),
            "tpr@0.1": float(metrics.tpr_at_fpr(scores, positive, fpr=0.1)),
            "tpr@0.2": float(metrics.tpr_at_fpr(scores, positive, fpr=0.2))}


def cosines(weighted: sp.csr_matrix, left, right, *, block: int = 20_000) -> np.ndarray:
    """Cosines of some pairs of rows, 0 where either is empty, in float64.

    Example:
      >>> cosines(sp.csr_matrix([[2.0, 0.0], [4.0, 0.0], [0.0, 0.0]]), [0, 0], [1, 2]).tolist()
      [1.0, 0.0]
    """
    left, right = np.asarray(left), np.asarray(right)
    weighted = weighted.astype(np.float64)
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    unit = sp.diags_array(1 / np.where(length > 0, length, 1)) @ weighted
    parts = [np.asarray(unit[left[at : at + block]].multiply(unit[right[at : at + block]]).sum(axis=1)).ravel()
             for at in range(0, len(left), block)]
    return np.concatenate([np.zeros(0), *parts])


def tf_idf(documents: Featured, df, num_docs: int) -> sp.csr_matrix:
    """Weights tf · log(N / df) with a value for every slot, zeros included.

    Args:
      documents: over the terms of ``df``.
      df: ``[num_terms]`` documents of the collection with each term, at least 1.
      num_docs: of the collection.

    Returns:
      ``[num_docs, num_terms]`` float64.
    """
    counts = sparse.to_scipy(documents.terms).astype(np.float64)
    counts.data = counts.data * np.log(num_docs / np.asarray(df, np.float64))[counts.indices]
    return counts


def encoded(params, documents: Featured) -> sp.csr_matrix:
    """Documents with learned weights, on the host."""
    return sparse.to_scipy(term_weights.encode(params, documents).sparse)


def judge(out: Path, experiment: str, table: str, order: Mapping, *, publish: bool) -> None:
    """Marks best rows and says of every row whether the paper's order holds, from the records alone.

    Paired t-tests over the folds at 5 %, as in 004 §4.1.3.
    """
    rows = {path.stem: records.read(path) for path in sorted((out / experiment / table).glob("*.json"))}
    names = {row: record["metrics"]["auc"]["per_seed"] for row, record in rows.items()}
    best = significance.smallest_best_set({row: np.asarray(one) for row, one in names.items()}, alpha=ALPHA,
                                          test=significance.paired_t) if len(rows) > 1 else set(rows)
    for row, record in rows.items():
        off, close = [], []
        for lower, keys in order.get(row, {}).items():
            for name in keys if lower in rows else ():
                ours, theirs = (one["metrics"][name] for one in (record, rows[lower]))
                gap = ours["mean"] - theirs["mean"]
                pvalue = significance.paired_t(ours["per_seed"], theirs["per_seed"]).pvalue
                told = f"{abs(gap):.4f} {name} (paired t over folds, p = {pvalue:.1g})"
                if gap <= 0:
                    (off if pvalue < ALPHA else close).append(f"{lower} is above by {told}")
                elif pvalue >= ALPHA:
                    close.append(f"above {lower} by only {told}")
        table_of = papers.TABLES.get(record["paper"])
        printed = table_of is not None and any(row == one.row for one in table_of.rows)
        record["status"] = "reproduced" if printed or row in order else "no row of the paper's table"
        if close:
            record["status"] = "within noise: " + "; ".join(close)
        if off:
            record["status"] = "off: " + "; ".join(off + close)
        record["best_set"] = row in best
        records.write(record, out, allow_dirty=not publish)
