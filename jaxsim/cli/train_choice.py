"""``train --tune``: the options that held-out pairs choose, kept beside the checkpoints."""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import typer

from jaxsim import io
from jaxsim.cli import options, train_options
from jaxsim.cli.output import say
from jaxsim.train.settings import TUNED, check, fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from jaxsim.train.judged import Judged

_FILE = "checkpoint.tuned.json"
_ASKED = ("method", "dim", "weighting", "drop_top", "max_terms", "noise", "start", "gamma", "seed", "min_df",
          "subwords", "distill")
"""Settings that a choice depends on."""
_ASKED_TOO = ("beta", "blend", "activation", "batch_size", "identity", "learning_rate", "all_negatives")
"""More of them, named where they are not the default: files of earlier versions have none. Not patience nor the largest
number of iterations, with others of which a training may go on."""
_DEFAULTS = {field.name: field.default for field in fields()}
_UNITS = {"": 1, "s": 1, "m": 60, "h": 3600}


class Choice(NamedTuple):
    """What to choose before the training.

    Attributes:
      names: of settings, of `budget.FREE` or of `tuning.CHOICES`; none without ``--tune``.
      seconds: the budget; None for the few trainings of `tuning.tune`.
      judged: queries to choose by, or None.
      grid: settings with the values of a sweep, or None.
      by: what held-out pairs choose by within a budget, of `budget.SCORES`.
      stop_by: queries that also stop the trainings, or None.
    """

    names: list[str]
    seconds: float | None = None
    judged: Judged | None = None
    grid: dict[str, tuple] | None = None
    by: str = "mrr"
    stop_by: Judged | None = None


def seconds(text: str | None, tune: bool) -> float | None:
    """A budget of time.

    Args:
      text: such as ``90``, ``90s``, ``5m`` or ``1.5h``; or None.
      tune: whether ``--tune`` is given.

    Returns:
      Seconds; None for None.

    Raises:
      ValueError: for anything else, or without ``--tune``.

    Example:
      >>> seconds("5m", True), seconds("1.5h", True)
      (300.0, 5400.0)
    """
    from jaxsim import checks

    if text is None:
        return None
    checks.expect(tune, "--budget", "--tune as well", "none")
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([smh]?)", text.strip().lower())
    checks.expect(match is not None and float(match[1]) > 0, "--budget", "a time such as 90s, 5m or 1h", text)
    return float(match[1]) * _UNITS[match[2]]


def names(context: typer.Context, share: float | None, wide: bool) -> list[str]:
    """The settings to choose: those that are not given.

    Args:
      context: of the command.
      share: of the pairs that is held out; None where held-out pairs are given, or judged queries choose.
      wide: whether there is a budget.

    Returns:
      Names of `tuning.CHOICES`, at least one.

    Raises:
      ValueError: where none is left, or no pairs are held out.
    """
    from jaxsim import checks
    from jaxsim.train import budget, tuning

    queries = "or --dev-queries, with --tune" if wide else "with --tune (or --dev-queries, with --budget as well)"
    checks.expect(share != 0, "--dev", f"pairs to choose settings by, {queries}", "0")
    if wide:
        result = [name for name in budget.FREE if not options.given(context, name)
                  and not (name == "subwords" and context.params["drop_top"])]  # fmt: skip
        narrow = [option.opts[0] for option in context.command.params
                  if options.given(context, option.name) and option.name not in ("resume", "stop_by")
                  and not set(budget.METHODS) <= set(train_options.USED_BY.get(option.name, TUNED))]
        if narrow and "method" in result:
            say(f"the method stays {context.params['method']}: not all of them have {', '.join(narrow)}")
            result.remove("method")
        checks.expect(len(result) > 0, "--tune", f"one of {', '.join(budget.FREE)} left to choose", "none left")
        return result
    result = [name for name in tuning.CHOICES if not options.given(context, name)
              and not (name == "subwords" and context.params["drop_top"])]  # fmt: skip
    checks.expect(len(result) > 0, "--tune", "--min-df, or --subwords without --drop-top, left to choose", "none left")
    return result


def swept(pairs, settings, choice: Choice, **options) -> tuple:
    """The best model of a sweep; prints its table.

    Args:
      pairs: `Pairs` to train on.
      settings: `Settings` as they are given.
      choice: with a ``grid``.
      **options: of `training.train`.

    Returns:
      The model; and ``tuned`` and ``tuning_seconds``, as `chosen`.
    """
    from jaxsim.train import budget, grid

    begun = time.perf_counter()
    model, tried = grid.sweep(pairs, choice.grid, settings, judged=choice.judged, say=say, **options)
    for line in budget.table(tried, most=len(tried)):
        say(line)
    return model, {"tuned": tried, "tuning_seconds": round(time.perf_counter() - begun, 1)}


