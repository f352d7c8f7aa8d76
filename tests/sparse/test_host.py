"""The compiled loop of encoding."""

from __future__ import annotations

import os
import subprocess
import sys

import host_loops
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim.model import parts
from jaxsim.sparse import host


@pytest.fixture
def loop():
    pytest.importorskip("numba")


def documents(rng, lengths, num_terms=40):
    rows = np.repeat(np.arange(len(lengths)), lengths)
    columns = np.concatenate([rng.choice(num_terms, size, replace=False) for size in lengths])
    return scipy.sparse.csr_matrix((rng.normal(size=len(rows)), (rows, columns)), (len(lengths), num_terms))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_documents_of_any_length_are_multiplied(rng, loop, dtype):
    rows = documents(rng, [0, 1, 7, 8, 9, 16, 40, 0]).astype(dtype)
    dense = rng.normal(size=(40, 5)).astype(dtype)
    result = host.rows_product(rows, dense)
    assert result.dtype == dtype and result.shape == (8, 5)
    np.testing.assert_allclose(result, rows.astype(np.float64) @ dense, atol=1e-5 if dtype == np.float32 else 1e-13)
    assert host.rows_product(rows[:0], dense).shape == (0, 5)


@pytest.mark.parametrize("columns", [15, 16, 17, 47, 400])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int8])
def test_any_number_of_columns_of_any_type(rng, loop, columns, dtype):
    rows = documents(rng, [0, 1, 9, 40, 0])
    dense = (10 * rng.normal(size=(40, columns))).astype(dtype)
    found = host.rows_product(rows.astype(np.float32 if dtype != np.float64 else dtype), dense)
    assert found.dtype == (np.float64 if dtype == np.float64 else np.float32)
    np.testing.assert_allclose(found, rows @ dense.astype(np.float64), atol=1e-3 if dtype != np.float64 else 1e-11)


def test_neither_the_batch_nor_the_threads_change_a_bit(rng, loop, monkeypatch):
    rows = documents(rng, rng.integers(0, 40, 50)).astype(np.float32)
    dense = rng.normal(size=(40, 133)).astype(np.float32)
    whole = host.rows_product(rows, dense, threads=1)
    monkeypatch.setattr(host, "_WORK", 100)
    np.testing.assert_array_equal(host.rows_product(rows, dense, threads=3), whole)
    np.testing.assert_array_equal(host.rows_product(rows[17:18], dense), whole[17:18])


def test_weights_that_are_not_finite_are_seen(rng, loop):
    rows = scipy.sparse.csr_matrix(np.array([[1.0, 0.0], [0.0, 1.0]], np.float32))
    result = host.rows_product(rows, np.array([[np.nan], [np.inf]], np.float32))
    assert np.isnan(result[0, 0]) and np.isinf(result[1, 0])


def test_a_model_encodes_alike_with_and_without_the_loop(rng, monkeypatch):
    rows = documents(rng, [3, 0, 20]).astype(np.float32)
    weights = jnp.asarray(rng.normal(size=(40, 6)), jnp.float32)
    both = [parts.project(weights, rows, jnp.tanh)]
    monkeypatch.setattr(host, "compiled", lambda: None)
    both.append(parts.project(weights, rows, jnp.tanh))
    np.testing.assert_allclose(*both, atol=1e-6)


def test_a_matrix_of_other_terms_is_refused(rng):
    with pytest.raises(ValueError, match=r"dense: expected shape \(40, k\), got \(39, 2\)"):
        host.rows_product(documents(rng, [3]), np.ones((39, 2)))


@pytest.mark.parametrize("error", [ImportError("no numba"), RuntimeError("cannot cache function")])
def test_without_numba_or_a_place_for_what_it_compiles_there_is_no_loop(monkeypatch, error):
    def failing(name):
        raise error

    monkeypatch.setattr(host.importlib, "import_module", failing)
    assert host.compiled.__wrapped__() is None


@pytest.mark.programs
def test_loops_that_this_process_compiles_give_the_bits_of_those_that_an_earlier_one_has_kept(loop, tmp_path):
    """The first fit on a machine is the second one: a loop that calls another one would be two programs."""
    command, env = [sys.executable, host_loops.__file__], {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    first, second = (subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=300).stdout
                     for _ in range(2))
    assert len(first.splitlines()) == 23 and first == second
