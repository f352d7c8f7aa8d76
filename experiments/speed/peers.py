"""The programs that jaxsim is measured against; each is optional and returns a function to time.

NumPy and SciPy are always there. PyTorch, faiss, gensim and scikit-learn are the extra `peers`; `kit.measure.installed`
gives None where one is missing, and the measurement then says so.
"""

from __future__ import annotations

import time
from types import ModuleType

import numpy as np
import scipy.linalg
import scipy.optimize
import scipy.sparse

BLOCK = 256


def all_pairs_numpy(left, right, gamma: float, *, both: bool = False):
    """Value and gradients of the all-pairs loss in NumPy row blocks, in the precision of ``left``.

    Args:
      left: ``[m, k]``.
      right: ``[m, k]``.
      gamma: scale.
      both: whether queries on the right are counted too, as `losses.all_pairs_logistic` does; else half the work.

    Returns:
      ``(value, d_left, d_right)``, mean over ``m (m - 1)`` ordered pairs, or twice as many.
    """
    lengths = [np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right)]
    p, q = left / lengths[0], right / lengths[1]
    m = len(p)
    own = np.sum(p * q, axis=1)
    d_p, d_q, total, d_own = np.zeros_like(p), np.zeros_like(q), 0.0, np.zeros_like(own)
    for start in range(0, m, BLOCK):
        rows = slice(start, min(start + BLOCK, m))
        scores = p[rows] @ q.T
        weight = np.zeros_like(scores)
        for compared in (own[rows, None], own[None, :]) if both else (own[rows, None],):
            gap = gamma * (scores - compared)
            shrunk = np.exp(-np.abs(gap))
            terms = np.maximum(gap, 0) + np.log1p(shrunk)
            slope = np.where(gap > 0, 1, shrunk) / (1 + shrunk)
            within = np.arange(scores.shape[0])
            terms[within, start + within] = 0
            slope[within, start + within] = 0
            total += float(terms.sum(dtype=np.float64))
            if compared.shape[1] == 1:
                d_own[rows] -= slope.sum(axis=1)
            else:
                d_own -= slope.sum(axis=0)
            weight += slope
        d_p[rows] = weight @ q
        d_q += weight.T @ p[rows]
    scale = (2.0 if both else 1.0) * m * (m - 1.0)
    gradients = []
    for unit, other, length, d_unit in ((p, q, lengths[0], d_p), (q, p, lengths[1], d_q)):
        whole = (d_unit + d_own[:, None] * other) * (gamma / scale)
        gradients.append((whole - unit * np.sum(whole * unit, axis=1, keepdims=True)) / length)
    return total / scale, *gradients


def all_pairs_torch(torch: ModuleType, left, right, gamma: float):
    """A function computing value and gradients of both directions by autograd of the materialised scores."""
    sides = [torch.tensor(np.asarray(side), requires_grad=True) for side in (left, right)]
    off = ~torch.eye(len(left), dtype=torch.bool)
    count = 2.0 * len(left) * (len(left) - 1.0)
    softplus, unit = torch.nn.functional.softplus, torch.nn.functional.normalize

    def run():
        scores = unit(sides[0]) @ unit(sides[1]).T
        own = scores.diagonal()
        terms = softplus(gamma * (scores - own[:, None])) + softplus(gamma * (scores - own[None, :]))
        value = (terms * off).sum() / count
        return [value.detach().numpy(), *(g.numpy() for g in torch.autograd.grad(value, sides))]

    return run


