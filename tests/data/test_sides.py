"""Commands with a model of two projections: left texts are queries, right texts are documents, everywhere."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from command_line import refused, run

from jaxsim.evaluate import mates, trec
from jaxsim.model import Model

WHO = (("the teacher", "la maestra"), ("the child", "el niño"), ("the painter", "la pintora"), ("Carmen", "Carmen"))
WHAT = (("mends a net", "repara una red"), ("finds a red coat", "encuentra un abrigo rojo"), ("eats bread", "come pan"))
WHERE = (("in the kitchen", "en la cocina"), ("at the harbour", "en el puerto"), ("on the roof", "en el tejado"))
PAIRS = [tuple(" ".join(parts) for parts in zip(*rows, strict=True)) for rows in itertools.product(WHO, WHAT, WHERE)]
ENGLISH, SPANISH = zip(*PAIRS, strict=True)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with pairs of two languages, and a model with a projection a language."""
    from jaxsim import cli

    folder = tmp_path_factory.mktemp("sides")
    (folder / "pairs.tsv").write_text("".join(f"{a}\t{b}\n" for a, b in PAIRS))
    (folder / "swapped.tsv").write_text("".join(f"{b}\t{a}\n" for a, b in PAIRS))
    (folder / "english.txt").write_text("".join(f"{a}\n" for a in ENGLISH))
    (folder / "spanish.txt").write_text("".join(f"{b}\n" for b in SPANISH))
    words = ["train", "--pairs", str(folder / "pairs.tsv"), "--out", str(folder / "cca"), "--dev", "0", "--dim", "8"]
    assert cli.main([*words, "--method", "cca", "--languages", "en,es", "--subwords", "0"]) == 0
    return folder


@pytest.fixture
def here(place, monkeypatch):
    monkeypatch.chdir(place)
    return Model.load("cca")


def cosines(left, right):
    return (left / np.linalg.norm(left, axis=1)[:, None]) @ (right / np.linalg.norm(right, axis=1)[:, None]).T


@pytest.fixture
def expected(here):
    """Cosines of English queries with Spanish documents, from vectors made in Python."""
    return cosines(here.encode_query(ENGLISH), here.encode_document(SPANISH))


def test_the_model_has_two_sides_that_differ(here, expected):
    assert here.two_sided and len(here.params) == 2
    assert (expected.argmax(axis=1) == np.arange(len(PAIRS))).mean() > 0.9
    assert not here.encode_query(["pintora abrigo"]).any() and here.encode_document(["pintora abrigo"]).any()


def test_encode_takes_the_side_that_is_named_and_refuses_to_guess(here, capsys):
    for side, texts in (("query", here.encode_query(SPANISH)), ("document", here.encode_document(SPANISH))):
        run(capsys, "encode", "--model", "cca", "--input", "spanish.txt", "--side", side, "--output", "found.npy")
        np.testing.assert_array_equal(np.load("found.npy"), texts)
    message = refused(capsys, "encode", "--model", "cca", "--input", "spanish.txt")
    assert message == ("--side: expected query or document (this model encodes left and right texts differently), "
                       "got neither")  # fmt: skip
    with pytest.raises(ValueError, match="or encode_query, encode_document"):
        here.encode(["a text"])


def test_similarity_takes_the_first_text_as_the_query(here, expected, capsys):
    words = ["similarity", "--model", "cca"]
    assert float(run(capsys, *words, ENGLISH[0], SPANISH[0])) == pytest.approx(expected[0, 0], abs=1e-5)
    assert float(run(capsys, *words, SPANISH[8], ENGLISH[8])) == 0  # no Spanish word is known among English texts
    for given in (["pairs.tsv"], ["swapped.tsv", "--left", 2, "--right", 1]):
        shown = np.array(run(capsys, *words, "--pairs", *given).split(), float)
        np.testing.assert_allclose(shown, np.diag(expected), atol=1e-5)


def test_search_takes_queries_and_documents_from_their_sides(here, expected, capsys):
    words = ["search", "--model", "cca", "--documents", "spanish.txt", "--k", 3]
    rows = [line.split("\t") for line in run(capsys, *words, "--query", ENGLISH[5]).splitlines()]
    assert rows[0][3] == SPANISH[5]
    result = {int(line) - 1: float(score) for _, score, line, _ in rows}
    np.testing.assert_allclose([expected[5, row] for row in result], list(result.values()), atol=1e-5)
    named = json.loads(run(capsys, *words, "--query", ENGLISH[-1], "--terms", 1, "--json"))["results"][0]
    assert "Carmen" in named["text"]  # the only word of both languages, which their stemmers cut differently
    asked = ["--query", ENGLISH[-1], "--terms", 0.25, "--words", "cosine", "--json"]
    best = json.loads(run(capsys, *words, *asked))["results"][0]
    bare = cosines(here.term_vectors(ENGLISH[-1:], side="query").toarray(),
                   here.term_vectors([best["text"]], side="document").toarray())[0, 0]  # fmt: skip
    assert bare > 0
    assert best["score"] == pytest.approx(0.75 * expected[-1, best["line"] - 1] + 0.25 * bare, abs=1e-5)
    from jaxsim import cli

    capsys.readouterr()
    assert cli.main([*map(str, words), "--query", SPANISH[8]]) == 0
    assert "query 1: no word of it is known among left texts (en), or in the documents" in capsys.readouterr().err


def test_evaluate_measures_queries_against_documents(here, expected, capsys):
    sides = here.vectors(ENGLISH, side="query"), here.vectors(SPANISH, side="document")
    wanted = mates.scores(*sides)["mrr"]
    assert wanted > 0.9
    for given in (["pairs.tsv"], ["swapped.tsv", "--left", 2, "--right", 1]):
        facts = json.loads(run(capsys, "evaluate", "--model", "cca", "--pairs", *given, "--json"))
        assert facts["mrr"]["mean"] == pytest.approx(wanted)
    wrong = json.loads(run(capsys, "evaluate", "--model", "cca", "--pairs", "swapped.tsv", "--json"))
    assert wrong["mrr"]["mean"] < 0.3


def test_evaluate_on_a_test_collection_ranks_documents_for_queries(here, expected, place, capsys):
    (place / "queries.tsv").write_text("".join(f"q{i}\t{a}\n" for i, a in enumerate(ENGLISH)))
    (place / "docs.json").write_text(json.dumps([{"id": f"d{i}", "text": b} for i, b in enumerate(SPANISH)]))
    (place / "qrels.txt").write_text("".join(f"q{i} 0 d{i} 1\n" for i in range(len(PAIRS))))
    facts = json.loads(run(capsys, "evaluate", "--model", "cca", "--queries", "queries.tsv", "--documents", "docs.json",
                           "--qrels", "qrels.txt", "--run-out", "run.txt", "--json"))  # fmt: skip
    assert facts["mrr"]["mean"] > 0.9
    for name, score in trec.read_run("run.txt")["q5"]:
        assert score == pytest.approx(expected[5, int(name[1:])], abs=1e-5)
