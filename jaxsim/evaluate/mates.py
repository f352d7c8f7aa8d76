"""Mate retrieval, from texts to scores, for the demo and the experiments on document pairs.

A corpus of pairs is tokenised, split so that near-duplicates stay together, and weighted by statistics of its training
part. Every document of one side is then a query against all documents of the other; its mate is the only right answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

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
    """

    counts: dict[str, Counts]
    sources: dict[str, np.ndarray]
    vocabulary: text.Vocabulary
    groups: dict
    group_ids: dict[str, np.ndarray] = field(default_factory=dict)

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
            sides.append(sparse.from_scipy(text.unit_rows(matrix) if unit_length else matrix))
        return sides[0], sides[1]


def build(
    tokens: Mapping[str, tuple[list, list]],
    sources: Mapping[str, np.ndarray],
    groups: dict,
    *,
    drop_top: int = 50,
    max_terms: int = 20_000,
    min_df: int = 1,
) -> Task:
    """Counts over one vocabulary of the training part of both sides.

    Args:
      tokens: split name -> token lists of both sides; ``train`` must be there.
      sources: split name -> ``[m]`` source names.
      groups: for the record.
      drop_top: most frequent terms dropped (002 §3.2).
      max_terms: next most frequent terms kept.
      min_df: documents a term must occur in.

    Returns:
      `Task`.

    Raises:
      ValueError: if there is no training part, or its vocabulary is empty.
    """
    checks.expect("train" in tokens and len(tokens["train"][0]) > 0, "tokens", "a training part with documents",
                  "none")
    left, right = tokens["train"]
    vocabulary = text.Vocabulary.build([*left, *right], drop_top=drop_top, max_terms=max_terms, min_df=min_df)
    checks.expect(len(vocabulary) > 0, "tokens", f"more than {drop_top} distinct terms (the most frequent are dropped)",
                  "an empty vocabulary")
    counts = {name: tuple(text.counts(side, vocabulary) for side in sides) for name, sides in tokens.items()}
    return Task(counts, dict(sources), vocabulary, groups)


def from_pairs(
    pairs: Pairs,
    *,
    shares=(0.6, 0.2, 0.2),
    salt: str = "",
    naive: bool = False,
    rows: Callable[[np.ndarray, np.ndarray], dict[str, np.ndarray]] | None = None,
    **vocabulary,
) -> Task:
    """Tokenises pairs and splits them without letting near-duplicates cross.

    Args:
      pairs: the corpus.
      shares: of train, dev and test.
      salt: changes which groups go to which part.
      naive: whether to split pairs without regard to near-duplicates (to show how much that raises the scores).
      rows: function of ``(groups, keep)`` giving the rows of each split, in place of ``shares``.
      **vocabulary: settings of `build`.

    Returns:
      `Task`.

    Raises:
      ValueError: as `build`.
    """
    checks.expect(len(pairs) > 0, "pairs", "at least one pair", "none")
    left, right = tokenize(pairs)
    groups = splits.group_near_duplicates(left, right)
    keep = splits.first_of_equals(left, right, pairs.ids)
    sizes = np.bincount(groups)
    told = {"groups": int(sizes.size), "largest": int(sizes.max()), "exact_duplicates": int((~keep).sum()),
            "share_with_twin": round(float((sizes[groups] > 1).mean()), 4)}
    if rows is not None:
        chosen = rows(groups, keep)
    else:
        units = np.arange(len(pairs)) if naive else groups
        chosen = splits.split(units, pairs.ids, shares=shares, salt=salt, keep=keep)
    sources = np.asarray(pairs.sources)
    task = build(
        {name: ([left[i] for i in where], [right[i] for i in where]) for name, where in chosen.items()},
        {name: sources[where] for name, where in chosen.items()},
        told, **vocabulary,
    )
    return replace(task, group_ids={name: groups[where] for name, where in chosen.items()})


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
      similarity: `retrieval.cosine` or `retrieval.dot`.

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


def by_source(left: Vectors, right: Vectors, sources: np.ndarray) -> dict[str, dict[str, float]]:
    """Scores inside each source: only documents of the same source compete.

    Args:
      left: documents of one side.
      right: their mates.
      sources: ``[m]`` names.

    Returns:
      source -> `scores`, for sources of at least two pairs, sorted by name.
    """
    found = {}
    for source in sorted(set(sources.tolist())):
        rows = np.flatnonzero(sources == source)
        if rows.size > 1:
            found[source] = scores(take(left, rows), take(right, rows))
    return found


def validator(sides: tuple[Terms, Terms], *, activation: Callable | None = None) -> Callable[[object], float]:
    """The validation score of early stopping: mean reciprocal rank of a projection on held-out mates.

    Args:
      sides: held-out documents of both sides.
      activation: as for `projections.encode`.

    Returns:
      Function of params.
    """
    return lambda params: scores(*encode(params, sides, activation=activation))["mrr"]
