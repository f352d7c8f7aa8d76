"""Two processes of two devices each, joined over loopback: the loss of one, and an end with a message if one dies."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jaxsim import processes

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_two_processes_agree_with_one_device_and_neither_hangs_when_the_other_is_killed():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu",
                   "PYTHONPATH": str(ROOT)}  # fmt: skip
    started = [
        subprocess.Popen([sys.executable, ROOT / "tests" / "mesh_processes.py", address, "2", str(number)], text=True,
                         env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for number in (0, 1)
    ]  # fmt: skip
    try:
        told = [process.communicate(timeout=150) for process in started]
    finally:
        for process in started:
            process.kill()
    (out, err), (other, other_err) = told
    # gloo tells of its connections on stdout.
    lines, others = ([line for line in text.splitlines() if not line.startswith("[Gloo]")] for text in (out, other))
    assert lines and others, err + other_err
    found = json.loads(lines[0])
    assert json.loads(others[0]) == found
    assert found.pop("devices") == 4 and found.pop("here") == 2
    assert max(found["loss"], found["gradient"]) <= 1e-6
    # The one that is left ends with an error that says what happened.
    assert lines[1:] == ["waiting"]
    assert started[1].returncode == -9 and started[0].returncode == processes.LOST
    assert "jaxsim: process 0 of 2: another process, or the way to it, is lost: " in err


@pytest.mark.parametrize(("arguments", "message"), [
    (("127.0.0.1:1", 2, 2), "number: expected a whole number below 2"),
    (("127.0.0.1", 2, 0), "address: expected host:port, got 127.0.0.1"),
    (("127.0.0.1:1", 0, 0), "processes: expected"),
])
def test_what_cannot_be_joined_is_refused_before_anything_starts(arguments, message):
    with pytest.raises(ValueError, match=message), processes.joined(*arguments):
        pytest.fail("joined")
