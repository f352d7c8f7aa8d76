"""A room imports only rooms above it in the table of docs/design.md; the checker itself is tested at the end."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "jaxsim"

# One line a room: its level, then the modules or folders in it. Modules of one room may import each other; two rooms of
# one level may not.
ROOMS = (
    (-1, {"checks", "sparse_checks", "sparse_products", "slices", "precision", "gathering"}),
    (0, {"terms"}),
    (1, {"vectors"}),
    (2, {"losses", "sweep"}),
    (3, {"sharding", "term_shards", "processes"}),
    (3, {"text", "tokens", "subwords", "markup", "features", "features_html"}),
    (3, {"linalg", "krylov", "covariance", "row_space"}),
    (3, {"pairs"}),
    (3, {"optim", "checkpoints"}),
    (3, {"retrieval", "scorers"}),
    (3, {"metrics", "curves", "significance", "corrections", "resampling"}),
    (4, {"models"}),
    (4, {"corpus", "corpus_build", "corpus_words"}),
    (5, {"methods"}),
    (5, {"io"}),
    (5, {"data"}),
    (6, {"mates"}),
    (6, {"all_pairs"}),
    (6, {"ranking"}),
    (6, {"model", "model_parts"}),
    (6, {"trec"}),
    (6, {"records", "record_schema", "record_history", "environment", "report", "report_tables", "report_figures",
         "report_curves", "report_neighbours", "report_scale", "report_terms", "papers"}),
    (7, {"training", "training_parts", "training_s2net", "training_links", "training_grades", "training_distilled",
         "tuning", "estimator", "rates", "estimate"}),
    (7, {"report_model", "report_dimensions"}),
    (7, {"index"}),
    (7, {"export", "export_onnx"}),
    (8, {"cli", "demo", "experiments", "__init__", "__main__"}),
)
LEVELS = {name: level for level, names in ROOMS for name in names}
MATES = {name: names for _, names in ROOMS for name in names}
ONLY_OPTIM = {"jaxopt", "optax"}


def imported(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """Dotted names of everything ``module`` imports, wherever in the file; relative ones are resolved."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parts = module.split(".")
                parts = parts[: len(parts) - node.level + is_package]
                base = ".".join([*parts, base] if base else parts)
            if base == "jaxsim":
                names += [f"jaxsim.{alias.name}" for alias in node.names]
            else:
                names.append(base)
    return names


def faults(source: str, module: str, *, is_package: bool = False) -> list[str]:
    """What is wrong with the imports of ``module``, a dotted name such as ``jaxsim.methods.opca``."""
    room = module.split(".")[1] if "." in module else "__init__"
    if room not in LEVELS:
        return [f"{module} stands in no room"]
    found = []
    for name in imported(source, module, is_package=is_package):
        parts = name.split(".")
        if parts[0] in ONLY_OPTIM and room != "optim":
            found.append(f"{module} imports {name}, which only jaxsim.optim may")
        if parts[0] not in ("jaxsim", "experiments"):
            continue
        other = parts[0] if parts[0] == "experiments" else parts[1] if len(parts) > 1 else "__init__"
        if parts[0] == "jaxsim" and other.startswith("__version"):
            continue
        if other not in LEVELS:
            found.append(f"{module} imports {name}, which stands in no room")
        elif other not in MATES[room] and LEVELS[other] >= LEVELS[room]:
            found.append(f"{module} (level {LEVELS[room]}) imports {name} (level {LEVELS[other]})")
    return found


def _modules():
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = list(path.relative_to(PACKAGE.parent).with_suffix("").parts)
        is_package = parts[-1] == "__init__"
        yield ".".join(parts[:-1] if is_package else parts), path, is_package


def test_every_module_imports_only_rooms_above_it():
    modules = list(_modules())
    assert {"jaxsim", "jaxsim.terms", "jaxsim.retrieval"} <= {module for module, _, _ in modules}
    found = []
    for module, path, is_package in modules:
        found += faults(path.read_text(encoding="utf-8"), module, is_package=is_package)
    assert not found, "\n".join(found)


def test_no_module_is_listed_in_two_rooms():
    assert sum(len(names) for _, names in ROOMS) == len(LEVELS)


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jaxsim.terms", "from jaxsim import vectors"),
        ("jaxsim.terms", "from jaxsim import checks, vectors"),
        ("jaxsim.terms", "import jaxsim.vectors as v"),
        ("jaxsim.terms", "import jaxsim"),
        ("jaxsim.terms", "from .vectors import cosine"),
        ("jaxsim.terms", "from . import checks, vectors"),
        ("jaxsim.text", "def late():\n    from jaxsim.data import splits"),
        ("jaxsim.text", "if True:\n    import jaxsim.metrics"),
        ("jaxsim.models.projection", "from ..methods import opca"),
        ("jaxsim.data.pairs", "from jaxsim.methods.opca import fit"),
        ("jaxsim.methods.opca", "from jaxsim.data import docstrings"),
        ("jaxsim.methods.opca", "from jaxsim import cli"),
        ("jaxsim.methods.opca", "from experiments import speed"),
        ("jaxsim.methods.opca", "import optax"),
        ("jaxsim.methods.opca", "from jaxopt import LBFGS"),
        ("jaxsim.methods.opca", "import jaxopt.linear_solve"),
        ("jaxsim.checkpoints", "import optax"),
        ("jaxsim.methods.opca", "from jaxsim import attic"),
        ("jaxsim.attic", "import numpy"),
    ],
)
def test_the_checker_finds_a_made_up_fault(module, source):
    assert len(faults(source, module)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("jaxsim.optim", "import jaxopt\nfrom optax import adam\nfrom jaxsim import checkpoints"),
        ("jaxsim.methods.opca", "from jaxsim.methods import lsa\nfrom .statistics import means\nimport jaxsim.linalg"),
        ("jaxsim.methods.opca", "from ..models import projection\nfrom ..optim import Fit"),
        ("jaxsim.records", "from jaxsim import __version__"),
        ("jaxsim.cli", "from jaxsim import demo, report\nfrom experiments import speed"),
        ("jaxsim", "from importlib import metadata"),
    ],
)
def test_the_checker_accepts_what_the_table_allows(module, source):
    assert faults(source, module) == []


def test_relative_imports_of_a_package_resolve_inside_it():
    assert imported("from . import pairs", "jaxsim.data", is_package=True) == ["jaxsim.data"]
    assert imported("from .. import checks", "jaxsim.data", is_package=True) == ["jaxsim.checks"]
    assert imported("from .pairs import Pairs", "jaxsim.data.mdn") == ["jaxsim.data.pairs"]
