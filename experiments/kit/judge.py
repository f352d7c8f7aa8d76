"""The papers' claims as data, judged from records alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

__all__ = ["CEILING", "Claim"]

CEILING = 0.95
"""Above this accuracy, MRR or AUC of both rows a table is too easy to tell; written down before any run."""


@dataclass(frozen=True)
class Claim:
    """One sentence of a paper: in these tables, one row is better than another.

    The verdict is computed by the report from the records and their per-query values: twice by the paper's own protocol
    (its test, and a paired one), and at equal budget beside.

    Attributes:
      id: Short and unique over all papers: `000-s2net-opca`.
      sentence: What the paper says, in a line.
      place: Where: `000 §4.1.2, Table 1`.
      tables: Tables of the experiment that test it; the first is the closest to the paper's.
      better: Row that the paper has above.
      worse: Row that it has below.
      metric: By which.
      printed: Row -> the paper's figure.
      lower: Whether a lower value is better, as for rank loss and perplexity.
      test: The paper's own: `paired t`, `unpaired t`, `mcnemar`, or `none` where it has none.
      metric_of_test: The metric that the paper tests, where it is another one.
      alpha: The paper's level.
      equal: Settings at which the rows are compared beside, such as `("k",)`: at points that both curves have.
      equal_rows: ``(better, worse)`` rows of equal budget, where these are rows of their own.
      holds: For a sentence of another form: function of the table's rows (row -> record) that returns whether it holds
        and a line that says by what figures; ``better`` and ``worse`` are then only shown.
      ceiling: As `CEILING`.
      why: Table -> why it may be otherwise there, written by somebody who looked.
    """

    id: str
    sentence: str
    place: str
    tables: tuple[str, ...]
    better: str
    worse: str
    metric: str
    printed: Mapping[str, float] = field(default_factory=dict)
    lower: bool = False
    test: Literal["paired t", "unpaired t", "mcnemar", "none"] = "none"
    metric_of_test: str | None = None
    alpha: float = 0.05
    equal: tuple[str, ...] = ()
    equal_rows: tuple[str, str] | None = None
    holds: Callable[[Mapping[str, Mapping[str, Any]]], tuple[bool, str]] | None = None
    ceiling: float = CEILING
    why: Mapping[str, str] = field(default_factory=dict)
