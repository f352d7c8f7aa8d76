"""Questions with blanks: what is read, filled in, and refused."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest

from jaxsim.data import questions, sentences

needs_data = pytest.mark.skipif(not os.environ.get("JAXSIM_DATA"), reason="needs the corpora (JAXSIM_DATA)")


def line(**fields):
    return json.dumps({"question": "He drank _____ .", "choices": ["tea", "a hat"], **fields}) + "\n"


def test_questions_of_a_file_are_read(tmp_path):
    path = tmp_path / "q.jsonl"
    two = {"question": "A ___ and ____.", "choices": [["cat", "dog"], ["x", "y"]]}
    last = json.dumps(two | {"answer": ["x", "y"]})
    path.write_text(f"{line(answer=1)}{line(answer='tea')}{json.dumps(two)}\n{last}")
    found = questions.read(path)
    assert [one.answer for one in found.questions] == [1, 0, None, 1] and found.num_blanks.tolist() == [1, 1, 2, 2]
    assert found.questions[2].parts == ("A ", " and ", ".") and found.num_choices == 2
    with pytest.raises(ValueError, match=r"q\.jsonl, line 3: expected an answer"):
        found.answers  # noqa: B018


def test_every_choice_is_filled_in():
    rows = [questions.question("A _____ met _____.", [["cat", "the dog"], ["x", "y"]]),
            questions.question("_____ !", ["cat", "dog's"])]  # fmt: skip
    vocabulary = {word: number for number, word in enumerate("<unk> <s> </s> a cat met the dog . !".split())}
    filled = questions.encode(questions.collect(rows), vocabulary)
    assert filled.tokens.shape == (2, 2, 8) and filled.lengths.tolist() == [[8, 7], [4, 4]]
    assert filled.tokens[0].tolist() == [[1, 3, 4, 5, 6, 7, 8, 2], [1, 3, 0, 5, 0, 8, 2, -1]]
    assert np.flatnonzero(filled.chosen[0, 0]).tolist() == [2, 4, 5]
    assert filled.tokens[1, 1].tolist() == [1, 0, 9, 2, -1, -1, -1, -1]


@pytest.mark.parametrize(("content", "message"), [
    ("", "q.jsonl: expected at least one question"),
    (line(question="He drank."), r"q\.jsonl, line 1: expected a blank"),
    (line(question="_____ drank _____."), "each blank in every choice .2 blanks in the sentence., got 'tea'"),
    (line(choices=["tea"]), "at least 2 choices, got 1"),
    (line(choices=["tea", "tea "]), "different choices, got 'tea' twice"),
    (line(choices=["tea", ""]), "choices with words, got ''"),
    (line(choices=["tea", 5]), "choices with words, got 5"),
    (line() + line(choices=["a", "b", "c"]), r"q\.jsonl, line 2: expected 2 choices .*, got 3"),
    (line() + "\n \n" + line(question="He drank."), r"q\.jsonl, line 4: expected a blank"),
    ("\n" + line() + "\n" + line(choices=["a", "b", "c"]), r"q\.jsonl, line 4: expected 2 choices .*, got 3"),
    ("\n" + line() + "\n" + line(answer=2), r"q\.jsonl, line 4: answer: expected a number from 0 to 1"),
    (f"[\n{line()},\n{line(question='He drank.')}]", r"q\.jsonl, object 2: expected a blank"),
    (f"[\n{line()},\n{line(choices='tea')}]", r'q\.jsonl, object 2: expected a list "choices", got a str'),
    (line(answer=2), "answer: expected a number from 0 to 1, or none, got 2"),
    (line(answer=True), "answer: expected a number from 0 to 1, or none, got True"),
    (line(answer="coffee"), "line 1: answer: expected one of the choices, or its index"),
    (line(answer=["tea"]), "line 1: answer: expected one of the choices, or its index"),
    (line(choices="tea"), 'line 1: expected a list "choices", got a str'),
    ("{", "line 1"),
])
def test_bad_questions_are_refused_by_line(tmp_path, content, message):
    (tmp_path / "q.jsonl").write_text(content)
    with pytest.raises(ValueError, match=message):
        questions.read(tmp_path / "q.jsonl")


@needs_data
def test_the_published_questions_have_their_known_counts():
    holmes, sat = questions.load_holmes(), questions.load_sat()
    assert holmes.counts == {"questions": 1040, "choices": 5, "questions_with_two_blanks": 0}
    assert np.bincount(holmes.answers).tolist() == [207, 203, 201, 225, 204]
    assert np.bincount(holmes.answers[questions.NUM_DEV :]).tolist() == [98, 112, 90, 111, 109]
    assert sat.counts == {"questions": 152, "choices": 5, "questions_with_two_blanks": 68}
    assert np.bincount(sat.answers).tolist() == [32, 37, 27, 22, 34]
    assert sat.questions[0].choices[0] == ("convergence with", "supplant")
    right = questions.load_sat(corrected=True)
    assert np.flatnonzero(right.answers != sat.answers).tolist() == [132]
    assert right.questions[132].choices[right.answers[132]] == ("picayune",)


@needs_data
def test_nearly_all_choices_of_holmes_are_one_token():
    holmes = questions.load_holmes()
    single = [len(sentences.words(choice[0])) == 1 for one in holmes.questions for choice in one.choices]
    assert np.mean(single) > 0.999
