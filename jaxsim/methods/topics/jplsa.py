"""Joint PLSA: comparable documents of several languages have one topic vector (002 §2.4)."""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from jaxsim.methods.topics import training
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

RUN = Run(max_iter=100)


def fit(
    views: Sequence[Terms],
    *,
    k: int,
    key: jax.Array | None = None,
    start: str = "blocks",
    alpha: float = 1.1,
    beta: float = 1.01,
    merged: bool = False,
    each: int = 1,
    mesh=None,
    run: Run | None = None,
    **options,
) -> Fit:
    r"""Maximises the posterior density of θ, one topic vector a tuple, and of φ, by EM.

    .. math:: \sum_{m, d, w} x^m_{dw} \log \sum_t \theta_{dt} \phi^m_{wt}
              + (\alpha - 1) \sum \log \theta + (\beta - 1) \sum \log \phi

    Args:
      views: two or more `Terms` of **counts**, the same documents in several languages over shared vocabulary slots. An
        empty row is a document that the language lacks.
      k: topics, at most the number of words of any language.
      key: PRNG key of a random start; none for ``blocks``.
      start: ``blocks`` of words by frequency, the paper's; ``soft`` or ``hard``, random (`starts.make`).
      alpha: Dirichlet prior of θ, at least 1, where the maximum is that of the likelihood.
      beta: Dirichlet prior of φ, at least 1.
      merged: whether a slot is one word for all languages (002), or a word of each language (000, and the default).
      each: iterations a step of the run: ``validate`` is called after so many.
      mesh: `jax.sharding.Mesh` of one axis whose devices share the documents; None for one device.
      run: how long it runs, by what score of the parameters, and where it is kept; 100 steps by default.
      **options: fields of `Run`, in place of those of ``run``.

    Returns:
      `Fit` of a tuple of `Topics`, one a language; the loss of an entry is minus the objective a word, of the
      parameters before its step, and never rises.

    Raises:
      ValueError: for negative counts, views that do not agree, a language without words, a ``k`` or a prior out of
        range, a random start without a key, or a checkpoint of another problem.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> view = from_scipy(scipy.sparse.csr_matrix(np.kron(np.eye(2), np.ones((3, 2)))))
      >>> left, right = fit((view, view), k=2, start="soft", key=jax.random.key(0)).params
      >>> left.words.round(2).sum(axis=0).tolist()
      [1.0, 1.0]

    Relations: `cplsa` gives every document a vector of its own and couples them; `cl_lsi` is its linear counterpart.

    Differs from the paper: separate vocabularies unless ``merged``; 000 found them better.
    """
    return training.fit(
        training.views_of(views), k=k, start=start, key=key, alpha=alpha, beta=beta, merged=merged, joint=True,
        languages=1, coupling=None, sigma=np.inf, each=each, mesh=mesh, run=Run.of(run, options, RUN))
