"""Sentences of the training text that are relevant to some questions, as counts of the questions' terms.

Of the text only sentences that hold an answer option matter, and of these only words that stand in the questions
(completion §4.4). Terms are words and, on request, runs of two and three words of the filled-in questions. Punctuation
marks and numbers are no terms.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse

from jaxsim import checks
from jaxsim.data.corpora.questions import Filled
from jaxsim.data.corpora.sentences import END, MARKS, START, Sentences

__all__ = ["Documents", "Terms", "collect", "count", "rows_of", "terms_of"]

_BLOCK = 1 << 22  # tokens gone through at once


class Terms(NamedTuple):
    """Words and n-grams of questions.

    Attributes:
      words: ``[num_words]`` int32, ascending numbers of the words; they are the first columns.
      pairs: ``[num_pairs]`` int64, ascending: column of the first word times ``num_words`` plus that of the second.
      triples: ``[num_triples]`` int64, ascending: the same with three words; they are the last columns.
      options: ``[num_options]`` int32, ascending columns of the words that occur in choices.
    """

    words: np.ndarray
    pairs: np.ndarray
    triples: np.ndarray
    options: np.ndarray

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.words) + len(self.pairs) + len(self.triples)


class Documents(NamedTuple):
    """The sentences that hold an option.

    Attributes:
      terms: what the columns are.
      counts: ``[num_docs, num_terms]`` float32 CSR.
      num_sentences: how many sentences were looked at.
    """

    terms: Terms
    counts: scipy.sparse.csr_matrix
    num_sentences: int

    def idf(self) -> np.ndarray:
        """``[num_terms]`` float64: log(documents / documents with the term); 0 for terms that no document has."""
        df = np.bincount(self.counts.indices, minlength=self.terms.size)
        return np.where(df > 0, np.log(max(self.counts.shape[0], 1) / np.maximum(df, 1)), 0.0)


def terms_of(filled: Filled, sentences: Sentences, *, longest: int = 1) -> Terms:
    """The terms of questions.

    Args:
      filled: the questions with every choice filled in.
      sentences: the text, whose vocabulary says which tokens are words.
      longest: 1 for words, 2 or 3 for n-grams as well.

    Returns:
      `Terms`.

    Raises:
      ValueError: for another length, or questions of which no option is a word of the text.
    """
    checks.expect(longest in (1, 2, 3), "longest", "1, 2 or 3", longest)
    is_word = np.array([word[0].isalpha() for word in sentences.vocabulary])
    is_word[: len(MARKS)] = False
    inside = filled.tokens >= 0
    numbers = np.unique(filled.tokens[inside])
    words = numbers[is_word[numbers]].astype(np.int32)
    options = np.unique(filled.tokens[filled.chosen & inside])
    options = np.searchsorted(words, options[is_word[options]]).astype(np.int32)
    checks.expect(len(options) > 0, "filled", "choices that occur in the text", "none")
    terms = Terms(words, np.zeros(0, np.int64), np.zeros(0, np.int64), options)
    columns = _columns(filled.tokens[inside], terms)
    pairs, triples = _runs(columns, len(words))
    if longest > 1:
        terms = terms._replace(pairs=np.unique(pairs[pairs >= 0]))
    if longest > 2:
        terms = terms._replace(triples=np.unique(triples[triples >= 0]))
    return terms


def collect(sentences: Sentences, terms: Terms) -> Documents:
    """Counts terms in every sentence of a text that holds an option.

    Args:
      sentences: the text.
      terms: as `terms_of` gives them.

    Returns:
      `Documents`.

    Raises:
      ValueError: no sentence holds an option.
    """
    parts, seen, tokens = [], 0, sentences.tokens
    is_option = np.zeros(len(terms.words) + 1, bool)
    is_option[terms.options] = True
    begin = 0
    while begin < len(tokens):
        block = np.asarray(tokens[begin : begin + _BLOCK])
        if begin + len(block) < len(tokens):  # whole sentences
            block = block[: len(block) - int(np.argmax(block[::-1] == END))]
            checks.expect(block[-1] == END, "sentences", f"none longer than {_BLOCK} tokens", "a longer one")
        begin += len(block)
        columns, row = _columns(block, terms), np.cumsum(block == START) - 1
        seen += int(row[-1]) + 1
        relevant = np.bincount(row, is_option[columns], minlength=row[-1] + 1) > 0
        keep = relevant[row]
        new = (np.cumsum(relevant) - 1)[row[keep]]
        parts.append(_counted(columns[keep], new, int(relevant.sum()), terms))
    counts = scipy.sparse.vstack(parts, format="csr", dtype=np.float32)
    checks.expect(counts.shape[0] > 0, "sentences", "at least one that holds an option", "none")
    return Documents(terms, counts, seen)


def rows_of(filled: Filled, terms: Terms) -> scipy.sparse.csr_matrix:
    """Counts of terms in the filled-in questions.

    Args:
      filled: the questions.
      terms: the columns.

    Returns:
      ``[num_questions * num_choices, num_terms]`` float32 CSR, choices of a question one after the other.
    """
    inside = filled.tokens.reshape(-1, filled.tokens.shape[-1]) >= 0
    tokens = filled.tokens.reshape(inside.shape)[inside]
    return _counted(_columns(tokens, terms), np.nonzero(inside)[0], len(inside), terms)


def count(filled: Filled, terms: Terms, *, chosen: bool) -> scipy.sparse.csr_matrix:
    """Counts of words in the choices alone, or in the rest of the sentences alone; rows as in `rows_of`.

    Args:
      filled: the questions.
      terms: the columns; only those of words are counted.
      chosen: whether tokens of the choice count, or the others.

    Returns:
      ``[num_questions * num_choices, num_words]`` float32 CSR.
    """
    tokens = filled.tokens.reshape(-1, filled.tokens.shape[-1])
    kept = (tokens >= 0) & (filled.chosen.reshape(tokens.shape) == chosen)
    columns, row = _columns(tokens[kept], terms), np.nonzero(kept)[0]
    known = columns >= 0
    shape = len(tokens), len(terms.words)
    return scipy.sparse.csr_matrix((np.ones(known.sum(), np.float32), (row[known], columns[known])), shape)


def _columns(tokens: np.ndarray, terms: Terms) -> np.ndarray:
    """Column of each token, -1 where it is no word of the questions."""
    places = np.minimum(np.searchsorted(terms.words, tokens), max(len(terms.words) - 1, 0))
    return np.where(terms.words[places] == tokens, places, -1) if len(terms.words) else np.full(np.shape(tokens), -1)


def _runs(columns: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys of the runs of two and of three words that start at each token, -1 where there is none.

    Marks are no words, so that no run reaches over the end of a sentence.
    """
    following = np.append(columns[1:], -1)
    pairs = np.where((columns >= 0) & (following >= 0), columns * size + following, -1)
    third = np.append(following[1:], -1)
    return pairs, np.where((pairs >= 0) & (third >= 0), pairs * size + third, -1)


def _counted(columns: np.ndarray, row: np.ndarray, num_rows: int, terms: Terms) -> scipy.sparse.csr_matrix:
    """Counts of all terms in rows of consecutive tokens."""
    found, begin = [(row, columns)], len(terms.words)
    if len(terms.pairs):
        for table, keys in zip((terms.pairs, terms.triples), _runs(columns, len(terms.words)), strict=True):
            if len(table):
                places = np.minimum(np.searchsorted(table, keys), len(table) - 1)
                found.append((row, np.where(table[places] == keys, begin + places, -1)))
            begin += len(table)
    rows, places = (np.concatenate(part) for part in zip(*found, strict=True))
    known = places >= 0
    values = np.ones(int(known.sum()), np.float32)
    matrix = scipy.sparse.coo_matrix((values, (rows[known], places[known])), (num_rows, terms.size)).tocsr()
    matrix.sum_duplicates()
    return matrix
