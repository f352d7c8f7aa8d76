"""Search by meaning and by words: a model's vectors, weighed for search, beside BM25 of the searched documents.

A second search may follow that is also after the best documents of the first (pseudo-relevance feedback: Rocchio's for
vectors, as in the relevance models of Lavrenko and Croft for words).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

from jaxsim import checks, text
from jaxsim.evaluate import retrieval
from jaxsim.model import index as indexes
from jaxsim.model import parts
from jaxsim.model.bm25 import Bm25, weigh
from jaxsim.model.index import Index
from jaxsim.model.model import Model
from jaxsim.sparse import Vectors

WORDS = ("bm25", "cosine")
"""How words count: by BM25 over stems of the searched documents, or by the cosine of the model's own weighted terms."""
TERMS = 0.5
"""Weight of BM25 beside a projection; settled on Cranfield and CACM."""
BEST = 20
"""By the mean of how many of its best documents each part of a score is measured; settled on Cranfield and CACM, where
10 to 50 are much alike, and better than the best one alone."""
SHARE, STRONGEST = 0.5, 100
"""With feedback: the share of the second query that is of documents, and how many of their words it takes; settled on
Cranfield and CACM, where three documents are best."""
_BLOCK, _SCORES, _LEAST = 256, 2**26, 1e-30
Found = tuple[np.ndarray, np.ndarray]  # scores and rows
Exclude = Sequence[Sequence[int]] | None  # rows of documents, for each query


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


def needed(model: Model, terms: float | None, words: str = "bm25") -> dict[str, Any]:
    """What `rank` takes of documents, so that nothing else has to be made or read.

    Args:
      model: the model.
      terms: weight of words; `default_terms` unless given.
      words: of `WORDS`.

    Returns:
      ``weights`` and ``bm25`` for `index.encode` and `index.load`.

    Example:
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> needed(model, 0.5), needed(model, 0.5, "cosine")
      ({'weights': [0.0], 'bm25': True}, {'weights': [0.5], 'bm25': False})
    """
    terms = default_terms(model) if terms is None else terms
    by_stems = words == "bm25"
    return {"weights": [0.0 if by_stems and terms < 1 else terms], "bm25": by_stems and terms > 0}


