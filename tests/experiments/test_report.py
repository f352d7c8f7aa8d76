from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments import report as command
from experiments.kit import papers, records, report
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
    records.write(made_up(row="s2net-gamma1", curve=[], status="off: a | b"), results)
    records.write(
        made_up(
            experiment="speed", table="one-core", row="project", paper="none", seeds=[], metrics={}, curve=[],
            dataset={"name": "random", "sha256": None, "counts": {"m": 5000}, "groups": {}, "differs": "synthetic"},
            measurements=[
                {"name": "forward", "value": 0.0612, "unit": "s", "ratio": 0.4, "of": "SciPy CSR"},
                {"name": "peak", "value": 812.0, "unit": "MB", "note": "above the embeddings"},
            ],
        ),
        results,
    )  # fmt: skip
    return results, tmp_path / "BENCHMARKS.md", tmp_path / "docs" / "figures"


def table_rows(text, heading):
    section = text.split(heading, 1)[1].split("\n#", 1)[0]
    return [line for line in section.splitlines() if line.startswith("| ")][2:]


def test_rows_in_the_papers_order_with_its_figures(place):
    files = report.generate(*place)
    text = place[1].read_text()
    assert [path.name for path in files] == ["BENCHMARKS.md", "made_up-en-es.svg"]
    rows = table_rows(text, "### English–Spanish documentation, all sources")[:10]
    names = [re.match(r"\| \**([a-z0-9-]+)", row)[1] for row in rows]
    printed = [row.row for row in papers.TABLES["002 Table 2"].rows]
    assert names[: len(printed)] == printed
    assert names[len(printed)] == "s2net-gamma1"
    opca = rows[printed.index("opca")]
    assert opca == (
        "| **opca, k = 300** | 0.7255 / 0.7734 (k = 2000) | **0.6250 ± 0.1768 / 0.7500 ± 0.1768 (2)** "
        "| -0.1005 / -0.0234 | substitute | reproduced | [json](experiments/results/made_up/en-es/opca.json) |"
    )
    assert rows[printed.index("cca")] == "| cca (CCA) | 0.6894 / 0.7378 (k = 1500) | not run | — | — | — | — |"
    assert "| 0.5000 / 0.5000 |" in rows[0]
    assert r"off: a \| b" in rows[-1]


def test_sections_hold_data_groups_naive_split_speed_and_provenance(place):
    report.generate(*place)
    text = place[1].read_text()
    assert "Counts: train 60, test 20. Near-duplicates: groups 70. SHA-256 abababababab." in text
    assert "near-duplicates not grouped, opca scores — / 0.8750 ± 0.0000" in text
    assert "| mdn | 0.5000 |" in text
    assert "| project | forward | 0.0612 s | 0.4 × | SciPy CSR |  | reproduced |" in text
    assert "| project | peak | 812 MB | — | — | above the embeddings |  |  |" in text
    assert f"at commit {ENVIRONMENT['commit'][:12]}, jax 0.9, on cpu, made up, 2 cores." in text
    assert "](docs/figures/made_up-en-es.svg)" in text
    assert "### 000 Table 1" in text, "a printed table without records stays"


def test_training_curves_are_drawn_of_the_records_that_have_a_history(place):
    fit = {"loss": 0.1, "grad_norm": 0.01, "converged": False, "steps": 1}
    history = {"step": [0, 1], "loss": [0.5, 0.1], "validation": [0.6, 0.7]}
    records.write(made_up(row="s2net", fit={**fit, "history": history}), place[0])
    records.write(made_up(row="s2net-tanh", fit={**fit, "history": {"step": [0, 1], "loss": [None, 0.1]}}), place[0])
    files = report.generate(*place)
    assert [path.name for path in files[1:]] == ["made_up-en-es.svg", "made_up-en-es-training.svg"]
    assert "![Training curves: made_up, en-es](docs/figures/made_up-en-es-training.svg)" in place[1].read_text()
    drawn = files[2].read_bytes()
    assert b">s2net<" in drawn and b"opca" not in drawn and b"MRR (development set)" in drawn
    assert report.check(*place) == []
    records.write(made_up(row="s2net", fit=fit), place[0])
    assert f"{files[2]}: no record asks for this figure" in report.check(*place)
    report.generate(*place)
    assert not files[2].exists() and "Training curves" not in place[1].read_text()


