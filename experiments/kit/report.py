"""BENCHMARKS.md, the pages of details, the ledger and the figures: made from records, printed figures and claims."""

from __future__ import annotations

import ast
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.kit import (
    judge,
    notes,
    papers,
    records,
    report_curves,
    report_ledger,
    report_limits,
    report_page,
    report_scale,
    report_tables,
    report_terms,
)
from experiments.kit.run import Experiment, Plan
from experiments.kit.scripts import collect
from jaxsim import io
from jaxsim.pictures import figures as svg

_SCRIPTS = Path(__file__).resolve().parents[1]
_HEAD = """\
# Benchmarks

Made by `python experiments/report.py` from the records in `{results}` and the scripts' claims; edit it never by hand.
What stands here in a line, [docs/results]({details}) has in full: intervals, sources, counts, curves, measurements;
`{details}/all.html` has all figures on one page, to sort and to filter in a browser.
{quick}
## The papers' claims

"""

_TABLES_HEAD = """
# Tables

**paper**: as printed, with its dimension. **ours**: test data, mean over seeds ± standard deviation (of the metric by
which rows are compared), seeds in brackets. Ties count as errors, both directions of a pair are averaged, and
near-duplicates never cross a split of ours; the splits of NFCorpus and Reuters-21578 are their authors', which a few
cross, and tables of queries and candidates (ads) split the queries: a candidate may stand in several parts. **Bold**:
rows that do not differ from the best one (paired test, p ≥ .05).

**notes**, computed from the record: `start-unchanged` (training returned its start), `edge-of-grid` (the best value is
the last one tried, and its development score is that much above the one before), `cap-reached` (of iterations or
epochs), `fewer-than-five-seeds`, `not-chosen-on-dev`, `uncommitted` (the tree had changes that no commit has), `stale`
(not the settings, or not the split, of the script today).{unchecked}
"""

_TABLES = {
    "en-es-halves": "English–Spanish pages translated by people, first half against second half",
    "en-es-halves-1000": "The same, all rows with 1,000 dimensions",
    "en-es-halves-all": "English–Spanish pages of all sources, first half against second half",
    "en-fr-halves": "English–French pages, first half against second half",
    "en-ja-halves": "English–Japanese pages, first half against second half",
    "en-es-first20": "English–Spanish pages translated by people, first 20 words against the last two thirds",
    "docstrings": "Docstrings: summary and body",
    "en-es": "English–Spanish documentation, all sources",
    "en-es-human": "English–Spanish documentation, sources translated by people",
    "en-es-unseen": "English–Spanish documentation, test sources never seen in training",
    "en-fr": "English–French web documentation",
    "en-ja": "English–Japanese web documentation",
    "en-it-speeches": "English–Italian Europarl, speeches",
    "en-it-speeches-long": "English–Italian Europarl, speeches of at least 100 words",
    "en-it-lines": "English–Italian Europarl, single lines",
    "en-it-sentences": "English–Italian Europarl, sentences",
    "nfcorpus": "NFCorpus: pages' titles and abstracts",
    "nfcorpus-1024": "NFCorpus: pages' titles and abstracts, 1,024 dimensions",
    "yih2010_reuters/table2": "Reuters-21578: term vectors",
    "yih2010_reuters/table3": "Reuters-21578: concept vectors",
    "bai2010_links/table1": "Wikispeedia: links split at random",
    "bai2010_links/table3": "Wikispeedia: documents split, links inside each part",
    "bai2010_links/training-links": "Wikispeedia: some of the training links",
    "bai2010_links/dice": "Wikispeedia: words that stand beside words and 2-grams, by DICE (003 Tables 7 and 8)",
    "bai2010_links/mdn": "MDN: English pages and their links",
    "bai2010_links/cacm": "CACM: articles and their citations",
    **report_scale.TABLES,
    "yih2011_ads/patent-phrases": "Patent phrases of graded similarity",
    "yih2011_ads/product-search": "Product search: what a shop found for a query",
    "yih2011_ads/dimensions": "Patent phrases, S2Net at different dimensions",
    "patent-phrases": "Patent phrases, by what a search for them finds",
    "product-search": "Product search, queries and product pages",
    "httpd-html": "HTML features: the Apache manual, anchor texts as queries (weak labels)",
}


