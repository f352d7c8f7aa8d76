"""The classic test collections, on small files made here and on the real ones."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from jaxsim.data.corpora import classic

DATA = os.environ.get("JAXSIM_DATA")
CRANFIELD = {
    "cran.all.1400": ".I 1\n.T\na wing .\n.A\nx\n.W\na wing .\nlift of the wing .\n.I 2\n.T\n.W\n.I 3\n.T\nflow\n.W\n"
                     "of air\n",
    "cran.qry": ".I 001\n.W\nwhat lifts\n.I 004\n.W\nwhat flows\n",
    "cranqrel": "1 1 1\n2 3 4 \n2 1 -1\n",
}
NPL = {"doc-text": "1\none two three\nfour\n   /\n2\nfive\n/\n", "query-text": "7\nONE\n/\n8\nNO\n/\n",
       "rlv-ass": "7\n 1\n 2\n/\n"}


def put(root, name, files):
    for file, content in files.items():
        path = root / "classic_ir" / name / f"{file}.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(content.encode()))
    return root


def test_smart_files_with_codes_and_titles_that_a_text_repeats(tmp_path):
    result = classic.load("cranfield", root=put(tmp_path, "cranfield", CRANFIELD), verify=False)
    assert result.documents == {"1": "a wing .\na wing .\nlift of the wing .", "2": "", "3": "flow\nof air"}
    assert result.queries == {"1": "what lifts", "2": "what flows"}  # numbered by their place
    assert result.qrels == {"1": {"1": 4}, "2": {"3": 1}} and result.counts["judgements_unclear"] == 1
    assert list(zip(result.pairs.left, result.pairs.right, strict=True)) == [
        ("a wing .", "lift of the wing ."), ("flow", "of air")]


def test_npl_is_cut_after_a_third_of_the_words(tmp_path):
    result = classic.load("npl", root=put(tmp_path, "npl", NPL), verify=False)
    assert result.queries == {"7": "ONE"} and result.qrels == {"7": {"1": 1, "2": 1}}
    assert (result.pairs.left, result.pairs.right) == (("one two",), ("three four",))
    assert result.counts["queries_without_judgement"] == 1 and result.documents["2"] == "five"


@pytest.mark.parametrize(("file", "content", "message"), [
    ("cran.all.1400", ".I 1\n.T\na\n.I 1\n", "line 4: expected every record once, got 1 twice"),
    ("cran.all.1400", ".I x\n", "line 1: expected the number of a record"),
    ("cran.all.1400", ".T\na\n", "line 1: expected a record's first line"),
    ("cranqrel", "1 1\n", "line 1: expected query, document and code, three numbers"),
    ("cranqrel", "9 1 1\n", "line 1: expected a query of cranfield, got 9"),
    ("cranqrel", "1 9 1\n", "line 1: expected a document of cranfield, got 9"),
])
def test_bad_files_are_refused_by_name_and_line(file, content, message, tmp_path):
    put(tmp_path, "cranfield", CRANFIELD | {file: content})
    with pytest.raises(ValueError, match=f"{file}.*{message}"):
        classic.load("cranfield", root=tmp_path, verify=False)
    with pytest.raises(ValueError, match="name: expected one of cranfield, cisi, cacm, npl, got adi"):
        classic.load("adi", root=tmp_path)


@pytest.mark.skipif(not DATA or not Path(DATA, "classic_ir", "npl").is_dir(), reason="JAXSIM_DATA has no classic_ir")
def test_counts_are_those_of_the_collections():
    counts = [classic.load(name).counts for name in classic.COLLECTIONS]
    assert [(one["documents"], one["queries"]) for one in counts] == [(1400, 225), (1460, 76), (3204, 52), (11429, 93)]
    assert [one["judgements"] for one in counts] == [1837 - 225, 3114, 796, 2083]
