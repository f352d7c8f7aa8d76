"""The scale rows at tiny sizes: the form of the records, the fits, the figure; never a time."""

from __future__ import annotations

import json

import pytest

from experiments.kit import records, report, report_scale
from jaxsim.optim import Fit
from jaxsim.train import estimate

RATES = estimate.Rates(1e11, 4e-9, 2e-10, 1e-9, 3e-11, 3e-9, 1e-5)


@pytest.fixture
def rows(monkeypatch):
    """The rows without peers; every point takes as long as is predicted for it, and half its rate is reached."""
    from experiments.scale import rows as scale_rows

    def point(sizes, m, k, *, policy=None, devices=1, iterations=None):
        training = estimate.Training(pairs=m, terms=sizes.num_terms, dim=k, words=sizes.per_doc)
        seconds = estimate.seconds(training, RATES)["iteration"]
        return {"m": m, "k": k, "devices": devices, "products": policy or "default", "iteration_s": seconds,
                "evaluations": 1.0, "predicted_s": seconds, "gflops": 50.0, "rate_gflops": 100.0, "share": 0.5,
                "loss": 0.25, "predicted_gb": 4.0, "peak_gb": 5.0}

    monkeypatch.setattr(scale_rows, "installed", lambda name: None)
    monkeypatch.setattr(scale_rows, "point", point)
    monkeypatch.setattr(scale_rows, "alone", lambda preset, m, k, **options: point(scale_rows.PRESETS[preset], m, k,
                                                                                   **options))
    return scale_rows


def held(limit):
    return limit["value"] <= limit.get("at_most", float("inf")) and limit["value"] >= limit.get("at_least", 0)


def record(sheet, curve, row=None):
    return records.new(
        experiment="scale", paper="none", table="cpu", row=row or sheet.row,  curve=curve,
        config=sheet.config, dataset=sheet.dataset, metrics={}, environment=records.environment(),
        **sheet.fields(),
    )


@pytest.fixture
def made(rows):
    """Records of the rows that are made of points, at the sizes of the full preset."""
    sizes = rows.PRESETS["full"]
    result = [record(*rows.ROWS[name](sizes, "full", 2)) for name in
              ("s2net-documents", "s2net-dimensions", "s2net-devices", "s2net-paper")]
    return {f"scale/cpu/{one['row']}.json": one for one in result}


def test_rows_of_points_are_judged_by_their_records(made):
    documents, paper = (made[f"scale/cpu/{name}.json"] for name in ("s2net-documents", "s2net-paper"))
    assert [point["m"] for point in documents["curve"]] == [1_000, 2_000, 5_000, 10_000, 20_000]
    assert documents["limits"] and all(held(limit) for limit in documents["limits"])
    (large,) = paper["curve"]
    assert (large["m"], large["k"]) == (43_380, 1_000)
    assert {"name": "GB", "value": 5.0, "at_most": 6.0} in paper["limits"]
    assert any(line.get("of") == "the paper's 48 minutes" for line in paper["measurements"])


def test_a_miss_is_in_the_limits(rows, monkeypatch):
    point = rows.point
    monkeypatch.setattr(rows, "alone", lambda preset, m, k, **options: point(
        rows.PRESETS[preset], m, k, **options) | {"iteration_s": 151.0, "peak_gb": 6.5})
    sheet, _ = rows.paper(rows.PRESETS["full"], "full", 2)
    missed = {limit["name"]: limit["value"] for limit in sheet.limits if not held(limit)}
    assert missed == {"s an iteration": 151.0, "GB": 6.5}


def test_fits_find_the_power_and_the_constant(rows):
    assert rows.slope([(10, 5.0), (100, 50.0), (1000, 500.0)]) == pytest.approx(1)
    constant, square = rows.quadratic([(m, 3.0 + 2e-6 * m**2) for m in (100, 1_000, 10_000)])
    assert (constant, square) == (pytest.approx(3.0), pytest.approx(2e-6))


def test_a_point_leaves_the_iterations_out_that_compile(monkeypatch):
    from experiments.scale import points as scale_points

    asked = {}

    def fit(left, right, **settings):
        asked.update(settings, pairs=left.num_docs)
        history = [{"seconds": s, "evaluations": e} for s, e in ((1.0, 1), (9.0, 2), (12.0, 4), (12.5, 5), (13.0, 6))]
        return Fit(settings["init"], 0.5, 0.1, False, 4, 6, history)

    monkeypatch.setattr(scale_points.estimate, "measure", lambda training: RATES)
    monkeypatch.setattr(scale_points, "square_rate", lambda side, policy: 1e12)
    monkeypatch.setattr(scale_points.s2net, "fit", fit)
    sizes = scale_points.PRESETS["quick"]
    result = scale_points.point(sizes, 60, 8, policy="tf32")
    assert json.loads(json.dumps(result)) == result
    assert (asked["pairs"], asked["precision"], asked["max_iter"], asked["mesh"]) == (60, "tf32", 3, None)
    assert (result["iteration_s"], result["evaluations"]) == (0.5, 1.0)
    assert result["gflops"] == pytest.approx(6 * 60**2 * 8 / 0.5 / 1e9)
    assert result["share"] == pytest.approx(result["gflops"] / result["rate_gflops"]) and result["peak_gb"] > 0


@pytest.mark.parametrize("name", ["encode", "search"])
def test_rows_beside_other_programs_say_who_is_missing(rows, name):
    sheet, curve = rows.ROWS[name](rows.PRESETS["quick"], "quick", 1)
    assert "limits" not in record(sheet, curve)
    assert sum("not measured" in line.get("note", "") for line in sheet.lines) == 1


def test_the_report_draws_cost_against_work_and_says_what_is_not_yet_run(made, tmp_path):
    results = tmp_path / "results"
    for one in made.values():
        records.write(one, results, allow_dirty=True)
    place = results, tmp_path / "BENCHMARKS.md", tmp_path / "docs" / "figures"
    files = report.generate(*place, scripts={})
    text = (tmp_path / "docs" / "results" / "scale.md").read_text()
    assert "## On a CPU" in text and "| s2net-paper | an iteration, default |" in text
    assert "## On a GPU\n\nNot yet run: `python -m experiments.scale.scale --preset gpu`" in text
    figure = next(path for path in files if path.suffix == ".svg")
    assert figure.name == "scale-cpu-cost.svg" and "(../figures/scale-cpu-cost.svg)" in text
    drawn = figure.read_text()
    for label in ("paper: 48 minutes", "s2net-documents: exponent ", "dimension k", "devices", "s2net-paper"):
        assert label in drawn
    assert report.check(*place, scripts={}) == []


def test_no_figure_without_seconds(made):
    (first, *_) = made.values()
    assert report_scale.figure("title", {"a": {**first, "curve": [{"k": 3, "mrr": 0.5}]}}) is None
    assert report_scale.waiting(set(report_scale.TABLES)) == ""
