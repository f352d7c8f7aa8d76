"""`jaxsim search --index`: made once, searched many times, made anew where it must be, refused where it may not."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
from command_line import LEFT, OPCA, RIGHT, feed, refused, run

from jaxsim import cli
from jaxsim.model import Model, folders, index


def searched(capsys, *words) -> tuple[str, str]:
    """What a search prints to stdout and to stderr."""
    capsys.readouterr()
    assert cli.main(["search", *map(str, words)]) == 0
    result = capsys.readouterr()
    return result.out, result.err


@pytest.mark.parametrize("words", ["bm25", "cosine"])
@pytest.mark.parametrize("terms", [0, 0.4, 1])
def test_results_are_those_of_a_search_without_index(terms, words, trained, folder, capsys):
    (folder / "queries.txt").write_text(f"{LEFT[7]}\nunheard\n{LEFT[20]}\n")
    words = ["--model", trained, "--queries", "queries.txt", "--terms", terms, "--words", words, "--k", 100, "--json"]
    plain = searched(capsys, *words, "--documents", "texts.txt")
    out, err = searched(capsys, *words, "--documents", "texts.txt", "--index", "kept")
    assert out == plain[0] and err == f"kept: made, 40 documents\n{plain[1]}"
    kept = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in (folder / "kept").iterdir()}
    assert searched(capsys, *words, "--documents", "texts.txt", "--index", "kept") == plain
    os.remove("texts.txt")
    assert searched(capsys, *words, "--index", "kept") == plain
    assert {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in (folder / "kept").iterdir()} == kept
    assert sorted(os.listdir()) == ["kept", "pairs.tsv", "queries.txt"]


def test_an_index_that_is_there_encodes_no_document(trained, folder, capsys, monkeypatch):
    words = ["--model", trained, "--query", LEFT[7]]
    searched(capsys, *words, "--documents", "texts.txt", "--index", "kept")
    vectors, seen = Model.vectors, []
    monkeypatch.setattr(Model, "vectors", lambda model, texts, **given: seen.extend(texts) or vectors(
        model, texts, **given))  # fmt: skip
    for more in ([], ["--documents", "texts.txt"], ["--terms", 0.5, "--words", "cosine"]):
        searched(capsys, *words, "--index", "kept", *more)
    assert seen == [LEFT[7]] * 3


def test_it_is_made_anew_where_documents_or_model_changed(trained, folder, capsys, monkeypatch):
    words = ["--query", LEFT[3], "--documents", "texts.txt", "--index", "kept"]
    searched(capsys, "--model", trained, *words)
    lines = (folder / "texts.txt").read_text()
    (folder / "texts.txt").write_text(lines.replace("item3:", "thing3:") + "日本 ☃ item3 \u2028 end\n")
    out, err = searched(capsys, "--model", trained, *words, "--k", 99)
    assert err == "kept: made anew, as the documents have changed, 41 documents\n"
    assert "\t41\t日本 ☃ item3 \u2028 end\n" in out and "item3:" not in out.replace("thing3:", "")
    assert out == searched(capsys, "--model", trained, *words[:-2], "--k", 99)[0]
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "other", "--method", "lsa", "--dim", 3)
    message = refused(capsys, "search", "--model", "other", "--query", LEFT[3], "--index", "kept")
    assert message == ("--model: expected the model that kept was made with, got another, or it was trained anew "
                       "(other); `search --documents` makes the index anew")  # fmt: skip
    out, err = searched(capsys, "--model", "other", *words)
    assert err == "kept: made anew, as the model is another, 41 documents\n"
    assert out == searched(capsys, "--model", "other", *words[:-2])[0] == searched(
        capsys, "--model", "other", "--query", LEFT[3], "--index", "kept")[0]  # fmt: skip
    feed(monkeypatch, lines)  # from standard input, as from a file
    assert "made anew" in searched(capsys, "--model", "other", *words[:2], "--documents", "-", "--index", "kept")[1]
    (folder / "texts.txt").write_text(lines)
    assert searched(capsys, "--model", "other", *words)[1] == ""


def test_json_documents_two_sides_and_bare_terms(folder, capsys):
    (folder / "pages.jsonl").write_text("".join(json.dumps({"id": i, "body": f"{one}\nend"}) + "\n\n"
                                                for i, one in enumerate(RIGHT)))  # fmt: skip
    for method in (("cca", "--dim", 4), ("log-tfidf",)):
        run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", "--dev", 0, "--method", *method)
        words = ["--model", "model", "--query", "item3 sparse", "--k", 40]
        plain = searched(capsys, *words, "--documents", "pages.jsonl", "--column", "body")[0]
        assert plain.splitlines()[0].split("\t")[2] in "1 3 5 7 9".split() or len(plain.splitlines()) == 40
        assert searched(capsys, *words, "--documents", "pages.jsonl", "--column", "body", "--index", "kept")[0] == plain
        assert searched(capsys, *words, "--index", "kept")[0] == plain
    # Another column is other documents.
    other = ["--documents", "pages.jsonl", "--column", "id"]
    assert "documents have changed" in searched(capsys, *words, *other, "--index", "kept")[1]


@pytest.mark.parametrize(("words", "message"), [
    (["--query", "x"], "--documents, --index: expected one of them, or both, got neither"),
    (["--query", "x", "--index", "none"], "none: expected an index, got nothing"),
    (["--query", "x", "--index", "void"], "void: expected an index, got a folder without index.json"),
    (["--query", "x", "--index", "MODEL"], "expected an index, got a folder without index.json"),
    (["--query", "x", "--index", "texts.txt"], "texts.txt: expected an index, got a file"),
    (["--query", "x", "--index", "kept", "--column", "a"], "--column: expected --documents as well, got none"),
    (["--query", "x", "--index", "kept", "--documents", "none.txt"], "none.txt: No such file or directory"),
    (["--query", "x", "--index", "kept", "--documents", "empty"], "empty: expected documents, got an empty file"),
    (["--query", "x", "--index", "new", "--documents", "empty"], "empty: expected documents, got an empty file"),
    (["--queries", "empty", "--index", "new", "--documents", "texts.txt"], "--queries: expected at least one query, g"),
    (["--queries", "-", "--index", "new", "--documents", "-"], "--documents, --queries: expected standard input (-) o"),
    (["--query", "x", "--index", "work", "--documents", "texts.txt"],
     "--index: expected a new folder, or one that holds an older index of ours (index.json), got work"),
    (["--query", "x", "--index", "texts.txt", "--documents", "texts.txt"], "--index: expected a new folder, or one th"),
    (["--query", "x", "--index", "texts.txt/i", "--documents", "texts.txt"], "texts.txt/i: "),
])  # fmt: skip
def test_bad_input_is_one_line_and_leaves_all_as_it_was(words, message, trained, folder, capsys):
    (folder / "empty").write_text("")
    (folder / "void").mkdir()
    (folder / "work").mkdir()
    (folder / "work" / "thesis.txt").write_text("years of work")
    searched(capsys, "--model", trained, "--query", "x", "--documents", "texts.txt", "--index", "kept")
    before = {path: path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))}
    words = [trained if word == "MODEL" else word for word in words]
    assert message in refused(capsys, "search", "--model", trained, *words)
    assert {path: path.is_file() and path.read_bytes() for path in sorted(folder.rglob("*"))} == before


def test_an_empty_folder_becomes_an_index(trained, folder, capsys):
    (folder / "void").mkdir()
    out, err = searched(capsys, "--model", trained, "--query", LEFT[0], "--documents", "texts.txt", "--index", "void")
    assert err == "void: made, 40 documents\n" and out == searched(
        capsys, "--model", trained, "--query", LEFT[0], "--index", "void")[0]  # fmt: skip


@pytest.mark.parametrize("documents", [[], ["--documents", "texts.txt"]])
def test_altered_and_truncated_files_are_told(documents, trained, folder, capsys):
    words = ["search", "--model", trained, "--query", LEFT[0], "--index", "kept"]
    run(capsys, *words, "--documents", "texts.txt")
    path, facts = folder / "kept" / index.TENSORS, folder / "kept" / index.MARKER
    whole, described = path.read_bytes(), facts.read_bytes()
    remedy = "; delete its folder and make it anew, with --documents"
    for broken in (whole[:-1], whole[:-1] + bytes([whole[-1] ^ 1]), b""):
        path.write_bytes(broken)
        message = refused(capsys, *words, *documents)
        assert message.startswith("kept/index.safetensors: expected the file that was saved, got an altered or trunca")
        assert message.endswith(remedy) and path.read_bytes() == broken
    path.unlink()
    message = refused(capsys, *words, *documents)
    assert message == f"kept/index.safetensors: expected a file of the index, got none{remedy}"
    for broken, got in ((described[: len(described) // 2], "expected JSON, got Unterminated string"),
                        (b"", "expected JSON, got an empty file; delete"),
                        (described.replace(b'"documents": 40', b'"documents": 41'), "got an altered one; delete"),
                        ):  # fmt: skip
        facts.write_bytes(broken)
        message = refused(capsys, *words, *documents)
        assert message.startswith("kept/index.json: expected ") and got in message and message.endswith(remedy)
    path.unlink(missing_ok=True)  # the remedy is one
    facts.unlink()
    (folder / "kept").rmdir()
    run(capsys, *words, "--documents", "texts.txt")
    run(capsys, *words)


def test_a_failed_write_and_ctrl_c_keep_the_older_index(trained, folder, capsys, monkeypatch):
    words = ["search", "--model", trained, "--query", LEFT[0], "--documents", "texts.txt", "--index"]
    run(capsys, *words, "kept")
    before = {path.name: path.read_bytes() for path in (folder / "kept").iterdir()}
    (folder / "texts.txt").write_text("other documents\n")

    def failing(error):
        def fail(*_):
            raise type(error)(*error.args)
        return fail

    with monkeypatch.context() as patched:
        patched.setattr(folders.os, "fsync", failing(OSError(28, "No space left on device")))
        assert refused(capsys, *words, "kept") == "kept: No space left on device"
        patched.setattr(folders.os, "fsync", failing(KeyboardInterrupt()))
        for name, left in (("kept", ", which is as it was before"), ("new", "")):
            assert refused(capsys, *words, name) == f"interrupted; nothing was written to {name}{left}"
    rename = os.rename

    def stop(source, target):
        if str(source).endswith(".part"):  # the older one has its hidden name now
            raise KeyboardInterrupt
        rename(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(folders.os, "rename", stop)
        assert refused(capsys, *words, "kept") == "interrupted; nothing was written to kept, which is as it was before"
    assert {path.name: path.read_bytes() for path in (folder / "kept").iterdir()} == before
    assert sorted(os.listdir()) == ["kept", "pairs.tsv", "texts.txt"]


def test_a_model_that_is_trained_anew_is_another(folder, capsys):
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA)
    words = ["search", "--model", "model", "--query", LEFT[0], "--index", "kept"]
    run(capsys, *words, "--documents", "texts.txt")
    digest = folders.digest("model")
    assert digest == folders.digest("model") == index.described("kept")["model"]
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "model", *OPCA, "--seed", 3)
    assert folders.digest("model") != digest and "the model that kept was made with" in refused(capsys, *words)
    Model.load("model").save("copy")  # the same model in another folder
    assert folders.digest("copy") == folders.digest("model")


def test_identifiers_stand_in_results_and_are_kept(trained, folder, capsys):
    names = [f"§{row // 2}\tx" for row in range(len(RIGHT))]  # passages of one document share its identifier
    (folder / "pages.jsonl").write_text("".join(json.dumps({"id": name, "body": text}) + "\n"
                                                for name, text in zip(names, RIGHT, strict=True)))  # fmt: skip
    words = ["--model", trained, "--query", LEFT[7], "--k", 40]
    told = ["--documents", "pages.jsonl", "--column", "body"]
    bare = [line.split("\t") for line in searched(capsys, *words, *told)[0].splitlines()]
    out, err = searched(capsys, *words, *told, "--id", "id", "--index", "kept")
    assert err == "kept: made, 40 documents\n" and out == searched(capsys, *words, *told, "--id", "id")[0]
    shown = [line.split("\t") for line in out.splitlines()]
    assert [[*line[:3], line[4]] for line in shown] == bare and len(bare) == 40
    assert [line[3] for line in shown] == [f"§{(int(line[2]) - 1) // 2} x" for line in shown]
    kept = searched(capsys, *words, "--index", "kept", "--json")[0]
    assert [one["id"] for one in json.loads(kept)["results"]] == [names[int(line[2]) - 1] for line in bare]
    assert searched(capsys, *words, *told, "--index", "kept") == (
        out, "kept: identifiers are those that it was made with (--id compares them)\n")  # fmt: skip
    (folder / "known.tsv").write_text("1\t§99 x\n")
    out, err = searched(capsys, *words, "--index", "kept", "--exclude", "known.tsv")
    assert err == "known.tsv: 1 line with an identifier that no document has, and nothing to leave out\n"
    (folder / "known.tsv").write_text("1\t§4\x1fx\n")  # as `§4 x`, which is printed
    out, err = searched(capsys, *words, "--index", "kept", "--exclude", "known.tsv")
    assert err == "" and len(out.splitlines()) == 38 and "§4 x" not in out
    (folder / "pages.csv").write_text("n,body\n" + "".join(f'd{row // 2},"{text}"\n' for row, text in enumerate(RIGHT)))
    told = ["--documents", "pages.csv", "--column", "body"]
    anew = searched(capsys, *words, *told, "--id", "n", "--index", "kept")
    assert anew[1] == "kept: made anew, as the documents have changed, 40 documents\n"  # the header moves the lines
    (folder / "known.tsv").write_text("1\td3\n1\td4\n")
    out, err = searched(capsys, *words, "--index", "kept", "--exclude", "known.tsv")
    assert err == "" and {line.split("\t")[3] for line in out.splitlines()} == {f"d{row}" for row in range(20)} - {
        "d3", "d4"}  # fmt: skip
    (folder / "pages.csv").write_text((folder / "pages.csv").read_text().replace("d3,", "e3,"))
    assert searched(capsys, *words, *told, "--id", "n", "--index", "kept")[1] == (
        "kept: made anew, as --id is another, 40 documents\n")  # fmt: skip
    (folder / "pages.csv").write_text((folder / "pages.csv").read_text().replace("sparse", "dense"))
    before = {path.name: path.read_bytes() for path in (folder / "kept").iterdir()}
    assert refused(capsys, "search", *words, *told, "--index", "kept") == (
        "--id: expected the column of identifiers that kept was made with, to make it anew, got none")  # fmt: skip
    assert {path.name: path.read_bytes() for path in (folder / "kept").iterdir()} == before
    searched(capsys, *words, *told, "--index", "plain")
    assert searched(capsys, *words, *told, "--id", "n", "--index", "plain")[1] == (
        "plain: made anew, as --id is new, 40 documents\n")  # fmt: skip
    assert refused(capsys, "search", *words, "--index", "kept", "--id", "n") == (
        "--id: expected --documents as well, got none")  # fmt: skip
    assert refused(capsys, "search", *words, "--documents", "texts.txt", "--id", "n") == (
        "--id: expected --column as well, for the texts, got none")  # fmt: skip
    assert "pages.csv, line 1: expected the column 'key'" in refused(
        capsys, "search", *words, *told, "--id", "key")  # fmt: skip
    model = Model.load(trained)
    for ids, message in ((["b", "c"], "1 string, one a text, got 2"), ([1], "1 string, one a text, got 1"),
                         ([None], "1 string, one a text, got None"), ([], "1 string, one a text, got 0"),
                         ("b", "a list of strings, got one string")):  # fmt: skip
        with pytest.raises(ValueError, match=f"ids: expected {message}"):
            index.encode(model, ["a"], ids=ids)
    assert index.encode(model, ["a", "b"], ids=np.array(["x", "y"])).ids == ["x", "y"]
