"""The page about data: its tables are those of the catalogue, and what it says of experiments holds."""

from __future__ import annotations

import importlib
import importlib.util
import json
import re
from pathlib import Path

import pytest

from experiments import kit
from jaxsim.data import MissingCorpus, catalogue, fetching

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(f"experiments.{path.parent.name}.{path.stem}" for path in ROOT.glob("experiments/*/*.py")
                 if "EXPERIMENT = kit." in path.read_text())  # fmt: skip


@pytest.fixture(scope="module")
def corpora():
    spec = importlib.util.spec_from_file_location("corpora_page", ROOT / "docs" / "corpora.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_tables_of_the_page_are_those_of_the_catalogue(corpora):
    text = corpora.PAGE.read_text(encoding="utf-8")
    assert corpora.page(text) == text, "python docs/corpora.py makes them anew"
    assert all(corpus.compared for corpus in catalogue.CORPORA.values() if corpus.files)
    with pytest.raises(ValueError, match=r"data\.md: expected the marks <!-- sizes --> and"):
        corpora.page(text.replace("<!-- sizes -->", ""))


@pytest.mark.parametrize("script", SCRIPTS)
def test_every_corpus_that_an_experiment_asks_for_can_be_fetched(script, corpora, tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSIM_DATA", str(tmp_path))
    experiment = importlib.import_module(script).EXPERIMENT
    for name, plan in experiment.tables.items():
        settings = plan.presets.get("full")
        if settings is None or name == "docstrings":
            continue
        try:
            experiment.load(name, settings)  # a table may need no corpus
        except MissingCorpus as error:
            assert fetching.can_fetch(error.corpus) and error.corpus in corpora.USED


def test_the_page_names_experiments_that_there_are(corpora):
    for corpus, facts in corpora.USED.items():
        assert corpus in catalogue.CORPORA
        for script in re.findall(r"\b(\w+\.\w+)\b", facts):
            assert (ROOT / "experiments" / f"{script.replace('.', '/')}.py").is_file(), script


def test_the_three_commands_of_the_readme_name_what_there_is(corpora):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"<!-- three commands -->\n```bash\n(.*?)```", readme, re.DOTALL)
    fetch, run, report = block.splitlines()
    name, folder = re.fullmatch(r"jaxsim data (\w+) --fetch --root (\w+)", fetch).groups()
    options = re.fullmatch(r"JAXSIM_DATA=(\w+) python -m experiments\.([\w.]+) --preset (\w+) --tables (\S+) "
                           r"--out (\S+)", run)  # fmt: skip
    assert fetching.can_fetch(name) and options[1] == folder and options[2] in corpora.USED[name]
    experiment = importlib.import_module(f"experiments.{options[2]}").EXPERIMENT
    assert options[3] in experiment.tables[options[4]].presets
    assert kit.RESULTS.joinpath(experiment.name, options[4]).is_dir()
    assert re.match(rf"python experiments/report\.py --results {options[5]} ", report)
    records = [json.loads(path.read_bytes()) for path in (kit.RESULTS / experiment.name / options[4]).glob("*.json")]
    minutes = sum(sum(record["seconds"].values()) for record in records) / 60
    assert int(re.search(r"some (\d+) minutes\s+on one core", readme)[1]) == pytest.approx(minutes, rel=0.5)
    compared = re.search(r"`python -m experiments\.kit\.compare (\S+)\s+(\S+)`", readme)
    assert (ROOT / compared[1]).is_dir() and compared[2] == options[5]
    assert "/corpora/" in (ROOT / ".gitignore").read_text().split() and folder == "corpora"
