"""CSLS: hubs among documents come later, in a search and from an index."""

from __future__ import annotations

import dataclasses
import json
import tracemalloc

import jax.numpy as jnp
import numpy as np
import pytest
from command_line import LEFT, refused, run

from jaxsim import cli, text
from jaxsim.methods.projections import Projection
from jaxsim.model import Model, hubs, index, ranker

WORDS = text.Vocabulary(tuple("abcdefgh"), np.full(8, 2), 9)
ASKED = ["a b", "c", "d a", "e f f", "g"]
TEXTS = ["a c", "b", "c d e", "f", "g h", "unheard"]


@pytest.fixture
def model(rng):
    weights = Projection(jnp.asarray(rng.normal(size=(8, 4)), jnp.float32))
    return Model(WORDS, weights, agreement=np.array([1.0, 0.5, 0.5, 0.0], np.float32))


@pytest.mark.parametrize("power", [0.0, 1.0])
@pytest.mark.parametrize("few", [2, 10])
def test_nearness_is_the_mean_of_the_nearest_texts(model, power, few, monkeypatch):
    monkeypatch.setattr(hubs, "_BLOCK", 4)
    sides = [np.asarray(model.vectors(some, side=side, power=power).dense) for some, side in
             ((TEXTS, "document"), (ASKED, "query"))]
    cosines = np.zeros((len(TEXTS), len(ASKED)))
    for i, j in np.ndindex(*cosines.shape):
        norm = np.linalg.norm(sides[0][i]) * np.linalg.norm(sides[1][j])
        cosines[i, j] = sides[0][i] @ sides[1][j] / norm if norm else 0
    wanted = [np.sort(row)[::-1][:few].mean() for row in cosines]
    wanted[-1] = max(wanted)  # of no known word: after documents with small cosines
    result = hubs.measure(model, model.vectors(TEXTS).dense, ASKED, power=power, neighbours=few)
    np.testing.assert_allclose(result.nearness, wanted, atol=1e-6)
    assert result.nearness[-1] > 0


def test_nearness_of_many_texts_takes_bounded_memory(model, rng, monkeypatch):
    monkeypatch.setattr(hubs, "_CELLS", 2**16)
    texts = [" ".join(rng.choice(list("abcdefgh"), 3)) for _ in range(2000)]
    dense = rng.normal(size=(1024, 4)).astype(np.float32)
    hubs.measure(model, dense, texts)  # what is made once and kept does not count
    tracemalloc.start()
    result = hubs.measure(model, dense, texts).nearness
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert most < 4e6  # all cosines at once take 8 MB, and their partition the same again
    monkeypatch.undo()
    np.testing.assert_allclose(result, hubs.measure(model, dense, texts).nearness, rtol=1e-6)


@pytest.mark.parametrize("terms", [0.0, 0.4, 1.0])
def test_scores_are_twice_the_cosine_less_the_nearness(model, terms):
    queries = ["a b c", "f g"]
    plain = index.encode(model, TEXTS, bm25=True)
    near = index.encode(model, TEXTS, bm25=True, csls=ASKED)
    both = [dict(zip(rows, scores, strict=True)) for scores, rows in zip(
        *ranker.rank(model, near, queries, k=6, terms=terms), strict=True)]  # fmt: skip
    for place, query in enumerate(queries):
        cosines = np.asarray(model.scorer(model.vectors([query], side="query", power=1.0),
                                          model.vectors(TEXTS, power=1.0))(np.arange(1)))[0]
        lessened = 2 * cosines - near.hubs.nearness
        words = (plain.bm25.counts([query]) @ plain.bm25.weights.T).toarray()[0]
        by = [max(one.max(), 0) / max(np.maximum(one, 0).mean(), 1e-30) for one in (lessened, words)]  # 6 documents
        by = [(1 - terms) * by[0], terms * by[1]]
        wanted = lessened if terms == 0 else sum(
            share / sum(by) * one / one.max() for share, one in zip(by, (lessened, words), strict=True))  # fmt: skip
        np.testing.assert_allclose([both[place][row] for row in range(6)], wanted, atol=1e-5)


