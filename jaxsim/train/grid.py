"""A sweep over settings: one training for every combination, one table, and the best model."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from jaxsim import checks
from jaxsim.data.pairs import Pairs
from jaxsim.model import Model
from jaxsim.train import held_out, training
from jaxsim.train.held_out import Dev
from jaxsim.train.judged import Judged
from jaxsim.train.settings import STOPPED, Field, Settings, asks, check, fields

MOST = 1_000
"""Combinations of a sweep, at most."""
_WORDS = {"true": True, "yes": True, "false": False, "no": False}


def parsed(texts: Sequence[str]) -> dict[str, tuple]:
    """Values of settings, as they are written on a command line.

    Args:
      texts: words such as ``dim=100,300``, one or several a text.

    Returns:
      Name of a setting -> its values, in the order in which they are given, each once.

    Raises:
      ValueError: naming the word, for another form, an unknown setting, one that is given twice, or a value that is not
        of its kind.

    Example:
      >>> parsed(["dim=100,300 gamma=5,10", "min-df=1"])
      {'dim': (100, 300), 'gamma': (5.0, 10.0), 'min_df': (1,)}
    """
    known = {field.name: field for field in fields()}
    result: dict[str, tuple] = {}
    for word in itertools.chain.from_iterable(text.split() for text in texts):
        name, sign, values = word.partition("=")
        name = name.lstrip("-").replace("-", "_")
        checks.expect(bool(sign) and bool(values), "grid", "words such as dim=100,300", repr(word))
        checks.expect(name in known, "grid", f"a setting of {', '.join(known)}", repr(name))
        checks.expect(name not in result, "grid", "every setting once", f"{name} twice")
        result[name] = tuple(dict.fromkeys(_value(known[name], value) for value in values.split(",")))
    checks.expect(len(result) > 0, "grid", "words such as dim=100,300", "none")
    return result


def _value(field: Field, text: str) -> Any:
    """A value of a setting."""
    try:
        if field.optional and text.lower() == "none":
            return None
        return _WORDS[text.lower()] if field.type is bool else field.type(text)
    except (ValueError, KeyError):
        kind = {int: "whole numbers", float: "numbers", bool: "true or false"}.get(field.type, "names")
        raise ValueError(f"grid: expected {kind} for {field.name}, got {text!r}") from None


def combinations(settings: Settings, values: Mapping[str, Sequence]) -> list[Settings]:
    """All combinations of values, the last setting changing first.

    A setting that a method does not use stays as it was with that method, so that no training is made twice.

    Args:
      settings: the rest.
      values: name of a setting -> values.

    Returns:
      Settings, each once.

    Raises:
      ValueError: for an unknown name, no value, values that `settings.check` refuses, a setting that none of the
        methods uses, or more than `MOST` combinations.

    Example:
      >>> found = combinations(Settings(), {"method": ("lsa", "opca"), "noise": (0.1, 1.0)})
      >>> [(one.method, one.noise) for one in found]
      [('lsa', 0.0001), ('opca', 0.1), ('opca', 1.0)]
    """
    used = {field.name: field.option.methods for field in fields()}
    checks.expect(len(values) > 0, "values", "at least one setting", "none")
    for name, some in values.items():
        checks.expect(name in used, "values", f"settings of {', '.join(used)}", name)
        checks.expect(len(some) > 0, f"values: {name}", "at least one", "none")
    methods = values.get("method", (settings.method,))
    for name in values:
        some = any(method in used[name] for method in methods)
        checks.expect(some, f"values: {name}", f"none, for {', '.join(methods)}", "some")
    number = 1
    for some in values.values():
        number *= len(some)
    checks.expect(number <= MOST, "values", f"at most {MOST:,} combinations", f"{number:,}")
    result = []
    for row in itertools.product(*values.values()):
        given = dict(zip(values, row, strict=True))
        method = given.get("method", settings.method)
        kept = {name: value for name, value in given.items() if name == "method" or method in used[name]}
        one = replace(settings, **kept)
        check(one)
        result.append(one)
    return list(dict.fromkeys(result))


def expect_comparable(values: Mapping[str, Sequence], dev: Dev, judged: bool) -> None:
    """Refuses several seeds where each holds out other pairs.

    Args:
      values: as for `sweep`.
      dev: as for `training.train`.
      judged: whether judged queries choose.

    Raises:
      ValueError: for them.

    Example:
      >>> expect_comparable({"seed": (0, 1)}, 0, True)
      >>> expect_comparable({"seed": (0, 1)}, 0.1, False)
      Traceback (most recent call last):
      ...
      ValueError: values: seed: expected one where a share of the pairs is held out, ..., got 2
    """
    several = len(set(values.get("seed", ())))
    checks.expect(several < 2 or judged or not held_out.share(dev), "values: seed", "one where a share of the pairs is "
                  "held out, since the scores of different pairs cannot be compared (hold out pairs of your own, as "
                  "--dev FILE does, or choose by judged queries)", several)  # fmt: skip


def sweep(
    pairs: Pairs,
    values: Mapping[str, Sequence],
    settings: Settings | None = None,
    *,
    judged: Judged | None = None,
    stop_by: Judged | None = None,
    say: Callable[[str], None] = lambda message: None,
    **options: Any,
) -> tuple[Model, list[dict[str, Any]]]:
    """Trains a model for every combination of values, and keeps the one that scores best on the held-out pairs.

    The score of the best is a little too good for new texts, the more so the more combinations there are.

    Args:
      pairs: as for `training.train`.
      values: name of a setting -> values that are tried.
      settings: the other settings; `Settings()` unless given.
      judged: queries with judgements to choose by, in place of the held-out pairs; ``stop_by`` unless given.
      stop_by: as for `training.train`, for the trainings that it decides about.
      say: told the score of each training, and of what the trainings say each line once.
      **options: more of `training.train`, such as ``dev`` and ``grades``, for every training alike.

    Returns:
      ``(model, tried)``: the best model, the first of equals; and for every combination its values, its score (MRR, or
      what else a method is stopped by), and its ``seconds``, the best first.

    Raises:
      ValueError: as `combinations`, `expect_comparable` and `training.train`, where no pairs are held out, or for
        ``stop_by`` where it decides about none of the trainings.

    Example:
      >>> from jaxsim.data import docstrings
      >>> few = docstrings.load().take(range(200))
      >>> model, tried = sweep(few, {"dim": (5, 20)}, Settings(method="opca"), dev=0.2)
      >>> model.dim == tried[0]["dim"], [sorted(one) for one in tried]
      (True, [['dim', 'mrr', 'seconds'], ['dim', 'mrr', 'seconds']])
    """
    tried: list[tuple[float, dict[str, Any]]] = []
    best, said = None, set()

    def once(message: str) -> None:
        """What an earlier training said too is not said again."""
        if message not in said:
            said.add(message)
            say(message)

    every = combinations(Settings() if settings is None else settings, values)
    some = stop_by is None or any(map(asks, every))
    checks.expect(some, "stop_by", f"a method of {', '.join(STOPPED)}, to stop by queries", "none of them")
    judged = stop_by if judged is None else judged
    expect_comparable(values, options.get("dev", 0.1), judged is not None)
    for one in every:  # before the first is trained
        training.expect_choosers(one, options.get("dev", 0.1), stop_by)
    for one in every:
        begun = time.perf_counter()
        model = training.train(pairs, one, say=once, stop_by=stop_by if asks(one) else None, **options)
        metric, score = _score(model, judged)
        facts = {name: getattr(one, name) for name in values if _uses(one.method, name)}
        if best is None or score > max(result for result, _ in tried):
            best = model
        tried.append((score, {**facts, metric: round(score, 4), "seconds": round(time.perf_counter() - begun, 1)}))
        say(", ".join(f"{name} {value}" for name, value in tried[-1][1].items()))
    return best, [entry for _, entry in sorted(tried, key=lambda both: -both[0])]


def _score(model: Model, judged: Judged | None) -> tuple[str, float]:
    """What a model is chosen by, and how well it does."""
    if judged is not None:
        return judged.metric, judged.best(model).score
    dev = model.training["dev"]
    checks.expect(bool(dev), "dev", "pairs to choose by", "none held out")
    metric = "mrr" if "mrr" in dev else next(iter(dev))
    return metric, dev[metric]


def _uses(method: str, name: str) -> bool:
    return any(field.name == name and (name == "method" or method in field.option.methods) for field in fields())
