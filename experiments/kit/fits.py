"""Fits kept on disk, so that an interrupted run goes on where it stopped and scripts share what they fit.

A fit is found again by what it depends on: the method and the `VERSION` that its module states (1 unless it does), and
the content of all its arguments, data included. Nothing depends on who asks: the OPCA of one script is a start of
S2Net in another. A method whose numbers change states a higher `VERSION`; sources are not compared.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import pickle
import shutil
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import filelock
import jax
import numpy as np
import scipy.sparse

from jaxsim import checks, io
from jaxsim.optim import Fit

__all__ = ["Fits", "digest", "version_of"]

_MAGIC, _DIGEST = b"jaxsim fit, digest, pickle\n", 32
"""What a file begins with, and the bytes of the digest that follows it."""


class Fits:
    """A folder of fits, one file each, written in one step: a kill leaves a whole file or none.

    Attributes:
      folder: Where they are, made when it is needed.
      spent: What asking for them took now.
      versions: Method -> version, of the fits asked for since `restart`.
    """

    def __init__(self, folder: Path, say: Callable[[str], None] = print):
        """Nothing is read or written yet."""
        self.folder, self.say = Path(folder), say
        self.restart()

    def restart(self) -> None:
        """Counts anew: a row begins."""
        self.spent, self.versions, self._seconds = 0.0, {}, {}

    @property
    def seconds(self) -> float:
        """What the fits asked for since `restart` took when they were made, each counted once."""
        return sum(self._seconds.values())

    def fit(
        self,
        method: ModuleType | Callable[..., Fit],
        *,
        reads: Any = None,
        ignore: Collection[str] = (),
        checkpoint: bool = False,
    ) -> Callable[..., Fit]:
        """A method's ``fit``, with the same arguments, that reads its result from the folder where it is there.

        Args:
          method: A module with a function ``fit``, or a function that returns a `Fit`.
          reads: What functions among the arguments depend on, such as the development data of ``validate``. A function
            at the top of a module is known by its name; any other needs this.
          ignore: Arguments that change nothing in the result, such as products that are only handed on.
          checkpoint: Whether the method gets a folder ``checkpoint=`` to go on from; it is gone when the fit is done.

        Returns:
          ``fit(*data, **settings)``.

        Raises:
          ValueError: an argument has no digest (when the returned function is called).

        Example:
          >>> import tempfile
          >>> from jaxsim.optim import closed_form
          >>> def double(x, *, times): return closed_form(np.asarray(x) * times)
          >>> with tempfile.TemporaryDirectory() as folder:
          ...     fits = Fits(folder, say=lambda line: None)
          ...     [fits.fit(double)(np.ones(2), times=3).params.tolist() for _ in range(2)]
          [[3.0, 3.0], [3.0, 3.0]]
        """
        function = method.fit if isinstance(method, ModuleType) else method
        name, version = version_of(function)

        @functools.wraps(function)
        def kept(*data: Any, **settings: Any) -> Fit:
            begun = time.perf_counter()
            self.versions[name] = version
            keyed = {key: value for key, value in settings.items() if key not in ignore}
            key = digest([name, version, list(data), keyed, reads], functions=reads is not None)
            path = self.folder / f"{name}-{key[:24]}.fit"
            found = self._read(path)
            if found is None:
                with self._alone(path):
                    found = self._read(path)  # another run may have made it
                    if found is None:
                        found = self._make(function, path, data, settings, checkpoint)
                        self.say(f"{name} {_shown(keyed)} fitted in {found[1]:.1f} s")
            fit, self._seconds[path] = found
            self.spent += time.perf_counter() - begun
            return fit

        return kept

    @contextlib.contextmanager
    def _alone(self, path: Path) -> Iterator[None]:
        """Waits while another run makes a fit, which has one folder of checkpoints."""
        self.folder.mkdir(parents=True, exist_ok=True)
        place = self.folder / f".{path.stem}.lock"
        lock = filelock.FileLock(place)
        try:
            io.acquire(lock)
        except filelock.Timeout:
            self.say(f"{path.name} is being fitted by another run, which is waited for")
            io.acquire(lock, -1)
        try:
            yield
        finally:
            place.unlink(missing_ok=True)
            lock.release()

    def _read(self, path: Path) -> tuple[Fit, float] | None:
        """A fit and its seconds; none where there is no file, or one that is damaged or cannot be read."""
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        try:
            if content.startswith(_MAGIC):  # files of before have no digest
                told, content = content[len(_MAGIC) : len(_MAGIC) + _DIGEST], content[len(_MAGIC) + _DIGEST :]
                checks.expect(_digest(content) == told, path.name, "the bytes that were written", "others")
            fit, seconds = pickle.loads(content)
            checks.kind(fit, path.name, Fit)
            return fit, float(seconds)
        except Exception as error:  # a file that was changed, or classes that have moved: pickle raises anything
            self.say(f"{path.name} is fitted again: {type(error).__name__}: {error}")
            return None

    def _make(self, function, path: Path, data: tuple, settings: dict, checkpoint: bool) -> tuple[Fit, float]:
        """Fits and writes the file."""
        folder = path.with_suffix(".checkpoint")
        begun = time.perf_counter()
        fit = function(*data, **settings, **({"checkpoint": folder} if checkpoint else {}))
        jax.block_until_ready(fit.params)
        seconds = time.perf_counter() - begun
        content = pickle.dumps((fit, seconds))
        io.write_bytes(path, _MAGIC + _digest(content) + content)
        shutil.rmtree(folder, ignore_errors=True)
        return fit, seconds


def _shown(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings that a line has room for."""
    return {key: value for key, value in settings.items() if isinstance(value, str | int | float | bool)}


