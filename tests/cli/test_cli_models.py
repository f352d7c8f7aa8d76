"""The commands that train, use and measure models, on small data."""

from __future__ import annotations

import dataclasses
import gzip
import json
import os
import sys
from types import ModuleType

import numpy as np
import pytest
from command_line import LEFT, OPCA, RIGHT, feed, refused, run, waiting_pool

import jaxsim
from jaxsim import cli
from jaxsim.cli import evaluate
from jaxsim.data import sketches
from jaxsim.evaluate import metrics
from jaxsim.model import Model, index, ranker
from jaxsim.parallel.workers import in_order


def test_train_prints_dev_scores_beside_untrained_ones_and_the_folder(folder, capsys):
    shown = run(capsys, "train", "--pairs", folder / "pairs.tsv", "--out", folder / "model", *OPCA).splitlines()
    assert shown[0].split()[0] == "dev" and shown[0].split()[-2:] == ["accuracy", "mrr"]
    assert [line.split()[0] for line in shown[1:4]] == ["opca", "untrained", "bm25"]
    assert shown[-1] == f"model: {folder / 'model'}"
    told = Model.load("model").training
    assert told["command"] == "jaxsim train --out model --method opca --dim 5 --pairs pairs.tsv"
    assert told["dev"] and told["data"]["name"] == "pairs.tsv"
    assert sorted(os.listdir()) == ["model", "pairs.tsv", "texts.txt"]


def test_train_json_dev_file_labels_and_settings(folder, capsys, monkeypatch):
    rows = [{"question": a, "answer": b, "ok": int(i % 4 > 0), "key": i}
            for i, (a, b) in enumerate(zip(LEFT, RIGHT, strict=True))]  # fmt: skip
    lines = [json.dumps(row) + "\n" for row in rows]
    (folder / "dev.jsonl").write_text("".join(lines[30:]))
    feed(monkeypatch, "".join(lines[:30]))
    told = json.loads(run(capsys, "train", "--pairs", "-", "--out", "model", "--dev", "dev.jsonl", "--label", "ok",
                          "--id", "key", *OPCA, "--weighting", "tf", "--drop-top", 1, "--max-terms", 50, "--seed", 3,
                          "--languages", "en,es", "--json"))  # fmt: skip
    assert told["pairs"] == {"all": 22, "train": 22, "dev": 8} and told["model"] == "model"
    assert told["settings"]["weighting"] == "tf" and told["settings"]["seed"] == 3 and told["terms"] <= 50
    model = Model.load("model")
    assert model.languages == ("en", "es") and model.weighting == "tf"
    assert "--dev dev.jsonl" in told["command"] and told["data"]["name"] == "standard input"


@pytest.mark.programs
def test_pairs_that_are_no_mates_are_left_out_and_counted(folder, capsys, monkeypatch):
    (folder / "graded.csv").write_text("".join(f'"{a}","{b}",{i % 3}\n' for i, (a, b) in
                                               enumerate(zip(LEFT, RIGHT, strict=True))))  # fmt: skip
    assert cli.main(["train", "--pairs", "graded.csv", "--label", "3", "--out", "model", "--dev", "0", *OPCA]) == 0
    out, err = capsys.readouterr()
    assert "graded.csv: left out 14 of 40 pairs, whose label is not above 0" in err
    assert "dev: no pairs held out" in out and "pairs: 26 for training" in out
    (folder / "above.csv").write_text("".join(f'"{a}","{b}",{i % 3 + 1}\n' for i, (a, b) in
                                              enumerate(zip(LEFT, RIGHT, strict=True))))  # fmt: skip
    words = ["train", "--pairs", "above.csv", "--label", "3", "--out", "above", "--dev", "0"]
    note = "above.csv: all labels, 1 to 3, are above 0, so that all pairs count as texts that belong together; s2net"
    for method, told in ((OPCA, True), (["--method", "s2net", "--label-weights", "--max-iter", "1"], False)):
        assert cli.main([*words, *method]) == 0
        assert (note in capsys.readouterr().err) == told
    assert cli.main(["evaluate", "--model", "model", "--pairs", "above.csv", "--label", "3"]) == 0
    out, err = capsys.readouterr()
    assert "spearman" in out and "above.csv: no auc and no max_f1, as all labels are above 0" in err
    scores = json.loads(run(capsys, "evaluate", "--model", "model", "--pairs", "graded.csv", "--label", 3, "--json"))
    cosines = Model.load("model").pair_similarity(LEFT, RIGHT)
    labels = [i % 3 > 0 for i in range(40)]
    assert (scores.pop("pairs"), scores.pop("positive")) == (40, 26)
    assert {name: one["value"] for name, one in scores.items()} == {
        "auc": float(metrics.auc(cosines, labels)), "max_f1": float(metrics.max_f1(cosines, labels)),
        "spearman": float(metrics.spearman(cosines, [i % 3 for i in range(40)]))}  # fmt: skip
    assert all(one["low"] <= one["value"] <= one["high"] for one in scores.values())
    assert scores["spearman"]["low"] < scores["spearman"]["high"]
    table = run(capsys, "evaluate", "--model", "model", "--pairs", "graded.csv", "--label", 3).splitlines()
    assert table[2].split() == ["metric", "value", "low", "high"]
    (folder / "several.csv").write_text("".join(f'"{LEFT[i - i % 4]}","{RIGHT[i]}",{i % 4 % 3}\n' for i in range(40)))
    command = ["evaluate", "--model", "model", "--pairs", "several.csv", "--label", "3", "--json"]
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert "10 left texts with a right text of a label above 0 (10 with several)" in err
    cosines = Model.load("model").similarity([LEFT[i] for i in range(0, 40, 4)], RIGHT)
    precision = []
    for row in range(10):  # two right ones of four; ties are errors
        right = np.isin(np.arange(40), [4 * row + 1, 4 * row + 2])
        places = np.flatnonzero(right[np.lexsort((right, -cosines[row]))])
        precision.append(np.mean(np.arange(1, 3) / (1 + places)))
    scores = json.loads(out)
    assert scores["queries"] == 10 and scores["map"]["value"] == pytest.approx(np.mean(precision))
    monkeypatch.setattr(evaluate, "_SCORES", 399)
    assert cli.main(command) == 0
    out, err = capsys.readouterr()
    assert "several.csv: no mrr_any and map, which take more than 399 scores here" in err
    assert "map" not in json.loads(out)
    (folder / "none.csv").write_text("a,b,0\nc,d,-1\n")
    assert "none.csv: expected a pair with a label above 0" in refused(
        capsys, "train", "--pairs", "none.csv", "--label", 3, "--out", "m")


