"""Options of `jaxsim train` by method, the options that errors name, and S2Net with two matrices."""

from __future__ import annotations

import dataclasses
import inspect
import json
import os

import numpy as np
import pytest
import typer
from command_line import LEFT, RIGHT, refused, run

from jaxsim import cli
from jaxsim.cli import train as command
from jaxsim.cli import train_options
from jaxsim.model import Model
from jaxsim.train import linked, settings, training

TRAIN = ["train", "--pairs", "pairs.tsv", "--out", "model"]
GIVEN = {"dim": 3, "weighting": "tf", "max_iter": 2, "patience": 2, "gamma": 10.0, "batch_size": 0,
         "precision": "float32", "devices": 1, "noise": 1e-4,
         "start": "opca", "activation": "none", "identity": 10, "learning_rate": 0.03, "stop_by": "pairs",
         "subwords": 0.5, "distill": 0.5, "log": "logs", "beta": 0.1, "weights": "int8"}  # fmt: skip


def option(name: str) -> list[str]:
    """An option with a value, or the default it has anyway."""
    words = [f"--{name.replace('_', '-')}"]
    return words + [str(GIVEN[name])] if name in GIVEN else words


@pytest.mark.parametrize("name", train_options.USED_BY)
def test_an_option_is_refused_by_exactly_the_methods_that_do_not_use_it(name, folder, capsys, monkeypatch):
    monkeypatch.setattr(training, "train", lambda *_, **__: (_ for _ in ()).throw(ValueError("it was trained")))
    for method in settings.METHODS:
        labelled = method in settings.GRADED or name == "label_weights"
        words = [*TRAIN, "--method", method, *option(name), "--label", "2"][: None if labelled else -2]
        if labelled and method in train_options.USED_BY[name]:
            (folder / "pairs.tsv").write_text("a\t1\t1\nb\t2\t1\n")
        message = refused(capsys, *words)
        if method in train_options.USED_BY[name]:
            assert message == "it was trained", (method, name)
        else:
            assert message.startswith(f"--{name.replace('_', '-')}: expected a method that uses it (")
    assert not os.path.exists("model")


@pytest.mark.parametrize(("words", "message"), [
    (["--blend", "--activation", "tanh"], "--blend: expected False, with an activation, got True"),
    (["--blend", "--shard-terms"], "--blend: expected False, with shard_terms, got True"),
    (["--blend", "--dev", "0"], "--blend: expected held-out pairs or judged queries to choose by (--stop-by queries), "
                                "got none"),
    (["--beta", "0.1", "--batch-size", "64", "--tune"], "--beta: expected 0, with batches, got 0.1"),
    (["--dev-score", "mrr"], "--dev-score: expected --dev-queries as well, got none"),
    (["--method", "lsa", "--tune", "--stop-by", "queries", "FILES"], "--stop-by: expected a method in steps, or "
                                                                   "--distill, got --method lsa"),
    (["--method", "opca", "--tune", "--budget", "1s", "--stop-by", "queries", "FILES"], "--stop-by: expected a method "
                                                                                      "in steps, or --distill"),
])  # fmt: skip
def test_what_cannot_be_is_refused_before_anything_is_tried_or_deleted(words, message, folder, capsys, monkeypatch):
    monkeypatch.setattr(training, "train", lambda *_, **__: pytest.fail("trained"))
    monkeypatch.setattr(command.train_folder, "begin", lambda *_, **__: pytest.fail("deleted"))
    files = ["--dev-queries", "q", "--dev-documents", "d", "--dev-qrels", "r"]
    words = [*words[:-1], *files] if words[-1] == "FILES" else words
    assert refused(capsys, *TRAIN, *words).startswith(message)


def test_every_setting_is_an_option_with_its_default_range_and_help(capsys):
    parameters = inspect.signature(command.train).parameters
    shown = " ".join(run(capsys, "train", "--help").split())
    for field in settings.fields():
        option = parameters[field.name].annotation.__metadata__[0]
        assert parameters[field.name].default == field.default and option.help == field.option.help
        assert (option.min, option.max) == (field.option.least, field.option.most)
        assert f"--{field.name.replace('_', '-')} " in shown and field.option.help[:20] in shown
        assert 0 < len(field.option.methods) <= len(settings.METHODS)
    assert {"resume", "tune"} < set(train_options.USED_BY) <= set(parameters)
    assert {linked.MOST_IDENTITY, linked.MOST_RATE} == {1e6, 1e3}  # as the options say


