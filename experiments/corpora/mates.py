"""The corpora of the mate tables: what each table of `mates.platt2010` and `mates.yih2011` is trained and tested on.

Every table has a loader that returns a `Corpus`. Near-duplicates never cross a split; salts were chosen by the size of
the parts alone: the first that puts the largest groups of near-duplicates into training.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from jaxsim.data import MissingCorpus, doc_pairs, docstrings, europarl, mdn, pairs
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.evaluate.mates import Task

UNSEEN_TEST = ("astro", "kubernetes", "opensource_guide", "python_docs", "react", "tico19", "xquad_wikipedia")
UNSEEN_DEV = ("electron", "fastapi", "mdn_archived")
LINES = 12_000


@dataclass(frozen=True, eq=False)
class Corpus:
    """One table's data: the pairs (for name and digest), the task, and how to make the naive split's task."""

    pairs: Pairs
    task: Task
    naive: Callable[[], Task] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Pairs of each part."""
        return {name: sides[0].shape[0] for name, sides in self.task.counts.items()}


def _split(corpus: Pairs, salt: str = "", **vocabulary) -> Corpus:
    return Corpus(corpus, mates.from_pairs(corpus, salt=salt, **vocabulary),
                  lambda: mates.from_pairs(corpus, salt=salt, naive=True, **vocabulary))


def cut(corpus: Pairs, limit: int | None) -> Pairs:
    """An even sample of at most ``limit`` pairs, for the quick preset."""
    if limit is None or len(corpus) <= limit:
        return corpus
    return corpus.take(np.linspace(0, len(corpus) - 1, limit).astype(int))


def _load(language: str, sources=None) -> Pairs:
    parts = [doc_pairs.load(language, sources=sources)] if sources or sources is None else []
    if sources is None or "mdn" in sources:
        parts.append(mdn.load(language))
    return pairs.concatenate(f"doc_pairs+mdn en-{language}", parts)


def _docstrings(limit):
    return _split(cut(docstrings.load(), limit), min_df=2)


def _en_es(limit):
    return _split(cut(_load("es"), limit), salt="2")


def human_pairs() -> Pairs:
    """English and Spanish pages that people translated."""
    sources = [source for source in doc_pairs.available("es") if source in doc_pairs.HUMAN_SOURCES]
    parts = [doc_pairs.load("es", sources=sources), mdn.load("es")]
    return pairs.concatenate("human-translated doc_pairs+mdn en-es", parts)


def _en_es_human(limit):
    return _split(cut(human_pairs(), limit), salt="2")


def _en_es_unseen(limit):
    corpus = cut(_load("es"), limit)
    sources = np.asarray(corpus.sources)

    def rows(groups, keep):
        test, dev = np.isin(sources, UNSEEN_TEST), np.isin(sources, UNSEEN_DEV)
        # A group of near-duplicates that reaches into test (or dev) leaves the parts before it.
        in_test = np.isin(groups, groups[test])
        in_dev = np.isin(groups, groups[dev])
        chosen = {"train": ~test & ~dev & ~in_test & ~in_dev, "dev": dev & ~in_test, "test": test}
        return {name: np.flatnonzero(mask & keep) for name, mask in chosen.items()}

    return Corpus(corpus, mates.from_pairs(corpus, rows=rows))


def _mdn(language):
    return lambda limit: _split(cut(_load(language), limit), salt="2")