@pytest.mark.parametrize("method", ["cca", "cl-lsi", "lsa", "ssi", "log-tfidf", "tfidf"])
def test_every_method_can_be_chosen(method, folder, capsys):
    dim = [] if method.endswith("tfidf") else ["--dim", 3]
    told = json.loads(run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--method", method, *dim,
                          "--json"))  # fmt: skip
    assert told["settings"]["method"] == method == Model.load("model").method


def test_the_methods_and_weightings_offered_are_those_there_are():
    from jaxsim.cli import options, use
    from jaxsim.model import ACTIVATIONS, WEIGHTINGS
    from jaxsim.model.export import FORMATS
    from jaxsim.sparse import narrow
    from jaxsim.sparse.precision import POLICIES
    from jaxsim.train import fits, settings

    assert set(settings.LEARNED) == set(fits.FITS) and set(settings.WEIGHTINGS) == set(WEIGHTINGS)
    assert set(settings.ACTIVATIONS) == set(ACTIVATIONS) and set(settings.PRECISIONS) == set(POLICIES)
    assert set(use.Target) == {*FORMATS, "jaxsim"} and set(options.Weights) == set(narrow.KINDS)


def test_train_encode_search_evaluate(trained, folder, capsys):
    model = Model.load(trained)
    run(capsys, "encode", "--model", trained, "--input", "texts.txt", "--output", "texts.npy")
    found = np.load("texts.npy")
    np.testing.assert_array_equal(found, model.encode(RIGHT))
    assert found.dtype == np.float32 and not [name for name in os.listdir() if name.endswith(".part")]
    lines = run(capsys, "search", "--model", trained, "--documents", "texts.txt", "--query", LEFT[7], "--k", 2,
                "--terms", 0, "--power", 0)
    scores, rows = model.search(LEFT[7:8], model.vectors(RIGHT), k=2)
    for rank, line in enumerate(lines.splitlines()):
        row = rows[0, rank]
        assert line == f"{rank + 1}\t{scores[0, rank]:.6f}\t{row + 1}\t{RIGHT[row]}"
    shown = json.loads(run(capsys, "evaluate", "--model", trained, "--pairs", "pairs.tsv", "--json"))
    assert shown["pairs"] == 40
    for name in ("accuracy", "mrr"):
        assert 0 < shown[name]["low"] <= shown[name]["mean"] <= shown[name]["high"] <= 1
    table = run(capsys, "evaluate", "--model", trained, "--pairs", "pairs.tsv").splitlines()
    assert table[1].split() == ["metric", "mean", "low", "high"]
    assert table[3].split()[:2] == ["mrr", f"{shown['mrr']['mean']:.4f}"]


def test_left_texts_search_the_right_ones_as_search_does(trained, folder, capsys, monkeypatch):
    """Each text once, several right answers, ties as errors; a text that searches leaves itself out if asked."""
    monkeypatch.setattr(evaluate, "_RANKED", 25)  # four queries at a time
    links = [(LEFT[i], LEFT[i + 1]) for i in range(6)] + [(LEFT[0], LEFT[3])]
    (folder / "links.tsv").write_text("".join(f"{left}\t{right}\n" for left, right in links))
    command = ["evaluate", "--model", trained, "--pairs", "links.tsv", "--json"]
    model, documents = Model.load(trained), [*LEFT[1:7]]
    both = index.encode(model, documents, bm25=True)
    for words, terms in (("bm25", 0.4), ("cosine", 0.4)):
        for itself in (False, True):
            shown = json.loads(run(capsys, *command, "--terms", terms, "--words", words,
                                   *["--exclude-self"] * itself))  # fmt: skip
            expected = []
            for i in range(6):
                out = [[documents.index(LEFT[i])] if itself and i else []]
                scores, rows = ranker.rank(model, both, [LEFT[i]], k=6, terms=terms, words=words, exclude=out)
                placed = dict(zip(rows[0].tolist(), scores[0].tolist(), strict=True))
                right = [documents.index(to) for come, to in links if come == LEFT[i]]
                wrong = [one for row, one in placed.items() if row not in right]
                expected.append(1 / (1 + sum(one >= max(placed[row] for row in right) for one in wrong)))
            assert shown["queries"] == 6 and set(shown) == {"queries", "accuracy", "mrr_any", "map"}
            assert shown["mrr_any"]["mean"] == pytest.approx(np.mean(expected))
            assert shown["accuracy"]["mean"] == pytest.approx(np.mean(np.array(expected) == 1))
    assert shown["mrr_any"]["mean"] > 1 / 6  # of the last, --exclude-self
    (folder / "links.tsv").write_text(f"{LEFT[0]}\t{LEFT[0]}\n{LEFT[1]}\t{LEFT[1]}\n{LEFT[1]}\t{LEFT[2]}\n")
    assert cli.main([*map(str, command), "--exclude-self"]) == 0  # also where it would be right
    out, err = capsys.readouterr()
    assert json.loads(out)["queries"] == 1
    assert "links.tsv: left out 1 left text, of which no pair has another right text" in err
    (folder / "links.tsv").write_text(f"{LEFT[0]}\t{LEFT[0]}\n{LEFT[1]}\t{LEFT[1]}\n")
    assert refused(capsys, *command, "--exclude-self") == (
        "links.tsv: expected a left text with another right text, for --exclude-self, got none")
    run(capsys, *command, "--csls", "texts.txt")
    assert "--power: expected no --label beside it, got both" in refused(
        capsys, "evaluate", "--model", trained, "--pairs", "pairs.tsv", "--label", 2, "--power", 1)


def test_evaluate_tells_of_pairs_with_a_text_of_unknown_words(trained, folder, capsys):
    (folder / "some.tsv").write_text("sparse matrix\tdense matrix\nunheard\tdense matrix\n\tmatrix\n")
    assert cli.main(["evaluate", "--model", trained, "--pairs", "some.tsv"]) == 0
    told = capsys.readouterr().err
    assert "some.tsv: 2 pairs with a text without known words, which finds no mate\n" in told
    assert "was trained on" not in told


WARNED = "the model was trained on these pairs, so the figures are not those of new ones"
KNOWN = "{} of the {} pairs were in the model's training, so the figures are not those of new ones"


@pytest.mark.programs
@pytest.mark.parametrize(("options", "method"), [
    ([], "opca"), (["--label", "3"], "opca"), (["--id", "4"], "opca"), (["--label", "3", "--label-weights"], "s2net"),
    (["--label", "3"], "s2net-mse")])  # fmt: skip
