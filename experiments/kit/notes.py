"""What is off about a row, computed from its record: codes that stand beside its figures.

Where choices are made fold by fold, a code says in how many folds.

- `start-unchanged`: training returned what it started from, since nothing was better on development data.
- `edge-of-grid (…)`: the best value of a setting is the smallest or the largest that was tried; 0 is no edge, nor
  are as many dimensions as the data have. Behind the setting stands by how much the development score is above that of
  the value before, where that is known: where it is little, a wider grid would hardly change the row.
- `cap-reached`: training stopped at its last allowed iteration or epoch.
- `fewer-than-five-seeds`: something is random, and there are fewer than five seeds.
- `not-chosen-on-dev`: settings with no development value behind them, or chosen by a training value.
- `uncommitted`: the tree had changes that no commit has, so that the record's commit may not make it again.
- `stale`: the settings are not those of the script's preset, the data were dealt to parts by an older rule, or a method
  has a newer version.
"""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Iterable, Mapping
from types import ModuleType
from typing import Any

from experiments.kit.choose import at_edge
from experiments.kit.records import plain

__all__ = ["CODES", "EXCEPTIONS", "codes", "excepted", "stale"]

CODES = ("start-unchanged", "edge-of-grid", "cap-reached", "fewer-than-five-seeds", "not-chosen-on-dev", "uncommitted",
         "stale")
SEEDS = 5
_SCORES = ("dev", "mrr", "auc", "both", "map", "accuracy", "dev_documents_auc")
"""What entries of a grid, or points of a curve, call the score that chooses."""
_TASK = ("folds", "pages", "negatives", "min_df", "min_characters", "max_terms", "max_iter", "patience")
"""Sizes of the task and of the budget, which nobody chooses by a score."""
_IN_CONFIG = ("limit", "patience", "max_iter")
"""Settings that a configuration holds under the same name with the same meaning, in every script that has records
without a preset."""
EXCEPTIONS = {
    "no-preset": "records written before a record held its preset: few of their settings can be compared with their "
                 "script's",
    "no-split": "records written before a record held the version of its split, of tables that are dealt anew since: "
                "whole pages, which are nearly too easy to tell",
}
"""Why a record may differ from its script; of no other record may it."""


def codes(record: Mapping[str, Any], *, is_stale: bool = False) -> list[str]:
    """The codes of a row.

    Args:
      record: Its record.
      is_stale: What `stale` found out about it.

    Returns:
      Those of `CODES` that hold, in that order; `edge-of-grid` names the settings.

    Example:
      >>> codes({"seeds": [0], "config": {}, "dev": {}, "curve": [], "fit": {}, "metrics": {"mrr": {}}})
      ['fewer-than-five-seeds']
    """
    if not record["metrics"]:
        return ["stale"] * is_stale
    edges = _edges(record)
    return _codes_of_folds(record) + [
        *["start-unchanged"] * _start_unchanged(record),
        *([f"edge-of-grid ({', '.join(name + gain for name, gain in edges.items())})"] if edges else []),
        *["cap-reached"] * _cap_reached(record),
        *["fewer-than-five-seeds"] * (0 < len(record["seeds"]) < SEEDS),
        *["not-chosen-on-dev"] * _not_chosen_on_dev(record),
        *["uncommitted"] * bool(record.get("dirty")),
        *["stale"] * is_stale,
    ]