def chosen(checkpoint: Path | None, pairs, settings, dev, choice: Choice, unpaired: Sequence[str] = ()) -> tuple:
    """The settings that held-out pairs choose; where the same was asked before an interruption, those chosen then.

    Args:
      checkpoint: folder of checkpoints, or None.
      pairs: `Pairs` to train on.
      settings: `Settings` as they are given.
      dev: held-out pairs, or their share.
      choice: what to choose, and how.
      unpaired: more texts, as for `training.train`.

    Returns:
      The best settings; and ``tuned`` and ``tuning_seconds``, what was tried and how long it took.

    Raises:
      ValueError: where a choice is kept that was made for something else; or as `tuning.tune`.
    """
    from jaxsim import checks
    from jaxsim.train import budget, held_out, tuning
    from jaxsim.train.resume import kept_choice, kept_start

    names = choice.names
    asked = {name: getattr(settings, name) for name in _ASKED}
    asked |= {"names": names, "pairs": pairs.sha256,
              "dev": [getattr(one, "sha256", one) for one in held_out.listed(dev)]}  # fmt: skip
    asked |= {"seconds": choice.seconds, "judged": None if choice.judged is None else choice.judged.sha256}
    asked |= {"by": choice.by} if choice.by != "mrr" else {}  # as `_ASKED_TOO`
    asked |= {name: getattr(settings, name) for name in _ASKED_TOO if getattr(settings, name) != _DEFAULTS[name]}
    asked |= {} if choice.stop_by is None else {"stop_by": choice.stop_by.sha256}
    asked |= {"texts": hashlib.sha256(json.dumps(list(unpaired)).encode()).hexdigest()} if len(unpaired) else {}
    result = {} if checkpoint is None else _kept(checkpoint)
    if result:
        checks.expect(result["asked"] == asked, str(checkpoint), "settings chosen for these pairs and options",
                      "some that were chosen for others (without --resume they are deleted)")  # fmt: skip
        found = _taken(settings, result, names)
        if found is not None:
            say("taking the settings that were chosen before the interruption")
            return found, result["told"]
    if checkpoint is not None and kept(checkpoint):
        # Another choice would not fit a training that has begun with this one.
        state = kept_choice(checkpoint) is not None or kept_start(checkpoint)
        checks.expect(not state, str(checkpoint / _FILE), "the settings that were chosen",
                      "an altered file, or one of an earlier version (without --resume all is made anew)")  # fmt: skip
        say(f"{checkpoint / _FILE}: altered, or of an earlier version; settings are chosen anew")
    begun = time.perf_counter()
    if choice.seconds is None:
        tuned, tried = tuning.tune(pairs, settings, dev=dev, names=names, unpaired=unpaired, say=say)
    else:
        tuned, tried = budget.search(pairs, settings, seconds=choice.seconds, dev=dev, free=names, say=say,
                                     judged=choice.judged, stop_by=choice.stop_by, by=choice.by,
                                     unpaired=unpaired)  # fmt: skip
        for line in budget.table(tried) if tried else ():
            say(line)
        if tried and choice.judged is None and choice.by == "mrr":
            say("chosen to find the mates of texts; to search, choose with --tune-for search, or by judged queries "
                "(--dev-queries)")
    facts = {"tuned": tried, "tuning_seconds": round(time.perf_counter() - begun, 1)}
    if checkpoint is not None:
        kept_now = {"library": "jaxsim", "format": 1, "asked": asked, "told": facts,
                    "chosen": {name: getattr(tuned, name) for name in names}}  # fmt: skip
        with contextlib.suppress(OSError):  # saves time and nothing else
            io.write_bytes(checkpoint / _FILE, io.sealed(kept_now))
    return tuned, facts


def kept(checkpoint: Path) -> bool:
    """Whether a choice is kept in a folder of checkpoints.

    Args:
      checkpoint: the folder.

    Returns:
      Whether it is there.
    """
    return (checkpoint / _FILE).is_file()


def _kept(checkpoint: Path) -> dict:
    """The choice that is kept; empty where there is none, or it is not as it was written."""
    with contextlib.suppress(OSError, ValueError):
        result = io.unsealed(checkpoint / _FILE, newest=1)
        if {"asked", "chosen", "told", "digest"} <= set(result):
            return result
    return {}


def _taken(settings, kept: dict, names: Sequence[str]):
    """The settings that were chosen; None where they are not such as a choice has, whoever made the digest."""
    chosen, told = kept["chosen"], kept["told"]
    sound = (isinstance(chosen, dict) and set(chosen) == set(names) and isinstance(told, dict)
             and set(told) == {"tuned", "tuning_seconds"} and isinstance(told["tuning_seconds"], int | float)
             and isinstance(told["tuned"], list) and all(isinstance(entry, dict) for entry in told["tuned"]))
    if not sound:
        return None
    try:
        result = replace(settings, **chosen)
        check(result)
    except (ValueError, TypeError):  # such as a list in place of a number
        return None
    return result


def shown(training: dict) -> str:
    """The chosen settings as a command line has them.

    Args:
      training: ``Model.training`` of a tuned model.

    Returns:
      Options, values and the time it took; "nothing" for the options where none was tried.

    Example:
      >>> shown({"tuned": [{"subwords": 0.0, "mrr": 0.5}], "tuning_seconds": 8.1, "settings": {"subwords": 0.5}})
      '--subwords 0.5 (8.1 seconds)'
    """
    settings = training["settings"]
    own = settings.get("method")
    same = [entry for entry in training["tuned"] if entry.get("method", own) == own]
    starts = [{name: entry[name] for name in entry if name != "method"} for entry in training["tuned"]]  # of S2Net
    names = [name for name in (same or starts or [{}])[0] if name in settings]
    options = " ".join(f"--{name.replace('_', '-')} {settings[name]}" for name in names)
    return f"{options or 'nothing'} ({training['tuning_seconds']} seconds)"
