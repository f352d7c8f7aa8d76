"""Runs the command line: `python -m jaxsim`, or the script `jaxsim`.

A Ctrl-C that comes while a module is being loaded is held back until that is done: extension modules lose it, or turn
it into another error or a crash. So this file imports nothing but what the interpreter itself has loaded, and installs
its handler before anything else. One that comes earlier still, while the interpreter starts, is Python's to handle.
SIGTERM, of a shutdown or a scheduler, and SIGHUP, of a terminal that is closed, do what Ctrl-C does, with an exit
status of their own.
"""

from __future__ import annotations

import _signal  # `signal` loads `enum`, in which a Ctrl-C would be lost
import _thread
import os
import sys
import time

_MAIN = _thread.get_ident()
_ENDS = tuple(getattr(_signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(_signal, name))
_STATUS = 128
"""With the number of one of these, the exit status after it: 143 after SIGTERM."""
_end = 0  # the one that came
_interrupted = False


def _later() -> None:
    """Sends Ctrl-C, or what came, once more, a moment later; as a signal, if it can: that ends a wait for input."""
    kill = getattr(_signal, "pthread_kill", None)
    send = (lambda: kill(_MAIN, _end or _signal.SIGINT)) if kill else _thread.interrupt_main
    _thread.start_new_thread(lambda: (time.sleep(0.01), send()), ())


def _dropped(unraisable) -> None:
    """Sends Ctrl-C once more where Python had to drop it: in a callback of the garbage collector, as JAX has one.

    After Ctrl-C, errors of objects that it left half made (by a compiler, say) tell the user nothing.
    """
    if unraisable.exc_type is KeyboardInterrupt:
        _later()
    elif not _interrupted:
        sys.__unraisablehook__(unraisable)


def _loading(frame) -> bool:
    """Whether a module is being loaded where a signal came, by the frames inside of `run`."""
    while frame is not None and frame.f_code is not run.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _interrupt(number, frame) -> None:
    """Raises Ctrl-C, for the other signals too; while a module is loaded, a moment later."""
    global _end, _interrupted
    _end = number if number in _ENDS else _end
    _interrupted = True
    if _loading(frame):
        _later()
    else:
        raise KeyboardInterrupt


def _leave(status: int) -> None:
    """Ends the process at once."""
    os._exit(_STATUS + _end if _end else status)


def run() -> None:
    """Runs the command of this process, and ends it with the command's status; Ctrl-C may come while modules load."""
    taken = []
    try:
        sys.unraisablehook = _dropped
        # A signal that who started this has ignored stays so: Ctrl-C of what a shell runs beside, SIGHUP under nohup.
        taken = [number for number in (_signal.SIGINT, *_ENDS)
                 if _signal.getsignal(number) in (_signal.default_int_handler, _signal.SIG_DFL)]
        for number in taken:
            _signal.signal(number, _interrupt)
        from jaxsim import cli

        try:
            cli.entry(_leave)
        finally:
            for number in taken:  # what is left is the end of the process, and a line about Ctrl-C once it was told
                _signal.signal(number, _signal.SIG_IGN)
    except KeyboardInterrupt:
        print("jaxsim: interrupted", file=sys.stderr, flush=True)
        _leave(2)  # as in `cli.entry`


if __name__ == "__main__":
    run()
