"""A linear map before the projection, such as what words are made of: the fit of documents that it was applied to."""

from __future__ import annotations

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from jaxsim import sparse
from jaxsim.data import docstrings
from jaxsim.linalg import row_space
from jaxsim.methods import opca, s2net
from jaxsim.methods.projections import Projection
from jaxsim.text.vocabulary import unit_rows
from jaxsim.train import Settings, fits, train
from jaxsim.train import s2net as of_training

M, WORDS, PARTS, K = 24, 30, 50, 4


@pytest.fixture
def problem(rng):
    """Documents of words, the same made of parts, at unit length, the parts of each word, and a start."""
    spread = sp.random(WORDS, PARTS, 0.2, "csr", np.float32, random_state=0) + sp.eye(WORDS, PARTS, dtype=np.float32)
    whole = [sp.random(M, WORDS, 0.3, "csr", np.float32, random_state=seed) for seed in (1, 2)]
    lengths = [np.sqrt(np.asarray((side @ spread).power(2).sum(axis=1)).ravel()) for side in whole]
    words = [sp.csr_matrix(sp.diags(1 / np.maximum(one, 1e-12)) @ side, dtype=np.float32)
             for one, side in zip(lengths, whole, strict=True)]  # fmt: skip
    start = Projection(jnp.asarray(rng.normal(size=(PARTS, K)), jnp.float32))
    return ([sparse.from_scipy(side) for side in words],
            [sparse.from_scipy(unit_rows(sp.csr_matrix(side @ spread))) for side in whole],
            sparse.from_scipy(sp.csr_matrix(spread)), start)


@pytest.mark.parametrize("options", [
    {}, {"activation": jnp.tanh}, {"beta": 0.1}, {"weights": np.arange(M) % 3 + 1.0}, {"groups": np.arange(M) // 2}],
    ids=lambda one: next(iter(one), "plain"))
@pytest.mark.parametrize("matrices", [1, 2])
def test_it_is_the_fit_of_documents_that_the_map_was_applied_to(problem, options, matrices):
    words, parts, spread, start = problem
    init = start if matrices == 1 else (start, Projection(start.weights[::-1]))
    found = s2net.fit(*words, init=init, spread=spread, max_iter=5, **options)
    expected = s2net.fit(*parts, init=init, max_iter=5, **options)
    losses = [[entry["loss"] for entry in one.history] for one in (found, expected)]
    np.testing.assert_allclose(*losses, rtol=2e-4)
    assert losses[0][-1] < losses[0][0]
    assert jax.tree.structure(found.params) == jax.tree.structure(init)
    for one, other in zip(jax.tree.leaves(found.params), jax.tree.leaves(expected.params), strict=True):
        np.testing.assert_allclose(one, other, atol=5e-3 * float(jnp.abs(other).max()))


def test_a_stopped_fit_goes_on_bit_for_bit(problem, tmp_path):
    words, _, spread, start = problem
    whole = s2net.fit(*words, init=start, spread=spread, max_iter=6)
    s2net.fit(*words, init=start, spread=spread, max_iter=3, checkpoint=tmp_path, checkpoint_every=1)
    rest = s2net.fit(*words, init=start, spread=spread, max_iter=6, checkpoint=tmp_path, checkpoint_every=1)
    np.testing.assert_array_equal(rest.params.weights, whole.params.weights)
    other = sparse.from_scipy(sp.csr_matrix(2 * sparse.to_scipy(spread)))
    with pytest.raises(ValueError, match="checkpoint: expected a checkpoint of the same data"):
        s2net.fit(*words, init=start, spread=other, max_iter=6, checkpoint=tmp_path)


def test_a_map_that_does_not_fit_is_refused(problem):
    words, parts, spread, start = problem
    with pytest.raises(ValueError, match=rf"spread: expected {PARTS} rows \(terms of left\), got {WORDS}"):
        s2net.fit(*parts, init=start, spread=spread)
    for other in (sparse.to_scipy(spread), sparse.to_scipy(spread).toarray()):
        with pytest.raises(ValueError, match=f"spread: expected Terms, got {type(other).__name__}"):
            s2net.fit(*words, init=start, spread=other)
    with pytest.raises(ValueError, match=rf"init \(left\): expected weights of shape \({PARTS}, k\)"):
        s2net.fit(*words, init=start.weights[:-1], spread=spread)
    with pytest.raises(ValueError, match="spread: expected none, with a mesh or mined negatives"):
        s2net.fit(*words, init=start, spread=spread, mesh=jax.make_mesh((1,), ("pairs",)))


@pytest.mark.programs
@pytest.mark.parametrize("method", ["s2net", "s2net-2"])
def test_a_training_with_ngrams_takes_words_and_learns_the_same(method, monkeypatch):
    pairs, seen = docstrings.load().take(range(200)), []
    settings = Settings(method=method, dim=8, max_terms=150, max_iter=4, subwords=0.5)
    real, fit = s2net.fit, fits.FITS[method]
    monkeypatch.setattr(of_training.s2net, "fit",
                        lambda *sides, **options: seen.append((sides, options)) or real(*sides, **options))
    model = train(pairs, settings, dev=0.2)
    monkeypatch.setitem(fits.FITS, method, lambda problem: fit(dataclasses.replace(problem, spread=None)))
    other = train(pairs, settings, dev=0.2)
    (sides, options), (expanded, plain) = seen
    assert options["spread"].num_docs == sides[0].num_terms == len(model.vocabulary) + len(model.subwords)
    assert "spread" not in plain and sum(side.values.size for side in sides) < sum(s.values.size for s in expanded)
    np.testing.assert_allclose(model.training["history"]["loss"], other.training["history"]["loss"], rtol=1e-4)
    assert model.training["dev"]["mrr"] == pytest.approx(other.training["dev"]["mrr"], abs=0.02)


@pytest.mark.parametrize("inside", [False, True], ids=["over the terms", "inside the span of the documents"])
@pytest.mark.parametrize("parts", [PARTS, 400], ids=["dense", "iterated"])
def test_opca_is_that_of_documents_that_the_map_was_applied_to(rng, monkeypatch, parts, inside):
    monkeypatch.setattr(row_space, "_TERMS", 1 if inside else 10**6)
    spread = sp.random(WORDS, parts, 0.2, "csr", np.float64, random_state=0)
    words = [sp.random(M, WORDS, 0.3, "csr", np.float64, random_state=seed) for seed in (1, 2)]
    made = [sparse.from_scipy((side @ spread).tocsr()) for side in words]
    expected = opca.fit(made, k=K, noise=0.1).params.weights
    found = opca.fit(list(map(sparse.from_scipy, words)), k=K, noise=0.1, spread=sparse.from_scipy(spread)).params
    np.testing.assert_allclose(found.weights, expected, atol=1e-5 * float(jnp.abs(expected).max()))


def test_opca_refuses_a_map_that_does_not_fit(problem):
    words, _, spread, _ = problem
    with pytest.raises(ValueError, match="spread: expected 30 rows"):
        opca.fit(words, k=2, spread=sparse.from_scipy(sp.identity(7, np.float32, "csr")))
    with pytest.raises(ValueError, match="spread: expected Terms, got csr_matrix"):
        opca.fit(words, k=2, spread=sp.identity(WORDS, np.float32, "csr"))
