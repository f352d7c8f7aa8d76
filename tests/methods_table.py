"""The table of all methods for `test_methods` and `test_methods_equations`, on made-up comparable documents."""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
import reference_models as reference
import scipy.sparse

from jaxsim import losses, sparse
from jaxsim.data import labelled_pairs as pairs_room
from jaxsim.methods import (  # fmt: skip
    bm25,
    cca,
    cl_lsi,
    cplsa,
    cr5,
    dda,
    jplsa,
    log_tfidf,
    lsa,
    opca,
    pca,
    plsa,
    projections,
    s2net,
    s2net_mse,
    s2net_pref,
    ssi,
    ssi_batch,
    ssi_diag,
    ssi_full,
    ssi_hash,
    ssi_sgd,
    ssi_sparse,
    tfidf,
    topics,
    tweak,
    vl_cv,
    vl_ext,
)
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.methods.weights import concepts, related_terms, term_extension, term_weights, weighting
from jaxsim.methods.weights.concepts import Concepts
from jaxsim.methods.weights.term_weights import TermWeights
from jaxsim.sparse import Vectors
from jaxsim.text import features

M, TEST, V, K = 60, 16, 60, 6
EMPTY = 5  # this pair has no words on either side; the one before it none on the left


@dataclasses.dataclass
class Corpus:
    """Counts and log-tf-idf weights of both sides, and labelled pairs of rows."""

    counts: tuple[sparse.Terms, sparse.Terms]
    weighted: tuple[sparse.Terms, sparse.Terms]
    pairs: pairs_room.LabelledPairs

    def stacked(self, views) -> sparse.Terms:
        """All documents of both sides as one collection."""
        return sparse.from_scipy(scipy.sparse.vstack([sparse.to_scipy(view) for view in views]).tocsr())


@functools.cache
def made_up():
    """Counts of ``M + TEST`` pairs about one or two of 30 topics, whose words the two languages share in part."""
    rng = np.random.default_rng(7)
    topics = rng.dirichlet(np.full(30, 0.05), M + TEST)
    common, *own = rng.dirichlet(np.full(V, 0.15), (3, 30))
    counts = [rng.poisson(80 * topics @ (0.6 * common + 0.4 * words)).astype(float) for words in own]
    counts[0][EMPTY - 1] = counts[0][EMPTY] = counts[1][EMPTY] = 0
    wrong = (np.arange(M) + 1 + rng.integers(0, M - 1, M)) % M
    return counts, np.concatenate([np.arange(M), wrong])


def corpus(rows, dtype=np.float64, *, pad_nnz=None, pad_docs=None) -> Corpus:
    counts, partners = made_up()
    training = np.concatenate([side[:M] for side in counts])
    weighted = [reference.log_tfidf(side[rows], training) for side in counts]

    def build(dense):
        return sparse.from_scipy(scipy.sparse.csr_matrix(dense.astype(dtype)), pad_nnz=pad_nnz, pad_docs=pad_docs)

    place = np.argsort(rows)  # where each original row went
    pairs = None
    if len(rows) == M and max(rows) < M:
        labels = np.concatenate([np.ones(M), np.zeros(M)]).astype(dtype)
        pairs = pairs_room.LabelledPairs(np.tile(place, 2), place[partners], labels)
    return Corpus(tuple(build(side[rows]) for side in counts), tuple(build(side) for side in weighted), pairs)


TRAIN, HELD_OUT = np.arange(M), np.arange(M, M + TEST)


