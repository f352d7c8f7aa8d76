"""The page about a model: all of its data, safe texts, nothing from outside, and what a browser makes of it."""

from __future__ import annotations

import base64
import dataclasses
import glob
import hashlib
import json
import os
import re
import shutil
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import refused, run

from jaxsim import text
from jaxsim.data import pairs
from jaxsim.methods.projections import Projection
from jaxsim.methods.ssi import Bilinear
from jaxsim.model import Model
from jaxsim.model.explain import explain
from jaxsim.pictures import model_page, report

WORDS = text.Vocabulary(("cat", "dog", "fish", "bird", "cow"), np.array([2, 3, 2, 1, 1]), 10)
HISTORY = {"step": [0, 1, 2, 3], "loss": [0.5, 0.2, 0.1, 0.05], "validation": [0.6, 0.8, 0.7, 0.8]}
RECORD = {"history": HISTORY, "pairs": {"all": 9, "train": 7, "dev": 2}, "dev": {"mrr": 0.9, "untrained_mrr": 0.8},
          "command": "jaxsim train --pairs <b>.tsv"}  # fmt: skip
EVIL = '<script>document.title = "evil"</script></script><img src=x onerror="document.title=1"> & cat $title \x00\ud800'
LEFT = ["cat dog", "fish", "bird cow", EVIL, "cow 日本 ✓ \u2028 e\u0301"]
RIGHT = ["cat", "fish dog", "bird", "dog", "cow fish"]
TURNED = [*RIGHT[1:], RIGHT[0]]


def made(left=LEFT, right=RIGHT, name="toy.tsv"):
    return pairs.make(name, [str(i) for i in range(len(left))], left, right, languages=("en", "es"))


@pytest.fixture
def model(rng):
    weights = Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32))
    return Model(WORDS, weights, languages=("en", "es"), method="s2net", training=RECORD)


class Page(HTMLParser):
    """Tags, identifiers and texts of a page, and the data of its search box."""

    VOID = ("meta", "img", "input", "br")

    def __init__(self, page: str):  # noqa: D107
        super().__init__()
        self.tags, self.open, self.text, self.scripts = [], [], "", []
        self.feed(page)
        self.close()
        assert not self.open
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag == "script":
            self.scripts.append("")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] == ["script"]:
            self.scripts[-1] += data
        else:
            self.text += data

    def vectors(self) -> np.ndarray:
        numbers = np.frombuffer(base64.b64decode(self.data["vectors"]), np.int8).reshape(-1, self.data["dim"])
        return numbers * np.frombuffer(base64.b64decode(self.data["scales"]), "<f4")[:, None]


def test_the_page_has_all_data(model):
    given = made()
    page = Page(model_page.page(model, given))
    sides = report.Sides(given)
    assert page.data["documents"] == list(sides.documents) and page.data["mates"] == [[0], [1], [2], [3], [4]]
    assert page.data["languages"] == ["en", "es"] and len(page.data["queries"]) == 5
    vectors = page.vectors()
    np.testing.assert_allclose(vectors[:5] @ vectors[5:].T, model.similarity(LEFT, RIGHT), atol=0.01)
    for shown in ("Worst mistakes", "Words that drive a match", "7 for training, 2 held out", "held-out untrained mrr",
                  "0.8", "jaxsim train --pairs <b>.tsv", "toy.tsv: 5 queries (left texts)"):  # fmt: skip
        assert shown in page.text
    drawn = [base64.b64decode(attrs["src"].partition(",")[2]) for tag, attrs in page.tags if tag == "img"]
    assert [b"1 of 3 kept" in svg for svg in drawn] == [True, False] and b">others<" in drawn[1]
    described = [attrs["alt"] for tag, attrs in page.tags if tag == "img"]
    assert "0.8, at step 1" in described[0] and "s2net, others: median" in described[1]
    scored, belong = report.scores(model, given)
    median = np.quantile(scored["s2net"][belong], 0.5)
    assert f"s2net, mates: median {median:.3f}" in described[1]
    assert model_page.page(model, given) == model_page.page(model, given)


def test_mistakes_are_the_queries_that_miss_their_mate_worst_first(model):
    given = made(right=TURNED)
    scores = model.similarity(LEFT, TURNED)
    ranks = (scores >= np.diag(scores)[:, None]).sum(axis=1)
    result = model_page.mistakes(scores, report.Sides(given).mates)
    assert sorted(one.query for one in result) == np.flatnonzero(ranks > 1).tolist() and len(result) > 1
    assert [one.rank for one in result] == sorted(ranks[ranks > 1].tolist(), reverse=True)
    for one in result:
        assert one.mate == one.query and one.rank == ranks[one.query]
        assert one.scores == (scores[one.query, one.mate], scores[one.query].max()) and one.wrong != one.mate
    page = Page(model_page.page(model, given, examples=1))
    assert page.text.count("Its mate, at rank") == 1 and f"{len(result)} of the 5 queries find another" in page.text
    worst = result[0]
    a, b, value = explain(model, LEFT[worst.query], TURNED[worst.wrong]).largest(1)[0]
    assert f"{a} · {b} {value:+.3f}" in page.text
    tied = model_page.mistakes(np.array([[0.5, 0.5], [0.0, 0.0]]), [{0}, {0, 1}])
    assert tied == [model_page.Mistake(0, 0, 2, 1, (0.5, 0.5))]
    right = Model(WORDS, Projection(jnp.eye(5)), method="opca")
    assert "All of the 2 queries find a mate" in Page(model_page.page(right, made(["cat", "dog"], ["cat", "dog"]))).text