def test_evaluate_knows_the_file_of_the_training_with_and_without_labels(folder, capsys, options, method):
    (folder / "labelled.tsv").write_text("".join(
        f"{a}\t{b}\t{number % 3}\tid{number}\n" for number, (a, b) in enumerate(zip(LEFT, RIGHT, strict=True))))
    (folder / "others.tsv").write_text("".join(f"{a}\t{b}\t{number % 2}\tid\n" for number, (a, b) in
                                               enumerate(zip(LEFT[:20], RIGHT[:20], strict=True))))  # fmt: skip
    (folder / "moved.tsv").write_bytes((folder / "labelled.tsv").read_bytes())
    words = ["train", "--pairs", "labelled.tsv", "--out", "model", "--dim", "3", "--dev", "0", "--method", method]
    told = run(capsys, *words, *options, *(["--max-iter", "1"] if method.startswith("s2net") else []), "--json")
    assert "sketch" not in told
    known = 13 if "--label" in options and method != "s2net-mse" else 20  # pairs of the first 20 that belong together
    for file in ("labelled.tsv", "moved.tsv", "others.tsv"):
        for label in ([], ["--label", "3"]):
            assert cli.main(["evaluate", "--model", "model", "--pairs", file, *label]) == 0
            told = capsys.readouterr().err
            assert (f"{file}: {WARNED}\n" in told) == (file != "others.tsv"), (file, label)
            assert (KNOWN.format(known, 20) in told) == (file == "others.tsv"), (file, label)


def test_evaluate_and_report_know_some_of_the_training_pairs_on_either_side(trained, folder, capsys):
    new = [("a new text", "and its mate"), ("another one", "and another")]
    own = list(zip(LEFT, RIGHT, strict=True))
    for name, rows in {"some.tsv": [*own[:3], *(pair[::-1] for pair in own[3:5]), *new], "one.tsv": [*own[:1], *new],
                       "new.tsv": new}.items():
        (folder / name).write_text("".join(f"{a}\t{b}\n" for a, b in rows))
    for words in (["evaluate"], ["report", "--out", "deep"]):
        for name, said in (("some.tsv", KNOWN.format(5, 7)), ("new.tsv", None),
                           ("one.tsv", KNOWN.format(1, 3).replace("were", "was"))):
            assert cli.main([*words, "--model", trained, "--pairs", name]) == 0
            told = capsys.readouterr().err
            assert f"{name}: {said}\n" in told if said else "training, so" not in told


def test_evaluate_says_of_how_many_pairs_it_can_tell(trained, folder, capsys, monkeypatch):
    monkeypatch.setattr(sketches, "SIZE", 10)
    model = Model.load(trained)
    few = {"sketch": model.training["sketch"][:100], "data": {}}
    dataclasses.replace(model, training={**model.training, **few}).save(folder / "model")
    assert "sketch" not in (folder / "model" / "README.md").read_text()
    assert cli.main(["evaluate", "--model", "model", "--pairs", "pairs.tsv"]) == 0
    assert "pairs.tsv: 10 of the 10 pairs that can be told were in the model's training, so" in capsys.readouterr().err


def test_evaluate_knows_the_file_of_a_model_of_an_earlier_version(trained, folder, capsys):
    model = Model.load(trained)
    data = {name: model.training["data"][name] for name in ("name", "sha256")}
    dataclasses.replace(model, training={**model.training, "data": data}).save(folder / "model")
    assert cli.main(["evaluate", "--model", "model", "--pairs", "pairs.tsv"]) == 0
    assert f"pairs.tsv: {WARNED}\n" in capsys.readouterr().err


@pytest.mark.programs
def test_evaluate_draws_figures(trained, folder, capsys):
    words = ["evaluate", "--model", trained, "--pairs", "pairs.tsv"]
    plain = run(capsys, *words)
    assert cli.main([*words, "--figures", "figures", "--examples", "3"]) == 0
    out, err = capsys.readouterr()
    drawn = "dimensions: figures/dimensions.svg\nroc: figures/roc.svg\nneighbours: figures/neighbours.html\n"
    assert out == plain + drawn
    assert "figures: no training curve, this model keeps no history" in err
    page = (folder / "figures" / "neighbours.html").read_text()
    assert "3 of the 40 queries of pairs.tsv" in page and page.count("<h2") == 3 and "opca: mate at rank" in page
    told = json.loads(run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--dim", 5, "--max-iter", 2,
                          "--dev", 0.2, "--json"))  # fmt: skip
    assert len(told["history"]["step"]) == len(told["history"]["validation"]) == told["fit"]["steps"] + 1
    assert "history" not in (folder / "model" / "README.md").read_text()
    (folder / "labelled.tsv").write_text("".join(f"{a}\t{b}\t{i % 2}\n" for i, (a, b) in
                                                 enumerate(zip(LEFT, RIGHT, strict=True))))  # fmt: skip
    told = json.loads(run(capsys, "evaluate", "--model", "model", "--pairs", "labelled.tsv", "--label", 3, "--figures",
                          "figures", "--json"))  # fmt: skip
    assert told["figures"] == {"neighbours": "figures/neighbours.html", **{
        name: f"figures/{name}.svg" for name in ("training", "dimensions", "roc")}}
    drawn = (folder / "figures" / "roc.svg").read_text()
    assert f"s2net (AUC {told['auc']['value']:.4f})" in drawn and "untrained (AUC" in drawn
    page = (folder / "figures" / "neighbours.html").read_text()
    assert "20 of the 20 queries of labelled.tsv" in page and "of 40 documents" in page


@pytest.mark.programs
def test_report_draws_what_evaluate_draws(trained, folder, capsys):
    words = ["--model", trained, "--pairs", "pairs.tsv", "--examples", 3]
    run(capsys, "evaluate", *words, "--figures", "figures")
    assert cli.main(["report", *map(str, words), "--out", "new/deep"]) == 0
    out, err = capsys.readouterr()
    names = ["dimensions.svg", "roc.svg", "neighbours.html"]
    assert out.splitlines() == [f"new/deep/{name}" for name in names]
    assert err.splitlines() == [
        "pairs.tsv: the model was trained on these pairs, so the figures are not those of new ones",
        "new/deep: no training curve, this model keeps no history of its training (closed forms have none)"]
    for name in names:
        assert (folder / "new" / "deep" / name).read_bytes() == (folder / "figures" / name).read_bytes()
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--dim", 5, "--max-iter", 2, "--dev", 0.2,
        "--method", "ssi")  # fmt: skip
    (folder / "labelled.csv").write_text("text,page,ok\n" + "".join(
        f'"{a}","{b}",{i % 2}\n' for i, (a, b) in enumerate(zip(LEFT, RIGHT, strict=True))))  # fmt: skip
    words = ["report", "--model", "model", "--pairs", "labelled.csv", "--left", "text", "--right", "page", "--label",
             "ok", "--out", "new/deep"]  # fmt: skip
    assert cli.main(words) == 0
    out, err = capsys.readouterr()
    assert out.splitlines() == [f"new/deep/{name}" for name in ("training.svg", "roc.svg", "neighbours.html")]
    assert "new/deep: no curve of dimensions, which takes" in err
    assert not (folder / "new" / "deep" / "dimensions.svg").exists()  # that of the other model


