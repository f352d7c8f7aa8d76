from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from experiments import kit
from experiments import report as command
from experiments.kit import judge, papers, records, report, report_ledger
from jaxsim.pictures import figures
from tests.experiments.test_records import ENVIRONMENT, made_up

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def place(tmp_path):
    """A results folder with four rows, the file and the folder to generate."""
    results = tmp_path / "experiments" / "results"
    groups = {"mdn": {"mrr": [0.5, 0.5]}, "astro": {"mrr": [0.25, 0.75]}}
    records.write(made_up(best_set=True, metrics_by_group=groups, metrics_naive={"mrr": [0.875, 0.875]}), results)
    records.write(
        made_up(row="log-tfidf", seeds=[], config={}, curve=[], metrics={"accuracy": 0.5, "mrr": 0.5}), results
    )
    records.write(made_up(row="s2net-gamma1", curve=[], notes=["a | b"]), results)
    records.write(
        made_up(
            experiment="speed", table="one-core", row="project", paper="none", seeds=[], metrics={}, curve=[],
            dataset={"name": "random", "sha256": None, "counts": {"m": 5000}, "groups": {}, "differs": "synthetic"},
            measurements=[
                {"name": "jaxsim, forward", "value": 0.0612, "unit": "s", "ratio": 1.25, "of": "SciPy CSR"},
                {"name": "torch, forward", "value": 0.1224, "unit": "s", "ratio": 2.0, "of": "jaxsim, forward"},
                {"name": "peak", "value": 812.0, "unit": "MB", "note": "above the embeddings"},
            ],
            limits=[{"name": "seconds", "value": 0.0612, "at_most": 0.05}, {"name": "GB", "value": 2, "at_least": 1}],
        ),
        results,
    )  # fmt: skip
    return results, tmp_path / "BENCHMARKS.md", tmp_path / "docs" / "figures"


def generate(*place, scripts=None):
    return report.generate(*place, scripts=scripts or {})


def check(*place, scripts=None):
    return report.check(*place, scripts=scripts or {})


def figures_of(files):
    return [path for path in files if path.suffix == ".svg"]


def table_rows(text, heading):
    section = text.split(heading, 1)[1].split("\n#", 1)[0]
    return [line for line in section.splitlines() if line.startswith("| ")][2:]


def test_rows_in_the_papers_order_with_its_figures(place):
    files = generate(*place)
    text = place[1].read_text()
    assert [path.name for path in files] == ["BENCHMARKS.md", "claims.json", "claims.md", "all.html", "made_up.md",
                                             "made_up-en-es.svg", "speed.md"]  # fmt: skip
    rows = table_rows(text, "### English–Spanish documentation, all sources")
    assert [re.match(r"\| \**([a-z0-9-]+)", row)[1] for row in rows] == ["log-tfidf", "opca", "s2net-gamma1"]
    assert rows[0] == "| log-tfidf | .4692 / .5383 | .5000 / .5000 |  |"
    assert rows[1] == ("| opca, k = 300 | .7255 / .7734 (k = 2000) | .6250 / .7500 ± .1768 (2) "
                       "| edge-of-grid (k +.2000), fewer-than-five-seeds |")  # fmt: skip
    assert "Not run: tf — / .1024; wbw .7033 / .7467; cca .6894 / .7378 (k = 1500);" in text
    page = (place[2].parent / "results" / "made_up.md").read_text()
    ours = ".6250 ± .1768 / .7500 ± .1768 (2) | -0.1005 / -0.0234"
    assert f"| opca, k = 300 | .7255 / .7734 (k = 2000) | {ours} |" in page
    assert "| cca (CCA) | .6894 / .7378 (k = 1500) | not run | — | — |" in page
    assert "- s2net-gamma1: a | b" in page


