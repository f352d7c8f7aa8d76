"""`jaxsim train` with SSI and on grades, and the commands that use such models."""

from __future__ import annotations

import json
import os
from types import SimpleNamespace

import numpy as np
import pytest
from command_line import LEFT, OPCA, RIGHT, interrupting, of_other, refused, run

from jaxsim import cli
from jaxsim.cli import train
from jaxsim.evaluate import mates
from jaxsim.model import Model
from jaxsim.train import linked

SSI = ["train", "--pairs", "pairs.tsv", "--out", "model", "--method", "ssi", "--dim", "4", "--max-iter", "3"]
MSE = ["train", "--pairs", "graded.tsv", "--out", "model", "--method", "s2net-mse", "--dim", "6", "--max-iter", "3"]
ALONE = "--model: expected one with a projection alone (or search and similarity), got W = UᵀV + b·I (ssi)"


@pytest.fixture(scope="module")
def learned(tmp_path_factory):
    """A folder of SSI, trained once."""
    place = tmp_path_factory.mktemp("ssi")
    (place / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in zip(LEFT, RIGHT, strict=True)))
    words = [str(place / word) if word in ("pairs.tsv", "model") else word for word in SSI]
    assert cli.main([*words, "--dev", "0.2"]) == 0
    return str(place / "model")


@pytest.fixture
def graded(folder):
    rows = zip(LEFT, RIGHT[1:] + RIGHT[:1], [i % 4 for i in range(40)], strict=True)
    (folder / "graded.tsv").write_text("".join(f"{a}\t{b}\t{grade}\n" for a, b, grade in rows))
    return folder


def test_ssi_is_trained_shown_and_used(learned, folder, capsys):
    shown = run(capsys, *SSI, "--dev", 0.2).splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["ssi", "untrained"] and not os.path.exists("model.checkpoint")
    assert run(capsys, "search", "--model", "model", "--documents", "texts.txt", "--query", LEFT[7]) == run(
        capsys, "search", "--model", learned, "--documents", "texts.txt", "--query", LEFT[7])  # fmt: skip
    model = Model.load(learned)
    scores, rows = model.search(LEFT[7:8], model.vectors(RIGHT), k=2)
    lines = run(capsys, "search", "--model", learned, "--documents", "texts.txt", "--query", LEFT[7], "--k", 2)
    assert lines.splitlines() == [f"{rank + 1}\t{scores[0, rank]:.6f}\t{rows[0, rank] + 1}\t{RIGHT[rows[0, rank]]}"
                                  for rank in range(2)]  # fmt: skip
    one = run(capsys, "similarity", "--model", learned, LEFT[0], RIGHT[0])
    assert float(one) == pytest.approx(float(model.similarity(LEFT[0], RIGHT[0])), abs=2e-6) and float(one) > 1
    facts = json.loads(run(capsys, "evaluate", "--model", learned, "--pairs", "pairs.tsv", "--json"))
    sides = model.vectors(LEFT, side="query"), model.vectors(RIGHT)
    every = model.similarity(LEFT, RIGHT)
    ranks = [np.sum(one >= own) for one, own in zip([*every, *every.T], [*np.diag(every)] * 2, strict=True)]
    assert facts["mrr"]["mean"] == pytest.approx(np.mean(1 / np.array(ranks)))
    assert facts["mrr"]["mean"] == pytest.approx(mates.scores(*sides, similarity=model.scorer)["mrr"])


@pytest.mark.parametrize(("method", "start"), [("ssi", "OPCA beside the words"),
                                               ("ssi-sym", "which knows no more than the words")])  # fmt: skip
def test_it_is_said_that_the_model_is_its_start(method, start, folder, capsys, monkeypatch):
    """Where words find every mate, nothing is better."""
    def fail(*_, **__):
        raise FloatingPointError("params: expected finite parameters")

    if "OPCA" not in start:
        monkeypatch.setattr(linked.s2net.opca, "fit", fail)
    texts = [f"one{i % 8} two{i // 8}" for i in range(40)]
    (folder / "same.tsv").write_text("".join(f"{one}\t{one} more\n" for one in texts))
    assert cli.main(["train", "--pairs", "same.tsv", "--out", "same", "--method", method, "--dim", "4", "--dev", "0.2",
                     "--identity", "10", "--learning-rate", "0.01", "--max-iter", "2"]) == 0  # fmt: skip
    told = f"no epoch has a better score on held-out pairs than the start: the model is that start, {start}\n"
    assert told in capsys.readouterr().err


