"""What tests of several methods share."""

from __future__ import annotations

import pytest

from jaxsim.methods.ssi import host


@pytest.fixture(params=["host", "scan"])
def loop(request, monkeypatch):
    """Steps of SSI by a loop of the host, or by the scan that takes its place without numba and on accelerators."""
    if request.param == "scan":
        monkeypatch.setattr(host, "compiled", lambda: None)
    elif host.compiled() is None:
        pytest.skip("numba is not installed, or JAX has an accelerator")
