"""The rule of scripts: each can be read alone, so that it imports the kit, the corpora and jaxsim, and no sibling."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from experiments.kit import scripts

ROOT = Path(__file__).resolve().parents[2] / "experiments"
SHARED = {"kit", "corpora"}
SIBLINGS = {
    # Rows of a table that are a family by themselves; the script's docstring says what they are.
    "completion.completion2012": {"completion.neural"},
    "pilsa.pilsa2012": {"pilsa.further"},
    # A program that is compared with: its training loop, which needs PyTorch.
    "peers.title_search": {"peers.static"},
    "peers.systems": {"peers.static"},
    # Programs that measure, an entry each: rows, a file a subject.
    "peers.peers": {"peers.systems"},
    "scale.scale": {"scale.rows"},
    "scale.rows": {"scale.linear", "scale.peers", "scale.points", "speed.peers", "speed.rows"},
    "scale.linear": {"scale.points"},
    "speed.speed": {"speed.rows"},
    "speed.rows": {"speed.disk", "speed.features", "speed.fits", "speed.language", "speed.links", "speed.peers",
                   "speed.texts", "speed.thesaurus", "speed.topics", "speed.weights"},
    "speed.accelerator": {"speed.peers"},
    "speed.fits": {"speed.peers"},
    "speed.weights": {"speed.peers"},
    "speed.language": {"completion.completion2012"},  # for the novels that it keeps as numbers
}
"""Module -> siblings that it may import: what a reader would have to open beside it."""


def imported(source: str) -> set[str]:
    """What a module imports of `experiments`, without that name; inside functions too."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {node.module} if (node.module or "").count(".") > 1 else names
    return {name.removeprefix("experiments.") for name in found if name.startswith("experiments.")}


def modules() -> dict[str, Path]:
    """Every module of a folder of scripts."""
    return {f"{path.parent.name}.{path.stem}": path for path in sorted(ROOT.glob("*/[!_]*.py"))
            if path.parent.name not in SHARED}


def test_imports_are_found_in_every_form():
    source = ("from experiments import kit\nfrom experiments.kit.measure import race\nimport jaxsim\n"
              "def late():\n    from experiments.peers import static\n    import experiments.speed.rows\n")
    assert imported(source) == {"kit", "kit.measure", "peers.static", "speed.rows"}


@pytest.mark.parametrize("name", modules())
def test_a_script_imports_the_kit_and_the_corpora_and_no_sibling_but_those_named(name):
    found = imported(modules()[name].read_text(encoding="utf-8"))
    siblings = {other for other in found if other.partition(".")[0] not in SHARED}
    assert siblings == SIBLINGS.get(name, set())


def test_reasons_are_written_for_tables_of_their_claims():
    for experiment in scripts.collect().values():
        for claim in experiment.claims:
            assert set(claim.why) <= set(claim.tables), claim.id


def test_few_tables_have_rows_in_a_second_file_and_their_scripts_say_so():
    tables = scripts.collect()
    beside = {name: siblings for name, siblings in SIBLINGS.items() if name.partition(".")[2] in tables}
    assert set(beside) == {"completion.completion2012", "peers.title_search", "pilsa.pilsa2012"}
    for name, siblings in beside.items():
        about = tables[name.partition(".")[2]].about
        assert all(sibling.partition(".")[2] in about for sibling in siblings), name
