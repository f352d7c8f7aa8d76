"""The choice of settings on development data."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

__all__ = ["Choice", "at_edge", "choose"]


class Choice(NamedTuple):
    """What development data chose.

    Attributes:
      best: The option with the best score.
      score: Its score.
      tried: One dict an option, in their order: its settings, its score, and what `choose` was given in ``said``.
      at_edge: Settings whose best value is the smallest or the largest that was tried.
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


def at_edge(tried: Iterable[Mapping[str, Any]], best: Mapping[str, Any]) -> tuple[str, ...]:
    """Numeric settings whose best value is the smallest or the largest that was tried, the other settings being equal.

    Args:
      tried: The entries of a grid, or the points of a sweep.
      best: The settings that were chosen; those that no entry has are passed over. An entry that lacks one, as where
        settings were chosen one after another, is compared by the others.

    Returns:
      Names of settings; a setting that was tried at one value alone is not among them.

    Example:
      >>> at_edge([{"k": 1, "auc": 0.5}, {"k": 2, "auc": 0.6}], {"k": 2})
      ('k',)
    """
    tried = list(tried)
    names = [name for name in best if any(name in entry for entry in tried)]
    edges = []
    for name in names:
        others = [other for other in names if other != name]
        values = {entry[name] for entry in tried
                  if name in entry
                  and all(entry.get(other, best[other]) == best[other] for other in others)}  # fmt: skip
        numbers = [value for value in values if _number(value)]
        if len(numbers) > 1 and best[name] in (min(numbers), max(numbers)):
            edges.append(name)
    return tuple(edges)


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
