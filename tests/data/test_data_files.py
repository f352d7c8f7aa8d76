from __future__ import annotations

import bz2
import gzip
import hashlib
import io
import json
import lzma
import os
import tarfile

import pytest

from jaxsim import data
from jaxsim.data import catalogue, files
from jaxsim.data.pairs import concatenate, make

LINES = '{"id": "a", "left": "One", "right": "Uno"}\n\n{"id": 2, "left": "Two", "right": ""}\n'


def test_root_is_the_argument_or_the_environment(tmp_path, monkeypatch):
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    with pytest.raises(data.MissingCorpus, match="JAXSIM_DATA: expected the folder of the corpora"):
        data.root()
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path))
    assert data.root() == tmp_path
    assert data.root(tmp_path / ".") == tmp_path
    with pytest.raises(FileNotFoundError, match="root: expected an existing folder"):
        data.root(tmp_path / "none")
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path / "none"))
    with pytest.raises(data.MissingCorpus, match="JAXSIM_DATA: expected an existing folder"):
        data.root()


WRITERS = [("", open), (".gz", gzip.open), (".xz", lzma.open), (".GZ", gzip.open), (".XZ", lzma.open),
           (".Bz2", bz2.open)]


@pytest.mark.parametrize(("suffix", "write"), WRITERS)
def test_jsonl_plain_and_compressed(tmp_path, suffix, write):
    path = tmp_path / f"pairs.jsonl{suffix}"
    with write(path, "wb") as file:
        file.write(LINES.encode())
    records = files.read_jsonl(path, ("left", "right"))
    assert [(line, record["left"], record["right"]) for line, record in records] == [(1, "One", "Uno"), (3, "Two", "")]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b'{"left": "a", "right": "b"}\n{"left": ', r"pairs\.jsonl, line 2: expected a JSON object, got invalid JSON"),
        (b'["left"]\n', r"line 1: expected a JSON object, got a list"),
        (b'{"left": "a"}\n', r"line 1: expected the column 'right', got the columns 'left'"),
        (b'{"left": "a", "right": null}\n', r"line 1: expected text in the column 'right', got null"),
        (b'{"left": true, "right": "b"}\n', r"line 1: expected text in the column 'left', got bool"),
        (b'\n{"left": "\xff", "right": "b"}\n', r"line 2: expected UTF-8 text, got the byte 0xff at byte 11"),
        (b'{"left": ' + b"[" * 100_000, r"line 1: expected a JSON object, got invalid JSON"),
        (b'{"left": ' + b"9" * 5_000 + b"}", r"line 1: expected a JSON object, got invalid JSON"),
    ],
)
def test_jsonl_errors_name_file_and_line(tmp_path, content, message):
    path = tmp_path / "pairs.jsonl"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(files.read_jsonl(path, ("left", "right")))


@pytest.mark.parametrize("compress", [lzma.compress, gzip.compress, bz2.compress])
def test_truncated_and_foreign_files(tmp_path, compress, rng):
    body = b"".join(json.dumps({"left": str(n), "right": "b"}).encode() + b"\n" for n in rng.integers(0, 10**9, 20_000))
    suffix = {lzma.compress: ".xz", gzip.compress: ".gz", bz2.compress: ".bz2"}[compress]
    path = tmp_path / f"pairs.jsonl{suffix}"
    whole = compress(body)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=rf"pairs\.jsonl\{suffix}, after line \d+: expected a whole compressed file"):
        list(files.read_jsonl(path, ("left", "right")))
    path.write_bytes(b"this was never compressed")
    with pytest.raises(ValueError, match=r"expected a compressed file, as its suffix says, got none"):
        list(files.read_jsonl(path, ("left", "right")))
    path.write_bytes(b"")
    with pytest.raises(ValueError, match=rf"expected a whole \{suffix} file, got one of no bytes"):
        list(files.read_jsonl(path, ("left", "right")))


def _archive(path, members, mode="w:xz"):
    with tarfile.open(path, mode) as archive:
        for name, content in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))


def test_archives_are_read_in_one_pass(tmp_path):
    path = tmp_path / "some.tar.xz"
    _archive(path, {"en/a.txt": b"one\r\ntwo", "en/skip": b"\xff", "en/b.txt": "é".encode("latin-1")})
    assert files.read_archive(path, keep=lambda name: name == "en/a.txt") == {"en/a.txt": "one\ntwo"}
    assert files.read_archive(path, keep=lambda name: name == "en/b.txt", encoding="latin-1") == {"en/b.txt": "é"}
    with pytest.raises(ValueError, match=r"some\.tar\.xz: en/b\.txt, line 1: expected utf-8 text"):
        files.read_archive(path, keep=lambda name: name.endswith(".txt"))


