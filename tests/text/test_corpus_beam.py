"""The counting pass by Apache Beam: the files of the local pass, bit for bit."""

from __future__ import annotations

import bz2
import gzip
import importlib.util

import pytest

from jaxsim.data import docstrings, streams
from jaxsim.text import corpus, corpus_beam, corpus_build
from jaxsim.text.corpus_words import texts_of

HERE = importlib.util.find_spec("apache_beam") is not None
needs_beam = pytest.mark.skipif(not HERE, reason="apache-beam is not installed (pip install 'jaxsim-text[beam]')")
SETTINGS = {"shard_docs": 130, "drop_top": 2, "max_terms": 900, "min_df": 2, "languages": ("en", "es")}


@pytest.fixture
def files(tmp_path):
    """Pairs in three files of different lengths, one of them with words beyond ASCII and an empty text, and none."""
    pairs = docstrings.load().take(range(400))
    texts = [tuple(" ".join(side.split()) for side in pair) for pair in zip(pairs.left, pairs.right, strict=True)]
    texts[7], texts[300] = ("Élan vital ÉLAN", ""), ("\x0c zero\0byte", "naïve İstanbul")
    paths = []
    for name, part in (("a", texts[:50]), ("b", []), ("c", texts[50:310]), ("d", texts[310:])):
        paths.append(tmp_path / name)
        paths[-1].write_text("".join(f"{left}\t{right}\n" for left, right in part), "utf-8")
    return paths


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@needs_beam
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("workers", [1, pytest.param(2, marks=pytest.mark.programs)])
def test_the_folder_is_that_of_the_local_pass(workers, files, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_build, "_BATCH", 60)
    monkeypatch.setattr(corpus_beam, "_BATCH", 60)
    documents = (document for path in files for document in corpus_beam.lines(path))
    corpus_build.build(tmp_path / "local", documents, **SETTINGS)
    made = corpus_beam.build(tmp_path / "beam", files, workers=workers, **SETTINGS)
    assert contents(tmp_path / "beam") == contents(tmp_path / "local")
    assert [len(side.shards) for side in made.sides] == [4, 4]
    # Either opens what the other has finished, and neither takes it for another.
    documents = (document for path in files for document in corpus_beam.lines(path))
    assert corpus_build.build(tmp_path / "beam", documents, **SETTINGS).vocabulary.terms == made.vocabulary.terms
    with pytest.raises(ValueError, match="a corpus of the same settings and texts, got max_terms 900 there"):
        corpus_beam.build(tmp_path / "beam", files, **SETTINGS | {"max_terms": 5})
    assert corpus_beam.build(tmp_path / "local", files, **SETTINGS).vocabulary.terms == made.vocabulary.terms
    with pytest.raises(ValueError, match="got one of 400 documents, not 310; build it in a new folder"):
        corpus_beam.build(tmp_path / "local", files[:3], **SETTINGS)
    assert contents(tmp_path / "local") == contents(tmp_path / "beam")


@needs_beam
@pytest.mark.filterwarnings("ignore")
def test_what_cannot_be_counted_is_refused(files, tmp_path):
    for workers in (1, 2):
        with pytest.raises(ValueError, match="^max_words: expected at least 1,360 .distinct words., got 3$"):
            corpus_beam.build(tmp_path / "one", files[:1], max_words=3, workers=workers)
    with pytest.raises(OSError, match="nothing"):
        corpus_beam.build(tmp_path / "one", [files[0], str(tmp_path / "nothing")])
    assert not (tmp_path / "one" / corpus.PASSING).exists() and not (tmp_path / "one" / corpus.READING).exists()
    (tmp_path / "one" / corpus.PASSING).mkdir(parents=True, exist_ok=True)  # of one that was killed
    (tmp_path / "one" / corpus.READING).mkdir()  # for its lock
    with pytest.raises(ValueError, match=r"expected a finished corpus .*, got an unfinished one \(build it again\)"):
        corpus.read(tmp_path / "one")
    with pytest.raises(ValueError, match="files: expected at least one document, got none"):
        corpus_beam.build(tmp_path / "two", files[1:2])
    with pytest.raises(ValueError, match="files: expected a list of paths, got one path"):
        corpus_beam.build(tmp_path / "three", str(files[0]))
    assert not (tmp_path / "one" / "corpus.json").exists()


def counted(path, documents, refused):
    """The counting pass over one file whose documents were numbered as these."""
    file = path, 3, corpus_beam._coded(texts_of(documents))
    return list(corpus_beam._count(file, corpus_beam.lines, ("en",), 1, 2, refused))


def test_other_texts_than_those_that_were_numbered_are_not_counted_to_the_end(tmp_path):
    (tmp_path / "a").write_text("one\ntwo\nthree\n")
    path, refused = str(tmp_path / "a"), str(tmp_path / "refused.json")
    assert [shard for shard, _ in counted(path, [("one",), ("two",), ("three",)], refused)] == [1, 2]
    for others in ([("one",), ("two",), ("drei",)], [("one",), ("two",)], [("one",)] * 4, []):
        with pytest.raises(ValueError, match=f"a: expected the {len(others)} documents that were numbered before, got"):
            counted(path, others, refused)
        assert "numbered before" in (tmp_path / "refused.json").read_text()