def rank(
    model: Model,
    documents: Index,
    queries: Sequence[str],
    *,
    k: int = 10,
    terms: float | None = None,
    words: str = "bm25",
    power: float | None = None,
    exclude: Exclude = None,
    feedback: int | None = None,
) -> Found:
    r"""The best documents of every query.

    With the cosine c of the vectors, BM25 b and the weight w, documents are ordered by
    :math:`(1 - w)\,c / \bar c + w\,b / \bar b`: each part is divided by its mean over the `BEST` documents it likes
    best, so that a part whose best ones stand out counts more. The score is that sum divided by the same sum of both
    parts' largest values: 1 for a document that both like best. Negative values count as 0 in the means. Where none of
    a part is positive, the mean magnitude of all its values stands for its mean and its largest value, so that it
    orders the documents still. With ``words="cosine"``, and with w = 0, scores are the cosines themselves.

    Args:
      model: the model.
      documents: `index.encode` of ``n`` documents by the same model, with what is asked for here (`needed`).
      queries: ``q`` strings, at least one.
      k: documents a query, at most n.
      terms: weight w in [0, 1]; `default_terms` unless given.
      words: of `WORDS`.
      power: of the model's `agreement`, by which dimensions are multiplied; unless given, that of the documents' hubs,
        or `Model.search_power` where they have none. See `Model.vectors`.
      exclude: rows of documents that are no answer to each query; none unless given. They take no part in what the
        others are measured by.
      feedback: how many of the best documents a second search is also after, 0 for none; `default_feedback` unless
        given. Half of the second query is the first: of its vector at length one, and of its words, which count 1 in
        all. The other half is the mean of these documents, weighted by their scores in the first search: of their
        vectors (the mean at length one), and of their words by BM25, the `STRONGEST` alone (which count 1 in all).

    Returns:
      ``(scores, rows)``, ``[q, k]`` float32 and int64, the best first; ties go to the lower row. Documents that are
      excluded come last, with a score of minus infinity.

    Where the documents were encoded with hubs (`hubs`), the cosine c is lessened by theirs.

    Raises:
      ValueError: for arguments out of range, queries that are none or one text, excluded rows that are not those of
        documents, documents that were encoded without what is asked for, or with hubs of another power; for hubs with
        ``words="cosine"`` and a weight between 0 and 1; and for feedback where the score is neither a cosine of a
        projection's vectors nor BM25.

    Example:
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> found = indexes.encode(model, ["a dog", "cats, and a cat"])
      >>> rank(model, found, ["my dogs and dog"], k=2, terms=0.5)[1].tolist()
      [[0, 1]]
    """
    terms = default_terms(model) if terms is None else terms
    near = documents.hubs
    power = near.power if power is None and near is not None else model.search_power if power is None else power
    checks.expect(0 <= terms <= 1, "terms", "a number in [0, 1]", terms)
    checks.expect(words in WORDS, "words", f"one of {', '.join(WORDS)}", words)
    number = len(documents.texts)
    if near is not None and terms < 1:
        same = near.power == power or model.agreement is None  # there is nothing to take a power of
        checks.expect(same, "power", f"{near.power:g} (as for the hubs of the documents)", power)
        checks.expect(words == "bm25" or terms == 0, "words", "bm25, or terms of 0 or 1, with csls", words)
    checks.expect(not isinstance(queries, str), "queries", "a list of texts", "one text (put it into a list)")
    queries = list(queries)
    checks.expect(len(queries) > 0, "queries", "at least one text", "none")
    text.strings(queries, "queries")
    _expect_rows(exclude, len(queries), number)
    checks.positive_int(k, "k")
    checks.expect(k <= number, "k", f"at most {number} (documents)", k)
    feedback = default_feedback(model, terms, words) if feedback is None else feedback
    checks.whole(feedback, "feedback", 0)
    checks.expect(not feedback or takes_feedback(model, terms, words), "feedback",
                  "0, unless vectors of a projection are compared by their cosine, with BM25 for words",
                  f"{feedback}, for {model.method} with words={words}, terms={terms:g}")  # fmt: skip
    if words == "cosine" and terms > 0:
        return found(_by_cosine(model, documents, queries, terms, power), len(queries), k, exclude, documents=number)
    asked, bm25 = _asked(model, documents, queries, terms, power)
    others = _weighed(documents, model, power)
    score = _by_parts(model, others, asked, bm25, terms, exclude)
    if feedback:
        fed = found(score, len(queries), min(feedback, number), exclude, documents=number)
        score = _by_parts(model, others, _nearer(model, asked, others, bm25, fed), bm25, terms, exclude)
    return found(score, len(queries), k, exclude, documents=number)


def _expect_rows(exclude: Exclude, queries: int, documents: int) -> None:
    """Refuses what does not say for each query which of the documents are no answer to it."""
    if exclude is None:
        return
    checks.expect(len(exclude) == queries, "exclude", f"{queries} lists (as queries)", len(exclude))
    for query, some in enumerate(exclude):
        listed = not isinstance(some, str) and isinstance(some, Iterable)
        checks.expect(listed, f"exclude[{query}]", "a list of rows", checks.a_kind(some))
        rows = np.asarray(list(some))
        if rows.size:
            whole = rows.ndim == 1 and rows.dtype.kind in "iu"
            wrong = next(iter(rows[(rows < 0) | (rows >= documents)]), None) if whole else "others"
            checks.expect(wrong is None, f"exclude[{query}]", f"rows of documents, from 0 to {documents - 1}", wrong)


