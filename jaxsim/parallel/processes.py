"""Several processes as one training: each opens its own devices, and a mesh over the devices of all spans them.

JAX does the work (`jax.distributed`); what is added is that nobody waits for a process that is gone.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import time
from collections.abc import Iterator

import jax

from jaxsim import checks

LOST = 70
"""Exit status of a process that lost another one."""


@contextlib.contextmanager
def joined(address: str, processes: int, number: int, *, patience: int = 100) -> Iterator[None]:
    """Joins this process to others for the length of a ``with`` block; all of them run the same program.

    Call it before anything else of JAX. Inside, ``jax.devices()`` are those of all processes and
    ``jax.make_mesh((jax.device_count(),), ("pairs",))`` is the mesh for `s2net.fit`; every process hands in the same
    documents and gets the same result. Only one should write files; checkpoints of a fit over all of them do so, in a
    folder that all see.

    A process that dies takes the others with it: a collective that breaks, or ``patience`` seconds without a sign of
    life, ends each with one line on stderr and status `LOST` (or with JAX's own message), since a program that has lost
    a part of its mesh cannot go on and would hang at its end. For the same reason an exception that leaves the block
    ends its process there, with its traceback and the status that it would have had.

    Args:
      address: ``host:port`` of process 0, which all can reach.
      processes: how many there are.
      number: of this one, from 0.
      patience: seconds to wait for the others, when they start and when they fall silent.

    Yields:
      Nothing.

    Raises:
      ValueError: for a number that is no number of a process, an address without a port, or a port that process 0
        cannot open.
      ConnectionError: if nothing answers at the address.

    Example:
      >>> with joined("127.0.0.1:1234", processes=2, number=2):
      ...     pass
      Traceback (most recent call last):
      ...
      ValueError: number: expected a whole number below 2 (processes), got 2
    """
    checks.positive_int(processes, "processes")
    checks.whole(number, "number", 0)
    checks.whole(patience, "patience", 1)
    checks.expect(number < processes, "number", f"a whole number below {processes} (processes)", number)
    host, _, port = address.rpartition(":")
    fits = bool(host) and port.isdecimal() and 0 < int(port) < 2**16
    checks.expect(fits, "address", "host:port, a port from 1 to 65535", address)
    if number > 0:
        _reach(host, int(port), patience)
    # Collectives between CPUs; an accelerator has its own.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    with contextlib.suppress(AttributeError):  # a setting of later versions, which keeps SIGTERM from ending a process
        jax.config.update("jax_enable_preemption_service", False)
    try:
        jax.distributed.initialize(address, processes, number, initialization_timeout=patience,
                                   heartbeat_timeout_seconds=patience, shutdown_timeout_seconds=patience)
    except jax.errors.JaxRuntimeError as error:
        checks.expect("Failed to start" not in str(error), "address", "a port that is free, and this machine's name",
                      address)  # fmt: skip
        raise
    try:
        yield
    except jax.errors.JaxRuntimeError as error:
        first = str(error).strip().splitlines()[:1]
        _leave(f"jaxsim: process {number} of {processes}: another process, or the way to it, is lost: {first[0]}")
    except GeneratorExit:  # of a generator that has the block, and is left; JAX shuts down at the end of the process
        raise
    except SystemExit as error:
        told = error.code is None or isinstance(error.code, int)
        _leave("" if told else str(error.code), (error.code or 0) if told else 1)
    except BaseException as error:
        try:
            sys.excepthook(type(error), error, error.__traceback__)
        finally:
            _leave("", 130 if isinstance(error, KeyboardInterrupt) else 1)
    else:
        jax.distributed.shutdown()


def _reach(host: str, port: int, patience: int) -> None:
    """Waits until process 0 answers: JAX would end the process with a core dump."""
    end, last = time.monotonic() + patience, None
    while time.monotonic() < end:
        try:
            socket.create_connection((host.strip("[]"), port), timeout=max(1, end - time.monotonic())).close()
        except OSError as error:
            last = error
            time.sleep(0.1)
        else:
            return
    raise ConnectionError(f"address: expected an answer of process 0 at {host}:{port}, got none within {patience} s "
                          f"({last})")


def _leave(message: str, status: int = LOST) -> None:
    """Ends the process at once: its own shutdown would wait for collectives that never finish."""
    try:
        if message:
            print(message, file=sys.stderr)
        for stream in (sys.stderr, sys.stdout):
            with contextlib.suppress(Exception):  # closed, or none
                stream.flush()
    finally:
        os._exit(status)
