"""Runs the command line: `python -m jaxsim`, or the script `jaxsim`.

Ctrl-C while a module is loaded waits until it is: extension modules lose it, or make another error or a crash of it.
So this file loads next to nothing before it has taken Ctrl-C over.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

_MAIN = _thread.get_ident()


def _later() -> None:
    """Sends Ctrl-C once more, a moment later; as a signal where there are such, which ends a wait for input too."""
    _thread.start_new_thread(lambda: (time.sleep(0.01), _send()), ())


def _send() -> None:
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(_MAIN, signal.SIGINT)
    else:
        _thread.interrupt_main()


def _again(unraisable) -> None:
    """Sends Ctrl-C once more where Python had to drop it: in a callback of the garbage collector, as JAX has one."""
    if unraisable.exc_type is not KeyboardInterrupt:
        return sys.__unraisablehook__(unraisable)
    _later()


def _loading(frame) -> bool:
    """Whether a module is being loaded where Ctrl-C came, by the frames inside of `run`."""
    while frame is not None and frame.f_code is not run.__code__:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _interrupt(number, frame) -> None:
    """Raises Ctrl-C, or holds it back while a module is loaded."""
    if _loading(frame):
        return _later()
    signal.default_int_handler(number, frame)


def run() -> None:
    """Runs the command of this process, and ends it with the command's status; Ctrl-C may come while modules load."""
    try:
        taken = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else who started this has it ignored
        if taken:
            signal.signal(signal.SIGINT, _interrupt)
        sys.unraisablehook = _again
        from jaxsim import cli

        try:
            cli.entry()
        finally:
            if taken:  # what is left is the end of the process, and a line about Ctrl-C once it was told
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        print("jaxsim: interrupted", file=sys.stderr, flush=True)
        os._exit(2)  # as in `cli.entry`


if __name__ == "__main__":
    run()
