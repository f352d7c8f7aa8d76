"""Test collections on the command line, compared with trec_eval, and their faults."""

from __future__ import annotations

import json
import os

import pytest
from command_line import LEFT, RIGHT, refused, run

from jaxsim import cli
from jaxsim.evaluate import trec


@pytest.fixture
def collection(folder):
    """Queries, documents and judgements."""
    (folder / "queries.tsv").write_text("".join(f"q{i}\t{text}\n" for i, text in enumerate(LEFT[:6])) + "q9\tunheard\n")
    (folder / "docs.jsonl").write_text("".join(json.dumps({"_id": f"d{i}", "text": text}) + "\n"
                                               for i, text in enumerate(RIGHT)))  # fmt: skip
    judged = [(i, j, int(i == j) + int(i % 5 == j % 5)) for i in range(5) for j in range(10)]
    (folder / "qrels.txt").write_text("".join(f"q{i} 0 d{j} {grade}\n" for i, j, grade in judged)
                                      + "q9 0 d1 1\nq8 0 d1 1\nq5 0 d1 0\nq4 0 lost 1\n")  # fmt: skip
    return folder


def test_evaluate_on_a_test_collection_agrees_with_trec_eval(trained, collection, capsys):
    words = ["--queries", "queries.tsv", "--documents", "docs.jsonl", "--qrels", "qrels.txt", "--run-out", "run.txt"]
    capsys.readouterr()
    assert cli.main(["evaluate", "--model", trained, *words, "--json"]) == 0
    out, err = capsys.readouterr()
    facts = json.loads(out)
    assert facts["queries"] == 6  # q0 to q4 and q9, whose words nobody knows; q5 has nothing relevant, q8 is not there
    assert "1 query without a known word" in err and "no text for 1 relevant document of the judgements" in err
    pytrec_eval = pytest.importorskip("pytrec_eval")
    names = {"map", "recip_rank", "P_10", "ndcg_cut_10"}
    with open("run.txt") as theirs, open("qrels.txt") as judged:
        judge = pytrec_eval.RelevanceEvaluator(pytrec_eval.parse_qrel(judged), names)
        per_query = judge.evaluate(pytrec_eval.parse_run(theirs))
    for ours, name in (("map", "map"), ("mrr", "recip_rank"), ("p@10", "P_10"), ("ndcg@10", "ndcg_cut_10")):
        expected = sum(per_query[f"q{i}"][name] for i in range(5)) / 6
        assert facts[ours]["mean"] == pytest.approx(expected, abs=1e-9)
        assert facts[ours]["low"] <= facts[ours]["mean"] <= facts[ours]["high"]
    again = json.loads(run(capsys, "evaluate", "--run", "run.txt", "--qrels", "qrels.txt", "--json"))
    assert again["queries"] == 7 and again["map"]["mean"] == pytest.approx(facts["map"]["mean"] * 6 / 7)
    assert "queries: 7" in run(capsys, "evaluate", "--run", "run.txt", "--qrels", "qrels.txt")


