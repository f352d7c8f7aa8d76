"""The method ``s2net-mse`` from graded pairs of texts (000 §3.2): what a grade means, and what training stops by.

A grade says how alike the two texts of a pair are, the larger the more. The projection is learned so that the cosine of
a pair is its grade on a scale from 0 to 1. Grades that all lie there are taken as they are; of others the lowest of the
pairs becomes 0 and the highest 1, evenly between.

The start is random. A random projection keeps cosines roughly, so it begins near bare term weights, and on four graded
collections (STS benchmark, SICK, product search, patent phrases) held-out pairs ended higher from it than from LSA or
OPCA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np

from jaxsim import checks, sparse
from jaxsim.data.labelled_pairs import labelled
from jaxsim.evaluate import mates, metrics
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import s2net, s2net_mse
from jaxsim.sparse import Terms
from jaxsim.train.problem import Learned, Problem

_ITERATIONS, _ITERATIONS_ALONE, _PATIENCE = 100, 5, 30  # with held-out pairs, without


def checked(grades, number: int, argument: str = "grades") -> np.ndarray:
    """Grades that something can be learned from.

    Args:
      grades: one number a pair, or None.
      number: of pairs.
      argument: their name, for the message.

    Returns:
      ``[number]`` float64.

    Raises:
      ValueError: for no grades, another number of them, what is no finite number, or equal grades alone.

    Example:
      >>> checked([0, 2.5], 2).tolist()
      [0.0, 2.5]
    """
    checks.expect(grades is not None, argument, "a grade for every pair (--label COLUMN), for s2net-mse", "none")
    found = checks.real(grades, argument)
    checks.expect(found.shape == (number,), argument, f"{checks.counted(number, 'number')}, one a pair", found.shape)
    checks.expect(bool(np.isfinite(found).all()), argument, "finite numbers", "infinity")
    checks.expect(bool(np.ptp(found) > 0), argument, "at least two different grades", f"{found[0]:g} for every pair")
    return found


def averaged(left: Sequence, right: Sequence, grades: np.ndarray) -> np.ndarray:
    """Grades of which equal pairs have the mean of theirs.

    Args:
      left: ``n`` left documents, hashable.
      right: ``n`` right documents.
      grades: ``[n]``.

    Returns:
      ``[n]`` float64.

    Example:
      >>> averaged(["a", "b", "a"], ["x", "x", "x"], np.array([0.0, 1.0, 3.0])).tolist()
      [1.5, 1.0, 1.5]
    """
    numbers: dict = {}
    number = np.array([numbers.setdefault(pair, len(numbers)) for pair in zip(left, right, strict=True)], np.int64)
    return (np.bincount(number, grades) / np.bincount(number))[number]


def scale(grades: np.ndarray) -> tuple[float, float]:
    """The grades that become a cosine of 0 and of 1.

    Args:
      grades: ``[n]``, not all equal.

    Returns:
      ``(lowest, highest)``; 0 and 1 where all grades lie between.

    Example:
      >>> scale(np.array([0.2, 0.9])), scale(np.array([1.0, 5.0]))
      ((0.0, 1.0), (1.0, 5.0))
    """
    low, high = float(grades.min()), float(grades.max())
    return (0.0, 1.0) if low >= 0 and high <= 1 else (low, high)


def validator(sides: tuple[Terms, Terms], grades: np.ndarray) -> Callable:
    """The validation score of early stopping: Spearman's correlation of cosines with held-out grades.

    Args:
      sides: held-out texts, left and right.
      grades: one a pair.

    Returns:
      Function of a `Projection`, or of a pair.
    """
    def score(params) -> float:
        left, right = (np.asarray(side.dense, np.float64) for side in mates.encode(params, sides))
        length = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
        cosines = np.divide(np.sum(left * right, axis=1), length, out=np.zeros(length.size), where=length > 0)
        return float(metrics.spearman(cosines, grades))

    return score


def fit(problem: Problem) -> Learned:
    """Learns a projection from graded pairs by L-BFGS, from a random start.

    Args:
      problem: training pairs with grades, held-out pairs with theirs, and settings.

    Returns:
      `Learned`, of a `Projection`.

    Raises:
      ValueError: if the training pairs have one grade alone, or a side of them has no words.
    """
    settings = problem.settings
    given = checked(problem.grades, problem.train[0].num_docs)
    (left, of_left), (right, of_right) = map(distinct_rows, problem.train)
    # Pairs that only differ in unknown words are one.
    given = averaged(of_left.tolist(), of_right.tolist(), given)
    _, first = np.unique(np.stack([of_left, of_right], axis=1), axis=0, return_index=True)
    sides = sparse.take(problem.train[0], left), sparse.take(problem.train[1], right)
    chosen = labelled(of_left[first], of_right[first], given[first], num_left=left.size, num_right=right.size)
    validate = None if problem.dev is None else validator(problem.dev, problem.dev_grades)
    start = s2net.random_init(sides[0].num_terms, problem.k, key=jax.random.key(settings.seed))
    start = jax.tree.map(lambda leaf: leaf.astype(sides[0].values.dtype), start)
    most = _ITERATIONS if validate else _ITERATIONS_ALONE  # with nothing to stop by, stop early
    patience = _PATIENCE if settings.patience is None else settings.patience
    return Learned(s2net_mse.fit(
        *sides, chosen, init=start, max_iter=most if settings.max_iter is None else settings.max_iter,
        validate=validate, patience=patience if validate else None, checkpoint=problem.checkpoint,
        progress=problem.progress,
    ))  # fmt: skip