def test_pages_hold_data_groups_naive_split_speed_and_provenance(place):
    generate(*place)
    pages = place[2].parent / "results"
    page, speed = (pages / "made_up.md").read_text(), (pages / "speed.md").read_text()
    assert "Counts: train 60, test 20. Near-duplicates: groups 70. SHA-256 abababababab." in page
    assert "near-duplicates not grouped, opca scores — / .8750 ± .0000" in page
    assert "| mdn | 0.5000 |" in page and "](../figures/made_up-en-es.svg)" in page
    assert f"at commit {ENVIRONMENT['commit'][:12]}, jax 0.9, on cpu, made up, 2 cores." in page
    assert "| project | jaxsim, forward | 0.0612 s | 1.25 × | SciPy CSR |  |" in speed
    assert "| project | peak | 812 MB | — | — | above the embeddings |" in speed
    assert "| project | seconds | 0.0612 | at most 0.05 | **missed** |" in speed
    assert "# made_up" in page and "BENCHMARKS.md#made_up" in page


def test_pages_made_elsewhere_name_their_records_and_lead_back(place):
    mine = place[0].parent  # one folder above both
    generate(place[0], mine / "TABLES.md", mine / "pages" / "new" / "figures")
    page = mine / "pages" / "new" / "results" / "made_up.md"
    assert "from the records in `results/made_up`; [TABLES.md](../../../TABLES.md#made_up) has" in page.read_text()
    assert (page.parent / "../../../TABLES.md").is_file()
    generate(*place)
    page = place[2].parent / "results" / "made_up.md"
    assert "`experiments/results/made_up`; [BENCHMARKS.md](../../BENCHMARKS.md#made_up) has" in page.read_text()


def test_losses_and_missed_limits_stand_on_the_first_screen(place):
    generate(*place)
    text = place[1].read_text()
    first = text[: text.index("# Tables")]
    assert "| 0.80 | project, forward | SciPy CSR | speed, one-core |" in first
    assert "Faster in 1 other comparisons, by 2.00 to 2 times, in half of them by at most 2.00." in first
    assert "1 of 2 hold; missed: speed, one-core, project: seconds 0.0612, at most 0.05." in first
    assert "| 003: " in first and "0 of 76" in first and "Table 1: cplsa, jplsa" not in first
    assert "000: Learning" in first and "Table 1: all 6" in first and "pilsa" in first
    assert "No script states a claim yet." in first


def test_peers_are_won_and_lost_against_by_the_paired_test(place, rng):
    hard = rng.uniform(0.2, 0.8, 100)
    for row, shift, seconds in (("s2net", 0.0, 3.0), ("above", 0.05, 1.0), ("below", -0.05, 6.0), ("even", None, 3.0)):
        values = hard + (0.2 * rng.standard_normal(100) if shift is None else shift + 0.01 * rng.standard_normal(100))
        values = values - (values.mean() - hard.mean() if shift is None else 0)
        lines = [{"name": "training", "value": seconds, "unit": "s"}]
        records.write(made_up(experiment="peers", paper="none", row=row, seeds=[], measurements=lines, curve=[],
                              metrics={"mrr": float(values.mean())}), place[0], per_query={"mrr": values})  # fmt: skip
    generate(*place)
    line = next(line for line in place[1].read_text().splitlines() if line.startswith("| peers, en-es |"))
    cells = [cell.strip() for cell in line.split("|")[3:-1]]
    assert [re.sub(r" [+-].*", "", cell) for cell in cells[:3]] == ["below", "even", "above"]
    assert cells[3] == "training: above 3"
    assert place[1].read_text().split("## peers")[1].split("\n## ")[0].endswith("\nThere: en-es.\n")


def test_rows_are_bold_unless_they_differ_from_the_best_one(place, rng):
    base = rng.uniform(0.2, 0.6, 80)
    apart = rng.standard_normal(80)
    apart = 0.1 * (apart - apart.mean())
    rows = {"first": base + 0.01, "second": base + apart, "third": base - 0.1 + apart / 50}

    def write(names):
        for row in names:
            records.write(made_up(experiment="bold", row=row, seeds=[], curve=[],
                                  metrics={"mrr": float(rows[row].mean())}), place[0], per_query={"mrr": rows[row]})
        generate(*place)
        return place[1].read_text().split("## bold")[1].split("\n## ")[0]

    text = write(["first", "second"])
    assert "**" not in text and "No row differs from the best one by MRR." in text
    assert re.findall(r"\| \*\*(\w+)", write(rows)) == ["first", "second"]