def test_time_to_quality_is_drawn_of_curves_over_seconds(place):
    curve = [{"seconds": 2.0, "mrr": 0.5, "split": "dev"}, {"seconds": 4.0, "mrr": 0.25}, {"seconds": 8.0, "mrr": 0.75}]
    records.write(made_up(experiment="peers", paper="none", curve=curve), place[0])
    quick = [{"seconds": 0.5, "mrr": 0.625, "split": "dev"}]
    records.write(made_up(experiment="peers", paper="none", row="lsa", curve=quick), place[0])
    drawn = {path.name: path.read_bytes() for path in report.generate(*place)}
    series = {"lsa": [(0.5, 0.625), (8.0, 0.625)], "opca": [(2.0, 0.5), (4.0, 0.5), (8.0, 0.75)]}
    labels = "seconds of training, from raw texts", "best MRR so far (development set)"
    title = "peers: English–Spanish documentation, all sources"
    expected = figures.panels([figures.Panel(series, *labels, xscale="log")], title=title)
    assert drawn["peers-en-es-seconds.svg"] == expected and "peers-en-es.svg" not in drawn


def test_time_to_quality_of_judged_rankings_is_by_ndcg(place):
    curve = [{"seconds": 2.0, "ndcg@10": 0.5, "split": "dev"}, {"seconds": 4.0, "ndcg@10": 0.75}]
    records.write(made_up(experiment="peers", paper="none", curve=curve), place[0])
    drawn = {path.name: path.read_bytes() for path in report.generate(*place)}["peers-en-es-seconds.svg"]
    assert b"best nDCG@10 so far" in drawn and b"MRR" not in drawn


def test_map_is_drawn_against_training_links(place):
    def curved(row, *points):
        told = [{"links": size, "map": value, "split": split} for size, value, split in points]
        records.write(made_up(experiment="links", paper="none", row=row, curve=told), place[0])

    curved("ssi", (200, 0.5, "test"), (100, 0.25, "test"), (100, 0.75, "dev"))
    curved("tfidf", (100, 0.125, "test"), (200, 0.125, "test"))
    curved("alone", (200, 0.5, "test"))
    drawn = {path.name: path.read_bytes() for path in report.generate(*place)}
    series = {"tfidf": [(100, 0.125), (200, 0.125)], "ssi": [(100, 0.25), (200, 0.5)]}
    expected = figures.lines(series, title="links: English–Spanish documentation, all sources",
                                    xlabel="training links", ylabel="MAP (test set)")
    assert drawn["links-en-es-links.svg"] == expected
    assert "![MAP against training links: links, en-es](docs/figures/links-en-es-links.svg)" in place[1].read_text()


def test_check_lists_what_differs(place):
    report.generate(*place)
    assert report.check(*place) == []
    results, benchmarks, figures = place
    figure = figures / "made_up-en-es.svg"
    good = benchmarks.read_text()
    benchmarks.write_text(good.replace("0.7500", "0.7600", 1))
    (found,) = report.check(*place)
    assert re.search(r"BENCHMARKS.md: line \d+: expected .*0\.7500", found)
    benchmarks.write_text(good + "more\n")
    assert "lines, got" in report.check(*place)[0]
    benchmarks.unlink()
    figure.write_bytes(figure.read_bytes().replace(b"<path", b"<path ", 1))
    assert report.check(*place) == [f"{benchmarks}: missing", f"{figure}: not the figure that the records give"]
    records.write(made_up(curve=[]), results)
    assert f"{figure}: no record asks for this figure" in report.check(*place)
    report.generate(*place)
    assert report.check(*place) == []
    assert not figure.exists()


def test_figures_of_others_stay(place):
    figures = place[2]
    figures.mkdir(parents=True)
    (figures / "drawing.svg").write_text("<svg/>")
    report.generate(*place)
    assert report.check(*place) == []
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
    assert not figures.same(newer, other)


def test_records_of_other_data_do_not_share_a_table(place):
    other = {**made_up()["dataset"], "sha256": "cd" * 32}
    records.write(made_up(row="cca", dataset=other), place[0])
    rows = "(opca|log-tfidf|s2net-gamma1)"
    with pytest.raises(ValueError, match=rf"{rows}\.json: dataset\.sha256: expected that of .*, got [abcd]{{64}}"):
        report.generate(*place)
    assert not place[1].exists()


def test_two_papers_do_not_share_a_table(place):
    records.write(made_up(row="tf", paper="000 Table 1"), place[0])
    with pytest.raises(ValueError, match=r"paper: expected .* as in .*, got '000 Table 1'"):
        report.check(*place)


def test_two_points_at_one_dimension_are_refused(place):
    curve = [{"k": 5, "mrr": 0.5}, {"k": 5, "mrr": 0.6}]
    records.write(made_up(row="cca", curve=curve), place[0])
    with pytest.raises(ValueError, match=r"cca\.json: curve: expected one point a size with mrr, got two at one k"):
        report.generate(*place)


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