def _europarl(unit: str):
    """Train on blocks of 1996-99 cut at "Mr President"; dev 2001 and test 2000 are speeches, or single lines."""

    def load(limit):
        train = europarl.load_blocks((1996, 1997, 1998, 1999), cut="president")
        if unit == "speeches":
            dev, test = europarl.load_speeches((2001,)), europarl.load_speeches((2000,))
        else:
            dev = europarl.load_lines((2001,), max_pairs=LINES // 3)
            test = europarl.load_lines((2000,), max_pairs=LINES)
        parts = [cut(part, limit) for part in (train, dev, test)]
        ends = np.cumsum([len(part) for part in parts])
        named = [
            pairs.make(part.name, [f"{name}/{i}" for i in part.ids], part.left, part.right, languages=part.languages,
                       sources=part.sources, counts=part.counts)
            for name, part in zip(("train", "dev", "test"), parts, strict=True)
        ]
        corpus = pairs.concatenate(f"europarl en-it, {unit}", named)

        def rows(groups, keep):
            place = np.searchsorted(ends, np.arange(len(groups)), side="right")
            later = {0: place > 0, 1: place > 1, 2: np.zeros(len(groups), bool)}
            chosen = {}
            for part, name in enumerate(("train", "dev", "test")):
                clean = ~np.isin(groups, groups[later[part]])
                chosen[name] = np.flatnonzero((place == part) & clean & keep)
            return chosen

        return Corpus(corpus, mates.from_pairs(corpus, rows=rows))

    return load


def paper_years(release: Path, left: str = "en", right: str = "es", *, limit: int | None = None) -> Corpus:
    """The papers' own split of the official Europarl release: train 1996-99 and 2002, dev 2001, test 2000 and 2003.

    The paper's test part has the first nine months of 2003; the whole year is read here if the release has more.
    """
    years = {"train": (1996, 1997, 1998, 1999, 2002), "dev": (2001,), "test": (2000, 2003)}
    parts = {name: cut(europarl.load_release(release, left, right, years=when), limit) for name, when in years.items()}
    corpus = pairs.concatenate(f"europarl {left}-{right}", list(parts.values()))
    ends = np.cumsum([len(part) for part in parts.values()])

    def rows(groups, keep):
        place = np.searchsorted(ends, np.arange(len(groups)), side="right")
        return {name: np.flatnonzero((place == part) & keep) for part, name in enumerate(parts)}

    return Corpus(corpus, mates.from_pairs(corpus, rows=rows))


CORPORA: dict[str, Callable[[int | None], Corpus]] = {
    "docstrings": _docstrings,
    "en-es-human": _en_es_human,
    "en-it-speeches": _europarl("speeches"),
    "en-it-lines": _europarl("lines"),
    "en-fr": _mdn("fr"),
    "en-ja": _mdn("ja"),
    "en-es": _en_es,
    "en-es-unseen": _en_es_unseen,
}


def load(name: str, limit: int | None = None, *, release: str | Path | None = None) -> Corpus:
    """The corpus of a table, split.

    Args:
      name: One of `CORPORA`, or `paper`.
      limit: Pairs at most (of each part, where a corpus comes in parts), an even sample.
      release: Folder of the official Europarl release, which `paper` reads.

    Returns:
      `Corpus`.

    Raises:
      MissingCorpus: its files are not here.
    """
    if name != "paper":
        return CORPORA[name](limit)
    if release is None:
        raise MissingCorpus("--release: expected the folder of the official Europarl release, got none")
    return paper_years(Path(release), limit=limit)


DIFFERS = {
    "docstrings": "substitute: (summary, body) of Python docstrings in place of comparable articles; one language",
    "en-es": "substitute: technical documentation, three quarters machine translated, in place of Wikipedia EN-ES",
    "en-es-human": "substitute: human-translated documentation in place of Wikipedia EN-ES",
    "en-es-unseen": "substitute: trained on some sources of documentation, tested on others",
    "en-fr": "substitute: MDN and other documentation, EN-FR",
    "en-ja": "substitute: MDN and other documentation, EN-JA, words by fugashi and UniDic",
    "en-it-speeches": "resampled: a third of Europarl EN-IT in place of EN-ES; trained on blocks of 1996-99 cut at "
    "lines opening with Mr, Madam or Mrs President, tested on speeches of 2000",
    "en-it-lines": "resampled: a third of Europarl EN-IT in place of EN-ES; the same training blocks, tested on single "
    "lines of at least 20 words",
    "paper": "resampled: the official Europarl release, the papers' years, speeches aligned by speaker",
}
