"""What every method refuses, by the name of the argument."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

from jaxsim import linalg, losses, sparse
from jaxsim.data import labelled_pairs
from jaxsim.data.labelled_pairs import LabelledPairs, Preferences
from jaxsim.evaluate import significance
from jaxsim.methods import cca, cl_lsi, dda, opca, s2net, s2net_mse, s2net_sgd, ssi, tweak, vl_cv
from jaxsim.methods.projections import Projection, agreement
from jaxsim.methods.s2net import groups
from jaxsim.methods.ssi import bilinear, triples
from jaxsim.methods.weights import quadratic_forms, tweak_pairs
from jaxsim.methods.weights.concepts import Concepts
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.text import features

ONE = sparse.from_scipy(scipy.sparse.csr_matrix(np.eye(3)))
NARROW = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((3, 2))))
NEGATIVE = sparse.from_scipy(scipy.sparse.csr_matrix(-np.eye(3)))
ONE_ROW = sparse.from_scipy(scipy.sparse.csr_matrix(np.ones((1, 3))))
NO_DOCS = sparse.from_scipy(scipy.sparse.csr_matrix((0, 3)))
NO_TERMS = sparse.from_scipy(scipy.sparse.csr_matrix((3, 0)))
FULL = jnp.ones((3, 2))
WORDS = features.single(ONE)
MORE = features.from_counts(ONE, [1.0, 1.0, 1.0])
EMPTY = features.single(sparse.from_scipy(scipy.sparse.csr_matrix((3, 3))))
ORDER = Preferences(*map(np.array, ([0], [0], [0], [1])))
W = TermWeights(jnp.ones(1))


@pytest.mark.parametrize(("call", "message"), [
    (lambda: opca.fit((ONE,), k=1), "views: expected at least 2 languages, got 1"),
    (lambda: opca.fit(ONE, k=1), "views: expected at least 2 languages, got 1"),
    (lambda: opca.fit((ONE, NARROW), k=1), r"views\[1\]: expected 3 terms \(as views\[0\]\), got 2"),
    (lambda: opca.fit((ONE, np.eye(3)), k=1), r"views\[1\]: expected Terms, got ndarray"),
    (lambda: opca.fit((NO_DOCS, NO_DOCS), k=1), "views: expected at least one document"),
    (lambda: opca.fit((NO_TERMS, NO_TERMS), k=1), "views: expected a vocabulary of at least one term"),
    (lambda: opca.fit((ONE, ONE), k=1, noise=0.0), "noise: expected a positive number, got 0.0"),
    (
        lambda: dda.fit((ONE, ONE), k=1, num_blocks=4),
        r"num_blocks: expected a whole number between 1 and 3 \(terms\), got 4",
    ),
    (
        lambda: dda.fit((ONE, ONE), k=1, num_blocks=2, block_k=0),
        "block_k: expected a whole number of at least 1, got 0",
    ),
    (lambda: cca.fit(ONE, ONE, k=1, ridge=-1.0), "ridge: expected a positive number, got -1.0"),
    (lambda: cca.fit(NO_DOCS, NO_DOCS, k=1), "left: expected at least one document"),
    (lambda: groups.checked_groups(np.zeros((3, 1, 1), int), 3), "groups: expected 3 integers .* int64 of shape"),
    (lambda: groups.checked_groups([0, 1], 3), r"groups: expected 3 integers .*, got int64 of shape \(2,\)"),
    (lambda: groups.checked_groups(np.zeros((3, 0), int), 3), r"groups: expected 3 integers .* of shape \(3, 0\)"),
    (lambda: bilinear.encode(bilinear.sides(FULL, FULL, jnp.ones(3))[0], ONE, low_rank=ONE_ROW),
     r"low_rank: expected 3 documents \(as terms\), got 1"),
    (lambda: triples.table([[0, 1]], 1, 2, known=[[0, 0]]), r"links: expected a document left .* none for query \[0\]"),
    (lambda: s2net.preferences.fit(ONE, ONE, LabelledPairs(*map(np.array, ([0, 0], [0, 1], [0.0, 1.0]))),
                                   init=Projection(FULL), gamma=0.0), "gamma: expected a positive number, got 0.0"),
    (lambda: agreement.agreement(np.ones(3), np.ones(3)), r"left: expected shape \(n, k\), got shape \(3,\)"),
    (lambda: tweak_pairs.take(quadratic_forms.plan(WORDS, WORDS, [0], [1]), np.zeros(0, int)),
     "rows: expected at least one pair, got none"),
    (lambda: cl_lsi.fit((ONE, NEGATIVE), k=1), r"views\[1\]: expected counts of at least 0, got -1.0"),
    (lambda: s2net.fit(ONE, ONE, init=FULL, gamma=0.0), "gamma: expected a positive number, got 0.0"),
    (lambda: s2net.fit(ONE, ONE, init=FULL, groups=[0, 1]),
     r"groups: expected 3 integers \(one a pair\), or as many rows of them, got"),
    (lambda: s2net.fit(ONE, ONE, init=FULL, groups=[0, 0, 0]), "groups: expected at least two groups"),
    (lambda: s2net.fit(ONE, ONE, init=FULL, beta=-1.0), "beta: expected a number of at least 0, got -1.0"),
    (lambda: s2net.fit(ONE, ONE, init=jnp.ones((4, 2))),
     r"init \(left\): expected weights of shape \(3, k\), got \(4, 2\)"),
    (lambda: s2net.fit(ONE, NARROW, init=FULL), r"init \(right\): expected weights of shape \(2, k\), got \(3, 2\)"),
    (lambda: s2net.fit(ONE, ONE, init=(FULL, FULL[:, :1])),
     r"init \(right\): expected 2 dimensions \(as left\), got 1"),
    (lambda: s2net.fit(ONE, ONE, init=(FULL, FULL, FULL)), "init: expected one projection or a pair, got 3"),
    (lambda: s2net.fit(ONE, ONE, init=0 * FULL), "a start that is not zero everywhere"),
    (lambda: s2net.fit(ONE, ONE, init=FULL * jnp.nan), "finite weights, got NaN or infinity"),
    (lambda: s2net.fit(NO_DOCS, NO_DOCS, init=FULL), "left: expected at least one pair"),
    (lambda: s2net_mse.fit(ONE, ONE, ([0, 9], [0, 1], [1, 0]), init=FULL), r"pairs.left: expected indices in \[0, 3\)"),
    (lambda: s2net_mse.fit(ONE, ONE, (np.zeros(0, int), np.zeros(0, int), []), init=FULL),
     "pairs: expected at least one"),
    (lambda: tweak.fit(ONE, WORDS, ORDER, init=W), "left: expected Featured, got Terms"),
    (lambda: tweak.fit(WORDS, features.single(NARROW), ORDER, init=W), r"right: expected 3 terms \(as left\), got 2"),
    (lambda: tweak.fit(WORDS, MORE, ORDER, init=W), r"right: expected features \('tfidf',\) \(as left\), got \('bias'"),
    (lambda: tweak.fit(WORDS, WORDS, ORDER._replace(worse_right=np.array([3])), init=W),
     r"pairs.worse_right: expected indices in \[0, 3\)"),
    (lambda: tweak.fit(WORDS, WORDS, ORDER, init=TermWeights(jnp.ones(2))), r"init: expected 1 weights \(features of"),
    (lambda: tweak.fit(WORDS, WORDS, ORDER, init=TermWeights(jnp.zeros(1))), "init: expected finite weights that are"),
    (lambda: tweak.fit(WORDS, WORDS, ORDER, init=W, gamma=-1.0), "gamma: expected a positive number, got -1.0"),
    (lambda: tweak.fit(WORDS, WORDS, ORDER, init=W, alpha=-1.0), "alpha: expected at least 0, got -1.0"),
    (lambda: tweak.fit(EMPTY, EMPTY, ORDER, init=W), "left: expected documents with words, got only empty documents"),
    (lambda: tweak.fit(WORDS, WORDS, ([0], [9], [1.0]), init=W, loss=losses.log), r"pairs.right: expected indices in"),
    (lambda: tweak.least_squares(WORDS, [1.0]), r"values: expected shape \(3,\), got \(1,\)"),
    (lambda: vl_cv.fit(WORDS, WORDS, ([0], [0], [1.0]), init=Projection(FULL)), "pairs: expected Preferences, got tup"),
    (lambda: vl_cv.fit(WORDS, WORDS, ORDER, init=FULL), "init: expected Concepts or a Projection, got ArrayImpl"),
    (lambda: vl_cv.fit(MORE, MORE, ORDER, init=Projection(FULL)), r"init: expected Concepts \(3 features\), got a"),
    (lambda: vl_cv.fit(WORDS, WORDS, ORDER, init=Projection(FULL[:2])),
     r"init.weights: expected shape \(3, k\), got \(2, 2\)"),
    (lambda: vl_cv.fit(WORDS, WORDS, ORDER, init=Concepts(FULL, jnp.ones(2))), "init.features: expected 1 weights"),
    (lambda: vl_cv.fit(WORDS, WORDS, ORDER, init=Projection(FULL * jnp.nan)), "init: expected finite weights, got NaN"),
    (lambda: vl_cv.fit(WORDS, WORDS, ORDER, init=Projection(0 * FULL)), "init: expected a start that does not project"),
    (lambda: vl_cv.fit(EMPTY, EMPTY, ORDER, init=Projection(FULL)), "left: expected documents with words, got only"),
    (lambda: vl_cv.fit(WORDS, WORDS, ORDER, init=Projection(FULL), beta=-1.0), "beta: expected a number of at least 0"),
])
def test_bad_input_is_refused_by_name(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("key", [0, None, np.random.default_rng(0), jax.random.split(jax.random.key(0), 3)], ids=type)
@pytest.mark.parametrize("call", [
    lambda key: s2net.random_init(3, 2, key=key), lambda key: linalg.truncated_svd(ONE, 1, key=key),
    lambda key: significance.bootstrap_interval([1.0, 2.0], key=key),
    lambda key: labelled_pairs.mates_and_negatives(3, negatives=1, key=key),
    lambda key: ssi.fit(ONE, ONE, [[0, 1]], k=1, key=key), lambda key: s2net_sgd.fit(ONE, ONE, init=FULL, key=key)])
def test_what_is_no_key_is_refused(call, key):
    with pytest.raises(ValueError, match=r"key: expected a random key, such as jax.random.key\(0\), got"):
        call(key)


@pytest.mark.parametrize("key", [jax.random.key(1), jax.random.PRNGKey(1), jax.random.key(1, impl="rbg")])
def test_keys_of_both_kinds_are_taken(key):
    assert s2net.random_init(3, 2, key=key).weights.shape == (3, 2)
