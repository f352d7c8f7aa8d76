"""Where commands write: links, devices, full disks; and hints where the input is not what it seems."""

from __future__ import annotations

import builtins
import errno
import json
import os
import sys
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import LEFT, OPCA, RIGHT, feed, refused, run

from jaxsim import __main__ as program
from jaxsim import cli, text
from jaxsim.cli.output import naming, replacing
from jaxsim.methods.projections import Projection
from jaxsim.model import Model, folders
from jaxsim.optim import checkpoints


@pytest.fixture
def model(folder):
    """A model folder, made without training."""
    words = text.Vocabulary.build(map(text.words, [*LEFT, *RIGHT]), drop_top=0)
    weights = np.random.default_rng(0).standard_normal((len(words), 4)).astype(np.float32)
    return Model(words, Projection(jnp.asarray(weights))).save("model")


def test_a_link_is_followed_and_a_device_is_written_to(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    with replacing(tmp_path / "link") as file:
        file.write(b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "real").read_text() == "new"
    os.mkfifo(tmp_path / "pipe")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    with replacing(tmp_path / "pipe") as file:
        file.write(b"streamed")
    assert os.read(reader, 99) == b"streamed" and (tmp_path / "pipe").is_fifo()
    os.close(reader)
    assert sorted(os.listdir(tmp_path)) == ["link", "pipe", "real"]


def test_an_array_is_not_written_to_a_pipe_and_the_way_out_is_told(model, tmp_path, capsys):
    os.mkfifo(tmp_path / "pipe.npy")
    reader = os.open(tmp_path / "pipe.npy", os.O_RDONLY | os.O_NONBLOCK)
    (tmp_path / "texts.txt").write_text("cat\n")
    files = ["--input", tmp_path / "texts.txt", "--output", tmp_path / "pipe.npy"]
    told = refused(capsys, "encode", "--model", model, *files)
    os.close(reader)
    assert told == ("--output: expected a file for an array, whose header is written last (or .jsonl, or -), got a "
                    f"pipe ({tmp_path / 'pipe.npy'})")


@pytest.mark.parametrize("error", [KeyboardInterrupt(), FileNotFoundError(2, "No such file", "input"), ValueError("x")])
def test_what_was_there_stays_and_errors_of_other_files_keep_their_names(error, tmp_path):
    (tmp_path / "out").write_text("old")
    with pytest.raises(type(error)) as caught, replacing(tmp_path / "out") as file:
        file.write(b"half")
        raise error
    assert caught.value is error
    assert (tmp_path / "out").read_text() == "old" and os.listdir(tmp_path) == ["out"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no device that is always full")
def test_a_full_disk_is_named():
    with pytest.raises(OSError, match="/dev/full") as caught, replacing(Path("/dev/full")) as file:
        file.write(b"x")
    assert caught.value.errno == errno.ENOSPC


def test_no_space_for_a_model_or_a_checkpoint_is_one_line_and_keeps_the_older_one(model, folder, monkeypatch, capsys):
    before = {path.name: path.read_bytes() for path in model.iterdir()}
    monkeypatch.setattr(folders.os, "fsync", full)
    words = ["export", "--model", "model", "--to", "word2vec", "--out", "vectors"]
    assert refused(capsys, *words) == "vectors: No space left on device"
    with pytest.raises(OSError, match="model"), naming(Path("model")):
        Model.load(model).save("model")
    assert {path.name: path.read_bytes() for path in model.iterdir()} == before
    assert sorted(os.listdir()) == ["model", "pairs.tsv", "texts.txt"]
    monkeypatch.setattr(checkpoints, "save_file", unwritable)
    place = checkpoints.prepare("new.checkpoint")
    with pytest.raises(OSError, match=r"^new.checkpoint: expected a place for a checkpoint, got Error .* No space"):
        checkpoints.save(place, [np.ones(2)], {"fingerprint": ""})
    assert not os.listdir(place)


def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")


def unwritable(*_, **__):
    raise checkpoints.SafetensorError("Error while serializing: No space left on device")


def test_json_that_is_read_as_text_is_said_and_column_reads_it(model, folder, capsys):
    rows = [{"id": i, "body": one} for i, one in enumerate(RIGHT)]
    (folder / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "texts.json").write_text(json.dumps(rows, indent=1))
    for name in ("texts.jsonl", "texts.json"):
        run(capsys, "encode", "--model", "model", "--input", name, "--column", "body", "--output", "found.npy")
        np.testing.assert_array_equal(np.load("found.npy"), Model.load("model").encode(RIGHT))
    (folder / "texts.csv").write_text("id,body\n" + "".join(f'{i},"{one}"\n' for i, one in enumerate(RIGHT)))
    run(capsys, "encode", "--model", "model", "--input", "texts.csv", "--column", "body", "--output", "found.npy")
    np.testing.assert_array_equal(np.load("found.npy"), Model.load("model").encode(RIGHT))
    for words in (["encode", "--input"], ["search", "--query", LEFT[0], "--documents"]):
        capsys.readouterr()
        assert cli.main([*words, "texts.jsonl", "--model", "model"]) == 0
        assert "texts.jsonl: JSON is read as plain text; --column KEY reads" in capsys.readouterr().err
        assert cli.main([*words, "texts.csv", "--model", "model"]) == 0
        assert "texts.csv: a line is read as a text; --column NAME reads a column\n" in capsys.readouterr().err
        (folder / "lines.tsv").write_text("\n".join(RIGHT))
        for plain in ("texts.txt", "lines.tsv"):
            assert cli.main([*words, plain, "--model", "model"]) == 0
            told = capsys.readouterr().err
            assert "JSON" not in told and "column" not in told
        assert refused(capsys, *words, "texts.csv", "--model", "model", "--column", "") == (
            "texts.csv, line 1: expected the column '', got the columns 'id', 'body'")
        assert refused(capsys, *words, "texts.parquet", "--model", "model") == (
            "--column: expected a column of texts.parquet, got none")


def test_queries_are_read_from_a_column(model, folder, capsys):
    search = ["search", "--model", "model", "--documents", "texts.txt", "--k", "2"]
    (folder / "plain").write_text(f"{LEFT[3]}\n\n{LEFT[5]}\n")
    expected = run(capsys, *search, "--queries", "plain")
    (folder / "asked.csv").write_text(f'id,question\n7,"{LEFT[3]}"\n8,\n9,"{LEFT[5]}"\n')
    (folder / "asked.jsonl").write_text("".join(json.dumps({"q": one}) + "\n" for one in (LEFT[3], None, LEFT[5])))
    assert run(capsys, *search, "--queries", "asked.csv", "--query-column", "question") == expected
    assert run(capsys, *search, "--queries", "asked.jsonl", "--query-column", "q") == expected
    assert refused(capsys, *search, "--queries", "asked.csv", "--query-column", "none") == (
        "asked.csv, line 1: expected the column 'none', got the columns 'id', 'question'")
    assert refused(capsys, *search, "--queries", "plain", "--query-column", "q").startswith(
        "plain, line 1: expected a JSON object, for --query-column (a table is known by the end of its name")
    assert refused(capsys, *search, "--query", "a", "--query-column", "q") == (
        "--query-column: expected --queries as well, got none")


def test_tables_and_json_are_told_wherever_lines_are_texts(model, folder, capsys):
    (folder / "ids.tsv").write_text("".join(f"{i}\t{one}\n" for i, one in enumerate(LEFT)))
    (folder / "ids.jsonl").write_text("".join(json.dumps({"text": one}) + "\n" for one in LEFT))
    (folder / "ids.txt").write_text((folder / "ids.tsv").read_text())
    search = ["search", "--model", "model", "--documents", "texts.txt"]
    train = ["train", "--pairs", "pairs.tsv", "--out", "m", "--method"]
    table, keys = "a line is read as a text", "JSON is read as plain text"
    for words, names in (([*search, "--query", LEFT[0], "--csls"], {"ids.jsonl": keys}),
                         ([*train, "log-tfidf", "--texts"], {"ids.tsv": table}),
                         ([*train, "s2net", "--max-iter", "1", "--dim", "3", "--negatives", "1", "--subwords", "0",
                           "--dev", "0.2", "--documents"], {"ids.jsonl": keys}),
                         (["evaluate", "--model", "model", "--pairs", "pairs.tsv", "--csls"], {"ids.txt": table})):
        for name, said in names.items():
            assert cli.main([*words, name]) == 0
            assert f"{name}: {said}; give a file of the texts alone\n" in capsys.readouterr().err
    (folder / "ids.json").write_text(json.dumps([{"text": one} for one in LEFT], indent=1))
    (folder / "late.jsonl").write_text('\n{ "text": "a" }\n')
    by_key = f"{keys}; --query-column KEY reads the text under a key"
    for name, said in {"ids.tsv": f"{table}; --query-column NAME reads a column", "ids.jsonl": by_key,
                       "ids.txt": f"{table}; --query-column NAME reads a column of a file whose name ends in .tsv",
                       "ids.json": by_key, "late.jsonl": by_key}.items():
        assert cli.main([*search, "--queries", name]) == 0
        assert f"{name}: {said}\n" in capsys.readouterr().err
    (folder / "brace.txt").write_text("{a} b\n[1] c\n")
    assert cli.main([*search, "--queries", "brace.txt"]) == 0
    assert cli.main([*search, "--queries", "texts.txt"]) == 0
    assert "read as" not in capsys.readouterr().err


def test_a_column_of_a_file_that_is_no_table_says_how_tables_are_known(model, folder, capsys, monkeypatch):
    words = ["search", "--model", "model", "--query", LEFT[0], "--documents"]
    expected = "expected a JSON object, for --column (a table is known by the end of its name: .tsv, .csv or .parquet"
    (folder / "ids.txt").write_text(f"\n7\t{LEFT[0]}\n")
    assert refused(capsys, *words, "ids.txt", "--column", "2").startswith(f"ids.txt, line 2: {expected}")
    feed(monkeypatch, "id,body\n1,a\n")
    assert refused(capsys, *words, "-", "--column", "body").startswith(f"standard input, line 1: {expected}")
    feed(monkeypatch, '{"body": "matrix"}\n')
    assert run(capsys, *words, "-", "--column", "body").endswith("matrix\n")
    for name in ("none.jsonl", "none.txt"):
        (folder / name).write_text("\n")
        assert refused(capsys, *words, name, "--column", "body").startswith(f"{name}: expected documents")
    (folder / "log.jsonl").write_text("# made by hand\n")
    assert refused(capsys, *words, "log.jsonl", "--column", "body") == (
        "log.jsonl, line 1: expected a JSON object, got invalid JSON (Expecting value, column 1)")


def test_a_first_row_of_names_is_told_where_columns_are_numbers(model, folder, capsys):
    words = ["search", "--model", "model", "--query", LEFT[0], "--documents", "ids.csv", "--column"]
    (folder / "ids.csv").write_text("id,body\n" + "".join(f'{i},"{one}, {one}"\n' for i, one in enumerate(RIGHT)))
    assert cli.main([*words, "2"]) == 0
    assert "ids.csv: the first row, 'body', is taken as a text; if it names columns, give their names\n" in (
        capsys.readouterr().err)
    assert cli.main([*words, "body", "--id", "1"]) == 0
    (folder / "ids.csv").write_text("".join(f"{i},{one}\n" for i, one in enumerate(("cats", "a, b", "dogs"))
                                            ).replace("a, b", '"a, b"'))  # words alone are no names
    assert cli.main([*words, "2"]) == 0
    assert "first row" not in capsys.readouterr().err


def test_data_that_is_given_twice_is_refused_and_of_settings_the_last_one_counts(folder, capsys):
    words = ["train", "--pairs", "pairs.tsv", "--out", "m", "--method", "lsa", "--dim", "2", "--dim", "3"]
    assert refused(capsys, *words, "--pairs=pairs.tsv") == (
        "--pairs: expected once, got it twice (put the pairs into one file)")
    assert refused(capsys, *words, *["--qrels", "texts.txt"] * 3) == "--qrels: expected once, got it 3 times"
    assert refused(capsys, "search", "--model", "m", "--query", "a", "--query", "--query", "--documents", "x") == (
        "--query: expected once, got it twice (--queries takes a file of them)")
    assert refused(capsys, "topics", "--pairs", "pairs.tsv", "--out", "t", "--dev", "0.1", "--dev", "a.tsv") == (
        "--dev: expected once, got it twice")
    assert "Usage:" in run(capsys, *words, "--pairs", "pairs.tsv", "--help")
    run(capsys, *words, "--json", "--json")
    assert Model.load("m").dim == 3


def test_csv_on_standard_input_is_named(folder, capsys, monkeypatch):
    feed(monkeypatch, "query,document\na,b\n")
    message = refused(capsys, "train", "--pairs", "-", "--out", "m")
    assert message.startswith("standard input, line 1: expected at least two columns, separated by tabs, got 1; ")
    assert message.endswith("put a tab between the two texts; where commas are between columns, --format csv reads "
                            "them")


def test_ctrl_c_while_modules_load_is_one_line(monkeypatch, capsys):
    def interrupted(name, *given):
        if name == "jaxsim" and "cli" in (given[2] or ()):
            raise KeyboardInterrupt
        return load(name, *given)

    load = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", interrupted)
    monkeypatch.setattr("os._exit", sys.exit)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)  # the program has one of its own
    with pytest.raises(SystemExit) as stopped:
        program.run()
    assert stopped.value.code == cli.INTERRUPTED and capsys.readouterr().err == "jaxsim: interrupted\n"


def test_what_is_read_is_not_written_over(model, folder, capsys):
    (folder / "texts.jsonl").write_text('"a text"\n')
    (folder / "link.jsonl").symlink_to("texts.jsonl")
    for output in ("texts.jsonl", "link.jsonl"):
        message = refused(capsys, "encode", "--model", "model", "--input", "texts.jsonl", "--output", output)
        assert "another file than that of --input" in message
    assert (folder / "texts.jsonl").read_text() == '"a text"\n'
    for name in ("queries", "documents", "qrels"):
        (folder / name).write_text("q\tsparse matrix\n" if name != "qrels" else "q 0 q 1\n")
    for name in ("exclude", "csls"):
        (folder / name).write_text("q\tq\n")
    for name in ("queries", "documents", "qrels", "exclude", "csls"):
        message = refused(capsys, "evaluate", "--model", "model", "--queries", "queries", "--documents", "documents",
                          "--qrels", "qrels", "--exclude", "exclude", "--csls", "csls", "--run-out", name)
        assert f"--run-out: expected another file than that of --{name}" in message


def test_pairs_with_a_side_of_unknown_words_are_counted(folder, capsys):
    with (folder / "pairs.tsv").open("a") as file:
        file.write("\tnothing on the left\n!?\tno word on the left\n")
    assert cli.main(["train", "--pairs", "pairs.tsv", "--out", "told", "--dev", "0", *OPCA]) == 0
    assert "2 training pairs without a word of the vocabulary on a side\n" in capsys.readouterr().err
    known = len((folder / "pairs.tsv").read_text().splitlines()) - 2
    with (folder / "pairs.tsv").open("a") as file:
        file.writelines(f"!{'?' * number}\tnumber {number}\n" for number in range(known))
    assert cli.main(["train", "--pairs", "pairs.tsv", "--out", "told", "--dev", "0", *OPCA]) == 0
    assert "on a side, which is most of them: are these the right columns?\n" in capsys.readouterr().err
