"""Losses, projections and weightings as slow float64 loops from the papers' equations; imports nothing of jaxsim.

Numbers of equations: 000 is S2Net, 002 the cross-language projections, 001 and 004 the term weightings, 003 SSI.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg


def softplus(x: float) -> float:
    """``log(1 + exp(x))`` without overflow."""
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def sigmoid(x: float) -> float:
    """``1 / (1 + exp(-x))`` without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def logistic_pairwise(delta: float, gamma: float) -> float:
    """000 Eq. (2)."""
    return softplus(-gamma * delta)


def margin_ranking(positive: float, negative: float, margin: float) -> float:
    """003 §2.3."""
    return max(0.0, margin - positive + negative)


def squared(label: float, score: float) -> float:
    """000 §3.2."""
    return (label - score) ** 2 / 2


def log(label: float, score: float, bound: float) -> float:
    """004 Eq. (5), the score kept inside ``[bound, 1 - bound]``."""
    score = min(max(score, bound), 1 - bound)
    return -label * math.log(score) - (1 - label) * math.log(1 - score)


def cosine(a, b) -> float:
    """Cosine of two vectors; 0 if either is zero."""
    norms = math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(x * x for x in b))
    return sum(x * y for x, y in zip(a, b, strict=True)) / norms if norms else 0.0


def cosine_gradient(a, b) -> np.ndarray:
    """Derivative of the cosine in ``a``; 0 if either vector is zero."""
    length_a, length_b = np.linalg.norm(a), np.linalg.norm(b)
    if not length_a or not length_b:
        return np.zeros_like(a)
    return b / (length_a * length_b) - cosine(a, b) * a / length_a**2


def all_pairs_logistic(left, right, gamma: float, groups=None, weights=None) -> tuple[float, np.ndarray, np.ndarray]:
    """Mean over i, j of different groups (i != j) and both directions of 000 Eq. (2), and its two gradients.

    Groups of several columns are different where all columns are. What compares i and j counts w_i w_j times.
    """
    m = len(left)
    weights = np.ones(m) if weights is None else np.asarray(weights)
    groups = np.reshape(range(m) if groups is None else groups, (m, -1))
    total, d_left, d_right = 0.0, np.zeros_like(left), np.zeros_like(right)

    def add(i, j, weight):  # weight times the gradient of cos(left_i, right_j)
        d_left[i] += weight * cosine_gradient(left[i], right[j])
        d_right[j] += weight * cosine_gradient(right[j], left[i])

    count = 2 * sum(weights[i] * weights[j] * np.all(groups[i] != groups[j]) for i in range(m) for j in range(m))
    for i in range(m):
        for j in range(m):
            if np.any(groups[i] == groups[j]):
                continue
            for own, a, b in ((i, i, j), (i, j, i)):  # another right document for i, then another left one
                delta = cosine(left[own], right[own]) - cosine(left[a], right[b])
                share = weights[i] * weights[j] / count
                total += logistic_pairwise(delta, gamma) * share
                slope = -gamma * sigmoid(-gamma * delta) * share
                add(own, own, slope)
                add(a, b, -slope)
    return total, d_left, d_right


def s2net(left, right, a, b, gamma, beta, a0, b0, *, shared, activation=lambda x: x) -> float:
    """000 §3: the all-pairs loss of the outputs, and the distance from the start (counted once if shared)."""
    apart = np.sum((a - a0) ** 2) + (0 if shared else np.sum((b - b0) ** 2))
    return all_pairs_logistic(activation(left @ a), activation(right @ b), gamma)[0] + beta * apart / 2


def s2net_mse(left, right, pairs, a, beta, a0) -> float:
    """000 §3.2: mean of half the squared error of the cosine over ``(row, row, label)`` triples."""
    loss = [squared(label, cosine(left[i] @ a, right[j] @ a)) for i, j, label in pairs]
    return sum(loss) / len(loss) + beta * np.sum((a - a0) ** 2) / 2


def fix_signs(vectors) -> np.ndarray:
    """Columns whose entry of largest magnitude is positive."""
    largest = vectors[np.argmax(np.abs(vectors), axis=0), np.arange(vectors.shape[1])]
    return vectors * np.where(largest < 0, -1.0, 1.0)


def lsa(documents, k: int) -> np.ndarray:
    """002 Eq. (1): the leading right singular vectors."""
    return fix_signs(scipy.linalg.svd(documents, full_matrices=False)[2][:k].T)


def covariance(documents) -> np.ndarray:
    """``DᵀD / n - μ μᵀ``."""
    mean = documents.mean(axis=0)
    return documents.T @ documents / len(documents) - np.outer(mean, mean)


