"""Markdown tables of the report, from records grouped by table."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from experiments.kit import judge, papers
from experiments.kit.run import Plan
from jaxsim.evaluate import significance

_SANITY = ("random", "tfidf", "log-tfidf", "tf")
_USUAL = (
    "bm25", "lsa", "pca", "cl-lsi", "cca", "cr5", "dda", "opca", "opca-two", "opca-many", "hdlr-start", "hdlr", "s2net",
    "s2net-all-negatives", "s2net-cl-lsi", "s2net-pca", "s2net-random", "s2net-gamma1", "s2net-mse", "s2net-2",
    "s2net-tanh", "s2net-sigmoid",
)  # fmt: skip
_MAIN = ("method", "paper", "ours (mean ± sd, seeds)", "difference", "notes")
_SPEED = ("row", "what", "value", "ratio", "against", "note")
_PRINCIPAL = ("mrr", "map", "auc", "ndcg@10", "accuracy")
_LOWER = ("rank_loss", "rank_loss@half", "perplexity")
DASH = "—"

Rows = Mapping[str, Mapping[str, Any]]
"""Records of one table, by path."""


def belong_together(rows: Rows) -> None:
    """Refuses a table whose records name different papers or different data.

    Raises:
      ValueError: two records disagree; the message names both files.
    """
    (first_path, first), *rest = rows.items()
    for path, record in rest:
        if record["paper"] != first["paper"]:
            raise ValueError(f"{path}: paper: expected {first['paper']!r}, as in {first_path}, got {record['paper']!r}")
        if record["metrics"] and first["metrics"] and record["dataset"]["sha256"] != first["dataset"]["sha256"]:
            raise ValueError(f"{path}: dataset.sha256: expected that of {first_path} "
                             f"({first['dataset']['sha256']}), got {record['dataset']['sha256']}")
        splits = [side["dataset"].get("split", 1) for side in (first, record)]
        if record["metrics"] and first["metrics"] and splits[0] != splits[1]:
            raise ValueError(f"{path}: dataset.split: expected version {splits[0]}, as in {first_path}, got "
                             f"{splits[1]}: fill the table again with --again")


def ordered(rows: Rows, paper: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Sanity rows, then the paper's in its order, then ours from simple to involved."""
    printed = papers.TABLES[paper].beside if paper in papers.TABLES else {}
    order = list(dict.fromkeys([*_SANITY, *printed, *_USUAL]))

    def place(item: tuple[str, Mapping[str, Any]]) -> tuple[int, str]:
        row = item[1]["row"]
        return order.index(row) if row in order else len(order), row

    return sorted(rows.items(), key=place)


def main(paper: str, rows: Rows, codes: Mapping[str, list[str]]) -> str:
    """The table of methods with all figures; rows that the paper prints and nobody ran stay in it."""
    table = papers.TABLES.get(paper)
    keys = metric_keys(paper, rows)
    printed = table.beside if table else {}
    present = {record["row"]: (path, record) for path, record in rows.items()}
    absent = {f"{name}": {"row": name} for name in printed if name not in present}
    lines = []
    for path, record in ordered({**rows, **absent}, paper):
        quoted = printed.get(record["row"])
        if record["row"] in present:
            lines.append(_record_line(record, keys, quoted, codes.get(path, [])))
        else:
            lines.append((f"{record['row']} ({quoted.label})", _paper_cell(quoted), "not run", DASH, DASH))
    return f"Each cell: {' / '.join(metric_name(key) for key in keys)}.\n\n" + markdown(_MAIN, lines)


def compact(paper: str, rows: Rows, codes: Mapping[str, list[str]], results: Path) -> str:
    """Paper beside ours, a line a row; bold rows do not differ from the best one.

    Args:
      paper: The printed table, if any.
      rows: Records by path.
      codes: Path -> the row's codes (`notes.codes`).
      results: Root of the records, for per-query values.

    Returns:
      Markdown.
    """
    keys = metric_keys(paper, rows)
    table = papers.TABLES.get(paper)
    printed = table.beside if table else {}
    key = principal(dict.fromkeys(keys))
    best = best_rows(rows, key, results)
    lines = []
    for path, record in ordered(rows, paper):
        quoted = printed.get(record["row"])
        name = record["row"] + (f", k = {record['config']['k']}" if record["config"].get("k") else "")
        ours = _values(record["metrics"], keys, (key,)) + (f" ({len(record['seeds'])})" if record["seeds"] else "")
        if path in best:
            name, ours = f"**{name}**", f"**{ours}**"
        cells = (name, _paper_cell(quoted) if quoted else DASH, ours, ", ".join(codes.get(path, [])))
        lines.append(cells if table else (cells[0], *cells[2:]))
    absent = [row for row in printed.values() if row.row not in {record["row"] for record in rows.values()}]
    text = "\n" if best else f"No row differs from the best one by {metric_name(key)}.\n\n"
    ours = f"ours: {' / '.join(metric_name(key) for key in keys)}"
    text += markdown(("row", "paper", ours, "notes") if table else ("row", ours, "notes"), lines)
    if absent:
        text += "\nNot run: " + "; ".join(f"{row.row} {_paper_cell(row)}" for row in absent) + ".\n"
    return text


