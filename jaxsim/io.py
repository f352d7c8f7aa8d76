"""Files that are whole or absent: atomic writes of files and folders, and configurations that hold their own digest.

A folder is written beside its place and renamed into it, so that a kill leaves the old folder or the new one (in the
instant between two renames the old one has a hidden name beside its place). Of several processes that write to one
place the last one to finish is found there.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import secrets
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from jaxsim import checks

PAGE = "topics.html"
"""What `jaxsim topics` adds to a model's folder."""
_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")  # that file managers leave
_TRIES, _LOOKS = 100, 5  # of one process while others write to the same place
_WAITS = (0.001,) * 10 + (0.01,) * 10 + (0.1,) * 3  # seconds between reads while another process replaces a folder
_KINDS = {"completion model": "completion", "corpus": "sentences", "translation table": "translation table"}
CONFIG, TENSORS, VOCABULARY, CARD = "config.json", "model.safetensors", "vocabulary.json", "README.md"


def acquire(lock, timeout: float = 0) -> None:
    """Takes a lock, or goes on without it where the file system has none.

    Args:
      lock: of filelock.
      timeout: seconds to wait for another process; -1 for ever.

    Raises:
      filelock.Timeout: if another process still holds it.
      OSError: if its file cannot be written.

    Example:
      >>> import filelock
      >>> with tempfile.TemporaryDirectory() as place:
      ...     lock, other = (filelock.FileLock(os.path.join(place, "lock")) for _ in range(2))
      ...     acquire(lock)
      ...     try:
      ...         acquire(other)
      ...     except filelock.Timeout:
      ...         print("held")
      ...     lock.release()
      held
    """
    try:
        lock.acquire(timeout=timeout)
    except NotImplementedError:
        return
    except OSError as error:
        if error.errno not in _NO_LOCKS:  # of filelock's own Timeout, None
            raise


def write_bytes(path: Path, content: bytes) -> None:
    """Writes a file through a temporary one beside it, so that a kill leaves the old file or the new one.

    Args:
      path: The file; its folder must exist.
      content: All of it.

    Raises:
      OSError: the folder cannot be written; a file of that name is as it was.
    """
    remove_stale(path)
    with placed(path) as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())


@contextlib.contextmanager
def placed(path: Path) -> Iterator[BinaryIO]:
    """A file to write, which gets its place when it is whole.

    Args:
      path: the file; its folder must exist.

    Yields:
      A temporary file beside it, which `remove_stale` knows, open for bytes.

    Raises:
      OSError: the folder cannot be written; a file of that name is as it was.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with placed(Path(folder) / "ones.bin") as file:
      ...         _ = file.write(b"11")
      ...     (Path(folder) / "ones.bin").read_bytes()
      b'11'
    """
    temporary = hidden(path)
    try:
        with open(temporary, "xb") as handle:  # who may read it is as the umask says
            yield handle
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def hidden(place: Path) -> Path:
    """A name for a temporary file or folder beside a place, which `remove_stale` knows; nothing has it.

    What is made there has the permissions that the umask gives, unlike temporary files of Python, which are private.

    Args:
      place: where the file or folder will belong.

    Returns:
      The path.

    Example:
      >>> hidden(Path("kept/model")).match("kept/.model.*.part")
      True
    """
    return place.with_name(f".{place.name}.{os.getpid()}.{secrets.token_hex(4)}.part")


