"""Results records: one JSON object a table row, checked when it is written and again when it is read.

A record stands at `<folder>/<experiment>/<table>/<row>.json` and says what was run, on what data, with which
configuration (chosen on the development set), what came out on the test set, and on which commit, machine and
versions. BENCHMARKS.md and the figures are made from records and from nothing else (`experiments.kit.report`).
"""

from __future__ import annotations

import json
import math
import os
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from experiments.kit import record_schema
from experiments.kit.environment import environment
from experiments.kit.record_schema import METRICS, check
from jaxsim import io
from jaxsim.optim import history

__all__ = [
    "METRICS",
    "check",
    "environment",
    "fit_summary",
    "new",
    "path_of",
    "read",
    "read_all",
    "summary",
    "write",
]

PER_QUERY_BYTES = 300 * 1024


def summary(values: float | Iterable[float]) -> dict[str, Any]:
    """Mean and sample standard deviation of one metric over seeds, in the form a record holds.

    Args:
      values: One number a seed, or a single number where nothing is random.

    Returns:
      `{"mean": float, "sd": float, "per_seed": list[float]}`; the standard deviation divides by n − 1 and is 0
      for a single value.

    Example:
      >>> summary([0.25, 0.75])["mean"]
      0.5
    """
    numbers = [float(x) for x in np.atleast_1d(np.asarray(values, dtype=np.float64))]
    spread = float(np.std(numbers, ddof=1)) if len(numbers) > 1 else 0.0
    return {"mean": float(np.mean(numbers)), "sd": spread, "per_seed": numbers}


def fit_summary(fit: Any) -> dict[str, Any]:
    """The part of a `Fit` that a record holds; NaN (the loss of a closed form) becomes None, since JSON has none.

    Args:
      fit: A `Fit`, or anything with `loss, grad_norm, converged, steps, evaluations` and perhaps `history`.

    Returns:
      A dict of those five, as Python numbers, and of `history` (`history.compact`) where there is one.
    """

    def number(value: Any) -> float | None:
        value = float(value)
        return value if math.isfinite(value) else None

    course = history.compact(getattr(fit, "history", []))
    return {
        "loss": number(fit.loss),
        "grad_norm": number(fit.grad_norm),
        "converged": bool(fit.converged),
        "steps": int(fit.steps),
        "evaluations": int(fit.evaluations),
        **({"history": course} if course else {}),
    }


