"""Metrics that sweep a threshold over all scores; `jaxsim.metrics` offers them beside the others.

A document counts as relevant when its score is at least the threshold, so documents of equal score enter together. All
are computed from one sort in float64, and are therefore exact over millions of scores.
"""

from __future__ import annotations

import numpy as np

from jaxsim import checks

__all__ = ["auc", "max_f1", "roc_curve", "tpr_at_fpr"]


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
    """The ROC curve of one list, one point a distinct score, from (0, 0) to (1, 1).

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
