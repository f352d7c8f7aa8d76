"""Trainings that stop by judged queries: what is scored, what is kept, and what the record says."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import refused, run

from jaxsim.data import docstrings
from jaxsim.evaluate import retrieval, trec
from jaxsim.sparse import Vectors
from jaxsim.train import Settings, budget, grid, training
from jaxsim.train.judged import METRICS, Judged

SMALL = Settings(method="s2net", dim=10, subwords=0.0, max_iter=6, patience=2)


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(200))


@pytest.fixture(scope="module")
def judged(corpus):
    """The first forty pairs' left texts, each with its own right text among all of them."""
    queries = {f"q{row}": corpus.left[row] for row in range(40)}
    documents = {f"d{row}": text for row, text in enumerate(corpus.right)}
    return Judged(queries, documents, {f"q{row}": {f"d{row}": 1} for row in range(40)}, "mrr")


@pytest.mark.programs
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("itself", [False, True])
def test_vectors_alone_score_as_a_search_by_them_does(corpus, judged, metric, itself):
    """Also where a query is no answer to itself: here each is a document too, and would be the first."""
    some = {**judged.documents, **judged.queries}
    one = replace(judged, documents=some, metric=metric, exclude_self=itself)
    model = training.train(corpus, replace(SMALL, method="opca", dim=2), dev=0)
    found = one.score_vectors(model.vectors(list(one.asked.values()), side="query"),
                              model.vectors(list(some.values()), side="document"))  # fmt: skip
    assert found == pytest.approx(one.score(model, terms=0.0, power=0.0), abs=1e-9)
    assert 0 < found < 1


def test_a_query_of_unknown_words_has_no_score():
    one = Judged({"a": "x", "b": "y"}, {"1": "x", "2": "y"}, {"a": {"1": 1}, "b": {"2": 1}}, "mrr")
    assert one.score_vectors(Vectors(np.array([[1.0, 0], [0, 0]])), Vectors(np.eye(2))) == 0.5


@pytest.mark.parametrize("metric", METRICS)
def test_scores_are_those_of_the_run_as_a_file_has_it(rng, metric):
    """Ties, grades, judged documents without a text, and queries that no relevant document has."""
    names = [f"d{number}" for number in rng.permutation(30)]
    grades = {f"q{query}": {name: int(rng.integers(-1, 3)) for name in rng.choice([*names, "x", "y"], 8, replace=False)}
              for query in range(12)}  # fmt: skip
    grades |= {"q3": {names[0]: 0}, "q5": {"x": 1}}
    one = Judged({query: "" for query in grades}, dict.fromkeys(names, ""), grades, metric)
    assert "q3" not in one.asked and "q5" in one.asked and one.without_text >= 1
    left, right = (Vectors(rng.integers(0, 2, (number, 3)).astype(np.float32)) for number in (len(one.asked), 30))
    scores = retrieval.cosine(left, right)(np.arange(len(one.asked)))
    run = {query: trec.ranked(dict(zip(names, map(float, row), strict=True)))
           for query, row in zip(one.asked, scores, strict=True) if row.any()}  # fmt: skip
    values = trec.scores(run, grades)[{"mrr@10": "mrr"}.get(metric, metric)]
    expected = np.where(values >= 0.1, values, 0) if metric == "mrr@10" else values
    assert one.score_vectors(left, right) == pytest.approx(expected.mean(), abs=1e-12)


@pytest.mark.programs
def test_odd_judgements_are_refused_or_told(corpus, judged):
    with pytest.raises(ValueError, match="qrels: expected numbers as grades, got nan"):
        Judged({"a": "x"}, {"1": "x", "2": "y"}, {"a": {"1": 1, "2": float("nan")}})
    with pytest.raises(ValueError, match="stop_by: expected Judged or NoneType, got str"):
        training.train(corpus, SMALL, stop_by="queries")
    said = []
    strange = replace(judged, queries=dict.fromkeys(judged.queries, "zzz"))
    strange = replace(strange, qrels={**strange.qrels, "q0": {"d0": 1, "gone": 1}})
    training.train(corpus, replace(SMALL, max_iter=1), stop_by=strange, say=said.append)
    assert "40 of 40 judged queries to stop by without known words: what they stop by says little of the model" in said
    assert "1 relevant document of the judged queries without a text, never found" in said


@pytest.mark.programs
@pytest.mark.parametrize(("method", "subwords"), [("s2net", 0.5), ("s2net-2", 0.0), ("ssi", 0.0)])
def test_the_model_is_the_best_step_by_the_judged_queries(corpus, judged, method, subwords):
    model = training.train(corpus, replace(SMALL, method=method, subwords=subwords), stop_by=judged, cross_fit=False)
    scores = model.training["history"]["validation"]
    assert judged.score(model, terms=0.0, power=0.0) == pytest.approx(max(scores), abs=1e-4)
    assert max(scores) != pytest.approx(model.training["dev"]["mrr"], abs=1e-4)
    told = model.training["stop_by"]
    assert told == {"metric": "mrr", "queries": 40, "sha256": judged.sha256, "score": round(max(scores), 4)}


def test_without_held_out_pairs_judged_queries_still_stop(corpus, judged):
    model = training.train(corpus, SMALL, dev=0, stop_by=judged, cross_fit=False)
    assert model.training["dev"] == {} and len(model.training["history"]["validation"]) > 1


