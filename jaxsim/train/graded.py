"""Methods of graded pairs of texts: what a grade means, and what training stops by.

``s2net-mse`` fits the grades (000 §3.2), ``s2net-pref`` the order of the right texts of one left text (000 §4.2).

A grade says how alike the two texts of a pair are; larger means more alike. The projection is learned so that the
cosine of a pair is its grade on a scale from 0 to 1. If all grades are between 0 and 1 they are taken as they are;
otherwise they are scaled linearly, so that the lowest becomes 0 and the highest 1.

The start is random. A random projection keeps cosines roughly, so it begins near bare term weights, and on four graded
collections (STS benchmark, SICK, product search, patent phrases) the score of held-out pairs ended higher from it
than from LSA or OPCA.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, sparse
from jaxsim.data.labelled_pairs import labelled
from jaxsim.evaluate import mates, metrics
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import lsa, s2net, s2net_mse, s2net_pref
from jaxsim.sparse import Terms
from jaxsim.train.problem import Learned, Problem

_DEPTH = 5  # of the ranking that s2net-pref stops by
_CHANCE = 0.5  # the AUC of cosines that are all equal
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
      ValueError: for no grades, another number of them, what is no finite number, or grades that are all equal.

    Example:
      >>> checked([0, 2.5], 2).tolist()
      [0.0, 2.5]
    """
    checks.expect(grades is not None, argument, "a grade for every pair (--label COLUMN)", "none")
    result = checks.real(grades, argument)
    checks.expect(result.shape == (number,), argument, f"{checks.counted(number, 'number')}, one a pair", result.shape)
    checks.expect(bool(np.isfinite(result).all()), argument, "finite numbers", "infinity")
    checks.expect(bool(np.ptp(result) > 0), argument, "at least two different grades", f"{result[0]:g} for every pair")
    return result


def numbered(left: Sequence, right: Sequence) -> np.ndarray:
    """A number for every pair, the same for equal ones.

    Args:
      left: ``n`` left documents, hashable.
      right: ``n`` right documents.

    Returns:
      ``[n]`` int64, from 0 in the order in which they first occur.

    Example:
      >>> numbered(["a", "b", "a"], ["x", "x", "x"]).tolist()
      [0, 1, 0]
    """
    numbers: dict = {}
    return np.array([numbers.setdefault(pair, len(numbers)) for pair in zip(left, right, strict=True)], np.int64)


