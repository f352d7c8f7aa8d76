"""How the figures of two folders of records differ: `python -m experiments.kit.compare BEFORE AFTER`.

Compares metrics (of groups and of the naive split too), development values and curves of the records that both have,
number by number; status 1 where any differs, or where there is none to compare. Records that one folder alone has are
counted, and with ``--list`` named. Seconds and provenance are not compared.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

FIELDS = ("metrics", "metrics_by_group", "metrics_naive", "dev", "curve", "config", "seeds")
PASSED_OVER = ("seconds",)


def main(arguments: list[str] | None = None) -> int:
    """Prints one line a record of both folders and one a difference, and how many records only one of them has."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before", type=Path, help="folder of records, such as experiments/results")
    parser.add_argument("after", type=Path, help="folder of the others")
    parser.add_argument("--list", action="store_true", help="name the records that only one folder has")
    given = parser.parse_args(arguments)
    for folder in (given.before, given.after):
        if not folder.is_dir():
            parser.error(f"{folder}: expected a folder of records, got no such folder")
    try:
        before, after = (_records(folder) for folder in (given.before, given.after))
    except ValueError as error:
        parser.error(str(error))
    both = sorted(before.keys() & after.keys())
    status = int(not both)
    for path in both:
        largest, lines = differences(before[path], after[path])
        print(f"{path}: largest difference {largest:.3g}" + "".join(f"\n  {line}" for line in lines))
        status = status or int(bool(lines) or largest > 0)
    for folder, alone in ((given.before, before.keys() - after.keys()), (given.after, after.keys() - before.keys())):
        if given.list:
            print(*(f"{path}: only in {folder}" for path in sorted(alone)), sep="\n", end="\n" if alone else "")
        elif alone:
            print(f"records only in {folder}: {len(alone)} (--list names them)")
    if not both:
        print(f"no record that both folders have: {len(before)} in {given.before}, {len(after)} in {given.after}")
    return status


def differences(before: dict, after: dict) -> tuple[float, list[str]]:
    """The largest difference of two numbers of one place, and a line for every place that differs.

    Args:
      before: A record.
      after: The other.

    Returns:
      The difference, and the lines.

    Example:
      >>> differences({"dev": {"mrr": 0.5}}, {"dev": {"mrr": 0.75, "k": 2}})
      (0.25, ['dev.mrr: 0.5 before, 0.75 after', 'dev.k: none before, 2 after'])
    """
    mine, other = (dict(_leaves({field: record.get(field) for field in FIELDS}, "")) for record in (before, after))
    largest, lines = 0.0, []
    for place in dict.fromkeys([*mine, *other]):
        left, right = mine.get(place, "none"), other.get(place, "none")
        if left != right:
            lines.append(f"{place}: {left} before, {right} after")
            if all(isinstance(value, int | float) for value in (left, right)):
                largest = max(largest, math.fabs(left - right))
    return largest, lines


def _records(folder: Path) -> dict[str, dict]:
    """Records by experiment, table and row; files of caches and ledgers are none."""
    contents = {}
    for path in sorted(folder.rglob("*.json")):
        try:
            content = json.loads(path.read_bytes())
        except (ValueError, RecursionError) as error:
            raise ValueError(f"{path}: expected JSON, got {error}") from None
        if isinstance(content, dict) and {"experiment", "table", "row"} <= content.keys():
            contents[f"{content['experiment']}/{content['table']}/{content['row']}"] = content
    return contents


def _leaves(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    """Every number, text or null with the place where it stands."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else None
    if items is None:
        if value is not None:
            yield place, value
        return
    for key, part in items:
        if key not in PASSED_OVER:
            yield from _leaves(part, f"{place}.{key}" if place else str(key))


if __name__ == "__main__":
    sys.exit(main())