def new(
    *,
    experiment: str,
    paper: str,
    table: str,
    row: str,
    config: Mapping[str, Any],
    dataset: Mapping[str, Any],
    metrics: Mapping[str, Any],
    environment: Mapping[str, Any],
    seeds: Iterable[int] = (),
    dev: Mapping[str, Any] | None = None,
    curve: Iterable[Mapping[str, Any]] = (),
    fit: Any = None,
    seconds: Mapping[str, float] | None = None,
    notes: Iterable[str] = (),
    method_version: Mapping[str, int] | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """Builds a checked record.

    Args:
      experiment: Name of the script, and of the record's folder.
      paper: The printed table to stand beside, as `papers` names it (`"002 Table 2"`), or the paper alone
        (`"002"`) where its figures would not compare, or `"none"`.
      table: Corpus and split, such as `en-es-human`.
      row: Row id, such as `opca`.
      config: The configuration chosen on the development set; `k` is the dimension.
      dataset: `name, sha256, counts, groups, differs`; `differs` opens with `same`, `resampled`, `substitute` or
        `synthetic` and goes on to say in what.
      metrics: Key to `summary(...)`, or key to a number or a list of one number a seed. Test values only.
      environment: What `environment()` returned at the start of the run.
      seeds: The seeds, empty where nothing is random.
      dev: Development-set values behind the choice of configuration.
      curve: Points of a sweep, flat dicts (`{"k": 100, "mrr": 0.73, "split": "dev"}`).
      fit: A `Fit`, the dict of `fit_summary`, or None where nothing was fitted.
      seconds: `load`, `fit` and `evaluate`, wall-clock.
      notes: Sentences that explain something about the row.
      method_version: Method -> the version that its module states.
      **extra: Any of `best_set, comparisons, limits, measurements, metrics_by_group, metrics_naive, per_query,
        preset`; and `status`, while there are scripts that give one.

    Returns:
      A dict that passes `check` and that JSON can hold.

    Raises:
      ValueError: a field is missing, unknown or malformed; the message names it.
    """
    record = {
        "experiment": experiment,
        "paper": paper,
        "table": table,
        "row": row,
        "notes": list(notes),
        "method_version": dict(method_version or {}),
        "config": dict(config),
        "seeds": [int(seed) for seed in seeds],
        "dataset": dict(dataset),
        "dev": dict(dev or {}),
        "metrics": _summaries(metrics),
        "curve": [dict(point) for point in curve],
        "fit": fit if isinstance(fit, Mapping) else {} if fit is None else fit_summary(fit),
        "seconds": {"load": 0.0, "fit": 0.0, "evaluate": 0.0, **(seconds or {})},
        **environment,
        **extra,
    }
    if "metrics_by_group" in extra:
        record["metrics_by_group"] = {name: _summaries(values) for name, values in extra["metrics_by_group"].items()}
    if "metrics_naive" in extra:
        record["metrics_naive"] = _summaries(extra["metrics_naive"])
    record = plain(record)
    check(record)
    return record


def path_of(record: Mapping[str, Any], folder: str | os.PathLike[str]) -> Path:
    """Where a record stands below `folder`: `<experiment>/<table>/<row>.json`."""
    return Path(folder) / record["experiment"] / record["table"] / f"{record['row']}.json"


def write(
    record: Mapping[str, Any],
    folder: str | os.PathLike[str],
    *,
    per_query: Mapping[str, Any] | None = None,
    allow_dirty: bool = False,
) -> Path:
    """Writes a record, and its per-query values beside it, each in one atomic step.

    Args:
      record: What `new` returned.
      folder: Root of the records, `experiments/results` or any other.
      per_query: Arrays of one value a query, written compressed as `<row>.npz`; floats are kept as float32.
      allow_dirty: Write below `experiments/results` although the tree has uncommitted changes.

    Returns:
      The path of the JSON file. An existing record is replaced whole or not at all.

    Raises:
      ValueError: the record does not pass `check`, comes from a dirty tree, or its per-query file is too large.
      OSError: the folder cannot be written.
    """
    record = dict(record)
    path = path_of(record, folder)
    if per_query is not None:
        record["per_query"] = f"{record['row']}.npz"
    check(record)
    if _published(Path(folder)) and record["dirty"] and not allow_dirty:
        raise ValueError(f"{path}: expected a record from a committed tree, got dirty = true (commit first)")
    text = json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    if per_query is not None:
        _write_arrays(path.with_suffix(".npz"), per_query)
    io.write_bytes(path, text.encode())
    return path


def read(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Reads and checks one record.

    Raises:
      ValueError: the file is not JSON (cut short, say) or not a record; the message names the file.
    """
    path = Path(path)
    try:
        record = json.loads(path.read_bytes())
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path}: expected a JSON record, got {error}") from None
    try:
        check(record)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None
    return record


def read_all(folder: str | os.PathLike[str]) -> dict[str, dict[str, Any]]:
    """Reads every record below a folder.

    Args:
      folder: Root of the records.

    Returns:
      Records by path relative to `folder` (with `/`), in order of that path.

    Raises:
      FileNotFoundError: there is no such folder.
      ValueError: a file is no record, or does not stand where its fields say; the message names the file.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise FileNotFoundError(f"{folder}: expected a folder of records, got no such folder")
    records = {}
    for path in sorted(folder.rglob("*.json")):
        if path.parent == folder:  # the ledger of claims
            continue
        record = read(path)
        if path != path_of(record, folder):
            raise ValueError(f"{path}: expected the record of {path_of(record, '')}, got it at another path")
        if "per_query" in record and not (path.parent / record["per_query"]).is_file():
            raise ValueError(f"{path}: per_query: expected a file {record['per_query']} beside it, got none")
        records[path.relative_to(folder).as_posix()] = record
    return records


def _summaries(metrics: Mapping[str, Any]) -> dict[str, Any]:
    return {key: dict(value) if isinstance(value, Mapping) else summary(value) for key, value in metrics.items()}


def plain(value: Any) -> Any:
    """Turns arrays, NumPy scalars, tuples and paths into what JSON holds."""
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, str | bool | int | float | None):
        return value
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return np.asarray(value).tolist()


def _published(folder: Path) -> bool:
    parts = folder.resolve().parts
    return any(pair == ("experiments", "results") for pair in zip(parts, parts[1:], strict=False))


def _write_arrays(path: Path, arrays: Mapping[str, Any]) -> None:
    compact = {}
    for name, values in arrays.items():
        values = np.asarray(values)
        compact[name] = values.astype(np.float32) if values.dtype == np.float64 else values
    with tempfile.TemporaryFile() as handle:
        np.savez_compressed(handle, **compact)
        size = handle.tell()
        record_schema.expect(size < PER_QUERY_BYTES, "per_query", f"under {PER_QUERY_BYTES} bytes", f"{size} bytes")
        handle.seek(0)
        io.write_bytes(path, handle.read())
