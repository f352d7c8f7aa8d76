"""S2Net from the identity in the coordinates of the training documents' span, against the whole matrix."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from experiments.corpora import spans
from jaxsim import sparse
from jaxsim.evaluate import mates
from jaxsim.methods import s2net
from jaxsim.methods.projections import Projection
from jaxsim.text.vocabulary import unit_rows

M, WORDS = 15, 60


def side(rows: int, seed: int) -> sp.csr_matrix:
    return unit_rows(sp.random(rows, WORDS, 0.2, "csr", np.float32, random_state=seed))


@pytest.fixture
def documents():
    """Training and development documents of both sides; one is twice there, and one is empty."""
    train, dev = ([side(rows, seed) for seed in seeds] for rows, seeds in ((M, (1, 2)), (9, (3, 4))))
    train = [sp.vstack([one, one[:1], sp.csr_matrix((1, WORDS), dtype=np.float32)], format="csr") for one in train]
    return [[sparse.from_scipy(one) for one in sides] for sides in (train, dev)]


def test_parts_keep_inner_products(documents):
    train, dev = documents
    span = spans.span_of(train)
    assert span.basis.shape == (2 * (M + 2), 2 * M)
    for sides in (train, dev):
        parts = spans.split(span, sides)
        rows = np.concatenate([sparse.to_scipy(one).toarray() for one in sides])
        products = parts.inside @ parts.inside.T + parts.outside @ parts.outside.T
        np.testing.assert_allclose(products, rows @ rows.T, atol=1e-5)
    assert spans.split(span, train).outside.size == 0
    assert spans.split(span, dev).outside.size > 0


def test_steps_and_tolerance_are_those_of_the_whole_matrix(documents):
    train, _ = documents
    span = spans.span_of(train)
    given = spans.train(span, spans.split(span, train), lambda *sides, **options: options)
    norms = [s2net.start_norm(Projection(one)) for one in (jnp.eye(WORDS), given["init"])]
    assert norms[0] > 1.1 * norms[1]
    # The first step is relative to the norm of the start; the tolerance is of the gradient's norm times it.
    assert given["first_step"] * norms[1] == pytest.approx(s2net.RUN.first_step * norms[0])
    assert given["tol"] / norms[1] == pytest.approx(s2net.RUN.tol / norms[0])


def test_documents_without_words_are_refused():
    with pytest.raises(ValueError, match="sides: expected documents with words, got only empty documents"):
        spans.span_of([sparse.from_scipy(sp.csr_matrix((2, 3), dtype=np.float32))] * 2)


def test_the_fit_is_that_of_the_whole_matrix(documents):
    train, dev = documents
    whole = s2net.fit(*train, init=Projection(jnp.eye(WORDS)), max_iter=8, validate=mates.validator(dev))
    span = spans.span_of(train)
    parts = spans.split(span, dev)
    found = spans.train(span, spans.split(span, train), max_iter=8,
                        validate=lambda params: mates.mrr(*spans.encode(params.weights, parts)))
    for name, tolerance in (("loss", 1e-3), ("validation", 1e-6)):
        one, other = ([entry[name] for entry in fit.history] for fit in (found, whole))
        np.testing.assert_allclose(one, other, rtol=tolerance)
    assert found.history[-1]["loss"] < 0.5 * found.history[0]["loss"]
    assert len({entry["validation"] for entry in found.history}) > 1
    ours, theirs = (np.concatenate([np.asarray(vectors.dense) for vectors in both]) for both in (
        spans.encode(found.params.weights, parts), mates.encode(whole.params, dev)))
    np.testing.assert_allclose(ours @ ours.T, theirs @ theirs.T, atol=0.02)