@pytest.mark.parametrize(("start", "told"), [("opca", "OPCA"), ("random", "random numbers")])
def test_words_that_do_not_count_are_no_part_of_the_start(start, told, capsys):
    training = {"start": start, "identity": 0.0, "dev": {}, "settings": {}, "history": {"validation": [0.5, 0.4]}}
    train._compare(SimpleNamespace(method="ssi", training=training, params=None))
    assert capsys.readouterr().err.endswith(f"the model is that start, {told}\n")


@pytest.mark.parametrize(("method", "start"), [("s2net-mse", "random numbers"),
                                               ("s2net-pref", "LSA or random numbers")])  # fmt: skip
def test_it_is_said_that_a_model_of_grades_is_its_start(method, start, capsys):
    training = {"dev": {}, "settings": {"start": "opca"}, "history": {"validation": [0.5, 0.5]}}
    train._compare(SimpleNamespace(method=method, training=training, params=None))
    told = f"no iteration has a better score on held-out pairs than the start: the model is that start, {start}\n"
    assert capsys.readouterr().err.endswith(told)


def test_ssi_has_no_vectors_to_encode_or_export(learned, folder, capsys):
    for words in (["encode", "--input", "texts.txt"], ["encode", "--input", "texts.txt", "--side", "query"]):
        assert refused(capsys, words[0], "--model", learned, *words[1:]).startswith(ALONE)
    message = refused(capsys, "export", "--model", learned, "--to", "word2vec", "--out", "x")
    assert message.startswith("--model: expected one whose score is the cosine of two vectors")
    assert not os.path.exists("x")
    search = ["search", "--model", learned, "--documents", "texts.txt", "--query", LEFT[3], "--terms"]
    assert "--terms: expected 0 or 1 (the score of this model has the words in it), got 0.5" in refused(
        capsys, *search, 0.5, "--words", "cosine")  # fmt: skip
    bare = run(capsys, *search, 1, "--words", "cosine", "--k", 1).split("\t")
    assert 0 < float(bare[1]) <= 1


def test_ssi_draws_its_figures(learned, folder, capsys):
    run(capsys, "evaluate", "--model", learned, "--pairs", "pairs.tsv", "--figures", "figures")
    assert "ROC of the score" in (folder / "figures" / "roc.svg").read_text()
    assert "by score" in (folder / "figures" / "neighbours.html").read_text()
    assert "MRR (held-out pairs)" in (folder / "figures" / "training.svg").read_text()


def test_ssi_goes_on_after_ctrl_c(folder, capsys, monkeypatch):
    words = [*SSI, "--dev", "0.2", "--identity", "5", "--learning-rate", "0.1"]
    whole = json.loads(run(capsys, *words, "--json"))
    expected = (folder / "model" / "model.safetensors").read_bytes()
    with monkeypatch.context() as patch:
        interrupting(patch, 2)
        assert cli.main(words) == cli.INTERRUPTED
    assert "model.checkpoint: stopped here; the same command with --resume goes on" in capsys.readouterr().err
    kept = "got one of --method ssi --dim 4 --identity 5 (without --resume it is deleted)"
    refusals = {"--method ssi --dim 4 --identity 3": [*words, "--identity", "3"],
                "--method ssi-sym --dim 4 --identity 5": [*words, "--method", "ssi-sym"],
                "--method ssi --dim 4 without --identity": [*SSI, "--dev", "0.2", "--learning-rate", "0.1"],
                "--method ssi --dim 7 --identity 5": [*words, "--dim", "7"],
                "--method s2net --dim 300": ["train", *SSI[1:5]]}  # fmt: skip
    for choice, others in refusals.items():
        message = refused(capsys, *others, "--resume")
        assert message == f"model.checkpoint: expected a checkpoint of {choice}, {kept}"
    note = folder / "model.checkpoint" / "checkpoint.settings.json"
    note.rename("note")
    assert "got one of an earlier version, or with a damaged file" in refused(capsys, *words, "--resume")
    (folder / "note").rename(note)
    for more in ([], ["--batch-size", "0"]):  # and what was there is still there
        shared = refused(capsys, *SSI, "--method", "s2net", "--devices", "99", *more)
        assert shared.startswith("--devices: expected at most") and note.exists()
    assert cli.main([*words, "--resume"]) == 0
    assert "model.checkpoint: continuing from it" in capsys.readouterr().err
    assert (folder / "model" / "model.safetensors").read_bytes() == expected and whole["identity"] == 5
    assert sorted(os.listdir()) == ["model", "pairs.tsv", "texts.txt"]


