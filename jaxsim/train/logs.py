"""The log of a training, step by step: a CSV file, and event files of TensorBoard where their writer is installed.

A training that continues from its checkpoints reports the steps that are kept there to its log again
(`optim.Run.callback`). The log is therefore written anew from the first step: no step is missing, whichever file was
lost, and none is listed twice, although steps after the last checkpoint are made twice.
"""

from __future__ import annotations

import csv
import math
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jaxsim import checks

FILE = "log.csv"
"""Name of the table."""
COLUMNS = ("run", "step", "loss", "score", "grad_norm", "evaluations", "seconds")
"""Of the table; ``run`` is what is fitted, ``score`` what it stops by, and what is not known is empty."""
_EVENTS = ".jaxsim"  # how the names of our event files end
_DRAWN = ("loss", "score", "grad_norm")
_EVERY = 2  # seconds until TensorBoard sees a step


class Log:
    """Writes ``FOLDER/log.csv`` and, where tensorboardX is installed, ``FOLDER/<run>/events.out.tfevents.*``.

    Nothing is written before the first step. What an earlier training logged in the folder is then replaced.

    Attributes:
      folder: where it is.

    Example:
      >>> with tempfile.TemporaryDirectory() as folder:
      ...     with Log(folder) as log:
      ...         log("s2net", {"step": 0, "loss": 0.5, "validation": 0.25, "seconds": 0.1})
      ...     print(log.written, (log.folder / FILE).read_text())
      True run,step,loss,score,grad_norm,evaluations,seconds
      s2net,0,0.5,0.25,,,0.1
    """

    def __init__(self, folder: str | os.PathLike, say: Callable[[str], None] = lambda message: None):
        """Makes sure that the folder can be written.

        Args:
          folder: new or old.
          say: is given a message where no event files are written.

        Raises:
          ValueError: if the folder is a file, or its ``log.csv`` is not of a training.
          OSError: if nothing can be written there.
        """
        self.folder, self.say = Path(folder), say
        checks.expect(self.folder.is_dir() or not os.path.lexists(self.folder), "log", "a folder, new or old",
                      f"a file ({self.folder})")  # fmt: skip
        table = self.folder / FILE
        if table.is_file() and table.stat().st_size:
            with open(table, "rb") as file:
                first = file.readline(1_000).decode("utf-8", "replace").strip()
            checks.expect(first == ",".join(COLUMNS), str(table), "the log of an earlier training, to replace it",
                          "another file (give another folder)")  # fmt: skip
        parent = next(one for one in (self.folder.absolute(), *self.folder.absolute().parents) if one.exists())
        Path(tempfile.mkdtemp(dir=parent, prefix=f".{FILE}.{os.getpid()}.", suffix=".part")).rmdir()
        self._file, self._last, self._events, self._begun = None, {}, None, time.time()

    def __call__(self, run: str, entry: dict) -> None:
        """Writes a step, unless it is there.

        Args:
          run: what is fitted, such as ``"s2net"``.
          entry: of the history, as `optim.Run.callback` has it.

        Raises:
          OSError: if it cannot be written.
        """
        if entry["step"] <= self._last.get(run, -1):  # a trial that goes on after others
            return
        self._last[run] = entry["step"]
        row = {"run": run, **{name: entry.get("validation" if name == "score" else name) for name in COLUMNS[1:]}}
        row = {name: None if isinstance(value, float) and not math.isfinite(value) else value
               for name, value in row.items()}  # fmt: skip
        try:
            if self._file is None:
                self._begin(row["seconds"])
            self._rows.writerow(row)
            self._file.flush()
            self._draw(run, row)
        except OSError as error:
            raise OSError(error.errno, error.strerror, str(self.folder)) from error

    @property
    def written(self) -> bool:
        """Whether a step was written."""
        return bool(self._last)

    def close(self) -> None:
        """Ends the files."""
        if self._file is not None:
            self._file.close()
        for events in (self._events or {}).values():
            events.close()
        self._file, self._events = None, None

    def __enter__(self) -> Log:
        """Itself."""
        return self

    def __exit__(self, *_) -> None:
        """Ends the files, also after Ctrl-C."""
        self.close()

    def _begin(self, seconds: float | None) -> None:
        """Replaces what an earlier training left by an empty table."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.glob(f"*/events.out.tfevents.*{_EVENTS}"):
            path.unlink()
            if not any(path.parent.iterdir()):
                path.parent.rmdir()
        self._begun = time.time() - (seconds or 0.0)
        self._file = open(self.folder / FILE, "w", newline="", encoding="utf-8")
        self._rows = csv.DictWriter(self._file, COLUMNS, lineterminator="\n")
        self._rows.writeheader()
        try:
            import tensorboardX
        except (ImportError, TypeError) as error:  # it is not there, or was made for another protobuf
            self.say(f"{self.folder}: {FILE} alone; for TensorBoard: pip install 'jaxsim-text[log]'"
                     + f" ({error})" * (not isinstance(error, ModuleNotFoundError)))
            return
        # Whoever looks on while the files are replaced sees that what came before no longer counts.
        self._writer, self._events = lambda run: tensorboardX.SummaryWriter(
            str(self.folder / run), purge_step=0, flush_secs=_EVERY, filename_suffix=_EVENTS), {}

    def _draw(self, run: str, row: dict) -> None:
        """Adds a step to the curves of TensorBoard."""
        if self._events is None:
            return
        if run not in self._events:
            self._events[run] = self._writer(run)
        begun = self._begun + (row["seconds"] or 0.0)
        for name in _DRAWN:
            if isinstance(row[name], int | float):
                self._events[run].add_scalar(name, row[name], row["step"], walltime=begun)