def test_an_index_keeps_hubs_and_a_damaged_one_is_refused(model, tmp_path):
    made = index.encode(model, TEXTS, bm25=True, csls=ASKED, power=1.0)
    index.save(tmp_path / "kept", made, model="m")
    read = index.load(tmp_path / "kept", bm25=True)
    np.testing.assert_array_equal(read.hubs.nearness, made.hubs.nearness)
    assert (read.hubs.power, read.hubs.texts) == (1.0, hubs.digest(ASKED))
    for bad in (made.hubs.nearness[:3], made.hubs.nearness.astype(np.int32)):
        altered = dataclasses.replace(made.hubs, nearness=bad)
        index.save(tmp_path / "bad", dataclasses.replace(made, hubs=altered), model="m")
        with pytest.raises(ValueError, match="hubs: expected"):
            index.load(tmp_path / "bad")
    with pytest.raises(ValueError, match=r"power: expected 1 \(as for the hubs of the documents\), got 0"):
        ranker.rank(model, read, ["a"], k=1, power=0.0)
    squared = index.encode(model, TEXTS, bm25=True, csls=ASKED, power=2.0)
    for given, taken in zip(ranker.rank(model, squared, ["a b"], k=6, power=2.0),
                            ranker.rank(model, squared, ["a b"], k=6), strict=True):  # fmt: skip
        np.testing.assert_array_equal(given, taken)
    plain = dataclasses.replace(model, agreement=None)  # every power is the same to it
    squared = index.encode(plain, TEXTS, bm25=True, csls=ASKED, power=2.0)
    np.testing.assert_array_equal(ranker.rank(plain, squared, ["a b"], k=6, power=1.0)[0],
                                  ranker.rank(plain, squared, ["a b"], k=6)[0])  # fmt: skip
    with pytest.raises(ValueError, match="words: expected bm25, or terms of 0 or 1, with csls"):
        ranker.rank(model, read, ["a"], k=1, terms=0.5, words="cosine")
    with pytest.raises(ValueError, match="csls: expected none, for unknown"):
        index.encode(Model(WORDS, None), TEXTS, csls=ASKED)
    with pytest.raises(ValueError, match="csls: expected texts like the queries, got none"):
        index.encode(model, TEXTS, csls=[])


def test_the_command_line_searches_and_measures_with_hubs(trained, folder, capsys):
    (folder / "like.txt").write_text("\n".join(LEFT[:20]) + "\n")
    words = ["search", "--model", trained, "--query", LEFT[7], "--k", 40, "--terms", 0, "--json"]
    plain = run(capsys, *words, "--documents", "texts.txt")
    direct = run(capsys, *words, "--documents", "texts.txt", "--csls", "like.txt")
    assert run(capsys, *words, "--documents", "texts.txt", "--csls", "like.txt", "--index", "kept") == direct != plain
    assert run(capsys, *words, "--index", "kept") == direct
    assert run(capsys, *words, "--index", "kept", "--csls", "like.txt") == direct
    (folder / "other.txt").write_text("other\n")
    facts = refused(capsys, *words, "--index", "kept", "--csls", "other.txt")
    assert facts.startswith("--csls: expected the texts that kept was made with, got others; with --documents")
    assert run(capsys, *words, "--documents", "texts.txt", "--index", "kept", "--csls", "other.txt") != direct
    (folder / "q.tsv").write_text(f"1\t{LEFT[7]}\n")
    lines = (folder / "texts.txt").read_text().splitlines()
    (folder / "d.tsv").write_text("".join(f"{i}\t{line}\n" for i, line in enumerate(lines, start=1)))
    (folder / "qrels.txt").write_text("1 0 8 1\n")
    files = ["--queries", "q.tsv", "--documents", "d.tsv", "--qrels", "qrels.txt"]
    facts = json.loads(run(capsys, "evaluate", "--model", trained, *files, "--csls", "like.txt", "--json"))
    assert facts["map"]["mean"] > 0
    words = ["evaluate", "--model", trained, "--pairs", "pairs.tsv", "--json"]
    facts = json.loads(run(capsys, *words, "--csls", "like.txt"))
    assert set(facts) == {"queries", "accuracy", "mrr_any", "map"} and facts["queries"] == len(LEFT)


