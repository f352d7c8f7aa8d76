"""Search by meaning and by words: a model's vectors, weighed for search, beside BM25 of the searched documents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from jaxsim import checks
from jaxsim.evaluate import retrieval
from jaxsim.model import index as indexes
from jaxsim.model import parts
from jaxsim.model.bm25 import weigh
from jaxsim.model.index import Index
from jaxsim.model.model import Model

WORDS = ("bm25", "cosine")
"""How words count: by BM25 over stems of the searched documents, or by the cosine of the model's own weighted terms."""
TERMS = 0.5
"""Weight of BM25 beside a projection; settled on Cranfield and CACM."""
_BLOCK = 256


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
) -> tuple[np.ndarray, np.ndarray]:
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

    Returns:
      ``(scores, rows)``, ``[q, k]`` float32 and int64, the best first; ties go to the lower row. Documents that are
      excluded come last, with a score of minus infinity.

    Where the documents were encoded with hubs (`hubs`), the cosine c is lessened by theirs.

    Raises:
      ValueError: for arguments out of range, documents that were encoded without what is asked for, or with hubs of
        another power; and for hubs with ``words="cosine"`` and a weight between 0 and 1.

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
    scores_of = _by_bm25 if words == "bm25" and terms > 0 else _by_cosine
    score = scores_of(model, documents, list(queries), terms, power)
    checks.positive_int(k, "k")
    checks.expect(k <= number, "k", f"at most {number} (documents)", k)
    scores, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
    for start in range(0, len(queries), _BLOCK):
        block = np.arange(start, min(start + _BLOCK, len(queries)))
        result = np.array(score(block), np.float32)
        for place, row in enumerate(block) if exclude is not None else ():
            result[place, list(exclude[row])] = -np.inf
        scores[block], rows[block] = _best(result, k)
    return scores, rows


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
    if terms == 0:
        return _lessened(model.scorer(*sides), documents)
    dot = sides[0].dense is not None and sides[0].sparse is not None
    return (retrieval.dot if dot else retrieval.cosine)(*sides)


def _by_bm25(model: Model, documents: Index, queries: list[str], terms: float, power: float) -> Callable:
    """Scores of vectors and BM25, each divided by the largest of its query."""
    bm25 = documents.bm25 or weigh(documents.texts, language=model.languages[1])
    # Words that two languages share are names: those of the queries are cut as those of the documents, whatever theirs.
    counts = bm25.counts(queries, language=model.languages[1])
    learned = by_vectors(model, documents, queries, power) if terms < 1 else None

    def score(rows: np.ndarray) -> np.ndarray:
        scores = terms * _relative(np.asarray((counts[rows] @ bm25.weights.T).todense(), np.float32))
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
    vectors = model.vectors(queries, side="query", power=power)
    return _lessened(model.scorer(vectors, _weighed(documents, model, power).vectors), documents)


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