def test_of_the_tables_beside_one_of_a_paper_the_first_is_shown(place):
    records.write(made_up(table="docstrings"), place[0])
    generate(*place)
    text = place[1].read_text()
    assert text.count("\n### ") == 1 and "Also there: en-es.\n" in text.split("## made_up")[1]
    assert "5 of 5 records were written before a record held its preset" in text


def test_equal_figures_are_listed(place):
    records.write(made_up(row="cca"), place[0])
    records.write(made_up(table="en-es-human"), place[0])
    generate(*place)
    text = place[1].read_text()
    assert "- made_up, en-es: cca = opca = s2net-gamma1" in text
    assert "- made_up: en-es = en-es-human in 1 of 1 rows (opca)" in text


def scripts(*claims, settings=None):
    plan = kit.Plan({}, {"full": settings or {"k": 5}})
    return {"made_up": kit.Experiment("made_up", "About.", None, {"en-es": plan}, list(claims))}


def test_rows_and_tables_of_the_script_without_a_record_are_named(place):
    rows = dict.fromkeys(("opca", "log-tfidf", "s2net-gamma1", "late", "wide", "far"))
    plan = kit.Plan(rows, {"full": {"k": 5}}, needs={"wide": "preset large", "opca": "a program"})
    tables = {"en-es": plan, "en-fr": kit.Plan(rows, {"full": {}}), "paper": kit.Plan(rows, {"large": {}})}
    given = {"scripts": {"made_up": kit.Experiment("made_up", "About.", None, tables)}}
    generate(*place, **given)
    page = place[2].parent / "results" / "made_up.md"
    assert "\n\nRows of the script without a record: late, far; wide (preset large).\n\n" in page.read_text()
    assert page.read_text().endswith("\nTables of the script without a record: en-fr, paper (preset large).\n")
    for name in ("late", "wide", "far"):
        records.write(made_up(row=name, curve=[]), place[0])
    given["scripts"]["made_up"] = kit.Experiment("made_up", "About.", None, {"en-es": plan})
    generate(*place, **given)
    assert "without a record" not in page.read_text()


def test_figures_of_others_stand_beside_a_table_and_are_no_rows_of_the_paper(place, monkeypatch):
    table = papers.TABLES["002 Table 2"]
    other = papers.PaperRow("far", "Far", (None, 0.75), spread=(None, 0.0125), source="Somebody")
    monkeypatch.setitem(papers.TABLES, "002 Table 2", table._replace(others=(other,)))
    generate(*place)
    page = place[2].parent / "results" / "made_up.md"
    assert "| far (Far) | — / .7500 ± .0125 (Somebody) | not run | — | — |" in page.read_text()
    assert "far — / .7500 ± .0125 (Somebody)." in place[1].read_text()
    assert "far" not in report_ledger.coverage({})
    records.write(made_up(row="far", curve=[], config={}), place[0])
    generate(*place)
    line = "| far | — / .7500 ± .0125 (Somebody) | .6250 ± .1768 / .7500 ± .1768 (2) | — / +0.0000 |"
    assert line in page.read_text()


def test_a_table_that_cannot_differ_from_another_is_not_called_unbuilt():
    line = next(line for line in report_ledger.coverage({}).splitlines() if line.startswith("| 003"))
    assert "Table 10: its rows cannot differ from those of Table 9 here" in line and "Table 11: all 6" in line


