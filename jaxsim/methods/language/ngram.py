r"""Back-off n-gram models: Katz with Good–Turing discounts (completion §3.1), and interpolated modified Kneser–Ney.

An n-gram that was kept has a probability p of its last word; for any other word the probability of the shorter history
counts, times a back-off weight that makes the sum over the vocabulary 1:

.. math:: P(w | h) = p(hw) \text{ if kept, else } \beta(h) P(w | h'), \quad
   \beta(h) = (1 - \sum_{kept} p(hw)) / (1 - \sum_{kept} P(w | h'))

Good–Turing (Katz 1987): p = d_c c(hw) / c(h), where counts up to seven are discounted by
:math:`d_c = (c^*/c - a) / (1 - a)`, :math:`c^* = (c + 1) n_{c+1} / n_c`, :math:`a = 8 n_8 / n_1`, and n_c is how many
n-grams occur c times. Modified Kneser–Ney (Chen and Goodman 1999): p = (c(hw) - D_c) / c(h) + γ(h) P(w | h'), where the
counts of shorter n-grams are numbers of different words before them.

A model holds every n-gram as the number of its first n - 1 words (itself an n-gram of the order below) and its last
word, in one integer; looking one up is a binary search. Histories do not reach over the start of a sentence.

Differs from the paper: the CMU toolkit's trigram cut-offs are arguments; the paper's 26 million n-grams are those of
all orders without the 4-grams that occur once.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxsim import checks, io
from jaxsim.data import files
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, MARKS, START, UNKNOWN, Sentences
from jaxsim.optim import Fit, closed_form

__all__ = ["SMOOTHINGS", "VERSION", "NGram", "fit", "log_probs", "perplexity", "read_arpa", "scores",
           "write_arpa"]

VERSION = 1
SMOOTHINGS = ("good-turing", "kneser-ney")
_K = 7  # Katz: larger counts are not discounted
_BLOCK = 1 << 22  # keys that are looked up at once
_NEVER = -99.0  # log10 in ARPA files of what has no probability


class NGram(NamedTuple):
    """A back-off model.

    Attributes:
      keys: for each order n from 2 on, ``[num_ngrams]`` int64, ascending: number of the first n - 1 words among the
        n-grams of the order below (words, for n = 2) times the vocabulary's size, plus the last word.
      log_prob: for each order ``[num_ngrams]`` float32, natural logarithm of the last word's probability.
      log_backoff: for each order but the last ``[num_ngrams]`` float32, natural logarithm of the back-off weight.
      discounts: for each order, the discounts of counts 1, 2, ... that were used.
    """

    keys: tuple[np.ndarray, ...]
    log_prob: tuple[np.ndarray, ...]
    log_backoff: tuple[np.ndarray, ...]
    discounts: tuple[tuple[float, ...], ...] = ()

    @property
    def order(self) -> int:
        """The longest n-grams."""
        return len(self.log_prob)

    @property
    def size(self) -> int:
        """Words of the vocabulary, marks included."""
        return len(self.log_prob[0])


def fit(
    sentences: Sentences,
    *,
    order: int = 4,
    smoothing: str = "good-turing",
    min_count: int = 3,
    cutoffs: Sequence[int] = (1, 1, 1, 2, 2),
) -> Fit:
    """Counts n-grams and estimates a back-off model.

    Args:
      sentences: the training text.
      order: the longest n-grams, 2 to 5; 4 in the paper for novels, 3 for newspapers.
      smoothing: ``"good-turing"`` (the paper's) or ``"kneser-ney"``.
      min_count: words that occur less often become ``<unk>``; 3 in the paper.
      cutoffs: for each order from 1 on, how often an n-gram must occur to be kept; never falling. The first is 1.

    Returns:
      `Fit` of an `NGram`, a closed form.

    Raises:
      ValueError: settings out of range, or a text that is too short.

    Example:
      >>> import tempfile
      >>> from jaxsim.data.corpora import sentences
      >>> with tempfile.TemporaryDirectory() as place:
      ...     text = sentences.build([("a", "Tea now. Tea then. No tea.")], place + "/tokens")
      ...     model = fit(text, order=2, min_count=1).params
      ...     round(float(np.exp(log_probs(model, text.encode(["<s>", "tea"])))[1]), 2)
      0.5
    """
    checks.whole(order, "order", 2)
    checks.expect(order <= 5, "order", "2 to 5", order)
    checks.expect(smoothing in SMOOTHINGS, "smoothing", f"one of {', '.join(SMOOTHINGS)}", repr(smoothing))
    cutoffs = tuple(cutoffs)[:order]
    fits = len(cutoffs) == order and cutoffs[0] == 1 and list(cutoffs) == sorted(cutoffs)
    checks.expect(fits, "cutoffs", f"{order} whole numbers, the first 1, none below the one before", cutoffs)
    size = sentences.size(min_count)
    tokens = np.where(sentences.tokens < size, sentences.tokens, UNKNOWN).astype(np.int32)
    grams = _count(tokens, size, order)
    del tokens
    raw = np.bincount(sentences.tokens)[len(MARKS) :]
    estimate = _katz if smoothing == "good-turing" else _kneser_ney
    return closed_form(_assemble(grams, size, cutoffs, *estimate(grams, size, raw)))


class _Grams(NamedTuple):
    """Counts of all n-grams.

    Attributes:
      words: ``[size]`` int64 counts of single words, ``<s>`` included.
      prefix: for each order from 2 on, ``[num_ngrams]`` int32, number of the first n - 1 words in the order below.
      last: ``[num_ngrams]`` int32, the last word.
      counts: ``[num_ngrams]`` int32.
    """

    words: np.ndarray
    prefix: list[np.ndarray]
    last: list[np.ndarray]
    counts: list[np.ndarray]


def _count(tokens: np.ndarray, size: int, order: int) -> _Grams:
    """All n-grams inside sentences, in lexicographic order.

    Two halves of an n-gram make its key, so that four words of 17 bits fit into 64: the numbers of two bigrams, or of
    a trigram and a bigram.
    """
    words = np.bincount(tokens, minlength=size).astype(np.int64)
    # Positions where an n-gram of each length may start: no end of a sentence before its last word.
    inside = tokens[:-1] != END
    keys = tokens[:-1].astype(np.int64) * size + tokens[1:]
    pairs, counts = _distinct(keys[inside])
    grams = _Grams(words, [(pairs // size).astype(np.int32)], [(pairs % size).astype(np.int32)], [counts])
    if order == 2:
        return grams
    pair_of = _numbered(pairs, keys)
    del keys
    inside = inside[:-1] & inside[1:]
    keys = pair_of[:-1].astype(np.int64) * size + tokens[2:]
    triples, counts = _distinct(keys[inside])
    _add(grams, triples // size, triples % size, counts)
    if order == 3:
        return grams
    triple_of = _numbered(triples, keys) if order == 5 else None
    del keys
    inside = inside[:-1] & (tokens[2:-1] != END)
    keys = (pair_of[:-2].astype(np.int64) * len(pairs) + pair_of[2:])[inside]
    fours, counts = _distinct(keys)
    del keys
    first, second = np.divmod(fours, len(pairs))
    del fours
    prefix = _numbered(triples, first * size + pairs[second] // size)
    _add(grams, prefix, pairs[second] % size, counts)
    if order == 4:
        return grams
    inside = inside[:-1] & (tokens[3:-1] != END)
    fives, counts = _distinct((triple_of[:-2].astype(np.int64) * len(pairs) + pair_of[3:])[inside])
    first, second = np.divmod(fives, len(pairs))
    prefix = _numbered(_keys(grams, 2, size), first * size + pairs[second] // size)
    _add(grams, prefix, pairs[second] % size, counts)
    return grams


def _add(grams: _Grams, prefix: np.ndarray, last: np.ndarray, counts: np.ndarray) -> None:
    grams.prefix.append(prefix.astype(np.int32))
    grams.last.append(last.astype(np.int32))
    grams.counts.append(counts)


def _keys(grams: _Grams, at: int, size: int) -> np.ndarray:
    """Keys of the n-grams of order ``at`` + 2, ascending."""
    return grams.prefix[at].astype(np.int64) * size + grams.last[at]


def _distinct(keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct keys, ascending, and how often each occurs (int32); sorts in place."""
    keys.sort()
    first = np.flatnonzero(np.concatenate(([len(keys) > 0], keys[1:] != keys[:-1])))
    counts = np.diff(first, append=len(keys)).astype(np.int32)
    return keys[first], counts


def _numbered(table: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Place of each key in an ascending table, int32; -1 where it is not there."""
    places = np.full(len(keys), -1, np.int32)
    if not len(table):
        return places
    for begin in range(0, len(keys), _BLOCK):
        block = keys[begin : begin + _BLOCK]
        at = np.minimum(np.searchsorted(table, block), len(table) - 1)
        places[begin : begin + _BLOCK] = np.where(table[at] == block, at, -1)
    return places


def _suffixes(grams: _Grams, at: int, size: int, shorter: np.ndarray | None) -> np.ndarray:
    """For n-grams of order ``at`` + 2 the number of their last n - 1 words in the order below."""
    if at == 0:
        return grams.last[0]
    return _numbered(_keys(grams, at - 1, size), shorter[grams.prefix[at]].astype(np.int64) * size + grams.last[at])


def _counts_of_counts(counts: np.ndarray, most: int) -> np.ndarray:
    """How many n-grams occur 0, 1, ... ``most`` times, float64."""
    return np.bincount(np.minimum(counts, most + 1), minlength=most + 2)[: most + 1].astype(np.float64)


def _turing(counts: np.ndarray) -> tuple[float, ...]:
    """Katz's factors d_1 ... d_k for the largest k up to seven with which all lie between 0 and 1; maybe none."""
    n = _counts_of_counts(counts, _K + 1)
    for k in range(_K, 0, -1):
        if np.all(n[1 : k + 2] > 0):
            c = np.arange(1, k + 1)
            a = (k + 1) * n[k + 1] / n[1]
            factors = ((c + 1) * n[2 : k + 2] / n[1 : k + 1] / c - a) / (1 - a) if a != 1 else np.zeros(k)
            if np.all((factors > 0) & (factors < 1)):
                return tuple(float(factor) for factor in factors)
    return ()


def _katz(grams: _Grams, size: int, raw: np.ndarray):
    """Discounted relative frequencies of all orders, for `_assemble`; nothing is interpolated."""
    frequencies, used = [], []
    words = grams.words.astype(np.float64)
    words[START] = 0
    if words[UNKNOWN] == 0:  # no word was rare: words never seen get the share that Good-Turing gives them
        singles = float((raw == 1).sum())
        words[UNKNOWN] = words.sum() * max(singles, 0.5) / max(words.sum() - singles, 1.0)
    words = np.where((words == 0) & (np.arange(size) != START), 0.5, words)  # this text lacks the word
    base = words / words.sum()
    for prefix, counts in zip(grams.prefix, grams.counts, strict=True):
        factors = _turing(counts)
        used.append(factors)
        if factors:
            discounted = counts * np.array([0, *factors, 1])[np.minimum(counts, len(factors) + 1)]
        else:  # too little text for Good-Turing: half a count is taken from each n-gram
            discounted = counts - 0.5
        totals = np.bincount(prefix, counts)
        rest = totals - np.bincount(prefix, discounted)
        # Where every word after a history is frequent, nothing is left for others: one count more makes room.
        totals = np.where(rest < 1e-6, totals + 1, totals)
        frequencies.append(discounted / totals[prefix])
    return base, frequencies, None, tuple(used)


def _kneser_ney(grams: _Grams, size: int, raw: np.ndarray):
    """As `_katz`, with the shares of the shorter histories that are added to all probabilities."""
    suffix, adjusted = None, []
    for at in range(len(grams.prefix)):
        suffix = _suffixes(grams, at, size, suffix)
        adjusted.append(np.bincount(suffix, minlength=size if at == 0 else len(grams.last[at - 1])))
    frequencies, shares, used = [], [], []
    words = adjusted[0].astype(np.float64)
    words[START] = 0
    # The rarest words are not in the vocabulary, so its own counts of counts would say nothing.
    used.append(_chen_goodman(raw))
    base, share = _discounted(words, np.zeros(size, np.int32), used[0])
    base = base + share[0] / (size - 1)
    base[START] = 0
    starts = np.arange(size) == START
    for at, (prefix, counts) in enumerate(zip(grams.prefix, grams.counts, strict=True)):
        starts = starts[prefix]
        if at + 1 < len(grams.prefix):  # nothing stands before the start of a sentence
            counts = np.where(starts, counts, adjusted[at + 1])
        discounts = _chen_goodman(counts)
        used.append(discounts)
        frequency, share = _discounted(counts, prefix, discounts)
        frequencies.append(frequency)
        shares.append(share)
    return base, frequencies, shares, tuple(used)


def _chen_goodman(counts: np.ndarray) -> tuple[float, float, float]:
    """Discounts of counts 1, 2, and 3 or more; those of kenlm's fallback where there is too little text."""
    n = _counts_of_counts(counts, 4)
    if np.all(n[1:] > 0):
        y = n[1] / (n[1] + 2 * n[2])
        discounts = tuple(float(c - (c + 1) * y * n[c + 1] / n[c]) for c in (1, 2, 3))
        if all(0 <= discount <= c for c, discount in enumerate(discounts, start=1)):
            return discounts
    return 0.5, 1.0, 1.5


def _discounted(counts: np.ndarray, prefix: np.ndarray, discounts: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Discounted relative frequencies, and for each history the share that was taken away."""
    taken = np.array([0, *discounts])[np.minimum(counts, 3).astype(np.int64)]
    totals = np.maximum(np.bincount(prefix, counts), 1e-300)
    return (counts - taken) / totals[prefix], np.bincount(prefix, taken) / totals


def _assemble(
    grams: _Grams, size: int, cutoffs: Sequence[int], base: np.ndarray, frequencies: list[np.ndarray],
    shares: list[np.ndarray] | None, discounts: tuple,
) -> NGram:
    """Probabilities and back-off weights of the n-grams that are kept."""
    with np.errstate(divide="ignore"):
        logs, backoffs, keys = [np.log(base).astype(np.float32)], [], []
    lower, suffix, kept_of = base, None, np.arange(size, dtype=np.int32)
    for at in range(len(grams.prefix)):
        prefix, last, counts = grams.prefix[at], grams.last[at], grams.counts[at]
        suffix = _suffixes(grams, at, size, suffix)
        below = lower[suffix]
        probability = frequencies[at]
        if shares is not None:
            probability = probability + shares[at][prefix] * below
        frequencies[at] = None
        kept = counts >= cutoffs[at + 1]
        rows = kept_of[prefix[kept]]
        number = len(logs[-1])
        shared = np.bincount(rows, probability[kept], number)
        rest = 1 - np.bincount(rows, below[kept], number)
        if (full := rest <= 1e-9).any():  # every word is kept after such a history: no other can take what is left
            probability = probability * np.where(full, 1 / np.maximum(shared, 1e-9), 1.0)[kept_of[prefix]]
            shared[full] = 1
        free = np.maximum(1 - shared, 0)
        weights = np.where(rest > 1e-9, free / np.maximum(rest, 1e-9), 1.0)
        with np.errstate(divide="ignore"):
            backoffs.append(np.log(weights).astype(np.float32))
            logs.append(np.log(probability[kept]).astype(np.float32))
        keys.append(rows.astype(np.int64) * size + last[kept])
        if kept.all():
            lower = probability
        else:  # n-grams that were cut are still the last words of longer ones
            weight = np.where(kept_of[prefix] >= 0, weights[kept_of[prefix]], 1.0)
            lower = np.where(kept, probability, weight * below)
        kept_of = np.where(kept, np.cumsum(kept) - 1, -1).astype(np.int32)
    return NGram(tuple(keys), tuple(logs), tuple(backoffs), discounts)


def log_probs(params: NGram, tokens) -> np.ndarray:
    """Natural logarithm of every token's probability after the tokens before it in its sentence.

    Args:
      params: the model.
      tokens: ``[num_tokens]`` integers: sentences between marks; numbers that the model does not know count as 0.

    Returns:
      ``[num_tokens]`` float64; 0 where the token is ``<s>``.
    """
    tokens = _known(tokens, params.size)
    start = tokens == START
    places, total = tokens, params.log_prob[0][tokens].astype(np.float64)
    for keys, log_prob, log_backoff in zip(params.keys, params.log_prob[1:], params.log_backoff, strict=True):
        before = np.concatenate(([-1], places[:-1]))  # the history's number: the words that end at the token before
        history = (before >= 0) & ~start
        places = np.where(history, _numbered(keys, before.astype(np.int64) * params.size + tokens), -1)
        if len(log_backoff):
            total = total + np.where(history, log_backoff[before], 0)
        if len(keys):
            total = np.where(places >= 0, log_prob[places], total)
    total[start] = 0
    return total


def scores(params: NGram, filled: Filled) -> np.ndarray:
    """Log-probability of the whole sentence with each choice (completion §3).

    Args:
      params: the model.
      filled: the questions with every choice filled in.

    Returns:
      ``[num_questions, num_choices]`` float64, in nats.
    """
    inside = filled.tokens >= 0
    values = np.zeros(filled.tokens.shape)
    values[inside] = log_probs(params, filled.tokens[inside])
    return values.sum(axis=-1)


def perplexity(log_probabilities, tokens) -> float:
    """Perplexity of a text: the exponential of minus the mean log-probability of its tokens.

    Args:
      log_probabilities: ``[num_tokens]`` in nats, as any model's ``log_probs`` gives them.
      tokens: ``[num_tokens]``; the ends of sentences count, their starts do not; unknown words are ``<unk>``.

    Returns:
      The perplexity.

    Raises:
      ValueError: unequal shapes, or no token.

    Example:
      >>> round(perplexity(np.log([1, 0.5, 0.125]), np.array([1, 3, 2])), 6)
      4.0
    """
    tokens = np.asarray(tokens)
    values = np.asarray(log_probabilities, np.float64)
    checks.expect(values.shape == tokens.shape, "log_probabilities", f"shape {tokens.shape} (as tokens)", values.shape)
    counted = values[tokens != START]
    checks.expect(counted.size > 0, "tokens", "at least one word", "none")
    return float(np.exp(-counted.mean()))


def write_arpa(params: NGram, vocabulary: Sequence[str], path: str | os.PathLike) -> None:
    """Writes a model in the format of the ARPA, which most programs for n-grams read.

    Args:
      params: the model.
      vocabulary: number -> word, as `Sentences` has it; more words than the model's do no harm.
      path: the file, replaced whole.
    """
    path, number = Path(path), params.size
    lines = ["", "\\data\\", *(f"ngram {n}={len(part)}" for n, part in enumerate(params.log_prob, start=1))]
    parts = ["\n".join(lines) + "\n"]
    for n, log_prob in enumerate(params.log_prob, start=1):
        words = _words_of(params, n)
        logs = np.maximum(log_prob / np.log(10), _NEVER)
        weights = np.maximum(params.log_backoff[n - 1] / np.log(10), _NEVER) if n < params.order else None
        rows = [f"\n\\{n}-grams:\n"]
        for at, row in enumerate(words.tolist()):
            weight = "" if weights is None else f"\t{weights[at]:.7g}"
            rows.append(f"{logs[at]:.7g}\t{' '.join(vocabulary[word] for word in row)}{weight}\n")
        parts.append("".join(rows))
    checks.expect(len(vocabulary) >= number, "vocabulary", f"at least {number} words", len(vocabulary))
    io.write_bytes(path, ("".join(parts) + "\n\\end\\\n").encode())


def read_arpa(path: str | os.PathLike) -> tuple[NGram, tuple[str, ...]]:
    """Reads a model in the format of the ARPA.

    Args:
      path: the file, plain or compressed.

    Returns:
      The model and its vocabulary: the three marks, then the other words in the order of the file.

    Raises:
      ValueError: a malformed line (named), an n-gram whose first words are none, or a file that was cut.
    """
    orders, complete = _parse_arpa(path)
    checks.expect(complete and len(orders) >= 2, str(path), "an ARPA file of two orders or more with \\end\\",
                  f"{checks.counted(len(orders), 'order')} and {'an' if complete else 'no'} end")  # fmt: skip
    listed = [words[0] for words, _, _ in orders[0]]
    vocabulary = (*MARKS, *(word for word in listed if word not in MARKS))
    numbers, size = {word: number for number, word in enumerate(vocabulary)}, len(vocabulary)
    keys, logs, backoffs = [], [], []
    for n, rows in enumerate(orders, start=1):
        try:
            words = np.array([[numbers[word] for word in row] for row, _, _ in rows], np.int64).reshape(len(rows), n)
        except KeyError as error:
            raise ValueError(f"{path}: expected words of the 1-grams, got {error} in the {n}-grams") from error
        values = np.array([(log, weight) for _, log, weight in rows]).reshape(len(rows), 2) * np.log(10)
        places = words[:, 0].astype(np.int32)
        for at in range(1, n - 1):
            places = _numbered(keys[at - 1], places.astype(np.int64) * size + words[:, at])
        checks.expect(bool((places >= 0).all()), str(path), f"the first words of each {n}-gram among the shorter ones",
                      "one without")  # fmt: skip
        key = words[:, 0] if n == 1 else places.astype(np.int64) * size + words[:, -1]
        order = np.argsort(key, kind="stable")
        if n == 1:
            table = np.full((size, 2), (_NEVER * np.log(10), 0.0))
            table[key] = values
            values, order = table, np.arange(size)
        else:
            keys.append(key[order])
        logs.append(values[order, 0].astype(np.float32))
        backoffs.append(values[order, 1].astype(np.float32))
    return NGram(tuple(keys), tuple(logs), tuple(backoffs[:-1])), vocabulary


def _known(tokens, size: int) -> np.ndarray:
    """Tokens as int32; numbers outside the vocabulary become ``<unk>``."""
    tokens = np.asarray(tokens)
    checks.expect(tokens.ndim == 1 and np.issubdtype(tokens.dtype, np.integer), "tokens",
                  "shape (num_tokens,), integers", f"shape {tokens.shape}, {tokens.dtype}")
    return np.where((tokens >= 0) & (tokens < size), tokens, UNKNOWN).astype(np.int32)


def _words_of(params: NGram, n: int) -> np.ndarray:
    """``[num_ngrams, n]`` numbers of the words of all n-grams of one order."""
    if n == 1:
        return np.arange(params.size)[:, None]
    columns, places = [], np.arange(len(params.keys[n - 2]))
    for at in range(n - 2, -1, -1):
        places, last = np.divmod(params.keys[at][places], params.size)
        columns.append(last)
    return np.stack([places, *columns[::-1]], axis=1)


def _parse_arpa(path: str | os.PathLike) -> tuple[list[list[tuple[tuple[str, ...], float, float]]], bool]:
    """For each order the words, logarithms and back-off weights as the file has them; whether it has its end."""
    orders: list[list] = []
    for number, line in enumerate(files.read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith("\\end\\"):
            return orders, True
        if line.startswith("\\") and line.endswith("-grams:"):
            orders.append([])
        elif orders and line.strip():
            log, words, *weight = line.split("\t")
            row = tuple(words.split(" "))
            values = [checks.decimal(log), *map(checks.decimal, weight)]
            checks.expect(len(row) == len(orders) and len(values) <= 2 and not any(map(np.isnan, values)), where,
                          f"a logarithm, {checks.counted(len(orders), 'word')} and maybe a weight",
                          repr(line[:60]))  # fmt: skip
            orders[-1].append((row, values[0], values[1] if len(values) > 1 else 0.0))
    return orders, False