def test_encode_streams_lines_and_keeps_blank_ones(trained, folder, capsys, monkeypatch):
    (folder / "some.txt.gz").write_bytes(gzip.compress(f"{RIGHT[0]}\r\n\r\nunheard\n{RIGHT[1]}".encode()))
    whole = Model.load(trained).encode([RIGHT[0], "", "unheard", RIGHT[1]], normalize=True)
    lines = run(capsys, "encode", "--model", trained, "--input", "some.txt.gz", "--normalize").splitlines()
    np.testing.assert_array_equal(np.array([json.loads(line) for line in lines], np.float32), whole)
    run(capsys, "encode", "--model", trained, "--input", "some.txt.gz", "--normalize", "--output", "some.jsonl")
    assert (folder / "some.jsonl").read_text().splitlines() == lines
    feed(monkeypatch, "")
    assert run(capsys, "encode", "--model", trained) == ""
    feed(monkeypatch, "".join(f"{RIGHT[i % 40]}\n" for i in range(1100)))  # more than one batch
    run(capsys, "encode", "--model", trained, "--output", "new/folder/many.npy")
    np.testing.assert_array_equal(np.load("new/folder/many.npy"), Model.load(trained).encode(RIGHT * 28)[:1100])


def test_encode_by_two_processes_writes_the_same_bytes(trained, folder, capsys, monkeypatch):
    handed = []
    monkeypatch.setattr("jaxsim.parallel.workers.ProcessPoolExecutor", waiting_pool(handed))
    (folder / "long.txt").write_text("".join(f"{RIGHT[i % 40]} {i}\n" for i in range(5 * 1024)))
    given = "encode", "--model", trained, "--input", "long.txt"
    for workers in (1, 2):
        run(capsys, *given, "--output", f"{workers}.npy", "--workers", workers)
    assert (folder / "1.npy").read_bytes() == (folder / "2.npy").read_bytes() and handed
    assert "--workers" in refused(capsys, *given, "--workers", 0)


def test_a_worker_that_dies_is_one_line(trained, folder, capfd, monkeypatch):
    monkeypatch.setattr("jaxsim.parallel.workers.ProcessPoolExecutor", waiting_pool([]))
    with pytest.raises(ValueError, match="workers: expected 1 other process to the end, got one that died"):
        list(in_order(abs, [3] * 50, workers=2, there=os._exit))
    monkeypatch.setattr("jaxsim.cli.use._hold", os._exit)  # which takes no path: an error at its beginning
    capfd.readouterr()
    assert cli.main(["encode", "--model", trained, "--input", "texts.txt", "--workers", "3"]) == 2
    lines = capfd.readouterr().err.splitlines()
    assert lines[-1] == ("jaxsim: --workers: expected 2 other processes to the end, got one that died, killed or out "
                         "of memory (fewer take less)")  # fmt: skip
    assert all(line.startswith("a worker could not begin: ") for line in lines[:-1]) and len(lines) < 4


def test_models_with_two_sides_and_bare_terms(folder, capsys):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "cca", "--method", "cca", "--dim", 4)
    assert "--side: expected query or document" in refused(capsys, "encode", "--model", "cca", "--input", "texts.txt")
    run(capsys, "encode", "--model", "cca", "--input", "texts.txt", "--side", "query", "--output", "q.npy")
    np.testing.assert_array_equal(np.load("q.npy"), Model.load("cca").encode_query(RIGHT))
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "terms", "--method", "log-tfidf", "--dev", 0)
    assert "got bare term weights" in refused(capsys, "encode", "--model", "terms", "--input", "texts.txt")
    lines = run(capsys, "search", "--model", "terms", "--documents", "texts.txt", "--query", "item3", "--k", 1)
    assert lines.split("\t")[2] == "4"


def test_similarity_of_two_texts_and_of_pairs(trained, folder, capsys):
    model = Model.load(trained)
    one = run(capsys, "similarity", "--model", trained, LEFT[0], RIGHT[0])
    assert float(one) == pytest.approx(float(model.similarity(LEFT[0], RIGHT[0])), abs=2e-6)
    assert json.loads(run(capsys, "similarity", "--model", trained, "--json", "a", "b")) == {"similarity": 0.0}
    for option, value in (("--format", "tsv"), ("--left", "1"), ("--right", "2")):
        assert refused(capsys, "similarity", "--model", trained, "a", "b", option, value) == (
            f"{option}: expected --pairs as well, got none")  # fmt: skip
    assert cli.main(["similarity", "--model", str(trained), LEFT[0], "unheard"]) == 0
    assert capsys.readouterr().err == "'unheard': no word of it is known; the similarity is 0\n"
    many = run(capsys, "similarity", "--model", trained, "--pairs", "pairs.tsv").split()
    np.testing.assert_allclose(np.array(many, float), np.diag(model.similarity(LEFT, RIGHT)), atol=2e-6)
    told = json.loads(run(capsys, "similarity", "--model", trained, "--pairs", "pairs.tsv", "--json"))
    assert [f"{value:.6f}" for value in told["similarity"]] == many


def test_search_mixes_terms_in_and_takes_many_queries(trained, folder, capsys, monkeypatch):
    model = Model.load(trained)
    (folder / "pages.jsonl").write_text("".join(json.dumps({"body": f"{text}\nend"}) + "\n\n" for text in RIGHT))
    (folder / "queries.txt").write_text(f"{LEFT[3]}\nunheard\n")
    dense, bare = model.similarity(LEFT[3:4], RIGHT)[0], _bare(model).similarity(LEFT[3:4], RIGHT)[0]
    for weight in (0, 0.25, 1):
        assert cli.main(["search", "--model", trained, "--documents", "pages.jsonl", "--column", "body", "--queries",
                         "queries.txt", "--terms", str(weight), "--words", "cosine", "--power", "0", "--k", "50",
                         "--json"]) == 0  # fmt: skip
        out, err = capsys.readouterr()
        first, second = map(json.loads, out.splitlines())
        assert first["query"] == LEFT[3] and len(first["results"]) == 40
        found = {row["line"]: row["score"] for row in first["results"]}
        expected = (1 - weight) * dense + weight * bare
        np.testing.assert_allclose([found[2 * i + 1] for i in range(40)], expected, atol=3e-6)
        assert {row["score"] for row in second["results"]} == {0.0} and "query 2: no word of it is known" in err
    feed(monkeypatch, f"{LEFT[3]}\n{LEFT[4]}\n")
    blocks = run(capsys, "search", "--model", trained, "--documents", "pages.jsonl", "--column", "body", "--queries",
                 "-", "--k", 2).splitlines()  # fmt: skip
    assert blocks[0] == f"query\t1\t{LEFT[3]}" and blocks[3] == f"query\t2\t{LEFT[4]}" and len(blocks) == 6


