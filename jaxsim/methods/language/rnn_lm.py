r"""Recurrent language models (002, sentence completion §3.3): tanh, GRU and LSTM cells.

.. math:: s_t = f(x_t + s_{t-1} W), \qquad P(w \mid w_1 … w_t) = \operatorname{softmax}(Y p(s_t) + b)_w

x is the row of the word read last in a table of inputs, s the state of the cells, p an optional projection, Y the table
of outputs. The state is set to zero before every sentence, so that a sentence is scored as it was trained; one mark,
``<s>``, starts a sentence and ends the one before. Words outside the network's vocabulary share the row of ``<unk>``;
their probability is that of the row times their share of its occurrences in training, so that the model is a
distribution over all words of the text.

Training (`rnn_training`) is truncated back-propagation over parallel streams with a sampled softmax. Every probability
that is given here has its full denominator.

Differs from the paper: the hyperbolic tangent stands for its sigmoid; GRU and LSTM are rows of ours.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from tqdm import tqdm

from jaxsim import checks, optim
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, START, UNKNOWN, Sentences
from jaxsim.methods.language import ngram
from jaxsim.methods.language.rnn_cells import GRU, LSTM, TANH, Cell, Network, RnnLm, start
from jaxsim.methods.language.rnn_training import Constants, State, train_windows
from jaxsim.optim import Fit, Run, epochs, monitor

__all__ = ["GRU", "LSTM", "PUBLISHED", "TANH", "Cell", "Network", "RnnLm", "fit", "log_probs", "perplexity", "scores"]

VERSION = 1
PUBLISHED = {"network": Network(LSTM, embed=200, hidden=600, layers=2, project=400, dropout=0.1), "negatives": None,
             "streams": 20, "window": 35, "learning_rate": 0.5, "adagrad": None, "halve_after": 5}
"""The settings of the word network with 69.4 % on the Holmes questions (Park et al.; 10 passes, words seen 6 times)."""

_PIECE = 64  # windows a call: some seconds, after which the bar moves


def fit(
    sentences: Sentences,
    *,
    size: int,
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
    """Trains a recurrent language model on sentences.

    Args:
      sentences: the text.
      size: words with numbers below it have rows of their own; `Sentences.size` gives that of a cut-off.
      key: PRNG key of the start, the draws and dropout.
      network: cells and sizes; the paper's are ``Network(TANH)``.
      dev: ``[m]`` int32 tokens of held-out sentences, by whose perplexity the best step is chosen; None for none.
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
        10 steps, best by ``dev`` with a patience of 2, and a checkpoint after every step.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit` of `RnnLm`; the loss is the mean over a step's words, each before its own update, with the estimated
      denominator where there is one, in nats; ``validation`` is the negative perplexity of ``dev``. An evaluation is a
      window.

    Raises:
      ValueError: for bad settings, a text that is shorter than the streams, or a checkpoint of another problem.
      FloatingPointError: if a loss is not finite, naming the window.

    Example:
      >>> from jaxsim.data.corpora import sentences
      >>> text = sentences.Sentences(np.array([1, 3, 4, 2] * 200, np.int32), ("<unk>", "<s>", "</s>", "tea", "now"),
      ...                            np.array([0, 200, 200, 200, 200]), "0", {})
      >>> model = fit(text, size=5, key=jax.random.key(0), network=Network(TANH, 8, 8), negatives=4, streams=4,
      ...             window=8, max_iter=20).params
      >>> round(perplexity(model, text.tokens[:40]), 1)
      1.0
    """
    checks.random_key(key)
    _check(network, size, negatives, streams, window, learning_rate, adagrad, halve_after, clip, words_a_step)
    text = _stream(sentences, size)
    windows = (len(text) // streams - 1) // window
    checks.expect(windows > 0, "sentences", f"at least {streams * (window + 1)} tokens ({streams} streams of a window "
                  f"of {window} and the word that follows)", len(text))
    a_step = windows if words_a_step is None else max(1, round(words_a_step / (streams * window)))
    dtype, keys = jnp.result_type(float), jax.random.split(key)
    shares, log_share = _shares(sentences, size)
    *tables, core = start(network, size, jnp.asarray(log_share, dtype), keys[0])
    optimizer = optim.sgd(1.0) if adagrad is None else optim.adagrad(1.0, adagrad)
    sums = None if adagrad is None else tuple(jnp.full(size, adagrad, dtype) for _ in tables)
    draws = np.exp(0.75 * log_share)
    draws /= draws.sum()
    constants = Constants(*(jnp.asarray(one, dtype) for one in (np.log(draws), np.cumsum(draws), learning_rate, clip)),
                          jnp.int32(START))

    def model(learned) -> RnnLm:
        return RnnLm(*learned, jnp.asarray(shares, dtype), network=network, backward=bool(backward))

    def epoch(state, number):
        learned, rest = state
        losses, first = [], number * a_step
        bar = tqdm(total=a_step * streams * window, unit=" words", unit_scale=True, leave=False, desc="RNN",
                   disable=None if chosen.progress else True)
        end = begin = first
        while end < first + a_step:
            begin, end = end, min(end + _PIECE, first + a_step)
            halved = 0
            if halve_after is not None:  # a piece ends where its pass does, as the next pass has another rate
                end, halved = min(end, (begin // windows + 1) * windows), max(0, begin // windows - halve_after + 1)
            now = constants._replace(rate=constants.rate * 0.5**halved)
            numbers = np.arange(begin, end)
            parts = _windows(text, numbers, streams, window, windows, backward)
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
        _bounds(np.asarray(dev), "dev")
        chosen = Run.of(chosen, {"validate": lambda found: -perplexity(found, dev)})
    # The last number: checkpoints of before halved the rate by steps, not by passes.
    settings = (learning_rate, network.dropout, clip, adagrad or 0, negatives or 0, streams, window, a_step,
                halve_after or 0, int(backward), *([] if halve_after is None or a_step == windows else [1]))
    learned = (*tables, core)
    data = np.frombuffer(sentences.sha256.encode(), np.uint8), shares
    # The shapes of what is learned tell these three apart, but not a cell of the caller.
    problem = fit if network.cell in (TANH, GRU, LSTM) else (fit, network.cell)
    return chosen.run(
        _epochs, model, epoch, (learned, State(sums, optimizer.init(core), network.zeros(streams, dtype))),
        mark=lambda: monitor.mark_of(problem, learned, jax.random.key_data(key), settings, data), label="RNN",
    )


def _epochs(epoch, state, *, mark, label: str, run: Run) -> Fit:
    return epochs.run(epoch, state, mark=mark, run=run, label=label)


def _check(network, size, negatives, streams, window, learning_rate, adagrad, halve_after, clip, words_a_step) -> None:
    """Refuses settings that are none."""
    checks.kind(network, "network", Network)
    network.check()
    checks.whole(size, "size", 4)
    for name, value in {"streams": streams, "window": window}.items():
        checks.whole(value, name, 1)
    for name, value in {"negatives": negatives, "halve_after": halve_after, "words_a_step": words_a_step}.items():
        checks.whole(value, name, 1, or_none=True)
    for name, value in {"learning_rate": learning_rate, "clip": clip, "adagrad": adagrad}.items():
        right = (name == "adagrad" and value is None) or 0 < value < float("inf")
        checks.expect(right, name, "a positive number", value)


def _stream(sentences: Sentences, size: int) -> np.ndarray:
    """The tokens as rows of the tables, one mark between sentences."""
    text = np.asarray(sentences.tokens)
    text = text[text != END]
    checks.expect(len(text) > 0, "sentences", "at least one word", "none")
    return np.where(text < size, text, UNKNOWN)


def _shares(sentences: Sentences, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Logarithms of each word's share of its row's occurrences, ``[num_words]``, and of the rows', ``[size]``."""
    counts = np.asarray(sentences.counts, np.float64)
    rare = np.arange(len(counts)) >= size
    rare[UNKNOWN] = True
    rows = np.ones(size)
    rows[: len(counts)] += counts[:size]
    rows[UNKNOWN] = counts[rare].sum() + 1
    rows[END] = 1e-9  # never read, never right: one mark stands between sentences
    return ngram.unknown_shares(counts, size), np.log(rows / rows.sum())


def _windows(text: np.ndarray, numbers: np.ndarray, streams: int, window: int, windows: int, backward: bool):
    """The windows of these numbers: words read, words that follow, and whether the streams begin anew."""
    within = numbers % windows
    places = (within[:, None, None] * window + np.arange(window + 1)[None, :, None]
              + len(text) // streams * np.arange(streams)[None, None, :])
    words = text[len(text) - 1 - places if backward else places]
    return words[:, :-1], words[:, 1:], within == 0


def _bounds(tokens: np.ndarray, argument: str) -> tuple[np.ndarray, np.ndarray]:
    """Where sentences start and where they end."""
    starts, ends = np.flatnonzero(tokens == START), np.flatnonzero(tokens == END)
    whole = len(starts) > 0 and len(starts) == len(ends) and starts[0] == 0 and ends[-1] == len(tokens) - 1
    whole = whole and bool((starts < ends).all() and (ends[:-1] < starts[1:]).all())
    checks.expect(whole, argument, "sentences, each with <s> before and </s> behind", "others, or none")
    return starts, ends


def log_probs(model: RnnLm, tokens, *, batch: int = 128) -> np.ndarray:
    """Natural logarithms of the probabilities of tokens, each sentence from its start.

    Args:
      model: of `fit`.
      tokens: ``[n]`` int32, sentence after sentence, each with both marks; numbers that training did not see are words
        that do not occur.
      batch: sentences that are read side by side.

    Returns:
      ``[n]`` float64; 0 where the token is ``<s>``. Of a model that reads backward, a word's is that given the words
      after it, and that of ``</s>`` is the probability that the sentence starts where it does.

    Raises:
      ValueError: for no tokens, or a sentence without its marks.
    """
    checks.whole(batch, "batch", 1)
    tokens = np.asarray(tokens)
    starts, ends = _bounds(tokens, "tokens")
    shares = np.asarray(model.shares, np.float64)
    numbers = np.where((tokens >= 0) & (tokens < len(shares)), tokens, UNKNOWN)
    size = len(model.bias)
    rows = np.where((numbers == END) | (numbers == START), START, np.where(numbers < size, numbers, UNKNOWN))
    result = np.zeros(len(tokens))
    order = np.argsort(ends - starts, kind="stable")
    for begin in range(0, len(order), batch):
        some = order[begin : begin + batch]
        steps = -(-int((ends - starts)[some[-1]]) // 8) * 8  # few lengths, few programs
        words = np.full((steps + 1, batch), START, np.int32)
        for column, number in enumerate(some):
            sentence = rows[starts[number] : ends[number] + 1]
            words[: len(sentence), column] = sentence[::-1] if model.backward else sentence
        logs = np.asarray(_log_probabilities(model, words[:-1], words[1:]), np.float64)
        for column, number in enumerate(some):
            values = logs[: ends[number] - starts[number], column]
            values = np.append(values[:-1][::-1], values[-1]) if model.backward else values
            result[starts[number] + 1 : ends[number] + 1] = values
    return result + np.where((numbers == START) | (numbers == END), 0, shares[numbers])


@jax.jit
def _log_probabilities(model: RnnLm, words: jax.Array, right: jax.Array) -> jax.Array:
    """Log softmax of the rows that follow, a step at a time, because a step's scores are the whole vocabulary."""
    states = model.network.zeros(words.shape[1], model.bias.dtype)
    read, _ = model.network.run(model.core, model.inputs[words], jnp.zeros(words.shape, bool), states)

    def one(step):
        outputs, following = step
        logits = outputs @ model.outputs.T + model.bias[None]
        return jnp.take_along_axis(logits, following[:, None], 1)[:, 0] - jax.nn.logsumexp(logits, -1)

    return jax.lax.map(one, (read, right))


def scores(model: RnnLm, filled: Filled) -> np.ndarray:
    """Log probabilities of questions with every choice filled in.

    Args:
      model: of `fit`.
      filled: the questions.

    Returns:
      ``[num_questions, num_choices]`` float64, in nats.
    """
    lengths = filled.lengths.reshape(-1)
    rows = filled.tokens.reshape(len(lengths), -1)
    logs = log_probs(model, rows[np.arange(rows.shape[1])[None] < lengths[:, None]])
    return np.add.reduceat(logs, np.cumsum(lengths) - lengths).reshape(filled.lengths.shape)


def perplexity(model: RnnLm, tokens) -> float:
    """Perplexity of sentences: of their words and ends.

    Args:
      model: of `fit`.
      tokens: as for `log_probs`.

    Returns:
      The exponential of the mean negative log probability.

    Raises:
      ValueError: as `log_probs`.
    """
    tokens = np.asarray(tokens)
    return float(np.exp(-log_probs(model, tokens).sum() / (tokens != START).sum()))
