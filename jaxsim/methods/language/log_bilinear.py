r"""The vector log-bilinear model: a word from the words around it, each weighted by its place (Mnih & Kavukcuoglu 2013).

.. math:: P(w \mid c) = \operatorname{softmax}\Big(\big(\textstyle\sum_{i \ne 0} m_i\, p_i \odot r_{c_i}\big)^\top q_w
          + b_w\Big), \qquad -n \le i \le n

r are vectors of the words around, p a vector a place, q and b a vector and a number a word that can stand in the gap; m
is 1 within the sentence and 0 beyond its ends. None of the papers' systems: a row of ours, which reads both sides of a
gap. It is trained on the occurrences of the words that can be asked for, as the paper restricts its text to sentences
that hold an answer, with the sampled softmax and the updates of touched rows of `rnn_training`.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim import checks
from jaxsim.methods.language.rnn_training import Rows, add_rows, drawn_rows, sampled_loss
from jaxsim.optim import Fit, Run, epochs, monitor

__all__ = ["LogBilinear", "choice_scores", "cross_entropy", "fit"]

VERSION = 1
_PIECE = 64  # batches a call


class LogBilinear(NamedTuple):
    """Parameters of the model.

    Attributes:
      around: ``[num_types, k]``, r.
      places: ``[2 n, k]``, p, from -n to n without 0.
      words: ``[num_targets, k]``, q.
      bias: ``[num_targets]``, b.
      targets: ``[num_types]`` int32, the row of a word in ``words``, -1 for words that cannot be asked for.
      boundary: scalar int32, id of the sentence marker.
    """

    around: jax.Array
    places: jax.Array
    words: jax.Array
    bias: jax.Array
    targets: jax.Array
    boundary: jax.Array


class _Constants(NamedTuple):
    log_draws: jax.Array
    cumulative: jax.Array
    rate: jax.Array
    boundary: jax.Array


def within(windows: jax.Array, boundary: jax.Array) -> jax.Array:
    """Which words of windows stand in the sentence of the word in the middle.

    Args:
      windows: ``[B, 2 n + 1]`` ids.
      boundary: scalar, id of the sentence marker.

    Returns:
      ``[B, 2 n]`` booleans, without the middle.

    Example:
      >>> within(jnp.array([[5, 0, 6, 7, 8]]), 0).tolist()
      [[False, False, True, True]]
    """
    side = windows.shape[1] // 2
    inside = windows != boundary
    left = jnp.cumprod(inside[:, :side][:, ::-1], axis=1)[:, ::-1]
    return jnp.concatenate([left, jnp.cumprod(inside[:, side + 1 :], axis=1)], axis=1).astype(bool)


def predicted(rows: jax.Array, places: jax.Array, inside: jax.Array) -> jax.Array:
    """The vector that a context predicts: the sum of its words' vectors, each times the vector of its place.

    Args:
      rows: ``[B, 2 n, k]``, r of the words around.
      places: ``[2 n, k]``, p.
      inside: ``[B, 2 n]`` booleans, m.

    Returns:
      ``[B, k]``.
    """
    return jnp.einsum("bik,ik,bi->bk", rows, places, inside.astype(rows.dtype))


def objective(touched: Rows, places: jax.Array, inside: jax.Array, right: jax.Array, drawn: jax.Array,
              log_draws: jax.Array) -> jax.Array:
    """Sum of the negative log probabilities of a batch, their denominator estimated from drawn words.

    Args:
      touched: rows of the tables; its inputs are ``[B, 2 n, k]``.
      places: ``[2 n, k]``.
      inside: ``[B, 2 n]`` booleans.
      right: ``[B]`` rows of the words in the gap.
      drawn: ``[S]`` rows of drawn words.
      log_draws: ``[num_targets]`` logarithms of what they are drawn by.

    Returns:
      Scalar, in nats.
    """
    return jnp.sum(sampled_loss(touched, predicted(touched.inputs, places, inside), right, drawn, log_draws))


@functools.partial(jax.jit, static_argnames="number", donate_argnames=("learned", "sums"))
def train_batches(learned, sums, windows, right, key, constants: _Constants, *, number: int):
    """One compiled loop over batches; a batch moves the rows of its words and of the drawn ones.

    Args:
      learned: ``(around, places, words, bias)``; donated.
      sums: of squared gradients: ``[num_types]``, ``[2 n, k]``, ``[num_targets]`` and ``[num_targets]``; donated.
      windows: ``[c, B, 2 n + 1]`` ids, the word in the gap in the middle.
      right: ``[c, B]`` its row among the targets.
      key: PRNG key.
      constants: the rest.
      number: words drawn a batch.

    Returns:
      ``(learned, sums, losses [c])``, the mean loss of each batch before its update.
    """

    def step(state, batch):
        (around, places, words, bias), sums = state
        windows, right, key = batch
        side = windows.shape[1] // 2
        context = jnp.concatenate([windows[:, :side], windows[:, side + 1 :]], axis=1)
        inside, drawn = within(windows, constants.boundary), drawn_rows(key, constants.cumulative, number)
        touched = Rows(around[context], words[right], bias[right], words[drawn], bias[drawn])
        value, (slopes, slope) = jax.value_and_grad(objective, argnums=(0, 1))(
            touched, places, inside, right, drawn, constants.log_draws
        )
        around, first = add_rows(around, sums[0], context, slopes.inputs, constants.rate)
        second = sums[1] + slope * slope
        places = places - constants.rate * slope / jnp.sqrt(second)
        at = jnp.concatenate([right, drawn])
        words, third = add_rows(words, sums[2], at, jnp.concatenate([slopes.right, slopes.drawn]), constants.rate)
        shifts = jnp.concatenate([slopes.right_bias, slopes.drawn_bias])
        bias, fourth = add_rows(bias, sums[3], at, shifts, constants.rate)
        return ((around, places, words, bias), (first, second, third, fourth)), value / len(right)

    (learned, sums), losses = jax.lax.scan(step, (learned, sums), (windows, right, jax.random.split(key, len(right))))
    return learned, sums, losses


def fit(
    tokens,
    targets,
    *,
    boundary: int,
    key: jax.Array,
    k: int = 200,
    window: int = 10,
    dev=None,
    negatives: int = 512,
    batch: int = 1024,
    learning_rate: float = 0.1,
    adagrad: float = 1e-2,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns to fill gaps from the occurrences of the words that can be asked for.

    Args:
      tokens: ``[n]`` integers, the words of all sentences in order, with the sentence marker between them; a memory map
        will do.
      targets: ids of the words that can be asked for; those that do not occur are left out.
      boundary: id of the sentence marker.
      key: PRNG key of the start, of the order of the occurrences and of the draws.
      k: width of the vectors.
      window: words on either side, n.
      dev: ``[m]`` integers, held-out text, by whose cross-entropy the best step is chosen; None for none.
      negatives: words drawn a batch.
      batch: gaps of a step of the tables.
      learning_rate: of a batch's gradient.
      adagrad: where the sums of squared gradients start, by whose root a step is divided.
      run: how long it runs, by what score, and where it is kept; a step is a pass over the occurrences. By default at
        most 10, best by ``dev``, a patience of 1, and a checkpoint after each.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit` of `LogBilinear`; losses are means over the occurrences, in nats; an evaluation is a batch.

    Raises:
      ValueError: for bad settings, fewer than two targets that occur, fewer occurrences than a batch, or a checkpoint
        of another problem.
      FloatingPointError: if a loss is not finite, naming the batch.

    Example:
      >>> text = np.array([0, 1, 2, 0, 3, 4] * 100)
      >>> model = fit(text, [2, 4], boundary=0, key=jax.random.key(0), k=4, window=1, negatives=8, batch=16).params
      >>> choice_scores(model, [[1, 9], [3, 9]], [1, 1], [[2, 4], [2, 4]]).argmax(axis=1).tolist()
      [0, 1]
    """
    tokens = np.asanyarray(tokens)
    legal = tokens.ndim == 1 and np.issubdtype(tokens.dtype, np.integer) and len(tokens) > 0 and tokens.min() >= 0
    checks.expect(bool(legal), "tokens", "a list of ids of at least 0", f"shape {tokens.shape}, dtype {tokens.dtype}")
    for name, value in {"k": k, "window": window, "negatives": negatives, "batch": batch}.items():
        checks.whole(value, name, 1)
    for name, value in {"learning_rate": learning_rate, "adagrad": adagrad}.items():
        checks.expect(0 < value < float("inf"), name, "a positive number", value)
    rows, counts, num_types = _targets(tokens, targets, boundary)
    places = np.flatnonzero(rows[tokens] >= 0)
    batches = len(places) // batch
    checks.expect(batches > 0, "tokens", f"at least {batch} occurrences of the targets (a batch)", len(places))
    dtype = jnp.result_type(float)
    keys = jax.random.split(key, 3)
    learned = (
        jax.random.uniform(keys[0], (num_types, k), dtype, -0.1, 0.1), jnp.ones((2 * window, k), dtype),
        jax.random.uniform(keys[1], (len(counts), k), dtype, -0.1, 0.1),
        jnp.asarray(np.log(counts / counts.sum()), dtype),
    )
    sums = tuple(jnp.full(shape, adagrad, dtype) for shape in (num_types, (2 * window, k), len(counts), len(counts)))
    draws = counts**0.75 / (counts**0.75).sum()
    constants = _Constants(*(jnp.asarray(one, dtype) for one in (np.log(draws), np.cumsum(draws), learning_rate)),
                           jnp.int32(boundary))

    def model(learned) -> LogBilinear:
        return LogBilinear(*learned, jnp.asarray(rows), constants.boundary)

    def epoch(state, number):
        learned, sums = state
        turn = jax.random.fold_in(keys[2], number)
        order = np.asarray(jax.random.permutation(turn, len(places)))[: batches * batch].reshape(batches, batch)
        losses = []
        for begin in tqdm(range(0, batches, _PIECE), desc=f"log-bilinear, pass {number + 1}", leave=False,
                          disable=None if chosen.progress else True):
            at = places[order[begin : begin + _PIECE]]
            learned, sums, values = train_batches(
                learned, sums, windows_of(tokens, at, window, boundary), rows[tokens[at]],
                jax.random.fold_in(turn, begin), constants, number=negatives,
            )
            losses.append(np.asarray(values))
            if not np.isfinite(losses[-1]).all():
                break
        losses = np.concatenate(losses)
        return (learned, sums), losses, float(losses.mean()), float("nan")

    default = Run(max_iter=10, checkpoint_every=1, progress=True, patience=None if dev is None else 1)
    chosen = Run.of(run, options, default)
    if dev is not None and chosen.validate is None:
        held = np.asarray(dev)
        chosen = Run.of(chosen, {"validate": lambda learned: -cross_entropy(model(learned), held)})
    settings = learning_rate, adagrad, negatives, batch, window, int(boundary)
    whole = epochs.run(
        epoch, (learned, sums), run=chosen, label="log-bilinear",
        mark=lambda: monitor.mark_of(fit, learned, jax.random.key_data(key), settings, np.asarray(tokens), rows),
    )
    return whole._replace(params=model(whole.params))