def principal(metrics: Mapping[str, Any]) -> str:
    """The metric by which rows are compared: MRR, MAP, AUC, nDCG@10, accuracy, or the first there is."""
    return next((key for key in _PRINCIPAL if key in metrics), next(iter(metrics)))


def best_rows(rows: Rows, key: str, results: Path) -> set[str]:
    """Paths of the rows that do not differ from the best one by the paired test; none where no row differs."""
    lower = key in _LOWER
    tested = {path: record for path, record in rows.items() if key in record["metrics"]}
    if len(tested) < 2:
        return set()
    best = (min if lower else max)(tested, key=lambda path: tested[path]["metrics"][key]["mean"])
    paths = {best}
    for path, record in tested.items():
        test = judge.compare(tested[best], record, key, results, lower=lower) if path != best else None
        if test is not None and test["p"] >= judge.LEVEL:
            paths.add(path)
    return set() if len(paths) == len(tested) else paths


def best_set(rows: Rows, results: Path) -> str:
    """The papers' smallest set of best rows: unpaired t-tests with Bonferroni's correction (002 §3.2)."""
    keys = {key for record in rows.values() for key in record["metrics"]}
    if not keys or len(rows) < 2:
        return ""
    key = "accuracy" if "accuracy" in keys else principal(dict.fromkeys(sorted(keys)))
    values = {record["row"]: judge.per_query(record, key, results) for record in rows.values()}
    values = {row: value for row, value in values.items() if value is not None}
    if len(values) < 2 or key in _LOWER:
        return ""
    names = sorted(significance.smallest_best_set(values))
    which = "all rows" if len(names) == len(values) else ", ".join(names)
    return f"\nSmallest set of best rows by {metric_name(key)} (unpaired t, Bonferroni, p < .05): {which}.\n"


def sentences(rows: Rows, paper: str) -> str:
    """What somebody explained about rows."""
    lines = [f"- {record['row']}: {' '.join(record['notes'])}\n" for _, record in ordered(rows, paper)
             if record.get("notes")]  # fmt: skip
    return "\n" + "".join(lines) if lines else ""


def metric_keys(paper: str, rows: Rows) -> list[str]:
    """The paper's metrics, or every metric that some record holds where no printed table stands beside."""
    if paper in papers.TABLES:
        return list(papers.TABLES[paper].metrics)
    return sorted({key for record in rows.values() for key in record["metrics"]})


def unrecorded(plan: Plan | None, rows: Rows) -> str:
    """The rows of a table's script that have no record, and what they need that a machine may lack.

    Args:
      plan: The table as its script has it; None where no script knows it.
      rows: Records by path.

    Returns:
      One line, in the script's order; empty where every row has a record.
    """
    if plan is None:
        return ""
    present = {record["row"] for record in rows.values()}
    by_need: dict[str, list[str]] = {}
    for row in plan.rows:
        if row not in present:
            by_need.setdefault(plan.needs.get(row, ""), []).append(row)
    parts = [", ".join(names) + (f" ({need})" if need else "") for need, names in sorted(by_need.items())]
    return f"\nRows of the script without a record: {'; '.join(parts)}.\n" if parts else ""


def untouched(plans: Mapping[str, Plan], present: Collection[str]) -> str:
    """The tables of a script that have no record at all.

    Args:
      plans: Table -> plan, of the script.
      present: Tables with a record.

    Returns:
      Markdown, a line; empty where every table has a record.
    """
    names = [name if "full" in plan.presets else f"{name} (preset {', '.join(plan.presets)})"
             for name, plan in plans.items() if name not in present]  # fmt: skip
    return f"\nTables of the script without a record: {', '.join(names)}.\n" if names else ""


def speed(rows: Rows) -> str:
    """The table of measurements, one line each."""
    lines = []
    for _, record in sorted(rows.items()):
        for item in record["measurements"]:
            ratio = f"{item['ratio']:.3g} ×" if item.get("ratio") is not None else DASH
            value = f"{item['value']:.4g} {item['unit']}"
            note = item.get("note") or ""
            lines.append((record["row"], item["name"], value, ratio, item.get("of") or DASH, note))
    return markdown(_SPEED, lines)


def naive(paper: str, rows: Rows) -> str:
    """What the same system scores on a split that leaves near-duplicates where they fall."""
    keys = metric_keys(paper, rows)
    lines = [
        f"On a naive split, near-duplicates not grouped, {record['row']} scores "
        f"{_values(record['metrics_naive'], keys)}: duplicates in training raise the score; duplicates among "
        "candidates lower it.\n"
        for _, record in ordered(rows, paper)
        if "metrics_naive" in record
    ]
    return "\n" + "".join(lines) if lines else ""


