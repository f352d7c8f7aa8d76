"""Pairs from tables of every format, and the messages for tables that are none."""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import json
import lzma
import sys

import pytest

from jaxsim.data import streams, tables
from jaxsim.data.tables import Columns

ROWS = [("one, two", 'he said "hi"'), ("", "dos"), ("日本 élan\u2028x", "a\vb")]
PACK = {"": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress}


def written(kind, rows=ROWS, header=("left", "right")) -> bytes:
    """The rows as a file of one format, with a header or keys."""
    if kind == "tsv":
        return "".join("\t".join(row) + "\n" for row in [header, *rows] if row).encode()
    if kind == "csv":
        text = io.StringIO()
        csv.writer(text).writerows(row for row in [header, *rows] if row)
        return text.getvalue().encode()
    return "".join(json.dumps(dict(zip(header, row, strict=True))) + "\n" for row in rows).encode()


def feed(monkeypatch, data: bytes):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(data))))


@pytest.mark.parametrize("suffix", PACK)
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_every_format_plain_and_compressed_from_a_path_and_from_standard_input(kind, suffix, tmp_path, monkeypatch):
    path = tmp_path / f"pairs.{kind}{suffix}"
    path.write_bytes(PACK[suffix](written(kind)))
    result = tables.read(path)
    assert result.labels is None
    assert list(zip(result.pairs.left, result.pairs.right, strict=True)) == ROWS
    assert (result.pairs.ids, result.pairs.name) == (("1", "2", "3"), path.name)
    feed(monkeypatch, path.read_bytes())
    streamed = tables.read("-", format=kind).pairs
    assert (streamed.left, streamed.right, streamed.name) == (result.pairs.left, result.pairs.right, "standard input")


def test_standard_input_is_json_lines_or_tsv_by_its_first_character(monkeypatch):
    feed(monkeypatch, b"\n  " + written("jsonl"))
    assert tables.read("-").pairs.left == tuple(row[0] for row in ROWS)
    feed(monkeypatch, written("tsv", header=()))
    assert tables.read("-").pairs.left == tuple(row[0] for row in ROWS)
    feed(monkeypatch, b"BZh9 is a text\tthat begins like a compressed file\n")
    assert tables.read("-").pairs.left == ("BZh9 is a text",)


@pytest.mark.parametrize("names", tables.NAMES)
@pytest.mark.parametrize("kind", ["tsv", "csv", "jsonl"])
def test_known_names_are_a_header(kind, names, tmp_path):
    path = tmp_path / f"pairs.{kind}"
    path.write_bytes(written(kind, header=[name.title() for name in names]))
    assert tables.read(path).pairs.right == tuple(row[1] for row in ROWS)
    path.write_bytes(written(kind, [("7", "yes", "x", "y")], header=("id", "label", *names)))
    assert tables.read(path).pairs.left == ("x",)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_columns_by_number_and_by_name(kind, tmp_path):
    path = tmp_path / f"pairs.{kind}"
    path.write_bytes(written(kind, [("a", "b", "1.5", "p"), ("c", "d", "0", "q")], header=()))
    result = tables.read(path, columns=Columns("2", "1", "3", "4"))
    assert (result.pairs.left, result.pairs.ids, result.labels.tolist()) == (("b", "d"), ("p", "q"), [1.5, 0.0])
    path.write_bytes(written(kind, [("a", "b", "1.5", "p"), ("c", "d", "-1", "q")], header=("Q", "A", "grade", "key")))
    result = tables.read(path, columns=Columns("q", "A", "grade", "key"))
    assert (result.pairs.left, result.pairs.ids, result.labels.tolist()) == (("a", "c"), ("p", "q"), [1.5, -1.0])
    mates, others = tables.mates(result)
    assert (mates.left, mates.ids, others) == (("a",), ("p",), 1)


@pytest.mark.parametrize("kind", ["tsv", "csv"])
def test_texts_are_the_first_columns_that_label_and_id_do_not_take(kind, tmp_path):
    path, rows = tmp_path / f"pairs.{kind}", [("p", "1", "a", "x"), ("q", "0", "b", "y")]
    path.write_bytes(written(kind, rows, header=("key", "grade", "one", "two")))
    result = tables.read(path, columns=Columns(id="key", label="grade"))
    assert (result.pairs.left, result.pairs.right, result.pairs.ids) == (("a", "b"), ("x", "y"), ("p", "q"))
    assert result.labels.tolist() == [1, 0]
    path.write_bytes(written(kind, rows, header=()))
    assert tables.read(path, columns=Columns(label="2")).pairs.right == ("a", "b")
    path.write_bytes(written(kind, rows, header=("query", "text1", "document", "text2")))
    assert tables.read(path, columns=Columns(id="query")).pairs.right == ("x", "y")


