"""Model folders on disk: safetensors, a vocabulary, a configuration, a model card.

A folder is replaced atomically (`jaxsim.io`). Every file's digest, its own too, stands in ``config.json``, so that an
altered or missing file is an error and not a worse model.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save as bytes_from_tensors

from jaxsim import checks
from jaxsim.io import CARD, CONFIG, TENSORS, VOCABULARY, digest_of, parsed, replace_folder, sealed, unsealed

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
    contents[CONFIG] = sealed({"library": "jaxsim", "format": layout, **config, "files": files})
    return replace_folder(folder, contents, marker=CONFIG)


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
        contents[name] = _whole(path)
        got = hashlib.sha256(contents[name]).hexdigest()
        checks.expect(got == digest, str(path), f"the file that was saved (SHA-256 {digest[:12]})", f"{got[:12]}")
    words = parsed(bytes(contents[VOCABULARY]), str(folder / VOCABULARY))
    fits = isinstance(words, list) and all(isinstance(word, str) for word in words)
    checks.expect(fits, str(folder / VOCABULARY), "a list of words", "another one")
    try:
        return _tensors(contents[TENSORS]), config, words
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError) as error:
        raise ValueError(f"{folder / TENSORS}: expected the tensors of a model, got {error}") from error


def _whole(path: Path) -> np.ndarray:
    """The bytes of a file, in memory that NumPy asked for: of large pages where the system has them."""
    size = path.stat().st_size
    found = np.empty(size + 1, np.uint8)
    with open(path, "rb", buffering=0) as file:
        read = 0
        while number := file.readinto(found[read:]):  # to the end of the file, wherever that is by now
            read += number
            if read > size:
                raise ValueError(f"{path}: expected a file that is not written to, got one that grows")
    return found[:read]


def _tensors(data: np.ndarray) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file, as views of its bytes: nothing is copied."""
    size = int.from_bytes(data[:8].tobytes(), "little")
    checks.expect(len(data) >= 8 and size <= len(data) - 8, "its header", "one inside the file", f"{size} bytes")
    header = json.loads(data[8 : 8 + size].tobytes())
    body, end, found = data[8 + size :], 0, {}
    parts = sorted(((told["data_offsets"], name, told) for name, told in header.items() if name != "__metadata__"),
                   key=lambda part: part[0])  # fmt: skip
    for (start, stop), name, told in parts:
        kind, shape = np.dtype(_TYPES[told["dtype"]]), told["shape"]
        whole = isinstance(shape, list) and all(type(length) is int and length >= 0 for length in shape)
        checks.expect(whole and type(start) is int and type(stop) is int, name, "a shape and a place", told)
        fits = start == end and stop - start == math.prod(shape) * kind.itemsize and stop <= len(body)
        checks.expect(fits, name, "bytes of its type and shape, one tensor after the other", told)
        found[name] = body[start:stop].view(kind).reshape(shape)
        end = stop
    checks.expect(end == len(body), "its tensors", f"{len(body)} bytes", end)
    return found


_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1", "U64": "<u8",
          "U32": "<u4", "U16": "<u2", "U8": "u1", "BOOL": "?"}  # fmt: skip
"""Types of safetensors that NumPy has."""


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
    return digest_of(_config(_model_folder(folder)))