def test_the_ledger_stands_first_and_in_a_file(place):
    claim = kit.Claim("002-opca-x", sentence="opca is above x", place="002 §3, Table 2", tables=("en-es", "en-fr"),
                      better="opca", worse="log-tfidf", metric="mrr", printed={"opca": 0.7734}, equal=("k",),
                      why={"en-es": "made up"})  # fmt: skip
    given = {"scripts": scripts(claim)}
    generate(*place, **given)
    text, (entry, other) = place[1].read_text(), json.loads((place[0] / "claims.json").read_text())
    assert entry["verdict"] == "not supported" and entry["why"] == "made up" and other["verdict"] == "not run"
    assert entry["tests"]["paired"]["test"] == "t over seeds alone"
    line = next(line for line in text.splitlines() if line.startswith("| 002 Table 2 (1) |"))
    assert "[opca is above x](docs/results/claims.md#002-opca-x) | .7734 / — MRR | en-es .7500 / .5000 | p = " in line
    assert line.endswith("| **not supported** | 0 | 0 | 1 | **1** |")
    page = (place[2].parent / "results" / "claims.md").read_text()
    line = [line for line in page.splitlines() if line.startswith("| [opca is above x]")][-1]
    assert ".7734 / — MRR | en-es .7500 / .5000 | t over seeds alone" in line
    assert line.endswith("**not supported** in 1 (en-es); not run in 1 |")
    assert "| en-es | +0.2500, p = " in page
    assert page.index("no clear difference; one of ") < page.index("## All claims")
    assert '<a id="002-opca-x"></a>' in page and "| not supported | made up |" in page
    assert check(*place, **given) == []
    (place[0] / "claims.json").write_text("[]")
    assert len(check(*place, **given)) == 1


def test_the_check_fails_on_records_older_than_their_script(place):
    generate(*place, scripts=scripts())
    assert check(*place, scripts=scripts()) == []  # without a preset there is nothing to compare
    records.write(made_up(row="cca", preset={"name": "full", "settings": {"k": 4}}), place[0])
    generate(*place, scripts=scripts())
    (line,) = check(*place, scripts=scripts())
    assert line.endswith("cca.json: preset.settings.k: expected 5, as in the script, got 4")
    assert re.search(r"\| \**cca, .* stale \|", place[1].read_text())


def test_pages_of_quick_records_say_so_and_hold_no_reasons_written_for_others(place):
    claim = kit.Claim("002-opca-x", sentence="opca is above x", place="002 §3, Table 2", tables=("en-es",),
                      better="opca", worse="log-tfidf", metric="mrr", why={"en-es": "made up"})  # fmt: skip
    generate(*place, scripts=scripts(claim))
    details = place[2].parent / "results"
    pages = (place[1], details / "claims.md", details / "made_up.md", details / "all.html")
    assert not any("Not results" in path.read_text() for path in pages)
    records.write(made_up(preset={"name": "quick", "settings": {"k": 5}}), place[0])
    generate(*place, scripts=scripts(claim))
    for path, of in zip(pages, (4, 4, 3, 4), strict=True):
        assert f"Not results{'' if path.suffix == '.html' else '**'}: 1 of {of} records are of the preset" in \
            path.read_text().split("## ")[0][:3000]  # fmt: skip
    assert "Not results" not in (details / "speed.md").read_text()
    (entry,) = json.loads((place[0] / "claims.json").read_text())
    assert entry["verdict"] == "not supported" and entry["why"] == judge.UNWRITTEN


def test_training_curves_are_drawn_of_the_records_that_have_a_history(place):
    fit = {"loss": 0.1, "grad_norm": 0.01, "converged": False, "steps": 1}
    history = {"step": [0, 1], "loss": [0.5, 0.1], "validation": [0.6, 0.7]}
    records.write(made_up(row="s2net", fit={**fit, "history": history}), place[0])
    records.write(made_up(row="s2net-tanh", fit={**fit, "history": {"step": [0, 1], "loss": [None, 0.1]}}), place[0])
    files = generate(*place)
    figures, page = figures_of(files), place[2].parent / "results" / "made_up.md"
    assert [path.name for path in figures] == ["made_up-en-es.svg", "made_up-en-es-training.svg"]
    assert "![Training curves: made_up, en-es](../figures/made_up-en-es-training.svg)" in page.read_text()
    drawn = figures[1].read_bytes()
    assert b">s2net<" in drawn and b"opca" not in drawn and b"MRR (development set)" in drawn
    assert check(*place) == []
    records.write(made_up(row="s2net", fit=fit), place[0])
    assert f"{figures[1]}: no record asks for this file" in check(*place)
    generate(*place)
    assert not figures[1].exists() and "Training curves" not in page.read_text()