def test_words_that_drive_matches_sum_up_to_the_mean_score(model):
    given = made(["cat dog", "fish"], ["cat", "fish dog"])
    page = model_page.page(model, given)
    table = page.partition("Words of queries and of documents")[2]
    rows = re.findall(r"<tr><td>(\w+)</td><td>(\w+)</td><td>([-+.\d]+)</td><td>(\d+)</td></tr>", table)
    expected = {}
    for left, right in zip(given.left, given.right, strict=True):
        for a, b, value in explain(model, left, right).largest(9):
            expected[a, b] = expected.get((a, b), 0) + value / 2
    assert {(a, b) for a, b, _, _ in rows} == set(expected) and len(rows) == 4
    for a, b, value, _ in rows:
        assert float(value) == pytest.approx(expected[a, b], abs=6e-5)
    mean = np.diag(model.similarity(given.left, given.right)).mean()
    assert sum(float(value) for *_, value, _ in rows) == pytest.approx(mean, abs=3e-4)


def test_texts_are_text_and_nothing_comes_from_outside(model):
    page = model_page.page(model, made(LEFT, TURNED, name='<b>&"'))
    page.encode()
    parsed = Page(page)
    assert not {tag for tag, _ in parsed.tags} & {"link", "iframe", "b", "base", "object", "form"}
    assert len(parsed.scripts) == 2 and "</script><img" not in page and "&lt;b&gt;" in page
    assert parsed.data["queries"][3] == EVIL.replace("\x00", "\ufffd").replace("\ud800", "\ufffd")
    assert parsed.data["queries"][4] == LEFT[4] and "日本 ✓" in parsed.text
    sources = [value for _, attrs in parsed.tags for name, value in attrs.items() if name in ("src", "href", "srcset")]
    assert all(source.startswith(("data:image/svg+xml;base64,", "#")) for source in sources) and len(sources) == 8
    outside = page.replace("data:image/svg+xml", "")
    assert not re.search(r"https?://|url\(|@import|\bimport\(|fetch\(|XMLHttp|innerHTML|style=|\son\w+=\"", re.sub(
        r'<script type="application/json".*?</script>', "", outside, flags=re.DOTALL).replace(
            "onerror=&quot;", ""))  # fmt: skip
    digest = base64.b64encode(hashlib.sha256(parsed.scripts[1].encode()).digest()).decode()
    policy = next(attrs["content"] for _, attrs in parsed.tags if attrs.get("http-equiv"))
    assert f"script-src 'sha256-{digest}'" in policy and "default-src 'none'" in policy
    assert "prefers-color-scheme: dark" in page


def test_names_for_those_who_do_not_see_it(model):
    parsed = Page(model_page.page(model, made()))
    identifiers = [attrs["id"] for _, attrs in parsed.tags if "id" in attrs]
    assert len(identifiers) == len(set(identifiers))
    named = [attrs.get(name) for _, attrs in parsed.tags for name in
             ("for", "aria-labelledby", "aria-describedby", "aria-controls") if name in attrs]  # fmt: skip
    named += [attrs["href"][1:] for _, attrs in parsed.tags if "href" in attrs]
    assert set(named) <= set(identifiers) and "search" in named
    assert all(attrs.get("alt") for tag, attrs in parsed.tags if tag == "img")
    assert ("html", {"lang": "en"}) in parsed.tags and [tag for tag, _ in parsed.tags].count("h1") == 1
    assert {attrs["lang"] for tag, attrs in parsed.tags if tag == "span"} == {"en", "es"}
    assert all(attrs.get("scope") for tag, attrs in parsed.tags if tag == "th")


def test_models_without_vectors_have_their_neighbours_computed(model, rng):
    sides = tuple(Bilinear(jnp.asarray(rng.normal(size=(5, 2)), jnp.float32), jnp.ones(5)) for _ in range(2))
    for other in (Model(WORDS, None, languages=("en", "es"), method="tfidf"),
                  Model(WORDS, sides, languages=("en", "es"), method="ssi")):  # fmt: skip
        parsed = Page(model_page.page(other, made()))
        assert "vectors" not in parsed.data and "keeps no history" in parsed.text
        scores = other.similarity(LEFT, RIGHT)
        for row, first in zip(scores, parsed.data["nearest"], strict=True):
            assert [i for i, _ in first] == np.argsort(-row, kind="stable").tolist()
            np.testing.assert_allclose([score for _, score in first], -np.sort(-row), rtol=1e-3)
    bent = Page(model_page.page(dataclasses.replace(model, activation="tanh"), made()))
    assert "cannot be taken apart" in bent.text and "Its mate, at rank" in bent.text


