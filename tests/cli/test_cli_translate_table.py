"""`jaxsim translate-table`: tables from sentences, pages and dictionaries, what is printed of them, and refusals."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from command_line import refused, run

from jaxsim import cli
from jaxsim.methods import ibm1
from jaxsim.methods.translation import table

LINES = "".join(f"{a} {b}\t{c} {d}\n" for a, c in (("the", "la"), ("a", "una")) for b, d in
                (("house", "casa"), ("door", "puerta"), ("table", "mesa")))  # fmt: skip


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    path = tmp_path_factory.mktemp("lines") / "lines.tsv"
    path.write_text(LINES)
    return path


def test_a_table_is_learned_kept_and_read(tmp_path, capsys, lines):
    out = tmp_path / "words"
    printed = run(capsys, "translate-table", "--pairs", lines, "--languages", "en,es", "--aligner", "ibm1", "--out",
                  out, "--word", "house", "--k", 1)
    assert printed.split("\t")[:2] == ["house", "casa"] and float(printed.split("\t")[2]) > 0.5
    assert not (tmp_path / "words.checkpoint").exists()
    result = json.loads(run(capsys, "translate-table", "--table", out, "--word", "Mesa", "--reverse", "--json"))
    assert result["word"] == "Mesa" and result["translations"][0]["word"] == "table"
    assert run(capsys, "translate-table", "--table", out, "--word", "nothing") == ""


def test_words_are_found_in_either_form_of_unicode(tmp_path, capsys):
    words, out = tmp_path / "words.txt", tmp_path / "table"
    words.write_text("cafe\u0301 :: CAFE\u0301\n", "utf-8")
    for word in ("caf\u00e9", "CAFE\u0301"):
        printed = run(capsys, "translate-table", "--dictionary", words, "--out", out, "--word", word)
        assert printed == f"{word}\tcaf\u00e9\t1.0000\n"


def test_no_probability_of_the_combined_table_is_below_the_threshold(tmp_path, capsys):
    draw, lines = random.Random(0), tmp_path / "lines.tsv"
    rows = [[draw.randrange(8) for _ in range(draw.randint(2, 9))] for _ in range(150)]
    lines.write_text("".join(" ".join(f"w{word}" for word in row) + "\t"
                             + " ".join(f"t{word}{min(int(draw.expovariate(0.8)), 8)}" for word in row) + "\n"
                             for row in rows))
    for way in ("geometric", "mean", "none"):
        run(capsys, "translate-table", "--pairs", lines, "--aligner", "ibm1", "--threshold", 0.1, "--symmetrize", way,
            "--out", tmp_path / "table", "--word", "w1")
        params = table.load(tmp_path / "table")[0]
        assert min(params.right_given_left.data.min(), params.left_given_right.data.min()) >= np.float32(0.1), way


def test_an_interrupted_table_goes_on_with_resume(tmp_path, capsys, lines, monkeypatch):
    out, iterate, steps = tmp_path / "words", ibm1.iterate, []

    def interrupted(learned, links, step):
        steps.append(step)
        if len(steps) == 5:
            raise KeyboardInterrupt
        return iterate(learned, links, step)

    words = ["translate-table", "--pairs", str(lines), "--aligner", "ibm1", "--out", str(out)]
    monkeypatch.setattr(ibm1, "iterate", interrupted)
    assert cli.main(words) == 2
    assert "the same command with --resume goes on" in capsys.readouterr().err and not out.exists()
    del steps[:]
    monkeypatch.setattr(ibm1, "iterate", lambda *given: steps.append(given[2]) or iterate(*given))
    assert cli.main([*words, "--resume"]) == 0
    assert steps == [2, 2, 3, 3, 4, 4]  # both directions
    assert f"{out}.checkpoint: continuing from it" in capsys.readouterr().err
    assert cli.main([*words, "--resume"]) == 2
    assert f"got none, and a complete table in {out} (leave out --resume to replace it)" in capsys.readouterr().err


def test_a_state_that_is_deleted_is_told(tmp_path, capsys, lines):
    state = tmp_path / "words.checkpoint" / "checkpoint.npz"
    state.parent.mkdir()
    state.write_bytes(b"of an hour")
    words = ["translate-table", "--pairs", str(lines), "--aligner", "ibm1", "--out", str(tmp_path / "words")]
    assert cli.main(words) == 0
    told = capsys.readouterr().err
    assert f"{state.parent}: deleted, starting anew (--resume would have continued from it)" in told
    assert not state.parent.exists()


def test_pages_and_dictionaries(tmp_path, capsys):
    pages = tmp_path / "pages.jsonl"
    rows = [{"left": "the house\n\na door", "right": "la casa\nuna puerta"}, {"left": "one\ntwo", "right": "uno"}]
    pages.write_text("".join(json.dumps(row) + "\n" for row in rows))
    run(capsys, "translate-table", "--pairs", pages, "--unit", "paragraphs", "--out", tmp_path / "words", "--word", "a")
    words = tmp_path / "words.txt"
    words.write_text("house :: casa, hogar\nice cream :: helado\n")
    printed = run(capsys, "translate-table", "--dictionary", words, "--out", tmp_path / "other", "--word", "house")
    assert printed == "house\tcasa\t0.5000\nhouse\thogar\t0.5000\n"


def test_options_of_a_learning_are_refused_where_nothing_is_learned(tmp_path, capsys):
    words = tmp_path / "words.txt"
    words.write_text("house :: casa\n")
    run(capsys, "translate-table", "--dictionary", words, "--out", tmp_path / "table", "--no-resume")
    learning = (["--threshold", "0.5"], ["--aligner", "ibm1"], ["--symmetrize", "none"], ["--max-iter", "2"],
                ["--languages", "en,es"], ["--resume"], ["--unit", "sentences"], ["--max-words", "9"],
                ["--format", "tsv"], ["--left", "1", "--right", "2"])  # fmt: skip
    for given, beside in ((["--dictionary", words, "--out", tmp_path / "new"], "--dictionary"),
                          (["--table", tmp_path / "table", "--word", "house"], "--table")):  # fmt: skip
        for option in learning:
            names = ", ".join(word for word in option if word.startswith("--"))
            message = f"{names}: expected no {beside} beside it, got both"
            assert refused(capsys, "translate-table", *given, *option) == message
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("option", [["--reverse"], ["--k", "3"], ["--json"]])
def test_options_of_what_is_printed_are_refused_where_no_word_is_asked_for(option, tmp_path, capsys, lines):
    message = f"{option[0]}: expected --word beside it, the word to translate, got none"
    assert refused(capsys, "translate-table", "--pairs", lines, "--out", tmp_path / "new", *option) == message
    assert not (tmp_path / "new").exists()


def test_bad_input_is_one_line(tmp_path, capsys, lines):
    assert "expected one of them, got none" in refused(capsys, "translate-table", "--word", "x")
    assert "--word: expected a word" in refused(capsys, "translate-table", "--table", tmp_path)
    assert "expected the folder of a translation table" in refused(capsys, "translate-table", "--table", tmp_path,
                                                                   "--word", "x")
    assert "--out: expected a folder" in refused(capsys, "translate-table", "--pairs", lines)
    assert refused(capsys, "translate-table", "--pairs", lines, "--languages", "en,Spanish", "--out",
                   tmp_path / "new").startswith("--languages: expected a code")
    phrases = tmp_path / "phrases.txt"
    phrases.write_text("ice cream\thelado\n")
    assert "expected single words" in refused(capsys, "translate-table", "--dictionary", phrases, "--out",
                                              tmp_path / "new")
    empty = tmp_path / "empty.tsv"
    empty.write_text("a\t \n")
    assert "expected" in refused(capsys, "translate-table", "--pairs", empty, "--out", tmp_path / "new")