@dataclasses.dataclass(frozen=True)
class Method:
    """A row of the table.

    Attributes:
      fit: from a `Corpus` and ``k`` to a `Fit`.
      encode: from params and a `Corpus` to the `Vectors` of both sides.
      dot: whether documents are compared by the dot product instead of the cosine.
      collapsed: loss of a model that tells no documents apart; None for closed forms.
      below: share of that loss which the fit has to get below; few features can do little.
      dimensions: number of columns; None for term weightings.
      at_zero: what an empty document's vector holds.
      mismatched: whether the method takes two sides, which must agree.
      stochastic: whether it takes one pair after the other, in an order that a key draws: the order of the rows then
        counts, and the loss does not fall with every step.
      both: whether a term weighting has a dense part too.
      on_host: whether documents are encoded by SciPy, which jit cannot see into.
    """

    fit: Callable
    encode: Callable
    dot: bool = False
    collapsed: float | None = None
    below: float = 0.5
    dimensions: int | None = K
    at_zero: float = 0.0
    mismatched: bool = True
    stochastic: bool = False
    both: bool = False
    on_host: bool = False


def by_weights(params, data):
    return tuple(weighting.encode(params, side) for side in data.counts)


def by_bm25(params, data):
    return Vectors(sparse=data.counts[0]), weighting.encode(params, data.counts[1])


def by_projection(params, data, activation=None):
    return tuple(
        projections.encode(one, side, activation=activation)
        for one, side in zip(s2net.sides(params), data.weighted, strict=True)
    )


@functools.cache
def start(k, dtype, seed=0):
    return Projection(s2net.random_init(V, k, key=jax.random.key(seed)).weights.astype(dtype))


def learned(data, k, *, init=None, two=False, **options):
    first = start(k, data.weighted[0].values.dtype)
    init = (opca.fit(data.weighted, k=k).params if init == "opca" else first) if not two else (first, first)
    return s2net.fit(*data.weighted, init=init, max_iter=12, **options)


def featured(side: sparse.Terms) -> features.Featured:
    """Counts with the features that they give, by document frequencies of the training part."""
    training = np.concatenate([counts[:M] for counts in made_up()[0]])
    return features.from_counts(side, np.sum(training > 0, axis=0), names=("bias", "tf", "log_tf", "log_df"))


def by_term_weights(params, data):
    return tuple(term_weights.encode(params, featured(side)) for side in data.counts)


def by_concepts(params, data):
    return tuple(concepts.encode(params, featured(side)) for side in data.counts)


def weigh_terms(data, loss=None):
    chosen = pairs_room.preferences_of(data.pairs) if loss is None else data.pairs
    options = {"gamma": 30.0} if loss is None else {"loss": loss}
    sides = map(featured, data.counts)
    init = TermWeights(jnp.array([0.1, 1.0, 0.0, 0.0], data.counts[0].values.dtype))
    return tweak.fit(*sides, chosen, init=init, max_iter=30, **options)


def learn_concepts(data, k):
    dtype = data.counts[0].values.dtype
    init = Concepts(start(k, dtype).weights, jnp.array([0.1, 1.0, 0.0, 0.0], dtype))
    chosen = pairs_room.preferences_of(data.pairs)
    return vl_cv.fit(*map(featured, data.counts), chosen, init=init, gamma=5.0, max_iter=12)


def by_term_extension(params, data):
    return tuple(term_extension.encode(params, featured(side)) for side in data.counts)


def extend_terms(data):
    sides, chosen = tuple(map(featured, data.counts)), pairs_room.preferences_of(data.pairs)
    related = related_terms.choose(*data.counts, (data.pairs.left[:M], data.pairs.right[:M]), num=150)
    init = term_extension.make(jnp.array([0.1, 1.0, 0.0, 0.0], data.counts[0].values.dtype), *related)
    return vl_ext.fit(*sides, chosen, init=init, gamma=30.0, max_iter=12)


def iterative(fit, **options):
    return Method(fit, collapsed=math.log(2), **options)


def by_triples(fit, **options):
    """Mates as links. The documents' own lengths are far from 1, hence the margin."""
    links = np.repeat(np.arange(M), 2).reshape(M, 2)

    def learned(data, k):
        return fit(*data.weighted, links, key=jax.random.key(1), identity=0.1, margin=MARGIN, triples=1000, max_iter=3,
                   **options)

    return learned