def _targets(tokens: np.ndarray, targets, boundary: int) -> tuple[np.ndarray, np.ndarray, int]:
    """The row of every word among the targets that occur, their counts, and the number of words."""
    counts = np.bincount(tokens)
    targets = np.unique(np.asarray(targets, np.int64).reshape(-1))
    wrong = targets[(targets < 0) | (targets == boundary)]
    checks.expect(not wrong.size, "targets", "ids of words", wrong[:1].tolist())
    targets = targets[targets < len(counts)]
    targets = targets[counts[targets] > 0]
    checks.expect(len(targets) > 1, "targets", "at least two words that occur in the text", len(targets))
    rows = np.full(len(counts), -1, np.int32)
    rows[targets] = np.arange(len(targets), dtype=np.int32)
    return rows, counts[targets].astype(np.float64), len(counts)


def windows_of(tokens: np.ndarray, at: np.ndarray, window: int, boundary: int) -> np.ndarray:
    """The words around places of a text.

    Args:
      tokens: ``[n]`` integers.
      at: integers of any shape, places.
      window: words on either side.
      boundary: id that stands for what is beyond the text.

    Returns:
      ``[..., 2 window + 1]`` int32.

    Example:
      >>> windows_of(np.array([5, 6, 7]), np.array([0, 1]), 1, 0).tolist()
      [[0, 5, 6], [5, 6, 7]]
    """
    spread = at[..., None] + np.arange(-window, window + 1)
    beyond = (spread < 0) | (spread >= len(tokens))
    return np.where(beyond, boundary, tokens[np.clip(spread, 0, len(tokens) - 1)]).astype(np.int32)


