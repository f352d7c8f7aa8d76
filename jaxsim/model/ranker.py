"""Search by meaning and by words: a model's vectors, weighed for search, beside BM25 of the searched documents.

A second search may follow that is also after the best documents of the first (pseudo-relevance feedback: Rocchio's for
vectors, as in the relevance models of Lavrenko and Croft for words).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

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
    checks.expect(not feedback or takes_feedback(model, terms, words), "feedback",
                  "0, unless vectors of a projection are compared by their cosine, with BM25 for words",
                  f"{feedback}, for {model.method} with words={words}, terms={terms:g}")  # fmt: skip
    if words == "cosine" and terms > 0:
        return _found(_by_cosine(model, documents, list(queries), terms, power), len(queries), k, exclude)
    asked, weights = _asked(model, documents, list(queries), terms, power)
    others = _weighed(documents, model, power)
    score = _by_parts(model, others, asked, weights, terms)
    if feedback:
        fed = _found(score, len(queries), min(feedback, number), exclude)
        score = _by_parts(model, others, _nearer(asked, others, weights, fed), weights, terms)
    return _found(score, len(queries), k, exclude)


def _found(score: Callable, number: int, k: int, exclude: Sequence[Sequence[int]] | None) -> Found:
    """The k best documents of every query by a function of numbers of queries."""
    scores, rows = np.empty((number, k), np.float32), np.empty((number, k), np.int64)
    for start in range(0, number, _BLOCK):
        block = np.arange(start, min(start + _BLOCK, number))
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

    Example:
      >>> from jaxsim import text
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None, feedback=3)
      >>> default_feedback(model, 1.0), default_feedback(model, 0.0)
      (3, 0)
    """
    return (model.feedback or 0) if takes_feedback(model, terms, words) else 0


def takes_feedback(model: Model, terms: float, words: str = "bm25") -> bool:
    """Whether a document can stand beside a query, so that a second search can be after both.

    Args:
      model: the model.
      terms: weight of words.
      words: of `WORDS`.

    Returns:
      True for BM25, and for cosines of a projection's vectors.

    Example:
      >>> from jaxsim import text
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> takes_feedback(model, 1.0), takes_feedback(model, 0.5)
      (True, False)
    """
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


def _by_cosine(model: Model, documents: Index, queries: list[str], terms: float, power: float) -> Callable:
    """Scores of vectors and of the model's own terms, as one cosine."""
    asked = indexes.encode(model, queries, side="query", weights=[terms])
    sides = [_weighed(side, model, power).mixed(terms) for side in (asked, documents)]
    dot = sides[0].dense is not None and sides[0].sparse is not None
    return (retrieval.dot if dot else retrieval.cosine)(*sides)


class _Asked(NamedTuple):
    """Queries as they are compared: their vectors, and how often they have each stem of the documents; or None."""

    vectors: Vectors | None
    counts: sp.csr_matrix | None


def _asked(
    model: Model, documents: Index, queries: list[str], terms: float, power: float
) -> tuple[_Asked, sp.csr_matrix | None]:
    """Queries, and the BM25 weights of the documents; what has no weight in the score is None."""
    vectors = model.vectors(queries, side="query", power=power) if terms < 1 else None
    if terms == 0:
        return _Asked(vectors, None), None
    # Words that two languages share are names: those of the queries are cut as those of the documents, whatever theirs.
    bm25 = documents.bm25 or weigh(documents.texts, language=model.languages[1])
    return _Asked(vectors, bm25.counts(queries, language=model.languages[1])), bm25.weights


def _by_parts(
    model: Model, documents: Index, asked: _Asked, weights: sp.csr_matrix | None, terms: float
) -> Callable:
    """Scores of vectors and BM25, each divided by the largest of its query; of vectors alone as they are."""
    learned = None if asked.vectors is None else _lessened(model.scorer(asked.vectors, documents.vectors), documents)
    if asked.counts is None:
        return learned

    def score(rows: np.ndarray) -> np.ndarray:
        scores = terms * _relative(np.asarray((asked.counts[rows] @ weights.T).todense(), np.float32))
        if learned is None:
            return scores
        return scores + np.float32(1 - terms) * _relative(np.asarray(learned(rows), np.float32))

    return score


def by_vectors(model: Model, documents: Index, queries: Sequence[str], power: float) -> Callable:
    """Scores of vectors alone, before they are divided by the largest of a query.

    Args:
      model: the model.
      documents: ``n`` documents with their vectors.
      queries: ``q`` strings.
      power: of the model's `agreement`.

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
    asked, _ = _asked(model, documents, list(queries), 0.0, power)
    return _by_parts(model, _weighed(documents, model, power), asked, None, 0.0)


def _nearer(asked: _Asked, documents: Index, weights: sp.csr_matrix | None, fed: Found) -> _Asked:
    """Queries moved towards the documents that they have found."""
    scores, rows = fed
    # Documents count by their scores; those that are excluded, or not alike, count nothing.
    scores = np.where(np.isfinite(scores), np.maximum(scores, 0), 0)
    (q, m), number = rows.shape, len(documents.texts)
    picked = sp.csr_matrix((scores.ravel(), rows.ravel(), np.arange(0, q * m + 1, m)), shape=(q, number))
    shares = _summing_to_one(picked)
    vectors = None if asked.vectors is None else _towards(asked.vectors, documents.vectors, shares)
    return _Asked(vectors, None if asked.counts is None else _with_words(asked.counts, weights, shares))


def _towards(queries: Vectors, documents: Vectors, shares: sp.csr_matrix) -> Vectors:
    """Vectors of queries and the mean of the documents that they have found."""
    used = np.unique(shares.indices)
    every = np.asarray(documents.dense)
    found = shares[:, used] @ parts.unit_dense(every[used])
    both = (1 - SHARE) * parts.unit_dense(np.asarray(queries.dense)) + SHARE * parts.unit_dense(found)
    return Vectors(jax.device_put(both.astype(every.dtype)))


def _with_words(counts: sp.csr_matrix, weights: sp.csr_matrix, shares: sp.csr_matrix) -> sp.csr_matrix:
    """Words of queries and the strongest of the documents that they have found."""
    found = sp.csr_matrix(shares @ weights)
    found.sort_indices()  # of equally strong words, those that stand first in the documents are kept
    for start, stop in itertools.pairwise(found.indptr):
        row = found.data[start:stop]
        if len(row) > STRONGEST:
            row[np.argsort(-row, kind="stable")[STRONGEST:]] = 0
    return sp.csr_matrix((1 - SHARE) * _summing_to_one(counts) + SHARE * _summing_to_one(found), dtype=np.float32)


def _summing_to_one(rows: sp.csr_matrix) -> sp.csr_matrix:
    """Rows that sum to 1; empty ones stay empty."""
    total = np.asarray(rows.sum(axis=1), np.float32).ravel()
    return sp.csr_matrix(sp.diags_array(np.divide(1, total, out=np.zeros_like(total), where=total > 0)) @ rows)


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
