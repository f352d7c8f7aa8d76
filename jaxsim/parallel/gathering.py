"""Arrays whose parts belong to several processes, brought together; and one answer where each process has its own.

With several processes, every function here but `spans` waits for the other processes: all of them must call it, in
the same order, or none.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

import jax
import numpy as np
from jax.experimental import multihost_utils

from jaxsim import checks


def spans(tree) -> bool:
    """Whether any array of a tree has parts that this process does not hold.

    Args:
      tree: pytree of arrays.

    Returns:
      True where the devices of an array are those of several processes.

    Example:
      >>> spans([jax.numpy.ones(2), 3.0])
      False
    """
    return any(isinstance(leaf, jax.Array) and not leaf.is_fully_addressable for leaf in jax.tree.leaves(tree))


def whole(array, *, copy: bool = True) -> np.ndarray:
    """All values of an array in host memory, wherever its parts are.

    Args:
      array: array of any shape and type, or a number.
      copy: False: a view where the values are in this process's memory already, to be let go of soon.

    Returns:
      An array of the same shape and type.

    Example:
      >>> whole(jax.numpy.arange(3)).tolist()
      [0, 1, 2]
    """
    if not spans(array) or array.is_fully_replicated:
        return np.array(array, copy=True if copy else None)
    return np.array(_gathered(array, tiled=True))


def _gathered(array, **settings):
    """JAX's gathering, whose broken connections are its runtime errors, as those of other programs are."""
    try:
        return multihost_utils.process_allgather(array, **settings)
    except ValueError as error:
        raise jax.errors.JaxRuntimeError(str(error)) from error


def bytes_of(array) -> Iterator[memoryview]:
    """The values of an array that this process holds, each part once, in the order of its devices, without a copy.

    Args:
      array: array, or a number.

    Yields:
      Bytes of each part; of an array without other processes' parts, those of the whole.

    Example:
      >>> b"".join(bytes_of(np.ones(1, np.float32))).hex()
      '0000803f'
    """
    parts = [array]
    if spans(array) and not array.is_fully_replicated:
        parts = [part.data for part in sorted(array.addressable_shards, key=lambda part: part.device.id)]
    for part in parts:
        yield memoryview(np.ascontiguousarray(part).reshape(-1).view(np.uint8))


def all_of(value: bytes) -> list[bytes]:
    """What every process says, in the order of their numbers.

    Args:
      value: of this one; as many bytes as the others'.

    Returns:
      One a process.

    Example:
      >>> all_of(b"ab")
      [b'ab']
    """
    if jax.process_count() == 1:
        return [value]
    found = np.asarray(_gathered(np.frombuffer(value, np.uint8)))
    return [row.tobytes() for row in found.reshape(jax.process_count(), len(value))]


def agreed(function: Callable, argument: str):
    """Calls a function in every process; where it fails in one, it fails in all, so that none waits for ever.

    Args:
      function: of nothing; refuses by ValueError or OSError.
      argument: what it is about, for the message.

    Returns:
      What it returns here.

    Raises:
      ValueError: if it failed in another process; one that fails here goes on as it is.

    Example:
      >>> agreed(lambda: 1, "folder")
      1
    """
    result = failure = None
    try:
        result = function()
    except (ValueError, OSError) as error:
        failure = error
    failed = [number for number, said in enumerate(all_of(b"\x01" if failure else b"\x00")) if said != b"\x00"]
    if failure is not None:
        raise failure
    checks.expect(not failed, argument, "something that works in every process", f"a failure in process {failed[:1]}")
    return result


def several(mesh) -> bool:
    """Whether the devices of a mesh are those of all of several processes, which then do everything together.

    Args:
      mesh: `jax.sharding.Mesh`, or None.

    Returns:
      False in one process, and for a mesh of some of the processes.

    Example:
      >>> several(None)
      False
    """
    if jax.process_count() == 1 or not isinstance(mesh, jax.sharding.Mesh):  # the latter is refused where it is used
        return False
    return len({device.process_index for device in mesh.devices.flat}) == jax.process_count()


def expect_same_settings(mesh, **settings) -> None:
    """Refuses in every process of a mesh the settings that another one does not have; otherwise none would know.

    Args:
      mesh: `jax.sharding.Mesh`, or None; nothing is compared where it is not one of `several`.
      **settings: numbers and strings, which are compared, and anything else, of which the type is.

    Raises:
      ValueError: naming a setting, if another process has another one.

    Example:
      >>> expect_same_settings(None, gamma=10.0)
    """
    if not several(mesh):
        return
    settings = {name: value.item() if isinstance(value, np.generic) else value for name, value in settings.items()}
    told = {name: value if isinstance(value, int | float | str | tuple | None) else type(value).__name__
            for name, value in settings.items()}
    said = [hashlib.blake2b(repr(item).encode(), digest_size=16).digest() for item in sorted(told.items())]
    for name, one in zip(sorted(told), zip(*map(_digests, all_of(b"".join(said))), strict=True), strict=True):
        others = [number for number, other in enumerate(one) if other != one[0]]
        checks.expect(not others, name, "the same in every process", f"another in process {others[:1]} than in "
                      f"process 0 ({told[name]} in process {jax.process_index()})")  # fmt: skip


def _digests(joined: bytes) -> list[bytes]:
    return [joined[at : at + 16] for at in range(0, len(joined), 16)]


def expect_same(text: str, argument: str, expected: str) -> None:
    """Refuses in every process what is not the same in all of them.

    Args:
      text: of this process.
      argument: what it is about, for the message.
      expected: for the message.

    Raises:
      ValueError: if another process has another text.

    Example:
      >>> expect_same("a", "folder", "one that all share")
    """
    said = all_of(hashlib.blake2b(text.encode(), digest_size=16).digest())
    others = [number for number, one in enumerate(said) if one != said[0]]
    checks.expect(not others, argument, expected, f"another in process {others[:1]} than in process 0")
