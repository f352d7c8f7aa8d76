"""One page about one model, `report --html`: curves, scores, a search box, mistakes, and the words behind a match.

The page is a single file that loads nothing from outside, and stays readable without scripts. Its frame is
``model_page.html``, its script ``model_page.js``, which inserts texts as text only.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from string import Template
from typing import NamedTuple

import numpy as np

from jaxsim import checks, io
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import metrics
from jaxsim.model import Model
from jaxsim.model.explain import explain
from jaxsim.optim import history
from jaxsim.pictures import figures, neighbours, report
from jaxsim.pictures.figures import Panel
from jaxsim.pictures.neighbours import escaped, shown

MOST_PAIRS = 1_000
"""Pairs whose texts are on the page; of more, so many, evenly spaced."""
FILE = "report.html"
_NEAREST = 10  # documents of a query where its vector is not on the page
_BINS = 40
_QUANTILES = (0.05, 0.25, 0.5, 0.75, 0.95)
_EXPLAINED = 200  # matches whose words are counted
_PAIRS_OF_WORDS = 30
_WORDS = 5  # pairs of words of a mistake


class Mistake(NamedTuple):
    """A query that finds another document before its mate.

    Attributes:
      query: its number.
      mate: number of its best mate.
      rank: of that mate, equal scores counting against it.
      wrong: number of the first document.
      scores: of the mate and of the first document.
    """

    query: int
    mate: int
    rank: int
    wrong: int
    scores: tuple[float, float]


def write(
    folder: str | os.PathLike, model: Model, pairs: Pairs, labels: np.ndarray | None = None, *, examples: int = 20
) -> Path:
    """Writes the page ``report.html``.

    Args:
      folder: made if it is not there; a file of that name is replaced.
      model: as for `page`.
      pairs: as for `page`.
      labels: as for `page`.
      examples: as for `page`.

    Returns:
      Path of the page.

    Raises:
      ValueError: as `page`.
      OSError: if it cannot be written.
    """
    content = page(model, pairs, labels, examples=examples)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    io.write_bytes(folder / FILE, content.encode())
    return folder / FILE


def page(model: Model, pairs: Pairs, labels: np.ndarray | None = None, *, examples: int = 20) -> str:
    """The page.

    Args:
      model: the model.
      pairs: held-out pairs, left texts queries and right texts documents; of more than `MOST_PAIRS`, so many, evenly
        spaced. Texts are cut at 400 characters where they are shown.
      labels: ``[len(pairs)]`` numbers, above 0 for texts that belong together; all do unless given.
      examples: mistakes that are listed, at most.

    Returns:
      HTML, the same for the same input.

    Raises:
      ValueError: for fewer than two pairs, pairs without a mate or without others, or a damaged history.

    Example:
      >>> from jaxsim.data import docstrings
      >>> from jaxsim.train.training import Settings, train
      >>> known = docstrings.load().take(range(240))
      >>> model = train(known.take(range(200)), Settings(method="opca", dim=20))
      >>> "Worst mistakes" in page(model, known.take(range(200, 240)))
      True
    """
    checks.positive_int(examples, "examples")
    checks.expect(len(pairs) > 1, pairs.name, "at least two pairs", len(pairs))
    number, some = len(pairs), report.even(len(pairs), MOST_PAIRS)
    if number > MOST_PAIRS:
        pairs, labels = pairs.take(some), None if labels is None else np.asarray(labels)[some]
    scored, belong = report.scores(model, pairs, labels)
    sides = report.Sides(pairs, labels)
    scores = np.asarray(model.similarity(sides.queries, sides.documents))
    worst = mistakes(scores, sides.mates)
    script = _part("model_page.js")
    data = {"queries": [_cut(text) for text in sides.queries], "documents": [_cut(text) for text in sides.documents],
            "mates": [sorted(mates) for mates in sides.mates], "languages": list(model.languages),
            "score": report.score_name(model).title(), **_searched(model, sides, scores)}  # fmt: skip
    return Template(_part("model_page.html")).substitute(
        title=f"Report on {escaped(model.method)}", style=neighbours.STYLE, script=script, digest=_digest(script),
        note=escaped(_note(pairs, number, sides)), summary=_summary(model), training=_training(model),
        scores=_scores(model, scored, belong), neighbours=escaped(_about_search(model, "vectors" in data)),
        mistakes=_mistakes(model, sides, worst, examples), words=_words(model, sides, scores), data=_json(data),
    )  # fmt: skip


def mistakes(scores: np.ndarray, mates: Sequence[set[int]]) -> list[Mistake]:
    """The queries whose first document is no mate, the worst first.

    Args:
      scores: ``[q, d]`` real, higher is better.
      mates: for each query, the numbers of its documents; at least one.

    Returns:
      By rank of the best mate, then by how far its score is below the first; ties go to the lower number.

    Example:
      >>> mistakes(np.array([[0.9, 0.5], [0.8, 0.1]]), [{0}, {1}])
      [Mistake(query=1, mate=1, rank=2, wrong=0, scores=(0.1, 0.8))]
    """
    errors = []
    for query, (row, own) in enumerate(zip(scores, mates, strict=True)):
        others = np.setdiff1d(np.arange(row.size), list(own))
        if not others.size:
            continue
        mate = max(sorted(own), key=lambda i, row=row: row[i])
        wrong = int(others[np.argmax(row[others])])
        rank = 1 + int(np.count_nonzero(row[others] >= row[mate]))
        if rank > 1:
            errors.append(Mistake(query, mate, rank, wrong, (float(row[mate]), float(row[wrong]))))
    return sorted(errors, key=lambda error: (-error.rank, error.scores[0] - error.scores[1], error.query))


def rounded(vectors: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vectors as the page holds them: a byte a number, and a scale a row.

    Args:
      vectors: ``[n, k]`` floating.

    Returns:
      ``([n, k] int8, [n] float32)``: what is rounded, times its scale, is the row at unit length to 1/254 of its
      largest number. Rows of zeros have scale 0.

    Example:
      >>> numbers, scales = rounded(np.array([[3.0, 4.0], [0.0, 0.0]]))
      >>> numbers.tolist(), (numbers * scales[:, None]).round(3).tolist()
      ([[95, 127], [0, 0]], [[0.598, 0.8], [0.0, 0.0]])
    """
    vectors = np.asarray(vectors, np.float64)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit = np.divide(vectors, lengths, out=np.zeros_like(vectors), where=lengths > 0)
    largest = np.abs(unit).max(axis=1, initial=0)
    scales = largest / 127
    numbers = np.divide(unit, scales[:, None], out=np.zeros_like(unit), where=scales[:, None] > 0)
    return np.rint(numbers).astype(np.int8), scales.astype(np.float32)


