"""What a results record may hold: every field, checked strictly, with a message that names the field at fault."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from jaxsim.checks import expect
from jaxsim.optim import history

METRICS = (
    "accuracy", "mrr", "auc", "max_f1", "p@3", "p@5", "p@10", "map", "ndcg@1", "ndcg@3", "ndcg@5", "ndcg@10",
    "rank_loss", "tpr@0.1", "tpr@0.2", "precision", "recall", "f1", "perplexity",
)  # fmt: skip
"""The only metric keys. All are fractions in [0, 1] except `perplexity`, which is at least 1."""

SIMILARITY_OF_DATA = ("same", "resampled", "substitute", "synthetic")
"""How the data relates to the paper's: the word that opens `dataset.differs`."""

_TEXTS = ("experiment", "paper", "table", "row", "device", "precision", "commit", "command", "started")
_OBJECTS = ("config", "dataset", "dev", "metrics", "fit", "seconds", "versions")
_LISTS = ("seeds", "curve")
_REQUIRED = (*_TEXTS, *_OBJECTS, *_LISTS, "dirty")
_EXTRA = (
    "best_set", "measurements", "method_version", "metrics_by_group", "metrics_naive", "notes", "per_query", "preset",
    "status",
)  # fmt: skip
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
_FIT = ("loss", "grad_norm", "converged", "steps")
_SECONDS = ("load", "fit", "evaluate")
_TOLERANCE = 1e-6


def check(record: Mapping[str, Any]) -> None:
    """Checks one record.

    Args:
      record: The object of one JSON file.

    Raises:
      ValueError: a field is missing, unknown, of the wrong kind, outside its range, or disagrees with another
        (`metrics.mrr.mean: expected 0.5, the mean of per_seed, got 0.7`).

    Example:
      >>> check({"experiment": "demo"})
      Traceback (most recent call last):
      ...
      ValueError: record: expected the field 'paper', got none
    """
    expect(isinstance(record, Mapping), "record", "an object", type(record).__name__)
    for field in _REQUIRED:
        expect(field in record, "record", f"the field {field!r}", "none")
    for field in record:
        expect(field in _REQUIRED or field in _EXTRA, "record", f"fields of a record (also {', '.join(_EXTRA)})", field)
    for field in _TEXTS:
        _text(record[field], field)
    for field in _OBJECTS:
        expect(isinstance(record[field], Mapping), field, "an object", type(record[field]).__name__)
    for field in _LISTS:
        expect(isinstance(record[field], list), field, "a list", type(record[field]).__name__)
    _finite(record, "")
    for field in ("experiment", "table", "row"):
        name = record[field]
        expect(_NAME.fullmatch(name) is not None, field, "letters, digits and . _ + - (it names a file)", repr(name))
    for seed in record["seeds"]:
        expect(_integer(seed), "seeds", "integers", repr(seed))
    _provenance(record)
    _dataset(record["dataset"])
    _metrics(record["metrics"], "metrics", len(record["seeds"]))
    _points(record["curve"])
    _numbers(record["seconds"], "seconds", _SECONDS)
    if record["fit"]:
        for field in _FIT:
            expect(field in record["fit"], "fit", f"the field {field!r} (or nothing at all)", "none")
    if "history" in record["fit"]:
        history.check(record["fit"]["history"], "fit.history")
    _extra(record)


def _provenance(record: Mapping[str, Any]) -> None:
    expect(isinstance(record["dirty"], bool), "dirty", "true or false", repr(record["dirty"]))
    expect(
        record["commit"] == "unknown" or re.fullmatch(r"[0-9a-f]{40}", record["commit"]) is not None,
        "commit",
        "40 hexadecimal digits or 'unknown'",
        repr(record["commit"]),
    )
    try:
        aware = datetime.fromisoformat(record["started"]).tzinfo is not None
    except ValueError:
        aware = False
    expect(aware, "started", "an ISO 8601 time with its zone", repr(record["started"]))
    expect("jax" in record["versions"], "versions", "the field 'jax'", "none")
    for name, version in record["versions"].items():
        _text(version, f"versions.{name}")


def _dataset(dataset: Mapping[str, Any]) -> None:
    for field in ("name", "sha256", "counts", "groups", "differs"):
        expect(field in dataset, "dataset", f"the field {field!r}", "none")
    _text(dataset["name"], "dataset.name")
    _text(dataset["differs"], "dataset.differs")
    kind = re.split(r"\W", dataset["differs"], maxsplit=1)[0]
    expect(kind in SIMILARITY_OF_DATA, "dataset.differs", f"text opening with {' | '.join(SIMILARITY_OF_DATA)}", kind)
    hashed = isinstance(dataset["sha256"], str) and re.fullmatch(r"[0-9a-f]{64}", dataset["sha256"]) is not None
    generated = kind == "synthetic" and dataset["sha256"] is None
    expect(hashed or generated, "dataset.sha256", "64 hexadecimal digits (null if synthetic)", repr(dataset["sha256"]))
    for field in ("counts", "groups"):
        expect(isinstance(dataset[field], Mapping), f"dataset.{field}", "an object", type(dataset[field]).__name__)
    expect(len(dataset["counts"]) > 0, "dataset.counts", "at least one count", "none")