def replace_folder(
    folder: str | os.PathLike, contents: Mapping[str, bytes], *, marker: str, argument: str = "out", what: str = "model"
) -> Path:
    """Writes files into a new folder beside ``folder`` and renames it into place.

    Args:
      folder: where; its parents are made.
      contents: path inside the folder -> bytes.
      marker: JSON file with ``"library": "jaxsim"`` that says that an existing folder is one that may be replaced, and
        in ``"files"`` which files it has beside those of a model; nothing else may be in it.
      argument: what messages call the folder.
      what: what messages call that which it holds.

    Returns:
      The folder.

    Raises:
      ValueError: if the place is a file, or a folder with other things in it.
      OSError: if it cannot be written; what was there is as it was.
    """
    folder = Path(folder)
    temporary = _beside(folder, marker, argument, what)
    try:
        for name, data in contents.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            with open(temporary / name, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        _put(temporary, folder.resolve(), temporary.with_suffix(".old"))
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return folder


def put_folder(made: Path, folder: str | os.PathLike, *, what: str = "model") -> None:
    """Gives a finished folder its place, from which an older one goes; a kill leaves the one or the other.

    Args:
      made: the folder, on the same disk.
      folder: where it belongs.
      what: as for `check_place`.

    Raises:
      ValueError: if the place is a file, or a folder with other things in it.
      OSError: if it cannot be moved there; both are as they were.
    """
    temporary = _beside(Path(folder), CONFIG, "out", what)
    temporary.rmdir()
    _put(made, Path(folder).resolve(), temporary.with_suffix(".old"))


def _put(made: Path, place: Path, old: Path) -> None:
    """Renames ``made`` to ``place``, and what was there to ``old`` until then; after others that write there too."""
    try:
        for left in reversed(range(_TRIES)):
            try:
                if place.exists():
                    with contextlib.suppress(FileNotFoundError):  # another process has moved it since
                        os.rename(place, old)
                os.rename(made, place)
                break
            except OSError as error:  # another process has put its own there since: it was earlier, so it is the older
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or not left:
                    raise
                _discard(old)
    except BaseException:  # Ctrl-C between the two as well
        if old.exists() and not place.exists():
            os.rename(old, place)
        raise
    finally:
        if place.exists():
            _discard(old)


def _discard(old: Path) -> None:
    """Removes a folder that another has replaced, if it is there."""
    gone = old.with_suffix(".part")  # what has the name of an older one is whole, also if this is killed now
    gone = gone.with_stem(f"{gone.stem}_") if gone.exists() else gone
    with contextlib.suppress(FileNotFoundError):
        os.rename(old, gone)
        shutil.rmtree(gone, ignore_errors=True)


def settled(folder: Path, read: Callable[[], Any], marker: str) -> Any:
    """What a folder says that another process may replace while it is read.

    Args:
      folder: the folder.
      read: reads it; called again where the folder was replaced meanwhile.
      marker: as for `replace_folder`.

    Returns:
      What ``read`` returns, of the older folder or of the newer one.

    Raises:
      OSError: as ``read``, of a folder that nobody replaces.
      ValueError: likewise.

    Example:
      >>> with tempfile.TemporaryDirectory() as place:
      ...     folder = replace_folder(Path(place) / "kept", {"facts.json": b"{}"}, marker="facts.json")
      ...     settled(folder, (folder / "facts.json").read_text, "facts.json")
      '{}'
    """
    for wait in _WAITS:
        seen = _mark(folder / marker)
        try:
            return read()
        except (OSError, ValueError):
            # The marker stays what it is in a folder that is damaged, or of another kind. Between the two renames of
            # `replace_folder` there is none, and the older folder stands beside the place.
            moved = bool(older(folder))
            if _mark(folder / marker) == seen and (seen is not None or not moved):
                raise
        time.sleep(wait)
    return read()


def _mark(path: Path) -> tuple[int, int, bytes] | None:
    """What tells a marker from the one that replaces it, even with equal contents; None where there is none."""
    try:
        facts = path.stat()
        return facts.st_ino, facts.st_mtime_ns, path.read_bytes()
    except OSError:
        return None


def older(folder: Path) -> list[Path]:
    """What stands beside a place where a folder is replaced, or was until a kill.

    Args:
      folder: the place.

    Returns:
      Hidden folders.

    Example:
      >>> with tempfile.TemporaryDirectory() as place:
      ...     (Path(place) / ".model.7.0a.old").mkdir()
      ...     [path.name for path in older(Path(place) / "model")]
      ['.model.7.0a.old']
    """
    return sorted(folder.absolute().parent.glob(f".{glob.escape(folder.name)}.*.old"))


def check_place(
    folder: str | os.PathLike, *, marker: str = CONFIG, argument: str = "out", what: str = "model"
) -> None:
    """Makes sure that a folder can be written later, before any work is done.

    Args:
      folder: where `replace_folder` is to write.
      marker: as for `replace_folder`.
      argument: as for `replace_folder`.
      what: as for `replace_folder`.

    Raises:
      ValueError: if the place is a file, or a folder with other things in it.
      OSError: if nothing can be written there.
    """
    place = _free(Path(folder), marker, argument, what)
    parent = next(one for one in place.parents if one.exists())  # others are made when there is something to write
    Path(tempfile.mkdtemp(dir=parent, prefix=f".{place.name}.{os.getpid()}.", suffix=".part")).rmdir()


def _beside(folder: Path, marker: str, argument: str, what: str) -> Path:
    """A new temporary folder beside ``folder``, whose place must be free."""
    place = _free(folder, marker, argument, what)
    place.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(place)
    made = hidden(place)
    made.mkdir()  # not as tempfile makes folders, for this user alone: who may read it is as the umask says
    return made


def remove_stale(place: Path) -> None:
    """Removes the temporary files and folders that processes left beside a place when they were killed.

    Args:
      place: where they were to write. What processes that still run are writing stays.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     place = Path(folder) / "texts.npy"
      ...     left = place.with_name(f".texts.npy.{2**22 + 1}.part")  # of no process: systems number fewer
      ...     _ = left.write_bytes(b"half")
      ...     remove_stale(place)
      ...     left.exists()
      False
    """
    temporary = re.compile(rf"\.{re.escape(place.name)}\.(\d{{1,9}})\.(\w+\.)?(part|old)", re.ASCII)
    with contextlib.suppress(OSError):  # a folder that cannot be listed
        for path in list(place.parent.iterdir()):
            found = temporary.fullmatch(path.name)
            needed = found and found[3] == "old" and not place.exists()  # the older one, moved away and not replaced
            if found and not needed and not alive(int(found[1])):
                if path.is_dir() and not path.is_symlink():
                    shutil.rmtree(path, ignore_errors=True)
                else:
                    path.unlink(missing_ok=True)


def alive(pid: int) -> bool:
    """Whether a process of this number runs.

    Args:
      pid: its number.

    Returns:
      True where that cannot be known.

    Example:
      >>> alive(os.getpid())
      True
    """
    if os.name != "posix":  # there, os.kill ends the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def _free(folder: Path, marker: str, argument: str, what: str) -> Path:
    """Where ``folder`` really is; nothing may be there but an older one of its kind."""
    for _ in range(_LOOKS):  # another process that replaces the folder can take it away between two looks
        told = _told(folder / marker, what)
        free = not folder.exists() or (folder.is_dir() and (told is not None or _empty(folder)))
        others = _others(folder, marker, told) if told is not None else []
        if free and not others:
            break
        time.sleep(0.001)
    checks.expect(free, argument, f"a new folder, or one that holds an older {what} of ours ({marker})", folder)
    checks.expect(not others, argument, f"nothing in {folder} but the older {what} (it would be lost)",
                  ", ".join(others[:3]) + ", …" * (len(others) > 3))  # fmt: skip
    place = folder.resolve()
    here = Path.cwd()
    checks.expect(place != here and place not in here.parents, argument,
                  "a folder other than the working one (it would be another after that)", folder)  # fmt: skip
    file = next((one for one in place.parents if one.is_file()), None)
    checks.expect(file is None, str(folder), "a place in a folder", f"one in a file ({file})")
    return place


def _empty(folder: Path) -> bool:
    """Whether a folder has nothing in it, or is gone."""
    try:
        return not any(folder.iterdir())
    except FileNotFoundError:
        return True


def _told(path: Path, what: str) -> dict[str, Any] | None:
    """What a marker says, if this library wrote it for such a thing; other tools have a config.json too."""
    try:
        told = parsed(path.read_bytes(), str(path))
    except (OSError, ValueError):
        return None
    ours = isinstance(told, dict) and told.get("library") == "jaxsim"
    return told if ours and told.get("kind") == _KINDS.get(what) else None


def _others(folder: Path, marker: str, told: Mapping[str, Any]) -> list[str]:
    """Files in a folder of ours that somebody else put there; none in one that is taken away meanwhile."""
    listed = told.get("files")
    ours = {marker, TENSORS, VOCABULARY, CARD, PAGE, *_LITTER, *(listed if isinstance(listed, list | dict) else ())}
    try:
        found = [path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir()]
    except FileNotFoundError:
        return []
    return [name for path in found if (name := path.relative_to(folder).as_posix()) not in ours]


def sealed(config: Mapping[str, Any]) -> bytes:
    """A configuration as a JSON file that holds its own digest.

    Args:
      config: JSON-compatible, with ``library`` and ``format``.

    Returns:
      The file's bytes.
    """
    told = {**config, "digest": digest_of(json.loads(json.dumps(config)))}
    return (json.dumps(told, ensure_ascii=False, indent=1) + "\n").encode("utf-8", "surrogatepass")


def unsealed(path: Path, *, newest: int, remedy: str = "") -> dict[str, Any]:
    """Reads a file of `sealed` and verifies it.

    Args:
      path: the file.
      newest: the highest ``format`` that can be read.
      remedy: what to do about a damaged or altered file, for the message.

    Returns:
      The configuration, its digest with it.

    Raises:
      OSError: if it cannot be read.
      ValueError: if it was altered, or is of another program or a newer version.

    Example:
      >>> with tempfile.TemporaryDirectory() as place:
      ...     path = Path(place) / "config.json"
      ...     _ = path.write_bytes(sealed({"library": "jaxsim", "format": 1, "dim": 2}))
      ...     unsealed(path, newest=1)["dim"]
      2
    """
    config = parsed(path.read_bytes(), str(path), remedy)
    ours = isinstance(config, dict) and config.get("library") == "jaxsim"
    checks.expect(ours, str(path), 'a configuration with "library": "jaxsim"', "another program's")
    version = config.get("format")
    known = isinstance(version, int) and not isinstance(version, bool) and 1 <= version <= newest
    checks.expect(known, f"{path}: format", f"1 to {newest} (install a newer jaxsim-text for newer ones)", version)
    # Folders of earlier versions have no digest of their configuration.
    try:
        digest = digest_of(config)
    except RecursionError:  # a little less deep than what cannot be read
        digest = None
    whole = digest is not None and config.get("digest", digest) == digest
    checks.expect(whole, str(path), "the configuration that was saved", f"an altered one{remedy}")
    return config


def parsed(data: bytes, where: str, remedy: str = "") -> Any:
    """What a file of JSON says.

    Args:
      data: all of it.
      where: the file, for messages.
      remedy: what to do about a damaged one, for messages.

    Returns:
      The value.

    Raises:
      ValueError: for what is no JSON or no UTF-8, or has thousands of brackets in each other or of digits in a number.

    Example:
      >>> parsed(b'{"k": 2}', "plan.json")
      {'k': 2}
      >>> parsed(b"[" * 100_000, "plan.json")
      Traceback (most recent call last):
      ...
      ValueError: plan.json: expected JSON, got lists and objects too deep in each other
    """
    try:
        return json.loads(data)
    except RecursionError:
        raise ValueError(f"{where}: expected JSON, got lists and objects too deep in each other{remedy}") from None
    except ValueError as error:
        raise ValueError(f"{where}: expected JSON, got {error if data else 'an empty file'}{remedy}") from error


def file_digest(path: Path) -> str:
    """SHA-256 of a file.

    Args:
      path: the file.

    Returns:
      64 hexadecimal digits.
    """
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(config: Mapping[str, Any]) -> str:
    """Of a configuration, without the digest in it."""
    rest = {name: value for name, value in config.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