@jax.jit
def _read(model: LogBilinear, windows: jax.Array) -> jax.Array:
    """What contexts predict, ``[B, k]``; words that training did not see, marked by -1, do not count."""
    side = windows.shape[1] // 2
    context = jnp.concatenate([windows[:, :side], windows[:, side + 1 :]], axis=1)
    return predicted(model.around[context], model.places, within(windows, model.boundary) & (context >= 0))


def cross_entropy(model: LogBilinear, tokens, *, batch: int = 1024) -> float:
    """Mean negative log probability of the targets in a text, given that one of them stands there.

    Args:
      model: of `fit`.
      tokens: ``[n]`` integers with the sentence marker between sentences.
      batch: gaps that are looked at together.

    Returns:
      Nats a target.

    Raises:
      ValueError: for a text without targets.
    """
    rows, known = np.asarray(model.targets), _known(model, tokens)
    places = np.flatnonzero((known >= 0) & (rows[np.maximum(known, 0)] >= 0))
    checks.expect(len(places) > 0, "tokens", "at least one word that can be asked for", "none")
    total, side, boundary = 0.0, len(model.places) // 2, int(model.boundary)
    for begin in range(0, len(places), batch):
        at = np.resize(places[begin : begin + batch], batch)  # repeated to one shape
        scores = _scores(model, windows_of(known, at, side, boundary))
        logs = np.asarray(jnp.take_along_axis(scores, jnp.asarray(rows[known[at]])[:, None], 1))[:, 0]
        total -= logs[: len(places) - begin].sum(dtype=np.float64)
    return float(total / len(places))


