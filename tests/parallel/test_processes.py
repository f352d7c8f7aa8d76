"""Two and four processes, joined over loopback: the loss of one device, and what happens if one dies."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import mesh_processes
import numpy as np
import pytest
from light import with_devices

from jaxsim.parallel import processes

ROOT = Path(__file__).parents[2]


def run(folder, what, number, devices):
    """Several processes; what each printed, what each said on stderr, and how each ended."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    environment = {**os.environ, "XLA_FLAGS": with_devices(devices),
                   "JAX_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT)}  # fmt: skip
    program = [sys.executable, ROOT / "tests" / "programs" / "mesh_processes.py", address, str(number)]
    started = [
        subprocess.Popen([*program, str(number), folder, what], text=True, env=environment, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        for number in range(number)
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
@pytest.mark.parametrize(("number", "devices"), [(2, 2), (4, 1)])
def test_processes_agree_with_one_device_and_none_hangs_when_another_is_killed(number, devices, tmp_path):
    mesh_processes.write(tmp_path)
    lines, errors, codes = run(tmp_path, "stop", number, devices)
    assert all(lines), "\n".join(errors)
    result = json.loads(lines[0][0])
    assert all(json.loads(one[0]) == result for one in lines)
    assert result.pop("devices") == 4 and result.pop("here") == devices
    assert max(result["loss"], result["gradient"]) <= 1e-6
    # Those that are left end with an error that says what happened.
    assert all(one[1:] == ["waiting"] for one in lines)
    assert codes == [-9 if one == 1 else processes.LOST for one in range(number)], "\n".join(errors)
    assert f"jaxsim: process 0 of {number}: another process, or the way to it, is lost: " in errors[0]
    # What they had saved is whole, and all go on from there to the bits of a fit that nobody stopped.
    lines, errors, codes = run(tmp_path, "go on", number, devices)
    assert codes == [0] * number and all(one == lines[0] for one in lines), "\n".join(errors)
    result = json.loads(lines[0][0])
    whole, resumed = result["losses"]
    assert result["same"] and whole == resumed and len(whole) == 7
    kept = {path.name for path in (tmp_path / "kept").iterdir()}
    assert kept == {"checkpoint.safetensors", "checkpoint.before.safetensors"}


@pytest.mark.programs
def test_different_settings_are_refused_in_every_process(tmp_path):
    mesh_processes.write(tmp_path)
    lines, errors, codes = run(tmp_path, "settings", 2, 1)
    message = r"gamma: expected the same in every process, got another in process \[1\] .* \({} in process {}\)"
    assert codes == [0, 0], "\n".join(errors)
    for number, gamma in enumerate(("10.0", "9.0")):
        assert re.fullmatch(message.format(re.escape(gamma), number), lines[number][0])
        assert [line.split(":")[0] for line in lines[number][1:4]] == ["init", "left", "groups"]
        assert all("expected the same in every process, got another in process [1]" in line
                   for line in lines[number][:4])
    assert [lines[0][4], lines[1][4]] == [
        "arguments: expected something that works in every process, got a failure in process [1]",
        "gamma: expected a positive number, got 0.0"]


@pytest.mark.programs
def test_scores_that_differ_are_those_of_process_0_in_every_process(tmp_path):
    mesh_processes.write(tmp_path)
    lines, errors, codes = run(tmp_path, "scores", 2, 1)
    assert codes == [0, 0] and lines[0] == lines[1] and len(lines[0]) == 4, "\n".join(errors)
    results = [json.loads(line) for line in lines[0]]
    assert all(steps == 6 and best == 6.0 for steps, best, _ in results)
    np.testing.assert_allclose(results[0][2], results[2][2], rtol=1e-4, atol=1e-5)  # terms shared out or not


@pytest.mark.programs
def test_topics_over_processes_are_those_of_one_and_go_on_and_differences_are_refused(tmp_path):
    mesh_processes.write(tmp_path)
    lines, errors, codes = run(tmp_path, "topics", 2, 1)
    assert codes == [0, 0], "\n".join(errors)
    result = json.loads(lines[0][0])
    assert lines[1][0] == lines[0][0]
    assert result["same"] and result["new"] == 3 and result["moved"] > 0 and result["error"] < 1e-4
    for one in lines:
        assert [line.split(":")[0] for line in one[1:4]] == ["documents", "key", "alpha"]
        assert all("expected the same in every process, got another in process [1]" in line for line in one[1:4])
    assert lines[0][4] == "arguments: expected something that works in every process, got a failure in process [1]"
    assert lines[1][4].startswith("alpha: expected")


@pytest.mark.programs
def test_an_error_in_one_process_ends_it_with_its_traceback_and_the_others_at_once(tmp_path):
    mesh_processes.write(tmp_path)
    _, errors, codes = run(tmp_path, "raises", 2, 1)
    assert codes == [processes.LOST, 1], "\n".join(errors)
    assert "another process, or the way to it, is lost" in errors[0]
    assert errors[1].rstrip().splitlines()[-1].startswith("ZeroDivisionError")


def test_an_address_that_nobody_answers_at_is_named():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
        with (pytest.raises(ConnectionError, match=f"expected an answer of process 0 at {address}, got none within 1"),
              processes.joined(address, 2, 1, patience=1)):
            pytest.fail("joined")


@pytest.mark.parametrize(("arguments", "message"), [
    (("127.0.0.1:1", 2, 2), "number: expected a whole number below 2"),
    (("127.0.0.1", 2, 0), "address: expected host:port, a port from 1 to 65535, got 127.0.0.1"),
    (("127.0.0.1:1", 0, 0), "processes: expected"),
    (("127.0.0.1:65536", 2, 0), "address: expected host:port, a port from 1 to 65535, got 127.0.0.1:65536"),
])
def test_what_cannot_be_joined_is_refused_before_anything_starts(arguments, message):
    with pytest.raises(ValueError, match=message), processes.joined(*arguments):
        pytest.fail("joined")
