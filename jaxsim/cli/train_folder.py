"""The folder of checkpoints beside a model that is being trained: one training at a time, begun anew or resumed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from jaxsim.cli import train_choice
from jaxsim.cli.output import say
from jaxsim.train.settings import ITERATED, SSI, Settings

_LOCK = "checkpoint.lock"


def beside(out: Path) -> Path:
    """The folder of checkpoints of a model.

    Args:
      out: the model's folder.

    Returns:
      The folder, which may be missing.

    Raises:
      ValueError: if it holds other files.
    """
    from jaxsim import checks

    folder = out.absolute().with_name(f"{out.absolute().name}.checkpoint")
    folder = Path(os.path.relpath(folder)) if not out.is_absolute() else folder
    others = [path.name for path in folder.iterdir() if not path.name.startswith(("checkpoint.", ".write-test-"))
              ] if folder.is_dir() else []  # fmt: skip
    checks.expect(not others, str(folder), "a folder of checkpoints", f"one with {others[:1]}")
    return folder


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keeps other trainings out of a folder of checkpoints, which is made; an empty one is removed after that.

    Args:
      folder: of checkpoints.

    Raises:
      ValueError: if another training is at it.
    """
    import filelock

    folder.mkdir(parents=True, exist_ok=True)
    lock = filelock.FileLock(folder / _LOCK)
    try:
        with contextlib.suppress(NotImplementedError):  # of file systems without locks
            lock.acquire(timeout=0)
    except filelock.Timeout:
        raise ValueError(f"{folder}: expected a training that no other process is at, got one that is running "
                         "(give another --out)") from None
    try:
        yield
    finally:
        lock.release()
        if folder.is_dir() and {path.name for path in folder.iterdir()} <= {_LOCK}:
            shutil.rmtree(folder, ignore_errors=True)


def empty(folder: Path) -> None:
    """Deletes all files of a folder of checkpoints but the lock.

    Args:
      folder: of checkpoints.
    """
    for path in folder.iterdir():
        if path.is_dir():
            shutil.rmtree(path)
        elif path.name != _LOCK:
            path.unlink()


def begin(folder: Path, resume: bool, settings: Settings) -> None:
    """Empties a folder of checkpoints unless training is to go on.

    Args:
      folder: of checkpoints.
      resume: whether it is.
      settings: of the training.

    Raises:
      ValueError: if the checkpoints are of another training.
    """
    from jaxsim.checks import expect
    from jaxsim.train.resume import choice_of, kept_choice

    if resume:
        choice, kept = choice_of(settings), kept_choice(folder)
        fits = kept in (None, choice) or train_choice.kept(folder)  # what was chosen is looked at when it is read
        expect(fits, str(folder), f"a checkpoint of {_options(choice)}",
               f"one of {_options(kept or {})} (without --resume it is deleted)")
        say(f"{folder}: {'going on from it' if begun(folder) else 'nothing there to go on from, starting anew'}")
    elif {path.name for path in folder.iterdir()} - {_LOCK}:
        remedy = " (--resume would have gone on from it)" * (settings.method in ITERATED)
        say(f"{folder}: deleted, starting anew{remedy}")
        empty(folder)


def begun(folder: Path) -> bool:
    """Whether a folder of checkpoints keeps anything: iterations, a start, or settings that were chosen.

    Args:
      folder: of checkpoints.

    Returns:
      Whether a training can go on from it.
    """
    from jaxsim.train import resume

    return resume.kept_choice(folder) is not None or resume.kept_start(folder) or train_choice.kept(folder)


def _options(choice: dict) -> str:
    """The options that decide which checkpoints a training has."""
    if not choice:
        return "an earlier version"
    method, identity = choice.get("method"), choice.get("identity")
    weight = f" --identity {identity:g}" if identity is not None else " without --identity" * (method in SSI)
    return f"--method {method} --dim {choice.get('dim')}{weight}"