def test_time_to_quality_is_drawn_of_curves_over_seconds(place):
    curve = [{"seconds": 2.0, "mrr": 0.5, "split": "dev"}, {"seconds": 4.0, "mrr": 0.25}, {"seconds": 8.0, "mrr": 0.75}]
    records.write(made_up(experiment="peers", paper="none", curve=curve), place[0])
    quick = [{"seconds": 0.5, "mrr": 0.625, "split": "dev"}]
    records.write(made_up(experiment="peers", paper="none", row="lsa", curve=quick), place[0])
    drawn = {path.name: path.read_bytes() for path in generate(*place)}
    series = {"lsa": [(0.5, 0.625), (8.0, 0.625)], "opca": [(2.0, 0.5), (4.0, 0.5), (8.0, 0.75)]}
    labels = "seconds of training, from raw texts", "best MRR so far (development set)"
    title = "peers: English–Spanish documentation, all sources"
    expected = figures.panels([figures.Panel(series, *labels, xscale="log")], title=title)
    assert drawn["peers-en-es-seconds.svg"] == expected and "peers-en-es.svg" not in drawn


def test_time_to_quality_of_judged_rankings_is_by_ndcg(place):
    curve = [{"seconds": 2.0, "ndcg@10": 0.5, "split": "dev"}, {"seconds": 4.0, "ndcg@10": 0.75}]
    records.write(made_up(experiment="peers", paper="none", curve=curve), place[0])
    drawn = {path.name: path.read_bytes() for path in generate(*place)}["peers-en-es-seconds.svg"]
    assert b"best nDCG@10 so far" in drawn and b"MRR" not in drawn


def test_map_is_drawn_against_training_links(place):
    def curved(row, *points):
        facts = [{"links": size, "map": value, "split": split} for size, value, split in points]
        records.write(made_up(experiment="links", paper="none", row=row, curve=facts), place[0])

    curved("ssi", (200, 0.5, "test"), (100, 0.25, "test"), (100, 0.75, "dev"))
    curved("tfidf", (100, 0.125, "test"), (200, 0.125, "test"))
    curved("alone", (200, 0.5, "test"))
    drawn = {path.name: path.read_bytes() for path in generate(*place)}
    series = {"tfidf": [(100, 0.125), (200, 0.125)], "ssi": [(100, 0.25), (200, 0.5)]}
    expected = figures.lines(series, title="links: English–Spanish documentation, all sources",
                                    xlabel="training links", ylabel="MAP (test set)")
    assert drawn["links-en-es-links.svg"] == expected
    page = (place[2].parent / "results" / "links.md").read_text()
    assert "![MAP against training links: links, en-es](../figures/links-en-es-links.svg)" in page


def test_roc_curves_are_those_beside_the_records(place):
    rates = {"roc_fpr": np.array([0.0, 0.1, 0.2]), "roc_tpr": np.array([0.0, 0.5, 0.75])}
    given = {"experiment": "ads", "paper": "000 Table 2", "curve": []}
    records.write(made_up(**given, row="tfidf"), place[0], per_query=rates)
    records.write(made_up(**given, row="ours"), place[0], per_query=rates)  # no row of the paper
    drawn = {path.name: path.read_bytes() for path in generate(*place)}["ads-en-es-roc.svg"]
    panel = figures.Panel({"tfidf": [(0.0, 0.0), (0.1, 0.5), (0.2, 0.75)]}, "false-positive rate", "true-positive rate")
    title = "ads: English–Spanish documentation, all sources"
    assert figures.same(drawn, figures.panels([panel], title=title))


def test_queries_are_drawn_of_the_best_row_of_ssi(place):
    values = {"tfidf": [0.0, 0.5, 1.0], "lsa": [0.25, 0.5, 0.75], "ssi-sym": [0.5, 0.5, 0.5],
              "ssi-asym": [1.0, 0.5, 0.75], "ssi-asym-d": [1.0, 1.0, 1.0]}  # the last is no row of the paper
    for row, map_ in values.items():
        records.write(made_up(experiment="links", paper="003 Table 1", row=row, curve=[], seeds=[],
                              metrics={"map": float(np.mean(map_))}), place[0], per_query={"map": np.array(map_)})
    drawn = {path.name: path.read_bytes() for path in generate(*place)}["links-en-es-queries.svg"]
    best = list(values["ssi-asym"])
    expected = [figures.Panel({"queries": list(zip(values[row], best, strict=True))},
                              f"{row}: ssi-asym is above for 33%, level for {level}%", "ssi-asym")
                for row, level in (("tfidf", 33), ("lsa", 67))]
    title = "links: English–Spanish documentation, all sources\naverage precision of test queries"
    assert figures.same(drawn, figures.scatter(expected, title=title))
    page = (place[2].parent / "results" / "links.md").read_text()
    assert "![Average precision, query by query: links, en-es](../figures/links-en-es-queries.svg)" in page
    with pytest.raises(ValueError, match="axes: expected at least one panel with points"):
        figures.scatter([], title="empty")


