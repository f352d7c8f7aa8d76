"""BENCHMARKS.md and its figures, made from records (and the papers' printed figures) alone."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.kit import papers, records, report_curves, report_scale, report_tables, report_terms
from jaxsim import io
from jaxsim.pictures import figures as svg

_HEAD = """\
# Benchmarks

Made by `python experiments/report.py` from the records in `{results}`; edit neither by hand.

- **paper**: the figure as printed, with its dimension. **ours**: mean over seeds, ± sample standard deviation where
  something is random, number of seeds in brackets, on test data; every setting was chosen on development data.
- **difference**: ours less the paper's; with other data it compares the shape of a table, not the systems.
- **data**: `same` as the paper's, `resampled` from the same source, a `substitute`, or `synthetic`.
- **status**: `reproduced`, `within noise`, or what is off and why. Rows nobody has run yet stay, as *not run*.
- Ties count as errors, both directions of a pair are averaged, and near-duplicates never cross a split. The sanity
  rows come first, then the paper's rows in its order, then ours. **Bold**: the smallest set of best rows (unpaired
  t-tests on per-query values with Bonferroni's correction).
"""

_TABLES = {
    "docstrings": "Docstrings: summary and body",
    "en-es": "English–Spanish documentation, all sources",
    "en-es-human": "English–Spanish documentation, sources translated by people",
    "en-es-unseen": "English–Spanish documentation, test sources never seen in training",
    "en-fr": "English–French web documentation",
    "en-ja": "English–Japanese web documentation",
    "en-it-speeches": "English–Italian Europarl, speeches",
    "en-it-lines": "English–Italian Europarl, single lines",
    "en-it-sentences": "English–Italian Europarl, sentences",
    "nfcorpus": "NFCorpus: pages' titles and abstracts",
    "nfcorpus-1024": "NFCorpus: pages' titles and abstracts, 1,024 dimensions",
    "yih2010_reuters/table2": "Reuters-21578: term vectors",
    "yih2010_reuters/table3": "Reuters-21578: concept vectors",
    "bai2010_links/table1": "Wikispeedia: links split at random",
    "bai2010_links/table3": "Wikispeedia: documents split, links inside each part",
    "bai2010_links/training-links": "Wikispeedia: some of the training links",
    "bai2010_links/mdn": "MDN: English pages and their links",
    "bai2010_links/cacm": "CACM: articles and their citations",
    **report_scale.TABLES,
    "patent-phrases": "Patent phrases, by what a search for them finds",
    "product-search": "Product search, queries and product pages",
    "httpd-html": "HTML features: the Apache manual, anchor texts as queries (weak labels)",
}


def generate(
    results: str | os.PathLike[str], benchmarks: str | os.PathLike[str], figures: str | os.PathLike[str]
) -> list[Path]:
    """Writes BENCHMARKS.md and the figures.

    Args:
      results: Root of the records.
      benchmarks: The Markdown file to write.
      figures: Folder of the SVG files. A figure of an earlier report that no record asks for is removed.

    Returns:
      The files written, BENCHMARKS.md first.

    Raises:
      FileNotFoundError: there is no results folder.
      ValueError: a record is malformed, or records of one table do not belong together; the message names the file.
    """
    files = _render(Path(results), Path(benchmarks), Path(figures))
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        io.write_bytes(path, content)
    for path in _stale(Path(figures), files):
        path.unlink()
    return list(files)


def check(
    results: str | os.PathLike[str], benchmarks: str | os.PathLike[str], figures: str | os.PathLike[str]
) -> list[str]:
    """Compares the files with what `generate` would write.

    Args:
      results: Root of the records.
      benchmarks: The Markdown file.
      figures: Folder of the SVG files.

    Returns:
      One line a difference, naming the file; empty when all is as generated.

    Raises:
      FileNotFoundError: there is no results folder.
      ValueError: as `generate`.
    """
    files = _render(Path(results), Path(benchmarks), Path(figures))
    differences = []
    for path, content in files.items():
        if not path.is_file():
            differences.append(f"{path}: missing")
        elif path.suffix == ".svg":
            if not svg.same(path.read_bytes(), content):
                differences.append(f"{path}: not the figure that the records give")
        elif path.read_bytes() != content:
            differences.append(f"{path}: {_first_difference(path.read_bytes(), content)}")
    differences += [f"{path}: no record asks for this figure" for path in _stale(Path(figures), files)]
    return differences


def _render(results: Path, benchmarks: Path, figures: Path) -> dict[Path, bytes]:
    """Contents of every generated file by path."""
    found = records.read_all(results)
    base = benchmarks.parent
    link = Path(os.path.relpath(results, base)).as_posix()
    sections: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for path, record in found.items():
        sections.setdefault((record["experiment"], record["table"]), {})[f"{link}/{path}"] = record
    text = [_HEAD.format(results=link)]
    drawn: dict[Path, bytes] = {}
    for experiment in sorted({name for name, _ in sections}, key=lambda name: _experiment_order(name, found)):
        text.append(f"\n## {experiment}\n\n{_citations(experiment, found)}")
        for table in sorted((t for e, t in sections if e == experiment), key=_table_order):
            section, pictures = _section(experiment, table, sections[experiment, table])
            for suffix, (what, figure) in pictures.items():
                path = figures / f"{experiment}-{table}{suffix}.svg"
                drawn[path] = figure
                where = Path(os.path.relpath(path, base)).as_posix()
                section += f"\n![{what}: {experiment}, {table}]({where})\n"
            text.append(section)
        if experiment == report_scale.EXPERIMENT:
            text.append(report_scale.waiting({table for name, table in sections if name == experiment}))
    named = {record["paper"] for record in found.values()}
    waiting = [name for name in papers.TABLES if name not in named]
    if waiting:
        text.append("\n## Printed tables that no record stands beside yet\n")
        text += [f"\n### {name}: {papers.TABLES[name].title}\n\n{report_tables.main(name, {})}" for name in waiting]
    return {benchmarks: "".join(text).encode(), **drawn}


def _section(
    experiment: str, table: str, rows: dict[str, dict[str, Any]]
) -> tuple[str, dict[str, tuple[str, bytes]]]:
    """One table with its data, groups and provenance; and the figures that the records have the data of, by suffix."""
    report_tables.belong_together(rows)
    paper = next(iter(rows.values()))["paper"]
    printed = papers.TABLES.get(paper)
    text = f"\n### {_title(experiment, table)}\n\n"
    if printed is not None:
        text += f"Beside {paper}: {printed.title} ({printed.data}).\n"
    text += report_tables.data(rows) + "\n"
    measured = {path: record for path, record in rows.items() if "measurements" in record}
    tested = {path: record for path, record in rows.items() if record["metrics"]}
    if tested:
        text += report_tables.main(paper, tested) + report_terms.extensions(tested)
    if measured:
        text += ("\n" if tested else "") + report_tables.speed(measured)
    text += report_tables.naive(paper, tested) + report_tables.by_group(tested, paper) + report_tables.provenance(rows)
    title = f"{experiment}: {_title(experiment, table)}"
    figures = {**report_curves.against_sizes(title, tested, paper),
               "-training": ("Training curves", report_curves.training(title, tested, paper)),
               "-seconds": ("Dev score against seconds", report_curves.seconds(title, tested, paper)),
               "-terms": ("Weights of terms", report_terms.weights(title, tested)),
               "-cost": ("Seconds against work", report_scale.figure(title, measured))}  # fmt: skip
    return text, {suffix: (what, figure) for suffix, (what, figure) in figures.items() if figure is not None}


def _title(experiment: str, table: str) -> str:
    return _TABLES.get(f"{experiment}/{table}", _TABLES.get(table, table))


def _citations(experiment: str, found: Mapping[str, dict[str, Any]]) -> str:
    names = sorted({record["paper"][:3] for record in found.values() if record["experiment"] == experiment})
    lines = [f"{name}: {papers.CITATIONS[name]}" for name in names if name in papers.CITATIONS]
    return "".join(f"{line}\n" for line in lines)


def _experiment_order(experiment: str, found: Mapping[str, dict[str, Any]]) -> tuple[bool, str, str]:
    first = min(record["paper"] for record in found.values() if record["experiment"] == experiment)
    return first == "none", first, experiment


def _table_order(table: str) -> tuple[int, str]:
    known = list(_TABLES)
    return known.index(table) if table in known else len(known), table


def _stale(figures: Path, files: Mapping[Path, bytes]) -> list[Path]:
    """Figures that an earlier report left: drawn by `pictures.figures`, and no record asks for them now."""
    drawn = [path for path in sorted(figures.glob("*.svg")) if path not in files]
    return [path for path in drawn if svg.digest(path.read_bytes()) is not None]


def _first_difference(have: bytes, want: bytes) -> str:
    mine, right = have.decode(errors="replace").splitlines(), want.decode().splitlines()
    for number, (left, other) in enumerate(zip(mine, right, strict=False), start=1):
        if left != other:
            return f"line {number}: expected {other!r}, got {left!r}"
    return f"expected {len(right)} lines, got {len(mine)}"
