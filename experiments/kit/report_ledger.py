"""The first screen of BENCHMARKS.md: claims, coverage of the papers, wins and losses; and the page of all claims."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.kit import judge, papers
from experiments.kit.report_tables import DASH, markdown, metric_name, number, principal

_OURS = {"s2net": "", "opca-search": "map"}
"""Rows of tables of peers that stand for this project, and the metric they are compared by; the principal one of the
table where none is named."""
_OVER = {"paired t over folds, corrected": ", over folds", "paired t over seeds": ", over seeds",
         "t over seeds alone": ", over seeds"}
"""What a test varies over that is none of queries: of other test data it says nothing."""
_FEW = 2
_WORTH = 1.05
_LOWER = ("s", "ms", "minutes", "MB", "GB")

_PAGE = """\
# Claims

Made by `python experiments/report.py`. **Difference**: of the claim's two rows by its metric, positive where the row
that the paper has above is better, with its 95 % interval. **p**: of the paired test, and adjusted for the
false-discovery rate over the ledger, by which the verdict goes (`experiments/kit/judge.py` says how seeds count).
**Could show**: the smallest difference that such a test finds four times in five. **Own test**: the paper's, on its
metric at its level; it decides nothing here. **Equal budget**: at how many shared settings the better row is above, or
a test of rows of equal budget. AUC over all pairs is tested by jackknife values, one a query or one a document, where
records have them, else over folds or seeds. That a row gains nothing over its start is supported unless the test shows
a gain, by p itself; the interval says how large a gain there may be.
A test over random parts of the test pairs, as the paper's, decides nothing: it takes the pairs of one query as
independent.
"""

_HOW = "Paired tests at p < .05, each for itself; rows of ours with other settings stand among the peers.\n\n"

Tables = Mapping[tuple[str, str], Mapping[str, Mapping[str, Any]]]
"""``(experiment, table)`` -> row -> record."""


def claims(entries: Sequence[Mapping[str, Any]], page: str, unfinished: Collection[tuple[str, str, str]] = ()) -> str:
    """A line for each printed table: what became of its claims, and the first of them with its figures.

    Args:
      entries: The ledger (`judge.ledger`).
      page: Address of the page of details, which has a line for every claim.
      unfinished: ``(experiment, table, row)`` of rows that are best at the edge of a grid, or stopped at a cap. That
        such a row is below another is not called the reverse of the paper.

    Returns:
      Markdown.
    """
    if not entries:
        return "No script states a claim yet.\n"
    entries, own = ([entry for entry in entries if (entry["of"] == "project") == ours] for ours in (False, True))
    groups = _by_id(entries)
    unwritten = sum(entry["why"] == judge.UNWRITTEN for entry in entries)
    missing = f" ({unwritten} without a reason yet)" if unwritten else ""
    text = (f"{len(groups)} claims, {len(entries)} tests in tables: {_counted(entries)}{_repeated(entries)}. "
            f"[All claims]({page}) has each with its interval, its tests and why it is not supported{missing}. A line "
            "is a table of a paper: the first of its claims that is decided, in the table closest to the paper's, and "
            "what became of all its claims in all tables. **p**: of the paired test, adjusted for the false-discovery "
            f"rate. **too easy**: both rows are above {judge.CEILING:g} accuracy, MRR or AUC, where differences tell "
            "little; neither for nor against. **Not supported** is also what is the reverse at equal budget, where a "
            "claim has rows or settings of equal budget. In brackets the number of claims; the last four columns count "
            "their tests, one a table of ours.\n")
    if own:
        text += (f"\nQuestions of this project, which no paper answers: {len(_by_id(own))}, {len(own)} tests in "
                 f"tables: {_counted(own)}. They stand on the same page.\n")
    places: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for name, own in groups.items():
        places.setdefault(printed_table(own[0]["place"]), {})[name] = own
    head = ("claims of", "the first decided", "paper", "ours", "test", "verdict", "supported", "too easy", "not run",
            "**not**")  # fmt: skip
    text += "\n" + markdown(head, [_place(place, places[place], page) for place in sorted(places, key=_place_order)])
    reversed_in: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        ended = (entry["experiment"], entry["table"], entry["better"]) not in unfinished
        if reverse(entry) and entry["verdict"] == "not supported" and ended:
            reversed_in.setdefault(entry["id"], []).append(entry)
    named = [f"[{own[0]['worse']} over {own[0]['better']}]({page}#{name.lower()}) ({own[0]['paper']}: "
             f"{', '.join(entry['table'] for entry in own)})" for name, own in reversed_in.items()]
    return text + (f"\n**Clearly the reverse of the paper** (adjusted p < .05; none whose loser is at the edge of its "
                   f"grid or its cap): {'; '.join(named)}.\n" if named else "")


def _counted(entries: Sequence[Mapping[str, Any]]) -> str:
    """How many entries have each verdict."""
    counts = {verdict: sum(entry["verdict"] == verdict for entry in entries) for verdict in judge.VERDICTS}
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.items())


def _repeated(entries: Sequence[Mapping[str, Any]]) -> str:
    """How many tests have the figures of another, and their verdicts."""
    again = [entry for entry in entries if entry["repeats"]]
    return f" ({len(again)} have the figures of another one: {_counted(again)})" if again else ""


def printed_table(place: str) -> str:
    """The printed table or figure that a claim is about; what is said elsewhere is "in the text".

    Example:
      >>> printed_table("003 §4.2, Table 5, k = 10"), printed_table("000 footnote 2")
      ('003 Table 5', '000, in the text')
    """
    paper, number = place.split()[0], re.search(r"(Table|Figure) \d+", place)
    return f"{paper} {number[0]}" if number else f"{paper}, in the text"


def _place_order(place: str) -> tuple[str, bool, bool, int]:
    paper, rest = place.split()[0].rstrip(","), place.split()[1:]
    return paper, rest[0] == "in", rest[0] == "Figure", int(rest[1]) if rest[1].isdigit() else 0


def _place(place: str, groups: Mapping[str, Sequence[Mapping[str, Any]]], page: str) -> tuple[str, ...]:
    """What became of the claims of a printed table; and the first that is decided, in the first table that decides."""
    entries = [entry for own in groups.values() for entry in own]
    shown = next((entry for entry in entries if entry["verdict"] in judge.VERDICTS[:2]), None)
    first = shown or entries[0]
    every = [entry["verdict"] for entry in entries]
    cells = [str(every.count(verdict)) for verdict in ("supported", "too easy to tell", "not run")]
    against = every.count("not supported")
    return (f"{place} ({len(groups)})", f"[{first['sentence']}]({page}#{first['id'].lower()})", _paper_pair(first),
            f"{first['table']} {_pair(first)}" if first["ours"] else DASH, _brief_test(groups[first["id"]], first),
            "**not supported**" if first["verdict"] == "not supported" else first["verdict"],
            *cells, f"**{against}**" if against else "0")  # fmt: skip


def _brief_test(own: Sequence[Mapping[str, Any]], shown: Mapping[str, Any]) -> str:
    """The test that decides, and in how many tables the paper's own one holds."""
    tests = shown["tests"]
    text = tests["figures"]["line"] if "figures" in tests else DASH
    if "paired" in tests:
        name = tests["paired"]["test"]
        over = _OVER.get(name, ", over parts of the pairs" if name.endswith(judge.PARTS) else "")
        text = f"p = {judge.p_text(tests['paired'].get('p_adjusted', tests['paired']['p']))}{over}"
    papers_own = [entry["tests"]["paper"]["holds"] for entry in own if "paper" in entry["tests"]]
    if papers_own:
        text += f"; the paper's own test holds in {sum(papers_own)} of {len(papers_own)} tables"
    return text


