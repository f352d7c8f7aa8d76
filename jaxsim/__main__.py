"""Runs the command line: `python -m jaxsim`, or the script `jaxsim`."""

from __future__ import annotations

import sys


def run() -> None:
    """Runs the command of this process, and ends it with the command's status; Ctrl-C may come while modules load."""
    try:
        from jaxsim import cli

        cli.entry()
    except KeyboardInterrupt:
        print("jaxsim: interrupted", file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    run()
