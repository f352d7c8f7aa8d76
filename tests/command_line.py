"""What the tests of the commands share: pairs of texts, and calls that work or are refused."""

from __future__ import annotations

import io
import os
import sys
from concurrent.futures import ProcessPoolExecutor

from jaxsim import cli
from jaxsim.optim import checkpoints

TOPICS = ("sparse matrix row", "random seed draw", "plot axis colour", "file path folder", "date month leap")
LEFT = [f"{TOPICS[i % 5]} item{i} {'alpha' if i % 2 else 'beta'}" for i in range(40)]
RIGHT = [f"about item{i}: {TOPICS[i % 5]} {'omega' if i % 3 else 'sigma'} of many words" for i in range(40)]
OPCA = ["--method", "opca", "--dim", "5"]


def run(capsys, *words) -> str:
    """What a command that works prints."""
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def refused(capsys, *words) -> str:
    """The one line of a command that is refused."""
    capsys.readouterr()
    assert cli.main([str(word) for word in words]) == 2
    out, err = capsys.readouterr()
    assert not out and err.splitlines()[-1].startswith("jaxsim: ")
    return err.splitlines()[-1].removeprefix("jaxsim: ")


def of_other(words, **values) -> list[str]:
    """The words of a command with other values of options: ``of_other(words, pairs="none.tsv")``."""
    words = list(words)
    for name, value in values.items():
        words[words.index(f"--{name}") + 1] = value
    return words


def feed(monkeypatch, text: str):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(text.encode()))))


def interrupting(monkeypatch, states: int) -> None:
    """From now on a training is interrupted, as by Ctrl-C, once it has saved so many states."""
    save, saved = checkpoints.save, []

    def stop(*state, **options):
        save(*state, **options)
        saved.append(1)
        if len(saved) == states:
            raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "save", stop)


def waiting_pool(handed):
    """A pool of processes whose first answer is waited for, so that work goes to it; ``handed`` takes what does."""

    class Waiting(ProcessPoolExecutor):
        def submit(self, function, *arguments):
            future = super().submit(function, *arguments)
            handed.append(function) if function is not os.getpid else future.result()
            return future

    return Waiting
