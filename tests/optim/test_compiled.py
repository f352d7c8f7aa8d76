"""A half-written program, in the folder of compiled programs that the tests' processes share, disturbs none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings

PROGRAM = "import jax; print(jax.jit(lambda x: x * 3 + 4)(1.0))"


def test_a_half_written_program_is_compiled_again_and_nothing_is_said(tmp_path):
    environment = {**os.environ, "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
                   "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "JAX_PLATFORMS": "cpu",
                   "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}  # fmt: skip

    def run(**more):
        return subprocess.run([sys.executable, "-c", PROGRAM], env=environment | more, capture_output=True, text=True)

    whole = run()
    kept = [path for path in tmp_path.iterdir() if path.name.endswith("-cache")]
    assert (whole.stdout, whole.stderr) == ("7.0\n", "") and kept
    for path in kept:
        path.write_bytes(path.read_bytes()[:-9])
    assert "Error reading persistent compilation cache entry" in run(PYTHONWARNINGS="").stderr  # what JAX says of it
    again = run()
    assert (again.stdout, again.stderr) == ("7.0\n", "")


def test_nor_is_it_an_error_in_the_tests_own_processes():
    warnings.warn("Error reading persistent compilation cache entry for 'jit_f': cut off", UserWarning, stacklevel=1)
    warnings.warn("Error writing persistent compilation cache entry for 'jit_f': disk full", UserWarning, stacklevel=1)