@pytest.mark.programs
def test_judged_queries_decide_about_blends_and_distillation(corpus, judged):
    said = []
    model = training.train(corpus, replace(SMALL, blend=True), stop_by=judged, say=said.append)
    tried = model.training["blend"]["mrr"]
    assert judged.score(model, terms=0.0, power=0.0) == pytest.approx(max(tried.values()), abs=1e-4)
    assert any(line.endswith("of the start score best on judged queries") for line in said)

    said.clear()
    model = training.train(corpus, replace(SMALL, distill=0.5), dev=0, stop_by=judged, say=said.append)
    note = model.training["distilled"]
    kept = note["judged"]["distilled" if note["kept"] else "undistilled"]
    assert note["kept"] == (note["judged"]["distilled"] > note["judged"]["undistilled"])
    assert judged.score(model, terms=0.0, power=0.0) == pytest.approx(kept, abs=1e-4)
    assert model.training["stop_by"]["score"] == kept
    assert any(line.startswith("mrr of judged queries") for line in said)
    closed = training.train(corpus, replace(SMALL, method="opca", distill=0.5), stop_by=judged)
    assert "judged" in closed.training["distilled"]


def test_what_has_no_steps_is_refused(corpus, judged):
    with pytest.raises(ValueError, match="stop_by: expected None, for opca"):
        training.train(corpus, replace(SMALL, method="opca"), stop_by=judged)


def test_sweeps_and_budgets_stop_by_them_too(corpus, judged):
    options = {"stop_by": judged, "cross_fit": False}
    _, tried = grid.sweep(corpus, {"method": ("opca", "s2net")}, SMALL, **options)
    assert len(tried) == 2 and {"method", "mrr", "seconds"} == set(tried[0])
    found = {one["method"]: one["mrr"] for one in tried}
    with pytest.raises(ValueError, match="stop_by: expected a method of s2net, s2net-2"):
        grid.sweep(corpus, {"dim": (5, 10)}, replace(SMALL, method="opca"), **options)
    # The score of the only S2Net that a budget tries is that of the same training.
    tick = iter(range(10**6))
    given = {"free": ("method",), "seconds": 10**6, "clock": lambda: next(tick)}
    _, tried = budget.search(corpus, SMALL, stop_by=judged, **given)
    mrr = next(one["mrr"] for one in tried if one["method"] == "s2net")
    assert mrr == pytest.approx(found["s2net"], abs=2e-4)


def test_a_checkpoint_that_other_queries_stopped_is_refused(corpus, judged, tmp_path):
    first = training.train(corpus, SMALL, stop_by=judged, checkpoint=tmp_path, cross_fit=False)
    again = training.train(corpus, SMALL, stop_by=judged, checkpoint=tmp_path, cross_fit=False)
    assert np.array_equal(first.params.weights, again.params.weights)
    for other, expected in ((None, "held-out pairs stop"), (replace(judged, metric="map"), "these queries stop")):
        with pytest.raises(ValueError, match=f"checkpoint: expected one of a training that {expected}.* --stop-by"):
            training.train(corpus, SMALL, stop_by=other, checkpoint=tmp_path, cross_fit=False)


@pytest.mark.programs
def test_the_command_line_stops_by_judged_queries(folder, capsys):
    lines = (folder / "texts.txt").read_text().splitlines()
    (folder / "q.tsv").write_text(f"1\t{lines[0]}\n2\t{lines[1]}\n")
    (folder / "d.tsv").write_text("".join(f"{number}\t{line}\n" for number, line in enumerate(lines, start=1)))
    (folder / "qrels.txt").write_text("1 0 2 1\n2 0 1 1\n")
    files = ["--dev-queries", "q.tsv", "--dev-documents", "d.tsv", "--dev-qrels", "qrels.txt"]
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dev", "0.3", "--dim", "5", "--stop-by", "queries"]
    result = json.loads(run(capsys, *words, *files, "--json"))
    assert result["stop_by"]["queries"] == 2 and result["stop_by"]["metric"] == "map"
    found = run(capsys, "report", "--model", "model", "--pairs", "pairs.tsv", "--out", "figures")
    assert "MAP (judged queries)" in (folder / "figures" / "training.svg").read_text() and found
    # A budget may choose any method still, and needs no held-out pairs.
    whole = [*words[:5], "--dev", "0", *words[7:], *files]
    tuned = json.loads(run(capsys, *whole, "--tune", "--budget", "1s", "--no-cross-fit", "--json"))
    assert {"method", "map"} <= set(tuned["tuned"][0]) and "--no-cross-fit" in tuned["command"]
    given = ["--method", "s2net", "--noise", "0.0001"]
    again = json.loads(run(capsys, *whole, "--tune", "--budget", "1s", *given, "--json"))
    assert "--method s2net" in again["command"] and "--noise 0.0001" in again["command"]  # not chosen again
    swept = run(capsys, *whole, "--grid", "gamma=5,10", "--method", "s2net")
    assert "stopped by" in swept and "2 judged queries, without BM25" in swept
    assert refused(capsys, *words) == "--stop-by: expected --dev-queries as well, to stop by queries, got none"
    assert refused(capsys, *words, *files, "--method", "opca").startswith("--stop-by: expected a method in steps")
