"""A program that stops itself in the middle: ``python program_until_stopped.py SIGNAL AT PROGRAM ARGUMENT...``.

PROGRAM is ``demo``, on 300 docstrings, or the path of a script. The signal is sent just before a file or folder whose
path matches AT gets its name (its content stands in a temporary one then), or at a message of the demo that matches it.
"""

from __future__ import annotations

import os
import re
import runpy
import signal
import sys
from pathlib import Path


def run_demo(arguments, stop) -> int:
    """The command line with fewer docstrings; ``stop`` hears every message."""
    from jaxsim import cli
    from jaxsim.cli import demo
    from jaxsim.data import docstrings

    load, say = docstrings.load, demo._say
    docstrings.load = lambda: load().take(range(300))
    demo._say = lambda message: (say(message), stop(message))
    return cli.main(["demo", *arguments])


if __name__ == "__main__":
    number, at, program, *arguments = sys.argv[1:]
    signal.signal(signal.SIGINT, signal.default_int_handler)
    replace, rename = os.replace, os.rename

    def stop(text):
        """Sends the signal to this process if the text matches."""
        if re.search(at, str(text)):
            os.kill(os.getpid(), int(number))

    os.replace = lambda source, target: (stop(target), replace(source, target))
    os.rename = lambda source, target: (stop(target), rename(source, target))
    root = Path(__file__).resolve().parents[2]
    sys.path[0] = str(root)
    if program == "demo":
        sys.exit(run_demo(arguments, stop))
    sys.argv = [program, *arguments]
    runpy.run_module(program, run_name="__main__", alter_sys=True)
