"""ITML and term extension as slow float64 loops; imports nothing of jaxsim."""

from __future__ import annotations

import numpy as np
import scipy.optimize


def itml(differences, similar, upper: float, lower: float, gamma: float, cycles: int) -> np.ndarray:
    """Davis and others (2007), Algorithm 1, with full matrices, from the identity: ``A``.

    Checked against metric-learn 0.7.0, equal to 1e-14; it is no peer of the tests, as it does not run with scikit-learn
    1.9 (``force_all_finite`` is gone).
    """
    n, size = differences.shape
    a, dual = np.eye(size), np.zeros(n)
    bound = np.where(similar, upper, lower).astype(float)
    for _ in range(cycles):
        for i, v in enumerate(differences):
            p = v @ a @ v
            if p == 0:
                continue
            delta = 1.0 if similar[i] else -1.0
            alpha = min(dual[i], delta * gamma / (gamma + 1) * (1 / p - 1 / bound[i]))
            beta = delta * alpha / (1 - delta * alpha * p)
            bound[i] = gamma * bound[i] / (gamma + delta * alpha * bound[i])
            dual[i] -= alpha
            a = a + beta * np.outer(a @ v, a @ v)
    return a


def log_det(a, b) -> float:
    """LogDet divergence of positive definite matrices."""
    ratio = a @ np.linalg.inv(b)
    return float(np.trace(ratio) - np.linalg.slogdet(ratio)[1] - len(a))


def metric_by_slsqp(basis, differences, similar, upper: float, lower: float, gamma: float) -> np.ndarray:
    """The same problem over ``I + U L Uᵀ`` with slack, given to a general solver: ``I + L``."""
    k, n = basis.shape[1], len(differences)
    start = np.where(similar, upper, lower).astype(float)
    place = np.tril_indices(k)

    def parts(x):
        factor = np.zeros((k, k))
        factor[place] = x[: len(place[0])]
        return factor @ factor.T, np.exp(x[len(place[0]) :]) * start

    def value(x):
        m, bound = parts(x)
        ratio = bound / start
        return log_det(m, np.eye(k)) + gamma * np.sum(ratio - np.log(ratio) - 1)

    def room(x):
        m, bound = parts(x)
        whole = np.eye(len(basis)) + basis @ (m - np.eye(k)) @ basis.T
        distance = np.einsum("ni,ij,nj->n", differences, whole, differences)
        return np.where(similar, bound - distance, distance - bound)

    x = np.concatenate([np.eye(k)[place], np.zeros(n)])
    result = scipy.optimize.minimize(value, x, constraints={"type": "ineq", "fun": room}, method="SLSQP",
                                     options={"maxiter": 1000, "ftol": 1e-14})
    return parts(result.x)[0]


def extended(weights, relations) -> np.ndarray:
    """001 Eq. (2): ``[docs, terms]`` with :math:`f_k + sum_i a_ik f_i`, from ``(i, k, a)`` triples."""
    out = weights.copy()
    for p in range(len(weights)):
        for i, k, coefficient in relations:
            out[p, k] += coefficient * weights[p, i]
    return out


def extension_gradient(p, q, relations) -> np.ndarray:
    """001, appendix, as derived again: the derivative of the cosine of two extended documents in each coefficient."""
    g_p, g_q = extended(p[None], relations)[0], extended(q[None], relations)[0]
    a, b, c = g_p @ g_q, 1 / np.linalg.norm(g_p), 1 / np.linalg.norm(g_q)
    return np.array([b * c * (p[i] * g_q[k] + q[i] * g_p[k]) - a * c * b**3 * p[i] * g_p[k]
                     - a * b * c**3 * q[i] * g_q[k] for i, k, _ in relations])


def products_of_terms(left, right, pairs, combine) -> dict[tuple[int, int], float]:
    """001 §4.3.1: every pair of different terms with its combined product of normalised weights."""
    unit = [side / np.maximum(np.linalg.norm(side, axis=1, keepdims=True), 1e-300) for side in (left, right)]
    result: dict[tuple[int, int], float] = {}
    for p, q in pairs:
        for i, a in enumerate(unit[0][p]):
            for k, b in enumerate(unit[1][q]):
                if i != k and a > 0 and b > 0:
                    key = min(i, k), max(i, k)
                    result[key] = combine(result[key], a * b) if key in result else a * b
    return result
