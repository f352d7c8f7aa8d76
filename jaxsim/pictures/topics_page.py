"""A page about topics: a map, and for each topic its words in both languages, its coherence and its documents."""

from __future__ import annotations

import html
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim import checks, io, sparse, text
from jaxsim.data.pairs import Pairs
from jaxsim.methods import topics
from jaxsim.methods.topics import coherence
from jaxsim.model import Model, parts
from jaxsim.pictures import neighbours
from jaxsim.sparse import Vectors

_WIDTH, _HEIGHT, _LARGEST = 720, 480, 26  # of the map and of its largest circle
_STYLE = """\
svg { width: 100%; height: auto; border: 1px solid var(--line); }
circle { fill: var(--mate); stroke: var(--ink); }
svg text { fill: var(--ink); font: 11px system-ui, sans-serif; text-anchor: middle; }
section { border-top: 1px solid var(--line); margin-top: 1rem; }
ol.documents { padding-left: 1.5rem; }
"""


class Side(NamedTuple):
    """One language of a topic.

    Attributes:
      words: the heaviest, the first the heaviest.
      npmi: their coherence; NaN where too few of them occur.
    """

    words: tuple[str, ...]
    npmi: float


class Topic(NamedTuple):
    """A topic as the page shows it.

    Attributes:
      number: from 1, as columns of the model.
      share: of the topics of all documents of both sides.
      sides: left and right language.
      documents: pairs that have most of it, each ``(share, left text, right text)``.
      place: ``(x, y)`` on the map, in [-1, 1].
    """

    number: int
    share: float
    sides: tuple[Side, Side]
    documents: tuple[tuple[float, str, str], ...]
    place: tuple[float, float]


def describe(model: Model, pairs: Pairs, *, words: int = 10, documents: int = 5) -> list[Topic]:
    """What the topics of a model are about, by the documents of pairs.

    Args:
      model: a topic model.
      pairs: texts of both sides, those of the training or others.
      words: of a topic and a language.
      documents: pairs of a topic.

    Returns:
      One `Topic` a dimension, those with the largest share first.

    Raises:
      ValueError: for a model without topics, or pairs without known words on a side.

    Example:
      >>> from jaxsim.data import docstrings
      >>> from jaxsim.train.training import Settings, train
      >>> some = docstrings.load().take(range(200))
      >>> model = train(some, Settings(method="jplsa", dim=3, max_iter=20), dev=0)
      >>> found = describe(model, some, words=4)
      >>> len(found), len(found[0].sides[0].words), round(sum(topic.share for topic in found), 3)
      (3, 4, 1.0)
    """
    checks.expect(model.topical, "model", "a topic model (jplsa, cplsa or plsa)", model.method)
    checks.positive_int(documents, "documents")
    vectors, sides = [], []
    for side, texts, language in zip(("query", "document"), (pairs.left, pairs.right), pairs.languages, strict=True):
        own = parts.sides(model.params)[-1 if side == "document" else 0]
        tokens = list(map(text.tokenizer(language), texts))
        counts = sparse.from_scipy(text.counts(tokens, model.vocabulary).astype(np.float32))
        result = np.asarray(model.vectors(texts, side=side).dense)
        checks.expect(bool(result.any()), pairs.name, f"a {side} with words that the model knows", "none")
        kept = topics.Topics(jnp.asarray(sparse.narrow.full(own.weights)))
        used = topics.recount(kept, counts, Vectors(jnp.asarray(result)))
        chosen = coherence.top_words(used, number=words, lift=0.5)
        scores = coherence.npmi(chosen, counts)
        sides.append([Side(tuple(model.vocabulary.terms[i] for i in row if i >= 0), float(score))
                      for row, score in zip(chosen, scores, strict=True)])
        vectors.append(result)
    # Both sides have to have the topic; a page without known words has none.
    both = np.minimum(*vectors)
    total = np.sum(vectors, axis=(0, 1)) / max(np.sum(vectors), 1e-30)
    places = _places(np.concatenate(vectors))
    described = []
    for number in np.argsort(-total, kind="stable"):
        best = np.argsort(-both[:, number], kind="stable")[:documents]
        shown = tuple((float(both[i, number]), pairs.left[i], pairs.right[i]) for i in best if both[i, number] > 0)
        described.append(Topic(int(number) + 1, float(total[number]), (sides[0][number], sides[1][number]), shown,
                               (float(places[number, 0]), float(places[number, 1]))))
    return described


