from __future__ import annotations

import sys
import types

import pytest

from jaxsim import text
from jaxsim.data import docstrings


def test_real_docstrings_of_the_installed_packages(capfd):
    loaded = docstrings.load()
    assert capfd.readouterr() == ("", "")
    assert 4000 < len(loaded) < 8000
    assert set(loaded.sources) == set(docstrings.PACKAGES) == set(loaded.counts["versions"])
    assert loaded.counts["docstrings_read"] > len(loaded)
    assert len(set(zip(loaded.left, loaded.right, strict=True))) == len(loaded)
    assert all(len(text.words(body)) >= docstrings.MIN_BODY_WORDS for body in loaded.right)
    summaries = dict(zip(loaded.ids, loaded.left, strict=True))
    assert summaries["numpy.add"] == "Add arguments element-wise."
    assert not any("tests" in name.split(".") for name in loaded.ids)
    docstrings.load.cache_clear()
    assert docstrings.load().sha256 == loaded.sha256


def test_what_is_read_does_not_depend_on_optional_packages(monkeypatch):
    """A module that does not import here would add its docstrings on a machine that has what it needs."""
    real, failed = docstrings.importlib.import_module, []

    def watched(name, package=None):
        try:
            return real(name, package)
        except Exception:
            failed.extend([name] if name.partition(".")[0] in docstrings.PACKAGES else [])
            raise

    monkeypatch.setattr(docstrings.importlib, "import_module", watched)
    docstrings.load.cache_clear()
    ids = docstrings.load().ids
    assert not failed
    assert not [name for name in ids if "pytree_serialization" in name]  # needs flatbuffers, which may be here


@pytest.fixture
def package(monkeypatch):
    """A made-up package in place of the real ones."""
    module = types.ModuleType("toy")
    module.__doc__ = None
    monkeypatch.setitem(sys.modules, "toy", module)
    monkeypatch.setattr(docstrings, "PACKAGES", ("toy", "toy_that_is_not_installed"))
    docstrings.load.cache_clear()
    yield module
    docstrings.load.cache_clear()


def _function(doc, home="toy"):
    def function():
        """Replaced."""

    function.__doc__, function.__module__ = doc, home
    return function


BODY = "one two three four five six seven eight nine ten"


def test_what_becomes_a_pair(package):
    package.b = _function(f"Adds two\n    numbers.\n\n    {BODY}\n    ")
    package.a_copy = _function(f"Adds two numbers.\n\n{BODY}")
    package.compiled = _function(f"f(x, y=(1, 2), /)\n\nf(x)\n\nReal summary.\n\n{BODY}")
    package.short = _function("Too short body.\n\none two")
    package.word = _function(f"One\n\n{BODY}")
    package._private = _function(f"Not public.\n\n{BODY}")
    package.foreign = _function(f"Of another package.\n\n{BODY}", home="numpy")
    package.number = 3
    package.Class = type(
        "Class", (), {"__doc__": None, "__module__": "toy", "method": _function(f"A method.\n\n{BODY}")}
    )
    loaded = docstrings.load()
    assert loaded.ids == ("toy.Class.method", "toy.a_copy", "toy.compiled")
    assert loaded.left == ("A method.", "Adds two numbers.", "Real summary.")
    assert loaded.right == (BODY,) * 3
    assert loaded.counts["versions"] == {} and loaded.counts["docstrings_read"] == 6


def test_what_changes_from_run_to_run_is_left_out(package):
    package.f = _function(f"Draws numbers.\n\n{BODY}\narray([1.5])  # may vary\n{{'b', 'a'}} <x at 0x7f12ab>")
    assert docstrings.load().right == (f"{BODY}\n'a', 'b' <x>",)


def test_no_package_gives_an_empty_collection(package):
    loaded = docstrings.load()
    assert len(loaded) == 0 and loaded.ids == ()
