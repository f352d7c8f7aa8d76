r"""Metrics of lists of scores: one value per query, on the host, in float64.

Every function takes ``scores`` (higher is better) and ``labels`` of the same shape, ``[num_docs]`` for one query or
``[num_queries, num_docs]`` for many; the last axis is the list of one query. One list gives a scalar, many give
``[num_queries]`` values, and callers average. Nothing is drawn at random and no argument is changed.

**Ties.** `reciprocal_rank`, `accuracy_at_1` (mates) and `rank_loss`: a tie is an error. `auc`: a tie is one half.
`max_f1`, `tpr_at_fpr`, `roc_curve`: documents of equal score count together, because no threshold separates them.
`precision_at`, `average_precision`, `ndcg`: equal scores are taken in order of their index, the lower first.
`spearman`: ties share the mean of their ranks.

**Lists without a relevant document** score 0 in `precision_at`, `average_precision`, `ndcg` and `max_f1`, as in
trec_eval, and are refused by `auc` and `tpr_at_fpr`, which are undefined there. Infinite scores are legal, NaN is not.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim import checks

__all__ = ["accuracy_at_1", "auc", "average_precision", "exponential_gain", "linear_gain", "max_f1", "ndcg",
           "precision_at", "rank_loss", "reciprocal_rank", "roc_curve", "spearman", "tpr_at_fpr"]

_MOST_GAIN = 1e300  # of which a list of any length has a finite sum


def auc(scores, labels):
    r"""Area under the ROC curve, the Wilcoxon–Mann–Whitney statistic.

    .. math:: \frac{1}{|P||N|} \sum_{p \in P} \sum_{n \in N} [s_p > s_n] + \tfrac12 [s_p = s_n]

    Computed from one sort, so exact over millions of scores.

    Args:
      scores: ``[..., num_docs]`` real, higher is better.
      labels: ``[..., num_docs]`` 0 or 1.

    Returns:
      A float, or ``[num_queries]`` float64, in [0, 1]; 0.5 where all scores are equal.

    Raises:
      ValueError: On unequal shapes, NaN, labels other than 0 and 1, an empty list, or a list of one label only.

    Example:
      >>> float(auc([0.9, 0.5, 0.5, 0.1], [1, 0, 1, 0]))
      0.875
    """
    scores, labels = checks.binary_lists(scores, labels, both=True)
    return _each_list(_auc, scores, labels)


def max_f1(scores, labels):
    r"""The largest F1 over all thresholds, where "score at least the threshold" means relevant.

    .. math:: \max_t \; 2\,TP(t) / (2\,TP(t) + FP(t) + FN(t))

    Args:
      scores: ``[..., num_docs]`` real, higher is better.
      labels: ``[..., num_docs]`` 0 or 1.

    Returns:
      A float, or ``[num_queries]`` float64, in [0, 1]; 0 without a relevant document.

    Raises:
      ValueError: On unequal shapes, NaN, labels other than 0 and 1, or an empty list.

    Example:
      >>> round(float(max_f1([0.9, 0.5, 0.5, 0.1], [1, 0, 1, 0])), 4)
      0.8
    """
    scores, labels = checks.binary_lists(scores, labels)
    return _each_list(_max_f1, scores, labels)


def roc_curve(scores, labels):
    """The ROC curve of one list, with a point for each distinct score, from (0, 0) to (1, 1).

    Args:
      scores: ``[num_docs]`` real, higher is better.
      labels: ``[num_docs]`` 0 or 1.

    Returns:
      ``(fpr, tpr, thresholds)``, float64 arrays of one length: the rates of false and true positives when "score at
      least the threshold" means relevant. The first threshold is above every score (infinity).

    Raises:
      ValueError: On other than one list, unequal shapes, NaN, labels other than 0 and 1, or a list of one label only.

    Example:
      >>> fpr, tpr, thresholds = roc_curve([0.9, 0.5, 0.5, 0.1], [1, 0, 1, 0])
      >>> fpr.tolist(), tpr.tolist()
      ([0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0])
    """
    scores, labels = checks.binary_lists(scores, labels, both=True)
    checks.expect(scores.ndim == 1, "scores", "one list, shape (num_docs,)", scores.shape)
    true, false, thresholds = _thresholds(scores, labels)
    return (
        np.concatenate([[0.0], false / false[-1]]),
        np.concatenate([[0.0], true / true[-1]]),
        np.concatenate([[np.inf], thresholds]),
    )


def tpr_at_fpr(scores, labels, *, fpr: float):
    """The largest rate of true positives of any threshold whose rate of false positives is at most ``fpr``.

    Points between thresholds are not interpolated: a filter can only be set to a threshold, so all-equal scores give 0.

    Args:
      scores: ``[..., num_docs]`` real, higher is better.
      labels: ``[..., num_docs]`` 0 or 1.
      fpr: The rate of false positives that is allowed, in [0, 1].

    Returns:
      A float, or ``[num_queries]`` float64, in [0, 1].

    Raises:
      ValueError: On unequal shapes, NaN, labels other than 0 and 1, a list of one label only, or fpr outside [0, 1].

    Example:
      >>> float(tpr_at_fpr([0.9, 0.8, 0.5, 0.1], [1, 0, 1, 0], fpr=0.1))
      0.5
    """
    checks.expect(0 <= fpr <= 1, "fpr", "a rate in [0, 1]", fpr)
    scores, labels = checks.binary_lists(scores, labels, both=True)

    def one(scores, labels):
        false_rate, true_rate, _ = roc_curve(scores, labels)
        return true_rate[np.searchsorted(false_rate, fpr, side="right") - 1]

    return _each_list(one, scores, labels)


def average_precision(scores, labels):
    r"""Mean of the precisions at the ranks of the relevant documents; its mean over queries is MAP.

    .. math:: \frac{1}{|P|} \sum_{p \in P} \frac{|\{p' \in P : rank(p') \le rank(p)\}|}{rank(p)}

    Args:
      scores: ``[..., num_docs]`` real, higher is better; ties go to the lower index.
      labels: ``[..., num_docs]`` 0 or 1.

    Returns:
      A float, or ``[num_queries]`` float64, in [0, 1]; 0 without a relevant document.

    Raises:
      ValueError: On unequal shapes, NaN, labels other than 0 and 1, or an empty list.

    Example:
      >>> round(float(average_precision([0.9, 0.5, 0.4, 0.1], [1, 0, 1, 0])), 4)
      0.8333
    """
    scores, labels = checks.binary_lists(scores, labels)
    relevant = _ordered(scores, labels)
    precision = np.cumsum(relevant, axis=-1) / np.arange(1, relevant.shape[-1] + 1)
    return np.sum(precision * relevant, axis=-1) / np.maximum(np.sum(relevant, axis=-1), 1.0)


def precision_at(scores, labels, *, k: int):
    """Share of relevant documents among the first ``k``.

    Args:
      scores: ``[..., num_docs]`` real, higher is better; ties go to the lower index.
      labels: ``[..., num_docs]`` 0 or 1.
      k: Number of documents that count; a list shorter than ``k`` still divides by ``k``, as in trec_eval.

    Returns:
      A float, or ``[num_queries]`` float64, in [0, 1].

    Raises:
      ValueError: On unequal shapes, NaN, labels other than 0 and 1, an empty list, or k below 1.

    Example:
      >>> float(precision_at([0.9, 0.5, 0.4, 0.1], [1, 0, 1, 0], k=2))
      0.5
    """
    checks.positive_int(k, "k")
    scores, labels = checks.binary_lists(scores, labels)
    return np.sum(_ordered(scores, labels)[..., :k], axis=-1) / k


def linear_gain(relevance: np.ndarray) -> np.ndarray:
    """The relevance itself, as a gain for `ndcg` (trec_eval, scikit-learn).

    Args:
      relevance: Non-negative array.

    Returns:
      The same array.

    Example:
      >>> linear_gain(np.array([0.0, 3.0])).tolist()
      [0.0, 3.0]
    """
    return relevance


def exponential_gain(relevance: np.ndarray) -> np.ndarray:
    """``2**relevance - 1``, as a gain for `ndcg` (web search).

    Args:
      relevance: Non-negative array.

    Returns:
      Array of the same shape.

    Example:
      >>> exponential_gain(np.array([0.0, 3.0])).tolist()
      [0.0, 7.0]
    """
    return np.exp2(relevance) - 1.0


def ndcg(scores, labels, *, k: int, gain: Callable[[np.ndarray], np.ndarray] = linear_gain):
    r"""Normalised discounted cumulative gain of the first ``k`` documents.

    .. math:: DCG_k = \sum_{r=1}^{k} g(rel_r) / \log_2(r + 1), \quad NDCG_k = DCG_k / DCG_k^{ideal}

    The ideal order sorts all labels of the list. On 0/1 labels both gains agree; elsewhere they do not, so the gain
    belongs in the record.

    Args:
      scores: ``[..., num_docs]`` real, higher is better; ties go to the lower index.
      labels: ``[..., num_docs]`` finite relevance grades, at least 0.
      k: Number of documents that count.
      gain: `linear_gain`, `exponential_gain`, or any elementwise function of the float64 labels.

    Returns:
      A float, or ``[num_queries]`` float64, in [0, 1]; 0 without a relevant document.

    Raises:
      ValueError: On unequal shapes, NaN, negative labels or gains, gains above 1e300, an empty list, or k below 1.

    Example:
      >>> round(float(ndcg([0.9, 0.5, 0.1], [0, 1, 1], k=2)), 4)
      0.3869
    """
    checks.positive_int(k, "k")
    scores, labels = checks.score_lists(scores, labels)
    worst = labels.min() if labels.min() < 0 else labels.max()
    checks.expect(0 <= worst < np.inf, "labels", "finite grades of at least 0", worst)
    with np.errstate(over="ignore"):
        gains = np.asarray(gain(labels), dtype=np.float64)
    checks.expect(gains.shape == labels.shape, "gain", f"a function that keeps shape {labels.shape}", gains.shape)
    discount = 1.0 / np.log2(np.arange(2, min(k, labels.shape[-1]) + 2))
    checks.expect(gains.max() <= _MOST_GAIN, "gain", f"at most {_MOST_GAIN:g} (smaller grades have less)", gains.max())
    checks.expect(gains.min() >= 0, "gain", "a function whose values are at least 0", gains.min())
    result = np.sum(_ordered(scores, gains)[..., :k] * discount, axis=-1)
    ideal = np.sum(-np.sort(-gains, axis=-1)[..., :k] * discount, axis=-1)
    return result / np.where(ideal > 0, ideal, 1.0)


def rank_loss(positive, negative):
    r"""Share of triples (query, better, worse) in the wrong order, the ranking loss of 003 §5.

    .. math:: \frac1n \sum_i [s^+_i \le s^-_i]

    Args:
      positive: ``[..., n]`` scores of the better documents.
      negative: ``[..., n]`` scores of the worse ones, triple by triple. Axes of length 1 broadcast, so ``[q, 1]``
        against ``[q, n]`` compares one better document a query with ``n`` others.

    Returns:
      A float, or one value for each leading index, in [0, 1]; a tie is an error, so equal scores everywhere give 1.

    Raises:
      ValueError: On a different number of axes, shapes that do not broadcast, NaN or empty input.

    Example:
      >>> float(rank_loss([3.0, 1.0, 2.0, 2.0], [1.0, 2.0, 2.0, 0.0]))
      0.5
    """
    positive, negative = checks.real(positive, "positive"), checks.real(negative, "negative")
    fits = positive.ndim == negative.ndim and all(
        a == b or a == 1 or b == 1 for a, b in zip(positive.shape, negative.shape, strict=True)
    )
    checks.expect(fits, "negative", f"scores that match positive, shape {positive.shape}", negative.shape)
    return np.mean(positive <= negative, axis=-1)


def reciprocal_rank(scores, target):
    """One over the rank of each query's mate; its mean over queries is MRR.

    Args:
      scores: ``[num_queries, num_candidates]`` real, higher is better.
      target: ``[num_queries]`` integer column of each query's mate.

    Returns:
      ``[num_queries]`` float64 in (0, 1]. The rank is 1 + the number of *other* candidates that score at least as
      much as the mate: ties are errors.

    Raises:
      ValueError: On wrong shapes, NaN, empty input, or a target that is not a column.

    Example:
      >>> reciprocal_rank([[0.9, 0.1], [0.5, 0.5]], [0, 1]).tolist()
      [1.0, 0.5]
    """
    return 1.0 / _mate_ranks(scores, target)


def accuracy_at_1(scores, target):
    """Whether each query's mate scores strictly above every other candidate.

    Args:
      scores: ``[num_queries, num_candidates]`` real, higher is better.
      target: ``[num_queries]`` integer column of each query's mate.

    Returns:
      ``[num_queries]`` float64, 1 for a hit and 0 for a miss; a tie is a miss.

    Raises:
      ValueError: On wrong shapes, NaN, empty input, or a target that is not a column.

    Example:
      >>> accuracy_at_1([[0.9, 0.1], [0.5, 0.5]], [0, 1]).tolist()
      [1.0, 0.0]
    """
    return (_mate_ranks(scores, target) == 1).astype(np.float64)


def spearman(scores, labels):
    r"""Spearman's rank correlation of scores with grades: Pearson's correlation of their ranks.

    .. math:: \frac{\sum_i (r_i - \bar r)(s_i - \bar s)}{\sqrt{\sum_i (r_i - \bar r)^2 \sum_i (s_i - \bar s)^2}}

    Args:
      scores: ``[..., n]`` real; equal ones share the mean of their ranks.
      labels: ``[..., n]`` real grades, in the same way.

    Returns:
      A float, or one value for each leading index, in [-1, 1]; 0 where all scores or all grades are equal, since
      nothing is put in order there.

    Raises:
      ValueError: On unequal shapes, NaN or an empty list.

    Example:
      >>> round(float(spearman([0.1, 0.2, 0.9, 0.3], [0, 1, 5, 5])), 4)
      0.9487
    """
    ranks = [np.apply_along_axis(_mean_ranks, -1, values) for values in checks.score_lists(scores, labels)]
    first, second = (one - one.mean(axis=-1, keepdims=True) for one in ranks)
    length = np.sqrt(np.sum(first**2, axis=-1) * np.sum(second**2, axis=-1))
    return np.clip(np.sum(first * second, axis=-1) / np.where(length > 0, length, 1.0), -1, 1)


def _each_list(metric, scores: np.ndarray, labels: np.ndarray):
    if scores.ndim == 1:
        return np.float64(metric(scores, labels))
    return np.array([metric(*one) for one in zip(scores, labels, strict=True)], dtype=np.float64)


def _thresholds(scores: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """True and false positives of "score at least t" for each distinct score t, the highest first."""
    order = np.argsort(-scores)
    scores, labels = scores[order], labels[order]
    last = np.append(np.flatnonzero(scores[1:] != scores[:-1]), scores.size - 1)
    true = np.cumsum(labels)[last]
    return true, last + 1 - true, scores[last]


def _auc(scores: np.ndarray, labels: np.ndarray) -> float:
    true, false, _ = _thresholds(scores, labels)
    # Trapezoids under the curve in whole counts: each false positive of a group meets the true ones above it, and
    # half of those in the group.
    above = np.concatenate([[0.0], true[:-1]])
    steps = np.diff(false, prepend=0.0)
    return float(np.sum(steps * (above + true)) / (2.0 * true[-1] * false[-1]))


def _max_f1(scores: np.ndarray, labels: np.ndarray) -> float:
    true, false, _ = _thresholds(scores, labels)
    return float(np.max(2.0 * true / (true + false + max(true[-1], 1.0))))


def _mean_ranks(values: np.ndarray) -> np.ndarray:
    """Ranks from 1 by rising value, equal values the mean of theirs."""
    _, place, number = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(number) - (number - 1) / 2)[place]


def _ordered(scores: np.ndarray, values: np.ndarray) -> np.ndarray:
    """``values`` by falling score, the lower index first among equals."""
    return np.take_along_axis(values, np.argsort(-scores, axis=-1, kind="stable"), axis=-1)


def _mate_ranks(scores, target) -> np.ndarray:
    """``[num_queries]`` 1-based ranks of the targets, ties as errors."""
    scores = checks.real(scores, "scores")
    checks.expect(scores.ndim == 2, "scores", "shape (num_queries, num_candidates)", scores.shape)
    target = checks.targets(target, *scores.shape)
    own = np.take_along_axis(scores, target[:, None], axis=1)
    return np.count_nonzero(scores >= own, axis=1)