def _digest(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST).digest()


def version_of(function: Callable) -> tuple[str, int]:
    """Name of the module that defines a function (below ``jaxsim.methods``), with the function unless it is ``fit``.

    Args:
      function: Any function of a module.

    Returns:
      The name and the module's `VERSION`, 1 where it states none.

    Example:
      >>> from jaxsim.methods import opca
      >>> version_of(opca.fit)
      ('projections.opca', 2)
    """
    module = function.__module__
    name = module.removeprefix("jaxsim.methods.").removeprefix("experiments.").removeprefix("jaxsim.")
    if module == "__main__":
        name = getattr(sys.modules[module].__spec__, "name", name).removeprefix("experiments.")
    name += "" if function.__name__ == "fit" else f".{function.__name__}"
    return name, int(getattr(sys.modules[module], "VERSION", 1))


def digest(value: Any, *, functions: bool = False) -> str:
    """A digest of the content of nested data: arrays, sparse matrices, random keys, settings, named functions.

    Args:
      value: Pytrees, dataclasses and scalars of these.
      functions: Whether functions that are not at the top of a module pass too, by their name alone.

    Returns:
      64 hexadecimal digits.

    Raises:
      ValueError: something in it has no digest.

    Example:
      >>> digest({"k": 1}) == digest({"k": 1}) != digest({"k": 2})
      True
    """
    content = _Content(hashlib.blake2b(digest_size=32), functions)
    content.add(value)
    return content.hasher.hexdigest()


@dataclasses.dataclass(frozen=True)
class _Content:
    """A hash that takes nested data; one method a kind."""

    hasher: Any
    functions: bool

    def add(self, value: Any) -> None:
        """Adds a value by the first of the kinds that it is of."""
        if isinstance(value, jax.Array) and jax.dtypes.issubdtype(value.dtype, jax.dtypes.prng_key):
            value = jax.random.key_data(value)
        kind = next((name for types, name in _KINDS if isinstance(value, types)), None)
        if scipy.sparse.issparse(value):
            csr = value.tocsr()
            self.add([csr.shape, csr.data, csr.indices, csr.indptr])
        elif kind is not None:
            getattr(self, kind)(value)
        elif dataclasses.is_dataclass(value) and not isinstance(value, type):
            self.hasher.update(type(value).__qualname__.encode())
            self.add([(field.name, getattr(value, field.name)) for field in dataclasses.fields(value)])
        elif callable(value):
            self.function(value)
        else:
            raise ValueError(f"arguments of a fit: expected arrays, settings and named functions, got {type(value)} "
                             "(name it in ignore= if the result does not depend on it)")

    def array(self, value: Any) -> None:
        array = np.ascontiguousarray(value)
        self.hasher.update(f"array {array.dtype} {array.shape}".encode())
        self.hasher.update(array.tobytes() if array.dtype != object else repr(array.tolist()).encode())

    def scalar(self, value: Any) -> None:
        self.hasher.update(f"{type(value).__name__} {value!r};".encode())

    def mapping(self, value: Mapping) -> None:
        self.add(["mapping", *(part for key in sorted(value, key=str) for part in (key, value[key]))])

    def sequence(self, value: list | tuple) -> None:
        self.hasher.update(f"{type(value).__name__} of {len(value)}:".encode())
        for part in value:
            self.add(part)

    def function(self, value: Callable) -> None:
        if isinstance(value, functools.partial):
            return self.add([value.func, list(value.args), value.keywords])
        name = getattr(value, "__qualname__", getattr(value, "__name__", type(value).__qualname__))
        if not self.functions and ("<" in name or not hasattr(value, "__module__")):
            raise ValueError(f"arguments of a fit: expected functions at the top of a module, got {name} (give reads= "
                             "the data that it depends on)")
        self.hasher.update(f"function {getattr(value, '__module__', '')}.{name};".encode())


_KINDS = (
    ((np.ndarray, jax.Array, np.generic), "array"),
    ((str, bytes, int, float, complex, type(None)), "scalar"),
    (Mapping, "mapping"),
    ((list, tuple), "sequence"),
)
"""What can be digested beside sparse matrices, dataclasses and functions: types and the method of `_Content`."""
