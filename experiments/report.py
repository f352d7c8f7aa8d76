"""Makes BENCHMARKS.md, docs/results, docs/figures and the ledger of claims from records; with --check, only compares.

Time: five seconds on one core for a few records, 40 s for --check of all. Command: `python experiments/report.py
[--check]`, from anywhere.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))  # run by its path, `experiments` is not found otherwise

from experiments.kit import report  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Writes the files, or compares them with what is there; the status is 1 where any differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; list differences")
    parser.add_argument("--results", type=Path, default=ROOT / "experiments" / "results", help="root of the records")
    parser.add_argument("--benchmarks", type=Path, default=ROOT / "BENCHMARKS.md", help="the Markdown file")
    parser.add_argument("--figures", type=Path, default=ROOT / "docs" / "figures", help="folder of the figures")
    given = parser.parse_args(arguments)
    work = report.check if given.check else report.generate
    try:
        lines = work(given.results, given.benchmarks, given.figures)
    except (OSError, ValueError) as error:
        parser.error(str(error))
    print(*lines, sep="\n", end="\n" if lines else "")
    return 1 if given.check and lines else 0


if __name__ == "__main__":
    sys.exit(main())
