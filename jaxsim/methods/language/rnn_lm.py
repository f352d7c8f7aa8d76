r"""Recurrent language models (002, sentence completion §3.3): tanh, GRU and LSTM cells.

.. math:: s_t = f(x_t + s_{t-1} W), \qquad P(w \mid w_1 … w_t) = \operatorname{softmax}(Y p(s_t) + b)_w

x is the row of the word read last in a table of inputs, s the state of the cells, p an optional projection, Y the table
of outputs. The state is set to zero before every sentence marker, so that a sentence is scored as it was trained. Words
outside the network's vocabulary share one row; their probability is that of the row times their share of its
occurrences in training, so that the model is a distribution over all words of the text.

Training (`rnn_training`) is truncated back-propagation over parallel streams with a sampled softmax. Every probability
that is given here has its full denominator.

Differs from the paper: the hyperbolic tangent stands for its sigmoid; GRU and LSTM are rows of ours.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim import checks, optim
from jaxsim.methods.language.rnn_cells import GRU, LSTM, TANH, Cell, Network, RnnLm, start
from jaxsim.methods.language.rnn_training import Constants, State, train_windows
from jaxsim.optim import Fit, Run, epochs, monitor

__all__ = ["GRU", "LSTM", "PUBLISHED", "TANH", "Cell", "Network", "RnnLm", "fit", "log_likelihoods", "perplexity",
           "sentence_scores"]

VERSION = 1
PUBLISHED = {"network": Network(LSTM, embed=200, hidden=600, layers=2, project=400, dropout=0.1), "negatives": None,
             "streams": 20, "window": 35, "learning_rate": 0.5, "adagrad": None, "halve_after": 5}
"""The settings of the word network with 69.4 % on the Holmes questions (Park et al.; 10 passes, words seen 6 times)."""

_PIECE = 64  # windows a call: some seconds, after which the bar moves


def fit(
    tokens,
    *,
    boundary: int,
    num_words: int,
    key: jax.Array,
    network: Network = Network(),  # noqa: B008, it cannot be changed
    dev=None,
    backward: bool = False,
    negatives: int | None = 512,
    streams: int = 64,
    window: int = 32,
    learning_rate: float = 0.05,
    adagrad: float | None = 1e-2,
    halve_after: int | None = None,
    clip: float = 5.0,
    words_a_step: int | None = None,
    run: Run | None = None,
    **options,
) -> Fit:
    """Trains a recurrent language model on a text.

    Args:
      tokens: ``[n]`` integers, the words of all sentences in order, with the sentence marker between them; a memory map
        will do.
      boundary: id of the sentence marker.
      num_words: rows of the tables, K: the most frequent words and one row for all others.
      key: PRNG key of the start, the draws and dropout.
      network: cells and sizes; the paper's are ``Network(TANH)``.
      dev: ``[m]`` integers, held-out text, by whose perplexity the best step is chosen; None for none.
      backward: whether sentences are read from the end to the start.
      negatives: words drawn a window for the denominator; None for the full softmax.
      streams: parts of the text that are read side by side.
      window: words through which gradients go back.
      learning_rate: of a window's gradient, summed over its words and averaged over the streams.
      adagrad: None for plain SGD; or where the sums of squared gradients start, by whose root a step is divided: one
        sum a row of the tables, one an entry elsewhere.
      halve_after: passes over the text after which every pass halves the learning rate; None for a fixed one.
      clip: largest norm of a window's gradient, words that occur twice counted apart.
      words_a_step: words between two looks at ``dev``, rounded to whole windows; None for a pass over the text.
      run: how long it runs, by what score, and where it is kept. A step has ``words_a_step`` words. By default at most
        10 steps, best by ``dev``, a patience of 2, and a checkpoint after every step.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit` of `RnnLm`; the loss is the mean over a step's words, each before its own update, with the sampled
      denominator where there is one, in nats; ``validation`` is the negative perplexity of ``dev``. An evaluation is a
      window.

    Raises:
      ValueError: for bad settings, a text without a sentence marker or shorter than the streams, ids below 0, or a
        checkpoint of another problem.
      FloatingPointError: if a loss is not finite, naming the window.

    Example:
      >>> text = np.array([0, 1, 2, 3] * 200)
      >>> model = fit(text, boundary=0, num_words=5, key=jax.random.key(0), network=Network(TANH, 8, 8), negatives=4,
      ...             streams=4, window=8, max_iter=20).params
      >>> round(perplexity(model, text[:40]), 1)
      1.0
    """
    tokens = _checked(tokens, "tokens", boundary)
    network.check()
    for name, value in {"streams": streams, "window": window}.items():
        checks.whole(value, name, 1)
    checks.whole(num_words, "num_words", 3)
    checks.whole(negatives, "negatives", 1, or_none=True)
    checks.whole(halve_after, "halve_after", 1, or_none=True)
    checks.whole(words_a_step, "words_a_step", 1, or_none=True)
    for name, value in {"learning_rate": learning_rate, "clip": clip}.items():
        checks.expect(0 < value < float("inf"), name, "a positive number", value)
    windows = (len(tokens) // streams - 1) // window
    checks.expect(windows > 0, "tokens", f"at least {streams * (window + 1)} words ({streams} streams of a window of "
                  f"{window} and the word that follows)", len(tokens))
    a_step = windows if words_a_step is None else max(1, round(words_a_step / (streams * window)))
    dtype = jnp.result_type(float)
    ids, shares, log_share = vocabulary(tokens, num_words, boundary, dtype)
    keys = jax.random.split(key)
    *tables, core = start(network, len(log_share), jnp.asarray(log_share), keys[0])
    optimizer = optim.sgd(1.0) if adagrad is None else optim.adagrad(1.0, adagrad)
    sums = None if adagrad is None else tuple(jnp.full(len(log_share), adagrad, dtype) for _ in tables)
    draws = 0.75 * log_share
    draws = draws - np.logaddexp.reduce(draws)
    constants = Constants(jnp.asarray(draws, dtype), jnp.cumsum(jnp.exp(draws)).astype(dtype),
                          *(jnp.asarray(one, dtype) for one in (learning_rate, clip)), jnp.int32(ids[boundary]))

    def model(learned) -> RnnLm:
        return RnnLm(*learned, jnp.asarray(ids), jnp.asarray(shares), network=network, boundary=int(boundary),
                     backward=bool(backward))

    def epoch(state, number):
        learned, rest = state
        losses, first = [], number * a_step
        halved = 0 if halve_after is None else max(0, first // windows - halve_after + 1)
        now = constants._replace(rate=constants.rate * 0.5**halved)
        bar = tqdm(total=a_step * streams * window, unit=" words", unit_scale=True, leave=False, desc="RNN",
                   disable=None if chosen.progress else True)
        for begin in range(first, first + a_step, _PIECE):
            numbers = np.arange(begin, min(begin + _PIECE, first + a_step))
            parts = _windows(tokens, ids, numbers, streams, window, windows, backward)
            learned, rest, values = train_windows(learned, rest, parts, jax.random.fold_in(keys[1], begin), now,
                                                  network=network, number=negatives, optimizer=optimizer)
            losses.append(np.asarray(values))
            bar.set_postfix({"perplexity": f"{np.exp(min(float(losses[-1].mean()), 50)):.1f}"}, refresh=False)
            bar.update(len(numbers) * streams * window)
            if not np.isfinite(losses[-1]).all():
                break
        bar.close()
        losses = np.concatenate(losses)
        return (learned, rest), losses, float(losses.mean()), float("nan")

    default = Run(max_iter=10, checkpoint_every=1, progress=True, patience=None if dev is None else 2)
    chosen = Run.of(run, options, default)
    if dev is not None and chosen.validate is None:
        held = _checked(dev, "dev", boundary)
        chosen = Run.of(chosen, {"validate": lambda learned: -perplexity(learned, held)})
    settings = (learning_rate, clip, 0 if adagrad is None else adagrad, negatives or 0, streams, window, a_step,
                halve_after or 0, int(backward), int(boundary))
    learned = (*tables, core)
    return chosen.run(
        _epochs, model, epoch, (learned, State(sums, optimizer.init(core), network.zeros(streams, dtype))),
        mark=lambda: monitor.mark_of(fit, learned, jax.random.key_data(key), settings, np.asarray(tokens), ids),
        label="RNN",
    )


def _epochs(epoch, state, *, mark, label: str, run: Run) -> Fit:
    """`epochs.run`, which takes ``run`` last."""
    return epochs.run(epoch, state, mark=mark, run=run, label=label)


def _checked(tokens, argument: str, boundary: int) -> np.ndarray:
    """A text as integers, memory-mapped where it was."""
    tokens = np.asanyarray(tokens)
    fits = tokens.ndim == 1 and np.issubdtype(tokens.dtype, np.integer)
    checks.expect(fits, argument, "a list of integers", f"shape {tokens.shape}, dtype {tokens.dtype}")
    checks.expect(len(tokens) > 0, argument, "at least one word", "none")
    checks.expect(int(tokens.min()) >= 0, argument, "ids of at least 0", int(tokens.min()))
    there = bool((tokens[: 1 << 20] == boundary).any() or (tokens == boundary).any())
    checks.expect(there, argument, f"the sentence marker {boundary} between sentences", "none of it")
    return tokens


def vocabulary(tokens: np.ndarray, num_words: int, boundary: int, dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of a network for the words of a text, the most frequent ones first.

    Args:
      tokens: ``[n]`` integers.
      num_words: the most rows, K.
      boundary: id of the sentence marker, which has a row of its own.
      dtype: of what is given.

    Returns:
      ``(ids, shares, log_share)``: ``[num_types]`` int32 rows; ``[num_types]`` logarithms of each word's share of its
      row's occurrences (words of the last row count once more, so that one that never occurs has a share); ``[K]``
      logarithms of the rows' shares of the text.

    Example:
      >>> ids, shares, _ = vocabulary(np.array([0, 1, 1, 0, 2, 3]), 3, 0, np.float32)
      >>> ids.tolist(), np.exp(shares).round(2).tolist()
      ([0, 1, 2, 2], [1.0, 1.0, 0.5, 0.5])
    """
    counts = np.bincount(tokens)
    rank = counts.astype(np.float64)
    rank[boundary] = np.inf
    order = np.argsort(-rank, kind="stable")
    kept = order[: min(num_words - 1, len(counts))]
    kept = kept[counts[kept] > 0]
    ids = np.full(len(counts), len(kept), np.int32)
    ids[kept] = np.arange(len(kept), dtype=np.int32)
    rare = ids == len(kept)
    shares = np.zeros(len(counts))
    shares[rare] = np.log((counts[rare] + 1) / (counts[rare] + 1).sum()) if rare.any() else 0
    totals = np.append(counts[kept], counts[rare].sum() + 1).astype(np.float64)
    return ids, shares.astype(dtype), np.log(totals / totals.sum()).astype(dtype)


def _windows(tokens, ids, numbers, streams: int, window: int, windows: int, backward: bool):
    """The windows of these numbers: words read, words that follow, and whether the streams begin anew."""
    within = numbers % windows
    length = len(tokens) // streams
    places = (within[:, None, None] * window + np.arange(window + 1)[None, :, None]
              + length * np.arange(streams)[None, None, :])
    if backward:
        places = len(tokens) - 1 - places
    words = ids[tokens[places]]
    return words[:, :-1], words[:, 1:], within == 0


def log_likelihoods(model: RnnLm, sentences: Sequence, *, batch: int = 128) -> list[np.ndarray]:
    r"""Log probability of every word of sentences, and of their ends.

    Args:
      model: of `fit`.
      sentences: ``[n]`` integers each, ids of the text's vocabulary, without markers.
      batch: sentences that are read side by side.

    Returns:
      ``[n + 1]`` floats a sentence, in nats: of its words in order, and of the sentence marker that follows (of a model
      that reads backward: that stands before).

    Raises:
      ValueError: for ids that training did not see.

    Example:
      >>> text = np.array([0, 1, 2, 3] * 200)
      >>> model = fit(text, boundary=0, num_words=5, key=jax.random.key(0), network=Network(TANH, 8, 8), negatives=4,
      ...             streams=4, window=8, max_iter=20).params
      >>> log_likelihoods(model, [[1, 2, 3]])[0].round(0) + 0
      array([0., 0., 0., 0.], dtype=float32)
    """
    checks.whole(batch, "batch", 1)
    ids, shares = np.asarray(model.ids), np.asarray(model.shares)
    sentences = [np.asarray(sentence, np.int64).reshape(-1) for sentence in sentences]
    for sentence in sentences:
        wrong = sentence[(sentence < 0) | (sentence >= len(ids))]
        checks.expect(not wrong.size, "sentences", f"ids of words in [0, {len(ids)})", wrong[:1].tolist())
    order = sorted(range(len(sentences)), key=lambda number: len(sentences[number]))
    result: list[np.ndarray] = [np.zeros(0)] * len(sentences)
    for begin in range(0, len(order), batch):
        some = order[begin : begin + batch]
        steps = -(-(len(sentences[some[-1]]) + 1) // 8) * 8  # few lengths, few programs
        words = np.full((steps + 1, batch), model.boundary, np.int64)
        for column, number in enumerate(some):
            sentence = sentences[number][:: -1 if model.backward else 1]
            words[1 : len(sentence) + 1, column] = sentence
        rows = ids[words]
        logs = np.asarray(_log_probabilities(model, rows[:-1], rows[1:])) + shares[words[1:]]
        for column, number in enumerate(some):
            values = logs[: len(sentences[number]) + 1, column]
            result[number] = np.append(values[:-1][::-1], values[-1]) if model.backward else values
    return result


@functools.partial(jax.jit)
def _log_probabilities(model: RnnLm, words: jax.Array, right: jax.Array) -> jax.Array:
    """Log softmax of the rows that follow, a step at a time, because a step's scores are the whole vocabulary."""
    states = model.network.zeros(words.shape[1], model.bias.dtype)
    begins = jnp.zeros(words.shape, bool)
    read, _ = model.network.run(model.core, model.inputs[words], begins, states)

    def one(step):
        outputs, following = step
        scores = outputs @ model.outputs.T + model.bias[None]
        return jnp.take_along_axis(scores, following[:, None], 1)[:, 0] - jax.nn.logsumexp(scores, -1)

    return jax.lax.map(one, (read, right))


def sentence_scores(model: RnnLm, sentences: Sequence) -> np.ndarray:
    """Log probability of sentences: the sums of `log_likelihoods`.

    Args:
      model: of `fit`.
      sentences: as for `log_likelihoods`.

    Returns:
      ``[len(sentences)]`` float64, in nats.

    Example:
      >>> sentence_scores(fit(np.array([0, 1] * 40), boundary=0, num_words=3, key=jax.random.key(0), negatives=2,
      ...                     network=Network(TANH, 4, 4), streams=2, window=4, max_iter=30).params, [[1]]).round(1) + 0
      array([-0.])
    """
    return np.array([logs.sum(dtype=np.float64) for logs in log_likelihoods(model, sentences)])


def perplexity(model: RnnLm, tokens) -> float:
    """Perplexity of a text: words and ends of sentences, each sentence apart.

    Args:
      model: of `fit`.
      tokens: ``[n]`` integers with the sentence marker between sentences.

    Returns:
      The exponential of the mean negative log probability.

    Raises:
      ValueError: for a text without a sentence, or ids that training did not see.
    """
    tokens = _checked(tokens, "tokens", model.boundary)
    sentences = [one[one != model.boundary] for one in np.split(tokens, np.flatnonzero(tokens == model.boundary))]
    sentences = [one for one in sentences if len(one)]
    checks.expect(len(sentences) > 0, "tokens", "at least one sentence", "markers alone")
    logs = log_likelihoods(model, sentences)
    return float(np.exp(-np.mean(np.concatenate(logs), dtype=np.float64)))