def _searched(model: Model, sides: report.Sides, scores: np.ndarray) -> dict:
    """What the search box needs: rounded vectors; or, where a score takes more than them, the nearest documents."""
    if model.params is None or model.bilinear or model.topical:
        order = np.argsort(-scores, axis=1, kind="stable")[:, :_NEAREST]
        return {"nearest": [[[int(i), float(f"{row[i]:.4g}")] for i in first]
                            for row, first in zip(scores, order, strict=True)]}  # fmt: skip
    both = [model.encode_query(sides.queries), model.encode_document(sides.documents)]
    numbers, scales = rounded(np.concatenate(both))
    return {"dim": numbers.shape[1], "vectors": base64.b64encode(numbers.tobytes()).decode(),
            "scales": base64.b64encode(scales.astype("<f4").tobytes()).decode()}  # fmt: skip


def _note(pairs: Pairs, number: int, sides: report.Sides) -> str:
    taken = "" if number <= MOST_PAIRS else f", {MOST_PAIRS:,} of {number:,} pairs, evenly spaced"
    queries, documents = len(sides.queries), len(sides.documents)
    return (f"Measured on {pairs.name}{taken}: {checks.counted(queries, 'query', 'queries')} (left texts) and "
            f"{checks.counted(documents, 'document')} (right texts). A mate is a text that belongs to the other.")


