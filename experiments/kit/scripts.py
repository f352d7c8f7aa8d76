"""The experiments that the scripts describe, collected by importing them."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

from experiments.kit.run import Experiment

__all__ = ["collect"]

_FOLDER = Path(__file__).resolve().parents[1]
_OTHER = ("kit", "corpora", "results")
_STATED = re.compile(r"^EXPERIMENT\b.* = ", re.MULTILINE)


def collect(folder: Path = _FOLDER) -> dict[str, Experiment]:
    """The constant ``EXPERIMENT`` of every script.

    Args:
      folder: That of the package `experiments`.

    Returns:
      Name -> experiment, by name; a module whose text states no such constant is not imported.

    Raises:
      ValueError: two scripts describe one experiment.
    """
    experiments: dict[str, Experiment] = {}
    for path in sorted(folder.glob("*/[!_]*.py")):
        if path.parent.name in _OTHER or not _STATED.search(path.read_text(encoding="utf-8")):
            continue
        name = ".".join((folder.name, path.parent.name, path.stem))
        experiment = importlib.import_module(name).EXPERIMENT
        if experiment.name in experiments:
            raise ValueError(f"{name}: expected an experiment of its own, got another {experiment.name}")
        experiments[experiment.name] = experiment
    return dict(sorted(experiments.items()))
