"""Metrics, ranks and tests of significance as slow float64 loops from their definitions; imports nothing of jaxsim."""

from __future__ import annotations

import math

import numpy as np


def auc(scores, labels) -> float:
    """Share of (relevant, irrelevant) pairs in the right order, a tie counting one half."""
    wins, pairs = 0.0, 0
    for positive, is_relevant in zip(scores, labels, strict=True):
        for negative, other in zip(scores, labels, strict=True):
            if is_relevant == 1 and other == 0:
                pairs += 1
                wins += 1.0 if positive > negative else 0.5 if positive == negative else 0.0
    return wins / pairs


def confusion(scores, labels, threshold) -> tuple[int, int, int, int]:
    """True positives, false positives, false negatives, true negatives of "score at least the threshold"."""
    counts = {(guess, truth): 0 for guess in (True, False) for truth in (0, 1)}
    for score, label in zip(scores, labels, strict=True):
        counts[bool(score >= threshold), int(label)] += 1
    return counts[True, 1], counts[True, 0], counts[False, 1], counts[False, 0]


def max_f1(scores, labels) -> float:
    """Best F1 over all thresholds that are a score of the list."""
    best = 0.0
    for threshold in scores:
        hit, false, missed, _ = confusion(scores, labels, threshold)
        if hit:
            precision, recall = hit / (hit + false), hit / (hit + missed)
            best = max(best, 2 * precision * recall / (precision + recall))
    return best


def tpr_at_fpr(scores, labels, fpr) -> float:
    """Best true positive rate of a threshold whose false positive rate is at most fpr."""
    best = 0.0
    for threshold in [*scores, math.inf]:
        hit, false, missed, rest = confusion(scores, labels, threshold)
        if false / (false + rest) <= fpr:
            best = max(best, hit / (hit + missed))
    return best


def order(scores) -> list[int]:
    """Document numbers by falling score, the lower number first among equals."""
    return sorted(range(len(scores)), key=lambda i: (-scores[i], i))


def precision_at(scores, labels, k) -> float:
    """Relevant documents among the first k, over k."""
    return sum(labels[i] for i in order(scores)[:k]) / k


def average_precision(scores, labels) -> float:
    """Mean precision at the ranks of the relevant documents."""
    hits, total = 0, 0.0
    for rank, i in enumerate(order(scores), start=1):
        if labels[i]:
            hits += 1
            total += hits / rank
    return total / hits if hits else 0.0


def ndcg(scores, labels, k, gain) -> float:
    """DCG of the first k over that of the best order."""
    result = sum(gain(labels[i]) / math.log2(rank + 1) for rank, i in enumerate(order(scores)[:k], start=1))
    best = sorted((gain(label) for label in labels), reverse=True)[:k]
    ideal = sum(value / math.log2(rank + 1) for rank, value in enumerate(best, start=1))
    return result / ideal if ideal else 0.0


def rank_loss(positive, negative) -> float:
    """Share of triples whose better document does not score strictly more."""
    return sum(0 if better > worse else 1 for better, worse in zip(positive, negative, strict=True)) / len(positive)


def mate_rank(scores, target) -> int:
    """1 + the number of other candidates that score at least as much as the target."""
    return 1 + sum(1 for i, score in enumerate(scores) if i != target and score >= scores[target])


def cosine(a, b) -> float:
    """Cosine of two vectors; 0 if either is zero."""
    dot = sum(float(x) * float(y) for x, y in zip(a, b, strict=True))
    lengths = math.sqrt(sum(float(x) ** 2 for x in a)) * math.sqrt(sum(float(y) ** 2 for y in b))
    return dot / lengths if lengths else 0.0


def cosines(left, right) -> np.ndarray:
    """Cosine of every row of one matrix with every row of another."""
    return np.array([[cosine(a, b) for b in right] for a in left])


def top_k(scores, k) -> tuple[list[float], list[int]]:
    """The k best scores and their positions, the lower position first among equals."""
    best = order(scores)[:k]
    return [scores[i] for i in best], best


def mcnemar_p(first, second) -> float:
    """Exact two-sided binomial p of a split at least as uneven as (first, second)."""
    n = first + second
    uneven = abs(first - second)
    return sum(math.comb(n, i) for i in range(n + 1) if abs(n - 2 * i) >= uneven) / 2**n


def benjamini_hochberg(pvalues, level) -> list[bool]:
    """Which hypotheses the step-up procedure rejects: all up to the largest i with p_(i) <= i level / n."""
    n = len(pvalues)
    ascending = sorted(pvalues)
    largest = max((i for i in range(1, n + 1) if ascending[i - 1] <= i * level / n), default=0)
    return [p <= ascending[largest - 1] if largest else False for p in pvalues]
