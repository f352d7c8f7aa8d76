"""Model folders on disk: safetensors, a vocabulary, a configuration, a model card.

A folder is replaced atomically (`jaxsim.io`). ``config.json`` holds the digest of every file, its own
included, so that an altered or missing file is an error and not a worse model.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as tensors_from_bytes
from safetensors.numpy import save as bytes_from_tensors

from jaxsim import checks, io
from jaxsim.io import CARD, CONFIG, TENSORS, VOCABULARY

FORMAT = 4
"""Newest version of the folder's layout: 2 of bilinear models, 3 of n-grams, 4 of weights of int8. Readers take it and
older ones; what 1 can hold is still written as 1, for older readers."""


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
      >>> import tempfile
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
    contents[CONFIG] = io.sealed({"library": "jaxsim", "format": layout, **config, "files": files})
    return io.replace_folder(folder, contents, marker=CONFIG)


def load(folder: str | os.PathLike) -> tuple[dict[str, np.ndarray], dict[str, Any], list[str]]:
    """Reads a model folder and verifies its files.

    Args:
      folder: as `save` wrote it.

    Returns:
      ``(tensors, config, vocabulary)``, whose values `parts.check_folder` looks at.

    Raises:
      FileNotFoundError: if the folder or a file of it is missing.
      ValueError: if a file was altered, or the folder is of another program or of a newer version.

    A model that another process replaces meanwhile is read anew, so that it is the older or the newer one.
    """
    return io.settled(Path(folder), lambda: _load(Path(folder)), CONFIG)


def _load(folder: Path) -> tuple[dict[str, np.ndarray], dict[str, Any], list[str]]:
    config = _config(folder)
    contents = {}
    for name, digest in config["files"].items():
        path = folder / name
        if not path.is_file():
            raise FileNotFoundError(f"{path}: expected a file of the model, got none")
        contents[name] = path.read_bytes()
        got = hashlib.sha256(contents[name]).hexdigest()
        checks.expect(got == digest, str(path), f"the file that was saved (SHA-256 {digest[:12]})", f"{got[:12]}")
    words = io.parsed(contents[VOCABULARY], str(folder / VOCABULARY))
    checks.expect(isinstance(words, list), str(folder / VOCABULARY), "a list of words", checks.a_kind(words))
    try:
        return tensors_from_bytes(contents[TENSORS]), config, words
    except (SafetensorError, ValueError, KeyError, TypeError) as error:  # also of types that NumPy lacks
        raise ValueError(f"{folder / TENSORS}: expected the tensors of a model, got {error}") from error


def _expect_folder(folder: Path) -> None:
    if not folder.is_dir():
        old = next(iter(io.older(folder)), None)
        got = "a file" if folder.exists() else "nothing" if old is None else f"nothing; an older model is at {old}"
        raise FileNotFoundError(f"{folder}: expected a model folder, got {got}")


def _config(folder: Path) -> dict[str, Any]:
    _expect_folder(folder)
    path = folder / CONFIG
    if not path.is_file():
        raise FileNotFoundError(f"{folder}: expected a model folder, got one without {CONFIG}")
    config = io.unsealed(path, newest=FORMAT)
    kind, files = config.get("kind"), config.get("files")  # models of texts or words have none
    checks.expect(kind is None, str(folder), "a model of texts", f"one of another kind ({kind})")
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
    return io.digest_of(io.settled(Path(folder), lambda: _config(Path(folder)), CONFIG))