def found(score: Callable, number: int, k: int, exclude: Exclude = None, *, documents: int = 1) -> Found:
    """The best documents of every query by a block scorer (`retrieval`), in the order of `rank`.

    Blocks are of 256 queries, or of fewer, so that no more than 2^26 scores are made at a time.

    Args:
      score: block scorer of queries and documents.
      number: queries.
      k: documents a query.
      exclude: as for `rank`.
      documents: how many are scored.

    Returns:
      As `rank`.

    Example:
      >>> found(lambda rows: np.array([[0.5, 0.25, 1.0]])[rows], 1, 2, [[2]])[1].tolist()
      [[0, 1]]
    """
    scores, rows = np.empty((number, k), np.float32), np.empty((number, k), np.int64)
    size = max(1, min(_BLOCK, _SCORES // max(documents, 1)))
    for start in range(0, number, size):
        block = np.arange(start, min(start + size, number))
        scores[block], rows[block] = _best(_without(score(block), block, exclude, -np.inf), k)
    return scores, rows


def _without(scores, queries: np.ndarray, exclude: Exclude, value: float) -> np.ndarray:
    """The scores of some queries, with a value in place of what is excluded."""
    if exclude is None:
        return np.asarray(scores, np.float32)
    result = np.array(scores, np.float32)
    for place, query in enumerate(queries):
        result[place, list(exclude[query])] = value
    return result


def default_feedback(model: Model, terms: float, words: str = "bm25") -> int:
    """How many documents a second search is after unless it is given.

    Args:
      model: the model.
      terms: weight of words.
      words: of `WORDS`.

    Returns:
      What judged queries chose, where this score takes a second search; else 0.

    Example:
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
) -> tuple[_Asked, Bm25 | None]:
    """Queries, and BM25 of the documents; what has no weight in the score is None."""
    vectors = model.vectors(queries, side="query", power=power) if terms < 1 else None
    if terms == 0:
        return _Asked(vectors, None), None
    # Words that two languages share are names: those of the queries are cut as those of the documents, whatever theirs.
    bm25 = documents.bm25 or weigh(documents.texts, language=model.languages[1])
    return _Asked(vectors, bm25.counts(queries, language=model.languages[1])), bm25


def _by_parts(
    model: Model, documents: Index, asked: _Asked, bm25: Bm25 | None, terms: float, exclude: Exclude
) -> Callable:
    """Scores of vectors and BM25 together; of vectors alone as they are."""
    learned = None if asked.vectors is None else _lessened(model.scorer(asked.vectors, documents.vectors), documents)
    if asked.counts is None:
        return learned

    def score(rows: np.ndarray) -> np.ndarray:
        words = np.asarray((asked.counts[rows] @ bm25.by_stem).todense(), np.float32)
        vectors = None if learned is None else np.asarray(learned(rows), np.float32)
        answers = (None if one is None else _without(one, rows, exclude, -np.inf) for one in (vectors, words))
        factors = [one.astype(np.float32) for one in scales(*answers, terms)]
        return factors[1] * words + (0 if vectors is None else factors[0] * vectors)

    return score


def scales(vectors: np.ndarray | None, words: np.ndarray, terms: float) -> tuple[np.ndarray, np.ndarray]:
    """What cosines and BM25 are multiplied with, so that their sum is the score of `rank`.

    Args:
      vectors: ``[q, n]`` cosines; None for BM25 alone. Minus infinity for what is excluded.
      words: ``[q, n]`` BM25, likewise.
      terms: weight of BM25 in [0, 1].

    Returns:
      ``(of the cosines, of BM25)``, each ``[q, 1]`` float64; 0 for a part that is 0 everywhere.

    Example:
      >>> cosines, bm25 = np.array([[0.5, 0.4, 0.1]]), np.array([[0.0, 3.0, 0.0]])
      >>> [round(float(one[0, 0]), 3) for one in scales(cosines, bm25, 0.5)]
      [0.667, 0.222]
    """
    none = np.zeros((len(words), 1))
    (top, mean), (top_words, mean_words) = (none, none) if vectors is None else _height(vectors), _height(words)
    factor, factor_words = _over(1 - terms, mean), _over(terms, mean_words)
    total = factor * top + factor_words * top_words
    return _over(factor, total), _over(factor_words, total)


def _height(scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest score of each query, and the mean of its `BEST` largest; negative ones count as 0.

    Where none is positive, both are the mean magnitude of all, which keeps their order.
    """
    n = scores.shape[1]
    best = np.partition(scores, n - min(BEST, n), axis=1)[:, -BEST:] if n else np.zeros((len(scores), 1))
    best = np.maximum(best, 0).astype(np.float64)
    answers = np.isfinite(scores).sum(axis=1, keepdims=True)  # what is excluded is none of them
    top, mean = best.max(axis=1, keepdims=True), best.sum(axis=1, keepdims=True) / np.clip(answers, 1, BEST)
    for row in np.flatnonzero(top == 0):
        left = scores[row][np.isfinite(scores[row])]
        top[row] = mean[row] = np.abs(left).mean(dtype=np.float64) if left.size else 0
    return top, mean


def _over(value: np.ndarray | float, by: np.ndarray) -> np.ndarray:
    """A quotient; 0 where it is divided by 0, or by next to nothing, which float32 could not hold."""
    return np.divide(value, by, out=np.zeros_like(by), where=by > _LEAST)


def by_vectors(model: Model, documents: Index, queries: Sequence[str], power: float) -> Callable:
    """Scores of vectors alone, before they are joined with those of words.

    Args:
      model: the model.
      documents: ``n`` documents with their vectors.
      queries: ``q`` strings.
      power: of the model's `agreement`.

    Returns:
      Function from numbers of queries ``[r]`` to scores ``[r, n]``, lessened by the documents' hubs where they have
      them.

    Example:
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> score = by_vectors(model, indexes.encode(model, ["a dog", "cat"]), ["dogs and dog"], 0.0)
      >>> np.asarray(score(np.array([0]))).tolist()
      [[1.0, 0.0]]
    """
    asked, _ = _asked(model, documents, list(queries), 0.0, power)
    return _by_parts(model, _weighed(documents, model, power), asked, None, 0.0, None)


def _nearer(model: Model, asked: _Asked, documents: Index, bm25: Bm25 | None, fed: Found) -> _Asked:
    """Queries moved towards the documents that they have found."""
    scores, rows = fed
    # Documents count by their scores; those that are excluded, or not alike, count nothing.
    scores = np.where(np.isfinite(scores), np.maximum(scores, 0), 0)
    (q, m), number = rows.shape, len(documents.texts)
    picked = sp.csr_matrix((scores.ravel(), rows.ravel(), np.arange(0, q * m + 1, m)), shape=(q, number))
    shares = _summing_to_one(picked)
    vectors = None if asked.vectors is None else _towards(asked.vectors, documents.vectors, shares)
    if asked.counts is None:
        return _Asked(vectors, None)
    return _Asked(vectors, _with_words(asked.counts, bm25, shares, model.languages[1]))


def _towards(queries: Vectors, documents: Vectors, shares: sp.csr_matrix) -> Vectors:
    """Vectors of queries and the mean of the documents that they have found."""
    used = np.unique(shares.indices)
    every = np.asarray(documents.dense)
    found = shares[:, used] @ parts.unit_dense(every[used])
    both = (1 - SHARE) * parts.unit_dense(np.asarray(queries.dense)) + SHARE * parts.unit_dense(found)
    return Vectors(jax.device_put(both.astype(every.dtype)))


def _with_words(counts: sp.csr_matrix, bm25: Bm25, shares: sp.csr_matrix, language: str) -> sp.csr_matrix:
    """Words of queries and the strongest of the documents that they have found."""
    found = sp.csr_matrix(shares @ bm25.weights)
    found.data *= bm25.times(found.indices, language=language)
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