def _places(shares: np.ndarray) -> np.ndarray:
    """Topics in the plane, near each other where documents have both: principal axes of the roots of their shares."""
    roots = np.sqrt(shares.astype(np.float64))
    roots /= np.maximum(np.linalg.norm(roots, axis=0), 1e-30)
    cosines = roots.T @ roots
    centred = cosines - cosines.mean(axis=0) - cosines.mean(axis=1)[:, None] + cosines.mean()
    values, axes = np.linalg.eigh(centred)
    places = np.zeros((len(cosines), 2))
    few = min(2, len(values))
    places[:, :few] = (axes * np.sqrt(np.maximum(values, 0)))[:, ::-1][:, :few]
    places *= np.where(places.sum(axis=0) < 0, -1, 1)
    return places / max(np.abs(places).max(), 1e-30)


def write(folder: Path, found: Sequence[Topic], model: Model, pairs: Pairs) -> Path:
    """Writes ``topics.html``.

    Args:
      folder: made if it is not there.
      found: from `describe`.
      model: the topic model.
      pairs: that it was described by.

    Returns:
      The file.

    Raises:
      OSError: if it cannot be written.
    """
    path = Path(folder) / io.PAGE
    path.parent.mkdir(parents=True, exist_ok=True)
    note = (f"{checks.counted(len(found), 'topic')} of {model.method}, described by "
            f"{checks.counted(len(pairs), 'pair')} of {pairs.name}. A topic is shown by words that are frequent in it "
            "and rarer elsewhere, and by the pairs whose texts both have most of it. Coherence (NPMI) is 1 for words "
            "that never occur apart, 0 for independent ones, and -1 for words that never meet, in these texts. On the "
            "map, topics of the same texts stand near each other; the larger, the more text is about them.")
    io.write_bytes(path, page(found, note=note, languages=pairs.languages).encode())
    return path


def page(found: Sequence[Topic], *, note: str, languages: tuple[str, str]) -> str:
    """The page.

    Args:
      found: from `describe`.
      note: plain text above the map.
      languages: language codes of both sides.

    Returns:
      HTML that asks for nothing outside it and holds no script; every text is escaped, and long ones are cut.

    Example:
      >>> topic = Topic(1, 1.0, (Side(("<b>",), 0.5), Side(("x",), float("nan"))), ((0.9, "left", "right"),), (0, 0))
      >>> shown = page([topic], note="One.", languages=("en", "es"))
      >>> "&lt;b&gt;" in shown, "<script" in shown
      (True, False)
    """
    style = neighbours.STYLE + _STYLE
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; style-src \'unsafe-inline\'">\n'
        f"<title>Topics</title>\n<style>\n{style}</style>\n</head>\n<body>\n<main>\n<h1>Topics</h1>\n"
        f"<p>{neighbours.escaped(note)}</p>\n{_map(found)}"
        f"{''.join(_section(topic, languages) for topic in found)}</main>\n</body>\n</html>\n"
    )


def _map(found: Sequence[Topic]) -> str:
    largest = max((topic.share for topic in found), default=1.0) or 1.0
    shapes = []
    for topic in found:
        radius = max(3.0, _LARGEST * (topic.share / largest) ** 0.5)
        x = _WIDTH / 2 + topic.place[0] * (_WIDTH / 2 - 2 * _LARGEST)
        y = _HEIGHT / 2 - topic.place[1] * (_HEIGHT / 2 - 2 * _LARGEST)
        name = f"{topic.number}: {', '.join(topic.sides[0].words[:3])}"
        shapes.append(f'<a href="#topic-{topic.number}"><circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
                      f"<title>{html.escape(name)}</title></circle>"
                      f'<text x="{x:.1f}" y="{y + 4:.1f}">{topic.number}</text></a>\n')
    return (f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="Map of topics">\n{"".join(shapes)}</svg>\n')


def _section(topic: Topic, languages: tuple[str, str]) -> str:
    columns = "".join(map(_words, topic.sides, languages))
    documents = "".join(
        f'<li><span class="quiet">{share:.0%}</span><div class="sides">'
        + "".join(f"<div>{neighbours.shown(side, code)}</div>" for side, code in zip(both, languages, strict=True))
        + "</div></li>\n" for share, *both in topic.documents)
    return (f'<section id="topic-{topic.number}">\n<h2>Topic {topic.number}</h2>\n'
            f'<p class="quiet">{topic.share:.1%} of all text</p>\n<div class="sides">\n{columns}</div>\n'
            f'<ol class="documents">\n{documents}</ol>\n</section>\n')


def _words(side: Side, language: str) -> str:
    code, words = neighbours.escaped(language), neighbours.escaped(", ".join(side.words) or "(no words)")
    return (f'<div><p lang="{code}" dir="auto"><strong>{code}</strong> {words}</p>'
            f'<p class="quiet">NPMI {_number(side.npmi)}</p></div>\n')


def _number(value: float) -> str:
    return "unknown" if np.isnan(value) else f"{value:.2f}"