@jax.jit
def _scores(model: LogBilinear, windows: jax.Array) -> jax.Array:
    """Log probabilities of all targets, ``[B, num_targets]``."""
    return jax.nn.log_softmax(_read(model, windows) @ model.words.T + model.bias[None], axis=-1)


def _known(model: LogBilinear, tokens) -> np.ndarray:
    """Ids, -1 for words that training did not see."""
    tokens = np.asarray(tokens, np.int64)
    return np.where((tokens >= 0) & (tokens < len(model.targets)), tokens, -1)


def choice_scores(model: LogBilinear, sentences: Sequence, gaps: Sequence[int], choices: Sequence) -> np.ndarray:
    """Log probabilities of choices for the gaps of sentences.

    Args:
      model: of `fit`.
      sentences: ``[n]`` integers each, ids of words; what stands in the gap does not count.
      gaps: the place of each sentence's gap.
      choices: ``[m]`` ids each, as many for every sentence; -1 for words that training did not see.

    Returns:
      ``[len(sentences), m]`` float64, in nats; NaN for words that are no targets.

    Raises:
      ValueError: for a gap outside its sentence.

    Example:
      >>> model = LogBilinear(*map(jnp.asarray, ([[0.0], [1.0]], [[1.0], [1.0]], [[1.0], [0.0]], [0.0, 0.0], [0, 1], 2)))
      >>> choice_scores(model, [[1, 0]], [1], [[0, 1, -1]]).round(2)
      array([[-0.31, -1.31, nan]])
    """
    side, boundary, rows = len(model.places) // 2, int(model.boundary), np.asarray(model.targets)
    windows = []
    for sentence, gap in zip(sentences, gaps, strict=True):
        checks.expect(0 <= gap < len(sentence), "gaps", f"a place in [0, {len(sentence)})", gap)
        windows.append(windows_of(_known(model, sentence), np.int64(gap), side, boundary))
    choices = _known(model, np.asarray(choices))
    columns = np.where(choices >= 0, rows[choices], -1)
    result = np.full(columns.shape, np.nan)
    for begin in range(0, len(windows), 256):
        some = slice(begin, begin + 256)
        scores = np.asarray(_scores(model, jnp.asarray(np.stack(windows[some]))))
        result[some] = np.where(columns[some] >= 0, np.take_along_axis(scores, np.maximum(columns[some], 0), 1), np.nan)
    return result
