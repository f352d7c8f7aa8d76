"""Splits that near-duplicate documents never cross.

Two documents are near-duplicates when the Jaccard similarity of their word sets is at least a threshold. Candidates
come from MinHash signatures in bands (Broder 1997; Indyk and Motwani 1998), every candidate is checked exactly, and
pairs of documents that are connected on either side form one group.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components

from jaxsim import checks

_RECALL = 0.995  # of pairs exactly at the threshold, by the choice of bands
# Documents of one bucket are compared with this many neighbours in order of set size. The first pass, with few, joins
# what is plainly alike; the second skips all that is joined already.
_NEIGHBOURS = (8, 256)
_CHUNK = 200_000  # candidate pairs whose signatures are compared at a time
_WORDS = 10_000_000  # of candidate pairs whose words are compared at a time
_SLACK = 4.5  # standard errors below the threshold at which a signature's estimate still leads to the exact check


def _sorted_sets(token_lists: Sequence[Sequence[str]]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Word sets as CSR parts (indptr, sorted term ids) and one uint64 hash a term, the same on every machine."""
    index: dict[str, int] = {}
    parts = [
        np.sort(np.fromiter((index.setdefault(word, len(index)) for word in set(tokens)), np.int32))
        for tokens in token_lists
    ]
    indptr = np.concatenate([[0], np.cumsum([part.size for part in parts], dtype=np.int64)])
    indices = np.concatenate([np.zeros(0, np.int32), *parts])
    digests = (hashlib.blake2b(word.encode("utf-8", "surrogatepass"), digest_size=8).digest() for word in index)
    return indptr, indices, np.frombuffer(b"".join(digests), dtype="<u8").astype(np.uint64)


