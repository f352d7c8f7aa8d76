"""Reuters-21578 as 001 uses it: documents with topics and features of their terms, and what one seed trains on."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache, cached_property

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from experiments.corpora import wordnet_terms
from jaxsim import sparse, text
from jaxsim.data import labelled_pairs, reuters21578, splits, word_frequency, wordnet
from jaxsim.data.labelled_pairs import LabelledPairs
from jaxsim.evaluate import all_pairs
from jaxsim.text import features
from jaxsim.text.features import Featured

DIFFERS = ("same: Reuters-21578, ModApte split, documents with a topic and at least 80 characters; the paper's 7,310 "
           "and 2,848 documents do not add up to its 10,107")


@dataclass(frozen=True, eq=False)
class Sample:
    """What one seed trains on.

    Attributes:
      fit: Rows of the training documents that are fitted on.
      dev: Rows of those held out, a tenth: whole groups of near-duplicates.
      pairs: Balanced pairs of fitted documents, as rows of all training documents, so that every seed has data of
        one shape and is compiled once.
      dev_pairs: 5 % more of these, held out (the paper's development set).
    """

    fit: np.ndarray
    dev: np.ndarray
    pairs: LabelledPairs
    dev_pairs: LabelledPairs


@dataclass(frozen=True, eq=False)
class Reuters:
    """Both parts (`train` and `test`) of the collection, over terms in at least two training documents.

    Attributes:
      collection: As read: its digest, and the counts of what was read.
      stories: Part -> stories, each with title, text and topics.
      folded: Part -> lower-case words of each story.
      vocabulary: Terms with their document frequencies in training.
      every_term: The same with terms of one document.
      counts: Part -> ``[num_docs, num_terms]`` counts.
      featured: Part -> documents with features of their terms (001 Table 1 without parts of speech; web frequencies in
        place of a query log), scaled by those of training.
      capitals: Of each term the share of its training documents that write it with a capital.
      labels: Part -> ``[num_docs, num_topics]`` which document has which topic; two are similar if they share one.
    """

    collection: reuters21578.Collection
    stories: dict[str, list]
    folded: dict[str, list[list[str]]]
    vocabulary: text.Vocabulary
    every_term: text.Vocabulary
    counts: dict[str, scipy.sparse.csr_matrix]
    featured: dict[str, Featured]
    capitals: np.ndarray
    labels: dict[str, scipy.sparse.csr_matrix]

    @property
    def sizes(self) -> dict[str, int]:
        """Documents of each part."""
        return {part: len(stories) for part, stories in self.stories.items()}

    @cached_property
    def groups(self) -> np.ndarray:
        """Numbers of the training documents; near-duplicates have the same."""
        return splits.group_near_duplicates(self.folded["train"])

    @cached_property
    def test_parts(self) -> dict[str, np.ndarray]:
        """Test documents that get figures of their own: those a model may not remember, those of smaller topics."""
        groups = splits.group_near_duplicates([*self.folded["train"], *self.folded["test"]])
        size = len(self.stories["train"])
        return {"no near-duplicate in training": np.flatnonzero(~np.isin(groups[size:], groups[:size])),
                "neither earn nor acq": np.array([row for row, story in enumerate(self.stories["test"])
                                                  if not {"earn", "acq"} & set(story.topics)], int)}

    @cached_property
    def tagged(self) -> dict[str, Featured]:
        """``featured`` and one column more for each part of speech, 1 for the terms that have it (`wordnet_terms`)."""
        tags = wordnet_terms.tags(wordnet.load(), self.vocabulary.terms, self.capitals)
        names, result = tuple(f"pos {tag}" for tag in wordnet_terms.TAGS), {}
        for part, documents in self.featured.items():
            used = np.arange(documents.terms.nnz) < int(documents.terms.indptr[-1])
            own = tags[np.asarray(documents.terms.indices)][:, None] == np.arange(len(names))
            columns = (own & used[:, None]).astype(np.asarray(documents.columns).dtype)
            result[part] = replace(documents, names=documents.names + names,
                                   columns=jnp.concatenate([documents.columns, columns], axis=1))
        return result

    def similar(self, rows: np.ndarray) -> np.ndarray:
        """Which of some training documents share a topic, ``[rows, rows]`` booleans."""
        labels = self.labels["train"][rows]
        return (labels @ labels.T).toarray() > 0

    def sample(self, seed: int, num: int) -> Sample:
        """Development documents of a seed, and ``num`` similar and ``num`` other pairs of the remaining documents."""
        ids = [str(story.number) for story in self.stories["train"]]
        parts = splits.split(self.groups, ids, shares={"fit": 0.9, "dev": 0.1}, salt=str(seed))
        labels = self.labels["train"][parts["fit"]]
        extra = max(num // 19, 1)  # 5 % of all
        size = num + extra
        drawn = labelled_pairs.balanced(len(parts["fit"]), lambda i, j: all_pairs.share(labels, i, j), num=size,
                                        key=jax.random.key(seed))
        left, right = (parts["fit"][np.asarray(rows)].astype(np.int32) for rows in drawn[:2])
        pairs = LabelledPairs(left, right, np.asarray(drawn.labels))
        kept, held = (LabelledPairs(*(part[rows] for part in pairs))
                      for rows in (np.r_[0:num, size : size + num], np.r_[num:size, size + num : 2 * size]))
        return Sample(parts["fit"], parts["dev"], kept, held)


@cache
def load(min_characters: int = 80, limit: tuple[int, int] | None = None) -> Reuters:
    """Reads the collection and extracts features; both tables of 001 share what is read.

    Args:
      min_characters: Of title and text; shorter stories are left out.
      limit: Documents of each part at most, an even sample; None for all.

    Returns:
      `Reuters`.

    Raises:
      MissingCorpus: its files, or those of the word frequencies, are not here.
    """
    collection, frequency = reuters21578.load(), word_frequency.load()
    chosen = reuters21578.rows(collection.stories, min_characters=min_characters)
    for part, most in zip(chosen, limit or (None, None), strict=True):
        if most is not None and len(chosen[part]) > most:
            chosen[part] = chosen[part][np.linspace(0, len(chosen[part]) - 1, most).astype(int)]
    stories = {part: [collection.stories[row] for row in rows] for part, rows in chosen.items()}
    tokens = {part: [text.words(story.text, lower=False) for story in of] for part, of in stories.items()}
    folded = {part: [[word.lower() for word in words] for words in of] for part, of in tokens.items()}
    vocabulary = text.Vocabulary.build(folded["train"], drop_top=0, max_terms=10**9, min_df=2)
    every_term = text.Vocabulary.build(folded["train"], drop_top=0, max_terms=10**9)
    query_frequency = word_frequency.of_terms(frequency, vocabulary.terms)
    extracted = {part: features.extract(of, vocabulary, query_frequency=query_frequency) for part, of in tokens.items()}
    scale = features.scale_of(extracted["train"])
    counted = sparse.to_scipy(extracted["train"].terms)
    capital = np.asarray(extracted["train"].columns)[: counted.nnz, extracted["train"].names.index("cap")]
    written = np.bincount(counted.indices, weights=capital, minlength=len(vocabulary))
    return Reuters(
        collection, stories, folded, vocabulary, every_term,
        counts={part: sparse.to_scipy(documents.terms) for part, documents in extracted.items()},
        featured={part: features.scaled(documents, scale) for part, documents in extracted.items()},
        capitals=written / np.maximum(np.bincount(counted.indices, minlength=len(vocabulary)), 1),
        labels={part: all_pairs.incidence([story.topics for story in of]) for part, of in stories.items()},
    )