def averaged(left: Sequence, right: Sequence, grades: np.ndarray) -> np.ndarray:
    """Grades in which equal pairs share the mean of their grades.

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
    number = numbered(left, right)
    return (np.bincount(number, grades) / np.bincount(number))[number]


def orders(left: Sequence, grades: np.ndarray) -> bool:
    """Whether a left text has right ones of different grades, so that there is an order to measure.

    Args:
      left: ``n`` left documents, hashable; equal ones are one query.
      grades: ``[n]``.

    Returns:
      Whether one has.

    Example:
      >>> orders(["a", "b", "a"], np.array([1.0, 2.0, 1.0])), orders(["a", "a"], np.array([1.0, 2.0]))
      (False, True)
    """
    first: dict = {}
    return any(first.setdefault(one, grade) != grade for one, grade in zip(left, grades.tolist(), strict=True))


def belong(grades: np.ndarray, every: np.ndarray) -> np.ndarray:
    """Which graded pairs have texts that belong together: those above the lowest grade and, if any grade is, above 0.

    Args:
      grades: ``[n]`` of the pairs in question.
      every: ``[m]`` of the training, which has the lowest grade.

    Returns:
      ``[n]`` booleans.

    Example:
      >>> belong(np.array([0.0, 1.0, 5.0]), np.array([1.0, 5.0])).tolist()
      [False, False, True]
      >>> belong(np.array([-2.0, 0.0, 2.0]), np.array([-2.0, 2.0])).tolist()
      [False, False, True]
    """
    lowest = float(np.min(every))
    return grades > (max(lowest, 0.0) if np.max(every) > 0 else lowest)


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
        return float(metrics.spearman(_cosines(params, sides), grades))

    return score


def ranking_scores(cosines: np.ndarray, queries: np.ndarray, grades: np.ndarray) -> dict[str, float]:
    """How well candidates of queries are ordered.

    Args:
      cosines: ``[n]``, one a pair.
      queries: ``[n]`` number of the query of each pair.
      grades: ``[n]``.

    Returns:
      ``auc``: of two candidates of a query with different grades, the share in the right order (ties count half);
      ``ndcg@5``, with linear gain above the lowest grade, of equal scores the worse candidate first. Means over the
      queries that have different grades; 0 without.

    Example:
      >>> ranking_scores(np.array([0.9, 0.1, 0.5]), np.array([0, 0, 1]), np.array([1.0, 0.0, 1.0]))
      {'auc': 1.0, 'ndcg@5': 1.0}
    """
    order = np.lexsort((grades, queries))
    parts = np.split(order, np.flatnonzero(np.diff(queries[order])) + 1)
    rows = [(cosines[part], grades[part]) for part in parts if part.size and np.ptp(grades[part]) > 0]
    if not rows:
        return {"auc": 0.0, f"ndcg@{_DEPTH}": 0.0}
    ordered = []
    for scores, levels in rows:
        better = levels[:, None] > levels[None]
        right = (scores[:, None] > scores[None]) + 0.5 * (scores[:, None] == scores[None])
        ordered.append(right[better].mean())
    lowest = float(grades.min())
    gains = [metrics.ndcg(scores, levels - lowest, k=_DEPTH) for scores, levels in rows]
    return {"auc": float(np.mean(ordered)), f"ndcg@{_DEPTH}": float(np.mean(gains))}


def _cosines(params, sides: tuple[Terms, Terms]) -> np.ndarray:
    """The cosine of each pair."""
    left, right = (np.asarray(side.dense, np.float64) for side in mates.encode(params, sides))
    length = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    return np.divide(np.sum(left * right, axis=1), length, out=np.zeros(length.size), where=length > 0)


def preference_validator(sides: tuple[Terms, Terms], grades: np.ndarray) -> Callable:
    """The validation score of ``s2net-pref``: `ranking_scores`' AUC on held-out queries.

    Args:
      sides: held-out texts; equal left texts are one query.
      grades: one a pair.

    Returns:
      Function of a `Projection`, or of a pair.
    """
    queries = distinct_rows(sides[0])[1]
    return lambda params: ranking_scores(_cosines(params, sides), queries, grades)["auc"]


def fit_preferences(problem: Problem) -> Learned:
    """Learns a projection from graded candidates by L-BFGS, from LSA or a random start, as held-out pairs choose.

    Args:
      problem: training pairs with grades, held-out pairs with theirs, and settings; equal left texts are one query.

    Returns:
      `Learned`, of a `Projection`; its notes say how many queries had only one grade, and were
      skipped.

    Raises:
      ValueError: if no query has candidates of different grades, or a side has no words.
    """
    settings = problem.settings
    sides, chosen = _once(problem)
    preferences = s2net_pref.grouped(chosen, num_left=sides[0].num_docs, num_right=sides[1].num_docs)
    problem.say(f"{checks.counted(preferences.queries, 'query', 'queries')} with {preferences.number:,} preferences, "
                f"{preferences.skipped:,} passed over with one grade alone")  # fmt: skip
    validate = None if problem.dev is None else preference_validator(problem.dev, problem.dev_grades)
    start = s2net.random_init(sides[0].num_terms, problem.k, key=jax.random.key(settings.seed))
    start = jax.tree.map(lambda leaf: leaf.astype(sides[0].values.dtype), start)
    if validate is not None:  # LSA is better, but where it has no direction for one side: then it has no gradient
        both = sparse.from_scipy(sp.vstack([sparse.to_scipy(side) for side in sides], format="csr"))
        likely = lsa.fit(both, k=min(problem.k, both.num_docs, both.num_terms)).params
        start = likely if validate(likely) > max(_CHANCE, validate(start)) else start
    most = _ITERATIONS if validate else _ITERATIONS_ALONE
    patience = _PATIENCE if settings.patience is None else settings.patience
    fit = s2net_pref.fit(
        *sides, chosen, init=start, gamma=settings.gamma,
        max_iter=most if settings.max_iter is None else settings.max_iter, validate=validate,
        patience=patience if validate else None, checkpoint=problem.checkpoint, progress=problem.progress,
        callback=problem.logged(),
    )  # fmt: skip
    return Learned(fit, {"queries": {"used": preferences.queries, "passed over": preferences.skipped}})


def _once(problem: Problem):
    """Different texts of both sides, and their graded pairs; pairs that only differ in unknown words are one."""
    given = checked(problem.grades, problem.train[0].num_docs)
    (left, of_left), (right, of_right) = map(distinct_rows, problem.train)
    given = averaged(of_left.tolist(), of_right.tolist(), given)
    _, first = np.unique(np.stack([of_left, of_right], axis=1), axis=0, return_index=True)
    sides = sparse.take(problem.train[0], left), sparse.take(problem.train[1], right)
    return sides, labelled(of_left[first], of_right[first], given[first], num_left=left.size, num_right=right.size)


def fit(problem: Problem) -> Learned:
    """Learns a projection from graded pairs by L-BFGS, from a random start.

    Args:
      problem: training pairs with grades, held-out pairs with theirs, and settings.

    Returns:
      `Learned`, of a `Projection`.

    Raises:
      ValueError: if the training pairs have only one grade, or a side of them has no words.
    """
    settings = problem.settings
    sides, chosen = _once(problem)
    validate = None if problem.dev is None else validator(problem.dev, problem.dev_grades)
    start = s2net.random_init(sides[0].num_terms, problem.k, key=jax.random.key(settings.seed))
    start = jax.tree.map(lambda leaf: leaf.astype(sides[0].values.dtype), start)
    most = _ITERATIONS if validate else _ITERATIONS_ALONE  # with nothing to stop by, stop early
    patience = _PATIENCE if settings.patience is None else settings.patience
    return Learned(s2net_mse.fit(
        *sides, chosen, init=start, max_iter=most if settings.max_iter is None else settings.max_iter,
        validate=validate, patience=patience if validate else None, checkpoint=problem.checkpoint,
        progress=problem.progress, callback=problem.logged(),
    ))  # fmt: skip
