"""Hash kernels and correlated feature hashing against loops over pairs of words."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import sparse
from jaxsim.methods import ssi_hash, ssi_preferred
from jaxsim.methods.ssi import bilinear, correlated, triples
from jaxsim.methods.ssi import shared as ssi_shared

N, V, H = 8, 9, 37
LINKS = np.array([[0, 1], [0, 4], [1, 0], [2, 5], [3, 1], [5, 2], [6, 7]])
OWN = np.repeat(np.arange(N), 2).reshape(N, 2)


def dense(rng):
    result = rng.random((N, V)) * (rng.random((N, V)) < 0.5)
    result[4] = 0  # an article without words
    length = np.linalg.norm(result, axis=1, keepdims=True)
    return np.divide(result, length, out=np.zeros_like(result), where=length > 0)


def documents(array):
    return sparse.from_scipy(scipy.sparse.csr_matrix(array))


def number(s, t):
    """003 Eq. (5), in whole numbers of any size."""
    return (s * ssi_hash.PRIME + t) % H


def score(weights, query, document):
    return sum(query[s] * document[t] * weights[number(s, t)] for s in range(V) for t in range(V))


REJECTED = np.array([[0, 2], [0, 3], [2, 0], [2, 7], [5, 1], [6, 0], [7, 7]])


@pytest.mark.usefixtures("loop")
@pytest.mark.parametrize(("max_terms", "rejected"), [(None, None), (2, None), (2, REJECTED)])
def test_a_fit_is_the_plain_loop_over_pairs_of_words(rng, key, max_terms, rejected):
    left, right = dense(rng), dense(rng)
    fit = ssi_hash.fit(documents(left), documents(right), LINKS, size=H, key=key, identity=0.5,
                       known=OWN if rejected is None else None, rejected=rejected, learning_rate=0.2,
                       max_terms=max_terms, triples=60, max_iter=1)
    seen = [side if max_terms is None else sparse.to_scipy(bilinear.strongest(documents(side), max_terms)).toarray()
            for side in (left, right)]
    weights = np.zeros(H)
    weights[[number(s, s) for s in range(V)]] = 0.5
    epoch_key, losses = jax.random.fold_in(key, 0), []
    if rejected is None:
        drawn = ssi_shared.drawn(epoch_key, triples.table(LINKS, N, N, known=OWN), 60, chunk=ssi_hash.CHUNK)
    else:
        pairs = ssi_preferred.table(LINKS, REJECTED, N, N)
        drawn = [ssi_preferred.draw(jax.random.fold_in(epoch_key, 0), pairs, 60)[0]]
        assert {*zip(*np.asarray(drawn[0])[[0, 2]].tolist(), strict=True)} <= {*map(tuple, REJECTED.tolist())}
    for some in drawn:
        for query, better, worse in np.stack(some, axis=1):
            q, apart = seen[0][query], seen[1][better] - seen[1][worse]
            losses.append(max(0.0, 1.0 - score(weights, q, apart)))
            if losses[-1] > 0:
                for s in range(V):
                    for t in range(V):
                        weights[number(s, t)] += 0.2 * q[s] * apart[t]
    assert np.count_nonzero(losses) and fit.loss == pytest.approx(np.mean(losses), rel=1e-10)
    np.testing.assert_allclose(fit.params.weights, weights, atol=1e-12)
    result = ssi_hash.scores(fit.params, documents(left), documents(right), max_terms=max_terms)
    expected = [[score(weights, q, d) for d in seen[1]] for q in seen[0]]
    np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.usefixtures("loop")
def test_fewer_weights_than_words_are_shared_too(rng, key):
    """H = 4 for nine words: the number of a term may be above H, more than once."""
    side = dense(rng)
    fit = ssi_hash.fit(documents(side), documents(side), LINKS, size=4, key=key, identity=0.5, known=OWN,
                       learning_rate=0.2, max_terms=None, triples=20, max_iter=1)  # fmt: skip
    weights = np.zeros(4)
    weights[[(s * ssi_hash.PRIME + s) % 4 for s in range(V)]] = 0.5
    (some,) = ssi_shared.drawn(jax.random.fold_in(key, 0), triples.table(LINKS, N, N, known=OWN), 20, chunk=20)
    for query, better, worse in np.stack(some, axis=1):
        slope = np.zeros(4)
        for s in range(V):
            for t in range(V):
                slope[(s * ssi_hash.PRIME + t) % 4] += side[query][s] * (side[better][t] - side[worse][t])
        weights += 0.2 * slope * (1 - weights @ slope > 0)
    np.testing.assert_allclose(fit.params.weights, weights, atol=1e-12)


def test_no_product_leaves_31_bits():
    size = 2**31 - 200_000
    first = ssi_hash.first_of(150_000, size)
    assert first.dtype == np.int32 and first.min() >= 0
    for s in (1, 2, 70_000, 149_999):
        assert int(first[s]) == s * ssi_hash.PRIME % size
    with pytest.raises(ValueError, match="size: expected less than 2147333648"):
        ssi_hash.first_of(150_000, 2**31 - 1)


def test_resuming_is_bit_identical(rng, key, tmp_path):
    side = documents(dense(rng))

    def run(**options):
        return ssi_hash.fit(side, side, LINKS, size=H, key=key, known=OWN, triples=40, **{"max_iter": 4, **options})

    whole = run()
    run(checkpoint=tmp_path, max_iter=2)
    np.testing.assert_array_equal(run(checkpoint=tmp_path).params.weights, whole.params.weights)
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data, start and settings"):
        run(checkpoint=tmp_path, identity=2.0)


@pytest.mark.parametrize(("options", "links", "message"), [
    ({"size": 0}, LINKS, "size: expected a whole number of at least 1, got 0"),
    ({"identity": None}, LINKS, "identity: expected one number, got None"),
    ({"rejected": [[0, 2]]}, LINKS, r"known: expected None \(with rejected\), got pairs"),
    ({"rejected": [[0, 1]], "known": None}, LINKS, r"rejected: expected none of the pairs in links, got \[\[0, 1\]\]"),
    ({}, [[0, 8]], r"links: expected documents in \[0, 8\), got \[\[0, 8\]\]"),
    ({}, [[0, d] for d in range(1, N)], r"links: expected a document left as a negative"),
])
def test_bad_input_is_refused(rng, key, options, links, message):
    side = documents(dense(rng))
    with pytest.raises(ValueError, match=message):
        ssi_hash.fit(side, side, links, **{"size": H, "key": key, "known": OWN, "triples": 8, "max_iter": 1, **options})


def test_dice_is_the_loop_over_documents(rng, monkeypatch):
    monkeypatch.setattr(correlated, "_BLOCK", 3)
    features, words = rng.poisson(0.6, (12, 8)), rng.poisson(0.8, (12, 5))
    features[:, 6] = 0  # nowhere
    result = correlated.dice(features, words, k=2)
    for i in range(8):
        a = features[:, i] > 0
        values = [2 * np.sum(a & (words[:, j] > 0)) / max(a.sum() + np.sum(words[:, j] > 0), 1) for j in range(5)]
        best = sorted(range(5), key=lambda j: (-values[j], j))[:2]
        expected = {j: pytest.approx(values[j]) for j in best if values[j] > 0}
        row = result[[i]]
        assert dict(zip(row.indices.tolist(), row.data.tolist(), strict=True)) == expected


def test_words_are_closest_to_themselves(rng):
    words = rng.poisson(0.8, (30, 6))
    assert np.argmax(correlated.dice(words, words, k=3).toarray(), axis=1).tolist() == list(range(6))


def test_hashed_documents_score_as_the_mean_of_k_feature_maps(rng):
    q, d, w = rng.random(7), rng.random(7), rng.normal(size=(4, 4))
    closest = np.zeros((7, 4))
    chosen = [rng.permutation(4)[:3] for _ in range(7)]
    for i, at in enumerate(chosen):
        closest[i, at] = rng.random(3) + 0.1
    a, b = (correlated.hashed(side[None], closest).toarray()[0] for side in (q, d))
    # 003 Algorithm 1: a and b gather all k words, and the feature map is their outer product over k.
    expected = sum(q[i] * d[j] * w[s, t] for i in range(7) for j in range(7) for s in chosen[i] for t in chosen[j]) / 3
    assert a @ w @ b == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [np.int64, np.int8, bool])
def test_counts_are_hashed_as_the_same_weights_are(rng, dtype):
    counts, closest = rng.integers(0, 2, (4, 6)).astype(dtype), rng.random((6, 3)) * (rng.random((6, 3)) < 0.7)
    result = correlated.hashed(counts, closest)
    assert result.dtype.kind == "f"
    np.testing.assert_allclose(result.toarray(), correlated.hashed(counts.astype(float), closest).toarray(), rtol=1e-6)


def test_documents_that_do_not_agree_are_refused():
    with pytest.raises(ValueError, match=r"words: expected 3 documents \(as features\), got 2"):
        correlated.dice(np.ones((3, 2)), np.ones((2, 2)))
    with pytest.raises(ValueError, match=r"documents: expected 2 features \(as closest\), got 3"):
        correlated.hashed(np.ones((1, 3)), np.ones((2, 2)))
    assert jnp.asarray(correlated.dice(np.ones((1, 1)), np.ones((1, 1))).toarray()).tolist() == [[1.0]]
