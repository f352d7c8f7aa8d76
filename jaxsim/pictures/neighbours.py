"""A page of nearest neighbours: one HTML file without scripts or other files, readable in light and in dark."""

from __future__ import annotations

import html
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from jaxsim.checks import expect, positive_int

_LONGEST = 400  # characters of a text that are shown
_ILLEGAL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff]")  # in HTML
_ROW = {True: '<tr class="mate">', False: "<tr>"}
_MATE = "<strong>Mate.</strong> "
STYLE = """\
:root { color-scheme: light dark; --ink: #1b1f24; --page: #ffffff; --line: #8a929c; --mate: #dcefdf; --quiet: #57606a; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e4e8ec; --page: #14171a; --line: #6b747e; --mate: #1d4028; --quiet: #a4adb6; }
}
body { color: var(--ink); background: var(--page); font: 1rem/1.5 system-ui, sans-serif; max-width: 80rem;
  margin: 0 auto; padding: 1rem; }
.sides { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(22rem, 100%), 1fr)); gap: 1rem; }
.text { overflow-wrap: anywhere; white-space: pre-wrap; }
blockquote { margin: 0 0 1rem; padding-left: 1rem; border-left: 0.25rem solid var(--line); }
table { border-collapse: collapse; width: 100%; align-self: start; }
caption { text-align: left; font-weight: bold; padding: 0.25rem 0; }
th, td { text-align: left; vertical-align: top; padding: 0.25rem 0.5rem; border-top: 1px solid var(--line); }
th[scope="row"], .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
tr.mate { background: var(--mate); }
.quiet { color: var(--quiet); }
"""


class Neighbour(NamedTuple):
    """A row of a list.

    Attributes:
      rank: from 1.
      score: its cosine with the query.
      text: the document.
      mate: whether it belongs to the query.
    """

    rank: int
    score: float
    text: str
    mate: bool


class Example(NamedTuple):
    """A query and its lists.

    Attributes:
      query: its text.
      lists: one list of `Neighbour` a model, the best first; each holds at least one mate.
    """

    query: str
    lists: tuple[tuple[Neighbour, ...], ...]


def nearest(scores, documents: Sequence[str], mates, *, k: int = 5) -> tuple[Neighbour, ...]:
    """The first documents of a list, and the best mate below them if none of them is one.

    Args:
      scores: ``[num_docs]`` real, higher is better; ties are errors, so a mate stands below others of its score, and
        otherwise go to the lower index.
      documents: their texts.
      mates: ``[num_docs]`` booleans, at least one of them true.
      k: documents to show.

    Returns:
      At most ``k + 1`` rows.

    Raises:
      ValueError: for k below 1, other lengths, or no mate.

    Example:
      >>> [row[0::2] for row in nearest([0.5, 0.9, 0.5], ["a", "b", "c"], [True, False, False], k=1)]
      [(1, 'b'), (3, 'a')]
    """
    positive_int(k, "k")
    scores, mates = np.asarray(scores), np.asarray(mates, bool)
    number = len(documents)
    expect(scores.shape == (number,), "scores", f"shape ({number},), as documents", scores.shape)
    expect(mates.shape == (number,), "mates", f"shape ({number},), as documents", mates.shape)
    expect(bool(mates.any()), "mates", "at least one mate", "none")
    order = np.lexsort((np.arange(number), mates, -scores))
    best = int(np.argmax(mates[order]))
    shown = [*range(min(k, number)), *([best] if best >= k else [])]
    return tuple(Neighbour(place + 1, float(scores[order[place]]), documents[order[place]], bool(mates[order[place]]))
                 for place in shown)  # fmt: skip


