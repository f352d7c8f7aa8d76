"""Links between documents, and the loader of Wikispeedia, on small made-up files in the same format."""

from __future__ import annotations

import gzip
import io
import tarfile

import numpy as np
import pytest

from jaxsim import data
from jaxsim.data import links, wikispeedia

TEXTS = {
    "A_b": "   #copyright\n\nA b\n\n2007 Schools Wikipedia Selection. Related subjects: Leak,\nCountries\n\n   Text.\n",
    "%C3%85land": "#copyright\n\nÅland\n\nIslands. Related subjects stay here.\n",
    "C": "#copyright\n\n2007 Schools Wikipedia Selection. Related subjects: Leak\n",
}


@pytest.fixture
def corpus(tmp_path):
    """A data folder with three articles, of which one has no words of its own, and one listed without a text."""
    folder = tmp_path / "wikispeedia"
    folder.mkdir()

    def write(file, lines):
        with gzip.open(folder / file, "wt", encoding="utf-8") as stream:
            stream.write("# a comment\n\n" + "".join(f"{line}\n" for line in lines))

    def archive(texts):
        with tarfile.open(folder / "plaintext_articles.tar.xz", "w:xz") as packed:
            for name, body in texts.items():
                info = tarfile.TarInfo(f"plaintext_articles/{name}.txt")
                info.size = len(body.encode())
                packed.addfile(info, io.BytesIO(body.encode()))

    archive(TEXTS)
    write("articles.tsv.gz", ["A_b", "%C3%85land", "C", "D"])
    write("links.tsv.gz", ["%C3%85land\tA_b", "A_b\tA_b", "A_b\t%C3%85land", "%C3%85land\tA_b", "A_b\tC", "D\tA_b"])
    write("paths_finished_articles.tsv.gz", ["A_b;%C3%85land;A_b;%C3%85land", "A_b;C"])
    return tmp_path, write, archive


def test_articles_lose_what_gives_links_and_subjects_away(corpus):
    result = wikispeedia.load(root=corpus[0], verify=False)
    assert result.ids == ("A_b", "%C3%85land") and result.titles == ("A b", "Åland")
    assert result.texts[0].split() == ["A", "b", "Text."]
    assert result.texts[1].split() == ["Åland", "Islands.", "Related", "subjects", "stay", "here."]


def test_self_links_links_twice_and_articles_without_text_are_left_out_and_counted(corpus):
    result = wikispeedia.load(root=corpus[0], verify=False)
    assert result.links.tolist() == [[0, 1], [1, 0]]
    assert result.counts == {"articles": 2, "without_text": 2, "links_read": 6, "links_without_text": 2,
                             "self_links": 1, "links_twice": 1, "links": 2}
    assert wikispeedia.clicks(result, root=corpus[0], verify=False).tolist() == [[0, 1, 2], [1, 0, 1]]


def test_the_digest_is_of_texts_and_links(corpus):
    root, write, archive = corpus
    first = wikispeedia.load(root=root, verify=False).sha256
    assert wikispeedia.load(root=root, verify=False).sha256 == first and len(first) == 64
    write("links.tsv.gz", ["%C3%85land\tA_b"])
    second = wikispeedia.load(root=root, verify=False).sha256
    archive({**TEXTS, "A_b": "Other."})
    assert len({first, second, wikispeedia.load(root=root, verify=False).sha256}) == 3


def test_what_is_wrong_is_named_with_its_line(corpus):
    root, write, archive = corpus
    write("paths_finished_articles.tsv.gz", ["A_b;A_b"])
    articles = wikispeedia.load(root=root, verify=False)
    with pytest.raises(ValueError, match="line 3: expected clicks to another article, got 'A_b'"):
        wikispeedia.clicks(articles, root=root, verify=False)
    write("links.tsv.gz", ["A_b\tNowhere"])
    with pytest.raises(ValueError, match=r"links\.tsv\.gz, line 3: expected articles of articles\.tsv\.gz, got 'Now"):
        wikispeedia.load(root=root, verify=False)
    write("links.tsv.gz", ["A_b"])
    with pytest.raises(ValueError, match="line 3: expected 2 fields with tabs between, got 1"):
        wikispeedia.load(root=root, verify=False)
    archive({**TEXTS, "E": "Text."})
    with pytest.raises(ValueError, match=r"plaintext_articles\.tar\.xz: expected texts of articles .* got \['E'\]"):
        wikispeedia.load(root=root, verify=False)
    write("articles.tsv.gz", ["A_b", "A_b"])
    with pytest.raises(ValueError, match=r"articles\.tsv\.gz: expected every article once, got one twice"):
        wikispeedia.load(root=root, verify=False)
    with pytest.raises(ValueError, match="expected SHA-256 7fc8b38d"):
        wikispeedia.load(root=root)
    with pytest.raises(data.MissingCorpus, match="expected the corpus 'wikispeedia'"):
        wikispeedia.load(root=root.parent)


def test_links_are_checked_once():
    assert links.checked([[2, 0], [0, 1], [1, 1], [0, 1]], 3).tolist() == [[0, 1], [2, 0]]
    assert links.checked([], 3).shape == (0, 2)
    for wrong, message in (([[0, 3]], r"rows in \[0, 3\), got \[3\]"), ([[-1, 0]], r"got \[-1\]"),
                           ([[0, 1, 2]], r"shape \[n, 2\], got \(1, 3\)"), ([[0.0, 1.0]], "integers, got float64")):
        with pytest.raises(ValueError, match="links: expected .*" + message):
            links.checked(wrong, 3)


def test_links_are_dealt_by_their_own_identifiers():
    every = np.argwhere(~np.eye(40, dtype=bool))
    ids = [f"d{i}" for i in range(40)]
    shares = {"train": 0.65, "dev": 0.05, "test": 0.3}
    parts = links.split(every, ids, shares=shares)
    assert sum(len(part) for part in parts.values()) == len(every)
    for name, share in shares.items():
        assert abs(len(parts[name]) / len(every) - share) < 0.03
    order = np.arange(40)[::-1]  # the same documents in another order
    moved = links.split((39 - every)[::-1], [ids[i] for i in order], shares=shares)
    named = [{(ids[a], ids[b]) for a, b in parts["test"]}, {(ids[39 - a], ids[39 - b]) for a, b in moved["test"]}]
    assert named[0] == named[1]
    assert {(a, b) for a, b in links.split(every, ids, shares=shares, salt="x")["test"].tolist()} != {
        (a, b) for a, b in parts["test"].tolist()}
    with pytest.raises(ValueError, match="shares: expected shares of at least 0 that sum to 1"):
        links.split(every, ids, shares={"train": 0.5})
    with pytest.raises(ValueError, match="links: expected different documents, each link once, got 2 links"):
        links.split(np.array([[0, 1], [0, 1]]), ids, shares=shares)


def test_links_inside_some_documents():
    result = links.inside(np.array([[4, 2], [2, 4], [0, 2], [4, 9]]), np.array([2, 4]))
    assert result.tolist() == [[1, 0], [0, 1]]
    assert links.inside(np.zeros((0, 2), int), np.array([1])).shape == (0, 2)
    with pytest.raises(ValueError, match="rows: expected each document once"):
        links.inside(np.array([[0, 1]]), np.array([1, 1]))
