"""Sizes that arrays are padded to, so that calls with inputs of any length share a few compiled programs."""

from __future__ import annotations

from jaxsim import checks

__all__ = ["DOCUMENTS", "SLOTS", "size_class"]

DOCUMENTS, SLOTS = (32, 1024), (1024, 16_384, 65_536)
"""The smallest classes of numbers of documents, and of their weights."""


def size_class(size: int, steps: tuple[int, ...], *, fine: bool = False) -> int:
    """The size that an array is padded to.

    Args:
      size: what has to fit.
      steps: the smallest classes, ascending, coarse because small programs cost next to nothing. Powers of two follow.
      fine: whether there are quarter steps between those powers, for arrays that are large more often than varied.

    Returns:
      At least ``size``; above the steps less than twice of it, with ``fine`` less than 1.25 times.

    Raises:
      ValueError: for a negative size.

    Example:
      >>> [size_class(size, (32, 1024)) for size in (0, 33, 1025, 2048)]
      [32, 1024, 2048, 2048]
      >>> size_class(1025, (32, 1024), fine=True)
      1280
    """
    checks.whole(size, "size", 0)
    for step in steps:
        if size <= step:
            return step
    power = 1 << (size - 1).bit_length()
    if not fine:
        return power
    quarter = power // 8
    return -(-size // quarter) * quarter
