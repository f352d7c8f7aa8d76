"""Every command of the task pages runs, from an empty folder, on little data."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "train-on-your-pairs.md"


def blocks(page: Path) -> list[str]:
    """The fenced blocks of shell commands."""
    return re.findall(r"^```bash\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_train_on_your_pairs(tmp_path):
    programs, work = tmp_path / "bin", tmp_path / "work"
    programs.mkdir()
    work.mkdir()
    for name, words in (("python", ""), ("jaxsim", "-m jaxsim")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {words} "$@"\n')
        (programs / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT)}
    first, *rest = blocks(PAGE)
    # Few pairs, all of one package: those of different ones share few words.
    small = "head -n 60 all.tsv > pairs.tsv; tail -n 20 pairs.tsv > test.tsv; cp test.tsv all.tsv"
    shown = []
    for block in (f"{first}\nwc -l < pairs.tsv\n{small}", *rest):
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], cwd=work, env=environment, capture_output=True,
                              text=True)  # fmt: skip
        assert done.returncode == 0, f"{block}\n{done.stderr}"
        assert "Traceback" not in done.stderr
        shown.append(done.stdout)
    assert int(shown[0]) > 100
    assert shown[1].startswith("dev (") and "untrained" in shown[1] and "accuracy" in shown[2]
    assert [line.split("\t")[0] for line in shown[3].splitlines()] == ["1", "2", "3"] * 2
    assert np.load(work / "documents.npy").shape[0] == 20 and -1 <= float(shown[4]) <= 1
    assert "s2net" in shown[5] and (work / "model").is_dir() and not (work / "model.checkpoint").exists()
    figures = {line.split(": ")[1] for line in shown[6].splitlines() if line.startswith(("training", "roc", "neigh"))}
    assert figures == {f"figures/{path.name}" for path in (work / "figures").iterdir()} and len(figures) == 3