def _about_search(model: Model, vectors: bool) -> str:
    name, most = report.score_name(model), f"At most the texts of {MOST_PAIRS:,} pairs are here, cut at 400 characters."
    if vectors:
        return (f"Choose a text: its nearest documents are computed here, from vectors that are rounded to a byte a "
                f"number, so that a {name} may be off by about 0.005. {most}")
    return f"Choose a query: its {_NEAREST} nearest documents were computed with the model, by {name}. {most}"


def _summary(model: Model) -> str:
    record = model.training
    rows = {"method": model.method, "terms": f"{len(model.vocabulary):,}"}
    rows |= {} if model.params is None else {"dimensions": f"{model.dim:,}"}
    rows |= {"languages": ", ".join(model.languages), "weighting": model.weighting}
    pairs = record.get("pairs", {})
    rows |= {"pairs": f"{pairs['train']:,} for training, {pairs['dev']:,} held out"} if {"train", "dev"} <= set(pairs) \
        else {}
    rows |= {f"held-out {name.replace('_', ' ')}": value for name, value in record.get("dev", {}).items()}
    rows |= {name: record[name] for name in ("seconds", "command") if name in record}
    items = "".join(f"<dt>{escaped(name)}</dt><dd>{escaped(str(value))}</dd>\n" for name, value in rows.items())
    return f"<dl>\n{items}</dl>"


def _training(model: Model) -> str:
    drawn = report.training(model)
    if drawn is None:
        return "<p>This model keeps no history of its training: closed forms have none.</p>"
    course = model.training["history"]
    columns = [name for name in ("step", "loss", "validation", "seconds") if name in course]
    rows = zip(*(course[name] for name in columns), strict=True)
    kept = max(history.points(course, "validation"), key=lambda point: point[1], default=None)
    judges = "judged queries" if "stop_by" in model.training else "held-out pairs"
    best = "" if kept is None else f", the best score of {judges}, {kept[1]:g}, at step {kept[0]}"
    return (_image(drawn, f"Training loss and score of {judges} against the step{best}")
            + _details("Numbers of the curve", _table("Training", columns, rows)))


def _scores(model: Model, scored: dict[str, np.ndarray], belong: np.ndarray) -> str:
    panels, rows = [], []
    for name, values in scored.items():
        edges = np.linspace(*_range(values), _BINS + 1)
        series = {}
        for kind, some in (("mates", belong), ("others", ~belong)):
            counts = np.histogram(values[some], edges)[0] / max(int(some.sum()), 1)
            series[kind] = list(zip(np.repeat(edges, 2).tolist(), [0.0, *np.repeat(counts, 2).tolist(), 0.0],
                                    strict=True))  # fmt: skip
            rows.append([name, kind, f"{int(some.sum()):,}",
                         *(f"{value:.3f}" for value in np.quantile(values[some], _QUANTILES))])  # fmt: skip
        auc = metrics.auc(values, belong)
        panels.append(Panel(series, f"{report.score_name(model)}, {name} (AUC {auc:.4f})", "share of texts"))
    drawn = figures.panels(panels, title="Scores of mates and of texts that do not belong together")
    head = ["model", "texts", "number", *(f"{quantile:.0%}" for quantile in _QUANTILES)]
    text = "; ".join(f"{row[0]}, {row[1]}: median {row[5]}" for row in rows)
    return (_image(drawn, f"Histograms of the scores. {text}")
            + _table("Quantiles of the scores: so many of them are at most this", head, rows))


def _range(values: np.ndarray) -> tuple[float, float]:
    low, high = float(values.min()), float(values.max())
    return (low, high) if high > low else (low - 0.5, high + 0.5)


def _mistakes(model: Model, sides: report.Sides, found: Sequence[Mistake], examples: int) -> str:
    queries = checks.counted(len(sides.queries), "query", "queries")
    if not found:
        return f"<p>All of the {queries} find a mate before all other documents.</p>"
    some = found[:examples]
    heading = (f"<p>{len(found):,} of the {queries} find another document before their mate"
            f"{f'; the {len(some)} worst' if len(some) < len(found) else ''}:</p>\n")
    return heading + "".join(_mistake(model, sides, number, one) for number, one in enumerate(some, start=1))


