r"""A linear combination of scores, trained on pairs of a right and a wrong choice (completion §5.5).

.. math:: \min_w \frac{1}{n} \sum_{pairs} \log(1 + \exp(w^\top (x - y))) + \lambda \|w\|^2

with the RankNet loss, where y are the scores of the right choice and x those of a wrong one, divided by their spread on
the training questions. λ is chosen by cross-validation.

Differs from the paper: the loss is a mean, so that λ does not depend on the number of questions, and λ is the one with
the lowest loss on held-out questions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, losses, optim
from jaxsim.optim import Fit, Run

__all__ = ["L2", "VERSION", "Combination", "choose", "fit", "objective", "parts", "pooled", "scores", "signed_log"]

VERSION = 1
L2 = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0)
RUN = Run(max_iter=300, tol=1e-6, progress=False)


class Combination(NamedTuple):
    """Weights of scores.

    Attributes:
      weights: ``[num_inputs]`` float32, w.
      scale: ``[num_inputs]`` float32, or float64 where float32 does not hold it: spread of each input between the
        choices of a training question.
    """

    weights: np.ndarray
    scale: np.ndarray


def objective(weights: jax.Array, data: dict) -> jax.Array:
    """Mean RankNet loss of the pairs that count, plus λ times the squared norm of the weights."""
    loss = losses.logistic_pairwise(data["differences"] @ weights, gamma=1.0)
    return jnp.sum(loss * data["counted"]) / jnp.sum(data["counted"]) + data["l2"] * jnp.sum(weights**2)


def signed_log(values) -> np.ndarray:
    """``sign(x) log(1 + |x|)``: for inputs with heavy tails, such as reconstruction errors.

    Args:
      values: any shape, real.

    Returns:
      float64 of the same shape.

    Example:
      >>> signed_log([-1.0, 0.0]).round(3).tolist()
      [-0.693, 0.0]
    """
    values = np.asarray(values, np.float64)
    return np.sign(values) * np.log1p(np.abs(values))


def fit(inputs, answers, *, l2: float, rows=None, run: Run | None = None, **options) -> Fit:
    """Learns the weights.

    Args:
      inputs: ``[num_questions, num_choices, num_inputs]`` finite scores.
      answers: ``[num_questions]`` indices of the right choices.
      l2: λ, at least 0.
      rows: numbers of the questions to train on; all unless given.
      run: how long it runs; `RUN` where it says nothing.
      **options: fields of `Run`.

    Returns:
      `Fit` of a `Combination`.

    Raises:
      ValueError: other shapes, values that are not finite, answers that are no choice, no question, or rows that
        are none.
      FloatingPointError: the loss is not finite.

    Example:
      >>> model = fit(np.array([[[1.0], [0.0]], [[0.0], [2.0]]]), [0, 1], l2=0.1).params
      >>> scores(model, np.array([[[3.0], [1.0]]])).argmax()
      np.int64(0)
    """
    inputs, answers = _checked(inputs, answers)
    checks.expect(l2 >= 0, "l2", "a number of at least 0", l2)
    rows = _numbers(rows, len(inputs))
    scale = _spread(inputs[rows])
    right = np.take_along_axis(inputs, answers[:, None, None], axis=1)
    counted = np.zeros(inputs.shape[:2], bool)
    counted[rows] = True
    np.put_along_axis(counted, answers[:, None], False, axis=1)
    dtype = jnp.result_type(float)
    data = {"differences": jnp.asarray(((right - inputs) / scale).reshape(-1, inputs.shape[2]), dtype),
            "counted": jnp.asarray(counted.ravel(), dtype), "l2": jnp.asarray(l2, dtype)}  # fmt: skip

    def whole(weights) -> Combination:
        return Combination(np.asarray(weights), _held(scale))

    start = jnp.zeros(inputs.shape[2], dtype)
    return Run.of(run, options, RUN).run(optim.minimize_lbfgs, whole, objective, start, data, label="combination")


def _numbers(rows, num_questions: int) -> np.ndarray:
    """Numbers of questions, checked; a mask of booleans tells which."""
    rows = np.arange(num_questions) if rows is None else np.asarray(rows)
    if rows.dtype == bool and rows.shape == (num_questions,):
        rows = np.flatnonzero(rows)
    checks.expect(rows.size > 0, "rows", "at least one question", "none")
    right = rows.ndim == 1 and np.issubdtype(rows.dtype, np.integer)
    checks.expect(right, "rows", "numbers of questions, whole numbers", f"{rows.dtype} of shape {rows.shape}")
    wrong = rows[(rows < -num_questions) | (rows >= num_questions)]
    checks.expect(not wrong.size, "rows", f"numbers of questions below {num_questions}", wrong[:1].tolist())
    return rows


def _spread(inputs: np.ndarray) -> np.ndarray:
    """Root mean square of each input's deviations from the mean of a question, 1 where there are none.

    Powers of two keep the squares of very small and very large inputs in range and change no digit of others.
    """
    power = np.frexp(np.abs(inputs).max(axis=(0, 1)))[1]
    scaled = np.ldexp(inputs, -power)
    centred = scaled - scaled.mean(axis=1, keepdims=True)
    scale = np.ldexp(np.sqrt((centred**2).mean(axis=(0, 1))), power)
    return np.where(scale > 0, scale, 1.0)


def _held(scale: np.ndarray) -> np.ndarray:
    """As float32, if that holds all of it."""
    range32 = np.finfo(np.float32)
    return scale.astype(np.float32) if np.all((scale >= range32.tiny) & (scale <= range32.max)) else scale


def scores(params: Combination, inputs) -> np.ndarray:
    """Weighted sums of scores.

    Args:
      params: the weights.
      inputs: ``[num_questions, num_choices, num_inputs]`` finite scores.

    Returns:
      ``[num_questions, num_choices]`` float64.
    """
    return np.asarray(inputs, np.float64) @ (params.weights.astype(np.float64) / params.scale)


def parts(num_questions: int, num_parts: int, *, key: jax.Array) -> np.ndarray:
    """``[num_questions]`` numbers of parts of equal size (or nearly), drawn at random."""
    checks.random_key(key)
    checks.between(num_parts, "num_parts", num_questions, "questions")
    return np.asarray(jax.random.permutation(key, num_questions)) % num_parts


def choose(
    inputs, answers, *, l2s: Sequence[float] = L2, num_parts: int = 5, key: jax.Array
) -> tuple[float, list[dict]]:
    """λ with the lowest mean loss on held-out parts.

    Args:
      inputs: ``[num_questions, num_choices, num_inputs]`` finite scores, of development questions.
      answers: ``[num_questions]`` indices of the right choices.
      l2s: values of λ to try.
      num_parts: parts of the questions, at least 2; each is held out once.
      key: PRNG key of the parts.

    Returns:
      λ, and one dict a value: ``l2, loss``.

    Raises:
      ValueError: other shapes, values that are not finite, answers that are no choice, another number of parts, no λ.
    """
    inputs, answers = _checked(inputs, answers)
    checks.whole(num_parts, "num_parts", 2)
    checks.expect(len(l2s) > 0, "l2s", "at least one value", "none")
    part = parts(len(inputs), num_parts, key=key)
    tried = []
    for l2 in l2s:
        values = [_held_out(inputs, answers, l2, np.flatnonzero(part != at), np.flatnonzero(part == at))
                  for at in range(num_parts)]  # fmt: skip
        tried.append({"l2": l2, "loss": float(np.mean(values))})
    return min(tried, key=lambda entry: entry["loss"])["l2"], tried


def pooled(
    inputs, answers, *, l2s: Sequence[float] = L2, num_parts: int = 5, key: jax.Array
) -> tuple[np.ndarray, list]:
    """Scores of all questions, each by a model that saw neither it nor its part (completion §5.6).

    Five times, three fifths are trained on, λ is chosen on one fifth, and one fifth gets scores.

    Args:
      inputs: ``[num_questions, num_choices, num_inputs]`` finite scores.
      answers: ``[num_questions]`` indices of the right choices.
      l2s: values of λ to try.
      num_parts: parts of the questions, at least 3: one is tested, one chooses λ, the others train.
      key: PRNG key of the parts.

    Returns:
      ``[num_questions, num_choices]`` float64, in which each question's scores have a scale of its part, and the λ of
      each part.

    Raises:
      ValueError: other shapes, values that are not finite, answers that are no choice, another number of parts, no λ.
    """
    inputs, answers = _checked(inputs, answers)
    checks.whole(num_parts, "num_parts", 3)
    checks.expect(len(l2s) > 0, "l2s", "at least one value", "none")
    part = parts(len(inputs), num_parts, key=key)
    total, chosen = np.zeros(inputs.shape[:2]), []
    for at in range(num_parts):
        test, dev = (np.flatnonzero(part == which) for which in (at, (at + 1) % num_parts))
        train = np.flatnonzero((part != at) & (part != (at + 1) % num_parts))
        best = min(l2s, key=lambda l2: _held_out(inputs, answers, l2, train, dev))
        total[test] = scores(fit(inputs, answers, l2=best, rows=train).params, inputs[test])
        chosen.append(best)
    return total, chosen


def _held_out(inputs: np.ndarray, answers: np.ndarray, l2: float, train: np.ndarray, held: np.ndarray) -> float:
    """Mean loss of a fit on questions that it did not see."""
    values = scores(fit(inputs, answers, l2=l2, rows=train).params, inputs[held])
    right = np.take_along_axis(values, answers[held, None], axis=1)
    wrong = np.arange(values.shape[1]) != answers[held, None]
    return float(np.logaddexp(0, values - right)[wrong].mean())


def _checked(inputs, answers) -> tuple[np.ndarray, np.ndarray]:
    """Inputs as float64 and answers as integers, of the right shapes."""
    inputs, answers = checks.real(inputs, "inputs"), np.asarray(answers)
    checks.expect(inputs.ndim == 3 and inputs.shape[1] >= 2, "inputs", "shape (num_questions, num_choices, num_inputs)",
                  inputs.shape)  # fmt: skip
    checks.expect(bool(np.isfinite(inputs).all()), "inputs", "finite scores", "infinity")
    checks.expect(answers.shape == inputs.shape[:1], "answers", f"shape {inputs.shape[:1]}", answers.shape)
    whole = answers.size == 0 or np.issubdtype(answers.dtype, np.integer)
    checks.expect(whole, "answers", "indices of choices, whole numbers", answers.dtype)
    wrong = answers[(answers < 0) | (answers >= inputs.shape[1])]
    checks.expect(wrong.size == 0, "answers", f"indices from 0 to {inputs.shape[1] - 1}", wrong[:1])
    return inputs, answers.astype(np.int64)
