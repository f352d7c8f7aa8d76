"""Runs the command line: `python -m jaxsim`."""

from __future__ import annotations

from jaxsim import cli

if __name__ == "__main__":
    cli.entry()