def _signatures(indptr: np.ndarray, hashes: np.ndarray, num_perm: int, seed: int) -> np.ndarray:
    """MinHash signatures `[num_docs, num_perm]` uint32 of non-empty sets; ``hashes`` is `[nnz]` uint64."""
    rng = np.random.default_rng(seed)
    factors = rng.integers(0, 2**63, num_perm, dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    shifts = rng.integers(0, 2**63, num_perm, dtype=np.uint64)
    signatures = np.empty((indptr.size - 1, num_perm), np.uint32)
    mixed = np.empty_like(hashes)
    for column, (factor, shift) in enumerate(zip(factors, shifts, strict=True)):
        np.multiply(hashes, factor, out=mixed)
        np.add(mixed, shift, out=mixed)
        signatures[:, column] = np.minimum.reduceat(mixed, indptr[:-1]) >> np.uint64(32)
    return signatures


def _rows_a_band(threshold: float, num_perm: int) -> int:
    """The most rows a band with which a pair at the threshold is still found with probability `_RECALL`."""
    for rows in range(num_perm, 1, -1):
        if 1 - (1 - threshold**rows) ** (num_perm // rows) >= _RECALL:
            return rows
    return 1


def _jaccard(sets: sp.csr_matrix, sizes: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Similarities `[n]` of pairs of rows, a part of them at a time, by the words of its documents."""
    both = np.cumsum(sizes[first] + sizes[second], dtype=np.int64)
    ends = np.searchsorted(both, np.arange(_WORDS, both[-1] if both.size else 0, _WORDS))
    shared = np.empty(first.size, np.int64)
    for part in np.split(np.arange(first.size), ends):
        shared[part] = np.asarray(sets[first[part]].multiply(sets[second[part]]).sum(axis=1)).ravel()
    return shared / (sizes[first] + sizes[second] - shared)


def _components(num_docs: int, edges: Sequence[np.ndarray]) -> np.ndarray:
    first, second = np.concatenate([np.zeros((2, 0), np.int64), *edges], axis=1)
    graph = sp.coo_matrix((np.ones(first.size, np.int8), (first, second)), shape=(num_docs, num_docs))
    return connected_components(graph, directed=False)[1]


def _bucket_pairs(keys: np.ndarray, sizes: np.ndarray, neighbours: int) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows with equal keys, at most ``neighbours`` apart in order of set size."""
    order = np.lexsort((sizes, keys))
    keys = keys[order]
    lefts, rights = [], []
    starts = np.arange(keys.size)
    for distance in range(1, min(neighbours, keys.size - 1) + 1):
        starts = starts[starts + distance < keys.size]
        starts = starts[keys[starts] == keys[starts + distance]]
        if not starts.size:
            break
        lefts.append(order[starts])
        rights.append(order[starts + distance])
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *lefts]), np.concatenate([empty, *rights])


def _edges(token_lists: Sequence[Sequence[str]], threshold: float, num_perm: int, seed: int) -> np.ndarray:
    """Edges `[2, n]` between rows whose word sets are near-duplicates; enough of them to connect every group."""
    indptr, indices, term_hashes = _sorted_sets(token_lists)
    sizes = np.diff(indptr)
    first_seen: dict[bytes, int] = {}
    same = np.fromiter(
        (
            first_seen.setdefault(indices[start:stop].tobytes(), row) if stop > start else row
            for row, (start, stop) in enumerate(zip(indptr[:-1], indptr[1:], strict=True))
        ),
        np.int64,
        sizes.size,
    )
    edges = [np.stack([same, np.arange(same.size)])]
    distinct = np.flatnonzero((same == np.arange(same.size)) & (sizes > 0))
    if distinct.size < 2:
        return edges[0]
    shape = (sizes.size, max(term_hashes.size, 1))
    sets = sp.csr_matrix((np.ones(indices.size, np.int32), indices, indptr), shape=shape)[distinct]
    sizes = sizes[distinct]
    signatures = _signatures(sets.indptr, term_hashes[sets.indices], num_perm, seed)
    rows = _rows_a_band(threshold, num_perm)
    enough = threshold - _SLACK * np.sqrt(threshold * (1 - threshold) / num_perm)
    mixing = np.random.default_rng(seed).integers(0, 2**64, rows, dtype=np.uint64, endpoint=False) | np.uint64(1)
    groups = np.arange(distinct.size)
    result: list[np.ndarray] = []
    apart = np.zeros(0, np.int64)  # pairs that were compared already: those just below the threshold meet in most bands
    for neighbours, band in itertools.product(_NEIGHBOURS, range(num_perm // rows)):
        # One number a row: rows that are alike by chance are told apart below, by their words.
        keys = signatures[:, band * rows : (band + 1) * rows].astype(np.uint64) @ mixing
        first, second = _bucket_pairs(keys, sizes, neighbours)
        open_ = groups[first] != groups[second]
        open_ &= np.minimum(sizes[first], sizes[second]) >= threshold * np.maximum(sizes[first], sizes[second]) - 1e-9
        first, second = first[open_], second[open_]
        for start in range(0, first.size, _CHUNK):
            one, two = first[start : start + _CHUNK], second[start : start + _CHUNK]
            likely = (signatures[one] == signatures[two]).mean(1) >= enough
            one, two = np.minimum(one, two)[likely], np.maximum(one, two)[likely]
            pairs = one * distinct.size + two
            new = ~np.isin(pairs, apart)
            one, two, pairs = one[new], two[new], pairs[new]
            good = _jaccard(sets, sizes, one, two) >= threshold - 1e-12
            result.append(np.stack([one[good], two[good]]))
            apart = np.concatenate([apart, pairs[~good]])
        groups = _components(distinct.size, result)
    return np.concatenate([edges[0], *(distinct[pair] for pair in result)], axis=1)


def group_near_duplicates(
    left_tokens: Sequence[Sequence[str]],
    right_tokens: Sequence[Sequence[str]] | None = None,
    *,
    threshold: float = 0.8,
    num_perm: int = 128,
    seed: int = 0,
) -> np.ndarray:
    """Group pairs of documents of which the left sides, or the right sides, are near-duplicates.

    Args:
      left_tokens: one list of words a pair.
      right_tokens: the same for the other side; None groups single documents.
      threshold: least Jaccard similarity of two word sets, in (0, 1].
      num_perm: length of the MinHash signatures; 128 finds 99.5 % or more of the pairs that are just at the threshold,
        if that is .041 or more.
      seed: of the hash functions; part of the definition of a split, so it has a fixed default.

    Returns:
      `[num_pairs]` int64 group numbers, counted from 0 in order of first appearance. Equal word sets always share a
      group, empty ones never do for being empty. In a bucket of more than 257 different sets a document is compared
      with its 256 neighbours in set size on each side.

    Raises:
      ValueError: sides of different lengths, a document given as one string, or a setting out of range.

    Example:
      >>> group_near_duplicates([["a", "b"], ["b", "a"], ["c"], []], [["x"], ["y"], ["z"], []]).tolist()
      [0, 0, 1, 2]
    """
    checks.expect(0 < threshold <= 1, "threshold", "a number in (0, 1]", threshold)
    checks.expect(num_perm >= 1, "num_perm", "a number of at least 1", num_perm)
    sides = [left_tokens] if right_tokens is None else [left_tokens, right_tokens]
    expected = f"{len(left_tokens)} documents, as on the left"
    checks.expect(len(sides[-1]) == len(left_tokens), "right_tokens", expected, len(sides[-1]))
    for name, side in zip(("left_tokens", "right_tokens"), sides, strict=False):
        lists = not any(isinstance(tokens, str) for tokens in side)
        checks.expect(lists, name, "a list of words for each document", "a string")
    return _numbered(_components(len(left_tokens), [_edges(side, threshold, num_perm, seed) for side in sides]))


def merge(*groups: np.ndarray) -> np.ndarray:
    """Joins the groups of several partitions: documents that share a group in any of them, directly or through others.

    Args:
      *groups: ``[num_pairs]`` group numbers each, such as those of the left and of the right documents.

    Returns:
      `[num_pairs]` int64 group numbers, counted from 0 in order of first appearance: with the groups of each side,
      those of `group_near_duplicates` of both.

    Raises:
      ValueError: for partitions of different lengths.

    Example:
      >>> merge(np.array([0, 0, 1, 2]), np.array([0, 1, 1, 2])).tolist()
      [0, 0, 0, 1]
    """
    edges = []
    for one in groups:
        one = np.asarray(one)
        shape = np.shape(groups[0])
        checks.expect(one.shape == shape, "groups", f"shape {shape}, as the first", one.shape)
        _, first, inverse = np.unique(one, return_index=True, return_inverse=True)
        edges.append(np.stack([first[inverse], np.arange(one.size)]))
    return _numbered(_components(np.size(groups[0]), edges))


def _numbered(labels: np.ndarray) -> np.ndarray:
    """The same partition, counted from 0 in order of first appearance."""
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    return np.argsort(np.argsort(first))[inverse].astype(np.int64)


def first_of_equals(
    left_tokens: Sequence[Sequence[str]], right_tokens: Sequence[Sequence[str]], ids: Sequence[str]
) -> np.ndarray:
    """Which pairs stay when exact duplicates (equal word lists on both sides) count once.

    Args:
      left_tokens: one list of words a pair.
      right_tokens: the same for the other side.
      ids: identifiers; of equal pairs the one with the smallest identifier stays, whatever the order of rows.

    Returns:
      `[num_pairs]` booleans.

    Example:
      >>> first_of_equals([["a"], ["a"]], [["x"], ["x"]], ["2", "1"]).tolist()
      [False, True]
    """
    best: dict[tuple[bytes, bytes], int] = {}
    for row, sides in enumerate(zip(left_tokens, right_tokens, strict=True)):
        key = tuple(hashlib.blake2b("\0".join(side).encode("utf-8", "surrogatepass")).digest() for side in sides)
        if key not in best or ids[row] < ids[best[key]]:
            best[key] = row
    keep = np.zeros(len(ids), bool)
    keep[list(best.values())] = True
    return keep


def split(
    groups: np.ndarray,
    ids: Sequence[str],
    *,
    shares: Sequence[float] | Mapping[str, float] = (0.6, 0.2, 0.2),
    salt: str = "",
    keep: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Deal whole groups to train, dev and test by a hash of each group's smallest identifier.

    Args:
      groups: `[n]` group numbers; ``np.arange(n)`` gives the naive split.
      ids: `[n]` identifiers.
      shares: of the groups, in this order: train, dev, test; or a mapping from names to shares. They sum to 1.
      salt: another salt deals anew.
      keep: `[n]` booleans; rows that are False (see `first_of_equals`) go nowhere.

    Returns:
      Name -> `[*]` int64 rows, ascending. Where a group goes depends on the hash of a name alone: not on the group's
      size, on other groups, or on the order of rows. A salt that is chosen by where it puts large groups undoes that.

    Raises:
      ValueError: lengths that differ, or shares that are negative or do not sum to 1.

    Example:
      >>> {name: rows.size for name, rows in split(np.arange(100), [str(i) for i in range(100)]).items()}
      {'train': 53, 'dev': 22, 'test': 25}
    """
    groups = np.asarray(groups)
    checks.expect(groups.shape == (len(ids),), "groups", f"one number an id, shape ({len(ids)},)", groups.shape)
    if not isinstance(shares, Mapping):
        three = "three shares, of train, dev and test, or a mapping from names to shares"
        checks.expect(len(shares) == 3, "shares", three, checks.counted(len(shares), "share"))
    named = dict(shares) if isinstance(shares, Mapping) else dict(zip(("train", "dev", "test"), shares, strict=True))
    fair = all(share >= 0 for share in named.values()) and abs(sum(named.values()) - 1) < 1e-9
    checks.expect(fair, "shares", "shares of at least 0 that sum to 1", tuple(named.values()))
    keep = np.ones(len(ids), bool) if keep is None else np.asarray(keep, bool)
    checks.expect(keep.shape == groups.shape, "keep", f"one boolean an id, shape {groups.shape}", keep.shape)
    smallest: dict[int, str] = {}
    for group, name in zip(groups.tolist(), ids, strict=True):
        smallest[group] = min(smallest.get(group, name), name)
    ends = np.cumsum(list(named.values()))
    ends[-1] = np.inf
    side = {}
    for group, name in smallest.items():
        digest = hashlib.blake2b(f"{salt}\0{name}".encode("utf-8", "surrogatepass"), digest_size=8)
        side[group] = int(np.searchsorted(ends, int.from_bytes(digest.digest(), "little") / 2**64, side="right"))
    sides = np.fromiter((side[group] for group in groups.tolist()), np.int64, len(ids))
    return {name: np.flatnonzero((sides == number) & keep) for number, name in enumerate(named)}
