"""Sentence-completion questions: sentences with one or more blanks, and the choices that may fill them.

`load_holmes` reads the 1,040 questions of the Sentence Completion Challenge, `load_sat` 152 questions of SAT practice
tests, `read` anyone's own from JSON Lines. `encode` fills every choice in and gives numbers to the words.
"""

from __future__ import annotations

import csv
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxsim import checks
from jaxsim.data import catalogue, files, streams
from jaxsim.data.corpora import sentences

__all__ = ["BLANK", "Filled", "Question", "Questions", "collect", "encode", "load_holmes", "load_sat", "question",
           "read"]

BLANK = "_____"
LETTERS = "abcde"
NUM_DEV = 520  # the distribution recommends the first half of its questions as development set
MISKEYED = {"133": 3}
"""SAT question whose published key is wrong -> the right choice (d, picayune)."""


@dataclasses.dataclass(frozen=True)
class Question:
    """A sentence with holes.

    Attributes:
      name: number or name.
      parts: the text before, between and after the blanks; one more than blanks.
      choices: for each choice a text for every blank.
      answer: index of the right choice; None where it is not known.
      where: file and line that it was read from; empty for others.
    """

    name: str
    parts: tuple[str, ...]
    choices: tuple[tuple[str, ...], ...]
    answer: int | None = None
    where: str = ""

    @property
    def num_blanks(self) -> int:
        """How many holes the sentence has."""
        return len(self.parts) - 1

    @property
    def title(self) -> str:
        """What messages call it: file and line, or else its number or name."""
        return self.where or f"question {self.name}".rstrip()


@dataclasses.dataclass(frozen=True, eq=False)
class Questions:
    """Questions with equally many choices.

    Attributes:
      questions: in the order of the file.
      sha256: digest of texts, choices and answers.
      counts: of questions, choices and blanks.
    """

    questions: tuple[Question, ...]
    sha256: str
    counts: Mapping[str, int]

    __repr__ = checks.brief

    def __len__(self) -> int:
        """How many questions there are."""
        return len(self.questions)

    @property
    def num_choices(self) -> int:
        """How many choices each question has."""
        return len(self.questions[0].choices)

    @property
    def answers(self) -> np.ndarray:
        """``[num_questions]`` int64, indices of the right choices.

        Raises:
          ValueError: a question without an answer.
        """
        for one in self.questions:
            checks.expect(one.answer is not None, one.title, "an answer", "none")
        return np.array([one.answer for one in self.questions])

    @property
    def num_blanks(self) -> np.ndarray:
        """``[num_questions]`` int64, blanks of each."""
        return np.array([one.num_blanks for one in self.questions])

    def take(self, rows: Sequence[int]) -> Questions:
        """Some of the questions."""
        return collect([self.questions[row] for row in rows])


class Filled(NamedTuple):
    """Every question with every choice filled in, as numbers of words: ``<s>`` words ``</s>``.

    Attributes:
      tokens: ``[num_questions, num_choices, width]`` int32; -1 after a sentence's end.
      lengths: ``[num_questions, num_choices]`` int32, tokens of each sentence, marks included.
      chosen: ``[num_questions, num_choices, width]`` bool, which tokens the choice brought.
    """

    tokens: np.ndarray
    lengths: np.ndarray
    chosen: np.ndarray


