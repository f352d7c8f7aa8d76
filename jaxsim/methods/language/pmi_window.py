r"""Pointwise mutual information of a choice with the words near its blank. Ours; completion §2 cites the idea.

.. math:: s(a) = \sum_{w} \log \frac{C(a, w) + \epsilon}{E(a, w) + \epsilon}, \quad E(a, w) = 2 R\, c(a) c(w) / N

C counts how often w stands within R tokens of a in the training text (over the ends of sentences too), and E is what
independence would give. The sum is over the tokens of the question other than the choice. A choice that the text
does not hold scores 0.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim import checks
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import MARKS, Sentences
from jaxsim.optim import Fit, closed_form

__all__ = ["VERSION", "Association", "fit", "scores", "smoothed"]

VERSION = 1
_BLOCK = 1 << 24


class Association(NamedTuple):
    """How words attract each other.

    Attributes:
      options: ``[num_options]`` int32, ascending numbers of the choices' tokens.
      words: ``[num_words]`` int32, ascending numbers of all tokens of the questions.
      together: ``[num_options, num_words]`` int32, how often they stand near each other.
      expected: ``[num_options, num_words]`` float32, how often they would if they were independent.
      eps: the pseudo-count ε.
      reach: tokens of the question that count, on either side; 0 for all.
    """

    options: np.ndarray
    words: np.ndarray
    together: np.ndarray
    expected: np.ndarray
    eps: float
    reach: int


def fit(
    sentences: Sentences, filled: Filled, *, window: tuple[int, int] = (1, 10), eps: float = 0.25, reach: int = 0
) -> Fit:
    """Counts which words stand near the choices of some questions.

    Args:
      sentences: the training text.
      filled: the questions; only their words are counted.
      window: smallest and largest distance, in tokens.
      eps: the pseudo-count ε.
      reach: how far from the blank the tokens of a question may be to count; 0 for any distance.

    Returns:
      `Fit` of an `Association`, a closed form.

    Raises:
      ValueError: settings out of range, or questions of which no choice is in the text.
    """
    low, high = window
    checks.whole(low, "window[0]", 1)
    checks.whole(high, "window[1]", low)
    checks.positive(eps, "eps")
    checks.whole(reach, "reach", 0)
    inside = filled.tokens >= len(MARKS)
    options, words = np.unique(filled.tokens[inside & filled.chosen]), np.unique(filled.tokens[inside])
    checks.expect(len(options) > 0, "filled", "choices that occur in the text", "none")
    size, shape = len(sentences.vocabulary), (len(options), len(words))
    option_of, word_of = np.full(size, -1, np.int32), np.full(size, -1, np.int32)
    option_of[options], word_of[words] = np.arange(shape[0]), np.arange(shape[1])
    together = np.zeros(shape[0] * shape[1], np.int32)
    seen, total = np.zeros(size, np.int64), 0
    tail = np.zeros(0, np.int32)
    for begin in range(0, len(sentences.tokens), _BLOCK):
        block = np.asarray(sentences.tokens[begin : begin + _BLOCK])
        block = block[block >= len(MARKS)]
        seen += np.bincount(block, minlength=size)
        total += len(block)
        text = np.concatenate((tail, block))
        left, right = option_of[text].astype(np.int64), word_of[text]
        for distance in range(low, high + 1):
            first = max(len(tail) - distance, 0)  # pairs inside the tail were counted with the block before
            for one, other in ((left[first:-distance], right[first + distance :]),
                               (left[first + distance :], right[first:-distance])):  # fmt: skip
                both = (one >= 0) & (other >= 0)
                together += np.bincount(one[both] * shape[1] + other[both], minlength=len(together)).astype(np.int32)
        tail = text[-high:]
    spread = 2 * (high - low + 1) / max(total, 1)
    expected = seen[options][:, None] * (spread * seen[words]).astype(np.float32)
    return closed_form(Association(options, words, together.reshape(shape), expected.astype(np.float32), eps, reach))


def smoothed(params: Association) -> np.ndarray:
    """``[num_options, num_words]`` float32: log((C + ε) / (E + ε)); 0 for a choice that the text does not hold."""
    values = np.log((params.together + np.float32(params.eps)) / (params.expected + np.float32(params.eps)))
    return np.where(params.expected.any(axis=1, keepdims=True), values, 0).astype(np.float32)


def scores(params: Association, filled: Filled) -> np.ndarray:
    """Sum of the mutual information of a choice with the tokens around it.

    Args:
      params: the counts.
      filled: questions whose words were counted.

    Returns:
      ``[num_questions, num_choices]`` float64.
    """
    values = smoothed(params)
    shape = filled.tokens.shape[:2]
    tokens, chosen = (part.reshape(-1, part.shape[-1]) for part in (filled.tokens, filled.chosen))
    total = np.zeros(len(tokens))
    words, options = (np.minimum(np.searchsorted(table, tokens), len(table) - 1)
                      for table in (params.words, params.options))  # fmt: skip
    is_word, is_option = params.words[words] == tokens, params.options[options] == tokens
    for row in range(len(tokens)):
        rest = np.flatnonzero(is_word[row] & ~chosen[row])
        for at in np.flatnonzero(chosen[row] & is_option[row]):
            near = rest[np.abs(rest - at) <= params.reach] if params.reach else rest
            total[row] += values[options[row, at], words[row, near]].sum(dtype=np.float64)
    return total.reshape(shape)
