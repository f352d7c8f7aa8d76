"""Shared argument checks, so that every refusal in the library reads the same way.

NumPy is loaded by the checks of arrays alone: the command line refuses bad options before it loads anything large.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import numbers
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np

__all__ = [
    "a_kind", "array", "between", "binary_lists", "brief", "compressed", "counted", "decimal", "expect", "kind",
    "one_kind", "positive", "positive_int", "random_key", "real", "score_lists", "targets", "whole", "within",
]  # fmt: skip

_DECIMAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_LONGEST = 300  # of what came, in a message
_SHORT, _FEW = 60, 4  # characters and items that `brief` shows
_BLOCK = 1 << 20  # slots that are looked at together


def expect(condition: bool, argument: str, expected: str, got: object) -> None:
    """Raise a `ValueError` naming the argument unless ``condition`` holds.

    Args:
      condition: Whether the argument is acceptable.
      argument: The argument at fault, written as the caller wrote it (``pairs.left``, ``k``).
      expected: What is acceptable, in words.
      got: What came instead, a shape, a dtype or a single value; never a whole array.

    Raises:
      ValueError: ``<argument>: expected <expected>, got <got>``.

    Example:
      >>> expect(0 < 3, "k", "a positive number", 3)
      >>> expect(False, "k", "at least 1", 0)
      Traceback (most recent call last):
      ...
      ValueError: k: expected at least 1, got 0
    """
    if not condition:
        try:
            shown = str(got)
        except ValueError:  # a whole number of more digits than Python writes out
            shown = f"{a_kind(got)} of thousands of digits"
        shown = shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"
        raise ValueError(f"{argument}: expected {expected}, got {shown}")


@contextlib.contextmanager
def within(where: str) -> Iterator[None]:
    """Lets every refusal of a block name the file that its values come from.

    Args:
      where: the file or folder.

    Raises:
      ValueError: of the block, with the file before it.

    Example:
      >>> with within("config.json"):
      ...     expect(False, "k", "at least 1", 0)
      Traceback (most recent call last):
      ...
      ValueError: config.json: k: expected at least 1, got 0
    """
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{where}: {error}") from error


def positive(value: object, argument: str) -> None:
    """Refuse anything but a finite number above 0, of any type that Python counts with.

    Args:
      value: The value to look at.
      argument: Its name, as the caller wrote it.

    Raises:
      ValueError: For NaN, infinity, 0, negative numbers, and what is no single real number.

    Example:
      >>> positive(0.5, "gamma")
      >>> positive(float("nan"), "gamma")
      Traceback (most recent call last):
      ...
      ValueError: gamma: expected a positive number, got nan
    """
    try:
        fits = 0 < float(value) < math.inf
    except (TypeError, ValueError, OverflowError):
        fits = False
    expect(fits, argument, "a positive number", value)


def array(values: np.ndarray, argument: str, dtypes: str, shape: tuple[int | None, ...]) -> None:
    """Refuse an array that came from a file and is not of the type and shape that was written.

    Args:
      values: The array; values that are not finite are refused too.
      argument: Where it came from.
      dtypes: Its legal types, as NumPy names them, with blanks between.
      shape: Its lengths; None for any.

    Raises:
      ValueError: For another type or shape, NaN and infinity.

    Example:
      >>> import numpy as np
      >>> array(np.zeros(3), "df", "float32 float64", (None,))
      >>> array(np.zeros(3), "df", "int64", (2,))
      Traceback (most recent call last):
      ...
      ValueError: df: expected int64 of shape (2,), got float64 of shape (3,)
    """
    import numpy as np

    fits = values.dtype.isnative and values.dtype.name in dtypes.split() and len(values.shape) == len(shape)
    fits = fits and all(want in (None, size) for want, size in zip(shape, values.shape, strict=True))
    wanted = str(shape).replace("None", "any")
    expect(fits, argument, f"{' or '.join(dtypes.split())} of shape {wanted}",
           f"{values.dtype} of shape {values.shape}")
    if values.dtype.kind == "f":
        for start in range(0, len(values), _BLOCK):
            finite = bool(np.isfinite(values[start : start + _BLOCK]).all())
            expect(finite, argument, "finite values", "NaN or infinity")


def compressed(ends: np.ndarray, columns: np.ndarray, width: int, argument: str) -> None:
    """Refuse row pointers and columns of sparse rows that a product could not walk over.

    Args:
      ends: ``[n + 1]`` integers, where rows begin and end.
      columns: ``[slots]`` integers.
      width: Number of columns.
      argument: Where they came from.

    Raises:
      ValueError: Unless the pointers rise from 0 to ``slots`` and columns rise within rows, from 0 to below ``width``.

    Example:
      >>> import numpy as np
      >>> compressed(np.array([0, 2, 3]), np.array([1, 4, 0]), 5, "words")
      >>> compressed(np.array([0, 2, 3]), np.array([1, 5, 0]), 5, "words")
      Traceback (most recent call last):
      ...
      ValueError: words: expected columns from 0 to 4, got 5
    """
    import numpy as np

    expect(len(ends) > 0 and ends[0] == 0 and ends[-1] == len(columns), argument,
           f"row pointers from 0 to {len(columns)}", f"{ends[:1]} to {ends[-1:]}")
    down = np.flatnonzero(ends[1:] < ends[:-1])
    expect(not down.size, argument, "row pointers that rise", f"a fall after row {down[:1]}")
    for start in range(0, len(columns), _BLOCK):
        part = np.asarray(columns[start : start + _BLOCK + 1])
        wrong = part[(part < 0) | (part >= width)]
        expect(not wrong.size, argument, f"columns from 0 to {width - 1}", wrong[0] if wrong.size else None)
        falls = start + 1 + np.flatnonzero(part[1:] <= part[:-1])  # legal where a row begins
        inside = falls[ends[np.searchsorted(ends, falls)] != falls]
        expect(not inside.size, argument, "columns that rise within each row", f"a fall at slot {inside[:1]}")


def counted(number: int, noun: str, nouns: str | None = None) -> str:
    """A number of things in words.

    Args:
      number: How many.
      noun: One of them.
      nouns: Several of them; ``noun`` with an s unless given.

    Returns:
      The number, its thousands apart, and the noun.

    Example:
      >>> counted(1, "pair"), counted(1200, "query", "queries")
      ('1 pair', '1,200 queries')
    """
    return f"{number:,} {noun if number == 1 else nouns or noun + 's'}"


def brief(value: object) -> str:
    """A dataclass in short, as ``repr`` of those shows it that hold whole corpora: lengths in place of what is long.

    Args:
      value: A dataclass.

    Returns:
      Its class and fields: of arrays dtype and shape, of what is longer than a line the length.

    Example:
      >>> import numpy as np
      >>> from jaxsim.text import Vocabulary
      >>> Vocabulary(terms=tuple(f"term{number}" for number in range(1200)), df=np.ones(1200, int), num_docs=3)
      Vocabulary(terms=<1,200 items>, df=int64[1200], num_docs=3)
    """
    fields = [f"{field.name}={_brief(getattr(value, field.name))}" for field in dataclasses.fields(value)]
    return f"{type(value).__name__}({', '.join(fields)})"


def _brief(value: object) -> str:
    """A value of a field; nothing long is written out first, which may take a minute."""
    shape, dtype = getattr(value, "shape", None), getattr(value, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None:
        return f"{dtype}[{', '.join(map(str, shape))}]"
    if isinstance(value, str):
        return repr(value) if len(value) <= _SHORT else f"{value[: _SHORT - 1] + '…'!r}"
    if not isinstance(value, Mapping | Sequence):
        return repr(value)
    parts = list(value.values() if isinstance(value, Mapping) else value) if len(value) <= _FEW else [value]
    plain = all(isinstance(part, int | float | None) or isinstance(part, str) and len(part) <= _SHORT for part in parts)
    return repr(value) if plain else f"<{counted(len(value), 'item')}>"


def decimal(text: str) -> float:
    """A number as files write it: digits 0 to 9, a sign, a point, an exponent; blanks round it are legal.

    Args:
      text: The number. Python itself would take ``1_000``, digits of other scripts, and words such as ``infinity``.

    Returns:
      The number; NaN for anything else.

    Example:
      >>> decimal(" -2.5e1"), decimal("1_000"), decimal("infinity")
      (-25.0, nan, nan)
    """
    return float(text) if _DECIMAL.fullmatch(text.strip()) else math.nan


def one_kind(labels: np.ndarray) -> str:
    """What came where labels above 0 and others were expected, and only one of these kinds did.

    Args:
      labels: ``[n]`` real.

    Returns:
      Which kind, and the labels themselves.

    Example:
      >>> import numpy as np
      >>> one_kind(np.array([2, 1, 2])), one_kind(np.zeros(3))
      ('only labels above 0 (1, 2)', 'only others (0)')
    """
    import numpy as np

    values = np.unique(np.asarray(labels, np.float64))
    shown = ", ".join(f"{value:g}" for value in values[:3]) + ", …" * (values.size > 3)
    return f"only {'labels above 0' if np.all(values > 0) else 'others'} ({shown})"


def positive_int(value: object, argument: str) -> None:
    """Refuse anything but a whole number of at least 1.

    Args:
      value: The value to look at.
      argument: Its name, as the caller wrote it.

    Raises:
      ValueError: For other types (booleans included) and for numbers below 1.

    Example:
      >>> positive_int(10, "k")
    """
    whole(value, argument, 1)


def whole(value: object, argument: str, least: int, *, or_none: bool = False) -> None:
    """Refuse anything but a whole number of at least ``least``.

    Args:
      value: The value to look at.
      argument: Its name, as the caller wrote it.
      least: The smallest legal value.
      or_none: Whether None is legal too.

    Raises:
      ValueError: For other types (booleans included) and for smaller numbers.

    Example:
      >>> whole(0, "max_iter", 0)
    """
    fits = isinstance(value, numbers.Integral) and not isinstance(value, bool) and value >= least
    told = f"a whole number of at least {least}" + (", or None" if or_none else "")
    expect(fits or (or_none and value is None), argument, told, value)


def between(value: object, argument: str, most: int, reason: str) -> None:
    """Refuse anything but a whole number from 1 to ``most``.

    Args:
      value: The value to look at.
      argument: Its name, as the caller wrote it.
      most: The largest legal value; 0 or less where no value is.
      reason: What sets the bound, for the message.

    Raises:
      ValueError: For other types (booleans included) and for numbers out of range.

    Example:
      >>> between(4, "k", 3, "terms")
      Traceback (most recent call last):
      ...
      ValueError: k: expected a whole number between 1 and 3 (terms), got 4
    """
    expect(most >= 1, argument, f"at least one to choose from ({reason})", "none")
    whole = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    expect(whole and 1 <= value <= most, argument, f"a whole number between 1 and {most} ({reason})", value)


def kind(value: object, argument: str, *types: type) -> None:
    """Refuse values of other types.

    Args:
      value: The value to look at.
      argument: Its name, as the caller wrote it.
      *types: What it may be.

    Raises:
      ValueError: For any other type.

    Example:
      >>> kind("tanh", "activation", int)
      Traceback (most recent call last):
      ...
      ValueError: activation: expected int, got str
    """
    expect(isinstance(value, types), argument, " or ".join(one.__name__ for one in types), type(value).__name__)


def random_key(value: object, argument: str = "key") -> None:
    """Refuses what is no random key of JAX, such as a seed.

    Args:
      value: A typed key, or two (or four) numbers of the older kind.
      argument: Its name.

    Raises:
      ValueError: Naming the argument.

    Example:
      >>> random_key(0)
      Traceback (most recent call last):
      ...
      ValueError: key: expected a random key, such as jax.random.key(0), got an int
    """
    import jax

    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    typed = dtype is not None and jax.dtypes.issubdtype(dtype, jax.dtypes.prng_key)
    expect(typed and shape == () or dtype == "uint32" and shape in ((2,), (4,)), argument,
           "a random key, such as jax.random.key(0)", f"keys of shape {shape}" if typed else a_kind(value))


def real(values, argument: str) -> np.ndarray:
    """A float64 array of real numbers: at least one axis, not empty, no NaN; infinities are legal.

    Args:
      values: Array-like of any real dtype, booleans included.
      argument: Its name, as the caller wrote it.

    Returns:
      A new float64 array of the same shape.

    Raises:
      ValueError: For ragged lists, other dtypes, empty arrays, scalars and NaN.

    Example:
      >>> real([1, 2], "scores").tolist()
      [1.0, 2.0]
    """
    import numpy as np

    try:
        values = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{argument}: expected an array of real numbers, got ragged lists") from error
    numeric = np.issubdtype(values.dtype, np.number) or values.dtype.kind in "bV"
    expect(numeric and values.dtype.kind != "c", argument, "real numbers", f"dtype {values.dtype}")
    values = values.astype(np.float64)
    expect(values.ndim >= 1 and values.size > 0, argument, "at least one value", f"shape {values.shape}")
    expect(not np.isnan(values).any(), argument, "no NaN", "NaN")
    return values


def score_lists(scores, labels) -> tuple[np.ndarray, np.ndarray]:
    """Scores and labels of one list, or of one list a row, as float64.

    Args:
      scores: ``[num_docs]`` or ``[num_queries, num_docs]`` real.
      labels: Real, of the shape of ``scores``.

    Returns:
      ``(scores, labels)``, new float64 arrays.

    Raises:
      ValueError: As `real`, and for more than two axes or unequal shapes.

    Example:
      >>> score_lists([2, 1], [1, 0])[0].tolist()
      [2.0, 1.0]
    """
    scores, labels = real(scores, "scores"), real(labels, "labels")
    expect(scores.ndim <= 2, "scores", "shape (num_docs,) or (num_queries, num_docs)", scores.shape)
    expect(labels.shape == scores.shape, "labels", f"shape {scores.shape} (as scores)", labels.shape)
    return scores, labels


def a_kind(value: object) -> str:
    """The type of what came, in a message.

    Args:
      value: anything.

    Returns:
      Its type with an article.

    Example:
      >>> a_kind(3), a_kind([]), a_kind(None)
      ('an int', 'a list', 'None')
    """
    name = type(value).__name__
    return "None" if value is None else f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def binary_lists(scores, labels, *, both: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """As `score_lists`, for labels 0 and 1.

    Args:
      scores: ``[num_docs]`` or ``[num_queries, num_docs]`` real.
      labels: 0 or 1 (any real dtype or booleans), of the shape of ``scores``.
      both: Whether every list must hold at least one label of each kind.

    Returns:
      ``(scores, labels)``, new float64 arrays.

    Raises:
      ValueError: As `score_lists`, for other labels, and with ``both`` for a list of one label only.

    Example:
      >>> binary_lists([2, 1], [True, False])[1].tolist()
      [1.0, 0.0]
    """
    import numpy as np

    scores, labels = score_lists(scores, labels)
    wrong = (labels != 0) & (labels != 1)
    if wrong.any():
        raise ValueError(f"labels: expected 0 or 1, got {labels[wrong][0]:g}")
    if both:
        positives = np.atleast_1d(labels.sum(axis=-1))
        single = np.flatnonzero((positives == 0) | (positives == labels.shape[-1]))
        if single.size:
            only, row = int(positives[single[0]] > 0), int(single[0])
            raise ValueError(f"labels: expected both 0 and 1 in every list, got only {only} in list {row}")
    return scores, labels


def targets(target, num_queries: int, num_candidates: int) -> np.ndarray:
    """The column of each query's mate, as int64.

    Args:
      target: ``[num_queries]`` integers.
      num_queries: How many queries there are.
      num_candidates: How many columns there are.

    Returns:
      ``[num_queries]`` int64 array.

    Raises:
      ValueError: For another shape, other dtypes, and columns out of range.

    Example:
      >>> targets([1, 0], 2, 3).tolist()
      [1, 0]
    """
    import numpy as np

    target = np.asarray(target)
    expect(target.shape == (num_queries,), "target", f"shape ({num_queries},), one column a query", target.shape)
    expect(np.issubdtype(target.dtype, np.integer), "target", "integers", f"dtype {target.dtype}")
    outside = (target < 0) | (target >= num_candidates)
    if outside.any():
        raise ValueError(f"target: expected columns in [0, {num_candidates}), got {target[outside][0]}")
    return target.astype(np.int64)
