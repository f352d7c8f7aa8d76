"""Rewrites records of older forms in place: `python -m experiments.kit.migrate`.

- `status` goes. What it said of limits becomes `limits`; what else somebody explained becomes a sentence of `notes`;
  that a row stands where it should is no claim of the paper, and is said no more.
- `commit` becomes `commits`; `--moved` adds the commit at which an experiment's script was rewritten.
- `paper` names the place where a table's figures stand: some had another one.
- What a limit or a measurement said of two rows of a table becomes one of `comparisons`, without figures: these were
  about the rows of that day, and some p values took the two directions of a pair as independent.

All else stays byte for byte, and the command changes nothing the second time.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from typing import Any

from experiments.kit import records
from experiments.kit.table import compared
from jaxsim import io

_EMPTY = ("reproduced", "within noise", "off", "no row of the paper's table", "no expectation")
_PLACES = {"000 §4.1.2": "000 §4.1.1"}
_ROWS = re.compile(r"(test mrr|test map|MAP|MRR)(?: of (?P<better>[\w-]+))? less (?:that of )?"
                   r"(?P<worse>this|the best dimension|[\w-]+?)(?:'s)?(?:: [-+.\d]+)? \(paired t, p = [^)]+\)"
                   r"(?P<end>, the lower end of the 95 % interval)?")  # fmt: skip
"""What older records called the difference of two rows: `this` and `the best dimension` are the record's own row."""
_LIMIT = re.compile(r"(.+) (\S+) \(expected (<=|>=) (\S+)\)")


def main(arguments: list[str] | None = None) -> int:
    """Rewrites the records below a folder and prints how many changed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    default = Path(__file__).resolve().parents[1] / "results"
    parser.add_argument("folder", type=Path, nargs="?", default=default, help="root of the records")
    parser.add_argument("--moved", metavar="COMMIT", help="commit at which the scripts were rewritten")
    parser.add_argument("--experiments", nargs="+", default=[], help="whose scripts were")
    given = parser.parse_args(arguments)
    changed = 0
    for path in sorted(given.folder.rglob("*/*.json")):
        text = path.read_text()
        record = json.loads(text)
        if written(record) != text:
            parser.error(f"{path}: expected a record as the kit writes it, got other spacing or digits")
        moved = given.moved if record["experiment"] in given.experiments else None
        new = migrated(record, moved=moved)
        records.check(new)
        if written(new) != text:
            io.write_bytes(path, written(new).encode())
            changed += 1
    print(f"{changed} records rewritten")
    return 0


def migrated(record: dict[str, Any], *, moved: str | None = None) -> dict[str, Any]:
    """A record in today's form, its fields in their order.

    Args:
      record: A record of any form.
      moved: A commit to add to its own.

    Returns:
      A new dict; equal to ``record`` where nothing is to change.

    Example:
      >>> migrated({"row": "a", "status": "missed: seconds 0.4 (expected <= 0.3)", "commit": "x"})
      {'row': 'a', 'limits': [{'name': 'seconds', 'value': 0.4, 'at_most': 0.3}], 'commits': ['x']}
    """
    new: dict[str, Any] = {}
    for name, value in record.items():
        if name == "status":
            limits, sentence = _said(value)
            if limits:
                new["limits"] = limits
            if sentence:
                new["notes"] = [*record.get("notes", []), sentence]
        elif name == "commit":
            new["commits"] = [value]
        elif name == "paper":
            new["paper"] = _PLACES.get(value, value)
        elif name != "notes" or "notes" not in new:
            new[name] = value
    if moved is not None and moved not in new["commits"]:
        new["commits"] = [*new["commits"], moved]
    return _without_comparisons(new)


def _without_comparisons(record: dict[str, Any]) -> dict[str, Any]:
    """The record with its differences to other rows among `comparisons`."""
    new, found = dict(record), []
    for place in ("limits", "measurements"):
        lines = [(line, _ROWS.fullmatch(line["name"])) for line in record.get(place, ())]
        found += [_comparison(record["row"], line, match) for line, match in lines if match]
        kept = [line for line, match in lines if not match]
        if len(kept) < len(lines):
            new[place] = kept
            if not kept:
                del new[place]
    if found:
        last = {"per_query": new.pop("per_query")} if "per_query" in new else {}
        new |= {"comparisons": [*record.get("comparisons", ()), *found], **last}
    return new


def _comparison(row: str, line: dict[str, Any], match: re.Match) -> dict[str, Any]:
    """One of them: which rows, by which metric, and the bound if there was one."""
    worse = row if match["worse"] in ("this", "the best dimension") else match["worse"]
    return compared(match["better"] or row, worse, match[1].removeprefix("test ").lower(),
                    at_least=line.get("at_least"), by="lower end" if match["end"] else "difference")  # fmt: skip


def written(record: dict[str, Any]) -> str:
    """The text of a record's file."""
    return json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def _said(status: str) -> tuple[list[dict[str, Any]], str]:
    """Limits, and a sentence, that an old status holds."""
    parts = re.split(r"; ", re.sub(r"^(within noise: holds|missed:) ", "", status))
    matches = [_LIMIT.fullmatch(part) for part in parts]
    if all(matches):
        sides = {"<=": "at_most", ">=": "at_least"}
        return [{"name": match[1], "value": float(match[2]), sides[match[3]]: float(match[4])} for match in matches], ""
    sentence = re.sub(r"^(reproduced\. |reproduced|within noise: |off: )", "", status)
    if status in _EMPTY or not sentence:
        return [], ""
    return [], sentence.removesuffix(".") + "."  # it may open with the id of a row, which has no capital


if __name__ == "__main__":
    sys.exit(main())
