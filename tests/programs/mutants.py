"""Changes one expression of the library at a time, in a copy, and counts which changes the tests notice.

A mutant swaps a comparison, an arithmetic or a logical operator, changes a number, or leaves out a `not`. It is killed
if a test of its package fails. Survivors are printed with file, line and change: each needs a test, or is equal to what
it replaces. `python tests/programs/mutants.py --sample 20 --seed 1` repeats a sample, `--skip 10` leaves out what
another run had of it, `--list` counts them, and `--again FILE` gives the survivors that a run printed to all tests.

The tests of the packages are run once on the code as it is, where every expression that will be changed tells which
test evaluates it. A mutant is then given to the files of tests that evaluate its expression, those called as its module
is first, and in a file to the tests that evaluate it first: a function that is already compiled is not evaluated again,
so the other tests of the file follow. Tests run in forks of one process that has loaded JAX and pytest and nothing of
ours. Tests that do not end, in ten times what they took before, count as noticing. POSIX alone.
"""

from __future__ import annotations

import argparse
import ast
import collections
import compileall
import contextlib
import json
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
    "jaxsim/losses": ["losses"], "jaxsim/sparse": ["sparse"], "jaxsim/optim": ["optim", "methods/test_ssi_beyond.py"],
    "jaxsim/evaluate": ["evaluate"], "jaxsim/text": ["text"], "jaxsim/model/index.py": ["model/test_index.py"],
    "jaxsim/checks.py": ["text/test_corpus.py", "model/test_index.py", "evaluate/test_metrics.py"],
    "jaxsim/linalg": ["linalg", "methods/test_methods_equations.py", "test_extremes.py"],
    "jaxsim/methods/projections": ["methods/test_methods_equations.py", "methods/test_methods.py",
                                   "methods/test_methods_refusals.py", "model/test_ranker.py"],
    "jaxsim/methods/s2net": ["methods/test_methods_equations.py", "methods/test_s2net_*.py",
                             "methods/test_distillation.py", "methods/test_methods.py",
                             "methods/test_methods_refusals.py"],
    "jaxsim/methods/ssi": ["methods/test_ssi*.py", "methods/test_methods_refusals.py"],
    "jaxsim/methods/topics": ["methods/topics"],
    "jaxsim/methods/weights": ["methods/test_models.py", "methods/test_vl_ext.py", "methods/test_itml.py",
                               "methods/test_methods_equations.py", "methods/test_preference_methods.py",
                               "methods/test_methods_refusals.py"],
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


_TELLS = '''"""Which expressions which tests evaluate; written by tests/programs/mutants.py into its copy."""
import os

_told = set()


def reached(number, value):
    test = os.environ.get("PYTEST_CURRENT_TEST", "").rpartition(" (")[0]
    if (number, test) not in _told and "MUTANTS_REACHED" in os.environ:
        _told.add((number, test))
        with open(os.environ["MUTANTS_REACHED"], "a") as file:
            file.write(f"{number} {test}\\n")
    return value
'''


def _tell(copy: Path, chosen: dict[int, tuple]) -> set[int]:
    """Makes every expression of the mutants tell when it is evaluated; returns those that cannot."""
    (copy / "jaxsim" / "_reached.py").write_text(_TELLS, encoding="utf-8")
    silent = set()
    for file in sorted({mutant[0] for mutant in chosen.values()}):
        path, numbers = copy / file, [number for number, mutant in chosen.items() if mutant[0] == file]
        lines = path.read_text(encoding="utf-8").split("\n")
        added: dict[int, list] = {}
        for number in numbers:
            _, line, start, end, *_ = chosen[number]
            before = f'__import__("jaxsim._reached")._reached.reached({number}, ('
            added.setdefault(line - 1, []).extend([(start, 1, start - end, before), (end, 0, end - start, "))")])
        for line, parts in added.items():
            data, made, last = lines[line].encode(), b"", 0
            for place, _, _, what in sorted(parts):
                made, last = made + data[last:place] + what.encode(), place
            lines[line] = (made + data[last:]).decode()
        whole = "\n".join(lines)
        try:
            compile(whole, file, "exec")
            if "numba" in whole:
                raise SyntaxError("Numba compiles this file")
            path.write_text(whole, encoding="utf-8")
        except SyntaxError:
            silent.update(numbers)
    return silent


