"""Judged pairs of a query and a document, in folds of queries, and their measures: what 004's three tables share."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments.kit import choose, climb
from experiments.kit.table import Table
from jaxsim import checks, sparse
from jaxsim.evaluate import metrics
from jaxsim.methods import tweak
from jaxsim.methods.weights import tweak_pairs
from jaxsim.methods.weights.quadratic_forms import Forms
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.optim import Fit
from jaxsim.text.features import Featured
from jaxsim.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Settings:
    """What a preset fixes. Where a field has several values, every fold chooses one.

    Attributes:
      folds: Of the queries; each is the test set once.
      dev: Share of the other pairs that choices are made on, whole queries of them.
      preferences: Pairs of pairs drawn in each fold.
      gammas: Scales of a difference of cosines; the paper has 1. A ladder, climbed from its middle.
      alphas: Weights of the regulariser, of a sum over all examples as in the paper. A ladder likewise.
      max_iter: L-BFGS iterations at most.
      patience: Iterations without a better AUC on the development pairs before stopping.
      limit: Of the queries, an even sample; None for all.
    """

    folds: int = 10
    dev: float = 0.1
    preferences: int = 40_000
    gammas: tuple[float, ...] = (1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
    alphas: tuple[float, ...] = (0.0, 3e-5, 1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)
    max_iter: int = 300
    patience: int = 15
    limit: int | None = None


FULL = Settings()
QUICK = Settings(folds=3, preferences=2000, gammas=(10.0,), alphas=(0.01, 1.0), max_iter=8, patience=4, limit=40)


LINEAR = 0.01
"""Up to this γ the logistic loss of a difference of cosines is linear, within a ten-thousandth."""
FALSE_POSITIVES = np.linspace(0, 0.2, 101)
"""Rates at which an ROC curve is kept."""


class Parts(NamedTuple):
    """Rows of the pairs of one fold: to fit, to choose by, to test."""

    fit: np.ndarray
    dev: np.ndarray
    test: np.ndarray


@dataclass(frozen=True, eq=False)
class Folds:
    """Judged pairs of documents, dealt to folds by their queries; near-duplicate queries stay together.

    Attributes:
      left: ``[n]`` document of the query of each pair.
      right: ``[n]`` document of the other side.
      positive: ``[n]`` booleans.
      query: ``[n]`` query of each pair, from 0.
      groups: ``[num_queries]`` numbers; near-duplicates have the same.
      num: Number of folds; each is the test set once.
      dev: Share of the other pairs that choices are made on, whole queries of them.
      sampled: Rows of the pairs that may be fitted on and chosen by, rising; None for all.
      dev_whole: Whether choices are made on all pairs of the development queries, sampled or not.
      kinds: Kind of query -> ``[n]`` booleans: measured apart as well.
    """

    left: np.ndarray
    right: np.ndarray
    positive: np.ndarray
    query: np.ndarray
    groups: np.ndarray
    num: int
    dev: float
    sampled: np.ndarray | None = None
    dev_whole: bool = False
    kinds: Mapping[str, np.ndarray] = field(default_factory=dict)

    @cached_property
    def fold(self) -> np.ndarray:
        """``[n]`` fold of each pair."""
        return deal(self.groups, np.bincount(self.query, minlength=len(self.groups)), num=self.num)[self.query]

    @cached_property
    def drawn(self) -> np.ndarray:
        """Rows of the pairs that may be fitted on and chosen by."""
        return np.arange(len(self.query)) if self.sampled is None else self.sampled

    def parts(self, number: int) -> Parts:
        """Rows of a fold. Development queries are whole groups, in the order of a hash, until they have their share.

        ``fit`` and ``dev`` are sampled pairs (``dev`` all of its queries with ``dev_whole``), ``test`` has all.

        Raises:
          ValueError: a part with pairs of one class alone.
        """
        others = self.drawn[self.fold[self.drawn] != number]
        group = self.groups[self.query]
        names, sizes = np.unique(group[others], return_counts=True)
        order = sorted(range(len(names)), key=lambda at: hashlib.blake2b(f"{number}\0{names[at]}".encode()).digest())
        cut = int(np.searchsorted(np.cumsum(sizes[order]), self.dev * len(others))) + 1
        chosen = names[order[: min(cut, len(names) - 1)]]
        held = np.isin(group[others], chosen)
        dev = np.flatnonzero(np.isin(group, chosen)) if self.dev_whole else others[held]
        parts = Parts(others[~held], dev, np.flatnonzero(self.fold == number))
        for name, rows in parts._asdict().items():
            expect_both(self.positive[rows], f"fold {number}, {name}")
        return parts

    def tested(self, scores: np.ndarray, names: Sequence[str]) -> dict[str, Any]:
        """Measures every fold.

        Args:
          scores: ``[n]`` of all pairs, each from the model of the fold that it is tested in.
          names: Of the metrics.

        Returns:
          ``seeds, metrics, by_group, arrays, notes`` of a row: the values of a fold stand where those of a seed do
          elsewhere; ``arrays`` has the ROC curve, the mean of the folds' (004 Figure 2).

        Raises:
          ValueError: a fold whose test pairs are of one class.
        """
        folds, groups, losses, rates = [], [], [], []
        for number in range(self.num):
            rows = np.flatnonzero(self.fold == number)
            expect_both(self.positive[rows], f"fold {number}, test")
            folds.append(measure(scores[rows], self.positive[rows], self.query[rows]))
            losses.append(rank_losses(scores[rows], self.positive[rows]))
            curve = metrics.roc_curve(scores[rows], self.positive[rows].astype(np.float64))
            rates.append(np.interp(FALSE_POSITIVES, *curve[:2]))
            kinds = {kind: rows[chosen[rows]] for kind, chosen in self.kinds.items()}
            values = {kind: measure(scores[at], self.positive[at], self.query[at]) for kind, at in kinds.items()}
            groups.append({kind: {name: value[name] for name in names} for kind, value in values.items()})
        error, half = np.mean(losses, axis=0)
        note = f"rank loss (1 - AUC): {error:.4f} with ties as errors, {half:.4f} with ties as half an error"
        return {"seeds": range(self.num), "metrics": {name: [fold[name] for fold in folds] for name in names},
                "arrays": {"roc_fpr": FALSE_POSITIVES, "roc_tpr": np.mean(rates, axis=0)},
                "by_group": groups if self.kinds else (), "notes": [note] if error - half >= 5e-5 else []}


def deal(groups, sizes, *, num: int, salt: str = "") -> np.ndarray:
    """Deals groups of queries to folds of nearly equal size.

    Args:
      groups: ``[n]`` group number of each query; near-duplicates have one.
      sizes: ``[n]`` pairs of each query.
      num: Number of folds.
      salt: Another salt deals anew.

    Returns:
      ``[n]`` fold of each query. Groups come in the order of a hash, each to the fold that has fewest pairs by then.

    Raises:
      ValueError: for fewer groups than folds.

    Example:
      >>> deal([0, 1, 1, 2], [5, 1, 2, 1], num=2).tolist()
      [1, 0, 0, 1]
    """
    groups, sizes = np.asarray(groups), np.asarray(sizes)
    names = np.unique(groups)
    checks.expect(len(names) >= num >= 2, "num", f"between 2 and {len(names)} (groups of queries)", num)
    total, fold = np.zeros(num), np.zeros(len(groups), np.int64)
    for name in sorted(names.tolist(), key=lambda name: hashlib.blake2b(f"{salt}\0{name}".encode()).digest()):
        where = int(np.argmin(total))
        fold[groups == name] = where
        total[where] += sizes[groups == name].sum()
    return fold


def expect_both(positive: np.ndarray, where: str) -> None:
    """Refuses pairs of one class, on which an AUC is undefined.

    Raises:
      ValueError: naming the class that is there.
    """
    kinds = set(np.unique(np.asarray(positive, bool)).tolist())
    got = {(): "no pairs", (True,): "positive ones alone", (False,): "negative ones alone"}.get(tuple(kinds), "")
    checks.expect(len(kinds) == 2, where, "positive and negative pairs", got)


def measure(scores, positive, query) -> dict[str, float]:
    """AUC and TPR over all pairs; MAP and P@3 over the queries that have a positive pair.

    Args:
      scores: ``[n]``, higher is better; ties count one half in AUC, and go to the pair that comes first in P@3 and MAP.
      positive: ``[n]`` booleans.
      query: ``[n]`` query of each pair.

    Returns:
      By the names of records.

    Raises:
      ValueError: if all pairs are of one class.

    Example:
      >>> values = measure([0.9, 0.1, 0.5, 0.6], [True, False, True, False], [0, 0, 1, 1])
      >>> values["auc"], values["map"], round(values["p@3"], 3)
      (0.75, 0.75, 0.333)
    """
    scores, positive, query = np.asarray(scores, np.float64), np.asarray(positive, np.float64), np.asarray(query)
    expect_both(positive, "positive")
    precision, first = [], []
    order = np.argsort(query, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(query[order])) + 1):
        if positive[rows].any():
            precision.append(metrics.average_precision(scores[rows], positive[rows]))
            first.append(metrics.precision_at(scores[rows], positive[rows], k=3))
    return {"auc": float(metrics.auc(scores, positive)), "map": float(np.mean(precision)), "p@3": float(np.mean(first)),
            "tpr@0.1": float(metrics.tpr_at_fpr(scores, positive, fpr=0.1)),
            "tpr@0.2": float(metrics.tpr_at_fpr(scores, positive, fpr=0.2))}


def rank_losses(scores, positive) -> tuple[float, float]:
    """Share of pairs of a positive and a negative one in the wrong order: ties as errors, and as half an error.

    Args:
      scores: ``[n]``, higher is better.
      positive: ``[n]`` booleans, of both classes.

    Returns:
      Both losses; the second is one less the AUC.

    Example:
      >>> rank_losses([0.9, 0.5, 0.5, 0.1], [True, False, True, False])
      (0.25, 0.125)
    """
    positive = np.asarray(positive, bool)
    values, place = np.unique(np.asarray(scores, np.float64), return_inverse=True)
    good, bad = (np.bincount(place[side], minlength=len(values)) for side in (positive, ~positive))
    ties = float(good @ bad) / (float(good.sum()) * float(bad.sum()))
    half = 1 - float(metrics.auc(scores, positive.astype(np.float64)))
    return half + ties / 2, half


def cosines(weighted: sp.csr_matrix, left, right, *, block: int = 20_000) -> np.ndarray:
    """Cosines of some pairs of rows, 0 where either is empty, in float64.

    Args:
      weighted: ``[num_docs, num_terms]`` weights.
      left: ``[n]`` rows.
      right: ``[n]`` rows.
      block: Pairs at a time.

    Returns:
      ``[n]`` float64.

    Example:
      >>> cosines(sp.csr_matrix([[2.0, 0.0], [4.0, 0.0], [0.0, 0.0]]), [0, 0], [1, 2]).tolist()
      [1.0, 0.0]
    """
    left, right = np.asarray(left), np.asarray(right)
    weighted = weighted.astype(np.float64)
    length = np.sqrt(np.asarray(weighted.multiply(weighted).sum(axis=1)).ravel())
    unit = sp.diags_array(1 / np.where(length > 0, length, 1)) @ weighted
    parts = [np.asarray(unit[left[at : at + block]].multiply(unit[right[at : at + block]]).sum(axis=1)).ravel()
             for at in range(0, len(left), block)]
    return np.concatenate([np.zeros(0), *parts])


def with_tfidf(documents: Featured, weighted: sp.csr_matrix) -> Featured:
    """Documents with one column more, ``tfidf``; ``weighted`` has a value for every slot."""
    own = np.pad(weighted.data, (0, documents.columns.shape[0] - weighted.nnz)).astype(np.float32)
    return replace(documents, names=(*documents.names, "tfidf"),
                   columns=jnp.concatenate([documents.columns, jnp.asarray(own)[:, None]], axis=1))


def tf_idf(documents: Featured, vocabulary: Vocabulary) -> sp.csr_matrix:
    """Weights tf · log(N / df) in float64 with a value for every slot, zeros included."""
    counts = sparse.to_scipy(documents.terms).astype(np.float64)
    counts.data *= np.log(vocabulary.num_docs / np.asarray(vocabulary.df, np.float64))[counts.indices]
    return counts


def starts(documents: Featured, weighted: sp.csr_matrix) -> dict[str, TermWeights]:
    """The two starts: the linear term weights nearest to each of two weightings. Neither reads a label.

    A linear function of the features comes near tf·idf only if frequent words get negative weights; it equals
    idf + 2 log(tf + 1) exactly, with none.
    """
    tf = sparse.to_scipy(documents.terms).data.astype(np.float64)
    weights = {"tf·idf": weighted.data, "idf + 2 log(tf + 1)": weighted.data / tf + 2 * np.log1p(tf)}
    slots = documents.columns.shape[0]  # some are padding, with features of 0
    return {name: tweak.least_squares(documents, np.pad(values, (0, slots - tf.size)))
            for name, values in weights.items()}


def fit_preferences(
    table: Table, forms: Forms, sides: tuple[np.ndarray, np.ndarray], init: Mapping[str, TermWeights],
    *, validate: Callable[[TermWeights], float], reads: Sequence[Any], by: str
) -> tuple[dict[str, Any], Fit]:
    """The best fit of a fold from preferences: start, γ and α as `choose_fit` takes them.

    Args:
      table: That is filled.
      forms: Quadratic forms of the pairs.
      sides: Rows of ``forms``: ``[m]`` better and ``[m]`` worse pairs.
      init: The starts.
      validate: Development score.
      reads: What ``validate`` reads.
      by: What the score is called.

    Returns:
      As `choose_fit`.
    """
    settings = table.settings

    def fitted(start: str, gamma: float, alpha: float) -> Fit:
        return table.fit(tweak_pairs.fit_preferences, reads=reads)(
            forms, *sides, init=init[start], gamma=gamma, alpha=alpha / settings.preferences,
            max_iter=settings.max_iter, patience=settings.patience, validate=validate)

    return choose_fit(fitted, init, gammas=settings.gammas, alphas=settings.alphas, by=by)


def choose_fit(
    fitted: Callable[..., Fit], starts: Iterable[str], *, gammas: Sequence[float], alphas: Sequence[float],
    by: str = "auc"
) -> tuple[dict[str, Any], Fit]:
    """The best start with the middle γ and α, and then the γ and α that no step makes better.

    Args:
      fitted: Function of ``start``, ``gamma`` and ``alpha`` whose fit's history has a ``validation`` score a step.
      starts: Names of the starts.
      gammas: Ladder of γ.
      alphas: Ladder of α.
      by: What the score is called.

    Returns:
      The best option, with its ``auc``, ``auc_at_start`` (or as ``by`` says) and ``steps``, and as ``edges`` the
      settings whose best value is at the edge of its ladder: what `experiments.kit.notes` reads of a fold; and its fit.
      A lowest γ of at most `LINEAR` is no edge: a lower one would only weigh the regulariser more, as a higher α does.

    Example:
      >>> from types import SimpleNamespace
      >>> def fitted(start, gamma, alpha):
      ...     return SimpleNamespace(steps=1, history=[{"validation": 0.5}, {"validation": gamma / 10}])
      >>> choose_fit(fitted, ["plain"], gammas=(1.0, 8.0), alphas=(0.1,))[0]["edges"]
      ['gamma']
    """
    fits: dict[tuple, Fit] = {}

    def score(**option: Any) -> dict[str, Any]:
        key = tuple(option[name] for name in ("start", "gamma", "alpha"))
        fit = fits[key] = fits[key] if key in fits else fitted(**option)
        return {by: max(step["validation"] for step in fit.history), "steps": fit.steps,
                f"{by}_at_start": fit.history[0]["validation"]}

    middle = {"gamma": gammas[len(gammas) // 2], "alpha": alphas[len(alphas) // 2]}
    start = choose([{"start": start, **middle} for start in starts], score, by=by).best["start"]
    choice = climb({"start": (start,), "gamma": gammas, "alpha": alphas}, score, by=by, beyond=0)
    entry = next(entry for entry in choice.tried if entry.items() >= choice.best.items())
    linear = choice.best["gamma"] == min(gammas) <= LINEAR
    edges = [name for name in choice.at_edge if not (linear and name == "gamma")]
    return {**entry, "edges": edges}, fits[tuple(choice.best.values())]
