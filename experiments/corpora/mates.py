"""The corpora of the mate tables: what each table of `mates.platt2010` and `mates.yih2011` is trained and tested on.

Every table has a loader that returns a `Corpus`. Near-duplicates never cross a split. Where a corpus has no parts of
its own (years, sources), its groups are dealt by the hash of a name alone, without a salt: nobody chooses where the
large groups go. Wherever they go, a mate cannot be told from near-copies of it (491 of 1,817 pages of one test part are
one such group), so dev and test keep one pair of each group (`lone`). Two of these tables keep whole groups there
(`mates.split`): `docstrings`, with many near-copies, and `en-es-halves`, with few (`RULES`). So do those whose years or
sources are parts of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np
import scipy.sparse

from jaxsim import text
from jaxsim.data import catalogue, doc_pairs, docstrings, europarl, mdn, pairs
from jaxsim.data.pairs import Pairs
from jaxsim.evaluate import mates
from jaxsim.evaluate.mates import Task, Texts
from jaxsim.sparse import Terms

UNSEEN_TEST = ("astro", "kubernetes", "opensource_guide", "python_docs", "react", "tico19", "xquad_wikipedia")
UNSEEN_DEV = ("electron", "fastapi", "mdn_archived")
LINES = 12_000
LONG = 120
"""Words of either page of a pair, at least, where pages are parted."""
LONG_SPEECH = 100
"""Words of either side of a long speech, at least (002 §3.2)."""


class Views(NamedTuple):
    """Training pages in two languages or more, and dev and test pairs in two, over the vocabulary of the former.

    Attributes:
      counts: Part -> counts ``[m, num_terms]`` of each language; row i of one is the same page as row i of another.
      vocabulary: Terms and document frequencies of the training pages in all their languages.
    """

    counts: dict[str, tuple[scipy.sparse.csr_matrix, ...]]
    vocabulary: text.Vocabulary

    def weighted(self, part: str) -> tuple[Terms, ...]:
        """log2(tf + 1) · log2(n / df) vectors at unit length (as `Task.weighted`), a collection a language."""
        return tuple(mates.unit_terms(text.log_tf_idf(counts, self.vocabulary.df, self.vocabulary.num_docs))
                     for counts in self.counts[part])


class Shared(NamedTuple):
    """The training pages that exist in more languages than the two of their table.

    Attributes:
      texts: Pages of the table.
      parts: Their rows.
      documents: Language -> word lists of these training pages; the table's two languages come first.
    """

    texts: Texts
    parts: dict[str, np.ndarray]
    documents: dict[str, list[list[str]]]

    @property
    def size(self) -> int:
        """Pages, the same in every language."""
        return len(next(iter(self.documents.values())))

    def views(self, languages: Sequence[str]) -> Views:
        """The training pages in these languages. For each, the vocabulary has half as many terms as for two.

        Args:
          languages: of `documents`, in any order.
        """
        sides = [self.documents[language] for language in languages]
        vocabulary = mates.vocabulary_of([document for side in sides for document in side],
                                         drop_top=25 * len(sides), max_terms=10_000 * len(sides))
        pairs = {part: self.texts.words(self.parts[part]) for part in ("dev", "test")}
        return Views({part: tuple(text.counts(side, vocabulary) for side in found)
                      for part, found in {"train": sides, **pairs}.items()}, vocabulary)


@dataclass(frozen=True, eq=False)
class Corpus:
    """One table's data.

    Attributes:
      pairs: For name and digest.
      task: What is trained and tested on.
      naive: Makes the task of the naive split, where near-duplicates cross; None where the table has no such split.
      of_size: Makes the task with some of the training pairs, by their number, for learning curves; smaller samples are
        parts of larger ones, and have vocabularies of their own. None where the table has no such curve.
      shared: Reads the training pages that exist in more languages too; None where the table has no rows of them.
    """

    pairs: Pairs
    task: Task
    naive: Callable[[], Task] | None = None
    of_size: Callable[[int], Task] | None = None
    shared: Callable[[], Shared] | None = None

    @property
    def sizes(self) -> dict[str, int]:
        """Pairs of each part."""
        return {name: sides[0].shape[0] for name, sides in self.task.counts.items()}


def _split(corpus: Pairs, parts_of: Callable[[Texts], dict[str, np.ndarray]], **vocabulary) -> Corpus:
    """All pairs, dealt in groups."""
    texts = mates.read(corpus)
    parts = parts_of(texts)
    return Corpus(corpus, mates.of_texts(texts, parts, **vocabulary),
                  lambda: mates.from_pairs(corpus, naive=True, **vocabulary),
                  lambda size: mates.of_texts(mates.read(corpus), sampled(parts, size), **vocabulary))


def lone(texts: Texts) -> dict[str, np.ndarray]:
    """The parts by groups; dev and test have the first pair of each group alone, training has all of its groups' pairs.

    Args:
      texts: from `mates.read`.

    Returns:
      ``train``, ``dev`` and ``test``: rows, ascending.
    """
    parts = mates.split(texts)
    firsts = {part: np.sort(rows[np.unique(texts.groups[rows], return_index=True)[1]]) for part, rows in parts.items()}
    return {**firsts, "train": parts["train"]}


def sampled(parts: dict[str, np.ndarray], size: int) -> dict[str, np.ndarray]:
    """The same parts with ``size`` of the training pairs, drawn so that a smaller sample is part of a larger one.

    Example:
      >>> parts = sampled({"train": np.arange(9), "test": np.arange(9, 12)}, 4)
      >>> parts["train"].size, parts["test"].size
      (4, 3)
    """
    return {**parts, "train": np.sort(np.random.default_rng(0).permutation(parts["train"])[:size])}


def _parted(corpus: Pairs, left: Callable, right: Callable, parts_of: Callable[[Texts], dict[str, np.ndarray]] = lone,
            more: Mapping[str, Callable[[], Pairs]] | None = None) -> Corpus:
    """Long pages alone, a part of the words of each: pairs are comparable then, not parallel.

    ``left`` and ``right`` cut word lists. Groups of near-duplicates are those of whole pages. ``more`` has the pages
    with their versions in other languages, which ``right`` cuts.
    """
    whole = mates.read(corpus)
    long = np.array([min(len(one), len(other)) >= LONG for one, other in zip(whole.left, whole.right, strict=True)])
    rows = np.flatnonzero(long)
    groups = np.unique(whole.groups[rows], return_inverse=True)[1]
    texts = mates.Texts(corpus.take(rows), [left(whole.left[i]) for i in rows], [right(whole.right[i]) for i in rows],
                        whole.twins[rows], groups, whole.keep[rows])
    parts = parts_of(texts)
    return Corpus(texts.pairs, mates.of_texts(texts, parts),
                  lambda: mates.of_texts(texts, mates.split(texts, naive=True)),
                  lambda size: mates.of_texts(texts, sampled(parts, size)),
                  partial(_shared, texts, parts, right, more) if more else None)


def _shared(texts: Texts, parts: dict[str, np.ndarray], cut_page: Callable, more: Mapping[str, Callable[[], Pairs]]
            ) -> Shared:
    """The training pages that are in all of ``more``, with at least `LONG` words in each language."""
    ids, train = texts.pairs.ids, parts["train"]
    wanted = {ids[row] for row in train}
    pages = {}
    for language, load in more.items():
        found, words = load(), text.tokenizer(language)
        known = {name: words(page) for name, page in zip(found.ids, found.right, strict=True) if name in wanted}
        pages[language] = {name: page for name, page in known.items() if len(page) >= LONG}
    rows = [row for row in train if all(ids[row] in known for known in pages.values())]
    others = {language: [cut_page(known[ids[row]]) for row in rows] for language, known in pages.items()}
    return Shared(texts, parts, dict(zip(texts.pairs.languages, texts.words(rows), strict=True)) | others)


def first_half(words: list[str]) -> list[str]:
    """The first half of a page, the shorter one where their number is odd."""
    return words[: len(words) // 2]


def second_half(words: list[str]) -> list[str]:
    """The other half."""
    return words[len(words) // 2 :]


def _halves(load: Callable[[], Pairs], parts_of=lone, more=None) -> Callable[[int | None], Corpus]:
    """The first half of the English page, the second half of the other."""
    return lambda limit: _parted(cut(load(), limit), first_half, second_half, parts_of, more)


def _first20(limit):
    """The first 20 words of the English page, the last two thirds of the other."""
    return _parted(cut(human_pairs(), limit), lambda words: words[:20], lambda words: words[len(words) // 3 :])


def later_first(place: np.ndarray, groups: np.ndarray, keep: np.ndarray) -> dict[str, np.ndarray]:
    """Rows of parts that the corpus gives, without groups that reach into a later part.

    Args:
      place: ``[n]`` part of each pair: 0 for train, 1 for dev, 2 for test.
      groups: ``[n]`` groups of near-duplicates.
      keep: ``[n]`` booleans, False for pairs equal to one that is kept.

    Returns:
      ``train``, ``dev`` and ``test``: a group with pairs in test leaves the other two, one with pairs in dev leaves
      train.

    Example:
      >>> parts = later_first(np.array([0, 0, 1, 1, 2]), np.array([0, 1, 1, 2, 2]), np.ones(5, bool))
      >>> {name: rows.tolist() for name, rows in parts.items()}
      {'train': [0], 'dev': [2], 'test': [4]}
    """
    last = np.zeros(int(groups.max(initial=0)) + 1, np.int64)
    np.maximum.at(last, groups, place)
    return {name: np.flatnonzero((place == part) & (last[groups] == part) & keep)
            for part, name in enumerate(("train", "dev", "test"))}


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
    return _split(cut(docstrings.load(), limit), mates.split, min_df=2)


def _en_es(limit):
    return _split(cut(_load("es"), limit), lone)


def human_pairs(language: str = "es") -> Pairs:
    """English pages with those of another language into which people translated them."""
    sources = [source for source in doc_pairs.available(language) if source in doc_pairs.HUMAN_SOURCES]
    parts = [doc_pairs.load(language, sources=sources), mdn.load(language)]
    return pairs.concatenate(f"human-translated doc_pairs+mdn en-{language}", parts)


def without(corpus: Pairs, ids: Collection[str]) -> Pairs:
    """The pairs that are neither among those named nor near-duplicates of one of them."""
    groups, named = mates.read(corpus).groups, np.isin(corpus.ids, list(ids))
    return corpus.take(np.flatnonzero(~np.isin(groups, groups[named])))


def _en_es_human(limit):
    return _split(cut(human_pairs(), limit), lone)


def _en_es_unseen(limit):
    corpus = cut(_load("es"), limit)
    sources = np.asarray(corpus.sources)

    place = np.where(np.isin(sources, UNSEEN_TEST), 2, np.where(np.isin(sources, UNSEEN_DEV), 1, 0))
    return Corpus(corpus, mates.from_pairs(corpus, rows=partial(later_first, place)))


def _mdn(language):
    return lambda limit: _split(cut(_load(language), limit), lone)


def _europarl(unit: str, *, long: bool = False):
    """Train on blocks of 1996-99 cut at "Mr President"; dev 2001 and test 2000 are speeches, or single lines.

    With ``long`` the speeches of test have at least `LONG_SPEECH` words in both languages.
    """

    def load(limit):
        train = europarl.load_blocks((1996, 1997, 1998, 1999), cut="president")
        if unit == "speeches":
            dev, test = europarl.load_speeches((2001,)), europarl.load_speeches((2000,))
        else:
            dev = europarl.load_lines((2001,), max_pairs=LINES // 3)
            test = europarl.load_lines((2000,), max_pairs=LINES)
        parts = [cut(part, limit) for part in (train, dev, test)]
        if long:
            parts[2] = parts[2].take(np.flatnonzero([min(len(text.words(a)), len(text.words(b))) >= LONG_SPEECH
                                                     for a, b in zip(parts[2].left, parts[2].right, strict=True)]))
        ends = np.cumsum([len(part) for part in parts])
        named = [
            pairs.make(part.name, [f"{name}/{i}" for i in part.ids], part.left, part.right, languages=part.languages,
                       sources=part.sources, counts=part.counts)
            for name, part in zip(("train", "dev", "test"), parts, strict=True)
        ]
        corpus = pairs.concatenate(f"europarl en-it, {unit}", named)
        place = np.searchsorted(ends, np.arange(len(corpus)), side="right")
        return Corpus(corpus, mates.from_pairs(corpus, rows=partial(later_first, place)))

    return load


def paper_years(release: Path, left: str = "en", right: str = "es", *, limit: int | None = None) -> Corpus:
    """The papers' own split of the official Europarl release: train 1996-99 and 2002, dev 2001, test 2000 and 2003.

    The paper's test part has the first nine months of 2003; the whole year is read here if the release has more.
    """
    years = {"train": (1996, 1997, 1998, 1999, 2002), "dev": (2001,), "test": (2000, 2003)}
    parts = {name: cut(europarl.load_release(release, left, right, years=when), limit) for name, when in years.items()}
    corpus = pairs.concatenate(f"europarl {left}-{right}", list(parts.values()))
    ends = np.cumsum([len(part) for part in parts.values()])
    place = np.searchsorted(ends, np.arange(len(corpus)), side="right")
    return Corpus(corpus, mates.from_pairs(corpus, rows=partial(later_first, place)))


CORPORA: dict[str, Callable[[int | None], Corpus]] = {
    "docstrings": _docstrings,
    "en-es-human": _en_es_human,
    "en-it-speeches": _europarl("speeches"),
    "en-it-speeches-long": _europarl("speeches", long=True),
    "en-it-lines": _europarl("lines"),
    "en-fr": _mdn("fr"),
    "en-ja": _mdn("ja"),
    "en-es": _en_es,
    "en-es-unseen": _en_es_unseen,
    "en-es-halves": _halves(human_pairs, mates.split, {other: partial(human_pairs, other) for other in ("fr", "ja")}),
    "en-es-halves-all": _halves(partial(_load, "es")),
    "en-fr-halves": _halves(partial(_load, "fr")),
    "en-ja-halves": _halves(partial(_load, "ja")),
    "en-es-first20": _first20,
}
RULES = {"en-es-halves": 2, **dict.fromkeys(
    ("en-es-halves-all", "en-fr-halves", "en-ja-halves", "en-es-first20", "en-es-human", "en-es", "en-fr", "en-ja"), 3)}
"""Version of the rule that deals a table's pairs, where it is not the first; records name it, and claims do not compare
rows of two. 2: groups dealt without a salt (before, a salt had been chosen that put the largest into training); 3:
besides, one pair of each group in dev and test. `en-es-halves` has 5 near-copies among 761 test pairs, and stays as it
was recorded. `docstrings` never had a salt, and stays too, with more near-copies: its 1,057 test pairs are of 704
groups, the largest of 62 pairs. Europarl's years and `en-es-unseen`'s sources are parts of their own."""


def load(name: str, limit: int | None = None, *, release: str | Path | None = None) -> Corpus:
    """The corpus of a table, split.

    Args:
      name: One of `CORPORA`, or `paper`.
      limit: Pairs at most (of each part, where a corpus comes in parts), an even sample.
      release: The official Europarl release, which `paper` reads: its archive or the folder of its languages; the
        corpus `europarl_release` unless given.

    Returns:
      `Corpus`.

    Raises:
      MissingCorpus: its files are not here.
    """
    if name != "paper":
        return CORPORA[name](limit)
    path = catalogue.find("europarl_release", "europarl.tgz") if release is None else Path(release)
    return paper_years(path, limit=limit)


DIFFERS = {
    "docstrings": "substitute: (summary, body) of Python docstrings in place of comparable articles; one language",
    "en-es": "substitute: technical documentation, three quarters machine translated, in place of Wikipedia EN-ES",
    "en-es-human": "substitute: human-translated documentation in place of Wikipedia EN-ES",
    "en-es-unseen": "substitute: trained on some sources of documentation, tested on others",
    "en-es-halves": "substitute: the first half of the words of an English page and the second half of its human "
    "translation, in place of Wikipedia EN-ES: comparable, not parallel",
    "en-es-halves-all": "substitute: the first half of the words of an English page and the second half of its "
    "translation, by people or machines, in place of Wikipedia EN-ES",
    "en-fr-halves": "substitute: the first half of the words of an English page and the second half of the French one",
    "en-ja-halves": "substitute: the first half of the words of an English page and the second half of the Japanese "
    "one, words by fugashi and UniDic",
    "en-es-first20": "substitute: the first 20 words of an English page and the last two thirds of its human "
    "translation",
    "en-fr": "substitute: MDN and other documentation, EN-FR",
    "en-ja": "substitute: MDN and other documentation, EN-JA, words by fugashi and UniDic",
    "en-it-speeches": "resampled: a third of Europarl EN-IT in place of EN-ES; trained on blocks of 1996-99 cut at "
    "lines opening with Mr, Madam or Mrs President, tested on speeches of 2000",
    "en-it-speeches-long": "resampled: a third of Europarl EN-IT in place of EN-ES; the same training blocks, tested "
    "on speeches of 2000 of at least 100 words in both languages",
    "en-it-lines": "resampled: a third of Europarl EN-IT in place of EN-ES; the same training blocks, tested on single "
    "lines of at least 20 words",
    "paper": "resampled: the official Europarl release, the papers' years, speeches aligned by speaker",
}


def groups_of_test_pairs() -> dict[str, list[int]]:
    """Tables whose test pairs have near-copies among them -> the group of each pair, numbered as they appear."""
    texts = mates.read(docstrings.load())
    groups = texts.groups[mates.split(texts)["test"]]
    firsts, inverse = np.unique(groups, return_index=True, return_inverse=True)[1:]
    return {"docstrings": np.argsort(np.argsort(firsts))[inverse].tolist()}