def test_a_truncated_archive_is_an_error(tmp_path, rng):
    path = tmp_path / "some.tar.xz"
    _archive(path, {f"en/{n}.txt": rng.bytes(5000) for n in range(20)})
    whole = path.read_bytes()
    for cut in (len(whole) // 2, 10, 0):
        path.write_bytes(whole[:cut])
        with pytest.raises(ValueError, match=r"some\.tar\.xz: expected a whole tar archive"):
            files.read_archive(path, keep=lambda name: True, encoding="latin-1")


def test_catalogue_knows_every_loader_and_says_what_is_missing(tmp_path, monkeypatch):
    loaded = {"docstrings", "doc_pairs", "mdn", "europarl_en_it", "europarl_en_fr_tagged", "europarl_release",
              "nfcorpus", "reuters21578", "wikispeedia", "word_frequency", "us_patent_phrases",
              "crowdflower_search", "httpd_html", "classic_ir"}
    coming = {"dictionary_en_es", "europarl_en_es", "gre_antonyms", "pairs", "sat_questions", "sentence_completion",
              "thesauri", "word_similarity", "wordnet"}
    assert set(catalogue.CORPORA) == loaded | coming
    for corpus in catalogue.CORPORA.values():
        assert corpus.title and corpus.source and corpus.licence
        assert all(digest is None or len(digest) == 64 for digest in corpus.files.values())
        assert corpus.addresses.keys() <= corpus.files.keys()
        assert all(source.megabytes for source in corpus.sources) and (corpus.megabytes or not corpus.files)
        # What has no address says how it was made, and what has no checksum can at least be fetched.
        assert all(file in corpus.addresses or (corpus.packed and digest) for file, digest in corpus.files.items())
    with pytest.raises(ValueError, match="name: expected one of classic_ir, crowdflower_search, .*, got 'wikipedia'"):
        catalogue.get("wikipedia")
    with pytest.raises(data.MissingCorpus, match=r"en\.jsonl\.xz: expected the corpus 'mdn' .*github\.com/mdn/content"):
        catalogue.find("mdn", "en.jsonl.xz", root=tmp_path)
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    with pytest.raises(data.MissingCorpus, match="JAXSIM_DATA: .*needed: the corpus 'mdn'"):
        catalogue.find("mdn", "en.jsonl.xz")


def test_checksums_are_compared(tmp_path):
    (tmp_path / "mdn").mkdir()
    path = tmp_path / "mdn" / "en.jsonl.xz"
    path.write_bytes(b"changed")
    got = hashlib.sha256(b"changed").hexdigest()
    with pytest.raises(
        ValueError, match=rf"en\.jsonl\.xz: expected SHA-256 0bc0fcb6\w+, got {got} \(damaged or changed"
    ):
        catalogue.find("mdn", "en.jsonl.xz", root=tmp_path)
    assert catalogue.find("mdn", "en.jsonl.xz", root=tmp_path, verify=False) == path


def test_pairs_of_a_file_whose_name_is_not_utf_8_have_a_digest():
    one, two = (make(os.fsdecode(name), ["a"], ["x"], ["u"], languages=("en", "es")) for name in (b"p\xff", b"p\xfe"))
    assert one.sha256 != two.sha256 == two.take([0]).sha256


def test_pairs_digest_take_and_concatenate():
    one = make("one", ["a", "b"], ["x", "y"], ["u", "v"], languages=("en", "es"), differs="toy")
    assert one.sha256 == make("one", ["a", "b"], ["x", "y"], ["u", "v"], languages=("en", "es")).sha256
    others = [
        make("one", ["a", "b"], ["xy", ""], ["u", "v"], languages=("en", "es")),
        make("one", ["a", "b"], ["x", "y"], ["u", "v"], languages=("en", "fr")),
        make("one", ["a", "c"], ["x", "y"], ["u", "v"], languages=("en", "es")),
    ]
    assert len({one.sha256, *(other.sha256 for other in others)}) == 4
    taken = one.take([False, True])
    assert (taken.ids, taken.left, taken.right, len(taken)) == (("b",), ("y",), ("v",), 1)
    assert taken.counts == {"pairs": 1, "pairs_by_source": {"one": 1}} and taken.sha256 != one.sha256
    assert one.take([]).ids == () and one.take([1, 0]).ids == ("b", "a")
    both = concatenate("both", [taken, make("two", ["c"], [""], ["w"], languages=("en", "es"), differs="toy")])
    assert both.sources == ("one", "two") and both.differs == "toy"
    assert both.counts["parts"]["one"]["sha256"] == taken.sha256
    assert data.tokenize(both) == ([["y"], []], [["v"], ["w"]])


def test_pairs_refuse_what_does_not_fit():
    one = make("one", ["a"], ["x"], ["u"], languages=("en", "es"))
    with pytest.raises(ValueError, match="right: expected 1 entries, one an id, got 2"):
        make("one", ["a"], ["x"], ["u", "v"], languages=("en", "es"))
    with pytest.raises(ValueError, match=r"ids: expected unique identifiers, got \['a'\] more than once"):
        make("one", ["a", "a"], ["x", "y"], ["u", "v"], languages=("en", "es"))
    with pytest.raises(ValueError, match="left: expected strings, got a float"):
        make("one", ["a"], [float("nan")], ["u"], languages=("en", "es"))
    with pytest.raises(ValueError, match=r"rows: expected row numbers in \[0, 1\), got \[-1\]"):
        one.take([-1])
    with pytest.raises(ValueError, match=r"rows: expected row numbers in \[0, 1\), got \[1\]"):
        one.take([0, 1])
    for rows, facts in (([0.7], r"float64, \[0.7\]"), (["0"], r"<U1, \['0'\]"), ([None], r"object, \[None\]")):
        with pytest.raises(ValueError, match=f"rows: expected integers or booleans, got {facts}"):
            one.take(rows)
    with pytest.raises(ValueError, match="rows: expected 1 booleans"):
        one.take([True, False])
    with pytest.raises(ValueError, match="parts: expected the same two languages"):
        concatenate("both", [one, make("two", ["b"], ["x"], ["u"], languages=("en", "fr"))])
    with pytest.raises(ValueError, match="parts: expected at least one corpus"):
        concatenate("none", [])


@pytest.mark.parametrize("languages", ["en", ("en",), ("en", "es", "fr"), ("en", None), ("en", ""), None, {"en", "es"}])
def test_languages_are_two_codes(languages):
    with pytest.raises(ValueError, match=r"^languages: expected two language codes, such as \('en', 'es'\), got "):
        make("one", ["a"], ["x"], ["u"], languages=languages)
    assert make("one", ["a"], ["x"], ["u"], languages=["en", "es"]).languages == ("en", "es")
