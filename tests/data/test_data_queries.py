"""The loaders of NFCorpus and of MDN's links across languages, on small made-up files in the same formats."""

from __future__ import annotations

import gzip
import json
import lzma

import numpy as np
import pytest

from jaxsim import data
from jaxsim.data import mdn_links, nfcorpus


def write(path, lines):
    """Lines, compressed as the name says."""
    path.parent.mkdir(exist_ok=True)
    with (lzma if path.suffix == ".xz" else gzip).open(path, "wt", encoding="utf-8") as file:
        file.write("".join(f"{line}\n" for line in lines))


@pytest.fixture
def graded(tmp_path):
    """NFCorpus with three documents; a grade is of a document without text, and a query has no other."""
    folder = tmp_path / "nfcorpus"
    write(folder / "dev.docs.tsv.xz", ["d1\tone text", "d2\ttwo"])
    write(folder / "test.docs.tsv.xz", ["d2\ttwo", "d3\tthree"])
    for split, queries, grades in (
        ("train", ["a\tA title", "b\tB"], ["a\t0\td1\t3", "a\t0\td9\t2", "b\t0\td9\t1"]),
        ("dev", ["c\tC"], ["c\t0\td2\t1"]), ("test", ["e\tE"], ["e\t0\td3\t2", "e\t0\td1\t1"]),
    ):
        write(folder / f"{split}.titles.queries.gz", queries)
        write(folder / f"{split}.3-2-1.qrel.gz", grades)
    return tmp_path


def test_nfcorpus_keeps_what_has_text_and_counts_the_rest(graded):
    result = nfcorpus.load(root=graded, verify=False)
    assert result.documents == {"d1": "one text", "d2": "two", "d3": "three"}
    assert result.queries == {"train": {"a": "A title"}, "dev": {"c": "C"}, "test": {"e": "E"}}
    assert result.qrels == {"train": {"a": {"d1": 3}}, "dev": {"c": {"d2": 1}}, "test": {"e": {"d3": 2, "d1": 1}}}
    assert result.counts == {"documents": 3, "grades": 6, "grades_without_text": 2, "queries_without_grade": 1,
                             "train": 1, "dev": 1, "test": 1}
    write(graded / "nfcorpus" / "dev.3-2-1.qrel.gz", ["c\t0\td2\t2"])
    again = nfcorpus.load(root=graded, verify=False).sha256
    assert again != result.sha256 and len(again) == 64


@pytest.mark.parametrize(("file", "lines", "message"), [
    ("test.docs.tsv.xz", ["d2\tother"], r"test\.docs\.tsv\.xz, line 1: expected the text of 'd2' read before"),
    ("dev.docs.tsv.xz", ["d1 no tab"], r"dev\.docs\.tsv\.xz, line 1: expected 2 fields with tabs between, got 1"),
    ("dev.titles.queries.gz", ["c\tC", "c\tC"], r"line 2: expected an identifier not used before, got 'c'"),
    ("dev.3-2-1.qrel.gz", ["x\t0\td1\t1"], r"line 1: expected a query of dev\.titles\.queries\.gz, got 'x'"),
    ("dev.3-2-1.qrel.gz", ["c\t0\td1\t4"], r"line 1: expected a grade of 1, 2 or 3, got '4'"),
])
def test_nfcorpus_names_what_is_wrong_with_its_line(graded, file, lines, message):
    write(graded / "nfcorpus" / file, lines)
    with pytest.raises(ValueError, match=message):
        nfcorpus.load(root=graded, verify=False)


def test_a_changed_or_missing_file_is_named(graded):
    with pytest.raises(ValueError, match="expected SHA-256"):
        nfcorpus.load(root=graded)
    (graded / "nfcorpus" / "train.3-2-1.qrel.gz").unlink()
    with pytest.raises(data.MissingCorpus, match="expected the corpus 'nfcorpus'"):
        nfcorpus.load(root=graded, verify=False)


@pytest.fixture
def pages(tmp_path):
    """Five English pages, one of which is code alone, and three translations, one of them code alone."""
    def records(**texts):
        return [json.dumps({"id": key, "text": body}) for key, body in texts.items()]

    write(tmp_path / "mdn" / "en.jsonl.xz", records(
        a="Page a", b="Page b {{leak}}", c="Page c", d="`code`", e="Page e"))
    write(tmp_path / "mdn" / "es.jsonl.xz", records(c="Página c", b="Página b", a="`nada`"))
    write(tmp_path / "mdn" / "links.tsv.xz", ["b\tc\tmd", "b\ta\tmacro", "b\tb\tmd", "c\td\tmd", "b\tc\tmacro",
                                              "e\ta\tmd", "c\ta\tmd"])
    return tmp_path


def test_links_of_a_mate_are_the_translation_s(pages):
    result = mdn_links.load("es", root=pages, verify=False)
    assert result.ids == ("mdn/a", "mdn/b", "mdn/c", "mdn/e") and "leak" not in result.texts[1]
    assert result.mates.tolist() == [2, 1] and [one.strip() for one in result.translations] == ["Página c", "Página b"]
    assert result.links.tolist() == [[1, 0], [1, 2], [2, 0], [3, 0]]
    assert sorted(result.across().tolist()) == [[0, 0], [1, 0], [1, 2]]
    assert not np.any(result.across()[:, 1] == result.mates[result.across()[:, 0]])
    assert result.counts == {"pages": 5, "translations": 3, "links_read": 7, "pages_used": 4, "translations_used": 2,
                             "links": 4}


def test_a_limit_takes_the_translated_pages_with_most_links(pages):
    result = mdn_links.load("es", limit=2, root=pages, verify=False)
    assert result.ids == ("mdn/b", "mdn/c") and result.links.tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="limit"):
        mdn_links.load("es", limit=0, root=pages, verify=False)


def test_pages_that_are_not_there_are_named(pages):
    with pytest.raises(ValueError, match="language: expected one of es, ja, fr, de, got 'it'"):
        mdn_links.load("it", root=pages, verify=False)
    write(pages / "mdn" / "links.tsv.xz", ["a\tz\tmd"])
    with pytest.raises(ValueError, match=r"links\.tsv\.xz: expected ids of en\.jsonl\.xz, got \['mdn/z'\]"):
        mdn_links.load("es", root=pages, verify=False)
    write(pages / "mdn" / "es.jsonl.xz", ['{"id": "a", "text": "x"}', '{"id": "a", "text": "y"}'])
    with pytest.raises(ValueError, match="line 2: expected an id not used before, got 'a'"):
        mdn_links.load("es", root=pages, verify=False)
    write(pages / "mdn" / "es.jsonl.xz", ['{"id": "z", "text": "x"}'])
    with pytest.raises(ValueError, match=r"line 1: expected an id of en\.jsonl\.xz, got 'z'"):
        mdn_links.load("es", root=pages, verify=False)
    with pytest.raises(data.MissingCorpus, match="expected the corpus 'mdn'"):
        mdn_links.load("fr", root=pages, verify=False)
