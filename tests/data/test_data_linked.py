"""The loaders of CACM and of MDN's English pages with their links, on small made-up files in the same formats."""

from __future__ import annotations

import gzip
import json
import lzma

import pytest

from jaxsim import data
from jaxsim.data import cacm, mdn_links

ARTICLES = """.I 1
.T
One title
 of two lines
.W
.B
CACM December, 1958
.A
Nobody, N.
.X
2\t5\t1
1\t5\t1
3\t6\t1
4\t5\t1
.I 2
.T
Two
.W
An abstract
.B of a programming language.
.K
keyword
.X
1\t5\t2
1\t5\t2
.I 3
.T
...
.X
.I 4
.T
Four
.X
3\t5\t4
.
"""


@pytest.fixture
def written(tmp_path):
    """A data folder, and a function that writes the collection into it."""
    (tmp_path / "classic_ir" / "cacm").mkdir(parents=True)

    def write(body):
        with gzip.open(tmp_path / "classic_ir" / "cacm" / "cacm.all.gz", "wt", encoding="utf-8") as file:
            file.write(body)
        return cacm.load(root=tmp_path, verify=False)

    return write


def test_titles_and_abstracts_are_texts_and_citations_links_both_ways(written):
    result = written(ARTICLES)
    assert result.ids == ("1", "2", "4") and result.titles == ("One title\n of two lines", "Two", "Four")
    assert result.texts == ("One title\n of two lines", "Two\nAn abstract\n.B of a programming language.", "Four")
    assert result.links.tolist() == [[0, 1], [0, 2], [1, 0], [2, 0]]


def test_self_links_links_twice_and_articles_without_words_are_left_out_and_counted(written):
    assert written(ARTICLES).counts == {"articles": 3, "without_text": 1, "without_abstract": 2, "links_read": 6,
                                        "links_without_text": 1, "self_links": 1, "links": 4}


def test_the_digest_is_of_texts_and_links(written):
    changed = [ARTICLES, ARTICLES.replace("4\t5\t1", "4\t4\t1"), ARTICLES.replace("Four", "Five"),
               ARTICLES.replace("keyword", "other")]
    first, *others, same = (written(body).sha256 for body in changed)
    assert len({first, *others}) == 3 and same == first and len(first) == 64


@pytest.mark.parametrize(("old", "new", "message"), [
    ("2\t5\t1", "9\t5\t1", r"cacm\.all\.gz, line 11: expected an article of the file, got 9"),
    ("2\t5\t1", "2\t5\t2", r"line 11: expected an article, a kind and 1, got '2\\t5\\t2'"),
    ("2\t5\t1", "2\t5", "line 11: expected an article, a kind and 1"),
    (".I 2", ".I 1", "line 15: expected every article once, got 1 twice"),
    (".I 2", ".I two", "line 15: expected the number of an article, got 'two'"),
    (".I 1\n.T\n", ".I 1\n", "line 2: expected a field of an article, got 'One title'"),
    (".I 1\n", "", r"line 1: expected an article's first line, \.I and a number, got '\.T'"),
])
def test_what_is_wrong_is_named_with_its_line(written, old, new, message):
    with pytest.raises(ValueError, match=message):
        written(ARTICLES.replace(old, new, 1))


def test_another_file_or_none_is_named(written, tmp_path):
    with pytest.raises(data.MissingCorpus, match="expected the corpus 'classic_ir'"):
        cacm.load(root=tmp_path)
    written(ARTICLES)
    with pytest.raises(ValueError, match=r"cacm\.all\.gz: expected SHA-256 33e32fc4"):
        cacm.load(root=tmp_path)


def test_english_pages_of_mdn_with_their_links(tmp_path):
    (tmp_path / "mdn").mkdir()

    def write(name, lines):
        with lzma.open(tmp_path / "mdn" / name, "wt", encoding="utf-8") as file:
            file.write("".join(f"{line}\n" for line in lines))
        return tmp_path

    write("en.jsonl.xz", [json.dumps({"id": key, "text": body}) for key, body in
                          {"web/a_page": "Page a", "b": "Page b {{leak}}", "c": "`code`"}.items()])
    write("links.tsv.xz", ["b\tweb/a_page\tmd", "b\tb\tmd", "b\tweb/a_page\tmacro", "b\tc\tmd"])
    result = mdn_links.english(root=tmp_path, verify=False)
    assert result.ids == ("mdn/web/a_page", "mdn/b") and result.titles == ("a page", "b")
    assert "leak" not in result.texts[1] and result.links.tolist() == [[1, 0]]
    assert result.counts == {"articles": 2, "without_text": 1, "links_read": 4, "self_links": 1, "links": 1}
    write("links.tsv.xz", ["b\tz\tmd"])
    with pytest.raises(ValueError, match=r"links\.tsv\.xz: expected ids of en\.jsonl\.xz, got \['mdn/z'\]"):
        mdn_links.english(root=tmp_path, verify=False)
