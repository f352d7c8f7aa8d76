"""The experiments that the scripts describe, collected by importing them."""

from __future__ import annotations

import importlib
from pathlib import Path

from experiments.kit.run import Experiment

__all__ = ["collect"]

_FOLDER = Path(__file__).resolve().parents[1]
_OTHER = ("kit", "corpora", "results")


def collect(folder: Path = _FOLDER) -> dict[str, Experiment]:
    """The constant ``EXPERIMENT`` of every script.

    Args:
      folder: That of the package `experiments`.

    Returns:
      Name -> experiment, by name; a module without that constant is passed over.

    Raises:
      ValueError: two scripts describe one experiment.
    """
    experiments: dict[str, Experiment] = {}
    for path in sorted(folder.glob("*/[!_]*.py")):
        if path.parent.name in _OTHER:
            continue
        name = ".".join((folder.name, path.parent.name, path.stem))
        experiment = getattr(importlib.import_module(name), "EXPERIMENT", None)
        if not isinstance(experiment, Experiment):
            continue
        if experiment.name in experiments:
            raise ValueError(f"{name}: expected an experiment of its own, got another {experiment.name}")
        experiments[experiment.name] = experiment
    return dict(sorted(experiments.items()))
