"""A program that is killed by ``kill -9`` when it has written its first checkpoint."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path


def killed(program: str, arguments: Sequence, written: Path, **environment: str) -> None:
    """Starts an example on the CPU and kills it as soon as a file is there; it must not have ended before."""
    child = subprocess.Popen([sys.executable, program, *map(str, arguments)],
                             env={**os.environ, "JAX_PLATFORMS": "cpu", **environment})  # fmt: skip
    try:
        deadline = time.monotonic() + 180
        while not written.exists() and time.monotonic() < deadline and child.poll() is None:
            time.sleep(0.02)
    finally:
        child.kill()
    assert child.wait(timeout=60) == -signal.SIGKILL and written.exists(), "the example ended before it was killed"
