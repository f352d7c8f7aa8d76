"""Labelled pairs of documents and pairs of pairs, as indices into the rows of two collections."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks


class LabelledPairs(NamedTuple):
    """Pairs with a similarity each.

    Attributes:
      left: ``[n]`` int32 rows of the left collection.
      right: ``[n]`` int32 rows of the right collection.
      labels: ``[n]`` floating, the true similarity (1 similar, 0 not, or anything between).
    """

    left: jax.Array
    right: jax.Array
    labels: jax.Array


def labelled(left, right, labels, *, num_left: int, num_right: int) -> LabelledPairs:
    """Checks row numbers and labels once and puts them on the device.

    Args:
      left: ``[n]`` integers in ``[0, num_left)``.
      right: ``[n]`` integers in ``[0, num_right)``.
      labels: ``[n]`` finite numbers, kept in JAX's type of them: float32 tells integers apart up to 16,777,216.
      num_left: documents of the left collection.
      num_right: documents of the right collection.

    Returns:
      `LabelledPairs`.

    Raises:
      ValueError: for rows out of range, labels that are not finite, lengths that differ, or the same pair twice.

    Example:
      >>> labelled([0], [1], [1.0], num_left=2, num_right=2).labels.tolist()
      [1.0]
    """
    checks.expect(len(np.atleast_1d(np.asarray(labels))) >= 1, "pairs", "at least one pair", "none")
    rows = []
    for name, array, size in (("left", left, num_left), ("right", right, num_right)):
        array = np.asarray(array)
        checks.expect(array.ndim == 1 and np.issubdtype(array.dtype, np.integer), f"pairs.{name}",
                      "one axis of integers", f"{array.dtype} of shape {array.shape}")
        if array.size and (array.min() < 0 or array.max() >= size):
            worst = array.min() if array.min() < 0 else array.max()
            raise ValueError(f"pairs.{name}: expected indices in [0, {size}) (rows of terms), got {worst}")
        rows.append(array)
    labels = np.asarray(labels, np.float64)
    checks.expect(rows[0].shape == rows[1].shape == labels.shape, "pairs", "as many left rows as right rows and labels",
                  f"{rows[0].shape}, {rows[1].shape} and {labels.shape}")
    checks.expect(bool(np.isfinite(labels).all()), "pairs.labels", "finite numbers", "NaN or infinity")
    distinct = np.unique(np.stack(rows, axis=1), axis=0).shape[0]
    checks.expect(distinct == labels.size, "pairs", "every pair once", f"{labels.size - distinct} duplicates")
    return LabelledPairs(*(jnp.asarray(row, jnp.int32) for row in rows), jnp.asarray(labels, jnp.result_type(float)))


def mates_and_negatives(num_pairs: int, *, negatives: int, key: jax.Array) -> LabelledPairs:
    """Every document with its mate (label 1) and with other documents drawn at random (label 0).

    Args:
      num_pairs: ``m``; row i of one collection is the mate of row i of the other.
      negatives: distinct wrong partners of each left document, at most ``m - 1``.
      key: PRNG key of the draw.

    Returns:
      `LabelledPairs` of ``m * (1 + negatives)`` pairs.

    Raises:
      ValueError: if ``negatives`` is out of range.

    Example:
      >>> mates_and_negatives(3, negatives=1, key=jax.random.key(0)).labels.tolist()
      [1.0, 1.0, 1.0, 0.0, 0.0, 0.0]
    """
    checks.random_key(key)
    checks.expect(num_pairs >= 1, "num_pairs", "at least 1", num_pairs)
    checks.expect(0 <= negatives <= num_pairs - 1, "negatives", f"between 0 and {num_pairs - 1}", negatives)
    left = np.arange(num_pairs)
    # Distinct shifts are distinct partners; the same shifts for all documents, of randomly renamed documents.
    renamed = np.asarray(jax.random.permutation(jax.random.fold_in(key, 0), num_pairs))
    shifts = 1 + np.asarray(jax.random.permutation(jax.random.fold_in(key, 1), num_pairs - 1))[:negatives]
    place = np.argsort(renamed)
    wrong = [renamed[(place + shift) % num_pairs] for shift in shifts]
    rows = np.concatenate([np.tile(left, 1 + negatives)])
    labels = np.concatenate([np.ones(num_pairs), np.zeros(num_pairs * negatives)])
    return labelled(rows, np.concatenate([left, *wrong]), labels, num_left=num_pairs, num_right=num_pairs)


class Preferences(NamedTuple):
    """Pairs of pairs: the first of each should be more similar than the second (001 §3.2.2, 004 §3.2).

    Attributes:
      better_left: ``[n]`` int32 rows of the left collection, of the pair that should score higher.
      better_right: ``[n]`` int32 rows of the right collection.
      worse_left: ``[n]`` int32 rows of the left collection, of the pair that should score lower.
      worse_right: ``[n]`` int32 rows of the right collection.
    """

    better_left: jax.Array
    better_right: jax.Array
    worse_left: jax.Array
    worse_right: jax.Array


def preferences(better, worse, *, num_left: int, num_right: int) -> Preferences:
    """Checks row numbers once and puts them on the device.

    Args:
      better: ``(left, right)``, each ``[n]`` integers: the pairs that should score higher.
      worse: ``(left, right)``, each ``[n]`` integers: preference by preference, those that should score lower.
      num_left: documents of the left collection.
      num_right: documents of the right collection.

    Returns:
      `Preferences`; the same one may occur twice.

    Raises:
      ValueError: for rows out of range, lengths that differ, or no preference at all.

    Example:
      >>> preferences(([0], [1]), ([0], [2]), num_left=3, num_right=3).worse_right.tolist()
      [2]
    """
    rows = []
    for name, array, size in zip(Preferences._fields, (*better, *worse), (num_left, num_right) * 2, strict=True):
        array = np.asarray(array)
        checks.expect(array.ndim == 1 and np.issubdtype(array.dtype, np.integer), f"pairs.{name}",
                      "one axis of integers", f"{array.dtype} of shape {array.shape}")
        outside = array[(array < 0) | (array >= size)]
        checks.expect(not outside.size, f"pairs.{name}", f"indices in [0, {size}) (rows of terms)",
                      outside[:1].tolist())
        rows.append(array)
    sizes = [row.size for row in rows]
    checks.expect(len(set(sizes)) == 1, "pairs", "four equally long lists of rows", sizes)
    checks.expect(sizes[0] >= 1, "pairs", "at least one preference", "none")
    return Preferences(*(jnp.asarray(row, jnp.int32) for row in rows))


def balanced(
    num_docs: int, similar: Callable[[np.ndarray, np.ndarray], np.ndarray], *, num: int, key: jax.Array
) -> LabelledPairs:
    """Pairs of one collection drawn at random, as many similar ones as others, every pair at most once.

    Args:
      num_docs: documents of the collection.
      similar: function of two ``[n]`` arrays of rows that says which pairs are similar.
      num: pairs of each kind.
      key: PRNG key of the draw.

    Returns:
      `LabelledPairs` of ``2 num`` pairs (left row < right row): the similar ones, label 1, then the others, label 0.

    Raises:
      ValueError: for fewer than two documents, or if there seem to be fewer pairs of a kind than wanted.

    Example:
      >>> chosen = balanced(9, lambda i, j: i % 2 == j % 2, num=4, key=jax.random.key(0))
      >>> ((chosen.left - chosen.right) % 2).tolist()
      [0, 0, 0, 0, 1, 1, 1, 1]
    """
    checks.random_key(key)
    checks.expect(num_docs >= 2, "num_docs", "at least 2", num_docs)
    checks.positive_int(num, "num")
    codes = {True: np.zeros(0, np.int64), False: np.zeros(0, np.int64)}
    for attempt in range(200):
        left, right = np.asarray(jax.random.randint(jax.random.fold_in(key, attempt), (2, 4 * num), 0, num_docs))
        low, high = np.minimum(left, right).astype(np.int64), np.maximum(left, right)
        low, high = low[low < high], high[low < high]
        alike = np.asarray(similar(low, high), bool)
        for kind in codes:
            result = np.concatenate([codes[kind], low[alike == kind] * num_docs + high[alike == kind]])
            codes[kind] = result[np.sort(np.unique(result, return_index=True)[1])][:num]
        if min(len(one) for one in codes.values()) == num:
            break
    for kind, name in ((True, "similar"), (False, "dissimilar")):
        checks.expect(len(codes[kind]) == num, "num", f"at most the number of {name} pairs ({len(codes[kind])} found)",
                      num)
    rows = np.concatenate([codes[True], codes[False]])
    labels = np.repeat([1.0, 0.0], num)
    return labelled(rows // num_docs, rows % num_docs, labels, num_left=num_docs, num_right=num_docs)


def preferences_of(pairs: LabelledPairs) -> Preferences:
    """Sets the i-th similar pair above the i-th dissimilar one.

    Args:
      pairs: labels 1 and 0, equally many of each (such as `balanced` draws).

    Returns:
      `Preferences`, half as many as there are pairs.

    Raises:
      ValueError: for other labels, or unequal numbers of them.

    Example:
      >>> drawn = labelled([0, 0], [1, 2], [0.0, 1.0], num_left=3, num_right=3)
      >>> preferences_of(drawn).better_right.tolist()
      [2]
    """
    labels = np.asarray(pairs.labels)
    better, worse = np.flatnonzero(labels == 1), np.flatnonzero(labels == 0)
    checks.expect(better.size + worse.size == labels.size, "pairs.labels", "0 or 1", "others")
    checks.expect(better.size == worse.size, "pairs", "as many similar as dissimilar ones",
                  f"{better.size} and {worse.size}")
    return Preferences(pairs.left[better], pairs.right[better], pairs.left[worse], pairs.right[worse])
