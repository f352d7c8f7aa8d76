"""The methods ``ssi`` and ``ssi-sym`` from pairs of texts: links, what is no negative, the identity's weight (003 §2).

A pair links its left text, the query, to its right text; other right texts are the query's negatives. Texts of equal
weights are one query or one document, so that a document that belongs to a query is never its negative, in however many
pairs it occurs; near-duplicates are no negatives either, unless they are asked for.

Adagrad takes the place of the paper's SGD at a fixed rate. What a training stops by, held-out pairs or judged queries,
chooses the weight b of the identity and the rate together: which rate is best depends on the links, and one that is too
high returns the start. The start is OPCA beside the words, or random numbers where they like what is learned from them
better.
``ssi-sym`` learns W = UᵀU + b·I, one matrix for queries and documents.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse
from jaxsim.evaluate import mates, retrieval
from jaxsim.linalg.row_space import distinct_rows
from jaxsim.methods import ssi
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.ssi.products import Products
from jaxsim.optim import Fit
from jaxsim.sparse import Terms
from jaxsim.sparse.precision import EVALUATION
from jaxsim.train import s2net
from jaxsim.train.problem import Learned, Problem

IDENTITIES = (3.0, 10.0, 30.0)
"""Weights b of the identity, of which held-out pairs, or judged queries, choose."""
IDENTITY = 10.0
"""The weight with nothing to choose by."""
LEARNING_RATES = (0.03, 0.01, 0.003)
"""Rates of Adagrad, whose sums of squares start at `ADAGRAD`. Held-out pairs choose; without any it is the first."""
ADAGRAD, INIT_SCALE = 1e-3, 0.03
BEYOND = {"identity": (0.1, 0.3, 1.0, 100.0, 300.0, 1000.0), "learning_rate": (3e-4, 1e-3, 0.1, 0.3)}
"""Where the best of these is the least or the largest, the next ones beyond it are tried as long as they are better."""
STARTS = ("opca", "random")
"""What U and V start from; the second is tried with the weight and the rate that are best for the first."""
MOST_IDENTITY, MOST_RATE = 1e6, 1e3
"""Beyond these, float32 loses the margin of 1 in the words' score, or the words in what one step adds."""
STRONGEST = 200
"""Terms of a text that the low-rank part sees at most."""

_TRIAL = 2  # epochs after which the best weight and rate go on alone
_EPOCHS, _EPOCHS_ALONE, _PATIENCE = 15, 5, 5  # with something to stop by, without
_TRIPLES = 10  # an epoch, for each pair; between the next two numbers
_FEWEST, _MOST = 2_000, 500_000
_MOST_KNOWN = 50_000_000  # pairs that are no negatives, 8 bytes each and more while they are counted


class Links(NamedTuple):
    """What SSI is fitted on.

    Attributes:
      queries: distinct left texts that have words.
      documents: distinct right texts that have words.
      links: ``[n, 2]`` rows of queries and of the documents that belong to them.
      known: ``[m, 2]`` others that are no negatives: near-duplicates.
    """

    queries: Terms
    documents: Terms
    links: np.ndarray
    known: np.ndarray


class Choice(NamedTuple):
    """What held-out pairs, or judged queries, choose.

    Attributes:
      identity: weight b of the identity.
      learning_rate: of Adagrad.
      start: of `STARTS`.
    """

    identity: float
    learning_rate: float
    start: str


