"""What a training is told (`Settings`), what a method is fitted on (`Parts`), and what its checkpoints are of."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.optim import checkpoints
from jaxsim.sparse import Terms

_NOISE = 1e-4
START = "checkpoint.start"
"""Folder, among a training's checkpoints, of its closed-form start."""
_CHOICE = "checkpoint.settings.json"
_FINISHED = ("checkpoint.safetensors", "checkpoint.identity-*/checkpoint.safetensors")  # SSI: one for each b


@dataclass(frozen=True)
class Settings:
    """How a model is trained.

    Attributes:
      method: name in `METHODS`.
      dim: dimension; smaller where the data bears less.
      weighting: name in `model.WEIGHTINGS`.
      drop_top: most frequent terms left out.
      max_terms: terms kept at most.
      min_df: documents a term must occur in.
      noise: of OPCA, also as S2Net's start; the ridge of CCA.
      gamma: scale of S2Net's loss.
      activation: name in `model.ACTIVATIONS`, for S2Net.
      all_negatives: whether near-duplicates are negatives of each other too.
      max_iter: iterations (or epochs) of S2Net or SSI at most; by the number of pairs unless given.
      patience: iterations (or epochs) without a better dev score before stopping; 30 (10 in batches, 5 for SSI) unless
        given. Dev scores may dip before they rise.
      batch_size: pairs a batch of S2Net; 0 for all pairs at once (exact), by the number of pairs unless given.
      seed: of whatever is random, and the salt of the split.
      precision: of the products of S2Net's loss, as for `precision.matmul`; JAX's default unless given.
      devices: that share the pairs of S2Net on all negatives; all of this process unless given. Batches take one.
      shard_terms: whether these devices share the rows of the projection too, as for `s2net.fit`; all negatives, then.
      identity: b of SSI's W = UᵀV + b·I; chosen by the held-out pairs from `training_links.IDENTITIES` unless given.
      learning_rate: of SSI; `training_links.LEARNING_RATE` unless given.
      subwords: share of a word's squared length that its character n-grams have (`jaxsim.text.subwords`); 0: none.
      distill: share of the bare terms in the scores that the trained vectors then learn to give (`training_distilled`);
        0: they stay as they are.
    """

    method: str = "s2net"
    dim: int = 300
    weighting: str = "log_tf_idf"
    drop_top: int = 0
    max_terms: int = 50_000
    min_df: int = 2
    noise: float = _NOISE
    gamma: float = 10.0
    activation: str = "none"
    all_negatives: bool = False
    max_iter: int | None = None
    patience: int | None = None
    batch_size: int | None = None
    seed: int = 0
    precision: str | None = None
    devices: int | None = None
    shard_terms: bool = False
    identity: float | None = None
    learning_rate: float | None = None
    subwords: float = 0.0
    distill: float = 0.0


@dataclass(frozen=True, eq=False)
class Parts:
    """What a method is fitted on.

    Attributes:
      counts: raw counts of the training pairs, left and right, CSR.
      train: their weighted vectors, of unit length.
      groups: ``[m, 2]`` group numbers of near-duplicates among the left and among the right texts.
      validate: dev score of projections, or None without dev pairs.
      k: dimension.
      settings: the rest.
      checkpoint: folder for checkpoints, or None.
      progress: whether to show bars.
      dev: weighted vectors of the held-out pairs, left and right, of unit length; None without any.
      grades: ``[m]`` grades of the training pairs in [0, 1], for methods that learn from grades.
      dev_grades: grades of the held-out pairs.
      say: told what is being done.
      told: what a method adds to the model's ``training``.
    """

    counts: tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]
    train: tuple[Terms, Terms]
    groups: np.ndarray
    validate: Callable | None
    k: int
    settings: Settings
    checkpoint: Any = None
    progress: bool = False
    dev: tuple[Terms, Terms] | None = None
    grades: np.ndarray | None = None
    dev_grades: np.ndarray | None = None
    say: Callable[[str], None] = lambda message: None
    told: dict[str, Any] = field(default_factory=dict)


def choice_of(settings: Settings) -> dict[str, Any]:
    """The settings that decide which checkpoints a training has; all others stand in the checkpoints themselves.

    Args:
      settings: of a training.

    Returns:
      ``method``, ``identity`` and ``dim``.

    Example:
      >>> choice_of(Settings(method="ssi", identity=3.0))
      {'method': 'ssi', 'identity': 3.0, 'dim': 300}
    """
    return {"method": settings.method, "identity": settings.identity, "dim": settings.dim}


def kept_choice(folder) -> dict[str, Any] | None:
    """The `choice_of` the training whose checkpoints are in a folder.

    Args:
      folder: that of the training; it may be missing.

    Returns:
      What `keep_choice` wrote; empty if nothing did, and None where no iteration is finished.

    Example:
      >>> kept_choice("no such folder") is None
      True
    """
    folder = Path(folder)
    if not any(any(folder.glob(pattern)) for pattern in _FINISHED):
        return None
    try:
        found = json.loads((folder / _CHOICE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


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


def keep_choice(folder, settings: Settings) -> None:
    """Writes `choice_of` the settings beside the checkpoints to come.

    Args:
      folder: that of the training; made if it is missing.
      settings: of the training.

    Raises:
      ValueError: if the checkpoints there are of another method or identity, or nothing can be written there.
      OSError: if there is no space left.
    """
    choice, there = choice_of(settings), kept_choice(folder)
    told, found = (" and ".join(f"{name} {value}" for name, value in one.items()) for one in (choice, there or choice))
    checks.expect(told == found, "checkpoint", f"one of {told}", f"one of {found} in {folder}")
    if there == choice:
        return  # what is written is never at risk
    place = checkpoints.prepare(folder)
    try:
        (place / _CHOICE).write_text(json.dumps(choice), encoding="utf-8")
    except OSError as error:
        raise OSError(f"{folder}: expected a place for a checkpoint, got {error}") from error
