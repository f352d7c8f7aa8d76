"""Markdown tables of the report, from records grouped by table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from experiments.kit import papers

_SANITY = ("random", "tfidf", "log-tfidf", "tf")
_USUAL = (
    "bm25", "lsa", "pca", "cl-lsi", "cca", "dda", "opca", "s2net", "s2net-all-negatives", "s2net-cl-lsi",
    "s2net-random", "s2net-gamma1", "s2net-mse", "s2net-2", "s2net-tanh",
)  # fmt: skip
_MAIN = ("method", "paper", "ours (mean ± sd, seeds)", "difference", "data", "status", "record")
_SPEED = ("row", "what", "value", "ratio", "against", "note", "status", "record")
_DASH = "—"

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


def ordered(rows: Rows, paper: str) -> list[tuple[str, Mapping[str, Any]]]:
    """Sanity rows, then the paper's in its order, then ours from simple to involved."""
    printed = [row.row for row in papers.TABLES[paper].rows] if paper in papers.TABLES else []
    order = list(dict.fromkeys([*_SANITY, *printed, *_USUAL]))

    def place(item: tuple[str, Mapping[str, Any]]) -> tuple[int, str]:
        row = item[1]["row"]
        return order.index(row) if row in order else len(order), row

    return sorted(rows.items(), key=place)


def main(paper: str, rows: Rows) -> str:
    """The table of methods; rows that the paper prints and nobody ran stay in it."""
    table = papers.TABLES.get(paper)
    keys = metric_keys(paper, rows)
    printed = {row.row: row for row in table.rows} if table else {}
    present = {record["row"]: (path, record) for path, record in rows.items()}
    absent = {f"{name}": {"row": name} for name in printed if name not in present}
    lines = []
    for path, record in ordered({**rows, **absent}, paper):
        quoted = printed.get(record["row"])
        if record["row"] in present:
            lines.append(_record_line(path, record, keys, quoted))
        else:
            lines.append((f"{record['row']} ({quoted.label})", _paper_cell(quoted), "not run", *[_DASH] * 4))
    return f"Each cell: {' / '.join(_metric_name(key) for key in keys)}.\n\n" + _markdown(_MAIN, lines)


def metric_keys(paper: str, rows: Rows) -> list[str]:
    """The paper's metrics, or every metric that some record holds where no printed table stands beside."""
    if paper in papers.TABLES:
        return list(papers.TABLES[paper].metrics)
    return sorted({key for record in rows.values() for key in record["metrics"]})


def speed(rows: Rows) -> str:
    """The table of measurements, one line each."""
    lines = []
    for path, record in sorted(rows.items()):
        for index, item in enumerate(record["measurements"]):
            ratio = f"{item['ratio']:.3g} ×" if item.get("ratio") is not None else _DASH
            end = (record.get("status", ""), _link(path)) if index == 0 else ("", "")
            value = f"{item['value']:.4g} {item['unit']}"
            note = item.get("note") or ""
            lines.append((record["row"], item["name"], value, ratio, item.get("of") or _DASH, note, *end))
    return _markdown(_SPEED, lines)


def naive(paper: str, rows: Rows) -> str:
    """What the same system scores on a split that leaves near-duplicates where they fall."""
    keys = metric_keys(paper, rows)
    lines = [
        f"On a naive split, near-duplicates not grouped, {record['row']} scores "
        f"{_values(record['metrics_naive'], keys)}: there, twins in training help twins among candidates hurt.\n"
        for _, record in ordered(rows, paper)
        if "metrics_naive" in record
    ]
    return "\n" + "".join(lines) if lines else ""


def by_group(rows: Rows, paper: str) -> str:
    """MRR (or the first metric there is) of every method inside each group of the test data."""
    records = [record for _, record in ordered(rows, paper) if record.get("metrics_by_group")]
    if not records:
        return ""
    keys = {key for record in records for metrics in record["metrics_by_group"].values() for key in metrics}
    key = "mrr" if "mrr" in keys else min(keys)
    groups = sorted({group for record in records for group in record["metrics_by_group"]})
    lines = []
    for group in groups:
        cells = [record["metrics_by_group"].get(group, {}).get(key) for record in records]
        lines.append((group, *[f"{cell['mean']:.4f}" if cell else _DASH for cell in cells]))
    return f"\n{_metric_name(key)} inside each group:\n\n" + _markdown(
        ("group", *[record["row"] for record in records]), lines
    )


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


def _record_line(path: str, record: Mapping[str, Any], keys: list[str], quoted: papers.PaperRow | None) -> tuple:
    name = f"{record['row']}, k = {record['config']['k']}" if record["config"].get("k") else record["row"]
    name = f"**{name}**" if record.get("best_set") else name
    ours = _values(record["metrics"], keys) + (f" ({len(record['seeds'])})" if record["seeds"] else "")
    ours = f"**{ours}**" if record.get("best_set") else ours
    gaps = (
        [_gap(record["metrics"].get(key), printed) for key, printed in zip(keys, quoted.figures, strict=True)]
        if (quoted)
        else [_DASH]
    )
    kind = record["dataset"]["differs"].split()[0].strip(":;,.")
    paper = _paper_cell(quoted) if quoted else _DASH
    return name, paper, ours, " / ".join(gaps), kind, record.get("status", ""), _link(path)


def _paper_cell(quoted: papers.PaperRow) -> str:
    figures = " / ".join(_DASH if x is None else f"{x:.4f}" for x in quoted.figures)
    return f"{figures} (k = {quoted.k})" if quoted.k else figures


def _values(metrics: Mapping[str, Any], keys: list[str]) -> str:
    cells = []
    for key in keys:
        value = metrics.get(key)
        spread = f" ± {value['sd']:.4f}" if value and len(value["per_seed"]) > 1 else ""
        cells.append(f"{value['mean']:.4f}{spread}" if value else _DASH)
    return " / ".join(cells)


def _gap(ours: Mapping[str, Any] | None, printed: float | None) -> str:
    return _DASH if ours is None or printed is None else f"{ours['mean'] - printed:+.4f}"


def _counts(counts: Mapping[str, Any]) -> str:
    parts = []
    for name, value in counts.items():
        if isinstance(value, Mapping):
            parts.append(f"{name} ({_counts(value)})")
        else:
            parts.append(f"{name} {value:,}" if isinstance(value, int) else f"{name} {value}")
    return ", ".join(parts)


def _metric_name(key: str) -> str:
    return key.upper() if key in ("mrr", "auc", "map") else key


def _link(path: str) -> str:
    return f"[json]({path})"


def _markdown(head: tuple[str, ...], lines: list[tuple]) -> str:
    rows = [head, ("---",) * len(head), *lines]
    return "".join(f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in row)} |\n" for row in rows)
