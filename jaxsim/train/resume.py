"""What a training keeps in its folder of checkpoints, so that ``--resume`` continues the right training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from jaxsim import checks
from jaxsim.optim import checkpoints
from jaxsim.train.settings import TOPICS, Settings

START = "checkpoint.start"
"""Folder, among a training's checkpoints, of its closed-form start."""
CHOICE = "checkpoint.settings.json"
"""File, among a training's checkpoints, of the settings that decide which they are, and of what they stopped by."""
_DEV, _JUDGED = "dev", "judged"  # digests of the held-out pairs and of the queries to stop by, in that file
_FINISHED = ("checkpoint.safetensors", "checkpoint.identity-*/checkpoint.safetensors")  # SSI: one for each b


def choice_of(settings: Settings) -> dict[str, Any]:
    """The settings that decide which checkpoints a training has; the checkpoints themselves hold all others.

    Args:
      settings: of a training.

    Returns:
      ``method``, ``identity`` and ``dim``; also ``max_iter`` of a training in batches, over which its rate falls, and
      of topics, whose steps have as many iterations as go into it.

    Example:
      >>> choice_of(Settings(method="ssi", identity=3.0))
      {'method': 'ssi', 'identity': 3.0, 'dim': 300}
      >>> choice_of(Settings(batch_size=64, max_iter=8))["max_iter"]
      8
    """
    told = {"method": settings.method, "identity": settings.identity, "dim": settings.dim}
    return told | ({"max_iter": settings.max_iter} if settings.batch_size or settings.method in TOPICS else {})


def kept_choice(folder) -> dict[str, Any] | None:
    """What `choice_of` says of the training whose checkpoints are in a folder.

    Args:
      folder: that of the training; it may be missing.

    Returns:
      What `keep_choice` wrote of the settings; empty if nothing did, and None where no iteration is finished.

    Example:
      >>> kept_choice("no such folder") is None
      True
    """
    kept = _kept(folder)
    return None if kept is None else {name: value for name, value in kept.items() if name not in (_DEV, _JUDGED)}


def _kept(folder) -> dict[str, Any] | None:
    """All that `keep_choice` wrote; empty if nothing did, and None where no iteration is finished."""
    folder = Path(folder)
    if not any(any(folder.glob(pattern)) for pattern in _FINISHED):
        return None
    try:
        kept = json.loads((folder / CHOICE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return kept if isinstance(kept, dict) else {}


def kept_start(folder) -> bool:
    """Whether the closed-form start of a training is kept in its folder of checkpoints.

    Args:
      folder: that of the training; it may be missing.

    Returns:
      Whether it is there.

    Example:
      >>> kept_start("no such folder")
      False
    """
    return any(Path(folder).glob(f"{START}/checkpoint.safetensors"))


def keep_choice(folder, settings: Settings, dev: str, judged: str = "") -> None:
    """Writes what `choice_of` says of the settings beside the checkpoints, and what the training stops by.

    The checkpoints themselves hold the best parameters by held-out pairs or by judged queries, but not these.

    Args:
      folder: that of the training; made if it is missing.
      settings: of the training.
      dev: digest of its held-out pairs (`held_out.digest`).
      judged: digest of the queries that it stops by (`Judged.sha256`), if it does.

    Raises:
      ValueError: if the checkpoints there are of another method or identity or stopped by other held-out pairs or
        queries, or nothing can be written there.
      OSError: if there is no space left.
    """
    choice, kept = choice_of(settings), _kept(folder)
    before = dict(kept or {})
    judged_before = before.pop(_JUDGED, "" if _DEV in before else judged)
    dev_before = before.pop(_DEV, dev)  # earlier versions kept none
    expected, got = (" and ".join(f"{name} {value}" for name, value in settings.items())
                     for settings in (choice, before or choice))
    checks.expect(expected == got, "checkpoint", f"one of {expected}", f"one of {got} in {folder}")
    checks.expect(dev_before == dev, "checkpoint", "one of a training with these held-out pairs",
                  f"one with others in {folder} (give the pairs and the --dev of before, in the same order, or begin "
                  "anew: without --resume, or in another folder)")  # fmt: skip
    expected, got = ("these queries" if judged else "held-out pairs",
                     "other queries" if judged_before else "held-out pairs")
    checks.expect(judged_before == judged, "checkpoint", f"one of a training that {expected} stop",
                  f"one that {got} stop in {folder} (give the --stop-by of before, with the same --dev-queries, "
                  "--dev-documents, --dev-qrels, --dev-score and --dev-exclude-self, or begin anew)")  # fmt: skip
    if before == choice:
        return  # what is written is never at risk
    place = checkpoints.prepare(folder)
    try:
        digests = {_DEV: dev, **({_JUDGED: judged} if judged else {})}
        (place / CHOICE).write_text(json.dumps({**choice, **digests}), encoding="utf-8")
    except OSError as error:
        raise OSError(f"{folder}: expected a place for a checkpoint, got {error}") from error