def _metrics(metrics: Mapping[str, Any], where: str, num_seeds: int) -> None:
    expect(isinstance(metrics, Mapping), where, "an object", type(metrics).__name__)
    for key, value in metrics.items():
        name = f"{where}.{key}"
        expect(key in METRICS, where, f"keys of the list ({', '.join(METRICS)})", key)
        expect(
            isinstance(value, Mapping) and set(value) == {"mean", "sd", "per_seed"}, name, "mean, sd, per_seed", value
        )
        numbers = value["per_seed"]
        expect(isinstance(numbers, list), f"{name}.per_seed", "a list", type(numbers).__name__)
        expect(len(numbers) == max(1, num_seeds), f"{name}.per_seed", f"{max(1, num_seeds)} values", len(numbers))
        for number in numbers:
            _in_range(key, number, f"{name}.per_seed")
        mean = math.fsum(numbers) / len(numbers)
        spread = math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / max(1, len(numbers) - 1))
        for field, right in (("mean", mean), ("sd", spread)):
            close = _number(value[field]) and abs(value[field] - right) <= _TOLERANCE * max(1.0, abs(right))
            expect(close, f"{name}.{field}", f"{right:.6g}, the {field} of per_seed", value[field])


def _points(curve: list[Any]) -> None:
    for index, point in enumerate(curve):
        where = f"curve[{index}]"
        expect(isinstance(point, Mapping) and len(point) > 0, where, "an object with fields", repr(point))
        for key, value in point.items():
            if key in METRICS and value is not None:
                _in_range(key, value, f"{where}.{key}")
        expect(point.get("split", "dev") in ("dev", "test"), f"{where}.split", "dev or test", repr(point.get("split")))


def _extra(record: Mapping[str, Any]) -> None:
    num_seeds = len(record["seeds"])
    _text(record.get("status", "none"), "status")
    notes = record.get("notes", [])
    expect(isinstance(notes, list), "notes", "a list", type(notes).__name__)
    for note in notes:
        _text(note, "notes")
    for field in ("method_version", "preset"):
        value = record.get(field, {})
        expect(isinstance(value, Mapping), field, "an object", type(value).__name__)
    for name, version in record.get("method_version", {}).items():
        expect(_integer(version) and version >= 1, f"method_version.{name}", "a whole number from 1", repr(version))
    measurements = record.get("measurements", [])
    expect(isinstance(measurements, list), "measurements", "a list", type(measurements).__name__)
    for index, item in enumerate(measurements):
        _measurement(item, f"measurements[{index}]")
    expect(record["metrics"] or measurements, "metrics", "at least one metric (or measurements)", "none")
    expect(isinstance(record.get("best_set", False), bool), "best_set", "true or false", repr(record.get("best_set")))
    if "per_query" in record:
        expect(record["per_query"] == f"{record['row']}.npz", "per_query", f"{record['row']}.npz", record["per_query"])
    _metrics(record.get("metrics_naive", {}), "metrics_naive", num_seeds)
    groups = record.get("metrics_by_group", {})
    expect(isinstance(groups, Mapping), "metrics_by_group", "an object", type(groups).__name__)
    for name, metrics in groups.items():
        _metrics(metrics, f"metrics_by_group.{name}", num_seeds)


def _measurement(item: Any, where: str) -> None:
    """One line of a speed table: `name, value, unit`, and `ratio` with `of` (what it is measured against), `note`."""
    fields = ("name", "value", "unit", "ratio", "of", "note")
    expect(isinstance(item, Mapping), where, "an object", type(item).__name__)
    for field in item:
        expect(field in fields, where, f"fields of {', '.join(fields)}", field)
    for field in ("name", "unit"):
        _text(item.get(field), f"{where}.{field}")
    expect(_number(item.get("value")), f"{where}.value", "a number", repr(item.get("value")))
    ratio, of = item.get("ratio"), item.get("of")
    expect(ratio is None or _number(ratio), f"{where}.ratio", "a number or null", repr(ratio))
    expect((ratio is None) == (of is None), f"{where}.of", "what the ratio is measured against", repr(of))
    for field in ("of", "note"):
        expect(isinstance(item.get(field, ""), str | None), f"{where}.{field}", "text", repr(item.get(field)))


def _in_range(key: str, value: Any, where: str) -> None:
    low, high = (1.0, math.inf) if key == "perplexity" else (0.0, 1.0)
    expect(_number(value) and low <= value <= high, where, f"a number in [{low:g}, {high:g}]", repr(value))


def _numbers(values: Mapping[str, Any], where: str, required: tuple[str, ...]) -> None:
    for field in required:
        expect(field in values, where, f"the field {field!r}", "none")
    for field, value in values.items():
        expect(_number(value) and value >= 0, f"{where}.{field}", "a number of at least 0", repr(value))


def _finite(value: Any, where: str) -> None:
    if isinstance(value, Mapping):
        for key, item in value.items():
            _finite(item, f"{where}.{key}" if where else str(key))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            _finite(item, f"{where}[{index}]")
    else:
        expect(isinstance(value, str | bool | int | float | None), where, "what JSON holds", type(value).__name__)
        expect(not isinstance(value, float) or math.isfinite(value), where, "a finite number or null", value)


def _text(value: Any, where: str) -> None:
    expect(isinstance(value, str) and value.strip() != "", where, "text", repr(value))


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
