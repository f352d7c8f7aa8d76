"""Why two texts match: how much every pair of their words adds to the score, and in a search every shared word."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from jaxsim import checks, text
from jaxsim.model import parts, ranker
from jaxsim.model.bm25 import Bm25, asked, weigh
from jaxsim.model.index import Index
from jaxsim.model.model import WEIGHTINGS, Model
from jaxsim.sparse import narrow


@dataclass(frozen=True, eq=False)
class Explanation:
    """A score and what it is made of.

    Attributes:
      score: of the two texts: the cosine, or qᵀWd of SSI; the sum of the contributions.
      query: ``a`` words of the query that the model knows or makes of n-grams, each once, by its first place.
      document: ``b`` words of the document.
      contributions: ``[a, b]`` float64, what each pair of words adds to the score.
    """

    score: float
    query: tuple[str, ...]
    document: tuple[str, ...]
    contributions: np.ndarray

    def largest(self, number: int) -> list[tuple[str, str, float]]:
        """The pairs of words that add or take away most.

        Args:
          number: of pairs, at most.

        Returns:
          Word of the query, word of the document, and contribution, the largest in size first; none of 0.

        Example:
          >>> found = Explanation(0.5, ("a", "b"), ("c",), np.array([[0.75], [-0.25]]))
          >>> found.largest(1)
          [('a', 'c', 0.75)]
        """
        order = np.argsort(-np.abs(self.contributions), axis=None, kind="stable")[:number]
        places = zip(*np.unravel_index(order, self.contributions.shape), strict=True)
        return [(self.query[i], self.document[j], float(self.contributions[i, j])) for i, j in places
                if self.contributions[i, j]]  # fmt: skip


class Shared(NamedTuple):
    """A word of a query whose stem the document has too.

    Attributes:
      query: the word, as the query has it.
      document: words of the document with the same stem, each once.
      contribution: what the word adds to the score.
    """

    query: str
    document: tuple[str, ...]
    contribution: float


@dataclass(frozen=True, eq=False)
class SearchExplanation:
    """A score of a search and what it is made of.

    Attributes:
      score: that of `ranker.rank`; the sum of the two parts.
      vectors: the part of the vectors, whose pairs of words sum to it.
      words: the part of BM25, word by word; those that add most come first.
      terms: weight of the words in the score.
      power: of the model's agreement.
    """

    score: float
    vectors: Explanation
    words: tuple[Shared, ...]
    terms: float
    power: float

    @property
    def of_words(self) -> float:
        """The part of BM25: the sum of its words."""
        return float(sum(one.contribution for one in self.words))

    def cells(self) -> tuple[np.ndarray, tuple[str, ...], tuple[str, ...]]:
        """All contributions in one matrix: those of pairs of words, and a last column of BM25.

        Returns:
          ``([a, b + 1] float64, a words of the query, b words of the document and "BM25")``; their sum is the score.

        Example:
          >>> pairs = Explanation(0.25, ("cat",), ("dog",), np.array([[0.25]]))
          >>> SearchExplanation(0.75, pairs, (Shared("cats", ("cat",), 0.5),), 0.5, 1.0).cells()[0].tolist()
          [[0.25, 0.0], [0.0, 0.5]]
        """
        shares = {one.query: one.contribution for one in self.words}
        rows = tuple(dict.fromkeys((*self.vectors.query, *shares)))
        result = np.zeros((len(rows), len(self.vectors.document) + 1))
        result[: len(self.vectors.query), :-1] = self.vectors.contributions
        result[:, -1] = [shares.get(row, 0.0) for row in rows]
        return result, rows, (*self.vectors.document, "BM25")


def explain(model: Model, query: str, document: str, *, power: float = 0.0) -> Explanation:
    r"""Takes a score apart, exactly.

    Vectors are sums over words, so the score of a linear model is a sum over pairs of words:
    :math:`c_{ij} = q_i d_j\, a_i^T b_j / (\|A^T q\| \|B^T d\|)` with the weights q and d of the words and the rows a
    and b of the projections; SSI adds its diagonal where the words are the same, and has texts of unit length in place
    of the two norms.

    Args:
      model: with any linear score: projections, SSI that sees all terms, bare term weights.
      query: a text.
      document: a text.
      power: of the model's `agreement`; see `Model.vectors`.

    Returns:
      `Explanation`; without words that both texts know, the score is 0.

    Raises:
      ValueError: for a model whose vectors are no sums over words: one with an activation.

    Example:
      >>> import jax.numpy as jnp
      >>> from jaxsim.methods.projections import Projection
      >>> words = text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2)
      >>> found = explain(Model(words, Projection(jnp.ones((2, 1)))), "a cat", "cat dog")
      >>> found.score, found.contributions.tolist()
      (1.0, [[0.5, 0.5]])
    """
    checks.expect(model.activation == "none", "model", "one whose vectors are sums over words",
                  f"one with the activation {model.activation}")
    both = _words(model, query, "query"), _words(model, document, "document")
    names, rows, weights = zip(*both, strict=True)
    if model.bilinear:
        products = _bilinear(model, names, rows, weights)
        scale = np.prod([np.linalg.norm(one) for one in weights])
    elif model.params is None:
        products = _same(names)
        scale = np.prod([np.linalg.norm(one) for one in weights])
    else:
        if model.agreement is not None and power:
            rows = [parts.weighed(one, model.agreement, power) for one in rows]
        products = rows[0] @ rows[1].T
        scale = np.prod([np.linalg.norm(one @ side) for one, side in zip(weights, rows, strict=True)])
    contributions = weights[0][:, None] * products * weights[1][None, :]
    contributions = contributions / scale if scale > 0 else np.zeros_like(contributions)
    return Explanation(float(contributions.sum()), *names, contributions)


def explain_search(
    model: Model, query: str, documents: Index, row: int, *, terms: float | None = None, power: float | None = None
) -> SearchExplanation:
    """Takes a score of a search apart, exactly.

    A search's score is a multiple of the cosine c and one of BM25 b (`ranker.scales`, over all documents for this
    query). The cosine is a sum over pairs of words, BM25 one over words that query and document share.

    Args:
      model: as for `explain`; with ``terms=1`` any.
      query: a text.
      documents: `index.encode` of ``n`` documents by the same model, without hubs.
      row: which of them is explained, from 0.
      terms: weight w in [0, 1]; `ranker.default_terms` unless given. With 0 the score is the cosine itself.
      power: of the model's `agreement`; `Model.search_power` unless given.

    Returns:
      `SearchExplanation`.

    Raises:
      ValueError: for arguments out of range, documents with hubs, and models that `explain` refuses.

    Example:
      >>> from jaxsim.model import index
      >>> model = Model(text.Vocabulary(("cat", "dog"), np.array([1, 1]), 2), None)
      >>> found = explain_search(model, "cats", index.encode(model, ["a dog", "a cat"]), 1, terms=0.5)
      >>> round(found.score, 6), found.vectors.score, [(one.query, one.document) for one in found.words]
      (1.0, 0.0, [('cats', ('cat',))])
    """
    terms = ranker.default_terms(model) if terms is None else terms
    power = model.search_power if power is None else power
    checks.expect(0 <= terms <= 1, "terms", "a number in [0, 1]", terms)
    checks.expect(isinstance(query, str), "query", "a string", checks.a_kind(query))
    checks.whole(row, "row", 0)
    checks.expect(row < len(documents.texts), "row", f"below {len(documents.texts)} (documents)", row)
    checks.expect(documents.hubs is None, "documents", "documents without hubs (csls)", "some with hubs")
    vectors = Explanation(0.0, (), (), np.zeros((0, 0)))
    if terms < 1:
        vectors = explain(model, query, documents.texts[row], power=power)
    bm25 = None
    scale = 0.0
    if terms > 0:
        bm25 = documents.bm25 or weigh(documents.texts, language=model.languages[1])
        words = (bm25.counts([query], language=model.languages[1]) @ bm25.by_stem).toarray()  # as `ranker.rank` cuts
        cosines = None if terms == 1 else np.asarray(ranker.by_vectors(model, documents, [query], power)(np.arange(1)))
        learned, scale = (float(one[0, 0]) for one in ranker.scales(cosines, words, terms))
        vectors = replace(vectors, score=learned * vectors.score, contributions=learned * vectors.contributions)
    shared = () if bm25 is None else _shared(model, query, documents.texts[row], bm25, row, scale)
    score = vectors.score + float(sum(one.contribution for one in shared))
    return SearchExplanation(score, vectors, shared, float(terms), float(power))


def _shared(model: Model, query: str, document: str, bm25: Bm25, row: int, scale: float) -> tuple[Shared, ...]:
    """What every word that query and document share adds to the score by BM25."""
    language = model.languages[1]
    columns = {stem: column for column, stem in enumerate(bm25.stems)}
    weights = np.asarray(bm25.weights[row].todense(), np.float64).ravel()
    known: dict[str, list[str]] = {}
    for word, stem in text.with_stems(document, language):
        known.setdefault(stem, []).append(word)
    shares: dict[str, float] = {}
    stems = {}
    for word, stem, times in asked(query, language):  # a word that stands there twice counts twice
        if stem in known and stem in columns:  # indexes of earlier versions lack the stems of stop words
            shares[word] = shares.get(word, 0.0) + scale * times * weights[columns[stem]]
            stems[word] = stem
    found = [Shared(word, tuple(dict.fromkeys(known[stems[word]])), float(value)) for word, value in shares.items()]
    return tuple(sorted(found, key=lambda one: -one.contribution))


def _words(model: Model, given: str, side: str) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """Words of a text that have a vector: their names, their rows of the projection, and their weights in the text."""
    checks.expect(isinstance(given, str), side, "a string", checks.a_kind(given))
    sides = parts.sides(model.params)
    matrix = narrow.full(sides[-1 if side == "document" else 0].weights) if sides else None
    tokens = model.splitter(side)(given)
    index, weigh = model.vocabulary.index, WEIGHTINGS[model.weighting]
    known = tuple(dict.fromkeys(word for word in tokens if word in index))
    columns = [index[word] for word in known]
    result = weigh(text.counts([tokens], model.vocabulary), model.vocabulary.df, model.vocabulary.num_docs)
    weights = np.asarray(result[:, columns].todense(), np.float64).ravel()
    rows = np.zeros((len(known), 0)) if matrix is None else matrix[columns].astype(np.float64)
    if model.subwords is None:
        return known, rows, weights
    unseen = tuple(dict.fromkeys(word for word in tokens if word not in index))
    other = text.Vocabulary(unseen, np.ones(len(unseen), np.int64), model.vocabulary.num_docs)
    rest = weigh(text.counts([[word for word in tokens if word not in index]], other), other.df, other.num_docs)
    made = model.subwords.rows(unseen) @ matrix[len(model.vocabulary) :].astype(np.float64)
    return (*known, *unseen), np.concatenate([rows, made]), np.concatenate([weights, rest.toarray().ravel()])


def _bilinear(model: Model, names, rows, weights) -> np.ndarray:
    """Products of words by W = UᵀV + D, where U and V see the strongest terms of a text."""
    left, right = parts.sides(model.params)
    rows = list(rows)
    if model.strongest is not None:
        for place, one in enumerate(weights):
            columns = [model.vocabulary.index[word] for word in names[place]]
            seen = np.zeros(len(one))
            seen[np.lexsort((columns, -np.abs(one)))[: model.strongest]] = 1
            length = np.linalg.norm(one * seen)  # what is left of a text is scaled to the length it had
            rows[place] = rows[place] * (seen * np.linalg.norm(one) / (length or 1.0))[:, None]
    index = model.vocabulary.index
    scales = [np.asarray(side.scale, np.float64)[[index[word] for word in side_names]]
              for side, side_names in zip((left, right), names, strict=True)]  # fmt: skip
    return rows[0] @ rows[1].T + _same(names) * scales[0][:, None] * scales[1][None, :]


def _same(names) -> np.ndarray:
    """1 where a word of the query is one of the document."""
    return np.array([[float(a == b) for b in names[1]] for a in names[0]]).reshape(len(names[0]), len(names[1]))