@needs_beam
def test_a_file_that_changes_between_the_passes_is_refused_by_its_name(files, tmp_path, monkeypatch):
    number = corpus_beam._number

    def changing(numbered, **settings):
        result = number(numbered, **settings)
        if numbered[1] == str(files[2]):
            files[2].write_bytes(files[2].read_bytes().replace(b"the", b"teh"))
        return result

    monkeypatch.setattr(corpus_beam, "_number", changing)
    with pytest.raises(ValueError, match="c: expected the 260 documents that were numbered before, got 260, of other"):
        corpus_beam.build(tmp_path / "built", files, **SETTINGS)
    assert not (tmp_path / "built" / "corpus.json").exists()


def test_two_builds_into_one_folder_refuse_one_another(files, tmp_path, monkeypatch):
    monkeypatch.setattr(corpus_beam, "_beam", lambda: None)
    folder, seen = tmp_path / "built", []

    def documents():
        for number, document in enumerate(document for path in files for document in corpus_beam.lines(path)):
            if number == 300:
                with pytest.raises(ValueError, match="expected no other build into this folder, got one that is runn"):
                    corpus_beam.build(folder, files, runner="none", **SETTINGS)
                seen.append(number)
            yield document

    corpus_build.build(folder, documents(), **SETTINGS)
    assert seen and not (folder / corpus.READING).exists()


def test_what_a_running_build_holds_is_left_alone(files, tmp_path):
    folder, documents = tmp_path / "built", list(corpus_beam.lines(files[0]))
    corpus_build.build(folder, documents, **SETTINGS)
    passing = folder / corpus.PASSING
    passing.mkdir()
    with corpus_build._alone(folder):  # as a build by Beam that compares texts
        corpus_build.build(folder, documents, **SETTINGS)
        assert passing.is_dir() and (folder / corpus.READING).is_dir()
    assert not (folder / corpus.READING).exists()
    corpus_build.build(folder, documents, **SETTINGS)
    assert not passing.exists()


@needs_beam
def test_a_document_of_another_number_of_texts_is_named_with_its_file(tmp_path):
    (tmp_path / "a").write_text("a b\tc\n\nd\te\n")
    with pytest.raises(ValueError, match=r"2 texts in every document .*, got \('',\) \(document 2 of .*a\)$"):
        corpus_beam.build(tmp_path / "built", [str(tmp_path / "a")], min_df=1)


@pytest.mark.parametrize("data", [
    b"\xef\xbb\xbfa\tb\r\n\r\nc\td\x0be\xe2\x80\xa8\n\n", b"a\tb\rc\r\rd",
    b"\xef\xbb\xbf\xef\xbb\xbfa\n\xef\xbb\xbfb\rc", b"\n\rb", b"",
])  # fmt: skip
def test_lines_are_those_of_every_other_file(data, tmp_path):
    (tmp_path / "a").write_bytes(data)
    expected = [tuple(text.split("\t")) for _, text in streams.texts(tmp_path / "a")]
    assert list(corpus_beam.lines(str(tmp_path / "a"))) == expected


def test_other_encodings_are_refused(tmp_path):
    (tmp_path / "a").write_bytes(b"a\nb\xffc\n")
    with pytest.raises(ValueError, match="a, line 2: expected UTF-8 text, got the byte 0xff .*; save it as UTF-8"):
        list(corpus_beam.lines(str(tmp_path / "a")))


@pytest.mark.parametrize(("data", "message"), [
    ("left\tright\n".encode("utf-16-le"), "zero bytes .as in UTF-16; save it as UTF-8"),
    (b"PAR1\x15\x04", "a Parquet file; write its texts as lines first"),
    (gzip.compress(b"a\tb\n"), r"compressed data; unpack it first \(it is a .gz\)"),
    (bz2.compress(b"a\tb\n"), r"compressed data; unpack it first \(it is a .bz2\)"),
    (b"\x28\xb5\x2f\xfd\x04", "data of zstd, which is not read; unpack it first$"),
])  # fmt: skip
def test_files_of_other_kinds_are_refused(data, message, tmp_path):
    (tmp_path / "a").write_bytes(data)
    with pytest.raises(ValueError, match=f"a, line 1: expected UTF-8 text, got {message}"):
        list(corpus_beam.lines(str(tmp_path / "a")))


@pytest.mark.skipif(HERE, reason="apache-beam is installed")
def test_without_beam_the_way_to_get_it_is_said(tmp_path):
    with pytest.raises(ImportError, match=r"expected the package apache-beam, got none; .*jaxsim-text\[beam\]"):
        corpus_beam.build(tmp_path, [])