def generate(
    results: str | os.PathLike[str],
    benchmarks: str | os.PathLike[str],
    figures: str | os.PathLike[str],
    *,
    scripts: Mapping[str, Experiment] | None = None,
) -> list[Path]:
    """Writes BENCHMARKS.md, the pages of details, the ledger of claims and the figures.

    Args:
      results: Root of the records; the ledger is `claims.json` in it.
      benchmarks: The Markdown file to write.
      figures: Folder of the SVG files; the pages stand in `results` beside it. A figure or page of an earlier report
        that no record asks for is removed.
      scripts: Name -> experiment, for claims and presets; those of the checkout unless given.

    Returns:
      The files written, BENCHMARKS.md first.

    Raises:
      FileNotFoundError: there is no results folder.
      ValueError: a record is malformed, or records of one table do not belong together; the message names the file.
    """
    files = _render(Path(results), Path(benchmarks), Path(figures), scripts)
    for path, content in files.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        io.write_bytes(path, content)
    for path in _stale(Path(figures), files):
        path.unlink()
    return list(files)


def check(
    results: str | os.PathLike[str],
    benchmarks: str | os.PathLike[str],
    figures: str | os.PathLike[str],
    *,
    scripts: Mapping[str, Experiment] | None = None,
) -> list[str]:
    """Compares the files with what `generate` would write, and the records with their scripts.

    Args:
      results: As `generate`.
      benchmarks: As `generate`.
      figures: As `generate`.
      scripts: As `generate`.

    Returns:
      One line a difference, naming the file; empty when all is as generated and every record has the settings of its
      script's preset and the versions of today's methods (`notes.EXCEPTIONS` says of which records that is not asked).

    Raises:
      FileNotFoundError: there is no results folder.
      ValueError: as `generate`.
    """
    scripts = collect() if scripts is None else scripts
    files = _render(Path(results), Path(benchmarks), Path(figures), scripts)
    differences = []
    for path, content in files.items():
        if not path.is_file():
            differences.append(f"{path}: missing")
        elif path.suffix == ".svg":
            if not svg.same(path.read_bytes(), content):
                differences.append(f"{path}: not the figure that the records give")
        elif path.read_bytes() != content:
            differences.append(f"{path}: {_first_difference(path.read_bytes(), content)}")
    differences += [f"{path}: no record asks for this file" for path in _stale(Path(figures), files)]
    for path, record in records.read_all(results).items():
        what = notes.stale(record, scripts)
        if what is not None and notes.excepted(record, what) is None:
            differences.append(f"{Path(results) / path}: {what}")
    return differences


