r"""Coupled PLSA: comparable documents use every topic for the same share of their words (002 §2.5).

Each document has a topic vector of its own. In the E step the posteriors of its words are replaced by those nearest to
them (in Kullback–Leibler divergence, plus :math:`\sigma \|\epsilon\|_1` for what is left of the difference) under which
all documents of a tuple have the same expected share of each topic (posterior regularisation). Equation numbers are
this module's. With multipliers :math:`\lambda^m_t`, :math:`\sum_m \lambda^m_t = 0`, and :math:`n_m` words, these are

.. math:: q^m(t \mid w) \propto \theta^m_t e^{-\lambda^m_t / n_m} \phi^m_{wt}, \qquad (1)

the ordinary posteriors of a tilted θ. The multipliers maximise :math:`-\sum_m \sum_j \log \sum_t p^m_j(t)
e^{-\lambda^m_t / n_m}`, whose gradient is the shares :math:`f^m_t` of the topics, with :math:`|\lambda| \le \sigma`.
Since :math:`\log x \le x - 1` the topics part, and a step that never lowers the dual is

.. math:: \lambda^m_t \leftarrow \lambda^m_t + n_m \Big( \log f^m_t - \frac{\sum_l n_l \log f^l_t}{\sum_l n_l} \Big),
          \qquad (2)

which for two languages adds :math:`\frac{n_1 n_2}{n_1 + n_2} \log (f^1_t / f^2_t)` to :math:`\lambda_t`. The paper's
projected gradient takes the shares in place of their logarithms, at the largest safe step:

.. math:: \lambda^m_t \leftarrow \lambda^m_t + 2 n_m \Big( f^m_t - \frac{\sum_l n_l f^l_t}{\sum_l n_l} \Big). \qquad (3)
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import numpy as np

from jaxsim import checks
from jaxsim.methods.topics import training
from jaxsim.methods.topics.training import Coupling
from jaxsim.optim import Fit, Run
from jaxsim.sparse import Terms

RUN = Run(max_iter=50)
DUALS = ("scaling", "gradient")


def fit(
    views: Sequence[Terms],
    *,
    k: int,
    key: jax.Array | None = None,
    start: str = "blocks",
    alpha: float = 1.1,
    beta: float = 1.01,
    merged: bool = False,
    shared: bool = False,
    dual_steps: int = 3,
    dual: str = "scaling",
    sigma: float = np.inf,
    each: int = 1,
    mesh=None,
    run: Run | None = None,
    **options,
) -> Fit:
    r"""Maximises the posterior density less the divergence of the coupled posteriors, by EM with Eq. (1)–(3).

    Args:
      views: as for `jplsa.fit`, like the next ones.
      k: topics.
      key: PRNG key of a random start.
      start: ``blocks``, ``soft`` or ``hard``.
      alpha: Dirichlet prior of θ.
      beta: Dirichlet prior of φ.
      merged: whether languages share their words.
      shared: whether a tuple shares its θ too (000 §2.1), or each document has its own (002).
      dual_steps: steps of the multipliers in each E step; they go on from those of the last iteration.
      dual: ``scaling``, Eq. (2), or ``gradient``, Eq. (3). Both end at the same multipliers; the gradient takes longer.
      sigma: bound of the multipliers of a pair, positive; infinite for shares that have to agree. It is in words: at
        σ = 1 the coupling of documents of a hundred words is lost.
      each: iterations a step of the run.
      mesh: whose devices share the documents.
      run: how it runs; 50 steps by default.
      **options: fields of `Run`.

    Returns:
      `Fit` of a tuple of `Topics`, one a language. The loss of an entry is at most the objective's; it is reached as
      the multipliers are.

    Raises:
      ValueError: as `jplsa.fit`; for a ``sigma`` that is not positive, or finite with more than two languages.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> view = from_scipy(scipy.sparse.csr_matrix(np.kron(np.eye(2), np.ones((3, 2)))))
      >>> left, right = fit((view, view), k=2, start="soft", key=jax.random.key(0), max_iter=5).params
      >>> left.words.shape
      (4, 2)

    Relations: `jplsa` has one posterior a tuple, which the longer document decides.

    Differs from the paper: σ is infinite unless given, since the paper does not print it.
    """
    counts = training.views_of(views)
    checks.positive_int(dual_steps, "dual_steps")
    checks.expect(dual in DUALS, "dual", " or ".join(DUALS), dual)
    checks.expect(sigma > 0, "sigma", "a positive number", sigma)
    checks.expect(len(counts) == 2 or np.isinf(sigma), "sigma", "infinity, for more than two languages", sigma)
    return training.fit(
        counts, k=k, start=start, key=key, alpha=alpha, beta=beta, merged=merged, joint=False,
        languages=1 if shared else len(counts), coupling=Coupling(dual_steps, dual), sigma=sigma, each=each, mesh=mesh,
        run=Run.of(run, options, RUN))
