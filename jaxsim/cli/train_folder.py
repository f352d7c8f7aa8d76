"""The folder of checkpoints beside a model that is being trained: one training at a time, begun anew or resumed."""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from jaxsim.cli import train_choice
from jaxsim.cli.output import say
from jaxsim.train.settings import ITERATED, SSI, Settings

if TYPE_CHECKING:
    from filelock import FileLock

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
    """Keeps other trainings out of a folder of checkpoints, which is made; afterwards it goes if it keeps no state.

    Args:
      folder: of checkpoints.

    Raises:
      ValueError: if another training is at it.
    """
    import filelock

    from jaxsim.optim.checkpoints import uninterrupted

    lock = None
    try:
        with uninterrupted():
            folder.mkdir(parents=True, exist_ok=True)
            lock = _taken(filelock.FileLock(folder / _LOCK), folder)
        yield
    finally:
        if lock is not None:
            lock.release()
            if folder.is_dir() and not holds(folder):
                shutil.rmtree(folder, ignore_errors=True)


def _taken(lock: FileLock, folder: Path) -> FileLock:
    """A lock that this process holds, or an error where another one does."""
    import filelock

    from jaxsim import io

    try:
        io.acquire(lock)
    except filelock.Timeout:
        raise ValueError(f"{folder}: expected no other training in this folder, got one that is running "
                         "(give another --out)") from None
    return lock


def holds(folder: Path) -> bool:
    """Whether a folder of checkpoints has files to go on from: others than settings, locks and halves of files.

    Args:
      folder: of checkpoints; it may be missing.

    Returns:
      Whether it has.
    """
    from jaxsim.train import resume

    found = (path for path in folder.rglob("*") if path.is_file())
    return any(path.name not in (_LOCK, resume.CHOICE) and not path.name.startswith(".write-test-")
               and not any(part.endswith(".tmp") for part in path.relative_to(folder).parts) for path in found)


def expect_state(folder: Path, out: Path, made: str = "model") -> None:
    """Refuses to go on from nothing where that would replace what was made.

    Args:
      folder: of checkpoints.
      out: where that stands.
      made: what it is.

    Raises:
      ValueError: if the folder holds nothing to go on from, and there is one.
    """
    from jaxsim.checks import expect

    expect(holds(folder) or not out.exists(), "--resume", f"a saved state in {folder}",
           f"none, and a complete {made} in {out} (leave out --resume to replace it)")  # fmt: skip


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


def begin(folder: Path, resume: bool, settings: Settings, out: Path) -> None:
    """Empties a folder of checkpoints unless training is to go on.

    Args:
      folder: of checkpoints.
      resume: whether it is.
      settings: of the training.
      out: the model's folder.

    Raises:
      ValueError: if the checkpoints are of another training, or there are none, and there is a model.
    """
    from jaxsim.checks import expect
    from jaxsim.train.resume import choice_of, kept_choice

    if resume:
        expect_state(folder, out)
        choice, kept = choice_of(settings), kept_choice(folder)
        fits = kept in (None, choice) or train_choice.kept(folder)  # what was chosen is looked at when it is read
        expect(fits, str(folder), f"a checkpoint of {_options(choice)}",
               f"one of {_options(kept or {})} (without --resume it is deleted)")
        tell_state(folder)
    else:
        empty_and_tell(folder, resumable=settings.method in ITERATED)


def tell_state(folder: Path) -> None:
    """Says whether there is a state to go on from.

    Args:
      folder: of checkpoints.
    """
    say(f"{folder}: {'continuing from it' if holds(folder) else 'no saved state there, starting anew'}")


def empty_and_tell(folder: Path, *, resumable: bool) -> None:
    """Empties a folder of checkpoints for a training that starts anew, and says so where there was anything.

    Args:
      folder: of checkpoints.
      resumable: whether ``--resume`` would have gone on from it.
    """
    if {path.name for path in folder.iterdir()} - {_LOCK}:
        say(f"{folder}: deleted, starting anew{' (--resume would have continued from it)' * resumable}")
        empty(folder)


def _options(choice: dict) -> str:
    """The options that decide which checkpoints a training has."""
    if not choice:
        return "an earlier version, or with a damaged file of settings"
    method, identity = choice.get("method"), choice.get("identity")
    weight = f" --identity {identity:g}" if identity is not None else " without --identity" * (method in SSI)
    epochs = f" --max-iter {choice.get('max_iter')}" * (choice.get("max_iter") is not None)
    return f"--method {method} --dim {choice.get('dim')}{weight}{epochs}"
