"""Mate retrieval from texts to scores: what training, the demo and the experiments on document pairs share.

A corpus of pairs is read as words (`read`), split so that near-duplicates stay together (`split`), and weighted by
statistics of its training part (`vocabulary_of`, `unit_terms`); every document of one side is then a query against all
documents of the other, and its mate the one right answer (`scores`).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import jax
import numpy as np
import scipy.sparse

from jaxsim import checks, sparse, text
from jaxsim.data import splits
from jaxsim.data.pairs import Pairs, tokenize
from jaxsim.evaluate import retrieval
from jaxsim.methods import projections
from jaxsim.methods.projections import Projection
from jaxsim.sparse import Terms, Vectors, take
from jaxsim.sparse.precision import EVALUATION

Counts = tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]


@dataclass(frozen=True, eq=False)
class Task:
    """Counts of mates by split, over one vocabulary of both sides.

    Attributes:
      counts: split name -> ``(left, right)`` CSR counts ``[m, num_terms]``, row i of one the mate of row i of the
        other.
      sources: split name -> ``[m]`` names of the source of each pair.
      vocabulary: terms and document frequencies of the training part of both sides.
      groups: how many groups of near-duplicates there are and how large, for the record.
      group_ids: split name -> ``[m]`` numbers; pairs of one number are near-duplicates, as `s2net.fit` takes them.
      rows: split name -> ``[m]`` rows of the pairs that were read, for whoever needs their texts.
    """

    counts: dict[str, Counts]
    sources: dict[str, np.ndarray]
    vocabulary: text.Vocabulary
    groups: dict
    group_ids: dict[str, np.ndarray] = field(default_factory=dict)
    rows: dict[str, np.ndarray] = field(default_factory=dict)

    __repr__ = checks.brief

    def weighted(self, split: str, *, unit_length: bool = True) -> tuple[Terms, Terms]:
        """Both sides' ``log2(tf + 1) · log2(n / df)`` vectors (002 Eq. 8).

        Args:
          split: name of the split.
          unit_length: whether every document is scaled to length one. No cosine changes, but the closed forms and the
            optimiser then see documents of equal weight.

        Returns:
          ``(left, right)``.
        """
        sides = []
        for counts in self.counts[split]:
            matrix = text.log_tf_idf(counts, self.vocabulary.df, self.vocabulary.num_docs)
            sides.append(unit_terms(matrix) if unit_length else sparse.from_scipy(matrix))
        return sides[0], sides[1]


class Texts(NamedTuple):
    """Pairs as words, and which of them must stay together.

    Attributes:
      pairs: the pairs.
      left: word lists of the left texts.
      right: word lists of the right texts.
      twins: ``[n, 2]`` group numbers of near-duplicates among the left and among the right texts.
      groups: ``[n]`` group numbers of pairs that are near-duplicates on either side.
      keep: ``[n]`` booleans; False for a pair equal to one that is kept.
    """

    pairs: Pairs
    left: list[list[str]]
    right: list[list[str]]
    twins: np.ndarray
    groups: np.ndarray
    keep: np.ndarray

    def words(self, rows: np.ndarray) -> tuple[list[list[str]], list[list[str]]]:
        """Word lists of some pairs, left and right."""
        return [self.left[i] for i in rows], [self.right[i] for i in rows]


def read(pairs: Pairs) -> Texts:
    """Cuts the texts of pairs into words and finds near-duplicates.

    Args:
      pairs: at least one.

    Returns:
      `Texts`.

    Raises:
      ValueError: for no pairs.
    """
    checks.expect(len(pairs) > 0, "pairs", "at least one pair", "none")
    sides = tokenize(pairs)
    twins = [splits.group_near_duplicates(side) for side in sides]
    keep = splits.first_of_equals(*sides, pairs.ids)
    return Texts(pairs, *sides, np.stack(twins, axis=1), splits.merge(*twins), keep)


def once(pairs: Pairs) -> Pairs:
    """The pairs without those that have the words of an earlier one, on both sides.

    A copy of the right text would tie with it, and a tie is an error. Texts without words are equal to no other.

    Args:
      pairs: any number.

    Returns:
      ``pairs`` itself where no two are equal.

    Example:
      >>> from jaxsim.data import pairs
      >>> made = pairs.make("p", ["1", "2", "3"], ["a b", "A b", "c"], ["x", "x", "y"], languages=("en", "en"))
      >>> once(made).ids
      ('1', '3')
    """
    sides = tokenize(pairs)
    keep = splits.first_of_equals(*sides, [f"{row:020}" for row in range(len(pairs))])
    keep |= np.array([not (left and right) for left, right in zip(*sides, strict=True)], bool)
    return pairs if keep.all() else pairs.take(np.flatnonzero(keep))


def own_rivals(pairs: Pairs) -> int:
    """How many pairs have a text that is on the other side too, in another pair.

    Such a text is nearest to itself, so that its mate is not found: articles that link to each other are such pairs.
    Empty texts are near to nothing.

    Args:
      pairs: any number.

    Returns:
      The number of pairs.

    Example:
      >>> from jaxsim.data import pairs
      >>> made = pairs.make("p", ["1", "2", "3"], ["a", "b", "c"], ["b", "a", "c"], languages=("en", "en"))
      >>> own_rivals(made)
      2
    """
    sides = set(pairs.left), set(pairs.right)
    return sum(left != right and bool(left and left in sides[1] or right and right in sides[0])
               for left, right in zip(pairs.left, pairs.right, strict=True))


def split(texts: Texts, *, shares=(0.6, 0.2, 0.2), salt: str = "", naive: bool = False) -> dict[str, np.ndarray]:
    """Divides pairs into training, dev and test; near-duplicates go together, and equal pairs count once.

    Args:
      texts: from `read`.
      shares: of train, dev and test.
      salt: another salt deals groups anew.
      naive: whether to split pairs one by one, as if there were no near-duplicates (to show what that hides).

    Returns:
      Split name -> rows, ascending.

    Raises:
      ValueError: as `splits.split`.
    """
    groups = np.arange(len(texts.pairs)) if naive else texts.groups
    return splits.split(groups, texts.pairs.ids, shares=shares, salt=salt, keep=texts.keep)


def vocabulary_of(
    documents: Sequence[Sequence[str]], *, drop_top: int = 50, max_terms: int = 20_000, min_df: int = 1
) -> text.Vocabulary:
    """The terms of training texts, at least one.

    Args:
      documents: word lists of both sides.
      drop_top: most frequent terms dropped (002 §3.2).
      max_terms: next most frequent terms kept.
      min_df: documents a term must occur in.

    Returns:
      Terms and document frequencies.

    Raises:
      ValueError: if no term is left, naming the settings that leave terms out.
    """
    vocabulary = text.Vocabulary.build(documents, drop_top=drop_top, max_terms=max_terms, min_df=min_df)
    limits = {"min_df": f" in {min_df} texts or more"} if min_df > 1 else {}
    limits |= {"drop_top": f" beside the {drop_top} most frequent"} if drop_top else {}
    checks.expect(len(vocabulary) > 0, ", ".join(["pairs", *limits]), f"texts with words{''.join(limits.values())}",
                  "an empty vocabulary")
    return vocabulary


def unit_terms(weighted: scipy.sparse.csr_matrix) -> Terms:
    """Weighted texts at unit length, so that closed forms and optimisers see texts of equal weight.

    Args:
      weighted: ``[n, num_terms]``.

    Returns:
      `Terms` of ``n`` documents; empty ones stay empty.
    """
    return sparse.from_scipy(text.unit_rows(weighted))


def build(
    tokens: Mapping[str, tuple[list, list]], sources: Mapping[str, np.ndarray], groups: dict, **vocabulary
) -> Task:
    """Counts over one vocabulary of the training part of both sides.

    Args:
      tokens: split name -> token lists of both sides; ``train`` must be there.
      sources: split name -> ``[m]`` source names.
      groups: for the record.
      **vocabulary: settings of `vocabulary_of`.

    Returns:
      `Task`.

    Raises:
      ValueError: if there is no training part, or its vocabulary is empty.
    """
    checks.expect("train" in tokens and len(tokens["train"][0]) > 0, "tokens", "a training part with documents",
                  "none")
    left, right = tokens["train"]
    terms = vocabulary_of([*left, *right], **vocabulary)
    counts = {name: tuple(text.counts(side, terms) for side in sides) for name, sides in tokens.items()}
    return Task(counts, dict(sources), terms, groups)


def from_pairs(
    pairs: Pairs,
    *,
    shares=(0.6, 0.2, 0.2),
    salt: str = "",
    naive: bool = False,
    rows: Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]] | None = None,
    **vocabulary,
) -> Task:
    """Reads and splits pairs and counts their words.

    Args:
      pairs: the corpus.
      shares: as for `split`.
      salt: as for `split`.
      naive: as for `split`.
      rows: function of ``(groups, keep)`` giving the rows of each split, in place of ``shares``.
      **vocabulary: settings of `vocabulary_of`.

    Returns:
      `Task`.

    Raises:
      ValueError: as `build`.
    """
    texts = read(pairs)
    chosen = rows(texts.groups, texts.keep) if rows else split(texts, shares=shares, salt=salt, naive=naive)
    return of_texts(texts, chosen, **vocabulary)


def of_texts(texts: Texts, rows: Mapping[str, np.ndarray], **vocabulary) -> Task:
    """Counts the words of texts that are read and split already; their words may be a part of those that were read.

    Args:
      texts: from `read`, perhaps with other words: ``texts._replace(left=[words[:20] for words in texts.left])``.
        Groups stay those of the whole texts.
      rows: split name -> rows, as `split` returns them.
      **vocabulary: settings of `vocabulary_of`.

    Returns:
      `Task`.

    Raises:
      ValueError: as `build`.
    """
    sizes = np.bincount(texts.groups)
    summary = {"groups": int(sizes.size), "largest": int(sizes.max()), "exact_duplicates": int((~texts.keep).sum()),
               "share_with_twin": round(float((sizes[texts.groups] > 1).mean()), 4)}
    sources = np.asarray(texts.pairs.sources)
    task = build({name: texts.words(where) for name, where in rows.items()},
                 {name: sources[where] for name, where in rows.items()}, summary, **vocabulary)
    return replace(task, group_ids={name: texts.groups[where] for name, where in rows.items()}, rows=dict(rows))


def encode(params, sides: tuple[Terms, Terms], *, activation: Callable | None = None) -> tuple[Vectors, Vectors]:
    """Encodes both sides by one projection, or each by its own.

    Args:
      params: `Projection`, or a pair of them.
      sides: documents of both sides.
      activation: as for `projections.encode`.

    Returns:
      ``(left, right)``.
    """
    both = (params, params) if isinstance(params, Projection) else params
    with jax.default_matmul_precision(EVALUATION):
        left, right = (projections.encode(p, s, activation=activation) for p, s in zip(both, sides, strict=True))
    return left, right


def per_query(
    left: Vectors, right: Vectors, *, similarity: Callable = retrieval.cosine
) -> dict[str, np.ndarray]:
    """Scores of every query of both directions, ties as errors (002 §3.2).

    Args:
      left: documents of one side.
      right: their mates.
      similarity: `retrieval.cosine`, `dot`, `l1` or `jensen_shannon`.

    Returns:
      ``accuracy`` and ``mrr``, each ``[2 m]``: left to right, then right to left.
    """
    ranks = np.concatenate(retrieval.mate_ranks(left, right, similarity=similarity))
    return {"accuracy": (ranks == 1).astype(np.float64), "mrr": 1.0 / ranks}


def scores(left: Vectors, right: Vectors, *, similarity: Callable = retrieval.cosine) -> dict[str, float]:
    """Means of `per_query`: top-1 accuracy and mean reciprocal rank, both directions averaged.

    Args:
      left: documents of one side.
      right: their mates.
      similarity: as for `per_query`.

    Returns:
      ``{"accuracy": …, "mrr": …}``.
    """
    return {name: float(values.mean()) for name, values in per_query(left, right, similarity=similarity).items()}


class Answers(NamedTuple):
    """Which right texts belong to which left text, equal texts counted once.

    Attributes:
      queries: ``[q]`` first row of each left text.
      documents: ``[d]`` first row of each right text.
      right: ``[q, d]`` CSR booleans.
    """

    queries: np.ndarray
    documents: np.ndarray
    right: scipy.sparse.csr_matrix

    @property
    def several(self) -> int:
        """How many left texts have two right ones or more."""
        return int(np.count_nonzero(np.diff(self.right.indptr) > 1))

    @property
    def shared(self) -> int:
        """How often a loss that compares pairs takes a right text of a left one as its negative.

        Of the pairs (a, x), (a, y) and (b, x), the last two share no text, but x belongs to a.
        """
        left, right = (np.bincount(numbers)[numbers] - 1.0 for numbers in self.right.nonzero())
        return int(np.dot(left, right))


def answers(left: Sequence[Hashable], right: Sequence[Hashable], belong: np.ndarray | None = None) -> Answers:
    """The right answers of every left text.

    Args:
      left: ``n`` texts, or lists of words as tuples.
      right: their mates. A pair may occur twice, and counts once.
      belong: ``[n]`` booleans, False for pairs whose texts do not belong together: of these the right text is a wrong
        answer, unless another pair has both. All belong together unless given.

    Returns:
      `Answers`, of the left texts that have a right answer.

    Example:
      >>> found = answers(["a", "b", "a", "a"], ["x", "x", "y", "x"])
      >>> found.queries.tolist(), found.documents.tolist(), found.right.astype(int).toarray().tolist()
      ([0, 1], [0, 2], [[1, 1], [1, 0]])
      >>> found.several, found.shared
      (1, 1)
      >>> answers(["a", "b", "a"], ["x", "x", "y"], np.array([True, False, False])).right.astype(int).toarray().tolist()
      [[1, 0]]
    """
    places = []
    for side in (left, right):
        numbers: dict = {}
        of_row = np.array([numbers.setdefault(text, len(numbers)) for text in side], np.int64)
        places.append((np.unique(of_row, return_index=True)[1], of_row))
    (queries, rows), (documents, columns) = places
    some = slice(None) if belong is None else np.flatnonzero(belong)
    rows, columns = rows[some], columns[some]
    result = scipy.sparse.csr_matrix((np.ones(len(rows), bool), (rows, columns)), (len(queries), len(documents)))
    if belong is not None:
        answered = np.diff(result.indptr) > 0
        queries, result = queries[answered], result[answered]
    return Answers(queries, documents, result)


def per_left(
    left: Vectors, right: Vectors, found: Answers, *, similarity: Callable = retrieval.cosine, block: int = 256
) -> dict[str, np.ndarray]:
    """Scores of left texts with any number of right ones, ties as errors.

    Args:
      left: vectors of ``n`` left texts.
      right: of their mates.
      found: what belongs together, from the same texts.
      similarity: as for `per_query`.
      block: left texts at a time.

    Returns:
      ``mrr_any``, 1 / the rank of the first right text that belongs to a left one, and ``map``, its average precision
      (`metrics.average_precision`), each ``[q]``. With one right text each, they are the same.

    Example:
      >>> side = Vectors(np.eye(2)[[0, 0, 1]])
      >>> values = per_left(side, Vectors(np.eye(2)[[0, 1, 1]]), answers("aab", "xyz"))
      >>> values["mrr_any"].tolist(), values["map"].round(3).tolist()
      ([1.0, 0.5], [0.833, 0.5])
    """
    scorer = similarity(take(left, found.queries), take(right, found.documents))
    values: dict[str, list] = {"mrr_any": [], "map": []}
    for start in range(0, len(found.queries), block):
        rows = np.arange(start, min(start + block, len(found.queries)))
        for name, part in answered(np.asarray(scorer(rows)), found.right[rows].toarray()).items():
            values[name].append(part)
    return {name: np.concatenate(parts) for name, parts in values.items()}


def answered(scores: np.ndarray, belong: np.ndarray) -> dict[str, np.ndarray]:
    """How well scores put the right answers first, ties as errors.

    Args:
      scores: ``[q, d]``; minus infinity for what is left out.
      belong: ``[q, d]`` booleans, at least one in a row: the right answers.

    Returns:
      ``mrr_any`` and ``map``, each ``[q]``; see `per_left`.

    Example:
      >>> values = answered(np.array([[0.9, 0.9, 0.1]]), np.array([[True, False, True]]))
      >>> {name: column.round(3).tolist() for name, column in values.items()}
      {'mrr_any': [0.5], 'map': [0.583]}
    """
    values = np.zeros((2, len(scores)))
    for row, (given, right) in enumerate(zip(scores, belong, strict=True)):
        found, wrong = np.sort(given[right])[::-1], np.sort(given[~right])
        ahead = len(wrong) - np.searchsorted(wrong, found)  # those that tie among them
        place = np.arange(1, len(found) + 1)  # of the right ones alone; all wrong ones that tie come before
        values[:, row] = 1 / (1 + ahead[0]), np.mean(place / (place + ahead))
    return dict(zip(("mrr_any", "map"), values, strict=True))


def by_source(
    left: Vectors, right: Vectors, sources: np.ndarray, *, similarity: Callable = retrieval.cosine
) -> dict[str, dict[str, float]]:
    """Scores inside each source: only documents of the same source compete.

    Args:
      left: documents of one side.
      right: their mates.
      sources: ``[m]`` names.
      similarity: as for `per_query`.

    Returns:
      source -> `scores`, for sources of at least two pairs, sorted by name.
    """
    result = {}
    for source in sorted(set(sources.tolist())):
        rows = np.flatnonzero(sources == source)
        if rows.size > 1:
            result[source] = scores(take(left, rows), take(right, rows), similarity=similarity)
    return result


def mrr(left: Vectors, right: Vectors, *, similarity: Callable = retrieval.cosine) -> float:
    """How well mates find each other: the mean reciprocal rank of `scores`.

    Args:
      left: documents of one side.
      right: their mates.
      similarity: as for `scores`.

    Returns:
      A number in [0, 1].

    Example:
      >>> mrr(Vectors(np.eye(2)), Vectors(np.eye(2)))
      1.0
    """
    return scores(left, right, similarity=similarity)["mrr"]


def validator(
    sides: tuple[Terms, Terms], *, activation: Callable | None = None, score: Callable = mrr
) -> Callable[[object], float]:
    """The validation score of early stopping: mean reciprocal rank of a projection on held-out mates.

    Args:
      sides: held-out documents of both sides, `Terms` or `Filled`.
      activation: as for `projections.encode`.
      score: function of the `Vectors` of both sides, where it is another.

    Returns:
      Function of params.

    Raises:
      ValueError: for another number of sides, or plain arrays.
    """
    checks.expect(len(sides) == 2, "sides", "two, of as many documents", len(sides))
    for i, side in enumerate(sides):
        plain = isinstance(side, np.ndarray | jax.Array)
        checks.expect(not plain, f"sides[{i}]", "documents (Terms), or Filled of an array", checks.a_kind(side))
    held = sparse.held(*sides)
    return lambda params: score(*encode(params, held, activation=activation))
