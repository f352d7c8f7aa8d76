"""The tables of `bai2010_cross_language`: pages of MDN in two languages, links across, what each baseline sees."""

from __future__ import annotations

import functools
import time
from dataclasses import dataclass, field

import numpy as np
import scipy.sparse

from experiments.links_tables import say
from experiments.ssi_sheets import Part, Place, Sheet, cut, product, tfidf
from jaxsim import sparse, text
from jaxsim.data import mdn_links, splits
from jaxsim.evaluate import ranking

EXPERIMENT = "bai2010_cross_language"
SHARES = {"train": 0.6, "dev": 0.1, "test": 0.3}
DIFFERS = ("substitute: MDN Web Docs in place of Wikipedia; queries are split by page (near-duplicates, in either "
           "language, together), so a test query and its mate's links are unseen; no machine translation; exact rank "
           "loss over all pairs, every query against all English pages")


@dataclass(frozen=True)
class Settings:
    """What a preset fixes: grids are chosen from on dev, rates by training loss."""

    ks: tuple[int, ...] = (50, 100, 200, 300)
    k: int = 100
    rates: tuple[float, ...] = (0.1, 0.3, 1.0)
    boosts: tuple[float, ...] = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
    noises: tuple[float, ...] = (0.1, 0.01)
    triples: int = 30_000
    max_iter: int = 12
    grid_iter: int = 2
    patience: int = 3
    validated: int | None = 300
    seeds: tuple[int, ...] = (0, 1)
    num_terms: int = 30_000
    limit: int | None = None


FULL = Settings()
QUICK = Settings(ks=(5, 10), k=10, rates=(0.3,), boosts=(0.1, 1.0), noises=(0.1,), triples=1000,
                 max_iter=2, grid_iter=1, patience=2, validated=50, num_terms=2000, limit=120)


@dataclass(eq=False)
class Table:
    """Queries of one language, documents of another.

    Attributes:
      settings: of the preset.
      sheet: where its records go.
      left: translations, tf-idf over the words of their training part.
      right: English pages, tf-idf.
      cut: the same as the low-rank part sees them.
      links: training pairs of rows of both.
      own: every translation with its mate, no negative and no right answer; none where mates are what is looked for.
      same_links: links between English pages, none from a page of a dev or test query or a near-duplicate of one.
      parts: dev and test; ``exact`` is TFIDF of the untranslated words.
      mates: training pages, rows of ``left`` and ``right``.
      joint: counts of translations and English pages over one vocabulary of the training mates.
      vocabulary: that vocabulary.
      found: what rows keep for others: score matrices by split.
    """

    settings: Settings
    sheet: Sheet
    left: sparse.Terms
    right: sparse.Terms
    cut: scipy.sparse.csr_matrix
    links: np.ndarray
    own: np.ndarray
    same_links: np.ndarray
    parts: dict[str, Part]
    mates: np.ndarray
    joint: tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]
    vocabulary: text.Vocabulary
    found: dict = field(default_factory=dict)

    @functools.cached_property
    def views(self) -> tuple[scipy.sparse.csr_matrix, scipy.sparse.csr_matrix]:
        """Unit log2(tf + 1) · log2(n / df) of ``joint``."""
        return tuple(text.unit_rows(text.log_tf_idf(one, self.vocabulary.df, self.vocabulary.num_docs))
                     for one in self.joint)


@functools.cache
def pages(language: str, limit: int | None):
    """Pages, the words of the English ones and of the translations, and groups of near-duplicates of each."""
    found = mdn_links.load(language, limit=limit)
    split = text.tokenizer(language)
    english, other = [text.words(one) for one in found.texts], [split(one) for one in found.translations]
    return found, english, other, splits.group_near_duplicates(english), splits.group_near_duplicates(other)


def make(name: str, language: str, paper: str, settings: Settings, place: Place, *, all_words: bool = False,
         by_mate: bool = False, data=None) -> Table:
    """One language's table.

    Args:
      name: of the table.
      language: of the queries.
      paper: printed table to stand beside.
      settings: of the preset.
      place: of the records.
      all_words: whether the dictionaries are unlimited, as in Table 10.
      by_mate: whether the mate is the right answer, not what it links to.
      data: as `pages` returns it.
    """
    begun = time.perf_counter()
    found, english, other, same, of_other = pages(language, settings.limit) if data is None else data
    where = splits.split(splits.merge(of_other, same[found.mates]), [found.ids[row] for row in found.mates],
                         shares=SHARES)
    part_of = np.empty(len(other), object)
    for part, rows in where.items():
        part_of[rows] = part
    most = 10**9 if all_words else settings.num_terms
    training = where["train"]
    words = {side: text.Vocabulary.build(of, drop_top=0, max_terms=most, min_df=2)
             for side, of in (("query", [other[row] for row in training]), ("document", english))}
    left = tfidf(text.counts(other, words["query"]), words["query"].df, words["query"].num_docs)
    right = tfidf(text.counts(english, words["document"]), words["document"].df, words["document"].num_docs)
    untranslated = tfidf(text.counts(other, words["document"]), words["document"].df, words["document"].num_docs)
    mate = np.column_stack([np.arange(len(other)), found.mates])
    pairs, own = (mate, np.zeros((0, 2), np.int64)) if by_mate else (found.across(), mate)
    seen, parts = cut(left), {}
    linked = {part: pairs[part_of[pairs[:, 0]] == part] for part in SHARES}
    for part in ("dev", "test"):
        truth = ranking.judged(linked[part], (len(other), len(english)), left_out=[own])
        parts[part] = Part(truth, seen[truth.queries], product(untranslated[truth.queries], right))
    held = np.concatenate([where["dev"], where["test"]])
    closed = np.isin(same, same[found.mates[held]])
    same_links = found.links[~closed[found.links[:, 0]]]
    joint = text.Vocabulary.build([other[row] for row in training] + [english[found.mates[row]] for row in training],
                                  drop_top=0, max_terms=most, min_df=2)
    counts = {**found.counts, "terms": [len(one) for one in words.values()], "links_in_english": len(same_links),
              "split": {part: {"queries": rows.size, "links": len(linked[part])} for part, rows in where.items()}}
    dataset = {"name": found.name, "sha256": found.sha256, "counts": counts, "differs": DIFFERS,
               "groups": {"groups_english": int(same.max() + 1), "groups_translated": int(of_other.max() + 1)}}
    seconds = time.perf_counter() - begun
    say(f"{name}: {counts}, {seconds:.0f} s")
    return Table(settings, Sheet(EXPERIMENT, name, paper, dataset, place, seconds), sparse.from_scipy(left),
                 sparse.from_scipy(right), cut(right), linked["train"], own, same_links, parts,
                 mate[training], (text.counts(other, joint), text.counts(english, joint)), joint)
