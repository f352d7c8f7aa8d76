"""The command `complete`: models of a folder of texts, questions, and bad input."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import zipfile

import numpy as np
import program_until_stopped
import pytest
from command_line import refused

from jaxsim import cli, io
from jaxsim.cli import complete

TOPICS = [["tea", "cup", "sugar", "milk"], ["horse", "saddle", "field", "barn"], ["ship", "sea", "sail", "wave"]]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with texts, questions and a model of them."""
    draw, place = random.Random(0), tmp_path_factory.mktemp("complete")
    (place / "texts").mkdir()
    frame = "The {} and the {} of {} were here again."
    lines = [frame.format(*draw.sample(draw.choice(TOPICS), 3)) for _ in range(800)]
    (place / "texts" / "a.txt").write_text("\n\n".join(lines))
    rows = []
    for _ in range(12):
        topic = draw.choice(TOPICS)
        first, second, answer = draw.sample(topic, 3)
        others = draw.sample([word for other in TOPICS if other is not topic for word in other], 2)
        rows.append({"question": f"The {first} and the {second} of _____.", "choices": [answer, *others],
                     "answer": answer})  # fmt: skip
    (place / "q.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["complete", "--texts", place / "texts", "--questions", place / "q.jsonl", "--out", place / "model"]
    assert cli.main([*map(str, command), "--min-count", "1"]) == 0
    return place


def test_the_word_of_the_topic_is_chosen(place, capsys):
    asked = ["--question", "The cup and the _____ of sugar.", "--choices", "horse,tea,zzz"]
    assert cli.main(["complete", "--model", str(place / "model"), *asked, "--json"]) == 0
    captured = capsys.readouterr()
    one = json.loads(captured.out)[0]
    assert one["best"] == ["tea"] and [row["choice"] for row in one["choices"]] == [["horse"], ["tea"], ["zzz"]]
    names = ["combination", "lsa-totsim", "n-gram, Good-Turing", "n-gram, Kneser-Ney", "pmi-weighted",
             "pmi-window"]
    assert sorted(one["choices"][0]["scores"]) == names
    assert "not in the training text: zzz" in captured.err
    assert cli.main(["complete", "--model", str(place / "model"), *asked]) == 0
    assert "best: tea" in capsys.readouterr().out


def test_choices_that_tie_are_said_and_the_right_one_counts_a_share(place, tmp_path, capsys):
    row = {"question": "The zork of _____ .", "choices": ["quux", "blip"], "answer": "blip"}
    (tmp_path / "q.jsonl").write_text("\n" + json.dumps(row))
    asked = ["--questions", str(tmp_path / "q.jsonl"), "--json"]
    assert cli.main(["complete", "--model", str(place / "model"), *asked]) == 0
    out, err = capsys.readouterr()
    one = json.loads(out)[0]
    assert one["best"] == ["quux"] and one["tied"] == [["quux"], ["blip"]]
    assert f"{tmp_path / 'q.jsonl'}, line 2: 2 choices tie, and the first of them is given as the best\n" in err
    assert f"{tmp_path / 'q.jsonl'}, line 2: not in the training text: blip, quux" in err
    assert "right: 0.5 of 1 with an answer\n" in err


def test_a_rare_choice_does_not_have_the_probability_of_all_rare_words(tmp_path, capsys):
    (tmp_path / "texts").mkdir()
    letters = "abcdefghij"
    lines = [f"The cat drank the milk near a {a}{b}q and the {b}{a}z." for a in letters for b in letters]
    (tmp_path / "texts" / "a.txt").write_text("\n\n".join([*lines, "We shut the obelisk in a box."]))
    assert cli.main(["complete", "--texts", str(tmp_path / "texts"), "--out", str(tmp_path / "model")]) == 0
    asked = ["--question", "The old _____ was a good one.", "--choices", "cat,obelisk,zzz", "--json"]
    assert cli.main(["complete", "--model", str(tmp_path / "model"), *asked]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    scores = [[row["scores"][f"n-gram, {name}"] for row in one["choices"]] for name in ("Good-Turing", "Kneser-Ney")]
    assert all(obelisk > unseen for _, obelisk, unseen in scores) and scores[1][0] > scores[1][1]


def test_folders_of_earlier_formats_have_fewer_models_and_answer_as_they_did(place, tmp_path, capsys):
    command = ["--questions", str(place / "q.jsonl"), "--json"]
    assert cli.main(["complete", "--model", str(place / "model"), *command]) == 0
    whole = json.loads(capsys.readouterr().out)
    for number, left_out in ((2, ["weights.npz"]), (1, ["weights.npz", "space.npz"])):
        older = tmp_path / str(number)
        shutil.copytree(place / "model", older)
        config = io.unsealed(older / io.CONFIG, newest=complete.FORMAT)
        names = complete.MODELS[: -len(left_out)]
        for name in left_out:
            (older / name).unlink()
            del config["sha256"][name]
            config["files"].remove(name)
        config |= {"format": number, "models": list(names), "weights": config["weights"][: len(names)]}
        (older / io.CONFIG).write_bytes(io.sealed(config))
        assert cli.main(["complete", "--model", str(older), *command]) == 0
        for one, other in zip(json.loads(capsys.readouterr().out), whole, strict=True):
            for row, beside in zip(one["choices"], other["choices"], strict=True):
                assert set(row["scores"]) == {*names, "combination"}
                assert all(row["scores"][name] == beside["scores"][name] for name in names)
    (tmp_path / "1" / "good-turing.npz").unlink()
    assert cli.main(["complete", "--model", str(tmp_path / "1"), *command]) == 2
    assert "good-turing.npz: expected a file of the model" in capsys.readouterr().err


def test_learned_weights_tell_words_of_a_topic_apart_and_damaged_ones_are_refused(place, tmp_path, capsys):
    shutil.copytree(place / "model", tmp_path / "model")
    command = ["complete", "--model", str(tmp_path / "model"), "--questions", str(place / "q.jsonl"), "--json"]
    rows = [json.loads(line) for line in (place / "q.jsonl").read_text().splitlines()]
    assert cli.main(command) == 0
    right = 0
    for one, row in zip(json.loads(capsys.readouterr().out), rows, strict=True):
        scores = {choice["choice"][0]: choice["scores"]["pmi-weighted"] for choice in one["choices"]}
        right += max(scores, key=scores.get) == row["answer"]
    assert right >= 11
    path = tmp_path / "model" / "weights.npz"
    weights = np.load(path)["weights"]
    for wrong, message in ((weights[:-1], "weights: expected float64 of shape (162,)"),
                           (weights * np.nan, "weights: expected"), (weights.astype("f4"), "weights: expected float64"),
                           (np.array([None]), "expected weights of mutual information, got")):  # fmt: skip
        np.savez(path, weights=wrong)
        config = io.unsealed(tmp_path / "model" / io.CONFIG, newest=complete.FORMAT)
        config["sha256"]["weights.npz"] = io.file_digest(path)
        (tmp_path / "model" / io.CONFIG).write_bytes(io.sealed(config))
        assert cli.main(command) == 2
        error = capsys.readouterr().err.strip()
        assert f"weights.npz: {message}" in error and len(error.splitlines()) == 1, error


@pytest.mark.parametrize("text", [
    "The tea. The cup. The sea.\n\n" * 30, "The tea and one two three four five six seven eight nine ten.",
    "1 2 3 4 5 6 7 8 9. 9 8 7 6 5 4 3 2 1. ; , .",
])  # fmt: skip
def test_a_text_without_gaps_has_no_weights_and_it_is_said(tmp_path, capsys, text):
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "a.txt").write_text(text)
    command = ["complete", "--texts", str(tmp_path / "texts"), "--out", str(tmp_path / "model"), "--min-count", "1"]
    assert cli.main(command) == 0
    assert "weights of mutual information: none, too little text" in capsys.readouterr().err
    asked = ["--question", "The _____ .", "--choices", "tea,cup", "--json"]
    assert cli.main(["complete", "--model", str(tmp_path / "model"), *asked]) == 0
    (one,) = json.loads(capsys.readouterr().out)
    assert [row["scores"]["pmi-weighted"] for row in one["choices"]] == [0, 0]


def test_questions_of_a_file_are_answered_in_order(place, capsys):
    assert cli.main(["complete", "--model", str(place / "model"), "--questions", str(place / "q.jsonl"), "--json"]) == 0
    out, err = capsys.readouterr()
    results = json.loads(out)
    rows = [json.loads(line) for line in (place / "q.jsonl").read_text().splitlines()]
    right = sum(one["best"] == [row["answer"]] for one, row in zip(results, rows, strict=True))
    assert right >= 11 and f"right: {right} of {len(rows)} with an answer" in err


def test_an_interrupted_training_goes_on_to_the_same_files(place, monkeypatch, capsys):
    from jaxsim.methods.language import ngram

    def arrays(folder):
        return {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.np?")}

    fit = ngram.fit
    command = ["complete", "--texts", str(place / "texts"), "--out", str(place / "again"), "--min-count", "1"]

    def stopped(*data, smoothing, **settings):
        if smoothing == "kneser-ney":
            raise KeyboardInterrupt
        return fit(*data, smoothing=smoothing, **settings)

    monkeypatch.setattr(ngram, "fit", stopped)
    assert cli.main([*command, "--order", "2"]) == 2  # of other settings: begun anew
    assert cli.main(command) == 2
    assert f"interrupted; what is finished is kept in {place / 'again.unfinished'}: " in capsys.readouterr().err
    assert not (place / "again").exists()
    unfinished = place / "again.unfinished"
    kept = (unfinished / "good-turing.npz").stat().st_mtime_ns
    (unfinished / ".sentences.x.part").mkdir()  # what kill -9 leaves
    (unfinished / f".kneser-ney.npz.{2**22 + 1}.part").write_bytes(b"half")  # of no process
    monkeypatch.setattr(ngram, "fit", fit)
    assert cli.main(command) == 0
    assert not [path.name for path in (place / "again").iterdir() if path.name.endswith(".part")]
    assert (place / "again" / "good-turing.npz").stat().st_mtime_ns == kept
    assert arrays(place / "again") == arrays(place / "model") and not unfinished.exists()


@pytest.mark.parametrize("name", ["tokens.npy", "words.txt", "config.json"])
@pytest.mark.parametrize("damage", ["cut", "gone"])
def test_damaged_sentences_of_an_unfinished_folder_are_written_anew(place, tmp_path, monkeypatch, capsys, name, damage):
    from jaxsim.methods.language import ngram

    command = ["complete", "--texts", str(place / "texts"), "--out", str(tmp_path / "again"), "--min-count", "1"]
    with monkeypatch.context() as patch:
        patch.setattr(ngram, "fit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cli.main(command) == 2
        path = tmp_path / "again.unfinished" / "sentences" / name
        whole = path.read_bytes()
        path.write_bytes(whole[:-40])
        if damage == "gone":
            path.unlink()
        assert cli.main(command) == 2  # interrupted again, at the n-grams
    assert capsys.readouterr().err.count("sentences: written") == 2 and path.read_bytes() == whole


def test_an_older_model_is_usable_until_a_new_one_is_whole(place, tmp_path, monkeypatch, capsys):
    from jaxsim.methods.language import ngram

    out = tmp_path / "model"
    shutil.copytree(place / "model", out)
    before = {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with monkeypatch.context() as patch:
        patch.setattr(ngram, "fit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        assert cli.main(["complete", "--texts", str(place / "texts"), "--out", str(out), "--order", "2"]) == 2
        patch.undo()
        put = io.put_folder
        patch.setattr(io, "put_folder", lambda *_, **__: (_ for _ in ()).throw(OSError("the disk is full")))
        assert cli.main(["complete", "--texts", str(place / "texts"), "--out", str(out), "--order", "2"]) == 2
    assert io.put_folder is put
    assert before == {path.relative_to(out): path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert cli.main(["complete", "--texts", str(place / "texts"), "--out", str(out), "--order", "2"]) == 0
    assert io.unsealed(out / io.CONFIG, newest=complete.FORMAT)["settings"]["order"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


def test_models_of_other_commands_are_not_replaced(place, folder, trained, capsys):
    shutil.copytree(trained, folder / "model")
    before = (folder / "model" / "config.json").read_bytes()
    assert cli.main(["complete", "--texts", str(place / "texts"), "--out", "model"]) == 2
    wanted = "--out: expected a new folder, or one that holds an older completion model of ours"
    assert wanted in capsys.readouterr().err
    assert (folder / "model" / "config.json").read_bytes() == before
    shutil.copytree(place / "model", folder / "completion")
    assert cli.main(["similarity", "--model", "completion", "tea", "cup"]) == 2
    assert "completion: expected a model of texts, got one of another kind (completion)" in capsys.readouterr().err
    assert cli.main(["train", "--pairs", "pairs.tsv", "--out", "completion", "--method", "opca", "--dim", "2"]) == 2
    assert "expected a new folder, or one that holds an older model of ours" in capsys.readouterr().err


@pytest.mark.programs
@pytest.mark.parametrize(("at", "kept"), [
    (r"/sentences$", []), (r"good-turing\.npz$", ["sentences/tokens.npy"]),
    (r"space\.npz$", ["sentences/tokens.npy", "good-turing.npz", "kneser-ney.npz"]),
    (r"weights\.npz$", ["good-turing.npz", "kneser-ney.npz", "space.npz"]),
    (r"unfinished/config\.json$", ["sentences/tokens.npy", "kneser-ney.npz", "space.npz", "weights.npz"]),
])  # fmt: skip
def test_a_training_goes_on_after_kill_9_to_the_same_files(place, tmp_path, at, kept):
    out = tmp_path / "killed"
    command = ["complete", "--texts", str(place / "texts"), "--questions", str(place / "q.jsonl"), "--out", str(out),
               "--min-count", "1"]
    program = [sys.executable, program_until_stopped.__file__, str(int(signal.SIGKILL)), at, "jaxsim", *command]
    done = subprocess.run(program, capture_output=True, text=True, timeout=240, check=False,
                          env={**os.environ, "JAX_PLATFORMS": "cpu", "JAX_ENABLE_X64": "1"})
    assert done.returncode == -signal.SIGKILL, done.stderr
    before = {name: (tmp_path / "killed.unfinished" / name).stat().st_mtime_ns for name in kept}
    assert not out.exists()
    assert cli.main(command) == 0
    assert {name: (out / name).stat().st_mtime_ns for name in kept} == before  # not made again
    names = [sorted(path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
             for folder in (out, place / "model")]
    assert names[0] == names[1]
    for name in names[0]:
        assert (out / name).read_bytes() == (place / "model" / name).read_bytes(), name


@pytest.mark.parametrize(("options", "message"), [
    (["--question", "No hole.", "--choices", "a,b"], "--question: expected a blank"),
    (["--question", "A _____ .", "--choices", "a"], "--choices: expected at least two different choices"),
    (["--question", "A _____ .", "--choices", "a,a"], "--choices: expected at least two different choices"),
    (["--question", "A _____ ."], "--choices"), ([], "--question, --questions: expected one of the two"),
    (["--question", "A _____ and _____ .", "--choices", "a,b"], "each blank"),
])
def test_bad_questions_are_one_line(place, capsys, options, message):
    assert cli.main(["complete", "--model", str(place / "model"), *options]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error and len(error.splitlines()) == 1


def test_bad_folders_are_one_line(place, tmp_path, capsys):
    (tmp_path / "empty").mkdir()
    (tmp_path / "blank").mkdir()
    (tmp_path / "blank" / "a.txt").write_text(" \n")
    for options, message in ((["--texts", tmp_path / "empty", "--out", tmp_path / "m"], "at least one .txt file"),
                             (["--texts", tmp_path / "blank", "--out", tmp_path / "m"], "blank: expected at least one"),
                             (["--texts", place / "texts"], "--texts, --out: expected both"),
                             (["--texts", place / "texts", "--out", place / "texts"], "a new folder"),
                             (["--model", tmp_path, "--question", "_____", "--choices", "a,b"], "another folder"),
                             (["--model", tmp_path / "none", "--question", "_____", "--choices", "a,b"],
                              f"--texts TEXTS --out MODEL` makes one), got {tmp_path / 'none'}, which does not exist"),
                             ([], "--model")):  # fmt: skip
        assert cli.main(["complete", *map(str, options)]) == 2
        error = capsys.readouterr().err.strip()
        assert message in error and len(error.splitlines()) == 1, error
    assert sorted(path.name for path in tmp_path.iterdir()) == ["blank", "empty"]


def test_a_model_among_its_texts_is_refused_before_anything_is_written(place, tmp_path, capsys):
    (tmp_path / "texts" / "more").mkdir(parents=True)
    (tmp_path / "texts" / "a.txt").write_text("Tea is hot.")
    (tmp_path / "link").symlink_to(tmp_path / "texts")
    for out in ("texts/m", "texts/more/m", "link/m"):
        error = refused(capsys, "complete", "--texts", tmp_path / "texts", "--out", tmp_path / out)
        assert "--out: expected a folder outside --texts" in error and f"{tmp_path / out}; write the model" in error
    assert sorted(path.name for path in (tmp_path / "texts").rglob("*")) == ["a.txt", "more"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "texts"]


@pytest.mark.parametrize(("options", "message"), [
    (["--texts", "texts", "--out", "m", "--choices", "a,b"], "--choices: expected no --out beside it, got both"),
    (["--texts", "texts", "--out", "m", "--json"], "--json: expected no --out beside it, got both"),
    (["--model", "model", "--questions", "q.jsonl", "--choices", "a,b"], "--choices: expected no --questions"),
    (["--model", "model", "--questions", "q.jsonl", "--order", "4"], "--order: expected no --model beside it"),
    (["--model", "model", "--question", "A _____.", "--choices", "tea,cup", "--min-count", "1", "--order", "2"],
     "--order, --min-count: expected no --model beside it, got both"),
])  # fmt: skip
def test_options_that_change_nothing_are_refused(place, monkeypatch, capsys, options, message):
    monkeypatch.chdir(place)
    assert message in refused(capsys, "complete", *options)
    assert not (place / "m").exists() and not (place / "m.unfinished").exists()


@pytest.mark.parametrize(("name", "change", "message"), [
    ("words", lambda array: array + 10**6, "words: expected ascending numbers of the"),
    ("words", lambda array: -array, "words: expected ascending numbers of the"),
    ("words", lambda array: array.astype(np.int64), "words: expected int32"),
    ("vectors", lambda array: array[:-1], "vectors: expected"),
    ("vectors", lambda array: array * np.nan, "vectors: expected"),
    ("singular", lambda array: array[:-1], "singular: expected"),
    ("singular", lambda _: np.array([None]), "expected the vectors of words, got"),
])
def test_no_vector_of_a_word_reaches_a_product_unchecked_whoever_wrote_the_digests(
    place, tmp_path, capsys, name, change, message
):
    shutil.copytree(place / "model", tmp_path / "model")
    space = tmp_path / "model" / "space.npz"
    with np.load(space) as kept:
        arrays = dict(kept)
    np.savez(space, **(arrays | {name: change(arrays[name])}))
    config = io.unsealed(tmp_path / "model" / io.CONFIG, newest=complete.FORMAT)
    config["sha256"]["space.npz"] = io.file_digest(space)
    (tmp_path / "model" / io.CONFIG).write_bytes(io.sealed(config))
    assert cli.main(["complete", "--model", str(tmp_path / "model"), "--questions", str(place / "q.jsonl")]) == 2
    error = capsys.readouterr().err.strip()
    assert f"space.npz: {message}" in error and len(error.splitlines()) == 1, error


@pytest.mark.parametrize("file", ["space.npz", "weights.npz"])
@pytest.mark.parametrize("content", ["array", "archive"])
def test_files_of_other_things_are_refused_whoever_wrote_the_digests(place, tmp_path, capsys, file, content):
    shutil.copytree(place / "model", tmp_path / "model")
    path = tmp_path / "model" / file
    if content == "array":
        with open(path, "wb") as array:
            np.save(array, np.zeros(3))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            for name in ("words", "vectors", "singular", "weights"):  # NumPy gives the bytes of what is no array
                archive.writestr(name, b"text")
    config = io.unsealed(tmp_path / "model" / io.CONFIG, newest=complete.FORMAT)
    config["sha256"][file] = io.file_digest(path)
    (tmp_path / "model" / io.CONFIG).write_bytes(io.sealed(config))
    assert f"{file}: " in refused(capsys, "complete", "--model", tmp_path / "model", "--questions", place / "q.jsonl")


def test_scores_that_differ_by_rounding_are_equal():
    rounding = np.array([[[-17.09048819541931, -17.4431], [-17.09048843383789, -17.5462]]])
    assert complete._standard(rounding)[0, :, 0].tolist() == [0, 0]
    np.testing.assert_allclose(complete._standard(rounding)[0, :, 1], [0.05155, -0.05155])
    assert complete._standard(np.array([[[-np.inf], [-np.inf]]])).tolist() == [[[0], [0]]]
    assert complete._standard(np.array([[[-np.inf], [-1e3]]])).tolist() == [[[-4500], [4500]]]
    assert complete._standard(np.array([[[-2e4], [-4e4], [-np.inf]]])).ravel().argsort().tolist() == [2, 1, 0]
