"""Search by meaning and by words: a model's vectors, weighed for search, beside BM25 of the searched documents.

A second search may follow that is also after the best documents of the first (pseudo-relevance feedback: Rocchio's for
vectors, as in the relevance models of Lavrenko and Croft for words).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import checks
from jaxsim.evaluate import retrieval
from jaxsim.model import index as indexes
from jaxsim.model import parts
from jaxsim.model.bm25 import weigh
from jaxsim.model.index import Index
from jaxsim.model.model import Model
from jaxsim.sparse import Vectors

WORDS = ("bm25", "cosine")
"""How words count: by BM25 over stems of the searched documents, or by the cosine of the model's own weighted terms."""
TERMS = 0.5
"""Weight of BM25 beside a projection; settled on Cranfield and CACM."""
SHARE, STRONGEST = 0.5, 100
"""With feedback: the share of the second query that is of documents, and how many of their words it takes; settled on
Cranfield and CACM, where three documents are best."""
_BLOCK = 256
Found = tuple[np.ndarray, np.ndarray]  # scores and rows


def default_terms(model: Model) -> float:
    """The weight of words that a search takes unless given.

    Args:
      model: the model.

    Returns:
      What judged queries chose where they did; else `TERMS` for projections within a language, and 0 across languages,
      which share few words, and for models whose score is made of words already.
    """
    if model.terms_weight is not None:
        return model.terms_weight
    return 0.0 if model.params is None or model.bilinear or len(set(model.languages)) > 1 else TERMS


def rank(
    model: Model,
    documents: Index,
    queries: Sequence[str],
    *,
    k: int = 10,
    terms: float | None = None,
    words: str = "bm25",
    power: float | None = None,
    exclude: Sequence[Sequence[int]] | None = None,
    feedback: int | None = None,
) -> Found:
    r"""The best documents of every query.

    The score is :math:`(1 - w)\,c / \max c + w\,b / \max b` with the cosine c of the vectors, BM25 b and the weight w;
    each maximum is over the documents of one query, and a part whose maximum is not above 0 counts nothing. With
    ``words="cosine"``, and where one part has all the weight and is no BM25, scores are the cosines themselves.

    Args:
      model: the model.
      documents: `index.encode` of ``n`` documents by the same model, with what is asked for here.
      queries: ``q`` strings.
      k: documents a query, at most n.
      terms: weight w in [0, 1]; `default_terms` unless given.
      words: of `WORDS`.
      power: of the model's `agreement`, by which dimensions are multiplied; `Model.search_power` unless given. See
        `Model.vectors`.
      exclude: rows of documents that are no answer to each query; none unless given.
      feedback: how many of the best documents a second search is also after, 0 for none; `default_feedback` unless
        given. Half of the second query is the first: of its vector at length one, and of its words, which count 1 in
        all. The other half is the mean of these documents, weighted by their scores in the first search: of their
        vectors (the mean at length one), and of their words by BM25, the `STRONGEST` alone (which count 1 in all).

    Returns:
      ``(scores, rows)``, ``[q, k]`` float32 and int64, the best first; ties go to the lower row. Documents that are
      excluded come last, with a score of minus infinity.

    Where the documents were encoded with hubs (`hubs`), the cosine c is lessened by theirs.

    Raises:
      ValueError: for arguments out of range, documents that were encoded without what is asked for, or with hubs of
        another power; for hubs with ``words="cosine"`` and a weight between 0 and 1; and for feedback where the score
        is neither a cosine of a projection's vectors nor BM25.

    Example:
      >>> from jaxsim import text
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> found = indexes.encode(model, ["a dog", "cats, and a cat"])
      >>> rank(model, found, ["my dogs and dog"], k=2, terms=0.5)[1].tolist()
      [[0, 1]]
    """
    terms = default_terms(model) if terms is None else terms
    power = model.search_power if power is None else power
    checks.expect(0 <= terms <= 1, "terms", "a number in [0, 1]", terms)
    checks.expect(words in WORDS, "words", f"one of {', '.join(WORDS)}", words)
    number, near = len(documents.texts), documents.hubs
    if near is not None and terms < 1:
        checks.expect(near.power == power, "power", f"{near.power:g} (as for the hubs of the documents)", power)
        checks.expect(words == "bm25" or terms == 0, "words", "bm25, or terms of 0 or 1, with csls", words)
    checks.expect(exclude is None or len(exclude) == len(queries), "exclude", f"{len(queries)} lists (as queries)",
                  None if exclude is None else len(exclude))  # fmt: skip
    checks.positive_int(k, "k")
    checks.expect(k <= number, "k", f"at most {number} (documents)", k)
    feedback = default_feedback(model, terms, words) if feedback is None else feedback
    checks.whole(feedback, "feedback", 0)
    checks.expect(not feedback or _has_directions(model, terms, words), "feedback",
                  "0, unless vectors of a projection are compared by their cosine, with BM25 for words",
                  f"{feedback}, for {model.method} with words={words}, terms={terms:g}")  # fmt: skip
    fed = None
    if feedback:
        fed = rank(model, documents, queries, k=min(feedback, number), terms=terms, words=words, power=power,
                   exclude=exclude, feedback=0)  # fmt: skip
    scores_of = _by_bm25 if words == "bm25" and terms > 0 else _by_cosine
    score = scores_of(model, documents, list(queries), terms, power, fed)
    scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(queries)))
        result = np.array(score(block), np.float32)
        for place, row in enumerate(block) if exclude is not None else ():
            result[place, list(exclude[row])] = -np.inf
        scores[block], rows[block] = _best(result, k)
    return scores, rows


