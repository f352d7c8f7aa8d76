"""The methods ``jplsa``, ``cplsa`` and ``plsa`` from pairs of texts: topics, with early stopping on held-out pairs."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import sparse
from jaxsim.evaluate import mates, retrieval
from jaxsim.methods import cplsa, jplsa, plsa, topics
from jaxsim.methods.projections import Projection
from jaxsim.optim import Fit
from jaxsim.train import held_out
from jaxsim.train.problem import Learned, Problem

_EACH = {"cplsa": 5}  # iterations between two scores of held-out pairs; 10 of the others
_LENGTH = {"cplsa": 200}  # iterations at most; 500 of the others, as in 002
_UNSCORED = {"cplsa": 50}  # with nothing to stop by; 100 of the others


def most(counts: Sequence[sp.csr_matrix], method: str) -> int:
    """The most topics: as many as there are different words, by ``jplsa`` and ``cplsa`` on the side with fewer.

    Args:
      counts: of both sides.
      method: ``"plsa"``, or one of the others.

    Returns:
      Their number.

    Example:
      >>> sides = [sp.csr_matrix([[1.0, 2.0, 0.0]]), sp.csr_matrix([[0.0, 0.0, 1.0]])]
      >>> most(sides, "plsa"), most(sides, "jplsa")
      (3, 1)
    """
    sides = [sp.vstack(counts).tocsr()] if method == "plsa" else counts
    return min(int(np.unique(side.indices).size) for side in sides)


def fit(problem: Problem) -> Learned:
    """Topics of the training pairs, from random shares of topics; every language has words of its own.

    Args:
      problem: training pairs, held-out pairs and settings.

    Returns:
      `Learned`, of a `Projection` that gives the topics of each word, one a side (one for both by ``plsa``); its notes
      say how many ``iterations`` were made.

    Raises:
      ValueError: for a side without words.
    """
    settings, method = problem.settings, problem.settings.method
    longest = _LENGTH.get(method, 500) if problem.dev else _UNSCORED.get(method, 100)
    steps, each = _steps(longest if settings.max_iter is None else settings.max_iter, _EACH.get(method, 10))
    options = {"start": "soft", "key": jax.random.key(settings.seed), "each": each, "max_iter": steps,
               "checkpoint": problem.checkpoint, "progress": problem.progress, "callback": problem.logged()}
    if problem.dev:
        options |= {"validate": held_out.averaged(_validator, problem.dev, problem.sets),
                    "patience": -(-(30 if settings.patience is None else settings.patience) // each)}
    k = min(problem.k, most(problem.counts, method))
    if method == "plsa":
        both = sparse.from_scipy(sp.vstack(problem.counts, format="csr"))
        result = plsa.fit(both, k=k, **options)
        return Learned(result._replace(params=Projection(topics.responsibilities(result.params))), _notes(result))
    views = [sparse.from_scipy(side) for side in problem.counts]
    model, more = (cplsa, {"shared": True}) if method == "cplsa" else (jplsa, {})
    result = model.fit(views, k=k, **options, **more)
    sides = tuple(Projection(topics.responsibilities(side)) for side in result.params)
    return Learned(result._replace(params=sides), _notes(result))


def _notes(result: Fit) -> dict[str, int]:
    """What a model notes of a fit, whose steps have several iterations each."""
    return {"iterations": result.evaluations}


def _steps(length: int, most: int) -> tuple[int, int]:
    """Steps, and iterations of each, ``most`` or down to half as many: together at most ``length``, and nearly so."""
    most = min(length, most)
    each = max(range(-(-most // 2), most + 1), key=lambda each: (length // each * each, each))
    return length // each, each


def _validator(dev):
    """The MRR of held-out pairs. Their lengths do not count: folding in once is linear up to the sum of its shares."""
    def score(params) -> float:
        both = (params, params) if isinstance(params, topics.Topics) else params
        result = (topics.encode(own, side) for own, side in zip(both, dev, strict=True))
        return mates.scores(*result, similarity=retrieval.l1)["mrr"]

    return score