def test_many_pairs_and_labels(model, monkeypatch):
    labels = np.array([1, 0, 2, 0, -1])
    parsed = Page(model_page.page(model, made(), labels))
    assert parsed.data["queries"] == [LEFT[0], LEFT[2]] and parsed.data["mates"] == [[0], [2]]
    monkeypatch.setattr(model_page, "MOST_PAIRS", 3)
    parsed = Page(model_page.page(model, made(), labels))
    assert "toy.tsv, 3 of 5 pairs, evenly spaced" in parsed.text and parsed.data["documents"] == RIGHT[::2]
    long = Page(model_page.page(model, made(["cat " * 500, "dog"], ["dog " * 500, "fish"])))
    assert max(map(len, long.data["queries"] + long.data["documents"])) == 400


def test_the_command_writes_the_page_alone(trained, folder, capsys):
    shown = run(capsys, "report", "--model", trained, "--pairs", "pairs.tsv", "--out", "new/figures", "--html",
                "--examples", "3")  # fmt: skip
    assert shown == "new/figures/report.html\n" and os.listdir("new/figures") == ["report.html"]
    assert len(Page((folder / "new/figures/report.html").read_text()).data["queries"]) == 40
    words = ["report", "--model", trained, "--out", "other", "--html", "--pairs"]
    (folder / "one.tsv").write_text("a\tb\n")
    assert "one.tsv: expected at least two pairs, got 1" in refused(capsys, *words, "one.tsv")
    assert "none.tsv" in refused(capsys, *words, "none.tsv") and not os.path.exists("other")
    assert refused(capsys, "report", "--model", trained, "--out", "one.tsv", "--html", "--pairs", "pairs.tsv") == (
        "--out: expected a folder, new or old, got a file (one.tsv)")


# In a browser


def browser() -> str | None:
    """A headless browser of this machine: of the system, or of Playwright."""
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    own = os.path.expanduser("~/.cache/ms-playwright/chromium*/chrome-*/*")
    return next(filter(None, map(shutil.which, names)), next(filter(os.path.isfile, sorted(glob.glob(own))), None))


@pytest.mark.slow
def test_the_page_works_in_a_browser_offline_in_light_and_in_dark(model, tmp_path):
    playwright = pytest.importorskip("playwright.sync_api", reason="no Playwright here: the page is not tried out")
    program = browser()
    if program is None:
        pytest.skip("no headless Chromium here: the page is not tried out")
    place = model_page.write(tmp_path, model, made())
    grounds, faults, asked = {}, [], []
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for scheme in ("light", "dark"):
            page = chromium.new_page(color_scheme=scheme, viewport={"width": 360, "height": 640}, offline=True)
            page.on("console", lambda message: faults.append(message.text))
            page.on("pageerror", lambda error: faults.append(str(error)))
            page.on("request", lambda request: asked.append(request.url))
            page.goto(place.as_uri())
            grounds[scheme] = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert page.title() == "Report on s2net" and page.locator("#nearest tbody tr").count() == 5
            page.get_by_label("Find a text by its words").fill("  CAT  dog")
            assert page.locator("#found").inner_text() == "1 of 10 texts"
            page.get_by_label("Find a text by its words").fill("<script>")
            page.keyboard.press("Tab")
            page.keyboard.press("Enter")
            assert page.locator("#nearest blockquote").inner_text() == EVIL.replace("\x00", "\ufffd").replace(
                "\ud800", "\ufffd")  # fmt: skip
            assert page.locator("#matches button").get_attribute("aria-pressed") == "true"
            shown = page.locator("#nearest tbody tr").evaluate_all(
                "rows => rows.map(row => [...row.cells].map(cell => cell.innerText))")
            scores = model.similarity([LEFT[3]], RIGHT)[0]
            order = np.argsort(-scores, kind="stable")
            assert [row[2].removeprefix("Mate. ") for row in shown] == [RIGHT[i] for i in order]
            assert [float(row[1]) for row in shown] == pytest.approx(scores[order], abs=0.01)
            assert [row[2].startswith("Mate. ") for row in shown] == [i == 3 for i in order]
            page.get_by_label("Find a text by its words").fill("e\u0301 ✓")
            assert page.locator("#matches button").count() == 1
            drawn = page.locator("img").evaluate_all("all => all.map(one => one.naturalWidth)")
            assert len(drawn) == 2 and min(drawn) > 0 and page.title() == "Report on s2net"
            assert page.evaluate("document.documentElement.scrollWidth") <= 360
            page.close()
        chromium.close()
    assert not faults and set(asked) == {place.as_uri()} and grounds["light"] != grounds["dark"]
