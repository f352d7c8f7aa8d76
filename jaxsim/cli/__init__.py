"""The command line, `jaxsim` or `python -m jaxsim`.

Results go to stdout, progress and errors to stderr. Bad input is one line that names the file or the option, with exit
status 2; `--debug` shows the traceback instead. Ctrl-C ends with one line too, which says what is kept, and
exit status 2; SIGTERM does the same with status 143, SIGHUP with 129.
"""

from __future__ import annotations

# Each adds its commands to the app.
from jaxsim.cli import (  # noqa: F401
    complete,
    corpora,
    estimate,
    evaluate,
    explain,
    project,
    search,
    topics,
    train,
    translate_table,
    use,
    words,
)
from jaxsim.cli.output import CLOSED
from jaxsim.cli.program import INTERRUPTED, app, entry, main

_ORDER = ("demo", "train", "search", "similarity", "explain", "encode", "evaluate", "export", "data", "report",
          "estimate", "thesaurus", "words", "translate_table", "topics", "complete")
app.registered_commands.sort(key=lambda command: _ORDER.index(command.callback.__name__))

__all__ = ["CLOSED", "INTERRUPTED", "app", "entry", "main"]
