r"""Mutual information of a choice with the words around its blank, weights learned from the training text. Ours.

The mutual information of two words is counted within 3, 10 and 25 tokens, between words as they are and between their
stems. Each word around the blank adds

.. math:: v_{t, \epsilon}(a, w) = \log \frac{C_t(a, w) + \epsilon}{E_t(a, w) + \epsilon}

for each of these tables t and three pseudo-counts ε to the input of its distance (1 to 3, 4 to 10, more) and of its
frequency (rare, middling, common). The score is the weighted sum of all inputs.

The weights are not learned from questions, but from gaps in the last tenth of the text, which C and E do not count: a
word of the text is the right choice, and the wrong ones are drawn from the options with probabilities

.. math:: p(a) \propto c(a)^{3/4} \prod_{d \in \{-2, -1, 1, 2\}} \frac{C_d(a, w_d) + .3}{E_d(a, w_d) + .3}

so that they fit their neighbours, as the wrong choices of the questions do. The loss is the mean cross-entropy of the
five choices plus λ ‖w‖². With these weights, C and E of the whole text give the scores.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, optim
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, MARKS, START, Sentences
from jaxsim.optim import Fit, Run
from jaxsim.text import stemmed

__all__ = ["CLASSES", "NUM_WEIGHTS", "VERSION", "Near", "WeightedAssociation", "count", "fit", "objective",
           "scores"]

VERSION = 1
REACHES = (3, 10, 25)
EPS = (0.03, 0.3, 3.0)
CLASSES = (1e-4, 2e-3)
"""Shares of the text at which a word is no longer rare, and from which it is common."""
NUM_WEIGHTS = 2 * len(REACHES) * len(EPS) * 9
"""Words and stems, reaches, pseudo-counts, three distances times three frequencies."""
RUN = Run(max_iter=80, tol=1e-6, progress=False)
_SIDES = (4, 11)  # distances from which a word is in the next band
_WRONG = 4  # wrong choices a gap
_SHORTEST, _LONGEST = 8, 35  # words of a sentence with a gap
_LOCAL = (-2, -1, 1, 2)  # distances of the words that wrong choices fit
_BLOCK = 1 << 20


class Near(NamedTuple):
    """How often options stand near words, and what independence would give.

    Attributes:
      rows: ``[num_words]`` int32, the row of every word of the text as an option, or -1.
      columns: ``[num_words]`` int32, its column as a word around.
      together: ``[num_rows, num_columns]`` int32, C.
      single: ``[num_rows]`` float64, counts of the options.
      rates: ``[num_columns]`` float64, by which E is an option's count times this.
    """

    rows: np.ndarray
    columns: np.ndarray
    together: np.ndarray
    single: np.ndarray
    rates: np.ndarray

    def values(self, rows: np.ndarray, columns: np.ndarray, eps: Sequence[float]) -> list[np.ndarray]:
        """Values v of pairs of a row and a column, for each pseudo-count."""
        together = self.together[rows, columns].astype(np.float32)
        expected = (self.single[rows] * self.rates[columns]).astype(np.float32)
        return [np.log((together + np.float32(one)) / (expected + np.float32(one))) for one in eps]


class WeightedAssociation(NamedTuple):
    """Tables of mutual information and their weights.

    Attributes:
      tables: of words within each reach, then of stems.
      weights: ``[tables * eps * 9]`` float64; the nine are three distances times three frequencies.
      classes: ``[num_words]`` int8, 0 for rare words, 1, and 2 for common ones.
      eps: pseudo-counts.
    """

    tables: tuple[Near, ...]
    weights: np.ndarray
    classes: np.ndarray
    eps: tuple[float, ...]


class _Pairs(NamedTuple):
    """A choice and a word around it: which sentence with a choice, number of each, and tokens between them."""

    sentence: np.ndarray
    option: np.ndarray
    word: np.ndarray
    distance: np.ndarray


def objective(weights: jax.Array, data: dict) -> jax.Array:
    """Mean cross-entropy of the right choices, which come first, plus λ times the squared norm of the weights."""
    values = data["inputs"] @ weights
    return jnp.mean(jax.nn.logsumexp(values, axis=1) - values[:, 0]) + data["l2"] * jnp.sum(weights**2)


def fit(sentences: Sentences, filled: Filled, *, key: jax.Array, language: str = "en", gaps: int = 25_000,
        share: float = 0.1, rare: float = CLASSES[0], l2: float = 0.01, run: Run | None = None, **options) -> Fit:
    """Counts, and learns the weights from gaps in the text.

    Args:
      sentences: the training text.
      filled: the questions; only their words are counted. Which choice is right is not known here.
      key: PRNG key of the gaps and of their wrong choices.
      language: code of the stems' language.
      gaps: how many gaps teach the weights, at most.
      share: of the text, at its end, that gaps are taken from.
      rare: gaps and their wrong choices are options with at most this share of the text.
      l2: λ, at least 0.
      run: how long the weights are learned; `RUN` where it says nothing.
      **options: fields of `Run`.

    Returns:
      `Fit` of a `WeightedAssociation`.

    Raises:
      ValueError: settings out of range, no choice that is in the text, or no gap for its words.
      FloatingPointError: the loss is not finite.

    Example:
      >>> import tempfile
      >>> from jaxsim.data import questions, sentences
      >>> lines = ["He drank hot tea from a very old cup .", "We saw a ship sail over a very deep sea ."]
      >>> text = sentences.build([("", " ".join(lines * 40))], tempfile.mkdtemp() + "/tokens")
      >>> one = questions.question("The _____ is very deep .", ["tea", "cup", "sea", "ship", "sail"])
      >>> filled = questions.encode(questions.collect([one]), text.numbers)
      >>> scores(fit(text, filled, key=jax.random.key(0), rare=1.0).params, filled).argmax().item()
      2
    """
    checks.random_key(key)
    checks.whole(gaps, "gaps", 1)
    for name, value in (("share", share), ("rare", rare)):
        checks.expect(0 < value <= 1 and (name == "rare" or value < 1), name, "a share of the text", value)
    checks.expect(l2 >= 0, "l2", "a number of at least 0", l2)
    inside = filled.tokens >= len(MARKS)
    asked, words = np.unique(filled.tokens[inside & filled.chosen]), np.unique(filled.tokens[inside])
    checks.expect(len(asked) > 0, "filled", "choices that occur in the text", "none")
    tokens, cut = np.asarray(sentences.tokens), int(len(sentences.tokens) * (1 - share))
    starts = np.flatnonzero(tokens[cut:] == START)
    cut = cut + int(starts[0]) if len(starts) else len(tokens)  # no sentence begins so late
    parts = [part[part >= len(MARKS)] for part in (tokens[:cut], tokens[cut:])]
    size = len(sentences.vocabulary)
    counts = [np.bincount(part, minlength=size) for part in parts]
    rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    eligible = np.zeros(size, bool)
    eligible[asked] = (sum(counts)[asked] > 0) & (sum(counts)[asked] <= rare * sum(map(len, parts)))
    checks.expect(eligible.sum() > _WRONG, "rare", f"a share that more than {_WRONG} options are below", rare)
    places = _gaps(tokens[cut:], eligible, gaps, rng)
    checks.expect(len(places) > 0, "sentences", f"a sentence of {_SHORTEST} to {_LONGEST} words with a rare option in "
                  f"the last {share:g} of it", "none")  # fmt: skip
    gap, around = _around(tokens[cut:], places)
    plain = _numbers(asked, size), _numbers(words, size)
    local = [_near(*plain, _together(parts[0], *plain, [distance]), counts[0], 1) for distance in _LOCAL]
    right = tokens[cut:][places]
    wrong = _wrong(right, gap, around, local, asked[eligible[asked]], rng)
    del local
    chosen = np.column_stack([right, wrong])
    owner = np.repeat(gap, chosen.shape[1])
    choice = np.tile(np.arange(chosen.shape[1]), len(gap))
    pairs = _Pairs(owner * chosen.shape[1] + choice, chosen[owner, choice],
                   *(np.repeat(one, chosen.shape[1]) for one in around))  # fmt: skip
    classes = np.digitize(sum(counts) / sum(map(len, parts)), CLASSES).astype(np.int8)
    inputs, tables = [], []
    for rows, columns in (plain, _of_stems(sentences, language, asked, words)):
        seen = whole = 0
        for high, band in _bands():
            seen = seen + _together(parts[0], rows, columns, band)
            inputs.append(_inputs(_near(rows, columns, seen, counts[0], 2 * high), pairs, classes, EPS, chosen.size))
            whole = whole + _together(parts[1], rows, columns, band)
            tables.append(_near(rows, columns, seen + whole, sum(counts), 2 * high))
    values = np.concatenate(inputs, axis=1).reshape(*chosen.shape, -1)
    scale = np.sqrt(((values - values.mean(axis=1, keepdims=True)) ** 2).mean(axis=(0, 1), dtype=np.float64))
    scale = np.where(scale > 0, scale, 1.0)
    dtype = jnp.result_type(float)
    data = {"inputs": jnp.asarray(values / scale.astype(np.float32), dtype), "l2": jnp.asarray(l2, dtype)}

    def whole(weights) -> WeightedAssociation:
        return WeightedAssociation(tuple(tables), np.asarray(weights, np.float64) / scale, classes, EPS)

    return Run.of(run, options, RUN).run(optim.minimize_lbfgs, whole, objective, jnp.zeros(len(scale), dtype), data,
                                         label="weights of mutual information")


def count(sentences: Sentences, filled: Filled, weights: np.ndarray, *, language: str = "en") -> WeightedAssociation:
    """Counts for some questions, with weights that `fit` learned with others.

    Args:
      sentences: the text, all of which is counted.
      filled: the questions; only their words are counted.
      weights: ``[162]``, of a `WeightedAssociation`.
      language: as `fit`.

    Returns:
      What `scores` reads. Pairs of words are counted across the place where `fit` cuts the text as well; nothing else
      differs from its tables.

    Raises:
      ValueError: another number of weights, or no choice that is in the text.

    Example:
      >>> import tempfile
      >>> from jaxsim.data import questions, sentences
      >>> lines = ["He drank hot tea from a very old cup .", "We saw a ship sail over a very deep sea ."]
      >>> text = sentences.build([("", " ".join(lines * 40))], tempfile.mkdtemp() + "/tokens")
      >>> choices = ["tea", "cup", "sea", "ship", "sail"]
      >>> asked = [questions.question(one, choices) for one in ("A deep _____", "Old _____")]
      >>> first, second = (questions.encode(questions.collect([one]), text.numbers) for one in asked)
      >>> weights = fit(text, first, key=jax.random.key(0), rare=1.0).params.weights
      >>> scores(count(text, second, weights), second).argmax().item()
      1
    """
    shape = np.shape(weights)
    checks.expect(shape == (NUM_WEIGHTS,), "weights", f"{NUM_WEIGHTS} numbers", f"shape {shape}")
    inside = filled.tokens >= len(MARKS)
    asked, words = np.unique(filled.tokens[inside & filled.chosen]), np.unique(filled.tokens[inside])
    checks.expect(len(asked) > 0, "filled", "choices that occur in the text", "none")
    tokens = np.asarray(sentences.tokens)
    tokens = tokens[tokens >= len(MARKS)]
    counts = np.bincount(tokens, minlength=len(sentences.vocabulary))
    tables = []
    for rows, columns in ([_numbers(one, len(counts)) for one in (asked, words)],
                          _of_stems(sentences, language, asked, words)):  # fmt: skip
        seen = 0
        for high, band in _bands():
            seen = seen + _together(tokens, rows, columns, band)
            tables.append(_near(rows, columns, seen, counts, 2 * high))
    classes = np.digitize(counts / max(len(tokens), 1), CLASSES).astype(np.int8)
    return WeightedAssociation(tuple(tables), np.asarray(weights, np.float64), classes, EPS)


def scores(params: WeightedAssociation, filled: Filled) -> np.ndarray:
    """Weighted sums of the mutual information of a choice's words with the others.

    Args:
      params: of `fit` with the same questions.
      filled: the questions.

    Returns:
      ``[num_questions, num_choices]`` float64; a word that the text lacks adds 0.
    """
    shape = filled.tokens.shape[:2]
    tokens, chosen = (part.reshape(-1, part.shape[-1]) for part in (filled.tokens, filled.chosen))
    inside = tokens >= len(MARKS)
    sentence, place = np.nonzero(inside & chosen)
    which, beside = np.nonzero((inside & ~chosen)[sentence])
    sentence, place = sentence[which], place[which]
    pairs = _Pairs(sentence, tokens[sentence, place], tokens[sentence, beside], beside - place)
    inputs = [_inputs(table, pairs, params.classes, params.eps, len(tokens)) for table in params.tables]
    return (np.concatenate(inputs, axis=1).astype(np.float64) @ params.weights).reshape(shape)


def _bands() -> list[tuple[int, list[int]]]:
    """Each reach, and the signed distances that it adds to the one before."""
    return [(high, [one for far in range(low + 1, high + 1) for one in (-far, far)])
            for low, high in zip((0, *REACHES), REACHES, strict=False)]


def _of_stems(sentences: Sentences, language: str, asked: np.ndarray, words: np.ndarray) -> tuple[np.ndarray, ...]:
    """``[num_words]`` int32 each: number of a word's stem among those of options, and of words around; or -1."""
    stems = np.unique(stemmed(sentences.vocabulary, language), return_inverse=True)[1]
    return _numbers(stems[asked], stems.max() + 1)[stems], _numbers(stems[words], stems.max() + 1)[stems]


