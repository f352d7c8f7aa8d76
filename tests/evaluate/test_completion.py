"""From scores of choices to accuracy."""

from __future__ import annotations

import numpy as np
import pytest

from jaxsim.evaluate import completion


def test_a_tie_is_an_error_and_minus_infinity_is_legal():
    scores = [[1.0, 1, 0], [0, -np.inf, 1], [-np.inf, -np.inf, -np.inf], [-np.inf, -1e300, -np.inf]]
    assert completion.correct(scores, [0, 2, 0, 1]).tolist() == [0, 1, 0, 1]


def test_accuracy_is_that_of_the_second_half(rng):
    scores, answers = rng.normal(size=(10, 5)), np.zeros(10, int)
    scores[:, 0] = [9, 9, 9, 9, -9, -9, -9, -9, 9, -9]
    assert completion.accuracies(scores, answers, num_dev=5) == {
        "accuracy": pytest.approx(0.2), "accuracy@all": 0.5, "accuracy@dev": 0.8}


@pytest.mark.parametrize(("scores", "answers", "message"), [
    ([[1, np.nan]], [0], "scores: expected no NaN"), ([[1, np.inf]], [0], "finite scores, or minus infinity"),
    ([[1], [2]], [0, 0], "2 choices or more"), ([[1, 2]], [2], "answers: expected indices below 2"),
    ([[1, 2]], [0, 1], "answers: expected shape"), ([[1, 2]], [0.0], "answers: expected indices"),
])
def test_bad_scores_and_answers_are_refused(scores, answers, message):
    with pytest.raises(ValueError, match=message):
        completion.correct(scores, answers)
