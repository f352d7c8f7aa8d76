"""Where a run happens: commit, versions, device, precision and command, for its record."""

from __future__ import annotations

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import jax

GENERATED = ("experiments/results", "BENCHMARKS.md", "docs/figures", "docs/results")
"""Paths that a run itself may change: they do not make a tree dirty."""

_PACKAGES = (
    "jaxsim-text", "jax", "jaxlib", "numpy", "scipy", "optax", "jaxopt", "flax",
    "fugashi", "unidic-lite", "scikit-learn", "torch", "faiss-cpu", "gensim", "eflomal", "tomotopy",
)  # fmt: skip


def environment(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Describes this run; call it once, at the start, and hand it to `records.new`.

    Args:
      command: What to type, ``python`` first, where that is not how this process began, as in a notebook.

    Returns:
      `versions, device, precision, commits, dirty, command, started`. The one commit is `"unknown"`, and `dirty`
      then True, where the package does not stand in a git checkout of its own. `dirty` ignores results and generated
      files. `command` holds no absolute path.
    """
    commit, dirty = _commit(Path(__file__).resolve())
    return {
        "versions": _versions(),
        "device": _device(),
        "precision": _precision(),
        "commits": [commit],
        "dirty": dirty,
        "command": _command(sys.orig_argv if command is None else list(command)),
        "started": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _commit(module: Path) -> tuple[str, bool]:
    """Commit and dirtiness of the checkout that tracks `module`, a file `<root>/experiments/kit/<name>.py`."""
    root = module.parents[2]
    try:
        _git(root, "ls-files", "--error-unmatch", str(module.relative_to(root)))
        commit = _git(root, "rev-parse", "HEAD").strip()
        outside = [f":(exclude){path}" for path in GENERATED]
        dirty = _git(root, "status", "--porcelain", "--untracked-files=all", "--", ".", *outside).strip() != ""
    except (OSError, subprocess.SubprocessError):
        return "unknown", True
    return commit, dirty


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for name in _PACKAGES:
        try:
            versions[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return versions


def _device() -> str:
    devices = jax.devices()
    kind = devices[0].device_kind
    if devices[0].platform == "cpu":
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return f"cpu, {_cpu_name()}, {cores} cores"
    return f"{devices[0].platform}, {kind}, {len(devices)} devices"


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _precision() -> str:
    width = "float64" if jax.config.jax_enable_x64 else "float32"
    return f"{width}, matmul {jax.config.jax_default_matmul_precision or 'default'}"


def _command(arguments: list[str]) -> str:
    """The command as one would type it in the checkout: paths below the current folder relative, others by name."""

    def shown(argument: str) -> str:
        option, equals, value = argument.partition("=") if argument.startswith("--") else ("", "", argument)
        if os.path.isabs(value):
            path = Path(value)
            value = path.relative_to(Path.cwd()).as_posix() if path.is_relative_to(Path.cwd()) else path.name
        return f"{option}{equals}{value}"

    return shlex.join(["python", *map(shown, arguments[1:])])
