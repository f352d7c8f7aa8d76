"""Labelled pairs of documents, as indices into the rows of two collections."""

from __future__ import annotations

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
      labels: ``[n]`` finite numbers.
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
