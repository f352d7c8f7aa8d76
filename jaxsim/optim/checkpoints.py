"""Checkpoints of long fits: one safetensors file in a folder, replaced atomically; ``kill -9`` loses one interval.

The file before it is kept beside it. Where the newest is damaged, a fit continues from that one, and a warning says so.

A fit over several processes (``shared``) has one folder that all of them see: process 0 writes, all read, and what
fails in one of them fails in all.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import threading
import time
import warnings
from pathlib import Path

import jax
import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save_file

from jaxsim import checks, io
from jaxsim.parallel import gathering

_NAME, _BEFORE = "checkpoint.safetensors", "checkpoint.before.safetensors"
_SEEN = ".seen-by-all-"
_SEEN_WITHIN = 30  # seconds; file systems of several machines tell of new files late
_TEMPORARY = re.compile(rf"{re.escape(_NAME)}\.(\d+)\.tmp|\.write-test-(\d+)", re.ASCII)


def fingerprint(*trees) -> str:
    """Hash of the contents, shapes and types of pytrees: what a resumed fit must have in common with the first.

    Args:
      *trees: pytrees of arrays; where one has parts in other processes, all of them call this.

    Returns:
      32 hexadecimal digits, the same in every process.

    Example:
      >>> fingerprint([1.0]) == fingerprint([1.0]), fingerprint([1.0]) == fingerprint([2.0])
      (True, False)
    """
    digest = hashlib.blake2b(digest_size=16)
    for leaf in jax.tree.leaves(trees):
        array = leaf if gathering.spans(leaf) else np.ascontiguousarray(leaf)
        digest.update(f"{array.dtype}{array.shape}".encode())
        for some in gathering.bytes_of(array):
            digest.update(some)
    if not gathering.spans(trees):
        return digest.hexdigest()
    return hashlib.blake2b(b"".join(gathering.all_of(digest.digest())), digest_size=16).hexdigest()


def prepare(folder, *, shared: bool = False) -> Path:
    """Makes the folder and proves that it can be written to, before any work is done.

    Temporary files of processes that are gone (killed while they wrote) are removed.

    Args:
      folder: path of the checkpoint folder.
      shared: whether it is that of a fit over several processes, all of which call this.

    Returns:
      The folder as a `Path`.

    Raises:
      ValueError: if it is an empty string, or cannot be made or written to.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as place:
      ...     prepare(Path(place) / "new").is_dir()
      True
    """
    if shared:
        return _seen_by_all(folder)
    checks.expect(os.fspath(folder) != "", "checkpoint", "a folder", "an empty string")
    folder = Path(folder)
    probe = folder / f".write-test-{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder)
        probe.write_bytes(b"")
        probe.unlink()
    except OSError as error:
        raise ValueError(f"checkpoint: expected a folder that can be written to, got {folder} ({error})") from None
    return folder


def _seen_by_all(folder) -> Path:
    """`prepare` of a folder of several processes: what process 0 writes there, the others find."""
    first = jax.process_index() == 0
    made = gathering.agreed(lambda: prepare(folder) if first else Path(folder), "checkpoint")
    name = f"{_SEEN}{gathering.all_of(os.urandom(8))[0].hex()}"  # of process 0

    def look() -> None:
        end = time.monotonic() + _SEEN_WITHIN
        while not (made / name).exists():
            checks.expect(time.monotonic() < end, "checkpoint", "a folder that every process sees",
                          f"{made}, without the file that process 0 wrote there")  # fmt: skip
            time.sleep(0.1)

    gathering.agreed(lambda: (made / name).write_bytes(b"") if first else None, "checkpoint")
    try:
        gathering.agreed(look, "checkpoint")
    finally:
        if first:
            (made / name).unlink()
    return made


def _remove_stale(folder: Path) -> None:
    for path in folder.iterdir():
        if path.name.startswith(_SEEN):
            path.unlink(missing_ok=True)
            continue
        found = _TEMPORARY.fullmatch(path.name)
        if found and not _alive(int(found[1] or found[2])):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                with contextlib.suppress(OSError):
                    path.unlink()


def _alive(pid: int) -> bool:
    """Whether another process has this number. This one's own leftovers are of an earlier process of its number."""
    return pid != os.getpid() and io.alive(pid)


_digest = fingerprint


@contextlib.contextmanager
def uninterrupted():
    """Delays Ctrl-C to the end of the block, where a half-made state (donated arrays) would leave nothing to save.

    Example:
      >>> with uninterrupted():
      ...     done = True
      >>> done
      True
    """
    before = signal.getsignal(signal.SIGINT)
    if before is None or threading.current_thread() is not threading.main_thread():
        yield
        return
    caught = []
    signal.signal(signal.SIGINT, lambda *_: caught.append(True))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
    if caught:
        signal.raise_signal(signal.SIGINT)


