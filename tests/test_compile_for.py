"""`.ci/compile_for.py`: every program of a command is compiled, and what is refused is named."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess:
    return subprocess.run([sys.executable, str(ROOT / ".ci" / "compile_for.py"), *arguments], capture_output=True,
                          text=True, timeout=300, env={**os.environ, "PYTHONPATH": str(ROOT), **environment})


def training(folder: Path) -> tuple[str, ...]:
    """A short command, and the pairs that it reads."""
    pairs = folder / "pairs.tsv"
    pairs.write_text("".join(f"one{i % 7} two{i % 5} three{i}\tone{i % 7} two{i % 5} four{i}\n" for i in range(40)))
    return ("train", "--pairs", str(pairs), "--method", "lsa", "--dim", "4", "--subwords", "0", "--out",
            str(folder / "model"))


@pytest.mark.programs
def test_programs_of_a_training_are_compiled(tmp_path):
    done = run("cpu", "-", *training(tmp_path))
    assert done.returncode == 0, done.stderr
    made = done.stderr.partition("compile_for: ")[2]
    assert int(made.split()[0]) >= 5 and made.endswith("programs compiled, 0 refused\n")


@pytest.mark.programs
def test_a_refusal_is_named_and_fails(tmp_path):
    (tmp_path / "sitecustomize.py").write_text("""
import jax


def refuse(self, *args, **options):
    raise ValueError("no such type on this chip")

jax.stages.Lowered.compile = refuse
""")
    done = run("cpu", "-", *training(tmp_path), PYTHONPATH=f"{tmp_path}{os.pathsep}{ROOT}")
    assert done.returncode == 1
    assert "refused: ValueError: no such type on this chip" in done.stderr
    assert "0 programs compiled, " in done.stderr


def test_what_it_takes_is_said():
    done = run("gpu", "h200")
    assert done.returncode == 1 and "compile_for.py tpu v5e:2x2" in done.stderr
