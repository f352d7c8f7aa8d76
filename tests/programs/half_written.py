"""What JAX says of a compiled program that another process was still writing."""

from __future__ import annotations


def half_written_program() -> list[str]:
    """Python's filters of what JAX says of a compiled program that it cannot read or keep."""
    return [f"ignore:Error {what} persistent compilation cache entry:UserWarning" for what in ("reading", "writing")]