def test_evaluate_searches_a_collection_without_what_is_excluded(trained, folder, capsys, monkeypatch):
    (folder / "docs").write_text("".join(f"d{i}\t{text}\n" for i, text in enumerate(RIGHT)))
    (folder / "queries").write_text(f"d3\t{LEFT[3]}\nq\t{LEFT[4]}\n")
    (folder / "qrels").write_text("d3 0 d3 1\nd3 0 d8 1\nq 0 d4 1\n")
    with (folder / "docs").open("a") as file:  # a document of a query's text
        file.write(f"twin\t{LEFT[4]}\n")
    (folder / "others").write_text("q 0 x 1\n")
    assert refused(capsys, "evaluate", "--model", trained, "--queries", "queries", "--documents", "docs", "--qrels",
                   "others") == "--qrels: expected a relevant document with a text in docs, got none"
    (folder / "known.tsv").write_text("q\td9\nq\tnone\nother\td1\n")
    words = ["evaluate", "--model", trained, "--queries", "queries", "--documents", "docs", "--qrels", "qrels",
             "--run-out", "run.txt", "--json"]  # fmt: skip

    def ranked(*more) -> dict[str, list[str]]:
        told = json.loads(run(capsys, *words, *more))
        assert told["queries"] == 2
        found = {}
        for line in (folder / "run.txt").read_text().splitlines():
            found.setdefault(line.split()[0], []).append(line.split()[2])
        return found

    both, kept = ranked(), ranked("--exclude-self", "--exclude", "known.tsv")
    assert kept == {query: [name for name in names if (query, name) not in {("d3", "d3"), ("q", "d9"), ("q", "twin")}]
                    for query, names in both.items()}  # fmt: skip
    assert both["d3"][0] == "d3" and both["q"][0] == "twin" and ranked("--terms", 1)["q"][1] == "d4"
    assert cli.main([*map(str, words), "--exclude", "known.tsv"]) == 0
    assert "known.tsv: 2 lines with a query or a document that is not there" in capsys.readouterr().err
    assert refused(capsys, "evaluate", "--run", "run.txt", "--qrels", "qrels.txt", "--power", 1) == (
        "--power: expected no --run beside it, got both")
    monkeypatch.setattr(Model, "term_vectors", None)  # where words count by BM25, nobody reads the model's own
    assert ranked() == both and run(capsys, "evaluate", "--model", trained, "--pairs", "pairs.tsv", "--terms", 0.5)
    (folder / "known.tsv").write_text("q d9\n")
    assert "known.tsv, line 1: expected query<TAB>document" in refused(capsys, *words, "--exclude", "known.tsv")
    out = run(capsys, "search", "--model", trained, "--documents", "texts.txt", "--query", RIGHT[5], "--k", 40,
              "--exclude-self")  # fmt: skip
    assert len(out.splitlines()) == 39 and RIGHT[5] not in out


def test_search_leaves_out_what_is_known(trained, folder, capsys):
    """By the numbers that are printed: of the query and of the document's line."""
    (folder / "queries").write_text(f"{LEFT[3]}\n{RIGHT[4]}\n")
    (folder / "known.tsv").write_text("1\t4\n2\t10\n2\t9999\n\n")
    words = ["search", "--model", trained, "--documents", "texts.txt", "--queries", "queries", "--k", 40, "--json",
             "--terms", 0]  # what is left out with both halves changes what these are divided by, and so the order

    def lines(*more) -> list[list[int]]:
        told = run(capsys, *words, *more).splitlines()
        return [[row["line"] for row in json.loads(one)["results"]] for one in told]

    both = lines()
    assert lines("--exclude", "known.tsv") == [[line for line in some if line != one]
                                               for some, one in zip(both, (4, 10), strict=True)]  # fmt: skip
    assert lines("--exclude", "known.tsv", "--exclude-self")[1] == [line for line in both[1] if line not in (5, 10)]
    assert cli.main([str(word) for word in words] + ["--exclude", "known.tsv"]) == 0
    assert "known.tsv: 1 line with a number that no document has, and nothing to leave out" in capsys.readouterr().err
    (folder / "all.tsv").write_text("".join(f"1\t{line}\n2\t{line}\n" for line in range(1, 41)))
    (folder / "most.tsv").write_text("".join(f"1\t{line}\n" for line in range(1, 41) if line != 20))
    for name, said in (("all.tsv", "1: all documents are left out"), ("most.tsv", "1: all scores are 0 but")):
        assert cli.main([str(word) for word in words] + ["--exclude", name, "--terms", "1"]) == 0
        err = capsys.readouterr().err
        assert said in err and "no word of it is known" not in err
    for wrong in ("q\t4", "0\t4", "3\t1", "1\tx"):  # there are two queries
        (folder / "known.tsv").write_text(f"1\t2\n{wrong}\n")
        message = refused(capsys, *words, "--exclude", "known.tsv")
        assert message.startswith("known.tsv, line 2: expected the number of a query, from 1 to 2, and that of a")


def test_the_power_that_judged_queries_chose_is_taken_unless_another_is_given(trained, folder, capsys):
    weights = np.linspace(0.1, 1, Model.load(trained).dim, dtype=np.float32)
    model = dataclasses.replace(Model.load(trained), agreement=weights)
    model.save("plain")
    dataclasses.replace(model, agreement_power=0.0).save("chosen")

    def found(name, *more) -> str:
        return run(capsys, "search", "--model", name, "--documents", "texts.txt", "--query", LEFT[3], *more)

    assert found("chosen") == found("plain", "--power", 0) != found("plain") == found("chosen", "--power", 1)
    dataclasses.replace(model, feedback=2).save("twice")
    assert found("twice") == found("plain", "--feedback", 2) != found("plain") == found("twice", "--feedback", 0)
    assert found("twice", "--words", "cosine") == found("plain", "--words", "cosine")
    words = ["explain", "--documents", "texts.txt", LEFT[3], "--line", "1", "--model"]
    assert cli.main([*words, "twice"]) == 0
    assert "the score of the first search alone" in capsys.readouterr().err
    assert cli.main([*words, "plain"]) == 0 and "first search" not in capsys.readouterr().err
    found("chosen", "--index", "kept")
    assert found("chosen", "--index", "kept") == found("chosen")
    (folder / "docs").write_text("".join(f"d{i}\t{text}\n" for i, text in enumerate(RIGHT)))
    (folder / "q").write_text("".join(f"q{i}\t{text}\n" for i, text in enumerate(LEFT)))
    (folder / "qrels").write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(40)))

    def ranked(name, *more) -> str:
        run(capsys, "evaluate", "--model", name, "--queries", "q", "--documents", "docs", "--qrels", "qrels",
            "--run-out", "run.txt", *more)  # fmt: skip
        return (folder / "run.txt").read_text()

    assert ranked("chosen") == ranked("plain", "--power", 0) != ranked("plain")