def links_of(left: Terms, right: Terms, groups: np.ndarray | None = None) -> Links:
    """Links from pairs; texts without words are left out, and queries that every document belongs to.

    Args:
      left: left texts.
      right: their mates, row for row.
      groups: ``[m, 2]`` numbers: pairs that are equal in any column are no negatives of each other; where that leaves
        a query none, it does not count for the query. None: only what is equal counts.

    Returns:
      `Links`.

    Raises:
      ValueError: if no pair has words on both sides, no query has a negative, or too many near-duplicates have to be
        kept apart.

    Example:
      >>> side = sparse.from_scipy(scipy.sparse.csr_matrix([[1.0, 0], [1.0, 0], [0, 1.0], [0, 0]]))
      >>> links_of(side, side).links.tolist()
      [[0, 0], [1, 1]]
    """
    matrices = [sparse.to_scipy(side) for side in (left, right)]
    some = np.flatnonzero(np.logical_and(*((matrix.multiply(matrix).sum(axis=1) > 0) for matrix in matrices)))
    checks.expect(some.size > 0, "pairs", "a pair with known words on both sides", "none")
    left, right = (sparse.from_scipy(matrix[some]) for matrix in matrices)
    (queries, of_left), (documents, of_right) = map(distinct_rows, (left, right))
    size = documents.size
    checks.expect(size > 1, "pairs", "right texts that differ (a query's negatives are those that do not belong to it)",
                  "all alike")
    links = np.unique(of_left * size + of_right)
    near = np.zeros(0, np.int64) if groups is None else _near(of_left, of_right, groups[some], size)
    near = np.setdiff1d(near, links, assume_unique=True)

    def negatives(codes):
        return (np.bincount(codes // size, minlength=queries.size) < size)[codes // size]

    every = np.concatenate([links, near])
    near = near[negatives(every)[links.size :]]
    links = links[negatives(links)]
    checks.expect(links.size > 0, "pairs", "a left text to which some right text does not belong", "none")
    return Links(sparse.take(left, queries), sparse.take(right, documents),
                 *(np.stack(np.divmod(codes, size), axis=1) for codes in (links, near)))


def _near(of_left: np.ndarray, of_right: np.ndarray, groups: np.ndarray, size: int) -> np.ndarray:
    """Codes of queries with the documents of pairs that share a group with one of theirs, ascending."""
    result = [np.zeros(0, np.int64)]
    for column in groups.T:
        group = np.unique(column, return_inverse=True)[1]
        ones = np.ones(group.size, np.int32)
        left, right = (scipy.sparse.csr_matrix((ones, (rows, group))) for rows in (of_left, of_right))
        number = int(np.dot(*(np.diff(side.tocsc().indptr).astype(np.float64) for side in (left, right))))
        expected = f"at most {_MOST_KNOWN:,} near-duplicates that are no negatives (--all-negatives: all are)"
        checks.expect(number <= _MOST_KNOWN, "pairs", expected, f"{number:,}")
        both = (left @ right.T).tocoo()
        result.append(both.row.astype(np.int64) * size + both.col)
    return np.unique(np.concatenate(result))


def validator(
    sides: tuple[Terms, Terms], strongest: int = STRONGEST, *, score: Callable = mates.mrr
) -> Callable[[tuple], float]:
    """The validation score of early stopping: mean reciprocal rank of held-out mates by inner product.

    Args:
      sides: held-out texts, left and right, of unit length.
      strongest: terms that the low-rank part sees of a text.
      score: as for `mates.validator`, with a ``similarity``, here the inner product.

    Returns:
      Function of a pair of `Bilinear`.
    """
    cut = [bilinear.strongest(side, strongest) for side in sides]

    def validate(params) -> float:
        with jax.default_matmul_precision(EVALUATION):
            result = [bilinear.encode(one, whole, low_rank=few) for one, whole, few in
                      zip(params, sides, cut, strict=True)]  # fmt: skip
        return score(*result, similarity=retrieval.dot)

    return validate


def fit(problem: Problem, *, symmetric: bool = False) -> Learned:
    """Learns W = UᵀV + b·I, or UᵀU + b·I, by Adagrad; b, the rate and the start are chosen.

    Each b with each rate has a few epochs, unless they are given; where the best of them lies at the edge, values
    beyond it follow. The best, by the held-out pairs or by judged queries, continues until its score stops rising.

    Args:
      problem: training pairs, what to stop by, and settings.
      symmetric: whether V = U.

    Returns:
      `Learned`, of a pair of `Bilinear`, with notes ``identity``, ``learning_rate``, ``start``, ``triples`` an epoch
      and, where there was a choice, ``identities``, ``learning_rates`` and ``starts``, the best score of each.

    Raises:
      ValueError: for bad settings, and as `links_of`.
    """
    settings = problem.settings
    rate, identity = settings.learning_rate, settings.identity
    fits = rate is None or 0 < rate <= MOST_RATE
    checks.expect(fits, "learning_rate", f"a positive number, at most {MOST_RATE:g}", rate)
    fits = identity is None or 0 <= identity <= MOST_IDENTITY
    checks.expect(fits, "identity", f"a number from 0 to {MOST_IDENTITY:g}", identity)
    result = links_of(*problem.train, None if settings.all_negatives else problem.groups)
    validate = problem.stops_by(validator)
    number = int(np.clip(_TRIPLES * len(result.links), _FEWEST, _MOST))
    products = Products(result.queries, result.documents, 1.0)
    epochs = (_EPOCHS if validate else _EPOCHS_ALONE) if settings.max_iter is None else settings.max_iter
    patience = _PATIENCE if settings.patience is None else settings.patience
    grid = {"identity": IDENTITIES if validate else (IDENTITY,),
            "learning_rate": LEARNING_RATES if validate else LEARNING_RATES[:1]}  # fmt: skip
    grid |= {name: (getattr(settings, name),) for name in grid if getattr(settings, name) is not None}
    key, init = jax.random.key(settings.seed), _opca(problem, symmetric)

    def learned(choice: Choice, max_iter: int, patience: int | None) -> Fit:
        # The first rate is not named, so that checkpoints from when there was no other are found.
        rate = "" if choice.learning_rate == grid["learning_rate"][0] else f"-rate-{choice.learning_rate:g}"
        name, random = f"{choice.identity:g}{rate}", choice.start == "random"
        folder = f"checkpoint.identity-{name}" + "-opca" * (not random)
        return ssi.fit(
            result.queries, result.documents, result.links, known=result.known, k=problem.k, key=key,
            identity=choice.identity, learning_rate=choice.learning_rate, symmetric=symmetric,
            init=None if random else init, init_scale=INIT_SCALE, adagrad=ADAGRAD, max_terms=STRONGEST,
            products=products, triples=number, max_iter=max_iter, validate=validate, patience=patience,
            checkpoint=None if problem.checkpoint is None else Path(problem.checkpoint) / folder,
            progress=problem.progress, callback=problem.logged(f"{settings.method}-b{name}" + "-random" * random),
        )  # fmt: skip

    start = STARTS[init is None]
    every = [Choice(float(one), other, start) for one, other in itertools.product(*grid.values())]
    choice, tried = every[0], {}
    if validate and (len(every) > 1 or init is not None):
        trial = min(_TRIAL, epochs)
        tried = {one: _best(learned(one, trial, None), trial) for one in every}
        choice = max(tried, key=tried.__getitem__)
        for name, values in grid.items():
            for value in _beyond(name, values, getattr(choice, name)):
                other = choice._replace(**{name: value})
                tried[other] = _best(learned(other, trial, None), trial)
                if tried[other] <= tried[choice]:
                    break
                choice = other
        if init is not None:
            other = choice._replace(start="random")
            tried[other] = _best(learned(other, trial, None), trial)
            choice = max(choice, other, key=tried.__getitem__)
    notes = {"triples": number, **choice._asdict(), **_reasons(tried, choice, problem.say)}
    # No less than the trial, or whether a fit goes on would depend on whether its trial is at hand.
    return Learned(learned(choice, epochs, max(patience, _TRIAL) if validate else None), notes)


def _opca(problem: Problem, symmetric: bool) -> tuple[jax.Array, ...] | None:
    """The start from OPCA, with inner products of 1 on average over the training texts; None where there is no OPCA."""
    found = s2net.start(problem, needed=False)
    if found is None:  # pairs that are too much alike for it
        problem.say("OPCA cannot be fitted to these pairs: random numbers are the start")
        return None
    weights = found.weights
    squares = [np.square(sparse.to_scipy(side) @ np.asarray(weights)).sum(axis=1) for side in problem.train]
    mean = float(np.mean(squares))
    if not mean > 0:
        return None
    return (weights / mean**0.5,) * (1 if symmetric else 2)


def _beyond(name: str, values: tuple[float, ...], best: float) -> list[float]:
    """Values to try beyond the best one, the nearest first; none where it is not at the edge, or was given."""
    if len(values) < 2 or min(values) < best < max(values):
        return []
    if best == max(values):
        return [value for value in BEYOND[name] if value > best]
    return [value for value in reversed(BEYOND[name]) if value < best]


def _best(trial: Fit, epochs: int) -> tuple[float, float]:
    """The best score of the first epochs, and of these without the start, which decides where the start is best.

    A fit that a checkpoint holds may be past them.
    """
    scores = [entry["validation"] for entry in trial.history[: epochs + 1]]
    return max(scores), max(scores[1:])


def _reasons(
    tried: Mapping[Choice, tuple[float, float]], choice: Choice, say: Callable[[str], None]
) -> dict[str, dict[str, float]]:
    """The best score of each value where there were several; says them. The other start was tried with one b alone."""
    notes, first = {}, next((one.start for one in tried), "")
    for field, plural, name in (("identity", "identities", "b"), ("learning_rate", "learning_rates", "learning rate"),
                                ("start", "starts", "start")):  # fmt: skip
        best: dict[str, float] = {}
        for one, (score, _) in tried.items():
            if field == "start" or one.start == first:
                value = _shown(getattr(one, field))
                best[value] = max(score, best.get(value, score))
        if len(best) > 1:
            if field != "start":
                best = {value: best[value] for value in sorted(best, key=float)}
            notes[plural] = {value: round(score, 4) for value, score in best.items()}
            scores = ", ".join(f"{value} ({score:.4f})" for value, score in best.items())
            say(f"{name} = {_shown(getattr(choice, field))}, of {scores}")
    return notes


def _shown(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"
