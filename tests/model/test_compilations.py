"""Calls with texts of any number and length share a few compiled programs, and memory does not grow with them."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim import text
from jaxsim.evaluate import all_pairs, completion, mates, metrics, neighbours, ranking, retrieval, significance
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import bilinear
from jaxsim.model import Model, explain, index, ranker
from jaxsim.model.words import Words
from jaxsim.sparse import Vectors
from jaxsim.text.subwords import Subwords

CALLS, MOST = 200, 12
SIGNS = np.array([1, 1, -1, 1, -1, 1, 1])
WORDS = [f"word{i}" for i in range(300)]
VOCABULARY = text.Vocabulary(tuple(WORDS), np.arange(1, 301), 1000)
_compiled: list[str] = []
jax.monitoring.register_event_duration_secs_listener(
    lambda event, *_, **__: _compiled.append(event) if event.endswith("backend_compile_duration") else None)


def model_of(kind, rng):
    weights = jnp.asarray(rng.normal(size=(300, 7)), jnp.float32)
    sides = Projection(weights), Projection(-weights)
    made = {"one": (sides[0], {}), "two": (sides, {}), "tanh": (sides[0], {"activation": "tanh"}), "bare": (None, {}),
            "bilinear": (bilinear.sides(weights, -weights, jnp.full(300, 3.0)), {"strongest": 5}),
            "topics": ((Projection(abs(weights)), Projection(weights**2)), {"activation": "shares"}),
            "grams": (Projection(jnp.concatenate([weights, weights[:2]])), {
                "agreement": np.linspace(0, 1, 7, dtype=np.float32),
                "subwords": Subwords((" wo", "ord"), np.ones(2, np.float32), 0.5)})}  # fmt: skip
    params, options = made[kind]
    return Model(VOCABULARY, params, **options)


TEXTS = [" ".join(WORDS[(i * j) % 300] for j in range(i % 40)) for i in range(640)]


def some(rng, most):
    """Texts of any number up to ``most``, of up to 40 words each."""
    start = int(rng.integers(40))
    return TEXTS[start : start + int(rng.integers(1, most))]


def searched(model, rng):
    documents = some(rng, 600)
    return model.search(some(rng, 100), model.vectors(documents), k=int(rng.integers(1, min(20, len(documents)) + 1)))


def indexed(model, rng):
    weight = 0.5 if not model.bilinear and model.params is not None else 0
    query, found = (index.encode(model, some(rng, most), side=side).mixed(weight)
                    for side, most in (("query", 40), ("document", 300)))
    kind = retrieval.dot if query.dense is not None and query.sparse is not None else retrieval.cosine
    return retrieval.top_k(query, found, k=1, similarity=kind)


def ranked(model, rng):
    documents = some(rng, 300)
    found = index.encode(model, documents, bm25=True)
    return ranker.rank(model, found, some(rng, 60), k=1, terms=float(rng.choice([0.0, 0.5])))


def pairs(model, rng):
    texts = some(rng, 300)
    return model.pair_similarity(texts, texts[::-1])


def nearest(model, rng):
    texts = some(rng, 300)
    sides = model.vectors(texts, side="query"), model.vectors(texts)
    neighbours.labels_of_nearest(*sides, rng.integers(3, size=len(texts)))
    return retrieval.mate_ranks(*sides)


def powered(model, rng):
    texts = some(rng, 300)
    return model.search(texts[:60], model.vectors(texts, power=float(rng.choice([0.5, 1, 2]))), k=1)


def opposites(model, rng):
    weights = np.asarray(model.params.weights)
    found = Words.of(WORDS, weights, [9] * 300, 9, method="pilsa", training={})
    word, k = WORDS[rng.integers(300)], int(rng.integers(1, 50))
    return found.nearest(word, k=k), found.opposites(word, k=k), found.closest_opposite(word, WORDS[:k])


def vectors_of(rng, most, *, positive=False):
    """Vectors of any number, from the host, as every evaluation takes them."""
    dense = rng.random((int(rng.integers(4, most)), 7), np.float32)
    return Vectors(dense if positive else dense - np.float32(0.5))


def judged_links(_, rng):
    left, right = vectors_of(rng, 90), vectors_of(rng, 300)
    links = np.stack([np.arange(left.num_docs), rng.integers(right.num_docs, size=left.num_docs)], axis=1)
    truth = ranking.judged(links[: int(rng.integers(1, len(links)))], (left.num_docs, right.num_docs))
    return ranking.per_query(left, right, truth), ranking.scores(left, right, truth, similarity=retrieval.cosine)


def measured(similarity):
    def call(_, rng):
        left = vectors_of(rng, 300, positive=True)
        right = Vectors(left.dense + np.float32(0.1))
        mates.by_source(left, right, rng.integers(3, size=left.num_docs), similarity=similarity)
        return mates.per_query(left, right, similarity=similarity), mates.scores(left, right, similarity=similarity)

    return call


def signed(_, rng):
    return retrieval.top_k(vectors_of(rng, 60), vectors_of(rng, 300), k=2, similarity=retrieval.signed(SIGNS))


def answered(_, rng):
    left, right = vectors_of(rng, 90), vectors_of(rng, 91)
    number = min(left.num_docs, right.num_docs)
    found = mates.answers(rng.integers(number // 2, size=number).tolist(), range(number))
    left, right = (Vectors(side.dense[:number]) for side in (left, right))
    return mates.per_left(left, right, found)


def sorted_pairs(_, rng):
    vectors = vectors_of(rng, 90)
    labels = all_pairs.incidence([["a"], ["a"], ["b"], ["b"], *(["ab"[i % 2]] for i in range(vectors.num_docs - 4))])
    return all_pairs.score(vectors, labels), all_pairs.auc(vectors, labels)


def completed(_, rng):
    number = int(rng.integers(2, 300))
    scores, answers = rng.random((number, 5)), rng.integers(5, size=number)
    completion.accuracies(scores, answers, num_dev=1)
    labels = np.append(rng.integers(2, size=number), [0, 1])
    for metric in (metrics.auc, metrics.average_precision, metrics.max_f1):
        metric(rng.random(number + 2), labels)
    metrics.ndcg(rng.random(number), rng.random(number), k=3), metrics.spearman(rng.random(number), rng.random(number))
    return significance.paired_t(*scores[:, :2].T), significance.bootstrap_interval(scores[:, 0], key=jax.random.key(0))


CASES = {
    "encode": ("one", lambda model, rng: model.encode(some(rng, 300))),
    "encode_query": ("two", lambda model, rng: model.encode_query(some(rng, 300), batch_size=rng.choice([7, 90, 400]))),
    "encode_document": ("tanh", lambda model, rng: model.encode_document(some(rng, 300), normalize=True)),
    "vectors": ("bilinear", lambda model, rng: model.vectors(some(rng, 300), side="query")),
    "similarity": ("one", lambda model, rng: model.similarity(some(rng, 60), some(rng, 200))),
    "similarity, bare": ("bare", lambda model, rng: model.similarity(some(rng, 60), some(rng, 200))),
    "similarity, bilinear": ("bilinear", lambda model, rng: model.similarity(some(rng, 60), some(rng, 200))),
    "pair_similarity": ("two", pairs),
    "search": ("two", searched), "search, bare": ("bare", searched), "search, bilinear": ("bilinear", searched),
    "index": ("one", indexed), "rank": ("two", ranked),
    "similarity, topics": ("topics", lambda model, rng: model.similarity(some(rng, 60), some(rng, 200))),
    "search, topics": ("topics", searched), "mates and neighbours": ("two", nearest),
    "search, power and n-grams": ("grams", powered), "words": ("one", opposites),
    "evaluate: links": (None, judged_links), "search, signed": (None, signed),
    **{f"evaluate: mates, {one.__name__}": (None, measured(one)) for one in
       (retrieval.cosine, retrieval.dot, retrieval.l1, retrieval.jensen_shannon)},
    "evaluate: answers": (None, answered),
    "evaluate: all pairs": (None, sorted_pairs), "evaluate: completion, metrics": (None, completed),
    "explain": ("two", lambda model, rng: explain.explain(model, " ".join(some(rng, 9)), " ".join(some(rng, 9)))),
}  # fmt: skip


LONG = ("search, topics", "mates and neighbours", "search, power and n-grams", "evaluate: mates, l1",
        "evaluate: mates, jensen_shannon", "evaluate: mates, dot", "evaluate: mates, cosine",
        "evaluate: completion, metrics", "search, bilinear", "search, bare", "search, signed", "similarity, topics",
        "similarity, bilinear")


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.programs] * (name in LONG)) for name in CASES])
def test_200_calls_of_any_size_share_a_few_programs(name, rng):
    kind, call = CASES[name]
    model = model_of(kind, rng) if kind else None
    jax.clear_caches()
    before = len(_compiled)
    jax.jit(lambda x: x + len(name))(jnp.ones(3))
    assert len(_compiled) > before  # the listener hears; a call that runs on the host alone compiles nothing
    before = len(_compiled)
    for _ in range(CALLS):
        call(model, rng)
    assert len(_compiled) - before <= MOST
