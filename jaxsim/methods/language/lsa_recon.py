r"""Reconstruction error of a sentence in a space of latent semantic analysis made for its question (completion §4.2).

Each question selects documents, the sentences that hold one of its options, and a sentence of n words is projected onto
the leading f·n left singular vectors U of their term-by-document matrix. The choice with the smallest

.. math:: \|(U U^\top - I) w_p\|^2 = \|w_p\|^2 - \|U^\top w_p\|^2

is taken. Terms are words and runs of two and three words, with weights tf · log(n / df).

Differs from the paper: at most ``most`` sentences an option are read, spread evenly over the text. With documents of
length one, long sentences do not outweigh short ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse
import scipy.sparse.linalg
from tqdm import tqdm

from jaxsim import checks
from jaxsim.data.corpora.questions import Filled
from jaxsim.methods.language import documents
from jaxsim.methods.language.documents import Documents

__all__ = ["VERSION", "errors"]

VERSION = 2
"""The leading singular vectors are those of ARPACK; before, two rounds of subspace iteration came near them."""
_LEAST = 1e-6  # of the largest eigenvalue, 8 roundings of float32; below, only rounding


def errors(
    found: Documents,
    filled: Filled,
    *,
    factor: float = 1.2,
    unit_length: bool = True,
    most: int = 1000,
    rng: np.random.Generator,
    progress: bool = False,
    done: Callable[[int, np.ndarray], None] | None = None,
    start: np.ndarray | None = None,
) -> np.ndarray:
    """Reconstruction errors of all choices; the score is their negative.

    Args:
      found: the sentences with an option, with terms of up to three words.
      filled: the questions with every choice filled in.
      factor: f, dimensions a word of the sentence; 1.2 in the paper.
      unit_length: whether documents are scaled to length one.
      most: sentences an option at most.
      rng: of the start of the search for singular vectors; each question draws from a stream of its own.
      progress: show the questions' number on stderr.
      done: told a question's number and its errors, so that a caller can keep them.
      start: errors of the first questions, which are not computed again.

    Returns:
      ``[num_questions, num_choices]`` float64.

    Raises:
      ValueError: settings out of range.
    """
    checks.positive(factor, "factor")
    checks.positive_int(most, "most")
    shape = filled.tokens.shape[:2]
    idf = found.idf().astype(np.float32)
    size = len(found.terms.words)
    sentences = documents.rows_of(filled, found.terms).multiply(idf).tocsr()
    chosen = documents.count(filled, found.terms, chosen=True)
    holding = found.counts[:, found.terms.options].tocsc()
    option_at = np.full(size, -1)
    option_at[found.terms.options] = np.arange(len(found.terms.options))
    lengths = (filled.lengths - 2).max(axis=1)
    streams = rng.spawn(shape[0])
    values = np.zeros(shape)
    first = 0 if start is None else len(start)
    values[:first] = 0 if start is None else start
    for at in tqdm(range(first, shape[0]), desc="questions", initial=first, total=shape[0],
                   disable=None if progress else True):
        rows = slice(at * shape[1], (at + 1) * shape[1])
        options = option_at[np.unique(chosen[rows].indices)]
        listed = [holding.indices[holding.indptr[one] : holding.indptr[one + 1]] for one in options if one >= 0]
        listed = [docs[np.linspace(0, len(docs) - 1, min(most, len(docs))).astype(int)] for docs in listed]
        docs = np.unique(np.concatenate([np.zeros(0, np.int32), *listed]))
        weighted = _weighted(found.counts[docs], idf, unit_length)
        vectors = sentences[rows].toarray().astype(np.float64)
        values[at] = _errors(weighted, vectors, max(1, round(factor * lengths[at])), streams[at])
        if done is not None:
            done(at, values[at])
    return values


def _weighted(counts: scipy.sparse.csr_matrix, idf: np.ndarray, unit_length: bool) -> scipy.sparse.csr_matrix:
    """Documents with weights tf · idf, of length one if asked."""
    data = counts.data * idf[counts.indices]
    matrix = scipy.sparse.csr_matrix((data, counts.indices, counts.indptr), counts.shape)
    if unit_length:
        norms = np.sqrt(np.maximum(np.add.reduceat(np.append(data**2, 0), counts.indptr[:-1]), 1e-30))
        matrix.data = data / np.repeat(norms, np.diff(counts.indptr)).astype(np.float32)
    return matrix


def _errors(docs: scipy.sparse.csr_matrix, vectors: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Squared distance of each vector from the span of the documents' leading singular vectors."""
    place = np.zeros(docs.shape[1], np.int32)
    place[docs.indices] = 1
    terms = np.flatnonzero(place)
    place[terms] = np.arange(len(terms))
    total = (vectors**2).sum(axis=1)
    k = min(k, *docs.shape, len(terms))
    if k == 0:
        return total
    small = scipy.sparse.csr_matrix((docs.data, place[docs.indices], docs.indptr), (docs.shape[0], len(terms)))
    return total - ((vectors[:, terms] @ _leading(small.astype(np.float64), k, rng).T) ** 2).sum(axis=1)


def _leading(docs: scipy.sparse.csr_matrix, k: int, rng: np.random.Generator) -> np.ndarray:
    """The ``k`` leading right singular vectors as rows, or those up to the rank."""
    least = min(docs.shape)
    if not docs.data.any():  # terms of all sentences have no weight
        return np.zeros((0, docs.shape[1]))
    if 2 * k < least:
        _, values, rows = scipy.sparse.linalg.svds(docs, k=k, v0=rng.normal(size=least))
        order = np.argsort(-values)
        values, rows = values[order], rows[order]
    else:
        values, rows = (one[:k] for one in np.linalg.svd(docs.toarray(), full_matrices=False)[1:])
    return rows[values**2 > _LEAST * values[0] ** 2]