def question(
    text: str, choices: Sequence[str | Sequence[str]], *, answer: int | None = None, name: str = "", where: str = ""
) -> Question:
    """A question from its text, after its parts were checked.

    Args:
      text: with a run of three underscores or more for each blank.
      choices: at least two different ones: a text, or with several blanks a text for each.
      answer: index of the right one; None where it is not known.
      name: for messages.
      where: file and line, for messages in place of the name.

    Returns:
      `Question`.

    Raises:
      ValueError: no blank, or choices that are too few, equal, empty or of another number of parts than blanks.

    Example:
      >>> question("He drank his _____ .", ["tea", "hat"], answer=0).parts
      ('He drank his ', ' .')
      >>> question("He drank.", ["tea", "hat"])
      Traceback (most recent call last):
      ...
      ValueError: question: expected a blank (_____) in the sentence, got 'He drank.'
    """
    title = where or f"question {name}".rstrip()
    checks.expect(isinstance(text, str), title, "a sentence", checks.a_kind(text))
    parts = tuple(re.split("_{3,}", text))
    checks.expect(len(parts) > 1, title, f"a blank ({BLANK}) in the sentence", repr(text[:80]))
    listed = not isinstance(choices, str) and isinstance(choices, Sequence)
    checks.expect(listed and len(choices) >= 2, title, "at least 2 choices", len(choices) if listed else choices)
    rows = []
    for choice in choices:
        row = (choice,) if isinstance(choice, str) else tuple(choice) if isinstance(choice, Sequence) else (choice,)
        checks.expect(all(isinstance(one, str) and sentences.words(one) for one in row), title, "choices with words",
                      repr(choice))  # fmt: skip
        blanks = checks.counted(len(parts) - 1, "blank")
        checks.expect(len(row) == len(parts) - 1, title,
                      f"a text for each blank in every choice ({blanks} in the sentence)", repr(choice))  # fmt: skip
        rows.append(tuple(" ".join(one.split()) for one in row))
    twice = [row for at, row in enumerate(rows) if row in rows[:at]]
    checks.expect(not twice, title, "different choices", f"{' / '.join(twice[0])!r} twice" if twice else "")
    number = isinstance(answer, int) and not isinstance(answer, bool)
    known = answer is None or (number and 0 <= answer < len(rows))
    checks.expect(known, f"{title}: answer", f"a number from 0 to {len(rows) - 1}, or none", answer)
    return Question(name, parts, tuple(rows), answer, where)


def collect(rows: Sequence[Question]) -> Questions:
    """Questions as a collection.

    Args:
      rows: at least one, all with equally many choices.

    Returns:
      `Questions`.

    Raises:
      ValueError: none, or one with another number of choices than the first.
    """
    checks.expect(len(rows) > 0, "questions", "at least one", "none")
    for one in rows:
        checks.expect(len(one.choices) == len(rows[0].choices), one.title,
                      f"{len(rows[0].choices)} choices (as the first question)", len(one.choices))  # fmt: skip
    digest = hashlib.sha256(json.dumps([[one.parts, one.choices, one.answer] for one in rows]).encode()).hexdigest()
    counts = {"questions": len(rows), "choices": len(rows[0].choices),
              "questions_with_two_blanks": sum(one.num_blanks > 1 for one in rows)}  # fmt: skip
    return Questions(tuple(rows), digest, counts)


def load_holmes(*, root: str | os.PathLike | None = None, verify: bool = True) -> Questions:
    """The 1,040 questions of the challenge; the first `NUM_DEV` are for development, the others for tests.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the checksums.

    Returns:
      `Questions`, one blank and five choices each.

    Raises:
      MissingCorpus: a file is not there.
      ValueError: a damaged file, or another number of questions.
    """
    stems = _table("sentence_completion", "testing_data.csv.gz", root, verify)
    keys = {row["id"]: row["answer"] for row in _table("sentence_completion", "test_answer.csv.gz", root, verify)}
    rows = [question(row["question"], [row[f"{letter})"] for letter in LETTERS], name=row["id"],
                     answer=LETTERS.index(keys[row["id"]])) for row in stems]  # fmt: skip
    checks.expect(len(rows) == 2 * NUM_DEV or not verify, "sentence_completion", f"{2 * NUM_DEV} questions", len(rows))
    return collect(rows)


