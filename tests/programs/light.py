"""The flags of XLA with which the tests compile in little time: ``XLA_FLAGS=$(python tests/programs/light.py)``."""

from __future__ import annotations

import os
import subprocess
import sys

# Kernels are written by the emitter that XLA had before this one, which takes half the time to compile them.
LIGHT = "--xla_cpu_use_fusion_emitters=false"


def light() -> str:
    """XLA's flags of the environment, with those that make compiling cheap if the XLA that is installed has them."""
    given = os.environ.get("XLA_FLAGS", "")
    # XLA ends a process whose flags it does not know. It reads them when a device is first looked for.
    look = [sys.executable, "-c", "from jaxlib import xla_client; xla_client.make_cpu_client()"]
    if LIGHT in given or subprocess.run(look, env={**os.environ, "XLA_FLAGS": LIGHT}, capture_output=True).returncode:
        return given
    return f"{given} {LIGHT}".strip()


def as_users_have_it() -> dict[str, str]:
    """This process's environment without what makes compiling cheap: for what pages and notebooks show."""
    flags = os.environ.get("XLA_FLAGS", "").replace(LIGHT, "").strip()
    return {**os.environ, "XLA_FLAGS": flags, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}


def with_devices(number: int) -> str:
    """XLA's flags of this process, and as many devices as its CPU poses as."""
    return f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}".strip()


if __name__ == "__main__":
    print(light())