def test_a_scatter_plot_of_many_queries_has_some_of_them(place):
    for row in ("tfidf", "ssi-asym"):
        records.write(made_up(experiment="links", paper="003 Table 1", row=row, curve=[], seeds=[],
                              metrics={"map": 0.5}), place[0], per_query={"map": np.full(1001, 0.5)})
    drawn = {path.name: path.read_bytes() for path in generate(*place)}["links-en-es-queries.svg"]
    assert 400 < drawn.count(b"<use") < 600


def test_half_ties_stand_below_a_table_that_does_not_show_them(place):
    given = {"experiment": "links", "curve": [], "seeds": []}
    for row, half in (("tfidf", {"rank_loss@half": 0.25}), ("ssi-asym", {})):
        for paper in ("003 Table 1", "none"):
            records.write(made_up(**given, paper=paper, table=paper[-1], row=row,
                                  metrics={"map": 0.5, "rank_loss": 0.5, **half}), place[0])
    generate(*place)
    page = (place[2].parent / "results" / "links.md").read_text()
    assert page.count("\nRank loss with ties as half an error, of newer records: tfidf .2500.\n") == 1
    assert "Each cell: MAP / rank_loss / rank_loss@half." in page and "| .5000 / .5000 / — |" in page


def test_check_lists_what_differs(place):
    generate(*place)
    assert check(*place) == []
    results, benchmarks, figures = place
    figure = figures / "made_up-en-es.svg"
    good = benchmarks.read_text()
    benchmarks.write_text(good.replace(".7500", ".7600", 1))
    (result,) = check(*place)
    assert re.search(r"BENCHMARKS.md: line \d+: expected .*\.7500", result)
    benchmarks.write_text(good + "more\n")
    assert "lines, got" in check(*place)[0]
    benchmarks.unlink()
    figure.write_bytes(figure.read_bytes().replace(b"<path", b"<path ", 1))
    assert check(*place) == [f"{benchmarks}: missing", f"{figure}: not the figure that the records give"]
    records.write(made_up(curve=[]), results)
    assert f"{figure}: no record asks for this file" in check(*place)
    generate(*place)
    assert check(*place) == []
    assert not figure.exists()


def test_figures_of_others_stay(place):
    figures = place[2]
    figures.mkdir(parents=True)
    (figures / "drawing.svg").write_text("<svg/>")
    generate(*place)
    assert check(*place) == []
    assert (figures / "drawing.svg").is_file()


def test_figure_is_stable_undated_and_transparent():
    series = {"opca": [(100, 0.5), (300, 0.7)], "s2net": [(100, 0.6), (300, 0.75)]}
    labels = {"title": "t", "xlabel": "k", "ylabel": "MRR"}
    first = figures.lines(series, **labels)
    assert first == figures.lines(series, **labels)
    assert b"<dc:date>" not in first
    assert b"#ffffff" not in first.lower()
    assert b"opca" in first


def test_figure_of_another_version_is_compared_by_its_data():
    labels = {"title": "t", "xlabel": "k", "ylabel": "MRR"}
    first = figures.lines({"opca": [(100, 0.5), (300, 0.7)]}, **labels)
    newer = re.sub(rb"Matplotlib v[0-9.]+", b"Matplotlib v99.0", first) + b"\n"
    other = figures.lines({"opca": [(100, 0.5), (300, 0.8)]}, **labels)
    assert figures.same(first, newer)
    assert not figures.same(first, first + b"\n")
    clips = dict.fromkeys(re.findall(rb"\bp[0-9a-f]{10}\b", first))
    renamed = re.sub(rb"\bp[0-9a-f]{10}\b", lambda name: b"p%010x" % list(clips).index(name[0]), first)
    assert clips and renamed != first and figures.same(first, renamed)
    assert not figures.same(newer, other)