def test_a_new_setting_is_an_option_without_a_second_edit(monkeypatch):
    @dataclasses.dataclass(frozen=True)
    class More(settings.Settings):
        momentum: float | None = None
        nesterov: bool = False

    monkeypatch.setattr(train_options, "Settings", More)
    monkeypatch.setattr(train_options, "fields", lambda: settings.fields(More))
    program = typer.Typer()
    kept = []

    @program.command()
    @train_options.with_settings
    def fit(settings: settings.Settings, other: int = 3) -> None:
        kept.append((settings, other))

    program(["--momentum", "0.9", "--nesterov", "--other", "4", "--weighting", "tf"], standalone_mode=False)
    assert kept == [(More(momentum=0.9, nesterov=True, weighting="tf"), 4)]
    assert type(kept[0][0].weighting) is str


def test_help_names_all_iterated_methods(capsys):
    shown = " ".join(run(capsys, "train", "--help").split())
    for part in ("iterations, or epochs, of S2Net, SSI, methods of grades or topics",
                 "before S2Net, SSI, methods of grades or topics stop",
                 "S2Net, SSI, methods of grades and topic models keep their state",
                 "ssi-sym", "s2net-2"):
        assert part in shown, part


@pytest.mark.parametrize(("error", "message"), [
    ("dev_grades: expected x, got y", "--dev: expected x, got y"),
    ("batch_size: expected x, got y", "--batch-size: expected x, got y"),
    ("pairs: expected x: expected z, got y", "--pairs: expected x: expected z, got y"),
    ("pairs.tsv, line 3: expected x, got y", "pairs.tsv, line 3: expected x, got y"),
    ("something else", "something else"),
])
def test_errors_of_the_library_name_the_option(error, message, folder, capsys, monkeypatch):
    def train(*_, **__):
        raise ValueError(error)

    monkeypatch.setattr(training, "train", train)
    assert refused(capsys, *TRAIN) == message


def test_two_matrices_are_trained_and_used_as_those_of_cca(folder, capsys):
    words = [*TRAIN, "--method", "s2net-2", "--dim", "4", "--max-iter", "3", "--dev", "0.2", "--subwords", "0"]
    shown = run(capsys, *words).splitlines()
    assert [line.split()[0] for line in shown[1:3]] == ["s2net-2", "untrained"]
    model = Model.load("model")
    assert model.two_sided and not np.allclose(*(side.weights for side in model.params))
    assert refused(capsys, "encode", "--model", "model", "--input", "texts.txt").startswith("--side: expected query or")
    for side, encoded in (("query", model.encode_query), ("document", model.encode_document)):
        run(capsys, "encode", "--model", "model", "--input", "texts.txt", "--output", "x.npy", "--side", side)
        np.testing.assert_array_equal(np.load("x.npy"), encoded(RIGHT))
    rows = model.search(LEFT[3:4], model.vectors(RIGHT), k=3)[1][0]
    lines = run(capsys, "search", "--model", "model", "--documents", "texts.txt", "--query", LEFT[3], "--k", 3,
                "--terms", 0, "--power", 0)
    assert [int(line.split("\t")[2]) for line in lines.splitlines()] == [row + 1 for row in rows]
    result = json.loads(run(capsys, "evaluate", "--model", "model", "--pairs", "pairs.tsv", "--json"))
    assert 0 < result["mrr"]["mean"] <= 1
    run(capsys, "export", "--model", "model", "--to", "word2vec", "--out", "vectors")
    assert {"query.txt", "document.txt"} <= set(os.listdir("vectors"))
    older = (folder / "model" / "model.safetensors").read_bytes()
    (folder / "model.checkpoint").mkdir()
    assert refused(capsys, *words, "--resume") == (
        "--resume: expected a saved state in model.checkpoint, got none, and a complete model in model (leave out "
        "--resume to replace it)")
    assert older == (folder / "model" / "model.safetensors").read_bytes() and not os.path.exists("model.checkpoint")
    assert cli.main([*words, "--out", "new", "--resume"]) == 0 and "no saved state there" in capsys.readouterr().err
