"""Documents that are encoded once and searched many times: a folder with their vectors, their words and their texts.

The folder holds ``index.json`` and ``index.safetensors``. It is written beside its place and renamed into it, as
models are. The first file has the digest of the model, a fingerprint of every array of the second, and its own digest,
so that an altered or truncated file is an error and not a worse search. Only arrays that are asked for are read.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as bytes_from_tensors

from jaxsim import checks, io, sparse
from jaxsim.model import hubs, parts
from jaxsim.model.bm25 import Bm25, weigh
from jaxsim.model.model import Model
from jaxsim.optim.checkpoints import fingerprint
from jaxsim.sparse import Vectors
from jaxsim.text import unit_rows

FORMAT = 4
"""Version of the folder's layout: 2 with BM25, 3 with or without hubs, 4 with or without identifiers. Readers take it
and older ones, whose BM25 they compute."""

MARKER, TENSORS = "index.json", "index.safetensors"
_REMEDY = "; delete its folder and make it anew, with --documents"
_TEXTS = ("lines", "ends", "texts")
_ROWS = ("values", "columns", "starts")
_MATRICES = ("sparse", "words", "bm25")
_MOST_TERMS = 100_000_000  # a row pointer is held for each
_STEMS = ("stems.ends", "stems.texts")
_IDS = ("ids.ends", "ids.texts")


class Texts(Sequence):
    """Texts in one array of bytes, decoded when they are asked for.

    Example:
      >>> texts = Texts(*packed(["one", "zwölf"]))
      >>> len(texts), texts[-1], texts[:1]
      (2, 'zwölf', ['one'])
    """

    def __init__(self, ends: np.ndarray, letters: np.ndarray):
        """Takes what `packed` makes.

        Args:
          ends: ``[n]`` int64, where in the letters each text ends.
          letters: ``[ends[-1]]`` uint8, the texts in UTF-8.
        """
        self._ends, self._letters = ends, letters

    def __len__(self) -> int:
        """Number of texts."""
        return len(self._ends)

    def __getitem__(self, key):
        """One text, or a list of those of a slice."""
        result = range(len(self))[key]
        if isinstance(result, range):
            return [self[i] for i in result]
        start = int(self._ends[result - 1]) if result else 0
        return self._letters[start : int(self._ends[result])].tobytes().decode("utf-8", "surrogatepass")


def packed(texts: Iterable[str]) -> tuple[np.ndarray, np.ndarray]:
    """Texts as arrays.

    Args:
      texts: ``n`` strings.

    Returns:
      ``([n] int64, [bytes] uint8)``: where each text ends, and all of them in UTF-8.

    Example:
      >>> [array.tolist() for array in packed(["a", "", "é"])]
      [[1, 1, 3], [97, 195, 169]]
    """
    parts = [text.encode("utf-8", "surrogatepass") for text in texts]
    ends = np.cumsum([len(part) for part in parts], dtype=np.int64)
    return ends, np.frombuffer(b"".join(parts), np.uint8)


@dataclass(frozen=True, eq=False)
class Index:
    """Documents ready to be searched.

    Attributes:
      texts: ``n`` strings.
      lines: ``[n]`` int64, the line of each in the file it comes from, from 1.
      vectors: `Vectors` of ``n`` documents, as the model makes them; None where they were left out.
      words: ``[n, num_terms]`` float32 CSR matrix of weighted terms beside the vectors; None where the vectors are
        nothing else, or they were left out.
      bm25: stems with their BM25 weights; None where they were left out.
      hubs: how near the documents are to queries in general, for CSLS; None for plain cosines.
      ids: ``n`` strings, what their file calls the documents; None where it calls them nothing.
    """

    texts: Sequence[str]
    lines: np.ndarray
    vectors: Vectors | None
    words: sp.csr_matrix | None
    bm25: Bm25 | None = None
    hubs: hubs.Hubs | None = None
    ids: Sequence[str] | None = None

    __repr__ = checks.brief

    def mixed(self, weight: float) -> Vectors:
        """What a search with this weight of the words compares queries with: `mix` of the parts it needs.

        Args:
          weight: in [0, 1].

        Returns:
          `Vectors` of ``n`` documents.
        """
        return mix(self.vectors, self.words if weight > 0 else None, weight)


def mix(vectors: Vectors | None, words: sp.csr_matrix | None, weight: float) -> Vectors:
    """Vectors of a model, its bare terms, or both in one.

    Args:
      vectors: of ``n`` documents, dense where there are words; not looked at if the weight is 1.
      words: ``[n, num_terms]`` weighted terms; None for the vectors as they are.
      weight: of the words, in [0, 1].

    Returns:
      `Vectors`; with both parts, their inner product is the mean of the two cosines with these weights.

    Raises:
      ValueError: for a weight between 0 and 1 and vectors that hold words already.

    Example:
      >>> import jax.numpy as jnp
      >>> both = mix(Vectors(jnp.array([[3.0, 4.0]])), sp.csr_matrix([[2.0]]), 0.36)
      >>> [round(x, 3) for x in both.dense[0].tolist()], round(float(both.sparse.values[0]), 3)
      ([0.48, 0.64], 0.6)
    """
    checks.expect(0 <= weight <= 1, "weight", "a number in [0, 1]", weight)
    if words is None:
        return vectors
    rows = unit_rows(words)
    if weight == 1:
        return Vectors(sparse=sparse.from_scipy(rows))
    bare = vectors.sparse is None
    checks.expect(bare, "weight", "0 or 1, for a model that has words beside its projection", weight)
    dense = parts.unit_dense(np.asarray(vectors.dense))
    return Vectors(jax.device_put(dense * np.asarray((1 - weight) ** 0.5, dense.dtype)),
                   sparse.from_scipy(rows * weight**0.5))  # fmt: skip


def encode(
    model: Model, texts: Sequence[str], *, side: str = "document", lines=None, weights: Sequence[float] = (0, 1),
    bm25: bool = False, csls: Sequence[str] | None = None, power: float | None = None, ids: Sequence[str] | None = None,
) -> Index:
    """Encodes documents, or queries.

    Args:
      model: the model.
      texts: ``n`` strings.
      side: ``"query"`` or ``"document"``.
      lines: ``[n]`` whole numbers, 1 to n unless given.
      weights: those that `Index.mixed` will be called with; parts that none of them needs are left out.
      bm25: whether to weigh the stems of the documents, for `ranker`.
      csls: texts like the queries, by which hubs among the documents are found (`hubs`); none unless given.
      power: of the model's agreement that searches with these hubs take; `Model.search_power` unless given.
      ids: ``n`` identifiers of the documents, if they have some; passages of one document may have the same.

    Returns:
      `Index`.

    Raises:
      ValueError: for another side, texts that are not strings, lines or identifiers of another number, or hubs of a
        model without a cosine.

    Example:
      >>> from jaxsim import text
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> encode(model, ["cat", "a dog"]).mixed(0.5).sparse.num_docs
      2
    """
    lines = np.arange(1, len(texts) + 1) if lines is None else np.asarray(lines, np.int64)
    checks.expect(lines.shape == (len(texts),), "lines", f"{len(texts)} numbers, as texts", lines.shape)
    if ids is not None:
        checks.expect(not isinstance(ids, str), "ids", "a list of strings", "one string")
        ids = list(ids)
        others = [one for one in ids if not isinstance(one, str)]
        whole = len(ids) == len(texts) and not others
        checks.expect(whole, "ids", f"{checks.counted(len(texts), 'string')}, one a text", (others or [len(ids)])[0])
    learned = model.params is not None
    vectors = model.vectors(texts, side=side) if not learned or min(weights) < 1 else None
    words = model.term_vectors(texts, side=side) if learned and max(weights) > 0 else None
    near = None
    if csls is not None:
        dense = model.vectors(texts, side=side).dense if vectors is None else vectors.dense
        near = hubs.measure(model, dense, csls, power=model.search_power if power is None else power)
    weights = weigh(texts, language=model.languages[1]) if bm25 else None
    return Index(texts, lines, vectors, words, weights, near, ids)


def save(folder: str | os.PathLike, index: Index, *, model: str) -> Path:
    """Writes a folder, replacing an older index of that name.

    Args:
      folder: where; its parents are made.
      index: with all of its parts.
      model: digest of the model (`folders.digest`).

    Returns:
      The folder.

    Raises:
      ValueError: if the place is taken by something that is no index, or the index has no vectors.
      OSError: if it cannot be written; what was there is as it was.

    Example:
      >>> import tempfile
      >>> import jax.numpy as jnp
      >>> index = Index(["a", "b"], np.array([1, 2]), Vectors(jnp.array([[1.0], [2.0]], jnp.float32)), None)
      >>> with tempfile.TemporaryDirectory() as place:
      ...     folder = save(Path(place) / "index", index, model="")
      ...     list(load(folder).texts), load(folder).vectors.dense.tolist()
      (['a', 'b'], [[1.0], [2.0]])
    """
    checks.expect(index.vectors is not None, "index", "one with vectors (encode with a weight below 1, as by default)",
                  "one of words alone")  # fmt: skip
    arrays = _text_arrays(index.lines, index.texts)
    if index.ids is not None:
        arrays |= _packed(_IDS, index.ids)
    if index.vectors.dense is not None:
        arrays["dense"] = np.asarray(index.vectors.dense)
    bare = None if index.vectors.sparse is None else sparse.to_scipy(index.vectors.sparse)
    shapes = {}
    weights = None if index.bm25 is None else index.bm25.weights
    if index.bm25 is not None:
        arrays |= _packed(_STEMS, index.bm25.stems)
    for name, matrix in (("sparse", bare), ("words", index.words), ("bm25", weights)):
        if matrix is not None:
            shapes[name] = matrix.shape[1]
            parts = matrix.data, matrix.indices, matrix.indptr
            arrays |= {f"{name}.{part}": array for part, array in zip(_ROWS, parts, strict=True)}
    if index.hubs is not None:
        arrays["hubs"] = index.hubs.nearness
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    version = 3 if index.ids is None else FORMAT  # readers of 3 take what has no identifiers
    facts = {
        "library": "jaxsim", "format": version, "model": model, "documents": len(index.texts), "columns": shapes,
        "tensors": {name: fingerprint(array) for name, array in arrays.items()}, "files": [TENSORS],
    }  # fmt: skip
    if index.hubs is not None:
        facts["csls"] = {"power": index.hubs.power, "texts": index.hubs.texts}
    contents = {TENSORS: bytes_from_tensors(arrays), MARKER: io.sealed(facts)}
    return io.replace_folder(folder, contents, marker=MARKER, argument="index", what="index")


def described(folder: str | os.PathLike) -> dict[str, Any]:
    """What an index says of itself; its arrays are not read.

    Args:
      folder: as `save` wrote it.

    Returns:
      ``model`` (a digest), ``documents`` (their number), and what `load` and `holds` need.

    Raises:
      FileNotFoundError: if there is no index.
      ValueError: if ``index.json`` was altered, or is of another program or of a newer version.
    """
    return io.settled(Path(folder), lambda: _described(Path(folder)), MARKER)


def _described(folder: Path) -> dict[str, Any]:
    path = folder / MARKER
    if not path.is_file():
        old = next(iter(io.older(folder)), None)
        got = f"a folder without {MARKER}" if folder.is_dir() else "a file" if folder.exists() else "nothing"
        raise FileNotFoundError(f"{folder}: expected an index, got {got}{f'; an older one is at {old}' * bool(old)}")
    facts = io.unsealed(path, newest=FORMAT, remedy=_REMEDY)
    checks.whole(facts.get("documents"), f"{path}: documents", 0)
    checks.expect(isinstance(facts.get("model"), str), f"{path}: model", "a digest", checks.a_kind(facts.get("model")))
    columns, tensors = (facts.get(name) if isinstance(facts.get(name), dict) else {} for name in ("columns", "tensors"))
    for name, width in columns.items():
        checks.expect(name in _MATRICES, f"{path}: columns", ", ".join(_MATRICES), name)
        checks.whole(width, f"{path}: columns", 0)
    names = {*_TEXTS, *(f"{name}.{part}" for name in columns for part in _ROWS), *_STEMS * ("bm25" in columns)}
    if "csls" in facts:
        near = facts["csls"]
        sound = isinstance(near, dict) and isinstance(near.get("texts"), str) and "dense" in tensors
        checks.expect(sound, f"{path}: csls", "power and digest of texts, with dense vectors", checks.a_kind(near))
        power = near.get("power")
        sound = type(power) in (int, float) and 0 <= power <= sys.float_info.max
        checks.expect(sound, f"{path}: csls: power", "a number of at least 0", power)
        names.add("hubs")
    names |= set(_IDS) if set(_IDS) & set(tensors) else set()
    fits = {"dense"} & set(tensors) or "sparse" in columns
    checks.expect(fits and names == set(tensors) - {"dense"}, f"{path}: tensors",
                  f"dense or sparse, {', '.join(sorted(names))}", ", ".join(sorted(tensors)))
    return facts


def holds(told: dict[str, Any], texts: Sequence[str], lines) -> bool:
    """Whether an index is of these documents.

    Args:
      told: what `described` says.
      texts: ``n`` strings.
      lines: ``[n]`` whole numbers.

    Returns:
      True if texts and lines are those of the index, letter by letter and in the same order.
    """
    return _are(told, _text_arrays(lines, texts))


def named(told: dict[str, Any], ids: Sequence[str] | None = None) -> bool:
    """Whether the documents of an index have identifiers.

    Args:
      told: what `described` says.
      ids: ``n`` identifiers; any unless given.

    Returns:
      True if they have these.
    """
    return _IDS[0] in told["tensors"] if ids is None else _are(told, _packed(_IDS, ids))


def _are(told: dict[str, Any], arrays: dict[str, np.ndarray]) -> bool:
    return all(told["tensors"].get(name) == fingerprint(array) for name, array in arrays.items())


def load(
    folder: str | os.PathLike, *, weights: Sequence[float] = (0, 1), bm25: bool = False, num_terms: int | None = None,
    model: str | None = None
) -> Index:
    """Reads an index and verifies what it reads.

    Args:
      folder: as `save` wrote it.
      weights: those that `Index.mixed` will be called with; parts that none of them needs are not read.
      bm25: whether BM25 is needed.
      num_terms: of the model's vocabulary, which the index's must equal; None where it is not known.
      model: `jaxsim.model.folders.digest` of the model, which the index must be of; None where it is not known.

    Returns:
      `Index`, with the same vectors bit for bit.

    Raises:
      FileNotFoundError: if the folder or a file of it is missing.
      ValueError: if a file was altered or truncated, or is of another program, of a newer version or of another model;
        and if an array is not such as a search can walk over, whoever wrote it.

    An index that another process replaces meanwhile is read anew, so that it is the older or the newer one.
    """
    return io.settled(Path(folder), lambda: _load(Path(folder), weights, bm25, num_terms, model), MARKER)


def _load(folder: Path, weights: Sequence[float], bm25: bool, num_terms: int | None, model: str | None) -> Index:
    facts, path = _described(folder), folder / TENSORS
    checks.expect(model in (None, facts["model"]), f"{folder / MARKER}: model", f"the model {model}", facts["model"])
    for name, width in facts["columns"].items():
        known = num_terms is not None and name != "bm25"
        most = f"{num_terms:,} terms (as the model)" if known else f"at most {_MOST_TERMS:,} terms"
        checks.expect(width == num_terms if known else width <= _MOST_TERMS, f"{folder / MARKER}: columns", most,
                      f"{width:,}")  # fmt: skip
    unwanted = [] if min(weights) < 1 or "words" not in facts["columns"] else ["dense", "sparse"]
    unwanted += [] if max(weights) > 0 else ["words"]
    unwanted += [] if bm25 else ["bm25", "stems"]
    wanted = {name: value for name, value in facts["tensors"].items() if name.split(".")[0] not in unwanted}
    if not path.is_file():
        raise FileNotFoundError(f"{path}: expected a file of the index, got none{_REMEDY}")
    arrays: dict[str, np.ndarray] = {}
    try:
        with safe_open(path, framework="numpy") as file:
            for name in wanted:
                arrays[name] = file.get_tensor(name)
    except (SafetensorError, OSError, KeyError, TypeError, ValueError) as error:  # also of types that NumPy lacks
        raise _altered(path, error) from error
    for name, value in wanted.items():
        if fingerprint(arrays[name]) != value:
            raise _altered(path, name)
    number = facts["documents"]
    lines, texts = arrays["lines"], _strings(path, arrays, _TEXTS[1:], number)
    checks.array(lines, f"{path}: lines", "int64", (number,))
    dense = None
    if "dense" in arrays:
        checks.array(arrays["dense"], f"{path}: dense", "float32 float64", (number, None))
        dense = jax.device_put(arrays["dense"])
    bare, words, weights = (_matrix(path, arrays, name, facts) for name in _MATRICES)
    vectors = None
    if dense is not None or bare is not None:
        vectors = Vectors(dense, None if bare is None else sparse.from_scipy(bare))
    stems = None if weights is None else tuple(_strings(path, arrays, _STEMS, weights.shape[1]))
    once = stems is None or len(set(stems)) == len(stems)
    checks.expect(once, f"{path}: {_STEMS[1]}", "every stem once", "one more than once")
    near = None
    if "csls" in facts:
        checks.array(arrays["hubs"], f"{path}: hubs", "float32", (number,))
        near = hubs.Hubs(arrays["hubs"], float(facts["csls"]["power"]), facts["csls"]["texts"])
    ids = _strings(path, arrays, _IDS, number) if _IDS[0] in arrays else None
    return Index(texts, lines, vectors, words, None if stems is None else Bm25(stems, weights), near, ids)


def _altered(path: Path, reason: object) -> ValueError:
    return ValueError(f"{path}: expected the file that was saved, got an altered or truncated one ({reason}){_REMEDY}")


def _text_arrays(lines, texts: Sequence[str]) -> dict[str, np.ndarray]:
    return {_TEXTS[0]: np.asarray(lines, np.int64), **_packed(_TEXTS[1:], texts)}


def _packed(names: Sequence[str], texts: Iterable[str]) -> dict[str, np.ndarray]:
    return dict(zip(names, packed(texts), strict=True))


def _strings(path: Path, arrays: dict[str, np.ndarray], names: Sequence[str], number: int) -> Texts:
    """Texts, each of which can be decoded, from the arrays of these two names."""
    ends, letters = (arrays[name] for name in names)
    checks.array(ends, f"{path}: {names[0]}", "int64", (number,))
    checks.array(letters, f"{path}: {names[1]}", "uint8", (None,))
    starts = np.concatenate([np.zeros(1, np.int64), ends])
    rising = bool(np.all(starts[1:] >= starts[:-1])) and starts[-1] == len(letters)
    checks.expect(rising, f"{path}: {names[0]}", f"ends of texts that rise to {len(letters)}", "others")
    inside = starts[starts < len(letters)]
    whole = not np.any((letters[inside] & 0xC0) == 0x80)  # no text begins in the middle of a letter
    try:
        letters.tobytes().decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        whole = False
    checks.expect(whole, f"{path}: {names[1]}", "texts in UTF-8", "other bytes")
    return Texts(ends, letters)


def _matrix(path: Path, arrays: dict[str, np.ndarray], name: str, told: dict[str, Any]) -> sp.csr_matrix | None:
    """A matrix from its three arrays, where they were read; no product is given one that it could not walk over."""
    if f"{name}.{_ROWS[0]}" not in arrays:
        return None
    values, columns, starts = parts = tuple(arrays[f"{name}.{part}"] for part in _ROWS)
    where, shape = f"{path}: {name}", (told["documents"], told["columns"][name])
    checks.array(values, where, "float32 float64", (None,))
    checks.array(columns, where, "int32 int64", (len(values),))
    checks.array(starts, where, "int32 int64", (shape[0] + 1,))
    checks.compressed(starts, columns, shape[1], where)
    return sp.csr_matrix(parts, shape=shape)