def test_json_numbers_are_text_and_labels_may_be_booleans(tmp_path):
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"id": 3, "q": 1.5, "d": "x", "ok": true}\n\n{"id": 4, "q": "y", "d": "z", "ok": "0"}\n')
    result = tables.read(path, columns=Columns("q", "d", "ok", "id"))
    assert (result.pairs.left, result.pairs.ids, result.labels.tolist()) == (("1.5", "y"), ("3", "4"), [1.0, 0.0])


def test_byte_order_marks_windows_lines_blank_lines_nul_bytes_and_long_lines(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_bytes(b"\xef\xbb\xbfleft\tright\r\na\tb\r\n\r\n\tc\0d\r\n")
    result = tables.read(path).pairs
    assert (result.left, result.right) == (("a", ""), ("b", "c\0d"))
    path = tmp_path / "pairs.csv"
    long = "word " * 2_000_000
    path.write_bytes(f'\ufeffleft,right\r\n{long},"two\nlines\0"\r\n\r\n'.encode())
    before = csv.field_size_limit()
    result = tables.read(path).pairs
    assert (len(result.left[0]), result.right, len(result)) == (10_000_000, ("two\nlines\0",), 1)
    assert csv.field_size_limit() == before


def test_two_tables_with_long_cells_are_read_in_turns(tmp_path):
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("".join(f"{name}{row},{'x' * 200_000}\n" for row in range(3)))
    one, two = (tables._csv(streams.lines(tmp_path / f"{name}.csv"), name) for name in "ab")
    first = [next(one)[1][0], next(two)[1][0], next(one)[1][0], next(one)[1][0]]
    one.close()
    assert [*first, *(cells[0] for _, cells in two)] == ["a0", "b0", "a1", "a2", "b1", "b2"]


FAULTS = {
    "empty": ("x.tsv", b"", {}, "x.tsv: expected pairs, got an empty file"),
    "blank": ("x.csv", b"\n\n", {}, "x.csv: expected pairs, got an empty file"),
    "no objects": ("x.jsonl", b"\n", {}, "x.jsonl: expected pairs, got an empty file"),
    "header only": ("x.tsv", b"query\tdocument\n", {}, "x.tsv: expected pairs after the header, got none"),
    "one column": ("x.tsv", b"a b\nc d\n", {}, "line 1: expected at least two columns, separated by tabs, got 1"),
    "one column of commas": ("x.csv", b"a;b\n", {}, "separated by commas, got 1; save it with commas between columns"),
    "one column of texts": ("x.tsv", b"a, b c\n", {}, "got 1; put a tab between the two texts; where commas are"),
    "ragged": ("x.tsv", b"a\tb\nc\td\te\n", {}, "x.tsv, line 2: expected 2 columns, .* as in the first line, got 3"),
    "ragged after lines in quotes": ("x.csv", b'a,"b\nc"\nd\n', {}, "x.csv, line 3: expected 2 columns"),
    "open quote": ("x.csv", b'a,b\n"c,d\ne,f\n', {}, "x.csv, line 2: expected CSV, got a row that is not"),
    "not UTF-8": ("x.tsv", b"a\tb\nc\xff\td\n", {}, "x.tsv, line 2: expected UTF-8 text, got the byte 0xff at byte 5"),
    "UTF-16": ("x.csv", "a,b".encode("utf-16"), {}, "x.csv, line 1: expected UTF-8 text, got the byte 0xff at byte 0"),
    "gzip by another name": ("x.tsv", gzip.compress(b"a\tb\n"), {},
                             "x.tsv, line 1: expected UTF-8 text, got compressed data; .* the suffix .gz"),
    "xz by another name": ("x.csv", lzma.compress(b"a,b\n"), {}, "got compressed data; .* the suffix .xz"),
    "bzip2 by another name": ("x.jsonl", bz2.compress(b"{}"), {}, "got compressed data; .* the suffix .bz2"),
    "unknown name": ("x.csv", b"q,a\n1,2\n", {"left": "q", "right": "b"},
                     "x.csv, line 1: right: expected the column 'b', got the columns 'q', 'a'"),
    "unknown number": ("x.csv", b"q,a\n1,2\n", {"left": "1", "right": "3"},
                       "x.csv, line 1: right: expected a column from 1 to 2, got 3"),
    "name twice": ("x.csv", b"q,q\n1,2\n", {"left": "q", "right": "2"}, "left: expected one column 'q', got 2"),
    "one of two": ("x.csv", b"q,a\n", {"left": "q"}, "left, right: expected both columns or neither, got q and None"),
    "the same": ("x.csv", b"q,a\n", {"left": "q", "right": "1"}, "right: expected another column than left, got '1'"),
    "id as text": ("x.csv", b"q,a\n1,2\n", {"left": "q", "right": "a", "id": "2"},
                   "x.csv, line 1: id: expected another column than right, got '2'"),
    "label as id": ("x.csv", b"q,a,s\n1,2,3\n", {"label": "s", "id": "s"}, "id: expected another column than label"),
    "one text": ("x.csv", b"key,a\n1,2\n", {"id": "key"},
                 "x.csv, line 1: expected two columns of texts, beside id, got 1"),
    "key as id": ("x.jsonl", b'{"left": "a", "right": "b"}', {"id": "left"},
                  r"expected the columns left and right \(or another known pair\), beside id, or the names"),
    "no label": ("x.csv", b"q,a,s\n1,2,\n", {"left": "q", "right": "a", "label": "s"},
                 "x.csv, line 2: expected a number in the column 's', got ''"),
    "infinite label": ("x.tsv", b"a\tb\tinf\n", {"label": "3"}, "expected a number in the column .3., got .inf."),
    "label with an underscore": ("x.tsv", b"a\tb\t1_000\n", {"label": "3"}, "in the column .3., got .1_000."),
    "label in other digits": ("x.tsv", "a\tb\t\uff13".encode(), {"label": "3"}, "in the column .3., got .\uff13"),
    "id twice": ("x.csv", b"left,right,id\n1,2,x\n3,4,x\n", {"id": "id"},
                 "x.csv, line 3: expected an identifier not used before, got 'x', as in line 2"),
    "no JSON": ("x.jsonl", b'{"left": "a", "right": "b"}\n{"left"\n', {}, "line 2: expected a JSON object, got inv"),
    "a list": ("x.jsonl", b"[1]\n", {}, "x.jsonl, line 1: expected a JSON object, got a list"),
    "unknown keys": ("x.jsonl", b'{"a": "b"}', {}, "expected the columns left and right .* got the columns .a."),
    "missing key": ("x.jsonl", b'{"left": "a", "right": "b"}\n{"left": "a"}', {},
                    "x.jsonl, line 2: expected the column 'right', got the columns 'left'"),
    "null as identifier": ("x.jsonl", b'{"left": "a", "right": "b", "id": null}', {"id": "id"},
                           "line 1: expected text in the column 'id', got null"),
    "null as label": ("x.jsonl", b'{"left": "a", "right": "b", "score": null}', {"label": "score"},
                      "line 1: expected a number in the column 'score', got None"),
    "NaN": ("x.jsonl", b'{"left": NaN, "right": "b"}', {}, "line 1: expected text in the column 'left', got nan"),
    "infinity": ("x.jsonl", b'{"left": "a", "right": -Infinity}', {}, "expected text in the column 'right', got -inf"),
    "no label key": ("x.jsonl", b'{"left": "a", "right": "b", "s": 1}\n{"left": "a", "right": "b"}', {"label": "s"},
                     "line 2: expected the column 's', got the columns 'left', 'right'"),
    "truncated": ("x.tsv.gz", gzip.compress(b"a\tb\n" * 999)[:-9], {}, "expected a whole compressed file, got"),
    "not compressed": ("x.tsv.bz2", b"a\tb\n", {}, "x.tsv.bz2: expected a compressed file, .*; rename a plain file"),
    "damaged": ("x.tsv.xz", b"\xfd7zXZ\0" + b"x" * 20, {}, "x.tsv.xz: expected a compressed file, .*, or a damaged"),
}  # fmt: skip


@pytest.mark.parametrize(("name", "data", "columns", "message"), FAULTS.values(), ids=FAULTS)
def test_faults_name_file_and_line(name, data, columns, message, tmp_path):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        tables.read(tmp_path / name, columns=Columns(**columns))


def test_other_refusals(tmp_path):
    with pytest.raises(FileNotFoundError, match="none.tsv"):
        tables.read(tmp_path / "none.tsv")
    with pytest.raises(ValueError, match="^format: expected one of tsv, csv, jsonl, parquet, got xml"):
        tables.read("x", format="xml")
    assert streams.listed(["x" * 100, *map(str, range(20))]).endswith(" and 9 more")


def test_parquet_without_pyarrow_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install pyarrow"):
        tables.read(tmp_path / "pairs.parquet")


def test_parquet(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "pairs.parquet"
    texts = pyarrow.array(["x", "y"]).dictionary_encode()
    parquet.write_table(pyarrow.table({"key": [7, 8], "Question": ["a", ""], "answer": texts, "s": [1.0, None]}), path)
    assert tables.read(path).pairs.left == ("a", "")
    feed(monkeypatch, gzip.compress(path.read_bytes()))
    assert tables.read("-", format="parquet", columns=Columns("3", "2", id="key")).pairs.ids == ("7", "8")
    with pytest.raises(ValueError, match="pairs.parquet, row 2: expected a number in the column 's', got None"):
        tables.read(path, columns=Columns(label="s"))
    with pytest.raises(ValueError, match="pairs.parquet: left: expected the column 'x', got the columns 'key'"):
        tables.read(path, columns=Columns("x", "key"))
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(ValueError, match="pairs.parquet: expected a Parquet file, got another or a damaged one"):
        tables.read(path)


def test_texts_with_columns(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text('{"body": "a"}\n\n{"body": "b"}\n')
    assert list(streams.texts(path, column="body")) == [(1, "a"), (3, "b")]
    with pytest.raises(ValueError, match="texts.jsonl, line 1: expected the column 'text', got the columns 'body'"):
        list(streams.texts(path, column="text"))


def test_documents_of_a_column(tmp_path):
    path = tmp_path / "texts.csv.gz"
    path.write_bytes(gzip.compress(b'key,Body\n1,"one,\ntwo"\n\n2,\n'))
    assert list(tables.columns(path, ["body"])) == [(2, ("one,\ntwo",)), (5, ("",))]
    assert list(tables.columns(path, ["2"])) == [(1, ("Body",)), (2, ("one,\ntwo",)), (5, ("",))]
    assert list(tables.columns(path, ["2", "key"])) == [(2, ("one,\ntwo", "1")), (5, ("", "2"))]
    (tmp_path / "texts.tsv").write_text("a\tb\n1\n")
    for wanted, message in (("c", "line 1: expected the column 'c', got the columns 'a', 'b'"),
                            ("3", "line 1: expected a column from 1 to 2, got 3"),
                            ("a", "line 2: expected 2 columns, as in the first line, got 1")):
        with pytest.raises(ValueError, match=f"texts.tsv, {message}"):
            list(tables.columns(tmp_path / "texts.tsv", [wanted]))


@pytest.mark.parametrize(("between", "line"), [(",", "sep=,\r\n"), (";", "sep=;\n"), ("\t", "sep=\t\n"),
                                               ("|", "sep=|;;\n")])  # fmt: skip
def test_a_first_line_of_a_spreadsheet_names_what_is_between_columns(tmp_path, between, line):
    rows = [line, "title|text\n".replace("|", between), f'"a{between} b"|c\n'.replace("|", between), "\n"]
    (tmp_path / "x.csv").write_bytes(b"\xef\xbb\xbf" + "".join(rows).encode())
    found = tables.read(tmp_path / "x.csv")
    assert found.named and (found.pairs.left, found.pairs.right) == ((f"a{between} b",), ("c",))
    assert list(tables.columns(tmp_path / "x.csv", ["text"])) == [(3, ("c",))]
    with (tmp_path / "x.csv").open("a") as file:
        file.write("d\n")
    with pytest.raises(ValueError, match="x.csv, line 5: expected 2 columns"):
        tables.read(tmp_path / "x.csv")


def test_semicolons_are_named_where_quotes_hide_them(tmp_path):
    (tmp_path / "x.csv").write_text('"title";"text"\n"a, b";"c"\n')
    with pytest.raises(ValueError, match="x.csv, line 1: expected CSV, got .*; save it with commas between columns"):
        tables.read(tmp_path / "x.csv")
    (tmp_path / "x.csv").write_text("title;text\na;c\n")
    with pytest.raises(ValueError, match="line 1 .save it with commas .*semicolons.: expected the column 'text', got"):
        list(tables.columns(tmp_path / "x.csv", ["text"]))


def test_null_is_an_empty_text(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"left": null, "right": "b", "id": 7}\n{"left": "c", "right": null, "id": 8}\n')
    found = tables.read(tmp_path / "x.jsonl").pairs
    assert (found.left, found.right) == (("", "c"), ("b", ""))
    assert list(streams.keys(tmp_path / "x.jsonl", ["left", "id"])) == [(1, ("", "7")), (2, ("c", "8"))]
    with pytest.raises(ValueError, match="x.jsonl, line 1: expected text in the column 'left', got null"):
        list(streams.keys(tmp_path / "x.jsonl", ["right", "left"]))
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"left": ["a", None], "right": [None, "d"]}), tmp_path / "x.parquet")
    found = tables.read(tmp_path / "x.parquet").pairs
    assert (found.left, found.right) == (("a", ""), ("", "d"))
    assert list(tables.columns(tmp_path / "x.parquet", ["left"])) == [(1, ("a",)), (2, ("",))]


def test_documents_of_a_column_of_parquet(tmp_path):
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"key": [7, 8], "body": ["a", ""]}), tmp_path / "texts.parquet")
    assert list(tables.columns(tmp_path / "texts.parquet", ["body", "key"])) == [(1, ("a", "7")), (2, ("", "8"))]
    with pytest.raises(ValueError, match="texts.parquet: expected the column 'c', got the columns 'k"):
        list(tables.columns(tmp_path / "texts.parquet", ["c"]))
