"""Settings chosen by held-out pairs: the library against a plain search, and `train --tune`."""

from __future__ import annotations

import itertools
import json
import re
from dataclasses import replace

import jax
import numpy as np
import pytest
from command_line import refused, run

from jaxsim import cli, io
from jaxsim.cli import train_choice
from jaxsim.data import docstrings
from jaxsim.data import pairs as data_pairs
from jaxsim.model import Model
from jaxsim.optim import checkpoints
from jaxsim.train import Settings, budget, training, tuning
from jaxsim.train.settings import TUNED, fields

FEW = Settings(method="opca", dim=20)
STEMS = [f"{a}{b}{c}" for a, b, c in itertools.product("bdfgk", "aeiou", "lmnrt")]


@pytest.fixture(scope="module")
def corpus():
    return docstrings.load().take(range(160))


@pytest.fixture(scope="module")
def inflected():
    """Mates that share the spelling of their words and no word."""
    m = len(STEMS)
    left = [f"{STEMS[i]}ing {STEMS[(i * 7 + 3) % m]}ing" for i in range(m)]
    right = [f"{STEMS[i]}ed {STEMS[(i * 7 + 3) % m]}ed" for i in range(m)]
    return data_pairs.make("inflected", [str(i) for i in range(m)], left, right, languages=("en", "en"))


@pytest.fixture
def folder(tmp_path, monkeypatch, corpus):
    monkeypatch.chdir(tmp_path)
    lines = ["\t".join(" ".join(text.split()) for text in pair) for pair in zip(corpus.left, corpus.right, strict=True)]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), encoding="utf-8")
    return tmp_path


@pytest.mark.programs
def test_the_best_of_one_setting_after_the_other_is_taken_as_trainings_by_hand_have_it(corpus):
    start = replace(FEW, method="cca", subwords=0.0)

    def mrr(settings):
        return training.train(corpus, settings, dev=0.2).training["dev"]["mrr"]

    dfs = {value: mrr(replace(start, min_df=value)) for value in (2, 1)}
    df = max(dfs, key=dfs.get)
    shares = {value: mrr(replace(start, min_df=df, subwords=value)) for value in (0.0, 0.5, 0.75)}
    result, tried = tuning.tune(corpus, start, dev=0.2)
    assert result == replace(start, min_df=df, subwords=max(shares, key=shares.get))
    expected = [{"min_df": 2, "subwords": 0.0, "mrr": dfs[2]}, {"min_df": 1, "subwords": 0.0, "mrr": dfs[1]},
                *({"min_df": df, "subwords": share, "mrr": shares[share]} for share in (0.5, 0.75))]
    assert tried == expected


@pytest.mark.programs
def test_ngrams_are_chosen_where_only_the_spelling_is_shared(inflected):
    messages = []
    result, tried = tuning.tune(inflected, replace(FEW, min_df=1), dev=0.2, say=messages.append)
    assert tried[0]["mrr"] < 0.8 < 0.95 < max(one["mrr"] for one in tried)
    assert result == replace(FEW, min_df=1, subwords=result.subwords)
    assert messages[0] == "choosing min_df and subwords by trainings of opca …" and len(messages) == 9
    assert re.fullmatch(r"\d\d held-out pairs made this choice: small differences are chance", messages[-1])
    assert messages[1].startswith("125 pairs: reading") and sum(line.startswith("training") for line in messages) == 1
    assert messages[-5].startswith("with fewer than 100 training pairs every word is kept")
    assert messages[-4] == f"subwords 0.0: mrr {tried[0]['mrr']:.4f} of held-out pairs, by opca"


def test_nothing_is_distilled_to_choose(monkeypatch, corpus):
    seen = []
    monkeypatch.setattr(training, "train", lambda pairs, settings, **_: seen.append(settings.distill) or _Scored(0.5))
    assert tuning.tune(corpus, replace(FEW, distill=0.4))[0].distill == 0.4 and set(seen) == {0.0}


@pytest.mark.parametrize("budget", [(), ("--budget", "1s")])
def test_texts_without_a_mate_count_where_settings_are_chosen(folder, capsys, monkeypatch, budget):
    seen, weigh = [], training.weigh
    monkeypatch.setattr(training, "weigh", lambda *given, unpaired=(), **more: seen.append(len(unpaired)) or weigh(
        *given, unpaired=unpaired, **more))  # fmt: skip
    (folder / "texts.txt").write_text("a zork quux\nthe zork quux\n")
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--method", "opca", "--dim", "5", "--max-terms", "200"]
    words += ["--dev", "0.2", "--texts", "texts.txt", "--no-cross-fit", "--tune", "--subwords", "0", *budget]
    run(capsys, *words)
    assert len(seen) > 1 and set(seen) == {2}


