"""Makes BENCHMARKS.md and docs/figures from the records in experiments/results; with --check, only compares.

Time: a few seconds on one core. Command: `python experiments/report.py [--check]`, from anywhere.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from jaxsim import cli

if __name__ == "__main__":
    os.chdir(Path(__file__).resolve().parent.parent)
    sys.exit(cli.main(["report", *sys.argv[1:]]))