def pca(documents, k: int) -> np.ndarray:
    """Leading eigenvectors of the covariance."""
    return fix_signs(scipy.linalg.eigh(covariance(documents))[1][:, ::-1][:, :k])


def signal_and_noise(views, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """002 Eq. (9)-(11)."""
    mean = sum(views) / len(views)
    signal = sum(covariance(view) for view in views)
    distortion = sum((view - mean).T @ (view - mean) for view in views) / len(mean)
    return signal, distortion + noise * np.eye(mean.shape[1])


def opca(views, k: int, noise: float) -> np.ndarray:
    """002 Eq. (7)."""
    return fix_signs(scipy.linalg.eigh(*signal_and_noise(views, noise))[1][:, ::-1][:, :k])


def dda(views, k: int, noise: float, num_blocks: int, block_k: int) -> np.ndarray:
    """002 §4: OPCA inside every block of terms (j modulo the number of blocks), then inside the span of all of them."""
    v = views[0].shape[1]
    first = np.zeros((v, 0))
    for start in range(num_blocks):
        block = np.arange(start, v, num_blocks)
        columns = np.zeros((v, min(block_k, block.size)))
        columns[block] = opca([view[:, block] for view in views], columns.shape[1], noise)
        first = np.concatenate([first, columns], axis=1)
    signal, distortion = (first.T @ matrix @ first for matrix in signal_and_noise(views, noise))
    return fix_signs(first @ scipy.linalg.eigh(signal, distortion)[1][:, ::-1][:, :k])


def cca(left, right, k: int, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """002 Eq. (12)-(13) as printed, one eigenproblem over both vocabularies; unit regularised variance a side."""
    v1, v2 = left.shape[1], right.shape[1]
    cross = left.T @ right / len(left) - np.outer(left.mean(axis=0), right.mean(axis=0))
    first = np.block([[np.zeros((v1, v1)), cross], [cross.T, np.zeros((v2, v2))]])
    second = scipy.linalg.block_diag(covariance(left) + ridge * np.eye(v1), covariance(right) + ridge * np.eye(v2))
    # vᵀ N v = 1 over both sides together; each side holds half of it.
    vectors = math.sqrt(2) * scipy.linalg.eigh(first, second)[1][:, ::-1][:, :k]
    largest = vectors[np.argmax(np.abs(vectors[:v1]), axis=0), np.arange(k)]
    vectors = vectors * np.sign(largest)
    return vectors[:v1], vectors[v1:]


def cr5(views, k: int, ridge: float, power: float) -> list[np.ndarray]:
    """Josifoski et al. 2019 with every matrix formed: documents of all languages in one, empty ones left out."""
    n, offsets = len(views[0]), np.cumsum([0, *(view.shape[1] for view in views)])
    rows, concepts = [], []
    for view, offset in zip(views, offsets, strict=False):
        for i in range(n):
            if np.any(view[i]):
                rows.append(np.zeros(offsets[-1]))
                rows[-1][offset : offset + view.shape[1]] = view[i]
                concepts.append(np.eye(n)[i])
    z, y = np.array(rows), np.array(concepts)
    z, y = z - z.mean(axis=0), y - y.mean(axis=0)
    full = np.linalg.solve(z.T @ z + ridge * np.eye(len(z.T)), z.T @ y)
    # The nearest matrix of rank k in the norm of the regularised covariance.
    leading = scipy.linalg.svd(np.concatenate([z @ full, math.sqrt(ridge) * full]), full_matrices=False)[2][:k]
    left, values, _ = scipy.linalg.svd(full @ leading.T @ leading, full_matrices=False)
    return np.split(fix_signs(left[:, :k] * values[:k] ** power), offsets[1:-1])


def document_frequency(counts) -> list[int]:
    """Number of documents with a count above 0, a term."""
    return [sum(1 for row in counts if row[j] > 0) for j in range(counts.shape[1])]


def tfidf(counts, training) -> np.ndarray:
    """001 Eq. (5): ``tf · log(N / df)``."""
    out = np.zeros_like(counts)
    for j, df in enumerate(document_frequency(training)):
        for i in range(len(counts)):
            out[i, j] = counts[i, j] * math.log(len(training) / df) if df else 0.0
    return out


def log_tfidf(counts, training) -> np.ndarray:
    """002 Eq. (8): ``log2(tf + 1) · log2(n / d)``."""
    out = np.zeros_like(counts)
    for j, df in enumerate(document_frequency(training)):
        for i in range(len(counts)):
            out[i, j] = math.log2(counts[i, j] + 1) * math.log2(len(training) / df) if df else 0.0
    return out


def bm25(counts, training, k1: float, b: float) -> np.ndarray:
    """Okapi BM25, the document side, with ``log(1 + (N - df + ½) / (df + ½))``."""
    out = np.zeros_like(counts)
    average = training.sum() / len(training)
    for j, df in enumerate(document_frequency(training)):
        idf = math.log(1 + (len(training) - df + 0.5) / (df + 0.5)) if df else 0.0
        for i in range(len(counts)):
            norm = k1 * (1 - b + b * counts[i].sum() / average)
            out[i, j] = idf * counts[i, j] * (k1 + 1) / (counts[i, j] + norm) if counts[i, j] else 0.0
    return out


def cl_lsi(views, k: int) -> np.ndarray:
    """002 Eq. (5): counts summed over the languages before the logarithm; d and n over all languages."""
    return lsa(log_tfidf(sum(views), np.concatenate(views)), k)


def ssi_score(u, v, diagonal, query, document) -> float:
    """003 Eq. (4), qᵀ(UᵀV + D)d, with the transposes of U and V as arguments."""
    return float((query @ u) @ (document @ v) + query @ (diagonal * document))


def ssi_sgd(u, v, diagonal, triples, queries, documents, margin: float, rate: float):
    """003 §2.3: steps on one triple after the other; ``v`` None: V = U. Returns U, V, losses before each."""
    u, symmetric = u.copy(), v is None
    v = u if symmetric else v.copy()
    result = []
    for query, better, worse in triples:
        q, difference = queries[query], documents[better] - documents[worse]
        result.append(max(0.0, margin - ssi_score(u, v, diagonal, q, difference)))
        if result[-1] > 0:
            step_u, step_v = np.outer(q, difference @ v), np.outer(difference, q @ u)
            u += rate * step_u
            v += rate * step_v
    return u, v, result


def ssi_diag_sgd(diagonal, triples, queries, documents, margin: float, rate: float):
    """The same for W = D (003 §2.2.1). Returns D and the losses before each step."""
    diagonal, result = diagonal.copy(), []
    for query, better, worse in triples:
        products = queries[query] * (documents[better] - documents[worse])
        result.append(max(0.0, margin - float(diagonal @ products)))
        if result[-1] > 0:
            diagonal += rate * products
    return diagonal, result


def not_linked(links, known, query: int, num_documents: int) -> list[int]:
    """Documents that may be drawn as negatives of a query."""
    pairs = {(int(a), int(b)) for a, b in [*links, *known]}
    return [document for document in range(num_documents) if (query, document) not in pairs]


def lbfgs_direction(grad, steps, changes) -> np.ndarray:
    """Nocedal and Wright, algorithm 7.4, for pairs ordered from oldest to newest."""
    q, alphas = grad.copy(), []
    for s, y in zip(reversed(steps), reversed(changes), strict=True):
        alphas.append(np.dot(s, q) / np.dot(y, s))
        q = q - alphas[-1] * y
    if steps:
        q = q * np.dot(steps[-1], changes[-1]) / np.dot(changes[-1], changes[-1])
    for s, y, alpha in zip(steps, changes, reversed(alphas), strict=True):
        q = q + s * (alpha - np.dot(y, q) / np.dot(y, s))
    return -q


def central_difference(function, x, direction, step: float = 1e-6) -> float:
    """Derivative of a scalar function along a direction."""
    return (float(function(x + step * direction)) - float(function(x - step * direction))) / (2 * step)


def term_vectors(features, weights) -> np.ndarray:
    """004 Eq. (3): ``[docs, terms, features]`` (0 where a term does not occur) to ``[docs, terms]``."""
    out = np.zeros(features.shape[:2])
    for p in range(features.shape[0]):
        for i in range(features.shape[1]):
            out[p, i] = sum(w * x for w, x in zip(weights, features[p, i], strict=True))
    return out


def tweak(left, right, triples, weights, loss, alpha, centre) -> float:
    """004 Eq. (4) and (5) as means over ``(row, row, label)``, and ``α/2 ‖w - c‖²``."""
    p, q = term_vectors(left, weights), term_vectors(right, weights)
    each = [loss(label, cosine(p[i], q[j])) for i, j, label in triples]
    return sum(each) / len(each) + alpha * np.sum((weights - centre) ** 2) / 2


def preference_loss(left, right, quadruples, gamma) -> float:
    """001 Eq. (4) as a mean over ``(row, row, row, row)``: the first pair above the second."""
    each = [logistic_pairwise(cosine(left[a], right[b]) - cosine(left[c], right[d]), gamma)
            for a, b, c, d in quadruples]
    return sum(each) / len(each)