def _mistake(model: Model, sides: report.Sides, number: int, one: Mistake) -> str:
    query, mate, wrong = sides.queries[one.query], sides.documents[one.mate], sides.documents[one.wrong]
    first, second = model.languages
    score = report.score_name(model)
    parts = []
    for title, text, value, kind in ((f"Its mate, at rank {one.rank:,}", mate, one.scores[0], ' class="mate"'),
                                     ("The first document", wrong, one.scores[1], "")):
        parts.append(f"<div>\n<h4>{title}</h4>\n<p{kind}>{shown(text, second)}</p>\n"
                     f'<p class="quiet">{escaped(score)} {value:.3f}{_why(model, query, text)}</p>\n</div>\n')
    return (f'<article aria-labelledby="mistake-{number}">\n<h3 id="mistake-{number}">Mistake {number}</h3>\n'
            f"<blockquote>{shown(query, first)}</blockquote>\n"
            f'<div class="sides">\n{"".join(parts)}</div>\n</article>\n')


def _why(model: Model, query: str, document: str) -> str:
    """The pairs of words that add most to a score; nothing where it is no sum over words."""
    if not _explained(model):
        return ""
    largest = explain(model, query, document).largest(_WORDS)
    words = "; ".join(f"{a} · {b} {value:+.3f}" for a, b, value in largest)
    return f": {escaped(words)}" if words else ": no words that add to it"


def _words(model: Model, sides: report.Sides, scores: np.ndarray) -> str:
    """The pairs of words that add most to the scores of mates."""
    if not _explained(model):
        return "<p>The score of this model is no sum over pairs of words, so it cannot be taken apart.</p>"
    total: dict[tuple[str, str], list[float]] = {}
    chosen = report.even(len(sides.queries), _EXPLAINED)
    for query in chosen:
        mate = max(sorted(sides.mates[query]), key=lambda i, row=scores[query]: row[i])
        result = explain(model, sides.queries[query], sides.documents[mate])
        for a, b, value in result.largest(result.contributions.size):
            entry = total.setdefault((a, b), [0.0, 0])
            entry[0], entry[1] = entry[0] + value, entry[1] + 1
    order = sorted(total.items(), key=lambda item: (-abs(item[1][0]), item[0]))[:_PAIRS_OF_WORDS]
    if not order:
        return "<p>No mates share a word that the model knows.</p>"
    rows = [[a, b, f"{value / len(chosen):+.4f}", f"{count:,}"] for (a, b), (value, count) in order]
    name = report.score_name(model)
    note = (f"What each pair of words adds to the {name} of a query and its best mate, on the average of "
            f"{checks.counted(len(chosen), 'match', 'matches')}. All pairs of words sum up to the mean {name}.")
    return f"<p>{escaped(note)}</p>\n" + _table(
        "Words of queries and of documents", ["word of the query", "word of the document", "adds", "matches"], rows)


def _explained(model: Model) -> bool:
    return model.activation == "none"


def _table(caption: str, head: Iterable, rows: Iterable) -> str:
    columns = "".join(f'<th scope="col">{escaped(str(name))}</th>' for name in head)
    cells = (["" if cell is None else escaped(str(cell)) for cell in row] for row in rows)
    body = "".join(f"<tr>{''.join(f'<td>{cell}</td>' for cell in row)}</tr>\n" for row in cells)
    return (f'<div class="wide"><table class="narrow">\n<caption>{escaped(caption)}</caption>\n'
            f"<thead><tr>{columns}</tr></thead>\n<tbody>\n{body}</tbody>\n</table></div>\n")


def _details(summary: str, content: str) -> str:
    return f"<details>\n<summary>{escaped(summary)}</summary>\n{content}</details>\n"


def _image(svg: bytes, text: str) -> str:
    return f'<p><img alt="{escaped(text)}" src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"></p>\n'


def _cut(text: str) -> str:
    return neighbours.legal(neighbours.cut(text))


def _json(data: dict) -> str:
    """JSON that ends no element of the page."""
    return json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")


def _digest(script: str) -> str:
    """What the page's policy names its only script by."""
    return f"sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}"


def _part(name: str) -> str:
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