class _Order:
    """A plugin: tests that evaluate the mutant come first; it keeps how long each took."""

    def __init__(self, first: dict[str, float]):
        self.first, self.took = first, {}

    def pytest_collection_modifyitems(self, items):
        items.sort(key=lambda item: self.first.get(item.nodeid, 1e9))

    def pytest_runtest_logreport(self, report):
        self.took[report.nodeid] = self.took.get(report.nodeid, 0.0) + report.duration


def _run(copy: Path, tests: list[Path], seconds: float, first: dict, told: Path | None = None, more=()) -> bool | str:
    """Whether tests pass, in a fork, or "hang" where they do not end. Raises where pytest itself fails."""
    command = ["-q", "-x", "-p", "no:cacheprovider", "-m", "not slow and not programs and not pages", *more,
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
            if told:
                os.environ["MUTANTS_REACHED"] = str(told)
            sys.dont_write_bytecode = not told  # two mutants of one file may have one size and one time
            import pytest

            order = _Order(first)
            status = int(pytest.main(command, plugins=[order]))
            if told:
                told.with_suffix(".json").write_text(json.dumps(order.took), encoding="utf-8")
        os._exit(status)
    end = time.monotonic() + seconds
    late = False
    while not late:
        late = time.monotonic() >= end
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            code = os.waitstatus_to_exitcode(status)
            if code > 2 and code != 5:  # 1: a test failed, 2: a module could not be loaded, 5: all are left out
                raise RuntimeError(f"pytest ended with {code}: {tests}")
            return code in (0, 5)
        time.sleep(0.02)
    os.killpg(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return "hang"


class Reached:
    """What the tests evaluate of the mutants: a file of tests, its seconds, and the tests of each mutant."""

    def __init__(self, copy: Path, chosen: dict[int, tuple], seconds: float, scratch: Path):
        """Runs the tests of all packages, a file at a time."""
        whole = {file: (copy / file).read_bytes() for file in {mutant[0] for mutant in chosen.values()}}
        self.silent = _tell(copy, chosen)
        self.of: dict[Path, dict[int, set[str]]] = {}
        self.took: dict[str, float] = {}
        self.seconds: dict[Path, float] = {}
        for test in sorted({test for mutant in chosen.values() for some in tests_of(mutant[0]) for test in some}):
            told, begun = scratch / "reached.txt", time.monotonic()
            told.write_text("")
            if _run(copy, [test], seconds, {}, told) is not True:
                raise RuntimeError(f"{test}: expected tests that pass before anything is changed")
            self.seconds[test] = time.monotonic() - begun
            self.took |= json.loads(told.with_suffix(".json").read_text(encoding="utf-8"))
            found = self.of.setdefault(test, {})
            for line in told.read_text(encoding="utf-8").splitlines():
                number, _, name = line.partition(" ")
                if number.isdecimal():
                    found.setdefault(int(number), set()).add(name)
        (copy / "jaxsim" / "_reached.py").unlink()
        for file, data in whole.items():
            (copy / file).write_bytes(data)

    def tests(self, number: int, file: str) -> tuple[list[Path], dict[str, float]]:
        """Files of tests that evaluate a mutant, in the order to try them, and an order of those tests."""
        own, others = tests_of(file)
        files = [test for some in (own, sorted(others, key=self.seconds.get)) for test in some
                 if number in self.silent or number in self.of[test]]  # fmt: skip
        rank = {str(test.relative_to(ROOT)): 1e4 * place for place, test in enumerate(files)}
        names = {name for test in files for name in self.of[test].get(number, ()) if name}
        return files, {name: rank.get(name.split("::")[0], 1e8) + self.took.get(name, 0.0) for name in names}


def outcome(copy: Path, number: int, mutant: tuple, reached: Reached | None, seconds: float) -> str:
    """What comes of a mutant: killed, killed by its time, or survived; by all tests where ``reached`` is None."""
    file = mutant[0]
    if reached is None:
        own, others = tests_of(file)
        slow = ("-m", "not programs and not pages")
        runs = [([ROOT / file], {}, ("--doctest-modules",)), *(([test], {}, slow) for test in own), (others, {}, slow)]
    else:
        tests, first = reached.tests(number, file)
        if not tests:
            return "SURVIVED, no test evaluates it"
        seconds = min(seconds, 20 + 10 * sum(reached.seconds[test] for test in tests))
        runs = [(tests, first, ())]
    with _changed(copy, mutant):
        for tests, first, more in runs:
            passed = _run(copy, tests, seconds, first, more=more) if tests else True
            if passed is not True:
                return "killed by its time" if passed == "hang" else "killed"
    return "SURVIVED"


@contextlib.contextmanager
def _changed(copy: Path, mutant: tuple):
    """The copy with a mutant in it."""
    file, line, start, end, _, new = mutant
    path = copy / file
    whole, times = path.read_text(encoding="utf-8"), path.stat()
    lines = whole.split("\n")
    data = lines[line - 1].encode()
    lines[line - 1] = (data[:start] + f"({new})".encode() + data[end:]).decode()
    path.write_text("\n".join(lines), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(whole, encoding="utf-8")
        os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))  # its compiled file is valid again


def survivors_of(told: str, found: list[tuple]) -> list[int]:
    """Numbers of the mutants that survived a run, by what it printed; lines may have moved since."""
    numbers = []
    for file, line, what in re.findall(r"^SURVIVED[^:]*: ([^:]+):(\d+): (.*) \(\d+ s\)$", told, re.MULTILINE):
        same = [number for number, (other, *_, old, new) in enumerate(found)
                if (other, f"{old} -> {new}") == (file, what)]  # fmt: skip
        numbers += sorted(same, key=lambda number: abs(found[number][1] - int(line)))[:1]
    return numbers


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
    parser.add_argument("--seconds", type=float, default=900, help="at most for the tests of one mutant")
    parser.add_argument("--again", type=Path, help="what an earlier run printed: its survivors alone, by all tests of "
                        "their package, doctests and slow ones too")
    parser.add_argument("--list", action="store_true")
    given = parser.parse_args()
    found = [mutant for mutant in mutants() if mutant[0].startswith(given.only)]
    print(f"{len(found)} mutants")
    if given.list:
        return 0
    numbers = dealt(found, given.seed)[given.skip : given.sample]
    if given.again is not None:
        numbers = survivors_of(given.again.read_text(encoding="utf-8"), found)
    counts: dict[str, collections.Counter] = {}
    _load()
    with tempfile.TemporaryDirectory(prefix="mutants-") as scratch:
        copy = Path(scratch) / "jaxsim"
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(".git", "__pycache__", "results", "site"))
        begun = time.monotonic()
        reached = None
        if given.again is None:
            reached = Reached(copy, {number: found[number] for number in numbers}, given.seconds, Path(scratch))
            print(f"{len(reached.took)} tests pass on the code as it is, {time.monotonic() - begun:.0f} s", flush=True)
        compileall.compile_dir(copy / "jaxsim", quiet=2)
        for number in numbers:
            file, line, _, _, old, new = found[number]
            begun = time.monotonic()
            told = outcome(copy, number, found[number], reached, given.seconds)
            place = next(place for place in TESTS if file == place or file.startswith(f"{place}/"))
            counts.setdefault(place, collections.Counter())[told.split(",")[0]] += 1
            print(f"{told}: {file}:{line}: {old} -> {new} ({time.monotonic() - begun:.0f} s)", flush=True)
    for place, some in sorted(counts.items()):
        print(f"{place}: {sum(some.values())} mutants, " + ", ".join(f"{n} {word}" for word, n in sorted(some.items())))
    survivors = sum(some["SURVIVED"] for some in counts.values())
    print(f"{len(numbers) - survivors} of {len(numbers)} killed")
    return int(survivors > 0)


if __name__ == "__main__":
    sys.exit(main())