def load_sat(*, root: str | os.PathLike | None = None, verify: bool = True, corrected: bool = False) -> Questions:
    """152 questions of SAT practice tests, 84 with one blank and 68 with two.

    Args:
      root: the data folder; see `jaxsim.data.root`.
      verify: compare the checksum.
      corrected: whether question 133, whose published key is wrong, gets the right one.

    Returns:
      `Questions` with five choices each, often of several words.

    Raises:
      MissingCorpus: the file is not there.
      ValueError: a damaged file.
    """
    rows = []
    for row in _table("sat_questions", "SAT_set_filled.csv.gz", root, verify):
        stem = " ".join(row["question"].split())
        pattern = re.compile("(.+?)".join(map(re.escape, re.split("_{3,}", stem))))
        matches = [pattern.fullmatch(" ".join(row[f"{letter})"].split())) for letter in LETTERS]
        checks.expect(all(matches), f"sat_questions, question {row['id']}", "choices that fill its blanks",
                      "another text")  # fmt: skip
        answer = LETTERS.index(row["ans"])
        answer = MISKEYED.get(row["id"], answer) if corrected else answer
        rows.append(question(stem, [match.groups() for match in matches], name=row["id"], answer=answer))
    return collect(rows)


def read(path: str | os.PathLike) -> Questions:
    """Questions from JSON Lines: ``{"question": "He drank his _____ .", "choices": ["tea", "hat"], "answer": 0}``.

    Args:
      path: the file, plain or compressed. ``answer`` (an index, or a choice as it stands in the list) may be absent.
        With several blanks every choice is a list of texts.

    Returns:
      `Questions`.

    Raises:
      ValueError: a damaged file or line (named), or questions as `question` and `collect` refuse them.
    """
    rows = []
    for number, where, record in streams.objects(files.read_lines(path), str(path)):
        text = streams.string(record, "question", where)
        choices = record.get("choices")
        checks.expect(isinstance(choices, list), where, 'a list "choices"', checks.a_kind(choices))
        answer: Any = record.get("answer")
        if isinstance(answer, str | list):
            checks.expect(answer in choices, f"{where}: answer", "one of the choices, or its index", repr(answer))
            answer = choices.index(answer)
        rows.append(question(text, choices, answer=answer, name=str(number), where=where))
    checks.expect(bool(rows), str(path), "at least one question", "none")
    return collect(rows)


def encode(questions: Questions, numbers: Mapping[str, int]) -> Filled:
    """Fills in every choice and gives numbers to the words; those that are not in the vocabulary get 0.

    Args:
      questions: what to fill in.
      numbers: word -> number, as `Sentences.numbers` has it; cut off what a model does not keep (``number >= size``).

    Returns:
      `Filled`.

    Example:
      >>> one = collect([question("Tea _____ .", ["now", "no more"])])
      >>> filled = encode(one, {"tea": 3, ".": 4, "now": 5})
      >>> filled.tokens[0].tolist(), filled.chosen[0, 1].tolist()
      ([[1, 3, 5, 4, 2, -1], [1, 3, 0, 0, 4, 2]], [False, False, True, True, False, False])
    """
    rows, marks = [], []
    for one in questions.questions:
        parts = [sentences.words(part) for part in one.parts]
        for choice in one.choices:
            row, mark = [sentences.START], [False]
            for at, part in enumerate(parts):
                filler = sentences.words(choice[at - 1]) if at else []
                row += [numbers.get(word, sentences.UNKNOWN) for word in (*filler, *part)]
                mark += [True] * len(filler) + [False] * len(part)
            rows.append([*row, sentences.END])
            marks.append([*mark, False])
    lengths = np.array([len(row) for row in rows], np.int32)
    tokens = np.full((len(rows), lengths.max()), -1, np.int32)
    chosen = np.zeros(tokens.shape, bool)
    for at, (row, mark) in enumerate(zip(rows, marks, strict=True)):
        tokens[at, : len(row)], chosen[at, : len(row)] = row, mark
    shape = len(questions), questions.num_choices
    return Filled(tokens.reshape(*shape, -1), lengths.reshape(shape), chosen.reshape(*shape, -1))


def _table(name: str, file: str, root: str | os.PathLike | None, verify: bool) -> list[dict[str, str]]:
    """Rows of a CSV file with a header."""
    path = catalogue.find(name, file, root=root, verify=verify)
    return list(csv.DictReader(files.read_lines(path)))