def test_vectors_and_exports_are_weighed_as_a_search_weighs_them(trained, folder, capsys):
    weights = np.linspace(0.1, 1, Model.load(trained).dim, dtype=np.float32)
    model = dataclasses.replace(Model.load(trained), agreement=weights)
    model.save("model")
    for workers in (1, 2):
        run(capsys, "encode", "--model", "model", "--input", "texts.txt", "--output", "v.npy", "--power", 2,
            "--workers", workers)  # fmt: skip
        np.testing.assert_array_equal(np.load("v.npy"), model.encode(RIGHT, power=2))
    run(capsys, "export", "--model", "model", "--to", "jaxsim", "--power", 1, "--weights", "float16", "--out", "small")
    assert min(np.sum(Model.load("small").encode(RIGHT, normalize=True) * model.encode(RIGHT, normalize=True, power=1),
                      axis=1)) > 0.9999  # fmt: skip
    facts = json.loads(run(capsys, "export", "--model", "model", "--to", "word2vec", "--power", 1, "--out", "words",
                           "--json"))  # fmt: skip
    assert "agreement to the power 1" in facts["note"]
    plain = json.loads(run(capsys, "export", "--model", "model", "--to", "word2vec", "--out", "plain", "--json"))
    assert "agreement" not in plain["note"]
    table, bare = (np.loadtxt(f"{name}/vectors.txt", skiprows=1, usecols=range(1, 1 + model.dim))
                   for name in ("words", "plain"))  # fmt: skip
    np.testing.assert_allclose(table, bare * weights, rtol=1e-5, atol=1e-6)
    dataclasses.replace(model, activation="tanh").save("tanh")
    assert refused(capsys, "export", "--model", "tanh", "--to", "onnx", "--power", 1, "--out", "o").startswith(
        "--power: expected 0, since the dimensions of this model are multiplied after its activation")


@pytest.mark.parametrize(("power", "told"), [("2", True), ("0", False), (None, False)])
def test_a_power_that_changes_nothing_is_told(trained, folder, capsys, power, told):
    dataclasses.replace(Model.load(trained), agreement=None).save("without")
    given = () if power is None else ("--power", power)
    for words in (("search", "--documents", "texts.txt", "--query", LEFT[3]),
                  ("explain", "--documents", "texts.txt", LEFT[3], "--line", "1"),
                  ("evaluate", "--pairs", "pairs.tsv", "--terms", "0.5"), ("encode", "--input", "texts.txt"),
                  ("export", "--to", "word2vec", "--out", "words")):
        capsys.readouterr()
        assert cli.main([words[0], "--model", "without", *words[1:], *given]) == 0
        assert ("--power changes nothing: this model has no weights of" in capsys.readouterr().err) == told


@pytest.mark.parametrize("words", [("search", "--documents", "texts.txt", "--query", LEFT[3]),
                                   ("evaluate", "--pairs", "pairs.tsv")])
def test_options_of_vectors_that_words_alone_leave_idle_are_told(trained, folder, capsys, words):
    (folder / "like.txt").write_text("\n".join(LEFT))
    capsys.readouterr()
    assert cli.main([words[0], "--model", str(trained), *words[1:], "--terms", "1", "--power", "2", "--csls",
                     "like.txt"]) == 0
    err = capsys.readouterr().err
    assert "--power changes nothing: with --terms 1 the words alone count" in err and "--csls changes nothing" in err


def test_power_that_words_alone_leave_idle_is_told_of_an_explanation(trained, folder, capsys):
    given = ["explain", "--model", str(trained), LEFT[3], "--documents", "texts.txt", "--line", "1", "--power", "2"]
    assert cli.main([*given, "--terms", "1"]) == 0
    assert "--power changes nothing: with --terms 1 the words alone count" in capsys.readouterr().err


def test_how_words_count_is_an_option_of_the_search(trained, folder, capsys):
    shown = run(capsys, "evaluate", "--model", trained, "--pairs", "pairs.tsv", "--json")
    searched = run(capsys, "evaluate", "--model", trained, "--pairs", "pairs.tsv", "--words", "cosine", "--json")
    assert "map" in searched and "mrr" in shown and searched != shown


@pytest.mark.parametrize(("way", "option"), [("--queries", "--format"), ("--queries", "--left"), ("--run", "--right"),
                                             ("--run", "--words")])
def test_options_of_pairs_and_of_the_search_are_refused_elsewhere(folder, capsys, way, option):
    value = {"--format": "csv", "--words": "cosine"}.get(option, "1")
    needed = ["--model", "m", "--documents", "texts.txt"] * (way == "--queries")
    assert cli.main(["evaluate", way, "texts.txt", "--qrels", "texts.txt", *needed, option, value]) == 2
    assert f"{option}: expected no {way} beside it, got both" in capsys.readouterr().err


def _bare(model):
    return Model(model.vocabulary, None, model.weighting)


