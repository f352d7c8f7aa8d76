"""Topics as people read them: their top words, and how well these words fit together."""

from __future__ import annotations

import numpy as np

from jaxsim import checks
from jaxsim.methods import statistics
from jaxsim.methods.topics.topics import Topics
from jaxsim.sparse import Terms


def top_words(params: Topics, *, number: int = 10, lift: float = 0.0) -> np.ndarray:
    r"""The words of each topic.

    Args:
      params: `Topics` of a language.
      number: words a topic.
      lift: 0 orders by probability :math:`\phi_{wt}`, 1 by how much more of the word the topic has than all topics
        together; between them by the product :math:`\phi_{wt} (\phi_{wt} / \sum_s \phi_{ws})^{lift}`.

    Returns:
      ``[k, number]`` word ids, the first the best; -1 behind the last word that a topic has.

    Example:
      >>> import jax.numpy as jnp
      >>> top_words(Topics(jnp.array([[0.7, 0.0], [0.3, 1.0]])), number=2).tolist()
      [[0, 1], [1, -1]]
    """
    checks.positive_int(number, "number")
    checks.expect(lift >= 0, "lift", "a number of at least 0", lift)
    words = np.asarray(params.words)
    total = words.sum(axis=1, keepdims=True)
    score = words * np.divide(words, total, out=np.zeros_like(words), where=total > 0) ** lift
    order = np.argsort(-score, axis=0, kind="stable")[:number].T
    return np.where(np.take_along_axis(score.T, order, axis=1) > 0, order, -1)


def npmi(words: np.ndarray, counts: Terms) -> np.ndarray:
    r"""Coherence: normalised pointwise mutual information of the words of a topic, in whole documents.

    .. math:: \frac{\log (p(v, w) / (p(v) p(w)))}{-\log p(v, w)}, \text{ the mean over pairs of its words}

    Args:
      words: ``[k, number]`` word ids, -1 for none (`top_words`).
      counts: documents that occurrences are counted in; unseen ones are the fairer judges.

    Returns:
      ``[k]`` in [-1, 1]: -1 for words that never meet, 0 for independent ones, 1 for words that never part. Words
      that no document has are left out; NaN with fewer than two others.

    Raises:
      ValueError: for word ids beyond those of ``counts``, or negative counts.

    Example:
      >>> import scipy.sparse
      >>> from jaxsim.sparse import from_scipy
      >>> counts = from_scipy(scipy.sparse.csr_matrix([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]]))
      >>> npmi(np.array([[0, 1], [1, 2]]), counts).tolist()
      [1.0, -1.0]
    """
    words = np.asarray(words)
    largest = int(np.max(words, initial=-1))
    checks.expect(largest < counts.num_terms, "words", f"word ids below {counts.num_terms} (terms)", largest)
    there = (statistics.counts_of(counts, "counts") > 0).astype(np.float64).tocsc()
    n, found = there.shape[0], np.full(len(words), np.nan)
    for topic, row in enumerate(words):
        chosen = there[:, row[row >= 0]]
        both = (chosen.T @ chosen).toarray() / max(n, 1)
        single = np.diagonal(both)
        seen = np.flatnonzero(single > 0)
        if seen.size < 2:
            continue
        both, single = both[np.ix_(seen, seen)], single[seen]
        upper = np.triu_indices(seen.size, 1)
        joint, apart = both[upper], np.outer(single, single)[upper]
        safe = np.where(joint > 0, joint, 0.5)
        value = np.where(joint < 1, np.log(safe / apart) / -np.log(np.where(joint < 1, safe, 0.5)), 1.0)
        found[topic] = np.mean(np.where(joint > 0, value, -1.0))
    return found