def save(folder: Path, state, meta: dict, *, shared: bool = False) -> None:
    """Writes a checkpoint beside the old one and then replaces it.

    Args:
      folder: an existing folder.
      state: pytree of arrays.
      meta: JSON-compatible description, with ``fingerprint``.
      shared: as for `prepare`; process 0 writes.

    Raises:
      OSError: if it cannot be written; the old one is as it was.
      ValueError: if ``shared`` and process 0 could not write it.

    Example:
      >>> import tempfile
      >>> with tempfile.TemporaryDirectory() as place:
      ...     save(Path(place), [np.ones(2)], {"fingerprint": "a"})
      ...     load(Path(place), [np.zeros(2)], fingerprint="a")[0][0].tolist()
      [1.0, 1.0]
    """
    leaves = {f"leaf.{i}": gathering.whole(leaf, copy=False) for i, leaf in enumerate(jax.tree.leaves(state))}
    if not shared:
        _write(folder, leaves, meta)
    else:
        gathering.agreed(lambda: _write(folder, leaves, meta) if jax.process_index() == 0 else None, "checkpoint")


def _write(folder: Path, leaves: dict[str, np.ndarray], meta: dict) -> None:
    # A folder, because safetensors writes through temporary files of its own, beside the file it is told.
    temporary = folder / f"{_NAME}.{os.getpid()}.tmp"
    temporary.mkdir(exist_ok=True)
    try:
        save_file(leaves, temporary / _NAME, metadata=described(list(leaves.values()), meta))
        with open(temporary / _NAME, "rb") as file:
            os.fsync(file.fileno())
        older = _kept(folder / _NAME, temporary / _BEFORE)
        os.replace(temporary / _NAME, folder / _NAME)
        if older:  # only now, so that at every moment one of the two is whole
            os.replace(temporary / _BEFORE, folder / _BEFORE)
    except (SafetensorError, OSError) as error:  # neither names the file: no space left, for one
        raise OSError(f"{folder}: expected a place for a checkpoint, got {error}") from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _kept(path: Path, place: Path) -> bool:
    """Gives a file a second name; whether there is one. File systems without second names keep no file before."""
    try:
        os.link(path, place)
    except OSError:
        return False
    return True


def described(leaves: list[np.ndarray], meta: dict) -> dict[str, str]:
    """What stands beside the arrays of a checkpoint: its notes, and one digest of the arrays and the notes.

    Args:
      leaves: the arrays.
      meta: JSON-compatible notes.

    Returns:
      Metadata of a safetensors file.
    """
    notes = json.dumps(meta)
    return {"json": notes, "contents": _digest(notes, leaves)}


def load(folder: Path, like, *, fingerprint: str, shared: bool = False):
    """Reads a checkpoint back; where the newest is damaged or missing, the one before, with a warning.

    Args:
      folder: the folder given to `save`.
      like: pytree of arrays with the structure, shapes and types expected.
      fingerprint: of the problem being resumed.
      shared: as for `prepare`; every process reads.

    Returns:
      ``(state, meta)``, or None if there is no checkpoint.

    Raises:
      ValueError: if the files are damaged, the newest whole one belongs to another problem, or (``shared``) they are
        not the same everywhere.
    """
    if shared:
        found = gathering.agreed(lambda: load(folder, like, fingerprint=fingerprint), "checkpoint")
        told = "" if found is None else json.dumps(found[1], sort_keys=True) + _digest(jax.tree.leaves(found[0]))
        gathering.expect_same(told, "checkpoint", f"one folder that all processes see as {folder}, with one checkpoint")
        return found
    path, before = folder / _NAME, folder / _BEFORE
    if not path.exists() and not before.exists():
        return None
    leaves, structure = jax.tree.flatten(like)
    try:
        found, meta = _read(path)
    except ValueError as error:
        try:
            found, meta = _read(before)
        except ValueError:
            raise error from None
        fault = "damaged" if path.exists() else "missing"
        warnings.warn(f"checkpoint: {path} is {fault}; going on from the one before it, {before}", stacklevel=2)
        path = before
    same = len(found) == len(leaves) and all(
        a.shape == np.shape(b) and a.dtype == _dtype(b) for a, b in zip(found, leaves, strict=True)
    )
    if meta.get("fingerprint") != fingerprint or not same:
        raise ValueError(
            "checkpoint: expected a checkpoint of the same data, start and settings, got another problem's, or one of "
            "another number of devices, with or without numba, or of another kind of device, "
            f"in {path}; use another folder or delete this one"
        )
    return jax.tree.unflatten(structure, found), meta


def _read(path: Path) -> tuple[list[np.ndarray], dict]:
    """The arrays and the notes of a whole checkpoint; any other is a ValueError."""
    try:
        with safe_open(path, framework="numpy") as file:
            description = file.metadata()
            notes, contents = description["json"], description["contents"]
            found = [file.get_tensor(f"leaf.{i}") for i in range(len(file.keys()))]
        # Earlier versions left the notes out of the digest.
        checks.expect(contents in (_digest(notes, found), _digest(found)), "its contents", "those that were written",
                      "others")
        meta = io.parsed(notes.encode(), "its notes")
        checks.kind(meta, "its notes", dict)
        return found, meta
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise ValueError(f"checkpoint: expected a whole checkpoint, got a damaged file {path} ({error}); "
                         "delete its folder to start anew") from None


def _dtype(leaf) -> np.dtype:
    return leaf.dtype if isinstance(leaf, jax.Array) else np.asarray(leaf).dtype