@pytest.mark.parametrize(("words", "message"), [
    (["train", "--pairs", "none.tsv", "--out", "m"], "none.tsv: No such file or directory"),
    (["train", "--pairs", ".", "--out", "m"], ".: Is a directory"),
    (["train", "--pairs", "pairs.tsv", "--out", "texts.txt"], "--out: expected a new folder, or one that holds an old"),
    (["train", "--pairs", "pairs.tsv", "--out", "."], "--out: expected a new folder, or one that holds an older mod"),
    (["train", "--pairs", "pairs.tsv", "--out", "texts.txt/m"], "texts.txt/m: "),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--method", "bert"], "Invalid value for '--method'"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--dim", "0"],
     "Invalid value for '--dim': Input should be greater than or equal to 1, got 0"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--drop-top", "1000"],
     "--pairs, --drop-top: expected texts with words beside the 1000 most frequent, got an empty vocabulary"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--max-terms", "1"],
     "--pairs, --max-terms: expected at least two terms, got 1"),
    (["data", "--root", "nowhere"], "--root: expected an existing folder with the corpora, got 'nowhere'"),
    (["search", "--model", "MODEL", "--documents", "texts.txt", "--query", "x", "--k=-2"], "'--k': Input should be gr"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--dev", "1"], "--dev: expected a share in [0, 1), or a file"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--dev", "none.tsv"], "none.tsv: No such file or directory"),
    (["train", "--pairs", "-", "--out", "m", "--dev", "-"], "--pairs, --dev: expected standard input (-) once"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--languages", "en"], "--languages: expected two language codes"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--languages", "en,spanish"], "--languages: expected a code"),
    (["topics", "--pairs", "pairs.tsv", "--out", "m", "--languages", "jp,en"], "--languages: expected ja, got 'jp'"),
    (["search", "--model", "MODEL", "--documents", "", "--query", "x"], "'': No such file or directory"),
    (["train", "--pairs", "pairs.tsv", "--out", "m", "--left", "q", "--right", "d"],
     "pairs.tsv, line 1: --left: expected the column 'q', got the columns"),
    (["train", "--pairs", "texts.txt", "--out", "m"], "texts.txt, line 1: expected at least two columns"),
    (["train", "--pairs", "", "--out", "m"], "--pairs: expected a file, or - for standard input, got nothing"),
    (["encode", "--model", "nowhere"], "nowhere: expected a model folder, got nothing"),
    (["encode", "--model", "MODEL", "--output", "x.csv"], "--output: expected a file that ends in .npy or .jsonl"),
    (["encode", "--model", "MODEL", "--input", "texts.txt", "--output", "pairs.tsv/x.npy"],
     "pairs.tsv/x.npy: Not a folder (pairs.tsv)"),
    (["similarity", "--model", "MODEL", "--pairs", "one.tsv", "--left", "1"], "--left, --right: expected both columns"),
    (["similarity", "--model", "MODEL", "--pairs", "left", "--left", "9", "--right", "1"], "left, line 1: left: expec"),
    (["similarity", "--model", "MODEL", "one"], "similarity: expected two texts, or --pairs, got 1"),
    (["similarity", "--model", "MODEL", "one", "two", "--pairs", "pairs.tsv"], "similarity: expected two texts, or"),
    (["search", "--model", "MODEL", "--documents", "texts.txt"], "--query, --queries: expected one of them, got n"),
    (["search", "--model", "MODEL", "--documents", "empty", "--query", "x"], "empty: expected documents, got an empty"),
    (["search", "--model", "MODEL", "--documents", "texts.txt", "--queries", "empty"], "--queries: expected at least"),
    (["search", "--model", "MODEL", "--documents", "texts.txt", "--query", "x", "--terms", "2"], "Invalid value for"),
    (["search", "--model", "MODEL", "--documents", "texts.txt", "--query", "x", "--column", "a"],
     "texts.txt, line 1: expected a JSON object, for --column (a table is known by the end of its name: "),
    (["evaluate", "--model", "MODEL"], "--pairs, --queries, --run: expected one of them, got none"),
    (["evaluate", "--pairs", "pairs.tsv"], "--model: expected a value, with --pairs, got none"),
    (["evaluate", "--model", "MODEL", "--queries", "x", "--documents", "y"], "--qrels: expected a value, with --q"),
    (["evaluate", "--run", "x", "--qrels", "y", "--model", "z"], "--model: expected no --run beside it, got both"),
    (["evaluate", "--model", "MODEL", "--pairs", "one.tsv"], "one.tsv: expected at least two pairs, got 1"),
    (["evaluate", "--model", "MODEL", "--pairs", "one.tsv", "--label", "3"],
     "one.tsv: expected labels above 0 and others, got only labels above 0 (1)"),
    (["evaluate", "--model", "MODEL", "--pairs", "one.tsv", "--figures", "f"], "one.tsv: expected at least two pairs"),
    (["evaluate", "--model", "MODEL", "--pairs", "empty", "--figures", "f"], "empty: expected pairs, got an empty fi"),
    (["evaluate", "--model", "bert", "--pairs", "pairs.tsv", "--figures", "f"], "bert: expected a model folder, got"),
    (["evaluate", "--model", "MODEL", "--pairs", "pairs.tsv", "--figures", "texts.txt"],
     "--figures: expected a folder, new or old, got a file (texts.txt)"),
    (["evaluate", "--model", "MODEL", "--pairs", "pairs.tsv", "--figures", "texts.txt/f"], "texts.txt/f: Not a dir"),
    (["evaluate", "--model", "MODEL", "--pairs", "pairs.tsv", "--examples", "3"], "--examples: expected --figures a"),
    (["evaluate", "--run", "x", "--qrels", "y", "--figures", "f"], "--figures: expected no --run beside it, got both"),
    (["report", "--model", "MODEL", "--pairs", "pairs.tsv", "--out", "texts.txt"],
     "--out: expected a folder, new or old, got a file (texts.txt)"),
    (["report", "--model", "MODEL", "--pairs", "one.tsv", "--out", "f"], "one.tsv: expected at least two pairs, got 1"),
    (["report", "--model", "MODEL", "--pairs", "empty", "--out", "f"], "empty: expected pairs, got an empty file"),
    (["report", "--model", "bert", "--pairs", "pairs.tsv", "--out", "f"], "bert: expected a model folder, got nothing"),
    (["export", "--model", "MODEL", "--to", "fasttext", "--out", "x"], "Invalid value for '--to'"),
])  # fmt: skip
def test_bad_input_is_one_line_and_status_2(words, message, trained, folder, capsys):
    (folder / "empty").write_text("")
    for name in ("one.tsv", "left"):
        (folder / name).write_text("a\tb\t1\n")
    before = sorted(os.listdir())
    assert message in refused(capsys, *(trained if word == "MODEL" else word for word in words))
    assert sorted(os.listdir()) == before