def _numbers(some: np.ndarray, size: int) -> np.ndarray:
    """``[size]`` int32: the place of a number among the distinct ones of some, or -1."""
    some = np.unique(some)
    result = np.full(size, -1, np.int32)
    result[some] = np.arange(len(some), dtype=np.int32)
    return result


def _together(text: np.ndarray, rows: np.ndarray, columns: np.ndarray, distances: Sequence[int]) -> np.ndarray:
    """``[num_rows, num_columns]`` int32: how often a word stands at one of the signed distances from an option."""
    shape = int(rows.max()) + 1, int(columns.max()) + 1
    total, places = np.zeros(shape[0] * shape[1], np.int32), np.flatnonzero(rows[text] >= 0)
    for begin in range(0, len(places), _BLOCK):
        at, keys = places[begin : begin + _BLOCK], []
        first = rows[text[at]].astype(np.int64) * shape[1]
        for distance in distances:
            inside = (at + distance >= 0) & (at + distance < len(text))
            column = columns[text[(at + distance)[inside]]]
            keys.append(first[inside][column >= 0] + column[column >= 0])
        total += np.bincount(np.concatenate(keys), minlength=len(total)).astype(np.int32)
    return total.reshape(shape)


def _near(rows: np.ndarray, columns: np.ndarray, together: np.ndarray, counts: np.ndarray, width: int) -> Near:
    """The table of counts at so many distances."""
    single, around = (np.bincount(part[part >= 0], counts[part >= 0], length)
                      for part, length in zip((rows, columns), together.shape, strict=True))  # fmt: skip
    return Near(rows, columns, together, single, around * (width / max(int(counts.sum()), 1)))