def test_one_matrix_for_both_sides_is_trained_resumed_and_used(folder, capsys, monkeypatch):
    words = [*SSI, "--method", "ssi-sym", "--dev", "0.2"]
    facts = json.loads(run(capsys, *words, "--json"))
    assert f"{facts['identity']:g}" in facts["identities"] and {"3", "10", "30"} <= set(facts["identities"])
    expected = (folder / "model" / "model.safetensors").read_bytes()
    with monkeypatch.context() as patch:
        interrupting(patch, 4)
        assert cli.main(words) == cli.INTERRUPTED
    assert cli.main([*words, "--resume"]) == 0
    assert (folder / "model" / "model.safetensors").read_bytes() == expected
    assert "model.checkpoint: continuing from it" in capsys.readouterr().err and not os.path.exists("model.checkpoint")
    model = Model.load("model")
    np.testing.assert_array_equal(*(side.weights for side in model.params))
    scores, rows = model.search(LEFT[7:8], model.vectors(RIGHT), k=2)
    lines = run(capsys, "search", "--model", "model", "--documents", "texts.txt", "--query", LEFT[7], "--k", 2)
    assert [line.split("\t")[1:3] for line in lines.splitlines()] == [
        [f"{score:.6f}", str(row + 1)] for score, row in zip(scores[0], rows[0], strict=True)]
    result = json.loads(run(capsys, "evaluate", "--model", "model", "--pairs", "pairs.tsv", "--json"))
    assert 0 < result["mrr"]["mean"] <= 1
    assert refused(capsys, "encode", "--model", "model", "--input", "texts.txt").endswith(
        "got W = UᵀU + b·I (ssi-sym), whose score needs the words too")
    assert refused(capsys, "export", "--model", "model", "--to", "word2vec", "--out", "x").endswith(
        "W = UᵀU + b·I (ssi-sym)")
    assert "q'(U'U + D)d" in (folder / "model" / "README.md").read_text()


