"""What a results record may hold: `record.schema.json`, and the few rules between fields that no schema can say."""

from __future__ import annotations

import functools
import json
import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import jsonschema

from jaxsim.checks import expect
from jaxsim.optim import history

SCHEMA = json.loads(Path(__file__).with_name("record.schema.json").read_bytes())
METRICS = tuple(SCHEMA["$defs"]["metrics"]["properties"])
"""The only metric keys: fractions in [0, 1], but `spearman` and `npmi` in [-1, 1] and `perplexity` at least 1."""

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
    _finite(record, "")
    error = next(_validator().iter_errors(dict(record)), None)
    if error is not None:
        raise ValueError(_message(error))
    expect("commit" in record or "commits" in record, "record", "the field 'commits'", "none")
    num_seeds = len(record["seeds"])
    _summaries(record["metrics"], "metrics", num_seeds)
    _summaries(record.get("metrics_naive", {}), "metrics_naive", num_seeds)
    for name, metrics in record.get("metrics_by_group", {}).items():
        _summaries(metrics, f"metrics_by_group.{name}", num_seeds)
    if "history" in record["fit"]:
        history.check(record["fit"]["history"], "fit.history")
    measurements = record.get("measurements", [])
    expect(record["metrics"] or measurements, "metrics", "at least one metric (or measurements)", "none")
    for index, line in enumerate(measurements):
        ratio, of = line.get("ratio"), line.get("of")
        expect((ratio is None) == (of is None), f"measurements[{index}].of", "what the ratio is measured against", of)
    if "per_query" in record:
        expect(record["per_query"] == f"{record['row']}.npz", "per_query", f"{record['row']}.npz", record["per_query"])


@functools.cache
def _validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(SCHEMA)


def _message(error: jsonschema.ValidationError) -> str:
    """What was expected where, in the words of the schema's descriptions."""
    where, value = _place(error.absolute_path), error.instance
    if error.validator == "required":
        missing = next(name for name in error.validator_value if name not in value)
        return f"{where or 'record'}: expected the field {missing!r}, got none"
    if error.validator == "additionalProperties" and error.validator_value is False:
        known = error.schema["properties"]
        other = next(name for name in value if name not in known)
        what = "fields of a record" if not where else "keys of the list" if where.startswith("metrics") else "fields"
        return f"{where or 'record'}: expected {what} ({', '.join(known)}), got {other}"
    shown = type(value).__name__ if isinstance(value, list | dict) and error.validator == "type" else repr(value)
    if error.absolute_path and isinstance(error.absolute_path[-1], int) and not isinstance(value, list | dict):
        where = _place(list(error.absolute_path)[:-1])
    return f"{where}: expected {error.schema.get('description', error.message)}, got {shown}"


def _place(path: Iterable[str | int]) -> str:
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path).removeprefix(".")


def _summaries(metrics: Mapping[str, Any], where: str, num_seeds: int) -> None:
    """Means and standard deviations are those of the values of the seeds, of which there are enough."""
    for key, value in metrics.items():
        name, numbers = f"{where}.{key}", value["per_seed"]
        expect(len(numbers) == max(1, num_seeds), f"{name}.per_seed", f"{max(1, num_seeds)} values", len(numbers))
        mean = math.fsum(numbers) / len(numbers)
        spread = math.sqrt(math.fsum((x - mean) ** 2 for x in numbers) / max(1, len(numbers) - 1))
        for field, right in (("mean", mean), ("sd", spread)):
            close = abs(value[field] - right) <= _TOLERANCE * max(1.0, abs(right))
            expect(close, f"{name}.{field}", f"{right:.6g}, the {field} of per_seed", value[field])


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