def _folds(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """What was chosen in each fold."""
    folds = record["dev"].get("folds", ())
    return [fold for fold in folds if isinstance(fold, Mapping)]


def _codes_of_folds(record: Mapping[str, Any]) -> list[str]:
    """The codes of choices that were made fold by fold, with the number of folds."""
    folds, cap = _folds(record), _cap(record)
    edges = sorted({name for fold in folds for name in fold.get("edges", ())})
    counts = {"start-unchanged": [any(value == fold.get(name.removesuffix("_at_start")) for name, value in fold.items()
                                      if name.endswith("_at_start")) for fold in folds],
              **{f"edge-of-grid ({name})": [name in fold.get("edges", ()) for fold in folds] for name in edges},
              "cap-reached": [cap is not None and fold.get("steps", 0) >= cap for fold in folds]}  # fmt: skip
    return [f"{code} in {sum(hits)} of {len(folds)} folds" for code, hits in counts.items() if any(hits)]


def _start_unchanged(record: Mapping[str, Any]) -> bool:
    fit, config = record["fit"], record["config"]
    if not fit.get("steps") or _folds(record):
        return False
    chosen = [entry for entry in _grid(record) if "best_step" in entry
              and all(entry[name] == value for name, value in config.items() if name in entry)]  # fmt: skip
    if chosen:
        return all(entry["best_step"] == 0 for entry in chosen)
    points = [point for point in record["curve"] if "start" in point and point.get("k") == config.get("k")]
    if points:
        return all(point.get("mrr") == point["start"] for point in points)
    scores = fit.get("history", {}).get("validation", [])
    known = [score for score in scores if score is not None]
    if known and scores[0] is not None:
        return max(known) <= scores[0]
    # A fit by minibatches knows the loss of every epoch but of none before the first.
    return fit["loss"] is None and fit.get("evaluations", 0) > fit["steps"]


def _edges(record: Mapping[str, Any]) -> dict[str, str]:
    """Settings at the edge of the grid on development data, or of the dev points of the curve -> what it gained."""
    config = {name: value for name, value in record["config"].items() if isinstance(value, str | int | float | None)}
    sets = [_grid(record), [point for point in record["curve"] if point.get("split", "dev") == "dev"]]
    edges: dict[str, str] = {}
    for tried in sets:
        entries = [{name: entry[name] for name in (*config, "rank") if name in entry} for entry in tried]
        values = {name: {entry.get(name) for entry in entries} for name in config}
        # What was tried at one value alone, or at others than the row's, is no setting of the grid.
        constant = {name for name in config if len(values[name]) < 2 or config[name] not in values[name]}
        best = {name: value for name, value in config.items() if name not in constant}
        at = at_edge(entries, best) if best else ()
        edges = {name: _gain(tried, best, name) for name in at} | edges
    return edges


def _gain(tried: Iterable[Mapping[str, Any]], best: Mapping[str, Any], name: str) -> str:
    """How far the best value of a setting is above its neighbour, such as `` +.0021``; empty where that is unknown."""
    scores: dict[float, float] = {}
    for entry in tried:
        score = next((entry[key] for key in _SCORES if isinstance(entry.get(key), int | float)), None)
        others = all(entry.get(other, best[other]) == best[other] for other in best if other != name)
        if score is not None and others and isinstance(entry.get(name), int | float):
            scores.setdefault(entry[name], score)  # the first of several seeds chooses
    values = sorted(scores)
    if len(values) < 2 or best[name] not in scores:
        return ""
    gain = scores[best[name]] - scores[values[-2] if best[name] == values[-1] else values[1]]
    return f" +{gain:.4f}".replace("+0.", "+.") if gain > 0 else ""


def _cap(record: Mapping[str, Any]) -> int | None:
    """Iterations or epochs at most, where the record has them."""
    config = record["config"]
    cap = config.get("max_iter", config.get("epochs", record.get("preset", {}).get("settings", {}).get("max_iter")))
    return cap if isinstance(cap, int) and cap > 0 else None


def _cap_reached(record: Mapping[str, Any]) -> bool:
    fit, cap = record["fit"], _cap(record)
    return bool(fit) and not _folds(record) and cap is not None and fit["steps"] >= cap and not fit["converged"]


def _not_chosen_on_dev(record: Mapping[str, Any]) -> bool:
    if not any(isinstance(value, int | float) for name, value in record["config"].items() if name not in _TASK):
        return False
    grid = _grid(record)
    if grid:
        names = {name for entry in grid for name in entry if name not in record["config"]}
        return bool(names) and all(name.startswith("train") or name == "loss" for name in names)
    known = [name for name, value in record["dev"].items() if not name.startswith("test ") and value is not None]
    return not known and not any(point.get("split", "dev") == "dev" for point in record["curve"])


def _grid(record: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    grid = record["dev"].get("grid", [])
    return [entry for entry in grid if isinstance(entry, Mapping)] if isinstance(grid, list) else []


def stale(record: Mapping[str, Any], experiments: Mapping[str, Any]) -> str | None:
    """Whether a record is older than its script or than a method.

    Args:
      record: The record.
      experiments: Name -> `Experiment`, from the scripts.

    Returns:
      What differs, in a line; None where nothing does, or where no script knows the experiment.
    """
    for name, version in record.get("method_version", {}).items():
        newest = _version(name)
        if newest is not None and version < newest:
            return f"method_version: expected {newest} of {name}, got {version}"
    experiment, preset = experiments.get(record["experiment"]), record.get("preset")
    if experiment is None:
        return None
    plan, split = experiment.tables.get(record["table"]), record["dataset"].get("split", 1)
    if plan is not None and split != plan.split:
        return f"dataset.split: expected version {plan.split}, as in the script, got {split}"
    if preset is None:
        return _by_config(record, plan)
    if plan is None or preset["name"] not in plan.presets:
        return f"preset: expected one of the script's for table {record['table']}, got {preset['name']}"
    settings = plan.presets[preset["name"]]
    now, defaults = _settings(settings), _defaults(settings)
    every = {*now, *preset["settings"]}
    for name in sorted(every.intersection(plan.reads.get(record["row"], every))):
        if name not in preset["settings"] and name in defaults and now[name] == defaults[name]:
            continue  # a field that is new, and as before unless somebody sets it
        have, want = preset["settings"].get(name), now.get(name)
        if have != want:
            return f"preset.settings.{name}: expected {want!r}, as in the script, got {have!r}"
    return None


def _by_config(record: Mapping[str, Any], plan: Any) -> str | None:
    """As `stale`, of a record without its preset: by its seeds, and its configuration of what its row reads."""
    presets = [] if plan is None else [_settings(value) for name, value in plan.presets.items() if name != "quick"]
    for name in sorted({*plan.reads.get(record["row"], ())}.intersection(_IN_CONFIG)) if presets else ():
        have, want = record["config"].get(name), [settings.get(name) for settings in presets]
        if isinstance(have, int | float) and have not in want:
            return f"config.{name}: expected {want[0]!r}, as in the script, got {have!r}"
    numbers = [len(settings["seeds"]) for settings in presets if isinstance(settings.get("seeds"), list)]
    have = len(record["seeds"])  # none where nothing is random
    if have and numbers and "seeds" in plan.reads.get(record["row"], ()) and have not in numbers:
        return f"seeds: expected {numbers[0]}, as in the script, got {have}"
    return None


def excepted(record: Mapping[str, Any], what: str = "") -> str | None:
    """The exception that a record falls under, a key of `EXCEPTIONS`; None where it has to agree with its script.

    Args:
      record: The record.
      what: What `stale` says of it.
    """
    if "preset" not in record:
        return "no-preset"
    return "no-split" if what.startswith("dataset.split") and "split" not in record["dataset"] else None


def _settings(preset: Any) -> dict[str, Any]:
    """Settings as a record holds them."""
    return plain(dataclasses.asdict(preset) if dataclasses.is_dataclass(preset) else preset)


def _defaults(preset: Any) -> dict[str, Any]:
    """Defaults of the fields of a dataclass of settings, as a record holds them."""
    fields = dataclasses.fields(preset) if dataclasses.is_dataclass(preset) else ()
    return plain({field.name: field.default for field in fields if field.default is not dataclasses.MISSING})


def _version(name: str) -> int | None:
    """The version that a method states now; None where there is no such module any more, or no version."""
    parts = name.split(".")
    for place in _places(parts):
        module = _module(place)
        if module is not None:
            return int(getattr(module, "VERSION", 1))
    return None


def _places(parts: list[str]) -> Iterable[str]:
    """Names of modules that may define a method (see `fits.version_of`)."""
    for root in ("jaxsim.methods.", "jaxsim.", "experiments.", ""):
        for length in (len(parts), len(parts) - 1):
            if length:
                yield root + ".".join(parts[:length])


def _module(name: str) -> ModuleType | None:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        return None
