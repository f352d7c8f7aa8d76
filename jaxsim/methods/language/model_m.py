r"""Model M: a class of words, then a word of the class, by two exponential models (Chen 2009; 002, completion §3.2).

.. math:: P(w \mid v u) = P(c \mid c_v c_u, v u)\, P(w \mid v u, c), \qquad
          P(y \mid h) = \frac{\exp \sum_f \lambda_f(h, y)}{\sum_{y'} \exp \sum_f \lambda_f(h, y')}

v and u are the two words before w, c is the class of w. Features of the class are the n-grams c, c_u c, c_v c_u c, u c
and v u c; of the word, within its class, w, u w and v u w. There is a feature for what was seen often enough. Both
models have the regulariser of the paper, α|λ| + λ²/2σ² a feature, and are trained by L-BFGS.

Sums over a vocabulary are never formed. Each longer feature changes a few terms of a denominator that is known, so that
with P the model without it

.. math:: \log Z = \log Z_P + \log\big(1 + \textstyle\sum_{y} P(y \mid h)\,(e^{\lambda(h, y)} - 1)\big)

Differs from the paper: |λ| is :math:`\sqrt{\lambda^2 + \epsilon^2} - \epsilon`, which L-BFGS can follow.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim import checks, optim
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, START, UNKNOWN, Sentences
from jaxsim.optim import Fit, Run

__all__ = ["ModelM", "class_objective", "fit", "log_probs", "scores", "word_objective"]

VERSION = 3
_ROWS = 2048  # histories whose denominators are in memory at once


class ModelM(NamedTuple):
    """Parameters; keys are ascending int64 numbers of n-grams, in base ``size`` with the class last where there is one.

    Attributes:
      of_word: ``[size]`` int32 classes.
      of_class: features of the class, ``{"one": [C], "two": [C, C], "three": [C · C, C], "word": [size, C], "pair":
        [n]}``; the last stands for ``pair_keys``.
      of_member: features of the word: ``{"one": [size], "two": [n], "three": [m]}``, of ``two_keys``, ``three_keys``.
      pair_keys: v u c.
      two_keys: u w.
      three_keys: v u w.
    """

    of_word: np.ndarray
    of_class: dict
    of_member: dict
    pair_keys: np.ndarray
    two_keys: np.ndarray
    three_keys: np.ndarray


class Penalty(NamedTuple):
    """The regulariser.

    Attributes:
      l1: scalar, α.
      l2: scalar, 1 / σ².
      smooth: scalar, ε.
      total: scalar, words of the text, by which the objective is divided.
    """

    l1: jax.Array
    l2: jax.Array
    smooth: jax.Array
    total: jax.Array

    def of(self, params) -> jax.Array:
        """The penalty of parameters, summed."""
        leaves = jax.tree.leaves(params)
        absolute = sum(jnp.sum(jnp.sqrt(leaf**2 + self.smooth**2) - self.smooth) for leaf in leaves)
        return self.l1 * absolute + self.l2 / 2 * sum(jnp.sum(leaf**2) for leaf in leaves)


class ClassData(NamedTuple):
    """What `class_objective` sees; seen features stand in tables by their place in the flattened table.

    Attributes:
      of_word: ``[size]`` int32.
      had: ``[C]`` bool, the classes of other words than ``<s>``, which no word is.
      places: table -> ``[n]`` int32 places of its features.
      seen: feature -> ``[n]`` how often it was seen.
      context: ``[R, 2]`` int32, class of v and word u of every distinct history of the shorter features; padded.
      context_count: ``[R]``; 0 where padded.
      pair_context: ``[P]`` int32, row in ``context`` of each v u that has features of its own.
      pair_count: ``[P]``.
      pair_of: ``[n]`` int32, ascending, the v u of each feature v u c.
      pair_class: ``[n]`` int32, its c.
      pair_whole: ``[P]`` bool, whether all classes have features there.
      penalty: the regulariser.
    """

    of_word: jax.Array
    had: jax.Array
    places: dict
    seen: dict
    context: jax.Array
    context_count: jax.Array
    pair_context: jax.Array
    pair_count: jax.Array
    pair_of: jax.Array
    pair_class: jax.Array
    pair_whole: jax.Array
    penalty: Penalty


class WordData(NamedTuple):
    """What `word_objective` sees.

    Attributes:
      of_word: ``[size]`` int32.
      class_count: ``[C]``.
      seen: feature -> ``[n]`` how often it was seen.
      two_word: ``[n]`` int32, w of each feature u w.
      two_of: ``[n]`` int32, ascending, its group u c.
      two_count: ``[G]`` words that followed in each group.
      two_whole: ``[G]`` bool, whether all words of its class have features there.
      three_word: ``[m]`` int32, w of each feature v u w.
      three_two: ``[m]`` int32, its feature u w.
      three_of: ``[m]`` int32, ascending, its group v u c.
      three_count: ``[H]``.
      three_whole: ``[H]`` bool.
      penalty: the regulariser.
    """

    of_word: jax.Array
    class_count: jax.Array
    seen: dict
    two_word: jax.Array
    two_of: jax.Array
    two_count: jax.Array
    two_whole: jax.Array
    three_word: jax.Array
    three_two: jax.Array
    three_of: jax.Array
    three_count: jax.Array
    three_whole: jax.Array
    penalty: Penalty


def _tables(params, data: ClassData) -> dict:
    """Features of the class as whole tables, 0 where there is no feature."""
    number, size = len(params["one"]), len(data.of_word)
    shapes = {"two": (number, number), "three": (number * number, number), "word": (size, number)}
    return {"one": params["one"]} | {
        name: jnp.zeros(shape[0] * shape[1], params["one"].dtype).at[data.places[name]].set(params[name]).reshape(shape)
        for name, shape in shapes.items()
    }


def _logits(tables, of_word, context):
    """Of all classes after contexts ``[B, 2]`` (class of v, word u), ``[B, C]``."""
    last = of_word[context[:, 1]]
    return (tables["one"][None] + tables["two"][last] + tables["three"][context[:, 0] * len(tables["one"]) + last]
            + tables["word"][context[:, 1]])


def class_objective(params: dict, data: ClassData) -> jax.Array:
    """Penalised negative log-likelihood of the classes, a word.

    Args:
      params: ``{"one": [C], "two", "three", "word", "pair"}``, the features that were seen.
      data: counts.

    Returns:
      Scalar, in nats.
    """
    tables = _tables(params, data)
    tables["one"] = jnp.where(data.had, params["one"], -jnp.inf)
    total = sum(jnp.sum(params[name] * data.seen[name]) for name in params)

    @jax.checkpoint
    def denominators(context):
        return jax.nn.logsumexp(_logits(tables, data.of_word, context), axis=1)

    logs = jax.lax.map(denominators, data.context.reshape(-1, min(_ROWS, len(data.context)), 2)).reshape(-1)
    total -= jnp.sum(data.context_count * logs)
    # The likelihood of a class by the shorter features, where a longer one changes it.
    row = data.pair_context[data.pair_of]
    context = data.context[row]
    last = data.of_word[context[:, 1]]
    number = len(params["one"])
    score = (params["one"][data.pair_class] + tables["two"][last, data.pair_class]
             + tables["three"][context[:, 0] * number + last, data.pair_class]
             + tables["word"][context[:, 1], data.pair_class])
    logs = _changes(jnp.exp(score - logs[row]), params["pair"], data.pair_of, data.pair_whole)
    total -= jnp.sum(data.pair_count * logs)
    return (data.penalty.of(params) - total) / data.penalty.total


def _changes(share, feature, group, whole):
    """Logarithms of denominators: what features make of the shares of a group, and what has none, ``[number]``.

    What has no feature keeps 1 less the other shares. Where all have one (``whole``) that is 0, and not a rounding,
    beside which features could not make a denominator small.
    """
    both = jax.ops.segment_sum(jnp.stack([share, share * jnp.exp(feature)], axis=1), group, len(whole),
                               indices_are_sorted=True)
    rest = jnp.where(whole, 0, jnp.maximum(1 - both[:, 0], 0))
    return jnp.log(rest + both[:, 1])


def _word_logs(params: dict, data: WordData):
    """Logarithms of the changes of denominators: of classes, of groups u c, and of groups v u c."""
    own = jnp.exp(params["one"]).at[START].set(0)  # which no word is followed by
    sums = jax.ops.segment_sum(own, data.of_word, len(data.class_count))
    logs = jnp.log(jnp.where(sums > 0, sums, 1))
    alone = params["one"] - logs[data.of_word]
    share = jnp.exp(alone[data.two_word])
    two = _changes(share, params["two"], data.two_of, data.two_whole)
    after_two = alone[data.two_word] + params["two"] - two[data.two_of]
    share = jnp.exp(after_two[data.three_two])
    three = _changes(share, params["three"], data.three_of, data.three_whole)
    return logs, two, three


def word_objective(params: dict, data: WordData) -> jax.Array:
    """Penalised negative log-likelihood of the words within their classes, a word.

    Args:
      params: ``{"one": [size], "two": [n], "three": [m]}``.
      data: counts.

    Returns:
      Scalar, in nats.
    """
    total = sum(jnp.sum(params[name] * data.seen[name]) for name in params)
    counts = data.class_count, data.two_count, data.three_count
    total -= sum(jnp.sum(count * logs) for count, logs in zip(counts, _word_logs(params, data), strict=True))
    return (data.penalty.of(params) - total) / data.penalty.total


def events(tokens, size: int) -> np.ndarray:
    """Words with the two before them, within sentences; before the first word both are ``<s>``.

    Args:
      tokens: ``[n]`` integers, sentence after sentence, each with both marks.
      size: words with numbers below it are kept.

    Returns:
      ``[m, 3]`` int64, v, u and w; ``<s>`` is no w.

    Example:
      >>> events(np.array([1, 5, 9, 2]), 6).tolist()
      [[1, 1, 5], [1, 5, 0], [5, 0, 2]]
    """
    tokens = np.asarray(tokens)
    tokens = np.where((tokens >= 0) & (tokens < size), tokens, UNKNOWN).astype(np.int64)
    at = np.flatnonzero(tokens != START)
    checks.expect(len(at) > 0 and at[0] > 0, "tokens", "sentences, each with <s> before and </s> behind", "others")
    before = tokens[at - 1]
    second = np.where(before == START, START, tokens[np.maximum(at - 2, 0)])
    return np.stack([second, before, tokens[at]], axis=1)


def _sums(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, ascending, and the sums of their counts."""
    found, inverse = np.unique(keys, return_inverse=True)
    return found, np.bincount(inverse, counts, minlength=len(found))


