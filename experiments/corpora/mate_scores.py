"""How the tables of `mates.platt2010` and `mates.yih2011` choose settings on development pairs, and test the choice.

A score is the mean reciprocal rank (MRR) of a document's mate. Functions read a table's data (`corpora.mates.Corpus`)
and the settings that both scripts have: `ks`, `grid_k`, `sizes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from experiments import kit
from jaxsim.evaluate import mates
from jaxsim.evaluate.mates import Task
from jaxsim.methods import projections

UNIT_LENGTH = ({"unit_length": True}, {"unit_length": False})
"""Of the training rows. The cosines of encoded documents do not depend on the documents' lengths."""


def weighted(table: kit.Table, split: str, unit_length: bool = True):
    """Both sides' log2(tf + 1) · log2(n / df) vectors (002 Eq. 8), at unit length unless asked for otherwise."""
    return table.once((split, unit_length), lambda: table.data.task.weighted(split, unit_length=unit_length))


def rank(table: kit.Table) -> int:
    """The most dimensions that training pairs have."""
    return min(table.data.sizes["train"], len(table.data.task.vocabulary))


def dimensions(table: kit.Table, ks: Sequence[int] = ()) -> list[int]:
    """The dimensions (`Settings.ks` unless given) that the table is large enough for."""
    return kit.up_to_rank(ks or table.settings.ks, rank(table))


def grid_k(table: kit.Table, ks: Sequence[int] = ()) -> int:
    """The dimension at which settings are chosen, at most the largest of ``ks`` (`Settings.ks` unless given)."""
    return min(table.settings.grid_k, max(dimensions(table, ks)))


def dev_mrr(table: kit.Table, params) -> float:
    """MRR of development pairs."""
    return mates.scores(*mates.encode(params, weighted(table, "dev")))["mrr"]


def tested(table: kit.Table, *seeds: Sequence) -> dict:
    """What a row says of test pairs: values of every query, and means inside each source of the documents.

    Each of ``seeds`` is both encoded sides of the test pairs. A source is a web site or a package.
    """
    return {"per_query": [mates.per_query(*sides) for sides in seeds],
            "by_group": [mates.by_source(*sides, table.data.task.sources["test"]) for sides in seeds]}


def test_points(encoded: Mapping[int, Sequence]) -> list[dict]:
    """MRR of test pairs by dimension, of both sides encoded with each: points of a curve, which choose nothing."""
    return [{"k": k, "mrr": mates.mrr(*sides), "split": "test"} for k, sides in encoded.items()]


def learning_curve(table: kit.Table, fit: Callable[[Task, int], Any]) -> list[dict]:
    """Test scores by the number of training pairs, with the row's settings and at most `grid_k` dimensions.

    ``fit`` is a function of a task and k that returns parameters.
    """
    most = table.data.sizes["train"]
    sizes = [size for size in table.settings.sizes if size < most]
    points = []
    for size in [*sizes, most] if sizes else []:
        smaller = table.data.task if size == most else table.once(("pairs", size), partial(table.data.of_size, size))
        params = fit(smaller, min(grid_k(table), size - 1))
        points.append({"pairs": size, **mates.scores(*mates.encode(params, smaller.weighted("test"))), "split": "test"})
    return points


def chosen_options(table: kit.Table, fit: Callable[..., Any], options: Sequence[Mapping], ks: Sequence[int] = ()
                   ) -> kit.Choice:
    """The options with the best development MRR at `grid_k`; ``fit`` is a function of a task, k and the options."""
    grid = [{"k": grid_k(table, ks), **option} for option in options]
    return kit.choose(grid, lambda **option: dev_mrr(table, fit(table.data.task, **option)), by="dev")


def closed_form(table: kit.Table, fit: Callable[..., Any], options: Sequence[Mapping], ks: Sequence[int] = (),
                *, ordered: bool = True, **said: Any) -> kit.Row:
    """A row of a closed form: the options, and then the dimension, with the best development MRR, tested.

    ``fit`` is a function of a task, k and the options that returns parameters. Where dimensions are ``ordered`` by
    weight, one fit of the largest serves all. ``said`` is for every point of the curve, such as the rank.
    """
    choice, ks = chosen_options(table, fit, options, ks), dimensions(table, ks)
    fit = partial(fit, **{name: value for name, value in choice.best.items() if name != "k"})
    largest = fit(table.data.task, max(ks)) if ordered else None

    def at(k):
        return projections.truncate(largest, k) if ordered else fit(table.data.task, k)

    size = kit.choose([{"k": k} for k in ks], lambda k: dev_mrr(table, at(k)), by="mrr", split="dev", **said)
    encoded = {k: mates.encode(at(k), weighted(table, "test")) for k in ks}
    return kit.Row({**choice.best, **size.best}, **tested(table, encoded[size.best["k"]]),
                   curve=[*size.tried, *test_points(encoded), *learning_curve(table, fit)],
                   dev={"grid": choice.tried, "mrr": size.score})
