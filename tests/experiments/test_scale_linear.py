"""The closed forms' rows of the scale tables: on little data, and judged as at the full sizes; never a time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def linear(monkeypatch):
    """The module, at sizes for which every solver is done at once, and without gensim."""
    from experiments.scale import linear as scale_linear

    small = scale_linear.PRESETS["quick"]._replace(linear_pairs=60, linear_terms=(30,), dense_terms=30, per_doc=8,
                                                   linear_dim=3)
    monkeypatch.setitem(scale_linear.PRESETS, "quick", small)
    monkeypatch.setattr(scale_linear, "installed", lambda name: None)
    return scale_linear


@pytest.mark.parametrize("method", ["lsa", "opca", "cca"])
def test_eigenvalues_are_those_of_lapack_and_have_no_residual(linear, method):
    sheet, points = linear.row(method, linear.PRESETS["quick"], "quick", 1)
    assert [(one["contestant"], one["terms"]) for one in points] == [("jaxsim", 30), ("jaxsim", 30), ("eigh", 30)]
    ours, _, dense = (one["values"] for one in points)
    assert ours == pytest.approx(dense, rel=1e-4) and dense > 0
    assert max(one["residual"] for one in points) < 1e-3
    assert not sheet.limits
    assert any("not measured" in line.get("note", "") for line in sheet.lines) == (method == "lsa")


def test_other_eigenvalues_than_those_of_lapack_are_no_result(linear, monkeypatch):
    def wrong(method, sides, k):
        fit, read = linear.by_jaxsim(method, sides, k)
        return fit, lambda result: linear.Found(read(result).left[:, ::-1])

    monkeypatch.setitem(linear.CONTESTANTS, "eigh", wrong)
    with pytest.raises(ArithmeticError, match="lsa: eigenvalues: expected a relative error of at most 0.05"):
        linear.row("lsa", linear.PRESETS["quick"], "quick", 1)


def test_a_residual_is_seen(linear):
    sides = linear.corpus(60, 30, 8)
    fit, read = linear.by_jaxsim("opca", sides, 3)
    result = read(fit()).left
    _, residuals = linear.quality("opca", sides, linear.Found(result + 0.1 * np.abs(result).max()))
    assert residuals.min() > 0.1


def test_the_full_row_has_limits_of_its_memory(linear, monkeypatch):
    def measured(preset, method, contestant, num_terms):
        return {"contestant": contestant, "m": 43_380, "terms": num_terms, "k": 1_000, "seconds": 60.0,
                "peak_gb": 25.0 if num_terms == 20_000 else 9.0, "values": [2.0, 1.0], "residual": 0.01,
                "residual_median": 0.001}

    monkeypatch.setattr(linear, "measured", measured)
    sheet, points = linear.row("cca", linear.PRESETS["full"], "full", 2)
    assert {"name": "GB at 20,000 terms", "value": 25.0, "at_most": 24.0} in sheet.limits
    assert [one["terms"] for one in points] == [20_000, 100_000, 5_000, 5_000]
    (beside,) = (line for line in sheet.lines if line["name"] == "eigh, 5,000 terms")
    assert beside["ratio"] == 1.0 and "sum to 1.000000 of jaxsim's" in beside["note"]


@pytest.mark.programs
def test_a_process_that_fails_is_no_point():
    from experiments.scale import points as scale_points

    assert scale_points.told_by("import sys; print(sys.argv[1])", '{"a": 3}', what="it") == {"a": 3}
    with pytest.raises(ArithmeticError, match=r"lsa: the process of this point failed with status 1: \['gone'\]"):
        scale_points.told_by("raise SystemExit('gone')", what="lsa")


@pytest.mark.programs
def test_a_point_in_a_process_of_its_own_is_that_of_this_one():
    from experiments.scale import linear, points

    asked = ("quick", "lsa", "eigh", str(linear.PRESETS["quick"].dense_terms))
    alone, here = points.told_by(linear.ALONE, *asked, what="lsa"), linear.measure(*asked[:3], int(asked[3]))
    np.testing.assert_allclose(alone["values"], here["values"], rtol=1e-5)


@pytest.mark.programs
def test_a_process_of_a_point_ends_with_one_that_is_killed():
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(120)
        point = f"import socket, time; s = socket.create_connection({server.getsockname()}); time.sleep(600)"
        paths = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        program = f"from experiments.scale import points; points.told_by({point!r}, what='it')"
        with subprocess.Popen([sys.executable, "-c", program], env={**os.environ, "PYTHONPATH": paths}) as process:
            connection, _ = server.accept()
            with connection:
                process.kill()
                connection.settimeout(60)
                assert connection.recv(1) == b""  # closed, long before its 600 s are over
