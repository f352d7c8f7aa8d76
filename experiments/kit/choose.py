"""The choice of settings on development data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Choice", "at_edge", "choose", "climb", "up_to_rank"]


_LAST = {"min_df": 1, "terms": 1.0, "b": 1.0}
"""Settings -> the value past which there is none."""


class Choice(NamedTuple):
    """What development data chose.

    Attributes:
      best: The option with the best score.
      score: Its score.
      tried: One dict an option, in their order: its settings, its score, and what `choose` was given in ``said``.
      at_edge: Settings whose best value is the smallest or the largest that was tried, as `at_edge` says.
    """

    best: dict[str, Any]
    score: float
    tried: list[dict[str, Any]]
    at_edge: tuple[str, ...]


def choose(
    options: Iterable[Mapping[str, Any]],
    score: Callable[..., float | Mapping[str, float] | None],
    *,
    by: str,
    lowest: bool = False,
    **said: Any,
) -> Choice:
    """Scores every option of a grid on development data and returns the best one together with all scores.

    Args:
      options: The grid, one mapping of settings an option.
      score: Function of an option's settings (as keywords): a number, or several by name of which ``by`` decides. None
        and NaN are never best; a fit that diverged has such a score.
      by: What the score is called in ``tried``.
      lowest: Whether the lowest score is best, as for a loss.
      **said: More for every entry of ``tried``, such as ``split="dev"``.

    Returns:
      `Choice`; of equal scores the first is best.

    Raises:
      ValueError: there is no option, or none has a score.

    Example:
      >>> choice = choose([{"k": 1}, {"k": 2}, {"k": 3}], lambda k: -abs(k - 2.0), by="mrr")
      >>> choice.best, choice.at_edge
      ({'k': 2}, ())
    """
    options = [dict(option) for option in options]
    tried = []
    for option in options:
        value = score(**option)
        tried.append({**option, **(value if isinstance(value, Mapping) else {by: value}), **said})
    scored = [(entry, option) for entry, option in zip(tried, options, strict=True) if _number(entry[by])]
    if not scored:
        raise ValueError(f"options: expected at least one with a score, got {len(tried)} options without")
    entry, best = (min if lowest else max)(scored, key=lambda pair: pair[0][by])
    return Choice(best, entry[by], tried, at_edge(tried, best))


def climb(
    ladders: Mapping[str, Sequence[float]],
    score: Callable[..., float | Mapping[str, float] | None],
    *,
    by: str,
    beyond: int = 3,
    start: Mapping[str, Any] | None = None,
    **said: Any,
) -> Choice:
    """Settings that are better than their neighbours, found one step at a time from the middle of every ladder.

    Each setting in turn moves up, and then down, as long as that is better, the others being as they are, until no step
    of any setting is better. A ladder goes on past its ends, by the ratio of its last two values, but not below 0
    nor from 0. A full grid of two settings costs many more fits, and its best value may be at an end.

    Args:
      ladders: Setting -> its values, in rising order, from 0; one value alone stays as it is, and may be anything.
      score: As for `choose`; every option is scored once.
      by: As for `choose`.
      beyond: Values past each end of a ladder, at most.
      start: Where to begin instead, for the settings that it names; values of their ladders.
      **said: As for `choose`.

    Returns:
      `Choice` of the last option and all that were scored, in order; of equal scores the earlier option is best.

    Raises:
      ValueError: neither the first option nor a neighbour of it has a score.

    Example:
      >>> choice = climb({"b": (1.0, 10.0), "rate": (0.1, 0.3)}, lambda b, rate: -abs(b - 100) - rate, by="map")
      >>> choice.best, choice.at_edge, len(choice.tried)
      ({'b': 100.0, 'rate': 0.003}, ('rate',), 10)
    """
    longer = {name: _longer(ladder, beyond) for name, ladder in ladders.items()}
    start = {name: ladder[len(ladder) // 2] for name, ladder in ladders.items()} | dict(start or {})
    places = {name: longer[name].index(start[name]) for name in ladders}
    scored: dict[tuple[int, ...], tuple[float, dict, dict]] = {}

    def value(places: Mapping[str, int]) -> float:
        at = tuple(places.values())
        if at not in scored:
            option = {name: longer[name][place] for name, place in places.items()}
            scores = score(**option)
            entry = {**option, **(scores if isinstance(scores, Mapping) else {by: scores}), **said}
            scored[at] = entry[by] if _number(entry[by]) else -math.inf, option, entry
        return scored[at][0]

    moved = True
    while moved:
        moved = False
        for name, ladder in longer.items():
            for step in (1, -1):
                while 0 <= places[name] + step < len(ladder) and value(
                    next_places := {**places, name: places[name] + step}
                ) > value(places):
                    places, moved = next_places, True
    best = value(places)
    if best == -math.inf:
        raise ValueError(f"ladders: expected an option with a score, got {len(scored)} options without")
    tried = [entry for _, _, entry in scored.values()]
    option = scored[tuple(places.values())][1]
    return Choice(option, best, tried, at_edge(tried, option))


def _longer(ladder: Sequence[float], beyond: int) -> list[float]:
    """A ladder with ``beyond`` values more at each end, of one significant digit; none below 0."""
    values = list(ladder)
    for _ in range(beyond if len(values) > 1 else 0):
        lower = [float(f"{values[0] ** 2 / values[1]:.1g}")] if values[0] > 0 else []
        upper = [float(f"{values[-1] ** 2 / values[-2]:.1g}")] if values[-2] != 0 else []  # no ratio to 0
        values = [*lower, *values, *upper]
    return values


def at_edge(tried: Iterable[Mapping[str, Any]], best: Mapping[str, Any]) -> tuple[str, ...]:
    """Numeric settings whose best value is the smallest or the largest that was tried, the other settings being equal.

    A smallest value of 0 is no edge: no weight, share or number is below it, so no grid is wider; nor is a `min_df` of
    1, with which every word counts, the whole of a share of `terms`, or a `b` of 1, BM25's for whole lengths; nor a `k`
    that an entry calls the ``rank`` (`up_to_rank`).

    Args:
      tried: The entries of a grid, or the points of a sweep.
      best: The settings that were chosen; those that no entry has are passed over. An entry that lacks one, as where
        settings were chosen one after another, is compared by the others.

    Returns:
      Names of settings; a setting that was tried at one value alone is not among them.

    Example:
      >>> at_edge([{"k": 1, "auc": 0.5}, {"k": 2, "auc": 0.6}], {"k": 2})
      ('k',)
      >>> at_edge([{"share": 0.0, "auc": 0.6}, {"share": 0.1, "auc": 0.5}], {"share": 0.0})
      ()
      >>> at_edge([{"k": 1, "auc": 0.5, "rank": 2}, {"k": 2, "auc": 0.6, "rank": 2}], {"k": 2})
      ()
    """
    tried = list(tried)
    ranks = [entry["rank"] for entry in tried if "rank" in entry]
    last = _LAST | ({"k": ranks[0]} if ranks else {})
    names = [name for name in best if any(name in entry for entry in tried)]
    edges = []
    for name in names:
        others = [other for other in names if other != name]
        values = {entry[name] for entry in tried
                  if name in entry
                  and all(entry.get(other, best[other]) == best[other] for other in others)}  # fmt: skip
        numbers = [value for value in values if _number(value)]
        if len(numbers) > 1 and best[name] != last.get(name) and (
                best[name] == max(numbers) or best[name] == min(numbers) != 0):  # fmt: skip
            edges.append(name)
    return tuple(edges)


def up_to_rank(ks: Iterable[int], rank: int) -> list[int]:
    """The dimensions of a grid that some data are large enough for.

    Args:
      ks: Dimensions.
      rank: The most dimensions that the data have. Where the choice says so (``choose(..., rank=rank)``), it is no edge
        of the grid.

    Returns:
      Those below the rank, in rising order, and the rank itself where one of them reaches it.

    Example:
      >>> up_to_rank((100, 300, 1000), 400)
      [100, 300, 400]
    """
    return sorted({min(k, rank) for k in ks})


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
