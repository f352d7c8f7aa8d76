"""Writes which test pairs of a table are near-copies of one another: tests of the table count these together.

Docstrings are those of the installed packages, whose versions the table's records have.

    python -m experiments.corpora.near_copies
"""

from __future__ import annotations

import json

from experiments.corpora import mates
from experiments.kit import judge

if __name__ == "__main__":
    judge.GROUPS.write_text(json.dumps(mates.groups_of_test_pairs(), separators=(",", ":")) + "\n")