def _often(keys, counts, least: int) -> tuple[np.ndarray, np.ndarray]:
    found, sums = _sums(keys, counts)
    return found[sums >= least], sums[sums >= least]


def _find(keys: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Places of numbers among ascending keys, -1 for those that are not there."""
    if not len(keys):
        return np.full(np.shape(asked), -1)
    at = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
    return np.where(keys[at] == asked, at, -1)


def _class_data(v, u, c, counts, of_word, number: int, least: int, penalty: Penalty):
    """`ClassData`, the keys of v u c, and the start of the parameters."""
    size, last, before = len(of_word), of_word[u], of_word[v]
    keys = {"two": last * number + c, "three": (before * number + last) * number + c, "word": u * number + c}
    tables = {name: _sums(key, counts) for name, key in keys.items()}
    pair_keys, pair_seen = _often((v * size + u) * number + c, counts, least)
    contexts, context_count = _sums(before * size + u, counts)
    pairs, pair_count = _sums(v * size + u, counts)
    featured = np.unique(pair_keys // number)
    pair_count = pair_count[_find(pairs, featured)]
    pair_context = _find(contexts, of_word[featured // size] * size + featured % size)
    padding = -len(contexts) % min(_ROWS, max(1, len(contexts)))
    context = np.stack([contexts // size, contexts % size], axis=1)
    one = np.bincount(c, counts, minlength=number)
    dtype = jnp.result_type(float)
    had, pair_of = _had(of_word, number), _find(featured, pair_keys // number)
    seen = {"one": one, "pair": pair_seen, **{name: table[1] for name, table in tables.items()}}
    data = ClassData(
        _int(of_word), jnp.asarray(had), {name: _int(table[0]) for name, table in tables.items()},
        {name: jnp.asarray(value, dtype) for name, value in seen.items()},
        _int(np.pad(context, ((0, padding), (0, 0)))),
        jnp.asarray(np.pad(context_count, (0, padding)), dtype), _int(pair_context), jnp.asarray(pair_count, dtype),
        _int(pair_of), _int(pair_keys % number),
        jnp.asarray(np.bincount(pair_of, minlength=len(featured)) == had.sum()), penalty,
    )
    start = _class_start(tables, one, number, size, of_word)
    start = {name: jnp.asarray(values, dtype) for name, values in (start | {"pair": np.zeros(len(pair_keys))}).items()}
    return data, pair_keys, start


def _had(of_word, number: int) -> np.ndarray:
    """Which classes have other words than ``<s>``."""
    return np.isin(np.arange(number), np.delete(of_word, START))


def _class_start(tables, one, number: int, size: int, of_word) -> dict:
    """Features of the class from discounted counts: what each adds to the shorter, halved where two share it."""
    alone = np.log((one + 1) / (one + 1).sum())
    (two_keys, two), (three_keys, three), (word_keys, word) = (tables[name] for name in ("two", "three", "word"))
    pairs = np.full((number, number), -np.inf)
    pairs.flat[two_keys] = np.log(two - 0.5)
    pairs -= np.log(np.bincount(two_keys // number, two, minlength=number).clip(1))[:, None]

    def share(keys, counts, rows):
        return np.log(counts - 0.5) - np.log(np.bincount(keys // number, counts, minlength=rows)[keys // number])

    longer = share(three_keys, three, number * number) - pairs[three_keys // number % number, three_keys % number]
    behind = share(word_keys, word, size) - pairs[of_word[word_keys // number], word_keys % number]
    return {"one": alone, "two": np.clip(pairs.flat[two_keys] - alone[two_keys % number], -3, 3),
            "three": np.clip(longer, -3, 3) / 2, "word": np.clip(behind, -3, 3) / 2}


def _word_data(v, u, w, c, counts, of_word, number: int, least: int, penalty: Penalty):
    """`WordData`, the keys of u w and v u w, and the start of the parameters: discounted counts."""
    size = len(of_word)
    two_keys, two_seen = _sums(u * size + w, counts)
    three_keys, three_seen = _often((v * size + u) * size + w, counts, least)
    # Groups are of one class, so features are put in the order of their groups.
    two_group = two_keys // size * number + of_word[two_keys % size]
    order = np.argsort(two_group, kind="stable")
    two_keys, two_seen, two_group = two_keys[order], two_seen[order], two_group[order]
    three_group = three_keys // size * number + of_word[three_keys % size]
    order = np.argsort(three_group, kind="stable")
    three_keys, three_seen, three_group = three_keys[order], three_seen[order], three_group[order]
    groups, group_count = _sums(u * number + c, counts)
    long_groups, long_count = _sums((v * size + u) * number + c, counts)
    two_distinct, three_distinct = np.unique(two_group), np.unique(three_group)
    by_key = np.argsort(two_keys)
    three_two = by_key[_find(two_keys[by_key], three_keys % (size * size))]
    dtype = jnp.result_type(float)
    one = np.bincount(w, counts, minlength=size)
    class_count = np.bincount(c, counts, minlength=number)
    two_of, three_of = _find(two_distinct, two_group), _find(three_distinct, three_group)
    two_count, three_count = group_count[_find(groups, two_distinct)], long_count[_find(long_groups, three_distinct)]
    words = np.bincount(np.delete(of_word, START), minlength=number)
    two_whole, three_whole = (jnp.asarray(np.bincount(of, minlength=len(groups)) == words[groups % number])
                              for of, groups in ((two_of, two_distinct), (three_of, three_distinct)))
    seen = {"one": one, "two": two_seen, "three": three_seen}
    data = WordData(
        _int(of_word), jnp.asarray(class_count, dtype), {name: jnp.asarray(x, dtype) for name, x in seen.items()},
        _int(two_keys % size), _int(two_of), jnp.asarray(two_count, dtype), two_whole, _int(three_keys % size),
        _int(three_two), _int(three_of), jnp.asarray(three_count, dtype), three_whole, penalty,
    )
    shorter = (one[two_keys % size] + 0.5) / (class_count[of_word[two_keys % size]] + 1)
    likely = np.log((two_seen - 0.5) / two_count[two_of] / shorter)
    longer = np.log((three_seen - 0.5) / three_count[three_of] * two_count[two_of[three_two]]
                    / (two_seen[three_two] - 0.5))
    start = {"one": jnp.asarray(np.log(one + 0.5) - np.log(one + 0.5).mean(), dtype),
             "two": jnp.asarray(np.clip(likely, 0, 5), dtype), "three": jnp.asarray(np.clip(longer, 0, 5), dtype)}
    return data, two_keys, three_keys, start


def _int(values) -> jax.Array:
    return jnp.asarray(values, jnp.int32)


def fit(
    sentences: Sentences,
    of_word,
    *,
    min_count: int = 2,
    l1: float = 0.5,
    variance: float = 6.0,
    smooth: float = 1e-2,
    run: Run | None = None,
    **options,
) -> Fit:
    """Trains both models.

    Args:
      sentences: the text.
      of_word: ``[size]`` classes of the words that are kept, from 0 on; `word_classes.exchange` finds them.
      min_count: features of two words before the class or the word are those seen as often as this.
      l1: α, Chen's by default.
      variance: σ², Chen's by default.
      smooth: ε.
      run: how long each of both runs and where it is kept. By default at most 200 iterations, to a gradient norm of
        1e-5 nats a word. A checkpoint is a folder with one for each.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit` of `ModelM`; the loss is the sum of both objectives, ``history`` that of the classes and then of the words.

    Raises:
      ValueError: for bad settings, or classes of too few words.

    Example:
      >>> text = Sentences(np.array([1, 3, 4, 2, 1, 5, 6, 2] * 30), ("<unk>", "<s>", "</s>", *"abcd"),
      ...                  np.array([0, 60, 60, 30, 30, 30, 30]), "0", {})
      >>> model = fit(text, [2, 0, 1, 2, 3, 2, 3]).params
      >>> np.exp(log_probs(model, np.array([1, 3, 4, 2]))).round(1).tolist()
      [1.0, 0.5, 1.0, 1.0]
    """
    of_word = np.asarray(of_word)
    fits = of_word.ndim == 1 and np.issubdtype(of_word.dtype, np.integer) and len(of_word) > END and of_word.min() >= 0
    checks.expect(bool(fits), "of_word", "a class from 0 on for every word that is kept", f"shape {of_word.shape}")
    checks.whole(min_count, "min_count", 1)
    for name, value in {"variance": variance, "smooth": smooth}.items():
        checks.expect(0 < value < float("inf"), name, "a positive number", value)
    checks.expect(0 <= l1 < float("inf"), "l1", "a number of at least 0", l1)
    run = Run.of(run, options, Run(max_iter=200, tol=1e-5, progress=True))
    run.expect_only("Model M", "max_iter", "checkpoint", "checkpoint_every", "progress", "tol", "history_size")
    size, number = len(of_word), int(of_word.max()) + 1
    grams = events(sentences.tokens, size)
    keys, counts = np.unique((grams[:, 0] * size + grams[:, 1]) * size + grams[:, 2], return_counts=True)
    v, u, w = keys // (size * size), keys // size % size, keys % size
    c, dtype = of_word[w].astype(np.int64), jnp.result_type(float)
    penalty = Penalty(*(jnp.asarray(one, dtype) for one in (l1, 1 / variance, smooth, counts.sum())))
    wide = of_word.astype(np.int64)
    class_data, pair_keys, class_start = _class_data(v, u, c, counts, wide, number, min_count, penalty)
    word_data, two_keys, three_keys, word_start = _word_data(v, u, w, c, counts, wide, number, min_count, penalty)
    first = optim.minimize_lbfgs(class_objective, class_start, class_data, label="Model M, classes",
                                 run=_part(run, "classes"))
    second = optim.minimize_lbfgs(word_objective, word_start, word_data, label="Model M, words",
                                  run=_part(run, "words"))
    tables = {name: np.asarray(table) for name, table in _tables(first.params, class_data).items()}
    learned = {name: np.asarray(values) for name, values in second.params.items()}
    two, three = np.argsort(two_keys), np.argsort(three_keys)
    learned = {"one": learned["one"], "two": learned["two"][two], "three": learned["three"][three]}
    model = ModelM(of_word.astype(np.int32), tables | {"pair": np.asarray(first.params["pair"])}, learned, pair_keys,
                   two_keys[two], three_keys[three])
    return Fit(model, first.loss + second.loss, float(np.hypot(first.grad_norm, second.grad_norm)),
               first.converged and second.converged, first.steps + second.steps,
               first.evaluations + second.evaluations, [*first.history, *second.history])


def _part(run: Run, name: str) -> Run:
    """The same settings, with a folder of its own for the checkpoint."""
    return run if run.checkpoint is None else dataclasses.replace(run, checkpoint=Path(run.checkpoint) / name)


def _range(keys: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Places of all keys in ``[low, high)``, and the number of the range that each is in."""
    begin, end = np.searchsorted(keys, low), np.searchsorted(keys, high)
    owner = np.repeat(np.arange(len(low)), end - begin)
    return np.arange(len(owner)) - np.repeat(np.cumsum(end - begin) - (end - begin), end - begin) + begin[owner], owner


def _class_logs(model: ModelM, v, u, c) -> np.ndarray:
    """Of classes: log P(c | v u)."""
    size, number = len(model.of_word), len(model.of_class["one"])
    context = np.stack([model.of_word[v], u], axis=1)
    logits = _logits({name: np.asarray(model.of_class[name], np.float64) if name != "pair" else None
                      for name in ("one", "two")} | {name: model.of_class[name] for name in ("three", "word")},
                     model.of_word, context)
    logits[:, ~_had(model.of_word, number)] = -np.inf
    logs = logits - np.logaddexp.reduce(logits, axis=1, keepdims=True)
    pair = (v * size + u) * number
    at, owner = _range(model.pair_keys, pair, pair + number)
    features = np.asarray(model.of_class["pair"], np.float64)[at]
    share = np.exp(logs[owner, model.pair_keys[at] % number]) * np.expm1(features)
    own = _find(model.pair_keys, pair + c)
    more = np.where(own >= 0, model.of_class["pair"][own], 0) if len(model.pair_keys) else 0
    return logs[np.arange(len(c)), c] + more - np.log1p(np.bincount(owner, share, minlength=len(c)))


def log_probs(model: ModelM, tokens) -> np.ndarray:
    """Natural logarithms of the probabilities of tokens, each given the two before it.

    Args:
      model: of `fit`.
      tokens: ``[n]`` int32, sentence after sentence, each with both marks.

    Returns:
      ``[n]`` float64; 0 where the token is ``<s>``.
    """
    tokens = np.asarray(tokens)
    grams = events(tokens, len(model.of_word))
    result = np.zeros(len(tokens))
    logs = [_log_probs(model, *grams[begin : begin + _ROWS].T) for begin in range(0, len(grams), _ROWS)]
    result[tokens != START] = np.concatenate(logs)
    return result


def _log_probs(model: ModelM, v, u, w) -> np.ndarray:
    """Of words: log P(w | v u)."""
    size, of_word, learned = len(model.of_word), model.of_word, model.of_member
    c = of_word[w].astype(np.int64)
    alone = _alone(model)

    def known(keys, values, asked):
        at = _find(keys, asked)
        return np.where(at >= 0, np.asarray(values, np.float64)[at], 0) if len(keys) else np.zeros(len(asked))

    # Features u w of the class of w, then v u w, change the denominator.
    at, owner = _range(model.two_keys, u * size, (u + 1) * size)
    same = of_word[model.two_keys[at] % size] == c[owner]
    at, owner = at[same], owner[same]
    change = np.exp(alone[model.two_keys[at] % size]) * np.expm1(np.asarray(learned["two"], np.float64)[at])
    two = np.log1p(np.bincount(owner, change, minlength=len(w)))
    at, owner = _range(model.three_keys, (v * size + u) * size, (v * size + u + 1) * size)
    words = model.three_keys[at] % size
    same = of_word[words] == c[owner]
    at, owner, words = at[same], owner[same], words[same]
    shorter = alone[words] + known(model.two_keys, learned["two"], u[owner] * size + words) - two[owner]
    change = np.exp(shorter) * np.expm1(np.asarray(learned["three"], np.float64)[at])
    three = np.log1p(np.bincount(owner, change, minlength=len(w)))
    return (_class_logs(model, v, u, c) + alone[w] + known(model.two_keys, learned["two"], u * size + w) - two
            + known(model.three_keys, learned["three"], (v * size + u) * size + w) - three)


def _alone(model: ModelM) -> np.ndarray:
    """Of words by the feature w alone: log P(w | c(w)), ``[size]``."""
    one = np.array(model.of_member["one"], np.float64)
    one[START] = -np.inf  # follows no word
    sums = np.bincount(model.of_word, np.exp(one))
    return one - np.log(np.where(sums > 0, sums, 1))[model.of_word]


def scores(model: ModelM, filled: Filled) -> np.ndarray:
    """Log probabilities of questions with every choice filled in.

    Args:
      model: of `fit`.
      filled: the questions.

    Returns:
      ``[num_questions, num_choices]`` float64, in nats.
    """
    lengths: Any = filled.lengths.reshape(-1)
    rows = filled.tokens.reshape(len(lengths), -1)
    logs = log_probs(model, rows[np.arange(rows.shape[1])[None] < lengths[:, None]])
    return np.add.reduceat(logs, np.cumsum(lengths) - lengths).reshape(filled.lengths.shape)
