"""Files as other programs write them: lines of old Macs, JSON arrays, UTF-16; and numbers of things in messages."""

from __future__ import annotations

import gzip
import json

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import LEFT, feed, refused

from jaxsim import checks, cli, text
from jaxsim.cli import train as train_command
from jaxsim.data import streams, tables
from jaxsim.data.tables import Columns
from jaxsim.evaluate import trec
from jaxsim.methods.projections import Projection
from jaxsim.model import Model

ROWS = [{"left": "a", "right": "b", "n": 1}, {"left": "c [d]", "right": "e\nf", "n": 2}]


def read(path, data: bytes, **columns):
    path.write_bytes(data)
    result = tables.read(path, columns=Columns(**columns)).pairs
    return list(zip(result.left, result.right, strict=True))


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_lines_of_every_system(end, tmp_path):
    lines = ["left\tright", "a\tb", "", "c\td"]
    assert read(tmp_path / "x.tsv", end.join(lines).encode()) == [("a", "b"), ("c", "d")]
    assert read(tmp_path / "x.tsv.gz", gzip.compress(end.join([*lines, ""]).encode())) == [("a", "b"), ("c", "d")]
    quoted = end.join(['"one', 'two",b', "c,d", ""])
    assert read(tmp_path / "x.csv", quoted.encode()) == [(f"one{end}two", "b"), ("c", "d")]
    (tmp_path / "x.txt").write_bytes(end.join(["one", "", "three"]).encode())
    assert list(streams.texts(tmp_path / "x.txt")) == [(1, "one"), (2, ""), (3, "three")]
    (tmp_path / "x.qrels").write_bytes(end.join(["q 0 a 1", "q 0 b 0", ""]).encode())
    assert trec.read_qrels(tmp_path / "x.qrels") == {"q": {"a": 1, "b": 0}}


def test_faults_in_lines_of_old_macs_name_line_and_byte(tmp_path):
    with pytest.raises(ValueError, match="x.tsv, line 2: expected 2 columns, .*, got 1"):
        read(tmp_path / "x.tsv", b"a\tb\rc\rd\te")
    with pytest.raises(ValueError, match="x.tsv, line 2: expected UTF-8 text, got the byte 0xff at byte 5 of the file"):
        read(tmp_path / "x.tsv", b"a\tb\rc\xff\td")


def test_a_carriage_return_inside_a_line_stays_where_lines_end_otherwise(tmp_path):
    assert read(tmp_path / "x.tsv", b"a\rz\tb\nc\td\n") == [("a\rz", "b"), ("c", "d")]


@pytest.mark.parametrize("layout", [{}, {"indent": 2}, {"separators": (",", ":")}])
def test_an_array_of_objects_is_read_as_json_lines_are(layout, tmp_path, monkeypatch):
    whole, expected = json.dumps(ROWS, **layout), [(row["left"], row["right"]) for row in ROWS]
    for name, data in (("x.json", whole), ("x.jsonl", f"\ufeff\n {whole}\n"), ("x", whole)):
        assert read(tmp_path / name, data.encode()) == expected
    feed(monkeypatch, whole)
    assert tables.read("-", columns=Columns("left", "right", id="n")).pairs.ids == ("1", "2")
    assert list(streams.texts(tmp_path / "x.json", column="left")) == [(1, "a"), (2, "c [d]")]
    texts = [{"_id": "p", "text": "one"}, {"id": 2, "text": "two"}]
    (tmp_path / "texts").write_text(json.dumps(texts, **layout))
    assert trec.read_texts(tmp_path / "texts") == {"p": "one", "2": "two"}


def test_texts_that_begin_with_a_bracket_are_no_array(tmp_path):
    assert read(tmp_path / "x.tsv", b"[solved] a\tb\n[1\t2\n") == [("[solved] a", "b"), ("[1", "2")]
    assert read(tmp_path / "x", b"[solved] a\tb\n") == [("[solved] a", "b")]


