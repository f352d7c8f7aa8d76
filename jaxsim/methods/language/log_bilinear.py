r"""The vector log-bilinear model: a gap from the words around it, weighted by place (Mnih and Kavukcuoglu 2013).

.. math:: P(w \mid c) = \operatorname{softmax}\Big(\big(\textstyle\sum_{i \ne 0} m_i\, p_i \odot r_{c_i}\big)^\top q_w
          + b_w\Big), \qquad -n \le i \le n

r are vectors of the words around, p a vector a place, q and b a vector and a number a word that can stand in the gap; m
is 1 within the sentence and 0 beyond its marks. None of the papers' systems: a row of ours, which reads both sides of a
gap. It is trained on the occurrences of the words that can be asked for, as the paper restricts its text to sentences
that hold an answer, with the sampled softmax and the updates of touched rows of `rnn_training`.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim import checks
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, START, UNKNOWN, Sentences
from jaxsim.methods.language.rnn_training import Rows, add_rows, drawn_rows, sampled_loss
from jaxsim.optim import Fit, Run, epochs, monitor

__all__ = ["LogBilinear", "cross_entropy", "fit", "scores"]

VERSION = 1
_PIECE = 512  # batches a call


class LogBilinear(NamedTuple):
    """Parameters of the model.

    Attributes:
      around: ``[size, k]``, r; the first row is for all words without one of their own.
      places: ``[2 n, k]``, p, from -n to n without 0.
      words: ``[num_targets, k]``, q.
      bias: ``[num_targets]``, b.
      targets: ``[num_words]`` int32, the row of a word in ``words``, -1 for words that cannot be asked for.
      rarest: scalar, logarithm of the share of a word that occurs once.
    """

    around: jax.Array
    places: jax.Array
    words: jax.Array
    bias: jax.Array
    targets: jax.Array
    rarest: jax.Array


class _Constants(NamedTuple):
    log_draws: jax.Array
    cumulative: jax.Array
    rate: jax.Array


def within(windows: jax.Array) -> jax.Array:
    """Which words of windows are in the same sentence as the word in the middle.

    Args:
      windows: ``[B, 2 n + 1]`` numbers of words.

    Returns:
      ``[B, 2 n]`` booleans, without the middle.

    Example:
      >>> within(jnp.array([[5, 1, 6, 7, 2]])).tolist()
      [[False, False, True, False]]
    """
    side = windows.shape[1] // 2
    inside = (windows != START) & (windows != END)
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
      sums: of squared gradients: ``[size]``, ``[2 n, k]``, ``[num_targets]`` and ``[num_targets]``; donated.
      windows: ``[c, B, 2 n + 1]`` numbers of words, the word in the gap in the middle.
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
        inside, drawn = within(windows), drawn_rows(key, constants.cumulative, number)
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
    sentences: Sentences,
    targets,
    *,
    size: int,
    key: jax.Array,
    k: int = 200,
    window: int = 10,
    dev=None,
    negatives: int = 128,
    batch: int = 64,
    learning_rate: float = 0.05,
    adagrad: float = 1.0,
    run: Run | None = None,
    **options,
) -> Fit:
    """Learns to fill gaps from the occurrences of the words that can be asked for.

    Args:
      sentences: the text.
      targets: numbers of the words that can be asked for; those that do not occur are left out.
      size: words with numbers below it have vectors of their own as context; `Sentences.size` gives that of a cut-off.
      key: PRNG key of the start, of the order of the occurrences and of the draws.
      k: width of the vectors.
      window: words on either side, n.
      dev: ``[m]`` int32 tokens of held-out sentences, by whose cross-entropy the best step is chosen; None for none.
      negatives: words drawn a batch.
      batch: gaps of a step of the tables. A frequent word stands around many gaps of a large batch and moves once for
        each of them, too far at first: small batches learn more from a pass.
      learning_rate: of a batch's gradient.
      adagrad: where the sums of squared gradients start, by whose root a step is divided.
      run: how long it runs, by what score, and where it is kept; a step is a pass over the occurrences. By default at
        most 10, best by ``dev`` with a patience of 1, and a checkpoint after each.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit` of `LogBilinear`; losses are means over the occurrences, in nats; an evaluation is a batch.

    Raises:
      ValueError: for bad settings, fewer than two targets that occur, fewer occurrences than a batch, or a checkpoint
        of another problem.
      FloatingPointError: if a loss is not finite, naming the batch.

    Example:
      >>> from jaxsim.data.corpora import questions, sentences
      >>> words = ("<unk>", "<s>", "</s>", "hot", "tea", "cold", "ice")
      >>> text = sentences.Sentences(np.array([1, 3, 4, 2, 1, 5, 6, 2] * 100, np.int32), words,
      ...                            np.array([0, 200, 200, 100, 100, 100, 100]), "0", {})
      >>> model = fit(text, [4, 6], size=7, key=jax.random.key(0), k=4, window=1, negatives=8, batch=16).params
      >>> asked = questions.collect([questions.question("Cold _____", ["tea", "ice"])])
      >>> scores(model, questions.encode(asked, text.numbers)).argmax().item()
      1
    """
    checks.random_key(key)
    for name, value in {"k": k, "window": window, "negatives": negatives, "batch": batch}.items():
        checks.whole(value, name, 1)
    checks.whole(size, "size", 4)
    for name, value in {"learning_rate": learning_rate, "adagrad": adagrad}.items():
        checks.expect(0 < value < float("inf"), name, "a positive number", value)
    rows, counts = _targets(sentences, targets)
    tokens = sentences.tokens
    places = np.flatnonzero(rows[tokens] >= 0)
    batches = len(places) // batch
    checks.expect(batches > 0, "sentences", f"at least {batch} occurrences of the targets (a batch)", len(places))
    dtype, keys = jnp.result_type(float), jax.random.split(key, 3)
    learned = (
        jax.random.uniform(keys[0], (size, k), dtype, -0.1, 0.1), jnp.ones((2 * window, k), dtype),
        jax.random.uniform(keys[1], (len(counts), k), dtype, -0.1, 0.1),
        jnp.asarray(np.log(counts / counts.sum()), dtype),
    )
    sums = tuple(jnp.full(shape, adagrad, dtype) for shape in (size, (2 * window, k), len(counts), len(counts)))
    draws = counts**0.75 / (counts**0.75).sum()
    constants = _Constants(*(jnp.asarray(one, dtype) for one in (np.log(draws), np.cumsum(draws), learning_rate)))

    def model(learned) -> LogBilinear:
        return LogBilinear(*learned, jnp.asarray(rows), jnp.asarray(-np.log(counts.sum()), dtype))

    def epoch(state, number):
        learned, sums = state
        turn = jax.random.fold_in(keys[2], number)
        order = np.asarray(jax.random.permutation(turn, len(places)))[: batches * batch].reshape(batches, batch)
        losses = []
        for begin in tqdm(range(0, batches, _PIECE), desc=f"log-bilinear, pass {number + 1}", leave=False,
                          disable=None if chosen.progress else True):
            at = places[order[begin : begin + _PIECE]]
            learned, sums, values = train_batches(
                learned, sums, _windows(tokens, at, window, size), rows[tokens[at]], jax.random.fold_in(turn, begin),
                constants, number=negatives,
            )
            losses.append(np.asarray(values))
            if not np.isfinite(losses[-1]).all():
                break
        losses = np.concatenate(losses)
        return (learned, sums), losses, float(losses.mean()), float("nan")

    default = Run(max_iter=10, checkpoint_every=1, progress=True, patience=None if dev is None else 1)
    chosen = Run.of(run, options, default)
    if dev is not None and chosen.validate is None:
        checks.expect(_asked(rows, np.asarray(dev)).any(), "dev", "at least one word that can be asked for", "none")
        chosen = Run.of(chosen, {"validate": lambda found: -cross_entropy(found, dev)})
    settings = learning_rate, adagrad, negatives, batch, window
    data = np.frombuffer(sentences.sha256.encode(), np.uint8), rows
    return chosen.run(
        _epochs, model, epoch, (learned, sums), label="log-bilinear",
        mark=lambda: monitor.mark_of(fit, learned, jax.random.key_data(key), settings, data),
    )


def _epochs(epoch, state, *, mark, label: str, run: Run) -> Fit:
    return epochs.run(epoch, state, mark=mark, run=run, label=label)


def _targets(sentences: Sentences, targets) -> tuple[np.ndarray, np.ndarray]:
    """The row of every word among the targets that occur, and their counts."""
    targets = np.asarray(targets).reshape(-1)
    right = not targets.size or np.issubdtype(targets.dtype, np.integer)
    checks.expect(right, "targets", "numbers of words, whole numbers", targets.dtype)
    targets = np.unique(targets.astype(np.int64))
    wrong = targets[(targets < 0) | (targets >= len(sentences.counts))]
    checks.expect(not wrong.size, "targets", f"numbers of words below {len(sentences.counts)}", wrong[:1].tolist())
    targets = targets[(targets > END) & (sentences.counts[targets] > 0)]
    checks.expect(len(targets) > 1, "targets", "at least two words that occur in the text", len(targets))
    rows = np.full(len(sentences.counts), -1, np.int32)
    rows[targets] = np.arange(len(targets), dtype=np.int32)
    return rows, sentences.counts[targets].astype(np.float64)


def _windows(tokens: np.ndarray, at: np.ndarray, window: int, size: int) -> np.ndarray:
    """The words around places of a text, ``[..., 2 window + 1]`` int32; beyond it, marks."""
    spread = at[..., None] + np.arange(-window, window + 1)
    beyond = (spread < 0) | (spread >= len(tokens))
    words = tokens[np.clip(spread, 0, len(tokens) - 1)]
    return np.where(beyond, END, np.where((words >= 0) & (words < size), words, UNKNOWN)).astype(np.int32)


@jax.jit
def _log_probabilities(model: LogBilinear, windows: jax.Array) -> jax.Array:
    """Of all targets in the middle of windows, ``[B, num_targets]``."""
    side = windows.shape[1] // 2
    context = jnp.concatenate([windows[:, :side], windows[:, side + 1 :]], axis=1)
    read = predicted(model.around[context], model.places, within(windows))
    return jax.nn.log_softmax(read @ model.words.T + model.bias[None], axis=-1)


def _at(model: LogBilinear, tokens: np.ndarray, places: np.ndarray, batch: int) -> np.ndarray:
    """Log probability of the target that stands at each of the places of a text."""
    rows, side, result = np.asarray(model.targets), len(model.places) // 2, np.zeros(len(places))
    for begin in range(0, len(places), batch):
        at = np.resize(places[begin : begin + batch], batch)  # repeated to one shape
        logs = _log_probabilities(model, _windows(tokens, at, side, len(model.around)))
        right = jnp.take_along_axis(logs, jnp.asarray(rows[tokens[at]])[:, None], 1)
        result[begin : begin + batch] = np.asarray(right)[: len(places) - begin, 0]
    return result


def cross_entropy(model: LogBilinear, tokens, *, batch: int = 1024) -> float:
    """Mean negative log probability of the targets in a text, given that the word is one of them.

    Args:
      model: of `fit`.
      tokens: ``[n]`` int32, sentence after sentence, each with both marks.
      batch: gaps that are processed together.

    Returns:
      Nats a target.

    Raises:
      ValueError: for a text without targets.
    """
    tokens = np.asarray(tokens)
    places = np.flatnonzero(_asked(np.asarray(model.targets), tokens))
    checks.expect(len(places) > 0, "tokens", "at least one word that can be asked for", "none")
    return float(-_at(model, tokens, places, batch).mean())


def _asked(rows: np.ndarray, tokens: np.ndarray) -> np.ndarray:
    """Which tokens are targets, of which each word has a row, or -1."""
    known = (tokens >= 0) & (tokens < len(rows))
    return known & (rows[np.where(known, tokens, 0)] >= 0)


def scores(model: LogBilinear, filled: Filled, *, batch: int = 1024) -> np.ndarray:
    """Log probabilities of the words of choices, each given all other words of its sentence.

    Args:
      model: of `fit`.
      filled: the questions.
      batch: words that are processed together.

    Returns:
      ``[num_questions, num_choices]`` float64, in nats; a word that is no target counts as one that occurs once.
    """
    tokens = np.where(filled.tokens < 0, END, filled.tokens)
    places = np.flatnonzero(filled.chosen)
    asked = _asked(np.asarray(model.targets), tokens.reshape(-1)[places])
    logs = np.full(len(places), float(model.rarest))
    logs[asked] = _at(model, tokens.reshape(-1), places[asked], batch)
    owners = places // tokens.shape[-1]
    return np.bincount(owners, logs, minlength=filled.lengths.size).reshape(filled.lengths.shape)
