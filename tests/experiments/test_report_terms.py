"""Single terms in the report: the table of extensions and the figure of weights."""

from __future__ import annotations

from experiments.kit import report_terms
from jaxsim.pictures import figures

DOCUMENT = {"number": 7, "topics": ["crude", "ship"], "terms": [["oil", 0.5, 0.6], ["crude", 0.0, 0.4]]}


def rows(**config):
    return {"x": {"row": "tfidf", "config": {}}, "y": {"row": "vl-ext", "config": config}}


def test_the_table_has_every_extension_once_in_order():
    result = report_terms.extensions(rows(extensions=[[f"a{i}", f"b{i}", 2 - i / 2] for i in range(6)]))
    cells = [cell.strip() for line in result.splitlines() if line.startswith("| a") for cell in line.split("|")[1:-1]]
    assert cells == [f"a{i} → b{i} {2 - i / 2:.2f}" for i in range(6)] + ["", ""]
    assert report_terms.extensions(rows()) == "" and report_terms.weights("t", rows()) is None


def test_the_figure_names_documents_and_terms_and_changes_with_them():
    svg = report_terms.weights("t", rows(documents=[DOCUMENT] * 3))
    assert svg == report_terms.weights("t", rows(documents=[DOCUMENT] * 3))
    assert svg.count(b"7 (crude, ship)") == 3 and svg.count(b"oil") >= 3
    for second in (["crude", 0.0, 0.5], ["gas", 0.0, 0.4]):
        change = {"terms": [["oil", 0.5, 0.6], second]}
        other = report_terms.weights("t", rows(documents=[DOCUMENT, DOCUMENT, {**DOCUMENT, **change}]))
        assert figures.digest(other) != figures.digest(svg)
