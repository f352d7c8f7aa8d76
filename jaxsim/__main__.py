"""Runs the command line: `python -m jaxsim`, or the script `jaxsim`."""

from __future__ import annotations

import _thread
import os
import sys
import time


def _again(unraisable) -> None:
    """Sends Ctrl-C once more where Python had to drop it: in a callback of the garbage collector, as JAX has one."""
    if unraisable.exc_type is not KeyboardInterrupt:
        return sys.__unraisablehook__(unraisable)
    _thread.start_new_thread(lambda: (time.sleep(0.01), _thread.interrupt_main()), ())


def run() -> None:
    """Runs the command of this process, and ends it with the command's status; Ctrl-C may come while modules load."""
    sys.unraisablehook = _again
    try:
        from jaxsim import cli

        cli.entry()
    except KeyboardInterrupt:
        print("jaxsim: interrupted", file=sys.stderr, flush=True)
        os._exit(2)  # as in `cli.entry`


if __name__ == "__main__":
    run()
