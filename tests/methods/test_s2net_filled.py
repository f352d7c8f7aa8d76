"""S2Net of dense vectors: the fit of the same vectors as sparse rows, and refusals."""

from __future__ import annotations

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from jaxsim import sparse
from jaxsim.evaluate import mates
from jaxsim.methods import s2net
from jaxsim.sparse import Filled

M, WIDTH, K = 20, 12, 3


@pytest.fixture
def sides(rng):
    both = rng.normal(size=(2, M, WIDTH)).astype(np.float32)
    both[1] += both[0]
    both[0, 3] = 0  # a document without any words
    return both


@pytest.fixture
def start():
    return s2net.random_init(WIDTH, K, key=jax.random.key(0))


@pytest.mark.parametrize("options", [{}, {"groups": np.arange(M) // 2}, {"activation": jnp.tanh}, {"beta": 0.1}],
                         ids=lambda one: next(iter(one), "plain"))
def test_dense_vectors_train_as_the_same_vectors_in_sparse_rows(sides, start, options):
    rows = [sparse.from_scipy(sp.csr_matrix(side)) for side in sides]
    filled = [Filled(jnp.asarray(side)) for side in sides]
    found, expected = (s2net.fit(*some, init=start, max_iter=8, validate=mates.validator(some), **options)
                       for some in (filled, rows))
    for name in ("loss", "validation"):
        one, other = ([entry[name] for entry in fit.history] for fit in (found, expected))
        np.testing.assert_allclose(one, other, rtol=1e-3)
    assert found.history[-1]["loss"] < 0.9 * found.history[0]["loss"]
    np.testing.assert_allclose(found.params.weights, expected.params.weights, atol=5e-3)


def test_a_stopped_fit_goes_on_bit_for_bit(sides, start, tmp_path):
    filled = [Filled(jnp.asarray(side)) for side in sides]
    rising, calls = itertools.count(), []  # the last parameters are the best

    def validate(params) -> float:
        calls.append(params)
        return float(next(rising))

    whole = s2net.fit(*filled, init=start, max_iter=6, validate=validate)
    s2net.fit(*filled, init=start, max_iter=3, validate=validate, checkpoint=tmp_path, checkpoint_every=1)
    calls.clear()
    rest = s2net.fit(*filled, init=start, max_iter=6, validate=validate, checkpoint=tmp_path, checkpoint_every=1)
    np.testing.assert_array_equal(whole.params.weights, rest.params.weights)
    assert len(calls) == 3


@pytest.mark.parametrize(("wrong", "message"), [
    ([["a"]], "right: expected a matrix of floating numbers"),
    (np.full((M, WIDTH), np.nan, np.float32), "right: expected finite numbers"),
    (np.ones((M, WIDTH), int), "right: expected a matrix of floating numbers"),
    (np.ones(M, np.float32), "right: expected a matrix of floating numbers"),
    (np.ones((M - 1, WIDTH), np.float32), f"right: expected {M} documents"),
    (np.ones((M, WIDTH + 1), np.float32), "init \\(right\\): expected weights of shape"),
    (np.zeros((M, WIDTH), np.float32), "right: expected documents with words")])
def test_vectors_that_do_not_fit_are_refused(sides, start, wrong, message):
    with pytest.raises(ValueError, match=message):
        s2net.fit(Filled(jnp.asarray(sides[0])), Filled(wrong), init=start)


@pytest.mark.parametrize("dtype", [np.float16, jnp.bfloat16])
def test_vectors_of_other_types_train_as_those_in_float32(sides, start, dtype):
    large = [np.asarray(1000 * side, dtype) for side in sides]
    found, expected = (s2net.fit(*map(Filled, some), init=1e5 * start.weights, max_iter=3)
                       for some in (large, [np.asarray(side, np.float32) for side in large]))
    np.testing.assert_array_equal(found.params.weights, expected.params.weights)
    assert found.params.weights.dtype == np.float32


def test_dense_vectors_have_no_mined_negatives(sides, start):
    filled = [Filled(side) for side in sides]
    negatives = s2net.mined.Mined(filled[1], jnp.zeros((M, 2), jnp.int32), 1.0)
    with pytest.raises(ValueError, match="mined: expected Terms, got Filled"):
        s2net.fit(*filled, init=start, mined=negatives)


def test_devices_do_not_share_dense_vectors(sides, start):
    filled = [Filled(jnp.asarray(side)) for side in sides]
    with pytest.raises(ValueError, match="left: expected Terms, with a mesh"):
        s2net.fit(*filled, init=start, mesh=jax.sharding.Mesh(np.asarray(jax.devices()), ("some",)))


def test_a_validator_of_plain_arrays_or_of_one_side_is_refused(sides):
    with pytest.raises(ValueError, match=r"sides\[0\]: expected documents \(Terms\), or Filled of an array, got a"):
        mates.validator(sides)
    with pytest.raises(ValueError, match="sides: expected two, of as many documents, got 1"):
        mates.validator([Filled(sides[0])])
