"""The experiments' own rules: what is trained on, what is skipped, what a preset may write."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import program_until_stopped
import pytest

from experiments.corpora import mates as mates_corpora
from experiments.kit import records

pytestmark = pytest.mark.programs
EXPERIMENTS = Path(__file__).resolve().parents[2] / "experiments"
DATA = os.environ.get("JAXSIM_DATA")
real = pytest.mark.skipif(not DATA, reason="JAXSIM_DATA names no data folder, so the corpora are not here")


def run(script, *options):
    return subprocess.run([sys.executable, "-m", f"experiments.{script}", *map(str, options)],
                          cwd=EXPERIMENTS.parent, capture_output=True, text=True, timeout=240, check=False)


def test_quick_presets_do_not_write_among_the_published_records():
    result = run("mates.platt2010", "--preset", "quick", "--out", EXPERIMENTS / "results" / "x")
    assert result.returncode == 2 and "--out: expected a folder outside experiments/results" in result.stderr


def test_the_paper_preset_asks_for_the_release(tmp_path):
    result = run("mates.platt2010", "--preset", "paper", "--out", tmp_path)
    assert result.returncode == 2 and "the corpus 'europarl_release'" in result.stderr


def test_a_missing_corpus_is_one_line_that_says_what_to_get():
    environment = {key: value for key, value in os.environ.items() if key != "JAXSIM_DATA"}
    result = subprocess.run([sys.executable, "-m", "experiments.mates.yih2011", "--tables", "en-fr"],
                            cwd=EXPERIMENTS.parent, text=True, capture_output=True, env=environment, timeout=120,
                            check=False)
    assert result.returncode == 2
    assert "JAXSIM_DATA" in result.stderr.strip().splitlines()[-1] and "Traceback" not in result.stderr


def test_rows_with_a_record_are_not_run_again(tmp_path):
    options = ("--preset", "quick", "--out", tmp_path, "--rows", "tf")
    assert run("mates.platt2010", *options).returncode == 0
    path = tmp_path / "platt2010_mates" / "docstrings" / "tf.json"
    first = records.read(path)
    again = run("mates.platt2010", *options)
    assert again.returncode == 0 and records.read(path)["started"] == first["started"]
    assert " mrr " in run("mates.platt2010", *options, "--again").stderr
    assert records.read(path)["metrics"] == first["metrics"]


@pytest.mark.programs
@pytest.mark.parametrize(("sent", "at"), [
    (signal.SIGKILL, r"cache/.*\.fit$"), (signal.SIGKILL, r"cl-lsi\.json$"), (signal.SIGINT, r"cl-lsi\.json$"),
], ids=["killed after the first fit", "killed at the record", "Ctrl-C at the record"])
def test_a_run_that_is_stopped_goes_on_where_it_was(tmp_path, sent, at):
    options = ["mates.yih2011", "--preset", "quick", "--out", tmp_path, "--rows", "cl-lsi"]
    command = [sys.executable, program_until_stopped.__file__, int(sent), at, f"experiments.{options[0]}", *options[1:]]
    stopped = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=240, check=False)
    assert stopped.returncode == -sent, stopped.stderr
    path = tmp_path / "yih2011_mates" / "docstrings" / "cl-lsi.json"
    fits = list((tmp_path / "cache").glob("*.fit"))
    assert not path.exists() and len(fits) == (3 if "cl-lsi" in at else 0)
    again = run(*options)
    assert again.returncode == 0, again.stderr
    assert again.stderr.count(" fitted in ") == 3 - len(fits)
    assert records.read(path)["metrics"]["mrr"]["mean"] > 0.3
    with np.load(path.with_suffix(".npz")) as values:
        assert values["mrr"].mean() == pytest.approx(records.read(path)["metrics"]["mrr"]["mean"], rel=1e-5)


@real
def test_no_group_of_near_duplicates_crosses_a_split(scripts):
    from jaxsim.data import splits
    from jaxsim.data.pairs import tokenize

    corpora = mates_corpora
    corpus = corpora.CORPORA["en-it-speeches"](300)
    left, right = tokenize(corpus.pairs)
    groups = splits.group_near_duplicates(left, right)
    parts = np.asarray([name.split("/")[0] for name in corpus.pairs.ids])
    assert set(parts) == {"train", "dev", "test"}
    crossing = set(groups[parts == "train"]) & set(groups[parts == "test"])
    kept = sum(sides[0].shape[0] for sides in corpus.task.counts.values())
    assert kept <= len(left) - len(crossing)


@real
def test_of_the_split_of_nfcorpus_a_few_queries_are_near_duplicates_as_the_report_says():
    from experiments.kit import report
    from jaxsim import text
    from jaxsim.data import nfcorpus, splits

    asked = [(part, query) for part, queries in nfcorpus.load().queries.items() for query in queries.values()]
    groups = splits.group_near_duplicates([text.words(query) for _, query in asked])
    pairs = {(part, group) for (part, _), group in zip(asked, groups.tolist(), strict=True)}
    shared = {group for part, group in pairs if part == "test"} & {group for part, group in pairs if part != "test"}
    of_test = [group in shared for (part, _), group in zip(asked, groups.tolist(), strict=True) if part == "test"]
    assert 0 < sum(of_test) < 0.03 * len(of_test)
    said = report._TABLES_HEAD.replace("\n", " ")
    assert "the splits of NFCorpus and Reuters-21578 are their authors', which a few cross" in said


@real
def test_unseen_sources_are_not_trained_on(scripts, monkeypatch):
    corpora = mates_corpora
    load, some = corpora._load, ("astro", "electron", "react", "tico19", "fcc_curriculum")  # the small ones
    monkeypatch.setattr(corpora, "_load", lambda language: load(language, sources=some))
    corpus = corpora.CORPORA["en-es-unseen"](1000)
    sources = {name: set(of.tolist()) for name, of in corpus.task.sources.items()}
    assert sources["test"] == {"astro", "react", "tico19"} <= set(corpora.UNSEEN_TEST)
    assert not sources["train"] & (set(corpora.UNSEEN_TEST) | set(corpora.UNSEEN_DEV))


@real
def test_the_official_release_is_read_by_speaker(scripts, tmp_path):
    from jaxsim.data import europarl

    sample = Path(DATA) / "europarl_en_fr_tagged"
    if not sample.is_dir():
        pytest.skip("europarl_en_fr_tagged is not in the data folder")
    days = europarl.load_release(sample, "en", "fr")
    assert len(days) > 400 and all(days.left) and all(days.right)
    with pytest.raises((ValueError, FileNotFoundError)):
        mates_corpora.paper_years(sample, "en", "fr")  # three days of 2000 alone: no training years