def page(examples: Sequence[Example], *, models: Sequence[str], note: str, languages: tuple[str, str],
         scores: Sequence[str] | None = None) -> str:  # fmt: skip
    """The page.

    Args:
      examples: queries with their lists.
      models: name of the model of each list.
      note: what the queries and the documents are, plain text.
      languages: language codes of queries and documents.
      scores: what each model compares texts by, as columns are called; the cosine unless given.

    Returns:
      HTML that asks for nothing outside it; every text is escaped, and long ones are cut.

    Raises:
      ValueError: for an example with another number of lists than models, and for another number of scores.

    Example:
      >>> one = Example("<b>", ((Neighbour(1, 0.5, "a & b", True),),))
      >>> text = page([one], models=["s2net"], note="One query.", languages=("en", "en"))
      >>> "&lt;b&gt;" in text, "a &amp; b" in text, "<script" in text
      (True, True, False)
    """
    scores = ["cosine"] * len(models) if scores is None else scores
    expect(len(scores) == len(models), "scores", f"{len(models)} names, as models", len(scores))
    for example in examples:
        expect(len(example.lists) == len(models), "examples", f"{len(models)} lists, as models", len(example.lists))
    sections = "".join(_section(number, example, list(zip(models, scores, strict=True)), languages)
                       for number, example in enumerate(examples, start=1))  # fmt: skip
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">\n'
        f"<title>Nearest neighbours</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n"
        f"<h1>Nearest neighbours</h1>\n<p>{escaped(note)}</p>\n{sections}</main>\n</body>\n</html>\n"
    )


def _section(number: int, example: Example, models: Sequence[tuple[str, str]], languages: tuple[str, str]) -> str:
    tables = "".join(_table(*model, rows, languages[1]) for model, rows in zip(models, example.lists, strict=True))
    return (
        f'<section aria-labelledby="query-{number}">\n<h2 id="query-{number}">Query {number}</h2>\n'
        f"<blockquote>{shown(example.query, languages[0])}</blockquote>\n"
        f'<div class="sides">\n{tables}</div>\n</section>\n'
    )


def _table(model: str, score: str, rows: Sequence[Neighbour], language: str) -> str:
    rank = next(row.rank for row in rows if row.mate)
    lines = "".join(
        f'{_ROW[row.mate]}<th scope="row">{row.rank:,}</th><td class="number">{_digits(row.score)}</td><td>'
        f"{_MATE if row.mate else ''}{shown(row.text, language)}</td></tr>\n"
        for row in rows
    )
    return (
        f"<table>\n<caption>{escaped(model)}: mate at rank {rank:,}</caption>\n"
        f'<thead><tr><th scope="col">Rank</th><th scope="col">{escaped(score.capitalize())}</th>'
        '<th scope="col">Document</th></tr></thead>\n'
        f"<tbody>\n{lines}</tbody>\n</table>\n"
    )


def _digits(score: float) -> str:
    """Three digits, without a zero that is negative."""
    return f"{round(score, 3) + 0.0:.3f}"


def shown(text: str, language: str) -> str:
    """A text of the user, cut and escaped.

    Args:
      text: any.
      language: its code.

    Returns:
      HTML.

    Example:
      >>> shown("a & b", "en")
      '<span class="text" lang="en" dir="auto">a &amp; b</span>'
    """
    if not text.strip():
        return '<span class="quiet">(an empty text)</span>'
    return f'<span class="text" lang="{escaped(language)}" dir="auto">{escaped(cut(text))}</span>'


def cut(text: str) -> str:
    """A text that is not too long to show.

    Args:
      text: any.

    Returns:
      At most 400 characters of it, with an ellipsis where some are left out.

    Example:
      >>> len(cut("a" * 1000)), cut("a" * 1000)[-2:]
      (400, 'a…')
    """
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def escaped(text: str) -> str:
    """A text as HTML.

    Args:
      text: any.

    Returns:
      HTML, with what is illegal there replaced.

    Example:
      >>> escaped("a < b")
      'a &lt; b'
    """
    return html.escape(legal(text), quote=True)


def legal(text: str) -> str:
    r"""A text without the characters that HTML has not.

    Args:
      text: any.

    Returns:
      The text, with replacement characters in their places.

    Example:
      >>> legal("a\x00b") == "a\ufffdb"
      True
    """
    return _ILLEGAL.sub("\ufffd", text)