def test_what_no_word_is_known_of_finds_nothing_and_comes_last(trained, folder, capsys):
    (folder / "like.txt").write_text("\n".join(LEFT[:20]) + "\n")
    (folder / "some.txt").write_text("\n".join(["", "qqqq", *LEFT]) + "\n")
    words = ["search", "--model", trained, "--documents", "some.txt", "--k", 40, "--csls", "like.txt", "--json"]
    for terms in ([], ["--terms", 0]):
        cli.main([str(word) for word in [*words, *terms, "--query", "qqqq wwww" if terms else "wwww"]])
        out, err = capsys.readouterr()
        assert {row["score"] for row in json.loads(out)["results"]} == {0.0} and "no word of it is known" in err
    found = json.loads(run(capsys, *words, "--terms", 0, "--query", LEFT[7]))["results"]
    plain = json.loads(run(capsys, *words[:-3], "--json", "--terms", 0, "--query", LEFT[7]))["results"]
    near = {row["line"] for row in plain if row["score"] > 0}
    assert {row["line"] for row in found[: len(near)]} >= near - {1, 2} and found[0]["line"] > 2
    (folder / "q.tsv").write_text(f"1\t{LEFT[7]}\n2\tqqqq\n")
    (folder / "d.tsv").write_text("".join(f"{i}\t{line}\n" for i, line in enumerate(["wwww", *LEFT], start=1)))
    (folder / "qrels.txt").write_text("1 0 9 1\n2 0 1 1\n")
    files = ["--queries", "q.tsv", "--documents", "d.tsv", "--qrels", "qrels.txt", "--csls", "like.txt", "--terms", 0]
    cli.main([str(word) for word in ["evaluate", "--model", trained, *files, "--json", "--run-out", "run.txt"]])
    assert "1 query without a known word" in capsys.readouterr().err
    assert {line.split()[0] for line in (folder / "run.txt").read_text().splitlines()} == {"1"}


def test_an_index_keeps_its_power_and_words_alone_leave_its_hubs_as_they_are(trained, folder, capsys):
    (folder / "like.txt").write_text("\n".join(LEFT[:20]) + "\n")
    weights = np.linspace(1, 0.2, 5, dtype=np.float32)
    dataclasses.replace(Model.load(trained), agreement=weights).save(folder / "weighed")
    words = ["search", "--model", "weighed", "--query", LEFT[7], "--index", "kept"]
    some, like, read = ["--documents", "texts.txt"], ["--csls", "like.txt"], ["--terms", 0.5]
    first = run(capsys, *words, *some, *like, "--power", 0, *read)
    for more in ([], like, [*some, *like], some, ["--power", 0]):
        assert run(capsys, *words, *more, *read) == first
    before = (folder / "kept" / index.MARKER).read_bytes()
    (folder / "other.txt").write_text("other\n")
    for more in (like, ["--csls", "other.txt"]):
        assert cli.main([*words, *some, *more, "--power", "2", "--terms", "1"]) == 0
        told = capsys.readouterr().err
        assert "--csls changes nothing" in told and "made anew" not in told
        run(capsys, *words, *more, "--terms", 1)
        assert (folder / "kept" / index.MARKER).read_bytes() == before
    assert run(capsys, *words, *read) == first
    assert refused(capsys, *words, *like, "--power", 1) == (
        "--power: expected 0 (as kept was made with, for --csls), got 1; with --documents the index is made anew")
    assert cli.main([*words, *some, *like, "--power", "1"]) == 0
    assert "kept: made anew, as --power is another" in capsys.readouterr().err
    (folder / "texts.txt").write_text("one\ntwo words\n")
    assert refused(capsys, *words, *some, "--csls", "other.txt", "--terms", 1) == (
        "--csls: expected the texts that kept was made with, to make it anew with --terms 1, got others")  # fmt: skip
    assert cli.main([*words, *some, *like, "--terms", "1"]) == 0
    assert "kept: made anew, as the documents have changed" in capsys.readouterr().err
    assert json.loads((folder / "kept" / index.MARKER).read_bytes())["csls"]["power"] == 1
    assert cli.main([*words[:-1], "bare", *some, *like, "--terms", "1"]) == 0
    assert "csls" not in json.loads((folder / "bare" / index.MARKER).read_bytes())
    assert cli.main([*words[:-1], "bare", *some, *like]) == 0
    assert "bare: made anew, as --csls is new" in capsys.readouterr().err