def pruned(data, k):
    """Algorithm 2 from the fit of a full W."""
    start = by_triples(ssi_full.fit, learning_rate=1e-4)(data, k).params
    links = np.repeat(np.arange(M), 2).reshape(M, 2)
    return ssi_sparse.fit(*data.weighted, links, init=ssi_sparse.strongest(start, 10), key=jax.random.key(2),
                          margin=MARGIN, triples=1000, max_iter=3, learning_rate=1e-4)


def by_entries(params, data):
    """Queries times W, documents as they are."""
    queries, documents = data.weighted
    rows = sparse.to_scipy(queries)
    return (Vectors(sparse=sparse.from_scipy(rows @ ssi_sparse.matrix(params) + float(params.identity) * rows)),
            Vectors(sparse=documents))


def by_hash(params, data):
    """Queries as all of W sees them, documents as they are."""
    shared = params.weights[(params.first[:, None] + jnp.arange(V)[None]) % params.weights.size]
    return tuple(Vectors(sparse.project(side, w)) for side, w in
                 zip(data.weighted, (shared, jnp.eye(V, dtype=shared.dtype)), strict=True))


def by_topics(params, data):
    sides = (params, params) if isinstance(params, topics.Topics) else params
    return tuple(topics.encode(own, side) for own, side in zip(sides, data.counts, strict=True))


def by_bilinear(params, data):
    return tuple(bilinear.encode(side, view) for side, view in zip(params, data.weighted, strict=True))


MARGIN = 10.0
TRIPLES = {"dot": True, "collapsed": MARGIN, "mismatched": False, "stochastic": True}
bent = functools.partial(functools.partial, by_projection)
METHODS = {
    "tfidf": Method(lambda d, k: tfidf.fit(d.stacked(d.counts)), by_weights, dimensions=None, mismatched=False),
    "log_tfidf": Method(lambda d, k: log_tfidf.fit(d.stacked(d.counts)), by_weights, dimensions=None, mismatched=False),
    "bm25": Method(lambda d, k: bm25.fit(d.counts[1]), by_bm25, dot=True, dimensions=None, mismatched=False),
    "lsa": Method(lambda d, k: lsa.fit(d.stacked(d.weighted), k=k), by_projection, mismatched=False),
    "pca": Method(lambda d, k: pca.fit(d.stacked(d.weighted), k=k), by_projection, mismatched=False),
    "cl_lsi": Method(lambda d, k: cl_lsi.fit(d.counts, k=k), by_projection),
    "opca": Method(lambda d, k: opca.fit(d.weighted, k=k), by_projection),
    "opca of three views": Method(lambda d, k: opca.fit((*d.weighted, d.weighted[0]), k=k), by_projection),
    "cca": Method(lambda d, k: cca.fit(*d.weighted, k=k, ridge=1.0), by_projection),
    "cr5": Method(lambda d, k: cr5.fit(d.weighted, k=k, ridge=10.0), by_projection),
    "dda": Method(lambda d, k: dda.fit(d.weighted, k=k, num_blocks=3), by_projection),
    "s2net": iterative(learned, encode=by_projection),
    "s2net from opca": iterative(lambda d, k: learned(d, k, init="opca", beta=1e-3), encode=by_projection),
    "s2net, two matrices": iterative(lambda d, k: learned(d, k, two=True), encode=by_projection),
    "s2net, sigmoid": iterative(functools.partial(learned, activation=jax.nn.sigmoid),
                                encode=bent(activation=jax.nn.sigmoid)),
    "s2net, tanh": iterative(functools.partial(learned, activation=jnp.tanh), encode=bent(activation=jnp.tanh)),
    # A cosine of 1/2 for every pair, half of which are mates: ½ · ¼.
    "s2net_mse": Method(lambda d, k: s2net_mse.fit(*d.weighted, d.pairs, init=start(k, d.weighted[0].values.dtype),
                                                   max_iter=12), by_projection, collapsed=1 / 8),
    "s2net_pref": iterative(lambda d, k: s2net_pref.fit(
        *d.weighted, d.pairs, init=start(k, d.weighted[0].values.dtype), max_iter=12), encode=by_projection),
    "tweak": iterative(lambda d, k: weigh_terms(d), encode=by_term_weights, dimensions=None),
    "tweak, squared loss": Method(lambda d, k: weigh_terms(d, losses.squared), by_term_weights, dimensions=None,
                                  collapsed=1 / 8, below=0.65),
    "tweak, log loss": iterative(lambda d, k: weigh_terms(d, losses.log), encode=by_term_weights, dimensions=None,
                                 below=0.95),
    "vl_cv": iterative(learn_concepts, encode=by_concepts),
    "vl_ext": iterative(lambda d, k: extend_terms(d), encode=by_term_extension, dimensions=None,
                        both=True),
}
METHODS |= {
    "ssi": Method(by_triples(ssi.fit, k=K, learning_rate=1e-3), by_bilinear, **TRIPLES),
    "ssi, symmetric": Method(by_triples(ssi.fit, k=K, learning_rate=1e-3, symmetric=True), by_bilinear, **TRIPLES),
    "ssi, some terms": Method(by_triples(ssi.fit, k=K, learning_rate=1e-3, max_terms=20), by_bilinear, **TRIPLES),
    "ssi_diag": Method(by_triples(ssi_diag.fit, learning_rate=1e-2), by_bilinear, **TRIPLES | {"dimensions": None}),
    "ssi_sgd": Method(by_triples(ssi_sgd.fit, k=K, learning_rate=1e-2, batch=10), by_bilinear, **TRIPLES),
    "ssi_batch": Method(by_triples(ssi_batch.fit, k=K, learning_rate=1e-2, batch=10), by_bilinear, **TRIPLES),
    "ssi_full": Method(by_triples(ssi_full.fit, learning_rate=1e-4),
                       lambda params, data: ssi_full.encode(params, *data.weighted),
                       **TRIPLES | {"dimensions": M, "on_host": True}),
    "ssi_sparse": Method(pruned, by_entries, **TRIPLES | {"dimensions": None, "on_host": True}),
    "ssi_hash": Method(by_triples(ssi_hash.fit, size=997, learning_rate=1e-4), by_hash, **TRIPLES | {"dimensions": V}),
}

