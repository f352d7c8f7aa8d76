"""Loaders of judged pairs and of the HTML manual, on small files made here and on the real ones."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from pathlib import Path

import pytest

from jaxsim import data
from jaxsim.data import httpd_html, judged

DATA = os.environ.get("JAXSIM_DATA")


def real(name):
    return pytest.mark.skipif(not DATA or not (Path(DATA) / name).is_dir(), reason=f"JAXSIM_DATA has no {name}")


def put(root, name, file, content):
    path = root / name / file
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(gzip.compress(content.encode()))
    return root


def phrases(root, rows, header="id,anchor,target,context,score"):
    return put(root, "us_patent_phrases", "train.csv.gz", "\n".join([header, *rows]) + "\n")


def test_phrases_are_pairs_with_the_mean_over_contexts(tmp_path):
    root = phrases(tmp_path, ["1,valve,tap,A1,0.5", '2,act,"a, b",A1,0', "3,valve,tap,A2,1", "4,act,act,A1,1"])
    result = judged.load_phrases(root=root, verify=False)
    assert (result.anchors, result.targets, result.scores.tolist()) == (("act", "valve"), ("a, b", "tap"), [0.0, 0.75])
    assert result.counts == {"rows": 4, "rows_of_a_phrase_with_itself": 1, "pairs": 2, "pairs_with_several_rows": 1}


@pytest.mark.parametrize(("rows", "message"), [
    (["1,valve,tap,A1,0.6"], r"line 2: expected a score of 0, 0\.25, 0\.5, 0\.75, 1, got '0\.6'"),
    (["1,valve,tap,A1,0", "2,valve,tap,A1,high"], "line 3: expected a score of .*, got 'high'"),
    (["1,valve,tap,A1,nan"], "line 2: expected a score of"),
    (["1,valve, ,A1,0"], "line 2: expected two phrases"),
    (["1,valve,tap,0"], "line 2: expected 5 fields, got 4"),
    (['1,valve,"tap" x,A1,0'], r"expected CSV, got a row that is not \("),
    (["1,valve,valve,A1,1"], "expected pairs of phrases, got none"),
])
def test_bad_phrases_are_refused_by_file_and_line(tmp_path, rows, message):
    with pytest.raises(ValueError, match=rf"train\.csv\.gz.*{message}"):
        judged.load_phrases(root=phrases(tmp_path, rows), verify=False)


def test_bad_files_are_refused(tmp_path):
    with pytest.raises(data.MissingCorpus, match="expected the corpus 'us_patent_phrases'"):
        judged.load_phrases(root=tmp_path)
    with pytest.raises(ValueError, match="line 1: expected the column 'anchor', got the columns"):
        judged.load_phrases(root=phrases(tmp_path, [], header="id,left,score"), verify=False)
    with pytest.raises(ValueError, match="expected SHA-256"):
        judged.load_phrases(root=tmp_path)
    path = tmp_path / "us_patent_phrases" / "train.csv.gz"
    path.write_bytes(gzip.compress(b""))
    with pytest.raises(ValueError, match="expected a header, got an empty file"):
        judged.load_phrases(root=tmp_path, verify=False)
    path.write_bytes(gzip.compress(b"id,anchor,target,context,score\n" + b"1,a,b,c,0\n" * 500)[:-8])
    with pytest.raises(ValueError, match="expected a whole compressed file"):
        judged.load_phrases(root=tmp_path, verify=False)


def test_products_judged_twice_count_once_and_lines_may_break(tmp_path):
    rows = ("id,query,product_title,product_description,median_relevance,relevance_variance,fold\n"
            '1,tea,Cup,"two\nlines",4,0,1\n2,tea,Cup,"two\nlines",1,0,1\n3,pot,Pot,,2,0,2\n')
    found = judged.load_search(root=put(tmp_path, "crowdflower_search", "train.csv.gz", rows), verify=False)
    assert (found.queries, found.descriptions, found.relevance.tolist()) == (("tea", "pot"), ("two\nlines", ""), [4, 2])
    assert found.counts["rows_judged_before"] == 1 and found.counts["without_description"] == 1
    put(tmp_path, "crowdflower_search", "train.csv.gz", rows.replace("4,0,1", "5,0,1"))
    with pytest.raises(ValueError, match="line 2: expected a median_relevance of 1, 2, 3, 4, got '5'"):
        judged.load_search(root=tmp_path, verify=False)


def manual(root, links, pages=("index.html.en", "mod/core.html.en", "mod/core.html.en.utf8", "style.css")):
    put(root, "httpd_html", "links.tsv.gz", "source\ttarget\tfragment\tanchor\tboilerplate\n" + links)
    with tarfile.open(root / "httpd_html" / "manual_en_html.tar.xz", "w:xz") as archive:
        for name in pages:
            info = tarfile.TarInfo(f"manual/{name}")
            info.size = len(name)
            archive.addfile(info, io.BytesIO(name.encode()))
    return root


def test_the_manual_has_each_page_once_and_no_boilerplate(tmp_path):
    root = manual(tmp_path, "index.html\tmod/core.html\tx\tThe core\t0\nindex.html\tmod/core.html\t\tSyntax:\t1\n")
    result = httpd_html.load(root=root, verify=False)
    assert result.ids == ("index.html", "mod/core.html") and result.pages[1] == "mod/core.html.en.utf8"
    assert result.links == (httpd_html.Link(0, 1, "The core"),)
    assert result.counts == {"files": 3, "pages": 2, "links_read": 2, "links": 1}
    other = httpd_html.load(root=manual(tmp_path, "index.html\tmod/core.html\tx\tCore\t0\n"), verify=False)
    assert len(result.sha256) == 64 and other.sha256 != result.sha256


@pytest.mark.parametrize(("line", "message"), [
    ("index.html\tmod/core.html\tx\n", "line 2: expected 5 fields with tabs between, got 3"),
    ("index.html\tgone.html\tx\ty\t0\n", "line 2: expected pages of the archive, got 'gone.html'"),
    ("index.html\tmod/core.html\tx\ty\tno\n", "line 2: expected 0 or 1 in the last field, got 'no'"),
])
def test_bad_links_are_refused_by_file_and_line(tmp_path, line, message):
    with pytest.raises(ValueError, match=rf"links\.tsv\.gz, {message}"):
        httpd_html.load(root=manual(tmp_path, line), verify=False)


def test_an_archive_without_pages_is_refused(tmp_path):
    with pytest.raises(ValueError, match="expected pages, got none"):
        httpd_html.load(root=manual(tmp_path, "", pages=("style.css",)), verify=False)


@real("us_patent_phrases")
def test_phrases_counts():
    result = judged.load_phrases()
    assert result.counts["rows"] == 36_473 and len(set(result.anchors)) == 733
    assert 0.1 < (result.scores >= 0.75).mean() < 0.15


@real("crowdflower_search")
def test_search_counts():
    result = judged.load_search()
    assert result.counts["rows"] == 10_158 and result.counts["queries"] == 261
    assert sum(result.relevance == 4) > 6_000


@real("httpd_html")
def test_manual_counts():
    result = httpd_html.load()
    assert result.counts == {"files": 263, "pages": 262, "links_read": 14_414, "links": 7_215}
    assert len({link.target for link in result.links}) == 247
