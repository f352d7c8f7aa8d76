"""Closest-opposite questions of the Graduate Record Examination (Mohammad, Dorr and Hirst 2008).

160 of the 162 questions for development are among the 950 for tests. The remaining 790 are new: results of
whatever was chosen on the 162 should be reported on these as well.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from jaxsim import checks
from jaxsim.data import catalogue, files
from jaxsim.data.corpora.thesauri import normal

_FILES = {"dev": "devset.txt", "test": "testset.txt", "test790": "testset790.txt"}


class Question(NamedTuple):
    """A word and words of which one is its opposite.

    Attributes:
      target: the word.
      choices: five words in the collection.
      answer: place of the right one.
    """

    target: str
    choices: tuple[str, ...]
    answer: int


def parse(line: str, where: str) -> Question:
    """A question as a line writes it, ``target: choice choice ... :: answer``.

    Args:
      line: the line.
      where: file and line, for messages.

    Returns:
      `Question`, words as `thesauri.normal` writes them.

    Raises:
      ValueError: another form, or an answer that is none of the choices.

    Example:
      >>> parse("adulterate: renounce forbid purify :: purify", "line 1")
      Question(target='adulterate', choices=('renounce', 'forbid', 'purify'), answer=2)
    """
    question, _, answer = line.partition("::")
    target, _, choices = question.partition(":")
    words, answer = [normal(word) for word in choices.split()], normal(answer)
    checks.expect(bool(normal(target)) and len(words) > 1, where, "'target: choice choice ... :: answer'",
                  repr(line[:60]))
    checks.expect(answer in words, where, f"an answer among {', '.join(words)}", repr(answer))
    return Question(normal(target), tuple(words), words.index(answer))


def read(path: str | os.PathLike) -> list[Question]:
    """Questions of a file, one a line; blank lines are skipped.

    Args:
      path: UTF-8, plain or compressed.

    Returns:
      The questions.

    Raises:
      ValueError: a line of another form; names file and line. Also a file without questions.
    """
    result = [parse(line, f"{path}, line {number}")
              for number, line in enumerate(files.read_lines(path), start=1) if line.strip()]
    checks.expect(bool(result), str(path), "at least one question", "none")
    return result


def load(split: str = "dev", *, root: str | os.PathLike | None = None, verify: bool = True) -> list[Question]:
    """Questions of one split.

    Args:
      split: ``"dev"`` (162), ``"test"`` (950) or ``"test790"``.
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the file's checksum.

    Returns:
      The questions, in the order of the file.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: another split, or a damaged line (named).
    """
    checks.expect(split in _FILES, "split", f"one of {', '.join(_FILES)}", repr(split))
    return read(catalogue.find("gre_antonyms", _FILES[split], root=root, verify=verify))


def sha256(*, root: str | os.PathLike | None = None) -> str:
    """Digest of the test questions.

    Args:
      root: the data folder.

    Returns:
      64 hexadecimal digits.
    """
    path = catalogue.find("gre_antonyms", _FILES["test"], root=root, verify=False)
    return catalogue.digest("gre_antonyms", _FILES["test"], path)
