"""Runs the command line: `python -m jaxsim`, or the script `jaxsim`.

Ctrl-C while a module is loaded waits until it is: extension modules lose it, or make another error or a crash of it.
So this file loads next to nothing before it has taken Ctrl-C over. SIGTERM, of a shutdown or a scheduler, is the same
but for the exit status.
"""

from __future__ import annotations

import _thread
import os
import signal
import sys
import time

_MAIN = _thread.get_ident()
_TERMINATED = 143
"""Exit status after SIGTERM, 128 + 15."""
_terminations: list[int] = []  # that came


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


def _terminate(number, frame) -> None:
    """Has SIGTERM do what Ctrl-C does just now: an error, or one later."""
    _terminations.append(number)
    signal.raise_signal(signal.SIGINT)


def _leave(status: int) -> None:
    """Ends the process at once."""
    os._exit(_TERMINATED if _terminations else status)


def run() -> None:
    """Runs the command of this process, and ends it with the command's status; Ctrl-C may come while modules load."""
    try:
        taken = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # else who started this has it ignored
        if taken:
            signal.signal(signal.SIGINT, _interrupt)
            if signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
                signal.signal(signal.SIGTERM, _terminate)
        sys.unraisablehook = _again
        from jaxsim import cli

        try:
            cli.entry(_leave)
        finally:
            if taken:  # what is left is the end of the process, and a line about Ctrl-C once it was told
                signal.signal(signal.SIGINT, signal.SIG_IGN)
    except KeyboardInterrupt:
        print("jaxsim: interrupted", file=sys.stderr, flush=True)
        _leave(2)  # as in `cli.entry`


if __name__ == "__main__":
    run()
