"""Links between documents, as pairs of row numbers, and splits of them by link or by document."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence

import numpy as np

from jaxsim import checks


def checked(links, num_docs: int) -> np.ndarray:
    """Links as unique pairs of different documents.

    Args:
      links: ``[n, 2]`` integers, source and target rows.
      num_docs: number of documents.

    Returns:
      ``[m, 2]`` int64 in order of source and target. Self links are left out, and a link that occurs twice counts once:
      compare ``m`` with ``n``.

    Raises:
      ValueError: for another shape, numbers that are not whole, or rows that are no document.

    Example:
      >>> checked([[1, 0], [0, 0], [1, 0]], 2).tolist()
      [[1, 0]]
    """
    links = np.asarray(links)
    if links.size == 0:
        return np.zeros((0, 2), np.int64)
    checks.expect(links.ndim == 2 and links.shape[1] == 2, "links", "shape [n, 2]", links.shape)
    checks.expect(np.issubdtype(links.dtype, np.integer), "links", "integers", links.dtype)
    outside = links[(links < 0) | (links >= num_docs)]
    checks.expect(not outside.size, "links", f"rows in [0, {num_docs})", outside[:1].tolist())
    return np.unique(links[links[:, 0] != links[:, 1]].astype(np.int64), axis=0)


def split(
    links: np.ndarray, ids: Sequence[str], *, shares: Mapping[str, float], salt: str = ""
) -> dict[str, np.ndarray]:
    """Deals links out by a hash of the identifiers of source and target.

    Args:
      links: ``[n, 2]`` rows, as from `checked`.
      ids: one identifier a document.
      shares: name -> share of the links, which sum to 1.
      salt: another salt deals anew.

    Returns:
      Name -> ``[*, 2]`` links in the order given. Where a link goes depends on its two identifiers alone.

    Raises:
      ValueError: for links that are not `checked`, or shares that are negative or do not sum to 1.

    Example:
      >>> found = split(np.array([[0, 1], [1, 0], [1, 2]]), ["a", "b", "c"], shares={"train": 0.5, "test": 0.5})
      >>> {name: part.tolist() for name, part in found.items()}
      {'train': [[1, 2]], 'test': [[0, 1], [1, 0]]}
    """
    whole = checked(links, len(ids))
    checks.expect(len(whole) == len(links), "links", "different documents, each link once", f"{len(links)} links")
    fair = all(share >= 0 for share in shares.values()) and abs(sum(shares.values()) - 1) < 1e-9
    checks.expect(fair, "shares", "shares of at least 0 that sum to 1", tuple(shares.values()))
    ends = np.cumsum(list(shares.values()))
    ends[-1] = np.inf
    place = np.empty(len(links), np.float64)
    for number, (source, target) in enumerate(np.asarray(links).tolist()):
        key = f"{salt}\0{ids[source]}\0{ids[target]}".encode("utf-8", "surrogatepass")
        place[number] = int.from_bytes(hashlib.blake2b(key, digest_size=8).digest(), "little") / 2**64
    side = np.searchsorted(ends, place, side="right")
    return {name: np.asarray(links)[side == number] for number, name in enumerate(shares)}


def inside(links: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Links of which both ends are among some documents, numbered by place among these.

    Args:
      links: ``[n, 2]`` rows of documents.
      rows: ``[k]`` rows of the documents that stay, each once.

    Returns:
      ``[m, 2]`` int64 places in ``rows``, in the order given.

    Raises:
      ValueError: for a row given twice, or rows below 0.

    Example:
      >>> inside(np.array([[3, 1], [3, 0]]), np.array([1, 3])).tolist()
      [[1, 0]]
    """
    rows, links = np.asarray(rows, np.int64), np.asarray(links, np.int64).reshape(-1, 2)
    checks.expect(np.unique(rows).size == rows.size, "rows", "each document once", "one twice")
    checks.expect(not rows.size or rows.min() >= 0, "rows", "rows of at least 0", rows.min(initial=0))
    place = np.full(max(rows.max(initial=-1), links.max(initial=-1)) + 1, -1)
    place[rows] = np.arange(rows.size)
    result = place[links]
    return result[(result >= 0).all(axis=1)]
