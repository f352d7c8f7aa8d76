"""Docstrings of installed packages: real (summary, body) pairs on every machine, without a download.

The summary is the first paragraph of a docstring and the body is the rest. Which pairs there are depends on the
versions of the packages, which the counts name; the digest covers the texts. Lines that change from run to run
(examples with random output, marked "may vary", and addresses) are left out, and so are modules that import only where
an optional package is installed: at equal versions the digest is equal.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import inspect
import io
import logging
import pkgutil
import re
import signal
import threading
import warnings
from collections.abc import Iterator
from types import ModuleType

from jaxsim import text
from jaxsim.data import pairs

PACKAGES = ("numpy", "scipy", "jax", "flax", "optax", "jaxopt")
MIN_SUMMARY_WORDS = 2
MIN_BODY_WORDS = 10
# Modules that are tests, tools or need other packages or devices (importing them is slow, noisy or fails), and the
# generated wrappers of BLAS and LAPACK, whose texts differ in nothing but names.
_SKIPPED = frozenset(
    "tests test testing conftest tools f2py distutils jax2tf tensorflow tensorboard collect_profile mosaic pallas "
    "blas lapack roofline cloud_tpu_init export_back_compat_test_util examples "
    # They import only where flatbuffers is installed, which other packages bring and jax does not ask for.
    "pytree_serialization pytree_serialization_utils".split()
)
_SIGNATURE = re.compile(r"(?:[\w, ]+ = )?[\w.]+\([^()]*(?:\([^()]*\)[^()]*)*\)(?:\s*->.*)?", re.DOTALL)


def _steady(doc: str) -> str:
    """The text without what differs from run to run: random output, addresses, the order inside printed sets."""
    doc = re.sub(r".*# may vary.*\n?| at 0x[0-9a-f]+", "", doc)
    return re.sub(r"\{('\w+'(?:, '\w+')+)\}", lambda found: ", ".join(sorted(found[1].split(", "))), doc)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without warnings, log messages, output, and the stack that a library would print on SIGTERM from then on."""
    disabled = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with (
            warnings.catch_warnings(),
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
        ):
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        before = signal.getsignal(signal.SIGTERM)  # Python's; a library's own has come before it
        if before is not None and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, before)


def _modules(package: str) -> Iterator[ModuleType]:
    """The public modules of a package that import, shallow ones first, then by name."""
    try:
        top = importlib.import_module(package)
    except Exception:  # noqa: BLE001  (an optional package may fail in any way; then it has no docstrings to give)
        return
    yield top
    level = [top]
    while level:
        result: list[ModuleType] = []
        for parent in level:
            names = sorted(info.name for info in pkgutil.iter_modules(getattr(parent, "__path__", ())))
            for name in names:
                if name.startswith("_") or name in _SKIPPED or name.endswith(("_test", "_tests")):
                    continue
                with contextlib.suppress(Exception, SystemExit):
                    result.append(importlib.import_module(f"{parent.__name__}.{name}"))
        yield from result
        level = result


def _objects(module: ModuleType, package: str) -> Iterator[tuple[str, object]]:
    """Public functions and classes of a module that belong to the package, and the classes' public methods."""
    yield module.__name__, module
    for name in sorted(vars(module)):
        if name.startswith("_"):
            continue
        value = vars(module)[name]
        home = getattr(value, "__module__", None) or package
        if inspect.ismodule(value) or not callable(value) or str(home).partition(".")[0] != package:
            continue
        yield f"{module.__name__}.{name}", value
        if inspect.isclass(value):
            for member in sorted(vars(value)):
                if not member.startswith("_"):
                    yield f"{module.__name__}.{name}.{member}", vars(value)[member]


def _documented(package: str, modules: list[ModuleType]) -> Iterator[tuple[str, str, str]]:
    """Identifier, summary and body of each docstring, the first place of an object only."""
    seen: set[int] = set()
    for module in modules:
        for name, value in _objects(module, package):
            if id(value) in seen:
                continue
            seen.add(id(value))
            doc = getattr(value, "__doc__", None)
            if isinstance(doc, str):
                summary, _, body = _steady(inspect.cleandoc(doc)).partition("\n\n")
                # Signatures such as "add(x1, x2, /)" or "k = isamax(x)" stand before the summary of compiled functions.
                while body and _SIGNATURE.fullmatch(summary.strip()):
                    summary, _, body = body.strip().partition("\n\n")
                yield name, " ".join(summary.split()), body.strip()


@functools.cache
def load() -> pairs.Pairs:
    """Load (summary, body) pairs of the public docstrings of numpy, scipy, jax, flax, optax and jaxopt.

    Public modules are imported in a fixed order; a package or module that does not import is left out, and warnings and
    output of the imports are dropped. A pair needs at least 2 words in its summary and 10 in its body; equal pairs
    (re-exported or copied docstrings) count once, under the first name.

    Returns:
      The pairs: left summary, right body, source the package. ``counts`` holds the versions of the packages and how
      many docstrings were read. The result is kept for later calls.

    Example:
      >>> load().languages
      ('en', 'en')
    """
    rows: list[tuple[str, str, str, str]] = []
    unique: set[tuple[str, str]] = set()
    versions: dict[str, str] = {}
    read = 0
    with _quiet():
        # All modules first: SciPy rewrites a docstring of NumPy when it is imported.
        modules = {package: list(_modules(package)) for package in PACKAGES}
        for package in PACKAGES:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                versions[package] = importlib.metadata.version(package)
            for name, summary, body in _documented(package, modules[package]):
                read += 1
                long_enough = len(text.words(summary)) >= MIN_SUMMARY_WORDS and len(text.words(body)) >= MIN_BODY_WORDS
                if long_enough and (summary, body) not in unique:
                    unique.add((summary, body))
                    rows.append((name, summary, body, package))
    ids, left, right, sources = zip(*rows, strict=True) if rows else ((), (), (), ())
    return pairs.make(
        "docstrings",
        ids,
        left,
        right,
        sources=sources,
        languages=("en", "en"),
        counts={"docstrings_read": read, "versions": versions},
        differs="substitute: summaries and bodies of docstrings in place of the papers' corpora",
    )
