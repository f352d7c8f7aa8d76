"""PLSA with Dirichlet priors: latent Dirichlet allocation by its posterior mode, one language (000 §2.1)."""

from __future__ import annotations

import jax
import numpy as np

from jaxsim import checks
from jaxsim.methods import statistics
from jaxsim.methods.topics import training
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

RUN = Run(max_iter=100)


def fit(
    terms: Terms,
    *,
    k: int,
    key: jax.Array | None = None,
    start: str = "blocks",
    alpha: float = 1.1,
    beta: float = 1.01,
    each: int = 1,
    mesh=None,
    run: Run | None = None,
    **options,
) -> Fit:
    r"""Maximises the posterior density of θ, a topic vector a document, and of φ, by EM.

    .. math:: \sum_{d, w} x_{dw} \log \sum_t \theta_{dt} \phi_{wt} + (\alpha - 1) \sum \log \theta
              + (\beta - 1) \sum \log \phi

    Args:
      terms: **counts**, ``[num_docs, num_terms]``; of pairs, all documents of both sides.
      k: topics, at most the number of words.
      key: as for `jplsa.fit`, like the next ones.
      start: ``blocks``, ``soft`` or ``hard``.
      alpha: Dirichlet prior of θ.
      beta: Dirichlet prior of φ.
      each: iterations a step of the run.
      mesh: whose devices share the documents.
      run: how it runs.
      **options: fields of `Run`.

    Returns:
      `Fit` of `Topics`.

    Raises:
      ValueError: as `jplsa.fit`.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> documents = from_scipy(scipy.sparse.csr_matrix(np.kron(np.eye(2), np.ones((3, 2)))))
      >>> fit(documents, k=2).params.words.shape
      (4, 2)

    Relations: at α = β = 1 the non-negative matrix factorisation with the Kullback–Leibler loss.
    """
    counts = statistics.counts_of(terms, "terms")
    checks.expect(counts.shape[0] > 0, "terms", "at least one document", 0)
    return training.fit(
        [counts], k=k, start=start, key=key, alpha=alpha, beta=beta, merged=True, joint=True, languages=1,
        coupling=None, sigma=np.inf, each=each, mesh=mesh, single=True, run=Run.of(run, options, RUN))
