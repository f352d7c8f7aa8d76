"""Statuses of `bai2010_links`, computed from the records: best sets, and which orders of rows hold."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from experiments.kit import papers, records
from experiments.links_settings import CURVE, EXPERIMENT, ORDER, OTHERS
from jaxsim.evaluate import significance


def read(out: Path, name: str) -> tuple[dict[str, dict], dict[str, dict[str, np.ndarray]]]:
    """Records of a table by row, and their per-query values."""
    folder = out / EXPERIMENT / name
    rows = {path.stem: records.read(path) for path in sorted(folder.glob("*.json"))}
    values = {}
    for row in rows:
        with np.load(folder / f"{row}.npz") as file:
            values[row] = {key: np.asarray(file[key], np.float64) for key in file.files}
    return rows, values


def gap(first: np.ndarray, second: np.ndarray) -> tuple[float, float]:
    """How much MAP the first row has more, and the p-value of a paired t-test."""
    found = float(first.mean() - second.mean())
    return found, significance.paired_t(first, second).pvalue if found else 1.0


def order_of(out: Path, name: str, alpha: float) -> dict[str, tuple[str, ...]]:
    """Rows expected below a row: by the paper, or on other collections what Table 1 has clearly below it."""
    values = read(out, "table1")[1] if name in OTHERS else {}
    if not values:
        return ORDER

    def below(row, lower):
        found, pvalue = gap(values[row]["map"], values[lower]["map"])
        return found > 0 and pvalue < alpha

    return {row: tuple(lower for lower in values if lower != row and below(row, lower)) for row in values}


def points(record: dict, values: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """MAP by query, of a learning curve for each number of training links, and otherwise once, under no name."""
    if record["table"] != CURVE:
        return {"": values["map"]}
    sizes = [point["links"] for point in record["curve"]]
    return {f"{size:,} links": values.get(f"map@{size}", values["map"]) for size in sizes}


def along(out: Path, row: str, lower: str) -> str:
    """How the gap to another row goes with the number of training links, where the curve has both."""
    rows, values = read(out, CURVE)
    if row not in rows or lower not in rows:
        return ""
    mine, other = (points(rows[one], values[one]) for one in (row, lower))
    told = ", ".join(f"{gap(mine[at], other[at])[0]:+.4f} at {at}" for at in mine if at in other)
    return f"; table {CURVE}, MAP less that of {lower}: {told}"


def judge(out: Path, name: str, *, publish: bool, alpha: float = 0.05) -> None:
    """Marks the smallest best set and says of every row whether the order holds, by MAP over queries."""
    rows, values = read(out, name)
    if not rows:
        return
    order = order_of(out, name, alpha)
    best = significance.smallest_best_set({row: value["map"] for row, value in values.items()}, alpha=alpha)
    for row, record in rows.items():
        off, close, wrong = [], [], []
        mine = points(record, values[row])
        for lower in (other for other in order.get(row, ()) if other in rows):
            other = points(rows[lower], values[lower])
            for at in (at for at in mine if at in other):
                found, pvalue = gap(mine[at], other[at])
                if found <= 0 or pvalue >= alpha:
                    where = "above" if found < 0 else "not clearly below" if found else "equal"
                    told = (f"{lower} is {where}{' with ' * bool(at)}{at}, by {abs(found):.4f} MAP "
                            f"(paired t, p = {pvalue:.1g})")
                    clear = found < 0 and pvalue < alpha
                    (off if clear else close).append(told)
                    wrong += [lower] * clear
        printed = row in order or any(row == one.row for one in getattr(papers.TABLES.get(record["paper"]), "rows", ()))
        record["status"] = ("off: " + "; ".join(off + close) if off else
                            "within noise: " + "; ".join(close) if close else
                            "reproduced" if printed else "no row of the paper's table")
        if name == "table1" and wrong:
            record["status"] += "".join(along(out, row, lower) for lower in wrong)
        record["best_set"] = row in best
        records.write(record, out, per_query=values[row], allow_dirty=not publish)
