"""All-pairs evaluation against plain loops over pairs and queries."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse
from jaxsim.evaluate import all_pairs, retrieval
from jaxsim.sparse import Vectors

LABELS = ["a", "b", "c", "d"]


def made_up(rng, n=37):
    labels = [list(rng.choice(LABELS, rng.integers(1, 3), replace=False)) for _ in range(n)]
    labels[3], labels[4] = [], ["alone"]
    dense = rng.integers(-1, 3, (n, 4)).astype(float)  # many ties
    dense[5] = 0
    return labels, dense


def cosine(a, b):
    norms = np.linalg.norm(a) * np.linalg.norm(b)
    return float(np.float32(a @ b / norms)) if norms else 0.0


def loop(labels, dense):
    """Figures of `all_pairs.score` from the definitions."""
    n = len(labels)
    alike = [[bool(set(labels[i]) & set(labels[j])) for j in range(n)] for i in range(n)]
    # Rounded, so that scores that are equal in exact arithmetic are ties here too.
    scores = [[round(cosine(dense[i], dense[j]), 6) for j in range(n)] for i in range(n)]
    pairs = [(scores[i][j], alike[i][j]) for i in range(n) for j in range(i)]
    good, bad = [s for s, y in pairs if y], [s for s, y in pairs if not y]
    wins = sum((p > q) + 0.5 * (p == q) for p in good for q in bad)
    f1 = 0.0
    for threshold in {s for s, _ in pairs}:
        hits, result = sum(s >= threshold for s in good), sum(s >= threshold for s, _ in pairs)
        f1 = max(f1, 2 * hits / (result + len(good)))
    queries = {"p@5": [], "p@10": [], "map": []}
    for i in range(n):
        order = sorted((j for j in range(n) if j != i), key=lambda j: (-scores[i][j], j))
        hits = np.cumsum([alike[i][j] for j in order])
        queries["p@5"].append(hits[4] / 5)
        queries["p@10"].append(hits[9] / 10)
        at = [hits[r] / (r + 1) for r, j in enumerate(order) if alike[i][j]]
        queries["map"].append(np.mean(at) if at else 0.0)
    return wins / (len(good) * len(bad)), f1, queries


def rounded(left, right):
    """A cosine on a grid, so that ties are ties whatever the order of the sums."""
    score = retrieval.cosine(left, right)
    return lambda rows: np.round(np.asarray(score(rows), np.float64), 6).astype(np.float32)


@pytest.mark.parametrize("block", [1, 8, 256])
@pytest.mark.parametrize("bare", [False, True])
def test_figures_match_plain_loops(rng, block, bare):
    labels, dense = made_up(rng)
    vectors = Vectors(dense=jnp.asarray(dense))
    if bare:
        vectors = Vectors(sparse=sparse.from_scipy(scipy.sparse.csr_matrix(dense)))
    result = all_pairs.score(vectors, all_pairs.incidence(labels), similarity=rounded, block=block)
    auc, f1, queries = loop(labels, dense)
    assert result.auc == pytest.approx(auc, abs=1e-12) and result.max_f1 == pytest.approx(f1, abs=1e-12)
    for name, values in queries.items():
        np.testing.assert_allclose(result.per_query[name], values, atol=1e-12)
    assert result.means()["map"] == pytest.approx(np.mean(queries["map"]))
    assert result.per_query["map"][3] == result.per_query["p@5"][4] == 0  # no label, and a label of one document
    assert all_pairs.auc(vectors, all_pairs.incidence(labels), similarity=rounded, block=block) == result.auc


def test_a_cosine_that_knows_nothing_and_one_that_knows_all(rng):
    labels, dense = made_up(rng)
    table = all_pairs.incidence(labels)
    same = Vectors(dense=jnp.ones((len(labels), 2)))
    assert all_pairs.auc(same, table) == 0.5
    single = [[one[0]] if one else [f"none {i}"] for i, one in enumerate(labels)]
    right = all_pairs.incidence(single)
    best = all_pairs.score(Vectors(dense=jnp.asarray(right.toarray())), right)
    assert best.auc == best.max_f1 == 1
    assert set(np.unique(best.per_query["map"])) == {0.0, 1.0}  # 0: nothing to find


def test_fewer_documents_than_k(rng):
    result = all_pairs.score(Vectors(dense=jnp.eye(3)), all_pairs.incidence([["a"], ["a"], ["b"]]))
    assert result.per_query["p@5"].tolist() == [0.2, 0.2, 0.0]


def test_sharing_a_label():
    table = all_pairs.incidence([["b", "a", "a"], (), {"a"}, ["c"]])
    assert table.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [1, 0, 0], [0, 0, 1]]
    assert all_pairs.share(table, [0, 0, 1, 2], [2, 3, 1, 2]).tolist() == [True, False, False, True]


@pytest.mark.parametrize(("labels", "size", "message"), [
    ([["a"], ["a"]], 3, r"labels: expected 3 rows \(as vectors\), got 2"),
    ([["a"], ["a"]], 2, "labels: expected some pairs that share a label and some that do not, got one kind alone"),
    ([["a"], ["b"]], 2, "labels: expected some pairs that share a label"),
    ([["a"]], 1, "vectors: expected at least two documents, got 1"),
    (["ab", "a"], 2, "labels: expected labels of each document, got a string"),
])
def test_bad_input_is_refused(labels, size, message):
    with pytest.raises(ValueError, match=message):
        all_pairs.score(Vectors(dense=jnp.ones((size, 2))), all_pairs.incidence(labels))


def test_jackknife_values_of_documents_are_those_without_each(rng):
    labels, dense = made_up(rng)
    vectors, kept = Vectors(dense=jnp.asarray(dense)), all_pairs.incidence(labels)
    values = all_pairs.auc_by_document(vectors, kept, similarity=rounded, block=8)
    whole, n = loop(labels, dense)[0], len(labels)
    for document in (0, 3, 5, n - 1):  # one without labels, one of zeros
        others = np.arange(n) != document
        without = loop([one for one, other in zip(labels, others, strict=True) if other], dense[others])[0]
        np.testing.assert_allclose(values[document], n * whole - (n - 1) * without, rtol=1e-9)