def test_a_closed_standard_input_is_one_line(trained, folder, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    message = "standard input: expected an open one, got one that is closed"
    assert message in refused(capsys, "encode", "--model", trained)


def test_search_prints_nothing_that_a_terminal_obeys(folder, trained, capsys):
    (folder / "odd.jsonl").write_text(json.dumps({"text": f"{RIGHT[0]}\x1b[2J\x07\r\n\x9b1m 👩\u200d🔬"}) + "\n")
    words = ["search", "--model", trained, "--documents", "odd.jsonl", "--column", "text", "--query", RIGHT[0]]
    (line,) = run(capsys, *words, "--k", 1).splitlines()
    assert line.endswith(f"\t{RIGHT[0]} [2J    1m 👩\u200d🔬")
    assert "\\u001b[2J" in run(capsys, *words, "--k", 1, "--json")


def test_a_first_row_that_may_name_columns_is_told(folder, trained, capsys):
    rows = "".join(f"{a}\t{b}\n" for a, b in zip(LEFT, RIGHT, strict=True))
    (folder / "named.tsv").write_text(f"headline\tbody\n{rows}")
    note = "named.tsv: the first row, 'headline' and 'body', is taken as a pair; if it names columns, give them as --"
    for more, told in (([], True), (["--left", "headline", "--right", "body"], False)):
        assert cli.main(["evaluate", "--model", trained, "--pairs", "named.tsv", *more]) == 0
        out, err = capsys.readouterr()
        assert (note in err) == told and out.startswith(f"pairs: {40 + told}")
    assert cli.main(["similarity", "--model", trained, "--pairs", "named.tsv", "--left", "2", "--right", "1"]) == 0
    note = "the first row, 'body' and 'headline', is taken as a pair; if it names columns, give their names as --left"
    assert note in capsys.readouterr().err
    (folder / "words.tsv").write_text("one\tuno\ntwo\tdos\n")
    assert cli.main(["similarity", "--model", trained, "--pairs", "words.tsv"]) == 0
    assert "first row" not in capsys.readouterr().err
    (folder / "names.tsv").write_text(f"Product Title\tBeschreibung\n{rows}")
    assert cli.main(["similarity", "--model", trained, "--pairs", "names.tsv"]) == 0
    note = "names.tsv: the first row, 'Product Title' and 'Beschreibung', is taken as a pair; if it names columns, give"
    assert note in capsys.readouterr().err


def test_columns_that_nobody_chose_are_told(folder, trained, capsys):
    (folder / "wide.csv").write_text("sku,Product Title,body,grade\n" + "".join(
        f"{i},{a},{b},{i % 3}\n" for i, (a, b) in enumerate(zip(LEFT, RIGHT, strict=True))))  # fmt: skip
    words = ["similarity", "--model", trained, "--pairs", "wide.csv"]
    note = ("wide.csv: the first row, 'sku' and 'Product Title', is taken as a pair: columns 1 and 2 of 4 are read; "
            "--left and --right choose others, by name or by number\n")
    for more, told in (([], note), (["--left", "Product Title", "--right", "body"], "")):
        assert cli.main([*words, *more]) == 0
        assert note in capsys.readouterr().err if told else "columns" not in capsys.readouterr().err


def test_texts_without_spaces_that_are_cut_there_are_told(folder, trained, capsys):
    (folder / "ja.tsv").write_text("飛行機\t飛行機の翼について\n空気\t空気の流れについて\n")
    assert cli.main(["similarity", "--model", trained, "--pairs", "ja.tsv"]) == 0
    told = capsys.readouterr().err
    for side, code in (("left", "zh"), ("right", "ja")):  # no kana on the left
        assert (f"ja.tsv: {side} texts have no spaces between words, where the code en cuts them; train with the code "
                f"{code} for them in --languages\n") in told
    assert cli.main(["search", "--model", trained, "--documents", "texts.txt", "--query", "机翼"]) == 0
    told = capsys.readouterr().err
    assert "no word of it is known, or in the documents; all scores are 0 (it has no spaces; a model of such" in told
    assert cli.main(["train", "--pairs", "ja.tsv", "--languages", "ZH,zh-Hans", "--dev", "0", "--out", "zh", "--method",
                     "LSA", "--min-df", "1", "--drop-top", "0"]) == 0  # fmt: skip
    assert "no spaces" not in capsys.readouterr().err and Model.load("zh").languages == ("zh", "zh-Hans")


def test_folders_of_other_tools_are_not_replaced(folder, capsys):
    (folder / "bert").mkdir()
    (folder / "bert" / "config.json").write_text('{"model_type": "bert"}')
    (folder / "bert" / "model.safetensors").write_text("years of work")
    message = refused(capsys, "train", "--pairs", "pairs.tsv", "--out", "bert")
    assert message == "--out: expected a new folder, or one that holds an older model of ours (config.json), got bert"
    assert (folder / "bert" / "model.safetensors").read_text() == "years of work"


def test_models_that_are_incomplete_or_altered_are_refused(folder, capsys):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    path = folder / "model" / "model.safetensors"
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    words = ["similarity", "--model", "model", "a", "b"]
    assert refused(capsys, *words).startswith("model/model.safetensors: expected the file that was saved (SHA-256")
    path.unlink()
    assert refused(capsys, *words) == "model/model.safetensors: expected a file of the model, got none"


def test_export_hands_the_model_on(trained, folder, capsys, monkeypatch):
    seen = []
    program = ModuleType("jaxsim.model.export")
    program.export = lambda model, to, out: seen.append((model.method, to, str(out))) or {
        "folder": str(out), "paths": {"both": f"{out}/vectors.txt"}}  # fmt: skip
    monkeypatch.setitem(sys.modules, "jaxsim.model.export", program)
    monkeypatch.setattr(jaxsim.model, "export", program, raising=False)
    words = ["export", "--model", trained, "--to", "word2vec", "--out", "vectors"]
    assert run(capsys, *words) == "folder: vectors\npath (both): vectors/vectors.txt\n"
    assert json.loads(run(capsys, *words, "--json"))["paths"] == {"both": "vectors/vectors.txt"}
    assert seen == [("opca", "word2vec", "vectors")] * 2


def test_a_model_is_written_in_fewer_bytes(trained, folder, capsys):
    told = json.loads(run(capsys, "export", "--model", trained, "--to", "jaxsim", "--weights", "int8", "--out", "small",
                          "--json"))  # fmt: skip
    small, lost = Model.load("small"), told["rounded"]
    assert lost == small.training["weights"] and lost["bytes"] < lost["bytes_before"] / 2
    found, whole = (model.encode(RIGHT, normalize=True) for model in (small, Model.load(trained)))
    assert 0 < np.abs(found @ found.T - whole @ whole.T).max() < 2 * lost["largest_error"] + 0.01
    assert "weights: int8, " in run(capsys, "export", "--model", trained, "--to", "jaxsim", "--weights", "int8",
                                    "--out", "smaller")  # fmt: skip
    for there in ("small", str(trained)):
        assert f"--out: expected a folder that is not there yet, with --to jaxsim, got {there}" in refused(
            capsys, "export", "--model", trained, "--to", "jaxsim", "--weights", "int8", "--out", there)
    assert "--weights: expected float16 or int8, with --to jaxsim, got none" in refused(
        capsys, "export", "--model", trained, "--to", "jaxsim", "--out", "small")