def _render(
    results: Path, benchmarks: Path, figures: Path, scripts: Mapping[str, Experiment] | None
) -> dict[Path, bytes]:
    """Contents of every generated file by path."""
    scripts = collect() if scripts is None else scripts
    by_path = records.read_all(results)
    base, pages = benchmarks.parent, figures.parent / "results"
    link, details = (Path(os.path.relpath(path, base)).as_posix() for path in (results, pages))
    sections: dict[tuple[str, str], dict[str, dict[str, Any]]] = {}
    for path, record in by_path.items():
        sections.setdefault((record["experiment"], record["table"]), {})[path] = record
    experiments = sorted({name for name, _ in sections}, key=lambda name: _experiment_order(name, by_path))
    order = [(experiment, table) for experiment in experiments
             for table in sorted((t for e, t in sections if e == experiment), key=_table_order)]  # fmt: skip
    tables = {place: {record["row"]: record for record in sections[place].values()} for place in order}
    codes = {path: notes.codes(record, is_stale=notes.stale(record, scripts) is not None)
             for path, record in by_path.items()}  # fmt: skip
    stated = [(name, claim) for name, experiment in scripts.items() for claim in experiment.claims]
    stated.sort(key=lambda item: item[1].place.split()[0])
    entries = judge.ledger(stated, tables, results, _seen(scripts))
    quick = _quick(by_path)
    text = [_HEAD.format(results=link, details=details, quick=quick),
            report_ledger.claims(entries, f"{details}/claims.md", _unfinished(by_path, codes)),
            "\n## The papers' rows\n\n", report_ledger.coverage(tables),
            _contests(tables, results, scripts),
            _repeated(tables), _TABLES_HEAD.format(unchecked=_unchecked(by_path))]  # fmt: skip
    drawn: dict[Path, bytes] = {}
    for experiment in experiments:
        mine = {table: sections[experiment, table] for name, table in order if name == experiment}
        page, pictures = _page(experiment, scripts, mine, codes, results, benchmarks, figures)
        drawn |= {pages / f"{experiment}.md": page.encode(), **pictures}
        text.append(f"\n## {experiment}\n\n{_citations(experiment, by_path)}[Details]({details}/{experiment}.md).\n")
        shown = _closest(mine).union(scripts[experiment].shown if experiment in scripts else ())
        text += [_compact(experiment, table, rows, codes, results) for table, rows in mine.items() if table in shown]
        rest = [table for table in mine if table not in shown]
        if rest:
            text.append(f"\n{'Also there' if shown else 'There'}: {', '.join(rest)}.\n")
    # A line an entry: a third smaller than indented, and a difference still shows which entries changed.
    lines = [json.dumps(judge.written(entry), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
             for entry in entries]  # fmt: skip
    ledger = "[\n" + ",\n".join(lines) + "\n]\n"
    return {benchmarks: "".join(text).encode(), results / "claims.json": ledger.encode(),
            pages / "claims.md": report_ledger.claims_page(entries, quick).encode(),
            pages / report_page.FILE: report_page.page(by_path, codes, quick).encode(), **drawn}  # fmt: skip


def _unfinished(found: Mapping[str, Mapping[str, Any]], codes: Mapping[str, list[str]]) -> set[tuple[str, str, str]]:
    """Experiment, table and row of what is best at the edge of a grid, or stopped at a cap."""
    return {(record["experiment"], record["table"], record["row"]) for path, record in found.items()
            if any(code.startswith(("edge-of-grid", "cap-reached")) for code in codes[path])}


def _closest(tables: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> set[str]:
    """Of an experiment's tables in order, the first that stands beside each table of a paper."""
    first: dict[str, str] = {}
    for table, rows in tables.items():
        paper = next(iter(rows.values()))["paper"]
        if paper in papers.TABLES:
            first.setdefault(paper, table)
    return set(first.values())


def _quick(found: Mapping[str, Mapping[str, Any]]) -> str:
    """A paragraph that says how many records are of the preset `quick`; empty where none is."""
    small = sum(record.get("preset", {}).get("name") == "quick" for record in found.values())
    if not small:
        return ""
    return (f"\n**Not results**: {small} of {len(found)} records are of the preset `quick`, which runs the code on "
            "little data. Their figures and verdicts say that it runs, and nothing about the methods.\n")


def _unchecked(found: Mapping[str, Mapping[str, Any]]) -> str:
    """How many records cannot be compared with their script."""
    old = sum("preset" not in record for record in found.values())
    return (f"\n\n{old} of {len(found)} records were written before a record held its preset and the versions of its "
            "methods: they are called stale only where their configuration or their split shows it.") if old else ""


def _seen(scripts: Mapping[str, Experiment]) -> set[tuple[str, str]]:
    """``(experiment, table)`` whose test queries were in view when a method was settled."""
    return {(name, table) for name, script in scripts.items() for table, plan in script.tables.items() if plan.seen}


def _contests(tables: report_ledger.Tables, results: Path, scripts: Mapping[str, Experiment]) -> str:
    parts = [report_ledger.contests(tables, results, _seen(scripts)), report_ledger.speeds(tables),
             report_limits.counted(tables, results)]
    parts = [part for part in parts if part]
    return "\n## Wins and losses\n\n" + "\n".join(parts) if parts else ""


def _repeated(tables: report_ledger.Tables) -> str:
    lines = report_ledger.alike(tables)
    return f"\n## Rows with equal figures, in all digits\n\n{lines}" if lines else ""


def _compact(
    experiment: str, table: str, rows: dict[str, dict[str, Any]], codes: Mapping[str, list[str]], results: Path
) -> str:
    """A table of BENCHMARKS.md: its data in a line, paper beside ours."""
    report_tables.belong_together(rows)
    tested = {path: record for path, record in rows.items() if record["metrics"]}
    if not tested:
        return ""
    first = next(iter(tested.values()))
    paper, dataset = first["paper"], first["dataset"]
    printed = papers.TABLES.get(paper)
    beside = f"Beside {paper} ({printed.data}). " if printed is not None else ""
    data = f"{beside}Data: {dataset['differs']}."
    return f"\n### {_title(experiment, table)}\n\n`{table}`. {data}\n" + report_tables.compact(
        paper, tested, codes, results)  # fmt: skip


def _page(
    experiment: str, scripts: Mapping[str, Experiment], tables: Mapping[str, dict[str, dict[str, Any]]],
    codes: Mapping[str, list[str]], results: Path, benchmarks: Path, figures: Path,
) -> tuple[str, dict[Path, bytes]]:
    """All details of an experiment, what it is about first, and its figures by path."""
    plans = scripts[experiment].tables if experiment in scripts else {}
    folder, short = (Path(os.path.relpath(path, start)).as_posix() for path, start in
                     ((results / experiment, benchmarks.parent), (benchmarks, figures.parent / "results")))  # fmt: skip
    warning = _quick({path: record for rows in tables.values() for path, record in rows.items()})
    text = [f"# {experiment}\n\nMade by `python experiments/report.py` from the records in `{folder}`; "
            f"[{benchmarks.name}]({short}#{experiment}) has the short tables.\n{warning}\n"
            f"{_about(experiment, scripts)}\n"]  # fmt: skip
    drawn: dict[Path, bytes] = {}
    for table, rows in tables.items():
        section, pictures = _section(experiment, table, plans.get(table), rows, codes, results)
        for suffix, (what, figure) in pictures.items():
            path = figures / f"{experiment}-{table}{suffix}.svg"
            drawn[path] = figure
            section += f"\n![{what}: {experiment}, {table}](../{figures.name}/{path.name})\n"
        text.append(section)
    text.append(report_tables.untouched(plans, tables))
    if experiment == report_scale.EXPERIMENT:
        text.append(report_scale.waiting(set(tables)))
    return "".join(text), drawn


def _about(experiment: str, scripts: Mapping[str, Experiment]) -> str:
    """The docstring of an experiment's script; of one that states no tables, by the name of its file."""
    if experiment in scripts:
        return scripts[experiment].about.strip()
    found = sorted(_SCRIPTS.glob(f"*/{experiment}.py"))
    return ast.get_docstring(ast.parse(found[0].read_text(encoding="utf-8"))) or "" if found else ""


def _section(
    experiment: str, table: str, plan: Plan | None, rows: dict[str, dict[str, Any]], codes: Mapping[str, list[str]],
    results: Path,
) -> tuple[str, dict[str, tuple[str, bytes]]]:
    """One table with its data, groups and provenance; and the figures that the records have the data of, by suffix."""
    report_tables.belong_together(rows)
    paper = next(iter(rows.values()))["paper"]
    printed = papers.TABLES.get(paper)
    text = f"\n## {_title(experiment, table)}\n\n"
    if printed is not None:
        text += f"Beside {paper}: {printed.title} ({printed.data}).\n"
    text += f"Records: `{experiment}/{table}`. {report_tables.data(rows)}\n"
    measured = {path: record for path, record in rows.items() if "measurements" in record}
    tested = {path: record for path, record in rows.items() if record["metrics"]}
    if tested:
        text += report_tables.main(paper, tested, codes) + report_tables.best_set(tested, results)
        text += report_tables.half_ties(paper, tested)
        text += report_terms.extensions(tested)
    if measured:
        text += ("\n" if tested else "") + report_tables.speed(measured)
    text += report_tables.unrecorded(plan, rows)
    text += report_limits.table(rows, results) + report_tables.sentences(rows, paper)
    text += report_tables.naive(paper, tested) + report_tables.by_group(tested, paper) + report_tables.provenance(rows)
    title = f"{experiment}: {_title(experiment, table)}"
    figures = {**report_curves.against_sizes(title, tested, paper),
               "-training": ("Training curves", report_curves.training(title, tested, paper)),
               "-seconds": ("Dev score against seconds", report_curves.seconds(title, tested, paper)),
               "-roc": ("ROC curves at low false-positive rates", report_curves.roc(title, tested, paper, results)),
               "-queries": ("Average precision, query by query", report_curves.queries(title, tested, paper, results)),
               "-terms": ("Weights of terms", report_terms.weights(title, tested)),
               "-cost": ("Seconds against work", report_scale.figure(title, measured))}  # fmt: skip
    return text, {suffix: (what, figure) for suffix, (what, figure) in figures.items() if figure is not None}


def _title(experiment: str, table: str) -> str:
    return _TABLES.get(f"{experiment}/{table}", _TABLES.get(table, table))


def _citations(experiment: str, found: Mapping[str, dict[str, Any]]) -> str:
    names = sorted({record["paper"].split()[0] for record in found.values() if record["experiment"] == experiment})
    lines = [f"{name}: {papers.CITATIONS[name]}" for name in names if name in papers.CITATIONS]
    return "".join(f"{line}\n" for line in lines)


def _experiment_order(experiment: str, found: Mapping[str, dict[str, Any]]) -> tuple[bool, str, str]:
    first = min(record["paper"] for record in found.values() if record["experiment"] == experiment)
    return first == "none", first, experiment


def _table_order(table: str) -> tuple[int, str]:
    known = list(_TABLES)
    return known.index(table) if table in known else len(known), table


def _stale(figures: Path, files: Mapping[Path, bytes]) -> list[Path]:
    """Figures and pages that an earlier report left and no record asks for now."""
    drawn = [path for path in sorted(figures.glob("*.svg")) if path not in files]
    pages = [path for path in sorted((figures.parent / "results").glob("*.md")) if path not in files]
    made = [path for path in pages if b"Made by `python experiments/report.py`" in path.read_bytes()[:400]]
    return [path for path in drawn if svg.digest(path.read_bytes()) is not None] + made


def _first_difference(have: bytes, want: bytes) -> str:
    mine, right = have.decode(errors="replace").splitlines(), want.decode().splitlines()
    for number, (left, other) in enumerate(zip(mine, right, strict=False), start=1):
        if left != other:
            return f"line {number}: expected {other!r}, got {left!r}"
    return f"expected {len(right)} lines, got {len(mine)}"