def embedding_bag(torch: ModuleType, csr: scipy.sparse.csr_matrix, weights: np.ndarray, grad: np.ndarray):
    """Functions for ``F A`` and for the gradient in ``A``, by ``torch.nn.EmbeddingBag(mode="sum")``."""
    bag = torch.nn.EmbeddingBag.from_pretrained(torch.tensor(weights), mode="sum", freeze=False)
    indices, offsets = torch.tensor(csr.indices.astype(np.int64)), torch.tensor(csr.indptr[:-1].astype(np.int64))
    values, grad = torch.tensor(csr.data), torch.tensor(grad)
    out = bag(indices, offsets, per_sample_weights=values)

    def forward():
        with torch.no_grad():
            return bag(indices, offsets, per_sample_weights=values).numpy()

    def backward():
        return torch.autograd.grad(out, bag.weight, grad, retain_graph=True)[0].numpy()

    return forward, backward


def bag(torch: ModuleType, csr: scipy.sparse.csr_matrix, weights: np.ndarray, kind):
    """A function for ``F A`` by ``torch.nn.EmbeddingBag(mode="sum")`` with weights of a type of PyTorch."""
    layer = torch.nn.EmbeddingBag.from_pretrained(torch.tensor(weights).to(kind), mode="sum")
    indices, offsets = torch.tensor(csr.indices.astype(np.int64)), torch.tensor(csr.indptr[:-1].astype(np.int64))
    values = torch.tensor(csr.data).to(kind)

    def forward():
        with torch.no_grad():
            return layer(indices, offsets, per_sample_weights=values).numpy()

    return forward


def lbfgsb(value_and_grad, start: np.ndarray, iterations: int):
    """SciPy's L-BFGS-B from ``start``.

    Returns:
      ``(median seconds an iteration, evaluations an iteration, loss, iterations)``.
    """
    marks = [time.perf_counter()]

    def evaluate(flat):
        value, grad = value_and_grad(flat.reshape(start.shape).astype(start.dtype))
        return float(value), np.asarray(grad, np.float64).ravel()

    found = scipy.optimize.minimize(
        evaluate, start.astype(np.float64).ravel(), jac=True, method="L-BFGS-B",
        callback=lambda flat: marks.append(time.perf_counter()),
        options={"maxcor": 10, "maxiter": iterations, "ftol": 0.0, "gtol": 0.0},
    )
    return float(np.median(np.diff(marks)[1:])), (found.nfev - 1) / found.nit, float(found.fun), int(found.nit)


def dense_opca(views, noise: float, k: int) -> tuple[np.ndarray, np.ndarray]:
    """OPCA of two views by SciPy's dense generalised eigenproblem, float64, ``k`` largest: ``(values, vectors)``."""
    n, num_terms = views[0].shape
    views = [view.astype(np.float64) for view in views]
    signal = np.zeros((num_terms, num_terms))
    for view in views:
        mean = np.asarray(view.mean(axis=0)).ravel()
        signal += (view.T @ view).toarray() / n - np.outer(mean, mean)
    apart = views[0] - views[1]
    spread = (apart.T @ apart).toarray() / (2 * n)
    spread[np.diag_indices(num_terms)] += noise
    values, vectors = scipy.linalg.eigh(signal, spread, subset_by_index=(num_terms - k, num_terms - 1),
                                        overwrite_a=True, overwrite_b=True, check_finite=False)
    return values[::-1], vectors[:, ::-1]


def lsi_vectors(gensim_models: ModuleType, gensim_matutils: ModuleType, csr: scipy.sparse.csr_matrix, k: int):
    """Gensim's LSI, one pass over the whole collection: ``[num_terms, k]``."""
    corpus = gensim_matutils.Sparse2Corpus(csr, documents_columns=False)
    names = {i: str(i) for i in range(csr.shape[1])}
    model = gensim_models.LsiModel(corpus, num_topics=k, id2word=names, chunksize=csr.shape[0], random_seed=0)
    return model.projection.u


def lsa_sklearn(decomposition: ModuleType, csr: scipy.sparse.csr_matrix, k: int, algorithm: str):
    """scikit-learn's TruncatedSVD with its own defaults: ``[num_terms, k]``."""
    return decomposition.TruncatedSVD(k, algorithm=algorithm, random_state=0).fit(csr).components_.T
