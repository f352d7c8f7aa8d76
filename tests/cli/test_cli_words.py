"""The commands about opposites, on a made-up thesaurus of one's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
import scipy.sparse as sp
from command_line import refused, run

from jaxsim import cli
from jaxsim.data import thesauri
from jaxsim.model import Model, folders
from jaxsim.model.words import Words
from jaxsim.optim import checkpoints
from jaxsim.train import opposites


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A folder with a thesaurus and a list of antonyms."""
    monkeypatch.chdir(tmp_path)
    hot, cold = ["hot", "warm", "fiery", "boiling"], ["cold", "icy", "cool", "freezing"]
    rows = [{"head": head, "synonyms": same, "antonyms": other} for same, other in ((hot, cold), (cold, hot))
            for head in same]  # fmt: skip
    rows += [{"head": "open-handed", "synonyms": ["generous"], "antonyms": ["stingy", "generous"]}, {"head": "alone"}]
    (tmp_path / "mine.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "pairs.txt").write_text("generous stingy\nbig small\n")
    return tmp_path


def test_that_few_opposites_train_no_s2net_is_said(tmp_path, capsys):
    rows = [{"head": "tall", "synonyms": ["high"], "antonyms": ["short", "low"]},
            {"head": "hot", "synonyms": ["warm"], "antonyms": ["cold"]}]  # fmt: skip
    (tmp_path / "few.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    command = ["thesaurus", "--file", str(tmp_path / "few.jsonl"), "--out", str(tmp_path / "words"), "--dim", "2"]
    for more, said in (([], True), (["--no-refine"], False)):
        assert cli.main([*command, *more]) == 0
        told = "without S2Net: it is trained on 10 pairs of opposites or more, and there are 3 pairs"
        assert (told in capsys.readouterr().err) == said


def test_lengths_of_lists_are_refused_where_choices_are_compared(mine, capsys):
    run(capsys, "thesaurus", "--file", "mine.jsonl", "--out", "words", "--dim", 4, "--no-refine")
    command = ["words", "--model", "words", "--opposite-of", "hot", "--among", "cold,warm"]
    assert run(capsys, *command).startswith("*")
    assert refused(capsys, *command, "--k", 10) == "--k: expected no --among beside it, got both"
    assert "--k, --in-entries: expected no --among" in refused(capsys, *command, "--in-entries", 1, "--k", 3)


def test_a_thesaurus_becomes_a_model_that_names_opposites(mine, capsys):
    assert cli.main(["thesaurus", "--file", "mine.jsonl", "--antonyms", "pairs.txt", "--out", "words", "--dim", "4",
                     "--json"]) == 0  # fmt: skip
    out, err = capsys.readouterr()
    assert "mine: 9 entries; left out: 1 own antonyms, 1 empty" in err and "without S2Net" not in err
    facts = json.loads(out)
    assert (facts["method"], facts["words"], facts["entries"], facts["dim"]) == ("s2net-antonym", 13, 11, 4)
    result = json.loads(run(capsys, "words", "--model", "words", "--opposite-of", "HOT", "--k", 2, "--json"))
    assert result["how"] == "as written"
    assert {one["word"] for one in result["opposites"]} < {"cold", "icy", "cool", "freezing"}
    assert all(one["cosine"] < -0.8 for one in result["opposites"]) and result["nearest"][0]["cosine"] > 0.8
    assert cli.main(["words", "--model", "words", "--opposite-of", "hot", "--in-entries", "99"]) == 0
    assert "hot: no opposite among the words with enough entries" in capsys.readouterr().err
    lines = run(capsys, "words", "--model", "words", "--like", "boiled", "--k", 1).splitlines()
    assert len(lines) == 1 and lines[0].split("\t")[:2] == ["nearest", "1"]
    chosen = run(capsys, "words", "--model", "words", "--opposite-of", "generous", "--among", "big,stingy,xyzzy")
    assert chosen.splitlines()[1].startswith("*\t-") and chosen.splitlines()[2] == " \tunknown\txyzzy"
    command = ["words", "--model", "words", "--opposite-of", "HOT", "--among", "warmed,icy,xyzzy"]
    result = json.loads(run(capsys, *command, "--json"))
    assert result["answer"] == "icy" and (result["how"], result["as"]) == ("as written", ["hot"])
    assert result["choices"]["warmed"] == {"how": "base form", "as": ["warm"]}
    assert result["choices"]["xyzzy"] == {"how": "unknown", "as": []} and result["cosines"]["xyzzy"] is None
    assert cli.main(command) == 0
    assert capsys.readouterr().err == "warmed: not in the thesauri; by its base form, as warm\n"
    # The folder is a model like any other: one word is one text.
    cosine = float(run(capsys, "similarity", "--model", "words", "hot", "icy"))
    assert cosine == pytest.approx(Words.load("words").similarity("hot", "icy"), abs=1e-5)
    cosine = float(run(capsys, "similarity", "--model", "words", "Open handed", "generous"))
    assert cosine == pytest.approx(Words.load("words").similarity("open-handed", "generous"), abs=1e-5) != 0


def test_how_a_word_was_found_is_said_and_an_unknown_one_is_refused(mine, capsys):
    cli.main(["thesaurus", "--file", "mine.jsonl", "--out", "words", "--dim", "2", "--no-refine"])
    capsys.readouterr()
    assert cli.main(["words", "--model", "words", "--like", "warmed", "--in-entries", "1"]) == 0
    assert "warmed: not in the thesauri; by its base form, as warm" in capsys.readouterr().err
    unknown = refused(capsys, "words", "--model", "words", "--opposite-of", "xyzzy")
    assert unknown == "--opposite-of: expected a word that the thesauri have, or a form of one, got 'xyzzy'"
    assert "--like: expected a word that the thesauri have" in refused(
        capsys, "words", "--model", "words", "--like", "warm\udcff")
    assert refused(capsys, "words", "--model", "words") == "--opposite-of, --like: expected one of them, got neither"
    assert "--among: expected at least one word that the thesauri have, got xyzzy" in refused(
        capsys, "words", "--model", "words", "--opposite-of", "hot", "--among", "xyzzy")


def test_words_of_every_entry_have_no_vector_and_it_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [{"head": "hot", "synonyms": ["warm"], "antonyms": ["cold"]},
            {"head": "hot", "synonyms": ["heated"], "antonyms": ["cold", "icy"]}]  # fmt: skip
    Path("few.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert cli.main(["thesaurus", "--file", "few.jsonl", "--out", "words"]) == 0
    assert "2 words without a vector: hot, cold (" in capsys.readouterr().err
    assert Words.load("words").without_vector() == ["hot", "cold"]
    asked = ["words", "--model", "words", "--opposite-of", "hot", "--among", "icy,heated"]
    assert cli.main(asked) == 0  # the senses of *hot* have vectors, those of its entries
    assert capsys.readouterr().out.startswith("*\t-")
    plain = replace(Words.load("words"), entries=None)
    plain.save("words")
    assert refused(capsys, *asked) == "--opposite-of: expected a word with a vector, got 'hot', whose vector is zero"
    assert cli.main(["words", "--model", "words", "--opposite-of", "icy", "--among", "cold,hot"]) == 0
    err = capsys.readouterr().err
    assert "2 choices tie, and the first of them is given as the answer" in err and "one vector a word" in err


def test_what_has_no_part_in_the_dimensions_has_no_vector_instead_of_rounding(tmp_path, monkeypatch, capsys):
    """Contradictory entries, which share no word with the others, and are beyond the leading dimensions."""
    monkeypatch.chdir(tmp_path)
    rows = [{"head": f"a{i}", "synonyms": [f"a{(i + step) % 20}" for step in range(1, 10)], "antonyms": [f"b{i}"]}
            for i in range(20)]  # fmt: skip
    rows += [{"head": "fast", "synonyms": [same], "antonyms": [other]} for same, other in
             (("quick", "slow"), ("slow", "quick"))]  # fmt: skip
    Path("mine.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    assert cli.main(["thesaurus", "--file", "mine.jsonl", "--out", "words", "--dim", "3", "--epochs", "3"]) == 0
    assert "3 words without a vector: fast, quick, slow (" in capsys.readouterr().err
    assert refused(capsys, "words", "--model", "words", "--opposite-of", "fast") == (
        "--opposite-of: expected a word with a vector, got 'fast', whose vector is zero")


@pytest.mark.parametrize(("words", "message"), [
    (["--out", "words"], "--sources, --file, --antonyms: expected at least one of them, got none"),
    (["--sources", "moby", "--out", "words"], "--sources: expected some of wordnet, wordnet-rich, fallows"),
    (["--sources", "soule,soule", "--out", "words"], "--sources: expected each source once"),
    (["--file", "none.jsonl", "--out", "words"], "none.jsonl: No such file or directory"),
    (["--file", "mine.jsonl", "--out", "words", "--no-refine", "--resume", "state"],
     "--resume: expected no --no-refine beside it"),
    (["--file", "mine.jsonl", "--out", "words", "--no-refine", "--epochs", "7"],
     "--epochs: expected no --no-refine beside it"),
    (["--file", "mine.jsonl", "--out", "mine.jsonl"], "--out: expected a new folder"),
])  # fmt: skip
def test_bad_input_is_one_line(mine, capsys, words, message):
    assert refused(capsys, "thesaurus", *words).startswith(message)


@pytest.mark.parametrize(("changes", "message"), [
    ({"entry_words": np.array([1, 0, -2], np.int32)}, "entry_words: expected numbers of words, from 1 to 2"),
    ({"entry_words": np.array([1, 3, -2], np.int32)}, "entry_words: expected numbers of words, from 1 to 2"),
    ({"entry_words": np.array([1, 2, -(2**31)], np.int32)}, "entry_words: expected numbers of words, from 1 to 2"),
    ({"entry_words": np.array([1.0, 2.0, -2.0])}, "entry_words: expected"),
    ({"entry_ends": np.array([2, 1], np.int64)}, "entry_ends: expected numbers that rise to 3"),
    ({"entry_ends": np.array([2, 4], np.int64)}, "entry_ends: expected numbers that rise to 3"),
    ({"entry_ends": np.array([3], np.int64)}, r"entries: expected shape \(2, 2\) \(entries, words\), got \(1, 2\)"),
    ({"entry_ends": None}, "model.safetensors: expected a model with 'entry_ends', got one without"),
    ({"entry_words": None}, "model.safetensors: expected a model with 'entry_words', got one without"),
])  # fmt: skip
def test_damaged_entries_are_refused(tmp_path, changes, message):
    some = Words.of(["hot", "cold"], np.eye(2), [2, 1], 2, method="pilsa", training={},
                    signs=sp.csr_matrix([[1, -1], [1, 0]]))  # fmt: skip
    contents = some.model.contents()
    given = {"entry_words": np.array([1, -2, 1], np.int32), "entry_ends": np.array([2, 3], np.int64)}
    contents["tensors"] |= {name: array for name, array in (given | changes).items() if array is not None}
    folders.save(tmp_path / "words", **contents)
    with pytest.raises(ValueError, match=message):
        Words.load(tmp_path / "words")


KILLED = """
import os, signal, sys
from jaxsim import cli
from jaxsim.optim import checkpoints
save, saved = checkpoints.save, []
def stop(*state, **options):
    save(*state, **options)
    saved.append(1)
    if len(saved) == 2:
        os.kill(os.getpid(), signal.SIGKILL)
checkpoints.save = stop
cli.main(sys.argv[1:])
"""


@pytest.mark.programs
def test_after_kill_9_resume_goes_on_to_the_same_words(mine, monkeypatch):
    command = ["thesaurus", "--file", "mine.jsonl", "--antonyms", "pairs.txt", "--dim", "4", "--epochs", "5"]
    environment = {**os.environ, "JAX_ENABLE_X64": "1"}  # as in this process
    killed = [*command, "--out", "killed", "--resume", "state"]
    assert subprocess.run([sys.executable, "-c", KILLED, *killed], env=environment).returncode == -9
    assert not Path("killed").exists()
    load, found = checkpoints.load, []
    monkeypatch.setattr(checkpoints, "load", lambda *some, **more: found.append(load(*some, **more)) or found[-1])
    assert cli.main(killed) == 0 and any(state is not None for state in found)
    assert cli.main([*command, "--out", "whole"]) == 0
    again, whole = Words.load("killed"), Words.load("whole")
    np.testing.assert_array_equal(again.model.params.weights, whole.model.params.weights)
    assert again.model.training == whole.model.training


def test_a_file_is_its_own_thesaurus_whatever_its_name(mine, capsys):
    Path("other").mkdir()
    for name in ("fallows", "mine"):
        Path(f"other/{name}.jsonl").write_bytes(Path("mine.jsonl").read_bytes())
    files = ["other/fallows.jsonl", "mine.jsonl", "other/mine.jsonl", "other/mine.jsonl"]
    sources, _ = opposites.read(files=files, antonyms=["pairs.txt"])
    names = ["other/fallows.jsonl", "mine", "other/mine.jsonl", "other/mine.jsonl (2)", "pairs"]
    assert [source.name for source in sources] == names
    facts = opposites.build(sources, key=jax.random.key(0), k=3, refine=False).model.training
    assert facts["sources"] == dict.fromkeys(names, 1.0) and list(facts["dropped"]) == names
    named = [thesauri.read("mine.jsonl", name="fallows") for _ in range(3)]
    facts = opposites.build(named, key=jax.random.key(0), k=3, refine=False).model.training
    assert facts["sources"] == {"fallows": 1.0, "fallows (2)": 1.0, "fallows (3)": 1.0}
    assert list(facts["dropped"]) == ["fallows", "fallows (2)", "fallows (3)"]
    named[1] = replace(named[1], corpus="thesauri")
    facts = opposites.build(named, key=jax.random.key(0), k=3, refine=False).model.training
    assert facts["sources"] == {"fallows": 1.0, "fallows (2)": 2.0, "fallows (3)": 1.0}


def test_words_are_saved_and_exported(mine, capsys):
    sources, irregular = opposites.read(files=["mine.jsonl"], antonyms=["pairs.txt"])
    words = opposites.build(sources, key=jax.random.key(0), k=3, refine=False, irregular=irregular)
    words.save("words")
    again = Words.load("words")
    np.testing.assert_array_equal(again.model.params.weights, words.model.params.weights)
    np.testing.assert_array_equal(again.entries.toarray(), words.entries.toarray())
    assert again.opposition("hot", ["icy", "zyx"]) == words.opposition("hot", ["icy", "zyx"])
    assert replace(again, entries=None).opposition("hot", ["cool"]) == [again.similarity("hot", "cool")]
    assert words.closest_opposite("hot", ["warm", "icy"]) == "icy" and words.closest_opposite("zyx", ["hot"]) is None
    run(capsys, "export", "--model", "words", "--to", "jaxsim", "--weights", "float16", "--out", "half")
    np.testing.assert_allclose(Words.load("half").opposition("hot", ["cool", "icy"]),
                               words.opposition("hot", ["cool", "icy"]), atol=2e-3)  # fmt: skip
    facts = json.loads(run(capsys, "export", "--model", "words", "--to", "word2vec", "--out", "vectors", "--json"))
    assert not facts["exact"] and "Left out: 1 word of several parts" in facts["note"]
    vectors = {line.split()[0]: np.array(line.split()[1:], float)
               for line in Path("vectors/vectors.txt").read_text().splitlines()[1:]}  # fmt: skip
    assert "open-handed" not in vectors and vectors["hot"] @ vectors["icy"] < 0
    other = Model.load("words")
    with pytest.raises(ValueError, match="model: expected one of words"):
        Words(Model(other.vocabulary, other.params, weighting="tf"))