# One topic has a loss of 4.03 nats a word.
TOPICS = {"collapsed": 4.03, "below": 0.97, "at_zero": 1 / K}
SOFT = {"start": "soft", "key": jax.random.key(0), "max_iter": 40}
METHODS |= {
    "plsa": Method(lambda d, k: plsa.fit(d.stacked(d.counts), k=k, **SOFT), by_topics,
                   **TOPICS | {"mismatched": False}),
    "jplsa": Method(lambda d, k: jplsa.fit(d.counts, k=k, **SOFT), by_topics, **TOPICS),
    "jplsa, merged": Method(lambda d, k: jplsa.fit(d.counts, k=k, merged=True, **SOFT), by_topics, **TOPICS),
    "cplsa": Method(lambda d, k: cplsa.fit(d.counts, k=k, shared=True, dual_steps=1, **SOFT), by_topics, **TOPICS),
}


@functools.cache
def fitted(name, dtype=np.float64):
    return METHODS[name].fit(corpus(TRAIN, dtype), K)


def dense(vectors: Vectors) -> np.ndarray:
    """Both parts side by side: inner products of these are the scores of the `Vectors`."""
    bare = [] if vectors.sparse is None else [sparse.to_scipy(vectors.sparse).toarray()]
    return np.hstack([*([] if vectors.dense is None else [np.asarray(vectors.dense)]), *bare])


def assert_same(a, b, tolerance=0.0):
    for x, y in zip(jax.tree.leaves(a), jax.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, atol=tolerance * max(float(np.max(np.abs(y))), 1.0), rtol=0)
