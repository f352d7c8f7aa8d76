"""Pages taken apart, damaged ones too, and the columns that say where a term stands."""

from __future__ import annotations

import numpy as np
import pytest

from jaxsim import sparse, text
from jaxsim.text import features, html
from jaxsim.text.html import read

PAGE = """<!DOCTYPE html><html><head><title>Tea &amp; cups</title>
<META NAME="Keywords" content="green, Pot"><meta name=description content="All of it"><meta charset="utf-8">
<style>p { color: red }</style><script>var tea = "<p>no</p>";</script></head>
<body><h1>Kinds</h1><p>Gr<b>ee</b>n.<br>Black</p><a name="here">mark</a> <a href="/x">the <i>old</i> map</a>
<svg><title>picture</title></svg><table><tr><td>one</td><td>two</td></tr></table></body></html>"""


def test_a_page_is_taken_apart():
    page = read(PAGE)
    assert page.title == "Tea & cups"
    assert page.text == "Kinds Green. Black mark the old map picture one two"
    assert (page.headings, page.anchors) == ("Kinds", "the old map")
    assert (page.keywords, page.description) == ("green, Pot", "All of it")


@pytest.mark.parametrize(("damaged", "part", "expected"), [
    ("", "text", ""),
    ("no tags < at > all & so on", "text", "no tags < at > all & so on"),
    ("<title>never closed<body>text", "text", ""),  # browsers show nothing either, whatever the parser's version
    ("<a href=x>one<a href=y>two</a> three", "anchors", "one two"),
    ("<a href=x>one</p></div></a></a> two", "anchors", "one"),
    ("<h2>head</h3> body", "headings", "head"),
    ("<p>text<!-- never closed", "anchors", ""),
    ("<meta name='keywords'><meta content='x'>", "keywords", ""),
    ("<script src='x' />shown", "text", "shown"),
    ("\x00<\x01p>odd", "headings", ""),
    ("<" * 2000, "headings", ""),
    ("<p>if a <b and b <c", "text", "if a <b and b <c"),
    ("one<!-- never closed <p>two</p> three", "text", "one"),
    ("one<!-->two", "text", "onetwo"),
    ("one<!--->two", "text", "onetwo"),
    ("<script><!-- never closed </script>shown", "text", "shown"),
    ("one<![endif]-->two<![ x>three", "text", "onetwothree"),
    ("one<![CDATA[ > <p> ]]>two<![CDATA[ > <p>", "text", "onetwo"),
])
def test_damaged_markup_is_no_error(damaged, part, expected):
    page = read(damaged)
    if "never closed<body>" in damaged:
        assert page.title.startswith("never closed") and page.headings == ""
    else:
        assert getattr(page, part) == expected


@pytest.mark.parametrize(("opened", "end"), [
    ("<a ", ""), ("<!--", ""), ("<!-- >", ""), ("<![CDATA[ >", ""), ("<!x ", ""), ("</a ", ""),
])
def test_what_is_never_closed_takes_time_in_proportion(opened, end):
    page = read("<h1>head</h1>" + opened * 200_000 + end)  # minutes where an end is looked for from each
    assert page.headings == "head"


def test_what_is_no_page_is_refused():
    with pytest.raises((TypeError, ValueError), match="page: expected"):
        read(b"<p>bytes</p>")


@pytest.fixture
def documents():
    """Two documents over five terms, one of them without words."""
    tokens = [["Green", "tea", "map", "green"], [], ["map", "cup", "pot"]]
    vocabulary = text.Vocabulary.build([[word.lower() for word in one] for one in tokens], drop_top=0, max_terms=9)
    return features.extract(tokens, vocabulary, names=("bias", "tf")), vocabulary


def test_columns_of_fields_agree_with_a_loop(documents):
    result, vocabulary = documents
    titles = [["GREEN", "unknown"], ["tea"], ["pot", "map", "pot"]]
    more = html.in_fields(result, vocabulary, {"title": titles, "none": [[], [], []]})
    assert more.names == ("bias", "tf", "title", "none") and more.terms is result.terms
    csr = sparse.to_scipy(result.terms)
    row = np.repeat(np.arange(3), np.diff(csr.indptr))
    for slot, (document, term) in enumerate(zip(row, csr.indices, strict=True)):
        inside = vocabulary.terms[term] in [word.lower() for word in titles[document]]
        assert more.columns[slot].tolist() == [1, csr.data[slot], float(inside), 0]


def test_a_term_that_is_part_of_the_address(documents):
    result, vocabulary = documents
    more = html.in_strings(result, vocabulary, "url", ["/STEAM.html", "", "/cup/pots"])
    facts = {vocabulary.terms[term]: float(flag)
             for term, flag in zip(sparse.to_scipy(result.terms).indices, more.columns[:, -1], strict=True)}
    assert {"tea": 1.0, "green": 0.0, "cup": 1.0, "pot": 1.0, "map": 0.0}.items() <= facts.items()


def test_fields_that_do_not_fit_are_refused(documents):
    result, vocabulary = documents
    with pytest.raises(ValueError, match=r"fields\.title: expected 3 lists \(documents\), got 1"):
        html.in_fields(result, vocabulary, {"title": [[]]})
    with pytest.raises(ValueError, match=r"fields: expected names that documents have not, got \['tf'\]"):
        html.in_fields(result, vocabulary, {"tf": [[], [], []]})
    with pytest.raises(ValueError, match="url: expected 3 strings"):
        html.in_strings(result, vocabulary, "url", ["x"])
    with pytest.raises(ValueError, match="vocabulary: expected 5 terms"):
        html.in_strings(result, text.Vocabulary(("a",), np.array([1]), 1), "url", ["", "", ""])