def test_trials_do_not_tell_how_dimensions_will_be_weighed(corpus):
    messages = []
    settings = replace(FEW, dim=5, subwords=0.0, max_terms=200)
    tuning.tune(corpus.take(range(60)), settings, dev=0.1, names=("subwords",), say=messages.append)
    assert any("dev pair" in line for line in messages) and not any(training.EQUALLY in line for line in messages)
    training.train(corpus.take(range(60)), settings, dev=0.1, cross_fit=False, say=messages.append)
    assert any(line.startswith(training.EQUALLY) for line in messages)


def test_a_choice_that_was_made_with_other_texts_is_not_taken(tmp_path, corpus):
    given = replace(FEW, subwords=0.0, dim=5, max_terms=200)
    choice = train_choice.Choice(["min_df"])
    found = train_choice.chosen(tmp_path, corpus, given, 0.2, choice, ["the zork", "a zork"])
    assert train_choice.chosen(tmp_path, corpus, given, 0.2, choice, ["the zork", "a zork"]) == found
    with pytest.raises(ValueError, match="settings chosen for these pairs and options"):
        train_choice.chosen(tmp_path, corpus, given, 0.2, choice)


def test_of_equals_the_given_setting_is_kept(monkeypatch, corpus):
    monkeypatch.setattr(training, "train", lambda *_, **__: _Scored(0.5))
    result, tried = tuning.tune(corpus, replace(FEW, min_df=3, subwords=0.2))
    assert result == replace(FEW, min_df=3, subwords=0.2)
    assert [(one["min_df"], one["subwords"]) for one in tried] == [(3, 0.2), (1, 0.2), (3, 0.5), (3, 0.75)]


class _Scored:
    """What `train` returns, as far as `tune` looks at it."""

    def __init__(self, mrr):
        self.training = {"dev": {"mrr": mrr}, "pairs": {"train": 1000, "dev": 100}}


@pytest.mark.parametrize("method", TUNED)
def test_s2net_is_tuned_by_its_start_and_others_by_themselves(monkeypatch, corpus, method):
    seen = []
    monkeypatch.setattr(training, "train", lambda _, settings, **__: seen.append(settings.method) or _Scored(0.1))
    result, _ = tuning.tune(corpus, Settings(method=method))
    assert set(seen) == {"opca" if method.startswith("s2net") else method} and result.method == method


def test_of_many_pairs_some_are_trained_on_the_same_every_time(monkeypatch, corpus):
    seen = []
    monkeypatch.setattr(tuning, "MOST_PAIRS", 40)
    monkeypatch.setattr(training, "train", lambda some, *_, dev, **__: seen.append((some.ids, dev)) or _Scored(0.1))
    for settings, dev in ((FEW, 0.2), (FEW, 0.2), (replace(FEW, seed=1), 0.2), (FEW, corpus.take(range(5)))):
        tuning.tune(corpus, settings, dev=dev, names=["min_df"])
    ids = [one[0] for one in seen[::2]]
    assert [len(one) for one in ids] == [50, 50, 50, 40] and ids[0] == ids[1] != ids[2]
    assert list(ids[0]) == [one for one in corpus.ids if one in set(ids[0])] and seen[-1][1].ids == corpus.ids[:5]


@pytest.mark.programs
def test_of_few_pairs_every_word_is_learned_of_and_only_ngrams_are_chosen(corpus):
    messages = []
    result, tried = tuning.tune(corpus.take(range(90)), FEW, dev=0.2, say=messages.append)
    assert [one["subwords"] for one in tried] == [0.0, 0.5, 0.75] and result.min_df == FEW.min_df
    assert all(set(one) == {"subwords", "mrr"} for one in tried)
    assert tuning.tune(corpus.take(range(90)), FEW, dev=0.2, names=["min_df"]) == (FEW, [])
    assert "with fewer than 100 training pairs every word is kept: min_df changes nothing" in messages


def test_without_pairs_to_hold_out_nothing_is_chosen(corpus):
    messages = []
    assert tuning.tune(corpus.take(range(15)), FEW, say=messages.append) == (FEW, [])
    assert messages[-1] == "no setting is chosen: no pairs are held out to choose by"
    assert "no pairs held out: there are fewer than 20" in messages