def _ledger(groups: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """One line a claim, over all its tables."""
    lines = []
    for name, own in groups.items():
        first = own[0]
        decided = [entry for entry in own if entry["ours"] and entry["verdict"] != "too easy to tell"]
        shown = decided[:_FEW] or [entry for entry in own if entry["ours"]][:1]
        ours = " · ".join(f"{entry['table']} {_pair(entry)}" for entry in shown) or DASH
        verdict = "; ".join(_verdict(which, [entry for entry in own if entry["verdict"] == which])
                            for which in judge.VERDICTS if any(entry["verdict"] == which for entry in own))
        lines.append((f"[{first['sentence']}](#{name.lower()}) ({first['place']})", _paper_pair(first), ours,
                      _tests(own, shown), verdict))  # fmt: skip
    return markdown(("claim", "paper", "ours", "test", "verdict, by tables"), lines)


def _against(entries: Sequence[Mapping[str, Any]]) -> str:
    """What is not supported, and why: a line a claim and table, with what the numbers say before what is known."""
    lines = []
    for entry in entries:
        if entry["verdict"] == "not supported":
            paired = entry["tests"].get("paired")
            figures = f"{paired['difference']:+.4f}, p = {judge.p_text(paired['p_adjusted'])}" if paired else DASH
            lines.append((f"[{entry['sentence']}](#{entry['id'].lower()}) ({entry['place']})", entry["table"], figures,
                          _seen(entry), entry["why"]))  # fmt: skip
    return markdown(("claim", "table", "difference", "in figures", "why"), lines) if lines else "None.\n"


def _seen(entry: Mapping[str, Any]) -> str:
    """How a claim is not supported: reversed, or too little a difference for this table, beside the paper's own."""
    paired, printed = entry["tests"].get("paired"), [entry["printed"].get(entry[side]) for side in ("better", "worse")]
    if paired is None:
        return "the predicate does not hold"
    if reverse(entry):
        return "**reversed**"
    if paired["difference"] > 0 and paired["p_adjusted"] < judge.LEVEL:
        return "reversed at equal budget"
    if None in printed:
        return f"no clear difference; one of {paired['smallest']:.3f} would be found"
    papers_own = abs(printed[0] - printed[1])
    would = "would" if papers_own >= paired["smallest"] else "might not"
    return f"no clear difference; the paper's, {papers_own:.3f}, {would} be found (from {paired['smallest']:.3f} on)"


def claims_page(entries: Sequence[Mapping[str, Any]], warning: str = "") -> str:
    """Every claim in every table, with its tests.

    Args:
      entries: The ledger.
      warning: A paragraph to stand at the top, if any.

    Returns:
      A whole Markdown page.
    """
    text = [_PAGE, warning, "\n## Not supported, and why\n\n", _against(entries), "\n## All claims\n\n",
            _ledger(_by_id(entries))]  # fmt: skip
    for name, own in _by_id(entries).items():
        first = own[0]
        text.append(f'\n## <a id="{name.lower()}"></a>{first["sentence"]}\n\n{first["place"]}, '
                    f"{metric_name(first['metric'])}: {first['better']} against {first['worse']}"
                    + (f", printed {_printed(first)}" if first["printed"] else "") + ".\n\n")
        head = ("table", "ours", "difference [95 %]", "p (adjusted)", "could show", "own test", "equal budget",
                "verdict", "why")  # fmt: skip
        text.append(markdown(head, [_line(entry) for entry in own]))
    return "".join(text)


def coverage(tables: Tables) -> str:
    """How many of the papers' printed rows have a record, paper by paper, and which have none.

    Args:
      tables: All records.

    Returns:
      Markdown.
    """
    run = _run(tables)
    lines = []
    for paper, citation in papers.CITATIONS.items():
        printed = {name: table for name, table in papers.TABLES.items() if name.split()[0] == paper}
        total = sum(len(table.rows) for table in printed.values())
        have = sum(row.row in run.get(name, ()) for name, table in printed.items() for row in table.rows)
        missing = []
        for name, table in printed.items():
            absent = [row.row for row in table.rows if row.row not in run.get(name, ())]
            which = name.removeprefix(paper).strip()
            if absent and table.repeats:
                missing.append(f"{which}: {table.repeats}")
            elif absent:
                missing.append(f"{which}: all {len(absent)}" if len(absent) == len(table.rows) > 1 else
                               f"{which}: {', '.join(absent)}")  # fmt: skip
        lines.append((f"{paper}: {citation.split(': ')[-1]}", f"{have} of {total}", "; ".join(missing) or DASH))
    return markdown(("paper", "printed rows with a record", "not built, or not under this table"), lines)


def _run(tables: Tables) -> dict[str, set[str]]:
    """Printed table -> its rows that have a record, or a point of a record's curve at their dimension."""
    run: dict[str, set[str]] = {}
    points: dict[tuple[str, str], set[float]] = {}
    for rows in tables.values():
        for row, record in rows.items():
            run.setdefault(record["paper"], set()).add(row)
            points.setdefault((record["paper"].split()[0], row), set()).update(
                point["k"] for point in record["curve"] if "k" in point)  # fmt: skip
    for name, table in papers.TABLES.items():
        run.setdefault(name, set()).update(row.row for row in table.rows if row.of is not None
                                           and row.k in points.get((name.split()[0], row.of), ()))  # fmt: skip
    return run


def contests(tables: Tables, results: Path, seen: Collection[tuple[str, str]] = ()) -> str:
    """Wins and losses against peers: by a paired test of quality, and by cost.

    Args:
      tables: All records.
      results: Root of the records.
      seen: ``(experiment, table)`` whose test queries were in view when our own row was settled (`Plan.seen`).

    Returns:
      Markdown; empty where no table of peers has a record. A row that has fewer seeds than in another table of its
      experiment is older than its script: it is compared with nothing, and that is said.
    """
    lines, most, older = [], _most_seeds(tables), []
    for (experiment, table), every in tables.items():
        rows = {row: record for row, record in every.items() if len(record["seeds"]) == most[experiment, row]}
        if len(rows) < len(every) and any(row in every and every[row]["paper"] == "none" for row in _OURS):
            older.append(f"{experiment}, {table}: {', '.join(row for row in every if row not in rows)}")
        name = next((row for row in _OURS if row in rows), "")
        ours = rows.get(name)
        if ours is None or ours["paper"] != "none" or not ours["metrics"] or len(rows) < 2:
            continue
        metric = _OURS[name] or principal(ours["metrics"])
        sides: dict[str, list[str]] = {"wins": [], "even": [], "losses": []}
        for row, record in rows.items():
            if row == name or metric not in record["metrics"]:
                continue
            test = judge.compare(ours, record, metric, results)
            if test is None:
                continue
            side = "even" if test["p"] >= judge.LEVEL else "wins" if test["difference"] > 0 else "losses"
            sides[side].append(f"{row} {test['difference']:+.3f}")
        score = f"{number(ours['metrics'][metric]['mean'])} {metric_name(metric)}"
        place = f"{experiment}, {table}" + " (seen)" * ((experiment, table) in seen)
        lines.append((place, f"{name} {score}", *[", ".join(sides[side]) or DASH for side in sides],
                      "; ".join(_costs(ours, rows)) or DASH))
    head = ("table", "ours", "wins against", "no difference", "**loses against**", "times as costly as")
    text = _HOW + markdown(head, lines) if lines else ""
    if any(line[0].endswith(" (seen)") for line in lines):
        text += "\n**seen**: ours was settled with these test queries in view; its wins there are no test.\n"
    return text + (f"\nNot compared, since they are trained with fewer seeds than in other tables, by an older script: "
                   f"{'; '.join(older)}.\n" if older else "")


def _most_seeds(tables: Tables) -> dict[tuple[str, str], int]:
    """``(experiment, row)`` -> the most seeds that it has in any table."""
    most: dict[tuple[str, str], int] = {}
    for (experiment, _), rows in tables.items():
        for row, record in rows.items():
            most[experiment, row] = max(most.get((experiment, row), 0), len(record["seeds"]))
    return most


def speeds(tables: Tables) -> str:
    """How fast this code is against others on the same work; what is slower comes first.

    Args:
      tables: All records.

    Returns:
      Markdown: losses line by line, wins in one line; empty where nothing was measured against others.
    """
    ratios: list[tuple[float, str, str, str]] = []
    for (experiment, table), rows in tables.items():
        for row, record in rows.items():
            for line in record.get("measurements", ()):
                times = advantage(line)
                if times is not None:
                    ours, other = line["name"], line["of"]
                    if "jaxsim" in other:
                        ours, other = other, ours
                    which = ours.partition("jaxsim")[2].replace("'s rate", "").strip(", ")
                    ratios.append((times, f"{experiment}, {table}", f"{row}, {which}" if which else row, other))
    if not ratios:
        return ""
    ratios.sort()
    slower = [(f"{times:.2f}", row, other, where) for times, where, row, other in ratios if times < 1]
    faster = [f"{row} {times:.3g} × {other} ({where})" for times, where, row, other in ratios if times >= 1]
    text = "Work on which this code is **slower** than others, or than the bound beside it:\n\n"
    text += markdown(("times as fast", "work", "against", "where"), slower) if slower else "None.\n"
    wins = [times for times, *_ in ratios[len(slower) :]]
    return text + f"\nFaster in {len(faster)} other comparisons" + (
        f", by {wins[0]:.2f} to {wins[-1]:.3g} times, in half of them by at most {wins[(len(wins) - 1) // 2]:.2f}.\n"
        if faster else ".\n")


def advantage(line: Mapping[str, Any]) -> float | None:
    """How many times as fast this code is as what a measurement compares it with.

    Args:
      line: A measurement with ``ratio`` and ``of``, of which one side names jaxsim.

    Returns:
      Above 1 where this code is faster; None where the line compares no two systems by time.

    Example:
      >>> advantage({"name": "SciPy", "value": 1.0, "unit": "s", "ratio": 0.5, "of": "jaxsim"})
      0.5
      >>> advantage({"name": "jaxsim, k = 9", "value": 8.0, "unit": "texts/s", "ratio": 2.0, "of": "gensim"})
      2.0
    """
    ratio, of, unit = line.get("ratio"), line.get("of") or "", line["unit"]
    ours, against = "jaxsim" in line["name"], "jaxsim" in of
    if not ratio or ours == against or "estimate" in of or not (unit in ("s", "ms") or unit.endswith("/s")):
        return None
    return ratio if ours == unit.endswith("/s") else 1 / ratio


def alike(tables: Tables) -> str:
    """Rows with equal figures, in all digits: in one table, and of one name in two tables of an experiment.

    Args:
      tables: All records.

    Returns:
      Markdown; empty where there are none.
    """
    lines = []
    for (experiment, table), rows in tables.items():
        groups: dict[str, list[str]] = {}
        for row, record in rows.items():
            if record["metrics"]:
                groups.setdefault(_figures(record), []).append(row)
        lines += [f"{experiment}, {table}: {' = '.join(names)}" for names in groups.values() if len(names) > 1]
    names = list(tables)
    for place, one in enumerate(names):
        for other in names[place + 1 :]:
            if one[0] != other[0]:
                continue
            shared = [row for row in tables[one] if row in tables[other] and tables[one][row]["metrics"]]
            same = [row for row in shared if _figures(tables[one][row]) == _figures(tables[other][row])]
            if same:
                share = f"{len(same)} of {len(shared)} rows"
                lines.append(f"{one[0]}: {one[1]} = {other[1]} in {share} ({', '.join(same)})")
    return "".join(f"- {line}\n" for line in lines)


def _figures(record: Mapping[str, Any]) -> str:
    """All figures but the rank loss with ties as half an error, which only newer records have."""
    return repr(sorted((key, value["per_seed"]) for key, value in record["metrics"].items() if key != "rank_loss@half"))


def _costs(ours: Mapping[str, Any], rows: Mapping[str, Mapping[str, Any]]) -> Iterable[str]:
    """What costs more than elsewhere, by measurements of one name and unit."""
    for line in ours.get("measurements", ()):
        worse = []
        for row, record in rows.items():
            for other in record.get("measurements", ()) if row not in _OURS else ():
                if (other["name"], other["unit"]) == (line["name"], line["unit"]) and other["value"] and line["value"]:
                    times = line["value"] / other["value"]
                    times = times if line["unit"] in _LOWER else 1 / times
                    if times >= _WORTH:
                        worse.append((times, row))
        if worse:
            yield f"{line['name'].split(' from ')[0]}: " + ", ".join(f"{row} {x:.3g}" for x, row in sorted(worse)[::-1])


def _by_id(entries: Iterable[Mapping[str, Any]]) -> dict[str, list[Mapping[str, Any]]]:
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for entry in entries:
        groups.setdefault(entry["id"], []).append(entry)
    return groups


def _verdict(which: str, entries: Sequence[Mapping[str, Any]]) -> str:
    """A verdict with the number of its tables, and their names where something was decided."""
    if which not in judge.VERDICTS[:2]:
        return f"{which} in {len(entries)}"
    names = ", ".join(entry["table"] + (" reversed" if reverse(entry) else "") for entry in entries)
    return f"{'**not supported**' if which == 'not supported' else which} in {len(entries)} ({names})"


def reverse(entry: Mapping[str, Any]) -> bool:
    """Whether the paper's worse row is better here, and not by chance."""
    test = entry["tests"].get("paired")
    return test is not None and test["difference"] < 0 and test.get("p_adjusted", 1.0) < judge.LEVEL


def _pair(entry: Mapping[str, Any]) -> str:
    return " / ".join(number(entry["ours"][row]["mean"]) for row in (entry["better"], entry["worse"]))


def _paper_pair(entry: Mapping[str, Any]) -> str:
    printed = [entry["printed"].get(row) for row in (entry["better"], entry["worse"])]
    if printed == [None, None]:
        return DASH
    metric = entry["metric"].removesuffix("@790")  # the paper's recall is that of all questions
    return " / ".join(DASH if x is None else number(x) for x in printed) + f" {metric_name(metric)}"


def _printed(entry: Mapping[str, Any]) -> str:
    return ", ".join(f"{row} {number(value)}" for row, value in entry["printed"].items())


def _tests(own: Sequence[Mapping[str, Any]], shown: Sequence[Mapping[str, Any]]) -> str:
    parts = []
    paired = [entry["tests"]["paired"] for entry in shown if "paired" in entry["tests"]]
    if paired:
        parts.append(f"{paired[0]['test']}, p = "
                     + " · ".join(judge.p_text(test.get("p_adjusted", test["p"])) for test in paired))  # fmt: skip
    figures = [entry["tests"]["figures"]["line"] for entry in shown if "figures" in entry["tests"]]
    parts += figures[:1]
    papers_own = [entry["tests"]["paper"] for entry in own if "paper" in entry["tests"]]
    if papers_own:
        first = papers_own[0]
        parts.append(f"the paper's ({first['test']}, {first['metric']}, p < {first['alpha']:g}) holds in "
                     f"{sum(test['holds'] for test in papers_own)} of {len(papers_own)}")  # fmt: skip
        every = [entry["tests"]["paired"] for entry in own if "paired" in entry["tests"]]
        clear = sum(test["difference"] > 0 and test["p"] < first["alpha"] for test in every)
        parts.append(f"a paired one on {metric_name(own[0]['metric'])} in {clear} of {len(every)}")
    return "; ".join(parts) or DASH


def _line(entry: Mapping[str, Any]) -> tuple[str, ...]:
    tests, why = entry["tests"], entry["why"] or ""
    paired, own, equal = (tests.get(name) for name in ("paired", "paper", "equal"))
    cells = [DASH] * 5
    if paired:
        low, high = paired["interval"]
        adjusted = f" ({judge.p_text(paired['p_adjusted'])})" if "p_adjusted" in paired else ""
        cells[0] = f"{paired['difference']:+.4f} [{low:+.4f}, {high:+.4f}]"
        other = "" if paired["test"] == "paired t" else f", {paired['test']}"
        cells[1] = f"{judge.p_text(paired['p'])}{adjusted}{other}"
        cells[2] = number(paired["smallest"])
    if "figures" in tests:
        cells[0] = tests["figures"]["line"]
    if own:
        holds = "holds" if own["holds"] else "does not hold"
        cells[3] = f"{own['test']}, {own['metric']}: p = {judge.p_text(own['p'])}, {holds}"
        if "mcnemar" in own:
            cells[3] += f"; McNemar: p = {judge.p_text(own['mcnemar'])}"
    if equal and "rows" in equal:
        cells[4] = f"{' / '.join(equal['rows'])}: {equal['difference']:+.4f}, p = {judge.p_text(equal['p'])}"
    elif equal:
        settings = ", ".join(equal["settings"])
        cells[4] = f"above at {equal['above']} of {len(equal['points'])} {settings} ({equal['split']})"
    ours = _pair(entry) if entry["ours"] else DASH
    return (entry["table"], ours, *cells, entry["verdict"] + (", reversed" if reverse(entry) else ""), why)
