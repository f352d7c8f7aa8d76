"""Changes one expression of the library at a time, in a copy, and counts which changes the tests notice.

A mutant swaps a comparison, an arithmetic or a logical operator, changes a number, or leaves out a `not`. It is killed
if a test of its package fails. Survivors are printed with file, line and change: each needs a test, or is equal to what
it replaces. `python tests/programs/mutants.py --sample 20 --seed 1` repeats a sample, `--skip 10` leaves out what
another run had of it, and `--list` counts them. Tests run in forks of one process that has loaded JAX and pytest and
nothing of ours; those of the mutant's own module come first. POSIX alone.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parents[2]
TESTS = {
    "jaxsim/losses": ["losses"], "jaxsim/sparse": ["sparse"], "jaxsim/optim": ["optim"],
    "jaxsim/evaluate": ["evaluate"], "jaxsim/text": ["text"], "jaxsim/model/index.py": ["model/test_index.py"],
    "jaxsim/checks.py": ["text/test_corpus.py", "model/test_index.py", "evaluate/test_metrics.py"],
    "jaxsim/linalg": ["linalg", "methods/test_methods_equations.py", "test_extremes.py"],
    "jaxsim/methods/projections": ["methods/test_methods_equations.py", "methods/test_methods.py"],
    "jaxsim/methods/s2net": ["methods/test_methods_equations.py", "methods/test_s2net_*.py",
                             "methods/test_distillation.py", "methods/test_methods.py"],
    "jaxsim/methods/ssi": ["methods/test_ssi*.py"], "jaxsim/methods/topics": ["methods/topics"],
    "jaxsim/methods/weights": ["methods/test_models.py", "methods/test_vl_ext.py", "methods/test_itml.py",
                               "methods/test_methods_equations.py"],
    "jaxsim/methods/thesaurus": ["methods/test_thesaurus*.py"],
    "jaxsim/methods/translation": ["methods/test_translation*.py"],
    "jaxsim/methods/language": ["methods/test_language.py", "methods/test_ngram.py", "methods/test_*_lm.py",
                                "methods/test_log_bilinear.py", "methods/test_model_m.py",
                                "methods/test_word_classes.py"],
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


def dealt(found: list[tuple], seed: int) -> list[int]:
    """Numbers of all mutants in random order, those of every place of `TESTS` in turn."""
    rng, places = np.random.default_rng(seed), {}
    for number in rng.permutation(len(found)):
        file = found[number][0]
        places.setdefault(next(place for place in TESTS if file.startswith(place)), []).append(int(number))
    rounds = max(map(len, places.values()), default=0)
    return [places[place][at] for at in range(rounds) for place in sorted(places) if at < len(places[place])]


def tests_of(file: str) -> tuple[list[Path], list[Path]]:
    """Files of tests of a mutant's package: those that are called as its module is, and the others."""
    patterns = next(tests for place, tests in TESTS.items() if file == place or file.startswith(f"{place}/"))
    found = dict.fromkeys(path for pattern in patterns for path in sorted((ROOT / "tests").glob(pattern)))
    files = [test for path in found for test in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    own = [test for test in files if re.search(rf"(^|_){Path(file).stem}(_|$)", test.stem)]
    return own, sorted((test for test in files if test not in own), key=lambda test: test.stat().st_size)


def _passes(copy: Path, tests: list[Path], seconds: float) -> bool:
    """Whether tests pass, in a fork; those that do not end do not. Raises where pytest itself fails."""
    command = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not programs and not pages",
               *(str(copy / test.relative_to(ROOT)) for test in tests)]  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # JAX speaks of its threads, of which none runs yet
        pid = os.fork()
    if pid == 0:
        status = 70
        with contextlib.suppress(BaseException):
            os.setsid()
            for number in (0, 1, 2):
                os.dup2(os.open(os.devnull, os.O_RDWR), number)
            os.chdir(copy)
            sys.path[:0] = [str(copy)]
            os.environ |= {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
            import pytest

            status = int(pytest.main(command))
        os._exit(status)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code > 2 and code != 5:  # 1: a test failed, 2: a module could not be loaded, 5: all are left out
                raise RuntimeError(f"pytest ended with {code}: {tests}")
            return code in (0, 5)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return False


def killed(copy: Path, mutant: tuple, seconds: float) -> bool:
    """Whether a test notices; one that does not end counts as noticed."""
    file, line, start, end, _, new = mutant
    path = copy / file
    whole, times = path.read_text(encoding="utf-8"), path.stat()
    lines = whole.split("\n")
    data = lines[line - 1].encode()
    lines[line - 1] = (data[:start] + f"({new})".encode() + data[end:]).decode()
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        return not all(_passes(copy, tests, seconds) for tests in tests_of(file) if tests)
    finally:
        path.write_text(whole, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its compiled file is valid again


def _load() -> None:
    """Loads what the tests load before anything of ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("jax.numpy", "scipy.sparse.linalg", "scipy.stats", "scipy.optimize", "pytest",
                     "jaxopt", "optax", "safetensors.numpy", "filelock", "Stemmer"):  # fmt: skip
            with contextlib.suppress(ImportError):
                __import__(name)


def main() -> int:
    """Runs a sample; the exit status is 1 if one survives."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sample", type=int, default=20)
    parser.add_argument("--skip", type=int, default=0, help="mutants of the sample's beginning to leave out")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only files whose name begins so, as jaxsim/losses")
    parser.add_argument("--seconds", type=float, default=900, help="for the tests of one mutant")
    parser.add_argument("--check", action="store_true", help="first run all of the tests on the code as it is")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    found = [mutant for mutant in mutants() if mutant[0].startswith(given.only)]
    print(f"{len(found)} mutants")
    if given.list:
        return 0
    chosen = dealt(found, given.seed)[given.skip : given.sample]
    survivors = 0
    _load()
    with tempfile.TemporaryDirectory(prefix="mutants-") as place:
        copy = Path(place) / "jaxsim"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", "results", "site"))
        compileall.compile_dir(copy / "jaxsim", quiet=2)
        whole = sorted({test for number in chosen for tests in tests_of(found[number][0]) for test in tests})
        if given.check and not _passes(copy, whole, given.seconds):
            print("the tests fail before anything is changed")
            return 2
        for number in chosen:
            file, line, _, _, old, new = mutant = found[number]
            dead = killed(copy, mutant, given.seconds)
            survivors += not dead
            print(f"{'killed' if dead else 'SURVIVED'}: {file}:{line}: {old} -> {new}", flush=True)
    print(f"{len(chosen) - survivors} of {len(chosen)} killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
