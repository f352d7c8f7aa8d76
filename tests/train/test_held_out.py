"""Several held-out sets: training stops by the mean of their scores, and each is measured alone."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from command_line import interrupting, refused, run

from jaxsim import cli
from jaxsim.data import docstrings
from jaxsim.data import pairs as data_pairs
from jaxsim.evaluate import mates
from jaxsim.methods.projections.agreement import FEWEST, agreement
from jaxsim.model import Model
from jaxsim.train import Settings, budget, held_out, train, tuning

PLAIN = Settings(method="opca", dim=20, max_terms=400, subwords=0.0)


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(260))


@pytest.fixture(scope="module")
def sets(corpus):
    """Pairs to train on, and two sets of unequal size."""
    return tuple(replace(corpus.take(range(*rows)), name=name) for rows, name in
                 (((0, 160), "train"), ((160, 240), "large"), ((240, 258), "small")))


def alone(model: Model, dev) -> float:
    """The mean reciprocal rank of mates among each other, both ways, by plain NumPy; a tie is an error."""
    cosines = np.asarray(model.similarity(list(dev.left), list(dev.right)), np.float64)
    own = np.diag(cosines)
    ranks = [(way >= own[:, None] - 1e-9).sum(axis=1) for way in (cosines, cosines.T)]
    return float(np.mean([np.mean(1 / one) for one in ranks]))


def test_the_score_is_the_mean_over_sets_whatever_their_size(sets):
    given, large, small = sets
    model = train(given, PLAIN, dev=[large, small])
    scores = [alone(model, one) for one in (large, small)]
    assert model.training["dev"]["mrr"] == pytest.approx(np.mean(scores), abs=2e-4)
    assert [(one["name"], one["pairs"]) for one in model.training["dev_sets"]] == [("large", 80), ("small", 18)]
    assert [one["mrr"] for one in model.training["dev_sets"]] == pytest.approx(scores, abs=2e-4)
    assert scores[0] != pytest.approx(scores[1], abs=1e-3)
    assert model.training["pairs"] == {"all": 160, "train": len(set(zip(given.left, given.right, strict=True))),
                                       "dev": 98}  # fmt: skip
    one = train(given, PLAIN, dev=large)
    np.testing.assert_array_equal(one.params.weights, model.params.weights)
    assert "dev_sets" not in one.training and train(given, PLAIN, dev=[large]).training["dev"] == one.training["dev"]


def test_dimensions_are_weighed_by_sets_that_are_large_enough(sets):
    given, large, small = sets
    model = train(given, PLAIN, dev=[large, small])
    expected = agreement(model.encode_query(large.left), model.encode_document(large.right))
    assert len(small) < FEWEST <= len(large)
    np.testing.assert_allclose(model.agreement, expected, atol=1e-6)


@pytest.mark.programs
@pytest.mark.parametrize("settings", [
    Settings(method="s2net", dim=10, max_iter=4, max_terms=300),
    Settings(method="s2net", dim=10, max_iter=2, batch_size=64, max_terms=300),
    Settings(method="ssi", dim=10, max_iter=2, max_terms=300, identity=3.0, learning_rate=0.01),
    Settings(method="jplsa", dim=5, max_iter=20, max_terms=300)], ids=lambda one: f"{one.method}-{one.batch_size}")
def test_training_stops_by_the_mean(sets, settings):
    given, large, small = sets
    model = train(given, settings, dev=[large, small])
    best = max(model.training["history"]["validation"])
    assert best == pytest.approx(np.mean([one["mrr"] for one in model.training["dev_sets"]]), abs=2e-4)
    assert best == pytest.approx(model.training["dev"]["mrr"], abs=2e-4)


@pytest.mark.programs
def test_what_is_distilled_is_compared_by_the_mean(sets):
    given, large, small = sets
    model = train(given, replace(PLAIN, distill=0.5), dev=[large, small])
    note = model.training["distilled"]
    before = train(given, PLAIN, dev=[large, small]).training["dev"]["mrr"]
    assert note["undistilled_mrr"] == pytest.approx(before, abs=2e-4)
    assert note["kept"] == (model.training["dev"]["mrr"] > before)


def test_a_share_beside_pairs_of_ones_own(sets):
    given, large, _ = sets
    messages = []
    model = train(given, PLAIN, dev=[0.2, large], say=messages.append)
    first, second = model.training["dev_sets"]
    assert (first["name"], second["name"]) == ("held out", "large") and 20 <= first["pairs"] <= 45
    assert train(given, PLAIN, dev=0.2).training["dev"] == {
        name: value for name, value in first.items() if name not in ("name", "pairs")}  # fmt: skip
    few = given.take(range(19))  # too few to hold some out: the other set alone
    assert "dev_sets" not in train(few, replace(PLAIN, dim=5), dev=[0.2, large]).training


def test_settings_are_chosen_by_the_mean(sets):
    given, large, small = sets
    settings = replace(PLAIN, subwords=None, max_terms=200)
    found, tried = tuning.tune(given, settings, dev=[large, small], names=("min_df",))
    assert len(tried) == 2 and found.min_df == max(tried, key=lambda one: one["mrr"])["min_df"]
    score = train(given, replace(settings, min_df=2), dev=[large, small]).training["dev"]["mrr"]
    assert tried[0] == {"min_df": 2, "mrr": score}
    _, tried = budget.search(given, replace(PLAIN, dim=20), seconds=1e-9, dev=[large, small], free=("noise",))
    assert tried[0]["mrr"] == pytest.approx(train(given, PLAIN, dev=[large, small]).training["dev"]["mrr"], abs=2e-4)


@pytest.mark.parametrize("dev, told", [
    ([], "dev: expected pairs, or a share in [0, 1), got none"), ([0.1, 0.2], "dev: expected one share at most"),
    ([0, "own"], "dev: expected no share of 0 beside pairs"), ([True], "dev: expected pairs, or a share in [0, 1)"),
    (["own", 1.5], "dev: expected pairs, or a share in [0, 1), got 1.5"), ("pairs.tsv", "dev: expected pairs, or a"),
    (float("nan"), "dev: expected pairs, or a share in [0, 1), got nan")])
def test_bad_sets_are_refused(sets, dev, told):
    dev = [sets[1] if one == "own" else one for one in dev] if isinstance(dev, list) else dev
    with pytest.raises(ValueError, match=r"^dev: ") as error:
        train(sets[0], PLAIN, dev=dev)
    assert str(error.value).startswith(told)


def test_a_set_that_cannot_be_used_is_named(sets):
    given, large, small = sets
    spanish = data_pairs.make("other", ["1", "2"], ["a", "b"], ["c", "d"], languages=("en", "es"))
    with pytest.raises(ValueError, match=r"dev 2 \(other\): expected languages"):
        train(given, PLAIN, dev=[large, spanish])
    with pytest.raises(ValueError, match="dev: expected languages"):
        train(given, PLAIN, dev=[spanish])
    with pytest.raises(ValueError, match=r"dev 2 \(small\): expected at least two pairs"):
        train(given, PLAIN, dev=[large, small.take([0])])
    with pytest.raises(ValueError, match=r"dev 2 \(small\): expected at least two different pairs in small .*, got 1"):
        train(given, PLAIN, dev=[large, small.take([0, 0, 0])])
    with pytest.raises(ValueError, match="dev: expected at least two different pairs in small .*, got 1"):
        train(given, PLAIN, dev=small.take([0, 0]))
    bare = data_pairs.make("bare", "12", ["!", "!"], ["a", "a"], languages=("en", "en"))  # equal to no other
    assert held_out.varied(bare) and len(mates.once(bare)) == 2
    with pytest.raises(ValueError, match="dev: expected one share or set of pairs, for s2net-mse, got 2"):
        train(given, Settings(method="s2net-mse"), dev=[large, small], grades=np.ones(len(given)))


def test_what_is_said_of_a_set_names_it(sets):
    given, large, small = sets
    few, messages = given.take(range(19)), []
    train(few, replace(PLAIN, dim=5), dev=[0.2, large, few.take(range(3))], say=messages.append)
    assert ("dev 1 (a share of 0.2): no pairs held out beside those of the other sets: there are fewer than 20"
            in messages)  # fmt: skip
    assert ("3 of the 3 pairs of dev 3 (train) are training pairs too: its score is not that of new pairs"
            in messages)  # fmt: skip
    texts = [f"one and the same long text about gardens number {number}" for number in range(30)]
    alike = data_pairs.make("alike", map(str, range(30)), texts, texts, languages=("en", "en"))
    for dev, told in (([0.2, small], "dev 1 (a share of 0.2): no pairs held out beside those of the other sets: a "
                       "share of 0.2, near-duplicates kept together, leaves none to train on or fewer than two to "
                       "measure by; give another share"),
                      (0.2, "no pairs held out: a share of 0.2, near-duplicates kept together, leaves none to train on "
                       "or fewer than two to measure by; give another share, or dev pairs of your own")):
        messages.clear()
        train(alike, replace(PLAIN, dim=5), dev=dev, say=messages.append)
        assert told in messages, messages


@pytest.mark.parametrize("subwords", [0.0, 0.5])
def test_a_set_of_unknown_words_is_named_and_counts_in_the_mean(sets, subwords):
    given, large, small = sets
    settings, messages = replace(PLAIN, subwords=subwords), []
    left, right = [f"{letter}\u0416\u0429" for letter in "abcd"], [f"{letter}\u042e\u042f" for letter in "abcd"]
    unknown = data_pairs.make("unknown", "1234", left, right, languages=("en", "en"))
    half = data_pairs.make("half", "1234", [*left[:2], *small.left[:2]], [*right[:2], *small.right[:2]],
                           languages=("en", "en"))
    found = train(given, settings, dev=[small, unknown, half], say=messages.append).training
    assert [line for line in messages if "known words" in line] == [
        "4 of the 4 pairs of dev 2 (unknown) have a text without known words, similar to none: its score says little "
        "of the model, but counts in the mean as any other"]  # fmt: skip
    scores = [one["mrr"] for one in found["dev_sets"]]
    assert scores[1] == 0.25 and found["dev"]["mrr"] == pytest.approx(np.mean(scores), abs=1e-4)  # the last of four
    train(given, settings, dev=unknown, say=messages.append)
    assert ("4 of the 4 dev pairs have a text without known words, similar to none: the dev score says little of the "
            "model" in messages)  # fmt: skip


def test_equal_sets_and_equal_identifiers_are_no_trouble(sets):
    given, large, _ = sets
    twice = train(given, PLAIN, dev=[large, large]).training
    assert twice["dev_sets"][0] == twice["dev_sets"][1]
    assert held_out.together([large, large]).left == large.left * 2


def test_a_training_goes_on_with_the_sets_that_it_began_with(sets, tmp_path):
    given, large, small = sets
    settings = Settings(method="s2net", dim=10, max_iter=2, max_terms=300)
    first = train(given, settings, dev=[large, small], checkpoint=tmp_path / "c")
    renamed = [replace(one, name="moved", ids=tuple(f"_{number}" for number in one.ids)) for one in (large, small)]
    again = train(given, settings, dev=renamed, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(again.params.weights, first.params.weights)
    whole = held_out.together([large, small])
    for dev in ([large], [small, large], whole, [large, small.take(range(17))], 0):
        with pytest.raises(ValueError, match="checkpoint: expected one of a training with these held-out pairs, got"):
            train(given, settings, dev=dev, checkpoint=tmp_path / "c")
    choice = tmp_path / "c" / "checkpoint.settings.json"
    kept = json.loads(choice.read_text())
    choice.write_text(json.dumps({name: kept[name] for name in kept if name != "dev"}))
    train(given, settings, dev=large, checkpoint=tmp_path / "c")  # of an earlier version, which kept no held-out sets


@pytest.mark.programs
def test_resume_with_another_file_of_held_out_pairs_is_refused(sets, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(sets, tmp_path)
    words = ["train", "--pairs", "train.tsv", "--out", "model", "--dim", "5", "--max-iter", "12", "--max-terms", "300"]
    with monkeypatch.context() as patch:
        interrupting(patch, 2)
        assert cli.main([*words, "--dev", "small.tsv"]) == cli.INTERRUPTED
    told = refused(capsys, *words, "--dev", "large.tsv", "--resume")
    assert told == ("checkpoint: expected one of a training with these held-out pairs, got one with others in "
                    "model.checkpoint (give the pairs and the --dev of before, in the same order, or begin "
                    "anew: without --resume, or in another folder)")  # fmt: skip
    run(capsys, *words, "--dev", "small.tsv", "--resume")


def written(sets, folder):
    """A file of each set."""
    for one in sets:
        lines = ["\t".join(" ".join(text.split()) for text in pair)
                 for pair in zip(one.left, one.right, strict=True)]  # fmt: skip
        (folder / f"{one.name}.tsv").write_text("\n".join(lines), encoding="utf-8")


def test_command_line(sets, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(sets, tmp_path)
    (tmp_path / "one.tsv").write_text("some words\tsome more words\n")
    options = ["train", "--pairs", "train.tsv", "--out", "model"]
    graded = [*options, "--method", "s2net-mse", "--label", "2"]
    options += ["--method", "opca", "--dim", "20", "--max-terms", "400"]
    output = run(capsys, *options, "--dev", "large.tsv", "--dev", "small.tsv", "--dev", "0.2")
    lines = [line.split("  ")[0] for line in output.splitlines()]
    for name in ("dev, mean of 3 sets", "dev 1: large.tsv (80 pairs)", "dev 2: small.tsv (18 pairs)",
                 "dev 3: held out ("):  # fmt: skip
        assert any(line.startswith(name) for line in lines), output
    card = (tmp_path / "model" / "README.md").read_text(encoding="utf-8")
    assert "- dev, mean of 3 sets: accuracy 0." in card and "- dev_sets: name large.tsv, pairs 80, accuracy 0." in card
    told = Model.load("model").training
    assert told["command"].count("--dev") == 3 and "--dev large.tsv" in told["command"]
    output = run(capsys, *options, "--dev", "large.tsv", "--dev", "small.tsv", "--json")
    found = json.loads(output)
    assert found["dev"]["mrr"] == pytest.approx(np.mean([one["mrr"] for one in found["dev_sets"]]), abs=1e-4)
    (tmp_path / "copies.tsv").write_text("a b\tc\nA  b\tc!\n")
    for words, given, told in (
        (options, ("copies.tsv",), "--dev: expected at least two different pairs in copies.tsv (one alone always"),
        (options, ("0.1", "0.2"), "--dev: expected one share at most"),
        (options, ("0", "large.tsv"), "--dev: expected no share of 0 beside files"),
        (options, ("-", "-"), "--dev: expected standard input (-) once"),
        (options, ("large.tsv", "one.tsv"), "--dev: expected at least two pairs in one.tsv (one alone always finds"),
        (graded, ("0.1", "large.tsv"), "--dev: expected one share or file, for s2net-mse"),
    ):
        assert told in refused(capsys, *words, *(word for one in given for word in ("--dev", one)))
