"""Questions of several choices of which the one with the lowest (or highest) score is the answer (PILSA §7.2).

A question is not attempted if its target or all of its choices are unknown; in other questions, unknown choices are
skipped. If n choices tie, a right one among them counts 1/n, which is what guessing among them earns on average.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim import checks


class Answers(NamedTuple):
    """What became of the questions.

    Attributes:
      credit: ``[n]`` float64: 1 right, 0 wrong or not attempted, between them for ties.
      attempted: ``[n]`` booleans.
      choice: ``[n]`` place of the choice (the first of ties); -1 where not attempted.
    """

    credit: np.ndarray
    attempted: np.ndarray
    choice: np.ndarray


def closest_opposite(scores, answer) -> Answers:
    """Answers questions by the lowest score.

    Args:
      scores: ``[n, c]`` real: similarity of the target with each choice; NaN where the pair is not known.
      answer: ``[n]`` places of the right choices.

    Returns:
      `Answers`.

    Raises:
      ValueError: for other shapes, or answers out of range.

    Example:
      >>> closest_opposite([[-0.9, 0.1], [0.5, 0.5], [np.nan, np.nan]], [0, 1, 0])
      Answers(credit=array([1. , 0.5, 0. ]), attempted=array([ True,  True, False]), choice=array([ 0,  0, -1]))
    """
    scores = np.asarray(scores, np.float64)
    checks.expect(scores.ndim == 2 and scores.shape[1] > 0, "scores", "shape (questions, choices)", scores.shape)
    answer = checks.targets(answer, *scores.shape)
    attempted = ~np.isnan(scores).all(axis=1)
    filled = np.where(np.isnan(scores), np.inf, scores)
    best = filled == filled.min(axis=1, keepdims=True)
    credit = best[np.arange(len(answer)), answer] / best.sum(axis=1)
    return Answers(np.where(attempted, credit, 0.0), attempted, np.where(attempted, best.argmax(axis=1), -1))


def precision_recall_f1(answers: Answers) -> tuple[float, float, float]:
    """Shares of right answers among those attempted and among all, and their harmonic mean.

    Args:
      answers: of at least one question.

    Returns:
      ``(precision, recall, f1)``; all 0 where nothing was attempted.

    Example:
      >>> found = Answers(np.array([1.0, 0.0, 0.0, 1.0]), np.array([True, True, False, True]), np.zeros(4, int))
      >>> [round(value, 3) for value in precision_recall_f1(found)]
      [0.667, 0.5, 0.571]
    """
    right, tried, number = float(answers.credit.sum()), int(answers.attempted.sum()), len(answers.credit)
    checks.expect(number > 0, "answers", "at least one question", number)
    precision, recall = right / max(tried, 1), right / number
    return precision, recall, 2 * precision * recall / (precision + recall) if right else 0.0
