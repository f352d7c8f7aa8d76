"""Short runs of the programs that damage folders and try any input, and the table of docs/reliability.md."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reliability.md"
BUDGET, EXAMPLES = 40, 80
LONG = "slopes", "fits", "vectors_compared", "cosines"  # inputs of these compile many programs
KINDS = ("corpus", "unfinished", "model", "bilinear", "topics", "grams", "words", "translation", "completion", "begun",
         "index", "checkpoint", "fit")
INPUTS = ("vectors_compared", "cosines", "documents", "every_pair", "slopes", "fits", "judged", "texts", "files")


@pytest.fixture(scope="module")
def reader():
    import mutated_folders

    found = mutated_folders.Reader()
    yield found
    found.close()


@pytest.mark.programs
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_folders_are_refused_and_nothing_crashes(kind, reader):
    import mutated_folders

    assert set(mutated_folders.KINDS) == set(KINDS)
    told = []
    counts = mutated_folders.mutate(kind, BUDGET, 7, reader, said=told.append)
    assert not [counts[word] for word in (*mutated_folders.FAULTS, "changed") if counts[word]], "\n".join(told)
    assert counts["refused"] >= BUDGET // 8, counts


@pytest.mark.programs
@pytest.mark.filterwarnings("ignore")  # which are no errors for users
def test_every_command_answers_or_refuses_files_that_nobody_means():
    import hostile_files

    told = []
    counts = hostile_files.tried(contents=["blanks", "nan", "digits", "question", "head", ".xz"], said=told.append)
    assert not counts["fault"], "\n".join(told)
    assert counts["refused"] >= 100 and counts["answered"] >= 10, counts


@pytest.mark.slow
@pytest.mark.parametrize("name", [pytest.param(name, marks=[pytest.mark.programs] * (name in LONG)) for name in INPUTS])
def test_any_input_has_an_answer_or_is_refused(name):
    pytest.importorskip("hypothesis")
    any_input = importlib.import_module("any_input")
    assert {program.__name__ for program in any_input.PROGRAMS} == set(INPUTS)
    any_input.run(getattr(any_input, name), EXAMPLES, derandomize=True)


def test_every_promise_names_a_test_that_is_there():
    promises = PAGE.read_text(encoding="utf-8").split("\n## ")[0]
    rows = [line for line in promises.splitlines() if line.startswith("| ")][1:]
    assert len(rows) >= 12
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row)
        assert named, row
        for path, test in named:
            assert re.search(rf"^def {test}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, test)
