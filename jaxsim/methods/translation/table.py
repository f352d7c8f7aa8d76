"""Translation tables: applied to documents, read by people, kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from jaxsim import checks, io, sparse, text
from jaxsim.methods.translation.links import Links
from jaxsim.sparse import Terms, Vectors

SYMMETRIZE = ("none", "mean", "geometric")
MARKER, PACKED = "translation.json", "table.npz"
_REMEDY = "; make it again"
_MATRICES = ("right_given_left", "left_given_right")
_COUNTS = ("left_counts", "right_counts")
_ROUNDED = 1e-3  # of a probability, above 1


class Translation(NamedTuple):
    """Translation probabilities of both directions.

    Attributes:
      right_given_left: ``[left words, right words]`` CSR, a row sums to 1 (or is empty).
      left_given_right: ``[right words, left words]`` CSR, likewise.
      left: words of the left language.
      right: words of the right language.
      left_counts: ``[left words]`` how often each was the source of a word, as expected; rows times this are counts.
      right_counts: ``[right words]`` likewise.
    """

    right_given_left: sp.csr_matrix
    left_given_right: sp.csr_matrix
    left: tuple[str, ...]
    right: tuple[str, ...]
    left_counts: np.ndarray
    right_counts: np.ndarray

    def best(self, word: str, *, reverse: bool = False, k: int = 10) -> list[tuple[str, float]]:
        """The most probable translations of a word.

        Args:
          word: of the left language, or of the right one if ``reverse``.
          reverse: from right to left.
          k: how many at most.

        Returns:
          ``(word, probability)``, most probable first; nothing for an unknown word.
        """
        checks.positive_int(k, "k")
        matrix = self.left_given_right if reverse else self.right_given_left
        words, others = (self.right, self.left) if reverse else (self.left, self.right)
        place = {one: number for number, one in enumerate(words)}.get(word)
        if place is None:
            return []
        row = matrix[place]
        order = np.lexsort((row.indices, -row.data))[:k]
        return [(others[row.indices[i]], float(row.data[i])) for i in order]


def matrix(counts, links: Links) -> sp.csr_matrix:
    """Expected counts as a matrix, without the empty word.

    Args:
      counts: ``[links]``.
      links: of the direction.

    Returns:
      ``[source words, target words]`` CSR.
    """
    rows, counts = np.asarray(links.rows), np.asarray(counts)
    kept = (rows > 0) & (counts > 0)
    return sp.csr_matrix((counts[kept], (rows[kept] - 1, links.columns[kept])),
                         shape=(links.num_source, links.num_target))  # fmt: skip


def _normalized(counts: sp.csr_matrix, threshold: float) -> tuple[sp.csr_matrix, np.ndarray]:
    """Rows that sum to 1, without entries below a probability (the others sum to 1 again), and the sums of counts."""
    counts = sp.csr_matrix(counts, dtype=np.float64)
    first = None
    for least in (threshold, 0.0):
        total = np.asarray(counts.sum(axis=1)).ravel()
        first = total if first is None else first
        counts = sp.csr_matrix(sp.diags(1 / np.where(total > 0, total, 1)) @ counts)
        counts.data[counts.data < least] = 0
        counts.eliminate_zeros()
    counts.sort_indices()
    return counts, first


def from_counts(
    left_to_right: sp.csr_matrix, right_to_left: sp.csr_matrix, left: Sequence[str], right: Sequence[str],
    threshold: float = 0.0,
) -> Translation:
    """Tables of both directions, each from its own expected counts.

    Args:
      left_to_right: ``[left words, right words]`` counts of links where left words are the sources.
      right_to_left: ``[right words, left words]`` counts where right words are.
      left: the left words.
      right: the right words.
      threshold: probabilities below this are left out; the others sum to 1 again.

    Returns:
      `Translation`.

    Example:
      >>> one = sp.csr_matrix([[3.0, 1.0]])
      >>> from_counts(one, one.T.tocsr(), ["a"], ["b", "c"], 0.3).right_given_left.toarray().tolist()
      [[1.0, 0.0]]
    """
    (ahead, of_left), (back, of_right) = (_normalized(counts, threshold) for counts in (left_to_right, right_to_left))
    return Translation(ahead, back, tuple(left), tuple(right), of_left, of_right)


def symmetrized(params: Translation, way: str, threshold: float = 0.0) -> Translation:
    """The same table with the counts of both directions combined.

    Args:
      params: `Translation` with counts of its own in each direction.
      way: ``"none"``: as it is; ``"mean"`` or ``"geometric"``: the mean of the counts of both directions, by which a
        link that one direction alone uses counts for half, or for nothing.
      threshold: probabilities of the combination below this are left out, as for `from_counts`.

    Returns:
      `Translation`.

    Raises:
      ValueError: for another way.

    Example:
      >>> one = from_counts(sp.csr_matrix([[3.0, 1.0]]), sp.csr_matrix([[3.0], [0.0]]), ["a"], ["b", "c"])
      >>> [symmetrized(one, way).right_given_left.toarray().round(2).tolist() for way in ("mean", "geometric")]
      [[[0.86, 0.14]], [[1.0, 0.0]]]
    """
    checks.expect(way in SYMMETRIZE, "symmetrize", f"one of {', '.join(SYMMETRIZE)}", way)
    if way == "none":
        return params
    ahead = sp.diags(params.left_counts) @ params.right_given_left
    back = sp.diags(params.right_counts) @ params.left_given_right
    both = (ahead + back.T) / 2 if way == "mean" else ahead.tocsr().multiply(back.T.tocsr()).sqrt()
    return from_counts(both.tocsr(), both.T.tocsr(), params.left, params.right, threshold)


def between(params: Translation, source: Sequence[str], target: Sequence[str], *, reverse: bool = True,
            power: float = 1.0, keep_unknown: bool = True) -> sp.csr_matrix:
    """The table of the terms of documents.

    Args:
      params: `Translation`.
      source: terms of the documents, in the order of their columns.
      target: terms of the translated documents.
      reverse: from right to left; from left to right otherwise.
      power: of the probabilities; 1 in the paper. With 0.5 rarer translations count for more (rows then do not sum
        to 1).
      keep_unknown: whether a term that the table does not have is its own translation, as names and numbers are.

    Returns:
      ``[source, target]`` CSR.

    Raises:
      ValueError: for a power that is not positive.
    """
    checks.expect(0 < power < float("inf"), "power", "a positive number", power)
    table = params.left_given_right if reverse else params.right_given_left
    words, others = (params.right, params.left) if reverse else (params.left, params.right)
    place, into = ({term: number for number, term in enumerate(terms)} for terms in (words, target))
    rows = np.array([place.get(term, -1) for term in source], np.int64)
    columns = np.array([into.get(term, -1) for term in others], np.int64)
    taken = table[np.maximum(rows, 0)].tocoo()
    known = (rows >= 0) & (np.diff(table.indptr)[np.maximum(rows, 0)] > 0)
    kept = known[taken.row] & (columns[taken.col] >= 0)
    parts = [(taken.data[kept] ** power, taken.row[kept], columns[taken.col[kept]])]
    if keep_unknown:
        same = [(number, into[term]) for number, term in enumerate(source) if not known[number] and term in into]
        own = np.array(same, np.int64).reshape(-1, 2)
        parts.append((np.ones(len(own)), own[:, 0], own[:, 1]))
    data, row, column = (np.concatenate(part) for part in zip(*parts, strict=True))
    return sp.csr_matrix((data.astype(np.float32), (row, column)), shape=(len(source), len(target)))


def translate(documents: sp.csr_matrix, table: sp.csr_matrix) -> sp.csr_matrix:
    """Documents in the terms of another language: their weights times the table (002 §3.2), on the host.

    Args:
      documents: ``[n, source]`` counts or weights.
      table: ``[source, target]`` from `between`.

    Returns:
      ``[n, target]`` CSR.

    Raises:
      ValueError: for documents over other terms.

    Example:
      >>> translate(sp.csr_matrix([[2.0]]), sp.csr_matrix([[0.75, 0.25]])).toarray().tolist()
      [[1.5, 0.5]]
    """
    checks.expect(documents.shape[1] == table.shape[0], "documents", f"{table.shape[0]} terms (rows of the table)",
                  documents.shape[1])
    return (documents @ table).tocsr()


def encode(params: sp.csr_matrix, documents: Terms, *, df: np.ndarray | None = None, num_docs: int = 0) -> Vectors:
    """Documents of the other language as sparse vectors.

    Args:
      params: the table, from `between`.
      documents: weighted documents (the paper's order: log2(tf + 1) · log2(n / df), then translated), or counts.
      df: ``[target]`` document frequencies: the documents are then counts, translated first and weighted after.
      num_docs: number of documents behind ``df``.

    Returns:
      `Vectors` with a sparse part.
    """
    translated = translate(sparse.to_scipy(documents), params)
    if df is not None:
        translated = text.log_tf_idf(translated, df, num_docs)
    return Vectors(sparse=sparse.from_scipy(translated))


def save(folder: str | os.PathLike, params: Translation, *, about: dict | None = None) -> None:
    """Writes a table to a folder, all of it or nothing.

    Args:
      folder: is made, or replaced if it holds a table.
      params: `Translation`.
      about: JSON-compatible notes: the method, the data.

    Raises:
      ValueError: if the folder holds something else.
      OSError: if it cannot be written.
    """
    arrays = {"left_counts": params.left_counts, "right_counts": params.right_counts}
    for name in _MATRICES:
        one = getattr(params, name)
        arrays |= {f"{name}.data": one.data.astype(np.float32), f"{name}.indices": one.indices.astype(np.int32),
                   f"{name}.indptr": one.indptr.astype(np.int64)}  # fmt: skip
    packed = BytesIO()
    np.savez_compressed(packed, **arrays)
    config = {"library": "jaxsim", "kind": "translation table", "format": 1,
              "files": {PACKED: hashlib.sha256(packed.getvalue()).hexdigest()},
              "left": params.left, "right": params.right, "about": about or {}}  # fmt: skip
    io.replace_folder(folder, {PACKED: packed.getvalue(), MARKER: io.sealed(config)}, marker=MARKER,
                      what="translation table")


def load(folder: str | os.PathLike) -> tuple[Translation, dict]:
    """Reads a table back.

    Args:
      folder: that `save` wrote.

    Returns:
      The table, and its notes.

    Raises:
      OSError: a file of it is missing, or cannot be read.
      ValueError: for a folder without a table, one that was altered, and for arrays that are not such as a table has,
        whoever wrote them; names it.
    """
    folder = Path(folder)
    path = folder / PACKED
    checks.expect((folder / MARKER).is_file(), str(folder), "the folder of a translation table",
                  "none; `jaxsim translate-table --out` makes one")
    config = io.unsealed(folder / MARKER, newest=1, remedy=_REMEDY)
    data, files = path.read_bytes(), config.get("files")
    told = files.get(PACKED) if isinstance(files, dict) else None  # tables of earlier versions have no digest
    whole = told is None or hashlib.sha256(data).hexdigest() == told
    checks.expect(whole, str(path), "the file that was saved", f"an altered one{_REMEDY}")
    try:
        with np.load(BytesIO(data)) as packed:
            arrays = {name: packed[name] for name in packed.files}
    except Exception as error:  # a damaged archive raises anything
        raise ValueError(f"{path}: expected a whole translation table, got a damaged one ({error}){_REMEDY}") from error
    with checks.within(str(folder)):
        return _checked(config, arrays), config["about"]


def _checked(config: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> Translation:
    """A table whose arrays a product can walk over."""
    words = [config.get(side) for side in ("left", "right")]
    for side, listed in zip(("left", "right"), words, strict=True):
        fits = isinstance(listed, list) and all(isinstance(word, str) for word in listed)
        checks.expect(fits, f"{MARKER}: {side}", "a list of words", checks.a_kind(listed))
    checks.kind(config.get("about"), f"{MARKER}: about", dict)
    names = {*_COUNTS, *(f"{name}.{part}" for name in _MATRICES for part in ("data", "indices", "indptr"))}
    checks.expect(set(arrays) == names, PACKED, ", ".join(sorted(names)), ", ".join(sorted(arrays)))
    shape = len(words[0]), len(words[1])
    matrices = [_matrix(arrays, name, size) for name, size in zip(_MATRICES, (shape, shape[::-1]), strict=True)]
    for name, number in zip(_COUNTS, shape, strict=True):
        checks.array(arrays[name], name, "float32 float64", (number,))
        checks.expect(not (arrays[name] < 0).any(), name, "counts of at least 0", "others")
    return Translation(*matrices, *map(tuple, words), *(arrays[name] for name in _COUNTS))


def _matrix(arrays: Mapping[str, np.ndarray], name: str, shape: tuple[int, int]) -> sp.csr_matrix:
    data, indices, indptr = (arrays[f"{name}.{part}"] for part in ("data", "indices", "indptr"))
    checks.array(indptr, f"{name}.indptr", "int64", (shape[0] + 1,))
    checks.array(indices, f"{name}.indices", "int32", (None,))
    checks.array(data, f"{name}.data", "float32", (len(indices),))
    checks.compressed(indptr, indices, shape[1], name)
    likely = not ((data < 0) | (data > 1 + _ROUNDED)).any()
    checks.expect(likely, f"{name}.data", "probabilities", "numbers below 0 or above 1")
    return sp.csr_matrix((data, indices, indptr), shape=shape)
