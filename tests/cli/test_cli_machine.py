"""What this machine lacks, and what killed programs left: one line, and nothing that stays for ever."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
import unicodedata

import numpy as np
import pytest
from command_line import refused, run

from jaxsim import Model, cli
from jaxsim.cli import output
from jaxsim.data import tables

NO_PROCESS = 2**22 + 1  # systems number fewer


@pytest.mark.parametrize(("encoding", "shown"), [
    ("utf-8", '{"text": "é \\ud800 日本"}'), ("ascii", '{"text": "\\u00e9 \\ud800 \\u65e5\\u672c"}'),
    ("latin-1", '{"text": "\\u00e9 \\ud800 \\u65e5\\u672c"}'),
])  # fmt: skip
def test_json_is_json_whatever_stdout_can_hold(monkeypatch, encoding, shown):
    stdout = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    monkeypatch.setattr(sys, "stdout", stdout)
    output.show_json({"text": "é \ud800 日本"})
    stdout.flush()
    line = stdout.buffer.getvalue().decode(encoding)
    assert json.loads(line) == {"text": "é \ud800 日本"} and line == shown + "\n"


@pytest.mark.parametrize("error", [MemoryError("Unable to allocate 7 TiB"), RuntimeError("RESOURCE_EXHAUSTED: 7 TiB")])
def test_no_memory_is_a_line(capsys, monkeypatch, error):
    def load(path):
        raise error

    monkeypatch.setattr(Model, "load", load)
    line = refused(capsys, "similarity", "--model", "m", "a", "b")
    assert line.startswith("similarity --model m a b: expected enough memory, got none (") and "7 TiB" in line


def test_another_error_is_still_a_fault_of_ours(monkeypatch):
    def load(path):
        raise RuntimeError("no such thing")

    monkeypatch.setattr(Model, "load", load)
    with pytest.raises(RuntimeError, match="no such thing"):
        cli.main(["similarity", "--model", "m", "a", "b"])


@pytest.mark.programs
def test_a_platform_that_is_not_there_is_a_line(trained):
    command = [sys.executable, "-m", "jaxsim", "similarity", "--model", trained, "a", "b"]
    environment = {**os.environ, "JAX_PLATFORMS": "nope"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 2 and not done.stdout
    assert done.stderr.startswith("jaxsim: JAX_PLATFORMS: expected platforms that are there, such as cpu, got nope (")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("suffix", ["gz", "xz", "bz2"])
def test_a_damaged_compressed_parquet_file_is_named(tmp_path, suffix):
    import bz2
    import gzip
    import lzma

    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"left": ["a"] * 50, "right": ["b"] * 50}), tmp_path / "p.parquet")
    whole = (tmp_path / "p.parquet").read_bytes()
    packed = {"gz": gzip, "xz": lzma, "bz2": bz2}[suffix].compress(whole)
    path = tmp_path / f"p.parquet.{suffix}"
    path.write_bytes(packed)
    assert len(tables.read(path).pairs) == 50
    for broken in (packed[: len(packed) // 2], packed[:20], packed[:30] + b"xxxx" + packed[34:]):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match=rf"p.parquet.{suffix}: expected a Parquet file, got another or a damaged"):
            tables.read(path)


def test_numbers_of_thousands_of_digits_are_named(tmp_path):
    path = tmp_path / "p.tsv"
    path.write_text("a\tb\n")
    digits = "9" * 5_000
    with pytest.raises(ValueError, match="p.tsv, line 1: left: expected the column '999"):
        tables.read(path, columns=tables.Columns(left=digits, right="2"))
    (tmp_path / "p.jsonl").write_text(f'{{"left": {digits}, "right": "b"}}\n')
    with pytest.raises(ValueError, match=r"p.jsonl, line 1: expected a JSON object, got invalid JSON"):
        tables.read(tmp_path / "p.jsonl")
    (tmp_path / "p.jsonl").write_text("[" * 100_000 + "\n")
    with pytest.raises(ValueError, match=r"p.jsonl, line 1: expected a JSON object, got invalid JSON"):
        tables.read(tmp_path / "p.jsonl", format="jsonl")


def test_what_killed_programs_left_goes_and_what_others_write_stays(folder, trained, capsys):
    (folder / f".v.npy.{NO_PROCESS}.part").write_bytes(b"half")
    (folder / f".v.npy.{os.getppid()}.part").write_bytes(b"half")
    (folder / f".other.npy.{NO_PROCESS}.part").write_bytes(b"half")
    run(capsys, "encode", "--model", trained, "--input", "texts.txt", "--output", "v.npy")
    assert np.load("v.npy").shape == (40, 5)
    assert {path.name for path in folder.glob(".*.part")} == {f".v.npy.{os.getppid()}.part",
                                                              f".other.npy.{NO_PROCESS}.part"}
    (folder / f".model.{NO_PROCESS}.abc_12.part").mkdir()
    (folder / f".model.{NO_PROCESS}.abc_12.part" / "config.json").write_bytes(b"half")
    older = folder / f".model.{NO_PROCESS}.abc_12.old"
    older.mkdir()
    Model.load(trained).save(folder / "model")
    assert not (folder / f".model.{NO_PROCESS}.abc_12.part").exists()
    assert older.exists(), "nothing else was whole when the saving began"
    Model.load(trained).save(folder / "model")
    assert not older.exists()


def longest(texts, kind):
    runs = [0]
    for text in texts:
        run = 0
        for char in text:
            run = run + 1 if kind(char) else 0
            runs.append(run)
    return max(runs)


@pytest.mark.parametrize("size", [1_000, 20_000])
def test_marks_in_a_row_are_sorted_thirty_at_most_at_a_time(monkeypatch, size):
    from jaxsim.text import tokens

    seen, normalize = [], unicodedata.normalize
    tokens.composed("warm" * 20)

    class Spy:
        normalize = staticmethod(lambda form, text: seen.append(text) or normalize(form, text))
        category, combining, name = unicodedata.category, unicodedata.combining, unicodedata.name

    monkeypatch.setattr(tokens, "unicodedata", Spy)
    result = tokens.words("Zalgo" + "\u0301\u0323" * size + " word")
    assert longest(seen, unicodedata.combining) == 30, "the time to sort a run is quadratic in its length"
    assert len(result) == 2 and result[1] == "word" and result[0].startswith("zalg")


@pytest.mark.parametrize("char", ["ア", "a", "1", "！", "한"])
def test_unbroken_runs_reach_the_tagger_in_parts(monkeypatch, char):
    from jaxsim.text import tokens

    seen, tagger = [], tokens._japanese_tagger()

    class Spy:
        @staticmethod
        def parse(line):
            seen.append(line)
            return tagger.parse(line)

    monkeypatch.setattr(tokens, "_japanese_tagger", lambda: Spy)
    tokens.words_ja(char * 5_000)
    assert longest(seen, char.__eq__) == 500, "the tagger's time is quadratic in the length of a run of one kind"
    assert tokens.words_ja("文書の類似度") == ["文書", "の", "類似", "度"]
    assert tokens.words_ja("文書\ud800の\0類似度") == ["文書", "の", "類似", "度"]


def test_a_warning_is_a_line():
    from jaxsim.cli import program

    shown = program._warning(UserWarning("checkpoint: a is damaged;\n going on"), UserWarning, "checkpoints.py", 240)
    assert shown == "jaxsim: checkpoint: a is damaged; going on\n"
