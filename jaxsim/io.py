"""Model folders on disk: safetensors, a vocabulary, a configuration, a model card.

A folder is written beside its place and renamed into it, so that a kill leaves the old model or the new one (in the
instant between two renames the old one has a hidden name beside its place, which `load` then tells). Every file's
digest, its own too, stands in ``config.json``, so that an altered or missing file is an error and not a worse model.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as bytes_from_tensors

from jaxsim import checks

FORMAT = 3
"""Newest version of the folder's layout: 2 of bilinear models, 3 of n-grams. Readers take it and older ones; what 1 can
hold is still written as 1, for older readers."""

_LITTER = (".DS_Store", "Thumbs.db", "desktop.ini")  # that file managers leave
CONFIG, TENSORS, VOCABULARY, CARD = "config.json", "model.safetensors", "vocabulary.json", "README.md"


def save(
    folder: str | os.PathLike,
    *,
    tensors: Mapping[str, np.ndarray],
    config: Mapping[str, Any],
    vocabulary: Sequence[str],
    card: str,
    layout: int = 1,
) -> Path:
    """Writes a model folder, replacing an older model of that name.

    Args:
      folder: where; its parents are made.
      tensors: name -> array.
      config: JSON-compatible settings; ``format``, ``library``, ``files`` and ``digest`` are added.
      vocabulary: terms in the order of the tensors' rows.
      card: Markdown for people.
      layout: the version of the folder's layout, the oldest that has room for it.

    Returns:
      The folder.

    Raises:
      ValueError: if the place is taken by something that is no model folder.
      OSError: if it cannot be written; what was there is as it was.

    Example:
      >>> with tempfile.TemporaryDirectory() as place:
      ...     where = save(Path(place) / "m", tensors={"a": np.ones(2)}, config={"dim": 2}, vocabulary=["x"], card="hi")
      ...     tensors, config, vocabulary = load(where)
      >>> tensors["a"].tolist(), config["dim"], vocabulary
      ([1.0, 1.0], 2, ['x'])
    """
    arrays = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    contents = {
        TENSORS: bytes_from_tensors(arrays),
        VOCABULARY: json.dumps(list(vocabulary), ensure_ascii=False, indent=0).encode("utf-8", "surrogatepass"),
        CARD: card.encode("utf-8", "surrogatepass"),
    }
    files = {name: hashlib.sha256(data).hexdigest() for name, data in contents.items() if name != CARD}
    contents[CONFIG] = sealed({"library": "jaxsim", "format": layout, **config, "files": files})
    return replace_folder(folder, contents, marker=CONFIG)


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
    place = folder.resolve()
    temporary = _beside(folder, marker, argument, what)
    old = temporary.with_suffix(".old")
    try:
        for name, data in contents.items():
            (temporary / name).parent.mkdir(parents=True, exist_ok=True)
            with open(temporary / name, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
        os.chmod(temporary, 0o755)
        try:
            if place.exists():
                os.rename(place, old)
            os.rename(temporary, place)
        except BaseException:  # Ctrl-C between the two as well
            if old.exists() and not place.exists():
                os.rename(old, place)
            raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
        if place.exists() and old.exists():
            os.rename(old, temporary)  # what has the name of an older one is whole, also if this is killed now
            shutil.rmtree(temporary, ignore_errors=True)
    return folder


def check_place(
    folder: str | os.PathLike, *, marker: str = CONFIG, argument: str = "out", what: str = "model"
) -> None:
    """Makes sure that a folder can be written later, before any work is done.

    Args:
      folder: where `save` or `replace_folder` is to write.
      marker: as for `replace_folder`.
      argument: as for `replace_folder`.
      what: as for `replace_folder`.

    Raises:
      ValueError: if the place is a file, or a folder with other things in it.
      OSError: if nothing can be written there.
    """
    place = _free(Path(folder), marker, argument, what)
    parent = next(one for one in place.parents if one.exists())  # others are made when there is something to write
    Path(tempfile.mkdtemp(dir=parent, prefix=f".{place.name}.", suffix=".part")).rmdir()


def _beside(folder: Path, marker: str, argument: str, what: str) -> Path:
    """A new temporary folder beside ``folder``, whose place must be free."""
    place = _free(folder, marker, argument, what)
    place.parent.mkdir(parents=True, exist_ok=True)
    return Path(tempfile.mkdtemp(dir=place.parent, prefix=f".{place.name}.", suffix=".part"))


def _free(folder: Path, marker: str, argument: str, what: str) -> Path:
    """Where ``folder`` really is; nothing may be there but an older one of its kind."""
    told = _told(folder / marker)
    free = not folder.exists() or (folder.is_dir() and (told is not None or not any(folder.iterdir())))
    checks.expect(free, argument, f"a new folder, or one that holds an older {what} of ours ({marker})", folder)
    others = _others(folder, marker, told) if told is not None else []
    checks.expect(not others, argument, f"nothing in {folder} but the older {what} (it would be lost)",
                  ", ".join(others[:3]) + ", …" * (len(others) > 3))  # fmt: skip
    place = folder.resolve()
    here = Path.cwd()
    checks.expect(place != here and place not in here.parents, argument,
                  "a folder other than the working one (it would be another after that)", folder)  # fmt: skip
    file = next((one for one in place.parents if one.is_file()), None)
    checks.expect(file is None, str(folder), "a place in a folder", f"one in a file ({file})")
    return place


def _told(path: Path) -> dict[str, Any] | None:
    """What a marker says, if this library wrote it; other tools have a config.json too."""
    try:
        told = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return None
    return told if isinstance(told, dict) and told.get("library") == "jaxsim" else None


def _others(folder: Path, marker: str, told: Mapping[str, Any]) -> list[str]:
    """Files in a folder of ours that somebody else put there."""
    listed = told.get("files")
    ours = {marker, TENSORS, VOCABULARY, CARD, *_LITTER, *(listed if isinstance(listed, list | dict) else ())}
    found = (path for path in sorted(folder.rglob("*")) if path.is_symlink() or not path.is_dir())
    return [name for path in found if (name := path.relative_to(folder).as_posix()) not in ours]


def load(folder: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any], list[str]]:
    """Reads a model folder and verifies its files.

    Args:
      folder: as `save` wrote it.

    Returns:
      ``(tensors, config, vocabulary)``.

    Raises:
      FileNotFoundError: if the folder or a file of it is missing.
      ValueError: if a file was altered, or the folder is of another program or of a newer version.
    """
    folder = _model_folder(folder)
    config = _config(folder)
    contents = {}
    for name, digest in config["files"].items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected a file of the model, got none")
        contents[name] = path.read_bytes()
        got = hashlib.sha256(contents[name]).hexdigest()
        checks.expect(got == digest, str(path), f"the file that was saved (SHA-256 {digest[:12]})", f"{got[:12]}")
    try:
        return tensors_from_bytes(contents[TENSORS]), config, json.loads(contents[VOCABULARY])
    except (SafetensorError, ValueError, KeyError) as error:
        raise ValueError(f"{folder}: expected the tensors and vocabulary of a model, got {error}") from error


def _model_folder(folder: str | os.PathLike) -> Path:
    folder = Path(folder)
    if not folder.is_dir():
        old = next(iter(sorted(folder.absolute().parent.glob(f".{folder.name}.*.old"))), None)
        got = "a file" if folder.exists() else "nothing" if old is None else f"nothing; an older model is at {old}"
        raise FileNotFoundError(f"{folder}: expected a model folder, got {got}")
    return folder


def _config(folder: Path) -> dict[str, Any]:
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: expected a model folder, got one without {CONFIG}")
    config = unsealed(path, newest=FORMAT)
    files = config.get("files")
    listed = isinstance(files, dict) and {TENSORS, VOCABULARY} <= set(files)
    listed = listed and all(Path(name).name == name for name in files)
    checks.expect(listed, f"{path}: files", f"digests of {TENSORS} and {VOCABULARY}", files)
    return config


def digest(folder: str | os.PathLike) -> str:
    """What tells a model from every other one: the digest of its configuration, which holds those of its files.

    Args:
      folder: as `save` wrote it.

    Returns:
      64 hexadecimal digits. The files themselves are not read; `load` compares them.

    Raises:
      FileNotFoundError: if there is no model.
      ValueError: as `load`, of the configuration.
    """
    return _digest(_config(_model_folder(folder)))


def sealed(config: Mapping[str, Any]) -> bytes:
    """A configuration as a JSON file that holds its own digest.

    Args:
      config: JSON-compatible, with ``library`` and ``format``.

    Returns:
      The file's bytes.
    """
    told = {**config, "digest": _digest(json.loads(json.dumps(config)))}
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
    try:
        data = path.read_bytes()
        config = json.loads(data)
    except ValueError as error:
        raise ValueError(f"{path}: expected JSON, got {error if data else 'an empty file'}{remedy}") from error
    ours = isinstance(config, dict) and config.get("library") == "jaxsim"
    checks.expect(ours, str(path), 'a configuration with "library": "jaxsim"', "another program's")
    version = config.get("format")
    known = isinstance(version, int) and 1 <= version <= newest
    checks.expect(known, f"{path}: format", f"1 to {newest} (install a newer jaxsim-text for newer ones)", version)
    # Folders of earlier versions have no digest of their configuration.
    whole = config.get("digest", _digest(config)) == _digest(config)
    checks.expect(whole, str(path), "the configuration that was saved", f"an altered one{remedy}")
    return config


def _digest(config: Mapping[str, Any]) -> str:
    """Of a configuration, without the digest in it."""
    rest = {name: value for name, value in config.items() if name != "digest"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()
