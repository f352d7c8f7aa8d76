"""Strict settings for every test, the only two sources of random numbers, and a folder for the commands."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import shutil
import tempfile
from pathlib import Path

# Two processes of tests have a core each: threads of OpenBLAS that wait for one another take it from the other process.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import jax
import numpy as np
import pytest
from half_written import half_written_program
from light import light, one_context

# Three quarters of the tests' time went into compiling programs that run once. So they, and those of the commands that
# they start, are compiled with few optimisations, in less time; figures that pages and notebooks show are made as users
# make them. JAX_DISABLE_MOST_OPTIMIZATIONS=0 has all compiled so, as in .ci/versions. `light` gives flags to that end.
LIGHT = os.environ.setdefault("JAX_DISABLE_MOST_OPTIMIZATIONS", "1") != "0"
jax.config.update("jax_disable_most_optimizations", LIGHT)
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")
if LIGHT:
    one_context()
    # Programs need not know which lines of Python they come from: finding these takes time for each operation.
    jax.config.update("jax_traceback_in_locations_limit", 0)


MOST_MAPS = 30_000
# Tracing makes many objects and few cycles: Python's own 700 had looking for cycles take 5 % of the tests' time.
gc.set_threshold(50_000, 20, 100)


def pytest_configure(config) -> None:
    """Programs that one process of the tests compiles, its workers and the commands they start need not."""
    if hasattr(config, "workerinput"):
        return
    # Nothing locks the folder of these programs: what one process is writing, or was when it was killed, another may
    # read. JAX says so and compiles it again; pyproject.toml has the same two filters for the tests' own processes.
    if LIGHT:
        os.environ["XLA_FLAGS"] = light()
    os.environ["PYTHONWARNINGS"] = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), *half_written_program()]))
    if "JAX_COMPILATION_CACHE_DIR" in os.environ:
        return
    config.compiled_programs = tempfile.mkdtemp(prefix="jaxsim-compiled-")
    for name, value in {"jax_compilation_cache_dir": config.compiled_programs,
                        "jax_persistent_cache_min_compile_time_secs": 0.0,
                        "jax_persistent_cache_min_entry_size_bytes": -1}.items():  # fmt: skip
        jax.config.update(name, value)  # this process; the others read the environment
        os.environ[name.upper()] = str(value)


def pytest_unconfigure(config) -> None:
    """The programs go when the tests are done. A worker, which has told its results, leaves the rest to the system.

    JAX and Python would take seconds to free its programs one by one.
    """
    if hasattr(config, "workerinput"):
        os._exit(0)
    shutil.rmtree(getattr(config, "compiled_programs", ""), ignore_errors=True)


def pytest_collection_modifyitems(items) -> None:
    """Pages come first: they take longest, and one that began last would leave the other process without work."""
    items.sort(key=lambda item: item.get_closest_marker("pages") is None)


def pytest_collection_finish(session) -> None:
    """Garbage collection need not walk over modules and tests, which live as long as the process."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="module", autouse=True)
def few_programs():
    """Lets go of compiled programs where they are many: each takes maps of memory, of which a process has 65,530."""
    yield
    maps = Path("/proc/self/maps")
    if maps.exists() and maps.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()


@pytest.fixture
def without_64_bits():
    """A context without 64-bit types, as users have it; `jax.enable_x64` is newer than the lowest version of JAX."""

    @contextlib.contextmanager
    def context():
        jax.config.update("jax_enable_x64", False)
        try:
            yield
        finally:
            jax.config.update("jax_enable_x64", True)

    return context


@pytest.fixture
def key() -> jax.Array:
    """A JAX random key, the same in every test."""
    return jax.random.key(0)


@pytest.fixture
def rng() -> np.random.Generator:
    """A NumPy generator, fresh and the same in every test."""
    return np.random.default_rng(0)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to work in, with pairs of texts."""
    from command_line import LEFT, RIGHT

    monkeypatch.chdir(tmp_path)
    rows = zip(LEFT, RIGHT, strict=True)
    (tmp_path / "pairs.tsv").write_text("".join(f"{left}\t{right}\n" for left, right in rows))
    (tmp_path / "texts.txt").write_text("".join(f"{text}\n" for text in RIGHT))
    return tmp_path


@pytest.fixture
def server(monkeypatch):
    """A web server on this machine, with the two files of the corpus "small", which is in the catalogue."""
    from local_server import ONE, TWO, corpus, serve

    from jaxsim.data import catalogue

    for name in ("JAXSIM_DATA", "JAXSIM_DATA_URL"):
        monkeypatch.delenv(name, raising=False)
    for name in ("NO_PROXY", "no_proxy"):
        monkeypatch.setenv(name, "127.0.0.1")
    with serve() as result:
        result.bodies = {"/public/one.txt": ONE, "/public/two.txt": TWO}
        monkeypatch.setitem(catalogue.CORPORA, "small", corpus(result.url))
        yield result


@pytest.fixture
def fully_compiled():
    """For tests that look at a compiled program: all of JAX's optimisations, as users have them."""
    jax.config.update("jax_disable_most_optimizations", False)
    yield
    jax.config.update("jax_disable_most_optimizations", LIGHT)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A model folder, trained once."""
    from command_line import LEFT, OPCA, RIGHT

    from jaxsim import cli

    place = tmp_path_factory.mktemp("trained")
    (place / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(LEFT, RIGHT, strict=True)))
    assert cli.main(["train", "--pairs", str(place / "pairs.tsv"), "--out", str(place / "model"), *OPCA]) == 0
    return str(place / "model")


class _Modules:
    def __getattr__(self, name):
        return importlib.import_module(f"experiments.{name}")


@pytest.fixture(scope="module")
def scripts():
    """The modules of `experiments`, imported when they are named: ``scripts.tweak_folds``."""
    return _Modules()