@pytest.mark.parametrize(("changes", "message"), [
    ({"settings": Settings(method="ssi")}, "method: expected one of s2net, s2net-2, opca, cca, lsa, to tune, got ssi"),
    ({"settings": Settings(method="s2net-mse")}, "method: expected one of"),
    ({"names": ["gamma"]}, "names: expected some of min_df, subwords, got gamma"),
    ({"names": "gamma"}, "names: expected some of min_df, subwords, got gamma"),
    ({"pairs": [1]}, "pairs: expected Pairs, got list"), ({"settings": {}}, "settings: expected Settings, got dict"),
    ({"names": []}, "names: expected some of min_df, subwords"),
    ({"settings": replace(FEW, drop_top=1), "names": ["subwords"]}, "names: expected some of"),
    ({"dev": 0}, "dev: expected pairs to choose by, or a share above 0 and below 1, got 0"),
    ({"dev": 1.0}, "dev: expected pairs"), ({"dev": float("nan")}, "dev: expected pairs"), ({"dev": True}, "dev: exp"),
    ({"dev": "0.1"}, "dev: expected pairs"),
])
def test_what_cannot_be_chosen_is_refused(corpus, changes, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        tuning.tune(**{"pairs": corpus, "settings": FEW, **changes})


@pytest.mark.programs
def test_the_command_line_trains_with_what_was_chosen_and_tells_it(folder, corpus, capsys):
    shown = run(capsys, "train", "--pairs", "pairs.tsv", "--out", "tuned", "--method", "opca", "--dim", "20", "--tune",
                "--dev", "0.2")  # fmt: skip
    tuned = Model.load("tuned").training
    chosen = {name: tuned["settings"][name] for name in ("min_df", "subwords")}
    options = [f"--{name.replace('_', '-')}={value}" for name, value in chosen.items()]
    assert f"chosen: {' '.join(options).replace('=', ' ')} ({tuned['tuning_seconds']} seconds)" in shown.splitlines()
    run(capsys, "train", "--pairs", "pairs.tsv", "--out", "by-hand", "--method", "opca", "--dim", "20", "--dev", "0.2",
        *options)  # fmt: skip
    by_hand = Model.load("by-hand").training
    assert by_hand["dev"] == tuned["dev"] and max(one["mrr"] for one in tuned["tuned"]) == tuned["dev"]["mrr"]
    card = (folder / "tuned" / "README.md").read_text(encoding="utf-8")
    assert "- tuned: min_df 2, subwords 0.0, mrr 0." in card and "{" not in card
    assert not (folder / "tuned.checkpoint").exists()


def test_given_options_are_not_chosen(folder, capsys, monkeypatch):
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--method", "opca", "--dim", "9", "--tune"]
    asked = []
    monkeypatch.setattr(tuning, "tune", lambda *_, names, **__: asked.append(names) or (_ for _ in ()).throw(
        ValueError("it was tuned")))  # fmt: skip
    for given in (["--min-df", "2"], ["--subwords", "0"], ["--drop-top", "1"], []):
        assert refused(capsys, *words, *given) == "it was tuned"
    assert asked == [["subwords"], ["min_df"], ["min_df"], ["min_df", "subwords"]]
    assert refused(capsys, *words, "--min-df", "2", "--subwords", "0").startswith("--tune: expected --min-df, or --sub")
    assert refused(capsys, *words, "--min-df", "2", "--drop-top", "1").startswith("--tune: expected --min-df, or --sub")
    by = "--dev: expected pairs to choose settings by, "
    assert refused(capsys, *words, "--dev", "0") == f"{by}with --tune (or --dev-queries, with --budget as well), got 0"
    assert refused(capsys, *words, "--dev", "0", "--budget", "9s") == f"{by}or --dev-queries, with --tune, got 0"


@pytest.mark.programs
def test_an_interrupted_training_goes_on_with_what_was_chosen(folder, capsys, monkeypatch):
    words = ["train", "--pairs", "pairs.tsv", "--out", "model", "--dim", "9", "--max-iter", "6", "--tune", "--resume"]
    tune, save, asked = tuning.tune, checkpoints.save, []
    monkeypatch.setattr(tuning, "tune", lambda *given, **named: asked.append(given) or tune(*given, **named))

    def stop(*given, **named):
        save(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "save", stop)
    assert cli.main(words) != 0 and "with --resume goes on" in capsys.readouterr().err
    kept = folder / "model.checkpoint" / "checkpoint.tuned.json"
    whole = kept.read_bytes()
    monkeypatch.setattr(checkpoints, "save", save)
    kept.write_bytes(whole[:-9])
    assert refused(capsys, *words).startswith("model.checkpoint/checkpoint.tuned.json: expected the settings that were")
    kept.write_bytes(whole)
    for other in (("--seed", "3"), ("--activation", "tanh")):
        assert refused(capsys, *words, *other).startswith("model.checkpoint: expected settings chosen")
    run(capsys, *words, "--patience", "50")
    assert len(asked) == 1 and Model.load("model").training["tuned"] and not (folder / "model.checkpoint").exists()


def sealed(kept, **other) -> bytes:
    """A choice that is altered by somebody who makes its digest anew."""
    told = json.loads(kept)
    del told["digest"]
    for name, value in other.items():
        told[name] = {**told[name], **value} if isinstance(value, dict) else value
    return io.sealed(told)


ALTERED = [
    lambda kept: b"", lambda kept: b"{}", lambda kept: b'{"asked": 3}', lambda kept: b"[]", lambda kept: kept[:40],
    lambda kept: kept.replace(b'"min_df": 1', b'"min_df": 9'), lambda kept: kept.replace(b'"digest"', b'"other"'),
    lambda kept: sealed(kept, chosen={"gamma": 99.0}), lambda kept: sealed(kept, chosen=[1]),
    lambda kept: sealed(kept, chosen={"subwords": "x"}), lambda kept: sealed(kept, chosen={"min_df": None}),
    lambda kept: sealed(kept, chosen={"min_df": [1]}), lambda kept: sealed(kept, told=5),
    lambda kept: sealed(kept, told={"tuned": [5]}), lambda kept: sealed(kept, told={"tuning_seconds": None}),
]


@pytest.mark.parametrize("harm", range(len(ALTERED)))
def test_a_choice_that_is_not_as_it_was_written_is_made_anew(folder, capsys, monkeypatch, harm):
    begun, tried = Settings(dim=9), [{"min_df": 1, "subwords": 0.0, "mrr": 0.5}]
    monkeypatch.setattr(tuning, "tune", lambda pairs, settings, **_: (replace(settings, min_df=1, subwords=0.0), tried))
    pairs = data_pairs.make("some", ["1"], ["a"], ["b"], languages=("en", "en"))
    asked = (folder, pairs, begun, 0.1, train_choice.Choice(["min_df", "subwords"]))
    first, told = train_choice.chosen(*asked)
    kept = folder / "checkpoint.tuned.json"
    whole = kept.read_bytes()
    assert train_choice.chosen(*asked) == (first, told) and first == replace(begun, min_df=1, subwords=0.0)
    assert capsys.readouterr().err == "taking the settings that were chosen before the interruption\n"
    kept.write_bytes(ALTERED[harm](whole))
    assert kept.read_bytes() != whole and train_choice.chosen(*asked)[0] == first
    assert capsys.readouterr().err == f"{kept}: altered, or of an earlier version; settings are chosen anew\n"
    assert train_choice.chosen(*asked)[0] == first  # the file is whole again
    assert "chosen before the interruption" in capsys.readouterr().err


def test_the_methods_of_the_option_are_those_of_the_library():
    assert set(tuning.CHOICES) <= {field.name for field in fields()} and "s2net-mse" not in TUNED


@pytest.mark.programs
def test_an_interrupted_training_goes_on_with_ssi_where_the_search_chose_it(folder, capsys, monkeypatch):
    """Bit for bit as the training that nothing stopped."""
    words = ["train", "--pairs", "pairs.tsv", "--dim", "9", "--dev", "0.2", "--tune", "--budget", "1s"]
    told, asked, save = [{"method": "ssi", "min_df": 1, "mrr": 0.5}], [], checkpoints.save

    def search(pairs, settings, *, free, **_):
        asked.append(free)
        return replace(settings, method="ssi", min_df=1, identity=3.0, learning_rate=0.03, max_iter=2), told

    def stop(*given, **named):
        save(*given, **named)
        raise KeyboardInterrupt

    monkeypatch.setattr(budget, "search", search)
    monkeypatch.setattr(budget, "FREE", (*budget.FREE, "identity", "learning_rate", "max_iter"))  # a short training
    assert "chosen: --method ssi --min-df 1 (" in run(capsys, *words, "--out", "whole")
    monkeypatch.setattr(checkpoints, "save", stop)
    assert cli.main([*words, "--out", "model"]) != 0 and "with --resume goes on" in capsys.readouterr().err
    monkeypatch.setattr(checkpoints, "save", save)
    run(capsys, *words, "--out", "model", "--resume")
    assert len(asked) == 2 and {"method", "start"} < set(asked[0]) == set(asked[1])
    whole, other = (Model.load(name) for name in ("whole", "model"))
    for one, two in zip(jax.tree.leaves(whole.params), jax.tree.leaves(other.params), strict=True):
        np.testing.assert_array_equal(one, two)
    assert other.method == "ssi" and other.training["tuned"] == whole.training["tuned"] == told