def test_faults_of_test_collections_name_file_and_line(trained, collection, capsys):
    def fault(**files):
        given = {"queries": "queries.tsv", "documents": "docs.jsonl", "qrels": "qrels.txt"} | files
        return refused(capsys, "evaluate", "--model", trained, *(w for n, f in given.items() for w in (f"--{n}", f)))

    (collection / "bad").write_text("q1 0 d1\n")
    assert fault(qrels="bad") == "bad, line 1: expected 'query 0 document grade', got 3 fields"
    (collection / "bad").write_text("query-id\tcorpus-id\tscore\nq1\td1\t1\n")
    assert fault(qrels="bad") == ("bad, line 1: expected 'query 0 document grade', got 3 fields, as in BEIR's files: "
                                  "put a 0 between query and document, and leave out their header")
    (collection / "bad").write_text("q1 0 d1 1\nq1 0 d1 2\n")
    assert fault(qrels="bad").startswith("bad, line 2: expected one grade of 'd1' for 'q1', got 1 and 2")
    (collection / "bad").write_text("q1 0 d1 high\n")
    assert fault(qrels="bad") == "bad, line 1: expected a whole number as grade, got 'high'"
    for grade in ("1_0", "\uff13", "+-1", "1.0"):
        (collection / "bad").write_text(f"q1 0 d1 {grade}\n")
        assert fault(qrels="bad") == f"bad, line 1: expected a whole number as grade, got {grade!r}"
    (collection / "bad").write_text("zz 0 d1 1\n")
    assert fault(qrels="bad") == "--qrels: expected judgements of queries in queries.tsv, got none of them"
    (collection / "bad").write_text("q 1\t0\td 1\t2\nq 1\t0\td2\t0\n")
    assert trec.read_qrels("bad") == {"q 1": {"d 1": 2, "d2": 0}}  # between tabs identifiers may have blanks
    (collection / "bad").write_text("")
    assert fault(qrels="bad") == "bad: expected lines 'query 0 document grade', got an empty file"
    assert fault(documents="bad") == "bad: expected texts with identifiers, got an empty file"
    (collection / "bad").write_text(" \ta\n")
    assert fault(documents="bad") == "bad, line 1: expected an identifier, got ' '"
    (collection / "bad").write_text("d1\ta\nd1\tb\n")
    assert fault(documents="bad") == "bad, line 2: expected an identifier not used before, got 'd1'"
    (collection / "bad").write_text("d1 a\n")
    assert fault(queries="bad") == "bad, line 1: expected an identifier, a tab and a text, got no tab"
    (collection / "bad").write_text("q1 Q0 d1 1 0.5 x\nq1 Q0 d2 2 low x\n")
    message = refused(capsys, "evaluate", "--run", "bad", "--qrels", "qrels.txt")
    assert message == "bad, line 2: expected a number as score, got 'low'"
    (collection / "bad").write_text("q1 Q0 d1 1 1_0 x\n")
    message = refused(capsys, "evaluate", "--run", "bad", "--qrels", "qrels.txt")
    assert message == "bad, line 1: expected a number as score, got '1_0'"
    (collection / "bad").write_text("q1 Q0 d1 1 inf x\nq1 Q0 d2 2 -Inf x\nq1 Q0 d3 3 -1.5e-3 x\n")
    assert [name for name, _ in trec.read_run("bad")["q1"]] == ["d1", "d3", "d2"]
    (collection / "bad").write_text("q1 Q0 d1 1 0.5 x\nq1 Q0 d1 2 0.4 x\n")
    message = refused(capsys, "evaluate", "--run", "bad", "--qrels", "qrels.txt")
    assert message == "bad, line 2: expected every document once for 'q1', got 'd1' again"
    (collection / "blank.tsv").write_text(f"d 1\t{RIGHT[0]}\n")
    message = fault(documents="blank.tsv", **{"run-out": "run.txt"})
    assert message == "--run-out: expected identifiers without blanks, got 'd 1'" and not os.path.exists("run.txt")
    (collection / "half.jsonl").write_text('{"id": "d\\ud800", "text": "sparse"}\n')
    message = fault(documents="half.jsonl", **{"run-out": "run.txt"})
    assert message == "--run-out: expected identifiers of whole characters, got 'd\\ud800'"
    message = fault(documents="-", exclude="-")
    assert message == "--documents, --exclude: expected standard input (-) once, got twice"


def test_texts_with_titles_are_both(tmp_path):
    rows = [{"title": "Pets", "text": "a dog"}, {"title": "", "text": " a cat"}, {"title": None, "text": "c"},
            {"text": "d"}, {"title": "Birds", "text": ""}]  # fmt: skip
    path = tmp_path / "corpus.jsonl"
    path.write_text("".join(json.dumps({"_id": str(i), **row}) + "\n" for i, row in enumerate(rows)))
    assert list(trec.read_texts(path).values()) == ["Pets a dog", " a cat", "c", "d", "Birds"]
    path.write_text('{"_id": "1", "title": ["a"], "text": "b"}')
    with pytest.raises(ValueError, match="corpus.jsonl, line 1: expected text in the column 'title', got list"):
        trec.read_texts(path)


def test_lines_of_a_run_hold_what_the_format_can():
    with pytest.raises(ValueError, match="name: expected .*my run"):
        list(trec.run_lines({"q": [("d", 0.5)]}, name="my run"))
    with pytest.raises(ValueError, match="run: expected scores that are numbers, got nan, of 'e' for 'q'"):
        list(trec.run_lines({"q": [("d", 0.5), ("e", float("nan"))]}))


def test_scores_that_are_equal_as_float32_are_ties_as_in_trec_eval():
    scores = {"a": 10.00000002, "b": 10.00000001, "c": 1e300, "d": 1e200, "e": -1e300, "f": 10.1}
    assert [name for name, _ in trec.ranked(scores)] == ["d", "c", "f", "b", "a", "e"]
    pytrec_eval = pytest.importorskip("pytrec_eval")
    for name in scores:
        theirs = pytrec_eval.RelevanceEvaluator({"q": {name: 1}}, {"recip_rank"}).evaluate({"q": scores})["q"]
        ours = trec.scores({"q": trec.ranked(scores)}, {"q": {name: 1}})["mrr"]
        assert ours == pytest.approx(theirs["recip_rank"])
