"""Settings chosen by held-out pairs before a training: what ``jaxsim train --tune`` does."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from jaxsim import checks
from jaxsim.data.pairs import Pairs
from jaxsim.train import held_out, training
from jaxsim.train.held_out import Dev
from jaxsim.train.settings import S2NET, TUNED, Settings, check

CHOICES: dict[str, tuple] = {"min_df": (1,), "subwords": (0.5, 0.75)}
"""Setting -> values that are tried beside the one that is given; settings one after the other, in this order."""
MOST_PAIRS = 8_000
"""Pairs that are trained on to choose, at most: some of more."""
ENOUGH = 100
"""Held-out pairs from which on a choice is worth its decimals."""


def tune(
    pairs: Pairs,
    settings: Settings | None = None,
    *,
    dev: Dev = 0.1,
    names: Sequence[str] = tuple(CHOICES),
    unpaired: Sequence[str] = (),
    say: Callable[[str], None] = lambda message: None,
) -> tuple[Settings, list[dict[str, Any]]]:
    """Chooses settings by how well held-out pairs find each other (mean reciprocal rank, both ways).

    Every candidate is a whole training in closed form: of the method itself, and for S2Net of OPCA, which is its start.
    Nothing is distilled to choose. A better setting is kept while the next is chosen. The score of the chosen ones is a
    little too good for new pairs, as of whatever is chosen: measure on pairs that took no part.

    Args:
      pairs: as for `training.train`; of more than `MOST_PAIRS` training pairs, as many of them, at random by the seed.
      settings: those that are kept, and where it begins; `Settings()` unless given.
      dev: share of the pairs to choose by, near-duplicates kept together; or pairs of your own. Or a list of these, a
        set each, with one share at most: the mean of their scores chooses.
      names: what to choose, of `CHOICES`. ``subwords`` is left as it is where ``drop_top`` is above 0, and ``min_df``
        where there are fewer than `training.RARE_COUNT` training pairs.
      unpaired: more texts of the pairs' language, as for `training.train`.
      say: told the score of each candidate.

    Returns:
      ``(settings, tried)``: the best, the first of equals; and for every candidate the tuned settings with its
      ``"mrr"``. Where no pairs can be held out, or nothing is left to choose, the settings as they were, and nothing
      tried.

    Raises:
      ValueError: for a method or a name that is not tuned, no name, no pairs to choose by, another kind of argument, or
        as `training.train`.

    Example:
      >>> from jaxsim.data import docstrings
      >>> few = docstrings.load().take(range(300))
      >>> found, tried = tune(few, Settings(method="opca", dim=20), dev=0.2)
      >>> len(tried), max(tried, key=lambda one: one["mrr"])["subwords"] == found.subwords
      (4, True)
    """
    settings = Settings() if settings is None else settings
    names = _checked_names(pairs, settings, dev, names)
    asked, settings = settings, without_default(settings, names)
    few = some(pairs, settings.seed, dev, say)
    closed = "opca" if settings.method in S2NET else settings.method
    say(f"choosing {' and '.join(names)} by trainings of {closed} …")
    given, tried, tell = settings, [], _of_a_trial(say)

    def score(candidate: Settings) -> dict[str, Any]:
        """A training's dev scores, kept and told, and its pairs."""
        model = training.train(few, replace(candidate, method=closed, distill=0.0), dev=dev, cross_fit=False,
                               unpaired=unpaired, say=tell if candidate is given else _silent)  # once is enough
        result, numbers = model.training["dev"], model.training["pairs"]
        if "min_df" in names and numbers["train"] < training.RARE_COUNT:
            say(f"with fewer than {training.RARE_COUNT} training pairs every word is kept: min_df changes nothing")
            names.remove("min_df")
        if result and names:
            tried.append({**{name: getattr(candidate, name) for name in names}, "mrr": result["mrr"]})
            facts = ", ".join(f"{name} {tried[-1][name]}" for name in names)
            say(f"{facts}: mrr {result['mrr']:.4f} of held-out pairs, by {closed}")
        return {**result, **numbers}

    first = score(settings)
    if "mrr" not in first:
        say("no setting is chosen: no pairs are held out to choose by")
        return asked, []
    top = first["mrr"]
    for name in names:
        begin = settings
        for value in CHOICES[name]:
            if value == getattr(begin, name):
                continue
            candidate = replace(begin, **{name: value})
            result = score(candidate)["mrr"]
            if result > top:
                settings, top = candidate, result
    if names and first["dev"] < ENOUGH:
        say(f"{checks.counted(first['dev'], 'held-out pair')} made this choice: small differences are chance")
    return settings, tried


def _of_a_trial(say: Callable[[str], None]) -> Callable[[str], None]:
    """What is told of a trial: not how its dimensions are weighed, which is not so of the training that follows."""
    return lambda message: None if message.startswith(training.EQUALLY) else say(message)


def _silent(message: str) -> None:
    """Says nothing."""


def _checked_names(pairs: Pairs, settings: Settings, dev: Dev, names: Sequence[str]) -> list[str]:
    """The settings to choose, in the order of `CHOICES`; refuses arguments of which none can be chosen."""
    for argument, name, kind in ((pairs, "pairs", Pairs), (settings, "settings", Settings)):
        checks.kind(argument, name, kind)
    check(settings)
    names = (names,) if isinstance(names, str) else names
    checks.expect(settings.method in TUNED, "method", f"one of {', '.join(TUNED)}, to tune", settings.method)
    for name in names:
        checks.expect(name in CHOICES, "names", f"some of {', '.join(CHOICES)}", name)
    checks.expect(held_out.listed(dev) != [0], "dev", "pairs to choose by, or a share above 0 and below 1", dev)
    wanted = [name for name in CHOICES if name in names and not (name == "subwords" and settings.drop_top)]
    checks.expect(len(wanted) > 0, "names", f"some of {', '.join(CHOICES)} (no subwords with drop_top)", "none left")
    return wanted


def without_default(settings: Settings, names: Sequence[str]) -> Settings:
    """Settings to begin with: without n-grams, where it is to be chosen whether there are any.

    Args:
      settings: as they are given.
      names: what is to be chosen.

    Returns:
      The same, but for ``subwords``.
    """
    return replace(settings, subwords=0.0) if "subwords" in names and settings.subwords is None else settings


def some(pairs: Pairs, seed: int, dev: Dev, say: Callable[[str], None]) -> Pairs:
    """As many pairs as leave `MOST_PAIRS` to train on, in their order.

    Args:
      pairs: all.
      seed: of the draw.
      dev: share of the pairs that is held out, held-out pairs, or several sets.
      say: told where some are left out.

    Returns:
      Pairs, all of them where there are no more.
    """
    most = int(np.ceil(MOST_PAIRS / (1 - held_out.share(dev))))
    if len(pairs) <= most:
        return pairs
    say(f"settings are chosen on {most:,} of {len(pairs):,} pairs")
    return pairs.take(np.sort(np.asarray(jax.random.permutation(jax.random.key(seed), len(pairs)))[:most]))
