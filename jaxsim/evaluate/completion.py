"""Sentence completion: from scores of the choices to accuracy.

A scorer gives ``scores [num_questions, num_choices]``, higher is better. The right choice must be above all others: a
tie is an error, as it is when mates are looked for.
"""

from __future__ import annotations

import numpy as np

from jaxsim import checks
from jaxsim.data.corpora.questions import NUM_DEV

__all__ = ["accuracies", "correct", "expect_scores", "halves"]


def expect_scores(scores, argument: str = "scores") -> np.ndarray:
    """Scores of questions, checked.

    Args:
      scores: ``[num_questions, num_choices]`` real, two choices or more.
      argument: its name, for messages.

    Returns:
      The scores as float64.

    Raises:
      ValueError: other shapes, NaN, or plus infinity; minus infinity is legal (a choice of probability 0).
    """
    scores = checks.real(scores, argument)
    checks.expect(scores.ndim == 2 and scores.shape[1] >= 2, argument,
                  "shape (num_questions, num_choices), 2 choices or more", scores.shape)  # fmt: skip
    checks.expect(not np.isposinf(scores).any(), argument, "finite scores, or minus infinity", "infinity")
    return scores


def correct(scores, answers) -> np.ndarray:
    """Whether the right choice has the one highest score.

    Args:
      scores: ``[num_questions, num_choices]`` real, higher is better.
      answers: ``[num_questions]`` indices of the right choices.

    Returns:
      ``[num_questions]`` float64, 1 or 0; 0 where another choice scores as high.

    Raises:
      ValueError: as `expect_scores`, and for answers of another number or out of range.

    Example:
      >>> correct([[3, 1], [2, 2], [0, 5]], [0, 0, 0]).tolist()
      [1.0, 0.0, 0.0]
    """
    scores, answers = expect_scores(scores), np.asarray(answers)
    checks.expect(answers.shape == scores.shape[:1], "answers", f"shape {scores.shape[:1]} (one a question)",
                  answers.shape)  # fmt: skip
    known = np.issubdtype(answers.dtype, np.integer) and bool(((answers >= 0) & (answers < scores.shape[1])).all())
    checks.expect(known, "answers", f"indices below {scores.shape[1]}", answers.dtype)
    right = np.take_along_axis(scores, answers[:, None], axis=1)
    others = scores.copy()
    np.put_along_axis(others, answers[:, None], -np.inf, axis=1)
    return (right[:, 0] > others.max(axis=1)).astype(np.float64)


def halves(num_questions: int, num_dev: int = NUM_DEV) -> dict[str, slice]:
    """Which questions are for development, which for tests.

    Args:
      num_questions: how many there are.
      num_dev: how many of the first are for development, less than all.

    Returns:
      ``{"dev": slice, "test": slice}``.

    Raises:
      ValueError: no question is left for tests.

    Example:
      >>> halves(1040)["test"]
      slice(520, 1040, None)
    """
    checks.between(num_dev, "num_dev", num_questions - 1, "questions less one")
    return {"dev": slice(0, num_dev), "test": slice(num_dev, num_questions)}


def accuracies(scores, answers, *, num_dev: int = NUM_DEV) -> dict[str, float]:
    """Share of questions answered rightly, as the records name it.

    Args:
      scores: ``[num_questions, num_choices]`` real.
      answers: ``[num_questions]`` indices.
      num_dev: how many of the first questions are for development.

    Returns:
      ``accuracy`` (of the test half), ``accuracy@all`` and ``accuracy@dev``.

    Example:
      >>> accuracies([[3, 1], [2, 1], [0, 5], [4, 1]], [0, 0, 0, 0], num_dev=2)
      {'accuracy': 0.5, 'accuracy@all': 0.75, 'accuracy@dev': 1.0}
    """
    values = correct(scores, answers)
    parts = halves(len(values), num_dev)
    return {"accuracy": float(values[parts["test"]].mean()), "accuracy@all": float(values.mean()),
            "accuracy@dev": float(values[parts["dev"]].mean())}  # fmt: skip
