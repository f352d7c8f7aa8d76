"""Rows that translate word by word, graded candidates and classes across languages, on data made here."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse

from experiments import kit
from experiments.ads import yih2011_ads
from experiments.classes import platt2010_classes
from experiments.kit import papers, report_ledger
from experiments.mates import platt2010
from jaxsim import sparse
from jaxsim.data import pairs
from jaxsim.data.labelled_pairs import LabelledPairs
from jaxsim.evaluate import mates
from jaxsim.methods.projections import Projection

pytestmark = pytest.mark.programs


def parallel_pages(number=60, seed=0):
    """Pages of three lines; word i of one language is word i of the other, in the other order."""
    rng = np.random.default_rng(seed)
    left, right = [], []
    for _ in range(number):
        lines = [rng.integers(80, size=rng.integers(4, 9)) for _ in range(3)]
        left.append("\n".join(" ".join(f"uno{i}x" for i in line) for line in lines))
        right.append("\n".join(" ".join(f"due{i}y" for i in line[::-1]) for line in lines))
    return pairs.make("made", map(str, range(number)), left, right, languages=("en", "it"))


@pytest.fixture
def table(tmp_path):
    made = parallel_pages()
    task = mates.from_pairs(made, drop_top=0)
    sizes = {part: len(rows) for part, rows in task.rows.items()}
    content = SimpleNamespace(pairs=made, task=task, sizes=sizes)
    data = kit.Data(content, name="made", sha256=None, differs="synthetic", counts=sizes)
    return kit.Table("made", "made", platt2010.QUICK, "quick", data, tmp_path, kit.Fits(tmp_path / "cache", say=str))


def test_documents_without_a_word_in_common_are_found_word_by_word(table):
    bare = platt2010.log_tf_idf(table).per_query[0]["mrr"].mean()
    for name in ("wbw", "wbw-ibm1", "wbw-best", "wbw-lsa"):
        row = platt2010.ROWS[name](table)
        assert row.per_query[0]["mrr"].mean() > 0.9 > 0.2 > bare, name
    row = platt2010.ROWS["wbw"](table)
    assert row.config["lines"]["sentences"] == 3 * table.data.sizes["train"]  # of the training pairs alone
    assert row.measurements[0]["value"] > 0 and row.config["aligner"] == "hmm"
    assert platt2010.ROWS["wbw-dictionary"](table) is None


def test_development_pages_choose_the_lines_that_classes_are_translated_by(tmp_path, rng):
    """Training pages beside translations of another section teach wrong words; those of all pages are right."""
    sections = np.arange(90) % 3
    lines = [[rng.integers(26, size=6) + 26 * section for _ in range(3)] for section in sections]
    sides = [["\n".join(" ".join(f"{word}{i}x" for i in line) for line in page) for page in lines]
             for word in ("uno", "due")]
    good = pairs.make("good", map(str, range(90)), *sides, languages=("en", "it"))
    wrong = pairs.make("wrong", good.ids, good.left, good.right[1:] + good.right[:1], languages=("en", "it"))
    task = mates.from_pairs(good, drop_top=0)
    labels = {part: sections[rows] for part, rows in task.rows.items()}
    content = platt2010_classes.Pages(wrong, task, labels, lambda: good.take(task.rows["train"]))
    data = kit.Data(content, name="made", sha256=None, differs="synthetic", counts=content.sizes)
    table = kit.Table("made", "made", platt2010_classes.QUICK, "full", data, tmp_path,
                      kit.Fits(tmp_path / "cache", say=str))
    row = platt2010_classes.ROWS["wbw"](table)
    assert row.config["lines"] == "all pages" and len(row.dev["grid"]) == 12
    assert row.per_query["accuracy"].mean() > 0.9 > 0.5 > platt2010_classes.ROWS["log-tfidf"](
        table).per_query["accuracy"].mean()


def test_links_of_eflomal_make_a_table_as_good_as_ours(table):
    pytest.importorskip("eflomal")
    row, ours = (platt2010.ROWS[name](table) for name in ("wbw-eflomal", "wbw"))
    means = [np.mean([seed["mrr"].mean() for seed in np.atleast_1d(one.per_query)]) for one in (row, ours)]
    assert row.config["aligner"] == "eflomal" and means[0] > means[1] - 0.05


def test_without_eflomal_there_is_no_such_row(table, monkeypatch):
    monkeypatch.setattr(platt2010, "installed", lambda name: None)
    assert platt2010.ROWS["wbw-eflomal"](table) is None


def test_tables_of_one_language_have_no_such_rows(table):
    made = parallel_pages(20)
    one = pairs.make("one", made.ids, made.left, made.right, languages=("en", "en"))
    table.data.pairs = one
    assert all(row(table) is None for row in platt2010.WORD_BY_WORD.values())


def test_parts_of_graded_candidates_share_no_query_and_near_duplicates_stay_together():
    queries = [f"word{i} other{i} third{i} fourth{i} fifth{i}" for i in range(40)]
    queries.append(f"{queries[0]} again")
    given = [(query, document, 1.0) for query in range(41) for document in range(3)]
    _, parts = yih2011_ads._dealt(queries, given, None)
    owners = {part: {pair[0] for pair in rows} for part, rows in parts.items()}
    assert sum(map(len, owners.values())) == 41 and sum(len(rows) for rows in parts.values()) == len(given)
    assert any({0, 40} <= rows for rows in owners.values())


def test_ndcg_passes_over_queries_without_a_relevant_candidate():
    graded = LabelledPairs(np.array([1, 0, 1, 2, 0]), np.arange(5), np.array([2.0, 0.0, 1.0, 0.0, 0.0]))
    result = yih2011_ads.ndcg(np.array([0.1, 0.5, 0.9, 0.3, 0.2]), graded)
    best, ours = 3 + 1 / np.log2(3), 1 + 3 / np.log2(3)
    assert result["ndcg@3"].tolist() == pytest.approx([ours / best]) and result["ndcg@1"].tolist() == [1 / 3]


def test_claims_are_about_rows_that_run_and_print_what_the_papers_do():
    of_table_3 = {row.row for row in papers.TABLES["000 Table 3"].rows}
    assert set(yih2011_ads.TABLES[yih2011_ads.DIMENSIONS].rows) == of_table_3
    for script in (yih2011_ads, platt2010_classes):
        for claim in script.CLAIMS:
            of_paper = papers.TABLES[report_ledger.printed_table(claim.place)]
            printed = {row.row: dict(zip(of_paper.metrics, row.figures, strict=True)) for row in of_paper.rows}
            for table in claim.tables:
                assert {claim.better, claim.worse} <= set(script.TABLES[table].rows), claim.id
            assert claim.printed == {row: printed[row][claim.metric] for row in claim.printed}, claim.id
    assert platt2010_classes.section("mdn/web/css/color") == "web/css"
    assert {"wbw", "wbw-lsa"} <= set(platt2010.ROWS)


def graded_table(tmp_path, rng):
    """Queries and candidates about five subjects; a candidate of the query's subject is relevant."""
    number, terms = 40, 60
    subject = np.arange(terms) // 12 == np.arange(number)[:, None] % 5
    left, right = (sparse.from_scipy(scipy.sparse.csr_matrix(
        (rng.uniform(size=(number, terms)) < 0.1) | subject, dtype="f4")) for _ in range(2))
    drawn = {part: np.stack([np.repeat(rows, 12), np.concatenate([rng.permutation(number)[:12] for _ in rows])])
             for part, rows in zip(yih2011_ads.PARTS, np.split(np.arange(number), (24, 32)), strict=True)}
    graded = {part: LabelledPairs(one, two, (one % 5 == two % 5).astype(float)) for part, (one, two) in drawn.items()}
    rows = tuple(np.unique(side) for side in drawn["train"])
    content = yih2011_ads.Graded(left, right, graded, 1.0, rows, tuple(map(sparse.to_scipy, (left, right))))
    settings = replace(yih2011_ads.QUICK, ks=(2,), grid_k=2, max_iter=3)
    data = kit.Data(content, name="made", sha256=None, differs="synthetic", counts={})
    return kit.Table("made", "made", settings, "quick", data, tmp_path, kit.Fits(tmp_path / "cache", say=str))


def test_table_3_has_the_fit_of_its_dimension_and_none_above_its_start(tmp_path, rng, monkeypatch):
    table = graded_table(tmp_path, rng)
    start = {"lsa": Projection(rng.standard_normal((60, 2)).astype(np.float32))}
    monkeypatch.setattr(yih2011_ads, "starts", lambda table: start)
    row, one = yih2011_ads.fit_s2net(table), yih2011_ads.s2net_of_dimension(table, 2)
    assert one.metrics == row.metrics and one.config == row.config and one.config["k"] == 2
    assert yih2011_ads.s2net_of_dimension(table, 3) is None


@pytest.mark.parametrize("script", [yih2011_ads, platt2010_classes])
def test_without_the_corpora_quick_says_that_it_skips(script, tmp_path, monkeypatch, capsys):
    monkeypatch.delenv("JAXSIM_DATA", raising=False)
    kit.run(script.EXPERIMENT, ["--preset", "quick", "--out", str(tmp_path)])
    assert "skipped, nothing was run" in capsys.readouterr().out
