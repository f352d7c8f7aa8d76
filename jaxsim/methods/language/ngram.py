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

import numbers
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from jaxsim import checks, io
from jaxsim.data import files
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, MARKS, START, UNKNOWN, Sentences
from jaxsim.optim import Fit, closed_form

__all__ = ["SMOOTHINGS", "VERSION", "NGram", "fit", "load", "log_probs", "perplexity", "read_arpa", "save", "scores",
           "unknown_shares", "write_arpa"]

VERSION = 1
SMOOTHINGS = ("good-turing", "kneser-ney")
_K = 7  # Katz: larger counts are not discounted
_BLOCK = 1 << 22  # keys that are looked up at once
_NEVER = -99.0  # log10 in ARPA files of what has no probability
_PARTS = ("keys", "log_prob", "log_backoff")
_HEAD = re.compile(r"ngram ([0-9]{1,9}) *= *([0-9]{1,15})\s*")


class NGram(NamedTuple):
    """A back-off model.

    Attributes:
      keys: for each order n from 2 on, ``[num_ngrams]`` int64, ascending: number of the first n - 1 words among the
        n-grams of the order below (words, for n = 2) times the vocabulary's size, plus the last word.
      log_prob: for each order ``[num_ngrams]`` float32, natural logarithm of the last word's probability.
      log_backoff: for each order but the last ``[num_ngrams]`` float32, natural logarithm of the back-off weight.
      discounts: for each order from 2 on, what was taken from counts 1, 2, ... and from all larger ones.
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
    whole = all(isinstance(one, numbers.Integral) for one in cutoffs)
    fits = whole and len(cutoffs) == order and cutoffs[0] == 1 and list(cutoffs) == sorted(cutoffs)
    checks.expect(fits, "cutoffs", f"{order} whole numbers, the first 1, none below the one before", cutoffs)
    size = sentences.size(min_count)
    tokens = np.where(sentences.tokens < size, sentences.tokens, UNKNOWN).astype(np.int32)
    grams = _count(tokens, size, order)
    del tokens
    raw = np.bincount(sentences.tokens)[len(MARKS) :]
    params = _estimate(grams, size, raw, smoothing, cutoffs)
    return closed_form(None)._replace(params=params)  # the mark that is never read has a probability of 0


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
    grams = _Grams(np.bincount(tokens, minlength=size).astype(np.int64), [], [], [])
    inside = tokens[:-1] != END  # positions where an n-gram may start: no sentence ends before its last word
    keys = _joined(tokens[:-1], size, tokens[1:])
    pairs, counts = _distinct(keys[inside])
    _add(grams, pairs, counts, lambda block: np.divmod(block, size))
    if order == 2:
        return grams
    pair_of = _numbered(pairs, keys)
    inside = inside[:-1] & inside[1:]
    keys = _joined(pair_of[:-1], size, tokens[2:])
    triples, counts = _distinct(keys[inside])
    _add(grams, triples, counts, lambda block: np.divmod(block, size))
    if order == 3:
        return grams
    triple_of = _numbered(triples, keys) if order == 5 else None
    del keys
    inside = inside[:-1] & (tokens[2:-1] != END)
    fours, counts = _distinct(_joined(pair_of[:-2], len(pairs), pair_of[2:])[inside])

    def cut(block: np.ndarray, table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Number of all words but the last, and the last word; the second half is a bigram."""
        first, second = np.divmod(block, len(pairs))
        return _numbered(table, first * size + pairs[second] // size), pairs[second] % size

    _add(grams, fours, counts, lambda block: cut(block, triples))
    if order == 4:
        return grams
    del fours
    inside = inside[:-1] & (tokens[3:-1] != END)
    fives, counts = _distinct(_joined(triple_of[:-2], len(pairs), pair_of[3:])[inside])
    table = _joined(grams.prefix[2], size, grams.last[2])
    _add(grams, fives, counts, lambda block: cut(block, table))
    return grams


def _joined(first: np.ndarray, size: int, second: np.ndarray) -> np.ndarray:
    """``first * size + second`` as int64, with one array of that size."""
    keys = first.astype(np.int64)
    keys *= size
    keys += second
    return keys


def _add(grams: _Grams, keys: np.ndarray, counts: np.ndarray, cut: Callable) -> None:
    """Adds an order to the counts; ``cut`` makes the first words' number and the last word of a block of keys."""
    prefix, last = np.empty(len(keys), np.int32), np.empty(len(keys), np.int32)
    for begin in range(0, len(keys), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        prefix[part], last[part] = cut(keys[part])
    grams.prefix.append(prefix)
    grams.last.append(last)
    grams.counts.append(counts)


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


def _chen_goodman(counts: np.ndarray) -> tuple[float, float, float]:
    """Discounts of counts 1, 2, and 3 or more; those of kenlm's fallback where there is too little text."""
    n = _counts_of_counts(counts, 4)
    if np.all(n[1:] > 0):
        y = n[1] / (n[1] + 2 * n[2])
        discounts = tuple(float(c - (c + 1) * y * n[c + 1] / n[c]) for c in (1, 2, 3))
        if all(0 <= discount <= c for c, discount in enumerate(discounts, start=1)):
            return discounts
    return 0.5, 1.0, 1.5


def _taken(counts: np.ndarray, smoothing: str) -> np.ndarray:
    """What is taken from counts 0, 1, ...; the last entry is for all that are larger."""
    if smoothing == "kneser-ney":
        return np.array([0, *_chen_goodman(counts)])
    factors = _turing(counts)
    if not factors:  # too little text for Good-Turing: half a count from each
        return np.array([0, 0.5])
    return np.array([0, *((1 - factor) * c for c, factor in enumerate(factors, start=1)), 0])


def _katz_words(words: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """Relative frequencies of single words, none of them 0 but that of ``<s>``."""
    words = words.astype(np.float64)
    words[START] = 0
    if words[UNKNOWN] == 0:  # no word was rare: words never seen get the share that Good-Turing gives them
        singles = float((raw == 1).sum())
        words[UNKNOWN] = words.sum() * max(singles, 0.5) / max(words.sum() - singles, 1.0)
    words = np.where((words == 0) & (np.arange(len(words)) != START), 0.5, words)  # this text lacks the word
    return words / words.sum()


def _kneser_ney_words(words: np.ndarray, raw: np.ndarray) -> np.ndarray:
    """Shares of single words by how many words they follow, interpolated with the uniform distribution."""
    words = words.astype(np.float64)
    words[START] = 0
    # The rarest words are not in the vocabulary, so its own counts of counts would say nothing.
    taken = _taken(raw, "kneser-ney")[np.minimum(words, 3).astype(int)]
    base = (words - taken + taken.sum() / (len(words) - 1)) / words.sum()
    base[START] = 0
    return base


def _followed(grams: _Grams, size: int) -> list[np.ndarray]:
    """For each order but the last, how many different words stand before an n-gram; its count where it starts one."""
    suffix, adjusted = None, []
    for at, (prefix, last) in enumerate(zip(grams.prefix, grams.last, strict=True)):
        if at == 0:
            suffix = last
        else:
            table, shorter, suffix = _joined(grams.prefix[at - 1], size, grams.last[at - 1]), suffix, []
            for begin in range(0, len(last), _BLOCK):
                part = slice(begin, begin + _BLOCK)
                suffix.append(_numbered(table, _joined(shorter[prefix[part]], size, last[part])))
            suffix = np.concatenate([np.zeros(0, np.int32), *suffix])
        adjusted.append(_sums(suffix, np.ones(1), size if at == 0 else len(grams.last[at - 1])).astype(np.int32))
    starts = np.arange(size) == START
    for at, counts in enumerate(grams.counts[:-1]):
        starts = starts[grams.prefix[at]]  # nothing stands before the start of a sentence
        adjusted[at + 1] = np.where(starts, counts, adjusted[at + 1])
    return adjusted


def _sums(groups: np.ndarray, values: np.ndarray, number: int) -> np.ndarray:
    """``[number]`` float64 sums of the values by group, a block at a time; one value alone stands for all."""
    sums = np.zeros(number)
    for begin in range(0, len(groups), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        weights = values[part] if len(values) > 1 or len(groups) == 1 else None
        sums += np.bincount(groups[part], weights, number)
    return sums


def _estimate(grams: _Grams, size: int, raw: np.ndarray, smoothing: str, cutoffs: Sequence[int]) -> NGram:
    """Probabilities and back-off weights of the n-grams that are kept; the counts are given up on the way."""
    interpolated = smoothing == "kneser-ney"
    adjusted = _followed(grams, size) if interpolated else None
    lower = _kneser_ney_words(adjusted[0], raw) if interpolated else _katz_words(grams.words, raw)
    with np.errstate(divide="ignore"):
        logs, backoffs, keys, used = [np.log(lower).astype(np.float32)], [], [], []
    suffix, number_of = None, np.arange(size, dtype=np.int32)
    for at in range(len(grams.prefix)):
        prefix, last, raw_counts = grams.prefix[at], grams.last[at], grams.counts[at]
        counts = adjusted[at + 1] if interpolated and at + 1 < len(grams.prefix) else raw_counts
        taken = _taken(counts, smoothing)
        used.append(tuple(taken[1:].tolist()))
        below = np.minimum(counts, len(taken) - 1)
        totals = _sums(prefix, counts, len(number_of))
        free = np.zeros(len(number_of))
        for begin in range(0, len(prefix), _BLOCK):
            part = slice(begin, begin + _BLOCK)
            free += np.bincount(prefix[part], taken[below[part]], len(number_of))
        if not interpolated:  # where every word after a history is frequent, one count more makes room for others
            totals += free < 1e-6
        kept = np.flatnonzero(raw_counts >= cutoffs[at + 1])
        before = prefix[kept]
        probability = (counts[kept] - taken[below[kept]]) / totals[before]
        share = free / np.maximum(totals, 1e-300) if interpolated else None
        before_kept, last = number_of[before], last[kept]
        grams.prefix[at] = grams.last[at] = grams.counts[at] = None
        suffix = last if at == 0 else _numbered(keys[-1], _joined(suffix[before_kept], size, last))
        if interpolated:
            probability += share[before] * lower[suffix]
        number_of = np.full(len(raw_counts), -1, np.int32)
        number_of[kept] = np.arange(len(kept), dtype=np.int32)
        del prefix, raw_counts, counts, below, before, kept
        weights, probability = _backoff(probability, lower[suffix], before_kept, len(logs[-1]))
        with np.errstate(divide="ignore"):
            backoffs.append(np.log(weights).astype(np.float32))
            logs.append(np.log(probability).astype(np.float32))
        keys.append(_joined(before_kept, size, last))
        lower = probability
    return NGram(tuple(keys), tuple(logs), tuple(backoffs), tuple(used))


def _backoff(
    probability: np.ndarray, lower: np.ndarray, history: np.ndarray, number: int
) -> tuple[np.ndarray, np.ndarray]:
    """Back-off weights of histories; and the probabilities, raised where nothing is left to give them to."""
    shared = np.bincount(history, probability, number)
    rest = 1 - np.bincount(history, lower, number)
    if (full := rest <= 1e-9).any():  # every word is kept after such a history: no other can take what is left
        probability = probability * np.where(full, 1 / np.maximum(shared, 1e-9), 1.0)[history]
        shared[full] = 1
    free = np.maximum(1 - shared, 0)
    return np.where(full, 1.0, free / np.where(full, 1.0, rest)), probability


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


def scores(params: NGram, filled: Filled, *, counts: np.ndarray | None = None) -> np.ndarray:
    """Log-probability of the whole sentence with each choice (completion §3).

    Args:
      params: the model.
      filled: the questions with every choice filled in.
      counts: ``[num_words]`` how often each word occurs in the training text, as `Sentences.counts`. A word that the
        model does not know then has its share of the probability of ``<unk>``; without counts it has all of it, as
        each of the others has, so that rare choices are preferred to frequent ones.

    Returns:
      ``[num_questions, num_choices]`` float64, in nats.
    """
    inside = filled.tokens >= 0
    values = np.zeros(filled.tokens.shape)
    values[inside] = log_probs(params, filled.tokens[inside])
    if counts is not None:
        shares = unknown_shares(counts, params.size)
        values[inside] += shares[np.where(filled.tokens[inside] < len(shares), filled.tokens[inside], UNKNOWN)]
    return values.sum(axis=-1)


def unknown_shares(counts: np.ndarray, size: int) -> np.ndarray:
    """Logarithm of each word's share of the occurrences of all words outside a vocabulary.

    Args:
      counts: ``[num_words]`` how often each occurs. All that do not occur are one word, ``<unk>``; each word counts
        once more than it occurs, so that this one has a share too.
      size: of the vocabulary, marks included.

    Returns:
      ``[num_words]`` float64; 0 for words of the vocabulary.

    Example:
      >>> np.exp(unknown_shares(np.array([0, 9, 9, 5, 2, 1]), 4)).round(2).tolist()
      [0.17, 1.0, 1.0, 1.0, 0.5, 0.33]
    """
    rare = np.arange(len(counts)) >= size
    rare[UNKNOWN] = True
    more = np.asarray(counts, np.float64) + 1
    return np.where(rare, np.log(more / more[rare].sum()), 0.0)


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


def save(params: NGram, path: str | os.PathLike) -> None:
    """Writes a model into one file of arrays, which is whole or absent.

    Args:
      params: the model; its discounts are left out.
      path: the file, replaced whole.

    Raises:
      OSError: it cannot be written.

    Example:
      >>> import tempfile
      >>> one = NGram((np.array([4]),), (np.log([0.5, 0.1, 0.4]).astype(np.float32), np.zeros(1, np.float32)),
      ...             (np.zeros(3, np.float32),))
      >>> with tempfile.TemporaryDirectory() as place:
      ...     save(one, place + "/model.npz")
      ...     load(place + "/model.npz").keys[0].tolist()
      [4]
    """
    path = Path(path)
    io.remove_stale(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    arrays = {f"{name}_{at}": array for name in _PARTS for at, array in enumerate(getattr(params, name))}
    try:
        with part.open("wb") as file:
            np.savez(file, **arrays)
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def load(path: str | os.PathLike) -> NGram:
    """Reads a file that `save` wrote.

    Args:
      path: the file.

    Returns:
      The model, bit for bit, without discounts.

    Raises:
      OSError: it cannot be read.
      ValueError: for a damaged file, and for arrays that no model has, whoever wrote them; names the file.
    """
    try:
        with np.load(path) as packed:
            arrays = {name: packed[name] for name in packed.files}
    except OSError:
        raise
    except Exception as error:  # a damaged archive raises anything
        reason = " ".join(str(error).split())[:200]
        raise ValueError(f"{path}: expected a whole model of n-grams, got a damaged one ({reason})") from error
    order = sum(name.startswith("log_prob_") for name in arrays)
    lengths = dict(zip(_PARTS, (order - 1, order, order - 1), strict=True))
    names = {part: [f"{part}_{at}" for at in range(number)] for part, number in lengths.items()}
    fits = order >= 2 and set(arrays) == set().union(*names.values())
    checks.expect(fits, str(path), "keys, probabilities and back-off weights of two orders or more",
                  ", ".join(sorted(arrays)) or "nothing")  # fmt: skip
    params = NGram(*(tuple(arrays[name] for name in names[part]) for part in _PARTS))
    with checks.within(str(path)):
        _check(params)
    return params


def _check(params: NGram) -> None:
    """Refuses arrays through which a look-up would lead nowhere."""
    words = params.log_prob[0].shape
    checks.expect(len(words) == 1 and words[0] >= len(MARKS), "log_prob_0", f"at least {len(MARKS)} words", words)
    for at, keys in enumerate(params.keys):
        checks.array(keys, f"keys_{at}", "int64", (None,))
    sizes = [params.size, *map(len, params.keys)]
    for at, keys in enumerate(params.keys):
        most = params.size * sizes[at]
        inside = not len(keys) or (keys[0] >= 0 and keys[-1] < most and bool((keys[1:] > keys[:-1]).all()))
        checks.expect(inside, f"keys_{at}", f"numbers that rise, from 0 to below {most}", "others")
    for name, parts, most in (("log_prob", params.log_prob, 1e-3), ("log_backoff", params.log_backoff, np.inf)):
        for at, values in enumerate(parts):
            fits = values.dtype == np.float32 and values.shape == (sizes[at],)
            checks.expect(fits, f"{name}_{at}", f"float32 of shape ({sizes[at]},)",
                          f"{values.dtype} of shape {values.shape}")
            legal = bool((values <= most).all()) and not np.isposinf(values).any()  # NaN is not; minus infinity is
            checks.expect(legal, f"{name}_{at}", "logarithms", "NaN, infinity or more than there can be")


def write_arpa(params: NGram, vocabulary: Sequence[str], path: str | os.PathLike) -> None:
    """Writes a model in ARPA format, which most programs for n-grams read.

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
    """Reads a model in ARPA format.

    Args:
      path: the file, plain or compressed.

    Returns:
      The model and its vocabulary: the three marks, then the other words in the order of the file.

    Raises:
      ValueError: a malformed line (named), an n-gram whose first words are no n-gram or that stands twice, or a file
        that is truncated, or has other numbers of n-grams than it says.
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
        twice = bool(np.any(key[order][1:] == key[order][:-1]))
        checks.expect(not twice, str(path), f"every {n}-gram once", "one more than once")
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
    said: dict[int, int] = {}
    for number, line in enumerate(files.read_lines(path), start=1):
        where = f"{path}, line {number}"
        if line.startswith("\\end\\"):
            for n, rows in enumerate(orders, start=1):
                number = said.get(n, len(rows))
                checks.expect(number == len(rows), str(path), f"{number} {n}-grams, as its head says", len(rows))
            return orders, True
        if line.startswith("\\") and line.endswith("-grams:"):
            orders.append([])
        elif not orders and (found := _HEAD.fullmatch(line)):
            said[int(found[1])] = int(found[2])
        elif orders and line.strip():
            log, *more = line.split("\t")
            row = tuple(more[0].split(" ")) if more else ()
            values = [checks.decimal(one) for one in (log, *more[1:])]
            checks.expect(len(row) == len(orders) and len(values) <= 2 and not any(map(np.isnan, values)), where,
                          f"a logarithm, {checks.counted(len(orders), 'word')} and maybe a weight",
                          repr(line[:60]))  # fmt: skip
            orders[-1].append((row, values[0], values[1] if len(values) > 1 else 0.0))
    return orders, False
