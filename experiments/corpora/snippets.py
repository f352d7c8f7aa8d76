"""Short texts made longer by what a search of all local collections finds, and features of that search (004 §4.1)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from experiments.corpora.passages import Passages
from jaxsim import sparse, text
from jaxsim.data import cacm, classic, doc_pairs, httpd_html, judged, mdn, nfcorpus, reuters21578, wikispeedia
from jaxsim.text import features, html
from jaxsim.text.features import Featured
from jaxsim.text.weightings import saturated_counts

SEARCH = ("phrase", "share", "rank", "bm25", "tfidf")
"""Columns beside those of plain text.

phrase: 1 if the term is a word of the phrase itself. share: of the snippets that have the term. rank: 1 / the rank of
the best snippet that has it. bm25: the term frequency as BM25 saturates it, without its idf. tfidf: tf log(N / df).
"""
NAMES = (*features.PLAIN_TEXT, *SEARCH)
DOC_PAIRS = ("biztalk_docs", "electron", "fcc_guide", "kubernetes", "python_docs", "tico19", "xquad_wikipedia")
"""Sources of ``doc_pairs`` with Spanish that are read; the others are verses, or pages of code or of commands."""
_BLOCK = 100  # documents at a time


def collections() -> Iterator[tuple[str, Sequence[str], Sequence[str], str]]:
    """All local collections of English prose but novels and speeches: name, texts, titles and digest of each."""
    articles = wikispeedia.load()
    yield "wikispeedia", articles.texts, articles.titles, articles.sha256
    stories = reuters21578.load()
    yield ("reuters21578", [story.body for story in stories.stories], [story.title for story in stories.stories],
           stories.sha256)
    abstracts = nfcorpus.load()
    yield "nfcorpus", list(abstracts.documents.values()), [""] * len(abstracts.documents), abstracts.sha256
    articles = cacm.load()
    yield "cacm", articles.texts, articles.titles, articles.sha256
    for name in ("cisi", "cranfield", "npl"):
        texts = classic.load(name)
        yield name, list(texts.documents.values()), [""] * len(texts.documents), texts.sha256
    manual = httpd_html.load()
    pages = [html.read(page) for page in manual.pages]
    yield "httpd_html", [page.text for page in pages], [page.title for page in pages], manual.sha256
    for pairs in (mdn.load("ja"), doc_pairs.load("es", sources=DOC_PAIRS)):
        yield pairs.name, pairs.left, [""] * len(pairs), pairs.sha256
    products = judged.load_search()
    described = dict(zip(products.titles, products.descriptions, strict=True))
    texts = [text.prose(one) for one in described.values()]
    titled = [(title, body) for title, body in zip(described, texts, strict=True) if text.words(body)]
    yield ("crowdflower_search", [body for _, body in titled], [title for title, _ in titled], products.sha256)


@dataclass(frozen=True, eq=False)
class Words:
    """The words of all passages that are in the vocabulary, one passage after the other.

    Attributes:
      terms: ``[num_words]`` term of each word.
      capital: ``[num_words]`` whether it begins with a capital.
      place: ``[num_words]`` words before it in its passage, those outside the vocabulary included.
      starts: ``[num_passages + 1]`` first word of each passage.
      lengths: ``[num_passages]`` all words of a passage.
    """

    terms: np.ndarray
    capital: np.ndarray
    place: np.ndarray
    starts: np.ndarray
    lengths: np.ndarray


def numbered(passages: Passages) -> Words:
    """The words of passages as numbers, so that many pseudo-documents are counted fast."""
    lengths = np.array([len(one) for one in passages.tokens])
    find, total = passages.vocabulary.index.get, int(lengths.sum())
    terms = np.fromiter((find(word.lower(), -1) for one in passages.tokens for word in one), np.int32, total)
    capital = np.fromiter((word[:1].isupper() for one in passages.tokens for word in one), bool, total)
    place = np.arange(total) - np.repeat(np.cumsum(lengths) - lengths, lengths)
    known = terms >= 0
    starts = np.r_[0, np.cumsum(known)][np.r_[0, np.cumsum(lengths)]]
    return Words(terms[known], capital[known], place[known].astype(np.int32), starts, lengths)


def extract(
    passages: Passages, words: Words, found: Sequence[np.ndarray], own: sp.csr_matrix, *, num: int, terms: int
) -> tuple[Featured, sp.csr_matrix]:
    """Pseudo-documents of the best passages of each phrase, with all features of their terms but query frequency.

    Args:
      passages: What was searched.
      words: Of `numbered`.
      found: Passages of each phrase, the best first.
      own: ``[num_phrases, num_terms]``, not 0 where a term is a word of the phrase itself.
      num: Passages of a phrase at most.
      terms: Terms of a phrase at most: its own words that the passages have, and then those with the highest tf·idf.

    Returns:
      `Featured` with the columns `NAMES`, of which ``log_qf`` is 0, and the tf·idf of its slots.
    """
    vocabulary, blocks = passages.vocabulary, []
    idf = np.log(vocabulary.num_docs / np.asarray(vocabulary.df, np.float64))
    own = sp.csr_matrix(own)
    for start in range(0, len(found), _BLOCK):
        blocks.append(_block(words, [one[:num] for one in found[start : start + _BLOCK]], own[start : start + _BLOCK],
                             idf, terms))
    part = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
    sizes, lengths, tf = part["sizes"], part["lengths"], part["tf"].astype(np.float64)
    snippets = np.minimum([len(one) for one in found], num)
    row = np.repeat(np.arange(len(found)), sizes)
    average = lengths.sum() / max((lengths > 0).sum(), 1)
    columns = {
        "bias": np.ones(len(row)), "log_tf": np.log1p(tf), "log_df": np.log1p(vocabulary.df[part["term"]]),
        "log_qf": np.zeros(len(row)), "cap": part["capital"], "log_loc": np.log1p(part["loc"]),
        "relative_loc": part["loc"] / lengths[row], "log_len": np.log1p(lengths[row]), "phrase": part["own"],
        "share": part["having"] / snippets[row], "rank": 1 / (1 + part["rank"]),
        "bm25": saturated_counts(tf, lengths[row] / average, 1.2, 0.75), "tfidf": tf * idf[part["term"]]}
    indptr = np.r_[0, np.cumsum(sizes)]
    shape = (len(found), len(vocabulary))
    counts = sp.csr_matrix((tf.astype(np.float32), part["term"], indptr), shape)
    terms_ = sparse.from_scipy(counts)
    values = np.zeros((terms_.values.shape[0], len(NAMES)), np.float32)  # some slots may be padding
    for place, name in enumerate(NAMES):
        values[: len(row), place] = columns[name]
    return (Featured(terms_, jnp.asarray(values), NAMES),
            sp.csr_matrix((columns["tfidf"], part["term"], indptr), shape))


def _block(words: Words, found: list[np.ndarray], own: sp.csr_matrix, idf: np.ndarray, most: int) -> dict:
    """What `extract` needs of some documents, slot by slot in the order of a CSR matrix."""
    num, width = len(found), own.shape[1]
    passage = np.concatenate([np.zeros(0, np.int64), *found]).astype(np.int64)
    count = np.array([len(one) for one in found])
    document = np.repeat(np.arange(num), count)
    rank = np.arange(len(passage)) - np.repeat(np.cumsum(count) - count, count)
    ends = np.cumsum(words.lengths[passage])
    before = ends - words.lengths[passage]
    lengths = np.bincount(document, weights=words.lengths[passage], minlength=num).astype(np.int64)
    before = before - np.repeat(np.cumsum(lengths) - lengths, count)  # words of the document before the passage
    held = words.starts[passage + 1] - words.starts[passage]
    at = np.arange(held.sum()) - np.repeat(np.cumsum(held) - held, held) + np.repeat(words.starts[passage], held)
    key = np.repeat(document, held) * width + words.terms[at]
    # By document, term and place. The place is in the number itself: sorting is then much faster than a stable argsort.
    bits = max(int(len(at)).bit_length(), 1)
    order = np.sort((key << bits) | np.arange(len(at)))
    key, order = order >> bits, order & ((1 << bits) - 1)
    new = np.r_[True, key[1:] != key[:-1]][: len(key)]
    start = np.flatnonzero(new)
    slot_rank = np.repeat(rank, held)[order]
    another = new.copy()
    another[1:] |= slot_rank[1:] != slot_rank[:-1]
    first = order[start]
    key, term, row = key[start], key[start] % width, key[start] // width
    mine = np.isin(key, np.repeat(np.arange(num), np.diff(own.indptr)) * width + own.indices)
    tf = np.diff(np.r_[start, len(order)])
    result = {
        "term": term, "tf": tf, "own": mine, "rank": slot_rank[start],
        "loc": (np.repeat(before, held) + words.place[at])[first],
        "capital": np.maximum.reduceat(words.capital[at][order], start) if len(start) else np.zeros(0, bool),
        "having": np.add.reduceat(another.astype(np.int64), start) if len(start) else np.zeros(0, np.int64)}
    best = np.lexsort((-(tf * idf[term]), ~mine, row))
    size = np.bincount(row, minlength=num)
    kept = np.sort(best[np.arange(len(row)) - np.repeat(np.cumsum(size) - size, size) < most])
    return {**{name: values[kept] for name, values in result.items()}, "sizes": np.minimum(size, most),
            "lengths": lengths}


def with_query_frequency(documents: Featured, frequency: np.ndarray) -> Featured:
    """The same documents with ``log_qf`` from the query frequency of every term.

    Args:
      documents: Of `extract`.
      frequency: ``[num_terms]`` queries with each term.

    Returns:
      `Featured`.
    """
    csr = sparse.to_scipy(documents.terms)
    columns = np.array(documents.columns)
    columns[: csr.nnz, documents.names.index("log_qf")] = np.log1p(frequency[csr.indices])
    return Featured(documents.terms, jnp.asarray(columns), documents.names)
