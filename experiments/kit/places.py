"""Where an experiment's records go, and what may not go there: the same rules for every script."""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

from experiments.kit.run import RESULTS


def add_out(parser: argparse.ArgumentParser) -> None:
    """Adds the option ``--out``."""
    parser.add_argument("--out", type=Path, help="folder of the records; experiments/results for full, a temporary "
                        "folder for quick")


def records_folder(parser: argparse.ArgumentParser, out: Path | None, *, quick: bool) -> Path:
    """The folder of the records: that of the option, or the preset's own.

    A quick preset that was to write among the published records ends the program with status 2.

    Args:
      parser: for the message.
      out: value of ``--out``.
      quick: whether the preset is quick.

    Returns:
      A folder, made if it is a temporary one.
    """
    if quick and out is not None and out.resolve().is_relative_to(RESULTS):
        parser.error("--out: expected a folder outside experiments/results for the quick preset")
    return out or (Path(tempfile.mkdtemp(prefix="jaxsim-")) if quick else RESULTS)


def expect_committed(parser: argparse.ArgumentParser, out: Path) -> None:
    """Ends the program with status 2 if records of an uncommitted tree were to be published, before hours of work."""
    from experiments.kit import records

    if out.resolve() == RESULTS and records.environment()["dirty"]:
        parser.exit(2, f"{parser.prog}: expected a committed tree, got uncommitted changes (or give --out)\n")