def test_records_of_other_data_do_not_share_a_table(place):
    other = {**made_up()["dataset"], "sha256": "cd" * 32}
    records.write(made_up(row="cca", dataset=other), place[0])
    rows = "(opca|log-tfidf|s2net-gamma1)"
    with pytest.raises(ValueError, match=rf"{rows}\.json: dataset\.sha256: expected that of .*, got [abcd]{{64}}"):
        generate(*place)
    assert not place[1].exists()


def test_two_papers_do_not_share_a_table(place):
    records.write(made_up(row="tf", paper="000 Table 1"), place[0])
    with pytest.raises(ValueError, match=r"paper: expected .* as in .*, got '000 Table 1'"):
        check(*place)


def test_two_points_at_one_dimension_are_refused(place):
    curve = [{"k": 5, "mrr": 0.5}, {"k": 5, "mrr": 0.6}]
    records.write(made_up(row="cca", curve=curve), place[0])
    with pytest.raises(ValueError, match=r"cca\.json: curve: expected one point a size with mrr, got two at one k"):
        generate(*place)


def test_paper_figures_are_fractions_one_for_each_metric():
    assert set(papers.CITATIONS) == {"000", "001", "002", "003", "004", "pilsa", "completion"}
    for name, table in papers.TABLES.items():
        assert set(table.metrics) <= set(records.METRICS)
        assert len({row.row for row in table.rows}) == len(table.rows), name
        for row in table.rows:
            for metric, figure in zip(table.metrics, row.figures, strict=True):
                assert figure is None or 0 <= figure <= 1 or metric == "perplexity", (name, row.row)
    assert papers.TABLES["002 Table 2"].rows[1].figures == (None, 0.1024)


def test_printed_tables_are_checked(tmp_path):
    path = tmp_path / "papers.toml"
    row = 'rows = [{row = "x", label = "X", figures = %s}]'
    table = '[tables."9 Table 1"]\ntitle = "a"\ndata = "b"\nmetrics = ["mrr"]\n' + row
    path.write_text('[citations]\n"9" = "c"\n' + table % "[0.5, 0.6]")
    with pytest.raises(ValueError, match=r"9 Table 1: expected 1 figures a row, got others: \['x'\]"):
        papers.read(path)
    others = '\nothers = [{row = "y", label = "Y", figures = [0.5]}]'
    path.write_text('[citations]\n"9" = "c"\n' + table % "[0.5]" + others)
    with pytest.raises(ValueError, match=r"9 Table 1: expected a source of every row of others, got none: \['y'\]"):
        papers.read(path)
    path.write_text('[citations]\n"8" = "c"\n' + table % "[0.5]")
    with pytest.raises(ValueError, match=r"9 Table 1: expected a paper of \[citations\], got 9"):
        papers.read(path)


def test_command_line_compares_and_names_damaged_files(place, capsys):
    results, benchmarks, figures = map(str, place)
    options = ["--results", results, "--benchmarks", benchmarks, "--figures", figures]
    assert command.main(["--check", *options]) == 1
    assert f"{benchmarks}: missing" in capsys.readouterr().out
    assert command.main(options) == 0
    assert command.main(["--check", *options]) == 0
    path = place[0] / "made_up" / "en-es" / "opca.json"
    path.write_bytes(path.read_bytes()[:100])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stopped:
        command.main(options)
    assert stopped.value.code == 2 and f"error: {path}: expected a JSON record" in capsys.readouterr().err


@pytest.mark.programs
@pytest.mark.skipif(not (ROOT / "experiments" / "results").is_dir(), reason="an installation without the checkout")
def test_committed_tables_are_those_of_the_committed_records():
    done = subprocess.run(
        [sys.executable, str(ROOT / "experiments" / "report.py"), "--check"], capture_output=True, text=True
    )
    assert done.stdout == ""
    assert done.returncode == 0, done.stderr
