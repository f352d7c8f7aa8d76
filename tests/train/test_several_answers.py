"""Left texts with several right ones: said, never negatives of each other, and scored with all of them as right."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest
from command_line import run

from jaxsim import cli
from jaxsim.data import pairs
from jaxsim.evaluate import mates, retrieval
from jaxsim.methods import distillation, s2net
from jaxsim.optim import closed_form
from jaxsim.sparse import Vectors
from jaxsim.train import Settings, train

ROWS = [(0, 0), (0, 1), (0, 2), (1, 3), (2, 3), (2, 4), (3, 5), (4, 6), (4, 7), (5, 8), (6, 9), (6, 0)]
QUESTIONS = ["sparse matrix rows", "random seed draw", "plot axis colour", "file path folder", "date month leap",
             "sound wave filter", "graph edge walk"]  # fmt: skip
ANSWERS = ["compressed storage of zeros", "a row at a time", "fast products", "generator state", "ticks and labels",
           "join two names", "days of a calendar", "february has one more", "low frequencies pass", "visited"]


def made(rows=ROWS, *, times=1):
    """Pairs of questions and answers; each time with a word of its own on both sides."""
    rows = [(a, b, time) for time in range(times) for a, b in rows]
    return pairs.make("made", [str(i) for i in range(len(rows))], [f"{QUESTIONS[a]} number{t}" for a, _, t in rows],
                      [f"{ANSWERS[b]} number{t}" for _, b, t in rows], languages=("en", "en"))  # fmt: skip


def test_scores_of_several_right_answers_are_those_of_a_slow_loop(rng):
    left, right = (np.round(rng.normal(size=(size, 3)), 1) for size in (7, 10))
    right[4] = right[0]  # ties are errors
    result = mates.answers([a for a, _ in ROWS], [b for _, b in ROWS])
    sides = Vectors(left[[a for a, _ in ROWS]]), Vectors(right[[b for _, b in ROWS]])
    values = mates.per_left(*sides, result, similarity=retrieval.dot, block=3)
    for query, (any_, precision) in enumerate(zip(values["mrr_any"], values["map"], strict=True)):
        own = {b for a, b in ROWS if a == query}
        scores = left[query] @ right.T
        order = sorted(range(10), key=lambda b, scores=scores, own=own: (-round(scores[b], 9), b in own))
        ranks = [rank for rank, b in enumerate(order, start=1) if b in own]
        assert any_ == pytest.approx(1 / ranks[0])
        assert precision == pytest.approx(np.mean([place / rank for place, rank in enumerate(ranks, start=1)]))
    assert result.several == 4 and len(result.queries) == 7 and len(result.documents) == 10
    between = sum((a, y) in ROWS for (a, x), (b, y) in itertools.permutations(ROWS, 2) if a != b and x != y)
    assert result.shared == between > 0


def test_one_right_answer_each_has_the_scores_of_mates(rng):
    sides = tuple(Vectors(rng.normal(size=(6, 3))) for _ in range(2))
    result = mates.answers(range(6), range(6))
    assert result.several == result.shared == 0
    values = mates.per_left(*sides, result)
    np.testing.assert_allclose(values["mrr_any"], mates.per_query(*sides)["mrr"][:6])
    np.testing.assert_allclose(values["map"], values["mrr_any"])


@pytest.mark.parametrize("all_negatives", [False, True])
def test_right_texts_of_one_left_text_are_no_negatives_in_their_pairs(all_negatives, monkeypatch):
    seen, messages = [], []
    monkeypatch.setattr(s2net, "fit", lambda *sides, init, groups, **options: seen.append(groups) or closed_form(init))
    model = train(made(), Settings(dim=3, max_iter=1, all_negatives=all_negatives), dev=0, say=messages.append)
    apart = (seen[0][:, None] != seen[0][None]).all(axis=2)
    for (i, (a, x)), (j, (b, y)) in itertools.product(enumerate(ROWS), repeat=2):
        assert apart[i, j] == (a != b and x != y)
    result = mates.answers([a for a, _ in ROWS], [b for _, b in ROWS])
    assert result.shared > 1
    assert ("4 left texts of 7 with several right ones, which are no negatives of each other; a text that is right for "
            f"other left texts too may still be a negative there ({result.shared} cases at most)") in messages
    assert model.training["several"] == {"left": 4, "of": 7, "shared": result.shared}


def test_trainings_without_several_right_answers_say_nothing(monkeypatch):
    messages = []
    single = made([(i, i) for i in range(7)], times=4)
    model = train(single, Settings(method="opca", dim=3), dev=0.3, say=messages.append)
    assert "several" not in model.training and not any("several" in line for line in messages)
    assert set(model.training["dev"]) == {
        f"{row}{name}" for row in ("", "untrained_", "bm25_") for name in ("accuracy", "mrr")}


def test_what_is_distilled_is_shown_beside_what_it_was(folder, capsys, monkeypatch):
    monkeypatch.setattr(distillation, "_STEPS", 1)
    single = [f"{QUESTIONS[i]}\t{ANSWERS[i]}\n" for i in range(7)]
    given = made(times=6)
    lines = [f"{left}\t{right}\n" for left, right in zip(given.left, given.right, strict=True)]
    for name, some in (("known", lines[:36]), ("new", lines[36:]), ("single", single)):
        (folder / f"{name}.tsv").write_text("".join(some))
    words = ["train", "--pairs", "known.tsv", "--out", "model", "--method", "opca", "--dim", "5"]
    plain = json.loads(run(capsys, *words, "--dev", "new.tsv", "--json"))["dev"]
    table = run(capsys, *words, "--dev", "new.tsv", "--distill", "0.5").splitlines()
    assert [line.split()[0] for line in table[1:3]] == ["opca", "undistilled"] and table[0].split()[-1] == "map"
    assert float(table[2].split()[-1]) == pytest.approx(plain["map"], abs=2e-4)
    # Of several sets the mean is of those scores that all of them have.
    words += ["--dev", "new.tsv", "--dev", "single.tsv", "--distill", "0.5", "--json"]
    facts = json.loads(run(capsys, *words))
    assert "map" not in facts["dev"] and "undistilled_map" not in facts["distilled"]


def test_train_and_evaluate_show_them(folder, capsys):
    given = made(times=6)
    half = len(given) // 2
    for name, some in (("known", range(half)), ("new", range(half, len(given)))):
        (folder / f"{name}.tsv").write_text("".join(f"{given.left[i]}\t{given.right[i]}\n" for i in some))
    shown = run(capsys, "train", "--pairs", "known.tsv", "--dev", "new.tsv", "--out", "model", "--method", "opca",
                "--dim", "5", "--json")  # fmt: skip
    dev = json.loads(shown)["dev"]
    assert list(dev) == [
        f"{row}{name}" for row in ("", "untrained_", "bm25_") for name in ("accuracy", "mrr", "map")]
    assert cli.main(["evaluate", "--model", "model", "--pairs", "new.tsv", "--json"]) == 0
    out, err = capsys.readouterr()
    result = json.loads(out)
    assert "12 left texts of 21 with several right ones: accuracy and mrr count only the one of the pair" in err
    assert result["pairs"] == half and result["queries"] == 21
    assert result["map"]["mean"] == pytest.approx(dev["map"], abs=1e-4) and result["map"]["low"] < result["map"]["high"]
    assert 0 < result["mrr_any"]["low"] <= result["mrr_any"]["mean"] <= 1
    table = run(capsys, "evaluate", "--model", "model", "--pairs", "new.tsv")
    assert table.splitlines()[:2] == [f"pairs: {half}", "queries: 21"] and "mrr_any" in table
    (folder / "single.tsv").write_text("".join(f"{QUESTIONS[i]}\t{ANSWERS[i]}\n" for i in range(7)))
    assert cli.main(["evaluate", "--model", "model", "--pairs", "single.tsv", "--json"]) == 0
    out, err = capsys.readouterr()
    assert set(json.loads(out)) == {"pairs", "accuracy", "mrr"} and "several" not in err
    (folder / "twice.tsv").write_text(2 * (folder / "single.tsv").read_text())  # a copy of a mate would tie with it
    assert cli.main(["evaluate", "--model", "model", "--pairs", "twice.tsv", "--json"]) == 0
    again, err = capsys.readouterr()
    assert again == out and err.endswith("left out 7 pairs, equal to an earlier one\n")
    (folder / "links.tsv").write_text("".join(f"{QUESTIONS[i]}\t{QUESTIONS[(i + 1) % 7]}\n" for i in range(7)))
    assert cli.main(["evaluate", "--model", "model", "--pairs", "links.tsv", "--json"]) == 0
    assert "links.tsv: 7 pairs with a text that another pair has on the other side" in capsys.readouterr().err
    assert len(mates.once(pairs.make("p", "12", ["…", "!"], ["?", "?"], languages=("en", "en")))) == 2  # no words
