"""What a method is fitted on (`Problem`), and what it returns (`Learned`)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from jaxsim import sparse
from jaxsim.optim import Fit
from jaxsim.sparse import Terms
from jaxsim.train import held_out
from jaxsim.train.settings import Settings

if TYPE_CHECKING:
    from jaxsim.train.judged import Judged


class Searched(NamedTuple):
    """Judged queries that a training stops by.

    Attributes:
      judged: the queries, and how a search is scored.
      sides: weighted vectors of the queries (`Judged.asked`) and of all documents, of unit length.
    """

    judged: Judged
    sides: tuple[Terms, Terms]


def stopped_by(
    make: Callable, dev: tuple[Terms, Terms] | None, sizes: Sequence[int], searched: Searched | None
) -> Callable | None:
    """The score to stop by: of judged queries where there are any, else of the held-out pairs.

    Args:
      make: function of texts, left and right, and of a ``score`` of their `Vectors`, that gives a function of params,
        such as `mates.validator`. Held-out pairs have the score that it has by default.
      dev: held-out texts, left and right, or None.
      sizes: pairs of each held-out set, where they are several.
      searched: judged queries, or None.

    Returns:
      Function of params; None where there is nothing to stop by.
    """
    if searched is not None:
        return make(searched.sides, score=searched.judged.score_vectors)
    return None if dev is None else held_out.averaged(make, dev, sizes)


@dataclass(frozen=True, eq=False)
class Problem:
    """What a method is fitted on.

    Attributes:
      counts: raw counts of the training pairs, left and right, CSR.
      train: their weighted vectors, of unit length.
      groups: ``[m, 2]`` group numbers of near-duplicates among the left and among the right texts.
      validate: score of projections to stop by, or None without anything to stop by.
      k: dimension.
      settings: the rest.
      checkpoint: folder for checkpoints, or None.
      progress: whether to show bars.
      dev: weighted vectors of the held-out pairs, left and right, of unit length; None without any.
      grades: ``[m]`` grades of the training pairs in [0, 1], for methods that learn from grades.
      dev_grades: grades of the held-out pairs.
      slots: weighted training texts of both sides before n-grams are added (`subwords.slots`), at unit length once they
        are; None without n-grams.
      spread: the n-grams that words are made of (`Subwords.spread`); None without n-grams.
      unpaired: weighted vectors of texts without a mate, of unit length; None without any.
      documents: weighted vectors of documents to mine negatives from, of unit length; None without any.
      answers: for each training pair, rows of these documents that are right for its left text.
      negatives: how many are mined for each left text.
      weights: ``[m]``, how often each training pair counts; None: all the same.
      sets: pairs of each held-out set, one after the other in ``dev``, where they are several.
      searched: judged queries to stop by in place of the held-out pairs, or None.
      say: is given progress messages.
      callback: function of the name of what is fitted and of an entry of its history, or None; see `logged`.
    """

    counts: tuple[sp.csr_matrix, sp.csr_matrix]
    train: tuple[Terms, Terms]
    groups: np.ndarray
    validate: Callable | None
    k: int
    settings: Settings
    checkpoint: Any = None
    progress: bool = False
    dev: tuple[Terms, Terms] | None = None
    grades: np.ndarray | None = None
    dev_grades: np.ndarray | None = None
    slots: tuple[sp.csr_matrix, sp.csr_matrix] | None = None
    spread: sp.csr_matrix | None = None
    unpaired: Terms | None = None
    documents: Terms | None = None
    answers: Sequence[Collection[int]] = ()
    negatives: int = 0
    weights: np.ndarray | None = None
    sets: tuple[int, ...] = ()
    searched: Searched | None = None
    say: Callable[[str], None] = lambda message: None
    callback: Callable[[str, dict], None] | None = None

    @functools.cached_property
    def factors(self) -> tuple[tuple[Terms, Terms], Terms | None]:
        """Both sides in words, and the n-grams of each word, whose product is ``train``; without n-grams ``train``."""
        if self.spread is None:
            return self.train, None
        left, right = map(sparse.from_scipy, self.slots)
        return (left, right), sparse.from_scipy(self.spread)

    def stops_by(self, make: Callable) -> Callable | None:
        """The score to stop by.

        Args:
          make: as for `stopped_by`.

        Returns:
          As `stopped_by`.
        """
        return stopped_by(make, self.dev, self.sets, self.searched)

    @property
    def told(self) -> tuple[str, str]:
        """What the score to stop by is called, and what it is a score of."""
        return ("mrr", "held-out pairs") if self.searched is None else (self.searched.judged.metric, "judged queries")

    def logged(self, run: str | None = None) -> Callable[[dict], None] | None:
        """What a fit calls after each step (`optim.Run.callback`).

        Args:
          run: name of the fit; the method's unless given.

        Returns:
          Function of an entry of the history, or None.
        """
        return None if self.callback is None else functools.partial(self.callback, run or self.settings.method)


class Learned(NamedTuple):
    """What a method gives.

    Attributes:
      fit: `Fit` of a projection, of a pair of them, or of a pair of `Bilinear`.
      notes: what it adds to the model's ``training``.
    """

    fit: Fit
    notes: dict[str, Any] = {}