def half_ties(paper: str, rows: Rows) -> str:
    """The rank loss with ties as half an error, of the records that have it, where the table does not show it."""
    key = "rank_loss@half"
    if key in metric_keys(paper, rows):
        return ""
    cells = [f"{record['row']} {_values(record['metrics'], [key])}" for _, record in ordered(rows, paper)
             if key in record["metrics"]]  # fmt: skip
    return f"\nRank loss with ties as half an error, of newer records: {', '.join(cells)}.\n" if cells else ""


def by_group(rows: Rows, paper: str) -> str:
    """MRR, or AUC and MAP, or the first metric there is, of every method inside each group of the test data."""
    records = [record for _, record in ordered(rows, paper) if record.get("metrics_by_group")]
    keys = {key for record in records for metrics in record["metrics_by_group"].values() for key in metrics}
    shown = ["mrr"] if "mrr" in keys else sorted(keys & {"auc", "map"}) or sorted(keys)[:1]
    groups = sorted({group for record in records for group in record["metrics_by_group"]})
    tables = []
    for key in shown:
        lines = []
        for group in groups:
            cells = [record["metrics_by_group"].get(group, {}).get(key) for record in records]
            lines.append((group, *[f"{cell['mean']:.4f}" if cell else DASH for cell in cells]))
        tables.append(f"\n{metric_name(key)} inside each group:\n\n" + markdown(
            ("group", *(record["row"] for record in records)), lines))
    return "".join(tables)


def data(rows: Rows) -> str:
    """What the data is, its counts, and how many groups of near-duplicates it has."""
    texts = []
    for record in rows.values():
        dataset = record["dataset"]
        text = f"Data: {dataset['name']} ({dataset['differs']}). Counts: {_counts(dataset['counts'])}."
        if dataset["groups"]:
            text += f" Near-duplicates: {_counts(dataset['groups'])}."
        if dataset["sha256"]:
            text += f" SHA-256 {dataset['sha256'][:12]}."
        texts.append(text + "\n")
    return "\n".join(dict.fromkeys(texts))


def provenance(rows: Rows) -> str:
    """The last commit at which the table was run, and on what."""
    last = max(rows.values(), key=lambda record: (record["started"], record["row"]))
    devices = ", or ".join(sorted({record["device"] for record in rows.values()}))
    commit = (last.get("commits") or [last["commit"]])[0][:12]
    dirty = " with uncommitted changes" if last["dirty"] else ""
    return (
        f"\nLast run {last['started'][:10]} at commit {commit}{dirty}, jax {last['versions']['jax']}, on {devices}.\n"
    )


def _record_line(
    record: Mapping[str, Any], keys: list[str], quoted: papers.PaperRow | None, codes: list[str]
) -> tuple[str, ...]:
    name = f"{record['row']}, k = {record['config']['k']}" if record["config"].get("k") else record["row"]
    ours = _values(record["metrics"], keys) + (f" ({len(record['seeds'])})" if record["seeds"] else "")
    gaps = (
        [_gap(record["metrics"].get(key), printed) for key, printed in zip(keys, quoted.figures, strict=True)]
        if quoted
        else [DASH]
    )
    return name, _paper_cell(quoted) if quoted else DASH, ours, " / ".join(gaps), ", ".join(codes)


def _paper_cell(quoted: papers.PaperRow) -> str:
    spread = quoted.spread or (None,) * len(quoted.figures)
    figures = " / ".join(DASH if x is None else number(x) if sd is None else f"{number(x)} ± {number(sd)}"
                         for x, sd in zip(quoted.figures, spread, strict=True))  # fmt: skip
    return f"{figures} (k = {quoted.k})" if quoted.k else f"{figures} ({quoted.source})" if quoted.source else figures


def number(value: float) -> str:
    """Four digits after the point, without the nought before it; fewer of numbers above 1.

    Example:
      >>> number(0.7734), number(1.0), number(144.2), number(-0.01)
      ('.7734', '1.0000', '144.2', '-.0100')
    """
    text = f"{value:.4f}" if abs(value) < 10 else f"{value:.1f}"
    return text.replace("0.", ".", 1) if abs(value) < 1 else text


def _values(metrics: Mapping[str, Any], keys: list[str], spread: tuple[str, ...] | None = None) -> str:
    cells = []
    for key in keys:
        value = metrics.get(key)
        known = value and len(value["per_seed"]) > 1 and (spread is None or key in spread)
        cells.append(number(value["mean"]) + (f" ± {number(value['sd'])}" if known else "") if value else DASH)
    return " / ".join(cells)


def _gap(ours: Mapping[str, Any] | None, printed: float | None) -> str:
    return DASH if ours is None or printed is None else f"{ours['mean'] - printed:+.4f}"


def _counts(counts: Mapping[str, Any]) -> str:
    parts = []
    for name, value in counts.items():
        if isinstance(value, Mapping):
            parts.append(f"{name} ({_counts(value)})")
        else:
            parts.append(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}")
    return ", ".join(parts)


def metric_name(key: str) -> str:
    """How a metric is called in a table."""
    return key.upper() if key in ("mrr", "auc", "map") else key


def markdown(head: tuple[str, ...], lines: list[tuple]) -> str:
    """A Markdown table."""
    rows = [head, ("---",) * len(head), *lines]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)
