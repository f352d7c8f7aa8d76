"""The page of all figures: every figure of the records, sorted and filtered in a browser."""

from __future__ import annotations

import glob
import os
import re
import shutil

import pytest

from experiments.kit import papers, report_page
from tests.experiments.test_records import made_up

PRINTED = {row.row: row.figures for row in papers.TABLES["002 Table 2"].rows}
FOUND = {
    "a.json": made_up(paper="002 Table 2", row="opca", metrics={"accuracy": [0.5, 0.7], "mrr": [0.75, 0.85]}),
    "b.json": made_up(paper="none", row="b", table="other", seeds=[], metrics={"map": 0.25}),
    "c.json": made_up(paper="none", row="tf", table="other", seeds=[], metrics={"map": 0.125}),
}


def browser() -> str | None:
    """A headless browser of this machine: of the system, or of Playwright."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    own = os.path.expanduser("~/.cache/ms-playwright/chromium*/chrome-*/*")
    return next(filter(None, map(shutil.which, names)), next(filter(os.path.isfile, sorted(glob.glob(own))), None))


def test_every_figure_has_a_line_with_the_papers_beside_it():
    made = report_page.lines(FOUND, {"a.json": ["stale"]})
    assert [(line["row"], line["metric"], line["ours"]) for line in made] == [
        ("opca", "accuracy", "0.6000"), ("opca", "MRR", "0.8000"), ("b", "MAP", "0.2500"), ("tf", "MAP", "0.1250")]
    printed = dict(zip(papers.TABLES["002 Table 2"].metrics, PRINTED["opca"], strict=True))
    assert made[1]["printed"] == f"{printed['mrr']:g}" and made[1]["seeds"] == "2" and made[1]["notes"] == "stale"
    assert made[2]["printed"] == made[2]["sd"] == made[2]["paper"] == ""


def test_texts_are_escaped_and_nothing_comes_from_outside():
    page = report_page.page(FOUND, {"b.json": ["<b>&"]})
    assert page == report_page.page(dict(reversed(FOUND.items())), {"b.json": ["<b>&"]})
    assert "<b>&" not in page and "&lt;b&gt;&amp;" in page
    assert not re.search(r"(?:src|href)=|https?:|url\(", page) and "default-src 'none'" in page


@pytest.mark.slow
def test_the_page_sorts_and_filters_in_a_browser(tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright here: the page is not tried out")
    program = browser()
    if program is None:
        pytest.skip("no headless Chromium here: the page is not tried out")
    place = tmp_path / report_page.FILE
    place.write_text(report_page.page(FOUND, {}), encoding="utf-8")
    faults = []
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        page = chromium.new_page(offline=True)
        page.on("console", lambda message: faults.append(message.text))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.goto(place.as_uri())
        figures = lambda: page.locator("tbody tr:visible td:nth-child(7)").all_inner_texts()  # noqa: E731
        assert page.locator("#told").inner_text() == "4 of 4 figures"
        page.get_by_role("button", name="ours").click()
        assert figures() == ["0.1250", "0.2500", "0.6000", "0.8000"]
        page.get_by_role("button", name="ours").click()
        assert figures() == ["0.8000", "0.6000", "0.2500", "0.1250"]
        page.get_by_role("button", name="printed").click()  # what has none comes last
        assert set(figures()[2:]) == {"0.2500", "0.1250"}
        page.get_by_role("combobox", name="table", exact=True).select_option("other")
        assert page.locator("#told").inner_text() == "2 of 4 figures" and len(figures()) == 2
        page.get_by_label("row holds").fill("tf")
        assert figures() == ["0.1250"]
        page.get_by_role("button", name="all").click()
        assert page.locator("#told").inner_text() == "4 of 4 figures"
        chromium.close()
    assert not faults