def _gaps(tokens: np.ndarray, eligible: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    """Places of eligible words in sentences that are neither short nor long, drawn at random, ascending."""
    starts, ends = np.flatnonzero(tokens == START), np.flatnonzero(tokens == END)
    length = (ends - starts - 1)[np.cumsum(tokens == START) - 1]
    places = np.flatnonzero(eligible[tokens] & (length >= _SHORTEST) & (length <= _LONGEST))
    return np.sort(rng.permutation(places)[:most])


def _around(tokens: np.ndarray, places: np.ndarray) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """The other words of the sentences of some places: number of the place, and word and signed distance."""
    distances = np.delete(np.arange(1 - _LONGEST, _LONGEST), _LONGEST - 1)
    at = places[:, None] + distances
    owner = np.cumsum(tokens == START)
    inside = (at >= 0) & (at < len(tokens))
    at = np.clip(at, 0, len(tokens) - 1)
    inside &= (owner[at] == owner[places][:, None]) & (tokens[at] >= len(MARKS))
    number, column = np.nonzero(inside)
    return number, (tokens[at[number, column]], distances[column])


def _wrong(right: np.ndarray, gap: np.ndarray, around: tuple[np.ndarray, np.ndarray], local: Sequence[Near],
           options: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """``[num_gaps, 4]`` wrong choices, each drawn by how well it fits the words next to the gap."""
    own = local[0].rows[options]
    single = np.maximum(local[0].single[own], 0.5)
    total = np.log(np.tile(single**0.75, (len(right), 1))).astype(np.float32)
    for distance, table in zip(_LOCAL, local, strict=True):
        beside = np.full(len(right), -1)
        here = around[1] == distance
        beside[gap[here]] = table.columns[around[0][here]]
        for column in np.unique(beside[beside >= 0]):
            values = table.values(own, np.full(len(own), column), EPS[1:2])[0]
            total[beside == column] += values
    total += rng.gumbel(size=total.shape).astype(np.float32)
    total[options == right[:, None]] = -np.inf
    return options[np.argpartition(-total, _WRONG - 1, axis=1)[:, :_WRONG]]


def _inputs(table: Near, pairs: _Pairs, classes: np.ndarray, eps: Sequence[float], number: int) -> np.ndarray:
    """``[number, eps * 9]`` float32: sums of v over the pairs of each sentence, by distance and frequency."""
    row, column = table.rows[pairs.option], table.columns[pairs.word]
    known = (row >= 0) & (column >= 0)
    cell = pairs.sentence * 9 + np.digitize(np.abs(pairs.distance), _SIDES) * 3 + classes[pairs.word]
    parts = [np.bincount(cell[known], values, number * 9).reshape(number, 9)
             for values in table.values(row[known], column[known], eps)]  # fmt: skip
    return np.concatenate(parts, axis=1).astype(np.float32)
