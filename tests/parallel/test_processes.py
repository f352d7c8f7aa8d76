"""Two processes of two devices each, joined over loopback: the loss of one device, and what happens if one dies."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsim.parallel import processes

ROOT = Path(__file__).parents[2]


def run(folder, what):
    """Two processes; what each printed, what each said on stderr, and how each ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu",
                   "PYTHONPATH": str(ROOT)}  # fmt: skip
    program = [sys.executable, ROOT / "tests" / "programs" / "mesh_processes.py", address, "2"]
    started = [
        subprocess.Popen([*program, str(number), folder, what], text=True, env=environment, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        for number in (0, 1)
    ]  # fmt: skip
    try:
        facts = [process.communicate(timeout=150) for process in started]
    finally:
        for process in started:
            process.kill()
    # gloo tells of its connections on stdout, of several threads at once.
    lines = [re.findall("told: (.*)", out) for out, _ in facts]
    return lines, [err for _, err in facts], [process.returncode for process in started]


@pytest.mark.programs
def test_two_processes_agree_with_one_device_and_neither_hangs_when_the_other_is_killed(tmp_path):
    (lines, others), errors, codes = run(tmp_path, "stop")
    assert lines and others, "\n".join(errors)
    result = json.loads(lines[0])
    assert json.loads(others[0]) == result
    assert result.pop("devices") == 4 and result.pop("here") == 2
    assert max(result["loss"], result["gradient"]) <= 1e-6
    # The one that is left ends with an error that says what happened.
    assert lines[1:] == ["waiting"]
    assert codes == [processes.LOST, -9]
    assert "jaxsim: process 0 of 2: another process, or the way to it, is lost: " in errors[0]
    # What they had saved is whole, and both go on from there to the bits of a fit that nobody stopped.
    (lines, others), errors, codes = run(tmp_path, "go on")
    assert codes == [0, 0] and lines == others, "\n".join(errors)
    result = json.loads(lines[0])
    whole, resumed = result["losses"]
    assert result["same"] and whole == resumed and len(whole) == 7
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint.safetensors", "checkpoint.before.safetensors"}


@pytest.mark.parametrize(("arguments", "message"), [
    (("127.0.0.1:1", 2, 2), "number: expected a whole number below 2"),
    (("127.0.0.1", 2, 0), "address: expected host:port, got 127.0.0.1"),
    (("127.0.0.1:1", 0, 0), "processes: expected"),
])
def test_what_cannot_be_joined_is_refused_before_anything_starts(arguments, message):
    with pytest.raises(ValueError, match=message), processes.joined(*arguments):
        pytest.fail("joined")
