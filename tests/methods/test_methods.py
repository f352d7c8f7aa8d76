"""What every method of `methods_table` passes."""

from __future__ import annotations

import jax
import numpy as np
import pytest
import reference_models as reference
from methods_table import EMPTY, HELD_OUT, METHODS, TEST, TRAIN, Corpus, K, M, V, assert_same, corpus, dense, fitted

every_method = pytest.mark.parametrize("name", METHODS)
every_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def mate_accuracy(left, right, *, dot) -> float:
    """Share of documents whose mate scores above all others, both directions averaged, ties being errors."""
    scores = np.array([[np.dot(a, b) if dot else reference.cosine(a, b) for b in right] for a in left])
    others = np.where(np.eye(len(scores), dtype=bool), -np.inf, scores)
    own = np.diagonal(scores)
    return float(np.mean([own > others.max(axis=1), own > others.max(axis=0)]))


@every_method
@every_dtype
def test_shapes_types_and_report(name, dtype):
    method, fit = METHODS[name], fitted(name, dtype)
    for leaf in jax.tree.leaves(fit.params):
        assert leaf.dtype in (dtype, np.int32) and np.all(np.isfinite(leaf))
    for side in method.encode(fit.params, corpus(TRAIN, dtype)):
        assert side.num_docs == M
        if method.dimensions is None:
            assert (side.dense is not None) == method.both and side.sparse.num_terms == V
        else:
            assert side.dense.shape == (M, method.dimensions) and side.dense.dtype == dtype
    if method.collapsed is None:
        assert np.isnan(fit.loss) and fit.steps == 0 and fit.converged and fit.history == []
    else:
        assert fit.loss == fit.history[-1]["loss"] and fit.steps == len(fit.history) - 1 > 0


@every_method
@every_dtype
def test_finds_mates_better_than_chance_on_new_documents(name, dtype):
    method = METHODS[name]
    sides = [dense(side) for side in method.encode(fitted(name, dtype).params, corpus(HELD_OUT, dtype))]
    assert mate_accuracy(*sides, dot=method.dot) > 2 / TEST


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.collapsed is not None])
@every_dtype
def test_the_final_loss_is_below_the_collapsed_one(name, dtype):
    fit = fitted(name, dtype)
    losses = [entry["loss"] for entry in fit.history]
    assert losses[-1] < METHODS[name].below * METHODS[name].collapsed
    assert METHODS[name].stochastic or losses == sorted(losses, reverse=True)


@every_method
def test_the_same_inputs_give_the_same_parameters_bit_for_bit(name):
    assert_same(METHODS[name].fit(corpus(TRAIN), K).params, fitted(name).params)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.stochastic])
def test_the_order_of_the_pairs_changes_nothing(name, rng):
    order = rng.permutation(M)
    shuffled = corpus(order)
    fit = METHODS[name].fit(shuffled, K)
    assert_same(fit.params, fitted(name).params, 1e-6)
    encode = METHODS[name].encode
    for mixed, plain in zip(encode(fit.params, shuffled), encode(fit.params, corpus(TRAIN)), strict=True):
        np.testing.assert_allclose(dense(mixed), dense(plain)[order], atol=1e-12)


@every_method
def test_padding_slots_change_no_fit(name):
    assert_same(METHODS[name].fit(corpus(TRAIN, pad_nnz=M * V), K).params, fitted(name).params, 1e-8)


@every_method
def test_padding_documents_change_no_encoding(name):
    method, params = METHODS[name], fitted(name).params
    padded = method.encode(params, corpus(HELD_OUT, pad_nnz=TEST * V, pad_docs=TEST + 3))
    for more, plain in zip(padded, method.encode(params, corpus(HELD_OUT)), strict=True):
        np.testing.assert_allclose(dense(more)[:TEST], dense(plain), atol=1e-12)
        assert np.all(dense(more)[TEST:] == method.at_zero)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if not method.on_host])
def test_encoding_inside_jit_is_the_same(name):
    method, params, data = METHODS[name], fitted(name).params, corpus(HELD_OUT)

    @jax.jit
    def run(params, counts, weighted):
        return method.encode(params, Corpus(counts, weighted, None))

    assert_same(run(params, data.counts, data.weighted), method.encode(params, data), 1e-12)


@every_method
def test_empty_documents_are_legal(name):
    method = METHODS[name]
    left, right = (dense(side) for side in method.encode(fitted(name).params, corpus(TRAIN)))
    for row in (left[EMPTY], right[EMPTY], left[EMPTY - 1]):
        assert np.all(row == method.at_zero)


@pytest.mark.parametrize("name", [n for n, m in METHODS.items() if m.dimensions is not None and m.collapsed is None])
@pytest.mark.parametrize("k", [0, V + 1])
def test_k_out_of_range_is_refused(name, k):
    with pytest.raises(ValueError, match="k: expected a whole number "):
        METHODS[name].fit(corpus(TRAIN), k)


@pytest.mark.parametrize("name", [name for name, method in METHODS.items() if method.mismatched])
def test_sides_that_do_not_match_are_refused(name):
    data, other = corpus(TRAIN), corpus(TRAIN[:-1])
    crossed = Corpus((data.counts[0], other.counts[1]), (data.weighted[0], other.weighted[1]), data.pairs)
    with pytest.raises(ValueError, match=r"(right|views\[1\]|pairs.right): expected .*59"):
        METHODS[name].fit(crossed, K)
