"""Figures and the page of neighbours of one model: right numbers, safe text, the same bytes twice."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser

import jax.numpy as jnp
import numpy as np
import pytest
from sklearn import metrics as peer

from jaxsim import text
from jaxsim.data import pairs
from jaxsim.evaluate import mates, metrics
from jaxsim.methods.projections import Projection, truncate
from jaxsim.methods.ssi.bilinear import Bilinear
from jaxsim.model import Model
from jaxsim.optim import history
from jaxsim.pictures import dimensions, figures, neighbours, report

WORDS = text.Vocabulary(("cat", "dog", "fish", "bird", "cow"), np.array([2, 3, 2, 1, 1]), 10)
HISTORY = {"step": [0, 1, 2, 3], "loss": [0.5, 0.2, 0.1, 0.05], "validation": [0.6, 0.8, 0.7, 0.8]}


def made(left, right, name="toy"):
    return pairs.make(name, [str(i) for i in range(len(left))], left, right, languages=("en", "es"))


@pytest.fixture
def model(rng):
    weights = Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32))
    return Model(WORDS, weights, languages=("en", "es"), method="s2net", training={"history": HISTORY})


PAIRS = made(["cat dog", "fish", "bird cow", "dog fish", "cow"], ["cat", "fish dog", "bird", "dog", "cow fish"])


class Tables(HTMLParser):
    """Tags of a page, and the rows of its tables."""

    def __init__(self, page):  # noqa: D107
        super().__init__()
        self.tags, self.open, self.rows, self.captions = [], [], [], []
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag != "meta":
            self.open.append(tag)
        if tag == "table":
            self.rows.append([])
        elif tag == "tr":
            self.rows[-1].append("")
        elif tag == "caption":
            self.captions.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "caption" in self.open:
            self.captions[-1] += data
        elif "tbody" in self.open and self.rows[-1]:
            self.rows[-1][-1] += f"|{data}"


# ROC


def test_curve_is_that_of_sklearn(rng):
    labels = rng.integers(0, 2, 60)
    scores = np.round(rng.normal(size=60) + labels, 1)  # with ties
    fpr, tpr, _ = peer.roc_curve(labels, scores, drop_intermediate=False)
    np.testing.assert_allclose(report.curve(scores, labels), np.stack([fpr, tpr], axis=1), rtol=1e-12)


def test_a_long_curve_is_short_and_keeps_its_area(rng):
    labels = rng.random(200_000) < 0.01
    scores = rng.normal(size=labels.size) + 2 * labels
    points = np.array(report.curve(scores, labels))
    assert len(points) < 2_000 and (np.diff(points, axis=0) >= 0).all()
    assert np.trapezoid(points[:, 1], points[:, 0]) == pytest.approx(metrics.auc(scores, labels), abs=1e-3)
    least = 1 / (~labels).sum()
    logs = np.array(report.curve(scores, labels, least=least))
    fpr, tpr, _ = peer.roc_curve(labels, scores)
    assert logs[0, 0] == least and logs[0, 1] == tpr[fpr == 0].max() and logs[-1].tolist() == [1, 1]
    np.testing.assert_allclose(logs[1:, 1], np.interp(logs[1:, 0], fpr, tpr), atol=0.02)


def test_scores_are_of_all_texts_with_all_texts_and_mates_count_by_text(model):
    twice = made(["cat", "cat", "dog"], ["fish", "cow", "fish"])
    scored, belong = report.scores(model, twice)
    assert belong.reshape(2, 2).tolist() == [[True, True], [True, False]]
    np.testing.assert_array_equal(scored["s2net"].reshape(2, 2), model.similarity(["cat", "dog"], ["fish", "cow"]))
    bare = Model(WORDS, None, languages=("en", "es"))
    np.testing.assert_array_equal(scored["untrained"].reshape(2, 2), bare.similarity(["cat", "dog"], ["fish", "cow"]))
    assert list(report.scores(bare, twice)[0]) == ["untrained"]
    entries = text.Vocabulary(("well-known", "well", "known"), np.ones(3, np.int64), 10)
    words = Model(entries, Projection(jnp.ones((3, 1))), training={"kind": "words"})
    two = made(["well-known", "well"], ["well-known", "known"])
    assert report.scores(words, two)[0]["untrained"].round(6).tolist() == [1, 0, 0, 0]  # entries are not cut


def test_labelled_pairs_are_scored_as_they_stand(model):
    labels = np.array([1, 0, 2, 0, -1])
    scored, belong = report.scores(model, PAIRS, labels)
    assert belong.tolist() == [True, False, True, False, False]
    np.testing.assert_array_equal(scored["s2net"], model.pair_similarity(PAIRS.left, PAIRS.right))
    shown = f"AUC {peer.roc_auc_score(belong, scored['s2net']):.4f}"
    assert shown.encode() in report.roc(model, PAIRS, labels)


def test_many_pairs_are_sampled_evenly(model, monkeypatch):
    monkeypatch.setattr(report, "_MOST_PAIRS", 3)
    scored, belong = report.scores(model, PAIRS)
    np.testing.assert_array_equal(scored["s2net"].reshape(3, 3), model.similarity(PAIRS.left[::2], PAIRS.right[::2]))
    assert belong.reshape(3, 3).tolist() == np.eye(3, dtype=bool).tolist()


# Dimensions


def test_scores_of_the_first_dimensions_are_those_of_shorter_models(rng):
    first, second = (Projection(jnp.asarray(rng.normal(size=(5, 3)), jnp.float32)) for _ in range(2))
    for params in (first, (first, second)):
        model = Model(WORDS, params, languages=("en", "es"), method="cca")
        result = dict(dimensions.scores(model, PAIRS))
        assert list(result) == [1, 2, 3]
        for k, score in result.items():
            shorter = Model(WORDS, truncate(params, k), languages=("en", "es"))
            sides = shorter.vectors(PAIRS.left, side="query"), shorter.vectors(PAIRS.right, side="document")
            assert score == pytest.approx(mates.scores(*sides)["mrr"], rel=1e-6)


def test_dimensions_are_drawn_where_they_have_an_order(model, rng):
    closed = Model(WORDS, model.params, languages=("en", "es"), method="opca")
    drawn = dimensions.draw(closed, PAIRS)
    assert b">opca<" in drawn and b">untrained<" in drawn and b"MRR (of 5 pairs)" in drawn
    assert b"MRR (of 2 pairs)" in dimensions.draw(closed, PAIRS, np.array([1, 0, 2, 0, -1]))
    distilled = dataclasses.replace(closed, training={"distilled": {"loss": 0.5}})
    for turned in (model, distilled):
        assert f"first principal axes of {turned.method}".encode() in dimensions.draw(turned, PAIRS)
    one = Model(WORDS, truncate(model.params, 1), languages=("en", "es"), method="opca")
    bent = Model(WORDS, model.params, activation="tanh", languages=("en", "es"), method="s2net")
    for given, labels in ((bent, None), (one, None), (closed, np.array([1, 0, 0, 0, 0])), (closed, np.zeros(5)),
                          (Model(WORDS, None, method="opca"), None)):  # fmt: skip
        assert dimensions.draw(given, PAIRS, labels) is None


def test_principal_axes_keep_all_cosines_and_most_of_the_variance_first(rng):
    sides = tuple(Projection(jnp.asarray(rng.normal(size=(5, 4)) * [0.1, 3, 0.3, 1], jnp.float32)) for _ in range(2))
    model = Model(WORDS, sides, weighting="tf", languages=("en", "es"), method="s2net")
    axes = dimensions.principal_axes(model)
    np.testing.assert_allclose(axes.T @ axes, np.eye(4), atol=1e-12)
    # Documents that hold one term each, as often as their frequency says.
    rows = np.concatenate([np.repeat(np.asarray(side.weights, np.float64), WORDS.df, axis=0) for side in sides])
    variances = ((rows @ axes) ** 2).mean(axis=0)
    np.testing.assert_allclose(variances, np.linalg.eigvalsh(rows.T @ rows / len(rows))[::-1], rtol=1e-5)
    whole = mates.scores(model.vectors(PAIRS.left, side="query"), model.vectors(PAIRS.right, side="document"))["mrr"]
    result = dimensions.scores(model, PAIRS)
    assert [k for k, _ in result] == [1, 2, 4] and result[-1][1] == pytest.approx(whole, rel=1e-6)
    bent = Model(WORDS, Projection(sides[0].weights @ jnp.asarray(axes, jnp.float32)), weighting="tf", method="s2net")
    straight = Model(WORDS, sides[0], weighting="tf", method="s2net")  # the order does not depend on the basis
    for one, other in zip(*(dimensions.scores(given, PAIRS) for given in (bent, straight)), strict=True):
        assert one == pytest.approx(other, rel=1e-6)


# Figures


@pytest.mark.parametrize("labels", [None, np.array([1, 0, 1, 0, 0])])
def test_figures_hold_the_digest_of_their_data_and_are_the_same_twice(labels, model):
    for draw in (lambda one: report.roc(one, PAIRS, labels), report.training):
        first = draw(model)
        assert first == draw(model) and figures.digest(first) is not None
        other = Model(WORDS, Projection(model.params.weights[:, :1]), languages=("en", "es"), method="s2net",
                      training={"history": {**HISTORY, "loss": [0.5, 0.2, 0.1, 0.04]}})  # fmt: skip
        assert figures.digest(draw(other)) != figures.digest(first)
        assert b"<dc:date>" not in first and b"#ffffff" not in first.lower() and b"mathdefault" not in first


def test_training_curve_names_what_was_kept_and_needs_a_history(model):
    drawn = report.training(model)
    assert b"1 of 3 kept" in drawn and b"training loss" in drawn and b"MRR (held-out pairs)" in drawn
    assert b"distilled" not in drawn
    distilled = Model(WORDS, model.params, training={"history": HISTORY, "distilled": {"loss": 0.5}})
    assert b"1 of 3 kept, then distilled" in report.training(distilled)
    without = {name: HISTORY[name] for name in ("step", "loss")}
    drawn = report.training(Model(WORDS, model.params, training={"history": without}))
    assert b"3 of 3 kept" in drawn and b"MRR" not in drawn
    for training in ({}, {"history": {}}, {"history": {"step": [0, 1], "loss": [None, 0.5]}}):
        assert report.training(Model(WORDS, model.params, training=training)) is None
    damaged = Model(WORDS, model.params, training={"history": {"step": [0, 1], "loss": ["x", 1]}})
    with pytest.raises(ValueError, match="training.history.loss: expected finite numbers or null, got 'x'"):
        report.training(damaged)


def test_panels_take_text_as_it_is_and_refuse_nothing():
    drawn = figures.panels([figures.Panel({"a$^$<b>": [(0, 1), (1, 2)]}, "x_$1$", "y")], title="$")
    assert b"a$^$&lt;b&gt;" in drawn and b"x_$1$" in drawn
    with pytest.raises(ValueError, match="axes: expected at least one panel with a line, got none"):
        figures.panels([figures.Panel({}, "x", "y")], title="t")


# The page


def test_the_page_shows_neighbours_of_both_models_with_mates_marked(model):
    page = Tables(report.nearest_page(model, PAIRS, examples=2))
    assert page.captions[0].startswith("untrained: mate at rank ") and page.captions[1].startswith("s2net: mate at")
    assert len(page.rows) == 4  # two queries, two models
    result = model.similarity([PAIRS.left[0]], PAIRS.right)[0]
    best = int(np.argmax(result))
    first = page.rows[1][1].split("|")[1:]
    assert first[:2] == ["1", f"{result[best]:.3f}"] and PAIRS.right[best] in first[2:]
    for rows in page.rows:
        assert sum("Mate." in row for row in rows) == 1 and len(rows) == 6  # a header row and five documents
    assert {"scope": "col"} in [attrs for tag, attrs in page.tags if tag == "th"]
    assert {"es"} == {attrs["lang"] for tag, attrs in page.tags if tag == "span" and attrs.get("lang") != "en"}


def test_columns_are_called_as_each_model_compares_texts(model):
    shares = Model(WORDS, Projection(jnp.ones((5, 2))), activation="shares", languages=("en", "es"), method="plsa")
    sides = tuple(Bilinear(jnp.ones((5, 2)), jnp.ones(5)) for _ in range(2))
    for one, other in ((model, "Cosine"), (shares, "Score"), (Model(WORDS, sides, method="ssi"), "Score")):
        page = report.nearest_page(one, PAIRS, examples=2)
        assert re.findall('<th scope="col">([CS][a-z]+)</th>', page) == ["Cosine", other] * 2


def test_the_page_escapes_texts_and_names(model):
    evil = '<script>alert("x")</script> & cat \x00\ud800'
    given = made([evil, "", "日本 cat " * 200], ['"><img src=x onerror=y>', "dog\ncow", "e\u0301 ✓ fish"], "<b>.tsv")
    page = report.nearest_page(model, given)
    page.encode()
    tags = {tag for tag, _ in Tables(page).tags}
    assert not tags & {"script", "img", "b", "link"} and "prefers-color-scheme: dark" in page
    assert "&lt;script&gt;alert(&quot;x&quot;)&lt;/script&gt; &amp; cat \ufffd\ufffd" in page
    assert "&lt;b&gt;.tsv" in page and "(an empty text)" in page and "日本 cat" in page and "✓" in page
    assert "…" in page and "日本 cat " * 60 not in page
    assert not [attrs for _, attrs in Tables(page).tags if {"src", "href", "style"} & set(attrs)] and "url(" not in page


def test_nearest_breaks_ties_against_the_mate_and_adds_it_below():
    documents = ["a", "b", "c", "d"]
    rows = neighbours.nearest([0.5, 0.5, 0.9, 0.5], documents, [True, False, False, True], k=2)
    assert [(row.rank, row.text, row.mate) for row in rows] == [(1, "c", False), (2, "b", False), (3, "a", True)]
    rows = neighbours.nearest([0.0, 1.0], ["a", "b"], [False, True], k=5)
    assert [(row.rank, row.text, row.mate) for row in rows] == [(1, "b", True), (2, "a", False)]
    with pytest.raises(ValueError, match="mates: expected at least one mate, got none"):
        neighbours.nearest([0.5], ["a"], [False])
    with pytest.raises(ValueError, match=r"scores: expected shape \(2,\), as documents, got \(1,\)"):
        neighbours.nearest([0.5], ["a", "b"], [True, False])


# All of it


def test_write_replaces_its_files_and_leaves_no_older_curve(model, tmp_path):
    model = dataclasses.replace(model, activation="tanh")
    folder = tmp_path / "new" / "figures"
    result = report.write(folder, model, PAIRS)
    assert {name: path.name for name, path in result.items()} == {
        "training": "training.svg", "roc": "roc.svg", "neighbours": "neighbours.html"}  # fmt: skip
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(before) == {path.name for path in result.values()}
    report.write(folder, model, PAIRS)
    assert before == {path.name: path.read_bytes() for path in folder.iterdir()}
    closed = Model(WORDS, model.params, languages=("en", "es"), method="opca")
    assert set(report.write(folder, closed, PAIRS)) == {"dimensions", "roc", "neighbours"}
    assert not (folder / "training.svg").exists()
    assert set(report.write(folder, Model(WORDS, None, languages=("en", "es")), PAIRS)) == {"roc", "neighbours"}
    assert not (folder / "dimensions.svg").exists()
    (folder / "training.svg").write_text("<svg>mine</svg>")
    report.write(folder, closed, PAIRS)
    assert (folder / "training.svg").read_text() == "<svg>mine</svg>"


@pytest.mark.parametrize(("given", "labels", "message"), [
    (made([], []), None, "toy: expected at least two pairs, got 0"),
    (made(["cat"], ["dog"]), None, "toy: expected at least two pairs, got 1"),
    (made(["cat", "cat"], ["dog", "fish"]), None, "toy: expected texts that do not belong together, got none"),
    (PAIRS, np.ones(5), "toy: expected labels above 0 and others, got only labels above 0 (1)"),
    (PAIRS, np.zeros(5), "toy: expected labels above 0 and others, got only others (0)"),
    (PAIRS, np.ones(4), "labels: expected 5 numbers, one a pair, got (4,)"),
])  # fmt: skip
def test_write_refuses_what_has_no_roc(given, labels, message, model, tmp_path):
    with pytest.raises(ValueError, match=re.escape(message)):
        report.write(tmp_path / "figures", model, given, labels)
    assert not (tmp_path / "figures").exists()


# Histories


def test_compact_keeps_first_last_and_best_and_knows_no_nan():
    course = [{"step": i, "loss": 1 / (i + 1), "validation": float(i == 77)} for i in range(1000)]
    result = history.compact(course, at_most=10)
    assert result["step"][0] == 0 and result["step"][-1] == 999 and 77 in result["step"] and len(result["step"]) == 11
    history.check(result, "history")
    first = {"step": 0, "loss": float("nan"), "validation": None}
    result = history.compact([first, {"step": 1, "loss": 1 / 3, "validation": 0.5}])
    assert result == {"step": [0, 1], "loss": [None, 0.333333], "validation": [None, 0.5]}
    assert history.compact([]) == {}


@pytest.mark.parametrize(("value", "message"), [
    (None, "fit.history: expected an object of the lists"),
    ({"step": [0]}, "fit.history: expected an object of the lists"),
    ({"step": [0], "loss": [1.0], "time": [1]}, "fit.history: expected an object of the lists"),
    ({"step": [0], "loss": []}, "fit.history.loss: expected a list of numbers"),
    ({"step": 0, "loss": [1.0]}, "fit.history.step: expected a list of numbers, got int"),
    ({"step": [0, 1], "loss": [1.0]}, r"fit.history.loss: expected 2 numbers \(as step\), got 1"),
    ({"step": [1, 0], "loss": [1.0, 1.0]}, "fit.history.step: expected whole numbers of at least 0 that rise"),
    ({"step": [0, 1.5], "loss": [1.0, 1.0]}, "fit.history.step: expected whole numbers of at least 0 that rise"),
    ({"step": [0], "loss": [True]}, "fit.history.loss: expected finite numbers or null, got True"),
])  # fmt: skip
def test_a_damaged_history_is_refused(value, message):
    with pytest.raises(ValueError, match=message):
        history.check(value, "fit.history")