def default_feedback(model: Model, terms: float, words: str = "bm25") -> int:
    """How many documents a second search is after unless it is given.

    Args:
      model: the model.
      terms: weight of words.
      words: of `WORDS`.

    Returns:
      What judged queries chose, where this score takes a second search; else 0.
    """
    return (model.feedback or 0) if _has_directions(model, terms, words) else 0


def _has_directions(model: Model, terms: float, words: str) -> bool:
    """Whether a document can stand beside a query in this score."""
    plain = terms == 1 or not (model.params is None or model.bilinear or model.topical)
    return plain and (words == "bm25" or terms == 0)


def _best(scores: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The k best of each row, ties to the lower column; on the host, where the scores are, so that nothing compiles."""
    least = np.partition(scores, -k, axis=1)[:, -k]
    rows = np.empty((len(scores), k), np.int64)
    for place, (one, bound) in enumerate(zip(scores, least, strict=True)):
        above = np.flatnonzero(one > bound)
        rows[place, : len(above)] = above[np.argsort(-one[above], kind="stable")]
        rows[place, len(above) :] = np.flatnonzero(one == bound)[: k - len(above)]
    return np.take_along_axis(scores, rows, axis=1), rows


def _by_cosine(
    model: Model, documents: Index, queries: list[str], terms: float, power: float, fed: Found | None
) -> Callable:
    """Scores of vectors and of the model's own terms, as one cosine."""
    if terms == 0:
        return by_vectors(model, documents, queries, power, fed)
    asked = indexes.encode(model, queries, side="query", weights=[terms])
    sides = [_weighed(side, model, power).mixed(terms) for side in (asked, documents)]
    dot = sides[0].dense is not None and sides[0].sparse is not None
    return (retrieval.dot if dot else retrieval.cosine)(*sides)


def _by_bm25(
    model: Model, documents: Index, queries: list[str], terms: float, power: float, fed: Found | None
) -> Callable:
    """Scores of vectors and BM25, each divided by the largest of its query."""
    bm25 = documents.bm25 or weigh(documents.texts, language=model.languages[1])
    # Words that two languages share are names: those of the queries are cut as those of the documents, whatever theirs.
    counts = bm25.counts(queries, language=model.languages[1])
    counts = counts if fed is None else _with_words(counts, bm25.weights, fed)
    learned = by_vectors(model, documents, queries, power, fed) if terms < 1 else None

    def score(rows: np.ndarray) -> np.ndarray:
        scores = terms * _relative(np.asarray((counts[rows] @ bm25.weights.T).todense(), np.float32))
        if learned is None:
            return scores
        return scores + np.float32(1 - terms) * _relative(np.asarray(learned(rows), np.float32))

    return score


def by_vectors(
    model: Model, documents: Index, queries: Sequence[str], power: float, fed: Found | None = None
) -> Callable:
    """Scores of vectors alone, before they are divided by the largest of a query.

    Args:
      model: the model.
      documents: ``n`` documents with their vectors.
      queries: ``q`` strings.
      power: of the model's `agreement`.
      fed: scores and rows of documents, ``[q, m]`` each, that queries are moved towards; None: as they are.

    Returns:
      Function from numbers of queries ``[r]`` to scores ``[r, n]``, lessened by the documents' hubs where they have
      them.

    Example:
      >>> from jaxsim import text
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> score = by_vectors(model, indexes.encode(model, ["a dog", "cat"]), ["dogs and dog"], 0.0)
      >>> np.asarray(score(np.array([0]))).tolist()
      [[1.0, 0.0]]
    """
    vectors, others = model.vectors(queries, side="query", power=power), _weighed(documents, model, power).vectors
    vectors = vectors if fed is None else _towards(vectors, others, fed)
    return _lessened(model.scorer(vectors, others), documents)


def _shares(scores: np.ndarray) -> np.ndarray:
    """What each document counts in the feedback: its score; those that are excluded, or not alike, count nothing."""
    scores = np.where(np.isfinite(scores), np.maximum(scores, 0), 0)
    total = scores.sum(axis=1, keepdims=True)
    return np.divide(scores, total, out=np.zeros_like(scores), where=total > 0)


def _towards(queries: Vectors, documents: Vectors, fed: Found) -> Vectors:
    """Vectors of queries and of the documents that they have found, in equal parts."""
    shares, every = _shares(fed[0]), np.asarray(documents.dense)
    found = sum(shares[:, [place]] * parts.unit_dense(every[rows]) for place, rows in enumerate(fed[1].T))
    both = (1 - SHARE) * parts.unit_dense(np.asarray(queries.dense)) + SHARE * parts.unit_dense(found)
    return Vectors(jax.device_put(both.astype(every.dtype)))


def _with_words(counts: sp.csr_matrix, weights: sp.csr_matrix, fed: Found) -> sp.csr_matrix:
    """Words of queries and the strongest of the documents that they have found, in equal parts."""
    q, m = fed[1].shape
    picked = sp.csr_matrix((_shares(fed[0]).ravel(), fed[1].ravel(), np.arange(0, q * m + 1, m)),
                           shape=(q, weights.shape[0]))  # fmt: skip
    found = sp.csr_matrix(picked @ weights)
    found.sort_indices()  # of equally strong words, those that stand first in the documents are kept
    for start, stop in itertools.pairwise(found.indptr):
        row = found.data[start:stop]
        if len(row) > STRONGEST:
            row[np.argsort(-row, kind="stable")[STRONGEST:]] = 0
    return sp.csr_matrix((1 - SHARE) * _summing_to_one(counts) + SHARE * _summing_to_one(found), dtype=np.float32)


def _summing_to_one(rows: sp.csr_matrix) -> sp.csr_matrix:
    total = np.asarray(rows.sum(axis=1), np.float32).ravel()
    return sp.diags_array(np.divide(1, total, out=np.zeros_like(total), where=total > 0)) @ rows


def _lessened(scores: Callable, documents: Index) -> Callable:
    """Cosines without what makes a document a hub."""
    if documents.hubs is None:
        return scores
    return lambda rows: documents.hubs.lessened(np.asarray(scores(rows), np.float32))


def _weighed(side: Index, model: Model, power: float) -> Index:
    """An index with the dimensions of its vectors weighed for search."""
    if side.vectors is None or model.agreement is None or not power:
        return side
    dense = parts.weighed(side.vectors.dense, model.agreement, power)
    return replace(side, vectors=side.vectors._replace(dense=dense))


def _relative(scores: np.ndarray) -> np.ndarray:
    """Scores divided by the largest of each query; 0 where that is not above 0."""
    highest = scores.max(axis=1, keepdims=True, initial=0)
    return np.divide(scores, highest, out=np.zeros_like(scores), where=highest > 0)
