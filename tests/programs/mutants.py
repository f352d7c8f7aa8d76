"""Changes one expression of the library at a time, in a copy, and counts which changes the tests notice.

A mutant swaps a comparison, an arithmetic or a logical operator, changes a number, or leaves out a `not`. It is killed
if a test of its package fails. Survivors are printed with file, line and change: each needs a test, or is equal to what
it replaces. `python tests/programs/mutants.py --sample 20 --seed 1` repeats a sample; `--list` counts them.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
TESTS = {
    "jaxsim/losses": ["tests/losses"], "jaxsim/sparse": ["tests/sparse"], "jaxsim/optim": ["tests/optim"],
    "jaxsim/evaluate": ["tests/evaluate"], "jaxsim/text": ["tests/text"], "jaxsim/model/index.py": ["tests/model"],
    "jaxsim/checks.py": ["tests/text/test_corpus.py", "tests/model/test_index.py", "tests/evaluate/test_metrics.py"],
    "jaxsim/methods/projections": ["tests/methods/test_methods_equations.py"],
}  # fmt: skip
_SWAPS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
          ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.And: ast.Or, ast.Or: ast.And,
          ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.FloorDiv: ast.Mult}  # fmt: skip


def _changes(node: ast.AST) -> list[ast.expr]:
    """What may stand in place of an expression."""
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _SWAPS:
        return [ast.Compare(node.left, [_SWAPS[type(node.ops[0])](), *node.ops[1:]], node.comparators)]
    if isinstance(node, ast.BinOp) and type(node.op) in _SWAPS:
        return [ast.BinOp(node.left, _SWAPS[type(node.op)](), node.right)]
    if isinstance(node, ast.BoolOp):
        return [ast.BoolOp(_SWAPS[type(node.op)](), node.values)]
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return [node.operand]
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return [ast.Constant(node.value + 1)]
    return []


def mutants() -> list[tuple[str, int, int, int, str, str]]:
    """Every mutant: file, where its expression begins and ends, what stands there, and what is to."""
    found = []
    for place in TESTS:
        path = ROOT / place
        for file in [path] if path.is_file() else sorted(path.rglob("*.py")):
            source = file.read_text(encoding="utf-8")
            tree = ast.parse(source)
            skipped = {inner for node in ast.walk(tree) if isinstance(node, ast.AnnAssign | ast.arg | ast.JoinedStr)
                       for inner in ast.walk(node)}  # fmt: skip
            skipped |= {inner for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.returns
                        for inner in ast.walk(node.returns)}  # fmt: skip
            for node in ast.walk(tree):
                if node in skipped or getattr(node, "lineno", 0) != getattr(node, "end_lineno", -1):
                    continue
                for new in _changes(node):
                    old = ast.get_source_segment(source, node)
                    found.append((str(file.relative_to(ROOT)), node.lineno, node.col_offset, node.end_col_offset, old,
                                  ast.unparse(new)))  # fmt: skip
    return found


def killed(copy: Path, mutant: tuple, seconds: float) -> bool:
    """Whether a test notices; one that does not end counts as noticed."""
    file, line, start, end, _, new = mutant
    path = copy / file
    whole = path.read_text(encoding="utf-8")
    lines = whole.split("\n")
    data = lines[line - 1].encode()
    lines[line - 1] = (data[:start] + f"({new})".encode() + data[end:]).decode()
    path.write_text("\n".join(lines), encoding="utf-8")
    tests = next(tests for place, tests in TESTS.items() if file == place or file.startswith(f"{place}/"))
    environment = {**os.environ, "PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not programs",
               *tests]  # fmt: skip
    try:
        return subprocess.run(command, cwd=copy, env=environment, capture_output=True, timeout=seconds).returncode != 0
    except subprocess.TimeoutExpired:
        return True
    finally:
        path.write_text(whole, encoding="utf-8")


def main() -> int:
    """Runs a sample; the exit status is 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only files whose name begins so, as jaxsim/losses")
    parser.add_argument("--seconds", type=float, default=900, help="for the tests of one mutant")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    found = [mutant for mutant in mutants() if mutant[0].startswith(given.only)]
    print(f"{len(found)} mutants")
    if given.list:
        return 0
    chosen = np.random.default_rng(given.seed).permutation(len(found))[: given.sample]
    survivors = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copy = Path(place) / "jaxsim"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", "results", "site"))
        for number in chosen:
            file, line, _, _, old, new = mutant = found[number]
            dead = killed(copy, mutant, given.seconds)
            survivors += not dead
            print(f"{'killed' if dead else 'SURVIVED'}: {file}:{line}: {old} -> {new}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