def test_without_the_identity_vectors_are_dense_and_their_inner_product_is_the_score(folder, capsys):
    for method, sides in (("ssi-sym", ([], [])), ("ssi", (["--side", "query"], ["--side", "document"]))):
        run(capsys, *SSI, "--method", method, "--identity", 0, "--dev", 0)
        for place, side in zip(("q.npy", "d.npy"), sides, strict=True):
            run(capsys, "encode", "--model", "model", "--input", "texts.txt", "--output", place, *side)
        queries, documents = (np.load(place).astype(np.float64) for place in ("q.npy", "d.npy"))
        expected = Model.load("model").similarity(RIGHT, RIGHT)
        np.testing.assert_allclose(queries @ documents.T, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.programs
def test_grades_are_trained_on_shown_and_measured(graded, capsys):
    shown = run(capsys, *MSE, "--label", 3, "--dev", 0.3).splitlines()
    assert shown[0].split()[-1] == "spearman" and [line.split()[0] for line in shown[1:3]] == ["s2net-mse", "untrained"]
    model = Model.load("model")
    assert model.training["pairs"]["all"] == 40 and model.training["grades"] == {"lowest": 0, "highest": 3}
    assert "grades" in (graded / "model" / "README.md").read_text()
    result = json.loads(run(capsys, "evaluate", "--model", "model", "--pairs", "graded.tsv", "--label", 3, "--json"))
    assert result["pairs"] == 40 and result["positive"] == 30 and result["auc"]["low"] <= result["auc"]["high"]
    assert -1 <= result["spearman"]["low"] <= result["spearman"]["high"] <= 1
    rows = (graded / "graded.tsv").read_text().splitlines()
    (graded / "above.tsv").write_text("".join(f"{row}\n" for row in rows if not row.endswith("\t0")))
    result = json.loads(run(capsys, "evaluate", "--model", "model", "--pairs", "above.tsv", "--label", 3, "--json"))
    assert set(result) == {"pairs", "positive", "spearman"}
    run(capsys, "evaluate", "--model", "model", "--pairs", "graded.tsv", "--label", 3, "--figures", "figures")
    assert "Spearman (held-out pairs)" in (graded / "figures" / "training.svg").read_text()
    run(capsys, "encode", "--model", "model", "--input", "texts.txt", "--output", "x.npy")
    assert np.load("x.npy").shape == (40, 6)


def test_dev_grades_come_from_the_same_column(graded, capsys):
    rows = zip(LEFT[:6], RIGHT[:6], range(6), strict=True)
    (graded / "dev.tsv").write_text("".join(f"{a}\t{b}\t{grade}\n" for a, b, grade in rows))
    facts = json.loads(run(capsys, *MSE, "--label", 3, "--dev", "dev.tsv", "--json"))
    assert facts["pairs"] == {"all": 40, "train": 40, "dev": 6} and "spearman" in facts["dev"]


@pytest.mark.parametrize(("words", "message"), [
    ([*MSE], "--label: expected a column of grades, for s2net-mse, got none"),
    ([*MSE, "--label", "4"], "graded.tsv, line 1: --label: expected a column from 1 to 3, got 4"),
    ([*MSE, "--label", "1"], "graded.tsv, line 1: expected a number in the column '1'"),
    ([*of_other(MSE, pairs="equal.tsv"), "--label", "3"],
     "--label: expected at least two different grades, got 2 for eve"),
    ([*MSE, "--label", "3", "--dev", "equal.tsv"], "--dev: expected at least two different grades, got 2 for every"),
    (of_other(SSI, pairs="one.tsv"), "--pairs: expected at least two training pairs that differ, got 1"),
    (of_other(SSI, pairs="same.tsv"), "--pairs: expected right texts that differ (a query's negatives are"),
    ([*SSI, "--identity", "-1"], "Invalid value for '--identity'"),
    ([*SSI, "--identity", "1e39"], "Invalid value for '--identity'"),
    ([*SSI, "--identity", "nan"], "--identity"),
    ([*SSI, "--learning-rate", "0"], "Invalid value for '--learning-rate'"),
    ([*SSI, "--learning-rate", "1e30"], "Invalid value for '--learning-rate'"),
    ([*SSI, "--seed", str(2**64)], "--seed: expected a whole number of 64 bits, got 18446744073709551616"),
])
def test_bad_input_is_one_line(words, message, graded, capsys):
    (graded / "equal.tsv").write_text("".join(f"{a}\t{b}\t2\n" for a, b in zip(LEFT, RIGHT, strict=True)))
    (graded / "one.tsv").write_text("a question\tits answer\n")
    (graded / "same.tsv").write_text("".join(f"{left}\tyes\n" for left in LEFT))
    assert message in refused(capsys, *words)
    assert not os.path.exists("model")


def test_a_model_of_ssi_takes_the_place_of_another(learned, folder, capsys):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    Model.load(learned).save("model")
    assert Model.load("model").bilinear
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    assert not Model.load("model").bilinear


def test_judgements_of_a_test_collection_are_learned(tmp_path, capsys):
    from jaxsim.cli import main

    words = ("red boat sea", "blue car road", "old tree leaf")
    files = {"queries.tsv": "".join(f"q{i}\t{words[i % 3]} a{i}\n" for i in range(30)),
             "documents.tsv": "".join(f"d{i}\t{words[i % 3].replace(' ', 'x ')}x c{i}\n" for i in range(60)),
             "qrels.txt": "".join(f"q{i} 0 d{j} {2 - (j > 30)}\n" for i in range(30) for j in range(i % 3, 60, 12))
             + "q0 0 elsewhere 2\n"}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    options = [word for name in ("queries", "documents") for word in (f"--{name}", str(tmp_path / f"{name}.tsv"))]
    options += ["--qrels", str(tmp_path / "qrels.txt"), "--out", str(tmp_path / "model"), "--dim", "10",
                "--negatives", "4"]
    assert main(["train", *options, "--method", "s2net-pref", "--max-iter", "5", "--json"]) == 0
    out, err = capsys.readouterr()
    assert "left out 1 judgement without a text" in err and "120 drawn" in err
    assert "auc" in json.loads(out)["dev"]
    assert main(["train", *options, "--method", "opca"]) == 2
    assert "--qrels: expected a method that uses it (s2net-pref), got --method opca" in capsys.readouterr().err
    assert main(["train", *options[2:], "--method", "s2net-pref"]) == 2
    assert "--pairs: expected a file (or all of --queries, --documents, --qrels)" in capsys.readouterr().err
