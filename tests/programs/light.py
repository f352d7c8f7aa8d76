"""The flags of XLA with which the tests compile in little time: ``XLA_FLAGS=$(python tests/programs/light.py)``."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

# Kernels are written by the emitter that XLA had before this one, which takes half the time to compile them. Those of a
# program are one module of LLVM, not several that two processes of tests have no cores for: two thirds of what is left.
LIGHT = "--xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
MOST_MODULES = 500


def light() -> str:
    """XLA's flags of the environment, with those that make compiling cheap if the XLA that is installed has them."""
    given = os.environ.get("XLA_FLAGS", "")
    # XLA ends a process whose flags it does not know. It reads them when a device is first looked for.
    look = [sys.executable, "-c", "from jaxlib import xla_client; xla_client.make_cpu_client()"]
    if LIGHT in given or subprocess.run(look, env={**os.environ, "XLA_FLAGS": LIGHT}, capture_output=True).returncode:
        return given
    return f"{given} {LIGHT}".strip()


def one_context() -> None:
    """Has JAX lower programs in one MLIR context, where it makes one for each, in 5 ms: a tenth of the time.

    What MLIR keeps once for all that has the same value, constants too, lives as long as its context: after
    ``MOST_MODULES`` programs comes a new one. A JAX that makes contexts elsewhere goes on as it is.
    """
    from jax._src.interpreters import mlir

    new, lock, held = getattr(mlir, "make_ir_context", None), threading.Lock(), []
    if new is None:
        return

    def shared():
        with lock:
            if not held or held[0] == MOST_MODULES:
                held[:] = [0, new()]
            held[0] += 1
            return held[1]

    mlir.make_ir_context = shared


def as_users_have_it() -> dict[str, str]:
    """This process's environment without what makes compiling cheap: for figures that pages and notebooks show."""
    flags = os.environ.get("XLA_FLAGS", "").replace(LIGHT, "").strip()
    return {**os.environ, "XLA_FLAGS": flags, "JAX_DISABLE_MOST_OPTIMIZATIONS": "0"}


def with_devices(number: int) -> str:
    """XLA's flags of this process, and as many devices as its CPU poses as."""
    return f"{os.environ.get('XLA_FLAGS', '')} --xla_force_host_platform_device_count={number}".strip()


if __name__ == "__main__":
    print(light())