@pytest.mark.parametrize(("data", "message"), [
    (b'[\n{"left": "a", "right": "b"},\n{"left"}]', "x.json, line 3: expected a JSON object, got invalid JSON"),
    (b'\n[{"left": "a",\n"right": "b"}', "x.json, line 3: expected a JSON object, got invalid JSON"),
    (b'[{"left": "a", "right": "b"}]\n[{}]', "x.json, line 2: expected a JSON object, got invalid JSON"),
    (b'[{"left": "a", "right": "b"}, 7]', "x.json, object 2: expected a JSON object, got an int"),
    (b'[{"left": "a", "right": "b"}, {"left": "a"}]', "x.json, object 2: expected the column 'right', got the columns"),
    (b'[{"a": "b"}]', "x.json, object 1: expected the columns left and right"),
    (b"[\n]", "x.json: expected pairs, got an empty file"),
    (b'{\n"data": [{"left": "a", "right": "b"}]}', r"line 1: .* invalid JSON \(one object over several lines\)"),
    (b'["a", "b"]', "x.json, line 1: expected a JSON object, got a list"),
])  # fmt: skip
def test_faults_of_arrays_name_line_or_object(data, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        read(tmp_path / "x.json", data)


@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be"])
def test_utf_16_is_refused_as_such(code, mark, tmp_path):
    with pytest.raises(ValueError, match=r"x.tsv, line 1: expected UTF-8 text, .* \(?as in UTF-16; save it as UTF-8"):
        read(tmp_path / "x.tsv", f"{mark}left\tright\na\tb\n".encode(code))
    with pytest.raises(ValueError, match="as in UTF-16; save it as UTF-8"):
        read(tmp_path / "x.tsv", f"{mark}left\tright\ra\tb\r".encode(code))


@pytest.mark.parametrize("begin", ["", "\n", "\r\n\n"])
@pytest.mark.parametrize("code", ["utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-16", "utf-32"])
def test_wide_letters_are_refused_after_empty_lines_too(code, begin, tmp_path):
    for rest in ("a", "left\tright\na\tb\n"):
        (tmp_path / "x").write_bytes((begin + rest).encode(code))
        with pytest.raises(ValueError, match=f"expected UTF-8 text, .*as in {code[:6].upper()}; save it as UTF-8"):
            list(streams.lines(tmp_path / "x"))


def test_zero_bytes_in_a_text_are_kept(tmp_path):
    (tmp_path / "x").write_bytes(b"\na\0b c\n\0\na\0\n")
    assert list(streams.lines(tmp_path / "x")) == ["\n", "a\0b c\n", "\0\n", "a\0\n"]


def test_a_spreadsheet_and_bytes_that_are_no_text_are_told_apart_from_utf_16(tmp_path):
    (tmp_path / "x").write_bytes(b"PAR1\x15\x04\xb0")
    with pytest.raises(ValueError, match="x, line 1: expected UTF-8 text, got a Parquet file"):
        tables.read(tmp_path / "x")
    with pytest.raises(ValueError, match="x.xlsx, line 1: expected UTF-8 text, got a ZIP file, as of a spreadsheet"):
        read(tmp_path / "x.xlsx", b"PK\3\4\x14\0\6\0\x08\0\0\0!\0\n")
    with pytest.raises(ValueError, match=r"the byte 0xff at byte 8 of the file \(invalid start .*; save it as UTF-8\)"):
        read(tmp_path / "x.bin", b"a\0\0b\0\0\0\0\xff\n")


def test_numbers_of_things():
    assert [checks.counted(n, "query", "queries") for n in (0, 1, 2)] == ["0 queries", "1 query", "2 queries"]
    assert checks.counted(12345, "text") == "12,345 texts"


def test_one_of_a_thing_is_no_plural(folder, capsys):
    facts = {"pairs": {"all": 3, "train": 3, "dev": 0}, "terms": 1, "dev": {}, "seconds": 1.0}
    words = text.Vocabulary(("item0",), np.array([1]), 3)
    model = Model(words, Projection(jnp.ones((1, 1))), training=facts)
    assert train_command._shown(model, folder / "model")["size"] == "1 term, 1 dimension"
    model.save("model")
    assert "1 term, weighted by" in (folder / "model" / "README.md").read_text()
    (folder / "one.txt").write_text(LEFT[0])
    capsys.readouterr()
    assert cli.main(["encode", "--model", "model", "--input", "one.txt", "--output", "one.npy"]) == 0
    assert capsys.readouterr().err == "one.npy: 1 vector of 1 dimension\n"
    assert refused(capsys, "similarity", "--model", "model", "a").endswith("two texts, or --pairs, got 1 text")
    (folder / "graded.tsv").write_text("a b\tc d\t0\n")
    assert cli.main(["train", "--pairs", "graded.tsv", "--label", "3", "--out", "other"]) == 2
    assert "left out 1 of 1 pair, whose label is not above 0" in capsys.readouterr().err
