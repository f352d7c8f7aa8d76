"""The fit of every method that ``jaxsim train`` offers, each a function of a `Problem`."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import scipy.sparse as sp

from jaxsim import sparse
from jaxsim.methods import cca, cl_lsi, lsa, opca
from jaxsim.train import graded, linked, s2net, topical
from jaxsim.train.problem import Learned, Problem


def _opca(problem: Problem) -> Learned:
    texts, spread = problem.factors
    return Learned(opca.fit(texts, k=problem.k, noise=problem.settings.noise, spread=spread))


def _cca(problem: Problem) -> Learned:
    used = min(int(np.unique(side.indices).size) for side in problem.counts)
    return Learned(cca.fit(*problem.train, k=min(problem.k, used), ridge=problem.settings.noise))


def _lsa(problem: Problem) -> Learned:
    sides = (*problem.train, *([] if problem.unpaired is None else [problem.unpaired]))
    texts = sp.vstack([sparse.to_scipy(side) for side in sides], format="csr")
    return Learned(lsa.fit(sparse.from_scipy(texts), k=problem.k))


def _cl_lsi(problem: Problem) -> Learned:
    return Learned(cl_lsi.fit([sparse.from_scipy(side) for side in problem.counts], k=problem.k, unit_length=True))


FITS: dict[str, Callable[[Problem], Learned]] = {
    "s2net": s2net.fit,
    "s2net-2": functools.partial(s2net.fit, matrices=2),
    "opca": _opca,
    "cca": _cca,
    "cl-lsi": _cl_lsi,
    "lsa": _lsa,
    "ssi": linked.fit,
    "ssi-sym": functools.partial(linked.fit, symmetric=True),
    "s2net-mse": graded.fit,
    "s2net-pref": graded.fit_preferences,
    **dict.fromkeys(("jplsa", "cplsa", "plsa"), topical.fit),
}
"""Method -> its fit; bare term weights, which only count, have none."""
